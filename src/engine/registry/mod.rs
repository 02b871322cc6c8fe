//! Packages of the registries that the user's own cargo and pip are set up
//! for. No registry is named here, and nothing of a package is trusted that
//! nothing proves.

mod archive;
mod bridge;
mod cargo;
mod kept;
mod pip;
mod proven;
mod released;
mod tool;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::cache::{Cache, CacheError, Lock};
use crate::progress::Progress;
use crate::snapshot::ObjectId;

pub use self::proven::{Coverage, Part, ProvenTree};
pub use self::released::Released;

/// What is needed to ask the registries.
pub struct Registry<'a> {
    /// Where manifests and wheels are kept.
    pub cache: &'a Cache,
    /// Whether the network may be used.
    pub network: Network,
    /// Is told what takes long.
    pub progress: &'a dyn Progress,
    /// Variables that cargo and pip get besides those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// cargo's home, where it keeps the archives that it fetched. Where it is
    /// not told, an archive that was damaged there is not found.
    pub cargo_home: Option<PathBuf>,
}

/// Whether the network may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// It may.
    Allowed,
    /// It may not: what is on this machine must do.
    OffLimits,
}

/// Why a package is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A program is not on the path.
    #[error("`{program}` is not on the path; `overlay doctor` says how to get it")]
    NoTool {
        /// The program.
        program: &'static str,
    },
    /// A program cannot be run.
    #[error("`{program}` cannot be run")]
    Run {
        /// The program.
        program: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed ({status}): {said}")]
    Tool {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// The end of what it wrote to standard error.
        said: String,
    },
    /// A program did not end in time and was stopped.
    #[error("`{command}` was stopped after {} s", limit.as_secs())]
    TooLong {
        /// The command line.
        command: String,
        /// How long it had.
        limit: Duration,
    },
    /// It is not on this machine, and the network may not be used.
    #[error("{package} is not on this machine, and the network is off limits")]
    Offline {
        /// The package.
        package: String,
    },
    /// What cargo fetched was damaged since, and the network may not be used.
    #[error(
        "{package}: `{}` is damaged, and the network is off limits: without --offline it is \
         fetched again",
        path.display()
    )]
    Archive {
        /// The package.
        package: String,
        /// The archive in cargo's home, of the package or of one it depends on.
        path: PathBuf,
    },
    /// A wheel on this machine has another sum than is stated, and the network may
    /// not be used.
    #[error(
        "{package}: `{}` has the SHA-256 {found}, and {wanted} is stated; the network is off \
         limits: without --offline it is fetched again",
        path.display()
    )]
    KeptSum {
        /// The package.
        package: String,
        /// The file in the cache.
        path: PathBuf,
        /// The sum it has.
        found: String,
        /// The sum stated, by the pin or else when it was downloaded.
        wanted: String,
    },
    /// A tool's answer has another form than it documents.
    #[error("`{command}` gave an answer that cannot be read: {what}")]
    Answer {
        /// The command line.
        command: String,
        /// What is wrong with it.
        what: String,
    },
    /// The downloaded file is not the one the pin states, twice over.
    #[error("{}: has the SHA-256 {found}, and {wanted} is stated; it was fetched twice", path.display())]
    Sum {
        /// The file.
        path: PathBuf,
        /// The sum it has.
        found: String,
        /// The sum stated.
        wanted: String,
    },
    /// The package lacks the folder.
    #[error("{package} has no folder `{folder}`")]
    NoFolder {
        /// The package.
        package: String,
        /// The folder.
        folder: String,
    },
    /// A file is not the package's own, by the sums that cargo put beside it.
    #[error(
        "{package}: `{}` is not as `{SUMS}` says; vendor the package again",
        path.display()
    )]
    Damaged {
        /// The package.
        package: String,
        /// The file.
        path: PathBuf,
    },
    /// A released tree is another than the pin states.
    #[error(
        "{package} is the tree {found}, and mlx-pin.toml states {stated}: state what it is, or \
         name another package"
    )]
    OtherTree {
        /// The package, with its folder.
        package: String,
        /// Its tree.
        found: ObjectId,
        /// The one stated.
        stated: ObjectId,
    },
    /// A vendored tree is as cargo wrote it, and not the tree that is stated.
    #[error(
        "{package} is vendored, and `cargo vendor` leaves files out (each .gitignore and \
         .gitattributes): every file is as `{SUMS}` says, and the whole could not be compared \
         with the tree {stated} of mlx-pin.toml"
    )]
    Vendored {
        /// The package, with its folder.
        package: String,
        /// The tree stated.
        stated: ObjectId,
    },
    /// A file of the package cannot be read.
    #[error("{}: cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of cargo's that was to be made anew cannot be written.
    #[error("{}: cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A name in the package that no safe tree has.
    #[error("{package} holds a file named `{name}`")]
    Name {
        /// The package.
        package: String,
        /// The name.
        name: String,
        /// The rule it breaks.
        #[source]
        source: crate::snapshot::PathError,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// What `cargo vendor` writes beside a package: the SHA-256 of each of its files.
const SUMS: &str = ".cargo-checksum.json";
/// What cargo puts beside the files of a package once all of it is unpacked.
const MARKER: &str = ".cargo-ok";

impl<'a> Registry<'a> {
    /// The registries, through cargo and pip as this process would run them.
    #[must_use]
    pub fn new(cache: &'a Cache, network: Network, progress: &'a dyn Progress) -> Self {
        Self { cache, network, progress, environment: Vec::new(), cargo_home: None }
    }

    fn begin(&self, what: &str) {
        self.progress.tell(crate::progress::Event::Begin(what));
    }

    fn lock(&self) -> Result<Lock, CacheError> {
        let folder = self.cache.folder("")?;
        Lock::wait(&folder.join("registry.lock"), "fetching packages", self.progress)
    }
}
