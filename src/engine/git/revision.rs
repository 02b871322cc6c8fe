//! The commit that a name means.
//!
//! Ids, refs, and the ways from a commit to those before it are read here, so that no
//! object counts but those on the way. The other forms libgit2 reads by itself.

use std::path::Path;

use git2::{Error, ErrorClass, ErrorCode, ObjectType, Oid};

use super::objects::Handle;
use super::{GitError, missing, object, to_id};
use crate::snapshot::ObjectId;

/// The commit that an id or the beginning of one, a tag, a branch or a branch of `origin`
/// means, or one that is named from there.
///
/// # Errors
/// It means none, or several; or the repository at `path` is damaged where it is read for
/// it.
pub(super) fn resolve(
    repository: &Handle<'_>,
    path: &Path,
    rev: &str,
) -> Result<ObjectId, GitError> {
    let none = |source| GitError::NoRevision { path: path.into(), rev: rev.into(), source };
    let damaged = |source| super::damaged(path, source);
    let base = rev.find(['~', '^', ':']).or_else(|| rev.find("@{")).unwrap_or(rev.len());
    let (base, way) = rev.split_at(base);
    let Some(steps) = steps(way) else {
        return match by_libgit2(repository, rev) {
            Ok(id) => match object::peel(repository, id).map_err(damaged)? {
                Some(id) => Ok(to_id(id)),
                None => Err(none(no_commit())),
            },
            Err(e) if is_damage(&e) => Err(damaged(e)),
            Err(e) => {
                Err(missing::fault(repository).map_or_else(|| none(nothing(rev, &e)), damaged))
            }
        };
    };
    let found = match stands_for(repository, base) {
        Ok(found) => found,
        // Of all objects that begin so, a commit alone can be meant.
        Err(e) if e.code() == ErrorCode::Ambiguous => {
            match commits(repository, digits_of(base)).map_err(damaged)?[..] {
                [id] => Some(id),
                [] => return Err(none(Error::from_str("no commit's id begins so"))),
                ref ids => {
                    let commits = ids.iter().copied().map(to_id).collect();
                    return Err(GitError::Ambiguous {
                        path: path.into(),
                        rev: base.into(),
                        commits,
                    });
                }
            }
        }
        Err(e) if e.code() == ErrorCode::InvalidSpec => return Err(none(e)),
        Err(e) => return Err(damaged(e)),
    };
    let Some(id) = found else {
        // What is no id is the name of no ref, whatever the packs have lost.
        let lost = is_id(base).then(|| missing::fault(repository)).flatten();
        let e = Error::from_str("no ref and no object has this name");
        return Err(lost.map_or_else(|| none(e), damaged));
    };
    let mut at = object::peel(repository, id).map_err(damaged)?.ok_or_else(|| none(no_commit()))?;
    for parent in steps {
        let commit = object::commit(repository, at).map_err(damaged)?;
        let further = |_| match parent {
            0 => format!("the history here goes back no further than {at}"),
            _ => format!("the commit {at} has no parent {}", parent + 1),
        };
        at = commit.parent_id(parent).map_err(|e| none(Error::from_str(&further(e))))?;
    }
    object::any(repository, at).map_err(damaged)?;
    Ok(to_id(at))
}

fn no_commit() -> Error {
    Error::from_str("it is no commit, and no tag of one")
}

/// Why libgit2 finds none; its own words are of its own workings.
fn nothing(rev: &str, error: &Error) -> Error {
    Error::from_str(match error.code() {
        ErrorCode::InvalidSpec => "git knows no such form of a name",
        _ if rev.contains("@{") => {
            "only the clone's own records tell what was checked out, where a branch was before \
             and what it follows, and they have none of it"
        }
        _ => "nothing here answers to it",
    })
}

fn is_id(name: &str) -> bool {
    (4..=40).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// libgit2's own words of a name are of another class, or have a code.
fn is_damage(error: &Error) -> bool {
    error.code() == ErrorCode::GenericError
        && matches!(error.class(), ErrorClass::None | ErrorClass::Odb)
}

/// Which parent each step goes to, of a way like `~2^2^{}`; nothing where it has others.
fn steps(mut way: &str) -> Option<Vec<usize>> {
    let mut steps = Vec::new();
    while let Some(kind) = way.chars().next() {
        way = &way[1..];
        if kind == '^'
            && let Some(rest) = way.strip_prefix("{}").or_else(|| way.strip_prefix("{commit}"))
        {
            way = rest;
            continue;
        }
        let digits = way.find(|c: char| !c.is_ascii_digit()).unwrap_or(way.len());
        let (number, rest) = way.split_at(digits);
        let number = if number.is_empty() { 1 } else { number.parse().ok()? };
        match (kind, number) {
            ('~', _) => steps.extend(std::iter::repeat_n(0, number)),
            ('^', 0) => {}
            ('^', _) => steps.push(number - 1),
            _ => return None,
        }
        way = rest;
    }
    Some(steps)
}

/// A name by what libgit2 knows of them.
fn by_libgit2(repository: &Handle<'_>, rev: &str) -> Result<Oid, Error> {
    // It goes from one object to others by itself.
    repository.loose().read_all()?;
    Ok(repository.revparse_single(rev)?.id())
}

/// The object that a name without a way stands for, not read yet.
fn stands_for(repository: &Handle<'_>, name: &str) -> Result<Option<Oid>, Error> {
    if name.len() == 40
        && is_id(name)
        && let Some(id) = by_digits(repository, name)?
    {
        return Ok(Some(id));
    }
    if let Some(id) = by_ref(repository, if name == "@" { "HEAD" } else { name })? {
        return Ok(Some(id));
    }
    match by_digits(repository, digits_of(name))? {
        Some(id) => Ok(Some(id)),
        None => by_ref(repository, &format!("refs/remotes/origin/{name}")),
    }
}

/// The digits of an id in a name, which may be one of `git describe`'s.
fn digits_of(name: &str) -> &str {
    name.rsplit_once("-g").map_or(name, |(_, digits)| digits)
}

/// The object whose id begins with these digits, if they are any.
fn by_digits(repository: &Handle<'_>, digits: &str) -> Result<Option<Oid>, Error> {
    if !is_id(digits) {
        return Ok(None);
    }
    let id = Oid::from_str(digits)?;
    match repository.odb()?.exists_prefix(id, digits.len()) {
        Ok(found) => Ok(Some(found)),
        // It was there: a ref stands on it.
        Err(_) if digits.len() == 40 && missing::is_named(repository, id) => Ok(Some(id)),
        Err(e) if e.code() == ErrorCode::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// The object that a ref stands on, by the beginnings that git tries in turn.
fn by_ref(repository: &Handle<'_>, name: &str) -> Result<Option<Oid>, Error> {
    if name.is_empty() || name.ends_with('/') {
        return Ok(None);
    }
    let is_full = name.starts_with("refs/");
    // Of the files beside `refs`, those named so are refs.
    let is_top = name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let own = (is_full || is_top).then(|| name.to_owned());
    let below = ["refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];
    let below = below.iter().map(|folder| format!("{folder}{name}"));
    let head = format!("refs/remotes/{name}/HEAD");
    for full in own.into_iter().chain(below).chain([head]) {
        match repository.find_reference(&full) {
            // One that leads to none is of a branch without a commit.
            Ok(found) => match found.resolve() {
                Ok(found) => return Ok(found.target()),
                Err(e) if e.code() == ErrorCode::NotFound => {}
                Err(e) => return Err(Error::from_str(e.message())),
            },
            Err(e) if [ErrorCode::NotFound, ErrorCode::InvalidSpec].contains(&e.code()) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// The commits whose ids begin with these digits, in the order of their ids. (What cannot
/// be read is none that git would take.)
fn commits(repository: &Handle<'_>, digits: &str) -> Result<Vec<Oid>, Error> {
    let digits = digits.to_ascii_lowercase();
    let mut found = Vec::new();
    repository.odb()?.foreach(|id| {
        if id.to_string().starts_with(&digits) {
            found.push(*id);
        }
        true
    })?;
    let is_commit =
        |id: &Oid| object::any(repository, *id).is_ok_and(|(kind, _)| kind == ObjectType::Commit);
    found.retain(is_commit);
    found.sort();
    found.dedup();
    Ok(found)
}
