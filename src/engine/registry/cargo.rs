//! Crates, through the user's cargo: a throw-away manifest for each, since
//! crates that bind one native library cannot stand in one graph.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Network, Registry, RegistryError};
use crate::source::CrateSource;

impl Registry<'_> {
    /// The folder of a crate's unpacked source, fetched if it is not there.
    ///
    /// # Errors
    /// cargo is missing or fails, or the crate is not here and may not be
    /// fetched.
    pub fn crate_source(&self, wanted: &CrateSource) -> Result<PathBuf, RegistryError> {
        let _lock = self.lock()?;
        let manifest = self.manifest(wanted)?;
        let text = manifest.to_string_lossy().into_owned();
        match (self.unpacked(wanted, &text), self.network) {
            (Ok(folder), _) => Ok(folder),
            (Err(none @ RegistryError::NoTool { .. }), _) => Err(none),
            (Err(_), Network::OffLimits) => {
                Err(RegistryError::Offline { package: wanted.to_string() })
            }
            (Err(_), Network::Allowed) => {
                self.begin(&format!("fetching {wanted} with cargo"));
                self.run("cargo", &["fetch", "--color", "never", "--manifest-path", &text])?;
                self.unpacked(wanted, &text)
            }
        }
    }

    /// As [`Registry::crate_source`], for a crate whose unpacked source at
    /// `folder` was found to be another than it was: cargo unpacks it again,
    /// and fetches it again if its archive is not what the index states. A
    /// folder that is not cargo's own unpacking is left as it is.
    ///
    /// # Errors
    /// Those of [`Registry::crate_source`].
    pub(super) fn mend_crate(
        &self,
        wanted: &CrateSource,
        folder: &Path,
    ) -> Result<(), RegistryError> {
        let _lock = self.lock()?;
        let marker = folder.join(".cargo-ok");
        if !marker.is_file() {
            return Ok(());
        }
        let manifest = self.manifest(wanted)?;
        let text = manifest.to_string_lossy().into_owned();
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| RegistryError::Read { path, source }
        };
        if self.network == Network::Allowed
            && let Some(archive) = archive_of(folder)
            && let Some(stated) = stated_sum(&manifest, wanted)
        {
            let bytes = std::fs::read(&archive).map_err(failed(&archive))?;
            if hex(&Sha256::digest(&bytes)) != stated {
                std::fs::remove_file(&archive).map_err(failed(&archive))?;
            }
        }
        // cargo clears and unpacks a folder whose marker it cannot read.
        std::fs::write(&marker, "damaged").map_err(failed(&marker))?;
        self.begin(&format!("unpacking {wanted} again with cargo"));
        let mut arguments = vec!["fetch", "--color", "never", "--manifest-path", &text];
        if self.network == Network::OffLimits {
            arguments.push("--offline");
        }
        self.run("cargo", &arguments).map(drop)
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

/// The archive that cargo unpacked to `…/registry/src/<index>/<package>`.
fn archive_of(folder: &Path) -> Option<PathBuf> {
    let (index, src) = (folder.parent()?, folder.parent()?.parent()?);
    let name = format!("{}.crate", folder.file_name()?.to_str()?);
    let archive = src.parent()?.join("cache").join(index.file_name()?).join(name);
    archive.is_file().then_some(archive)
}

/// The SHA-256 that the index states for a crate, from the manifest's lock.
fn stated_sum(manifest: &Path, wanted: &CrateSource) -> Option<String> {
    let lock = std::fs::read_to_string(manifest.with_extension("lock")).ok()?;
    let lock: toml::Table = toml::from_str(&lock).ok()?;
    let is = |p: &&toml::Value, key: &str, value: &str| {
        p.get(key).and_then(toml::Value::as_str) == Some(value)
    };
    let packages = lock.get("package")?.as_array()?;
    let package = packages
        .iter()
        .find(|p| is(p, "name", &wanted.name) && is(p, "version", &wanted.version))?;
    package.get("checksum")?.as_str().map(str::to_owned)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
