//! The tool through its front door.

use std::process::ExitCode;

fn main() -> ExitCode {
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), Vec::new()).exit_code()
}
