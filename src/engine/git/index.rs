//! Indices of packs that lead libgit2 astray.
//!
//! It does not look whether an object that an index tells of begins within the pack, and
//! dies of one that does not.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

/// What is wrong with the first index that cannot be relied on, in these folders of objects.
/// (One that is no index at all, or of another pack, libgit2 passes over.)
pub(super) fn fault(folders: &[PathBuf]) -> Option<String> {
    folders.iter().find_map(|folder| {
        let items = fs::read_dir(folder.join("pack")).into_iter().flatten();
        let mut paths = items.filter_map(|item| Some(item.ok()?.path()));
        paths.find_map(|path| {
            let fault = match path.file_name()?.to_str()? {
                "multi-pack-index" => {
                    let index = fs::read(&path).ok()?;
                    let (bytes, sum) = index.split_last_chunk::<20>()?;
                    let is_whole = Sha1::digest(bytes)[..] == sum[..];
                    (!is_whole).then_some("has other bytes than were written")
                }
                name if name.ends_with(".idx") => {
                    let (index, pack) = (fs::read(&path).ok()?, path.with_extension("pack"));
                    let leads_out = leads_out(&index, fs::metadata(&pack).ok()?.len())?;
                    let is_read = is_of(index.split_last_chunk::<20>()?.0, &pack).ok()?;
                    (leads_out && is_read)
                        .then_some("tells of an object beyond the end of its pack")
                }
                _ => None,
            };
            Some(format!("{} {}", path.display(), fault?))
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

/// Whether an index tells of an object beyond the end of its pack; nothing where it is no
/// index.
fn leads_out(index: &[u8], pack: u64) -> Option<bool> {
    /// Leads from the table of offsets to that of long ones.
    const LONG: u32 = 1 << 31;
    let (second, rest) = match index.strip_prefix(b"\xfftOc\0\0\0\x02") {
        Some(rest) => (true, rest),
        None => (false, index),
    };
    // How many objects there are whose ids begin with each byte or one below.
    let (counts, rest) = rest.split_at_checked(4 * 256)?;
    let count = usize::try_from(u32::from_be_bytes(*counts.last_chunk()?)).ok()?;
    let is_out = |offset: u64| offset >= pack;
    if !second {
        // Offset and id; then two sums.
        let entries = rest.get(..rest.len().checked_sub(40)?)?.as_chunks::<24>().0;
        if entries.len() != count {
            return None;
        }
        let offset =
            |entry: &[u8; 24]| u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]);
        return Some(entries.iter().any(|entry| is_out(offset(entry).into())));
    }
    // After ids and sums.
    let (offsets, rest) = rest.get(24 * count..)?.split_at_checked(4 * count)?;
    let long = rest.as_chunks::<8>().0;
    Some(offsets.as_chunks::<4>().0.iter().any(|offset| match u32::from_be_bytes(*offset) {
        at if at & LONG == 0 => is_out(at.into()),
        at => long.get((at & !LONG) as usize).is_none_or(|at| is_out(u64::from_be_bytes(*at))),
    }))
}
