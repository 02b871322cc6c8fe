//! The two ends of a drift or a rebase: the pin with its series, and a target
//! named on the command line.

use mlx_overlay_engine::acquire::Named;
use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::drift::{DriftError, End, Judgement, Line, judge_pin};
use mlx_overlay_engine::git::{CommitInfo, GitError, History, Limits, Mirror, folder_of};
use mlx_overlay_engine::listing::Listing;
use mlx_overlay_engine::pin::{Pin, Project};
use mlx_overlay_engine::registry::{Network, Registry, RegistryError, Released};
use mlx_overlay_engine::secret::hidden;
use mlx_overlay_engine::series::Series;
use mlx_overlay_engine::snapshot::{MemoryTree, ObjectId, Remembered, Tree, TreePath};
use mlx_overlay_engine::source::SnapshotSource;
use mlx_overlay_engine::stored::message;

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

/// What is known of a target before anything is said of it.
pub struct Known<'s> {
    /// The series at its own pin, where it holds.
    pub at_pin: Judgement,
    /// The upstream commits on the way, where pin and target are of one history.
    pub way: Option<(&'s History, Line)>,
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

    /// An error, with what to do where the series does not hold at its own pin.
    #[must_use]
    pub fn not_at_pin(&self, error: DriftError) -> CommandError {
        let apply = Apply::at(&self.project, &self.pin, None, None).with("--dry-run");
        let own = matches!(error, DriftError::NotAtPin { .. });
        let hint = own.then(|| format!("{apply} says what does not hold, and where"));
        hint.into_iter().fold(error.into(), CommandError::hint)
    }

    /// The history that has both pin and target, and the target's commit there.
    pub fn way(&self, target: &Target, ui: &mut Ui) -> Option<(&History, ObjectId)> {
        let (history, commit) = (self.history.as_ref()?, target.commit.as_ref()?);
        if !history.has(self.pin.commit) {
            ui.warn("this history does not have the pin's commit: no causes can be named");
            return None;
        }
        Some((history, commit.id))
    }

    /// Judges the series at its own pin, where it must hold, and finds the upstream
    /// commits from there to the target.
    ///
    /// # Errors
    /// The series does not hold at its pin, or pin and target have no ancestor in
    /// common.
    pub fn known(&self, target: &Target, ui: &mut Ui) -> Result<Known<'_>, CommandError> {
        let way = self.way(target, ui);
        let (at_pin, line) = judge_pin(&self.series, self.tree.as_ref(), self.pin.commit, way);
        let at_pin = at_pin?;
        at_pin.require_pin().map_err(|e| self.not_at_pin(e))?;
        Ok(Known { at_pin, way: way.map(|(history, _)| history).zip(line?) })
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
        let tree = history.tree(id)?;
        if !history.has(self.pin.commit) {
            // Nothing else tells that it is a commit of the same upstream.
            let listing = self.pin.load_listing()?;
            let have = listing.count_among(&tree.paths());
            if 2 * have < listing.len() {
                let what = not_of_upstream(name, have, &listing);
                return Err(CommandError::new(ErrorKind::Usage, what).reason("no-tree").hint(
                    format!(
                        "{} is where it was looked up: is that a clone of the pin's upstream, {}?",
                        history.path().display(),
                        hidden(&self.pin.upstream)
                    ),
                ));
            }
        }
        Ok(Target {
            id: id.to_string(),
            end: End {
                commit: Some(id),
                name: name.to_owned(),
                date: Some(commit.date.clone()),
                subject: Some(commit.subject.clone()),
            },
            tree: Box::new(Remembered::new(tree)),
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
    let named = args.source.named();
    let from = named.as_ref().map(Named::address);
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
        let updated =
            mirror.update(url, args.to(), pin.commit, Limits::default(), &Teller::new(ui));
        let fault = updated.map_err(|e| match e {
            error @ (GitError::Cache(_) | GitError::Damaged { .. }) => error.into(),
            error => missing(error.into()),
        })?;
        if let Some(fault) = fault {
            ui.note(format!(
                "upstream's history in the cache was damaged ({fault}); it is fetched again, and whole"
            ));
        }
    }
    mirror.open()?.map(Some).ok_or_else(|| {
        missing(anyhow::anyhow!(
            "upstream's history was never fetched, and the network is off limits"
        ))
    })
}

/// A tree that holds less than half of the pin's paths is another one than was meant.
fn not_of_upstream(name: &str, have: usize, listing: &Listing) -> anyhow::Error {
    let all = listing.len();
    anyhow::anyhow!("`{name}` holds {have} of the pin's {all} paths: it is no tree of upstream")
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
        Ok(Released { files, problem }) => match listing.count_among(&files.paths()) {
            have if 2 * have >= listing.len() => {
                drop(registry);
                drop(teller);
                problem.iter().for_each(|problem| ui.note(message(problem)));
                return Ok(files);
            }
            have => not_of_upstream(&source.to_string(), have, &listing),
        },
        Err(error @ RegistryError::NoFolder { .. }) => anyhow::Error::new(error),
        Err(error) => return Err(error.into()),
    };
    let error = CommandError::new(ErrorKind::Usage, missing).reason("no-tree");
    let package = source.in_folder(None);
    let paths = registry.released(&package, None)?.files.paths();
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
            DriftError::Read(error) => error.into(),
        }
    }
}
