//! Renames, copies and new files of one commit, which do not wait for each
//! other.

use std::collections::BTreeSet;

use super::{ApplyError, Ground, is_indexed, made};
use crate::patch::names::{self, Names, Prefixes};
use crate::patch::{FilePatch, Operation};
use crate::snapshot::{File, Snapshot, Tree, TreePath};

/// The moves of one commit. In a git diff they all speak of the tree before
/// it: two files may swap their names, a copy's source may change besides, and
/// a new file may take the name of one that moves away.
pub(super) struct Moves<'t> {
    /// The tree, and the base, before the commit; nothing where none moves.
    before: Option<(Snapshot<'t>, Option<Snapshot<'t>>)>,
    /// The names that the commit frees.
    vacated: BTreeSet<TreePath>,
    /// The files its file patches wrote so far.
    pub(super) written: BTreeSet<TreePath>,
    /// Those of them that it changed in place.
    changed: BTreeSet<TreePath>,
    /// The files it deletes that upstream took away.
    pub(super) gone: BTreeSet<TreePath>,
    /// The files it deletes and makes anew, as a link where a file was, that upstream has
    /// so already.
    pub(super) anew: BTreeSet<TreePath>,
}

impl<'t> Moves<'t> {
    pub(super) fn of(
        commit: &[FilePatch],
        strip: usize,
        prefixes: Prefixes,
        ground: &Ground<'t>,
    ) -> Self {
        let moves = |f: &FilePatch| matches!(f.operation, Operation::Rename | Operation::Copy);
        let any = commit.iter().any(moves);
        let freed = commit.iter().filter(|f| any && f.operation == Operation::Rename);
        // A file patch that is refused is refused when its turn comes.
        let names = |f| names::resolve(f, strip, prefixes, &|path| ground.has(path)).ok()?.old;
        Self {
            vacated: freed.filter_map(names).collect(),
            before: any.then(|| (ground.target.clone(), ground.base.clone())),
            written: BTreeSet::new(),
            changed: BTreeSet::new(),
            gone: BTreeSet::new(),
            anew: landed_anew(commit, strip, prefixes, ground),
        }
    }

    /// The same for the base alone.
    pub(super) fn of_base(&self) -> Self {
        let base = self.before.as_ref().and_then(|(_, base)| base.clone());
        Self {
            before: base.map(|base| (base, None)),
            vacated: self.vacated.clone(),
            written: self.written.clone(),
            changed: self.changed.clone(),
            gone: BTreeSet::new(),
            anew: BTreeSet::new(),
        }
    }

    pub(super) fn see(&mut self, operation: Operation, edits: &[(TreePath, Option<File>)]) {
        for (path, _) in edits.iter().filter(|(_, file)| file.is_some()) {
            self.written.insert(path.clone());
            if operation == Operation::Modify {
                self.changed.insert(path.clone());
            }
        }
    }

    /// Whether a move takes its source as an earlier file patch left it. Diffs
    /// joined without a word between them may do so: a file that one diff
    /// changes in place it does not rename, and of a copy the blob id tells.
    fn follows(&self, patch: &FilePatch, old: &TreePath, now: &Ground<'t>) -> bool {
        let current = || now.target.file(old).ok().flatten();
        self.changed.contains(old)
            && (patch.operation == Operation::Rename
                || current().is_some_and(|file| is_indexed(patch, &file.bytes)))
    }

    /// The trees to judge a move or a new file on, where they are not the ones
    /// of the moment.
    pub(super) fn ground_of(
        &self,
        patch: &FilePatch,
        names: &Names,
        now: &Ground<'t>,
    ) -> Result<Option<Ground<'t>>, ApplyError> {
        let (Some((target, base)), Some(new)) = (&self.before, &names.new) else {
            return Ok(None);
        };
        let mut ground = match (names.operation, &names.old) {
            (Operation::Create, _) => Ground { target: now.target.clone(), base: now.base.clone() },
            // Diffs joined without a word between them may well move a file
            // that an earlier one made.
            (Operation::Rename | Operation::Copy, Some(old))
                if target.mode(old).is_some() && !self.follows(patch, old, now) =>
            {
                Ground { target: target.clone(), base: base.clone() }
            }
            _ => return Ok(None),
        };
        for path in self.vacated.iter().filter(|p| Some(*p) != names.old.as_ref()) {
            if !self.written.contains(path) {
                ground.target.remove(path.clone());
            }
        }
        if let (true, Some(file)) = (self.written.contains(new), now.target.file(new)?) {
            ground.target.put(new.clone(), file);
        }
        Ok(Some(ground))
    }
}

/// The files that a commit deletes and makes anew, where the target has them so already
/// and the base has not: git writes the change of a file to a link so.
fn landed_anew(
    commit: &[FilePatch],
    strip: usize,
    prefixes: Prefixes,
    ground: &Ground<'_>,
) -> BTreeSet<TreePath> {
    let Some(base) = &ground.base else { return BTreeSet::new() };
    let resolved =
        |f: &FilePatch| names::resolve(f, strip, prefixes, &|path| ground.has(path)).ok();
    let of = |operation| commit.iter().filter(move |f| f.operation == operation);
    let deleted: BTreeSet<TreePath> =
        of(Operation::Delete).filter_map(|f| resolved(f)?.old).collect();
    let lands = |f: &FilePatch| {
        let path = resolved(f)?.new.filter(|path| deleted.contains(path))?;
        let made = made(f).ok()?;
        let is = |tree: &Snapshot<'_>| tree.file(&path).ok().flatten() == Some(made.clone());
        (is(&ground.target) && !is(base)).then_some(path)
    };
    of(Operation::Create).filter_map(lands).collect()
}
