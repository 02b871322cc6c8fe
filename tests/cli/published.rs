//! `overlay status` and `overlay verify` on trees published by the engine.

use std::fs;

use mlx_overlay_engine::publish::{Identity, Options, Partial, Source, publish};
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode, ObjectId, TreePath};
use overlay_tests_support::Suite;

use crate::tool::Tool;

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    suite.test("status/says-that-all-is-as-published", as_published);
    suite.test("status/names-a-hand-edit-and-ends-with-1", hand_edit);
    suite.test("status/what-stands-in-the-way-needs-force", in_the_way);
    suite.test("status/tells-marks-and-foreign-files-in-json", marks_in_json);
    suite.test("status/no-tree-ends-with-4", no_tree);
    suite.test("verify/hashes-what-status-takes-on-trust", verify_hashes);
}

/// A folder with a published `tree` of two files.
pub fn tool_with_tree(partial: Option<Partial>) -> Tool {
    let tool = Tool::new();
    let file = |name: &str, text: &str| {
        let path = TreePath::new(name).expect("a path");
        (path, File::new(Mode::Regular, text.as_bytes()))
    };
    let tree = MemoryTree([file("mlx/a.h", "a\n"), file("mlx/b.h", "b\n")].into());
    let identity = Identity {
        pin: ObjectId::of_blob(b"pin"),
        source: Source::Git { tree: ObjectId::of_blob(b"tree") },
        series: "sha256:0".into(),
        contracts: String::new(),
        groups: vec!["metal".into()],
        partial,
        trial: None,
    };
    publish(&tool.path("tree"), &tree, &identity, &Options::default()).expect("a place");
    tool
}

fn as_published() {
    let tool = tool_with_tree(None);
    let run = tool.run(["status", "tree"]);
    run.assert_status(0);
    let pin = ObjectId::of_blob(b"pin");
    let expected = format!(
        "tree\n  pin     {pin}\n  series  sha256:0\n  groups  metal\n\
         All 2 files as published, by their size and time (`overlay verify` hashes all).\n"
    );
    assert_eq!(run.stdout(), expected);
    assert_eq!(run.stderr(), "");
}

fn hand_edit() {
    let tool = tool_with_tree(None);
    fs::write(tool.path("tree/mlx/a.h"), "mine\n").expect("a file");
    fs::remove_file(tool.path("tree/mlx/b.h")).expect("a file");
    for command in ["status", "verify"] {
        let run = tool.run([command, "tree"]);
        run.assert_status(1);
        for wanted in ["`mlx/a.h` modified\n", "`mlx/b.h` missing\n", "2 files changed"] {
            assert!(run.stdout().contains(wanted), "{wanted}: {}", run.shown());
        }
        assert!(!run.stdout().contains("as published,"), "{}", run.shown());
    }
}

/// `apply` alone would refuse to overwrite what is in a folder.
fn in_the_way() {
    let tool = tool_with_tree(None);
    let told = |wanted: &str| {
        let run = tool.run(["status", "tree"]);
        run.assert_status(1);
        assert!(run.stdout().contains(wanted), "{wanted}: {}", run.shown());
    };
    fs::remove_file(tool.path("tree/mlx/a.h")).expect("removed");
    told(" puts back what is missing.\n");
    fs::create_dir(tool.path("tree/mlx/a.h")).expect("a folder");
    fs::write(tool.path("tree/mlx/a.h/mine"), "mine").expect("a file");
    told(" --force` ");
    told(" puts back what is missing, over what is in its way.\n");
}

fn marks_in_json() {
    let tool = tool_with_tree(Some(Partial { have: 2, of: 933 }));
    fs::write(tool.path("tree/mlx/notes"), "mine\n").expect("a file");
    let run = tool.run(["status", "tree", "--format", "json"]);
    run.assert_status(0);
    let json = run.json();
    assert_eq!(json["schema"], "mlx-overlay/status");
    assert_eq!(json["whole"], true);
    assert_eq!(json["files"], 2);
    assert_eq!(json["identity"]["partial"]["of"], 933);
    let findings = serde_json::json!([
        { "kind": "extra", "path": "mlx/notes" },
        { "kind": "partial", "have": 2, "of": 933 },
    ]);
    assert_eq!(json["findings"], findings);
}

fn no_tree() {
    let tool = Tool::new();
    let run = tool.run(["status"]);
    run.assert_status(2);
    assert!(run.stderr().contains("no mlx-pin.toml in"), "{}", run.shown());
    let run = tool.run(["status", "tree"]);
    run.assert_status(4);
    assert!(run.stderr().contains("try: `overlay apply --out tree` publishes"), "{}", run.shown());
    // Without clang that is what is told first, with the same status.
    tool.run(["verify", "--kernels", "tree"]).assert_status(4);
    // Where `apply` would refuse to write it is no remedy.
    fs::create_dir(tool.path("mine")).expect("a folder");
    fs::write(tool.path("mine/f"), "mine").expect("a file");
    let run = tool.run(["status", "mine"]);
    run.assert_status(4);
    assert!(run.stderr().contains("try: it holds other files: name a tree"), "{}", run.shown());
}

fn verify_hashes() {
    let tool = tool_with_tree(None);
    let file = tool.path("tree/mlx/a.h");
    // Older than the stamp, as files are that have been there for a while.
    let stamp = tool.path("tree/.overlay-stamp.json");
    let later = fs::FileTimes::new()
        .set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5));
    let open = |path| fs::OpenOptions::new().write(true).open(path).expect("a file");
    open(&stamp).set_times(later).expect("a time");
    let time = fs::metadata(&file).and_then(|m| m.modified()).expect("a time");
    fs::write(&file, "A\n").expect("a file");
    open(&file).set_times(fs::FileTimes::new().set_modified(time)).expect("a time");

    tool.run(["status", "tree"]).assert_status(0);
    let run = tool.run(["verify", "tree", "--format", "json"]);
    run.assert_status(1);
    assert_eq!(run.json()["findings"][0]["kind"], "modified");
    assert_eq!(run.json()["hashed"], 2);
}
