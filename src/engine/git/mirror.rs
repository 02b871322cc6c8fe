//! Upstream's history in the cache, for those who have no clone of it.

use std::path::{Path, PathBuf};

use git2::{Direction, Error, FetchPrune, Repository};
use walkdir::{DirEntry, WalkDir};

use super::import::{self, Limits};
use super::loose::Loose;
use super::store::{Store, in_cache, place, prove};
use super::{GitError, History, missing, to_oid};
use crate::cache::{self, Cache};
use crate::progress::{Event, Progress};
use crate::secret::hidden;
use crate::snapshot::ObjectId;
use crate::stored::message;

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

    /// The history, as it is here; nothing where none was ever fetched.
    ///
    /// # Errors
    /// The repository is damaged, or another user's.
    pub fn open(&self) -> Result<Option<History>, GitError> {
        if let Some(source) = self.fault()? {
            return Err(GitError::Damaged { path: self.path.clone(), source });
        }
        let fetched = |repository: Repository| Ok(repository.references()?.next().is_some());
        match Repository::open(&self.path).and_then(fetched) {
            Ok(true) => History::open(&self.path).map(Some),
            _ => Ok(None),
        }
    }

    /// What is wrong with the repository, as far as it shows without reading its packs.
    fn fault(&self) -> Result<Option<Error>, GitError> {
        if self.path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let repository = match super::open(&self.path) {
            Ok(repository) => repository,
            Err(GitError::Open { source, .. } | GitError::Damaged { source, .. }) => {
                return Ok(Some(source));
            }
            Err(e) => return Err(in_cache(e)),
        };
        let head = repository.find_reference("HEAD").ok();
        let branch = head.and_then(|head| head.symbolic_target().ok().flatten().map(str::to_owned));
        let files = ["FETCH_HEAD", "packed-refs", "shallow"].into_iter().chain(branch.as_deref());
        // libgit2 takes each for one that is not there.
        let folder = files.map(|name| self.path.join(name)).find(|file| file.is_dir());
        let folder = folder.map(|file| Error::from_str(&format!("{} is a folder", file.display())));
        let fault = folder.or_else(|| missing::fault(&repository));
        Ok(fault.or_else(|| Loose::of(&repository).read_all().err()))
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
    /// A repository that is damaged has nothing that upstream has not: another is made
    /// aside, and takes its place. What was wrong is given then. So is the first one made,
    /// so that none without a history is left of a fetch that failed.
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
    ) -> Result<Option<String>, GitError> {
        let place = Store::at(self.path.clone());
        let _lock = place.lock(progress)?;
        place.settle()?;
        let update = |repository: &Repository| {
            progress
                .tell(Event::Begin(&format!("fetching upstream's history from {}", hidden(url))));
            let updated = fetch_all(repository, url, rev, pin, limits, progress);
            progress.tell(Event::End);
            updated
        };
        clear_left(&self.path)?;
        let fault = self.fault()?;
        if fault.is_none() && self.path.symlink_metadata().is_ok() {
            return update(&super::open(&self.path)?).map(|()| None);
        }
        let aside = place.aside();
        let anew = aside.make().and_then(|repository| update(&repository));
        match (anew.and_then(|()| place.give_way(&aside)), fault) {
            (Ok(()), fault) => Ok(fault.map(|fault| fault.message().to_owned())),
            (Err(error), fault) => {
                // What is left is found and cleared by the next update.
                let _ = cache::remove(aside.path());
                let (GitError::Unreachable { .. }, Some(fault)) = (&error, fault) else {
                    return Err(error);
                };
                let both = format!("{}; {}", fault.message(), message(&error));
                Err(GitError::Damaged { path: self.path.clone(), source: Error::from_str(&both) })
            }
        }
    }
}

/// Takes away what a killed fetch left in a repository: locks, by which libgit2 would take
/// it for one that another process writes to, and files that were to become packs and
/// objects. The mirror's own lock must be held: nobody else writes there.
fn clear_left(repository: &Path) -> Result<(), GitError> {
    // No ref has a name that ends so.
    let is_lock = |item: &DirEntry| item.path().extension().is_some_and(|e| e == "lock");
    // As libgit2 names them, and as git does.
    let is_draft = |name: &str| name.contains("_git2_") || name.starts_with("tmp_");
    let is_left = |item: &DirEntry, objects: &Path| {
        let name = item.file_name().to_str();
        is_lock(item) || item.path().starts_with(objects) && name.is_some_and(is_draft)
    };
    let objects = repository.join("objects");
    let items = WalkDir::new(repository).min_depth(1).into_iter().filter_map(Result::ok);
    let left: Vec<DirEntry> = items.filter(|item| is_left(item, &objects)).collect();
    Ok(left.iter().try_for_each(|item| cache::remove(item.path()))?)
}

/// Fetches what is new of a server's, and by their ids what `rev` and `pin` lack then.
fn fetch_all(
    into: &Repository,
    url: &str,
    rev: &str,
    pin: ObjectId,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<(), GitError> {
    fetch(into, url, rev, limits, progress)?;
    let named = rev.parse().ok().filter(|id| *id != pin);
    for id in named.into_iter().chain([pin]) {
        if into.find_commit(to_oid(id)).is_err() {
            fetch_commit(into, url, id, limits, progress)?;
        }
    }
    Ok(())
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
