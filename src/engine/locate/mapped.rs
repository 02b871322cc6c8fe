//! Places by mapping from the text that a patch was made for.

use std::ops::Range;

use super::facts::Facts;
use super::heads::heading;
use super::landed::{all_landed, landed_and_more, landed_at, landed_whole};
use super::nearby::{in_function, in_openings, nearby, with_outer};
use super::own::{is_one_head, stands_apart};
use super::plain::Language;
use super::shape::{Shape, Side};
use super::within::Both;
use super::{Edit, LineEnds, Place, Placed, Text, Unplaced, conflict, context, list, place_alone};
use crate::merge::{Fate, LineMap};
use crate::patch::Hunk;
use crate::report::HunkClass;

/// Places the hunks of one file in `text` by mapping from `base`, the text the
/// patch was made for. Both are in this language.
#[must_use]
pub fn place_mapped(
    hunks: &[Hunk],
    base: &[&[u8]],
    text: &[&[u8]],
    language: Language,
) -> Vec<Place> {
    let in_base = place_alone(hunks, base, Text::Base);
    if base == text {
        return in_base;
    }
    let map = LineMap::new(base, text);
    let (facts, (old, new)) = (Facts::default(), map.numbers());
    let shape = |numbers| Shape::of_numbers(language, &facts, numbers);
    let (then, now) = (shape(old), shape(new));
    let both = Both::new((base, &then), (text, &now), &map);
    let mut places = map_all(hunks, &in_base, &both);
    for (place, was) in places.iter_mut().zip(&in_base) {
        let Ok(was) = was else { continue };
        match place {
            Ok(placed) if placed.class != HunkClass::Landed => {
                let inner = in_function(was, placed, &both).or(placed.nearby.take());
                placed.nearby = with_outer(inner, in_openings(was, placed, &both));
            }
            Ok(_) => {}
            Err(unplaced) => {
                let gone = was.edits.iter().find_map(|e| both.gone_from(&e.range));
                if let Some(gone) = gone.filter(|gone| !unplaced.why.starts_with(gone)) {
                    unplaced.why = gone;
                }
            }
        }
    }
    places
}

/// As [`place_mapped`], where the places in the base are known already, and
/// where its lines went. What changed in a hunk's function further out than its
/// context is not looked for, nor is it told of one that has no place whether
/// its function is gone: neither decides its class.
#[must_use]
pub fn map_places(
    hunks: &[Hunk],
    in_base: &[Place],
    base: Side<'_>,
    text: Side<'_>,
    map: &LineMap<'_>,
) -> Vec<Place> {
    map_all(hunks, in_base, &Both::new(base, text, map))
}

fn map_all(hunks: &[Hunk], in_base: &[Place], both: &Both<'_>) -> Vec<Place> {
    if let Some(places) = all_landed(in_base, both) {
        return places;
    }
    let places: Vec<Place> = hunks
        .iter()
        .zip(in_base)
        .enumerate()
        .map(|(own, (hunk, place))| match place {
            Ok(placed) => map_hunk(hunk, (own, placed), in_base, both),
            Err(Unplaced { class, why, .. }) => {
                let why = format!("in the text it was made for, {why}");
                Err(Unplaced { class: *class, why, found: None })
            }
        })
        .collect();
    let open = |place: &Place| place.as_ref().is_ok_and(|p| p.class != HunkClass::Landed);
    match places.iter().all(Result::is_ok) || places.iter().any(open) {
        true => places,
        false => landed_and_more(in_base, both).unwrap_or(places),
    }
}

fn map_hunk(hunk: &Hunk, own: (usize, &Placed), in_base: &[Place], both: &Both<'_>) -> Place {
    let place = place_hunk(hunk, own, in_base, both);
    if place.is_ok() {
        return place;
    }
    // A function may have been copied under another name: that of its own tells which it is.
    let Some(parts) = both.named_parts(&own.1.edits) else { return place };
    let map = both.map.by_parts(&parts);
    let by_name = place_hunk(hunk, own, in_base, &both.by(&map));
    by_name.ok().filter(|found| found.class != HunkClass::Landed).map_or(place, Ok)
}

fn place_hunk(
    hunk: &Hunk,
    (own, placed): (usize, &Placed),
    in_base: &[Place],
    both: &Both<'_>,
) -> Place {
    let (base, text, map) = (both.base(), both.text(), both.map);
    if placed.edits.is_empty() {
        return Err(conflict(None, "it changes nothing"));
    }
    if let Some((span, landed)) = landed_whole(hunk, placed, text, map) {
        // Where each change begins once those before it are made.
        let (mut at, mut from) = (landed.start, span.start);
        let starts = placed.edits.iter().map(|edit| {
            let start = at + edit.range.start - from;
            (at, from) = (start + edit.lines.len(), edit.range.end);
            start
        });
        return landed_at(in_base, own, starts, landed.clone(), both);
    }
    let (mut kept, mut landed) = (Vec::new(), Vec::new());
    for edit in &placed.edits {
        let wanted: Vec<&[u8]> = edit.lines.iter().map(Vec::as_slice).collect();
        match map.fate(edit.range.clone(), &wanted, text) {
            Fate::Kept(range) => kept.push(Edit { range, lines: edit.lines.clone() }),
            Fate::Landed(range) => landed.push(range),
            Fate::Changed(found) => {
                let stands = |ends: &LineEnds| stands_but_for(*ends, &edit.range, base, text);
                if let Some(ends) = LineEnds::ALL.into_iter().find(stands) {
                    return Err(ends.unplaced(&found));
                }
                let why = "upstream changed the lines it changes, or a line next to them";
                return Err(conflict(Some(&found), why));
            }
            Fate::Unsure(places) | Fate::MayHaveLanded(places) => {
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
    if let (Some(first), Some(last)) = (landed.first(), landed.last()) {
        if !kept.is_empty() {
            return Err(conflict(Some(first), "part of it is there already"));
        }
        let starts = landed.iter().map(|range| range.start);
        return landed_at(in_base, own, starts, first.start..last.end, both);
    }
    let first = kept.first().expect("a hunk has a change, and each that is not kept returned");
    let last = kept.last().expect("as above");
    let whole = placed.site.is_empty() || map.kept(placed.site.clone()).is_some();
    let (before, after) = context(hunk);
    let site = if whole && !placed.site.is_empty() {
        let start = map.line(placed.site.start).expect("the whole preimage is kept");
        start..start + placed.site.len()
    } else {
        first.range.start.saturating_sub(before)..(last.range.end + after).min(text.len())
    };
    let own = &placed.edits[0].range;
    let (then, now) = (heading(base, own.start), heading(text, first.range.start));
    if whole && both.has_new_copy(hunk, placed, first.range.start, (then, now))
        || both.has_twin(&placed.edits, &kept, &placed.site)
    {
        let why = "upstream put in a second copy of its lines, and nothing says which are the old";
        let mut unplaced = conflict(Some(&site), why);
        unplaced.class = HunkClass::Ambiguous;
        return Err(unplaced);
    }
    for (edit, now) in placed.edits.iter().zip(&kept) {
        let depth = both.depth_of(edit, base);
        both.same_place(&edit.range, &now.range, depth)
            .map_err(|why| conflict(Some(&site), &why))?;
    }
    let nearby = match surroundings(whole, then, now, map) {
        Surroundings::Same => None,
        // That it stands in its function is proven above.
        Surroundings::Other
            if !(both.is_inside(own)
                || stands_apart(own, first, (then, now), both)
                || both.head_scopes(own, &first.range, (then, now))
                || both.in_one_list(own, &first.range)
                || is_one_head((base, then), (text, now))) =>
        {
            let why =
                "its lines stand here, but under another heading than the one it was made for";
            return Err(conflict(Some(&site), why));
        }
        Surroundings::Changed | Surroundings::Other => {
            Some(nearby(placed.site.clone(), site.clone(), then, now, base, text))
        }
    };
    let class = match placed.class {
        HunkClass::Offset => HunkClass::Offset,
        _ if nearby.is_none() && site.start == placed.site.start => HunkClass::Exact,
        _ => HunkClass::Moved,
    };
    Ok(Placed { class, site, edits: kept, inferred: placed.inferred, rivals: Vec::new(), nearby })
}

enum Surroundings {
    Same,
    Changed,
    Other,
}

/// Whether what is around a mapped hunk is as it was: the rest of its context,
/// and the line that heads it.
fn surroundings(
    whole: bool,
    then: Option<usize>,
    now: Option<usize>,
    map: &LineMap<'_>,
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

fn stands_but_for(ends: LineEnds, range: &Range<usize>, base: &[&[u8]], text: &[&[u8]]) -> bool {
    let plain = |l: &&[u8]| l.ends_with(b"\n") && !l.ends_with(b"\r\n");
    if base.iter().all(plain) && text.iter().all(plain) {
        return false;
    }
    let bare = |t: &[&[u8]]| t.iter().map(|l| ends.without(l)).collect::<Vec<_>>();
    let (base, text) = (bare(base), bare(text));
    let base: Vec<&[u8]> = base.iter().map(Vec::as_slice).collect();
    let text: Vec<&[u8]> = text.iter().map(Vec::as_slice).collect();
    matches!(LineMap::new(&base, &text).fate(range.clone(), &[], &text), Fate::Kept(_))
}
