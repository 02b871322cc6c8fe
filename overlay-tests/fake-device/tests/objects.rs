//! What is compiled again, and what is not.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use mlx_overlay_fake_device::build::{Build, PARTS};
use mlx_overlay_fake_device::cache;
use overlay_tests_support::Suite;

use crate::support::{build, needs, tree};

pub fn add(suite: &mut Suite) {
    suite.test_needing("a changed quantized.cpp compiles one file", needs(), one_file);
}

fn one_file() {
    build();
    let copy = tempfile::tempdir().expect("a folder");
    for part in PARTS {
        copy_all(&tree().join(part), &copy.path().join(part));
    }
    // The programs of this tree may be older than the build folder, which holds
    // the tree that was built last. The first change brings it to this one.
    compiled_after_a_change(copy.path());
    let (compiled, log) = compiled_after_a_change(copy.path());
    assert_eq!(compiled.len(), 1, "{compiled:?}");
    assert!(compiled[0].ends_with("backend/metal/quantized.cpp"), "{compiled:?}");
    assert!(log.contains("cache_miss"), "a text nobody has seen is compiled: {log}");
}

/// Gives `quantized.cpp` a text that nobody has seen and builds the tree: the
/// files that the compiler was asked for, and what ccache says of them.
fn compiled_after_a_change(tree: &Path) -> (Vec<String>, String) {
    let file = tree.join("mlx/backend/metal/quantized.cpp");
    let mut text = fs::read_to_string(&file).expect("quantized.cpp");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let number = now.as_nanos();
    text.push_str(&format!("\nstatic_assert({number}ull != 0); // a text of its own\n"));
    fs::write(&file, text).expect("written");

    let cache = cache::folder().expect("a cache folder");
    let log = tempfile::NamedTempFile::new().expect("a log");
    let built = Build::with_log(tree, &cache, Some(log.path()));
    built.unwrap_or_else(|error| panic!("{error}")).forget().expect("removed");
    let log = fs::read_to_string(log.path()).expect("ccache wrote its log");
    let names = log.lines().filter_map(|line| line.strip_prefix("# "));
    (names.map(str::to_owned).collect(), log)
}

fn copy_all(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.expect("a readable tree");
        let target = to.join(entry.path().strip_prefix(from).expect("inside"));
        let target = if entry.path() == from { to.to_path_buf() } else { target };
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target).expect("a folder");
        } else {
            fs::create_dir_all(target.parent().expect("a parent")).expect("a folder");
            fs::copy(entry.path(), &target).expect("copied");
        }
    }
}
