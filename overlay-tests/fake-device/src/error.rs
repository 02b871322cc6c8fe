//! What can keep the fake device from answering.

use std::io;
use std::path::{Path, PathBuf};

/// Why a build, or a conversation with the device, came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum FakeDeviceError {
    /// A program or a header is not installed.
    #[error("{what} is not there; install {package}")]
    Missing {
        /// The program, or the header.
        what: String,
        /// The Debian package that brings it.
        package: &'static str,
    },
    /// The folder is no MLX tree.
    #[error("{}: not an MLX tree: {missing} is missing", tree.display())]
    NotATree {
        /// The folder given.
        tree: PathBuf,
        /// The file looked for.
        missing: &'static str,
    },
    /// The tree is of a release whose routing was not written down.
    #[error(
        "{}: MLX {version}, whose routing nobody has read: read its quantized.cpp, then \
         src/rule.rs and src/release.rs",
        header.display()
    )]
    UnknownRelease {
        /// The version header.
        header: PathBuf,
        /// What it says.
        version: String,
    },
    /// A tool ran and failed.
    #[error("{what} failed:\n{said}")]
    Tool {
        /// The step.
        what: String,
        /// The end of what it printed.
        said: String,
    },
    /// The wheel does not hold Apple's C++ headers.
    #[error("{}: {why}", wheel.display())]
    Wheel {
        /// The file.
        wheel: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The harness could not get the wheel, or not compile the kernels.
    #[error(transparent)]
    Harness(#[from] mlx_overlay_harness::HarnessError),
    /// The process that holds the device ended, or said something else.
    #[error("the fake device {name}: {why}")]
    Device {
        /// Its architecture.
        name: String,
        /// What happened; MLX's own message where it threw.
        why: String,
    },
}

impl FakeDeviceError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_path_buf(), source }
    }
}
