//! Hunks that do not hold because an earlier entry does not: they rest on lines
//! of its, and no upstream commit is to blame for them.

use std::collections::HashSet;

use crate::lay::EntryReport;
use crate::locate::{Place, Placed, Text, place_alone};
use crate::merge::{LineMap, lines};
use crate::patch::{self, Body, FilePatch, Hunk, LineKind, Patch};
use crate::report::HunkClass;
use crate::series::{Change, Entry};
use crate::snapshot::{ReadError, Tree};

/// An entry whose change is not in the target as the pin's series has it.
pub(crate) struct Missing<'s> {
    entry: &'s str,
    patch: Patch,
    /// Which of its hunks are not there.
    hunks: Vec<bool>,
}

impl<'s> Missing<'s> {
    /// What is missing of an entry that was laid; nothing where it holds.
    pub(crate) fn of(entry: &'s Entry, report: &EntryReport) -> Option<Self> {
        let missing = |c: HunkClass| !c.holds() || c == HunkClass::Offset;
        let hunks: Vec<bool> = report.patch.hunks.iter().map(|h| missing(h.class)).collect();
        let files = report.patch.files.iter().any(|f| missing(f.class));
        (files || hunks.contains(&true))
            .then(|| Self::with(entry, |i| hunks.get(i) != Some(&false)))?
    }

    /// An entry that was left out, or settled in another way.
    pub(crate) fn whole(entry: &'s Entry) -> Option<Self> {
        Self::with(entry, |_| true)
    }

    fn with(entry: &'s Entry, missing: impl Fn(usize) -> bool) -> Option<Self> {
        let Change::Patch { bytes, .. } = &entry.change else { return None };
        // A patch that is refused was an error before.
        let patch = patch::parse(bytes).ok()?;
        let hunks = patch.files.iter().map(|f| text_hunks(f).len()).sum();
        Some(Self { entry: &entry.name, patch, hunks: (0..hunks).map(missing).collect() })
    }

    /// The lines that its missing hunks put into files, or take out of them.
    fn lines(&self, kind: LineKind) -> HashSet<&[u8]> {
        let hunks = self.patch.files.iter().flat_map(text_hunks);
        let missing = hunks.zip(&self.hunks).filter(|(_, missing)| **missing);
        let lines = missing.flat_map(|(h, _)| &h.lines).filter(|l| l.kind == kind);
        lines.map(|l| l.text.as_slice()).collect()
    }
}

fn text_hunks(file: &FilePatch) -> &[Hunk] {
    match &file.body {
        Body::Text(hunks) => hunks,
        _ => &[],
    }
}

/// Marks each hunk of an entry that does not hold only because one of `missing`
/// does not: upstream kept every line of its own that the hunk leans on, and the
/// others are lines of that entry. `made_for` is what the entry was made for: the
/// pin with the entries before it.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn blame(
    entry: &Entry,
    report: &mut EntryReport,
    missing: &[Missing<'_>],
    made_for: &dyn Tree,
    pin: &dyn Tree,
    target: &dyn Tree,
) -> Result<(), ReadError> {
    let fails = |c: HunkClass| !c.holds();
    if missing.is_empty() || !report.patch.hunks.iter().any(|h| fails(h.class)) {
        return Ok(());
    }
    let Change::Patch { bytes, .. } = &entry.change else { return Ok(()) };
    let Ok(parsed) = patch::parse(bytes) else { return Ok(()) };
    let mut next = 0;
    for (file, judged) in parsed.files.iter().zip(&report.patch.files) {
        let hunks = text_hunks(file);
        let Some(reports) = report.patch.hunks.get_mut(next..next + hunks.len()) else { break };
        next += hunks.len();
        let name = judged.from.as_ref().unwrap_or(&judged.path);
        let Some(base) = made_for.file(name)? else { continue };
        let (Some(own), now) = (pin.file(name)?, target.file(&judged.path)?) else {
            let made = |m: &&Missing<'_>| {
                let new = |f: &FilePatch| f.old_name.is_none() && stripped(f) == name.as_str();
                m.patch.files.iter().any(new)
            };
            if let Some(maker) = missing.iter().find(made) {
                reports.iter_mut().for_each(|h| h.follow(maker.entry));
            }
            continue;
        };
        let Some(now) = now else { continue };
        let (own, made_for, now) = (lines(&own.bytes), lines(&base.bytes), lines(&now.bytes));
        let texts = Texts {
            own: &own,
            made_for: &made_for,
            to_base: LineMap::new(&own, &made_for),
            upstream: LineMap::new(&own, &now),
        };
        let places = place_alone(hunks, &made_for, Text::Base);
        for (hunk, place) in reports.iter_mut().zip(places) {
            if fails(hunk.class)
                && let Some(entry) = texts.rests_on(&place, missing)
            {
                hunk.follow(entry);
            }
        }
    }
    Ok(())
}

/// A file patch's name in the tree.
fn stripped(file: &FilePatch) -> String {
    let name = file.new_name.as_deref().unwrap_or_default();
    let name = String::from_utf8_lossy(name);
    name.splitn(crate::lay::STRIP + 1, '/').last().unwrap_or(&name).to_owned()
}

/// The pin's text of a file, the one that a patch was made for, and where the
/// pin's lines are in it and in the target.
struct Texts<'t> {
    own: &'t [&'t [u8]],
    made_for: &'t [&'t [u8]],
    to_base: LineMap<'static>,
    upstream: LineMap<'static>,
}

impl Texts<'_> {
    /// The entry whose missing lines a hunk leans on.
    fn rests_on<'m>(&self, place: &Place, missing: &'m [Missing<'_>]) -> Option<&'m str> {
        let Ok(Placed { edits, .. }) = place else { return None };
        let mut found = None;
        for edit in edits {
            let end = (edit.range.end + 1).min(self.made_for.len());
            let mut last: Option<usize> = None;
            for line in edit.range.start.saturating_sub(1)..end {
                let Some(own) = self.to_base.line_back(line) else {
                    let put =
                        |m: &&Missing<'_>| m.lines(LineKind::Added).contains(self.made_for[line]);
                    found = found.or(missing.iter().rev().find(put));
                    last = None;
                    continue;
                };
                // Upstream changed a line that the hunk leans on: so it is to blame.
                self.upstream.line(own)?;
                let between = last.map_or(own..own, |last| (last + 1).min(own)..own);
                let took = |m: &&Missing<'_>| {
                    let gone = m.lines(LineKind::Removed);
                    self.own[between.clone()].iter().any(|line| gone.contains(line))
                };
                found = found.or_else(|| missing.iter().rev().find(took));
                last = Some(own);
            }
        }
        found.map(|m| m.entry)
    }
}
