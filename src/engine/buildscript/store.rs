//! Where MLX is built and where finished libraries stand.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::cmake::Made;
use super::{BuildError, BuildKey, Inputs, LibraryKey};

const RECORD: &str = "library.json";
const SCHEMA: u32 = 1;

/// The part of the cache that builds and libraries stand in.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// A finished library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its folder.
    pub folder: PathBuf,
    record: Record,
}

/// What a library says of itself, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    schema: u32,
    key: String,
    /// The digest of the laid tree's files that were compiled.
    tree: String,
    /// The build key's facts.
    facts: Vec<(String, String)>,
    /// The archives, by name and size in bytes, MLX's own first.
    archives: Vec<(String, u64)>,
    links: Vec<Link>,
    metallib: bool,
}

/// Something that a program with MLX must be linked with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// A library that the linker finds by itself.
    Dylib(String),
    /// A library at this path.
    File(PathBuf),
    /// One of Apple's frameworks.
    Framework(String),
}

impl Link {
    /// Reads an item of CMake's link list; nothing where it is a flag that
    /// names no library, or one of CMake's marks (`::@` tells of which folder
    /// the next items are).
    #[must_use]
    pub fn parse(item: &str) -> Option<Self> {
        let path = Path::new(item);
        let stem = |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned());
        if let Some(name) = item.strip_prefix("-framework ") {
            return Some(Link::Framework(name.trim().to_owned()));
        }
        if path.extension() == Some("framework".as_ref()) {
            return stem(path).map(Link::Framework);
        }
        if path.is_absolute() {
            return Some(Link::File(path.to_path_buf()));
        }
        let name = item.strip_prefix("-l").unwrap_or(item);
        let named = !name.is_empty() && !name.starts_with('-') && !name.contains(['$', ':']);
        named.then(|| Link::Dylib(name.to_owned()))
    }
}

impl Library {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.record.key
    }

    /// The digest of the laid tree's files that it was made of.
    #[must_use]
    pub fn tree(&self) -> &str {
        &self.record.tree
    }

    /// A fact of its build key, such as `pin`.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.record.facts.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The folder of its headers.
    #[must_use]
    pub fn include(&self) -> PathBuf {
        self.folder.join("include")
    }

    /// The folder of its archives.
    #[must_use]
    pub fn lib(&self) -> PathBuf {
        self.folder.join("lib")
    }

    /// Its archives, MLX's own first.
    pub fn archives(&self) -> impl Iterator<Item = PathBuf> {
        self.record.archives.iter().map(|(name, _)| self.lib().join(name))
    }

    /// What a program must be linked with besides.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.record.links
    }

    /// Its compiled Metal kernels, where it has any.
    #[must_use]
    pub fn metallib(&self) -> Option<PathBuf> {
        self.record.metallib.then(|| self.lib().join("mlx.metallib"))
    }

    /// Reads the library at `folder`; nothing where there is none, or where
    /// part of it is gone.
    fn read(folder: &Path) -> Option<Self> {
        let record = fs::read(folder.join(RECORD)).ok()?;
        let record: Record = serde_json::from_slice(&record).ok()?;
        let library = Self { folder: folder.to_path_buf(), record };
        let whole = |(name, size): &(String, u64)| {
            fs::metadata(library.lib().join(name)).is_ok_and(|m| m.len() == *size)
        };
        let headers = library.include().is_dir();
        let kernels = library.metallib().is_none_or(|m| m.is_file());
        let record = &library.record;
        (record.schema == SCHEMA && headers && kernels && record.archives.iter().all(whole))
            .then_some(library)
    }
}

impl Store {
    /// The store in the user's cache folder.
    #[must_use]
    pub fn in_cache(cache: &Path) -> Self {
        Self { root: cache.join("mlx") }
    }

    /// The folder that MLX is built in under this key, held until the lock is
    /// dropped; waits while another process holds it.
    ///
    /// # Errors
    /// It cannot be made or locked.
    pub(super) fn build_folder(&self, key: &BuildKey) -> Result<(PathBuf, File), BuildError> {
        let folder = self.root.join("builds").join(key.to_string());
        fs::create_dir_all(&folder).map_err(BuildError::io("make", &folder))?;
        let path = folder.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(BuildError::io("write", &path))?;
        lock.lock().map_err(BuildError::io("lock", &path))?;
        Ok((folder, lock))
    }

    /// The finished library of this key, where there is one and all of it.
    #[must_use]
    pub fn find(&self, key: &LibraryKey) -> Option<Library> {
        Library::read(&self.libraries().join(key.as_str())).filter(|l| l.key() == key.as_str())
    }

    /// The finished libraries made of the tree with this digest.
    #[must_use]
    pub fn made_of(&self, tree: &str) -> Vec<Library> {
        let entries = fs::read_dir(self.libraries()).into_iter().flatten().flatten();
        let libraries = entries.filter_map(|e| Library::read(&e.path()));
        libraries.filter(|l| l.tree() == tree).collect()
    }

    /// Stores what a build made: written aside and renamed, so that it is
    /// there whole or not at all. The caller holds the build folder's lock.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn put(
        &self,
        build: &BuildKey,
        inputs: &Inputs,
        made: &Made,
        extra_headers: &[PathBuf],
    ) -> Result<Library, BuildError> {
        let key = build.library(inputs.digest());
        let libraries = self.libraries();
        fs::create_dir_all(&libraries).map_err(BuildError::io("make", &libraries))?;
        let aside = tempfile::Builder::new().prefix(".new-").tempdir_in(&libraries);
        let aside = aside.map_err(BuildError::io("write in", &libraries))?;
        let lib = aside.path().join("lib");
        fs::create_dir(&lib).map_err(BuildError::io("make", &lib))?;
        inputs.copy_headers(&aside.path().join("include"))?;
        for folder in extra_headers {
            Inputs::copy_folder(folder, &aside.path().join("include"))?;
        }
        let mut archives = Vec::new();
        for archive in &made.archives {
            let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let copied = lib.join(&name);
            let size = copy(archive, &copied)?;
            age(&copied)?;
            archives.push((name, size));
        }
        if let Some(metallib) = &made.metallib {
            copy(metallib, &lib.join("mlx.metallib"))?;
        }
        let record = Record {
            schema: SCHEMA,
            key: key.to_string(),
            tree: inputs.digest().to_owned(),
            facts: build.facts().to_vec(),
            archives,
            links: made.links.clone(),
            metallib: made.metallib.is_some(),
        };
        let text = serde_json::to_vec_pretty(&record).expect("a record holds nothing JSON cannot");
        let path = aside.path().join(RECORD);
        fs::write(&path, text).map_err(BuildError::io("write", &path))?;

        let place = libraries.join(key.as_str());
        if place.exists() {
            // Part of it is gone, or it would have been found.
            fs::remove_dir_all(&place).map_err(BuildError::io("remove", &place))?;
        }
        let aside = aside.keep();
        if let Err(source) = fs::rename(&aside, &place) {
            // Nothing refers to what was written aside; that it may stay is
            // the lesser trouble.
            let _ = fs::remove_dir_all(&aside);
            return Err(BuildError::Io { doing: "write", path: place, source });
        }
        Ok(Library { folder: place, record })
    }

    fn libraries(&self) -> PathBuf {
        self.root.join("libraries")
    }
}

/// Gives a file the time of the first of January 2000. Cargo watches archives
/// that a build script made, and would run it again for one newer than itself.
fn age(path: &Path) -> Result<(), BuildError> {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_800);
    let file = File::options().write(true).open(path).and_then(|f| f.set_modified(time));
    file.map_err(BuildError::io("write", path))
}

fn copy(from: &Path, to: &Path) -> Result<u64, BuildError> {
    fs::copy(from, to).map_err(BuildError::io("copy", from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_items_are_read_as_a_linker_would() {
        let framework = |n: &str| Some(Link::Framework(n.into()));
        let dylib = |n: &str| Some(Link::Dylib(n.into()));
        let openblas = "/usr/lib/x/libopenblas.so";
        assert_eq!(Link::parse(openblas), Some(Link::File(openblas.into())));
        assert_eq!(Link::parse("/S/Accelerate.framework"), framework("Accelerate"));
        assert_eq!(Link::parse("-framework Metal"), framework("Metal"));
        assert_eq!(Link::parse("-lm"), dylib("m"));
        assert_eq!(Link::parse("pthread"), dylib("pthread"));
        assert_eq!(Link::parse("-Wl,--as-needed"), None);
        for mark in ["", "::@", "::@(0x5559f81a9f40)", "$<LINK_ONLY:x>"] {
            assert_eq!(Link::parse(mark), None);
        }
    }

    fn made(dir: &Path) -> (Made, Inputs) {
        let tree = dir.join("tree");
        fs::create_dir_all(tree.join("mlx")).unwrap();
        fs::write(tree.join("CMakeLists.txt"), "").unwrap();
        fs::write(tree.join("mlx/mlx.h"), "h").unwrap();
        fs::write(tree.join("mlx/mlx.cpp"), "c").unwrap();
        let archive = dir.join("libmlx.a");
        fs::write(&archive, "archive").unwrap();
        let links = vec![Link::Dylib("dl".into())];
        let made = Made { archives: vec![archive], links, metallib: None, objects: 1, total: 1 };
        (made, Inputs::read(&tree).unwrap())
    }

    #[test]
    fn a_library_is_found_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let (made, inputs) = made(dir.path());
        let store = Store::in_cache(&dir.path().join("cache"));
        let build = BuildKey::new(vec![("pin".into(), "9a".into())]);
        let key = build.library(inputs.digest());
        assert_eq!(store.find(&key), None);
        let put = store.put(&build, &inputs, &made, &[]).unwrap();
        assert_eq!(store.find(&key), Some(put.clone()));
        assert_eq!(store.made_of(inputs.digest()), std::slice::from_ref(&put));
        assert_eq!(put.archives().collect::<Vec<_>>(), [put.lib().join("libmlx.a")]);
        assert_eq!(put.fact("pin"), Some("9a"));
        assert!(put.include().join("mlx/mlx.h").is_file());
        assert!(!put.include().join("mlx/mlx.cpp").exists());

        fs::write(put.lib().join("libmlx.a"), "arch").unwrap();
        assert_eq!(store.find(&key), None, "a cut archive is no library");
        store.put(&build, &inputs, &made, &[]).unwrap();
        assert!(store.find(&key).is_some());
        let left: Vec<_> = fs::read_dir(store.libraries()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left aside");
    }
}
