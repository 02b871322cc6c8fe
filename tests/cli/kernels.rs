//! `overlay verify --kernels` where it cannot run. What it says of a laid tree
//! is tested beside the harness.

use overlay_tests_support::Suite;

use crate::tool::Tool;

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    suite.test("verify-kernels/names-the-package-of-a-missing-clang", missing_clang);
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

fn full_alone() {
    let run = Tool::new().run(["verify", "--full"]);
    run.assert_status(2);
    assert!(run.stderr().contains("--kernels"), "{}", run.shown());
}
