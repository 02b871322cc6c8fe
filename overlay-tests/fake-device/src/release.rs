//! The MLX releases whose text the rule was read from.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::FakeDeviceError;

/// A release that [`crate::rule`] speaks for.
///
/// Both route alike. What v0.32.2 changed in `quantized.cpp` is the tile and the
/// names of NAX kernels and the order in which `affine_quantize` binds its
/// buffers; the sixth template parameter that it gave three kernels is the one
/// the series gives them at the pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 9a795735, whose version header says 0.32.1.
    Pin,
    /// v0.32.2.
    V0_32_2,
}

const HEADER: &str = "mlx/version.h";

impl Release {
    /// The release of a tree, by its version header.
    ///
    /// # Errors
    /// The header cannot be read, or names a release nobody read.
    pub fn of(tree: &Path) -> Result<Self, FakeDeviceError> {
        let header = tree.join(HEADER);
        let text = fs::read_to_string(&header).map_err(FakeDeviceError::io(&header))?;
        let number = |name: &str| {
            let define = format!("#define MLX_VERSION_{name} ");
            text.lines().find_map(|line| line.strip_prefix(&define)).unwrap_or("?").trim()
        };
        let version = ["MAJOR", "MINOR", "PATCH"].map(number).join(".");
        match version.as_str() {
            "0.32.1" => Ok(Self::Pin),
            "0.32.2" => Ok(Self::V0_32_2),
            _ => Err(FakeDeviceError::UnknownRelease { header, version }),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pin => "pin 9a795735",
            Self::V0_32_2 => "release v0.32.2",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_that_nobody_read_is_refused() {
        let tree = tempfile::tempdir().expect("a folder");
        fs::create_dir(tree.path().join("mlx")).expect("a folder");
        let of = |patch: &str| {
            let text = format!(
                "#define MLX_VERSION_MAJOR 0\n#define MLX_VERSION_MINOR 32\n\
                 #define MLX_VERSION_PATCH {patch}\n"
            );
            fs::write(tree.path().join(HEADER), text).expect("written");
            Release::of(tree.path())
        };
        assert_eq!(of("1").expect("the pin"), Release::Pin);
        assert_eq!(of("2").expect("v0.32.2"), Release::V0_32_2);
        let error = of("3").expect_err("nobody read it").to_string();
        assert!(error.contains("0.32.3") && error.contains("rule.rs"), "{error}");
    }
}
