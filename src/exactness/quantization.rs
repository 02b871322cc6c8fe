//! Types of elements, and ways to quantize them.

use std::fmt;

/// A type of elements.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// 32-bit floating point.
    Float32,
    /// 16-bit floating point, IEEE 754 binary16.
    Float16,
    /// 16-bit floating point with the exponent of `float32`.
    Bfloat16,
    /// 32-bit unsigned integers; MLX packs quantized weights into them.
    Uint32,
}

impl ElementType {
    /// The name as MLX writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ElementType::Float32 => "float32",
            ElementType::Float16 => "float16",
            ElementType::Bfloat16 => "bfloat16",
            ElementType::Uint32 => "uint32",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the values of a group are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Integers with a scale and a bias a group: 2, 3, 4, 5, 6 or 8 bits,
    /// groups of 32, 64 or 128.
    Affine,
    /// 4-bit floats, a power of two as scale; groups of 32.
    Mxfp4,
    /// 8-bit floats, a power of two as scale; groups of 32.
    Mxfp8,
    /// 4-bit floats, an 8-bit float as scale; groups of 16.
    Nvfp4,
}

impl Mode {
    /// The name as MLX writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Affine => "affine",
            Mode::Mxfp4 => "mxfp4",
            Mode::Mxfp8 => "mxfp8",
            Mode::Nvfp4 => "nvfp4",
        }
    }
}

/// How a matrix is quantized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantization {
    /// The mode.
    pub mode: Mode,
    /// The number of neighbouring values that share a scale.
    pub group_size: usize,
    /// The bits of a value.
    pub bits: usize,
}

impl Quantization {
    /// Whether the mode has such groups and bits. MLX quantizes with no others,
    /// but multiplies with them, and its kernels then read on.
    #[must_use]
    pub fn is_known(self) -> bool {
        match self.mode {
            Mode::Affine => {
                [32, 64, 128].contains(&self.group_size) && [2, 3, 4, 5, 6, 8].contains(&self.bits)
            }
            Mode::Mxfp4 => (self.group_size, self.bits) == (32, 4),
            Mode::Mxfp8 => (self.group_size, self.bits) == (32, 8),
            Mode::Nvfp4 => (self.group_size, self.bits) == (16, 4),
        }
    }
}

impl fmt::Display for Quantization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} bits, groups of {}", self.mode.as_str(), self.bits, self.group_size)
    }
}
