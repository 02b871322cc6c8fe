//! Which function a line of a text stands in.
//!
//! The lines next to a change are often as common as `}`, and upstream may give
//! them to a function of another name. So a mapped hunk has to be in the very
//! function it was made for, as [`cpp::function`] reads the two texts. A
//! macro over several lines counts as a function. Of a text that gives its
//! functions by indentation, classes count too.

use std::ops::Range;

use super::Edit;
use super::functions::{Functions, Scope, is_same, words};
use super::heads::signature;
use super::indented;
use super::list;
use super::namesakes::is_the_old_one;
use super::outline;
use super::plain::Language;
use super::shape::Side;
use crate::merge::LineMap;

/// Both texts of a mapped hunk, and where the lines of the one went.
pub(super) struct Both<'t> {
    pub(super) then: Side<'t>,
    pub(super) now: Side<'t>,
    /// Where the lines of the base went.
    pub map: &'t LineMap<'t>,
}

/// The heads of what lines stand in where functions are given by indentation, the
/// innermost first; nothing where it cannot be told.
pub(super) fn heads_around(
    (text, shape): Side<'_>,
    lines: &Range<usize>,
    depth: Option<usize>,
) -> Option<Vec<Range<usize>>> {
    match shape.statements(text) {
        [] => None,
        statements => indented::heads_around(text, statements, lines, depth),
    }
}

impl<'t> Both<'t> {
    pub(super) fn new(then: Side<'t>, now: Side<'t>, map: &'t LineMap<'t>) -> Self {
        Self { then, now, map }
    }

    /// The text at hand, against another one that the lines may come from.
    pub(super) fn after(&self, then: Side<'t>, map: &'t LineMap<'t>) -> Self {
        Self { then, now: self.now, map }
    }

    /// The same two texts, with another reading of where the lines went.
    pub(super) fn by(&self, map: &'t LineMap<'t>) -> Self {
        Self { map, ..*self }
    }

    pub(super) fn language(&self) -> Language {
        self.then.1.language
    }

    /// How far what an edit of a text changes or puts is indented, or else its level.
    pub(super) fn depth_of(&self, edit: &Edit, text: &[&[u8]]) -> Option<usize> {
        let put = edit.lines.iter().map(Vec::as_slice);
        self.language().depth(text[edit.range.clone()].iter().copied().chain(put))
    }

    /// The base's lines.
    pub(super) fn base(&self) -> &'t [&'t [u8]] {
        self.then.0
    }

    /// The lines of the text at hand.
    pub(super) fn text(&self) -> &'t [&'t [u8]] {
        self.now.0
    }

    pub(super) fn were(&self) -> &Functions {
        self.then.1.functions(self.then.0)
    }

    pub(super) fn are(&self) -> &Functions {
        self.now.1.functions(self.now.0)
    }

    /// Whether one of the texts gives its functions by indentation: what its
    /// braces say is nothing then.
    fn indented(&self) -> bool {
        let indented = |(text, shape): Side<'t>| !shape.statements(text).is_empty();
        indented(self.then) || indented(self.now)
    }

    /// Whether one of the texts begins its comments with `#`: no line is a condition then,
    /// and no brace heads a block.
    pub(super) fn scripted(&self) -> bool {
        let is_one = |(text, shape): Side<'t>| shape.script(text).is_one();
        is_one(self.then) || is_one(self.now)
    }

    /// Whether lines that were at `was` and are at `is` stand in the braces and
    /// conditions they stood in, or under the `def`s; `depth` is how far they are
    /// indented. `false` says nothing.
    pub(super) fn stands_alike(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
        depth: Option<usize>,
    ) -> bool {
        if self.came_into_words(was, is) {
            return false;
        }
        if self.indented() {
            let (Some(then), Some(now)) =
                (heads_around(self.then, was, depth), heads_around(self.now, is, depth))
            else {
                return false;
            };
            let mut both = then.iter().zip(&now);
            return then.len() == now.len() && both.all(|(old, new)| self.map.keeps(old, new));
        }
        let (then, now) = self.outlined();
        outline::stands_alike(then, now, self.map, was, is)
    }

    /// The heads of the functions around lines of a text, the innermost first: where
    /// each begins, and as much of it as tells one from another. Nothing where it cannot
    /// be told.
    pub(super) fn heads(
        &self,
        (text, shape): Side<'t>,
        lines: &Range<usize>,
    ) -> Option<Vec<(usize, Vec<u8>)>> {
        if self.indented() {
            let heads = heads_around((text, shape), lines, None)?.into_iter();
            return Some(heads.map(|head| (head.start, words(&text[head].concat()))).collect());
        }
        let outline = shape.outline(text);
        match outline.function(text, lines.start) {
            // The words may be a macro's.
            _ if outline.is_in_words(lines.start) => None,
            Some((head, _)) => Some(vec![(head.start, signature(&text[head]))]),
            None => outline.is_outside(text, lines).then(Vec::new),
        }
    }

    /// Whether lines that were code stand in a comment or a string of several lines.
    pub(super) fn came_into_words(&self, was: &Range<usize>, is: &Range<usize>) -> bool {
        let within = |(text, shape): Side<'t>, at| shape.is_in_words(text, at);
        within(self.now, is.start) && !within(self.then, was.start)
    }

    /// Whether functions can be read in either text at all.
    pub(super) fn reads(&self) -> bool {
        let may = |(text, shape): Side<'t>| shape.outline(text).may_hold_functions();
        self.indented()
            || self.language() == Language::Other
                && (may(self.then) && !self.were().is_empty()
                    || may(self.now) && !self.are().is_empty())
    }

    /// Fails, with the reason in a sentence, where lines that were at `was` and
    /// are at `is` are in another function than before. `depth` is how far they,
    /// or what is put there, are indented.
    pub(super) fn same_function(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
        depth: Option<usize>,
    ) -> Result<(), String> {
        let then = self.were().holding_at(was, depth);
        let now = self.are().holding_at(is, depth);
        let (were, are) = (self.were(), self.are());
        let same = |(a, b): (&&Scope, &&Scope)| {
            let sides = ((were, *a, self.base()), (are, *b, self.text()));
            is_same((were, a), (are, b)) || is_the_old_one(sides.0, sides.1, self.map, (was, is))
        };
        if then.len() == now.len() && then.iter().zip(&now).all(same) {
            // A function's name has what is around it.
            return if then.is_empty() { self.same_enclosure(was, is) } else { Ok(()) };
        }
        Err(self.why(then.last().copied(), now.last().copied()))
    }

    /// As [`Self::same_function`], of lines that are in none.
    fn same_enclosure(&self, was: &Range<usize>, is: &Range<usize>) -> Result<(), String> {
        let (then, now) = (self.were().enclosure(was.start), self.are().enclosure(is.start));
        if then == now {
            return Ok(());
        }
        let there = |now| format!("its lines stand here, but in `{now}`, and it was made for");
        Err(match (then, now) {
            (Some(then), Some(now)) => format!("{} `{then}`", there(now)),
            (None, Some(now)) => format!("{} a place outside of any namespace", there(now)),
            (then, _) => format!(
                "its lines stand here, but outside of `{}`, which it was made for",
                then.unwrap_or_default()
            ),
        })
    }

    fn why(&self, then: Option<&Scope>, now: Option<&Scope>) -> String {
        let stand = match now {
            Some(now) => format!("in `{}`", now.path),
            None => "outside of it".into(),
        };
        let lines = |all: &Functions, path| {
            list(&all.named(path).map(|s| s.lines.start).collect::<Vec<_>>())
        };
        match then {
            Some(then) if now.is_some_and(|now| now.path == then.path) => format!(
                "its lines stand here, {stand}, which was at line {} and is at line {} now, and \
                 nothing says which is the one it was made for",
                lines(self.were(), &then.path),
                lines(self.are(), &then.path)
            ),
            None => format!(
                "its lines stand here, but {stand}, and it was made for a place outside of any \
                 function"
            ),
            Some(then) => match self.gone(then) {
                Some(gone) => format!("{gone}; its lines stand {stand}"),
                None => format!(
                    "its lines stand here, but {stand}, and it was made for `{}`, which is at \
                     line {}",
                    then.path,
                    self.are().named(&then.path).next().map_or(0, |s| s.lines.start + 1)
                ),
            },
        }
    }

    fn gone(&self, then: &Scope) -> Option<String> {
        self.are().named(&then.path).next().is_none().then(|| {
            format!(
                "its function `{}` is gone: upstream took it away or gave it another name",
                then.path
            )
        })
    }

    /// Says so where the function that lines were in is not in the text.
    pub(super) fn gone_from(&self, was: &Range<usize>) -> Option<String> {
        self.gone(self.were().holding(was).last()?)
    }

    /// Whether a line of the base is part of a function that was read.
    pub(super) fn is_read(&self, line: usize) -> bool {
        self.were().scopes.iter().any(|s| s.lines.contains(&line))
    }

    /// Whether lines of the base stand in a function.
    pub(super) fn is_inside(&self, was: &Range<usize>) -> bool {
        !self.were().holding(was).is_empty()
    }

    /// The lines of the function that lines are in, then and now, where both
    /// texts have it and it was not kept whole.
    pub(super) fn function(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
    ) -> Option<(Range<usize>, Range<usize>)> {
        // A shell's functions have their braces too.
        if !matches!(self.language(), Language::Other | Language::Shell) {
            return None;
        }
        // The outline has most functions without reading any.
        let body = |(text, shape): Side<'t>, at: &Range<usize>| {
            if !self.indented() {
                let outline = shape.outline(text);
                if outline.is_outside(text, at) {
                    return None;
                }
                if let Some(whole) = outline.function(text, at.start).and_then(|f| f.1) {
                    return Some(whole);
                }
            }
            Some(shape.functions(text).holding(at).last()?.lines.clone())
        };
        let then = body(self.then, was)?;
        if self.map.kept(then.clone()).is_some() {
            return None;
        }
        Some((then, body(self.now, is)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::facts::Facts;
    use super::super::shape::Shape;
    use super::*;
    use crate::merge::lines;

    const CPP: [&str; 21] = [
        "void f() {",
        "void f(\n  int a,\n  int b,\n  int c) {",
        "void g(\n  int a,\n  int b,\n  int c) {",
        "template <class T>\nvoid f(\n  int a,\n  T b,\n  T c) {",
        "template <\n  class T,\n  int n>\nvoid f(\n  int a) {",
        "void f(struct A a) {",
        "enum E f() {",
        "// a class; (",
        "struct A {",
        "void f(\n  int a) {",
        "void f(\n\n  int b) {",
        "void g() {",
        "namespace n {",
        "}",
        "  x;",
        "  if (x) {",
        "",
        "int y = 1;",
        "#define f \\\n  x",
        "void __launch_bounds__(8) f(\n  int a) {",
        "struct alignas(8) A {",
    ];
    const PYTHON: [&str; 18] = [
        "def f():",
        "def f(\n    a,\n    b,\n) -> c:",
        "  def f(\n    a,\n    b,\n  ) -> c:",
        "  x = '''\na\nb\nc\n'''",
        "# c",
        "class A:",
        "  def f(",
        "    self):",
        "  def g(self):",
        "@a",
        "  @a",
        "    x = 1",
        "    y",
        "z",
        "",
        "  '''",
        "  # b",
        "    def f():",
    ];

    /// A text, and what deleting, doubling and putting in lines, and giving a head
    /// another name, made of it.
    fn texts(
        pool: &'static [&'static str],
        names: [&'static str; 2],
    ) -> impl Strategy<Value = (String, String)> {
        let text = prop::collection::vec(prop::sample::select(pool), 4..24);
        let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..3, 1..8_usize), 0..4);
        let renamed = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
        (text, edits, renamed).prop_map(move |(old, edits, renamed)| {
            let mut new = old.clone();
            for (at, edit, length) in edits {
                let at = at.index(new.len() + 1);
                let end = (at + length).min(new.len());
                match edit {
                    0 => drop(new.drain(at..end)),
                    1 => new.splice(end..end, new[at..end].to_vec()).for_each(drop),
                    _ => new.insert(at, old[length % old.len()]),
                }
            }
            let mut new = balanced(&new);
            for at in renamed {
                let heads: Vec<_> = new.match_indices(names[0]).map(|(at, _)| at).collect();
                if !heads.is_empty() {
                    let at = heads[at.index(heads.len())];
                    new.replace_range(at..at + names[0].len(), names[1]);
                }
            }
            (balanced(&old), new)
        })
    }

    /// The lines as a text that closes all it opens, and no more.
    fn balanced(lines: &[&str]) -> String {
        let (mut text, mut open) = (String::new(), 0);
        for line in lines {
            match line {
                l if l.ends_with('{') => open += 1,
                l if *l == "}" && open == 0 => continue,
                l if *l == "}" => open -= 1,
                _ => {}
            }
            text += line;
            text += "\n";
        }
        text + &"}\n".repeat(open)
    }

    /// What the lines prove, reading the functions must not deny.
    fn proven(old: &str, new: &str) -> Result<(), TestCaseError> {
        let (base, text) = (lines(old.as_bytes()), lines(new.as_bytes()));
        let map = LineMap::new(&base, &text);
        let (facts, (olds, news)) = (Facts::default(), map.numbers());
        let shape = |numbers| Shape::of_numbers(Language::Other, &facts, numbers);
        let (then, now) = (shape(olds), shape(news));
        let both = Both::new((&base, &then), (&text, &now), &map);
        for (start, end) in (1..base.len()).flat_map(|at| [(at, at), (at, at + 1)]) {
            let edges = start - 1..(end + 1).min(base.len());
            let Some(first) = map.kept(edges.clone()) else { continue };
            let (was, is) = (start..end, first + 1..first + 1 + (end - start));
            let own = Language::Other.depth(base[was.clone()].iter().copied());
            for depth in [None, own, Some(0), Some(2), Some(4)] {
                if both.stands_alike(&was, &is, depth) && both.reads() {
                    // Of several with one head the lines tell which, and reading does
                    // not.
                    let then = both.were().holding_at(&was, depth);
                    let now = both.are().holding_at(&is, depth);
                    let names = |all: &[&Scope]| all.iter().map(|s| s.path.clone()).collect();
                    let (then, now): (Vec<_>, Vec<_>) = (names(&then), names(&now));
                    prop_assert_eq!(then, now, "{:?} -> {:?}, {:?}", was, is, depth);
                }
            }
            let places = map.places(edges.clone());
            if both.stands_once(&was, &edges, &places) {
                let twin = both.has_second(&was, edges.clone(), &places);
                prop_assert!(!twin, "{was:?} has a twin: {places:?}");
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_lines_prove_of_indented_text_reading_says((old, new) in texts(&PYTHON, ["def f(", "def g("])) {
            proven(&old, &new)?;
        }

        #[test]
        fn what_lines_prove_reading_says((old, new) in texts(&CPP, ["void f(", "void g("])) {
            proven(&old, &new)?;
        }
    }
}
