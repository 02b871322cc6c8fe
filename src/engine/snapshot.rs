//! A tree of files in memory: what a series is applied to.
//!
//! A [`Tree`] gives read access, whatever holds the files: a git tree, a
//! folder, a set of proven files, or memory. A [`Snapshot`] lays edits over one
//! without touching it, so that a whole series is decided before a byte is
//! written.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use sha1::{Digest, Sha1};

use crate::reserved::is_git_folder;

/// The path of a file inside a tree: relative, `/` between its parts, UTF-8.
///
/// Made only by [`TreePath::new`], which refuses what could leave the tree or
/// reach into a repository's own folder; so code behind it may join it to a
/// root without looking again. (A symbolic link inside the tree is another
/// matter: whoever writes must not follow one.)
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Box<str>);

/// Why a name is no [`TreePath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The name is empty.
    #[error("the name is empty")]
    Empty,
    /// The name is not UTF-8; the tool does not guess an encoding.
    #[error("the name is not UTF-8")]
    Encoding,
    /// The name is absolute or has a drive letter.
    #[error("the name is absolute")]
    Absolute,
    /// A part of the name is empty, `.` or `..`.
    #[error("a part of the name is empty, `.` or `..`")]
    Escape,
    /// A part of the name is `.git`, or one that a file system takes for it.
    #[error("a part of the name is `.git`, or taken for it by some file system")]
    GitFolder,
    /// The name holds a NUL byte or a line break.
    #[error("the name holds a NUL byte or a line break")]
    Control,
}

impl TreePath {
    /// Checks `name` and owns it.
    ///
    /// # Errors
    /// Says which rule of a tree path `name` breaks.
    pub fn new(name: &str) -> Result<Self, PathError> {
        if name.is_empty() {
            return Err(PathError::Empty);
        }
        if name.bytes().any(|b| matches!(b, 0 | b'\n' | b'\r')) {
            return Err(PathError::Control);
        }
        let drive =
            name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
        if name.starts_with('/') || name.starts_with('\\') || drive {
            return Err(PathError::Absolute);
        }
        for part in name.split(['/', '\\']) {
            if matches!(part, "" | "." | "..") {
                return Err(PathError::Escape);
            }
            if is_git_folder(part) {
                return Err(PathError::GitFolder);
            }
        }
        Ok(Self(name.into()))
    }

    /// As [`TreePath::new`], from bytes as patches and trees hold them.
    ///
    /// # Errors
    /// Besides those of [`TreePath::new`], [`PathError::Encoding`].
    pub fn from_bytes(name: &[u8]) -> Result<Self, PathError> {
        Self::new(std::str::from_utf8(name).map_err(|_| PathError::Encoding)?)
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders that hold the path, the outermost first.
    pub fn parents(&self) -> impl Iterator<Item = TreePath> {
        self.0.match_indices('/').map(|(at, _)| TreePath(self.0[..at].into()))
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for TreePath {
    type Err = PathError;
    fn from_str(name: &str) -> Result<Self, PathError> {
        Self::new(name)
    }
}

impl serde::Serialize for TreePath {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for TreePath {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let name = String::deserialize(d)?;
        Self::new(&name).map_err(|e| serde::de::Error::custom(format!("`{name}`: {e}")))
    }
}

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
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
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

/// A tree whose files are read once: for one that is looked at many times.
pub struct Remembered<T> {
    below: T,
    files: Mutex<HashMap<TreePath, Option<File>>>,
}

impl<T: Tree> Remembered<T> {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(below: T) -> Self {
        Self { below, files: Mutex::default() }
    }

    /// Reads the files one by one while `work` goes on, until it is done: what
    /// is written afterwards need not be waited for. What cannot be read is told
    /// to whoever asks for it.
    pub fn reading_ahead<R>(&self, work: impl FnOnce() -> R) -> R {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let wanted = |_: &TreePath| !done.load(Ordering::Relaxed);
                for path in self.below.paths().into_iter().take_while(wanted) {
                    let _ = self.file(&path);
                }
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            result
        })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TreePath, Option<File>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Tree> Tree for Remembered<T> {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        if let Some(known) = self.known().get(path) {
            return Ok(known.clone());
        }
        let file = self.below.file(path)?;
        self.known().insert(path.clone(), file.clone());
        Ok(file)
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.below.mode(path)
    }

    fn paths(&self) -> Vec<TreePath> {
        self.below.paths()
    }

    fn inside(&self, folder: &TreePath) -> Option<TreePath> {
        self.below.inside(folder)
    }

    fn entries(&self) -> Vec<Entry> {
        self.below.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_tree_are_refused() {
        for (name, why) in [
            ("", PathError::Empty),
            ("/etc/passwd", PathError::Absolute),
            ("c:/x", PathError::Absolute),
            ("\\\\host\\x", PathError::Absolute),
            ("a/../b", PathError::Escape),
            ("a\\..\\b", PathError::Escape),
            ("a//b", PathError::Escape),
            ("./a", PathError::Escape),
            ("a/.GIT/config", PathError::GitFolder),
            ("git~1/hooks/x", PathError::GitFolder),
            ("a\\.git ", PathError::GitFolder),
            ("a\nb", PathError::Control),
        ] {
            assert_eq!(TreePath::new(name), Err(why), "{name:?}");
        }
        assert_eq!(TreePath::from_bytes(b"h\xe9"), Err(PathError::Encoding));
        assert_eq!(TreePath::new("a b/hé.txt").map(|p| p.to_string()), Ok("a b/hé.txt".into()));
    }

    #[test]
    fn a_blob_id_is_gits() {
        // `printf 'hello\n' | git hash-object --stdin`
        assert_eq!(
            ObjectId::of_blob(b"hello\n").to_string(),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
    }

    #[test]
    fn a_file_is_read_once_ahead_or_asked_for() {
        struct Counting(MemoryTree, std::sync::atomic::AtomicUsize);
        impl Tree for Counting {
            fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
                self.1.fetch_add(1, Ordering::Relaxed);
                self.0.file(path)
            }
            fn mode(&self, path: &TreePath) -> Option<Mode> {
                self.0.mode(path)
            }
            fn paths(&self) -> Vec<TreePath> {
                self.0.paths()
            }
        }
        let path = |name: &str| TreePath::new(name).expect("a plain path");
        let file = |name: &str| (path(name), File::new(Mode::Regular, name.as_bytes()));
        let tree = Counting(MemoryTree([file("a"), file("b")].into()), Default::default());
        let tree = Remembered::new(tree);
        // The work is done when both are read.
        tree.reading_ahead(|| while tree.known().len() < 2 {});
        assert_eq!(tree.file(&path("b")).expect("in memory"), Some(file("b").1));
        assert_eq!(tree.below.1.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_short_id_is_no_id() {
        assert!("9a795735".parse::<ObjectId>().is_err());
    }
}
