//! `overlay rebase`, killed.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use overlay_tests_support::server::{Fault, Server};

use super::rebase::stop::WORK;
use super::{Bump, stop, stopped};
use crate::project::git;

/// Adds the tests.
pub fn add(test: &mut impl FnMut(&str, fn())) {
    test("rebase/a-half-written-pin-is-taken-back-or-finished", rebase_half_written);
    test("rebase/killed-at-any-time-it-is-whole", rebase_killed);
    test("rebase/killed-at-a-stop-no-file-is-there-before-it", stop_killed);
    test("rebase/killed-while-going-on-it-is-whole", rebase_killed_later);
    test("rebase/killed-while-given-up-it-can-be-given-up", abort_killed);
    test("drift/killed-while-it-fetches-a-later-one-works", fetch_killed);
}

/// What a kill between the folder and the pin leaves.
fn half_written() -> (Bump, BTreeMap<String, Vec<u8>>) {
    let bump = stopped();
    let mut before = bump.files();
    before.retain(|name, _| !name.starts_with(".overlay-rebase"));
    let state = bump.read(".overlay-rebase/state.json");
    bump.write(
        ".overlay-rebase/state.json",
        &state.replace("\"publishing\": false", "\"publishing\": true"),
    );
    bump.write(&format!("{}/ours.patch", bump.folder(4)), "x");
    bump.write(&format!("{}.toml", bump.folder(0)), &bump.read("mlx-pin.toml"));
    // A file that was being written.
    let kept = bump.folder(0).replace("patches/", "patches/.");
    bump.write(&format!("{kept}.toml.new"), "ha");
    bump.write(".mlx-pin.toml.new", "ha");
    (bump, before)
}

fn rebase_half_written() {
    let (bump, before) = half_written();
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert_eq!(bump.files(), before);
    let (bump, _) = half_written();
    // A person's file in the new folder is not the rebase's to remove.
    let mine = format!("{}/NOTES", bump.folder(4));
    bump.write(&mine, "mine");
    for way in [&["--skip", "ours"][..], &["--abort"], &["--continue"]] {
        let run = bump.run(&[&["rebase"], way].concat());
        run.assert_status(3);
        assert!(run.stderr().contains("the rebase did not put it there"), "{}", run.shown());
        assert_eq!(bump.read(&mine), "mine");
    }
    std::fs::remove_file(bump.tool.path(&mine)).unwrap();
    bump.run(&["rebase", "--continue"]).assert_status(0);
    assert!(!bump.tool.path(format!("{}/ours.patch", bump.folder(4))).exists());
    assert_eq!(bump.drift(4).0, Some(0));
}

fn rebase_killed() {
    for wait in [1, 5, 10, 20, 40, 60, 80, 120, 160, 240] {
        let bump = Bump::new();
        let before = bump.files();
        kill_after(&bump, &["rebase", "--to", &bump.commits[1]], 1000 * wait);
        if bump.tool.path(".overlay-rebase/state.json").exists() {
            let end = if wait % 20 == 0 { "--continue" } else { "--abort" };
            bump.run(&["rebase", end]).assert_status(0);
        }
        let moved = bump.read("mlx-pin.toml").contains(&bump.commits[1]);
        let mut after = bump.files();
        after.retain(|name, _| !name.starts_with(".overlay-rebase"));
        if moved {
            assert_eq!(bump.drift(1).0, Some(0), "killed after {wait} ms");
        } else {
            assert_eq!(after, before, "killed after {wait} ms");
            bump.run(&["rebase", "--to", &bump.commits[1]]).assert_status(0);
        }
    }
}

/// A file that a person can edit is one of a stop that the state has.
fn stop_killed() {
    let to = |bump: &Bump| bump.commits[4].clone();
    let run_time = {
        let bump = Bump::new();
        let begun = std::time::Instant::now();
        bump.run(&["rebase", "--to", &to(&bump), "--accept", super::ACCEPT]).assert_status(1);
        u64::try_from(begun.elapsed().as_micros()).unwrap()
    };
    for kill in 0..16 {
        let bump = Bump::new();
        let wait = run_time / 2 + run_time * kill / 30;
        kill_after(&bump, &["rebase", "--to", &to(&bump), "--accept", super::ACCEPT], wait);
        let work = bump.tool.path(WORK).exists();
        let state = bump.tool.path(".overlay-rebase/state.json").exists();
        let state = if state { bump.read(".overlay-rebase/state.json") } else { String::new() };
        let stopped = state.contains("\"stopped\": \"ours\"");
        assert!(stopped || !work, "killed after {wait} µs: {state}");
        let go_on: &[&str] = match state.is_empty() {
            true => &["rebase", "--to", &to(&bump), "--accept", super::ACCEPT],
            false => &["rebase", "--continue"],
        };
        bump.run(go_on).assert_status(1);
        assert!(bump.read(WORK).contains("<<<<<<< upstream"), "killed after {wait} µs");
    }
}

/// Starts the tool and kills it after so many microseconds.
fn kill_after(bump: &Bump, arguments: &[&str], wait: u64) {
    kill_with(bump, &bump.tool.path("clone").display().to_string(), arguments, wait);
}

/// As [`kill_after`], with upstream at `from`.
fn kill_with(bump: &Bump, from: &str, arguments: &[&str], wait: u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_overlay"))
        .args(arguments)
        .current_dir(bump.tool.path(""))
        .env("MLX_OVERLAY_UPSTREAM", from)
        .env("MLX_OVERLAY_CACHE", bump.tool.path(".cache"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_micros(wait));
    let _ = child.kill();
    child.wait().unwrap();
}

/// Kills each step of a rebase that stopped, at many moments, and goes on.
fn rebase_killed_later() {
    let run_time = {
        let bump = stopped();
        let begun = std::time::Instant::now();
        bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
        u64::try_from(begun.elapsed().as_micros()).unwrap()
    };
    let mut interrupted = 0;
    for kill in 0..12 {
        let wait = run_time * kill / 11;
        for step in ["--skip", "--continue", "--abort"] {
            let bump = Bump::new();
            let before = bump.files();
            let bump = stop(bump);
            if step == "--continue" {
                let text = bump.read(WORK);
                let (head, rest) = text.split_once("<<<<<<<").unwrap();
                let (_, tail) = rest.split_once(">>>>>>> ours\n").unwrap();
                bump.write(WORK, &format!("{head}  x = x * 3;\n  x = x - 1;\n{tail}"));
            }
            let arguments: &[&str] =
                if step == "--skip" { &["rebase", step, "ours"] } else { &["rebase", step] };
            kill_after(&bump, arguments, wait);
            let told = format!("{step}, killed after {wait} µs");
            if bump.tool.path(".overlay-rebase/state.json").exists() {
                interrupted += 1;
                bump.run(&["rebase"]).assert_status(1);
                // Whether it was taken in before or not.
                bump.run(arguments).assert_status(0);
            }
            assert!(!bump.tool.path(".overlay-rebase/state.json").exists(), "{told}");
            let moved = bump.read("mlx-pin.toml").contains(&bump.commits[4]);
            assert_eq!(moved, step != "--abort", "{told}");
            let after = bump.files();
            for (name, bytes) in before.iter().filter(|(n, _)| n.starts_with(&bump.folder(0))) {
                assert_eq!(after.get(name), Some(bytes), "{name}: {told}");
            }
            if moved {
                assert_eq!(bump.drift(4).0, Some(0), "{told}");
            } else {
                let mut after = after;
                after.retain(|name, _| !name.starts_with(".overlay-rebase"));
                assert_eq!(after, before, "{told}");
            }
        }
    }
    assert!(interrupted > 6, "{interrupted} of 36 kills came in time");
}

/// Kills `--abort` at many moments, and asks again.
fn abort_killed() {
    let folder = |bump: &Bump| bump.tool.path(".overlay-rebase");
    let abort = ["rebase", "--abort"];
    let run_time = {
        let bump = stopped();
        let begun = std::time::Instant::now();
        bump.run(&abort).assert_status(0);
        u64::try_from(begun.elapsed().as_micros()).unwrap()
    };
    for kill in 0..24 {
        let bump = Bump::new();
        let before = bump.files();
        let bump = stop(bump);
        let wait = run_time * kill / 20;
        kill_after(&bump, &abort, wait);
        if folder(&bump).exists() {
            bump.run(&abort).assert_status(0);
        }
        assert!(!folder(&bump).exists(), "killed after {wait} µs");
        assert_eq!(bump.files(), before, "killed after {wait} µs");
    }
    // What is left at each step of the end, the last of them first.
    for steps in [
        &["state.json", "work"][..],
        &["state.json", "work", ".state.json.new"],
        &["state.json", "work", ".state.json.new", "lock"],
        &["work"],
        // Of what lies there without a state nobody knows whose it is.
        &["state.json"],
    ] {
        let bump = Bump::new();
        let before = bump.files();
        let bump = stop(bump);
        bump.write(".overlay-rebase/.state.json.new", "{");
        for step in steps {
            let path = folder(&bump).join(step);
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
        if steps.contains(&"state.json") {
            bump.run(&["rebase", "--continue"]).assert_status(2);
        }
        if !steps.contains(&"work") {
            let run = bump.run(&abort);
            run.assert_status(3);
            assert!(run.stderr().contains("the rebase did not put it there"), "{}", run.shown());
            std::fs::remove_file(bump.tool.path(WORK)).unwrap();
        }
        bump.run(&abort).assert_status(0);
        assert!(!folder(&bump).exists(), "{steps:?}");
        assert_eq!(bump.files(), before, "{steps:?}");
    }
}

/// Kills a drift at many moments of its first fetch and of a later one, which writes to
/// the mirror that is there.
fn fetch_killed() {
    let bump = Bump::new();
    let clone = bump.tool.path("clone");
    let url = format!("{}/.git", Server::start(&clone, Fault::None).url);
    let drift = ["drift", "--to", "main", "--format", "json"];
    let drifted = || bump.tool.run_with(&[("MLX_OVERLAY_UPSTREAM", &url)], drift);
    let cache = bump.tool.path(".cache");
    let begun = std::time::Instant::now();
    assert_eq!(drifted().json()["target"]["commit"], bump.commits[4]);
    let run_time = u64::try_from(begun.elapsed().as_micros()).unwrap();
    for kill in 0..24 {
        if kill % 4 == 0 {
            fs::remove_dir_all(&cache).unwrap();
        }
        git(&clone, &["commit", "-q", "--allow-empty", "-m", "Later"]);
        git(&clone, &["tag", &format!("v{kill}")]);
        let wait = run_time * kill / 24;
        kill_with(&bump, &url, &drift, wait);
        let run = drifted();
        run.assert_status(1);
        let told = format!("killed after {wait} µs: {}", run.shown());
        assert_eq!(run.json()["target"]["commit"], git(&clone, &["rev-parse", "HEAD"]), "{told}");
        let kept = fs::read_dir(cache.join("git")).unwrap().map(|item| item.unwrap().path());
        for mirror in kept.filter(|path| path.join("HEAD").exists()) {
            git(&mirror, &["fsck", "--strict"]);
        }
    }
}
