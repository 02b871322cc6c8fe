//! This program as another process: it does one thing to one folder, and dies
//! where it is told to.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};

use mlx_overlay_engine::disk::DiskTree;
use mlx_overlay_engine::publish::{
    Event, Options, Wait, edit_in_place, mend_edit, publish, write_new,
};

use crate::sample::{after, before, edits, identity};

const ASKED: &str = "OVERLAY_PUBLISH_TEST_CHILD";

/// What a child does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Publishes `after`.
    Publish,
    /// Publishes `before` as another series.
    Restamp,
    /// Writes `after` without a stamp.
    WriteNew,
    /// Edits `before` into `after` in place.
    Edit,
    /// Publishes one and the other in turn until it is killed.
    Forever,
    /// Publishes one and the other in turn twenty times.
    InTurn,
    /// Publishes, and stays in the middle of it until a file `go` is there.
    Hold,
}

const TASKS: [Task; 7] = [
    Task::Publish,
    Task::Restamp,
    Task::WriteNew,
    Task::Edit,
    Task::Forever,
    Task::InTurn,
    Task::Hold,
];

/// Starts a child on `dir`; it aborts in place of step `die_at`, counted from 0.
pub fn start(task: Task, dir: &Path, die_at: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .env(ASKED, format!("{task:?}"))
        .args([dir.as_os_str(), die_at.to_string().as_ref()])
        .spawn()
        .unwrap()
}

/// Does what a parent asked for, if one did.
pub fn run_if_asked() -> Option<ExitCode> {
    let asked = std::env::var(ASKED).ok()?;
    let task = TASKS.into_iter().find(|t| format!("{t:?}") == asked).unwrap();
    let mut args = std::env::args_os().skip(1);
    let dir = PathBuf::from(args.next().unwrap());
    let die_at: usize = args.next().unwrap().to_str().unwrap().parse().unwrap();
    run(task, &dir, die_at);
    Some(ExitCode::SUCCESS)
}

fn run(task: Task, dir: &Path, die_at: usize) {
    let steps = AtomicUsize::new(0);
    let watch = |event: Event<'_>| {
        if let Event::Step(..) = event {
            if steps.fetch_add(1, Ordering::SeqCst) == die_at {
                std::process::abort();
            }
            let go = dir.parent().unwrap().join("go");
            if task == Task::Hold {
                std::fs::write(dir.parent().unwrap().join("held"), "").unwrap();
                while !go.exists() {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            }
        }
    };
    let options = Options { watch: &watch, wait: Wait::Forever, ..Options::default() };
    match task {
        Task::Publish | Task::Hold => {
            publish(dir, &after(), &identity("after"), &options).unwrap();
        }
        Task::Restamp => {
            publish(dir, &before(), &identity("restamped"), &options).unwrap();
        }
        Task::WriteNew => {
            write_new(dir, &after(), &options).unwrap();
        }
        Task::Edit => {
            mend_edit(dir, &options).unwrap();
            let tree = DiskTree::open(dir).unwrap();
            edit_in_place(&tree, &edits(&before(), &after()), &options).unwrap();
        }
        Task::Forever | Task::InTurn => {
            let times = if task == Task::InTurn { 20 } else { usize::MAX };
            for n in 0..times {
                let (tree, series) =
                    if n % 2 == 0 { (after(), "after") } else { (before(), "before") };
                publish(dir, &tree, &identity(series), &options).unwrap();
            }
        }
    }
}
