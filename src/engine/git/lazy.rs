//! A commit's files, looked up one by one: a walk over many commits must not
//! list every file of each.

use std::io;
use std::sync::{Arc, OnceLock};

use super::{GitError, GitTree, History, PathSet};
use crate::listing::Listed;
use crate::snapshot::{File, Mode, ObjectId, ReadError, Tree, TreePath};

/// What the trees of one walk share: the paths they look up together.
pub struct Walk<'h> {
    history: &'h History,
    paths: PathSet,
}

/// The files of a commit of a walk. The walk's paths cost a look at the folders
/// above them; any other path makes it list the whole commit. A file is read each
/// time it is asked for.
pub struct LazyTree<'h> {
    walk: Arc<Walk<'h>>,
    commit: ObjectId,
    found: OnceLock<Vec<Option<Listed>>>,
    whole: OnceLock<GitTree>,
}

impl<'h> Walk<'h> {
    /// A walk that looks at these paths.
    #[must_use]
    pub fn new(history: &'h History, paths: impl IntoIterator<Item = TreePath>) -> Arc<Self> {
        Arc::new(Self { history, paths: PathSet::new(paths) })
    }

    /// The paths that it looks at, in the order of [`LazyTree::walked`].
    #[must_use]
    pub fn paths(&self) -> &[TreePath] {
        self.paths.paths()
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
            Ok(at) => Ok(self.walked()?[at]),
            Err(_) => Ok(self.whole()?.listing().get(path)),
        }
    }

    /// What the walk's paths are in the commit, in their order.
    ///
    /// # Errors
    /// The commit is not there, or its trees are damaged.
    pub fn walked(&self) -> Result<&[Option<Listed>], GitError> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let found = self.walk.history.files_at(self.commit, &self.walk.paths)?;
        Ok(self.found.get_or_init(|| found))
    }

    /// The blob id of the file at `path`, without reading it.
    ///
    /// # Errors
    /// The commit's trees are damaged.
    pub fn blob_id(&self, path: &TreePath) -> Result<Option<ObjectId>, ReadError> {
        let listed = self.listed(path).map_err(|e| unread(path, e))?;
        Ok(listed.map(|listed| listed.id))
    }
}

fn unread(path: &TreePath, error: GitError) -> ReadError {
    let message = crate::stored::message(&error);
    ReadError { path: path.clone(), source: io::Error::new(io::ErrorKind::InvalidData, message) }
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

    fn paths(&self) -> Vec<TreePath> {
        self.whole().map(GitTree::paths).unwrap_or_default()
    }
}
