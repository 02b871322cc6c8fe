//! What was found, as plain data. The cli renders it; nothing here prints.
//!
//! Lines are counted from 1 in every report, as editors and `@@` lines do.

use serde::Serialize;

use crate::snapshot::TreePath;

/// What became of a hunk. Every hunk is of exactly one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HunkClass {
    /// The same lines at the same place.
    Exact,
    /// The lines it changes and leans on are the same; their place comes from
    /// the diff between the text the patch was made for and this one.
    Moved,
    /// No base is known, the text is not at the stated line, and one place
    /// alone fits once order and the neighbours' shift count.
    Offset,
    /// As `offset`, but several places fit.
    Ambiguous,
    /// The change is there already, at the mapped place.
    Landed,
    /// The lines it changes or leans on are not there, or not as they were.
    Conflict,
    /// The lines differ only in their line ends (CR LF against LF).
    LineEndings,
    /// The file has another name here; the hunk was placed in it.
    FileMoved,
    /// The file is not there.
    FileDeleted,
    /// Unsafe or malformed.
    Refused,
}

impl HunkClass {
    /// Whether the change is in the tree after applying: nothing is left for a
    /// person to decide.
    #[must_use]
    pub fn holds(self) -> bool {
        use HunkClass::{Exact, FileMoved, Landed, Moved, Offset};
        matches!(self, Exact | Moved | Offset | Landed | FileMoved)
    }

    /// The class as reports and case files write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            HunkClass::Exact => "exact",
            HunkClass::Moved => "moved",
            HunkClass::Offset => "offset",
            HunkClass::Ambiguous => "ambiguous",
            HunkClass::Landed => "landed",
            HunkClass::Conflict => "conflict",
            HunkClass::LineEndings => "line-endings",
            HunkClass::FileMoved => "file-moved",
            HunkClass::FileDeleted => "file-deleted",
            HunkClass::Refused => "refused",
        }
    }
}

/// What became of one hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HunkReport {
    /// Its class.
    pub class: HunkClass,
    /// The file it changes, as the tree names it.
    pub file: TreePath,
    /// Which hunk of the patch it is, from 1: its files' hunks are counted on.
    pub number: usize,
    /// Its line in the patch file.
    pub patch_line: usize,
    /// The line its header states for the preimage.
    pub stated_line: usize,
    /// The line its preimage begins at in the tree, before this patch; where
    /// the hunk does not hold, nothing.
    pub line: Option<usize>,
    /// The line its postimage begins at in the tree, after this patch.
    pub new_line: Option<usize>,
    /// Lines it adds and removes.
    pub added: usize,
    /// See `added`.
    pub removed: usize,
    /// The place was inferred from a neighbour's shift, not proven.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
    /// Other lines of the file at which its preimage also stands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<usize>,
    /// Its outer context, or the line that heads its function, changed; the
    /// hunk was placed all the same, on the lines next to its change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearby: Option<Nearby>,
    /// The earlier entry of the series whose lines it leans on and which does not
    /// hold itself: it follows from that one, not from a change of upstream's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// Why it does not hold, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What stood, what stands, and where to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
}

impl HunkReport {
    /// Says that it does not hold because an earlier entry does not.
    pub(crate) fn follow(&mut self, entry: &str) {
        self.why = Some(format!(
            "it leans on lines of the earlier entry `{entry}`, which are not there: settle that \
             one first"
        ));
        self.follows = Some(entry.to_owned());
    }
}

/// What changed near a hunk that was placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nearby {
    /// First line here of what is shown.
    pub line: usize,
    /// A diff of the hunk's surroundings, then and now: lines that begin with
    /// a space, `-` or `+`.
    pub diff: Vec<String>,
}

/// Both sides of a hunk that does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The preimage: the lines the hunk wants to find.
    pub wanted: Vec<String>,
    /// The lines that stand where they should be, where that is known.
    pub found: Vec<String>,
    /// First line of `found`.
    pub found_line: Option<usize>,
    /// The nearest place where most of the wanted lines stand. Only a hint:
    /// nothing is applied there.
    pub hint_line: Option<usize>,
}

/// What became of one file as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// The file, as the tree names it after the patch.
    pub path: TreePath,
    /// Its name before, where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<TreePath>,
    /// `modify`, `create`, `delete`, `rename`, `copy`.
    pub operation: &'static str,
    /// What became of the operation itself; hunks have their own classes.
    pub class: HunkClass,
    /// Why it does not hold, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What became of one patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PatchReport {
    /// The patch, as the series or the command line names it.
    pub name: String,
    /// Its files, in the patch's order.
    pub files: Vec<FileReport>,
    /// Its hunks, in the patch's order.
    pub hunks: Vec<HunkReport>,
}

impl PatchReport {
    /// Whether every file and every hunk holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.files.iter().all(|f| f.class.holds()) && self.hunks.iter().all(|h| h.class.holds())
    }

    /// Whether every file and every hunk is just where and what the patch states.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let exact = |c: HunkClass| c == HunkClass::Exact;
        self.files.iter().all(|f| exact(f.class)) && self.hunks.iter().all(|h| exact(h.class))
    }

    /// Whether there is nothing left to apply: all of it has landed.
    #[must_use]
    pub fn landed(&self) -> bool {
        let landed = |c: HunkClass| c == HunkClass::Landed;
        let whole = self.files.iter().filter(|f| f.operation != "modify" || self.hunks.is_empty());
        let mut classes =
            self.hunks.iter().map(|h| h.class).chain(whole.map(|f| f.class)).peekable();
        classes.peek().is_some() && classes.all(landed)
    }
}
