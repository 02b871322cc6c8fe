//! Small trees to publish, and ways to look at what came of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mlx_overlay_engine::disk::DiskTree;
use mlx_overlay_engine::publish::{Depth, Identity, Options, Published, Source, publish, survey};
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode, ObjectId, Tree, TreePath};

/// A test: its name and what it does.
pub type Test = (&'static str, fn());

pub fn path(name: &str) -> TreePath {
    TreePath::new(name).unwrap()
}

pub fn tree(files: &[(&str, Mode, &str)]) -> MemoryTree {
    let file =
        |&(name, mode, text): &(&str, Mode, &str)| (path(name), File::new(mode, text.as_bytes()));
    MemoryTree(files.iter().map(file).collect())
}

/// The tree before.
pub fn before() -> MemoryTree {
    tree(&[
        ("CMakeLists.txt", Mode::Regular, "project(mlx)\n"),
        ("mlx/array.h", Mode::Regular, "struct array;\n"),
        ("mlx/gone.h", Mode::Regular, "#pragma once\n"),
        ("mlx/was_a_file", Mode::Regular, "x\n"),
        ("mlx/was_a_folder/a", Mode::Regular, "a\n"),
        ("mlx/quantized.h", Mode::Regular, "old\n"),
        ("run.sh", Mode::Regular, "#!/bin/sh\n"),
        ("link", Mode::Symlink, "mlx/array.h"),
    ])
}

/// The tree after: files changed, new, gone, of another mode and kind.
pub fn after() -> MemoryTree {
    tree(&[
        ("CMakeLists.txt", Mode::Regular, "project(mlx)\n"),
        ("mlx/array.h", Mode::Regular, "struct array;\n"),
        ("mlx/new.h", Mode::Regular, "#pragma twice\n"),
        ("mlx/was_a_file/b", Mode::Regular, "b\n"),
        ("mlx/was_a_folder", Mode::Regular, "y\n"),
        ("mlx/quantized.h", Mode::Regular, "new\n"),
        ("run.sh", Mode::Executable, "#!/bin/sh\n"),
        ("link", Mode::Symlink, "/nowhere"),
    ])
}

pub fn identity(series: &str) -> Identity {
    Identity {
        pin: ObjectId::of_blob(b"pin"),
        source: Source::Git { tree: ObjectId::of_blob(b"tree") },
        series: series.into(),
        contracts: String::new(),
        groups: vec!["metal".into()],
        partial: None,
        trial: None,
    }
}

pub fn lay(dest: &Path, tree: &MemoryTree, series: &str) -> Published {
    publish(dest, tree, &identity(series), &Options::default()).unwrap()
}

/// What is on the disk, read back; the stamp left out.
pub fn read(dir: &Path) -> MemoryTree {
    let tree = DiskTree::open(dir).unwrap();
    let file = |path: TreePath| {
        let file = tree.file(&path).unwrap().unwrap();
        (path, file)
    };
    MemoryTree(tree.paths().into_iter().map(file).collect())
}

/// The edits that lead from one tree to another.
pub fn edits(from: &MemoryTree, to: &MemoryTree) -> BTreeMap<TreePath, Option<File>> {
    let gone = from.0.keys().filter(|p| !to.0.contains_key(p)).map(|p| (p.clone(), None));
    let put = to.0.iter().filter(|(p, f)| from.0.get(p) != Some(f));
    gone.chain(put.map(|(p, f)| (p.clone(), Some(f.clone())))).collect()
}

/// Inode and time of writing of each file.
pub fn marks(dir: &Path) -> BTreeMap<PathBuf, (u64, i64, i64)> {
    let tree = DiskTree::open(dir).unwrap();
    let mark = |path: TreePath| {
        let path = dir.join(path.as_str());
        let meta = fs::symlink_metadata(&path).unwrap();
        (path, (meta.ino(), meta.mtime(), meta.mtime_nsec()))
    };
    tree.paths().into_iter().map(mark).collect()
}

/// Every file is as its stamp says, hashed, and nothing lies beside the tree.
pub fn assert_whole(dest: &Path) {
    let survey = survey(dest, Depth::Hash).unwrap();
    assert_eq!(survey.findings, []);
    assert_eq!(survey.hashed, survey.stamp.files.len());
    let left: Vec<_> = fs::read_dir(dest.parent().unwrap())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p != dest)
        .collect();
    assert_eq!(left, <[PathBuf; 0]>::default(), "left beside the tree");
}
