//! One writer a place: a locked file in the work folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::{Event, Options, PublishError, Wait};
use crate::work_folder::{self, LOCK, Owner};

const POLL: Duration = Duration::from_millis(20);

/// Held by whoever may write in a work folder; the folder is made for it and
/// goes with it when nothing else is inside.
#[derive(Debug)]
pub(super) struct Lock {
    folder: PathBuf,
    file: Option<File>,
}

impl Lock {
    /// Takes the lock in the work folder `folder` that guards `place`; `marks`
    /// are as [`work_folder::owner`] takes them.
    ///
    /// # Errors
    /// The folder is somebody else's, another process holds the lock, or the
    /// file system refuses.
    pub(super) fn take(
        folder: &Path,
        marks: &[&str],
        place: &Path,
        options: &Options<'_>,
    ) -> Result<Self, PublishError> {
        let path = folder.join(LOCK);
        let begun = Instant::now();
        let mut told = false;
        loop {
            make_folder(folder)?;
            require_ours(folder, marks)?;
            let file = match work_folder::open_lock(folder) {
                Ok(file) => file,
                // The last holder cleared the folder since it was made.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(PublishError::io("open", &path)(e)),
            };
            match file.try_lock() {
                Ok(()) if work_folder::is_lock_of(folder, &file) => {
                    let lock = Self { folder: folder.into(), file: Some(file) };
                    lock.sign()?;
                    return Ok(lock);
                }
                // The last holder removed the file between our open and lock.
                Ok(()) => {}
                Err(TryLockError::Error(e)) => return Err(PublishError::io("lock", &path)(e)),
                Err(TryLockError::WouldBlock) => {
                    let holder = work_folder::holder(folder);
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
        File::open(folder.join(LOCK))
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Writes whose it is: what is put into the folder from here on is known
    /// for the overlay's by it.
    fn sign(&self) -> Result<(), PublishError> {
        let Some(file) = &self.file else { return Ok(()) };
        work_folder::sign(file).map_err(PublishError::io("write", &self.folder.join(LOCK)))
    }

    /// Gives the lock back. Removed while it is still held, so that nobody
    /// holds a lock on a file that is no longer there; and left there, unheld,
    /// where something else is left too, which the next run is to know for ours.
    pub(super) fn release(&mut self) {
        if self.file.is_some() {
            let others = fs::read_dir(&self.folder)
                .map(|mut items| items.any(|item| item.is_ok_and(|item| item.file_name() != LOCK)));
            if matches!(others, Ok(false)) {
                let _ = fs::remove_file(self.folder.join(LOCK));
                let _ = fs::remove_dir(&self.folder);
            }
            self.file = None;
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.release();
    }
}

/// Fails where the work folder is somebody else's.
///
/// # Errors
/// It is, or it cannot be looked at.
pub(super) fn require_ours(folder: &Path, marks: &[&str]) -> Result<(), PublishError> {
    match fs::symlink_metadata(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        _ => super::place::must_be_folder(folder)?,
    }
    match work_folder::owner(folder, marks).map_err(PublishError::io("look into", folder))? {
        Owner::Nobody | Owner::Overlay => Ok(()),
        Owner::Other(found) => Err(PublishError::Foreign { folder: folder.into(), found }),
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

/// Fails where [`make_folder`] would, for the rights of folders or a file in the way. Reads
/// only.
pub(super) fn require_makable(folder: &Path) -> Result<(), PublishError> {
    let Some(parent) = folder.parent() else { return Ok(()) };
    let is_there = |above: &&Path| above.symlink_metadata().is_ok();
    let Some(nearest) = parent.ancestors().find(is_there) else { return Ok(()) };
    let fails = |made: &Path, errno: Errno| Err(PublishError::io("make", made)(errno.into()));
    let is_near = nearest == parent;
    if !nearest.is_dir() {
        return fails(parent, if is_near { Errno::EXIST } else { Errno::NOTDIR });
    }
    access(nearest, Access::WRITE_OK | Access::EXEC_OK)
        .or_else(|errno| fails(if is_near { folder } else { parent }, errno))
}
