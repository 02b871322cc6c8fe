//! Bridges: small patches that turn files of a released tree into the pin's.
//!
//! A hunk of a bridge stands exactly where it says or not at all, and what
//! comes out counts only where its blob id is the listing's.

use std::collections::BTreeMap;
use std::path::Path;

use crate::apply::Ground;
use crate::listing::Listing;
use crate::patch::parse;
use crate::report::HunkClass;
use crate::snapshot::{File, MemoryTree, ObjectId, TreePath};
use crate::stored::message;

/// Puts into `files` those of the pin's that the bridge makes, and gives
/// their number.
///
/// # Errors
/// The bridge cannot be read, or not all of it comes out as the pin's; what
/// does is taken all the same.
pub(super) fn cross(
    listing: &Listing,
    released: &MemoryTree,
    bridge: &Path,
    files: &mut BTreeMap<TreePath, File>,
) -> Result<usize, String> {
    let failed = |what: String| format!("{}: {what}", bridge.display());
    let bytes = std::fs::read(bridge).map_err(|e| failed(message(&e)))?;
    let patch = parse(&bytes).map_err(|e| failed(message(&e)))?;
    let mut ground = Ground::alone(released);
    let report =
        ground.apply(&bridge.to_string_lossy(), &patch, 1).map_err(|e| failed(message(&e)))?;
    let before = files.len();
    let mut problems = Vec::new();
    for hunk in report.hunks.iter().filter(|h| h.class != HunkClass::Exact) {
        problems.push(format!(
            "line {}: {} in `{}`",
            hunk.patch_line,
            hunk.class.as_str(),
            hunk.file
        ));
    }
    for (path, made) in ground.target.edits() {
        let id = made.as_ref().map(|file| ObjectId::of_blob(&file.bytes));
        match (made, listing.get(path)) {
            (Some(made), Some(listed)) if id == Some(listed.id) => {
                let proven = File::new(listed.mode, made.bytes.clone());
                files.entry(path.clone()).or_insert(proven);
            }
            _ => problems.push(format!("`{path}` does not come out as the pin's")),
        }
    }
    match problems.is_empty() {
        true => Ok(files.len() - before),
        false => Err(failed(problems.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::Listed;
    use crate::snapshot::Mode;

    const BRIDGE: &str = "--- a/d/x\n+++ b/d/x\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";

    fn crossed(released: &str, pin: &str) -> (Result<usize, String>, BTreeMap<TreePath, File>) {
        let path = TreePath::new("d/x").unwrap();
        let listed = Listed { mode: Mode::Executable, id: ObjectId::of_blob(pin.as_bytes()) };
        let listing: Listing = [(path.clone(), listed)].into_iter().collect();
        let file = File::new(Mode::Regular, released.as_bytes());
        let released = MemoryTree([(path, file)].into_iter().collect());
        let dir = tempfile::tempdir().unwrap();
        let bridge = dir.path().join("bridge.patch");
        std::fs::write(&bridge, BRIDGE).unwrap();
        let mut files = BTreeMap::new();
        (cross(&listing, &released, &bridge, &mut files), files)
    }

    #[test]
    fn what_comes_out_as_the_pins_is_taken_with_the_pins_mode() {
        let (crossed, files) = crossed("one\ntwo\nthree\nfour\n", "one\nzwei\nthree\nfour\n");
        assert_eq!(crossed, Ok(1));
        let file = &files[&TreePath::new("d/x").unwrap()];
        assert_eq!(file.mode, Mode::Executable);
        assert_eq!(&file.bytes[..], b"one\nzwei\nthree\nfour\n");
    }

    #[test]
    fn nothing_else_is() {
        // Applied, and not the pin's; then lines that are elsewhere, or gone.
        for released in ["one\ntwo\nthree\nfive\n", "zero\none\ntwo\nthree\n", "one\n2\nthree\n"] {
            let (crossed, files) = crossed(released, "one\nzwei\nthree\nfour\n");
            let problem = crossed.unwrap_err();
            assert!(problem.contains("bridge.patch: ") && problem.contains("`d/x`"), "{problem}");
            assert!(files.is_empty());
        }
    }
}
