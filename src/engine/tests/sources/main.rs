//! Where trees come from: git repositories on this machine and behind a
//! server, and the package registries.

#![allow(clippy::unwrap_used)]

mod damage;
mod git;
mod history;
mod left;
mod pin;
mod registry;
mod repository;
mod store;

use std::process::ExitCode;

use overlay_tests_support::Suite;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    damage::add(&mut suite);
    git::add(&mut suite);
    history::add(&mut suite);
    left::add(&mut suite);
    pin::add(&mut suite);
    registry::add(&mut suite);
    store::add(&mut suite);
    suite.run()
}
