//! Two processes at one place.

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use mlx_overlay_engine::publish::{
    Depth, Event, Finding, Options, PublishError, Wait, publish, survey,
};

use crate::child::{Task, start};
use crate::sample::{Test, after, assert_whole, before, identity, lay, read};

pub const TESTS: &[Test] = &[
    ("two_processes_take_turns_and_the_tree_is_whole", in_turn),
    ("the_second_process_gives_up_or_waits_and_says_who_holds_it", gives_up_or_waits),
];

fn in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("tree");
    lay(&dest, &before(), "before");
    let mut children: Vec<_> = (0..2).map(|_| start(Task::InTurn, &dest, usize::MAX)).collect();
    // Meanwhile a tree is always there, with its stamp.
    let mut looks = 0;
    while children.iter_mut().any(|c| c.try_wait().unwrap().is_none()) {
        survey(&dest, Depth::Stat).unwrap();
        looks += 1;
    }
    assert!(looks > 0);
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert!([before(), after()].contains(&read(&dest)));
    assert_whole(&dest);
}

fn gives_up_or_waits() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("tree");
    lay(&dest, &before(), "before");
    let mut child = start(Task::Hold, &dest, usize::MAX);
    while !dir.path().join("held").exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    for wait in [Wait::Never, Wait::For(Duration::from_millis(30))] {
        let options = Options { wait, ..Options::default() };
        match publish(&dest, &before(), &identity("mine"), &options) {
            Err(PublishError::Locked { holder, waited, .. }) => {
                assert_eq!(holder, Some(child.id()));
                assert!(wait == Wait::Never || waited >= Duration::from_millis(30));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(survey(&dest, Depth::Stat).unwrap().findings, [], "nothing is written yet");

    let told = Mutex::new(Vec::new());
    let watch = |event: Event<'_>| {
        if let Event::Waiting { holder } = event {
            told.lock().unwrap().push(holder);
            fs::write(dir.path().join("go"), "").unwrap();
        }
    };
    let options = Options { wait: Wait::Forever, watch: &watch, ..Options::default() };
    publish(&dest, &before(), &identity("mine"), &options).unwrap();
    assert_eq!(*told.lock().unwrap(), [Some(child.id())]);
    assert!(child.wait().unwrap().success());
    assert_eq!(read(&dest), before());
    let survey = survey(&dest, Depth::Hash).unwrap();
    assert!(!survey.findings.contains(&Finding::Unfinished));
    assert_eq!(survey.stamp.identity, identity("mine"));
}
