//! The oracle: Apple's compiled kernels beside the same text through the shim.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::HarnessError;
use crate::air::{self, Lowered};
use crate::cells::{Cell, Vectors};
use crate::kernels::{Family, Kernel};
use crate::parity::{Multiply, Verdict, poisons};
use crate::runner::Runner;
use crate::workshop::{LinkKind, Workshop};

/// Builds a program with Apple's kernels for cells, in the mode they name.
///
/// # Errors
/// The wheel cannot be had, or a tool fails.
pub fn program(shop: &Workshop, cells: &[(Cell, Family)]) -> Result<PathBuf, HarnessError> {
    let Lowered { mut objects, mode } = air::lowered(shop, &host_names(cells))?;
    objects.extend(shop.runtime(mode, &["serve.cpp"])?);
    shop.link(&objects, mode, LinkKind::Program)
}

/// The host names of the kernels that cells need, each once.
#[must_use]
pub fn host_names(cells: &[(Cell, Family)]) -> Vec<String> {
    let names = cells.iter().map(|(cell, family)| cell.kernel(*family).host_name());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The kernels that cells need of the shim.
pub fn kernels(cells: &[(Cell, Family)]) -> Vec<Kernel> {
    cells.iter().map(|(cell, family)| cell.kernel(*family)).collect()
}

/// Whether the shim computes what Apple's kernel does, all vectors at once.
///
/// # Errors
/// A process cannot be started again.
pub fn agree(
    shim: &mut Runner,
    apple: &mut Runner,
    cell: &Cell,
    family: Family,
) -> Result<Verdict, HarnessError> {
    let inputs = cell.inputs();
    let [ours, theirs] = poisons(cell.draw);
    let got = shim.multiply(cell, &inputs, family, Vectors::All, ours)?;
    let expected = apple.multiply(cell, &inputs, family, Vectors::All, theirs)?;
    let mut verdict = Verdict::default();
    match (got, expected) {
        (Ok(got), Ok(expected)) => {
            let n = cell.n as usize;
            let place = |at: usize| format!("vector {}, column {}", at / n, at % n);
            verdict.compare(cell.number, &got, &expected, place);
        }
        (Err(why), _) => verdict.fault = Some(format!("the shim: {why}")),
        (_, Err(why)) => verdict.fault = Some(format!("Apple's kernel: {why}")),
    }
    Ok(verdict)
}
