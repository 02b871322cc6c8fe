//! Upstream's history in the cache, for those who have no clone of it.

use std::path::{Path, PathBuf};

use git2::{Direction, ErrorCode, FetchPrune, Repository};

use super::import::{self, Limits};
use super::loose::Loose;
use super::store::{in_cache, place, prove};
use super::{GitError, History, to_oid};
use crate::cache::{self, Cache, Lock};
use crate::progress::{Event, Progress};
use crate::secret::hidden;
use crate::snapshot::ObjectId;

/// A bare repository with upstream's default branch, its tags, and the branches
/// that were asked for. Making one touches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    path: PathBuf,
}

impl Mirror {
    /// The mirror of the upstream with this URL.
    #[must_use]
    pub fn new(cache: &Cache, upstream: &str) -> Self {
        Self { path: place(cache, upstream, "history.git") }
    }

    /// The repository's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it holds `rev` for good, the beginning of a commit's id or a tag:
    /// a branch may have moved on since.
    #[must_use]
    pub fn settles(&self, rev: &str) -> bool {
        let Ok(history) = History::open(&self.path) else { return false };
        let is_id = rev.len() >= 7 && rev.bytes().all(|b| b.is_ascii_hexdigit());
        let name = if is_id { rev.to_owned() } else { format!("refs/tags/{rev}") };
        history.resolve(&name).is_ok()
    }

    /// Whether nothing was ever fetched into it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let head = History::open(&self.path).and_then(|history| history.resolve("HEAD"));
        matches!(head, Err(GitError::Open { .. } | GitError::NoRevision { .. }))
    }

    /// Whether it has the commit.
    #[must_use]
    pub fn has(&self, commit: ObjectId) -> bool {
        History::open(&self.path).is_ok_and(|history| history.has(commit))
    }

    /// Reads every object of `commit` and checks it against its id. Gives
    /// their number.
    ///
    /// # Errors
    /// One is missing or damaged, or the root tree is not `tree`.
    pub fn prove(&self, commit: ObjectId, tree: ObjectId) -> Result<usize, GitError> {
        prove(&self.path, commit, tree)
    }

    /// Fetches from the server at `url` what is new: the default branch, all
    /// tags, and the branch or the commit that `rev` means; and `pin`, where no
    /// branch leads to it. Waits while another process does so.
    ///
    /// # Errors
    /// The server cannot be reached or goes silent, or the cache cannot be
    /// written. A commit that the server does not give is no error: whoever
    /// looks for it does not find it.
    pub fn update(
        &self,
        url: &str,
        rev: &str,
        pin: ObjectId,
        limits: Limits,
        progress: &dyn Progress,
    ) -> Result<(), GitError> {
        cache::make(self.path.parent().expect("the mirror is in a folder of the cache"))?;
        let _lock = Lock::wait(&self.path.with_extension("lock"), "fetching", progress)?;
        let repository = match Repository::open(&self.path) {
            Err(e) if e.code() != ErrorCode::Owner => Repository::init_bare(&self.path),
            opened => opened,
        };
        let repository = repository.map_err(|e| in_cache(super::unopened(&self.path, e)))?;
        // libgit2 walks through what is there, to tell the server of it.
        let read = Loose::of(&repository).read_all();
        read.map_err(|source| GitError::Damaged { path: self.path.clone(), source })?;
        progress.tell(Event::Begin(&format!("fetching upstream's history from {}", hidden(url))));
        let fetched = fetch(&repository, url, rev, limits, progress);
        let named = rev.parse().ok().filter(|id| *id != pin);
        let by_id = fetched.and_then(|()| {
            for id in named.into_iter().chain([pin]) {
                if repository.find_commit(to_oid(id)).is_err() {
                    fetch_commit(&repository, url, id, limits, progress)?;
                }
            }
            Ok(())
        });
        progress.tell(Event::End);
        by_id
    }
}

fn fetch(
    into: &Repository,
    url: &str,
    rev: &str,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<(), GitError> {
    import::prepare(limits);
    let unreachable = |source| super::unreachable(url, &source);
    let mut remote = into.remote_anonymous(url).map_err(unreachable)?;
    remote.connect(Direction::Fetch).map_err(unreachable)?;
    // A server whose HEAD leads nowhere has no default branch.
    let head = remote.default_branch().ok();
    let head = head.as_ref().and_then(|h| h.as_str().ok()).map(str::to_owned);
    let branch = format!("refs/heads/{rev}");
    let listed = remote.list().map_err(unreachable)?.iter().any(|h| h.name() == branch);
    let mut wanted = vec!["+refs/tags/*:refs/tags/*".to_owned()];
    let branches = head.iter().chain(Some(&branch).filter(|b| listed && head.as_ref() != Some(b)));
    wanted.extend(branches.map(|b| format!("+{b}:{b}")));
    let mut options = import::options(progress);
    // A tag that upstream took back is gone here too.
    options.prune(FetchPrune::On);
    remote.fetch(&wanted, Some(&mut options), None).map_err(unreachable)?;
    match head {
        Some(head) => into.set_head(&head).map_err(unreachable),
        None => Ok(()),
    }
}

/// Fetches a commit that no branch or tag leads to, with its history.
fn fetch_commit(
    into: &Repository,
    url: &str,
    commit: ObjectId,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<(), GitError> {
    import::prepare(limits);
    let unreachable = |source| super::unreachable(url, &source);
    let mut remote = into.remote_anonymous(url).map_err(unreachable)?;
    let wanted = format!("+{commit}:refs/mlx-overlay/asked/{commit}");
    match remote.fetch(&[wanted], Some(&mut import::options(progress)), None) {
        Err(source) if !import::is_refusal(&source) => Err(unreachable(source)),
        _ => Ok(()),
    }
}
