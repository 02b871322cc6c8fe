//! Drift as plain data; the cli renders it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Cause, Finding, Item, Judgement, State, Trace};
use crate::contract::{ContractKind, Verdict};
use crate::lay::EntryReport;
use crate::snapshot::ObjectId;

/// One end of a drift: the pin or the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// The commit, of an end that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<ObjectId>,
    /// What it was called: a tag, a branch, a snapshot, the commit.
    pub name: String,
    /// The day of the commit, `YYYY-MM-DD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The first line of the commit's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// What a bump from the pin to the target would mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The commit the series was made for.
    pub pin: End,
    /// Where it was laid.
    pub target: End,
    /// Whether nothing needs a person.
    pub holds: bool,
    /// How many items are in each state.
    pub counts: BTreeMap<&'static str, usize>,
    /// What is neither `exact`, `moved` nor `held`, with its cause.
    pub findings: Vec<Finding>,
    /// The entries, in the series' order, every hunk with its class.
    pub entries: Vec<EntryReport>,
    /// The contracts.
    pub contracts: Vec<Verdict>,
    /// How many upstream commits lie between the two, by first parents, where
    /// the history is at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<usize>,
    /// How many of them are on the pin's line of first parents and not on the target's:
    /// an older target, or a branch that left before the pin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone: Option<usize>,
    /// How many of them touch a file that the series or its contracts rest on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touching: Option<usize>,
    /// When each item changed, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<super::Step>>,
}

impl Report {
    /// Puts the parts together. Without a trace nothing has a cause.
    #[must_use]
    pub fn new(pin: End, target: End, found: Judgement, trace: Option<Trace>) -> Self {
        let mut counts = BTreeMap::new();
        for (item, state) in found.states() {
            // A file that holds is told by its hunks.
            let holds = matches!(state, State::Class(class) if class.holds());
            if !(holds && found.is_told_by_hunks(&item)) {
                *counts.entry(state.as_str()).or_default() += 1;
            }
        }
        Self {
            pin,
            target,
            holds: found.holds(),
            counts,
            findings: found.findings(trace.as_ref()),
            entries: found.entries,
            contracts: found.contracts,
            commits: trace.as_ref().map(|t| t.commits),
            undone: trace.as_ref().map(|t| t.undone).filter(|n| *n > 0),
            touching: trace.as_ref().map(|t| t.touching),
            history: trace.map(|t| t.steps),
        }
    }

    /// The finding on a hunk, by its number in the entry.
    #[must_use]
    pub fn cause_of(&self, item: &Item) -> Option<&Cause> {
        self.findings.iter().find(|f| f.item == *item)?.cause.as_ref()
    }

    /// The contract of an item.
    #[must_use]
    pub fn contract(&self, item: &Item) -> Option<&Verdict> {
        let Item::Contract { kind, name } = item else { return None };
        self.contracts.iter().find(|v| v.kind == *kind && v.name == *name)
    }

    /// The hunk of an item.
    #[must_use]
    pub fn hunk(&self, item: &Item) -> Option<&crate::report::HunkReport> {
        let Item::Hunk { entry, number } = item else { return None };
        let entry = self.entries.iter().find(|e| e.name == *entry)?;
        entry.patch.hunks.get(number.checked_sub(1)?)
    }

    /// The entry that an item belongs to.
    #[must_use]
    pub fn entry(&self, item: &Item) -> Option<&EntryReport> {
        let (Item::Hunk { entry, .. } | Item::File { entry, .. } | Item::Derived { entry }) = item
        else {
            return None;
        };
        self.entries.iter().find(|e| e.name == *entry)
    }

    /// Citations that hold at another place: the old and the new one.
    pub fn moved_citations(&self) -> impl Iterator<Item = (&str, &str)> {
        let cited = self.contracts.iter().filter(|v| v.kind == ContractKind::Cite);
        cited.filter_map(|v| Some((v.name.as_str(), v.moved_to.as_deref()?)))
    }

    /// Hunks that were placed although something around them changed, with
    /// their entry and their number in it.
    pub fn changed_nearby(
        &self,
    ) -> impl Iterator<Item = (&str, usize, &crate::report::HunkReport)> {
        self.entries.iter().flat_map(EntryReport::changed_nearby)
    }
}
