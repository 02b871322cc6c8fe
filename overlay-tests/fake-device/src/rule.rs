//! What upstream's text, and the overlay's policies, ask for: written down from
//! reading them, not by running them. The fake device has to agree.
//!
//! Read at pin 9a795735 in `mlx/backend/metal/quantized.cpp`:
//! `get_qmv_batch_limit`, `qmv_quad`, `qmv`, `use_qmv_wide`, `qmv_wide`,
//! `dispatch_qmv` and `QuantizedMatmul::eval_gpu`.

use std::fmt;

use crate::architecture::Architecture;
use crate::product::{Mode, Policy, Product};

/// The kernels a transposed quantized product can go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// `qmv_quad`: rows of 64 or 128.
    Quad,
    /// `qmv`, in one of its two orders, one vector.
    Single,
    /// The same for each of several vectors.
    Narrow,
    /// `qmv_wide`: a tile of vectors, in an order of its own.
    Wide,
    /// The overlay's: a tile of vectors in `qmv`'s order.
    Streamed,
    /// A matrix product.
    Matrix,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quad => "quad",
            Self::Single | Self::Narrow => "qmv",
            Self::Wide => "wide",
            Self::Streamed => "streamed",
            Self::Matrix => "qmm",
        })
    }
}

impl Family {
    /// Whether every row of the result is summed as a single row is. A matrix
    /// product is not; a quad is its own single row.
    #[must_use]
    pub fn keeps_the_order_of_one_row(self) -> bool {
        !matches!(self, Self::Wide | Self::Matrix)
    }

    /// The family a host name belongs to, for a product of M rows; nothing for
    /// another kernel.
    #[must_use]
    pub fn of(kernel: &str, m: u32) -> Option<Self> {
        let mode = ["affine_", "mxfp4_", "mxfp8_", "nvfp4_"];
        let rest = mode.iter().find_map(|mode| kernel.strip_prefix(mode))?;
        let families = [
            ("qmv_quad_", Self::Quad),
            ("qmv_wide_", Self::Wide),
            ("qmv_fast_streamed_", Self::Streamed),
            ("qmv_streamed_", Self::Streamed),
            ("qmv_", if m == 1 { Self::Single } else { Self::Narrow }),
            ("qmm_t_", Self::Matrix),
        ];
        families.into_iter().find(|(start, _)| rest.starts_with(start)).map(|(_, family)| family)
    }
}

/// A dispatch as expected: of a matrix product only the family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The family.
    pub family: Family,
    /// Host name, grid in threadgroups and threads a threadgroup.
    pub exactly: Option<(String, [u64; 3], [u64; 3])>,
}

/// The M from which a product is a matrix product.
#[must_use]
pub fn limit(architecture: Architecture, k: u32, n: u32) -> u32 {
    let fits = |side: u32| k <= side && n <= side;
    let [small, middle, large] = match (architecture.generation, architecture.size) {
        (17.., 'p' | 'g' | 's' | 'c') => [33, 25, 13],
        (15.., 'p' | 'g' | 's' | 'c') => [13, 15, 13],
        (_, 'd') => [32, 18, 12],
        (13.., _) => [14, 10, 6],
        _ => [18, 12, 10],
    };
    if fits(2048) {
        small
    } else if fits(4096) {
        middle
    } else {
        large
    }
}

/// Where a product of M rows goes under a policy.
#[must_use]
pub fn expected(architecture: Architecture, product: &Product, m: u32, policy: Policy) -> Expected {
    let family = family(architecture, product, m, policy);
    let exactly = exactly(architecture, product, m, family);
    Expected { family, exactly }
}

fn family(architecture: Architecture, product: &Product, m: u32, policy: Policy) -> Family {
    let packing = product.packing;
    if m >= limit(architecture, product.k, product.n) {
        return Family::Matrix;
    }
    if (product.k == 64 || product.k == 128) && packing.bits.is_power_of_two() {
        return Family::Quad;
    }
    if m == 1 {
        return Family::Single;
    }
    let wide_by_upstreams_rule = packing.mode != Mode::Affine || architecture.generation >= 15;
    match policy {
        // The fp modes have no streamed kernels yet: upstream's rule.
        Policy::Streamed if packing.mode == Mode::Affine => Family::Streamed,
        // An off-switch, in every mode.
        Policy::Narrow => Family::Narrow,
        _ if wide_by_upstreams_rule => Family::Wide,
        _ => Family::Narrow,
    }
}

fn exactly(
    architecture: Architecture,
    product: &Product,
    m: u32,
    family: Family,
) -> Option<(String, [u64; 3], [u64; 3])> {
    let Product { packing, n, k, .. } = *product;
    let fast = n.is_multiple_of(8) && k.is_multiple_of(fast_step(packing.bits));
    let fast_name = if fast { "_fast" } else { "" };
    let tile = m.div_ceil(m.div_ceil(5));
    // Rows of w a threadgroup serves.
    let (kernel, tail, vectors, rows, simdgroups) = match family {
        Family::Matrix => return None,
        Family::Quad => ("qmv_quad".to_string(), format!("_d_{k}"), 1, 64, 1),
        Family::Single | Family::Narrow => {
            // nvfp4 on an M5 Max: half the rows, in a kernel of its own.
            let slim = fast
                && n >= 4096
                && architecture.generation == 17
                && architecture.size == 's'
                && packing.mode == Mode::Nvfp4;
            let (tail, rows) = if slim { ("_r_2", 4) } else { ("", 8) };
            (format!("qmv{fast_name}"), tail.to_string(), 1, rows, 2)
        }
        Family::Wide => {
            let (lanes, rows) = if packing.mode == Mode::Affine { (8, 8) } else { (16, 4) };
            ("qmv_wide".to_string(), format!("_nv_{tile}_kl_{lanes}"), tile, rows, 2)
        }
        Family::Streamed => (format!("qmv{fast_name}_streamed"), format!("_nv_{tile}"), tile, 4, 2),
    };
    let name = format!(
        "{}_{kernel}_{}_gs_{}_b_{}{tail}_batch_{}",
        packing.mode.name(),
        product.number.metal(),
        packing.group,
        packing.bits,
        u8::from(product.batch > 1)
    );
    let grid = [m.div_ceil(vectors), n.div_ceil(rows), product.batch].map(u64::from);
    Some((name, grid, [32, simdgroups, 1]))
}

/// The step of `qmv_fast` along K, in weights: 32 lanes, each with one pack at
/// 2 bits and two packs at the others.
fn fast_step(bits: u32) -> u32 {
    match bits {
        2 => 32 * 16,
        3 | 5 => 32 * 2 * 8,
        6 => 32 * 2 * 4,
        _ => 32 * 2 * (32 / bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::{Number, Packing};

    fn on(generation: u32, size: char) -> Architecture {
        Architecture { generation, size }
    }

    #[test]
    fn limits_are_those_of_the_facts_page() {
        let limits = |a| [(2048, 2048), (4096, 4096), (4096, 8192)].map(|(k, n)| limit(a, k, n));
        assert_eq!(limits(on(17, 's')), [33, 25, 13]);
        assert_eq!(limits(on(16, 'g')), [13, 15, 13]);
        assert_eq!(limits(on(15, 'd')), [32, 18, 12]);
        assert_eq!(limits(on(13, 'd')), [32, 18, 12]);
        assert_eq!(limits(on(14, 's')), [14, 10, 6]);
        assert_eq!(limits(on(12, 'g')), [18, 12, 10]);
    }

    #[test]
    fn recorded_dispatches_of_the_facts_page() {
        let product = Product {
            packing: Packing::affine(4, 64),
            number: Number::Float16,
            k: 4096,
            n: 4096,
            batch: 1,
        };
        let one = expected(on(15, 'd'), &product, 1, Policy::Wide);
        let name = "affine_qmv_fast_float16_t_gs_64_b_4_batch_0";
        assert_eq!(one.exactly, Some((name.into(), [1, 512, 1], [32, 2, 1])));
        let four = expected(on(15, 'd'), &product, 4, Policy::Wide);
        let name = "affine_qmv_wide_float16_t_gs_64_b_4_nv_4_kl_8_batch_0";
        assert_eq!(four.exactly, Some((name.into(), [1, 512, 1], [32, 2, 1])));
        let old = expected(on(14, 's'), &product, 4, Policy::Wide);
        assert_eq!(old.exactly.expect("a qmv").1, [4, 512, 1]);
        assert_eq!(expected(on(15, 'd'), &product, 32, Policy::Wide).family, Family::Matrix);
    }
}
