//! Why a patch or a series is not taken, where, and what to do about it.

use std::fmt;

use super::FilePatch;

/// A patch, or a part of one, that is unsafe or cannot be read: nothing of it
/// is used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(self.line, self.byte))]
pub struct Refusal {
    /// The kind of fault.
    pub reason: Reason,
    /// 1-based line of the file that was read, where the fault has a place.
    pub line: Option<usize>,
    /// Offset of that place in bytes, from 0.
    pub byte: Option<usize>,
    /// What is wrong, as a sentence without its full stop.
    pub message: String,
    /// What the user can do.
    pub remedy: String,
}

/// The kinds of refusal; their text form ([`Reason::as_str`]) is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The text is no whole, consistent patch: counts that do not add up, a
    /// stray line, hunks that overlap or are out of order, names that disagree.
    Malformed,
    /// The text holds no change of any file.
    NoPatch,
    /// The bytes are encoded or packed: UTF-16, gzip, quoted-printable.
    Encoded,
    /// A binary change whose bytes the patch does not carry.
    Binary,
    /// A binary change whose base, or result, is not the one it was made for.
    BinaryBase,
    /// A name that leaves the tree, is absolute, or reaches into `.git`, under
    /// any name that a file system takes for it.
    PathEscape,
    /// A name that the overlay keeps for itself in every tree.
    Reserved,
    /// A name that is not UTF-8, or holds a NUL byte or a line break.
    PathEncoding,
    /// The name can be read in several ways, or has too few parts to strip.
    Prefix,
    /// A symbolic link that leaves the tree, or a file behind a link.
    Symlink,
    /// A change of a submodule.
    Submodule,
    /// An entry of a quilt `series` file that cannot be followed.
    Series,
}

impl Reason {
    /// The kind as reports write it: kebab-case, stable.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Malformed => "malformed",
            Reason::NoPatch => "no-patch",
            Reason::Encoded => "encoded",
            Reason::Binary => "binary",
            Reason::BinaryBase => "binary-base",
            Reason::PathEscape => "path-escape",
            Reason::Reserved => "reserved",
            Reason::PathEncoding => "path-encoding",
            Reason::Prefix => "prefix",
            Reason::Symlink => "symlink",
            Reason::Submodule => "submodule",
            Reason::Series => "series",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

/// A place in the file that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// 1-based.
    pub line: usize,
    /// From 0.
    pub byte: usize,
}

impl Refusal {
    /// A refusal that has no place in a file.
    pub fn new(reason: Reason, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason, line: None, byte: None, message: message.into(), remedy: remedy.into() }
    }

    /// The same, at a place.
    pub(super) fn at(mut self, place: Place) -> Self {
        self.line = Some(place.line);
        self.byte = Some(place.byte);
        self
    }

    /// The same, at the file patch that it is about, where it has no place yet.
    #[must_use]
    pub fn in_file(self, file: &FilePatch) -> Self {
        match self.line {
            Some(_) => self,
            None => self.at(Place { line: file.line, byte: file.byte }),
        }
    }

    /// A malformed patch, at a place.
    pub(super) fn malformed(
        place: Place,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(Reason::Malformed, message, remedy).at(place)
    }
}

fn place(line: Option<usize>, byte: Option<usize>) -> String {
    match (line, byte) {
        (Some(line), Some(byte)) => format!("line {line} (byte {byte}): "),
        (Some(line), None) => format!("line {line}: "),
        (None, Some(byte)) => format!("byte {byte}: "),
        (None, None) => String::new(),
    }
}
