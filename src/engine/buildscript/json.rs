//! The JSON header that MLX's CMake files would fetch.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::missing::JSON;
use super::{BuildError, Variables};

/// Where a header of the system may be.
const FOLDERS: [&str; 3] = ["/usr/include", "/usr/local/include", "/opt/homebrew/include"];

/// The folder to give CMake as `FETCHCONTENT_SOURCE_DIR_JSON`, or nothing where
/// the user gives one. MLX includes `<json.hpp>` from a release's folder
/// `single_include/nlohmann`; that folder is made at `place`, of links to the
/// system's header and to the folder that header includes from.
///
/// # Errors
/// The header is nowhere, or the links cannot be made.
pub(super) fn folder(variables: &Variables, place: &Path) -> Result<Option<PathBuf>, BuildError> {
    if variables.get("FETCHCONTENT_SOURCE_DIR_JSON").is_some() {
        return Ok(None);
    }
    let prefixes = variables.get("CMAKE_PREFIX_PATH").map(std::env::split_paths);
    let prefixes = prefixes.into_iter().flatten().map(|p| p.join("include"));
    let system = FOLDERS.iter().map(PathBuf::from);
    let found =
        prefixes.chain(system).map(|f| f.join("nlohmann")).find(|f| f.join("json.hpp").is_file());
    let found = found.ok_or(BuildError::Missing { missing: &JSON })?;
    let made = place.join("single_include").join("nlohmann");
    fs::create_dir_all(&made).map_err(BuildError::io("make", &made))?;
    for (name, target) in [("json.hpp", found.join("json.hpp")), ("nlohmann", found)] {
        let link = made.join(name);
        if fs::read_link(&link).is_ok_and(|there| there == target) {
            continue;
        }
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).map_err(BuildError::io("remove", &link))?;
        }
        symlink(&target, &link).map_err(BuildError::io("make", &link))?;
    }
    Ok(Some(place.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_header_is_linked_as_a_release_lays_it() {
        let dir = tempfile::tempdir().unwrap();
        let system = dir.path().join("a b/include/nlohmann");
        fs::create_dir_all(&system).unwrap();
        fs::write(system.join("json.hpp"), "#include <nlohmann/x.hpp>").unwrap();
        let prefix = dir.path().join("a b");
        let variables = Variables::new([("CMAKE_PREFIX_PATH", prefix)]);
        let place = dir.path().join("json");
        for _ in 0..2 {
            assert_eq!(folder(&variables, &place).unwrap(), Some(place.clone()));
        }
        let root = place.join("single_include/nlohmann");
        assert!(root.join("json.hpp").is_file());
        assert!(root.join("nlohmann/json.hpp").is_file());
    }

    #[test]
    fn a_folder_that_the_user_gives_is_left_to_cmake() {
        let variables = Variables::new([("FETCHCONTENT_SOURCE_DIR_JSON", "/x")]);
        assert_eq!(folder(&variables, Path::new("/nowhere")).unwrap(), None);
    }
}
