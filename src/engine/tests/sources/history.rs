//! Names, walks and files over many commits, against git itself.

use mlx_overlay_engine::git::{At, GitError, History, PathSet};
use mlx_overlay_engine::snapshot::{ObjectId, Tree, TreePath};
use overlay_tests_support::{Need, Suite};

use crate::repository::{Repository, git};

pub fn add(suite: &mut Suite) {
    let git = || [Need::program("git", "git")];
    suite.test_needing("history/names mean what git says", git(), names);
    suite.test_needing("history/a walk follows first parents", git(), walk);
    suite.test_needing("history/files are found at every commit", git(), files);
    suite.test_needing(
        "history/upstream: files of the last 200 commits are git's",
        [Need::program("git", "git"), Need::upstream()],
        upstream,
    );
}

fn names() {
    let repository = Repository::new();
    let history = History::open(repository.path()).unwrap();
    for (name, rev) in [
        ("main", "main"),
        ("release", "release^{commit}"),
        ("main~1", "main~1"),
        (&repository.git(&["rev-parse", "side"])[..9], "side"),
    ] {
        assert_eq!(history.resolve(name).unwrap(), repository.id(rev), "{name}");
    }
    let none = history.resolve("no-such-branch").unwrap_err();
    assert!(none.to_string().contains("`no-such-branch` is no commit"), "{none}");
    // None of these is a name, whatever a clone stands on.
    for name in
        ["", " ", "~", "~1", "^", "^1", "-", "@{", "..", "/", "main..main", "refs/", "main "]
    {
        let none = history.resolve(name);
        assert!(matches!(none, Err(GitError::NoRevision { .. })), "{name:?}: {none:?}");
    }
    let described = repository.git(&["describe", "main"]);
    for name in ["@", "HEAD", "@~0", &described, "main@{0}", ":/Last"] {
        assert_eq!(history.resolve(name).unwrap(), repository.id("main"), "{name}");
    }
    let tree = history.resolve("main^{tree}");
    assert!(matches!(tree, Err(GitError::NoRevision { .. })), "{tree:?}");
    // A clone's branches are those of its origin.
    let clone = tempfile::tempdir().unwrap();
    let from = repository.path().display().to_string();
    git(clone.path(), &["clone", "-q", "--bare", &from, "bare"]);
    git(clone.path(), &["clone", "-q", &from, "full"]);
    for folder in ["bare", "full"] {
        let history = History::open(&clone.path().join(folder)).unwrap();
        assert_eq!(history.resolve("side").unwrap(), repository.id("side"), "{folder}");
    }
    let nowhere = History::open(&clone.path().join("none")).map(drop);
    assert!(matches!(nowhere, Err(GitError::Open { .. })), "{nowhere:?}");
}

fn walk() {
    let repository = Repository::new();
    let history = History::open(repository.path()).unwrap();
    let (first, last) = (repository.id("main~3"), repository.id("main"));
    let subjects: Vec<String> =
        history.first_parent_walk(first, last).unwrap().into_iter().map(|c| c.subject).collect();
    assert_eq!(subjects, ["Second (#2)", "Merge side (#3)", "Last (#4)"]);
    assert!(history.first_parent_walk(last, last).unwrap().is_empty());
    let aside = history.first_parent_walk(repository.id("side"), last);
    assert!(matches!(aside, Err(GitError::Unrelated { .. })), "{aside:?}");
    let base = history.merge_base(repository.id("side"), repository.id("release^{commit}"));
    assert_eq!(base.unwrap(), first);
    // Of a side branch that was taken in, and of one commit.
    for (one, other, base) in [
        (last, repository.id("side"), first),
        (repository.id("side"), last, first),
        (repository.id("main~1"), last, repository.id("main~1")),
        (last, last, last),
    ] {
        assert_eq!(history.merge_base(one, other).unwrap(), base, "{one} {other}");
    }
    let merge = history.commit(repository.id("main~1")).unwrap();
    assert_eq!(merge.parents, [repository.id("main~2"), repository.id("side")]);
    // The author's own day, not that of UTC or of the committer.
    assert_eq!(merge.date, "2026-08-16");
    assert_eq!(merge.tree, repository.id("main~1^{tree}"));
    let none = history.commit(ObjectId::of_blob(b""));
    assert!(matches!(none, Err(GitError::NoCommit { .. })), "{none:?}");
}

fn files() {
    let repository = Repository::new();
    let history = History::open(repository.path()).unwrap();
    let names = ["a.txt", "d", "d/e/f.txt", "d/none", "s.txt", "s.txt/under"];
    let paths = PathSet::new(names.map(|n| TreePath::new(n).unwrap()));
    for rev in ["main", "main~1", "main~2", "main~3", "side", "main"] {
        let found = history.paths_at(repository.id(rev), &paths).unwrap();
        for (path, found) in paths.paths().iter().zip(found) {
            let listed = repository.git(&["ls-tree", rev, "--", path.as_str()]);
            let blob = listed.split_whitespace().nth(2).filter(|_| listed.contains(" blob "));
            let is_folder = listed.contains(" tree ");
            assert_eq!(found == Some(At::Folder), is_folder, "{path} at {rev}");
            let found = found.and_then(At::file).map(|f| f.id.to_string());
            assert_eq!(found.as_deref(), blob, "{path} at {rev}");
        }
    }
    let path = TreePath::new("a.txt").unwrap();
    let old = history.file_at(repository.id("main~3"), &path).unwrap().unwrap();
    assert_eq!(&*history.blob(old.id).unwrap(), b"one\n");
    let tree = history.tree(repository.id("side")).unwrap();
    assert_eq!(tree.paths().len(), 4);
    assert_eq!(tree.id(), repository.id("side^{tree}"));
}

fn upstream() {
    let at = std::env::var_os("MLX_OVERLAY_UPSTREAM").unwrap();
    let at = std::path::Path::new(&at);
    let history = History::open(at).unwrap();
    let path = "mlx/backend/metal/quantized.cpp";
    let head = history.resolve("HEAD").unwrap();
    let lines = git(at, &["rev-list", "--first-parent", "-n", "201", "HEAD"]);
    let ids: Vec<ObjectId> = lines.lines().rev().map(|l| l.parse().unwrap()).collect();
    let walk = history.first_parent_walk(ids[0], head).unwrap();
    assert_eq!(walk.iter().map(|c| c.id).collect::<Vec<_>>(), ids[1..]);
    let paths = PathSet::new([TreePath::new(path).unwrap()]);
    let mut changed = Vec::new();
    let mut last = history.paths_at(ids[0], &paths).unwrap();
    for commit in &walk {
        let now = history.paths_at(commit.id, &paths).unwrap();
        if now != last {
            changed.push(commit.id.to_string());
        }
        last = now;
    }
    let range = format!("{}..HEAD", ids[0]);
    let log = ["log", "--first-parent", "--reverse", "--format=%H", &range, "--", path];
    assert_eq!(changed.join("\n"), git(at, &log));
}
