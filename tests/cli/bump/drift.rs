//! `overlay drift`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use overlay_tests_support::server::{Fault, Server};
use serde_json::Value;

use super::{ACCEPT, Bump, COMMITS, OTHER, OURS, Q, SERIES, at_the_end, class};
use crate::project::git;

/// Adds the tests.
pub fn add(test: &mut impl FnMut(&str, fn())) {
    test("drift/what-moves-holds", drift_moves);
    test("drift/each-finding-has-its-first-commit", drift_causes);
    test("drift/history-says-when", drift_history);
    test("drift/a-report-for-people", drift_text);
    test("drift/without-a-clone-the-history-is-fetched", drift_fetched);
    test("drift/an-unknown-target-is-a-usage-error", drift_unknown);
    test("drift/an-older-target-has-causes-too", drift_older);
    test("drift/a-function-of-another-name-is-not-its-own", drift_other_function);
    test("drift/a-change-in-the-function-is-changed-nearby", drift_nearby);
    test("drift/a-renamed-file-has-later-causes", drift_after_rename);
    test("drift/what-follows-from-an-earlier-entry-says-so", drift_cascade);
    test("drift/a-branch-is-not-blamed-for-what-it-lacks", drift_branch);
    test("drift/a-newline-that-went-is-no-other-line-end", drift_newline);
    test("drift/hunks-have-one-number", drift_numbers);
    test("drift/digits-of-several-commits-are-ambiguous", drift_ambiguous);
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
    let cache = fs::read_dir(bump.tool.path(".cache/git")).unwrap();
    let mut kept = cache.map(|item| item.unwrap().path());
    let mirror = kept.find(|path| path.join("refs/heads/main").exists()).unwrap();
    fs::write(mirror.join("refs/heads/main"), "").unwrap();
    let damaged = alone(&["drift", "--to", "main", "--offline"]);
    damaged.assert_status(5);
    assert!(damaged.stderr().contains(".history.git`: it is fetched again"), "{}", damaged.shown());
    let mended = alone(&["drift", "--to", "main"]);
    assert!(mended.stderr().contains("in the cache was damaged"), "{}", mended.shown());
    assert!(alone(&["drift", "--to", "main", "--offline"]).stderr().is_empty());
    fs::rename(clone.join(".git"), clone.join("gone")).unwrap();
    alone(&["rebase", "--to", &bump.commits[1]]).assert_status(0);
    let applied = alone(&["apply", "--format", "json", "--offline"]);
    applied.assert_status(0);
    assert_eq!(applied.json()["source"]["kind"], "object-cache", "{}", applied.shown());
}

fn drift_unknown() {
    let bump = Bump::new();
    for target in ["v9", "", " ", "~1", "^", "-"] {
        for command in ["drift", "rebase"] {
            let run = bump.run(&[command, &format!("--to={target}")]);
            run.assert_status(2);
            let told = format!("`{target}` is no commit, tag or branch here");
            assert!(run.stderr().contains(&told), "{}", run.shown());
        }
    }
    for (target, why) in [
        ("@{-2}", "only the clone's own records tell"),
        ("main@{u}", "only the clone's own records tell"),
        ("main~999999", "the history here goes back no further than "),
        ("main^2", " has no parent 2"),
        (":/nowhere", "nothing here answers to it"),
        ("main^{none}", "git knows no such form of a name"),
        ("HEAD:q.h", "it is no commit"),
    ] {
        let run = bump.run(&["drift", "--to", target]);
        run.assert_status(2);
        for words in [why, "name it by its id, a tag or a branch: `git -C ", "clone"] {
            assert!(run.stderr().contains(words), "{words}: {}", run.shown());
        }
        assert!(!run.stderr().contains("code="), "{}", run.shown());
    }
    let run = bump.tool.run(["drift", "--to", "v9"]);
    run.assert_status(4);
}

/// Replaces text of a file; it must be there.
fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from}\n{text}");
    fs::write(file, text.replacen(from, to, 1)).unwrap();
}

fn drift_other_function() {
    let bump = Bump::new();
    bump.branch("side", 0, "Rename last (#30)", |clone| {
        edit(&clone.join("q.h"), "int last(", "int final(");
    });
    let run = bump.run(&["drift", "--to", "side"]);
    run.assert_status(1);
    for line in [
        "conflict     ours, hunk 1",
        "its function `last` is gone: upstream took it away or gave it another name; its lines \
         stand in `final`",
        "Rename last (#30)",
    ] {
        assert!(run.stdout().contains(line), "{line}\n{}", run.shown());
    }
    // Gone, and its lines with it.
    bump.branch("gone", 0, "Drop last (#31)", |clone| {
        let text = fs::read_to_string(clone.join("q.h")).unwrap();
        fs::write(clone.join("q.h"), text.split("int last").next().unwrap()).unwrap();
    });
    let run = bump.run(&["drift", "--to", "gone"]);
    run.assert_status(1);
    assert!(run.stdout().contains("its function `last` is gone"), "{}", run.shown());
}

fn drift_nearby() {
    let far = (1..7).map(|i| format!("  y = {i};\n")).collect::<String>();
    let long = Bump::of(&format!("{Q}\nint far(int y) {{\n{far}  return y;\n}}\n"));
    let hunk = "@@ -26,6 +27,7 @@ int last(int x) {\n int far(int y) {\n   y = 1;\n   y = 2;\n\
                +  y = 0;\n   y = 3;\n   y = 4;\n   y = 5;\n";
    long.write(&format!("{}/ours.patch", long.folder(0)), &format!("{OURS}{hunk}"));
    // Further out than the context, and in the same function.
    long.branch("side", 0, "Return more (#33)", |clone| {
        edit(&clone.join("q.h"), "  return y;\n", "  return y + 1;\n");
    });
    let run = long.run(&["drift", "--to", "side", "--diff"]);
    run.assert_status(0);
    let shown =
        ["Placed, and changed nearby:", "ours, hunk 2  q.h:", "-  return y;", "+  return y + 1;"];
    for line in shown {
        assert!(run.stdout().contains(line), "{line}\n{}", run.shown());
    }
    let run = long.run(&["drift", "--to", "side", "--format", "markdown"]);
    let line = "- ours, hunk 2: placed, and changed nearby, `q.h:";
    assert!(run.stdout().contains(line), "{}", run.shown());
    let run = long.run(&["drift", "--to", "side", "--format", "json"]);
    let hunk = &run.json()["entries"][1]["hunks"][1];
    assert_eq!(hunk["class"], "exact", "its place and its lines are the same");
    let diff = hunk["nearby"]["diff"].as_array().unwrap();
    assert!(diff.contains(&"+  return y + 1;".into()), "{hunk}");
    let run = long.run(&["rebase", "--to", "side"]);
    run.assert_status(0);
    for line in shown {
        assert!(run.stdout().contains(line), "{line}\n{}", run.shown());
    }
}

fn drift_after_rename() {
    let bump = Bump::new();
    bump.branch("side", 0, "Rename it (#22)", |clone| {
        fs::rename(clone.join("q.h"), clone.join("r.h")).unwrap();
    });
    bump.commit("side", "Rework last (#23)", |clone| {
        edit(&clone.join("r.h"), "  x = x * 2;\n", "  x = x * 3;\n");
    });
    bump.commit("side", "Rename it again (#24)", |clone| {
        fs::rename(clone.join("r.h"), clone.join("s.h")).unwrap();
    });
    bump.commit("side", "Split the sum (#25)", |clone| {
        edit(&clone.join("s.h"), "i < n; i++", "i < n; i += 2");
    });
    let run = bump.run(&["drift", "--to", "side", "--format", "json", "--history"]);
    let json = run.json();
    let of = |name: &str, state: &str| {
        let found = findings(&json).into_iter().find(|f| f.0 == name && f.1 == state);
        found.unwrap_or_else(|| panic!("{name} {state}: {}", run.shown())).3
    };
    assert_eq!(of("ours", "conflict"), Some(23));
    assert_eq!(of("impl", "changed"), Some(25));
    assert_eq!(of("fix", "file-moved"), Some(22));
    assert_eq!(json["touching"], 4);
    let steps: Vec<u64> = json["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["commit"]["pull"].as_u64().unwrap())
        .collect();
    assert_eq!(steps, [22, 23, 25], "the second rename changes no state");
    let watch = json["contracts"].as_array().unwrap().iter().find(|c| c["name"] == "impl");
    assert_eq!(watch.unwrap()["place"], "s.h:8");
}

const CASCADE: &str = "\
--- a/q.h
+++ b/q.h
@@ -21,5 +21,6 @@ int fixed() {
   x = x + 1;
   x = x * 2; // ours
+  x = x - 7;
   x = x - 1;
   return x;
 }
";

fn drift_cascade() {
    let bump = Bump::new();
    let folder = bump.folder(0);
    bump.write(&format!("{folder}/after.patch"), CASCADE);
    let next = "\n[[entry]]\nname = \"helper-copy\"";
    let entry = "\n[[entry]]\nname = \"after\"\npatch = \"after.patch\"\ngroup = \"metal\"\n\
                 reason = \"x\"\nforwarded = \"no\"\n";
    bump.write(
        &format!("{folder}/series.toml"),
        &SERIES.replacen(next, &format!("{entry}{next}"), 1),
    );
    let (status, json) = bump.drift(4);
    assert_eq!(status, Some(1));
    let finding = |name: &str| {
        let all = json["findings"].as_array().unwrap();
        all.iter().find(|f| f["entry"] == name && f["state"] == "conflict").unwrap().clone()
    };
    assert_eq!(finding("ours")["cause"]["pull"], 14);
    assert_eq!(
        (&finding("after")["follows"], &finding("after")["cause"]),
        (&"ours".into(), &Value::Null)
    );
    let run = bump.run(&["drift", "--to", "main"]);
    let told = "it leans on lines of the earlier entry `ours`, which are not there";
    assert!(run.stdout().contains(told), "{}", run.shown());
    assert_eq!(run.stdout().matches("Rework last (#14)").count(), 1, "{}", run.shown());
    let run = bump.run(&["drift", "--to", "main", "--format", "markdown"]);
    assert!(run.stdout().contains("| follows from ours |"), "{}", run.shown());
    // An entry that was left out takes those that rest on it along.
    let run = bump.run(&["rebase", "--to", "main", "--accept", ACCEPT]);
    run.assert_status(1);
    let run = bump.run(&["rebase", "--skip", "ours"]);
    run.assert_status(1);
    assert!(run.stdout().contains(told), "{}", run.shown());
}

fn drift_older() {
    let bump = at_the_end();
    let (status, json) = bump.drift(1);
    assert_eq!(status, Some(1), "{json:#}");
    assert_eq!((&json["commits"], &json["undone"]), (&3.into(), &3.into()));
    assert_eq!(findings(&json), [("impl".into(), "changed".into(), true, Some(12))]);
    assert_eq!(json["findings"][0]["cause"]["undone"], true);
    let run = bump.run(&["drift", "--to", &bump.commits[1]]);
    let told = "3 upstream commits, none of which is on the target's line of first parents";
    assert!(run.stdout().contains(told), "{}", run.shown());
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

fn drift_newline() {
    let bump = Bump::new();
    let other = |text: &'static str| move |clone: &Path| fs::write(clone.join("other.txt"), text);
    let told = [
        ("last", "one\ntwo", "conflict     other, hunk 1", "newline at the end of the file"),
        ("carriage", "one\r\ntwo\r\n", "line-endings other, hunk 1", "one side has CR LF"),
    ];
    for (branch, text, state, why) in told {
        bump.branch(branch, 0, "End lines otherwise (#35)", |clone| other(text)(clone).unwrap());
        let run = bump.run(&["drift", "--to", branch]);
        run.assert_status(1);
        assert!(run.stdout().contains(state), "{}", run.shown());
        assert!(run.stdout().contains(why), "{}", run.shown());
        assert_eq!(run.stdout().contains("CR LF"), branch == "carriage", "{}", run.shown());
    }
}

/// A hunk is named by its number in the entry, wherever it is named.
fn drift_numbers() {
    let bump = Bump::new();
    let own = OURS.split_once("--- a/q.h").unwrap().1;
    bump.write(&format!("{}/ours.patch", bump.folder(0)), &format!("{OTHER}--- a/q.h{own}"));
    let series = SERIES.replace(
        "\n[[entry]]\nname = \"other\"\npatch = \"other.patch\"\ngroup = \"docs\"\n\
                                 reason = \"a line\"\nforwarded = \"not-needed\"\n",
        "",
    );
    assert_ne!(series, SERIES);
    bump.write(&format!("{}/series.toml", bump.folder(0)), &series);
    fs::remove_file(bump.tool.path(format!("{}/other.patch", bump.folder(0)))).unwrap();
    let run = bump.run(&["drift", "--to", "main", "--all"]);
    run.assert_status(1);
    assert!(run.stdout().contains("conflict     ours, hunk 2  q.h"), "{}", run.shown());
    assert!(run.stdout().contains("exact        hunk 1 other.txt"), "{}", run.shown());
    assert!(run.stdout().contains("conflict     hunk 2 q.h"), "{}", run.shown());
    let run = bump.run(&["rebase", "--dry-run", "--to", "main", "--format", "markdown"]);
    assert!(run.stdout().contains("- **conflict** hunk 2, `q.h`"), "{}", run.shown());
}

fn drift_ambiguous() {
    let bump = Bump::new();
    let clone = bump.tool.path("clone");
    // Of some thousand commits and blobs there are always some whose ids begin alike.
    let mut stream = String::new();
    for i in 0..3000 {
        let (who, from) = (format!("A <a@example.org> {i} +0000"), &bump.commits[4]);
        let text = format!("{i:04}");
        stream += &format!("blob\ndata 4\n{text}\n");
        stream +=
            &format!("commit refs/heads/many\ncommitter {who}\ndata 4\n{text}\nfrom {from}\n\n");
    }
    let path = clone.join(".git/stream");
    fs::write(&path, stream).unwrap();
    let mut import = Command::new("git");
    import.current_dir(&clone).args(["fast-import", "--quiet"]).stdin(File::open(path).unwrap());
    assert!(import.status().unwrap().success());
    let all = git(&clone, &["cat-file", "--batch-all-objects", "--batch-check"]);
    let digits = |line: &str| line[..4].to_owned();
    let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    all.lines().for_each(|line| alike.entry(digits(line)).or_default().push(line));
    let commits = |of: &[&str]| -> Vec<String> {
        of.iter().filter(|l| l.contains(" commit ")).map(|l| l[..40].to_owned()).collect()
    };
    let (short, twins) = alike.iter().find(|(_, of)| commits(of).len() == 2).expect("two alike");
    for command in ["drift", "rebase"] {
        let run = bump.run(&[command, "--to", short]);
        run.assert_status(2);
        let told = [format!("`{short}` is ambiguous"), "give more digits: ".into()];
        for told in told.into_iter().chain(commits(twins)) {
            assert!(run.stderr().contains(&told), "{told}\n{}", run.shown());
        }
    }
    // A commit and something else that begin alike: the commit is meant.
    let one = alike.iter().find(|(_, of)| of.len() > 1 && commits(of).len() == 1);
    let (short, of) = one.expect("a commit and a blob alike");
    for short in [short.clone(), short.to_uppercase()] {
        let run = bump.run(&["drift", "--to", &short, "--format", "json"]);
        assert_eq!(run.json()["target"]["commit"], commits(of)[0], "{}", run.shown());
    }
}
