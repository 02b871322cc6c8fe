//! What is compiled again, and what is not.

use std::fs;

use mlx_overlay_fake_device::build::{Build, PARTS};
use mlx_overlay_fake_device::cache;
use overlay_tests_support::Suite;

use crate::support::{build, needs, tree};

pub fn add(suite: &mut Suite) {
    suite.test_needing("a changed quantized.cpp compiles one file", needs(), one_file);
}

fn one_file() {
    build();
    let cache = cache::folder().expect("a cache folder");
    let copy = tempfile::tempdir().expect("a folder");
    for part in PARTS {
        copy_all(&tree().join(part), &copy.path().join(part));
    }
    let changed = copy.path().join("mlx/backend/metal/quantized.cpp");
    let mut text = fs::read_to_string(&changed).expect("quantized.cpp");
    // Another number each time, so that no cache has seen it.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let number = now.expect("a clock after 1970").as_millis();
    text.push_str(&format!("\nlong long overlay_test_marker = {number};\n"));
    fs::write(&changed, text).expect("written");

    let log = copy.path().join("ccache.log");
    let changed = Build::with_log(copy.path(), &cache, Some(&log));
    changed.unwrap_or_else(|error| panic!("{error}")).forget().expect("removed");
    let log = fs::read_to_string(&log).expect("ccache wrote its log");
    let compiled: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    assert_eq!(compiled.len(), 1, "{compiled:?}");
    assert!(compiled[0].ends_with("backend/metal/quantized.cpp"), "{compiled:?}");
    assert!(log.contains("cache_miss"), "a text nobody has seen is compiled: {log}");
}

fn copy_all(from: &std::path::Path, to: &std::path::Path) {
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
