//! Whether lines stand in the function, the class and the blocks that they were made for, and
//! under its heading.

use std::ops::Range;

use super::Edit;
use super::heads::{class_name, heading, heading_name, is_heading, is_name};
use super::within::Both;
use crate::cpp::{Kind, lex_meaning};

impl Both<'_> {
    /// Fails, with the reason in a sentence, where lines that were at `was`, and are at `is`,
    /// stand in a function, a class or a block of another name; `depth` is how far they are
    /// indented.
    pub(super) fn same_place(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
        depth: Option<usize>,
    ) -> Result<(), String> {
        self.same_head(was, is, depth)?;
        self.same_blocks(was, is, depth)
    }

    /// As [`Self::same_place`], of all but what opens blocks and lists in the function.
    pub(super) fn same_head(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
        depth: Option<usize>,
    ) -> Result<(), String> {
        let (base, text) = (self.base(), self.text());
        let headings = (heading(base, was.start), heading(text, is.start));
        let same_heading = match headings {
            (Some(then), Some(now)) => base[then] == text[now],
            (then, now) => then == now,
        };
        if same_heading && self.stands_alike(was, is, depth) {
            return Ok(());
        }
        self.read_head(was, is, depth, headings)
    }

    /// As [`Self::same_head`], where the lines themselves do not prove it; `headings` are those of
    /// both texts.
    fn read_head(
        &self,
        was: &Range<usize>,
        is: &Range<usize>,
        depth: Option<usize>,
        headings: (Option<usize>, Option<usize>),
    ) -> Result<(), String> {
        let (base, text) = (self.base(), self.text());
        if self.came_into_words(was, is) {
            return Err("upstream put its lines into a comment or a string".into());
        }
        if let Some(off) = self.switched_off(was, is) {
            return Err(format!("upstream switched its lines off: `#if 0` at line {}", off + 1));
        }
        if let Some((condition, met)) = self.other_arm(was, is) {
            let (is, was) = if met { ("is", "is not") } else { ("is not", "is") };
            return Err(format!(
                "its lines stand here, but where `{condition}` {is} met, and it was made for where it \
                 {was}"
            ));
        }
        if let Some((new, old, line)) = self.exchanged_arm(was, is) {
            return Err(format!(
                "its lines stand here, but under `{new}`, and it was made for `{old}`, which is at \
                 line {}",
                line + 1
            ));
        }
        if self.reads() {
            self.same_function(was, is, depth)?;
        }
        // What is around lines of a script is read without headings.
        if self.is_inside(was) || self.are_scripts() {
            return Ok(());
        }
        let (Some(then), Some(now)) = headings else { return Ok(()) };
        let mut names = (class_name(base, then, was.start), class_name(text, now, is.start));
        // A head that was not read as a function's may be one all the same.
        if names == (None, None) && !self.is_read(then) {
            names = (heading_name(base, then, was.start), heading_name(text, now, is.start));
        }
        let (Some(before), Some(after)) = names else { return Ok(()) };
        // What is over before the lines heads them in neither text.
        let past = |text: &[&[u8]], heading: usize, until: usize| {
            let before = text[heading..until.max(heading)].concat();
            matches!(brackets(&before), (0, 0, b";" | b"}")) || depth == Some(0) && is_call(&before)
        };
        if before == after
            || past(base, then, was.start) && past(text, now, is.start)
            || self.in_one_list(was, is)
        {
            return Ok(());
        }
        let shown = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        Err(format!(
            "its lines stand here, but under `{}`, and it was made for `{}`",
            shown(&after),
            shown(&before)
        ))
    }
}

/// Whether two headings give the one name that no other of their texts gives, and go on
/// alike after it: a declaration, say, that got another type.
pub(super) fn is_one_head(then: (&[&[u8]], Option<usize>), now: (&[&[u8]], Option<usize>)) -> bool {
    let told = only_head(then);
    told.is_some() && told == only_head(now)
}

/// A heading from its name on, where no other of its text has that.
fn only_head<'t>((text, at): (&[&'t [u8]], Option<usize>)) -> Option<&'t [u8]> {
    let at = at?;
    let name = heading_name(text, at, at + 1)?;
    let has_it = |line: &usize| heading_name(text, *line, line + 1).as_ref() == Some(&name);
    let headings = (0..text.len()).filter(|line| is_heading(text[*line]));
    let begin = memchr::memmem::find(text[at], &[&name[..], b"("].concat())?;
    (headings.filter(has_it).count() == 1).then_some(&text[at][begin..])
}

/// Whether a change outside of any function stands where it stood, whatever heads the lines
/// before it: in the same braces, and what begins at those headings is over before it.
pub(super) fn stands_apart(
    was: &Range<usize>,
    now: &Edit,
    headings: (Option<usize>, Option<usize>),
    both: &Both<'_>,
) -> bool {
    // What is around lines of a script is read without headings.
    if both.are_scripts() {
        return true;
    }
    let over = |text: &[&[u8]], heading: Option<usize>, until: usize| {
        heading.is_none_or(|from| is_over(&text[from..until.max(from)].concat()))
    };
    let depth = both.depth_of(now, both.text());
    // A paragraph of prose ends with a blank line. That it stands in no function is known.
    if !both.reads() && depth == Some(0) {
        let blank = |text: &[&[u8]], heading: Option<usize>, until: usize| {
            let lines = heading.map(|from| &text[from..until.max(from)]);
            lines.is_none_or(|lines| {
                lines.iter().any(|line| line.trim_ascii().is_empty())
                    && matches!(brackets(&lines.concat()), (0, 0, _))
            })
        };
        return blank(both.base(), headings.0, was.start)
            && blank(both.text(), headings.1, now.range.start);
    }
    let called = |text: &[&[u8]], heading: Option<usize>, until: usize| {
        heading.is_some_and(|from| is_call(&text[from..until.max(from)].concat()))
    };
    if depth == Some(0)
        && called(both.base(), headings.0, was.start)
        && called(both.text(), headings.1, now.range.start)
    {
        return true;
    }
    over(both.base(), headings.0, was.start)
        && over(both.text(), headings.1, now.range.start)
        && both.stands_alike(was, &now.range, depth)
}

/// Whether no statement goes on after a text. The braces that are open there are compared
/// with those that were.
fn is_over(text: &[u8]) -> bool {
    let (_, others, last) = brackets(text);
    others == 0 && matches!(last, b";" | b"{" | b"}")
}

/// Whether a text is one call and no more: a macro's, that needs no `;` before lines which are
/// not indented.
fn is_call(text: &[u8]) -> bool {
    let words: Vec<&[u8]> = code(text).collect();
    let mut depth = 0_usize;
    let closes = words.iter().position(|word| {
        match *word {
            b"(" => depth += 1,
            b")" => depth = depth.saturating_sub(1),
            _ => return false,
        }
        depth == 0
    });
    matches!(words[..], [name, b"(", ..] if is_name(name)) && closes == Some(words.len() - 1)
}

/// How many braces a text leaves open, how many other brackets, and its last word.
fn brackets(text: &[u8]) -> (usize, usize, &[u8]) {
    code(text).fold((0, 0, b";"), |(braces, others, _), word| match word {
        b"{" => (braces + 1, others, word),
        b"(" | b"[" => (braces, others + 1, word),
        // What closes more than was opened is a namespace that is over.
        b"}" => (braces.saturating_sub(1), others, word),
        b")" | b"]" => (braces, others.saturating_sub(1), word),
        _ => (braces, others, word),
    })
}

/// The words of a text that are in no directive.
fn code(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let tokens = lex_meaning(text).into_iter();
    tokens.filter(|t| t.kind != Kind::Directive).map(|t| t.of(text))
}
