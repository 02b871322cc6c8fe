//! Functions and classes of a text that gives them by indentation: Python.

use std::ops::Range;

/// A `def` or a `class`, with what is indented below it.
pub(super) struct Block {
    /// Its name, with those of the blocks around it, dots between.
    pub path: String,
    /// Its head, decorators included, with single spaces.
    pub head: Vec<u8>,
    /// Its lines (0-based), blank ones at the end included.
    pub lines: Range<usize>,
    /// How far its head is indented.
    pub indent: usize,
}

/// The blocks of a text; none where it has no function of this kind.
pub(super) fn blocks(text: &[&[u8]]) -> Vec<Block> {
    // Most texts are C++, which says so in its first lines; that of a binding holds
    // Python in its strings.
    let directives: [&[u8]; 4] = [b"#include", b"#pragma", b"#ifndef", b"#define"];
    let is_head = |line: &&[u8]| head_name(line).is_some_and(|(kind, _)| kind == Kind::Function);
    if text.iter().any(|line| directives.iter().any(|d| line.starts_with(d)))
        || !text.iter().any(is_head)
    {
        return Vec::new();
    }
    let statements = statements(text);
    let (mut found, mut open): (Vec<Block>, Vec<usize>) = (Vec::new(), Vec::new());
    let (mut functions, mut decorated) = (false, None);
    for (i, lines) in statements.iter().enumerate() {
        let (first, indent) = (text[lines.start], indentation(text[lines.start]));
        while let Some(&at) = open.last()
            && found[at].indent >= indent
        {
            found[at].lines.end = decorated.unwrap_or(lines.start);
            open.pop();
        }
        if first[indent..].starts_with(b"@") {
            decorated = decorated.or(Some(lines.start));
            continue;
        }
        let begin = decorated.take().unwrap_or(lines.start);
        let Some((kind, name)) = head_name(first) else { continue };
        functions |= kind == Kind::Function;
        let name = String::from_utf8_lossy(name);
        let path = match open.last() {
            Some(&at) => format!("{}.{name}", found[at].path),
            None => name.into_owned(),
        };
        let end = statements.get(i).map_or(text.len(), |own| own.end);
        let head = text[begin..end].concat();
        let words = head.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let head = words.collect::<Vec<_>>().join(&b' ');
        open.push(found.len());
        found.push(Block { path, head, lines: begin..text.len(), indent });
    }
    if functions { found } else { Vec::new() }
}

/// How many blanks a line begins with.
pub(super) fn indentation(line: &[u8]) -> usize {
    line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// How far the first line that is not blank is indented.
pub(super) fn depth<'l>(lines: impl IntoIterator<Item = &'l [u8]>) -> Option<usize> {
    let full = |line: &&[u8]| !line.trim_ascii().is_empty();
    lines.into_iter().find(full).map(indentation)
}

#[derive(PartialEq, Eq)]
enum Kind {
    Function,
    Class,
}

/// What a line that heads a block names.
fn head_name(line: &[u8]) -> Option<(Kind, &[u8])> {
    let word = |line: &[u8]| {
        let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || !b.is_ascii();
        line.iter().position(|b| !word(b)).unwrap_or(line.len())
    };
    let after = |line: &'_ [u8], keyword: &[u8]| {
        let rest = line.strip_prefix(keyword)?;
        let blanks = indentation(rest);
        (blanks > 0).then_some(line.len() - rest.len() + blanks)
    };
    let mut rest = &line[indentation(line)..];
    if let Some(at) = after(rest, b"async") {
        rest = &rest[at..];
    }
    let (kind, at) = match (after(rest, b"def"), after(rest, b"class")) {
        (Some(at), _) => (Kind::Function, at),
        (None, Some(at)) => (Kind::Class, at),
        (None, None) => return None,
    };
    rest = &rest[at..];
    let (name, rest) = rest.split_at(word(rest));
    let goes_on = rest.trim_ascii_start().first();
    let heads = match kind {
        Kind::Function => matches!(goes_on, Some(b'(' | b'[')),
        Kind::Class => matches!(goes_on, Some(b'(' | b'[' | b':')),
    };
    (heads && !name.is_empty()).then_some((kind, name))
}

/// The statements of a text, by their lines: a bracket, a string of several
/// lines or a `\` at a line's end makes the next line go on.
fn statements(text: &[&[u8]]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut open = Open::default();
    let mut goes_on = false;
    for (at, line) in text.iter().enumerate() {
        let code = line.trim_ascii_start();
        if !goes_on {
            if code.is_empty() || code.starts_with(b"#") {
                continue;
            }
            found.push(at..at);
        }
        goes_on = open.goes_on(line);
        found.last_mut().expect("a line goes on after one that began").end = at + 1;
    }
    found
}

/// What a line leaves open.
#[derive(Default)]
struct Open {
    brackets: usize,
    /// The quote that a string of several lines ends with, three times.
    string: Option<u8>,
}

impl Open {
    /// Takes a line in, and says whether its statement goes on after it.
    fn goes_on(&mut self, line: &[u8]) -> bool {
        let mut at = 0;
        while let Some(&byte) = line.get(at) {
            let three = |quote: u8| line[at..].starts_with(&[quote; 3]);
            if let Some(quote) = self.string {
                match byte {
                    b'\\' => at += 1,
                    _ if three(quote) => (self.string, at) = (None, at + 2),
                    _ => {}
                }
            } else {
                match byte {
                    b'#' => break,
                    b'\'' | b'"' if three(byte) => (self.string, at) = (Some(byte), at + 2),
                    b'\'' | b'"' => at = string_end(line, at),
                    b'(' | b'[' | b'{' => self.brackets += 1,
                    b')' | b']' | b'}' => self.brackets = self.brackets.saturating_sub(1),
                    _ => {}
                }
            }
            at += 1;
        }
        let continued = line.trim_ascii_end().ends_with(b"\\");
        self.brackets > 0 || self.string.is_some() || continued
    }
}

/// The last byte of the string of one line that begins at `at`.
fn string_end(line: &[u8], at: usize) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::lines;

    fn found(text: &str) -> Vec<String> {
        let lines = lines(text.as_bytes());
        let shown = |b: &Block| format!("{} {}..{}", b.path, b.lines.start, b.lines.end);
        blocks(&lines).iter().map(shown).collect()
    }

    #[test]
    fn blocks_end_where_the_indentation_does() {
        let text = "import a\n\nclass A(B):\n    x = 1\n\n    @property\n    def f(self):\n        y\n\n    \
                    async def g(\n        self,\n    ):\n        def h(): return 1\n        z\n\nif a:\n    \
                    def k():\n        z\n";
        assert_eq!(found(text), ["A 2..15", "A.f 5..9", "A.g 9..15", "A.g.h 12..13", "k 16..18"]);
    }

    #[test]
    fn words_are_no_code() {
        let text = "def f(a='('):  # (\n    \"\"\"don't\ndef g():\n\\\"\"\"\"\"\"\n    x = {\ndef\n  : 1}\n    y \
                    = \\\n1\n    z\n";
        assert_eq!(found(text), ["f 0..10"]);
    }

    #[test]
    fn other_languages_have_none() {
        for text in [
            "class A : public B {\n  void f();\n};\n",
            "define it\nclass of 1999:\n",
            "#include <a>\nint a = R\"(}\ndef f(x):\n  x\n)\";\n",
            "",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
