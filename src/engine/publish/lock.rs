//! One writer a place: a locked file in the work folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Event, Options, PublishError, Wait};

const POLL: Duration = Duration::from_millis(20);

/// Held by whoever may write in a work folder; the folder is made for it and
/// goes with it when nothing else is inside.
#[derive(Debug)]
pub(super) struct Lock {
    folder: PathBuf,
    file: Option<File>,
}

impl Lock {
    /// Takes the lock in the work folder `folder` that guards `place`.
    pub(super) fn take(
        folder: &Path,
        place: &Path,
        options: &Options<'_>,
    ) -> Result<Self, PublishError> {
        let path = folder.join("lock");
        let begun = Instant::now();
        let mut told = false;
        loop {
            make_folder(folder)?;
            let opened =
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let file = match opened {
                Ok(file) => file,
                // The last holder cleared the folder since it was made.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(PublishError::io("open", &path)(e)),
            };
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => {
                    let mut lock = Self { folder: folder.into(), file: Some(file) };
                    lock.sign();
                    return Ok(lock);
                }
                // The last holder removed the file between our open and lock.
                Ok(()) => {}
                Err(TryLockError::Error(e)) => return Err(PublishError::io("lock", &path)(e)),
                Err(TryLockError::WouldBlock) => {
                    let holder = fs::read_to_string(&path).ok().and_then(|t| t.trim().parse().ok());
                    let waited = begun.elapsed();
                    let over = match options.wait {
                        Wait::Never => true,
                        Wait::For(limit) => waited >= limit,
                        Wait::Forever => false,
                    };
                    if over {
                        return Err(PublishError::Locked { path: place.into(), holder, waited });
                    }
                    if !told {
                        (options.watch)(Event::Waiting { holder });
                        told = true;
                    }
                    std::thread::sleep(POLL);
                }
            }
        }
    }

    /// Says whether somebody else holds the lock in `folder`.
    pub(super) fn is_held(folder: &Path) -> bool {
        File::open(folder.join("lock"))
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Writes who holds it, for the message of whoever waits; that it fails is
    /// no reason to stop.
    fn sign(&mut self) {
        if let Some(file) = &mut self.file {
            let _ = file.set_len(0);
            let _ = writeln!(file, "{}", std::process::id());
        }
    }

    /// Gives the lock back. Removed while it is still held, so that nobody
    /// holds a lock on a file that is no longer there.
    pub(super) fn release(&mut self) {
        if self.file.is_some() {
            let _ = fs::remove_file(self.folder.join("lock"));
            let _ = fs::remove_dir(&self.folder);
            self.file = None;
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.release();
    }
}

fn make_folder(folder: &Path) -> Result<(), PublishError> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(PublishError::io("make", parent))?;
    }
    match fs::create_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => super::place::must_be_folder(folder),
        other => other.map_err(PublishError::io("make", folder)),
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => held.dev() == there.dev() && held.ino() == there.ino(),
        _ => false,
    }
}
