//! Where `overlay rebase` stops, and the files that a person finishes.

use std::fs;

use crate::bump::{ACCEPT, Bump, Q, SERIES, stopped};

/// Adds the tests.
pub fn add(test: &mut impl FnMut(&str, fn())) {
    test("rebase/a-contract-stops-it-until-accepted", rebase_contract);
    test("rebase/a-conflict-is-finished-by-hand", rebase_conflict);
    test("rebase/a-work-file-that-is-gone-settles-nothing", rebase_deleted_work);
    test("rebase/a-work-folder-that-is-gone-settles-nothing", rebase_no_work);
    test("rebase/other-files-in-the-work-folder-are-not-lost", rebase_unlisted);
    test("rebase/a-file-taken-whole-must-be-decided", rebase_untouched_work);
    test("rebase/a-taken-name-is-mended-in-the-rule", rebase_rule);
    test("rebase/a-conflict-in-a-renamed-file-is-finished-there", rebase_renamed_conflict);
    test("rebase/a-rule-for-another-original-is-looked-at", rebase_rule_changed);
}

fn rebase_contract() {
    let bump = Bump::new();
    let before = bump.files();
    let run = bump.run(&["rebase", "--to", &bump.commits[2], "--format", "json"]);
    run.assert_status(1);
    assert_eq!(run.json()["work"], serde_json::Value::Null, "there is nothing to edit");
    bump.run(&["rebase", "--abort"]).assert_status(0);
    let run = bump.run(&["rebase", "--to", &bump.commits[2]]);
    run.assert_status(1);
    for line in ["kept. Next:\n", "--accept 'watch impl="] {
        assert!(run.stdout().contains(line), "{}", run.shown());
    }
    let mut now = bump.files();
    now.retain(|name, _| !name.starts_with(".overlay-rebase"));
    assert_eq!(now, before, "lines merge, the contract stops it");
    let again = bump.run(&["rebase"]);
    again.assert_status(1);
    assert!(
        again.stdout().contains("rebase --continue --accept 'watch impl=why the series"),
        "{}",
        again.shown()
    );
    let status = bump.run(&["status", "--format", "json"]).json();
    assert_eq!(status["rebase"]["contracts"], serde_json::json!(["watch impl"]));
    assert!(bump.run(&["status"]).stderr().contains("do not hold (watch impl)"));
    bump.run(&["rebase", "--continue"]).assert_status(1);
    let more = ["--accept", "cite q.h:8=it moves"];
    let run = bump.run(&[&["rebase", "--continue", "--accept", ACCEPT][..], &more].concat());
    run.assert_status(0);
    assert!(run.stderr().contains("--accept 'cite q.h:8=…' settles nothing"), "{}", run.shown());
    assert!(!run.stderr().contains("watch impl"), "{}", run.shown());
    let (status, _) = bump.drift(2);
    assert_eq!(status, Some(0), "what was accepted is what the new pin watches");
    assert!(!bump.tool.path(".overlay-rebase").exists());
}

pub(in crate::bump) const WORK: &str = ".overlay-rebase/work/q.h";

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
    run.assert_status(1);
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

/// As a kill leaves it between the stop and its files, or a person.
fn rebase_no_work() {
    let bump = stopped();
    let marked = bump.read(WORK);
    fs::remove_dir_all(bump.tool.path(".overlay-rebase/work")).unwrap();
    let run = bump.run(&["rebase"]);
    assert!(run.stdout().contains("--continue, which writes the files"), "{}", run.shown());
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stderr().contains("its files are written again"), "{}", run.shown());
    assert_eq!(bump.read(WORK), marked);
    // That the file to delete is missing is no answer either.
    let bump = Bump::new();
    let gone = "--- a/other.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n";
    bump.write(&format!("{}/other.patch", bump.folder(0)), gone);
    let note = "\n[[note]]\nentry = \"other\"\nfile = \"other.txt\"\nremoves = [\"one\", \"two\"]\n\
                reason = \"r\"\n";
    bump.write(&format!("{}/series.toml", bump.folder(0)), &format!("{SERIES}{note}"));
    bump.branch("side", 0, "Say two otherwise (#71)", |clone| {
        fs::write(clone.join("other.txt"), "one\n2\n").unwrap();
    });
    bump.run(&["rebase", "--to", "side"]).assert_status(1);
    fs::remove_dir_all(bump.tool.path(".overlay-rebase/work")).unwrap();
    bump.run(&["rebase", "--continue"]).assert_status(1);
    let work = ".overlay-rebase/work/other.txt";
    assert!(bump.read(work).contains("<<<<<<< upstream"), "{}", bump.read(work));
    // Files that no stop put there are not taken for rubbish.
    let bump = stopped();
    let state = bump.read(".overlay-rebase/state.json");
    let open = state.replace("\"stopped\": \"ours\"", "\"stopped\": null");
    assert_ne!(open, state);
    bump.write(".overlay-rebase/state.json", &open);
    bump.write(WORK, "mine\n");
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(3);
    assert!(run.stderr().contains("the rebase did not put it there"), "{}", run.shown());
    assert_eq!(bump.read(WORK), "mine\n");
    fs::remove_file(bump.tool.path(WORK)).unwrap();
    bump.run(&["rebase", "--continue"]).assert_status(1);
    assert!(bump.read(WORK).contains("<<<<<<< upstream"));
}

fn rebase_deleted_work() {
    let bump = stopped();
    let work = bump.read(WORK);
    fs::remove_file(bump.tool.path(WORK)).unwrap();
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(
        run.stderr().contains("the file was not there, which settles nothing"),
        "{}",
        run.shown()
    );
    assert_eq!(bump.read(WORK), work, "it is there again");
    // The whole folder.
    fs::remove_dir_all(bump.tool.path(".overlay-rebase/work")).unwrap();
    bump.run(&["rebase", "--continue"]).assert_status(1);
    assert_eq!(bump.read(WORK), work);
    bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
}

/// What is not the entry's is neither taken over nor removed.
fn rebase_unlisted() {
    let bump = stopped();
    let resolve = |bump: &Bump| {
        let text = bump.read(WORK);
        let (head, rest) = text.split_once("<<<<<<<").unwrap();
        let (_, tail) = rest.split_once(">>>>>>> ours\n").unwrap();
        bump.write(WORK, &format!("{head}  x = x * 3;\n  x = x - 1;\n{tail}"));
    };
    let mine = ".overlay-rebase/work/sub/other.txt";
    resolve(&bump);
    bump.write(mine, "mine\n");
    let before = bump.files();
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stderr().contains("work/sub/other.txt; with the work folder"), "{}", run.shown());
    assert!(run.stderr().contains("move it away"), "{}", run.shown());
    let mut after = bump.files();
    after.insert(".overlay-rebase/lock".into(), before[".overlay-rebase/lock"].clone());
    assert_eq!(after, before);
    fs::remove_file(bump.tool.path(mine)).unwrap();
    bump.run(&["rebase", "--continue"]).assert_status(0);
    // Nor where it stopped at contracts or at a rule.
    let bump = Bump::new();
    bump.run(&["rebase", "--to", &bump.commits[2]]).assert_status(1);
    bump.write(mine, "mine\n");
    let go_on = ["rebase", "--continue", "--accept", ACCEPT];
    bump.run(&go_on).assert_status(1);
    assert_eq!(bump.read(mine), "mine\n");
    fs::remove_file(bump.tool.path(mine)).unwrap();
    bump.run(&go_on).assert_status(0);
}

/// Upstream has a file of its own where an entry makes one: nothing tells which
/// is meant, and `--continue` alone is no answer.
fn rebase_untouched_work() {
    let bump = Bump::new();
    let made = "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+ours\n";
    bump.write(&format!("{}/other.patch", bump.folder(0)), made);
    bump.branch("takes", 0, "Take the name (#15)", |clone| {
        fs::write(clone.join("made.txt"), "theirs\n").unwrap();
    });
    let run = bump.run(&["rebase", "--to", "takes"]);
    run.assert_status(1);
    let work = ".overlay-rebase/work/made.txt";
    let marked = bump.read(work);
    assert!(marked.contains("\ntheirs\n||||||| pin "), "{marked}");
    assert!(marked.contains("=======\nours\n>>>>>>> other\n"), "{marked}");
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stderr().contains("a conflict marker is left"), "{}", run.shown());
    // Bytes that are no UTF-8 come out as they went in.
    fs::write(bump.tool.path(work), b"theirs\ncaf\xe9 \xff\n").unwrap();
    let note = "note other: made.txt=nothing of upstream's goes";
    let run = bump.run(&["rebase", "--continue"]);
    assert!(matches!(run.status(), Some(0 | 1)), "{} {note}", run.shown());
    let patch = fs::read(bump.tool.path(format!("{}/other.patch", bump.series().0))).unwrap();
    let needle = b"+caf\xe9 \xff\n";
    assert!(
        patch.windows(needle.len()).any(|w| w == needle),
        "{}",
        String::from_utf8_lossy(&patch)
    );
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
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stderr().contains("the rule is as it was"), "{}", run.shown());
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

fn rebase_renamed_conflict() {
    let bump = Bump::new();
    bump.branch("side", 0, "Rename and triple it (#23)", |clone| {
        let text = fs::read_to_string(clone.join("q.h")).unwrap();
        fs::remove_file(clone.join("q.h")).unwrap();
        fs::write(clone.join("r.h"), text.replace("x = x * 2;", "x = x * 3;")).unwrap();
    });
    bump.run(&["rebase", "--to", "side"]).assert_status(1);
    let work = ".overlay-rebase/work/r.h";
    let marked = bump.read(work);
    let begin = marked.find("<<<<<<<").expect("a conflict");
    let end = marked.find(">>>>>>> ours\n").expect("its end") + ">>>>>>> ours\n".len();
    bump.write(work, &format!("{}  x = x * 3; // ours\n{}", &marked[..begin], &marked[end..]));
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    // What it says to run can be run.
    let accept = "note ours: r.h";
    assert!(run.stdout().contains(&format!("--accept '{accept}=")), "{}", run.shown());
    bump.run(&["rebase", "--continue", "--accept", &format!("{accept}=ok")]).assert_status(0);
    assert_eq!(bump.run(&["drift", "--to", "side"]).status(), Some(0));
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    assert!(bump.read("out-new/r.h").contains("x = x * 3; // ours"));
}

fn rebase_rule_changed() {
    let bump = Bump::new();
    bump.branch("side", 0, "Name it otherwise and change it (#24)", |clone| {
        let text = fs::read_to_string(clone.join("q.h")).unwrap();
        let text =
            text.replace("int helper(", "int helper2(").replace("int b = a + 1;", "int b = a - 1;");
        fs::write(clone.join("q.h"), text).unwrap();
    });
    bump.run(&["rebase", "--to", "side"]).assert_status(1);
    let work = ".overlay-rebase/work/helper-copy.rule.toml";
    let rule = bump.read(work).replace("function = \"helper\"", "function = \"helper2\"");
    bump.write(work, &rule);
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(
        run.stdout().contains("changed      derive helper_copy from helper"),
        "{}",
        run.shown()
    );
    let accept = "derive helper_copy from helper=looked at";
    bump.run(&["rebase", "--continue", "--accept", accept]).assert_status(0);
    assert_eq!(bump.run(&["drift", "--to", "side"]).status(), Some(0));
}
