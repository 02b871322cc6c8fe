//! Files that a rebase cannot merge: links, bytes, a link on one side and a file on the
//! other.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::stop::WORK;
use crate::bump::{ACCEPT, Bump, stopped};
use crate::project::git;
use crate::tool::Run;

/// Adds the tests.
pub fn add(test: &mut impl FnMut(&str, fn())) {
    test("rebase/a-work-file-is-not-read-through-a-link", link_in_place_of_a_file);
    test("rebase/a-link-that-both-changed-is-finished-as-text-or-as-a-link", link_text);
    test("rebase/bytes-that-both-changed-are-chosen", binary);
    test("rebase/bytes-that-upstream-has-too-have-landed", binary_landed);
    test("rebase/bytes-to-delete-that-upstream-changed-are-removed-by-hand", binary_deleted);
    test("rebase/a-file-that-upstream-made-a-link-is-chosen", link_or_file);
    test("rebase/a-file-or-a-folder-of-its-name-is-chosen", file_or_folder);
    test("rebase/a-new-file-in-the-place-of-upstream-s-folder-is-chosen", new_file_or_folder);
    test("rebase/a-folder-that-upstream-made-a-link-is-judged", folder_made_link);
    test("rebase/a-name-that-needs-quotes-is-written-for-git-to-read", quoted_name);
    test("rebase/a-link-in-the-place-of-what-is-gone-is-a-conflict", link_for_nothing);
    test("rebase/a-deletion-of-what-upstream-renamed-is-a-conflict", deleted_renamed);
}

fn link_in_place_of_a_file() {
    let bump = stopped();
    bump.write("secret.txt", "mine\n");
    let work = bump.tool.path(WORK);
    let marked = bump.read(WORK);
    fs::remove_file(&work).unwrap();
    symlink(bump.tool.path("secret.txt"), &work).unwrap();
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    let told = "a symbolic link stands where the file should, and is not taken over";
    assert!(run.stderr().contains(told), "{}", run.shown());
    assert!(run.stderr().contains("--skip ours"), "{}", run.shown());
    assert!(work.is_symlink(), "it is left alone");
    assert_eq!(bump.read("secret.txt"), "mine\n");
    fs::remove_file(&work).unwrap();
    fs::create_dir(&work).unwrap();
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stderr().contains("a folder stands where the file should"), "{}", run.shown());
    fs::remove_dir(&work).unwrap();
    bump.run(&["rebase", "--continue"]).assert_status(1);
    assert_eq!(bump.read(WORK), marked, "what is gone is written again");
}

/// A project at a pin that has what `at_pin` makes, with an entry `other` that does what
/// `ours` does; upstream's `theirs` is the branch `files`, one commit on.
fn both(
    removes: &str,
    at_pin: impl FnOnce(&Path),
    ours: impl FnOnce(&Path),
    theirs: impl FnOnce(&Path),
) -> Bump {
    let bump = Bump::new();
    bump.branch("files", 0, "Add files (#70)", at_pin);
    bump.run(&["rebase", "--to", "files", "--accept", ACCEPT]).assert_status(0);
    git(&bump.tool.path("clone"), &["branch", "-q", "ours", "files"]);
    bump.commit("ours", "Ours", ours);
    let patch =
        git(&bump.tool.path("clone"), &["diff", "--binary", "--full-index", "-M", "files", "ours"]);
    let (folder, series) = bump.series();
    bump.write(&format!("{folder}/other.patch"), &format!("{patch}\n\n"));
    if !removes.is_empty() {
        let note = format!(
            "\n[[note]]\nentry = \"other\"\nfile = \"l\"\nremoves = [\"{removes}\"]\nreason = \"r\"\n"
        );
        bump.write(&format!("{folder}/series.toml"), &(series + &note));
    }
    bump.commit("files", "Theirs (#71)", theirs);
    bump
}

/// Goes on, with every note accepted that is asked for.
fn go_on(bump: &Bump) -> Run {
    let run = bump.run(&["rebase", "--continue"]);
    let asked = run.stdout().lines().find_map(|l| {
        let (_, rest) = l.split_once("--accept '")?;
        Some(format!("{}=looked at", rest.split_once("=why")?.0))
    });
    match asked {
        Some(accept) => bump.run(&["rebase", "--continue", "--accept", &accept]),
        None => run,
    }
}

const SIDES: &str = ".overlay-rebase/sides";

fn link(to: &'static str) -> impl Fn(&Path) {
    move |clone| {
        let _ = fs::remove_file(clone.join("l"));
        symlink(to, clone.join("l")).unwrap();
    }
}

fn link_text() {
    let finish: [fn(&Path); 2] = [
        // As an editor leaves it.
        |work| fs::write(work, "q.h\n").unwrap(),
        |work| {
            fs::remove_file(work).unwrap();
            symlink("q.h", work).unwrap();
        },
    ];
    for finish in finish {
        let bump = both("other.txt", link("other.txt"), link("q.h"), link("mlx/version.h"));
        let run = bump.run(&["rebase", "--to", "files"]);
        run.assert_status(1);
        let work = ".overlay-rebase/work/l";
        let marked = bump.read(work);
        assert!(marked.contains("\nmlx/version.h\n|||||||"), "{marked}");
        finish(&bump.tool.path(work));
        go_on(&bump).assert_status(0);
        bump.run(&["apply", "--out", "out-new"]).assert_status(0);
        let made = fs::read_link(bump.tool.path("out-new/l")).unwrap();
        assert_eq!(made, Path::new("q.h"));
    }
}

fn bytes(last: u8) -> impl Fn(&Path) {
    move |clone| fs::write(clone.join("x.bin"), [0, 159, 10, 255, 0, last]).unwrap()
}

fn binary() {
    let bump = both("", bytes(1), bytes(2), bytes(3));
    let run = bump.run(&["drift", "--to", "files"]);
    run.assert_status(1);
    assert!(run.stdout().contains("conflict     other: x.bin"), "{}", run.shown());
    assert!(run.stdout().contains("since ") && run.stdout().contains("(#71)"), "{}", run.shown());
    let run = bump.run(&["rebase", "--to", "files", "--dry-run", "--format", "markdown"]);
    let told = "\n- **conflict** `x.bin`: upstream changed the binary file: ";
    assert!(run.stdout().contains(told), "{}", run.shown());
    let run = bump.run(&["rebase", "--to", "files", "--format", "json"]);
    run.assert_status(1);
    let sides = bump.tool.path(SIDES);
    assert_eq!(run.json()["sides"], sides.display().to_string());
    for (side, last) in [("upstream", 3), ("pin", 1), ("entry", 2)] {
        assert_eq!(fs::read(sides.join(side).join("x.bin")).unwrap().last(), Some(&last), "{side}");
    }
    let run = bump.run(&["rebase"]);
    assert!(run.stdout().contains("put the file that is wanted in its place"), "{}", run.shown());
    let work = bump.tool.path(".overlay-rebase/work/x.bin");
    assert!(!work.exists(), "none is chosen yet");
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    for told in ["which file is wanted is open", "the entry's is ", "sides/entry/x.bin", "--skip"] {
        assert!(run.stderr().contains(told), "{told}\n{}", run.shown());
    }
    // What a person changes or puts there is not lost.
    for name in ["entry/x.bin", "mine.txt"] {
        let before = fs::read(sides.join(name)).ok();
        fs::write(sides.join(name), "mine").unwrap();
        let run = bump.run(&["rebase", "--continue"]);
        run.assert_status(1);
        let told = format!("{name}; with the work folder it would be lost");
        assert!(run.stderr().contains(&told), "{}", run.shown());
        assert_eq!(fs::read(sides.join(name)).unwrap(), b"mine");
        match before {
            Some(bytes) => fs::write(sides.join(name), bytes).unwrap(),
            None => fs::remove_file(sides.join(name)).unwrap(),
        }
    }
    // Upstream's: nothing is left of the entry.
    fs::copy(sides.join("upstream/x.bin"), &work).unwrap();
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stderr().contains("nothing of `other` is left"), "{}", run.shown());
    fs::copy(sides.join("entry/x.bin"), &work).unwrap();
    // Bytes are no lines: no note is asked for.
    bump.run(&["rebase", "--continue"]).assert_status(0);
    let patch = format!("{}/other.patch", bump.series().0);
    assert!(bump.read(&patch).contains("\nGIT binary patch\nliteral 6\n"), "{}", bump.read(&patch));
    git(&bump.tool.path("clone"), &["checkout", "-q", "files"]);
    git(
        &bump.tool.path("clone"),
        &["apply", "--check", &bump.tool.path(&patch).display().to_string()],
    );
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    assert_eq!(fs::read(bump.tool.path("out-new/x.bin")).unwrap(), [0, 159, 10, 255, 0, 2]);
    assert_eq!(bump.run(&["drift", "--to", "files"]).status(), Some(0));
    assert!(!bump.tool.path(".overlay-rebase").exists());
}

fn binary_landed() {
    let bump = both("", bytes(1), bytes(2), bytes(2));
    let run = bump.run(&["drift", "--to", "files"]);
    run.assert_status(0);
    assert!(run.stdout().contains("landed       other: x.bin"), "{}", run.shown());
    let run = bump.run(&["rebase", "--to", "files"]);
    run.assert_status(0);
    assert!(run.stdout().contains("landed     other  with "), "{}", run.shown());
}

fn binary_deleted() {
    let gone = |clone: &Path| fs::remove_file(clone.join("x.bin")).unwrap();
    let bump = both("", bytes(1), gone, bytes(3));
    bump.run(&["rebase", "--to", "files"]).assert_status(1);
    let work = bump.tool.path(".overlay-rebase/work/x.bin");
    assert_eq!(fs::read(&work).unwrap().last(), Some(&3), "what the entry is to delete now");
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stderr().contains("remove it, as the entry does"), "{}", run.shown());
    fs::remove_file(&work).unwrap();
    go_on(&bump).assert_status(0);
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    assert!(!bump.tool.path("out-new/x.bin").exists());
}

fn link_or_file() {
    let text = |text: &'static str| move |clone: &Path| fs::write(clone.join("l"), text).unwrap();
    let (at_pin, ours) = (text("one\ntwo\n"), text("one\nours\n"));
    // The entry's file, or upstream's link to another place.
    for (wanted, is_link) in [("entry", false), ("upstream", true)] {
        let bump = both(
            "two",
            at_pin,
            |clone| {
                ours(clone);
                fs::write(clone.join("more.txt"), "more\n").unwrap();
            },
            link("other.txt"),
        );
        bump.run(&["rebase", "--to", "files"]).assert_status(1);
        let (sides, work) = (bump.tool.path(SIDES), bump.tool.path(".overlay-rebase/work/l"));
        assert_eq!(fs::read_link(sides.join("upstream/l")).unwrap(), Path::new("other.txt"));
        assert!(!work.exists() && bump.tool.path(".overlay-rebase/work/more.txt").exists());
        fs::rename(sides.join(wanted).join("l"), &work).unwrap();
        go_on(&bump).assert_status(0);
        bump.run(&["apply", "--out", "out-new"]).assert_status(0);
        let made = bump.tool.path("out-new/l");
        assert_eq!(made.is_symlink(), is_link, "{wanted}");
        assert_eq!(
            fs::read_to_string(&made).unwrap(),
            if is_link { "one\ntwo\n" } else { "one\nours\n" }
        );
        assert_eq!(bump.read("out-new/more.txt"), "more\n");
    }
}

/// Two lines that an entry removes.
const ONE_TWO: &str = "one\", \"two";

fn file_or_folder() {
    let text = |text: &'static str| move |clone: &Path| fs::write(clone.join("l"), text).unwrap();
    let folder = |clone: &Path| {
        fs::remove_file(clone.join("l")).unwrap();
        fs::create_dir(clone.join("l")).unwrap();
        fs::write(clone.join("l/q"), "ours\n").unwrap();
    };
    let bump = both(ONE_TWO, text("one\ntwo\n"), folder, text("one\n2\n"));
    bump.run(&["rebase", "--to", "files"]).assert_status(1);
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stderr().contains("which file is wanted is open"), "{}", run.shown());
    let (sides, work) = (bump.tool.path(SIDES), bump.tool.path(".overlay-rebase/work/l"));
    fs::copy(sides.join("upstream/l"), &work).unwrap();
    let run = bump.run(&["rebase", "--continue"]);
    run.assert_status(1);
    assert!(run.stderr().contains("--skip other"), "{}", run.shown());
    fs::remove_file(&work).unwrap();
    fs::create_dir(&work).unwrap();
    fs::copy(sides.join("entry/l/q"), work.join("q")).unwrap();
    go_on(&bump).assert_status(0);
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    assert_eq!(bump.read("out-new/l/q"), "ours\n");
}

fn new_file_or_folder() {
    let ours = |clone: &Path| {
        fs::write(clone.join("l"), "ours\n").unwrap();
        fs::write(clone.join("m"), "m\n").unwrap();
    };
    let theirs = |clone: &Path| {
        fs::create_dir(clone.join("l")).unwrap();
        fs::write(clone.join("l/u"), "theirs\n").unwrap();
    };
    let add = |clone: &Path| fs::write(clone.join("k"), "k\n").unwrap();
    let stopped = || {
        let bump = both("", add, ours, theirs);
        bump.run(&["rebase", "--to", "files"]).assert_status(1);
        let run = bump.run(&["rebase", "--continue"]);
        run.assert_status(1);
        for told in [
            "work/l: upstream has a folder in the place of this file",
            "sides/entry/l)",
            "sides/upstream/l)",
            "under a name that is free",
            "--skip other",
        ] {
            assert!(run.stderr().contains(told), "{told}: {}", run.shown());
        }
        bump
    };
    let (sides, work) = (|bump: &Bump| bump.tool.path(SIDES), ".overlay-rebase/work");
    type Choose<'c> = &'c dyn Fn(&Bump);
    let theirs: Choose = &|bump| {
        fs::create_dir(bump.tool.path(work).join("l")).unwrap();
        let u = bump.tool.path(work).join("l/u");
        fs::copy(sides(bump).join("upstream/l/u"), u).unwrap();
    };
    let put = |bump: &Bump, name: &str| {
        fs::copy(sides(bump).join("entry/l"), bump.tool.path(work).join(name)).unwrap();
    };
    let own: Choose = &|bump| put(bump, "l");
    let elsewhere: Choose = &|bump| put(bump, "l2");
    for (choose, has) in [
        (theirs, &[("l/u", "theirs\n")][..]),
        (own, &[("l", "ours\n")]),
        (elsewhere, &[("l/u", "theirs\n"), ("l2", "ours\n")]),
    ] {
        let bump = stopped();
        choose(&bump);
        go_on(&bump).assert_status(0);
        assert_eq!(bump.run(&["drift", "--to", "files"]).status(), Some(0));
        bump.run(&["apply", "--out", "out-new"]).assert_status(0);
        for (name, text) in [("l/u", ""), ("l", ""), ("l2", "")] {
            let text = has.iter().find(|(n, _)| *n == name).map_or(text, |(_, text)| text);
            let made = fs::read_to_string(bump.tool.path("out-new").join(name));
            assert_eq!(made.unwrap_or_default(), text, "{name} of {has:?}");
        }
        assert_eq!(bump.read("out-new/m"), "m\n");
    }
}

/// The patch of a resolution, and one that is made again, are read by git too.
fn quoted_name() {
    let name = "t\tq\"b\\é f.txt";
    let text = |text: &'static str| move |clone: &Path| fs::write(clone.join(name), text).unwrap();
    let (at_pin, ours) = ("one\ntwo\nthree\n", "one\ntwo of ours\ntwo and a half\nthree\n");
    let lines = "two\"]\nreason = \"r\"\n";
    for (theirs, made) in [
        ("one\n2\nthree\n", "one\nboth\nthree\n"),
        ("zero\none\ntwo\nthree\n", "zero\none\ntwo of ours\ntwo and a half\nthree\n"),
    ] {
        let bump = both("", text(at_pin), text(ours), text(theirs));
        let (folder, series) = bump.series();
        let note = format!("\n[[note]]\nentry = \"other\"\nfile = '{name}'\nremoves = [\"{lines}");
        bump.write(&format!("{folder}/series.toml"), &(series + &note));
        if bump.run(&["rebase", "--to", "files"]).status() == Some(1) {
            fs::write(bump.tool.path(".overlay-rebase/work").join(name), made).unwrap();
            go_on(&bump).assert_status(0);
        }
        let (folder, _) = bump.series();
        let patch = bump.read(&format!("{folder}/other.patch"));
        assert!(patch.contains(r#""a/t\tq\"b\\\303\251 f.txt""#), "{patch}");
        let clone = bump.tool.path("clone");
        git(&clone, &["checkout", "-q", "-f", "files"]);
        let patch = bump.tool.path(format!("{folder}/other.patch"));
        git(&clone, &["apply", &patch.display().to_string()]);
        assert_eq!(fs::read_to_string(clone.join(name)).unwrap(), made);
        bump.run(&["apply", "--out", "out-new"]).assert_status(0);
        assert_eq!(bump.read(&format!("out-new/{name}")), made);
    }
}

fn folder_made_link() {
    let folder = |clone: &Path| {
        fs::create_dir(clone.join("d")).unwrap();
        fs::write(clone.join("d/one.txt"), "one\ntwo\nthree\n").unwrap();
    };
    let theirs = |clone: &Path| {
        fs::rename(clone.join("d"), clone.join("dd")).unwrap();
        symlink("dd", clone.join("d")).unwrap();
    };
    // A file of the folder is followed to where it is now.
    let ours =
        |clone: &Path| fs::write(clone.join("d/one.txt"), "one\ntwo\nthree\nours\n").unwrap();
    let bump = both("", folder, ours, theirs);
    bump.run(&["rebase", "--to", "files"]).assert_status(0);
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    assert_eq!(bump.read("out-new/dd/one.txt"), "one\ntwo\nthree\nours\n");
    // A new one has no folder to stand in.
    let ours = |clone: &Path| fs::write(clone.join("d/new.txt"), "new\n").unwrap();
    let bump = both("", folder, ours, theirs);
    let run = bump.run(&["drift", "--to", "files"]);
    run.assert_status(1);
    assert!(run.stdout().contains("conflict     other: d/new.txt"), "{}", run.shown());
    bump.run(&["rebase", "--to", "files"]).assert_status(1);
    bump.run(&["rebase", "--continue"]).assert_status(1);
    let own = ".overlay-rebase/work/d/new.txt";
    bump.write(own, "new\n");
    go_on(&bump).assert_status(0);
    assert_eq!(bump.run(&["drift", "--to", "files"]).status(), Some(0), "its folder is d again");
    bump.run(&["apply", "--out", "out-new"]).assert_status(0);
    assert_eq!(bump.read("out-new/d/new.txt"), "new\n");
    assert_eq!(bump.read("out-new/dd/one.txt"), "one\ntwo\nthree\n");
}

fn link_for_nothing() {
    let text = |clone: &Path| fs::write(clone.join("l"), "one\ntwo\n").unwrap();
    let gone = |clone: &Path| fs::remove_file(clone.join("l")).unwrap();
    let bump = both(ONE_TWO, text, link("q.h"), gone);
    for command in ["drift", "rebase"] {
        let run = bump.run(&[command, "--to", "files"]);
        run.assert_status(1);
        assert!(run.stdout().contains("upstream took away the file"), "{}", run.shown());
    }
    bump.run(&["rebase", "--skip", "other"]).assert_status(0);
    // A link to delete that is a file now, of the same bytes.
    let file = |clone: &Path| {
        gone(clone);
        fs::write(clone.join("l"), "q.h").unwrap();
    };
    let bump = both("q.h", link("q.h"), gone, file);
    let run = bump.run(&["drift", "--to", "files"]);
    run.assert_status(1);
    assert!(run.stdout().contains("upstream made it a file, and"), "{}", run.shown());
    // A rename of what is a link now.
    let renamed = |clone: &Path| fs::rename(clone.join("l"), clone.join("m")).unwrap();
    let bump = both("", text, renamed, link("q.h"));
    let run = bump.run(&["drift", "--to", "files"]);
    run.assert_status(1);
    assert!(run.stdout().contains("upstream made it a symbolic link"), "{}", run.shown());
    bump.run(&["rebase", "--to", "files"]).assert_status(1);
    bump.run(&["rebase", "--skip", "other"]).assert_status(0);
}

fn deleted_renamed() {
    let text = |clone: &Path| fs::write(clone.join("l"), "one\ntwo\n").unwrap();
    let gone = |clone: &Path| fs::remove_file(clone.join("l")).unwrap();
    type Change = fn(&Path);
    let theirs: [(&str, Change); 3] = [
        ("upstream renamed the file to `m`", |clone| {
            fs::rename(clone.join("l"), clone.join("m")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(clone.join("m"), mode).unwrap();
        }),
        ("upstream renamed the file to `l.txt`", |clone| {
            fs::rename(clone.join("l"), clone.join("l.txt")).unwrap();
        }),
        ("upstream may have renamed the file to `m` or `n`", |clone| {
            fs::copy(clone.join("l"), clone.join("n")).unwrap();
            fs::rename(clone.join("l"), clone.join("m")).unwrap();
        }),
    ];
    for (told, theirs) in theirs {
        let bump = both(ONE_TWO, text, gone, theirs);
        let run = bump.run(&["drift", "--to", "files"]);
        run.assert_status(1);
        assert!(run.stdout().contains(told), "{}", run.shown());
        bump.run(&["rebase", "--to", "files"]).assert_status(1);
        bump.run(&["rebase", "--skip", "other"]).assert_status(0);
    }
}
