//! File patches of one entry that are about one file, under whichever name: what one
//! leaves is what the next is made for.

use std::collections::{BTreeMap, BTreeSet};

use crate::locate::Language;
use crate::moved::{find_kept, find_moved};
use crate::patch::{FilePatch, Operation, Patch};
use crate::report::FileReport;
use crate::snapshot::{File, ReadError, Snapshot, Tree, TreePath};

use super::markers::{self, Sides};
use super::parts::{Judged, Part, is_plain, merged, shown};
use super::remake::{self, Around, Made, difference, moved};
use super::work::in_work;
use super::{Shown, Unfinished, Versions};

/// Of each file patch the place of the first that is about the same file.
pub(super) fn leaders(files: &[FileReport]) -> Vec<usize> {
    let mut leaders: Vec<usize> = (0..files.len()).collect();
    let mut seen: BTreeMap<&TreePath, usize> = BTreeMap::new();
    for (at, file) in files.iter().enumerate() {
        for name in names(file) {
            let Some(before) = seen.insert(name, at) else { continue };
            let (first, last) = (leaders[before], leaders[at]);
            if first != last {
                let (first, last) = (first.min(last), first.max(last));
                leaders.iter_mut().filter(|l| **l == last).for_each(|l| *l = first);
            }
        }
    }
    leaders
}

fn names(file: &FileReport) -> impl Iterator<Item = &TreePath> {
    file.from.iter().chain([&file.path])
}

/// The parts of such a group as a whole, and one for each of its file patches. Where all
/// of it holds, what it makes of the target; else what it makes of each file in the end,
/// against what upstream made of it.
pub(super) fn parts(
    group: &[&Judged<'_>],
    ours: &Snapshot<'_>,
    around: &Around<'_, '_>,
    sides: &Sides<'_>,
) -> Result<(Vec<Part>, Vec<Part>), ReadError> {
    let paths: BTreeSet<&TreePath> = group.iter().flat_map(|one| names(one.report)).collect();
    let mut net = Net { ours, around, sides, origins: origins(group), done: BTreeSet::new() };
    let mut parts = Vec::new();
    let holds = group.iter().all(|one| one.holds());
    let is_new = |path: &&&TreePath| net.origins.contains_key(**path);
    // Where a file is moved to tells of its old name too.
    let (new, old): (Vec<&TreePath>, Vec<&TreePath>) = paths.iter().partition(|p| is_new(p));
    for path in new.into_iter().chain(old) {
        parts.extend(if holds { net.held(path)? } else { net.open(path)? });
    }
    let asks = |part: &Part| matches!(part, Part::Work(file) if file.own.is_none());
    if !holds && !parts.iter().any(asks) {
        // What does not hold must not pass for an answer.
        parts.iter_mut().for_each(|part| ask(part, sides));
    }
    let made = if holds { each(group, around)? } else { None };
    Ok(apart(parts, made.unwrap_or_else(|| vec![None; group.len()])))
}

/// What each file patch of a group that holds is at the target.
fn each(group: &[&Judged<'_>], around: &Around<'_, '_>) -> Result<Option<Made>, ReadError> {
    let mut patch = Patch { files: Vec::new(), trailer: Vec::new() };
    let mut reports = Vec::new();
    let mut head = None;
    for one in group {
        let begins = head.replace(one.head.byte) != Some(one.head.byte);
        let prose = if begins { one.head.prose.clone() } else { Vec::new() };
        patch.files.push(FilePatch { prose, ..one.file.clone() });
        reports.push(one.report.clone());
    }
    remake::each(&patch, &reports, around)
}

/// Parts a group into what it is as a whole and what each of its file patches is, where
/// they can stand for it.
fn apart(whole: Vec<Part>, made: Made) -> (Vec<Part>, Vec<Part>) {
    let files: Vec<TreePath> = in_work(&whole).map(|file| file.path.clone()).collect();
    let known = made.iter().any(Option::is_some);
    let own = made.into_iter().map(Option::unwrap_or_default);
    match files.len() {
        0 if known => (Vec::new(), own.map(Part::Kept).collect()),
        all if known && all == whole.len() => {
            (whole, own.map(|own| Part::Step { files: files.clone(), own }).collect())
        }
        _ => (whole, own.map(|_| Part::Kept(Vec::new())).collect()),
    }
}

/// The files at the pin that those with new names come from.
fn origins<'p>(group: &[&'p Judged<'_>]) -> BTreeMap<&'p TreePath, &'p TreePath> {
    let mut origins: BTreeMap<&TreePath, &TreePath> = BTreeMap::new();
    for one in group {
        if let (Some(from), Operation::Rename | Operation::Copy) =
            (&one.report.from, one.file.operation)
        {
            let first = origins.get(from).copied().unwrap_or(from);
            origins.insert(&one.report.path, first);
        }
    }
    origins
}

/// Puts a file that would settle itself between markers.
fn ask(part: &mut Part, sides: &Sides<'_>) {
    if let Part::Work(file) = part
        && let Shown::Merged(made) = &mut file.shown
    {
        let before = file.before.as_ref().map(|f| &f.bytes[..]).unwrap_or_default();
        made.bytes = markers::whole_file(before, b"", &made.bytes, sides).into();
        file.own = None;
    }
}

/// What a group makes of each file.
struct Net<'n, 's, 't> {
    /// The pin with the entry laid.
    ours: &'n Snapshot<'n>,
    around: &'n Around<'s, 't>,
    sides: &'n Sides<'n>,
    origins: BTreeMap<&'n TreePath, &'n TreePath>,
    /// Files of the target that were told of under another name.
    done: BTreeSet<TreePath>,
}

impl Net<'_, '_, '_> {
    /// A file of a group that holds.
    fn held(&mut self, path: &TreePath) -> Result<Option<Part>, ReadError> {
        let (now, made) = (self.around.before.file(path)?, self.around.after.file(path)?);
        if now == made || self.done.contains(path) {
            return Ok(None);
        }
        let origin = self.origins.get(path).copied();
        if let (None, Some(made), Some(from)) = (&now, &made, origin)
            && self.around.after.mode(from).is_none()
            && let Some(before) = self.around.before.file(from)?
            && before.mode.kind() == made.mode.kind()
            && self.done.insert(from.clone())
        {
            return Ok(Some(Part::Kept(moved(Operation::Rename, [from, path], &before, made))));
        }
        let own = difference(path, now.clone(), made.clone());
        Ok(Some(match made {
            Some(made) if is_plain(&made) => {
                let file = Unfinished::new(path.clone(), now, Shown::Merged(made));
                Part::Work(Unfinished { own: Some(own), ..file })
            }
            _ => Part::Kept(own),
        }))
    }

    /// A file of a group that does not hold: what all of it does in the end meets what
    /// upstream did.
    fn open(&mut self, path: &TreePath) -> Result<Option<Part>, ReadError> {
        let (was, made) = (self.around.base.file(path)?, self.ours.file(path)?);
        if was == made || self.done.contains(path) {
            return Ok(None);
        }
        let now = self.around.before.file(path)?;
        let origin = self.origins.get(path).copied();
        if let (None, None, Some(_), Some(origin)) = (&was, &now, &made, origin)
            && let Some(pin) = self.around.base.file(origin)?
        {
            return self.open_moved(path, made, origin, pin).map(Some);
        }
        // Upstream may have moved it.
        let place = match (&was, &now) {
            (Some(was), None) if made.is_none() => {
                find_kept(path, was, self.around.base.unedited(), self.around.before.unedited())?
            }
            (Some(was), None) => self.place(path, was)?,
            _ => None,
        };
        let is_moved = place.is_some();
        let path = place.unwrap_or_else(|| path.clone());
        let now = self.around.before.file(&path)?;
        if now == made {
            return Ok(None);
        }
        self.done.insert(path.clone());
        let deleted = made.is_none();
        let (shown, own) = match &made {
            _ if is_moved || now != was => {
                let versions = Versions { upstream: now.clone(), pin: was, entry: made };
                (self.shown(&path, versions), None)
            }
            Some(made) if is_plain(made) => {
                let own = difference(&path, now.clone(), Some(made.clone()));
                (Shown::Merged(made.clone()), Some(own))
            }
            _ => return Ok(Some(Part::Kept(difference(&path, now, made)))),
        };
        Ok(Some(Part::Work(Unfinished { own, deleted, ..Unfinished::new(path, now, shown) })))
    }

    /// A new name of a file that the pin has as `origin`.
    fn open_moved(
        &mut self,
        path: &TreePath,
        made: Option<File>,
        origin: &TreePath,
        pin: File,
    ) -> Result<Part, ReadError> {
        let place = self.place(origin, &pin)?;
        let theirs = match &place {
            Some(place) => self.around.before.file(place)?,
            None => None,
        };
        // The source of a copy stays, and of two new names one takes the old one's place.
        let goes = self.ours.mode(origin).is_none() && self.done.insert(origin.clone());
        let from = place.clone().filter(|_| goes);
        self.done.extend(from.clone());
        let before = theirs.clone().filter(|_| from.is_some());
        let untouched = place.as_ref() == Some(origin) && theirs.as_ref() == Some(&pin);
        let (shown, own) = match (&made, &theirs) {
            (Some(made), Some(theirs)) if untouched && made.mode.kind() == theirs.mode.kind() => {
                let own = match &from {
                    Some(from) => moved(Operation::Rename, [from, path], theirs, made),
                    None => difference(path, None, Some(made.clone())),
                };
                if !is_plain(made) {
                    return Ok(Part::Kept(own));
                }
                (Shown::Merged(made.clone()), Some(own))
            }
            _ => {
                (self.shown(path, Versions { upstream: theirs, pin: Some(pin), entry: made }), None)
            }
        };
        Ok(Part::Work(Unfinished { from, own, ..Unfinished::new(path.clone(), before, shown) }))
    }

    /// Where upstream has a file of the pin.
    fn place(&self, path: &TreePath, was: &File) -> Result<Option<TreePath>, ReadError> {
        let (base, before) = (self.around.base, self.around.before);
        if before.mode(path).is_some() {
            return Ok(Some(path.clone()));
        }
        find_moved(path, was, base.unedited(), before.unedited())
    }

    fn shown(&self, path: &TreePath, versions: Versions) -> Shown {
        let deleted = versions.entry.is_none();
        let text = !versions.differ_in_kind() && !versions.have_binary();
        shown(versions, deleted, text, |v| merged(v, Language::of(path), self.sides))
    }
}
