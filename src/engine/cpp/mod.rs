//! C++ and Metal, read as far as a series needs: tokens, functions, macros.
//!
//! [`mod@lex`] cuts any bytes into tokens that, put together, are the bytes again.
//! [`function`] finds a function by its name, [`preprocess`] expands macros as
//! far as kernel instantiations need it. None of it is a compiler: what it
//! cannot read it reports, and it never guesses.

mod condition;
pub mod function;
pub mod lex;
pub mod preprocess;

pub use function::{FindError, Function, find};
pub use lex::{Kind, Token, lex, lex_line, lex_meaning, raw_string_end};

/// What of a condition begins with a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Its first branch.
    If,
    /// A later branch.
    Else,
    /// What is after it.
    EndIf,
}

impl Condition {
    /// Of a directive, given from its `#` on.
    #[must_use]
    pub fn of(directive: &[u8]) -> Option<Self> {
        let rest = directive[1..].trim_ascii_start();
        let end = rest.iter().position(|b| !b.is_ascii_alphabetic()).unwrap_or(rest.len());
        match &rest[..end] {
            b"if" | b"ifdef" | b"ifndef" => Some(Self::If),
            b"else" | b"elif" | b"elifdef" | b"elifndef" => Some(Self::Else),
            b"endif" => Some(Self::EndIf),
            _ => None,
        }
    }
}

/// The meaning-bearing tokens of a text, each with the place it has there:
/// what is left when comments and white space are dropped, preprocessor lines
/// kept as the tokens they hold and a line break (`"\n"`) after them, which
/// keeps `#define A` and a following `(x)` apart.
#[must_use]
pub fn meaning_at(text: &[u8]) -> Vec<(usize, &[u8])> {
    let mut out = Vec::new();
    for token in lex_meaning(text) {
        if token.kind == Kind::Directive {
            let line = token.of(text);
            let inside = lex_line(line).into_iter().filter(|t| t.kind.bears_meaning());
            out.extend(inside.map(|t| (token.start + t.start, t.of(line))));
            out.push((token.end, b"\n"));
        } else {
            out.push((token.start, token.of(text)));
        }
    }
    out
}

/// The meaning-bearing tokens of a text alone. Two texts with equal ones differ
/// in layout and comments at most.
#[must_use]
pub fn meaning(text: &[u8]) -> Vec<&[u8]> {
    meaning_at(text).into_iter().map(|(_, word)| word).collect()
}

/// The 1-based line on which the byte at `offset` stands.
#[must_use]
pub fn line_of(text: &[u8], offset: usize) -> usize {
    text[..offset.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_and_comments_mean_nothing() {
        let a = b"int f(int a) { return a+1; } // one\n";
        let b = b"int f(\n    int a) {\n  /* two */\n  return a + 1;\n}\n";
        assert_eq!(meaning(a), meaning(b));
    }

    #[test]
    fn preprocessor_lines_mean_something() {
        assert_ne!(meaning(b"#if A\nint x;\n#endif\n"), meaning(b"int x;\n"));
        assert_ne!(meaning(b"#define A\n(x)\n"), meaning(b"#define A (x)\n"));
        assert_eq!(meaning(b"#define A \\\n  (x) // why\n"), meaning(b"#define A (x)\n"));
    }

    #[test]
    fn operators_are_not_split() {
        assert_ne!(meaning(b"a+ ++b"), meaning(b"a++ +b"));
    }
}
