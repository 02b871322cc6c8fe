//! A preprocessor, as far as listing kernel instantiations needs one: object
//! and function macros, `#`, `##`, variable arguments, conditions, and
//! includes that the tree itself holds.
//!
//! It does what the standard says for what it knows. What it does not know
//! (an include by macro, a condition that is no integer expression, a macro
//! call that a directive cuts in two) is an error or is listed, never passed
//! over.

mod directive;
mod expand;
mod macros;

use foldhash::HashMap;

use crate::snapshot::{ReadError, Tree, TreePath};

use super::lex::Kind;
use macros::Macro;

/// A spelling, once for every place it stands at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Symbol(u32);

/// A token without its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    kind: Kind,
    symbol: Symbol,
    /// White space stands before it.
    spaced: bool,
    /// It named a macro while that macro was being expanded, and stays.
    kept: bool,
}

/// A token of the expanded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expanded<'s> {
    /// What it is.
    pub kind: Kind,
    /// Its spelling.
    pub text: &'s [u8],
}

/// What an expansion rested on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The files read, in the order they were first read.
    pub read: Vec<TreePath>,
    /// Includes that the tree does not hold, as written: the system's headers
    /// in angle brackets, and what is missing in quotes.
    pub absent: Vec<String>,
}

/// Why a file cannot be expanded.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    /// The file to expand is not in the tree.
    #[error("`{0}` is not in this tree")]
    Missing(TreePath),
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A line cannot be understood.
    #[error("`{file}` line {line}: {what}")]
    Line {
        /// The file.
        file: TreePath,
        /// 1-based.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// The macros give more text than any real file does.
    #[error("`{file}` expands to more than {limit} tokens; is a macro doubling itself?")]
    TooLarge {
        /// The file.
        file: TreePath,
        /// The most tokens an expansion may give.
        limit: usize,
    },
}

/// The most tokens an expansion may go through. All of MLX's quantized
/// instantiations need about two million.
const TOKENS: usize = 8_000_000;

/// The deepest nesting of includes.
const INCLUDES: usize = 64;

/// Macros that Apple's compiler defines for Metal 3.1, the oldest language
/// version MLX is built for.
pub const METAL: [(&str, &str); 2] = [("__METAL__", "1"), ("__METAL_VERSION__", "310")];

/// Expands `file` of `tree` with `defines` set, and hands every token of the
/// result to `sink`.
///
/// # Errors
/// A file is missing or cannot be read, a line cannot be understood, or the
/// result is too large.
pub fn expand(
    tree: &dyn Tree,
    file: &TreePath,
    defines: &[(&str, &str)],
    sink: &mut dyn FnMut(Expanded<'_>),
) -> Result<Sources, ExpandError> {
    let mut unit = Unit {
        tree,
        root: file.clone(),
        symbols: Symbols::new(),
        macros: Macros::default(),
        once: Vec::new(),
        sources: Sources::default(),
        spent: 0,
        depth: 0,
        sink,
    };
    for (name, body) in defines {
        let line = format!("{name} {body}");
        unit.define(line.as_bytes()).map_err(|what| unit.error(file, 0, what))?;
    }
    unit.include(file)?;
    Ok(unit.sources)
}

/// One translation unit while it is expanded.
struct Unit<'t> {
    tree: &'t dyn Tree,
    root: TreePath,
    symbols: Symbols,
    macros: Macros,
    /// Files that said `#pragma once`.
    once: Vec<TreePath>,
    sources: Sources,
    spent: usize,
    depth: usize,
    sink: &'t mut dyn FnMut(Expanded<'_>),
}

/// The macros that are defined, by the number of their name's spelling.
#[derive(Default)]
struct Macros(Vec<Option<std::rc::Rc<Macro>>>);

impl Macros {
    fn get(&self, name: Symbol) -> Option<&std::rc::Rc<Macro>> {
        self.0.get(name.0 as usize)?.as_ref()
    }

    fn has(&self, name: Symbol) -> bool {
        self.get(name).is_some()
    }

    fn insert(&mut self, name: Symbol, found: std::rc::Rc<Macro>) {
        let at = name.0 as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(found);
    }

    fn remove(&mut self, name: Symbol) {
        if let Some(slot) = self.0.get_mut(name.0 as usize) {
            *slot = None;
        }
    }
}

/// What went wrong while expanding; the place is added where it is known.
enum Trouble {
    TooLarge,
    What(String),
}

impl From<String> for Trouble {
    fn from(what: String) -> Self {
        Trouble::What(what)
    }
}

impl Unit<'_> {
    fn error(&self, file: &TreePath, line: usize, trouble: impl Into<Trouble>) -> ExpandError {
        match trouble.into() {
            Trouble::TooLarge => ExpandError::TooLarge { file: self.root.clone(), limit: TOKENS },
            Trouble::What(what) => ExpandError::Line { file: file.clone(), line, what },
        }
    }
}

/// Spellings by number.
struct Symbols {
    spellings: Vec<std::rc::Rc<[u8]>>,
    numbers: HashMap<std::rc::Rc<[u8]>, Symbol>,
}

/// What takes a macro's call apart is asked of every word.
const OPEN: Symbol = Symbol(0);
const CLOSE: Symbol = Symbol(1);
const COMMA: Symbol = Symbol(2);

impl Symbols {
    fn new() -> Self {
        let mut symbols = Self { spellings: Vec::new(), numbers: HashMap::default() };
        for (spelling, symbol) in [(b"(", OPEN), (b")", CLOSE), (b",", COMMA)] {
            assert_eq!(symbols.of(spelling), symbol, "they are the first");
        }
        symbols
    }

    fn of(&mut self, spelling: &[u8]) -> Symbol {
        if let Some(symbol) = self.numbers.get(spelling) {
            return *symbol;
        }
        let number = u32::try_from(self.spellings.len()).expect("fewer than the token limit");
        let spelling: std::rc::Rc<[u8]> = spelling.into();
        self.spellings.push(spelling.clone());
        self.numbers.insert(spelling, Symbol(number));
        Symbol(number)
    }

    fn spell(&self, symbol: Symbol) -> &[u8] {
        &self.spellings[symbol.0 as usize]
    }

    /// The words of a text; comments are white space.
    fn words(&mut self, text: &[u8]) -> Vec<Word> {
        let mut words = Vec::new();
        let mut spaced = false;
        for token in super::lex_line(text) {
            if matches!(token.kind, Kind::Space | Kind::Comment) {
                spaced = true;
            } else {
                let symbol = self.of(token.of(text));
                words.push(Word { kind: token.kind, symbol, spaced, kept: false });
                spaced = false;
            }
        }
        words
    }
}

#[cfg(test)]
mod tests;
