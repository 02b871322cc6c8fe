//! A commit's files, read from a repository when they are asked for.

#[cfg(feature = "fetch")]
use std::collections::HashSet;
use std::sync::Arc;

use git2::{Error, ObjectType, Oid};

use super::object::{self, TreeEntry};
use super::objects::{Handle, Objects};
use super::{GitError, to_id, to_oid, unread};
use crate::listing::{Listed, Listing};
use crate::snapshot::{Entry, File, Mode, ObjectId, ReadError, Tree, TreePath};

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
        let mut files = Vec::new();
        let repository = objects.handle();
        walk(objects, &repository, &mut Vec::new(), tree, &mut files)?;
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
    pub(super) fn blob(objects: &Objects, id: ObjectId) -> Result<Arc<[u8]>, Error> {
        let (id, kind) = (to_oid(id), ObjectType::Blob);
        object::read(&objects.handle(), id, kind)
    }
}

/// Adds the files of a tree that stands in `folder`, its name with a slash at
/// the end, or none at all.
fn walk(
    objects: &Objects,
    repository: &Handle<'_>,
    folder: &mut Vec<u8>,
    tree: Oid,
    files: &mut Vec<(TreePath, Listed)>,
) -> Result<(), GitError> {
    let damaged = |e| objects.damaged(e);
    let bytes = object::read(repository, tree, ObjectType::Tree).map_err(damaged)?;
    for entry in object::entries(&bytes) {
        let TreeEntry { mode, name, id } = entry.map_err(damaged)?;
        let above = folder.len();
        folder.extend_from_slice(name);
        if mode == object::TREE {
            folder.push(b'/');
            walk(objects, repository, folder, id, files)?;
        } else {
            let path = TreePath::from_bytes(folder).map_err(|source| GitError::Name {
                path: objects.path().to_path_buf(),
                name: String::from_utf8_lossy(folder).into_owned(),
                source,
            })?;
            let odd = || damaged(Error::from_str(&format!("`{path}` has the mode {mode:o}")));
            let mode = Mode::from_bits(mode).ok_or_else(odd)?;
            files.push((path, Listed { mode, id: to_id(id) }));
        }
        folder.truncate(above);
    }
    Ok(())
}

/// The ids of all that a tree is made of: itself, its folders and its files, each once.
#[cfg(feature = "fetch")]
pub(super) fn objects(objects: &Objects, tree: Oid) -> Result<Vec<Oid>, GitError> {
    let damaged = |e| objects.damaged(e);
    let repository = objects.handle();
    let (mut ids, mut folders) = (Vec::new(), vec![tree]);
    let mut seen = HashSet::from([tree]);
    while let Some(folder) = folders.pop() {
        ids.push(folder);
        let bytes = object::read(&repository, folder, ObjectType::Tree).map_err(damaged)?;
        for entry in object::entries(&bytes) {
            let TreeEntry { mode, id, .. } = entry.map_err(damaged)?;
            if Mode::from_bits(mode) == Some(Mode::Submodule) || !seen.insert(id) {
                continue;
            }
            let kept = if mode == object::TREE { &mut folders } else { &mut ids };
            kept.push(id);
        }
    }
    Ok(ids)
}

impl Tree for GitTree {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        let Some(Listed { mode, id }) = self.listing.get(path) else { return Ok(None) };
        if mode == Mode::Submodule {
            return Ok(Some(File::new(mode, Vec::new())));
        }
        let bytes = Self::blob(&self.objects, id);
        let bytes = bytes.map_err(|e| unread(path, self.objects.damaged(e)))?;
        Ok(Some(File::new(mode, bytes)))
    }

    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.listing.get(path).map(|f| f.mode)
    }

    fn id(&self, path: &TreePath) -> Option<ObjectId> {
        self.listing.get(path).map(|f| f.id)
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
