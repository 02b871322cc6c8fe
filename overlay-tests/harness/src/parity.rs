//! Numeric parity: every vector of a tiled kernel is `qmv`'s at M = 1, bit for
//! bit, and both are near what float64 says.

use crate::HarnessError;
use crate::cells::{Cell, Draw, Inputs, Operand, Vectors};
use crate::kernels::{Family, Number};
use crate::runner::Runner;

/// What y holds before a kernel runs: of the two that are compared each has its
/// own, so that what neither writes differs too. One is a NaN in every type,
/// which spoils whatever it is added to, but where results may be NaN themselves.
pub(crate) fn poisons(draw: Draw) -> [u8; 2] {
    [if draw == Draw::Wild { 0xcd } else { 0xff }, 0x35]
}

/// What one kernel run gave: bytes of y, or why there are none.
pub type Outcome = Result<Vec<u8>, String>;

/// Something that multiplies: the host shim, Apple's compiled kernels on the
/// host, or MLX itself (`tests/runtime/parity.rs`), on an Apple GPU where there
/// is one.
pub trait Multiply {
    /// Runs a family's kernel for some vectors of the cell and gives y, dense:
    /// `[B, vectors, N]`.
    ///
    /// # Errors
    /// The machine cannot be used any more. A kernel's own fault is the inner
    /// error.
    fn multiply(
        &mut self,
        cell: &Cell,
        inputs: &Inputs,
        family: Family,
        vectors: Vectors,
        poison: u8,
    ) -> Result<Outcome, HarnessError>;

    /// Whether products of this type are summed in float, as the Metal kernels
    /// sum them. The bound on their error holds for nothing else.
    fn sums_in_float(&self, _: Number) -> bool {
        true
    }
}

impl Multiply for Runner {
    fn multiply(
        &mut self,
        cell: &Cell,
        inputs: &Inputs,
        family: Family,
        vectors: Vectors,
        poison: u8,
    ) -> Result<Outcome, HarnessError> {
        let dispatch = cell.dispatch(family, inputs, vectors, poison);
        let outputs = self.run(&dispatch)?;
        Ok(outputs.map(|outputs| outputs.into_iter().next().unwrap_or_default()))
    }
}

/// What came of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Values compared.
    pub values: usize,
    /// Values that differ.
    pub differing: usize,
    /// What went wrong first; nothing where all holds.
    pub fault: Option<String>,
}

impl Verdict {
    /// Whether all is equal.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.fault.is_none()
    }

    /// A cell that could not be compared, and why.
    pub(crate) fn fault(why: String) -> Self {
        Self { fault: Some(why), ..Self::default() }
    }
}

/// Compares a tiled family with one `qmv` call a vector.
///
/// # Errors
/// The machine cannot be used any more.
pub fn parity(
    machine: &mut dyn Multiply,
    cell: &Cell,
    tiled: Family,
) -> Result<Verdict, HarnessError> {
    let inputs = cell.inputs();
    let narrow = Family::Narrow(cell.order());
    let poisons = poisons(cell.draw);
    let block = match machine.multiply(cell, &inputs, tiled, Vectors::All, poisons[0])? {
        Ok(block) => block,
        Err(why) => return Ok(Verdict::fault(format!("{}: {why}", tiled.template()))),
    };
    let bytes = cell.number.bytes();
    let row = cell.n as usize * bytes;
    let mut verdict = Verdict::default();
    for vector in 0..cell.m {
        let one = Vectors::One(vector);
        let alone = match machine.multiply(cell, &inputs, narrow, one, poisons[1])? {
            Ok(alone) => alone,
            Err(why) => return Ok(Verdict::fault(format!("{}: {why}", narrow.template()))),
        };
        for (batch, alone) in alone.chunks_exact(row).enumerate() {
            let at = (batch * cell.m as usize + vector as usize) * row;
            let place = |column| format!("batch {batch}, vector {vector}, column {column}");
            verdict.compare(cell.number, &block[at..at + row], alone, place);
        }
    }
    let bounded = cell.draw == Draw::Plain && machine.sums_in_float(cell.number);
    if verdict.holds() && bounded {
        verdict.fault = beyond_bound(cell, &inputs, &block);
    }
    Ok(verdict)
}

impl Verdict {
    /// Compares two rows of y; a NaN equals any NaN.
    pub fn compare(
        &mut self,
        number: Number,
        got: &[u8],
        expected: &[u8],
        place: impl Fn(usize) -> String,
    ) {
        let size = number.bytes();
        let columns = got.chunks_exact(size).zip(expected.chunks_exact(size));
        for (column, (got, expected)) in columns.enumerate() {
            self.values += 1;
            if got == expected {
                continue;
            }
            let (a, b) = (number.decode(got)[0], number.decode(expected)[0]);
            if a.is_nan() && b.is_nan() {
                continue;
            }
            self.differing += 1;
            if self.fault.is_none() {
                self.fault = Some(format!("{}: {a:e}, expected {b:e}", place(column)));
            }
        }
    }
}

/// Checks y against a sum in float64, with an error bound from the number of
/// roundings on the way. `None` where all values are within it.
fn beyond_bound(cell: &Cell, inputs: &Inputs, y: &[u8]) -> Option<String> {
    let (n, k, m) = (cell.n as usize, cell.k as usize, cell.m as usize);
    let groups = k / cell.group_size as usize;
    let y = cell.number.decode(y);
    let x = cell.number.decode(&inputs.x);
    let scales = cell.number.decode(&inputs.scales);
    let biases = cell.number.decode(&inputs.biases);
    let unit = f64::from(f32::EPSILON) / 2.0;
    // Sums of a lane and of the lanes, and the few roundings of each term.
    let float_error = (k as f64 / 32.0 + 64.0) * unit;
    for batch in 0..cell.batches() as usize {
        let of = |operand| cell.matrix_of(operand, batch as u32);
        let (x_at, w_at, b_at) = (of(Operand::X), of(Operand::W), of(Operand::Biases));
        for column in 0..n {
            let (row, bias_row) = (w_at * n + column, b_at * n + column);
            let q = unpack(&inputs.w, row * k, k, cell.bits);
            for vector in 0..m {
                let x = &x[(x_at * m + vector) * k..][..k];
                let (mut sum, mut size, mut bias_size) = (0.0, 0.0, 0.0);
                for (i, (x, q)) in x.iter().zip(&q).enumerate() {
                    let group = i / cell.group_size as usize;
                    let scale = scales[row * groups + group];
                    let bias = biases[bias_row * groups + group];
                    sum += x * (scale * q + bias);
                    size += (x * scale * q).abs() + (x * bias).abs();
                    bias_size += (x * bias).abs();
                }
                // load_vector sums up to 8 x in x's own type.
                let bound = float_error * size
                    + 8.0 * cell.number.sum_rounding() * bias_size
                    + cell.number.rounding() * (sum.abs() + size * float_error);
                let got = y[(batch * m + vector) * n + column];
                // Written so that a NaN is beyond every bound.
                let within = (got - sum).abs() <= bound;
                if !within {
                    return Some(format!(
                        "batch {batch}, vector {vector}, column {column}: {got:e} is further than \
                         {bound:e} from the float64 sum {sum:e}"
                    ));
                }
            }
        }
    }
    None
}

/// Weights `from..from + count` of a packed buffer: a stream of bits, lowest
/// first.
fn unpack(w: &[u8], from: usize, count: usize, bits: u32) -> Vec<f64> {
    let bits = bits as usize;
    (from..from + count)
        .map(|i| {
            let bit = i * bits;
            let low = u32::from(w[bit / 8]);
            let high = w.get(bit / 8 + 1).map_or(0, |byte| u32::from(*byte) << 8);
            f64::from((low | high) >> (bit % 8) & ((1 << bits) - 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_weights_are_a_stream_of_bits() {
        assert_eq!(unpack(&[0b1101_0001, 0b0000_0010], 0, 3, 3), [1.0, 2.0, 3.0]);
        assert_eq!(unpack(&[0x21, 0x43], 1, 2, 4), [2.0, 3.0]);
    }

    #[test]
    fn a_poison_is_nan_in_every_type_and_never_the_other() {
        for number in [Number::Float, Number::Half, Number::Bfloat, Number::Probe] {
            assert!(number.decode(&[poisons(Draw::Plain)[0]; 4])[0].is_nan(), "{number:?}");
            let wild = poisons(Draw::Wild).map(|poison| number.decode(&[poison; 4])[0]);
            assert!(wild[0].is_finite() && wild[0] != wild[1], "{number:?}");
        }
    }

    #[test]
    fn nan_equals_nan_and_zero_has_a_sign() {
        let mut verdict = Verdict::default();
        let place = |column: usize| column.to_string();
        let bytes = |value: f32| value.to_le_bytes();
        let nan = f32::from_bits(0x7fc0_0001);
        verdict.compare(Number::Float, &bytes(f32::NAN), &bytes(nan), place);
        assert!(verdict.holds());
        verdict.compare(Number::Float, &bytes(0.0), &bytes(-0.0), place);
        assert_eq!((verdict.values, verdict.differing), (2, 1));
    }
}
