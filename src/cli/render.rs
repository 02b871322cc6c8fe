//! Reports as text for people, shared by the commands that lay patches.

use anstyle::Style;
use mlx_overlay_engine::lay::EntryReport;
use mlx_overlay_engine::report::{Conflict, FileReport, HunkClass, HunkReport, PatchReport};

use super::ui::{BAD, BOLD, DIM, GOOD, Ui, WARN, paint};

/// The style of a hunk class: good, worth a look, or wrong.
#[must_use]
pub fn class_style(class: HunkClass) -> Style {
    match class {
        HunkClass::Exact | HunkClass::Moved | HunkClass::Landed => GOOD,
        HunkClass::Offset | HunkClass::FileMoved => WARN,
        _ => BAD,
    }
}

/// Prints one patch: its name, then a line a file operation and a hunk, and
/// under what does not hold both sides of it.
pub fn patch(ui: &mut Ui, patch: &PatchReport) {
    ui.line(paint(BOLD, &patch.name));
    for file in patch.files.iter().filter(|f| says_something(f, patch)) {
        ui.line(file_line(file));
    }
    for hunk in &patch.hunks {
        ui.line(hunk_line(hunk));
        if let Some(why) = &hunk.why {
            ui.line(format!("{INDENT}{why}"));
        }
        if let Some(nearby) = &hunk.nearby {
            ui.line(format!("{INDENT}changed nearby, from line {}:", nearby.line));
            nearby.diff.iter().for_each(|l| ui.line(format!("{INDENT}{}", diff_line(l))));
        }
        if let Some(conflict) = &hunk.conflict {
            both_sides(ui, conflict);
        }
    }
}

const INDENT: &str = "               ";

/// A modified file is told by its hunks.
fn says_something(file: &FileReport, patch: &PatchReport) -> bool {
    let has_hunks = patch.hunks.iter().any(|h| h.file == file.path);
    file.operation != "modify" || !has_hunks || file.why.is_some()
}

fn file_line(file: &FileReport) -> String {
    let class = paint(class_style(file.class), format!("{:<12}", file.class.as_str()));
    let from = file.from.as_ref().map(|f| format!(" from {f}")).unwrap_or_default();
    let why = file.why.as_ref().map(|w| format!(": {w}")).unwrap_or_default();
    format!("  {class} {} {}{from}{why}", file.operation, file.path)
}

fn hunk_line(hunk: &HunkReport) -> String {
    let class = paint(class_style(hunk.class), format!("{:<12}", hunk.class.as_str()));
    let place = match hunk.line.or(hunk.new_line) {
        Some(line) => format!("{}:{line}", hunk.file),
        None => format!("{}:{} (stated)", hunk.file, hunk.stated_line),
    };
    let mut notes = Vec::new();
    if let Some(line) = hunk.line
        && line != hunk.stated_line
        && hunk.stated_line > 0
    {
        notes.push(format!("stated {}", hunk.stated_line));
    }
    if hunk.inferred {
        notes.push("place inferred from order and neighbours".to_string());
    }
    if !hunk.rivals.is_empty() {
        let lines: Vec<String> = hunk.rivals.iter().map(ToString::to_string).collect();
        notes.push(format!("would fit at line {} too", lines.join(", ")));
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    let size = paint(DIM, format!("+{} -{}", hunk.added, hunk.removed));
    format!("  {class} hunk {} {place} {size}{notes}", hunk.number)
}

/// Prints both sides of a hunk that does not hold.
pub fn both_sides(ui: &mut Ui, conflict: &Conflict) {
    if !conflict.wanted.is_empty() {
        ui.line(format!("{INDENT}wanted:"));
        conflict.wanted.iter().for_each(|l| ui.line(format!("{INDENT}  {l}")));
    }
    if let (false, Some(line)) = (conflict.found.is_empty(), conflict.found_line) {
        ui.line(format!("{INDENT}found, from line {line}:"));
        conflict.found.iter().for_each(|l| ui.line(format!("{INDENT}  {l}")));
    }
    if let Some(line) = conflict.hint_line {
        ui.line(format!("{INDENT}most of it stands at line {line}; nothing is applied there"));
    }
}

/// A line of a diff, coloured.
#[must_use]
pub fn diff_line(line: &str) -> String {
    match line.as_bytes().first() {
        Some(b'-') => paint(BAD, line),
        Some(b'+') => paint(GOOD, line),
        _ => line.to_string(),
    }
}

/// Prints an entry of a series: a patch, or the copy it derives.
pub fn entry(ui: &mut Ui, entry: &EntryReport) {
    let Some(derived) = &entry.derived else { return patch(ui, &entry.as_patch()) };
    ui.line(paint(BOLD, &entry.name));
    let Some(made) = &derived.made else {
        let why = derived.why.as_deref().unwrap_or("the function cannot be derived");
        ui.line(format!("  {} {why}", paint(BAD, format!("{:<12}", "conflict"))));
        return;
    };
    let class = if derived.source_changed {
        paint(WARN, format!("{:<12}", "changed"))
    } else {
        paint(GOOD, format!("{:<12}", "derived"))
    };
    ui.line(format!(
        "  {class} {}:{} {} from {} (lines {}-{})",
        made.file, made.lines.0, made.name, made.function, made.source_lines.0, made.source_lines.1
    ));
    if derived.source_changed {
        ui.line(format!(
            "{INDENT}upstream changed {} since the pin; the copy follows it",
            made.function
        ));
    }
}

/// `1 entry`, `2 entries`.
#[must_use]
pub fn entries(n: usize) -> String {
    format!("{n} {}", if n == 1 { "entry" } else { "entries" })
}

/// `1 hunk`, `2 hunks`.
#[must_use]
pub fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
