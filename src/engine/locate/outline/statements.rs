//! Where statements begin and end, and which of them head braces.

use std::ops::Range;

use super::super::effect::Effect;
use super::super::heads::{Head, ends_statement, is_directive};
use super::{Opened, Outline};
use crate::cpp::Condition;

impl Outline {
    /// The lines that head a brace, and what they are.
    pub(super) fn head(&self, text: &[&[u8]], brace: &Opened) -> Option<(Range<usize>, Head)> {
        let read = || {
            let start = self.statement(text, brace.line)?;
            if self.is_headed_before(text, start) {
                return None;
            }
            Some((start, Head::of(&text[start..=brace.line])?))
        };
        let (start, kind) = (*brace.head.get_or_init(read))?;
        Some((start..brace.line + 1, kind))
    }

    /// Whether a statement that begins at `start` heads what an earlier branch of a
    /// condition heads too.
    fn is_headed_before(&self, text: &[&[u8]], start: usize) -> bool {
        let Some(before) = start.checked_sub(1) else { return false };
        let at = self.branches.partition_point(|b| b.line < before);
        let own = self.branches.get(at).filter(|b| b.line == before);
        let later = |_: &&Opened| Effect::of(text[before]).condition == Some(Condition::Else);
        let Some(earlier) = own.filter(later).and_then(|own| own.around) else { return false };
        let from = self.braces.partition_point(|b| b.line < self.branches[earlier].line);
        self.braces[from..].iter().take_while(|b| b.line < before).any(|b| b.end.is_none())
    }

    /// The first line of the statement that goes on at `line`; nothing where it
    /// cannot be told.
    pub(super) fn statement(&self, text: &[&[u8]], line: usize) -> Option<usize> {
        let ends = |&before: &usize| self.ends_statement(text, before);
        let start = (0..line).rev().find(ends).map_or(0, |before| before + 1);
        self.is_between(text, start).then_some(start)
    }

    /// Whether no statement goes on over the gap before a line. Blank lines, comments
    /// and directives may stand within one.
    pub(super) fn is_between(&self, text: &[&[u8]], gap: usize) -> bool {
        let mut rest = gap;
        while let Some(before) = rest.checked_sub(1) {
            if self.is_full(text, before) {
                return self.ends_statement(text, before);
            }
            // What is before a later branch goes on in none but the first.
            let branch = self.branches.partition_point(|b| b.line < before);
            let own = self.branches.get(branch).filter(|b| b.line == before);
            let first = own.and_then(|_| {
                Self::outwards(&self.branches, Some(branch))
                    .find(|b| Effect::of(text[b.line]).condition == Some(Condition::If))
            });
            rest = first.map_or(before, |first| first.line);
        }
        true
    }

    /// Whether a line holds more than blanks, comments or a directive.
    fn is_full(&self, text: &[&[u8]], line: usize) -> bool {
        let words = text[line].trim_ascii();
        if matches!(words, [] | [b'#', ..] | [b'/', b'/', ..]) {
            return false;
        }
        let begun = self.inside(line).words;
        let comments = begun.is_some() || words.starts_with(b"/*");
        let no_more = || words.ends_with(b"*/") || self.is_in_words(line + 1);
        let directive = || begun.is_some_and(|begun| is_directive(text[begun]));
        !(comments && (no_more() || directive()))
    }

    /// Whether no statement goes on after a line.
    pub(super) fn ends_statement(&self, text: &[&[u8]], line: usize) -> bool {
        let begun = || self.inside(line).words;
        let ends =
            || ends_statement(text[line]) || begun().is_some_and(|begun| is_directive(text[begun]));
        ends() && !self.is_in_words(line + 1)
    }
}
