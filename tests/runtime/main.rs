//! The bridge against the MLX that is linked: on Linux, its CPU backend.
//!
//! `--full` after `--` runs the full parity set, as `overlay verify --kernels
//! --full` does on the host; without it the quick one is run.

#![allow(clippy::unwrap_used)]

mod parity;
mod tests;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use mlx_overlay_harness::sets::Set;
use overlay_tests_support::Suite;

/// One test at a time: the policy, the guard and the counts are the process's.
static ALONE: Mutex<()> = Mutex::new(());

fn main() -> ExitCode {
    let mut suite = Suite::new();
    let set = if suite.flag("--full") { Set::Full } else { Set::Quick };
    for (name, test) in tests::ALL {
        suite.test(*name, move || alone(test));
    }
    suite.test(parity::SET, move || alone(|| parity::set(set)));
    suite.test(parity::WRONG, || alone(parity::a_wrong_block_is_found));
    suite.run()
}

fn alone(test: impl FnOnce()) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    test();
}
