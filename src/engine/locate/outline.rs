//! What a line of a text is in: the braces that are open before it.
//!
//! A mapped hunk has to stand in the function it was made for. Where the lines
//! that opened what is around it are the very lines that did so before, it
//! does, and no function need be read: an outline costs a look at each line.

mod statements;

use std::cell::OnceCell;
use std::ops::Range;

use super::effect::{After, Effect, goes_on};
use super::heads::{Head, ends_statement};
use crate::cpp::{Condition, meaning};
use crate::merge::LineMap;

/// The braces and conditions of a text, by its lines.
pub(super) struct Outline {
    /// What the gap before a line is in, and those after it up to the next one
    /// that is given.
    inside: Vec<(usize, Inside)>,
    /// The braces that their own line does not close.
    braces: Vec<Opened>,
    /// The branches of conditions.
    branches: Vec<Opened>,
}

/// What is open in a place.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Inside {
    /// The innermost brace, by number.
    brace: Option<usize>,
    /// The innermost branch, by number.
    branch: Option<usize>,
    /// The line that begins the comment, string or directive of several lines.
    words: Option<usize>,
}

/// A brace, or a branch of a condition.
#[derive(Default)]
struct Opened {
    line: usize,
    /// The line that closes the brace or ends the branch, where one does.
    end: Option<usize>,
    /// The one around it; of a branch that is not the first, the one before it.
    around: Option<usize>,
    /// The first line of what heads the brace, and what it is; nothing where that
    /// cannot be told. Read when it is asked for.
    head: OnceCell<Option<(usize, Head)>>,
}

/// The braces around a place, as far as they tell where it is.
struct Around<'o> {
    /// The lines that head each, the outermost first, down to the function's.
    heads: Vec<Range<usize>>,
    /// The function's own, where there is one.
    function: Option<&'o Opened>,
}

/// An arm of a condition.
pub(super) struct Arm {
    /// The line that begins the condition.
    pub condition: usize,
    /// The lines between the arm's own and the next one's.
    pub lines: Range<usize>,
}

/// The lines to read for what opens the blocks and lists around a place.
pub(super) struct Region {
    /// Those of its function; of what is in none, of the outermost statement around it that
    /// heads no namespace and no class.
    pub lines: Range<usize>,
    /// The line after the function's head; the first line where there is no function.
    pub body: usize,
    /// A function is around it.
    pub function: bool,
}

impl Outline {
    /// Reads a text, given what each of its lines does where it begins in code.
    pub fn of(text: &[&[u8]], mut effect: impl FnMut(usize) -> Effect) -> Self {
        let mut top = Inside::default();
        let inside = Vec::with_capacity(text.len() / 3 + 1);
        let mut outline = Self { inside, braces: vec![], branches: vec![] };
        outline.inside.push((0, top));
        // What is open where each condition began. All its branches begin with
        // that, and what is after it goes on with what the last one left open.
        let mut conditions: Vec<Inside> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (mut piece, mut does) = (text[at], effect(at));
            at += 1;
            if does == Effect::NONE {
                continue;
            }
            outline.take(at - 1, does, &mut top, &mut conditions);
            while does.after != After::Nothing {
                outline.inside.push((at, Inside { words: Some(at - 1), ..top }));
                let Some((lines, bytes)) = goes_on(does.after, piece, &text[at..]) else {
                    // What nothing closes is no comment: `dist/*` in another language.
                    if does.after == After::Comment {
                        outline.inside.pop();
                        break;
                    }
                    return outline;
                };
                at += lines;
                piece = &text[at][bytes..];
                does = Effect::of(piece);
                outline.take(at, does, &mut top, &mut conditions);
                at += 1;
            }
            outline.inside.push((at, top));
        }
        outline
    }

    /// What the gap before a line is in.
    fn inside(&self, line: usize) -> Inside {
        self.inside[self.inside.partition_point(|(at, _)| *at <= line) - 1].1
    }

    /// Takes in what a line does.
    fn take(&mut self, line: usize, does: Effect, top: &mut Inside, conditions: &mut Vec<Inside>) {
        for _ in 0..does.closes {
            let closed = top.brace.map(|brace| &mut self.braces[brace]);
            top.brace = closed.and_then(|brace| {
                brace.end = Some(line);
                brace.around
            });
        }
        for _ in 0..does.opens {
            self.braces.push(Opened { line, around: top.brace, ..Opened::default() });
            top.brace = Some(self.braces.len() - 1);
        }
        match does.condition {
            Some(Condition::If) => {
                conditions.push(*top);
                self.branch(line, top);
            }
            Some(Condition::Else) => {
                self.end_branch(line, top);
                top.brace = conditions.last().and_then(|before| before.brace);
                self.branch(line, top);
            }
            Some(Condition::EndIf) => {
                self.end_branch(line, top);
                top.branch = conditions.pop().and_then(|b| b.branch);
            }
            None => {}
        }
    }

    fn end_branch(&mut self, line: usize, top: &Inside) {
        if let Some(branch) = top.branch {
            self.branches[branch].end = Some(line);
        }
    }

    fn branch(&mut self, line: usize, top: &mut Inside) {
        self.branches.push(Opened { line, around: top.branch, ..Opened::default() });
        top.branch = Some(self.branches.len() - 1);
    }

    /// Whether the gap before `line` is in a comment, string or directive of several
    /// lines.
    pub fn is_in_words(&self, line: usize) -> bool {
        self.inside(line).words.is_some()
    }

    /// What is open in a place, from the innermost outwards.
    fn outwards(all: &[Opened], innermost: Option<usize>) -> impl Iterator<Item = &Opened> {
        std::iter::successors(innermost.map(|at| &all[at]), |opened| {
            opened.around.map(|at| &all[at])
        })
    }

    /// The braces that the gap before `line` is in; nothing where what heads one
    /// of them cannot be told. What is open within a function does not tell one
    /// from another.
    fn around(&self, text: &[&[u8]], line: usize) -> Option<Around<'_>> {
        let mut outwards: Vec<&Opened> =
            Self::outwards(&self.braces, self.inside(line).brace).collect();
        let mut around = Around { heads: Vec::new(), function: None };
        while around.function.is_none()
            && let Some(brace) = outwards.pop()
        {
            let (head, kind) = self.head(text, brace)?;
            around.function = (kind == Head::Function).then_some(brace);
            around.heads.push(head);
        }
        Some(around)
    }

    /// The lines that begin the branches which the gap before `line` is in, the
    /// innermost first.
    pub fn branches(&self, line: usize) -> Vec<usize> {
        Self::outwards(&self.branches, self.inside(line).branch).map(|b| b.line).collect()
    }

    /// The lines that begin branches, in their order.
    pub fn all_branches(&self) -> impl Iterator<Item = usize> {
        self.branches.iter().map(|branch| branch.line)
    }

    /// What heads the namespaces and classes that the gap before `line` is in, the innermost
    /// first.
    pub fn scopes(&self, text: &[&[u8]], line: usize) -> Vec<Range<usize>> {
        let all = Self::outwards(&self.braces, self.inside(line).brace);
        let scopes = all.filter_map(|brace| self.head(text, brace));
        scopes.filter(|(_, head)| *head == Head::Scope).map(|(lines, _)| lines).collect()
    }

    /// The arms of conditions that the gap before `line` is in, the innermost first.
    pub fn arms(&self, text: &[&[u8]], line: usize) -> Vec<Arm> {
        let mut arms: Vec<Arm> = Vec::new();
        let mut later = false;
        for branch in Self::outwards(&self.branches, self.inside(line).branch) {
            let lines = branch.line + 1..branch.end.unwrap_or(text.len());
            match arms.last_mut().filter(|_| later) {
                Some(arm) => arm.condition = branch.line,
                None => arms.push(Arm { condition: branch.line, lines }),
            }
            later = Effect::of(text[branch.line]).condition == Some(Condition::Else);
        }
        arms
    }

    /// Within a function, the statements that tell what the gap before `line` is in: what
    /// goes on over it, and what heads each block around it, the innermost first; the
    /// function's own head where it may be a lambda's. Nothing where a block may be told by
    /// more than its head: an arm that is not the first, a `switch`, a list.
    pub fn blocks(&self, text: &[&[u8]], line: usize) -> Option<Vec<Range<usize>>> {
        let mut around = self.around(text, line)?;
        let (function, head) = (around.function?, around.heads.pop()?);
        let holds = |head: &Range<usize>, words: &[&[u8]]| {
            let line = |line: &&[u8]| words.iter().any(|w| memchr::memmem::find(line, w).is_some());
            text[head.clone()].iter().any(line)
        };
        let alone = |head: &Range<usize>| {
            let last = text[head.end - 1].trim_ascii();
            let bare = last.strip_suffix(b"{").unwrap_or_default().trim_ascii_end();
            bare.ends_with(b")") && !holds(head, &[b"else", b"switch"])
        };
        let begun = self.statement(text, line)?..line;
        let all = Self::outwards(&self.braces, self.inside(line).brace);
        let inner = all.take_while(|brace| !std::ptr::eq(*brace, function));
        let heads = inner.map(|brace| {
            let head = self.statement(text, brace.line)?..brace.line + 1;
            alone(&head).then_some(head)
        });
        let mut heads = heads.collect::<Option<Vec<_>>>()?;
        heads.extend((!begun.is_empty()).then_some(begun));
        heads.extend(holds(&head, &[b"=", b"\""]).then_some(head));
        Some(heads)
    }

    /// Where to read what opens blocks and lists around the gap before `line`.
    pub fn region(&self, text: &[&[u8]], line: usize) -> Region {
        let whole =
            |start: usize, brace: &Opened| start..brace.end.map_or(text.len(), |end| end + 1);
        if let Some((head, brace)) = self.around(text, line).and_then(|mut around| {
            let function = around.function?;
            Some((around.heads.pop()?, function))
        }) {
            return Region { lines: whole(head.start, brace), body: head.end, function: true };
        }
        let mut outwards: Vec<&Opened> =
            Self::outwards(&self.braces, self.inside(line).brace).collect();
        outwards.reverse();
        let is_scope = |b: &&&Opened| matches!(self.head(text, b), Some((_, Head::Scope)));
        let lines = match outwards.iter().find(|b| !is_scope(b)) {
            Some(b) => whole(self.statement(text, b.line).unwrap_or(b.line), b),
            None => self.statement(text, line).unwrap_or(line)..line,
        };
        Region { body: lines.start, lines, function: false }
    }

    /// The lines of the class, table or other block around the gap before `line` that no other
    /// than namespaces are around; nothing where it does not end.
    pub fn block(&self, text: &[&[u8]], line: usize) -> Option<Range<usize>> {
        let namespace = |words: &[u8]| matches!(words, b"namespace" | b"extern");
        let block = |brace: &Opened| match self.head(text, brace) {
            Some((head, Head::Scope)) => {
                !meaning(&text[head].concat()).iter().any(|word| namespace(word))
            }
            _ => true,
        };
        let all = Self::outwards(&self.braces, self.inside(line).brace);
        let outermost = all.filter(|brace| block(brace)).last()?;
        let start = self.statement(text, outermost.line).unwrap_or(outermost.line);
        Some(start..outermost.end? + 1)
    }

    /// The line of the `#if 0` that the gap before `line` is in.
    pub fn switched_off(&self, text: &[&[u8]], line: usize) -> Option<usize> {
        let never = |line: &[u8]| matches!(meaning(line)[..], [b"#", b"if", b"0" | b"false", ..]);
        // Of a later branch, those before it are not what the gap is in.
        let mut later = false;
        self.branches(line).into_iter().find(|&at| {
            let first = Effect::of(text[at]).condition == Some(Condition::If);
            let off = first && !later && never(text[at]);
            later = !first;
            off
        })
    }

    /// The function which the gap before `line` is in, head included: the lines that
    /// head it, and all of its lines where it ends.
    pub fn function(
        &self,
        text: &[&[u8]],
        line: usize,
    ) -> Option<(Range<usize>, Option<Range<usize>>)> {
        let Around { mut heads, function } = self.around(text, line)?;
        let (function, head) = match function {
            Some(function) => (function, heads.pop()?),
            None => self.headed(text, line)?,
        };
        let whole = function.end.map(|end| head.start..end + 1);
        Some((head, whole))
    }

    /// The function whose head the gap before `line` is in.
    fn headed(&self, text: &[&[u8]], line: usize) -> Option<(&Opened, Range<usize>)> {
        let opens = |at: &usize| text[*at].contains(&b'{') || ends_statement(text[*at]);
        let last = (line..text.len()).find(opens)?;
        let brace = self.braces.get(self.braces.partition_point(|b| b.line < last))?;
        if brace.line != last {
            return None;
        }
        let (head, kind) = self.head(text, brace)?;
        (head.start < line && kind == Head::Function).then_some((brace, head))
    }

    /// Whether lines, or the gap before one, are beyond doubt in no function and in no
    /// macro, and begin none.
    pub fn is_outside(&self, text: &[&[u8]], lines: &Range<usize>) -> bool {
        let outside = |gap: usize| {
            let around = || self.around(text, gap);
            !self.is_in_words(gap) && around().is_some_and(|a| a.function.is_none())
        };
        let begins = |line: &&[u8]| line.contains(&b'{') || line.contains(&b'\\');
        self.is_between(text, lines.start)
            && !text[lines.clone()].iter().any(begins)
            && self.is_between(text, lines.end)
            && outside(lines.start)
    }

    /// Whether a function or a macro of several lines may be there.
    pub fn may_hold_functions(&self) -> bool {
        !self.braces.is_empty() || self.inside.iter().any(|(_, inside)| inside.words.is_some())
    }
}

/// A text with its outline.
pub(super) type Outlined<'t> = (&'t [&'t [u8]], &'t Outline);

/// Whether lines that were at `was`, kept, and are at `is` stand in the function
/// they stood in: every brace from the outermost down to it and every condition
/// around is opened by the line that opened it before, with the whole statement
/// that heads it. `false` says nothing.
pub(super) fn stands_alike(
    (base, then): Outlined<'_>,
    (text, now): Outlined<'_>,
    map: &LineMap<'_>,
    was: &Range<usize>,
    is: &Range<usize>,
) -> bool {
    let (Some(opened), Some(opens)) = (then.around(base, was.start), now.around(text, is.start))
    else {
        return false;
    };
    let same_braces = opened.heads.len() == opens.heads.len()
        && opened.heads.iter().zip(&opens.heads).all(|(old, new)| map.keeps(old, new));
    let (branched, branches) = (then.branches(was.start), now.branches(is.start));
    let same_branches = branched.len() == branches.len()
        && branched.iter().zip(&branches).all(|(old, new)| map.line(*old) == Some(*new));
    let begun = |(text, outline): Outlined<'_>, at: usize| {
        outline.inside(at).words.map(|line| text[line].to_vec())
    };
    // A function can begin in the lines themselves, or before them where they are in
    // its head.
    let begin = |(text, outline): Outlined<'_>, around: &Around<'_>, at: usize| {
        around.function.map_or_else(|| outline.statement(text, at), |_| Some(at))
    };
    let (Some(old), Some(new)) =
        (begin((base, then), &opened, was.start), begin((text, now), &opens, is.start))
    else {
        return false;
    };
    let mut after = was.end.saturating_sub(1).max(was.start)..base.len();
    let whole = was.is_empty() && (old, new) == (was.start, is.start)
        || after
            .find(|&line| then.ends_statement(base, line))
            .is_some_and(|last| map.keeps(&(old..last + 1), &(new..new + last + 1 - old)));
    whole
        && same_braces
        && same_branches
        && begun((base, then), was.start) == begun((text, now), is.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::lines;

    /// The head of the function that the line `x` is in, white space taken out.
    fn head(text: &str) -> Option<String> {
        let lines = lines(text.as_bytes());
        let outline = Outline::of(&lines, |at| Effect::of(lines[at]));
        let x = lines.iter().position(|l| l.trim_ascii() == b"x")?;
        let (head, _) = outline.function(&lines, x)?;
        let head = String::from_utf8(lines[head].concat()).expect("text");
        Some(head.split_whitespace().collect())
    }

    #[test]
    fn a_function_is_found_from_its_braces() {
        for (text, found) in [
            ("void f() {\nx\n}\n", Some("voidf(){")),
            ("namespace n {\nint a;\n\nvoid\nf()\n{\nif (a) {\nx\n}\n}\n}\n", Some("voidf(){")),
            ("void f() {\n}\nx\n", None),
            ("void f() {\n} void g() {\nx\n}\n", Some("}voidg(){")),
            // What closes there closes nothing.
            ("void f() {\n// }\n/* }\n} */ g(\"}\", '}', R\"(\n}\n)\");\nx\n}\n", Some("voidf(){")),
            ("void f() {\n#define A } \\\n  }\nx\n}\n", Some("voidf(){")),
            // One body under two heads, and one in either branch.
            ("#if A\nvoid f() {\n#else\nvoid g() {\n#endif\nx\n}\n", None),
            ("#if A\nvoid f() {\n}\n#else\nvoid g() {\nx\n}\n#endif\n", Some("voidg(){")),
            // A class may be named in a head, and above it.
            ("// a class (\ntemplate <class T>\nenum E f(struct A* a) {\nx\n}\n", None),
            (
                "template <class T>\nvoid f(struct A* a) {\nx\n}\n",
                Some("template<classT>voidf(structA*a){"),
            ),
            ("// a class (\nvoid f() {\nx\n}\n", Some("//aclass(voidf(){")),
            // What ends a comment ends no statement.
            ("void f // ;\n() { // a\nx\n}\n", Some("voidf//;(){//a")),
            ("struct A {\n}; // a;\nvoid f() {\nx\n}\n", Some("voidf(){")),
            (
                "// a\n\n/* b */\n\n#if A\nint a;\n#else\nvoid f() {\nx\n}\n#endif\n",
                Some("voidf(){"),
            ),
            ("void f\n#if A\n(int a) {\n#else\n(int b) {\n#endif\nx\n}\n", None),
            ("void f\n\n() {\nx\n}\n", None),
            // Nor can it be told what heads these.
            ("int a[] = {\nx\n};\n", None),
            ("void f(int a = int{}\n  , int b) {\nx\n}\n", Some("voidf(inta=int{},intb){")),
            ("void f(A a = {\n  }\n, int b) {\nx\n}\n", None),
        ] {
            assert_eq!(head(text).as_deref(), found, "{text}");
        }
    }

    #[test]
    fn what_goes_over_several_lines_is_known_where_it_is() {
        let text = "a\n/* b\n c */ /* d\n*/ e\n#define f \\\n  g\nR\"(\n)\"\nh\n";
        let lines = lines(text.as_bytes());
        let outline = Outline::of(&lines, |at| Effect::of(lines[at]));
        let words: Vec<_> = (0..=lines.len()).map(|at| outline.inside(at).words).collect();
        let expected = [None, None, Some(1), Some(2), None, Some(4), None, Some(6), None, None];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_comment_that_nothing_closes_is_none() {
        let lines = lines(b"- dist/*\na {\n- test/*.py\n}\nb\n");
        let outline = Outline::of(&lines, |at| Effect::of(lines[at]));
        assert!((0..=lines.len()).all(|at| !outline.is_in_words(at)));
        assert_eq!(outline.braces.len(), 1);
    }
}
