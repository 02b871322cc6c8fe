//! A repository with many commits: names, ancestors, and files at a commit.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use git2::{Commit, Error, ObjectType, Oid};

use super::missing::find_commit;
use super::object::{self, TreeEntry};
use super::objects::{Handle, Objects};
use super::store::prove;
use super::tree::GitTree;
use super::{GitError, revision, to_id, to_oid};
use crate::listing::Listed;
use crate::snapshot::{Mode, ObjectId, TreePath};

/// A repository of upstream's with its history, opened in place and never
/// written to.
pub struct History {
    objects: Objects,
}

/// What a commit says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its id.
    pub id: ObjectId,
    /// The id of its root tree.
    pub tree: ObjectId,
    /// Its parents, the first one first.
    pub parents: Vec<ObjectId>,
    /// The first line of its message.
    pub subject: String,
    /// The day its author gives, in the author's own time zone, `YYYY-MM-DD`.
    pub date: String,
    /// The author's time, in seconds of the epoch.
    pub seconds: i64,
}

impl History {
    /// Opens the repository at `path`.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, GitError> {
        Ok(Self { objects: Objects::open(path)? })
    }

    /// The repository's own folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.objects.path()
    }

    /// The commit that a name means: an id or the beginning of one, a tag, a
    /// branch, or a branch of `origin`.
    ///
    /// # Errors
    /// It means none, or several; or what is to be read for it is damaged.
    pub fn resolve(&self, rev: &str) -> Result<ObjectId, GitError> {
        revision::resolve(&self.objects.handle(), self.path(), rev)
    }

    /// Whether the repository has the commit, be it damaged.
    #[must_use]
    pub fn has(&self, commit: ObjectId) -> bool {
        self.objects.handle().odb().is_ok_and(|objects| objects.exists(to_oid(commit)))
    }

    /// Reads every object of `commit` and checks it against its id. Gives
    /// their number.
    ///
    /// # Errors
    /// One is missing or damaged, or the root tree is not `tree`.
    pub fn prove(&self, commit: ObjectId, tree: ObjectId) -> Result<usize, GitError> {
        prove(self.path(), commit, tree)
    }

    /// What a commit says of itself.
    ///
    /// # Errors
    /// It is not there, or the repository is damaged.
    pub fn commit(&self, id: ObjectId) -> Result<CommitInfo, GitError> {
        let repository = self.objects.handle();
        let commit = self.find(&repository, id)?;
        Ok(info(&commit))
    }

    /// All files of a commit.
    ///
    /// # Errors
    /// The commit is not there, or its tree is damaged.
    pub fn tree(&self, commit: ObjectId) -> Result<GitTree, GitError> {
        let tree = {
            let repository = self.objects.handle();
            self.find(&repository, commit)?.tree_id()
        };
        GitTree::read(&self.objects, tree)
    }

    /// The last commit that two commits both reach by first parents alone: where a
    /// branch took others in, no commit of those.
    ///
    /// # Errors
    /// There is none, or one of them is not there.
    pub fn merge_base(&self, one: ObjectId, other: ObjectId) -> Result<ObjectId, GitError> {
        if let Some(id) = [one, other].into_iter().find(|id| !self.has(*id)) {
            return Err(self.no_commit(id));
        }
        let repository = self.objects.handle();
        let read = |id| object::commit(&repository, id).map_err(|e| self.objects.damaged(e));
        let mut at = [Some(read(to_oid(one))?), Some(read(to_oid(other))?)];
        let mut seen = [HashSet::new(), HashSet::new()];
        // From where they meet on the two ways are one: who comes there last finds it.
        // The newer commit goes on, so that neither way is gone far past that.
        loop {
            let mine = match &at {
                [None, None] => break,
                [Some(one), Some(other)] => usize::from(one.time() < other.time()),
                [one, _] => usize::from(one.is_none()),
            };
            let Some(commit) = at[mine].take() else { break };
            if seen[1 - mine].contains(&commit.id()) {
                return Ok(to_id(commit.id()));
            }
            seen[mine].insert(commit.id());
            at[mine] = commit.parent_id(0).ok().map(read).transpose()?;
        }
        Err(GitError::Unrelated { path: self.path().to_path_buf(), one, other })
    }

    /// The commits after `from` up to `to`, the oldest first, following first
    /// parents from `to`. The walk ends at `from`, which is not part of it.
    ///
    /// # Errors
    /// `from` is no first-parent ancestor of `to`, or a commit is not there.
    pub fn first_parent_walk(
        &self,
        from: ObjectId,
        to: ObjectId,
    ) -> Result<Vec<CommitInfo>, GitError> {
        let repository = self.objects.handle();
        let unrelated =
            || GitError::Unrelated { path: self.path().to_path_buf(), one: from, other: to };
        let mut walk = Vec::new();
        let mut at = to;
        while at != from {
            let commit = self.find(&repository, at)?;
            walk.push(info(&commit));
            at = to_id(commit.parent_id(0).map_err(|_| unrelated())?);
        }
        walk.reverse();
        Ok(walk)
    }

    /// What the file at `path` is in a commit, or nothing where none is.
    ///
    /// # Errors
    /// The commit is not there, or its tree is damaged.
    pub fn file_at(&self, commit: ObjectId, path: &TreePath) -> Result<Option<Listed>, GitError> {
        let found = self.paths_at(commit, &PathSet::new([path.clone()]))?;
        Ok(found.into_iter().next().flatten().and_then(At::file))
    }

    /// What stands at the paths of a set in a commit, in the set's order.
    /// Folders that the set has seen before cost nothing: a walk over a history
    /// reads each of them once.
    ///
    /// # Errors
    /// The commit is not there, or its tree is damaged.
    pub fn paths_at(&self, commit: ObjectId, paths: &PathSet) -> Result<Vec<Option<At>>, GitError> {
        let repository = self.objects.handle();
        let tree = self.find(&repository, commit)?.tree_id();
        let found = paths.look(&repository, 0, tree).map_err(|e| self.objects.damaged(e))?;
        let mut stands = vec![None; paths.paths.len()];
        found.iter().for_each(|(at, found)| stands[*at] = Some(*found));
        Ok(stands)
    }

    /// An id of which paths a commit has: two commits with the same files, whatever
    /// is in them, have the same one. Folders that `seen` knows cost nothing.
    ///
    /// # Errors
    /// The commit is not there, or its tree is damaged.
    pub fn names_at(&self, commit: ObjectId, seen: &NamesSeen) -> Result<ObjectId, GitError> {
        let repository = self.objects.handle();
        let tree = self.find(&repository, commit)?.tree_id();
        let mut seen = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        names(&repository, tree, &mut seen).map_err(|e| self.objects.damaged(e))
    }

    /// The bytes of a blob, checked against its id.
    ///
    /// # Errors
    /// It is not there, or damaged.
    pub fn blob(&self, id: ObjectId) -> Result<Arc<[u8]>, GitError> {
        GitTree::blob(&self.objects, id).map_err(|e| self.objects.damaged(e))
    }

    fn find<'r>(&self, repository: &'r Handle<'_>, id: ObjectId) -> Result<Commit<'r>, GitError> {
        find_commit(repository, self.path(), id)
    }

    fn no_commit(&self, commit: ObjectId) -> GitError {
        GitError::NoCommit { from: self.path().display().to_string(), commit }
    }
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// A file.
    File(Listed),
    /// A folder.
    Folder,
}

impl At {
    /// The file, where it is one.
    #[must_use]
    pub fn file(self) -> Option<Listed> {
        match self {
            At::File(listed) => Some(listed),
            At::Folder => None,
        }
    }
}

/// The folders whose names are known, for [`History::names_at`].
#[derive(Default)]
pub struct NamesSeen(Mutex<HashMap<Oid, ObjectId>>);

/// Paths to look up in many commits.
#[derive(Default)]
pub struct PathSet {
    paths: Vec<TreePath>,
    /// Node 0 is the root.
    nodes: Vec<Node>,
    seen: Mutex<HashMap<(usize, Oid), Found>>,
}

/// Which paths of the set a folder holds, and what they are there.
type Found = Arc<Vec<(usize, At)>>;

#[derive(Default)]
struct Node {
    /// The paths that end here, by their name in this folder.
    files: HashMap<Vec<u8>, usize>,
    folders: HashMap<Vec<u8>, usize>,
}

impl PathSet {
    /// A set; its order is sorted, without doubles.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = TreePath>) -> Self {
        let mut paths: Vec<TreePath> = paths.into_iter().collect();
        paths.sort();
        paths.dedup();
        let mut nodes = vec![Node::default()];
        for (at, path) in paths.iter().enumerate() {
            let mut node = 0;
            let (folders, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
            for folder in folders.split('/').filter(|f| !f.is_empty()) {
                let next = nodes.len();
                let found = *nodes[node].folders.entry(folder.into()).or_insert(next);
                if found == next {
                    nodes.push(Node::default());
                }
                node = found;
            }
            nodes[node].files.insert(name.into(), at);
        }
        Self { paths, nodes, seen: Mutex::default() }
    }

    /// The paths, in the order of the answers.
    #[must_use]
    pub fn paths(&self) -> &[TreePath] {
        &self.paths
    }

    fn look(&self, repository: &Handle<'_>, node: usize, tree: Oid) -> Result<Found, Error> {
        if let Some(found) = self.seen().get(&(node, tree)) {
            return Ok(found.clone());
        }
        let mut found = Vec::new();
        let bytes = object::read(repository, tree, ObjectType::Tree)?;
        let Node { files, folders } = &self.nodes[node];
        let mut wanted = files.len() + folders.len();
        for entry in object::entries(&bytes) {
            if wanted == 0 {
                break;
            }
            let TreeEntry { mode, name, id } = entry?;
            if let Some(at) = files.get(name) {
                wanted -= 1;
                let file = Mode::from_bits(mode).map(|mode| Listed { mode, id: to_id(id) });
                let folder = (mode == object::TREE).then_some(At::Folder);
                found.extend(folder.or(file.map(At::File)).map(|stands| (*at, stands)));
            }
            if let (object::TREE, Some(below)) = (mode, folders.get(name)) {
                wanted -= 1;
                found.extend(self.look(repository, *below, id)?.iter().copied());
            }
        }
        let found = Arc::new(found);
        self.seen().insert((node, tree), found.clone());
        Ok(found)
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<(usize, Oid), Found>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An id of the paths below a folder.
fn names(
    repository: &Handle<'_>,
    tree: Oid,
    seen: &mut HashMap<Oid, ObjectId>,
) -> Result<ObjectId, Error> {
    if let Some(known) = seen.get(&tree) {
        return Ok(*known);
    }
    let bytes = object::read(repository, tree, ObjectType::Tree)?;
    let mut text = Vec::new();
    for entry in object::entries(&bytes) {
        let TreeEntry { mode, name, id } = entry?;
        text.extend_from_slice(name);
        if mode == object::TREE {
            text.push(b'/');
            text.extend_from_slice(names(repository, id, seen)?.to_string().as_bytes());
        }
        text.push(0);
    }
    let id = ObjectId::of_blob(&text);
    seen.insert(tree, id);
    Ok(id)
}

fn info(commit: &Commit<'_>) -> CommitInfo {
    let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
    let when = commit.author().when();
    CommitInfo {
        id: to_id(commit.id()),
        tree: to_id(commit.tree_id()),
        parents: commit.parent_ids().map(to_id).collect(),
        subject: message.trim_start().lines().next().unwrap_or_default().to_owned(),
        date: day(when.seconds() + i64::from(when.offset_minutes()) * 60),
        seconds: when.seconds(),
    }
}

/// The day of a time in seconds since 1970, by the civil calendar.
fn day(seconds: i64) -> String {
    // Days since 0000-03-01, so that a leap day ends its year.
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // `date -u -d @N +%F`
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (951_782_400, "2000-02-29"),
            (1_786_939_790, "2026-08-17"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(day(seconds), expected, "{seconds}");
        }
    }
}
