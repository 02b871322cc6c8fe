//! The cells that streamed kernels come in, and which product needs which.
//!
//! The rules repeat what the overlay's `dispatch_qmv` and `qmv_streamed`
//! (mlx/backend/metal/quantized.cpp) do with a shape.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ElementType, Mode, Quantization};

/// What names a streamed kernel, and so what a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// The type of x and of the result.
    pub element: ElementType,
    /// The bits of a weight: 2, 3, 4, 5, 6 or 8.
    pub bits: usize,
    /// The weights that share a scale: 32, 64 or 128.
    pub group_size: usize,
    /// The vectors of a tile, 2 to 5.
    pub vectors: usize,
    /// Which of the two orders of summation.
    pub variant: Variant,
    /// Whether the weight is one matrix or a stack.
    pub stacking: Stacking,
}

/// `qmv` has two orders of summation, chosen by the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// N is a multiple of 8 and K one of the fast kernel's step.
    Fast,
    /// Any other shape.
    Generic,
}

/// Whether a weight is one matrix or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stacking {
    /// One matrix.
    Single,
    /// A stack of two or more.
    Batched,
}

/// The lengths of a product of `m` vectors of `k` with a matrix of `n` rows, or
/// with a stack of `stack` such matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Vectors.
    pub m: usize,
    /// Rows of the matrix: outputs a vector.
    pub n: usize,
    /// Elements of a vector.
    pub k: usize,
    /// Matrices.
    pub stack: usize,
}

/// The elements of K that the fast kernel takes in one step.
fn fast_step(bits: usize) -> usize {
    match bits {
        6 | 8 => 256,
        _ => 512,
    }
}

/// The vectors of a tile: as few tiles of at most five as hold all.
fn tile(m: usize) -> usize {
    m.div_ceil(m.div_ceil(5).max(1))
}

impl Cell {
    /// The cell that serves a transposed product of this shape under
    /// `streamed`; nothing where no streamed kernel would: one vector, an fp
    /// mode, or K of 64 or 128 with bits that have a kernel of their own. MLX
    /// also takes another way from a number of vectors on that depends on the
    /// chip.
    #[must_use]
    pub fn of(element: ElementType, quantization: Quantization, shape: Shape) -> Option<Self> {
        let Quantization { mode, group_size, bits } = quantization;
        let quad = matches!(shape.k, 64 | 128) && bits.is_power_of_two();
        let float = element != ElementType::Uint32;
        if mode != Mode::Affine || shape.m < 2 || quad || !float {
            return None;
        }
        let fast = shape.n.is_multiple_of(8) && shape.k.is_multiple_of(fast_step(bits));
        Some(Self {
            element,
            bits,
            group_size,
            vectors: tile(shape.m),
            variant: if fast { Variant::Fast } else { Variant::Generic },
            stacking: if shape.stack > 1 { Stacking::Batched } else { Stacking::Single },
        })
    }

    /// Every cell that the overlay has a kernel for, at one type, number of
    /// bits and group size.
    #[must_use]
    pub fn all_of(element: ElementType, quantization: Quantization) -> Vec<Self> {
        let Quantization { group_size, bits, .. } = quantization;
        let mut cells = Vec::new();
        for vectors in 2..=5 {
            for variant in [Variant::Fast, Variant::Generic] {
                for stacking in [Stacking::Single, Stacking::Batched] {
                    cells.push(Self { element, bits, group_size, vectors, variant, stacking });
                }
            }
        }
        cells
    }

    /// A small product that this cell serves: two steps of K, and in the
    /// generic variant a part of a third and a part of a tile of rows.
    #[must_use]
    pub fn trial(self) -> Shape {
        let step = fast_step(self.bits);
        let (n, k) = match self.variant {
            Variant::Fast => (16, 2 * step),
            Variant::Generic => (20, 2 * step + self.group_size),
        };
        let stack = if self.stacking == Stacking::Batched { 2 } else { 1 };
        Shape { m: self.vectors, n, k, stack }
    }

    /// How its weights are quantized.
    #[must_use]
    pub fn quantization(self) -> Quantization {
        Quantization { mode: Mode::Affine, group_size: self.group_size, bits: self.bits }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = if self.variant == Variant::Fast { "fast" } else { "generic" };
        let stacking = if self.stacking == Stacking::Batched { ", batched" } else { "" };
        let Self { element, bits, group_size, vectors, .. } = self;
        write!(
            f,
            "{element}, {bits} bits, groups of {group_size}, {vectors} vectors, {variant}{stacking}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affine(bits: usize) -> Quantization {
        Quantization { mode: Mode::Affine, group_size: 64, bits }
    }

    #[test]
    fn a_trial_is_served_by_the_cell_it_is_for() {
        let mut cells = 0;
        for element in [ElementType::Float32, ElementType::Float16, ElementType::Bfloat16] {
            for bits in [2, 3, 4, 5, 6, 8] {
                for group_size in [32, 64, 128] {
                    let quantization = Quantization { group_size, ..affine(bits) };
                    for cell in Cell::all_of(element, quantization) {
                        let trial = cell.trial();
                        assert_eq!(trial.k % group_size, 0, "{cell}");
                        assert_eq!(Cell::of(element, cell.quantization(), trial), Some(cell));
                        cells += 1;
                    }
                }
            }
        }
        assert_eq!(cells, 864);
    }

    #[test]
    fn tiles_are_as_even_as_they_can_be() {
        let tiles = [2, 3, 4, 5, 6, 7, 10, 11, 13].map(tile);
        assert_eq!(tiles, [2, 3, 4, 5, 3, 4, 5, 4, 5]);
    }

    #[test]
    fn shapes_without_a_streamed_kernel_have_no_cell() {
        let of = |q, m, k| Cell::of(ElementType::Float16, q, Shape { m, n: 4096, k, stack: 1 });
        assert_eq!(of(affine(4), 1, 4096), None);
        assert_eq!(of(affine(4), 4, 128), None);
        assert!(of(affine(6), 4, 128).is_some(), "six bits have no kernel of their own");
        assert_eq!(of(Quantization { mode: Mode::Mxfp4, group_size: 32, bits: 4 }, 4, 4096), None);
        let fast = of(affine(4), 4, 4096).map(|c| c.variant);
        assert_eq!(fast, Some(Variant::Fast));
        assert_eq!(of(affine(4), 4, 3840).map(|c| c.variant), Some(Variant::Generic));
        assert_eq!(of(affine(8), 4, 3840).map(|c| c.variant), Some(Variant::Fast));
        let fours = Shape { m: 4, n: 12, k: 4096, stack: 1 };
        let fours = Cell::of(ElementType::Float16, affine(4), fours).map(|c| c.variant);
        assert_eq!(fours, Some(Variant::Generic), "12 rows are no multiple of 8");
    }
}
