//! What opens the blocks and lists around lines of C++: tables, rows, lambdas and calls, and
//! within a function arms, loops, classes and their methods.
//!
//! The functions of a text are not looked into, so what is around lines there is read from
//! the outline on.

use std::ops::Range;

use super::brackets::{Brackets, Led};
use super::heads::{Head, named_class};
use super::names::{given, initialised, key};
use super::openings::{self, Heads, Opening, What};
use super::outline::{Outlined, Region};
use crate::cpp::{Condition, Kind, lex_meaning};
use crate::merge::LineMap;

/// Fails, with the reason in a sentence, where lines that were at line `was`, and are at
/// `is`, are in a block of another name than before, or have changed places with others.
pub(super) fn same_blocks(
    (base, then): Outlined<'_>,
    (text, now): Outlined<'_>,
    map: &LineMap<'_>,
    (was, is): (usize, usize),
) -> Result<(), String> {
    if then.is_in_words(was) || now.is_in_words(is) {
        return Ok(());
    }
    if let (Some(old), Some(new)) = (then.blocks(base, was), now.blocks(text, is))
        && old.len() == new.len()
        && old.iter().zip(&new).all(|(old, new)| map.keeps(old, new))
    {
        return Ok(());
    }
    let (old, new) = (then.region(base, was), now.region(text, is));
    // Where nothing changed from what opens the outermost on, nothing more need be read.
    let before = (old.lines.start..was, new.lines.start..is);
    if map.keeps(&before.0, &before.1) || before.0.is_empty() && before.1.is_empty() {
        return Ok(());
    }
    let around = (read(base, &old, was), read(text, &new, is));
    openings::same(
        &openings::Side { text: base, around: &around.0, all: &|| heads(base, &old) },
        &openings::Side { text, around: &around.1, all: &|| heads(text, &new) },
    )
}

/// What is open in the gap before a line, the outermost first; of a function, what is open
/// in it.
pub(super) fn openings((text, outline): Outlined<'_>, line: usize) -> Vec<Opening> {
    match outline.is_in_words(line) {
        true => Vec::new(),
        false => read(text, &outline.region(text, line), line),
    }
}

/// As [`openings`], of lines that are in no function.
pub(super) fn outside((text, outline): Outlined<'_>, line: usize) -> Vec<Opening> {
    if outline.is_in_words(line) {
        return Vec::new();
    }
    let region = outline.region(text, line);
    if region.function { Vec::new() } else { read(text, &region, line) }
}

fn read(text: &[&[u8]], region: &Region, gap: usize) -> Vec<Opening> {
    let lines = region.lines.start..gap;
    let own = text[lines.clone()].concat();
    let mut around = None;
    let what = |Led { words, .. }: Led<'_, '_>| {
        if let Some(key) = key(words) {
            return Some(What::Named(key));
        }
        if words.last() != Some(&&b"{"[..]) {
            return None;
        }
        let kind = Head::of_words(words);
        let before = |at: Option<usize>| words.get(at?.checked_sub(1)?).map(|name| name.to_vec());
        let name = initialised(words).or_else(|| given(words)).or_else(|| match (around, kind) {
            (_, Some(Head::Scope)) if !words.contains(&&b"="[..]) => class(words),
            // What else has brackets there heads no method.
            (Some(Head::Scope), Some(Head::Function)) => {
                before(words.iter().position(|word| *word == b"("))
            }
            _ => None,
        });
        around = kind;
        // Out of functions what is around has been compared.
        let known = !region.function && kind == Some(Head::Scope);
        if known { Some(What::Bare) } else { name.map(What::Named) }
    };
    let mut all = brackets(&own, &lines).openings(what);
    // A function is known by its name; a lambda that stands for one by what it is given to.
    let inner = |opening: &Opening| !region.function || opening.head.end > region.body;
    all.retain(|opening| inner(opening) || opening.name().is_some());
    all
}

fn heads(text: &[&[u8]], region: &Region) -> Heads {
    let own = text[region.lines.clone()].concat();
    let mut heads = brackets(&own, &region.lines).heads();
    heads.retain(|(line, _)| *line >= region.body || !region.function);
    heads
}

/// Reads these lines of a text, given as one.
fn brackets<'t>(text: &'t [u8], lines: &Range<usize>) -> Brackets<'t> {
    let mut brackets = Brackets::default();
    let (mut line, mut at) = (lines.start, 0);
    for token in lex_meaning(text) {
        line += text[at..token.start].iter().filter(|b| **b == b'\n').count();
        at = token.start;
        let word = token.of(text);
        match (token.kind, word) {
            (Kind::Directive, _) => {
                if let Some(condition) = Condition::of(word) {
                    brackets.condition(condition);
                }
            }
            _ => brackets.word(line, word),
        }
    }
    brackets
}

/// The name of the class or enumeration that words head.
fn class(words: &[&[u8]]) -> Option<Vec<u8>> {
    let keyword = |word: &&[u8]| matches!(*word, b"class" | b"struct" | b"union" | b"enum");
    let first = words.iter().rposition(keyword)?;
    named_class(&words[first + 1..])
}
