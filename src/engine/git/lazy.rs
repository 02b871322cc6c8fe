//! A commit's files, looked up one by one: a walk over many commits must not
//! list every file of each.

use std::sync::{Arc, OnceLock};

use super::{At, GitError, GitTree, History, NamesSeen, PathSet, unread};
use crate::listing::Listed;
use crate::snapshot::{File, Mode, ObjectId, ReadError, Tree, TreePath};

/// What the trees of one walk share: the paths they look up together.
pub struct Walk<'h> {
    history: &'h History,
    paths: PathSet,
    names: NamesSeen,
}

/// The files of a commit of a walk. The walk's paths cost a look at the folders
/// above them; any other path makes it list the whole commit. A file is read each
/// time it is asked for.
pub struct LazyTree<'h> {
    walk: Arc<Walk<'h>>,
    commit: ObjectId,
    found: OnceLock<Vec<Option<At>>>,
    whole: OnceLock<GitTree>,
}

impl<'h> Walk<'h> {
    /// A walk that looks at these paths.
    #[must_use]
    pub fn new(history: &'h History, paths: impl IntoIterator<Item = TreePath>) -> Arc<Self> {
        Arc::new(Self { history, paths: PathSet::new(paths), names: NamesSeen::default() })
    }

    /// A commit's files.
    #[must_use]
    pub fn tree(self: &Arc<Self>, commit: ObjectId) -> LazyTree<'h> {
        LazyTree { walk: self.clone(), commit, found: OnceLock::new(), whole: OnceLock::new() }
    }
}

impl LazyTree<'_> {
    fn whole(&self) -> Result<&GitTree, GitError> {
        if let Some(tree) = self.whole.get() {
            return Ok(tree);
        }
        let tree = self.walk.history.tree(self.commit)?;
        Ok(self.whole.get_or_init(|| tree))
    }

    fn listed(&self, path: &TreePath) -> Result<Option<Listed>, GitError> {
        match self.walk.paths.paths().binary_search(path) {
            Ok(at) => Ok(self.walked()?[at].and_then(At::file)),
            Err(_) => Ok(self.whole()?.listing().get(path)),
        }
    }

    /// What stands at the walk's paths in the commit, in their order.
    ///
    /// # Errors
    /// The commit is not there, or its trees are damaged.
    pub fn walked(&self) -> Result<&[Option<At>], GitError> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let found = self.walk.history.paths_at(self.commit, &self.walk.paths)?;
        Ok(self.found.get_or_init(|| found))
    }

    /// What stands at these paths. Those of the walk are known; with one more
    /// the folders above all of them are looked at.
    ///
    /// # Errors
    /// The commit's trees are damaged.
    pub fn at(&self, paths: &PathSet) -> Result<Vec<Option<At>>, GitError> {
        let (walk, walked) = (self.walk.paths.paths(), self.walked()?);
        let known = |path| walk.binary_search(path).ok().map(|at| walked[at]);
        match paths.paths().iter().map(known).collect() {
            Some(known) => Ok(known),
            None => self.walk.history.paths_at(self.commit, paths),
        }
    }

    /// An id of which paths the commit has.
    ///
    /// # Errors
    /// The commit's trees are damaged.
    pub fn names(&self) -> Result<ObjectId, GitError> {
        self.walk.history.names_at(self.commit, &self.walk.names)
    }
}

impl Tree for LazyTree<'_> {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        let unread = |e| unread(path, e);
        let Some(Listed { mode, id }) = self.listed(path).map_err(unread)? else {
            return Ok(None);
        };
        if mode == Mode::Submodule {
            return Ok(Some(File::new(mode, Vec::new())));
        }
        Ok(Some(File { mode, bytes: self.walk.history.blob(id).map_err(unread)? }))
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.listed(path).ok().flatten().map(|listed| listed.mode)
    }

    fn id(&self, path: &TreePath) -> Option<ObjectId> {
        self.listed(path).ok().flatten().map(|listed| listed.id)
    }

    fn paths(&self) -> Vec<TreePath> {
        self.whole().map(GitTree::paths).unwrap_or_default()
    }

    fn inside(&self, folder: &TreePath) -> Option<TreePath> {
        let stands = self.at(&PathSet::new([folder.clone()])).ok()?;
        let folder_stands = stands.contains(&Some(At::Folder));
        self.whole().ok().filter(|_| folder_stands)?.inside(folder)
    }
}
