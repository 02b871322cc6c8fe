//! Quantized matrices and their products.

use std::fmt;

use super::array::{Array, dimension};
use super::bridge::{self, Parts, Scheme};
use super::error::{Error, Result};
use super::stream::Stream;
use crate::exactness::{ElementType, Mode, Quantization};

/// Which way a quantized matrix multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// `x · Wᵀ`: W is N × K, a row an output. What a layer does.
    Transposed,
    /// `x · W`: W is K × N.
    Plain,
}

/// A quantized matrix, or a stack of them: groups run along the last axis.
pub struct Quantized {
    parts: Parts,
    quantization: Quantization,
    /// The lengths before quantizing.
    shape: Vec<usize>,
}

impl Quantized {
    /// Quantizes `weight` along its last axis, whose length must be a multiple
    /// of the group size; it has two dimensions or more, of `float32`,
    /// `float16` or `bfloat16`.
    ///
    /// # Errors
    /// MLX's words, where it does not take the mode, the numbers or the shape.
    pub fn new(weight: &Array, quantization: Quantization, stream: &Stream) -> Result<Self> {
        let scheme = scheme(quantization)?;
        let parts = bridge::quantize(weight.inner(), &scheme, stream.key())?;
        Ok(Self { parts, quantization, shape: weight.shape() })
    }

    /// Takes a matrix that is quantized already, such as a loaded one.
    /// `packed` is of `uint32`, `32 / bits` values an element; `scales`, and in
    /// mode [`Mode::Affine`] `biases`, hold one element a group.
    ///
    /// # Errors
    /// The mode has no such group size or bits, the shapes do not make a matrix,
    /// or the mode is affine and there are no biases. Whether types fit MLX tells
    /// when the matrix is used.
    pub fn from_parts(
        packed: Array,
        scales: Array,
        biases: Option<Array>,
        quantization: Quantization,
    ) -> Result<Self> {
        scheme(quantization)?;
        if !quantization.is_known() {
            return Err(Error::Mlx(format!("[quantized] There is no {quantization}.")));
        }
        if quantization.mode == Mode::Affine && biases.is_none() {
            return Err(Error::Mlx("[quantized] The affine mode has biases.".into()));
        }
        let mut shape = scales.shape();
        if !fit(&packed.shape(), &shape, quantization) {
            return Err(Error::Mlx(format!(
                "[quantized] Packed values of shape {:?} and scales of shape {shape:?} do not make a \
                 matrix of {quantization}.",
                packed.shape()
            )));
        }
        if let Some(biases) = biases.as_ref().map(Array::shape).filter(|b| *b != shape) {
            return Err(Error::Mlx(format!(
                "[quantized] Biases of shape {biases:?} do not go with scales of shape {shape:?}."
            )));
        }
        if let Some(last) = shape.last_mut() {
            *last *= quantization.group_size;
        }
        let biases = biases.map_or_else(cxx::UniquePtr::null, Array::into_inner);
        let (packed, scales) = (packed.into_inner(), scales.into_inner());
        Ok(Self { parts: Parts { packed, scales, biases }, quantization, shape })
    }

    /// How it is quantized.
    #[must_use]
    pub fn quantization(&self) -> Quantization {
        self.quantization
    }

    /// The lengths of the matrix as it was before quantizing, in elements.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The packed values, `uint32`.
    ///
    /// # Errors
    /// There is no memory for a handle.
    pub fn packed(&self) -> Result<Array> {
        Ok(Array::new(bridge::array_handle(&self.parts.packed)?))
    }

    /// The scales, one a group.
    ///
    /// # Errors
    /// There is no memory for a handle.
    pub fn scales(&self) -> Result<Array> {
        Ok(Array::new(bridge::array_handle(&self.parts.scales)?))
    }

    /// The biases, one a group; nothing in the modes that have none.
    ///
    /// # Errors
    /// There is no memory for a handle.
    pub fn biases(&self) -> Result<Option<Array>> {
        let biases = self.parts.biases.as_ref();
        Ok(biases.map(bridge::array_handle).transpose()?.map(Array::new))
    }

    /// Computes the quantized arrays now, rather than when first used.
    ///
    /// # Errors
    /// MLX could not.
    pub fn eval(&self) -> Result<()> {
        let parts = [&self.parts.packed, &self.parts.scales, &self.parts.biases];
        for part in parts.into_iter().filter_map(|p| p.as_ref()) {
            bridge::eval(part)?;
        }
        Ok(())
    }

    /// The matrix again, each value as near as its bits hold it; in the fp modes
    /// in bfloat16, whatever it was made of.
    ///
    /// # Errors
    /// MLX's words.
    pub fn dequantize(&self, stream: &Stream) -> Result<Array> {
        let scheme = scheme(self.quantization)?;
        Ok(Array::new(bridge::dequantize(&self.parts, &scheme, stream.key())?))
    }

    /// The product of `x` (… × M × K, floating point) with this matrix:
    /// … × M × N. Nothing is computed yet; the policy that counts is the one in
    /// force when it is.
    ///
    /// # Errors
    /// MLX's words, where the shapes or types do not fit.
    pub fn matmul(&self, x: &Array, orientation: Orientation, stream: &Stream) -> Result<Array> {
        if matches!(x.element(), Some(ElementType::Uint32)) {
            return Err(Error::Element { holds: "uint32".into(), asked: "a float" });
        }
        let scheme = scheme(self.quantization)?;
        let transpose = orientation == Orientation::Transposed;
        let key = stream.key();
        let product = bridge::quantized_matmul(x.inner(), &self.parts, &scheme, transpose, key)?;
        Ok(Array::new(product))
    }
}

impl fmt::Debug for Quantized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quantized({:?}, {})", self.shape, self.quantization)
    }
}

fn scheme(quantization: Quantization) -> Result<Scheme> {
    // MLX divides by both before it looks at them.
    let positive = |what, n| match n {
        0 => Err(Error::Request { what, given: 0, takes: "1 or more" }),
        n => dimension(n),
    };
    Ok(Scheme {
        mode: quantization.mode.as_str().to_owned(),
        group_size: positive("the group size", quantization.group_size)?,
        bits: positive("the number of bits", quantization.bits)?,
    })
}

/// Whether each row of `packed` has a row of `scales`, and each group of it a
/// scale. MLX compares the last lengths alone, and its kernels would read on.
fn fit(packed: &[usize], scales: &[usize], quantization: Quantization) -> bool {
    let Quantization { group_size, bits, .. } = quantization;
    let (Some((words, rows)), Some((groups, of))) = (packed.split_last(), scales.split_last())
    else {
        return false;
    };
    let wide = |n: &usize| *n as u128;
    let packed_bits = wide(words) * 32;
    !rows.is_empty() && rows == of && packed_bits == wide(groups) * wide(&group_size) * wide(&bits)
}
