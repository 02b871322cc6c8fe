//! Contracts against two trees.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::kernel::{Kernels, Speller, kernels, spelled_out};
use super::text::Ends;
use super::{Cite, ContractKind, Contracts, Kernel, Status, Verdict, Watch, cite, watch};
use crate::cpp::function;
use crate::moved::find_moved;
use crate::snapshot::{ReadError, Tree, TreePath};

/// What became of the watches, kernels and citations between `pin` and
/// `target`; `id` names the target as an acknowledgement does. With the pin as
/// the target it says whether the contracts hold where they were written.
///
/// # Errors
/// A file is there and cannot be read.
pub fn check(
    contracts: &Contracts,
    pin: &dyn Tree,
    target: &dyn Tree,
    id: &str,
) -> Result<Vec<Verdict>, ReadError> {
    check_with(contracts, pin, target, id, &|file| expanded(target, file))
}

/// As [`check`], where somebody else knows the kernels of the target's files.
pub(crate) fn check_with(
    contracts: &Contracts,
    pin: &dyn Tree,
    target: &dyn Tree,
    id: &str,
    expand: &Expand<'_>,
) -> Result<Vec<Verdict>, ReadError> {
    let trees =
        || Trees { pin, target, expand, ends: RefCell::default(), kernels: RefCell::default() };
    // Expanding the macros of the kernels takes as long as reading the functions.
    let kernels = || -> Result<Vec<Verdict>, ReadError> {
        let trees = trees();
        let verdict = |k: &Kernel| Ok(trees.kernel(k)?.accepted(&k.acknowledged, id));
        contracts.kernel.iter().map(verdict).collect()
    };
    let texts = || -> Result<(Vec<Verdict>, Vec<Verdict>), ReadError> {
        let trees = trees();
        let watch = |w: &Watch| Ok(trees.watch(w)?.accepted(&w.acknowledged, id));
        let cite = |c: &Cite| Ok(trees.cite(c)?.accepted(&c.acknowledged, id));
        let watches = contracts.watch.iter().map(watch).collect::<Result<_, _>>()?;
        Ok((watches, contracts.cite.iter().map(cite).collect::<Result<_, _>>()?))
    };
    let (kernels, texts) = rayon::join(kernels, texts);
    let (mut verdicts, cites) = texts?;
    verdicts.extend(kernels?);
    verdicts.extend(cites);
    Ok(verdicts)
}

/// The two trees, and what was read of them so far: contracts share files.
struct Trees<'t> {
    pin: &'t dyn Tree,
    target: &'t dyn Tree,
    expand: &'t Expand<'t>,
    ends: RefCell<HashMap<TreePath, BothEnds>>,
    kernels: RefCell<HashMap<TreePath, Expanded>>,
}

/// A file at both ends, renames followed; or why not.
type BothEnds = Result<Rc<Ends>, String>;

/// The kernels of a file of the target; or why they cannot be told.
pub(crate) type Expanded = Result<Arc<Kernels>, String>;

/// Gives the kernels of a file.
pub(crate) type Expand<'e> = dyn Fn(&TreePath) -> Expanded + Sync + 'e;

/// The kernels of a tree's file.
pub(crate) fn expanded(tree: &dyn Tree, file: &TreePath) -> Expanded {
    kernels(tree, file).map(Arc::new).map_err(|e| e.to_string())
}

impl Trees<'_> {
    fn ends(&self, path: &TreePath) -> Result<BothEnds, ReadError> {
        if let Some(known) = self.ends.borrow().get(path) {
            return Ok(known.clone());
        }
        let found = self.read_ends(path)?.map(Rc::new);
        self.ends.borrow_mut().insert(path.clone(), found.clone());
        Ok(found)
    }

    fn read_ends(&self, path: &TreePath) -> Result<Result<Ends, String>, ReadError> {
        let Some(then) = self.pin.file(path)? else {
            return Ok(Err(format!("at the pin, there is no `{path}`")));
        };
        if let Some(now) = self.target.file(path)? {
            return Ok(Ok(Ends::new(then, now, path.clone())));
        }
        let Some(moved) = find_moved(path, &then, self.pin, self.target)? else {
            return Ok(Err(format!("`{path}` is gone")));
        };
        let now = self.target.file(&moved)?;
        let gone = || format!("`{path}` is gone");
        Ok(now.map(|now| Ends::new(then, now, moved)).ok_or_else(gone))
    }

    fn kernels_of(&self, file: &TreePath) -> Expanded {
        if let Some(known) = self.kernels.borrow().get(file) {
            return known.clone();
        }
        let found = (self.expand)(file);
        self.kernels.borrow_mut().insert(file.clone(), found.clone());
        found
    }

    fn watch(&self, watch: &Watch) -> Result<Verdict, ReadError> {
        Ok(match self.ends(&watch.file)? {
            Ok(ends) => {
                let mut verdict = watch::compare(watch, &ends);
                if ends.path != watch.file {
                    verdict.what.push_str(&format!("; the file is `{}` now", ends.path));
                    verdict.moved_to = Some(ends.path.to_string());
                }
                verdict
            }
            Err(why) => Verdict::new(ContractKind::Watch, watch.title(), Status::Broken, why),
        })
    }

    fn cite(&self, cite: &Cite) -> Result<Verdict, ReadError> {
        Ok(match self.ends(&cite.at.file)? {
            Ok(ends) => cite::follow(cite, &ends),
            Err(why) => Verdict::new(ContractKind::Cite, cite.at.to_string(), Status::Broken, why),
        })
    }

    /// A kernel, and where its file and its host's went that are renamed.
    fn kernel(&self, kernel: &Kernel) -> Result<Verdict, ReadError> {
        let renamed = |path: &TreePath| -> Result<Option<TreePath>, ReadError> {
            if self.target.mode(path).is_some() {
                return Ok(None);
            }
            Ok(self.ends(path)?.ok().map(|ends| ends.path.clone()))
        };
        let file = renamed(&kernel.file)?;
        let host = kernel.host.as_ref().map(|h| renamed(&h.file)).transpose()?.flatten();
        let (mut verdict, elsewhere) =
            self.instantiated(kernel, file.as_ref().unwrap_or(&kernel.file))?;
        // A file that was taken apart has no new name; its kernels have.
        let gone = self.target.mode(&kernel.file).is_none();
        let file = file.or(elsewhere.filter(|_| gone));
        if let Some(file) = &file {
            verdict.what.push_str(&format!("; the file is `{file}` now"));
        }
        verdict.moved_to = file.map(|f| f.to_string());
        verdict.host_moved_to = host.map(|h| h.to_string());
        Ok(verdict)
    }

    /// Whether the tree instantiates a kernel's names, in `home` or in another
    /// file, which is given.
    fn instantiated(
        &self,
        kernel: &Kernel,
        home: &TreePath,
    ) -> Result<(Verdict, Option<TreePath>), ReadError> {
        let verdict = |status, what: String| {
            Verdict::new(ContractKind::Kernel, kernel.name.clone(), status, what)
        };
        let broken = |what: String| Ok((verdict(Status::Broken, what), None));
        let names = match spelled_out(&kernel.name) {
            Ok(names) => names,
            Err(why) => return broken(why),
        };
        if self.target.mode(home).is_none() && self.pin.mode(home).is_none() {
            return broken(format!("there is no `{home}`"));
        }
        let mut missing = names.clone();
        let mut elsewhere: Option<TreePath> = None;
        let mut nearest: Option<String> = None;
        let others = std::iter::once(()).flat_map(|()| self.other_metal_files(home));
        for file in std::iter::once(home.clone()).chain(others) {
            if self.target.mode(&file).is_none() {
                continue;
            }
            let found = match self.kernels_of(&file) {
                Ok(found) => found,
                Err(e) if file == *home => return broken(format!("cannot tell: {e}")),
                Err(_) => continue,
            };
            let before = missing.len();
            missing.retain(|n| !found.names.contains(n));
            if before > missing.len() && file != *home {
                elsewhere = Some(file.clone());
            }
            if missing.is_empty() {
                break;
            }
            let quoted = found.sources.absent.iter().find(|a| a.starts_with('"'));
            if let (Some(absent), true) = (quoted, file == *home) {
                let what = format!("cannot tell: this tree has no {absent}, which it includes");
                return broken(what);
            }
            let close = found.names.iter().max_by_key(|n| common(n, &missing[0]));
            if let Some(close) = close.filter(|n| common(n, &missing[0]) * 2 > missing[0].len()) {
                let better = |n: &String| common(n, &missing[0]) < common(close, &missing[0]);
                if nearest.as_ref().is_none_or(better) {
                    nearest = Some(close.clone());
                }
            }
        }
        if let Some(first) = missing.first() {
            let hint = nearest.map(|n| format!("; the nearest is `{n}`")).unwrap_or_default();
            let what = format!(
                "{} of {} names are not instantiated, first `{first}`{hint}",
                missing.len(),
                names.len()
            );
            return Ok((verdict(Status::Broken, what), elsewhere));
        }
        if let Some(why) = self.unspelled(kernel, &names)? {
            return Ok((verdict(Status::Broken, why), elsewhere));
        }
        let mut what = format!("{} name(s) instantiated", names.len());
        if let Some(file) = &elsewhere {
            what.push_str(&format!(", some in `{file}` now"));
        }
        Ok((verdict(Status::Held, what), elsewhere))
    }

    /// Every other file that may have taken kernels of `home`.
    fn other_metal_files(&self, home: &TreePath) -> impl Iterator<Item = TreePath> {
        let paths = self.target.paths().into_iter();
        paths.filter(move |p| p.as_str().ends_with(".metal") && p != home)
    }

    /// Why the host code cannot ask for one of the names any more.
    fn unspelled(&self, kernel: &Kernel, names: &[String]) -> Result<Option<String>, ReadError> {
        let Some(host) = &kernel.host else { return Ok(None) };
        let ends = match self.ends(&host.file)? {
            Ok(ends) => ends,
            Err(why) => return Ok(Some(format!("the host code: {why}"))),
        };
        let path = &ends.path;
        Ok(match function::find_in(ends.now.functions(), &host.function) {
            Err(e) => Some(format!("the host code, `{path}`: {e}")),
            Ok(found) => {
                let speller = Speller::new(&ends.now.bytes()[found.span.clone()]);
                names.iter().find(|n| !speller.spells(n)).map(|n| {
                    format!("`{}` of `{path}` does not spell `{n}` any more", host.function)
                })
            }
        })
    }
}

/// How many bytes two names begin with in common.
fn common(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}
