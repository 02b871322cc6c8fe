//! A file that a person must finish: what holds is merged, what does not stands
//! between diff3 markers.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::locate::{Language, Text, place_alone, place_mapped};
use crate::merge::{LineMap, lines};
use crate::patch::Hunk;
use crate::report::HunkClass;

/// Names for the three sides.
pub(super) struct Sides<'n> {
    /// What upstream has now.
    pub target: &'n str,
    /// What the patch was made for.
    pub pin: &'n str,
    /// The entry.
    pub entry: &'n str,
}

/// A part of the target and what is put there.
struct Part {
    range: Range<usize>,
    bytes: Vec<u8>,
}

/// The target's text with the hunks that hold and markers for the others.
pub(super) fn marked(
    hunks: &[Hunk],
    base: &[u8],
    target: &[u8],
    language: Language,
    sides: &Sides<'_>,
) -> Vec<u8> {
    let (old, new) = (lines(base), lines(target));
    let map = LineMap::new(&old, &new);
    let mut parts: Vec<Part> = Vec::new();
    let mut orphans = Vec::new();
    let places = place_mapped(hunks, &old, &new, language);
    let in_base = place_alone(hunks, &old, Text::Base);
    for (place, was) in places.into_iter().zip(&in_base) {
        match (place, was) {
            (Ok(placed), _) if placed.class == HunkClass::Landed => {}
            (Ok(placed), _) => parts.extend(
                placed.edits.into_iter().map(|e| Part { range: e.range, bytes: e.lines.concat() }),
            ),
            (Err(_), Ok(was)) => match conflict(was.edits.as_slice(), &old, &new, &map, sides) {
                Some(part) => parts.push(part),
                None => orphans.push(whole(was.edits.as_slice(), &old, sides)),
            },
            (Err(_), Err(_)) => {}
        }
    }
    parts.sort_by_key(|p| (p.range.start, p.range.end));
    let mut out = Vec::new();
    let mut at = 0;
    for part in parts {
        // Two conflicts over the same lines: the second stands after the first.
        let start = part.range.start.max(at);
        new[at..start].iter().for_each(|l| out.extend_from_slice(l));
        end_line(&mut out);
        out.extend_from_slice(&part.bytes);
        at = part.range.end.max(start);
    }
    new[at..].iter().for_each(|l| out.extend_from_slice(l));
    for orphan in orphans {
        end_line(&mut out);
        out.extend(orphan);
    }
    out
}

fn end_line(out: &mut Vec<u8>) {
    if out.last().is_some_and(|b| *b != b'\n') {
        out.push(b'\n');
    }
}

/// The lines that changed on both sides, between the nearest lines that both
/// kept; nothing where there are none to stand between.
fn conflict(
    edits: &[crate::locate::Edit],
    old: &[&[u8]],
    new: &[&[u8]],
    map: &LineMap,
    sides: &Sides<'_>,
) -> Option<Part> {
    let (first, last) = (edits.first()?, edits.last()?);
    let (mut start, mut end) = (first.range.start, last.range.end);
    while start > 0 && map.line(start - 1).is_none() {
        start -= 1;
    }
    while end < old.len() && map.line(end).is_none() {
        end += 1;
    }
    let begin = if start == 0 { 0 } else { map.line(start - 1)? + 1 };
    let stop = if end == old.len() { new.len() } else { map.line(end)? };
    if begin > stop {
        return None;
    }
    let bytes = sided(&new[begin..stop], edits, old, start..end, sides);
    Some(Part { range: begin..stop, bytes })
}

/// A file that was taken as a whole, on all three sides.
pub(super) fn whole_file(theirs: &[u8], base: &[u8], ours: &[u8], sides: &Sides<'_>) -> Vec<u8> {
    let base = lines(base);
    let ours = lines(ours).into_iter().map(<[u8]>::to_vec).collect();
    let edit = crate::locate::Edit { range: 0..base.len(), lines: ours };
    sided(&lines(theirs), &[edit], &base, 0..base.len(), sides)
}

/// A conflict whose place upstream does not have any more.
fn whole(edits: &[crate::locate::Edit], old: &[&[u8]], sides: &Sides<'_>) -> Vec<u8> {
    let start = edits.first().map_or(0, |e| e.range.start.saturating_sub(3));
    let end = edits.last().map_or(0, |e| (e.range.end + 3).min(old.len()));
    sided(&[], edits, old, start..end, sides)
}

fn sided(
    theirs: &[&[u8]],
    edits: &[crate::locate::Edit],
    old: &[&[u8]],
    span: Range<usize>,
    sides: &Sides<'_>,
) -> Vec<u8> {
    let mut out = format!("<<<<<<< upstream {}\n", sides.target).into_bytes();
    theirs.iter().for_each(|l| out.extend_from_slice(l));
    end_line(&mut out);
    out.extend(format!("||||||| pin {}\n", sides.pin).into_bytes());
    old[span.clone()].iter().for_each(|l| out.extend_from_slice(l));
    end_line(&mut out);
    out.extend_from_slice(b"=======\n");
    let mut at = span.start;
    for edit in edits {
        old[at..edit.range.start].iter().for_each(|l| out.extend_from_slice(l));
        edit.lines.iter().for_each(|l| out.extend_from_slice(l));
        at = edit.range.end;
    }
    old[at..span.end].iter().for_each(|l| out.extend_from_slice(l));
    end_line(&mut out);
    out.extend(format!(">>>>>>> {}\n", sides.entry).into_bytes());
    out
}

/// The 1-based line of the first marker left in a text. Lines that the file has of its
/// own are none, and a line of `=======` alone is a heading.
pub(super) fn first_marker(text: &[u8], own: &[u8]) -> Option<usize> {
    let marks: [&[u8]; 3] = [b"<<<<<<< upstream ", b"||||||| pin ", b">>>>>>> "];
    let is_mark = |l: &&[u8]| marks.iter().any(|m| l.starts_with(m));
    let is_rule = |l: &&[u8]| l.trim_ascii_end() == b"=======";
    let of_file: BTreeSet<&[u8]> =
        lines(own).into_iter().filter(|l| is_mark(l) || is_rule(l)).collect();
    let text = lines(text);
    let left = |l: &&[u8]| !of_file.contains(l);
    text.iter().find(|l| is_mark(l) && left(l))?;
    text.iter().position(|l| (is_mark(l) || is_rule(l)) && left(l)).map(|at| at + 1)
}
