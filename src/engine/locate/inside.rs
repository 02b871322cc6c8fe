//! What of a mapped hunk's function it stands in: blocks and lists, and arms of conditions.

use std::ops::Range;

use super::openings::Opening;
use super::outline::Outlined;
use super::shape::Side;
use super::within::{Both, heads_around};
use super::{arms, blocks, indented, lists};

impl<'t> Both<'t> {
    /// The line of the `#if 0` that lines which are at `is` came to stand in.
    pub(super) fn switched_off(&self, was: &Range<usize>, is: &Range<usize>) -> Option<usize> {
        if self.scripted() {
            return None;
        }
        let off = |(text, shape): Side<'t>, at| shape.outline(text).switched_off(text, at);
        off(self.now, is.start).filter(|_| off(self.then, was.start).is_none())
    }

    /// The condition that lines came to the other side of, and whether it is met there.
    pub(super) fn other_arm(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
    ) -> Option<(String, bool)> {
        if self.scripted() {
            return None;
        }
        let (then, now) = self.outlined();
        let (condition, met) = arms::other_arm(then, now, (was.start, is.start))?;
        Some((String::from_utf8_lossy(&condition).into_owned(), met))
    }

    /// The branch, as it is written, that lines came to stand in, and the one they were made
    /// for where that stands elsewhere, with its line there.
    pub(super) fn exchanged_arm(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
    ) -> Option<(String, String, usize)> {
        if self.scripted() {
            return None;
        }
        let (then, now) = self.outlined();
        let (new, old, line) = arms::exchanged(then, now, (was.start, is.start))?;
        let shown = |line: &[u8]| String::from_utf8_lossy(line.trim_ascii()).into_owned();
        Some((shown(self.text()[new]), shown(self.base()[old]), line))
    }

    /// Whether these lines, one of either text, stand in what heads the innermost class,
    /// enumeration or namespace around others.
    pub(super) fn head_scopes(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
        (then, now): (Option<usize>, Option<usize>),
    ) -> bool {
        let heads = |(text, outline): Outlined<'_>, lines: &Range<usize>, at: Option<usize>| {
            let scopes = outline.scopes(text, lines.start);
            scopes.first().zip(at).is_some_and(|(head, at)| head.contains(&at))
        };
        let (base, text) = self.outlined();
        !self.scripted() && heads(base, was, then) && heads(text, is, now)
    }

    /// Fails, with the reason in a sentence, where lines are in a block, a list or a table of
    /// another name than before, or have changed places with those of another block.
    /// `depth` is how far they are indented.
    pub(super) fn same_blocks(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
        depth: Option<usize>,
    ) -> Result<(), String> {
        if self.scripted() {
            let (then, now) = self.scripts();
            return match self.are_scripts() {
                true => lists::same_lists(then, now, self.map, (was, is), depth),
                false => Ok(()),
            };
        }
        let (then, now) = self.outlined();
        blocks::same_blocks(then, now, self.map, (was.start, is.start))
    }

    /// Whether lines are in a list, a table or another block of a name, and of the same as before.
    pub(super) fn in_one_list(&self, was: &Range<usize>, is: &Range<usize>) -> bool {
        if self.scripted() {
            return false;
        }
        let (then, now) = self.outlined();
        let (old, new) = (blocks::openings(then, was.start), blocks::openings(now, is.start));
        let names = |all: &[Opening]| -> Vec<Vec<u8>> {
            all.iter().filter_map(|o| Some(o.name()?.to_vec())).collect()
        };
        let names = (names(&old), names(&new));
        !names.0.is_empty() && names.0 == names.1
    }

    /// The lines that head what lines are in, then and now, conditions among them; of a
    /// function, what heads its namespaces and classes alone.
    pub(super) fn openings(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
        depth: Option<usize>,
    ) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
        let heads = |(text, shape): Side<'t>, lines: &Range<usize>| {
            let (mut heads, open) = if self.scripted() {
                let heads = heads_around((text, shape), lines, depth).unwrap_or_default();
                let function = heads.iter().find(|head| {
                    text[(*head).clone()].iter().any(|line| indented::heads_function(line))
                });
                let open = lists::openings((text, shape.script(text)), lines, depth);
                let mut open = open.unwrap_or_default();
                open.retain(|open| function.is_none_or(|own| open.head.end <= own.start));
                (heads, open)
            } else {
                let outline = shape.outline(text);
                let open = blocks::outside((text, outline), lines.start);
                let mut heads = outline.scopes(text, lines.start);
                heads.extend(outline.branches(lines.start).into_iter().map(|at| at..at + 1));
                (heads, open)
            };
            heads.extend(open.into_iter().map(|opening| opening.head));
            heads
        };
        (heads(self.then, was), heads(self.now, is))
    }

    /// Whether both texts begin their comments with `#`.
    pub(super) fn are_scripts(&self) -> bool {
        let (then, now) = self.scripts();
        then.1.is_one() && now.1.is_one()
    }

    fn scripts(&self) -> (lists::Scripted<'t>, lists::Scripted<'t>) {
        let read = |(text, shape): Side<'t>| (text, shape.script(text));
        (read(self.then), read(self.now))
    }

    pub(super) fn outlined(&self) -> (Outlined<'t>, Outlined<'t>) {
        let outlined = |(text, shape): Side<'t>| (text, shape.outline(text));
        (outlined(self.then), outlined(self.now))
    }
}
