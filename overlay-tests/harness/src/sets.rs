//! Which cells a run decides.

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
    /// Every type, tile and M.
    Full,
}

/// Projections of the downstream models, K whole and N cut: K, bits, group size.
const PROJECTIONS: [(u32, u32, u32); 4] =
    [(5120, 4, 64), (3840, 4, 64), (3840, 8, 64), (15360, 8, 64)];

const SEEDS: [u64; 3] = [1, 20_260_817, 0x9e37_79b9];

impl Set {
    fn numbers(self) -> &'static [Number] {
        match self {
            Self::Quick => &[Number::Float, Number::Probe],
            Self::Full => &[Number::Float, Number::Half, Number::Bfloat, Number::Probe],
        }
    }

    fn tiles(self) -> &'static [u32] {
        if self == Self::Quick { &[2, 3, 5] } else { &TILES }
    }

    /// Vectors for a tile: a full and a part tile, less than a tile, a whole one.
    fn vectors(self, tile: u32) -> Vec<(u32, Draw)> {
        match self {
            Self::Quick => vec![(2 * tile - 1, Draw::Plain), (2, Draw::Wild), (tile, Draw::Tiny)],
            Self::Full => {
                let draws = [Draw::Plain, Draw::Wild, Draw::Tiny];
                (2..=13)
                    .chain([16, 17, 18, 19, 24, 32])
                    .map(|m| (m, draws[m as usize % 3]))
                    .collect()
            }
        }
    }
}

/// Shapes (N, K) that reach each order and each branch of a width.
#[must_use]
pub fn shapes(bits: u32, group_size: u32) -> [(u32, u32); 6] {
    let fast = fast_step(bits);
    let block = 32 * values_per_lane(bits, Order::Generic);
    let tail = if group_size == 32 { 96 } else { group_size };
    [
        (16, 3 * fast),
        (16, 2 * block + tail), // all rows in whole tiles, a tail
        (13, 2 * block),        // the last tile moved back, a tail that is a block
        (13, block + tail),
        (5, 2 * block + tail), // less than a tile of rows
        (3, block),
    ]
}

/// Cells of numeric parity: the tiled family against M = 1.
#[must_use]
pub fn parity_cells(set: Set) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (bits, group_size) in pairs() {
        for &number in set.numbers() {
            for &vectors in set.tiles() {
                for (n, k) in shapes(bits, group_size) {
                    for (m, draw) in set.vectors(vectors) {
                        let batch = Vec::new();
                        let seed = SEEDS[0];
                        cells.push(Cell {
                            number,
                            bits,
                            group_size,
                            vectors,
                            m,
                            n,
                            k,
                            batch,
                            draw,
                            seed,
                        });
                    }
                }
            }
        }
    }
    cells.extend(long_cells(set));
    cells.extend(batched_cells(set));
    cells.extend(projection_cells(set));
    cells
}

/// Many blocks of K, with the tile and the types that the quick set otherwise
/// leaves to the projections.
fn long_cells(set: Set) -> Vec<Cell> {
    let numbers = match set {
        Set::Quick => &[Number::Half, Number::Bfloat],
        Set::Full => set.numbers(),
    };
    let mut cells = Vec::new();
    for (bits, group_size) in pairs() {
        let [fast, .., (_, tail), _, _] = shapes(bits, group_size);
        let shapes = [(fast.0, 3 * fast.1), (13, 5 * tail)];
        for (&number, (n, k)) in numbers.iter().flat_map(|n| shapes.map(|shape| (n, shape))) {
            let (vectors, m, draw, seed) = (4, 7, Draw::Plain, SEEDS[1]);
            let batch = Vec::new();
            cells.push(Cell { number, bits, group_size, vectors, m, n, k, batch, draw, seed });
        }
    }
    cells
}

fn pairs() -> impl Iterator<Item = (u32, u32)> {
    BITS.into_iter().flat_map(|bits| GROUP_SIZES.into_iter().map(move |group| (bits, group)))
}

/// Batches of one and of two axes, with x or w shared along one.
fn batched_cells(set: Set) -> Vec<Cell> {
    let axis = |size, x_shared, w_shared| BatchAxis { size, x_shared, w_shared };
    let batches = [
        (vec![axis(3, false, false)], 0),
        (vec![axis(2, false, false), axis(3, false, false)], 0),
        (vec![axis(2, false, true), axis(2, false, false)], 3),
        (vec![axis(2, true, false), axis(3, false, false)], 4),
    ];
    let all: Vec<(u32, u32)> = match set {
        Set::Quick => vec![(4, 64), (3, 32)],
        Set::Full => pairs().collect(),
    };
    let mut cells = Vec::new();
    for (bits, group_size) in all {
        let shapes = shapes(bits, group_size);
        for &number in set.numbers() {
            for (batch, shape) in &batches {
                let (n, k) = shapes[*shape];
                cells.push(Cell {
                    number,
                    bits,
                    group_size,
                    vectors: 3,
                    m: 5,
                    n,
                    k,
                    batch: batch.clone(),
                    draw: Draw::Plain,
                    seed: SEEDS[0],
                });
            }
        }
    }
    cells
}

/// The downstream projections, tiled as MLX tiles them, from several seeds:
/// whether a byte differs there depends on the draw.
fn projection_cells(set: Set) -> Vec<Cell> {
    let (vectors, seeds): (&[u32], _) = match set {
        Set::Quick => (&[2, 4, 5, 13], &SEEDS[..2]),
        Set::Full => {
            (&[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 19, 24, 32], &SEEDS[..])
        }
    };
    let mut cells = Vec::new();
    for (k, bits, group_size) in PROJECTIONS {
        for number in [Number::Float, Number::Half, Number::Bfloat, Number::Probe] {
            for (&m, &seed) in vectors.iter().flat_map(|m| seeds.iter().map(move |s| (m, s))) {
                cells.push(Cell {
                    number,
                    bits,
                    group_size,
                    vectors: tile_for(m),
                    m,
                    n: 16,
                    k,
                    batch: Vec::new(),
                    draw: Draw::Plain,
                    seed,
                });
            }
        }
    }
    cells
}

/// Cells of the oracle: each width, group size and GPU type, fast and generic,
/// plain and hard inputs, one long row, and batches.
#[must_use]
pub fn oracle_cells(set: Set) -> Vec<(Cell, Family)> {
    let mut cells = Vec::new();
    for (bits, group_size) in pairs() {
        let shapes = shapes(bits, group_size);
        for number in [Number::Float, Number::Half, Number::Bfloat] {
            let cell = |n, k, draw, seed| Cell {
                number,
                bits,
                group_size,
                vectors: 4,
                m: 5,
                n,
                k,
                batch: Vec::new(),
                draw,
                seed,
            };
            let shapes = if set == Set::Quick { &shapes[..2] } else { &shapes[..] };
            for &(n, k) in shapes {
                for draw in [Draw::Plain, Draw::Tiny, Draw::Wild] {
                    let cell = cell(n, k, draw, SEEDS[1]);
                    cells.push((cell.clone(), Family::Narrow(cell.order())));
                    cells.push((cell, Family::Wide));
                }
            }
            let long = cell(8, 32 * fast_step(bits), Draw::Plain, SEEDS[2]);
            cells.push((long, Family::Narrow(Order::Fast)));
        }
    }
    let batched = batched_cells(set);
    for cell in batched.into_iter().filter(|cell| cell.number != Number::Probe) {
        let cell = Cell { vectors: 4, ..cell };
        cells.push((cell.clone(), Family::Narrow(cell.order())));
        cells.push((cell, Family::Wide));
    }
    cells
}

/// Shape classes of symbolic parity, one a width, group size, tile and shape;
/// the number is float or half. Batching only moves pointers and is left to
/// the numeric proof.
#[must_use]
pub fn symbolic_cells(set: Set) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (bits, group_size) in pairs() {
        let shapes = shapes(bits, group_size);
        let shapes: Vec<_> = match set {
            Set::Quick => [0, 1, 3, 4].map(|i| shapes[i]).to_vec(),
            Set::Full => shapes.to_vec(),
        };
        for number in [Number::Float, Number::Half] {
            for &vectors in set.tiles() {
                for &(n, k) in &shapes {
                    cells.push(Cell {
                        number,
                        bits,
                        group_size,
                        vectors,
                        m: vectors + 1,
                        // One threadgroup of qmv says what two would.
                        n: if n == 16 { 8 } else { n },
                        k,
                        batch: Vec::new(),
                        draw: Draw::Plain,
                        seed: 0,
                    });
                }
            }
        }
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
