//! What a user names by path. It decides the library by what it holds, not by
//! where it stands.

use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use super::inputs::{add_file, hex};
use super::{BuildError, Variables};

/// A file or a folder that a variable names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// The variable.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// The SHA-256 of what it holds, in hexadecimal digits.
    pub digest: String,
}

/// What the variables name: CMake's toolchain file, and the sources that MLX
/// would fetch.
///
/// # Errors
/// A path is relative, or cannot be read.
pub(super) fn given(variables: &Variables) -> Result<Vec<Given>, BuildError> {
    let sources = variables.beginning("FETCHCONTENT_SOURCE_DIR_").into_iter().map(|(name, _)| name);
    let mut given = Vec::new();
    for name in sources.chain(["CMAKE_TOOLCHAIN_FILE".to_owned()]) {
        if let Some(path) = variables.path(&name)? {
            let digest = digest(&path)?;
            given.push(Given { name, path, digest });
        }
    }
    Ok(given)
}

/// Of a file, or of every file below a folder with its name. What git keeps beside
/// the sources is none of them.
fn digest(path: &PathBuf) -> Result<String, BuildError> {
    let mut hash = Sha256::new();
    let files = WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter();
    for entry in files.filter_entry(|e| e.depth() == 0 || e.file_name() != ".git") {
        let entry = entry.map_err(|e| BuildError::Io {
            doing: "read",
            path: e.path().unwrap_or(path).to_path_buf(),
            source: e.into(),
        })?;
        if entry.file_type().is_file() {
            let bytes = fs::read(entry.path()).map_err(BuildError::io("read", entry.path()))?;
            let name = entry.path().strip_prefix(path).expect("the walk began there");
            add_file(&mut hash, name, &bytes);
        }
    }
    Ok(hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_counts_by_what_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let (json, toolchain) = (dir.path().join("json"), dir.path().join("t.cmake"));
        fs::create_dir_all(json.join(".git")).unwrap();
        fs::write(json.join("json.hpp"), "a").unwrap();
        fs::write(&toolchain, "set(A 1)").unwrap();
        let variables = Variables::new([
            ("FETCHCONTENT_SOURCE_DIR_JSON", &json),
            ("CMAKE_TOOLCHAIN_FILE", &toolchain),
        ]);
        let first = given(&variables).unwrap();
        assert_eq!(first.iter().map(|g| &g.path).collect::<Vec<_>>(), [&json, &toolchain]);
        fs::write(json.join(".git/index"), "x").unwrap();
        assert_eq!(given(&variables).unwrap(), first);
        fs::write(json.join("json.hpp"), "b").unwrap();
        fs::write(&toolchain, "set(A 2)").unwrap();
        let second = given(&variables).unwrap();
        assert!(first.iter().zip(&second).all(|(a, b)| a.digest != b.digest), "{second:?}");

        fs::remove_file(&toolchain).unwrap();
        let error = given(&variables).unwrap_err().to_string();
        assert!(error.contains("t.cmake"), "{error}");
    }
}
