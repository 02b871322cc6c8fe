//! What a file patch does to the tree, decided and not yet done, and the
//! report of its hunks.

use crate::locate::{Place, Placed};
use crate::patch::{Body, FilePatch, Hunk, LineKind, Operation};
use crate::report::{Conflict, FileReport, HunkClass, HunkReport};
use crate::snapshot::{File, TreePath};

/// What one file patch does, decided.
pub(super) struct Judged {
    pub(super) file: FileReport,
    pub(super) hunks: Vec<HunkReport>,
    pub(super) edits: Vec<(TreePath, Option<File>)>,
}

impl Judged {
    pub(super) fn new(operation: Operation, path: TreePath, from: Option<TreePath>) -> Self {
        let operation = match operation {
            Operation::Modify => "modify",
            Operation::Create => "create",
            Operation::Delete => "delete",
            Operation::Rename => "rename",
            Operation::Copy => "copy",
        };
        let file = FileReport { path, from, operation, class: HunkClass::Exact, why: None };
        Self { file, hunks: vec![], edits: vec![] }
    }

    pub(super) fn edit(mut self, path: TreePath, file: Option<File>) -> Self {
        self.edits.push((path, file));
        self
    }

    pub(super) fn hunks(
        mut self,
        class: HunkClass,
        why: Option<&str>,
        hunks: Vec<HunkReport>,
    ) -> Self {
        self.file.class = class;
        self.file.why = why.map(str::to_string);
        self.hunks = hunks;
        self
    }

    /// The file and every hunk of it are of this class, which holds.
    pub(super) fn all(self, class: HunkClass, patch: &FilePatch) -> Self {
        let path = self.file.path.clone();
        let hunk = |(i, h): (usize, &Hunk)| {
            let line = Some(1).filter(|_| class != HunkClass::Landed);
            HunkReport { line, new_line: Some(1), ..blank(class, &path, i, h) }
        };
        let hunks = text_hunks(patch).iter().enumerate().map(hunk).collect();
        self.hunks(class, None, hunks)
    }

    /// The file and every hunk of it are of this class, which does not hold.
    pub(super) fn none(self, class: HunkClass, why: &str, patch: &FilePatch) -> Self {
        let path = self.file.path.clone();
        let hunk = |(i, h): (usize, &Hunk)| HunkReport {
            why: Some(why.to_string()),
            conflict: Some(Conflict {
                wanted: h
                    .preimage()
                    .map(|l| {
                        String::from_utf8_lossy(l.strip_suffix(b"\n").unwrap_or(l)).into_owned()
                    })
                    .collect(),
                ..Conflict::default()
            }),
            ..blank(class, &path, i, h)
        };
        let hunks = text_hunks(patch).iter().enumerate().map(hunk).collect();
        self.hunks(class, Some(why), hunks)
    }
}

fn text_hunks(patch: &FilePatch) -> &[Hunk] {
    match &patch.body {
        Body::Text(hunks) => hunks,
        _ => &[],
    }
}

fn blank(class: HunkClass, file: &TreePath, index: usize, hunk: &Hunk) -> HunkReport {
    let count = |kind| hunk.lines.iter().filter(|l| l.kind == kind).count();
    HunkReport {
        class,
        file: file.clone(),
        number: index + 1,
        patch_line: hunk.line,
        stated_line: hunk.old.start,
        line: None,
        new_line: None,
        added: count(LineKind::Added),
        removed: count(LineKind::Removed),
        inferred: false,
        rivals: vec![],
        nearby: None,
        follows: None,
        why: None,
        conflict: None,
    }
}

/// The reports of a file's hunks, in their order.
pub(super) fn reports(
    path: &TreePath,
    hunks: &[Hunk],
    places: &[Place],
    text: &[&[u8]],
) -> Vec<HunkReport> {
    let mut shift = 0;
    let report = |((i, hunk), place): ((usize, &Hunk), &Place)| match place {
        Ok(Placed { class, site, edits, inferred, rivals, nearby }) => {
            let landed = *class == HunkClass::Landed;
            let line = site.start + 1;
            let new_line = line.checked_add_signed(shift);
            for edit in edits {
                shift += edit.lines.len().cast_signed() - edit.range.len().cast_signed();
            }
            HunkReport {
                line: Some(line).filter(|_| !landed),
                new_line,
                inferred: *inferred,
                rivals: rivals.iter().map(|r| r + 1).collect(),
                nearby: nearby.clone(),
                ..blank(*class, path, i, hunk)
            }
        }
        Err(unplaced) => HunkReport {
            why: Some(unplaced.why.clone()),
            conflict: Some(unplaced.conflict(hunk, text)),
            ..blank(unplaced.class, path, i, hunk)
        },
    };
    hunks.iter().enumerate().zip(places).map(report).collect()
}
