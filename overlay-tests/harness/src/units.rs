//! Translation units: which of the tree's kernels to compile together.

use std::collections::{BTreeMap, BTreeSet};

use crate::kernels::{Family, Kernel, Number};
use crate::workshop::{Content, Mode, Unit};

/// The kernels of one width and one type, compiled together: the text is read
/// once for all of them.
#[derive(Clone, Debug, Default)]
struct Selection {
    group_sizes: BTreeSet<u32>,
    /// Template, tile (1 for none) and batched.
    kernels: BTreeSet<(&'static str, u32, bool)>,
}

impl Selection {
    fn add(&mut self, kernel: &Kernel) {
        self.group_sizes.insert(kernel.group_size);
        self.kernels.insert((kernel.family.template(), kernel.vectors, kernel.batched));
    }
}

/// Units that hold at least the kernels given, one for each width and type;
/// quads apart.
#[must_use]
pub fn units(kernels: impl IntoIterator<Item = Kernel>, mode: Mode) -> Vec<Unit> {
    let mut selections: BTreeMap<(u32, Number, Vec<&'static str>), Selection> = BTreeMap::new();
    for kernel in kernels {
        let flags = match kernel.family {
            Family::Quad(_) => vec!["-DOVERLAY_WITHOUT_CONST"],
            _ => Vec::new(),
        };
        selections.entry((kernel.bits, kernel.number, flags)).or_default().add(&kernel);
    }
    let unit = |((bits, number, flags), selection): (&(u32, Number, Vec<_>), &Selection)| Unit {
        name: format!("{}, {bits} bits", format!("{number:?}").to_lowercase()),
        content: Content::Kernels,
        text: text(type_name(*number, mode), *bits, selection),
        flags: flags.clone(),
        mode,
    };
    selections.iter().map(unit).collect()
}

/// The name of a type in a mode: the symbolic ones stand for float and half.
#[must_use]
pub fn type_name(number: Number, mode: Mode) -> &'static str {
    match (mode, number) {
        (Mode::Symbolic, Number::Half) => "sym_half",
        (Mode::Symbolic, _) => "sym_float",
        _ => number.metal(),
    }
}

/// Kernels of one width and type with `device` and `constant` as clang address
/// spaces: to be type-checked, not run.
#[must_use]
pub fn address_space_units(kernels: impl IntoIterator<Item = Kernel>) -> Vec<Unit> {
    let mut units = units(kernels, Mode::Apple);
    for unit in &mut units {
        unit.flags.push("-DOVERLAY_ADDRESS_SPACES");
    }
    units
}

fn text(number: &str, bits: u32, selection: &Selection) -> String {
    let wanted = selection.kernels.iter().map(|(template, tile, batched)| {
        let tile = if *tile == 1 { String::new() } else { format!("_nv_{tile}_") };
        format!(
            "  if (func == \"{template}\" && has(name, \"{tile}\") && has(name, \"_batch_{}\")) \
             return true;\n",
            u8::from(*batched)
        )
    });
    let wanted: String = wanted.collect();
    let calls = selection
        .group_sizes
        .iter()
        .map(|group| format!("instantiate_quantized_funcs({number}, {group}, {bits})\n"));
    let calls: String = calls.collect();
    format!(
        "#include <string_view>\n\
         constexpr bool has(std::string_view text, std::string_view part) {{\n  \
           return text.find(part) != text.npos;\n}}\n\
         constexpr bool overlay_wanted(std::string_view func, std::string_view name) {{\n\
         {wanted}  return false;\n}}\n\
         #include \"kernels.h\"\n\
         {calls}"
    )
}
