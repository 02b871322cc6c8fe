//! `overlay try` beyond the cases: what it prints, and what it leaves alone.

use std::fs;
use std::os::unix::fs::MetadataExt;

use overlay_tests_support::Suite;

use crate::cases::read;
use crate::tool::Tool;

pub const PATCH: &str = "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,4 @@\n a\n+new\n b\n c\n";

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    suite.test("try/says-where-each-hunk-went", says_where_each_hunk_went);
    suite.test("try/a-conflict-shows-both-sides", a_conflict_shows_both_sides);
    suite.test("try/out-must-be-empty", out_must_be_empty);
    suite.test("try/errors-name-file-line-and-remedy", errors_name_file_line_and_remedy);
    suite.test("try/colour-only-where-wanted", colour_only_where_wanted);
    suite.test("try/reads-a-quilt-folder", reads_a_quilt_folder);
    suite.test("try/changes-folder-first", changes_folder_first);
    suite.test("try/a-series-names-the-line-of-a-missing-patch", missing_in_series);
    suite.test("try/an-edit-that-was-broken-off", broken_off);
    suite.test("try/a-dry-run-over-an-edit-that-was-broken-off", dry_over_broken_off);
    suite.test("try/a-stray-body-line-has-its-line-and-byte", stray_body_line);
    suite.test("try/a-stray-header-line-has-its-line-and-byte", stray_header_line);
    suite.test("try/a-folder-is-no-patch", folder_is_no_patch);
    suite.test("usage/ends-with-2", usage_ends_with_2);
}

pub fn tool_with(text: &str, patch: &str) -> Tool {
    let tool = Tool::new();
    fs::create_dir(tool.path("tree")).expect("a folder");
    fs::write(tool.path("tree/f.txt"), text).expect("a file");
    fs::write(tool.path("fix.patch"), patch).expect("a file");
    tool
}

fn says_where_each_hunk_went() {
    let patch = "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,3 @@\n a\n+new\n b\n";
    let tool = tool_with("0\n0\na\nb\nc\n", patch);
    let run = tool.run(["try", "tree", "fix.patch", "--out", "new"]);
    run.assert_status(0);
    let expected = "fix.patch\n  offset       hunk 1 f.txt:3 +1 -0 (stated 1)\n\
                    1 patch, 1 of 1 hunk hold. Wrote new.\n";
    assert_eq!(run.stdout(), expected);
    assert_eq!(run.stderr(), "");
    assert_eq!(
        fs::read_to_string(tool.path("new/f.txt")).expect("written"),
        "0\n0\na\nnew\nb\nc\n"
    );
}

fn a_conflict_shows_both_sides() {
    let tool = tool_with("a\nB\nc\n", PATCH);
    let run = tool.run(["try", "tree", "fix.patch", "--in-place"]);
    run.assert_status(1);
    for part in ["conflict", "wanted:", "found, from line 1:", "most of it stands at line 1"] {
        assert!(run.stdout().contains(part), "{part}: {}", run.shown());
    }
    assert_eq!(fs::read_to_string(tool.path("tree/f.txt")).expect("there"), "a\nB\nc\n");
}

fn out_must_be_empty() {
    let tool = tool_with("a\nb\nc\n", PATCH);
    fs::create_dir(tool.path("full")).expect("a folder");
    fs::write(tool.path("full/mine"), "mine").expect("a file");
    let run = tool.run(["try", "tree", "fix.patch", "--out", "full"]);
    run.assert_status(2);
    assert!(run.stderr().contains("holds files already: name a folder that is"), "{}", run.shown());
    tool.run(["try", "tree", "fix.patch", "--out", "full", "--dry-run"]).assert_status(2);
    assert_eq!(fs::read_to_string(tool.path("full/mine")).expect("kept"), "mine");
    // A published tree is not told to be none.
    fs::write(tool.path("full/.overlay-stamp.json"), "{}").expect("a file");
    let run = tool.run(["try", "tree", "fix.patch", "--out", "full"]);
    run.assert_status(2);
    assert!(!run.stderr().contains("no published tree"), "{}", run.shown());
    assert!(!tool.path("full/f.txt").exists());
}

fn errors_name_file_line_and_remedy() {
    let tool = tool_with("a\nb\nc\n", &PATCH.replace("-1,3", "-1,4"));
    let run = tool.run(["try", "tree", "fix.patch", "--format", "json"]);
    run.assert_status(3);
    let error = &run.json()["error"];
    assert_eq!(error["kind"], "refused");
    assert_eq!(error["place"]["file"], "fix.patch");
    assert!(error["place"]["line"].as_u64().is_some_and(|l| l > 0), "{error:#}");
    assert!(error["remedies"].as_array().is_some_and(|r| !r.is_empty()), "{error:#}");
    assert!(run.stderr().contains("error: fix.patch:"), "{}", run.shown());
    assert!(run.stderr().contains("try:"), "{}", run.shown());
}

fn colour_only_where_wanted() {
    let tool = tool_with("a\nb\nc\n", PATCH);
    let plain = tool.run(["try", "tree", "fix.patch"]);
    assert!(!plain.stdout().contains('\u{1b}'), "{}", plain.shown());
    let forced = tool.run(["try", "tree", "fix.patch", "--color", "always"]);
    assert!(forced.stdout().contains('\u{1b}'), "{}", forced.shown());
    let vetoed = tool.run_with(&[("NO_COLOR", "1")], ["try", "tree", "fix.patch"]);
    assert!(!vetoed.stdout().contains('\u{1b}'), "{}", vetoed.shown());
    // As the help says: a script's own wish, which NO_COLOR outweighs.
    let force = ("CLICOLOR_FORCE", "1");
    let wished = tool.run_with(&[force], ["try", "tree", "fix.patch"]);
    assert!(wished.stdout().contains('\u{1b}'), "{}", wished.shown());
    let zero = tool.run_with(&[("CLICOLOR_FORCE", "0")], ["try", "tree", "fix.patch"]);
    assert!(!zero.stdout().contains('\u{1b}'), "{}", zero.shown());
    // What cannot be read is told in the same colours, and so is the help.
    for (variables, options, coloured) in [
        (&[force][..], &[][..], true),
        (&[force], &["--color", "never"], false),
        (&[], &["--color=always"], true),
        (&[("CLICOLOR_FORCE", "0")], &[], false),
        (&[force, ("NO_COLOR", "1")], &[], false),
    ] {
        let usage = tool.run_with(variables, [&["try", "--none"], options].concat());
        usage.assert_status(2);
        assert_eq!(usage.stderr().contains('\u{1b}'), coloured, "{}", usage.shown());
        let help = tool.run_with(variables, [options, &["--help"]].concat());
        help.assert_status(0);
        assert_eq!(help.stdout().contains('\u{1b}'), coloured, "{}", help.shown());
    }
    let vetoed = tool.run_with(&[force, ("NO_COLOR", "1")], ["try", "tree", "fix.patch"]);
    assert!(!vetoed.stdout().contains('\u{1b}'), "{}", vetoed.shown());
}

fn reads_a_quilt_folder() {
    let tool = tool_with("a\nb\nc\n", "");
    fs::create_dir(tool.path("patches")).expect("a folder");
    let series = "# a comment\nempty.patch\nfix.patch -p2 # twice stripped\n";
    fs::write(tool.path("patches/series"), series).expect("a file");
    fs::write(tool.path("patches/empty.patch"), "").expect("a file");
    fs::write(
        tool.path("patches/fix.patch"),
        PATCH.replace("a/f", "x/y/f").replace("b/f", "x/y/f"),
    )
    .expect("a file");
    let run = tool.run(["try", "tree", "patches", "--in-place", "--format", "json"]);
    run.assert_status(0);
    assert_eq!(run.json()["patches"][1]["hunks"][0]["class"], "exact");
    assert_eq!(fs::read_to_string(tool.path("tree/f.txt")).expect("there"), "a\nnew\nb\nc\n");
}

fn missing_in_series() {
    let tool = tool_with("a\nb\nc\n", PATCH);
    fs::write(tool.path("series"), "fix.patch\n\nnone.patch\n").expect("a file");
    let run = tool.run(["try", "tree", "series", "--in-place", "--format", "json"]);
    run.assert_status(3);
    let error = &run.json()["error"];
    let place = serde_json::json!({ "file": "series", "line": 3 });
    assert_eq!((&error["reason"], &error["place"]), (&"no-patch".into(), &place), "{error:#}");
    assert!(run.stderr().contains("series:3: the patch `none.patch`"), "{}", run.shown());
    assert_eq!(fs::read_to_string(tool.path("tree/f.txt")).expect("there"), "a\nb\nc\n");
}

fn stray_body_line() {
    for (stray, blanks) in [("+lost", ""), ("-lost", ""), (" x", ""), ("+lost", "\n\n")] {
        let tool = tool_with("a\nb\nc\n", &format!("{PATCH}{blanks}{stray}\n"));
        let run = tool.run(["try", "tree", "fix.patch", "--in-place", "--format", "json"]);
        run.assert_status(3);
        let error = &run.json()["error"];
        assert_eq!(error["reason"], "malformed", "{error:#}");
        let place = serde_json::json!({
            "file": "fix.patch", "line": 8 + blanks.len(), "byte": PATCH.len() + blanks.len(),
        });
        assert_eq!(error["place"], place, "{error:#}");
        assert_eq!(fs::read_to_string(tool.path("tree/f.txt")).expect("there"), "a\nb\nc\n");
    }
}

fn stray_header_line() {
    let stray = "indxe 1234567..89abcde 100644\n";
    let first = "diff --git a/f.txt b/f.txt\n";
    let tool = tool_with("a\nb\nc\n", &format!("From: me\n\n{first}{stray}{PATCH}"));
    let run = tool.run(["try", "tree", "fix.patch", "--format", "json"]);
    run.assert_status(3);
    let error = &run.json()["error"];
    let place = serde_json::json!({ "file": "fix.patch", "line": 4, "byte": 10 + first.len() });
    assert_eq!((&error["reason"], &error["place"]), (&"malformed".into(), &place), "{error:#}");
    assert!(run.stderr().contains("`indxe 1234567..89abcde 100644` is no line"), "{}", run.shown());
    // And below the names, where a hunk must begin.
    for (hunk, first) in [("@@ -1,3", "@ -1,3"), ("@@ -1,3", "oops\n@@ -1,3")] {
        let tool = tool_with("a\nb\nc\n", &PATCH.replace(hunk, first));
        let run = tool.run(["try", "tree", "fix.patch", "--format", "json"]);
        run.assert_status(3);
        let place = serde_json::json!({ "file": "fix.patch", "line": 3, "byte": 24 });
        assert_eq!(run.json()["error"]["place"], place, "{}", run.shown());
        assert!(run.stderr().contains("begins no hunk"), "{}", run.shown());
    }
}

fn folder_is_no_patch() {
    let tool = tool_with("a\nb\nc\n", PATCH);
    for folder in ["quilt/sub", "none", "odd/series"] {
        fs::create_dir_all(tool.path(folder)).expect("a folder");
    }
    fs::write(tool.path("quilt/series"), "# first\nsub\n").expect("a file");
    let place = |file: &str, line: Option<u32>| match line {
        Some(line) => serde_json::json!({ "file": file, "line": line }),
        None => serde_json::json!({ "file": file }),
    };
    for (patch, status, place) in [
        ("quilt", 3, place("quilt/series", Some(2))),
        ("odd", 3, place("odd/series", None)),
        ("none", 2, place("none/series", None)),
        ("none.patch", 2, place("none.patch", None)),
    ] {
        let run = tool.run(["try", "tree", patch, "--format", "json"]);
        run.assert_status(status);
        assert_eq!(run.json()["error"]["place"], place, "{}", run.shown());
    }
}

fn broken_off() {
    let tool = tool_with("a\nb\nc\n", PATCH);
    fs::create_dir(tool.path("tree/.overlay-edit")).expect("a folder");
    let journal = tool.path("tree/.overlay-edit/journal.json");
    let whole = r#"{"schema":"mlx-overlay/edit-journal","version":1,"folders":[],"steps":[]}"#;
    fs::write(&journal, whole).expect("a file");
    let plain = tool.run(["try", "tree", "fix.patch"]);
    plain.assert_status(1);
    let command = "/tree PATCH… --in-place` brings it to its end first";
    assert!(plain.stderr().contains(command), "{}", plain.shown());
    // A folder in its place is as bad.
    fs::remove_file(&journal).expect("removed");
    fs::create_dir(&journal).expect("a folder");
    let folder = tool.run(["try", "tree", "fix.patch", "--in-place", "--format", "json"]);
    folder.assert_status(1);
    assert_eq!(folder.json()["error"]["reason"], "journal", "{}", folder.shown());
    fs::remove_dir(&journal).expect("removed");
    // Nobody can tell what a damaged journal spoke of: it is left to a person.
    fs::write(&journal, "{").expect("a file");
    let damaged = tool.run(["try", "tree", "fix.patch", "--in-place", "--format", "json"]);
    damaged.assert_status(1);
    assert_eq!(damaged.json()["error"]["reason"], "journal", "{}", damaged.shown());
    for words in ["its journal is damaged", ".overlay-edit/old` (files as they were)"] {
        assert!(damaged.stderr().contains(words), "{words}: {}", damaged.shown());
    }
    assert_eq!(fs::read_to_string(&journal).expect("kept"), "{");
    fs::write(&journal, whole).expect("a file");
    tool.run(["try", "tree", "fix.patch", "--in-place"]).assert_status(0);
    assert_eq!(fs::read_to_string(tool.path("tree/f.txt")).expect("there"), "a\nnew\nb\nc\n");
    assert!(!journal.exists());
}

/// An edit that takes `gone.txt` away and was killed before it wrote `f.txt`.
fn half_edited() -> Tool {
    let second = "--- a/f.txt\n+++ b/f.txt\n@@ -1,4 +1,5 @@\n a\n new\n+second\n b\n c\n";
    let tool = tool_with("a\nb\nc\n", second);
    fs::write(tool.path("tree/gone.txt"), "gone\n").expect("a file");
    let stat = |name: &str| {
        let meta = fs::metadata(tool.path("tree").join(name)).expect("a file");
        let mtime = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
        let (size, inode) = (meta.len(), meta.ino());
        serde_json::json!({ "mode": "100644", "size": size, "mtime": mtime, "inode": inode })
    };
    let journal = serde_json::json!({
        "schema": "mlx-overlay/edit-journal", "version": 1, "folders": [],
        "steps": [
            { "path": "gone.txt", "old": stat("gone.txt"), "put": false },
            { "path": "f.txt", "old": stat("f.txt"), "put": true },
        ],
    });
    let work = tool.path("tree/.overlay-edit");
    for folder in ["new", "old", "gone"] {
        fs::create_dir_all(work.join(folder)).expect("a folder");
    }
    fs::write(work.join("lock"), "mlx-overlay, process 4000000000\n").expect("a file");
    fs::write(work.join("journal.json"), journal.to_string()).expect("a file");
    fs::write(work.join("new/1"), "a\nnew\nb\nc\n").expect("a file");
    fs::rename(tool.path("tree/gone.txt"), work.join("gone/0")).expect("renamed");
    tool
}

fn dry_over_broken_off() {
    let tool = half_edited();
    let before = read(&tool.path("tree"));
    let args = ["try", "tree", "fix.patch", "--in-place"];
    let dry = tool.run(args.iter().chain(&["--dry-run"]));
    dry.assert_status(0);
    let told = "it would be brought to its end first (1 file written, 1 removed)";
    assert!(dry.stderr().contains(told), "{}", dry.shown());
    let json = tool.run(args.iter().chain(&["--dry-run", "--format", "json"])).json();
    let mended = serde_json::json!({ "written": ["f.txt"], "removed": ["gone.txt"] });
    assert_eq!((&json["mended"], &json["wrote"]), (&mended, &().into()), "{json:#}");
    assert_eq!(json["patches"][0]["hunks"][0]["class"], "exact", "of the folder as it will be");
    assert_eq!(read(&tool.path("tree")), before, "a dry run touches nothing");
    // The run that it spoke of.
    let done = tool.run(args.iter().chain(&["--format", "json"]));
    done.assert_status(0);
    assert_eq!((&done.json()["mended"], &done.json()["patches"]), (&mended, &json["patches"]));
    let text = fs::read_to_string(tool.path("tree/f.txt")).expect("there");
    assert_eq!(text, "a\nnew\nsecond\nb\nc\n");
    let again = tool.run(args.iter().chain(&["--dry-run", "--format", "json"])).json();
    assert_eq!(again["mended"], serde_json::Value::Null);

    // What was changed since is a person's to settle, dry or not.
    let tool = half_edited();
    fs::write(tool.path("tree/f.txt"), "mine\n").expect("a file");
    // All but the lock, which the next holder signs.
    let files = || {
        let mut files = read(&tool.path("tree"));
        files.remove(".overlay-edit/lock");
        files
    };
    let before = files();
    for dry in [&["--dry-run"][..], &[]] {
        let run = tool.run(args.iter().chain(dry));
        run.assert_status(1);
        assert!(run.stderr().contains("since then `f.txt` changed"), "{}", run.shown());
        assert_eq!(files(), before);
    }
}

fn changes_folder_first() {
    let tool = tool_with("a\nb\nc\n", PATCH);
    tool.run(["-C", "tree", "try", ".", "../fix.patch"]).assert_status(0);
    tool.run(["-C", "nowhere", "try", ".", "fix.patch"]).assert_status(2);
}

fn usage_ends_with_2() {
    let tool = Tool::new();
    tool.run(["try"]).assert_status(2);
    tool.run(["try", "nowhere", "nothing.patch"]).assert_status(2);
    tool.run(["no-such-command"]).assert_status(2);
    let other = tool.run(["doctor", "--format", "markdown"]);
    other.assert_status(2);
    assert!(
        other.stderr().contains("does not print markdown; it prints text and json"),
        "{}",
        other.shown()
    );
    tool.run(["--help"]).assert_status(0);
    for format in [&["--format", "json"][..], &["--format=json"]] {
        let run = tool.run(["apply", "--no-such"].iter().chain(format));
        run.assert_status(2);
        let json = run.json();
        assert_eq!((&json["schema"], &json["version"]), (&"mlx-overlay/error".into(), &1.into()));
        assert_eq!(json["error"]["kind"], "usage");
        assert!(run.stderr().contains("'--no-such'"), "{}", run.shown());
    }
}
