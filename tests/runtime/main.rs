//! The bridge against the MLX that is linked: on Linux, its CPU backend.

#![allow(clippy::unwrap_used)]

mod parity;
mod tests;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use overlay_tests_support::Suite;

/// One test at a time: the policy, the guard and the counts are the process's.
static ALONE: Mutex<()> = Mutex::new(());

fn main() -> ExitCode {
    let mut suite = Suite::new();
    for (name, test) in tests::ALL.iter().chain(parity::ALL) {
        suite.test(*name, move || {
            let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
            test();
        });
    }
    suite.run()
}
