//! A store made anew beside the old one, and put in its place when it is whole.

use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryInitOptions};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::import::copy;
use super::store::{Store, WHOLE, in_cache, mark};
use super::{GitError, to_oid};
use crate::cache::{self, CacheError, Lock};
use crate::progress::Progress;
use crate::snapshot::ObjectId;

impl Store {
    /// Waits while another process writes to the store.
    pub(super) fn lock(&self, progress: &dyn Progress) -> Result<Lock, GitError> {
        cache::make(self.path().parent().expect("the store is in a folder of the cache"))?;
        Ok(Lock::wait(&self.path().with_extension("lock"), "fetching", progress)?)
    }

    /// The store that is to take this one's place.
    pub(super) fn aside(&self) -> Self {
        Self::at(self.path().with_extension("git.new"))
    }

    /// Where this one lies for a moment, on file systems that cannot exchange.
    fn before(&self) -> PathBuf {
        self.path().with_extension("git.old")
    }

    /// Clears what a killed import left. The lock must be held.
    pub(super) fn settle(&self) -> Result<(), GitError> {
        let (aside, before) = (self.aside(), self.before());
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        // Killed between two renames: the next store was whole before the first.
        if !is_there(self.path()) && is_there(&before) {
            let next = if is_there(aside.path()) { aside.path() } else { &before };
            rename(next, self.path())?;
        }
        cache::remove(&before)?;
        Ok(cache::remove(aside.path())?)
    }

    /// Makes the repository, where nothing stands yet.
    pub(super) fn make(&self) -> Result<Repository, GitError> {
        let mut options = RepositoryInitOptions::new();
        // Hooks and the like of the user's templates are of no use here.
        options.bare(true).external_template(false);
        Repository::init_opts(self.path(), &options).map_err(|e| self.unwritten(&e))
    }

    /// Says that every object of `commit` is here.
    pub(super) fn mark_whole(
        &self,
        repository: &Repository,
        commit: ObjectId,
    ) -> Result<(), GitError> {
        repository
            .reference(&mark(commit), to_oid(commit), true, "every object was read")
            .map_err(|e| self.unwritten(&e))?;
        Ok(())
    }

    fn unwritten(&self, error: &git2::Error) -> GitError {
        let source = std::io::Error::other(error.message().to_owned());
        CacheError::Write { path: self.path().to_path_buf(), source }.into()
    }

    /// The commits that are marked whole; none where no repository can be opened.
    ///
    /// # Errors
    /// The repository is another user's, and not ours to make anew.
    pub(super) fn marks(&self) -> Result<Vec<ObjectId>, GitError> {
        let repository = match super::open(self.path()) {
            Ok(repository) => repository,
            Err(e @ GitError::Owner { .. }) => return Err(in_cache(e)),
            Err(_) => return Ok(Vec::new()),
        };
        let Ok(references) = repository.references_glob(&format!("{WHOLE}/*")) else {
            return Ok(Vec::new());
        };
        let commit = |name: &str| name.strip_prefix(WHOLE)?.strip_prefix('/')?.parse().ok();
        let named = references.filter_map(Result::ok);
        Ok(named.filter_map(|reference| commit(reference.name().ok()?)).collect())
    }

    /// Copies a commit that is marked whole to the store aside. One that is damaged
    /// is left behind: it is of no use.
    pub(super) fn carry(
        &self,
        commit: ObjectId,
        aside: &Self,
        into: &Repository,
        progress: &dyn Progress,
    ) -> Result<(), GitError> {
        let tree = self.root_tree(commit);
        let Ok(tree) = tree.and_then(|tree| self.prove(commit, tree).map(|_| tree)) else {
            return Ok(());
        };
        copy(into, self.path(), commit, progress)?;
        aside.prove(commit, tree)?;
        aside.mark_whole(into, commit)
    }

    /// Puts the store aside in this one's place, and takes this one away.
    pub(super) fn give_way(&self, aside: &Self) -> Result<(), GitError> {
        if self.path().symlink_metadata().is_err() {
            return rename(aside.path(), self.path());
        }
        let left = match renameat_with(CWD, aside.path(), CWD, self.path(), RenameFlags::EXCHANGE) {
            Ok(()) => aside.path().to_path_buf(),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => {
                let before = self.before();
                rename(self.path(), &before)?;
                // Where it fails, the next import puts one of the two there.
                rename(aside.path(), self.path())?;
                before
            }
            Err(e) => {
                let path = self.path().to_path_buf();
                return Err(CacheError::Write { path, source: e.into() }.into());
            }
        };
        // What is left is in nobody's way, and cleared by the next import.
        let _ = cache::remove(&left);
        Ok(())
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), GitError> {
    std::fs::rename(from, to)
        .map_err(|source| CacheError::Write { path: to.to_path_buf(), source }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn killed_between_two_renames_a_store_takes_the_place() {
        for (next, wanted) in [(true, "new"), (false, "old")] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::at(dir.path().join("x.git"));
            let fill = |path: &Path, text: &str| {
                std::fs::create_dir(path).unwrap();
                std::fs::write(path.join("file"), text).unwrap();
            };
            fill(&store.before(), "old");
            if next {
                fill(store.aside().path(), "new");
            }
            store.settle().unwrap();
            assert_eq!(std::fs::read_to_string(store.path().join("file")).unwrap(), wanted);
            assert_eq!(dir.path().read_dir().unwrap().count(), 1, "nothing else is left");
            // Whatever is left beside a store that is there is cleared.
            fill(&store.before(), "older");
            fill(store.aside().path(), "half");
            store.settle().unwrap();
            assert_eq!(std::fs::read_to_string(store.path().join("file")).unwrap(), wanted);
            assert_eq!(dir.path().read_dir().unwrap().count(), 1);
        }
    }

    #[test]
    fn whatever_stands_there_gives_way() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path().join("x.git"));
        let stands: [fn(&Path); 3] = [
            |_| {},
            |path| std::fs::write(path, "a file").unwrap(),
            |path| std::fs::create_dir_all(path.join("objects/pack")).unwrap(),
        ];
        for stand in stands {
            let _ = cache::remove(store.path());
            stand(store.path());
            store.aside().make().unwrap();
            store.give_way(&store.aside()).unwrap();
            assert!(Repository::open_bare(store.path()).is_ok());
            assert_eq!(dir.path().read_dir().unwrap().count(), 1);
        }
    }
}
