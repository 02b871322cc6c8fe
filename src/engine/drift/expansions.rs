//! The kernels of files over many versions: each file's are worked out once for
//! the same sources.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Identified;
use super::asked::Asking;
use crate::contract::{Expanded, expanded};
use crate::git::{At, PathSet};
use crate::snapshot::{Remembered, TreePath};

/// How many of a file's are kept.
const RECENT: usize = 4;

/// What is known of the kernels of files, the last of each first.
#[derive(Default)]
pub(super) struct Expansions(Mutex<HashMap<TreePath, Vec<Arc<Known>>>>);

struct Known {
    /// What decided it, and what stood there.
    paths: PathSet,
    were: Vec<Option<At>>,
    found: Expanded,
}

impl Expansions {
    /// The kernels of a version's file; what decides them is asked of `asking`.
    pub fn of(&self, file: &TreePath, version: &dyn Identified, asking: &Asking<'_>) -> Expanded {
        let known = self.known().get(file).cloned().unwrap_or_default();
        // A version that cannot be read says so when it is expanded.
        let stands = |k: &&Arc<Known>| version.at(&k.paths).is_ok_and(|now| now == k.were);
        if let Some(known) = known.iter().find(stands) {
            asking.also(known.paths.paths());
            return known.found.clone();
        }
        let own = Asking::new(&version);
        let found = expanded(&Remembered::new(&own), file);
        let paths = PathSet::new(own.asked().paths);
        asking.also(paths.paths());
        if let Ok(were) = version.at(&paths) {
            let found = found.clone();
            let mut all = self.known();
            let known = all.entry(file.clone()).or_default();
            known.truncate(RECENT - 1);
            known.insert(0, Arc::new(Known { paths, were, found }));
        }
        found
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TreePath, Vec<Arc<Known>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
