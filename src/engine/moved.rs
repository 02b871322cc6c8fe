//! Where a file went that is no longer under its name.

use std::collections::HashMap;

use crate::merge::lines;
use crate::snapshot::{File, ReadError, Tree, TreePath};

/// The least share of a file's lines that must be kept for it to count as the
/// same file under another name; git's own default.
const LEAST_SHARE: f64 = 0.5;

/// The new name of a file that the tree `then` has and `now` has not: among the
/// files that are new in `now`, the one that shares most lines with it. Nothing
/// where none shares half of them, or two share as many: a rename is followed,
/// not guessed.
///
/// # Errors
/// A file cannot be read.
pub fn find_moved(
    path: &TreePath,
    file: &File,
    then: &dyn Tree,
    now: &dyn Tree,
) -> Result<Option<TreePath>, ReadError> {
    let extension = |p: &TreePath| p.as_str().rsplit_once('.').map(|(_, e)| e.to_string());
    let mut best: Vec<(f64, TreePath)> = Vec::new();
    for candidate in now.paths() {
        let new = then.mode(&candidate).is_none() && extension(&candidate) == extension(path);
        if !new || now.mode(&candidate) != Some(file.mode) {
            continue;
        }
        let Some(other) = now.file(&candidate)? else { continue };
        let share = share(&file.bytes, &other.bytes);
        if share >= LEAST_SHARE && best.first().is_none_or(|(most, _)| share >= *most) {
            best.retain(|(most, _)| *most >= share);
            best.push((share, candidate));
        }
    }
    Ok(if best.len() == 1 { best.pop().map(|(_, path)| path) } else { None })
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
