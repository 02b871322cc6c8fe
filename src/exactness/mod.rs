//! Exactness: whether a block of vectors comes out as its vectors do one by
//! one, bit for bit, and what may be said of it.
//!
//! Everything here is pure over [`Kernels`], whatever multiplies: MLX on a
//! stream (with the feature `runtime`, [`probe`]), a stand-in device, a test's
//! own sums.

mod arms;
mod cell;
mod compare;
#[cfg(test)]
mod fake;
mod family;
mod policy;
mod quantization;
mod verdict;

pub use arms::{Arm, NoFraction, Ran, batch_limit, comparable, recovered_fraction};
pub use cell::{Cell, Shape, Stacking, Variant};
pub use compare::{Compared, Comparison, Difference, Kernels, Product, compare, random};
pub use family::{Dispatches, Family};
pub use policy::Policy;
pub use quantization::{ElementType, Mode, Quantization};
pub use verdict::{Machine, Verdict, Verdicts, VerdictsError, judge};

#[cfg(feature = "runtime")]
pub use crate::runtime::{Draws, Report, probe};
