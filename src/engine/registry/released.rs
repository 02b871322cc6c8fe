//! A released tree, read whole out of a package.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use super::cargo::hex;
use super::{MARKER, Registry, RegistryError, SUMS};
use crate::listing::{Listed, Listing};
use crate::pin::Whole;
use crate::snapshot::{File, MemoryTree, Mode, ObjectId, TreePath};
use crate::source::{CrateSource, SnapshotSource, WheelSource};

/// What one package may unfold to: no tree of sources comes near it.
pub(super) const MOST_BYTES: u64 = 1 << 30;

/// A released tree, and what there is to say of it.
#[derive(Debug)]
pub struct Released {
    /// Its files. None is executable: crates and wheels keep no such bit that
    /// could be relied on.
    pub files: MemoryTree,
    /// Why it is not the tree that is stated, or could not be compared with it.
    pub problem: Option<RegistryError>,
}

impl From<MemoryTree> for Released {
    fn from(files: MemoryTree) -> Self {
        Self { files, problem: None }
    }
}

impl Registry<'_> {
    /// The files of a released tree, as the package has them.
    ///
    /// `whole` is what proves the package whole, where that is known. What
    /// does not fit it is fetched once more; a crate that does not fit even
    /// then, or that cannot be had again, is given as it is with its problem,
    /// since each file of a pin is proven by itself. That a vendored crate is
    /// another tree is no problem where its sums fit: cargo's vendoring leaves
    /// files out.
    ///
    /// # Errors
    /// The package is not to be had, or lacks the folder.
    pub fn released(
        &self,
        source: &SnapshotSource,
        whole: Option<&Whole>,
    ) -> Result<Released, RegistryError> {
        match source {
            SnapshotSource::Crate(wanted) => {
                let root = self.crate_source(wanted)?;
                let stated = stated_tree(whole);
                if !is_vendored(&root) {
                    return self.read_or_mend(wanted, &root, stated);
                }
                let files = read_crate(&root, wanted)?;
                let problem = match other_tree(wanted, stated, &files) {
                    Some(_) => require_vendored(&root, wanted).err(),
                    None => None,
                };
                Ok(Released { files, problem })
            }
            SnapshotSource::Wheel(wanted) => {
                let sum = match whole {
                    Some(Whole::Sha256(sum)) => Some(sum.as_str()),
                    _ => None,
                };
                let wheel = self.wheel(wanted, sum)?;
                let failed = |source| RegistryError::Read { path: wheel.clone(), source };
                let archive = fs::File::open(&wheel).map_err(failed)?;
                unfold(archive, wanted, &wheel).map(Released::from)
            }
        }
    }

    /// As [`Registry::released`], where no file is proven by itself: the package is
    /// what the pin states where it does, else what the archive holds whose sum
    /// the index states. A vendored one is what the sums say that cargo wrote; that
    /// it is not the stated tree is told as its problem, for cargo's vendoring
    /// leaves files out.
    ///
    /// # Errors
    /// Those of [`Registry::released`], or the package is damaged or another.
    pub fn released_whole(
        &self,
        source: &SnapshotSource,
        whole: Option<&Whole>,
    ) -> Result<Released, RegistryError> {
        let SnapshotSource::Crate(wanted) = source else { return self.released(source, whole) };
        let stated = stated_tree(whole);
        let root = self.crate_source(wanted)?;
        if is_vendored(&root) {
            require_vendored(&root, wanted)?;
            let files = read_crate(&root, wanted)?;
            let other = stated.filter(|stated| tree_of(&files) != *stated);
            let package = || source.to_string();
            let problem =
                other.map(|stated| RegistryError::Vendored { package: package(), stated });
            return Ok(Released { files, problem });
        }
        let released = match stated {
            Some(_) => self.read_or_mend(wanted, &root, stated)?,
            None => self.as_fetched(wanted, &root)?.into(),
        };
        match released.problem {
            Some(problem) => Err(problem),
            None => Ok(released),
        }
    }

    /// The files of a crate that cargo unpacked to `root`; where they are not the
    /// stated tree, as it unpacks them again, or as they are if it cannot.
    fn read_or_mend(
        &self,
        wanted: &CrateSource,
        root: &Path,
        stated: Option<ObjectId>,
    ) -> Result<Released, RegistryError> {
        let found = match read_crate(root, wanted) {
            Ok(files) if other_tree(wanted, stated, &files).is_none() => return Ok(files.into()),
            found => found,
        };
        let failure = match self.mend_crate(wanted, root) {
            Ok(()) => {
                let files = read_crate(root, wanted)?;
                let problem = other_tree(wanted, stated, &files);
                return Ok(Released { files, problem });
            }
            Err(failure) => failure,
        };
        // cargo may have unpacked it, and have failed at one that it depends on.
        let is_stated =
            |files: &MemoryTree| stated.is_some() && other_tree(wanted, stated, files).is_none();
        match (read_crate(root, wanted), found) {
            (Ok(files), _) if is_stated(&files) => Ok(files.into()),
            (_, Ok(files)) => Ok(Released { files, problem: Some(failure) }),
            (_, Err(_)) => Err(failure),
        }
    }
}

/// What there is to say of a crate that is another than is stated.
fn other_tree(
    wanted: &CrateSource,
    stated: Option<ObjectId>,
    files: &MemoryTree,
) -> Option<RegistryError> {
    let (stated, found) = (stated?, tree_of(files));
    let package = SnapshotSource::Crate(wanted.clone()).to_string();
    (found != stated).then_some(RegistryError::OtherTree { package, found, stated })
}

/// Whether `cargo vendor` put a crate there.
fn is_vendored(root: &Path) -> bool {
    root.join(SUMS).is_file()
}

/// The tree that a crate is to be, where that is stated.
fn stated_tree(whole: Option<&Whole>) -> Option<ObjectId> {
    match whole {
        Some(Whole::Tree(tree)) => Some(*tree),
        _ => None,
    }
}

/// The id of the tree that git makes of these files.
fn tree_of(files: &MemoryTree) -> ObjectId {
    let listed = |(path, file): (&TreePath, &File)| {
        (path.clone(), Listed { mode: file.mode, id: ObjectId::of_blob(&file.bytes) })
    };
    files.0.iter().map(listed).collect::<Listing>().tree_id()
}

/// Fails where a file of a vendored package is not what cargo wrote.
fn require_vendored(root: &Path, wanted: &CrateSource) -> Result<(), RegistryError> {
    #[derive(serde::Deserialize)]
    struct Sums {
        files: BTreeMap<String, String>,
    }
    let path = root.join(SUMS);
    let failed = |source| RegistryError::Read { path: path.clone(), source };
    let sums: Sums = serde_json::from_slice(&fs::read(&path).map_err(failed)?)
        .map_err(|e| failed(io::Error::new(io::ErrorKind::InvalidData, e)))?;
    for (name, stated) in &sums.files {
        let path = root.join(name);
        let found = fs::read(&path).map(|bytes| hex(&Sha256::digest(&bytes)));
        if found.ok().as_ref() != Some(stated) {
            return Err(RegistryError::Damaged { package: wanted.to_string(), path });
        }
    }
    // A file that they do not name may be anything.
    let whole = CrateSource { folder: None, ..wanted.clone() };
    let known = |name: &str| name == SUMS || sums.files.contains_key(name);
    match read_folder(root, &whole)?.0.keys().find(|path| !known(path.as_str())) {
        Some(odd) => {
            let (package, path) = (wanted.to_string(), root.join(odd.as_str()));
            Err(RegistryError::Damaged { package, path })
        }
        None => Ok(()),
    }
}

/// The files of the folder that is wanted of a crate.
pub(super) fn read_crate(root: &Path, wanted: &CrateSource) -> Result<MemoryTree, RegistryError> {
    match &wanted.folder {
        Some(folder) => read_folder(&root.join(folder.as_str()), wanted),
        None => read_folder(root, wanted),
    }
}

fn read_folder(folder: &Path, wanted: &CrateSource) -> Result<MemoryTree, RegistryError> {
    if !folder.is_dir() {
        return Err(no_folder(&SnapshotSource::Crate(wanted.clone())));
    }
    let mut files = BTreeMap::new();
    for item in WalkDir::new(folder).sort_by_file_name() {
        let item =
            item.map_err(|e| RegistryError::Read { path: folder.to_path_buf(), source: e.into() })?;
        // cargo's own marker is no part of the package.
        if item.file_type().is_dir() || item.file_name() == MARKER {
            continue;
        }
        let below = item.path().strip_prefix(folder).expect("the walk stays in its folder");
        let name: Vec<String> =
            below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let path = checked(&name.join("/"), || wanted.to_string())?;
        let failed = |source| RegistryError::Read { path: item.path().to_path_buf(), source };
        let file = match item.file_type().is_symlink() {
            true => {
                let target = fs::read_link(item.path()).map_err(failed)?;
                File::new(Mode::Symlink, target.into_os_string().into_encoded_bytes())
            }
            false => File::new(Mode::Regular, fs::read(item.path()).map_err(failed)?),
        };
        files.insert(path, file);
    }
    Ok(MemoryTree(files))
}

fn unfold(
    archive: impl Read + io::Seek,
    wanted: &WheelSource,
    wheel: &Path,
) -> Result<MemoryTree, RegistryError> {
    let failed = |source| RegistryError::Read { path: wheel.to_path_buf(), source };
    let broken = |e: zip::result::ZipError| failed(io::Error::new(io::ErrorKind::InvalidData, e));
    let mut archive = zip::ZipArchive::new(archive).map_err(broken)?;
    let prefix = wanted.folder.as_ref().map_or_else(String::new, |f| format!("{f}/"));
    let mut files = BTreeMap::new();
    let mut left = MOST_BYTES;
    for at in 0..archive.len() {
        let entry = archive.by_index(at).map_err(broken)?;
        if entry.is_dir() {
            continue;
        }
        let name = entry.name().map_err(broken)?.into_owned();
        let Some(name) = name.strip_prefix(&prefix) else { continue };
        let path = checked(name, || wanted.to_string())?;
        let mut bytes = Vec::new();
        entry.take(left).read_to_end(&mut bytes).map_err(failed)?;
        left -= bytes.len() as u64;
        if left == 0 {
            return Err(failed(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it unfolds to more than {MOST_BYTES} bytes"),
            )));
        }
        files.insert(path, File::new(Mode::Regular, bytes));
    }
    if files.is_empty() {
        return Err(no_folder(&SnapshotSource::Wheel(wanted.clone())));
    }
    Ok(MemoryTree(files))
}

pub(super) fn no_folder(source: &SnapshotSource) -> RegistryError {
    let folder = match source {
        SnapshotSource::Crate(wanted) => &wanted.folder,
        SnapshotSource::Wheel(wanted) => &wanted.folder,
    };
    let folder = folder.as_ref().map_or_else(String::new, ToString::to_string);
    RegistryError::NoFolder { package: source.package(), folder }
}

pub(super) fn checked(
    name: &str,
    package: impl FnOnce() -> String,
) -> Result<TreePath, RegistryError> {
    TreePath::new(name).map_err(|source| RegistryError::Name {
        package: package(),
        name: name.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wheel(folder: &str) -> WheelSource {
        match format!("wheel:a@1:here:{folder}").parse().unwrap() {
            SnapshotSource::Wheel(wheel) => wheel,
            SnapshotSource::Crate(_) => unreachable!("a wheel was named"),
        }
    }

    fn zip_of(files: &[(&str, &str)]) -> io::Cursor<Vec<u8>> {
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, text) in files {
            zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            io::Write::write_all(&mut zip, text.as_bytes()).unwrap();
        }
        zip.finish().unwrap()
    }

    #[test]
    fn a_folder_of_a_wheel_is_read() {
        let files = [("m/include/a.h", "a"), ("m/include/b/c.h", "c"), ("m/lib", "l")];
        let tree = unfold(zip_of(&files), &wheel("m/include"), Path::new("w")).unwrap();
        let names: Vec<&str> = tree.0.keys().map(TreePath::as_str).collect();
        assert_eq!(names, ["a.h", "b/c.h"]);
        let none = unfold(zip_of(&files), &wheel("n"), Path::new("w")).unwrap_err();
        assert_eq!(none.to_string(), "wheel:a@1:here has no folder `n`");
    }

    #[test]
    fn a_name_that_leaves_the_folder_is_refused() {
        let refused = unfold(zip_of(&[("m/../../x", "")]), &wheel("m"), Path::new("w"));
        assert!(matches!(refused, Err(RegistryError::Name { .. })), "{refused:?}");
    }

    #[test]
    fn a_wheel_cut_short_is_no_wheel() {
        let mut bytes = zip_of(&[("m/a", "text")]).into_inner();
        bytes.truncate(bytes.len() - 9);
        let cut = unfold(io::Cursor::new(bytes), &wheel("m"), Path::new("w"));
        assert!(matches!(cut, Err(RegistryError::Read { .. })), "{cut:?}");
    }
}
