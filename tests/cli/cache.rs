//! The cache: damaged, of another kind, or where nothing can be written.

use std::fs;
use std::path::Path;

use overlay_tests_support::{Need, Suite};

use crate::project::Project;

/// What is told where another has taken the place of a damaged one.
const MENDED: &str = "the object cache was damaged; it is fetched again, and whole";

pub fn add(suite: &mut Suite) {
    let git_there = || [Need::program("git", "git")];
    suite.test_needing("fetch/damage in the cache is mended", git_there(), damage);
    suite.test_needing("fetch/folders where the cache has files", git_there(), folders);
    suite.test_needing("apply/damage in the cache is mended", git_there(), damage_when_laying);
    suite.test_needing("fetch/a cache that cannot be written is named", git_there(), no_cache);
    suite.test_needing("fetch/what is named and cannot be kept stops it", git_there(), no_place);
    suite.test_needing(
        "fetch/a cache that is no full path is refused",
        git_there(),
        relative_cache,
    );
}

fn damage() {
    let project = Project::new();
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    spoil_pack(&project, |length| length / 2);
    let mended = project.tool.run(["fetch", "--from", "clone"]);
    mended.assert_status(0);
    assert!(mended.stderr().contains(MENDED), "{}", mended.shown());
    assert!(mended.stdout().contains(": the repository is damaged"), "{}", mended.shown());
    assert!(mended.stdout().contains("whole all 2 files"), "{}", mended.shown());
}

/// A mark, a lock, a repository: whatever stands there is made anew.
fn folders() {
    let project = Project::new();
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    let mut items = fs::read_dir(project.tool.path(".cache/git")).unwrap();
    let is_lock = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "lock");
    let lock = items.find_map(|item| Some(item.unwrap().path()).filter(is_lock)).unwrap();
    let store = lock.with_extension("git");
    let mark = store.join("refs/mlx-overlay/whole").join(&project.commit);
    for path in [&mark, &lock] {
        fs::remove_file(path).unwrap();
        fs::create_dir_all(path.join("below")).unwrap();
    }
    let again = |options: &[&str], from: &str| {
        let run = project.tool.run([&["fetch"], options].concat());
        run.assert_status(0);
        assert!(run.stdout().contains(from), "{}", run.shown());
    };
    again(&["--from", "clone"], "from clone");
    again(&["--offline"], "from the object cache");
    assert!(mark.is_file() && lock.is_file());
    for path in [store.as_path(), store.parent().unwrap()] {
        fs::remove_dir_all(path).unwrap();
        fs::write(path, "").unwrap();
        again(&["--from", "clone"], "from clone");
    }
}

/// What nobody read before is found damaged when the tree is laid.
fn damage_when_laying() {
    let project = Project::new();
    project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
    // The last object is a file's, and the pack's own checksum has 20 bytes.
    spoil_pack(&project, |length| length - 26);
    // A dry run reads what would be written, and ends as the other does.
    let dry = project.tool.run(["apply", "--offline", "--dry-run"]);
    let refused = project.tool.run(["apply", "--offline"]);
    refused.assert_status(4);
    assert_eq!((dry.status(), dry.stderr()), (Some(4), refused.stderr()));
    assert!(refused.stderr().contains("the object cache: "), "{}", refused.shown());
    assert!(refused.stderr().contains("is damaged"), "{}", refused.shown());
    assert!(
        refused.stderr().contains("without --offline it is fetched again"),
        "{}",
        refused.shown()
    );
    let place = format!("target/overlay/{}", &project.commit[..8]);
    assert!(!project.tool.path(&place).exists());
    // Nor is it dropped with the network, where nothing takes its place.
    let damaged = fs::read(&walk(&project.tool.path(".cache"), "pack")[0]).unwrap();
    let standing = [("MLX_OVERLAY_UPSTREAM", "nowhere")];
    for command in ["apply", "fetch"] {
        let run = project.tool.run_with(&standing, [command]);
        run.assert_status(4);
        for words in [
            "the object cache: ",
            ": the repository is damaged",
            "\n  nowhere: ",
            "\n  http://127.0.0.1:9/x: ",
            "try: the object cache is damaged, and stays as it is until `overlay fetch` finds",
        ] {
            assert!(run.stderr().contains(words), "{words:?} in {}", run.shown());
        }
        let named = project.tool.run([command, "--from", "nowhere"]);
        named.assert_status(4);
        let kept = fs::read(&walk(&project.tool.path(".cache"), "pack")[0]).unwrap();
        assert_eq!(kept, damaged, "{}", run.shown());
    }
    let laid = project.tool.run(["apply", "--from", "clone"]);
    laid.assert_status(0);
    assert!(laid.stderr().contains(MENDED), "{}", laid.shown());
    assert!(laid.stdout().contains("from clone"), "{}", laid.shown());
}

pub fn spoil_pack(project: &Project, at: impl Fn(usize) -> usize) {
    let packs = walk(&project.tool.path(".cache"), "pack");
    let mut bytes = fs::read(&packs[0]).unwrap();
    let at = at(bytes.len());
    bytes[at..at + 4].fill(0xff);
    fs::remove_file(&packs[0]).unwrap();
    fs::write(&packs[0], bytes).unwrap();
}

fn walk(folder: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found
}

fn no_cache() {
    let project = Project::new();
    project.write("file", "");
    let below = project.tool.path("file/below").display().to_string();
    let variables = [("MLX_OVERLAY_CACHE", below.as_str())];
    for args in
        [&["fetch", "--from", "clone"][..], &["apply", "--from", "clone"], &["fetch", "--offline"]]
    {
        let run = project.tool.run_with(&variables, args);
        run.assert_status(5);
        let told = format!(
            "error: the cache folder `{below}` cannot be written; set MLX_OVERLAY_CACHE or \
             XDG_CACHE_HOME to a folder of yours\n  because: Not a directory"
        );
        assert!(run.stderr().starts_with(&told), "{}", run.shown());
    }
}

/// It has what is wanted, so that no other source is asked; one that is named for every
/// run is passed over.
fn no_place() {
    let project = Project::new();
    project.write("file", "");
    fs::create_dir(project.tool.path(".cache")).unwrap();
    let git = project.tool.path(".cache/git");
    std::os::unix::fs::symlink(project.tool.path("file"), &git).unwrap();
    let told = format!("`{}` in the cache cannot be written", git.display());
    for command in ["fetch", "apply"] {
        let run = project.tool.run([command, "--from", "clone"]);
        run.assert_status(5);
        assert!(run.stderr().starts_with(&format!("error: {told}")), "{}", run.shown());
        let run = project.tool.run_with(&[("MLX_OVERLAY_UPSTREAM", "clone")], [command]);
        run.assert_status(4);
        for words in [&*told, "\n  http://127.0.0.1:9/x: "] {
            assert!(run.stderr().contains(words), "{words}: {}", run.shown());
        }
    }
}

/// A relative one would be another folder for the tool and for a build script.
fn relative_cache() {
    let project = Project::new();
    let run = project.tool.run_with(
        &[("MLX_OVERLAY_CACHE", "near"), ("XDG_CACHE_HOME", "/nowhere")],
        ["fetch", "--from", "clone"],
    );
    run.assert_status(2);
    let told = "error: MLX_OVERLAY_CACHE is `near`: it must be a full path";
    assert!(run.stderr().starts_with(told), "{}", run.shown());
}
