//! A patch laid on a tree in memory: every file, every hunk, and a report of
//! what landed where. Nothing is written; the caller publishes the snapshot's
//! edits, or drops them where the report does not hold.

mod content;
mod judged;
mod moves;

pub(crate) use self::content::{edited, one_site_each};
use self::content::{is_indexed, made};
use self::judged::Judged;
use self::moves::Moves;
use crate::locate::Text;
use crate::moved::{find_moved, likely};
use crate::patch::names::{self, Names, Prefixes};
use crate::patch::{Body, FilePatch, Operation, Patch, Reason, Refusal};
use crate::report::{FileReport, HunkClass, HunkReport, PatchReport};
use crate::snapshot::{File, Mode, ReadError, Snapshot, Tree, TreePath};

const OTHER_BYTES: &str = "upstream changed the binary file: its bytes are not those that the \
                           change was made for";

/// Why a patch could not be judged at all.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The patch is unsafe or malformed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A file of the tree cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl ApplyError {
    /// A refusal that has no place in the patch is of the file patch.
    fn in_file(self, file: &FilePatch) -> Self {
        match self {
            Self::Refused(refusal) => Self::Refused(refusal.in_file(file)),
            read => read,
        }
    }
}

/// The trees a series is laid on, and what is done to them so far.
pub struct Ground<'t> {
    /// The tree to change.
    pub target: Snapshot<'t>,
    /// The tree the series was made for, kept in step patch by patch, where it
    /// is at hand.
    pub base: Option<Snapshot<'t>>,
}

impl<'t> Ground<'t> {
    /// A tree alone: a hunk's place is what it states and what stands there.
    #[must_use]
    pub fn alone(target: &'t dyn Tree) -> Self {
        Self { target: Snapshot::new(target), base: None }
    }

    /// A tree, and the one the series was made for: places are mapped.
    #[must_use]
    pub fn mapped(base: &'t dyn Tree, target: &'t dyn Tree) -> Self {
        Self { target: Snapshot::new(target), base: Some(Snapshot::new(base)) }
    }

    /// Lays one patch on the target, and on the base so that the next patch
    /// finds the text it was made for. What holds is applied even where its
    /// neighbour does not, so that the report covers what follows; a caller
    /// that wants all or nothing looks at [`PatchReport::holds`] and drops the
    /// ground.
    ///
    /// # Errors
    /// The patch is refused, or a file cannot be read. The target may then
    /// hold part of the patch: drop it.
    pub fn apply(
        &mut self,
        name: &str,
        patch: &Patch,
        strip: usize,
    ) -> Result<PatchReport, ApplyError> {
        let exists = |path: &TreePath| self.has(path);
        let prefixes = names::prefixes(patch, &exists);
        let mut report = PatchReport { name: name.to_string(), files: vec![], hunks: vec![] };
        for commit in patch.commits() {
            let mut moves = Moves::of(commit, strip, prefixes, self);
            for file in commit {
                let judged = self.apply_file(file, strip, prefixes, &mut moves);
                let judged = judged.map_err(|e| e.in_file(file))?;
                report.files.push(judged.file);
                let before = report.hunks.len();
                let of_patch =
                    |hunk: HunkReport| HunkReport { number: before + hunk.number, ..hunk };
                report.hunks.extend(judged.hunks.into_iter().map(of_patch));
            }
        }
        self.turn_down_clashes(&mut report);
        Ok(report)
    }

    /// No name is a file's and a folder's. Asked when the whole patch is laid:
    /// git puts the new file before the files of the folder that it replaces.
    fn turn_down_clashes(&self, report: &mut PatchReport) {
        let is_new = |f: &&mut FileReport| f.class.holds() && f.operation != "modify";
        for file in report.files.iter_mut().filter(is_new) {
            if self.target.mode(&file.path).is_none() {
                continue;
            }
            let inside = self.target.inside(&file.path);
            let above = file.path.parents().find(|p| self.target.mode(p).is_some());
            let why = match (inside, above) {
                (Some(inside), _) => format!("a folder has its name, with `{inside}` in it"),
                (_, Some(above)) => format!("`{above}` is a file, not a folder"),
                (None, None) => continue,
            };
            for hunk in report.hunks.iter_mut().filter(|h| h.file == file.path) {
                hunk.class = HunkClass::Conflict;
                (hunk.line, hunk.new_line) = (None, None);
                hunk.why = Some(why.clone());
            }
            file.class = HunkClass::Conflict;
            file.why = Some(why);
        }
    }

    /// Lays one patch on the base alone: a patch of a series that is left out
    /// of the tree, and whose lines those after it were made for.
    ///
    /// # Errors
    /// As [`Ground::apply`].
    pub fn pass_over(&mut self, patch: &Patch, strip: usize) -> Result<(), ApplyError> {
        let Some(base) = self.base.take() else { return Ok(()) };
        let mut own = Ground { target: base, base: None };
        let exists = |path: &TreePath| own.target.mode(path).is_some();
        let prefixes = names::prefixes(patch, &exists);
        for commit in patch.commits() {
            let mut moves = Moves::of(commit, strip, prefixes, &own);
            for file in commit {
                let names = names::resolve(file, strip, prefixes, &|path| own.has(path))?;
                let judged = own.judge_among(&moves, file, &names, Text::Base);
                let judged = judged.map_err(|e| e.in_file(file))?;
                moves.see(names.operation, &judged.edits);
                edit(&mut own.target, judged.edits);
            }
        }
        self.base = Some(own.target);
        Ok(())
    }

    fn has(&self, path: &TreePath) -> bool {
        let base = self.base.as_ref();
        self.target.mode(path).is_some() || base.is_some_and(|b| b.mode(path).is_some())
    }

    fn apply_file(
        &mut self,
        patch: &FilePatch,
        strip: usize,
        prefixes: Prefixes,
        moves: &mut Moves<'t>,
    ) -> Result<Judged, ApplyError> {
        let names = names::resolve(patch, strip, prefixes, &|path| self.has(path))?;
        for path in names.old.iter().chain(&names.new) {
            // A folder that upstream made a link holds no files any more: that is judged.
            let base = self.base.as_ref();
            if base.is_none_or(|base| names::check_no_link_above(base, path).is_err()) {
                names::check_no_link_above(&self.target, path)?;
            }
        }
        let mut judged = self.judge_among(moves, patch, &names, Text::Unknown)?;
        match (names.operation, &names.old, &names.new) {
            (Operation::Delete, Some(old), _) if moves.anew.contains(old) => {
                judged =
                    Judged::new(Operation::Delete, old.clone(), None).all(HunkClass::Landed, patch);
            }
            (Operation::Delete, Some(old), _) if judged.file.class == HunkClass::Landed => {
                moves.gone.insert(old.clone());
            }
            (Operation::Create, _, Some(new))
                if moves.gone.contains(new) && judged.file.class.holds() =>
            {
                let why = "upstream took away the file that the patch puts this in the place of";
                judged = Judged::new(Operation::Create, new.clone(), None).none(
                    HunkClass::Conflict,
                    why,
                    patch,
                );
            }
            _ => {}
        }
        for (path, file) in judged.edits.iter().filter_map(|(p, f)| Some((p, f.as_ref()?))) {
            names::check_link_target(path, file)?;
        }
        if let Some(base) = &mut self.base {
            // A change in place does the same to the same file.
            let in_place = names.old.as_ref().filter(|_| names.operation == Operation::Modify);
            let edits = match in_place {
                Some(path) if self.target.file(path)? == base.file(path)? => judged.edits.clone(),
                _ => {
                    let own = Ground { target: base.clone(), base: None };
                    own.judge_among(&moves.of_base(), patch, &names, Text::Base)?.edits
                }
            };
            edit(base, edits);
        }
        moves.see(names.operation, &judged.edits);
        edit(&mut self.target, std::mem::take(&mut judged.edits));
        Ok(judged)
    }

    /// As [`Ground::judge`], for a file patch of a commit that moves files.
    fn judge_among(
        &self,
        moves: &Moves<'t>,
        patch: &FilePatch,
        names: &Names,
        known: Text,
    ) -> Result<Judged, ApplyError> {
        match moves.ground_of(patch, names, self)? {
            Some(ground) => {
                let mut judged = ground.judge(patch, names, known)?;
                judged.edits.retain(|(path, file)| file.is_some() || !moves.written.contains(path));
                Ok(judged)
            }
            None => self.judge(patch, names, known),
        }
    }

    /// What the file patch does to the target, decided and not yet done.
    fn judge(&self, patch: &FilePatch, names: &Names, known: Text) -> Result<Judged, ApplyError> {
        match (names.operation, &names.old, &names.new) {
            (Operation::Delete, Some(old), _) => self.delete(patch, old, known),
            (_, Some(old), Some(new)) => self.modify(patch, names.operation, old, new, known),
            (_, _, Some(new)) => self.create(patch, new),
            (_, _, None) => Err(Refusal::new(
                Reason::Malformed,
                "the file patch names no file",
                "make the patch again",
            )
            .into()),
        }
    }

    fn create(&self, patch: &FilePatch, path: &TreePath) -> Result<Judged, ApplyError> {
        let new = made(patch)?;
        let judged = Judged::new(Operation::Create, path.clone(), None);
        let there = self.target.file(path)?;
        let blocked = path.parents().find(|p| self.target.mode(p).is_some());
        match there {
            Some(file) if file == new => Ok(judged.all(HunkClass::Landed, patch)),
            Some(_) => Ok(judged.none(
                HunkClass::Conflict,
                "the file is there already, with other bytes",
                patch,
            )),
            None if blocked.is_some() => {
                let link = blocked.is_some_and(|p| self.target.mode(&p) == Some(Mode::Symlink));
                let what = if link { "a symbolic link" } else { "a file" };
                let why = format!("{what} stands where its folder should be");
                Ok(judged.none(HunkClass::Conflict, &why, patch))
            }
            None => Ok(judged.all(HunkClass::Exact, patch).edit(path.clone(), Some(new))),
        }
    }

    fn delete(
        &self,
        patch: &FilePatch,
        path: &TreePath,
        known: Text,
    ) -> Result<Judged, ApplyError> {
        let judged = Judged::new(Operation::Delete, path.clone(), None);
        let Some(file) = self.target.file(path)? else {
            let was = match &self.base {
                Some(base) => base.file(path)?.map(|was| (base, was)),
                None if known == Text::Base => return Ok(judged.all(HunkClass::Landed, patch)),
                None => None,
            };
            let Some((base, was)) = was else {
                let why = "the file to delete is not there";
                return Ok(judged.none(HunkClass::FileDeleted, why, patch));
            };
            let names = likely(path, &was, base.unedited(), self.target.unedited())?;
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let (may, names) = match &names[..] {
                [] => return Ok(judged.all(HunkClass::Landed, patch)),
                [one] => ("", one.clone()),
                several => ("may have ", several.join(" or ")),
            };
            let why = format!("upstream {may}renamed the file to {names}");
            return Ok(judged.none(HunkClass::Conflict, &why, patch));
        };
        if let Some(why) = self.is_other_kind(path, &file) {
            return Ok(judged.none(HunkClass::Conflict, &why, patch));
        }
        let rest = self.content(patch, path, path, &file, known)?;
        if rest.binary != HunkClass::Exact || rest.hunks.iter().any(|h| !h.class.holds()) {
            let why = "the file to delete has changed";
            return Ok(judged.hunks(HunkClass::Conflict, Some(why), rest.hunks));
        }
        if !rest.bytes.is_empty() {
            return Ok(judged.none(
                HunkClass::Conflict,
                "the file to delete holds more than the patch takes away",
                patch,
            ));
        }
        Ok(judged.hunks(HunkClass::Exact, None, rest.hunks).edit(path.clone(), None))
    }

    /// Why a change of the file has nothing to hold on to: it is a link where the base
    /// has a file, or the other way round.
    fn is_other_kind(&self, path: &TreePath, file: &File) -> Option<String> {
        let (is, was) = (file.mode.kind(), self.base.as_ref()?.mode(path)?.kind());
        let noun = |mode| match mode {
            Mode::Symlink => "a symbolic link",
            Mode::Submodule => "a submodule",
            Mode::Regular | Mode::Executable => "a file",
        };
        (is != was).then(|| {
            format!("upstream made it {}, and the patch is made for {}", noun(is), noun(was))
        })
    }

    /// A change in place, a rename (`from` goes) or a copy (it stays).
    fn modify(
        &self,
        patch: &FilePatch,
        operation: Operation,
        from: &TreePath,
        to: &TreePath,
        known: Text,
    ) -> Result<Judged, ApplyError> {
        let renamed = from != to;
        let judged = Judged::new(operation, to.clone(), renamed.then(|| from.clone()));
        let Some(file) = self.target.file(from)? else {
            return self.modify_absent(patch, operation, from, to);
        };
        if renamed && self.target.mode(to).is_some() {
            let copied = match operation {
                Operation::Copy => self.result_there(patch, operation, [from, to])?,
                _ => None,
            };
            return Ok(match copied {
                Some(hunks) => judged.hunks(HunkClass::Landed, None, hunks),
                None => judged.none(HunkClass::Conflict, "the new name is taken", patch),
            });
        }
        if file.mode == Mode::Submodule {
            return Ok(judged.none(HunkClass::Conflict, "it is a submodule", patch));
        }
        if let Some(why) = self.is_other_kind(from, &file) {
            return Ok(judged.none(HunkClass::Conflict, &why, patch));
        }
        let moved_whole = renamed && no_change(patch);
        if file.mode == Mode::Symlink && patch.new_mode != Some(Mode::Symlink) && !moved_whole {
            let why = "it is a symbolic link here, and the patch is made for a file";
            return Ok(judged.none(HunkClass::Conflict, why, patch));
        }
        let (mode, mode_class) = match new_mode(patch, file.mode) {
            Ok(mode) => mode,
            Err(why) => return Ok(judged.none(HunkClass::Conflict, &why, patch)),
        };
        let content = self.content(patch, from, to, &file, known)?;
        if content.binary == HunkClass::Conflict {
            return Ok(judged.none(HunkClass::Conflict, OTHER_BYTES, patch));
        }
        let landed = content.binary == HunkClass::Landed;
        let class = match &patch.body {
            Body::Text(_) if renamed => HunkClass::Exact,
            Body::Text(_) => mode_class,
            // A binary change has no hunks to tell of it.
            _ if landed && !renamed && mode == file.mode => HunkClass::Landed,
            _ if landed => HunkClass::Moved,
            _ => HunkClass::Exact,
        };
        let judged = judged.hunks(class, None, content.hunks);
        let judged = if renamed && operation == Operation::Rename {
            judged.edit(from.clone(), None)
        } else {
            judged
        };
        Ok(judged.edit(to.clone(), Some(File::new(mode, content.bytes))))
    }

    /// The file to change is not there: it has another name now, or it is gone.
    fn modify_absent(
        &self,
        patch: &FilePatch,
        operation: Operation,
        from: &TreePath,
        to: &TreePath,
    ) -> Result<Judged, ApplyError> {
        let judged = Judged::new(operation, to.clone(), (from != to).then(|| from.clone()));
        let Some(was) = self.base.as_ref().map(|b| b.file(from)).transpose()?.flatten() else {
            return Ok(judged.none(HunkClass::FileDeleted, "the tree has no such file", patch));
        };
        let base = self.base.as_ref().expect("`was` came from it");
        if from != to
            && let Some(hunks) = self.result_there(patch, operation, [from, to])?
        {
            return Ok(judged.hunks(HunkClass::Landed, None, hunks));
        }
        // Upstream renames files; what the series makes is no new name of any.
        let moved = find_moved(from, &was, base.unedited(), self.target.unedited())?;
        let moved = match moved {
            Some(now) => self.target.file(&now)?.map(|file| (now, file)),
            None => None,
        };
        let Some((now, file)) = moved else {
            let why = "upstream took the file away";
            return Ok(judged.none(HunkClass::FileDeleted, why, patch));
        };
        // Upstream may have renamed it as the patch does, and changed more.
        let has_name = operation == Operation::Rename && now == *to && base.mode(to).is_none();
        if from != to && !has_name {
            let why = format!("upstream renamed the file to `{now}`");
            return Ok(judged.none(HunkClass::Conflict, &why, patch));
        }
        let mode = match new_mode(patch, file.mode) {
            Ok((mode, _)) => mode,
            Err(why) => return Ok(judged.none(HunkClass::Conflict, &why, patch)),
        };
        let mut content = self.content(patch, from, &now, &file, Text::Unknown)?;
        match content.binary {
            HunkClass::Conflict => {
                return Ok(Judged::new(operation, now, Some(from.clone())).none(
                    HunkClass::Conflict,
                    OTHER_BYTES,
                    patch,
                ));
            }
            HunkClass::Landed if mode == file.mode => {
                let judged = Judged::new(operation, now, Some(from.clone()));
                return Ok(judged.all(HunkClass::Landed, patch));
            }
            _ => {}
        }
        let landed = |h: &HunkReport| h.class == HunkClass::Landed;
        let class = match (has_name, mode == file.mode && content.hunks.iter().all(landed)) {
            (true, true) => HunkClass::Landed,
            (true, false) => HunkClass::Moved,
            (false, _) => {
                let placed = |h: &&mut HunkReport| h.class.holds() && !landed(h);
                let placed = content.hunks.iter_mut().filter(placed);
                placed.for_each(|h| h.class = HunkClass::FileMoved);
                HunkClass::FileMoved
            }
        };
        Ok(Judged::new(operation, now.clone(), Some(from.clone()))
            .hunks(class, None, content.hunks)
            .edit(now, Some(File::new(mode, content.bytes))))
    }

    /// The hunks of a move, landed, where upstream has a file of the new name that
    /// the pin has not: byte for byte what the patch makes of the old one in the
    /// base.
    fn result_there(
        &self,
        patch: &FilePatch,
        operation: Operation,
        [from, to]: [&TreePath; 2],
    ) -> Result<Option<Vec<HunkReport>>, ApplyError> {
        let (Some(base), Some(there)) = (&self.base, self.target.unedited().file(to)?) else {
            return Ok(None);
        };
        let is_new = base.unedited().mode(to).is_none() && base.mode(to).is_none();
        if !is_new || base.mode(from).is_none() || self.target.file(to)?.as_ref() != Some(&there) {
            return Ok(None);
        }
        let own = Ground { target: base.clone(), base: None };
        let made = own.modify(patch, operation, from, to, Text::Base)?;
        let is_it =
            |(path, file): &(TreePath, Option<File>)| path == to && file.as_ref() == Some(&there);
        let landed = |h| HunkReport { class: HunkClass::Landed, line: None, ..h };
        Ok(made.edits.iter().any(is_it).then(|| made.hunks.into_iter().map(landed).collect()))
    }
}

fn no_change(patch: &FilePatch) -> bool {
    matches!(&patch.body, Body::Text(hunks) if hunks.is_empty())
}

fn edit(snapshot: &mut Snapshot, edits: Vec<(TreePath, Option<File>)>) {
    for (path, file) in edits {
        match file {
            Some(file) => snapshot.put(path, file),
            None => snapshot.remove(path),
        }
    }
}

/// The mode after the patch, and whether the change of mode is needed still.
fn new_mode(patch: &FilePatch, is: Mode) -> Result<(Mode, HunkClass), String> {
    match (patch.old_mode, patch.new_mode) {
        (Some(old), Some(new)) if old != new => {
            if is == old {
                Ok((new, HunkClass::Exact))
            } else if is == new {
                Ok((new, HunkClass::Landed))
            } else {
                Err(format!("its mode is {}, where the patch wants {}", is.as_str(), old.as_str()))
            }
        }
        _ => Ok((is, HunkClass::Exact)),
    }
}
