//! Does nothing unless the feature `runtime` is on, so that a drifted series
//! never makes the tool that repairs it unbuildable.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
