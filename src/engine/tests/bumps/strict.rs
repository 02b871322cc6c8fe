//! Hunks that find no place although git merges: upstream's history, with
//! `git merge-file` as the oracle for what a conflict is.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use mlx_overlay_engine::apply::Ground;
use mlx_overlay_engine::git::History;
use mlx_overlay_engine::lay::lay_entry;
use mlx_overlay_engine::patch::{self, Body, FilePatch, Patch};
use mlx_overlay_engine::series::{Change, Series};
use mlx_overlay_engine::snapshot::{Snapshot, Tree, TreePath};
use overlay_tests_support::{Need, Suite};

use super::git;
use super::history::{series, upstream};

pub fn add(suite: &mut Suite) {
    let needs = [Need::upstream(), Need::program("git", "git")];
    suite.test_needing("history/a-conflict-that-git-merges-is-meant", needs, strict);
}

/// A run of old lines (0-based) that one side changed: its first and the one after it.
type Changed = (usize, usize);

/// The runs that git's diff of two files of the folder changes.
fn changed(folder: &Path, new: &str) -> Vec<Changed> {
    let text = git(folder, &["diff", "--no-index", "-U0", "--diff-algorithm=myers", "old", new]);
    let run = |l: &str| {
        let (start, len) = {
            let word = l.strip_prefix("@@ -")?.split(' ').next()?;
            let (start, len) = word.split_once(',').unwrap_or((word, "1"));
            (start.parse::<usize>().ok()?, len.parse::<usize>().ok()?)
        };
        // Of an insertion the line before it is named.
        let begin = if len == 0 { start } else { start - 1 };
        Some((begin, begin + len))
    };
    text.lines().filter_map(run).collect()
}

/// Whether the two sides change the same line or two next to each other. Of a blank line
/// one is as good as another: what is behind it counts for the next.
fn meet(old: &[&str], ours: &[Changed], theirs: &[Changed]) -> bool {
    let is_blank = |at: usize| old.get(at).is_some_and(|l| l.trim().is_empty());
    ours.iter().any(|&(mut begin, mut end)| {
        while begin > 0 && is_blank(begin - 1) {
            begin -= 1;
        }
        while is_blank(end) {
            end += 1;
        }
        theirs.iter().any(|t| t.0 <= end && begin <= t.1)
    })
}

/// What git says of a hunk that finds no place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Git {
    /// It is a conflict, or a file is not there.
    Conflict,
    /// It merges, and the two sides meet.
    Meet,
    /// It merges, and they do not.
    Apart,
}

/// What git says of the file as it was, with the hunk, and as upstream has it.
fn merged(sides: [(&Snapshot<'_>, &TreePath); 3]) -> Git {
    let folder = tempfile::tempdir().unwrap();
    let mut old = String::new();
    for (name, (tree, path)) in ["theirs", "ours", "old"].into_iter().zip(sides) {
        let Some(file) = tree.file(path).unwrap() else { return Git::Conflict };
        std::fs::write(folder.path().join(name), &file.bytes).unwrap();
        old = String::from_utf8_lossy(&file.bytes).into_owned();
    }
    let merge = ["merge-file", "-p", "--diff-algorithm=myers", "ours", "old", "theirs"];
    let merge = Command::new("git").args(merge).current_dir(folder.path()).output().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|new| changed(folder.path(), new));
    match merge.status.success() {
        false => Git::Conflict,
        true if meet(&old.lines().collect::<Vec<_>>(), &ours, &theirs) => Git::Meet,
        true => Git::Apart,
    }
}

/// Of the 40 commits before the pin that touch the two files, the 27 before "Add
/// small-batch quantized matvec kernel (qmv_wide)" (#3764) have no `qmv_wide`: a hunk in
/// it has no place, and git puts its lines into the `qmv` before it; in 9 of them the
/// sides meet besides. That is strict and meant; of all others git has a conflict, or the
/// sides meet.
fn strict() {
    let (series, pin) = series();
    let history = History::open(&upstream()).unwrap();
    let files = ["mlx/backend/metal/quantized.cpp", "mlx/backend/metal/kernels/quantized.h"];
    let mut arguments = vec!["log", "--first-parent", "--format=%H", "-n", "40", &pin, "--"];
    arguments.extend(files);
    let commits = git(&upstream(), &arguments);
    let base = history.tree(history.resolve(&pin).unwrap()).unwrap();
    let host = TreePath::new(files[0]).unwrap();
    let mut counts: BTreeMap<Git, usize> = BTreeMap::new();
    for commit in commits.lines() {
        let target = history.tree(history.resolve(commit).unwrap()).unwrap();
        for (said, hunk) in judged(&series, &base, &target) {
            if said == Git::Apart {
                assert_eq!(hunk, "qmv-dispatch-counts 3", "a false conflict at {commit}");
                let text = target.file(&host).unwrap().unwrap();
                let text = String::from_utf8_lossy(&text.bytes).into_owned();
                assert!(!text.contains("qmv_wide("), "a false conflict at {commit}");
            }
            *counts.entry(said).or_default() += 1;
        }
    }
    let counted = |said| counts.get(&said).copied().unwrap_or_default();
    assert_eq!(counted(Git::Apart), 27 - 9, "{counts:?}");
    assert!(counted(Git::Conflict) > 300, "{counts:?}");
}

/// Of each hunk that finds no place what git says of it alone.
fn judged(series: &Series, base: &dyn Tree, target: &dyn Tree) -> Vec<(Git, String)> {
    let mut ground = Ground::mapped(base, target);
    let mut all = Vec::new();
    for entry in &series.entries {
        let (old, theirs) = (ground.base.clone().unwrap(), ground.target.clone());
        let report = lay_entry(entry, &mut ground).unwrap();
        let Change::Patch { bytes, .. } = &entry.change else { continue };
        let alone = hunks(bytes);
        for (hunk, alone) in report.patch.hunks.iter().zip(alone) {
            if hunk.class.holds() {
                continue;
            }
            let said = said(&alone, (&old, &theirs), &hunk.file);
            all.push((said, format!("{} {}", entry.name, hunk.number)));
        }
    }
    all
}

/// What git says of a patch of one file that was made for `old`, where upstream has the
/// file under the name `now`.
pub fn said(patch: &Patch, (old, theirs): (&Snapshot<'_>, &Snapshot<'_>), now: &TreePath) -> Git {
    let mut ours = Ground { target: old.clone(), base: Some(old.clone()) };
    let laid = ours.apply("", patch, 1).unwrap();
    assert!(laid.is_exact(), "{laid:?}");
    // Upstream may have renamed the file.
    let path = &laid.files[0].path;
    merged([(theirs, now), (&ours.target, path), (old, path)])
}

/// Each hunk of a patch as a patch of its own.
pub fn hunks(bytes: &[u8]) -> Vec<Patch> {
    let mut all = Vec::new();
    for file in patch::parse(bytes).unwrap().files {
        let Body::Text(hunks) = &file.body else { continue };
        all.extend(hunks.iter().map(|hunk| {
            let file = FilePatch { body: Body::Text(vec![hunk.clone()]), ..file.clone() };
            Patch { files: vec![file], trailer: Vec::new() }
        }));
    }
    all
}
