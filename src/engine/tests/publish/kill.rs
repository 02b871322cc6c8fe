//! A process killed at every step leaves the old or the new, and the next run
//! makes it whole.

use std::fs;
use std::path::Path;
use std::time::Duration;

use mlx_overlay_engine::disk::{DiskError, DiskTree};
use mlx_overlay_engine::publish::{
    Depth, Options, PublishError, StampError, edit_in_place, mend_edit, survey, write_new,
};
use mlx_overlay_engine::snapshot::MemoryTree;

use crate::child::{Task, start};
use crate::sample::{Test, after, assert_whole, before, edits, lay, marks, read};

pub const TESTS: &[Test] = &[
    ("a_first_publication_killed_anywhere_leaves_nothing_or_all", create),
    ("an_update_killed_anywhere_leaves_old_or_new", update),
    ("a_new_stamp_killed_anywhere_leaves_old_or_new", restamp),
    ("a_tree_without_stamp_killed_anywhere_leaves_nothing_or_all", unstamped),
    ("an_edit_in_place_killed_anywhere_is_finished_or_never_begun", edit),
    ("a_publisher_killed_at_any_time_leaves_a_whole_tree", any_time),
];

/// Runs `task` again and again from the state that `set_up` makes, killed a
/// step later each time, until it comes through. Gives the number of kills.
fn at_each_step(task: Task, set_up: impl Fn(&Path), check: impl Fn(&Path)) -> usize {
    for kill in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("tree");
        set_up(&dest);
        let status = start(task, &dest, kill).wait().unwrap();
        check(&dest);
        if status.success() {
            return kill;
        }
        assert_eq!(status.code(), None, "it failed instead of being killed");
    }
    unreachable!("the loop ends with a task that comes through")
}

/// The tree at `dest` is whole, and is one of these under its series.
fn assert_one_of(dest: &Path, trees: &[(&str, &MemoryTree)]) {
    let survey = survey(dest, Depth::Hash).unwrap();
    let changed: Vec<_> = survey.findings.iter().filter(|f| f.is_change()).collect();
    assert!(changed.is_empty(), "{changed:?}");
    let series = &survey.stamp.identity.series;
    let (_, tree) = trees.iter().find(|(name, _)| name == series).unwrap();
    assert_eq!(&read(dest), *tree, "stamped {series}");
}

fn create() {
    let kills = at_each_step(
        Task::Publish,
        |_| {},
        |dest| {
            match survey(dest, Depth::Hash) {
                Err(PublishError::Stamp(StampError::Missing { .. })) => assert!(!dest.exists()),
                _ => assert_one_of(dest, &[("after", &after())]),
            }
            lay(dest, &after(), "after");
            assert_eq!(read(dest), after());
            assert_whole(dest);
        },
    );
    assert!(kills > after().0.len(), "{kills}");
}

fn update() {
    let kept = ["CMakeLists.txt", "mlx/array.h", "build/out.o"];
    let kills = at_each_step(
        Task::Publish,
        |dest| {
            lay(dest, &before(), "before");
            fs::create_dir(dest.join("build")).unwrap();
            fs::write(dest.join("build/out.o"), "machine code").unwrap();
        },
        |dest| {
            let foreign = fs::read(dest.join("build/out.o")).unwrap();
            assert_eq!(foreign, b"machine code");
            let marks_before = marks(dest);
            let published = lay(dest, &after(), "after");
            assert_eq!(published.plan.foreign, ["build/"]);
            for name in kept {
                let path = dest.join(name);
                assert_eq!(marks(dest)[&path], marks_before[&path], "{name} was rewritten");
            }
            fs::remove_dir_all(dest.join("build")).unwrap();
            assert_one_of(dest, &[("after", &after())]);
            assert_whole(dest);
        },
    );
    assert!(kills > after().0.len(), "{kills}");
    // And before the next run: old or new as it stands.
    at_each_step(
        Task::Publish,
        |dest| {
            lay(dest, &before(), "before");
        },
        |dest| assert_one_of(dest, &[("before", &before()), ("after", &after())]),
    );
}

fn restamp() {
    let kills = at_each_step(
        Task::Restamp,
        |dest| {
            lay(dest, &before(), "before");
        },
        |dest| {
            assert_one_of(dest, &[("before", &before()), ("restamped", &before())]);
            lay(dest, &before(), "restamped");
            assert_whole(dest);
        },
    );
    assert_eq!(kills, 2);
}

fn unstamped() {
    at_each_step(
        Task::WriteNew,
        |_| {},
        |dest| {
            if dest.exists() {
                assert_eq!(read(dest), after());
            } else {
                write_new(dest, &after(), &Options::default()).unwrap();
                assert_eq!(read(dest), after());
            }
        },
    );
}

fn edit() {
    let set_up = |dest: &Path| {
        write_new(dest, &before(), &Options::default()).unwrap();
        fs::write(dest.join("mlx/mine.txt"), "the user's own").unwrap();
    };
    let mut mine = (before(), after());
    for tree in [&mut mine.0, &mut mine.1] {
        let own = crate::sample::tree(&[(
            "mlx/mine.txt",
            mlx_overlay_engine::snapshot::Mode::Regular,
            "the user's own",
        )]);
        tree.0.extend(own.0);
    }
    let finished = std::cell::Cell::new(0);
    let check = |dest: &Path| {
        match DiskTree::open(dest) {
            Ok(_) => assert!(read(dest) == mine.0 || read(dest) == mine.1),
            Err(DiskError::Unfinished { .. }) => finished.set(finished.get() + 1),
            Err(other) => panic!("{other}"),
        }
        let mended = mend_edit(dest, &Options::default()).unwrap();
        if mended.is_some() {
            assert_eq!(read(dest), mine.1);
        }
        if read(dest) != mine.1 {
            let tree = DiskTree::open(dest).unwrap();
            let edits = edits(&before(), &after());
            edit_in_place(&tree, &edits, &Options::default()).unwrap();
        }
        assert_eq!(read(dest), mine.1);
        assert!(!dest.join(".overlay-edit").exists());
    };
    let kills = at_each_step(Task::Edit, set_up, check);
    assert!(kills > 20, "{kills}");
    assert!(finished.get() > 5, "{} were found unfinished", finished.get());
}

fn any_time() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("tree");
    lay(&dest, &before(), "before");
    let mut random = 0x2545_f491_u64;
    for _ in 0..25 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut child = start(Task::Forever, &dest, usize::MAX);
        std::thread::sleep(Duration::from_millis(5 + (random >> 33) % 40));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_one_of(&dest, &[("before", &before()), ("after", &after())]);
    }
    lay(&dest, &before(), "last");
    assert_whole(&dest);
}
