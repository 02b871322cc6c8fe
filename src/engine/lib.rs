//! The engine of `overlay`: everything that decides.
//!
//! It takes bytes and trees and gives back plans, trees and reports. It never
//! prints, knows no terminal, and reads no variable of cargo's. Direction of
//! use: [`patch`], [`snapshot`] and [`merge`] know nothing of the rest;
//! [`locate`] and [`apply`] are pure over them; what touches the world stands
//! in modules of its own.

pub mod disk;
pub mod patch;
pub mod publish;
pub mod snapshot;
