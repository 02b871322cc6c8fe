//! Mapped patches against git's three-way merge, on texts made at random out
//! of few lines: wherever git merges cleanly and a patch lands, both give the
//! same text. (Git reads one diff and believes it; the engine turns down more.)

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use mlx_overlay_engine::apply::Ground;
use mlx_overlay_engine::patch::parse;
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode, Tree, TreePath};
use overlay_tests_support::{Need, Suite};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    suite.test_needing("merges-as-git-does", [Need::program("git", "git")], merges_as_git_does);
    suite.run()
}

fn merges_as_git_does() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) };
    let (mut landed, mut clean) = (0, 0);
    let mut runner = TestRunner::new(config);
    let line = prop::sample::select(vec!["a", "b", "c", "}", "", "x = 1;", "fn f", "fn g"]);
    let texts = (prop::collection::vec(line, 0..30), edits(), edits());
    let counts = std::cell::RefCell::new((&mut landed, &mut clean));
    runner
        .run(&texts, |(old, ours, theirs)| {
            let old: Vec<String> = old.iter().map(|l| format!("{l}\n")).collect();
            let (ours, theirs) = (change(&old, &ours).concat(), change(&old, &theirs).concat());
            let folder = tempfile::tempdir().expect("a temporary folder");
            for (name, text) in [("old", &old.concat()), ("ours", &ours), ("theirs", &theirs)] {
                fs::write(folder.path().join(name), text).expect("a file");
            }
            let Some(patch) = git_diff(folder.path()) else { return Ok(()) };
            let (base, target) = (tree(&old.concat()), tree(&theirs));
            let mut ground = Ground::mapped(&base, &target);
            let parsed = parse(&patch).expect("git's patch parses");
            let report = ground.apply("made", &parsed, 1).expect("judged");
            let merged = git_merge(folder.path());
            let mut counts = counts.borrow_mut();
            *counts.1 += usize::from(merged.is_some());
            if report.holds()
                && let Some(merged) = merged
            {
                *counts.0 += 1;
                let laid = ground.target.file(&path()).expect("in memory").expect("there");
                let laid = String::from_utf8_lossy(&laid.bytes).into_owned();
                prop_assert_eq!(laid, merged, "{}", String::from_utf8_lossy(&patch));
            }
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    // The law must not hold for want of cases.
    assert!(landed * 2 > clean, "of {clean} clean merges only {landed} landed");
}

fn path() -> TreePath {
    TreePath::new("f.txt").expect("a tree path")
}

fn tree(text: &str) -> MemoryTree {
    MemoryTree([(path(), File::new(Mode::Regular, text.as_bytes()))].into())
}

type Edits = Vec<(prop::sample::Index, usize, Vec<&'static str>)>;

fn edits() -> impl Strategy<Value = Edits> {
    let new = prop::sample::select(vec!["new 1", "new 2", "}", "a"]);
    let lines = prop::collection::vec(new, 0..3);
    prop::collection::vec((any::<prop::sample::Index>(), 0..3usize, lines), 1..4)
}

fn change(text: &[String], edits: &Edits) -> Vec<String> {
    let mut lines = text.to_vec();
    for (at, gone, come) in edits {
        let at = at.index(lines.len() + 1);
        let end = (at + gone).min(lines.len());
        lines.splice(at..end, come.iter().map(|l| format!("{l}\n")));
    }
    lines
}

/// The patch from `old` to `ours`, read as `git merge-file` will read it.
fn git_diff(folder: &Path) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .args(["diff", "--no-index", "--no-indent-heuristic", "--diff-algorithm=myers"])
        .args(["--no-color", "--no-ext-diff", "old", "ours"])
        .current_dir(folder)
        .output()
        .expect("git runs");
    let text = String::from_utf8(output.stdout).expect("made of text");
    let text = text.replace("/old", "/f.txt").replace("/ours", "/f.txt");
    (!text.is_empty()).then(|| text.into_bytes())
}

/// Git's merge; nothing where it conflicts.
fn git_merge(folder: &Path) -> Option<String> {
    let output = Command::new("git")
        .args(["merge-file", "-p", "--diff-algorithm=myers", "ours", "old", "theirs"])
        .current_dir(folder)
        .output()
        .expect("git runs");
    output.status.success().then(|| String::from_utf8(output.stdout).expect("made of text"))
}
