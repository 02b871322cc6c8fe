//! The names in a function's head.

use super::{Kind, Parser};

/// A name followed by `(`, outside any bracket: perhaps the declarator.
pub(super) struct Candidate {
    /// Index of the last part of the name, or of its `operator`.
    pub token: usize,
    /// Index of the last token of the name.
    pub last: usize,
    /// Its qualified name.
    pub name: String,
    /// The name with the arguments of templates.
    pub written: String,
    /// Index of the `(`.
    pub open: usize,
}

/// Whether what follows a word in `(…)` is an attribute's and no function's:
/// `__launch_bounds__(…)`. Names with two `_` at either end are the compiler's own.
pub(crate) fn is_attribute(word: &[u8]) -> bool {
    let own = word.len() > 4 && word.starts_with(b"__") && word.ends_with(b"__");
    own || matches!(word, b"alignas" | b"__declspec")
}

impl Parser<'_> {
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
    pub(super) fn candidate(&self, i: usize) -> Option<Candidate> {
        if let Some((begin, name)) = self.operator(i) {
            return Some(self.qualified(begin, i - 1, (name, i)));
        }
        // The parameters may be those of one branch of an `#if`.
        let directive = |at: &usize| self.tokens[*at].kind == Kind::Directive;
        let last = self.before_angles((0..i).rev().find(|at| !directive(at))?)?;
        let name = self.name(last)?;
        let none = matches!(name.as_str(), "noexcept" | "requires" | "decltype" | "operator");
        if none || is_attribute(name.as_bytes()) {
            return None;
        }
        Some(self.qualified(last, last, (name, i)))
    }

    /// The index before the `<…>` that ends at `i`, or `i` where none does.
    fn before_angles(&self, i: usize) -> Option<usize> {
        let (mut first, mut depth) = (i, 0_isize);
        loop {
            match self.word(first) {
                b">" => depth += 1,
                b">>" => depth += 2,
                b"<" => depth -= 1,
                b")" => first = self.partner[first].filter(|p| *p < first)?,
                b";" | b"{" | b"}" => return None,
                _ => {}
            }
            if depth <= 0 {
                return if first == i { Some(i) } else { first.checked_sub(1) };
            }
            first = first.checked_sub(1)?;
        }
    }

    /// A name, whose parameters begin at `open`, with the classes before it.
    fn qualified(&self, token: usize, last: usize, (name, open): (String, usize)) -> Candidate {
        let mut first = token;
        let written = name.clone() + &self.joined(last + 1..open);
        let mut candidate = Candidate { token, last, name, written, open };
        while first >= 2 && self.word(first - 1) == b"::" {
            let Some(before) = self.before_angles(first - 2) else { break };
            let Some(part) = self.name(before) else { break };
            let arguments = self.joined(before + 1..first - 1);
            candidate.written = format!("{part}{arguments}::{}", candidate.written);
            candidate.name = format!("{part}::{}", candidate.name);
            first = before;
        }
        candidate
    }

    /// What a macro is given first that stands for a head: nothing but a template's head
    /// is before its name, and it is no constructor's.
    pub(super) fn macro_argument(&self, begin: usize, head: &Candidate) -> Option<String> {
        let capital = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        let constructs = || {
            let class = self.scopes.iter().flatten().last();
            class.is_some_and(|class| class.name.rsplit("::").next() == Some(&head.name))
        };
        let template = self.word(begin) == b"template" && self.word(begin + 1) == b"<";
        let begin = if template { self.past_angles(begin + 1) } else { begin };
        if head.token != begin || !head.name.bytes().all(capital) || constructs() {
            return None;
        }
        let end = self.past(head.open).checked_sub(1)?;
        let (mut at, first) = (head.open + 1, head.open + 1);
        while at < end && self.word(at) != b"," {
            at = self.past(at);
        }
        Some(self.joined(first..at.min(end)))
    }
}
