//! The line of upstream commits between a pin and a target, as versions.

use super::{Cause, DriftError, Identified, Judgement, Parts, Trace, Version, judge, trace};
use crate::git::{At, CommitInfo, GitError, History, LazyTree, PathSet, Walk};
use crate::series::Series;
use crate::snapshot::{ObjectId, Tree};

impl Identified for LazyTree<'_> {
    fn at(&self, paths: &PathSet) -> Result<Vec<Option<At>>, DriftError> {
        Ok(self.at(paths)?)
    }

    fn names(&self) -> Result<ObjectId, DriftError> {
        Ok(self.names()?)
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
    /// Those on the pin's line of first parents and not on the target's, the newest
    /// first: on the way to the target they are undone.
    pub undone: Vec<CommitInfo>,
    /// Those on the target's line and not on the pin's, the oldest first.
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

/// Judges the series at its own pin, the commit `id`, and finds meanwhile the line
/// from there to a target of a history.
pub fn judge_pin(
    series: &Series,
    pin: &dyn Tree,
    id: ObjectId,
    target: Option<(&History, ObjectId)>,
) -> (Result<Judgement, DriftError>, Result<Option<Line>, GitError>) {
    rayon::join(
        || judge(series, pin, pin, &id.to_string()),
        || target.map(|(history, target)| line(history, id, target)).transpose(),
    )
}

/// Judges the series at the target, and, one beside the other, at its own pin and at
/// every commit on the way from there, where a history has both.
///
/// # Errors
/// Those of [`judge`], [`line()`] and [`trace()`]; the series does not hold at its pin.
pub fn judge_and_trace(
    series: &Series,
    (pin, commit): (&dyn Tree, ObjectId),
    (target, id): (&dyn Tree, &str),
    way: Option<(&History, ObjectId)>,
) -> Result<(Judgement, Option<Trace>), DriftError> {
    let traced = || -> Result<Option<Trace>, DriftError> {
        let (at_pin, line) = judge_pin(series, pin, commit, way);
        let at_pin = at_pin?;
        at_pin.require_pin()?;
        let Some((history, line)) = way.map(|(history, _)| history).zip(line?) else {
            return Ok(None);
        };
        trace_line(series, pin, &at_pin, history, &line, id).map(Some)
    };
    // Without its pin nothing can be said of the target, so this error counts first.
    let (trace, found) = rayon::join(traced, || judge(series, pin, target, id));
    let trace = trace?;
    Ok((found?, trace))
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
    let mut last: Option<Vec<Option<At>>> = None;
    let mut version = |commit: ObjectId, cause| -> Result<Version<'_>, DriftError> {
        let tree = walk.tree(commit);
        let found = tree.walked()?;
        let touched = last.as_deref() != Some(found);
        if touched {
            last = Some(found.to_vec());
        }
        Ok(Version { cause, tree: Box::new(tree), touched })
    };
    let undone = line.undone.iter().filter_map(|commit| {
        let before = *commit.parents.first()?;
        Some((before, Cause { undone: true, ..Cause::from(commit) }))
    });
    let after = line.after.iter().map(|commit| (commit.id, Cause::from(commit)));
    let versions = undone.chain(after).map(|(commit, cause)| version(commit, cause));
    trace(parts, pin, versions, id)
}
