//! A drift report as text and as Markdown: first what needs a person, then what
//! is worth a look, the rest on request.

use std::fmt::Write as _;

use mlx_overlay_engine::contract::Status;
use mlx_overlay_engine::drift::{Cause, End, Finding, Item, Report, State, Step};
use mlx_overlay_engine::report::{HunkReport, Nearby};

use super::render::{self, count};
use super::ui::{BAD, BOLD, DIM, GOOD, Ui, WARN, paint};

/// What is shown besides the findings.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// What holds, too.
    pub all: bool,
    /// Diffs.
    pub diff: bool,
}

/// The first digits of a commit, or the name of an end that has none.
#[must_use]
pub fn short(end: &End) -> String {
    match end.commit {
        Some(commit) => commit.to_string()[..8].to_owned(),
        None => end.name.clone(),
    }
}

/// An end with what is known of it.
#[must_use]
pub fn named(end: &End) -> String {
    let short = short(end);
    let name = if end.name.starts_with(&short[..short.len().min(7)]) { "" } else { &end.name };
    let date = end.date.as_deref().unwrap_or_default();
    let rest: Vec<&str> = [name, date].into_iter().filter(|t| !t.is_empty()).collect();
    if rest.is_empty() { short } else { format!("{short} ({})", rest.join(", ")) }
}

/// What a commit is called in a line.
#[must_use]
pub fn cause(cause: &Cause) -> String {
    let without = if cause.undone { "without " } else { "" };
    format!("{without}{} {} {}", &cause.commit.to_string()[..8], cause.date, cause.subject)
}

/// Since when it is so.
fn since(found: &Cause) -> String {
    if found.undone { cause(found) } else { format!("since {}", cause(found)) }
}

/// The states and how many items are in each, what holds first.
fn counted(report: &Report) -> String {
    let order = ["exact", "moved", "file-moved", "landed", "held", "acknowledged"];
    let place = |state: &&str| order.iter().position(|o| **o == **state).unwrap_or(order.len());
    let mut counts: Vec<(&&str, &usize)> = report.counts.iter().collect();
    counts.sort_by_key(|(state, _)| place(state));
    counts.iter().map(|(state, n)| format!("{n} {state}")).collect::<Vec<_>>().join(", ")
}

/// Where a commit is that the target stands on. (One may have come in by a merge.)
const LINE: &str = "on the target's line of first parents";

fn summary(report: &Report) -> String {
    let mut line = format!("{} → {}", named(&report.pin), named(&report.target));
    if let (Some(commits), Some(touching)) = (report.commits, report.touching) {
        let undone = match report.undone {
            Some(undone) if undone == commits => format!(", none of which is {LINE}"),
            Some(undone) => {
                format!(", {undone} of which {} not {LINE}", if undone == 1 { "is" } else { "are" })
            }
            None => String::new(),
        };
        let _ = write!(
            line,
            ": {}{undone}, {touching} of them touching what the series rests on",
            count(commits, "upstream commit")
        );
    }
    line
}

fn verdict(report: &Report) -> String {
    if report.counts.is_empty() {
        return "The series has no entries and no contracts. Nothing needs a person.".into();
    }
    let persons = report.findings.iter().filter(|f| f.needs_person).count();
    match persons {
        0 => format!("{}. Nothing needs a person.", counted(report)),
        1 => format!("{}. 1 of them needs a person.", counted(report)),
        n => format!("{}. {n} of them need a person.", counted(report)),
    }
}

/// Where an item stands at the target.
fn place(report: &Report, item: &Item) -> Option<String> {
    if let Some(hunk) = report.hunk(item) {
        let line = hunk.line.or(hunk.new_line);
        let at = line.or(hunk.conflict.as_ref().and_then(|c| c.found_line));
        return Some(at.map_or_else(|| hunk.file.to_string(), |l| format!("{}:{l}", hunk.file)));
    }
    report.contract(item).and_then(|v| v.place.clone())
}

/// Why an item is in its state, in one line.
fn why(report: &Report, item: &Item) -> Option<String> {
    if let Some(verdict) = report.contract(item) {
        let accepted = verdict.acknowledged.as_ref().map(|a| format!(" (accepted: {a})"));
        return Some(format!("{}{}", verdict.what, accepted.unwrap_or_default()));
    }
    let entry = report.entry(item)?;
    match item {
        Item::Hunk { .. } => report.hunk(item)?.why.clone(),
        Item::File { path, .. } => {
            let of = |f: &&mlx_overlay_engine::report::FileReport| {
                f.path == *path || f.from.as_ref() == Some(path)
            };
            let file = entry.patch.files.iter().find(of)?;
            let moved = (file.path != *path).then(|| format!("it is `{}` now", file.path));
            file.why.clone().or(moved)
        }
        Item::Derived { .. } => {
            let derived = entry.derived.as_ref()?;
            let made = derived.made.as_ref();
            let moved = derived.from.as_ref().and(made).map(|m| format!("it is `{}` now", m.file));
            derived.why.clone().or(moved)
        }
        Item::Contract { .. } => None,
    }
}

/// Prints a report for people.
pub fn text(ui: &mut Ui, report: &Report, shown: Shown) {
    ui.line(paint(BOLD, summary(report)));
    ui.line(verdict(report));
    let (persons, looks): (Vec<&Finding>, Vec<&Finding>) =
        report.findings.iter().partition(|f| f.needs_person);
    section(ui, "Needs a person", &persons, report, shown);
    section(ui, "Worth a look", &looks, report, shown);
    nearby(ui, report, shown);
    citations(ui, report);
    if let Some(steps) = &report.history {
        history(ui, steps);
    }
    if shown.all {
        everything(ui, report);
    }
}

fn style(state: State) -> anstyle::Style {
    match state {
        State::Class(class) => render::class_style(class),
        State::Inferred(_) | State::Contract(Status::Changed) => WARN,
        State::Contract(Status::Broken) => BAD,
        State::Contract(_) => GOOD,
    }
}

const INDENT: &str = "               ";

fn section(ui: &mut Ui, title: &str, findings: &[&Finding], report: &Report, shown: Shown) {
    if findings.is_empty() {
        return;
    }
    ui.line("");
    ui.line(paint(BOLD, format!("{title}:")));
    for finding in findings {
        let state = paint(style(finding.state), format!("{:<12}", finding.state.as_str()));
        let place = place(report, &finding.item).map(|p| format!("  {p}")).unwrap_or_default();
        ui.line(format!("  {state} {}{}", finding.item, paint(DIM, place)));
        if let Some(why) = why(report, &finding.item) {
            ui.line(format!("{INDENT}{why}"));
        }
        if let Some(found) = &finding.cause {
            ui.line(format!("{INDENT}{}", since(found)));
        }
        if let Some(conflict) = report.hunk(&finding.item).and_then(|h| h.conflict.as_ref()) {
            render::both_sides(ui, conflict);
        }
        if let (true, Some(verdict)) = (shown.diff, report.contract(&finding.item)) {
            verdict.diff.iter().for_each(|l| ui.line(format!("{INDENT}{}", render::diff_line(l))));
        }
    }
}

fn nearby(ui: &mut Ui, report: &Report, shown: Shown) {
    let shown_any = changed_nearby(ui, report.changed_nearby(), shown);
    if shown_any && !shown.diff {
        ui.line(paint(DIM, "  (--diff shows how)"));
    }
}

/// Prints the hunks that were placed although something around them changed, each
/// with its entry and its number; says whether there were any. A diff that
/// several hunks of a function share is shown once.
pub fn changed_nearby<'r>(
    ui: &mut Ui,
    hunks: impl Iterator<Item = (&'r str, usize, &'r HunkReport)>,
    shown: Shown,
) -> bool {
    let mut last: Option<&Nearby> = None;
    for (at, (entry, number, hunk)) in hunks.enumerate() {
        if at == 0 {
            ui.line("");
            ui.line(paint(BOLD, "Placed, and changed nearby:"));
        }
        let line = hunk.line.map(|l| format!(":{l}")).unwrap_or_default();
        ui.line(format!(
            "  {entry}, hunk {number}  {}",
            paint(DIM, format!("{}{line}", hunk.file))
        ));
        let Some(nearby) = hunk.nearby.as_ref().filter(|_| shown.diff) else {
            last = last.or(hunk.nearby.as_ref());
            continue;
        };
        if last == Some(nearby) {
            ui.line(format!("{INDENT}as above"));
        } else {
            nearby.diff.iter().for_each(|l| ui.line(format!("{INDENT}{}", render::diff_line(l))));
        }
        last = Some(nearby);
    }
    last.is_some()
}

fn citations(ui: &mut Ui, report: &Report) {
    let mut moved = report.moved_citations().peekable();
    if moved.peek().is_none() {
        return;
    }
    ui.line("");
    ui.line(paint(BOLD, "Citations that move:"));
    for (old, new) in moved {
        ui.line(format!("  {old} → {new}"));
    }
}

fn history(ui: &mut Ui, steps: &[Step]) {
    ui.line("");
    ui.line(paint(BOLD, "Commit by commit:"));
    if steps.is_empty() {
        ui.line("  no commit on the way changes anything");
    }
    for step in steps {
        ui.line(format!("  {}", cause(&step.commit)));
        for change in &step.changes {
            let to = paint(style(change.to), change.to);
            ui.line(format!("    {}: {} → {to}", change.item, change.from));
        }
    }
}

fn everything(ui: &mut Ui, report: &Report) {
    ui.line("");
    ui.line(paint(BOLD, "Everything:"));
    for entry in &report.entries {
        render::patch(ui, &entry.as_patch());
        if let Some(made) = entry.derived.as_ref().and_then(|d| d.made.as_ref()) {
            let (from, to) = made.source_lines;
            ui.line(format!("  derived      {} from {}:{from}-{to}", made.name, made.file));
        }
    }
    for verdict in &report.contracts {
        let state = paint(style(State::Contract(verdict.status)), verdict.status.as_str());
        ui.line(format!(
            "  {state:<12} {} {}: {}",
            verdict.kind.as_str(),
            verdict.name,
            verdict.what
        ));
    }
}

/// Prints a report for the body of a pull request.
pub fn markdown(ui: &mut Ui, report: &Report, shown: Shown) {
    ui.line(format!("## {} → {}", named(&report.pin), named(&report.target)));
    ui.line("");
    ui.line(format!("{}.", summary(report)));
    ui.line(verdict(report));
    if !report.findings.is_empty() {
        ui.line("");
        ui.line("| State | What | Where | Since |");
        ui.line("| --- | --- | --- | --- |");
        for finding in &report.findings {
            let why = why(report, &finding.item).map(|w| format!(": {w}")).unwrap_or_default();
            let place = place(report, &finding.item);
            let place = place.map(|p| format!("`{p}`")).unwrap_or_default();
            let follows = finding.follows.as_ref().map(|entry| format!("follows from {entry}"));
            let since = finding.cause.as_ref().map(cause).or(follows).unwrap_or_default();
            let state = if finding.needs_person {
                format!("**{}**", finding.state)
            } else {
                finding.state.to_string()
            };
            let what = cell(&format!("{}{why}", finding.item));
            ui.line(format!("| {state} | {what} | {place} | {} |", cell(&since)));
        }
    }
    if !shown.diff {
        for (entry, number, hunk) in report.changed_nearby() {
            let line = hunk.line.map(|l| format!(":{l}")).unwrap_or_default();
            ui.line("");
            let at = format!("`{}{line}`", hunk.file);
            ui.line(format!("- {}, hunk {number}: placed, and changed nearby, {at}", cell(entry)));
        }
    }
    for (old, new) in report.moved_citations() {
        ui.line("");
        ui.line(format!("- `{old}` is `{new}` now"));
    }
    if let Some(steps) = &report.history {
        ui.line("");
        ui.line("| Commit | Date | Subject | Changes |");
        ui.line("| --- | --- | --- | --- |");
        for Step { commit, changes } in steps {
            let changes: Vec<String> =
                changes.iter().map(|c| format!("{}: {} → {}", c.item, c.from, c.to)).collect();
            let without = if commit.undone { "without " } else { "" };
            let id = &commit.commit.to_string()[..8];
            let (subject, changes) = (cell(&commit.subject), cell(&changes.join("; ")));
            ui.line(format!("| {without}`{id}` | {} | {subject} | {changes} |", commit.date));
        }
    }
    if shown.diff {
        let changed = report.contracts.iter().filter(|v| !v.diff.is_empty());
        for verdict in changed {
            details(ui, &verdict.key(), &verdict.diff);
        }
        nearby_details(ui, report.changed_nearby());
    }
}

/// Prints hunks that were placed although something around them changed, for the
/// body of a pull request.
pub fn nearby_details<'r>(
    ui: &mut Ui,
    hunks: impl Iterator<Item = (&'r str, usize, &'r HunkReport)>,
) {
    for (entry, number, hunk) in hunks {
        let diff = hunk.nearby.as_ref().map(|n| n.diff.as_slice()).unwrap_or_default();
        details(ui, &format!("{entry}, hunk {number}: changed nearby in {}", hunk.file), diff);
    }
}

/// A diff that is folded away.
pub fn details(ui: &mut Ui, summary: &str, diff: &[String]) {
    let summary = escaped(&summary.replace('\n', " "));
    ui.line(format!("\n<details><summary>{summary}</summary>\n\n```diff"));
    diff.iter().for_each(|l| ui.line(l));
    ui.line("```\n\n</details>");
}

/// A text as a table's cell.
pub fn cell(text: &str) -> String {
    inline(text).replace('|', "\\|")
}

/// A text as one line. What stands between backticks is shown as it is.
pub fn inline(text: &str) -> String {
    let text = text.replace('\n', " ");
    let (mut out, mut rest) = (String::new(), text.as_str());
    while let Some(open) = rest.find('`') {
        let inside = open + fence(&rest[open..]);
        out.push_str(&escaped(&rest[..open]));
        let end = inside + closed(&rest[inside..], inside - open).unwrap_or(0);
        out.push_str(&rest[open..end]);
        rest = &rest[end..];
    }
    out + &escaped(rest)
}

/// How many backticks a text begins with.
fn fence(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

/// The end of a code span: that of the next run of as many backticks as began it.
fn closed(text: &str, fence_length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = text[at..].find('`') {
        let length = fence(&text[at + next..]);
        at += next + length;
        if length == fence_length {
            return Some(at);
        }
    }
    None
}

fn escaped(text: &str) -> String {
    text.replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_spans_are_left_as_they_are() {
        for (text, shown) in [
            ("a<b> `c<d>` <e>", "a&lt;b> `c<d>` &lt;e>"),
            ("``<`>`` <", "``<`>`` &lt;"),
            ("no span ` <", "no span ` &lt;"),
            ("`` ` <\n`", "`` ` < `"),
            ("a | b", "a | b"),
        ] {
            assert_eq!(inline(text), shown);
        }
        assert_eq!(cell("`a | b<c>`"), "`a \\| b<c>`");
    }
}
