//! Compiles kernels of a laid tree into programs, and keeps the objects.
//!
//! ```text
//! <cache>/harness/cpp-<digest>/   the C++ of this crate, written out once
//! <cache>/harness/obj/<key>.o     by content: compiler, flags, text, headers
//! <cache>/harness/bin/<key>       by the keys of their objects
//! <cache>/harness/.tmp…           of a run, while it lives
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use crate::HarnessError;
use crate::scratch::Scratch;
use crate::toolchain::{Toolchain, run_tool};
use crate::tree::{self, KERNELS_DIR};

/// The C++ side, file by file.
const SOURCES: &[(&str, &str)] = &[
    ("deadline.h", include_str!("../cpp/deadline.h")),
    ("kernel_run.cpp", include_str!("../cpp/kernel_run.cpp")),
    ("kernel_run.h", include_str!("../cpp/kernel_run.h")),
    ("kernels.h", include_str!("../cpp/kernels.h")),
    ("numbers.h", include_str!("../cpp/numbers.h")),
    ("oracle.cpp", include_str!("../cpp/oracle.cpp")),
    ("oracle.h", include_str!("../cpp/oracle.h")),
    ("prefix.h", include_str!("../cpp/prefix.h")),
    ("registry.h", include_str!("../cpp/registry.h")),
    ("serve.cpp", include_str!("../cpp/serve.cpp")),
    ("simdgroup.cpp", include_str!("../cpp/simdgroup.cpp")),
    ("simdgroup.h", include_str!("../cpp/simdgroup.h")),
    ("symbolic.cpp", include_str!("../cpp/symbolic.cpp")),
    ("symbolic.h", include_str!("../cpp/symbolic.h")),
    ("symbolic_words.h", include_str!("../cpp/symbolic_words.h")),
    ("shim/metal_simdgroup", include_str!("../cpp/shim/metal_simdgroup")),
    ("shim/metal_stdlib", include_str!("../cpp/shim/metal_stdlib")),
    (
        "shim/mlx/backend/metal/kernels/utils.h",
        include_str!("../cpp/shim/mlx/backend/metal/kernels/utils.h"),
    ),
    (
        "shim/mlx/backend/metal/kernels/steel/gemm/gemm.h",
        include_str!("../cpp/shim/mlx/backend/metal/kernels/steel/gemm/gemm.h"),
    ),
];

/// How a unit is compiled. The flags are facts.md's compile mode; the wrong
/// ones are here to show that the oracle tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Apple's mode, optimised.
    Apple,
    /// Apple's mode under AddressSanitizer and UBSan, not optimised: memory is
    /// as the source asks for it.
    Checked,
    /// Symbolic numbers: contraction is theirs. Locals without a value hold a
    /// pattern that is no node.
    Symbolic,
    /// Wrong: no contraction.
    ContractOff,
    /// Wrong: contraction across statements, and reassociation by vectorising.
    ContractFast,
    /// Wrong: half sums kept in float.
    HalfExcess,
    /// Wrong: denormal floats kept. So does the runtime of Apple's kernels where
    /// their compiler says that they keep them.
    KeepDenormals,
}

impl Mode {
    fn flags(self) -> &'static [&'static str] {
        const HALF: &str = "-ffloat16-excess-precision=none";
        match self {
            Self::Apple => &["-O1", "-ffp-contract=on", "-Xclang", HALF],
            Self::Checked => &[
                "-O0",
                "-ffp-contract=on",
                "-Xclang",
                HALF,
                "-fsanitize=address,alignment,bounds,shift,signed-integer-overflow,return",
                "-fno-sanitize-recover=all",
                "-fno-omit-frame-pointer",
            ],
            Self::Symbolic => &["-O0", "-ftrivial-auto-var-init=pattern", "-DOVERLAY_SYMBOLIC"],
            Self::ContractOff => &["-O1", "-ffp-contract=off", "-Xclang", HALF],
            Self::ContractFast => &["-O2", "-ffp-contract=fast", "-Xclang", HALF],
            Self::HalfExcess => &["-O1", "-ffp-contract=on"],
            Self::KeepDenormals => {
                &["-O1", "-ffp-contract=on", "-Xclang", HALF, "-DOVERLAY_KEEP_DENORMALS"]
            }
        }
    }

    fn link_flags(self) -> &'static [&'static str] {
        if self == Self::Checked { &["-fsanitize=address,undefined"] } else { &[] }
    }
}

/// What a unit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Kernels of the tree: starts from `prefix.h`, compiled ahead.
    Kernels,
    /// The harness's own code.
    Support,
}

/// One translation unit.
#[derive(Clone, Debug)]
pub struct Unit {
    /// What it is to a person: "half, 4 bits", or a file's name.
    pub name: String,
    /// What it holds.
    pub content: Content,
    /// The text; a file name of `SOURCES` is `#include "name"`.
    pub text: String,
    /// Flags beyond those of the mode.
    pub flags: Vec<&'static str>,
    /// How.
    pub mode: Mode,
}

/// A place to compile for one tree.
#[derive(Debug)]
pub struct Workshop {
    toolchain: Toolchain,
    cpp: PathBuf,
    store: PathBuf,
    /// Folders searched for the kernels' text, in order.
    trees: Vec<PathBuf>,
    /// Digest of the compiler and the C++ side: all that support code is of.
    base: String,
    /// Digest of the trees' headers.
    text: String,
    scratch: Arc<Scratch>,
    serial: Arc<AtomicUsize>,
    /// `prefix.h` compiled ahead, by the flags it was compiled with.
    prefixes: Arc<Mutex<BTreeMap<Vec<String>, PathBuf>>>,
}

impl Workshop {
    /// Opens a workshop for a tree. `cache` is the tool's cache folder.
    ///
    /// # Errors
    /// No tree, a header of its kernels is missing or cannot be read, or the
    /// cache cannot be written.
    pub fn open(toolchain: Toolchain, tree: &Path, cache: &Path) -> Result<Self, HarnessError> {
        tree::ask_for(tree, |name| {
            SOURCES.iter().any(|(source, _)| source.strip_prefix("shim/") == Some(name))
        })?;
        let store = store(cache);
        for folder in ["obj", "bin"] {
            let folder = store.join(folder);
            fs::create_dir_all(&folder).map_err(HarnessError::io(&folder))?;
        }
        let scratch = Scratch::open(&store)?;
        let cpp = write_sources(&store, scratch.path())?;
        let tree = tree.canonicalize().map_err(HarnessError::io(tree))?;
        let base = digest(&[&toolchain.version, &sources_digest()]);
        let text = text_digest(&[&tree])?;
        Ok(Self {
            toolchain,
            cpp,
            store,
            trees: vec![tree],
            base,
            text,
            scratch: Arc::new(scratch),
            serial: Arc::default(),
            prefixes: Arc::default(),
        })
    }

    /// The same with one file of the tree replaced: where mutants live.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn with_file(&self, path: &str, text: &str) -> Result<Self, HarnessError> {
        let tree = self.fresh("tree");
        let file = tree.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(HarnessError::io(parent))?;
        }
        fs::write(&file, text).map_err(HarnessError::io(&file))?;
        let mut trees = vec![tree];
        trees.extend(self.trees.iter().cloned());
        let text = text_digest(&trees.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        Ok(Self {
            toolchain: self.toolchain.clone(),
            cpp: self.cpp.clone(),
            store: self.store.clone(),
            trees,
            base: self.base.clone(),
            text,
            scratch: Arc::clone(&self.scratch),
            serial: Arc::clone(&self.serial),
            prefixes: Arc::clone(&self.prefixes),
        })
    }

    /// The text of a file of the tree.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, path: &str) -> Result<String, HarnessError> {
        let (laid, over) = self.trees.split_last().expect("a workshop is of a tree");
        let found = over.iter().find(|tree| tree.join(path).is_file());
        tree::read(found.unwrap_or(laid), Path::new(path))
    }

    /// The clang in use, in its own words.
    #[must_use]
    pub fn compiler(&self) -> &str {
        &self.toolchain.version
    }

    /// A folder that goes when the workshop goes.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Where finished things are kept.
    #[must_use]
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// Asks clang for its sanitizers, which are a package of their own.
    ///
    /// # Errors
    /// A program cannot be linked with them.
    pub fn sanitizers(&self) -> Result<(), HarnessError> {
        let (text, built) = (self.fresh("cpp"), self.fresh("bin"));
        fs::write(&text, "int main() {}\n").map_err(HarnessError::io(&text))?;
        let mut clang = Command::new(&self.toolchain.clang);
        clang.args(Mode::Checked.link_flags()).arg(&text).arg("-o").arg(&built);
        run_tool(&mut clang, "linking with the sanitizers").map(drop).map_err(|error| {
            let clang = self.toolchain.clang.display();
            HarnessError::MissingTool {
                what: "clang's sanitizers, to check memory,",
                looked_for: format!("{clang} {}: {error}", Mode::Checked.link_flags().join(" ")),
                package: format!("libclang-rt-{}-dev", self.toolchain.major()),
            }
        })
    }

    /// Compiles a unit, or finds its object.
    ///
    /// # Errors
    /// clang refuses the unit: its message stands in the error.
    pub fn compile(&self, unit: &Unit) -> Result<PathBuf, HarnessError> {
        self.kept(unit, "o", |clang, built| {
            run_tool(clang.arg("-c").arg("-o").arg(built), "compiling the kernels")
        })
    }

    /// Type-checks a unit, or finds that it was found well typed. `Err` carries
    /// clang's message.
    ///
    /// # Errors
    /// clang refuses the unit.
    pub fn check(&self, unit: &Unit) -> Result<(), HarnessError> {
        let checked = self.kept(unit, "checked", |clang, built| {
            fs::write(built, []).map_err(HarnessError::io(built))?;
            run_tool(clang.arg("-fsyntax-only"), "type-checking the kernels")
        });
        checked.map(drop)
    }

    /// A text with its includes and macros expanded.
    ///
    /// # Errors
    /// clang refuses it.
    pub(crate) fn expand(&self, text: &str) -> Result<String, HarnessError> {
        let file = self.fresh("cpp");
        fs::write(&file, text).map_err(HarnessError::io(&file))?;
        let mut clang = self.clang(&["-std=c++20".to_string()]);
        let output = run_tool(clang.args(["-E", "-P"]).arg(&file), "expanding the kernels")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What `make` makes of a unit, kept by content.
    fn kept(
        &self,
        unit: &Unit,
        extension: &str,
        make: impl FnOnce(&mut Command, &Path) -> Result<Output, HarnessError>,
    ) -> Result<PathBuf, HarnessError> {
        let flags = self.flags(unit);
        let of_tree = match unit.content {
            Content::Kernels => self.text.as_str(),
            Content::Support => "",
        };
        let key = digest(&[&self.base, of_tree, &flags.join(" "), &unit.text]);
        let kept = self.store.join("obj").join(format!("{key}.{extension}"));
        if kept.is_file() {
            return Ok(kept);
        }
        let (text, built) = (self.fresh("cpp"), self.fresh(extension));
        fs::write(&text, &unit.text).map_err(HarnessError::io(&text))?;
        let mut clang = self.clang(&flags);
        if unit.content == Content::Kernels {
            clang.arg("-include-pch").arg(self.prefix(&flags)?);
        }
        make(clang.arg(&text), &built)?;
        fs::rename(&built, &kept).map_err(HarnessError::io(&kept))?;
        Ok(kept)
    }

    /// `prefix.h` compiled ahead with these flags, once a run.
    fn prefix(&self, flags: &[String]) -> Result<PathBuf, HarnessError> {
        let mut prefixes = self.prefixes.lock().expect("no worker panics with the lock");
        if let Some(ready) = prefixes.get(flags) {
            return Ok(ready.clone());
        }
        let (text, built) = (self.fresh("h"), self.fresh("pch"));
        fs::write(&text, "#include \"prefix.h\"\n").map_err(HarnessError::io(&text))?;
        let mut clang = self.clang(flags);
        clang.args(["-x", "c++-header"]).arg(&text).arg("-o").arg(&built);
        run_tool(&mut clang, "compiling the host Metal")?;
        prefixes.insert(flags.to_vec(), built.clone());
        Ok(built)
    }

    /// Links objects, or finds what they were linked to.
    ///
    /// # Errors
    /// The linker or the objects fail.
    pub fn link(
        &self,
        objects: &[PathBuf],
        mode: Mode,
        kind: LinkKind,
    ) -> Result<PathBuf, HarnessError> {
        let names: Vec<String> = objects.iter().map(|o| o.display().to_string()).collect();
        let key = digest(&[&self.base, &format!("{mode:?} {kind:?}"), &names.join(" ")]);
        let program = self.store.join("bin").join(format!("{key}{}", kind.extension()));
        if program.is_file() {
            return Ok(program);
        }
        let built = self.fresh("bin");
        let mut clang = Command::new(&self.toolchain.clang);
        clang.args(mode.link_flags()).args(kind.flags()).args(objects).arg("-o").arg(&built);
        run_tool(&mut clang, "linking the kernels")?;
        fs::rename(&built, &program).map_err(HarnessError::io(&program))?;
        Ok(program)
    }

    /// The objects every program needs: the fibers, the registry, and `main`.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn runtime(&self, mode: Mode, main: &[&str]) -> Result<Vec<PathBuf>, HarnessError> {
        ["simdgroup.cpp", "kernel_run.cpp"]
            .iter()
            .chain(main)
            .map(|file| {
                let text = format!("#include \"{file}\"\n");
                // No kernel is in them: only their speed depends on this.
                let flags = if mode == Mode::Symbolic { vec!["-O2"] } else { Vec::new() };
                let name = (*file).to_string();
                self.compile(&Unit { name, content: Content::Support, text, flags, mode })
            })
            .collect()
    }

    fn flags(&self, unit: &Unit) -> Vec<String> {
        let machine: &[&str] =
            if cfg!(target_arch = "x86_64") { &["-mavx2", "-mfma", "-mf16c"] } else { &[] };
        let words = [
            "-std=c++20",
            "-fPIC",
            "-fno-strict-aliasing",
            // Metal's attributes and its extensions to C++17.
            "-Wno-unknown-attributes",
            "-Wno-ignored-attributes",
            "-Wno-unused",
        ];
        let all = words.iter().chain(machine).chain(unit.mode.flags()).chain(&unit.flags);
        all.map(|flag| (*flag).to_string()).collect()
    }

    fn clang(&self, flags: &[String]) -> Command {
        let mut clang = Command::new(&self.toolchain.clang);
        clang.args(flags).arg("-I").arg(&self.cpp).arg("-I").arg(self.cpp.join("shim"));
        for tree in &self.trees {
            clang.arg("-I").arg(tree);
        }
        clang
    }

    fn fresh(&self, extension: &str) -> PathBuf {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        self.scratch.path().join(format!("{serial}.{extension}"))
    }
}

/// What a link makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A program with a `main` among its objects.
    Program,
    /// A shared library with the C ABI of `kernel_run.h`.
    Library,
}

impl LinkKind {
    fn extension(self) -> &'static str {
        if self == Self::Library { ".so" } else { "" }
    }

    fn flags(self) -> &'static [&'static str] {
        if self == Self::Library { &["-shared"] } else { &[] }
    }
}

/// Where the harness keeps things in the tool's cache folder.
#[must_use]
pub fn store(cache: &Path) -> PathBuf {
    cache.join("harness")
}

fn write_sources(store: &Path, scratch: &Path) -> Result<PathBuf, HarnessError> {
    let cpp = store.join(format!("cpp-{}", &sources_digest()[..16]));
    if cpp.is_dir() {
        return Ok(cpp);
    }
    // Written aside and renamed: a folder that is there is whole.
    let aside = scratch.join("cpp");
    for (name, text) in SOURCES {
        let file = aside.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(HarnessError::io(parent))?;
        }
        fs::write(&file, text).map_err(HarnessError::io(&file))?;
    }
    match fs::rename(&aside, &cpp) {
        // Or another run was faster.
        Err(error) if !cpp.is_dir() => Err(HarnessError::io(&cpp)(error)),
        _ => Ok(cpp),
    }
}

fn sources_digest() -> String {
    let all: Vec<&str> = SOURCES.iter().flat_map(|(name, text)| [*name, *text]).collect();
    digest(&all)
}

fn text_digest(trees: &[&Path]) -> Result<String, HarnessError> {
    let mut sha = Sha256::new();
    for tree in trees {
        let folder = tree.join(KERNELS_DIR);
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).map_err(HarnessError::io(&folder))? {
            let path = entry.map_err(HarnessError::io(&folder))?.path();
            if path.extension().is_some_and(|e| e == "h" || e == "metal") {
                files.push(path);
            }
        }
        files.sort();
        for file in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            sha.update(digest(&[&name]));
            let bytes = fs::read(&file).map_err(HarnessError::io(&file))?;
            sha.update(Sha256::digest(&bytes));
        }
        sha.update("/");
    }
    Ok(hex(&sha.finalize()))
}

/// SHA-256 over parts, each with its length.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_le_bytes());
        sha.update(part);
    }
    hex(&sha.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
