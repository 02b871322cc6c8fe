//! What an entry that stops a rebase leaves to a person, file by file.

use std::collections::{BTreeMap, VecDeque};

use crate::locate::Language;
use crate::moved::{find_kept, find_moved};
use crate::patch::{Body, FilePatch, Operation, Patch};
use crate::report::{FileReport, HunkReport};
use crate::snapshot::{File, Mode, ReadError, Snapshot, Tree, TreePath};

use super::markers::{self, Sides};
use super::remake::{self, Around};
use super::{Shown, Unfinished, Versions, clash, group, text};

/// A part of an entry that stops a rebase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The text before a file patch, or after the last.
    Prose(Vec<u8>),
    /// It holds and is no text to finish: a rename, a deletion, a link, binary data.
    /// This is its patch at the target.
    Kept(Vec<u8>),
    /// A file for a person.
    Work(Unfinished),
    /// The patch at the target of one of several file patches that hold and are about the
    /// same files: they stand for these where all are left as they are.
    Step {
        /// The files, each one for a person.
        files: Vec<TreePath>,
        /// The patch.
        own: Vec<u8>,
    },
}

/// The parts of an entry, in the patch's order. `ours` is the pin with the entry laid.
pub(super) fn parts(
    patch: &Patch,
    files: &[FileReport],
    hunks: &[HunkReport],
    ours: &Snapshot<'_>,
    around: &Around<'_, '_>,
    sides: &Sides<'_>,
) -> Result<Vec<Part>, ReadError> {
    let mut left = hunks;
    let mut judged = Vec::new();
    let heads = patch.commits().flat_map(|commit| commit.iter().map(|_| &commit[0]));
    for ((file, report), head) in patch.files.iter().zip(files).zip(heads) {
        let count = if let Body::Text(hunks) = &file.body { hunks.len() } else { 0 };
        let (hunks, rest) = left.split_at(count.min(left.len()));
        left = rest;
        judged.push(Judged { file, head, report, hunks });
    }
    let groups = group::leaders(files);
    let mut parts = Vec::new();
    let mut steps: BTreeMap<usize, VecDeque<Part>> = BTreeMap::new();
    for (at, one) in judged.iter().enumerate() {
        if !one.file.prose.is_empty() {
            parts.push(Part::Prose(one.file.prose.clone()));
        }
        let group = judged.iter().zip(&groups).filter(|(_, leader)| **leader == groups[at]);
        let group: Vec<&Judged<'_>> = group.map(|(one, _)| one).collect();
        if group.len() > 1 {
            if groups[at] == at {
                let (whole, each) = group::parts(&group, ours, around, sides)?;
                parts.extend(whole);
                steps.insert(at, each.into());
            }
            parts.extend(steps.get_mut(&groups[at]).and_then(VecDeque::pop_front));
        } else if !one.holds() {
            parts.push(Part::Work(open(one, ours, around, sides)?));
        } else {
            let own = remake::part(one.file, one.report, one.hunks, around)?;
            parts.push(match held(one, around)? {
                Some(file) => Part::Work(Unfinished { own: Some(own), ..file }),
                None => Part::Kept(own),
            });
        }
    }
    if !patch.trailer.is_empty() {
        parts.push(Part::Prose(patch.trailer.clone()));
    }
    clash::part_clashing(&mut parts, ours, around)?;
    Ok(parts)
}

/// Whether a file is one that an editor opens: no link, no submodule.
pub(super) fn is_plain(file: &File) -> bool {
    matches!(file.mode, Mode::Regular | Mode::Executable)
}

/// A file's bytes; none where there is no file.
fn bytes(file: &Option<File>) -> Vec<u8> {
    file.as_ref().map(|f| f.bytes.to_vec()).unwrap_or_default()
}

/// What a person finds of a file that does not hold: the text that `merge` makes, or
/// the sides. Of a file that the entry deletes it is upstream's, to be removed.
pub(super) fn shown(
    versions: Versions,
    deleted: bool,
    text: bool,
    merge: impl FnOnce(&Versions) -> Vec<u8>,
) -> Shown {
    match &versions.upstream {
        _ if text => Shown::Merged(File::new(mode(&versions), merge(&versions))),
        Some(now) if deleted => Shown::Merged(now.clone()),
        _ => Shown::Sides(Box::new(versions)),
    }
}

/// A file that was taken as a whole, between markers.
pub(super) fn whole(versions: &Versions, sides: &Sides<'_>) -> Vec<u8> {
    let Versions { upstream, pin, entry } = versions;
    markers::whole_file(&bytes(upstream), &bytes(pin), &bytes(entry), sides)
}

/// What all that the entry does to a file makes of upstream's, hunk by hunk, where that
/// leaves something open; else the file between markers.
pub(super) fn merged(versions: &Versions, language: Language, sides: &Sides<'_>) -> Vec<u8> {
    if let Versions { upstream: Some(now), pin: Some(was), entry: Some(made) } = versions {
        let hunks = text::hunks_between(&was.bytes, &made.bytes);
        let merged = markers::marked(&hunks, &was.bytes, &now.bytes, language, sides);
        if markers::first_marker(&merged, &now.bytes).is_some() {
            return merged;
        }
    }
    whole(versions, sides)
}

/// The mode of a file that both sides may have changed.
fn mode(versions: &Versions) -> Mode {
    let mode = |file: &Option<File>| file.as_ref().map(|f| f.mode);
    let (now, was, made) = (mode(&versions.upstream), mode(&versions.pin), mode(&versions.entry));
    match now {
        Some(now) if made.is_none() || made == was => now,
        _ => made.or(now).unwrap_or(Mode::Regular),
    }
}

/// A file patch with what was found of it.
pub(super) struct Judged<'p> {
    pub(super) file: &'p FilePatch,
    /// The first file patch of its commit.
    pub(super) head: &'p FilePatch,
    pub(super) report: &'p FileReport,
    pub(super) hunks: &'p [HunkReport],
}

impl Judged<'_> {
    pub(super) fn holds(&self) -> bool {
        self.report.class.holds() && self.hunks.iter().all(|h| h.class.holds())
    }
}

/// A file that holds, where a person can go on with what is made of it: text that
/// stays where it is.
fn held(one: &Judged<'_>, around: &Around<'_, '_>) -> Result<Option<Unfinished>, ReadError> {
    let path = one.report.path.clone();
    let stays = matches!(one.file.operation, Operation::Modify | Operation::Create);
    let text = matches!(one.file.body, Body::Text(_));
    let (before, after) = (around.before.file(&path)?, around.after.file(&path)?);
    let shown = after.filter(|after| stays && text && is_plain(after));
    Ok(shown.map(|made| Unfinished::new(path, before, Shown::Merged(made))))
}

/// A file that does not hold.
fn open(
    one: &Judged<'_>,
    ours: &Snapshot<'_>,
    around: &Around<'_, '_>,
    sides: &Sides<'_>,
) -> Result<Unfinished, ReadError> {
    let (operation, report) = (one.file.operation, one.report);
    let then = report.from.as_ref().unwrap_or(&report.path);
    let was = around.base.file(then)?;
    let moves = matches!(operation, Operation::Rename | Operation::Copy);
    // Where the file is now that the patch moves or deletes.
    let source = match &was {
        _ if around.before.mode(then).is_some() => Some(then.clone()),
        Some(was) if moves => {
            find_moved(then, was, around.base.unedited(), around.before.unedited())?
        }
        Some(was) if operation == Operation::Delete => {
            find_kept(then, was, around.base.unedited(), around.before.unedited())?
        }
        _ => None,
    };
    let path = match (&source, operation) {
        (Some(source), Operation::Delete) => source.clone(),
        _ => report.path.clone(),
    };
    let taken = around.before.file(&path)?;
    let source = source.filter(|_| moves && taken.is_none());
    // What upstream has: of a file that moves, under its old name.
    let now = match &source {
        Some(source) => around.before.file(source)?,
        None => taken.clone(),
    };
    // The source of a copy stays.
    let from = source.filter(|_| operation == Operation::Rename);
    let before = if from.is_some() { now.clone() } else { taken.clone() };
    // Upstream has a file of the new name: the old one goes all the same.
    let gone = match around.before.file(then)? {
        Some(file) if operation == Operation::Rename && taken.is_some() && *then != path => {
            Some((then.clone(), file))
        }
        _ => None,
    };
    let made = ours.file(if moves { &path } else { then })?;
    let deleted = operation == Operation::Delete;
    let versions = Versions { upstream: now, pin: was, entry: made };
    let text = matches!(&one.file.body, Body::Text(_)) && !versions.differ_in_kind();
    let merge = |versions: &Versions| match (&one.file.body, &versions.upstream, &versions.pin) {
        (Body::Text(hunks), Some(now), Some(was)) if gone.is_none() => {
            let language = Language::of(then);
            let merged = markers::marked(hunks, &was.bytes, &now.bytes, language, sides);
            // The name, not the text, is what does not hold.
            let open =
                hunks.is_empty() && !moves || markers::first_marker(&merged, &now.bytes).is_some();
            if open { merged } else { whole(versions, sides) }
        }
        _ => whole(versions, sides),
    };
    let shown = shown(versions, deleted, text, merge);
    Ok(Unfinished { from, gone, deleted, ..Unfinished::new(path, before, shown) })
}
