//! Git objects: the only owner of git2.
//!
//! A [`Store`] is the cache of one upstream's pinned commits, a [`GitTree`] a
//! commit's files read from one, a [`History`] a repository with many commits,
//! and a [`Mirror`] the one that the cache keeps for who has no clone.

#[cfg(feature = "fetch")]
mod aside;
mod history;
#[cfg(feature = "fetch")]
mod http;
#[cfg(feature = "fetch")]
mod import;
mod index;
mod lazy;
mod loose;
#[cfg(feature = "fetch")]
mod mirror;
mod missing;
mod object;
mod objects;
mod open;
#[cfg(feature = "fetch")]
mod pack;
mod revision;
mod store;
mod tree;

use std::io;
use std::path::{Path, PathBuf};

use crate::cache::CacheError;
#[cfg(feature = "fetch")]
use crate::secret::hidden;
use crate::snapshot::{ObjectId, ReadError, TreePath};

pub use self::history::{At, CommitInfo, History, NamesSeen, PathSet};
#[cfg(feature = "fetch")]
pub use self::import::{Limits, folder_of, reach};
pub use self::lazy::{LazyTree, Walk};
#[cfg(feature = "fetch")]
pub use self::mirror::Mirror;
pub use self::store::Store;
pub use self::tree::GitTree;

use self::open::open;

/// Why objects are not to be had.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no repository, or it cannot be opened.
    #[error("{}: no git repository can be opened there", path.display())]
    Open {
        /// Where it was looked for.
        path: PathBuf,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// A repository of another user's: git reads none unless it is told to.
    #[error(
        "{0}: belongs to another user (id {owner}), and git reads it only where that is allowed: \
         `git config --global --add safe.directory {0}`",
        path.display()
    )]
    Owner {
        /// The repository, as the setting names it.
        path: PathBuf,
        /// The user's id.
        owner: u32,
    },
    /// The other side cannot be reached, breaks off, is silent for too long,
    /// or does not speak git.
    #[error("{url}: cannot be fetched from")]
    Unreachable {
        /// The repository.
        url: String,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// A repository on this machine lacks the commit.
    #[error("{from}: has no commit {commit}")]
    NoCommit {
        /// The repository.
        from: String,
        /// The commit.
        commit: ObjectId,
    },
    /// The server gives only what a branch or tag stands on.
    #[error(
        "{url}: this server gives out no commit by its id, and no branch or tag stands on {commit}; \
         clone it with git and name the clone by --from"
    )]
    ById {
        /// The repository.
        url: String,
        /// The commit.
        commit: ObjectId,
    },
    /// The commit has another root tree than the pin says: the pin is wrong.
    #[error("commit {commit} has the root tree {found}, and the pin says {wanted}")]
    WrongTree {
        /// The commit.
        commit: ObjectId,
        /// The tree it has.
        found: ObjectId,
        /// The tree the pin says.
        wanted: ObjectId,
    },
    /// An object is missing or does not hash to its id.
    #[error("{}: the repository is damaged", path.display())]
    Damaged {
        /// The repository.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: git2::Error,
    },
    /// A clone that leaves objects out until git itself asks for them.
    #[error(
        "{0}: a partial clone, which has not all objects; \
         `git -C {0} fetch --refetch --no-filter` brings the others",
        path.display()
    )]
    PartialClone {
        /// The repository.
        path: PathBuf,
    },
    /// A name that is no commit of the repository.
    #[error("{}: `{rev}` is no commit, tag or branch here", path.display())]
    NoRevision {
        /// The repository.
        path: PathBuf,
        /// The name.
        rev: String,
        /// What git says.
        #[source]
        source: git2::Error,
    },
    /// The beginning of several commits' ids.
    #[error("{}: `{rev}` is ambiguous: it begins the ids of {} commits", path.display(), commits.len())]
    Ambiguous {
        /// The repository.
        path: PathBuf,
        /// The digits.
        rev: String,
        /// The commits.
        commits: Vec<ObjectId>,
    },
    /// Two commits have no ancestor in common.
    #[error("{}: {one} and {other} have no ancestor in common here; the history may be shallow", path.display())]
    Unrelated {
        /// The repository.
        path: PathBuf,
        /// A commit.
        one: ObjectId,
        /// Another.
        other: ObjectId,
    },
    /// A name in a tree that no safe tree has.
    #[error("{}: a tree holds the name `{name}`", path.display())]
    Name {
        /// The repository.
        path: PathBuf,
        /// The name.
        name: String,
        /// The rule it breaks.
        #[source]
        source: crate::snapshot::PathError,
    },
    /// The address is of a kind that this build cannot fetch from.
    #[error(
        "{url}: only https, http, git and folders of this machine can be fetched from; clone it with git and name the clone by --from"
    )]
    Scheme {
        /// The address.
        url: String,
    },
    /// A file URL that names no folder of this machine.
    #[error("{url}: names no folder of this machine; a file URL is file:/// and its full path")]
    FileUrl {
        /// The URL.
        url: String,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl GitError {
    /// Whether the repository at an address is none, or of no use whatever commit
    /// is wanted of it.
    #[must_use]
    pub fn is_unusable(&self) -> bool {
        matches!(
            self,
            Self::Open { .. }
                | Self::Owner { .. }
                | Self::Damaged { .. }
                | Self::PartialClone { .. }
                | Self::Unreachable { .. }
                | Self::ById { .. }
                | Self::Scheme { .. }
                | Self::FileUrl { .. }
        )
    }
}

/// An object of the repository at `path` is missing or has other bytes.
fn damaged(path: &Path, source: git2::Error) -> GitError {
    // Why an object is missing says more than which.
    let opened = (source.code() == git2::ErrorCode::NotFound)
        .then(|| git2::Repository::open(path).ok())
        .flatten();
    let is_partial = opened.as_ref().is_some_and(|it| is_partial(it).unwrap_or(false));
    let source = opened.and_then(|repository| missing::fault(&repository)).unwrap_or(source);
    // A clone is told by its folder, however it was found.
    let path = path.components().as_path();
    let folder = path.parent().filter(|_| path.file_name().is_some_and(|name| name == ".git"));
    let path = folder.filter(|folder| *folder != Path::new("")).unwrap_or(path).to_path_buf();
    match is_partial {
        true => GitError::PartialClone { path },
        false => GitError::Damaged { path, source },
    }
}

/// Whether git would ask a server for objects that are missing.
fn is_partial(repository: &git2::Repository) -> Result<bool, git2::Error> {
    let config = repository.config()?;
    let mut entries = config.entries(Some(r"^(remote\..*\.promisor|extensions\.partialclone)$"))?;
    Ok(entries.next().is_some())
}

/// What libgit2 says of a line of a server's that it does not know.
#[cfg(feature = "fetch")]
const BROKEN_LINE: &str = "invalid packet line";

/// The server at `url` cannot be fetched from; no login is told.
#[cfg(feature = "fetch")]
fn unreachable(url: &str, source: &git2::Error) -> GitError {
    let said = hidden(source.message());
    // What a server says may have lines, and a message has one.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    // libgit2 itself speaks `git://`, and knows no line that says where a history is
    // cut off.
    let said = match url.starts_with("git://") && said.contains(BROKEN_LINE) {
        true => format!("{said}, as where {}", http::SHALLOW),
        false => said,
    };
    let source = git2::Error::new(source.code(), source.class(), said);
    GitError::Unreachable { url: hidden(url).into(), source }
}

/// A file that a repository does not give.
fn unread(path: &TreePath, error: GitError) -> ReadError {
    let kind = match error {
        GitError::PartialClone { .. } => io::ErrorKind::NotFound,
        _ => io::ErrorKind::InvalidData,
    };
    ReadError { path: path.clone(), source: io::Error::new(kind, error) }
}

fn to_oid(id: ObjectId) -> git2::Oid {
    git2::Oid::from_bytes(id.as_raw()).expect("20 bytes are an id")
}

fn to_id(oid: git2::Oid) -> ObjectId {
    let raw = oid.as_bytes().try_into().expect("SHA-1 ids have 20 bytes");
    ObjectId::from_raw(raw)
}
