//! The object cache: damaged, replaced, and used while it is.

use std::fs;
use std::path::{Path, PathBuf};

use mlx_overlay_engine::git::GitError;
use mlx_overlay_engine::progress::Silent;
use mlx_overlay_engine::snapshot::{Tree, TreePath};
use overlay_tests_support::server::Fault;
use overlay_tests_support::{Need, Suite};

use crate::git::{QUICK, Setting, chain};

pub fn add(suite: &mut Suite) {
    let git = || [Need::program("git", "git")];
    suite.test_needing("store/damage is found and mended", git(), damage);
    suite.test_needing("store/a damaged one stays until another is whole", git(), stays);
    suite.test_needing("store/other commits come along", git(), others);
    suite.test_needing("store/a tree outlives the exchange", git(), outlives);
    suite.test_needing("store/two fetches at once both end whole", git(), two_at_once);
}

fn pack(store: &Path) -> PathBuf {
    let items = fs::read_dir(store.join("objects/pack")).unwrap();
    let mut paths = items.map(|item| item.unwrap().path());
    paths.find(|p| p.extension().is_some_and(|e| e == "pack")).unwrap()
}

/// Damages the pack in the middle; git keeps packs read-only.
fn spoil(store: &Path) {
    let pack = pack(store);
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8].fill(0xff);
    fs::remove_file(&pack).unwrap();
    fs::write(pack, bytes).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let items = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        items.map(|item| item.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn damage() {
    let damages: [fn(&Path); 7] = [
        spoil,
        |store| fs::remove_file(store.join("HEAD")).unwrap(),
        |store| fs::remove_dir_all(store.join("objects")).unwrap(),
        |store| fs::remove_dir_all(store.join("refs")).unwrap(),
        |store| fs::remove_file(pack(store).with_extension("idx")).unwrap(),
        |store| {
            fs::remove_dir_all(store).unwrap();
            fs::create_dir(store).unwrap();
        },
        |store| {
            fs::remove_dir_all(store).unwrap();
            fs::write(store, "a file").unwrap();
        },
    ];
    for damage in damages {
        let setting = Setting::new();
        let path = setting.upstream.path().display().to_string();
        setting.import(&path).unwrap();
        let store = setting.store();
        damage(store.path());
        // None is a store that nothing was fetched to.
        let read = store.tree(setting.commit, setting.tree);
        assert!(!matches!(read, Ok(None)));
        store.prove(setting.commit, setting.tree).unwrap_err();
        assert_eq!(setting.import(&path).unwrap(), 3);
        setting.check_whole();
        let beside = names(store.path().parent().unwrap());
        assert_eq!(beside.len(), 2, "the repository and its lock: {beside:?}");
    }
}

/// Whatever is tried and fails.
fn stays() {
    let setting = Setting::new().by_id();
    let path = setting.upstream.path().display().to_string();
    setting.import(&path).unwrap();
    let store = setting.store();
    spoil(store.path());
    let damaged = fs::read(pack(store.path())).unwrap();
    let sources = [
        "http://127.0.0.1:9/x".to_owned(),
        "nowhere".to_owned(),
        format!("{}/.git", setting.serve(Fault::Cut).url),
        format!("{}/x", setting.serve(Fault::Page).url),
        // The store itself is no source that mends it.
        store.path().display().to_string(),
    ];
    for from in sources {
        let error = setting.import(&from).unwrap_err();
        assert_eq!(fs::read(pack(store.path())).unwrap(), damaged, "{from}: {}", chain(&error));
        assert_eq!(names(store.path().parent().unwrap()).len(), 2, "{from}");
    }
    let found = store.prove(setting.commit, setting.tree).unwrap_err();
    assert!(matches!(found, GitError::Damaged { .. }), "{}", chain(&found));
    assert_eq!(setting.import(&format!("{}/.git", setting.serve(Fault::None).url)).unwrap(), 3);
    setting.check_whole();
}

/// Those that are whole; the damage of one is not another's.
fn others() {
    let setting = Setting::new();
    let path = setting.upstream.path().display().to_string();
    let store = setting.store();
    let id =
        |rev: &str| (setting.upstream.id(rev), setting.upstream.id(&format!("{rev}^{{tree}}")));
    let ((first, first_tree), (last, last_tree)) = (id("release~1"), id("main"));
    setting.import(&path).unwrap();
    for (commit, tree) in [(first, first_tree), (last, last_tree)] {
        store.import(commit, tree, &path, QUICK, &Silent).unwrap();
    }
    let here = || {
        [(first, first_tree), (setting.commit, setting.tree), (last, last_tree)].map(
            |(commit, tree)| {
                store.tree(commit, tree).is_ok_and(|t| t.is_some())
                    && store.prove(commit, tree).is_ok()
            },
        )
    };
    assert_eq!(here(), [true; 3]);
    setting.check_whole();
    // Each is in a pack of its own: the one that has `deeper` is damaged.
    let deeper = setting.upstream.id("main:d/e/f.txt").to_string();
    let listed = |idx: &Path| {
        crate::repository::git(store.path(), &["verify-pack", "-v", &idx.display().to_string()])
            .contains(&deeper)
    };
    let items = fs::read_dir(store.path().join("objects/pack")).unwrap();
    let idx = items
        .map(|item| item.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "idx") && listed(p));
    let pack = idx.unwrap().with_extension("pack");
    let bytes = fs::read(&pack).unwrap();
    fs::remove_file(&pack).unwrap();
    fs::write(&pack, &bytes[..12]).unwrap();
    assert_eq!(here(), [true, true, false]);
    store.import(last, last_tree, &path, QUICK, &Silent).unwrap();
    assert_eq!(here(), [true; 3]);
}

fn outlives() {
    let setting = Setting::new();
    let path = setting.upstream.path().display().to_string();
    setting.import(&path).unwrap();
    let store = setting.store();
    let tree = store.tree(setting.commit, setting.tree).unwrap().unwrap();
    let (last, last_tree) = (setting.upstream.id("main"), setting.upstream.id("main^{tree}"));
    store.import(last, last_tree, &path, QUICK, &Silent).unwrap();
    for file in tree.paths() {
        assert!(tree.file(&file).unwrap().is_some(), "{file}");
    }
    let file = tree.file(&TreePath::new("a.txt").unwrap()).unwrap().unwrap();
    assert_eq!(&file.bytes[..], b"two\n");
}

/// Over nothing, and over a damaged one.
fn two_at_once() {
    let setting = Setting::new();
    let path = setting.upstream.path().display().to_string();
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let several = [(); 4].map(|()| scope.spawn(|| setting.import(&path)));
            several.into_iter().for_each(|one| assert_eq!(one.join().unwrap().unwrap(), 3));
        });
        setting.check_whole();
        spoil(setting.store().path());
    }
}
