//! What a run leaves out. Of the quick set it is read off the sets themselves:
//! row by row, what the full set has and it has not.

use std::collections::{BTreeMap, BTreeSet};

use crate::cells::Cell;
use crate::kernels::{Family, Kernel, Number, Order};
use crate::report::NotRun;
use crate::sets::{ORACLE, PARITY, Row, Set, address_space_kernels, parity_cells, symbolic_cells};
use crate::shapes::shape_name;
use crate::workshop::Mode;

/// What no run of a set has, and why.
pub fn left_out(set: Set) -> Vec<NotRun> {
    let always = ALWAYS.map(|(what, why)| NotRun { what: what.into(), why: why.into() });
    let mut left = always.to_vec();
    if !cfg!(target_arch = "x86_64") {
        left.push(NotRun {
            what: "the wrong compile mode mode-half-excess".into(),
            why: "only on x86-64 are sums of halves kept in float where clang is let".into(),
        });
    }
    if set == Set::Quick {
        left.extend(kernels());
        left.extend(PARITY.iter().filter_map(|row| of_row("numeric parity", row)));
        let symbolic = Row { name: "shapes", cells: symbolic_cells };
        left.extend(of_row("symbolic parity and traffic", &symbolic));
        left.extend(ORACLE.iter().filter_map(|row| of_row("the oracle", row)));
        let kernels = Row { name: "kernels", cells: address_space_kernels };
        left.extend(of_row("address spaces", &kernels));
        left.extend(modes());
    }
    left
}

const ALWAYS: [(&str, &str); 7] = [
    (
        "the same cells on an Apple GPU",
        "this run is on the host; no Apple GPU has run them. On a Mac, untested: \
         `cargo test --features runtime --test runtime parity`, with `-- --full` for the full set",
    ),
    (
        "fp_quantized.h",
        "it is not compiled: the fp modes have no streamed kernels and follow upstream's rule",
    ),
    (
        "bfloat in address spaces and in expressions",
        "a class cannot be copied out of clang's address spaces, and bfloat's text is half's",
    ),
    (
        "qmv_wide with tiles of 2, 3 and 5 beside Apple's",
        "no set has them: no proof leans on that kernel, and one tile shows the host Metal",
    ),
    (
        "qmv_quad with batches beside Apple's",
        "no set has them: it finds its matrices as qmv does, whose batches the oracle has",
    ),
    ("batches in expressions", "they move pointers only; numeric parity has them"),
    (
        "M above 32, N above 5120; large N, long K and batches at every M",
        "no set has them: at 33 MLX multiplies as a matrix, rows repeat, and those three have an M \
         or a few each",
    ),
];

/// One thing that can be said of a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Number(u32),
    Word(String),
}

/// The kind that says how weights are packed.
const PACKING: &str = "bits/group";

/// What a row is made of.
trait Facets {
    /// What can be said of it, each under the name of its kind.
    fn facets(&self) -> Vec<(&'static str, Value)>;
}

impl Facets for Cell {
    fn facets(&self) -> Vec<(&'static str, Value)> {
        let Cell { number, bits, group_size, vectors, m, n, k, batch, draw, seed } = self;
        let axes = batch.iter().map(ToString::to_string).collect::<Vec<_>>();
        vec![
            ("types", Value::Word(name(*number))),
            (PACKING, Value::Word(format!("{bits}/{group_size}"))),
            ("tiles", Value::Number(*vectors)),
            ("M", Value::Number(*m)),
            ("shapes", Value::Word(shape_name(*bits, *n, *k))),
            ("batch axes", Value::Word(axes.join(" × "))),
            ("draws", Value::Word(format!("{draw:?}").to_lowercase())),
            ("seeds", Value::Word(seed.to_string())),
        ]
    }
}

impl Facets for (Cell, Family) {
    fn facets(&self) -> Vec<(&'static str, Value)> {
        let (cell, family) = self;
        let mut facets = cell.facets();
        if let Family::Quad(k) = family {
            // It has no order of `qmv`'s, and no tail.
            facets.retain(|(kind, _)| *kind != "shapes");
            facets.push(("shapes", Value::Word(format!("N {} K {k}", cell.n))));
        }
        facets.push(("kernels", Value::Word(family.template().into())));
        facets
    }
}

impl Facets for Kernel {
    fn facets(&self) -> Vec<(&'static str, Value)> {
        let Kernel { family, number, group_size, bits, vectors, .. } = self;
        vec![
            ("types", Value::Word(name(*number))),
            (PACKING, Value::Word(format!("{bits}/{group_size}"))),
            ("tiles", Value::Number(*vectors)),
            ("kernels", Value::Word(family.template().into())),
        ]
    }
}

fn name(number: Number) -> String {
    format!("{number:?}").to_lowercase()
}

/// What the quick set leaves of a row: nothing where it has all of it.
fn of_row<C: Facets>(proof: &str, row: &Row<C>) -> Option<NotRun> {
    let (quick, full) = ((row.cells)(Set::Quick), (row.cells)(Set::Full));
    let (has, all) = (facets(&quick), facets(&full));
    let missing: Vec<String> =
        all.iter().filter_map(|(kind, all)| missing(kind, all, &has)).collect();
    let why = match (quick.len(), full.len()) {
        (here, there) if missing.is_empty() && here >= there => return None,
        (0, there) => format!("all {there} are in the full set"),
        (here, there) if missing.is_empty() => {
            format!("crossed less: {here} here, {there} in the full set")
        }
        (here, there) => {
            format!("in the full set: {} ({here} here, {there} there)", missing.join("; "))
        }
    };
    Some(NotRun { what: format!("{proof}, {}", row.name), why })
}

/// The values of a row by their kind, each with the packings that have it.
type Kinds = BTreeMap<&'static str, BTreeMap<Value, BTreeSet<Value>>>;

fn facets<C: Facets>(cells: &[C]) -> Kinds {
    let mut kinds = Kinds::new();
    for facets in cells.iter().map(Facets::facets) {
        let packing = facets.iter().find(|(kind, _)| *kind == PACKING);
        let packing = packing.map(|(_, packing)| packing.clone());
        for (kind, value) in facets {
            kinds.entry(kind).or_default().entry(value).or_default().extend(packing.clone());
        }
    }
    kinds
}

/// The values of one kind that a set has not, or not at all its packings.
fn missing(kind: &str, all: &BTreeMap<Value, BTreeSet<Value>>, has: &Kinds) -> Option<String> {
    let nothing = BTreeMap::new();
    let packings: BTreeSet<&Value> = has.get(PACKING).unwrap_or(&nothing).keys().collect();
    let has = has.get(kind).unwrap_or(&nothing);
    let none: Vec<&Value> = all.keys().filter(|value| !has.contains_key(value)).collect();
    let mut parts = if none.is_empty() { Vec::new() } else { vec![listed(&none)] };
    for (value, has) in has {
        let wanted = all.get(value).into_iter().flatten().filter(|p| packings.contains(p));
        let lacks = wanted.filter(|packing| !has.contains(packing)).count();
        if lacks > 0 {
            let of = has.len() + lacks;
            parts.push(format!("{} at {lacks} of {of} {PACKING}", listed(&[value])));
        }
    }
    (!parts.is_empty()).then(|| format!("{kind} {}", parts.join(", and ")))
}

/// Values one after the other; three numbers or more in a row as a range.
fn listed(values: &[&Value]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut left = values;
    while let Some((value, rest)) = left.split_first() {
        let (part, used) = match value {
            Value::Word(word) => (word.clone(), 1),
            Value::Number(first) => {
                let next = |(value, number): &(&&Value, u32)| ***value == Value::Number(*number);
                match rest.iter().zip(first + 1..).take_while(next).count() {
                    0 | 1 => (first.to_string(), 1),
                    more => (format!("{first} to {}", first + more as u32), 1 + more),
                }
            }
        };
        parts.push(part);
        left = &left[used..];
    }
    parts.join(", ")
}

/// The streamed kernels that no quick cell of numeric parity runs.
fn kernels() -> Option<NotRun> {
    let of = |set| -> BTreeSet<_> {
        let kernel = |c: &Cell| (name(c.number), c.vectors, c.bits, c.group_size, c.order());
        parity_cells(set).iter().map(kernel).collect()
    };
    let (quick, full): (BTreeSet<_>, BTreeSet<_>) = (of(Set::Quick), of(Set::Full));
    let count = |kernels: &BTreeSet<(String, u32, u32, u32, Order)>| {
        let mut counts: BTreeMap<(String, u32), usize> = BTreeMap::new();
        for (number, tile, ..) in kernels {
            *counts.entry((number.clone(), *tile)).or_default() += 1;
        }
        counts
    };
    let missing: BTreeSet<_> = full.difference(&quick).cloned().collect();
    let all = count(&full);
    let part =
        |((number, tile), missing): ((String, u32), usize)| match all[&(number.clone(), tile)] {
            all if all == missing => format!("{number} with tiles of {tile}"),
            all => format!("{number} with tiles of {tile} ({missing} of {all})"),
        };
    let parts: Vec<String> = count(&missing).into_iter().map(part).collect();
    (!missing.is_empty()).then(|| NotRun {
        what: format!("numeric parity, {} of {} streamed kernels", missing.len(), full.len()),
        why: format!("in the full set: {}", parts.join(", ")),
    })
}

/// The compile modes that the quick set leaves.
fn modes() -> Vec<NotRun> {
    let optimised = |what: &str| NotRun {
        what: format!("{what}, in code that clang optimised"),
        why: "in the full set; here memory is checked, and so code is not optimised".into(),
    };
    let has = Set::Quick.modes();
    let mut left = Vec::new();
    if Set::Full.modes().iter().any(|mode| !has.contains(mode)) {
        left.push(optimised("numeric parity"));
    }
    if Set::Full.oracle_mode() == Mode::Apple && Set::Quick.oracle_mode() != Mode::Apple {
        left.push(optimised("the text beside the oracle"));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets::oracle_cells;

    fn said(what: &str) -> String {
        let left = left_out(Set::Quick);
        left.into_iter().find(|left| left.what == what).map(|left| left.why).unwrap_or_default()
    }

    #[test]
    fn numbers_in_a_row_are_a_range() {
        let numbers = [1, 2, 4, 5, 6, 9].map(Value::Number);
        assert_eq!(listed(&numbers.iter().collect::<Vec<_>>()), "1, 2, 4 to 6, 9");
        let words = ["a", "b"].map(|word| Value::Word(word.into()));
        assert_eq!(listed(&words.iter().collect::<Vec<_>>()), "a, b");
    }

    #[test]
    fn a_row_says_what_only_the_full_set_has() {
        fn cells(set: Set) -> Vec<Cell> {
            let cells = parity_cells(Set::Full);
            let of = |cell: &Cell| set == Set::Full || cell.vectors < 4 && cell.m < 6;
            cells.into_iter().filter(of).take(5000).collect()
        }
        let row = Row { name: "row", cells };
        let why = of_row("proof", &row).unwrap().why;
        assert!(why.contains("tiles 4, 5 ("), "{why}");
        assert!(why.contains("M 6 to 13, 15 to 19, 24, 32; "), "{why}");
        fn same(_: Set) -> Vec<Cell> {
            cells(Set::Full)
        }
        assert!(of_row("proof", &Row { name: "row", cells: same }).is_none());
    }

    /// What a person would miss most.
    #[test]
    fn the_quick_set_says_what_it_leaves_to_the_full_one() {
        assert!(said("numeric parity, batches").contains("bits/group 2/32, 2/64, 3/128, 3/64"));
        assert!(said("numeric parity, batches").contains("types bfloat, half"));
        assert!(said("numeric parity, batches").contains("float at 4 of 6 bits/group"));
        // Two shapes of N = 13 are one at two packings, and the quick set has that one.
        let symbolic = said("symbolic parity and traffic, shapes");
        assert!(symbolic.contains("generic N 13 at 16 of 18 bits/group"), "{symbolic}");
        assert!(said("numeric parity, large N").contains("types bfloat, float, half"));
        assert!(said("numeric parity, swept").contains("M 7, 8, 11 to 32"));
        assert!(said("numeric parity, whole matrices").starts_with("all "));
        let kernels = kernels().unwrap();
        assert!(kernels.what.ends_with("of 576 streamed kernels"), "{}", kernels.what);
        for wanted in ["bfloat with tiles of 3, ", "half with tiles of 2 (33 of 36)"] {
            assert!(kernels.why.contains(wanted), "{}", kernels.why);
        }
    }

    /// The sentence of [`ALWAYS`] on what no set crosses.
    #[test]
    fn what_is_said_of_every_set_holds() {
        let cells = parity_cells(Set::Full);
        assert_eq!(cells.iter().map(|cell| cell.m).max(), Some(32));
        assert_eq!(cells.iter().map(|cell| cell.n).max(), Some(5120));
        let few = |of: &dyn Fn(&Cell) -> bool| {
            let of = cells.iter().filter(|cell| of(cell) && cell.vectors == 3 && cell.bits == 5);
            of.map(|cell| cell.m).collect::<BTreeSet<_>>().len()
        };
        assert_eq!(few(&|cell| cell.n > 13), 1);
        assert_eq!(few(&|cell| !cell.batch.is_empty()), 4);
        let oracle = oracle_cells(Set::Full);
        let of = |wanted: &dyn Fn(Family) -> bool| {
            oracle.iter().filter(|(_, family)| wanted(*family)).map(|(cell, _)| cell).collect()
        };
        let wide: Vec<_> = of(&|family| family == Family::Wide);
        assert!(!wide.is_empty() && wide.iter().all(|cell| cell.vectors == 4));
        let quads: Vec<_> = of(&|family| matches!(family, Family::Quad(_)));
        assert!(!quads.is_empty() && quads.iter().all(|cell| cell.batch.is_empty()));
        let here = usize::from(!cfg!(target_arch = "x86_64"));
        assert_eq!(left_out(Set::Full).len(), ALWAYS.len() + here);
    }
}
