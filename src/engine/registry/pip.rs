//! Wheels, through the user's pip. A wheel is kept in the cache with its
//! SHA-256 beside it, and hashed before each use.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::cargo::hex;
use super::{Network, Registry, RegistryError};
use crate::cache::CacheError;
use crate::source::WheelSource;

impl Registry<'_> {
    /// The file of a wheel, downloaded if it is not there or not whole.
    /// `sha256` is what the file must have, where that is known; otherwise
    /// what it had when pip got it.
    ///
    /// # Errors
    /// Python or pip are missing or fail, the wheel is not here and may not be
    /// downloaded, or what pip gets has another sum, twice over.
    pub fn wheel(
        &self,
        wanted: &WheelSource,
        sha256: Option<&str>,
    ) -> Result<PathBuf, RegistryError> {
        let _lock = self.lock()?;
        let platform = wanted.platform.as_deref().unwrap_or("here");
        let folder =
            self.cache.folder(&format!("wheels/{}-{}-{platform}", wanted.name, wanted.version))?;
        let other = match kept(&folder, sha256)? {
            Kept::Whole(wheel) => return Ok(wheel),
            Kept::Other(other) => other,
        };
        if self.network == Network::OffLimits {
            let package = wanted.to_string();
            return Err(match other {
                Some(Other { path, found, wanted }) => {
                    RegistryError::KeptSum { package, path, found, wanted }
                }
                None => RegistryError::Offline { package },
            });
        }
        self.begin(&format!("downloading {wanted} with pip"));
        // pip keeps downloads of its own: the second time it must not use them.
        let first = self.download(wanted, &folder, sha256, &[]);
        match first {
            Err(RegistryError::Sum { .. }) => {
                self.download(wanted, &folder, sha256, &["--no-cache-dir"])
            }
            result => result,
        }
    }

    /// What pip says of itself.
    ///
    /// # Errors
    /// Python or pip are missing.
    pub fn pip_version(&self) -> Result<String, RegistryError> {
        let said = self.run("python3", &["-m", "pip", "--version"])?;
        Ok(said.trim_end().to_owned())
    }

    fn download(
        &self,
        wanted: &WheelSource,
        folder: &Path,
        sha256: Option<&str>,
        options: &[&str],
    ) -> Result<PathBuf, RegistryError> {
        let write = |source| CacheError::Write { path: folder.to_path_buf(), source };
        let aside = tempfile::tempdir_in(folder).map_err(write)?;
        let (place, package) =
            (aside.path().to_string_lossy(), format!("{}=={}", wanted.name, wanted.version));
        let mut arguments = vec![
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--no-input",
            "--disable-pip-version-check",
            "--progress-bar=off",
            "--dest",
            &place,
        ];
        arguments.extend_from_slice(options);
        if let Some(platform) = &wanted.platform {
            arguments.extend(["--platform", platform]);
        }
        arguments.push(&package);
        self.run("python3", &arguments)?;
        let fault = |what: &str| RegistryError::Answer {
            command: format!("python3 {}", arguments.join(" ")),
            what: what.to_owned(),
        };
        let wheels = wheels(aside.path())?;
        let [wheel] = &wheels[..] else {
            return Err(fault(&format!("{} wheels, and one was asked for", wheels.len())));
        };
        let found = sum(wheel)?;
        if let Some(wanted) = sha256.filter(|wanted| *wanted != found) {
            let (path, wanted) =
                (folder.join(wheel.file_name().unwrap_or_default()), wanted.into());
            return Err(RegistryError::Sum { path, found, wanted });
        }
        let to = folder.join(wheel.file_name().ok_or_else(|| fault("a file without a name"))?);
        fs::write(sum_file(&to), found).map_err(write)?;
        fs::rename(wheel, &to).map_err(write)?;
        Ok(to)
    }
}

/// What the cache has of a wheel.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    /// A whole one.
    Whole(PathBuf),
    /// None, or one whose sum is not the stated one.
    Other(Option<Other>),
}

/// A wheel with another sum than is stated.
#[derive(Debug, PartialEq, Eq)]
struct Other {
    path: PathBuf,
    found: String,
    wanted: String,
}

/// The wheel that is in the cache and whole; one that is not stays until
/// another takes its place.
fn kept(folder: &Path, sha256: Option<&str>) -> Result<Kept, RegistryError> {
    let mut other = None;
    for path in wheels(folder)? {
        let stated = match sha256 {
            Some(stated) => Some(stated.to_owned()),
            None => fs::read_to_string(sum_file(&path)).ok(),
        };
        // Where nothing is stated, or it cannot be read, nothing is known of it.
        let Some((wanted, found)) = stated.zip(sum(&path).ok()) else { continue };
        if found == wanted {
            return Ok(Kept::Whole(path));
        }
        other = Some(Other { path, found, wanted });
    }
    Ok(Kept::Other(other))
}

fn sum_file(wheel: &Path) -> PathBuf {
    wheel.with_extension("whl.sha256")
}

fn wheels(folder: &Path) -> Result<Vec<PathBuf>, RegistryError> {
    let failed = |source| RegistryError::Read { path: folder.to_path_buf(), source };
    let mut wheels = Vec::new();
    for item in fs::read_dir(folder).map_err(failed)? {
        let path = item.map_err(failed)?.path();
        if path.extension().is_some_and(|e| e == "whl") && path.is_file() {
            wheels.push(path);
        }
    }
    wheels.sort();
    Ok(wheels)
}

fn sum(file: &Path) -> Result<String, RegistryError> {
    let read = || {
        let mut hash = Sha256::new();
        let mut file = fs::File::open(file)?;
        let mut block = vec![0; 1 << 16];
        loop {
            match file.read(&mut block)? {
                0 => return Ok::<_, io::Error>(hex(&hash.finalize())),
                some => hash.update(&block[..some]),
            }
        }
    };
    read().map_err(|source| RegistryError::Read { path: file.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_that_is_not_whole_is_left_for_another_to_replace() {
        let dir = tempfile::tempdir().unwrap();
        let wheel = dir.path().join("a-1-py3-none-any.whl");
        let put = |bytes: &[u8]| fs::write(&wheel, bytes).unwrap();
        put(b"whole");
        let whole = sum(&wheel).unwrap();
        assert_eq!(kept(dir.path(), Some(&whole)).unwrap(), Kept::Whole(wheel.clone()));
        // Without a sum from the pin, the one beside it counts.
        fs::write(sum_file(&wheel), &whole).unwrap();
        assert_eq!(kept(dir.path(), None).unwrap(), Kept::Whole(wheel.clone()));
        put(b"who");
        let other =
            Other { path: wheel.clone(), found: sum(&wheel).unwrap(), wanted: whole.clone() };
        assert_eq!(kept(dir.path(), None).unwrap(), Kept::Other(Some(other)));
        assert!(wheel.exists(), "the sum that was asked for may be the fault");
        // And where no sum is known, nothing is trusted.
        put(b"whole");
        fs::remove_file(sum_file(&wheel)).unwrap();
        assert_eq!(kept(dir.path(), None).unwrap(), Kept::Other(None));
    }
}
