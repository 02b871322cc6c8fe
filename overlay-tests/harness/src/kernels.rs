//! The kernels the harness knows, in one place: their host names, their
//! buffers, and the grid MLX gives them.

use serde::Serialize;

/// The quantized widths upstream instantiates, in bits.
pub const BITS: [u32; 6] = [2, 3, 4, 5, 6, 8];
/// The group sizes upstream instantiates, in weights.
pub const GROUP_SIZES: [u32; 3] = [32, 64, 128];
/// The tiles of the streamed and wide kernels, in vectors.
pub const TILES: [u32; 4] = [2, 3, 4, 5];

/// The type of x, scales, biases and y.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Number {
    /// 32 bits.
    Float,
    /// IEEE half.
    Half,
    /// bfloat16.
    Bfloat,
    /// Adds as half does, stores fp32. No GPU has it.
    Probe,
}

impl Number {
    /// Its name in Metal, and so in host names.
    #[must_use]
    pub fn metal(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Half => "float16_t",
            Self::Bfloat => "bfloat16_t",
            Self::Probe => "probe",
        }
    }

    /// Bytes a value takes in memory.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Float | Self::Probe => 4,
            Self::Half | Self::Bfloat => 2,
        }
    }
}

/// Which of `qmv`'s two orders: MLX takes the fast one where N is a multiple of
/// 8 and K of the fast step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// `affine_qmv_fast`.
    Fast,
    /// `affine_qmv`, with its tail and its two row branches.
    Generic,
}

impl Order {
    /// What `dispatch_qmv` picks for a matrix.
    #[must_use]
    pub fn of(bits: u32, n: u32, k: u32) -> Self {
        if n.is_multiple_of(8) && k.is_multiple_of(fast_step(bits)) {
            Self::Fast
        } else {
            Self::Generic
        }
    }
}

/// A kernel family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Upstream's, one vector a threadgroup: what one-token decoding runs.
    Narrow(Order),
    /// The overlay's, `vectors` a tile, in `qmv`'s order.
    Streamed(Order),
    /// Upstream's, `vectors` a tile, in an order of its own.
    Wide,
    /// Upstream's, for vectors of 64 or 128 values: four lanes a row.
    Quad(u32),
}

impl Family {
    /// The name of its kernel template.
    #[must_use]
    pub fn template(self) -> &'static str {
        match self {
            Self::Narrow(Order::Fast) => "affine_qmv_fast",
            Self::Narrow(Order::Generic) => "affine_qmv",
            Self::Streamed(Order::Fast) => "affine_qmv_fast_streamed",
            Self::Streamed(Order::Generic) => "affine_qmv_streamed",
            Self::Wide => "affine_qmv_wide",
            Self::Quad(_) => "affine_qmv_quad",
        }
    }

    /// Rows of the weights a threadgroup serves.
    #[must_use]
    pub fn rows(self) -> u32 {
        match self {
            Self::Streamed(_) => 4,
            Self::Narrow(_) | Self::Wide => 8,
            Self::Quad(_) => 64,
        }
    }

    /// Whether a threadgroup serves a tile of vectors; such a kernel takes M as
    /// buffer 7.
    #[must_use]
    pub fn tiled(self) -> bool {
        !matches!(self, Self::Narrow(_) | Self::Quad(_))
    }
}

/// Every family.
pub const FAMILIES: [Family; 7] = [
    Family::Narrow(Order::Fast),
    Family::Narrow(Order::Generic),
    Family::Streamed(Order::Fast),
    Family::Streamed(Order::Generic),
    Family::Wide,
    Family::Quad(64),
    Family::Quad(128),
];

/// One instantiated kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Kernel {
    /// Which family.
    pub family: Family,
    /// Type of x, scales, biases and y.
    pub number: Number,
    /// Weights a group.
    pub group_size: u32,
    /// Bits a weight.
    pub bits: u32,
    /// Vectors a tile; 1 for a family without tiles.
    pub vectors: u32,
    /// Whether it reads batch shapes and strides.
    pub batched: bool,
}

impl Kernel {
    /// The name `quantized.metal` gives it.
    #[must_use]
    pub fn host_name(&self) -> String {
        self.host_name_for(self.number.metal())
    }

    /// The same with another name for the type (the symbolic types have some).
    #[must_use]
    pub fn host_name_for(&self, number: &str) -> String {
        let tile = match self.family {
            Family::Narrow(_) => String::new(),
            Family::Streamed(_) => format!("_nv_{}", self.vectors),
            Family::Wide => format!("_nv_{}_kl_8", self.vectors),
            Family::Quad(length) => format!("_d_{length}"),
        };
        format!(
            "{}_{number}_gs_{}_b_{}{tile}_batch_{}",
            self.family.template(),
            self.group_size,
            self.bits,
            u8::from(self.batched)
        )
    }

    /// The kernel of a host name; none for a name of another family.
    #[must_use]
    pub fn parse(host_name: &str) -> Option<Self> {
        let numbers = [Number::Float, Number::Half, Number::Bfloat, Number::Probe];
        let all = numbers
            .into_iter()
            .flat_map(|number| FAMILIES.into_iter().map(move |family| (number, family)));
        // A template's name may begin another's, so only a whole match counts.
        all.filter_map(|(number, family)| {
            let prefix = format!("{}_{}_gs_", family.template(), number.metal());
            let fields: Vec<&str> = host_name.strip_prefix(&prefix)?.split('_').collect();
            let field = |name: &str| {
                let at = fields.iter().position(|field| *field == name)?;
                fields.get(at + 1)?.parse::<u32>().ok()
            };
            let kernel = Self {
                family,
                number,
                group_size: fields.first()?.parse().ok()?,
                bits: field("b")?,
                vectors: if family.tiled() { field("nv")? } else { 1 },
                batched: field("batch")? == 1,
            };
            (kernel.host_name() == host_name).then_some(kernel)
        })
        .next()
    }

    /// The grid in threadgroups for M vectors, N rows and B matrices, as
    /// `quantized.cpp` dispatches it.
    #[must_use]
    pub fn grid(&self, m: u32, n: u32, batches: u32) -> [u32; 3] {
        [m.div_ceil(self.vectors), n.div_ceil(self.family.rows()), batches]
    }

    /// Threads of a threadgroup: two simdgroups, of a quad's kernel one.
    #[must_use]
    pub fn group(&self) -> [u32; 3] {
        [32, if matches!(self.family, Family::Quad(_)) { 1 } else { 2 }, 1]
    }
}

/// Values a lane takes from each block of a row.
#[must_use]
pub fn values_per_lane(bits: u32, order: Order) -> u32 {
    let pack = match bits {
        3 | 5 => 8,
        6 => 4,
        _ => 32 / bits,
    };
    if order == Order::Fast && bits != 2 { 2 * pack } else { pack }
}

/// The step of the fast kernel along K, in weights.
#[must_use]
pub fn fast_step(bits: u32) -> u32 {
    32 * values_per_lane(bits, Order::Fast)
}

/// The tile `qmv_wide` and the streamed dispatch choose for M vectors: the
/// fewest tiles of at most 5, then the smallest that fills them.
#[must_use]
pub fn tile_for(m: u32) -> u32 {
    m.div_ceil(m.div_ceil(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_read_back() {
        for name in [
            "affine_qmv_fast_float16_t_gs_64_b_4_batch_0",
            "affine_qmv_float_gs_128_b_3_batch_1",
            "affine_qmv_wide_bfloat16_t_gs_32_b_8_nv_4_kl_8_batch_0",
            "affine_qmv_fast_streamed_float_gs_64_b_4_nv_5_batch_1",
            "affine_qmv_streamed_float16_t_gs_64_b_6_nv_2_batch_0",
            "affine_qmv_quad_float_gs_64_b_4_d_128_batch_0",
        ] {
            let kernel = Kernel::parse(name).expect(name);
            assert_eq!(kernel.host_name(), name);
        }
        assert_eq!(Kernel::parse("affine_qmm_t_float_gs_64_b_4_alN_true_batch_0"), None);
        assert_eq!(Kernel::parse("affine_qmv_wide_float_gs_64_b_4_nv_4_kl_16_batch_0"), None);
    }

    #[test]
    fn tiles_are_those_of_the_dispatch() {
        let tiles: Vec<u32> = [2, 5, 6, 7, 11, 13].map(tile_for).to_vec();
        assert_eq!(tiles, [2, 5, 3, 4, 4, 5]);
    }

    #[test]
    fn the_order_follows_rows_and_step() {
        assert_eq!(Order::of(4, 16, 5120), Order::Fast);
        assert_eq!(Order::of(4, 16, 3840), Order::Generic);
        assert_eq!(Order::of(8, 16, 3840), Order::Fast);
        assert_eq!(Order::of(8, 13, 3840), Order::Generic);
    }
}
