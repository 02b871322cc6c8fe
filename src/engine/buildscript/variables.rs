//! The variables a build script runs under, and which of them were asked for.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::BuildError;

/// The variables of the environment, passed in by the build script. Remembers
/// what was asked for: those are what a change of must run the script again.
pub struct Variables {
    all: BTreeMap<OsString, OsString>,
    asked: RefCell<BTreeSet<String>>,
}

/// Variables that cargo sets itself and watches without being told.
fn is_cargos(name: &str) -> bool {
    const OWN: [&str; 6] = ["OUT_DIR", "TARGET", "HOST", "NUM_JOBS", "OPT_LEVEL", "DOCS_RS"];
    name.starts_with("CARGO_") || OWN.contains(&name)
}

impl Variables {
    /// Takes the environment over.
    pub fn new<K: Into<OsString>, V: Into<OsString>>(
        all: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let all = all.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Self { all, asked: RefCell::default() }
    }

    /// The value of `name`; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.asked.borrow_mut().insert(name.to_owned());
        self.all.get(OsStr::new(name)).map(OsString::as_os_str).filter(|v| !v.is_empty())
    }

    /// Counts these as asked for.
    pub fn watch(&self, names: &[&str]) {
        self.asked.borrow_mut().extend(names.iter().map(|n| (*n).to_owned()));
    }

    /// As [`Variables::get`], as text; what is not UTF-8 is replaced.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|v| v.to_string_lossy().into_owned())
    }

    /// A path, which must be absolute: a build script runs in a folder that its
    /// user did not choose.
    ///
    /// # Errors
    /// It is relative.
    pub fn path(&self, name: &str) -> Result<Option<PathBuf>, BuildError> {
        let Some(path) = self.get(name).map(PathBuf::from) else { return Ok(None) };
        if path.is_absolute() {
            return Ok(Some(path));
        }
        Err(BuildError::Variable {
            name: name.to_owned(),
            value: path.display().to_string(),
            why: "an absolute path is wanted, for a build script runs in its package's folder",
        })
    }

    /// A variable that cargo always sets.
    ///
    /// # Errors
    /// It is not set.
    pub fn cargos(&self, name: &'static str) -> Result<String, BuildError> {
        self.text(name).ok_or(BuildError::NotCargo { name })
    }

    /// The variables whose name begins so, each counted as asked for.
    pub fn beginning(&self, prefix: &str) -> Vec<(String, OsString)> {
        let named = self.all.iter().filter_map(|(k, v)| Some((k.to_str()?, v)));
        let found: Vec<_> = named
            .filter(|(k, v)| k.starts_with(prefix) && !v.is_empty())
            .map(|(k, v)| (k.to_owned(), v.clone()))
            .collect();
        self.asked.borrow_mut().extend(found.iter().map(|(k, _)| k.clone()));
        found
    }

    /// Every variable asked for so far that cargo does not watch by itself.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.borrow().iter().filter(|n| !is_cargos(n)).cloned().collect()
    }

    /// The program `name` in the folders of `PATH`.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        // A change of PATH alone is no reason to build MLX again, so it is not
        // counted as asked for.
        let folders = self.all.get(OsStr::new("PATH"))?;
        std::env::split_paths(folders).map(|f| f.join(name)).find(|p| p.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_what_is_watched() {
        let v =
            Variables::new([("CXX", "clang++"), ("CMAKE_A", "1"), ("TARGET", "t"), ("PATH", "")]);
        assert_eq!(v.text("CXX").as_deref(), Some("clang++"));
        assert_eq!(v.text("CXXFLAGS"), None);
        assert_eq!(v.cargos("TARGET").unwrap(), "t");
        assert_eq!(v.beginning("CMAKE_").len(), 1);
        assert_eq!(v.asked(), ["CMAKE_A", "CXX", "CXXFLAGS"]);
    }

    #[test]
    fn a_relative_path_is_refused() {
        let v = Variables::new([("MLX_OVERLAY_TREE", "some/where")]);
        let error = v.path("MLX_OVERLAY_TREE").unwrap_err().to_string();
        assert!(error.contains("MLX_OVERLAY_TREE is `some/where`"), "{error}");
    }
}
