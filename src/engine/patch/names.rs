//! Which files of a tree a file patch means: prefixes, strip levels, links.
//!
//! The strip level is the series' and is never guessed. At level 1 a prefix
//! that is known to be one (`a/` and `b/`, git's mnemonic pairs, two folders
//! that differ) is cut off; a name without is taken as it stands only where
//! that is the one reading.

use std::collections::BTreeSet;

use super::header::tail;
use super::quote::quoted;
use super::refusal::{Place, Reason, Refusal};
use super::{Body, FilePatch, HeaderStyle, Operation, Patch};
use crate::reserved;
use crate::snapshot::{File, Mode, PathError, Tree, TreePath};

/// The files of a tree that a file patch means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The file before; `None` where it is new.
    pub old: Option<TreePath>,
    /// The file after; `None` where it is deleted.
    pub new: Option<TreePath>,
    /// What becomes of it. A plain diff of no old lines creates the file where
    /// none is, whatever its header says.
    pub operation: Operation,
}

/// Whether the names of a patch carry a prefix, as far as its own file patches
/// tell: one command made them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefixes {
    /// They carry one.
    Present,
    /// They carry none.
    Absent,
    /// Nothing tells, or the file patches contradict each other.
    Unknown,
}

/// Whether a file is in the tree the patch is applied to.
pub type Exists<'e> = &'e dyn Fn(&TreePath) -> bool;

/// What the file patches of `patch` tell of its prefixes at strip level 1.
#[must_use]
pub fn prefixes(patch: &Patch, exists: Exists<'_>) -> Prefixes {
    let mut seen = BTreeSet::new();
    for file in &patch.files {
        let reading = match Written::of(file) {
            Ok(written) => match written.reading(exists) {
                Reading::Cut(Certainty::Proven) => Some(true),
                Reading::AsIs => Some(false),
                _ => None,
            },
            Err(_) => None,
        };
        seen.extend(reading);
    }
    match (seen.contains(&true), seen.contains(&false)) {
        (true, false) => Prefixes::Present,
        (false, true) => Prefixes::Absent,
        _ => Prefixes::Unknown,
    }
}

/// The files `file` means at strip level `strip`. `prefixes` is what
/// [`prefixes`] found for the whole patch.
///
/// # Errors
/// [`Reason::Prefix`] where several readings are left or the strip level does
/// not fit; [`Reason::PathEscape`], [`Reason::PathEncoding`] for an unsafe
/// name; [`Reason::Reserved`]; [`Reason::Submodule`]; [`Reason::Malformed`] where the names disagree.
pub fn resolve(
    file: &FilePatch,
    strip: usize,
    prefixes: Prefixes,
    exists: Exists<'_>,
) -> Result<Names, Refusal> {
    let refuse = |reason, message: String, remedy: &str| {
        Refusal::new(reason, message, remedy).at(Place { line: file.line, byte: file.byte })
    };
    if file.old_mode == Some(Mode::Submodule) || file.new_mode == Some(Mode::Submodule) {
        return Err(refuse(
            Reason::Submodule,
            "the patch moves a submodule to another commit".into(),
            "leave it out: a tree of files holds no submodule",
        ));
    }
    if matches!(file.body, Body::BinaryWithoutData(_)) {
        return Err(refuse(
            Reason::Binary,
            "the patch says that a binary file changes, and carries no data".into(),
            "make it again with `git diff --binary`",
        ));
    }
    let written = Written::of(file)?;
    let cut = match strip {
        1 => written
            .cut(prefixes, exists)
            .map_err(|e| e.at(Place { line: file.line, byte: file.byte }))?,
        strip => strip,
    };
    if let (1, Some((from, to))) = (strip, &written.moved)
        && [(&written.old, from), (&written.new, to)].iter().any(|(full, moved)| {
            full.as_deref().and_then(|full| strip_parts(full, cut)) != Some(moved)
        })
    {
        return Err(refuse(
            Reason::Prefix,
            "the prefix of the moved names is not one part long".into(),
            "state the strip level the patch was made for",
        ));
    }
    let path = |name: &[u8]| {
        let Some(rest) = strip_parts(name, cut) else {
            return Err(refuse(
                Reason::Prefix,
                format!("`{}` has no {cut} parts to strip and a name left", lossy(name)),
                "state the strip level the patch was made for",
            ));
        };
        TreePath::from_bytes(rest).map_err(|e| unsafe_name(file, name, e))
    };
    let (old, new) = match (&written.old, &written.new) {
        (Some(old), Some(new)) => (path(old)?, path(new)?),
        (Some(one), None) | (None, Some(one)) => (path(one)?, path(one)?),
        (None, None) => {
            return Err(refuse(Reason::Malformed, "the patch names no file".into(), "name one"));
        }
    };
    if let Some(ours) = [&old, &new].into_iter().find(|path| reserved::is_ours(path)) {
        return Err(refuse(
            Reason::Reserved,
            format!("`{ours}` cannot be used: the overlay keeps the name for itself"),
            "leave the file out of the patch, or give it another name",
        ));
    }
    let operation = written.operation(file, &new, exists);
    let moves = matches!(operation, Operation::Rename | Operation::Copy);
    let (old, new) = match (moves, old == new) {
        (true, true) => {
            return Err(refuse(
                Reason::Malformed,
                format!("`{old}` is moved to its own name"),
                "make the patch again with `git diff -M`",
            ));
        }
        (true, false) | (false, true) => (old, new),
        (false, false) => {
            let one = one_of(&old, &new, exists).ok_or_else(|| {
                refuse(
                    Reason::Prefix,
                    format!("the header names two files, `{old}` and `{new}`, and no rename"),
                    "state the strip level the patch was made for, or mend its names",
                )
            })?;
            (one.clone(), one)
        }
    };
    Ok(Names {
        old: (operation != Operation::Create).then_some(old),
        new: (operation != Operation::Delete).then_some(new),
        operation,
    })
}

/// Of two names of a plain diff the one that is meant: the other is a backup's
/// (`f.c.orig`, `f.c~`).
fn one_of(old: &TreePath, new: &TreePath, exists: Exists<'_>) -> Option<TreePath> {
    if let Some(suffix) = old.as_str().strip_prefix(new.as_str()) {
        return (!suffix.contains('/') && exists(new)).then(|| new.clone());
    }
    let suffix = new.as_str().strip_prefix(old.as_str())?;
    (!suffix.contains('/') && exists(old)).then(|| old.clone())
}

/// The names as written, checked for what no strip level can make safe, empty
/// parts taken out.
struct Written {
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    moved: Option<(Vec<u8>, Vec<u8>)>,
    style: HeaderStyle,
    operation: Operation,
}

/// How a name is read at strip level 1.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Its first part is a prefix.
    Cut(Certainty),
    /// It has no prefix.
    AsIs,
    /// Both, and both name a file, or neither does.
    Both(Fit),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// The names themselves prove it.
    Proven,
    /// A lone name that begins as a prefix does.
    Usual,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    BothThere,
    NoneThere,
    Unasked,
}

impl Written {
    fn of(file: &FilePatch) -> Result<Self, Refusal> {
        let check =
            |name: &Option<Vec<u8>>| name.as_ref().map(|name| checked(file, name)).transpose();
        let names = &file.names;
        let moved = match &names.moved {
            Some((from, to)) => Some((checked(file, from)?, checked(file, to)?)),
            None => None,
        };
        Ok(Self {
            old: check(&names.old)?,
            new: check(&names.new)?,
            moved,
            style: names.style,
            operation: file.operation,
        })
    }

    /// How many parts to cut at strip level 1.
    fn cut(&self, prefixes: Prefixes, exists: Exists<'_>) -> Result<usize, Refusal> {
        let name = self.any_name();
        let two = || format!("`{}` or `{}`", lossy(name), lossy(tail(name).unwrap_or_default()));
        let remedy = "state how many parts of each name to strip (0 where they carry no prefix)";
        match (self.reading(exists), prefixes) {
            (Reading::Cut(_), _) => Ok(1),
            (Reading::AsIs, _) => Ok(0),
            (Reading::Both(_), Prefixes::Present) => Ok(1),
            (Reading::Both(_), Prefixes::Absent) => Ok(0),
            (Reading::Both(fit), Prefixes::Unknown) => {
                let why = match fit {
                    Fit::BothThere => "both are in the tree",
                    Fit::NoneThere => "neither is in the tree",
                    Fit::Unasked => "nothing tells whether its first part is a prefix",
                };
                Err(Refusal::new(
                    Reason::Prefix,
                    format!("the name may mean {}: {why}", two()),
                    remedy,
                ))
            }
        }
    }

    fn any_name(&self) -> &[u8] {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }

    fn reading(&self, exists: Exists<'_>) -> Reading {
        if let (Some((from, to)), Some(old), Some(new)) = (&self.moved, &self.old, &self.new) {
            return if old == from && new == to {
                Reading::AsIs
            } else {
                Reading::Cut(Certainty::Proven)
            };
        }
        let name = self.any_name();
        if head(name) == b"." {
            return Reading::Cut(Certainty::Usual);
        }
        let there = |name: &[u8]| TreePath::from_bytes(name).is_ok_and(|path| exists(&path));
        let one = match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                let (Some(old_tail), Some(new_tail)) = (tail(old), tail(new)) else {
                    return Reading::AsIs;
                };
                if head(old) != head(new) {
                    return Reading::Cut(Certainty::Proven);
                }
                // A backup's name beside the file's own: the shorter counts.
                if new.len() > old.len() { old_tail } else { new_tail }
            }
            (Some(one), None) | (None, Some(one)) => match tail(one) {
                Some(tail) => tail,
                None => return Reading::AsIs,
            },
            (None, None) => name,
        };
        let whole = match (&self.old, &self.new) {
            (Some(old), Some(new)) if new.len() > old.len() => old,
            _ => name,
        };
        let lone = self.old.is_none() || self.new.is_none();
        let usual = lone && matches!(head(whole), b"a" | b"b" | b"i" | b"w" | b"c" | b"o");
        match (there(whole), there(one)) {
            (true, true) => Reading::Both(Fit::BothThere),
            _ if usual => Reading::Cut(Certainty::Usual),
            // Where a file is to be created, that one of the two is there says
            // nothing for either.
            _ if self.operation == Operation::Create => Reading::Both(Fit::Unasked),
            (true, false) => Reading::AsIs,
            (false, true) => Reading::Cut(Certainty::Proven),
            (false, false) => Reading::Both(Fit::NoneThere),
        }
    }

    fn operation(&self, file: &FilePatch, path: &TreePath, exists: Exists<'_>) -> Operation {
        let from_nothing = match &file.body {
            Body::Text(hunks) => {
                matches!(hunks.as_slice(), [one] if one.old.start == 0 && one.old.len == 0)
            }
            _ => false,
        };
        let plain = self.style == HeaderStyle::Plain && self.operation == Operation::Modify;
        if plain && from_nothing && !exists(path) { Operation::Create } else { self.operation }
    }
}

fn is_git(part: &[u8]) -> bool {
    std::str::from_utf8(part).is_ok_and(reserved::is_git_folder)
}

/// The first part of a name.
fn head(name: &[u8]) -> &[u8] {
    name.split(|b| *b == b'/').next().unwrap_or_default()
}

/// The name without its first `count` parts.
fn strip_parts(name: &[u8], count: usize) -> Option<&[u8]> {
    (0..count).try_fold(name, |rest, _| tail(rest))
}

/// Refuses a name that leaves the tree at any strip level, and takes out
/// doubled slashes, as git and GNU patch do.
fn checked(file: &FilePatch, name: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut parts = name.split(|b| *b == b'/');
    if name.starts_with(b"/") {
        return Err(unsafe_name(file, name, PathError::Absolute));
    }
    if std::str::from_utf8(name).is_err() {
        return Err(unsafe_name(file, name, PathError::Encoding));
    }
    if name.iter().any(|b| matches!(b, 0 | b'\n' | b'\r')) {
        return Err(unsafe_name(file, name, PathError::Control));
    }
    if parts.clone().any(|part| part == b"..") {
        return Err(unsafe_name(file, name, PathError::Escape));
    }
    if parts.clone().any(is_git) {
        return Err(unsafe_name(file, name, PathError::GitFolder));
    }
    // Subversion and `diff ./a ./b` write such parts; they say nothing.
    let mut kept: Vec<u8> = Vec::with_capacity(name.len());
    let last = parts.next_back().unwrap_or_default();
    for part in parts.filter(|part| !part.is_empty()) {
        kept.extend_from_slice(part);
        kept.push(b'/');
    }
    kept.extend_from_slice(last);
    Ok(kept)
}

fn unsafe_name(file: &FilePatch, name: &[u8], why: PathError) -> Refusal {
    let reason = match why {
        PathError::Encoding | PathError::Control => Reason::PathEncoding,
        _ => Reason::PathEscape,
    };
    let remedy = match reason {
        Reason::PathEncoding => "rename the file, or leave it out of the patch",
        _ => "a patch may name files of its own tree only",
    };
    Refusal::new(reason, format!("`{}` cannot be used: {why}", lossy(name)), remedy)
        .at(Place { line: file.line, byte: file.byte })
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Refuses a file that stands behind a symbolic link of the tree: writing it
/// would write elsewhere. Ask before each file patch, of the tree as the
/// patches before it left it.
///
/// # Errors
/// [`Reason::Symlink`], naming the link.
pub fn check_no_link_above(tree: &dyn Tree, path: &TreePath) -> Result<(), Refusal> {
    match path.parents().find(|parent| tree.mode(parent) == Some(Mode::Symlink)) {
        Some(link) => Err(Refusal::new(
            Reason::Symlink,
            format!("`{path}` stands behind the symbolic link `{link}`"),
            "name the file by its own path",
        )),
        None => Ok(()),
    }
}

/// Refuses a file a patch leaves at `path` if it is a symbolic link that leads
/// out of the tree, or may: absolute, too many `..`, or a `..` behind a folder
/// (which may be a link itself). Other files pass.
///
/// # Errors
/// [`Reason::Symlink`], with the target.
pub fn check_link_target(path: &TreePath, file: &File) -> Result<(), Refusal> {
    if file.mode != Mode::Symlink {
        return Ok(());
    }
    let target = &file.bytes[..];
    let parts: Vec<&[u8]> = target.split(|b| matches!(b, b'/' | b'\\')).collect();
    let up = parts.iter().take_while(|part| **part == b"..").count();
    let drive = target.get(1) == Some(&b':') && target[0].is_ascii_alphabetic();
    let rooted = parts.first().is_none_or(|part| part.is_empty()) || drive;
    let later_up = parts[up..].iter().any(|part| *part == b"..");
    let git = parts.iter().any(|part| is_git(part));
    let odd = target.iter().any(|b| matches!(b, 0 | b'\n' | b'\r'));
    if !rooted && up <= path.parents().count() && !later_up && !git && !odd {
        return Ok(());
    }
    let (to, what) = match odd {
        true => (quoted(&lossy(target)), "which is no path"),
        false => (lossy(target), "out of the tree"),
    };
    Err(Refusal::new(
        Reason::Symlink,
        format!("the symbolic link `{path}` leads to `{to}`, {what}"),
        "let it lead to a file of the tree, by a relative path",
    ))
}

#[cfg(test)]
mod tests;
