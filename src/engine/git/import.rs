//! Bringing one commit into a [`Store`]: from a repository on this machine or
//! from a server, without its history.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use git2::{AutotagOption, Direction, FetchOptions, RemoteCallbacks, Repository};

use super::missing::find_commit;
use super::objects::Objects;
use super::pack::PackWriter;
use super::store::{Store, prove};
use super::{GitError, http, object, to_oid, tree};
use crate::cache::{self, CacheError};
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
        Address::Folder(path) => super::open(&path).map(drop),
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
    if let Some(named) = from.strip_prefix("file:")
        && !Path::new(from).exists()
    {
        return match folder_named(named) {
            Some(path) => Ok(Address::Folder(path)),
            None => Err(GitError::FileUrl { url: hidden(from).into() }),
        };
    }
    match from.split_once("://") {
        None if Path::new(from).exists() || !from.contains(':') => Ok(Address::Folder(from.into())),
        Some(("http" | "https" | "git", _)) => Ok(Address::Server(from)),
        _ => Err(GitError::Scheme { url: hidden(from).into() }),
    }
}

/// The folder of a file URL, given what stands behind its scheme: a full path, or
/// `//`, this machine or nothing, and a full path.
fn folder_named(url: &str) -> Option<PathBuf> {
    let path = match url.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/')?);
            (host.is_empty() || host.eq_ignore_ascii_case("localhost")).then_some(path)?
        }
        None => url.strip_prefix('/').map(|_| url)?,
    };
    Some(OsString::from_vec(unescaped(path.as_bytes())).into())
}

/// With the byte that each `%` and two digits stand for; as it is where they stand for
/// none that a path can have.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        let byte = digit(0).zip(digit(1)).map(|(high, low)| (16 * high + low) as u8);
        let (byte, after) = match byte.filter(|byte| first == b'%' && *byte != 0) {
            Some(byte) => (byte, &after[2..]),
            None => (first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    bytes
}

impl Store {
    /// Brings `commit`, without its history, from the folder or URL `from`,
    /// and reads every object once to prove that all are there. Gives the
    /// number of files. Waits while another process writes to the store.
    ///
    /// The store is made anew aside, and takes the place of the old one when it is
    /// whole. The other commits that the old one has whole go with it.
    ///
    /// # Errors
    /// There is no such commit or repository, the server cannot be reached or
    /// goes silent, or the commit's root tree is not `tree`. The old store is as it
    /// was then.
    pub fn import(
        &self,
        commit: ObjectId,
        tree: ObjectId,
        from: &str,
        limits: Limits,
        progress: &dyn Progress,
    ) -> Result<usize, GitError> {
        let address = address_of(from)?;
        let _lock = self.lock(progress)?;
        self.settle()?;
        if self.marks()?.contains(&commit) {
            match self.prove(commit, tree) {
                // Another process was at it, and had the lock before.
                Ok(files) => return Ok(files),
                Err(e @ GitError::WrongTree { .. }) => return Err(e),
                Err(_) => {}
            }
        }
        let aside = self.aside();
        let bring = || {
            progress.tell(Event::Begin(&format!("fetching {commit} from {}", hidden(from))));
            let into = aside.make()?;
            match &address {
                Address::Folder(path) => copy(&into, path, commit, progress)?,
                Address::Server(url) => {
                    let incoming = Self::at(aside.path().join("incoming"));
                    fetch(&incoming.make()?, url, commit, limits, progress)?;
                    copy(&into, incoming.path(), commit, progress)?;
                    cache::remove(incoming.path())?;
                }
            }
            progress.tell(Event::End);
            let files = match (aside.prove(commit, tree), &address) {
                // What was copied is the damage: it is told where it is.
                (Err(e), Address::Folder(path)) => {
                    return Err(prove(path, commit, tree).err().unwrap_or(e));
                }
                (proven, _) => proven?,
            };
            for other in self.marks()?.into_iter().filter(|other| *other != commit) {
                self.carry(other, &aside, &into, progress)?;
            }
            aside.mark_whole(&into, commit)?;
            self.give_way(&aside)?;
            Ok(files)
        };
        let brought = bring();
        if brought.is_err() {
            // What is left is found and cleared by the next import.
            let _ = cache::remove(aside.path());
        }
        brought
    }
}

/// Copies a commit's objects out of a repository on this machine, each checked against
/// its id, into a pack of their own: what damages it is no other commit's.
pub(super) fn copy(
    into: &Repository,
    path: &Path,
    commit: ObjectId,
    progress: &dyn Progress,
) -> Result<(), GitError> {
    let objects = Objects::open(path)?;
    let source = objects.handle();
    let found = find_commit(&source, path, commit)?;
    let mut ids = vec![found.id()];
    ids.extend(tree::objects(&objects, found.tree_id())?);
    let damaged = |source| super::damaged(path, source);

    let store = into.path();
    let unwritten = |source| CacheError::Write { path: store.to_path_buf(), source };
    let failed = |e: git2::Error| unwritten(std::io::Error::other(e.message().to_owned()));
    let odb = into.odb().map_err(failed)?;
    let mut writer = odb.packwriter().map_err(failed)?;
    let count = u32::try_from(ids.len()).expect("a tree has fewer objects than a pack can");
    let mut pack = PackWriter::begin(&mut writer, count).map_err(unwritten)?;
    for id in ids {
        let (kind, bytes) = object::any(&source, id).map_err(damaged)?;
        pack.object(kind, &bytes).map_err(unwritten)?;
    }
    pack.end().map_err(unwritten)?;
    writer.commit().map_err(failed)?;
    progress.tell(Event::At(count.into(), count.into()));
    // Asked for its parents, libgit2 gives a commit none where a history is cut off.
    if found.raw_header_bytes().split(|b| *b == b'\n').any(|line| line.starts_with(b"parent ")) {
        note_shallow(store, commit)
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
    // With the rights of any other file of the store.
    let rights = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut aside = tempfile::Builder::new().permissions(rights).tempfile_in(store)?;
    aside.write_all(lines.join("\n").as_bytes())?;
    aside.write_all(b"\n")?;
    aside.persist(&file)?;
    Ok(())
}

/// Fetches a commit from a server, at depth one, into a repository that has nothing yet.
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
    let incoming = format!("+{what}:refs/heads/incoming");
    let fetched = remote.fetch(&[incoming], Some(&mut options), None);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_url_names_a_folder_of_this_machine() {
        for (url, folder) in [
            ("file:///a/b", "/a/b"),
            ("file://localhost/a/b", "/a/b"),
            ("file://LOCALHOST/a", "/a"),
            ("file:/a", "/a"),
            ("file:///a%20b/%c3%a9/100%/%zz%00", "/a b/é/100%/%zz%00"),
            ("/a%20b", "/a%20b"),
            ("a/b", "a/b"),
        ] {
            assert_eq!(folder_of(url).as_deref(), Some(Path::new(folder)), "{url}");
        }
        for url in
            ["file://", "file:", "file:a", "file://host/a", "file://a", "file://me:secret@host/a"]
        {
            let Err(error) = address_of(url) else { panic!("{url}") };
            assert!(matches!(error, GitError::FileUrl { .. }), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
