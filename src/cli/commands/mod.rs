//! The commands, a file each.

mod drift;
mod try_patch;

use super::error::{CommandError, Outcome};
use super::ui::Ui;

/// What to do.
#[allow(missing_docs, reason = "a doc comment here would replace the help text of the arguments")]
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Drift(drift::Args),
    Try(try_patch::Args),
}

/// Runs one command.
///
/// # Errors
/// What the command says.
pub fn run(command: Command, ui: &mut Ui) -> Result<Outcome, CommandError> {
    match command {
        Command::Drift(args) => drift::run(args, ui),
        Command::Try(args) => try_patch::run(args, ui),
    }
}
