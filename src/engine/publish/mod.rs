//! The only writer of trees.
//!
//! A tree is written whole beside its place and then exchanged with what
//! stands there, in one system call where the file system has one. Files that
//! stay as they are become further links to the same inode, so they keep their
//! time of writing and a build leaves them alone; the old tree stays whole
//! until the new one is in place. Around `DEST` that looks so:
//!
//! ```text
//! DEST/                     the published tree
//! DEST/.overlay-stamp.json  what it is, see [`Stamp`]
//! .DEST.overlay/            only while somebody publishes, or was killed at it
//!     lock                  held by whoever works here
//!     new/                  the next tree; after the exchange, the last one
//!     old/                  the last one, where no exchange is to be had
//! ```
//!
//! A folder of that name that nobody of ours made is left alone, and nothing is
//! published beside it: see `work_folder`.
//!
//! Whoever is killed leaves the old tree or the new one at `DEST`. Where the
//! file system cannot exchange, `DEST` may be missing for as long as two
//! renames take, never half there; the next run puts a tree back.
//!
//! Files in a published tree that are not of it (build outputs, an editor's)
//! are named and kept. What was edited or had its mode changed is overwritten
//! only under [`Force::Overwrite`]; a file that was removed is put back, for
//! that loses nothing. Where the stamp is lost nobody can tell such edits:
//! [`Force::Overwrite`] then writes every file that has not the wanted bytes.
//! The source files are not forced to the disk, only stamps and journals are:
//! after a power failure [`survey`] tells what was lost.

mod edit;
mod lay;
mod lock;
mod place;
pub(crate) mod stamp;
mod survey;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

pub use edit::{
    EDIT_FOLDER, Edited, Mended, Pending, edit_in_place, edit_is_unfinished, mend_edit,
    pending_edit,
};
pub use stamp::{ENGINE, Identity, Partial, Recorded, STAMP, Source, Stamp, StampError};
pub use survey::{Depth, Finding, Survey, survey};

use crate::snapshot::{ReadError, Tree, TreePath};
use lay::{Job, lay};
use lock::{Lock, require_makable, require_ours};
use place::Place;

/// What becomes of hand edits that are in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// They are named, and nothing is written.
    Refuse,
    /// They are lost, and named.
    Overwrite,
}

/// What to do while another process holds the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Give up at once.
    Never,
    /// Give up after this time.
    For(Duration),
    /// Wait for as long as it takes.
    Forever,
}

/// What a writer is about to do; see [`Options::watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Another process holds the place; told once. Its id, where it is known.
    Waiting {
        /// The process.
        holder: Option<u32>,
    },
    /// An earlier run was broken off here; its remains are cleared.
    Mending,
    /// This many files are to be written and this many stay.
    Planned {
        /// Files to write.
        write: usize,
        /// Files to link.
        keep: usize,
    },
    /// One step, about to be taken on this path.
    Step(Step, &'a Path),
}

/// One change to the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A folder is made.
    Folder,
    /// A file is written.
    Write,
    /// A file that stays is linked.
    Link,
    /// The stamp is written.
    Stamp,
    /// The journal of an edit is written.
    Journal,
    /// Something gets its final name.
    Rename,
    /// What is no longer wanted is removed.
    Remove,
}

/// How to go about it.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// What becomes of hand edits.
    pub force: Force,
    /// What to do while another process holds the place.
    pub wait: Wait,
    /// Is told each step before it is taken, from several threads.
    pub watch: &'a (dyn Fn(Event<'_>) + Sync),
}

impl Default for Options<'_> {
    /// Refuse, wait for a minute, tell nobody.
    fn default() -> Self {
        Self { force: Force::Refuse, wait: Wait::For(Duration::from_secs(60)), watch: &|_| {} }
    }
}

impl Options<'_> {
    fn step(&self, step: Step, path: &Path) {
        (self.watch)(Event::Step(step, path));
    }
}

/// Why nothing was published. Unless an error says otherwise, what stood at the
/// place stands there as it was.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The file system refused.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was tried: a verb.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The place has no name of its own (`/`, or ends in `..`).
    #[error("`{}` has no name of its own: name the folder to write", path.display())]
    Nameless {
        /// The place.
        path: PathBuf,
    },
    /// The place is a file, a link or something else than a folder.
    #[error("`{}` is {found}, not a folder: remove it or choose another place", path.display())]
    NotAFolder {
        /// The place.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The place is a folder with files, and no published tree.
    #[error("`{}` holds files and no published tree ({STAMP} is missing): \
             choose another place, or empty it yourself", path.display())]
    NotOurs {
        /// The place.
        path: PathBuf,
    },
    /// This user may not write to the tree's folder, which keeps it where it is.
    #[error("`{0}` may not be written to, so no other tree can take its place; `chmod u+w {0}` allows it", path.display())]
    Closed {
        /// The place.
        path: PathBuf,
    },
    /// The place for a tree without a stamp is not free.
    #[error("`{}` holds files already: name a folder that is new or empty", path.display())]
    NotFree {
        /// The place.
        path: PathBuf,
    },
    /// Another process holds the place, and the time to wait is over.
    #[error("another process{} is writing `{}`; gave up after {} s", 
            holder.map(|h| format!(" ({h})")).unwrap_or_default(), path.display(), waited.as_secs())]
    Locked {
        /// The place.
        path: PathBuf,
        /// The process, where it is known.
        holder: Option<u32>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A folder of the name that the overlay works under is somebody else's.
    #[error("`{}` is where the overlay works, and what it holds (`{found}`) is not the overlay's",
            folder.display())]
    Foreign {
        /// The work folder.
        folder: PathBuf,
        /// Something that it holds.
        found: String,
    },
    /// Files were edited by hand.
    #[error("`{}` was edited by hand: {}", path.display(), few(findings))]
    HandEdited {
        /// The place.
        path: PathBuf,
        /// Each edit.
        findings: Vec<Finding>,
    },
    /// The stamp at the place cannot be used.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// A file of the tree to publish cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The tree lists a file and does not have it.
    #[error("the tree lists `{path}` and does not have it")]
    Lost {
        /// The file.
        path: TreePath,
    },
    /// The tree holds a file of a name that published trees use themselves.
    #[error("`{path}` cannot be published: the name is the overlay's own")]
    Reserved {
        /// The file.
        path: TreePath,
    },
    /// A file of the tree stands where another needs a folder.
    #[error("`{file}` is a file, and `{inside}` needs it to be a folder")]
    FileIsFolder {
        /// The file.
        file: TreePath,
        /// What would stand inside.
        inside: TreePath,
    },
    /// A file is not as it was when the tree was read.
    #[error("`{path}` was changed while it was being worked on; run again")]
    Changed {
        /// The file.
        path: TreePath,
    },
    /// A folder on the way to a file is a link or a file.
    #[error("`{path}` is not reached through folders alone: `{}` is {found}", at.display())]
    NoWay {
        /// The file to write.
        path: TreePath,
        /// What stands in the way.
        at: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The journal of a broken-off edit cannot be understood, so that nobody
    /// can tell which files the edit reached.
    #[error("an edit of `{}` was broken off, and its journal is damaged: which files it reached \
             is not known", folder.display())]
    Journal {
        /// The edited folder.
        folder: PathBuf,
    },
    /// A broken-off edit can neither be finished nor undone without a loss.
    #[error("an edit of `{}` was broken off, and since then {} changed: \
             compare with `{}`, then remove that folder", folder.display(), list(paths),
             folder.join(EDIT_FOLDER).display())]
    Tangled {
        /// The edited folder.
        folder: PathBuf,
        /// The files that changed since.
        paths: Vec<TreePath>,
    },
}

impl PublishError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.into(), source }
    }
}

fn list(paths: &[TreePath]) -> String {
    paths.iter().map(|p| format!("`{p}`")).collect::<Vec<_>>().join(", ")
}

fn few(findings: &[Finding]) -> String {
    let mut text: Vec<_> = findings.iter().take(5).map(ToString::to_string).collect();
    if findings.len() > text.len() {
        text.push(format!("and {} more", findings.len() - text.len()));
    }
    text.join(", ")
}

/// What is done, or would be done, to bring a tree to its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The kind of change.
    pub action: Action,
    /// Files to write: new, changed or put back.
    pub write: Vec<TreePath>,
    /// Files to take away.
    pub remove: Vec<TreePath>,
    /// Number of files that stay, untouched.
    pub keep: usize,
    /// Hand edits that are lost; empty unless forced.
    pub overwrite: Vec<Finding>,
    /// Files that are not of the tree; they stay.
    pub foreign: Vec<String>,
}

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The tree is there as wanted; nothing is touched.
    Nothing,
    /// The files are there as wanted; only the stamp is written anew.
    Restamp,
    /// Nothing is there yet.
    Create,
    /// Another tree is there; what differs is exchanged.
    Update,
}

/// A tree that was brought to its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// The place, absolute.
    pub place: PathBuf,
    /// What was done.
    #[serde(flatten)]
    pub plan: Plan,
    /// Remains of the last tree that could not be removed; the next run tries
    /// again. The new tree is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remains: Option<PathBuf>,
}

/// Says whether the tree at `dest` is the one named: the same identity, laid by
/// this engine, every file as it was written. Reads only, and takes no lock;
/// this is all a second `apply` needs.
///
/// # Errors
/// The place cannot be used, or its stamp cannot be read.
pub fn is_current(dest: &Path, identity: &Identity) -> Result<bool, PublishError> {
    match survey(dest, Depth::Stat) {
        Ok(survey) => Ok(survey.is_whole() && survey.is_of(identity)),
        Err(PublishError::Stamp(StampError::Missing { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Works out what [`publish`] would do. Reads only, and all of what would be written:
/// what cannot be read cannot be written. The place must be one that this user may write
/// to; whether a file system takes files at all tells only when it is written to.
///
/// # Errors
/// As [`publish`].
pub fn plan(
    dest: &Path,
    tree: &dyn Tree,
    identity: &Identity,
    force: Force,
) -> Result<Plan, PublishError> {
    let place = Place::of(dest)?;
    require_ours(&place.work, &[])?;
    require_makable(&place.work)?;
    let plan = place::prepare(&place, tree, identity, force)?.plan;
    for path in &plan.write {
        tree.file(path)?.ok_or_else(|| PublishError::Lost { path: path.clone() })?;
    }
    Ok(plan)
}

/// Brings `tree` to `dest`, whole or not at all.
///
/// # Errors
/// See [`PublishError`]. Nothing of what stood at `dest` is touched then.
pub fn publish(
    dest: &Path,
    tree: &dyn Tree,
    identity: &Identity,
    options: &Options<'_>,
) -> Result<Published, PublishError> {
    let place = Place::of(dest)?;
    let mut lock = Lock::take(&place.work, &[], &place.dest, options)?;
    place.mend(options)?;
    let prepared = place::prepare(&place, tree, identity, options.force)?;
    let plan = prepared.plan;
    (options.watch)(Event::Planned { write: plan.write.len(), keep: plan.keep });
    let stamp = |files| Stamp { identity: identity.clone(), engine: ENGINE.into(), files };
    let mut remains = None;
    match plan.action {
        Action::Nothing => {}
        Action::Restamp => place.restamp(&stamp(prepared.recorded), options)?,
        Action::Create | Action::Update => {
            let new = place.new_tree();
            let laid = lay(&new, &place.dest, prepared.jobs, tree, options)
                .and_then(|files| place.carry(&prepared.carry, options).map(|()| files))
                .and_then(|files| place.seal(&stamp(files), options))
                .and_then(|()| place.swap(options));
            if let Err(error) = laid {
                // What is left is found and cleared by the next run.
                let _ = std::fs::remove_dir_all(&new);
                return Err(error);
            }
            remains = place.clear(options).err().map(|_| place.work.clone());
        }
    }
    lock.release();
    Ok(Published { place: place.dest, plan, remains })
}

/// Says whether [`write_new`] would find the place free. Reads only.
///
/// # Errors
/// As [`write_new`].
pub fn require_free(dest: &Path) -> Result<(), PublishError> {
    let place = Place::of(dest)?;
    require_ours(&place.work, &[])?;
    require_makable(&place.work)?;
    match place.is_free()? {
        true => Ok(()),
        false => Err(PublishError::NotFree { path: place.dest }),
    }
}

/// Writes `tree` to `dest`, a place where nothing is yet or an empty folder,
/// whole or not at all and without a stamp: the tree is the user's.
///
/// # Errors
/// As [`publish`]; a folder with anything in it is refused.
pub fn write_new(
    dest: &Path,
    tree: &dyn Tree,
    options: &Options<'_>,
) -> Result<Published, PublishError> {
    let place = Place::of(dest)?;
    let mut lock = Lock::take(&place.work, &[], &place.dest, options)?;
    place.mend(options)?;
    if !place.is_free()? {
        return Err(PublishError::NotFree { path: place.dest });
    }
    let entries = tree.entries();
    lay::check(&entries)?;
    let write: Vec<_> = entries.iter().map(|e| e.path.clone()).collect();
    (options.watch)(Event::Planned { write: write.len(), keep: 0 });
    let jobs = entries.into_iter().map(Job::Write).collect();
    let new = place.new_tree();
    let laid = lay(&new, &place.dest, jobs, tree, options).and_then(|_| place.swap(options));
    if let Err(error) = laid {
        let _ = std::fs::remove_dir_all(&new);
        return Err(error);
    }
    lock.release();
    let plan = Plan {
        action: Action::Create,
        write,
        remove: Vec::new(),
        keep: 0,
        overwrite: Vec::new(),
        foreign: Vec::new(),
    };
    Ok(Published { place: place.dest, plan, remains: None })
}
