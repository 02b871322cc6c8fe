//! The two ends of a drift or a rebase: the pin with its series, and a target
//! named on the command line.

use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::drift::{DriftError, End};
use mlx_overlay_engine::git::{CommitInfo, GitError, History, Limits, Mirror, folder_of};
use mlx_overlay_engine::pin::{Pin, Project};
use mlx_overlay_engine::registry::{Network, Registry, RegistryError};
use mlx_overlay_engine::series::Series;
use mlx_overlay_engine::snapshot::{MemoryTree, Remembered, Tree, TreePath};
use mlx_overlay_engine::source::SnapshotSource;

use super::commands::fetch::{SourceArgs, cargo_home, network};
use super::error::{CommandError, ErrorKind};
use super::progress::Teller;
use super::remedy::Apply;
use super::ui::Ui;

/// Which ends are meant.
#[derive(Debug, clap::Args)]
pub struct EndArgs {
    /// The target: a commit, a tag or a branch of upstream, or a released tree
    /// as crate:NAME@VERSION:folder; drift takes the clone's HEAD where none is named
    #[arg(long, value_name = "REV")]
    pub to: Option<String>,
    /// The pin to start from, and where upstream is. A commit, tag or branch is
    /// looked up in the clone that is named, else in the history that is fetched
    /// from upstream into the cache
    #[command(flatten)]
    pub source: SourceArgs,
}

impl EndArgs {
    /// The target as it was named; the tip of the clone where it was not.
    #[must_use]
    pub fn to(&self) -> &str {
        self.to.as_deref().unwrap_or("HEAD")
    }
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
    /// Upstream's history; nothing only where a released tree is the target and
    /// no clone was named.
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
    pub fn open(args: &EndArgs, ui: &mut Ui) -> Result<Self, CommandError> {
        let project = Project::find(&std::env::current_dir()?)?;
        let pin = project.select(args.source.pin.as_deref())?.clone();
        let series = Series::load(&pin)?;
        let history = history(args, &pin, ui)?;
        let tree: Box<dyn Tree> = match &history {
            Some(history) if history.has(pin.commit) => {
                Box::new(Remembered::new(history.tree(pin.commit)?))
            }
            _ => Box::new(args.source.acquire(&pin, ui)?.tree),
        };
        Ok(Self { project, pin, series, tree, history })
    }

    /// What a series that does not hold at its own pin is told of it.
    #[must_use]
    pub fn not_at_pin(&self, error: DriftError) -> CommandError {
        let apply = Apply::at(&self.project, &self.pin, None, None).with("--dry-run");
        CommandError::from(error).hint(format!("{apply} says what does not hold, and where"))
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
    pub fn target(&self, name: &str, ui: &mut Ui) -> Result<Target, CommandError> {
        if is_released(name) {
            return released(name, &self.pin, ui);
        }
        let history = self.history.as_ref().expect("only for a released tree is none opened");
        let id = history.resolve(name)?;
        let commit = history.commit(id)?;
        Ok(Target {
            id: id.to_string(),
            end: End {
                commit: Some(id),
                name: name.to_owned(),
                date: Some(commit.date.clone()),
                subject: Some(commit.subject.clone()),
            },
            tree: Box::new(Remembered::new(history.tree(id)?)),
            commit: Some(commit),
        })
    }
}

fn is_released(target: &str) -> bool {
    target.contains('@') && target.contains(':')
}

/// Upstream's history: the clone that is named, else the mirror in the cache,
/// brought up to date where the target may be new to it.
fn history(args: &EndArgs, pin: &Pin, ui: &mut Ui) -> Result<Option<History>, CommandError> {
    let from = args.source.from.as_deref();
    if let Some(folder) = from.and_then(folder_of) {
        return Ok(Some(History::open(&folder)?));
    }
    if is_released(args.to()) {
        return Ok(None);
    }
    let mirror = Mirror::new(&Cache::of_user()?, &pin.upstream);
    if mirror.settles(args.to()) {
        return Ok(Some(History::open(mirror.path())?));
    }
    let missing = |error: anyhow::Error| {
        CommandError::new(ErrorKind::Missing, error)
            .reason("no-history")
            .hint("name a clone of upstream that you have: --from DIR, or MLX_OVERLAY_UPSTREAM")
            .hint("name a released tree instead: --to crate:NAME@VERSION:folder")
    };
    if network(ui) == Network::Allowed {
        let url = from.unwrap_or(&pin.upstream);
        mirror.update(url, args.to(), pin.commit, Limits::default(), &Teller::new(ui)).map_err(
            |e| match e {
                GitError::Cache(error) => error.into(),
                error => missing(error.into()),
            },
        )?;
    } else if mirror.is_empty() {
        return Err(missing(anyhow::anyhow!(
            "upstream's history was never fetched, and the network is off limits"
        )));
    }
    Ok(Some(History::open(mirror.path())?))
}

fn released(name: &str, pin: &Pin, ui: &mut Ui) -> Result<Target, CommandError> {
    let source: SnapshotSource = name.parse().map_err(|e| CommandError::usage(format!("{e}")))?;
    let tree = released_tree(&source, pin, ui)?;
    let id = source.to_string();
    let end = End { commit: None, name: id.clone(), date: None, subject: None };
    Ok(Target { id, end, commit: None, tree: Box::new(tree) })
}

/// A released tree of what the pin is a commit of, through the user's own
/// cargo and pip.
///
/// # Errors
/// It is not to be had or damaged, or the folder that is named holds less than
/// half of the pin's paths: it is another one than was meant.
pub fn released_tree(
    source: &SnapshotSource,
    pin: &Pin,
    ui: &mut Ui,
) -> Result<MemoryTree, CommandError> {
    let cache = Cache::of_user()?;
    let network = network(ui);
    let listing = pin.load_listing()?;
    let teller = Teller::new(ui);
    let mut registry = Registry::new(&cache, network, &teller);
    registry.cargo_home = cargo_home();
    let stated = pin.snapshots.iter().find(|s| s.source == *source).map(|s| &s.whole);
    let missing = match registry.released_whole(source, stated) {
        Ok(tree) => match listing.count_among(&tree.paths()) {
            have if 2 * have >= listing.len() => return Ok(tree),
            have => anyhow::anyhow!(
                "`{source}` holds {have} of the pin's {} paths: it is no tree of upstream",
                listing.len()
            ),
        },
        Err(error @ RegistryError::NoFolder { .. }) => anyhow::Error::new(error),
        Err(error) => return Err(error.into()),
    };
    let error = CommandError::new(ErrorKind::Usage, missing).reason("no-tree");
    let package = source.in_folder(None);
    let paths = registry.released(&package, None)?.paths();
    Err(match listing.root_among(&paths) {
        Some(folder) => {
            let meant = source.in_folder(TreePath::new(folder).ok());
            error.hint(format!("did you mean `{meant}`?"))
        }
        None => error.hint(format!("`{package}` holds no such tree; name another package")),
    })
}

/// A drift that cannot be worked out.
impl From<DriftError> for CommandError {
    fn from(error: DriftError) -> Self {
        match error {
            DriftError::Lay(error) => error.into(),
            DriftError::Git(error) => error.into(),
            error @ DriftError::NotAtPin { .. } => CommandError::new(ErrorKind::Refused, error),
            error @ DriftError::Read(_) => CommandError::new(ErrorKind::Failed, error),
        }
    }
}
