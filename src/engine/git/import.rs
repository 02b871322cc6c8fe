//! Bringing one commit into a [`Store`]: from a repository on this machine or
//! from a server, without its history.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use git2::{AutotagOption, Direction, ErrorCode, FetchOptions, RemoteCallbacks, Repository};

use super::store::{Store, mark, prove};
use super::{GitError, http, to_oid};
use crate::cache::{self, CacheError, Lock};
use crate::progress::{Event, Progress};
use crate::secret::hidden;
use crate::snapshot::ObjectId;

/// How long a fetch may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a name to resolve, and for a connection.
    pub connect: Duration,
    /// For the next bytes.
    pub silence: Duration,
    /// For one request and its answer.
    pub whole: Duration,
}

impl Limits {
    pub(super) const DEFAULT: Self = Self {
        connect: Duration::from_secs(15),
        silence: Duration::from_secs(60),
        whole: Duration::from_secs(30 * 60),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Whether a git repository answers at an address; nothing is fetched.
///
/// # Errors
/// None does, or not in its time.
pub fn reach(address: &str, limits: Limits) -> Result<(), GitError> {
    match address_of(address)? {
        Address::Folder(path) => match Repository::open(&path) {
            Ok(_) => Ok(()),
            Err(source) => Err(GitError::Open { path, source }),
        },
        Address::Server(url) => {
            prepare(limits);
            let unreachable = |source| super::unreachable(url, &source);
            let mut remote = git2::Remote::create_detached(url).map_err(unreachable)?;
            remote.connect(Direction::Fetch).map_err(unreachable)
        }
    }
}

/// Where an address leads.
enum Address<'a> {
    Folder(PathBuf),
    Server(&'a str),
}

/// The folder of this machine that an address leads to, if it does.
#[must_use]
pub fn folder_of(address: &str) -> Option<PathBuf> {
    match address_of(address) {
        Ok(Address::Folder(path)) => Some(path),
        _ => None,
    }
}

fn address_of(from: &str) -> Result<Address<'_>, GitError> {
    if let Some(path) = from.strip_prefix("file://") {
        return Ok(Address::Folder(path.into()));
    }
    match from.split_once("://") {
        None if Path::new(from).exists() || !from.contains(':') => Ok(Address::Folder(from.into())),
        Some(("http" | "https" | "git", _)) => Ok(Address::Server(from)),
        _ => Err(GitError::Scheme { url: hidden(from).into() }),
    }
}

impl Store {
    /// Brings `commit`, without its history, from the folder or URL `from`,
    /// and reads every object once to prove that all are there. Gives the
    /// number of files. Waits while another process writes to the store.
    ///
    /// # Errors
    /// There is no such commit or repository, the server cannot be reached or
    /// goes silent, or the commit's root tree is not `tree`.
    pub fn import(
        &self,
        commit: ObjectId,
        tree: ObjectId,
        from: &str,
        limits: Limits,
        progress: &dyn Progress,
    ) -> Result<usize, GitError> {
        let address = address_of(from)?;
        let bring = || {
            let (lock, repository) = self.open_locked(progress)?;
            progress.tell(Event::Begin(&format!("fetching {commit} from {}", hidden(from))));
            match &address {
                Address::Folder(path) => copy(&repository, path, commit, progress)?,
                Address::Server(url) => fetch(&repository, url, commit, limits, progress)?,
            }
            progress.tell(Event::End);
            Ok::<Lock, GitError>(lock)
        };
        let mut lock = bring()?;
        let files = match self.prove(commit, tree) {
            // Objects that were here before: without them, once more.
            Err(GitError::Damaged { .. } | GitError::Open { .. }) => {
                // Unless what was copied is the damage: then the others stay.
                if let Address::Folder(path) = &address {
                    prove(path, commit, tree)?;
                }
                self.remove()?;
                drop(lock);
                lock = bring()?;
                self.prove(commit, tree)?
            }
            proven => proven?,
        };
        self.mark_whole(commit)?;
        drop(lock);
        Ok(files)
    }

    /// Takes the store away, so that its objects are fetched anew.
    ///
    /// # Errors
    /// The cache cannot be written.
    pub fn discard(&self, progress: &dyn Progress) -> Result<(), GitError> {
        let (_lock, repository) = self.open_locked(progress)?;
        drop(repository);
        self.remove()
    }

    /// Takes the lock, and makes the repository where there is none.
    fn open_locked(&self, progress: &dyn Progress) -> Result<(Lock, Repository), GitError> {
        let folder = self.path().parent().expect("the store is in a folder of the cache");
        std::fs::create_dir_all(folder)
            .map_err(|source| CacheError::Write { path: folder.to_path_buf(), source })?;
        let lock = Lock::wait(&self.path().with_extension("lock"), "fetching", progress)?;
        let failed = |source| GitError::Open { path: self.path().to_path_buf(), source };
        let repository = match Repository::open_bare(self.path()) {
            Ok(repository) => repository,
            // It is another user's: not ours to make anew.
            Err(e) if e.code() == ErrorCode::Owner => return Err(failed(e)),
            Err(_) => {
                // Not there, or not whole: a cache may be made anew.
                self.remove()?;
                Repository::init_bare(self.path()).map_err(failed)?
            }
        };
        Ok((lock, repository))
    }

    /// Says that every object of `commit` is here.
    fn mark_whole(&self, commit: ObjectId) -> Result<(), GitError> {
        let failed = |source| GitError::Open { path: self.path().to_path_buf(), source };
        let repository = Repository::open_bare(self.path()).map_err(failed)?;
        // One that cannot be read, or is a folder, cannot be written over either.
        cache::remove(&self.path().join(mark(commit)))?;
        repository
            .reference(&mark(commit), to_oid(commit), true, "every object was read")
            .map_err(failed)?;
        Ok(())
    }

    /// Takes the repository away; the lock must be held.
    fn remove(&self) -> Result<(), GitError> {
        Ok(cache::remove(self.path())?)
    }
}

/// Copies a commit's objects out of a repository on this machine.
fn copy(
    into: &Repository,
    path: &Path,
    commit: ObjectId,
    progress: &dyn Progress,
) -> Result<(), GitError> {
    let source = Repository::open(path)
        .map_err(|source| GitError::Open { path: path.to_path_buf(), source })?;
    let found = source
        .find_commit(to_oid(commit))
        .map_err(|_| GitError::NoCommit { from: path.display().to_string(), commit })?;
    let parents = found.parent_count();
    let damaged = |source| super::damaged(path, source);
    let store = into.path().to_path_buf();
    let mut failure = None;
    (|| {
        let mut pack = source.packbuilder()?;
        pack.insert_object(found.id(), None)?;
        pack.insert_tree(found.tree_id())?;
        let total = pack.object_count() as u64;
        let odb = into.odb()?;
        let mut writer = odb.packwriter()?;
        pack.foreach(|bytes| match writer.write_all(bytes) {
            Ok(()) => true,
            Err(e) => {
                failure = Some(e);
                false
            }
        })?;
        progress.tell(Event::At(total, total));
        writer.commit()?;
        Ok(())
    })()
    .map_err(|e| match failure.take() {
        Some(source) => CacheError::Write { path: store.clone(), source }.into(),
        None => damaged(e),
    })?;
    if parents > 0 {
        note_shallow(&store, commit)
            .map_err(|source| CacheError::Write { path: store.join("shallow"), source })?;
    }
    Ok(())
}

/// Says, as git does, that the commit's parents are not here.
fn note_shallow(store: &Path, commit: ObjectId) -> std::io::Result<()> {
    let file = store.join("shallow");
    let mut lines: Vec<String> = match std::fs::read_to_string(&file) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(e),
    };
    lines.push(commit.to_string());
    lines.sort();
    lines.dedup();
    let mut aside = tempfile::NamedTempFile::new_in(store)?;
    aside.write_all(lines.join("\n").as_bytes())?;
    aside.write_all(b"\n")?;
    aside.persist(&file)?;
    Ok(())
}

/// Fetches a commit from a server, at depth one.
fn fetch(
    into: &Repository,
    url: &str,
    commit: ObjectId,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<(), GitError> {
    prepare(limits);
    let unreachable = |source| super::unreachable(url, &source);
    let mut remote = into.remote_anonymous(url).map_err(unreachable)?;
    let oid = to_oid(commit);
    // A ref that stands on the commit can be asked for at any server.
    remote.connect(Direction::Fetch).map_err(unreachable)?;
    let heads = remote.list().map_err(unreachable)?;
    // An annotated tag is listed a second time, with what it stands on.
    let head = heads.iter().find(|h| h.oid() == oid);
    let name = head.map(|h| h.name().trim_end_matches("^{}").to_owned());
    let what = name.clone().unwrap_or_else(|| commit.to_string());
    let mut options = options(progress);
    options.depth(1);
    let incoming = format!("refs/mlx-overlay/incoming/{commit}");
    let fetched = remote.fetch(&[format!("+{what}:{incoming}")], Some(&mut options), None);
    drop(options);
    fetched.map_err(|source| {
        if source.message().contains(NO_IDS) {
            GitError::ById { url: hidden(url).into(), commit }
        } else if source.message().contains(NO_COMMIT) {
            GitError::NoCommit { from: hidden(url).into(), commit }
        } else {
            unreachable(source)
        }
    })?;
    if into.find_commit(oid).is_err() {
        return Err(GitError::NoCommit { from: hidden(url).into(), commit });
    }
    // Only the mark of a proven commit stays. One that is gone already is fine.
    if let Ok(mut reference) = into.find_reference(&incoming) {
        reference.delete().map_err(unreachable)?;
    }
    Ok(())
}

/// A fetch of what is asked for and no more, that tells how far it is.
pub(super) fn options(progress: &dyn Progress) -> FetchOptions<'_> {
    let mut callbacks = RemoteCallbacks::new();
    callbacks.transfer_progress(|p| {
        progress.tell(Event::At(p.received_objects() as u64, p.total_objects() as u64));
        true
    });
    let mut options = FetchOptions::new();
    options.download_tags(AutotagOption::None).update_fetchhead(false).remote_callbacks(callbacks);
    options
}

/// What libgit2 says of a server that gives out nothing by its id.
const NO_IDS: &str = "specific object";
/// What a server says of a commit that it does not have.
const NO_COMMIT: &str = "not our ref";

/// Whether the server was reached and will not give the commit.
pub(super) fn is_refusal(error: &git2::Error) -> bool {
    [NO_IDS, NO_COMMIT].iter().any(|words| error.message().contains(words))
}

/// Readies every transport, for fetches on this thread.
pub(super) fn prepare(limits: Limits) {
    http::prepare(limits);
    limit_git_protocol();
}

/// An end to the waits of `git://`, which libgit2 itself speaks.
fn limit_git_protocol() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let millis = |d: Duration| i32::try_from(d.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: these are plain settings of the process; they must not change
        // while another thread connects, and none does before this `Once`.
        #[allow(unsafe_code)]
        let set = unsafe {
            git2::opts::set_server_connect_timeout_in_milliseconds(millis(Limits::DEFAULT.connect))
                .and(git2::opts::set_server_timeout_in_milliseconds(millis(
                    Limits::DEFAULT.silence,
                )))
        };
        // Without it a dead `git://` server ends by the system's own limits.
        drop(set);
    });
}
