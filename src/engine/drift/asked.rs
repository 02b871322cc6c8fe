//! What a judgement asked of a tree: another tree that answers the same to all
//! of it gives the same judgement.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{DriftError, Identified};
use crate::git::{At, PathSet};
use crate::snapshot::{File, Mode, ObjectId, ReadError, Tree, TreePath};

/// A tree that takes down what it is asked.
pub(super) struct Asking<'t> {
    tree: &'t dyn Tree,
    asked: Mutex<Asked>,
}

/// What a tree was asked.
#[derive(Default)]
pub(super) struct Asked {
    /// What is at these paths.
    pub paths: BTreeSet<TreePath>,
    /// Whether it was asked which paths there are.
    pub names: bool,
}

/// What was asked beside the paths of a unit, and what the answers were.
#[derive(Default)]
pub(super) struct Rest {
    paths: PathSet,
    were: Vec<Option<At>>,
    /// Which of them are new names of the unit's files.
    own: Vec<usize>,
    names: Names,
}

/// Which paths there were.
#[derive(Default)]
pub(super) enum Names {
    #[default]
    NotAsked,
    /// Asked of a tree without an id for them: any other may answer otherwise.
    Asked,
    Were(ObjectId),
}

impl<'t> Asking<'t> {
    pub fn new(tree: &'t dyn Tree) -> Self {
        Self { tree, asked: Mutex::default() }
    }

    pub fn asked(self) -> Asked {
        self.asked.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes down paths that somebody else asked of the tree.
    pub fn also(&self, paths: &[TreePath]) {
        self.note().paths.extend(paths.iter().cloned());
    }

    fn note(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tree for Asking<'_> {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        self.note().paths.insert(path.clone());
        self.tree.file(path)
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.note().paths.insert(path.clone());
        self.tree.mode(path)
    }

    fn id(&self, path: &TreePath) -> Option<ObjectId> {
        self.note().paths.insert(path.clone());
        self.tree.id(path)
    }

    fn paths(&self) -> Vec<TreePath> {
        self.note().names = true;
        self.tree.paths()
    }

    /// Which file is inside is for people; whether there is one decides.
    fn inside(&self, folder: &TreePath) -> Option<TreePath> {
        self.note().paths.insert(folder.clone());
        self.tree.inside(folder)
    }
}

impl Rest {
    /// What was asked of `tree` beside `known`. Those of `own` are new names of the
    /// unit's files.
    ///
    /// # Errors
    /// The tree cannot be read.
    pub fn of(
        asked: Asked,
        known: &PathSet,
        own: &BTreeSet<TreePath>,
        tree: &dyn Identified,
    ) -> Result<Self, DriftError> {
        let more = |path: &TreePath| known.paths().binary_search(path).is_err();
        let paths = PathSet::new(asked.paths.into_iter().filter(more));
        let names = if asked.names { Names::Were(tree.names()?) } else { Names::NotAsked };
        let own = paths.paths().iter().enumerate().filter(|(_, path)| own.contains(path));
        let own = own.map(|(at, _)| at).collect();
        let were = tree.at(&paths)?;
        Ok(Self { paths, were, own, names })
    }

    /// Nothing was asked but, maybe, which paths there are.
    pub fn of_names(asked: bool) -> Self {
        let names = if asked { Names::Asked } else { Names::NotAsked };
        Self { names, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.were.is_empty() && matches!(self.names, Names::NotAsked)
    }

    /// Whether the answers of `tree` are the same.
    ///
    /// # Errors
    /// The tree cannot be read.
    pub fn stands(&self, tree: &dyn Identified) -> Result<bool, DriftError> {
        Ok(match self.names {
            Names::NotAsked => true,
            Names::Asked => false,
            Names::Were(names) => tree.names()? == names,
        } && (self.were.is_empty() || tree.at(&self.paths)? == self.were))
    }

    /// Whether one of the unit's files is another in `tree`, under its new name.
    ///
    /// # Errors
    /// The tree cannot be read.
    pub fn is_touched(&self, tree: &dyn Identified) -> Result<bool, DriftError> {
        if self.own.is_empty() {
            return Ok(false);
        }
        let now = tree.at(&self.paths)?;
        Ok(self.own.iter().any(|at| now[*at] != self.were[*at]))
    }
}
