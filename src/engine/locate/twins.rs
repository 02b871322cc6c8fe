//! Second copies of a hunk's lines that upstream put in.

use std::ops::Range;

use super::arms::{self, shared};
use super::functions::{Functions, Scope};
use super::heads::heading;
use super::indented::indentation;
use super::plain::Language;
use super::within::Both;
use super::{Edit, Placed, anywhere};
use crate::merge::Fate;
use crate::patch::Hunk;

impl Both<'_> {
    /// Whether upstream put in a second copy of a hunk's lines, whose first change is at `place`,
    /// under the same heading, in a function of the same name.
    pub(super) fn has_new_copy(
        &self,
        hunk: &Hunk,
        placed: &Placed,
        place: usize,
        (then, now): (Option<usize>, Option<usize>),
    ) -> bool {
        if self.map.most_places(placed.site.clone()) <= 1 {
            return false;
        }
        let own = &placed.edits[0].range;
        let lead = own.start - placed.site.start;
        let copies = |heading_at, text| copies(hunk, lead, heading_at, text);
        let (was, mut is) = (copies(then, self.base()), copies(now, self.text()));
        is.retain(|at| *at == place || !self.is_told(own.start, place, *at));
        // The heading may be as common as `template <typename T>`.
        is.len() > was.len() && self.in_namesakes(own, &was, &is).is_none_or(|(was, is)| is > was)
    }

    /// Whether lines that these edits change stand in two copies, which were one before or are
    /// the arms of a condition, and nothing says which are the old ones: what `were` changes in
    /// the base is what `are` changes in the text at hand. `site` are the lines of the hunk.
    pub(super) fn has_twin(&self, were: &[Edit], are: &[Edit], site: &Range<usize>) -> bool {
        let beside = |edit: &Edit| beside(&edit.range, self.base());
        self.has_new_twin(&were[0].range, beside(&were[0]))
            || were.iter().zip(are).any(|(was, is)| {
                self.has_other_copy(was, is, site) || self.is_doubled(was, is, site)
            })
    }

    /// Whether what an edit changes, with as much of the hunk's lines around it as is kept and
    /// stands in its block, stands a second time where it may be placed as well, though one of
    /// those lines stood once: under an `if` and under its `else`, say. (Arms of `#if` are told
    /// by what they state.)
    fn is_doubled(&self, was: &Edit, is: &Edit, site: &Range<usize>) -> bool {
        let depth = self.depth_of(was, self.base());
        let (base, text) = (self.base(), self.text());
        let full = |line: &&[u8]| !line.trim_ascii().is_empty();
        let put = was.lines.iter().map(Vec::as_slice);
        let own = base[was.range.clone()].iter().copied().chain(put);
        let least = Language::Other.depth(own).unwrap_or(0);
        let (was, is) = (&was.range, &is.range);
        let in_block = |(old, new): &(usize, usize)| {
            let line = base[*old];
            line == text[*new] && (!full(&line) || indentation(line) >= least)
        };
        let above = (site.start..was.start).rev().zip((0..is.start).rev()).take_while(in_block);
        let below = (was.end..site.end).zip(is.end..text.len()).take_while(in_block);
        let told = |(old, _): &(usize, usize)| full(&base[*old]);
        let first = above.filter(told).last().map_or(was.start, |(old, _)| old);
        let last = below.filter(told).last().map_or(was.end, |(old, _)| old + 1);
        let (kept, above) = (first..last, was.start - first);
        if self.map.most_places(kept.clone()) <= 1 || !kept.clone().any(|l| self.map.stood_once(l))
        {
            return false;
        }
        let (_, (_, now)) = self.outlined();
        let around = |line: usize| (now.branches(line), now.function(text, line));
        let may_hold = |at: &usize| {
            (self.scripted() || around(*at) == around(is.start))
                && self.same_place(was, &(*at..*at + was.len()), depth).is_ok()
        };
        let places = self.map.places(kept).into_iter().map(|at| at + above);
        places.filter(|at| *at != is.start).any(|at| may_hold(&at))
    }

    /// The functions that these edits are in, then and now, each the one of its name or of its
    /// head in both texts; nothing where one is in no such function with the lines beside it, or
    /// all readings of where the lines went agree.
    pub(super) fn named_parts(&self, edits: &[Edit]) -> Option<Vec<(Range<usize>, Range<usize>)>> {
        let fate = |edit: &Edit| {
            let wanted: Vec<&[u8]> = edit.lines.iter().map(Vec::as_slice).collect();
            self.map.fate(edit.range.clone(), &wanted, self.text())
        };
        let landed = |edit| matches!(fate(edit), Fate::Landed(_) | Fate::MayHaveLanded(_));
        if !edits.iter().any(|edit| self.map.is_open(&edit.range)) || edits.iter().any(landed) {
            return None;
        }
        let mut parts = Vec::new();
        for edit in edits {
            parts.push(self.named_part(&beside(&edit.range, self.base()))?);
        }
        parts.dedup();
        let in_order = parts.is_sorted_by(|(old, new), (next_old, next_new)| {
            old.end <= next_old.start && new.end <= next_new.start
        });
        in_order.then_some(parts)
    }

    /// The innermost function that holds all of these lines of the base, and the one in the text
    /// at hand.
    fn named_part(&self, lines: &Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
        let (were, are) = (self.were(), self.are());
        let holds = |s: &&Scope| s.lines.start <= lines.start && lines.end <= s.lines.end;
        let own = were.scopes.iter().rfind(holds)?;
        let named = |all: &Functions| alone(all.named(&own.path));
        let headed = |all: &Functions| alone(all.headed(&own.path, &were.head(own)).into_iter());
        named(were).zip(named(are)).or_else(|| headed(were).zip(headed(are)))
    }

    /// Whether all of `places`, where the base's lines `edges` stand in the text at
    /// hand, that are in a function with the head of the one around `was` are in
    /// the very same. `false` says nothing.
    pub(super) fn stands_once(
        &self,
        was: &Range<usize>,
        edges: &Range<usize>,
        places: &[usize],
    ) -> bool {
        let now = |at: usize| at + was.start - edges.start..at + was.end - edges.start;
        let Some(own) = self.heads(self.then, was) else { return false };
        let Some((_, own)) = own.first() else { return true };
        let mut first = None;
        places.iter().all(|at| {
            let heads = self.heads(self.now, &now(*at));
            heads.is_some_and(|all| {
                let mut alike = all.iter().filter(|(_, head)| head == own);
                alike.all(|(at, _)| *first.get_or_insert(*at) == *at)
            })
        })
    }

    /// Whether upstream put in a second copy of the function that the base's
    /// lines `was` are in, under the same head, and `edges`, those and the lines
    /// beside them, stand in both.
    pub(super) fn has_new_twin(&self, was: &Range<usize>, edges: Range<usize>) -> bool {
        if self.map.most_places(edges.clone()) <= 1 {
            return false;
        }
        // Lines in no function: a blank line between two may stand in hundreds of places.
        if self.heads(self.then, was).is_some_and(|heads| heads.is_empty()) {
            return false;
        }
        let places = self.map.places(edges.clone());
        if places.len() <= 1 || self.stands_once(was, &edges, &places) {
            return false;
        }
        self.has_second(was, edges, &places)
    }

    /// As [`Self::has_new_twin`], by reading the functions of both texts.
    pub(super) fn has_second(
        &self,
        was: &Range<usize>,
        edges: Range<usize>,
        places: &[usize],
    ) -> bool {
        let Some(own) = self.were().holding(was).last().copied() else { return false };
        let (length, head) = (edges.len(), self.were().head(own));
        let holds = |lines: &Range<usize>, at: usize| lines.start <= at && at + length <= lines.end;
        let had = self.were().headed(&own.path, &head).len();
        let alike = self.are().headed(&own.path, &head).into_iter();
        let twins = alike.filter(|s| places.iter().any(|at| holds(&s.lines, *at)));
        twins.count() > had.max(1)
    }

    /// How many of these places (first lines) in the base, and in the text,
    /// are in a function of the name that `was` is in.
    fn in_namesakes(
        &self,
        was: &Range<usize>,
        then: &[usize],
        now: &[usize],
    ) -> Option<(usize, usize)> {
        let path = &self.were().holding(was).last()?.path;
        let inside = |functions: &Functions, at: &usize| {
            functions.around(*at, None).last().is_some_and(|s| s.path == *path)
        };
        Some((
            then.iter().filter(|at| inside(self.were(), at)).count(),
            now.iter().filter(|at| inside(self.are(), at)).count(),
        ))
    }

    /// Whether what an edit changes, with the lines beside it, stands in two arms of a condition
    /// in the function around it, or out of functions in two arms or two blocks that may hold it,
    /// and nothing says which are the old.
    fn has_other_copy(&self, was: &Edit, is: &Edit, site: &Range<usize>) -> bool {
        let (edges, lines) = (beside(&was.range, self.base()), (was.range.start, is.range.start));
        if self.scripted() || self.map.most_places(edges.clone()) <= 1 {
            return false;
        }
        let (sides, lead) = (self.outlined(), lines.0 - edges.start);
        let (text, now) = sides.1;
        let in_arm = !now.branches(lines.1).is_empty();
        let places = || {
            let places = self.map.places(edges.clone()).into_iter().map(|at| at + lead);
            places.filter(|at| *at != lines.1).collect::<Vec<_>>()
        };
        match now.function(text, lines.1) {
            Some((_, Some(function))) if in_arm => {
                let rest = &(0..0);
                arms::is_one_of_several(sides, lines, (&function, rest), places().into_iter())
            }
            Some(_) => false,
            None if now.is_in_words(lines.1) => false,
            None => {
                let depth = self.depth_of(was, self.base());
                let may_hold = |at: &usize| {
                    self.same_place(&was.range, &(*at..*at + was.range.len()), depth).is_ok()
                };
                let places = places();
                let whole = &(0..text.len());
                let in_two_arms = || {
                    let places = places.iter().copied().filter(may_hold);
                    arms::is_one_of_several(sides, lines, (whole, site), places)
                };
                !places.is_empty()
                    && (self.has_twin_block(lines, &edges, &places, may_hold)
                        || in_arm && in_two_arms())
                    && may_hold(&lines.1)
            }
        }
    }

    /// Whether upstream put in a second copy of the class or table around lines that were at
    /// line `was` and are at `is`: `edges` of the base stand at one of `places` too, which is in
    /// another block that may hold them, and neither what conditions say nor the rest of the
    /// two tells the old one.
    fn has_twin_block(
        &self,
        (was, is): (usize, usize),
        edges: &Range<usize>,
        places: &[usize],
        may_hold: impl Fn(&usize) -> bool,
    ) -> bool {
        let ((base, then), (text, now)) = self.outlined();
        let blocks = (then.block(base, was), now.block(text, is));
        let (Some(old), Some(own)) = blocks else { return false };
        let shared = |block: &Range<usize>| shared(&base[old.clone()], &text[block.clone()]);
        let is_open =
            |at: &usize, block: &Range<usize>| match arms::told(self.outlined(), (was, is), *at) {
                Some(own) => !own,
                None => 2 * shared(block) >= shared(&own),
            };
        let other = |at: &usize| now.block(text, *at).filter(|block| *block != own);
        let twin = |at: &&usize| other(at).is_some_and(|block| is_open(at, &block)) && may_hold(at);
        // Where there were two before, the arms that they are in may tell.
        let had = || {
            let all = anywhere(&base[edges.clone()], base).into_iter();
            let blocks = all.filter_map(|at| then.block(base, at + was - edges.start));
            blocks.filter(|block| base[block.start] == base[old.start]).any(|block| block != old)
        };
        places.iter().any(|at| twin(&at)) && !had()
    }

    /// Whether what conditions say tells that lines which are at line `is` are the old ones, and
    /// none at `place`.
    fn is_told(&self, was: usize, is: usize, place: usize) -> bool {
        let (then, now) = self.outlined();
        !self.scripted() && arms::told((then, now), (was, is), place) == Some(true)
    }
}

/// The lines of what is the only one.
fn alone<'s>(mut all: impl Iterator<Item = &'s Scope>) -> Option<Range<usize>> {
    all.next().filter(|_| all.next().is_none()).map(|scope| scope.lines.clone())
}

/// Lines of a text with the line on either side.
pub(super) fn beside(lines: &Range<usize>, text: &[&[u8]]) -> Range<usize> {
    lines.start.saturating_sub(1)..(lines.end + 1).min(text.len())
}

/// The places at which a hunk's lines stand in a text under a heading that reads
/// like the one at `heading_at`, each given by its first change, which `lead`
/// lines go before.
fn copies(hunk: &Hunk, lead: usize, heading_at: Option<usize>, text: &[&[u8]]) -> Vec<usize> {
    let wanted: Vec<&[u8]> = hunk.preimage().collect();
    let reads = |at: Option<usize>| at.map(|line| text[line]);
    let alike = |at: &usize| reads(heading(text, *at)) == reads(heading_at);
    anywhere(&wanted, text).iter().map(|at| at + lead).filter(alike).collect()
}
