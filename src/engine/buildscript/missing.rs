//! What a failed build lacks, told from what CMake and the compiler say.

use std::fmt;

/// Something that is not installed, and where it is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What it is: a program, a library or a header.
    pub what: &'static str,
    /// Its package on Debian and Ubuntu.
    pub debian: &'static str,
    /// Its package in Homebrew, or what else provides it on a Mac.
    pub mac: &'static str,
    /// What may be set instead, where something may.
    pub instead: Option<&'static str>,
}

/// CMake.
pub static CMAKE: Missing =
    Missing { what: "cmake", debian: "cmake", mac: "brew install cmake", instead: Some("CMAKE") };
/// Ninja.
pub static NINJA: Missing = Missing {
    what: "ninja",
    debian: "ninja-build",
    mac: "brew install ninja",
    instead: Some("CMAKE_GENERATOR"),
};
/// A C++ compiler.
pub static COMPILER: Missing = Missing {
    what: "a C++20 compiler",
    debian: "g++",
    mac: "xcode-select --install",
    instead: Some("CXX"),
};
/// The JSON header.
pub static JSON: Missing = Missing {
    what: "nlohmann/json.hpp",
    debian: "nlohmann-json3-dev",
    mac: "brew install nlohmann-json",
    instead: Some("FETCHCONTENT_SOURCE_DIR_JSON"),
};
static FMT: Missing = Missing {
    what: "the fmt library",
    debian: "libfmt-dev",
    mac: "brew install fmt",
    instead: Some("FETCHCONTENT_SOURCE_DIR_FMT"),
};
static LAPACK: Missing = Missing {
    what: "LAPACK",
    debian: "liblapacke-dev",
    mac: "brew install openblas",
    instead: Some("CMAKE_PREFIX_PATH"),
};
static BLAS: Missing = Missing {
    what: "BLAS",
    debian: "libopenblas-dev",
    mac: "brew install openblas",
    instead: Some("CMAKE_PREFIX_PATH"),
};
/// Apple's C++ headers for Metal.
pub static METAL_CPP: Missing = Missing {
    what: "the metal-cpp headers",
    debian: "(none: Metal is Apple's)",
    mac: "pip download --no-deps mlx-metal, and unpack the wheel's mlx/include/metal_cpp",
    instead: Some("FETCHCONTENT_SOURCE_DIR_METAL_CPP"),
};
static METAL_COMPILER: Missing = Missing {
    what: "Apple's metal compiler",
    debian: "(none: Metal is Apple's)",
    mac: "install Xcode, then xcodebuild -downloadComponent MetalToolchain",
    instead: None,
};

/// Words in a log, and what their presence means. The first that fits counts:
/// LAPACK's search fails too where only BLAS is missing.
static SIGNS: [(&str, &Missing); 16] = [
    ("Could NOT find BLAS", &BLAS),
    ("Could NOT find LAPACK", &LAPACK),
    ("LAPACK_INCLUDE_DIRS", &LAPACK),
    ("lapacke.h: No such file", &LAPACK),
    ("lapacke.h' file not found", &LAPACK),
    ("BLAS_INCLUDE_DIRS", &BLAS),
    ("cblas.h: No such file", &BLAS),
    ("cblas.h' file not found", &BLAS),
    ("Findfmt.cmake", &FMT),
    ("package configuration file provided by \"fmt\"", &FMT),
    ("json.hpp: No such file", &JSON),
    ("json.hpp' file not found", &JSON),
    ("Metal/Metal.hpp' file not found", &METAL_CPP),
    ("unable to find utility \"metal\"", &METAL_COMPILER),
    ("CMAKE_CXX_COMPILER not set", &COMPILER),
    ("No CMAKE_CXX_COMPILER could be found", &COMPILER),
];

impl Missing {
    /// What `log`, of a build that failed, says is not installed.
    #[must_use]
    pub fn told_by(log: &str) -> Option<&'static Self> {
        // Only what is said of a failure counts: CMake's status lines name
        // the same variables when all is well.
        let told = |sign: &str| {
            log.match_indices(sign).any(|(at, _)| {
                let begin = log[..at].rfind('\n').map_or(0, |n| n + 1);
                !log[begin..].starts_with("-- ")
            })
        };
        SIGNS.iter().find(|(sign, _)| told(sign)).map(|(_, missing)| *missing)
    }

    /// How to come by it, a sentence each.
    #[must_use]
    pub fn remedies(&self) -> Vec<String> {
        let mut remedies = vec![
            format!("Debian, Ubuntu: apt-get install {}", self.debian),
            format!("macOS: {}", self.mac),
        ];
        remedies.extend(self.instead.map(|v| format!("or set {v} to one that is elsewhere")));
        remedies
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not installed (Debian package {})", self.what, self.debian)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_named() {
        for (log, package) in [
            (
                "CMake Error …:\n  Could NOT find BLAS (missing: BLAS_LIBRARIES)\n",
                "libopenblas-dev",
            ),
            ("x.cpp:3:10: fatal error: lapacke.h: No such file or directory", "liblapacke-dev"),
            (
                "used in this project, but they are set to NOTFOUND.\nLAPACK_INCLUDE_DIRS (ADVANCED)",
                "liblapacke-dev",
            ),
            (
                "  Could not find a package configuration file provided by \"fmt\" with any",
                "libfmt-dev",
            ),
            (
                "load.cpp:7:10: fatal error: json.hpp: No such file or directory",
                "nlohmann-json3-dev",
            ),
        ] {
            assert_eq!(Missing::told_by(log).map(|m| m.debian), Some(package), "{log}");
        }
    }

    #[test]
    fn a_status_line_is_no_failure() {
        assert_eq!(
            Missing::told_by("-- Could NOT find BLAS (missing: x)\nerror: expected `;`"),
            None
        );
        assert_eq!(Missing::told_by("array.cpp:1:1: error: expected unqualified-id"), None);
    }
}
