//! `overlay env`.

use std::fs;
use std::process::Command;

use overlay_tests_support::{Need, Suite};

use mlx_overlay_engine::publish::Partial;

use super::published::tool_with_tree;
use super::tool::Tool;

pub fn add(suite: &mut Suite) {
    suite.test("env: names a tree as CMake takes it", names_a_tree);
    let cmake = [Need::program("cmake", "cmake"), Need::program("ninja", "ninja-build")];
    suite.test_needing("env: a CMake project of one's own takes the tree", cmake, cmake_takes_it);
    suite.test("env: no tree, no environment", no_tree);
    suite.test("env: a partial tree is refused with a way on", partial);
    suite.test("env: a key that no build has", no_such_key);
}

/// A folder that could be MLX's, with a space and a quote in its name.
fn tree(tool: &Tool) -> String {
    let tree = tool.path("the tree's");
    fs::create_dir_all(tree.join("mlx")).unwrap();
    fs::write(tree.join("CMakeLists.txt"), "project(mlx LANGUAGES NONE)\n").unwrap();
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
    for words in
        ["error: `nowhere` cannot be found", "because: No such file", "apply --out nowhere`"]
    {
        assert!(run.stderr().contains(words), "{words}: {}", run.shown());
    }
    fs::create_dir(tool.path("empty")).unwrap();
    let run = tool.run(["env", "empty"]);
    run.assert_status(4);
    assert!(run.stderr().contains("holds no CMakeLists.txt"), "{}", run.shown());
}

fn partial() {
    let tool = tool_with_tree(Some(Partial { have: 2, of: 933 }));
    let run = tool.run(["env", "tree"]);
    run.assert_status(4);
    for words in ["2 of MLX's 933 files", "--from <clone or URL>`", "apply --at crate:"] {
        assert!(run.stderr().contains(words), "{words}: {}", run.shown());
    }
}

fn no_such_key() {
    let tool = Tool::new();
    let tree = tree(&tool);
    let run = tool.run(["env", &tree, "--key", "0123"]);
    run.assert_status(4);
    assert!(run.stderr().contains("no build of"), "{}", run.shown());
}

/// What the command prints, in a shell, for a project that would fetch MLX.
fn cmake_takes_it() {
    let tool = Tool::new();
    let tree = tree(&tool);
    let run = tool.run(["env", &tree]);
    run.assert_status(0);
    let lists = "cmake_minimum_required(VERSION 3.25)\nproject(own LANGUAGES NONE)\n\
        include(FetchContent)\n\
        FetchContent_Declare(mlx GIT_REPOSITORY https://upstream.invalid/mlx GIT_TAG v0)\n\
        FetchContent_MakeAvailable(mlx)\nmessage(STATUS \"MLX is ${mlx_SOURCE_DIR}\")\n";
    fs::write(tool.path("CMakeLists.txt"), lists).unwrap();
    let script = format!(
        "{}cmake -G Ninja -S . -B build -DFETCHCONTENT_SOURCE_DIR_MLX=\"$FETCHCONTENT_SOURCE_DIR_MLX\"",
        run.stdout()
    );
    let cmake = Command::new("sh").args(["-c", &script]).current_dir(tool.path("")).output();
    let cmake = cmake.unwrap();
    let said = String::from_utf8_lossy(&cmake.stdout);
    assert!(cmake.status.success(), "{cmake:?}");
    assert!(said.contains(&format!("MLX is {tree}")), "{said}");
}
