//! Macro definitions, read once into the parts that a call puts together.

use super::super::lex::Kind;
use super::{Symbol, Symbols, Word};

/// A macro.
#[derive(Debug)]
pub(super) struct Macro {
    /// The parameters of a function-like one.
    pub params: Option<Params>,
    /// What stands in its place.
    pub body: Vec<Part>,
}

/// How many parameters there are, and whether the last takes what is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    pub count: usize,
    pub variadic: bool,
}

/// A part of a macro's body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// A word that stands as it is.
    Word(Word),
    /// An argument, expanded first.
    Argument { index: usize, spaced: bool },
    /// An argument as written, next to a `##`.
    Raw { index: usize, spaced: bool },
    /// `#` and an argument: its spelling as a string.
    Spelled { index: usize, spaced: bool },
    /// `##`.
    Paste,
}

impl Macro {
    /// Reads what follows `#define`.
    pub(super) fn parse(symbols: &mut Symbols, text: &[u8]) -> Result<(Symbol, Macro), String> {
        let words = symbols.words(text);
        let Some((name, mut rest)) =
            words.split_first().filter(|(n, _)| n.kind == Kind::Identifier)
        else {
            return Err("a `#define` without a name".into());
        };
        let mut names = Vec::new();
        let mut params = None;
        // A list of parameters begins right after the name.
        if rest.first().is_some_and(|w| symbols.spell(w.symbol) == b"(" && !w.spaced) {
            let close = rest
                .iter()
                .position(|w| symbols.spell(w.symbol) == b")")
                .ok_or("a list of macro parameters without its `)`")?;
            let mut variadic = false;
            for word in &rest[1..close] {
                match (word.kind, symbols.spell(word.symbol)) {
                    (_, b",") => {}
                    (_, b"...") => {
                        variadic = true;
                        names.push(symbols.of(b"__VA_ARGS__"));
                    }
                    (Kind::Identifier, _) if !variadic => names.push(word.symbol),
                    _ => return Err("a macro parameter that is no name".into()),
                }
            }
            params = Some(Params { count: names.len(), variadic });
            rest = &rest[close + 1..];
        }
        let body = parts(symbols, rest, &names, params.is_some())?;
        Ok((name.symbol, Macro { params, body }))
    }
}

fn parts(
    symbols: &Symbols,
    words: &[Word],
    names: &[Symbol],
    is_function: bool,
) -> Result<Vec<Part>, String> {
    let index = |w: &Word| names.iter().position(|n| *n == w.symbol);
    let pastes = |i: usize| words.get(i).is_some_and(|w| symbols.spell(w.symbol) == b"##");
    if pastes(0) || !words.is_empty() && pastes(words.len() - 1) {
        return Err("a `##` at the end of a macro".into());
    }
    let mut body = Vec::with_capacity(words.len());
    let mut i = 0;
    while i < words.len() {
        let word = &words[i];
        let spaced = word.spaced;
        if pastes(i) {
            body.push(Part::Paste);
        } else if is_function && symbols.spell(word.symbol) == b"#" {
            let index = words
                .get(i + 1)
                .and_then(index)
                .ok_or("a `#` before something that is no macro parameter")?;
            body.push(Part::Spelled { index, spaced });
            i += 1;
        } else if let Some(index) = index(word) {
            let raw = pastes(i + 1) || i > 0 && pastes(i - 1);
            body.push(if raw {
                Part::Raw { index, spaced }
            } else {
                Part::Argument { index, spaced }
            });
        } else {
            body.push(Part::Word(*word));
        }
        i += 1;
    }
    Ok(body)
}
