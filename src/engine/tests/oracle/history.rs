//! Real patches: the newest commits of MLX, each laid over its parent.

use std::path::{Path, PathBuf};

use mlx_overlay_engine::patch::names::{self, Prefixes};
use mlx_overlay_engine::patch::{Body, binary};

use crate::git::git;
use crate::lay::{lay_hunks, read};

pub fn replay() {
    let root = PathBuf::from(std::env::var_os("MLX_OVERLAY_UPSTREAM").expect("asked by the suite"));
    let commits = git(&root, &["rev-list", "--no-merges", "-200", "HEAD"]);
    let commits = String::from_utf8(commits).expect("ids are text");
    let mut hunks = 0;
    for commit in commits.lines() {
        hunks += replay_one(&root, commit);
    }
    assert!(hunks > 1000, "{hunks} hunks prove little");
}

fn replay_one(root: &Path, commit: &str) -> usize {
    let options = ["diff-tree", "-p", "--binary", "-M", "-C", "--no-commit-id", "--root", commit];
    let patch = read(&git(root, &options));
    let mut count = 0;
    for file in &patch.files {
        let names = names::resolve(file, 1, Prefixes::Unknown, &|_| false)
            .unwrap_or_else(|e| panic!("{commit}: {e}"));
        let blob = |at: String| git(root, &["cat-file", "blob", &at]);
        let old = names.old.as_ref().map(|path| blob(format!("{commit}^:{path}")));
        let new = names.new.as_ref().map(|path| blob(format!("{commit}:{path}")));
        let laid = match &file.body {
            Body::Text(hunks) => {
                count += hunks.len();
                lay_hunks(hunks, &old.unwrap_or_default())
            }
            _ => binary::apply(file, old.as_deref()).unwrap_or_else(|e| panic!("{commit}: {e}")),
        };
        assert!(laid == new.unwrap_or_default(), "{commit}: {names:?}");
    }
    count
}
