//! What a person changed in the folder that cargo unpacked a crate to: kept when cargo
//! unpacks it again.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::cargo::SPOILT;
use super::{MARKER, Registry, RegistryError};
use crate::progress::Event;

/// Whether cargo holds the folder for all of a crate.
pub(super) fn is_marked(folder: &Path) -> bool {
    let marker = fs::read(folder.join(MARKER));
    marker.is_ok_and(|bytes| !bytes.is_empty() && bytes != SPOILT)
}

impl Registry<'_> {
    /// Runs `work`, in which cargo may clear these folders and unpack to them again.
    /// What stood there and is gone then is kept beside the folder, and is told. A run
    /// that is killed meanwhile leaves it to the next one to [settle](Self::settle).
    ///
    /// # Errors
    /// Those of `work`, or a folder cannot be copied.
    pub(super) fn keeping<T>(
        &self,
        folders: &[PathBuf],
        work: impl FnOnce() -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        // Copies: another cargo may be about to unpack there.
        let mut held = Vec::new();
        for folder in folders {
            let copy = names(folder, "keeping").find(|path| !is_there(path));
            let copy = copy.expect("some number is free");
            held.push(
                hold(&copy)
                    .and_then(|lock| copy_files(folder, &copy).map(|()| lock))
                    .map_err(|source| RegistryError::Write { path: copy.clone(), source })?,
            );
        }
        let done = work();
        drop(held);
        folders.iter().for_each(|folder| self.settle(folder));
        done
    }

    /// Of each copy that was made of a folder, in this run or one that was killed, keeps
    /// and tells what does not stand in the folder.
    pub(super) fn settle(&self, folder: &Path) {
        for copy in names(folder, "keeping").take_while(|path| is_there(path)) {
            let lock = File::open(&copy);
            if lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock))) {
                // Another overlay is at it, with another cache.
                continue;
            }
            drop_same(&copy, folder);
            if !is_there(&copy) {
                continue;
            }
            let kept = names(folder, "kept").find(|path| !is_there(path));
            let kept = kept.filter(|kept| fs::rename(&copy, kept).is_ok()).unwrap_or(copy);
            self.progress.tell(Event::Note(&format!(
                "files in {} were not as cargo unpacks them; they are kept in {}",
                folder.display(),
                kept.display()
            )));
        }
    }
}

/// Makes the folder of a copy, which nobody else settles while it is held.
fn hold(copy: &Path) -> io::Result<File> {
    fs::create_dir(copy)?;
    let lock = File::open(copy)?;
    // Where folders cannot be locked, no other overlay is the usual case.
    let _ = lock.try_lock();
    Ok(lock)
}

/// The names beside a folder for copies of it.
fn names(folder: &Path, what: &'static str) -> impl Iterator<Item = PathBuf> {
    (1..).map(move |number: usize| {
        let mut name = folder.as_os_str().to_owned();
        name.push(format!(".{what}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    })
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Copies the files in a folder; one that goes meanwhile is another cargo's.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for item in WalkDir::new(from).into_iter().filter_map(Result::ok) {
        let below = item.path().strip_prefix(from).expect("the walk stays in its folder");
        let to = to.join(below);
        let copied = match item.file_type() {
            kind if kind.is_dir() => fs::create_dir_all(&to),
            kind if kind.is_symlink() => fs::read_link(item.path())
                .and_then(|target| std::os::unix::fs::symlink(target, &to)),
            _ => fs::copy(item.path(), &to).map(drop),
        };
        if let Err(error) = copied
            && item.path().symlink_metadata().is_ok()
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Takes out of a copy what stands in `folder`, and the beginnings of it: an unpacking
/// that was broken off leaves those. What cannot be told stays.
fn drop_same(copy: &Path, folder: &Path) {
    for item in WalkDir::new(copy).contents_first(true).into_iter().filter_map(Result::ok) {
        let below = item.path().strip_prefix(copy).expect("the walk stays in its folder");
        let is_same = || item.file_name() == MARKER || begins(item.path(), &folder.join(below));
        // A folder goes if nothing is left in it.
        let _ = match item.file_type().is_dir() {
            true => fs::remove_dir(item.path()),
            false if is_same() => fs::remove_file(item.path()),
            false => Ok(()),
        };
    }
}

/// Whether a file is another one, or its beginning.
fn begins(old: &Path, new: &Path) -> bool {
    let read = |path: &Path| -> io::Result<(bool, Vec<u8>)> {
        match fs::symlink_metadata(path)?.is_symlink() {
            true => Ok((true, fs::read_link(path)?.into_os_string().into_encoded_bytes())),
            false => Ok((false, fs::read(path)?)),
        }
    };
    match (read(old), read(new)) {
        (Ok((was_link, old)), Ok((is_link, new))) => was_link == is_link && new.starts_with(&old),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::cache::Cache;
    use crate::progress::Progress;
    use crate::registry::Network;

    struct Told(RefCell<Vec<String>>);

    impl Progress for Told {
        fn tell(&self, event: Event<'_>) {
            if let Event::Note(text) = event {
                self.0.borrow_mut().push(text.to_owned());
            }
        }
    }

    fn fill(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn what_cargo_clears_away_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a-1.0.0");
        let (cache, told) = (Cache::at(dir.path()), Told(RefCell::default()));
        let registry = Registry::new(&cache, Network::OffLimits, &told);
        let unpack = || {
            fs::remove_dir_all(&folder).unwrap();
            fill(&folder, &[("src/lib.rs", "whole\n"), ("b", "b"), (MARKER, "{\"v\":1}")]);
            Ok(())
        };
        let count = || dir.path().read_dir().unwrap().count();
        // Broken off: nothing to keep.
        fill(&folder, &[("src/lib.rs", "who"), ("b", "")]);
        registry.keeping(std::slice::from_ref(&folder), unpack).unwrap();
        assert_eq!((told.0.borrow().len(), count()), (0, 1));
        // Edited twice: both are kept, and what was not edited is not.
        for kept in ["a-1.0.0.kept", "a-1.0.0.kept-2"] {
            fill(&folder, &[("src/lib.rs", "edited\n"), ("src/new.rs", "new")]);
            registry.keeping(std::slice::from_ref(&folder), unpack).unwrap();
            let kept = dir.path().join(kept);
            assert_eq!(fs::read_to_string(kept.join("src/lib.rs")).unwrap(), "edited\n");
            assert!(kept.join("src/new.rs").is_file() && !kept.join("b").exists());
            assert!(!kept.join(MARKER).exists());
            let text = told.0.borrow_mut().pop().unwrap();
            assert!(text.ends_with(&kept.display().to_string()), "{text}");
        }
        // Left as it was, nothing need be kept, nor where cargo fails.
        fill(&folder, &[("b", "edited")]);
        let failed = registry.keeping(std::slice::from_ref(&folder), || {
            Err::<(), _>(RegistryError::NoTool { program: "cargo" })
        });
        assert!(matches!(failed, Err(RegistryError::NoTool { .. })));
        assert_eq!((told.0.borrow().len(), count()), (0, 3));
        assert_eq!(fs::read_to_string(folder.join("b")).unwrap(), "edited");
    }

    /// Before cargo cleared the folder, and after it filled it again.
    #[test]
    fn what_a_killed_run_kept_is_told_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a-1.0.0");
        let (cache, told) = (Cache::at(dir.path()), Told(RefCell::default()));
        let registry = Registry::new(&cache, Network::OffLimits, &told);
        let mut names = names(&folder, "keeping");
        let (first, second) = (names.next().unwrap(), names.next().unwrap());
        fill(&folder, &[("b", "edited"), ("c", "c")]);
        fill(&first, &[("b", "edited")]);
        registry.settle(&folder);
        assert!(told.0.borrow().is_empty() && !first.exists());
        fill(&first, &[("b", "edited"), ("c", "c")]);
        fill(&second, &[("b", "edited twice")]);
        fs::write(folder.join("b"), "b").unwrap();
        // While it is held it is another's.
        let held = File::open(&first).unwrap();
        held.lock().unwrap();
        registry.settle(&folder);
        assert!(first.join("c").exists() && told.0.borrow().len() == 1);
        drop(held);
        registry.settle(&folder);
        registry.settle(&folder);
        let kept = ["a-1.0.0.kept", "a-1.0.0.kept-2"].map(|name| dir.path().join(name));
        let texts = kept.each_ref().map(|kept| fs::read_to_string(kept.join("b")).unwrap());
        assert_eq!(texts, ["edited twice", "edited"]);
        assert!(!kept[1].join("c").exists() && !first.exists());
        for (told, kept) in told.0.borrow().iter().zip(&kept) {
            assert!(told.ends_with(&kept.display().to_string()), "{told}");
        }
        assert_eq!(told.0.borrow().len(), 2);
    }
}
