//! The probe: block against chain on a stream of MLX.

use std::fmt;
use std::ops::Range;

use half::{bf16, f16};

use super::array::Array;
use super::error::{Error, Result};
use super::policy::{Effect, dispatches, effect, effective_policy};
use super::quantize::{Orientation, Quantized};
use super::stream::{Device, Stream};
use crate::exactness::{
    Compared, Comparison, ElementType, Kernels, Policy, Product, compare, random,
};

/// The random blocks that a probe draws: whether a bit differs depends on the
/// draw, so one is not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    /// The first draw's seed; the next ones count up.
    pub seed: u64,
    /// How many.
    pub count: usize,
}

impl Default for Draws {
    fn default() -> Self {
        Self { seed: 1, count: 4 }
    }
}

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// All draws as one comparison.
    pub comparison: Comparison,
    /// The policy in force on the stream; nothing without an overlay.
    pub policy: Option<Policy>,
    /// Whether that policy chose anything.
    pub effect: Effect,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.comparison;
        let policy = self.policy.map_or("none", Policy::as_str);
        write!(f, "block of {} against its vectors one by one, policy {policy}: ", c.width)?;
        match c.differing {
            0 => write!(f, "all {} elements equal, bit for bit", c.elements)?,
            n => write!(f, "{n} of {} elements differ", c.elements)?,
        }
        match (&c.block, &c.chain) {
            (Some(block), Some(chain)) => write!(f, "; block ran {block}; chain ran {chain}")?,
            _ => write!(f, "; {}", self.effect)?,
        }
        match c.compared() {
            Compared::OneFamily(one) => write!(f, " (one kernel on both sides: {})", one.as_str()),
            Compared::Families | Compared::NotCounted => Ok(()),
        }
    }
}

/// Multiplies random blocks of `width` vectors of this type with the weight
/// (N × K, or a stack of such), in one call and one by one, on this stream and
/// under the policy in force on it. The counts are the process's: what other
/// threads dispatch meanwhile is counted too.
///
/// # Errors
/// `width` or the number of draws is 0, or MLX's words.
pub fn probe(
    weight: &Quantized,
    element: ElementType,
    width: usize,
    draws: Draws,
    stream: &Stream,
) -> Result<Report> {
    let request = |what, given: usize| Error::Request {
        what,
        given: i64::try_from(given).unwrap_or(i64::MAX),
        takes: "1 or more",
    };
    if width == 0 {
        return Err(request("the width of a block", width));
    }
    let mut all: Option<Comparison> = None;
    for seed in (0..draws.count as u64).map(|n| draws.seed.wrapping_add(n)) {
        let mut kernels = OnStream::new(weight, element, width, seed, stream)?;
        let one = compare(&mut kernels, width)?;
        all = Some(match all {
            Some(so_far) => so_far.and(one),
            None => one,
        });
    }
    let effect = match (effect()?, stream.device()) {
        (Effect::Dispatches, Device::Cpu) => Effect::None,
        (effect, _) => effect,
    };
    let policy = match effect {
        Effect::NoOverlay => None,
        _ => effective_policy(stream.id())?,
    };
    let comparison = all.ok_or_else(|| request("the number of draws", draws.count))?;
    Ok(Report { comparison, policy, effect })
}

/// MLX's kernels on a stream, with a random block.
struct OnStream<'a> {
    weight: &'a Quantized,
    stream: &'a Stream,
    element: ElementType,
    /// The vectors of the block, matrix by matrix of a stack.
    x: Vec<f32>,
    width: usize,
    k: usize,
    stack: usize,
    /// The bytes of an element of the last product: MLX widens x to the type
    /// of the weight's scales.
    size: usize,
}

impl<'a> OnStream<'a> {
    fn new(
        weight: &'a Quantized,
        element: ElementType,
        width: usize,
        seed: u64,
        stream: &'a Stream,
    ) -> Result<Self> {
        let (matrix, stack) = match weight.shape() {
            [stack @ .., n, k] => ([*n, *k], stack.iter().product::<usize>()),
            _ => return Err(Error::Mlx("[probe] The weight is no matrix.".into())),
        };
        let k = matrix[1];
        let values = stack.checked_mul(width).and_then(|n| n.checked_mul(k));
        let values = values.filter(|n| i32::try_from(*n).is_ok()).ok_or(Error::Request {
            what: "the width of a block",
            given: i64::try_from(width).unwrap_or(i64::MAX),
            takes: "one that makes fewer than 2^31 values",
        })?;
        let x = random(values, seed);
        Ok(Self { weight, stream, element, x, width, k, stack, size: 4 })
    }
}

impl Kernels for OnStream<'_> {
    type Error = Error;

    fn element_size(&self) -> usize {
        self.size
    }

    fn product(&mut self, vectors: Range<usize>) -> Result<Product> {
        let (width, k) = (self.width, self.k);
        let of_matrix = |m: usize| &self.x[m * width * k..][vectors.start * k..vectors.end * k];
        let x: Vec<f32> = (0..self.stack).flat_map(of_matrix).copied().collect();
        // As a model calls it: [1, T, K] with one matrix.
        let mut shape = match self.weight.shape() {
            [stack @ .., _, _] if !stack.is_empty() => stack.to_vec(),
            _ => vec![1],
        };
        shape.extend([vectors.len(), k]);
        let x = array_of(self.element, &x, &shape)?;
        x.eval()?;
        let before = dispatches()?;
        let y = self.weight.matmul(&x, Orientation::Transposed, self.stream)?;
        let bytes = y.to_bytes()?;
        let half = matches!(y.element(), Some(ElementType::Float16 | ElementType::Bfloat16));
        self.size = if half { 2 } else { 4 };
        let dispatched = dispatches()?.zip(before).map(|(now, before)| now.since(&before));
        let row = bytes.len() / (self.stack * vectors.len()).max(1);
        let of_vector = |v: usize| -> Vec<u8> {
            let rows = (0..self.stack).map(|m| &bytes[(m * vectors.len() + v) * row..][..row]);
            rows.flatten().copied().collect()
        };
        Ok(Product { vectors: (0..vectors.len()).map(of_vector).collect(), dispatched })
    }
}

/// An array of these values, rounded to the type.
pub(super) fn array_of(element: ElementType, values: &[f32], shape: &[usize]) -> Result<Array> {
    match element {
        ElementType::Float32 => Array::from_slice(values, shape),
        ElementType::Float16 => {
            let values: Vec<f16> = values.iter().copied().map(f16::from_f32).collect();
            Array::from_slice(&values, shape)
        }
        ElementType::Bfloat16 => {
            let values: Vec<bf16> = values.iter().copied().map(bf16::from_f32).collect();
            Array::from_slice(&values, shape)
        }
        ElementType::Uint32 => Err(Error::Element { holds: "uint32".into(), asked: "a float" }),
    }
}
