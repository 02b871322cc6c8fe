//! Publishing, seen from outside: what is kept, what is refused, and what is
//! there after a kill at each step. The processes that are killed are this
//! program again, see [`child`].

#![allow(clippy::unwrap_used, reason = "a test says where it fails by failing")]

mod child;
mod kill;
mod laws;
mod sample;
mod trees;
mod two;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if let Some(code) = child::run_if_asked() {
        return code;
    }
    let mut trials = Vec::new();
    for (name, test) in [trees::TESTS, kill::TESTS, two::TESTS, laws::TESTS].concat() {
        trials.push(Trial::test(name, move || {
            test();
            Ok(())
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
