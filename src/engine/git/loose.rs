//! Objects that are in no pack: a file each.
//!
//! libgit2 never comes to an end of one whose zlib stream is cut short. So they are read
//! here, and libgit2 is let at one, or at names that lead to any, when it was seen to end.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use flate2::read::ZlibDecoder;
use git2::{Error, ObjectType, Oid, Repository};

/// The loose objects of a repository. Their folders are those that were there when it
/// was opened: git gives an object its name when the file is whole.
pub(super) struct Loose {
    /// Each folder of objects, and which first bytes of ids have a folder in it.
    folders: Vec<(PathBuf, [bool; 256])>,
}

impl Loose {
    pub(super) fn of(repository: &Repository) -> Self {
        let with_bytes = |folder: PathBuf| {
            let mut bytes = [false; 256];
            for item in fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
                let name = item.file_name();
                let digits = name.to_str().filter(|name| name.len() == 2);
                if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    bytes[usize::from(byte)] = true;
                }
            }
            (folder, bytes)
        };
        Self { folders: object_folders(repository).into_iter().map(with_bytes).collect() }
    }

    /// An object's kind and bytes, not hashed yet; nothing where no file is its own.
    pub(super) fn read(&self, id: Oid) -> Result<Option<(ObjectType, Vec<u8>)>, Error> {
        let first = usize::from(id.as_bytes()[0]);
        for (folder, _) in self.folders.iter().filter(|(_, bytes)| bytes[first]) {
            let digits = id.to_string();
            let path = folder.join(&digits[..2]).join(&digits[2..]);
            match fs::read(&path) {
                Ok(packed) => {
                    let broken = || {
                        Error::from_str(&format!("{} is cut short, or no object", path.display()))
                    };
                    return unpack(&packed).map(Some).ok_or_else(broken);
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::from_str(&format!("{}: {e}", path.display()))),
            }
        }
        Ok(None)
    }

    /// Reads all of them, before libgit2 goes from one to the next by itself.
    pub(super) fn read_all(&self) -> Result<(), Error> {
        for (folder, bytes) in &self.folders {
            for byte in (0..bytes.len()).filter(|byte| bytes[*byte]) {
                let first = format!("{byte:02x}");
                let items = fs::read_dir(folder.join(&first)).into_iter().flatten();
                for item in items.filter_map(Result::ok) {
                    let id = item.file_name().to_str().map(|rest| format!("{first}{rest}"));
                    let id = id.filter(|id| id.len() == 40).and_then(|id| Oid::from_str(&id).ok());
                    id.map(|id| self.read(id)).transpose()?;
                }
            }
        }
        Ok(())
    }
}

/// `kind length NUL`, and so many bytes.
fn unpack(packed: &[u8]) -> Option<(ObjectType, Vec<u8>)> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut bytes).ok()?;
    let end = bytes.iter().position(|b| *b == 0)?;
    let (kind, length) = std::str::from_utf8(&bytes[..end]).ok()?.split_once(' ')?;
    let (kind, length) = (ObjectType::from_str(kind)?, length.parse::<usize>().ok()?);
    bytes.drain(..=end);
    (bytes.len() == length).then_some((kind, bytes))
}

/// A repository's folder of objects, and those that it borrows from.
pub(super) fn object_folders(repository: &Repository) -> Vec<PathBuf> {
    let mut folders = vec![repository.commondir().join("objects")];
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        let borrowed = fs::read_to_string(folder.join("info/alternates")).unwrap_or_default();
        for other in borrowed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let other = folder.join(other);
            if !folders.contains(&other) {
                folders.push(other);
            }
        }
        at += 1;
    }
    folders
}
