//! Files of which one stands where another has its folder: no tree and no work folder
//! holds both, and which is wanted is a person's to say.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::snapshot::{ReadError, Snapshot, Tree, TreePath};

use super::remake::Around;
use super::work::{in_work, work_path};
use super::{Part, Shown, Unfinished, Versions};

/// Parts an entry's files from those that they clash with, of the entry's own and of
/// upstream's; these are among the files for a person then. `ours` is the pin with the
/// entry laid.
pub(super) fn part_clashing(
    parts: &mut Vec<Part>,
    ours: &Snapshot<'_>,
    around: &Around<'_, '_>,
) -> Result<(), ReadError> {
    let paths: BTreeSet<TreePath> = in_work(parts).map(|f| f.path.clone()).collect();
    let above = |path: &TreePath| path.parents().find(|p| paths.contains(p));
    let pairs = paths.iter().filter_map(|path| Some([path.clone(), above(path)?]));
    let mut clashing: BTreeSet<TreePath> = pairs.flatten().collect();
    let upstream = upstreams(parts, &paths, around);
    clashing.extend(upstream.iter().map(|(_, path)| path.clone()));
    // What goes stands in the patch before what takes its place.
    for (at, path) in upstream.into_iter().rev() {
        let before = around.before.file(&path)?;
        let shown = Shown::Sides(Box::default());
        parts.insert(at, Part::Work(Unfinished::new(path, before, shown)));
    }
    let others: Vec<TreePath> = clashing.iter().cloned().collect();
    let is_among = |path: &TreePath| others.iter().any(|other| other == path || clash(other, path));
    for part in parts {
        if let Part::Work(file) = part
            && is_among(&file.path)
        {
            let side = |tree: &Snapshot<'_>| tree.file(&file.path);
            let (upstream, pin, entry) = (side(around.before)?, side(around.base)?, side(ours)?);
            file.shown = Shown::Sides(Box::new(Versions { upstream, pin, entry }));
            file.own = None;
        }
    }
    Ok(())
}

/// The files of upstream that clash with the entry's and are none of its own, each once,
/// with the place of the first part that it clashes with.
fn upstreams(
    parts: &[Part],
    own: &BTreeSet<TreePath>,
    around: &Around<'_, '_>,
) -> Vec<(usize, TreePath)> {
    // What the entry takes away without a stop is in nobody's way.
    let stays = |path: &TreePath| around.before.mode(path).and(around.after.mode(path)).is_some();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let Part::Work(file) = part else { continue };
        if file.deleted || around.before.mode(&file.path).is_some() {
            continue;
        }
        let mut others: Vec<TreePath> = file.path.parents().filter(|p| stays(p)).collect();
        if around.before.inside(&file.path).is_some() {
            let below = |path: &TreePath| path.is_in(&file.path) && stays(path);
            others.extend(around.before.paths().into_iter().filter(below));
        }
        others.retain(|path| !own.contains(path) && seen.insert(path.clone()));
        found.extend(others.into_iter().map(|path| (at, path)));
    }
    found
}

/// Whether no tree has both.
fn clash(one: &TreePath, other: &TreePath) -> bool {
    one.is_in(other) || other.is_in(one)
}

/// Whether a file is upstream's alone, and there because the entry's cannot stand beside
/// it.
pub(super) fn is_upstreams(file: &Unfinished) -> bool {
    matches!(&file.shown, Shown::Sides(v) if v.upstream.is_some() && v.pin == v.entry)
}

/// The file of upstream's alone that clashes with one of the entry's.
pub(super) fn of_upstream<'p>(parts: &'p [Part], file: &Unfinished) -> Option<&'p Unfinished> {
    in_work(parts).find(|other| is_upstreams(other) && clash(&other.path, &file.path))
}

/// Whether a file that clashes with this one stands in the work folder: this one is
/// then meant to be gone.
pub(super) fn stands_beside(root: &Path, parts: &[Part], file: &Unfinished) -> bool {
    in_work(parts)
        .filter(|other| clash(&other.path, &file.path))
        .any(|other| stands(root, &other.path))
}

/// Whether a file, or a link, stands in the place of a folder of this one. What is behind a
/// link is not looked at.
pub(super) fn is_covered(root: &Path, file: &Unfinished) -> bool {
    file.path.parents().any(|folder| stands(root, &folder))
}

/// Whether something that is no folder is there in the work folder.
pub(super) fn stands(root: &Path, path: &TreePath) -> bool {
    fs::symlink_metadata(work_path(root, path)).is_ok_and(|meta| !meta.is_dir())
}
