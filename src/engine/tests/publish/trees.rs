//! What publishing keeps, what it refuses, and what a look at a tree tells.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use mlx_overlay_engine::disk::DiskTree;
use mlx_overlay_engine::publish::{
    Action, Depth, Finding, Force, Identity, Options, Partial, PublishError, STAMP, StampError,
    edit_in_place, is_current, mend_edit, plan, publish, survey, write_new,
};
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode, ObjectId, Snapshot};

use crate::sample::{
    Test, after, assert_whole, before, edits, identity, lay, marks, path, read, tree,
};

pub const TESTS: &[Test] = &[
    ("a_second_publication_touches_nothing", nothing_to_do),
    ("an_update_leaves_what_stays", update),
    ("edits_over_a_published_tree_are_an_update", snapshot_over_snapshot),
    ("a_plan_writes_nothing", plan_only),
    ("a_hand_edit_is_named_and_kept_without_force", hand_edit),
    ("an_edit_of_the_same_size_within_one_tick_is_found", racy),
    ("what_hides_behind_an_old_time_is_found_by_hashing", verify_finds_more),
    ("foreign_files_are_named_and_kept", foreign),
    ("a_foreign_file_in_the_way_is_not_overwritten", foreign_in_the_way),
    ("marks_of_the_tree_are_findings", marks_are_findings),
    ("a_place_that_is_not_ours_is_left_alone", not_ours),
    ("a_damaged_or_newer_stamp_is_refused", stamps),
    ("a_lost_stamp_is_made_again_under_force", lost_stamp),
    ("an_edit_whose_time_was_set_back_is_not_written_over", edit_with_its_time_set_back),
    ("trees_that_no_folder_can_hold_are_refused", impossible),
    ("links_are_written_as_links_and_never_followed", links),
    ("an_edit_in_place_touches_only_its_files", edit_only),
    ("an_edit_in_place_is_refused_when_a_file_changed", edit_changed),
    ("a_failed_edit_in_place_is_undone", edit_undone),
    ("a_broken_off_edit_of_files_changed_since_is_left_to_a_person", edit_tangled),
];

fn place() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("tree");
    (dir, dest)
}

fn findings(dest: &Path) -> Vec<String> {
    survey(dest, Depth::Stat).unwrap().findings.iter().map(ToString::to_string).collect()
}

fn forced() -> Options<'static> {
    Options { force: Force::Overwrite, ..Options::default() }
}

fn nothing_to_do() {
    let (_dir, dest) = place();
    assert!(!is_current(&dest, &identity("s")).unwrap());
    let first = lay(&dest, &before(), "s");
    assert_eq!((first.plan.action, first.plan.write.len()), (Action::Create, 8));
    assert_whole(&dest);
    let as_it_was = (marks(&dest), fs::metadata(dest.join(STAMP)).unwrap().ino());
    assert!(is_current(&dest, &identity("s")).unwrap());
    assert!(!is_current(&dest, &identity("other")).unwrap());
    let second = lay(&dest, &before(), "s");
    assert_eq!((second.plan.action, second.plan.keep), (Action::Nothing, 8));
    assert_eq!((marks(&dest), fs::metadata(dest.join(STAMP)).unwrap().ino()), as_it_was);
    // Another series that comes to the same files: the stamp alone.
    assert_eq!(lay(&dest, &before(), "other").plan.action, Action::Restamp);
    assert_eq!(marks(&dest), as_it_was.0);
    assert!(is_current(&dest, &identity("other")).unwrap());
}

fn update() {
    let (_dir, dest) = place();
    lay(&dest, &before(), "before");
    let old = marks(&dest);
    let published = lay(&dest, &after(), "after");
    assert_eq!(published.plan.action, Action::Update);
    assert_eq!(published.plan.keep, 2);
    assert_eq!(
        published.plan.remove,
        [path("mlx/gone.h"), path("mlx/was_a_file"), path("mlx/was_a_folder/a")]
    );
    assert_eq!(read(&dest), after());
    assert_whole(&dest);
    for name in ["CMakeLists.txt", "mlx/array.h"] {
        assert_eq!(marks(&dest)[&dest.join(name)], old[&dest.join(name)]);
    }
    assert_eq!(fs::metadata(dest.join("CMakeLists.txt")).unwrap().nlink(), 1);
    let mode = fs::metadata(dest.join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o100, 0o100);
}

fn snapshot_over_snapshot() {
    let (_dir, dest) = place();
    let below = before();
    lay(&dest, &below, "before");
    let mut edited = Snapshot::new(&below);
    edited.put(path("mlx/quantized.h"), File::new(Mode::Regular, *b"new\n"));
    edited.put(path("mlx/array.h"), File::new(Mode::Regular, *b"struct array;\n"));
    edited.remove(path("mlx/gone.h"));
    let published = publish(&dest, &edited, &identity("s"), &Options::default()).unwrap();
    assert_eq!(published.plan.write, [path("mlx/quantized.h")]);
    assert_eq!(published.plan.remove, [path("mlx/gone.h")]);
    assert_whole(&dest);
}

fn plan_only() {
    let (dir, dest) = place();
    let fresh = plan(&dest, &before(), &identity("s"), Force::Refuse).unwrap();
    assert_eq!(fresh.action, Action::Create);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    lay(&dest, &before(), "s");
    let next = plan(&dest, &after(), &identity("t"), Force::Refuse).unwrap();
    assert_eq!(next.action, Action::Update);
    assert_eq!(read(&dest), before());
    assert_eq!(lay(&dest, &after(), "t").plan, next);
}

fn hand_edit() {
    let (_dir, dest) = place();
    lay(&dest, &before(), "s");
    fs::write(dest.join("mlx/array.h"), "struct mine;\n").unwrap();
    fs::remove_file(dest.join("mlx/gone.h")).unwrap();
    fs::set_permissions(dest.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let named = [
        "`mlx/array.h` modified",
        "`mlx/gone.h` missing",
        "`run.sh` has mode 100755 instead of 100644",
    ];
    assert_eq!(findings(&dest), named);
    assert!(!is_current(&dest, &identity("s")).unwrap());
    for series in ["s", "t"] {
        match publish(&dest, &before(), &identity(series), &Options::default()) {
            Err(error @ PublishError::HandEdited { .. }) => {
                let text = error.to_string();
                assert!(text.contains(named[0]) && text.contains(named[2]), "{text}");
                assert!(!text.contains(named[1]), "putting back loses nothing: {text}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fs::read(dest.join("mlx/array.h")).unwrap(), b"struct mine;\n");

    let published = publish(&dest, &before(), &identity("s"), &forced()).unwrap();
    assert_eq!(published.plan.overwrite.len(), 2);
    assert_eq!(read(&dest), before());
    assert_whole(&dest);

    fs::remove_file(dest.join("mlx/gone.h")).unwrap();
    let put_back = lay(&dest, &before(), "s");
    assert_eq!(put_back.plan.write, [path("mlx/gone.h")]);
    assert_whole(&dest);
}

fn racy() {
    // Of one size, and as near in time as can be.
    for _ in 0..20 {
        let (_dir, dest) = place();
        lay(&dest, &before(), "s");
        fs::write(dest.join("mlx/quantized.h"), "bad\n").unwrap();
        assert_eq!(findings(&dest), ["`mlx/quantized.h` modified"]);
    }
}

fn verify_finds_more() {
    let (_dir, dest) = place();
    lay(&dest, &before(), "s");
    // A later stamp, so that no file counts as racy.
    std::thread::sleep(std::time::Duration::from_millis(20));
    lay(&dest, &before(), "t");
    let file = dest.join("mlx/quantized.h");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "bad\n").unwrap();
    let times = fs::FileTimes::new().set_modified(time);
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_times(times).unwrap();
    let quick = survey(&dest, Depth::Stat).unwrap();
    assert_eq!((quick.findings.len(), quick.hashed), (0, 0));
    let whole = survey(&dest, Depth::Hash).unwrap();
    assert_eq!(whole.hashed, 8);
    assert_eq!(
        whole.findings,
        [Finding::Modified {
            path: path("mlx/quantized.h"),
            expected: ObjectId::of_blob(b"old\n"),
            found: ObjectId::of_blob(b"bad\n"),
        }]
    );
}

fn foreign() {
    let (_dir, dest) = place();
    lay(&dest, &before(), "s");
    fs::create_dir_all(dest.join("build/deep")).unwrap();
    fs::write(dest.join("build/deep/a.o"), "1").unwrap();
    fs::write(dest.join("build/b.o"), "2").unwrap();
    fs::write(dest.join("mlx/.array.h.swp"), "3").unwrap();
    fs::create_dir_all(dest.join("mlx/.git/objects")).unwrap();
    fs::write(dest.join("mlx/.git/objects/x"), "4").unwrap();
    symlink("/etc", dest.join("etc")).unwrap();
    // A repository's `refs/` holds empty folders, and git wants them.
    fs::create_dir_all(dest.join("mlx/.git/refs/heads")).unwrap();
    fs::create_dir_all(dest.join("empty")).unwrap();
    fs::set_permissions(dest.join("build"), Permissions::from_mode(0o700)).unwrap();
    let named = ["build/", "etc", "mlx/.array.h.swp", "mlx/.git/"];
    assert_eq!(findings(&dest), named.map(|n| format!("`{n}` is not of the tree")));
    assert!(survey(&dest, Depth::Hash).unwrap().is_whole());
    assert!(is_current(&dest, &identity("s")).unwrap(), "they do not make it stale");
    for options in [Options::default(), forced()] {
        let next = if options.force == Force::Refuse { after() } else { before() };
        let published = publish(&dest, &next, &identity("t"), &options).unwrap();
        assert_eq!(published.plan.foreign, named);
        assert_eq!(fs::read(dest.join("build/deep/a.o")).unwrap(), b"1");
        assert_eq!(fs::read(dest.join("mlx/.git/objects/x")).unwrap(), b"4");
        assert_eq!(fs::read_link(dest.join("etc")).unwrap(), Path::new("/etc"));
        assert!(dest.join("mlx/.git/refs/heads").is_dir() && dest.join("empty").is_dir());
        let mode = fs::metadata(dest.join("build")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(survey(&dest, Depth::Hash).unwrap().is_whole());
    }
}

fn foreign_in_the_way() {
    for (mine, folder) in [("mlx/new.h", "mlx"), ("mlx/new.h/notes", "mlx/new.h")] {
        let (_dir, dest) = place();
        lay(&dest, &before(), "s");
        fs::create_dir_all(dest.join(folder)).unwrap();
        fs::write(dest.join(mine), "mine").unwrap();
        match publish(&dest, &after(), &identity("t"), &Options::default()) {
            Err(PublishError::HandEdited { findings, .. }) => {
                assert_eq!(findings, [Finding::Extra { path: mine.into() }]);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read(dest.join(mine)).unwrap(), b"mine");
        publish(&dest, &after(), &identity("t"), &forced()).unwrap();
        assert_eq!(read(&dest), after());
        assert_whole(&dest);
    }
}

fn marks_are_findings() {
    let (_dir, dest) = place();
    let partial = Partial { have: 870, of: 933 };
    let marked = Identity {
        partial: Some(partial),
        trial: Some("crate:mlxrs-sys@0.2.0".into()),
        ..identity("s")
    };
    publish(&dest, &before(), &marked, &Options::default()).unwrap();
    assert!(is_current(&dest, &marked).unwrap());
    assert!(!is_current(&dest, &identity("s")).unwrap());
    let of = "crate:mlxrs-sys@0.2.0".into();
    let found = survey(&dest, Depth::Stat).unwrap();
    assert_eq!(found.findings, [Finding::Partial(partial), Finding::Trial { of }]);
    assert_eq!(found.stamp.identity, marked);

    let stamp = fs::read_to_string(dest.join(STAMP)).unwrap();
    let ours = format!("\"engine\":\"{}\"", mlx_overlay_engine::publish::ENGINE);
    assert!(stamp.contains(&ours));
    fs::write(dest.join(STAMP), stamp.replace(&ours, "\"engine\":\"0.0.1\"")).unwrap();
    assert!(!is_current(&dest, &marked).unwrap());
    assert!(findings(&dest)[0].starts_with("laid by engine 0.0.1"));
    let again = publish(&dest, &before(), &marked, &Options::default()).unwrap();
    assert_eq!(again.plan.action, Action::Restamp);
    assert!(is_current(&dest, &marked).unwrap());
}

fn not_ours() {
    let (dir, dest) = place();
    let refused = |dest: &Path| {
        let force = publish(dest, &before(), &identity("s"), &forced()).unwrap_err();
        let new = write_new(dest, &before(), &forced()).unwrap_err();
        [force, new]
    };
    fs::create_dir(&dest).unwrap();
    fs::write(dest.join("thesis.tex"), "years").unwrap();
    let [force, new] = refused(&dest);
    assert!(matches!(force, PublishError::NotOurs { .. }), "{force}");
    assert!(matches!(new, PublishError::NotFree { .. }), "{new}");
    assert_eq!(fs::read(dest.join("thesis.tex")).unwrap(), b"years");

    let link = dir.path().join("link");
    symlink(&dest, &link).unwrap();
    for error in refused(&link).into_iter().chain(refused(&dest.join("thesis.tex"))) {
        assert!(matches!(error, PublishError::NotAFolder { .. }), "{error}");
    }
    for error in refused(Path::new("/")).into_iter().chain(refused(&dest.join(".."))) {
        assert!(matches!(error, PublishError::Nameless { .. }), "{error}");
    }
    assert!(matches!(
        survey(&dest, Depth::Stat),
        Err(PublishError::Stamp(StampError::Missing { .. }))
    ));
    // No lock or work folder stays behind a refusal.
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["link", "tree"]);

    // An empty folder is free, and a published tree is not for `write_new`.
    fs::remove_file(dest.join("thesis.tex")).unwrap();
    lay(&dest, &before(), "s");
    let error = write_new(&dest, &after(), &forced()).unwrap_err();
    assert!(matches!(error, PublishError::NotFree { .. }), "{error}");
    assert_eq!(read(&dest), before());
}

fn stamps() {
    let (_dir, dest) = place();
    lay(&dest, &before(), "s");
    let good = fs::read_to_string(dest.join(STAMP)).unwrap();
    type IsRight = fn(&StampError) -> bool;
    let bad: [(String, IsRight); 4] = [
        (good[..good.len() / 2].into(), |e| matches!(e, StampError::Damaged { .. })),
        ("{}".into(), |e| matches!(e, StampError::Damaged { .. })),
        (good.replace("mlx/array.h", "../array.h"), |e| matches!(e, StampError::Damaged { .. })),
        (good.replace("\"version\":1", "\"version\":2"), |e| {
            matches!(e, StampError::Version { version: 2, .. })
        }),
    ];
    for (text, is_right) in bad {
        fs::write(dest.join(STAMP), text).unwrap();
        match publish(&dest, &after(), &identity("s"), &Options::default()) {
            Err(PublishError::Stamp(error)) => assert!(is_right(&error), "{error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(read(&dest), before());
    }
}

fn edit_with_its_time_set_back() {
    let (_dir, dest) = place();
    lay(&dest, &before(), "s");
    let file = dest.join("mlx/quantized.h");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    let text = fs::read(&file).unwrap();
    let edited: Vec<u8> = text.iter().map(|b| b.to_ascii_uppercase()).collect();
    assert_ne!(text, edited);
    fs::write(&file, &edited).unwrap();
    let times = fs::FileTimes::new().set_modified(time);
    fs::File::options().write(true).open(&file).unwrap().set_times(times).unwrap();
    let refused = publish(&dest, &after(), &identity("t"), &Options::default()).unwrap_err();
    assert!(matches!(refused, PublishError::HandEdited { .. }), "{refused}");
    assert_eq!(fs::read(&file).unwrap(), edited);
}

fn lost_stamp() {
    let (_dir, dest) = place();
    lay(&dest, &before(), "s");
    fs::write(dest.join("mine"), "mine").unwrap();
    fs::write(dest.join("mlx/array.h"), "edited").unwrap();
    let kept = fs::metadata(dest.join("run.sh")).unwrap().ino();
    fs::write(dest.join(STAMP), "{").unwrap();
    let done = publish(&dest, &before(), &identity("s"), &forced()).unwrap();
    assert_eq!((done.plan.action, done.plan.write), (Action::Update, vec![path("mlx/array.h")]));
    assert!(matches!(&done.plan.overwrite[..], [Finding::Modified { .. }]));
    assert_eq!(fs::read(dest.join("mine")).unwrap(), b"mine");
    assert_eq!(fs::metadata(dest.join("run.sh")).unwrap().ino(), kept);
    assert!(is_current(&dest, &identity("s")).unwrap());

    // All is as it is to be: the stamp alone is written.
    fs::write(dest.join(STAMP), "{").unwrap();
    let done = publish(&dest, &before(), &identity("s"), &forced()).unwrap();
    assert_eq!((done.plan.action, done.plan.overwrite), (Action::Restamp, vec![]));
    assert_eq!(fs::metadata(dest.join("run.sh")).unwrap().ino(), kept);
    assert!(is_current(&dest, &identity("s")).unwrap());
}

fn impossible() {
    let (dir, dest) = place();
    let both = tree(&[("a", Mode::Regular, ""), ("a/b", Mode::Regular, "")]);
    let error = publish(&dest, &both, &identity("s"), &Options::default()).unwrap_err();
    assert!(matches!(error, PublishError::FileIsFolder { .. }), "{error}");
    let names = [STAMP, ".OVERLAY-edit/journal.json"];
    for tree in names.map(|n| tree(&[(n, Mode::Regular, "")])) {
        let error = write_new(&dest, &tree, &Options::default()).unwrap_err();
        assert!(matches!(error, PublishError::Reserved { .. }), "{error}");
    }
    // A failure halfway, a link without a target, leaves nothing.
    let bad = tree(&[("a", Mode::Regular, "1"), ("b", Mode::Symlink, "")]);
    let error = publish(&dest, &bad, &identity("s"), &Options::default()).unwrap_err();
    assert!(matches!(error, PublishError::Io { .. }), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

fn links() {
    let (dir, dest) = place();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let link = tree(&[("sub", Mode::Symlink, "../outside"), ("x", Mode::Regular, "x")]);
    lay(&dest, &link, "s");
    assert_eq!(fs::read_link(dest.join("sub")).unwrap(), Path::new("../outside"));
    let folder = tree(&[("sub/f", Mode::Regular, "f"), ("x", Mode::Regular, "x")]);
    lay(&dest, &folder, "t");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(read(&dest), folder);

    // A folder that somebody replaced by a link: what lies behind is not ours.
    fs::remove_dir_all(dest.join("sub")).unwrap();
    fs::write(outside.join("f"), "theirs").unwrap();
    symlink("../outside", dest.join("sub")).unwrap();
    let named = ["`sub/f` missing", "`sub` is not of the tree"];
    assert_eq!(findings(&dest), named);
    let error = publish(&dest, &folder, &identity("t"), &Options::default()).unwrap_err();
    assert!(matches!(error, PublishError::HandEdited { .. }), "{error}");
    publish(&dest, &folder, &identity("t"), &forced()).unwrap();
    assert_eq!(read(&dest), folder);
    assert_eq!(fs::read(outside.join("f")).unwrap(), b"theirs");
}

fn edited(dest: &Path, to: &MemoryTree) -> Result<(), PublishError> {
    let from = read(dest);
    let tree = DiskTree::open(dest).unwrap();
    edit_in_place(&tree, &edits(&from, to), &Options::default()).map(drop)
}

fn edit_only() {
    let (_dir, dest) = place();
    write_new(&dest, &before(), &Options::default()).unwrap();
    fs::set_permissions(dest.join("mlx/quantized.h"), fs::Permissions::from_mode(0o640)).unwrap();
    let old = marks(&dest);
    let mut all = edits(&before(), &after());
    // An edit that changes nothing is none.
    all.insert(path("mlx/array.h"), before().0.get(&path("mlx/array.h")).cloned());
    all.insert(path("mlx/never_was"), None);
    let tree = DiskTree::open(&dest).unwrap();
    let done = edit_in_place(&tree, &all, &Options::default()).unwrap();
    assert_eq!(done.written.len(), 6);
    assert_eq!(done.removed.len(), 3);
    assert_eq!(read(&dest), after());
    for name in ["CMakeLists.txt", "mlx/array.h"] {
        assert_eq!(marks(&dest)[&dest.join(name)], old[&dest.join(name)]);
    }
    let mode = |name| fs::metadata(dest.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("mlx/quantized.h"), 0o640);
    assert_eq!(mode("run.sh") & 0o100, 0o100);
    assert!(!dest.join(".overlay-edit").exists());
}

fn edit_changed() {
    let (_dir, dest) = place();
    write_new(&dest, &before(), &Options::default()).unwrap();
    let all = edits(&before(), &after());
    for (name, text) in [("mlx/quantized.h", "mine\n"), ("mlx/new.h", "mine\n")] {
        let tree = DiskTree::open(&dest).unwrap();
        fs::write(dest.join(name), text).unwrap();
        let as_it_was = read(&dest);
        match edit_in_place(&tree, &all, &Options::default()) {
            Err(PublishError::Changed { path: at }) => assert_eq!(at, path(name)),
            other => panic!("{other:?}"),
        }
        assert_eq!(read(&dest), as_it_was);
        assert!(!dest.join(".overlay-edit").exists());
    }
    // A folder that became a link is not gone through.
    let (dir, dest) = place();
    write_new(&dest, &before(), &Options::default()).unwrap();
    let tree = DiskTree::open(&dest).unwrap();
    fs::rename(dest.join("mlx"), dir.path().join("elsewhere")).unwrap();
    symlink("../elsewhere", dest.join("mlx")).unwrap();
    let error = edit_in_place(&tree, &all, &Options::default()).unwrap_err();
    assert!(matches!(error, PublishError::NoWay { .. }), "{error}");
    assert_eq!(fs::read(dir.path().join("elsewhere/quantized.h")).unwrap(), b"old\n");
}

fn edit_undone() {
    let (_dir, dest) = place();
    write_new(&dest, &before(), &Options::default()).unwrap();
    // The user's folder keeps `mlx/was_a_folder` from becoming a file, which
    // shows only when the last renames are made.
    fs::create_dir(dest.join("mlx/was_a_folder/empty")).unwrap();
    let old = marks(&dest);
    let error = edited(&dest, &after()).unwrap_err();
    assert!(matches!(error, PublishError::Io { doing: "rename to", .. }), "{error}");
    assert_eq!(read(&dest), before());
    assert_eq!(marks(&dest), old, "down to the inodes");
    assert!(!dest.join(".overlay-edit").exists());
    fs::remove_dir(dest.join("mlx/was_a_folder/empty")).unwrap();
    edited(&dest, &after()).unwrap();
    assert_eq!(read(&dest), after());
}

fn edit_tangled() {
    use crate::child::{Task, start};
    // Killed later and later, until it dies with the journal written.
    for kill in 0.. {
        let (_dir, dest) = place();
        write_new(&dest, &before(), &Options::default()).unwrap();
        start(Task::Edit, &dest, kill).wait().unwrap();
        if !dest.join(".overlay-edit/journal.json").exists() {
            continue;
        }
        fs::write(dest.join("mlx/quantized.h"), "mine since\n").unwrap();
        match mend_edit(&dest, &Options::default()) {
            Err(PublishError::Tangled { paths, .. }) => {
                assert_eq!(paths, [path("mlx/quantized.h")])
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read(dest.join("mlx/quantized.h")).unwrap(), b"mine since\n");
        return;
    }
}
