//! `overlay apply`: the series on the pin, published.

use std::path::{Path, PathBuf};

use mlx_overlay_engine::acquire::{Acquired, PinTree};
use mlx_overlay_engine::cache::Cache;
use mlx_overlay_engine::contract::{ContractKind, Contracts, Verdict};
use mlx_overlay_engine::drift::{self, Judgement};
use mlx_overlay_engine::git::Store;
use mlx_overlay_engine::identity;
use mlx_overlay_engine::lay::EntryReport;
use mlx_overlay_engine::listing::Listing;
use mlx_overlay_engine::pin::{Pin, Project};
use mlx_overlay_engine::publish::{
    self, Action, Depth, ENGINE, Force, Identity, Options, Plan, PublishError, Source, StampError,
    Survey,
};
use mlx_overlay_engine::series::{Entry, Series};
use mlx_overlay_engine::snapshot::{MemoryTree, Remembered, Tree};
use mlx_overlay_engine::source::SnapshotSource;
use serde_json::json;

use super::fetch::{SourceArgs, is_whole};
use crate::cli::ends::released_tree;
use crate::cli::error::{CommandError, DAMAGED, ErrorKind, Outcome};
use crate::cli::progress::Writing;
use crate::cli::remedy::{Apply, default_place};
use crate::cli::render;
use crate::cli::ui::{BOLD, Format, Ui, WARN, paint};

/// Lay the series on MLX at the pin, and publish the tree
///
/// Fetches the pin's files if they are not at hand, lays the series over them
/// in memory, and says hunk by hunk what landed where. Only where all of it
/// holds is a tree written, beside its place, and moved there in one step;
/// files that stay as they were keep their time of writing, so that a build
/// compiles only what changed. Again with nothing changed it says so and
/// touches nothing.
///
/// Where no git host is reached the tree is partial: the files that released
/// packages prove, marked so, refused by a build. --at lays the series on a
/// released tree instead, mapped from the pin: whole, and marked as a trial. It
/// is laid under the same rule as the pin's: a contract that does not hold there
/// stops it, until series.toml accepts it for that tree.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  overlay apply --pin 9a795735                         into target/overlay/9a795735/
  overlay apply --from ../mlx                          take the pin's objects from a clone
  overlay apply --at crate:mlxrs-sys@0.2.0:vendor/mlx  on the tree of another release")]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Where to publish; target/overlay/<pin>/ beside mlx-pin.toml if not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Lay the entries of this group only; may be given again
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Lay the series on a released tree: crate:NAME@VERSION:folder, where the
    /// folder is the tree's in the package
    #[arg(long, value_name = "SNAPSHOT")]
    at: Option<SnapshotSource>,
    /// Overwrite hand edits in the published tree; of a partial tree, ask the
    /// sources again for what it lacks; where no source at hand has all of a
    /// whole tree, lay the part in its place
    #[arg(long)]
    force: bool,
    /// Say what would be done, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `overlay apply`.
///
/// # Errors
/// No source has the pin's files, the series is refused, or the place cannot
/// be written.
pub fn run(mut args: Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json])?;
    // The order of the series counts, not that of the groups.
    args.groups.sort();
    args.groups.dedup();
    let project = Project::find(&std::env::current_dir()?)?;
    let pin = project.select(args.source.pin.as_deref())?;
    match lay_once(&args, &project, pin, ui) {
        // Found only when a file was read. Nothing is written before all are.
        Err(error)
            if error.reason.as_deref() == Some(DAMAGED) && args.source.pass_over_damage(pin)? =>
        {
            lay_once(&args, &project, pin, ui)
        }
        done => done,
    }
}

fn lay_once(
    args: &Args,
    project: &Project,
    pin: &Pin,
    ui: &mut Ui,
) -> Result<Outcome, CommandError> {
    let series = Series::load(pin)?;
    let entries = series.select(&args.groups)?;
    let at = args.at.as_ref().map(ToString::to_string);
    let place = args.out.clone().unwrap_or_else(|| default_place(project, pin, at.as_deref()));
    let again = Apply::at(project, pin, at.as_deref(), args.out.as_deref()).groups(&args.groups);

    let force = if args.force { Force::Overwrite } else { Force::Refuse };
    let published = survey(&place, force, &again)?;
    if let Some(survey) = &published
        && is_current(survey, args, pin, &series.contracts, &entries)?
    {
        print_current(ui, pin, survey, &again);
        return Ok(Outcome::Done);
    }

    // Git objects do not need it. Whoever has none does, and a fault is found before.
    pin.load_listing()?;
    let acquired = args.source.acquire(pin, ui)?;
    if let Some(survey) = &published
        && !args.force
        && args.at.is_none()
    {
        keeps_whole(survey, pin, &acquired, &again)?;
    }
    let released = match &args.at {
        Some(source) => Some(released_tree(source, pin, ui)?),
        None => None,
    };
    let pin_tree = Remembered::new(&acquired.tree);
    let (target, id): (&dyn Tree, _) = match (&released, &args.at) {
        (Some(tree), Some(at)) => (tree, at.to_string()),
        _ => (&pin_tree, pin.commit.to_string()),
    };
    let judge = || drift::lay_and_check(&series, &args.groups, &pin_tree, target, &id);
    // All of the pin's files will be read where nothing is yet.
    let judged = match published.is_none() && released.is_none() {
        true => pin_tree.reading_ahead(judge),
        false => judge(),
    };
    let (laid, tree) = judged.map_err(|e| short_of(e, &acquired))?;
    let Judgement { entries: reports, contracts } = &laid;
    let kept = contracts.iter().all(|c| c.status.holds());
    let holds = kept && reports.iter().all(EntryReport::holds);
    let identity = Identity {
        contracts: identity::of_contracts(&series.contracts),
        ..identify(args, pin, &entries, &acquired, released.as_ref())?
    };
    if !holds {
        print(ui, pin, &acquired, &identity, &laid, None, &again);
        return Ok(Outcome::NeedsPerson);
    }
    let plan = if args.dry_run {
        publish::plan(&place, &tree, &identity, force).map_err(|e| again.mends(e))?
    } else {
        pin_tree.forget();
        let writing = Writing::new(ui);
        let watch = |event: publish::Event<'_>| writing.tell(event);
        let options = Options { force, watch: &watch, ..Options::default() };
        publish::publish(&place, &tree, &identity, &options).map_err(|e| again.mends(e))?.plan
    };
    let done = Done { place, plan, dry_run: args.dry_run };
    print(ui, pin, &acquired, &identity, &laid, Some(&done), &again);
    Ok(Outcome::Done)
}

/// What was written, or would be.
struct Done {
    place: PathBuf,
    plan: Plan,
    dry_run: bool,
}

/// What is published at the place; nothing where no tree is.
fn survey(place: &Path, force: Force, again: &Apply) -> Result<Option<Survey>, CommandError> {
    let depth = match force {
        Force::Overwrite => Depth::Hash,
        Force::Refuse => Depth::Stat,
    };
    match publish::survey(place, depth) {
        Ok(survey) => Ok(Some(survey)),
        // Whether the place is fit to write to is asked when it is written to.
        Err(PublishError::Stamp(StampError::Missing { .. }) | PublishError::NotAFolder { .. }) => {
            Ok(None)
        }
        Err(PublishError::Stamp(error)) if error.is_lost() && force == Force::Overwrite => Ok(None),
        Err(error) => Err(again.mends(error)),
    }
}

/// An error, with what kept files away where one is missing.
fn short_of(error: impl Into<CommandError>, acquired: &Acquired) -> CommandError {
    let error = error.into();
    if error.kind != ErrorKind::Missing {
        return error;
    }
    problems(acquired).fold(error, |error, problem| error.besides(problem))
}

/// Why released trees gave less than they could.
fn problems(acquired: &Acquired) -> impl Iterator<Item = &String> {
    let parts = acquired.source.coverage().map_or(&[][..], |coverage| &coverage.parts);
    parts.iter().filter_map(|part| part.problem.as_ref())
}

/// Refuses to put a part of the pin in the place of a tree that has all of it.
fn keeps_whole(
    survey: &Survey,
    pin: &Pin,
    acquired: &Acquired,
    again: &Apply,
) -> Result<(), CommandError> {
    let Identity { pin: of, partial, trial, .. } = &survey.stamp.identity;
    let was_whole = *of == pin.commit && partial.is_none() && trial.is_none();
    let Some(coverage) = acquired.source.coverage().filter(|_| was_whole && !is_whole(acquired))
    else {
        return Ok(());
    };
    Err(CommandError::new(
        ErrorKind::Missing,
        anyhow::anyhow!(
            "{} has all {} files of the pin, and no source at hand has more than {}",
            survey.place.display(),
            coverage.listed,
            coverage.proven
        ),
    )
    .hint(format!("{} lays the whole tree", again.with("--from <clone of MLX>")))
    .hint(format!("{} lays the part, which no build takes", again.with("--force"))))
}

/// Whether there is nothing to do: the tree is what is wished for, from a
/// source that could not do better now.
fn is_current(
    survey: &Survey,
    args: &Args,
    pin: &Pin,
    contracts: &Contracts,
    entries: &[&Entry],
) -> Result<bool, CommandError> {
    let stamp = &survey.stamp;
    let mut wish = identity::whole(pin, entries, &args.groups);
    wish.trial = args.at.as_ref().map(ToString::to_string);
    // A contract changes no file, but it may not hold.
    let held = stamp.identity.contracts == identity::of_contracts(contracts);
    if !survey.is_whole()
        || stamp.engine != ENGINE
        || !identity::same_wish(&stamp.identity, &wish)
        || !held
    {
        return Ok(false);
    }
    if stamp.identity.partial.is_none() {
        return Ok(true);
    }
    // A partial tree is as good as it gets until somebody names a repository,
    // asks again, or the pin was fetched.
    if args.force {
        return Ok(false);
    }
    let store = Store::new(&Cache::of_user()?, &pin.upstream);
    Ok(args.source.named().is_none() && !matches!(store.tree(pin.commit, pin.tree), Ok(Some(_))))
}

fn identify(
    args: &Args,
    pin: &Pin,
    entries: &[&Entry],
    acquired: &Acquired,
    released: Option<&MemoryTree>,
) -> Result<Identity, CommandError> {
    if let (Some(source), Some(tree)) = (&args.at, released) {
        let listing = Listing::of(tree)?;
        return Ok(identity::trial(pin, entries, &args.groups, &listing, &source.to_string()));
    }
    let PinTree::Proven(tree) = &acquired.tree else {
        return Ok(identity::whole(pin, entries, &args.groups));
    };
    let coverage = tree.coverage();
    let from = coverage.parts.iter().filter(|p| p.files + p.bridged > 0);
    let from = from.map(|p| p.source.clone()).collect();
    let have = Listing::of(tree)?;
    Ok(identity::proven(pin, entries, &args.groups, &have, coverage.listed, from))
}

fn print_current(ui: &mut Ui, pin: &Pin, survey: &Survey, again: &Apply) {
    let identity = &survey.stamp.identity;
    if ui.format() == Format::Json {
        ui.json(
            "apply",
            1,
            &json!({
                "pin": pin.commit, "holds": true, "place": survey.place, "action": "nothing",
                "source": null, "tried": [], "groups": identity.groups,
                "partial": identity.partial, "trial": identity.trial,
                "patches": null, "contracts": null, "dry_run": null, "plan": null,
                "hashed": survey.hashed, "silent": silent(pin, identity),
            }),
        );
        return;
    }
    ui.line(format!(
        "Nothing to do: {} is the series on {} ({} checked, {} of them hashed).",
        survey.place.display(),
        pin.short(),
        render::count(survey.stamp.files.len(), "file"),
        survey.hashed
    ));
    marks(ui, identity, again);
    let silent = silent(pin, identity);
    if !silent.is_empty() {
        ui.line(ui.pasted(&format!(
            "It has nothing from {}, which had no answer when it was laid: {} asks again \
             (`overlay doctor` says what that needs).",
            silent.join(", "),
            again.with("--force")
        )));
    }
}

/// The snapshots of the pin that gave a partial tree nothing.
fn silent(pin: &Pin, identity: &Identity) -> Vec<String> {
    let (Some(_), Source::Snapshot { from, .. }) = (identity.partial, &identity.source) else {
        return Vec::new();
    };
    let names = pin.snapshots.iter().map(|snapshot| snapshot.source.to_string());
    names.filter(|name| !from.contains(name)).collect()
}

fn print(
    ui: &mut Ui,
    pin: &Pin,
    acquired: &Acquired,
    identity: &Identity,
    laid: &Judgement,
    done: Option<&Done>,
    again: &Apply,
) {
    let Judgement { entries: reports, contracts } = laid;
    if ui.format() == Format::Json {
        ui.json(
            "apply",
            1,
            &json!({
                "pin": pin.commit, "holds": done.is_some(),
                "source": acquired.source, "tried": acquired.tried,
                "partial": identity.partial, "trial": identity.trial, "groups": identity.groups,
                "patches": reports, "contracts": contracts,
                "place": done.map(|d| &d.place), "action": done.map(|d| d.plan.action),
                "dry_run": done.map(|d| d.dry_run), "plan": done.map(|d| &d.plan),
            }),
        );
        return;
    }
    ui.line(format!("{} {} ({}, {})", paint(BOLD, "pin"), pin.short(), pin.version, pin.date));
    for tried in &acquired.tried {
        ui.line(format!("  not from {}: {}", tried.source, tried.why));
    }
    ui.line(format!("{} {}", paint(BOLD, "from"), acquired.source.describe()));
    problems(acquired).for_each(|problem| ui.warn(problem));
    reports.iter().for_each(|r| render::entry(ui, r));
    let broken: Vec<&Verdict> = contracts.iter().filter(|c| !c.status.holds()).collect();
    for verdict in &broken {
        let status = paint(WARN, format!("{:<12}", verdict.status.as_str()));
        ui.line(format!("  {status} {}: {}", verdict.key(), verdict.what));
    }
    let hunks: Vec<_> = reports.iter().flat_map(|r| &r.patch.hunks).collect();
    let held = reports.iter().filter(|r| r.holds()).count();
    let counts = format!(
        "{} of {}, {}, {} of {}",
        held,
        render::entries(reports.len()),
        render::count(hunks.len(), "hunk"),
        contracts.len() - broken.len(),
        render::count(contracts.len(), "contract")
    );
    let Some(Done { place, plan, dry_run }) = done else {
        ui.line(format!("{counts}: not all hold. Nothing was written."));
        // At its own pin the series itself is wrong.
        if let Some(target) = &identity.trial
            && broken.iter().any(|c| c.kind != ContractKind::Note)
        {
            ui.line(format!(
                "A person accepts what changed by a line under the contract in series.toml: \
                 acknowledged = [{{ target = \"{target}\", reason = \"…\" }}]"
            ));
        }
        return;
    };
    let verb = match (dry_run, plan.action) {
        (_, Action::Nothing) => "Unchanged:",
        (true, _) => "Would write",
        (false, _) => "Laid",
    };
    ui.line(format!(
        "{counts} hold. {verb} {} ({} {}, {} kept, {} removed).",
        place.display(),
        render::count(plan.write.len(), "file"),
        if *dry_run { "to write" } else { "written" },
        plan.keep,
        plan.remove.len()
    ));
    let (lost, kept) = match dry_run {
        true => ("would be overwritten", "it would stay"),
        false => ("overwritten", "it was kept"),
    };
    for finding in &plan.overwrite {
        ui.line(format!("  {} {lost}: {finding}", paint(WARN, "hand edit")));
    }
    for path in &plan.foreign {
        ui.line(format!("  {path} is not of the tree; {kept}"));
    }
    marks(ui, identity, again);
}

/// What a reader must know of the tree besides that it is there.
fn marks(ui: &mut Ui, identity: &Identity, again: &Apply) {
    if let Some(partial) = identity.partial {
        ui.line(ui.pasted(&format!(
            "{} {} of {} files are there, each proven by its blob id; a build refuses the tree. \
             The rest needs a git repository: {}, or `overlay apply --at \
             crate:NAME@VERSION:folder` for a whole tree of another release.",
            paint(WARN, "partial:"),
            partial.have,
            partial.of,
            again.with("--from <clone or URL>")
        )));
    }
    if let Some(trial) = &identity.trial {
        ui.line(format!(
            "{} the series laid on {trial}, not on the pin; the pin is unmoved.",
            paint(WARN, "trial:")
        ));
    }
}
