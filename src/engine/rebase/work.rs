//! The files that a person must finish, in the work folder and beside it.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::locate::without_line_end;
use crate::patch::Operation;
use crate::snapshot::{File, Mode, TreePath};

use super::publish::{io, with_draft, write};
use super::session::FOLDER;
use super::{Part, RebaseError, Shown, Unfinished, Versions, remake};

pub(super) const WORK: &str = "work";
pub(super) const SIDES: &str = "sides";
const LINK: &str = "a symbolic link";

/// What stands where a file should and is none.
pub(super) fn no_file(meta: &fs::Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_symlink() => Some(LINK),
        () if kind.is_dir() => Some("a folder"),
        () => Some("no file"),
    }
}

/// What was in the way of taking a person's files over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// A marker is left.
    Marker {
        /// The file.
        path: PathBuf,
        /// Its 1-based line.
        line: usize,
    },
    /// The files are upstream's: nothing of the entry is left.
    Nothing,
    /// A file is not there, and the entry does not delete it. It was written
    /// again.
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The work folder was not there. It was written again.
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A file is as it was written, and the entry does not hold in it.
    Untouched {
        /// The file.
        path: PathBuf,
        /// The entry deletes it.
        deleted: bool,
    },
    /// Nothing stands where a file should that cannot be merged: which of the sides, or
    /// what else, is open.
    Unchosen {
        /// The file.
        path: PathBuf,
        /// What stands of it on the sides, by their names.
        sides: Vec<(&'static str, PathBuf)>,
    },
    /// Upstream has a folder in the place of the entry's file, or a file in that of its
    /// folder, and which is wanted is open.
    Clash {
        /// The entry's file, in the work folder.
        path: PathBuf,
        /// What upstream has.
        upstream: PathBuf,
        /// The entry's file, beside the work folder.
        entry: PathBuf,
    },
    /// What stands there is no file, and was not looked into.
    NoFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Files in the work folder are none of the entry's: they would be lost.
    Unlisted {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// The rule is as it was, and did not fit.
    SameRule {
        /// The file.
        path: PathBuf,
    },
}

/// The folder with the files a person must finish.
#[must_use]
pub fn work_folder(root: &Path) -> PathBuf {
    root.join(FOLDER).join(WORK)
}

/// The folder with what stands on either side of the files that cannot be merged; it is
/// there only where there are such.
#[must_use]
pub fn sides_folder(root: &Path) -> PathBuf {
    root.join(FOLDER).join(SIDES)
}

/// The path of a file a person must finish, as the project sees it.
#[must_use]
pub fn work_path(root: &Path, file: &TreePath) -> PathBuf {
    work_folder(root).join(file.as_str())
}

/// The files in the work folder that are none of those listed, where there
/// are any.
pub(super) fn unlisted<'p>(
    root: &Path,
    listed: impl IntoIterator<Item = &'p TreePath>,
) -> Result<Option<Unresolved>, RebaseError> {
    let paths = strays(root, listed)?;
    Ok((!paths.is_empty()).then_some(Unresolved::Unlisted { paths }))
}

/// The files in the work folder that are none of those listed.
pub(super) fn strays<'p>(
    root: &Path,
    listed: impl IntoIterator<Item = &'p TreePath>,
) -> Result<Vec<PathBuf>, RebaseError> {
    let listed: Vec<PathBuf> =
        listed.into_iter().flat_map(|path| with_draft(&work_path(root, path))).collect();
    let mut paths = files_in(work_folder(root))?;
    paths.retain(|path| !listed.contains(path));
    Ok(paths)
}

/// All in the rebase's folder that is neither one of its own items by name nor, in the
/// work folder or beside it, one of these files.
pub(super) fn strangers(
    root: &Path,
    files: &[TreePath],
    own: &[&str],
) -> Result<Vec<PathBuf>, RebaseError> {
    let folder = root.join(FOLDER);
    let own: Vec<PathBuf> = own.iter().flat_map(|name| with_draft(&folder.join(name))).collect();
    let sides = sides_folder(root);
    let beside = files.iter().flat_map(|path| {
        let side = |(name, _)| with_draft(&sides.join(name).join(path.as_str()));
        Versions::default().named().map(side).concat()
    });
    let beside: Vec<PathBuf> = beside.collect();
    let mut found = strays(root, files)?;
    found.extend(files_in(sides.clone())?.into_iter().filter(|path| !beside.contains(path)));
    for path in items_of(&folder)? {
        let holds_own = path.is_dir() && (path == sides || path == work_folder(root));
        if !holds_own && !own.contains(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What lies beside the work folder and was not put there so: it would be lost too.
pub(super) fn changed_sides(
    root: &Path,
    parts: &[Part],
) -> Result<Option<Unresolved>, RebaseError> {
    let written: Vec<(PathBuf, &File)> = in_work(parts)
        .filter_map(|file| match &file.shown {
            Shown::Sides(versions) => Some(sides(&sides_folder(root), &file.path, versions)),
            Shown::Merged(_) => None,
        })
        .flatten()
        .map(|(_, path, file)| (path, file))
        .collect();
    let is_as_written = |found: &PathBuf| {
        written.iter().any(|(path, file)| {
            let [whole, draft] = with_draft(path);
            *found == draft || *found == whole && stands(found, file)
        })
    };
    let mut paths = files_in(sides_folder(root))?;
    paths.retain(|path| !is_as_written(path));
    Ok((!paths.is_empty()).then_some(Unresolved::Unlisted { paths }))
}

/// Whether a file's bytes, or where a link leads to, are these.
fn stands(path: &Path, file: &File) -> bool {
    match fs::read_link(path) {
        Ok(target) => file.mode == Mode::Symlink && target.as_os_str().as_bytes() == &*file.bytes,
        Err(_) => fs::read(path).is_ok_and(|bytes| bytes[..] == file.bytes[..]),
    }
}

/// All that is no folder below a folder, in order.
fn files_in(folder: PathBuf) -> Result<Vec<PathBuf>, RebaseError> {
    let mut paths = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for path in items_of(&folder)? {
            let meta = fs::symlink_metadata(&path).map_err(io(&path, "cannot be looked at"))?;
            if meta.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.sort();
    Ok(paths)
}

/// What a folder holds; nothing where it is not there.
fn items_of(folder: &Path) -> Result<Vec<PathBuf>, RebaseError> {
    let cannot = || io(folder, "cannot be listed");
    let items = match fs::read_dir(folder) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        items => items.map_err(cannot())?,
    };
    items.map(|item| Ok(item.map_err(cannot())?.path())).collect()
}

/// The files among the parts of an entry.
pub(super) fn in_work(parts: &[Part]) -> impl Iterator<Item = &Unfinished> {
    parts.iter().filter_map(|part| match part {
        Part::Work(file) => Some(file),
        Part::Kept(_) | Part::Step { .. } | Part::Prose(_) => None,
    })
}

/// What a person made of a file, as a patch of the target.
pub(super) fn change(file: &Unfinished, now: Option<File>) -> Vec<u8> {
    let mut patch = match (&file.from, &file.before, now) {
        (Some(from), Some(before), Some(now)) if before.mode.kind() != now.mode.kind() => [
            remake::difference(from, Some(before.clone()), None),
            remake::difference(&file.path, None, Some(now)),
        ]
        .concat(),
        (Some(from), Some(before), Some(now)) => {
            remake::moved(Operation::Rename, [from, &file.path], before, &now)
        }
        // What is not moved after all stays where it is.
        (Some(_), _, None) => Vec::new(),
        (_, before, now) => remake::difference(&file.path, before.clone(), now),
    };
    if let Some((path, gone)) = &file.gone {
        patch.extend(remake::difference(path, Some(gone.clone()), None));
    }
    patch
}

/// Writes a file for a person to finish, or what stands of it on the sides, below the
/// folder that has both.
pub(super) fn write_work(folder: &Path, file: &Unfinished) -> Result<(), RebaseError> {
    match &file.shown {
        Shown::Merged(marked) => {
            let text = File::new(plain(marked.mode), marked.bytes.clone());
            write_file(&folder.join(WORK).join(file.path.as_str()), &text)
        }
        Shown::Sides(versions) => sides(&folder.join(SIDES), &file.path, versions)
            .try_for_each(|(_, path, file)| write_file(&path, file)),
    }
}

/// The mode of a file that shows one of this mode as text.
fn plain(mode: Mode) -> Mode {
    if mode == Mode::Executable { mode } else { Mode::Regular }
}

/// Where each side of a file lies in their folder, with its name.
pub(super) fn sides<'v>(
    folder: &Path,
    path: &TreePath,
    versions: &'v Versions,
) -> impl Iterator<Item = (&'static str, PathBuf, &'v File)> + use<'v> {
    let (folder, path) = (folder.to_path_buf(), path.clone());
    versions.named().into_iter().filter_map(move |(name, file)| {
        // A submodule has no bytes.
        let file = file.filter(|f| f.mode != Mode::Submodule)?;
        Some((name, folder.join(name).join(path.as_str()), file))
    })
}

fn write_file(path: &Path, file: &File) -> Result<(), RebaseError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(io(folder, "cannot be made"))?;
    if file.mode == Mode::Symlink {
        let _ = fs::remove_file(path);
        let target = Path::new(OsStr::from_bytes(&file.bytes));
        return symlink(target, path).map_err(io(path, "cannot be made a link"));
    }
    write(path, &file.bytes)?;
    if file.mode == Mode::Executable {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path, mode).map_err(io(path, "cannot be made executable"))?;
    }
    Ok(())
}

/// A person's file, or what stands there that is none. What the work folder shows of a
/// mode is whether it can be run; the text of a link ends with no line end, whatever an
/// editor puts there.
pub(super) fn finished(
    path: &Path,
    file: &Unfinished,
) -> Result<Result<Option<File>, &'static str>, RebaseError> {
    let cannot = || io(path, "cannot be read");
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Ok(None));
        }
        Err(e) => return Err(cannot()(e)),
    };
    let as_link = matches!(&file.shown, Shown::Merged(marked) if marked.mode == Mode::Symlink);
    if meta.is_symlink() {
        let may = as_link || matches!(&file.shown, Shown::Sides(sides) if sides.have_link());
        if !may {
            return Ok(Err(LINK));
        }
        let target = fs::read_link(path).map_err(cannot())?;
        return Ok(Ok(Some(File::new(Mode::Symlink, target.as_os_str().as_bytes()))));
    }
    if let Some(what) = no_file(&meta) {
        return Ok(Err(what));
    }
    let mut bytes = fs::read(path).map_err(cannot())?;
    if as_link {
        bytes.truncate(without_line_end(&bytes).len());
    }
    let runs = meta.permissions().mode() & 0o100 != 0;
    let mode = match &file.shown {
        _ if as_link => Mode::Symlink,
        Shown::Merged(marked) if marked.mode == Mode::Submodule => Mode::Submodule,
        _ if runs => Mode::Executable,
        _ => Mode::Regular,
    };
    Ok(Ok(Some(File::new(mode, bytes))))
}
