//! Moving a series to another pin.
//!
//! [`plan`] works out, in memory, what becomes of every entry: kept as it is,
//! made again, dropped because upstream has it, or stopped at for a person. It
//! is pure: the same series, trees and decisions give the same plan, so that a
//! rebase that was killed goes on by planning again. [`session`] keeps the
//! decisions on disk, and [`publish`] writes the new pin, all or nothing.

mod clash;
mod group;
mod lock;
mod mails;
mod markers;
mod parts;
mod plan;
mod publish;
mod remake;
mod series_text;
pub mod session;
mod taken;
mod text;
mod work;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::contract::Verdict;
use crate::derive::Rule;
use crate::drift::{Cause, DriftError, Item, State, Trace};
use crate::lay::EntryReport;
use crate::report::HunkClass;
use crate::snapshot::{File, Mode, ReadError, TreePath};

pub use parts::Part;
pub use plan::{Names, contract_names, look_on, plan};
pub use publish::{NewPin, publish};
pub use remake::Remade;

/// What a person decided so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decisions {
    /// By entry.
    pub entries: BTreeMap<String, Decision>,
    /// Contracts whose change was accepted, by `kind name`, with the reason.
    pub accepted: BTreeMap<String, String>,
}

/// What a person decided on an entry that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It is left out of the new series.
    Skip,
    /// This patch takes its place.
    Patch(#[serde(with = "text_or_bytes")] Vec<u8>),
    /// This rule takes its place, of a derived function.
    Rule(Rule),
}

/// A patch as text where it is UTF-8, so that a person can read it in the state;
/// else as its bytes, none of which may change.
mod text_or_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(patch: &[u8], to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(patch) {
            Ok(text) => text.serialize(to),
            Err(_) => patch.serialize(to),
        }
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
        Ok(match Form::deserialize(from)? {
            Form::Text(text) => text.into_bytes(),
            Form::Bytes(bytes) => bytes,
        })
    }
}

/// What a rebase does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The entries, in the series' order, up to where it stops.
    pub entries: Vec<Planned>,
    /// The contracts at the target; none where it stops before them.
    pub contracts: Vec<Verdict>,
    /// Where a person must decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// What lies beyond an entry at which it stops, where that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<Rest>,
}

/// What lies beyond an entry that does not hold, as a drift judges it: what holds of
/// that entry is laid. How a person finishes it may change all of this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rest {
    /// The entries after it.
    pub entries: Vec<EntryReport>,
    /// The contracts.
    pub contracts: Vec<Verdict>,
}

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub outcome: Outcome,
    /// What was found of it at the target.
    pub report: EntryReport,
    /// The upstream commit that landed it, or the last of its hunks that has
    /// landed; nothing where the target has no history here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed_by: Option<Cause>,
    /// Its patch for the new pin, where that is another.
    #[serde(skip)]
    pub patch: Option<Vec<u8>>,
    /// Its rule for the new pin, where that is another.
    #[serde(skip)]
    pub rule: Option<Rule>,
}

impl Plan {
    /// Names the commits that landed entries, or hunks of them.
    pub fn name_causes(&mut self, trace: &Trace) {
        for planned in &mut self.entries {
            let landed = State::Class(HunkClass::Landed);
            let entry = &planned.name;
            let patch = &planned.report.patch;
            let hunks =
                patch.hunks.iter().enumerate().filter(|(_, h)| h.class == HunkClass::Landed);
            let hunks = hunks.map(|(i, _)| Item::Hunk { entry: entry.clone(), number: i + 1 });
            // A new name, a mode, an empty file have no hunks.
            let files = patch.files.iter().filter(|f| f.class == HunkClass::Landed);
            let files = files.map(|f| Item::File { entry: entry.clone(), path: f.path.clone() });
            let causes = hunks.chain(files).filter_map(|item| trace.cause(&item, landed));
            let place = |cause: &&Cause| trace.steps.iter().position(|s| s.commit == **cause);
            planned.landed_by = causes.max_by_key(place).cloned();
        }
    }

    /// Hunks that were placed although something around them changed, with
    /// their entry and their number in it.
    pub fn changed_nearby(
        &self,
    ) -> impl Iterator<Item = (&str, usize, &crate::report::HunkReport)> {
        self.entries.iter().filter(|p| p.outcome.stays()).flat_map(|p| p.report.changed_nearby())
    }

    /// The contracts that are broken at the target, which a person accepted:
    /// nothing there is left for them to compare with, so that the new series
    /// has them no more.
    pub fn left_out(&self) -> impl Iterator<Item = &Verdict> {
        let gone = |v: &&Verdict| v.kind.is_of_upstream() && v.status.holds() && v.is_broken();
        self.contracts.iter().filter(gone)
    }

    /// Whether nothing is left for a person.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.stop.is_none()
    }
}

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Byte for byte as it was.
    Same,
    /// Its patch was made again: places, context, blob ids. A derived function's
    /// rule names the file's new name.
    Refreshed,
    /// Upstream has all of it: it is dropped.
    Landed,
    /// A person resolved it.
    Resolved,
    /// A person left it out.
    Skipped,
}

impl Outcome {
    /// Whether the new series has the entry.
    #[must_use]
    pub fn stays(self) -> bool {
        !matches!(self, Outcome::Landed | Outcome::Skipped)
    }

    /// The outcome as reports write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Same => "same",
            Outcome::Refreshed => "refreshed",
            Outcome::Landed => "landed",
            Outcome::Resolved => "resolved",
            Outcome::Skipped => "skipped",
        }
    }
}

/// Where a rebase stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "at", rename_all = "kebab-case")]
pub enum Stop {
    /// An entry does not hold.
    Entry {
        /// What was found of it.
        report: Box<EntryReport>,
        /// Its parts: what holds, and files for a person, merged, with markers.
        #[serde(skip)]
        parts: Vec<Part>,
    },
    /// Every entry holds, and these contracts do not.
    Contracts {
        /// Those that do not.
        verdicts: Vec<Verdict>,
    },
}

/// A file of an entry that stops a rebase, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Its path in the target once it is finished.
    pub path: TreePath,
    /// The target's file that it is moved from, where the entry moves one.
    pub from: Option<TreePath>,
    /// A file of the target that goes besides.
    pub gone: Option<(TreePath, File)>,
    /// The target's file before the entry; nothing where upstream has none.
    pub before: Option<File>,
    /// What a person finds of it.
    pub shown: Shown,
    /// The entry's own patch of it, where it holds: as it was written, it stands for
    /// that. Where it does not hold, the file as it was written is no answer.
    pub own: Option<Vec<u8>>,
    /// The entry deletes it: that it is gone can be a person's answer.
    pub deleted: bool,
}

/// What a person finds of a file that is to be finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The file in the work folder, with markers and the mode it is to have. Of a
    /// symbolic link it is the text, in a plain file.
    Merged(File),
    /// Nothing can be merged: bytes that are no text, or a link on one side and a file
    /// on the other. The work folder has no such file, and the sides lie beside it.
    Sides(Box<Versions>),
}

/// A file on the three sides of a rebase, where it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// What upstream has now.
    pub upstream: Option<File>,
    /// What the entry was made for.
    pub pin: Option<File>,
    /// What the entry made of that.
    pub entry: Option<File>,
}

impl Versions {
    /// Each with its name.
    pub(crate) fn named(&self) -> [(&'static str, Option<&File>); 3] {
        let Self { upstream, pin, entry } = self;
        [("upstream", upstream.as_ref()), ("pin", pin.as_ref()), ("entry", entry.as_ref())]
    }

    /// Whether any of them is a symbolic link.
    pub(crate) fn have_link(&self) -> bool {
        self.named().iter().any(|(_, file)| file.is_some_and(|f| f.mode == Mode::Symlink))
    }

    /// Whether a file stands on one side where a link or something else does on another.
    pub(crate) fn differ_in_kind(&self) -> bool {
        let mut kinds = self.named().into_iter().filter_map(|(_, file)| Some(file?.mode.kind()));
        let first = kinds.next();
        kinds.any(|kind| Some(kind) != first)
    }

    /// Whether one of them is no text, as git tells it.
    pub(crate) fn have_binary(&self) -> bool {
        self.named().iter().any(|(_, file)| file.is_some_and(|f| f.bytes.contains(&0)))
    }
}

impl Unfinished {
    /// A file that stays where it is, and does not hold.
    pub(crate) fn new(path: TreePath, before: Option<File>, shown: Shown) -> Self {
        Self { path, from: None, gone: None, before, shown, own: None, deleted: false }
    }
}

/// Why a rebase cannot be planned or carried out.
#[derive(Debug, thiserror::Error)]
pub enum RebaseError {
    /// The series cannot be judged.
    #[error(transparent)]
    Drift(#[from] DriftError),
    /// A file of a tree cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A decision does not fit.
    #[error("the decision on `{entry}` does not fit: {what}")]
    Decision {
        /// The entry.
        entry: String,
        /// Why.
        what: String,
    },
    /// The new series is not what it must be; nothing was written.
    #[error("the new series was checked before it was written, and {what}; nothing was changed")]
    Check {
        /// What is wrong.
        what: String,
    },
    /// The state of the rebase cannot be read, or is not of this series.
    #[error("{}: {what}", path.display())]
    State {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Another process is at a rebase of the project, or was a moment ago.
    #[error("{}: {what}", path.display())]
    Busy {
        /// The file that tells it.
        path: std::path::PathBuf,
        /// What it does, or did.
        what: String,
    },
    /// A file of the project cannot be read or written.
    #[error("{}: {doing}", path.display())]
    Io {
        /// The file.
        path: std::path::PathBuf,
        /// What failed.
        doing: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl From<crate::lay::LayError> for RebaseError {
    fn from(error: crate::lay::LayError) -> Self {
        RebaseError::Drift(error.into())
    }
}

#[cfg(test)]
mod tests;
