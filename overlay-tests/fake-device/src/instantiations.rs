//! What a JIT build hands to Metal's compiler, judged by clang: the kernels of
//! the laid tree through the harness's host Metal, instantiated as MLX asks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mlx_overlay_harness::HarnessError;
use mlx_overlay_harness::toolchain::Toolchain;
use mlx_overlay_harness::workshop::{Content, Mode, Unit, Workshop};

/// How far an instantiation can be compiled on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The kernel's body, with these arguments.
    Body,
    /// The same with `const` left out: `qmv_quad` passes a constant on as one
    /// that is not, which Metal's `constant` allows and C++'s `const` does not.
    BodyWithoutConst,
    /// Its signature alone. The bodies of matrix products need Apple's
    /// matrices, which the host Metal does not have.
    Signature,
}

/// The headers of the laid tree that are compiled, and how their kernels' names
/// begin.
const HEADERS: [(&str, &str); 2] = [("affine_", "quantized.h"), ("fp_", "fp_quantized.h")];
const WORDS: &str = include_str!("../cpp/kernels/words.h");

/// How many instantiations clang took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// With their bodies.
    pub bodies: usize,
    /// Their signatures alone.
    pub signatures: usize,
    /// Not compiled: of kernels of other headers (sums of partial products).
    pub others: usize,
}

/// Compiles instantiations of the tree's kernels, written as MLX writes them.
///
/// # Errors
/// clang refuses one, and its message names it; or there is no clang.
pub fn compile(
    tree: &Path,
    cache: &Path,
    definitions: &BTreeSet<String>,
) -> Result<Compiled, HarnessError> {
    let shop = Workshop::open(Toolchain::find()?, tree, cache)?;
    let mut compiled = Compiled::default();
    let mut units: BTreeMap<(&str, Depth), String> = BTreeMap::new();
    for definition in definitions {
        let Some((header, depth, kernel)) = place(definition) else {
            compiled.others += 1;
            continue;
        };
        let unit = units.entry((header, depth)).or_default();
        if depth == Depth::Signature {
            *unit += &format!("using signature_{} = decltype({kernel});\n", compiled.signatures);
            compiled.signatures += 1;
        } else {
            *unit += &format!("template decltype({kernel}) {kernel};\n");
            compiled.bodies += 1;
        }
    }
    for ((header, depth), instantiations) in &units {
        let without_const = if *depth == Depth::BodyWithoutConst { "#define const\n" } else { "" };
        let text = format!(
            "{WORDS}{without_const}\
             #include \"mlx/backend/metal/kernels/quantized_utils.h\"\n\
             #include \"mlx/backend/metal/kernels/{header}\"\n\
             {instantiations}"
        );
        let flags = vec!["-ferror-limit=3", "-Wno-pragma-once-outside-header"];
        let (name, content) = (header.to_string(), Content::Kernels);
        shop.check(&Unit { name, content, text, flags, mode: Mode::Apple })?;
    }
    Ok(compiled)
}

/// The header that has an instantiation's kernel, how far it is compiled, and
/// the kernel with its arguments.
fn place(definition: &str) -> Option<(&'static str, Depth, &str)> {
    let kernel = kernel(definition)?;
    let (_, header) = HEADERS.into_iter().find(|(start, _)| kernel.starts_with(start))?;
    let name = kernel.split('<').next()?;
    let depth = match name {
        name if name.ends_with("_qmv_quad") => Depth::BodyWithoutConst,
        name if name.contains("_qmv") => Depth::Body,
        _ => Depth::Signature,
    };
    Some((header, depth, kernel))
}

/// `kernel<a, b>` of `template … decltype(kernel<a, b>) kernel<a, b>;`.
#[must_use]
pub fn kernel(definition: &str) -> Option<&str> {
    let (_, after) = definition.split_once("decltype(")?;
    // Twice the same, the first time in parentheses.
    let (first, second) = after.trim_end().strip_suffix(';')?.split_once(") ")?;
    (first == second.trim()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kernel: &str) -> String {
        format!("template [[host_name(\"a\")]] [[kernel]] decltype({kernel}) {kernel};")
    }

    #[test]
    fn kernels_are_placed_by_their_names() {
        let placed = |kernel: &str| place(&of(kernel)).map(|(header, depth, _)| (header, depth));
        assert_eq!(placed("affine_qmv_fast<float, 64, 4, 0>"), Some(("quantized.h", Depth::Body)));
        assert_eq!(
            placed("fp_qmv_quad<float, 32, 4, 64, 0>"),
            Some(("fp_quantized.h", Depth::BodyWithoutConst))
        );
        assert_eq!(
            placed("affine_qmm_t<float, 64, 4, true, false>"),
            Some(("quantized.h", Depth::Signature))
        );
        assert_eq!(placed("col_reduce_small<float, float, Sum, 2>"), None);
    }

    #[test]
    fn a_definition_names_its_kernel_twice() {
        let text = of("col_reduce<float, Sum<float>, 1>");
        assert_eq!(kernel(&text), Some("col_reduce<float, Sum<float>, 1>"));
        assert_eq!(kernel(&text.replace(") col", ") row")), None);
        assert_eq!(kernel("template <typename T> T a;"), None);
    }
}
