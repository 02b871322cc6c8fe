//! What a build script needs to link the MLX that the overlay was laid on.
//!
//! The script calls [`library`] and prints what the answer says; nothing here
//! prints, and cargo's variables are read from what the script passes in. The
//! network is never touched.
//!
//! ```text
//! <cache>/mlx/builds/<build key>/     one a (pin, source, toolchain, flags, target, features)
//!     lock                            held while somebody builds here
//!     src/                            a copy of the laid tree, kept in step file by file
//!     build/                          CMake's folder: incremental
//!     build.log                       what CMake and the compiler said last
//! <cache>/mlx/libraries/<library key>/    finished, never changed: the build key's facts
//!     include/ lib/ library.json          and the digest of the laid tree
//! ```
//!
//! The copy is why a tree may be read-only, move, or be laid anew while MLX is
//! built: the digest in the library's key is of the very bytes that were
//! compiled. It also keeps the layout that ccache sees the same everywhere.

mod bridge;
mod cmake;
mod given;
mod inputs;
mod json;
mod key;
mod library;
mod missing;
mod recipe;
mod store;
mod tree;
mod variables;

use std::io;
use std::path::{Path, PathBuf};

use crate::cache::CacheError;

pub use bridge::{Bridge, BridgeStamp, parse_depfile};
pub use inputs::{Inputs, Staged};
pub use key::{BuildKey, LibraryKey};
pub use library::{Built, Directive, Mlx, library};
pub use missing::Missing;
pub use recipe::{Backends, Platform, Recipe};
pub use store::{Library, Link, Store};
pub use tree::{LaidTree, TREE_VARIABLE};
pub use variables::Variables;

/// The project whose pin and series are laid, where it is not this crate's own.
pub const DIR_VARIABLE: &str = "MLX_OVERLAY_DIR";

/// Why MLX cannot be linked.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A variable that cargo sets is not there.
    #[error("{name} is not set: this runs in a build script, and cargo sets it there")]
    NotCargo {
        /// The variable.
        name: &'static str,
    },
    /// A variable has a value that has no meaning.
    #[error("{name} is `{value}`: {why}")]
    Variable {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// What it is to be.
        why: &'static str,
    },
    /// There is no cache folder.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// There is no laid tree.
    #[error("no laid tree: {why}")]
    NoTree {
        /// Where it was looked for and what was wrong there.
        why: String,
        /// What to run.
        remedies: Vec<String>,
    },
    /// The platform cannot be built for from here.
    #[error("MLX cannot be built for {target} here: {why}")]
    Platform {
        /// The target.
        target: String,
        /// Why not, and what would help.
        why: &'static str,
    },
    /// Something that MLX's build needs is not installed.
    #[error("{missing}")]
    Missing {
        /// What.
        missing: &'static Missing,
    },
    /// CMake or the compiler failed.
    #[error("MLX's build failed while {doing}; its last lines:\n{tail}\nthe whole log: {}", log.display())]
    Failed {
        /// `configuring` or `compiling`.
        doing: &'static str,
        /// The last lines of the log.
        tail: String,
        /// The log.
        log: PathBuf,
        /// What the log says is not installed, where it says so.
        missing: Option<&'static Missing>,
    },
    /// A file or folder refused.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was tried: a verb.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file that MLX's build or an earlier one left has another form.
    #[error("`{}` has another form: {why}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl BuildError {
    /// What to do next, a sentence each.
    #[must_use]
    pub fn remedies(&self) -> Vec<String> {
        match self {
            BuildError::NoTree { remedies, .. } => remedies.clone(),
            BuildError::Missing { missing } | BuildError::Failed { missing: Some(missing), .. } => {
                missing.remedies()
            }
            _ => vec![],
        }
    }

    fn io<'p>(doing: &'static str, path: &'p Path) -> impl Fn(io::Error) -> Self + use<'p> {
        move |source| BuildError::Io { doing, path: path.to_path_buf(), source }
    }
}
