//! `overlay drift` and `overlay rebase`, on an upstream made for the test.

mod drift;
mod kill;
mod rebase;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use overlay_tests_support::{Need, Suite};
use serde_json::Value;

use crate::project::git;
use crate::tool::{Run, Tool};

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    let mut test = |name: &str, body: fn()| {
        suite.test_needing(name, [Need::program("git", "git")], body);
    };
    drift::add(&mut test);
    rebase::add(&mut test);
    kill::add(&mut test);
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
        Self::of(Q)
    }

    /// With another text of `q.h` at the pin.
    fn of(q: &str) -> Self {
        let tool = Tool::new();
        let clone = tool.path("clone");
        fs::create_dir_all(clone.join("mlx")).unwrap();
        git(&clone, &["init", "-q", "-b", "main", "."]);
        let mut text = q.to_owned();
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
        git(&self.tool.path("clone"), &["branch", "-q", name, &self.commits[at]]);
        self.commit(name, subject, change);
    }

    /// One more commit on a branch.
    fn commit(&self, name: &str, subject: &str, change: impl FnOnce(&Path)) {
        let clone = self.tool.path("clone");
        git(&clone, &["checkout", "-q", name]);
        change(&clone);
        git(&clone, &["add", "--all", "."]);
        git(&clone, &["commit", "-q", "-m", subject]);
        git(&clone, &["checkout", "-q", "main"]);
    }

    /// The commit that a name means in the clone.
    fn commit_of(&self, name: &str) -> String {
        git(&self.tool.path("clone"), &["rev-parse", name])
    }

    /// The state of a rebase from the pin to a commit, as a kill right after the pin moved
    /// leaves it.
    fn moved_state(&self, to: usize) -> String {
        let (from, to) = (&self.commits[0], &self.commits[to]);
        let upstream = self.tool.path("clone").display().to_string();
        let state = serde_json::json!({
            "schema": 1, "from": from, "to": to, "name": "x", "upstream": upstream, "series": "",
            "decisions": { "entries": {}, "accepted": {} }, "stopped": null, "publishing": true,
        });
        state.to_string()
    }

    /// The series of the pin that the project is at, with its folder.
    fn series(&self) -> (String, String) {
        let pin = self.read("mlx-pin.toml");
        let pin = pin.lines().find_map(|l| l.strip_prefix("commit = \"")).unwrap();
        let folder = format!("patches/{}", &pin[..8]);
        let series = self.read(&format!("{folder}/series.toml"));
        (folder, series)
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

const ACCEPT: &str = "watch impl=ours sums the same";

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

/// A project whose pin is the last commit, moved there by a rebase.
fn at_the_end() -> Bump {
    let bump = stopped();
    bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
    bump
}
