//! Contracts.
pub mod kernel;
