//! A tree that is read once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use foldhash::HashMap;

use super::{Entry, File, Mode, ObjectId, ReadError, Tree, TreePath};

/// A tree whose files are read once: for one that is looked at many times.
pub struct Remembered<T> {
    below: T,
    files: Mutex<HashMap<TreePath, Option<File>>>,
    forgets: AtomicBool,
}

impl<T: Tree> Remembered<T> {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(below: T) -> Self {
        Self { below, files: Mutex::default(), forgets: AtomicBool::new(false) }
    }

    /// Nothing is remembered from now on, and what was is forgotten when it is given:
    /// for the last look, which would fill memory with the whole tree.
    pub fn forget(&self) {
        self.forgets.store(true, Ordering::Relaxed);
    }

    /// Reads the files one by one while `work` goes on, until it is done: what
    /// is written afterwards need not be waited for. What cannot be read is told
    /// to whoever asks for it.
    pub fn reading_ahead<R>(&self, work: impl FnOnce() -> R) -> R {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let wanted = |_: &TreePath| !done.load(Ordering::Relaxed);
                for path in self.below.paths().into_iter().take_while(wanted) {
                    let _ = self.file(&path);
                }
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            result
        })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TreePath, Option<File>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Tree> Tree for Remembered<T> {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        if self.forgets.load(Ordering::Relaxed) {
            let known = self.known().remove(path);
            return known.map_or_else(|| self.below.file(path), Ok);
        }
        if let Some(known) = self.known().get(path) {
            return Ok(known.clone());
        }
        let file = self.below.file(path)?;
        self.known().insert(path.clone(), file.clone());
        Ok(file)
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.below.mode(path)
    }

    fn id(&self, path: &TreePath) -> Option<ObjectId> {
        self.below.id(path)
    }

    fn paths(&self) -> Vec<TreePath> {
        self.below.paths()
    }

    fn inside(&self, folder: &TreePath) -> Option<TreePath> {
        self.below.inside(folder)
    }

    fn entries(&self) -> Vec<Entry> {
        self.below.entries()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::snapshot::MemoryTree;

    #[test]
    fn a_file_is_read_once_ahead_or_asked_for() {
        struct Counting(MemoryTree, AtomicUsize);
        impl Tree for Counting {
            fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
                self.1.fetch_add(1, Ordering::Relaxed);
                self.0.file(path)
            }
            fn mode(&self, path: &TreePath) -> Option<Mode> {
                self.0.mode(path)
            }
            fn paths(&self) -> Vec<TreePath> {
                self.0.paths()
            }
        }
        let path = |name: &str| TreePath::new(name).expect("a plain path");
        let file = |name: &str| (path(name), File::new(Mode::Regular, name.as_bytes()));
        let tree = Counting(MemoryTree([file("a"), file("b")].into()), Default::default());
        let tree = Remembered::new(tree);
        // The work is done when both are read.
        tree.reading_ahead(|| while tree.known().len() < 2 {});
        assert_eq!(tree.file(&path("b")).expect("in memory"), Some(file("b").1));
        assert_eq!(tree.below.1.load(Ordering::Relaxed), 2);

        tree.forget();
        for reads in [2, 3] {
            assert_eq!(tree.file(&path("b")).expect("in memory"), Some(file("b").1));
            assert_eq!(tree.below.1.load(Ordering::Relaxed), reads);
        }
        assert_eq!(tree.known().len(), 1);
    }
}
