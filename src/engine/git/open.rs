//! Opening a repository, and why it cannot be.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Error, ErrorCode, Repository};
use walkdir::WalkDir;

use super::loose::object_folders;
use super::{GitError, index};

/// Opens the repository at `path`.
///
/// # Errors
/// There is none, a part of it is not there, it is another user's, what stands in the
/// place of a file of it would be waited for, or the index of a pack is not as it was
/// written.
pub(super) fn open(path: &Path) -> Result<Repository, GitError> {
    let damaged = |what: String| {
        Err(GitError::Damaged { path: path.to_path_buf(), source: Error::from_str(&what) })
    };
    let within = path.join(".git");
    let folder = if within.is_dir() { &within } else { path };
    if let Some(file) = endless(folder, &OF_ALL, "refs") {
        return damaged(waited_for(&file));
    }
    let repository = Repository::open(path).map_err(|e| unopened(path, e))?;
    let folders = object_folders(&repository);
    if let Some(file) = folders.iter().find_map(|folder| endless(folder, &OF_OBJECTS, "pack")) {
        return damaged(waited_for(&file));
    }
    match index::fault(&folders) {
        Some(what) => damaged(what),
        None => Ok(repository),
    }
}

/// The repository at `path` cannot be opened.
pub(super) fn unopened(path: &Path, source: Error) -> GitError {
    if source.code() == ErrorCode::NotFound
        && let Some(part) = lost_part(path)
    {
        let source = Error::from_str(&format!("its `{part}` is not there"));
        return GitError::Damaged { path: path.to_path_buf(), source };
    }
    let open = |source| GitError::Open { path: path.to_path_buf(), source };
    if source.code() != ErrorCode::Owner {
        return open(source);
    }
    // What is another's may be the folder or the `.git` in it: libgit2 quotes it. The
    // setting takes the folder.
    let quoted = source.message().split_once('\'').and_then(|(_, rest)| rest.rsplit_once('\''));
    let owned = quoted.map_or(path, |(owned, _)| Path::new(owned));
    let (Ok(owned), Ok(full)) = (owned.metadata(), path.canonicalize()) else {
        return open(source);
    };
    let path = match full.parent() {
        Some(folder) if full.ends_with(".git") => folder.to_path_buf(),
        _ => full,
    };
    GitError::Owner { path, owner: owned.uid() }
}

/// What makes a folder a repository to git.
const PARTS: [&str; 3] = ["HEAD", "objects", "refs"];

/// What a repository lost that was one.
fn lost_part(path: &Path) -> Option<&'static str> {
    let (folder, least) = match path.join(".git") {
        // Any folder may have an `objects` or a `refs`.
        within if within.is_dir() => (within, 1),
        _ => (path.to_path_buf(), 2),
    };
    let is_there = |part: &&str| match *part {
        "HEAD" => folder.join(part).is_file(),
        part => folder.join(part).is_dir(),
    };
    let (there, lost): (Vec<&str>, Vec<&str>) = PARTS.into_iter().partition(is_there);
    lost.first().copied().filter(|_| there.len() >= least)
}

/// The files that libgit2 opens with a repository, or as soon as it is asked for a name.
const OF_ALL: [&str; 7] =
    [".git", "HEAD", "FETCH_HEAD", "config", "packed-refs", "shallow", "commondir"];

/// Those of a folder of objects, besides the packs. (Its loose objects it does not read by
/// itself.)
const OF_OBJECTS: [&str; 2] = ["info/alternates", "info/commit-graph"];

/// What libgit2 would wait for in the place of a file, one of these or any in a folder: a pipe.
fn endless(above: &Path, files: &[&str], folder: &str) -> Option<PathBuf> {
    let is_endless =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
    let items = WalkDir::new(above.join(folder)).into_iter().filter_map(Result::ok);
    // A folder's list tells what each is.
    let odd = items.filter(|item| !item.file_type().is_file() && !item.file_type().is_dir());
    let odd = odd.map(|item| item.path().to_path_buf());
    files.iter().map(|name| above.join(name)).chain(odd).find(is_endless)
}

fn waited_for(file: &Path) -> String {
    format!("{} is no file, and would be waited for", file.display())
}
