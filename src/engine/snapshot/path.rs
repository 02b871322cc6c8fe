//! Paths that stay inside their tree.

use std::fmt;
use std::str::FromStr;

use crate::reserved::is_git_folder;

/// The path of a file inside a tree: relative, `/` between its parts, UTF-8.
///
/// Made only by [`TreePath::new`], which refuses what could leave the tree or
/// reach into a repository's own folder; so code behind it may join it to a
/// root without looking again. (A symbolic link inside the tree is another
/// matter: whoever writes must not follow one.)
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Box<str>);

/// Why a name is no [`TreePath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The name is empty.
    #[error("the name is empty")]
    Empty,
    /// The name is not UTF-8; the tool does not guess an encoding.
    #[error("the name is not UTF-8")]
    Encoding,
    /// The name is absolute or has a drive letter.
    #[error("the name is absolute")]
    Absolute,
    /// A part of the name is empty, `.` or `..`.
    #[error("a part of the name is empty, `.` or `..`")]
    Escape,
    /// A part of the name is `.git`, or one that a file system takes for it.
    #[error("a part of the name is `.git`, or taken for it by some file system")]
    GitFolder,
    /// The name holds a NUL byte or a line break.
    #[error("the name holds a NUL byte or a line break")]
    Control,
}

impl TreePath {
    /// Checks `name` and owns it.
    ///
    /// # Errors
    /// Says which rule of a tree path `name` breaks.
    pub fn new(name: &str) -> Result<Self, PathError> {
        if name.is_empty() {
            return Err(PathError::Empty);
        }
        if name.bytes().any(|b| matches!(b, 0 | b'\n' | b'\r')) {
            return Err(PathError::Control);
        }
        let drive =
            name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
        if name.starts_with('/') || name.starts_with('\\') || drive {
            return Err(PathError::Absolute);
        }
        for part in name.split(['/', '\\']) {
            if matches!(part, "" | "." | "..") {
                return Err(PathError::Escape);
            }
            if is_git_folder(part) {
                return Err(PathError::GitFolder);
            }
        }
        Ok(Self(name.into()))
    }

    /// As [`TreePath::new`], from bytes as patches and trees hold them.
    ///
    /// # Errors
    /// Besides those of [`TreePath::new`], [`PathError::Encoding`].
    pub fn from_bytes(name: &[u8]) -> Result<Self, PathError> {
        Self::new(std::str::from_utf8(name).map_err(|_| PathError::Encoding)?)
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands in a folder of this name: no tree has both as files.
    #[must_use]
    pub fn is_in(&self, folder: &TreePath) -> bool {
        self.0.strip_prefix(&*folder.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The folders that hold the path, the outermost first.
    pub fn parents(&self) -> impl Iterator<Item = TreePath> {
        self.0.match_indices('/').map(|(at, _)| TreePath(self.0[..at].into()))
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for TreePath {
    type Err = PathError;
    fn from_str(name: &str) -> Result<Self, PathError> {
        Self::new(name)
    }
}

impl serde::Serialize for TreePath {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for TreePath {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let name = String::deserialize(d)?;
        Self::new(&name).map_err(|e| serde::de::Error::custom(format!("`{name}`: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_tree_are_refused() {
        for (name, why) in [
            ("", PathError::Empty),
            ("/etc/passwd", PathError::Absolute),
            ("c:/x", PathError::Absolute),
            ("\\\\host\\x", PathError::Absolute),
            ("a/../b", PathError::Escape),
            ("a\\..\\b", PathError::Escape),
            ("a//b", PathError::Escape),
            ("./a", PathError::Escape),
            ("a/.GIT/config", PathError::GitFolder),
            ("git~1/hooks/x", PathError::GitFolder),
            ("a\\.git ", PathError::GitFolder),
            ("a\nb", PathError::Control),
        ] {
            assert_eq!(TreePath::new(name), Err(why), "{name:?}");
        }
        assert_eq!(TreePath::from_bytes(b"h\xe9"), Err(PathError::Encoding));
        assert_eq!(TreePath::new("a b/hé.txt").map(|p| p.to_string()), Ok("a b/hé.txt".into()));
    }
}
