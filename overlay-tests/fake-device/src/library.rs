//! The library file of the fake device: the host names a metallib of the tree
//! would hold, read from its `.metal` files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::FakeDeviceError;
use crate::build::Kernels;
use crate::toolchain::{Toolchain, run};

const METAL_DIR: &str = "mlx/backend/metal/kernels";

/// Where the library file is among a tree's programs.
pub(crate) fn file(folder: &Path, kernels: Kernels) -> PathBuf {
    folder.join(match kernels {
        Kernels::ByName => "kernels.txt",
        Kernels::FromText => "kernels_jit.txt",
    })
}

/// Writes both library files, of the tree in the build folder.
pub(crate) fn write(
    toolchain: &Toolchain,
    workplace: &Path,
    folder: &Path,
) -> Result<(), FakeDeviceError> {
    let list_file = workplace.join("tree").join(METAL_DIR).join("CMakeLists.txt");
    let list = fs::read_to_string(&list_file).map_err(FakeDeviceError::io(&list_file))?;
    let (always, without_jit) = compiled(&list);
    let mut names = names_of(toolchain, workplace, &always)?;
    store(&file(folder, Kernels::FromText), &names)?;
    names.append(&mut names_of(toolchain, workplace, &without_jit)?);
    store(&file(folder, Kernels::ByName), &names)
}

fn store(file: &Path, names: &BTreeSet<String>) -> Result<(), FakeDeviceError> {
    let lines: Vec<&str> = names.iter().map(String::as_str).collect();
    fs::write(file, lines.join("\n") + "\n").map_err(FakeDeviceError::io(file))
}

/// The `.metal` files that upstream's list compiles: in every build, and in
/// builds without JIT. NAX kernels need Apple's newest SDK and are left out.
fn compiled(list: &str) -> (Vec<&str>, Vec<&str>) {
    let (always, without_jit) = list.split_once("if(NOT MLX_METAL_JIT)").unwrap_or((list, ""));
    (build_kernels(always), build_kernels(without_jit))
}

fn build_kernels(text: &str) -> Vec<&str> {
    text.split("build_kernel(")
        .skip(1)
        .filter_map(|call| call.split([' ', ')', '\n']).find(|word| !word.is_empty()))
        .filter(|name| !name.starts_with("KERNEL") && !name.ends_with("_nax"))
        .collect()
}

fn names_of(
    toolchain: &Toolchain,
    workplace: &Path,
    kernels: &[&str],
) -> Result<BTreeSet<String>, FakeDeviceError> {
    let mut names = BTreeSet::new();
    for kernel in kernels {
        let file = workplace.join("tree").join(METAL_DIR).join(format!("{kernel}.metal"));
        let mut clang = Command::new(&toolchain.clangxx);
        clang.args(["-x", "c++", "-std=c++17", "-E", "-P", "-w"]);
        clang.args(["-D__METAL__", "-D__METAL_VERSION__=320", "-I"]).arg(workplace.join("tree"));
        clang.arg("-I").arg(workplace.join("xcrun/Xcode.app")).arg(file);
        names.extend(host_names(&run(&mut clang, "preprocessing the kernels")?));
    }
    Ok(names)
}

/// The host names of preprocessed Metal text: those of instantiations, whose
/// string literals are joined, and kernels that are no templates.
fn host_names(text: &str) -> BTreeSet<String> {
    let named = text.split("host_name(").skip(1).filter_map(|rest| {
        let argument = rest.split(')').next()?;
        // Every other part of a split at quotes is inside them.
        Some(argument.split('"').skip(1).step_by(2).collect::<String>())
    });
    let plain = text.match_indices("[[kernel]] void ").filter_map(|(at, mark)| {
        let before = text[..at].trim_end();
        let name = text[at + mark.len()..].split('(').next()?.trim();
        (!before.ends_with('>')).then(|| name.to_string())
    });
    named.chain(plain).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_and_templates_left_out() {
        let text = r#"
            template <typename T> [[kernel]] void scan(int a);
            template [[host_name("scan" "_" "float")]] [[kernel]] decltype(scan<float>) scan<float>;
            [[kernel]] void fence_wait(int a) {}
        "#;
        let names: Vec<String> = host_names(text).into_iter().collect();
        assert_eq!(names, ["fence_wait", "scan_float"]);
    }

    #[test]
    fn the_list_is_split_at_the_jit() {
        let list = "function(build_kernel KERNEL)\nbuild_kernel(dot)\nif(NOT MLX_METAL_JIT)\n\
                    build_kernel(\n    reduce\n a.h)\nbuild_kernel(quantized_nax b.h)\nendif()";
        assert_eq!(compiled(list), (vec!["dot"], vec!["reduce"]));
    }
}
