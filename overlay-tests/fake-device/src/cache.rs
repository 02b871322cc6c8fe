//! Where finished things are kept.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::FakeDeviceError;

/// The tool's cache folder: `$MLX_OVERLAY_CACHE`, or `mlx-overlay` in the
/// user's cache folder.
///
/// # Errors
/// The environment names no folder at all.
pub fn folder() -> Result<PathBuf, FakeDeviceError> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    variable("MLX_OVERLAY_CACHE")
        .map(PathBuf::from)
        .or_else(|| variable("XDG_CACHE_HOME").map(|dir| PathBuf::from(dir).join("mlx-overlay")))
        .or_else(|| variable("HOME").map(|dir| PathBuf::from(dir).join(".cache/mlx-overlay")))
        .ok_or(FakeDeviceError::Missing {
            what: "a cache folder ($MLX_OVERLAY_CACHE, $XDG_CACHE_HOME, $HOME)".into(),
            package: "nothing: set one of them",
        })
}

/// SHA-256 over parts, each with its length.
#[derive(Default)]
pub(crate) struct Key(Sha256);

impl Key {
    pub(crate) fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    pub(crate) fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
