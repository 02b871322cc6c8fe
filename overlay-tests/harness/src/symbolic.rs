//! Symbolic parity and traffic: the other side of `cpp/symbolic.cpp`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::HarnessError;
use crate::cells::Cell;
use crate::kernels::{Family, Number};
use crate::report::Loads;
use crate::sets::parity_kernels;
use crate::toolchain::tail;
use crate::units::{type_name, units};
use crate::workshop::{LinkKind, Mode, Workshop, in_parallel};

/// What the symbolic program says of a cell.
#[derive(Clone, Debug, Deserialize)]
pub struct Judgement {
    /// Outputs of the cell, M × N.
    pub outputs: usize,
    /// Outputs whose expression is that of M = 1.
    pub equal: usize,
    /// Distinct expressions met.
    pub nodes: usize,
    /// The first difference, or what a kernel did wrong; empty where all holds.
    pub fault: String,
    /// Loads of the tiled kernel.
    pub tiled: Loads,
    /// Loads of M narrow calls.
    pub narrow: Loads,
}

impl Judgement {
    /// Whether every output's expression is that of M = 1.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.fault.is_empty() && self.equal == self.outputs
    }
}

/// Builds the symbolic program for cells.
///
/// # Errors
/// clang refuses the text.
pub fn program(shop: &Workshop, cells: &[Cell]) -> Result<PathBuf, HarnessError> {
    let units = units(parity_kernels(cells), Mode::Symbolic);
    let mut objects = in_parallel(&units, |unit| shop.compile(unit))?;
    objects.extend(shop.runtime(Mode::Symbolic, &["symbolic.cpp"])?);
    shop.link(&objects, Mode::Symbolic, LinkKind::Program)
}

/// Judges cells, the tiled family being `tiled` of a cell.
///
/// # Errors
/// The program ends early.
pub fn judge(
    program: &Path,
    cells: &[Cell],
    tiled: impl Fn(&Cell) -> Family,
) -> Result<Vec<Judgement>, HarnessError> {
    let failed = |said: String| HarnessError::Tool { what: "symbolic parity".into(), said };
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(HarnessError::io(program))?;
    let input = child.stdin.take();
    let lines: String = cells.iter().map(|cell| line(cell, tiled(cell))).collect();
    let writer = std::thread::spawn(move || input.map(|mut pipe| pipe.write_all(lines.as_bytes())));
    let output = child.wait_with_output().map_err(HarnessError::io(program))?;
    // A broken pipe shows in the answers that are missing.
    let _ = writer.join();
    let said = String::from_utf8_lossy(&output.stdout);
    let answers: Result<Vec<Judgement>, _> = said.lines().map(serde_json::from_str).collect();
    let answers = answers.map_err(|error| failed(error.to_string()))?;
    if answers.len() != cells.len() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let why = format!("{}\n{}", output.status, tail(&stderr, 5));
        let at = cells.get(answers.len()).map(ToString::to_string).unwrap_or_default();
        return Err(failed(format!("ended at {at}: {why}")));
    }
    Ok(answers)
}

/// A cell as the program reads it.
fn line(cell: &Cell, tiled: Family) -> String {
    let number = type_name(cell.number, Mode::Symbolic);
    let kind = if cell.number == Number::Half { "half" } else { "single" };
    let kernel = |family, m| {
        let kernel = cell.kernel(family);
        let [x, y, z] = kernel.grid(m, cell.n, 1);
        format!("{} {x} {y} {z}", kernel.host_name_for(number))
    };
    let Cell { group_size, bits, m, n, k, .. } = cell;
    format!(
        "{kind} {group_size} {bits} {m} {n} {k} {} {}\n",
        kernel(tiled, *m),
        kernel(Family::Narrow(cell.order()), 1)
    )
}
