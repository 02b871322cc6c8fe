//! What upstream changed around a hunk that has its place.

use std::ops::Range;

use super::within::Both;
use super::{Placed, shown};
use crate::report::Nearby;

/// What changed in the function of a hunk, its own surroundings included;
/// nothing where nothing did, or the hunk is in none.
pub(super) fn in_function(was: &Placed, placed: &Placed, both: &Both<'_>) -> Option<Nearby> {
    let functions = was.edits.iter().zip(&placed.edits);
    let functions = functions.filter_map(|(was, is)| both.function(&was.range, &is.range));
    let join = |a: Range<usize>, b: Range<usize>| a.start.min(b.start)..a.end.max(b.end);
    let (then, now) = functions.reduce(|(a, b), (c, d)| (join(a, c), join(b, d)))?;
    let (then, now) = (join(then, was.site.clone()), join(now, placed.site.clone()));
    let (old, new) = (&both.base()[then.clone()], &both.text()[now.clone()]);
    let numbers = both.map.numbers();
    let (olds, news) = (&numbers.0[then.clone()], &numbers.1[now.clone()]);
    let ops = similar::capture_diff_slices(similar::Algorithm::Myers, olds, news);
    let mut found: Option<Nearby> = None;
    for group in similar::group_diff_ops(ops, 3) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (a, b) = (first.old_range().start, first.new_range().start);
        let lengths = (last.old_range().end - a, last.new_range().end - b);
        let (a, b) = (then.start + a + 1, now.start + b + 1);
        let nearby = found.get_or_insert(Nearby { line: b, diff: Vec::new() });
        nearby.diff.push(format!("@@ -{a},{} +{b},{} @@", lengths.0, lengths.1));
        for op in group {
            diff_lines(&op, old, new, &mut nearby.diff);
        }
    }
    found
}

/// The lines of a part of a diff, each with its sign.
fn diff_lines(op: &similar::DiffOp, old: &[&[u8]], new: &[&[u8]], out: &mut Vec<String>) {
    let mut show = |sign: char, line: &[u8]| out.push(format!("{sign}{}", shown(line)));
    if op.tag() == similar::DiffTag::Equal {
        old[op.old_range()].iter().for_each(|l| show(' ', l));
    } else {
        old[op.old_range()].iter().for_each(|l| show('-', l));
        new[op.new_range()].iter().for_each(|l| show('+', l));
    }
}

/// What changed in the context of a hunk, and in the line that heads it.
pub(super) fn nearby(
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
        diff_lines(&op, old, new, &mut diff);
    }
    Nearby { line: is.start + 1, diff }
}
