//! A patch made again for a new base: the same bytes where nothing moved, fresh
//! places and context where something did, without what has landed.

use std::collections::BTreeSet;

use crate::apply::Ground;
use crate::lay::STRIP;
use crate::locate::{Edit, Language, place_mapped};
use crate::merge::lines;
use crate::patch::{self, Body, FilePatch, Operation, Patch, quoted};
use crate::report::{FileReport, HunkClass, HunkReport};
use crate::snapshot::{File, ReadError, Snapshot, Tree, TreePath};

use super::mails::Mails;
use super::text;

/// What became of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remade {
    /// Its bytes are right as they are.
    Same,
    /// It was made again.
    New(Vec<u8>),
    /// Upstream has all of it.
    Landed,
}

/// The snapshots a patch is made again over.
pub(super) struct Around<'s, 't> {
    /// The pin, before and without the patch.
    pub base: &'s Snapshot<'t>,
    /// The target before the patch.
    pub before: &'s Snapshot<'t>,
    /// The target after it.
    pub after: &'s Snapshot<'t>,
}

/// Makes a patch again that holds at the target, as its reports tell.
pub(super) fn remake(
    patch: &Patch,
    bytes: &[u8],
    files: &[FileReport],
    hunks: &[HunkReport],
    around: &Around<'_, '_>,
) -> Result<Remade, ReadError> {
    let exact = |c: HunkClass| c == HunkClass::Exact;
    if files.iter().all(|f| exact(f.class)) && hunks.iter().all(|h| exact(h.class)) {
        return Ok(Remade::Same);
    }
    let careful = careful(&patch.files, files, hunks, around)?;
    // A change of a mode, say, that upstream made to a file which it renamed.
    let paths = files.iter().flat_map(|file| file.from.iter().chain([&file.path]));
    if careful.iter().all(Option::is_none) || is_after(around.before, paths, around)? {
        return Ok(Remade::Landed);
    }
    let out = with_prose(patch, &careful);
    if gives(&out, around)? {
        return Ok(if out == bytes { Remade::Same } else { Remade::New(out) });
    }
    if let Some(made) = stepped(patch, files, around)? {
        let out = with_prose(patch, &made);
        if gives(&out, around)? {
            return Ok(Remade::New(out));
        }
    }
    Ok(Remade::New(with_prose(patch, &plain(files, around)?)))
}

/// What is made of each file patch again, without its prose; nothing of one that has
/// landed.
pub(super) type Made = Vec<Option<Vec<u8>>>;

/// Each file patch made again over the same trees.
fn careful(
    patches: &[FilePatch],
    files: &[FileReport],
    hunks: &[HunkReport],
    around: &Around<'_, '_>,
) -> Result<Made, ReadError> {
    let mut left = hunks;
    let mut made = Vec::new();
    for (file, report) in patches.iter().zip(files) {
        let count = match &file.body {
            Body::Text(hunks) => hunks.len(),
            _ => 0,
        };
        let (own, rest) = left.split_at(count.min(left.len()));
        left = rest;
        made.push(remake_file(file, report, own, around)?);
    }
    Ok(made)
}

/// The patch made again step by step, where several of its file patches are about one
/// file: what one leaves is what the next is made for. Nothing where a step alone
/// does not hold.
fn stepped(
    patch: &Patch,
    files: &[FileReport],
    around: &Around<'_, '_>,
) -> Result<Option<Made>, ReadError> {
    let (mut base, mut before) = (around.base.clone(), around.before.clone());
    let mut made = Vec::new();
    for step in steps(patch, files) {
        let mut ground = Ground { target: before.clone(), base: Some(base.clone()) };
        let alone = Patch { files: step.to_vec(), trailer: Vec::new() };
        let Ok(report) = ground.apply("", &alone, STRIP) else { return Ok(None) };
        let (true, Some(next)) = (report.holds(), ground.base) else { return Ok(None) };
        let around = Around { base: &base, before: &before, after: &ground.target };
        let careful = careful(step, &report.files, &report.hunks, &around)?;
        let laid = careful.iter().flatten().flatten().copied().collect::<Vec<u8>>();
        let suits = laid.is_empty() || gives(&laid, &around)?;
        made.extend(if suits { careful } else { plain(&report.files, &around)? });
        (base, before) = (next, ground.target);
    }
    Ok(Some(made))
}

/// What each file patch of `patch` is at the target, where all hold and are about the same
/// files; nothing where that does not give the target after.
pub(super) fn each(
    patch: &Patch,
    files: &[FileReport],
    around: &Around<'_, '_>,
) -> Result<Option<Made>, ReadError> {
    let Some(made) = stepped(patch, files, around)? else { return Ok(None) };
    let Some(laid) = laid(&with_prose(patch, &made), around) else { return Ok(None) };
    let paths = files.iter().flat_map(|file| file.from.iter().chain([&file.path]));
    Ok(is_after(&laid, paths, around)?.then_some(made))
}

/// The file patches in steps. One begins with a commit, and with a file patch about a file
/// that is changed in the step already; moves of one commit do not wait for each other.
fn steps<'p>(patch: &'p Patch, files: &[FileReport]) -> Vec<&'p [FilePatch]> {
    let mut steps = Vec::new();
    let mut left = files;
    for commit in patch.commits() {
        let (own, rest) = left.split_at(commit.len().min(left.len()));
        left = rest;
        let mut begin = 0;
        if !commit.iter().any(moves) {
            let mut seen = BTreeSet::new();
            for (at, report) in own.iter().enumerate() {
                if !seen.insert(&report.path) {
                    steps.push(&commit[begin..at]);
                    begin = at;
                    seen = BTreeSet::from([&report.path]);
                }
            }
        }
        steps.push(&commit[begin..]);
    }
    steps
}

/// The patch with what was made of its file patches. A commit that has landed whole takes
/// its prose along, from its mail's head to the signature.
fn with_prose(patch: &Patch, made: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut out = Mails::default();
    let mut begin = 0;
    for commit in patch.commits() {
        let end = begin + commit.len();
        if made[begin..end].iter().any(Option::is_some) {
            for (at, (file, made)) in (begin..).zip(commit.iter().zip(&made[begin..end])) {
                match made {
                    _ if at == 0 => out.prose(&file.prose),
                    _ if at == begin => out.prose(file.parted_prose().1),
                    Some(_) => out.prose(&file.prose),
                    None => {}
                }
                out.diff(made.as_deref().unwrap_or_default());
            }
            let next = patch.files.get(end).map(|next| next.parted_prose().0);
            out.prose(next.unwrap_or(&patch.trailer));
        }
        begin = end;
    }
    out.into_bytes()
}

/// A file patch alone, without its prose, made for the target; nothing where it has
/// landed.
pub(super) fn part(
    file: &FilePatch,
    report: &FileReport,
    hunks: &[HunkReport],
    around: &Around<'_, '_>,
) -> Result<Vec<u8>, ReadError> {
    let Some(printed) = remake_file(file, report, hunks, around)? else { return Ok(Vec::new()) };
    let from = report.from.as_ref().unwrap_or(&report.path);
    let paths = [from, &report.path];
    if let Some(laid) = laid(&printed, around)
        && is_after(&laid, paths, around)?
    {
        return Ok(printed);
    }
    let mut plain = Vec::new();
    for path in if paths[0] == paths[1] { &paths[1..] } else { &paths[..] } {
        plain.extend(difference(path, around.before.file(path)?, around.after.file(path)?));
    }
    Ok(plain)
}

fn moves(file: &FilePatch) -> bool {
    matches!(file.operation, Operation::Rename | Operation::Copy)
}

/// Whether these files are as they are after.
fn is_after<'p>(
    laid: &Snapshot<'_>,
    paths: impl IntoIterator<Item = &'p TreePath>,
    around: &Around<'_, '_>,
) -> Result<bool, ReadError> {
    for path in paths {
        if laid.file(path)? != around.after.file(path)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One file's part, without its prose; nothing where it has landed.
fn remake_file(
    file: &FilePatch,
    report: &FileReport,
    hunks: &[HunkReport],
    around: &Around<'_, '_>,
) -> Result<Option<Vec<u8>>, ReadError> {
    let whole = || {
        let file = FilePatch { prose: Vec::new(), ..file.clone() };
        Patch { files: vec![file], trailer: Vec::new() }.to_bytes()
    };
    let landed = |h: &HunkReport| h.class == HunkClass::Landed;
    if file.operation != Operation::Modify {
        if report.class == HunkClass::Landed && hunks.iter().all(landed) {
            return Ok(None);
        }
        let exact = hunks.iter().all(|h| h.class == HunkClass::Exact);
        let from = report.from.as_ref().filter(|_| moves(file) && !exact);
        let before = from.map(|from| around.before.file(from)).transpose()?.flatten();
        let after = around.after.file(&report.path)?;
        return Ok(Some(match (from, before, after) {
            (Some(from), Some(before), Some(after)) => {
                let paths = [from, &report.path];
                moved(file.operation, paths, &before, &after)
            }
            _ => whole(),
        }));
    }
    let Body::Text(made) = &file.body else {
        return Ok((report.class != HunkClass::Landed).then(whole));
    };
    let mode_changes = file.new_mode.is_some() && file.old_mode != file.new_mode;
    if hunks.iter().all(landed) && (!mode_changes || report.class == HunkClass::Landed) {
        return Ok(None);
    }
    if report.class == HunkClass::Exact && hunks.iter().all(|h| h.class == HunkClass::Exact) {
        return Ok(Some(whole()));
    }
    let then = report.from.as_ref().unwrap_or(&report.path);
    let (Some(base), Some(before), Some(after)) = (
        around.base.file(then)?,
        around.before.file(&report.path)?,
        around.after.file(&report.path)?,
    ) else {
        return Ok(Some(whole()));
    };
    let (base_lines, now) = (lines(&base.bytes), lines(&before.bytes));
    let mut edits: Vec<Edit> = place_mapped(made, &base_lines, &now, Language::of(then))
        .into_iter()
        .flatten()
        .filter(|p| p.class != HunkClass::Landed)
        .flat_map(|p| p.edits)
        .collect();
    edits.sort_by_key(|e| (e.range.start, e.range.end));
    let mut printed = refreshed(file, report, &before, &after);
    printed.extend(text::hunks(&now, &edits));
    Ok(Some(printed))
}

/// The header with the names and blob ids of the new base.
fn refreshed(file: &FilePatch, report: &FileReport, before: &File, after: &File) -> Vec<u8> {
    let renamed = report.from.is_some();
    let mut out = Vec::new();
    for line in lines(&file.header) {
        if let (true, Some((old, _))) = (line.starts_with(b"index "), &file.index) {
            let mode = line.trim_ascii_end().rsplit(|b| *b == b' ').next();
            let mode = mode.filter(|m| m.len() == 6 && m.iter().all(u8::is_ascii_digit));
            let mode = mode.map(|m| String::from_utf8_lossy(m).into_owned());
            let fresh = text::index_line(&before.bytes, &after.bytes, old.len(), mode.as_deref());
            out.extend(fresh.into_bytes());
        } else if renamed && line.starts_with(b"diff --git ") {
            out.extend(text::git_line([report.path.as_str(); 2]).into_bytes());
        } else if renamed && line.starts_with(b"--- ") {
            out.extend(text::named("---", Some(&format!("a/{}", report.path))).into_bytes());
        } else if renamed && line.starts_with(b"+++ ") {
            out.extend(text::named("+++", Some(&format!("b/{}", report.path))).into_bytes());
        } else {
            out.extend_from_slice(line);
        }
    }
    out
}

/// Whether a patch, laid on the target before, gives the target after.
fn gives(bytes: &[u8], around: &Around<'_, '_>) -> Result<bool, ReadError> {
    let Some(laid) = laid(bytes, around) else { return Ok(false) };
    is_after(&laid, laid.edits().keys().chain(around.after.edits().keys()), around)
}

/// The target before, with a patch laid on it at the very places it states; nothing
/// where it does not hold there.
fn laid<'t>(bytes: &[u8], around: &Around<'_, 't>) -> Option<Snapshot<'t>> {
    let parsed = patch::parse(bytes).ok()?;
    let mut ground = Ground { target: around.before.clone(), base: Some(around.before.clone()) };
    let report = ground.apply("", &parsed, STRIP).ok()?;
    report.is_exact().then_some(ground.target)
}

/// Plain diffs of the files that the file patches are about, each at the first of them:
/// for what the careful way cannot say.
fn plain(files: &[FileReport], around: &Around<'_, '_>) -> Result<Made, ReadError> {
    let mut told = BTreeSet::new();
    let mut made = Vec::new();
    for file in files {
        let mut own = Vec::new();
        for path in file.from.iter().chain([&file.path]).filter(|path| told.insert(*path)) {
            own.extend(difference(path, around.before.file(path)?, around.after.file(path)?));
        }
        made.push(Some(own));
    }
    Ok(made)
}

/// The move of a file to another name, and what changes in it, as a git patch.
pub(super) fn moved(
    operation: Operation,
    [from, to]: [&TreePath; 2],
    before: &File,
    after: &File,
) -> Vec<u8> {
    let verb = if operation == Operation::Copy { "copy" } else { "rename" };
    let mut out = text::git_line([from.as_str(), to.as_str()]);
    if before.mode != after.mode {
        let (old, new) = (before.mode.as_str(), after.mode.as_str());
        out.push_str(&format!("old mode {old}\nnew mode {new}\n"));
    }
    let (old, new) = (quoted(from.as_str()), quoted(to.as_str()));
    out.push_str(&format!("{verb} from {old}\n{verb} to {new}\n"));
    let mut out = out.into_bytes();
    if before.bytes != after.bytes {
        let names = [Some(from.as_str()), Some(to.as_str())];
        out.extend(text::content(names, [&before.bytes, &after.bytes], None));
    }
    out
}

/// The change of one file as a git patch; nothing where there is none. A file that
/// becomes a link, or a link a file, goes and comes anew, as git writes it.
pub(super) fn difference(path: &TreePath, before: Option<File>, after: Option<File>) -> Vec<u8> {
    if before == after {
        return Vec::new();
    }
    let kind = |f: &Option<File>| f.as_ref().map(|f| f.mode.kind());
    if before.is_some() && after.is_some() && kind(&before) != kind(&after) {
        return [difference(path, before, None), difference(path, None, after)].concat();
    }
    let mut out = text::git_line([path.as_str(); 2]);
    let mut kept = None;
    match (&before, &after) {
        (Some(then), Some(now)) if then.mode == now.mode => kept = Some(now.mode.as_str()),
        (Some(then), Some(now)) => {
            let (then, now) = (then.mode.as_str(), now.mode.as_str());
            out.push_str(&format!("old mode {then}\nnew mode {now}\n"));
        }
        (None, Some(now)) => out.push_str(&format!("new file mode {}\n", now.mode.as_str())),
        (Some(then), None) => out.push_str(&format!("deleted file mode {}\n", then.mode.as_str())),
        (None, None) => return Vec::new(),
    }
    let bytes = |f: &Option<File>| f.as_ref().map(|f| f.bytes.clone());
    let (old, new) = (bytes(&before), bytes(&after));
    let mut out = out.into_bytes();
    if old != new {
        let names = [&old, &new].map(|side| side.as_ref().map(|_| path.as_str()));
        let sides = [&old, &new].map(|side| side.as_deref().unwrap_or_default());
        out.extend(text::content(names, sides, kept));
    }
    out
}
