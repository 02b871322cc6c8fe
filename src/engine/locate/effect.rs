//! What a line does to the braces and conditions around it, read on its own.

use super::without_line_end;
use crate::cpp::{Condition, Kind, lex, raw_string_end};

/// What a line does to the braces around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    /// Braces that it closes and did not open.
    pub closes: u32,
    /// Braces that it opens and does not close.
    pub opens: u32,
    pub condition: Option<Condition>,
    pub after: After,
}

/// What a line leaves unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    Comment,
    RawString,
    /// A directive, or a comment to the end of its line, that `\` has go on.
    Spliced,
}

impl Effect {
    pub const NONE: Self = Self { closes: 0, opens: 0, condition: None, after: After::Nothing };

    /// Reads a line that begins in code.
    pub fn of(line: &[u8]) -> Self {
        let mut effect = Self::NONE;
        // Most lines hold no brace, and nothing that keeps one from being one. Every
        // byte is looked at, which is done many at a time.
        let holds = |wanted: fn(u8) -> bool| line.iter().fold(false, |all, b| all | wanted(*b));
        if !holds(|b| matches!(b, b'#' | b'/' | b'"' | b'\'')) {
            if holds(|b| matches!(b, b'{' | b'}')) {
                line.iter().for_each(|b| effect.brace(*b));
            }
            return effect;
        }
        for token in lex(line) {
            let word = token.of(line);
            match (token.kind, word) {
                (Kind::Punctuation, [byte]) => effect.brace(*byte),
                (Kind::Directive, _) => {
                    effect.condition = Condition::of(word);
                    if is_spliced(word) {
                        effect.after = After::Spliced;
                    }
                }
                (Kind::Comment, [b'/', b'*', rest @ ..]) if !rest.ends_with(b"*/") => {
                    effect.after = After::Comment;
                }
                (Kind::Comment, [b'/', b'/', ..]) if is_spliced(word) => {
                    effect.after = After::Spliced;
                }
                (Kind::Text, _)
                    if raw_string_end(word).is_some_and(|end| !word.ends_with(&end)) =>
                {
                    effect.after = After::RawString;
                }
                _ => {}
            }
        }
        effect
    }

    fn brace(&mut self, byte: u8) {
        match byte {
            b'{' => self.opens += 1,
            b'}' if self.opens > 0 => self.opens -= 1,
            b'}' => self.closes += 1,
            _ => {}
        }
    }
}

/// Whether the line after what ends here belongs to it.
fn is_spliced(word: &[u8]) -> bool {
    word.ends_with(b"\\\n") || word.ends_with(b"\\\r\n")
}

/// How many lines, and how much of the line after them, the unfinished end of a
/// line goes on for: `more` are the lines that follow it. Nothing where no line
/// ends it.
pub(super) fn goes_on(after: After, line: &[u8], more: &[&[u8]]) -> Option<(usize, usize)> {
    let end = match after {
        After::Nothing => return None,
        After::Comment => b"*/".to_vec(),
        After::RawString => lex(line).iter().rev().find_map(|t| raw_string_end(t.of(line)))?,
        After::Spliced => {
            let last = more.iter().position(|l| !without_line_end(l).ends_with(b"\\"))?;
            return Some((last, more[last].len()));
        }
    };
    let end = memchr::memmem::Finder::new(&end);
    more.iter().enumerate().find_map(|(i, line)| Some((i, end.find(line)? + end.needle().len())))
}
