//! Kernels for tests: families whose sums are known to differ, or not.

use std::convert::Infallible;
use std::ops::Range;

use super::{Dispatches, Family, Kernels, Product, random};

/// Multiplies with a fixed matrix in `f32`. A vector alone is summed front to
/// back; so are the vectors of a block, unless its family is [`Family::Wide`],
/// which sums back to front.
pub(super) struct Fake {
    /// The family that serves a block.
    pub family: Family,
    /// The family that it says serves a block.
    pub claims: Family,
    /// Whether dispatches are counted.
    pub counts: bool,
    /// Whether a block's results lack their last element.
    pub short: bool,
}

impl Fake {
    /// Elements of a vector's result.
    pub const OUTPUTS: usize = 24;
    const K: usize = 96;

    /// Honest kernels of this family.
    pub fn of(family: Family) -> Self {
        Self { family, claims: family, counts: true, short: false }
    }

    fn vector(&self, vector: usize, family: Family) -> Vec<u8> {
        let x = random(Self::K, 100 + vector as u64);
        let output = |n: usize| {
            let w = random(Self::K, 1000 + n as u64);
            let products = x.iter().zip(&w).map(|(x, w)| x * w);
            match family {
                Family::Wide => products.rev().sum::<f32>(),
                _ => products.sum::<f32>(),
            }
        };
        (0..Self::OUTPUTS).flat_map(|n| output(n).to_le_bytes()).collect()
    }
}

impl Kernels for Fake {
    type Error = Infallible;

    fn element_size(&self) -> usize {
        4
    }

    fn product(&mut self, vectors: Range<usize>) -> Result<Product, Infallible> {
        let alone = vectors.len() == 1;
        let (family, claims) =
            if alone { (Family::Single, Family::Single) } else { (self.family, self.claims) };
        let mut results: Vec<Vec<u8>> = vectors.map(|v| self.vector(v, family)).collect();
        if self.short && !alone {
            results.iter_mut().for_each(|r| r.truncate(r.len() - 4));
        }
        let dispatched = self.counts.then(|| Dispatches::of(&[claims]));
        Ok(Product { vectors: results, dispatched })
    }
}
