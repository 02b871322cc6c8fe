//! The statements of a text that begins its comments with `#`: Python, CMake; and of others
//! that are read by their lines.
//!
//! What goes over several lines there is a bracket, or a string of three quotes.

use std::ops::Range;

use super::indented::{heads_function, indentation};
use super::lists::{begins_list, command_name};
use super::plain::Language;

/// The statements of such a text.
#[derive(Default)]
pub(super) struct Script {
    /// None of any other text.
    pub statements: Vec<Statement>,
    /// The gaps that are in a string or a comment of several lines.
    words: Vec<Range<usize>>,
    /// Whether it gives its functions by indentation.
    indented: bool,
    /// Where its name tells that.
    pub language: Language,
}

/// A statement, by its lines.
pub(super) struct Statement {
    pub lines: Range<usize>,
    /// How far it is indented, or else its level.
    pub indent: usize,
    /// The last statement before it that is indented less, or is on a lesser level.
    pub around: Option<usize>,
}

/// What the lines of a text say of its language.
#[derive(Default)]
struct Tally {
    /// Those of its code, and those that end with a `;`.
    lines: usize,
    ended: usize,
    /// The statements that read as commands, whether the first one does, and whether CMake
    /// has one of them.
    commands: usize,
    begins: bool,
    knows: bool,
}

impl Script {
    /// Reads a text, given what each line does where it begins in code: a bracket, a string
    /// of several lines or a `\` at a line's end makes the next line go on.
    pub fn of(text: &[&[u8]], mut layout: impl FnMut(usize) -> Layout) -> Self {
        let (defines, imports) = match first_words(text) {
            First::Directive => return Self::default(),
            first => (text.iter().any(|line| heads_function(line)), first == First::Import),
        };
        if !defines && !imports {
            let (script, tally) = Self::read(text, true, &mut layout);
            if tally.is_cmake(script.statements.len()) {
                return script;
            }
            if !text.iter().any(|line| begins_list(line)) {
                return Self::default();
            }
        }
        let (script, tally) = Self::read(text, false, &mut layout);
        // A list alone may be one of another language.
        let other = if imports { tally.ends_statements() } else { tally.ended > 0 };
        if defines || !other { script } else { Self::default() }
    }

    /// Reads a text of a language that its name tells.
    pub fn plain(text: &[&[u8]], language: Language) -> Self {
        let mut script = Self { language, ..Self::default() };
        for (lines, level) in language.statements(text) {
            script.put(lines, level);
        }
        script
    }

    /// Puts a statement after those that are known.
    fn put(&mut self, lines: Range<usize>, indent: usize) {
        let found = &mut self.statements;
        let mut around = found.len().checked_sub(1);
        while let Some(last) = around
            && found[last].indent >= indent
        {
            around = found[last].around;
        }
        found.push(Statement { lines, indent, around });
    }

    /// Reads it as a text of CMake or of Python.
    fn read(
        text: &[&[u8]],
        is_cmake: bool,
        mut layout: impl FnMut(usize) -> Layout,
    ) -> (Self, Tally) {
        let mut script = Self { statements: Vec::with_capacity(text.len() / 2), ..Self::default() };
        let mut tally = Tally::default();
        // What ends the string of several lines: a quote, and how many of it.
        let (mut brackets, mut string, mut goes_on) = (0_usize, None, false);
        let mut at = 0;
        while at < text.len() {
            let (own, line) = (at, text[at]);
            at += 1;
            let code = line.trim_ascii_start();
            // A `#` alone begins a comment of Python.
            if string.is_none()
                && is_cmake
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
                script.put(own..own, indentation(line));
            }
            let statement =
                script.statements.last_mut().expect("a line goes on after one that began");
            statement.lines.end = at;
            let first = statement.lines.start;
            let does = match string {
                None => layout(own),
                Some((quote, times)) => match string_of_lines_end(line, 0, quote, times) {
                    Some(end) => Layout::of(&line[end..]),
                    None => continue,
                },
            };
            if string.is_some() {
                script.words.last_mut().expect("pushed where it began").end = at;
            }
            let quoted = (is_cmake && does.quoted).then_some((b'"', 1));
            string = does.string.map(|quote| (quote, 3)).or(quoted);
            if string.is_some() {
                script.words.push(at..text.len() + 1);
            }
            brackets = brackets.saturating_sub(does.closes as usize) + does.opens as usize;
            goes_on = brackets > 0 || string.is_some() || does.continued;
            tally.lines += usize::from(does.last.is_some());
            tally.ended += usize::from(does.last == Some(b';'));
            if is_cmake
                && !goes_on
                && does.last == Some(b')')
                && let Some(command) = command_name(text[first])
            {
                tally.commands += 1;
                tally.begins |= script.statements.len() == 1;
                tally.knows |= is_known(command);
            }
        }
        script.indented = script.statements.iter().any(|s| heads_function(text[s.lines.start]));
        (script, tally)
    }

    /// Whether the text is one.
    pub fn is_one(&self) -> bool {
        self.is_plain() || !self.statements.is_empty()
    }

    /// Whether its name tells its language.
    pub fn is_plain(&self) -> bool {
        self.language != Language::Other
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

impl Tally {
    /// Whether they are those of CMake: prose may quote some of it, and a template may begin
    /// with what it puts in.
    fn is_cmake(&self, statements: usize) -> bool {
        let most = self.begins || 2 * self.commands > statements;
        self.knows && most && !self.ends_statements()
    }

    /// Whether statements end with a `;`, as they may in Python and seldom do.
    fn ends_statements(&self) -> bool {
        10 * self.ended > self.lines
    }
}

/// What the first line that tells a text's language is.
#[derive(PartialEq, Eq)]
enum First {
    /// One of C++.
    Directive,
    /// One of Python.
    Import,
    Other,
}

/// Most texts are C++, which says so in its first lines; that of a binding holds Python in its
/// strings. And Python holds C++ in its own, after what it imports or defines first.
fn first_words(text: &[&[u8]]) -> First {
    let directives: [&[u8]; 4] = [b"#include", b"#pragma", b"#ifndef", b"#define"];
    let is_directive =
        |line: &[u8]| line.first() == Some(&b'#') && directives.iter().any(|d| line.starts_with(d));
    let imports = |line: &[u8]| {
        line.starts_with(b"import ")
            || line.starts_with(b"from ") && memchr::memmem::find(line, b" import ").is_some()
    };
    let tells = |line: &&[u8]| match *line {
        line if is_directive(line) => Some(First::Directive),
        line if imports(line) => Some(First::Import),
        line => heads_function(line).then_some(First::Other),
    };
    text.iter().find_map(tells).unwrap_or(First::Other)
}

/// Whether a command is one that few texts of CMake do without.
fn is_known(command: &[u8]) -> bool {
    let all: [&[u8]; 14] = [
        b"add_executable",
        b"add_library",
        b"add_subdirectory",
        b"cmake_minimum_required",
        b"endforeach",
        b"endfunction",
        b"endif",
        b"endmacro",
        b"find_package",
        b"include",
        b"list",
        b"option",
        b"project",
        b"set",
    ];
    let target = command.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case(b"target_"));
    target || all.iter().any(|known| known.eq_ignore_ascii_case(command))
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
    /// A string that one `"` ends, as CMake has them over several lines.
    quoted: bool,
    /// A `\` ends it.
    continued: bool,
    /// The last byte of its code, where it has any.
    last: Option<u8>,
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
                byte if byte.is_ascii_whitespace() => {
                    at += 1;
                    continue;
                }
                _ => layout.last = Some(byte),
            }
            match byte {
                b'\'' | b'"' if line[at..].starts_with(&[byte; 3]) => {
                    let Some(end) = string_of_lines_end(line, at + 3, byte, 3) else {
                        layout.string = Some(byte);
                        break;
                    };
                    at = end;
                    continue;
                }
                b'\'' | b'"' => {
                    at = string_end(line, at);
                    layout.quoted |= byte == b'"' && at >= line.len();
                }
                b'\\' => at += 1,
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

/// The byte after the quotes that end a string of several lines, `times` of one, looked for
/// from `at` on.
pub(super) fn string_of_lines_end(
    line: &[u8],
    mut at: usize,
    quote: u8,
    times: usize,
) -> Option<usize> {
    loop {
        at += memchr::memchr2(quote, b'\\', line.get(at..)?)?;
        at += match line[at] {
            b'\\' => 2,
            _ if line[at..].starts_with(&[quote; 3][..times]) => return Some(at + times),
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
