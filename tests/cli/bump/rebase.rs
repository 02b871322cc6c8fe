//! `overlay rebase`.

use std::fs;

use super::{ACCEPT, Bump, FIX, OTHER, Q, SERIES, class, stop, stopped};

/// Adds the tests.
pub fn add(test: &mut impl FnMut(&str, fn())) {
    test("rebase/moves-the-pin-and-keeps-the-old-one", rebase_clean);
    test("rebase/dry-run-writes-nothing", rebase_dry_run);
    test("rebase/a-contract-stops-it-until-accepted", rebase_contract);
    test("rebase/a-conflict-is-finished-by-hand", rebase_conflict);
    test("rebase/an-entry-can-be-left-out", rebase_skip);
    test("rebase/a-work-file-that-is-gone-settles-nothing", rebase_deleted_work);
    test("rebase/other-files-in-the-work-folder-are-not-lost", rebase_unlisted);
    test("rebase/a-file-taken-whole-must-be-decided", rebase_untouched_work);
    test("rebase/a-reason-is-kept-in-the-new-series", rebase_reasons);
    test("rebase/a-broken-contract-is-left-out-once-accepted", rebase_broken);
    test("rebase/a-contract-nobody-has-cannot-be-accepted", rebase_accept_checked);
    test("rebase/a-renamed-kernel-file-is-followed", rebase_renamed_kernel);
    test("rebase/markdown-for-a-pull-request", rebase_markdown);
    test("rebase/status-tells-programs-too", rebase_in_status);
    test("rebase/given-up-all-is-as-it-was", rebase_abort);
    test("rebase/a-series-edited-on-the-way-is-refused", rebase_edited);
    test("rebase/a-taken-name-is-mended-in-the-rule", rebase_rule);
    test("rebase/a-renamed-file-is-followed", rebase_renamed);
    test("rebase/a-conflict-in-a-renamed-file-is-finished-there", rebase_renamed_conflict);
    test("rebase/a-rule-for-another-original-is-looked-at", rebase_rule_changed);
    test("rebase/another-pin-than-the-project-s-is-refused", rebase_other_pin);
    test("rebase/a-moved-pin-can-still-be-given-up", rebase_abort_moved);
    test("rebase/a-folder-that-is-there-stays", rebase_taken_folder);
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
    assert!(run.stdout().contains("the pin stays: this was a dry run"), "{}", run.shown());
    assert_eq!(bump.files(), before);
}

fn rebase_contract() {
    let bump = Bump::new();
    let before = bump.files();
    let run = bump.run(&["rebase", "--to", &bump.commits[2]]);
    run.assert_status(1);
    for line in ["kept. Next:\n", "--accept 'watch impl="] {
        assert!(run.stdout().contains(line), "{}", run.shown());
    }
    let mut now = bump.files();
    now.retain(|name, _| !name.starts_with(".overlay-rebase"));
    assert_eq!(now, before, "lines merge, the contract stops it");
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

pub(super) const WORK: &str = ".overlay-rebase/work/q.h";

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

fn rebase_skip() {
    let bump = stopped();
    bump.run(&["rebase", "--skip", "other"]).assert_status(2);
    bump.run(&["rebase", "--skip", "ours"]).assert_status(0);
    let series = bump.read(&format!("{}/series.toml", bump.folder(4)));
    assert!(!series.contains("\"ours\"") && series.contains("\"other\""), "{series}");
    assert_eq!(bump.drift(4).0, Some(0));
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

fn rebase_reasons() {
    let bump = Bump::new();
    let derive = "derive helper_copy from helper=the copy may follow";
    bump.branch("side", 2, "Change helper (#40)", |clone| {
        let text = fs::read_to_string(clone.join("q.h")).unwrap();
        fs::write(clone.join("q.h"), text.replace("a + 1", "a + 2")).unwrap();
    });
    bump.run(&["rebase", "--to", "side", "--accept", ACCEPT, "--accept", derive]).assert_status(0);
    let (_, series) = bump.series();
    let commit = bump.commit_of("side");
    let given = |reason: &str| {
        format!("acknowledged = [{{ target = \"{commit}\", reason = \"{reason}\" }}]")
    };
    let watch = format!("reason = \"ours repeats it\"\n{}\n", given("ours sums the same"));
    assert!(series.contains(&watch), "{series}");
    let rule = series.lines().find(|l| l.starts_with("derive = ")).unwrap();
    assert!(rule.contains(&given("the copy may follow")), "{rule}");
    // It is said of this bump alone: the next asks again.
    bump.commit("side", "Split it again (#41)", |clone| {
        let text = fs::read_to_string(clone.join("q.h")).unwrap();
        fs::write(clone.join("q.h"), text.replace("i += 2", "i += 4")).unwrap();
    });
    let run = bump.run(&["rebase", "--to", "side"]);
    run.assert_status(1);
    let again = "watch impl=still the same";
    bump.run(&["rebase", "--continue", "--accept", again]).assert_status(0);
    let (_, series) = bump.series();
    assert!(!series.contains("ours sums the same") && !series.contains("may follow"), "{series}");
    assert!(series.contains("still the same"), "{series}");
}

/// What the new pin has not, nothing can be compared with there.
fn rebase_broken() {
    let bump = Bump::new();
    let series = format!("{}/series.toml", bump.folder(0));
    let more =
        "\n# What we lean on.\n\n# The sum.\n[[watch]]\nfile = \"q.h\"\nfunction = \"impl\"\n";
    let text = SERIES.replace("\n[[watch]]\nfile = \"q.h\"\nfunction = \"impl\"\n", more)
        + "\n[[watch]]\nfile = \"q.h\"\nfunction = \"fixed\"\nreason = \"we call it\"\n";
    bump.write(&series, &text);
    bump.branch("side", 0, "Rename impl (#61)", |clone| {
        let text = fs::read_to_string(clone.join("q.h")).unwrap();
        fs::write(clone.join("q.h"), text.replace("impl", "sum_of")).unwrap();
    });
    let cite = "cite q.h:8=the docs were changed";
    let accept = ["--accept", ACCEPT, "--accept", cite];
    let dry = [&["rebase", "--dry-run", "--to", "side"], &accept[..]].concat();
    let run = bump.run(&dry);
    run.assert_status(0);
    assert!(run.stdout().contains("left out   watch impl\n"), "{}", run.shown());
    let run = bump.run(&[&dry[..], &["--format", "markdown"]].concat());
    assert!(
        run.stdout().contains("- **left out** cite q.h:8: `impl` is gone; "),
        "{}",
        run.shown()
    );
    let json = bump.run(&[&dry[..], &["--format", "json"]].concat()).json();
    let impl_at = &json["plan"]["contracts"][0];
    assert_eq!((&impl_at["status"], &impl_at["found"]), (&"acknowledged".into(), &"broken".into()));
    let run = bump.run(&[&["rebase", "--to", "side"], &accept[..]].concat());
    run.assert_status(0);
    assert!(run.stdout().contains("left out   cite q.h:8\n"), "{}", run.shown());
    assert!(run.stdout().contains("accepted: ours sums the same"), "{}", run.shown());
    let (_, new) = bump.series();
    assert!(!new.contains("impl") && !new.contains("[[cite]]"), "{new}");
    let heading = "\n# What we lean on.\n\n[[watch]]\nfile = \"q.h\"\nfunction = \"fixed\"\n";
    assert!(new.contains(heading) && !new.contains("# The sum."), "{new}");
    // All is held at its own pin, and the next bump is none the wiser.
    let run = bump.run(&["drift", "--to", "side", "--format", "json"]);
    run.assert_status(0);
    assert_eq!(run.json()["findings"], serde_json::json!([]), "{}", run.shown());
    bump.commit("side", "Say so (#62)", |clone| {
        fs::write(clone.join("more.txt"), "more\n").unwrap();
    });
    bump.run(&["rebase", "--to", "side"]).assert_status(0);
    // A series that has one all the same, accepted by hand.
    let (folder, new) = bump.series();
    let pin = bump.commit_of("side");
    let broken = format!(
        "\n[[watch]]\nfile = \"q.h\"\nfunction = \"impl\"\nreason = \"r\"\n\
         acknowledged = [{{ target = \"{pin}\", reason = \"gone\" }}]\n"
    );
    bump.write(&format!("{folder}/series.toml"), &(new + &broken));
    bump.commit("side", "Say more (#63)", |clone| {
        fs::write(clone.join("more.txt"), "more\nand more\n").unwrap();
    });
    for args in [&["drift", "--to", "side"][..], &["rebase", "--to", "side"]] {
        let run = bump.run(args);
        assert_ne!(run.status(), Some(0), "{}", run.shown());
        assert!(run.stderr().contains("watch impl is broken there already"), "{}", run.shown());
        assert!(!run.shown().contains("(#6"), "nobody upstream is to blame: {}", run.shown());
    }
}

fn rebase_accept_checked() {
    let bump = Bump::new();
    let before = bump.files();
    for wrong in ["watch nothing=x", "watch impl=", "impl=x", "watch impl"] {
        let run = bump.run(&["rebase", "--to", &bump.commits[2], "--accept", wrong]);
        run.assert_status(2);
        bump.run(&["rebase", "--dry-run", "--to", "main", "--accept", wrong]).assert_status(2);
    }
    let run = bump.run(&["rebase", "--to", &bump.commits[2], "--accept", "watch nothing=x"]);
    assert!(run.stderr().contains("the series has no contract `watch nothing`"), "{}", run.shown());
    assert!(run.stderr().contains("there are: watch impl"), "{}", run.shown());
    assert_eq!(bump.files(), before);
    bump.run(&["rebase", "--to", &bump.commits[2]]).assert_status(1);
    bump.run(&["rebase", "--accept", ACCEPT]).assert_status(2);
    bump.run(&["rebase", "--abort", "--accept", ACCEPT]).assert_status(2);
    bump.run(&["rebase", "--continue", "--accept", "watch other=x"]).assert_status(2);
    bump.run(&["rebase", "--continue", "--accept", ACCEPT]).assert_status(0);
}

const KERNELS: &str = "\
#define make(name) \\
  template [[host_name(#name)]] [[kernel]] void name(device float* x);
make(first_kernel)
make(second_kernel)
";
const HOST: &str = "void dispatch() {\n  ask(\"first_kernel\");\n}\n";

fn rebase_renamed_kernel() {
    let bump = Bump::new();
    // A pin that has kernels: the bump to it comes first.
    bump.branch("kernels", 0, "Add kernels (#50)", |clone| {
        fs::write(clone.join("k.metal"), KERNELS).unwrap();
        fs::write(clone.join("host.cpp"), HOST).unwrap();
    });
    bump.run(&["rebase", "--to", "kernels"]).assert_status(0);
    let (folder, series) = bump.series();
    let contract = "\n[[kernel]]\nname = \"first_kernel\"\nfile = \"k.metal\"\n\
                    host = { file = \"host.cpp\", function = \"dispatch\" }\nreason = \"we ask\"\n";
    bump.write(&format!("{folder}/series.toml"), &format!("{series}{contract}"));
    bump.commit("kernels", "Rename both (#51)", |clone| {
        fs::rename(clone.join("k.metal"), clone.join("l.metal")).unwrap();
        fs::rename(clone.join("host.cpp"), clone.join("device.cpp")).unwrap();
    });
    let run = bump.run(&["rebase", "--to", "kernels"]);
    run.assert_status(0);
    assert!(run.stdout().contains("kernel first_kernel is in l.metal now"), "{}", run.shown());
    let (folder, series) = bump.series();
    let moved = contract.replace("k.metal", "l.metal").replace("host.cpp", "device.cpp");
    assert!(series.ends_with(&moved), "{series}");
    // A file that is taken apart has no new name; its kernels have.
    bump.commit("kernels", "Take it apart (#52)", |clone| {
        fs::remove_file(clone.join("l.metal")).unwrap();
        for (name, kernel) in [("one.metal", "first_kernel"), ("two.metal", "second_kernel")] {
            let head = KERNELS.split("make(first").next().unwrap();
            let text = format!("// All of it is new here.\n// {name}\n\n{head}\nmake({kernel})\n");
            let more: String = (0..20).map(|i| format!("// line {i} of {name}\n")).collect();
            fs::write(clone.join(name), text + &more).unwrap();
        }
    });
    bump.run(&["rebase", "--to", "kernels"]).assert_status(0);
    let (after, series) = bump.series();
    assert_ne!(after, folder);
    assert!(series.ends_with(&moved.replace("l.metal", "one.metal")), "{series}");
}

fn rebase_markdown() {
    let bump = Bump::new();
    let run = bump.run(&["rebase", "--dry-run", "--to", "main", "--format", "markdown"]);
    run.assert_status(1);
    for line in [
        "| fix | landed | with ",
        "Mend fixed (#13) |",
        "**Stopped** at `ours`, which does not hold:",
        "- **conflict** hunk 1, `q.h`: upstream changed the lines it changes",
    ] {
        assert!(run.stdout().contains(line), "{line}\n{}", run.shown());
    }
    let to = &bump.commits[2];
    let run = bump.run(&["rebase", "--to", to, "--accept", ACCEPT, "--format", "markdown"]);
    run.assert_status(0);
    for line in [
        "| ours | refreshed |  |",
        "- watch impl: its tokens changed: ",
        "; accepted: ours sums the same",
        "- cite q.h:8 is in `q.h:11` now",
        "<details><summary>watch impl</summary>",
        "+  for (int i = 0; i < n; i += 2) {",
        "The series is in `patches/",
    ] {
        assert!(run.stdout().contains(line), "{line}\n{}", run.shown());
    }
}

fn rebase_in_status() {
    let bump = stopped();
    let run = bump.run(&["status", "--format", "json"]);
    run.assert_status(1);
    let json = run.json();
    let (rebase, to) = (&json["rebase"], &bump.commits[4]);
    assert_eq!((&rebase["to"], &rebase["stopped"]), (&to.as_str().into(), &"ours".into()));
    assert_eq!(json["tree"], serde_json::Value::Null, "nothing is published yet");
    bump.run(&["apply"]).assert_status(0);
    let json = bump.run(&["status", "--format", "json"]).json();
    assert_eq!((&json["rebase"]["stopped"], &json["whole"]), (&"ours".into(), &true.into()));
    bump.run(&["rebase", "--abort"]).assert_status(0);
    let json = bump.run(&["status", "--format", "json"]).json();
    assert_eq!((&json["rebase"], &json["whole"]), (&serde_json::Value::Null, &true.into()));
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

fn rebase_other_pin() {
    let bump = Bump::new();
    bump.run(&["rebase", "--to", &bump.commits[1]]).assert_status(0);
    let before = bump.files();
    let run = bump.run(&["rebase", "--pin", &bump.commits[0][..8], "--to", "main"]);
    run.assert_status(2);
    assert!(run.stderr().contains("a rebase moves the pin of the project"), "{}", run.shown());
    assert_eq!(bump.files(), before);
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
    // Folders of the names that a rebase works under.
    for mine in
        ["patches/.NEW.overlay/mine.txt", ".overlay-rebase/mine.txt", ".overlay-rebase/lock"]
    {
        let bump = Bump::new();
        bump.write(&mine.replace("NEW", &bump.commits[1][..8]), "mine");
        let before = bump.files();
        let run = bump.run(&["rebase", "--to", &bump.commits[1]]);
        run.assert_status(3);
        assert!(run.stderr().contains("move it away"), "{}", run.shown());
        assert_eq!(bump.files(), before);
    }
    let bump = Bump::new();
    bump.write(".overlay-rebase/state.json/mine.txt", "mine");
    for args in [&["rebase"][..], &["rebase", "--abort"], &["status"]] {
        let run = bump.run(args);
        run.assert_status(3);
        assert!(run.stderr().contains("state.json: it is a folder"), "{}", run.shown());
    }
    // Put there while the rebase was under way.
    let bump = stopped();
    let mine = format!("{}/mine.txt", bump.folder(4));
    bump.write(&mine, "mine");
    bump.run(&["rebase", "--skip", "ours"]).assert_status(3);
    bump.run(&["rebase", "--continue"]).assert_status(3);
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert_eq!(bump.read(&mine), "mine");
}
