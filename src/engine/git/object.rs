//! Objects as a repository stores them, each checked against its id.

use std::sync::{Arc, Once};

use git2::{Commit, Error, ErrorCode, ObjectType, Oid};

use super::objects::Handle;
use super::to_id;
use crate::snapshot::ObjectId;

/// libgit2 hashes what it reads with its collision-detecting SHA-1, which is a
/// quarter of the time that laying a tree takes. What comes into a repository was
/// looked at for collisions then, and what leaves it is hashed here, with what the
/// processor has for it. So every object is read by [`any`], [`read`] or [`commit`].
pub(super) fn hash_here() {
    static SET: Once = Once::new();
    SET.call_once(|| git2::opts::strict_hash_verification(false));
}

/// Reads an object of any kind and checks that it is what its id says.
pub(super) fn any(repository: &Handle<'_>, id: Oid) -> Result<(ObjectType, Arc<[u8]>), Error> {
    let check = |kind: ObjectType, bytes: &[u8]| match ObjectId::of_object(kind.str(), bytes) {
        found if found == to_id(id) => Ok((kind, bytes.into())),
        _ => Err(Error::from_str(&format!("the object {id} has other bytes"))),
    };
    if let Some((kind, bytes)) = repository.loose().read(id)?
        && let Ok(found) = check(kind, &bytes)
    {
        return Ok(found);
    }
    let odb = repository.odb()?;
    match odb.read(id).and_then(|object| check(object.kind(), object.data())) {
        // Another pack may have it whole.
        Err(e) if e.code() != ErrorCode::NotFound => match repository.loose().packed(id) {
            Some((kind, bytes)) => Ok((kind, bytes.into())),
            None => Err(e),
        },
        read => read,
    }
}

/// Reads an object of this kind and checks that it is what its id says.
pub(super) fn read(repository: &Handle<'_>, id: Oid, kind: ObjectType) -> Result<Arc<[u8]>, Error> {
    match any(repository, id)? {
        (found, bytes) if found == kind => Ok(bytes),
        _ => Err(Error::from_str(&format!("the object {id} is no {kind}"))),
    }
}

/// Reads a commit and checks that it is what its id says. (What was read a moment ago,
/// libgit2 has at hand.)
pub(super) fn commit<'r>(repository: &'r Handle<'_>, id: Oid) -> Result<Commit<'r>, Error> {
    read(repository, id, ObjectType::Commit)?;
    repository.find_commit(id)
}

/// The commit that an object is, or that a tag stands on which it is.
pub(super) fn peel(repository: &Handle<'_>, id: Oid) -> Result<Option<Oid>, Error> {
    match any(repository, id)? {
        (ObjectType::Commit, _) => Ok(Some(id)),
        (ObjectType::Tag, bytes) => match tagged(&bytes) {
            Some(next) => peel(repository, next),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// What a tag stands on.
pub(super) fn tagged(tag: &[u8]) -> Option<Oid> {
    let first = tag.strip_prefix(b"object ")?.get(..40)?;
    Oid::from_str(std::str::from_utf8(first).ok()?).ok()
}

/// A folder's mode in a tree.
pub(super) const TREE: u32 = 0o40_000;

/// An entry of a tree.
pub(super) struct TreeEntry<'d> {
    pub mode: u32,
    pub name: &'d [u8],
    pub id: Oid,
}

/// The entries of a tree's bytes.
pub(super) fn entries(data: &[u8]) -> impl Iterator<Item = Result<TreeEntry<'_>, Error>> {
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let entry = first(rest);
        rest = entry.as_ref().map_or(&[][..], |(_, after)| *after);
        let broken = || Error::from_str("a tree ends within an entry");
        Some(entry.map(|(entry, _)| entry).ok_or_else(broken))
    })
}

/// `mode name NUL id`, and what follows.
fn first(data: &[u8]) -> Option<(TreeEntry<'_>, &[u8])> {
    let space = data.iter().position(|b| *b == b' ')?;
    let mode = u32::from_str_radix(std::str::from_utf8(&data[..space]).ok()?, 8).ok()?;
    let data = &data[space + 1..];
    let end = data.iter().position(|b| *b == 0)?;
    let (name, data) = (&data[..end], &data[end + 1..]);
    let id = Oid::from_bytes(data.get(..20)?).ok()?;
    Some((TreeEntry { mode, name, id }, &data[20..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_what_is_cut_off_is_an_error() {
        let mut data = b"100644 a.txt\0".to_vec();
        data.extend([1; 20]);
        data.extend(b"40000 d\0");
        data.extend([2; 20]);
        let read: Vec<_> = entries(&data).map(|e| e.expect("whole")).collect();
        assert_eq!((read[0].mode, read[0].name), (0o100_644, &b"a.txt"[..]));
        assert_eq!((read[1].mode, read[1].name, read.len()), (0o40_000, &b"d"[..], 2));
        assert!(entries(&data[..data.len() - 1]).last().expect("one").is_err());
    }
}
