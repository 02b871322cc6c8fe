//! The pin's files, taken from released trees, each proven by its blob id.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::bridge::cross;
use super::{Registry, Released};
use crate::listing::{Listed, Listing};
use crate::pin::PinSnapshot;
use crate::snapshot::{Entry, File, MemoryTree, Mode, ObjectId, ReadError, Tree, TreePath};
use crate::stored::message;

/// Those files of the pin that released trees hold. What nothing proves is
/// not here: reading it is an error that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenTree {
    listing: Listing,
    files: MemoryTree,
    coverage: Coverage,
}

/// How much of a pin released trees hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// The files of the pin.
    pub listed: usize,
    /// Those that are here, each proven by its blob id.
    pub proven: usize,
    /// What each released tree gave.
    pub parts: Vec<Part>,
    /// The files that are not here.
    pub missing: Vec<TreePath>,
}

/// What one released tree gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its name, as `mlx-pin.toml` has it.
    pub source: String,
    /// The files that are the pin's as they are, and that none before it had.
    pub files: usize,
    /// The files that its bridge turns into the pin's.
    pub bridged: usize,
    /// Why it, or its bridge, gave less than it was to give.
    pub problem: Option<String>,
}

impl ProvenTree {
    /// Asks the released trees in turn for the files of `listing`.
    #[must_use]
    pub fn gather(listing: Listing, snapshots: &[PinSnapshot], registry: &Registry<'_>) -> Self {
        let mut files = BTreeMap::new();
        let mut parts = Vec::new();
        for snapshot in snapshots {
            let mut part =
                Part { source: snapshot.source.to_string(), files: 0, bridged: 0, problem: None };
            match registry.released(&snapshot.source, Some(&snapshot.whole)) {
                Ok(Released { files: released, problem }) => {
                    let other = problem.map(|problem| message(&problem));
                    part.files = take_fitting(&listing, &released, &mut files);
                    if let Some(bridge) = &snapshot.bridge {
                        let before = files.len();
                        part.problem = cross(&listing, &released, bridge, &mut files).err();
                        part.bridged = files.len() - before;
                    }
                    part.problem = match (other, part.problem) {
                        (Some(other), Some(bridge)) => Some(format!("{other}; {bridge}")),
                        (other, bridge) => other.or(bridge),
                    };
                }
                Err(failure) => {
                    part.problem = Some(message(&failure));
                }
            }
            parts.push(part);
        }
        let missing: Vec<TreePath> = listing
            .iter()
            .filter(|(path, _)| !files.contains_key(*path))
            .map(|(path, _)| path.clone())
            .collect();
        let (listed, proven) = (listing.len(), files.len());
        let coverage = Coverage { listed, proven, parts, missing };
        Self { listing, files: MemoryTree(files), coverage }
    }

    /// How much of the pin is here.
    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }
}

impl Coverage {
    /// One plain line for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let Self { listed, proven, parts, .. } = self;
        let names: Vec<&str> =
            parts.iter().filter(|p| p.files + p.bridged > 0).map(|p| p.source.as_str()).collect();
        format!("{proven} of {listed} files, each proven by its blob id, from {}", names.join(", "))
    }
}

/// Takes from `released` the files that are the listing's and not here yet.
fn take_fitting(
    listing: &Listing,
    released: &MemoryTree,
    files: &mut BTreeMap<TreePath, File>,
) -> usize {
    let before = files.len();
    for (path, listed) in listing.iter().filter(|(_, f)| f.mode != Mode::Submodule) {
        let Some(file) = released.0.get(path) else { continue };
        // A link's bytes are its target, a file's are its own: the kinds must
        // agree, and the listing knows the execute bit that packages lose.
        let same_kind = (file.mode == Mode::Symlink) == (listed.mode == Mode::Symlink);
        if same_kind && !files.contains_key(path) && ObjectId::of_blob(&file.bytes) == listed.id {
            files.insert(path.clone(), File::new(listed.mode, file.bytes.clone()));
        }
    }
    files.len() - before
}

impl Tree for ProvenTree {
    fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
        match (self.files.file(path)?, self.listing.get(path)) {
            (Some(file), _) => Ok(Some(file)),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(ReadError {
                path: path.clone(),
                source: io::Error::new(
                    io::ErrorKind::NotFound,
                    "the pin has this file, and no released tree at hand proves it; \
                     fetch the pin from a git repository (`overlay fetch --from …`)",
                ),
            }),
        }
    }

    /// Of a file that is not here too: the listing knows it.
    fn mode(&self, path: &TreePath) -> Option<Mode> {
        self.listing.get(path).map(|f| f.mode)
    }

    /// The files that are here.
    fn paths(&self) -> Vec<TreePath> {
        self.files.paths()
    }

    /// With the ids that proved them.
    fn entries(&self) -> Vec<Entry> {
        let entry = |path: TreePath| {
            let Listed { mode, id } = self.listing.get(&path)?;
            Some(Entry { path, mode, id: Some(id) })
        };
        self.files.paths().into_iter().filter_map(entry).collect()
    }
}
