//! What became of cargo's own files since it fetched a package.

use std::fs;

use overlay_tests_support::{Need, Suite};

use crate::released::{SAMPLE, Setting, WHOLE};

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    let needs = || [Need::program("git", "git"), Need::program("cargo", "Rust")];
    suite.test_needing("fetch/a damaged archive of cargo's is fetched again", needs(), damaged);
    suite.test_needing("fetch/an archive that cargo lost is not needed", needs(), lost);
    suite.test_needing("fetch/a lock that cargo cannot read is made anew", needs(), broken_lock);
    suite.test_needing("fetch/whatever stands where a manifest is to be", needs(), in_the_way);
    suite.test_needing("fetch/edits that cargo clears away are kept", needs(), edits);
    suite.test_needing("apply/offline leaves a damaged package alone", needs(), left_alone);
}

fn damaged() {
    let setting = Setting::new(&WHOLE);
    let first = setting.run(&["fetch"]);
    first.assert_status(0);
    let all = "whole all 2 files";
    assert!(first.stdout().contains(all), "{}", first.shown());
    assert!(!first.stdout().contains("partial"), "{}", first.shown());

    let archive = setting.in_home("cache", "overlay-sample-1.2.3.crate");
    fs::remove_dir_all(setting.in_home("src", "overlay-sample-1.2.3")).unwrap();
    let bytes = fs::read(&archive).unwrap();
    fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
    let offline = setting.run(&["fetch", "--offline"]);
    offline.assert_status(4);
    let told = format!("`{}` is damaged, and the network is off limits", archive.display());
    assert!(offline.stderr().contains(&told), "{}", offline.shown());

    let again = setting.run(&["fetch"]);
    again.assert_status(0);
    assert!(again.stdout().contains(all), "{}", again.shown());
    assert_eq!(fs::read(&archive).unwrap(), bytes);
}

/// Emptied or gone: what cargo unpacked before is as good, where it is proven.
fn lost() {
    let setting = Setting::new(&WHOLE);
    setting.run(&["fetch"]).assert_status(0);
    let archive = setting.in_home("cache", "overlay-sample-1.2.3.crate");
    let at = format!("{SAMPLE}:vendor/up");
    let losses: [&dyn Fn(); 2] =
        [&|| fs::write(&archive, "").unwrap(), &|| fs::remove_file(&archive).unwrap()];
    for lose in losses {
        lose();
        let offline = setting.run(&["fetch", "--offline"]);
        offline.assert_status(0);
        assert!(offline.stdout().contains("whole all 2 files"), "{}", offline.shown());
        let trial = ["apply", "--offline", "--force", "--out", "out", "--at", &at];
        setting.run(&trial).assert_status(0);
        // A tree that nobody states is proven by the archive alone.
        let other = ["apply", "--offline", "--out", "other", "--at", SAMPLE];
        let unproven = setting.run(&other);
        unproven.assert_status(4);
        assert!(unproven.stderr().contains("the network is off limits"), "{}", unproven.shown());
    }
    let edited = setting.in_home("src", "overlay-sample-1.2.3").join("vendor/up/a.txt");
    fs::write(edited, "edited\n").unwrap();
    let offline = setting.run(&["fetch", "--offline"]);
    offline.assert_status(0);
    assert!(offline.stdout().contains("1 of 2 files are"), "{}", offline.shown());
}

fn broken_lock() {
    let setting = Setting::new(&WHOLE);
    setting.run(&["fetch"]).assert_status(0);
    let lock = setting.project.tool.path(".cache/crates/overlay-sample-1.2.3/Cargo.lock");
    let offline = |what: &str| {
        let run = setting.run(&["fetch", "--offline"]);
        run.assert_status(0);
        assert!(run.stdout().contains("whole all 2 files"), "{what}: {}", run.shown());
        assert!(lock.is_file(), "{what}");
    };
    for text in
        ["version = 99\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n", "package = 1\n", "{"]
    {
        fs::write(&lock, text).unwrap();
        offline(text);
    }
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    offline("a folder");
}

fn in_the_way() {
    let setting = Setting::new(&WHOLE);
    setting.run(&["fetch"]).assert_status(0);
    let crates = setting.project.tool.path(".cache/crates");
    let made = crates.join("overlay-sample-1.2.3");
    for name in ["Cargo.toml", "lib.rs"] {
        fs::remove_file(made.join(name)).unwrap();
        fs::create_dir_all(made.join(name).join("below")).unwrap();
        setting.run(&["fetch", "--offline"]).assert_status(0);
        assert!(made.join(name).is_file());
    }
    for folder in [&made, &crates] {
        fs::remove_dir_all(folder).unwrap();
        fs::write(folder, "a file").unwrap();
        setting.run(&["fetch", "--offline"]).assert_status(0);
        assert!(made.join("Cargo.toml").is_file());
    }
}

/// With cargo's marker or without it: cargo unpacks over them either way.
fn edits() {
    let setting = Setting::new(&WHOLE);
    setting.run(&["fetch"]).assert_status(0);
    let unpacked = setting.in_home("src", "overlay-sample-1.2.3");
    let file = unpacked.join("vendor/up/a.txt");
    for (marker, kept, options) in [
        (true, "overlay-sample-1.2.3.kept", &["fetch"][..]),
        (false, "overlay-sample-1.2.3.kept-2", &["fetch", "--offline"]),
    ] {
        fs::write(&file, "a person's\n").unwrap();
        if !marker {
            fs::remove_file(unpacked.join(".cargo-ok")).unwrap();
        }
        let run = setting.run(options);
        run.assert_status(0);
        assert!(run.stdout().contains("whole all 2 files"), "{}", run.shown());
        assert_eq!(fs::read_to_string(&file).unwrap(), "a\n");
        let kept = setting.in_home("src", kept);
        let told = format!("they are kept in {}", kept.display());
        assert!(run.stderr().contains(&told), "{}", run.shown());
        let kept = kept.join("vendor/up/a.txt");
        assert_eq!(fs::read_to_string(kept).unwrap(), "a person's\n");
    }
    // Broken off while it unpacked: there is nothing to keep.
    fs::remove_file(unpacked.join(".cargo-ok")).unwrap();
    fs::write(&file, "").unwrap();
    let run = setting.run(&["fetch"]);
    run.assert_status(0);
    assert!(run.stderr().is_empty(), "{}", run.shown());
}

/// cargo goes on using what it has, whatever is wrong with it.
fn left_alone() {
    let setting = Setting::new(&WHOLE);
    setting.run(&["fetch"]).assert_status(0);
    let archive = setting.in_home("cache", "overlay-sample-1.2.3.crate");
    let unpacked = setting.in_home("src", "overlay-sample-1.2.3");
    fs::write(unpacked.join("vendor/up/a.txt"), "edited\n").unwrap();
    let bytes = fs::read(&archive).unwrap();
    fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
    let offline = setting.run(&["apply", "--offline", "--out", "out"]);
    offline.assert_status(0);
    assert!(offline.stdout().contains("1 of 2 files are"), "{}", offline.shown());
    let told = format!("`{}` is damaged, and the network is off limits", archive.display());
    assert!(offline.stderr().contains(&told), "{}", offline.shown());
    for file in [".cargo-ok", "Cargo.toml", "vendor/up/d/b.txt"] {
        assert!(unpacked.join(file).is_file(), "{file}");
    }
    assert_ne!(fs::read(unpacked.join(".cargo-ok")).unwrap(), b"damaged");
    // With the network all is mended.
    let whole = setting.run(&["apply", "--out", "out", "--force"]);
    whole.assert_status(0);
    assert!(!whole.stdout().contains("partial"), "{}", whole.shown());
    assert_eq!(fs::read(&archive).unwrap(), bytes);
}
