//! The stamp: what a published tree says of itself.
//!
//! It stands in the tree as [`STAMP`] and comes and goes with it, so that tree
//! and stamp are exchanged in one step. Besides where the tree came from it
//! holds a line for each file: what `stat` told when it was written, and its
//! blob id. A tree whose every `stat` still fits is taken as unchanged, and a
//! file whose `stat` differs is hashed, as git does with its index.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::snapshot::{Mode, ObjectId, TreePath};

/// The stamp's name at the root of a published tree.
pub const STAMP: &str = ".overlay-stamp.json";

/// The version of this engine, as stamps name it. Two engines may lay the same
/// series differently, so a tree of another one is laid anew.
pub const ENGINE: &str = env!("CARGO_PKG_VERSION");

const SCHEMA: &str = "mlx-overlay/stamp";
const VERSION: u32 = 1;

/// Where a published tree came from. Two publications of one identity by one
/// engine are the same tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The commit the series was made for.
    pub pin: ObjectId,
    /// The files below the series.
    pub source: Source,
    /// A digest of the ordered bytes of the series, such as `sha256:…`.
    pub series: String,
    /// A digest of the contracts that were found to hold.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub contracts: String,
    /// The groups laid, sorted; empty means all.
    pub groups: Vec<String>,
    /// Set where not every file of the pin is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// Set where the series lies on another tree than the pin's: that tree's
    /// name, such as `crate:mlxrs-sys@0.2.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<String>,
}

/// The files below the series: what kind of source they came from, and a name
/// for exactly these bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// A whole git tree, its root id checked.
    Git {
        /// The root tree.
        tree: ObjectId,
    },
    /// Files of released packages, each proven by its blob id.
    Snapshot {
        /// A digest over the listing of what is there.
        digest: String,
        /// The packages, in the order they were asked.
        from: Vec<String>,
    },
    /// A folder or released tree taken as it is.
    Release {
        /// A digest over its listing.
        digest: String,
    },
}

/// How much of the pin a partial tree holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partial {
    /// Files there.
    pub have: usize,
    /// Files the pin lists.
    pub of: usize,
}

/// A file as it was when it was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Where it stands.
    pub path: TreePath,
    /// What kind of entry it is.
    #[serde(with = "mode")]
    pub mode: Mode,
    /// Its length in bytes.
    pub size: u64,
    /// When it was written, in nanoseconds since 1970.
    pub mtime: i64,
    /// Its blob id.
    pub id: ObjectId,
}

/// A mode as git writes it, in octal.
pub(crate) mod mode {
    use super::Mode;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(mode: &Mode, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(mode.as_str())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Mode, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(d)?;
        Mode::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is no mode")))
    }
}

/// A stamp, read or to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Where the tree came from.
    pub identity: Identity,
    /// The engine that laid it.
    pub engine: String,
    /// Its files, in byte order of their paths.
    pub files: Vec<Recorded>,
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Stored<I, F> {
    schema: String,
    version: u32,
    engine: String,
    #[serde(flatten)]
    identity: I,
    files: F,
}

/// Why a stamp could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StampError {
    /// It is not there.
    #[error("`{}` holds no published tree: {STAMP} is missing", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The stamp.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It was written in a form that this engine does not know.
    #[error("`{}` is of version {version}; this engine ({ENGINE}) reads version {VERSION}, so that \
             hand edits in the tree cannot be told; the newer overlay tells them", path.display())]
    Version {
        /// The stamp.
        path: PathBuf,
        /// The version it names.
        version: u32,
    },
    /// It is no stamp, or a damaged one.
    #[error("`{}` is damaged ({why}), so that hand edits in the tree cannot be told",
            path.display())]
    Damaged {
        /// The stamp.
        path: PathBuf,
        /// What is wrong, with line and column.
        why: String,
    },
}

impl StampError {
    /// A tree was published, and what was in it cannot be told any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Version { .. } | Self::Damaged { .. })
    }
}

impl Stamp {
    /// Reads the stamp of the tree at `folder`. The time beside it is the
    /// stamp's own, in nanoseconds since 1970: a file that is not older may
    /// have been written again within one tick of the clock.
    ///
    /// # Errors
    /// It is missing, unreadable, damaged or of another version.
    pub(super) fn read(folder: &Path) -> Result<(Self, i64), StampError> {
        let path = folder.join(STAMP);
        let lost = |source| StampError::Read { path: path.clone(), source };
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                return Err(StampError::Missing { folder: folder.into() });
            }
            Err(e) => return Err(lost(e)),
        };
        let damaged = |why: String| StampError::Damaged { path: path.clone(), why };
        let kind = super::place::kind(&meta).unwrap_or("a folder");
        let stat = crate::disk::Stat::of(&meta)
            .filter(|s| s.mode != Mode::Symlink)
            .ok_or_else(|| damaged(format!("it is {kind}")))?;
        let bytes = crate::disk::read(&path, stat.mode).map_err(lost)?;
        let stored = serde_json::from_slice::<Stored<Identity, Vec<Recorded>>>(&bytes);
        let stored = match stored {
            Ok(stored) if stored.schema == SCHEMA && stored.version == VERSION => stored,
            other => {
                #[derive(Deserialize)]
                struct Head {
                    schema: String,
                    version: u32,
                }
                let why = other.err().map_or_else(|| "it is no stamp".into(), |e| e.to_string());
                return Err(match serde_json::from_slice::<Head>(&bytes) {
                    Ok(head) if head.schema == SCHEMA && head.version != VERSION => {
                        StampError::Version { path: path.clone(), version: head.version }
                    }
                    _ => damaged(why),
                });
            }
        };
        let Stored { identity, engine, files, .. } = stored;
        if !files.is_sorted_by(|a, b| a.path < b.path) {
            return Err(damaged("its files are out of order".into()));
        }
        Ok((Self { identity, engine, files }, stat.mtime))
    }

    /// Writes the stamp to `path`, which must not be there yet, down to the
    /// disk.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let stored = Stored {
            schema: SCHEMA.into(),
            version: VERSION,
            engine: self.engine.clone(),
            identity: &self.identity,
            files: &self.files,
        };
        let bytes = serde_json::to_vec(&stored).map_err(io::Error::other)?;
        let mut file = fs::File::create_new(path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        // Last, and not synced: the time that it took to reach the disk makes
        // the stamp younger than the files that were written just before it,
        // which would be hashed at every look otherwise.
        file.write_all(b"\n")
    }
}
