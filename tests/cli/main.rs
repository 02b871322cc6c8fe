//! The tool through its front door.

mod cases;
mod tool;
mod try_patch;

use std::process::ExitCode;

use overlay_tests_support::Suite;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    cases::add(&mut suite);
    try_patch::add(&mut suite);
    suite.run()
}
