//! Files, line by line: what is text, and what a directive does.

use std::rc::Rc;

use super::super::condition;
use super::super::lex::{Kind, lex};
use super::super::line_of;
use super::macros::Macro;
use super::{ExpandError, INCLUDES, Trouble, Unit, Word};
use crate::snapshot::TreePath;

/// A branch of an `#if`.
#[derive(Clone, Copy, PartialEq)]
enum Branch {
    /// Its text counts.
    Taken,
    /// A later branch may still be taken.
    Waiting,
    /// One was taken, or the whole `#if` stands in text that does not count.
    Over,
}

impl Unit<'_> {
    pub(super) fn define(&mut self, text: &[u8]) -> Result<(), String> {
        let (name, found) = Macro::parse(&mut self.symbols, text)?;
        self.macros.insert(name, Rc::new(found));
        Ok(())
    }

    /// Reads a file that is known to be in the tree.
    pub(super) fn include(&mut self, path: &TreePath) -> Result<(), ExpandError> {
        if self.once.contains(path) {
            return Ok(());
        }
        let file = self.tree.file(path)?.ok_or_else(|| ExpandError::Missing(path.clone()))?;
        if !self.sources.read.contains(path) {
            self.sources.read.push(path.clone());
        }
        let text: &[u8] = &file.bytes;
        let mut branches: Vec<Branch> = Vec::new();
        let mut run: Vec<Word> = Vec::new();
        let mut begun = 0;
        let mut spaced = false;
        for token in lex(text) {
            let counts = branches.iter().all(|b| *b == Branch::Taken);
            match token.kind {
                Kind::Space | Kind::Comment => spaced = true,
                Kind::Directive => {
                    self.emit(std::mem::take(&mut run))
                        .map_err(|t| self.error(path, line_of(text, begun), t))?;
                    self.directive(path, token.of(text), counts, &mut branches).map_err(
                        |e| match e {
                            Stop::Here(t) => self.error(path, line_of(text, token.start), t),
                            Stop::Inside(e) => e,
                        },
                    )?;
                }
                _ if counts => {
                    if run.is_empty() {
                        begun = token.start;
                    }
                    let symbol = self.symbols.of(token.of(text));
                    run.push(Word { kind: token.kind, symbol, spaced, kept: false });
                    spaced = false;
                }
                _ => {}
            }
        }
        self.emit(run).map_err(|t| self.error(path, line_of(text, begun), t))?;
        if branches.is_empty() {
            Ok(())
        } else {
            let what = "an `#if` without its `#endif`".to_owned();
            Err(self.error(path, line_of(text, text.len()), what))
        }
    }

    fn directive(
        &mut self,
        path: &TreePath,
        line: &[u8],
        counts: bool,
        branches: &mut Vec<Branch>,
    ) -> Result<(), Stop> {
        let words = self.symbols.words(&line[1..]);
        let Some((name, rest)) = words.split_first() else { return Ok(()) };
        let name = self.symbols.spell(name.symbol).to_vec();
        // What follows the directive's name, as text.
        let after = line[1..].iter().position(|b| b.is_ascii_alphabetic()).map_or(1, |n| n + 1);
        let text = &line[(after + name.len()).min(line.len())..];
        match name.as_slice() {
            b"if" | b"ifdef" | b"ifndef" => {
                let branch = if !counts {
                    Branch::Over
                } else if self.holds(&name, rest, text)? {
                    Branch::Taken
                } else {
                    Branch::Waiting
                };
                branches.push(branch);
            }
            b"elif" | b"elifdef" | b"elifndef" | b"else" => {
                let before = branches.pop().ok_or("an `#else` without its `#if`".to_owned())?;
                let outer = branches.iter().all(|b| *b == Branch::Taken);
                let branch = match before {
                    Branch::Waiting if !outer => Branch::Over,
                    Branch::Waiting if name == b"else" || self.holds(&name[2..], rest, text)? => {
                        Branch::Taken
                    }
                    Branch::Waiting => Branch::Waiting,
                    Branch::Taken | Branch::Over => Branch::Over,
                };
                branches.push(branch);
            }
            b"endif" => {
                branches.pop().ok_or("an `#endif` without its `#if`".to_owned())?;
            }
            _ if !counts => {}
            b"define" => self.define(text)?,
            b"undef" => {
                if let Some(word) = rest.first() {
                    self.macros.remove(word.symbol);
                }
            }
            b"include" | b"import" => self.include_named(path, text)?,
            b"pragma" => {
                let once = rest.first().is_some_and(|w| self.symbols.spell(w.symbol) == b"once");
                if once && !self.once.contains(path) {
                    self.once.push(path.clone());
                }
            }
            b"error" => {
                return Err(format!("#error{}", String::from_utf8_lossy(text)).into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the condition of an `if`, `ifdef` or `ifndef` holds.
    fn holds(&mut self, name: &[u8], words: &[Word], text: &[u8]) -> Result<bool, Stop> {
        if name != b"if" {
            let defined = words.first().is_some_and(|w| self.macros.has(w.symbol));
            return Ok(defined == (name == b"ifdef"));
        }
        let mut ready: Vec<Word> = Vec::new();
        let mut i = 0;
        while i < words.len() {
            if self.symbols.spell(words[i].symbol) == b"defined" {
                let open = words.get(i + 1).is_some_and(|w| self.symbols.spell(w.symbol) == b"(");
                let named = words.get(i + 1 + usize::from(open));
                let is = named.is_some_and(|w| self.macros.has(w.symbol));
                let symbol = self.symbols.of(if is { b"1" } else { b"0" });
                ready.push(Word { kind: Kind::Number, symbol, spaced: true, kept: false });
                i += if open { 4 } else { 2 };
            } else {
                ready.push(words[i]);
                i += 1;
            }
        }
        let ready = self.expanded(&ready, &[])?;
        let spelled: Vec<String> = ready
            .iter()
            .map(|w| String::from_utf8_lossy(self.symbols.spell(w.symbol)).into_owned())
            .collect();
        let spelled: Vec<&str> = spelled.iter().map(String::as_str).collect();
        condition::value(&spelled).map(|v| v != 0).map_err(|_| {
            let text = String::from_utf8_lossy(text);
            format!("the condition `{}` is no integer expression", text.trim()).into()
        })
    }

    fn include_named(&mut self, from: &TreePath, text: &[u8]) -> Result<(), Stop> {
        let text = String::from_utf8_lossy(text);
        let text = text.trim();
        let name = match text.as_bytes().first() {
            Some(b'"') => text[1..].split('"').next(),
            Some(b'<') => text[1..].split('>').next(),
            _ => return Err(format!("cannot follow `#include {text}`").into()),
        };
        let name = name.unwrap_or_default();
        let folder = from.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
        let found = [name.to_owned(), format!("{folder}/{name}")]
            .iter()
            .filter_map(|n| plain(n))
            .find(|p| self.tree.mode(p).is_some());
        let Some(path) = found else {
            let absent = text.to_owned();
            if !self.sources.absent.contains(&absent) {
                self.sources.absent.push(absent);
            }
            return Ok(());
        };
        self.depth += 1;
        if self.depth > INCLUDES {
            return Err(format!("includes nest deeper than {INCLUDES}").into());
        }
        self.include(&path).map_err(Stop::Inside)?;
        self.depth -= 1;
        Ok(())
    }
}

/// The path without its `.` and `..`, where it stays inside the tree.
fn plain(name: &str) -> Option<TreePath> {
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    TreePath::new(&parts.join("/")).ok()
}

/// Why a directive ends the expansion.
enum Stop {
    /// Its own line is wrong.
    Here(Trouble),
    /// A file it includes is.
    Inside(ExpandError),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Stop::Here(trouble)
    }
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Stop::Here(Trouble::What(what))
    }
}
