//! The kernels that a quantized product of a few vectors can run, and the count
//! of what it ran.

use std::fmt;

/// A family of kernels that a dispatch chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// `qmv_quad`: K is 64 or 128, any number of vectors.
    Quad,
    /// `qmv` or `qmv_fast` with one vector.
    Single,
    /// `qmv` or `qmv_fast` with several vectors.
    Narrow,
    /// `qmv_wide`.
    Wide,
    /// `qmv_streamed` or `qmv_fast_streamed`.
    Streamed,
}

impl Family {
    /// Every family, in the order of MLX's numbers.
    pub const ALL: [Family; 5] =
        [Family::Quad, Family::Single, Family::Narrow, Family::Wide, Family::Streamed];

    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Quad => "quad",
            Family::Single => "single",
            Family::Narrow => "narrow",
            Family::Wide => "wide",
            Family::Streamed => "streamed",
        }
    }
}

/// How often each family was dispatched, over all threads of the process:
/// first in the affine mode, then in the fp modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dispatches([[u64; 5]; 2]);

impl Dispatches {
    /// Counts by mode (affine, fp) and family, in the order of [`Family::ALL`].
    #[must_use]
    pub fn counted(counts: [[u64; 5]; 2]) -> Self {
        Self(counts)
    }

    /// Counts of these families in the affine mode, a dispatch each.
    #[must_use]
    pub fn of(families: &[Family]) -> Self {
        let mut counts = Self::default();
        families.iter().for_each(|f| counts.0[0][*f as usize] += 1);
        counts
    }

    /// What was dispatched since `earlier` was taken.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    /// These counts and those.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        self.with(more, u64::saturating_add)
    }

    fn with(&self, other: &Self, op: fn(u64, u64) -> u64) -> Self {
        let mut result = *self;
        for (row, others) in result.0.iter_mut().zip(&other.0) {
            row.iter_mut().zip(others).for_each(|(count, n)| *count = op(*count, *n));
        }
        result
    }

    /// The families that were dispatched, in either mode.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let any = |f: &Family| self.0.iter().any(|row| row[*f as usize] > 0);
        Family::ALL.into_iter().filter(any).collect()
    }

    /// The number of dispatches of a family, in either mode.
    #[must_use]
    pub fn count(&self, family: Family) -> u64 {
        self.0.iter().map(|row| row[family as usize]).sum()
    }
}

impl fmt::Display for Dispatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.families();
        let named = counted.iter().map(|&d| format!("{} {}", d.as_str(), self.count(d)));
        match counted.len() {
            0 => f.write_str("none of the counted kernels"),
            _ => f.write_str(&named.collect::<Vec<_>>().join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_by_family() {
        let before = Dispatches::of(&[Family::Single]);
        let after = Dispatches::of(&[Family::Single, Family::Single, Family::Wide]);
        let between = after.since(&before);
        assert_eq!(between.families(), [Family::Single, Family::Wide]);
        assert_eq!(between.to_string(), "single 1, wide 1");
        assert_eq!(before.since(&after).to_string(), "none of the counted kernels");
    }
}
