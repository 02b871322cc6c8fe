//! Whether a hunk has landed, told from what the whole patch makes of its base.
//!
//! A patch that upstream took over may rename what one of its hunks stands in,
//! or put lines in that look like those around another. Mapped from the text
//! before it, such a hunk has lost its place; mapped from the text after it,
//! what it made stands there. So it has landed where taking it back would have
//! a proven place.

use std::cell::OnceCell;
use std::ops::Range;

use super::indented::depth;
use super::mapped::own_function;
use super::within::{Both, Shape, Side};
use super::{Place, Placed};
use crate::merge::{Fate, LineMap};
use crate::patch::{Hunk, LineKind};
use crate::report::HunkClass;

/// The base with every hunk that has a place in it.
pub(super) struct After<'t> {
    made: Option<Made<'t>>,
    text: Side<'t>,
    map: OnceCell<LineMap<'static>>,
    shape: Shape,
}

struct Made<'t> {
    lines: Vec<&'t [u8]>,
    /// Where the edits of each hunk are in it.
    edits: Vec<Vec<Range<usize>>>,
}

impl<'t> After<'t> {
    pub(super) fn of(base: &[&'t [u8]], in_base: &'t [Place], text: Side<'t>) -> Self {
        let (map, shape) = (OnceCell::new(), Shape::default());
        Self { made: made(base, in_base), text, map, shape }
    }

    /// The `at`th hunk as landed, where it has.
    pub(super) fn landed(&self, at: usize, hunk: &Hunk, inferred: bool) -> Option<Placed> {
        let Made { lines, edits } = self.made.as_ref()?;
        let edits = &edits[at];
        let text = self.text.0;
        // It costs a diff, which a line that is not there spares.
        let added = hunk.lines.iter().filter(|line| line.kind == LineKind::Added);
        let rarest = added.max_by_key(|line| line.text.len());
        if rarest.is_some_and(|line| !text.contains(&line.text.as_slice())) {
            return None;
        }
        let map = self.map.get_or_init(|| LineMap::new(lines, text));
        let both = Both::new((lines, &self.shape), self.text, map);
        let (mut first, mut last) = (None, 0);
        for was in edits {
            let Fate::Kept(is) = map.fate(was.clone(), &[], text) else { return None };
            // Of a gap the lines around it tell how deep it is.
            let own = lines[was.clone()].iter().chain(&lines[was.end..]).copied();
            let edges = was.start.saturating_sub(1)..(was.end + 1).min(lines.len());
            if both.has_new_twin(was, edges) {
                return None;
            }
            own_function(was, &is, &is, depth(own), &both).ok()?;
            first = first.or(Some(is.start));
            last = is.end;
        }
        Some(Placed {
            class: HunkClass::Landed,
            site: first?..last,
            edits: Vec::new(),
            inferred,
            rivals: Vec::new(),
            nearby: None,
        })
    }
}

/// Nothing where the hunks are not in order.
fn made<'t>(base: &[&'t [u8]], in_base: &'t [Place]) -> Option<Made<'t>> {
    let (mut lines, mut edits) = (Vec::with_capacity(base.len() + 64), Vec::new());
    let mut next = 0;
    for place in in_base {
        let mut own = Vec::new();
        for edit in place.iter().flat_map(|placed| &placed.edits) {
            lines.extend_from_slice(base.get(next..edit.range.start)?);
            own.push(lines.len()..lines.len() + edit.lines.len());
            lines.extend(edit.lines.iter().map(Vec::as_slice));
            next = edit.range.end;
        }
        edits.push(own);
    }
    lines.extend_from_slice(base.get(next..)?);
    Some(Made { lines, edits })
}
