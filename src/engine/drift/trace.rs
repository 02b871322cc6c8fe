//! The series over a line of upstream commits: when each item moved, broke and
//! healed.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::Serialize;

use super::unit::{Identified, Unit, split};
use super::{Cause, DriftError, Item, Judgement, State};
use crate::series::Series;
use crate::snapshot::{Tree, TreePath};

/// A version of upstream: the commit and its files.
pub struct Version<'t> {
    /// The commit.
    pub cause: Cause,
    /// Its files.
    pub tree: Box<dyn Identified + 't>,
    /// Whether one of [`Parts::files`] may be another than in the version before.
    pub touched: bool,
}

/// What a walk over versions found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// The versions after which some item's state is another, the oldest first.
    pub steps: Vec<Step>,
    /// How many versions touch a file of the series or its contracts.
    pub touching: usize,
    /// How many versions there are.
    pub commits: usize,
    /// How many of them undo a commit of the pin's line.
    pub undone: usize,
}

/// A version that changes the state of items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The commit.
    pub commit: Cause,
    /// The items whose state is another after it.
    pub changes: Vec<Change>,
}

/// An item's change of state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The item.
    #[serde(flatten)]
    pub item: Item,
    /// Its state before.
    pub from: State,
    /// Its state after.
    pub to: State,
}

impl Trace {
    /// The commit after which `item` is in `state` up to the last version.
    #[must_use]
    pub fn cause(&self, item: &Item, state: State) -> Option<&Cause> {
        let last = self.steps.iter().rev().find_map(|step| {
            let change = step.changes.iter().find(|c| c.item == *item)?;
            Some((&step.commit, change.to))
        });
        last.filter(|(_, to)| *to == state).map(|(cause, _)| cause)
    }
}

/// A series taken apart, so that a version in which only some files are others
/// costs no more than these.
pub struct Parts {
    units: Vec<Unit>,
    at_pin: HashMap<Item, State>,
}

impl Parts {
    /// Takes a series apart, given what it is at its pin.
    ///
    /// # Errors
    /// A file of the pin cannot be read.
    pub fn new(series: &Series, pin: &dyn Tree, at_pin: &Judgement) -> Result<Self, DriftError> {
        let units = split(series, at_pin, pin)?;
        Ok(Self { units, at_pin: at_pin.states().into_iter().collect() })
    }

    /// The files that decide what becomes of the series: those it changes, and
    /// those its contracts rest on.
    #[must_use]
    pub fn files(&self) -> Vec<TreePath> {
        let mut paths: Vec<TreePath> = self.units.iter().flat_map(|u| u.paths.clone()).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

/// Judges the series at each version, the oldest first, its parts side by side.
/// Acknowledgements for `id`, the target, count at every version: what a person
/// accepted there is no alarm on the way.
///
/// # Errors
/// A file cannot be read.
pub fn trace<'t, E: Into<DriftError>>(
    parts: Parts,
    pin: &dyn Tree,
    versions: impl IntoIterator<Item = Result<Version<'t>, E>>,
    id: &str,
) -> Result<Trace, DriftError> {
    let Parts { mut units, at_pin: mut now } = parts;
    let versions: Vec<Version<'t>> =
        versions.into_iter().collect::<Result<_, _>>().map_err(Into::into)?;
    // The heaviest first, one by one: what is begun last is waited for alone.
    units.sort_by_cached_key(|unit| std::cmp::Reverse(unit.weight(pin)));
    let walk = |unit: Unit| unit.walk(pin, &versions, id);
    let walks: Vec<_> = units.into_iter().par_bridge().map(walk).collect();
    let mut by_version = vec![Vec::new(); versions.len()];
    for walk in walks {
        walk?.into_iter().for_each(|(at, states)| by_version[at].push(states));
    }
    let mut found = Trace { commits: versions.len(), ..Trace::default() };
    for (Version { cause, .. }, states) in versions.into_iter().zip(by_version) {
        found.undone += usize::from(cause.undone);
        found.touching += usize::from(!states.is_empty());
        let mut changes = Vec::new();
        for (item, to) in states.iter().flat_map(|states| states.iter()) {
            let from = now.insert(item.clone(), *to).unwrap_or(*to);
            if from != *to {
                changes.push(Change { item: item.clone(), from, to: *to });
            }
        }
        if !changes.is_empty() {
            changes.sort_by(|a, b| a.item.cmp(&b.item));
            found.steps.push(Step { commit: cause, changes });
        }
    }
    Ok(found)
}
