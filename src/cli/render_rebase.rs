//! A rebase for people: what became of each entry, and what to do next.

use std::path::{Path, PathBuf};

use mlx_overlay_engine::contract::Verdict;
use mlx_overlay_engine::drift::End;
use mlx_overlay_engine::lay::EntryReport;
use mlx_overlay_engine::rebase::session::{State, sides_folder};
use mlx_overlay_engine::rebase::{Outcome, Plan, Planned, Rest, Stop};

use super::remedy::{quoted, word};
use super::render;
use super::render_drift::{
    Shown, cause, cell, changed_nearby, details, inline, named, nearby_details,
};
use super::ui::{BAD, BOLD, DIM, Format, GOOD, Ui, WARN, paint};

pub use super::render_drift::short;

fn style(outcome: Outcome) -> anstyle::Style {
    match outcome {
        Outcome::Same | Outcome::Refreshed | Outcome::Landed => GOOD,
        Outcome::Resolved | Outcome::Skipped => WARN,
    }
}

/// Prints a plan, and where it stops what to do; `work` is the folder with the
/// files to finish, of a rebase that is under way.
pub fn planned(ui: &mut Ui, pin: &End, target: &End, plan: &Plan, work: Option<&Path>) {
    if ui.format() == Format::Json {
        let shown = |folder: &Path| folder.display().to_string();
        let sides = work.and_then(sides_of).as_deref().map(shown);
        let work = work.filter(|folder| folder.is_dir()).map(shown);
        let result = serde_json::json!({
            "pin": pin, "target": target, "plan": plan, "work": work, "sides": sides
        });
        ui.json("rebase", 1, &result);
        return;
    }
    if ui.format() == Format::Markdown {
        markdown(ui, pin, target, plan);
        return;
    }
    ui.line(paint(BOLD, format!("{} → {}", named(pin), named(target))));
    for entry in &plan.entries {
        let outcome = paint(style(entry.outcome), format!("{:<10}", entry.outcome.as_str()));
        let by = landed_by(entry).map(|by| format!("  {by}")).unwrap_or_default();
        ui.line(format!("  {outcome} {}{}", entry.name, paint(DIM, by)));
    }
    for verdict in plan.left_out() {
        let outcome = paint(WARN, format!("{:<10}", "left out"));
        ui.line(format!("  {outcome} {}", verdict.key()));
        ui.line(format!("             {}", why_left_out(verdict)));
    }
    // Once the pin has moved nothing tells of it any more.
    changed_nearby(ui, plan.changed_nearby(), Shown { all: false, diff: true });
    match &plan.stop {
        None => {}
        Some(Stop::Entry { report, .. }) => {
            ui.line("");
            ui.line(format!("{} at this entry:", paint(BAD, "stopped")));
            render::entry(ui, report);
            if let Some(rest) = &plan.rest {
                beyond(ui, &report.name, rest);
            }
            next_after_entry(ui, &report.name, work);
        }
        Some(Stop::Contracts { verdicts }) => {
            ui.line("");
            ui.line(format!(
                "{}: every entry holds, and these contracts do not:",
                paint(BAD, "stopped")
            ));
            for verdict in verdicts {
                let state = paint(BAD, format!("{:<12}", verdict.status.as_str()));
                ui.line(format!("  {state} {}", verdict.key()));
                ui.line(format!("               {}", verdict.what));
                verdict
                    .diff
                    .iter()
                    .for_each(|l| ui.line(format!("               {}", render::diff_line(l))));
            }
            if work.is_some() {
                ui.line("");
                ui.line(NEXT);
                verdicts.iter().for_each(|verdict| next_accept(ui, &verdict.key()));
                next(ui, "--abort");
            }
        }
    }
}

/// Prints what lies beyond the entry at which a dry run stopped.
fn beyond(ui: &mut Ui, stopped: &str, rest: &Rest) {
    ui.line("");
    ui.line(format!("After it, as `drift` judges it while `{stopped}` is open:"));
    for entry in &rest.entries {
        let (outcome, whys) = judged(entry);
        let style = if outcome == STOPS { BAD } else { GOOD };
        ui.line(format!("  {} {}", paint(style, format!("{outcome:<10}")), entry.name));
        whys.iter().for_each(|why| ui.line(format!("             {why}")));
    }
    let open = rest.contracts.iter().filter(|v| !v.status.holds());
    for verdict in open {
        let state = paint(BAD, format!("{:<10}", verdict.status.as_str()));
        ui.line(format!("  {state} {}", verdict.key()));
        ui.line(format!("             {}", verdict.what));
    }
}

const STOPS: &str = "stops";

/// What would become of an entry that was only judged, and why it does not hold.
fn judged(entry: &EntryReport) -> (&'static str, Vec<String>) {
    if entry.holds() {
        let landed = entry.derived.is_none() && entry.as_patch().landed();
        return (if landed { "landed" } else { "holds" }, Vec::new());
    }
    let files = entry.patch.files.iter().filter_map(|f| Some((&f.path, f.why.as_ref()?)));
    let files: Vec<_> = files.collect();
    let told = |why: &String| files.iter().any(|(_, file)| *file == why);
    let hunks = entry.patch.hunks.iter().filter_map(|h| {
        let why = h.why.as_ref().filter(|why| !told(why))?;
        Some(format!("{} hunk {}, {}: {why}", h.class.as_str(), h.number, h.file))
    });
    let derived = entry.derived.as_ref().and_then(|d| d.why.clone());
    let of_files = files.iter().map(|(path, why)| format!("{path}: {why}"));
    (STOPS, of_files.chain(hunks).chain(derived).collect())
}

/// Why the new series does not have a contract.
fn why_left_out(verdict: &Verdict) -> String {
    let reason = verdict.acknowledged.as_deref().unwrap_or_default();
    format!("{}; nothing is left to compare with (accepted: {reason})", verdict.what)
}

/// With which upstream commit an entry, or a part of it, landed.
fn landed_by(entry: &Planned) -> Option<String> {
    match (&entry.landed_by, entry.outcome) {
        (Some(by), Outcome::Landed) => Some(format!("with {}", cause(by))),
        (Some(by), _) => Some(format!("a part landed with {}", cause(by))),
        (None, Outcome::Landed) => Some("with an unknown commit".into()),
        (None, _) => None,
    }
}

/// Prints a plan for the body of a pull request.
fn markdown(ui: &mut Ui, pin: &End, target: &End, plan: &Plan) {
    ui.line(format!("## {} → {}", named(pin), named(target)));
    ui.line("");
    ui.line("| Entry | Outcome | |");
    ui.line("| --- | --- | --- |");
    for entry in &plan.entries {
        let by = landed_by(entry).unwrap_or_default();
        ui.line(format!("| {} | {} | {} |", cell(&entry.name), entry.outcome.as_str(), cell(&by)));
    }
    let mut lines = Vec::new();
    match &plan.stop {
        None => {}
        Some(Stop::Entry { report, .. }) => {
            lines.push(format!("**Stopped** at `{}`, which does not hold:", report.name));
            // A file without hunks has nothing else to tell of it.
            let hunks = &report.patch.hunks;
            let bare = report.patch.files.iter().filter(|f| hunks.iter().all(|h| h.file != f.path));
            lines.extend(bare.filter_map(|file| {
                let (class, why) = (file.class.as_str(), inline(file.why.as_ref()?));
                Some(format!("- **{class}** `{}`: {why}", file.path))
            }));
            for hunk in report.patch.hunks.iter().filter(|h| h.why.is_some()) {
                let why = hunk.why.as_deref().unwrap_or_default();
                let class = hunk.class.as_str();
                lines.push(format!(
                    "- **{class}** hunk {}, `{}`: {}",
                    hunk.number,
                    hunk.file,
                    inline(why)
                ));
            }
            let derived = report.derived.as_ref().and_then(|d| d.why.as_deref());
            lines.extend(derived.map(|why| format!("- {}", inline(why))));
            if let Some(rest) = &plan.rest {
                lines.push(format!(
                    "\nAfter it, as `drift` judges it while `{}` is open:",
                    report.name
                ));
                for entry in &rest.entries {
                    let (outcome, whys) = judged(entry);
                    let strong = if outcome == STOPS { "**stops**" } else { outcome };
                    let why: String = whys.iter().map(|w| format!(": {}", inline(w))).collect();
                    lines.push(format!("- {strong} {}{why}", inline(&entry.name)));
                }
                for verdict in rest.contracts.iter().filter(|v| !v.status.holds()) {
                    let (state, what) = (verdict.status.as_str(), inline(&verdict.what));
                    lines.push(format!("- **{state}** {}: {what}", inline(&verdict.key())));
                }
            }
        }
        Some(Stop::Contracts { .. }) => {
            lines.push("**Stopped**: every entry holds, and these contracts do not.".into());
        }
    }
    for verdict in &plan.contracts {
        let (kind, name) = (verdict.kind.as_str(), inline(&verdict.name));
        let what = inline(&verdict.what);
        if plan.left_out().any(|left| left == verdict) {
            let why = inline(&why_left_out(verdict));
            lines.push(format!("- **left out** {kind} {name}: {why}"));
        } else if !verdict.status.holds() {
            lines.push(format!("- **{}** {kind} {name}: {what}", verdict.status.as_str()));
        } else if let Some(reason) = &verdict.acknowledged {
            lines.push(format!("- {kind} {name}: {what}; accepted: {}", inline(reason)));
        } else if let Some(to) = &verdict.moved_to {
            lines.push(format!("- {kind} {name} is in `{to}` now"));
        }
    }
    if !lines.is_empty() {
        ui.line("");
        lines.iter().for_each(|l| ui.line(l));
    }
    for verdict in plan.contracts.iter().filter(|v| !v.diff.is_empty()) {
        details(ui, &verdict.key(), &verdict.diff);
    }
    nearby_details(ui, plan.changed_nearby());
}

const NEXT: &str = "Nothing is moved yet; what was decided before is kept. Next:";

/// Prints that a plan was all.
pub fn dry(ui: &mut Ui) {
    if ui.format() == Format::Text {
        ui.line("\nNothing was written, and the pin stays: this was a dry run.");
    }
}

fn next_after_entry(ui: &mut Ui, entry: &str, work: Option<&Path>) {
    let Some(work) = work else { return };
    ui.line("");
    ui.line(NEXT);
    if work.is_dir() {
        let program = ui.program();
        let text =
            format!("  edit the files in {}, then {program} rebase --continue", work.display());
        ui.line(text);
    } else {
        let text =
            format!("  {} rebase --continue, which writes the files to finish", ui.program());
        ui.line(text);
    }
    if let Some(sides) = sides_of(work) {
        ui.line(format!(
            "  (what cannot be merged is not there: put the file that is wanted in its place; \
             upstream's, the pin's and the entry's lie in {})",
            sides.display()
        ));
    }
    next(ui, &format!("--skip {}", word(entry)));
    next(ui, "--abort");
}

/// The folder with the sides of files that cannot be merged, where there are such.
fn sides_of(work: &Path) -> Option<PathBuf> {
    let root = work.parent()?.parent()?;
    Some(sides_folder(root)).filter(|folder| folder.is_dir())
}

/// A line with the command that goes on so.
fn next(ui: &mut Ui, how: &str) {
    ui.line(format!("  {} rebase {how}", ui.program()));
}

/// A line with the command that accepts a contract, given by kind and name.
fn next_accept(ui: &mut Ui, name: &str) {
    let accept = quoted(&format!("{name}=why the series still holds"));
    next(ui, &format!("--continue --accept {accept}"));
}

/// Prints where a rebase under way stands.
pub fn standing(ui: &mut Ui, root: &Path, state: &State) {
    if ui.format() == Format::Json {
        ui.json("rebase-state", 1, &serde_json::json!({ "state": state }));
        return;
    }
    let to = &state.to.to_string()[..8];
    let from = &state.from.to_string()[..8];
    ui.line(paint(BOLD, format!("A rebase from {from} to {} ({to}) is under way.", state.name)));
    for (entry, decision) in &state.decisions.entries {
        let what = match decision {
            mlx_overlay_engine::rebase::Decision::Skip => "left out",
            mlx_overlay_engine::rebase::Decision::Patch(_)
            | mlx_overlay_engine::rebase::Decision::Rule(_) => "resolved",
        };
        ui.line(format!("  {what} {entry}"));
    }
    match state.stopped.as_deref() {
        Some("contracts") => {
            ui.line("It stopped at contracts that do not hold. Next:");
            match &state.contracts[..] {
                // The state of an older version does not name them.
                [] => next(ui, "--continue"),
                names => names.iter().for_each(|name| next_accept(ui, name)),
            }
            next(ui, "--abort");
        }
        Some(entry) => {
            ui.line(format!("It stopped at `{entry}`."));
            let work = mlx_overlay_engine::rebase::session::work_folder(root);
            next_after_entry(ui, entry, Some(&work));
        }
        None => {
            ui.line("It was stopped from outside. Next:");
            next(ui, "--continue");
            next(ui, "--abort");
        }
    }
}

/// Prints that a rebase was given up.
pub fn aborted(ui: &mut Ui, state: &State) {
    if ui.format() == Format::Json {
        ui.json("rebase", 1, &serde_json::json!({ "aborted": state.to }));
        return;
    }
    ui.line(format!("The rebase to {} is given up; everything is as it was.", state.name));
}

/// Prints that what a killed rebase left is gone.
pub fn cleared(ui: &mut Ui) {
    if ui.format() == Format::Json {
        ui.json("rebase", 1, &serde_json::json!({ "aborted": null }));
        return;
    }
    ui.line("No rebase was under way any more; what a killed one left is removed.");
}

/// Prints that the pin moved.
pub fn done(ui: &mut Ui, folder: &Path, plan: Option<&Plan>) {
    if ui.format() == Format::Json {
        if plan.is_none() {
            ui.json("rebase", 1, &serde_json::json!({ "folder": folder.display().to_string() }));
        }
        return;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let folder = folder.strip_prefix(&here).unwrap_or(folder);
    if ui.format() == Format::Markdown {
        ui.line(format!("\nThe series is in `{}`.", folder.display()));
        return;
    }
    ui.line(format!(
        "{} the series is in {}, and mlx-pin.toml names it.",
        paint(GOOD, "Moved:"),
        folder.display()
    ));
    let moved = plan
        .into_iter()
        .flat_map(|p| &p.contracts)
        .filter_map(|v| Some((v.kind.as_str(), v.name.as_str(), v.moved_to.as_deref()?)));
    for (kind, name, to) in moved {
        ui.line(match kind {
            "cite" => format!("  {kind} {name} is {to} now: change what cites it"),
            _ => format!("  {kind} {name} is in {to} now"),
        });
    }
    ui.line(format!("Next: {} apply", ui.program()));
}
