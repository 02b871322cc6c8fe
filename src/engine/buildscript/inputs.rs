//! The files of a laid tree that MLX's build reads, and their copy in the
//! build folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use super::BuildError;
use crate::snapshot::{Mode, Tree, TreePath};

/// What MLX's own CMake files read with tests, examples and Python off. Should
/// a later MLX want more, its build fails and names the file.
const PARTS: [&str; 4] = ["CMakeLists.txt", "cmake", "mlx", "mlx.pc.in"];

/// The bytes that MLX is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    files: BTreeMap<PathBuf, Vec<u8>>,
    digest: String,
}

/// What a staging changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    /// Files written, relative to the tree.
    pub written: Vec<PathBuf>,
    /// Files taken away.
    pub removed: Vec<PathBuf>,
}

impl Inputs {
    /// Reads the files of the laid tree at `folder`.
    ///
    /// # Errors
    /// There is no `CMakeLists.txt`, or a file cannot be read.
    pub fn read(folder: &Path) -> Result<Self, BuildError> {
        if !folder.join("CMakeLists.txt").is_file() {
            return Err(BuildError::NoTree {
                why: format!("`{}` holds no CMakeLists.txt", folder.display()),
                remedies: vec!["name the root folder of an MLX tree".into()],
            });
        }
        let mut files = BTreeMap::new();
        for part in PARTS.map(|p| folder.join(p)).iter().filter(|p| p.exists()) {
            for entry in WalkDir::new(part).follow_links(true) {
                let entry = entry.map_err(|e| BuildError::Io {
                    doing: "list",
                    path: e.path().unwrap_or(part).to_path_buf(),
                    source: e.into(),
                })?;
                if entry.file_type().is_file() {
                    let bytes =
                        fs::read(entry.path()).map_err(BuildError::io("read", entry.path()))?;
                    let name = entry.path().strip_prefix(folder).expect("the walk began there");
                    files.insert(name.to_path_buf(), bytes);
                }
            }
        }
        let digest = digest(&files);
        Ok(Self { files, digest })
    }

    /// Takes the files of a tree that is not on the disk.
    ///
    /// # Errors
    /// A file cannot be read, or is a link.
    pub fn of_tree(tree: &dyn Tree) -> Result<Self, BuildError> {
        let part =
            |path: &TreePath| path.as_str().split('/').next().is_some_and(|p| PARTS.contains(&p));
        let failed = |why: String| BuildError::NoTree { why, remedies: vec![] };
        let mut files = BTreeMap::new();
        for path in tree.paths().into_iter().filter(part) {
            let file = tree.file(&path).map_err(|e| failed(e.to_string()))?;
            match file {
                Some(file) if matches!(file.mode, Mode::Regular | Mode::Executable) => {
                    files.insert(PathBuf::from(path.as_str()), file.bytes.to_vec());
                }
                _ => return Err(failed(format!("`{path}` is no file that could be compiled"))),
            }
        }
        let digest = digest(&files);
        Ok(Self { files, digest })
    }

    /// The SHA-256 of names and bytes, in hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The parts of the tree at `folder` that a change in must build MLX again.
    /// A folder stands for every file below it, also one that is new.
    #[must_use]
    pub fn parts(folder: &Path) -> Vec<PathBuf> {
        PARTS.map(|p| folder.join(p)).into_iter().filter(|p| p.exists()).collect()
    }

    /// Brings the copy at `to` into step: writes what differs and takes away
    /// what is not here. What is the same keeps its time, so that a build
    /// leaves it alone.
    ///
    /// # Errors
    /// The copy cannot be read or written.
    pub fn stage(&self, to: &Path) -> Result<Staged, BuildError> {
        let mut staged = Staged::default();
        for (name, bytes) in &self.files {
            let path = to.join(name);
            if fs::read(&path).is_ok_and(|there| there == *bytes) {
                continue;
            }
            let folder = path.parent().expect("it was joined to a folder");
            fs::create_dir_all(folder).map_err(BuildError::io("make", folder))?;
            fs::write(&path, bytes).map_err(BuildError::io("write", &path))?;
            staged.written.push(name.clone());
        }
        for entry in WalkDir::new(to) {
            let Ok(entry) = entry else { continue };
            let name = entry.path().strip_prefix(to).expect("the walk began there");
            if !entry.file_type().is_dir() && !self.files.contains_key(name) {
                fs::remove_file(entry.path()).map_err(BuildError::io("remove", entry.path()))?;
                staged.removed.push(name.to_path_buf());
            }
        }
        Ok(staged)
    }

    /// Copies the headers, and nothing else, to `to`.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn copy_headers(&self, to: &Path) -> Result<(), BuildError> {
        let mut made = BTreeSet::new();
        for (name, bytes) in self.files.iter().filter(|(n, _)| n.extension() == Some("h".as_ref()))
        {
            let path = to.join(name);
            let folder = path.parent().expect("it was joined to a folder").to_path_buf();
            if made.insert(folder.clone()) {
                fs::create_dir_all(&folder).map_err(BuildError::io("make", &folder))?;
            }
            fs::write(&path, bytes).map_err(BuildError::io("write", &path))?;
        }
        Ok(())
    }

    /// Copies every file below `from` to the same place below `to`.
    ///
    /// # Errors
    /// One cannot be read or written.
    pub(super) fn copy_folder(from: &Path, to: &Path) -> Result<(), BuildError> {
        for entry in WalkDir::new(from).follow_links(true) {
            let failed = |e: walkdir::Error| BuildError::Io {
                doing: "list",
                path: from.to_path_buf(),
                source: e.into(),
            };
            let entry = entry.map_err(failed)?;
            let place = to.join(entry.path().strip_prefix(from).expect("the walk began there"));
            if entry.file_type().is_dir() {
                fs::create_dir_all(&place).map_err(BuildError::io("make", &place))?;
            } else {
                fs::copy(entry.path(), &place).map_err(BuildError::io("copy", entry.path()))?;
            }
        }
        Ok(())
    }
}

/// The SHA-256 of names and bytes.
fn digest(files: &BTreeMap<PathBuf, Vec<u8>>) -> String {
    let mut hash = Sha256::new();
    files.iter().for_each(|(name, bytes)| add_file(&mut hash, name, bytes));
    hex(&hash.finalize())
}

/// Adds a file to a hash of many. Name and bytes are led by their lengths, so
/// that no two sets of files read the same.
pub(super) fn add_file(hash: &mut Sha256, name: &Path, bytes: &[u8]) {
    for part in [name.as_os_str().as_encoded_bytes(), bytes] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Writes `bytes` to `path` unless they are there, so that a build that goes by
/// times sees only real changes.
///
/// # Errors
/// It cannot be written.
pub(super) fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    match fs::read(path) {
        Ok(there) if there == bytes => Ok(()),
        Err(e) if e.kind() != ErrorKind::NotFound => Err(BuildError::io("read", path)(e)),
        _ => fs::write(path, bytes).map_err(BuildError::io("write", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{File, MemoryTree};

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn only_what_differs_is_staged() {
        let files =
            [("CMakeLists.txt", "p"), ("mlx/a.cpp", "a"), ("mlx/b.cpp", "b"), ("docs/x", "x")];
        let from = tree(&files);
        let to = tempfile::tempdir().unwrap();
        let first = Inputs::read(from.path()).unwrap();
        assert_eq!(first.stage(to.path()).unwrap().written.len(), 3);
        assert_eq!(first.stage(to.path()).unwrap(), Staged::default());

        let time = |n: &str| fs::metadata(to.path().join(n)).unwrap().modified().unwrap();
        let kept = time("mlx/a.cpp");
        fs::write(from.path().join("mlx/b.cpp"), "B").unwrap();
        fs::remove_file(from.path().join("mlx/a.cpp")).unwrap();
        fs::write(from.path().join("mlx/c.cpp"), "c").unwrap();
        fs::write(from.path().join("mlx/a.cpp"), "a").unwrap();
        let second = Inputs::read(from.path()).unwrap();
        assert_ne!(first.digest(), second.digest());
        let staged = second.stage(to.path()).unwrap();
        assert_eq!(staged.written, [Path::new("mlx/b.cpp"), Path::new("mlx/c.cpp")]);
        assert_eq!(time("mlx/a.cpp"), kept);

        let removed = first.stage(to.path()).unwrap().removed;
        assert_eq!(removed, [Path::new("mlx/c.cpp")]);
    }

    #[test]
    fn documents_are_no_input() {
        let from = tree(&[("CMakeLists.txt", "p"), ("docs/x", "x")]);
        let before = Inputs::read(from.path()).unwrap();
        fs::write(from.path().join("docs/x"), "y").unwrap();
        assert_eq!(before, Inputs::read(from.path()).unwrap());
    }

    #[test]
    fn a_tree_in_memory_is_the_folder_it_would_be() {
        let files = [("CMakeLists.txt", "p"), ("mlx/a.cpp", "a"), ("docs/x", "x")];
        let file = |text: &str| File::new(Mode::Regular, text.as_bytes());
        let entry = |(n, t): &(&str, &str)| (TreePath::new(n).unwrap(), file(t));
        let memory = MemoryTree(files.iter().map(entry).collect());
        let folder = Inputs::read(tree(&files).path()).unwrap();
        assert_eq!(Inputs::of_tree(&memory).unwrap(), folder);
    }

    #[test]
    fn a_boundary_moved_between_files_is_another_digest() {
        let one = tree(&[("CMakeLists.txt", "p"), ("mlx/a", "xy"), ("mlx/b", "")]);
        let two = tree(&[("CMakeLists.txt", "p"), ("mlx/a", "x"), ("mlx/b", "y")]);
        let digest = |t: &tempfile::TempDir| Inputs::read(t.path()).unwrap().digest().to_owned();
        assert_ne!(digest(&one), digest(&two));
    }

    #[test]
    fn a_folder_without_cmake_lists_is_no_tree() {
        let dir = tempfile::tempdir().unwrap();
        let error = Inputs::read(dir.path()).unwrap_err();
        assert!(error.to_string().contains("holds no CMakeLists.txt"), "{error}");
    }
}
