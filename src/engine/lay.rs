//! A whole series laid on a tree in memory.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::apply::{ApplyError, Ground};
use crate::contract;
use crate::derive::{self, DeriveError, Derived};
use crate::merge::lines;
use crate::moved::find_moved;
use crate::patch::{self, Patch, Refusal};
use crate::report::{FileReport, HunkClass, HunkReport, PatchReport};
use crate::series::{Change, Entry, Series, SeriesError};
use crate::snapshot::{File, Tree, TreePath};

/// Names in a series' patches carry one prefix, as git writes them.
pub const STRIP: usize = 1;

/// What became of one entry of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EntryReport {
    /// The entry's name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Why it is carried.
    pub reason: String,
    /// The release or commit with which upstream has it, as the series says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_upstream: Option<String>,
    /// Its files and hunks; a derived function has none.
    #[serde(flatten)]
    pub patch: PatchParts,
    /// The derived function, of an entry that derives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived: Option<DerivedReport>,
}

/// A patch's report without its name, which is the entry's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PatchParts {
    /// The patch file's name, of an entry that lays one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// See [`PatchReport::files`].
    pub files: Vec<FileReport>,
    /// See [`PatchReport::hunks`].
    pub hunks: Vec<HunkReport>,
}

/// What became of a derived function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DerivedReport {
    /// The copy that was made; nothing where the rule finds nothing to copy.
    #[serde(flatten)]
    pub made: Option<Derived>,
    /// Upstream changed the original since the pin: the copy follows, and a
    /// person should look whether it still means the same.
    pub source_changed: bool,
    /// The original stands on other lines than at the pin.
    pub moved: bool,
    /// The file that held the original at the pin, where it has another name
    /// here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<TreePath>,
    /// Why no copy was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How the original's text changed, for its verdict.
    #[serde(skip)]
    pub(crate) diff: Vec<String>,
}

/// Why a series could not be judged at all.
#[derive(Debug, thiserror::Error)]
pub enum LayError {
    /// The series has no such group.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// A patch of it is unsafe or malformed.
    #[error("{}", path.display())]
    Refused {
        /// The patch.
        path: PathBuf,
        /// Where and why.
        #[source]
        refusal: Refusal,
    },
    /// A file of the tree cannot be read.
    #[error(transparent)]
    Read(#[from] crate::snapshot::ReadError),
}

impl EntryReport {
    /// Whether the entry is in the tree, proven. A hunk whose place was
    /// searched (`offset`) does not count: a pinned series knows its places.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.patch.hunks.iter().all(is_known)
            && self.patch.files.iter().all(|f| f.class.holds() && f.class != HunkClass::Offset)
            && self.derived.as_ref().is_none_or(|d| d.made.is_some())
    }

    /// Its hunks that were placed although something around them changed, each
    /// with the entry's name and its number in it.
    pub fn changed_nearby(&self) -> impl Iterator<Item = (&str, usize, &HunkReport)> {
        let nearby = |(_, h): &(usize, &HunkReport)| h.nearby.is_some();
        let hunks = self.patch.hunks.iter().enumerate().filter(nearby);
        hunks.map(|(i, hunk)| (self.name.as_str(), i + 1, hunk))
    }

    /// The patch's report, for printing.
    #[must_use]
    pub fn as_patch(&self) -> PatchReport {
        PatchReport {
            name: self.name.clone(),
            files: self.patch.files.clone(),
            hunks: self.patch.hunks.clone(),
        }
    }
}

const SEARCHED: &str = "it does not stand where the patch says, and a pinned series never rests on \
                        a place that was searched: make the patch again from the pin's files";

/// Whether a hunk is in the tree, at a place that is proven.
fn is_known(hunk: &HunkReport) -> bool {
    hunk.class.holds() && hunk.class != HunkClass::Offset && !hunk.inferred
}

/// Lays the entries of these groups (all where none is named) on the ground, in
/// their order. Those of other groups are laid on the base alone, so that every
/// hunk is mapped from the very text it was made for.
///
/// # Errors
/// A group is not known, a patch is refused, or a file cannot be read. An entry
/// that does not hold is no error: see [`EntryReport::holds`].
pub fn lay(
    series: &Series,
    groups: &[String],
    ground: &mut Ground<'_>,
) -> Result<Vec<EntryReport>, LayError> {
    let chosen: Vec<&str> = series.select(groups)?.iter().map(|e| e.name.as_str()).collect();
    let mut reports = Vec::new();
    for entry in &series.entries {
        if chosen.contains(&entry.name.as_str()) {
            reports.push(lay_entry(entry, ground)?);
        } else {
            pass_over(entry, ground)?;
        }
    }
    Ok(reports)
}

/// Parses every patch of the series, on no tree.
///
/// # Errors
/// The first patch that is malformed or empty.
pub fn check(series: &Series) -> Result<(), LayError> {
    series.entries.iter().try_for_each(|entry| match &entry.change {
        Change::Patch { path, bytes } => parsed(path, bytes).map(drop),
        Change::Derive(_) => Ok(()),
    })
}

/// A patch of a series; one that changes no file has no place there.
fn parsed(path: &Path, bytes: &[u8]) -> Result<Patch, LayError> {
    let whole = |patch: Patch| patch.require_files().map(|()| patch);
    patch::parse(bytes).and_then(whole).map_err(|r| refused(path, r.into()))
}

/// Lays one entry.
///
/// # Errors
/// As [`lay`].
pub fn lay_entry(entry: &Entry, ground: &mut Ground<'_>) -> Result<EntryReport, LayError> {
    let mut report = EntryReport {
        name: entry.name.clone(),
        group: entry.group.clone(),
        reason: entry.reason.clone(),
        applied_upstream: entry.applied_upstream.clone(),
        patch: PatchParts::default(),
        derived: None,
    };
    match &entry.change {
        Change::Patch { path, bytes } => {
            let parsed = parsed(path, bytes)?;
            let mut laid =
                ground.apply(&entry.name, &parsed, STRIP).map_err(|e| refused(path, e))?;
            let searched = |h: &&mut HunkReport| h.class.holds() && !is_known(h);
            laid.hunks.iter_mut().filter(searched).for_each(|h| h.why = Some(SEARCHED.to_owned()));
            report.patch = PatchParts {
                file: path.file_name().map(|n| n.to_string_lossy().into_owned()),
                files: laid.files,
                hunks: laid.hunks,
            };
        }
        Change::Derive(rule) => report.derived = Some(derive(rule, ground)?),
    }
    Ok(report)
}

fn refused(path: &Path, error: ApplyError) -> LayError {
    match error {
        ApplyError::Refused(refusal) => LayError::Refused { path: path.into(), refusal },
        ApplyError::Read(error) => LayError::Read(error),
    }
}

fn derive(rule: &derive::Rule, ground: &mut Ground<'_>) -> Result<DerivedReport, LayError> {
    let followed = followed(rule, ground)?;
    let from = followed.as_ref().map(|_| rule.file.clone());
    let here = followed.as_ref().unwrap_or(rule);
    let then = ground.base.as_ref().map(|base| base.file(&rule.file)).transpose()?.flatten();
    let now = ground.target.file(&here.file)?;
    let same = now.is_some() && then == now && from.is_none();
    let (was, copied) = match &mut ground.base {
        // One text, one copy: it is made once for both.
        Some(base) if same => {
            let copied = made(derive::apply(here, &mut ground.target))?;
            if let (Ok(_), Some(file)) = (&copied, ground.target.file(&here.file)?) {
                base.put(here.file.clone(), file);
            }
            (copied.clone().ok(), copied)
        }
        Some(base) => {
            let was = made(derive::apply(rule, base))?.ok();
            (was, made(derive::apply(here, &mut ground.target))?)
        }
        None => (None, made(derive::apply(here, &mut ground.target))?),
    };
    Ok(match copied {
        Ok(made) => DerivedReport {
            diff: match (&was, then, now) {
                (Some(was), Some(then), Some(now)) if was.source != made.source => {
                    diff_of((&then, was), (&now, &made))
                }
                _ => Vec::new(),
            },
            source_changed: was.as_ref().is_some_and(|was| was.source != made.source),
            moved: was.is_some_and(|was| was.source_lines != made.source_lines),
            made: Some(made),
            from,
            why: None,
        },
        Err(why) => DerivedReport {
            made: None,
            source_changed: was.is_some(),
            moved: false,
            from,
            why: Some(why),
            diff: Vec::new(),
        },
    })
}

/// How an original's lines changed, given the files that it was copied in.
fn diff_of(then: (&File, &Derived), now: (&File, &Derived)) -> Vec<String> {
    let text = |(file, made): (&'_ File, &Derived)| {
        let (first, last) = made.source_lines;
        lines(&file.bytes).get(first - 1..last).unwrap_or_default().concat()
    };
    contract::diff(&text(then), &text(now), then.1.source_lines.0, now.1.source_lines.0)
}

/// The rule for the file's new name, where upstream renamed it.
fn followed(rule: &derive::Rule, ground: &Ground<'_>) -> Result<Option<derive::Rule>, LayError> {
    let Some(base) = &ground.base else { return Ok(None) };
    if ground.target.mode(&rule.file).is_some() {
        return Ok(None);
    }
    let Some(was) = base.file(&rule.file)? else { return Ok(None) };
    let moved = find_moved(&rule.file, &was, base.unedited(), ground.target.unedited())?;
    Ok(moved.map(|file| derive::Rule { file, ..rule.clone() }))
}

/// A rule that does not fit the tree is a finding; a file that cannot be read
/// is not.
fn made(result: Result<Derived, DeriveError>) -> Result<Result<Derived, String>, LayError> {
    match result {
        Ok(made) => Ok(Ok(made)),
        Err(DeriveError::Read(error)) => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// Lays an entry on the base alone: what follows is still mapped from the text
/// it was made for.
///
/// # Errors
/// As [`lay`].
pub(crate) fn pass_over(entry: &Entry, ground: &mut Ground<'_>) -> Result<(), LayError> {
    match &entry.change {
        Change::Patch { path, bytes } => {
            let parsed = parsed(path, bytes)?;
            ground.pass_over(&parsed, STRIP).map_err(|e| refused(path, e))
        }
        Change::Derive(rule) => match &mut ground.base {
            // What the rule finds wrong is told where its entry is laid.
            Some(base) => made(derive::apply(rule, base)).map(|_| ()),
            None => Ok(()),
        },
    }
}
