//! What a statement before an open brace names, where it heads no function: what is given
//! a value there, or what a call is told first.

use super::heads::is_name;
use crate::cpp::function::is_attribute;

/// The name of what a statement's words give a value: a table, a lambda. Nothing where the
/// brace that they leave open is no value's.
pub(super) fn initialised(words: &[&[u8]]) -> Option<Vec<u8>> {
    let open = open_brace(words)?;
    let mut at = open;
    while at > 0 {
        at -= 1;
        match words[at] {
            b")" | b"]" => at = opening(words, at)?,
            b">" | b">>" => at = opening_angle(words, at).unwrap_or(at),
            b"=" => return assigned(&words[..at]),
            // What else a call is given is not what its result is called.
            b"(" if at + 1 < open => break,
            b"," | b";" | b"{" | b"}" | b"\n" => break,
            _ => {}
        }
    }
    braced(&words[..open])
}

/// The name of a list of Python, given the words up to the bracket that opens it: what it is
/// assigned or added to, or `in_braces` the key before its colon.
pub(super) fn assigned_list(words: &[&[u8]], in_braces: bool) -> Option<Vec<u8>> {
    let open = words.len().checked_sub(1)?;
    let calls =
        |at: usize| at > 0 && (is_name(words[at - 1]) || matches!(words[at - 1], b")" | b"]"));
    // What a call is given is no list of the name that its result has.
    if words[open] == b"(" && calls(open) {
        return None;
    }
    let mut at = open;
    while at > 0 {
        at -= 1;
        match words[at] {
            b")" | b"]" | b"}" => at = opening(words, at)?,
            b"=" | b"+=" | b"|=" => {
                let target = &words[element(words, at)..at];
                let annotated = target.iter().position(|word| *word == b":");
                let name = target[..annotated.unwrap_or(target.len())].concat();
                return Some(name).filter(|name| !name.is_empty());
            }
            b":" if in_braces => {
                let key = words[element(words, at)..at].concat();
                return Some(key).filter(|key| !key.is_empty());
            }
            b"(" if at + 1 < open => return None,
            b"," => return None,
            _ => {}
        }
    }
    None
}

/// The key that the words up to a bracket give a list: `"a": [`, which is JSON.
pub(super) fn key(words: &[&[u8]]) -> Option<Vec<u8>> {
    match words {
        [key, b":", b"{" | b"["] if key.ends_with(b"\"") => Some(key.to_vec()),
        _ => None,
    }
}

/// Where the element of a list begins that `end` is in.
fn element(words: &[&[u8]], end: usize) -> usize {
    let mut at = end;
    while at > 0 {
        match words[at - 1] {
            b"(" | b"[" | b"{" | b"," => break,
            b")" | b"]" | b"}" => at = opening(words, at - 1).unwrap_or(0),
            _ => at -= 1,
        }
    }
    at
}

/// What stands before the `=`: a name, of what no type stands before with its index.
fn assigned(words: &[&[u8]]) -> Option<Vec<u8>> {
    let index = words.last() == Some(&&b"]"[..]) && opening(words, words.len() - 1) == Some(0);
    match declared(words) {
        Some(name) if name.start > 0 => Some(words[name].concat()),
        Some(_) => Some(words.concat()),
        None => index.then(|| words.concat()),
    }
}

/// What is initialised by a brace right after its name, `T a[2]{`: a type stands before it,
/// and neither a class's keyword nor parentheses.
fn braced(words: &[&[u8]]) -> Option<Vec<u8>> {
    let ends = |word: &&[u8]| matches!(*word, b";" | b"{" | b"}" | b"\n");
    let words = &words[words.iter().rposition(ends).map_or(0, |end| end + 1)..];
    let name = declared(words)?;
    let (before, last) = (words[..name.start].last()?, words[name.end - 1]);
    let typed = matches!(*before, b">" | b"*" | b"&" | b"&&") || is_name(before);
    let other = |word: &&[u8]| {
        matches!(
            *word,
            b"(" | b"class"
                | b"struct"
                | b"union"
                | b"enum"
                | b"namespace"
                | b"return"
                | b"else"
                | b"new"
                | b"throw"
                | b"operator"
                | b"requires"
                | b"concept"
                | b"using"
        )
    };
    let keyword = matches!(last, b"const" | b"final" | b"override" | b"noexcept" | b"mutable");
    (typed && !keyword && !words.iter().any(other)).then(|| words[name].concat())
}

/// The name that a declarator ends with, its namespaces and classes counted: what it says of
/// a size and of attributes may go after it.
fn declared(words: &[&[u8]]) -> Option<std::ops::Range<usize>> {
    let mut end = words.len();
    loop {
        let last = end.checked_sub(1)?;
        match words[last] {
            b"]" => end = opening(words, last)?,
            b")" => {
                end = opening(words, last)?.checked_sub(1).filter(|at| is_attribute(words[*at]))?
            }
            b"operator" => return None,
            // A macro after the size of an array.
            word if is_name(word) && last > 0 && words[last - 1] == b"]" => {
                match opening(words, last - 1)? {
                    at if words.get(at + 1) == Some(&&b"["[..]) => break,
                    at => end = at,
                }
            }
            word if is_name(word) => break,
            _ => return None,
        }
    }
    let mut start = end - 1;
    while start >= 2 && words[start - 1] == b"::" && is_name(words[start - 2]) {
        start -= 2;
    }
    Some(start..end)
}

/// The call that a lambda is given to, where it is told a string first: `def("a", [] {`.
pub(super) fn given(words: &[&[u8]]) -> Option<Vec<u8>> {
    let mut at = open_brace(words)?;
    let mut lambda = false;
    while at > 0 {
        at -= 1;
        match words[at] {
            b"]" => {
                at = opening(words, at)?;
                lambda |= at > 0 && matches!(words[at - 1], b"," | b"(");
            }
            b")" | b"}" => at = opening(words, at)?,
            b"(" => {
                let (name, text) = (words.get(at.checked_sub(1)?)?, words.get(at + 1)?);
                let told = is_name(name) && text.ends_with(b"\"");
                return (lambda && told).then(|| [name, &b"("[..], text, b")"].concat());
            }
            b";" | b"{" => return None,
            _ => {}
        }
    }
    None
}

/// The outermost brace that words leave open.
fn open_brace(words: &[&[u8]]) -> Option<usize> {
    let (mut depth, mut found) = (0_usize, None);
    for (at, word) in words.iter().enumerate().rev() {
        match *word {
            b"}" => depth += 1,
            b"{" if depth == 0 => found = Some(at),
            b"{" => depth -= 1,
            _ => {}
        }
    }
    found
}

/// The bracket that the one at `at` closes.
fn opening(words: &[&[u8]], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    (0..=at).rev().find(|&i| {
        match words[i] {
            b")" | b"]" | b"}" => depth += 1,
            b"(" | b"[" | b"{" => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// The `<` that the angle at `at` closes, where it does.
fn opening_angle(words: &[&[u8]], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut begin = at + 1;
    while begin > 0 {
        begin -= 1;
        match words[begin] {
            b">" => depth += 1,
            b">>" => depth += 2,
            b"<" => depth -= 1,
            b")" | b"]" => begin = opening(words, begin)?,
            b";" | b"{" | b"}" => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(begin);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpp::meaning;

    #[test]
    fn what_is_given_a_value_names_its_brace() {
        for (head, name) in [
            ("static const int A[] = {", "A"),
            ("constexpr std::array<int, 6> A = {{", "A"),
            ("std::map<std::string, std::function<void(int)>> A = {", "A"),
            ("const int n::A::t[2][3] = {", "n::A::t"),
            ("int A[] __attribute__((aligned(16))) = {", "A"),
            ("static const int A[6] PROGMEM = {", "A"),
            ("[[maybe_unused]] static int A[] = {", "A"),
            ("std::vector<int> A{", "A"),
            ("static const T* A[3]{", "A"),
            ("int a = 1, b[] = {", "b"),
            ("auto A = std::map<int, int>{", "A"),
            ("auto A = make({", "A"),
            (".a = {", "a"),
            ("1,\n},\n.b = {", "b"),
            ("auto f = [&](int a = 3) -> std::pair<int, int> {", "f"),
            ("x[i] = {", "x[i]"),
            ("x[\"a\"][1] = {", "x[\"a\"][1]"),
            ("[A] = {", "[A]"),
            ("{1, 2},\n{", ""),
            (".a = 1,\n},\n{", ""),
            ("auto A = make([&] {", ""),
            ("make(a, {", ""),
            ("return {", ""),
            ("return A{", ""),
            ("else {", ""),
            ("class API A {", ""),
            ("enum class E : int {", ""),
            ("template <class T = int>\nvoid f(int a = 1) {", ""),
            ("template <class T = int>\nstruct A {", ""),
            ("A& operator=(const A& a) {", ""),
            ("A::A(int a) : a_(a), b{", ""),
            ("if (x == y) {", ""),
            ("for (int i = 0; i < n; i++) {", ""),
            ("m.def(\"a\", [](int a = 1) {", ""),
            ("auto f() const noexcept {", ""),
            ("namespace a::b {", ""),
            ("int a", ""),
            ("} ] ) > {", ""),
        ] {
            let name = Some(name.as_bytes().to_vec()).filter(|name| !name.is_empty());
            assert_eq!(initialised(&meaning(head.as_bytes())), name, "{head}");
        }
    }

    #[test]
    fn a_call_names_the_lambda_that_it_is_given() {
        for (head, name) in [
            ("m.def(\"a\", [](int a) {", "def(\"a\")"),
            ("})\n.def(\n    \"a\",\n    R\"(b)\", [&]() -> int {", "def(\"a\")"),
            ("run([] {", ""),
            ("run(a, [] {", ""),
            ("print(\"a\", {", ""),
            ("if (is(\"a\")) {", ""),
            ("run(\"a\", f([] {", ""),
            ("run(\"a\", b[1] {", ""),
        ] {
            let name = Some(name.as_bytes().to_vec()).filter(|name| !name.is_empty());
            assert_eq!(given(&meaning(head.as_bytes())), name, "{head}");
        }
    }
}
