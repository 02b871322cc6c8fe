//! What upstream changed around a hunk that has its place.

use std::collections::BTreeSet;
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

/// What changed in the statements that open what a hunk is in, however far up they stand;
/// nothing where nothing did.
pub(super) fn in_openings(was: &Placed, placed: &Placed, both: &Both<'_>) -> Option<Nearby> {
    let (mut then, mut now) = (BTreeSet::new(), BTreeSet::new());
    for (was, is) in was.edits.iter().zip(&placed.edits) {
        let depth = both.depth_of(was, both.base());
        let (old, new) = both.openings(&was.range, &is.range, depth);
        then.extend(old.into_iter().flatten());
        now.extend(new.into_iter().flatten());
    }
    let (then, now): (Vec<usize>, Vec<usize>) =
        (then.into_iter().collect(), now.into_iter().collect());
    let numbers = both.map.numbers();
    let olds: Vec<_> = then.iter().map(|line| numbers.0[*line]).collect();
    let news: Vec<_> = now.iter().map(|line| numbers.1[*line]).collect();
    let mut found: Option<Nearby> = None;
    for op in similar::capture_diff_slices(similar::Algorithm::Myers, &olds, &news) {
        if op.tag() == similar::DiffTag::Equal {
            continue;
        }
        let (old, new) = (&then[op.old_range()], &now[op.new_range()]);
        // Of lines that only came or went, those are named that stand before the hunk.
        let line = |own: &[usize], site: &Range<usize>| own.first().map_or(site.start, |l| *l) + 1;
        let (a, b) = (line(old, &was.site), line(new, &placed.site));
        let nearby = found.get_or_insert(Nearby { line: b, diff: Vec::new() });
        nearby.diff.push(format!("@@ -{a},{} +{b},{} @@", old.len(), new.len()));
        nearby.diff.extend(old.iter().map(|line| format!("-{}", shown(both.base()[*line]))));
        nearby.diff.extend(new.iter().map(|line| format!("+{}", shown(both.text()[*line]))));
    }
    found
}

/// Both of what changed, `outer` as far as the other does not show it.
pub(super) fn with_outer(inner: Option<Nearby>, outer: Option<Nearby>) -> Option<Nearby> {
    let (Some(inner), Some(outer)) = (&inner, &outer) else { return inner.or(outer) };
    let changes = |line: &&String| !line.starts_with("@@");
    if outer.diff.iter().filter(changes).all(|line| inner.diff.contains(line)) {
        return Some(inner.clone());
    }
    let diff = outer.diff.iter().chain(&inner.diff).cloned().collect();
    Some(Nearby { line: outer.line.min(inner.line), diff })
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
