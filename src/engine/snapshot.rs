//! A tree of files in memory: what a series is applied to.
//!
//! A [`Tree`] gives read access, whatever holds the files: a git tree, a
//! folder, a set of proven files, or memory. A [`Snapshot`] lays edits over one
//! without touching it, so that a whole series is decided before a byte is
//! written.

mod path;
mod remembered;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use sha1::{Digest, Sha1};

pub use path::{PathError, TreePath};
pub use remembered::Remembered;

/// What kind of entry a file is, as git's modes tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// `100644`
    Regular,
    /// `100755`
    Executable,
    /// `120000`: the bytes are the link's target.
    Symlink,
    /// `160000`: a commit of another repository; it has no bytes here.
    Submodule,
}

impl Mode {
    /// The mode as git writes it, in octal.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Regular => "100644",
            Mode::Executable => "100755",
            Mode::Symlink => "120000",
            Mode::Submodule => "160000",
        }
    }

    /// The mode of a file that cannot be run, of one that can; else the same.
    #[must_use]
    pub fn kind(self) -> Self {
        if self == Mode::Executable { Mode::Regular } else { self }
    }

    /// Reads git's octal text; any permission bits of a regular file other
    /// than the owner's execute bit are dropped, as git does.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_bits(u32::from_str_radix(text, 8).ok()?)
    }

    /// Reads a mode as `stat` and git trees hold it.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        match bits & 0o170_000 {
            0o100_000 | 0 if bits & 0o100 != 0 => Some(Mode::Executable),
            0o100_000 | 0 => Some(Mode::Regular),
            0o120_000 => Some(Mode::Symlink),
            0o160_000 => Some(Mode::Submodule),
            _ => None,
        }
    }
}

/// A git object id (SHA-1), always whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 20]);

/// The text is not 40 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a full object id: 40 hexadecimal digits are wanted")]
pub struct ObjectIdError;

impl ObjectId {
    /// The id of raw bytes as git stores them.
    #[must_use]
    pub fn from_raw(raw: [u8; 20]) -> Self {
        Self(raw)
    }

    /// The 20 bytes.
    #[must_use]
    pub fn as_raw(&self) -> &[u8; 20] {
        &self.0
    }

    /// The id git gives a blob with these bytes.
    #[must_use]
    pub fn of_blob(bytes: &[u8]) -> Self {
        Self::of_object("blob", bytes)
    }

    /// The id git gives an object of this kind with these bytes.
    #[must_use]
    pub fn of_object(kind: &str, bytes: &[u8]) -> Self {
        let mut hash = Sha1::new();
        hash.update(format!("{kind} {}\0", bytes.len()));
        hash.update(bytes);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A stamp has one for every file of a tree.
        let digits = self.0.map(|b| [b >> 4, b & 15].map(|d| b"0123456789abcdef"[usize::from(d)]));
        f.write_str(std::str::from_utf8(digits.as_flattened()).expect("digits are ASCII"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ObjectId {
    type Err = ObjectIdError;
    fn from_str(text: &str) -> Result<Self, ObjectIdError> {
        if text.len() != 40 {
            return Err(ObjectIdError);
        }
        let digit = |b: u8| match b {
            b'0'..=b'9' => Ok(b - b'0'),
            b'a'..=b'f' => Ok(b - b'a' + 10),
            b'A'..=b'F' => Ok(b - b'A' + 10),
            _ => Err(ObjectIdError),
        };
        let mut raw = [0; 20];
        for (byte, pair) in raw.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(raw))
    }
}

impl serde::Serialize for ObjectId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for ObjectId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A file: its mode and its bytes (a symbolic link's bytes are its target).
#[derive(Clone, PartialEq, Eq)]
pub struct File {
    /// What kind of entry it is.
    pub mode: Mode,
    /// Its bytes, shared: a snapshot is cheap to copy.
    pub bytes: Arc<[u8]>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.mode.as_str(), String::from_utf8_lossy(&self.bytes))
    }
}

impl File {
    /// A file with these bytes.
    #[must_use]
    pub fn new(mode: Mode, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { mode, bytes: bytes.into() }
    }
}

/// A file of a tree could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{path}`")]
pub struct ReadError {
    /// The file.
    pub path: TreePath,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Read access to a tree of files, from any thread. Folders exist through their
/// files alone.
pub trait Tree: Sync {
    /// The file at `path`, or nothing where none is.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError>;

    /// The mode of the file at `path`, without its bytes.
    fn mode(&self, path: &TreePath) -> Option<Mode>;

    /// The blob id of the file at `path`, where the tree knows it without reading the
    /// file.
    fn id(&self, _path: &TreePath) -> Option<ObjectId> {
        None
    }

    /// Every path, in byte order.
    fn paths(&self) -> Vec<TreePath>;

    /// The first file below a folder, or nothing where no folder has this name.
    fn inside(&self, folder: &TreePath) -> Option<TreePath> {
        let (paths, begin) = (self.paths(), format!("{folder}/"));
        let first = paths.partition_point(|p| p.as_str() < begin.as_str());
        paths.into_iter().nth(first).filter(|p| p.as_str().starts_with(&begin))
    }

    /// Every file as a listing tells it, in byte order of the paths. A tree
    /// that knows its blob ids without reading the files overrides this, so
    /// that a file already in place need not be read.
    fn entries(&self) -> Vec<Entry> {
        let entry = |path: TreePath| self.mode(&path).map(|mode| Entry { path, mode, id: None });
        self.paths().into_iter().filter_map(entry).collect()
    }
}

impl<T: Tree + ?Sized> Tree for &T {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        (**self).file(path)
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        (**self).mode(path)
    }

    fn id(&self, path: &TreePath) -> Option<ObjectId> {
        (**self).id(path)
    }

    fn paths(&self) -> Vec<TreePath> {
        (**self).paths()
    }

    fn inside(&self, folder: &TreePath) -> Option<TreePath> {
        (**self).inside(folder)
    }

    fn entries(&self) -> Vec<Entry> {
        (**self).entries()
    }
}

/// A file of a tree, as a listing tells it: without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the file stands.
    pub path: TreePath,
    /// What kind of entry it is.
    pub mode: Mode,
    /// Its blob id, where the tree knows it without reading the file.
    pub id: Option<ObjectId>,
}

/// A tree that is all in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTree(pub BTreeMap<TreePath, File>);

impl Tree for MemoryTree {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        Ok(self.0.get(path).cloned())
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.0.get(path).map(|f| f.mode)
    }

    fn paths(&self) -> Vec<TreePath> {
        self.0.keys().cloned().collect()
    }
}

/// A tree with edits laid over it; the tree below is never touched.
#[derive(Clone)]
pub struct Snapshot<'t> {
    below: &'t dyn Tree,
    edits: BTreeMap<TreePath, Option<File>>,
}

impl<'t> Snapshot<'t> {
    /// No edits yet.
    #[must_use]
    pub fn new(below: &'t dyn Tree) -> Self {
        Self { below, edits: BTreeMap::new() }
    }

    /// The tree as it was before any edit.
    #[must_use]
    pub fn unedited(&self) -> &'t dyn Tree {
        self.below
    }

    /// Puts a file in place, new or instead of the one there.
    pub fn put(&mut self, path: TreePath, file: File) {
        self.edits.insert(path, Some(file));
    }

    /// Takes a file away.
    pub fn remove(&mut self, path: TreePath) {
        self.edits.insert(path, None);
    }

    /// What was put (`Some`) or taken away (`None`), by path. An edit that put
    /// back what was there is still listed.
    #[must_use]
    pub fn edits(&self) -> &BTreeMap<TreePath, Option<File>> {
        &self.edits
    }
}

impl Tree for Snapshot<'_> {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        match self.edits.get(path) {
            Some(edit) => Ok(edit.clone()),
            None => self.below.file(path),
        }
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        match self.edits.get(path) {
            Some(edit) => edit.as_ref().map(|f| f.mode),
            None => self.below.mode(path),
        }
    }

    fn id(&self, path: &TreePath) -> Option<ObjectId> {
        let is_edited = self.edits.contains_key(path);
        if is_edited { None } else { self.below.id(path) }
    }

    fn paths(&self) -> Vec<TreePath> {
        let mut paths = self.below.paths();
        paths.retain(|p| !self.edits.contains_key(p));
        paths.extend(self.edits.iter().filter(|(_, f)| f.is_some()).map(|(p, _)| p.clone()));
        paths.sort();
        paths
    }

    fn inside(&self, folder: &TreePath) -> Option<TreePath> {
        let begin = format!("{folder}/");
        let within = |p: &TreePath| p.as_str().starts_with(&begin);
        let put = self.edits.iter().find(|(path, file)| file.is_some() && within(path));
        let put = put.map(|(path, _)| path.clone());
        let mut first = self.below.inside(folder);
        if first.as_ref().is_some_and(|p| self.edits.contains_key(p)) {
            let kept = |p: &TreePath| within(p) && !self.edits.contains_key(p);
            first = self.below.paths().into_iter().find(kept);
        }
        put.into_iter().chain(first).min()
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = self.below.entries();
        entries.retain(|e| !self.edits.contains_key(&e.path));
        entries.extend(self.edits.iter().filter_map(|(path, file)| {
            let mode = file.as_ref()?.mode;
            Some(Entry { path: path.clone(), mode, id: None })
        }));
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_id_is_gits() {
        // `printf 'hello\n' | git hash-object --stdin`
        assert_eq!(
            ObjectId::of_blob(b"hello\n").to_string(),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
    }

    #[test]
    fn a_short_id_is_no_id() {
        assert!("9a795735".parse::<ObjectId>().is_err());
    }
}
