//! What becomes of each entry, one after the other, in memory.

use std::collections::BTreeSet;

use crate::apply::Ground;
use crate::contract::{self, Contracts, Verdict};
use crate::cpp;
use crate::derive::Rule;
use crate::drift::{Judgement, Missing, blame, judge, originals};
use crate::lay::{EntryReport, PatchParts, STRIP, lay_entry, pass_over};
use crate::patch::{self, Patch};
use crate::report::HunkClass;
use crate::series::{Change, Entry, Series};
use crate::snapshot::{File, Mode, Snapshot, Tree, TreePath};

use super::markers::Sides;
use super::parts::{Part, parts};
use super::remake::{Around, Remade, remake};
use super::{
    Decision, Decisions, Outcome, Plan, Planned, RebaseError, Rest, Shown, Stop, Unfinished,
    series_text,
};

/// Names of the two ends, for markers and acknowledgements.
#[derive(Clone, Copy, Debug)]
pub struct Names<'n> {
    /// The pin, for people.
    pub pin: &'n str,
    /// The target, for people.
    pub target: &'n str,
    /// The target as acknowledgements name it.
    pub id: &'n str,
}

/// Plans the move of `series` from `pin` to `target`. It stops at the first
/// entry that does not hold and is not decided, and then at contracts.
///
/// # Errors
/// The series cannot be judged, or a decision does not fit.
pub fn plan(
    series: &Series,
    pin: &dyn Tree,
    target: &dyn Tree,
    names: Names<'_>,
    decisions: &Decisions,
) -> Result<Plan, RebaseError> {
    let mut ground = Ground::mapped(pin, target);
    let mut entries: Vec<Planned> = Vec::new();
    for entry in &series.entries {
        match step(entry, &mut ground, names, decisions)? {
            Ok(planned) => entries.push(planned),
            Err(mut stop) => {
                if let Stop::Entry { report, .. } = &mut stop {
                    // Nothing of an entry that stops is taken over.
                    let base = ground.base.as_ref().expect("a rebase maps from the pin");
                    blame(entry, report, &missing(series, &entries), base, pin, target)?;
                }
                return Ok(Plan { entries, contracts: Vec::new(), stop: Some(stop), rest: None });
            }
        }
    }
    let contracts = contracts(series, pin, target, names, decisions, &entries)?;
    let open: Vec<Verdict> = contracts.iter().filter(|v| !v.status.holds()).cloned().collect();
    let stop = (!open.is_empty()).then_some(Stop::Contracts { verdicts: open });
    Ok(Plan { entries, contracts, stop, rest: None })
}

/// Looks beyond an entry at which a plan made with `decisions` stops. `id` names the
/// target as acknowledgements do.
///
/// # Errors
/// The series cannot be judged.
pub fn look_on(
    plan: &mut Plan,
    series: &Series,
    pin: &dyn Tree,
    target: &dyn Tree,
    id: &str,
    decisions: &Decisions,
) -> Result<(), RebaseError> {
    if !matches!(plan.stop, Some(Stop::Entry { .. })) {
        return Ok(());
    }
    let Judgement { mut entries, mut contracts } = judge(series, pin, target, id)?;
    accept(&mut contracts, decisions);
    let entries = entries.split_off(plan.entries.len() + 1);
    plan.rest = Some(Rest { entries, contracts });
    Ok(())
}

/// Accepts what a person accepted.
fn accept(contracts: &mut [Verdict], decisions: &Decisions) {
    for verdict in contracts {
        if let Some(reason) = decisions.accepted.get(&verdict.key()) {
            verdict.accept(reason);
        }
    }
}

/// The entries that are left out, or settled in another way than the pin's.
fn missing<'s>(series: &'s Series, entries: &[Planned]) -> Vec<Missing<'s>> {
    let settled = |p: &Planned| matches!(p.outcome, Outcome::Skipped | Outcome::Resolved);
    let missing = series.entries.iter().zip(entries).filter(|(_, p)| settled(p));
    missing.filter_map(|(entry, _)| Missing::whole(entry)).collect()
}

/// One entry: planned, or where a person must decide.
fn step<'t>(
    entry: &Entry,
    ground: &mut Ground<'t>,
    names: Names<'_>,
    decisions: &Decisions,
) -> Result<Result<Planned, Stop>, RebaseError> {
    let base = ground.base.clone().expect("a rebase maps from the pin");
    let before = ground.target.clone();
    let report = lay_entry(entry, ground)?;
    if report.holds() {
        let (outcome, patch) = remade(entry, &report, &base, &before, &ground.target)?;
        return Ok(Ok(Planned {
            name: entry.name.clone(),
            outcome,
            landed_by: None,
            patch,
            rule: repointed(entry, &report),
            report,
        }));
    }
    // Whatever was laid of an entry that does not hold is taken back.
    let after = std::mem::replace(&mut ground.target, before.clone());
    ground.base = Some(base.clone());
    match decisions.entries.get(&entry.name) {
        None => {
            let around = Around { base: &base, before: &before, after: &after };
            let parts = unfinished(entry, &report, &around, names)?;
            Ok(Err(Stop::Entry { report: Box::new(report), parts }))
        }
        Some(Decision::Skip) => {
            pass_over(entry, ground)?;
            let (name, outcome) = (entry.name.clone(), Outcome::Skipped);
            Ok(Ok(Planned { name, outcome, report, landed_by: None, patch: None, rule: None }))
        }
        Some(Decision::Patch(bytes)) => {
            pass_over(entry, ground)?;
            let report = resolved(entry, report, bytes, ground)?;
            let patch = Some(bytes.clone());
            let (name, outcome) = (entry.name.clone(), Outcome::Resolved);
            Ok(Ok(Planned { name, outcome, report, landed_by: None, patch, rule: None }))
        }
        Some(Decision::Rule(rule)) => {
            let original = entry;
            let entry = Entry { change: Change::Derive(rule.clone()), ..original.clone() };
            let mut alone = Ground { target: before.clone(), base: None };
            let mut report = lay_entry(&entry, &mut alone)?;
            if !report.holds() {
                let around = Around { base: &base, before: &before, after: &after };
                let parts = unfinished(&entry, &report, &around, names)?;
                return Ok(Err(Stop::Entry { report: Box::new(report), parts }));
            }
            if let (Change::Derive(old), Some(derived)) = (&original.change, &mut report.derived) {
                derived.source_changed = text_of(old, &base)? != text_of(rule, &before)?;
            }
            pass_over(original, ground)?;
            ground.target = alone.target;
            let (name, outcome) = (entry.name.clone(), Outcome::Resolved);
            let rule = Some(rule.clone());
            Ok(Ok(Planned { name, outcome, report, landed_by: None, patch: None, rule }))
        }
    }
}

/// The meaning-bearing tokens of a rule's original, its own name left out: upstream
/// may have given it another.
fn text_of(rule: &Rule, tree: &dyn Tree) -> Result<Option<Vec<Vec<u8>>>, RebaseError> {
    let Some(file) = tree.file(&rule.file)? else { return Ok(None) };
    let Ok(found) = cpp::find(&file.bytes, &rule.function) else { return Ok(None) };
    let name = &file.bytes[found.name.clone()];
    let tokens = cpp::meaning(&file.bytes[found.span.clone()]);
    let unnamed = |token: &[u8]| if token == name { Vec::new() } else { token.to_vec() };
    Ok(Some(tokens.into_iter().map(unnamed).collect()))
}

/// What becomes of an entry that holds.
fn remade<'t>(
    entry: &Entry,
    report: &EntryReport,
    base: &Snapshot<'t>,
    before: &Snapshot<'t>,
    after: &Snapshot<'t>,
) -> Result<(Outcome, Option<Vec<u8>>), RebaseError> {
    let Change::Patch { bytes, .. } = &entry.change else {
        let same = repointed(entry, report).is_none();
        return Ok((if same { Outcome::Same } else { Outcome::Refreshed }, None));
    };
    let parsed = parsed(entry, bytes)?;
    let PatchParts { files, hunks, .. } = &report.patch;
    let around = Around { base, before, after };
    Ok(match remake(&parsed, bytes, files, hunks, &around)? {
        Remade::Same => (Outcome::Same, None),
        Remade::New(bytes) => (Outcome::Refreshed, Some(bytes)),
        Remade::Landed => (Outcome::Landed, None),
    })
}

/// The rule of a derived function whose file has another name now.
fn repointed(entry: &Entry, report: &EntryReport) -> Option<Rule> {
    let Change::Derive(rule) = &entry.change else { return None };
    let derived = report.derived.as_ref()?;
    let file = derived.from.as_ref().and(derived.made.as_ref())?.file.clone();
    Some(Rule { file, ..rule.clone() })
}

fn parsed(entry: &Entry, bytes: &[u8]) -> Result<Patch, RebaseError> {
    patch::parse(bytes).map_err(|refusal| {
        crate::lay::LayError::Refused { path: entry.name.clone().into(), refusal }.into()
    })
}

/// Lays a person's patch in the place of the entry's own.
fn resolved(
    entry: &Entry,
    report: EntryReport,
    bytes: &[u8],
    ground: &mut Ground<'_>,
) -> Result<EntryReport, RebaseError> {
    let wrong = |what: String| RebaseError::Decision { entry: entry.name.clone(), what };
    let parsed = patch::parse(bytes).map_err(|r| wrong(r.message))?;
    // It was made from this very text.
    let own = ground.target.clone();
    let mut alone = Ground { target: own.clone(), base: Some(own) };
    let laid = alone.apply(&entry.name, &parsed, STRIP).map_err(|e| wrong(e.to_string()))?;
    if !laid.is_exact() {
        let odd = laid.hunks.iter().filter(|h| h.class != HunkClass::Exact);
        let whys = odd.filter_map(|h| h.why.as_ref());
        let whys = whys.chain(laid.files.iter().filter_map(|f| f.why.as_ref()));
        let why = whys.map(|why| format!(": {why}")).next().unwrap_or_default();
        return Err(wrong(format!("it cannot be laid on the target{why}")));
    }
    ground.target = alone.target;
    let patch =
        PatchParts { file: report.patch.file.clone(), files: laid.files, hunks: laid.hunks };
    Ok(EntryReport { patch, ..report })
}

/// The entry's files for a person to finish, and what holds of it.
fn unfinished(
    entry: &Entry,
    report: &EntryReport,
    around: &Around<'_, '_>,
    names: Names<'_>,
) -> Result<Vec<Part>, RebaseError> {
    let bytes = match &entry.change {
        Change::Patch { bytes, .. } => bytes,
        Change::Derive(rule) => {
            return Ok(rule_file(entry, rule, report).map(Part::Work).into_iter().collect());
        }
    };
    let sides = Sides { target: names.target, pin: names.pin, entry: &entry.name };
    // What the entry made of the pin, where a file is taken as a whole.
    let mut ours = Ground { target: around.base.clone(), base: Some(around.base.clone()) };
    lay_entry(entry, &mut ours)?;
    let PatchParts { files, hunks, .. } = &report.patch;
    Ok(parts(&parsed(entry, bytes)?, files, hunks, &ours.target, around, &sides)?)
}

/// The rule of a derived function, for a person to change.
fn rule_file(entry: &Entry, rule: &Rule, report: &EntryReport) -> Option<Unfinished> {
    let path = rule_path(&entry.name)?;
    let why = report.derived.as_ref().and_then(|d| d.why.as_deref()).unwrap_or_default();
    let rule = toml::to_string(rule).expect("a rule was read from such a text");
    let text = format!(
        "# {why}\n# Change the rule, so that the copy can be made, and overlay rebase --continue.\n\
         {rule}"
    );
    let shown = Shown::Merged(File::new(Mode::Regular, text.into_bytes()));
    Some(Unfinished::new(path, None, shown))
}

/// The file in the work folder that holds an entry's rule.
pub(super) fn rule_path(entry: &str) -> Option<TreePath> {
    TreePath::new(&format!("{entry}.rule.toml")).ok()
}

/// What a person can accept, as `kind name`: the series' contracts, the originals
/// of its derived functions, and of each patch the files it takes lines from.
#[must_use]
pub fn contract_names(series: &Series) -> BTreeSet<String> {
    let Contracts { watch, kernel, cite, note } = &series.contracts;
    let mut names: BTreeSet<String> =
        watch.iter().map(|w| format!("watch {}", w.title())).collect();
    names.extend(kernel.iter().map(|k| format!("kernel {}", k.name)));
    names.extend(cite.iter().map(|c| format!("cite {}", c.at)));
    names.extend(note.iter().map(|n| format!("note {}: {}", n.entry, n.file)));
    for entry in &series.entries {
        match &entry.change {
            Change::Derive(rule) => {
                names.insert(format!("derive {} from {}", rule.name, rule.function));
            }
            Change::Patch { bytes, .. } => {
                let parsed = patch::parse(bytes).map(|p| p.files).unwrap_or_default();
                let files = parsed.iter().filter_map(|f| f.old_name.as_deref());
                names.extend(files.map(|file| {
                    let file = String::from_utf8_lossy(file);
                    let path = file.splitn(STRIP + 1, '/').last().unwrap_or(&file);
                    format!("note {}: {path}", entry.name)
                }));
            }
        }
    }
    names
}

/// The contracts at the target, the notes against the new patches.
fn contracts(
    series: &Series,
    pin: &dyn Tree,
    target: &dyn Tree,
    names: Names<'_>,
    decisions: &Decisions,
    entries: &[Planned],
) -> Result<Vec<Verdict>, RebaseError> {
    let reports: Vec<EntryReport> = entries.iter().map(|p| p.report.clone()).collect();
    let mut verdicts = contract::check(&series.contracts, pin, target, names.id)?;
    let stays = |v: &Verdict| {
        // The original of a derived function that was left out is nobody's.
        !entries
            .iter()
            .any(|p| !p.outcome.stays() && v.name.starts_with(&derived_name(series, &p.name)))
    };
    verdicts.extend(originals(series, &reports, names.id).into_iter().filter(stays));
    let patches: Vec<(&str, Patch)> = new_patches(series, entries)?;
    let patches: Vec<(&str, &Patch)> = patches.iter().map(|(n, p)| (*n, p)).collect();
    let notes = series_text::notes(&series.contracts.note, &patches, entries);
    let notes: Vec<_> = notes.into_iter().map(|kept| kept.note).collect();
    verdicts.extend(contract::check_notes(&notes, &patches, STRIP));
    accept(&mut verdicts, decisions);
    Ok(verdicts)
}

fn derived_name(series: &Series, entry: &str) -> String {
    match series.entries.iter().find(|e| e.name == entry).map(|e| &e.change) {
        Some(Change::Derive(rule)) => format!("{} from ", rule.name),
        _ => "\0".into(),
    }
}

/// The patches of the new series, by entry.
pub(super) fn new_patches<'s>(
    series: &'s Series,
    entries: &[Planned],
) -> Result<Vec<(&'s str, Patch)>, RebaseError> {
    let mut patches = Vec::new();
    for (entry, planned) in series.entries.iter().zip(entries) {
        let Change::Patch { bytes, .. } = &entry.change else { continue };
        if planned.outcome.stays() {
            let bytes = planned.patch.as_deref().unwrap_or(bytes);
            patches.push((entry.name.as_str(), parsed(entry, bytes)?));
        }
    }
    Ok(patches)
}
