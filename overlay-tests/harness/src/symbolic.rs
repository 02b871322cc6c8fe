//! Symbolic parity and traffic: the other side of `cpp/symbolic.cpp`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::HarnessError;
use crate::cells::Cell;
use crate::kernels::{Family, Number};
use crate::parallel::in_parallel;
use crate::report::Loads;
use crate::runner::CPU_SECONDS;
use crate::sets::parity_kernels;
use crate::toolchain::tail;
use crate::units::{type_name, units};
use crate::workshop::{LinkKind, Mode, Workshop};

/// What the symbolic program says of a cell.
#[derive(Clone, Debug, Default, Deserialize)]
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
    /// Stores to y of the tiled kernel.
    pub tiled_stores: u64,
    /// Stores to y of M narrow calls.
    pub narrow_stores: u64,
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

/// Judges cells, the tiled family being `tiled` of a cell. The cell at which
/// the program ends has that for its fault, and the next ones a new process.
///
/// # Errors
/// The program cannot be started.
pub fn judge(
    program: &Path,
    cells: &[Cell],
    tiled: impl Fn(&Cell) -> Family,
) -> Result<Vec<Judgement>, HarnessError> {
    let mut judged = Vec::new();
    while let Some(rest) = cells.get(judged.len()..).filter(|rest| !rest.is_empty()) {
        let (answers, end) = answers(program, rest, &tiled)?;
        let ended = answers.len() < rest.len();
        judged.extend(answers);
        if ended {
            judged.push(Judgement {
                fault: format!("the program ended: {end}"),
                ..Default::default()
            });
        }
    }
    Ok(judged)
}

/// What one process answers, cell by cell, and how it ended.
fn answers(
    program: &Path,
    cells: &[Cell],
    tiled: impl Fn(&Cell) -> Family,
) -> Result<(Vec<Judgement>, String), HarnessError> {
    let mut child = Command::new(program)
        .arg(CPU_SECONDS.to_string())
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
    let whole = said.lines().map_while(|line| serde_json::from_str(line).ok());
    let answers = whole.take(cells.len()).collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    Ok((answers, format!("{} {}", output.status, tail(&stderr, 5)).trim().to_string()))
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::sets::{Set, symbolic_cells};

    /// Answers each cell but those of groups of 128, at which it ends.
    const PROGRAM: &str = r#"#!/bin/sh
load='{"loads":1,"bytes":1,"distinct":1}'
loads="{\"w\":$load,\"scales\":$load,\"biases\":$load,\"x\":$load}"
while read kind group rest; do
  if [ $group = 128 ]; then echo boom >&2; exit 3; fi
  stores="\"tiled_stores\":2,\"narrow_stores\":2"
  echo "{\"outputs\":2,\"equal\":2,\"nodes\":1,\"fault\":\"\",\"tiled\":$loads,\"narrow\":$loads,$stores}"
done
"#;

    #[test]
    fn a_cell_that_ends_the_program_leaves_the_others_their_results() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, PROGRAM).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut cells = symbolic_cells(Set::Quick);
        cells.retain(|cell| cell.bits == 4 && cell.number == Number::Half && cell.vectors == 2);
        cells.sort_by_key(|cell| cell.k);
        let judged = judge(&program, &cells, |cell| Family::Streamed(cell.order())).unwrap();
        assert_eq!(judged.len(), cells.len());
        for (cell, judged) in cells.iter().zip(&judged) {
            assert_eq!(judged.holds(), cell.group_size != 128, "{cell}: {judged:?}");
            assert_eq!(judged.fault.contains("boom"), cell.group_size == 128, "{judged:?}");
        }
    }
}
