//! The smallest parts of a series that can be judged alone: the entries of one
//! file, and the contracts of one. A version in which a part's files are as they were
//! needs no judging again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rayon::prelude::*;

use super::asked::{Asking, Rest};
use super::expansions::Expansions;
use super::in_place::Bases;
use super::{DriftError, Item, Judgement, State, Version, states_at};
use crate::contract::{ContractKind, Contracts, expanded};
use crate::git::{At, PathSet};
use crate::listing::Listed;
use crate::patch::{self, Patch};
use crate::series::{Change, Entry, Series};
use crate::snapshot::{File, ObjectId, Remembered, Tree, TreePath};

/// A tree that knows its files' modes and blob ids without reading them.
pub trait Identified: Tree + Send {
    /// What stands at each of these paths, in their order.
    ///
    /// # Errors
    /// The tree cannot be read.
    fn at(&self, paths: &PathSet) -> Result<Vec<Option<At>>, DriftError>;

    /// An id of which paths there are: trees with the same paths have the same.
    ///
    /// # Errors
    /// The tree cannot be read.
    fn names(&self) -> Result<ObjectId, DriftError>;
}

/// What stands at a path of any tree.
pub(super) fn at(tree: &dyn Tree, path: &TreePath) -> Result<Option<At>, DriftError> {
    Ok(match tree.file(path)? {
        Some(File { mode, bytes }) => {
            // A submodule's id is a commit's, which a tree of files does not tell.
            let id = ObjectId::of_blob(&bytes);
            Some(At::File(Listed { mode, id }))
        }
        None => tree.inside(path).map(|_| At::Folder),
    })
}

/// What was found of a unit.
pub(super) type States = Arc<Vec<(Item, State)>>;

/// What stands at a unit's paths.
type Key = Vec<Option<At>>;

/// How many judgements are kept for the same files of a unit: where one is gone, what
/// is found depends on where it went, and so on more files than these.
const RECENT: usize = 4;

/// What was found of a unit where something stood at its paths.
#[derive(Clone, Default)]
struct Judged {
    /// What else it was found from.
    rest: Arc<Rest>,
    /// Nothing where only the unit's files decide, and they are the pin's.
    states: Option<States>,
}

/// A part of a series.
pub(super) struct Unit {
    /// A series of its own.
    series: Series,
    /// The files that decide it.
    pub paths: Vec<TreePath>,
    /// For each entry of its series, the hunks' numbers in the whole series.
    numbers: HashMap<String, Vec<usize>>,
    /// What was found, by what stood at its paths.
    /// The last first.
    seen: HashMap<Key, Vec<Judged>>,
    at_pin: Judged,
    /// Where it only changes lines of one file.
    bases: Option<Bases>,
    /// Shared by all.
    expansions: Arc<Expansions>,
}

/// Splits a series, given what it is at its pin.
pub(super) fn split(
    series: &Series,
    at_pin: &Judgement,
    pin: &dyn Tree,
) -> Result<Vec<Unit>, DriftError> {
    let mut units: Vec<Unit> = Vec::new();
    for (entry, report) in series.entries.iter().zip(&at_pin.entries) {
        match &entry.change {
            Change::Derive(rule) => {
                let unit = unit_of(&mut units, series, vec![rule.file.clone()]);
                unit.series.entries.push(entry.clone());
            }
            Change::Patch { bytes, .. } => {
                let parsed = patch::parse(bytes).map_err(|refusal| {
                    crate::lay::LayError::Refused { path: entry.name.clone().into(), refusal }
                })?;
                let mut hunks = 0;
                for (file, judged) in parsed.files.iter().zip(&report.patch.files) {
                    let paths = judged.from.iter().chain([&judged.path]).cloned().collect();
                    let unit = unit_of(&mut units, series, paths);
                    let count = match &file.body {
                        patch::Body::Text(hunks) => hunks.len(),
                        _ => 0,
                    };
                    unit.add(entry, file, hunks + 1..=hunks + count);
                    hunks += count;
                }
            }
        }
    }
    units.extend(contracts(series));
    let shared = Arc::new(Expansions::default());
    units.iter_mut().for_each(|unit| unit.expansions = shared.clone());
    units.par_iter_mut().with_max_len(1).try_for_each(|unit| unit.prepare(pin))?;
    Ok(units)
}

fn empty(series: &Series) -> Series {
    Series { folder: series.folder.clone(), entries: Vec::new(), contracts: Contracts::default() }
}

fn new_unit(series: Series, paths: Vec<TreePath>) -> Unit {
    Unit {
        series,
        paths,
        numbers: HashMap::new(),
        seen: HashMap::new(),
        at_pin: Judged::default(),
        bases: None,
        expansions: Arc::default(),
    }
}

/// The unit that these files belong to, those that shared only some of them
/// joined. A file and one in a folder of its name go together: where one goes the other
/// can come.
fn unit_of<'u>(units: &'u mut Vec<Unit>, series: &Series, paths: Vec<TreePath>) -> &'u mut Unit {
    let meet = |p: &TreePath, q: &TreePath| p == q || p.is_in(q) || q.is_in(p);
    let touches = |u: &Unit| u.paths.iter().any(|p| paths.iter().any(|q| meet(p, q)));
    let first = match units.iter().position(touches) {
        Some(first) => first,
        None => {
            units.push(new_unit(empty(series), Vec::new()));
            units.len() - 1
        }
    };
    let mut at = first + 1;
    while at < units.len() {
        if touches(&units[at]) {
            let other = units.remove(at);
            units[first].join(other, series);
        } else {
            at += 1;
        }
    }
    let unit = &mut units[first];
    unit.paths.extend(paths);
    unit.paths.sort();
    unit.paths.dedup();
    unit
}

/// A unit for the watches and citations of each file, which is read once for
/// them, and one for the kernels of each. Notes need none: the target does not
/// decide them.
fn contracts(series: &Series) -> impl Iterator<Item = Unit> {
    let one = |contracts: Contracts, paths: Vec<TreePath>| {
        new_unit(Series { contracts, ..empty(series) }, paths)
    };
    let all = &series.contracts;
    let mut by_text: BTreeMap<&TreePath, Contracts> = BTreeMap::new();
    for watch in &all.watch {
        by_text.entry(&watch.file).or_default().watch.push(watch.clone());
    }
    for cite in &all.cite {
        by_text.entry(&cite.at.file).or_default().cite.push(cite.clone());
    }
    let texts = by_text.into_iter().map(move |(file, only)| one(only, vec![file.clone()]));
    let mut by_file: BTreeMap<&TreePath, Contracts> = BTreeMap::new();
    for kernel in &all.kernel {
        by_file.entry(&kernel.file).or_default().kernel.push(kernel.clone());
    }
    let kernels = by_file.into_iter().map(move |(file, only)| {
        let mut paths = vec![file.clone()];
        paths.extend(only.kernel.iter().filter_map(|k| k.host.as_ref()).map(|h| h.file.clone()));
        paths.sort();
        paths.dedup();
        one(only, paths)
    });
    texts.chain(kernels)
}

impl Unit {
    /// Adds a file patch of an entry; `numbers` are its hunks'.
    fn add(
        &mut self,
        entry: &Entry,
        file: &patch::FilePatch,
        numbers: std::ops::RangeInclusive<usize>,
    ) {
        self.numbers.entry(entry.name.clone()).or_default().extend(numbers);
        let bytes = Patch { files: vec![file.clone()], trailer: Vec::new() }.to_bytes();
        if let Some(last) = self.series.entries.last_mut().filter(|e| e.name == entry.name)
            && let Change::Patch { bytes: before, .. } = &mut last.change
        {
            before.extend_from_slice(&bytes);
            return;
        }
        let path = entry.name.clone().into();
        let change = Change::Patch { path, bytes };
        self.series.entries.push(Entry { change, ..entry.clone() });
    }

    /// Takes another unit's entries over, in the series' order.
    fn join(&mut self, other: Unit, series: &Series) {
        self.paths.extend(other.paths);
        for entry in other.series.entries {
            let mine = self.series.entries.iter_mut().find(|e| e.name == entry.name);
            match (mine.map(|e| &mut e.change), &entry.change) {
                (Some(Change::Patch { bytes, .. }), Change::Patch { bytes: more, .. }) => {
                    bytes.extend_from_slice(more);
                }
                _ => self.series.entries.push(entry),
            }
        }
        let place = |e: &Entry| series.entries.iter().position(|s| s.name == e.name);
        self.series.entries.sort_by_key(place);
        for (name, numbers) in other.numbers {
            self.numbers.entry(name).or_default().extend(numbers);
        }
    }

    /// About how much there is to judge in a version: bytes, once for each entry.
    pub(super) fn weight(&self, pin: &dyn Tree) -> usize {
        let length = |path| pin.file(path).ok().flatten().map_or(0, |file| file.bytes.len());
        self.paths.iter().map(length).sum::<usize>() * self.series.entries.len().max(1)
    }

    /// Makes the unit ready for a walk: takes in what else than its own files
    /// decides it at the pin.
    fn prepare(&mut self, pin: &dyn Tree) -> Result<(), DriftError> {
        if let [path] = &self.paths[..]
            && self.series.contracts == Contracts::default()
        {
            self.bases = Bases::of(&self.series, path, pin)?;
        }
        // A patch in place, a watch and a citation ask for nothing but their file
        // while it is there.
        if self.bases.is_none() && !self.is_of_one_text() {
            let asking = Asking::new(pin);
            let tree = Remembered::new(&asking);
            let found = states_at(&self.series, pin, &tree, "", &|file| expanded(&tree, file))?;
            let asked = asking.asked();
            self.paths.extend(asked.paths);
            let states = Some(self.own_states(found.states()));
            self.at_pin = Judged { rest: Arc::new(Rest::of_names(asked.names)), states };
        }
        Ok(())
    }

    fn is_of_one_text(&self) -> bool {
        self.series.entries.is_empty() && self.series.contracts.kernel.is_empty()
    }

    /// The states of the unit's items in each version which they depend on, by
    /// the version's place: one of its files is another than in the version
    /// before, or a state is.
    pub(super) fn walk(
        mut self,
        pin: &dyn Tree,
        versions: &[Version<'_>],
        id: &str,
    ) -> Result<Vec<(usize, States)>, DriftError> {
        let paths = PathSet::new(std::mem::take(&mut self.paths));
        let at_pin = |path| at(pin, path);
        let key = paths.paths().iter().map(at_pin).collect::<Result<Vec<_>, _>>()?;
        let mut last = (key, std::mem::take(&mut self.at_pin));
        let mut found = Vec::new();
        for (place, version) in versions.iter().enumerate() {
            let (before, known) = &last;
            if !version.touched && known.rest.is_empty() {
                continue;
            }
            let tree = &*version.tree;
            let key = tree.at(&paths)?;
            if key == *before && known.rest.stands(tree)? {
                continue;
            }
            let touched = key != *before || known.rest.is_touched(tree)?;
            let judged = self.judged(pin, tree, id, &paths, &key)?;
            let differs = judged.states != known.states;
            if let Some(states) = judged.states.clone().filter(|_| touched || differs) {
                found.push((place, states));
            }
            last = (key, judged);
        }
        Ok(found)
    }

    /// The states of the unit's items in a version, in which `key` stands at its
    /// paths.
    fn judged(
        &mut self,
        pin: &dyn Tree,
        version: &dyn Identified,
        id: &str,
        paths: &PathSet,
        key: &Key,
    ) -> Result<Judged, DriftError> {
        for seen in self.seen.get(key).into_iter().flatten() {
            if seen.rest.stands(version)? {
                return Ok(seen.clone());
            }
        }
        let in_place = match &mut self.bases {
            Some(bases) => bases.states(version)?,
            None => None,
        };
        let (found, rest) = match in_place {
            Some(states) => (states, Rest::default()),
            None => {
                let asking = Asking::new(&version);
                let expand = |file: &TreePath| self.expansions.of(file, version, &asking);
                let tree = Remembered::new(&asking);
                let found = states_at(&self.series, pin, &tree, id, &expand)?;
                let rest = Rest::of(asking.asked(), paths, &found.files(), version)?;
                (found.states(), rest)
            }
        };
        let found = Judged { rest: Arc::new(rest), states: Some(self.own_states(found)) };
        let seen = self.seen.entry(key.clone()).or_default();
        seen.truncate(RECENT - 1);
        seen.insert(0, found.clone());
        Ok(found)
    }

    /// The states as the whole series has them, but for the notes'.
    fn own_states(&self, found: Vec<(Item, State)>) -> States {
        let decided = found
            .into_iter()
            .filter(|(item, _)| !matches!(item, Item::Contract { kind: ContractKind::Note, .. }));
        Arc::new(decided.map(|(item, state)| (self.renumbered(item), state)).collect())
    }

    fn renumbered(&self, item: Item) -> Item {
        match item {
            Item::Hunk { entry, number } => {
                let whole = self.numbers.get(&entry).and_then(|n| n.get(number - 1));
                let number = whole.copied().unwrap_or(number);
                Item::Hunk { entry, number }
            }
            other => other,
        }
    }
}
