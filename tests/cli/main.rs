//! The tool through its front door.

#![allow(clippy::unwrap_used)]

mod apply;
mod bump;
mod cache;
mod cargo_home;
mod cases;
mod damage;
mod doctor;
mod env;
mod kernels;
mod pin;
mod project;
mod published;
mod released;
mod remedies;
mod rights;
mod sources;
mod tool;
mod try_patch;
mod work_folders;

use std::process::ExitCode;

use overlay_tests_support::Suite;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    apply::add(&mut suite);
    bump::add(&mut suite);
    cache::add(&mut suite);
    cargo_home::add(&mut suite);
    cases::add(&mut suite);
    damage::add(&mut suite);
    doctor::add(&mut suite);
    env::add(&mut suite);
    kernels::add(&mut suite);
    pin::add(&mut suite);
    published::add(&mut suite);
    released::add(&mut suite);
    remedies::add(&mut suite);
    rights::add(&mut suite);
    try_patch::add(&mut suite);
    sources::add(&mut suite);
    work_folders::add(&mut suite);
    suite.run()
}
