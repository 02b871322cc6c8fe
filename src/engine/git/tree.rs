//! A commit's files, read from a repository when they are asked for.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use git2::{ObjectType, Oid, Repository, TreeWalkMode, TreeWalkResult};

use super::{GitError, to_id, to_oid};
use crate::listing::{Listed, Listing};
use crate::snapshot::{Entry, File, Mode, ObjectId, ReadError, Tree, TreePath};

/// A repository that trees share.
#[derive(Clone)]
pub(super) struct Objects(Arc<Mutex<Repository>>, PathBuf);

impl Objects {
    pub(super) fn open(path: &Path) -> Result<Self, GitError> {
        let failed = |source| GitError::Open { path: path.to_path_buf(), source };
        let repository = Repository::open(path).map_err(failed)?;
        let path = repository.path().to_path_buf();
        Ok(Self(Arc::new(Mutex::new(repository)), path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.1
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Repository> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn damaged(&self, source: git2::Error) -> GitError {
        GitError::Damaged { path: self.1.clone(), source }
    }
}

/// The files of a git tree. Only what is asked for is read; the list of all
/// paths was read when it was made.
#[derive(Clone)]
pub struct GitTree {
    objects: Objects,
    id: ObjectId,
    listing: Listing,
}

impl GitTree {
    pub(super) fn read(objects: &Objects, tree: Oid) -> Result<Self, GitError> {
        let repository = objects.lock();
        let damaged = |e| objects.damaged(e);
        let mut files = Vec::new();
        let mut unsafe_name = None;
        let mut odd = None;
        let root = repository.find_tree(tree).map_err(damaged)?;
        let walked = root.walk(TreeWalkMode::PreOrder, |folder, entry| {
            if entry.kind() == Some(ObjectType::Tree) {
                return TreeWalkResult::Ok;
            }
            let name = [folder.as_bytes(), entry.name_bytes()].concat();
            let mode = Mode::from_bits(u32::try_from(entry.filemode()).unwrap_or_default());
            match (TreePath::from_bytes(&name), mode) {
                (Ok(path), Some(mode)) => {
                    files.push((path, Listed { mode, id: to_id(entry.id()) }));
                    TreeWalkResult::Ok
                }
                (Ok(path), None) => {
                    odd = Some(format!("`{path}` has the mode {:o}", entry.filemode()));
                    TreeWalkResult::Abort
                }
                (Err(rule), _) => {
                    unsafe_name = Some((name, rule));
                    TreeWalkResult::Abort
                }
            }
        });
        if let Some(what) = odd {
            return Err(objects.damaged(git2::Error::from_str(&what)));
        }
        if let Some((name, source)) = unsafe_name {
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(GitError::Name { path: objects.path().to_path_buf(), name, source });
        }
        walked.map_err(damaged)?;
        drop(root);
        drop(repository);
        Ok(Self { objects: objects.clone(), id: to_id(tree), listing: files.into_iter().collect() })
    }

    /// The tree's id.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// What each file is.
    #[must_use]
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// The bytes of a blob of the repository, checked against its id.
    ///
    /// # Errors
    /// It is missing or damaged.
    pub(super) fn blob(objects: &Objects, id: ObjectId) -> Result<Arc<[u8]>, git2::Error> {
        let repository = objects.lock();
        let blob = repository.find_blob(to_oid(id))?;
        Ok(blob.content().into())
    }
}

impl Tree for GitTree {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        let Some(Listed { mode, id }) = self.listing.get(path) else { return Ok(None) };
        if mode == Mode::Submodule {
            return Ok(Some(File::new(mode, Vec::new())));
        }
        match Self::blob(&self.objects, id) {
            Ok(bytes) => Ok(Some(File::new(mode, bytes))),
            Err(e) => Err(ReadError {
                path: path.clone(),
                source: io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "{} is damaged ({}); `overlay fetch` finds what is and mends it",
                        self.objects.path().display(),
                        e.message()
                    ),
                ),
            }),
        }
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.listing.get(path).map(|f| f.mode)
    }

    fn paths(&self) -> Vec<TreePath> {
        self.listing.iter().map(|(path, _)| path.clone()).collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |(path, listed): (&TreePath, Listed)| Entry {
            path: path.clone(),
            mode: listed.mode,
            id: Some(listed.id),
        };
        self.listing.iter().map(entry).collect()
    }
}
