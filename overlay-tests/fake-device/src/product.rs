//! A quantized product as MLX's graph API takes it.

use serde::Serialize;

/// MLX's quantization modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A scale and a bias a group.
    Affine,
    /// Four-bit floats, a power-of-two scale for 32.
    Mxfp4,
    /// Eight-bit floats, a power-of-two scale for 32.
    Mxfp8,
    /// Four-bit floats, an eight-bit scale for 16.
    Nvfp4,
}

impl Mode {
    /// MLX's name, and how its kernels' names begin.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Affine => "affine",
            Self::Mxfp4 => "mxfp4",
            Self::Mxfp8 => "mxfp8",
            Self::Nvfp4 => "nvfp4",
        }
    }
}

/// How weights are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Packing {
    /// The mode.
    pub mode: Mode,
    /// Bits a weight.
    pub bits: u32,
    /// Weights a scale.
    pub group: u32,
}

impl Packing {
    /// Affine weights.
    #[must_use]
    pub const fn affine(bits: u32, group: u32) -> Self {
        Self { mode: Mode::Affine, bits, group }
    }

    /// The three packings without biases; each mode has one width and group.
    pub const FP: [Self; 3] = [
        Self { mode: Mode::Mxfp4, bits: 4, group: 32 },
        Self { mode: Mode::Mxfp8, bits: 8, group: 32 },
        Self { mode: Mode::Nvfp4, bits: 4, group: 16 },
    ];
}

/// The widths of affine weights, in bits.
pub const BITS: [u32; 6] = [2, 3, 4, 5, 6, 8];

/// The type of x and of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Number {
    /// 32 bits.
    Float32,
    /// IEEE half.
    Float16,
    /// bfloat16.
    Bfloat16,
}

impl Number {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Float32, Self::Float16, Self::Bfloat16];

    /// Its name in Metal, and so in host names.
    #[must_use]
    pub fn metal(self) -> &'static str {
        match self {
            Self::Float32 => "float",
            Self::Float16 => "float16_t",
            Self::Bfloat16 => "bfloat16_t",
        }
    }

    /// Bytes a value takes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Float32 => 4,
            Self::Float16 | Self::Bfloat16 => 2,
        }
    }
}

/// x [batch, M, K] times w [batch, N, K] transposed; M is said apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Product {
    /// How w is packed.
    #[serde(flatten)]
    pub packing: Packing,
    /// Type of x.
    #[serde(rename = "type")]
    pub number: Number,
    /// Length of a vector.
    pub k: u32,
    /// Rows of w.
    pub n: u32,
    /// Matrices; 1 for x and w of two dimensions.
    pub batch: u32,
}

/// What the overlay's policies are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Upstream's rule.
    Wide,
    /// Never `qmv_wide`.
    Narrow,
    /// `qmv`'s order with the weights read once for several vectors.
    Streamed,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Wide, Self::Narrow, Self::Streamed];
}
