//! Where a file went that is no longer under its name.

use std::collections::HashMap;

use crate::merge::lines;
use crate::snapshot::{File, Mode, ObjectId, ReadError, Tree, TreePath};

/// The least share of a file's lines that must be kept for it to count as the
/// same file under another name; git's own default.
const LEAST_SHARE: f64 = 0.5;

/// The new name of a file that the tree `then` has and `now` has not: nothing where none
/// is likely, or two are equally so: a rename is followed, not guessed.
///
/// # Errors
/// A file cannot be read.
pub fn find_moved(
    path: &TreePath,
    file: &File,
    then: &dyn Tree,
    now: &dyn Tree,
) -> Result<Option<TreePath>, ReadError> {
    Ok(only(alike(path, file, (then, now), Others::Same)?))
}

/// As [`find_moved`], of a file that is to be deleted: [`likely`], where one is.
///
/// # Errors
/// A file cannot be read.
pub fn find_kept(
    path: &TreePath,
    file: &File,
    then: &dyn Tree,
    now: &dyn Tree,
) -> Result<Option<TreePath>, ReadError> {
    Ok(only(likely(path, file, then, now)?))
}

fn only(mut names: Vec<TreePath>) -> Option<TreePath> {
    if names.len() == 1 { names.pop() } else { None }
}

/// The likeliest new names of such a file that is to be deleted: those of the files new in
/// `now` and of its kind that share most lines with it, and half of them at least, whatever
/// their extension. What upstream still has under any name is not gone.
///
/// # Errors
/// A file cannot be read.
pub fn likely(
    path: &TreePath,
    file: &File,
    then: &dyn Tree,
    now: &dyn Tree,
) -> Result<Vec<TreePath>, ReadError> {
    alike(path, file, (then, now), Others::Alike)
}

/// Which files with another extension count.
#[derive(Clone, Copy)]
enum Others {
    /// Those of the very bytes.
    Same,
    /// Those that share lines enough.
    Alike,
}

/// The files that are new in the second tree and share most lines with one of the first.
fn alike(
    path: &TreePath,
    file: &File,
    (then, now): (&dyn Tree, &dyn Tree),
    which: Others,
) -> Result<Vec<TreePath>, ReadError> {
    let extension = |p: &TreePath| p.as_str().rsplit_once('.').map(|(_, e)| e.to_string());
    let kind = Some(file.mode.kind());
    let is_new = |p: &TreePath| then.mode(p).is_none() && now.mode(p).map(Mode::kind) == kind;
    let (alike, others): (Vec<TreePath>, Vec<TreePath>) =
        now.paths().into_iter().filter(is_new).partition(|p| extension(p) == extension(path));
    let mut best: Vec<(f64, TreePath)> = Vec::new();
    let mut see = |share: f64, candidate: TreePath| {
        if share >= LEAST_SHARE && best.first().is_none_or(|(most, _)| share >= *most) {
            best.retain(|(most, _)| *most >= share);
            best.push((share, candidate));
        }
    };
    for candidate in alike {
        let Some(other) = now.file(&candidate)? else { continue };
        see(share(&file.bytes, &other.bytes), candidate);
    }
    let own = ObjectId::of_blob(&file.bytes);
    for candidate in others {
        // Of a whole tree hardly any file is the one: most are told by their ids alone.
        let is_other = || now.id(&candidate).is_some_and(|id| id != own);
        if matches!(which, Others::Same) && is_other() {
            continue;
        }
        let Some(other) = now.file(&candidate)? else { continue };
        if matches!(which, Others::Alike) || other.bytes == file.bytes {
            see(share(&file.bytes, &other.bytes), candidate);
        }
    }
    Ok(best.into_iter().map(|(_, path)| path).collect())
}

/// The share of the larger text's lines that both have, blank ones left out.
fn share(one: &[u8], other: &[u8]) -> f64 {
    let mut counts: HashMap<&[u8], isize> = HashMap::new();
    let solid = |text| lines(text).into_iter().filter(|l| !l.trim_ascii().is_empty());
    let (mut total, mut others, mut common) = (0usize, 0usize, 0usize);
    for line in solid(one) {
        total += 1;
        *counts.entry(line).or_default() += 1;
    }
    for line in solid(other) {
        others += 1;
        let left = counts.entry(line).or_default();
        *left -= 1;
        common += usize::from(*left >= 0);
    }
    let larger = total.max(others);
    if larger == 0 { 0.0 } else { count(common) / count(larger) }
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::MemoryTree;

    const LINES: &str = "one\ntwo\nthree\nfour\n";

    fn names(which: Others, new: &[(&str, Mode, &str)]) -> Vec<String> {
        let path = |name: &str| TreePath::new(name).expect("plain");
        let tree = |files: &[(&str, Mode, &str)]| {
            let file = |(name, mode, text): &(&str, Mode, &str)| {
                (path(name), File::new(*mode, text.as_bytes()))
            };
            MemoryTree(files.iter().map(file).collect())
        };
        let then = [("a.cpp", Mode::Regular, LINES)];
        let file = File::new(Mode::Regular, LINES.as_bytes());
        let (then, now) = (tree(&then), tree(new));
        let likely = alike(&path("a.cpp"), &file, (&then, &now), which).expect("memory");
        likely.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_is_known_by_its_lines_and_by_its_bytes_whatever_its_extension() {
        let changed = LINES.replace("four", "4");
        let names = |new: &[_]| names(Others::Same, new);
        assert_eq!(names(&[("z.cpp", Mode::Executable, LINES)]), ["z.cpp"]);
        assert_eq!(names(&[("z.cpp", Mode::Regular, &changed)]), ["z.cpp"]);
        assert_eq!(names(&[("a.cc", Mode::Regular, LINES)]), ["a.cc"]);
        assert_eq!(names(&[("a.cc", Mode::Regular, &changed)]), [""; 0]);
        assert_eq!(names(&[("z.cpp", Mode::Symlink, LINES)]), [""; 0]);
        let both = [("a.cc", Mode::Regular, LINES), ("z.cpp", Mode::Regular, &changed[..])];
        assert_eq!(names(&both), ["a.cc"], "the very bytes");
        let both = [("w.cpp", Mode::Regular, LINES), ("z.cpp", Mode::Regular, LINES)];
        assert_eq!(names(&both), ["w.cpp", "z.cpp"]);
    }

    /// A branch of another kind, pages say, is a thousand files that none of ours became.
    #[test]
    fn where_a_tree_knows_its_ids_no_file_of_another_extension_is_read() {
        struct Named(MemoryTree);
        impl Tree for Named {
            fn file(&self, path: &TreePath) -> Result<Option<File>, ReadError> {
                assert!(!path.as_str().ends_with(".html"), "{path} was read");
                self.0.file(path)
            }
            fn mode(&self, path: &TreePath) -> Option<Mode> {
                self.0.mode(path)
            }
            fn id(&self, path: &TreePath) -> Option<ObjectId> {
                self.0.file(path).ok()?.map(|file| ObjectId::of_blob(&file.bytes))
            }
            fn paths(&self) -> Vec<TreePath> {
                self.0.paths()
            }
        }
        let path = |name: &str| TreePath::new(name).expect("plain");
        let file = |text: &str| File::new(Mode::Regular, text.as_bytes());
        let now = |at| [(path("a.html"), file("<p>")), (path(at), file(LINES))];
        let then = MemoryTree([(path("a.cpp"), file(LINES))].into());
        for at in ["a.cc", "z.cpp"] {
            let now = Named(MemoryTree(now(at).into()));
            let found = find_moved(&path("a.cpp"), &file(LINES), &then, &now).expect("memory");
            assert_eq!(found, Some(path(at)));
        }
    }

    #[test]
    fn a_deleted_file_is_known_by_half_of_its_lines_whatever_its_extension() {
        let names = |new: &[_]| names(Others::Alike, new);
        let (changed, other) = (LINES.replace("four", "4"), LINES.replace("o", "0"));
        assert_eq!(names(&[("a.cc", Mode::Regular, &changed)]), ["a.cc"]);
        assert_eq!(names(&[("a", Mode::Regular, &changed)]), ["a"]);
        assert_eq!(names(&[("a.cc", Mode::Regular, &other)]), [""; 0], "less than half");
        let both = [("a.cc", Mode::Regular, &changed[..]), ("z.cpp", Mode::Regular, LINES)];
        assert_eq!(names(&both), ["z.cpp"], "the likeliest");
    }
}
