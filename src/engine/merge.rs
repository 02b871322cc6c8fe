//! Where the lines of one text went in another.
//!
//! A diff is one reading among several: an inserted block between equal lines
//! can slide, and two algorithms can pair look-alike functions differently. A
//! hunk must not land on the strength of one such choice. So a [`LineMap`] first
//! takes what is beyond doubt, the runs that hold many lines which stand once in
//! either text; what lies between them it reads in several ways (two algorithms,
//! each with every loose block slid as far up and as far down as it goes), and
//! an answer counts as known only where all of them give it.
//!
//! What lies between is read when a line of it is asked for: most hunks stand
//! in such a run, and a walk over hundreds of versions costs no diff for them.

mod gap;
mod runs;

use foldhash::HashMap;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use imara_diff::InternedInput;

use gap::{DOWN, READINGS, Readings};
use runs::{Block, place_in, place_in_back};

/// A line by its number: see [`Numbers`].
pub use imara_diff::Token as Number;

/// Splits a text into its lines, each with its own line end; the last one may
/// have none. The empty text has no line.
#[must_use]
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::with_capacity(text.len() / 24);
    let mut begin = 0;
    for at in memchr::memchr_iter(b'\n', text) {
        lines.push(&text[begin..=at]);
        begin = at + 1;
    }
    if begin < text.len() {
        lines.push(&text[begin..]);
    }
    lines
}

/// Every place in a text at which these lines stand together. `rare` is one of them that
/// few others are: where it is not, no other needs reading.
pub(crate) fn standing<L: PartialEq>(wanted: &[L], text: &[L], rare: Option<usize>) -> Vec<usize> {
    let Some(last) = text.len().checked_sub(wanted.len()) else { return Vec::new() };
    (0..=last)
        .filter(|&at| rare.is_none_or(|i| text[at + i] == wanted[i]))
        .filter(|&at| text[at..at + wanted.len()] == *wanted)
        .collect()
}

/// What became of a range of lines and of the two lines beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All are as they were and still stand together; the range is now here.
    Kept(Range<usize>),
    /// The range holds exactly the wanted lines already, here.
    Landed(Range<usize>),
    /// The range or a line beside it changed. What stands between the nearest
    /// kept lines around it is given.
    Changed(Range<usize>),
    /// The readings of the diff disagree: each of these could be the place.
    Unsure(Vec<usize>),
    /// They disagree whether it has landed: it may be as it was at one of these.
    MayHaveLanded(Vec<usize>),
}

/// Where the lines of an old text went in a new one.
pub struct LineMap<'t> {
    old: Cow<'t, [Number]>,
    new: Cow<'t, [Number]>,
    /// How often each number stands in the new text.
    counts: Vec<u32>,
    /// The runs beyond doubt, in the order of both texts.
    sure: Vec<Block>,
    /// What lies before each of them, and after the last.
    gaps: Vec<OnceCell<Readings>>,
}

impl<'t> LineMap<'t> {
    /// Compares the two texts, given as lines.
    #[must_use]
    pub fn new(old: &[&[u8]], new: &[&[u8]]) -> LineMap<'static> {
        let mut lines: InternedInput<&[u8]> = InternedInput::default();
        lines.before.reserve(old.len());
        lines.after.reserve(new.len());
        lines.update_before(old.iter().copied());
        lines.update_after(new.iter().copied());
        LineMap::between(Cow::Owned(lines.before), Cow::Owned(lines.after))
    }

    /// Compares two texts whose lines are numbered alike.
    #[must_use]
    pub fn of_numbers(old: &'t [Number], new: &'t [Number]) -> Self {
        Self::between(Cow::Borrowed(old), Cow::Borrowed(new))
    }

    fn between(old: Cow<'t, [Number]>, new: Cow<'t, [Number]>) -> Self {
        let (sure, counts) = runs::sure(&old, &new);
        let gaps = vec![OnceCell::new(); sure.len() + 1];
        Self { old, new, counts, sure, gaps }
    }

    /// The numbers of both texts' lines, the old one's first.
    #[must_use]
    pub fn numbers(&self) -> (&[Number], &[Number]) {
        (&self.old, &self.new)
    }

    /// The readings of what lies before the `i`th run beyond doubt.
    fn gap(&self, i: usize) -> &Readings {
        self.gaps[i].get_or_init(|| {
            let begin = i.checked_sub(1).map_or((0, 0), |before| self.sure[before].end());
            let end = self.sure.get(i).map_or((self.old.len(), self.new.len()), |b| (b.old, b.new));
            gap::readings(&self.old, begin.0..end.0, &self.new, begin.1..end.1)
        })
    }

    /// Where a reading has an old line, both counted from 1: 0 stands for the
    /// start of the text and `len + 1` for its end, which always correspond.
    fn at(&self, reading: usize, old: usize) -> Option<usize> {
        let Some(line) = old.checked_sub(1) else { return Some(0) };
        if line >= self.old.len() {
            return Some(self.new.len() + 1);
        }
        let sure = place_in(&self.sure, line);
        let place = sure.or_else(|| {
            let before = self.sure.partition_point(|b| b.old <= line);
            place_in(&self.gap(before)[reading], line)
        });
        place.map(|new| new + 1)
    }

    /// The new place of an old line, both 0-based, where every reading agrees
    /// that it is kept.
    #[must_use]
    pub fn line(&self, old: usize) -> Option<usize> {
        if old >= self.old.len() {
            return None;
        }
        if let Some(new) = place_in(&self.sure, old) {
            return Some(new);
        }
        let first = self.at(0, old + 1)?;
        (1..READINGS).all(|r| self.at(r, old + 1) == Some(first)).then(|| first - 1)
    }

    /// The old line a new line came from, where every reading agrees.
    #[must_use]
    pub fn line_back(&self, new: usize) -> Option<usize> {
        if let Some(old) = place_in_back(&self.sure, new) {
            return Some(old);
        }
        let gap = self.gap(self.sure.partition_point(|b| b.new <= new));
        let first = place_in_back(&gap[0], new)?;
        gap.iter().all(|r| place_in_back(r, new) == Some(first)).then_some(first)
    }

    /// Whether the old lines `range` are kept and stand together, where the
    /// first of them is now.
    #[must_use]
    pub fn kept(&self, range: Range<usize>) -> Option<usize> {
        let begin = self.line(range.start)?;
        range.enumerate().all(|(i, old)| self.line(old) == Some(begin + i)).then_some(begin)
    }

    /// As [`Self::kept`], where they lie in a run beyond doubt.
    #[must_use]
    pub fn surely_kept(&self, range: Range<usize>) -> Option<usize> {
        let begin = place_in(&self.sure, range.start)?;
        let kept = |(i, old)| place_in(&self.sure, old) == Some(begin + i);
        range.enumerate().all(kept).then_some(begin)
    }

    /// Whether the old lines `old` are kept together and are the new lines `new`.
    #[must_use]
    pub fn keeps(&self, old: &Range<usize>, new: &Range<usize>) -> bool {
        old.len() == new.len() && self.kept(old.clone()) == Some(new.start)
    }

    /// The most places in the new text at which the old lines `range` can stand
    /// together: how often the rarest of them stands there.
    #[must_use]
    pub fn most_places(&self, range: Range<usize>) -> usize {
        let count = |line: &Number| self.counts[line.0 as usize] as usize;
        self.old[range].iter().map(count).min().unwrap_or(usize::MAX)
    }

    /// Whether the old line stands nowhere else in the old text.
    #[must_use]
    pub fn stood_once(&self, line: usize) -> bool {
        self.old.iter().filter(|other| **other == self.old[line]).count() == 1
    }

    /// Every place in the new text at which the old lines `range` stand together.
    #[must_use]
    pub fn places(&self, range: Range<usize>) -> Vec<usize> {
        let wanted = &self.old[range];
        let count = |i: &usize| self.counts[wanted[*i].0 as usize];
        standing(wanted, &self.new, (0..wanted.len()).min_by_key(count))
    }

    /// What became of the old lines `range` (0-based, empty for a gap between
    /// two lines) and the line on either side of it. `wanted` is what a change
    /// puts in their place, and `new_text` the lines of the new text: where
    /// they stand there already, the change has landed.
    #[must_use]
    pub fn fate(&self, range: Range<usize>, wanted: &[&[u8]], new_text: &[&[u8]]) -> Fate {
        let fates: Vec<Fate> =
            (0..READINGS).map(|r| self.one_fate(r, &range, wanted, new_text)).collect();
        if fates.iter().all(|f| *f == fates[0]) {
            return fates[0].clone();
        }
        let kept = |f: &Fate| if let Fate::Kept(r) = f { Some(r.start) } else { None };
        let mut places: Vec<usize> = fates.iter().filter_map(kept).collect();
        places.sort_unstable();
        places.dedup();
        // A block that slides across the range hides a landed insertion from
        // every single reading: the line before keeps its earliest place, the
        // line after its latest, and the wanted lines stand between.
        let before = (0..READINGS).filter_map(|r| self.at(r, range.start)).min();
        let after = (0..READINGS).filter_map(|r| self.at(r, range.end + 1)).max();
        let between = || Some(before?..after?.checked_sub(1)?).filter(|r| r.start <= r.end);
        let landed =
            fates.iter().find_map(|f| if let Fate::Landed(r) = f { Some(r) } else { None });
        let landed =
            landed.cloned().or_else(|| between().filter(|r| new_text[r.clone()] == *wanted));
        if let Some(landed) = landed {
            // Where the range may as well be unchanged, upstream has the change only if
            // it brought a line that was not there.
            let is_new = |at: usize| !self.old.contains(&self.new[at]);
            return match places.is_empty() || landed.clone().any(is_new) {
                true => Fate::Landed(landed),
                false => Fate::MayHaveLanded(places),
            };
        }
        // A block that slides over a line beside the range (a new function after the one
        // that ends there) leaves the range where it is, beside the same lines.
        if let kept @ Fate::Kept(place) = &fates[DOWN[0]]
            && DOWN.iter().all(|down| fates[*down] == *kept)
            && (0..READINGS).all(|reading| self.holds(reading, &range, place.start))
        {
            return kept.clone();
        }
        if let Some(changed) = fates.iter().find(|f| matches!(f, Fate::Changed(_))) {
            return changed.clone();
        }
        Fate::Unsure(places)
    }

    /// Whether a reading has the old lines `range` and those beside them as they were, and
    /// another has them so elsewhere or not at all.
    #[must_use]
    pub fn is_open(&self, range: &Range<usize>) -> bool {
        let mut places = (0..READINGS).map(|reading| self.kept_by(reading, range));
        let first = places.next().flatten();
        let all: Vec<Option<usize>> = places.collect();
        all.iter().any(|place| *place != first)
    }

    /// Where a reading has the old lines `range`, if those beside them stand there too.
    fn kept_by(&self, reading: usize, range: &Range<usize>) -> Option<usize> {
        let before = self.at(reading, range.start)?;
        let mut whole = (range.start..=range.end + 1).zip(before..);
        whole.all(|(old, new)| self.at(reading, old) == Some(new)).then_some(before)
    }

    /// The same two texts, where the lines of each of these parts are known to have come from
    /// the others: what is before, in and after a part is read on its own. The parts follow one
    /// another in both texts.
    #[must_use]
    pub fn by_parts(&self, parts: &[(Range<usize>, Range<usize>)]) -> LineMap<'_> {
        let ends = parts.iter().flat_map(|(o, n)| [(o.start, n.start), (o.end, n.end)]);
        let (mut sure, mut begin) = (Vec::new(), (0, 0));
        for end in ends.chain([(self.old.len(), self.new.len())]) {
            let (own, _) = runs::sure(&self.old[begin.0..end.0], &self.new[begin.1..end.1]);
            sure.extend(own.into_iter().map(|Block { old, new, len }| Block {
                old: begin.0 + old,
                new: begin.1 + new,
                len,
            }));
            // It holds no line: nothing is read across it.
            sure.push(Block { old: end.0, new: end.1, len: 0 });
            begin = end;
        }
        let gaps = vec![OnceCell::new(); sure.len() + 1];
        let (old, new) = (Cow::Borrowed(&self.old[..]), Cow::Borrowed(&self.new[..]));
        LineMap { old, new, counts: self.counts.clone(), sure, gaps }
    }

    /// Whether a reading has the old lines `range` at the new line `place`; of a gap, a line
    /// beside it.
    fn holds(&self, reading: usize, range: &Range<usize>, place: usize) -> bool {
        let at = |old| self.at(reading, old);
        match range.is_empty() {
            true => at(range.start) == Some(place) || at(range.end + 1) == Some(place + 1),
            false => range.clone().zip(place..).all(|(old, new)| at(old + 1) == Some(new + 1)),
        }
    }

    /// The new lines between the nearest old lines around `range` that are
    /// kept: where a person should look for what became of it.
    #[must_use]
    pub fn around(&self, range: Range<usize>) -> Range<usize> {
        self.room(0, &range).unwrap_or(0..self.new.len())
    }

    /// The new lines strictly between the nearest kept lines around an old range.
    fn room(&self, reading: usize, range: &Range<usize>) -> Option<Range<usize>> {
        let before = (0..=range.start).rev().find_map(|old| self.at(reading, old))?;
        let after = (range.end + 1..=self.old.len() + 1).find_map(|old| self.at(reading, old))?;
        (before < after).then(|| before..after - 1)
    }

    fn one_fate(
        &self,
        reading: usize,
        range: &Range<usize>,
        wanted: &[&[u8]],
        new_text: &[&[u8]],
    ) -> Fate {
        if let Some(start) = self.kept_by(reading, range) {
            return Fate::Kept(start..start + range.len());
        }
        let beside = self.at(reading, range.start).zip(self.at(reading, range.end + 1));
        if let Some((before, after)) = beside
            && new_text[before..after - 1] == *wanted
        {
            return Fate::Landed(before..after - 1);
        }
        Fate::Changed(self.room(reading, range).unwrap_or(0..new_text.len()))
    }
}

/// Numbers for lines, the same for the same line in many texts.
#[derive(Default)]
pub struct Numbers(HashMap<Box<[u8]>, Number>);

impl Numbers {
    /// The number of a line.
    ///
    /// # Panics
    /// There are more lines than memory holds.
    pub fn of(&mut self, line: &[u8]) -> Number {
        if let Some(known) = self.0.get(line) {
            return *known;
        }
        let next = Number(u32::try_from(self.0.len()).expect("fewer lines than memory holds"));
        self.0.insert(line.into(), next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(old: &str, new: &str, range: Range<usize>, wanted: &str) -> Fate {
        let (old, new, wanted) =
            (lines(old.as_bytes()), lines(new.as_bytes()), lines(wanted.as_bytes()));
        LineMap::new(&old, &new).fate(range, &wanted, &new)
    }

    #[test]
    fn a_kept_line_is_followed() {
        assert_eq!(fate("a\nb\nc\n", "x\na\nb\nc\n", 1..2, "B\n"), Fate::Kept(2..3));
    }

    #[test]
    fn a_changed_neighbour_is_a_change() {
        assert_eq!(fate("a\nb\nc\nd\n", "a\nb\nC\nd\n", 1..2, "B\n"), Fate::Changed(1..3));
        assert!(matches!(fate("a\nb\nc\n", "a\nb\nnew\nc\n", 1..2, "B\n"), Fate::Changed(_)));
    }

    #[test]
    fn a_block_that_slides_over_a_neighbour_is_no_change() {
        // A function after the one whose last line is meant.
        let (old, new) = ("f\nx\n}\nz\n", "f\nx\n}\ng\ny\n}\nz\n");
        assert_eq!(fate(old, new, 1..2, "X\n"), Fate::Kept(1..2));
        assert_eq!(fate(old, new, 2..2, "X\n"), Fate::Kept(2..2));
        // Lines put right before the one that is meant are, where git reads them so.
        let (old, new) = ("f\n}\nx\nz\n", "f\n}\ny\n}\nx\nz\n");
        assert!(matches!(fate(old, new, 2..3, "X\n"), Fate::Changed(_)));
    }

    #[test]
    fn the_wanted_lines_in_place_have_landed() {
        assert_eq!(fate("a\nb\nc\n", "0\na\nB\nc\n", 1..2, "B\n"), Fate::Landed(2..3));
    }

    #[test]
    fn an_insertion_that_slides_over_its_own_place_has_landed() {
        // After the first `}` the change puts `f\n}\n`; read otherwise, `}\nf\n`
        // came before it, and the change would go in twice.
        let old = "a\n}\nz\n";
        let new = "a\n}\nf\n}\nz\n";
        assert_eq!(fate(old, new, 2..2, "f\n}\n"), Fate::Landed(2..4));
    }

    #[test]
    fn parts_that_are_known_are_read_on_their_own() {
        let (old, new) = ("f\nx\ny\n}\n", "f\nx\ny\n}\ng\nx\ny\n}\n");
        let (old, new) = (lines(old.as_bytes()), lines(new.as_bytes()));
        let map = LineMap::new(&old, &new);
        assert!(map.is_open(&(2..3)));
        assert_eq!(map.fate(2..3, &[], &new), Fate::Unsure(vec![2, 6]));
        for (part, place) in [(0..4, 2), (4..8, 6)] {
            let map = map.by_parts(&[(0..4, part)]);
            assert!(!map.is_open(&(2..3)));
            assert_eq!(map.fate(2..3, &[], &new), Fate::Kept(place..place + 1));
            assert_eq!(map.line_back(place), Some(2));
        }
    }

    #[test]
    fn what_may_have_landed_or_not_is_unsure() {
        // Upstream took away `f` and `b`, or `b` and the last of the `f`s.
        let fate_of_one = fate("a\na\nf\nb\nf\nf\nc\na\n", "a\na\nn\nf\nf\nc\nn\na\n", 5..6, "");
        assert_eq!(fate_of_one, Fate::MayHaveLanded(vec![4]));
        // Upstream's own brace, or the wanted one.
        let fate_of_brace = fate("a\n}\nz\n", "a\n}\n}\nz\n", 2..2, "}\n");
        assert_eq!(fate_of_brace, Fate::MayHaveLanded(vec![3]));
    }

    #[test]
    fn a_place_that_depends_on_the_reading_is_unsure() {
        // Which `x` is the old one? A gap after it is at two places.
        let fate = fate("a\nx\nx\nb\n", "a\nx\nx\nx\nb\n", 2..2, "new\n");
        assert_eq!(fate, Fate::Unsure(vec![2, 3]));
    }

    #[test]
    fn the_ends_of_the_text_count_as_neighbours() {
        assert_eq!(fate("a\n", "a\n", 0..0, "n\n"), Fate::Kept(0..0));
        assert!(matches!(fate("a\n", "b\na\n", 0..0, "n\n"), Fate::Changed(_)));
        assert_eq!(fate("", "", 0..0, "n\n"), Fate::Kept(0..0));
    }
}
