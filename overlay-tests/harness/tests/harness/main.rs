//! The harness held to account: what its host Metal finds in kernels that are
//! wrong on purpose, and what its proofs say of a laid tree.

#![allow(clippy::unwrap_used)]

mod host;
mod tree;

use std::process::ExitCode;

use mlx_overlay_harness::toolchain::{LlvmTools, Toolchain};
use overlay_tests_support::{Need, Suite};

fn main() -> ExitCode {
    let mut suite = Suite::new();
    host::add(&mut suite);
    tree::add(&mut suite);
    suite.run()
}

/// A clang the harness takes.
fn clang() -> Need {
    Need::asked(|| Toolchain::find().map(drop).map_err(|e| e.to_string()))
}

/// LLVM tools that read Apple's bitcode.
fn llvm() -> Need {
    Need::asked(|| LlvmTools::find().map(drop).map_err(|e| e.to_string()))
}
