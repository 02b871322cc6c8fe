//! The smallest parts of a series that can be judged alone: the entries of one
//! file, and the contracts of one. A version in which a part's files are as they were
//! needs no judging again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::in_place::Bases;
use super::{DriftError, Item, Judgement, State, Version, states_at};
use crate::contract::{ContractKind, Contracts, kernel};
use crate::patch::{self, Patch};
use crate::series::{Change, Entry, Series};
use crate::snapshot::{ObjectId, ReadError, Remembered, Tree, TreePath};

/// A tree that knows the blob id of a file without reading it.
pub trait Identified: Tree + Send {
    /// The blob id of the file at `path`, or nothing where none is.
    ///
    /// # Errors
    /// The tree cannot be read.
    fn id(&self, path: &TreePath) -> Result<Option<ObjectId>, ReadError>;
}

/// What was found of a unit.
pub(super) type States = Arc<Vec<(Item, State)>>;

/// A part of a series.
pub(super) struct Unit {
    /// A series of its own.
    series: Series,
    /// The files that decide it.
    pub paths: Vec<TreePath>,
    /// For each entry of its series, the hunks' numbers in the whole series.
    numbers: HashMap<String, Vec<usize>>,
    seen: HashMap<Vec<Option<ObjectId>>, States>,
    /// Its one file, where it has no other.
    alone: Option<TreePath>,
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
    for unit in &mut units {
        if let [path] = &unit.paths[..] {
            unit.alone = Some(path.clone());
        }
    }
    units.extend(contracts(series, pin));
    Ok(units)
}

fn empty(series: &Series) -> Series {
    Series { folder: series.folder.clone(), entries: Vec::new(), contracts: Contracts::default() }
}

fn new_unit(series: Series, paths: Vec<TreePath>) -> Unit {
    Unit { series, paths, numbers: HashMap::new(), seen: HashMap::new(), alone: None }
}

/// The unit that these files belong to, those that shared only some of them
/// joined.
fn unit_of<'u>(units: &'u mut Vec<Unit>, series: &Series, paths: Vec<TreePath>) -> &'u mut Unit {
    let touches = |u: &Unit| u.paths.iter().any(|p| paths.contains(p));
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
fn contracts<'s>(series: &'s Series, pin: &'s dyn Tree) -> impl Iterator<Item = Unit> + 's {
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
        if let Ok(found) = kernel::kernels(pin, file) {
            paths.extend(found.sources.read);
        }
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

    /// The states of the unit's items in each version in which one of its files
    /// is another than in the version before, by the version's place.
    pub(super) fn walk(
        mut self,
        pin: &dyn Tree,
        versions: &[Version<'_>],
        id: &str,
    ) -> Result<Vec<(usize, States)>, DriftError> {
        let at_pin = |path| Ok(pin.file(path)?.map(|f| ObjectId::of_blob(&f.bytes)));
        let mut before = self.paths.iter().map(at_pin).collect::<Result<Vec<_>, ReadError>>()?;
        let mut bases = match &self.alone {
            Some(path) => Bases::of(&self.series, path, pin)?,
            None => None,
        };
        let mut found = Vec::new();
        for (at, version) in versions.iter().enumerate() {
            let Some(tree) = version.tree.as_deref() else { continue };
            let key = self.paths.iter().map(|p| tree.id(p)).collect::<Result<Vec<_>, _>>()?;
            if key != before {
                before.clone_from(&key);
                found.push((at, self.states(pin, tree, id, key, &mut bases)?));
            }
        }
        Ok(found)
    }

    /// The states of the unit's items in a version, in which its files have
    /// the ids `key`.
    fn states(
        &mut self,
        pin: &dyn Tree,
        version: &dyn Identified,
        id: &str,
        key: Vec<Option<ObjectId>>,
        bases: &mut Option<Bases>,
    ) -> Result<States, DriftError> {
        if let Some(seen) = self.seen.get(&key) {
            return Ok(seen.clone());
        }
        let in_place = match bases {
            Some(bases) => bases.states(version)?,
            None => None,
        };
        let found = match in_place {
            Some(states) => states,
            None => states_at(&self.series, pin, &Remembered::new(version), id)?.states(),
        };
        let states: Vec<(Item, State)> = found
            .into_iter()
            .filter(|(item, _)| !matches!(item, Item::Contract { kind: ContractKind::Note, .. }))
            .map(|(item, state)| (self.renumbered(item), state))
            .collect();
        let states = Arc::new(states);
        // Where a file of the pin is gone, what is found depends on where it
        // went, and so on more files than these.
        let gone =
            |(path, id): (&TreePath, &Option<ObjectId>)| id.is_none() && pin.mode(path).is_some();
        if !self.paths.iter().zip(&key).any(gone) {
            self.seen.insert(key, states.clone());
        }
        Ok(states)
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
