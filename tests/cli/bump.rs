//! `overlay drift` and `overlay rebase`, on an upstream made for the test.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use overlay_tests_support::server::{Fault, Server};
use overlay_tests_support::{Need, Suite};
use serde_json::Value;

use crate::project::git;
use crate::tool::{Run, Tool};

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    let mut test = |name: &str, body: fn()| {
        suite.test_needing(name, [Need::program("git", "git")], body);
    };
    test("drift/what-moves-holds", drift_moves);
    test("drift/each-finding-has-its-first-commit", drift_causes);
    test("drift/history-says-when", drift_history);
    test("drift/a-report-for-people", drift_text);
    test("drift/without-a-clone-the-history-is-fetched", drift_fetched);
    test("drift/an-unknown-target-is-a-usage-error", drift_unknown);
    test("drift/an-older-target-has-causes-too", drift_older);
    test("drift/a-branch-is-not-blamed-for-what-it-lacks", drift_branch);
    test("rebase/moves-the-pin-and-keeps-the-old-one", rebase_clean);
    test("rebase/dry-run-writes-nothing", rebase_dry_run);
    test("rebase/a-contract-stops-it-until-accepted", rebase_contract);
    test("rebase/a-conflict-is-finished-by-hand", rebase_conflict);
    test("rebase/an-entry-can-be-left-out", rebase_skip);
    test("rebase/given-up-all-is-as-it-was", rebase_abort);
    test("rebase/a-half-written-pin-is-taken-back-or-finished", rebase_half_written);
    test("rebase/killed-at-any-time-it-is-whole", rebase_killed);
    test("rebase/a-series-edited-on-the-way-is-refused", rebase_edited);
    test("rebase/a-taken-name-is-mended-in-the-rule", rebase_rule);
    test("rebase/a-renamed-file-is-followed", rebase_renamed);
    test("rebase/a-moved-pin-can-still-be-given-up", rebase_abort_moved);
    test("rebase/a-folder-that-is-there-stays", rebase_taken_folder);
    test("rebase/killed-while-going-on-it-is-whole", rebase_killed_later);
}

const Q: &str = "\
#pragma once

int helper(int a) {
  int b = a + 1;
  return b;
}

int impl(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    sum += i;
  }
  return sum;
}

int fixed() {
  return 1;
}

int last(int x) {
  x = x + 1;
  x = x * 2;
  return x;
}
";

/// The upstream commits after the pin: subject, and what is replaced by what.
const COMMITS: [(&str, &str, &str); 4] = [
    ("Say more at the top (#11)", "#pragma once\n", "#pragma once\n\n// More.\n// And more.\n"),
    ("Split the sum (#12)", "i < n; i++", "i < n; i += 2"),
    ("Mend fixed (#13)", "  return 1;\n", "  return 2;\n"),
    ("Rework last (#14)", "  x = x * 2;\n", "  x = x * 3;\n"),
];

const FIX: &str = "\
Subject: mend fixed

--- a/q.h
+++ b/q.h
@@ -14,7 +14,7 @@ int impl(int n) {
 }
 
 int fixed() {
-  return 1;
+  return 2;
 }
 
 int last(int x) {
";
const OURS: &str = "\
Subject: triple

--- a/q.h
+++ b/q.h
@@ -20,5 +20,6 @@ int fixed() {
 int last(int x) {
   x = x + 1;
-  x = x * 2;
+  x = x * 2; // ours
+  x = x - 1;
   return x;
 }
";
const OTHER: &str = "\
--- a/other.txt
+++ b/other.txt
@@ -1,2 +1,3 @@
 one
+ours
 two
";

struct Bump {
    tool: Tool,
    /// The pin, then the commits after it.
    commits: Vec<String>,
}

impl Bump {
    fn new() -> Self {
        let tool = Tool::new();
        let clone = tool.path("clone");
        fs::create_dir_all(clone.join("mlx")).unwrap();
        git(&clone, &["init", "-q", "-b", "main", "."]);
        let mut text = Q.to_owned();
        fs::write(clone.join("other.txt"), "one\ntwo\n").unwrap();
        let version = "#define MLX_VERSION_MAJOR 1\n#define MLX_VERSION_MINOR 2\n#define MLX_VERSION_PATCH 3\n";
        fs::write(clone.join("mlx/version.h"), version).unwrap();
        let commit = |text: &str, subject: &str| {
            fs::write(clone.join("q.h"), text).unwrap();
            git(&clone, &["add", "."]);
            git(&clone, &["commit", "-q", "-m", subject]);
            git(&clone, &["rev-parse", "HEAD"])
        };
        let mut commits = vec![commit(&text, "The pin")];
        for (subject, from, to) in COMMITS {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
            commits.push(commit(&text, subject));
        }
        let pin = commits[0].clone();
        let listing =
            git(&clone, &["ls-tree", "-r", &pin]).replace(" blob ", " ").replace('\t', " ");
        let bump = Self { tool, commits };
        let folder = bump.folder(0);
        bump.write(&format!("{folder}/listing"), &format!("{listing}\n"));
        let tree = git(&clone, &["rev-parse", &format!("{pin}^{{tree}}")]);
        bump.write(
            "mlx-pin.toml",
            &format!(
                "# The pin.\nschema = 1\ncommit = \"{pin}\"\ntree = \"{tree}\"\nversion = \"1.0\"\n\
                 date = 2026-08-16\nupstream = \"http://127.0.0.1:9/x\"\nlisting = \"{folder}/listing\"\n"
            ),
        );
        for (name, patch) in [("fix", FIX), ("ours", OURS), ("other", OTHER)] {
            bump.write(&format!("{folder}/{name}.patch"), patch);
        }
        bump.write(&format!("{folder}/series.toml"), SERIES);
        bump
    }

    fn folder(&self, commit: usize) -> String {
        format!("patches/{}", &self.commits[commit][..8])
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.tool.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.tool.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let from = self.tool.path("clone").display().to_string();
        self.tool.run_with(&[("MLX_OVERLAY_UPSTREAM", &from)], arguments)
    }

    fn drift(&self, to: usize) -> (Option<i32>, Value) {
        let run = self.run(&["drift", "--to", &self.commits[to], "--format", "json", "--history"]);
        (run.status(), run.json())
    }

    /// A branch that starts at a commit, with one more commit on it.
    fn branch(&self, name: &str, at: usize, subject: &str, change: impl FnOnce(&Path)) {
        let clone = self.tool.path("clone");
        git(&clone, &["checkout", "-q", "-b", name, &self.commits[at]]);
        change(&clone);
        git(&clone, &["add", "--all", "."]);
        git(&clone, &["commit", "-q", "-m", subject]);
        git(&clone, &["checkout", "-q", "main"]);
    }

    /// Every file of the project and its bytes; the clone and the cache aside.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let root = self.tool.path("");
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap() {
                let path = item.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                if matches!(&*name, "clone" | ".cache" | "target" | "out-old" | "out-new") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.insert(name, fs::read(path).unwrap());
                }
            }
        }
        files
    }
}

const SERIES: &str = r#"# What we carry.
schema = 1

[[entry]]
name = "fix"
patch = "fix.patch"
group = "metal"
reason = "it is wrong"
forwarded = "no"

# This one stays.
[[entry]]
name = "ours"
patch = "ours.patch"
group = "metal"
reason = "we need it"
forwarded = "not-needed"

[[entry]]
name = "helper-copy"
derive = { file = "q.h", function = "helper", name = "helper_copy", replace = [{ from = "b", to = "c" }] }
group = "metal"
reason = "a copy"
forwarded = "not-needed"

[[entry]]
name = "other"
patch = "other.patch"
group = "docs"
reason = "a line"
forwarded = "not-needed"

[[watch]]
file = "q.h"
function = "impl"
reason = "ours repeats it"

[[cite]]
at = "q.h:8"
symbol = "impl"
reason = "the docs"

[[note]]
entry = "fix"
file = "q.h"
removes = ["return 1;"]
reason = "wrong value"

[[note]]
entry = "ours"
file = "q.h"
removes = ["x = x * 2;"]
reason = "explained"
"#;

fn class(json: &Value, entry: usize) -> &str {
    json["entries"][entry]["hunks"][0]["class"].as_str().expect("a class")
}

fn drift_moves() {
    let bump = Bump::new();
    let (status, json) = bump.drift(1);
    assert_eq!((status, &json["schema"]), (Some(0), &"mlx-overlay/drift".into()));
    assert_eq!((class(&json, 0), class(&json, 1), class(&json, 3)), ("moved", "moved", "exact"));
    assert_eq!(json["entries"][0]["hunks"][0]["line"], 17);
    assert_eq!(json["commits"], 1);
    assert_eq!(json["findings"], serde_json::json!([]));
    let cite = json["contracts"].as_array().unwrap().iter().find(|v| v["kind"] == "cite").unwrap();
    assert_eq!((&cite["status"], &cite["moved_to"]), (&"held".into(), &"q.h:11".into()));
}

/// Item, state, whether it needs a person, and the pull request of its cause.
fn findings(json: &Value) -> Vec<(String, String, bool, Option<u64>)> {
    let finding = |f: &Value| {
        let name = f["name"].as_str().or(f["entry"].as_str()).unwrap().to_owned();
        let state = f["state"].as_str().unwrap().to_owned();
        (name, state, f["needs_person"].as_bool().unwrap(), f["cause"]["pull"].as_u64())
    };
    json["findings"].as_array().unwrap().iter().map(finding).collect()
}

fn drift_causes() {
    let bump = Bump::new();
    let before = bump.files();
    let (status, json) = bump.drift(4);
    assert_eq!((status, &json["holds"]), (Some(1), &false.into()));
    let found =
        |name: &str, state: &str, person, pull| (name.into(), state.into(), person, Some(pull));
    assert_eq!(
        findings(&json),
        [
            found("fix", "landed", false, 13),
            found("ours", "conflict", true, 14),
            found("impl", "changed", true, 12),
        ]
    );
    let cause = &json["findings"][1]["cause"];
    assert_eq!(
        (&cause["commit"], &cause["subject"]),
        (&bump.commits[4].clone().into(), &COMMITS[3].0.into())
    );
    let conflict = &json["entries"][1]["hunks"][0]["conflict"];
    assert!(conflict["found"].as_array().unwrap().contains(&"  x = x * 3;".into()), "{conflict:#}");
    assert_eq!(bump.files(), before, "drift writes nothing");
}

fn drift_history() {
    let bump = Bump::new();
    let (_, json) = bump.drift(4);
    let steps: Vec<(u64, Vec<String>)> = json["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            let changes = step["changes"].as_array().unwrap().iter().map(|c| {
                let name = c["name"].as_str().or(c["entry"].as_str()).unwrap();
                format!("{name}: {} to {}", c["from"].as_str().unwrap(), c["to"].as_str().unwrap())
            });
            (step["commit"]["pull"].as_u64().unwrap(), changes.collect())
        })
        .collect();
    let moved = |n: &str| format!("{n}: exact to moved");
    assert_eq!(
        steps,
        [
            (11, vec![moved("fix"), moved("ours"), moved("helper-copy")]),
            (12, vec!["impl: held to changed".into()]),
            (13, vec!["fix: moved to landed".into()]),
            (14, vec!["ours: moved to conflict".into()]),
        ]
    );
}

fn drift_text() {
    let bump = Bump::new();
    let run = bump.run(&["drift", "--to", "main", "--diff"]);
    run.assert_status(1);
    let text = run.stdout();
    for line in [
        "4 upstream commits, 4 of them touching what the series rests on",
        "Needs a person:",
        "conflict     ours, hunk 1",
        "Rework last (#14)",
        "changed      watch impl  q.h:11",
        "its tokens changed: `; i ++ ) { sum += i` became `; i += 2 ) { sum +=`",
        "+  for (int i = 0; i < n; i += 2) {",
        "Worth a look:",
        "landed       fix, hunk 1",
        "q.h:8 → q.h:11",
    ] {
        assert!(text.contains(line), "{line}\n{}", run.shown());
    }
    let run = bump.run(&["drift", "--to", "main", "--format", "markdown", "--history"]);
    run.assert_status(1);
    assert!(run.stdout().contains("| **conflict** | ours, hunk 1"), "{}", run.shown());
    assert!(run.stdout().contains("| Commit | Date | Subject | Changes |"), "{}", run.shown());
}

fn drift_fetched() {
    let bump = Bump::new();
    let alone = |arguments: &[&str]| bump.tool.run(arguments);
    // Nobody listens where the pin says that upstream is.
    for offline in [&[][..], &["--offline"]] {
        let run = alone(&[&["drift", "--to", "main"], offline].concat());
        run.assert_status(4);
        assert!(run.stderr().contains("--from DIR"), "{}", run.shown());
        assert!(run.stderr().contains("crate:NAME@VERSION:folder"), "{}", run.shown());
    }
    let clone = bump.tool.path("clone");
    let url = format!("{}/.git", Server::start(&clone, Fault::None).url);
    let pin = bump.read("mlx-pin.toml").replace("http://127.0.0.1:9/x", &url);
    bump.write("mlx-pin.toml", &pin);
    let commits = |arguments: &[&str]| {
        let run = alone(&[arguments, &["--format", "json", "--history"]].concat());
        let at = run.json()["target"]["commit"].as_str().map(str::to_owned);
        (at.unwrap_or_else(|| panic!("{}", run.shown())), run.json())
    };
    let (at, report) = commits(&["drift", "--to", "main"]);
    assert_eq!(at, bump.commits[4]);
    assert_eq!(report["findings"], bump.drift(4).1["findings"]);
    git(&clone, &["commit", "-q", "--allow-empty", "-m", "Later (#15)"]);
    // What was fetched serves without the network; with it a branch is new.
    assert_eq!(commits(&["drift", "--to", "main", "--offline"]).0, bump.commits[4]);
    assert_eq!(commits(&["drift", "--to", "main"]).0, git(&clone, &["rev-parse", "HEAD"]));
    fs::rename(clone.join(".git"), clone.join("gone")).unwrap();
    alone(&["rebase", "--to", &bump.commits[1]]).assert_status(0);
    let applied = alone(&["apply", "--format", "json", "--offline"]);
    applied.assert_status(0);
    assert_eq!(applied.json()["source"]["kind"], "object-cache", "{}", applied.shown());
}

fn drift_unknown() {
    let bump = Bump::new();
    bump.run(&["drift", "--to", "v9"]).assert_status(2);
    let run = bump.tool.run(["drift", "--to", "v9"]);
    run.assert_status(4);
}

fn rebase_clean() {
    let bump = Bump::new();
    let before = bump.files();
    let run = bump.run(&["rebase", "--to", &bump.commits[1]]);
    run.assert_status(0);
    assert!(run.stdout().contains("q.h:8 is q.h:11 now"), "{}", run.shown());
    let (old, new) = (bump.folder(0), bump.folder(1));
    let after = bump.files();
    for (name, bytes) in before.iter().filter(|(n, _)| n.starts_with(&old)) {
        assert_eq!(after.get(name), Some(bytes), "{name} of the old pin");
    }
    let series = bump.read(&format!("{new}/series.toml"));
    assert_eq!(series, SERIES.replace("q.h:8", "q.h:11"), "the rest of the series is as it was");
    assert_eq!(bump.read(&format!("{new}/other.patch")), OTHER, "what did not move is the same");
    assert_eq!(
        bump.read(&format!("{new}/fix.patch")),
        FIX.replace("@@ -14,7 +14,7 @@", "@@ -17,7 +17,7 @@"),
        "what moved has a new place and is the same else"
    );
    let pin = bump.read("mlx-pin.toml");
    assert!(pin.starts_with("# The pin.\n") && pin.contains("version = \"1.2.3\""), "{pin}");
    let (status, json) = bump.drift(1);
    assert_eq!(status, Some(0), "{json:#}");
    for entry in [0, 1, 3] {
        assert_eq!(class(&json, entry), "exact");
    }
    let old_pin = &bump.commits[0][..8];
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    bump.run(&["apply", "--pin", old_pin, "--out", "out-old"]).assert_status(0);
    assert!(bump.read("out-new/q.h").contains("int helper_copy(int a) {\n  int c = a + 1;"));
    assert!(bump.read("out-old/q.h").contains("x = x - 1;"));
    // And on from there.
    bump.run(&["drift", "--to", "main"]).assert_status(1);
}

fn rebase_dry_run() {
    let bump = Bump::new();
    let before = bump.files();
    bump.run(&["rebase", "--dry-run", "--to", &bump.commits[1]]).assert_status(0);
    let run = bump.run(&["rebase", "--dry-run", "--to", "main"]);
    run.assert_status(1);
    assert!(run.stdout().contains("landed     fix  with "), "{}", run.shown());
    assert!(run.stdout().contains("Mend fixed (#13)"), "{}", run.shown());
    assert_eq!(bump.files(), before);
}

const ACCEPT: &str = "watch impl=ours sums the same";

fn rebase_contract() {
    let bump = Bump::new();
    let before = bump.files();
    let run = bump.run(&["rebase", "--to", &bump.commits[2]]);
    run.assert_status(1);
    assert!(run.stdout().contains("--accept 'watch impl="), "{}", run.shown());
    let mut now = bump.files();
    now.retain(|name, _| !name.starts_with(".overlay-rebase"));
    assert_eq!(now, before, "lines merge, the contract stops it");
    bump.run(&["rebase", "--continue"]).assert_status(1);
    bump.run(&["rebase", "--continue", "--accept", ACCEPT]).assert_status(0);
    let (status, _) = bump.drift(2);
    assert_eq!(status, Some(0), "what was accepted is what the new pin watches");
    assert!(!bump.tool.path(".overlay-rebase").exists());
}

/// Up to the conflict in `ours`.
fn stopped() -> Bump {
    stop(Bump::new())
}

fn stop(bump: Bump) -> Bump {
    let run = bump.run(&["rebase", "--to", "main", "--accept", ACCEPT]);
    run.assert_status(1);
    assert!(run.stdout().contains("landed     fix  with "), "{}", run.shown());
    assert!(run.stdout().contains("overlay rebase --skip ours"), "{}", run.shown());
    bump
}

const WORK: &str = ".overlay-rebase/work/q.h";

fn rebase_conflict() {
    let bump = stopped();
    let work = bump.read(WORK);
    let short = |i: usize| bump.commits[i][..8].to_owned();
    let marked = format!(
        "  x = x + 1;\n<<<<<<< upstream {}\n  x = x * 3;\n||||||| pin {}\n  x = x * 2;\n=======\n  \
         x = x * 2; // ours\n  x = x - 1;\n>>>>>>> ours\n  return x;\n",
        short(4),
        short(0)
    );
    assert!(work.contains(&marked), "{work}");
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(2);
    assert!(run.stderr().contains("a conflict marker is left"), "{}", run.shown());
    let run = bump.run(&["rebase"]);
    run.assert_status(1);
    assert!(run.stdout().contains("It stopped at `ours`."), "{}", run.shown());
    bump.run(&["rebase", "--to", "main"]).assert_status(2);
    let run = bump.run(&["status"]);
    assert!(run.stderr().contains("is under way and stopped at `ours`"), "{}", run.shown());
    let resolved = "  x = x + 1;\n  x = x * 3; // ours\n  x = x - 1;\n  return x;\n";
    bump.write(WORK, &work.replace(&marked, resolved));
    // The resolution takes a line away that no note declares.
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stdout().contains("removed line(s) that no note declares"), "{}", run.shown());
    let note = "note ours: q.h=upstream's factor, with our comment";
    bump.run(&["rebase", "--continue", "--accept", note]).assert_status(0);
    let new = bump.folder(4);
    let patch = bump.read(&format!("{new}/ours.patch"));
    assert!(patch.starts_with("Subject: triple\n"), "{patch}");
    assert!(patch.contains("-  x = x * 3;\n+  x = x * 3; // ours\n+  x = x - 1;\n"), "{patch}");
    assert!(!bump.tool.path(format!("{new}/fix.patch")).exists(), "what landed is dropped");
    let series = bump.read(&format!("{new}/series.toml"));
    assert!(!series.contains("\"fix\"") && series.contains("# This one stays."), "{series}");
    assert!(series.contains("removes = [\"x = x * 3;\"]"), "{series}");
    assert_eq!(bump.drift(4).0, Some(0));
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    assert!(bump.read("out-new/q.h").contains(resolved));
}

fn rebase_skip() {
    let bump = stopped();
    bump.run(&["rebase", "--skip", "other"]).assert_status(2);
    bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
    let series = bump.read(&format!("{}/series.toml", bump.folder(4)));
    assert!(!series.contains("\"ours\"") && series.contains("\"other\""), "{series}");
    assert_eq!(bump.drift(4).0, Some(0));
}

fn rebase_abort() {
    let bump = Bump::new();
    let before = bump.files();
    let bump = stop(bump);
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert_eq!(bump.files(), before, "nothing is left of it");
    bump.run(&["rebase", "--abort"]).assert_status(2);
    bump.run(&["drift", "--to", &bump.commits[1]]).assert_status(0);
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
    bump.write(&format!("{}/half.patch", bump.folder(4)), "x");
    bump.write(&format!("{}.toml", bump.folder(0)), &bump.read("mlx-pin.toml"));
    (bump, before)
}

fn rebase_half_written() {
    let (bump, before) = half_written();
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert_eq!(bump.files(), before);
    let (bump, _) = half_written();
    bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
    assert!(!bump.tool.path(format!("{}/half.patch", bump.folder(4))).exists());
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

fn rebase_edited() {
    let bump = stopped();
    let series = format!("{}/series.toml", bump.folder(0));
    bump.write(&series, &SERIES.replace("we need it", "we do not"));
    let run = bump.run(&["rebase", "--skip", "ours"]);
    run.assert_status(3);
    assert!(run.stderr().contains("the series was changed since"), "{}", run.shown());
    bump.write(&series, SERIES);
    bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
}

/// A project whose pin is the last commit, moved there by a rebase.
fn at_the_end() -> Bump {
    let bump = stopped();
    bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
    bump
}

fn drift_older() {
    let bump = at_the_end();
    let (status, json) = bump.drift(1);
    assert_eq!(status, Some(1), "{json:#}");
    assert_eq!((&json["commits"], &json["undone"]), (&3.into(), &3.into()));
    assert_eq!(findings(&json), [("impl".into(), "changed".into(), true, Some(12))]);
    assert_eq!(json["findings"][0]["cause"]["undone"], true);
    let run = bump.run(&["drift", "--to", &bump.commits[1]]);
    assert!(run.stdout().contains("3 upstream commits, all of which the target does not have"));
    assert!(run.stdout().contains("without ") && run.stdout().contains("Split the sum (#12)"));
}

fn drift_branch() {
    let bump = at_the_end();
    bump.branch("side", 1, "Say something else (#20)", |clone| {
        fs::write(clone.join("other.txt"), "zero\none\ntwo\n").unwrap();
    });
    let run = bump.run(&["drift", "--to", "side", "--format", "json", "--history"]);
    let json = run.json();
    assert_eq!((&json["commits"], &json["undone"]), (&4.into(), &3.into()));
    assert_eq!(findings(&json), [("impl".into(), "changed".into(), true, Some(12))]);
}

const RULE: &str = ".overlay-rebase/work/helper-copy.rule.toml";

fn rebase_rule() {
    let bump = Bump::new();
    bump.branch("side", 0, "Take the name (#21)", |clone| {
        let text = format!("{Q}\nint helper_copy() {{\n  return 0;\n}}\n");
        fs::write(clone.join("q.h"), text).unwrap();
    });
    let run = bump.run(&["rebase", "--to", "side"]);
    run.assert_status(1);
    assert!(run.stdout().contains("already defines `helper_copy`"), "{}", run.shown());
    bump.run(&["rebase", "--continue"]).assert_status(2);
    let rule = bump.read(RULE);
    assert!(rule.starts_with("# `q.h` line 27 already defines `helper_copy`\n"), "{rule}");
    bump.write(RULE, "name = 3\n");
    bump.run(&["rebase", "--continue"]).assert_status(3);
    bump.write(RULE, &rule.replace("\"helper\"", "\"nothing\""));
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(bump.read(RULE).contains("nothing"), "a rule that does not fit is asked for again");
    bump.write(RULE, &rule.replace("\"helper_copy\"", "\"helper_twin\""));
    bump.run(&["rebase", "--continue"]).assert_status(0);
    let pin = bump.read("mlx-pin.toml");
    let pin = pin.lines().find_map(|l| l.strip_prefix("commit = \"")).unwrap();
    let series = bump.read(&format!("patches/{}/series.toml", &pin[..8]));
    assert!(series.contains("name = \"helper_twin\""), "{series}");
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    assert!(bump.read("out-new/q.h").contains("int helper_twin(int a) {\n  int c = a + 1;"));
}

fn rebase_renamed() {
    let bump = Bump::new();
    bump.branch("side", 0, "Rename it (#22)", |clone| {
        fs::rename(clone.join("q.h"), clone.join("r.h")).unwrap();
    });
    let run = bump.run(&["drift", "--to", "side"]);
    run.assert_status(0);
    assert!(run.stdout().contains("file-moved   helper-copy (derived)"), "{}", run.shown());
    bump.run(&["rebase", "--to", "side"]).assert_status(0);
    let run = bump.run(&["drift", "--to", "side"]);
    run.assert_status(0);
    assert!(!run.stdout().contains("moved"), "{}", run.shown());
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    let text = bump.read("out-new/r.h");
    assert!(text.contains("int helper_copy(int a) {") && text.contains("// ours"), "{text}");
}

fn rebase_abort_moved() {
    let bump = Bump::new();
    let before = bump.files();
    bump.run(&["rebase", "--to", &bump.commits[1]]).assert_status(0);
    // As a kill right after the pin moved leaves it.
    let (from, to) = (&bump.commits[0], &bump.commits[1]);
    let upstream = bump.tool.path("clone").display().to_string();
    let state = serde_json::json!({
        "schema": 1, "from": from, "to": to, "name": "x", "upstream": upstream, "series": "",
        "decisions": { "entries": {}, "accepted": {} }, "stopped": null, "publishing": true,
    });
    bump.write(".overlay-rebase/state.json", &state.to_string());
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert_eq!(bump.files(), before);
}

fn rebase_taken_folder() {
    let bump = Bump::new();
    let mine = format!("{}/mine.txt", bump.folder(1));
    bump.write(&mine, "mine");
    let before = bump.files();
    let run = bump.run(&["rebase", "--to", &bump.commits[1]]);
    run.assert_status(3);
    assert!(run.stderr().contains("it is there already"), "{}", run.shown());
    assert_eq!(bump.files(), before);
    // Put there while the rebase was under way.
    let bump = stopped();
    let mine = format!("{}/mine.txt", bump.folder(4));
    bump.write(&mine, "mine");
    bump.run(&["rebase", "--skip", "ours"]).assert_status(3);
    bump.run(&["rebase", "--continue"]).assert_status(3);
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert_eq!(bump.read(&mine), "mine");
}

/// Starts the tool and kills it after so many microseconds.
fn kill_after(bump: &Bump, arguments: &[&str], wait: u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_overlay"))
        .args(arguments)
        .current_dir(bump.tool.path(""))
        .env("MLX_OVERLAY_UPSTREAM", bump.tool.path("clone"))
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
                let standing = bump.run(&["rebase"]);
                standing.assert_status(1);
                // A decision that was on the disk is not asked for again.
                let again = match step {
                    "--skip" if standing.stdout().contains("left out ours") => {
                        &["rebase", "--continue"]
                    }
                    _ => arguments,
                };
                bump.run(again).assert_status(0);
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
