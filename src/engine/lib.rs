//! The engine of `overlay`: everything that decides.
//!
//! It takes bytes and trees and gives back plans, trees and reports. It never
//! prints, knows no terminal, and reads no variable of cargo's. Direction of
//! use: [`patch`], [`snapshot`] and [`merge`] know nothing of the rest;
//! [`locate`] and [`apply`] are pure over them; what touches the world stands
//! in modules of its own.

#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

#[cfg(feature = "fetch")]
pub mod acquire;
pub mod apply;
#[cfg(test)]
mod boundary;
pub mod buildscript;
pub mod cache;
pub mod contract;
pub mod cpp;
pub mod derive;
pub mod disk;
pub mod doctor;
pub mod drift;
pub mod git;
pub mod identity;
pub mod lay;
pub mod listing;
pub mod locate;
pub mod merge;
pub mod moved;
pub mod patch;
pub mod pin;
pub mod progress;
pub mod publish;
pub mod rebase;
#[cfg(feature = "fetch")]
pub mod registry;
pub mod report;
pub mod reserved;
pub mod secret;
pub mod series;
pub mod snapshot;
pub mod source;
pub mod stored;
mod work_folder;
