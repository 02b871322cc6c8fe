//! The released macOS wheel and the kernels Apple's compiler made in it.
//!
//! `mlx.metallib` is a `MTLB` container. At 0x18 eight u64: offset and size of
//! the function list, the public and the private metadata, and the bitcode.
//! The function list is a u32 count, then for each function a u32 size and
//! tags: a name of four bytes, a u16 size, a value; `ENDT` ends them. A
//! function's bitcode starts at the bitcode's offset plus `OFFT[2]` and is
//! `MDSZ` bytes long.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::HarnessError;
use crate::scratch::Scratch;
use crate::toolchain::run_tool;
use crate::workshop::hex;

/// The wheel at the pin.
const WHEEL: &str = "mlx_metal-0.32.1-py3-none-macosx_14_0_arm64.whl";
/// What downloads it, from whatever index pip is set up for.
pub const DOWNLOAD: &str = "python3 -m pip download --no-deps --only-binary=:all: --platform \
     macosx_14_0_arm64 mlx-metal==0.32.1";
/// The variable that names a file to use instead.
const VARIABLE: &str = "MLX_OVERLAY_METAL_WHEEL";
/// What the wheel hashes to: all that is kept of it is kept under this.
pub const SHA256: &str = "3fbf7d3de783680e771818189bc734877c9b129ae91312338b5ede420cde44c9";
const METALLIB: &str = "mlx/lib/mlx.metallib";

/// Whether the wheel may be downloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Where it is not at hand.
    Allowed,
    /// Never.
    Off,
}

/// The file that `$MLX_OVERLAY_METAL_WHEEL` names; nothing where it is not set.
///
/// # Errors
/// It names no file. Nothing is downloaded in its place.
pub fn given() -> Result<Option<PathBuf>, HarnessError> {
    std::env::var_os(VARIABLE).map(|path| named(PathBuf::from(path))).transpose()
}

fn named(path: PathBuf) -> Result<PathBuf, HarnessError> {
    let why = match fs::metadata(&path) {
        Ok(found) if found.is_file() => return Ok(path),
        Ok(_) => "it is no file".to_string(),
        Err(error) => error.to_string(),
    };
    Err(bad(format!("{VARIABLE} names `{}`: {why}", path.display())))
}

/// Gives the wheel's path, downloading it into `store` where it is not there:
/// with `python3 -m pip download`, so from whatever index pip is set up for.
/// `$MLX_OVERLAY_METAL_WHEEL` names a file to use instead; it must be the same.
///
/// # Errors
/// It cannot be had, or is another file.
pub fn wheel(store: &Path, network: Network) -> Result<PathBuf, HarnessError> {
    let Some(path) = given()? else { return kept(store, network, download) };
    match hash(&path)? {
        found if found == SHA256 => Ok(path),
        found => Err(bad(format!(
            "{VARIABLE} names `{}`, which has SHA-256 {found}, expected {SHA256}",
            path.display()
        ))),
    }
}

/// The store's own copy. One that is not whole is removed.
fn kept(
    store: &Path,
    network: Network,
    download: impl FnOnce(&Path) -> Result<(), HarnessError>,
) -> Result<PathBuf, HarnessError> {
    let path = store.join(WHEEL);
    let mut state = format!("is not at `{}`", path.display());
    if path.is_file() {
        let found = hash(&path)?;
        if found == SHA256 {
            return Ok(path);
        }
        fs::remove_file(&path).map_err(HarnessError::io(&path))?;
        state = format!(
            "was not whole and has been removed from `{}` (SHA-256 {found}, expected {SHA256})",
            path.display()
        );
    }
    if network == Network::Off {
        return Err(bad(format!("{state}, and the network is off: run once without --offline")));
    }
    // Aside, so that a download that is cut off leaves nothing behind.
    let aside = Scratch::open(store)?;
    download(aside.path())?;
    let fetched = aside.path().join(WHEEL);
    let found = hash(&fetched)?;
    if found != SHA256 {
        return Err(bad(format!("was downloaded with SHA-256 {found}, expected {SHA256}")));
    }
    fs::rename(&fetched, &path).map_err(HarnessError::io(&path))?;
    Ok(path)
}

fn download(folder: &Path) -> Result<(), HarnessError> {
    let mut words = DOWNLOAD.split_whitespace();
    let mut pip = Command::new(words.next().expect("the command is not empty"));
    pip.args(words).args(["--quiet", "--disable-pip-version-check", "--dest"]).arg(folder);
    run_tool(&mut pip, "downloading the released wheel")
        .map(drop)
        .map_err(|error| bad(format!("cannot be downloaded: {error}")))
}

fn hash(path: &Path) -> Result<String, HarnessError> {
    let bytes = fs::read(path).map_err(HarnessError::io(path))?;
    Ok(hex(&Sha256::digest(&bytes)))
}

fn bad(why: String) -> HarnessError {
    HarnessError::Wheel { wheel: WHEEL, why }
}

/// Reads the library out of the wheel.
///
/// # Errors
/// The archive cannot be read.
pub fn metallib(wheel: &Path) -> Result<Vec<u8>, HarnessError> {
    let file = fs::File::open(wheel).map_err(HarnessError::io(wheel))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| bad(error.to_string()))?;
    let mut entry =
        archive.by_name(METALLIB).map_err(|error| bad(format!("{METALLIB}: {error}")))?;
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(|error| bad(format!("{METALLIB}: {error}")))?;
    Ok(bytes)
}

/// A library's functions: host name → bitcode.
///
/// # Errors
/// The bytes are no such container.
pub fn functions(library: &[u8]) -> Result<BTreeMap<String, &[u8]>, HarnessError> {
    let bytes = Bytes(library);
    if bytes.part(0, 4)? != b"MTLB" {
        return Err(fault(0, "the file does not start with MTLB"));
    }
    let list = bytes.long(0x18)?;
    let bitcode = bytes.long(0x18 + 6 * 8)?;
    let mut functions = BTreeMap::new();
    let mut at = list + 4;
    for _ in 0..bytes.word(list)? {
        let size = bytes.word(at)?;
        let (name, start, length) = entry(&bytes, at + 4, at.saturating_add(size))?;
        functions.insert(name, bytes.part(bitcode.saturating_add(start), length)?);
        at += size;
    }
    Ok(functions)
}

/// One function of the list: its name, the offset of its bitcode, its length.
fn entry(bytes: &Bytes, mut at: usize, end: usize) -> Result<(String, usize, usize), HarnessError> {
    let (mut name, mut start, mut length) = (None, None, None);
    let begin = at;
    while at < end {
        let tag = bytes.part(at, 4)?;
        if tag == b"ENDT" {
            break;
        }
        let size = usize::from(bytes.short(at + 4)?);
        let value = at + 6;
        match tag {
            b"NAME" => {
                let text = bytes.part(value, size)?;
                let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
                name = Some(String::from_utf8_lossy(text).into_owned());
            }
            b"OFFT" => start = Some(bytes.long(value + 16)?),
            b"MDSZ" => length = Some(bytes.long(value)?),
            _ => {}
        }
        at = value + size;
    }
    match (name, start, length) {
        (Some(name), Some(start), Some(length)) => Ok((name, start, length)),
        _ => Err(fault(begin, "a function lacks NAME, OFFT or MDSZ")),
    }
}

struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn part(&self, at: usize, length: usize) -> Result<&'b [u8], HarnessError> {
        let end = at.checked_add(length);
        end.and_then(|end| self.0.get(at..end)).ok_or_else(|| fault(at, "the file ends here"))
    }

    fn short(&self, at: usize) -> Result<u16, HarnessError> {
        let part = self.part(at, 2)?;
        Ok(u16::from_le_bytes([part[0], part[1]]))
    }

    fn word(&self, at: usize) -> Result<usize, HarnessError> {
        let part = self.part(at, 4)?;
        Ok(u32::from_le_bytes([part[0], part[1], part[2], part[3]]) as usize)
    }

    fn long(&self, at: usize) -> Result<usize, HarnessError> {
        let (low, high) = (self.word(at)?, self.word(at + 4)?);
        if high != 0 {
            return Err(fault(at, "an offset is beyond 4 GiB"));
        }
        Ok(low)
    }
}

fn fault(at: usize, why: &str) -> HarnessError {
    HarnessError::Metallib { what: METALLIB.to_string(), at, why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library of one function, `k`, with three bytes of bitcode.
    fn library() -> Vec<u8> {
        let mut tags = Vec::new();
        for (tag, value) in [
            (b"NAME", b"k\0".to_vec()),
            (b"OFFT", [0u64, 0, 1].map(u64::to_le_bytes).concat()),
            (b"MDSZ", 3u64.to_le_bytes().to_vec()),
        ] {
            tags.extend(tag);
            tags.extend((value.len() as u16).to_le_bytes());
            tags.extend(value);
        }
        tags.extend(b"ENDT");
        let mut file = b"MTLB".to_vec();
        file.resize(0x18, 0);
        let list = 0x58u64;
        let bitcode = list + 8 + tags.len() as u64;
        for value in [list, 0, 0, 0, 0, 0, bitcode, 4] {
            file.extend(value.to_le_bytes());
        }
        file.extend(1u32.to_le_bytes());
        file.extend((tags.len() as u32 + 4).to_le_bytes());
        file.extend(tags);
        file.extend(b".abc");
        file
    }

    #[test]
    fn a_wheel_that_is_not_whole_is_removed_and_fetched_again() {
        let folder = tempfile::tempdir().unwrap();
        let (store, path) = (folder.path(), folder.path().join(WHEEL));
        let never = |_: &Path| -> Result<(), HarnessError> { panic!("the network is off") };
        let said = |kept: Result<PathBuf, HarnessError>| kept.unwrap_err().to_string();
        let missing = said(kept(store, Network::Off, never));
        assert!(missing.contains("is not at ") && missing.contains(WHEEL), "{missing}");

        fs::write(&path, "half a wheel").unwrap();
        let offline = said(kept(store, Network::Off, never));
        assert!(offline.contains("has been removed") && !path.exists(), "{offline}");

        fs::write(&path, "half a wheel").unwrap();
        let again = |into: &Path| {
            fs::write(into.join(WHEEL), "another").unwrap();
            Ok(())
        };
        let fetched = said(kept(store, Network::Allowed, again));
        assert!(fetched.contains("was downloaded with SHA-256") && !path.exists(), "{fetched}");
    }

    #[test]
    fn a_named_wheel_that_is_not_there_names_its_variable() {
        let said = named("/nonexistent/wheel".into()).unwrap_err().to_string();
        assert!(said.contains(VARIABLE) && said.contains("/nonexistent/wheel"), "{said}");
        assert!(named(std::env::temp_dir()).unwrap_err().to_string().contains("no file"));
    }

    #[test]
    fn a_function_is_found_by_its_name() {
        let library = library();
        let functions = functions(&library).unwrap();
        assert_eq!(functions["k"], b"abc");
    }

    #[test]
    fn a_cut_library_is_an_error_at_every_length() {
        let library = library();
        for length in 0..library.len() {
            assert!(functions(&library[..length]).is_err(), "{length} bytes");
        }
    }
}
