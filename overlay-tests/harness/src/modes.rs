//! Wrong compile modes: the oracle must tell each from Apple's.
//!
//! The text is right in all of them. What is wrong is how clang compiles it or
//! how the host runs it, on the shim's side alone: Apple's kernels keep what
//! their own compile options name.

use std::path::{Path, PathBuf};

use crate::HarnessError;
use crate::cells::{Cell, Draw};
use crate::kernels::{Family, Number, Order, fast_step};
use crate::oracle;
use crate::parallel::{each, in_parallel};
use crate::report::Mutant;
use crate::runner::Runner;
use crate::units::units;
use crate::workshop::{LinkKind, Mode, Workshop};

/// A wrong mode, and the inputs that show it.
struct WrongMode {
    mode: Mode,
    name: &'static str,
    meaning: &'static str,
    number: Number,
    draw: Draw,
}

const WRONG: &[WrongMode] = &[
    WrongMode {
        mode: Mode::ContractOff,
        name: "mode-contract-off",
        meaning: "compile mode: no product fuses with a sum",
        number: Number::Float,
        draw: Draw::Plain,
    },
    WrongMode {
        mode: Mode::ContractFast,
        name: "mode-contract-fast",
        meaning: "compile mode: products fuse across statements",
        number: Number::Float,
        draw: Draw::Plain,
    },
    // Elsewhere sums of halves are halves with and without the flag.
    #[cfg(target_arch = "x86_64")]
    WrongMode {
        mode: Mode::HalfExcess,
        name: "mode-half-excess",
        meaning: "compile mode: sums of halves are kept in float",
        number: Number::Half,
        draw: Draw::Plain,
    },
    WrongMode {
        mode: Mode::KeepDenormals,
        name: "mode-denormals-kept",
        meaning: "compile mode: denormal floats are not flushed",
        number: Number::Float,
        draw: Draw::Tiny,
    },
];

/// Compiles the text in each wrong mode and lets the oracle judge it. `right`
/// is the program with the text in the right mode, `apple` Apple's; both have
/// the kernels of every [`cells`].
pub fn run(shop: &Workshop, right: &Path, apple: &Path) -> Vec<Mutant> {
    let judge = |wrong: &WrongMode| {
        let cells = cells(wrong.number, wrong.draw);
        // What the right mode fails, a wrong one cannot be told by.
        match differing(right, apple, &cells)? {
            0 => differing(&shim(shop, wrong.mode, &cells)?, apple, &cells),
            values => Err(HarnessError::Tool {
                what: "the right compile mode".into(),
                said: format!("{values} values differ from Apple's"),
            }),
        }
    };
    each(WRONG, |wrong| {
        let (caught_by, fault) = match judge(wrong) {
            Ok(0) => (Vec::new(), None),
            Ok(_) => (vec!["oracle"], None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Mutant { name: wrong.name, meaning: wrong.meaning, caught_by, fault }
    })
}

/// Builds a program with the text of cells' kernels in a mode.
///
/// # Errors
/// A tool fails.
pub fn shim(
    shop: &Workshop,
    mode: Mode,
    cells: &[(Cell, Family)],
) -> Result<PathBuf, HarnessError> {
    let units = units(oracle::kernels(cells), mode);
    let mut objects = in_parallel(&units, |unit| shop.compile(unit))?;
    objects.extend(shop.runtime(mode, &["serve.cpp"])?);
    shop.link(&objects, mode, LinkKind::Program)
}

/// Values of cells in which two programs differ: the text's and Apple's.
///
/// # Errors
/// A program cannot be started, or a kernel does not run.
pub fn differing(
    shim: &Path,
    apple: &Path,
    cells: &[(Cell, Family)],
) -> Result<usize, HarnessError> {
    let (mut shim, mut apple) = (Runner::start(shim)?, Runner::start(apple)?);
    let mut differing = 0;
    for (cell, family) in cells {
        let verdict = oracle::agree(&mut shim, &mut apple, cell, *family)?;
        if let (0, Some(said)) = (verdict.values, verdict.fault) {
            return Err(HarnessError::Tool { what: cell.to_string(), said });
        }
        differing += verdict.differing;
    }
    Ok(differing)
}

/// A few single-vector products in one type.
#[must_use]
pub fn cells(number: Number, draw: Draw) -> Vec<(Cell, Family)> {
    let cell = |seed| Cell {
        number,
        bits: 4,
        group_size: 64,
        vectors: 1,
        m: 8,
        n: 32,
        k: 2 * fast_step(4),
        batch: Vec::new(),
        draw,
        seed,
    };
    [1, 2, 3].map(|seed| (cell(seed), Family::Narrow(Order::Fast))).to_vec()
}
