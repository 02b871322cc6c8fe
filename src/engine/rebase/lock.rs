//! The lock of a session's folder.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use crate::work_folder::{self, LOCK, Owner};

use super::RebaseError;
use super::publish::io;
use super::session::{FOLDER, STATE};

/// Takes the lock of the project's rebases, and makes their folder where none is.
///
/// # Errors
/// The folder is somebody else's, or another process works in it.
pub(super) fn lock(root: &Path) -> Result<File, RebaseError> {
    let folder = root.join(FOLDER);
    let path = folder.join(LOCK);
    let others = |found: String| {
        let what = format!("a rebase works there, and {found}; move it away");
        RebaseError::State { path: folder.clone(), what }
    };
    loop {
        if folder.symlink_metadata().is_ok() && !folder.is_dir() {
            return Err(others("what stands there is no folder".into()));
        }
        fs::create_dir_all(&folder).map_err(io(&folder, "cannot be made"))?;
        let owner =
            work_folder::owner(&folder, &[STATE]).map_err(io(&folder, "cannot be looked into"))?;
        if let Owner::Other(found) = owner {
            return Err(others(format!("what it holds (`{found}`) is not the overlay's")));
        }
        let file = match work_folder::open_lock(&folder) {
            Ok(file) => file,
            // The last holder cleared the folder since it was made.
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(io(&path, "cannot be made")(e)),
        };
        match file.try_lock() {
            Ok(()) if work_folder::is_lock_of(&folder, &file) => {
                work_folder::sign(&file).map_err(io(&path, "cannot be written"))?;
                return Ok(file);
            }
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = work_folder::holder(&folder).map(|id| format!(" ({id})"));
                let who = holder.unwrap_or_default();
                let what = format!("another process{who} works on a rebase of this project");
                return Err(RebaseError::Busy { path, what });
            }
            Err(TryLockError::Error(e)) => return Err(io(&path, "cannot be locked")(e)),
        }
    }
}
