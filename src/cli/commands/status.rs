//! `overlay status`: a quick look at a published tree.

use mlx_overlay_engine::pin::Project;
use mlx_overlay_engine::publish::Depth;
use mlx_overlay_engine::rebase::session;

use super::published::{self, Which};
use crate::cli::error::{CommandError, ErrorKind, Outcome};
use crate::cli::ui::{Format, Ui};

/// Say whether a published tree is as it was published
///
/// A quick look: the size, time and mode of every file against the tree's
/// stamp, and a hash of those that differ. Names what was edited by hand, what
/// is missing, what is not of the tree, and whether the tree is partial, a
/// trial, or laid by another version, and whether the series has changed since.
/// Of a rebase that is under way it says where it stands.
/// Exit status 1 when a file changed or the tree is out of date.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  overlay status                          the tree of this project's pin
  overlay status target/overlay/9a795735  a tree by its folder
  overlay status --format json            for programs")]
pub struct Args {
    #[command(flatten)]
    which: Which,
}

/// Runs `overlay status`.
///
/// # Errors
/// No tree is published there, or its stamp cannot be read.
pub fn run(args: &Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    let under_way = Project::find(&std::env::current_dir()?).ok();
    let under_way = under_way.map(|p| session::standing(&p.root)).transpose()?.flatten();
    if let Some(state) = &under_way {
        let to = &state.to.to_string()[..8];
        let at = match state.stopped.as_deref() {
            Some("contracts") => {
                let names = state.contracts.join(", ");
                // The state of an older version does not name them.
                let names = if names.is_empty() { names } else { format!(" ({names})") };
                format!("stopped at contracts that do not hold{names}")
            }
            Some(entry) => format!("stopped at `{entry}`"),
            None => "was stopped from outside".to_owned(),
        };
        ui.warn(format!(
            "a rebase to {} ({to}) is under way and {at}; `{} rebase` says what to do next",
            state.name,
            ui.program()
        ));
    }
    let looked = published::look(&args.which, Depth::Stat, under_way.as_ref(), ui);
    match (looked, &under_way) {
        // Before the first `overlay apply` there is a rebase to tell of all the same.
        (Err(error), Some(state)) if error.kind == ErrorKind::Missing => {
            if ui.format() == Format::Json {
                let rebase = published::rebase(state);
                ui.json("status", 1, &serde_json::json!({ "tree": null, "rebase": rebase }));
            } else {
                ui.line("No tree is published.");
            }
            Ok(Outcome::NeedsPerson)
        }
        (looked, _) => looked,
    }
}
