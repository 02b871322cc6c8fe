//! MLX's Metal host code of the laid tree on a fake device. Host simulation:
//! nothing here runs on Apple hardware.

mod by_name;
mod computed;
mod flight;
mod from_text;
mod guard;
mod objects;
mod probe;
mod support;

use std::process::ExitCode;

use overlay_tests_support::Suite;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    objects::add(&mut suite);
    by_name::add(&mut suite);
    from_text::add(&mut suite);
    flight::add(&mut suite);
    guard::add(&mut suite);
    computed::add(&mut suite);
    probe::add(&mut suite);
    suite.run()
}
