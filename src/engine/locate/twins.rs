//! Second copies of a hunk's lines that upstream put in.

use std::ops::Range;

use super::arms;
use super::functions::Functions;
use super::heads::heading;
use super::within::Both;
use super::{Edit, Placed, anywhere};
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
    /// the base is what `are` changes in the text at hand.
    pub(super) fn has_twin(&self, were: &[Edit], are: &[Edit]) -> bool {
        let beside = |edit: &Edit| beside(&edit.range, self.base());
        self.has_new_twin(&were[0].range, beside(&were[0]))
            || were
                .iter()
                .zip(are)
                .any(|(was, is)| self.has_twin_arm(&was.range, &is.range, &beside(was)))
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

    /// Whether the base's lines `edges`, those at `was` and the lines beside them, stand in two
    /// arms of a condition in the function around `is`, and nothing says which are the old.
    fn has_twin_arm(&self, was: &Range<usize>, is: &Range<usize>, edges: &Range<usize>) -> bool {
        if self.scripted() || self.map.most_places(edges.clone()) <= 1 {
            return false;
        }
        let (then, now) = self.outlined();
        if now.1.branches(is.start).is_empty() {
            return false;
        }
        let Some((_, Some(function))) = now.1.function(now.0, is.start) else { return false };
        let places = self.map.places(edges.clone()).into_iter();
        let places = places.map(|at| at + was.start - edges.start).filter(|at| *at != is.start);
        arms::is_one_of_several((then, now), (was.start, is.start), places, &function)
    }

    /// Whether what conditions say tells that lines which are at line `is` are the old ones, and
    /// none at `place`.
    fn is_told(&self, was: usize, is: usize, place: usize) -> bool {
        let (then, now) = self.outlined();
        !self.scripted() && arms::told((then, now), (was, is), place) == Some(true)
    }
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
