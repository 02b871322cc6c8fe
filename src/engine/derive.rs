//! Derived functions: copies that must follow their original.
//!
//! The series holds the rule, never the text. Applying a rule finds the
//! function in the tree at hand, copies it under another name with single
//! tokens replaced, and puts the copy into the same file. Comments, strings
//! and preprocessor lines of the copy are the original's, untouched; so is its
//! layout. A comment above the original stays with the original alone.

use serde::{Deserialize, Serialize};

use crate::contract::Acknowledgement;
use crate::cpp::{self, FindError, Function, Kind, Token, function, lex};
use crate::snapshot::{File, ObjectId, ReadError, Snapshot, Tree, TreePath};

/// A rule as the series stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The file that holds the original and gets the copy.
    pub file: TreePath,
    /// The original's name; with its namespace or class where the name alone
    /// is not unique.
    pub function: String,
    /// The copy's name. The original's name is replaced wherever it stands as
    /// a token of the function, so that a function that calls itself still
    /// does.
    pub name: String,
    /// What else differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<Replacement>,
    /// Where the copy goes.
    #[serde(default)]
    pub place: Place,
    /// Targets at which a person looked at the changed original and accepted
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledged: Vec<Acknowledgement>,
}

/// Tokens to replace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// A token, or several that follow each other with nothing but white
    /// space between them.
    pub from: String,
    /// What stands there instead; empty takes the tokens away.
    pub to: String,
}

/// Where a copy goes: `"after"`, `"before"`, `"end"` or `{ after = "name" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`place` is `\"after\"`, `\"before\"`, `\"end\"` or `{ after = \"another function\" }`"
)]
pub enum Place {
    /// Next to the original, or at the end of the file.
    Fixed(Fixed),
    /// Right after another function of the file.
    Behind(Behind),
}

impl Default for Place {
    fn default() -> Self {
        Place::Fixed(Fixed::After)
    }
}

/// A place that needs no other function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fixed {
    /// Right after the original.
    After,
    /// Before the original and the comment that stands right above it.
    Before,
    /// At the end of the file.
    End,
}

/// The function that a copy follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Behind {
    /// Its name.
    pub after: String,
}

/// What applying a rule did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Derived {
    /// The file.
    pub file: TreePath,
    /// The original's name.
    pub function: String,
    /// The copy's name.
    pub name: String,
    /// Lines of the original in the file before, 1-based, the last included.
    pub source_lines: (usize, usize),
    /// Lines of the copy in the file after, 1-based, the last included.
    pub lines: (usize, usize),
    /// How often each replacement of the rule was made, in the rule's order.
    pub replaced: Vec<usize>,
    /// The blob id of the original's text.
    pub source: ObjectId,
    /// The blob id of the copy's text.
    pub text: ObjectId,
}

/// Why a rule cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    /// The rule makes no sense, whatever the file holds.
    #[error("the rule that derives `{name}`: {what}")]
    Rule {
        /// The copy's name.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file is not in the tree.
    #[error("`{file}`, from which `{name}` is derived, is not in this tree")]
    NoFile {
        /// The file.
        file: TreePath,
        /// The copy's name.
        name: String,
    },
    /// The original, or the function to follow, is not there once.
    #[error("`{file}`: {source}")]
    Find {
        /// The file.
        file: TreePath,
        /// Why.
        #[source]
        source: FindError,
    },
    /// A replacement has nothing to replace.
    #[error(
        "`{file}` lines {}-{}: `{function}` has no `{from}` to replace; the original has changed, \
         or the rule is wrong",
        lines.0,
        lines.1
    )]
    NothingToReplace {
        /// The file.
        file: TreePath,
        /// The original's name.
        function: String,
        /// What was looked for.
        from: String,
        /// The original's lines.
        lines: (usize, usize),
    },
    /// The file has a function of the copy's name.
    #[error("`{file}` line {line} already defines `{name}`")]
    Taken {
        /// The file.
        file: TreePath,
        /// The copy's name.
        name: String,
        /// Where it is defined.
        line: usize,
    },
}

/// The spellings of a run of tokens.
type Words = Vec<Vec<u8>>;

/// A copy before it is put anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The original.
    pub original: Function,
    /// The copy's text, without a line break at its end.
    pub text: Vec<u8>,
    /// How often each replacement was made, in the rule's order.
    pub replaced: Vec<usize>,
}

/// Makes the copy and puts it into the file, as an edit of `tree`.
///
/// # Errors
/// Nothing is edited then.
pub fn apply(rule: &Rule, tree: &mut Snapshot<'_>) -> Result<Derived, DeriveError> {
    let file = tree
        .file(&rule.file)?
        .ok_or_else(|| DeriveError::NoFile { file: rule.file.clone(), name: rule.name.clone() })?;
    let text: &[u8] = &file.bytes;
    let functions = function::functions(text);
    let copied = copied(rule, text, &functions)?;
    let (at, put) = placed(rule, text, &functions, &copied)?;
    let mut bytes = text[..at].to_vec();
    bytes.extend_from_slice(&put);
    bytes.extend_from_slice(&text[at..]);
    let begin = put.windows(copied.text.len()).position(|w| w == copied.text.as_slice());
    let first = cpp::line_of(&bytes, at + begin.expect("the copy is in what is put"));
    let breaks = copied.text.iter().filter(|b| **b == b'\n').count();
    let derived = Derived {
        file: rule.file.clone(),
        function: rule.function.clone(),
        name: rule.name.clone(),
        source_lines: copied.original.lines,
        lines: (first, first + breaks),
        replaced: copied.replaced,
        source: ObjectId::of_blob(&text[copied.original.span]),
        text: ObjectId::of_blob(&copied.text),
    };
    tree.put(rule.file.clone(), File::new(file.mode, bytes));
    Ok(derived)
}

/// Makes the copy from the text of the rule's file.
///
/// # Errors
/// The rule is wrong, or the text does not hold what it asks for.
pub fn copy(rule: &Rule, text: &[u8]) -> Result<Copied, DeriveError> {
    copied(rule, text, &function::functions(text))
}

fn copied(rule: &Rule, text: &[u8], functions: &[Function]) -> Result<Copied, DeriveError> {
    let replacements = rule.checked()?;
    let in_file = |source| DeriveError::Find { file: rule.file.clone(), source };
    let original = function::find_in(functions, &rule.function).map_err(in_file)?.clone();
    if let Some(taken) = function::all_in(functions, &rule.name).first() {
        return Err(DeriveError::Taken {
            file: rule.file.clone(),
            name: rule.name.clone(),
            line: taken.lines.0,
        });
    }
    let body = &text[original.span.clone()];
    let old_name = &text[original.name.clone()];
    let tokens = lex(body);
    let mut replaced = vec![0; replacements.len()];
    let mut out = Vec::with_capacity(body.len() + 64);
    let mut i = 0;
    while let Some(token) = tokens.get(i) {
        let hit = replacements
            .iter()
            .enumerate()
            .find_map(|(n, (from, to))| Some((n, matched(body, &tokens, i, from)?, to)));
        if let Some((n, end, to)) = hit {
            replaced[n] += 1;
            out.extend_from_slice(to.as_bytes());
            i = end;
        } else {
            let renamed = token.kind == Kind::Identifier && token.of(body) == old_name;
            out.extend_from_slice(if renamed { rule.name.as_bytes() } else { token.of(body) });
            i += 1;
        }
    }
    if let Some(n) = replaced.iter().position(|n| *n == 0) {
        return Err(DeriveError::NothingToReplace {
            file: rule.file.clone(),
            function: rule.function.clone(),
            from: rule.replace[n].from.clone(),
            lines: original.lines,
        });
    }
    Ok(Copied { original, text: out, replaced })
}

/// The index after the tokens `from`, where they stand at `i`.
fn matched(text: &[u8], tokens: &[Token], i: usize, from: &[Vec<u8>]) -> Option<usize> {
    let mut at = i;
    for (n, word) in from.iter().enumerate() {
        while n > 0 && tokens.get(at)?.kind == Kind::Space {
            at += 1;
        }
        let token = tokens.get(at)?;
        if matches!(token.kind, Kind::Comment | Kind::Directive) || token.of(text) != word {
            return None;
        }
        at += 1;
    }
    Some(at)
}

/// Where the copy goes and what is put there: the copy, an empty line between
/// it and its neighbour, line ends as the file has them.
fn placed(
    rule: &Rule,
    text: &[u8],
    functions: &[Function],
    copied: &Copied,
) -> Result<(usize, Vec<u8>), DeriveError> {
    let line_end: &[u8] = match text.iter().position(|b| *b == b'\n') {
        Some(n) if n > 0 && text[n - 1] == b'\r' => b"\r\n",
        _ => b"\n",
    };
    let behind = |at: usize| {
        let put = [line_end, line_end, &copied.text].concat();
        (after_line_comment(text, at), put)
    };
    Ok(match &rule.place {
        Place::Fixed(Fixed::After) => behind(copied.original.span.end),
        Place::Fixed(Fixed::Before) => (
            above_comment(text, copied.original.span.start),
            [&copied.text, line_end, line_end].concat(),
        ),
        Place::Fixed(Fixed::End) => {
            let open_line = if text.ends_with(b"\n") { &b""[..] } else { line_end };
            (text.len(), [open_line, line_end, &copied.text, line_end].concat())
        }
        Place::Behind(other) => {
            let in_file = |source| DeriveError::Find { file: rule.file.clone(), source };
            behind(function::find_in(functions, &other.after).map_err(in_file)?.span.end)
        }
    })
}

/// Past what stands on the same line after a closing brace, where that is a
/// comment or nothing.
fn after_line_comment(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let line = rest.iter().position(|b| matches!(b, b'\r' | b'\n')).unwrap_or(rest.len());
    let quiet = lex(&rest[..line]).iter().all(|t| !t.kind.bears_meaning());
    if quiet { at + line } else { at }
}

/// The beginning of the comment that stands right above `at`, or `at`.
fn above_comment(text: &[u8], at: usize) -> usize {
    let mut begin = at;
    for token in lex(&text[..at]).iter().rev() {
        match token.kind {
            Kind::Comment => begin = token.start,
            Kind::Space if token.of(text).iter().filter(|b| **b == b'\n').count() < 2 => {}
            _ => break,
        }
    }
    begin
}

impl Rule {
    /// The replacements as token sequences.
    fn checked(&self) -> Result<Vec<(Words, &str)>, DeriveError> {
        let wrong = |what: String| DeriveError::Rule { name: self.name.clone(), what };
        let name = lex(self.name.as_bytes());
        if name.len() != 1 || name[0].kind != Kind::Identifier {
            return Err(wrong("the copy's name is no C++ name".into()));
        }
        let mut out = Vec::with_capacity(self.replace.len());
        for Replacement { from, to } in &self.replace {
            let odd = |t: &Token| matches!(t.kind, Kind::Comment | Kind::Directive | Kind::Other);
            let tokens = lex(from.as_bytes());
            if tokens.iter().chain(&lex(to.as_bytes())).any(odd) {
                return Err(wrong(format!("`{from}` → `{to}` holds more than tokens")));
            }
            let words: Words = tokens
                .iter()
                .filter(|t| t.kind != Kind::Space)
                .map(|t| t.of(from.as_bytes()).to_vec())
                .collect();
            if words.is_empty() {
                return Err(wrong("a replacement of nothing".into()));
            }
            if from == to {
                return Err(wrong(format!("`{from}` is replaced by itself")));
            }
            out.push((words, to.as_str()));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{MemoryTree, Mode};

    const QDOT: &str = "\
// Dots. device stays here.
template <typename U, int bits>
inline U qdot(const device uint8_t* w, const thread U* x) {
  log(\"device\"); // device
#if device
#endif
  const device uint16_t* ws = (const device uint16_t*)w;
  return bits > 8 ? qdot<U, 4>(w, x) : devices[0];
} // qdot

int next() { return 0; }
";

    fn rule(text: &str) -> Rule {
        toml::from_str(text).expect("a rule")
    }

    fn qdot(rest: &str) -> Rule {
        rule(&format!(
            "file = 'q.h'\nfunction = 'qdot'\nname = 'qdot_reg'\n\
             replace = [{{ from = 'device', to = 'thread' }}]\n{rest}"
        ))
    }

    fn applied(rule: &Rule, text: &str) -> Result<(String, Derived), DeriveError> {
        let path = rule.file.clone();
        let below = MemoryTree([(path.clone(), File::new(Mode::Regular, text.as_bytes()))].into());
        let mut tree = Snapshot::new(&below);
        let derived = apply(rule, &mut tree)?;
        let file = tree.file(&path).expect("memory is read").expect("it is there");
        Ok((String::from_utf8(file.bytes.to_vec()).expect("UTF-8"), derived))
    }

    #[test]
    fn tokens_are_replaced_and_nothing_else() {
        let (text, derived) = applied(&qdot(""), QDOT).expect("it applies");
        let copy = "\
template <typename U, int bits>
inline U qdot_reg(const thread uint8_t* w, const thread U* x) {
  log(\"device\"); // device
#if device
#endif
  const thread uint16_t* ws = (const thread uint16_t*)w;
  return bits > 8 ? qdot_reg<U, 4>(w, x) : devices[0];
}";
        let wanted = QDOT.replace("} // qdot\n", &format!("}} // qdot\n\n{copy}\n"));
        assert_eq!(text, wanted);
        assert_eq!(derived.replaced, [3]);
        assert_eq!(derived.source_lines, (2, 9));
        assert_eq!(derived.lines, (11, 18));
        assert_eq!(derived.text, ObjectId::of_blob(copy.as_bytes()));
    }

    #[test]
    fn every_place() {
        for (place, first) in [
            ("place = 'after'", 11),
            ("place = 'before'", 1),
            ("place = 'end'", 13),
            ("place = { after = 'next' }", 13),
        ] {
            let (text, derived) = applied(&qdot(place), QDOT).expect("it applies");
            assert_eq!(derived.lines.0, first, "{place}\n{text}");
            let line = text.lines().nth(first - 1).expect("the line is there");
            assert_eq!(line, "template <typename U, int bits>", "{place}");
            let full = |t: &&str| !t.is_empty();
            let mut rest: Vec<&str> = text.lines().collect();
            rest.drain(derived.lines.0 - 1..derived.lines.1);
            assert_eq!(rest.len(), QDOT.lines().count() + 1, "{place}");
            assert!(rest.into_iter().filter(full).eq(QDOT.lines().filter(full)), "{place}");
        }
        assert!(
            toml::from_str::<Rule>("file='q.h'\nfunction='f'\nname='g'\nplace='under'").is_err()
        );
    }

    #[test]
    fn line_ends_are_the_files() {
        let (text, _) = applied(&qdot(""), &QDOT.replace('\n', "\r\n")).expect("it applies");
        assert!(!text.replace("\r\n", "").contains('\n'));
    }

    #[test]
    fn several_tokens_are_one_replacement() {
        let mut rule = qdot("");
        rule.replace[0] = Replacement { from: "const  device".into(), to: String::new() };
        let (text, derived) = applied(&rule, QDOT).expect("it applies");
        assert_eq!(derived.replaced, [3]);
        assert!(text.contains("inline U qdot_reg( uint8_t* w"));
    }

    #[test]
    fn a_rule_that_matches_nothing_or_twice_is_an_error() {
        let message = |rule: &Rule, text: &str| match applied(rule, text) {
            Ok(_) => "applied".to_owned(),
            Err(e) => e.to_string(),
        };
        let gone = QDOT.replace("device ", "thread ");
        assert_eq!(
            message(&qdot(""), &gone),
            "`q.h` lines 2-9: `qdot` has no `device` to replace; the original has changed, or the \
             rule is wrong"
        );
        let twice = format!("{QDOT}{QDOT}");
        assert!(message(&qdot(""), &twice).contains("`qdot` is defined 2 times, on lines [2, 13]"));
        assert!(message(&qdot(""), "int x;").contains("no definition of `qdot`"));
        let taken = format!("{QDOT}int qdot_reg() {{ return 1; }}\n");
        assert_eq!(message(&qdot(""), &taken), "`q.h` line 12 already defines `qdot_reg`");
        assert!(message(&qdot("place = { after = 'gone' }"), QDOT).contains("`gone`"));
        for (from, to) in [("device", "device"), (" ", "x"), ("x // c", "y"), ("x", "/* */")] {
            let mut rule = qdot("");
            rule.replace[0] = Replacement { from: from.into(), to: to.into() };
            assert!(matches!(applied(&rule, QDOT), Err(DeriveError::Rule { .. })), "{from}");
        }
    }
}
