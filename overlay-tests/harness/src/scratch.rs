//! A run's own folder in the store. It goes when the run ends; what a killed
//! run left goes when the next one starts.

use std::fs::{self, File};
use std::path::Path;

use tempfile::TempDir;

use crate::HarnessError;

/// Where in the store scratch folders are told from what is kept.
const PREFIX: &str = ".tmp";
/// In each of them, locked while its run lives.
const LOCK: &str = "lock";

/// A folder that is locked, and goes with the value.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    _alive: File,
}

impl Scratch {
    /// Removes what killed runs left in the store and makes a folder there.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(crate) fn open(store: &Path) -> Result<Self, HarnessError> {
        // Held while folders are looked at and made, so that no other run sees
        // this one's before it is locked.
        let door = locked(&store.join("scratch.lock"))?;
        remove_stale(store)?;
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(store);
        let folder = folder.map_err(HarnessError::io(store))?;
        let alive = locked(&folder.path().join(LOCK))?;
        drop(door);
        Ok(Self { folder, _alive: alive })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn locked(path: &Path) -> Result<File, HarnessError> {
    let file = File::create(path).map_err(HarnessError::io(path))?;
    file.lock().map_err(HarnessError::io(path))?;
    Ok(file)
}

fn remove_stale(store: &Path) -> Result<(), HarnessError> {
    for entry in fs::read_dir(store).map_err(HarnessError::io(store))? {
        let entry = entry.map_err(HarnessError::io(store))?;
        let scratch = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let lives = || File::open(entry.path().join(LOCK)).is_ok_and(|f| f.try_lock().is_err());
        if scratch && !lives() {
            // What cannot be removed costs room and nothing else.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratches(store: &Path) -> usize {
        let names = store.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(PREFIX)).count()
    }

    #[test]
    fn a_killed_run_s_folder_goes_and_a_living_one_s_stays() {
        let store = tempfile::tempdir().unwrap();
        let living = Scratch::open(store.path()).unwrap();
        let Scratch { folder, _alive } = Scratch::open(store.path()).unwrap();
        let killed = folder.keep();
        drop(_alive);
        fs::create_dir(store.path().join(".tmp-without-a-lock")).unwrap();
        assert_eq!(scratches(store.path()), 3);

        let next = Scratch::open(store.path()).unwrap();
        assert!(living.path().is_dir() && next.path().is_dir() && !killed.exists());
        assert_eq!(scratches(store.path()), 2);
        drop((living, next));
        assert_eq!(scratches(store.path()), 0);
    }
}
