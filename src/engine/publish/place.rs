//! The place of a tree: what stands there, and how another takes its stead.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};
use rustix::io::Errno;
use walkdir::WalkDir;

use super::lay::{self, Job};
use super::{
    Action, Depth, Event, Finding, Force, Identity, Options, Plan, PublishError, Recorded, STAMP,
    Stamp, StampError, Step, Survey, survey,
};
use crate::snapshot::{Entry, Mode, ObjectId, Tree, TreePath};
use crate::work_folder::{self, Owner};

/// Where a tree is published, and the work folder beside it.
#[derive(Debug)]
pub(super) struct Place {
    /// The tree's folder, absolute.
    pub dest: PathBuf,
    /// The work folder, a sibling, so that a rename stays on one file system.
    pub work: PathBuf,
}

/// What is there, if anything is; never follows a link.
fn is_there(path: &Path) -> Result<bool, PublishError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(PublishError::io("look at", path)(e)),
    }
}

pub(super) fn must_be_folder(path: &Path) -> Result<(), PublishError> {
    let meta = fs::symlink_metadata(path).map_err(PublishError::io("look at", path))?;
    match kind(&meta) {
        None => Ok(()),
        Some(found) => Err(PublishError::NotAFolder { path: path.into(), found }),
    }
}

/// What it is in words; nothing for a folder.
pub(super) fn kind(meta: &fs::Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    match () {
        () if kind.is_dir() => None,
        () if kind.is_symlink() => Some("a symbolic link"),
        () if kind.is_file() => Some("a file"),
        () => Some("a special file"),
    }
}

pub(super) fn sync_folder(path: &Path) -> Result<(), PublishError> {
    File::open(path).and_then(|f| f.sync_all()).map_err(PublishError::io("sync", path))
}

/// Removes a tree. A person may have taken the right to write from its folders; it is
/// theirs no more, and nothing else ever removes it.
fn remove_tree(tree: &Path) -> Result<(), PublishError> {
    let failed = PublishError::io("remove, and change the permissions of,", tree);
    match fs::remove_dir_all(tree) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
        done => return done.map_err(PublishError::io("remove", tree)),
    }
    // No link is followed.
    for entry in WalkDir::new(tree).into_iter().filter_map(Result::ok) {
        if entry.file_type().is_dir() {
            let _ = fs::set_permissions(entry.path(), Permissions::from_mode(0o700));
        }
    }
    fs::remove_dir_all(tree).map_err(failed)
}

impl Place {
    pub(super) fn of(dest: &Path) -> Result<Self, PublishError> {
        let nameless = || PublishError::Nameless { path: dest.into() };
        let dest = std::path::absolute(dest).map_err(|_| nameless())?;
        let (Some(parent), Some(name)) = (dest.parent(), dest.file_name()) else {
            return Err(nameless());
        };
        let mut work = std::ffi::OsString::from(".");
        work.push(name);
        work.push(".overlay");
        let work = parent.join(work);
        Ok(Self { dest, work })
    }

    pub(super) fn new_tree(&self) -> PathBuf {
        self.work.join("new")
    }

    fn old_tree(&self) -> PathBuf {
        self.work.join("old")
    }

    /// Nothing is there, or an empty folder.
    pub(super) fn is_free(&self) -> Result<bool, PublishError> {
        if !is_there(&self.dest)? {
            return Ok(true);
        }
        must_be_folder(&self.dest)?;
        let mut inside = fs::read_dir(&self.dest).map_err(PublishError::io("list", &self.dest))?;
        Ok(inside.next().is_none())
    }

    /// An earlier run was broken off, or one is at it.
    pub(super) fn is_unfinished(&self) -> bool {
        [self.new_tree(), self.old_tree()].iter().any(|p| fs::symlink_metadata(p).is_ok())
            && matches!(work_folder::owner(&self.work, &[]), Ok(Owner::Overlay))
    }

    /// Clears what an earlier run left, whoever was killed where. Needs the
    /// lock.
    pub(super) fn mend(&self, options: &Options<'_>) -> Result<(), PublishError> {
        let (new, old) = (self.new_tree(), self.old_tree());
        if self.is_unfinished() {
            (options.watch)(Event::Mending);
        }
        // Killed between the two renames: one of the two trees takes the place.
        if is_there(&old)? && !is_there(&self.dest)? {
            let from = if Stamp::read(&new).is_ok() { &new } else { &old };
            self.rename(from, &self.dest, options)?;
        }
        self.clear(options)
    }

    /// Removes everything in the work folder but the lock.
    pub(super) fn clear(&self, options: &Options<'_>) -> Result<(), PublishError> {
        for tree in [self.new_tree(), self.old_tree()] {
            if is_there(&tree)? {
                options.step(Step::Remove, &tree);
                remove_tree(&tree)?;
            }
        }
        let stamp = self.work.join("stamp");
        match fs::remove_file(&stamp) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(PublishError::io("remove", &stamp)(e))
            }
            _ => Ok(()),
        }
    }

    fn rename(&self, from: &Path, to: &Path, options: &Options<'_>) -> Result<(), PublishError> {
        options.step(Step::Rename, to);
        fs::rename(from, to).map_err(PublishError::io("rename to", to))
    }

    /// Links the files that are not of the tree into the next one.
    pub(super) fn carry(
        &self,
        Carry { files, folders }: &Carry,
        options: &Options<'_>,
    ) -> Result<(), PublishError> {
        let new = self.new_tree();
        for path in files {
            let to = new.join(path);
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder).map_err(PublishError::io("make", folder))?;
            }
            options.step(Step::Link, &to);
            lay::link_or_copy(&self.dest.join(path), &to).map_err(PublishError::io("link", &to))?;
        }
        for path in folders {
            let to = new.join(path);
            fs::create_dir_all(&to).map_err(PublishError::io("make", &to))?;
        }
        // Last, and what is inside first: a folder may not be written to then.
        for path in folders.iter().rev() {
            let (from, to) = (self.dest.join(path), new.join(path));
            fs::symlink_metadata(&from)
                .and_then(|meta| fs::set_permissions(&to, meta.permissions()))
                .map_err(PublishError::io("set the permissions of", &to))?;
        }
        Ok(())
    }

    /// The folders in the place that are not the tree's, then or now, each
    /// before what is inside it.
    fn foreign_folders(&self, then: &Stamp, now: &Footprint) -> Vec<PathBuf> {
        let ours: BTreeSet<PathBuf> =
            then.files.iter().flat_map(|r| r.path.parents()).map(|p| p.as_str().into()).collect();
        let walk = WalkDir::new(&self.dest).min_depth(1).sort_by_file_name().into_iter();
        // A folder that cannot be read has been named by the survey.
        walk.filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_dir())
            .filter_map(|entry| entry.path().strip_prefix(&self.dest).ok().map(Path::to_path_buf))
            .filter(|path| !ours.contains(path) && !now.meets(path))
            .collect()
    }

    /// Stamps the next tree; from here it is whole.
    pub(super) fn seal(&self, stamp: &Stamp, options: &Options<'_>) -> Result<(), PublishError> {
        let new = self.new_tree();
        let path = new.join(STAMP);
        options.step(Step::Stamp, &path);
        stamp.write(&path).map_err(PublishError::io("write", &path))?;
        sync_folder(&new)
    }

    /// Writes another stamp over the one of the tree that is there.
    pub(super) fn restamp(&self, stamp: &Stamp, options: &Options<'_>) -> Result<(), PublishError> {
        let aside = self.work.join("stamp");
        options.step(Step::Stamp, &aside);
        stamp.write(&aside).map_err(PublishError::io("write", &aside))?;
        let stamp = self.dest.join(STAMP);
        // A file takes no folder's place. What is in one is a file in the way, and
        // then the tree is written anew.
        if fs::symlink_metadata(&stamp).is_ok_and(|meta| meta.is_dir()) {
            fs::remove_dir(&stamp).map_err(PublishError::io("remove", &stamp))?;
        }
        self.rename(&aside, &stamp, options)?;
        sync_folder(&self.dest)
    }

    /// Puts the next tree in its place, and what stood there in the work folder.
    pub(super) fn swap(&self, options: &Options<'_>) -> Result<(), PublishError> {
        let (new, old, dest) = (self.new_tree(), self.old_tree(), &self.dest);
        if self.is_free()? {
            self.rename(&new, dest, options)?;
        } else {
            options.step(Step::Rename, dest);
            match renameat_with(CWD, &new, CWD, dest, RenameFlags::EXCHANGE) {
                Ok(()) => {}
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => {
                    self.swap_in_two(&new, &old, options)?;
                }
                Err(e) => return Err(PublishError::io("exchange", dest)(e.into())),
            }
        }
        match self.work.parent() {
            Some(parent) => sync_folder(parent),
            None => Ok(()),
        }
    }

    /// For file systems that cannot exchange: between the renames nothing is at
    /// the place, and [`Place::mend`] puts a tree there.
    fn swap_in_two(
        &self,
        new: &Path,
        old: &Path,
        options: &Options<'_>,
    ) -> Result<(), PublishError> {
        self.rename(&self.dest, old, options)?;
        let put = self.rename(new, &self.dest, options);
        if put.is_err() {
            self.rename(old, &self.dest, options)?;
        }
        put
    }
}

/// What is to be done, worked out.
#[derive(Debug)]
pub(super) struct Prepared {
    pub plan: Plan,
    pub jobs: Vec<Job>,
    /// Where only the stamp is written: the files' records.
    pub recorded: Vec<Recorded>,
    /// What is not of the tree and comes along.
    pub carry: Carry,
}

/// What is not of the tree.
#[derive(Debug, Default)]
pub(super) struct Carry {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

pub(super) fn prepare(
    place: &Place,
    tree: &dyn Tree,
    identity: &Identity,
    force: Force,
) -> Result<Prepared, PublishError> {
    let entries = tree.entries();
    lay::check(&entries)?;
    if place.is_free()? {
        let plan = Plan {
            action: Action::Create,
            write: entries.iter().map(|e| e.path.clone()).collect(),
            remove: Vec::new(),
            keep: 0,
            overwrite: Vec::new(),
            foreign: Vec::new(),
        };
        let jobs = entries.into_iter().map(Job::Write).collect();
        return Ok(Prepared { plan, jobs, recorded: Vec::new(), carry: Carry::default() });
    }
    // Whoever asks for hand edits to go may have learnt of one from its hash.
    let depth = match force {
        Force::Refuse => Depth::Stat,
        Force::Overwrite => Depth::Hash,
    };
    let there = match survey(&place.dest, depth) {
        Err(PublishError::Stamp(StampError::Missing { folder })) => {
            return Err(PublishError::NotOurs { path: folder });
        }
        Err(PublishError::Stamp(error)) if error.is_lost() && force == Force::Overwrite => {
            Survey::against(place, tree, &entries, identity)?
        }
        other => other?,
    };

    let footprint = Footprint::of(&entries);
    let (in_the_way, files): (Vec<_>, Vec<_>) =
        there.foreign.iter().cloned().partition(|path| footprint.meets(path));
    let carry = Carry { files, folders: place.foreign_folders(&there.stamp, &footprint) };
    let lost = |f: &&Finding| f.is_change() && !matches!(f, Finding::Missing { .. });
    let mut overwrite: Vec<_> = there.findings.iter().filter(lost).cloned().collect();
    overwrite.extend(
        in_the_way.iter().map(|p| Finding::Extra { path: p.to_string_lossy().into_owned() }),
    );

    let changed: BTreeSet<&str> = there.findings.iter().filter_map(Finding::changed_path).collect();
    let mut old: BTreeMap<&TreePath, &Recorded> =
        there.stamp.files.iter().map(|r| (&r.path, r)).collect();
    let mut jobs = Vec::with_capacity(entries.len());
    let mut replaced = Vec::new();
    for entry in entries {
        let recorded = old.remove(&entry.path);
        let stays = match recorded {
            Some(r) if r.mode == entry.mode && !changed.contains(entry.path.as_str()) => {
                blob_id(&entry, tree)? == r.id
            }
            _ => false,
        };
        jobs.push(match recorded {
            Some(recorded) if stays => Job::Keep(recorded.clone()),
            _ => {
                replaced.extend(recorded);
                Job::Write(entry)
            }
        });
    }
    let mut write = Vec::new();
    let mut recorded = Vec::new();
    for job in &jobs {
        match job {
            Job::Keep(kept) => recorded.push(kept.clone()),
            Job::Write(entry) if entry.mode == Mode::Submodule => {}
            Job::Write(entry) => write.push(entry.path.clone()),
        }
    }
    let remove: Vec<_> = old.keys().map(|&p| p.clone()).collect();
    // A time can be set back: what is written over or removed is hashed first.
    if depth == Depth::Stat {
        let touched = replaced.into_iter().chain(old.into_values());
        let unseen = touched.filter(|file| !changed.contains(file.path.as_str()));
        overwrite.extend(unseen.filter_map(|file| survey::edited(&place.dest, file)));
    }
    if !overwrite.is_empty() && force == Force::Refuse {
        return Err(PublishError::HandEdited { path: place.dest.clone(), findings: overwrite });
    }
    let action = match () {
        () if !write.is_empty() || !remove.is_empty() || !overwrite.is_empty() => Action::Update,
        () if there.is_of(identity) => Action::Nothing,
        () => Action::Restamp,
    };
    // What stands there changes its folder or gets another stamp.
    if action != Action::Nothing && access(&place.dest, Access::WRITE_OK | Access::EXEC_OK).is_err()
    {
        return Err(PublishError::Closed { path: place.dest.clone() });
    }
    let kept = |path: &str| carry.files.iter().any(|c| c.starts_with(path.trim_end_matches('/')));
    let extra = there.findings.iter().filter_map(|f| match f {
        Finding::Extra { path } if kept(path) => Some(path.clone()),
        _ => None,
    });
    let plan =
        Plan { action, write, remove, keep: recorded.len(), overwrite, foreign: extra.collect() };
    Ok(Prepared { plan, jobs, recorded, carry })
}

pub(super) fn blob_id(entry: &Entry, tree: &dyn Tree) -> Result<ObjectId, PublishError> {
    match entry.id {
        Some(id) => Ok(id),
        None => match tree.file(&entry.path)? {
            Some(file) => Ok(ObjectId::of_blob(&file.bytes)),
            None => Err(PublishError::Lost { path: entry.path.clone() }),
        },
    }
}

/// The names that a tree takes for itself, its stamp's included.
struct Footprint {
    files: BTreeSet<PathBuf>,
    folders: BTreeSet<PathBuf>,
}

impl Footprint {
    fn of(entries: &[Entry]) -> Self {
        let files = entries.iter().map(|e| e.path.as_str().into());
        let files = files.chain([STAMP.into()]).collect();
        let folders = entries.iter().flat_map(|e| e.path.parents());
        Self { files, folders: folders.map(|p| p.as_str().into()).collect() }
    }

    /// Whether the file at `path` cannot stand beside the tree's own.
    fn meets(&self, path: &Path) -> bool {
        self.folders.contains(path) || path.ancestors().any(|p| self.files.contains(p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::{Source, publish};
    use crate::snapshot::{File, MemoryTree};

    fn identity(series: &str) -> Identity {
        Identity {
            pin: ObjectId::of_blob(b""),
            source: Source::Git { tree: ObjectId::of_blob(b"") },
            series: series.into(),
            contracts: String::new(),
            groups: Vec::new(),
            partial: None,
            trial: None,
        }
    }

    fn tree(text: &str) -> MemoryTree {
        let file = File::new(Mode::Regular, text.as_bytes());
        MemoryTree([(TreePath::new("a").unwrap(), file)].into())
    }

    fn series(place: &Place) -> String {
        let survey = survey(&place.dest, Depth::Hash).unwrap();
        assert_eq!(survey.findings, []);
        survey.stamp.identity.series
    }

    /// `old` is published, and `new` stands sealed in the work folder.
    fn set_up(dir: &Path) -> Place {
        let place = Place::of(&dir.join("tree")).unwrap();
        let other = Place::of(&dir.join("other")).unwrap();
        let options = Options::default();
        publish(&place.dest, &tree("old"), &identity("old"), &options).unwrap();
        publish(&other.dest, &tree("new"), &identity("new"), &options).unwrap();
        fs::create_dir(&place.work).unwrap();
        work_folder::sign(&work_folder::open_lock(&place.work).unwrap()).unwrap();
        fs::rename(&other.dest, place.new_tree()).unwrap();
        place
    }

    #[test]
    fn without_an_exchange_two_renames_do() {
        let dir = tempfile::tempdir().unwrap();
        let place = set_up(dir.path());
        place.swap_in_two(&place.new_tree(), &place.old_tree(), &Options::default()).unwrap();
        assert!(place.is_unfinished());
        place.mend(&Options::default()).unwrap();
        assert_eq!(series(&place), "new");
        assert!(!place.is_unfinished());
    }

    #[test]
    fn killed_between_two_renames_the_whole_tree_takes_the_place() {
        for (sealed, wanted) in [(true, "new"), (false, "old")] {
            let dir = tempfile::tempdir().unwrap();
            let place = set_up(dir.path());
            if !sealed {
                fs::remove_file(place.new_tree().join(STAMP)).unwrap();
            }
            fs::rename(&place.dest, place.old_tree()).unwrap();
            assert!(matches!(
                survey(&place.dest, Depth::Stat),
                Err(PublishError::Stamp(StampError::Missing { .. }))
            ));
            place.mend(&Options::default()).unwrap();
            assert_eq!(series(&place), wanted);
            assert!(!place.is_unfinished());
        }
    }

    #[test]
    fn a_failed_second_rename_puts_the_old_tree_back() {
        let dir = tempfile::tempdir().unwrap();
        let place = set_up(dir.path());
        let nowhere = place.work.join("nowhere");
        let failed = place.swap_in_two(&nowhere, &place.old_tree(), &Options::default());
        assert!(failed.is_err());
        fs::remove_dir_all(place.new_tree()).unwrap();
        assert_eq!(series(&place), "old");
    }
}
