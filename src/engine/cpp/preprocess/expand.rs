//! Expanding words: macros replaced, their results read again.

use std::borrow::Cow;

use super::super::lex::{Kind, lex_line};
use super::macros::{Macro, Part};
use super::{CLOSE, COMMA, Expanded, OPEN, Symbol, TOKENS, Trouble, Unit, Word};

/// Words still to be read: of the text, or of a macro's result.
struct Frame {
    words: Vec<Word>,
    at: usize,
    /// The macro whose result this is; while it is read, its name stays.
    owner: Option<Symbol>,
}

/// How deep arguments may nest; expanding one recurses.
const DEPTH: usize = 200;

impl Unit<'_> {
    /// Expands words of the text and hands them to the sink.
    pub(super) fn emit(&mut self, words: Vec<Word>) -> Result<(), Trouble> {
        // Most of a header names no macro at all.
        if !words.iter().any(|w| self.macros.has(w.symbol)) {
            for word in words {
                let text = self.symbols.spell(word.symbol);
                (self.sink)(Expanded { kind: word.kind, text });
            }
            return Ok(());
        }
        let mut frames = vec![Frame { words, at: 0, owner: None }];
        while let Some(word) = self.next(&mut frames, &[])? {
            let text = self.symbols.spell(word.symbol);
            (self.sink)(Expanded { kind: word.kind, text });
        }
        Ok(())
    }

    /// Expands words on their own: an argument, or a condition.
    pub(super) fn expanded<'w>(
        &mut self,
        words: &'w [Word],
        active: &[Symbol],
    ) -> Result<Cow<'w, [Word]>, Trouble> {
        if !words.iter().any(|w| self.macros.has(w.symbol)) {
            return Ok(words.into());
        }
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Trouble::What("macro arguments nest too deep".into()));
        }
        let mut frames = vec![Frame { words: words.to_vec(), at: 0, owner: None }];
        let mut out = Vec::new();
        while let Some(word) = self.next(&mut frames, active)? {
            out.push(word);
        }
        self.depth -= 1;
        Ok(out.into())
    }

    /// The next word that no macro replaces.
    fn next(
        &mut self,
        frames: &mut Vec<Frame>,
        active: &[Symbol],
    ) -> Result<Option<Word>, Trouble> {
        loop {
            self.spend(1)?;
            let Some(frame) = frames.last_mut() else { return Ok(None) };
            let Some(&word) = frame.words.get(frame.at) else {
                frames.pop();
                continue;
            };
            frame.at += 1;
            if word.kind != Kind::Identifier || word.kept {
                return Ok(Some(word));
            }
            let Some(found) = self.macros.get(word.symbol).cloned() else {
                return Ok(Some(word));
            };
            let is_active = frames.iter().any(|f| f.owner == Some(word.symbol))
                || active.contains(&word.symbol);
            if is_active {
                return Ok(Some(Word { kept: true, ..word }));
            }
            let arguments = match found.params {
                None => Vec::new(),
                Some(_) if !call_follows(frames) => return Ok(Some(word)),
                Some(_) => self.arguments(frames, word.symbol, &found)?,
            };
            let inside: Vec<Symbol> = match arguments.is_empty() {
                true => Vec::new(),
                false => {
                    active.iter().copied().chain(frames.iter().filter_map(|f| f.owner)).collect()
                }
            };
            let result = self.result(&found, &arguments, &inside, word.spaced)?;
            frames.push(Frame { words: result, at: 0, owner: Some(word.symbol) });
        }
    }

    fn spend(&mut self, tokens: usize) -> Result<(), Trouble> {
        self.spent += tokens;
        if self.spent > TOKENS { Err(Trouble::TooLarge) } else { Ok(()) }
    }

    /// The arguments of a call whose `(` comes next.
    fn arguments(
        &mut self,
        frames: &mut Vec<Frame>,
        name: Symbol,
        of: &Macro,
    ) -> Result<Vec<Vec<Word>>, Trouble> {
        let params = of.params.expect("only a function-like macro is called");
        let mut arguments: Vec<Vec<Word>> = vec![Vec::new()];
        let mut depth = 0_usize;
        loop {
            self.spend(1)?;
            let Some(frame) = frames.last_mut() else {
                let name = String::from_utf8_lossy(self.symbols.spell(name)).into_owned();
                return Err(Trouble::What(format!(
                    "the call of macro `{name}` has no `)` before the next directive"
                )));
            };
            let Some(&word) = frame.words.get(frame.at) else {
                frames.pop();
                continue;
            };
            frame.at += 1;
            let rest_is_one = params.variadic && arguments.len() == params.count;
            match word.symbol {
                OPEN => {
                    depth += 1;
                    if depth == 1 {
                        continue;
                    }
                }
                CLOSE => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                COMMA if depth == 1 && !rest_is_one => {
                    arguments.push(Vec::new());
                    continue;
                }
                _ => {}
            }
            arguments.last_mut().expect("it begins with one").push(word);
        }
        if params.count == 0 && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if params.variadic && arguments.len() + 1 == params.count {
            arguments.push(Vec::new());
        }
        if arguments.len() != params.count {
            let name = String::from_utf8_lossy(self.symbols.spell(name)).into_owned();
            return Err(Trouble::What(format!(
                "macro `{name}` takes {} arguments and is given {}",
                params.count,
                arguments.len()
            )));
        }
        Ok(arguments)
    }

    /// A macro's body with its arguments in place.
    fn result(
        &mut self,
        of: &Macro,
        arguments: &[Vec<Word>],
        active: &[Symbol],
        spaced: bool,
    ) -> Result<Vec<Word>, Trouble> {
        let mut ready: Vec<Option<Cow<'_, [Word]>>> = vec![None; arguments.len()];
        let mut out: Vec<Word> = Vec::with_capacity(of.body.len());
        // Where the left operand of a `##` begins, while one is pending.
        let mut paste: Option<usize> = None;
        for part in &of.body {
            let begin = out.len();
            match *part {
                Part::Paste => {
                    paste = Some(out.len());
                    continue;
                }
                Part::Word(word) => out.push(word),
                Part::Raw { index, spaced } => push_spaced(&mut out, &arguments[index], spaced),
                Part::Argument { index, spaced } => {
                    if ready[index].is_none() {
                        ready[index] = Some(self.expanded(&arguments[index], active)?);
                    }
                    let words = ready[index].as_deref().unwrap_or_default();
                    push_spaced(&mut out, words, spaced);
                }
                Part::Spelled { index, spaced } => {
                    let text = self.spelled(&arguments[index]);
                    let symbol = self.symbols.of(&text);
                    out.push(Word { kind: Kind::Text, symbol, spaced, kept: false });
                }
            }
            if let Some(at) = paste.take() {
                self.paste(&mut out, at, begin);
            }
        }
        if let Some(first) = out.first_mut() {
            first.spaced = spaced;
        }
        self.spend(out.len())?;
        Ok(out)
    }

    /// Joins the word before `at` with the one at `begin`. With nothing on one
    /// side the other stays; a comma before an empty `__VA_ARGS__` goes, as
    /// compilers do.
    fn paste(&mut self, out: &mut Vec<Word>, at: usize, begin: usize) {
        if at == 0 {
            return;
        }
        let left = out[at - 1];
        let left_text = self.symbols.spell(left.symbol).to_vec();
        if begin == out.len() {
            if left_text == b"," {
                out.truncate(at - 1);
            }
            return;
        }
        if left_text == b"," {
            return;
        }
        let joined = [left_text.as_slice(), self.symbols.spell(out[begin].symbol)].concat();
        let pieces = lex_line(&joined);
        let words: Vec<Word> = pieces
            .iter()
            .enumerate()
            .map(|(i, t)| Word {
                kind: t.kind,
                symbol: self.symbols.of(t.of(&joined)),
                spaced: i == 0 && left.spaced,
                kept: false,
            })
            .collect();
        out.splice(at - 1..=begin, words);
    }

    /// The spelling of an argument as a string literal.
    fn spelled(&self, words: &[Word]) -> Vec<u8> {
        let mut text = vec![b'"'];
        for (i, word) in words.iter().enumerate() {
            if i > 0 && word.spaced {
                text.push(b' ');
            }
            let literal = matches!(word.kind, Kind::Text | Kind::Character);
            for byte in self.symbols.spell(word.symbol) {
                if literal && matches!(byte, b'"' | b'\\') {
                    text.push(b'\\');
                }
                text.push(*byte);
            }
        }
        text.push(b'"');
        text
    }
}

/// The next word, wherever it stands, is a `(`.
fn call_follows(frames: &[Frame]) -> bool {
    frames.iter().rev().find_map(|f| f.words.get(f.at)).is_some_and(|w| w.symbol == OPEN)
}

fn push_spaced(out: &mut Vec<Word>, words: &[Word], spaced: bool) {
    let begin = out.len();
    out.extend_from_slice(words);
    if let Some(first) = out.get_mut(begin) {
        first.spaced = spaced;
    }
}
