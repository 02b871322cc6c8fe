//! GNU diff on folders.

use std::fs;
use std::process::Command;

use crate::forest::{self, Dice, Kinds};
use crate::git::differences;
use crate::lay::{lay, read};

pub fn diffs(options: &str) {
    let root = tempfile::tempdir().unwrap();
    let (orig, new_root) = (root.path().join("tree.orig"), root.path().join("tree"));
    fs::create_dir(&orig).unwrap();
    fs::create_dir(&new_root).unwrap();
    let mut files = 0;
    for seed in 0..30 {
        let mut dice = Dice::new(seed);
        let mut old = forest::grow(&mut dice, Kinds::Plain);
        let mut new = forest::change(&mut dice, &old, Kinds::Plain);
        // With -N an absent file reads as an empty one: diff says nothing of
        // an empty file that comes or goes.
        old.retain(|path, (_, bytes)| !bytes.is_empty() || new.contains_key(path));
        new.retain(|path, (_, bytes)| !bytes.is_empty() || old.contains_key(path));
        forest::plant(&old, &orig);
        forest::plant(&new, &new_root);
        let output = Command::new("diff")
            .args(options.split(' '))
            .args(["tree.orig", "tree"])
            .current_dir(root.path())
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("diff was found");
        assert!(output.status.code() != Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        let patch = read(&output.stdout);
        files += patch.files.len();
        let laid = lay(&patch, 1, &old).unwrap_or_else(|e| {
            panic!("seed {seed}: {e}\n{}", String::from_utf8_lossy(&output.stdout))
        });
        assert!(laid == new, "seed {seed}: {}", differences(&laid, &new));
    }
    assert!(files > 60, "{files} file patches prove little");
}
