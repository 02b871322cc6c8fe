//! What a report speaks of: a file, a hunk, a derived function, a contract.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::contract::{ContractKind, Status};
use crate::lay::EntryReport;
use crate::report::HunkClass;
use crate::snapshot::TreePath;

/// One thing that holds or does not. It keeps its identity from version to
/// version, whatever becomes of its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "item", rename_all = "kebab-case")]
pub enum Item {
    /// What a patch does to a file as a whole: its making, its mode.
    File {
        /// The entry.
        entry: String,
        /// The file, as the pin or the patch names it.
        path: TreePath,
    },
    /// A hunk of a patch.
    Hunk {
        /// The entry.
        entry: String,
        /// Which hunk of the entry it is, from 1.
        number: usize,
    },
    /// A derived function.
    Derived {
        /// The entry.
        entry: String,
    },
    /// A contract.
    Contract {
        /// Its kind.
        kind: ContractKind,
        /// What it is about.
        name: String,
    },
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Of a file, a hunk or a derived function.
    Class(HunkClass),
    /// As `Class`, at a place that was inferred and not proven.
    Inferred(HunkClass),
    /// Of a contract.
    Contract(Status),
}

impl State {
    /// Whether nothing need be said of it.
    #[must_use]
    pub fn is_quiet(self) -> bool {
        matches!(
            self,
            State::Class(HunkClass::Exact | HunkClass::Moved) | State::Contract(Status::Held)
        )
    }

    /// Whether a person must decide.
    #[must_use]
    pub fn needs_person(self) -> bool {
        match self {
            // A pinned series knows its places: one that was searched for
            // proves nothing.
            State::Class(class) => !class.holds() || class == HunkClass::Offset,
            State::Inferred(_) => true,
            State::Contract(status) => !status.holds(),
        }
    }

    /// The state as reports write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            State::Class(class) => class.as_str(),
            State::Inferred(_) => "inferred",
            State::Contract(status) => status.as_str(),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::File { entry, path } => write!(f, "{entry}: {path}"),
            Item::Hunk { entry, number } => write!(f, "{entry}, hunk {number}"),
            Item::Derived { entry } => write!(f, "{entry} (derived)"),
            Item::Contract { kind, name } => write!(f, "{} {name}", kind.as_str()),
        }
    }
}

/// The items of an entry with their states.
pub(super) fn of_entry(entry: &EntryReport) -> Vec<(Item, State)> {
    let mut states = Vec::new();
    for file in &entry.patch.files {
        // A file that is only changed in its text has nothing to say beside
        // its hunks, unless it is gone or renamed.
        let path = file.from.clone().filter(|_| file.operation == "modify");
        let path = path.unwrap_or_else(|| file.path.clone());
        states.push((Item::File { entry: entry.name.clone(), path }, State::Class(file.class)));
    }
    for (i, hunk) in entry.patch.hunks.iter().enumerate() {
        let item = Item::Hunk { entry: entry.name.clone(), number: i + 1 };
        let state = if hunk.inferred { State::Inferred } else { State::Class };
        states.push((item, state(hunk.class)));
    }
    if let Some(derived) = &entry.derived {
        let class = match &derived.made {
            None => HunkClass::Conflict,
            Some(_) if derived.from.is_some() => HunkClass::FileMoved,
            Some(_) if derived.moved => HunkClass::Moved,
            Some(_) => HunkClass::Exact,
        };
        states.push((Item::Derived { entry: entry.name.clone() }, State::Class(class)));
    }
    states
}
