//! Functions, found by name in the text of a file.
//!
//! A function is everything from its template head or first attribute to the
//! brace that closes its body; a comment above it is not part of it. Bodies
//! are never looked into, so a call is never taken for a definition, and a
//! macro's replacement text is never read.

use std::ops::Range;

use super::Condition;
use super::lex::{Kind, Token, lex_meaning};

/// A function definition: byte spans in the text it was found in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name with the namespaces and classes around it, `a::b::f`; of a class that
    /// is a specialisation with its arguments, `a::S<int>::f`.
    pub path: String,
    /// The path without arguments.
    plain: String,
    /// From the template head or first attribute to the closing brace.
    pub span: Range<usize>,
    /// The name alone, the last part of a qualified one.
    pub name: Range<usize>,
    /// The body, both braces included.
    pub body: Range<usize>,
    /// 1-based lines of the span, the last included.
    pub lines: (usize, usize),
}

/// Why a name gives no function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// No definition has the name.
    #[error("no definition of `{name}` is found")]
    Missing {
        /// The name asked for.
        name: String,
    },
    /// Several have it: overloads, specializations, or branches of an `#if`.
    #[error("`{name}` is defined {} times, on lines {lines:?}; name it with its namespace or class, or choose another", lines.len())]
    Several {
        /// The name asked for.
        name: String,
        /// 1-based first lines of the definitions.
        lines: Vec<usize>,
    },
}

/// The one definition called `name`. A qualified name (`Class::method`) is
/// matched from its end, so that a namespace may be left out, and so may the
/// arguments of a class.
///
/// # Errors
/// None has the name, or several have.
pub fn find(text: &[u8], name: &str) -> Result<Function, FindError> {
    find_in(&functions(text), name).cloned()
}

/// As [`find`], among functions that are known already.
///
/// # Errors
/// Those of [`find`].
pub fn find_in<'f>(functions: &'f [Function], name: &str) -> Result<&'f Function, FindError> {
    match all_in(functions, name)[..] {
        [one] => Ok(one),
        [] => Err(FindError::Missing { name: name.into() }),
        ref several => Err(FindError::Several {
            name: name.into(),
            lines: several.iter().map(|f| f.lines.0).collect(),
        }),
    }
}

/// Every definition called `name`, in the order they stand.
#[must_use]
pub fn find_all(text: &[u8], name: &str) -> Vec<Function> {
    all_in(&functions(text), name).into_iter().cloned().collect()
}

/// As [`find_all`], among functions that are known already.
#[must_use]
pub fn all_in<'f>(functions: &'f [Function], name: &str) -> Vec<&'f Function> {
    let wanted: Vec<&str> = name.split("::").map(str::trim).collect();
    let named = |f: &&Function| {
        let mut path: Vec<&str> = f.plain.split("::").collect();
        path.drain(..path.len().saturating_sub(wanted.len()));
        let before = f.path.strip_suffix(name);
        path == wanted || before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
    };
    functions.iter().filter(named).collect()
}

/// Every function defined in the text, in the order they stand.
#[must_use]
pub fn functions(text: &[u8]) -> Vec<Function> {
    let tokens = lex_meaning(text);
    let partner = partners(text, &tokens);
    let mut parser = Parser { text, tokens, partner, at: 0, scopes: Vec::new(), found: Vec::new() };
    while parser.at < parser.tokens.len() {
        parser.item();
    }
    // Lines are counted once, in order: a file may hold hundreds of functions.
    let mut found = parser.found;
    let (mut line, mut at) = (1, 0);
    found.sort_by_key(|f| f.span.start);
    for function in &mut found {
        line += breaks(&text[at..function.span.start]);
        at = function.span.start;
        function.lines = (line, line + breaks(&text[function.span.clone()]));
    }
    found
}

fn breaks(text: &[u8]) -> usize {
    text.iter().filter(|b| **b == b'\n').count()
}

/// For each bracket its partner. Branches of an `#if` are told apart: a
/// bracket opened in each of them is paired from the last branch, so that a
/// head written twice over one body still closes once.
fn partners(text: &[u8], tokens: &[Token]) -> Vec<Option<usize>> {
    let mut partner = vec![None; tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    let mut at_if: Vec<Vec<usize>> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let word = token.of(text);
        if token.kind == Kind::Directive {
            match Condition::of(word) {
                Some(Condition::If) => at_if.push(open.clone()),
                Some(Condition::Else) => {
                    if let Some(saved) = at_if.last() {
                        open.clone_from(saved);
                    }
                }
                Some(Condition::EndIf) => _ = at_if.pop(),
                None => {}
            }
            continue;
        }
        if token.kind != Kind::Punctuation {
            continue;
        }
        match word {
            b"(" | b"[" | b"{" => open.push(i),
            b")" | b"]" | b"}" => {
                let opens = match word {
                    b")" => b"(",
                    b"]" => b"[",
                    _ => b"{",
                };
                // A bracket that closes another kind ends what is left open
                // inside it.
                if let Some(depth) = open.iter().rposition(|o| tokens[*o].of(text) == opens) {
                    partner[i] = Some(open[depth]);
                    partner[open[depth]] = Some(i);
                    open.truncate(depth);
                }
            }
            _ => {}
        }
    }
    partner
}

struct Parser<'t> {
    text: &'t [u8],
    tokens: Vec<Token>,
    partner: Vec<Option<usize>>,
    at: usize,
    scopes: Vec<Option<Scope>>,
    found: Vec<Function>,
}

/// A namespace or a class.
#[derive(Clone)]
struct Scope {
    name: String,
    /// The name with the arguments of a specialisation.
    written: String,
}

/// A name followed by `(`, outside any bracket: perhaps the declarator.
struct Candidate {
    /// Index of the last part of the name, or of its `operator`.
    token: usize,
    /// Index of the last token of the name.
    last: usize,
    /// Its qualified name as written.
    written: String,
}

impl Parser<'_> {
    fn word(&self, i: usize) -> &[u8] {
        self.tokens.get(i).map_or(b"", |t| t.of(self.text))
    }

    fn name(&self, i: usize) -> Option<String> {
        self.tokens
            .get(i)
            .filter(|t| t.kind == Kind::Identifier)
            .map(|t| String::from_utf8_lossy(t.of(self.text)).into_owned())
    }

    /// The index after the bracket at `i` and all it holds.
    fn past(&self, i: usize) -> usize {
        self.partner[i].filter(|p| *p > i).map_or(i + 1, |p| p + 1)
    }

    /// The index after the `<…>` that begins at `i`.
    fn past_angles(&self, mut i: usize) -> usize {
        let begin = i;
        let mut depth = 0_usize;
        while i < self.tokens.len() {
            match self.word(i) {
                b"<" => depth += 1,
                b">" => depth = depth.saturating_sub(1),
                b">>" => depth = depth.saturating_sub(2),
                b"(" | b"[" | b"{" => {
                    i = self.past(i);
                    continue;
                }
                b";" | b"}" => return begin + 1,
                _ => {}
            }
            i += 1;
            if depth == 0 {
                return i;
            }
        }
        begin + 1
    }

    fn new_line_between(&self, i: usize, j: usize) -> bool {
        match (self.tokens.get(i), self.tokens.get(j)) {
            (Some(a), Some(b)) => self.text[a.end..b.start].contains(&b'\n'),
            _ => true,
        }
    }

    /// Moves past one item of a namespace or class: a declaration, a
    /// definition, the head or the end of a scope, a directive.
    fn item(&mut self) {
        let begin = self.at;
        let mut scope: Option<Option<Scope>> = None;
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut enumeration = false;
        let mut initializers = false;
        let mut i = begin;
        while i < self.tokens.len() {
            if self.tokens[i].kind == Kind::Directive {
                i += 1;
                if i == begin + 1 {
                    break;
                }
                continue;
            }
            match self.word(i) {
                b";" => {
                    i += 1;
                    break;
                }
                b"}" => {
                    // The end of the scope around; or a stray bracket.
                    if i == begin {
                        self.scopes.pop();
                        i += 1;
                    }
                    break;
                }
                b"{" => {
                    let declares = !candidates.is_empty();
                    let brace_of_member = initializers
                        && (self.tokens[i - 1].kind == Kind::Identifier
                            || self.word(i - 1) == b">");
                    if brace_of_member {
                        i = self.past(i);
                        continue;
                    }
                    if let (Some(name), false) = (&scope, declares) {
                        self.scopes.push(name.clone());
                        self.at = i + 1;
                        return;
                    }
                    if declares && self.partner[i].is_some() {
                        let end = self.past(i);
                        self.define(begin, i, end, &candidates);
                        i = end;
                        break;
                    }
                    i = self.past(i);
                    if enumeration {
                        continue;
                    }
                    break;
                }
                b"=" if self.word(i.wrapping_sub(1)) != b"operator" => {
                    i = self.past_initializer(i);
                    break;
                }
                b":" if !candidates.is_empty() => {
                    initializers = true;
                    i += 1;
                }
                // `public:`, and labels of no use here.
                b":" if i == begin + 1 => {
                    i += 1;
                    break;
                }
                b"template" if self.word(i + 1) == b"<" => i = self.past_angles(i + 1),
                b"(" => {
                    let after = self.past(i);
                    if !initializers {
                        candidates.extend(self.candidate(i));
                    }
                    // `MACRO(…)` on a line of its own, with no `;`.
                    let alone = i == begin + 1
                        && !matches!(
                            self.word(begin),
                            b"__attribute__" | b"__declspec" | b"alignas" | b"operator"
                        )
                        && self.tokens.get(after).is_some_and(|t| {
                            t.kind == Kind::Identifier || t.kind == Kind::Directive
                        })
                        && self.new_line_between(after - 1, after);
                    i = after;
                    if alone {
                        break;
                    }
                }
                b"[" => i = self.past(i),
                b"<" if i > begin
                    && self.tokens[i - 1].kind == Kind::Identifier
                    && self.word(i - 1) != b"operator" =>
                {
                    i = self.past_angles(i);
                }
                b"namespace" => {
                    scope = Some(self.qualified_after(i + 1));
                    i += 1;
                }
                b"extern" if self.tokens.get(i + 1).is_some_and(|t| t.kind == Kind::Text) => {
                    scope = Some(None);
                    i += 2;
                }
                b"class" | b"struct" | b"union" if !enumeration => {
                    scope = Some(self.qualified_after(i + 1));
                    i += 1;
                }
                b"enum" => {
                    enumeration = true;
                    i += 1;
                }
                _ => i += 1,
            }
        }
        self.at = i.max(begin + 1);
    }

    /// The index after an initializer that begins with `=` at `i`.
    fn past_initializer(&self, mut i: usize) -> usize {
        while i < self.tokens.len() {
            match self.word(i) {
                b";" => return i + 1,
                b"}" => return i,
                b"(" | b"[" | b"{" => i = self.past(i),
                _ => i += 1,
            }
        }
        i
    }

    fn qualified_after(&self, mut i: usize) -> Option<Scope> {
        while self.word(i) == b"[" {
            i = self.past(i);
        }
        let name = self.name(i)?;
        let mut scope = Scope { written: name.clone(), name };
        loop {
            let past = if self.word(i + 1) == b"<" { self.past_angles(i + 1) } else { i + 1 };
            scope.written += &self.joined(i + 1..past);
            if self.word(past) != b"::" {
                return Some(scope);
            }
            let Some(part) = self.name(past + 1) else { return Some(scope) };
            scope.name = format!("{}::{part}", scope.name);
            scope.written = format!("{}::{part}", scope.written);
            i = past + 1;
        }
    }

    /// Tokens as one word, with a space between names alone.
    fn joined(&self, tokens: Range<usize>) -> String {
        let mut joined = String::new();
        let mut after_name = false;
        for i in tokens {
            let name = self.tokens[i].kind == Kind::Identifier;
            if name && after_name {
                joined.push(' ');
            }
            joined += &String::from_utf8_lossy(self.word(i));
            after_name = name;
        }
        joined
    }

    /// The operator that the `(` at `i` begins the parameters of: the index of its
    /// `operator`, and its name.
    fn operator(&self, i: usize) -> Option<(usize, String)> {
        /// No operator's name has more tokens.
        const LONGEST: usize = 16;
        let begin =
            (i.saturating_sub(LONGEST)..i).rev().find(|&at| self.word(at) == b"operator")?;
        let bracket = |at: usize| matches!(self.word(at), b"(" | b")" | b"{" | b"}" | b";");
        let called = (begin + 1..i).map(|at| self.word(at)).eq([b"(", b")"]);
        let named = begin + 1 < i && !(begin + 1..i).any(bracket);
        (called || named).then(|| (begin, self.joined(begin..i)))
    }

    /// The name before the `(` at `i`, template arguments skipped.
    fn candidate(&self, i: usize) -> Option<Candidate> {
        if let Some((begin, name)) = self.operator(i) {
            return Some(self.qualified(begin, i - 1, name));
        }
        let mut last = i.checked_sub(1)?;
        if matches!(self.word(last), b">" | b">>") {
            let mut depth = 0_isize;
            loop {
                match self.word(last) {
                    b">" => depth += 1,
                    b">>" => depth += 2,
                    b"<" => depth -= 1,
                    b";" | b"{" | b"}" => return None,
                    _ => {}
                }
                last = last.checked_sub(1)?;
                if depth <= 0 {
                    break;
                }
            }
        }
        let written = self.name(last)?;
        if matches!(
            written.as_str(),
            "noexcept" | "requires" | "decltype" | "alignas" | "operator" | "__attribute__"
        ) {
            return None;
        }
        Some(self.qualified(last, last, written))
    }

    /// A name with the classes before it.
    fn qualified(&self, token: usize, last: usize, mut written: String) -> Candidate {
        let mut first = token;
        while first >= 2 && self.word(first - 1) == b"::" {
            let Some(part) = self.name(first - 2) else { break };
            written = format!("{part}::{written}");
            first -= 2;
        }
        Candidate { token, last, written }
    }

    /// Records the definition. Of several names before a `(`, a macro with
    /// arguments may stand first or last; the declarator is the first that
    /// something stands before, else the first.
    fn define(&mut self, begin: usize, open: usize, end: usize, candidates: &[Candidate]) {
        let Some(declarator) =
            candidates.iter().find(|c| c.token > begin).or_else(|| candidates.first())
        else {
            return;
        };
        let path = |name: fn(&Scope) -> &str| {
            let around = self.scopes.iter().flatten().map(name);
            around.chain([declarator.written.as_str()]).collect::<Vec<_>>().join("::")
        };
        let (first, last) = (self.tokens[declarator.token], self.tokens[declarator.last]);
        self.found.push(Function {
            path: path(|scope| &scope.written),
            plain: path(|scope| &scope.name),
            span: self.tokens[begin].start..self.tokens[end - 1].end,
            name: first.start..last.end,
            body: self.tokens[open].start..self.tokens[end - 1].end,
            lines: (0, 0),
        });
    }
}

#[cfg(test)]
mod tests;
