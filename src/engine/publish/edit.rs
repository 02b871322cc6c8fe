//! Editing a folder that is the user's own, all or nothing.
//!
//! Everything is made ready in a work folder inside: the new files, a second
//! name for each old one, and a journal. Once the journal is there, the edit is
//! a row of renames that any later run can finish; a rename that fails undoes
//! those before it. Other files are left alone.
//!
//! ```text
//! DIR/.overlay-edit/   only while an edit runs, or was killed
//!     lock  journal.json
//!     new/N            what comes in place of the file of step N
//!     old/N            the file as it was, kept to undo
//!     gone/N           a file that is taken away
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lay::{link_or_copy, write_file};
use super::lock::{Lock, require_ours};
use super::place::{kind, must_be_folder, sync_folder};
use super::{Event, Options, PublishError, Step};
use crate::disk::{self, DiskTree, Stat};
use crate::reserved;
use crate::snapshot::{File, Mode, TreePath};

/// The work folder of an edit, at the root of the edited folder.
pub const EDIT_FOLDER: &str = ".overlay-edit";

const SCHEMA: &str = "mlx-overlay/edit-journal";
const VERSION: u32 = 1;
const JOURNAL: &str = "journal.json";
const MARKS: &[&str] = &[JOURNAL];

/// What an edit did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Edited {
    /// Files written, new or changed.
    pub written: Vec<TreePath>,
    /// Files taken away.
    pub removed: Vec<TreePath>,
}

/// An edit that an earlier run began, and this one finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mended(pub Edited);

/// An edit that an earlier run began, and that is not finished.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The whole edit, as whoever finishes it tells it.
    pub mended: Mended,
    /// What is still to be done.
    pub edits: BTreeMap<TreePath, Option<File>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    schema: String,
    version: u32,
    /// Folders that were not there before, the outer first: undoing the edit
    /// removes them.
    folders: Vec<TreePath>,
    /// Removals first, so that a file can give way to a folder.
    steps: Vec<Change>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Change {
    path: TreePath,
    /// What stood there.
    old: Option<Stat>,
    /// Whether a file comes in its place.
    put: bool,
}

/// Lays `edits` over the folder that `tree` was read from: all of them, or none.
/// An edit that changes nothing leaves its file alone.
///
/// # Errors
/// A file is not as it was when `tree` was opened, is not reached through
/// folders alone, or the file system refuses; the folder is then as it was.
pub fn edit_in_place(
    tree: &DiskTree,
    edits: &BTreeMap<TreePath, Option<File>>,
    options: &Options<'_>,
) -> Result<Edited, PublishError> {
    let work = Work::of(tree.root());
    let mut lock = Lock::take(&work.folder, MARKS, tree.root(), options)?;
    work.mend(options)?;
    let made = work.make_ready(tree, edits, options);
    let journal = match made {
        Ok(journal) if journal.steps.is_empty() => None,
        Ok(journal) => Some(journal),
        Err(error) => {
            let _ = work.clear(options);
            return Err(error);
        }
    };
    let mut edited = Edited::default();
    if let Some(journal) = journal {
        if let Err(error) = work.finish(&journal, options) {
            work.undo(&journal, options)?;
            work.close(options)?;
            return Err(error);
        }
        edited = journal.edited();
    }
    work.close(options)?;
    lock.release();
    Ok(edited)
}

/// Says whether an edit of the folder at `dir` was broken off, or is going on.
///
/// # Errors
/// The work folder there is not the overlay's, or it cannot be looked at.
pub fn edit_is_unfinished(dir: &Path) -> Result<bool, PublishError> {
    let work = Work::of(dir);
    require_ours(&work.folder, MARKS)?;
    Ok(exists(&work.journal()))
}

/// Finishes an edit of `dir` that was broken off; nothing where none was.
///
/// # Errors
/// [`PublishError::Tangled`] where files changed since; nothing is touched then.
pub fn mend_edit(dir: &Path, options: &Options<'_>) -> Result<Option<Mended>, PublishError> {
    let root = dir.canonicalize().map_err(PublishError::io("look at", dir))?;
    if fs::symlink_metadata(root.join(EDIT_FOLDER)).is_err() {
        return Ok(None);
    }
    let work = Work::of(&root);
    let mut lock = Lock::take(&work.folder, MARKS, &root, options)?;
    let mended = work.mend(options)?;
    lock.release();
    Ok(mended)
}

/// What is left of an edit of `dir` that was broken off, without finishing it:
/// what [`mend_edit`] would say, and the files that it would still write or take
/// away. Nothing where none was broken off. Reads only.
///
/// # Errors
/// As [`mend_edit`]; [`PublishError::Locked`] where it is going on.
pub fn pending_edit(dir: &Path) -> Result<Option<Pending>, PublishError> {
    let root = dir.canonicalize().map_err(PublishError::io("look at", dir))?;
    let work = Work::of(&root);
    require_ours(&work.folder, MARKS)?;
    let Some(journal) = work.read_journal()? else { return Ok(None) };
    if Lock::is_held(&work.folder) {
        let holder = crate::work_folder::holder(&work.folder);
        return Err(PublishError::Locked { path: root, holder, waited: Duration::ZERO });
    }
    let open = work.open_steps(&journal)?;
    let mut edits = BTreeMap::new();
    for (n, change) in open {
        let file = match change.put {
            true => Some(work.put_file(n)?),
            false => None,
        };
        edits.insert(change.path.clone(), file);
    }
    Ok(Some(Pending { mended: Mended(journal.edited()), edits }))
}

impl Journal {
    fn edited(&self) -> Edited {
        let paths = |put| {
            let steps = self.steps.iter().filter(move |s| s.put == put);
            steps.map(|s| s.path.clone()).collect()
        };
        Edited { written: paths(true), removed: paths(false) }
    }
}

struct Work {
    root: PathBuf,
    folder: PathBuf,
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn stat(path: &Path) -> Result<Option<Stat>, PublishError> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Stat::of(&meta)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(e) => Err(PublishError::io("look at", path)(e)),
    }
}

impl Work {
    fn of(root: &Path) -> Self {
        Self { root: root.into(), folder: root.join(EDIT_FOLDER) }
    }

    fn at(&self, path: &TreePath) -> PathBuf {
        self.root.join(path.as_str())
    }

    fn aside(&self, kind: &str, step: usize) -> PathBuf {
        self.folder.join(kind).join(step.to_string())
    }

    fn journal(&self) -> PathBuf {
        self.folder.join(JOURNAL)
    }

    /// Writes everything but the renames. Up to the last line the edited files
    /// are untouched; from there on the edit can be finished.
    fn make_ready(
        &self,
        tree: &DiskTree,
        edits: &BTreeMap<TreePath, Option<File>>,
        options: &Options<'_>,
    ) -> Result<Journal, PublishError> {
        for kind in ["new", "old", "gone"] {
            let path = self.folder.join(kind);
            options.step(Step::Folder, &path);
            fs::create_dir(&path).map_err(PublishError::io("make", &path))?;
        }
        let removed: BTreeSet<_> =
            edits.iter().filter(|(_, f)| f.is_none()).map(|(p, _)| p).collect();
        let mut folders = BTreeSet::new();
        let mut steps = Vec::new();
        let removals = edits.iter().filter(|(_, f)| f.is_none());
        for (path, file) in removals.chain(edits.iter().filter(|(_, f)| f.is_some())) {
            if reserved::is_ours(path) {
                return Err(PublishError::Reserved { path: path.clone() });
            }
            let missing = self.way_to(path, &removed)?;
            let place = self.at(path);
            let old = stat(&place)?;
            if old.as_ref() != tree.stat(path) {
                return Err(PublishError::Changed { path: path.clone() });
            }
            let step = steps.len();
            match (file, old) {
                (None, None) => continue,
                (Some(file), Some(old)) if same(&place, &old, file) => continue,
                (Some(file), _) => {
                    folders.extend(missing);
                    self.write_new(step, &place, old, file, options)?;
                }
                (None, Some(_)) => {}
            }
            if old.is_some() {
                let aside = self.aside("old", step);
                options.step(Step::Link, &aside);
                link_or_copy(&place, &aside).map_err(PublishError::io("link", &place))?;
            }
            steps.push(Change { path: path.clone(), old, put: file.is_some() });
        }
        let folders = folders.into_iter().collect();
        let journal = Journal { schema: SCHEMA.into(), version: VERSION, folders, steps };
        if !journal.steps.is_empty() {
            self.write_journal(&journal, options)?;
        }
        Ok(journal)
    }

    /// The folders to be made for `path`. What is no folder on the way is in
    /// the way, unless the edit removes it.
    fn way_to(
        &self,
        path: &TreePath,
        removed: &BTreeSet<&TreePath>,
    ) -> Result<Vec<TreePath>, PublishError> {
        let mut missing = Vec::new();
        for folder in path.parents() {
            let at = self.at(&folder);
            match fs::symlink_metadata(&at) {
                _ if !missing.is_empty() => missing.push(folder),
                Err(e) if e.kind() == io::ErrorKind::NotFound => missing.push(folder),
                Err(e) => return Err(PublishError::io("look at", &at)(e)),
                Ok(meta) => match kind(&meta) {
                    None => {}
                    Some(_) if removed.contains(&folder) => missing.push(folder),
                    Some(found) => {
                        return Err(PublishError::NoWay { path: path.clone(), at, found });
                    }
                },
            }
        }
        Ok(missing)
    }

    fn write_new(
        &self,
        step: usize,
        place: &Path,
        old: Option<Stat>,
        file: &File,
        options: &Options<'_>,
    ) -> Result<(), PublishError> {
        let aside = self.aside("new", step);
        options.step(Step::Write, &aside);
        write_file(&aside, file.mode, &file.bytes).map_err(PublishError::io("write", place))?;
        // The user's own permissions stay; only whether it runs is the patch's.
        if old.is_some_and(|o| o.mode != Mode::Symlink) && file.mode != Mode::Symlink {
            let set = || {
                let bits = fs::symlink_metadata(place)?.permissions().mode() & 0o777;
                let bits = match file.mode {
                    Mode::Executable => bits | 0o100 | (bits & 0o044) >> 2,
                    _ => bits & !0o111,
                };
                fs::set_permissions(&aside, fs::Permissions::from_mode(bits))
            };
            set().map_err(PublishError::io("set the permissions of", place))?;
        }
        Ok(())
    }

    fn write_journal(&self, journal: &Journal, options: &Options<'_>) -> Result<(), PublishError> {
        let draft = self.folder.join("journal.draft");
        options.step(Step::Journal, &draft);
        let write = || {
            let mut file = fs::File::create_new(&draft)?;
            file.write_all(&serde_json::to_vec(journal).map_err(io::Error::other)?)?;
            file.sync_all()
        };
        write().map_err(PublishError::io("write", &draft))?;
        self.rename(&draft, &self.journal(), options)?;
        sync_folder(&self.folder)
    }

    fn read_journal(&self) -> Result<Option<Journal>, PublishError> {
        let path = self.journal();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => Vec::new(),
            Err(e) => return Err(PublishError::io("read", &path)(e)),
        };
        let known = serde_json::from_slice(&bytes)
            .ok()
            .filter(|j: &Journal| j.schema == SCHEMA && j.version == VERSION);
        known.map(Some).ok_or_else(|| PublishError::Journal { folder: self.root.clone() })
    }

    fn rename(&self, from: &Path, to: &Path, options: &Options<'_>) -> Result<(), PublishError> {
        options.step(Step::Rename, to);
        fs::rename(from, to).map_err(PublishError::io("rename to", to))
    }

    /// Takes the steps that are not taken yet.
    fn finish(&self, journal: &Journal, options: &Options<'_>) -> Result<(), PublishError> {
        let steps = || journal.steps.iter().enumerate();
        for (n, change) in steps().filter(|(_, c)| !c.put) {
            let gone = self.aside("gone", n);
            if !exists(&gone) {
                self.rename(&self.at(&change.path), &gone, options)?;
            }
            self.prune(&change.path);
        }
        for (n, change) in steps().filter(|(_, c)| c.put) {
            let new = self.aside("new", n);
            if exists(&new) {
                for folder in change.path.parents() {
                    self.make_folder(&folder, options)?;
                }
                self.rename(&new, &self.at(&change.path), options)?;
            }
        }
        Ok(())
    }

    /// Takes back the steps that were taken, the last first.
    fn undo(&self, journal: &Journal, options: &Options<'_>) -> Result<(), PublishError> {
        for (n, change) in journal.steps.iter().enumerate().rev() {
            let place = self.at(&change.path);
            match (change.put, change.old) {
                (true, _) if exists(&self.aside("new", n)) => {}
                (true, Some(_)) => self.rename(&self.aside("old", n), &place, options)?,
                (true, None) => {
                    options.step(Step::Remove, &place);
                    fs::remove_file(&place).map_err(PublishError::io("remove", &place))?;
                }
                (false, _) if exists(&self.aside("gone", n)) => {
                    // All that was put is out again by now, and what was made
                    // for it can go, so that a file finds its place free.
                    for folder in journal.folders.iter().rev() {
                        let _ = fs::remove_dir(self.at(folder));
                    }
                    for folder in change.path.parents() {
                        self.make_folder(&folder, options)?;
                    }
                    self.rename(&self.aside("gone", n), &place, options)?;
                }
                (false, _) => {}
            }
        }
        for folder in journal.folders.iter().rev() {
            let _ = fs::remove_dir(self.at(folder));
        }
        Ok(())
    }

    fn make_folder(&self, folder: &TreePath, options: &Options<'_>) -> Result<(), PublishError> {
        let at = self.at(folder);
        if exists(&at) {
            return must_be_folder(&at);
        }
        options.step(Step::Folder, &at);
        fs::create_dir(&at).map_err(PublishError::io("make", &at))
    }

    /// Removes the folders above `path` that are empty now.
    fn prune(&self, path: &TreePath) {
        let parents: Vec<_> = path.parents().collect();
        for folder in parents.iter().rev() {
            if fs::remove_dir(self.at(folder)).is_err() {
                break;
            }
        }
    }

    /// The steps that are not taken yet, with their numbers.
    ///
    /// # Errors
    /// A file of one was changed since.
    fn open_steps<'j>(
        &self,
        journal: &'j Journal,
    ) -> Result<Vec<(usize, &'j Change)>, PublishError> {
        let is_open = |(n, change): &(usize, &Change)| match change.put {
            true => exists(&self.aside("new", *n)),
            false => !exists(&self.aside("gone", *n)),
        };
        let open: Vec<_> = journal.steps.iter().enumerate().filter(is_open).collect();
        let mut tangled = Vec::new();
        for (_, change) in &open {
            if stat(&self.at(&change.path))? != change.old {
                tangled.push(change.path.clone());
            }
        }
        match tangled.is_empty() {
            true => Ok(open),
            false => Err(PublishError::Tangled { folder: self.root.clone(), paths: tangled }),
        }
    }

    /// The file that step `n` is to put in its place.
    fn put_file(&self, n: usize) -> Result<File, PublishError> {
        let path = self.aside("new", n);
        let mode = stat(&path)?.map_or(Mode::Regular, |stat| stat.mode);
        let bytes = disk::read(&path, mode).map_err(PublishError::io("read", &path))?;
        Ok(File::new(mode, bytes))
    }

    /// Finishes what an earlier run began. Needs the lock.
    fn mend(&self, options: &Options<'_>) -> Result<Option<Mended>, PublishError> {
        let journal = self.read_journal()?;
        if let Some(journal) = &journal {
            (options.watch)(Event::Mending);
            self.open_steps(journal)?;
            self.finish(journal, options)?;
        }
        self.close(options)?;
        Ok(journal.map(|journal| Mended(journal.edited())))
    }

    /// Ends the edit: first the journal goes, then what it spoke of.
    fn close(&self, options: &Options<'_>) -> Result<(), PublishError> {
        let journal = self.journal();
        if exists(&journal) {
            options.step(Step::Remove, &journal);
            fs::remove_file(&journal).map_err(PublishError::io("remove", &journal))?;
        }
        self.clear(options)
    }

    fn clear(&self, options: &Options<'_>) -> Result<(), PublishError> {
        for name in ["new", "old", "gone"] {
            let path = self.folder.join(name);
            if exists(&path) {
                options.step(Step::Remove, &path);
                fs::remove_dir_all(&path).map_err(PublishError::io("remove", &path))?;
            }
        }
        let draft = self.folder.join("journal.draft");
        if exists(&draft) {
            fs::remove_file(&draft).map_err(PublishError::io("remove", &draft))?;
        }
        Ok(())
    }
}

fn same(place: &Path, old: &Stat, file: &File) -> bool {
    old.mode == file.mode
        && old.size == file.bytes.len() as u64
        && disk::read(place, old.mode).is_ok_and(|bytes| *bytes == *file.bytes)
}
