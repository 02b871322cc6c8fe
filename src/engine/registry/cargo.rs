//! Crates, through the user's cargo: a throw-away manifest for each, since
//! crates that bind one native library cannot stand in one graph.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::kept::is_marked;
use super::{MARKER, Network, Registry, RegistryError};
use crate::source::CrateSource;

/// No marker of cargo's: it holds another for one of a broken unpacking.
pub(super) const SPOILT: &[u8] = b"damaged";

impl Registry<'_> {
    /// The folder of a crate's unpacked source, fetched if it is not there.
    ///
    /// # Errors
    /// cargo is missing or fails, or the crate is not here and may not be
    /// fetched.
    pub fn crate_source(&self, wanted: &CrateSource) -> Result<PathBuf, RegistryError> {
        let _lock = self.lock()?;
        // cargo clears a folder without its marker, whatever a person did there.
        let (_, unmarked) = self.unpackings(wanted);
        let found = self.keeping(&unmarked, || self.found(wanted));
        // A run that was killed may have left a copy of any.
        let (marked, unmarked) = self.unpackings(wanted);
        marked.iter().chain(&unmarked).for_each(|folder| self.settle(folder));
        found
    }

    fn found(&self, wanted: &CrateSource) -> Result<PathBuf, RegistryError> {
        let manifest = self.manifest(wanted)?;
        let text = manifest.to_string_lossy().into_owned();
        let mut here = self.unpacked(wanted, &text);
        if let Err(RegistryError::Tool { said, .. }) = &here
            && let Some(lock) = blamed_lock(&manifest, said)
        {
            // cargo makes a lock anew that is gone, and none that it cannot read.
            crate::cache::remove(&lock)?;
            here = self.unpacked(wanted, &text);
        }
        match (here, self.network) {
            (Ok(folder), _) => Ok(folder),
            (Err(none @ RegistryError::NoTool { .. }), _) => Err(none),
            (Err(_), Network::OffLimits) => {
                let damaged = || match self.damaged_archives(&manifest).into_iter().next() {
                    Some(path) => RegistryError::Archive { package: wanted.to_string(), path },
                    None => RegistryError::Offline { package: wanted.to_string() },
                };
                self.unpacked_before(wanted, &manifest).ok_or_else(damaged)
            }
            (Err(_), Network::Allowed) => {
                self.begin(&format!("fetching {wanted} with cargo"));
                let fetched = self.fetch(&text).or_else(|failed| {
                    // cargo takes an archive that is there for a whole one.
                    let damaged = self.damaged_archives(&manifest);
                    if damaged.is_empty() {
                        return Err(failed);
                    }
                    self.begin(&format!("fetching {wanted} again with cargo: it was damaged"));
                    self.fetch_without(&damaged, || self.fetch(&text))
                });
                match fetched {
                    Ok(()) => self.unpacked(wanted, &text),
                    Err(failed) => self.unpacked_before(wanted, &manifest).ok_or(failed),
                }
            }
        }
    }

    /// Where cargo unpacked the crate, of which it lost the archive since, or one that
    /// the crate depends on. Only what an index states is proven later.
    fn unpacked_before(&self, wanted: &CrateSource, manifest: &Path) -> Option<PathBuf> {
        stated_sum(manifest, wanted)?;
        let (marked, _) = self.unpackings(wanted);
        marked.into_iter().next()
    }

    /// The folders in cargo's home of a crate's source: those that cargo marked as
    /// whole, and the others.
    fn unpackings(&self, wanted: &CrateSource) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let Some(home) = &self.cargo_home else { return Default::default() };
        let name = format!("{}-{}", wanted.name, wanted.version);
        let indexes = std::fs::read_dir(home.join("registry/src")).into_iter().flatten();
        let folders = indexes.filter_map(|index| Some(index.ok()?.path().join(&name)));
        folders.filter(|folder| folder.is_dir()).partition(|folder| is_marked(folder))
    }

    fn fetch(&self, manifest: &str) -> Result<(), RegistryError> {
        let arguments = ["fetch", "--color", "never", "--manifest-path", manifest];
        self.run("cargo", &arguments).map(drop)
    }

    /// Runs `fetch` with these archives out of cargo's way, so that it gets
    /// new ones. Where it fails they are put back: a set-up that reaches no
    /// registry is left as it was.
    fn fetch_without(
        &self,
        archives: &[PathBuf],
        fetch: impl FnOnce() -> Result<(), RegistryError>,
    ) -> Result<(), RegistryError> {
        let aside = |archive: &Path| archive.with_extension("crate.damaged");
        for archive in archives {
            std::fs::rename(archive, aside(archive))
                .map_err(|source| RegistryError::Write { path: archive.clone(), source })?;
        }
        let fetched = fetch();
        for archive in archives {
            // What is left lies beside the archives and is in nobody's way.
            let _ = match archive.exists() {
                true => std::fs::remove_file(aside(archive)),
                false => std::fs::rename(aside(archive), archive),
            };
        }
        fetched
    }

    /// The archives in cargo's home that are not what the index states, of the
    /// packages in the manifest's lock that cargo could not unpack. What it
    /// could is another index's package of that name, or of no concern.
    fn damaged_archives(&self, manifest: &Path) -> Vec<PathBuf> {
        let Some(home) = &self.cargo_home else { return Vec::new() };
        let registry = home.join("registry");
        let indexes: Vec<_> = std::fs::read_dir(registry.join("cache"))
            .into_iter()
            .flatten()
            .filter_map(|item| Some(item.ok()?.file_name()))
            .collect();
        let locked = locked(manifest).into_iter().flat_map(|package| {
            let (registry, indexes) = (&registry, &indexes);
            indexes.iter().filter_map(move |index| {
                let name = format!("{}-{}", package.name, package.version);
                let unpacked = registry.join("src").join(index).join(&name).join(MARKER);
                let archive = registry.join("cache").join(index).join(format!("{name}.crate"));
                let bytes = (!unpacked.is_file()).then(|| std::fs::read(&archive).ok())??;
                let stated = package.checksum.as_ref()?;
                (hex(&Sha256::digest(&bytes)) != *stated).then_some(archive)
            })
        });
        locked.collect()
    }

    /// As [`Registry::crate_source`], for a crate whose unpacked source at
    /// `folder` was found to be another than it was: cargo unpacks it again,
    /// and fetches it again if its archive is not what the index states. A
    /// folder that is not cargo's own unpacking is left as it is.
    ///
    /// # Errors
    /// Those of [`Registry::crate_source`]; where the archive is damaged and may
    /// not be fetched, nothing was touched.
    pub(super) fn mend_crate(
        &self,
        wanted: &CrateSource,
        folder: &Path,
    ) -> Result<(), RegistryError> {
        let _lock = self.lock()?;
        let marker = folder.join(MARKER);
        if !marker.is_file() {
            return Ok(());
        }
        let manifest = self.manifest(wanted)?;
        let text = manifest.to_string_lossy().into_owned();
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| RegistryError::Read { path, source }
        };
        let mut damaged = Vec::new();
        if let Some(archive) = archive_of(folder).filter(|archive| archive.is_file())
            && let Some(stated) = stated_sum(&manifest, wanted)
        {
            let bytes = std::fs::read(&archive).map_err(failed(&archive))?;
            if hex(&Sha256::digest(&bytes)) != stated {
                // cargo would clear the folder, and have nothing to fill it with.
                if self.network == Network::OffLimits {
                    return Err(RegistryError::Archive {
                        package: wanted.to_string(),
                        path: archive,
                    });
                }
                damaged.push(archive);
            }
        }
        // cargo clears and unpacks a folder whose marker it cannot read.
        let write = |bytes: &[u8]| {
            std::fs::write(&marker, bytes)
                .map_err(|source| RegistryError::Write { path: marker.clone(), source })
        };
        let whole = std::fs::read(&marker).map_err(failed(&marker))?;
        let offline = ["fetch", "--offline", "--color", "never", "--manifest-path", &text];
        let fetch = || match self.network {
            Network::Allowed => self.fetch(&text),
            Network::OffLimits => self.run("cargo", &offline).map(drop),
        };
        // Only what is kept may be cleared: any cargo that comes next would do it.
        let unpacked = self.keeping(&[folder.to_path_buf()], || {
            write(SPOILT)?;
            self.begin(&format!("unpacking {wanted} again with cargo"));
            self.fetch_without(&damaged, fetch)
        });
        // Where cargo had nothing to unpack, all is as it was.
        if unpacked.is_err() && std::fs::read(&marker).is_ok_and(|bytes| bytes == SPOILT) {
            write(&whole)?;
        }
        unpacked
    }

    /// The SHA-256 that the index states for a crate; none where the user's
    /// set-up has it from elsewhere than a registry.
    pub(super) fn stated_sum(&self, wanted: &CrateSource) -> Result<Option<String>, RegistryError> {
        Ok(stated_sum(&self.manifest(wanted)?, wanted))
    }

    fn manifest(&self, wanted: &CrateSource) -> Result<PathBuf, RegistryError> {
        let CrateSource { name, version, .. } = wanted;
        let folder = self.cache.folder(&format!("crates/{name}-{version}"))?;
        let manifest = folder.join("Cargo.toml");
        let text = format!(
            "# Made by overlay to fetch one crate; it may be deleted at any time.\n\
             [workspace]\n\n[package]\nname = \"overlay-fetches\"\nversion = \"0.0.0\"\n\
             edition = \"2021\"\npublish = false\n\n[lib]\npath = \"lib.rs\"\n\n[dependencies]\n\
             fetched = {{ package = \"{name}\", version = \"={version}\", default-features = false }}\n"
        );
        for (file, text) in [(&manifest, text.as_str()), (&folder.join("lib.rs"), "")] {
            if std::fs::read(file).is_ok_and(|there| there == text.as_bytes()) {
                continue;
            }
            if file.is_dir() {
                crate::cache::remove(file)?;
            }
            std::fs::write(file, text)
                .map_err(|source| crate::cache::CacheError::Write { path: file.clone(), source })?;
        }
        Ok(manifest)
    }

    /// Where cargo has the crate's source, without the network.
    fn unpacked(&self, wanted: &CrateSource, manifest: &str) -> Result<PathBuf, RegistryError> {
        let arguments =
            ["metadata", "--format-version", "1", "--offline", "--manifest-path", manifest];
        let answer = self.run("cargo", &arguments)?;
        let fault = |what: String| RegistryError::Answer {
            command: format!("cargo {}", arguments.join(" ")),
            what,
        };
        let metadata: Metadata = serde_json::from_str(&answer).map_err(|e| fault(e.to_string()))?;
        let package = metadata
            .packages
            .into_iter()
            .find(|p| p.name == wanted.name && p.version == wanted.version)
            .ok_or_else(|| fault(format!("it does not name {} {}", wanted.name, wanted.version)))?;
        match package.manifest_path.parent() {
            Some(folder) => Ok(folder.to_path_buf()),
            None => Err(fault("a manifest in no folder".into())),
        }
    }
}

#[derive(serde::Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(serde::Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

/// The manifest's lock, where cargo says that it cannot be read: another version of
/// cargo's, another file, or a folder.
fn blamed_lock(manifest: &Path, said: &str) -> Option<PathBuf> {
    let lock = manifest.with_extension("lock");
    // cargo tells the path in its own form: what is above may look otherwise.
    let near = lock.strip_prefix(manifest.ancestors().nth(3)?).ok()?;
    said.contains(&*near.to_string_lossy()).then_some(lock)
}

/// The archive that cargo unpacked to `…/registry/src/<index>/<package>`, there or
/// not.
pub(super) fn archive_of(folder: &Path) -> Option<PathBuf> {
    let (index, src) = (folder.parent()?, folder.parent()?.parent()?);
    let name = format!("{}.crate", folder.file_name()?.to_str()?);
    Some(src.parent()?.join("cache").join(index.file_name()?).join(name))
}

/// A package of a lock file.
#[derive(serde::Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// The SHA-256 that the index states.
    checksum: Option<String>,
}

/// The packages of the manifest's lock; none where there is no lock yet.
fn locked(manifest: &Path) -> Vec<Locked> {
    #[derive(serde::Deserialize)]
    struct Lock {
        #[serde(default)]
        package: Vec<Locked>,
    }
    let text = std::fs::read_to_string(manifest.with_extension("lock"));
    let lock = text.ok().and_then(|text| toml::from_str::<Lock>(&text).ok());
    lock.map_or_else(Vec::new, |lock| lock.package)
}

/// The SHA-256 that the index states for a crate, from the manifest's lock.
fn stated_sum(manifest: &Path, wanted: &CrateSource) -> Option<String> {
    let is_wanted = |p: &Locked| p.name == wanted.name && p.version == wanted.version;
    locked(manifest).into_iter().find(is_wanted)?.checksum
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
