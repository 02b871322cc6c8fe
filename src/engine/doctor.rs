//! What this machine lacks, and the command that would mend it.

use std::ffi::OsString;
use std::path::PathBuf;

use rustix::fs::Access;
use serde::Serialize;

use crate::cache::Cache;

/// One thing that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// What it is for.
    pub purpose: Purpose,
    /// Where it was found; nothing where it is missing.
    pub found: Option<String>,
    /// Why it counts as missing, where that needs a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The command that would mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// What a thing is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To fetch and lay the series at all.
    Apply,
    /// To fetch where no git host is reached.
    Snapshots,
    /// To build MLX and link it.
    Build,
    /// To run the tests of overlay-tests.
    Tests,
}

impl Purpose {
    /// For people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "to fetch and apply",
            Self::Snapshots => "to fetch where no git host is reached",
            Self::Build => "to build MLX",
            Self::Tests => "to run overlay-tests",
        }
    }
}

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The folders of programs, as `PATH` holds them.
    pub path: OsString,
    /// The folders of headers.
    pub include: Vec<PathBuf>,
    /// Which packages mend it.
    pub packages: Packages,
}

/// A system's way to install packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packages {
    /// Debian's and its kin's.
    Apt,
    /// Homebrew, on macOS.
    Brew,
}

impl Machine {
    /// This machine, with the folders of programs in `path`.
    #[must_use]
    pub fn this(path: OsString) -> Self {
        let target = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
        let include = ["/usr/include", &target, "/usr/local/include", "/opt/homebrew/include"]
            .map(Into::into);
        let packages = match std::env::consts::OS {
            "macos" => Packages::Brew,
            _ => Packages::Apt,
        };
        Self { path, include: include.into(), packages }
    }

    /// Looks for every program and header that some part of the work needs.
    #[must_use]
    pub fn examine(&self) -> Vec<Finding> {
        THINGS.iter().filter_map(|thing| self.look(thing)).collect()
    }

    fn look(&self, thing: &Thing) -> Option<Finding> {
        let package = match self.packages {
            Packages::Apt => thing.apt.map(|p| format!("apt-get install -y {p}")),
            // What the system itself brings has no command.
            Packages::Brew => thing.mac.map(str::to_owned),
        }?;
        let found = match thing.mark {
            Mark::Program(names) => names.iter().find_map(|name| self.program(name)),
            Mark::Header(name) => self.include.iter().map(|i| i.join(name)).find(|p| p.is_file()),
        };
        Some(Finding {
            name: thing.name,
            purpose: thing.purpose,
            mend: found.is_none().then_some(package),
            found: found.map(|path| path.display().to_string()),
            why: None,
        })
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok())
    }
}

/// Whether the cache folder takes files.
#[must_use]
pub fn examine_cache(cache: &Cache) -> Finding {
    let name = "cache folder";
    let root = cache.root().display().to_string();
    match cache.try_writing() {
        Ok(()) => {
            Finding { name, purpose: Purpose::Apply, found: Some(root), why: None, mend: None }
        }
        Err(e) => Finding {
            name,
            purpose: Purpose::Apply,
            found: None,
            why: Some(crate::stored::message(&e)),
            mend: Some(format!("export {}=<a folder of yours>", crate::cache::CACHE_VARIABLE)),
        },
    }
}

struct Thing {
    name: &'static str,
    purpose: Purpose,
    mark: Mark,
    apt: Option<&'static str>,
    /// The whole command: not all of it is Homebrew's.
    mac: Option<&'static str>,
}

enum Mark {
    /// One of these programs, the better ones first.
    Program(&'static [&'static str]),
    /// A header of a library.
    Header(&'static str),
}

const fn thing(
    name: &'static str,
    purpose: Purpose,
    mark: Mark,
    apt: Option<&'static str>,
    mac: Option<&'static str>,
) -> Thing {
    Thing { name, purpose, mark, apt, mac }
}

const CLANG: &[&str] = &["clang++-16", "clang++-17", "clang++-18", "clang++-19", "clang++"];

const THINGS: &[Thing] = {
    use Mark::{Header, Program};
    use Purpose::{Build, Snapshots, Tests};
    &[
        thing("cargo", Snapshots, Program(&["cargo"]), Some("cargo"), Some("brew install rust")),
        thing(
            "python3",
            Snapshots,
            Program(&["python3"]),
            Some("python3"),
            Some("brew install python"),
        ),
        thing("cmake", Build, Program(&["cmake"]), Some("cmake"), Some("brew install cmake")),
        thing("ninja", Build, Program(&["ninja"]), Some("ninja-build"), Some("brew install ninja")),
        thing("a C++ compiler", Build, Program(&["c++", "g++", "clang++"]), Some("g++"), None),
        thing("Xcode's tools", Build, Program(&["xcrun"]), None, Some("xcode-select --install")),
        thing("OpenBLAS", Build, Header("cblas.h"), Some("libopenblas-dev"), None),
        thing("LAPACKE", Build, Header("lapacke.h"), Some("liblapacke-dev"), None),
        thing("fmt", Build, Header("fmt/format.h"), Some("libfmt-dev"), Some("brew install fmt")),
        thing(
            "nlohmann-json",
            Build,
            Header("nlohmann/json.hpp"),
            Some("nlohmann-json3-dev"),
            Some("brew install nlohmann-json"),
        ),
        thing(
            "ccache",
            Build,
            Program(&["ccache", "sccache"]),
            Some("ccache"),
            Some("brew install ccache"),
        ),
        thing("git", Tests, Program(&["git"]), Some("git"), Some("brew install git")),
        thing(
            "clang",
            Tests,
            Program(CLANG),
            Some("clang-16 libclang-rt-16-dev"),
            Some("brew install llvm"),
        ),
        thing(
            "llvm-dis",
            Tests,
            Program(&["llvm-dis-19", "llvm-dis"]),
            Some("llvm-19"),
            Some("brew install llvm"),
        ),
        thing(
            "llc",
            Tests,
            Program(&["llc-19", "llc"]),
            Some("llvm-19"),
            Some("brew install llvm"),
        ),
        thing("the blocks runtime", Tests, Header("Block.h"), Some("libblocksruntime-dev"), None),
    ]
};

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn machine(dir: &std::path::Path, packages: Packages) -> Machine {
        Machine { path: dir.as_os_str().to_owned(), include: vec![dir.join("include")], packages }
    }

    #[test]
    fn what_is_missing_has_its_command() {
        let dir = tempfile::tempdir().unwrap();
        let cmake = dir.path().join("cmake");
        std::fs::write(&cmake, "").unwrap();
        assert!(machine(dir.path(), Packages::Apt).program("cmake").is_none(), "it cannot be run");
        std::fs::set_permissions(&cmake, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir_all(dir.path().join("include/fmt")).unwrap();
        std::fs::write(dir.path().join("include/fmt/format.h"), "").unwrap();
        let findings = machine(dir.path(), Packages::Apt).examine();
        let of = |name: &str| findings.iter().find(|f| f.name == name).unwrap();
        assert!(of("cmake").found.is_some() && of("cmake").mend.is_none());
        assert!(of("fmt").found.is_some());
        assert_eq!(of("ninja").mend.as_deref(), Some("apt-get install -y ninja-build"));
        assert_eq!(of("OpenBLAS").mend.as_deref(), Some("apt-get install -y libopenblas-dev"));
    }

    #[test]
    fn what_a_mac_brings_is_not_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let findings = machine(dir.path(), Packages::Brew).examine();
        assert!(findings.iter().all(|f| f.name != "OpenBLAS" && f.mend.is_some()));
        let mends = |command| findings.iter().any(|f| f.mend.as_deref() == Some(command));
        assert!(mends("brew install ninja") && mends("xcode-select --install"));
    }

    #[test]
    fn a_cache_that_takes_no_files_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(examine_cache(&Cache::at(dir.path().join("new"))).found.is_some());
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let finding = examine_cache(&Cache::at(&file));
        assert!(finding.found.is_none() && finding.why.is_some() && finding.mend.is_some());
    }
}
