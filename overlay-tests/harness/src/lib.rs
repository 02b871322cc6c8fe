//! Proves the kernels of a laid MLX tree on any machine.
//!
//! The very text of the tree is compiled on the host against a small Metal shim
//! and judged: the streamed twins against `qmv` at M = 1 in numbers and in
//! expressions, the shim against Apple's own compiled kernels, and all of it
//! against mutants, so that a proof that cannot fail is found. [`run`] does it
//! all; README.md says which file holds which proof.
//!
//! Everything runs on the host. Nothing here says how an Apple GPU behaves.

pub mod air;
pub mod cells;
mod error;
mod instantiations;
pub mod kernels;
mod left_out;
pub mod library;
pub mod metallib;
pub mod modes;
pub mod mutants;
mod numbers;
pub mod oracle;
mod parallel;
pub mod parity;
pub mod report;
mod run;
pub mod runner;
mod scratch;
pub mod sets;
pub mod shapes;
pub mod symbolic;
pub mod toolchain;
pub mod traffic;
mod tree;
pub mod units;
pub mod workshop;

pub use error::{HarnessError, Misfit};
pub use report::Report;
pub use run::{Options, Step, run};
pub use sets::Set;
