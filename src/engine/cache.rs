//! The user's cache folder, and the locks in it.
//!
//! ```text
//! <cache>/git/<name>-<8 digits>.git          one upstream's pinned commits (bare)
//! <cache>/git/<name>-<8 digits>.history.git  its history, where it was needed (bare)
//! <cache>/git/<name>-<8 digits>.git.new      the next of the pinned commits, while it is made
//! <cache>/git/….lock                         held while objects are written
//! <cache>/crates/<name>-<version>/           a throw-away manifest a crate
//! <cache>/wheels/<wheel>.whl                 downloaded wheels
//! <cache>/registry.lock                      held while cargo or pip run for us
//! ```

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::progress::{Event, Progress};

/// The variable that names the cache folder.
pub const CACHE_VARIABLE: &str = "MLX_OVERLAY_CACHE";
const FOLDER: &str = "mlx-overlay";

/// The cache folder. It need not be there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

/// The cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// No variable tells where it is to be.
    #[error(
        "no cache folder: none of {CACHE_VARIABLE}, XDG_CACHE_HOME and HOME is set to a full path; set {CACHE_VARIABLE}"
    )]
    NoPlace,
    /// The variable names a folder that would be another one from each place
    /// that the tool, or a build script, runs in.
    #[error("{CACHE_VARIABLE} is `{}`: it must be a full path", path.display())]
    Relative {
        /// What the variable says.
        path: PathBuf,
    },
    /// It cannot be made or written.
    #[error("the cache folder `{}` cannot be written; set {CACHE_VARIABLE} or XDG_CACHE_HOME to a folder of yours", path.display())]
    Root {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A part of it cannot be made or written.
    #[error("`{}` in the cache cannot be written; set {CACHE_VARIABLE} or XDG_CACHE_HOME to a folder of yours", path.display())]
    Write {
        /// The part.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A part of it is another user's.
    #[error("`{}` in the cache belongs to another user (id {owner}): remove it, give it to yours with `chown -R`, or set {CACHE_VARIABLE} to a folder of yours", path.display())]
    Owner {
        /// The part.
        path: PathBuf,
        /// The user's id.
        owner: u32,
    },
    /// A lock cannot be taken.
    #[error("`{}` in the cache cannot be locked; set {CACHE_VARIABLE} or XDG_CACHE_HOME to a folder of yours", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Cache {
    /// The cache of this user: `MLX_OVERLAY_CACHE`, else `mlx-overlay` in
    /// `XDG_CACHE_HOME` or in the system's folder for caches.
    ///
    /// # Errors
    /// No variable tells where it is.
    pub fn of_user() -> Result<Self, CacheError> {
        Self::named_by(|name| std::env::var_os(name))
    }

    /// The cache that the variables name. Our own must be a full path; those
    /// of the system count only where they are, as their specification says.
    ///
    /// # Errors
    /// None of them does.
    pub fn named_by(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, CacheError> {
        let folder = |name| variable(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let own = variable(CACHE_VARIABLE).map(PathBuf::from).filter(|p| !p.as_os_str().is_empty());
        match own {
            Some(path) if path.is_absolute() => return Ok(Self::at(path)),
            Some(path) => return Err(CacheError::Relative { path }),
            None => {}
        }
        let system = match std::env::consts::OS {
            "macos" => folder("HOME").map(|home| home.join("Library/Caches")),
            "windows" => folder("LOCALAPPDATA"),
            _ => folder("HOME").map(|home| home.join(".cache")),
        };
        let caches = folder("XDG_CACHE_HOME").or(system).ok_or(CacheError::NoPlace)?;
        Ok(Self::at(caches.join(FOLDER)))
    }

    /// The cache in this folder.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a path is in the cache.
    #[must_use]
    pub fn holds(&self, path: &Path) -> bool {
        match (self.root.canonicalize(), path.canonicalize()) {
            (Ok(root), Ok(path)) => path.starts_with(root),
            _ => path.starts_with(&self.root),
        }
    }

    /// Makes the folder where it is not there yet, and tries that it takes files.
    ///
    /// # Errors
    /// It does not.
    pub fn try_writing(&self) -> Result<(), CacheError> {
        std::fs::create_dir_all(&self.root)
            .and_then(|()| tempfile::tempfile_in(&self.root).map(drop))
            .map_err(|source| CacheError::Root { path: self.root.clone(), source })
    }

    /// A folder in the cache, made where it is not there yet. A file of the cache that
    /// stands in its place, or above it, is none of ours and goes.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf, CacheError> {
        let path = self.root.join(name);
        std::fs::create_dir_all(&self.root)
            .map_err(|source| CacheError::Root { path: self.root.clone(), source })?;
        let in_cache = path.ancestors().take_while(|above| *above != self.root);
        for folder in in_cache.collect::<Vec<_>>().into_iter().rev() {
            make(folder)?;
        }
        Ok(path)
    }
}

/// Makes a folder of the cache. A file in its place is none of ours, and goes.
///
/// # Errors
/// It cannot be made.
pub(crate) fn make(folder: &Path) -> Result<(), CacheError> {
    if folder.symlink_metadata().is_ok_and(|there| there.is_file()) {
        remove(folder)?;
    }
    std::fs::create_dir_all(folder)
        .map_err(|source| CacheError::Write { path: folder.to_path_buf(), source })
}

/// Takes away what stands at a path of the cache, a file or a folder.
///
/// # Errors
/// It cannot be; that nothing is there is none.
pub(crate) fn remove(path: &Path) -> Result<(), CacheError> {
    let removed = match path.symlink_metadata() {
        Ok(there) if there.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(CacheError::Write { path: path.to_path_buf(), source })
        }
        _ => Ok(()),
    }
}

/// A lock on a file, until it is dropped; the system frees it if the process
/// ends in any other way.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock at `path`, telling `what` is waited for.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn wait(path: &Path, what: &str, progress: &dyn Progress) -> Result<Self, CacheError> {
        let failed = |source| CacheError::Lock { path: path.to_path_buf(), source };
        // A folder or a pipe is no lock of ours, and nobody holds it.
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            remove(path)?;
        }
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|source| CacheError::Write { path: path.to_path_buf(), source })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress.tell(Event::Waiting(&format!(
                    "another process holds {} ({what}); waiting until it is done",
                    path.display()
                )));
                file.lock().map_err(failed)?;
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_nearest_variable_wins() {
        let named = |set: &[(&str, &str)]| {
            let cache = Cache::named_by(|name| {
                set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into())
            });
            cache.map(|c| c.root().to_path_buf())
        };
        let (own, xdg) = ((CACHE_VARIABLE, "/own"), ("XDG_CACHE_HOME", "/xdg"));
        assert_eq!(named(&[own, xdg]).unwrap(), Path::new("/own"));
        assert_eq!(named(&[xdg]).unwrap(), Path::new("/xdg/mlx-overlay"));
        for others in [&[][..], &[xdg]] {
            let relative = named(&[&[(CACHE_VARIABLE, "not/full")], others].concat()).unwrap_err();
            let told = relative.to_string();
            assert_eq!(told, "MLX_OVERLAY_CACHE is `not/full`: it must be a full path");
        }
        assert_eq!(named(&[(CACHE_VARIABLE, ""), xdg]).unwrap(), Path::new("/xdg/mlx-overlay"));
        assert!(named(&[("XDG_CACHE_HOME", "not/full")]).is_err());
        if cfg!(target_os = "linux") {
            let home = named(&[("HOME", "/home/me")]).unwrap();
            assert_eq!(home, Path::new("/home/me/.cache/mlx-overlay"));
        }
    }

    #[test]
    fn a_lock_that_is_held_is_waited_for() {
        struct Told(RefCell<Vec<String>>, RefCell<Option<Lock>>);
        impl Progress for Told {
            fn tell(&self, event: Event<'_>) {
                if let Event::Waiting(what) = event {
                    self.0.borrow_mut().push(what.to_owned());
                    self.1.borrow_mut().take();
                }
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let told = Told(RefCell::default(), RefCell::default());
        let first = Lock::wait(&path, "a test", &told).unwrap();
        assert!(told.0.borrow().is_empty());
        *told.1.borrow_mut() = Some(first);
        Lock::wait(&path, "a test", &told).unwrap();
        assert!(told.0.borrow()[0].contains("x.lock (a test); waiting"), "{:?}", told.0);
    }
}
