//! Objects as a repository stores them, each checked against its id: for walks
//! that read thousands of them.

use git2::{Error, ObjectType, Odb, OdbObject, Oid};

use super::to_id;
use crate::snapshot::ObjectId;

/// While it lives, libgit2 does not hash what it reads: [`read`] does, with
/// what the processor has for it. Commits were read before, hashed; whole
/// listings are read by [`hashed`]. What is published never comes this way.
pub(super) struct Unhashed;

impl Unhashed {
    pub(super) fn begin() -> Self {
        git2::opts::strict_hash_verification(false);
        Self
    }
}

impl Drop for Unhashed {
    fn drop(&mut self) {
        git2::opts::strict_hash_verification(true);
    }
}

/// Lets libgit2 hash what it reads, within an [`Unhashed`] walk.
pub(super) fn hashed<T>(reading: impl FnOnce() -> T) -> T {
    git2::opts::strict_hash_verification(true);
    let found = reading();
    git2::opts::strict_hash_verification(false);
    found
}

/// Reads an object and checks that it is what its id says.
pub(super) fn read<'o>(
    odb: &'o Odb<'_>,
    id: Oid,
    kind: ObjectType,
) -> Result<OdbObject<'o>, Error> {
    let object = odb.read(id)?;
    if object.kind() != kind || ObjectId::of_object(kind.str(), object.data()) != to_id(id) {
        return Err(Error::from_str(&format!("the object {id} has other bytes, or is no {kind}")));
    }
    Ok(object)
}

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
