//! The tool through its front door.

use std::process::ExitCode;

fn main() -> ExitCode {
    overlay_tests_support::Suite::new().run()
}
