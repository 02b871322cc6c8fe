//! The policies that choose between kernels.

use std::fmt;

/// Which kernel serves a transposed quantized product of two or more vectors,
/// below the number from which MLX multiplies matrices. One vector is served
/// by the same kernel under every policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// MLX's own rule: `qmv_wide` where it is faster. What it returns for a
    /// vector depends on how many vectors came with it.
    Wide,
    /// `qmv`: each vector's result is that of the vector alone. Reads the
    /// weights once for each vector.
    Narrow,
    /// Affine modes: the results of `qmv`, bit for bit, with the weights read
    /// once for several vectors. Other modes follow [`Policy::Wide`].
    Streamed,
}

impl Policy {
    /// The name as the environment variable `MLX_OVERLAY_QMV` takes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Policy::Wide => "wide",
            Policy::Narrow => "narrow",
            Policy::Streamed => "streamed",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
