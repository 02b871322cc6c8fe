//! What an entry that stops a rebase leaves to a person, file by file.

use crate::moved::find_moved;
use crate::patch::{Body, FilePatch, Operation, Patch};
use crate::report::{FileReport, HunkReport};
use crate::snapshot::{File, Mode, ReadError, Snapshot, Tree};

use super::Unfinished;
use super::markers::{self, Sides};
use super::remake::{self, Around, difference};

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
    let mut left = hunks;
    let mut judged = Vec::new();
    for (file, report) in patch.files.iter().zip(files) {
        let count = if let Body::Text(hunks) = &file.body { hunks.len() } else { 0 };
        let (own, rest) = left.split_at(count.min(left.len()));
        left = rest;
        judged.push(Judged { file, report, hunks: own });
    }
    let mut parts = Vec::new();
    for (at, one) in judged.iter().enumerate() {
        let same = |other: &&Judged<'_>| other.report.path == one.report.path;
        let repeated = judged.iter().filter(same).count() > 1;
        if repeated && judged[..at].iter().any(|j| same(&j)) {
            continue;
        }
        let holds = judged.iter().filter(same).all(Judged::holds);
        if holds && repeated {
            parts.push(Part::Work(held(one, around, None)?));
        } else if holds {
            let own = remake::part(one.file, one.report, one.hunks, around)?;
            if is_text(one, around)? {
                parts.push(Part::Work(held(one, around, Some(own))?));
            } else {
                parts.push(Part::Kept(own));
            }
        } else {
            parts.push(Part::Work(open(one, repeated, ours, around, sides)?));
        }
    }
    Ok(parts)
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

/// Whether a person can go on with what a file patch makes, in a file of the work
/// folder: text that stays where it is.
fn is_text(one: &Judged<'_>, around: &Around<'_, '_>) -> Result<bool, ReadError> {
    let stays = matches!(one.file.operation, Operation::Modify | Operation::Create);
    let plain = |f: File| matches!(f.mode, Mode::Regular | Mode::Executable);
    let after = around.after.file(&one.report.path)?;
    Ok(stays && matches!(one.file.body, Body::Text(_)) && after.is_some_and(plain))
}

/// A file that holds. `own` is its patch; what its patches make together where it has
/// several.
fn held(
    one: &Judged<'_>,
    around: &Around<'_, '_>,
    own: Option<Vec<u8>>,
) -> Result<Unfinished, ReadError> {
    let path = one.report.path.clone();
    let (before, after) = (around.before.file(&path)?, around.after.file(&path)?);
    let own = own.unwrap_or_else(|| difference(&path, before.clone(), after.clone()));
    let marked = after.unwrap_or_else(|| File::new(Mode::Regular, Vec::new()));
    Ok(Unfinished { path, from: None, gone: None, before, marked, own: Some(own), deleted: false })
}

/// A file that does not hold.
fn open(
    one: &Judged<'_>,
    repeated: bool,
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
    let from = source.filter(|_| moves && taken.is_none());
    let before = match &from {
        Some(from) => around.before.file(from)?,
        None => taken.clone(),
    };
    // Upstream has a file of the new name: the old one goes all the same.
    let gone = match around.before.file(then)? {
        Some(file) if operation == Operation::Rename && taken.is_some() && *then != path => {
            Some((then.clone(), file))
        }
        _ => None,
    };
    let made = ours.file(if moves { &path } else { then })?;
    let bytes = |file: &Option<File>| file.as_ref().map(|f| f.bytes.to_vec()).unwrap_or_default();
    let whole = || markers::whole_file(&bytes(&before), &bytes(&was), &bytes(&made), sides);
    let text = matches!(&one.file.body, Body::Text(_));
    let marked = match (&one.file.body, &before, &was) {
        (Body::Text(hunks), Some(now), Some(was)) if !repeated && gone.is_none() => {
            let merged = markers::marked(hunks, &was.bytes, &now.bytes, sides);
            // The name, not the text, is what does not hold.
            let open =
                hunks.is_empty() && !moves || markers::first_marker(&merged, false).is_some();
            if open { merged } else { whole() }
        }
        _ if text => whole(),
        (_, Some(now), _) => now.bytes.to_vec(),
        _ => bytes(&made),
    };
    let mode = |file: &Option<File>| file.as_ref().map(|f| f.mode);
    let mode = match (mode(&before), mode(&was), mode(&made)) {
        (Some(now), was, made) if made.is_none() || made == was => now,
        (now, _, made) => made.or(now).unwrap_or(Mode::Regular),
    };
    let deleted = operation == Operation::Delete;
    let marked = File::new(mode, marked);
    Ok(Unfinished { path, from, gone, before, marked, own: None, deleted })
}
