//! Work spread over the cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::HarnessError;

/// Does `work` for every item, as [`each`] does.
///
/// # Errors
/// The first error in the items' order.
pub fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, HarnessError> + Sync,
) -> Result<Vec<R>, HarnessError> {
    each(items, work).into_iter().collect()
}

/// Does `work` for every item, as many at a time as there are cores, and gives
/// the results in the items' order.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(item);
                    done.lock().expect("no worker panics with the lock").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no worker panics with the lock");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
