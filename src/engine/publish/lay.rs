//! Laying files into a folder nobody else sees yet.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::vec;

use super::{Options, PublishError, Recorded, Step};
use crate::disk::{self, Stat};
use crate::reserved;
use crate::snapshot::{Entry, Mode, ObjectId, Tree, TreePath};

/// A file to bring into the new tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// It stays as it is in the old tree.
    Keep(Recorded),
    /// It comes from the source.
    Write(Entry),
}

impl Job {
    fn path(&self) -> &TreePath {
        match self {
            Job::Keep(recorded) => &recorded.path,
            Job::Write(entry) => &entry.path,
        }
    }
}

/// Refuses a listing that no folder can hold.
pub(super) fn check(entries: &[Entry]) -> Result<(), PublishError> {
    let files: BTreeSet<&TreePath> = entries.iter().map(|e| &e.path).collect();
    for entry in entries {
        let path = &entry.path;
        if reserved::is_ours(path) {
            return Err(PublishError::Reserved { path: path.clone() });
        }
        if let Some(file) = path.parents().find(|p| files.contains(p)) {
            return Err(PublishError::FileIsFolder { file, inside: path.clone() });
        }
    }
    Ok(())
}

/// Makes the folder `new` and brings every file into it; what stays is linked
/// from `old`. Gives the files' records in byte order of their paths.
pub(super) fn lay(
    new: &Path,
    old: &Path,
    jobs: Vec<Job>,
    tree: &dyn Tree,
    options: &Options<'_>,
) -> Result<Vec<Recorded>, PublishError> {
    make_folder(new, options)?;
    let queue = Mutex::new(Queue { new, jobs: jobs.into_iter(), made: BTreeSet::new() });
    let queue = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        let mut records = Vec::new();
        loop {
            // Its own statement: nobody waits for the queue while this is brought.
            let next = queue().next(options);
            let Some(job) = next.transpose()? else { return Ok(records) };
            match bring(new, old, job, tree, options) {
                Ok(record) => records.extend(record),
                Err(error) => {
                    queue().close();
                    return Err(error);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(8);
    let mut records = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().map(|t| t.join());
        let ended: Vec<Result<Vec<Recorded>, PublishError>> =
            ended.map(|t| t.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect();
        ended.into_iter().collect::<Result<Vec<_>, _>>()
    })?
    .concat();
    records.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(records)
}

/// The jobs still to do.
struct Queue<'q> {
    new: &'q Path,
    jobs: vec::IntoIter<Job>,
    made: BTreeSet<TreePath>,
}

impl Queue<'_> {
    /// The next job, once the folders above it are there. After a failure there
    /// is none.
    fn next(&mut self, options: &Options<'_>) -> Option<Result<Job, PublishError>> {
        let job = self.jobs.next()?;
        // A submodule has no files here; its place is an empty folder, as git
        // leaves it.
        let own = matches!(&job, Job::Write(e) if e.mode == Mode::Submodule);
        let path = job.path();
        for folder in path.parents().chain(own.then(|| path.clone())) {
            if self.made.contains(&folder) {
                continue;
            }
            if let Err(error) = make_folder(&self.new.join(folder.as_str()), options) {
                self.close();
                return Some(Err(error));
            }
            self.made.insert(folder);
        }
        Some(Ok(job))
    }

    /// Drops what is still to do.
    fn close(&mut self) {
        self.jobs = Vec::new().into_iter();
    }
}

fn make_folder(path: &Path, options: &Options<'_>) -> Result<(), PublishError> {
    options.step(Step::Folder, path);
    // Not `create_dir_all`: what is there and was not made here could be a
    // link, or a name that this file system takes for another's.
    fs::create_dir(path).map_err(PublishError::io("make the folder", path))
}

/// Brings one file. A submodule has none.
fn bring(
    new: &Path,
    old: &Path,
    job: Job,
    tree: &dyn Tree,
    options: &Options<'_>,
) -> Result<Option<Recorded>, PublishError> {
    let entry = match job {
        Job::Keep(recorded) => return link(new, old, recorded, options).map(Some),
        Job::Write(entry) if entry.mode == Mode::Submodule => return Ok(None),
        Job::Write(entry) => entry,
    };
    let Some(file) = tree.file(&entry.path)? else {
        return Err(PublishError::Lost { path: entry.path });
    };
    write(new, entry, &file.bytes, options).map(Some)
}

fn write(
    root: &Path,
    entry: Entry,
    bytes: &[u8],
    options: &Options<'_>,
) -> Result<Recorded, PublishError> {
    let path = root.join(entry.path.as_str());
    options.step(Step::Write, &path);
    let stat = write_file(&path, entry.mode, bytes).map_err(PublishError::io("write", &path))?;
    let id = entry.id.unwrap_or_else(|| ObjectId::of_blob(bytes));
    Ok(Recorded { path: entry.path, mode: entry.mode, size: stat.size, mtime: stat.mtime, id })
}

/// Writes a file or link that must not be there yet, following none.
pub(super) fn write_file(path: &Path, mode: Mode, bytes: &[u8]) -> io::Result<Stat> {
    let meta = match mode {
        Mode::Symlink => {
            symlink(OsStr::from_bytes(bytes), path)?;
            fs::symlink_metadata(path)?
        }
        Mode::Submodule => return Err(io::ErrorKind::Unsupported.into()),
        Mode::Regular | Mode::Executable => {
            let bits = if mode == Mode::Executable { 0o777 } else { 0o666 };
            let mut file: File =
                OpenOptions::new().write(true).create_new(true).mode(bits).open(path)?;
            file.write_all(bytes)?;
            file.metadata()?
        }
    };
    Stat::of(&meta).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn link(
    new: &Path,
    old: &Path,
    mut recorded: Recorded,
    options: &Options<'_>,
) -> Result<Recorded, PublishError> {
    let from = old.join(recorded.path.as_str());
    let to = new.join(recorded.path.as_str());
    options.step(Step::Link, &to);
    link_or_copy(&from, &to).map_err(PublishError::io("link", &to))?;
    let stat = fs::symlink_metadata(&to).ok().and_then(|meta| Stat::of(&meta));
    // Touched, or edited between the look and the link: the time says so, and
    // the next look hashes it against the blob id that stands here.
    if let Some(stat) = stat.filter(|s| s.mtime != recorded.mtime || s.size != recorded.size) {
        let same = disk::read(&to, stat.mode).is_ok_and(|b| ObjectId::of_blob(&b) == recorded.id);
        if !same {
            return Err(PublishError::Changed { path: recorded.path });
        }
        recorded.mtime = stat.mtime;
    }
    Ok(recorded)
}

/// Gives the file a second name; where the file system cannot, a copy with the
/// same time of writing.
pub(super) fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    let Err(refused) = fs::hard_link(from, to) else { return Ok(()) };
    if matches!(refused.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) {
        return Err(refused);
    }
    let meta = fs::symlink_metadata(from)?;
    if meta.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !meta.is_file() {
        return Err(refused);
    }
    fs::copy(from, to)?;
    let times = fs::FileTimes::new().set_modified(meta.modified()?);
    OpenOptions::new().write(true).open(to)?.set_times(times)
}
