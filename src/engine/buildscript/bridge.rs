//! Whether the C++ bridge must be compiled again.
//!
//! A build script that runs again would compile everything it compiles. So the
//! bridge has a stamp: a digest of its own sources and flags, and one of each
//! MLX header that its compiler read. A series that changes no such header
//! leaves the bridge alone.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::BuildError;
use super::inputs::hex;

const STAMP: &str = "bridge.json";

/// The bridge, as far as it can be told whether it is fresh.
#[derive(Clone, Debug)]
pub struct Bridge {
    stamp: PathBuf,
    archive: PathBuf,
    own: String,
}

/// What the bridge was compiled from, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeStamp {
    /// The digest of its own sources and flags.
    own: String,
    /// The archive's size in bytes.
    archive: u64,
    /// The headers of MLX that it read, relative to their root, and their
    /// digests.
    headers: Vec<(PathBuf, String)>,
}

impl Bridge {
    /// The bridge whose archive is `archive`; the stamp stands beside it.
    /// `sources` are the files it is compiled from, `flags` the compiler, its
    /// version and its arguments (without the place of MLX's headers).
    ///
    /// # Errors
    /// A source cannot be read.
    pub fn new(archive: &Path, sources: &[PathBuf], flags: &[String]) -> Result<Self, BuildError> {
        let mut hash = Sha256::new();
        let mut feed = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        flags.iter().for_each(|flag| feed(flag.as_bytes()));
        for source in sources {
            feed(&fs::read(source).map_err(BuildError::io("read", source))?);
        }
        let stamp = archive.with_file_name(STAMP);
        Ok(Self { stamp, archive: archive.to_path_buf(), own: hex(&hash.finalize()) })
    }

    /// Whether the archive is there and made of what is there now; `include`
    /// is the root of MLX's headers.
    #[must_use]
    pub fn is_fresh(&self, include: &Path) -> bool {
        let stamp = fs::read(&self.stamp).ok();
        let stamp = stamp.and_then(|s| serde_json::from_slice::<BridgeStamp>(&s).ok());
        let size = fs::metadata(&self.archive).map(|m| m.len()).ok();
        stamp.is_some_and(|s| {
            let header = |(name, digest): &(PathBuf, String)| {
                digest_of(&include.join(name)).is_ok_and(|now| now == *digest)
            };
            s.own == self.own && Some(s.archive) == size && s.headers.iter().all(header)
        })
    }

    /// Takes the stamp away, before the bridge is compiled: a compiler that is
    /// stopped must not leave an old stamp beside half an archive.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn forget(&self) -> Result<(), BuildError> {
        match fs::remove_file(&self.stamp) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(BuildError::io("remove", &self.stamp)(e))
            }
            _ => Ok(()),
        }
    }

    /// Writes the stamp of a bridge just compiled; `read` are the files that
    /// the compiler read.
    ///
    /// # Errors
    /// A header is gone, or the stamp cannot be written.
    pub fn remember(&self, include: &Path, read: &[PathBuf]) -> Result<(), BuildError> {
        let mut headers = Vec::new();
        for path in read {
            if let Ok(name) = path.strip_prefix(include) {
                headers.push((name.to_path_buf(), digest_of(path)?));
            }
        }
        headers.sort();
        headers.dedup();
        let archive = fs::metadata(&self.archive).map_err(BuildError::io("read", &self.archive))?;
        let stamp = BridgeStamp { own: self.own.clone(), archive: archive.len(), headers };
        let text = serde_json::to_vec_pretty(&stamp).expect("a stamp holds nothing JSON cannot");
        fs::write(&self.stamp, text).map_err(BuildError::io("write", &self.stamp))
    }
}

fn digest_of(path: &Path) -> Result<String, BuildError> {
    let bytes = fs::read(path).map_err(BuildError::io("read", path))?;
    Ok(hex(&Sha256::digest(&bytes)))
}

/// The prerequisites in a file of `-MD`, as gcc and clang write them: blanks
/// and `#` behind a backslash, `$` doubled, lines continued by a backslash.
#[must_use]
pub fn parse_depfile(text: &str) -> Vec<PathBuf> {
    let Some((_, list)) = text.split_once(": ") else { return vec![] };
    let (mut paths, mut name) = (Vec::new(), String::new());
    let mut end = |name: &mut String| {
        if !name.is_empty() {
            paths.push(PathBuf::from(std::mem::take(name)));
        }
    };
    let mut rest = list.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\\', Some(' ' | '#' | '\\')) => name.extend(rest.next()),
            ('\\', Some('\n' | '\r')) => end(&mut name),
            ('$', Some('$')) => name.extend(rest.next()),
            (c, _) if c.is_whitespace() => end(&mut name),
            (c, _) => name.push(c),
        }
    }
    end(&mut name);
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depfile_is_read_with_its_escapes() {
        let text = "a.o: src/b.cpp \\\n /my\\ files/c.h \\\n  /x/$$y.h d\\#.h\n";
        let names = ["src/b.cpp", "/my files/c.h", "/x/$y.h", "d#.h"];
        assert_eq!(parse_depfile(text), names.map(PathBuf::from));
    }

    #[test]
    fn only_its_own_inputs_make_a_bridge_stale() {
        let dir = tempfile::tempdir().unwrap();
        let at = |n: &str| dir.path().join(n);
        for root in ["one", "two"] {
            fs::create_dir_all(at(root).join("mlx")).unwrap();
            fs::write(at(root).join("mlx/used.h"), "used").unwrap();
            fs::write(at(root).join("mlx/unused.h"), root).unwrap();
        }
        fs::write(at("bridge.cpp"), "bridge").unwrap();
        fs::write(at("libbridge.a"), "archive").unwrap();
        let sources = [at("bridge.cpp")];
        let bridge =
            |flags: &str| Bridge::new(&at("libbridge.a"), &sources, &[flags.into()]).unwrap();

        assert!(!bridge("-O1").is_fresh(&at("one")), "it was never compiled");
        let read = [at("bridge.cpp"), at("one/mlx/used.h"), "/usr/include/stdio.h".into()];
        bridge("-O1").remember(&at("one"), &read).unwrap();
        assert!(bridge("-O1").is_fresh(&at("one")));
        assert!(bridge("-O1").is_fresh(&at("two")), "an unused header may differ");
        assert!(!bridge("-O2").is_fresh(&at("two")));

        fs::write(at("two/mlx/used.h"), "other").unwrap();
        assert!(!bridge("-O1").is_fresh(&at("two")));
        fs::write(at("bridge.cpp"), "another").unwrap();
        assert!(!bridge("-O1").is_fresh(&at("one")));
        fs::write(at("bridge.cpp"), "bridge").unwrap();
        assert!(bridge("-O1").is_fresh(&at("one")));
        fs::write(at("libbridge.a"), "arch").unwrap();
        assert!(!bridge("-O1").is_fresh(&at("one")), "a cut archive");
        bridge("-O1").forget().unwrap();
        bridge("-O1").forget().unwrap();
    }
}
