//! Measures the whole table: every architecture's routes, a few architectures'
//! computed products.

use std::path::Path;
use std::sync::Mutex;

use crate::FakeDeviceError;
use crate::architecture::Architecture;
use crate::build::{Build, Kernels};
use crate::device::Device;
use crate::executed::{cells, promise};
use crate::product::{Policy, Product};
use crate::routing::{self, Measured};
use crate::table::{Computed, Table};

/// What was measured, and where it is not what the rule says.
#[derive(Debug, Default)]
pub struct Whole {
    /// The table.
    pub table: Table,
    /// In plain words.
    pub wrong: Vec<String>,
}

/// Measures. `library` holds the kernels of [`cells`].
///
/// # Errors
/// A device ended, MLX threw, or a kernel could not be run.
pub fn whole(build: &Build, library: &Path) -> Result<Whole, FakeDeviceError> {
    let architectures: Vec<Architecture> = Architecture::all().collect();
    let swept = routing::products();
    let rows: Vec<u32> = (1..=routing::MOST_ROWS).collect();
    let routed = in_parallel(&architectures, |&architecture| -> Result<Measured, _> {
        let mut device = Device::start(build, Kernels::ByName, architecture, &[])?;
        routing::measure(&mut device, architecture, &swept, &rows)
    });
    let arms: Vec<_> = architectures
        .iter()
        .flat_map(|&architecture| Policy::ALL.map(|policy| (architecture, policy)))
        .collect();
    let computed = in_parallel(&arms, |&(architecture, policy)| {
        compute(build, library, architecture, policy, &cells(architecture))
    });
    let mut whole = Whole::default();
    for measured in routed {
        let mut measured = measured?;
        whole.table.routed.append(&mut measured.routed);
        whole.wrong.append(&mut measured.wrong);
    }
    for computed in computed {
        whole.table.computed.append(&mut computed?);
    }
    Ok(whole)
}

/// Computes products, each with its rows, on a device under a policy.
///
/// # Errors
/// As [`whole`].
pub fn compute(
    build: &Build,
    library: &Path,
    architecture: Architecture,
    policy: Policy,
    cells: &[(Product, u32)],
) -> Result<Vec<Computed>, FakeDeviceError> {
    let mut device = Device::start(build, Kernels::ByName, architecture, &[])?;
    device.use_library(library)?;
    device.set_policy(None, Some(policy))?;
    let mut computed = Vec::new();
    for &(product, m) in cells {
        let promise = promise(&mut device, &product, m, u64::from(m))?;
        computed.push(Computed { architecture, policy, product, m, promise });
    }
    Ok(computed)
}

/// Does the work on as many threads as there are cores; results in order.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(items.iter().enumerate());
    let done = Mutex::new(Vec::new());
    let jobs = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let item = next.lock().expect("taking an item does not panic").next();
                    let Some((index, item)) = item else { break };
                    let result = work(item);
                    done.lock().expect("adding a result does not panic").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("adding a result does not panic");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
