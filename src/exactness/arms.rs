//! Comparing the time of policies, and when there is nothing to compare.

use std::fmt;

use super::{Dispatches, Family, Policy};

/// What a policy dispatched for a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The policy.
    pub policy: Policy,
    /// What it dispatched; nothing where nobody counts.
    pub dispatched: Option<Dispatches>,
}

/// One policy's run over a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// What ran.
    pub ran: Ran,
    /// The time of one product, in seconds.
    pub seconds: f64,
}

/// Why there is no recovered fraction.
#[derive(Clone, Debug, PartialEq)]
pub enum NoFraction {
    /// Nobody counts dispatches here: no policy has an effect.
    NoEffect,
    /// Two policies ran kernels of the same families, so they are no
    /// comparison.
    SameKernels {
        /// The two policies.
        policies: [Policy; 2],
        /// What both ran.
        families: Vec<Family>,
    },
    /// `wide` was not faster than `narrow`: there is nothing to recover.
    NothingToRecover {
        /// Seconds of `narrow`.
        narrow: f64,
        /// Seconds of `wide`.
        wide: f64,
    },
}

impl fmt::Display for NoFraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoFraction::NoEffect => f.write_str(
                "no comparison: nothing reads the policy here, so all of them run the same kernels",
            ),
            NoFraction::SameKernels { policies: [a, b], families } => {
                let names: Vec<_> = families.iter().map(|x| x.as_str()).collect();
                write!(f, "no comparison: {a} and {b} ran the same kernels ({})", names.join(", "))
            }
            NoFraction::NothingToRecover { narrow, wide } => {
                let (narrow, wide) = (narrow * 1e6, wide * 1e6);
                write!(
                    f,
                    "no fraction: wide ({wide:.1} µs) is not faster than narrow ({narrow:.1} µs)"
                )
            }
        }
    }
}

/// Whether the times of two policies compare anything.
///
/// # Errors
/// They ran kernels of the same families, or nobody knows what they ran.
pub fn comparable(a: &Ran, b: &Ran) -> Result<(), NoFraction> {
    let (Some(of_a), Some(of_b)) = (&a.dispatched, &b.dispatched) else {
        return Err(NoFraction::NoEffect);
    };
    if of_a.families() == of_b.families() {
        let policies = [a.policy, b.policy];
        return Err(NoFraction::SameKernels { policies, families: of_a.families() });
    }
    Ok(())
}

/// How much of what `wide` gains over `narrow` the policy `streamed` keeps:
/// (t_narrow − t_streamed) / (t_narrow − t_wide).
///
/// # Errors
/// Why that number would mean nothing.
pub fn recovered_fraction(narrow: &Arm, wide: &Arm, streamed: &Arm) -> Result<f64, NoFraction> {
    for (a, b) in [(narrow, wide), (narrow, streamed), (wide, streamed)] {
        comparable(&a.ran, &b.ran)?;
    }
    let gain = narrow.seconds - wide.seconds;
    if gain > 0.0 {
        return Ok((narrow.seconds - streamed.seconds) / gain);
    }
    Err(NoFraction::NothingToRecover { narrow: narrow.seconds, wide: wide.seconds })
}

/// The number of vectors from which MLX multiplies matrices instead, for a
/// weight of `n` × `k` on this architecture (`applegpu_g15d`); nothing where
/// the name is no such. The table is `get_qmv_batch_limit`'s in
/// mlx/backend/metal/quantized.cpp.
#[must_use]
pub fn batch_limit(architecture: &str, k: usize, n: usize) -> Option<usize> {
    let name = architecture.strip_prefix("applegpu_g")?;
    let size = name.chars().last()?;
    let generation: u32 = name.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    let limits = match (generation, size) {
        (17.., s) if s != 'd' => [33, 25, 13],
        (15.., s) if s != 'd' => [13, 15, 13],
        (_, 'd') => [32, 18, 12],
        (13.., _) => [14, 10, 6],
        _ => [18, 12, 10],
    };
    Some(limits[[2048, 4096].iter().filter(|&&most| k > most || n > most).count()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(policy: Policy, seconds: f64, family: Family) -> Arm {
        Arm { ran: Ran { policy, dispatched: Some(Dispatches::of(&[family])) }, seconds }
    }

    #[test]
    fn the_fraction_is_of_the_gain() {
        let narrow = arm(Policy::Narrow, 10.0, Family::Narrow);
        let wide = arm(Policy::Wide, 6.0, Family::Wide);
        let streamed = |t| arm(Policy::Streamed, t, Family::Streamed);
        assert_eq!(recovered_fraction(&narrow, &wide, &streamed(7.0)), Ok(0.75));
        assert_eq!(recovered_fraction(&narrow, &wide, &streamed(12.0)), Ok(-0.5));
        let slow = arm(Policy::Wide, 10.0, Family::Wide);
        let none = recovered_fraction(&narrow, &slow, &streamed(7.0));
        assert!(matches!(none, Err(NoFraction::NothingToRecover { .. })));
    }

    #[test]
    fn arms_that_ran_one_kernel_are_no_comparison() {
        // An affine weight below generation 15: `wide` is dispatched narrow.
        let narrow = arm(Policy::Narrow, 10.0, Family::Narrow);
        let wide = arm(Policy::Wide, 9.0, Family::Narrow);
        let streamed = arm(Policy::Streamed, 7.0, Family::Streamed);
        let none = recovered_fraction(&narrow, &wide, &streamed).unwrap_err();
        assert_eq!(
            none.to_string(),
            "no comparison: narrow and wide ran the same kernels (narrow)"
        );
        assert_eq!(comparable(&narrow.ran, &streamed.ran), Ok(()));
        let cpu = |policy| Ran { policy, dispatched: None };
        let none = comparable(&cpu(Policy::Narrow), &cpu(Policy::Wide)).unwrap_err();
        assert_eq!(none, NoFraction::NoEffect);
    }

    #[test]
    fn limits_are_those_of_the_table() {
        for (name, limits) in [
            ("applegpu_g17s", [33, 25, 13]),
            ("applegpu_g16g", [13, 15, 13]),
            ("applegpu_g15d", [32, 18, 12]),
            ("applegpu_g14s", [14, 10, 6]),
            ("applegpu_g12g", [18, 12, 10]),
        ] {
            let of = |n| batch_limit(name, n, 1024);
            assert_eq!([2048, 4096, 4097].map(of), limits.map(Some), "{name}");
        }
        assert_eq!(batch_limit("x86_64", 1, 1), None);
    }
}
