//! Bytes to tokens, every byte in exactly one of them.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// White space, spliced line ends (`\` before a line break) included.
    Space,
    /// `// …` without its line break, or `/* … */`.
    Comment,
    /// A whole preprocessor line from `#`, its continuation lines included,
    /// without the line break that ends it.
    Directive,
    /// A name or a keyword.
    Identifier,
    /// A number, as C++ preprocessing numbers go (`1'000`, `0x1p-3f`).
    Number,
    /// A string literal with its prefix, raw or not.
    Text,
    /// A character literal with its prefix.
    Character,
    /// An operator or a bracket, the longest that fits.
    Punctuation,
    /// A byte that begins nothing C++ knows.
    Other,
}

impl Kind {
    /// Whether it is more than layout.
    #[must_use]
    pub fn bears_meaning(self) -> bool {
        !matches!(self, Self::Space | Self::Comment)
    }
}

/// A token: what it is, and the bytes it spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// First byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Token {
    /// The token's bytes in the text it was cut from.
    #[must_use]
    pub fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.start..self.end]
    }
}

/// Cuts a file into tokens. Never fails: an unfinished comment goes to the
/// end, an unfinished literal to the end of its line.
#[must_use]
pub fn lex(text: &[u8]) -> Vec<Token> {
    Lexer { text, at: 0, line: Line::Fresh }.run()
}

/// The tokens that bear meaning: [`lex`] without white space and comments.
#[must_use]
pub fn lex_meaning(text: &[u8]) -> Vec<Token> {
    Lexer { text, at: 0, line: Line::Fresh }.run_for(Kind::bears_meaning)
}

/// As [`lex`], for the inside of a directive: a `#` begins no new one.
#[must_use]
pub fn lex_line(text: &[u8]) -> Vec<Token> {
    Lexer { text, at: 0, line: Line::OfDirective }.run()
}

/// What stands on the current line so far.
#[derive(Clone, Copy, PartialEq)]
enum Line {
    /// White space and comments alone: a `#` begins a directive.
    Fresh,
    /// Something.
    Begun,
    /// The text is the inside of a directive.
    OfDirective,
}

struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    line: Line,
}

/// The length of the operator that a text begins with, the longest that fits; 1
/// where it is a byte or none.
fn operator(text: &[u8]) -> usize {
    match text {
        [b'<', b'<', b'=', ..]
        | [b'>', b'>', b'=', ..]
        | [b'<', b'=', b'>', ..]
        | [b'-', b'>', b'*', ..]
        | [b'.', b'.', b'.', ..] => 3,
        [b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/', b'=', ..]
        | [b'%' | b'&' | b'|' | b'^', b'=', ..]
        | [b'<', b'<', ..]
        | [b'>', b'>', ..]
        | [b'&', b'&', ..]
        | [b'|', b'|', ..]
        | [b'+', b'+', ..]
        | [b'-', b'-' | b'>', ..]
        | [b':', b':', ..]
        | [b'#', b'#', ..]
        | [b'.', b'*', ..] => 2,
        _ => 1,
    }
}

fn begins_name(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b == b'$' || b >= 0x80
}

/// The bytes that a name goes on with: most of a text is names.
const IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        table[b] = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
        b += 1;
    }
    table
};

fn goes_on_name(b: u8) -> bool {
    IN_NAME[b as usize]
}

impl Lexer<'_> {
    fn run(self) -> Vec<Token> {
        self.run_for(|_| true)
    }

    fn run_for(mut self, wanted: impl Fn(Kind) -> bool) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(self.text.len() / 4);
        while let Some(first) = self.byte(0) {
            let start = self.at;
            let kind = self.step(first);
            if kind.bears_meaning() && self.line == Line::Fresh {
                self.line = Line::Begun;
            }
            if wanted(kind) {
                tokens.push(Token { kind, start, end: self.at });
            }
        }
        tokens
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    /// The length of a line break at `ahead`, 0 where none is.
    fn line_break(&self, ahead: usize) -> usize {
        match (self.byte(ahead), self.byte(ahead + 1)) {
            (Some(b'\n'), _) => 1,
            (Some(b'\r'), Some(b'\n')) => 2,
            _ => 0,
        }
    }

    /// The length of `\` and a line break here, 0 where none is.
    fn splice(&self) -> usize {
        match self.byte(0) {
            Some(b'\\') => match self.line_break(1) {
                0 => 0,
                n => n + 1,
            },
            _ => 0,
        }
    }

    /// Moves past one token, at least a byte, and says what it was.
    fn step(&mut self, first: u8) -> Kind {
        if first.is_ascii_whitespace() || first == 0x0b || self.splice() > 0 {
            return self.space();
        }
        // Most tokens that are no names; no longer operator begins with them.
        if matches!(first, b'(' | b')' | b'{' | b'}' | b'[' | b']' | b',' | b';') {
            self.at += 1;
            return Kind::Punctuation;
        }
        match (first, self.byte(1)) {
            (b'/', Some(b'/' | b'*')) => return self.comment(),
            (b'#', _) if self.line == Line::Fresh => return self.directive(),
            (b'"', _) => return self.quoted(b'"', Kind::Text),
            (b'\'', _) => return self.quoted(b'\'', Kind::Character),
            (b'0'..=b'9', _) | (b'.', Some(b'0'..=b'9')) => return self.number(),
            _ => {}
        }
        if begins_name(first) {
            return self.name();
        }
        self.at += operator(self.rest());
        if first.is_ascii_punctuation() { Kind::Punctuation } else { Kind::Other }
    }

    fn space(&mut self) -> Kind {
        while let Some(b) = self.byte(0) {
            let spliced = self.splice();
            if spliced > 0 {
                self.at += spliced;
            } else if b.is_ascii_whitespace() || b == 0x0b {
                if b == b'\n' && self.line == Line::Begun {
                    self.line = Line::Fresh;
                }
                self.at += 1;
            } else {
                break;
            }
        }
        Kind::Space
    }

    fn comment(&mut self) -> Kind {
        if self.byte(1) == Some(b'*') {
            let body = &self.text[self.at + 2..];
            let length = memchr::memmem::find(body, b"*/").map_or(body.len(), |n| n + 2);
            self.at += 2 + length;
        } else {
            // Up to a line break that is not spliced.
            while let Some(next) = memchr::memchr3(b'\n', b'\r', b'\\', self.rest()) {
                self.at += next;
                if self.line_break(0) > 0 {
                    return Kind::Comment;
                }
                self.at += self.splice().max(1);
            }
            self.at = self.text.len();
        }
        Kind::Comment
    }

    fn directive(&mut self) -> Kind {
        self.at += 1;
        while let Some(b) = self.byte(0) {
            let spliced = self.splice();
            if spliced > 0 {
                self.at += spliced;
            } else if self.line_break(0) > 0 {
                break;
            } else {
                match (b, self.byte(1)) {
                    (b'/', Some(b'/' | b'*')) => {
                        self.comment();
                    }
                    (b'"', _) => {
                        self.quoted(b'"', Kind::Text);
                    }
                    _ => self.at += 1,
                }
            }
        }
        Kind::Directive
    }

    /// A literal up to its closing quote, or to the end of its line.
    fn quoted(&mut self, quote: u8, kind: Kind) -> Kind {
        self.at += 1;
        while let Some(b) = self.byte(0) {
            if b == b'\\' {
                self.at += 1 + self.line_break(1).max(usize::from(self.byte(1).is_some()));
            } else if self.line_break(0) > 0 {
                break;
            } else {
                self.at += 1;
                if b == quote {
                    break;
                }
            }
        }
        kind
    }

    fn number(&mut self) -> Kind {
        self.at += 1;
        while let Some(b) = self.byte(0) {
            match (b, self.byte(1)) {
                (b'e' | b'E' | b'p' | b'P', Some(b'+' | b'-')) => self.at += 2,
                (b'\'', Some(next)) if goes_on_name(next) => self.at += 2,
                (b'.', _) => self.at += 1,
                _ if goes_on_name(b) => self.at += 1,
                _ => break,
            }
        }
        Kind::Number
    }

    /// A name, or the prefix of a literal with the literal.
    fn name(&mut self) -> Kind {
        let start = self.at;
        self.at += self.rest().iter().take_while(|b| goes_on_name(**b)).count();
        match (&self.text[start..self.at], self.byte(0)) {
            (b"R" | b"LR" | b"uR" | b"UR" | b"u8R", Some(b'"')) => self.raw_string(),
            (b"L" | b"u" | b"U" | b"u8", Some(b'"')) => self.quoted(b'"', Kind::Text),
            (b"L" | b"u" | b"U" | b"u8", Some(b'\'')) => self.quoted(b'\'', Kind::Character),
            _ => Kind::Identifier,
        }
    }

    /// `"delimiter( … )delimiter"`, or an ordinary literal where it is none.
    fn raw_string(&mut self) -> Kind {
        let Some(close) = close_of_raw(self.rest()) else {
            return self.quoted(b'"', Kind::Text);
        };
        // `"delimiter(` is as long as `)delimiter"`.
        let body = &self.rest()[close.len()..];
        let length = memchr::memmem::find(body, &close).map(|n| n + close.len());
        self.at += close.len() + length.unwrap_or(body.len());
        Kind::Text
    }
}

/// What closes a raw string, given its text from the quote on; nothing where the
/// text begins none.
fn close_of_raw(quoted: &[u8]) -> Option<Vec<u8>> {
    let after = quoted.strip_prefix(b"\"")?;
    let delimiter = &after[..after.iter().take(17).position(|b| *b == b'(')?];
    let odd = |b: &u8| b.is_ascii_whitespace() || matches!(b, b')' | b'\\');
    (!delimiter.iter().any(odd)).then(|| [b")", delimiter, b"\""].concat())
}

/// What ends a raw string, given a text token or its beginning; nothing where it is no
/// raw string.
#[must_use]
pub fn raw_string_end(token: &[u8]) -> Option<Vec<u8>> {
    let quote = token.iter().position(|b| *b == b'"')?;
    token[..quote].ends_with(b"R").then(|| close_of_raw(&token[quote..]))?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<(Kind, &str)> {
        lex(text.as_bytes())
            .iter()
            .filter(|t| t.kind != Kind::Space)
            .map(|t| (t.kind, &text[t.start..t.end]))
            .collect()
    }

    #[test]
    fn literals_and_comments_are_whole() {
        use Kind::*;
        assert_eq!(
            words("u8R\"x( \" )\" )x\" '\\'' \"a\\\"b\" 1'000.5e+3f /* \" */ // ' \\\n more\n.5"),
            [
                (Text, "u8R\"x( \" )\" )x\""),
                (Character, "'\\''"),
                (Text, "\"a\\\"b\""),
                (Number, "1'000.5e+3f"),
                (Comment, "/* \" */"),
                (Comment, "// ' \\\n more"),
                (Number, ".5"),
            ]
        );
    }

    #[test]
    fn a_directive_goes_to_the_end_of_its_last_line() {
        use Kind::*;
        assert_eq!(
            words("/* c */ #define a(x) \\\n  #x \"//\" /* two\nlines */ y\nz #w"),
            [
                (Comment, "/* c */"),
                (Directive, "#define a(x) \\\n  #x \"//\" /* two\nlines */ y"),
                (Identifier, "z"),
                (Punctuation, "#"),
                (Identifier, "w"),
            ]
        );
    }

    #[test]
    fn unfinished_text_ends_somewhere() {
        for text in ["\"abc\nd", "'", "/* abc", "R\"(abc", "R\"abc", "\\", "#define \\", "\"\\"] {
            assert_eq!(lex(text.as_bytes()).last().map(|t| t.end), Some(text.len()), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn tokens_put_together_are_the_text(
            text in proptest::collection::vec(
                prop_oneof![
                    proptest::sample::select(b"\"'\\/*#\n\r(){}<>:R_a1 .e+".to_vec()),
                    any::<u8>(),
                ],
                0..200,
            )
        ) {
            for tokens in [lex(&text), lex_line(&text)] {
                let mut at = 0;
                for token in tokens {
                    prop_assert_eq!(token.start, at);
                    prop_assert!(token.end > at);
                    at = token.end;
                }
                prop_assert_eq!(at, text.len());
            }
        }
    }
}
