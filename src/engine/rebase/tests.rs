use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::session::{Session, State, Unresolved, work_folder};
use super::*;
use crate::apply::Ground;
use crate::contract::Contracts;
use crate::series::{Change, Entry, Forwarded, SERIES_FILE, Series};
use crate::snapshot::{MemoryTree, Mode, ObjectId, Tree};
use crate::stored::Place;

mod clashes;
mod remade;

const RENAME: &str = "\
diff --git a/a.cpp b/b.cpp
rename from a.cpp
rename to b.cpp
--- a/a.cpp
+++ b/b.cpp
@@ -1,5 +1,5 @@
 one
 two
-three
+three of ours
 four
 five
";
const EDIT: &str = "--- a/z.cpp\n+++ b/z.cpp\n@@ -1,3 +1,3 @@\n one\n-two\n+two of ours\n three\n";
const LINES: &str = "one\ntwo\nthree\nfour\nfive\n";

/// A file by its name, its mode and its text.
type Given<'g> = (&'g str, Mode, &'g str);

fn text<'g>(name: &'g str, text: &'g str) -> Given<'g> {
    (name, Mode::Regular, text)
}

fn tree(files: &[Given<'_>]) -> MemoryTree {
    let file = |(name, mode, text): &Given<'_>| {
        (TreePath::new(name).expect("plain"), File::new(*mode, text.as_bytes()))
    };
    MemoryTree(files.iter().map(file).collect())
}

fn entry(change: Change) -> Entry {
    Entry {
        name: "e".into(),
        change,
        group: "metal".into(),
        reason: "it must".into(),
        forwarded: Forwarded::No,
        applied_upstream: None,
        place: Place { file: SERIES_FILE.into(), line: 1 },
    }
}

fn series(folder: &Path, patch: &str) -> Series {
    let change = Change::Patch { path: "e.patch".into(), bytes: patch.into() };
    let folder = folder.to_path_buf();
    Series { folder, entries: vec![entry(change)], contracts: Contracts::default() }
}

/// A stop at a patch, what `edit` does to the work folder, and the target's tree
/// after it is taken; or what was in the way.
fn finished(
    ends: (&[Given<'_>], &[Given<'_>]),
    patch: &str,
    edit: impl FnOnce(&Path),
) -> Result<Vec<(String, Mode, String)>, Unresolved> {
    decided(ends, patch, edit).map(|(_, files)| files)
}

/// As `finished`, with the patch that is made.
#[expect(clippy::type_complexity, reason = "two answers of one run")]
fn decided(
    (pin, target): (&[Given<'_>], &[Given<'_>]),
    patch: &str,
    edit: impl FnOnce(&Path),
) -> Result<(String, Vec<(String, Mode, String)>), Unresolved> {
    let (pin, target) = (tree(pin), tree(target));
    let root = tempfile::tempdir().expect("a folder");
    let series = series(root.path(), patch);
    let ids = ["1", "2"].map(|d| d.repeat(40).parse::<ObjectId>().expect("an id"));
    let state = State::new(&series, ids[0], ids[1], "to", "");
    let mut session = Session::begin(root.path(), state).expect("none is under way");
    let id = ids[1].to_string();
    let names = Names { pin: "pin", target: "to", id: &id };
    let planned =
        |decisions: &Decisions| plan(&series, &pin, &target, names, decisions).expect("planned");
    let stop = planned(&Decisions::default()).stop.expect("it stops");
    let Stop::Entry { parts, .. } = stop else { panic!("{stop:?}") };
    session.stop("e", &parts).expect("written");
    edit(&work_folder(root.path()));
    let decision = session.taken(&parts).expect("read")?;
    session.decide("e", decision).expect("kept");
    let plan = planned(&session.state.decisions);
    let bytes = plan.entries[0].patch.clone().expect("a person's patch");
    let parsed = crate::patch::parse(&bytes).expect("it parses");
    let mut ground = Ground::mapped(&target, &target);
    let report = ground.apply("e", &parsed, 1).expect("judged");
    assert!(report.holds(), "{}", String::from_utf8_lossy(&bytes));
    let file = |path: TreePath| {
        let file = ground.target.file(&path).expect("memory").expect("listed");
        (path.to_string(), file.mode, String::from_utf8_lossy(&file.bytes).into_owned())
    };
    let files = ground.target.paths().into_iter().map(file).collect();
    Ok((String::from_utf8(bytes).expect("text"), files))
}

fn write(work: &Path, name: &str, text: &str) {
    fs::write(work.join(name), text).expect("written");
}

fn read(work: &Path, name: &str) -> String {
    fs::read_to_string(work.join(name)).expect("it is there")
}

fn found(name: &str, mode: Mode, text: &str) -> (String, Mode, String) {
    (name.into(), mode, text.into())
}

#[test]
fn a_rename_that_stops_is_finished_under_its_new_name() {
    let theirs = LINES.replace("three", "three of theirs");
    let files = finished((&[text("a.cpp", LINES)], &[text("a.cpp", &theirs)]), RENAME, |work| {
        let marked = read(work, "b.cpp");
        assert!(
            marked.contains("\nthree of theirs\n") && marked.contains("\n=======\n"),
            "{marked}"
        );
        write(work, "b.cpp", &LINES.replace("three", "three of both"));
    });
    let both = LINES.replace("three", "three of both");
    assert_eq!(files, Ok(vec![found("b.cpp", Mode::Regular, &both)]));
}

#[test]
fn a_file_that_holds_beside_one_that_does_not_keeps_what_is_made_of_it() {
    let link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.cpp\n\\ \
                No newline at end of file\n";
    let gone = "diff --git a/g b/g\ndeleted file mode 100644\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    let mode = "diff --git a/m b/m\nold mode 100644\nnew mode 100755\n";
    let patch = format!("diff --git a/z.cpp b/z.cpp\n{EDIT}{RENAME}{link}{gone}{mode}");
    // The renamed file moved a line down.
    let (moved, pin) = (format!("zero\n{LINES}"), "one\ntwo\nthree\n");
    let rest = [text("g", "gone\n"), text("m", "run\n")];
    let pin = [text("a.cpp", LINES), rest[0], rest[1], text("z.cpp", pin)];
    let target = [text("a.cpp", &moved), rest[0], rest[1], text("z.cpp", "one\n2\nthree\n")];
    let files = finished((&pin, &target), &patch, |work| {
        let mut there: Vec<_> = fs::read_dir(work).expect("a folder").flatten().collect();
        there.sort_by_key(fs::DirEntry::file_name);
        let there: Vec<_> = there.iter().map(|e| e.file_name()).collect();
        assert_eq!(there, ["m", "z.cpp"], "what can be edited");
        write(work, "z.cpp", "one\nboth\nthree\n");
    });
    let ours = moved.replace("three", "three of ours");
    let expected = vec![
        found("b.cpp", Mode::Regular, &ours),
        found("l", Mode::Symlink, "a.cpp"),
        found("m", Mode::Executable, "run\n"),
        found("z.cpp", Mode::Regular, "one\nboth\nthree\n"),
    ];
    assert_eq!(files, Ok(expected));
}

#[test]
fn a_mode_is_made_in_a_file_that_stops_and_a_person_can_change_it() {
    let patch = format!("diff --git a/z.cpp b/z.cpp\nold mode 100644\nnew mode 100755\n{EDIT}");
    let (pin, target) = ([text("z.cpp", "one\ntwo\nthree\n")], [text("z.cpp", "one\n2\nthree\n")]);
    for (runs, mode) in [(None, Mode::Executable), (Some(0o644), Mode::Regular)] {
        let files = finished((&pin, &target), &patch, |work| {
            let path = work.join("z.cpp");
            fs::write(&path, "one\nboth\nthree\n").expect("written");
            if let Some(bits) = runs {
                fs::set_permissions(&path, fs::Permissions::from_mode(bits)).expect("changed");
            }
        });
        assert_eq!(files, Ok(vec![found("z.cpp", mode, "one\nboth\nthree\n")]));
    }
}

#[test]
fn a_name_that_upstream_took_is_a_conflict_in_the_file() {
    let pin = [text("a.cpp", LINES)];
    let target = [text("a.cpp", LINES), text("b.cpp", "theirs\n")];
    let files = finished((&pin, &target), RENAME, |work| {
        let marked = read(work, "b.cpp");
        assert!(marked.contains("\ntheirs\n") && marked.contains("three of ours"), "{marked}");
        write(work, "b.cpp", "both\n");
    });
    assert_eq!(files, Ok(vec![found("b.cpp", Mode::Regular, "both\n")]));
}

#[test]
fn a_file_that_both_sides_renamed_gets_the_entry_s_name() {
    let theirs = LINES.replace("five", "5");
    let (pin, target) = ([text("a.cpp", LINES)], [text("c.cpp", &theirs)]);
    let both = theirs.replace("three", "three of ours");
    let files = finished((&pin, &target), RENAME, |work| {
        assert!(read(work, "b.cpp").contains(">>>>>>> e"), "the name is open");
        write(work, "b.cpp", &both);
    });
    assert_eq!(files, Ok(vec![found("b.cpp", Mode::Regular, &both)]));
}

#[test]
fn two_patches_of_one_file_are_marked_by_hunk() {
    let lines = |changed: &[(usize, &str)]| -> String {
        let line = |n| match changed.iter().find(|(at, _)| *at == n) {
            Some((_, text)) => format!("{text}\n"),
            None => format!("{n}\n"),
        };
        (1..41).map(line).collect()
    };
    let hunk = |at: usize, from: &str, to: &str| {
        let (first, context) =
            (at - 3, |from: usize| format!(" {from}\n {}\n {}\n", from + 1, from + 2));
        format!(
            "@@ -{first},7 +{first},7 @@\n{}-{from}\n+{to}\n{}",
            context(first),
            context(at + 1)
        )
    };
    let head = "--- a/z.cpp\n+++ b/z.cpp\n";
    // The second mail changes a line that the first made.
    let patch = format!(
        "{}{head}{}-- \n2.40.0\n\n{}{head}{}{}-- \n2.40.0\n\n",
        mail("one"),
        hunk(8, "8", "8 of ours"),
        mail("two"),
        hunk(8, "8 of ours", "8 at last"),
        hunk(30, "30", "30 of ours")
    );
    let pin = lines(&[]);
    let theirs = lines(&[(8, "8 of theirs"), (20, "20 of theirs")]);
    let both = lines(&[(8, "8 of both"), (20, "20 of theirs"), (30, "30 of ours")]);
    let ends = (&[text("z.cpp", &pin)][..], &[text("z.cpp", &theirs)][..]);
    let (made, files) = decided(ends, &patch, |work| {
        let marked = read(work, "z.cpp");
        let open = "7\n<<<<<<< upstream to\n8 of theirs\n||||||| pin pin\n8\n=======\n8 at last\n\
                    >>>>>>> e\n9\n";
        assert!(marked.contains(open), "{marked}");
        assert!(
            marked.contains("\n20 of theirs\n") && marked.contains("\n30 of ours\n31\n"),
            "{marked}"
        );
        assert_eq!(marked.matches("<<<<<<<").count(), 1, "{marked}");
        write(work, "z.cpp", &both);
    })
    .expect("taken");
    assert_eq!(files, [found("z.cpp", Mode::Regular, &both)]);
    for (kept, times) in [("Subject: one\n", 1), ("Subject: two\n", 1), ("-- \n2.40.0\n\n", 1)] {
        assert_eq!(made.matches(kept).count(), times, "{kept}\n{made}");
    }
}

#[test]
fn a_line_of_equal_signs_that_is_the_file_s_own_is_no_marker() {
    let (pin, target) = ("T\n=======\none\ntwo\nthree\n", "T\n=======\none\n2\nthree\n");
    let (pin, target) = ([text("z.cpp", pin)], [text("z.cpp", target)]);
    let patch = EDIT.replace("@@ -1,3 +1,3 @@", "@@ -3,3 +3,3 @@");
    let made = "T\n=======\none\nboth\nthree\n";
    let files = finished((&pin, &target), &patch, |work| write(work, "z.cpp", made));
    assert_eq!(files, Ok(vec![found("z.cpp", Mode::Regular, made)]));
    let left = finished((&pin, &target), &patch, |work| {
        write(work, "z.cpp", &format!("{made}>>>>>>> e\n"));
    });
    assert!(matches!(left, Err(Unresolved::Marker { line: 6, .. })), "{left:?}");
}

#[test]
fn a_file_left_as_it_was_written_settles_nothing() {
    let (pin, target) = ([text("a.cpp", LINES)], [text("a.cpp", LINES), text("b.cpp", "theirs\n")]);
    let left = finished((&pin, &target), RENAME, |_| {});
    assert!(matches!(left, Err(Unresolved::Marker { .. })), "{left:?}");
}

#[test]
fn a_copy_that_stops_leaves_its_source() {
    let copy = RENAME.replace("rename", "copy");
    let theirs = LINES.replace("three", "three of theirs");
    let files = finished((&[text("a.cpp", LINES)], &[text("a.cpp", &theirs)]), &copy, |work| {
        assert!(read(work, "b.cpp").contains("\nthree of theirs\n"), "upstream's side");
        write(work, "b.cpp", "both\n");
    });
    let expected =
        vec![found("a.cpp", Mode::Regular, &theirs), found("b.cpp", Mode::Regular, "both\n")];
    assert_eq!(files, Ok(expected));
}

#[test]
fn files_that_several_patches_move_end_where_the_entry_ends() {
    let again = RENAME.replace("b.cpp", "c.cpp").replace("a.cpp", "b.cpp");
    let again = again.replace("-three\n+three of ours", "-three of ours\n+three at last");
    let patch = format!("{RENAME}{again}{EDIT}");
    let z = |text_of| text("z.cpp", text_of);
    let (pin, target) = ([text("a.cpp", LINES), z("one\ntwo\nthree\n")], "one\n2\nthree\n");
    let files = finished((&pin, &[pin[0], z(target)]), &patch, |work| {
        write(work, "z.cpp", "one\nboth\nthree\n");
    });
    let last = LINES.replace("three", "three at last");
    let expected =
        [found("c.cpp", Mode::Regular, &last), found("z.cpp", Mode::Regular, "one\nboth\nthree\n")];
    assert_eq!(files, Ok(expected.to_vec()));
}

#[test]
fn a_rename_whose_lines_moved_stays_one() {
    let (pin, target) =
        (tree(&[text("a.cpp", LINES)]), tree(&[text("a.cpp", &format!("0\n{LINES}"))]));
    let series = series(Path::new(""), RENAME);
    let names = Names { pin: "pin", target: "to", id: "to" };
    let plan = plan(&series, &pin, &target, names, &Decisions::default()).expect("planned");
    assert!(!matches!(plan.stop, Some(Stop::Entry { .. })), "{plan:?}");
    let patch =
        String::from_utf8(plan.entries[0].patch.clone().expect("made again")).expect("text");
    assert!(patch.contains("rename from a.cpp\nrename to b.cpp\n"), "{patch}");
    assert!(patch.contains("@@ -1,6 +1,6 @@") || patch.contains("@@ -1,7 +1,7 @@"), "{patch}");
}

#[test]
fn of_a_rename_that_upstream_made_too_the_edits_are_left() {
    let far = format!("{LINES}six\nseven\neight\nnine\n");
    let theirs = far.replace("nine", "nine of theirs");
    let rename = RENAME.replace("-1,5 +1,5", "-1,6 +1,6").replace(" five\n", " five\n six\n");
    let only = rename.split_inclusive('\n').take(3).collect::<String>();
    let made = |patch: &str, target: Given<'_>| {
        let (pin, target) = (tree(&[text("a.cpp", &far)]), tree(&[target]));
        let mut series = series(Path::new(""), patch);
        if patch.contains("-three") {
            let note = "entry = 'e'\nfile = 'a.cpp'\nremoves = ['three']\nreason = 'r'";
            series.contracts.note = vec![toml::from_str(note).expect("a note")];
        }
        let names = Names { pin: "pin", target: "to", id: "to" };
        let plan = plan(&series, &pin, &target, names, &Decisions::default()).expect("planned");
        let stops = plan.stop.is_some();
        let patch = plan.entries.first().and_then(|entry| entry.patch.clone()).unwrap_or_default();
        (stops, String::from_utf8(patch).expect("text"))
    };
    for target in [&theirs, &far] {
        let (stops, patch) = made(&rename, text("b.cpp", target));
        assert!(!stops && !patch.contains("rename"), "{patch}");
        let laid = tree(&[text("b.cpp", target)]);
        let mut ground = Ground::mapped(&laid, &laid);
        let parsed = crate::patch::parse(patch.as_bytes()).expect("a patch");
        assert!(ground.apply("e", &parsed, 1).expect("judged").holds(), "{patch}");
        let file = ground.target.file(&TreePath::new("b.cpp").expect("plain"));
        let bytes = file.expect("in memory").expect("there").bytes;
        assert_eq!(bytes[..], *target.replace("three", "three of ours").as_bytes());
    }
    // Nothing is left where upstream made the edits too.
    let all = theirs.replace("three", "three of ours");
    assert_eq!(made(&rename, text("b.cpp", &all)), (false, String::new()));
    assert_eq!(made(&only, text("b.cpp", &theirs)), (false, String::new()));
    // Where it changed the lines, or took another name, a person has to look.
    let other = theirs.replace("three", "3");
    assert!(made(&rename, text("b.cpp", &other)).0);
    assert!(made(&rename, text("c.cpp", &theirs)).0);
    let copy = rename.replace("rename from", "copy from").replace("rename to", "copy to");
    assert!(made(&copy, text("b.cpp", &theirs)).0);
}

#[test]
fn of_a_file_that_the_entry_deletes_nothing_is_left_by_an_empty_one() {
    let patch = "--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    let (pin, target) = ([text("g", "gone\n")], [text("g", "changed\n")]);
    let empty = finished((&pin, &target), patch, |work| write(work, "g", ""));
    let removed = finished((&pin, &target), patch, |work| {
        fs::remove_file(work.join("g")).expect("removed");
    });
    assert_eq!((empty, removed), (Ok(Vec::new()), Ok(Vec::new())));
}

/// The head of a mail with this subject.
fn mail(subject: &str) -> String {
    format!("From {} Mon Sep 17 00:00:00 2001\nSubject: {subject}\n\n---\n", "1".repeat(40))
}

/// The rename's edit alone.
fn edit_a() -> String {
    RENAME.replace("rename from a.cpp\nrename to b.cpp\n", "").replace("b.cpp", "a.cpp")
}

const TO_Z: &str = "\
diff --git a/a.cpp b/z.cpp
similarity index 100%
rename from a.cpp
rename to z.cpp
";

#[test]
fn a_file_that_the_entry_changed_and_then_moved_meets_what_upstream_made_of_it() {
    let patch = [mail("one"), edit_a(), mail("two"), TO_Z.into()].concat();
    let pin = [text("a.cpp", LINES)];
    let theirs = LINES.replace("three", "three of theirs");
    let both = LINES.replace("three", "three of both");
    for name in ["a.cpp", "y.cpp"] {
        let target = [text(name, &theirs)];
        let left = finished((&pin, &target), &patch, |work| {
            let marked = read(work, "z.cpp");
            for side in ["\nthree of theirs\n", "\nthree\n", "\nthree of ours\n"] {
                assert!(marked.contains(side), "{name}: {marked}");
            }
            assert_eq!(fs::read_dir(work).expect("a folder").count(), 1);
        });
        assert!(matches!(left, Err(Unresolved::Marker { .. })), "{name}: {left:?}");
        let files = finished((&pin, &target), &patch, |work| write(work, "z.cpp", &both));
        assert_eq!(files, Ok(vec![found("z.cpp", Mode::Regular, &both)]), "{name}");
    }
    // Upstream took it away.
    let left = finished((&pin, &[]), &patch, |_| {});
    assert!(matches!(left, Err(Unresolved::Marker { .. })), "{left:?}");
}

#[test]
fn a_file_that_the_entry_changed_and_then_deletes_is_open_where_upstream_moved_it() {
    let gone = "diff --git a/a.cpp b/a.cpp\ndeleted file mode 100644\n--- a/a.cpp\n+++ /dev/null\n\
                @@ -1,5 +0,0 @@\n-one\n-two\n-three of ours\n-four\n-five\n";
    let two = [mail("one"), edit_a(), mail("two"), gone.into()].concat();
    let one = gone.replace("three of ours", "three");
    let changed = LINES.replace("one", "one of theirs");
    for (patch, name, kept) in [
        (&two, "y.cpp", LINES),
        (&two, "y.hpp", &changed),
        (&one, "y.cpp", &changed),
        (&one, "y.hpp", &changed),
    ] {
        let (pin, target) = ([text("a.cpp", LINES)], [text(name, kept)]);
        let left = finished((&pin, &target), patch, |_| {});
        assert!(matches!(left, Err(Unresolved::Marker { .. })), "{name}: {left:?}");
        let files = finished((&pin, &target), patch, |work| {
            fs::remove_file(work.join(name)).expect("removed");
        });
        assert_eq!(files, Ok(Vec::new()), "{name}");
    }
}

#[test]
fn files_of_several_patches_that_hold_keep_what_upstream_did_and_every_mail_its_prose() {
    let second = "diff --git a/a.cpp b/b.cpp\nrename from a.cpp\nrename to b.cpp\n--- a/a.cpp\n\
                  +++ b/b.cpp\n@@ -1,3 +1,3 @@\n-one\n+one of ours\n two\n three of ours\n";
    let patch = [&mail("one"), &edit_a(), EDIT, &mail("two"), second].concat();
    let far = format!("{LINES}six\nseven\neight\nnine\n");
    let theirs = far.replace("nine", "nine of theirs");
    let z = |text_of| text("z.cpp", text_of);
    let pin = [text("a.cpp", &far), z("one\ntwo\nthree\n")];
    let target = [text("a.cpp", &theirs), z("one\n2\nthree\n")];
    let patch = patch.replace(
        "@@ -1,5 +1,5 @@\n one\n two\n-three\n+three of ours\n four\n five\n",
        "@@ -1,6 +1,6 @@\n one\n two\n-three\n+three of ours\n four\n five\n six\n",
    );
    let (made, files) = decided((&pin, &target), &patch, |work| {
        assert_eq!(fs::read_dir(work).expect("a folder").count(), 1, "the move holds");
        write(work, "z.cpp", "one\nboth\nthree\n");
    })
    .expect("taken");
    let moved = theirs.replace("one", "one of ours").replace("three", "three of ours");
    let expected = [
        found("b.cpp", Mode::Regular, &moved),
        found("z.cpp", Mode::Regular, "one\nboth\nthree\n"),
    ];
    assert_eq!(files, expected);
    for kept in ["Subject: one\n", "Subject: two\n", "rename from a.cpp\nrename to b.cpp\n"] {
        assert_eq!(made.matches(kept).count(), 1, "{kept}\n{made}");
    }
}

#[test]
fn a_line_of_equal_signs_in_a_resolution_is_a_heading() {
    let (pin, target) = ([text("z.cpp", "one\ntwo\nthree\n")], [text("z.cpp", "one\n2\nthree\n")]);
    let made = "one\nInstall\n=======\nthree\n";
    let files = finished((&pin, &target), EDIT, |work| write(work, "z.cpp", made));
    assert_eq!(files, Ok(vec![found("z.cpp", Mode::Regular, made)]));
    let left = finished((&pin, &target), EDIT, |work| {
        write(work, "z.cpp", &format!("{made}>>>>>>> e\n"));
    });
    assert!(matches!(left, Err(Unresolved::Marker { line: 3, .. })), "{left:?}");
    // Nor are lines that upstream's file has of its own.
    let quoted = [text("z.cpp", "one\n2\nthree\n>>>>>>> quoted\n")];
    let made = "one\nboth\nthree\n>>>>>>> quoted\n";
    let files = finished((&pin, &quoted), EDIT, |work| write(work, "z.cpp", made));
    assert_eq!(files, Ok(vec![found("z.cpp", Mode::Regular, made)]));
}

#[test]
fn a_file_where_the_entry_has_a_folder_is_chosen() {
    let patch = "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n\
                 -one\ndiff --git a/a/q b/a/q\nnew file mode 100644\n--- /dev/null\n+++ b/a/q\n\
                 @@ -0,0 +1 @@\n+ours\n";
    let (pin, target) = ([text("a", "one\n")], [text("a", "theirs\n")]);
    let left = finished((&pin, &target), patch, |work| {
        assert_eq!(fs::read_dir(work).expect("a folder").count(), 0, "nothing is chosen");
        let side = |name: &str| fs::read_to_string(work.with_file_name("sides").join(name));
        assert_eq!(side("upstream/a").expect("there"), "theirs\n");
        assert_eq!(side("entry/a/q").expect("there"), "ours\n");
    });
    assert!(matches!(left, Err(Unresolved::Unchosen { .. })), "{left:?}");
    let files = finished((&pin, &target), patch, |work| {
        fs::create_dir(work.join("a")).expect("made");
        write(work, "a/q", "both\n");
    });
    assert_eq!(files, Ok(vec![found("a/q", Mode::Regular, "both\n")]));
    let files = finished((&pin, &target), patch, |work| write(work, "a", "both\n"));
    assert_eq!(files, Ok(vec![found("a", Mode::Regular, "both\n")]));
    let none = finished((&pin, &target), patch, |work| write(work, "a", "theirs\n"));
    assert_eq!(none, Err(Unresolved::Nothing));
}

#[test]
fn a_folder_where_the_entry_has_a_file_is_chosen() {
    let patch = "diff --git a/d b/d\nnew file mode 100644\n--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+ours\n\
                 diff --git a/d/one b/d/one\ndeleted file mode 100644\n--- a/d/one\n+++ /dev/null\n\
                 @@ -1 +0,0 @@\n-one\n";
    let (pin, target) = ([text("d/one", "one\n")], [text("d/one", "theirs\n")]);
    let files = finished((&pin, &target), patch, |work| write(work, "d", "both\n"));
    assert_eq!(files, Ok(vec![found("d", Mode::Regular, "both\n")]));
    let files = finished((&pin, &target), patch, |work| {
        fs::create_dir(work.join("d")).expect("made");
        write(work, "d/one", "both\n");
    });
    assert_eq!(files, Ok(vec![found("d/one", Mode::Regular, "both\n")]));
}

#[test]
fn a_mode_that_upstream_made_in_a_file_it_renamed_has_landed() {
    let patch = "diff --git a/m b/m\nold mode 100644\nnew mode 100755\n";
    let (pin, target) = (tree(&[text("m", LINES)]), tree(&[("n", Mode::Executable, LINES)]));
    for patch in [patch.to_owned(), format!("From: me\nSubject: run it\n\n---\n m | 0\n\n{patch}")]
    {
        let root = tempfile::tempdir().expect("a folder");
        let series = series(root.path(), &patch);
        let names = Names { pin: "pin", target: "to", id: &"2".repeat(40) };
        let plan = plan(&series, &pin, &target, names, &Decisions::default()).expect("planned");
        assert!(plan.is_whole(), "{:?}", plan.stop);
        assert!(!plan.entries[0].outcome.stays(), "{:?}", plan.entries[0].outcome);
    }
}
