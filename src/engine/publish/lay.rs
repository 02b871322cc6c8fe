//! Laying files into a folder nobody else sees yet.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

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

/// A job with all that a writer needs.
enum Ready {
    Keep(Recorded),
    Write(Entry, Arc<[u8]>),
}

/// Batches keep two or three threads from meeting at the channel for each small
/// file; three of them bound the memory.
const BATCH_FILES: usize = 32;
const BATCH_BYTES: usize = 1 << 20;

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
///
/// The source is read on the calling thread, the files are written by others.
pub(super) fn lay(
    new: &Path,
    old: &Path,
    jobs: Vec<Job>,
    tree: &dyn Tree,
    options: &Options<'_>,
) -> Result<Vec<Recorded>, PublishError> {
    make_folders(new, &jobs, options)?;
    let stop = AtomicBool::new(false);
    let writers = thread::available_parallelism().map_or(1, NonZero::get).min(8);
    let (send, receive) = sync_channel::<Vec<Ready>>(2);
    let receive = Mutex::new(receive);
    let mut records = thread::scope(|scope| {
        let writer = || drain(&receive, new, old, &stop, options);
        let writers: Vec<_> = (0..writers).map(|_| scope.spawn(writer)).collect();
        let fed = feed(jobs, tree, &stop, |batch| send.send(batch).is_ok());
        if fed.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        drop(send);
        let mut records = Vec::new();
        let mut failed = None;
        for writer in writers {
            match writer.join() {
                Ok(Ok(some)) => records.extend(some),
                Ok(Err(error)) => failed = Some(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        fed?;
        failed.map_or(Ok(records), Err)
    })?;
    records.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(records)
}

fn make_folders(new: &Path, jobs: &[Job], options: &Options<'_>) -> Result<(), PublishError> {
    let make = |path: &Path| {
        options.step(Step::Folder, path);
        // Not `create_dir_all`: what is there and was not made here could be a
        // link, or a name that this file system takes for another's.
        fs::create_dir(path).map_err(PublishError::io("make the folder", path))
    };
    make(new)?;
    let mut made: BTreeSet<TreePath> = BTreeSet::new();
    for job in jobs {
        // A submodule has no files here; its place is an empty folder, as git
        // leaves it.
        let own = matches!(job, Job::Write(e) if e.mode == Mode::Submodule);
        let path = job.path();
        for folder in path.parents().chain(own.then(|| path.clone())) {
            if !made.contains(&folder) {
                make(&new.join(folder.as_str()))?;
                made.insert(folder);
            }
        }
    }
    Ok(())
}

/// Reads what is to be written and hands it on in batches, until `give` says
/// that nobody takes them any more.
fn feed(
    jobs: Vec<Job>,
    tree: &dyn Tree,
    stop: &AtomicBool,
    give: impl Fn(Vec<Ready>) -> bool,
) -> Result<(), PublishError> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    for job in jobs {
        match job {
            Job::Write(entry) if entry.mode == Mode::Submodule => continue,
            Job::Keep(recorded) => batch.push(Ready::Keep(recorded)),
            Job::Write(entry) => {
                let Some(file) = tree.file(&entry.path)? else {
                    return Err(PublishError::Lost { path: entry.path });
                };
                bytes += file.bytes.len();
                batch.push(Ready::Write(entry, file.bytes));
            }
        }
        if batch.len() >= BATCH_FILES || bytes >= BATCH_BYTES {
            bytes = 0;
            if stop.load(Ordering::Relaxed) || !give(std::mem::take(&mut batch)) {
                return Ok(());
            }
        }
    }
    if !batch.is_empty() {
        give(batch);
    }
    Ok(())
}

fn drain(
    receive: &Mutex<Receiver<Vec<Ready>>>,
    new: &Path,
    old: &Path,
    stop: &AtomicBool,
    options: &Options<'_>,
) -> Result<Vec<Recorded>, PublishError> {
    let mut records = Vec::new();
    loop {
        let batch = receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = batch else { return Ok(records) };
        // After a failure the rest is taken and dropped, so that the reader
        // never waits for room.
        if stop.load(Ordering::Relaxed) {
            continue;
        }
        for ready in batch {
            let record = match ready {
                Ready::Keep(recorded) => link(new, old, recorded, options),
                Ready::Write(entry, bytes) => write(new, entry, &bytes, options),
            };
            match record {
                Ok(record) => records.push(record),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    // Others go on taking batches; alone, the reader must not
                    // be left waiting.
                    while receive.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok() {}
                    return Err(error);
                }
            }
        }
    }
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
