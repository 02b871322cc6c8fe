//! The text or the bytes of one file after its changes.

use std::sync::Arc;

use super::judged::reports;
use super::{ApplyError, Ground};
use crate::locate::{Edit, Language, Place, Text, Unplaced, place_alone, place_mapped};
use crate::merge::lines;
use crate::patch::{Body, FilePatch, Hunk, Reason, binary};
use crate::report::{HunkClass, HunkReport};
use crate::snapshot::{File, Mode, ObjectId, Tree, TreePath};

impl Ground<'_> {
    /// The file's bytes after the hunks that hold, and every hunk's report.
    /// `from` is its name in the base, `to` the one to report.
    pub(super) fn content(
        &self,
        patch: &FilePatch,
        from: &TreePath,
        to: &TreePath,
        file: &File,
        known: Text,
    ) -> Result<Content, ApplyError> {
        let hunks = match &patch.body {
            Body::Text(hunks) => hunks,
            Body::Binary(_) | Body::BinaryWithoutData(_) => return self.binary(patch, from, file),
        };
        if hunks.is_empty() {
            return Ok(Content::text(file.bytes.clone(), vec![]));
        }
        let text = lines(&file.bytes);
        let base = match &self.base {
            Some(base) => base.file(from)?,
            None => None,
        };
        let places = match &base {
            Some(base) => place_mapped(hunks, &lines(&base.bytes), &text, Language::of(from)),
            None if is_indexed(patch, &file.bytes) => place_alone(hunks, &text, Text::Base),
            None => place_alone(hunks, &text, known),
        };
        let places = one_site_each(places);
        let edits = places.iter().flatten().flat_map(|p| &p.edits);
        let bytes = edited(&text, edits).into();
        Ok(Content::text(bytes, reports(to, hunks, &places, &text)))
    }

    /// The file's bytes after a binary change. Bytes that it was not made for are
    /// refused, unless the base shows that upstream changed them.
    fn binary(
        &self,
        patch: &FilePatch,
        from: &TreePath,
        file: &File,
    ) -> Result<Content, ApplyError> {
        let hunks = Vec::new();
        let refusal = match binary::apply(patch, Some(&file.bytes)) {
            Ok(bytes) => return Ok(Content::text(bytes.into(), hunks)),
            Err(refusal) => refusal,
        };
        let was = match &self.base {
            Some(base) if refusal.reason == Reason::BinaryBase => base.file(from)?,
            _ => None,
        };
        let Some(made) = was.and_then(|was| binary::apply(patch, Some(&was.bytes)).ok()) else {
            return Err(refusal.into());
        };
        let landed = made[..] == file.bytes[..];
        let class = if landed { HunkClass::Landed } else { HunkClass::Conflict };
        Ok(Content { bytes: file.bytes.clone(), hunks, binary: class })
    }
}

/// A file's bytes after its hunks, with their reports.
pub(super) struct Content {
    pub(super) bytes: Arc<[u8]>,
    pub(super) hunks: Vec<HunkReport>,
    /// What became of a binary change; `Exact` where the file is text.
    pub(super) binary: HunkClass,
}

impl Content {
    fn text(bytes: Arc<[u8]>, hunks: Vec<HunkReport>) -> Self {
        Self { bytes, hunks, binary: HunkClass::Exact }
    }
}

/// Whether the patch's `index` line names the very bytes at hand: then they
/// are the text it was made for.
pub(super) fn is_indexed(patch: &FilePatch, bytes: &[u8]) -> bool {
    // Git abbreviates to no less than seven digits.
    patch.index.as_ref().is_some_and(|(old, _)| {
        old.len() >= 7 && ObjectId::of_blob(bytes).to_string().starts_with(old.as_str())
    })
}

/// Turns down a hunk whose place an earlier one of the file took.
pub(crate) fn one_site_each(places: Vec<Place>) -> Vec<Place> {
    let mut end: Option<usize> = None;
    let mut insertion_at: Option<usize> = None;
    places
        .into_iter()
        .map(|place| {
            let placed = place?;
            let taken = placed.edits.iter().any(|e| {
                end.is_some_and(|end| e.range.start < end) || (insertion_at == Some(e.range.start))
            });
            if taken {
                let why = "another hunk of the patch has its place".into();
                return Err(Unplaced { class: HunkClass::Conflict, why, found: None });
            }
            if let Some(last) = placed.edits.last() {
                end = Some(last.range.end);
                insertion_at = last.range.is_empty().then_some(last.range.start);
            }
            Ok(placed)
        })
        .collect()
}

pub(crate) fn edited<'e>(text: &[&[u8]], edits: impl Iterator<Item = &'e Edit>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut next = 0;
    for edit in edits {
        text[next..edit.range.start].iter().for_each(|l| out.extend_from_slice(l));
        edit.lines.iter().for_each(|l| out.extend_from_slice(l));
        next = edit.range.end;
    }
    text[next..].iter().for_each(|l| out.extend_from_slice(l));
    out
}

/// The file that a patch makes of nothing.
pub(super) fn made(patch: &FilePatch) -> Result<File, ApplyError> {
    let bytes: Arc<[u8]> = match &patch.body {
        Body::Text(hunks) => postimage(hunks).into(),
        Body::Binary(_) | Body::BinaryWithoutData(_) => binary::apply(patch, None)?.into(),
    };
    Ok(File::new(patch.new_mode.unwrap_or(Mode::Regular), bytes))
}

pub(super) fn postimage(hunks: &[Hunk]) -> Vec<u8> {
    hunks.iter().flat_map(Hunk::postimage).flatten().copied().collect()
}
