//! The listing of a pin: what every file of the commit is.
//!
//! Text, one file a line, `mode blob path`, sorted as git sorts. The root tree
//! id can be worked out from it alone, so a listing that hashes to the pin's
//! tree id is the commit's, wherever it came from, and a file whose blob id is
//! the listing's is the commit's file, wherever *it* came from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::snapshot::{Entry, Mode, ObjectId, ReadError, Tree, TreePath};
use crate::stored::Place;

/// What one file of the commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Listed {
    /// Its mode.
    pub mode: Mode,
    /// The id of its blob.
    pub id: ObjectId,
}

/// Every file of a commit, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(BTreeMap<TreePath, Listed>);

/// Why a text is no listing, or not the one that is wanted.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// The file cannot be read.
    #[error("{}: cannot be read", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A line is not `mode blob path`.
    #[error("{place}: {what}; a line is `mode blob path`, as `100644 <40 digits> mlx/ops.cpp`")]
    Line {
        /// Where.
        place: Place,
        /// What is wrong with the line.
        what: String,
    },
    /// The lines are not sorted, or a path stands twice.
    #[error(
        "{place}: `{path}` does not come after the line above it; git's order is that of the bytes of the whole path"
    )]
    Order {
        /// Where.
        place: Place,
        /// The path that is out of order.
        path: TreePath,
    },
    /// A path is a file and, by another line, a folder.
    #[error("{place}: `{path}` is a file here and a folder by another line")]
    Clash {
        /// Where.
        place: Place,
        /// The path.
        path: TreePath,
    },
    /// The listing hashes to another tree.
    #[error("{}: hashes to tree {found}, and the pin's tree is {wanted}; the file was edited or belongs to another commit", file.display())]
    WrongTree {
        /// The file.
        file: PathBuf,
        /// The tree id worked out from the listing.
        found: ObjectId,
        /// The tree id of the pin.
        wanted: ObjectId,
    },
}

/// In bytes, as Linux has it. It bounds how deep folders nest.
const LONGEST_PATH: usize = 4096;

impl Listing {
    /// The listing of a tree. A file whose blob id the tree does not know is
    /// read and hashed.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of(tree: &dyn Tree) -> Result<Self, ReadError> {
        let mut files = BTreeMap::new();
        for Entry { path, mode, id } in tree.entries() {
            let id = match id {
                Some(id) => id,
                None => match tree.file(&path)? {
                    Some(file) => ObjectId::of_blob(&file.bytes),
                    None => continue,
                },
            };
            files.insert(path, Listed { mode, id });
        }
        Ok(Self(files))
    }

    /// Reads a listing and proves it: it must hash to `tree`.
    ///
    /// # Errors
    /// The file cannot be read, is no listing, or is that of another tree.
    pub fn load(file: &Path, tree: ObjectId) -> Result<Self, ListingError> {
        let bytes = std::fs::read(file)
            .map_err(|source| ListingError::Read { file: file.to_path_buf(), source })?;
        let listing = Self::parse(file, &bytes)?;
        match listing.tree_id() {
            found if found == tree => Ok(listing),
            found => Err(ListingError::WrongTree { file: file.to_path_buf(), found, wanted: tree }),
        }
    }

    /// Reads a listing from its bytes; `file` names it in errors.
    ///
    /// # Errors
    /// A line has another form, is out of order, or clashes with another.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Self, ListingError> {
        let mut files = BTreeMap::new();
        let mut last: Option<TreePath> = None;
        for (at, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
            let place = || Place { file: file.to_path_buf(), line: at + 1 };
            let fault = |what: &str| ListingError::Line { place: place(), what: what.to_owned() };
            let line = line.strip_suffix(b"\n").ok_or_else(|| fault("the line has no end"))?;
            let line = std::str::from_utf8(line).map_err(|_| fault("not UTF-8"))?;
            let mut words = line.splitn(3, ' ');
            let (Some(mode), Some(id), Some(path)) = (words.next(), words.next(), words.next())
            else {
                return Err(fault("fewer than three words"));
            };
            let mode = Mode::parse(mode)
                .filter(|m| m.as_str() == mode)
                .ok_or_else(|| fault("no mode of git's"))?;
            let id = id.parse().map_err(|_| fault("the blob id is not 40 hexadecimal digits"))?;
            let path = TreePath::new(path).map_err(|e| fault(&e.to_string()))?;
            if path.as_str().len() > LONGEST_PATH {
                return Err(fault("a path longer than any system takes"));
            }
            if last.as_ref().is_some_and(|last| *last >= path) {
                return Err(ListingError::Order { place: place(), path });
            }
            // A folder's files come after a file of its name, if not at once.
            if let Some(path) = path.parents().find(|p| files.contains_key(p)) {
                return Err(ListingError::Clash { place: place(), path });
            }
            files.insert(path.clone(), Listed { mode, id });
            last = Some(path);
        }
        Ok(Self(files))
    }

    /// The text of the listing.
    #[must_use]
    pub fn to_text(&self) -> String {
        let line = |(path, file): (&TreePath, &Listed)| {
            format!("{} {} {path}\n", file.mode.as_str(), file.id)
        };
        self.0.iter().map(line).collect()
    }

    /// How many of the listing's paths are among these.
    #[must_use]
    pub fn count_among(&self, paths: &[TreePath]) -> usize {
        paths.iter().filter(|path| self.0.contains_key(*path)).count()
    }

    /// The folder below which at least half of the listing's paths are among
    /// these, the one with most of them; empty for the root.
    #[must_use]
    pub fn root_among<'p>(&self, paths: &'p [TreePath]) -> Option<&'p str> {
        let known: BTreeSet<&str> = self.0.keys().map(TreePath::as_str).collect();
        let mut below: BTreeMap<&str, usize> = BTreeMap::new();
        for path in paths {
            let path = path.as_str();
            let ends = path.match_indices('/').map(|(at, _)| (&path[..at], &path[at + 1..]));
            for (folder, rest) in ends.chain([("", path)]) {
                if known.contains(rest) {
                    *below.entry(folder).or_default() += 1;
                }
            }
        }
        // Of equals the outermost, which comes first.
        let (folder, have) = below.into_iter().rev().max_by_key(|(_, have)| *have)?;
        (2 * have >= self.len()).then_some(folder)
    }

    /// The file at `path`.
    #[must_use]
    pub fn get(&self, path: &TreePath) -> Option<Listed> {
        self.0.get(path).copied()
    }

    /// Every file, in git's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&TreePath, Listed)> {
        self.0.iter().map(|(path, file)| (path, *file))
    }

    /// The number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it lists nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The id of the root tree that git makes of these files.
    #[must_use]
    pub fn tree_id(&self) -> ObjectId {
        let files: Vec<(&str, Listed)> = self.iter().map(|(p, f)| (p.as_str(), f)).collect();
        tree_id(&files)
    }
}

impl FromIterator<(TreePath, Listed)> for Listing {
    /// The files must not clash: no path may be a file and a folder.
    fn from_iter<I: IntoIterator<Item = (TreePath, Listed)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

/// The tree of sorted paths. In the byte order of whole paths a folder's files
/// stand together, and folders among files as git sorts them: by their name
/// with a `/` behind it.
fn tree_id(files: &[(&str, Listed)]) -> ObjectId {
    let mut object = Vec::new();
    let mut rest = files;
    while let Some((path, file)) = rest.first() {
        let (name, mode, id, taken) = match path.split_once('/') {
            None => (*path, file.mode.as_str(), file.id, 1),
            Some((folder, _)) => {
                let inner: Vec<(&str, Listed)> = rest
                    .iter()
                    .map_while(|(path, file)| {
                        Some((path.strip_prefix(folder)?.strip_prefix('/')?, *file))
                    })
                    .collect();
                (folder, "40000", tree_id(&inner), inner.len())
            }
        };
        object.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        object.extend_from_slice(id.as_raw());
        rest = &rest[taken..];
    }
    ObjectId::of_object("tree", &object)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = "ce013625030ba8dba906f756967f9e9ca394464a";

    #[test]
    fn its_root_is_found_in_a_larger_tree() {
        let paths = |names: &[&str]| -> Vec<TreePath> {
            names.iter().map(|name| TreePath::new(name).unwrap()).collect()
        };
        let listed = Listed { mode: Mode::Regular, id: HELLO.parse().unwrap() };
        let listing: Listing =
            paths(&["a", "d/b", "d/c"]).into_iter().map(|path| (path, listed)).collect();
        let whole = paths(&["Cargo.toml", "v/m/a", "v/m/d/b", "v/m/d/c", "v/o/d/b"]);
        assert_eq!(listing.count_among(&whole), 0);
        let root = |paths: &[TreePath]| listing.root_among(paths).map(|f| f.to_string());
        assert_eq!(root(&whole).as_deref(), Some("v/m"));
        // Its own root is told too, and less than half is none.
        assert_eq!(root(&paths(&["a", "d/b", "x"])).as_deref(), Some(""));
        assert_eq!(root(&paths(&["v/o/d/b", "d"])), None);
        assert_eq!(root(&[]), None);
    }

    fn parse(text: &str) -> Result<Listing, ListingError> {
        Listing::parse(Path::new("listing"), text.as_bytes())
    }

    #[test]
    fn the_tree_id_is_gits() {
        // `git write-tree` over these files, each `hello\n`; the folder `a`
        // sorts between `a.txt` and `a0`, as git has it.
        let text = format!(
            "100755 {HELLO} a.txt\n100644 {HELLO} a/b/c d\n100644 {HELLO} a/é\n120000 {HELLO} a0\n"
        );
        let listing = parse(&text).unwrap();
        assert_eq!(listing.to_text(), text);
        assert_eq!(listing.tree_id().to_string(), "6c26b7b1324e65124f54886d3421d4fcda42bb28");
        assert_eq!(
            Listing::default().tree_id().to_string(),
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        );
    }

    #[test]
    fn each_fault_has_its_line() {
        let good = format!("100644 {HELLO} b\n");
        for (line, what) in [
            (format!("100644 {HELLO} c"), "listing:2: the line has no end"),
            ("100644 ce01 c\n".into(), "listing:2: the blob id is not 40"),
            (format!("100600 {HELLO} c\n"), "listing:2: no mode"),
            (format!("100644 {HELLO}\n"), "listing:2: fewer than three words"),
            (format!("100644 {HELLO} ../c\n"), "listing:2: a part of the name"),
            (format!("100644 {HELLO} a\n"), "listing:2: `a` does not come after"),
            (format!("100644 {HELLO} b\n"), "listing:2: `b` does not come after"),
            (format!("100644 {HELLO} b.c\n100644 {HELLO} b/c\n"), "listing:3: `b` is a file"),
        ] {
            let error = parse(&format!("{good}{line}")).unwrap_err().to_string();
            assert!(error.starts_with(what), "{line:?}: {error}");
        }
    }

    #[test]
    fn a_listing_of_another_tree_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("listing");
        std::fs::write(&file, format!("100644 {HELLO} a\n")).unwrap();
        let tree = parse(&format!("100644 {HELLO} a\n")).unwrap().tree_id();
        assert!(Listing::load(&file, tree).is_ok());
        let other = Listing::load(&file, ObjectId::of_blob(b"")).unwrap_err();
        assert!(matches!(other, ListingError::WrongTree { found, .. } if found == tree));
    }
}
