//! The commands, a file each.

use super::error::{CommandError, Outcome};
use super::ui::Ui;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {}

/// Runs one command.
///
/// # Errors
/// What the command says.
pub fn run(command: Command, _ui: &mut Ui) -> Result<Outcome, CommandError> {
    match command {}
}
