//! Laws over many small trees.

use std::collections::BTreeMap;

use mlx_overlay_engine::disk::DiskTree;
use mlx_overlay_engine::publish::{Options, edit_in_place, write_new};
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::sample::{Test, assert_whole, edits, lay, marks, path, read};

pub const TESTS: &[Test] = &[
    ("publishing_one_tree_over_another_gives_the_other", publish_any_over_any),
    ("editing_one_tree_into_another_gives_the_other", edit_any_into_any),
];

/// Few names, so that trees share files, and files and folders change places.
fn trees() -> impl Strategy<Value = MemoryTree> {
    let name = prop::sample::select(vec!["a", "a/b", "a/b/c", "a/c", "b", "b/a", "c/a/b", "d e"]);
    let mode = prop::sample::select(vec![Mode::Regular, Mode::Executable, Mode::Symlink]);
    let text = prop::sample::select(vec!["1", "2", "nowhere"]);
    prop::collection::btree_map(name, (mode, text), 0..7).prop_map(|files| {
        let mut tree = BTreeMap::new();
        for (name, (mode, text)) in files {
            let path = path(name);
            if !path.parents().any(|p| tree.contains_key(&p)) {
                tree.insert(path, File::new(mode, text.as_bytes()));
            }
        }
        MemoryTree(tree)
    })
}

fn over_pairs(law: impl Fn(MemoryTree, MemoryTree)) {
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let both = (trees(), trees());
    let mut runner = TestRunner::new(config);
    let ran = runner.run(&both, |(from, to)| {
        law(from, to);
        Ok(())
    });
    ran.unwrap();
}

fn publish_any_over_any() {
    over_pairs(|from, to| {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("tree");
        lay(&dest, &from, "from");
        assert_eq!(read(&dest), from);
        let old = marks(&dest);
        lay(&dest, &to, "to");
        assert_eq!(read(&dest), to);
        assert_whole(&dest);
        let new = marks(&dest);
        for (path, file) in &to.0 {
            let place = dest.join(path.as_str());
            let stays = from.0.get(path) == Some(file);
            assert_eq!(old.get(&place) == Some(&new[&place]), stays, "{path}");
        }
    });
}

fn edit_any_into_any() {
    over_pairs(|from, to| {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("tree");
        write_new(&dest, &from, &Options::default()).unwrap();
        let tree = DiskTree::open(&dest).unwrap();
        edit_in_place(&tree, &edits(&from, &to), &Options::default()).unwrap();
        assert_eq!(read(&dest), to);
        let folders = |t: &MemoryTree| {
            let folders = t.0.keys().flat_map(|p| p.parents());
            folders.collect::<std::collections::BTreeSet<_>>()
        };
        for folder in folders(&from).difference(&folders(&to)) {
            assert!(!dest.join(folder.as_str()).is_dir(), "{folder} is left empty");
        }
    });
}
