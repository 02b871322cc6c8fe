//! `overlay verify --kernels` where it cannot run. What it says of a laid tree
//! is tested beside the harness.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use overlay_tests_support::Suite;

use crate::tool::{Run, Tool};

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    suite.test("verify-kernels/names-the-package-of-a-missing-clang", missing_clang);
    suite.test("verify-kernels/names-the-package-of-a-missing-llvm-first", missing_llvm);
    suite.test("verify-kernels/names-the-package-of-missing-sanitizers-first", no_sanitizers);
    suite.test("verify-kernels/names-the-mutants-that-do-not-fit-first", misfits);
    suite.test("verify-kernels/full-is-of-kernels-only", full_alone);
}

fn missing_clang() {
    let tool = Tool::new();
    let variables = [("MLX_OVERLAY_CLANG", "no-such-clang")];
    let run = tool.run_with(&variables, ["verify", "--kernels", "tree"]);
    run.assert_status(4);
    for wanted in ["looked for no-such-clang", "apt-get install -y clang-16"] {
        assert!(run.stderr().contains(wanted), "{wanted}: {}", run.shown());
    }
}

/// A clang that says its version and can nothing else.
const CLANG: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo "clang version 16.0.6" && exit 0
echo "error: cannot find libclang_rt.asan.a" >&2
exit 1
"#;

/// One that links nothing, and says that it did; compiling, it fails.
const LINKING_CLANG: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo "clang version 16.0.6" && exit 0
case "$*" in -fsanitize*) exit 0;; esac
echo "error: compiled something" >&2
exit 1
"#;

/// A folder to be the path, with such a clang in it.
fn path_with_clang(tool: &Tool, script: &str) -> (String, String) {
    let (folder, clang) = (tool.path("path"), tool.path("path/clang++-16"));
    fs::create_dir(&folder).unwrap();
    fs::write(&clang, script).unwrap();
    fs::set_permissions(&clang, fs::Permissions::from_mode(0o755)).unwrap();
    (folder.display().to_string(), clang.display().to_string())
}

fn missing_llvm() {
    let tool = Tool::new();
    let (path, clang) = path_with_clang(&tool, CLANG);
    let run = tool.run_with(
        &[("PATH", path.as_str()), ("MLX_OVERLAY_CLANG", clang.as_str())],
        ["verify", "--kernels", "tree"],
    );
    run.assert_status(4);
    for wanted in ["looked for llvm-dis-19", "apt-get install -y llvm-19"] {
        assert!(run.stderr().contains(wanted), "{wanted}: {}", run.shown());
    }
}

/// Verifies a tree with these files among its kernels, by such a clang, offline.
fn verify(clang: &str, files: &[(&str, &str)]) -> Run {
    let tool = Tool::new();
    let (path, clang) = path_with_clang(&tool, clang);
    let kernels = tool.path("tree/mlx/backend/metal/kernels");
    fs::create_dir_all(&kernels).unwrap();
    for (name, text) in files {
        fs::write(kernels.join(name), text).unwrap();
    }
    tool.run_with(
        &[("PATH", path.as_str()), ("MLX_OVERLAY_CLANG", clang.as_str())],
        ["verify", "--kernels", "--offline", "tree"],
    )
}

/// Offline and without the wheel no LLVM is asked for.
fn no_sanitizers() {
    let run = verify(CLANG, &[("quantized.metal", "")]);
    run.assert_status(4);
    for wanted in ["cannot find libclang_rt", "apt-get install -y libclang-rt-16-dev"] {
        assert!(run.stderr().contains(wanted), "{wanted}: {}", run.shown());
    }
}

/// Each with the text it looks for, and nothing is compiled.
fn misfits() {
    let text = "METAL_FUNC void qmv_fast_streamed_impl() {\n  simd_sum(result[v][row]);\n}\n";
    let run = verify(LINKING_CLANG, &[("quantized.metal", ""), ("quantized.h", text)]);
    run.assert_status(1);
    for wanted in [
        "do not fit mlx/backend/metal/kernels/quantized.h",
        "mutant final-tree: in qmv_fast_streamed_impl its text stands 0 times and must stand once: \
         `result[v][row] = simd_sum(result[v][row]);`",
        "mutant sum-rebuilt: there is not one function load_vector_reg, with `return sum;`",
    ] {
        assert!(run.stderr().contains(wanted), "{wanted}: {}", run.shown());
    }
    assert!(!run.shown().contains("compiled something"), "{}", run.shown());
}

fn full_alone() {
    let run = Tool::new().run(["verify", "--full"]);
    run.assert_status(2);
    assert!(run.stderr().contains("--kernels"), "{}", run.shown());
}
