//! Writing the new pin: a folder, the old pin's kept facts, and `mlx-pin.toml`,
//! in this order. Only the last rename makes it so; what a kill leaves before
//! that is taken away by the next run.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, value};
use walkdir::WalkDir;

use crate::drift::{State, judge};
use crate::listing::Listing;
use crate::pin::{PIN_FILE, Project, folder, kept_file};
use crate::report::HunkClass;
use crate::series::{Change, SERIES_FILE, Series};
use crate::snapshot::{ObjectId, Tree, TreePath};

use super::plan::new_patches;
use super::{Plan, RebaseError, series_text};

/// The facts of the pin to move to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPin {
    /// The commit.
    pub commit: ObjectId,
    /// The day of the commit, `YYYY-MM-DD`.
    pub date: String,
    /// Its files.
    pub listing: Listing,
}

/// The file that states MLX's version.
const VERSION_FILE: &str = "mlx/version.h";
const LISTING: &str = "listing";

/// Writes the series of a whole plan for the new pin, checks it, and moves the
/// pin. Gives the new folder.
///
/// # Errors
/// The new series is not what it must be, or a file cannot be written. The
/// project is then as it was, but for what `clear` takes away.
pub fn publish(
    project: &Project,
    series: &Series,
    plan: &Plan,
    new: &NewPin,
    target: &dyn Tree,
) -> Result<PathBuf, RebaseError> {
    let place = folder(&project.root, new.commit);
    let aside = aside(&place);
    remove(&aside)?;
    fs::create_dir_all(&aside).map_err(io(&aside, "cannot be made"))?;
    write_folder(&aside, series, plan, new)?;
    check(&aside, target, new.commit)?;
    let pin_file = pin_file(&project.root);
    let old = fs::read(&pin_file).map_err(io(&pin_file, "cannot be read"))?;
    let facts = facts(&old, &pin_file, new, target)?;
    fs::rename(&aside, &place).map_err(io(&place, "cannot be put in place"))?;
    sync_folder(&place);
    write(&kept_file(&project.root, project.current.commit), &old)?;
    write(&pin_file, facts.as_bytes())?;
    Ok(place)
}

/// Fails where the target's folder is there already: a person's, or an earlier
/// rebase's.
///
/// # Errors
/// It is.
pub(super) fn require_free(root: &Path, to: ObjectId) -> Result<(), RebaseError> {
    let patches = root.join(crate::pin::PATCHES).canonicalize();
    if patches.is_ok_and(|patches| pin_file(root).starts_with(patches)) {
        let what = "it is a link to where the series are, and a rebase writes old and new facts \
                    there; put the file itself in its place";
        return Err(RebaseError::State { path: root.join(PIN_FILE), what: what.into() });
    }
    let place = folder(root, to);
    let ways = [
        (aside(&place), "it is in the way of the new folder, which is written there; move it away"),
        (place, "it is there already; move it away, or name it in mlx-pin.toml"),
    ];
    match ways.into_iter().find(|(path, _)| fs::symlink_metadata(path).is_ok()) {
        Some((path, what)) => Err(RebaseError::State { path, what: what.into() }),
        None => Ok(()),
    }
}

/// Puts the old pin's facts back in place, as they were kept.
///
/// # Errors
/// They cannot be read or written.
pub(super) fn restore(root: &Path, from: ObjectId) -> Result<(), RebaseError> {
    let kept = kept_file(root, from);
    let facts = fs::read(&kept).map_err(io(&kept, "cannot be read"))?;
    write(&pin_file(root), &facts)
}

/// Where the facts of the current pin are: a link stays one, and what it leads to is written.
fn pin_file(root: &Path) -> PathBuf {
    let file = root.join(PIN_FILE);
    let is_link = file.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    let behind = is_link.then(|| file.canonicalize().ok()).flatten();
    behind.unwrap_or(file)
}

/// Takes away what a publication that was stopped left, where the pin has not
/// moved.
///
/// # Errors
/// It cannot be removed, or a person put a file into the new folder.
pub(super) fn clear(root: &Path, from: ObjectId, to: ObjectId) -> Result<(), RebaseError> {
    let place = folder(root, to);
    // Each patch keeps its file's name.
    let names: BTreeSet<_> = WalkDir::new(folder(root, from))
        .into_iter()
        .filter_map(|item| Some(item.ok()?.file_name().to_owned()))
        .chain([SERIES_FILE.into(), LISTING.into()])
        .collect();
    for item in fs::read_dir(&place).into_iter().flatten().filter_map(Result::ok) {
        if !names.contains(&item.file_name()) {
            let what = "the rebase did not put it there, and with the new folder it would be lost; \
                        move it away, then say it again";
            return Err(RebaseError::State { path: item.path(), what: what.into() });
        }
    }
    remove(&aside(&place))?;
    remove(&place)?;
    let [kept, draft] = with_draft(&kept_file(root, from));
    let [_, pin_draft] = with_draft(&pin_file(root));
    for path in [kept, draft, pin_draft] {
        match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(io(&path, "cannot be removed")(e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where the new folder is written before it is whole.
fn aside(place: &Path) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    place.with_file_name(format!(".{name}.overlay"))
}

fn write_folder(dir: &Path, series: &Series, plan: &Plan, new: &NewPin) -> Result<(), RebaseError> {
    for (entry, planned) in series.entries.iter().zip(&plan.entries) {
        let Change::Patch { path, bytes } = &entry.change else { continue };
        if planned.outcome.stays() {
            let name = path.file_name().unwrap_or_default();
            write(&dir.join(name), planned.patch.as_deref().unwrap_or(bytes))?;
        }
    }
    let source = series.folder.join(SERIES_FILE);
    let old = fs::read_to_string(&source).map_err(io(&source, "cannot be read"))?;
    let patches = new_patches(series, &plan.entries)?;
    let patches: Vec<_> = patches.iter().map(|(n, p)| (*n, p)).collect();
    let notes = series_text::notes(&series.contracts.note, &patches, &plan.entries);
    let text = series_text::rewritten(&old, plan, &notes, &new.commit.to_string())?;
    write(&dir.join(SERIES_FILE), text.as_bytes())?;
    write(&dir.join(LISTING), new.listing.to_text().as_bytes())
}

/// Reads the new folder as `apply` will, and lays it on the target: every place
/// must be exact and every contract must hold without being accepted.
fn check(dir: &Path, target: &dyn Tree, commit: ObjectId) -> Result<(), RebaseError> {
    let wrong = |what: String| RebaseError::Check { what };
    let series =
        Series::load_folder(dir, &[]).map_err(|e| wrong(format!("it cannot be read: {e}")))?;
    let found = judge(&series, target, target, &commit.to_string())?;
    for (item, state) in found.states() {
        if state.needs_person() || matches!(state, State::Class(c) if c != HunkClass::Exact) {
            let why = found.why(&item).map(|w| format!(" ({w})")).unwrap_or_default();
            return Err(wrong(format!("{item} is {state} at its own pin{why}")));
        }
    }
    if let Some(odd) = found.contracts.iter().find(|v| v.found.is_some()) {
        let (kind, name) = (odd.kind.as_str(), &odd.name);
        return Err(wrong(format!("{kind} {name} does not hold at its own pin ({})", odd.what)));
    }
    Ok(())
}

/// `mlx-pin.toml` for the new pin. Released trees stay where they need no
/// bridge: each of their files counts only where its blob id is the listing's.
fn facts(old: &[u8], file: &Path, new: &NewPin, target: &dyn Tree) -> Result<String, RebaseError> {
    let wrong = |what: &str| RebaseError::State { path: file.to_path_buf(), what: what.into() };
    let text = std::str::from_utf8(old).map_err(|_| wrong("it is not UTF-8"))?;
    let mut document: DocumentMut = text.parse().map_err(|_| wrong("it is no TOML"))?;
    document["commit"] = value(new.commit.to_string());
    document["tree"] = value(new.listing.tree_id().to_string());
    document["version"] = value(version(target)?);
    let date: toml_edit::Datetime = new.date.parse().map_err(|_| wrong("the date is no day"))?;
    document["date"] = value(date);
    let short = &new.commit.to_string()[..crate::pin::PIN_DIGITS];
    document["listing"] = value(format!("{}/{short}/{LISTING}", crate::pin::PATCHES));
    if let Some(array) = document.get_mut("snapshot").and_then(Item::as_array_of_tables_mut) {
        let mut at = 0;
        while at < array.len() {
            if array.get(at).is_some_and(|t| t.contains_key("bridge")) {
                array.remove(at);
            } else {
                at += 1;
            }
        }
        if array.is_empty() {
            document.remove("snapshot");
        }
    }
    Ok(document.to_string())
}

/// The version that the target's header states.
fn version(target: &dyn Tree) -> Result<String, RebaseError> {
    let path = TreePath::new(VERSION_FILE).expect("a plain path");
    let text = target.file(&path)?.map(|f| f.bytes.to_vec()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let part = |name: &str| {
        let line = text.lines().find(|l| l.split_whitespace().nth(1) == Some(name))?;
        line.split_whitespace().nth(2)
    };
    let parts = ["MLX_VERSION_MAJOR", "MLX_VERSION_MINOR", "MLX_VERSION_PATCH"].map(part);
    Ok(match parts {
        [Some(major), Some(minor), Some(patch)] => format!("{major}.{minor}.{patch}"),
        _ => "unknown".into(),
    })
}

pub(super) fn io(
    path: &Path,
    doing: &'static str,
) -> impl FnOnce(std::io::Error) -> RebaseError + use<> {
    let path = path.to_path_buf();
    move |source| RebaseError::Io { path, doing, source }
}

/// A file, and where it is written first.
pub(super) fn with_draft(path: &Path) -> [PathBuf; 2] {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    [path.to_path_buf(), path.with_file_name(format!(".{name}.new"))]
}

/// Writes a file whole: aside, to the disk, renamed.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), RebaseError> {
    let [_, draft] = with_draft(path);
    let failed = |doing| io(path, doing);
    let mut file = fs::File::create(&draft).map_err(failed("cannot be written"))?;
    file.write_all(bytes).map_err(failed("cannot be written"))?;
    file.sync_all().map_err(failed("cannot be written to the disk"))?;
    drop(file);
    fs::rename(&draft, path).map_err(failed("cannot be put in place"))?;
    if let Some(parent) = path.parent() {
        sync_folder(parent);
    }
    Ok(())
}

/// Not every file system can do this, and none loses the rename's order for it.
fn sync_folder(path: &Path) {
    if let Ok(folder) = fs::File::open(path) {
        let _ = folder.sync_all();
    }
}

pub(super) fn remove(path: &Path) -> Result<(), RebaseError> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io(path, "cannot be removed")(e)),
        _ => Ok(()),
    }
}
