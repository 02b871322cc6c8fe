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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths(text: &str) -> Vec<String> {
        functions(text.as_bytes()).into_iter().map(|f| f.path).collect()
    }

    #[test]
    fn heads_of_every_shape() {
        let text = "\
#define METAL_FUNC inline {
namespace a::b { namespace {
template <typename T, int n = (3 > 2)>
METAL_FUNC T one(const device T* x [[buffer(0)]], T (*f)(int)) { return x[0]; }
}}
[[host_name(\"two\")]] [[kernel, max_total_threads_per_threadgroup(W * 32)]] void
two(uint3 tid [[thread_position_in_grid]]) { if (x) { one(1); } }
class K : public B {
 public:
  K() : a_{1}, b_(2), v_<int>{3} { body(); }
  void three() const noexcept override { }
  int declared(int);
  int with = 3;
  int table[2] = {1, 2};
};
INSTANTIATE(everything)
void K::four(std::vector<std::pair<int, int>> v) const { }
template <> int five<float, 2>() { return 1; }
enum class E { x = 1, y };
static const auto lambda = [](int q) { return q; };
__attribute__((noinline)) int six() { return '}' + \"}\"[0]; } // }
extern \"C\" { int seven() { return 7; } }
auto eight() -> decltype(six()) { return 8; }
";
        assert_eq!(
            paths(text),
            ["a::b::one", "two", "K::K", "K::three", "K::four", "five", "six", "seven", "eight"]
        );
        let two = find(text.as_bytes(), "two").expect("it is there");
        assert!(text[two.span.clone()].starts_with("[[host_name(\"two\")]]"));
        assert!(text[two.span].ends_with("one(1); } }"));
        assert_eq!(two.lines, (6, 7));
        assert_eq!(&text[two.name], "two");
    }

    #[test]
    fn branches_of_an_if_are_told_apart() {
        let text = "#if A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n  g();\n}\nvoid h() {}\n";
        assert_eq!(paths(text).last().map(String::as_str), Some("h"));
    }

    #[test]
    fn operators_have_names() {
        let text = "\
struct A {
  int operator()(int a) const { return a; }
  A operator+(A a) { return a; }
  bool operator<(A a) noexcept(true) { return true; }
  A& operator=(const A&) { return *this; }
  int operator[](int i) { return i; }
  operator bool() const { return true; }
  operator const char*() { return 0; }
};
ostream& operator<<(ostream& o, A) { return o; }
bool A::operator==(const A& a) { return true; }
";
        let expected = [
            "A::operator()",
            "A::operator+",
            "A::operator<",
            "A::operator=",
            "A::operator[]",
            "A::operator bool",
            "A::operator const char*",
            "operator<<",
            "A::operator==",
        ];
        assert_eq!(paths(text), expected);
        for path in expected {
            let found = find(text.as_bytes(), path).expect("it is there");
            let name = path.strip_prefix("A::").unwrap_or(path);
            assert_eq!(&text[found.name], name);
        }
    }

    #[test]
    fn specialisations_are_told_apart() {
        let text = "\
namespace n {
template <> struct S<int> { void go() {} };
template <> struct S<std::pair<int, unsigned long>> { void go() {} };
template <typename T> struct Q<T, 4> : S<T> { void to() {} };
}
";
        let expected = ["n::S<int>::go", "n::S<std::pair<int,unsigned long>>::go", "n::Q<T,4>::to"];
        assert_eq!(paths(text), expected);
        for name in ["go", "S::go", "n::S::go"] {
            assert_eq!(find_all(text.as_bytes(), name).len(), 2, "{name}");
        }
        for name in ["to", "Q::to", "S<int>::go", "n::Q<T,4>::to"] {
            assert_eq!(find_all(text.as_bytes(), name).len(), 1, "{name}");
        }
    }

    #[test]
    fn none_and_several_are_errors() {
        let text = b"int f(int a) { return a; }\n\nint f(float a) { return 1; }\nint g();\n";
        assert_eq!(
            find(text, "f"),
            Err(FindError::Several { name: "f".into(), lines: vec![1, 3] })
        );
        assert_eq!(find(text, "g"), Err(FindError::Missing { name: "g".into() }));
    }

    proptest! {
        #[test]
        fn any_text_gives_functions_inside_it(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "f", "(", ")", "{", "}", "<", ">", ">>", "[", "]", ";", ":", "::", "=", "class",
                    "namespace", "template", "enum", "operator", "\n#if A\n", "\n#else\n",
                    "\n#endif\n", "\n", "extern \"C\"", "/*", "\"",
                ]),
                0..60,
            )
        ) {
            let text = words.join(" ");
            for function in functions(text.as_bytes()) {
                prop_assert!(function.span.end <= text.len());
                prop_assert!(function.span.start <= function.body.start);
                prop_assert_eq!(text.as_bytes()[function.body.start], b'{');
                prop_assert!(function.lines.0 <= function.lines.1);
            }
        }
    }
}
