//! Functions of one name and head, of which upstream made more or fewer.

use std::ops::Range;

use super::anywhere;
use super::arms::shared;
use super::functions::{Functions, Scope};
use crate::merge::LineMap;

/// A function, among those of its text, and the text's lines.
pub(super) type Of<'t> = (&'t Functions, &'t Scope, &'t [&'t [u8]]);

/// Whether a function is the old one, though its name and head have another number of
/// functions than before, as where a stub stands in the other arm of an `#if`: what was at
/// `was`, and is at `is`, stands with the lines beside it in these two alone of either
/// text's, and no other shares half as many lines with either, heads aside.
pub(super) fn is_the_old_one(
    (were, then, base): Of<'_>,
    (are, now, text): Of<'_>,
    map: &LineMap<'_>,
    (was, is): (&Range<usize>, &Range<usize>),
) -> bool {
    let head = were.head(then);
    if then.path != now.path || head != are.head(now) {
        return false;
    }
    let (olds, news) = (were.headed(&then.path, &head), are.headed(&now.path, &head));
    let start = was.start.saturating_sub(1).max(then.lines.start);
    let edges = start..(was.end + 1).min(then.lines.end);
    if olds.len() == news.len() || edges.is_empty() {
        return false;
    }
    // The mapped place is that of the lines beside it.
    let kept = map.kept(edges.clone()).is_some_and(|at| at + was.start == is.start + edges.start);
    let wanted = &base[edges];
    let alone = |all: &[&Scope], one: &Scope, text: &[&[u8]]| {
        let places = anywhere(wanted, text);
        let within =
            |lines: &Range<usize>, at: usize| lines.start <= at && at + wanted.len() <= lines.end;
        let holding = all.iter().filter(|s| places.iter().any(|at| within(&s.lines, *at)));
        holding.map(|s| &s.lines).eq([&one.lines])
    };
    let shared = |old: &Scope, new: &Scope| shared(&base[were.body(old)], &text[are.body(new)]);
    let own = shared(then, now);
    kept && alone(&olds, then, base)
        && alone(&news, now, text)
        && olds.iter().all(|old| old.lines == then.lines || 2 * shared(old, now) < own)
        && news.iter().all(|new| new.lines == now.lines || 2 * shared(then, new) < own)
}
