//! The whole run: every proof, one after the other, each over all cores.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::HarnessError;
use crate::cells::Cell;
use crate::kernels::{BITS, Family, GROUP_SIZES, Kernel, Number, Order, TILES};
use crate::metallib;
use crate::mutants;
use crate::oracle;
use crate::parity::{Verdict, parity};
use crate::report::{NotRun, Proof, Report, Traffic};
use crate::runner::Runner;
use crate::sets::{Set, oracle_cells, parity_cells, parity_kernels, symbolic_cells};
use crate::symbolic::{self, Judgement};
use crate::toolchain::{LlvmTools, Toolchain};
use crate::traffic::traffic;
use crate::units::{address_space_units, units};
use crate::workshop::{LinkKind, Mode, Workshop, in_parallel, store};

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much.
    pub set: Set,
    /// The tool's cache folder; the harness keeps its own below it.
    pub cache: PathBuf,
    /// Set where the network must not be touched: the oracle then runs only
    /// where the wheel is at hand.
    pub offline: bool,
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
/// A tool is missing, the folder is no MLX tree, or the harness itself cannot
/// go on. A proof that fails is in the report.
pub fn run(
    tree: &Path,
    options: &Options,
    progress: &(dyn Fn(Step) + Sync),
) -> Result<Report, HarnessError> {
    let start = Instant::now();
    let toolchain = Toolchain::find()?;
    let store = store(&options.cache);
    let has_wheel = metallib::at_hand(&store);
    // What is missing is told here, not when its turn comes.
    if has_wheel || !options.offline {
        LlvmTools::find()?;
    }
    let shop = Workshop::open(toolchain, tree, &options.cache)?;
    shop.sanitizers()?;
    let run = Run { shop: &shop, set: options.set, progress };
    let mut not_run = left_out(options.set);
    let mut proofs = Vec::new();
    let traffic = std::thread::scope(|scope| {
        // Beside the proofs: a download takes no core. If it fails it is tried
        // again, and its error told, where the wheel is opened.
        let wanted = !options.offline && !has_wheel;
        let download = wanted.then(|| scope.spawn(|| metallib::wheel(shop.store()).is_ok()));
        proofs.push(run.address_spaces()?);
        let (symbolic, loads, traffic) = run.symbolic()?;
        proofs.extend([symbolic, loads]);
        proofs.push(run.numeric(Mode::Checked)?);
        if options.set == Set::Full {
            proofs.push(run.numeric(Mode::Apple)?);
        }
        drop(download.map(|download| download.join()));
        match run.oracle(options)? {
            Ok(proof) => proofs.push(proof),
            Err(why) => not_run.push(why),
        }
        Ok::<_, HarnessError>(traffic)
    })?;
    // Of a text that fails, what a mutant fails says nothing.
    let mutants = if proofs.iter().all(Proof::holds) {
        mutants::run(&shop, &|name| run.say(&format!("mutant {name}"), 0, 0))?
    } else {
        let why = "the text itself fails a proof".into();
        not_run.push(NotRun { what: "the mutants".into(), why });
        Vec::new()
    };
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

/// What no run of a set has, and why.
fn left_out(set: Set) -> Vec<NotRun> {
    let always = [
        (
            "the same cells on an Apple GPU",
            "this run is on the host; no Apple GPU has run them. On a Mac, untested: \
             `cargo test --features runtime --test runtime parity`",
        ),
        (
            "bfloat in address spaces and in expressions",
            "a class cannot be copied out of clang's address spaces, and bfloat's text is half's",
        ),
        ("batches in expressions", "they move pointers only; numeric parity has them"),
    ];
    let quick = [
        (
            "half and bfloat but for the projections and long rows; most tiles of 4; most M",
            "they are in the full set",
        ),
        (
            "optimised code",
            "it is in the full set; here memory is checked and code is not optimised",
        ),
    ];
    let quick = if set == Set::Quick { &quick[..] } else { &[] };
    let all = always.iter().chain(quick);
    all.map(|(what, why)| NotRun { what: (*what).into(), why: (*why).into() }).collect()
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

    /// Every kernel type-checks with `device` and `constant` as address spaces.
    fn address_spaces(&self) -> Result<Proof, HarnessError> {
        let start = Instant::now();
        let mut proof = Proof::new(
            "address spaces",
            "no pointer of one address space is passed where another belongs (float and half)",
        );
        let orders = [Order::Fast, Order::Generic];
        let tiles: &[u32] = if self.set == Set::Quick { &[3] } else { &TILES };
        let groups: &[u32] = if self.set == Set::Quick { &[64] } else { &GROUP_SIZES };
        let mut kernels = Vec::new();
        for number in [Number::Float, Number::Half] {
            for (&group_size, bits) in groups.iter().flat_map(|g| BITS.map(|bits| (g, bits))) {
                for (&vectors, order) in tiles.iter().flat_map(|t| orders.map(|o| (t, o))) {
                    for (family, vectors) in
                        [(Family::Narrow(order), 1), (Family::Streamed(order), vectors)]
                    {
                        let batched = true;
                        kernels.push(Kernel { family, number, group_size, bits, vectors, batched });
                    }
                }
            }
        }
        let units = address_space_units(kernels);
        self.say("address spaces", 0, units.len());
        let checked = in_parallel(&units, |unit| match self.shop.check(unit) {
            Ok(()) => Ok(None),
            Err(HarnessError::Tool { said, .. }) => Ok(Some(said)),
            Err(error) => Err(error),
        })?;
        for fault in checked {
            proof.add("clang", 0, fault.as_deref());
        }
        proof.seconds = start.elapsed().as_secs_f64();
        Ok(proof)
    }

    /// Symbolic parity, and the traffic of the same cells.
    fn symbolic(&self) -> Result<(Proof, Proof, Vec<Traffic>), HarnessError> {
        let start = Instant::now();
        let mut proof = Proof::new(
            "symbolic parity",
            "each output's expression is that of M = 1, for all inputs, contraction included",
        );
        let cells = symbolic_cells(self.set);
        self.say("compiling for symbolic parity", 0, 0);
        let program = symbolic::program(self.shop, &cells)?;
        let done = AtomicUsize::new(0);
        let parts: Vec<&[Cell]> = cells.chunks(8).collect();
        let judged = in_parallel(&parts, |part| {
            let judged = symbolic::judge(&program, part, |cell| Family::Streamed(cell.order()))?;
            let done = done.fetch_add(part.len(), Ordering::Relaxed) + part.len();
            self.say("symbolic parity", done, cells.len());
            Ok(judged)
        })?;
        let judged: Vec<Judgement> = judged.into_iter().flatten().collect();
        for (cell, judgement) in cells.iter().zip(&judged) {
            let fault = (!judgement.holds()).then_some(judgement.fault.as_str());
            proof.add(cell, judgement.outputs, fault);
        }
        let mut loads = Proof::new(
            "traffic",
            "in the source a streamed kernel reads each weight once a tile, qmv once a vector",
        );
        let judged = cells.iter().zip(&judged).filter(|(_, judged)| judged.holds());
        let traffic: Vec<Traffic> = judged.map(|(cell, judged)| traffic(cell, judged)).collect();
        for one in &traffic {
            loads.add(&one.cell, 0, one.fault.as_deref());
        }
        proof.seconds = start.elapsed().as_secs_f64();
        Ok((proof, loads, traffic))
    }

    fn numeric(&self, mode: Mode) -> Result<Proof, HarnessError> {
        let start = Instant::now();
        let mut proof = match mode {
            Mode::Checked => Proof::new(
                "numeric parity",
                "each vector has the bits of M = 1, within float64's bound, all memory checked",
            ),
            _ => Proof::new(
                "numeric parity, optimised",
                "each vector has the bits of M = 1 in code that clang optimised",
            ),
        };
        let cells = parity_cells(self.set);
        let program = self.shim(mode)?;
        let verdicts = self.over(&cells, proof.name, &[program], |runners, cell| {
            parity(&mut runners[0], cell, Family::Streamed(cell.order()))
        })?;
        for (cell, verdict) in cells.iter().zip(verdicts) {
            proof.add(cell, verdict.values, verdict.fault.as_deref());
        }
        proof.seconds = start.elapsed().as_secs_f64();
        Ok(proof)
    }

    /// The inner error is why the oracle was not run.
    fn oracle(&self, options: &Options) -> Result<Result<Proof, NotRun>, HarnessError> {
        let start = Instant::now();
        let mut proof = Proof::new(
            "oracle",
            "the host Metal has the bits of Apple's compiled kernels, run under LLVM",
        );
        let cells = oracle_cells(self.set);
        if options.offline && !metallib::at_hand(self.shop.store()) {
            return Ok(Err(NotRun {
                what: "the oracle".into(),
                why: "the network is off and the released wheel is not in the cache".into(),
            }));
        }
        self.say("lowering Apple's kernels", 0, 0);
        let apple = oracle::program(self.shop, &cells)?;
        let mode = if self.set == Set::Quick { Mode::Checked } else { Mode::Apple };
        let shim = self.shim(mode)?;
        let verdicts = self.over(&cells, "oracle", &[shim, apple], |runners, (cell, family)| {
            let (shim, apple) = runners.split_at_mut(1);
            oracle::agree(&mut shim[0], &mut apple[0], cell, *family)
        })?;
        for ((cell, family), verdict) in cells.iter().zip(verdicts) {
            let name = format!("{}: {cell}", family.template());
            proof.add(name, verdict.values, verdict.fault.as_deref());
        }
        proof.seconds = start.elapsed().as_secs_f64();
        Ok(Ok(proof))
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

    /// Judges cells on all cores, each with processes of its own.
    fn over<T: Sync>(
        &self,
        cells: &[T],
        what: &str,
        programs: &[PathBuf],
        judge: impl Fn(&mut [Runner], &T) -> Result<Verdict, HarnessError> + Sync,
    ) -> Result<Vec<Verdict>, HarnessError> {
        let idle: Mutex<Vec<Vec<Runner>>> = Mutex::new(Vec::new());
        let done = AtomicUsize::new(0);
        in_parallel(cells, |cell| {
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
            self.say(what, done.fetch_add(1, Ordering::Relaxed) + 1, cells.len());
            Ok(verdict)
        })
    }
}
