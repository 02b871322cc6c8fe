//! `overlay env`.

use std::fs;

use overlay_tests_support::Suite;

use super::tool::Tool;

pub fn add(suite: &mut Suite) {
    suite.test("env: names a tree as CMake takes it", names_a_tree);
    suite.test("env: no tree, no environment", no_tree);
    suite.test("env: a key that no build has", no_such_key);
}

/// A folder that could be MLX's, with a space and a quote in its name.
fn tree(tool: &Tool) -> String {
    let tree = tool.path("the tree's");
    fs::create_dir_all(tree.join("mlx")).unwrap();
    fs::write(tree.join("CMakeLists.txt"), "project(mlx)\n").unwrap();
    tree.canonicalize().unwrap().display().to_string()
}

fn names_a_tree() {
    let tool = Tool::new();
    let tree = tree(&tool);
    let run = tool.run(["env", &tree]);
    run.assert_status(0);
    let quoted = format!("'{}'", tree.replace('\'', r"'\''"));
    assert!(
        run.stdout().contains(&format!("export FETCHCONTENT_SOURCE_DIR_MLX={quoted}\n")),
        "{}",
        run.shown()
    );
    assert!(!run.stdout().contains("MLX_OVERLAY_LIB="), "{}", run.shown());
    assert!(run.stderr().contains("No library was built from this tree yet"), "{}", run.shown());

    let run = tool.run(["env", &tree, "--format", "json"]);
    run.assert_status(0);
    let json = run.json();
    assert_eq!(json["schema"], "mlx-overlay/env");
    assert_eq!(json["tree"], tree);
    assert_eq!(json["libraries"], serde_json::json!([]));
}

fn no_tree() {
    let tool = Tool::new();
    let run = tool.run(["env", "nowhere"]);
    run.assert_status(4);
    assert!(run.stderr().contains("overlay apply"), "{}", run.shown());
    fs::create_dir(tool.path("empty")).unwrap();
    let run = tool.run(["env", "empty"]);
    run.assert_status(4);
    assert!(run.stderr().contains("holds no CMakeLists.txt"), "{}", run.shown());
}

fn no_such_key() {
    let tool = Tool::new();
    let tree = tree(&tool);
    let run = tool.run(["env", &tree, "--key", "0123"]);
    run.assert_status(4);
    assert!(run.stderr().contains("no build of"), "{}", run.shown());
}
