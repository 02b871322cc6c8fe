//! MLX's own Metal host code, run on any x86-64 Linux machine against a fake
//! device that reports any architecture.
//!
//! The C++ side (`cpp/`) is an Objective-C runtime and the Metal objects MLX
//! touches, written in MLX's manner; the host files are those of a laid tree,
//! unmodified. Which kernel MLX asks for, with which grid and which buffers, is
//! recorded; a kernel library can run it. Nothing here ran on Apple hardware,
//! and NAX kernels (Apple's newest SDK) are left out of the build.

pub mod architecture;
pub mod build;
pub mod cache;
pub mod device;
mod error;
pub mod executed;
pub mod instantiations;
pub mod library;
pub mod measure;
pub mod product;
pub mod release;
pub mod routing;
pub mod rule;
pub mod statements;
pub mod table;
pub mod templates;
pub mod toolchain;
pub mod wheel;

pub use error::FakeDeviceError;
