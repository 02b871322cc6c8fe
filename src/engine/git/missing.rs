//! A commit that is not found: the repository never had it, or lost it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{Commit, Error, ErrorCode, ObjectType, Oid, Reference, Repository};
use sha1::{Digest, Sha1};
use walkdir::WalkDir;

use super::loose::object_folders;
use super::objects::Handle;
use super::{GitError, index, object, to_oid};
use crate::snapshot::ObjectId;

/// The commit, checked against its id.
///
/// # Errors
/// The repository at `path` has none of this id, or is damaged: a commit that it names
/// is part of it, and one may be in a pack that cannot be used.
pub(super) fn find_commit<'r>(
    repository: &'r Handle<'_>,
    path: &Path,
    commit: ObjectId,
) -> Result<Commit<'r>, GitError> {
    let id = to_oid(commit);
    let none = || GitError::NoCommit { from: path.display().to_string(), commit };
    let source = match object::commit(repository, id) {
        Ok(found) => return Ok(found),
        Err(source) => source,
    };
    if source.code() != ErrorCode::NotFound {
        let found = object::any(repository, id);
        let is_another = found.is_ok_and(|(kind, _)| kind != ObjectType::Commit);
        return Err(if is_another { none() } else { super::damaged(path, source) });
    }
    // What a delta stands on may be what is not found.
    if is_there(repository, id) || is_named(repository, id) {
        return Err(super::damaged(path, source));
    }
    Err(match fault(repository) {
        Some(source) => super::damaged(path, source),
        None => none(),
    })
}

/// What is wrong with a repository that does not find an object: a part of it is not
/// there, or cannot be used. Nothing where it has all that it names.
pub(super) fn fault(repository: &Repository) -> Option<Error> {
    let folders = object_folders(repository);
    let gone = folders.iter().find(|folder| !folder.is_dir());
    let gone = gone.map(|folder| {
        format!("objects are borrowed from {}, which is not there", folder.display())
    });
    let what = gone.or_else(|| broken_pack(&folders)).or_else(|| lost(repository))?;
    Some(Error::from_str(&what))
}

/// What is wrong with a ref: it cannot be read, or its object is nowhere. (What a partial
/// clone left out, no ref stands on.)
fn lost(repository: &Repository) -> Option<String> {
    let stands = |reference: &Reference<'_>| {
        let id = reference.target().filter(|id| !is_there(repository, *id))?;
        let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
        Some(format!("{name} stands on {id}, which is not there"))
    };
    // libgit2 passes over the files that it cannot read.
    let top = repository.commondir();
    let files = WalkDir::new(top.join("refs")).into_iter().filter_map(Result::ok);
    let files = files.filter(|item| item.file_type().is_file());
    let names =
        files.filter_map(|item| Some(item.path().strip_prefix(top).ok()?.to_str()?.to_owned()));
    let head = Some("HEAD".to_owned());
    let unread = head.into_iter().chain(names).find_map(|name| {
        let error = repository.find_reference(&name).err()?;
        (error.code() == ErrorCode::GenericError).then(|| error.message().to_owned())
    });
    unread
        .or_else(|| match repository.references() {
            Ok(references) => references.map_while(Result::ok).find_map(|found| stands(&found)),
            Err(e) => Some(e.message().to_owned()),
        })
        .or_else(|| stands(&repository.find_reference("HEAD").ok()?))
}

fn is_there(repository: &Repository, id: Oid) -> bool {
    repository.odb().is_ok_and(|objects| objects.exists(id))
}

/// Whether a ref stands on the commit, or the history is cut off at it.
pub(super) fn is_named(repository: &Handle<'_>, id: Oid) -> bool {
    let is_tag_of = |(kind, bytes): (ObjectType, Arc<[u8]>)| {
        kind == ObjectType::Tag && object::tagged(&bytes) == Some(id)
    };
    let stands_on =
        |target: Oid| target == id || object::any(repository, target).is_ok_and(is_tag_of);
    let references = repository.references().into_iter().flatten().map_while(Result::ok);
    let head = repository.find_reference("HEAD").ok();
    let shallow = fs::read_to_string(repository.commondir().join("shallow")).unwrap_or_default();
    references.chain(head).filter_map(|reference| reference.target()).any(stands_on)
        || shallow.lines().any(|line| line == id.to_string())
}

/// What is wrong with the first pack that cannot be used. libgit2 passes it over.
fn broken_pack(folders: &[PathBuf]) -> Option<String> {
    folders.iter().find_map(|folder| {
        let items = fs::read_dir(folder.join("pack")).into_iter().flatten();
        let paths = items.filter_map(|item| Some(item.ok()?.path()));
        let is_pack = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("pack-"))
                && path.extension().is_some_and(|ending| ending == "pack" || ending == "idx")
        };
        let mut packs: Vec<_> =
            paths.filter(is_pack).map(|path| path.with_extension("pack")).collect();
        packs.sort();
        packs.dedup();
        packs
            .iter()
            .find_map(|pack| Some(format!("{}: {}", pack.display(), pack_fault(pack).err()?)))
    })
}

/// Fails with what keeps git from finding objects in a pack: its index is not as it was
/// written, or the pack is not the index's.
fn pack_fault(pack: &Path) -> Result<(), String> {
    let unread = |name: &str| {
        let name = name.to_owned();
        move |e: std::io::Error| format!("{name} cannot be read ({e})")
    };
    let index = fs::read(pack.with_extension("idx")).map_err(unread("its index"))?;
    let (sums, own) = index.split_last_chunk::<20>().ok_or("its index is cut short")?;
    if Sha1::digest(sums)[..] != own[..] {
        return Err("its index has other bytes than were written".into());
    }
    match index::is_of(sums, pack).map_err(unread("it"))? {
        true => Ok(()),
        false => Err("it is not the pack of its index, or not all of it".into()),
    }
}
