//! Which function a line of a text stands in.
//!
//! The lines next to a change are often as common as `}`, and upstream may give
//! them to a function of another name. So a mapped hunk has to be in the very
//! function it was made for, as [`cpp::function`] reads the two texts. A
//! macro over several lines counts as a function.

use std::cell::OnceCell;
use std::ops::Range;

use super::anywhere;
use crate::cpp::{function, meaning};
use crate::merge::LineMap;

/// The functions of a text, by its lines.
pub struct Functions {
    scopes: Vec<Scope>,
    /// Its lines that [`is_mark`] names.
    marks: Vec<usize>,
}

/// A function, or a macro over several lines.
struct Scope {
    /// Its name, with the namespaces and classes around it.
    path: String,
    /// The tokens before its body: they tell overloads apart.
    head: Vec<u8>,
    /// Its lines, 0-based.
    lines: Range<usize>,
}

/// Both texts of a mapped hunk, and where the lines of the one went.
pub(super) struct Both<'t> {
    base: &'t Functions,
    /// The text at hand.
    pub text: &'t [&'t [u8]],
    /// Where the lines of the base went in it.
    pub map: &'t LineMap,
    now: OnceCell<Functions>,
    /// Whether every mark is kept, and no other has come.
    same_marks: OnceCell<bool>,
}

impl Functions {
    /// Reads the functions of a text, given as lines.
    #[must_use]
    pub fn of(text: &[&[u8]]) -> Self {
        let bytes = text.concat();
        let mut scopes = macros(text);
        scopes.extend(function::functions(&bytes).into_iter().map(|found| Scope {
            head: meaning(&bytes[found.span.start..found.body.start]).join(&b' '),
            lines: found.lines.0 - 1..found.lines.1,
            path: found.path,
        }));
        scopes.sort_by_key(|s| (s.lines.start, std::cmp::Reverse(s.lines.end)));
        Self { scopes, marks: marks(text).collect() }
    }

    /// The functions around the gap before a line, the outermost first.
    fn around(&self, gap: usize) -> Vec<&Scope> {
        self.scopes.iter().filter(|s| s.lines.start < gap && gap < s.lines.end).collect()
    }

    /// The functions that lines stand in; where they stand in none, the first
    /// that they begin.
    fn holding(&self, lines: &Range<usize>) -> Vec<&Scope> {
        let around = self.around(lines.start);
        if !around.is_empty() {
            return around;
        }
        self.scopes.iter().find(|s| lines.contains(&s.lines.start)).into_iter().collect()
    }

    /// The last function that ends before a line.
    fn before(&self, line: usize) -> Option<&Scope> {
        self.scopes.iter().filter(|s| s.lines.end <= line).max_by_key(|s| s.lines.end)
    }

    fn named(&self, path: &str) -> impl Iterator<Item = &Scope> {
        self.scopes.iter().filter(move |s| s.path == path)
    }
}

fn marks(text: &[&[u8]]) -> impl Iterator<Item = usize> {
    (0..text.len()).filter(|&i| is_mark(text[i]))
}

/// Whether a line opens or closes, or may, what a function can be in: a
/// namespace or a class, a comment, another function. Where none comes or goes,
/// what a kept line is in stays the same.
fn is_mark(line: &[u8]) -> bool {
    let words = || line.split(|b| !b.is_ascii_alphanumeric() && *b != b'_');
    line.first() == Some(&b'}')
        || line.trim_ascii().starts_with(b"};")
        || line.windows(2).any(|pair| matches!(pair, b"/*" | b"*/"))
        || words().any(|w| matches!(w, b"namespace" | b"class" | b"struct" | b"union"))
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
            found.push(Scope { head: path.clone().into_bytes(), path, lines: begin..at });
        }
    }
    found
}

impl<'t> Both<'t> {
    pub(super) fn new(base: &'t Functions, text: &'t [&'t [u8]], map: &'t LineMap) -> Self {
        Self { base, text, map, now: OnceCell::new(), same_marks: OnceCell::new() }
    }

    /// Whether functions can be read in either text at all.
    pub(super) fn reads(&self) -> bool {
        !self.base.scopes.is_empty() || !self.now().scopes.is_empty()
    }

    fn has_same_marks(&self) -> bool {
        *self.same_marks.get_or_init(|| {
            self.base.marks.iter().all(|mark| self.map.line(*mark).is_some())
                && marks(self.text).count() == self.base.marks.len()
        })
    }

    /// Whether upstream put in a second copy of the function that lines are in,
    /// under the same head, and these lines of it stand in both.
    pub(super) fn has_new_twin(&self, was: &Range<usize>, wanted: &[&[u8]]) -> bool {
        if self.has_same_marks() {
            return false;
        }
        let Some(own) = self.base.holding(was).last().copied() else { return false };
        let twins = |functions: &Functions, text: &[&[u8]]| {
            let alike = functions.named(&own.path).filter(|s| s.head == own.head);
            alike.filter(|s| !anywhere(wanted, &text[s.lines.clone()]).is_empty()).count()
        };
        twins(self.now(), self.text) > self.base.named(&own.path).count().max(1)
    }

    fn now(&self) -> &Functions {
        self.now.get_or_init(|| Functions::of(self.text))
    }

    /// Whether the lines from `from` up to the end of `was` are kept and stand
    /// together, and nothing came or went that they could be in.
    fn kept_since(&self, from: usize, was: &Range<usize>, is: &Range<usize>) -> bool {
        let Some(begin) = (is.start + from).checked_sub(was.start) else { return false };
        let kept = (from..was.end).enumerate().all(|(i, l)| self.map.line(l) == Some(begin + i));
        kept && self.has_same_marks()
    }

    /// Fails, with the reason in a sentence, where lines that were at `was` and
    /// are at `is` are in another function than before.
    pub(super) fn same_function(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
    ) -> Result<(), String> {
        let then = self.base.holding(was);
        // What stands unchanged since the head of its function, or since that of
        // the function before it, is where it was: the text need not be read.
        let since = match then.first() {
            Some(outermost) => outermost.lines.start,
            None => self.base.before(was.start).map_or(0, |s| s.lines.start),
        };
        if since < was.start && self.kept_since(since, was, is) {
            return Ok(());
        }
        let now = self.now().holding(is);
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
        let were: Vec<&Scope> = self.base.named(&then.path).collect();
        let are: Vec<&Scope> = self.now().named(&then.path).collect();
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
                    self.now().named(&then.path).next().map_or(0, |s| s.lines.start + 1)
                ),
            },
        }
    }

    fn gone(&self, then: &Scope) -> Option<String> {
        self.now().named(&then.path).next().is_none().then(|| {
            format!(
                "its function `{}` is gone: upstream took it away or gave it another name",
                then.path
            )
        })
    }

    /// Says so where the function that lines were in is not in the text.
    pub(super) fn gone_from(&self, was: &Range<usize>) -> Option<String> {
        self.gone(self.base.holding(was).last()?)
    }

    /// Whether a line of the base is part of a function that was read.
    pub(super) fn is_read(&self, line: usize) -> bool {
        self.base.scopes.iter().any(|s| s.lines.contains(&line))
    }

    /// Whether lines of the base stand in a function.
    pub(super) fn is_inside(&self, was: &Range<usize>) -> bool {
        !self.base.holding(was).is_empty()
    }

    /// The lines of the function that lines are in, then and now, where both
    /// texts have it.
    pub(super) fn function(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
    ) -> Option<(Range<usize>, Range<usize>)> {
        let then = self.base.holding(was).last()?.lines.clone();
        // A function that was kept whole has nothing to show.
        let kept = self.map.line(then.start).is_some_and(|begin| {
            then.clone().enumerate().all(|(i, l)| self.map.line(l) == Some(begin + i))
        });
        if kept {
            return None;
        }
        Some((then, self.now().holding(is).last()?.lines.clone()))
    }

    /// How many of these places (first lines) in the base, and in the text,
    /// are in a function of the name that `was` is in.
    pub(super) fn in_namesakes(
        &self,
        was: &Range<usize>,
        then: &[usize],
        now: &[usize],
    ) -> Option<(usize, usize)> {
        let path = &self.base.holding(was).last()?.path;
        let inside = |functions: &Functions, at: &usize| {
            functions.around(*at).last().is_some_and(|s| s.path == *path)
        };
        Some((
            then.iter().filter(|at| inside(self.base, at)).count(),
            now.iter().filter(|at| inside(self.now(), at)).count(),
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
