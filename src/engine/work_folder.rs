//! A folder that the overlay works in, beside or inside what is the user's:
//! whether it is the overlay's own.
//!
//! Its name is fixed, so that the next run finds what a killed one left, and a
//! user may have a folder of that name. So whoever works in one signs the
//! lock first, and the lock goes last: a folder that holds something and no
//! signed lock was not made here, and nothing in it is touched.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The lock's name in the folder.
pub(crate) const LOCK: &str = "lock";

const SIGNATURE: &str = "mlx-overlay, process ";

/// Whose a work folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It is not there, or holds nothing.
    Nobody,
    /// The overlay's: a lock that it signed is there, or one of its marks.
    Overlay,
    /// Somebody else's: it holds this.
    Other(String),
}

/// Says whose the folder is. `marks` are the names of files that stand there
/// for as long as something is under way.
///
/// # Errors
/// The folder cannot be listed, or its lock not be read.
pub(crate) fn owner(folder: &Path, marks: &[&str]) -> io::Result<Owner> {
    loop {
        let mut names = Vec::new();
        match fs::read_dir(folder) {
            Ok(entries) => {
                for entry in entries {
                    names.push(entry?.file_name());
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Owner::Nobody),
            Err(e) => return Err(e),
        }
        names.sort();
        let lock = match names.iter().any(|name| name == LOCK) {
            false => String::new(),
            true => match text(folder)? {
                Some(text) => text,
                // The last holder cleared the folder since it was listed.
                None => continue,
            },
        };
        names.retain(|name| name != LOCK);
        let marked = names.iter().any(|name| marks.iter().any(|mark| name == mark));
        return Ok(match names.first() {
            _ if lock.starts_with(SIGNATURE) => Owner::Overlay,
            _ if !lock.is_empty() => Owner::Other(LOCK.into()),
            _ if marked => Owner::Overlay,
            Some(first) => Owner::Other(first.to_string_lossy().into_owned()),
            // An empty lock: killed, or at work, between making and signing it.
            None => Owner::Nobody,
        });
    }
}

/// The beginning of the lock; nothing where it is gone.
fn text(folder: &Path) -> io::Result<Option<String>> {
    let path = folder.join(LOCK);
    match fs::symlink_metadata(&path) {
        // What is no file is no lock of ours, and a pipe would never end.
        Ok(meta) if !meta.is_file() => return Ok(Some("not a file".into())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let mut bytes = Vec::new();
    match open(&path, OpenOptions::new().read(true)) {
        Ok(file) => file.take(64).read_to_end(&mut bytes)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(path)
}

/// Opens the lock of a folder that is not somebody else's, and makes it where
/// there is none.
///
/// # Errors
/// The file system refuses.
pub(crate) fn open_lock(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    open(&folder.join(LOCK), options.read(true).write(true).create(true).truncate(false))
}

/// Whether an opened lock is still the folder's: its last holder may have taken it away
/// in between.
pub(crate) fn is_lock_of(folder: &Path, lock: &File) -> bool {
    match (lock.metadata(), fs::symlink_metadata(folder.join(LOCK))) {
        (Ok(held), Ok(there)) => held.dev() == there.dev() && held.ino() == there.ino(),
        _ => false,
    }
}

/// Writes into the lock whose it is, over the last holder's words and in one
/// write: it never stands there unsigned again.
///
/// # Errors
/// The file system refuses.
pub(crate) fn sign(lock: &File) -> io::Result<()> {
    // Of one length, so that nothing of a longer one is left.
    let text = format!("{SIGNATURE}{:<10}\n", std::process::id());
    lock.write_all_at(text.as_bytes(), 0)
}

/// The process that signed the lock last, where it is known.
pub(crate) fn holder(folder: &Path) -> Option<u32> {
    text(folder).ok()??.strip_prefix(SIGNATURE)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_signed_lock_or_a_mark_makes_a_folder_ours() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("work");
        let whose = || owner(&folder, &["state.json"]).unwrap();
        assert_eq!(whose(), Owner::Nobody);
        fs::create_dir(&folder).unwrap();
        assert_eq!(whose(), Owner::Nobody);
        let lock = open_lock(&folder).unwrap();
        assert_eq!(whose(), Owner::Nobody, "killed before it signed");
        fs::write(folder.join("thesis.tex"), "mine").unwrap();
        assert_eq!(whose(), Owner::Other("thesis.tex".into()), "an empty lock says nothing");
        sign(&lock).unwrap();
        assert_eq!(whose(), Owner::Overlay);
        assert_eq!(holder(&folder), Some(std::process::id()));
        for text in ["123\n", "mine"] {
            fs::write(folder.join(LOCK), text).unwrap();
            assert_eq!(whose(), Owner::Other(LOCK.into()));
        }
        fs::remove_file(folder.join(LOCK)).unwrap();
        assert_eq!(whose(), Owner::Other("thesis.tex".into()));
        fs::write(folder.join("state.json"), "{").unwrap();
        assert_eq!(whose(), Owner::Overlay);
        // A lock that is a link, or a folder, is nobody's of ours.
        symlink(folder.join("thesis.tex"), folder.join(LOCK)).unwrap();
        assert_eq!(whose(), Owner::Other(LOCK.into()));
        assert!(open_lock(&folder).is_err());
        assert_eq!(fs::read(folder.join("thesis.tex")).unwrap(), b"mine");
    }
}
