//! The command line: it parses, asks the engine, and prints. It decides
//! nothing that the engine could decide.
//!
//! A command is a file in [`commands`]: an `Args` struct whose doc comment is
//! the help text, and `run(args, &mut Ui) -> Result<Outcome, CommandError>`.

pub mod commands;
pub mod ends;
pub mod error;
mod faults;
pub mod progress;
pub mod remedy;
pub mod render;
pub mod render_drift;
pub mod render_rebase;
pub mod ui;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use self::commands::Command;
use self::error::{CommandError, Outcome, exit_status};
use self::ui::{ColorWhen, Format, Ui};

/// Keep a small set of changes alive on a pinned MLX.
///
/// `overlay` fetches MLX at the commit that mlx-pin.toml names, lays the series
/// of patches/<pin>/ over it, and says hunk by hunk what landed where. A hunk
/// lands only where it is proven to belong; nothing is written unless the whole
/// series holds.
///
/// Exit status: 0 done; 1 something needs a person, and everything is as it
/// was; 2 usage; 3 bad input refused; 4 a source or a tool is missing; 5 failed
/// for another reason.
#[derive(Debug, Parser)]
#[command(name = "overlay", version, max_term_width = 100, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

/// Under what the help lists what every command takes.
const EVERYWHERE: &str = "Options of every command";

/// What every command takes.
#[derive(Debug, clap::Args)]
struct GlobalArgs {
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = EVERYWHERE)]
    directory: Option<PathBuf>,
    /// How to print the result (markdown: drift and rebase alone)
    #[arg(long, value_enum, default_value_t, global = true, help_heading = EVERYWHERE)]
    format: Format,
    /// When to colour: auto is on a terminal only, never under NO_COLOR, and
    /// elsewhere too under CLICOLOR_FORCE (but 0)
    #[arg(long, value_enum, default_value_t, global = true, help_heading = EVERYWHERE, value_name = "WHEN")]
    color: ColorWhen,
    /// Never touch the network
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    offline: bool,
    /// Print no progress
    #[arg(short, long, global = true, help_heading = EVERYWHERE)]
    quiet: bool,
}

/// Runs the program and gives its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut command = Cli::command().color(ColorWhen::asked(&words).of_clap());
    let parsed = command
        .try_get_matches_from_mut(&words)
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command)));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(usage) => {
            let failed = usage.use_stderr();
            if failed && wants_json(&words) {
                let what = usage.render().to_string();
                let error = CommandError::usage(what.trim_start_matches("error: ").to_owned());
                let ui = Ui::new(Format::Json, ColorWhen::Never, true, true);
                return ui.finish(Err(error));
            }
            // Nothing can be done about a closed terminal.
            let _ = usage.print();
            let said = if failed { Err(CommandError::usage("")) } else { Ok(Outcome::Done) };
            return ExitCode::from(exit_status(&said));
        }
    };
    let GlobalArgs { directory, format, color, offline, quiet } = cli.global;
    let mut ui = Ui::new(format, color, quiet, offline);
    if let Some(directory) = directory {
        if let Err(error) = std::env::set_current_dir(&directory) {
            let what = format!("cannot change to `{}`: {error}", directory.display());
            return ui.finish(Err(CommandError::usage(what)));
        }
        ui = ui.started_in(&directory);
    }
    let result = commands::run(cli.command, &mut ui);
    ui.finish(result)
}

/// Whether a command line that cannot be read asks for JSON all the same.
fn wants_json(words: &[OsString]) -> bool {
    words.iter().any(|w| w == "--format=json")
        || words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
}
