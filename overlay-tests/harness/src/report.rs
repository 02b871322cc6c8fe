//! What a run decided, as plain data.

use serde::Serialize;

use crate::sets::Set;

/// How many failing cells a proof lists; all are counted.
const LISTED: usize = 10;

/// Everything a run decided.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The tree judged.
    pub tree: String,
    /// How much was run.
    pub set: Set,
    /// The clang that compiled the kernels, in its own words.
    pub compiler: String,
    /// Where all of it ran: on the host, never on a GPU.
    pub ran_on: &'static str,
    /// One entry a proof, in the order run.
    pub proofs: Vec<Proof>,
    /// One entry a mutant.
    pub mutants: Vec<Mutant>,
    /// Device loads of each kernel, counted in its source.
    pub traffic: Vec<Traffic>,
    /// What was not run, and why.
    pub not_run: Vec<NotRun>,
    /// Wall time, in seconds.
    pub seconds: f64,
}

impl Report {
    /// Whether every proof holds, every mutant was caught, and the streamed
    /// kernels read each weight once a tile.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.proofs.iter().all(Proof::holds)
            && self.mutants.iter().all(|mutant| !mutant.caught_by.is_empty())
            && self.traffic.iter().all(|traffic| traffic.holds)
    }
}

/// One proof.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// Its name.
    pub name: &'static str,
    /// What it means that it holds, in one sentence.
    pub meaning: &'static str,
    /// Cells run.
    pub cells: usize,
    /// Cells in which all values are equal.
    pub equal: usize,
    /// Values compared.
    pub values: usize,
    /// The first cells that fail, each with its first difference.
    pub faults: Vec<String>,
    /// Wall time, in seconds.
    pub seconds: f64,
}

impl Proof {
    pub(crate) fn new(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, cells: 0, equal: 0, values: 0, faults: Vec::new(), seconds: 0.0 }
    }

    /// A proof over no cells proves nothing.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.cells > 0 && self.cells == self.equal
    }

    pub(crate) fn add(&mut self, cell: impl std::fmt::Display, values: usize, fault: Option<&str>) {
        self.cells += 1;
        self.values += values;
        match fault {
            None => self.equal += 1,
            Some(why) if self.faults.len() < LISTED => self.faults.push(format!("{cell}: {why}")),
            Some(_) => {}
        }
    }
}

/// One mutation of the laid text.
#[derive(Clone, Debug, Serialize)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
    pub meaning: &'static str,
    /// The proofs that fail on it. A survivor has none.
    pub caught_by: Vec<&'static str>,
}

/// Device loads of one shape, M vectors.
#[derive(Clone, Debug, Serialize)]
pub struct Traffic {
    /// The shape.
    pub cell: String,
    /// Vectors.
    pub m: u32,
    /// Values of an output.
    pub n: u32,
    /// Tiles the streamed kernel makes of them.
    pub tiles: u32,
    /// Bytes of the packed weights.
    pub weight_bytes: u64,
    /// The streamed kernel's.
    pub streamed: Loads,
    /// `qmv`'s, one call a vector.
    pub narrow: Loads,
    /// Whether the streamed kernel reads each weight once a tile.
    pub holds: bool,
}

/// Loads from device memory as the source writes them; a compiler may merge
/// some. Each is a count and its bytes.
#[derive(Clone, Copy, Debug, serde::Deserialize, Serialize)]
pub struct Loads {
    /// Packed weights.
    pub w: (u64, u64),
    /// Scales.
    pub scales: (u64, u64),
    /// Biases.
    pub biases: (u64, u64),
    /// Activations.
    pub x: (u64, u64),
}

impl Loads {
    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.w.1 + self.scales.1 + self.biases.1 + self.x.1
    }
}

/// Something a run left out.
#[derive(Clone, Debug, Serialize)]
pub struct NotRun {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}
