//! Which cells a run decides. README.md shows the same as a table.

use std::collections::HashSet;

use serde::Serialize;

use crate::cells::{BatchAxis, Cell, Draw};
use crate::kernels::{
    BITS, Family, GROUP_SIZES, Kernel, Number, Order, TILES, fast_step, tile_for,
};
use crate::shapes::{Shapes, steps};
use crate::workshop::Mode;

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

    /// The modes in which numeric parity is run, each over all cells.
    #[must_use]
    pub fn modes(self) -> &'static [Mode] {
        if self == Self::Quick { &[Mode::Checked] } else { &[Mode::Checked, Mode::Apple] }
    }

    /// The mode of the text beside Apple's kernels.
    #[must_use]
    pub fn oracle_mode(self) -> Mode {
        if self == Self::Quick { Mode::Checked } else { Mode::Apple }
    }
}

/// Cells of a proof that belong together: a row of the README's table.
#[derive(Clone, Copy, Debug)]
pub struct Row<C> {
    /// What they are.
    pub name: &'static str,
    /// Those of a set.
    pub cells: fn(Set) -> Vec<C>,
}

/// Numeric parity. The longest first: no core is left alone with one at the end.
pub const PARITY: [Row<Cell>; 6] = [
    Row { name: "whole matrices", cells: whole },
    Row { name: "projections", cells: projections },
    Row { name: "large N", cells: large },
    Row { name: "long K", cells: long },
    Row { name: "batches", cells: batched },
    Row { name: "swept", cells: swept },
];

/// The oracle.
pub const ORACLE: [Row<(Cell, Family)>; 3] = [
    Row { name: "shapes", cells: beside_apple },
    Row { name: "batches", cells: batched_beside_apple },
    Row { name: "qmv_quad", cells: quads },
];

fn all<C>(rows: &[Row<C>], set: Set) -> Vec<C> {
    rows.iter().flat_map(|row| (row.cells)(set)).collect()
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

/// The shapes of a cell's width and group size.
fn shapes(kernel: &Cell) -> Shapes {
    Shapes::of(kernel.bits, kernel.group_size)
}

/// Cells of numeric parity: the tiled family against M = 1.
#[must_use]
pub fn parity_cells(set: Set) -> Vec<Cell> {
    all(&PARITY, set)
}

/// Every kernel in every shape, over M.
fn swept(set: Set) -> Vec<Cell> {
    let pairs: Vec<_> = pairs().collect();
    let mut cells = Vec::new();
    for kernel in kernels(&pairs, set.numbers(), set.tiles()) {
        let tile = kernel.vectors;
        for (shape, (n, k)) in shapes(&kernel).all().into_iter().enumerate() {
            // A whole tile and a part of one, less than a tile or one, two whole tiles.
            let mut vectors = vec![(2 * tile - 1, DRAWS[0]), (2, DRAWS[1]), (2 * tile, DRAWS[2])];
            if set == Set::Full {
                // Turns by tiles and not by M: at a tile of 3 each draw would
                // keep to one remainder.
                let turn = |m| (m, DRAWS[(m / tile + shape as u32) as usize % 3]);
                let more = (2..=32).map(turn).filter(|one| !vectors.contains(one));
                vectors.extend(more.collect::<Vec<_>>());
            }
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
    let of = |kernel: &Cell, batches: &[(u32, Vec<BatchAxis>)]| -> Vec<Cell> {
        let Shapes { fast, moved_back, few_rows, .. } = shapes(kernel);
        let of_batch = |(m, batch): &(u32, Vec<BatchAxis>)| {
            let (m, batch) = (*m, batch.clone());
            [fast, moved_back, few_rows].map(|(n, k)| Cell {
                m,
                n,
                k,
                batch: batch.clone(),
                ..kernel.clone()
            })
        };
        batches.iter().flat_map(of_batch).collect()
    };
    let crossed = match set {
        Set::Quick => kernels(&[(4, 64), (3, 32)], set.numbers(), &[3]),
        Set::Full => kernels(&pairs().collect::<Vec<_>>(), set.numbers(), set.tiles()),
    };
    let mut cells: Vec<Cell> =
        crossed.iter().flat_map(|kernel| of(kernel, &batches(kernel.vectors))).collect();
    if set == Set::Quick {
        // The other widths: the two axes, where most can be offset wrongly.
        let others = kernels(&[(2, 128), (5, 64), (6, 32), (8, 128)], &[Number::Probe], &[3]);
        cells.extend(others.iter().flat_map(|kernel| of(kernel, &batches(kernel.vectors)[1..2])));
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

/// Cells of the oracle.
#[must_use]
pub fn oracle_cells(set: Set) -> Vec<(Cell, Family)> {
    all(&ORACLE, set)
}

/// Each width, group size and GPU type, fast and generic, plain and hard
/// inputs, and one long row.
fn beside_apple(set: Set) -> Vec<(Cell, Family)> {
    let mut cells = Vec::new();
    let pairs: Vec<_> = pairs().collect();
    for kernel in kernels(&pairs, &GPU_NUMBERS, &[4]) {
        let shapes = shapes(&kernel);
        let plain = match set {
            Set::Quick => vec![shapes.fast, shapes.moved_back_tail],
            Set::Full => [&shapes.all()[..], &large_shapes(&kernel)].concat(),
        };
        for ((n, k), draw) in plain.into_iter().flat_map(|shape| DRAWS.map(|draw| (shape, draw))) {
            let cell = Cell { m: 5, n, k, draw, seed: SEEDS[1], ..kernel.clone() };
            cells.push((cell.clone(), Family::Narrow(cell.order())));
            cells.push((cell, Family::Wide));
        }
        let (m, n, k, seed) = (5, 8, 32 * fast_step(kernel.bits), SEEDS[2]);
        cells.push((Cell { m, n, k, seed, ..kernel }, Family::Narrow(Order::Fast)));
    }
    cells
}

/// The batches of numeric parity, but for the probe, which Apple has not. `qmv`
/// knows no tile, and `qmv_wide` is asked for one.
fn batched_beside_apple(set: Set) -> Vec<(Cell, Family)> {
    let mut cells: Vec<Cell> =
        batched(set).into_iter().map(|cell| Cell { vectors: 4, ..cell }).collect();
    let mut seen = HashSet::new();
    cells.retain(|cell| cell.number != Number::Probe && seen.insert(cell.clone()));
    let both = |cell: Cell| [(cell.clone(), Family::Narrow(cell.order())), (cell, Family::Wide)];
    cells.into_iter().flat_map(both).collect()
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
        let shapes = shapes(&kernel);
        let shapes = match set {
            Set::Quick => {
                vec![shapes.fast, shapes.whole_rows, shapes.moved_back_tail, shapes.few_rows]
            }
            Set::Full => shapes.all(),
        };
        let m = kernel.vectors + 1;
        cells.extend(shapes.into_iter().map(|(n, k)| Cell { m, n, k, ..kernel.clone() }));
    }
    cells
}

/// Kernels that are type-checked with address spaces: both orders, batched.
#[must_use]
pub fn address_space_kernels(set: Set) -> Vec<Kernel> {
    let pairs: Vec<_> = pairs().collect();
    let (pairs, tiles) = match set {
        Set::Quick => (BITS.map(|bits| (bits, 64)).to_vec(), &[3][..]),
        Set::Full => (pairs, &TILES[..]),
    };
    let of = |cell: Cell| {
        [Order::Fast, Order::Generic].into_iter().flat_map(move |order| {
            let kernel = |family| Kernel { batched: true, ..cell.kernel(family) };
            [kernel(Family::Narrow(order)), kernel(Family::Streamed(order))]
        })
    };
    kernels(&pairs, &[Number::Float, Number::Half], tiles).into_iter().flat_map(of).collect()
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
    use std::collections::BTreeSet;

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
    fn the_quick_set_is_a_part_of_the_full_one() {
        fn part<C: std::hash::Hash + Eq>(cells: fn(Set) -> Vec<C>) -> bool {
            let full: HashSet<C> = cells(Set::Full).into_iter().collect();
            cells(Set::Quick).iter().all(|cell| full.contains(cell))
        }
        for row in PARITY {
            assert!(part(row.cells), "{}", row.name);
        }
        for row in ORACLE {
            assert!(part(row.cells), "{}", row.name);
        }
        assert!(part(symbolic_cells));
        assert!(part(address_space_kernels));
    }

    #[test]
    fn every_draw_meets_every_remainder_of_a_tile_and_both_sweeps() {
        let swept = swept(Set::Full);
        for tile in TILES {
            let of = || swept.iter().filter(move |cell| cell.vectors == tile);
            let remainders: HashSet<_> = of().map(|c| (c.draw, c.n, c.m % tile)).collect();
            assert_eq!(remainders.len() as u32, 3 * 4 * tile, "tiles of {tile}");
            let sweeps: HashSet<_> = of().map(|c| (c.draw, c.n, c.m % 2)).collect();
            assert_eq!(sweeps.len(), 3 * 4 * 2, "tiles of {tile}");
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
    fn no_cell_is_run_twice() {
        for set in [Set::Quick, Set::Full] {
            let cells = parity_cells(set);
            assert_eq!(cells.iter().collect::<HashSet<_>>().len(), cells.len());
            let cells = oracle_cells(set);
            assert_eq!(cells.iter().collect::<HashSet<_>>().len(), cells.len());
            let cells = symbolic_cells(set);
            assert_eq!(cells.iter().collect::<HashSet<_>>().len(), cells.len());
        }
    }

    #[test]
    fn the_quick_set_has_a_batch_of_two_axes_at_each_width() {
        let cells = parity_cells(Set::Quick);
        for (bits, order) in
            BITS.iter().flat_map(|b| [Order::Fast, Order::Generic].map(|o| (*b, o)))
        {
            let of = |cell: &&Cell| cell.bits == bits && cell.order() == order;
            assert!(cells.iter().filter(of).any(|cell| cell.batch.len() == 2), "{bits} {order:?}");
        }
    }
}
