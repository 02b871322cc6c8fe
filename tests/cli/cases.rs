//! The case folders of `overlay-tests/cases`, through `overlay try`.
//!
//! A case holds `tree/`, `patches/` (files in name order, or a quilt `series`
//! file), perhaps `base/`, and `expected/` where the patches apply. Its
//! `case.toml` says how it must end; docs/formats.md describes it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use overlay_tests_support::Suite;
use serde::Deserialize;

use crate::tool::Tool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[expect(dead_code, reason = "for people")]
    about: String,
    exit: i32,
    /// The class of every hunk, in order; none where the patches are refused.
    hunks: Vec<String>,
    /// The word for why the patches are refused.
    #[serde(default)]
    reason: Option<String>,
    /// File modes to find afterwards, in octal.
    #[serde(default)]
    modes: BTreeMap<String, String>,
    /// Parts to strip from names; 1 where it is not given.
    #[serde(default)]
    strip: Option<usize>,
}

/// Adds a test a case folder.
pub fn add(suite: &mut Suite) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("overlay-tests/cases");
    let mut cases: Vec<PathBuf> =
        fs::read_dir(root).expect("the cases").map(|e| e.expect("an entry").path()).collect();
    cases.sort();
    assert!(cases.len() >= 27, "the given cases are all there");
    for case in cases {
        let name = case.file_name().expect("a name").to_string_lossy().into_owned();
        suite.test(format!("case/{name}"), move || check(&case));
    }
}

fn check(dir: &Path) {
    let text = fs::read_to_string(dir.join("case.toml")).expect("case.toml");
    let case: Case = toml::from_str(&text).expect("a case");
    let tool = Tool::new();
    let tree = tool.path("tree");
    copy(&dir.join("tree"), &tree);
    let before = read(&tree);

    // Once without writing, to a new folder, and in place: the same answer.
    let new = tool.path("new");
    let ways: [&[&str]; 3] = [&["--dry-run"], &["--out", "new"], &["--in-place"]];
    for way in ways {
        let mut args: Vec<String> = ["try", "tree", "--format", "json"].map(String::from).to_vec();
        args.extend(way.iter().map(ToString::to_string));
        if dir.join("base").exists() {
            args.extend(["--base".into(), dir.join("base").display().to_string()]);
        }
        if let Some(strip) = case.strip {
            args.push(format!("--strip={strip}"));
        }
        args.extend(patches(dir));
        let done = tool.run(&args);
        done.assert_status(case.exit);
        let json = done.json();
        let hunks: Vec<String> = json["patches"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .flat_map(|p| p["hunks"].as_array().expect("a list of hunks"))
            .map(|h| h["class"].as_str().expect("a class").to_string())
            .collect();
        assert_eq!(hunks, case.hunks, "classes under {way:?}: {json:#}");
        if case.exit == 3 {
            let reason = json["error"]["reason"].as_str();
            assert_eq!(reason, case.reason.as_deref(), "the reason under {way:?}: {json:#}");
        }
        if case.exit != 0 {
            assert!(!new.exists(), "a failed case wrote a folder");
            assert_eq!(read(&tree), before, "a failed case touched the tree under {way:?}");
        } else if way == ["--dry-run"] {
            assert_eq!(read(&tree), before, "--dry-run touched the tree");
        } else {
            let made = if way == ["--in-place"] { &tree } else { &new };
            check_tree(dir, made, &case.modes);
        }
    }
}

fn check_tree(dir: &Path, made: &Path, modes: &BTreeMap<String, String>) {
    let content = |tree: BTreeMap<String, (u32, Vec<u8>)>| -> BTreeMap<String, Vec<u8>> {
        tree.into_iter().map(|(name, (_, bytes))| (name, bytes)).collect()
    };
    assert_eq!(content(read(made)), content(read(&dir.join("expected"))), "the tree");
    let is = read(made);
    for (name, mode) in modes {
        let wanted = u32::from_str_radix(mode, 8).expect("an octal mode");
        assert_eq!(is[name].0 & 0o111, wanted & 0o111, "the execute bits of {name}");
    }
}

fn patches(dir: &Path) -> Vec<String> {
    let dir = dir.join("patches");
    if dir.join("series").exists() {
        return vec![dir.join("series").display().to_string()];
    }
    let mut patches: Vec<String> = fs::read_dir(dir)
        .expect("patches")
        .map(|e| e.expect("an entry").path().display().to_string())
        .collect();
    patches.sort();
    patches
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_symlink() {
            let target = fs::read_link(&path).expect("a link");
            std::os::unix::fs::symlink(target, to).expect("a new link");
        } else if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a copy");
            let mode = fs::metadata(&path).expect("metadata").permissions().mode() | 0o200;
            fs::set_permissions(&to, fs::Permissions::from_mode(mode)).expect("a mode");
        }
    }
}

pub fn read(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(root).expect("inside").display().to_string();
            if path.is_symlink() {
                let target = fs::read_link(&path).expect("a link");
                files.insert(name, (0o120_000, target.display().to_string().into_bytes()));
            } else if path.is_dir() {
                folders.push(path);
            } else {
                let mode = fs::metadata(&path).expect("metadata").permissions().mode();
                files.insert(name, (mode, fs::read(&path).expect("bytes")));
            }
        }
    }
    files
}
