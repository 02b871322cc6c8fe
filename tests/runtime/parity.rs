//! The harness's own parity set, computed by the MLX that is linked: on a Mac,
//! on its GPU. On Linux the same cells run on MLX's CPU backend. That says
//! nothing of Metal; it shows that inputs, products and comparison meet here as
//! they do in the host simulation.

use std::collections::{BTreeMap, HashSet};

use mlx_overlay::exactness::{self, Family as Kind, Shape, batch_limit};
use mlx_overlay::runtime::*;
use mlx_overlay_harness::HarnessError;
use mlx_overlay_harness::cells::{self, Inputs, Operand, Vectors};
use mlx_overlay_harness::kernels::{Family, Number, tile_for};
use mlx_overlay_harness::parity::{Multiply, Outcome, parity};
use mlx_overlay_harness::sets::{Set, parity_cells};

pub const SET: &str = "parity: a block is its vectors one by one, every cell that MLX has";
pub const WRONG: &str = "parity: a block that is not its vectors is found";

/// MLX on a stream. On a GPU the stream's policy is `streamed`, and a product
/// that another kernel served is a fault.
struct Mlx {
    stream: Stream,
    /// Added to the first value of every block, for a test that must fail.
    spoil: u8,
}

impl Mlx {
    fn new() -> Self {
        let stream = Stream::new(Device::best().unwrap()).unwrap();
        let mut verdicts = Verdicts::on(machine().unwrap());
        // The set is to run whatever the guard's smaller trials say.
        let scope = Scope::Stream(stream.id());
        set_policy(scope, &Setting::Unguarded, &mut verdicts).unwrap();
        Self { stream, spoil: 0 }
    }

    fn product(&self, cell: &cells::Cell, inputs: &Inputs, vectors: Vectors) -> Result<Array> {
        let (n, k, group) = (cell.n as usize, cell.k as usize, cell.group_size as usize);
        let m = cell.m as usize;
        let words = k * cell.bits as usize / 32;
        let quantization =
            Quantization { mode: Mode::Affine, group_size: group, bits: cell.bits as usize };
        let of_w = |operand, bytes: &[u8], row: usize, number: Option<Number>| {
            let w = Axes::of(cell, operand);
            array(&w.gather(bytes, bytes.len() / w.matrices()), &w.shape(n, row), number)
        };
        let weight = Quantized::from_parts(
            of_w(Operand::W, &inputs.w, words, None)?,
            of_w(Operand::W, &inputs.scales, k / group, Some(cell.number))?,
            Some(of_w(Operand::Biases, &inputs.biases, k / group, Some(cell.number))?),
            quantization,
        )?;
        let x = Axes::of(cell, Operand::X);
        let row = k * cell.number.bytes();
        let taken = match vectors {
            Vectors::All => 0..m,
            Vectors::One(vector) => vector as usize..vector as usize + 1,
        };
        let mut bytes = Vec::new();
        for matrix in x.gather(&inputs.x, m * row).chunks_exact(m * row) {
            bytes.extend(&matrix[taken.start * row..taken.end * row]);
        }
        let x = array(&bytes, &x.shape(taken.len(), k), Some(cell.number))?;
        weight.matmul(&x, Orientation::Transposed, &self.stream)
    }
}

impl Multiply for Mlx {
    /// MLX owns y, so nothing is poisoned.
    fn multiply(
        &mut self,
        cell: &cells::Cell,
        inputs: &Inputs,
        family: Family,
        vectors: Vectors,
        _: u8,
    ) -> std::result::Result<Outcome, HarnessError> {
        let run = || -> Result<(Vec<u8>, Option<Dispatches>)> {
            let before = dispatches()?;
            let y = self.product(cell, inputs, vectors)?.to_bytes()?;
            let ran = dispatches()?.zip(before).map(|(now, before)| now.since(&before));
            Ok((y, ran))
        };
        let wanted = match family {
            Family::Narrow(_) => Kind::Single,
            Family::Streamed(_) => Kind::Streamed,
            Family::Wide => Kind::Wide,
            Family::Quad(_) => Kind::Quad,
        };
        Ok(match run() {
            Err(error) => Err(error.to_string()),
            Ok((_, Some(ran))) if ran.families() != [wanted] => {
                Err(format!("{} was wanted, and MLX dispatched {ran}", wanted.as_str()))
            }
            Ok((mut y, _)) => {
                if matches!(vectors, Vectors::All) {
                    y[0] = y[0].wrapping_add(self.spoil);
                }
                Ok(y)
            }
        })
    }

    /// MLX's CPU kernels sum halves as halves.
    fn sums_in_float(&self, number: Number) -> bool {
        self.stream.device() == Device::Gpu || number == Number::Float
    }
}

/// The batch axes of x or of w as MLX takes them: a shared axis has length 1,
/// and MLX repeats it with stride 0. The matrices are brought into MLX's order,
/// so strides in any other are left to the host simulation.
struct Axes {
    lengths: Vec<usize>,
    /// Where each matrix is in the cell's own order.
    places: Vec<usize>,
}

impl Axes {
    fn of(cell: &cells::Cell, operand: Operand) -> Self {
        let shared = |axis: &cells::BatchAxis| match operand {
            Operand::X => axis.x_shared,
            Operand::W | Operand::Biases => axis.w_shared,
        };
        let lengths: Vec<usize> =
            cell.batch.iter().map(|a| if shared(a) { 1 } else { a.size as usize }).collect();
        let place = |matrix: usize| {
            let (mut left, mut batch, mut step) = (matrix, 0, 1);
            for (axis, length) in cell.batch.iter().zip(&lengths).rev() {
                batch += left % length * step;
                left /= length;
                step *= axis.size as usize;
            }
            cell.matrix_of(operand, batch as u32)
        };
        let places = (0..lengths.iter().product()).map(place).collect();
        Self { lengths, places }
    }

    fn matrices(&self) -> usize {
        self.places.len()
    }

    /// The matrices, of so many bytes each, one after the other.
    fn gather(&self, bytes: &[u8], size: usize) -> Vec<u8> {
        self.places.iter().flat_map(|place| &bytes[place * size..][..size]).copied().collect()
    }

    fn shape(&self, rows: usize, columns: usize) -> Vec<usize> {
        self.lengths.iter().copied().chain([rows, columns]).collect()
    }
}

/// An array of the bytes; words of packed weights where no number is given.
fn array(bytes: &[u8], shape: &[usize], number: Option<Number>) -> Result<Array> {
    let four = |b: &[u8]| <[u8; 4]>::try_from(b).unwrap();
    let two = |b: &[u8]| <[u8; 2]>::try_from(b).unwrap();
    let (words, pairs) = (bytes.chunks_exact(4).map(four), bytes.chunks_exact(2).map(two));
    match number {
        None => Array::from_slice(&words.map(u32::from_le_bytes).collect::<Vec<_>>(), shape),
        Some(Number::Half) => {
            Array::from_slice(&pairs.map(f16::from_le_bytes).collect::<Vec<_>>(), shape)
        }
        Some(Number::Bfloat) => {
            Array::from_slice(&pairs.map(bf16::from_le_bytes).collect::<Vec<_>>(), shape)
        }
        Some(Number::Float | Number::Probe) => {
            Array::from_slice(&words.map(f32::from_le_bytes).collect::<Vec<_>>(), shape)
        }
    }
}

/// Why MLX cannot run a cell on this device, or does not by these kernels.
fn left_out(cell: &cells::Cell, architecture: &str) -> Option<&'static str> {
    let element = match cell.number {
        Number::Float => ElementType::Float32,
        Number::Half => ElementType::Float16,
        Number::Bfloat => ElementType::Bfloat16,
        Number::Probe => return Some("the probe type, which only the host simulation has"),
    };
    let [m, n, k, bits] = [cell.m, cell.n, cell.k, cell.bits].map(|v| v as usize);
    let how = Quantization { mode: Mode::Affine, group_size: cell.group_size as usize, bits };
    let shape = Shape { m, n, k, stack: cell.batches() as usize };
    if exactness::Cell::of(element, how, shape).is_none() {
        return Some("a short K, which qmv_quad serves under every policy");
    }
    let beyond = batch_limit(architecture, k, n).is_some_and(|limit| m >= limit);
    beyond.then_some("as many vectors as this device multiplies as a matrix")
}

pub fn set(set: Set) {
    let mut mlx = Mlx::new();
    let info = info().unwrap();
    let mut seen = HashSet::new();
    let mut not_run: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut equal, mut values, mut faults) = (0, 0, Vec::new());
    for cell in parity_cells(set) {
        // MLX takes its own tile for M.
        let cell = cells::Cell { vectors: tile_for(cell.m), ..cell };
        let why = match left_out(&cell, &info.architecture) {
            None if !seen.insert(cell.clone()) => Some("another tile than MLX's own for that M"),
            why => why,
        };
        if let Some(why) = why {
            *not_run.entry(why).or_default() += 1;
            continue;
        }
        let tiled = Family::Streamed(cell.order());
        let verdict = parity(&mut mlx, &cell, tiled).unwrap();
        values += verdict.values;
        match verdict.fault {
            None => equal += 1,
            Some(why) => faults.push(format!("{cell}: {why}")),
        }
    }
    let device = if mlx.stream.device() == Device::Gpu { "GPU" } else { "CPU backend" };
    println!("{set:?} parity set on MLX's {device}, {}:", info.device);
    println!("  {equal} of {} cells equal, {values} values compared", seen.len());
    not_run.iter().for_each(|(why, count)| println!("  not run: {count} cells: {why}"));
    if info.metal {
        println!("  nobody had run this on an Apple GPU when it was written: untested there");
    } else {
        println!("  half, bfloat: no bound from float64, for this backend sums in the type itself");
        println!("  untested: the same cells on an Apple GPU, which this test runs on a Mac");
    }
    faults.iter().take(10).for_each(|fault| println!("  {fault}"));
    assert!(faults.is_empty(), "{} cells differ", faults.len());
    assert!(seen.len() > 200 && values > 0, "{} cells are not the set", seen.len());
}

pub fn a_wrong_block_is_found() {
    let mut mlx = Mlx { spoil: 1, ..Mlx::new() };
    let cell = parity_cells(Set::Quick).into_iter().find(|c| c.number == Number::Float).unwrap();
    let cell = cells::Cell { vectors: tile_for(cell.m), ..cell };
    let verdict = parity(&mut mlx, &cell, Family::Streamed(cell.order())).unwrap();
    assert_eq!(verdict.differing, 1, "{verdict:?}");
}
