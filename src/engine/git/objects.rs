//! A repository that several threads read at once.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use git2::{Error, Repository};

use super::loose::Loose;
use super::{GitError, object};

/// A repository that trees share. A handle of libgit2's serves one thread at a
/// time, and most of a read is unpacking: so there is one for each thread that
/// reads just now. (What is known of the packs, libgit2 shares among them.)
#[derive(Clone)]
pub(super) struct Objects(Arc<Handles>);

struct Handles {
    path: PathBuf,
    loose: Loose,
    free: Mutex<Vec<Repository>>,
    given_back: Condvar,
}

/// The repository, for one thread.
pub(super) struct Handle<'o> {
    /// There until it is given back.
    repository: Option<Repository>,
    of: &'o Handles,
}

impl Objects {
    pub(super) fn open(path: &Path) -> Result<Self, GitError> {
        object::hash_here();
        let repository = super::open(path)?;
        // libgit2 puts a `/` behind it.
        let path = repository.path().components().collect();
        let loose = Loose::of(&repository);
        let free = Mutex::new(vec![repository]);
        Ok(Self(Arc::new(Handles { path, loose, free, given_back: Condvar::new() })))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.path
    }

    /// A handle that nobody else has. Where no further one can be opened (a
    /// process may have so many files), it waits for one.
    pub(super) fn handle(&self) -> Handle<'_> {
        let of = &*self.0;
        let mut free = of.free();
        let repository = loop {
            match free.pop().or_else(|| Repository::open(&of.path).ok()) {
                Some(repository) => break repository,
                None => {
                    free = of.given_back.wait(free).unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        Handle { repository: Some(repository), of }
    }

    pub(super) fn damaged(&self, source: Error) -> GitError {
        super::damaged(self.path(), source)
    }
}

impl Handle<'_> {
    /// The objects that are in no pack.
    pub(super) fn loose(&self) -> &Loose {
        &self.of.loose
    }
}

impl Handles {
    fn free(&self) -> MutexGuard<'_, Vec<Repository>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Handle<'_> {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        self.repository.as_ref().expect("it is given back when this is dropped")
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        self.of.free().extend(self.repository.take());
        self.of.given_back.notify_one();
    }
}
