//! Where a hunk belongs in a text: by mapping where the text it was made for
//! is known, by what it states and by what stands there where it is not.
//!
//! No fuzz: a line that must match matches, byte for byte, or the hunk does not
//! hold. A nearest fuzzy place is worked out for the report alone.

mod alone;
mod arms;
mod blocks;
mod brackets;
mod effect;
mod facts;
mod functions;
mod heads;
mod indented;
mod inside;
mod landed;
mod lists;
mod mapped;
mod names;
mod namesakes;
mod nearby;
mod openings;
mod outline;
mod own;
mod plain;
mod script;
mod shape;
mod twins;
mod within;

use std::ops::Range;

use crate::merge::standing;
use crate::patch::{Hunk, LineKind};
use crate::report::{Conflict, HunkClass, Nearby};

pub use alone::place_alone;
pub use facts::Facts;
pub use mapped::{map_places, place_mapped};
pub use plain::Language;
pub use shape::{Shape, Side};

/// A run of lines of a text (0-based) and what takes their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The lines that go; empty for a gap.
    pub range: Range<usize>,
    /// The lines that come.
    pub lines: Vec<Vec<u8>>,
}

/// A hunk that has its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// `Exact`, `Moved`, `Offset` or `Landed`.
    pub class: HunkClass,
    /// The lines its preimage covers (0-based); of a landed hunk, those its
    /// postimage covers.
    pub site: Range<usize>,
    /// What it does to the text; nothing where it has landed.
    pub edits: Vec<Edit>,
    /// The place rests on a neighbour's shift or on order.
    pub inferred: bool,
    /// Other places (0-based) at which the preimage stands.
    pub rivals: Vec<usize>,
    /// What changed around it.
    pub nearby: Option<Nearby>,
}

/// A hunk that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// `Ambiguous`, `Conflict` or `LineEndings`.
    pub class: HunkClass,
    /// Why, in a sentence.
    pub why: String,
    /// The lines (0-based) that stand where its own should be, where that is
    /// known.
    pub found: Option<Range<usize>>,
}

impl Unplaced {
    /// Both sides, for a report: it costs a look at the whole text.
    #[must_use]
    pub fn conflict(&self, hunk: &Hunk, text: &[&[u8]]) -> Conflict {
        let wanted: Vec<&[u8]> = hunk.preimage().collect();
        let found = self.found.clone().filter(|r| r.start <= r.end && r.end <= text.len());
        // A conflict in a file that was rewritten can span all of it; what a
        // person needs is the neighbourhood.
        let shown_part = found.clone().map(|r| r.start..r.end.min(r.start + 2 * wanted.len() + 6));
        Conflict {
            wanted: wanted.iter().map(|l| shown(l)).collect(),
            found: shown_part
                .map(|r| text[r].iter().map(|l| shown(l)).collect())
                .unwrap_or_default(),
            found_line: found.as_ref().map(|r| r.start + 1),
            hint_line: nearest(&wanted, text, found.as_ref(), stated(hunk)).map(|at| at + 1),
        }
    }
}

/// A hunk's place, or why it has none.
pub type Place = Result<Placed, Unplaced>;

/// Whether the text at hand is the one the patch was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// It is: a stated line is right even where no context proves it.
    Base,
    /// Not known: only what stands there counts.
    Unknown,
}

/// The 0-based line at which a hunk says its preimage begins.
fn stated(hunk: &Hunk) -> usize {
    if hunk.old.len == 0 { hunk.old.start } else { hunk.old.start.saturating_sub(1) }
}

/// Every place at which these lines stand.
pub(crate) fn anywhere(wanted: &[&[u8]], text: &[&[u8]]) -> Vec<usize> {
    // Few lines are as long as the longest.
    let longest = wanted.iter().enumerate().max_by_key(|(_, line)| line.len()).map(|(i, _)| i);
    standing(wanted, text, longest)
}

/// Lines of context before the first and after the last change.
fn context(hunk: &Hunk) -> (usize, usize) {
    let is_context = |l: &&crate::patch::Line| l.kind == LineKind::Context;
    (
        hunk.lines.iter().take_while(is_context).count(),
        hunk.lines.iter().rev().take_while(is_context).count(),
    )
}

/// 0-based lines as text, counted from 1.
fn list(lines: &[usize]) -> String {
    lines.iter().map(|l| (l + 1).to_string()).collect::<Vec<_>>().join(", ")
}

/// What alone may tell lines that stand from those that were looked for.
#[derive(Clone, Copy)]
enum LineEnds {
    /// One side has CR LF, the other LF.
    Carriage,
    /// One side ends with a newline, the other without.
    Last,
}

impl LineEnds {
    const ALL: [LineEnds; 2] = [LineEnds::Carriage, LineEnds::Last];

    /// A line without what may tell it from its like.
    fn without(self, line: &[u8]) -> Vec<u8> {
        let bare = without_line_end(line);
        match self {
            LineEnds::Carriage if line.ends_with(b"\n") => [bare, b"\n"].concat(),
            LineEnds::Carriage => line.to_vec(),
            LineEnds::Last => bare.to_vec(),
        }
    }

    /// The fate of a hunk whose lines stand at `found`, but for this.
    fn unplaced(self, found: &Range<usize>) -> Unplaced {
        let (class, why) = match self {
            LineEnds::Carriage => (
                HunkClass::LineEndings,
                "its lines are there, with other line ends: one side has CR LF, the other LF; \
                 convert the patch or the file",
            ),
            LineEnds::Last => (
                HunkClass::Conflict,
                "its lines are there, but for the newline at the end of the file: one side has \
                 it, the other has not",
            ),
        };
        Unplaced { class, ..conflict(Some(found), why) }
    }
}

/// A line without its line end, LF or CR LF.
pub(crate) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn conflict(found: Option<&Range<usize>>, why: &str) -> Unplaced {
    Unplaced { class: HunkClass::Conflict, why: why.to_string(), found: found.cloned() }
}

/// The place where most of the wanted lines stand, how far they are indented
/// aside. That is about `found`, where the diff between the texts leads, if they
/// stand there with others between; else where most stand line by line, the
/// nearest among equals.
fn nearest(
    wanted: &[&[u8]],
    text: &[&[u8]],
    found: Option<&Range<usize>>,
    stated: usize,
) -> Option<usize> {
    let most = |score: usize| score * 2 > wanted.len();
    let (length, sought) = (wanted.len(), bare(wanted));
    let about = found.map(|r| r.start.saturating_sub(length)..(r.end + length).min(text.len()));
    // Where a whole file was rewritten it leads nowhere.
    if let Some(about) = about.filter(|about| about.len() <= 8 * length + 8) {
        let there = bare(&text[about.clone()]);
        let ops = similar::capture_diff_slices(similar::Algorithm::Myers, &sought, &there);
        let kept = ops.iter().filter(|op| op.tag() == similar::DiffTag::Equal);
        let kept: Vec<usize> = kept.flat_map(|op| op.new_range()).collect();
        if let (Some(first), Some(last)) = (kept.first(), kept.last())
            && most(kept.len())
            && last - first < 3 * length
        {
            return Some(about.start + first);
        }
    }
    let near = found.map_or(stated, |r| r.start);
    let score = |at: usize| {
        let pairs = || wanted.iter().zip(&text[at..]);
        let alike = pairs().filter(|(w, t)| w.trim_ascii_start() == t.trim_ascii_start()).count();
        (alike, pairs().filter(|(w, t)| w == t).count())
    };
    (0..text.len())
        .map(|at| (score(at), std::cmp::Reverse(at.abs_diff(near)), at))
        .max()
        .filter(|((alike, _), ..)| most(*alike))
        .map(|(.., at)| at)
}

/// Lines without the blanks that they begin with.
fn bare<'t>(lines: &[&'t [u8]]) -> Vec<&'t [u8]> {
    lines.iter().map(|line| line.trim_ascii_start()).collect()
}

/// A line for a report: without its line end, bytes that are no UTF-8 replaced.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod tests;
