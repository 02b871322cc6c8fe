//! Looking at a published tree: what is there against what its stamp says.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::lock::Lock;
use super::place::Place;
use super::{ENGINE, Identity, Partial, PublishError, Recorded, Stamp, StampError};
use crate::disk::{self, Stat};
use crate::snapshot::{Entry, Mode, ObjectId, Tree, TreePath};

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// A `stat` of every file, and a hash of those whose `stat` is not as
    /// written.
    Stat,
    /// A hash of every file.
    Hash,
}

/// Something to know about a published tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Finding {
    /// A file has other bytes.
    Modified {
        /// The file.
        path: TreePath,
        /// The blob id it was published with.
        expected: ObjectId,
        /// The blob id it has.
        found: ObjectId,
    },
    /// A file is gone.
    Missing {
        /// The file.
        path: TreePath,
    },
    /// A file is executable and was not, or the reverse, or a link and a file.
    ModeChanged {
        /// The file.
        path: TreePath,
        /// As published.
        #[serde(with = "super::stamp::mode")]
        expected: Mode,
        /// As it is.
        #[serde(with = "super::stamp::mode")]
        found: Mode,
    },
    /// A file cannot be read.
    Unreadable {
        /// The file or folder, relative to the tree.
        path: String,
        /// Why.
        why: String,
    },
    /// A file that is not of the tree, or a folder that holds none of its
    /// files. Its name need not be UTF-8; what is not is replaced.
    Extra {
        /// The file, or the folder with a `/` behind it.
        path: String,
    },
    /// The tree was laid by another engine; `apply` lays it anew.
    OtherEngine {
        /// Its version.
        engine: String,
    },
    /// Not every file of the pin is there; a build refuses the tree.
    Partial(Partial),
    /// The series lies on another tree than the pin's.
    Trial {
        /// That tree.
        of: String,
    },
    /// A publication was broken off; the next `apply` clears it.
    Unfinished,
    /// A process is publishing here.
    InProgress,
}

impl Finding {
    /// The published file that this is about, if it is a change of one.
    pub(super) fn changed_path(&self) -> Option<&str> {
        match self {
            Finding::Modified { path, .. }
            | Finding::Missing { path }
            | Finding::ModeChanged { path, .. } => Some(path.as_str()),
            Finding::Unreadable { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Whether a published file is not as it was published.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.changed_path().is_some()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Modified { path, .. } => write!(f, "`{path}` modified"),
            Finding::Missing { path } => write!(f, "`{path}` missing"),
            Finding::ModeChanged { path, expected, found } => {
                let (expected, found) = (expected.as_str(), found.as_str());
                write!(f, "`{path}` has mode {found} instead of {expected}")
            }
            Finding::Unreadable { path, why } => write!(f, "`{path}` cannot be read: {why}"),
            Finding::Extra { path } => write!(f, "`{path}` is not of the tree"),
            Finding::OtherEngine { engine } => {
                write!(f, "laid by engine {engine}, this one is {ENGINE}")
            }
            Finding::Partial(Partial { have, of }) => {
                write!(f, "partial: {have} of {of} files, a build refuses it")
            }
            Finding::Trial { of } => write!(f, "trial tree: the series laid on {of}"),
            Finding::Unfinished => {
                f.write_str("a publication was broken off here; the next apply clears it")
            }
            Finding::InProgress => f.write_str("another process is publishing here"),
        }
    }
}

/// What a look at a published tree gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The place, absolute.
    pub place: PathBuf,
    /// What the tree says of itself.
    pub stamp: Stamp,
    /// What is to be known, in the order of the paths, then of the tree.
    pub findings: Vec<Finding>,
    /// Number of files that were hashed.
    pub hashed: usize,
    /// The paths of what is not of the tree, as they are on the disk.
    pub(super) foreign: Vec<PathBuf>,
}

impl Survey {
    /// Every published file is as it was published. (What is not of the tree,
    /// and the marks of the tree, do not count.)
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.findings.iter().any(|f| f.is_change() || *f == Finding::Unfinished)
    }

    /// The tree was laid for this identity by this engine.
    #[must_use]
    pub fn is_of(&self, identity: &Identity) -> bool {
        self.stamp.identity == *identity && self.stamp.engine == ENGINE
    }
}

/// Looks at the tree published at `dest`. Reads only, and takes no lock.
///
/// # Errors
/// No tree is published there, or its stamp cannot be read. What is wrong with
/// the files is a finding.
pub fn survey(dest: &Path, depth: Depth) -> Result<Survey, PublishError> {
    let place = Place::of(dest)?;
    let unfinished = place.is_unfinished();
    match fs::symlink_metadata(&place.dest) {
        Ok(_) => super::place::must_be_folder(&place.dest)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(StampError::Missing { folder: place.dest }.into());
        }
        Err(e) => return Err(PublishError::io("look at", &place.dest)(e)),
    }
    let (stamp, stamped) = Stamp::read(&place.dest)?;
    let mut survey =
        Survey { place: place.dest, stamp, findings: Vec::new(), hashed: 0, foreign: Vec::new() };
    survey.compare(depth, stamped);
    survey.findings.extend(unfinished.then(|| {
        if Lock::is_held(&place.work) { Finding::InProgress } else { Finding::Unfinished }
    }));
    if survey.stamp.engine != ENGINE {
        let engine = survey.stamp.engine.clone();
        survey.findings.push(Finding::OtherEngine { engine });
    }
    survey.findings.extend(survey.stamp.identity.partial.map(Finding::Partial));
    let trial = survey.stamp.identity.trial.clone();
    survey.findings.extend(trial.map(|of| Finding::Trial { of }));
    Ok(survey)
}

impl Survey {
    /// What stands at `place`, whose stamp is lost, against the files that are
    /// to be there: those with a wanted file's bytes count as published, and
    /// others as edited by hand.
    pub(super) fn against(
        place: &Place,
        tree: &dyn Tree,
        entries: &[Entry],
        identity: &Identity,
    ) -> Result<Self, PublishError> {
        let mut files = Vec::with_capacity(entries.len());
        for entry in entries.iter().filter(|e| e.mode != Mode::Submodule) {
            let meta = fs::symlink_metadata(place.dest.join(entry.path.as_str()));
            let stat = meta.ok().and_then(|meta| Stat::of(&meta));
            let (size, mtime) = stat.map_or((0, 0), |s| (s.size, s.mtime));
            let id = super::place::blob_id(entry, tree)?;
            files.push(Recorded { path: entry.path.clone(), mode: entry.mode, size, mtime, id });
        }
        // No engine's: the tree is not taken for one that needs nothing.
        let stamp = Stamp { identity: identity.clone(), engine: String::new(), files };
        let mut survey = Self {
            place: place.dest.clone(),
            stamp,
            findings: Vec::new(),
            hashed: 0,
            foreign: Vec::new(),
        };
        survey.compare(Depth::Hash, i64::MIN);
        Ok(survey)
    }

    fn compare(&mut self, depth: Depth, stamped: i64) {
        let mut there: Vec<(PathBuf, Option<Stat>)> = Vec::with_capacity(self.stamp.files.len());
        let mut unreadable = Vec::new();
        let root = self.place.clone();
        let walked: Result<(), std::convert::Infallible> =
            disk::walk(&root, disk::Skip::Stamp, |found| {
                match found {
                    Ok((path, meta)) => there.push((path.into(), Stat::of(meta))),
                    Err(error) => {
                        let top = error.path.as_os_str().is_empty();
                        let path = if top { Path::new(".") } else { &error.path };
                        let path = path.to_string_lossy().into_owned();
                        unreadable.push(Finding::Unreadable { path, why: error.to_string() });
                    }
                }
                Ok(())
            });
        match walked {
            Ok(()) => {}
            Err(never) => match never {},
        }
        there.sort_unstable_by(|a, b| a.0.as_os_str().cmp(b.0.as_os_str()));

        let mut there = there.into_iter().peekable();
        for recorded in &self.stamp.files {
            let wanted = Path::new(recorded.path.as_str()).as_os_str();
            while let Some((path, _)) = there.next_if(|(p, _)| p.as_os_str() < wanted) {
                self.foreign.push(path);
            }
            let Some((_, stat)) = there.next_if(|(p, _)| p.as_os_str() == wanted) else {
                self.findings.push(Finding::Missing { path: recorded.path.clone() });
                continue;
            };
            let finding = look(&root, recorded, stat, depth, stamped, &mut self.hashed);
            self.findings.extend(finding);
        }
        self.foreign.extend(there.map(|(path, _)| path));
        self.findings.extend(unreadable);
        let extra = self.extra();
        self.findings.extend(extra);
    }

    /// A finding for each foreign file, and one alone for a foreign folder: a
    /// build's outputs are many.
    fn extra(&self) -> Vec<Finding> {
        if self.foreign.is_empty() {
            return Vec::new();
        }
        let folders: BTreeSet<_> = self.stamp.files.iter().flat_map(|r| r.path.parents()).collect();
        let is_ours = |p: &Path| {
            p.to_str().and_then(|p| TreePath::new(p).ok()).is_some_and(|p| folders.contains(&p))
        };
        let mut findings = Vec::new();
        for path in &self.foreign {
            // From the file upwards; the last that is not ours is the topmost.
            let top = path
                .ancestors()
                .take_while(|p| !p.as_os_str().is_empty() && !is_ours(p))
                .last()
                .unwrap_or(path);
            let slash = if top == path { "" } else { "/" };
            let finding = Finding::Extra { path: format!("{}{slash}", top.to_string_lossy()) };
            if findings.last() != Some(&finding) {
                findings.push(finding);
            }
        }
        findings
    }
}

/// The edit of a file as it was published, found by its bytes alone.
pub(super) fn edited(root: &Path, recorded: &Recorded) -> Option<Finding> {
    let meta = fs::symlink_metadata(root.join(recorded.path.as_str())).ok()?;
    look(root, recorded, Stat::of(&meta), Depth::Hash, i64::MIN, &mut 0)
}

fn look(
    root: &Path,
    recorded: &Recorded,
    stat: Option<Stat>,
    depth: Depth,
    stamped: i64,
    hashed: &mut usize,
) -> Option<Finding> {
    let path = || recorded.path.clone();
    let unreadable = |why: &dyn fmt::Display| {
        Some(Finding::Unreadable { path: path().to_string(), why: why.to_string() })
    };
    let Some(stat) = stat else { return unreadable(&"it is no file any more") };
    let same = stat.size == recorded.size && stat.mtime == recorded.mtime && stat.mtime < stamped;
    if stat.mode == recorded.mode && same && depth == Depth::Stat {
        return None;
    }
    *hashed += 1;
    let found = match disk::read(&root.join(recorded.path.as_str()), stat.mode) {
        Ok(bytes) => ObjectId::of_blob(&bytes),
        Err(error) => return unreadable(&error),
    };
    if found != recorded.id {
        return Some(Finding::Modified { path: path(), expected: recorded.id, found });
    }
    let (expected, found) = (recorded.mode, stat.mode);
    (expected != found).then(|| Finding::ModeChanged { path: path(), expected, found })
}
