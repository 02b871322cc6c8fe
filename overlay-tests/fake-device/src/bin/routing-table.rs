//! Measures the routing table of a laid tree and writes the page.
//!
//! `routing-table TREE PAGE`, where PAGE is `docs/routing.md`.

use std::path::Path;
use std::process::ExitCode;

use mlx_overlay_fake_device::build::Build;
use mlx_overlay_fake_device::executed::{Source, kernel_library, products};
use mlx_overlay_fake_device::product::Policy;
use mlx_overlay_fake_device::release::Release;
use mlx_overlay_fake_device::{FakeDeviceError, cache, measure};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tree, page] = &arguments[..] else {
        eprintln!("usage: routing-table TREE PAGE");
        return ExitCode::from(2);
    };
    match write(Path::new(tree), Path::new(page)) {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            eprintln!("{} routes are not what the rule says; the first: {}", wrong.len(), wrong[0]);
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(4)
        }
    }
}

/// Writes the page where the table is as the rule says; gives where it is not.
fn write(tree: &Path, page: &Path) -> Result<Vec<String>, FakeDeviceError> {
    let release = Release::of(tree)?;
    if release != Release::Pin {
        eprintln!("the page speaks of the pin; this tree is of {release}, and routes alike");
    }
    let cache = cache::folder()?;
    let build = Build::of(tree, &cache)?;
    let library = kernel_library(tree, &cache, Source::Text, &products(), &Policy::ALL)?;
    let whole = measure::whole(&build, &library)?;
    if whole.wrong.is_empty() {
        std::fs::write(page, whole.table.page())
            .map_err(|source| FakeDeviceError::Io { path: page.to_path_buf(), source })?;
    }
    Ok(whole.wrong)
}
