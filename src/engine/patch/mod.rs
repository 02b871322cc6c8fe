//! Patches as bytes and as types: parsed, checked, printed back.
//!
//! Nothing here knows of pins or series. A parsed [`Patch`] keeps every byte it
//! was read from, so that printing gives the same bytes back.
//!
//! [`parse`] reads bytes, [`names`] says which files of a tree are meant,
//! [`binary`] applies a `GIT binary patch`, [`quilt`] reads a quilt series;
//! what none of them takes is a [`Refusal`].

pub mod binary;
mod header;
mod hunk;
mod lines;
pub mod names;
mod parse;
pub mod quilt;
mod quote;
mod refusal;

pub use parse::parse;
pub(crate) use quote::quoted;
pub use refusal::{Reason, Refusal};

use crate::snapshot::Mode;

/// A whole patch file: any number of file patches, with prose between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The file patches, in the order they stand.
    pub files: Vec<FilePatch>,
    /// What follows the last file patch: a mail's signature, or prose.
    pub trailer: Vec<u8>,
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// Prose before the header: a mail's header, a commit's message.
    pub prose: Vec<u8>,
    /// The header as it stands, `diff --git` to `+++`, with its line ends.
    pub header: Vec<u8>,
    /// 1-based line of the patch file at which the header begins.
    pub line: usize,
    /// Offset of the header in the patch file, in bytes.
    pub byte: usize,
    /// The names as the header writes them.
    pub names: HeaderNames,
    /// The old name as written, unquoted, nothing stripped; `None` for
    /// `/dev/null` or where the file is new.
    pub old_name: Option<Vec<u8>>,
    /// The new name as written, unquoted, nothing stripped; `None` for
    /// `/dev/null` or where the file is deleted.
    pub new_name: Option<Vec<u8>>,
    /// What becomes of the file as a whole.
    pub operation: Operation,
    /// The mode before, where the header states it.
    pub old_mode: Option<Mode>,
    /// The mode after, where the header states it.
    pub new_mode: Option<Mode>,
    /// The blob ids of an `index` line, as written (hex, often abbreviated).
    pub index: Option<(String, String)>,
    /// The change of its bytes.
    pub body: Body,
}

/// The names of a header as written, unquoted, nothing stripped: what tells
/// whether they carry a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    /// The first name of the `diff --git` line, or that of the `---` line
    /// (`None` for `/dev/null`).
    pub old: Option<Vec<u8>>,
    /// The second one, or that of the `+++` line.
    pub new: Option<Vec<u8>>,
    /// The names of `rename from` and `rename to`, or `copy …`: git writes
    /// them without a prefix.
    pub moved: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether a `diff --git` line is there.
    pub style: HeaderStyle,
}

/// The two kinds of header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderStyle {
    /// `diff --git`, with git's extended lines.
    Git,
    /// `---` and `+++` alone.
    Plain,
}

/// What becomes of a file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It stays where it is.
    Modify,
    /// It is new.
    Create,
    /// It goes.
    Delete,
    /// It moves from the old name to the new one.
    Rename,
    /// The old file stays; the new one starts as its copy.
    Copy,
}

/// The change of a file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Hunks of text; none where only the mode or the name changes.
    Text(Vec<Hunk>),
    /// A `GIT binary patch`, decoded.
    Binary(BinaryPatch),
    /// `Binary files a and b differ`: says that there is a change, not which.
    /// Holds the line as it stands.
    BinaryWithoutData(Vec<u8>),
}

/// A `GIT binary patch`: the new bytes, and the old ones where they are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryPatch {
    /// The section as it stands, for printing.
    pub raw: Vec<u8>,
    /// Old bytes to new ones.
    pub forward: BinaryChange,
    /// New bytes to old ones, where the patch gives it.
    pub reverse: Option<BinaryChange>,
}

/// One direction of a binary patch, inflated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BinaryChange {
    /// All the bytes.
    Literal(Vec<u8>),
    /// A git delta against the bytes before.
    Delta(Vec<u8>),
}

/// A run of lines with their change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The `@@` line as it stands, with its line end.
    pub header: Vec<u8>,
    /// 1-based line of the patch file at which the `@@` stands.
    pub line: usize,
    /// The lines of the preimage.
    pub old: Range,
    /// The lines of the postimage. Its start is often stale and decides nothing.
    pub new: Range,
    /// The body.
    pub lines: Vec<Line>,
}

/// `start,len` of a `@@` line: 1-based; `start` is the line before where
/// `len` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First line, 1-based.
    pub start: usize,
    /// Number of lines.
    pub len: usize,
}

/// One body line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Context, removed or added.
    pub kind: LineKind,
    /// The line of the file this stands for, with its own line end, which is
    /// missing where a no-newline marker follows.
    pub text: Vec<u8>,
    /// The body line as it stands in the patch, its marker line included.
    pub raw: Vec<u8>,
}

/// Which images a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// In both images.
    Context,
    /// In the preimage alone.
    Removed,
    /// In the postimage alone.
    Added,
}

impl FilePatch {
    /// Whether a mail or a commit of a log begins before it.
    #[must_use]
    pub fn begins_commit(&self) -> bool {
        self.last_commit().is_some()
    }

    /// The prose before a file patch that begins a commit: what ends the one before, as
    /// the signature of its mail does, and what begins its own.
    #[must_use]
    pub fn parted_prose(&self) -> (&[u8], &[u8]) {
        self.prose.split_at(self.last_commit().unwrap_or_default())
    }

    /// Where in the prose the last mail or commit begins.
    fn last_commit(&self) -> Option<usize> {
        commit_begins(&self.prose).last()
    }
}

/// Where in prose a mail or a commit of a log begins.
pub(crate) fn commit_begins(prose: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    prose.split_inclusive(|b| *b == b'\n').filter_map(move |line| {
        let begin = at;
        at += line.len();
        let id = line.strip_prefix(b"From ").or_else(|| line.strip_prefix(b"commit "))?;
        let begins = id.len() >= 40 && id[..40].iter().all(u8::is_ascii_hexdigit);
        begins.then_some(begin)
    })
}

impl Hunk {
    /// The lines of the preimage: what the file must hold.
    pub fn preimage(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter(|l| l.kind != LineKind::Added).map(|l| l.text.as_slice())
    }

    /// The lines of the postimage: what the file holds afterwards.
    pub fn postimage(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter(|l| l.kind != LineKind::Removed).map(|l| l.text.as_slice())
    }
}

impl Patch {
    /// The file patches, commit by commit: a mail or a `commit` line (`git log
    /// -p`) before a file patch begins another. The moves of one commit all
    /// speak of the tree before it.
    pub fn commits(&self) -> impl Iterator<Item = &[FilePatch]> {
        self.files.chunk_by(|_, next| !next.begins_commit())
    }

    /// Refuses a patch that changes nothing. An empty file is a patch of its
    /// own in a quilt series; given alone it is a mistake.
    ///
    /// # Errors
    /// [`Reason::NoPatch`].
    pub fn require_files(&self) -> Result<(), Refusal> {
        if self.files.is_empty() {
            return Err(Refusal::new(
                Reason::NoPatch,
                "the patch is empty",
                "name a patch that changes a file; an empty one may stand in a quilt series only",
            )
            .at(refusal::Place { line: 1, byte: 0 }));
        }
        Ok(())
    }

    /// The bytes the patch was read from.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for file in &self.files {
            out.extend_from_slice(&file.prose);
            out.extend_from_slice(&file.header);
            match &file.body {
                Body::Text(hunks) => {
                    for hunk in hunks {
                        out.extend_from_slice(&hunk.header);
                        hunk.lines.iter().for_each(|l| out.extend_from_slice(&l.raw));
                    }
                }
                Body::Binary(binary) => out.extend_from_slice(&binary.raw),
                Body::BinaryWithoutData(line) => out.extend_from_slice(line),
            }
        }
        out.extend_from_slice(&self.trailer);
        out
    }
}
