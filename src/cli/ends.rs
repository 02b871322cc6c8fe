//! The two ends of a drift or a rebase: the pin with its series, and a target
//! named on the command line.

use std::path::{Path, PathBuf};

use mlx_overlay_engine::acquire::{AcquireError, Request, UPSTREAM_VARIABLE, acquire};
use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::drift::{DriftError, End};
use mlx_overlay_engine::git::{CommitInfo, GitError, History, Limits, is_local};
use mlx_overlay_engine::lay::LayError;
use mlx_overlay_engine::pin::{Pin, PinError, Project};
use mlx_overlay_engine::progress::Silent;
use mlx_overlay_engine::registry::{Network, Registry};
use mlx_overlay_engine::series::{Series, SeriesError};
use mlx_overlay_engine::snapshot::Tree;
use mlx_overlay_engine::source::SnapshotSource;

use super::error::{CommandError, ErrorKind};
use super::ui::Ui;

/// Which ends are meant.
#[derive(Debug, clap::Args)]
pub struct EndArgs {
    /// The target: a commit, a tag or a branch of upstream, or a released tree
    /// as crate:NAME@VERSION:folder
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub to: String,
    /// The pin to start from, if it is not the current one
    #[arg(long, value_name = "SHA")]
    pub pin: Option<String>,
    /// A clone of upstream with its history; else MLX_OVERLAY_UPSTREAM names it
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
}

/// A pin, the series made for it, and its files.
pub struct Start {
    /// The project.
    pub project: Project,
    /// The pin.
    pub pin: Pin,
    /// Its series.
    pub series: Series,
    /// Its files.
    pub tree: Box<dyn Tree>,
    /// Upstream's history, where one is at hand.
    pub history: Option<History>,
}

/// A target.
pub struct Target {
    /// As acknowledgements name it: the full commit id, or the snapshot.
    pub id: String,
    /// As reports name it.
    pub end: End,
    /// The commit, of a target that is one.
    pub commit: Option<CommitInfo>,
    /// Its files.
    pub tree: Box<dyn Tree>,
}

impl Start {
    /// Reads the project that the current folder is in, its pin and series, and
    /// gets the pin's files.
    ///
    /// # Errors
    /// A file cannot be read, or no source has the pin's files.
    pub fn open(args: &EndArgs, ui: &Ui) -> Result<Self, CommandError> {
        let project = Project::find(Path::new(".")).or_else(|error| match error {
            // A relative `.` has no folders above it to look in.
            PinError::NoProject { .. } => {
                let here = std::env::current_dir().map_err(CommandError::from)?;
                Project::find(&here).map_err(pin_error)
            }
            other => Err(pin_error(other)),
        })?;
        let pin = project.select(args.pin.as_deref()).map_err(pin_error)?.clone();
        let series = Series::load(&pin).map_err(series_error)?;
        let history = history(args)?;
        let tree: Box<dyn Tree> = match &history {
            Some(history) if history.has(pin.commit) => {
                Box::new(history.tree(pin.commit).map_err(git_error)?)
            }
            _ => pin_files(&pin, ui)?,
        };
        Ok(Self { project, pin, series, tree, history })
    }

    /// The pin as reports name it.
    #[must_use]
    pub fn end(&self) -> End {
        End {
            commit: Some(self.pin.commit),
            name: self.pin.version.clone(),
            date: Some(self.pin.date.clone()),
            subject: None,
        }
    }

    /// Finds the target.
    ///
    /// # Errors
    /// It is no commit of the history at hand, or the released tree is not to
    /// be had.
    pub fn target(&self, name: &str, ui: &Ui) -> Result<Target, CommandError> {
        if name.contains('@') && name.contains(':') {
            return released(name, ui);
        }
        let Some(history) = &self.history else {
            return Err(CommandError::new(
                ErrorKind::Missing,
                anyhow::anyhow!("no history of upstream is at hand to find `{name}` in"),
            )
            .hint(format!("git clone {} mlx && overlay … --from mlx", self.pin.upstream))
            .hint(format!("set {UPSTREAM_VARIABLE} to a clone you have"))
            .hint("name a released tree instead: --to crate:NAME@VERSION:folder"));
        };
        let id = history.resolve(name).map_err(git_error)?;
        let commit = history.commit(id).map_err(git_error)?;
        Ok(Target {
            id: id.to_string(),
            end: End {
                commit: Some(id),
                name: name.to_owned(),
                date: Some(commit.date.clone()),
                subject: Some(commit.subject.clone()),
            },
            tree: Box::new(history.tree(id).map_err(git_error)?),
            commit: Some(commit),
        })
    }
}

fn network(ui: &Ui) -> Network {
    if ui.offline() { Network::OffLimits } else { Network::Allowed }
}

fn history(args: &EndArgs) -> Result<Option<History>, CommandError> {
    let named = args.from.clone();
    let variable = std::env::var_os(UPSTREAM_VARIABLE).map(PathBuf::from);
    let local = |p: &PathBuf| p.to_str().is_none_or(is_local);
    match named.or_else(|| variable.filter(local)) {
        Some(path) => History::open(&path).map(Some).map_err(git_error),
        None => Ok(None),
    }
}

fn pin_files(pin: &Pin, ui: &Ui) -> Result<Box<dyn Tree>, CommandError> {
    let cache = cache()?;
    let from = std::env::var(UPSTREAM_VARIABLE).ok();
    let acquired = acquire(&Request {
        pin,
        from: from.as_deref(),
        network: network(ui),
        limits: Limits::default(),
        cache: &cache,
        progress: &Silent,
    });
    match acquired {
        Ok(acquired) => Ok(Box::new(acquired.tree)),
        Err(error) => {
            let kind = match error {
                AcquireError::Nowhere { .. } => ErrorKind::Missing,
                _ => ErrorKind::Refused,
            };
            Err(CommandError::new(kind, error))
        }
    }
}

fn released(name: &str, ui: &Ui) -> Result<Target, CommandError> {
    let source: SnapshotSource = name.parse().map_err(|e| CommandError::usage(format!("{e}")))?;
    let cache = cache()?;
    let registry = Registry::new(&cache, network(ui), &Silent);
    let tree = registry
        .released(&source, None)
        .map_err(|error| CommandError::new(ErrorKind::Missing, error))?;
    let id = source.to_string();
    let end = End { commit: None, name: id.clone(), date: None, subject: None };
    Ok(Target { id, end, commit: None, tree: Box::new(tree) })
}

fn cache() -> Result<Cache, CommandError> {
    Cache::of_user().map_err(|error| CommandError::new(ErrorKind::Failed, error))
}

/// A pin that cannot be read or found.
pub fn pin_error(error: PinError) -> CommandError {
    let kind = match error {
        PinError::NoProject { .. }
        | PinError::NoName { .. }
        | PinError::Unknown { .. }
        | PinError::SeveralPins { .. } => ErrorKind::Usage,
        _ => ErrorKind::Refused,
    };
    CommandError::new(kind, error)
}

/// A series that cannot be read.
pub fn series_error(error: SeriesError) -> CommandError {
    CommandError::new(ErrorKind::Refused, error)
}

/// A repository that does not have what is asked of it.
pub fn git_error(error: GitError) -> CommandError {
    let kind = match error {
        GitError::NoRevision { .. } => ErrorKind::Usage,
        GitError::Open { .. } | GitError::NoCommit { .. } | GitError::Unrelated { .. } => {
            ErrorKind::Missing
        }
        _ => ErrorKind::Failed,
    };
    CommandError::new(kind, error)
}

/// A drift that cannot be worked out.
pub fn drift_error(error: DriftError) -> CommandError {
    match error {
        DriftError::Lay(LayError::Refused { path, refusal }) => {
            CommandError::from_refusal(refusal, path.display())
        }
        DriftError::Lay(LayError::Series(error)) => series_error(error),
        error @ DriftError::NotAtPin { .. } => CommandError::new(ErrorKind::Refused, error)
            .hint("overlay apply says what does not hold, and where"),
        error => CommandError::new(ErrorKind::Failed, error),
    }
}
