//! What heads lines in YAML, TOML, Markdown, reStructuredText and the shell: whatever stands
//! above them on a lesser level.
//!
//! Most of it is a matter of indentation, which those who write such texts keep to, and
//! readers go by.

use std::ops::Range;

use super::functions::words;
use super::indented::{around, indentation};
use super::lists::{Scripted, arms_before, headed};
use super::openings::{Heads, Opening, What};
use super::script::Statement;
use crate::snapshot::TreePath;

/// The language of a text, as its name tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// Keys and items, each with what is indented below it.
    Yaml,
    /// TOML, and what else has its keys under `[sections]`.
    Toml,
    /// Prose under headings that begin with `#` or are underlined.
    Markdown,
    /// Prose under underlined headings.
    ReStructured,
    /// Commands.
    Shell,
    /// Any other, which the text itself tells.
    #[default]
    Other,
}

impl Language {
    /// The language of a file of this name.
    #[must_use]
    pub fn of(path: &TreePath) -> Self {
        match path.as_str().rsplit_once('.').map(|(_, extension)| extension) {
            Some("yml" | "yaml") => Self::Yaml,
            Some("toml" | "ini" | "cfg" | "lock" | "editorconfig") => Self::Toml,
            Some("md" | "markdown") => Self::Markdown,
            Some("rst") => Self::ReStructured,
            Some("sh" | "bash" | "zsh") => Self::Shell,
            _ => Self::Other,
        }
    }

    /// The level of a line: it heads what is below it on greater ones.
    fn level(self, line: &[u8]) -> usize {
        let (indent, code) = (indentation(line), line.trim_ascii());
        match self {
            // An item may stand right below the key that it belongs to.
            Self::Yaml => 2 * indent + usize::from(item(code).is_some()),
            Self::Toml if section(line).is_some() => 0,
            Self::Toml => indent + 1,
            Self::Markdown => heading(line).map_or(usize::MAX, |(level, _)| level),
            Self::ReStructured => usize::MAX,
            Self::Shell | Self::Other => indent,
        }
    }

    /// The level of the first line that is not blank.
    pub(super) fn depth<'l>(self, lines: impl IntoIterator<Item = &'l [u8]>) -> Option<usize> {
        let full = |line: &&[u8]| !line.trim_ascii().is_empty();
        lines.into_iter().find(full).map(|line| self.level(line))
    }

    /// The lines of a text that may head others, with those that they quote, each with its
    /// level.
    pub(super) fn statements(self, text: &[&[u8]]) -> Vec<(Range<usize>, usize)> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(line) = text.get(at) {
            let (begin, level) = (at, self.level(line));
            at += 1;
            if let Some(level) = text.get(at).and_then(|below| self.underlined(line, below)) {
                at += 1;
                found.push((begin..at, level));
                continue;
            }
            let more = self.quoted(line.trim_ascii(), &text[at..]);
            at += more.unwrap_or(0);
            let is_fence = self == Self::Markdown && more.is_some();
            if !is_fence && level < usize::MAX && self.is_code(line.trim_ascii()) {
                found.push((begin..at, level));
            }
        }
        found
    }

    /// The level of a heading, where the line below it underlines it.
    fn underlined(self, line: &[u8], below: &[u8]) -> Option<usize> {
        let kinds: &[u8] = match self {
            Self::Markdown => b"=-",
            // Which is above which is each text's own choice; most choose so.
            Self::ReStructured => b"=-~^\"'`*+#:.",
            _ => return None,
        };
        let (title, rule) = (line.trim_ascii_end(), below.trim_ascii_end());
        let level = kinds.iter().position(|kind| rule.first() == Some(kind))?;
        let is_rule = |line: &[u8]| line.iter().all(|b| *b == line[0]);
        let has_title = title.first().is_some_and(|b| !b.is_ascii_whitespace()) && !is_rule(title);
        (has_title && is_rule(rule) && rule.len() >= title.len().max(3)).then_some(level + 1)
    }

    /// Whether a line is neither blank nor a comment, nor goes on with what is before it.
    fn is_code(self, code: &[u8]) -> bool {
        match self {
            Self::Markdown | Self::ReStructured => true,
            Self::Toml if code.starts_with(b";") => false,
            Self::Shell if matches!(code, b"then" | b"do" | b"{") => false,
            _ => !code.is_empty() && !code.starts_with(b"#"),
        }
    }

    /// How many lines a line quotes of those below it: a fence, a here-document.
    fn quoted(self, code: &[u8], below: &[&[u8]]) -> Option<usize> {
        let ends: &[u8] = match self {
            Self::Markdown => fence(code)?,
            Self::Shell if !code.starts_with(b"#") => here_document(code)?,
            _ => return None,
        };
        let is_last = |line: &&[u8]| match self {
            Self::Markdown => fence(line.trim_ascii_end()).is_some_and(|fence| {
                line.trim_ascii_end().ends_with(fence) && fence.starts_with(ends)
            }),
            _ => line.trim_ascii() == ends,
        };
        below.iter().position(is_last).map(|last| last + 1)
    }

    fn opening(self, text: &[&[u8]], all: &[Statement], at: usize) -> Opening {
        let first = all[at].lines.start;
        let (line, code) = (text[first], text[first].trim_ascii());
        let mut head = first..first + 1;
        let label = match self {
            Self::Yaml => match item(code) {
                Some(item) => key(item, b':').filter(|key| names(key)).map(|_| words(item)),
                None => key(code, b':').map(<[u8]>::to_vec),
            },
            Self::Toml => match section(line) {
                Some(section) => {
                    // Of several of one name, what they are called tells one from another.
                    let next = all.get(at + 1).map(|next| next.lines.start);
                    let is_name = |at: &usize| key(text[*at], b'=').is_some_and(names);
                    let name = next.filter(|_| section.starts_with(b"[[")).filter(is_name);
                    head.end = name.map_or(head.end, |name| name + 1);
                    let name = name.map_or(&b""[..], |name| text[name]);
                    Some(words(&[section, b" ", name].concat()))
                }
                None => key(code, b'=').map(<[u8]>::to_vec),
            },
            Self::Markdown => Some(words(heading(line).map_or(line, |(_, title)| title))),
            Self::ReStructured => Some(words(line)),
            Self::Shell => function(code).or_else(|| list(code)).map(<[u8]>::to_vec),
            Self::Other => None,
        };
        let what = match label {
            Some(label) => What::Named(label),
            None if all[at].lines.len() > 1 => What::Headed(words(line)),
            None => What::Headed(headed(text, all, at)),
        };
        Opening { head, what }
    }
}

/// What heads lines whose level is `depth`, the outermost first; nothing where it cannot be
/// told.
pub(super) fn openings(
    (text, script): Scripted<'_>,
    lines: &Range<usize>,
    depth: Option<usize>,
) -> Option<Vec<Opening>> {
    let (all, mut found) = (&script.statements, Vec::new());
    for at in around(text, all, lines, depth)?.into_iter().rev() {
        let arms = arms_before(text, all, at).into_iter();
        found.extend(arms.map(|arm| Opening::bare(all[arm].lines.clone())));
        found.push(script.language.opening(text, all, at));
    }
    Some(found)
}

/// Whether prose got a heading above those that it had: it is the same prose.
pub(super) fn got_title(language: Language, old: &[Opening], new: &[Opening]) -> bool {
    let more = new.len().saturating_sub(old.len());
    let mut kept = old.iter().zip(&new[more..]);
    language == Language::Markdown && more > 0 && kept.all(|(old, new)| old.what == new.what)
}

/// The words of all that heads anything and has no label.
pub(super) fn heads((text, script): Scripted<'_>) -> Heads {
    let all = &script.statements;
    let is_head = |at: &usize| {
        all[*at].lines.len() > 1 || all.get(at + 1).is_some_and(|next| next.around == Some(*at))
    };
    let head = |at| match script.language.opening(text, all, at) {
        Opening { head, what: What::Headed(words) } => Some((head.start, words)),
        _ => None,
    };
    (0..all.len()).filter(is_head).filter_map(head).collect()
}

/// The item of a list that a line of YAML begins with; of `- - a`, the innermost.
fn item(code: &[u8]) -> Option<&[u8]> {
    fn inner(code: &[u8]) -> Option<&[u8]> {
        let rest = code.strip_prefix(b"-")?;
        let item = rest.trim_ascii_start();
        (rest.is_empty() || item.len() < rest.len()).then_some(item)
    }
    std::iter::successors(inner(code), |item| inner(item)).last()
}

/// The key that a line gives a value, without its quotes.
fn key(code: &[u8], colon: u8) -> Option<&[u8]> {
    let (key, rest) = match code.first()? {
        quote @ (b'"' | b'\'') => {
            let end = 1 + code[1..].iter().position(|b| b == quote)?;
            (&code[1..end], &code[end + 1..])
        }
        _ => {
            let in_key = |b: &u8| b.is_ascii_alphanumeric() || b"_-./".contains(b) || !b.is_ascii();
            code.split_at(code.iter().position(|b| !in_key(b))?)
        }
    };
    let rest = rest.trim_ascii_start().strip_prefix(&[colon])?;
    let ends = colon == b'=' || rest.first().is_none_or(u8::is_ascii_whitespace);
    (!key.is_empty() && ends).then_some(key)
}

/// Whether a key says what the row that begins with it is called.
pub(super) fn names(key: &[u8]) -> bool {
    matches!(key, b"name" | b"id")
}

/// A line that heads a section: `[a]`, `[[a]]`.
fn section(line: &[u8]) -> Option<&[u8]> {
    let code = line.split(|b| *b == b'#').next()?.trim_ascii_end();
    let is_one = code.starts_with(b"[") && code.ends_with(b"]") && !code.contains(&b',');
    is_one.then_some(code)
}

/// The level of a heading of Markdown, and what it says.
fn heading(line: &[u8]) -> Option<(usize, &[u8])> {
    let code = line.trim_ascii();
    let level = code.iter().take_while(|b| **b == b'#').count();
    let (title, is_first) = (&code[level..], indentation(line) < 4);
    let is_one = (1..7).contains(&level) && (title.is_empty() || title.starts_with(b" "));
    (is_one && is_first).then_some((level, title))
}

/// What begins or ends lines of Markdown that are code, in an item of a list or not.
fn fence(code: &[u8]) -> Option<&[u8]> {
    let begin = code.iter().position(|b| !b"-*+> ".contains(b))?;
    let length = code[begin..].iter().take_while(|b| **b == code[begin]).count();
    let is_one = length > 2 && matches!(code[begin], b'`' | b'~');
    (is_one && !code[begin + length..].contains(&b'`')).then(|| &code[begin..begin + length])
}

/// The function that a line of the shell begins.
fn function(code: &[u8]) -> Option<&[u8]> {
    let name = code.strip_prefix(b"function ").map(<[u8]>::trim_ascii_start);
    let code = name.unwrap_or(code);
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || b"_-.:".contains(b);
    let (own, rest) = code.split_at(code.iter().position(|b| !in_name(b)).unwrap_or(code.len()));
    let is_one = name.is_some() || rest.trim_ascii_start().starts_with(b"()");
    (is_one && !own.is_empty()).then_some(own)
}

/// The list that a line of the shell begins: `A=(`.
fn list(code: &[u8]) -> Option<&[u8]> {
    let name = &code[..memchr::memmem::find(code, b"=(")?];
    let name = name.strip_suffix(b"+").unwrap_or(name);
    let name = name.rsplit(|b| *b == b' ').next()?;
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    (!name.is_empty() && name.iter().all(in_name)).then_some(name)
}

/// The word that ends the here-document which a line of the shell begins.
fn here_document(code: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find(code, b"<<")?;
    let rest = &code[at + 2..];
    let word = rest.strip_prefix(b"-").unwrap_or(rest).trim_ascii_start();
    let word = word.strip_prefix(b"\\").unwrap_or(word);
    let word = word.strip_prefix(b"'").or_else(|| word.strip_prefix(b"\"")).unwrap_or(word);
    let end = word.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_');
    Some(&word[..end.unwrap_or(word.len())]).filter(|word| !word.is_empty())
}
