//! Mutants: the laid text with one thing wrong. Each must be caught.
//!
//! A mutation names a function of `quantized.h` and replaces text that stands
//! in it exactly once. When the kernels change so that it no longer does, a run
//! ends before it starts ([`mutate`]) and the list is brought up to date.

use std::collections::{BTreeMap, BTreeSet};

use crate::cells::{Cell, Draw};
use crate::kernels::{Family, Number, Order};
use crate::parallel::{each, in_parallel};
use crate::parity::parity;
use crate::report::Mutant;
use crate::runner::Runner;
use crate::sets::parity_kernels;
use crate::shapes::Shapes;
use crate::symbolic;
use crate::traffic::traffic;
use crate::units::{address_space_units, units};
use crate::workshop::{LinkKind, Mode, Workshop};
use crate::{HarnessError, Misfit};

const FILE: &str = "mlx/backend/metal/kernels/quantized.h";
const FAST: &str = "qmv_fast_streamed_impl";
const GENERIC: &str = "qmv_streamed_rows";
const GENERIC_ENTRY: &str = "qmv_streamed_impl";

/// One replacement: in this function, this text by that.
type Edit = (&'static str, &'static str, &'static str);

/// One thing wrong.
#[derive(Debug)]
struct Mutation {
    name: &'static str,
    meaning: &'static str,
    /// The width it is tried at.
    bits: u32,
    edits: &'static [Edit],
}

const ACCUMULATE: &str = "result[v][row] += qdot_reg<U, values_per_thread, bits>(";
const RETURN: &str = "return scale * accum + sum * bias;";
const STORE: &str = "if (simd_lid == 0 && vec0 + v < M) {";
const CLAMP: &str = "min(vec0 + v, M - 1)";
const RELOAD: &str = "load_fours<T, values_per_thread>(xv[v], x_reg); \
     for (int row = 0; row < 2; row++) for (int i = 0; i < reads_per_thread; i++) \
     if (out_row + row < out_vec_size) \
     w_thread[row][i] = ((const device W_T*)(ws + row * in_vec_size_w))[i];";
const LOAD_4: &str = "else if (bits == 4) {
    for (int i = 0; i < values_per_thread; i += 4) {
      sum += x[i] + x[i + 1] + x[i + 2] + x[i + 3];";

const MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "k-to-lane",
        meaning: "order difference 1: other values of K in each lane",
        bits: 4,
        edits: &[
            (FAST, "simd_lid * packs_per_thread", "((simd_lid + 1) % 32) * packs_per_thread"),
            (
                FAST,
                "scales += out_row * in_vec_size_g + simd_lid /",
                "scales += out_row * in_vec_size_g + ((simd_lid + 1) % 32) /",
            ),
            (
                FAST,
                "biases += out_row * in_vec_size_g + simd_lid /",
                "biases += out_row * in_vec_size_g + ((simd_lid + 1) % 32) /",
            ),
            (FAST, "simd_lid * values_per_thread", "((simd_lid + 1) % 32) * values_per_thread"),
        ],
    },
    Mutation {
        name: "lanes-in-reduction",
        meaning: "order difference 2: half the lanes enter the sum",
        bits: 4,
        edits: &[(
            FAST,
            "result[v][row] = simd_sum(result[v][row]);",
            "U other = simd_shuffle_down(result[v][row], 16); result[v][row] = \
             simd_sum(simd_lid < 16 ? U(result[v][row] + other) : U(0));",
        )],
    },
    Mutation {
        name: "accumulation-depth",
        meaning: "order difference 3: each product straight into the accumulator",
        bits: 4,
        edits: &[(
            "qdot_reg",
            "accum +=
          (x_thread[4 * i] * (ws[i] & 0x000f) +",
            "accum = accum +
          (x_thread[4 * i] * (ws[i] & 0x000f)) + (",
        )],
    },
    Mutation {
        name: "final-tree",
        meaning: "order difference 4: a shuffle ladder for simd_sum",
        bits: 4,
        edits: &[(
            FAST,
            "result[v][row] = simd_sum(result[v][row]);",
            "for (int d = 16; d > 0; d /= 2) \
                   result[v][row] += simd_shuffle_xor(result[v][row], d);",
        )],
    },
    Mutation {
        name: "dequantize-first",
        meaning: "order difference 5: weights dequantized, then multiplied",
        bits: 8,
        edits: &[
            (
                "qdot_reg",
                "accum += x_thread[i] * w[i];",
                "accum += x_thread[i] * (scale * w[i] + bias);",
            ),
            ("qdot_reg", RETURN, "return accum;"),
        ],
    },
    Mutation {
        name: "sum-in-float",
        meaning: "order difference 6: load_vector sums x in float, not in T",
        bits: 4,
        edits: &[(
            "load_vector_reg",
            LOAD_4,
            "else if (bits == 4) {
    for (int i = 0; i < values_per_thread; i += 4) {
      sum += U(x[i]) + U(x[i + 1]) + U(x[i + 2]) + U(x[i + 3]);",
        )],
    },
    Mutation {
        name: "sum-rebuilt",
        meaning: "trap: the sum of x rebuilt from x_thread",
        bits: 4,
        edits: &[(
            "load_vector_reg",
            "return sum;",
            "sum = 0; for (int i = 0; i < values_per_thread; i += 4) sum += x_thread[i] + \
                   x_thread[i + 1] * 16.0f + x_thread[i + 2] * 256.0f + \
                   x_thread[i + 3] * 4096.0f; return sum;",
        )],
    },
    Mutation {
        name: "tail-unguarded",
        meaning: "trap: lanes past the end of the row take part in the tail",
        bits: 4,
        edits: &[(GENERIC, "if (remaining > 0) {", "{")],
    },
    Mutation {
        name: "tail-read-whole",
        meaning: "trap: the tail reads a whole block of weights",
        bits: 4,
        edits: &[
            (GENERIC, "if (remaining > 0) {", "{"),
            (GENERIC, "i < reads ? wl[i] : W_T(0)", "wl[i]"),
        ],
    },
    Mutation {
        name: "tile-off-by-one-fast",
        meaning: "trap: the vector index of a part tile clamped to M (fast)",
        bits: 4,
        edits: &[(FAST, CLAMP, "min(vec0 + v, M)")],
    },
    Mutation {
        name: "tile-off-by-one",
        meaning: "trap: the vector index of a part tile clamped to M (generic)",
        bits: 4,
        edits: &[(GENERIC, CLAMP, "min(vec0 + v, M)")],
    },
    Mutation {
        name: "last-vector-left-out",
        meaning: "trap: V off by one: the last vector of a tile is not computed",
        bits: 4,
        edits: &[(
            FAST,
            "simd_lid == 0 && vec0 + v < M",
            "simd_lid == 0 && vec0 + v < M && v + 1 < vecs_per_tg",
        )],
    },
    Mutation {
        name: "wrong-scale",
        meaning: "trap: the scale of another group",
        bits: 4,
        edits: &[(
            FAST,
            "scales += out_row * in_vec_size_g + simd_lid / scale_step_per_thread;",
            "scales += out_row * in_vec_size_g + simd_lid / (2 * scale_step_per_thread);",
        )],
    },
    Mutation {
        name: "rows-swapped",
        meaning: "trap: the rows of a simdgroup stored in another order",
        bits: 4,
        edits: &[(
            FAST,
            "static_cast<T>(result[v][row])",
            "static_cast<T>(result[v][results_per_simdgroup - 1 - row])",
        )],
    },
    Mutation {
        name: "store-unguarded-fast",
        meaning: "trap: vectors past M are stored (fast)",
        bits: 4,
        edits: &[(FAST, "simd_lid == 0 && vec0 + v < M", "simd_lid == 0")],
    },
    Mutation {
        name: "store-unguarded",
        meaning: "trap: vectors past M are stored (generic)",
        bits: 4,
        edits: &[(GENERIC, "simd_lid == 0 && vec0 + v < M", "simd_lid == 0")],
    },
    Mutation {
        name: "rows-unguarded",
        meaning: "trap: the rows of a matrix smaller than a tile are not counted",
        bits: 4,
        edits: &[(
            GENERIC_ENTRY,
            "min(results_per_simdgroup, out_vec_size - out_row)",
            "results_per_simdgroup",
        )],
    },
    Mutation {
        name: "accumulation-split",
        meaning: "trap: two accumulators for one row",
        bits: 4,
        edits: &[
            (
                FAST,
                ACCUMULATE,
                "(k % (2 * block_size) ? odd : result)[v][row] += \
                                qdot_reg<U, values_per_thread, bits>(",
            ),
            (
                FAST,
                "thread U result[vecs_per_tg][results_per_simdgroup] = {{0}};",
                "thread U result[vecs_per_tg][results_per_simdgroup] = {{0}}; \
              thread U odd[vecs_per_tg][results_per_simdgroup] = {{0}};",
            ),
            (FAST, "simd_sum(result[v][row])", "simd_sum(result[v][row] + odd[v][row])"),
        ],
    },
    Mutation {
        name: "contraction-off",
        meaning: "trap: products named before they are added, so that none fuses",
        bits: 4,
        edits: &[(
            "qdot_reg",
            RETURN,
            "U product = scale * accum; U offset = sum * bias; return product + offset;",
        )],
    },
    Mutation {
        name: "pointer-not-cumulative",
        meaning: "trap: 3, 5 and 6 bits: the weights' pointer stays at its first pack",
        bits: 3,
        edits: &[(
            "qdot_reg",
            "x_thread += 8 * i;
      w += 3 * i;",
            "x_thread += 8 * i;",
        )],
    },
    Mutation {
        name: "weights-reloaded",
        meaning: "traffic: the weights are read again for each vector (fast)",
        bits: 4,
        edits: &[(FAST, "load_fours<T, values_per_thread>(xv[v], x_reg);", RELOAD)],
    },
    Mutation {
        name: "weights-reloaded-generic",
        meaning: "traffic: the weights are read again for each vector (generic)",
        bits: 4,
        edits: &[(GENERIC, "load_fours<T, values_per_thread>(xv[v], x_reg);", RELOAD)],
    },
    Mutation {
        name: "x-reloaded",
        meaning: "traffic: x is read again from device memory, not from registers",
        bits: 4,
        edits: &[(
            FAST,
            "load_vector_reg<T, U, values_per_thread, bits>(x_reg, x_thread);",
            "load_vector<T, U, values_per_thread, bits>(xv[v], x_thread);",
        )],
    },
    Mutation {
        name: "stray-store",
        meaning: "race: a simdgroup also stores to a row of the next one",
        bits: 4,
        edits: &[(
            FAST,
            STORE,
            "if (simd_lid == 0 && simd_gid == 0 && vec0 + v < M) { \
             y[v * out_vec_size + row + results_per_simdgroup] = static_cast<T>(0.0f); } \
             if (simd_lid == 0 && vec0 + v < M) {",
        )],
    },
    Mutation {
        name: "second-lane-stores",
        meaning: "race: another lane stores to the same place",
        bits: 4,
        edits: &[(
            FAST,
            STORE,
            "if (simd_lid == 31 && vec0 + v < M) { \
             y[v * out_vec_size + row] = static_cast<T>(0.0f); } \
             if (simd_lid == 0 && vec0 + v < M) {",
        )],
    },
    Mutation {
        name: "sum-diverges",
        meaning: "half the lanes sum at another simd_sum than the other half",
        bits: 4,
        edits: &[(
            FAST,
            "result[v][row] = simd_sum(result[v][row]);",
            "U part = result[v][row]; if (simd_lid < 16) { result[v][row] = simd_sum(part); } \
             else { result[v][row] = simd_sum(part); }",
        )],
    },
    Mutation {
        name: "starts-at-negative-zero",
        meaning: "the accumulators start at -0, which shows where all products are -0",
        bits: 4,
        edits: &[(
            FAST,
            "thread U result[vecs_per_tg][results_per_simdgroup] = {{0}};",
            "thread U result[vecs_per_tg][results_per_simdgroup] = {{0}}; \
             for (int v = 0; v < vecs_per_tg; v++) \
             for (int row = 0; row < results_per_simdgroup; row++) result[v][row] = -0.0f;",
        )],
    },
    Mutation {
        name: "output-read-back",
        meaning: "what y holds before the store enters it",
        bits: 4,
        edits: &[(
            FAST,
            STORE,
            "if (vec0 + v < M) { result[v][row] += 0.0f * U(y[v * out_vec_size + row]); } \
             if (simd_lid == 0 && vec0 + v < M) {",
        )],
    },
    Mutation {
        name: "wrong-address-space",
        meaning: "trap: weights in registers passed where device memory belongs",
        bits: 4,
        edits: &[(FAST, "qdot_reg<", "qdot<")],
    },
];

/// A mutation that fits a text, and what it makes of it.
#[derive(Debug)]
pub struct Mutated {
    mutation: &'static Mutation,
    text: String,
}

/// Makes all mutants of a tree's text.
///
/// # Errors
/// The text cannot be read, or mutations do not fit it: all that do not.
pub fn mutate(shop: &Workshop) -> Result<Vec<Mutated>, HarnessError> {
    let text = shop.read(FILE)?;
    let (mut mutated, mut misfits) = (Vec::new(), Vec::new());
    for mutation in MUTATIONS {
        match mutation.apply(&text) {
            Ok(text) => mutated.push(Mutated { mutation, text }),
            Err(misfit) => misfits.push(misfit),
        }
    }
    if misfits.is_empty() {
        return Ok(mutated);
    }
    Err(HarnessError::Mutations { file: FILE, misfits })
}

/// Runs every mutant through every proof. `progress` gets each one's name.
pub fn run(shop: &Workshop, mutated: &[Mutated], progress: &(dyn Fn(&str) + Sync)) -> Vec<Mutant> {
    let trials: BTreeSet<_> = mutated.iter().map(|m| m.mutation.trial()).collect();
    let trials: Vec<_> = trials.into_iter().collect();
    // Of a trial that the text itself fails, what a mutant fails says nothing.
    let baseline: BTreeMap<_, _> = each(&trials, |&(bits, order)| {
        let fault = match caught_by(shop, bits, order) {
            Ok(caught) if caught.is_empty() => None,
            Ok(caught) => Some(format!("the text itself fails there: {}", caught.join(", "))),
            Err(error) => Some(error.to_string()),
        };
        ((bits, order), fault)
    })
    .into_iter()
    .collect();
    each(mutated, |Mutated { mutation, text }| {
        progress(mutation.name);
        let (bits, order) = mutation.trial();
        let judge = || caught_by(&shop.with_file(FILE, text)?, bits, order);
        let (caught_by, fault) = match baseline[&(bits, order)].clone() {
            Some(fault) => (Vec::new(), Some(fault)),
            None => match judge() {
                Ok(caught) => (caught, None),
                Err(error) => (Vec::new(), Some(error.to_string())),
            },
        };
        Mutant { name: mutation.name, meaning: mutation.meaning, caught_by, fault }
    })
}

impl Mutation {
    /// The width and the twin it is tried on: the twin it edits, or the fast one
    /// where both call what it edits.
    fn trial(&self) -> (u32, Order) {
        let generic = |(function, ..): &Edit| [GENERIC, GENERIC_ENTRY].contains(function);
        let order = if self.edits.iter().any(generic) { Order::Generic } else { Order::Fast };
        (self.bits, order)
    }

    /// The text with the mutation, or the first edit that does not fit it.
    fn apply(&self, text: &str) -> Result<String, Misfit> {
        let mut text = text.to_string();
        for &(function, from, to) in self.edits {
            let misfit = |found| Misfit { mutant: self.name, function, text: from, found };
            let (start, end) = function_range(&text, function).ok_or_else(|| misfit(None))?;
            let found = text[start..end].matches(from).count();
            if found != 1 {
                return Err(misfit(Some(found)));
            }
            let body = text[start..end].replacen(from, to, 1);
            text.replace_range(start..end, &body);
        }
        Ok(text)
    }
}

/// The proofs that fail on a workshop's text, for one twin at one width: each
/// of its shapes, a part tile, a probe so that no store hides anything, and
/// float, whose products are not exact as those of halves nearly are.
fn caught_by(shop: &Workshop, bits: u32, order: Order) -> Result<Vec<&'static str>, HarnessError> {
    let mut shapes = Shapes::of(bits, 64).all();
    shapes.retain(|(n, k)| Order::of(bits, *n, *k) == order);
    let cells = |number| -> Vec<Cell> {
        let cell = |&(n, k)| Cell {
            number,
            bits,
            group_size: 64,
            vectors: 3,
            m: 5,
            n,
            k,
            batch: Vec::new(),
            draw: Draw::Plain,
            seed: 7,
        };
        shapes.iter().map(cell).collect()
    };
    let mut caught = Vec::new();
    if numeric_fails(shop, &[Number::Probe, Number::Float].map(cells).concat())? {
        caught.push("numeric");
    }
    caught.extend(symbolic_fails(shop, &cells(Number::Half))?);
    let units = address_space_units(parity_kernels(&cells(Number::Half)));
    match in_parallel(&units, |unit| shop.check(unit)) {
        Ok(_) => {}
        Err(HarnessError::Tool { .. }) => caught.push("address spaces"),
        Err(error) => return Err(error),
    }
    Ok(caught)
}

fn numeric_fails(shop: &Workshop, cells: &[Cell]) -> Result<bool, HarnessError> {
    let units = units(parity_kernels(cells), Mode::Checked);
    // A mutant that does not compile is none: its text has gone out of date.
    let mut objects = in_parallel(&units, |unit| shop.compile(unit))?;
    objects.extend(shop.runtime(Mode::Checked, &["serve.cpp"])?);
    let mut runner = Runner::start(&shop.link(&objects, Mode::Checked, LinkKind::Program)?)?;
    for cell in cells {
        if !parity(&mut runner, cell, Family::Streamed(cell.order()))?.holds() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Symbolic parity and traffic, of one run; which of them fails.
fn symbolic_fails(shop: &Workshop, cells: &[Cell]) -> Result<Option<&'static str>, HarnessError> {
    let program = symbolic::program(shop, cells)?;
    let judged = symbolic::judge(&program, cells, |c| Family::Streamed(c.order()))?;
    if judged.iter().any(|cell| !cell.holds()) {
        return Ok(Some("symbolic"));
    }
    let reads_wrong = |(cell, judged)| traffic(cell, judged).fault.is_some();
    Ok(cells.iter().zip(&judged).any(reads_wrong).then_some("traffic"))
}

/// Where a function's definition stands, from its name to the brace that ends
/// it at the start of a line; nothing where there is none, or more than one.
fn function_range(text: &str, name: &str) -> Option<(usize, usize)> {
    let call = format!(" {name}(");
    let mut starts = text.match_indices(&call).filter(|(at, _)| {
        let line = text[..*at].rfind('\n').map_or(0, |newline| newline + 1);
        text[line..].starts_with("METAL_FUNC") || text[line..].starts_with("inline")
    });
    let (start, _) = starts.next()?;
    let end = start + text[start..].find("\n}\n")? + 3;
    starts.next().is_none().then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "inline U qdot_reg(\n    U x) {\n  return x;\n}\n\
                        METAL_FUNC void other() {\n  return x;\n}\n";

    fn mutation(edits: &'static [Edit]) -> Mutation {
        Mutation { name: "m", meaning: "", bits: 4, edits }
    }

    #[test]
    fn a_mutation_stays_in_its_function() {
        let mutated = mutation(&[("other", "return x", "return y")]).apply(TEXT).unwrap();
        assert_eq!(mutated.replace("return y", "return x"), TEXT);
        assert!(mutated.find("return x") < mutated.find("return y"));
    }

    #[test]
    fn a_mutation_that_does_not_fit_once_is_told_with_its_text() {
        let misfit = |edits| mutation(edits).apply(TEXT).unwrap_err();
        assert_eq!(misfit(&[("gone", "return x", "")]).found, None);
        assert_eq!(misfit(&[("other", "return z", "")]).found, Some(0));
        let twice = misfit(&[("qdot_reg", "x", "")]);
        assert_eq!((twice.function, twice.text, twice.found), ("qdot_reg", "x", Some(2)));
    }
}
