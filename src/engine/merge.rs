//! Where the lines of one text went in another.
//!
//! A diff is one reading among several: an inserted block between equal lines
//! can slide, and two algorithms can pair look-alike functions differently. A
//! hunk must not land on the strength of one such choice. So a [`LineMap`]
//! holds several readings (two algorithms, each with every loose block slid as
//! far up and as far down as it goes), and an answer counts as known only where
//! all of them give it.

use std::collections::HashMap;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

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
}

/// Where the lines of an old text went in a new one.
pub struct LineMap {
    readings: Vec<Reading>,
    old_len: usize,
    new_len: usize,
}

/// One reading of a diff: its runs of equal lines, 0-based, in order, none empty
/// and no two of them touching on both sides.
type Reading = Vec<Block>;

/// A run of equal lines: old start, new start, length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    old: usize,
    new: usize,
    len: usize,
}

impl LineMap {
    /// Compares the two texts, given as lines.
    #[must_use]
    pub fn new(old: &[&[u8]], new: &[&[u8]]) -> Self {
        let mut lines: InternedInput<&[u8]> = InternedInput::default();
        lines.update_before(old.iter().copied());
        lines.update_after(new.iter().copied());
        Self::of_numbers(&lines.before, &lines.after)
    }

    /// Compares two texts whose lines are numbered alike.
    #[must_use]
    pub fn of_numbers(old: &[Number], new: &[Number]) -> Self {
        let mut readings: Vec<Reading> = Vec::new();
        for blocks in diffs(old, new) {
            for slide in [slide_up, slide_down] {
                let mut blocks = blocks.clone();
                slide(&mut blocks, old, new);
                let reading = joined(blocks);
                if !readings.contains(&reading) {
                    readings.push(reading);
                }
            }
        }
        Self { readings, old_len: old.len(), new_len: new.len() }
    }

    /// Where a reading has an old line, both counted from 1: 0 stands for the
    /// start of the text and `len + 1` for its end, which always correspond.
    fn at(&self, reading: &[Block], old: usize) -> Option<usize> {
        if old == 0 {
            return Some(0);
        }
        if old > self.old_len {
            return Some(self.new_len + 1);
        }
        let last = reading[..reading.partition_point(|b| b.old < old)].last()?;
        (old - last.old <= last.len).then(|| last.new + (old - last.old))
    }

    /// The new place of an old line, both 0-based, where every reading agrees
    /// that it is kept.
    #[must_use]
    pub fn line(&self, old: usize) -> Option<usize> {
        let at = |r: &Reading| self.at(r, old + 1).filter(|_| old < self.old_len);
        let first = at(&self.readings[0])?;
        self.readings.iter().all(|r| at(r) == Some(first)).then(|| first - 1)
    }

    /// The old line a new line came from, where every reading agrees.
    #[must_use]
    pub fn line_back(&self, new: usize) -> Option<usize> {
        let find = |r: &Reading| {
            let last = *r[..r.partition_point(|b| b.new <= new)].last()?;
            (new - last.new < last.len).then(|| last.old + (new - last.new))
        };
        let first = find(&self.readings[0])?;
        self.readings.iter().all(|r| find(r) == Some(first)).then_some(first)
    }

    /// What became of the old lines `range` (0-based, empty for a gap between
    /// two lines) and the line on either side of it. `wanted` is what a change
    /// puts in their place, and `new_text` the lines of the new text: where
    /// they stand there already, the change has landed.
    #[must_use]
    pub fn fate(&self, range: Range<usize>, wanted: &[&[u8]], new_text: &[&[u8]]) -> Fate {
        let fates: Vec<Fate> =
            self.readings.iter().map(|r| self.one_fate(r, &range, wanted, new_text)).collect();
        if let Some(landed) = fates.iter().find(|f| matches!(f, Fate::Landed(_))) {
            return landed.clone();
        }
        if fates.iter().all(|f| *f == fates[0]) {
            return fates[0].clone();
        }
        // A block that slides across the range hides a landed insertion from
        // every single reading: the line before keeps its earliest place, the
        // line after its latest, and the wanted lines stand between.
        let before = self.readings.iter().filter_map(|r| self.at(r, range.start)).min();
        let after = self.readings.iter().filter_map(|r| self.at(r, range.end + 1)).max();
        if let (Some(before), Some(after)) = (before, after)
            && before < after
            && new_text[before..after - 1] == *wanted
        {
            return Fate::Landed(before..after - 1);
        }
        if let Some(changed) = fates.iter().find(|f| matches!(f, Fate::Changed(_))) {
            return changed.clone();
        }
        let mut places: Vec<usize> = fates
            .iter()
            .filter_map(|f| if let Fate::Kept(r) = f { Some(r.start) } else { None })
            .collect();
        places.sort_unstable();
        places.dedup();
        Fate::Unsure(places)
    }

    /// The new lines between the nearest old lines around `range` that are
    /// kept: where a person should look for what became of it.
    #[must_use]
    pub fn around(&self, range: Range<usize>) -> Range<usize> {
        self.between(&self.readings[0], &range).unwrap_or(0..self.new_len)
    }

    /// The new lines strictly between the nearest kept lines around an old range.
    fn between(&self, reading: &[Block], range: &Range<usize>) -> Option<Range<usize>> {
        let before = (0..=range.start).rev().find_map(|old| self.at(reading, old))?;
        let after = (range.end + 1..=self.old_len + 1).find_map(|old| self.at(reading, old))?;
        (before < after).then(|| before..after - 1)
    }

    fn one_fate(
        &self,
        reading: &[Block],
        range: &Range<usize>,
        wanted: &[&[u8]],
        new_text: &[&[u8]],
    ) -> Fate {
        let beside = self.at(reading, range.start).zip(self.at(reading, range.end + 1));
        if let Some((before, after)) = beside {
            let mut whole = (range.start..=range.end + 1).enumerate();
            if whole.all(|(i, old)| self.at(reading, old) == Some(before + i)) {
                return Fate::Kept(before..before + range.len());
            }
            if new_text[before..after - 1] == *wanted {
                return Fate::Landed(before..after - 1);
            }
        }
        Fate::Changed(self.between(reading, range).unwrap_or(0..new_text.len()))
    }
}

/// The equal lines as two algorithms find them.
fn diffs(old: &[Number], new: &[Number]) -> Vec<Vec<Block>> {
    let most = old.iter().chain(new).map(|line| line.0 + 1).max().unwrap_or_default();
    let mut diff = Diff::default();
    [Algorithm::Myers, Algorithm::Histogram]
        .into_iter()
        .map(|algorithm| {
            diff.compute_with(algorithm, old, new, most);
            let mut blocks = Vec::new();
            let (mut old_at, mut new_at) = (0, 0);
            let ends = diff.hunks().map(|hunk| {
                let at = |line: u32| line as usize;
                let (was, is) = (hunk.before, hunk.after);
                [at(was.start), at(is.start), at(was.end), at(is.end)]
            });
            for [old_end, new_end, old_next, new_next] in
                ends.chain([[old.len(), new.len(), old.len(), new.len()]])
            {
                debug_assert_eq!(old_end - old_at, new_end - new_at, "a run of equal lines");
                blocks.push(Block { old: old_at, new: new_at, len: old_end - old_at });
                (old_at, new_at) = (old_next, new_next);
            }
            blocks
        })
        .collect()
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

/// Blocks that touch put together, empty ones left out.
fn joined(blocks: Vec<Block>) -> Reading {
    let mut reading: Reading = Vec::with_capacity(blocks.len());
    for block in blocks.into_iter().filter(|b| b.len > 0) {
        match reading.last_mut() {
            Some(last) if last.old + last.len == block.old && last.new + last.len == block.new => {
                last.len += block.len;
            }
            _ => reading.push(block),
        }
    }
    reading
}

/// The inserted or deleted lines between two blocks, where only one side has
/// any: these can slide.
fn loose(a: Block, b: Block) -> Option<Loose> {
    let old = a.old + a.len..b.old;
    let new = a.new + a.len..b.new;
    match (old.is_empty(), new.is_empty()) {
        (true, false) => Some(Loose::Inserted(new)),
        (false, true) => Some(Loose::Deleted(old)),
        _ => None,
    }
}

enum Loose {
    Inserted(Range<usize>),
    Deleted(Range<usize>),
}

impl Loose {
    fn same(
        &self,
        old: &[Number],
        new: &[Number],
        pick: impl Fn(&Range<usize>) -> (usize, usize),
    ) -> bool {
        let (text, range) = match self {
            Loose::Inserted(range) => (new, range),
            Loose::Deleted(range) => (old, range),
        };
        let (i, j) = pick(range);
        text[i] == text[j]
    }
}

fn slide_up(blocks: &mut [Block], old: &[Number], new: &[Number]) {
    for i in 1..blocks.len() {
        while blocks[i - 1].len > 0
            && let Some(loose) = loose(blocks[i - 1], blocks[i])
            && loose.same(old, new, |r| (r.start - 1, r.end - 1))
        {
            blocks[i - 1].len -= 1;
            blocks[i].old -= 1;
            blocks[i].new -= 1;
            blocks[i].len += 1;
        }
    }
}

fn slide_down(blocks: &mut [Block], old: &[Number], new: &[Number]) {
    for i in (1..blocks.len()).rev() {
        while blocks[i].len > 0
            && let Some(loose) = loose(blocks[i - 1], blocks[i])
            && loose.same(old, new, |r| (r.start, r.end))
        {
            blocks[i - 1].len += 1;
            blocks[i].old += 1;
            blocks[i].new += 1;
            blocks[i].len -= 1;
        }
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
