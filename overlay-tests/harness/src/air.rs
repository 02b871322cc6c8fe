//! Apple's compiled kernels as objects of this machine.
//!
//! llvm-dis reads a kernel's bitcode; its text loses what names the GPU (the
//! triple, the data layout, the address spaces) and llc lowers the rest. No
//! instruction is touched: each `llvm.fmuladd` becomes one FMA. Whether denormal
//! floats are flushed is no instruction: the module's compile options say it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::HarnessError;
use crate::metallib::{self, Network};
use crate::parallel::in_parallel;
use crate::toolchain::{LlvmTools, run_tool};
use crate::workshop::{Content, Mode, Unit, Workshop, digest};

/// Apple's kernels, lowered.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The objects of a program or a library that has them.
    pub objects: Vec<PathBuf>,
    /// The mode for the runtime beside them, as Apple's compiler names it in
    /// every kernel: whether denormals are flushed is not ours to say.
    pub mode: Mode,
}

/// Lowers kernels of the released wheel by host name.
///
/// # Errors
/// The wheel cannot be had, lacks a kernel, or a tool fails; kernels that were
/// compiled with fast math, or not all in one mode.
pub fn lowered(shop: &Workshop, host_names: &[String]) -> Result<Lowered, HarnessError> {
    let tools = LlvmTools::find()?;
    let bitcodes = bitcodes(shop, host_names, Network::Allowed)?;
    let items: Vec<(&String, &PathBuf)> = host_names.iter().zip(&bitcodes).collect();
    let kernels = in_parallel(&items, |(name, bitcode)| lower(shop, &tools, name, bitcode))?;
    let mut text = "#include \"oracle.h\"\n".to_string();
    let mode = kernels.first().map_or(Mode::Apple, |(_, facts)| facts.mode);
    for (name, (_, facts)) in host_names.iter().zip(&kernels) {
        if facts.mode != mode {
            return Err(bad(name, "it treats denormals unlike the other kernels"));
        }
        text.push_str(&format!("OVERLAY_AIR_KERNEL({name}, {})\n", facts.buffers));
    }
    let mut objects: Vec<PathBuf> = kernels.into_iter().map(|(object, _)| object).collect();
    for text in [text, "#include \"oracle.cpp\"\n".to_string()] {
        let (name, content, flags) = ("Apple's kernels".into(), Content::Support, Vec::new());
        objects.push(shop.compile(&Unit { name, content, text, flags, mode: Mode::Apple })?);
    }
    Ok(Lowered { objects, mode })
}

/// Files with the kernels' bitcode, kept by the wheel they are of; the wheel is
/// opened only for those that are not there yet.
///
/// # Errors
/// The wheel cannot be had, or lacks a kernel; `$MLX_OVERLAY_METAL_WHEEL` names
/// no file.
pub fn bitcodes(
    shop: &Workshop,
    host_names: &[String],
    network: Network,
) -> Result<Vec<PathBuf>, HarnessError> {
    metallib::given()?;
    let folder = shop.store().join("air").join(metallib::SHA256);
    fs::create_dir_all(&folder).map_err(HarnessError::io(&folder))?;
    let files: Vec<PathBuf> = host_names.iter().map(|n| folder.join(format!("{n}.bc"))).collect();
    if files.iter().all(|file| file.is_file()) {
        return Ok(files);
    }
    let library = metallib::metallib(&metallib::wheel(shop.store(), network)?)?;
    let functions = metallib::functions(&library)?;
    for (name, file) in host_names.iter().zip(&files) {
        let bitcode = functions.get(name).ok_or_else(|| bad(name, "the library has none"))?;
        let aside =
            tempfile::NamedTempFile::new_in(shop.scratch()).map_err(HarnessError::io(file))?;
        fs::write(aside.path(), bitcode).map_err(HarnessError::io(file))?;
        aside.persist(file).map_err(|error| HarnessError::io(file)(error.error))?;
    }
    Ok(files)
}

/// What must be known of a kernel beside its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    /// Buffers it takes.
    buffers: usize,
    /// The mode its compile options name.
    mode: Mode,
}

impl Facts {
    fn of(text: &str, name: &str) -> Result<Self, HarnessError> {
        Ok(Self { buffers: buffers(text, name)?, mode: mode(text, name)? })
    }

    /// As it is kept beside the object.
    fn stored(self) -> String {
        format!("{} {:?}", self.buffers, self.mode)
    }

    fn read(stored: &str) -> Option<Self> {
        let (buffers, mode) = stored.split_once(' ')?;
        let modes = [Mode::Apple, Mode::KeepDenormals];
        let mode = modes.into_iter().find(|known| format!("{known:?}") == mode)?;
        Some(Self { buffers: buffers.parse().ok()?, mode })
    }
}

/// One kernel's object, and what its text says of it.
fn lower(
    shop: &Workshop,
    tools: &LlvmTools,
    name: &str,
    bitcode: &PathBuf,
) -> Result<(PathBuf, Facts), HarnessError> {
    let bytes = fs::read(bitcode).map_err(HarnessError::io(bitcode))?;
    let key = digest(&[name, &tools.version, &crate::workshop::hex(&bytes)]);
    let object = shop.store().join("obj").join(format!("air-{key}.o"));
    let beside = shop.store().join("obj").join(format!("air-{key}.facts"));
    let stored = fs::read_to_string(&beside).ok().and_then(|stored| Facts::read(&stored));
    if let (true, Some(facts)) = (object.is_file(), stored) {
        return Ok((object, facts));
    }
    let mut dis = Command::new(&tools.dis);
    let said = run_tool(dis.arg(bitcode).args(["-o", "-"]), "reading Apple's bitcode")?;
    let text = String::from_utf8_lossy(&said.stdout);
    let facts = Facts::of(&text, name)?;
    let folder = tempfile::tempdir_in(shop.scratch()).map_err(HarnessError::io(shop.scratch()))?;
    let (assembly, built) = (folder.path().join("k.ll"), folder.path().join("k.o"));
    fs::write(&assembly, for_this_machine(&text)).map_err(HarnessError::io(&assembly))?;
    let mut llc = Command::new(&tools.llc);
    llc.args(["-O1", "-filetype=obj", "-relocation-model=pic"]);
    if cfg!(target_arch = "x86_64") {
        llc.arg("-mattr=+avx2,+fma,+f16c");
    }
    llc.arg(&assembly).arg("-o").arg(&built);
    run_tool(&mut llc, "lowering Apple's kernel")?;
    fs::write(&beside, facts.stored()).map_err(HarnessError::io(&beside))?;
    fs::rename(&built, &object).map_err(HarnessError::io(&object))?;
    Ok((object, facts))
}

/// The text without what names the GPU. llc takes its own machine's triple.
fn for_this_machine(text: &str) -> String {
    let names_gpu = |line: &&str| {
        !line.starts_with("target triple")
            && !line.starts_with("target datalayout")
            && !line.starts_with("@llvm.global_ctors")
    };
    let mut result = String::new();
    for line in text.lines().filter(names_gpu) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once(" addrspace(") {
            result.push_str(before);
            rest = after.split_once(')').map_or("", |(_, rest)| rest);
        }
        result.push_str(rest);
        result.push('\n');
    }
    result
}

/// The mode that a kernel's compile options name: `air.compile.…`, strings of
/// the module's metadata.
fn mode(text: &str, name: &str) -> Result<Mode, HarnessError> {
    let has = |option: &str| text.contains(&format!("!\"air.compile.{option}\""));
    // Fast math would let the back end reorder what the text orders.
    if has("fast_math_enable") || !has("fast_math_disable") {
        return Err(bad(name, "its compile options do not say fast_math_disable"));
    }
    match (has("denorms_disable"), has("denorms_enable")) {
        (true, false) => Ok(Mode::Apple),
        (false, true) => Ok(Mode::KeepDenormals),
        _ => Err(bad(name, "its compile options say nothing clear of denormals")),
    }
}

fn bad(kernel: &str, why: &str) -> HarnessError {
    HarnessError::Metallib { what: format!("kernel {kernel}"), at: 0, why: why.to_string() }
}

/// Counts a kernel's buffers and checks that what follows them is the position
/// the harness passes.
fn buffers(text: &str, name: &str) -> Result<usize, HarnessError> {
    let bad = |why: &str| bad(name, why);
    let define = text
        .lines()
        .find(|line| line.starts_with("define") && line.contains(&format!("@{name}(")))
        .ok_or_else(|| bad("its text does not define it"))?;
    let (_, arguments) = define.split_once('(').ok_or_else(|| bad("it has no arguments"))?;
    let arguments: Vec<&str> = arguments.split(", ").collect();
    let (buffers, position) = arguments.split_at(arguments.len().saturating_sub(3));
    let expected = ["<3 x i32> ", "i32 ", "i32 "];
    let fits = position.len() == 3
        && position.iter().zip(expected).all(|(argument, kind)| argument.starts_with(kind))
        && buffers.iter().all(|argument| argument.starts_with("ptr "));
    if !fits {
        return Err(bad("its arguments are not buffers, then uint3, uint and uint"));
    }
    Ok(buffers.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "target triple = \"air64\"\n\
        define weak_odr void @k(ptr addrspace(1) noundef %0, ptr addrspace(2) %1, \
        <3 x i32> noundef %2, i32 noundef %3, i32 noundef %4) #0 {\n";

    #[test]
    fn what_names_the_gpu_goes() {
        assert_eq!(
            for_this_machine(TEXT),
            "define weak_odr void @k(ptr noundef %0, ptr %1, <3 x i32> noundef %2, \
             i32 noundef %3, i32 noundef %4) #0 {\n"
        );
    }

    #[test]
    fn buffers_are_counted_and_the_position_is_checked() {
        assert_eq!(buffers(TEXT, "k").unwrap(), 2);
        assert!(buffers(&TEXT.replace("<3 x i32>", "i32"), "k").is_err());
        assert!(buffers(TEXT, "other").is_err());
    }
    fn options(options: &[&str]) -> String {
        let text = |option| format!("!1 = !{{!\"air.compile.{option}\"}}\n");
        options.iter().map(text).collect()
    }

    #[test]
    fn the_mode_is_what_the_compile_options_name() {
        let of = |names: &[&str]| mode(&options(names), "k").ok();
        assert_eq!(of(&["denorms_disable", "fast_math_disable"]), Some(Mode::Apple));
        assert_eq!(of(&["denorms_enable", "fast_math_disable"]), Some(Mode::KeepDenormals));
        for unclear in [
            &["fast_math_disable"][..],
            &["denorms_disable"],
            &["denorms_disable", "fast_math_enable"],
            &["denorms_disable", "denorms_enable", "fast_math_disable"],
        ] {
            assert_eq!(of(unclear), None, "{unclear:?}");
        }
    }

    #[test]
    fn facts_are_read_as_they_are_stored() {
        for mode in [Mode::Apple, Mode::KeepDenormals] {
            let facts = Facts { buffers: 15, mode };
            assert_eq!(Facts::read(&facts.stored()), Some(facts));
        }
        assert_eq!(Facts::read("15"), None);
        assert_eq!(Facts::read("15 ContractOff"), None);
    }
}
