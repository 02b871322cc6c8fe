//! Clones that are damaged: none is said to lack what it lost, and none is read for ever.

use std::path::{Path, PathBuf};
use std::process::Command;

use mlx_overlay_engine::git::{GitError, History};
use mlx_overlay_engine::progress::Silent;
use mlx_overlay_engine::snapshot::{ObjectId, Tree, TreePath};
use overlay_tests_support::server::Fault;
use overlay_tests_support::{Need, Suite};

use crate::git::{QUICK, Setting, chain, cloned};
use crate::repository::git;

pub fn add(suite: &mut Suite) {
    let git = || [Need::program("git", "git")];
    suite.test_needing("damage/a commit that a clone lost is no missing one", git(), lost_commit);
    suite.test_needing("damage/an object that is cut short comes to an end", git(), half_objects);
    suite.test_needing("damage/what no name leads to does not count", git(), aside);
    suite.test_needing("damage/a pack has what lies damaged beside it", git(), packed_too);
    suite.test_needing("damage/of two packs one has an object whole", git(), other_pack);
    suite.test_needing("damage/an index that leads out of its pack", git(), leads_out);
    suite.test_needing("damage/a name that damage hides is no wrong one", git(), hidden_names);
    suite.test_needing("damage/a mirror is made anew", git(), mirror);
    suite.test_needing("damage/folders of objects that lead to each other", git(), alternates);
}

/// What is damaged, and how.
type Spoil = (&'static str, fn(&Path));

/// Damage hides a commit; the clone is not said to lack it.
fn lost_commit() {
    let check = |setting: &Setting, clone: &Path, what: &str| {
        let error = setting.import(&clone.display().to_string()).unwrap_err();
        assert!(matches!(error, GitError::Damaged { .. }), "{what}: {}", chain(&error));
        let read = History::open(clone).and_then(|history| history.commit(setting.commit));
        let read = read.unwrap_err();
        assert!(matches!(read, GitError::Damaged { .. }), "{what}: {}", chain(&read));
        setting.check_nothing();
    };
    let setting = Setting::new();
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
        let pack = packs(clone.path(), "pack").remove(0);
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

/// An object that is damaged, and on no way from the names.
fn aside() {
    let setting = Setting::new();
    let file = setting.upstream.path().join("unrelated");
    std::fs::write(&file, "unrelated ".repeat(99)).unwrap();
    let blob = setting.upstream.git(&["hash-object", "-w", "unrelated"]);
    setting.upstream.halve(&blob);
    let history = History::open(setting.upstream.path()).unwrap();
    for name in
        ["main~2", "main~", "main^1~2", "main~1^2", "main^0", "release^{}", "main^{commit}~3"]
    {
        assert_eq!(
            history.resolve(name).unwrap(),
            setting.upstream.id(&format!("{name}^{{commit}}"))
        );
    }
    for name in ["main~9", "main^2", "mian", "mian~1"] {
        let none = history.resolve(name).unwrap_err();
        assert!(matches!(none, GitError::NoRevision { .. }), "{name}: {}", chain(&none));
    }
}

/// A file of an object's that is damaged, where a pack has the object whole.
fn packed_too() {
    let setting = Setting::new();
    let object = setting.upstream.loose("main~1");
    let borrowed = tempfile::tempdir().unwrap();
    git(
        borrowed.path(),
        &["clone", "-q", "-s", &setting.upstream.path().display().to_string(), "."],
    );
    setting.upstream.git(&["repack", "-q", "-a"]);
    let spoils: [fn(&Path); 4] = [
        |object| {
            let bytes = std::fs::read(object).unwrap();
            std::fs::remove_file(object).unwrap();
            std::fs::write(object, &bytes[..bytes.len() / 2]).unwrap();
        },
        |object| std::fs::remove_file(object).and_then(|()| std::fs::create_dir(object)).unwrap(),
        |object| {
            std::fs::remove_dir(object).unwrap();
            assert!(Command::new("mkfifo").arg(object).status().unwrap().success());
        },
        |object| std::fs::remove_file(object).and_then(|()| std::fs::write(object, "")).unwrap(),
    ];
    let id = |setting: &Setting| setting.upstream.id("main~1");
    let wanted = id(&setting);
    for spoil in spoils {
        spoil(&object);
        for clone in [setting.upstream.path(), borrowed.path()] {
            let history = History::open(clone).unwrap();
            assert_eq!(history.resolve("main~1").unwrap(), wanted);
            history.prove(wanted, history.commit(wanted).unwrap().tree).unwrap();
        }
    }
    // A pipe that is all there is of it is not waited for.
    let setting = Setting::new();
    let object = setting.upstream.loose("main~1");
    std::fs::remove_file(&object).unwrap();
    assert!(Command::new("mkfifo").arg(&object).status().unwrap().success());
    let history = History::open(setting.upstream.path()).unwrap();
    for name in ["main~1", "main~2", "main@{0}"] {
        let error = history.resolve(name).unwrap_err();
        assert!(matches!(error, GitError::Damaged { .. }), "{name}: {}", chain(&error));
    }
}

/// Whichever of the two is asked first.
fn other_pack() {
    let setting = Setting::new();
    let clone = cloned(&setting, &["--bare"]);
    git(clone.path(), &["-c", "pack.compression=0", "repack", "-q", "-a", "-F"]);
    let packs = packs(clone.path(), "pack");
    assert_eq!(packs.len(), 2);
    for pack in &packs {
        let whole = std::fs::read(pack).unwrap();
        let mut spoiled = whole.clone();
        // `id kind size length offset`
        let listed = git(clone.path(), &["verify-pack", "-v", &pack.display().to_string()]);
        for line in listed.lines().filter(|l| l.contains(" blob ") || l.contains(" tree ")) {
            let number = |at| line.split_whitespace().nth(at).unwrap().parse::<usize>().unwrap();
            let (length, offset) = (number(3), number(4));
            spoiled[offset..offset + length].fill(0);
        }
        assert_ne!(spoiled, whole);
        overwrite(pack, &spoiled);
        let history = History::open(clone.path()).unwrap();
        history.prove(setting.commit, setting.tree).unwrap();
        overwrite(pack, &whole);
    }
    packs.iter().for_each(|pack| overwrite(pack, b"PACK"));
    let error = setting.import(&clone.path().display().to_string()).unwrap_err();
    assert!(matches!(error, GitError::Damaged { .. }), "{}", chain(&error));
}

/// libgit2 dies of one, at once or when it reads there.
fn leads_out() {
    let setting = Setting::new();
    let told = |clone: &Path, what: &str, why: &str| {
        for error in [
            History::open(clone).err().expect(what),
            setting.import(&clone.display().to_string()).expect_err(what),
        ] {
            assert!(matches!(error, GitError::Damaged { .. }), "{what}: {}", chain(&error));
            assert!(chain(&error).contains(why), "{what}: {}", chain(&error));
        }
    };
    for version in [1, 2] {
        let clone = cloned(&setting, &["--bare"]);
        let setting = format!("pack.indexVersion={version}");
        git(clone.path(), &["-c", &setting, "repack", "-q", "-a", "-d", "-F"]);
        let index = packs(clone.path(), "idx").remove(0);
        let whole = std::fs::read(&index).unwrap();
        // Where the first object's offset stands, in either version.
        let (begin, before) = if version == 1 { (0, 0) } else { (8, 24) };
        let counted = whole[begin + 4 * 255..][..4].try_into().unwrap();
        let objects = u32::from_be_bytes(counted) as usize;
        let offset = begin + 4 * 256 + before * objects;
        for (at, bit) in [(0, 0x01), (0, 0x10), (0, 0x40), (1, 0x01)] {
            let mut bytes = whole.clone();
            bytes[offset + at] ^= bit;
            overwrite(&index, &bytes);
            told(clone.path(), &setting, "has other bytes than were written");
        }
        // As far as git borrows, and in a file that is no UTF-8.
        let borrowers = [(); 6].map(|()| tempfile::tempdir().unwrap());
        let mut lender = clone.path();
        for borrower in &borrowers {
            git(borrower.path(), &["init", "-q", "--bare", "."]);
            let objects = lender.join("objects");
            let listed = [b"# \xff\n", objects.as_os_str().as_encoded_bytes(), b"\n"].concat();
            std::fs::write(borrower.path().join("objects/info/alternates"), listed).unwrap();
            lender = borrower.path();
            told(lender, &setting, "has other bytes than were written");
        }
        let pipe = clone.path().join("objects/pack/pack-1.idx");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        told(lender, &setting, "would be waited for");
        std::fs::remove_file(&pipe).unwrap();
        overwrite(&index, &whole);
        History::open(clone.path()).unwrap();
    }
    let clone = cloned(&setting, &["--bare"]);
    git(clone.path(), &["multi-pack-index", "write"]);
    History::open(clone.path()).unwrap();
    let index = clone.path().join("objects/pack/multi-pack-index");
    let mut bytes = std::fs::read(&index).unwrap();
    let offset = bytes.len() - 24;
    bytes[offset] ^= 0x10;
    overwrite(&index, &bytes);
    told(clone.path(), "multi-pack-index", "has other bytes than were written");
}

/// A name that means none, or that cannot be told to.
fn hidden_names() {
    let setting = Setting::new();
    let damaged = |clone: &Path, names: &[&str], what: &str| {
        let history = History::open(clone).unwrap();
        for name in names {
            let error = history.resolve(name).unwrap_err();
            let told = chain(&error);
            assert!(matches!(error, GitError::Damaged { .. }), "{what}: {name}: {told}");
        }
        let none = history.resolve("mian").unwrap_err();
        assert!(matches!(none, GitError::NoRevision { .. }), "{what}: {}", chain(&none));
    };
    let id = setting.upstream.git(&["rev-parse", "main~2"]);
    let clone = cloned(&setting, &["--bare"]);
    packs(clone.path(), "idx").iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let names = ["main", "HEAD", "HEAD~1", "main~3", "release", &id, &id[..7], "main@{0}"];
    damaged(clone.path(), &names, "no index");

    let clone = cloned(&setting, &["--bare"]);
    for (file, names) in
        [("refs/heads/main", &["main", "HEAD", "main~1"][..]), ("HEAD", &["HEAD", "@"])]
    {
        let path = clone.path().join(file);
        let was = std::fs::read(&path).ok();
        for bytes in [&b""[..], b"junk", b"\0\xff\xfe"] {
            std::fs::write(&path, bytes).unwrap();
            damaged(clone.path(), names, file);
        }
        was.map_or_else(|| std::fs::remove_file(&path), |was| std::fs::write(&path, was)).unwrap();
    }

    // A ref that stands on what is not there tells that packs are gone.
    std::fs::remove_dir_all(clone.path().join("objects/pack")).unwrap();
    git(clone.path(), &["tag", "-d", "release"]);
    let error = setting.import(&clone.path().display().to_string()).unwrap_err();
    assert!(matches!(error, GitError::Damaged { .. }), "{}", chain(&error));
}

/// The mirror's damage is found before anything is asked of it, and mended by upstream.
fn mirror() {
    let setting = Setting::new();
    let url = setting.serve(Fault::None).url;
    let mirror = setting.mirror();
    let update = |url: &str| mirror.update(url, "main", setting.commit, QUICK, &Silent);
    let url = format!("{url}/.git");
    assert!(mirror.open().unwrap().is_none(), "never fetched");
    assert_eq!(update(&url).unwrap(), None);
    let spoils: [Spoil; 9] = [
        ("an index", |at| packs(at, "idx").iter().for_each(|path| overwrite(path, b""))),
        ("a pack", |at| packs(at, "pack").iter().for_each(|path| overwrite(path, b""))),
        ("HEAD", |at| overwrite(&at.join("HEAD"), b"\xff\0")),
        ("a branch", |at| overwrite(&at.join("refs/heads/main"), b"junk")),
        ("no branch", |at| folder(&at.join("refs/heads/main"))),
        ("the settings", |at| overwrite(&at.join("config"), b"[core")),
        ("no settings", |at| {
            overwrite(&at.join("config"), b"");
            folder(&at.join("refs/heads/main"));
        }),
        ("what was fetched", |at| folder(&at.join("FETCH_HEAD"))),
        ("objects", |at| std::fs::remove_dir_all(at.join("objects")).unwrap()),
    ];
    for (what, spoil) in spoils {
        spoil(mirror.path());
        let damaged = |told: Result<(), GitError>| {
            assert!(matches!(told, Err(GitError::Damaged { .. })), "{what}: {told:?}");
        };
        damaged(mirror.open().map(drop));
        // Nobody listens there, and it stays as it was.
        damaged(update("http://127.0.0.1:9/x").map(drop));
        damaged(mirror.open().map(drop));
        assert!(update(&url).unwrap().is_some(), "{what}");
        git(mirror.path(), &["fsck", "--strict"]);
        let history = mirror.open().unwrap().unwrap();
        assert_eq!(history.resolve("HEAD").unwrap(), setting.upstream.id("main"), "{what}");
        assert_eq!(update(&url).unwrap(), None, "{what}");
        let beside = std::fs::read_dir(mirror.path().parent().unwrap()).unwrap().count();
        assert_eq!(beside, 2, "{what}: it and its lock");
    }
}

/// The files of a bare repository's packs with this ending.
fn packs(repository: &Path, ending: &str) -> Vec<PathBuf> {
    let items = std::fs::read_dir(repository.join("objects/pack")).unwrap();
    let paths = items.map(|item| item.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|e| e == ending)).collect()
}

fn overwrite(file: &Path, bytes: &[u8]) {
    let _ = std::fs::remove_file(file);
    std::fs::write(file, bytes).unwrap();
}

fn folder(place: &Path) {
    let _ = std::fs::remove_file(place);
    std::fs::create_dir(place).unwrap();
}

/// A chain of folders that comes back to where it began, and one with a link missing.
fn alternates() {
    let setting = Setting::new();
    let folders = [(); 3].map(|()| cloned(&setting, &["--bare"]));
    let file = |at: usize| folders[at].path().join("objects/info/alternates");
    let objects = |at: usize| folders[at].path().join("objects").display().to_string();
    let other = ObjectId::of_blob(b"");
    let none = |at: usize| History::open(folders[at].path()).unwrap().commit(other).unwrap_err();
    std::fs::write(file(0), "../objects\n../../objects/../objects\n../objects/pack/..\n").unwrap();
    assert!(!matches!(none(0), GitError::NoCommit { .. }), "a folder that is not there");
    std::fs::write(file(0), "../objects\n../objects/pack/..\n").unwrap();
    assert!(matches!(none(0), GitError::NoCommit { .. }), "{}", chain(&none(0)));
    for at in 0..3 {
        std::fs::write(file(at), format!("{}\n../objects\n", objects((at + 1) % 3))).unwrap();
    }
    for (at, folder) in folders.iter().enumerate() {
        assert!(matches!(none(at), GitError::NoCommit { .. }), "{}", chain(&none(at)));
        assert!(History::open(folder.path()).unwrap().resolve("main~1").is_ok());
    }
    std::fs::write(file(0), "/no/such/folder\n").unwrap();
    let told = chain(&none(0));
    assert!(told.contains("is damaged") && told.contains("/no/such/folder"), "{told}");
}

fn flip(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 0x55;
    std::fs::write(file, bytes).unwrap();
}
