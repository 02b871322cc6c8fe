//! Where this user may not write: places, folders, and no cache.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use overlay_tests_support::{Need, Suite};

use crate::apply::{A_TO_B, project};
use crate::tool::{Run, as_another_user};

pub fn add(suite: &mut Suite) {
    let git = || Need::program("git", "git");
    let bound = || Need::asked(as_another_user).where_there_is_one();
    suite.test_needing("rights/a dry run below a file", [git()], below_a_file);
    suite.test_needing("rights/a dry run where nothing may be made", [git(), bound()], closed);
    suite.test_needing("rights/a tree with folders that are closed", [git(), bound()], read_only);
    suite.test_needing("rights/no home, and so no cache", [git()], homeless);
}

/// A dry run ends as the run that writes does.
fn same_end(run: impl Fn(&[&str]) -> Run, out: &str, why: &str) {
    let (wet, dry) = (run(&["apply", "--out", out]), run(&["apply", "--out", out, "--dry-run"]));
    wet.assert_status(5);
    assert!(wet.stderr().contains(why), "{}", wet.shown());
    assert_eq!((dry.status(), dry.stderr()), (wet.status(), wet.stderr()));
}

fn below_a_file() {
    let project = project(&[("first", "metal", A_TO_B)]);
    project.write("file", "");
    for out in ["file/out", "file/below/out"] {
        same_end(|args| project.tool.run(args), out, "Not a directory");
    }
}

fn closed() {
    let project = project(&[("first", "metal", A_TO_B)]);
    let folder = project.tool.path("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    for out in ["closed/out", "closed/below/out"] {
        same_end(|args| project.tool.run_bound(args), out, "Permission denied");
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}

/// The folders of the last tree: a person took the right to write from them.
fn read_only() {
    let project = project(&[("first", "metal", A_TO_B)]);
    project.tool.run_bound(["apply", "--out", "out"]).assert_status(0);
    let folder = project.tool.path("out/d");
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    let series = format!("patches/{}", &project.commit[..8]);
    project.write(&format!("{series}/first.patch"), &A_TO_B.replace("+b", "+c"));
    let again = project.tool.run_bound(["apply", "--out", "out"]);
    again.assert_status(0);
    assert_eq!(fs::read_to_string(project.tool.path("out/a.txt")).unwrap(), "c\n");
    assert!(!project.tool.path(".out.overlay").exists(), "{}", again.shown());
}

/// Of those that need no cache none asks for one.
fn homeless() {
    let project = project(&[("first", "metal", A_TO_B)]);
    project.tool.run(["apply", "--out", "out"]).assert_status(0);
    fs::write(project.tool.path("out/CMakeLists.txt"), "").unwrap();
    let run = |args: &[&str]| {
        let none = ["HOME", "XDG_CACHE_HOME", "MLX_OVERLAY_CACHE"].map(|name| (name, ""));
        project.tool.run_with(&none, args)
    };
    project.write("tree/a.txt", "a\n");
    project.write("fix.patch", A_TO_B);
    for args in [
        &["pin"][..],
        &["status", "out"],
        &["verify", "out"],
        &["apply", "--out", "out"],
        &["try", "tree", "fix.patch", "--out", "new"],
        &["drift", "--to", "main", "--from", "clone"],
        &["env", "out"],
    ] {
        run(args).assert_status(0);
    }
    run(&["doctor", "--offline"]).assert_status(1);
    for args in [&["fetch", "--from", "clone"][..], &["apply", "--out", "other"]] {
        let run = run(args);
        run.assert_status(4);
        assert!(run.stderr().contains("; set MLX_OVERLAY_CACHE"), "{}", run.shown());
    }
}
