//! Repositories that are damaged: an object cut short, a pack that lost its end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use overlay_tests_support::{Need, Suite};

use crate::apply::{A_TO_B, project};
use crate::project::{Project, git};

pub fn add(suite: &mut Suite) {
    let git_there = || [Need::program("git", "git")];
    suite.test_needing("damage/half an object in a clone", git_there(), half_in_clone);
    suite.test_needing("damage/of a clone it is told alike", git_there(), cache_or_not);
    suite.test_needing("damage/half an object in the cache", git_there(), half_in_cache);
    suite.test_needing("damage/a clone that lost the pin", git_there(), lost);
    suite.test_needing("damage/half an object in the history", git_there(), half_in_history);
    suite.test_needing("damage/a cache that lost a part", git_there(), lost_parts);
}

/// What the commands read of a pin: libgit2 would read any of them for ever.
const READ: [&str; 3] = ["HEAD", "HEAD^{tree}", "HEAD:a.txt"];

/// Cuts the file of an object that is in no pack in the middle.
fn halve(repository: &Path, rev: &str) {
    let id = git(repository, &["rev-parse", rev]);
    let objects = git(repository, &["rev-parse", "--git-path", "objects"]);
    let file = repository.join(objects).join(&id[..2]).join(&id[2..]);
    let bytes = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
}

/// A project with a series, and nothing in its cache.
fn fresh() -> Project {
    let project = project(&[("first", "metal", A_TO_B)]);
    let _ = fs::remove_dir_all(project.tool.path(".cache"));
    project
}

fn half_in_clone() {
    for what in READ {
        let project = fresh();
        let clone = project.tool.path("clone");
        halve(&clone, what);
        for command in [&["fetch"][..], &["apply"], &["drift", "--to", "main"]] {
            let run = project.tool.run([command, &["--from", "clone"]].concat());
            run.assert_status(4);
            for words in ["clone", ": the repository is damaged", " is cut short", " fsck` names"] {
                assert!(run.stderr().contains(words), "{what}: {words}: {}", run.shown());
            }
        }
        let named = clone.display().to_string();
        let variables = [("MLX_OVERLAY_UPSTREAM", &*named), ("PATH", "")];
        let doctor = project.tool.run_with(&variables, ["doctor", "--offline"]);
        doctor.assert_status(1);
        assert!(doctor.stdout().contains(" is cut short"), "{what}: {}", doctor.shown());
        // One that is named for every run is passed over, and told.
        let apply = project.tool.run_with(&variables, ["apply"]);
        apply.assert_status(4);
        assert!(apply.stderr().contains(" is cut short"), "{what}: {}", apply.shown());
    }
}

/// A clone that a drift works on is damaged whether or not the cache has the pin.
fn cache_or_not() {
    let spoils: [fn(&Path); 5] = [
        |git| fs::remove_file(git.join("HEAD")).unwrap(),
        |git| fs::remove_dir_all(git.join("objects")).unwrap(),
        |git| fs::remove_dir_all(git.join("objects/pack")).unwrap(),
        |git| fs::remove_dir_all(git.join("refs")).unwrap(),
        |git| {
            let items = fs::read_dir(git.join("objects/pack")).unwrap();
            let paths = items.map(|item| item.unwrap().path());
            let indexes = paths.filter(|path| path.extension().is_some_and(|e| e == "idx"));
            indexes.for_each(|path| fs::remove_file(path).unwrap());
        },
    ];
    for (at, spoil) in spoils.into_iter().enumerate() {
        let project = fresh();
        let clone = project.tool.path("clone");
        git(&clone, &["repack", "-q", "-a", "-d"]);
        project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
        spoil(&clone.join(".git"));
        let told = || {
            ["main", &project.commit].map(|to| {
                let named = clone.display().to_string();
                let run = project.tool.run(["drift", "--to", to, "--from", &named]);
                run.assert_status(4);
                assert!(run.stderr().contains("the repository is damaged"), "{}", run.shown());
                // What it is and why; then what to do.
                run.stderr().split("try: ").next().unwrap_or_default().to_owned()
            })
        };
        let warm = told();
        fs::remove_dir_all(project.tool.path(".cache")).unwrap();
        assert_eq!(warm, told(), "{at}");
    }
}

/// The one folder of the cache's with this ending.
fn store(project: &Project) -> PathBuf {
    let items = fs::read_dir(project.tool.path(".cache/git")).unwrap();
    let mut paths = items.map(|item| item.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|e| e == "git")).unwrap()
}

/// Takes the objects of a repository out of its packs.
fn unpack(repository: &Path) {
    let folder = repository.join("objects/pack");
    let packs = fs::read_dir(&folder).unwrap().map(|item| item.unwrap().path());
    let packs: Vec<_> = packs.filter(|p| p.extension().is_some_and(|e| e == "pack")).collect();
    let aside = repository.join("aside");
    fs::rename(&folder, &aside).unwrap();
    for pack in packs {
        let pack = aside.join(pack.file_name().unwrap()).display().to_string();
        let unpack = format!("!git unpack-objects -q < {pack}");
        git(repository, &["-c", &format!("alias.unpack={unpack}"), "unpack"]);
    }
    fs::remove_dir_all(aside).unwrap();
}

fn half_in_cache() {
    for what in READ {
        let project = fresh();
        project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
        let store = store(&project);
        unpack(&store);
        halve(&store, &what.replace("HEAD", &project.commit));
        for command in [&["apply", "--offline"][..], &["fetch", "--offline"]] {
            let run = project.tool.run(command);
            run.assert_status(4);
            for words in ["the object cache is damaged", " is cut short"] {
                assert!(run.stderr().contains(words), "{what}: {words}: {}", run.shown());
            }
        }
        let doctor = project.tool.run(["doctor", "--offline"]);
        assert!(doctor.stdout().contains(" is cut short"), "{what}: {}", doctor.shown());
        project.tool.run(["pin"]).assert_status(0);
        let mended = project.tool.run(["apply", "--from", "clone"]);
        mended.assert_status(0);
        assert!(mended.stderr().contains("the object cache was damaged"), "{}", mended.shown());
        project.tool.run(["fetch", "--offline"]).assert_status(0);
    }
}

/// What a drift fetched of the history, and a person unpacked.
fn half_in_history() {
    for what in READ {
        let project = fresh();
        project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
        let store = store(&project).display().to_string();
        let mirror = format!("{}.history.git", store.strip_suffix(".git").unwrap());
        git(&project.tool.path("clone"), &["clone", "-q", "--bare", ".", &mirror]);
        unpack(Path::new(&mirror));
        halve(Path::new(&mirror), what);
        let run = project.tool.run(["drift", "--offline", "--to", &project.commit]);
        assert!(matches!(run.status(), Some(4 | 5)), "{what}: {}", run.shown());
        for words in [" is cut short", "`rm -rf /", ".history.git`: it is fetched again"] {
            assert!(run.stderr().contains(words), "{what}: {words}: {}", run.shown());
        }
    }
}

/// A commit that is not found where a pack cannot be used, and one that never was there.
fn lost() {
    let project = fresh();
    let clone = project.tool.path("clone");
    let doctor = |clone: &Path| {
        let named = clone.display().to_string();
        let variables = [("MLX_OVERLAY_UPSTREAM", &*named), ("PATH", "")];
        let run = project.tool.run_with(&variables, ["doctor", "--offline"]);
        run.assert_status(1);
        run.stdout().to_owned()
    };
    // The branch goes on, so that no name stands on the pin.
    git(&clone, &["commit", "-q", "--allow-empty", "-m", "Second"]);
    git(&clone, &["repack", "-q", "-a", "-d"]);
    let packs = fs::read_dir(clone.join(".git/objects/pack")).unwrap();
    let mut packs = packs.map(|item| item.unwrap().path());
    let pack = packs.find(|p| p.extension().is_some_and(|e| e == "pack")).unwrap();
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o644)).unwrap();
    let bytes = fs::read(&pack).unwrap();
    fs::write(&pack, &bytes[..bytes.len() - 30]).unwrap();
    let told = doctor(&clone);
    for words in [": the repository is damaged: ", "it is not the pack of its index"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    fs::remove_file(&pack).unwrap();
    assert!(doctor(&clone).contains("it cannot be read"), "{}", doctor(&clone));
    let other = project.tool.path("other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    let told = doctor(&other);
    assert!(told.contains(&format!("has no commit {}", project.commit)), "{told}");
    assert!(!told.contains("other: the repository is damaged"), "{told}");
}

/// It is no cache that nothing was fetched to.
fn lost_parts() {
    let project = fresh();
    for part in ["HEAD", "refs", "objects"] {
        project.tool.run(["fetch", "--from", "clone"]).assert_status(0);
        let part = store(&project).join(part);
        match part.is_dir() {
            true => fs::remove_dir_all(&part).unwrap(),
            false => fs::remove_file(&part).unwrap(),
        }
        let offline = project.tool.run(["fetch", "--offline"]);
        offline.assert_status(4);
        assert!(offline.stderr().contains("the object cache is damaged"), "{}", offline.shown());
        let pin = project.tool.run(["pin"]);
        pin.assert_status(0);
        assert!(pin.stdout().contains(": the repository is damaged"), "{}", pin.shown());
        let mended = project.tool.run(["fetch", "--from", "clone"]);
        mended.assert_status(0);
        assert!(mended.stderr().contains("the object cache was damaged"), "{}", mended.shown());
    }
}
