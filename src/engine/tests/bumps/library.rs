//! Kernel names worked out from the macros, against those of the library that
//! Apple's compiler made of the same sources.

use std::collections::BTreeSet;

use mlx_overlay_engine::contract::kernel::kernels;
use mlx_overlay_engine::snapshot::{Tree, TreePath};
use overlay_tests_support::{Need, Suite};

use super::{V0_32_2, released, trees};

/// The released wheel for macOS, 0.32.1. quantized.metal of v0.32.2 is the same
/// blob as the one it was made from.
const WHEEL: &str = "wheel:mlx-metal@0.32.1:macosx_14_0_arm64:mlx/lib";

pub fn add(suite: &mut Suite) {
    let wheel = Need::asked(|| match released(WHEEL) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("no registry gives the wheel: {error}")),
    });
    suite.test_needing("library/kernel-names-are-apples", [trees(), wheel], names);
}

fn names() {
    let wheel = released(WHEEL).unwrap();
    let library = wheel.file(&TreePath::new("mlx.metallib").unwrap()).unwrap().unwrap();
    let theirs = library_names(&library.bytes).expect("the library's list of functions");
    assert!(theirs.len() > 16_000, "{}", theirs.len());
    let tree = released(V0_32_2).unwrap();
    let ours = |file: &str| {
        let path = format!("mlx/backend/metal/kernels/{file}.metal");
        kernels(&tree, &TreePath::new(&path).unwrap()).unwrap().names
    };
    let affine: BTreeSet<String> =
        theirs.iter().filter(|n| n.starts_with("affine_")).cloned().collect();
    let quantized = ours("quantized");
    assert_eq!(quantized.len(), 2052);
    assert!(quantized == affine, "{:?}", quantized.symmetric_difference(&affine).next());
    // Other ways to spell a kernel: plain functions, several macro files, `##`.
    for file in ["softmax", "rope", "random", "arange", "scan", "gemv", "layer_norm"] {
        let names = ours(file);
        assert!(!names.is_empty(), "{file}");
        let foreign = names.difference(&theirs).next();
        assert!(foreign.is_none(), "{file}: {foreign:?}");
    }
}

/// The names in a `metallib`: at 0x18 the offset of the function list; there a
/// count, then entries of a size and tags, each tag with a length.
fn library_names(bytes: &[u8]) -> Option<BTreeSet<String>> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    assert_eq!(bytes.get(..4)?, b"MTLB");
    let list = usize::try_from(u64_at(0x18)?).ok()?;
    let mut at = list + 4;
    let mut names = BTreeSet::new();
    for _ in 0..u32_at(list)? {
        let next = at + usize::try_from(u32_at(at)?).ok()?;
        at += 4;
        while bytes.get(at..at + 4)? != b"ENDT" {
            let length = u16::from_le_bytes(bytes.get(at + 4..at + 6)?.try_into().ok()?);
            let value = bytes.get(at + 6..at + 6 + usize::from(length))?;
            if &bytes[at..at + 4] == b"NAME" {
                names.insert(String::from_utf8_lossy(value).trim_end_matches('\0').to_owned());
            }
            at += 6 + usize::from(length);
        }
        at = next;
    }
    Some(names)
}
