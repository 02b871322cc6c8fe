//! What upstream's text, and the overlay's policies, ask for: written down from
//! reading them, not by running them. The fake device has to agree.
//!
//! Read at pin 9a795735 in `mlx/backend/metal/quantized.cpp`:
//! `get_qmv_batch_limit`, `qmv_quad`, `qmv`, `use_qmv_wide`, `qmv_wide`,
//! `dispatch_qmv`, `qmm`, `qmm_splitk` and `QuantizedMatmul::eval_gpu`.

use std::fmt;

use crate::architecture::Architecture;
use crate::device::Dispatch;
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

/// A dispatch as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The family.
    pub family: Family,
    /// The host name.
    pub kernel: String,
    /// Threadgroups.
    pub grid: [u64; 3],
    /// Threads a threadgroup.
    pub group: [u64; 3],
    /// Whether a second kernel sums what this one made of parts of K.
    pub in_parts: bool,
}

impl Expected {
    /// What is wrong with the dispatches of a product, in plain words: kernels
    /// and grids.
    #[must_use]
    pub fn complaint(&self, dispatches: &[Dispatch]) -> Option<String> {
        let Some((first, sums)) = dispatches.split_first() else {
            return Some("nothing was dispatched".into());
        };
        let as_expected = first.kernel == self.kernel
            && (first.grid, first.group) == (self.grid, self.group)
            && !first.grid_in_threads
            && sums.is_empty() != self.in_parts
            && sums.iter().all(|sum| sum.kernel.starts_with("col_reduce_"));
        (!as_expected).then(|| format!("{dispatches:?} where {self:?} is expected"))
    }
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
    let Product { packing, n, k, .. } = *product;
    let fast = n.is_multiple_of(8) && k.is_multiple_of(fast_step(packing.bits));
    let fast_name = if fast { "_fast" } else { "" };
    let tile = m.div_ceil(m.div_ceil(5));
    // Rows of w a threadgroup serves.
    let (kernel, tail, vectors, rows, simdgroups) = match family {
        Family::Matrix => return matrix(product, m),
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
    let tail = format!("{tail}_batch_{}", u8::from(product.batch > 1));
    Expected {
        family,
        kernel: name(product, &kernel, &tail),
        grid: [m.div_ceil(vectors), n.div_ceil(rows), product.batch].map(u64::from),
        group: [32, simdgroups, 1],
        in_parts: false,
    }
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

/// A matrix product: tiles of 32 by 32, and one matrix's K in parts where the
/// tiles alone are few.
fn matrix(product: &Product, m: u32) -> Expected {
    let Product { packing, n, k, batch, .. } = *product;
    let tiles = [n.div_ceil(32), m.div_ceil(32)];
    // About 512 threadgroups, each with as many whole steps of K as the others.
    let step = packing.group.max(32);
    let most = (512 / (tiles[0] * tiles[1])).min(k / step);
    let parts = (2..=most).rev().find(|parts| k.is_multiple_of(parts * step));
    let parts = parts.filter(|_| batch == 1);
    let (kernel, batched) = match parts {
        Some(_) => ("qmm_t_splitk", String::new()),
        None => ("qmm_t", format!("_batch_{}", u8::from(batch > 1))),
    };
    let whole = n.is_multiple_of(32);
    Expected {
        family: Family::Matrix,
        kernel: name(product, kernel, &format!("_alN_{whole}{batched}")),
        grid: [tiles[0], tiles[1], parts.unwrap_or(batch)].map(u64::from),
        group: [32, 2, 2],
        in_parts: parts.is_some(),
    }
}

fn name(product: &Product, kernel: &str, tail: &str) -> String {
    let Product { packing, number, .. } = product;
    let (mode, number) = (packing.mode.name(), number.metal());
    format!("{mode}_{kernel}_{number}_gs_{}_b_{}{tail}", packing.group, packing.bits)
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
    use std::collections::BTreeSet;

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
        let at = |architecture, m| {
            let Expected { kernel, grid, group, .. } =
                expected(architecture, &product, m, Policy::Wide);
            (kernel, grid, group)
        };
        let name = "affine_qmv_fast_float16_t_gs_64_b_4_batch_0";
        assert_eq!(at(on(15, 'd'), 1), (name.into(), [1, 512, 1], [32, 2, 1]));
        let name = "affine_qmv_wide_float16_t_gs_64_b_4_nv_4_kl_8_batch_0";
        assert_eq!(at(on(15, 'd'), 4), (name.into(), [1, 512, 1], [32, 2, 1]));
        assert_eq!(at(on(14, 's'), 4).1, [4, 512, 1]);
        // 128 tiles of one row: four parts of K.
        let name = "affine_qmm_t_splitk_float16_t_gs_64_b_4_alN_true";
        assert_eq!(at(on(15, 'd'), 32), (name.into(), [128, 1, 4], [32, 2, 2]));
    }

    #[test]
    fn matrix_products_are_split_where_tiles_are_few() {
        let packing = Packing::affine(8, 64);
        let product = Product { packing, number: Number::Float32, k: 192, n: 12, batch: 1 };
        let at = |product: Product| {
            let expected = expected(on(13, 's'), &product, 40, Policy::Wide);
            (expected.kernel, expected.grid, expected.in_parts)
        };
        let split = "affine_qmm_t_splitk_float_gs_64_b_8_alN_false".to_string();
        assert_eq!(at(product), (split, [1, 2, 3], true));
        // One group is not split, nor is a batch, nor what has tiles enough.
        let whole = |batch| format!("affine_qmm_t_float_gs_64_b_8_alN_false_batch_{batch}");
        assert_eq!(at(Product { k: 64, ..product }), (whole(0), [1, 2, 1], false));
        assert_eq!(at(Product { batch: 3, ..product }), (whole(1), [1, 2, 3], false));
        assert_eq!(at(Product { n: 8204, ..product }), (whole(0), [257, 2, 1], false));
    }

    fn dispatched(expected: &Expected) -> Vec<Dispatch> {
        let Expected { kernel, grid, group, in_parts, .. } = expected.clone();
        let dispatch = |kernel, grid, group| Dispatch {
            kernel,
            grid,
            group,
            grid_in_threads: false,
            stream: 0,
            arguments: Default::default(),
            definition: String::new(),
            source: 0,
        };
        let mut all = vec![dispatch(kernel, grid, group)];
        all.extend(in_parts.then(|| dispatch("col_reduce_small".into(), [1, 1, 1], [32, 1, 1])));
        all
    }

    /// Each part of a name and of a grid, gone wrong.
    #[test]
    fn what_is_not_expected_is_seen() {
        let packing = Packing::affine(8, 64);
        let product = Product { packing, number: Number::Float16, k: 512, n: 512, batch: 1 };
        let (mut seen, mut families) = (0, BTreeSet::new());
        for product in [product, Product { batch: 3, ..product }, Product { k: 64, ..product }] {
            for (m, policy) in [1, 3, 40].into_iter().flat_map(|m| Policy::ALL.map(|p| (m, p))) {
                let expected = expected(on(15, 's'), &product, m, policy);
                let right = dispatched(&expected);
                assert_eq!(expected.complaint(&right), None);
                families.insert(expected.family);
                for (part, wrong) in [
                    ("affine_", "mxfp8_"),
                    ("_float16_t", "_bfloat16_t"),
                    ("_gs_64", "_gs_32"),
                    ("_b_8", "_b_4"),
                    ("_nv_3", "_nv_4"),
                    ("_kl_8", "_kl_16"),
                    ("_d_64", "_d_128"),
                    ("_alN_true", "_alN_false"),
                    ("_batch_0", "_batch_1"),
                    ("_batch_1", "_batch_0"),
                    ("_splitk", ""),
                    ("_fast", ""),
                    ("_streamed", ""),
                ] {
                    let mut broken = right.clone();
                    broken[0].kernel = broken[0].kernel.replace(part, wrong);
                    if broken != right {
                        seen += 1;
                        assert!(expected.complaint(&broken).is_some(), "{part} of {expected:?}");
                    }
                }
                let mut broken: [_; 4] = std::array::from_fn(|_| right.clone());
                broken[0][0].grid[2] += 1;
                broken[1][0].group[1] += 1;
                broken[2][0].grid_in_threads = true;
                broken[3].push(Dispatch { kernel: "copy".into(), ..right[0].clone() });
                assert!(broken.iter().all(|broken| expected.complaint(broken).is_some()));
            }
        }
        assert_eq!((families.len(), seen > 100), (6, true), "{families:?}, {seen}");
        assert!(expected(on(15, 's'), &product, 1, Policy::Wide).complaint(&[]).is_some());
    }
}
