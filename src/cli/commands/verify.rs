//! `overlay verify`: every byte of a published tree.

use mlx_overlay_engine::publish::Depth;

use super::published::{self, Which};
use crate::cli::error::{CommandError, Outcome};
use crate::cli::ui::Ui;

/// Hash every file of a published tree
///
/// As `overlay status`, but no file is taken by its size and time: each is
/// read, and its blob id compared with the one it was published with. Exit
/// status 1 when a file changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  overlay verify                          the tree of this project's pin
  overlay verify target/overlay/9a795735  a tree by its folder")]
pub struct Args {
    #[command(flatten)]
    which: Which,
}

/// Runs `overlay verify`.
///
/// # Errors
/// No tree is published there, or its stamp cannot be read.
pub fn run(args: &Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    published::look(&args.which, Depth::Hash, ui)
}
