//! The statements of a text that begins its comments with `#`: Python, CMake.
//!
//! What goes over several lines there is a bracket, or a string of three quotes.

use std::ops::Range;

use super::indented::{heads_function, indentation};
use super::lists::begins_list;

/// The statements of such a text.
#[derive(Default)]
pub(super) struct Script {
    /// None of any other text.
    pub statements: Vec<Statement>,
    /// The gaps that are in a string or a comment of several lines.
    words: Vec<Range<usize>>,
    /// Whether it gives its functions by indentation.
    indented: bool,
}

/// A statement, by its lines.
pub(super) struct Statement {
    pub lines: Range<usize>,
    /// How far it is indented.
    pub indent: usize,
    /// The last statement before it that is indented less.
    pub around: Option<usize>,
}

impl Script {
    /// Reads a text, given what each line does where it begins in code: a bracket, a string
    /// of several lines or a `\` at a line's end makes the next line go on.
    pub fn of(text: &[&[u8]], mut layout: impl FnMut(usize) -> Layout) -> Self {
        let Some(has_heads) = is_script(text) else { return Self::default() };
        let mut script = Self { statements: Vec::with_capacity(text.len() / 2), ..Self::default() };
        let found = &mut script.statements;
        let (mut brackets, mut string, mut goes_on) = (0_usize, None, false);
        let mut at = 0;
        while at < text.len() {
            let (own, line) = (at, text[at]);
            at += 1;
            let code = line.trim_ascii_start();
            // A `#` alone begins a comment wherever a `def` is.
            if string.is_none()
                && !has_heads
                && let Some(end) = bracket_comment_end(code)
            {
                let ends = |line: &&[u8]| memchr::memmem::find(line, &end).is_some();
                at = text[own..].iter().position(ends).map_or(text.len(), |more| own + more + 1);
                script.words.push(own + 1..at);
                continue;
            }
            if !goes_on {
                if code.is_empty() || code.starts_with(b"#") {
                    continue;
                }
                let indent = indentation(line);
                let mut around = found.len().checked_sub(1);
                while let Some(last) = around
                    && found[last].indent >= indent
                {
                    around = found[last].around;
                }
                found.push(Statement { lines: own..own, indent, around });
            }
            found.last_mut().expect("a line goes on after one that began").lines.end = at;
            let does = match string {
                None => layout(own),
                Some(quote) => match long_string_end(line, 0, quote) {
                    Some(end) => Layout::of(&line[end..]),
                    None => continue,
                },
            };
            if string.is_some() {
                script.words.last_mut().expect("pushed where it began").end = at;
            }
            string = does.string;
            if string.is_some() {
                script.words.push(at..text.len() + 1);
            }
            brackets = brackets.saturating_sub(does.closes as usize) + does.opens as usize;
            goes_on = brackets > 0 || string.is_some() || does.continued;
        }
        script.indented = found.iter().any(|s| heads_function(text[s.lines.start]));
        script
    }

    /// Whether the text is one.
    pub fn is_one(&self) -> bool {
        !self.statements.is_empty()
    }

    /// Whether it gives its functions by indentation.
    pub fn is_indented(&self) -> bool {
        self.indented
    }

    /// Whether the gap before `line` is in a string or a comment of several lines.
    pub fn is_in_words(&self, line: usize) -> bool {
        let at = self.words.partition_point(|words| words.end <= line);
        self.words.get(at).is_some_and(|words| words.contains(&line))
    }

    /// The statement that goes on over the gap before a line, by number.
    pub fn over(&self, gap: usize) -> Option<usize> {
        let at = self.statements.partition_point(|s| s.lines.end <= gap);
        self.statements.get(at).filter(|s| s.lines.start < gap).map(|_| at)
    }
}

/// Whether a text is one that begins its comments with `#`; if so, whether a line of it
/// reads as a function's head.
fn is_script(text: &[&[u8]]) -> Option<bool> {
    // Most texts are C++, which says so in its first lines; that of a binding holds
    // Python in its strings.
    let directives: [&[u8]; 4] = [b"#include", b"#pragma", b"#ifndef", b"#define"];
    let is_directive = |line: &&[u8]| {
        line.first() == Some(&b'#') && directives.iter().any(|d| line.starts_with(d))
    };
    // And Python holds C++ in its strings, after what it imports or defines first.
    let is_python = |line: &[u8]| {
        line.starts_with(b"import ")
            || line.starts_with(b"from ") && memchr::memmem::find(line, b" import ").is_some()
    };
    let begins = |line: &&&[u8]| is_directive(line) || is_python(line) || heads_function(line);
    let first = text.iter().find(begins);
    if first.is_some_and(is_directive) {
        return None;
    }
    if text.iter().any(|line| heads_function(line)) {
        return Some(true);
    }
    let ends_statement = |line: &&[u8]| line.trim_ascii_end().ends_with(b";");
    let tells =
        first.is_some() || text.iter().any(|line| begins_list(line)) || text.iter().any(is_command);
    (tells && !text.iter().any(ends_statement)).then_some(false)
}

/// Whether a line begins a text of CMake, or a part of one.
fn is_command(line: &&[u8]) -> bool {
    let commands: [&[u8]; 6] =
        [b"set(", b"list(", b"project(", b"endif(", b"target_", b"cmake_minimum_required("];
    commands.iter().any(|command| line.starts_with(command))
}

/// What ends the comment that a line of CMake begins with, `#[[` or `#[=[`.
fn bracket_comment_end(code: &[u8]) -> Option<Vec<u8>> {
    let rest = code.strip_prefix(b"#[")?;
    let level = rest.iter().take_while(|b| **b == b'=').count();
    (rest.get(level) == Some(&b'[')).then(|| [b"]", &rest[..level], b"]"].concat())
}

/// What a line leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Brackets that it closes and did not open.
    closes: u32,
    /// Brackets that it opens and does not close.
    opens: u32,
    /// The quote that a string of several lines ends with, three times.
    string: Option<u8>,
    /// A `\` ends it.
    continued: bool,
}

impl Layout {
    /// Reads a line that begins in code.
    pub(super) fn of(line: &[u8]) -> Self {
        let continued = line.trim_ascii_end().ends_with(b"\\");
        let mut layout = Self { continued, ..Self::default() };
        let mut at = 0;
        while let Some(&byte) = line.get(at) {
            match byte {
                b'#' => {
                    layout.continued = false;
                    break;
                }
                b'\'' | b'"' if line[at..].starts_with(&[byte; 3]) => {
                    let Some(end) = long_string_end(line, at + 3, byte) else {
                        layout.string = Some(byte);
                        break;
                    };
                    at = end;
                    continue;
                }
                b'\'' | b'"' => at = string_end(line, at),
                b'(' | b'[' | b'{' => layout.opens += 1,
                b')' | b']' | b'}' if layout.opens > 0 => layout.opens -= 1,
                b')' | b']' | b'}' => layout.closes += 1,
                _ => {}
            }
            at += 1;
        }
        layout
    }
}

/// The byte after the three quotes that end a string, looked for from `at` on.
pub(super) fn long_string_end(line: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    loop {
        at += memchr::memchr2(quote, b'\\', line.get(at..)?)?;
        at += match line[at] {
            b'\\' => 2,
            _ if line[at..].starts_with(&[quote; 3]) => return Some(at + 3),
            _ => 1,
        };
    }
}

/// The last byte of the string of one line that begins at `at`.
pub(super) fn string_end(line: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = line.get(end) {
        match byte {
            b'\\' => end += 1,
            _ if byte == line[at] => return end,
            _ => {}
        }
        end += 1;
    }
    line.len()
}
