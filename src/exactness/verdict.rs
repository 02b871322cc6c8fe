//! Verdicts on cells, and where they are kept.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::{Cell, Comparison, Family, Kernels, compare};

/// The verdict on a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Block and chain were equal, and the block ran the streamed kernel.
    Holds,
    /// So many elements differed.
    Differs {
        /// How many.
        differing: usize,
        /// Of how many.
        elements: usize,
    },
    /// The block did not run the streamed kernel, so nothing was learned.
    NotDispatched,
}

impl Verdict {
    /// The verdict that a comparison allows.
    #[must_use]
    pub fn of(comparison: &Comparison) -> Self {
        let block = comparison.block.map(|d| d.families());
        let chain = comparison.chain.map(|d| d.families());
        if block != Some(vec![Family::Streamed]) || chain != Some(vec![Family::Single]) {
            return Verdict::NotDispatched;
        }
        match comparison.differing {
            0 => Verdict::Holds,
            differing => Verdict::Differs { differing, elements: comparison.elements },
        }
    }

    /// Whether the cell may serve.
    #[must_use]
    pub fn holds(&self) -> bool {
        *self == Verdict::Holds
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Holds => f.write_str("holds"),
            Verdict::Differs { differing, elements } => {
                write!(f, "{differing} of {elements} elements differ")
            }
            Verdict::NotDispatched => f.write_str("the streamed kernel was not dispatched"),
        }
    }
}

/// Certifies a cell: compares a block as wide as its tile, on kernels that run it.
///
/// # Errors
/// What the kernels say.
pub fn judge<K: Kernels>(kernels: &mut K, cell: Cell) -> std::result::Result<Verdict, K::Error> {
    Ok(Verdict::of(&compare(kernels, cell.trial().m)?))
}

/// The verdicts cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} the verdicts at `{}`", path.display())]
pub struct VerdictsError {
    /// What was tried: a verb.
    pub doing: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: std::io::Error,
}

/// The verdicts on cells, each for one device, OS build and library.
#[derive(Clone, Debug)]
pub struct Verdicts {
    file: Option<PathBuf>,
    kept: Kept,
}

/// What a verdict holds for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The device's name and architecture.
    pub device: String,
    /// The build of the operating system, which holds the GPU's compiler.
    pub os_build: String,
    /// The key of the MLX library.
    pub library: String,
}

/// A file of verdicts on the kernels of one library. A cache folder may be that
/// of several machines, or outlive an OS build.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    schema: u32,
    machines: Vec<Kept>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    machine: Machine,
    #[serde(with = "pairs")]
    cells: BTreeMap<Cell, Verdict>,
}

/// A map whose keys are no text, as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Cell, Verdict};

    pub fn serialize<S: Serializer>(
        map: &BTreeMap<Cell, Verdict>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(map)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<BTreeMap<Cell, Verdict>, D::Error> {
        Ok(Vec::deserialize(d)?.into_iter().collect())
    }
}

const SCHEMA: u32 = 2;

impl Verdicts {
    /// Verdicts for this machine that are gone when the process ends.
    #[must_use]
    pub fn on(machine: Machine) -> Self {
        Self { file: None, kept: Kept { machine, cells: BTreeMap::new() } }
    }

    /// The verdicts for this machine that are kept in a file in `folder`, which
    /// need not be there yet.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn kept_in(folder: &Path, machine: Machine) -> Result<Self, VerdictsError> {
        let file = folder.join(format!("{}.json", machine.library));
        let mut machines = Self::stored(&file)?;
        // Another machine's verdicts are none here; the cells are tried again.
        let ours = machines.iter().position(|kept| kept.machine == machine);
        let kept = ours.map(|at| machines.swap_remove(at));
        let none = || Kept { machine, cells: BTreeMap::new() };
        Ok(Self { file: Some(file), kept: kept.unwrap_or_else(none) })
    }

    /// What the file holds; a form that is not ours holds nothing.
    fn stored(file: &Path) -> Result<Vec<Kept>, VerdictsError> {
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            Err(source) => {
                return Err(VerdictsError { doing: "read", path: file.to_path_buf(), source });
            }
        };
        let stored = serde_json::from_slice::<Stored>(&bytes).ok();
        Ok(stored.filter(|s| s.schema == SCHEMA).map_or_else(Vec::new, |s| s.machines))
    }

    /// The verdict on a cell, if it was tried.
    #[must_use]
    pub fn on_cell(&self, cell: Cell) -> Option<&Verdict> {
        self.kept.cells.get(&cell)
    }

    /// The verdicts on these cells, trying those that were never tried.
    ///
    /// # Errors
    /// What trying says, or the verdicts cannot be kept.
    pub fn certify<E: From<VerdictsError>>(
        &mut self,
        cells: &[Cell],
        mut try_cell: impl FnMut(Cell) -> Result<Verdict, E>,
    ) -> Result<Vec<(Cell, Verdict)>, E> {
        let mut decided = Vec::new();
        let before = self.kept.cells.len();
        for &cell in cells {
            let known = self.kept.cells.get(&cell).cloned();
            let verdict = known.map_or_else(|| try_cell(cell), Ok)?;
            // A kernel that was not reached says nothing that would hold next
            // time.
            if verdict != Verdict::NotDispatched {
                self.kept.cells.insert(cell, verdict.clone());
            }
            decided.push((cell, verdict));
        }
        if self.kept.cells.len() != before {
            self.save()?;
        }
        Ok(decided)
    }

    fn save(&self) -> Result<(), VerdictsError> {
        let Some(file) = &self.file else { return Ok(()) };
        let failed = |source| VerdictsError { doing: "write", path: file.clone(), source };
        let mut machines = Self::stored(file)?;
        machines.retain(|kept| kept.machine != self.kept.machine);
        machines.push(self.kept.clone());
        let stored = Stored { schema: SCHEMA, machines };
        let text = serde_json::to_vec_pretty(&stored).expect("verdicts hold nothing JSON cannot");
        // Threads of one process write too.
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let nth = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let aside = file.with_extension(format!("new-{}-{nth}", std::process::id()));
        let folder = file.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder).map_err(failed)?;
        fs::write(&aside, text).map_err(failed)?;
        fs::rename(&aside, file).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exactness::fake::Fake;
    use crate::exactness::{ElementType, Mode, Quantization};

    fn cells() -> Vec<Cell> {
        let quantization = Quantization { mode: Mode::Affine, group_size: 64, bits: 4 };
        Cell::all_of(ElementType::Float16, quantization)
    }

    fn machine(library: &str) -> Machine {
        Machine { device: "d".into(), os_build: "o".into(), library: library.into() }
    }

    fn fake(kernels: Fake) -> impl FnMut(Cell) -> Result<Verdict, VerdictsError> {
        let mut kernels = kernels;
        move |cell| Ok(judge(&mut kernels, cell).unwrap())
    }

    #[test]
    fn a_kernel_is_certified_for_what_it_returns_and_what_ran() {
        let judge = |k: Fake| judge(&mut { k }, cells()[0]).unwrap();
        assert_eq!(judge(Fake::of(Family::Streamed)), Verdict::Holds);
        assert_eq!(judge(Fake::of(Family::Narrow)), Verdict::NotDispatched);
        let lies = Fake { claims: Family::Streamed, ..Fake::of(Family::Wide) };
        assert!(matches!(judge(lies), Verdict::Differs { differing: 1.., .. }));
        let blind = Fake { counts: false, ..Fake::of(Family::Streamed) };
        assert_eq!(judge(blind), Verdict::NotDispatched);
    }

    #[test]
    fn verdicts_are_kept_for_one_machine_and_library() {
        let dir = tempfile::tempdir().unwrap();
        let open = |machine| Verdicts::kept_in(dir.path(), machine).unwrap();
        let mut first = open(machine("a"));
        let decided = first.certify(&cells(), fake(Fake::of(Family::Streamed))).unwrap();
        assert!(decided.iter().all(|(_, v)| v.holds()));

        let mut again = open(machine("a"));
        let never = |_: Cell| -> Result<Verdict, VerdictsError> { panic!("it was tried before") };
        assert_eq!(again.certify(&cells(), never).unwrap(), decided);
        assert_eq!(open(machine("b")).on_cell(cells()[0]), None);
        let other = Machine { device: "e".into(), ..machine("a") };
        assert_eq!(open(other).on_cell(cells()[0]), None);
        let newer = Machine { os_build: "p".into(), ..machine("a") };
        let mut after = open(newer.clone());
        assert_eq!(after.on_cell(cells()[0]), None);
        after.certify(&cells()[..1], fake(Fake::of(Family::Streamed))).unwrap();
        for known in [machine("a"), newer] {
            assert_eq!(open(known).on_cell(cells()[0]), Some(&Verdict::Holds));
        }
        fs::write(dir.path().join("a.json"), "{").unwrap();
        assert_eq!(open(machine("a")).on_cell(cells()[0]), None);
    }

    #[test]
    fn a_failure_is_kept_and_a_miss_is_not() {
        let mut verdicts = Verdicts::on(machine("a"));
        let lies = Fake { claims: Family::Streamed, ..Fake::of(Family::Wide) };
        verdicts.certify(&cells()[..1], fake(lies)).unwrap();
        assert!(matches!(verdicts.on_cell(cells()[0]), Some(Verdict::Differs { .. })));
        verdicts.certify(&cells()[1..2], fake(Fake::of(Family::Narrow))).unwrap();
        assert_eq!(verdicts.on_cell(cells()[1]), None);
    }
}
