//! Kernels as a shared library with the C ABI of `cpp/kernel_run.h`: for a
//! fake Metal device that runs what MLX dispatches.

use std::path::PathBuf;

use crate::HarnessError;
use crate::air::{self, Lowered};
use crate::kernels::Kernel;
use crate::parallel::in_parallel;
use crate::units::units;
use crate::workshop::{LinkKind, Mode, Workshop};

/// Where a library's kernels come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The laid tree's own text, through the host shim.
    Text,
    /// Apple's compiled kernels of the released wheel. The streamed twins are
    /// not in it.
    Apple,
}

/// Builds (or finds) a shared library that has at least these kernels, and
/// gives its path. `dlopen` it and call `overlay_kernel_run`.
///
/// # Errors
/// A host name is of no family the harness knows, or a tool fails.
pub fn library(
    shop: &Workshop,
    source: Source,
    host_names: &[String],
) -> Result<PathBuf, HarnessError> {
    let (mut objects, mode) = match source {
        Source::Apple => {
            let Lowered { objects, mode } = air::lowered(shop, host_names)?;
            (objects, mode)
        }
        Source::Text => {
            let kernels = host_names.iter().map(|name| {
                Kernel::parse(name).ok_or_else(|| HarnessError::UnknownKernel(name.clone()))
            });
            let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
            let units = units(kernels, Mode::Apple);
            (in_parallel(&units, |unit| shop.compile(unit))?, Mode::Apple)
        }
    };
    objects.extend(shop.runtime(mode, &[])?);
    shop.link(&objects, mode, LinkKind::Library)
}
