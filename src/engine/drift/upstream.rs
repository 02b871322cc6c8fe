//! The line of upstream commits between a pin and a target, as versions.

use std::rc::Rc;

use super::{Cause, DriftError, Identified, Trace, Version, deciding_files, trace};
use crate::git::{CommitInfo, GitError, History, LazyTree, Walk};
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

/// The commits between a pin and a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Those after the merge base up to the target, by first parents, the
    /// oldest first.
    After(Vec<CommitInfo>),
    /// The target is the pin or older than it.
    NotAfter,
}

/// The line from `pin` to `target`.
///
/// # Errors
/// The two are not related here, or the merge base is no first-parent ancestor
/// of the target.
pub fn line(history: &History, pin: ObjectId, target: ObjectId) -> Result<Line, GitError> {
    let base = history.merge_base(pin, target)?;
    if base == target {
        return Ok(Line::NotAfter);
    }
    Ok(Line::After(history.first_parent_walk(base, target)?))
}

/// Judges the series at every commit of the line.
///
/// # Errors
/// Those of [`trace`].
pub fn trace_line(
    series: &Series,
    pin: &dyn Tree,
    history: &History,
    commits: &[CommitInfo],
    id: &str,
) -> Result<Trace, DriftError> {
    let walk = Walk::new(history, deciding_files(series, pin)?);
    let versions = commits.iter().map(|commit| {
        let tree = Box::new(Rc::clone(&walk).tree(commit.id));
        Ok(Version { cause: Cause::from(commit), tree })
    });
    trace(series, pin, versions, id)
}
