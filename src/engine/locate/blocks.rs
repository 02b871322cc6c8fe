//! The blocks that have a name: tables, and within a function lambdas, classes and their
//! methods.
//!
//! The functions of a text are not looked into, so what is around lines there is read from
//! the outline.

use std::ops::Range;

use super::heads::{Head, named_class};
use super::names::{given, initialised};
use super::outline::{Outlined, Within};
use crate::cpp::meaning;
use crate::merge::LineMap;

/// Fails, with the reason in a sentence, where lines that were at line `was`, and are at
/// `is`, are in a block of another name than before.
pub(super) fn same_blocks(
    (base, then): Outlined<'_>,
    (text, now): Outlined<'_>,
    map: &LineMap<'_>,
    (was, is): (usize, usize),
) -> Result<(), String> {
    let (old, new) = (then.within(base, was), now.within(text, is));
    let all = (old.heads(), new.heads());
    if all.0.len() == all.1.len() && all.0.iter().zip(all.1).all(|(old, new)| map.keeps(old, new)) {
        return Ok(());
    }
    let (old, new) = (named(&old, base), named(&new, text));
    if old == new {
        return Ok(());
    }
    Err(match (old.is_empty(), new.is_empty()) {
        (false, true) => {
            format!("its lines stand here, but outside of `{}`, which it was made for", shown(&old))
        }
        (true, _) => format!("its lines stand here, but in `{}` now", shown(&new)),
        _ => format!(
            "its lines stand here, but in `{}`, and it was made for `{}`",
            shown(&new),
            shown(&old)
        ),
    })
}

/// The names of the blocks that the gap before a line is in, the outermost first.
pub(super) fn names_around((text, outline): Outlined<'_>, line: usize) -> Vec<Vec<u8>> {
    named(&outline.within(text, line), text)
}

fn named(within: &Within, text: &[&[u8]]) -> Vec<Vec<u8>> {
    let lines = |head: &Range<usize>| &text[head.clone()];
    match within {
        Within::Function(heads) => names(heads.iter().map(lines)),
        Within::Nothing(heads) => {
            let name = |head: &Range<usize>| initialised(&meaning(&lines(head).concat()));
            heads.iter().filter_map(name).collect()
        }
    }
}

fn shown(names: &[Vec<u8>]) -> String {
    String::from_utf8_lossy(&names.join(&b"::"[..])).into_owned()
}

/// The names of those blocks that have one, given what heads each, the outermost first.
fn names<'t>(heads: impl Iterator<Item = &'t [&'t [u8]]>) -> Vec<Vec<u8>> {
    let mut around = None;
    let name = |head: &[&[u8]]| {
        let (text, kind) = (head.concat(), Head::of(head));
        let words = meaning(&text);
        let before = |at: Option<usize>| words.get(at?.checked_sub(1)?).map(|name| name.to_vec());
        let name = initialised(&words).or_else(|| given(&words)).or_else(|| match (around, kind) {
            (_, Some(Head::Scope)) if !words.contains(&&b"="[..]) => class(&words),
            // What else has brackets there heads no method.
            (Some(Head::Scope), Some(Head::Function)) => {
                before(words.iter().position(|word| *word == b"("))
            }
            _ => None,
        });
        around = kind;
        name
    };
    heads.filter_map(name).collect()
}

/// The name of the class or enumeration that words head.
fn class(words: &[&[u8]]) -> Option<Vec<u8>> {
    let keyword = |word: &&[u8]| matches!(*word, b"class" | b"struct" | b"union" | b"enum");
    let first = words.iter().rposition(keyword)?;
    named_class(&words[first + 1..])
}
