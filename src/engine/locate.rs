//! Where a hunk belongs in a text: by mapping where the text it was made for
//! is known, by what it states and by what stands there where it is not.
//!
//! No fuzz: a line that must match matches, byte for byte, or the hunk does not
//! hold. A nearest fuzzy place is worked out for the report alone.

use std::ops::Range;

use crate::merge::{Fate, LineMap};
use crate::patch::{Hunk, LineKind};
use crate::report::{Conflict, HunkClass, Nearby};

/// A run of lines of a text (0-based) and what takes their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The lines that go; empty for a gap.
    pub range: Range<usize>,
    /// The lines that come.
    pub lines: Vec<Vec<u8>>,
}

/// A hunk that has its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// `Exact`, `Moved`, `Offset` or `Landed`.
    pub class: HunkClass,
    /// The lines its preimage covers (0-based); of a landed hunk, those its
    /// postimage covers.
    pub site: Range<usize>,
    /// What it does to the text; nothing where it has landed.
    pub edits: Vec<Edit>,
    /// The place rests on a neighbour's shift or on order.
    pub inferred: bool,
    /// Other places (0-based) at which the preimage stands.
    pub rivals: Vec<usize>,
    /// What changed around it.
    pub nearby: Option<Nearby>,
}

/// A hunk that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// `Ambiguous`, `Conflict` or `LineEndings`.
    pub class: HunkClass,
    /// Why, in a sentence.
    pub why: String,
    /// The lines (0-based) that stand where its own should be, where that is
    /// known.
    pub found: Option<Range<usize>>,
}

impl Unplaced {
    /// Both sides, for a report: it costs a look at the whole text.
    #[must_use]
    pub fn conflict(&self, hunk: &Hunk, text: &[&[u8]]) -> Conflict {
        let wanted: Vec<&[u8]> = hunk.preimage().collect();
        let found = self.found.clone().filter(|r| r.start <= r.end && r.end <= text.len());
        // A conflict in a file that was rewritten can span all of it; what a
        // person needs is the neighbourhood.
        let shown_part = found.clone().map(|r| r.start..r.end.min(r.start + 2 * wanted.len() + 6));
        Conflict {
            wanted: wanted.iter().map(|l| shown(l)).collect(),
            found: shown_part
                .map(|r| text[r].iter().map(|l| shown(l)).collect())
                .unwrap_or_default(),
            found_line: found.map(|r| r.start + 1),
            hint_line: nearest(&wanted, text, stated(hunk)).map(|at| at + 1),
        }
    }
}

/// A hunk's place, or why it has none.
pub type Place = Result<Placed, Unplaced>;

/// Whether the text at hand is the one the patch was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// It is: a stated line is right even where no context proves it.
    Base,
    /// Not known: only what stands there counts.
    Unknown,
}

/// Places the hunks of one file in a text, with no other text at hand.
#[must_use]
pub fn place_alone(hunks: &[Hunk], text: &[&[u8]], known: Text) -> Vec<Place> {
    let fits: Vec<Vec<usize>> = hunks.iter().map(|h| fits(h, text, known)).collect();
    let mut chosen: Vec<Option<Choice>> = hunks
        .iter()
        .zip(&fits)
        .map(|(h, f)| f.contains(&stated(h)).then(|| Choice { at: stated(h), inferred: false }))
        .collect();
    while let Some((i, choice)) = next_choice(hunks, &fits, &chosen) {
        chosen[i] = Some(choice);
    }
    (0..hunks.len()).map(|i| judge(i, hunks, &fits, &chosen, text)).collect()
}

/// Places the hunks of one file in `text` by mapping from `base`, the text the
/// patch was made for.
#[must_use]
pub fn place_mapped(hunks: &[Hunk], base: &[&[u8]], text: &[&[u8]]) -> Vec<Place> {
    let in_base = place_alone(hunks, base, Text::Base);
    if base == text {
        return in_base;
    }
    map_places(hunks, &in_base, base, text, &LineMap::new(base, text))
}

/// As [`place_mapped`], where the places in the base are known already, and
/// where its lines went.
#[must_use]
pub fn map_places(
    hunks: &[Hunk],
    in_base: &[Place],
    base: &[&[u8]],
    text: &[&[u8]],
    map: &LineMap,
) -> Vec<Place> {
    hunks
        .iter()
        .zip(in_base)
        .map(|(hunk, place)| match place {
            Ok(placed) => map_hunk(hunk, placed, base, text, map),
            Err(Unplaced { class, why, .. }) => {
                let why = format!("in the text it was made for, {why}");
                Err(Unplaced { class: *class, why, found: None })
            }
        })
        .collect()
}

#[derive(Clone, Copy)]
struct Choice {
    at: usize,
    inferred: bool,
}

/// The 0-based line at which a hunk says its preimage begins.
fn stated(hunk: &Hunk) -> usize {
    if hunk.old.len == 0 { hunk.old.start } else { hunk.old.start.saturating_sub(1) }
}

/// Every place at which the preimage stands, the ends it claims counted in.
fn fits(hunk: &Hunk, text: &[&[u8]], known: Text) -> Vec<usize> {
    let wanted: Vec<&[u8]> = hunk.preimage().collect();
    if wanted.is_empty() {
        let at = stated(hunk);
        let proven = match known {
            Text::Base => at <= text.len(),
            Text::Unknown => at == 0 && text.is_empty(),
        };
        return if proven { vec![at] } else { Vec::new() };
    }
    let places = anywhere(&wanted, text);
    // A line alone is as common as `}`. Without context nothing tells one from
    // another, so it counts only where it is stated and stands nowhere else.
    if known == Text::Unknown && is_bare(hunk) && places != [stated(hunk)] {
        return Vec::new();
    }
    // A diff has the same context on both sides unless the file ends there; a
    // hunk with less on one side claims that end. Where the text is the one
    // the patch was made for there is nothing to claim.
    let (before, after) = context(hunk);
    match known {
        Text::Unknown if before < after => places.into_iter().filter(|&at| at == 0).collect(),
        Text::Unknown if after < before => {
            places.into_iter().filter(|&at| at + wanted.len() == text.len()).collect()
        }
        _ => places,
    }
}

/// Every place at which these lines stand.
fn anywhere(wanted: &[&[u8]], text: &[&[u8]]) -> Vec<usize> {
    let Some(last) = text.len().checked_sub(wanted.len()) else { return Vec::new() };
    (0..=last).filter(|&at| text[at..at + wanted.len()] == *wanted).collect()
}

/// Whether a hunk has no line of context.
fn is_bare(hunk: &Hunk) -> bool {
    hunk.lines.iter().all(|l| l.kind != LineKind::Context)
}

/// Lines of context before the first and after the last change.
fn context(hunk: &Hunk) -> (usize, usize) {
    let is_context = |l: &&crate::patch::Line| l.kind == LineKind::Context;
    (
        hunk.lines.iter().take_while(is_context).count(),
        hunk.lines.iter().rev().take_while(is_context).count(),
    )
}

/// How far apart two hunks of a file must at least begin.
fn distance(earlier: &Hunk, later: &Hunk) -> usize {
    earlier.old.len.min(stated(later).saturating_sub(stated(earlier)))
}

/// The next hunk whose place follows from what is chosen: first where order
/// leaves one place, then where the neighbours' shift points at one.
fn next_choice(
    hunks: &[Hunk],
    fits: &[Vec<usize>],
    chosen: &[Option<Choice>],
) -> Option<(usize, Choice)> {
    let open = || (0..hunks.len()).filter(|&i| chosen[i].is_none());
    for i in open() {
        if let [at] = in_order(i, hunks, fits, chosen)[..] {
            return Some((i, Choice { at, inferred: fits[i].len() > 1 }));
        }
    }
    for i in open() {
        let shift = neighbours_shift(i, hunks, chosen);
        let at = shift.and_then(|s| stated(&hunks[i]).checked_add_signed(s));
        if let Some(at) = at.filter(|at| in_order(i, hunks, fits, chosen).contains(at)) {
            return Some((i, Choice { at, inferred: true }));
        }
    }
    None
}

/// The places of hunk `i` that keep the patch's order.
fn in_order(
    i: usize,
    hunks: &[Hunk],
    fits: &[Vec<usize>],
    chosen: &[Option<Choice>],
) -> Vec<usize> {
    let low = (0..i)
        .rev()
        .find_map(|j| chosen[j].map(|c| c.at + distance(&hunks[j], &hunks[i])))
        .unwrap_or(0);
    let high = (i + 1..hunks.len())
        .find_map(|j| chosen[j].map(|c| c.at.saturating_sub(distance(&hunks[i], &hunks[j]))))
        .unwrap_or(usize::MAX);
    fits[i].iter().copied().filter(|&at| (low..=high).contains(&at)).collect()
}

/// How far the nearest placed hunks on either side stand from where they say,
/// if they agree.
fn neighbours_shift(i: usize, hunks: &[Hunk], chosen: &[Option<Choice>]) -> Option<isize> {
    let shift = |j: usize| chosen[j].map(|c| c.at.cast_signed() - stated(&hunks[j]).cast_signed());
    let before = (0..i).rev().find_map(shift);
    let after = (i + 1..hunks.len()).find_map(shift);
    match (before, after) {
        (Some(a), Some(b)) => (a == b).then_some(a),
        (one, other) => one.or(other),
    }
}

fn judge(
    i: usize,
    hunks: &[Hunk],
    fits: &[Vec<usize>],
    chosen: &[Option<Choice>],
    text: &[&[u8]],
) -> Place {
    let hunk = &hunks[i];
    let Some(choice) = chosen[i] else {
        return Err(unplaced_alone(hunk, &fits[i], text));
    };
    let rivals: Vec<usize> = fits[i].iter().copied().filter(|&at| at != choice.at).collect();
    if !in_order(i, hunks, fits, chosen).contains(&choice.at) {
        return Err(conflict(None, OTHER_ORDER));
    }
    // The text stands where the header says, but it stands in other places too,
    // and a neighbour that has one place only says that everything moved.
    let shifted = neighbours_shift(i, hunks, chosen)
        .filter(|&s| s != 0)
        .and_then(|s| stated(hunk).checked_add_signed(s))
        .is_some_and(|at| rivals.contains(&at));
    if choice.at == stated(hunk) && shifted {
        return Err(ambiguous(&fits[i]));
    }
    Ok(Placed {
        class: if choice.at == stated(hunk) { HunkClass::Exact } else { HunkClass::Offset },
        site: choice.at..choice.at + hunk.old.len,
        edits: edits(hunk, choice.at),
        inferred: choice.inferred,
        rivals,
        nearby: None,
    })
}

/// A hunk's changes as edits, its preimage beginning at line `at`.
fn edits(hunk: &Hunk, at: usize) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut line = at;
    let mut open = false;
    for l in &hunk.lines {
        if l.kind == LineKind::Context {
            line += 1;
            open = false;
            continue;
        }
        if !open {
            edits.push(Edit { range: line..line, lines: Vec::new() });
            open = true;
        }
        let edit = edits.last_mut().expect("pushed when the run was opened");
        match l.kind {
            LineKind::Removed => {
                line += 1;
                edit.range.end = line;
            }
            _ => edit.lines.push(l.text.clone()),
        }
    }
    edits
}

fn map_hunk(hunk: &Hunk, placed: &Placed, base: &[&[u8]], text: &[&[u8]], map: &LineMap) -> Place {
    if placed.edits.is_empty() {
        return Err(conflict(None, "it changes nothing"));
    }
    if let Some(landed) = landed_whole(hunk, placed, text, map) {
        return Ok(Placed {
            class: HunkClass::Landed,
            site: landed,
            edits: Vec::new(),
            inferred: placed.inferred,
            rivals: Vec::new(),
            nearby: None,
        });
    }
    let mut kept = Vec::new();
    for edit in &placed.edits {
        let wanted: Vec<&[u8]> = edit.lines.iter().map(Vec::as_slice).collect();
        match map.fate(edit.range.clone(), &wanted, text) {
            Fate::Kept(range) => kept.push(Edit { range, lines: edit.lines.clone() }),
            Fate::Landed(range) => {
                return Err(conflict(Some(&range), "part of it is there already"));
            }
            Fate::Changed(found) => {
                if stands_but_for_line_ends(&edit.range, base, text) {
                    return Err(line_endings(&found));
                }
                let why = "upstream changed the lines it changes, or a line next to them";
                return Err(conflict(Some(&found), why));
            }
            Fate::Unsure(places) => {
                let why = format!(
                    "the lines around it repeat, and upstream's change leaves it open which are \
                     the old ones: line {}",
                    list(&places)
                );
                let mut unplaced = conflict(None, &why);
                unplaced.class = HunkClass::Ambiguous;
                return Err(unplaced);
            }
        }
    }
    let first = kept.first().expect("a hunk has a change, and each that is not kept returned");
    let last = kept.last().expect("as above");
    let whole = placed
        .site
        .clone()
        .map(|line| map.line(line))
        .enumerate()
        .all(|(i, line)| line.is_some() && line == map.line(placed.site.start).map(|s| s + i));
    let (before, after) = context(hunk);
    let site = if whole && !placed.site.is_empty() {
        let start = map.line(placed.site.start).expect("the whole preimage is kept");
        start..start + placed.site.len()
    } else {
        first.range.start.saturating_sub(before)..(last.range.end + after).min(text.len())
    };
    let then = heading(base, placed.edits[0].range.start);
    let now = heading(text, first.range.start);
    let lead = placed.edits[0].range.start - placed.site.start;
    if whole && copies(hunk, lead, now, text) > copies(hunk, lead, then, base) {
        let why = "upstream put in a second copy of its lines, and nothing says which are the old";
        let mut unplaced = conflict(Some(&site), why);
        unplaced.class = HunkClass::Ambiguous;
        return Err(unplaced);
    }
    let nearby = match surroundings(whole, then, now, map) {
        Surroundings::Same => None,
        Surroundings::Changed => {
            Some(nearby(placed.site.clone(), site.clone(), then, now, base, text))
        }
        Surroundings::Other => {
            let why = "its lines stand here, but in another function than the one it was made for";
            return Err(conflict(Some(&site), why));
        }
    };
    let class = match placed.class {
        HunkClass::Offset => HunkClass::Offset,
        _ if nearby.is_none() && site.start == placed.site.start => HunkClass::Exact,
        _ => HunkClass::Moved,
    };
    Ok(Placed { class, site, edits: kept, inferred: placed.inferred, rivals: Vec::new(), nearby })
}

/// How often a hunk's lines stand in a text under a heading that reads like the
/// one at `heading_at`; `lead` lines stand before its first change.
fn copies(hunk: &Hunk, lead: usize, heading_at: Option<usize>, text: &[&[u8]]) -> usize {
    let wanted: Vec<&[u8]> = hunk.preimage().collect();
    let reads = |at: Option<usize>| at.map(|line| text[line]);
    let alike = |at: &usize| reads(heading(text, at + lead)) == reads(heading_at);
    anywhere(&wanted, text).iter().filter(|at| alike(at)).count()
}

/// Where the whole of a hunk's change stands already, from its first changed
/// line to its last, the context between them included.
fn landed_whole(
    hunk: &Hunk,
    placed: &Placed,
    text: &[&[u8]],
    map: &LineMap,
) -> Option<Range<usize>> {
    let (before, after) = context(hunk);
    let span = placed.site.start + before..placed.site.end - after;
    let done: Vec<&[u8]> = hunk.postimage().collect();
    match map.fate(span, &done[before..done.len() - after], text) {
        Fate::Landed(range) => Some(range),
        _ => None,
    }
}

enum Surroundings {
    Same,
    Changed,
    Other,
}

/// Whether a mapped hunk still stands in its function. The lines next to a
/// change are often as common as `}`; what tells one `}` from another is the
/// rest of the context and the line that heads the function.
fn surroundings(
    whole: bool,
    then: Option<usize>,
    now: Option<usize>,
    map: &LineMap,
) -> Surroundings {
    let same_heading = match (then, now) {
        (None, None) => true,
        (Some(then), Some(now)) => map.line(then) == Some(now),
        _ => false,
    };
    match (whole, same_heading) {
        (true, true) => Surroundings::Same,
        (false, true) => Surroundings::Changed,
        // The whole context is there and only the heading differs: a changed
        // signature, unless the heading is that of another function.
        (true, false) if now.and_then(|now| map.line_back(now)).is_none() => Surroundings::Changed,
        _ => Surroundings::Other,
    }
}

/// The nearest line before `line` that begins with a letter, `_` or `$`, as
/// `diff -p` and git choose the text behind a `@@`.
fn heading(text: &[&[u8]], line: usize) -> Option<usize> {
    (0..line.min(text.len())).rev().find(|&i| {
        text[i].first().is_some_and(|&b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$'))
    })
}

fn nearby(
    was: Range<usize>,
    is: Range<usize>,
    then: Option<usize>,
    now: Option<usize>,
    base: &[&[u8]],
    text: &[&[u8]],
) -> Nearby {
    let mut diff = Vec::new();
    let mut show = |sign: char, line: &[u8]| diff.push(format!("{sign}{}", shown(line)));
    if let (Some(then), Some(now)) = (then, now)
        && base[then] != text[now]
    {
        show('-', base[then]);
        show('+', text[now]);
    }
    let (old, new) = (&base[was], &text[is.clone()]);
    for op in similar::capture_diff_slices(similar::Algorithm::Myers, old, new) {
        let (tag, old_range, new_range) = op.as_tag_tuple();
        if tag == similar::DiffTag::Equal {
            old[old_range].iter().for_each(|l| show(' ', l));
        } else {
            old[old_range].iter().for_each(|l| show('-', l));
            new[new_range].iter().for_each(|l| show('+', l));
        }
    }
    Nearby { line: is.start + 1, diff }
}

const OTHER_ORDER: &str = "the hunks of this file stand in another order than its lines";

fn unplaced_alone(hunk: &Hunk, fits: &[usize], text: &[&[u8]]) -> Unplaced {
    match fits {
        [] => {}
        [_] => return conflict(None, OTHER_ORDER),
        _ => return ambiguous(fits),
    }
    let standing = anywhere(&hunk.preimage().collect::<Vec<_>>(), text);
    if is_bare(hunk) && !text.is_empty() && !standing.is_empty() {
        let stand = match hunk.old.len {
            0 => String::new(),
            _ => format!(" (its lines stand at line {})", list(&standing)),
        };
        let why = format!(
            "it has no context, so nothing proves its place{stand}; give the text it was made for \
             (--base), or make it again with context"
        );
        let mut unplaced = conflict(None, &why);
        unplaced.class = HunkClass::Ambiguous;
        return unplaced;
    }
    if let Some(at) = standing_but_for_line_ends(hunk, text) {
        return line_endings(&(at..at + hunk.old.len));
    }
    let start = stated(hunk).min(text.len());
    let found = start..(start + hunk.old.len).min(text.len());
    let done: Vec<&[u8]> = hunk.postimage().collect();
    let stands = |at: usize| text.get(at..at + done.len()) == Some(&done[..]);
    let already =
        [hunk.new.start.saturating_sub(1), stated(hunk)].into_iter().find(|&at| stands(at));
    let why = match already {
        Some(at) => format!(
            "its preimage is not there; its result stands at line {}, so it may be applied \
             already: give the text it was made for (--base) to know",
            at + 1
        ),
        None if !standing.is_empty() => {
            let (before, after) = context(hunk);
            let end = if before < after { "start" } else { "end" };
            format!(
                "it has less context towards the {end} of the file and so claims it, and its \
                 lines do not stand there; give the text it was made for (--base)"
            )
        }
        None => "its lines do not stand anywhere in the file".into(),
    };
    conflict(Some(&found), &why)
}

fn ambiguous(fits: &[usize]) -> Unplaced {
    let why = format!(
        "its lines are not known to belong at the line it states, and stand at several: line {}; \
         give the text it was made for (--base)",
        list(fits)
    );
    let mut unplaced = conflict(None, &why);
    unplaced.class = HunkClass::Ambiguous;
    unplaced
}

/// 0-based lines as text, counted from 1.
fn list(lines: &[usize]) -> String {
    lines.iter().map(|l| (l + 1).to_string()).collect::<Vec<_>>().join(", ")
}

fn line_endings(found: &Range<usize>) -> Unplaced {
    let why = "its lines are there, with other line ends: one side has CR LF, the other LF; \
               convert the patch or the file";
    let mut unplaced = conflict(Some(found), why);
    unplaced.class = HunkClass::LineEndings;
    unplaced
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn standing_but_for_line_ends(hunk: &Hunk, text: &[&[u8]]) -> Option<usize> {
    let wanted: Vec<&[u8]> = hunk.preimage().collect();
    let same = |(w, t): (&&[u8], &&[u8])| without_line_end(w) == without_line_end(t);
    let last = text.len().checked_sub(wanted.len()).filter(|_| !wanted.is_empty())?;
    (0..=last).find(|&at| {
        let found = &text[at..at + wanted.len()];
        found != &wanted[..] && wanted.iter().zip(found).all(same)
    })
}

fn stands_but_for_line_ends(range: &Range<usize>, base: &[&[u8]], text: &[&[u8]]) -> bool {
    let plain = |l: &&[u8]| l.ends_with(b"\n") && !l.ends_with(b"\r\n");
    if base.iter().all(plain) && text.iter().all(plain) {
        return false;
    }
    let bare = |t: &[&[u8]]| t.iter().map(|l| without_line_end(l).to_vec()).collect::<Vec<_>>();
    let (base, text) = (bare(base), bare(text));
    let base: Vec<&[u8]> = base.iter().map(Vec::as_slice).collect();
    let text: Vec<&[u8]> = text.iter().map(Vec::as_slice).collect();
    matches!(LineMap::new(&base, &text).fate(range.clone(), &[], &text), Fate::Kept(_))
}

fn conflict(found: Option<&Range<usize>>, why: &str) -> Unplaced {
    Unplaced { class: HunkClass::Conflict, why: why.to_string(), found: found.cloned() }
}

/// The place where most of the wanted lines stand, at least half of them, the
/// nearest to `near` among equals.
fn nearest(wanted: &[&[u8]], text: &[&[u8]], near: usize) -> Option<usize> {
    let score = |at: usize| wanted.iter().zip(&text[at..]).filter(|(w, t)| w == t).count();
    (0..text.len())
        .map(|at| (score(at), std::cmp::Reverse(at.abs_diff(near)), at))
        .max()
        .filter(|(score, ..)| *score > 0 && score * 2 >= wanted.len())
        .map(|(.., at)| at)
}

/// A line for a report: without its line end, bytes that are no UTF-8 replaced.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod tests;
