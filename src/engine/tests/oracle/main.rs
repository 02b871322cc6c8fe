//! The parser against the programs that write patches: git and GNU diff.
//!
//! Random trees are edited and diffed; what is parsed must print back to the
//! same bytes and, laid over the old tree at the lines it states, give the new
//! tree. A test whose program is missing is skipped by name.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod forest;
mod git;
mod gnu;
mod history;
mod lay;
mod mutants;

use std::process::ExitCode;

use overlay_tests_support::{Need, Suite};

fn main() -> ExitCode {
    let git = || Need::program("git", "git");
    let mut suite = Suite::new();
    for variant in git::VARIANTS {
        suite.test_needing(format!("git diff {}", variant.name), [git()], || git::diffs(variant));
    }
    suite.test_needing("git format-patch --stdout", [git()], git::mailboxes);
    suite.test_needing("names without prefix are never misread", [git()], git::no_prefix_at_one);
    suite.test_needing("git apply takes what the parser takes", [git()], mutants::run);
    let diff = || Need::program("diff", "diffutils");
    for option in ["-ruN", "-ruNp", "-U0 -rN", "-U1 -rN"] {
        suite.test_needing(format!("diff {option}"), [diff()], || gnu::diffs(option));
    }
    suite.test_needing("the last 200 commits of MLX", [git(), Need::upstream()], history::replay);
    suite.run()
}
