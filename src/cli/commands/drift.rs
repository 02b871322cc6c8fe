//! `overlay drift`: the series on another upstream commit, pin unmoved.

use mlx_overlay_engine::drift::{Report, judge_and_trace};

use crate::cli::ends::{EndArgs, Start, Target};
use crate::cli::error::{CommandError, Outcome};
use crate::cli::render_drift::{self, Shown};
use crate::cli::ui::{Format, Ui};

/// Say what a bump of the pin would break, and who broke it
///
/// The series is laid, in memory, on another upstream commit: every hunk,
/// derived function and contract is mapped from the pin's text to the target's
/// and gets exactly one class. For each that is not `exact`, `moved` or `held`
/// the first upstream commit after which it is so is named, with its pull
/// request. Nothing is written, and the pin stays.
///
/// Commits, tags and branches are looked up in a clone of upstream (--from, or
/// MLX_OVERLAY_UPSTREAM); without one upstream's history is fetched into the
/// cache, and later what is new. A released tree needs neither, and has no commits
/// to name.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  overlay drift --to v0.32.2                            what would that release break?
  overlay drift --to main --history --from ~/src/mlx    commit by commit, in a clone
  overlay drift --to crate:mlxrs-sys@0.2.0:vendor/mlx   a released tree, no git host needed")]
pub struct Args {
    #[command(flatten)]
    ends: EndArgs,
    /// List every upstream commit on the way after which something is another
    #[arg(long)]
    history: bool,
    /// List what holds too, hunk by hunk
    #[arg(long)]
    all: bool,
    /// Show what changed: the diffs of contracts, and around hunks
    #[arg(long)]
    diff: bool,
}

/// Runs `overlay drift`.
///
/// # Errors
/// The pin, the series or the target cannot be read, or the series does not
/// hold at its own pin.
pub fn run(args: Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json, Format::Markdown])?;
    let start = Start::open(&args.ends, ui)?;
    let target = start.target(args.ends.to(), ui)?;
    let mut report = report(&start, &target, ui)?;
    if !args.history {
        report.history = None;
    } else if report.history.is_none() {
        ui.warn("--history has nothing to list: no commits lead to this target here");
    }
    let shown = Shown { all: args.all, diff: args.diff };
    match ui.format() {
        Format::Json => ui.json("drift", 1, &report),
        Format::Markdown => render_drift::markdown(ui, &report, shown),
        _ => render_drift::text(ui, &report, shown),
    }
    Ok(if report.holds { Outcome::Done } else { Outcome::NeedsPerson })
}

/// Judges the series at the target, and traces it where there is a history.
///
/// # Errors
/// As [`run`].
pub fn report(start: &Start, target: &Target, ui: &mut Ui) -> Result<Report, CommandError> {
    let way = start.way(target, ui);
    let (found, trace) = judge_and_trace(
        &start.series,
        (start.tree.as_ref(), start.pin.commit),
        (target.tree.as_ref(), &target.id),
        way,
    )
    .map_err(|e| start.not_at_pin(e))?;
    Ok(Report::new(start.end(), target.end.clone(), found, trace))
}
