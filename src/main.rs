//! The `overlay` program: parse, ask the engine, print.

use std::process::ExitCode;

fn main() -> ExitCode {
    mlx_overlay::cli::main()
}
