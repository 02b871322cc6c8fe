//! What this user may not read or write: repositories of another's, places and folders.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use overlay_tests_support::{Need, Suite};

use crate::apply::{A_TO_B, project};
use crate::project::Project;
use crate::tool::{Run, as_another_user, runs_as_root};

pub fn add(suite: &mut Suite) {
    let git = || Need::program("git", "git");
    let root = || {
        let why = "only root gives a folder to another user; run the tests as root";
        Need::met(runs_as_root(), why).where_there_is_one()
    };
    let bound = || Need::asked(as_another_user).where_there_is_one();
    suite.test_needing("rights/a clone of another user", [git(), root()], clone_of_another);
    suite.test_needing("rights/a cache of another user", [git(), root()], cache_of_another);
    suite.test_needing("rights/a dry run below a file", [git()], below_a_file);
    suite.test_needing("rights/a dry run where nothing may be made", [git(), bound()], closed);
    suite.test_needing("rights/a tree with folders that are closed", [git(), bound()], read_only);
    suite.test_needing("rights/no home, and so no cache", [git()], homeless);
}

/// Some user that is neither root nor who runs the tests.
const ANOTHER: u32 = 54_321;

fn give(folder: &Path, owner: u32) {
    for item in walk(folder) {
        chown(item, Some(owner), None).unwrap();
    }
}

/// A folder and all that is below it.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![folder.to_path_buf()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        if path.is_dir() && !path.is_symlink() {
            found.extend(fs::read_dir(path).unwrap().map(|item| item.unwrap().path()));
        }
        at += 1;
    }
    found
}

fn clone_of_another() {
    let project = project(&[("first", "metal", A_TO_B)]);
    fs::remove_dir_all(project.tool.path(".cache")).unwrap();
    let clone = project.tool.path("clone").canonicalize().unwrap();
    give(&clone, ANOTHER);
    let home = project.tool.path("home").display().to_string();
    fs::create_dir(&home).unwrap();
    let home = [("HOME", &*home), ("XDG_CONFIG_HOME", "")];
    let command = format!("git config --global --add safe.directory {}", clone.display());
    let owner = format!("belongs to another user (id {ANOTHER})");
    let ways = ["clone", "clone/.git"];
    let drift = |from| ["drift", "--to", "main", "--from", from];
    for from in ways {
        for args in [&["fetch", "--from", from][..], &["apply", "--from", from], &drift(from)] {
            let run = project.tool.run_with(&home, args);
            run.assert_status(4);
            for words in [&owner, &format!("`{command}`")] {
                assert!(run.stderr().contains(words), "{words}: {}", run.shown());
            }
        }
    }
    let named = [("MLX_OVERLAY_UPSTREAM", "clone"), home[0], home[1]];
    let doctor = project.tool.run_with(&named, ["doctor", "--offline"]);
    assert!(doctor.stdout().contains(&format!("try: {command}\n")), "{}", doctor.shown());
    // As it says.
    let config = std::process::Command::new("sh").args(["-c", &command]).envs(home).status();
    assert!(config.unwrap().success());
    for from in ways {
        project.tool.run_with(&home, drift(from)).assert_status(0);
    }
    project.tool.run_with(&home, ["apply", "--from", "clone"]).assert_status(0);
}

fn cache_of_another() {
    let project = Project::new();
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    let cache = project.tool.path(".cache/git");
    give(&cache, ANOTHER);
    let owner = format!("in the cache belongs to another user (id {ANOTHER}): remove it");
    for args in [&["fetch", "--from", "clone"][..], &["apply"], &["fetch", "--offline"]] {
        let run = project.tool.run(args);
        run.assert_status(5);
        assert!(run.stderr().contains(&owner), "{}", run.shown());
    }
    let doctor = project.tool.run(["doctor", "--offline"]);
    assert!(doctor.stdout().contains("try: chown -R \"$(id -u)\" /"), "{}", doctor.shown());
    // With a clone at hand there is a way to the pin, and still no place for it.
    let clone = [("MLX_OVERLAY_UPSTREAM", "clone")];
    project.tool.run_with(&clone, ["apply"]).assert_status(5);
    project.tool.run_with(&clone, ["doctor", "--offline"]).assert_status(1);
    project.tool.run(["pin"]).assert_status(0);
    // As it says.
    give(&cache, 0);
    project.tool.run_with(&clone, ["doctor", "--offline"]).assert_status(0);
    project.tool.run(["fetch", "--offline"]).assert_status(0);
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
    // The tree's own folder cannot be moved then.
    let out = project.tool.path("out");
    fs::set_permissions(&out, Permissions::from_mode(0o555)).unwrap();
    project.tool.run_bound(["apply", "--out", "out"]).assert_status(0);
    project.write(&format!("{series}/first.patch"), A_TO_B);
    same_end(|args| project.tool.run_bound(args), "out", "`chmod u+w ");
    assert_eq!(fs::read_to_string(out.join("a.txt")).unwrap(), "c\n");
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
