//! The archive of a crate that cargo keeps in its home: its sum is what the index
//! states, so it proves what the unpacked source cannot.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

use super::cargo::{archive_of, hex};
use super::released::{MOST_BYTES, checked, no_folder, read_crate};
use super::{MARKER, Network, Registry, RegistryError};
use crate::snapshot::{File, MemoryTree, Mode};
use crate::source::{CrateSource, SnapshotSource};

impl Registry<'_> {
    /// The files of a crate as it was fetched, whatever has become of `root`,
    /// where cargo unpacked it. An archive that is gone or damaged is fetched
    /// again.
    ///
    /// # Errors
    /// It cannot be, or it lacks the folder.
    pub(super) fn as_fetched(
        &self,
        wanted: &CrateSource,
        root: &Path,
    ) -> Result<MemoryTree, RegistryError> {
        let (Some(sum), Some(path)) = (self.stated_sum(wanted)?, archive_of(root)) else {
            // From no registry, by the user's own set-up.
            return read_crate(root, wanted);
        };
        let whole = || match fs::read(&path) {
            Ok(bytes) if hex(&Sha256::digest(&bytes)) == sum => Ok(bytes),
            Ok(_) => Err(io::ErrorKind::InvalidData),
            Err(e) => Err(e.kind()),
        };
        let found = match (whole(), self.network) {
            // A registry in a folder keeps none there, and is asked without a network.
            (Err(kind), network)
                if kind == io::ErrorKind::NotFound || network == Network::Allowed =>
            {
                self.mend_crate(wanted, root).map_err(|e| match (e, network) {
                    (RegistryError::Tool { .. }, Network::OffLimits) => {
                        RegistryError::Offline { package: wanted.to_string() }
                    }
                    (e, _) => e,
                })?;
                whole()
            }
            (found, _) => found,
        };
        match found {
            Ok(bytes) => unpack(&bytes, wanted, &path),
            // cargo has just unpacked it.
            Err(io::ErrorKind::NotFound) => read_crate(root, wanted),
            Err(_) => Err(RegistryError::Archive { package: wanted.to_string(), path }),
        }
    }
}

/// The files of the wanted folder in an archive.
fn unpack(bytes: &[u8], wanted: &CrateSource, path: &Path) -> Result<MemoryTree, RegistryError> {
    let failed = |source| RegistryError::Read { path: path.to_path_buf(), source };
    let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let prefix = match &wanted.folder {
        Some(folder) => format!("{stem}/{folder}/"),
        None => format!("{stem}/"),
    };
    let mut files = BTreeMap::new();
    let mut archive = tar::Archive::new(GzDecoder::new(bytes).take(MOST_BYTES));
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let Some(name) = name.strip_prefix(&prefix) else { continue };
        let kind = entry.header().entry_type();
        if kind.is_dir() || name.rsplit('/').next() == Some(MARKER) {
            continue;
        }
        let tree_path = checked(name, || wanted.to_string())?;
        let file = if kind.is_symlink() {
            File::new(Mode::Symlink, entry.link_name_bytes().unwrap_or_default().into_owned())
        } else {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(failed)?;
            File::new(Mode::Regular, bytes)
        };
        files.insert(tree_path, file);
    }
    match files.is_empty() {
        true => Err(no_folder(&SnapshotSource::Crate(wanted.clone()))),
        false => Ok(MemoryTree(files)),
    }
}
