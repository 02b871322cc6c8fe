//! The line of upstream commits between a pin and a target, as versions.

use std::rc::Rc;

use super::{Cause, DriftError, Identified, Judgement, Parts, Trace, Version, trace};
use crate::git::{CommitInfo, GitError, History, LazyTree, Walk};
use crate::listing::Listed;
use crate::series::Series;
use crate::snapshot::{ObjectId, ReadError, Tree, TreePath};

impl Identified for LazyTree<'_> {
    fn id(&self, path: &TreePath) -> Result<Option<ObjectId>, ReadError> {
        self.blob_id(path)
    }
}

impl From<&CommitInfo> for Cause {
    fn from(commit: &CommitInfo) -> Self {
        Cause::new(commit.id, &commit.subject, &commit.date)
    }
}

/// The upstream commits between a pin and a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Those that the pin has and the target has not, the newest first: on the
    /// way to the target they are undone.
    pub undone: Vec<CommitInfo>,
    /// Those that the target has and the pin has not, the oldest first.
    pub after: Vec<CommitInfo>,
}

impl Line {
    /// How many commits there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.undone.len() + self.after.len()
    }

    /// Whether the target is the pin.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The line from `pin` back to where the target's history left it, and on to
/// `target`, both by first parents.
///
/// # Errors
/// The two are not related here, or a commit is not there.
pub fn line(history: &History, pin: ObjectId, target: ObjectId) -> Result<Line, GitError> {
    let base = history.merge_base(pin, target)?;
    let mut undone = history.first_parent_walk(base, pin)?;
    undone.reverse();
    Ok(Line { undone, after: history.first_parent_walk(base, target)? })
}

/// Judges the series at every commit of the line, given what it is at its pin.
///
/// # Errors
/// Those of [`trace`].
pub fn trace_line(
    series: &Series,
    pin: &dyn Tree,
    at_pin: &Judgement,
    history: &History,
    line: &Line,
    id: &str,
) -> Result<Trace, DriftError> {
    let parts = Parts::new(series, pin, at_pin)?;
    let walk = Walk::new(history, parts.files());
    let mut last: Option<Vec<Option<Listed>>> = None;
    let mut version = |commit: ObjectId, cause| -> Result<Version<'_>, DriftError> {
        let tree = Rc::clone(&walk).tree(commit);
        let found = tree.walked()?;
        if last.as_deref() == Some(found) {
            return Ok(Version { cause, tree: None });
        }
        last = Some(found.to_vec());
        Ok(Version { cause, tree: Some(Box::new(tree) as Box<dyn Identified>) })
    };
    let undone = line.undone.iter().filter_map(|commit| {
        let before = *commit.parents.first()?;
        Some((before, Cause { undone: true, ..Cause::from(commit) }))
    });
    let after = line.after.iter().map(|commit| (commit.id, Cause::from(commit)));
    let versions = undone.chain(after).map(|(commit, cause)| version(commit, cause));
    trace(parts, pin, versions, id)
}
