//! A user's own folder under the name of one that the overlay works in: nothing
//! in it is lost, and nothing is written beside it.

use std::fs;
use std::path::Path;

use overlay_tests_support::{Need, Suite};

use crate::apply::{A_TO_B, project};
use crate::tool::{Run, Tool};
use crate::try_patch::{PATCH, tool_with};

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    let git = || [Need::program("git", "git")];
    suite.test_needing("work-folders/apply-leaves-a-users-own-alone", git(), beside_a_tree);
    suite.test_needing("work-folders/an-update-keeps-a-users-own", git(), in_a_published_tree);
    suite.test("work-folders/try-out-leaves-a-users-own-alone", beside_a_new_folder);
    suite.test("work-folders/try-leaves-a-users-own-alone", inside_a_tree);
    suite.test("work-folders/what-a-killed-run-left-is-cleared", left_by_a_kill);
}

/// What a user may have there; each alone is enough to leave the folder alone.
const THEIRS: [&str; 5] = ["new/thesis.tex", "old/thesis.tex", "stamp", "lock", "notes/a.txt"];

fn put(folder: &Path, name: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, "mine\n").expect("a file");
}

fn assert_kept(folder: &Path, name: &str) {
    assert_eq!(fs::read_to_string(folder.join(name)).expect("it is there"), "mine\n", "{name}");
    let inside: Vec<_> = fs::read_dir(folder).expect("a folder").collect();
    assert_eq!(inside.len(), 1, "nothing is put beside it: {inside:?}");
}

fn assert_refused(run: &Run, folder: &str, name: &str) {
    run.assert_status(2);
    assert_eq!(run.json()["error"]["reason"], "foreign", "{}", run.shown());
    let held = name.split('/').next().expect("a part");
    for words in [&*format!("{folder}` is where"), &format!("(`{held}`)"), "try: move `"] {
        assert!(run.stderr().contains(words), "{words}: {}", run.shown());
    }
}

fn beside_a_tree() {
    let project = project(&[("first", "metal", A_TO_B)]);
    let folder = project.tool.path(".out.overlay");
    let apply = ["apply", "--out", "out", "--format", "json"];
    for name in THEIRS {
        put(&folder, name);
        for dry in [&["--dry-run"][..], &[]] {
            assert_refused(&project.tool.run(apply.iter().chain(dry)), "/.out.overlay", name);
            assert!(!project.tool.path("out").exists());
            assert_kept(&folder, name);
        }
        fs::remove_dir_all(&folder).expect("removed");
    }
    // Beside a tree that is there the folder is in the way of a change alone.
    project.tool.run(apply).assert_status(0);
    put(&folder, "new/thesis.tex");
    let status = project.tool.run(["status", "out"]);
    status.assert_status(0);
    assert!(!status.stdout().contains("broken off"), "{}", status.shown());
    project.tool.run(apply).assert_status(0);
    fs::write(project.tool.path("out/a.txt"), "edit\n").expect("written");
    let forced = project.tool.run(apply.iter().chain(&["--force"]));
    assert_refused(&forced, "/.out.overlay", "new");
    assert_kept(&folder, "new/thesis.tex");
    assert_eq!(fs::read_to_string(project.tool.path("out/a.txt")).expect("there"), "edit\n");
}

fn in_a_published_tree() {
    let project = project(&[("first", "metal", A_TO_B)]);
    let patch = format!("patches/{}/first.patch", &project.commit[..8]);
    project.tool.run(["apply", "--out", "out"]).assert_status(0);
    let edit = project.tool.path("out/.overlay-edit");
    put(&edit, "old/0");
    let status = project.tool.run(["status", "out"]);
    assert!(status.stdout().contains("`.overlay-edit/` is not of the tree"), "{}", status.shown());
    project.write(&patch, &A_TO_B.replace("+b", "+c"));
    project.tool.run(["apply", "--out", "out"]).assert_status(0);
    assert_kept(&edit, "old/0");
    fs::remove_dir_all(&edit).expect("removed");

    // A folder in the stamp's place.
    let stamp = project.tool.path("out/.overlay-stamp.json");
    fs::remove_file(&stamp).expect("removed");
    put(&stamp, "mine.txt");
    for args in [&["status", "out"][..], &["verify", "out"], &["env", "out"]] {
        let run = project.tool.run(args);
        run.assert_status(1);
        assert!(run.stderr().contains("is damaged (it is a folder)"), "{}", run.shown());
    }
    project.tool.run(["apply", "--out", "out"]).assert_status(1);
    project.tool.run(["try", "out", &patch, "--out", "new"]).assert_status(3);
    assert_kept(&stamp, "mine.txt");
    let forced = project.tool.run(["apply", "--out", "out", "--force"]);
    forced.assert_status(0);
    let named = "hand edit overwritten: `.overlay-stamp.json/mine.txt` is not of the tree";
    assert!(forced.stdout().contains(named), "{}", forced.shown());
    project.tool.run(["verify", "out"]).assert_status(0);
}

fn beside_a_new_folder() {
    for name in THEIRS {
        let tool = tool_with("a\nb\nc\n", PATCH);
        put(&tool.path(".new.overlay"), name);
        for dry in [&["--dry-run"][..], &[]] {
            let args = ["try", "tree", "fix.patch", "--out", "new", "--format", "json"];
            assert_refused(&tool.run(args.iter().chain(dry)), "/.new.overlay", name);
            assert_kept(&tool.path(".new.overlay"), name);
        }
        assert!(!tool.path("new").exists());
    }
}

fn inside_a_tree() {
    for name in ["new/0", "gone/mine", "lock", "notes.txt"] {
        let tool = tool_with("a\nb\nc\n", PATCH);
        let folder = tool.path("tree/.overlay-edit");
        put(&folder, name);
        // Left out of a copy it would be lost as well.
        for way in [&["--in-place"][..], &["--dry-run"], &["--out", "new"]] {
            let try_it = ["try", "tree", "fix.patch", "--format", "json"];
            assert_refused(&tool.run(try_it.iter().chain(way)), "/.overlay-edit", name);
            assert_kept(&folder, name);
            assert!(!tool.path("new").exists());
        }
        assert_eq!(fs::read_to_string(tool.path("tree/f.txt")).expect("there"), "a\nb\nc\n");
    }
    // A file of that name is no folder of ours either.
    let tool = tool_with("a\nb\nc\n", PATCH);
    fs::write(tool.path("tree/.overlay-edit"), "mine\n").expect("a file");
    for way in [&["--in-place"][..], &["--dry-run"], &["--out", "new"]] {
        let run = tool.run(["try", "tree", "fix.patch"].iter().chain(way));
        run.assert_status(2);
        assert!(run.stderr().contains(".overlay-edit` is a file"), "{}", run.shown());
    }
    assert_eq!(fs::read_to_string(tool.path("tree/.overlay-edit")).expect("there"), "mine\n");
}

/// The lock tells what a killed run of ours left; it is signed by hand here, as
/// the kill tests of the engine kill at every step.
fn left_by_a_kill() {
    let tool: Tool = tool_with("a\nb\nc\n", PATCH);
    let signed = "mlx-overlay, process 4000000000\n";
    for folder in ["tree/.overlay-edit", ".new.overlay"] {
        put(&tool.path(folder), "new/0");
        fs::write(tool.path(folder).join("lock"), signed).expect("a file");
    }
    tool.run(["try", "tree", "fix.patch", "--out", "new"]).assert_status(0);
    tool.run(["try", "tree", "fix.patch", "--in-place"]).assert_status(0);
    assert!(!tool.path("tree/.overlay-edit").exists() && !tool.path(".new.overlay").exists());
}
