//! Places by mapping from the text that a patch was made for.

use std::ops::Range;

use super::{
    Edit, Place, Placed, Text, Unplaced, anywhere, conflict, context, line_endings, list,
    place_alone, shown, without_line_end,
};
use crate::merge::{Fate, LineMap};
use crate::patch::Hunk;
use crate::report::{HunkClass, Nearby};

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
