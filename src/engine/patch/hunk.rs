//! Hunks: one `@@` line and its body, and the order of several.

use std::collections::HashSet;

use super::lines::{Lines, chomp, is_blank};
use super::refusal::{Place, Refusal};
use super::{Hunk, Line, LineKind, Range};

const RECOUNT: &str = "make the patch again with `git diff` or `diff -u`, or mend the counts of \
                       its `@@` line (`recountdiff` does)";

/// Reads `@@ -start[,len] +start[,len] @@`; what follows is a heading.
pub(super) fn ranges(line: &[u8]) -> Option<(Range, Range)> {
    let (old, rest) = range(line.strip_prefix(b"@@ -")?)?;
    let (new, rest) = range(rest.strip_prefix(b" +")?)?;
    rest.starts_with(b" @@").then_some((old, new))
}

fn range(text: &[u8]) -> Option<(Range, &[u8])> {
    let (start, rest) = number(text)?;
    match rest.strip_prefix(b",") {
        Some(rest) => {
            let (len, rest) = number(rest)?;
            Some((Range { start, len }, rest))
        }
        None => Some((Range { start, len: 1 }, rest)),
    }
}

/// A decimal number of at most nine digits: sums of two never overflow.
pub(super) fn number(text: &[u8]) -> Option<(usize, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 9 {
        return None;
    }
    let (digits, rest) = text.split_at(digits);
    Some((digits.iter().fold(0, |n, d| n * 10 + usize::from(d - b'0')), rest))
}

/// Takes a hunk whose `@@` line is next.
pub(super) fn take(lines: &mut Lines<'_>) -> Result<Hunk, Refusal> {
    let begin = lines.place();
    let header = lines.take().unwrap_or_default();
    let Some((old, new)) = ranges(header) else {
        return Err(Refusal::malformed(
            begin,
            format!("`{}` is no hunk header", show(header)),
            "a hunk begins with `@@ -START,COUNT +START,COUNT @@`",
        ));
    };
    for range in [old, new] {
        if range.start == 0 && range.len > 0 {
            return Err(Refusal::malformed(
                begin,
                "the hunk begins at line 0, yet lines count from 1",
                RECOUNT,
            ));
        }
    }
    let mut body = Body { lines: Vec::new(), old: old.len, new: new.len, ended: [false; 2] };
    while body.old > 0 || body.new > 0 {
        body.take_line(lines, begin)?;
    }
    if lines.peek().is_some_and(|l| l.starts_with(b"\\")) {
        body.take_marker(lines)?;
    }
    if body.lines.iter().all(|l| l.kind == LineKind::Context) {
        return Err(Refusal::malformed(begin, "the hunk changes nothing", RECOUNT));
    }
    Ok(Hunk { header: header.to_vec(), line: begin.line, old, new, lines: body.lines })
}

/// A hunk's body while it is read.
struct Body {
    lines: Vec<Line>,
    /// Lines of the preimage still to come.
    old: usize,
    /// Lines of the postimage still to come.
    new: usize,
    /// Whether a no-newline marker ended the old, the new file.
    ended: [bool; 2],
}

impl Body {
    fn take_line(&mut self, lines: &mut Lines<'_>, begin: Place) -> Result<(), Refusal> {
        let place = lines.place();
        let Some(raw) = lines.peek() else {
            return Err(Refusal::malformed(
                place,
                format!(
                    "the patch ends inside the hunk of line {}: {}",
                    begin.line,
                    self.missing()
                ),
                "the patch was cut off; get it again",
            ));
        };
        let kind = match raw[0] {
            b' ' => LineKind::Context,
            b'-' => LineKind::Removed,
            b'+' => LineKind::Added,
            b'\\' => return self.take_marker(lines),
            _ if is_blank(raw) => LineKind::Context,
            _ => return Err(self.does_not_add_up(place, begin)),
        };
        let (old, new) = sides(kind);
        if (old && self.old == 0) || (new && self.new == 0) {
            return Err(self.does_not_add_up(place, begin));
        }
        if (old && self.ended[0]) || (new && self.ended[1]) {
            return Err(Refusal::malformed(
                place,
                "a line follows after the file's last one (`\\ No newline at end of file`)",
                "make the patch again with `git diff` or `diff -u`",
            ));
        }
        if !raw.ends_with(b"\n") {
            return Err(Refusal::malformed(
                place,
                "the patch ends in the middle of a line",
                "if the line is whole, end the patch with a line break; else get it again",
            ));
        }
        self.old -= usize::from(old);
        self.new -= usize::from(new);
        let text = if is_blank(raw) { raw } else { &raw[1..] };
        self.lines.push(Line { kind, text: text.to_vec(), raw: raw.to_vec() });
        lines.take();
        Ok(())
    }

    /// `\ No newline at end of file`, in any language: the line before has
    /// none. Where the marker ends in CRLF the whole patch was converted, and
    /// the CR before it is no part of the file.
    fn take_marker(&mut self, lines: &mut Lines<'_>) -> Result<(), Refusal> {
        let place = lines.place();
        let marker = lines.take().unwrap_or_default();
        let fits = marker.starts_with(b"\\ ");
        let last = match self.lines.last_mut() {
            Some(last) if fits && last.text.ends_with(b"\n") => last,
            _ => {
                return Err(Refusal::malformed(
                    place,
                    "a stray no-newline marker",
                    "it stands once, directly after the line that has no line break",
                ));
            }
        };
        last.text.pop();
        if marker.ends_with(b"\r\n") && last.text.ends_with(b"\r") {
            last.text.pop();
        }
        last.raw.extend_from_slice(marker);
        let (old, new) = sides(last.kind);
        if (old && self.old > 0) || (new && self.new > 0) {
            return Err(Refusal::malformed(
                place,
                format!(
                    "the file's last line stands before the hunk's last: {} still to come",
                    self.missing()
                ),
                RECOUNT,
            ));
        }
        self.ended[0] |= old;
        self.ended[1] |= new;
        Ok(())
    }

    fn missing(&self) -> String {
        format!("{} old and {} new lines are missing", self.old, self.new)
    }

    fn does_not_add_up(&self, place: Place, begin: Place) -> Refusal {
        Refusal::malformed(
            place,
            format!(
                "the counts of the hunk of line {} do not add up: {} when this line comes",
                begin.line,
                self.missing()
            ),
            RECOUNT,
        )
    }
}

/// Whether a line is in the preimage, in the postimage.
fn sides(kind: LineKind) -> (bool, bool) {
    (kind != LineKind::Added, kind != LineKind::Removed)
}

/// A hunk's lines as places in the old file, lines counted from 0; a gap `n`
/// is the place before line `n`.
struct Span<'h> {
    hunk: &'h Hunk,
    byte: usize,
    begin: usize,
    end: usize,
}

impl<'h> Span<'h> {
    fn of(hunk: &'h Hunk, byte: usize) -> Self {
        let begin = hunk.old.start - usize::from(hunk.old.len > 0);
        Self { hunk, byte, begin, end: begin + hunk.old.len }
    }

    fn malformed(&self, message: impl Into<String>, remedy: &str) -> Refusal {
        let place = Place { line: self.hunk.line, byte: self.byte };
        Refusal::malformed(place, message, remedy)
    }

    /// The old lines with their kind.
    fn old(&self) -> impl Iterator<Item = (usize, &'h Line)> {
        let lines = self.hunk.lines.iter().filter(|l| l.kind != LineKind::Added);
        (self.begin..).zip(lines)
    }

    /// The gaps at which lines are added.
    fn gaps(&self) -> impl Iterator<Item = usize> {
        let mut at = self.begin;
        self.hunk.lines.iter().filter_map(move |line| {
            at += usize::from(line.kind != LineKind::Added);
            (line.kind == LineKind::Added).then_some(at)
        })
    }
}

/// Refuses hunks of one file that are out of order or that both change a line.
/// Hunks that share context alone are taken. `bytes` says where each begins.
pub(super) fn check_order(hunks: &[Hunk], bytes: &[usize]) -> Result<(), Refusal> {
    let mut open: Vec<Span<'_>> = Vec::new();
    let mut ends = Ends::default();
    for (hunk, &byte) in hunks.iter().zip(bytes) {
        let next = Span::of(hunk, byte);
        if let Some(last) = open.last()
            && next.begin < last.begin
        {
            return Err(next.malformed(
                format!(
                    "the hunk is out of order: its old lines stand before those of the hunk of \
                     line {}",
                    last.hunk.line
                ),
                "order the hunks by their old line numbers, or make the patch again",
            ));
        }
        ends.check(&next)?;
        // The last one stays for the order check; the others only while they
        // reach into the next.
        let last = open.len().saturating_sub(1);
        let mut at = 0;
        open.retain(|span| {
            at += 1;
            at - 1 == last || span.end > next.begin
        });
        for earlier in &open {
            check_pair(earlier, &next)?;
        }
        ends.see(&next);
        open.push(next);
    }
    Ok(())
}

/// Where a no-newline marker ended the old and the new file, in old lines.
#[derive(Default)]
struct Ends {
    old: Option<usize>,
    new: Option<usize>,
}

impl Ends {
    fn see(&mut self, span: &Span<'_>) {
        for line in span.hunk.lines.iter().filter(|l| !l.text.ends_with(b"\n")) {
            let (old, new) = sides(line.kind);
            self.old = if old { Some(span.end) } else { self.old };
            self.new = if new { Some(span.end) } else { self.new };
        }
    }

    fn check(&self, span: &Span<'_>) -> Result<(), Refusal> {
        let past_old = self.old.is_some_and(|end| span.end > end);
        let past_new = self.new.is_some_and(|end| {
            span.old().any(|(n, line)| n >= end && line.kind == LineKind::Context)
                || span.gaps().next().is_some()
        });
        if !past_old && !past_new {
            return Ok(());
        }
        Err(span.malformed(
            "the hunk stands after the end of the file, which an earlier one holds",
            "make the patch again with `git diff` or `diff -u`",
        ))
    }
}

fn check_pair(earlier: &Span<'_>, next: &Span<'_>) -> Result<(), Refusal> {
    let same_gap = earlier.begin == earlier.end && next.begin == next.end;
    if next.begin >= earlier.end && !(same_gap && next.begin == earlier.begin) {
        return Ok(());
    }
    let shared = next.begin..earlier.end.min(next.end);
    let ours = earlier.old().filter(|(n, _)| shared.contains(n));
    let theirs = next.old().filter(|(n, _)| shared.contains(n));
    for ((number, ours), (_, theirs)) in ours.zip(theirs) {
        if ours.kind == LineKind::Removed || theirs.kind == LineKind::Removed {
            return Err(next.malformed(
                format!(
                    "the hunk overlaps that of line {} and changes a line both hold (old line {})",
                    earlier.hunk.line,
                    number + 1
                ),
                "join the two hunks, or make the patch again",
            ));
        }
        if ours.text != theirs.text {
            return Err(next.malformed(
                format!(
                    "the hunk and that of line {} both hold old line {}, with different text",
                    earlier.hunk.line,
                    number + 1
                ),
                "mend the hunk's old line number, or make the patch again",
            ));
        }
    }
    let gaps: HashSet<usize> = earlier.gaps().collect();
    if let Some(gap) = next.gaps().find(|gap| gaps.contains(gap)) {
        return Err(next.malformed(
            format!(
                "the hunk overlaps that of line {}: both add lines after old line {gap}",
                earlier.hunk.line
            ),
            "join the two hunks, or make the patch again",
        ));
    }
    Ok(())
}

/// A line of the patch for a message: lossy, without its line end, cut short.
pub(super) fn show(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(chomp(line));
    if text.chars().count() > 60 {
        text.chars().take(57).chain("...".chars()).collect()
    } else {
        text.into_owned()
    }
}
