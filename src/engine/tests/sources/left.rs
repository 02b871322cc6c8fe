//! What a killed or failed fetch leaves in a mirror, and pipes in the place of files.

use std::path::Path;
use std::process::Command;

use mlx_overlay_engine::git::{GitError, History};
use mlx_overlay_engine::progress::Silent;
use overlay_tests_support::server::Fault;
use overlay_tests_support::{Need, Suite};

use crate::git::{QUICK, Setting, chain, cloned};
use crate::repository::git;

pub fn add(suite: &mut Suite) {
    let git = || [Need::program("git", "git")];
    suite.test_needing("left/locks and drafts of a killed fetch are cleared", git(), locks);
    suite.test_needing("left/a first fetch that fails leaves no mirror", git(), first);
    suite.test_needing("left/a pipe is named, and not waited for", git(), pipes);
    suite.test_needing("left/a clone that lost a part is told as damaged", git(), parts);
}

fn update(setting: &Setting, fault: Fault) -> Result<Option<String>, GitError> {
    let url = format!("{}/.git", setting.serve(fault).url);
    setting.mirror().update(&url, "main", setting.commit, QUICK, &Silent)
}

fn locks() {
    let setting = Setting::new();
    assert_eq!(update(&setting, Fault::None).unwrap(), None);
    let mirror = setting.mirror();
    let left = [
        "HEAD.lock",
        "FETCH_HEAD.lock",
        "packed-refs.lock",
        "config.lock",
        "shallow.lock",
        "refs/heads/main.lock",
        "refs/tags/release.lock",
        "objects/pack/pack_git2_a81b06",
        "objects/pack/pack-1.idx.lock",
        "objects/pack/tmp_pack_Vq9xT1",
        "objects/tmp_object_git2_c02df1",
    ];
    for name in left {
        std::fs::write(mirror.path().join(name), "half").unwrap();
    }
    setting.upstream.git(&["commit", "-q", "--allow-empty", "-m", "Later (#5)"]);
    setting.upstream.git(&["tag", "-f", "release", "main"]);
    assert_eq!(update(&setting, Fault::None).unwrap(), None, "it is not damaged");
    let history = mirror.open().unwrap().unwrap();
    for name in ["HEAD", "main", "release"] {
        assert_eq!(history.resolve(name).unwrap(), setting.upstream.id("main"), "{name}");
    }
    git(mirror.path(), &["fsck", "--strict"]);
    for name in left {
        assert!(!mirror.path().join(name).exists(), "{name}");
    }
}

fn first() {
    let setting = Setting::new();
    for fault in [Fault::Cut, Fault::Page] {
        update(&setting, fault).unwrap_err();
        let git = setting.mirror().path().parent().unwrap().to_path_buf();
        let beside = std::fs::read_dir(git).unwrap().map(|item| item.unwrap().file_name());
        let beside: Vec<_> = beside.collect();
        assert!(beside.len() == 1 && beside[0].to_string_lossy().ends_with(".lock"), "{beside:?}");
        assert!(setting.mirror().open().unwrap().is_none());
    }
    // What another version left so.
    git(
        setting.cache.path(),
        &["init", "-q", "--bare", &setting.mirror().path().display().to_string()],
    );
    assert!(setting.mirror().open().unwrap().is_none());
    assert_eq!(update(&setting, Fault::None).unwrap(), None);
    assert!(setting.mirror().has(setting.commit));
}

fn pipe(at: &Path) {
    let _ = std::fs::remove_file(at);
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
}

/// The files that git opens with a repository, or for a name.
const OPENED: [&str; 8] = [
    "HEAD",
    "config",
    "packed-refs",
    "shallow",
    "objects/info/alternates",
    "objects/pack/pack-0.idx",
    "refs/heads/main",
    "refs/remotes/origin/side",
];

fn pipes() {
    let setting = Setting::new();
    let named = |error: GitError, file: &str| {
        let told = chain(&error);
        assert!(matches!(error, GitError::Damaged { .. }), "{file}: {told}");
        assert!(told.contains(&format!("{file} is no file")), "{file}: {told}");
    };
    for file in OPENED {
        for options in [&["--bare"][..], &[]] {
            let clone = cloned(&setting, options);
            let within = if options.is_empty() { ".git" } else { "." };
            pipe(&clone.path().join(within).join(file));
            named(History::open(clone.path()).err().unwrap(), file);
            named(setting.import(&clone.path().display().to_string()).unwrap_err(), file);
            setting.check_nothing();
        }
        update(&setting, Fault::None).unwrap();
        pipe(&setting.mirror().path().join(file));
        named(setting.mirror().open().err().unwrap(), file);
        let mended = update(&setting, Fault::None).unwrap().unwrap();
        assert!(mended.contains(file), "{mended}");
        setting.mirror().open().unwrap().unwrap();
    }
    let clone = cloned(&setting, &[]);
    std::fs::rename(clone.path().join(".git"), clone.path().join("git")).unwrap();
    pipe(&clone.path().join(".git"));
    named(History::open(clone.path()).err().unwrap(), ".git");
}

fn parts() {
    let setting = Setting::new();
    for part in ["HEAD", "objects", "refs"] {
        for options in [&["--bare"][..], &[]] {
            let clone = cloned(&setting, options);
            let within = if options.is_empty() { ".git" } else { "." };
            let lost = clone.path().join(within).join(part);
            std::fs::remove_dir_all(&lost).or_else(|_| std::fs::remove_file(&lost)).unwrap();
            let opened = History::open(clone.path()).err().unwrap();
            for error in [opened, setting.import(&clone.path().display().to_string()).unwrap_err()]
            {
                let told = chain(&error);
                assert!(matches!(error, GitError::Damaged { .. }), "{part}: {told}");
                assert!(told.ends_with(&format!("its `{part}` is not there")), "{part}: {told}");
            }
        }
    }
    // A folder that is like one in a part is none.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("objects")).unwrap();
    let error = History::open(folder.path()).err().unwrap();
    assert!(matches!(error, GitError::Open { .. }), "{}", chain(&error));
}
