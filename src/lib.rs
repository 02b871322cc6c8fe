//! `mlx-overlay` keeps a small set of changes alive on a pinned MLX.
//!
//! The tool is the binary `overlay`; the engine it asks is
//! [`mlx_overlay_engine`]. With the feature `runtime` this crate is also the
//! Rust face of the MLX that the overlay was laid on.

#[cfg(feature = "cli")]
pub mod cli;
pub mod exactness;
#[cfg(feature = "runtime")]
pub mod runtime;
