//! Apple's compiled kernels as objects of this machine.
//!
//! llvm-dis reads a kernel's bitcode; its text loses what names the GPU (the
//! triple, the data layout, the address spaces) and llc lowers the rest. No
//! instruction is touched: each `llvm.fmuladd` becomes one FMA.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::HarnessError;
use crate::metallib;
use crate::toolchain::{LlvmTools, run_tool};
use crate::workshop::{Content, Mode, Unit, Workshop, digest};

/// Lowers kernels of the released wheel by host name, and gives the objects of
/// a program or a library that has them.
///
/// # Errors
/// The wheel cannot be had, lacks a kernel, or a tool fails.
pub fn objects(shop: &Workshop, host_names: &[String]) -> Result<Vec<PathBuf>, HarnessError> {
    let tools = LlvmTools::find()?;
    let bitcodes = bitcodes(shop, host_names)?;
    let items: Vec<(&String, &PathBuf)> = host_names.iter().zip(&bitcodes).collect();
    let lowered =
        crate::workshop::in_parallel(&items, |(name, bitcode)| lower(shop, &tools, name, bitcode))?;
    let mut text = "#include \"oracle.h\"\n".to_string();
    for (name, (_, buffers)) in host_names.iter().zip(&lowered) {
        text.push_str(&format!("OVERLAY_AIR_KERNEL({name}, {buffers})\n"));
    }
    let mut objects: Vec<PathBuf> = lowered.into_iter().map(|(object, _)| object).collect();
    for text in [text, "#include \"oracle.cpp\"\n".to_string()] {
        objects.push(shop.compile(&Unit {
            content: Content::Support,
            text,
            flags: Vec::new(),
            mode: Mode::Apple,
        })?);
    }
    Ok(objects)
}

/// Files with the kernels' bitcode; the wheel is opened only for those that
/// are not kept yet.
fn bitcodes(shop: &Workshop, host_names: &[String]) -> Result<Vec<PathBuf>, HarnessError> {
    let folder = shop.store().join("air");
    fs::create_dir_all(&folder).map_err(HarnessError::io(&folder))?;
    let files: Vec<PathBuf> = host_names.iter().map(|n| folder.join(format!("{n}.bc"))).collect();
    if files.iter().all(|file| file.is_file()) {
        return Ok(files);
    }
    let library = metallib::metallib(&metallib::wheel(shop.store())?)?;
    let functions = metallib::functions(&library)?;
    for (name, file) in host_names.iter().zip(&files) {
        let bitcode = functions.get(name).ok_or_else(|| HarnessError::Metallib {
            what: "the function list".into(),
            at: 0,
            why: format!("it has no kernel {name}"),
        })?;
        let aside =
            tempfile::NamedTempFile::new_in(shop.scratch()).map_err(HarnessError::io(file))?;
        fs::write(aside.path(), bitcode).map_err(HarnessError::io(file))?;
        aside.persist(file).map_err(|error| HarnessError::io(file)(error.error))?;
    }
    Ok(files)
}

/// One kernel's object and how many buffers it takes.
fn lower(
    shop: &Workshop,
    tools: &LlvmTools,
    name: &str,
    bitcode: &PathBuf,
) -> Result<(PathBuf, usize), HarnessError> {
    let bytes = fs::read(bitcode).map_err(HarnessError::io(bitcode))?;
    let key = digest(&[name, &tools.version, &crate::workshop::hex(&bytes)]);
    let object = shop.store().join("obj").join(format!("air-{key}.o"));
    let count = shop.store().join("obj").join(format!("air-{key}.buffers"));
    if let (true, Ok(buffers)) = (object.is_file(), fs::read_to_string(&count))
        && let Ok(buffers) = buffers.parse()
    {
        return Ok((object, buffers));
    }
    let mut dis = Command::new(&tools.dis);
    let said = run_tool(dis.arg(bitcode).args(["-o", "-"]), "reading Apple's bitcode")?;
    let text = String::from_utf8_lossy(&said.stdout);
    let buffers = buffers(&text, name)?;
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
    fs::write(&count, buffers.to_string()).map_err(HarnessError::io(&count))?;
    fs::rename(&built, &object).map_err(HarnessError::io(&object))?;
    Ok((object, buffers))
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

/// Counts a kernel's buffers and checks that what follows them is the position
/// the harness passes.
fn buffers(text: &str, name: &str) -> Result<usize, HarnessError> {
    let bad = |why: &str| HarnessError::Metallib {
        what: format!("kernel {name}"),
        at: 0,
        why: why.to_string(),
    };
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
}
