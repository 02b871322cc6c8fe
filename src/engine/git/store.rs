//! The cache of one upstream's objects: a bare, shallow repository.

use std::path::{Path, PathBuf};

use git2::ErrorCode;
use sha2::{Digest, Sha256};

use super::object;
use super::objects::Objects;
use super::tree::GitTree;
use super::{GitError, to_id, to_oid};
use crate::cache::{Cache, CacheError};
use crate::secret::hidden;
use crate::snapshot::{Mode, ObjectId};

/// Names, in the cache, the commits all of whose objects are there.
pub(super) const WHOLE: &str = "refs/mlx-overlay/whole";

/// The object cache of one upstream. Making one touches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// The store of the upstream with this URL.
    #[must_use]
    pub fn new(cache: &Cache, upstream: &str) -> Self {
        Self::at(place(cache, upstream, "git"))
    }

    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The repository's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files of `commit`, or nothing where its objects are not all here.
    ///
    /// # Errors
    /// The commit's root tree is not `tree`, or the repository is damaged.
    pub fn tree(&self, commit: ObjectId, tree: ObjectId) -> Result<Option<GitTree>, GitError> {
        let objects = match Objects::open(&self.path) {
            Err(GitError::Open { path, source }) if source.code() == ErrorCode::NotFound => {
                return match path.symlink_metadata() {
                    // It lost what makes it a repository.
                    Ok(_) => Err(GitError::Damaged { path, source }),
                    Err(_) => Ok(None),
                };
            }
            opened => opened.map_err(in_cache)?,
        };
        if objects.handle().find_reference(&mark(commit)).is_err() {
            return Ok(None);
        }
        let found = root_tree(&objects, commit)?;
        if found != tree {
            return Err(GitError::WrongTree { commit, found, wanted: tree });
        }
        GitTree::read(&objects, to_oid(tree)).map(Some)
    }

    /// The root tree of a commit.
    #[cfg(feature = "fetch")]
    pub(super) fn root_tree(&self, commit: ObjectId) -> Result<ObjectId, GitError> {
        root_tree(&Objects::open(&self.path)?, commit)
    }

    /// Reads every object of `commit` and checks it against its id. Gives
    /// their number.
    ///
    /// # Errors
    /// One is missing or damaged, or the root tree is not `tree`.
    pub fn prove(&self, commit: ObjectId, tree: ObjectId) -> Result<usize, GitError> {
        prove(&self.path, commit, tree).map_err(in_cache)
    }
}

/// As [`Store::prove`], of any repository.
pub(super) fn prove(path: &Path, commit: ObjectId, tree: ObjectId) -> Result<usize, GitError> {
    let objects = Objects::open(path)?;
    let found = root_tree(&objects, commit)?;
    if found != tree {
        return Err(GitError::WrongTree { commit, found, wanted: tree });
    }
    let files = GitTree::read(&objects, to_oid(tree))?;
    for (_, file) in files.listing().iter().filter(|(_, f)| f.mode != Mode::Submodule) {
        GitTree::blob(&objects, file.id).map_err(|e| objects.damaged(e))?;
    }
    Ok(files.listing().len())
}

/// The folder in the cache of one upstream's repository of this kind.
pub(super) fn place(cache: &Cache, upstream: &str, kind: &str) -> PathBuf {
    let url = upstream.trim_end_matches('/');
    let url = url.strip_suffix(".git").unwrap_or(url);
    let shown = hidden(url);
    let last = shown.rsplit('/').next().unwrap_or_default();
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let slug: String = last.chars().take(40).map(safe).collect();
    let hash = Sha256::digest(url.as_bytes());
    let digits: String = hash[..4].iter().map(|b| format!("{b:02x}")).collect();
    cache.root().join("git").join(format!("{slug}-{digits}.{kind}"))
}

pub(super) fn mark(commit: ObjectId) -> String {
    format!("{WHOLE}/{commit}")
}

/// An error of a repository of the cache: one of another user's keeps the cache from
/// being used.
pub(super) fn in_cache(error: GitError) -> GitError {
    match error {
        GitError::Owner { path, owner } => CacheError::Owner { path, owner }.into(),
        error => error,
    }
}

fn root_tree(objects: &Objects, commit: ObjectId) -> Result<ObjectId, GitError> {
    let repository = objects.handle();
    let found = object::commit(&repository, to_oid(commit)).map_err(|e| objects.damaged(e))?;
    Ok(to_id(found.tree_id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_upstream_has_one_store() {
        let cache = Cache::at("/c");
        let store = |url| Store::new(&cache, url).path().display().to_string();
        let one = store("https://host/owner/mlx");
        assert!(one.starts_with("/c/git/mlx-") && one.ends_with(".git"), "{one}");
        assert_eq!(one, store("https://host/owner/mlx.git/"));
        assert_ne!(one, store("https://host/other/mlx"));
    }

    #[test]
    fn what_is_not_there_is_no_error() {
        let store = Store::new(&Cache::at("/nowhere/at/all"), "https://host/x");
        let id = ObjectId::of_blob(b"");
        assert!(store.tree(id, id).unwrap().is_none());
    }
}
