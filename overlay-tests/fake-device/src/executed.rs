//! The promise as a user states it, on a device that computes: is row i of a
//! product of M rows the single-row product, bit for bit?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mlx_overlay_harness::HarnessError;
pub use mlx_overlay_harness::library::Source;
use mlx_overlay_harness::library::library;
use mlx_overlay_harness::toolchain::Toolchain;
use mlx_overlay_harness::workshop::Workshop;

use crate::FakeDeviceError;
use crate::architecture::Architecture;
use crate::device::{Computed, Device, bytes_of};
use crate::product::{Number, Packing, Policy, Product};
use crate::rule;

/// The widths that are computed here: a whole pack, an odd one, and the one
/// whose half store hides most. (The harness proves the kernels of every width.)
pub const WIDTHS: [u32; 3] = [3, 4, 8];

/// One architecture for each way the rule goes below the limit: all products
/// are computed on them, on the others a few.
pub const REPRESENTATIVES: [Architecture; 4] = [
    Architecture { generation: 13, size: 'd' },
    Architecture { generation: 14, size: 's' },
    Architecture { generation: 15, size: 'd' },
    Architecture { generation: 17, size: 's' },
];
/// Every tile, alone and in several; a partial last tile; below every limit of
/// a small matrix.
pub const ROWS: [u32; 7] = [2, 3, 4, 5, 7, 9, 12];

/// What is computed on an architecture: products, each with its rows.
#[must_use]
pub fn cells(architecture: Architecture) -> Vec<(Product, u32)> {
    if REPRESENTATIVES.contains(&architecture) {
        return each(&products(), &ROWS);
    }
    let few = |product: &Product| product.packing.bits == 4 && product.batch == 1;
    each(&products().into_iter().filter(few).collect::<Vec<_>>(), &[2, 5, 7])
}

/// Each product with each number of rows.
#[must_use]
pub fn each(products: &[Product], rows: &[u32]) -> Vec<(Product, u32)> {
    products.iter().flat_map(|product| rows.iter().map(move |m| (*product, *m))).collect()
}

/// Products small enough to be run lane by lane: the fast kernel and the
/// generic one, which has a tail and a partial tile of rows; the quad, with
/// rows of its own that are no whole threadgroup; a batch.
#[must_use]
pub fn products() -> Vec<Product> {
    let mut products = Vec::new();
    for bits in WIDTHS {
        for number in [Number::Float32, Number::Float16] {
            let packing = Packing::affine(bits, 64);
            products.push(Product { packing, number, k: 1024, n: 24, batch: 1 });
            products.push(Product { packing, number, k: 1088, n: 21, batch: 1 });
        }
    }
    let packing = Packing::affine(4, 64);
    for number in [Number::Float32, Number::Float16] {
        products.push(Product { packing, number, k: 64, n: 72, batch: 1 });
        products.push(Product { packing, number, k: 128, n: 72, batch: 1 });
    }
    products.push(Product { packing, number: Number::Float32, k: 512, n: 16, batch: 2 });
    products
}

/// Upstream's products in the modes the harness has no host text for: only
/// Apple's compiled kernels can run them.
#[must_use]
pub fn fp_products() -> Vec<Product> {
    let mut products = Vec::new();
    for packing in Packing::FP {
        for number in [Number::Float32, Number::Float16] {
            products.push(Product { packing, number, k: 1024, n: 24, batch: 1 });
            products.push(Product { packing, number, k: 1088, n: 21, batch: 1 });
        }
    }
    products
}

/// A library of the kernels that the rule names for these products and rows,
/// for the policies given: from the laid tree's own text, compiled on this host
/// in Apple's mode, or Apple's compiled ones from the released wheel.
///
/// # Errors
/// A tool is missing, the wheel cannot be had, or it lacks a kernel.
pub fn kernel_library(
    tree: &Path,
    cache: &Path,
    source: Source,
    products: &[Product],
    policies: &[Policy],
) -> Result<PathBuf, HarnessError> {
    let shop = Workshop::open(Toolchain::find()?, tree, cache)?;
    let mut names = BTreeSet::new();
    for architecture in Architecture::all() {
        for product in products {
            for m in [1].into_iter().chain(ROWS) {
                for &policy in policies {
                    names.insert(rule::expected(architecture, product, m, policy).kernel);
                }
            }
        }
    }
    let names: Vec<String> = names.into_iter().collect();
    library(&shop, source, &names)
}

/// A block against the chain of its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// Values compared.
    pub values: usize,
    /// Values of the block that are not, bit for bit, those of the single rows.
    pub differing: usize,
    /// The largest distance of the block from MLX's CPU backend, as a part of
    /// the largest value.
    pub distance: f64,
    /// The kernels the block took.
    pub block: Vec<String>,
    /// The kernels the single rows took.
    pub chain: Vec<String>,
}

impl Promise {
    /// Whether every row is the single-row product.
    #[must_use]
    pub fn kept(&self) -> bool {
        self.differing == 0
    }
}

/// Computes a random product of M rows and compares.
///
/// # Errors
/// The device ended, MLX threw, or a kernel could not be run.
pub fn promise(
    device: &mut Device,
    product: &Product,
    m: u32,
    seed: u64,
) -> Result<Promise, FakeDeviceError> {
    let computed = device.compute(product, m, seed)?;
    Ok(compare(product, m, computed))
}

fn compare(product: &Product, m: u32, computed: Computed) -> Promise {
    let digits = 2 * product.number.bytes();
    let (mut values, mut differing) = (0, 0);
    for (index, row) in computed.block.iter().enumerate() {
        let (matrix, vector) = (index / m as usize, index % m as usize);
        let alone = computed.chain.get(vector).and_then(|rows| rows.get(matrix));
        let of_block = row.as_bytes().chunks(digits);
        values += of_block.len();
        differing += match alone {
            Some(alone) if alone.len() == row.len() => {
                of_block.zip(alone.as_bytes().chunks(digits)).filter(|(a, b)| a != b).count()
            }
            // A row that is not there, or not whole, differs.
            _ => of_block.len(),
        };
    }
    let numbers = |rows: &[String]| -> Vec<f64> {
        rows.iter().flat_map(|row| decode(product.number, row)).collect()
    };
    let (block, cpu) = (numbers(&computed.block), numbers(&computed.cpu));
    let largest = cpu.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let apart = block.iter().zip(&cpu).map(|(a, b)| (a - b).abs());
    let distance = if block.len() == cpu.len() && block.iter().all(|value| value.is_finite()) {
        apart.fold(0.0, f64::max) / largest
    } else {
        f64::INFINITY
    };
    Promise {
        values,
        differing,
        distance,
        block: computed.block_kernels,
        chain: computed.chain_kernels,
    }
}

fn decode(number: Number, hex: &str) -> Vec<f64> {
    // What cannot be read has no values, and so is not close to anything.
    let bytes = bytes_of(hex).unwrap_or_default();
    let half = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
    match number {
        Number::Float32 => bytes
            .chunks_exact(4)
            .map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
            .collect(),
        Number::Float16 => bytes.chunks_exact(2).map(|b| half_value(half(b))).collect(),
        Number::Bfloat16 => bytes
            .chunks_exact(2)
            .map(|b| f64::from(f32::from_bits(u32::from(half(b)) << 16)))
            .collect(),
    }
}

/// The value of an IEEE half.
fn half_value(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let size = match (bits >> 10) & 0x1f {
        0 => fraction * 2f64.powi(-24),
        0x1f => return if fraction == 0.0 { f64::INFINITY } else { f64::NAN },
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_read() {
        let values = [0x3c00, 0xc000, 0x0001, 0x7bff].map(half_value);
        assert_eq!(values, [1.0, -2.0, 2f64.powi(-24), 65504.0]);
    }

    #[test]
    fn one_bit_of_one_value_is_seen() {
        let packing = Packing::affine(4, 64);
        let product = Product { packing, number: Number::Float16, k: 64, n: 2, batch: 1 };
        let rows = |last: &str| vec!["003c0040".to_string(), format!("003c{last}")];
        let computed = |chain: &str| Computed {
            block: rows("0040"),
            chain: rows(chain).into_iter().map(|row| vec![row]).collect(),
            cpu: rows("0040"),
            block_kernels: Vec::new(),
            chain_kernels: Vec::new(),
        };
        assert!(compare(&product, 2, computed("0040")).kept());
        let broken = compare(&product, 2, computed("0140"));
        assert_eq!((broken.values, broken.differing, broken.distance), (4, 1, 0.0));
        let mut short = computed("0040");
        short.chain.pop();
        assert_eq!(compare(&product, 2, short).differing, 2);
    }
}
