//! Setting and asking for the policy, and the count of what it chose.

use std::fmt;

use super::bridge;
use super::error::Result;
use super::stream::StreamId;
use super::{has_overlay, started};
use crate::exactness::{Dispatches, Policy};

/// The number by which a setting that was taken back crosses the bridge.
pub(super) const UNSET: i32 = -1;

pub(super) fn number_of(policy: Policy) -> i32 {
    match policy {
        Policy::Wide => 0,
        Policy::Narrow => 1,
        Policy::Streamed => 2,
    }
}

fn policy_of(number: i32) -> Option<Policy> {
    let all = [Policy::Wide, Policy::Narrow, Policy::Streamed];
    all.into_iter().find(|p| number_of(*p) == number)
}

/// What a policy is set for. The nearest setting wins: stream, then process,
/// then environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every stream that has no setting of its own.
    Process,
    /// One stream.
    Stream(StreamId),
}

/// Whether a policy can change what is dispatched here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is read at each dispatch.
    Dispatches,
    /// There is no Metal backend, or the stream is not on the GPU: the setting
    /// is kept and nothing reads it.
    None,
    /// The MLX that is linked was built from a tree without the overlay.
    NoOverlay,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Effect::Dispatches => "the policy chooses the kernel",
            Effect::None => "the policy has no effect here: it chooses between Metal kernels",
            Effect::NoOverlay => "there is no policy: this MLX was built without the overlay",
        })
    }
}

/// Whether a policy has an effect in this process at all.
///
/// # Errors
/// The library is stale.
pub fn effect() -> Result<Effect> {
    started()?;
    Ok(match (has_overlay(), bridge::policy_has_effect()?) {
        (false, _) => Effect::NoOverlay,
        (true, true) => Effect::Dispatches,
        (true, false) => Effect::None,
    })
}

/// Sets the policy as the number that MLX takes; nothing is certified.
pub(super) fn set_raw(scope: Scope, number: i32) -> Result<Effect> {
    started()?;
    if !has_overlay() {
        return Ok(Effect::NoOverlay);
    }
    let reads = match scope {
        Scope::Process => bridge::set_process_policy(number)?,
        Scope::Stream(StreamId(key)) => bridge::set_stream_policy(key, number)?,
    };
    Ok(if reads { Effect::Dispatches } else { Effect::None })
}

/// What was set for the scope, and nothing else.
///
/// # Errors
/// This MLX has no overlay, or the library is stale.
pub fn policy(scope: Scope) -> Result<Option<Policy>> {
    started()?;
    Ok(policy_of(match scope {
        Scope::Process => bridge::process_policy()?,
        Scope::Stream(StreamId(key)) => bridge::stream_policy(key)?,
    }))
}

/// The policy that a dispatch on the stream follows now; nothing where MLX has
/// one that this crate does not know.
///
/// # Errors
/// This MLX has no overlay, the library is stale, or it comes down to the
/// environment and a variable there has no meaning.
pub fn effective_policy(stream: StreamId) -> Result<Option<Policy>> {
    started()?;
    Ok(policy_of(bridge::effective_policy(stream.0)?))
}

/// How often each family was dispatched since the process began, or since the
/// last reset; nothing where no dispatch is counted, which is wherever a policy
/// has no effect.
///
/// # Errors
/// The library is stale.
pub fn dispatches() -> Result<Option<Dispatches>> {
    if effect()? != Effect::Dispatches {
        return Ok(None);
    }
    let mut counts = [[0; 5]; 2];
    for (mode, row) in counts.iter_mut().enumerate() {
        for (count, family) in row.iter_mut().zip(0..) {
            *count = bridge::dispatches(mode == 1, family)?;
        }
    }
    Ok(Some(Dispatches::counted(counts)))
}

/// Sets every count to zero, for all threads.
///
/// # Errors
/// This MLX has no overlay, or the library is stale.
pub fn reset_dispatches() -> Result<()> {
    started()?;
    Ok(bridge::reset_dispatches()?)
}
