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
    suite.test("verify-kernels/asks-for-each-header-first", partial_tree);
    suite.test("verify-kernels/says-once-why-a-file-cannot-be-read", unreadable);
    suite.test("verify-kernels/offline-without-the-wheel-proves-nothing", no_wheel);
    suite.test("verify-kernels/a-named-wheel-that-is-not-there-is-no-download", named_wheel);
    suite.test("verify-kernels/removes-a-wheel-that-is-not-whole", broken_wheel);
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

/// LLVM tools that say their version, and a python that must not be asked.
const LLVM: &str = "#!/bin/sh\necho 'LLVM version 19.1.7'\n";
const PYTHON: &str = "#!/bin/sh\necho 'error: asked the network' >&2\nexit 1\n";

/// A folder to be the path, with such a clang in it.
fn path_with_clang(tool: &Tool, script: &str) -> (String, String) {
    program(tool, "clang++-16", script);
    (tool.path("path").display().to_string(), tool.path("path/clang++-16").display().to_string())
}

fn program(tool: &Tool, name: &str, script: &str) {
    let file = tool.path("path").join(name);
    fs::create_dir_all(tool.path("path")).unwrap();
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
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

/// Verifies a tree with these files among its kernels, by such a clang and with
/// these options. Nobody may ask the network.
fn verify(clang: &str, files: &[(&str, &str)], options: &[&str]) -> Run {
    verify_in(&Tool::new(), clang, files, &[], options)
}

fn verify_in(
    tool: &Tool,
    clang: &str,
    files: &[(&str, &str)],
    variables: &[(&str, &str)],
    options: &[&str],
) -> Run {
    let (path, clang) = path_with_clang(tool, clang);
    program(tool, "llvm-dis-19", LLVM);
    program(tool, "llc-19", LLVM);
    program(tool, "python3", PYTHON);
    let kernels = tool.path("tree/mlx/backend/metal/kernels");
    fs::create_dir_all(&kernels).unwrap();
    for (name, text) in files {
        fs::write(kernels.join(name), text).unwrap();
    }
    let tools = [("PATH", path.as_str()), ("MLX_OVERLAY_CLANG", clang.as_str())];
    let variables = [&tools[..], variables].concat();
    let run = tool.run_with(&variables, [&["verify", "--kernels", "tree"], options].concat());
    assert!(!run.shown().contains("asked the network"), "{}", run.shown());
    run
}

fn no_sanitizers() {
    let run = verify(CLANG, &[("quantized.metal", "")], &["--offline"]);
    run.assert_status(4);
    for wanted in ["cannot find libclang_rt", "apt-get install -y libclang-rt-16-dev"] {
        assert!(run.stderr().contains(wanted), "{wanted}: {}", run.shown());
    }
}

/// Each with the text it looks for, and nothing is compiled.
fn misfits() {
    let text = "METAL_FUNC void qmv_fast_streamed_impl() {\n  simd_sum(result[v][row]);\n}\n";
    let run = verify(LINKING_CLANG, &[("quantized.metal", ""), ("quantized.h", text)], &[]);
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

/// Each header that the kernels include, in the words of a tree without any.
fn partial_tree() {
    let include = "#include \"mlx/backend/metal/kernels/quantized.h\"\n";
    for (files, missing) in [
        (&[][..], "quantized.metal"),
        (&[("quantized.metal", include)], "quantized.h"),
        (
            &[("quantized.metal", include), ("quantized.h", "#include \"quantized_utils.h\"\n")],
            "quantized_utils.h",
        ),
        // Nothing includes it, but the mutants are of its text.
        (&[("quantized.metal", "")], "quantized.h"),
    ] {
        let run = verify(LINKING_CLANG, files, &[]);
        run.assert_status(3);
        let said = run.stderr();
        let wanted = format!("{missing} is missing");
        assert!(said.contains("tree: not a whole MLX tree: ") && said.contains(&wanted), "{said}");
        assert!(!run.shown().contains("compiled something"), "{}", run.shown());
    }
}

fn unreadable() {
    let tool = Tool::new();
    let kernels = "tree/mlx/backend/metal/kernels/quantized.metal";
    fs::create_dir_all(tool.path(kernels)).unwrap();
    let run = verify_in(&tool, LINKING_CLANG, &[], &[], &[]);
    run.assert_status(5);
    assert_eq!(run.stderr().matches("Is a directory").count(), 1, "{}", run.shown());
    assert!(run.stderr().contains(kernels) && !run.stderr().contains("missing"), "{}", run.shown());
}

/// The wheel the oracle needs, as the harness keeps it.
const WHEEL: &str = ".cache/harness/mlx_metal-0.32.1-py3-none-macosx_14_0_arm64.whl";
const TREE: &[(&str, &str)] = &[("quantized.metal", "")];

/// Without Apple's kernels nothing says that the host computes as they do.
fn no_wheel() {
    let run = verify(LINKING_CLANG, TREE, &["--offline"]);
    run.assert_status(4);
    for wanted in ["mlx_metal-0.32.1", "the network is off", "pip download --no-deps"] {
        assert!(run.stderr().contains(wanted), "{wanted}: {}", run.shown());
    }
    let run = verify(LINKING_CLANG, TREE, &["--offline", "--format", "json"]);
    run.assert_status(4);
    let error = &run.json()["error"];
    assert_eq!(error["kind"], "missing", "{}", run.shown());
    let remedies = error["remedies"].to_string();
    assert!(remedies.contains("pip download") && remedies.contains("MLX_OVERLAY_METAL_WHEEL"));
}

fn named_wheel() {
    for options in [&["--offline"][..], &[]] {
        let named = [("MLX_OVERLAY_METAL_WHEEL", "/nonexistent/wheel")];
        let run = verify_in(&Tool::new(), LINKING_CLANG, TREE, &named, options);
        run.assert_status(4);
        let wanted = "MLX_OVERLAY_METAL_WHEEL names `/nonexistent/wheel`: No such file";
        assert!(run.stderr().contains(wanted), "{}", run.shown());
    }
}

fn broken_wheel() {
    let tool = Tool::new();
    fs::create_dir_all(tool.path(".cache/harness")).unwrap();
    fs::write(tool.path(WHEEL), "half of it").unwrap();
    let run = verify_in(&tool, LINKING_CLANG, TREE, &[], &["--offline"]);
    run.assert_status(4);
    assert!(run.stderr().contains("was not whole and has been removed"), "{}", run.shown());
    assert!(!tool.path(WHEEL).exists());
}

fn full_alone() {
    let run = Tool::new().run(["verify", "--full"]);
    run.assert_status(2);
    assert!(run.stderr().contains("--kernels"), "{}", run.shown());
}
