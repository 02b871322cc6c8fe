//! The bridge against the MLX that is linked: on Linux, its CPU backend.

#![allow(clippy::unwrap_used)]

mod tests;

use std::process::ExitCode;

use overlay_tests_support::Suite;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    for (name, test) in tests::ALL {
        suite.test(*name, test);
    }
    suite.run()
}
