//! Which cells a run decides. README.md shows the same as a table.

use serde::Serialize;

use crate::cells::{BatchAxis, Cell, Draw};
use crate::kernels::{BITS, Family, GROUP_SIZES, Number, Order, TILES, fast_step, tile_for};
use crate::kernels::{Kernel, values_per_lane};

/// How much to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    /// Under three minutes on two cores; what CI runs.
    Quick,
    /// Every kernel in every shape at every M.
    Full,
}

const SEEDS: [u64; 3] = [1, 20_260_817, 0x9e37_79b9];
const DRAWS: [Draw; 3] = [Draw::Plain, Draw::Wild, Draw::Tiny];
const NUMBERS: [Number; 4] = [Number::Float, Number::Half, Number::Bfloat, Number::Probe];
const GPU_NUMBERS: [Number; 3] = [Number::Float, Number::Half, Number::Bfloat];

impl Set {
    fn numbers(self) -> &'static [Number] {
        if self == Self::Quick { &[Number::Float, Number::Probe] } else { &NUMBERS }
    }

    fn tiles(self) -> &'static [u32] {
        if self == Self::Quick { &[2, 3, 5] } else { &TILES }
    }
}

/// The quantized widths, each with each group size.
fn pairs() -> impl Iterator<Item = (u32, u32)> {
    BITS.into_iter().flat_map(|bits| GROUP_SIZES.into_iter().map(move |group| (bits, group)))
}

/// A cell for each kernel: its type, width, group size and tile.
fn kernels(pairs: &[(u32, u32)], numbers: &[Number], tiles: &[u32]) -> Vec<Cell> {
    let of_pair = |&(bits, group_size): &(u32, u32)| {
        let of_number = move |&number: &Number| {
            tiles.iter().map(move |&vectors| cell(number, bits, group_size, vectors))
        };
        numbers.iter().flat_map(of_number)
    };
    pairs.iter().flat_map(of_pair).collect()
}

/// A plain cell of a kernel: one tile of one row, its shape still to be said.
fn cell(number: Number, bits: u32, group_size: u32, vectors: u32) -> Cell {
    let (m, n, k) = (vectors, 1, group_size);
    let (batch, draw, seed) = (Vec::new(), Draw::Plain, SEEDS[0]);
    Cell { number, bits, group_size, vectors, m, n, k, batch, draw, seed }
}

/// Shapes (N, K) that reach each order and each branch of a width.
#[must_use]
pub fn shapes(bits: u32, group_size: u32) -> [(u32, u32); 6] {
    let (fast, block, tail) = steps(bits, group_size);
    [
        (8, 3 * fast),
        (8, 2 * block + tail), // all rows in whole tiles, a tail
        (13, 2 * block),       // the last tile moved back, a tail that is a block
        (13, block + tail),
        (5, 2 * block + tail), // less than a tile of rows
        (3, block),
    ]
}

/// The blocks of the fast and the generic kernel along K, and a part of the latter.
fn steps(bits: u32, group_size: u32) -> (u32, u32, u32) {
    let tail = if group_size == 32 { 96 } else { group_size };
    (fast_step(bits), 32 * values_per_lane(bits, Order::Generic), tail)
}

/// Cells of numeric parity: the tiled family against M = 1.
#[must_use]
pub fn parity_cells(set: Set) -> Vec<Cell> {
    // The longest first: no core is left alone with one at the end.
    let parts = [whole(set), projections(set), large(set), long(set), batched(set), swept(set)];
    parts.into_iter().flatten().collect()
}

/// Every kernel in every shape, over M.
fn swept(set: Set) -> Vec<Cell> {
    let pairs: Vec<_> = pairs().collect();
    let mut cells = Vec::new();
    for kernel in kernels(&pairs, set.numbers(), set.tiles()) {
        let tile = kernel.vectors;
        for (shape, (n, k)) in shapes(kernel.bits, kernel.group_size).into_iter().enumerate() {
            let vectors: Vec<(u32, Draw)> = match set {
                // A whole tile and a part of one, less than a tile or one, two whole tiles.
                Set::Quick => vec![(2 * tile - 1, DRAWS[0]), (2, DRAWS[1]), (2 * tile, DRAWS[2])],
                Set::Full => (2..=32).map(|m| (m, DRAWS[(m as usize + shape) % 3])).collect(),
            };
            cells.extend(vectors.into_iter().map(|(m, draw)| Cell {
                m,
                n,
                k,
                draw,
                ..kernel.clone()
            }));
        }
    }
    cells
}

/// Many threadgroups along N: whole tiles of rows, and a last one moved back.
fn large(set: Set) -> Vec<Cell> {
    let pairs: Vec<_> = pairs().collect();
    let kernels = match set {
        Set::Quick => kernels(&pairs, &[Number::Probe], &[3]),
        Set::Full => kernels(&pairs, &NUMBERS, &TILES),
    };
    let of_kernel = |kernel: &Cell| {
        let m = 2 * kernel.vectors - 1;
        large_shapes(kernel).map(|(n, k)| Cell { m, n, k, ..kernel.clone() })
    };
    kernels.iter().flat_map(of_kernel).collect()
}

fn large_shapes(kernel: &Cell) -> [(u32, u32); 2] {
    let (fast, block, tail) = steps(kernel.bits, kernel.group_size);
    [(256, fast), (301, block + tail)]
}

/// Many blocks of K, with the tile and the types that the quick set otherwise
/// leaves to the projections.
fn long(set: Set) -> Vec<Cell> {
    let pairs: Vec<_> = pairs().collect();
    let kernels = match set {
        Set::Quick => kernels(&pairs, &GPU_NUMBERS, &[4]),
        Set::Full => kernels(&pairs, &NUMBERS, &TILES),
    };
    let of_kernel = |kernel: &Cell| {
        let (fast, block, tail) = steps(kernel.bits, kernel.group_size);
        let (m, seed) = (2 * kernel.vectors - 1, SEEDS[1]);
        [(8, 9 * fast), (13, 5 * (block + tail))].map(|(n, k)| Cell {
            m,
            n,
            k,
            seed,
            ..kernel.clone()
        })
    };
    kernels.iter().flat_map(of_kernel).collect()
}

/// Batches of one and of two axes, with x or w shared along one, each for
/// another relation of M to the tile.
fn batched(set: Set) -> Vec<Cell> {
    let axis = |size, x_shared, w_shared| BatchAxis { size, x_shared, w_shared };
    let batches = |tile: u32| {
        [
            (2 * tile - 1, vec![axis(3, false, false)]),
            (tile + 1, vec![axis(2, false, false), axis(3, false, false)]),
            (3 * tile, vec![axis(2, false, true), axis(2, false, false)]),
            (2, vec![axis(2, true, false), axis(3, false, false)]),
        ]
    };
    let kernels = match set {
        Set::Quick => kernels(&[(4, 64), (3, 32)], set.numbers(), &[3]),
        Set::Full => kernels(&pairs().collect::<Vec<_>>(), set.numbers(), set.tiles()),
    };
    let mut cells = Vec::new();
    for kernel in kernels {
        let [fast, _, _, moved_back, few_rows, _] = shapes(kernel.bits, kernel.group_size);
        for (m, batch) in batches(kernel.vectors) {
            let shapes = [fast, moved_back, few_rows];
            cells.extend(shapes.map(|(n, k)| Cell {
                m,
                n,
                k,
                batch: batch.clone(),
                ..kernel.clone()
            }));
        }
    }
    cells
}

/// Projections of the downstream models, K whole and N cut: K, bits, group size.
const PROJECTIONS: [(u32, u32, u32); 4] =
    [(5120, 4, 64), (3840, 4, 64), (3840, 8, 64), (15360, 8, 64)];

/// The downstream projections, tiled as MLX tiles them, from several seeds:
/// whether a byte differs there depends on the draw.
fn projections(set: Set) -> Vec<Cell> {
    let (vectors, seeds) = match set {
        Set::Quick => (vec![2, 4, 5, 13], &SEEDS[..2]),
        // What the downstream runtime's own parity sweep has.
        Set::Full => ((2..=13).chain(16..=19).chain([24, 32]).collect(), &SEEDS[..]),
    };
    let mut cells = Vec::new();
    for (k, bits, group_size) in PROJECTIONS {
        for number in NUMBERS {
            for (&m, &seed) in vectors.iter().flat_map(|m| seeds.iter().map(move |s| (m, s))) {
                cells.push(Cell {
                    m,
                    n: 8,
                    k,
                    seed,
                    ..cell(number, bits, group_size, tile_for(m))
                });
            }
        }
    }
    cells
}

/// Downstream projections at their own N: K, N, bits, group size, M. The first
/// two are of 4 bits, one fast and one generic.
const WHOLE: [(u32, u32, u32, u32, u32); 3] =
    [(15360, 3840, 8, 64, 3), (5120, 5120, 4, 64, 5), (3840, 2048, 4, 64, 7)];

/// Whole matrices of the downstream models; in the full set alone.
fn whole(set: Set) -> Vec<Cell> {
    if set == Set::Quick {
        return Vec::new();
    }
    let of_number = |number| {
        WHOLE.map(|(k, n, bits, group_size, m)| Cell {
            m,
            n,
            k,
            ..cell(number, bits, group_size, tile_for(m))
        })
    };
    [Number::Half, Number::Probe].into_iter().flat_map(of_number).collect()
}

/// Cells of the oracle: each width, group size and GPU type, fast and generic,
/// plain and hard inputs, one long row, batches, and quads.
#[must_use]
pub fn oracle_cells(set: Set) -> Vec<(Cell, Family)> {
    let mut cells = Vec::new();
    let pairs: Vec<_> = pairs().collect();
    for kernel in kernels(&pairs, &GPU_NUMBERS, &[4]) {
        let shapes = shapes(kernel.bits, kernel.group_size);
        let plain = match set {
            Set::Quick => vec![shapes[0], shapes[3]],
            Set::Full => [&shapes[..], &large_shapes(&kernel)].concat(),
        };
        for ((n, k), draw) in plain.into_iter().flat_map(|shape| DRAWS.map(|draw| (shape, draw))) {
            let cell = Cell { m: 5, n, k, draw, seed: SEEDS[1], ..kernel.clone() };
            cells.push((cell.clone(), Family::Narrow(cell.order())));
            cells.push((cell, Family::Wide));
        }
        let (m, n, k, seed) = (5, 8, 32 * fast_step(kernel.bits), SEEDS[2]);
        cells.push((Cell { m, n, k, seed, ..kernel }, Family::Narrow(Order::Fast)));
    }
    let has_oracle = |cell: &Cell| cell.number != Number::Probe;
    for cell in batched(set).into_iter().filter(has_oracle) {
        cells.push((cell.clone(), Family::Narrow(cell.order())));
        cells.push((Cell { vectors: 4, ..cell }, Family::Wide));
    }
    cells.extend(quads(set));
    cells
}

/// `qmv_quad`, which MLX takes for rows of 64 and of 128 at 2, 4 and 8 bits: a
/// whole tile of rows of the weights, a part of one, and more than one.
fn quads(set: Set) -> Vec<(Cell, Family)> {
    let rows: &[u32] = if set == Set::Quick { &[70] } else { &[64, 5, 70, 301] };
    let mut cells = Vec::new();
    for (bits, group_size) in pairs().filter(|(bits, _)| bits.is_power_of_two()) {
        for k in [64, 128].into_iter().filter(|k| k % group_size == 0) {
            for kernel in kernels(&[(bits, group_size)], &GPU_NUMBERS, &[1]) {
                for (&n, draw) in rows.iter().flat_map(|n| DRAWS.map(|draw| (n, draw))) {
                    let cell = Cell { m: 3, n, k, draw, ..kernel.clone() };
                    cells.push((cell, Family::Quad(k)));
                }
            }
        }
    }
    cells
}

/// Shape classes of symbolic parity, one a width, group size, tile and shape;
/// the number is float or half. Batching only moves pointers and is left to
/// the numeric proof.
#[must_use]
pub fn symbolic_cells(set: Set) -> Vec<Cell> {
    let pairs: Vec<_> = pairs().collect();
    let mut cells = Vec::new();
    for kernel in kernels(&pairs, &[Number::Float, Number::Half], set.tiles()) {
        let shapes = shapes(kernel.bits, kernel.group_size);
        let shapes = match set {
            Set::Quick => vec![shapes[0], shapes[1], shapes[3], shapes[4]],
            Set::Full => shapes.to_vec(),
        };
        let m = kernel.vectors + 1;
        cells.extend(shapes.into_iter().map(|(n, k)| Cell { m, n, k, ..kernel.clone() }));
    }
    cells
}

/// The kernels that cells need for the tiled family and for M = 1.
pub fn parity_kernels<'c>(cells: impl IntoIterator<Item = &'c Cell>) -> Vec<Kernel> {
    let both = |cell: &Cell| {
        let order = cell.order();
        [cell.kernel(Family::Narrow(order)), cell.kernel(Family::Streamed(order))]
    };
    cells.into_iter().flat_map(both).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    #[test]
    fn the_quick_set_has_what_it_promises() {
        let cells = parity_cells(Set::Quick);
        for (bits, group_size) in pairs() {
            for number in [Number::Float, Number::Probe] {
                for tile in [2, 3, 5] {
                    let of: Vec<_> = cells
                        .iter()
                        .filter(|c| (c.bits, c.group_size, c.number) == (bits, group_size, number))
                        .filter(|c| c.vectors == tile)
                        .collect();
                    assert!(of.iter().any(|cell| cell.order() == Order::Fast));
                    assert!(of.iter().any(|cell| cell.order() == Order::Generic));
                    assert!(of.iter().any(|cell| cell.m % tile != 0));
                    assert!(of.iter().any(|cell| cell.n < 8));
                }
            }
        }
    }

    /// What stands crossed in the README's table.
    #[test]
    fn the_full_set_has_every_kernel_in_every_class_at_every_m() {
        let kernel = |c: &Cell| (c.bits, c.group_size, c.number, c.vectors);
        let swept: BTreeSet<_> = swept(Set::Full)
            .iter()
            .map(|cell| {
                let (_, block, _) = steps(cell.bits, cell.group_size);
                let rows = (cell.n < 8, cell.n.is_multiple_of(8));
                let class = (cell.order(), rows, cell.k.is_multiple_of(block));
                (kernel(cell), class, cell.m)
            })
            .collect();
        // Fast, generic with whole tiles of rows and a tail; N of 13 and N below
        // 8, each with a tail and without. At 6 and 8 bits a block is 128
        // weights: groups of 128 leave no tail.
        assert_eq!(swept.len(), (16 * 6 + 2 * 4) * 4 * 4 * 31);

        let cells = parity_cells(Set::Full);
        let batched: HashSet<_> = cells
            .iter()
            .filter(|cell| !cell.batch.is_empty())
            .map(|cell| (kernel(cell), cell.order(), cell.batch.clone()))
            .collect();
        assert_eq!(batched.len(), 18 * 4 * 4 * 2 * 4);
        let large = |order| {
            let of = cells.iter().filter(|cell| cell.n > 200 && cell.order() == order);
            of.map(kernel).collect::<BTreeSet<_>>()
        };
        assert_eq!(large(Order::Fast).len(), 18 * 4 * 4);
        assert_eq!(large(Order::Generic).len(), 18 * 4 * 4);
    }

    #[test]
    fn every_row_is_whole_words_and_whole_groups() {
        let all = parity_cells(Set::Full).into_iter().chain(symbolic_cells(Set::Full));
        for cell in all.chain(oracle_cells(Set::Full).into_iter().map(|(cell, _)| cell)) {
            assert_eq!(cell.k * cell.bits % 32, 0, "{cell}");
            assert_eq!(cell.k % cell.group_size, 0, "{cell}");
        }
    }

    #[test]
    fn the_first_shape_is_fast_and_the_others_are_not() {
        for (bits, group_size) in pairs() {
            let orders = shapes(bits, group_size).map(|(n, k)| Order::of(bits, n, k));
            assert_eq!(orders[0], Order::Fast);
            assert!(
                orders[1..].iter().all(|order| *order == Order::Generic),
                "{bits} {group_size}"
            );
        }
    }
}
