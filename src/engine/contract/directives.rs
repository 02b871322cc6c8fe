//! Preprocessor lines that give a text another meaning from outside of it: the
//! conditions it stands in, and the macros and pragmas before it.

use std::collections::HashSet;
use std::ops::Range;

use super::text::Text;
use crate::cpp::{Condition, Kind, lex, lex_line, lex_meaning, line_of, meaning};
use crate::merge::LineMap;
use crate::snapshot::TreePath;

/// A preprocessor line.
pub(super) struct Directive {
    /// Its first byte.
    start: usize,
    /// The byte after it.
    end: usize,
    /// Its lines, 0-based.
    lines: Range<usize>,
    /// What it says, from `#` on, comments and layout left out.
    says: Vec<Vec<u8>>,
    /// Whether it defines a macro that is given something: the `(` is next to the name.
    has_parameters: bool,
    condition: Option<Condition>,
}

/// The preprocessor lines of a text.
pub(super) fn directives(text: &[u8]) -> Vec<Directive> {
    let found = lex(text).into_iter().filter(|t| t.kind == Kind::Directive);
    // Lines are counted once, in order.
    let (mut line, mut at) = (0, 0);
    let mut count = |to| {
        line += text[at..to].iter().filter(|b| **b == b'\n').count();
        at = to;
        line
    };
    found
        .map(|token| Directive {
            start: token.start,
            end: token.end,
            lines: count(token.start)..count(token.end - 1) + 1,
            says: meaning(token.of(text)).into_iter().map(<[u8]>::to_vec).collect(),
            has_parameters: has_parameters(token.of(text)),
            condition: Condition::of(token.of(text)),
        })
        .collect()
}

/// Where the definition of a macro at the lines `was` is now: the lines, 0-based, of the
/// one that says the same, comments and layout aside. Of several it is the one between
/// the lines that were beside it; nothing where there is none. `map` has the lines.
pub(super) fn redefined(
    (then, now): (&Text, &Text),
    was: &Range<usize>,
    map: &LineMap<'_>,
) -> Option<Range<usize>> {
    let begins = |d: &&Directive| d.is_definition() && d.lines.start == was.start;
    let old = then.directives().iter().find(begins)?;
    let alike = |d: &&Directive| d.is_like(old);
    let olds = then.directives().iter().filter(|d| d.says == old.says).count();
    let news: Vec<_> = now.directives().iter().filter(alike).map(|d| &d.lines).collect();
    let between = |lines: &Range<usize>| {
        let before = old.lines.start.checked_sub(1).map_or(Some(0), |at| Some(map.line(at)? + 1));
        before == Some(lines.start) && map.line(old.lines.end) == Some(lines.end)
    };
    let new = match news[..] {
        [new] if olds == 1 => new,
        _ => news.into_iter().find(|lines| between(lines))?,
    };
    match was.len() {
        1 => Some(new.start..new.start + 1),
        length => (length == old.lines.len()).then(|| new.clone()),
    }
}

/// The lines, 0-based, at which a text defines a macro that the line `was` of the other
/// defines; where it defines it no more, those at which it undefines it, as an error.
pub(super) fn defined((then, now): (&Text, &Text), was: usize) -> Result<Vec<usize>, Vec<usize>> {
    let old = then.directives().iter().find(|d| d.is_definition() && d.lines.contains(&was));
    let Some(name) = old.and_then(Directive::defines) else { return Ok(Vec::new()) };
    let of_name = now.directives().iter().filter(|d| d.defines() == Some(name));
    let (defines, undefines): (Vec<_>, Vec<_>) = of_name.partition(|d| d.is_definition());
    let starts = |all: Vec<&Directive>| all.into_iter().map(|d| d.lines.start).collect();
    match defines.is_empty() {
        true => Err(starts(undefines)),
        false => Ok(starts(defines)),
    }
}

/// Whether a file is one that the C preprocessor reads. In others a `#` begins a
/// comment.
pub(super) fn has_directives(path: &TreePath) -> bool {
    let kinds = ["h", "hpp", "c", "cc", "cpp", "m", "mm", "metal", "cu", "cuh"];
    path.as_str().rsplit_once('.').is_some_and(|(_, kind)| kinds.contains(&kind))
}

/// What around a text of the same tokens gives it another meaning, in a
/// sentence: `then` and `now` are the files, each with the byte at which the text
/// begins, and `words` are its tokens.
pub(super) fn meant_otherwise(
    (then, was): (&Text, usize),
    (now, is): (&Text, usize),
    words: &[&[u8]],
) -> Option<String> {
    let lacked = |all: &[&'_ Directive], by: &[&Directive]| {
        let odd = all.iter().find(|d| !by.iter().any(|o| o.is_like(d)));
        odd.map(|d| (d.shown(), d.start))
    };
    let (old, new) = (conditions(then, was), conditions(now, is));
    if old.len() != new.len() || !old.iter().zip(&new).all(|(old, new)| old.is_like(new)) {
        return Some(match (lacked(&new, &old), lacked(&old, &new)) {
            (Some((shown, at)), _) => {
                let line = line_of(now.bytes(), at);
                format!("the same tokens, but under `{shown}` of line {line}, which is new")
            }
            (None, Some((shown, _))) => format!("the same tokens, but no more under `{shown}`"),
            (None, None) => "the same tokens, but in another order of conditions".into(),
        });
    }
    let words: HashSet<&[u8]> = words.iter().copied().collect();
    let means = |text: &Text, end: usize, d: &Directive| {
        d.start < end && (d.defines().is_some_and(|n| words.contains(n)) || d.is_pragma(text))
    };
    let old: Vec<&Directive> = then.directives().iter().filter(|d| means(then, was, d)).collect();
    let new: Vec<&Directive> = now.directives().iter().filter(|d| means(now, is, d)).collect();
    if let Some((shown, at)) = lacked(&new, &old) {
        let line = line_of(now.bytes(), at);
        return Some(format!("the same tokens, but `{shown}` of line {line} before them is new"));
    }
    let (shown, _) = lacked(&old, &new)?;
    Some(format!("the same tokens, but `{shown}` before them is gone"))
}

/// The macro that tells two texts of the same tokens apart, in a sentence: one that is given
/// something in one of them, and nothing in the other.
pub(super) fn defined_otherwise(old: &[u8], new: &[u8]) -> Option<String> {
    let (old, new) = (directives(old), directives(new));
    let odd = old.iter().zip(&new).find(|(old, new)| old.has_parameters != new.has_parameters);
    let (_, new) = odd?;
    let now = if new.has_parameters { "parameters now" } else { "no parameters now" };
    Some(format!("the same tokens, but `{}` has {now}", new.shown()))
}

/// The words of a text with each `#ifdef A`, `#ifndef A` and `defined A` as the
/// `#if defined(A)` that means the same.
pub(super) fn spelled_out<'w>(words: &[&'w [u8]]) -> Vec<&'w [u8]> {
    let mut out: Vec<&[u8]> = Vec::with_capacity(words.len());
    let mut at = 0;
    while let Some(&word) = words.get(at) {
        let after = |next: usize| words.get(at + next).copied();
        let (asks, name): (&[&[u8]], _) = match (out.last(), word) {
            (Some(&b"#"), b"ifdef") => (&[b"if", b"defined"], after(1)),
            (Some(&b"#"), b"elifdef") => (&[b"elif", b"defined"], after(1)),
            (Some(&b"#"), b"ifndef") => (&[b"if", b"!", b"defined"], after(1)),
            (Some(&b"#"), b"elifndef") => (&[b"elif", b"!", b"defined"], after(1)),
            (_, b"defined") => (&[b"defined"], after(1).filter(|next| *next != b"(")),
            _ => (&[], None),
        };
        match name {
            Some(name) => {
                out.extend(asks);
                out.extend([b"(", name, b")"]);
                at += 2;
            }
            None => {
                out.push(word);
                at += 1;
            }
        }
    }
    out
}

/// The condition that keeps a text from being read twice and does nothing else: it is
/// around all of it, but for a `#pragma once`.
fn guard(text: &Text) -> Option<&Directive> {
    let all: Vec<&Directive> = text.directives().iter().filter(|d| !d.is_once()).collect();
    let [first, second, .., last] = all[..] else { return None };
    let guards = second.defines().is_some_and(|name| {
        second.says.concat() == [b"#define", name, b"\n"].concat()
            && first.asks().concat() == [b"#if!defined(", name, b")\n"].concat()
    });
    let mut depth = 0_usize;
    let closes = |d: &&Directive| {
        match d.condition {
            Some(Condition::If) => depth += 1,
            Some(Condition::EndIf) => depth = depth.saturating_sub(1),
            Some(Condition::Else) if depth == 1 => return true,
            _ => {}
        }
        depth == 0
    };
    let is_bare = |part: &[u8]| lex_meaning(part).iter().all(|t| t.kind == Kind::Directive);
    let bytes = text.bytes();
    let around = all.iter().position(closes) == Some(all.len() - 1)
        && is_bare(&bytes[..first.start])
        && is_bare(&bytes[last.end..]);
    (guards && around).then_some(first)
}

/// The branches of conditions that the byte at `at` is in, with those before
/// them.
fn conditions(text: &Text, at: usize) -> Vec<&Directive> {
    let mut open: Vec<Vec<&Directive>> = Vec::new();
    let guard = guard(text).map(|guard| guard.start);
    let told = text.directives().iter().filter(|d| Some(d.start) != guard);
    for directive in told.take_while(|d| d.start < at) {
        match (directive.condition, open.last_mut()) {
            (Some(Condition::If), _) => open.push(vec![directive]),
            (Some(Condition::Else), Some(branches)) => branches.push(directive),
            (Some(Condition::EndIf), _) => drop(open.pop()),
            _ => {}
        }
    }
    open.into_iter().flatten().collect()
}

impl Directive {
    fn is_definition(&self) -> bool {
        matches!(&self.says[..], [_, word, _, ..] if word == b"define")
    }

    /// Whether it means what another one does.
    fn is_like(&self, other: &Self) -> bool {
        let same =
            self.says == other.says || self.condition.is_some() && self.asks() == other.asks();
        same && self.has_parameters == other.has_parameters
    }

    fn asks(&self) -> Vec<&[u8]> {
        spelled_out(&self.says.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// The name that it defines, or undefines.
    fn defines(&self) -> Option<&[u8]> {
        match &self.says[..] {
            [_, word, name, ..] if matches!(&word[..], b"define" | b"undef") => Some(name),
            _ => None,
        }
    }

    /// Whether it is a pragma for all that follows it: one in a function's body
    /// is that body's.
    fn is_pragma(&self, text: &Text) -> bool {
        let inside = || text.functions().iter().any(|f| f.body.contains(&self.start));
        match &self.says[..] {
            [_, word, _, ..] => word == b"pragma" && !self.is_once() && !inside(),
            _ => false,
        }
    }

    /// Whether it keeps its file from being read twice.
    fn is_once(&self) -> bool {
        matches!(&self.says[..], [_, word, what, ..] if word == b"pragma" && what == b"once")
    }

    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.says.join(&b' ')).replace('\n', "");
        text.replacen("# ", "#", 1).trim_end().chars().take(60).collect()
    }
}

/// Whether a directive defines a macro whose name has a `(` next to it.
fn has_parameters(line: &[u8]) -> bool {
    let words = lex_line(line);
    let mut words = words.iter().filter(|t| t.kind.bears_meaning()).skip(1);
    if words.next().map(|t| t.of(line)) != Some(b"define") {
        return false;
    }
    let (name, next) = (words.next(), words.next());
    name.zip(next).is_some_and(|(name, next)| name.end == next.start && next.of(line) == b"(")
}
