//! A folder read as a [`Tree`].
//!
//! The folder is listed once, when it is opened; a file's bytes are read when
//! asked for. Symbolic links are entries of their own and are never followed.
//! `.git` at any depth is left out, and at the top the files that
//! [`publish`](crate::publish) keeps for itself.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::publish::{EDIT_FOLDER, STAMP};
use crate::reserved;
use crate::snapshot::{Entry, File, Mode, PathError, ReadError, Tree, TreePath};

/// Why a folder cannot be read as a tree.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The folder, or one inside it, cannot be listed.
    #[error("cannot list `{}`", path.display())]
    List {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no folder.
    #[error("`{}` is no folder", path.display())]
    NotAFolder {
        /// What was named.
        path: PathBuf,
    },
    /// A name inside that no tree can hold.
    #[error("`{}` cannot stand in a tree: {why}; rename it or move it out", path.display())]
    Name {
        /// The file, as far as it can be shown.
        path: PathBuf,
        /// Which rule it breaks.
        #[source]
        why: PathError,
    },
    /// A name that a file system may take for one that the overlay keeps for
    /// itself.
    #[error("`{}` has a name that is the overlay's own; rename it or move it out", path.display())]
    Reserved {
        /// The file.
        path: PathBuf,
    },
    /// A socket, a pipe or a device.
    #[error("`{}` is neither a file nor a link; move it out", path.display())]
    Special {
        /// The file.
        path: PathBuf,
    },
    /// An edit of this folder was broken off, so that it holds files from
    /// before and from after.
    #[error("an earlier edit of `{}` was broken off, or is going on", path.display())]
    Unfinished {
        /// The folder.
        path: PathBuf,
    },
    /// The folder where an edit would be kept is not the overlay's, or cannot be
    /// looked at.
    #[error(transparent)]
    Edit(#[from] crate::publish::PublishError),
}

/// What `stat` told of a file: enough to see later that it was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stat {
    /// What kind of entry it is.
    #[serde(with = "crate::publish::stamp::mode")]
    pub mode: Mode,
    /// Its length in bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub mtime: i64,
    /// Its inode.
    pub inode: u64,
}

impl Stat {
    /// Reads what counts; nothing for a folder and for what no tree holds.
    #[must_use]
    pub fn of(meta: &Metadata) -> Option<Self> {
        let mode = Mode::from_bits(meta.mode()).filter(|_| !meta.is_dir())?;
        let mtime = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
        Some(Self { mode, size: meta.len(), mtime, inode: meta.ino() })
    }
}

/// A folder, listed.
#[derive(Debug)]
pub struct DiskTree {
    root: PathBuf,
    files: BTreeMap<TreePath, Stat>,
}

impl DiskTree {
    /// Lists the folder at `root`. A link named as the root itself is followed:
    /// whoever names it means its folder.
    ///
    /// # Errors
    /// The folder cannot be listed whole, or holds what a tree cannot.
    pub fn open(root: &Path) -> Result<Self, DiskError> {
        let list = |source| DiskError::List { path: root.into(), source };
        if !fs::metadata(root).map_err(list)?.is_dir() {
            return Err(DiskError::NotAFolder { path: root.into() });
        }
        let root = root.canonicalize().map_err(list)?;
        if crate::publish::edit_is_unfinished(&root)? {
            return Err(DiskError::Unfinished { path: root });
        }
        Self::list(root)
    }

    /// As [`DiskTree::open`], in the middle of an edit: some files are from
    /// before it and some from after, as
    /// [`pending_edit`](crate::publish::pending_edit) tells.
    ///
    /// # Errors
    /// As [`DiskTree::open`].
    pub fn open_amid_edit(root: &Path) -> Result<Self, DiskError> {
        let list = |source| DiskError::List { path: root.into(), source };
        Self::list(root.canonicalize().map_err(list)?)
    }

    fn list(root: PathBuf) -> Result<Self, DiskError> {
        let mut files = BTreeMap::new();
        walk(&root, Skip::OursAndGit, |found| {
            let (path, meta) = found.map_err(|e| list_error(&root, e))?;
            let name = TreePath::from_bytes(path.as_os_str().as_bytes())
                .map_err(|why| DiskError::Name { path: root.join(path), why })?;
            if reserved::is_ours(&name) {
                return Err(DiskError::Reserved { path: root.join(path) });
            }
            let stat =
                Stat::of(meta).ok_or_else(|| DiskError::Special { path: root.join(path) })?;
            files.insert(name, stat);
            Ok::<_, DiskError>(())
        })?;
        Ok(Self { root, files })
    }

    /// The folder, absolute and without links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What `stat` told of the file when the folder was opened.
    #[must_use]
    pub fn stat(&self, path: &TreePath) -> Option<&Stat> {
        self.files.get(path)
    }
}

fn list_error(root: &Path, WalkError { path, source }: WalkError) -> DiskError {
    // Joined to the root, an empty path would put a slash behind it.
    let path = if path.as_os_str().is_empty() { root.into() } else { root.join(path) };
    DiskError::List { path, source }
}

/// What a [`walk`] passes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// The stamp of a published tree.
    Stamp,
    /// All that [`publish`](crate::publish) keeps for itself at the top, and
    /// `.git` at any depth.
    OursAndGit,
}

/// A folder or a file that a walk could not look at.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub(crate) struct WalkError {
    /// It, below the root; empty for the root itself.
    pub path: PathBuf,
    pub source: io::Error,
}

/// Calls `each` with the path below `root` and the `lstat` of everything that
/// is no folder, in no order. Every `lstat` is taken from its folder, not from the
/// root: that is most of what a look at a tree costs.
pub(crate) fn walk<E>(
    root: &Path,
    skip: Skip,
    mut each: impl FnMut(Result<(&Path, &Metadata), WalkError>) -> Result<(), E>,
) -> Result<(), E> {
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let failed = |path: &Path, source| Err(WalkError { path: path.into(), source });
        let entries = match fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            Err(error) => {
                each(failed(&folder, error))?;
                continue;
            }
        };
        for entry in entries {
            let named = entry.and_then(|entry| Ok((entry.file_type()?.is_dir(), entry)));
            let (is_folder, entry) = match named {
                Ok(named) => named,
                Err(error) => {
                    each(failed(&folder, error))?;
                    continue;
                }
            };
            let (name, top) = (entry.file_name(), folder.as_os_str().is_empty());
            // A folder in the stamp's place holds what somebody else put there.
            let stamp = top && name == STAMP && !is_folder;
            let edit = top && name == EDIT_FOLDER && skip == Skip::OursAndGit;
            let git = skip == Skip::OursAndGit && name.eq_ignore_ascii_case(".git");
            if stamp || edit || git {
                continue;
            }
            let path = folder.join(&name);
            if is_folder {
                folders.push(path);
                continue;
            }
            match entry.metadata() {
                Ok(meta) => each(Ok((&path, &meta)))?,
                Err(error) => each(failed(&path, error))?,
            }
        }
    }
    Ok(())
}

/// The bytes at `path`: a file's own, or a link's target. Never follows a link.
pub(crate) fn read(path: &Path, mode: Mode) -> io::Result<Vec<u8>> {
    if mode == Mode::Symlink {
        return Ok(fs::read_link(path)?.into_os_string().into_encoded_bytes());
    }
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
    let mut file =
        fs::OpenOptions::new().read(true).custom_flags(no_follow.cast_signed()).open(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Tree for DiskTree {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        let Some(stat) = self.files.get(path) else { return Ok(None) };
        let bytes = read(&self.root.join(path.as_str()), stat.mode)
            .map_err(|source| ReadError { path: path.clone(), source })?;
        Ok(Some(File::new(stat.mode, bytes)))
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.files.get(path).map(|stat| stat.mode)
    }

    fn paths(&self) -> Vec<TreePath> {
        self.files.keys().cloned().collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |(path, stat): (&TreePath, &Stat)| Entry {
            path: path.clone(),
            mode: stat.mode,
            id: None,
        };
        self.files.iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn path(name: &str) -> TreePath {
        TreePath::new(name).unwrap()
    }

    #[test]
    fn modes_come_from_the_file_system_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        fs::create_dir_all(dir.path().join("sub/.git/x")).unwrap();
        fs::write(dir.path().join("sub/.git/x/y"), "git's").unwrap();
        fs::write(dir.path().join("sub/run"), "#!").unwrap();
        fs::write(dir.path().join(".git"), "gitdir: elsewhere").unwrap();
        let run = dir.path().join("sub/run");
        fs::set_permissions(run, fs::Permissions::from_mode(0o744)).unwrap();
        symlink(outside.path(), dir.path().join("out")).unwrap();

        let tree = DiskTree::open(dir.path()).unwrap();
        assert_eq!(tree.paths(), [path("out"), path("sub/run")]);
        assert_eq!(tree.mode(&path("sub/run")), Some(Mode::Executable));
        assert_eq!(tree.mode(&path("out")), Some(Mode::Symlink));
        assert!(tree.file(&path("out/secret")).unwrap().is_none());
        let link = tree.file(&path("out")).unwrap().unwrap();
        assert_eq!(&*link.bytes, outside.path().as_os_str().as_bytes());
    }

    #[test]
    fn a_folder_turned_link_after_the_listing_yields_no_foreign_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "1").unwrap();
        fs::write(dir.path().join("b"), "2").unwrap();
        let tree = DiskTree::open(dir.path()).unwrap();
        fs::remove_file(dir.path().join("a")).unwrap();
        symlink("b", dir.path().join("a")).unwrap();
        assert!(tree.file(&path("a")).is_err());
    }

    #[test]
    fn what_no_tree_can_hold_is_an_error_not_silence() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join(OsStr::from_bytes(b"h\xe9"));
        fs::write(&name, "x").unwrap();
        let error = DiskTree::open(dir.path()).unwrap_err();
        assert!(matches!(error, DiskError::Name { why: PathError::Encoding, .. }), "{error}");
        fs::remove_file(&name).unwrap();

        let socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
        let error = DiskTree::open(dir.path()).unwrap_err();
        assert!(matches!(error, DiskError::Special { .. }), "{error}");
        drop(socket);

        let file = dir.path().join("f");
        fs::write(&file, "").unwrap();
        assert!(matches!(DiskTree::open(&file), Err(DiskError::NotAFolder { .. })));
        assert!(matches!(DiskTree::open(&dir.path().join("no")), Err(DiskError::List { .. })));
    }
}
