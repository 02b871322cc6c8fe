//! Real bumps: released trees of MLX one after the other, this repository's own
//! series, and upstream's history where it is at hand.
//!
//! What is expected was written down from upstream's diffs, read before the
//! tool was asked.

#![allow(clippy::unwrap_used)]

mod history;
mod library;
mod made;
mod picked;
mod released;
mod seeded;
mod strict;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::LazyLock;

use mlx_overlay_engine::acquire::{PinTree, Request, acquire};
use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::drift::{Item, Judgement, State};
use mlx_overlay_engine::git::Limits;
use mlx_overlay_engine::pin::{Pin, Project};
use mlx_overlay_engine::progress::Silent;
use mlx_overlay_engine::registry::{Network, Registry, RegistryError};
use mlx_overlay_engine::snapshot::MemoryTree;
use overlay_tests_support::{Need, Suite};

fn main() -> ExitCode {
    let mut suite = Suite::new();
    released::add(&mut suite);
    seeded::add(&mut suite);
    history::add(&mut suite);
    library::add(&mut suite);
    picked::add(&mut suite);
    strict::add(&mut suite);
    suite.run()
}

/// MLX v0.31.2, mid-June 2026 and v0.32.2, whole.
const V0_31_2: &str = "crate:mlex@0.1.3:vendor/mlx";
const JUNE: &str = "crate:rlx-mlx-sys@0.2.16:vendor/mlx";
const V0_32_2: &str = "crate:mlxrs-sys@0.2.0:vendor/mlx";

/// A cache that outlives the run, so that packages are fetched once.
fn cache() -> Cache {
    Cache::at(Path::new(env!("CARGO_TARGET_TMPDIR")).join("bumps-cache"))
}

fn released(source: &str) -> Result<MemoryTree, RegistryError> {
    let cache = cache();
    let source = source.parse().expect("a source");
    Registry::new(&cache, Network::Allowed, &Silent)
        .released(&source, None)
        .map(|released| released.files)
}

/// The released trees are to be had through the user's cargo.
fn trees() -> Need {
    static MISSING: LazyLock<Option<String>> = LazyLock::new(|| {
        let missing = [V0_31_2, JUNE, V0_32_2].iter().find_map(|s| released(s).err())?;
        Some(format!("no registry gives the released trees: {missing}"))
    });
    Need::asked(|| MISSING.clone().map_or(Ok(()), Err))
}

/// This repository's pin.
fn this_pin() -> (Project, Pin) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let project = Project::load(&root).expect("this repository's pin");
    let pin = project.current.clone();
    (project, pin)
}

/// The files of this repository's pin that released trees prove.
fn pin_tree() -> Result<PinTree, String> {
    let (_, pin) = this_pin();
    let cache = cache();
    // Nobody listens at port 9: the released trees are the source, here as
    // where no git host is reached.
    let pin = Pin { upstream: "http://127.0.0.1:9/x".into(), ..pin };
    let request = Request {
        pin: &pin,
        from: None,
        damaged: None,
        network: Network::Allowed,
        limits: Limits::default(),
        cache: &cache,
        cargo_home: None,
        progress: &Silent,
    };
    acquire(&request).map(|a| a.tree).map_err(|e| e.to_string())
}

fn pin_files() -> Need {
    static MISSING: LazyLock<Option<String>> = LazyLock::new(|| {
        let missing = pin_tree().err()?;
        Some(format!("no registry gives the pin's files: {missing}"))
    });
    Need::asked(|| MISSING.clone().map_or(Ok(()), Err))
}

/// The items that are neither exact nor held, with their state.
fn loud(found: &Judgement) -> Vec<String> {
    let quiet = |s: &State| matches!(s.as_str(), "exact" | "held");
    let shown = |(item, state): (Item, State)| format!("{item}: {state}");
    found.states().into_iter().filter(|(_, s)| !quiet(s)).map(shown).collect()
}

/// Runs git, with nothing of the user's set-up; some of its answers are told by
/// the exit status.
fn git(at: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(at)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git runs");
    assert!(output.status.code().is_some_and(|c| c < 2), "git {arguments:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
