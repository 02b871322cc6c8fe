//! Places with no other text at hand: what a hunk states, what stands there,
//! and its neighbours.

use super::{
    Edit, LineEnds, Place, Placed, Text, Unplaced, anywhere, conflict, context, list, stated,
};
use crate::patch::{Hunk, LineKind};
use crate::report::HunkClass;

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

#[derive(Clone, Copy)]
struct Choice {
    at: usize,
    inferred: bool,
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

/// Whether a hunk has no line of context.
fn is_bare(hunk: &Hunk) -> bool {
    hunk.lines.iter().all(|l| l.kind != LineKind::Context)
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
    for ends in LineEnds::ALL {
        if let Some(at) = standing_but_for(ends, hunk, text) {
            return ends.unplaced(&(at..at + hunk.old.len));
        }
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

fn standing_but_for(ends: LineEnds, hunk: &Hunk, text: &[&[u8]]) -> Option<usize> {
    let wanted: Vec<&[u8]> = hunk.preimage().collect();
    let same = |(w, t): (&&[u8], &&[u8])| ends.without(w) == ends.without(t);
    let last = text.len().checked_sub(wanted.len()).filter(|_| !wanted.is_empty())?;
    (0..=last).find(|&at| {
        let found = &text[at..at + wanted.len()];
        found != &wanted[..] && wanted.iter().zip(found).all(same)
    })
}
