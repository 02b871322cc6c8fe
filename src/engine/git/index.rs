//! Indices of packs that lead libgit2 astray.
//!
//! It dies of an object that is told to begin behind the end of its pack, and never comes
//! to an end of one that is told to stand on itself. Nor does it look at the sum that an
//! index ends with.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

/// What is wrong with the first index that is not as it was written, in these folders of
/// objects. (One of another pack, libgit2 passes over.)
pub(super) fn fault(folders: &[PathBuf]) -> Option<String> {
    folders.iter().find_map(|folder| {
        let items = fs::read_dir(folder.join("pack")).into_iter().flatten();
        let mut paths = items.filter_map(|item| Some(item.ok()?.path()));
        paths.find_map(|path| {
            let is_index = path.extension().is_some_and(|ending| ending == "idx");
            if !is_index && path.file_name()? != "multi-pack-index" {
                return None;
            }
            let index = fs::read(&path).ok()?;
            let (bytes, sum) = index.split_last_chunk::<20>()?;
            let is_read = !is_index || is_of(bytes, &path.with_extension("pack")).ok()?;
            let is_whole = !is_read || Sha1::digest(bytes)[..] == sum[..];
            (!is_whole).then(|| format!("{} has other bytes than were written", path.display()))
        })
    })
}

/// Whether the pack is the one that an index names at its end, whose own sum is left out, and
/// is there to its end.
pub(super) fn is_of(index: &[u8], pack: &Path) -> io::Result<bool> {
    let (mut begin, mut end) = ([0; 4], [0; 20]);
    let mut file = File::open(pack)?;
    file.read_exact(&mut begin)?;
    file.seek(SeekFrom::End(-20))?;
    file.read_exact(&mut end)?;
    Ok(begin == *b"PACK" && index.ends_with(&end))
}
