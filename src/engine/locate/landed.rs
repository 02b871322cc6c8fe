//! Hunks whose change stands in the text already.

use std::ops::Range;

use super::facts::Facts;
use super::shape::Shape;
use super::twins::beside;
use super::within::Both;
use super::{Place, Placed, conflict, context};
use crate::merge::{Fate, LineMap};
use crate::patch::Hunk;
use crate::report::HunkClass;

/// The hunks as landed where the text at hand is what they make and changes elsewhere: what
/// a hunk changes may be what another one stands in, a function's name or a condition. Among
/// lines that repeat that could be read into many a text, so it takes runs beyond doubt.
pub(super) fn landed_and_more(in_base: &[Place], both: &Both<'_>) -> Option<Vec<Place>> {
    let (base, text) = (both.base(), both.text());
    let (made, runs) = made(in_base, base)?;
    let map = LineMap::new(&made, text);
    let (facts, (old, new)) = (Facts::default(), map.numbers());
    let shape = |numbers| Shape::of_numbers(both.language(), &facts, numbers);
    let (then, now) = (shape(old), shape(new));
    let after = Both::new((&made, &then), (text, &now), &map);
    let mut places = Vec::with_capacity(in_base.len());
    for (placed, runs) in in_base.iter().flatten().zip(runs) {
        let mut starts = Vec::new();
        for run in &runs {
            let edges = beside(run, &made);
            let at = map.surely_kept(edges.clone())?;
            let (first, last) = (edges.start == run.start, edges.end == run.end);
            let ends = at + edges.len() == text.len();
            if first && at > 0 || last && !ends || after.has_new_twin(run, edges.clone()) {
                return None;
            }
            starts.push(at + run.start - edges.start);
        }
        let site = *starts.first()?..starts.last()? + runs.last()?.len();
        for ((edit, run), is) in placed.edits.iter().zip(&runs).zip(starts) {
            let depth = both.depth_of(edit, base);
            after.same_place(run, &(is..is + run.len()), depth).ok()?;
        }
        places.push(Ok(as_landed(site, placed.inferred)));
    }
    Some(places)
}

/// The hunks as landed where the text at hand is the very one that they make:
/// among lines that repeat a diff could read it otherwise.
pub(super) fn all_landed(in_base: &[Place], both: &Both<'_>) -> Option<Vec<Place>> {
    let (base, text) = (both.base(), both.text());
    let edits = || in_base.iter().flatten().flat_map(|placed| &placed.edits);
    let gone: usize = edits().map(|edit| edit.range.len()).sum();
    let come: usize = edits().map(|edit| edit.lines.len()).sum();
    if base.len() + come != text.len() + gone {
        return None;
    }
    let (made, runs) = made(in_base, base)?;
    if made != text {
        return None;
    }
    let landed = |(placed, runs): (&Placed, Vec<Range<usize>>)| {
        Some(Ok(as_landed(runs.first()?.start..runs.last()?.end, placed.inferred)))
    };
    in_base.iter().flatten().zip(runs).map(landed).collect()
}

/// What the hunks make of the base, and where each one's changes are there; nothing where
/// one of them has no place.
#[expect(clippy::type_complexity, reason = "two answers of one pass")]
fn made<'t>(
    in_base: &'t [Place],
    base: &[&'t [u8]],
) -> Option<(Vec<&'t [u8]>, Vec<Vec<Range<usize>>>)> {
    let (mut made, mut from): (Vec<&[u8]>, usize) = (Vec::new(), 0);
    let mut runs = Vec::with_capacity(in_base.len());
    for placed in in_base {
        let mut own = Vec::new();
        for edit in &placed.as_ref().ok()?.edits {
            made.extend(base.get(from..edit.range.start)?);
            let start = made.len();
            made.extend(edit.lines.iter().map(Vec::as_slice));
            own.push(start..made.len());
            from = edit.range.end;
        }
        runs.push(own);
    }
    made.extend(&base[from..]);
    Some((made, runs))
}

fn as_landed(site: Range<usize>, inferred: bool) -> Placed {
    let (edits, rivals) = (Vec::new(), Vec::new());
    Placed { class: HunkClass::Landed, site, edits, inferred, rivals, nearby: None }
}

/// A hunk of these, by number, as landed at `site`, its changes at these lines, where each is
/// in what it was made for.
pub(super) fn landed_at(
    in_base: &[Place],
    own: usize,
    starts: impl Iterator<Item = usize>,
    site: Range<usize>,
    both: &Both<'_>,
) -> Place {
    let Ok(placed) = &in_base[own] else { return in_base[own].clone() };
    let gap = |at: usize| at..at;
    for (i, (edit, is)) in placed.edits.iter().zip(starts).enumerate() {
        let (depth, was, is) = (both.depth_of(edit, both.base()), gap(edit.range.start), gap(is));
        both.same_head(&was, &is, depth).map_err(|why| conflict(Some(&site), &why))?;
        if let Err(why) = both.same_blocks(&was, &is, depth)
            && !stands_as_made(in_base, (own, i), &is, depth, both)
        {
            return Err(conflict(Some(&site), &why));
        }
    }
    Ok(as_landed(site, placed.inferred))
}

/// Whether a change of a hunk, both by number, that is at `is` stands in the blocks that all
/// the hunks put it in: what one of them changes may be what another one stands in.
fn stands_as_made(
    in_base: &[Place],
    (hunk, edit): (usize, usize),
    is: &Range<usize>,
    depth: Option<usize>,
    both: &Both<'_>,
) -> bool {
    let Some((made, runs)) = made(in_base, both.base()) else { return false };
    let Some(was) = runs[hunk].get(edit).map(|run| run.start..run.start) else { return false };
    let (map, shape) = (LineMap::new(&made, both.text()), Shape::new(both.language()));
    both.after((&made, &shape), &map).same_blocks(&was, is, depth).is_ok()
}

/// Where the whole of a hunk's change stands already, from its first changed
/// line to its last, the context between them included: the span in the base,
/// and where it is.
pub(super) fn landed_whole(
    hunk: &Hunk,
    placed: &Placed,
    text: &[&[u8]],
    map: &LineMap<'_>,
) -> Option<(Range<usize>, Range<usize>)> {
    let (before, after) = context(hunk);
    let span = placed.site.start + before..placed.site.end - after;
    let done: Vec<&[u8]> = hunk.postimage().collect();
    match map.fate(span.clone(), &done[before..done.len() - after], text) {
        Fate::Landed(range) => Some((span, range)),
        _ => None,
    }
}
