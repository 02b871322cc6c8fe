//! Which function a line of a text stands in.
//!
//! The lines next to a change are often as common as `}`, and upstream may give
//! them to a function of another name. So a mapped hunk has to be in the very
//! function it was made for, as [`cpp::function`] reads the two texts. A
//! macro over several lines counts as a function. Of a text that gives its
//! functions by indentation, classes count too.

use std::cell::OnceCell;
use std::ops::Range;

use super::anywhere;
use super::indented::{self, Block};
use super::outline::{self, Effect, Outline};
use crate::cpp::{function, meaning};
use crate::merge::LineMap;

/// The functions of a text, by its lines.
struct Functions {
    scopes: Vec<Scope>,
}

/// A function, or a macro over several lines.
struct Scope {
    /// Its name, with the namespaces and classes around it.
    path: String,
    /// The tokens before its body: they tell overloads apart.
    head: Vec<u8>,
    /// Its lines, 0-based.
    lines: Range<usize>,
    /// How far its head is indented, where that and no brace makes it one.
    indent: Option<usize>,
}

impl Scope {
    /// Whether the gap before a line is in it. What stands in the gap is
    /// indented by `depth`, where that is known.
    fn holds(&self, gap: usize, depth: Option<usize>) -> bool {
        let Range { start, end } = self.lines;
        match (self.indent, depth) {
            (Some(indent), Some(depth)) => start < gap && gap <= end && indent < depth,
            _ => start < gap && gap < end,
        }
    }
}

impl From<Block> for Scope {
    fn from(Block { path, head, lines, indent }: Block) -> Self {
        Self { path, head, lines, indent: Some(indent) }
    }
}

/// What is known of a text's form, read when it is asked for.
#[derive(Default)]
pub struct Shape {
    functions: OnceCell<Functions>,
    outline: OnceCell<Outline>,
    /// Those by indentation; nothing where there are none.
    indented: OnceCell<Option<Functions>>,
}

impl Shape {
    /// Of a text whose outline is read already, given what each of its lines
    /// does on its own.
    #[must_use]
    pub fn outlined(text: &[&[u8]], effect: impl FnMut(usize) -> Effect) -> Self {
        let outline = OnceCell::from(Outline::of(text, effect));
        Self { outline, ..Self::default() }
    }

    fn functions(&self, text: &[&[u8]]) -> &Functions {
        self.indented(text).unwrap_or_else(|| self.functions.get_or_init(|| Functions::of(text)))
    }

    /// The functions of a text that gives them by indentation.
    fn indented(&self, text: &[&[u8]]) -> Option<&Functions> {
        let read = || {
            let scopes: Vec<Scope> = indented::blocks(text).into_iter().map(Scope::from).collect();
            (!scopes.is_empty()).then_some(Functions { scopes })
        };
        self.indented.get_or_init(read).as_ref()
    }

    fn outline(&self, text: &[&[u8]]) -> &Outline {
        self.outline.get_or_init(|| Outline::of(text, |at| Effect::of(text[at])))
    }
}

/// A text, and its form.
pub type Side<'t> = (&'t [&'t [u8]], &'t Shape);

/// Both texts of a mapped hunk, and where the lines of the one went.
pub(super) struct Both<'t> {
    then: Side<'t>,
    now: Side<'t>,
    /// Where the lines of the base went.
    pub map: &'t LineMap<'t>,
}

impl Functions {
    /// Reads the functions of a text, given as lines.
    fn of(text: &[&[u8]]) -> Self {
        let bytes = text.concat();
        let mut scopes = macros(text);
        scopes.extend(function::functions(&bytes).into_iter().map(|found| Scope {
            head: meaning(&bytes[found.span.start..found.body.start]).join(&b' '),
            lines: found.lines.0 - 1..found.lines.1,
            path: found.path,
            indent: None,
        }));
        scopes.sort_by_key(|s| (s.lines.start, std::cmp::Reverse(s.lines.end)));
        Self { scopes }
    }

    /// The functions around the gap before a line, the outermost first.
    fn around(&self, gap: usize, depth: Option<usize>) -> Vec<&Scope> {
        self.scopes.iter().filter(|s| s.holds(gap, depth)).collect()
    }

    /// The functions that lines stand in; where they stand in none, the first
    /// that they begin.
    fn holding(&self, lines: &Range<usize>) -> Vec<&Scope> {
        self.holding_at(lines, None)
    }

    /// As [`Self::holding`], of lines indented by `depth`.
    fn holding_at(&self, lines: &Range<usize>, depth: Option<usize>) -> Vec<&Scope> {
        let around = self.around(lines.start, depth);
        if !around.is_empty() {
            return around;
        }
        self.scopes.iter().find(|s| lines.contains(&s.lines.start)).into_iter().collect()
    }

    fn named(&self, path: &str) -> impl Iterator<Item = &Scope> {
        self.scopes.iter().filter(move |s| s.path == path)
    }
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
            let head = path.clone().into_bytes();
            found.push(Scope { head, path, lines: begin..at, indent: None });
        }
    }
    found
}

impl<'t> Both<'t> {
    pub(super) fn new(then: Side<'t>, now: Side<'t>, map: &'t LineMap<'t>) -> Self {
        Self { then, now, map }
    }

    /// The base's lines.
    pub(super) fn base(&self) -> &'t [&'t [u8]] {
        self.then.0
    }

    /// The lines of the text at hand.
    pub(super) fn text(&self) -> &'t [&'t [u8]] {
        self.now.0
    }

    fn were(&self) -> &Functions {
        self.then.1.functions(self.then.0)
    }

    fn are(&self) -> &Functions {
        self.now.1.functions(self.now.0)
    }

    /// Whether one of the texts gives its functions by indentation: what its
    /// braces say is nothing then.
    fn indented(&self) -> bool {
        let indented = |(text, shape): Side<'t>| shape.indented(text).is_some();
        indented(self.then) || indented(self.now)
    }

    /// Whether lines that were at `was` and are at `is` stand in the braces and
    /// conditions they stood in. `false` says nothing.
    pub(super) fn stands_alike(&self, was: &Range<usize>, is: &Range<usize>) -> bool {
        if self.indented() {
            return false;
        }
        let outlined = |(text, shape): Side<'t>| (text, shape.outline(text));
        outline::stands_alike(outlined(self.then), outlined(self.now), self.map, was, is)
    }

    /// Whether all places of the base's lines `edges` in the text at hand that are in
    /// a function with the head of the one around `was` are in the very same.
    fn stands_once(&self, was: &Range<usize>, edges: &Range<usize>) -> bool {
        if self.indented() {
            return false;
        }
        let (base, text) = (self.base(), self.text());
        let (then, now) = (self.then.1.outline(base), self.now.1.outline(text));
        let Some((own, _)) = then.function(base, was.start) else {
            return was.is_empty() && then.is_outside(base, was.start);
        };
        let lead = was.start - edges.start;
        let mut heads = anywhere(&base[edges.clone()], text)
            .into_iter()
            .filter_map(|at| Some(now.function(text, at + lead)?.0))
            .filter(|head| text[head.clone()] == base[own.clone()]);
        let first = heads.next();
        heads.all(|head| Some(head) == first)
    }

    /// The line of the `#if 0` that lines which are at `is` came to stand in.
    pub(super) fn switched_off(&self, was: &Range<usize>, is: &Range<usize>) -> Option<usize> {
        let off = |(text, shape): Side<'t>, at| shape.outline(text).switched_off(text, at);
        off(self.now, is.start).filter(|_| off(self.then, was.start).is_none())
    }

    /// Whether functions can be read in either text at all.
    pub(super) fn reads(&self) -> bool {
        let may = |(text, shape): Side<'t>| shape.outline(text).may_hold_functions();
        self.indented()
            || may(self.then) && !self.were().scopes.is_empty()
            || may(self.now) && !self.are().scopes.is_empty()
    }

    /// Whether upstream put in a second copy of the function that the base's
    /// lines `was` are in, under the same head, and `edges`, those and the lines
    /// beside them, stand in both.
    pub(super) fn has_new_twin(&self, was: &Range<usize>, edges: Range<usize>) -> bool {
        if self.map.most_places(edges.clone()) <= 1 || self.stands_once(was, &edges) {
            return false;
        }
        let Some(own) = self.were().holding(was).last().copied() else { return false };
        let wanted = &self.base()[edges];
        let alike = self.are().named(&own.path).filter(|s| s.head == own.head);
        let twins = alike.filter(|s| !anywhere(wanted, &self.text()[s.lines.clone()]).is_empty());
        twins.count() > self.were().named(&own.path).count().max(1)
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
        let same = |(a, b): (&&Scope, &&Scope)| self.is_same(a, b);
        if then.len() == now.len() && then.iter().zip(&now).all(same) {
            return Ok(());
        }
        Err(self.why(then.last().copied(), now.last().copied()))
    }

    /// Whether two functions are one: the name is the same, and where several
    /// have it, so is the head, or else its rank among them.
    fn is_same(&self, then: &Scope, now: &Scope) -> bool {
        if then.path != now.path {
            return false;
        }
        let were: Vec<&Scope> = self.were().named(&then.path).collect();
        let are: Vec<&Scope> = self.are().named(&then.path).collect();
        let rank = |all: &[&Scope], one: &Scope| all.iter().position(|s| s.lines == one.lines);
        if then.head == now.head {
            // Where several have this very head, as in the arms of an `#ifdef`,
            // the rank tells them apart.
            let alone = |all: &[&Scope]| all.iter().filter(|s| s.head == then.head).count() <= 1;
            return alone(&were) && alone(&are)
                || were.len() == are.len() && rank(&were, then) == rank(&are, now);
        }
        let has = |all: &[&Scope], head: &[u8]| all.iter().any(|s| s.head == head);
        were.len() == are.len()
            && rank(&were, then) == rank(&are, now)
            && !has(&were, &now.head)
            && !has(&are, &then.head)
    }

    fn why(&self, then: Option<&Scope>, now: Option<&Scope>) -> String {
        let stand = match now {
            Some(now) => format!("in `{}`", now.path),
            None => "outside of it".into(),
        };
        match then {
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
        // The outline has most functions without reading any.
        let body = |(text, shape): Side<'t>, at: &Range<usize>| {
            let outline = || shape.outline(text).function(text, at.start)?.1;
            let outlined = if self.indented() { None } else { outline() };
            let read = || Some(shape.functions(text).holding(at).last()?.lines.clone());
            outlined.or_else(read)
        };
        let then = body(self.then, was)?;
        if self.map.kept(then.clone()).is_some() {
            return None;
        }
        Some((then, body(self.now, is)?))
    }

    /// How many of these places (first lines) in the base, and in the text,
    /// are in a function of the name that `was` is in.
    pub(super) fn in_namesakes(
        &self,
        was: &Range<usize>,
        then: &[usize],
        now: &[usize],
    ) -> Option<(usize, usize)> {
        let path = &self.were().holding(was).last()?.path;
        let inside = |functions: &Functions, at: &usize| {
            functions.around(*at, None).last().is_some_and(|s| s.path == *path)
        };
        Some((
            then.iter().filter(|at| inside(self.were(), at)).count(),
            now.iter().filter(|at| inside(self.are(), at)).count(),
        ))
    }
}

/// The name that a heading gives, where no function can be read: the word
/// before the first `(`. Of a heading that is a template's head alone, the lines
/// after it up to `until` count.
pub(super) fn heading_name(text: &[&[u8]], heading: usize, until: usize) -> Option<Vec<u8>> {
    let first = text[heading];
    if is_statement(first) {
        return None;
    }
    let more = first.starts_with(b"template") && !first.contains(&b'(');
    let end = if more { until.max(heading + 1) } else { heading + 1 };
    let line = text[heading..end.min(text.len())].concat();
    let before = &line[..line.iter().position(|b| *b == b'(')?];
    let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'~');
    let begin = before.iter().rposition(|b| !word(b)).map_or(0, |at| at + 1);
    Some(before[begin..].to_vec()).filter(|name| !name.is_empty())
}

/// Whether a line that is no head ends here: a declaration.
fn is_statement(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b";")
}

/// The name of the class that a heading opens and that no line up to `until`
/// closes.
pub(super) fn class_name(text: &[&[u8]], heading: usize, until: usize) -> Option<Vec<u8>> {
    let closed = text[heading..until.min(text.len())].iter().any(|l| l.starts_with(b"}"));
    if closed || is_statement(text[heading]) {
        return None;
    }
    let mut words =
        text[heading].split(|b| !b.is_ascii_alphanumeric() && *b != b'_').filter(|w| !w.is_empty());
    words
        .next()
        .filter(|w| matches!(*w, b"class" | b"struct" | b"union" | b"enum"))
        .and_then(|_| words.find(|w| !matches!(*w, b"class" | b"struct")))
        .map(<[u8]>::to_vec)
}
