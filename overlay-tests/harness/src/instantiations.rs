//! What the tree's own `quantized.metal` instantiates, against the kernels that
//! are run here: a type, a width, a group size or a tile that the one has and
//! the other has not is a fault.

use std::collections::{BTreeMap, BTreeSet};

use crate::HarnessError;
use crate::kernels::{BITS, FAMILIES, GROUP_SIZES, Kernel, Number, TILES};
use crate::report::Proof;
use crate::workshop::Workshop;

/// Each expansion of `instantiate_kernel` leaves this, its host name in quotes
/// and a semicolon.
const MARK: &str = "OVERLAY_INSTANTIATES";
/// How the host names of all families begin.
const FAMILY: &str = "affine_qmv";

/// Expands the tree's instantiations and compares them.
///
/// # Errors
/// clang cannot expand them.
pub(crate) fn judge(shop: &Workshop, proof: &mut Proof) -> Result<(), HarnessError> {
    let text = format!(
        "#define instantiate_kernel(name, func, ...) {MARK} name ;\n\
         #include \"mlx/backend/metal/kernels/quantized.metal\"\n"
    );
    compare(&host_names(&shop.expand(&text)?), proof);
    Ok(())
}

/// A cell for each type, width and group size, and one for each kernel that no
/// set runs.
fn compare(found: &BTreeSet<String>, proof: &mut Proof) {
    let expected = expected();
    for (packing, names) in &expected {
        let mut missing = names.difference(found);
        let fault = missing.next().map(|first| {
            let lacks = 1 + missing.count();
            format!("the tree lacks {lacks} of {} kernels, the first {first}", names.len())
        });
        proof.add(packing, 0, fault.as_deref());
    }
    for name in found {
        if !expected.values().any(|names| names.contains(name)) {
            proof.add(name, 0, Some("the tree instantiates it, and no set runs it"));
        }
    }
}

/// The host names of the `qmv` families in an expanded text. A name is several
/// literals, side by side.
fn host_names(expanded: &str) -> BTreeSet<String> {
    let literals = expanded.split(MARK).skip(1).filter_map(|rest| rest.split(';').next());
    let names = literals.map(|text| text.split('"').skip(1).step_by(2).collect::<String>());
    names.filter(|name| name.starts_with(FAMILY)).collect()
}

/// Every kernel of the families, as MLX instantiates them, by type, width and
/// group size.
fn expected() -> BTreeMap<String, BTreeSet<String>> {
    let mut expected: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for family in FAMILIES {
        let tiles: &[u32] = if family.tiled() { &TILES } else { &[1] };
        for number in [Number::Float, Number::Half, Number::Bfloat] {
            for (bits, group_size) in
                BITS.into_iter().flat_map(|bits| GROUP_SIZES.map(|group| (bits, group)))
            {
                let packing = format!("{number:?} {bits} bits, group {group_size}");
                let of_packing = expected.entry(packing).or_default();
                for (&vectors, batched) in
                    tiles.iter().flat_map(|tile| [false, true].map(|batched| (tile, batched)))
                {
                    let kernel = Kernel { family, number, group_size, bits, vectors, batched };
                    of_packing.insert(kernel.host_name());
                }
            }
        }
    }
    expected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(found: &BTreeSet<String>) -> Vec<String> {
        let mut proof = Proof::new("", "");
        compare(found, &mut proof);
        proof.faults
    }

    #[test]
    fn literals_side_by_side_are_one_name() {
        let text = "OVERLAY_INSTANTIATES \"affine_qmv\" \"_\" \"float\" ; x;\n\
                    OVERLAY_INSTANTIATES \"affine_qvm\" ;";
        assert_eq!(host_names(text), ["affine_qmv_float".to_string()].into());
    }

    #[test]
    fn a_kernel_too_few_and_one_too_many_are_faults() {
        let mut found: BTreeSet<String> = expected().into_values().flatten().collect();
        assert_eq!((found.len(), faults(&found).len()), (3 * 18 * (4 + 16 + 8 + 4), 0));
        let bfloat = "affine_qmv_fast_bfloat16_t_gs_32_b_5_batch_0";
        assert!(found.remove(bfloat));
        found.insert("affine_qmv_streamed_float_gs_16_b_4_nv_2_batch_0".into());
        let faults = faults(&found);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("Bfloat 5 bits, group 32: the tree lacks 1 of 32 kernels"));
        assert!(faults[0].contains(bfloat), "{faults:?}");
        assert!(faults[1].contains("gs_16") && faults[1].contains("no set runs it"));
    }
}
