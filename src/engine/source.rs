//! Names of sources: a tree inside a package of a registry.

use std::fmt;
use std::str::FromStr;

use crate::snapshot::TreePath;

/// A released tree inside a package of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotSource {
    /// `crate:NAME@VERSION[:folder]`, got through the user's cargo.
    Crate(CrateSource),
    /// `wheel:NAME@VERSION[:PLATFORM[:folder]]`, got through the user's pip.
    Wheel(WheelSource),
}

/// A folder of a crate's source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CrateSource {
    /// The crate's name.
    pub name: String,
    /// Its version, exactly.
    pub version: String,
    /// The folder in it, or the crate's own where there is none.
    pub folder: Option<TreePath>,
}

/// A folder of a wheel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WheelSource {
    /// The distribution's name.
    pub name: String,
    /// Its version, exactly.
    pub version: String,
    /// pip's platform tag, or this machine's where there is none.
    pub platform: Option<String>,
    /// The folder in it, or all of it where there is none.
    pub folder: Option<TreePath>,
}

/// A text names no snapshot source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` names no snapshot: {why}; the forms are crate:NAME@VERSION[:folder] and \
     wheel:NAME@VERSION[:PLATFORM[:folder]]"
)]
pub struct SpecError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl FromStr for SnapshotSource {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let fault = |why| SpecError { text: text.to_owned(), why };
        let (kind, rest) = text.split_once(':').ok_or(fault("it does not begin with a kind"))?;
        let (package, rest) = match rest.split_once(':') {
            Some((package, rest)) => (package, Some(rest)),
            None => (rest, None),
        };
        let (name, version) = package.split_once('@').ok_or(fault("there is no `@VERSION`"))?;
        if !is_word(name, "-_.") || !is_word(version, "-_.+!") {
            return Err(fault("its name or version holds a sign that none has"));
        }
        let (name, version) = (name.to_owned(), version.to_owned());
        let folder = |folder: Option<&str>| match folder {
            None => Ok(None),
            Some(folder) => TreePath::new(folder)
                .map(Some)
                .map_err(|_| fault("its folder is no plain relative path")),
        };
        let numbers = version.split(['-', '+']).next().unwrap_or_default().split('.');
        let whole = numbers.clone().count() == 3 && numbers.clone().all(is_number);
        match kind {
            "crate" if !whole => {
                Err(fault("its version is not whole: a crate's has three numbers"))
            }
            "crate" => Ok(Self::Crate(CrateSource { name, version, folder: folder(rest)? })),
            "wheel" => {
                let (platform, rest) = match rest.map(|r| r.split_once(':').unwrap_or((r, ""))) {
                    None => (None, None),
                    Some((platform, "")) => (Some(platform), None),
                    Some((platform, rest)) => (Some(platform), Some(rest)),
                };
                let platform = platform.filter(|p| !p.is_empty());
                if platform.is_some_and(|p| !is_word(p, "_.")) {
                    return Err(fault("its platform holds a sign that no tag has"));
                }
                let platform = platform.map(str::to_owned);
                Ok(Self::Wheel(WheelSource { name, version, platform, folder: folder(rest)? }))
            }
            _ => Err(fault("its kind is neither `crate` nor `wheel`")),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a word can stand in a manifest or on a command line as it is.
fn is_word(word: &str, others: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

impl SnapshotSource {
    /// The package, without the folder: `crate:NAME@VERSION` or
    /// `wheel:NAME@VERSION[:PLATFORM]`.
    #[must_use]
    pub fn package(&self) -> String {
        self.in_folder(None).to_string()
    }

    /// Another folder of the same package; all of it where none is given.
    #[must_use]
    pub fn in_folder(&self, folder: Option<TreePath>) -> Self {
        match self {
            Self::Crate(c) => Self::Crate(CrateSource { folder, ..c.clone() }),
            Self::Wheel(w) => Self::Wheel(WheelSource { folder, ..w.clone() }),
        }
    }
}

impl fmt::Display for SnapshotSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crate(source) => source.fmt(f),
            Self::Wheel(source) => source.fmt(f),
        }
    }
}

impl fmt::Display for CrateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crate:{}@{}", self.name, self.version)?;
        self.folder.iter().try_for_each(|folder| write!(f, ":{folder}"))
    }
}

impl fmt::Display for WheelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wheel:{}@{}", self.name, self.version)?;
        match (&self.platform, &self.folder) {
            (Some(platform), _) => write!(f, ":{platform}")?,
            (None, Some(_)) => f.write_str(":")?,
            (None, None) => {}
        }
        self.folder.iter().try_for_each(|folder| write!(f, ":{folder}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_printed_as_it_is_read() {
        for text in [
            "crate:mlxrs-sys@0.2.0:vendor/mlx",
            "crate:a@1.0.0-rc.1+b",
            "wheel:mlx-cpu@0.32.1",
            "wheel:mlx-cpu@0.32.1:macosx_14_0_arm64",
            "wheel:mlx-cpu@0.32.1:macosx_14_0_arm64:mlx/include",
            "wheel:mlx-cpu@0.32.1::mlx/include",
        ] {
            let source: SnapshotSource = text.parse().unwrap();
            assert_eq!(source.to_string(), text);
        }
        let source: SnapshotSource = "crate:a@1.0.0:b".parse().unwrap();
        assert_eq!(source.package(), "crate:a@1.0.0");
    }

    #[test]
    fn what_could_reach_further_is_refused() {
        for text in [
            "a@1",
            "crate:a",
            "crate:a@1.0.0:../b",
            "crate:a@1.0.0:",
            "crate:-a@1.0.0",
            "crate:a@1.0.0\"",
            "npm:a@1.0.0",
            "crate:a@1",
            "crate:a@0.2",
            "crate:a@0.2.",
            "crate:a@0.2.x",
            "crate:a@1.2.3.4",
            "wheel:a@1:-x",
            "wheel:a@--x",
            "wheel:a@1:x:/b",
        ] {
            assert!(text.parse::<SnapshotSource>().is_err(), "{text}");
        }
    }
}
