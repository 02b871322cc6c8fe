//! The parity set as data: each cell is one quantized matmul, its inputs drawn
//! from its seed. The host shim, Apple's compiled kernels and, on a Mac, the
//! GPU itself are all asked for the same cells.

use std::fmt;

use serde::Serialize;

use crate::kernels::{Family, Kernel, Number, Order};
use crate::runner::{Buffer, Dispatch, Sweep};

/// One batch axis, from the outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct BatchAxis {
    /// Its length.
    pub size: u32,
    /// All of the axis reads one x (stride 0).
    pub x_shared: bool,
    /// All of the axis reads one w (stride 0).
    pub w_shared: bool,
}

/// What the inputs are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// Values as in a model's layer.
    Plain,
    /// Denormals and values near them.
    Tiny,
    /// Infinities, NaNs of several payloads, signed zeros, values that overflow.
    Wild,
}

/// One quantized matmul: `x [B, M, K]` by `w [B, N, K]` transposed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Cell {
    /// Type of x, scales, biases and y.
    pub number: Number,
    /// Bits a weight.
    pub bits: u32,
    /// Weights a group.
    pub group_size: u32,
    /// Vectors a tile of the tiled kernel.
    pub vectors: u32,
    /// Vectors.
    pub m: u32,
    /// Rows of the weights, values of an output.
    pub n: u32,
    /// Values of a vector.
    pub k: u32,
    /// Batch axes; none for a plain matmul.
    pub batch: Vec<BatchAxis>,
    /// What the inputs are like.
    pub draw: Draw,
    /// From which they are drawn.
    pub seed: u64,
}

/// A cell's inputs, in the bytes a GPU buffer holds.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Packed weights, `[w matrices, N, K * bits / 8]`.
    pub w: Vec<u8>,
    /// `[w matrices, N, K / group_size]`.
    pub scales: Vec<u8>,
    /// As scales.
    pub biases: Vec<u8>,
    /// `[x matrices, M, K]`.
    pub x: Vec<u8>,
}

/// What has batch strides of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The vectors.
    X,
    /// The packed weights and their scales.
    W,
    /// The biases.
    Biases,
}

/// How the matrices of an operand lie.
struct Layout {
    /// By batch axis, in matrices.
    strides: Vec<i64>,
    /// Matrices there are.
    matrices: u32,
}

/// Which vectors a dispatch computes.
#[derive(Clone, Copy, Debug)]
pub enum Vectors {
    /// All M of them.
    All,
    /// One alone, as one-token decoding does.
    One(u32),
}

impl Cell {
    /// `qmv`'s order for this shape.
    #[must_use]
    pub fn order(&self) -> Order {
        Order::of(self.bits, self.n, self.k)
    }

    /// The kernel of a family that serves this cell.
    #[must_use]
    pub fn kernel(&self, family: Family) -> Kernel {
        Kernel {
            family,
            number: self.number,
            group_size: self.group_size,
            bits: self.bits,
            vectors: if family.tiled() { self.vectors } else { 1 },
            batched: !self.batch.is_empty(),
        }
    }

    /// Matrices in the batch.
    #[must_use]
    pub fn batches(&self) -> u32 {
        self.batch.iter().map(|axis| axis.size).product()
    }

    /// How each operand's matrices lie. Its first axis is the nearest to the
    /// matrix, but for the biases, so that no two operands' strides are one's.
    fn layout(&self, operand: Operand) -> Layout {
        let mut layout = Layout { strides: vec![0; self.batch.len()], matrices: 1 };
        let mut axes: Vec<usize> = (0..self.batch.len()).collect();
        if operand == Operand::Biases {
            axes.reverse();
        }
        for axis in axes {
            let BatchAxis { size, x_shared, w_shared } = self.batch[axis];
            if !(if operand == Operand::X { x_shared } else { w_shared }) {
                layout.strides[axis] = i64::from(layout.matrices);
                layout.matrices *= size;
            }
        }
        layout
    }

    /// Which matrix of an operand a batch reads.
    #[must_use]
    pub fn matrix_of(&self, operand: Operand, batch: u32) -> usize {
        let Layout { strides, .. } = self.layout(operand);
        let (mut left, mut matrix) = (batch, 0);
        for (axis, stride) in self.batch.iter().zip(strides).rev() {
            matrix += i64::from(left % axis.size) * stride;
            left /= axis.size;
        }
        matrix as usize
    }

    /// Draws the inputs.
    #[must_use]
    pub fn inputs(&self) -> Inputs {
        let mut random = Random(self.seed);
        let x_matrices = self.layout(Operand::X).matrices;
        let w_matrices = self.layout(Operand::W).matrices;
        let weights = w_matrices * self.n * self.k * self.bits / 8;
        let groups = w_matrices * self.n * self.k / self.group_size;
        let w = (0..weights).map(|_| random.next() as u8).collect();
        let mut scales = Vec::new();
        let mut biases = Vec::new();
        for _ in 0..groups {
            let scale = self.value(&mut random, 0.02, groups);
            self.number.encode(scale, &mut scales);
            let bias = self.value(&mut random, 0.1, groups);
            self.number.encode(bias, &mut biases);
        }
        let mut x = Vec::new();
        for _ in 0..x_matrices * self.m * self.k {
            let value = self.value(&mut random, 1.0, self.k);
            self.number.encode(value, &mut x);
        }
        Inputs { w, scales, biases, x }
    }

    /// One value; `row` is how many make a vector, which a wild one spoils
    /// about half the time.
    fn value(&self, random: &mut Random, size: f32, row: u32) -> f32 {
        let plain = random.signed() * size;
        match self.draw {
            Draw::Plain => plain,
            Draw::Tiny => match random.next() % 4 {
                0 => plain * 2f32.powi(-14),
                1 => plain * 2f32.powi(-120),
                2 => f32::from_bits(random.next() as u32 & 0x807f_ffff),
                _ => plain * 2f32.powi(-22),
            },
            Draw::Wild if random.next().is_multiple_of(u64::from(2 * row)) => {
                match random.next() % 6 {
                    0 => f32::INFINITY,
                    1 => f32::NEG_INFINITY,
                    2 => f32::from_bits(0x7fc0_0000 | random.next() as u32 & 0x3f_ffff),
                    3 => f32::from_bits(0xff80_0001 | random.next() as u32 & 0x3f_ffff),
                    4 => plain * 2f32.powi(15),
                    _ => f32::MAX,
                }
            }
            Draw::Wild if random.next().is_multiple_of(8) => 0f32.copysign(plain),
            Draw::Wild => plain,
        }
    }

    /// The dispatch of a kernel family for some of the vectors. Buffers are
    /// exactly as long as their contents; y comes filled with `poison`.
    #[must_use]
    pub fn dispatch(
        &self,
        family: Family,
        inputs: &Inputs,
        vectors: Vectors,
        poison: u8,
    ) -> Dispatch {
        let kernel = self.kernel(family);
        let value = self.number.bytes();
        let vector = self.k as usize * value;
        let (m, x) = match vectors {
            Vectors::All => (self.m, inputs.x.clone()),
            Vectors::One(row) => {
                let rows = inputs.x.chunks_exact(vector).skip(row as usize);
                (1, rows.step_by(self.m as usize).flatten().copied().collect())
            }
        };
        let y = vec![poison; (self.batches() * m * self.n) as usize * value];
        let mut table = Table::default();
        table.input(inputs.w.clone());
        for groups in [&inputs.scales, &inputs.biases] {
            table.input(self.with_rows_read(family, groups.clone()));
        }
        table.input(x);
        table.push(y, true);
        table.ints(&[self.k as i32]);
        table.ints(&[self.n as i32]);
        if kernel.family.tiled() {
            table.ints(&[m as i32]);
        }
        if kernel.batched {
            self.bind_batch(&mut table, m);
        }
        Dispatch {
            kernel: kernel.host_name(),
            grid: kernel.grid(m, self.n, self.batches()),
            group: kernel.group(),
            sweep: self.sweep(vectors),
            buffers: table.0,
        }
    }

    /// Blocks of an odd M run backwards, so that two that store at one place
    /// leave what the other leaves there at an even one. Every kernel of numeric
    /// parity runs at both.
    fn sweep(&self, vectors: Vectors) -> Sweep {
        match vectors {
            Vectors::All if self.m % 2 == 1 => Sweep::Descending,
            _ => Sweep::Ascending,
        }
    }

    /// Scales or biases as a family needs them: `qmv_quad` reads those of a
    /// whole tile of rows before it asks which rows there are.
    fn with_rows_read(&self, family: Family, mut groups: Vec<u8>) -> Vec<u8> {
        if let Family::Quad(_) = family {
            let past = self.n.next_multiple_of(family.rows()) - self.n;
            let values = (past * self.k / self.group_size) as usize;
            groups.resize(groups.len() + values * self.number.bytes(), 0);
        }
        groups
    }

    /// Shapes and strides as MLX's `add_strides_and_shapes` binds them; strides
    /// in elements, those of w in words of 32 bits.
    fn bind_batch(&self, table: &mut Table, m: u32) {
        let axes: Vec<i32> = self.batch.iter().map(|axis| axis.size as i32).collect();
        let words = self.k * self.bits / 32;
        let groups = self.k / self.group_size;
        let shape = |rows: u32, columns: u32| [&axes[..], &[rows as i32, columns as i32]].concat();
        let strides = |operand, rows: u32, columns: u32| -> Vec<i64> {
            let size = i64::from(rows) * i64::from(columns);
            let outer = self.layout(operand).strides.into_iter().map(|stride| stride * size);
            outer.chain([i64::from(columns), 1]).collect()
        };
        table.ints(&[axes.len() as i32]);
        table.ints(&shape(m, self.k));
        table.longs(&strides(Operand::X, m, self.k));
        table.ints(&[axes.len() as i32]);
        table.ints(&shape(self.n, words));
        table.longs(&strides(Operand::W, self.n, words));
        table.longs(&strides(Operand::W, self.n, groups));
        table.longs(&strides(Operand::Biases, self.n, groups));
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, bits, group_size, vectors, m, n, k, seed, .. } = self;
        let (order, draw) = (self.order(), self.draw);
        write!(f, "{number:?} {bits} bits, group {group_size}, {order:?}, tile {vectors}, ")?;
        write!(f, "M {m}, N {n}, K {k}, ")?;
        for axis in &self.batch {
            write!(f, "batch axis {axis}, ")?;
        }
        write!(f, "{draw:?}, seed {seed}")
    }
}

impl fmt::Display for BatchAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = ["", " (x shared)", " (w shared)", " (both shared)"];
        let which = usize::from(self.x_shared) + 2 * usize::from(self.w_shared);
        write!(f, "{}{}", self.size, shared[which])
    }
}

/// A kernel's argument table, filled in order.
#[derive(Default)]
struct Table(Vec<Buffer>);

impl Table {
    fn push(&mut self, bytes: Vec<u8>, is_output: bool) {
        self.0.push(Buffer { index: self.0.len() as u32, is_output, bytes });
    }

    fn input(&mut self, bytes: Vec<u8>) {
        self.push(bytes, false);
    }

    fn ints(&mut self, values: &[i32]) {
        self.input(values.iter().flat_map(|value| value.to_le_bytes()).collect());
    }

    fn longs(&mut self, values: &[i64]) {
        self.input(values.iter().flat_map(|value| value.to_le_bytes()).collect());
    }
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between -1 and 1, on a grid of 2^-23.
    fn signed(&mut self) -> f32 {
        (self.next() >> 40) as f32 * 2f32.powi(-23) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(batch: Vec<BatchAxis>) -> Cell {
        Cell {
            number: Number::Half,
            bits: 3,
            group_size: 32,
            vectors: 2,
            m: 3,
            n: 8,
            k: 64,
            batch,
            draw: Draw::Plain,
            seed: 1,
        }
    }

    #[test]
    fn one_vector_is_cut_from_each_matrix() {
        let axis = BatchAxis { size: 2, x_shared: false, w_shared: true };
        let cell = cell(vec![axis]);
        let inputs = cell.inputs();
        let one = cell.dispatch(Family::Narrow(Order::Generic), &inputs, Vectors::One(1), 0);
        assert_eq!(one.buffers[3].bytes[..128], inputs.x[128..256]);
        assert_eq!(one.buffers[3].bytes[128..], inputs.x[512..640]);
        assert_eq!(one.grid, [1, 1, 2]);
        assert_eq!(one.buffers.len(), 15);
    }

    #[test]
    fn batch_axes_lie_in_reverse() {
        let axis = |size, x_shared, w_shared| BatchAxis { size, x_shared, w_shared };
        let cell = cell(vec![axis(2, false, true), axis(3, false, false)]);
        let of = |operand| [0, 1, 2, 3, 4, 5].map(|batch| cell.matrix_of(operand, batch));
        assert_eq!(of(Operand::X), [0, 2, 4, 1, 3, 5]);
        assert_eq!(of(Operand::W), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn biases_lie_in_another_order_than_scales() {
        let axis = |size| BatchAxis { size, x_shared: false, w_shared: false };
        let cell = cell(vec![axis(2), axis(3)]);
        let of = |operand| [0, 1, 2, 3, 4, 5].map(|batch| cell.matrix_of(operand, batch));
        assert_eq!(of(Operand::W), [0, 2, 4, 1, 3, 5]);
        assert_eq!(of(Operand::Biases), [0, 1, 2, 3, 4, 5]);
    }
}
