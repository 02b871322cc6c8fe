//! Contracts: what a series relies on and does not touch.
//!
//! A series stores four kinds. A [`Watch`] names a function, or a part of one,
//! whose meaning the series repeats. A [`Kernel`] names host names that must be
//! instantiated. A [`Cite`] binds a `file:line` in docs or code to a symbol. A
//! [`Note`] says why an entry takes lines away. The first three are checked
//! against upstream's text at the pin and at a target ([`check`]), the last
//! against the entries themselves ([`check_notes`]).

mod check;
mod cite;
mod directives;
pub mod kernel;
mod note;
mod text;
mod watch;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::snapshot::{ObjectId, TreePath};
use crate::source::SnapshotSource;

pub use check::check;
pub(crate) use check::{Expand, Expanded, check_with, expanded};
pub use note::check_notes;
pub(crate) use watch::diff;

/// The contracts of a series, in the file's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contracts {
    /// Meaning that must stay.
    pub watch: Vec<Watch>,
    /// Kernels that must exist.
    pub kernel: Vec<Kernel>,
    /// Citations that must point at what they name.
    pub cite: Vec<Cite>,
    /// Lines that entries take away, with the reason.
    pub note: Vec<Note>,
}

/// A function, or a part of a file, whose meaning must not change unseen.
///
/// With `function` alone it is the whole function. With `from` it is the
/// tokens from there to the next `to` at the same depth of brackets, both
/// included: `function = "qmv"`, `from = "bool fast"` is one statement.
/// Anchors are compared as tokens, so that a reformatted file still has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// The file.
    pub file: TreePath,
    /// The function, with its namespace or class where the name alone is not
    /// unique. Needed unless `from` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The tokens at which the part begins; they must stand once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The tokens at which the part ends; where nothing is said `;`, or the end
    /// of the line where `from` begins a preprocessor line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What relies on it.
    #[serde(deserialize_with = "said")]
    pub reason: String,
    /// Targets at which a person accepted the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledged: Vec<Acknowledgement>,
}

/// Host names that the compiled kernel library must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// The host name; `{a,b}` stands for each of `a` and `b`.
    pub name: String,
    /// The `.metal` file that instantiates it.
    pub file: TreePath,
    /// The host function that spells the name when it dispatches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// Who asks for it.
    #[serde(deserialize_with = "said")]
    pub reason: String,
    /// Targets at which a person accepted the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledged: Vec<Acknowledgement>,
}

/// A function of the host code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its file.
    pub file: TreePath,
    /// Its name.
    pub function: String,
}

/// A place of upstream's text that something outside it points at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cite {
    /// `file:line` or `file:first-last`, 1-based, as the pin has them.
    pub at: Place,
    /// What stands there: a function (the lines lie inside it), or another
    /// name (it stands on the first of the lines).
    pub symbol: String,
    /// Who points at it.
    #[serde(deserialize_with = "said")]
    pub reason: String,
    /// Targets at which a person accepted the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledged: Vec<Acknowledgement>,
}

/// Why an entry of the series takes lines of a file away. Each line counts: a
/// `-` line that no note declares is an upstream line undone by mistake, until
/// somebody says why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The entry's name.
    pub entry: String,
    /// The file it changes.
    pub file: TreePath,
    /// The lines it takes away, white space around them left out; a line that
    /// goes twice is listed twice. Blank lines are not listed.
    pub removes: Vec<String>,
    /// Why.
    #[serde(deserialize_with = "said")]
    pub reason: String,
}

/// A change that a person looked at and accepted, for one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acknowledgement {
    /// The full commit id, or the snapshot as the command line names it.
    #[serde(deserialize_with = "target")]
    pub target: String,
    /// Why the series still holds.
    #[serde(deserialize_with = "said")]
    pub reason: String,
}

/// A reason that says something.
fn said<'de, D: serde::Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    let text = String::deserialize(d)?;
    if text.trim().is_empty() {
        return Err(serde::de::Error::custom("`reason` says nothing"));
    }
    Ok(text)
}

/// A target that one commit, or one released tree, alone has.
fn target<'de, D: serde::Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    let text = String::deserialize(d)?;
    let commit = text.parse::<ObjectId>().map(|id| id.to_string());
    let released = || text.parse::<SnapshotSource>().map(|source| source.to_string());
    commit.or_else(|_| released()).map_err(|_| {
        serde::de::Error::custom(format!(
            "`target` is `{text}`: a whole commit id (40 hexadecimal digits) or a released tree \
             (crate:NAME@VERSION:folder) is wanted"
        ))
    })
}

/// Lines of a file, written `file:line` or `file:first-last`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: TreePath,
    /// First line, 1-based.
    pub first: usize,
    /// Last line; the first where there is one.
    pub last: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.first)?;
        if self.last == self.first { Ok(()) } else { write!(f, "-{}", self.last) }
    }
}

impl std::str::FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not `file:line` or `file:first-last`");
        let (file, lines) = text.rsplit_once(':').ok_or_else(wrong)?;
        let file = TreePath::new(file).map_err(|e| format!("`{file}`: {e}"))?;
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let number = |t: &str| t.parse::<usize>().ok().filter(|n| *n > 0).ok_or_else(wrong);
        let (first, last) = (number(first)?, number(last)?);
        if first > last { Err(wrong()) } else { Ok(Self { file, first, last }) }
    }
}

impl Serialize for Place {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Whether a contract holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Nothing that means anything changed.
    Held,
    /// It changed, and a person accepted it for this target.
    Acknowledged,
    /// Its meaning changed: a person must look.
    Changed,
    /// What it names is not there any more, or the contract is wrong.
    Broken,
}

impl Status {
    /// Whether nothing is left for a person to decide.
    #[must_use]
    pub fn holds(self) -> bool {
        matches!(self, Status::Held | Status::Acknowledged)
    }

    /// The status as reports write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Held => "held",
            Status::Acknowledged => "acknowledged",
            Status::Changed => "changed",
            Status::Broken => "broken",
        }
    }
}

/// What kind of contract a verdict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContractKind {
    /// [`Watch`].
    Watch,
    /// [`Kernel`].
    Kernel,
    /// [`Cite`].
    Cite,
    /// [`Note`].
    Note,
    /// The original of a derived function.
    Derive,
}

impl ContractKind {
    /// Whether it says something of upstream's text alone.
    #[must_use]
    pub fn is_of_upstream(self) -> bool {
        matches!(self, ContractKind::Watch | ContractKind::Kernel | ContractKind::Cite)
    }

    /// The kind as the series writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ContractKind::Watch => "watch",
            ContractKind::Kernel => "kernel",
            ContractKind::Cite => "cite",
            ContractKind::Note => "note",
            ContractKind::Derive => "derive",
        }
    }
}

/// What became of one contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Its kind.
    pub kind: ContractKind,
    /// What it is about, as the series writes it; unique within its kind.
    pub name: String,
    /// Whether it holds.
    pub status: Status,
    /// What was found, in one line.
    pub what: String,
    /// Where it stands at the target: file and 1-based line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The new `file:line` of a citation that still holds and moved, or the new
    /// file of a watch or a kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// The new file of a kernel's host code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_moved_to: Option<String>,
    /// Of a note: removed lines that nothing declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// The reason given for accepting it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<String>,
    /// What it is but for the acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Status>,
    /// What changed, as lines that begin with a space, `-`, `+` or `@`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<String>,
}

impl Verdict {
    /// Its kind and name, as a person names it to accept it.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{} {}", self.kind.as_str(), self.name)
    }

    pub(crate) fn new(
        kind: ContractKind,
        name: String,
        status: Status,
        what: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            name,
            status,
            what: what.into(),
            place: None,
            moved_to: None,
            host_moved_to: None,
            open: Vec::new(),
            acknowledged: None,
            found: None,
            diff: Vec::new(),
        }
    }

    /// Turns a verdict that does not hold into `acknowledged`, where the
    /// contract says so for this target.
    pub(crate) fn accepted(mut self, given: &[Acknowledgement], target: &str) -> Self {
        if let Some(found) = given.iter().find(|a| a.target == target) {
            self.accept(&found.reason);
        }
        self
    }

    /// Takes down why a person accepts it, where it does not hold.
    pub(crate) fn accept(&mut self, reason: &str) {
        if !self.status.holds() {
            self.found = Some(std::mem::replace(&mut self.status, Status::Acknowledged));
            self.acknowledged = Some(reason.into());
        }
    }

    /// Whether it is broken, accepted or not.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.found.unwrap_or(self.status) == Status::Broken
    }
}

impl Watch {
    /// What it is about, for reports.
    #[must_use]
    pub fn title(&self) -> String {
        match (&self.function, &self.from) {
            (Some(function), None) => function.clone(),
            (Some(function), Some(from)) => format!("{function}: {from}"),
            (None, from) => format!("{}: {}", self.file, from.as_deref().unwrap_or_default()),
        }
    }
}

impl Contracts {
    /// Every file the contracts name.
    #[must_use]
    pub fn files(&self) -> BTreeSet<TreePath> {
        let mut files: BTreeSet<TreePath> = self.watch.iter().map(|w| w.file.clone()).collect();
        for kernel in &self.kernel {
            files.insert(kernel.file.clone());
            files.extend(kernel.host.iter().map(|h| h.file.clone()));
        }
        files.extend(self.cite.iter().map(|c| c.at.file.clone()));
        files
    }
}

#[cfg(test)]
mod tests;
