//! The series over a line of upstream commits: when each item moved, broke and
//! healed.

use std::collections::HashMap;

use serde::Serialize;

use super::unit::{Identified, split};
use super::{Cause, DriftError, Item, State, judge};
use crate::series::Series;
use crate::snapshot::{ObjectId, ReadError, Tree, TreePath};

/// A version of upstream: the commit and its files.
pub struct Version<'t> {
    /// The commit.
    pub cause: Cause,
    /// Its files.
    pub tree: Box<dyn Identified + 't>,
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

fn id_at(tree: &dyn Tree, path: &TreePath) -> Result<Option<ObjectId>, ReadError> {
    Ok(tree.file(path)?.map(|f| ObjectId::of_blob(&f.bytes)))
}

/// The files that decide what becomes of the series: those it changes, and
/// those its contracts rest on.
///
/// # Errors
/// The series cannot be laid on its pin.
pub fn deciding_files(series: &Series, pin: &dyn Tree) -> Result<Vec<TreePath>, DriftError> {
    let at_pin = judge(series, pin, pin, "")?;
    let mut paths: Vec<TreePath> =
        split(series, &at_pin, pin)?.into_iter().flat_map(|u| u.paths).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Judges the series at each version in turn, the oldest first. Acknowledgements
/// for `id`, the target, count at every version: what a person accepted there
/// is no alarm on the way.
///
/// # Errors
/// The series cannot be laid on its pin, or a file cannot be read.
pub fn trace<'t>(
    series: &Series,
    pin: &dyn Tree,
    versions: impl IntoIterator<Item = Result<Version<'t>, ReadError>>,
    id: &str,
) -> Result<Trace, DriftError> {
    let at_pin = judge(series, pin, pin, id)?;
    let mut units = split(series, &at_pin, pin)?;
    let mut now: HashMap<Item, State> = at_pin.states().into_iter().collect();
    let mut ids: Vec<Vec<Option<ObjectId>>> = Vec::new();
    for unit in &units {
        ids.push(unit.paths.iter().map(|p| id_at(pin, p)).collect::<Result<_, _>>()?);
    }
    let mut found = Trace::default();
    for version in versions {
        let Version { cause, tree } = version?;
        let mut changes = Vec::new();
        let mut touched = false;
        for (unit, before) in units.iter_mut().zip(&mut ids) {
            let key: Vec<_> = unit.paths.iter().map(|p| tree.id(p)).collect::<Result<_, _>>()?;
            if key == *before {
                continue;
            }
            touched = true;
            *before = key;
            for (item, to) in unit.states(pin, tree.as_ref(), id)?.iter() {
                let from = now.insert(item.clone(), *to).unwrap_or(*to);
                if from != *to {
                    changes.push(Change { item: item.clone(), from, to: *to });
                }
            }
        }
        found.commits += 1;
        found.touching += usize::from(touched);
        if !changes.is_empty() {
            changes.sort_by(|a, b| a.item.cmp(&b.item));
            found.steps.push(Step { commit: cause, changes });
        }
    }
    Ok(found)
}
