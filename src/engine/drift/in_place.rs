//! Patches that only change lines of one file, over many versions of it: what
//! they were made for is worked out once.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::apply::{edited, one_site_each};
use crate::lay::LayError;
use crate::locate::{Facts, Language, Place, Shape, Text, map_places, place_alone};
use crate::merge::{LineMap, Number, Numbers, lines};
use crate::patch::{self, Body, FilePatch, Hunk, Operation};
use crate::report::HunkClass;
use crate::series::{Change, Series};
use crate::snapshot::{Mode, Tree, TreePath};

use super::{DriftError, Item, State};

/// The texts of a file that its patches were made for, one after the other.
pub(super) struct Bases {
    path: TreePath,
    stages: Vec<Stage>,
    /// The lines seen so far, and what is known of them.
    numbers: Numbers,
    facts: Facts,
    /// The version judged last, and the numbers of its lines.
    last: (Arc<[u8]>, Vec<Number>),
}

/// A file patch, the text it was made for, and its places there.
struct Stage {
    entry: String,
    hunks: Vec<Hunk>,
    /// The text, and where its lines are in it.
    text: Vec<u8>,
    cuts: Vec<Range<usize>>,
    /// The numbers of its lines.
    lines: Vec<Number>,
    in_base: Vec<Place>,
    shape: Shape<'static>,
}

impl Bases {
    /// The bases of a series that only changes lines of the file at `path`;
    /// nothing where it does anything else.
    pub fn of(
        series: &Series,
        path: &TreePath,
        pin: &dyn Tree,
    ) -> Result<Option<Self>, DriftError> {
        let Some(file) = pin.file(path)? else { return Ok(None) };
        let mut text = file.bytes.to_vec();
        let mut numbers = Numbers::default();
        let mut numbered: Vec<Number> = lines(&text).iter().map(|l| numbers.of(l)).collect();
        let last = (file.bytes.clone(), numbered.clone());
        let mut stages = Vec::new();
        for entry in &series.entries {
            let Change::Patch { path: from, bytes } = &entry.change else { return Ok(None) };
            let parsed = patch::parse(bytes)
                .map_err(|refusal| LayError::Refused { path: from.clone(), refusal })?;
            for file in parsed.files {
                if !text.ends_with(b"\n") || !in_place(&file) {
                    return Ok(None);
                }
                let Body::Text(hunks) = file.body else { return Ok(None) };
                let base = lines(&text);
                let in_base = one_site_each(place_alone(&hunks, &base, Text::Base));
                let next = edited(&base, in_base.iter().flatten().flat_map(|p| &p.edits));
                let mut end = 0;
                let cut = |line: &&[u8]| {
                    end += line.len();
                    end - line.len()..end
                };
                let cuts = base.iter().map(cut).collect();
                let put = |line: &Vec<u8>| numbers.of(line);
                let after = changed(&numbered, &in_base, &in_base, put);
                let lines = std::mem::replace(&mut numbered, after);
                let entry = entry.name.clone();
                let shape = Shape::new(Language::of(path));
                stages.push(Stage { entry, hunks, text, cuts, lines, in_base, shape });
                text = next;
            }
        }
        Ok(Some(Self { path: path.clone(), stages, numbers, facts: Facts::default(), last }))
    }

    /// The numbers of a version's lines. What it begins and ends with as the
    /// one before it did is known.
    fn numbered(&mut self, bytes: &Arc<[u8]>, text: &[&[u8]]) -> Vec<Number> {
        let (before, numbers) = &self.last;
        let mut at = 0;
        let same = |line: &&&[u8]| {
            let stands = before[at..].starts_with(line);
            at += if stands { line.len() } else { 0 };
            stands
        };
        let first = text.iter().take_while(same).count();
        let mut end = before.len();
        let same = |line: &&&[u8]| {
            let rest = &before[at..end];
            // A line begins the text or follows a line.
            let stands =
                rest.strip_suffix(**line).is_some_and(|r| r.is_empty() || r.ends_with(b"\n"));
            end -= if stands { line.len() } else { 0 };
            stands
        };
        let last = text[first..].iter().rev().take_while(same).count();
        let mut found = numbers[..first].to_vec();
        found.extend(text[first..text.len() - last].iter().map(|line| self.numbers.of(line)));
        found.extend_from_slice(&numbers[numbers.len() - last..]);
        self.last = (bytes.clone(), found.clone());
        found
    }

    /// The states of all items in a version; nothing where the file is not
    /// there as a text of whole lines.
    pub fn states(&mut self, version: &dyn Tree) -> Result<Option<Vec<(Item, State)>>, DriftError> {
        let Some(file) = version.file(&self.path)? else { return Ok(None) };
        let plain = matches!(file.mode, Mode::Regular | Mode::Executable);
        if !plain || !file.bytes.ends_with(b"\n") {
            return Ok(None);
        }
        let language = Language::of(&self.path);
        let mut states = Vec::new();
        let mut counts = HashMap::new();
        let mut text = lines(&file.bytes);
        let mut numbered = self.numbered(&file.bytes, &text);
        for Stage { entry, hunks, text: base, cuts, lines, in_base, shape } in &self.stages {
            let item = Item::File { entry: entry.clone(), path: self.path.clone() };
            states.push((item, State::Class(HunkClass::Exact)));
            let places = if *lines == numbered {
                in_base.clone()
            } else {
                let base: Vec<&[u8]> = cuts.iter().map(|cut| &base[cut.clone()]).collect();
                let map = LineMap::of_numbers(lines, &numbered);
                let now = Shape::of_numbers(language, &self.facts, &numbered);
                one_site_each(map_places(hunks, in_base, (&base, shape), (&text, &now), &map))
            };
            let number = counts.entry(entry).or_insert(0);
            for place in &places {
                *number += 1;
                let item = Item::Hunk { entry: entry.clone(), number: *number };
                states.push((item, state(place)));
            }
            let put = |line: &Vec<u8>| self.numbers.of(line);
            numbered = changed(&numbered, &places, in_base, put);
            text = changed(&text, &places, in_base, Vec::as_slice);
        }
        Ok(Some(states))
    }
}

fn state(place: &Place) -> State {
    match place {
        Ok(placed) if placed.inferred => State::Inferred(placed.class),
        Ok(placed) => State::Class(placed.class),
        Err(unplaced) => State::Class(unplaced.class),
    }
}

/// Whether a file patch changes whole lines of a file and nothing else.
fn in_place(file: &FilePatch) -> bool {
    let whole = |h: &Hunk| h.lines.iter().all(|l| l.text.ends_with(b"\n"));
    file.operation == Operation::Modify
        && (file.new_mode.is_none() || file.old_mode == file.new_mode)
        && matches!(&file.body, Body::Text(hunks) if !hunks.is_empty() && hunks.iter().all(whole))
}

/// The text after the hunks that hold. What they put in is that of their places
/// in the base.
fn changed<'p, L: Copy>(
    text: &[L],
    places: &[Place],
    in_base: &'p [Place],
    mut put: impl FnMut(&'p Vec<u8>) -> L,
) -> Vec<L> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let mut next = 0;
    for (place, was) in places.iter().zip(in_base) {
        let (Ok(place), Ok(was)) = (place, was) else { continue };
        for (edit, own) in place.edits.iter().zip(&was.edits) {
            out.extend_from_slice(&text[next..edit.range.start]);
            out.extend(own.lines.iter().map(&mut put));
            next = edit.range.end;
        }
    }
    out.extend_from_slice(&text[next..]);
    out
}
