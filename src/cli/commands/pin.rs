//! `overlay pin`: what the pin is, and whether all that belongs to it holds.

use std::path::{Path, PathBuf};

use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::git::{GitError, Store};
use mlx_overlay_engine::lay;
use mlx_overlay_engine::patch;
use mlx_overlay_engine::pin::{Pin, Project};
use mlx_overlay_engine::secret::hidden;
use mlx_overlay_engine::series::Series;
use mlx_overlay_engine::stored::message;
use serde::Serialize;

use crate::cli::error::{CommandError, ErrorKind, Outcome};
use crate::cli::ui::{BOLD, DIM, Format, GOOD, Ui, WARN, paint};

/// Show the pin, and check what belongs to it
///
/// Checks that mlx-pin.toml and the series have their form, that the listing
/// hashes to the pin's tree, that every patch is there, listed and
/// well formed, and that the bridges are patches. Nothing is fetched.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The pin: the current one if none is named; 7 digits of its commit do
    #[arg(long, value_name = "SHA")]
    pin: Option<String>,
}

/// What is printed.
#[derive(Serialize)]
struct Shown {
    commit: String,
    tree: String,
    mlx_version: String,
    date: String,
    upstream: String,
    current: bool,
    folder: PathBuf,
    listed_files: usize,
    entries: usize,
    groups: Vec<String>,
    snapshots: Vec<String>,
    cached: bool,
    #[serde(skip)]
    cache: Result<bool, String>,
    kept_pins: Vec<String>,
    strays: Vec<PathBuf>,
}

/// Runs `overlay pin`.
///
/// # Errors
/// There is no such pin, or something of it does not hold.
pub fn run(args: Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json])?;
    let project = Project::find(&std::env::current_dir()?)?;
    let pin = project.select(args.pin.as_deref())?;
    let shown = check(&project, pin)?;
    let outcome = if shown.strays.is_empty() { Outcome::Done } else { Outcome::NeedsPerson };
    match ui.format() {
        Format::Json => ui.json("pin", 1, &shown),
        _ => print(&project.root, pin, &shown, ui),
    }
    Ok(outcome)
}

fn check(project: &Project, pin: &Pin) -> Result<Shown, CommandError> {
    let listing = pin.load_listing()?;
    let series = Series::load(pin)?;
    for bridge in pin.snapshots.iter().filter_map(|s| s.bridge.as_deref()) {
        let bytes = std::fs::read(bridge).map_err(|e| {
            let error = anyhow::Error::new(e).context("the bridge cannot be read");
            CommandError::new(ErrorKind::Refused, error).at(bridge.display(), None, None)
        })?;
        patch::parse(&bytes)
            .and_then(|patch| patch.require_files())
            .map_err(|refusal| CommandError::from_refusal(refusal, bridge.display()))?;
    }
    lay::check(&series)?;
    let cache = cache(pin)?;
    Ok(Shown {
        commit: pin.commit.to_string(),
        tree: pin.tree.to_string(),
        mlx_version: pin.version.clone(),
        date: pin.date.clone(),
        upstream: hidden(&pin.upstream).into(),
        current: pin.commit == project.current.commit,
        folder: pin.folder.clone(),
        listed_files: listing.len(),
        entries: series.entries.len(),
        groups: series.groups(),
        snapshots: pin.snapshots.iter().map(|s| s.source.to_string()).collect(),
        cached: cache == Ok(true),
        cache,
        kept_pins: project.kept.iter().map(|p| p.commit.to_string()).collect(),
        strays: project.strays()?,
    })
}

/// Whether the cache has all of the pin, or why that cannot be told: the pin is checked
/// without a cache too.
fn cache(pin: &Pin) -> Result<Result<bool, String>, CommandError> {
    let tree = Cache::of_user()
        .map_err(GitError::from)
        .and_then(|cache| Store::new(&cache, &pin.upstream).tree(pin.commit, pin.tree));
    match tree {
        Ok(tree) => Ok(Ok(tree.is_some())),
        Err(error @ GitError::WrongTree { .. }) => Err(error.into()),
        Err(error) => Ok(Err(message(&error))),
    }
}

fn print(root: &Path, pin: &Pin, shown: &Shown, ui: &mut Ui) {
    let near = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let what = if shown.current { "the current pin" } else { "a kept pin" };
    ui.line(format!("{} {what}", paint(BOLD, &shown.commit)));
    let mut row = |name: &str, text: String| ui.line(format!("  {name:<9} {text}"));
    row("version", format!("{} of {}", shown.mlx_version, shown.date));
    row("upstream", shown.upstream.clone());
    row("tree", shown.tree.clone());
    let proven = paint(GOOD, "hashes to the tree");
    row("listing", format!("{}: {} files, {proven}", near(&pin.listing), shown.listed_files));
    let groups = shown.groups.join(", ");
    row("series", format!("{}: {} entries ({groups})", near(&shown.folder), shown.entries));
    for snapshot in &pin.snapshots {
        let bridge = snapshot.bridge.as_deref().map(near);
        let bridge = bridge.map_or_else(String::new, |b| format!(" with {b}"));
        row("snapshot", format!("{}{bridge}", snapshot.source));
    }
    row(
        "cache",
        match &shown.cache {
            Ok(true) => "all its objects".to_owned(),
            Ok(false) => "nothing yet".to_owned(),
            Err(why) => paint(WARN, why),
        },
    );
    for kept in &shown.kept_pins {
        row("kept", paint(DIM, kept));
    }
    for stray in &shown.strays {
        let what = "no pin belongs to this folder; finish or abort the rebase, or take it away";
        row(&paint(WARN, "stray"), format!("{}: {what}", near(stray)));
    }
}
