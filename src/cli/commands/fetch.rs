//! `overlay fetch`: the files of a pin, from the first source that has them.

use std::path::PathBuf;

use mlx_overlay_engine::acquire::{
    AcquireError, Acquired, Answer, Named, Request, UPSTREAM_VARIABLE, acquire,
};
use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::git::{GitError, Limits, Store};
use mlx_overlay_engine::pin::{Pin, Project};
use mlx_overlay_engine::registry::{Coverage, Network};
use mlx_overlay_engine::snapshot::Tree;
use mlx_overlay_engine::stored::message;

use crate::cli::error::{CommandError, Outcome};
use crate::cli::progress::Teller;
use crate::cli::ui::{BOLD, DIM, Format, GOOD, Ui, WARN, paint};

/// Fetch MLX at the pin into the cache
///
/// Asks, in this order, and names what answered: the object cache; the
/// repository that --from (which must answer) or MLX_OVERLAY_UPSTREAM names; the
/// upstream of mlx-pin.toml (that one commit alone); then the released trees that
/// mlx-pin.toml names, through your own cargo and pip, of which a file counts
/// only where its blob id is the pin's.
///
/// What is in the cache already is read and checked again; damage is mended.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
}

/// Which pin, and where it may come from; shared by the commands that fetch.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// The pin: the current one if none is named; 7 digits of its commit do
    #[arg(long, value_name = "SHA")]
    pub pin: Option<String>,
    /// A git repository to ask first: a folder or a URL, else the one that
    /// MLX_OVERLAY_UPSTREAM names. One named here must answer
    #[arg(long, value_name = "REPOSITORY", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub from: Option<String>,
    /// Why the object cache is passed over, once that was found.
    #[arg(skip)]
    damaged: Option<String>,
}

/// The repository that the variable names; empty is as unset.
#[must_use]
pub fn standing() -> Option<String> {
    let named = std::env::var_os(UPSTREAM_VARIABLE).filter(|named| !named.is_empty())?;
    Some(named.to_string_lossy().into_owned())
}

impl SourceArgs {
    /// The pin that is meant, in the project of the working folder.
    ///
    /// # Errors
    /// There is no project or no such pin.
    pub fn pin(&self) -> Result<Pin, CommandError> {
        let project = Project::find(&std::env::current_dir()?)?;
        Ok(project.select(self.pin.as_deref())?.clone())
    }

    /// The git repository that was named, by the option or else the variable.
    #[must_use]
    pub fn named(&self) -> Option<Named> {
        let here = self.from.clone().map(Named::Here);
        here.or_else(|| standing().map(Named::Standing))
    }

    /// Gets the pin's files from the first source that has them.
    ///
    /// # Errors
    /// None has.
    pub fn acquire(&self, pin: &Pin, ui: &mut Ui) -> Result<Acquired, CommandError> {
        let cache = Cache::of_user()?;
        let network = network(ui);
        let named = self.named();
        let teller = Teller::new(ui);
        let request = Request {
            pin,
            from: named.as_ref(),
            damaged: self.damaged.as_deref(),
            network,
            limits: Limits::default(),
            cache: &cache,
            cargo_home: cargo_home(),
            progress: &teller,
        };
        let acquired = acquire(&request);
        drop(teller);
        let stays = match network {
            Network::OffLimits => {
                "the object cache is damaged: without --offline it is fetched again"
            }
            Network::Allowed => {
                "the object cache is damaged, and stays as it is until `overlay fetch` finds the \
                 pin in a git repository"
            }
        };
        match acquired {
            Err(error @ AcquireError::Nowhere { damaged: true, .. }) => {
                Err(CommandError::from(error).hint(stays))
            }
            Ok(acquired) if acquired.damaged => {
                match acquired.source {
                    Answer::Snapshots { .. } => ui.warn(stays),
                    _ => ui.note("the object cache was damaged; it is fetched again, and whole"),
                }
                Ok(acquired)
            }
            acquired => Ok(acquired?),
        }
    }

    /// Reads all of the pin's objects that are in the cache. Where they are damaged
    /// the cache is passed over from here on, until others have taken its place. Says
    /// whether they are.
    ///
    /// # Errors
    /// The cache cannot be used.
    pub fn pass_over_damage(&mut self, pin: &Pin) -> Result<bool, CommandError> {
        let store = Store::new(&Cache::of_user()?, &pin.upstream);
        let here = match store.tree(pin.commit, pin.tree) {
            Ok(None) => return Ok(false),
            Ok(Some(_)) => store.prove(pin.commit, pin.tree).map(drop),
            Err(e) => Err(e),
        };
        match here {
            Err(e @ (GitError::Damaged { .. } | GitError::Open { .. })) => {
                self.damaged = Some(message(&e));
                Ok(true)
            }
            Err(e) => Err(e.into()),
            Ok(()) => Ok(false),
        }
    }
}

/// Whether this run may use the network.
#[must_use]
pub fn network(ui: &Ui) -> Network {
    if ui.offline() { Network::OffLimits } else { Network::Allowed }
}

/// Where cargo keeps what it fetches, by cargo's own rule.
#[must_use]
pub fn cargo_home() -> Option<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty());
    let usual = || Some(std::env::home_dir()?.join(".cargo"));
    std::path::absolute(named.map(PathBuf::from).or_else(usual)?).ok()
}

/// Runs `overlay fetch`.
///
/// # Errors
/// There is no such pin, or no source has it.
pub fn run(mut args: Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json])?;
    let pin = args.source.pin()?;
    args.source.pass_over_damage(&pin)?;
    let acquired = args.source.acquire(&pin, ui)?;
    print(&pin, &acquired, ui);
    Ok(Outcome::Done)
}

fn print(pin: &Pin, acquired: &Acquired, ui: &mut Ui) {
    let files = acquired.tree.paths().len();
    if ui.format() == Format::Json {
        ui.json(
            "fetch",
            1,
            &serde_json::json!({
                "pin": pin.commit,
                "tree": pin.tree,
                "source": acquired.source,
                "tried": acquired.tried,
                "files": files,
                "whole": is_whole(acquired),
            }),
        );
        return;
    }
    ui.line(format!("{} MLX {} of {}", paint(BOLD, pin.short()), pin.version, pin.date));
    source(acquired, ui);
    if is_whole(acquired) {
        ui.line(format!("  {} all {files} files, of tree {}", paint(GOOD, "whole"), pin.tree));
    }
}

/// Whether all of the pin's files are here: git objects, or released trees
/// that hold every one.
#[must_use]
pub fn is_whole(acquired: &Acquired) -> bool {
    acquired.source.coverage().is_none_or(|coverage| coverage.missing.is_empty())
}

/// Says which source answered and why those before it did not; of a partial
/// tree, how much is there and how to get the rest.
pub fn source(acquired: &Acquired, ui: &mut Ui) {
    for tried in &acquired.tried {
        ui.line(paint(DIM, format!("  not from {}: {}", tried.source, tried.why)));
    }
    ui.line(format!("  from {}", acquired.source.describe()));
    if let Some(coverage) = acquired.source.coverage() {
        gave(coverage, ui);
    }
}

/// What each released tree gave, and what is left.
fn gave(coverage: &Coverage, ui: &mut Ui) {
    let Coverage { listed, proven, parts, missing } = coverage;
    if !missing.is_empty() {
        ui.line(format!(
            "  {} {proven} of {listed} files are here and all of them are proven; for the other \
             {} fetch from a git repository (--from DIR or URL)",
            paint(WARN, "partial"),
            missing.len()
        ));
    }
    for part in parts {
        let bridged = match part.bridged {
            0 => String::new(),
            some => format!(", and {some} by its bridge"),
        };
        ui.line(paint(DIM, format!("  {}: {}{bridged}", part.source, part.files)));
        if let Some(problem) = &part.problem {
            ui.warn(problem);
        }
    }
}
