//! Builds MLX's host code and the fake device, once for a tree.
//!
//! ```text
//! <cache>/fake-device/build/       cpp/ of this crate, tree/, metal_cpp/
//! <cache>/fake-device/build/out/   CMake's and ninja's
//! <cache>/fake-device/<key>/       the programs and library files of a tree
//! <cache>/ccache/                  objects by content
//! ```
//! The key is the tree's content and this crate's. A tree is mirrored into the
//! one build folder, where equal files keep their times: what differs from the
//! tree before is compiled, and nothing else.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use walkdir::WalkDir;

use crate::FakeDeviceError;
use crate::cache::Key;
use crate::library;
use crate::toolchain::{Toolchain, run};
use crate::wheel;

/// The two ways a kernel reaches the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// From the metallib, by host name.
    ByName,
    /// From text, compiled when first asked for (`MLX_METAL_JIT`).
    FromText,
}

/// Both programs, built.
#[derive(Debug)]
pub struct Build {
    folder: PathBuf,
}

/// Trees whose programs are kept; the oldest go first.
const KEPT: usize = 6;
/// What of a tree goes into its build.
pub const PARTS: [&str; 4] = ["CMakeLists.txt", "cmake", "mlx", "mlx.pc.in"];
/// What of this crate.
const OWN_PARTS: [&str; 5] = ["CMakeLists.txt", "apple", "driver", "fake", "xcrun"];

impl Build {
    /// Builds, or finds what was built of the same text.
    ///
    /// # Errors
    /// A tool or a header is missing, the wheel cannot be had, or something
    /// does not compile: the compiler's message stands in the error.
    pub fn of(tree: &Path, cache: &Path) -> Result<Self, FakeDeviceError> {
        Self::with_log(tree, cache, None)
    }

    /// The same; what ccache did is added to `log`, a line an object.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn with_log(
        tree: &Path,
        cache: &Path,
        log: Option<&Path>,
    ) -> Result<Self, FakeDeviceError> {
        const PROOF: &str = "mlx/backend/metal/quantized.cpp";
        if !tree.join(PROOF).is_file() {
            return Err(FakeDeviceError::NotATree { tree: tree.to_path_buf(), missing: PROOF });
        }
        let mut key = Key::default();
        add_folder(&mut key, tree, &PARTS)?;
        add_folder(&mut key, &own_folder(), &OWN_PARTS)?;
        let store = cache.join("fake-device");
        let build = Self { folder: store.join(&key.hex()[..24]) };
        if build.folder.is_dir() {
            build.touch();
            return Ok(build);
        }
        let workplace = store.join("build");
        fs::create_dir_all(&workplace).map_err(FakeDeviceError::io(&workplace))?;
        let workplace = workplace.canonicalize().map_err(FakeDeviceError::io(&workplace))?;
        let _lock = lock(&store.join("build.lock"))?;
        if !build.folder.is_dir() {
            compile(tree, &workplace, cache, log)?;
            build.take_from(&workplace, &store)?;
            forget_old(&store);
        }
        Ok(build)
    }

    /// Notes that the programs are in use, so that others are forgotten first.
    /// Where that cannot be noted nothing is lost but time.
    fn touch(&self) {
        let file = File::options().append(true).open(self.library(Kernels::ByName));
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Removes the programs. They are built again when they are asked for.
    ///
    /// # Errors
    /// They cannot be removed.
    pub fn forget(self) -> Result<(), FakeDeviceError> {
        fs::remove_dir_all(&self.folder).map_err(FakeDeviceError::io(&self.folder))
    }

    /// Takes the programs out of the build folder, whole or not at all.
    fn take_from(&self, workplace: &Path, store: &Path) -> Result<(), FakeDeviceError> {
        let aside = tempfile::tempdir_in(store).map_err(FakeDeviceError::io(store))?;
        let taken = Self { folder: aside.path().join("whole") };
        fs::create_dir(&taken.folder).map_err(FakeDeviceError::io(&taken.folder))?;
        for kernels in [Kernels::ByName, Kernels::FromText] {
            let program = taken.program(kernels);
            let name = program.file_name().unwrap_or_default();
            let built = workplace.join("out").join(name);
            fs::copy(&built, &program).map_err(FakeDeviceError::io(&built))?;
        }
        library::write(&Toolchain::find()?, workplace, &taken.folder)?;
        fs::rename(&taken.folder, &self.folder).map_err(FakeDeviceError::io(&self.folder))
    }

    /// The program.
    #[must_use]
    pub fn program(&self, kernels: Kernels) -> PathBuf {
        self.folder.join(match kernels {
            Kernels::ByName => "mlx_on_fake_device",
            Kernels::FromText => "mlx_on_fake_device_jit",
        })
    }

    /// The library file: the host names that build's metallib holds.
    #[must_use]
    pub fn library(&self, kernels: Kernels) -> PathBuf {
        library::file(&self.folder, kernels)
    }
}

/// Brings the build folder up to a tree.
fn compile(
    tree: &Path,
    workplace: &Path,
    cache: &Path,
    log: Option<&Path>,
) -> Result<(), FakeDeviceError> {
    let toolchain = Toolchain::find()?;
    let headers = wheel::metal_cpp(cache)?;
    for part in PARTS {
        mirror(&tree.join(part), &workplace.join("tree").join(part))?;
    }
    mirror(&headers, &workplace.join("metal_cpp"))?;
    for part in OWN_PARTS {
        mirror(&own_folder().join(part), &workplace.join(part))?;
    }
    let out = workplace.join("out");
    let with_ccache = |program: &str| {
        let mut command = Command::new(program);
        command
            .env("CCACHE_BASEDIR", workplace)
            // What ccache asks for where headers are precompiled.
            .env("CCACHE_SLOPPINESS", "pch_defines,time_macros");
        if std::env::var_os("CCACHE_DIR").is_none() {
            command.env("CCACHE_DIR", cache.join("ccache"));
        }
        if let Some(log) = log {
            command.env("CCACHE_STATSLOG", log);
        }
        command
    };
    let mut configure = with_ccache("cmake");
    configure.args(["-G", "Ninja", "-S"]).arg(workplace).arg("-B").arg(&out);
    configure.arg(format!("-DCMAKE_C_COMPILER={}", toolchain.clang.display()));
    configure.arg(format!("-DCMAKE_CXX_COMPILER={}", toolchain.clangxx.display()));
    // Nothing here is measured: the fastest to compile will do.
    configure.args(["-DCMAKE_CXX_FLAGS=-O0", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]);
    run(&mut configure, "configuring MLX and the fake device")?;
    let jobs = std::thread::available_parallelism().map_or(2, usize::from);
    let mut ninja = with_ccache("ninja");
    ninja.arg("-C").arg(&out).arg(format!("-j{jobs}"));
    run(&mut ninja, "compiling MLX and the fake device").map(drop)
}

fn own_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cpp")
}

/// Held until dropped; another process waits.
fn lock(path: &Path) -> Result<File, FakeDeviceError> {
    let file = File::create(path).map_err(FakeDeviceError::io(path))?;
    file.lock().map_err(FakeDeviceError::io(path))?;
    Ok(file)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, FakeDeviceError> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.map_err(|error| FakeDeviceError::io(folder)(error.into()))?;
        if entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

fn add_folder(key: &mut Key, folder: &Path, parts: &[&str]) -> Result<(), FakeDeviceError> {
    for part in parts {
        for file in files(&folder.join(part))? {
            let name = file.strip_prefix(folder).unwrap_or(&file);
            key.add(name.as_os_str().as_encoded_bytes());
            key.add(fs::read(&file).map_err(FakeDeviceError::io(&file))?);
        }
    }
    Ok(())
}

/// Makes `to` as `from` is. Equal files keep their times.
fn mirror(from: &Path, to: &Path) -> Result<(), FakeDeviceError> {
    let inside = |folder: &Path, file: &Path| match file.strip_prefix(folder) {
        Ok(inside) => inside.to_path_buf(),
        Err(_) => PathBuf::new(),
    };
    let sources = files(from)?;
    for file in &sources {
        let inside = inside(from, file);
        // The path of a single file is inside itself as nothing.
        let target = if inside.as_os_str().is_empty() { to.to_path_buf() } else { to.join(inside) };
        copy_if_different(file, &target)?;
    }
    if to.is_dir() {
        let wanted: BTreeSet<PathBuf> = sources.iter().map(|file| inside(from, file)).collect();
        for file in files(to)? {
            if !wanted.contains(&inside(to, &file)) {
                fs::remove_file(&file).map_err(FakeDeviceError::io(&file))?;
            }
        }
    }
    Ok(())
}

fn copy_if_different(file: &Path, target: &Path) -> Result<(), FakeDeviceError> {
    let bytes = fs::read(file).map_err(FakeDeviceError::io(file))?;
    if fs::read(target).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(FakeDeviceError::io(parent))?;
    }
    fs::write(target, bytes).map_err(FakeDeviceError::io(target))?;
    let mode = fs::metadata(file).map_err(FakeDeviceError::io(file))?.permissions();
    fs::set_permissions(target, mode).map_err(FakeDeviceError::io(target))
}

/// Removes the oldest programs. What cannot be removed is left for the next
/// time; a process that runs one keeps it until it ends.
fn forget_old(store: &Path) {
    let Ok(entries) = fs::read_dir(store) else { return };
    let mut builds: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let whole = path.join("kernels.txt");
            Some((fs::metadata(whole).and_then(|file| file.modified()).ok()?, path))
        })
        .collect();
    builds.sort();
    builds.reverse();
    for (_, folder) in builds.into_iter().skip(KEPT) {
        let _ = fs::remove_dir_all(folder);
    }
}
