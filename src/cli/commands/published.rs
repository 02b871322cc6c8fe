//! What `overlay status` and `overlay verify` share: finding the published
//! tree, and telling what a look at it gave.

use std::path::{Path, PathBuf};

use mlx_overlay_engine::identity;
use mlx_overlay_engine::pin::{PinError, Project};
use mlx_overlay_engine::publish::{self, Depth, ENGINE, Finding, PublishError, StampError, Survey};
use mlx_overlay_engine::rebase::session::State;
use mlx_overlay_engine::series::Series;

use crate::cli::error::{CommandError, ErrorKind, Outcome};
use crate::cli::remedy::{Apply, default_place, word};
use crate::cli::render;
use crate::cli::ui::{BAD, BOLD, DIM, Format, GOOD, Ui, WARN, paint};

/// Which tree to look at.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// The published tree; without it that of the project's pin, in
    /// target/overlay/
    #[arg(value_name = "DIR")]
    tree: Option<PathBuf>,
    /// The pin whose tree it is (a commit id, or its first digits)
    #[arg(long, value_name = "SHA", conflicts_with = "tree")]
    pin: Option<String>,
}

/// Looks at the tree and prints what there is to know; `under_way` is the rebase
/// that `status` tells of.
///
/// # Errors
/// No tree is published there, or its stamp cannot be read.
pub fn look(
    which: &Which,
    depth: Depth,
    under_way: Option<&State>,
    ui: &mut Ui,
) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json])?;
    let place = place(which)?;
    let project = project()?;
    let survey = publish::survey(&place, depth).map_err(|error| match error {
        PublishError::Stamp(StampError::Missing { .. }) => {
            CommandError::new(ErrorKind::Missing, error).hint(how_to_publish(which, &place))
        }
        error => Apply::of_place(project.as_ref(), &place).mends(error),
    })?;
    let outdated = match &project {
        Some(project) => outdated(project, &survey)?,
        None => None,
    };
    match ui.format() {
        Format::Json => print_json(&survey, depth, outdated, under_way, ui),
        _ => {
            let again = Apply::of_tree(project.as_ref(), &survey.stamp.identity, &place);
            print_text(&place, &survey, depth, outdated, &again, ui);
        }
    }
    let well = survey.is_whole() && outdated != Some(true);
    Ok(if well { Outcome::Done } else { Outcome::NeedsPerson })
}

/// The command that puts a tree where none was found.
fn how_to_publish(which: &Which, place: &Path) -> String {
    let apply = match (&which.tree, &which.pin) {
        (Some(tree), _) => format!("`overlay apply --out {}`", word(&tree.display().to_string())),
        (None, Some(pin)) => format!("`overlay apply --pin {pin}`"),
        (None, None) => "`overlay apply`".to_owned(),
    };
    let mut items = std::fs::read_dir(place).into_iter().flatten();
    match items.next() {
        None => format!("{apply} publishes a tree there"),
        // What apply finds there it leaves alone, and refuses.
        Some(_) if which.tree.is_some() => format!(
            "it holds other files: name a tree that `overlay apply` published, or a new folder \
             to {apply}"
        ),
        Some(_) => format!("move what is there out of the way; then {apply} publishes a tree"),
    }
}

/// The project here, if there is one.
///
/// # Errors
/// It cannot be read.
pub fn project() -> Result<Option<Project>, CommandError> {
    match Project::find(&std::env::current_dir()?) {
        Ok(project) => Ok(Some(project)),
        Err(PinError::NoProject { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the series of the tree's pin has changed since the tree was laid;
/// nothing where the project has no such pin.
fn outdated(project: &Project, survey: &Survey) -> Result<Option<bool>, CommandError> {
    let stamped = &survey.stamp.identity;
    let Some(pin) = project.pins().find(|pin| pin.commit == stamped.pin) else { return Ok(None) };
    let series = Series::load(pin)?;
    // A group that the series no longer has is a change too.
    let Ok(entries) = series.select(&stamped.groups) else { return Ok(Some(true)) };
    let mut wish = identity::whole(pin, &entries, &stamped.groups);
    wish.trial.clone_from(&stamped.trial);
    let stale = !identity::same_wish(stamped, &wish) || survey.stamp.engine != ENGINE;
    Ok(Some(stale))
}

/// Where the tree is that was asked for.
///
/// # Errors
/// There is no project here, or it has no such pin.
pub fn place(which: &Which) -> Result<PathBuf, CommandError> {
    if let Some(tree) = &which.tree {
        return Ok(tree.clone());
    }
    let project = Project::find(&std::env::current_dir()?)?;
    let pin = project.select(which.pin.as_deref())?;
    Ok(default_place(&project, pin, None))
}

/// Nothing is where the tree that was asked for is to be.
#[must_use]
pub fn missing(which: &Which, place: &Path) -> CommandError {
    let missing = anyhow::anyhow!("`{}` is not there", place.display());
    CommandError::new(ErrorKind::Missing, missing).hint(how_to_publish(which, place))
}

fn print_json(
    survey: &Survey,
    depth: Depth,
    outdated: Option<bool>,
    under_way: Option<&State>,
    ui: &mut Ui,
) {
    let schema = match depth {
        Depth::Stat => "status",
        Depth::Hash => "verify",
    };
    let mut result = serde_json::json!({
        "tree": survey.place.display().to_string(),
        "whole": survey.is_whole(),
        "files": survey.stamp.files.len(),
        "hashed": survey.hashed,
        "outdated": outdated,
        "engine": survey.stamp.engine,
        "identity": survey.stamp.identity,
        "findings": survey.findings,
    });
    if depth == Depth::Stat {
        result["rebase"] = under_way.map(rebase).into();
    }
    ui.json(schema, 1, &result);
}

/// A rebase that is under way, for programs.
#[must_use]
pub fn rebase(state: &State) -> serde_json::Value {
    let State { from, to, name, stopped, contracts, publishing, .. } = state;
    serde_json::json!({
        "from": from, "to": to, "name": name, "stopped": stopped, "contracts": contracts,
        "publishing": publishing,
    })
}

/// Whether what is not of the tree stands where a file of the tree belongs, or
/// where one of its folders does.
fn is_blocked(path: &Path, survey: &Survey) -> bool {
    survey.findings.iter().any(|finding| match finding {
        Finding::Extra { path: extra } => {
            path.starts_with(extra.trim_end_matches('/')) || Path::new(extra).starts_with(path)
        }
        _ => false,
    })
}

fn print_text(
    place: &Path,
    survey: &Survey,
    depth: Depth,
    outdated: Option<bool>,
    again: &Apply,
    ui: &mut Ui,
) {
    let identity = &survey.stamp.identity;
    ui.line(paint(BOLD, place.display()));
    ui.line(format!("  pin     {}", identity.pin));
    ui.line(format!("  series  {}", identity.series));
    if !identity.groups.is_empty() {
        ui.line(format!("  groups  {}", identity.groups.join(", ")));
    }
    for finding in &survey.findings {
        let style = match finding {
            f if f.is_change() => BAD,
            Finding::Extra { .. } | Finding::InProgress => DIM,
            _ => WARN,
        };
        ui.line(format!("  {}", paint(style, finding)));
    }
    let files = survey.stamp.files.len();
    let changes = || survey.findings.iter().filter(|f| f.is_change());
    let gone = changes().all(|f| matches!(f, Finding::Missing { .. }));
    let blocked = changes().any(
        |f| matches!(f, Finding::Missing { path } if is_blocked(Path::new(path.as_str()), survey)),
    );
    let looked = match depth {
        Depth::Stat => "by their size and time (`overlay verify` hashes all)",
        Depth::Hash => "every one hashed",
    };
    ui.line(match changes().count() {
        0 => paint(GOOD, format!("All {} as published, {looked}.", render::count(files, "file"))),
        n if gone && blocked => ui.pasted(&format!(
            "{} missing since it was published; {} puts back what is missing, over what is in \
             its way.",
            render::count(n, "file"),
            again.with("--force")
        )),
        n if gone => ui.pasted(&format!(
            "{} missing since it was published; {} puts back what is missing.",
            render::count(n, "file"),
            again.with("")
        )),
        n => ui.pasted(&format!(
            "{} changed since it was published; {} overwrites what was edited.",
            render::count(n, "file"),
            again.with("--force")
        )),
    });
    if outdated == Some(true) {
        let lays = again.with("");
        let text = format!("The series has changed since this tree was laid: {lays} lays it.");
        ui.line(paint(WARN, ui.pasted(&text)));
    }
}
