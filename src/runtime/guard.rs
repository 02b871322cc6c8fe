//! The guard of the policy `streamed`: a cell serves only where it was seen to
//! be exact on this very machine.
//!
//! That a streamed kernel repeats `qmv` is an argument about its source, and it
//! holds in one compile mode. What compiled it on a machine nobody has seen is
//! found out here: each cell asked for is certified before the policy is set,
//! by a small product outside any serving dispatch.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::array::{element_of, kind_of};
use super::bridge::{self, CellKey};
use super::error::Result;
use super::policy::{Effect, Scope, UNSET, effect, number_of, set_raw};
use super::probe::{Draws, array_of, probe};
use super::quantize::Quantized;
use super::stream::{Device, Stream};
use super::{info, started};
use crate::exactness::{Cell, Machine, Policy, Stacking, Variant, Verdict, Verdicts, random};

/// What a scope's policy is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Takes the scope's setting back; the next wider one counts.
    Unset,
    /// [`Policy::Wide`].
    Wide,
    /// [`Policy::Narrow`].
    Narrow,
    /// [`Policy::Streamed`], for these cells once they are certified. Any
    /// other cell runs `narrow`.
    Streamed(Vec<Cell>),
    /// [`Policy::Streamed`] for every cell, certified or not. Turns the guard
    /// off for the whole process, until any other setting is made.
    Unguarded,
}

/// Where the guard is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// MLX asks for a cell's certificate at each dispatch.
    EachDispatch,
    /// This MLX does not ask. The scope is `streamed` only because every cell
    /// asked for holds; a cell not asked for would run streamed too.
    WholeScope,
    /// A cell asked for does not hold and this MLX does not ask: the whole
    /// scope is `narrow`.
    FellBackToNarrow,
    /// No guard: it was turned off, or the setting needs none.
    Off,
    /// Nothing reads the policy here, so nothing was certified.
    NoEffect,
}

/// What setting a policy came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the setting can change a dispatch.
    pub effect: Effect,
    /// How the guard stands.
    pub enforcement: Enforcement,
    /// The cells asked for, with their verdicts; empty where nothing was
    /// certified.
    pub verdicts: Vec<(Cell, Verdict)>,
}

/// Turns the guard on where MLX has one: from the start, so that a policy that
/// comes from the environment streams nothing that was not certified.
pub(super) fn turn_on() -> std::result::Result<(), cxx::Exception> {
    match bridge::has_guard() {
        true => bridge::set_guard(true),
        false => Ok(()),
    }
}

/// Sets the policy of a scope. It counts for whatever is evaluated from now on,
/// also for graphs built before. Verdicts are kept in `verdicts`.
///
/// # Errors
/// The stream does not exist, a cell could not be tried, or the verdicts
/// cannot be written. The policy is then as it was.
pub fn set_policy(scope: Scope, setting: &Setting, verdicts: &mut Verdicts) -> Result<Outcome> {
    started()?;
    let plain = |number, enforcement| {
        let effect = set_raw(scope, number)?;
        Ok(Outcome { effect, enforcement, verdicts: vec![] })
    };
    if *setting != Setting::Unguarded {
        turn_on()?;
    }
    let cells = match setting {
        Setting::Unset => return plain(UNSET, Enforcement::Off),
        Setting::Wide => return plain(number_of(Policy::Wide), Enforcement::Off),
        Setting::Narrow => return plain(number_of(Policy::Narrow), Enforcement::Off),
        Setting::Unguarded => {
            if bridge::has_guard() {
                bridge::set_guard(false)?;
            }
            return plain(number_of(Policy::Streamed), Enforcement::Off);
        }
        Setting::Streamed(cells) => cells,
    };
    if effect()? != Effect::Dispatches {
        return plain(number_of(Policy::Streamed), Enforcement::NoEffect);
    }
    // MLX keeps a stream for good, so none is made where every verdict is known.
    let mut trial = None;
    let decided = verdicts.certify(cells, |cell| {
        if trial.is_none() {
            trial = Some(Trial::new()?);
        }
        let trial = trial.as_ref().expect("it was made above");
        certify(cell, &trial.stream)
    })?;
    drop(trial);
    for (cell, verdict) in decided.iter().filter(|(_, v)| !v.holds()) {
        if first_time(*cell) {
            log::warn!("streamed kernel not certified, it runs narrow: {cell}: {verdict}");
        }
    }
    let (number, enforcement) = if bridge::has_guard() {
        for (cell, verdict) in &decided {
            bridge::certify_cell(key_of(*cell), verdict.holds())?;
        }
        (number_of(Policy::Streamed), Enforcement::EachDispatch)
    } else {
        without_dispatch_guard(&decided)
    };
    Ok(Outcome { effect: set_raw(scope, number)?, enforcement, verdicts: decided })
}

/// A stream that runs streamed kernels whatever the guard says, until it is
/// dropped. There is one at a time in a process.
struct Trial {
    stream: Stream,
    _alone: MutexGuard<'static, ()>,
}

impl Trial {
    fn new() -> Result<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        // Nothing is kept in the lock that a panic could have spoiled.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = Stream::new(Device::Gpu)?;
        set_raw(Scope::Stream(stream.id()), number_of(Policy::Streamed))?;
        if bridge::has_guard() {
            bridge::set_trial_stream(stream.key())?;
        }
        Ok(Self { stream, _alone: alone })
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // Neither fails for a stream that exists, and a stream nobody else
        // computes on may keep its policy.
        let _ = set_raw(Scope::Stream(self.stream.id()), UNSET);
        if bridge::has_guard() {
            let _ = bridge::clear_trial_stream();
        }
    }
}

/// What is left to do where MLX does not ask at each dispatch: all or none.
fn without_dispatch_guard(decided: &[(Cell, Verdict)]) -> (i32, Enforcement) {
    match decided.iter().all(|(_, v)| v.holds()) {
        true => (number_of(Policy::Streamed), Enforcement::WholeScope),
        false => (number_of(Policy::Narrow), Enforcement::FellBackToNarrow),
    }
}

/// Tries a cell on the stream, with several draws of weights and vectors.
fn certify(cell: Cell, stream: &Stream) -> Result<Verdict> {
    let shape = cell.trial();
    let draws = Draws::default();
    let mut verdict = Verdict::NotDispatched;
    for seed in draws.seed..draws.seed + draws.count as u64 {
        let weight = random(shape.stack * shape.n * shape.k, 7000 + seed);
        let lengths = [shape.stack, shape.n, shape.k];
        let lengths = if shape.stack == 1 { &lengths[1..] } else { &lengths[..] };
        let weight = array_of(cell.element, &weight, lengths)?;
        let weight = Quantized::new(&weight, cell.quantization(), stream)?;
        let one = Draws { seed, count: 1 };
        let report = probe(&weight, cell.element, shape.m, one, stream)?;
        verdict = Verdict::of(&report.comparison);
        if !verdict.holds() {
            break;
        }
    }
    Ok(verdict)
}

/// Whether MLX asks for a cell's certificate at each dispatch now; nothing where
/// the MLX that is linked cannot.
///
/// # Errors
/// The library is stale.
pub fn guarded() -> Result<Option<bool>> {
    started()?;
    match bridge::has_guard() {
        true => Ok(Some(bridge::guard_is_on()?)),
        false => Ok(None),
    }
}

/// The dispatches that asked for `streamed` and ran `narrow` for want of a
/// certificate, since the process began or the counts were reset; 0 where MLX
/// does not ask.
///
/// # Errors
/// The library is stale.
pub fn refused_dispatches() -> Result<u64> {
    started()?;
    Ok(bridge::refused_dispatches()?)
}

/// Whether nothing was said of the cell yet in this process.
fn first_time(cell: Cell) -> bool {
    static TOLD: Mutex<BTreeSet<Cell>> = Mutex::new(BTreeSet::new());
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(cell)
}

/// Says once of each cell that it was asked for and had no certificate. Called
/// after evaluations, never within a dispatch.
pub(super) fn log_refused() {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let now = bridge::refused_dispatches().unwrap_or(0);
    if SEEN.swap(now, Ordering::Relaxed) == now {
        return;
    }
    let cells = bridge::take_refused_cells().unwrap_or_default();
    for cell in cells.into_iter().filter_map(cell_of).filter(|c| first_time(*c)) {
        log::warn!("streamed kernel asked for and not certified, it ran narrow: {cell}");
    }
}

/// This machine, as this MLX sees it.
///
/// # Errors
/// MLX cannot tell.
pub fn machine() -> Result<Machine> {
    let info = info()?;
    Ok(Machine { device: info.device, os_build: info.os_build, library: info.library_key })
}

/// The verdicts for this machine and library, kept in the user's cache folder.
///
/// # Errors
/// There is no such folder, the file in it cannot be read, or MLX cannot tell
/// what machine this is.
pub fn verdicts() -> Result<Verdicts> {
    let cache = mlx_overlay_engine::cache::Cache::of_user()?;
    Ok(Verdicts::kept_in(&cache.root().join("mlx").join("verdicts"), machine()?)?)
}

fn key_of(cell: Cell) -> CellKey {
    let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    CellKey {
        element: kind_of(cell.element),
        bits: number(cell.bits),
        group_size: number(cell.group_size),
        vectors: number(cell.vectors),
        fast: cell.variant == Variant::Fast,
        batched: cell.stacking == Stacking::Batched,
    }
}

fn cell_of(key: CellKey) -> Option<Cell> {
    let number = |n: i32| usize::try_from(n).ok();
    Some(Cell {
        element: element_of(key.element)?,
        bits: number(key.bits)?,
        group_size: number(key.group_size)?,
        vectors: number(key.vectors)?,
        variant: if key.fast { Variant::Fast } else { Variant::Generic },
        stacking: if key.batched { Stacking::Batched } else { Stacking::Single },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exactness::{ElementType, Mode, Quantization};

    fn cells() -> Vec<Cell> {
        let quantization = Quantization { mode: Mode::Affine, group_size: 64, bits: 4 };
        Cell::all_of(ElementType::Float16, quantization)
    }

    #[test]
    fn a_cell_crosses_the_bridge_and_comes_back() {
        for cell in cells() {
            assert_eq!(cell_of(key_of(cell)), Some(cell));
        }
    }

    #[test]
    fn a_cell_is_told_of_once() {
        for cell in cells() {
            assert!(first_time(cell), "{cell}");
            assert!(!first_time(cell), "{cell}");
        }
    }

    #[test]
    fn one_cell_that_fails_makes_an_unguarded_scope_narrow() {
        let holds = |c: Cell| (c, Verdict::Holds);
        let mut decided: Vec<_> = cells().into_iter().map(holds).collect();
        assert_eq!(without_dispatch_guard(&decided).1, Enforcement::WholeScope);
        decided[3].1 = Verdict::Differs { differing: 1, elements: 9 };
        let fell = (number_of(Policy::Narrow), Enforcement::FellBackToNarrow);
        assert_eq!(without_dispatch_guard(&decided), fell);
    }
}
