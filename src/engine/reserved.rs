//! Names that are not a tree's to have: git's own folder at any depth, and what
//! the overlay keeps for itself at the root of a tree.
//!
//! File systems take other names for these: macOS' ignores case and some code
//! points, Windows' drops spaces and dots at the end and what follows a colon,
//! and knows `.git` as `git~1` too. Git refuses them all, on every system, for
//! a tree made on one is checked out on another.

use std::borrow::Cow;

use crate::publish::{EDIT_FOLDER, STAMP};
use crate::snapshot::TreePath;

/// Whether some file system takes this part of a path for `.git`.
#[must_use]
pub fn is_git_folder(part: &str) -> bool {
    let part = folded(part);
    [".git", "git~1"].iter().any(|name| part.eq_ignore_ascii_case(name))
}

/// Whether the overlay keeps the file at `path` for itself, in every tree.
#[must_use]
pub fn is_ours(path: &TreePath) -> bool {
    let first = path.as_str().split('/').next().unwrap_or_default();
    let first = folded(first);
    [STAMP, EDIT_FOLDER].iter().any(|name| first.eq_ignore_ascii_case(name))
}

/// The part as the file systems that fold the most look it up, but for case.
fn folded(part: &str) -> Cow<'_, str> {
    let part = part.split(':').next().unwrap_or_default();
    let end = [' ', '.'];
    // Nothing in ASCII is passed over; a look at a tree reads many such names.
    if part.is_ascii() {
        return part.trim_end_matches(end).into();
    }
    let seen: String = part.chars().filter(|&c| !is_ignored(c)).collect();
    seen.trim_end_matches(end).to_owned().into()
}

/// The code points that HFS+ passes over when it looks a name up.
fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_that_git_refuses_is_gits_folder() {
        // Each of them refused by `git update-index --add --cacheinfo` with
        // `core.protectNTFS` and `core.protectHFS` set.
        for alias in [
            ".git",
            ".GIT",
            ".gIt",
            ".git ",
            ".git.",
            ".git . .",
            ".git::$INDEX_ALLOCATION",
            ".git :x",
            "git~1",
            "GIT~1",
            "git~1 .",
            "git~1:x",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\u{206f}",
            ".G\u{202e}it",
        ] {
            assert!(is_git_folder(alias), "{alias:?}");
        }
        for other in [".gitignore", "git", ".git~1", "git~2", ".github", "x.git", ".git x", "..git"]
        {
            assert!(!is_git_folder(other), "{other:?}");
        }
    }

    #[test]
    fn ours_stand_at_the_root_alone() {
        let is_ours = |name: &str| is_ours(&TreePath::new(name).unwrap());
        assert!(is_ours(STAMP) && is_ours(".OVERLAY-stamp.json ") && is_ours(EDIT_FOLDER));
        assert!(is_ours(".overlay-edit/lock") && is_ours(".overlay-stamp.json/x"));
        assert!(!is_ours("d/.overlay-stamp.json") && !is_ours(".overlay-stamp.json.txt"));
    }
}
