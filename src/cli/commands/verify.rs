//! `overlay verify`: every byte of a published tree, or what its kernels do.

use mlx_overlay_engine::publish::Depth;
use mlx_overlay_harness::Set;

use super::published::{self, Which};
use super::verify_kernels;
use crate::cli::error::{CommandError, ErrorKind, Outcome};
use crate::cli::ui::Ui;

/// Hash every file of a published tree, or prove its kernels
///
/// As `overlay status`, but no file is taken by its size and time: each is
/// read, and its blob id compared with the one it was published with. Exit
/// status 1 when a file changed, or when the series has changed since the tree
/// was laid.
///
/// With --kernels the tree's kernels are proven instead, on the host and by
/// their own text: the streamed twins against `qmv`, in numbers, expressions
/// and loads, and the host Metal against Apple's compiled `qmv` and `qmv_wide`.
/// Mutants of the text and wrong compile modes show that the proofs can fail:
/// each must be caught by one proof at least, in a few shapes of its own. The
/// quick set leaves much to --full, and the report says what. No Apple GPU is
/// asked. Needs clang, LLVM and the released macOS wheel, which is downloaded
/// once; takes a few minutes. Any tree with this series laid will do,
/// published or not: a tree whose streamed kernels read otherwise is refused,
/// for the mutants are made of their text. Exit status 1 when a proof fails or
/// a mutant survives.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  overlay verify                          the tree of this project's pin
  overlay verify target/overlay/9a795735  a tree by its folder
  overlay verify --kernels                prove the kernels of this project's tree
  overlay verify --kernels --full DIR     the full set, of any laid tree")]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Prove the kernels instead
    #[arg(long)]
    kernels: bool,
    /// The full set: every kernel and shape at M from 2 to 32, in half an hour of
    /// CPU time
    #[arg(long, requires = "kernels")]
    full: bool,
}

/// Runs `overlay verify`.
///
/// # Errors
/// No tree is published there, or its stamp cannot be read; with --kernels,
/// what [`verify_kernels::run`] says.
pub fn run(args: &Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    if args.kernels {
        let set = if args.full { Set::Full } else { Set::Quick };
        let place = published::place(&args.which)?;
        return verify_kernels::run(&place, set, ui).map_err(|error| match error.kind {
            ErrorKind::Refused if !place.exists() => published::missing(&args.which, &place),
            _ => error,
        });
    }
    published::look(&args.which, Depth::Hash, None, ui)
}
