//! What a user names by path. It decides the library by what it holds too, not
//! only by where it stands.

use std::fs;
use std::path::{Path, PathBuf};

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
/// A path is relative, leads nowhere, or cannot be read.
pub(super) fn given(variables: &Variables) -> Result<Vec<Given>, BuildError> {
    let sources = variables.beginning("FETCHCONTENT_SOURCE_DIR_").into_iter().map(|(name, _)| name);
    let mut given = Vec::new();
    for name in sources.chain(["CMAKE_TOOLCHAIN_FILE".to_owned()]) {
        if let Some(path) = variables.path(&name)? {
            if !path.exists() {
                return Err(refused(name, &path, "nothing is there"));
            }
            let digest = digest(&path)?;
            given.push(Given { name, path, digest });
        }
    }
    Ok(given)
}

/// Fails where something that is named changed since `before` was read.
///
/// # Errors
/// Names the variable, or those of [`given`].
pub(super) fn require_same(before: &[Given], variables: &Variables) -> Result<(), BuildError> {
    let now = given(variables)?;
    match before.iter().find(|was| !now.contains(was)) {
        None => Ok(()),
        Some(was) => {
            let why = "what it holds changed while MLX was built from it; build again";
            Err(refused(was.name.clone(), &was.path, why))
        }
    }
}

fn refused(name: String, path: &Path, why: &'static str) -> BuildError {
    BuildError::Variable { name, value: path.display().to_string(), why }
}

/// Of a file, or of every file below a folder with its name. What git keeps beside
/// the sources is none of them.
fn digest(path: &Path) -> Result<String, BuildError> {
    let mut hash = Sha256::new();
    let files = WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter();
    for entry in files.filter_entry(|e| e.depth() == 0 || e.file_name() != ".git") {
        let name = |of: &Path| of.strip_prefix(path).expect("the walk began there").to_path_buf();
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) => {
                // A link that leads nowhere, or back to a folder above it.
                let at = e.path().unwrap_or(path).to_path_buf();
                let link = fs::read_link(&at).map_err(|_| BuildError::Io {
                    doing: "read",
                    path: at.clone(),
                    source: e.into(),
                })?;
                add_file(&mut hash, &name(&at), link.as_os_str().as_encoded_bytes());
                continue;
            }
        };
        if entry.file_type().is_file() {
            let bytes = fs::read(entry.path()).map_err(BuildError::io("read", entry.path()))?;
            add_file(&mut hash, &name(entry.path()), &bytes);
        }
    }
    Ok(hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

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

        require_same(&second, &variables).unwrap();
        let error = require_same(&first, &variables).unwrap_err().to_string();
        assert!(error.starts_with("FETCHCONTENT_SOURCE_DIR_JSON is"), "{error}");

        // Links that lead nowhere, or back, are no fault of theirs.
        symlink("nowhere", json.join("dangling")).unwrap();
        symlink(".", json.join("loop")).unwrap();
        assert_ne!(given(&variables).unwrap()[0], second[0]);

        fs::remove_file(&toolchain).unwrap();
        let error = given(&variables).unwrap_err().to_string();
        assert!(error.starts_with("CMAKE_TOOLCHAIN_FILE is"), "{error}");
    }
}
