//! Objects that are in no pack: a file each.
//!
//! libgit2 never comes to an end of one whose zlib stream is cut short. So they are read
//! here, and libgit2 is let at one, or at names that lead to any, when it was seen to end.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use git2::{Error, ObjectType, Odb, Oid, Repository};
use rustix::fs::OFlags;

use super::to_id;
use crate::snapshot::ObjectId;

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

    /// An object's kind and bytes, not hashed yet; nothing where no file is its own. One
    /// whose file is damaged comes from a pack that has it whole.
    pub(super) fn read(&self, id: Oid) -> Result<Option<(ObjectType, Vec<u8>)>, Error> {
        let first = usize::from(id.as_bytes()[0]);
        for (at, (folder, bytes)) in self.folders.iter().enumerate() {
            if !bytes[first] {
                continue;
            }
            let digits = id.to_string();
            let path = folder.join(&digits[..2]).join(&digits[2..]);
            let fault = match whole_file(&path) {
                Ok(packed) => match unpack(&packed) {
                    Some(object) => return Ok(Some(object)),
                    None => format!("{} is cut short, or no object", path.display()),
                },
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => format!("{}: {e}", path.display()),
            };
            // The packs of its own folder, then those of all that it borrows from.
            let asked_first = if at == 0 { &self.folders[..1] } else { &self.folders };
            return match packed(asked_first, id) {
                Some(object) => Ok(Some(object)),
                None => Err(Error::from_str(&fault)),
            };
        }
        Ok(None)
    }

    /// An object's kind and bytes from whichever pack has it whole: libgit2 takes what the
    /// first has that it asks.
    pub(super) fn packed(&self, id: Oid) -> Option<(ObjectType, Vec<u8>)> {
        packed(&self.folders, id)
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

/// What is in a file. A pipe of its name is none, and would be waited for.
fn whole_file(path: &Path) -> io::Result<Vec<u8>> {
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let mut file: File = OpenOptions::new().read(true).custom_flags(at_once).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The object, out of the first pack of these folders that has it whole.
fn packed(folders: &[(PathBuf, [bool; 256])], id: Oid) -> Option<(ObjectType, Vec<u8>)> {
    // libgit2 opens folders of objects: this one has a pack, and nothing loose.
    let alone = tempfile::tempdir().ok()?;
    let packs = folders.iter().flat_map(|(folder, _)| fs::read_dir(folder.join("pack"))).flatten();
    let packs = packs.filter_map(|item| Some(item.ok()?.path()));
    let packs = packs.filter(|path| path.extension().is_some_and(|ending| ending == "pack"));
    packs.enumerate().find_map(|(at, pack)| {
        let folder = alone.path().join(at.to_string());
        fs::create_dir_all(folder.join("pack")).ok()?;
        for file in [pack.with_extension("idx"), pack] {
            symlink(&file, folder.join("pack").join(file.file_name()?)).ok()?;
        }
        let objects = Odb::new().ok()?;
        objects.add_disk_alternate(folder.to_str()?).ok()?;
        let object = objects.read(id).ok()?;
        let (kind, bytes) = (object.kind(), object.data());
        let is_whole = ObjectId::of_object(kind.str(), bytes) == to_id(id);
        is_whole.then(|| (kind, bytes.to_vec()))
    })
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

/// How far git goes from a repository to one that it borrows from, and on.
const BORROWS: usize = 6;

/// A repository's folder of objects, and those that it borrows from, each once. One that
/// is not there is among them.
pub(super) fn object_folders(repository: &Repository) -> Vec<PathBuf> {
    let mut folders = vec![real(repository.commondir().join("objects"))];
    let mut from = 0;
    for _ in 0..BORROWS {
        let to = folders.len();
        for at in from..to {
            let folder = folders[at].clone();
            let borrowed = whole_file(&folder.join("info/alternates")).unwrap_or_default();
            let lines = borrowed.split(|b| *b == b'\n');
            for other in lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
                let other = OsStr::from_bytes(other);
                let other = real(folder.join(other));
                if !folders.contains(&other) {
                    folders.push(other);
                }
            }
        }
        from = to;
    }
    folders
}

/// The folder itself, however it is spelled.
fn real(folder: PathBuf) -> PathBuf {
    folder.canonicalize().unwrap_or(folder)
}
