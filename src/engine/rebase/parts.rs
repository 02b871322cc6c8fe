//! What an entry that stops a rebase leaves to a person, file by file.

use std::collections::BTreeSet;

use crate::moved::find_moved;
use crate::patch::{Body, FilePatch, Operation, Patch};
use crate::report::{FileReport, HunkReport};
use crate::snapshot::{File, Mode, ReadError, Snapshot, Tree, TreePath};

use super::markers::{self, Sides};
use super::remake::{self, Around, difference};
use super::{Shown, Unfinished, Versions};

/// A file patch of an entry that stops a rebase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// It holds and is no text to finish: a rename, a deletion, a link, binary data.
    /// This is its patch at the target.
    Kept(Vec<u8>),
    /// A file for a person.
    Work(Unfinished),
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
    if is_entangled(files) {
        return net(ours, around, sides);
    }
    let mut left = hunks;
    let mut parts = Vec::new();
    for (file, report) in patch.files.iter().zip(files) {
        let count = if let Body::Text(hunks) = &file.body { hunks.len() } else { 0 };
        let (hunks, rest) = left.split_at(count.min(left.len()));
        left = rest;
        let one = Judged { file, report, hunks };
        parts.push(if !one.holds() {
            Part::Work(open(&one, ours, around, sides)?)
        } else {
            let own = remake::part(one.file, one.report, one.hunks, around)?;
            match held(&one, around)? {
                Some(file) => Part::Work(Unfinished { own: Some(own), ..file }),
                None => Part::Kept(own),
            }
        });
    }
    Ok(parts)
}

/// Whether several file patches are about one file, under whichever name: what one
/// leaves is what the next is made for.
fn is_entangled(files: &[FileReport]) -> bool {
    let mut names: Vec<&TreePath> =
        files.iter().flat_map(|f| f.from.iter().chain([&f.path])).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    names.len() < all
}

/// What an entry makes of each file in the end, against what upstream made of it:
/// where both did something, the file is taken whole.
fn net(
    ours: &Snapshot<'_>,
    around: &Around<'_, '_>,
    sides: &Sides<'_>,
) -> Result<Vec<Part>, ReadError> {
    let mut parts = Vec::new();
    let paths: BTreeSet<&TreePath> =
        ours.edits().keys().chain(around.base.edits().keys()).collect();
    for path in paths {
        let (was, made) = (around.base.file(path)?, ours.file(path)?);
        let now = around.before.file(path)?;
        if was == made || now == made {
            continue;
        }
        let (path, deleted) = (path.clone(), made.is_none());
        let (shown, own) = match &made {
            _ if now != was => {
                let versions = Versions { upstream: now.clone(), pin: was, entry: made };
                let text = !versions.differ_in_kind() && !versions.have_binary();
                (shown(versions, deleted, text, |v| whole(v, sides)), None)
            }
            Some(made) if is_plain(made) => {
                let own = difference(&path, now.clone(), Some(made.clone()));
                (Shown::Merged(made.clone()), Some(own))
            }
            _ => {
                parts.push(Part::Kept(difference(&path, now, made)));
                continue;
            }
        };
        parts.push(Part::Work(Unfinished { own, deleted, ..Unfinished::new(path, now, shown) }));
    }
    Ok(parts)
}

/// Whether a file is one that an editor opens: no link, no submodule.
fn is_plain(file: &File) -> bool {
    matches!(file.mode, Mode::Regular | Mode::Executable)
}

/// A file's bytes; none where there is no file.
fn bytes(file: &Option<File>) -> Vec<u8> {
    file.as_ref().map(|f| f.bytes.to_vec()).unwrap_or_default()
}

/// What a person finds of a file that does not hold: the text that `merge` makes, or
/// the sides. Of a file that the entry deletes it is upstream's, to be removed.
fn shown(
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
fn whole(versions: &Versions, sides: &Sides<'_>) -> Vec<u8> {
    let Versions { upstream, pin, entry } = versions;
    markers::whole_file(&bytes(upstream), &bytes(pin), &bytes(entry), sides)
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
struct Judged<'p> {
    file: &'p FilePatch,
    report: &'p FileReport,
    hunks: &'p [HunkReport],
}

impl Judged<'_> {
    fn holds(&self) -> bool {
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
        Some(was) if moves || operation == Operation::Delete => {
            find_moved(then, was, around.base.unedited(), around.before.unedited())?
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
            let merged = markers::marked(hunks, &was.bytes, &now.bytes, sides);
            // The name, not the text, is what does not hold.
            let open =
                hunks.is_empty() && !moves || markers::first_marker(&merged, false).is_some();
            if open { merged } else { whole(versions, sides) }
        }
        _ => whole(versions, sides),
    };
    let shown = shown(versions, deleted, text, merge);
    Ok(Unfinished { from, gone, deleted, ..Unfinished::new(path, before, shown) })
}
