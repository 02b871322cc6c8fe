//! Functions, found by name in the text of a file.
//!
//! A function is everything from its template head or first attribute to the
//! brace that closes its body; a comment above it is not part of it. Bodies
//! are never looked into, so a call is never taken for a definition, and a
//! macro's replacement text is never read.

mod names;

use std::ops::Range;

use super::Condition;
use super::lex::{Kind, Token, lex_meaning};
use names::Candidate;
pub(crate) use names::is_attribute;

/// A function definition: byte spans in the text it was found in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name with the namespaces and classes around it, `a::b::f`; of a specialisation
    /// with its arguments, `a::S<int>::f`; of a macro that stands for a head with what it
    /// is given first, `TEST(one)`.
    pub path: String,
    /// The path without arguments.
    plain: String,
    /// The path that another head over the same body gives it, in an earlier branch of an
    /// `#if`.
    pub also: Option<String>,
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

/// A namespace, a class or an enumeration that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enclosure {
    /// Its name with those around it, as in [`Function::path`].
    pub path: String,
    /// What it holds (bytes), both braces included.
    pub body: Range<usize>,
}

/// Every function defined in the text, in the order they stand.
#[must_use]
pub fn functions(text: &[u8]) -> Vec<Function> {
    functions_and_enclosures(text).0
}

/// As [`functions`], with what may be around them, the outer before the inner.
#[must_use]
pub fn functions_and_enclosures(text: &[u8]) -> (Vec<Function>, Vec<Enclosure>) {
    let tokens = lex_meaning(text);
    let partner = partners(text, &tokens);
    let (scopes, found, enclosures) = (Vec::new(), Vec::new(), Vec::new());
    let mut parser =
        Parser { text, tokens, partner, at: 0, scopes, found, enclosures, headed: None };
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
    (found, parser.enclosures)
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
    enclosures: Vec<Enclosure>,
    /// Where a head begins whose body is that of the head in a later branch of an `#if`,
    /// and its names.
    headed: Option<(usize, Vec<Candidate>)>,
}

/// A namespace or a class.
#[derive(Clone)]
struct Scope {
    name: String,
    /// The name with the arguments of a specialisation.
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
        let (mut enumeration, mut enumerated) = (false, None);
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
                        // The last of several heads over one body alone is closed.
                        if self.partner[i].is_some() {
                            self.enclose(i, name.as_ref());
                            self.scopes.push(name.clone());
                        }
                        self.at = i + 1;
                        return;
                    }
                    let names = std::mem::take(&mut candidates);
                    if let Some(function) = self.defined(begin, i, names) {
                        self.found.push(function);
                        i = self.past(i);
                        break;
                    }
                    if enumeration {
                        self.enclose(i, enumerated.as_ref());
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
                        && self.word(begin) != b"operator"
                        && !is_attribute(self.word(begin))
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
                    // What was called right before is a macro.
                    if i > begin && self.word(i - 1) == b")" {
                        candidates.clear();
                    }
                    i = self.past_macros(i + 1);
                    scope = Some(self.qualified_after(i));
                }
                b"enum" => {
                    enumeration = true;
                    let words = 1 + usize::from(matches!(self.word(i + 1), b"class" | b"struct"));
                    i = self.past_macros(i + words);
                    enumerated = self.qualified_after(i);
                }
                _ => i += 1,
            }
        }
        self.at = i.max(begin + 1);
    }

    /// Takes down what the brace at `i` begins.
    fn enclose(&mut self, i: usize, scope: Option<&Scope>) {
        let (Some(scope), Some(end)) = (scope, self.partner[i]) else { return };
        let path = self.path(|scope| &scope.written, &scope.written);
        let body = self.tokens[i].start..self.tokens[end].end;
        self.enclosures.push(Enclosure { path, body });
    }

    /// A name with those of the namespaces and classes around it.
    fn path(&self, name: fn(&Scope) -> &str, last: &str) -> String {
        let around = self.scopes.iter().flatten().map(name);
        around.chain([last]).collect::<Vec<_>>().join("::")
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

    /// The index after the attributes and macros that go before a class's name.
    fn past_macros(&self, mut i: usize) -> usize {
        loop {
            let after = match (self.word(i), self.word(i + 1)) {
                (b"[", _) => self.past(i),
                (_, b"(") => self.past(i + 1),
                _ => i + 1,
            };
            let named = self.name(after).is_some_and(|name| name != "final");
            if self.word(i) != b"[" && !(named && self.name(i).is_some()) {
                return i;
            }
            i = after;
        }
    }

    fn qualified_after(&self, mut i: usize) -> Option<Scope> {
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

    /// Tokens as one word, with a space between names alone; directives left out, and the
    /// `::` that begins a name.
    fn joined(&self, tokens: Range<usize>) -> String {
        let mut joined = String::new();
        let mut after_name = false;
        for i in tokens.filter(|i| self.tokens[*i].kind != Kind::Directive) {
            let name = self.tokens[i].kind == Kind::Identifier;
            if name && after_name {
                joined.push(' ');
            }
            if self.word(i) == b"::" && !after_name && !joined.ends_with('>') {
                continue;
            }
            joined += &String::from_utf8_lossy(self.word(i));
            after_name = name;
        }
        joined
    }

    /// The function whose body the brace at `open` begins, given the names in its head.
    fn defined(&mut self, begin: usize, open: usize, names: Vec<Candidate>) -> Option<Function> {
        if self.partner[open].is_none() {
            let directive = self.tokens.get(open + 1).filter(|t| t.kind == Kind::Directive);
            let then = directive.and_then(|t| Condition::of(t.of(self.text)));
            if !names.is_empty() && then == Some(Condition::Else) {
                self.headed = Some((begin, names));
            }
            return None;
        }
        let earlier = self.headed.take();
        let earlier = earlier.and_then(|(begin, names)| self.function(begin, open, &names));
        let Some(own) = self.function(begin, open, &names) else {
            // The name may stand before the `#if`, and go on with its parameters.
            return earlier.filter(|_| self.word(begin) == b"(");
        };
        let also = earlier.map(|earlier| earlier.path).filter(|path| *path != own.path);
        Some(Function { also, ..own })
    }

    /// The definition. Of several names before a `(`, a macro with
    /// arguments may stand first or last; the declarator is the first that
    /// something stands before, else the first.
    fn function(&self, begin: usize, open: usize, names: &[Candidate]) -> Option<Function> {
        let declarator = names.iter().find(|c| c.token > begin).or_else(|| names.first())?;
        let end = self.tokens[self.partner[open]?].end;
        let words = (begin..declarator.token).map(|at| self.word(at)).collect::<Vec<_>>();
        let written = if words.windows(3).any(|three| three == [&b"template"[..], b"<", b">"]) {
            declarator.written.clone()
        } else if let Some(argument) = self.macro_argument(begin, declarator) {
            format!("{}({argument})", declarator.name)
        } else {
            declarator.name.clone()
        };
        let (first, last) = (self.tokens[declarator.token], self.tokens[declarator.last]);
        Some(Function {
            path: self.path(|scope| &scope.written, &written),
            plain: self.path(|scope| &scope.name, &declarator.name),
            also: None,
            span: self.tokens[begin].start..end,
            name: first.start..last.end,
            body: self.tokens[open].start..end,
            lines: (0, 0),
        })
    }
}

#[cfg(test)]
mod tests;
