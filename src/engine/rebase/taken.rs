//! What a person's files make of an entry that stopped a rebase.

use std::collections::BTreeSet;
use std::path::Path;

use crate::snapshot::{File, Mode, TreePath};

use super::clash::{is_covered, is_upstreams, of_upstream, stands, stands_beside};
use super::mails::Mails;
use super::session::FOLDER;
use super::work::{
    Unresolved, change, changed_sides, finished, in_work, sides, sides_folder, strays, work_folder,
    work_path, write_work,
};
use super::{Part, RebaseError, Shown, Unfinished, markers, remake};

/// The entry's new patch, with the prose of its own.
///
/// # Errors
/// A file cannot be read.
pub(super) fn patch(
    root: &Path,
    parts: &[Part],
) -> Result<Result<Vec<u8>, Unresolved>, RebaseError> {
    if let Some(changed) = changed_sides(root, parts)? {
        return Ok(Err(changed));
    }
    let mut moved = match Moved::of(root, parts)? {
        Ok(moved) => moved,
        Err(unresolved) => return Ok(Err(unresolved)),
    };
    let stepwise = stepwise(root, parts)?;
    let mut patch = Mails::default();
    for part in parts {
        match part {
            Part::Prose(text) => patch.prose(text),
            Part::Kept(own) => patch.diff(own),
            Part::Step { files, own } if files.iter().all(|f| stepwise.contains(f)) => {
                patch.diff(own);
            }
            Part::Step { .. } => patch.diff(b""),
            Part::Work(file) if stepwise.contains(&file.path) => {}
            Part::Work(file) => {
                if is_upstreams(file) {
                    patch.diff(&std::mem::take(&mut moved.patch));
                }
                match taken(root, parts, file, &moved)? {
                    Ok(own) => patch.diff(&own),
                    Err(unresolved) => return Ok(Err(unresolved)),
                }
            }
        }
    }
    Ok(if patch.changes { Ok(patch.into_bytes()) } else { Err(Unresolved::Nothing) })
}

/// The files of several file patches that are left as they are, with all that these are
/// about.
fn stepwise<'p>(root: &Path, parts: &'p [Part]) -> Result<BTreeSet<&'p TreePath>, RebaseError> {
    let mut left = BTreeSet::new();
    for file in in_work(parts).filter(|file| file.own.is_some() && !is_covered(root, file)) {
        let now = finished(&work_path(root, &file.path), file)?;
        if let (Shown::Merged(made), Ok(Some(now))) = (&file.shown, now)
            && now == *made
        {
            left.insert(&file.path);
        }
    }
    let steps = parts.iter().filter_map(|part| match part {
        Part::Step { files, .. } if files.iter().all(|f| left.contains(f)) => Some(files),
        _ => None,
    });
    Ok(steps.flatten().collect())
}

/// What one file becomes, as a patch of the target.
fn taken(
    root: &Path,
    parts: &[Part],
    file: &Unfinished,
    moved: &Moved,
) -> Result<Result<Vec<u8>, Unresolved>, RebaseError> {
    let path = work_path(root, &file.path);
    let beside = stands_beside(root, parts, file);
    let clashes = of_upstream(parts, file).is_some();
    let now = match finished(&path, file)? {
        _ if is_covered(root, file) => None,
        Ok(now) => now,
        Err(_) if (beside || clashes) && path.is_dir() => None,
        Err(what) => return Ok(Err(Unresolved::NoFile { path, what })),
    };
    // What the entry makes of a file that it deletes is nothing.
    let now = now.filter(|f| !(file.deleted && f.bytes.is_empty()));
    if now.is_none() && clashes && !is_upstreams(file) {
        // It gives way to upstream's, under another name or for good.
        let old = file.from.as_ref().filter(|_| moved.all);
        return Ok(Ok(
            old.map_or_else(Vec::new, |old| remake::difference(old, file.before.clone(), None))
        ));
    }
    if now.is_none() && is_upstreams(file) && !beside {
        return Ok(Ok(Vec::new()));
    }
    if now.is_none() && !file.deleted && !beside {
        write_work(&root.join(FOLDER), file)?;
        return Ok(Err(match &file.shown {
            Shown::Merged(_) => Unresolved::Missing { path },
            Shown::Sides(versions) => {
                let sides = sides(&sides_folder(root), &file.path, versions);
                let sides = sides.map(|(name, path, _)| (name, path)).collect();
                Unresolved::Unchosen { path, sides }
            }
        }));
    }
    if let (Shown::Merged(marked), Some(now)) = (&file.shown, &now) {
        let own = match &file.own {
            Some(_) => Some(marked),
            None => file.before.as_ref(),
        };
        let own = own.map(|f| &f.bytes[..]).unwrap_or_default();
        if let Some(line) = markers::first_marker(&now.bytes, own) {
            return Ok(Err(Unresolved::Marker { path, line }));
        }
        if now == marked {
            // Bytes that cannot hold markers are open as they are.
            let deleted = file.deleted;
            return Ok(file.own.clone().ok_or(Unresolved::Untouched { path, deleted }));
        }
    }
    Ok(Ok(change(file, now)))
}

/// The entry's files that a person put elsewhere, where upstream's are in their place.
struct Moved {
    /// They, as a patch of the target.
    patch: Vec<u8>,
    /// Each that does not stand in its place is one of them.
    all: bool,
}

impl Moved {
    /// Takes a file in the work folder that is none of the entry's for one that stood in
    /// upstream's way. Others would be lost; and with fewer of them than of those, what
    /// becomes of one is open.
    fn of(root: &Path, parts: &[Part]) -> Result<Result<Self, Unresolved>, RebaseError> {
        let is_there = |f: &Unfinished| stands(root, &f.path) && !is_covered(root, f);
        let gives_way = |f: &&Unfinished| {
            !is_upstreams(f) && !f.deleted && of_upstream(parts, f).is_some() && !is_there(f)
        };
        let away: Vec<&Unfinished> = in_work(parts).filter(gives_way).collect();
        let mut open = away.iter().filter(|f| !stands_beside(root, parts, f));
        let paths = strays(root, in_work(parts).map(|f| &f.path))?;
        let names: Option<Vec<TreePath>> = paths
            .iter()
            .map(|path| TreePath::new(path.strip_prefix(work_folder(root)).ok()?.to_str()?).ok())
            .collect();
        let Some(names) = names.filter(|names| names.len() <= away.len()) else {
            return Ok(Err(Unresolved::Unlisted { paths }));
        };
        if let Some(file) = open.nth(names.len())
            && let Some(other) = of_upstream(parts, file)
        {
            let sides = sides_folder(root);
            // Of a whole folder its name says enough.
            let place = if file.path.is_in(&other.path) { other } else { file };
            return Ok(Err(Unresolved::Clash {
                path: work_path(root, &file.path),
                upstream: sides.join("upstream").join(place.path.as_str()),
                entry: sides.join("entry").join(file.path.as_str()),
            }));
        }
        let mut patch = Vec::new();
        for (path, name) in paths.into_iter().zip(&names) {
            let shown = Shown::Merged(File::new(Mode::Regular, &b""[..]));
            let now = match finished(&path, &Unfinished::new(name.clone(), None, shown))? {
                Ok(now) => now,
                Err(what) => return Ok(Err(Unresolved::NoFile { path, what })),
            };
            let text = now.as_ref().map(|f| &f.bytes[..]).unwrap_or_default();
            if let Some(line) = markers::first_marker(text, b"") {
                return Ok(Err(Unresolved::Marker { path, line }));
            }
            patch.extend(remake::difference(name, None, now));
        }
        Ok(Ok(Self { patch, all: names.len() == away.len() }))
    }
}
