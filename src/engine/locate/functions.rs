//! The functions of a text, by its lines.

use std::ops::Range;

use super::indented::Block;
use crate::cpp::{function, meaning};

/// The functions of a text, by its lines.
pub(super) struct Functions {
    text: Vec<u8>,
    pub scopes: Vec<Scope>,
    /// The namespaces, classes and enumerations, the outer before the inner: their names
    /// and the lines from their first brace to their last, 0-based. None of a text that
    /// gives its functions by indentation: its classes are among them.
    enclosures: Vec<(String, Range<usize>)>,
}

/// A function, or a macro over several lines.
pub(super) struct Scope {
    /// Its name, with the namespaces and classes around it.
    pub path: String,
    /// What stands before its body (bytes): it tells overloads apart.
    head: Range<usize>,
    /// Its lines, 0-based.
    pub lines: Range<usize>,
    /// How far its head is indented, and the line after its last statement, where that
    /// and no brace makes it one.
    indented: Option<(usize, usize)>,
}

impl Scope {
    /// Whether the gap before a line is in it. What stands in the gap is indented by
    /// `depth`, where that is known, which tells after its last statement.
    fn holds(&self, gap: usize, depth: Option<usize>) -> bool {
        let Range { start, end } = self.lines;
        let ends_later = match (self.indented, depth) {
            (Some((indent, last)), Some(depth)) => gap < last || gap <= end && indent < depth,
            _ => gap < end,
        };
        start < gap && ends_later
    }
}

impl Functions {
    /// Reads the functions of a text, given as lines.
    pub fn of(lines: &[&[u8]]) -> Self {
        let text = lines.concat();
        let mut scopes = macros(lines);
        let (functions, enclosures) = function::functions_and_enclosures(&text);
        scopes.extend(functions.into_iter().map(|found| Scope {
            head: found.span.start..found.body.start,
            lines: found.lines.0 - 1..found.lines.1,
            path: match found.also {
                Some(also) => format!("{} or {also}", found.path),
                None => found.path,
            },
            indented: None,
        }));
        scopes.sort_by_key(|s| (s.lines.start, std::cmp::Reverse(s.lines.end)));
        let ends: Vec<usize> = lines
            .iter()
            .scan(0, |end, line| {
                *end += line.len();
                Some(*end)
            })
            .collect();
        let line = |byte: usize| ends.partition_point(|end| *end <= byte);
        let enclosures = enclosures
            .into_iter()
            .map(|e| (e.path, line(e.body.start)..line(e.body.end - 1)))
            .collect();
        Self { text, scopes, enclosures }
    }

    /// Those that a text gives by indentation.
    pub fn indented(lines: &[&[u8]], blocks: Vec<Block>) -> Self {
        let (mut line, mut at) = (0, 0);
        let mut scope = |Block { path, head, lines: own, last, indent }: Block| {
            let mut length = |until| {
                let all = lines[line..until].iter().map(|l| l.len()).sum::<usize>();
                line = until;
                all
            };
            at += length(head.start);
            let begin = at;
            at += length(head.end);
            Scope { path, head: begin..at, lines: own, indented: Some((indent, last)) }
        };
        let scopes = blocks.into_iter().map(&mut scope).collect();
        Self { text: lines.concat(), scopes, enclosures: Vec::new() }
    }

    /// Whether the text has none, and nothing that could hold any.
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty() && self.enclosures.is_empty()
    }

    /// The innermost namespace, class or enumeration around the gap before a line.
    pub fn enclosure(&self, gap: usize) -> Option<&str> {
        let holds = |lines: &Range<usize>| lines.start < gap && gap <= lines.end;
        let inner = self.enclosures.iter().rev().find(|(_, lines)| holds(lines));
        inner.map(|(path, _)| path.as_str())
    }

    /// The words of a function's head. A macro's name is all of its head.
    pub fn head(&self, scope: &Scope) -> Vec<u8> {
        let head = &self.text[scope.head.clone()];
        match scope.indented {
            None => meaning(head).join(&b' '),
            Some(_) => words(head),
        }
    }

    /// The lines after a function's head.
    pub fn body(&self, scope: &Scope) -> Range<usize> {
        let breaks = self.text[scope.head.clone()].iter().filter(|b| **b == b'\n').count();
        // The head ends within the line of the brace.
        let head = breaks + usize::from(scope.indented.is_none());
        (scope.lines.start + head).min(scope.lines.end)..scope.lines.end
    }

    /// The functions around the gap before a line, the outermost first.
    pub fn around(&self, gap: usize, depth: Option<usize>) -> Vec<&Scope> {
        self.scopes.iter().filter(|s| s.holds(gap, depth)).collect()
    }

    /// The functions that lines stand in; where they stand in none, the first
    /// that they begin.
    pub fn holding(&self, lines: &Range<usize>) -> Vec<&Scope> {
        self.holding_at(lines, None)
    }

    /// As [`Self::holding`], of lines indented by `depth`.
    pub fn holding_at(&self, lines: &Range<usize>, depth: Option<usize>) -> Vec<&Scope> {
        let around = self.around(lines.start, depth);
        if !around.is_empty() {
            return around;
        }
        self.scopes.iter().find(|s| lines.contains(&s.lines.start)).into_iter().collect()
    }

    /// Those of a name that have a head, given by its words.
    pub fn headed(&self, path: &str, head: &[u8]) -> Vec<&Scope> {
        self.named(path).filter(|scope| self.head(scope) == head).collect()
    }

    pub fn named(&self, path: &str) -> impl Iterator<Item = &Scope> {
        self.scopes.iter().filter(move |s| s.path == path)
    }
}

/// Whether two functions are one: the name is the same, and where several
/// have it, so is the head, or else its rank among them.
pub(super) fn is_same(
    (were, then): (&Functions, &Scope),
    (are, now): (&Functions, &Scope),
) -> bool {
    if then.path != now.path {
        return false;
    }
    let (old, new) = (were.head(then), are.head(now));
    let rank = |all: &[&Scope], one: &Scope| all.iter().position(|s| s.lines == one.lines);
    let same_rank = |were: &[&Scope], are: &[&Scope]| {
        were.len() == are.len() && rank(were, then) == rank(are, now)
    };
    if old == new {
        // Where several have this very head, as in the arms of an `#ifdef`, the
        // rank among them tells them apart.
        return same_rank(&were.headed(&then.path, &old), &are.headed(&now.path, &new));
    }
    // What both texts have is none that had another head.
    let changed = |all: &Functions, other: &Functions| {
        let had = |scope: &&Scope| other.headed(&then.path, &all.head(scope)).is_empty();
        all.named(&then.path).filter(had).map(|scope| all.head(scope)).collect::<Vec<_>>()
    };
    let (olds, news) = (changed(were, are), changed(are, were));
    let own = likeness(&old, &new);
    // Of several with other heads it has to be as like the one as any is.
    olds.contains(&old)
        && news.contains(&new)
        && olds.iter().all(|other| likeness(other, &new) <= own)
        && news.iter().all(|other| likeness(&old, other) <= own)
        && same_rank(
            &were.named(&then.path).collect::<Vec<_>>(),
            &are.named(&then.path).collect::<Vec<_>>(),
        )
}

/// How many of their words two heads share, in thousandths of all.
fn likeness(old: &[u8], new: &[u8]) -> usize {
    let mut rest: Vec<&[u8]> = new.split(|b| *b == b' ').collect();
    let (mut all, mut shared) = (rest.len(), 0);
    for word in old.split(|b| *b == b' ') {
        all += 1;
        if let Some(at) = rest.iter().position(|other| *other == word) {
            rest.swap_remove(at);
            shared += 2;
        }
    }
    shared * 1000 / all
}

/// The words of a text, with single spaces.
pub(super) fn words(text: &[u8]) -> Vec<u8> {
    let words = text.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    words.collect::<Vec<_>>().join(&b' ')
}

/// The macros that go over several lines.
fn macros(text: &[&[u8]]) -> Vec<Scope> {
    let goes_on = |line: &[u8]| line.trim_ascii_end().ends_with(b"\\");
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let begin = at;
        while at + 1 < text.len() && goes_on(text[at]) {
            at += 1;
        }
        at += 1;
        let Some(line) = text[begin].trim_ascii_start().strip_prefix(b"#") else { continue };
        let Some(rest) = line.trim_ascii_start().strip_prefix(b"define") else { continue };
        let rest = rest.trim_ascii_start();
        let end = rest.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_');
        let name = String::from_utf8_lossy(&rest[..end.unwrap_or(rest.len())]);
        if at - begin > 1 {
            let path = format!("#define {name}");
            found.push(Scope { path, head: 0..0, lines: begin..at, indented: None });
        }
    }
    found
}
