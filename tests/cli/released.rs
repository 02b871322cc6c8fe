//! Released trees from a crate registry on the loopback: a pin's files from
//! one, and a series tried on one.

use std::fs;
use std::path::PathBuf;

use overlay_tests_support::crates;
use overlay_tests_support::server::Files;
use overlay_tests_support::{Need, Suite};

use crate::cache::spoil_pack;
use crate::project::{Project, git};
use crate::tool::Run;

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    let needs = || [Need::program("git", "git"), Need::program("cargo", "Rust")];
    suite.test_needing("apply/a-partial-tree-asks-again", needs(), partial_asks_again);
    suite.test_needing("apply/a-bridge-that-fails-is-told-as-a-cause", needs(), failing_bridge);
    suite.test_needing("apply/at-a-package-without-its-folder", needs(), no_folder);
    suite.test_needing("apply/at-a-package-the-pin-does-not-name", needs(), unnamed);
    suite.test_needing("apply/at-a-package-of-another-tree", needs(), other_tree);
    suite.test_needing("apply/at-a-vendored-package", needs(), vendored);
    suite.test_needing("apply/offline over a damaged cache takes releases", needs(), past_cache);
    suite.test_needing("apply/at-a-release-that-breaks-a-contract", needs(), broken_contract);
}

pub const SAMPLE: &str = "crate:overlay-sample@1.2.3";

/// A project whose pin's two files lie in `vendor/up` of a crate, and whose
/// upstream nobody reaches.
pub struct Setting {
    pub project: Project,
    files: Files,
}

impl Setting {
    pub fn new(sources: &[(&str, &str)]) -> Self {
        let project = Project::new();
        let files = Files::start();
        let home = project.tool.path("cargo-home");
        crates::set_up(&home, &files);
        let tree = git(&project.tool.path("clone"), &["rev-parse", "HEAD^{tree}"]);
        let pin = fs::read_to_string(project.tool.path("mlx-pin.toml")).unwrap();
        let snapshot =
            format!("[[snapshot]]\nsource = \"{SAMPLE}:vendor/up\"\ntree = \"{tree}\"\n");
        project.write("mlx-pin.toml", &format!("{pin}\n{snapshot}"));
        let setting = Self { project, files };
        setting.publish("1.2.3", sources);
        setting
    }

    fn publish(&self, version: &str, sources: &[(&str, &str)]) -> Vec<u8> {
        let path = |name| self.project.tool.path(name);
        let (made, home) = (path("made"), path("cargo-home"));
        let archive = crates::publish(&made, &home, &self.files, version, sources);
        self.files.put(&crates::archive(version), archive.clone());
        fs::remove_dir_all(made).unwrap();
        archive
    }

    /// Has the pin state another tree of its snapshot.
    fn state(&self, tree: &str) {
        let pin = fs::read_to_string(self.project.tool.path("mlx-pin.toml")).unwrap();
        let (facts, snapshot) = pin.split_once("[[snapshot]]").unwrap();
        let stated = snapshot.split('"').nth(3).unwrap();
        let snapshot = snapshot.replace(stated, tree);
        self.project.write("mlx-pin.toml", &format!("{facts}[[snapshot]]{snapshot}"));
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        let home = self.project.tool.path("cargo-home").display().to_string();
        self.project.tool.run_with(&[("CARGO_HOME", &home)], arguments)
    }

    /// A file or folder in cargo's home: `cache` or `src`.
    pub fn in_home(&self, part: &str, name: &str) -> PathBuf {
        let registry = self.project.tool.path("cargo-home/registry").join(part);
        let index = fs::read_dir(registry).unwrap().next().unwrap().unwrap();
        index.path().join(name)
    }
}

pub const WHOLE: [(&str, &str); 2] = [("vendor/up/a.txt", "a\n"), ("vendor/up/d/b.txt", "b\n")];

/// A source that had no answer when a partial tree was laid is named, with the
/// command that asks it again.
fn partial_asks_again() {
    let setting = Setting::new(&WHOLE[..1]);
    let pin = fs::read_to_string(setting.project.tool.path("mlx-pin.toml")).unwrap();
    let rest = "crate:overlay-sample@1.2.4:rest";
    let rest_of_pin = format!("[[snapshot]]\nsource = \"{rest}\"\ntree = \"{}\"\n", "0".repeat(40));
    setting.project.write("mlx-pin.toml", &format!("{pin}\n{rest_of_pin}"));
    let apply = |more: &[&str]| setting.run(&[&["apply", "--out", "out"], more].concat());
    let first = apply(&[]);
    first.assert_status(0);
    assert!(first.stdout().contains("1 of 2 files are there"), "{}", first.shown());
    setting.publish("1.2.4", &[("rest/d/b.txt", "b\n")]);
    let again = apply(&[]);
    again.assert_status(0);
    assert!(again.stdout().starts_with("Nothing to do: "), "{}", again.shown());
    let told = format!("It has nothing from {rest}, which had no answer");
    assert!(again.stdout().contains(&told), "{}", again.shown());
    assert!(
        again.stdout().contains("`overlay apply --out out --force` asks again"),
        "{}",
        again.shown()
    );
    let forced = apply(&["--force"]);
    forced.assert_status(0);
    assert!(setting.project.tool.path("out/d/b.txt").exists(), "{}", forced.shown());
    assert!(!forced.stdout().contains("partial:"), "{}", forced.shown());
}

/// Why a file is missing is no remedy.
fn failing_bridge() {
    let setting = Setting::new(&[WHOLE[0], ("vendor/up/d/b.txt", "other\n")]);
    let project = &setting.project;
    let pin = fs::read_to_string(project.tool.path("mlx-pin.toml")).unwrap();
    project.write("mlx-pin.toml", &format!("{}\nbridge = \"patches/b.patch\"\n", pin.trim_end()));
    let patch = |old: &str| format!("--- a/d/b.txt\n+++ b/d/b.txt\n@@ -1 +1 @@\n-{old}\n+b\n");
    project.write("patches/b.patch", &patch("else"));
    let folder = format!("patches/{}", &project.commit[..8]);
    project.write(&format!("{folder}/a.patch"), &patch("b").replace("+b\n", "+c\n"));
    let entry = "[[entry]]\nname = \"a\"\npatch = \"a.patch\"\ngroup = \"g\"\nreason = \"r\"\nforwarded = \"no\"\n";
    project.write(&format!("{folder}/series.toml"), &format!("schema = 1\n{entry}"));
    let run = setting.run(&["apply", "--format", "json"]);
    run.assert_status(4);
    let is_bridges = |line: &str| line.contains("b.patch: line 3: conflict in `d/b.txt`");
    let causes: Vec<&str> = run.stderr().lines().filter(|line| is_bridges(line)).collect();
    assert!(matches!(&causes[..], [one] if one.starts_with("  because: ")), "{}", run.shown());
    let error = &run.json()["error"];
    assert!(is_bridges(error["message"].as_str().unwrap()), "{error:#}");
    assert!(!error["remedies"].to_string().contains("b.patch"), "{error:#}");
}

fn no_folder() {
    let setting = Setting::new(&WHOLE);
    for at in [SAMPLE.to_owned(), format!("{SAMPLE}:vendor"), format!("{SAMPLE}:nothing")] {
        for command in [&["apply", "--at"][..], &["drift", "--to"]] {
            let run = setting.run(&[command, &[&at, "--format", "json"]].concat());
            run.assert_status(2);
            assert_eq!(run.json()["error"]["reason"], "no-tree", "{}", run.shown());
            let meant = format!("try: did you mean `{SAMPLE}:vendor/up`?");
            assert!(run.stderr().contains(&meant), "{}", run.shown());
        }
    }
    let folder = setting.project.tool.path("target/overlay");
    assert!(!folder.exists(), "nothing is written");
    let at = format!("{SAMPLE}:vendor/up");
    setting.run(&["apply", "--at", &at]).assert_status(0);
    // The folder is a part of the name, so that two of one crate have two places.
    let name = format!("{}-at-overlay-sample-1.2.3-vendor-up", &setting.project.commit[..8]);
    assert!(folder.join(name).join("a.txt").exists());
}

/// Nothing in the pin says what the package is: then the archive does that cargo
/// fetched, whatever became of the files since.
fn unnamed() {
    let setting = Setting::new(&WHOLE);
    setting.publish("1.2.4", &WHOLE);
    let at = "crate:overlay-sample@1.2.4:vendor/up";
    let apply = |out: &str, more: &[&str]| {
        setting.run(&[&["apply", "--at", at, "--out", out], more].concat())
    };
    let laid = |out: &str| fs::read_to_string(setting.project.tool.path(out).join("a.txt"));
    apply("one", &[]).assert_status(0);
    let file = setting.in_home("src", "overlay-sample-1.2.4/vendor/up/a.txt");
    fs::write(&file, "spoilt\n").unwrap();
    apply("two", &["--offline"]).assert_status(0);
    assert_eq!(laid("two").unwrap(), "a\n");

    let archive = setting.in_home("cache", "overlay-sample-1.2.4.crate");
    fs::write(&archive, "cut").unwrap();
    let offline = apply("three", &["--offline"]);
    offline.assert_status(4);
    assert!(
        offline.stderr().contains("overlay-sample-1.2.4.crate` is damaged"),
        "{}",
        offline.shown()
    );
    fs::remove_file(&archive).unwrap();
    let offline = apply("three", &["--offline"]);
    offline.assert_status(4);
    assert!(offline.stderr().contains("is not on this machine"), "{}", offline.shown());
    apply("three", &[]).assert_status(0);
    assert_eq!(laid("three").unwrap(), "a\n");
}

/// What `mlx-pin.toml` states of a package holds.
fn other_tree() {
    let setting = Setting::new(&WHOLE);
    setting.state(&"1".repeat(40));
    let tree = git(&setting.project.tool.path("clone"), &["rev-parse", "HEAD^{tree}"]);
    let told = format!("is the tree {tree}, and mlx-pin.toml states 1111");
    let fetched = setting.run(&["fetch"]);
    fetched.assert_status(0);
    assert!(fetched.stderr().contains(&told), "{}", fetched.shown());
    assert!(fetched.stdout().contains("whole all 2 files"), "{}", fetched.shown());
    let refused = setting.run(&["apply", "--at", &format!("{SAMPLE}:vendor/up"), "--out", "two"]);
    refused.assert_status(4);
    assert!(refused.stderr().contains(&told), "{}", refused.shown());
    assert!(!setting.project.tool.path("two").exists());
}

/// `cargo vendor` leaves out what the stated tree has: the sums count that it writes.
fn vendored() {
    let setting = Setting::new(&[WHOLE[0], WHOLE[1], ("vendor/up/d/.gitignore", "x\n")]);
    let path = |name: &str| setting.project.tool.path(name);
    fs::write(path("clone/d/.gitignore"), "x\n").unwrap();
    git(&path("clone"), &["add", "--force", "."]);
    setting.state(&git(&path("clone"), &["write-tree"]));
    let fetched = setting.run(&["fetch"]);
    fetched.assert_status(0);
    assert!(!fetched.stderr().contains("warning"), "{}", fetched.shown());

    let archive = fs::read(setting.in_home("cache", "overlay-sample-1.2.3.crate")).unwrap();
    let unpacked = setting.in_home("src", "overlay-sample-1.2.3");
    assert!(unpacked.join("vendor/up/d/.gitignore").is_file());
    let package = crates::vendor(&path("cargo-home"), &path("vendored"), &unpacked, &archive);
    assert!(!package.join("vendor/up/d/.gitignore").exists());
    let plain = setting.run(&["apply", "--out", "plain"]);
    plain.assert_status(0);
    assert!(!plain.stderr().contains("warning"), "{}", plain.shown());
    let at = format!("{SAMPLE}:vendor/up");
    let laid = setting.run(&["apply", "--at", &at, "--out", "one"]);
    laid.assert_status(0);
    assert!(laid.stderr().contains("is vendored, and `cargo vendor`"), "{}", laid.shown());
    assert!(path("one/d/b.txt").is_file());

    fs::write(package.join("vendor/up/a.txt"), "edited\n").unwrap();
    let refused = setting.run(&["apply", "--at", &at, "--out", "two"]);
    refused.assert_status(4);
    let told = "a.txt` is not as `.cargo-checksum.json` says";
    assert!(refused.stderr().contains(told), "{}", refused.shown());
    assert!(!path("two").exists());
    let part = setting.run(&["apply", "--out", "part"]);
    part.assert_status(0);
    assert!(part.stdout().contains("1 of 2 files are"), "{}", part.shown());
    assert!(part.stderr().contains(told), "{}", part.shown());
}

/// Wherever the damage in the object cache is: at its beginning, or in one file.
fn past_cache() {
    let setting = Setting::new(&WHOLE);
    setting.run(&["fetch"]).assert_status(0);
    let places: [fn(usize) -> usize; 2] = [|length| length / 2, |length| length - 26];
    for at in places {
        let _ = fs::remove_dir_all(setting.project.tool.path(".cache/git"));
        setting.run(&["fetch", "--from", "clone"]).assert_status(0);
        spoil_pack(&setting.project, at);
        for command in [&["apply", "--out", "out"][..], &["fetch"]] {
            for (option, told) in [
                (&["--offline"][..], "warning: the object cache is damaged: without --offline"),
                (&[], "warning: the object cache is damaged, and stays as it is until"),
            ] {
                let _ = fs::remove_dir_all(setting.project.tool.path("out"));
                let run = setting.run(&[command, option].concat());
                run.assert_status(0);
                assert!(run.stdout().contains("not from the object cache: "), "{}", run.shown());
                assert!(run.stdout().contains("is damaged"), "{}", run.shown());
                assert!(run.stdout().contains(SAMPLE), "{}", run.shown());
                assert!(run.stderr().contains(told), "{}", run.shown());
            }
        }
    }
}

/// A contract that does not hold is as fatal on a trial tree as a conflict,
/// until a person accepts it for that tree.
fn broken_contract() {
    let setting = Setting::new(&[
        WHOLE[0],
        WHOLE[1],
        ("vendor/other/a.txt", "changed\n"),
        ("vendor/other/d/b.txt", "b\n"),
    ]);
    let series = format!("patches/{}/series.toml", &setting.project.commit[..8]);
    let watch = "schema = 1\n\n[[cite]]\nat = \"a.txt:1\"\nsymbol = \"a\"\nreason = \"r\"\n";
    setting.project.write(&series, watch);
    setting.run(&["apply", "--out", "pin"]).assert_status(0);

    let at = format!("{SAMPLE}:vendor/other");
    let apply = ["apply", "--out", "out", "--at", &at];
    let run = setting.run(&[&apply[..], &["--format", "json"]].concat());
    run.assert_status(1);
    let json = run.json();
    assert_eq!((&json["holds"], &json["action"]), (&false.into(), &().into()), "{json:#}");
    assert_ne!(json["contracts"][0]["status"], "held", "{json:#}");
    let drift = setting.run(&["drift", "--to", &at, "--format", "json"]);
    drift.assert_status(1);
    assert_eq!(drift.json()["holds"], false, "{}", drift.shown());
    assert!(!drift.stderr().contains("--history"), "{}", drift.shown());
    let drift = setting.run(&["drift", "--to", &at, "--history"]);
    assert!(drift.stderr().contains("--history has nothing to list"), "{}", drift.shown());
    let told = setting.run(&apply);
    told.assert_status(1);
    assert!(told.stdout().contains("0 of 1 contract: not all hold."), "{}", told.shown());
    let accept = format!("acknowledged = [{{ target = \"{at}\", reason = \"…\" }}]");
    assert!(told.stdout().contains(&accept), "{}", told.shown());
    assert!(!setting.project.tool.path("out").exists(), "nothing is written");

    setting.project.write(&series, &format!("{watch}{accept}\n"));
    let laid = setting.run(&apply);
    laid.assert_status(0);
    assert!(laid.stdout().contains("1 of 1 contract hold. Laid"), "{}", laid.shown());
}
