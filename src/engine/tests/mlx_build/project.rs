//! The project that stands in for MLX, and a build of it.

use std::fs;
use std::path::{Path, PathBuf};

use mlx_overlay_engine::buildscript::{BuildError, Mlx, Variables, library};

/// `a` and `b` include one header, `c` another.
const FILES: [(&str, &str); 7] = [
    (
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.25)\n\
         project(mlx LANGUAGES C CXX)\n\
         add_library(mlx mlx/a.cpp mlx/b.cpp mlx/c.cpp)\n\
         target_link_libraries(mlx PRIVATE dl)\n",
    ),
    ("mlx/a.cpp", "#include \"shared.h\"\nint a() { return shared(); }\n"),
    ("mlx/b.cpp", "#include \"shared.h\"\nint b() { return shared(); }\n"),
    ("mlx/c.cpp", "#include \"own.h\"\nint c() { return own(); }\n"),
    ("mlx/shared.h", "#pragma once\ninline int shared() { return 1; }\n"),
    ("mlx/own.h", "#pragma once\ninline int own() { return 1; }\n"),
    ("docs/read.me", "no input\n"),
];

/// A laid tree and a cache, in one temporary folder.
pub struct Project {
    pub folder: tempfile::TempDir,
    pub tree: PathBuf,
    pub cache: PathBuf,
}

impl Project {
    pub fn new() -> Self {
        Self::below("")
    }

    /// With tree and cache in this folder of the temporary one.
    pub fn below(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join(name);
        let project = Self { tree: root.join("tree"), cache: root.join("cache"), folder };
        fs::create_dir_all(project.no_json()).unwrap();
        FILES.iter().for_each(|(name, text)| project.write(name, text));
        project
    }

    pub fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
        FILES.into_iter()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.tree.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Named as what holds the JSON headers, so that none are looked for.
    fn no_json(&self) -> PathBuf {
        self.folder.path().join("no-json")
    }

    /// The variables of a build script that asks for this tree.
    pub fn variables(&self, more: &[(&str, &str)]) -> Variables {
        let no_json = self.no_json();
        let own = [
            ("TARGET", "x86_64-unknown-linux-gnu"),
            ("HOST", "x86_64-unknown-linux-gnu"),
            ("CARGO_CFG_TARGET_OS", "linux"),
            ("CARGO_CFG_TARGET_ARCH", "x86_64"),
            ("FETCHCONTENT_SOURCE_DIR_JSON", no_json.to_str().unwrap()),
            ("CMAKE_BUILD_TYPE", "Debug"),
            // No compiler cache: every object counted is one that was made.
            ("CMAKE_C_COMPILER_LAUNCHER", "env"),
            ("CMAKE_CXX_COMPILER_LAUNCHER", "env"),
            ("MLX_OVERLAY_TREE", self.tree.to_str().unwrap()),
            ("MLX_OVERLAY_CACHE", self.cache.to_str().unwrap()),
        ];
        let path = std::env::var("PATH").unwrap();
        let all = own.into_iter().chain([("PATH", path.as_str())]).chain(more.iter().copied());
        Variables::new(all.map(|(k, v)| (k.to_owned(), v.to_owned())))
    }

    pub fn build(&self) -> Result<Mlx, BuildError> {
        library(&self.variables(&[]))
    }

    /// The folders in a part of the cache.
    pub fn stored(&self, part: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache.join("mlx").join(part)).into_iter().flatten();
        entries.map(|e| e.unwrap().path()).collect()
    }
}

/// The number of objects that a build compiled; 0 where it compiled nothing.
pub fn objects(mlx: &Mlx) -> usize {
    mlx.built.map_or(0, |b| b.objects)
}

/// Makes a tree read-only, or lets it be removed again.
pub fn set_writable(tree: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    for entry in walkdir::WalkDir::new(tree).contents_first(true) {
        let path = entry.unwrap().into_path();
        let folder = path.is_dir();
        let mode = if folder { mode | 0o111 } else { mode };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}
