//! A rebase that is under way, kept in a folder of the project:
//!
//! ```text
//! .overlay-rebase/state.json   what is being done, and what was decided
//! .overlay-rebase/lock         held by the process that works on it
//! .overlay-rebase/work/…       the files a person must finish
//! .overlay-rebase/draft/…      these and the next, until the stop is kept in the state
//! .overlay-rebase/sides/…      upstream/, pin/ and entry/: what stands there of those
//!                              that cannot be merged
//! ```
//!
//! The state holds decisions alone; everything else is planned again from the
//! series and the trees. So a kill at any point loses nothing that was decided. A
//! person finds no file of a stop before the state has it: what is edited is known for
//! an answer.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::derive::Rule;
use crate::pin::{PIN_FILE, Pin, Project};
use crate::series::{Change, SERIES_FILE, Series};
use crate::snapshot::{ObjectId, TreePath};
use crate::work_folder::{self, LOCK, Owner};

use super::lock::lock;
use super::publish::{clear, io, remove, require_free, restore, write};
use super::work::{SIDES, WORK, changed_sides, in_work, no_file, strangers, unlisted, write_work};
use super::{Decision, Decisions, Part, RebaseError, plan, taken};

pub use super::work::{Unresolved, sides_folder, work_folder, work_path};

/// The folder, beside `mlx-pin.toml`.
pub const FOLDER: &str = ".overlay-rebase";
pub(super) const STATE: &str = "state.json";
const DRAFT: &str = "draft";
const SCHEMA: u32 = 1;

/// What is being done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The form of this file.
    pub schema: u32,
    /// The pin that the series was made for.
    pub from: ObjectId,
    /// The commit to move to.
    pub to: ObjectId,
    /// What the target was called.
    pub name: String,
    /// The clone of upstream that has it.
    pub upstream: String,
    /// A hash of the series, so that a change of it on the way is found.
    pub series: String,
    /// What was decided.
    pub decisions: Decisions,
    /// The entry, or `contracts`, where a person must decide.
    pub stopped: Option<String>,
    /// The contracts of the last stop, each by kind and name.
    #[serde(default)]
    pub contracts: Vec<String>,
    /// The files of the last stop, as they are named in the work folder.
    #[serde(default)]
    pub files: Vec<TreePath>,
    /// What lies in the work folder, if anything, is part of what was decided.
    #[serde(default)]
    pub taken: bool,
    /// The new pin is being written.
    pub publishing: bool,
}

/// A rebase that this process works on.
pub struct Session {
    root: PathBuf,
    /// What is being done.
    pub state: State,
    _lock: fs::File,
}

impl State {
    /// The beginning of a rebase.
    #[must_use]
    pub fn new(series: &Series, from: ObjectId, to: ObjectId, name: &str, upstream: &str) -> Self {
        Self {
            schema: SCHEMA,
            from,
            to,
            name: name.into(),
            upstream: upstream.into(),
            series: digest(series),
            decisions: Decisions::default(),
            stopped: None,
            contracts: Vec::new(),
            files: Vec::new(),
            taken: false,
            publishing: false,
        }
    }
}

/// A hash of all that a series is made of.
fn digest(series: &Series) -> String {
    let mut hash = Sha256::new();
    let file = fs::read(series.folder.join(SERIES_FILE)).unwrap_or_default();
    hash.update(&file);
    for entry in &series.entries {
        if let Change::Patch { bytes, .. } = &entry.change {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// The state of a rebase under way in the project, without taking it up.
///
/// # Errors
/// It cannot be read.
pub fn standing(root: &Path) -> Result<Option<State>, RebaseError> {
    let path = root.join(FOLDER).join(STATE);
    let is_none = |what: &str| {
        let what = format!("it is {what}, and no state of a rebase; move it away");
        RebaseError::State { path: path.clone(), what }
    };
    // A pipe would be waited for.
    if fs::metadata(&path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return Err(is_none("no file"));
    }
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        // A file in the folder's place is a user's, and told where a folder is needed.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) if e.kind() == ErrorKind::IsADirectory => return Err(is_none("a folder")),
        Err(e) => return Err(io(&path, "cannot be read")(e)),
    };
    let wrong = |what: String| RebaseError::State { path: path.clone(), what };
    let state: State = serde_json::from_slice(&bytes).map_err(|e| {
        wrong(format!(
            "{e}; what was decided is lost: remove the folder {FOLDER} and begin again \
                 (`overlay pin` names what it may have left)"
        ))
    })?;
    if state.schema != SCHEMA {
        return Err(wrong(format!("schema {} is of another version of overlay", state.schema)));
    }
    Ok(Some(state))
}

impl Session {
    /// Begins a rebase. It is under way once it stops or the new pin is being written.
    ///
    /// # Errors
    /// One is under way, the target's folder is there already, or the session's
    /// cannot be written.
    pub fn begin(root: &Path, state: State) -> Result<Self, RebaseError> {
        // What another process has put there is told by what it is.
        let lock = lock(root)?;
        if standing(root)?.is_some() {
            return Err(RebaseError::State {
                path: root.join(FOLDER),
                what: "a rebase is under way; `--continue` or `--abort` it".into(),
            });
        }
        let free = require_pin(root, state.from).and_then(|()| require_free(root, state.to));
        if free.is_err() && require_own(root, &[]).is_ok() {
            sweep(&root.join(FOLDER))?;
        }
        free.map(|()| Self { root: root.to_path_buf(), state, _lock: lock })
    }

    /// Takes up the rebase under way; nothing where there is none.
    ///
    /// # Errors
    /// It cannot be read, or another process works on it.
    pub fn resume(root: &Path) -> Result<Option<Self>, RebaseError> {
        if !root.join(FOLDER).is_dir() {
            return Ok(None);
        }
        let lock = lock(root)?;
        let state = standing(root)?;
        Ok(state.map(|state| Self { root: root.to_path_buf(), state, _lock: lock }))
    }

    /// Fails where the series is another than when the rebase began.
    ///
    /// # Errors
    /// It is.
    pub fn require_same(&self, series: &Series) -> Result<(), RebaseError> {
        if digest(series) == self.state.series {
            return Ok(());
        }
        Err(RebaseError::State {
            path: series.folder.clone(),
            what: "the series was changed since the rebase began; take the change back, or \
                   `overlay rebase --abort` and begin again"
                .into(),
        })
    }

    /// Writes the state.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self) -> Result<(), RebaseError> {
        let text = serde_json::to_vec_pretty(&self.state).expect("the state has text keys");
        write(&self.root.join(FOLDER).join(STATE), &text)
    }

    /// Stops at `what`, and writes the files a person must finish; files of the
    /// same stop that are there already are a person's, and stay.
    ///
    /// # Errors
    /// They cannot be written, or the work folder holds what no stop put there.
    pub fn stop(&mut self, what: &str, parts: &[Part]) -> Result<(), RebaseError> {
        let stands = self.state.stopped.as_deref() == Some(what);
        if stands && work_folder(&self.root).is_dir() {
            return self.save();
        }
        if !stands {
            // The files of the stop before are part of what was decided.
            let own = if self.state.taken { &self.state.files[..] } else { &[] };
            require_own(&self.root, own)?;
        }
        self.write_stop(what, parts)
    }

    /// Fails where the session's folder holds what the rebase did not put there: with the
    /// folder it would be lost.
    ///
    /// # Errors
    /// It does, or cannot be looked into.
    pub fn require_own(&self) -> Result<(), RebaseError> {
        require_own(&self.root, &self.state.files)
    }

    /// Writes the files of a stop: in place only once the state has the stop.
    fn write_stop(&mut self, what: &str, parts: &[Part]) -> Result<(), RebaseError> {
        let folder = self.root.join(FOLDER);
        let draft = folder.join(DRAFT);
        remove(&draft)?;
        self.clear_work()?;
        if in_work(parts).next().is_some() {
            let work = draft.join(WORK);
            fs::create_dir_all(&work).map_err(io(&work, "cannot be made"))?;
        }
        in_work(parts).try_for_each(|file| write_work(&draft, file))?;
        self.state.stopped = Some(what.into());
        self.state.files = in_work(parts).map(|file| file.path.clone()).collect();
        self.state.taken = false;
        self.save()?;
        // The work folder last: where it is missing, all of it is written again.
        for name in [SIDES, WORK].into_iter().filter(|name| draft.join(name).is_dir()) {
            let place = folder.join(name);
            fs::rename(draft.join(name), &place).map_err(io(&place, "cannot be put in place"))?;
        }
        remove(&draft)
    }

    /// Writes the files of the stop again where the work folder is gone, or was never
    /// put in place: that nothing is there is no answer.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn rewritten(&mut self, parts: &[Part]) -> Result<Option<Unresolved>, RebaseError> {
        let path = work_folder(&self.root);
        let (Some(what), Some(_)) = (self.state.stopped.clone(), in_work(parts).next()) else {
            return Ok(None);
        };
        if path.is_dir() {
            return Ok(None);
        }
        if let Some(changed) = changed_sides(&self.root, parts)? {
            return Ok(Some(changed));
        }
        self.write_stop(&what, parts)?;
        Ok(Some(Unresolved::NoFolder { path }))
    }

    /// What a person's files make of an entry: its new patch, with the prose of the
    /// entry's own. Nothing is decided yet.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn taken(&self, parts: &[Part]) -> Result<Result<Decision, Unresolved>, RebaseError> {
        Ok(taken::patch(&self.root, parts)?.map(Decision::Patch))
    }

    /// As [`Session::taken`], of an entry that derives a function by the rule
    /// `original`.
    ///
    /// # Errors
    /// The file cannot be read, or holds no rule.
    pub fn taken_rule(
        &self,
        entry: &str,
        original: &Rule,
    ) -> Result<Result<Decision, Unresolved>, RebaseError> {
        let rule = plan::rule_path(entry);
        if let Some(unlisted) = unlisted(&self.root, rule.iter())? {
            return Ok(Err(unlisted));
        }
        let file = rule.map(|path| work_path(&self.root, &path));
        let found = file.and_then(|path| Some((path.symlink_metadata().ok()?, path)));
        let Some((meta, path)) = found else { return Ok(Err(Unresolved::Nothing)) };
        if let Some(what) = no_file(&meta) {
            return Ok(Err(Unresolved::NoFile { path, what }));
        }
        let text = fs::read_to_string(&path).map_err(io(&path, "cannot be read"))?;
        let rule: Rule = toml::from_str(&text)
            .map_err(|e| RebaseError::State { path: path.clone(), what: e.to_string() })?;
        let before = match self.state.decisions.entries.get(entry) {
            Some(Decision::Rule(rule)) => rule,
            _ => original,
        };
        if rule == (Rule { acknowledged: Vec::new(), ..before.clone() }) {
            return Ok(Err(Unresolved::SameRule { path }));
        }
        Ok(Ok(Decision::Rule(rule)))
    }

    /// Goes on from contracts, for which no file has to be finished.
    ///
    /// # Errors
    /// The work folder cannot be read.
    pub fn take_nothing(&self) -> Result<Result<(), Unresolved>, RebaseError> {
        Ok(unlisted(&self.root, [])?.map_or(Ok(()), Err))
    }

    /// Records a decision on an entry.
    ///
    /// # Errors
    /// The state cannot be written.
    pub fn decide(&mut self, entry: &str, decision: Decision) -> Result<(), RebaseError> {
        self.state.decisions.entries.insert(entry.into(), decision);
        self.state.stopped = None;
        self.state.taken = true;
        self.save()?;
        self.clear_work()
    }

    /// Removes what was written for a person.
    fn clear_work(&self) -> Result<(), RebaseError> {
        remove(&work_folder(&self.root))?;
        remove(&sides_folder(&self.root))
    }

    /// Records that the new pin is about to be written, and takes away what an
    /// earlier try left.
    ///
    /// # Errors
    /// The target's folder is there and not of this rebase, the session's holds what is
    /// not of it, or the state cannot be written.
    pub fn publishing(&mut self, project: &Project) -> Result<(), RebaseError> {
        self.require_own()?;
        if !self.state.publishing {
            require_free(&self.root, self.state.to)?;
        } else if project.current.commit == self.state.from {
            clear(&self.root, self.state.from, self.state.to)?;
        }
        self.state.publishing = true;
        self.save()
    }

    /// Whether the pin has moved already: only this folder is left to remove.
    #[must_use]
    pub fn is_done(&self, project: &Project) -> bool {
        self.state.publishing && project.current.commit == self.state.to
    }

    /// Ends the rebase: the folder goes.
    ///
    /// # Errors
    /// It cannot be removed, or holds what is not of the rebase.
    pub fn end(self) -> Result<(), RebaseError> {
        self.require_own()?;
        // While the state is there a rebase is under way, and while the lock is
        // the folder is known for ours: so they go last, in this order.
        self.clear_work()?;
        let folder = self.root.join(FOLDER);
        let state = folder.join(STATE);
        fs::remove_file(&state).map_err(io(&state, "cannot be removed"))?;
        sweep(&folder)
    }

    /// Takes away what a rebase left that was killed before it had begun, or
    /// while it ended. Says whether there was anything.
    ///
    /// # Errors
    /// It cannot be removed, or another process works on it.
    pub fn clear_rest(root: &Path) -> Result<bool, RebaseError> {
        let folder = root.join(FOLDER);
        if !folder.is_dir() {
            return Ok(false);
        }
        let owner =
            work_folder::owner(&folder, &[STATE]).map_err(io(&folder, "cannot be looked into"))?;
        match owner {
            Owner::Overlay => {}
            // The lock goes last: what holds nothing any more is the folder alone.
            Owner::Nobody => {
                fs::remove_dir(&folder).map_err(io(&folder, "cannot be removed"))?;
                return Ok(true);
            }
            Owner::Other(_) => return Ok(false),
        }
        let _lock = lock(root)?;
        if standing(root)?.is_some() {
            return Ok(false);
        }
        require_own(root, &[])?;
        sweep(&folder)?;
        Ok(true)
    }

    /// Gives the rebase up: everything is as it was, a pin that has moved
    /// already included.
    ///
    /// # Errors
    /// A file cannot be written or removed, or the session's folder holds what is not of
    /// the rebase; nothing is given up then.
    pub fn abort(self, project: &Project) -> Result<(), RebaseError> {
        self.require_own()?;
        if self.is_done(project) {
            restore(&self.root, self.state.from)?;
        }
        if self.state.publishing {
            clear(&self.root, self.state.from, self.state.to)?;
        }
        self.end()
    }
}

/// Fails where the project's pin is another than it was when the rebase was planned.
fn require_pin(root: &Path, from: ObjectId) -> Result<(), RebaseError> {
    let path = root.join(PIN_FILE);
    match Pin::load(root, &path) {
        Ok(pin) if pin.commit != from => {
            let what = format!("another process moved the pin to {} meanwhile", pin.commit);
            Err(RebaseError::Busy { path, what })
        }
        _ => Ok(()),
    }
}

/// Fails where a session's folder holds what a rebase did not put there, whose stop has
/// the files `own`.
fn require_own(root: &Path, own: &[TreePath]) -> Result<(), RebaseError> {
    let found = strangers(root, own, &[STATE, LOCK, DRAFT])?;
    let Some(first) = found.first() else { return Ok(()) };
    let rest = found[1..].iter().map(|path| format!(", {}", path.display()));
    let what = format!(
        "the rebase did not put it there, and with the rebase's folder it would be lost; move it \
         away, then say it again{}",
        match rest.collect::<String>() {
            rest if rest.is_empty() => rest,
            rest => format!(" (and so{rest})").replacen(", ", " ", 1),
        }
    );
    Err(RebaseError::State { path: first.clone(), what })
}

/// Removes a session's folder, the lock last.
fn sweep(folder: &Path) -> Result<(), RebaseError> {
    for item in fs::read_dir(folder).map_err(io(folder, "cannot be listed"))? {
        let path = item.map_err(io(folder, "cannot be listed"))?.path();
        if path.file_name().is_some_and(|name| name == LOCK) {
            continue;
        }
        let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        gone.map_err(io(&path, "cannot be removed"))?;
    }
    remove(folder)
}
