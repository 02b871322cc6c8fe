//! The whole run: every proof, one after the other, each over all cores.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::HarnessError;
use crate::air;
use crate::cells::Cell;
use crate::instantiations;
use crate::kernels::Family;
use crate::left_out::left_out;
use crate::metallib::{self, Network};
use crate::modes;
use crate::mutants;
use crate::oracle;
use crate::parallel::{each, in_parallel};
use crate::parity::{Verdict, parity};
use crate::report::{Mutant, NotRun, Proof, Report, Traffic};
use crate::runner::Runner;
use crate::sets::{
    Set, address_space_kernels, oracle_cells, parity_cells, parity_kernels, symbolic_cells,
};
use crate::symbolic::{self, Judgement};
use crate::toolchain::{LlvmTools, Toolchain};
use crate::traffic::traffic;
use crate::units::{address_space_units, units};
use crate::workshop::{LinkKind, Mode, Workshop};

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much.
    pub set: Set,
    /// The tool's cache folder; the harness keeps its own below it.
    pub cache: PathBuf,
    /// Whether the released wheel may be downloaded where it is not at hand.
    pub network: Network,
}

/// How far a run is.
#[derive(Clone, Debug)]
pub struct Step<'s> {
    /// What it is at.
    pub what: &'s str,
    /// Cells done of this step.
    pub done: usize,
    /// Cells of this step; 0 where they are not counted.
    pub of: usize,
}

/// Runs every proof on a laid tree. `progress` is called from several threads.
///
/// # Errors
/// Something is missing, found before anything is run: a tool, the wheel, the
/// tree, or the text that a mutant is made of. What goes wrong later stands in
/// the report, beside all that was decided.
pub fn run(
    tree: &Path,
    options: &Options,
    progress: &(dyn Fn(Step) + Sync),
) -> Result<Report, HarnessError> {
    let start = Instant::now();
    let toolchain = Toolchain::find()?;
    LlvmTools::find()?;
    metallib::given()?;
    let shop = Workshop::open(toolchain, tree, &options.cache)?;
    shop.sanitizers()?;
    let apple = oracle::host_names(&oracle_cells(options.set));
    // A download waits until all else is known to be there.
    if options.network == Network::Off {
        air::bitcodes(&shop, &apple, options.network)?;
    }
    let mutated = mutants::mutate(&shop)?;
    let run = Run { shop: &shop, set: options.set, progress };
    run.say("fetching Apple's kernels", 0, 0);
    air::bitcodes(&shop, &apple, options.network)?;
    let mut not_run = left_out(options.set);
    let mut proofs = vec![run.instantiations(), run.address_spaces()];
    let (symbolic, loads, traffic) = run.symbolic();
    proofs.extend([symbolic, loads]);
    proofs.extend(options.set.modes().iter().map(|mode| run.numeric(*mode)));
    let (oracle, mut mutants) = run.oracle();
    proofs.push(oracle);
    // Of a text that fails, what a mutant fails says nothing.
    if proofs.iter().all(Proof::holds) {
        let name = |name: &str| run.say(&format!("mutant {name}"), 0, 0);
        mutants.extend(mutants::run(&shop, &mutated, &name));
    } else {
        let why = "the text itself fails a proof".into();
        not_run.push(NotRun { what: "the mutants of the text".into(), why });
    }
    Ok(Report {
        tree: tree.display().to_string(),
        set: options.set,
        compiler: shop.compiler().to_string(),
        ran_on: "host simulation",
        proofs,
        mutants,
        traffic,
        not_run,
        seconds: start.elapsed().as_secs_f64(),
    })
}

struct Run<'r> {
    shop: &'r Workshop,
    set: Set,
    progress: &'r (dyn Fn(Step) + Sync),
}

impl Run<'_> {
    fn say(&self, what: &str, done: usize, of: usize) {
        (self.progress)(Step { what, done, of });
    }

    /// The tree instantiates what is run here.
    fn instantiations(&self) -> Proof {
        const MEANING: &str = "the tree's quantized.metal instantiates the qmv kernels of the full set, and no others";
        Proof::run("instantiations", MEANING, |proof| instantiations::judge(self.shop, proof))
    }

    /// Every kernel type-checks with `device` and `constant` as address spaces.
    fn address_spaces(&self) -> Proof {
        const MEANING: &str =
            "no pointer of one address space is passed where another belongs (float and half)";
        Proof::run("address spaces", MEANING, |proof| {
            let units = address_space_units(address_space_kernels(self.set));
            self.say("address spaces", 0, units.len());
            let checked = in_parallel(&units, |unit| match self.shop.check(unit) {
                Ok(()) => Ok(None),
                Err(HarnessError::Tool { said, .. }) => Ok(Some(said)),
                Err(error) => Err(error),
            })?;
            for (unit, fault) in units.iter().zip(checked) {
                proof.add(&unit.name, 0, fault.as_deref());
            }
            Ok(())
        })
    }

    /// Symbolic parity, and the traffic of the same cells.
    fn symbolic(&self) -> (Proof, Proof, Vec<Traffic>) {
        const MEANING: &str =
            "each output's expression is that of M = 1, for all inputs, contraction included";
        const TRAFFIC: &str =
            "in the source a streamed kernel reads each weight once a tile, qmv once a vector";
        let cells = symbolic_cells(self.set);
        let mut judged = Vec::new();
        let proof = Proof::run("symbolic parity", MEANING, |proof| {
            judged = self.judged(&cells)?;
            for (cell, judgement) in cells.iter().zip(&judged) {
                let fault = (!judgement.holds()).then_some(judgement.fault.as_str());
                proof.add(cell, judgement.outputs, fault);
            }
            Ok(())
        });
        let judged = cells.iter().zip(&judged).filter(|(_, judged)| judged.holds());
        let traffic: Vec<Traffic> = judged.map(|(cell, judged)| traffic(cell, judged)).collect();
        let loads = Proof::run("traffic", TRAFFIC, |loads| {
            for one in &traffic {
                loads.add(&one.cell, 0, one.fault.as_deref());
            }
            Ok(())
        });
        (proof, loads, traffic)
    }

    fn judged(&self, cells: &[Cell]) -> Result<Vec<Judgement>, HarnessError> {
        self.say("compiling for symbolic parity", 0, 0);
        let program = symbolic::program(self.shop, cells)?;
        let done = AtomicUsize::new(0);
        let parts: Vec<&[Cell]> = cells.chunks(8).collect();
        let judged = in_parallel(&parts, |part| {
            let judged = symbolic::judge(&program, part, |cell| Family::Streamed(cell.order()))?;
            let done = done.fetch_add(part.len(), Ordering::Relaxed) + part.len();
            self.say("symbolic parity", done, cells.len());
            Ok(judged)
        })?;
        Ok(judged.into_iter().flatten().collect())
    }

    fn numeric(&self, mode: Mode) -> Proof {
        let (name, meaning) = match mode {
            Mode::Checked => (
                "numeric parity",
                "each vector has the bits of M = 1, within float64's bound, all memory checked",
            ),
            _ => (
                "numeric parity, optimised",
                "each vector has the bits of M = 1 in code that clang optimised",
            ),
        };
        Proof::run(name, meaning, |proof| {
            let cells = parity_cells(self.set);
            let program = self.shim(mode)?;
            let verdicts = self.over(&cells, name, &[&program], |runners, cell| {
                parity(&mut runners[0], cell, Family::Streamed(cell.order()))
            });
            for (cell, verdict) in cells.iter().zip(verdicts) {
                proof.add(cell, verdict.values, verdict.fault.as_deref());
            }
            Ok(())
        })
    }

    /// The host Metal against Apple's kernels, and the wrong compile modes.
    fn oracle(&self) -> (Proof, Vec<Mutant>) {
        const MEANING: &str =
            "the host Metal has the bits of Apple's compiled kernels, run under LLVM";
        let mut modes = Vec::new();
        let proof = Proof::run("oracle", MEANING, |proof| {
            let cells = oracle_cells(self.set);
            self.say("lowering Apple's kernels", 0, 0);
            let apple = oracle::program(self.shop, &cells)?;
            let shim = self.shim(self.set.oracle_mode())?;
            let verdicts = self.over(&cells, "oracle", &[&shim, &apple], |runners, judged| {
                let ((cell, family), (shim, apple)) = (judged, runners.split_at_mut(1));
                oracle::agree(&mut shim[0], &mut apple[0], cell, *family)
            });
            for ((cell, family), verdict) in cells.iter().zip(verdicts) {
                let name = format!("{}: {cell}", family.template());
                proof.add(name, verdict.values, verdict.fault.as_deref());
            }
            self.say("wrong compile modes", 0, 0);
            modes = modes::run(self.shop, &shim, &apple);
            Ok(())
        });
        (proof, modes)
    }

    /// One program for numeric parity and the oracle: the text is read once for
    /// both.
    fn shim(&self, mode: Mode) -> Result<PathBuf, HarnessError> {
        self.say("compiling the kernels", 0, 0);
        let mut kernels = parity_kernels(&parity_cells(self.set));
        kernels.extend(oracle::kernels(&oracle_cells(self.set)));
        let mut objects = in_parallel(&units(kernels, mode), |unit| self.shop.compile(unit))?;
        objects.extend(self.shop.runtime(mode, &["serve.cpp"])?);
        self.shop.link(&objects, mode, LinkKind::Program)
    }

    /// Judges cells on all cores, each with processes of its own. A cell that
    /// cannot be judged fails and leaves the others alone.
    fn over<T: Sync>(
        &self,
        cells: &[T],
        what: &str,
        programs: &[&Path],
        judge: impl Fn(&mut [Runner], &T) -> Result<Verdict, HarnessError> + Sync,
    ) -> Vec<Verdict> {
        let idle: Mutex<Vec<Vec<Runner>>> = Mutex::new(Vec::new());
        let done = AtomicUsize::new(0);
        let judge = |cell: &T| {
            let waiting = idle.lock().expect("no worker panics with the lock").pop();
            let mut runners = match waiting {
                Some(runners) => runners,
                None => programs
                    .iter()
                    .map(|program| Runner::start(program))
                    .collect::<Result<_, _>>()?,
            };
            let verdict = judge(&mut runners, cell)?;
            idle.lock().expect("no worker panics with the lock").push(runners);
            Ok(verdict)
        };
        each(cells, |cell| {
            let verdict =
                judge(cell).unwrap_or_else(|e: HarnessError| Verdict::fault(e.to_string()));
            self.say(what, done.fetch_add(1, Ordering::Relaxed) + 1, cells.len());
            verdict
        })
    }
}
