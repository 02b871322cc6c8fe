//! Clones that are damaged: none is said to lack what it lost, and none is read for ever.

use std::path::Path;

use mlx_overlay_engine::git::{GitError, History};
use mlx_overlay_engine::snapshot::{ObjectId, Tree, TreePath};
use overlay_tests_support::{Need, Suite};

use crate::git::{Setting, chain, cloned};
use crate::repository::git;

pub fn add(suite: &mut Suite) {
    let git = || [Need::program("git", "git")];
    suite.test_needing("damage/a commit that a clone lost is no missing one", git(), lost_commit);
    suite.test_needing("damage/an object that is cut short comes to an end", git(), half_objects);
}

/// Damage hides a commit; the clone is not said to lack it.
fn lost_commit() {
    let check = |setting: &Setting, clone: &Path, what: &str| {
        let error = setting.import(&clone.display().to_string()).unwrap_err();
        assert!(matches!(error, GitError::Damaged { .. }), "{what}: {}", chain(&error));
        let read = History::open(clone).unwrap().commit(setting.commit).unwrap_err();
        assert!(matches!(read, GitError::Damaged { .. }), "{what}: {}", chain(&read));
        setting.check_nothing();
    };
    let setting = Setting::new();
    type Spoil = (&'static str, fn(&Path));
    let spoils: [Spoil; 6] = [
        ("a pack that is cut", |pack| {
            let bytes = std::fs::read(pack).unwrap();
            std::fs::write(pack, &bytes[..bytes.len() - 30]).unwrap();
        }),
        ("a pack that is gone", |pack| std::fs::remove_file(pack).unwrap()),
        ("a pack with another beginning", |pack| flip(pack, 1)),
        ("an index that is gone", |pack| {
            std::fs::remove_file(pack.with_extension("idx")).unwrap();
        }),
        ("an index with another beginning", |pack| flip(&pack.with_extension("idx"), 1)),
        ("an index with other ids", |pack| {
            let index = pack.with_extension("idx");
            (8 + 4 * 256..8 + 4 * 256 + 20 * 4).for_each(|at| flip(&index, at));
        }),
    ];
    for (what, spoil) in spoils {
        let clone = cloned(&setting, &["--bare"]);
        // No ref stands on it: that it was there can be told from the pack alone.
        git(clone.path(), &["tag", "-d", "release"]);
        let packs = std::fs::read_dir(clone.path().join("objects/pack")).unwrap();
        let mut paths = packs.map(|item| item.unwrap().path());
        let pack = paths.find(|path| path.extension().is_some_and(|e| e == "pack")).unwrap();
        for path in [&pack, &pack.with_extension("idx")] {
            let writable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            std::fs::set_permissions(path, writable).unwrap();
        }
        spoil(&pack);
        check(&setting, clone.path(), what);
        let borrower = tempfile::tempdir().unwrap();
        git(borrower.path(), &["init", "-q", "--bare", "."]);
        let lender = format!("{}\n", clone.path().join("objects").display());
        std::fs::write(borrower.path().join("objects/info/alternates"), lender).unwrap();
        check(&setting, borrower.path(), &format!("borrowed: {what}"));
    }

    let object = setting.upstream.loose(&setting.commit.to_string());
    let whole = std::fs::read(&object).unwrap();
    std::fs::remove_file(&object).unwrap();
    check(&setting, setting.upstream.path(), "an object that a tag names");
    let fill = |bytes: &[u8], what: &str| {
        std::fs::write(&object, bytes).unwrap();
        check(&setting, setting.upstream.path(), what);
    };
    fill(b"junk", "junk");
    fill(b"", "nothing");
    fill(&whole[..whole.len() / 2], "half an object");
    let other = setting.upstream.loose("main");
    fill(&std::fs::read(other).unwrap(), "another commit");
    std::fs::write(&object, whole).unwrap();
    assert_eq!(setting.import(&setting.upstream.path().display().to_string()).unwrap(), 3);

    // An object of another kind is none that was lost.
    let mut setting = setting;
    setting.commit = setting.tree;
    let none = setting.import(&setting.upstream.path().display().to_string()).unwrap_err();
    assert!(matches!(none, GitError::NoCommit { .. }), "{}", chain(&none));
}

/// A loose object whose stream is cut short, which libgit2 would read for ever.
fn half_objects() {
    let damaged = |error: &GitError, what: &str| {
        assert!(matches!(error, GitError::Damaged { .. }), "{what}: {}", chain(error));
        assert!(chain(error).contains(" is cut short"), "{what}: {}", chain(error));
    };
    for what in ["release^{commit}", "release^{tree}", "release:d", "release:d/run.sh"] {
        let setting = Setting::new();
        setting.upstream.halve(what);
        let error = setting.import(&setting.upstream.path().display().to_string()).unwrap_err();
        damaged(&error, what);
        let history = History::open(setting.upstream.path()).unwrap();
        assert!(history.has(setting.commit));
        let read = history.tree(setting.commit).map(|tree| {
            let file = TreePath::new("d/run.sh").unwrap();
            tree.paths()
                .iter()
                .filter_map(|path| tree.file(path).err().map(|_| path == &file))
                .collect()
        });
        match read {
            Ok::<Vec<bool>, _>(unread) => {
                assert_eq!((what, unread), ("release:d/run.sh", vec![true]))
            }
            Err(error) => damaged(&error, what),
        }
        damaged(&history.prove(setting.commit, setting.tree).unwrap_err(), what);
        setting.check_nothing();
    }

    // Names, and what lies between two commits.
    let setting = Setting::new();
    let id = setting.commit.to_string();
    let [first, side] = ["release~1", "side"].map(|rev| setting.upstream.id(rev));
    setting.upstream.halve("release^{commit}");
    let history = History::open(setting.upstream.path()).unwrap();
    for name in ["release", &id, &id[..8], &id[..4], "main~2", "release^{}", "main"] {
        match history.resolve(name) {
            Ok(_) => assert_eq!(name, "main"),
            Err(error) => damaged(&error, name),
        }
    }
    let main = history.resolve("main").unwrap();
    for other in [first, side] {
        damaged(&history.merge_base(main, other).unwrap_err(), "a way");
    }
    let setting = Setting::new();
    setting.upstream.halve("release");
    let history = History::open(setting.upstream.path()).unwrap();
    damaged(&history.resolve("release").unwrap_err(), "a tag");
    assert!(history.commit(ObjectId::of_blob(b"")).is_err());
}

fn flip(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 0x55;
    std::fs::write(file, bytes).unwrap();
}
