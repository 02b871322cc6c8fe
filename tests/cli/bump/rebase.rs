//! `overlay rebase`.

mod begin;
mod go_on;
mod sides;
pub(super) mod stop;

/// Adds the tests.
pub fn add(test: &mut impl FnMut(&str, fn())) {
    begin::add(test);
    stop::add(test);
    go_on::add(test);
    sides::add(test);
}
