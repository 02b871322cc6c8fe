//! The commands, a file each.

mod apply;
mod doctor;
mod drift;
mod env;
pub mod fetch;
mod pin;
pub mod published;
mod rebase;
mod status;
mod try_patch;
mod verify;
mod verify_kernels;

use super::error::{CommandError, Outcome};
use super::ui::Ui;

/// What to do.
#[allow(missing_docs, reason = "a doc comment here would replace the help text of the arguments")]
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Fetch(fetch::Args),
    Apply(apply::Args),
    Status(status::Args),
    Verify(verify::Args),
    Drift(drift::Args),
    Rebase(rebase::Args),
    Env(env::Args),
    Try(try_patch::Args),
    Pin(pin::Args),
    Doctor(doctor::Args),
}

/// Runs one command.
///
/// # Errors
/// What the command says.
pub fn run(command: Command, ui: &mut Ui) -> Result<Outcome, CommandError> {
    match command {
        Command::Apply(args) => apply::run(args, ui),
        Command::Fetch(args) => fetch::run(args, ui),
        Command::Status(args) => status::run(&args, ui),
        Command::Verify(args) => verify::run(&args, ui),
        Command::Drift(args) => drift::run(args, ui),
        Command::Rebase(args) => rebase::run(args, ui),
        Command::Env(args) => env::run(&args, ui),
        Command::Try(args) => try_patch::run(args, ui),
        Command::Pin(args) => pin::run(args, ui),
        Command::Doctor(args) => doctor::run(args, ui),
    }
}
