//! The series on another upstream tree: what still holds, what does not, and
//! the first upstream commit after which it is so.
//!
//! [`judge`] lays the series on a tree in memory and checks its contracts;
//! [`trace`] does the same for every version between the pin and the target,
//! cheaply, and says when each item changed. Both are pure over trees.

mod asked;
mod cascade;
mod expansions;
mod in_place;
mod item;
mod report;
mod trace;
mod unit;
mod upstream;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::apply::Ground;
use crate::contract::{self, ContractKind, Expand, Status, Verdict};
use crate::lay::{EntryReport, LayError, STRIP, lay, lay_entry};
use crate::patch::{self, Patch};
use crate::series::{Change, SERIES_FILE, Series};
use crate::snapshot::{ObjectId, ReadError, Snapshot, Tree, TreePath};

pub(crate) use cascade::{Missing, blame};
pub use item::{Item, State};
pub use report::{End, Report};
pub use trace::{Change as StateChange, Parts, Step, Trace, Version, trace};
pub use unit::Identified;
pub use upstream::{Line, judge_and_trace, judge_pin, line, trace_line};

/// The series on one tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The entries, in the series' order.
    pub entries: Vec<EntryReport>,
    /// The contracts: watches, kernels, citations, notes, and the originals of
    /// derived functions.
    pub contracts: Vec<Verdict>,
}

/// An upstream commit that made something so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Its id.
    pub commit: ObjectId,
    /// The first line of its message.
    pub subject: String,
    /// The day its author gives, `YYYY-MM-DD`.
    pub date: String,
    /// The number of the pull request it came from, where its subject says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull: Option<u32>,
    /// The pin has it and the target has not: it is so without the commit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

impl Cause {
    /// A commit; the pull request's number is read from the subject.
    #[must_use]
    pub fn new(commit: ObjectId, subject: &str, date: &str) -> Self {
        let pull = pull_request(subject);
        Self { commit, subject: subject.into(), date: date.into(), pull, undone: false }
    }
}

/// The number in `… (#123)` or `Merge pull request #123 …`.
fn pull_request(subject: &str) -> Option<u32> {
    let merged = subject.strip_prefix("Merge pull request #");
    let squashed = || subject.trim_end().strip_suffix(')')?.rsplit_once("(#").map(|(_, n)| n);
    let digits = merged.and_then(|m| m.split(' ').next()).or_else(squashed)?;
    digits.parse().ok()
}

/// Something that a person, or at least the report, must name: an item that is
/// neither `exact`, `moved` nor `held`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    #[serde(flatten)]
    pub item: Item,
    /// What became of it.
    pub state: State,
    /// Whether a person must decide before the series can move to the target.
    pub needs_person: bool,
    /// The first upstream commit on the way from the pin after which it is so;
    /// nothing where the target has no history here, or the series alone
    /// decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The earlier entry that it follows from; it has no cause of its own then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
}

/// Why a drift cannot be worked out.
#[derive(Debug, thiserror::Error)]
pub enum DriftError {
    /// The series cannot be laid at all.
    #[error(transparent)]
    Lay(#[from] LayError),
    /// A file of a tree cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A commit of the history cannot be read.
    #[error(transparent)]
    Git(#[from] crate::git::GitError),
    /// The series does not hold at the pin it was made for, so that nothing
    /// can be said of another commit.
    #[error("the series does not hold at its own pin: {what}; mend it first")]
    NotAtPin {
        /// The first item that does not.
        what: String,
    },
}

/// Lays the series on `target`, mapping every place from `pin`, and checks its
/// contracts. `id` names the target as acknowledgements do.
///
/// # Errors
/// A patch is refused or a file cannot be read.
pub fn judge(
    series: &Series,
    pin: &dyn Tree,
    target: &dyn Tree,
    id: &str,
) -> Result<Judgement, DriftError> {
    // What the contracts say rests on the two trees alone, not on what is laid.
    let (entries, checked) = rayon::join(
        || blamed(series, pin, target),
        || contract::check(&series.contracts, pin, target, id),
    );
    let entries = entries?;
    Ok(Judgement { contracts: with_own(series, &entries, checked?, id), entries })
}

/// Lays every entry, and says which follow from an earlier one that does not hold.
fn blamed(
    series: &Series,
    pin: &dyn Tree,
    target: &dyn Tree,
) -> Result<Vec<EntryReport>, DriftError> {
    let mut ground = Ground::mapped(pin, target);
    let (mut entries, mut missing) = (Vec::new(), Vec::new());
    for entry in &series.entries {
        let made_for = ground.base.clone().expect("it maps from the pin");
        let mut report = lay_entry(entry, &mut ground)?;
        blame(entry, &mut report, &missing, &made_for, pin, target)?;
        missing.extend(Missing::of(entry, &report));
        entries.push(report);
    }
    Ok(entries)
}

/// Lays the entries of these groups (all where none is named) on `target`, and
/// checks the contracts meanwhile. What is laid is given as edits of the target.
///
/// # Errors
/// A group is not known, a patch is refused, or a file cannot be read.
pub fn lay_and_check<'t>(
    series: &Series,
    groups: &[String],
    pin: &'t dyn Tree,
    target: &'t dyn Tree,
    id: &str,
) -> Result<(Judgement, Snapshot<'t>), LayError> {
    let mut ground = Ground::mapped(pin, target);
    let (entries, checked) = rayon::join(
        || lay(series, groups, &mut ground),
        || contract::check(&series.contracts, pin, target, id),
    );
    let entries = entries?;
    let contracts = with_own(series, &entries, checked?, id);
    Ok((Judgement { entries, contracts }, ground.target))
}

/// As [`judge`], where nobody asks why: every state is right, and a hunk that
/// follows from an earlier entry is not told from others.
fn states_at(
    series: &Series,
    pin: &dyn Tree,
    target: &dyn Tree,
    id: &str,
    expand: &Expand<'_>,
) -> Result<Judgement, DriftError> {
    let mut ground = Ground::mapped(pin, target);
    let entries = lay(series, &[], &mut ground)?;
    let checked = contract::check_with(&series.contracts, pin, target, id, expand)?;
    Ok(Judgement { contracts: with_own(series, &entries, checked, id), entries })
}

/// The verdicts, and those on what the entries themselves promise.
fn with_own(
    series: &Series,
    entries: &[EntryReport],
    mut verdicts: Vec<Verdict>,
    id: &str,
) -> Vec<Verdict> {
    verdicts.extend(originals(series, entries, id));
    verdicts.extend(notes(series));
    verdicts
}

/// One verdict for each derived function: its original is a contract too.
pub(crate) fn originals(series: &Series, entries: &[EntryReport], id: &str) -> Vec<Verdict> {
    let rules = series.entries.iter().filter_map(|e| match &e.change {
        Change::Derive(rule) => Some((&e.name, rule)),
        Change::Patch { .. } => None,
    });
    rules
        .filter_map(|(name, rule)| {
            let report = entries.iter().find(|e| e.name == *name)?.derived.as_ref()?;
            let status = match (&report.made, report.source_changed) {
                (None, _) => Status::Broken,
                (Some(_), true) => Status::Changed,
                (Some(_), false) => Status::Held,
            };
            let what = match (&report.why, status) {
                (Some(why), _) => why.clone(),
                (None, Status::Changed) => format!(
                    "upstream changed `{}`; `{}` follows it: does the series still mean the same?",
                    rule.function, rule.name
                ),
                (None, _) => format!("`{}` is as it was", rule.function),
            };
            let title = format!("{} from {}", rule.name, rule.function);
            let mut verdict = Verdict::new(ContractKind::Derive, title, status, what);
            verdict.diff.clone_from(&report.diff);
            verdict.place =
                report.made.as_ref().map(|m| format!("{}:{}", m.file, m.source_lines.0));
            Some(verdict.accepted(&rule.acknowledged, id))
        })
        .collect()
}

/// The notes, checked against the series' own patches. A patch that is refused
/// was an error before.
fn notes(series: &Series) -> Vec<Verdict> {
    let parsed: Vec<(&str, Patch)> = series
        .entries
        .iter()
        .filter_map(|e| match &e.change {
            Change::Patch { bytes, .. } => Some((e.name.as_str(), patch::parse(bytes).ok()?)),
            Change::Derive(_) => None,
        })
        .collect();
    let entries: Vec<(&str, &Patch)> = parsed.iter().map(|(n, p)| (*n, p)).collect();
    contract::check_notes(&series.contracts.note, &entries, STRIP)
}

impl Judgement {
    /// Every item with its state, in the series' order.
    #[must_use]
    pub fn states(&self) -> Vec<(Item, State)> {
        let entries = self.entries.iter().flat_map(item::of_entry);
        let contracts = self.contracts.iter().map(|v| {
            let item = Item::Contract { kind: v.kind, name: v.name.clone() };
            (item, State::Contract(v.status))
        });
        entries.chain(contracts).collect()
    }

    /// The files that it speaks of, by their names at the target.
    fn files(&self) -> BTreeSet<TreePath> {
        let patched = self.entries.iter().flat_map(|e| &e.patch.files).map(|f| f.path.clone());
        let made = self.entries.iter().filter_map(|e| e.derived.as_ref()?.made.as_ref());
        let placed = self.contracts.iter().flat_map(|v| {
            let at = v.place.as_deref().and_then(|p| p.rsplit_once(':')).map(|(file, _)| file);
            [at, v.moved_to.as_deref(), v.host_moved_to.as_deref()]
        });
        let placed = placed.flatten().filter_map(|p| TreePath::new(p).ok());
        patched.chain(made.map(|m| m.file.clone())).chain(placed).collect()
    }

    /// What is neither `exact`, `moved` nor `held`, each with its cause from
    /// the trace where there is one.
    #[must_use]
    pub fn findings(&self, trace: Option<&Trace>) -> Vec<Finding> {
        self.states()
            .into_iter()
            .filter(|(_, state)| !state.is_quiet())
            .map(|(item, state)| {
                let follows = self.follows(&item);
                let cause = trace.filter(|_| follows.is_none());
                Finding {
                    needs_person: state.needs_person(),
                    cause: cause.and_then(|t| t.cause(&item, state)).cloned(),
                    follows,
                    item,
                    state,
                }
            })
            .collect()
    }

    /// The earlier entry that a hunk, or every hunk of a file, follows from.
    fn follows(&self, item: &Item) -> Option<String> {
        let (Item::Hunk { entry, .. } | Item::File { entry, .. }) = item else { return None };
        let patch = &self.entries.iter().find(|e| e.name == *entry)?.patch;
        match item {
            Item::Hunk { number, .. } => patch.hunks.get(number - 1)?.follows.clone(),
            Item::File { path, .. } => {
                let mut own = patch.hunks.iter().filter(|h| h.file == *path);
                let first = own.next()?.follows.clone()?;
                own.all(|h| h.follows.is_some()).then_some(first)
            }
            _ => None,
        }
    }

    /// Whether it is a file that a patch has hunks for.
    fn is_told_by_hunks(&self, item: &Item) -> bool {
        let Item::File { entry, path } = item else { return false };
        let Some(entry) = self.entries.iter().find(|e| e.name == *entry) else { return false };
        let own = |name: &TreePath, from: Option<&TreePath>| name == path || from == Some(path);
        let mut files = entry.patch.files.iter().filter(|f| own(&f.path, f.from.as_ref()));
        files.any(|file| entry.patch.hunks.iter().any(|h| h.file == file.path))
    }

    /// Whether nothing needs a person.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.states().iter().all(|(_, state)| !state.needs_person())
    }

    /// Fails where an item does not hold: for the pin against itself.
    ///
    /// # Errors
    /// Names the first such item.
    pub fn require_pin(&self) -> Result<(), DriftError> {
        // What is broken there was never upstream's doing: accepting it settles
        // nothing.
        let broken = |v: &&Verdict| v.kind.is_of_upstream() && v.is_broken();
        if let Some(broken) = self.contracts.iter().find(broken) {
            let (kind, name) = (broken.kind.as_str(), &broken.name);
            let what = format!(
                "{kind} {name} is broken there already, an error of the series ({}): point it at \
                 what it means, or take it out of {SERIES_FILE}",
                broken.what
            );
            return Err(DriftError::NotAtPin { what });
        }
        let odd = self.states().into_iter().find(|(_, state)| state.needs_person());
        match odd {
            None => Ok(()),
            Some((item, state)) => {
                let why = self.why(&item).map(|w| format!(" ({w})")).unwrap_or_default();
                Err(DriftError::NotAtPin { what: format!("{item} is {state}{why}") })
            }
        }
    }

    /// What was found of an item, in one line, where there is more to say than
    /// its state.
    #[must_use]
    pub fn why(&self, item: &Item) -> Option<String> {
        match item {
            Item::Hunk { entry, number, .. } => {
                let entry = self.entries.iter().find(|e| e.name == *entry)?;
                entry.patch.hunks.get(number - 1)?.why.clone()
            }
            Item::File { entry, path } => {
                let entry = self.entries.iter().find(|e| e.name == *entry)?;
                entry.patch.files.iter().find(|f| f.path == *path)?.why.clone()
            }
            Item::Derived { entry, .. } => {
                let entry = self.entries.iter().find(|e| e.name == *entry)?;
                entry.derived.as_ref()?.why.clone()
            }
            Item::Contract { kind, name } => {
                let of = |v: &&Verdict| v.kind == *kind && v.name == *name;
                Some(self.contracts.iter().find(of)?.what.clone())
            }
        }
    }
}

#[cfg(test)]
mod tests;
