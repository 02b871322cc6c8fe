//! `overlay rebase --to REV`: what it plans, where it begins, and the pin it makes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::bump::{ACCEPT, Bump, FIX, OTHER, SERIES, class, stopped};
use crate::project::git;

/// Adds the tests.
pub fn add(test: &mut impl FnMut(&str, fn())) {
    test("rebase/moves-the-pin-and-keeps-the-old-one", rebase_clean);
    test("rebase/dry-run-writes-nothing", rebase_dry_run);
    test("rebase/a-contract-nobody-has-cannot-be-accepted", rebase_accept_checked);
    test("rebase/a-renamed-kernel-file-is-followed", rebase_renamed_kernel);
    test("rebase/markdown-for-a-pull-request", rebase_markdown);
    test("rebase/a-renamed-file-is-followed", rebase_renamed);
    test("rebase/a-move-that-upstream-made-too-has-landed", rebase_landed_move);
    test("rebase/a-target-of-another-history-is-refused", rebase_unrelated);
    test("rebase/another-pin-than-the-project-s-is-refused", rebase_other_pin);
    test("rebase/a-folder-that-is-there-stays", rebase_taken_folder);
    test("rebase/a-pin-behind-a-link-is-written-there", rebase_linked_pin);
    test("rebase/of-two-at-once-one-is-told-to-wait", rebase_two);
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
    // What lies beyond the entry that stops it.
    for line in [
        "After it, as `drift` judges it while `ours` is open:\n  holds      helper-copy\n  holds      \
         other\n  changed    watch impl\n",
        "             its tokens changed: ",
    ] {
        assert!(run.stdout().contains(line), "{line}\n{}", run.shown());
    }
    let to_main = ["rebase", "--dry-run", "--to", "main", "--format"];
    let run = bump.run(&[&to_main[..], &["json"]].concat());
    let rest = &run.json()["plan"]["rest"];
    assert_eq!(
        (&rest["entries"][1]["name"], rest["entries"].as_array().unwrap().len()),
        (&"other".into(), 2)
    );
    assert_eq!(rest["contracts"][0]["status"], "changed");
    let run = bump.run(&[&to_main[..], &["markdown", "--accept", ACCEPT]].concat());
    assert!(run.stdout().contains("- holds other\n"), "{}", run.shown());
    assert!(!run.stdout().contains("watch impl"), "it is accepted: {}", run.shown());
    // Two that stop: both are told, and what follows from the other.
    bump.branch("two", 4, "Say three (#16)", |clone| {
        fs::write(clone.join("other.txt"), "one\nthree\n").unwrap();
    });
    let run = bump.run(&["rebase", "--dry-run", "--to", "two"]);
    run.assert_status(1);
    let told =
        "  stops      other\n             conflict hunk 1, other.txt: upstream changed the lines";
    assert!(run.stdout().contains(told), "{}", run.shown());
    assert_eq!(bump.files(), before);
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
    let named = SERIES.replace("\"other\"", "\"o<ther>\"");
    bump.write(&format!("{}/series.toml", bump.folder(0)), &named);
    let run = bump.run(&["rebase", "--dry-run", "--to", "main", "--format", "markdown"]);
    assert!(run.stdout().contains("\n- holds o&lt;ther>\n"), "{}", run.shown());
    bump.write(&format!("{}/series.toml", bump.folder(0)), SERIES);
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

/// A branch of upstream's, and what it does besides.
type Change = (&'static str, fn(&Path));

/// Landed is what upstream has under the new name, whatever else it did to the file, and
/// not under the old one; all else is a person's.
fn rebase_landed_move() {
    let ours = |clone: &Path| fs::write(clone.join("moved.txt"), "one\nours\ntwo\n").unwrap();
    let gone = |clone: &Path| fs::remove_file(clone.join("other.txt")).unwrap();
    let theirs: [Change; 5] = [
        ("landed", |_| {}),
        ("more", |clone| {
            fs::write(clone.join("moved.txt"), "one\nours\ntwo\nmore\n").unwrap();
        }),
        ("runs", |clone| {
            let runs = fs::Permissions::from_mode(0o755);
            fs::set_permissions(clone.join("moved.txt"), runs).unwrap();
        }),
        ("stays", |clone| fs::write(clone.join("other.txt"), "one\ntwo\n").unwrap()),
        ("elsewhere", |clone| {
            fs::rename(clone.join("moved.txt"), clone.join("place.txt")).unwrap();
        }),
    ];
    let patch = "diff --git a/other.txt b/moved.txt\nrename from other.txt\nrename to moved.txt\n\
                 --- a/other.txt\n+++ b/moved.txt\n@@ -1,2 +1,3 @@\n one\n+ours\n two\n";
    let bump = Bump::new();
    bump.write(&format!("{}/other.patch", bump.folder(0)), patch);
    for (branch, change) in theirs {
        bump.branch(branch, 0, "Move it (#24)", |clone| {
            ours(clone);
            gone(clone);
            change(clone);
        });
        let landed = matches!(branch, "landed" | "more" | "runs");
        let run = bump.run(&["drift", "--to", branch]);
        run.assert_status(i32::from(!landed));
        assert_eq!(run.stdout().contains("landed       other, hunk 1"), landed, "{}", run.shown());
        let run = bump.run(&["rebase", "--to", branch, "--dry-run"]);
        assert_eq!(run.stdout().contains("landed     other  with "), landed, "{}", run.shown());
        assert_eq!(run.stdout().contains("landed     other"), landed, "{}", run.shown());
    }
    bump.run(&["rebase", "--to", "landed"]).assert_status(0);
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    assert_eq!(bump.read("out-new/moved.txt"), "one\nours\ntwo\n");
    assert!(!bump.tool.path("out-new/other.txt").exists());
}

/// Neither begins where pin and target are not of one history, nor in the clone of another
/// upstream; a clone that lacks the pin's commit alone is told of.
fn rebase_unrelated() {
    let bump = Bump::new();
    let clone = bump.tool.path("clone");
    git(&clone, &["checkout", "-q", "--orphan", "pages"]);
    git(&clone, &["commit", "-q", "-m", "Pages"]);
    git(&clone, &["checkout", "-q", "main"]);
    // The pin's files stay at hand where the clone is another.
    bump.run(&["fetch"]).assert_status(0);
    let before = bump.files();
    let both = |to: &str, from: Option<&str>| {
        ["drift", "rebase"].map(|command| {
            let from = from.map(|f| ["--from", f]);
            let from = from.iter().flatten().copied();
            let run = bump.run(&[command, "--to", to].into_iter().chain(from).collect::<Vec<_>>());
            assert_eq!(bump.files(), before, "{}", run.shown());
            run
        })
    };
    for run in both("pages", None) {
        run.assert_status(4);
        assert!(run.stderr().contains("have no ancestor in common"), "{}", run.shown());
    }
    let other = bump.tool.path(".cache/other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("else.txt"), "else\n").unwrap();
    git(&other, &["init", "-q", "-b", "main", "."]);
    git(&other, &["add", "."]);
    git(&other, &["commit", "-q", "-m", "Another"]);
    for run in both("main", Some(&other.display().to_string())) {
        run.assert_status(2);
        assert!(run.stderr().contains("holds 0 of the pin's 3 paths"), "{}", run.shown());
        assert!(run.stderr().contains("is that a clone of the pin's upstream"), "{}", run.shown());
    }
    let shallow = bump.tool.path(".cache/shallow").display().to_string();
    let url = format!("file://{}", clone.display());
    git(&clone, &["clone", "-q", "--depth", "1", &url, &shallow]);
    for command in [&["drift"][..], &["rebase", "--dry-run"]] {
        let run = bump.run(&[command, &["--to", "main", "--from", &shallow]].concat());
        let told = "this history does not have the pin's commit: no causes can be named";
        assert!(run.stderr().contains(told), "{}", run.shown());
        assert_eq!(run.stderr().matches(told).count(), 1, "{}", run.shown());
    }
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
    // A file, or a link that leads nowhere, is no folder to work in.
    for link in [false, true] {
        let bump = Bump::new();
        let place = bump.tool.path(".overlay-rebase");
        match link {
            true => symlink("nowhere", &place).unwrap(),
            false => fs::write(&place, "mine").unwrap(),
        }
        let to = bump.commits[1].clone();
        bump.run(&["rebase", "--to", &to, "--dry-run"]).assert_status(0);
        bump.run(&["rebase", "--abort"]).assert_status(2);
        let run = bump.run(&["rebase", "--to", &to]);
        run.assert_status(3);
        let told =
            ".overlay-rebase: a rebase works there, and what stands there is no folder; move";
        assert!(run.stderr().contains(told), "{}", run.shown());
        assert!(place.symlink_metadata().is_ok() && !place.is_dir());
    }
    // Put there while the rebase was under way.
    let bump = stopped();
    // It keeps its target.
    for other in [["--to", "main"], ["--pin", &bump.commits[0]]] {
        for way in [&["--continue"][..], &["--abort"], &["--skip", "ours"]] {
            let run = bump.run(&[&["rebase"], way, &other].concat());
            run.assert_status(2);
            assert!(run.stderr().contains("leave --to and --pin out"), "{}", run.shown());
        }
    }
    let mine = format!("{}/mine.txt", bump.folder(4));
    bump.write(&mine, "mine");
    bump.run(&["rebase", "--skip", "ours"]).assert_status(3);
    bump.run(&["rebase", "--continue"]).assert_status(3);
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert_eq!(bump.read(&mine), "mine");
}

/// The link stays, and the file that it leads to is replaced, beside itself.
fn rebase_linked_pin() {
    let bump = Bump::new();
    let pin = bump.tool.path("mlx-pin.toml");
    fs::create_dir(bump.tool.path("facts")).unwrap();
    fs::rename(&pin, bump.tool.path("facts/pin.toml")).unwrap();
    symlink("facts/pin.toml", &pin).unwrap();
    let before = bump.files();
    let is_link = || fs::read_link(&pin).unwrap() == Path::new("facts/pin.toml");
    bump.run(&["rebase", "--to", &bump.commits[1]]).assert_status(0);
    assert!(is_link() && bump.read("facts/pin.toml").contains(&bump.commits[1]));
    assert_eq!(fs::read_dir(bump.tool.path("facts")).unwrap().count(), 1, "no draft is left");
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    // Given up after the pin had moved.
    bump.write(".overlay-rebase/state.json", &bump.moved_state(1));
    bump.run(&["rebase", "--abort"]).assert_status(0);
    assert!(is_link());
    assert_eq!(bump.files(), before);
    // Where the old pin's facts are to be kept is no place for those of the current one.
    let bump = Bump::new();
    let pin = bump.tool.path("mlx-pin.toml");
    let kept = format!("{}.toml", bump.folder(0));
    fs::rename(&pin, bump.tool.path(&kept)).unwrap();
    symlink(&kept, &pin).unwrap();
    let before = bump.files();
    let run = bump.run(&["rebase", "--to", &bump.commits[1]]);
    run.assert_status(3);
    assert!(run.stderr().contains("a link to where the series are"), "{}", run.shown());
    assert_eq!(bump.files(), before);
}

fn rebase_two() {
    // One that holds the lock, and has put the new folder in place already.
    let bump = Bump::new();
    let process = "mlx-overlay, process 77        \n";
    bump.write(".overlay-rebase/lock", process);
    bump.write(&format!("{}/series.toml", bump.folder(1)), "");
    let lock = fs::File::open(bump.tool.path(".overlay-rebase/lock")).unwrap();
    lock.lock().unwrap();
    let before = bump.files();
    let run = bump.run(&["rebase", "--to", &bump.commits[1]]);
    run.assert_status(5);
    for words in ["another process (77) works on a rebase of this project", "try: wait until"] {
        assert!(run.stderr().contains(words), "{words}: {}", run.shown());
    }
    assert_eq!(bump.files(), before);
    // Two that run: what the first did is in nobody's way.
    for _ in 0..6 {
        let bump = Bump::new();
        let runs = std::thread::scope(|scope| {
            let rebase = || bump.run(&["rebase", "--to", &bump.commits[1]]);
            [(); 2].map(|()| scope.spawn(rebase)).map(|run| run.join().unwrap())
        });
        let done = runs.iter().filter(|run| run.status() == Some(0)).count();
        assert_eq!(done, 1, "{} {}", runs[0].shown(), runs[1].shown());
        for run in runs {
            assert!(!run.stderr().contains("move it away"), "{}", run.shown());
        }
        assert!(!bump.tool.path(".overlay-rebase").exists());
        assert_eq!(bump.drift(1).0, Some(0));
    }
}
