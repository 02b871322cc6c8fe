//! What a run decided, as plain data.

use std::time::Instant;

use serde::Serialize;

use crate::HarnessError;
use crate::sets::Set;

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
    /// Whether every proof holds and every mutant was caught.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.proofs.iter().all(Proof::holds) && self.mutants.iter().all(Mutant::caught)
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
    /// The cells that fail, each with its first difference, and what kept the
    /// proof from going on.
    pub faults: Vec<String>,
    /// Wall time, in seconds.
    pub seconds: f64,
}

impl Proof {
    pub(crate) fn new(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, cells: 0, equal: 0, values: 0, faults: Vec::new(), seconds: 0.0 }
    }

    /// Runs a proof. An error ends it and fails it; what it decided before, and
    /// every other proof, is kept.
    pub(crate) fn run(
        name: &'static str,
        meaning: &'static str,
        decide: impl FnOnce(&mut Self) -> Result<(), HarnessError>,
    ) -> Self {
        let start = Instant::now();
        let mut proof = Self::new(name, meaning);
        if let Err(error) = decide(&mut proof) {
            proof.faults.push(error.to_string());
        }
        proof.seconds = start.elapsed().as_secs_f64();
        proof
    }

    /// A proof over no cells proves nothing.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.cells > 0 && self.cells == self.equal && self.faults.is_empty()
    }

    pub(crate) fn add(&mut self, cell: impl std::fmt::Display, values: usize, fault: Option<&str>) {
        self.cells += 1;
        self.values += values;
        match fault {
            None => self.equal += 1,
            Some(why) => self.faults.push(format!("{cell}: {why}")),
        }
    }
}

/// One mutation of the laid text or of its compile mode.
#[derive(Clone, Debug, Serialize)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
    pub meaning: &'static str,
    /// The proofs that fail on it. A survivor has none.
    pub caught_by: Vec<&'static str>,
    /// What kept it from being judged; nothing where it was.
    pub fault: Option<String>,
}

impl Mutant {
    /// Whether it was judged and a proof fails on it.
    #[must_use]
    pub fn caught(&self) -> bool {
        self.fault.is_none() && !self.caught_by.is_empty()
    }
}

/// Device loads of one shape.
#[derive(Clone, Debug, Serialize)]
pub struct Traffic {
    /// The shape.
    pub cell: String,
    /// Values computed, M × N.
    pub outputs: u64,
    /// Vectors a tile of the streamed kernel.
    pub tile: u32,
    /// The streamed kernel's.
    pub streamed: Loads,
    /// `qmv`'s, one call a vector.
    pub narrow: Loads,
    /// What is not as the order and the tile call for; nothing where all is.
    pub fault: Option<String>,
}

/// Loads from device memory, by buffer.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, Serialize)]
pub struct Loads {
    /// Packed weights.
    pub w: Load,
    /// Scales.
    pub scales: Load,
    /// Biases.
    pub biases: Load,
    /// Activations.
    pub x: Load,
}

/// Loads of one buffer.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, Serialize)]
pub struct Load {
    /// Loads as the source writes them; a compiler may merge some.
    pub loads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes with each address counted once a simdgroup: what is left when a
    /// compiler merges all it can.
    pub distinct: u64,
}

/// Something a run left out.
#[derive(Clone, Debug, Serialize)]
pub struct NotRun {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_fails_a_proof_and_keeps_what_it_decided() {
        let proof = Proof::run("proof", "meaning", |proof| {
            proof.add("a", 3, None);
            Err(HarnessError::UnknownKernel("k".into()))
        });
        assert!(!proof.holds());
        assert_eq!((proof.cells, proof.equal, proof.values, proof.faults.len()), (1, 1, 3, 1));
    }

    #[test]
    fn every_failing_cell_is_listed_and_no_cell_proves_nothing() {
        let all = Proof::run("proof", "meaning", |proof| {
            (0..25).for_each(|cell| proof.add(cell, 1, Some("differs")));
            Ok(())
        });
        assert_eq!((all.faults.len(), all.holds()), (25, false));
        assert!(!Proof::run("proof", "meaning", |_| Ok(())).holds());
    }
}
