//! Apple's C++ headers for Metal, from the released macOS wheel of MLX, which
//! the harness downloads and checks.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use mlx_overlay_harness::metallib::{self, Network};

use crate::FakeDeviceError;

const HEADERS: &str = "mlx/include/metal_cpp/";

/// The folder of the headers, unpacked once.
///
/// # Errors
/// The wheel cannot be had, is not the one known, or does not hold them.
pub fn metal_cpp(cache: &Path) -> Result<PathBuf, FakeDeviceError> {
    let store = cache.join("fake-device");
    let headers = store.join("metal_cpp");
    if headers.is_dir() {
        return Ok(headers);
    }
    let wheels = cache.join("harness");
    for folder in [&store, &wheels] {
        fs::create_dir_all(folder).map_err(FakeDeviceError::io(folder))?;
    }
    let wheel = metallib::wheel(&wheels, Network::Allowed)?;
    let aside = tempfile::tempdir_in(&store).map_err(FakeDeviceError::io(&store))?;
    let unpacked = aside.path().join("headers");
    unpack(&wheel, &unpacked)?;
    match fs::rename(&unpacked, &headers) {
        Ok(()) => Ok(headers),
        // Another run was faster.
        Err(_) if headers.is_dir() => Ok(headers),
        Err(error) => Err(FakeDeviceError::io(&headers)(error)),
    }
}

fn unpack(wheel: &Path, into: &Path) -> Result<(), FakeDeviceError> {
    let bad = |why: String| FakeDeviceError::Wheel { wheel: wheel.to_path_buf(), why };
    let file = File::open(wheel).map_err(FakeDeviceError::io(wheel))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| bad(error.to_string()))?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| bad(error.to_string()))?;
        let Some(path) = entry.enclosed_name() else { continue };
        let Ok(inside) = path.strip_prefix(HEADERS) else { continue };
        if entry.is_dir() {
            continue;
        }
        let target = into.join(inside);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(FakeDeviceError::io(parent))?;
        }
        let mut out = File::create(&target).map_err(FakeDeviceError::io(&target))?;
        io::copy(&mut entry, &mut out).map_err(FakeDeviceError::io(&target))?;
    }
    if into.join("Metal/Metal.hpp").is_file() {
        Ok(())
    } else {
        Err(bad(format!("{HEADERS} is not in it")))
    }
}
