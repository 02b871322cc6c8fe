//! A block of vectors against the chain of its vectors one by one.

use std::ops::Range;

use super::{Dispatches, Family};

/// Something that multiplies vectors of a block it holds.
pub trait Kernels {
    /// Why it could not.
    type Error;

    /// The products of these vectors of the block, computed in one call.
    ///
    /// # Errors
    /// It could not.
    fn product(&mut self, vectors: Range<usize>) -> std::result::Result<Product, Self::Error>;

    /// The bytes of one element of the last product.
    fn element_size(&self) -> usize;
}

/// What one call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// The result of each vector: for a stack, of its matrices one after the
    /// other.
    pub vectors: Vec<Vec<u8>>,
    /// What was dispatched for it; nothing where nobody counts.
    pub dispatched: Option<Dispatches>,
}

/// A block against the chain of its vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The number of vectors in the block.
    pub width: usize,
    /// Elements compared.
    pub elements: usize,
    /// Elements that differ in a bit.
    pub differing: usize,
    /// The first one.
    pub first: Option<Difference>,
    /// What the block dispatched.
    pub block: Option<Dispatches>,
    /// What the chain dispatched.
    pub chain: Option<Dispatches>,
}

/// An element that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The vector, from 0.
    pub vector: usize,
    /// The element of that vector's result, from 0.
    pub element: usize,
    /// Its bytes in the block.
    pub block: Vec<u8>,
    /// Its bytes in the chain.
    pub chain: Vec<u8>,
}

/// What a comparison was a comparison of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Block and chain ran kernels of different families.
    Families,
    /// Both ran kernels of one family.
    OneFamily(Family),
    /// Nobody counts here, so nothing is known of the kernels.
    NotCounted,
}

impl Comparison {
    /// Whether block and chain are equal, bit for bit.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.differing == 0
    }

    /// What was compared. `single` and `narrow` are one kernel.
    #[must_use]
    pub fn compared(&self) -> Compared {
        let (Some(block), Some(chain)) = (&self.block, &self.chain) else {
            return Compared::NotCounted;
        };
        let kernel = |f: &Family| if *f == Family::Single { Family::Narrow } else { *f };
        let mut families: Vec<Family> = block.and(chain).families().iter().map(kernel).collect();
        families.dedup();
        match families[..] {
            [] => Compared::NotCounted,
            [one] => Compared::OneFamily(one),
            _ => Compared::Families,
        }
    }

    /// This comparison and another of the same width, as one.
    #[must_use]
    pub fn and(mut self, next: Comparison) -> Self {
        let both = |a: Option<Dispatches>, b: Option<Dispatches>| Some(a?.and(&b?));
        self.elements += next.elements;
        self.differing += next.differing;
        self.first = self.first.or(next.first);
        self.block = both(self.block, next.block);
        self.chain = both(self.chain, next.chain);
        self
    }
}

/// Multiplies the block's first `width` vectors in one call and one by one, and
/// compares the bits.
///
/// # Errors
/// What the kernels say.
pub fn compare<K: Kernels>(
    kernels: &mut K,
    width: usize,
) -> std::result::Result<Comparison, K::Error> {
    let block = kernels.product(0..width)?;
    let size = kernels.element_size();
    let mut chain = Some(Dispatches::default());
    let (mut elements, mut differing, mut first) = (0, 0, None);
    for vector in 0..width {
        let alone = kernels.product(vector..vector + 1)?;
        chain = chain.zip(alone.dispatched).map(|(sum, more)| sum.and(&more));
        let of_block = block.vectors.get(vector).map_or(&[][..], Vec::as_slice);
        let of_chain = alone.vectors.first().map_or(&[][..], Vec::as_slice);
        let count = of_block.len().max(of_chain.len()).div_ceil(size);
        elements += count;
        for element in 0..count {
            // A result that one side does not have differs.
            let at =
                |bytes: &[u8]| bytes.get(element * size..(element + 1) * size).map(<[u8]>::to_vec);
            let (block, chain) = (at(of_block), at(of_chain));
            if block != chain || block.is_none() {
                differing += 1;
                first.get_or_insert_with(|| Difference {
                    vector,
                    element,
                    block: block.unwrap_or_default(),
                    chain: chain.unwrap_or_default(),
                });
            }
        }
    }
    Ok(Comparison { width, elements, differing, first, block: block.dispatched, chain })
}

/// Values spread like a layer's: a sum of four uniform draws, mean 0, about
/// unit variance. The same seed gives the same values everywhere.
#[must_use]
pub fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    // SplitMix64, whose constants these are.
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // The top 24 bits: every value is exact in an f32.
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| (next() + next() + next() + next()) * 3f32.sqrt()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exactness::fake::Fake;

    #[test]
    fn narrow_kernels_are_exact_and_of_one_family() {
        let c = compare(&mut Fake::of(Family::Narrow), 4).unwrap();
        assert!(c.is_exact());
        assert_eq!(c.elements, 4 * Fake::OUTPUTS);
        assert_eq!(c.compared(), Compared::OneFamily(Family::Narrow));
    }

    #[test]
    fn another_order_of_summation_is_found() {
        let c = compare(&mut Fake::of(Family::Wide), 4).unwrap();
        assert!(!c.is_exact());
        let first = c.first.clone().unwrap();
        assert_ne!(first.block, first.chain);
        assert_eq!(c.compared(), Compared::Families);
    }

    #[test]
    fn a_streamed_kernel_that_keeps_the_order_is_exact() {
        let c = compare(&mut Fake::of(Family::Streamed), 5).unwrap();
        assert!(c.is_exact());
        assert_eq!(c.compared(), Compared::Families);
        assert_eq!(c.block.map(|d| d.families()), Some(vec![Family::Streamed]));
        assert_eq!(c.chain.map(|d| d.count(Family::Single)), Some(5));
    }

    #[test]
    fn a_result_that_is_not_there_differs() {
        let c = compare(&mut Fake { short: true, ..Fake::of(Family::Narrow) }, 2).unwrap();
        assert_eq!((c.differing, c.first.map(|d| d.block)), (2, Some(vec![])));
    }

    #[test]
    fn without_counters_nothing_is_said_of_kernels() {
        let c = compare(&mut Fake { counts: false, ..Fake::of(Family::Wide) }, 2).unwrap();
        assert_eq!(c.compared(), Compared::NotCounted);
    }

    #[test]
    fn draws_repeat_and_differ_by_seed() {
        assert_eq!(random(8, 1), random(8, 1));
        assert_ne!(random(8, 1), random(8, 2));
        let many = random(4096, 3);
        let mean = many.iter().sum::<f32>() / 4096.0;
        let variance = many.iter().map(|x| x * x).sum::<f32>() / 4096.0;
        assert!(mean.abs() < 0.1 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
    }
}
