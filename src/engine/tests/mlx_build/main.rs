//! Building and storing, on a project of three files that stands in for MLX.

#![allow(clippy::unwrap_used)]

mod pinned;
mod project;
mod tests;

use std::process::ExitCode;

use overlay_tests_support::{Need, Suite};

fn needs() -> [Need; 4] {
    [
        Need::program("cmake", "cmake"),
        Need::program("ninja", "ninja-build"),
        Need::program("c++", "g++"),
        Need::program("git", "git"),
    ]
}

fn main() -> ExitCode {
    let mut suite = Suite::new();
    for (name, test) in tests::ALL {
        suite.test_needing(*name, needs(), test);
    }
    suite.run()
}
