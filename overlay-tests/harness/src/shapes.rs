//! The shapes of a matrix that a width's kernels tell apart.

use crate::kernels::{Order, fast_step, values_per_lane};

/// Shapes (N, K) of a width that reach each order and each branch.
#[derive(Clone, Copy, Debug)]
pub struct Shapes {
    /// The fast order.
    pub fast: (u32, u32),
    /// Generic by its K: all rows in whole tiles, a tail.
    pub whole_rows: (u32, u32),
    /// The last tile of rows moved back, a tail that is a whole block.
    pub moved_back: (u32, u32),
    /// The same with a tail.
    pub moved_back_tail: (u32, u32),
    /// Less than `qmv`'s tile of 8 rows; of the twin's tiles of 4 the last is
    /// moved back. A tail.
    pub few_rows: (u32, u32),
    /// Less than a tile of either. No tail.
    pub fewer_rows: (u32, u32),
}

impl Shapes {
    /// Those of a width and a group size.
    #[must_use]
    pub fn of(bits: u32, group_size: u32) -> Self {
        let (fast, block, tail) = steps(bits, group_size);
        Self {
            fast: (8, 3 * fast),
            whole_rows: (8, 2 * block + tail),
            moved_back: (13, 2 * block),
            moved_back_tail: (13, block + tail),
            few_rows: (5, 2 * block + tail),
            fewer_rows: (3, block),
        }
    }

    /// Each once: where a group is as long as a block there is no tail, and two
    /// of them are one.
    #[must_use]
    pub fn all(&self) -> Vec<(u32, u32)> {
        let Self { fast, whole_rows, moved_back, moved_back_tail, few_rows, fewer_rows } = *self;
        let mut shapes = vec![fast, whole_rows, moved_back, moved_back_tail, few_rows, fewer_rows];
        shapes.dedup();
        shapes
    }
}

/// The blocks of the fast and the generic kernel along K, and a part of the latter.
pub(crate) fn steps(bits: u32, group_size: u32) -> (u32, u32, u32) {
    let tail = if group_size == 32 { 96 } else { group_size };
    (fast_step(bits), 32 * values_per_lane(bits, Order::Generic), tail)
}

/// A shape by what it is for: its order, its rows, whether it has a tail.
pub(crate) fn shape_name(bits: u32, n: u32, k: u32) -> String {
    let order = Order::of(bits, n, k);
    let block = 32 * values_per_lane(bits, order);
    let tail = if k.is_multiple_of(block) { "" } else { " with a tail" };
    format!("{} N {n}{tail}", if order == Order::Fast { "fast" } else { "generic" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{BITS, GROUP_SIZES};

    #[test]
    fn the_shapes_are_what_they_are_called() {
        let pairs = BITS.iter().flat_map(|bits| GROUP_SIZES.map(|group| (*bits, group)));
        for (bits, group_size) in pairs {
            let shapes = Shapes::of(bits, group_size);
            let order = |(n, k)| Order::of(bits, n, k);
            assert_eq!(order(shapes.fast), Order::Fast);
            let all = shapes.all();
            assert!(all[1..].iter().all(|shape| order(*shape) == Order::Generic));
            let tail = |(_, k): (u32, u32)| k % steps(bits, group_size).1 != 0;
            let has_tails = bits < 6 || group_size < 128;
            for shape in [shapes.whole_rows, shapes.moved_back_tail, shapes.few_rows] {
                assert_eq!(tail(shape), has_tails, "{bits} {group_size}");
            }
            assert!(!tail(shapes.moved_back) && !tail(shapes.fewer_rows));
        }
    }
}
