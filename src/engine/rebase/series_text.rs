//! `series.toml` for the new pin: the old text, with what changed changed and
//! everything else, comments included, as it was.

use std::collections::BTreeMap;

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use crate::contract::{ContractKind, Note, Status, Verdict, Watch};
use crate::lay::STRIP;
use crate::patch::{Body, LineKind, Patch};
use crate::snapshot::TreePath;

use super::{Plan, Planned, RebaseError};

/// A note that stays.
pub(super) struct KeptNote {
    /// Its file at the old pin.
    was: TreePath,
    /// The note at the new one.
    pub note: Note,
}

/// The notes that the new patches still need: each without the lines that its
/// entry does not take away any more, its file by its new name.
pub(super) fn notes(
    notes: &[Note],
    patches: &[(&str, &Patch)],
    entries: &[Planned],
) -> Vec<KeptNote> {
    // Of a rename that upstream made too the edits alone are left, under the new name.
    let stays = |note: &Note, left: &Removed| {
        left.contains_key(&(note.entry.clone(), note.file.to_string()))
    };
    let renamed = |note: &Note, left: &Removed| {
        let entry = entries.iter().find(|p| p.name == note.entry)?;
        let file = entry.report.patch.files.iter().find(|f| f.from.as_ref() == Some(&note.file))?;
        let follows =
            file.operation == "modify" || file.operation == "rename" && !stays(note, left);
        follows.then(|| file.path.clone())
    };
    let mut left = removed(patches);
    let mut out = Vec::new();
    for note in notes {
        let file = renamed(note, &left).unwrap_or_else(|| note.file.clone());
        let key = (note.entry.clone(), file.to_string());
        let Some(lines) = left.get_mut(&key) else { continue };
        let mut kept = Vec::new();
        for line in &note.removes {
            if let Some(n) = lines.get_mut(line.trim()).filter(|n| **n > 0) {
                *n -= 1;
                kept.push(line.clone());
            }
        }
        if !kept.is_empty() {
            let now = Note { removes: kept, file, ..note.clone() };
            out.push(KeptNote { was: note.file.clone(), note: now });
        }
    }
    out
}

type Removed = BTreeMap<(String, String), BTreeMap<String, usize>>;

/// The lines each entry takes from each file, trimmed, with how often.
fn removed(patches: &[(&str, &Patch)]) -> Removed {
    let mut out = Removed::new();
    for (entry, patch) in patches {
        for file in &patch.files {
            let Body::Text(hunks) = &file.body else { continue };
            let name = file.old_name.as_deref().or(file.new_name.as_deref()).unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            let path = name.splitn(STRIP + 1, '/').last().unwrap_or(&name).to_owned();
            let gone = hunks.iter().flat_map(|h| &h.lines).filter(|l| l.kind == LineKind::Removed);
            for line in gone {
                let text = String::from_utf8_lossy(&line.text).trim().to_owned();
                let lines = out.entry(((*entry).to_owned(), path.clone())).or_default();
                *lines.entry(text).or_default() += 1;
            }
        }
    }
    out
}

/// The new text, for the commit `target`. What was accepted of a contract for
/// it is kept there with its reason; what was accepted for another target was
/// said of another pin's text, and goes.
///
/// # Errors
/// The old text is no document, which it was when it was loaded.
pub(super) fn rewritten(
    old: &str,
    plan: &Plan,
    kept_notes: &[KeptNote],
    target: &str,
) -> Result<String, RebaseError> {
    let mut document: DocumentMut = old.parse().map_err(|e: toml_edit::TomlError| {
        RebaseError::State { path: crate::series::SERIES_FILE.into(), what: e.message().into() }
    })?;
    entries(&mut document, plan);
    for kind in ["watch", "kernel", "cite"] {
        for table in tables(&mut document, kind) {
            table.remove("acknowledged");
        }
    }
    // What was accepted is found by the names that the contracts had.
    for verdict in &plan.contracts {
        accepted(&mut document, verdict, target);
    }
    for verdict in plan.left_out() {
        let array = document.get_mut(verdict.kind.as_str()).and_then(Item::as_array_of_tables_mut);
        if let Some(array) = array {
            remove_where(array, |table| is_of(table, verdict));
        }
    }
    for verdict in &plan.contracts {
        moved(&mut document, verdict);
    }
    rewrite_notes(&mut document, kept_notes);
    accept_notes(&mut document, &plan.contracts);
    Ok(document.to_string())
}

fn tables<'d>(document: &'d mut DocumentMut, key: &str) -> impl Iterator<Item = &'d mut Table> {
    document
        .get_mut(key)
        .and_then(Item::as_array_of_tables_mut)
        .into_iter()
        .flat_map(|a| a.iter_mut())
}

/// Drops entries that are left out, and what was accepted of derived ones; a
/// rule that is another now takes the old one's place.
fn entries(document: &mut DocumentMut, plan: &Plan) {
    let gone = |table: &Table| {
        let name = table.get("name").and_then(Item::as_str).unwrap_or_default();
        plan.entries.iter().any(|p| p.name == name && !p.outcome.stays())
    };
    if let Some(array) = document.get_mut("entry").and_then(Item::as_array_of_tables_mut) {
        remove_where(array, gone);
    }
    for table in tables(document, "entry") {
        let name = table.get("name").and_then(Item::as_str).unwrap_or_default();
        let planned = plan.entries.iter().find(|p| p.name == name);
        if let Some(rule) = planned.and_then(|p| p.rule.as_ref()) {
            let text = toml::Value::try_from(rule).expect("a rule was read from such a value");
            let inline: toml_edit::Value =
                text.to_string().parse().expect("a value is written as it is read");
            table["derive"] = value(inline);
        }
        if let Some(rule) = table.get_mut("derive").and_then(Item::as_table_like_mut) {
            rule.remove("acknowledged");
        }
    }
}

/// Removes tables, each with the comment right above it. What a blank line parts
/// from a table heads those after it too, and stays with the next.
fn remove_where(array: &mut ArrayOfTables, gone: impl Fn(&Table) -> bool) {
    let mut at = 0;
    while at < array.len() {
        if let Some(table) = array.get(at).filter(|table| gone(table)) {
            let heading = heading(table).map(str::to_owned);
            array.remove(at);
            if let Some(heading) = heading
                && let Some(next) = array.get_mut(at)
                && self::heading(next).is_none()
            {
                let own = next.decor().prefix().and_then(|p| p.as_str()).unwrap_or_default();
                let prefix = format!("{heading}{own}");
                next.decor_mut().set_prefix(prefix);
            }
        } else {
            at += 1;
        }
    }
}

/// The comments above a table that a blank line parts from it.
fn heading(table: &Table) -> Option<&str> {
    let above = table.decor().prefix()?.as_str()?;
    let end = above.rfind("\n\n").filter(|end| above[..*end].contains('#'))?;
    Some(&above[..end + 1])
}

/// Writes down why a contract that changed was accepted.
fn accepted(document: &mut DocumentMut, verdict: &Verdict, target: &str) {
    let Some(reason) = verdict.acknowledged.as_deref() else { return };
    let given = || {
        let mut table = toml_edit::InlineTable::new();
        table.insert("target", target.into());
        table.insert("reason", reason.into());
        value(toml_edit::Array::from_iter([table]))
    };
    let key = match verdict.kind {
        ContractKind::Note => return,
        ContractKind::Derive => "entry",
        kind => kind.as_str(),
    };
    for table in tables(document, key).filter(|table| is_of(table, verdict)) {
        match table.get_mut("derive").and_then(Item::as_table_like_mut) {
            Some(rule) => rule.insert("acknowledged", given()),
            None => table.insert("acknowledged", given()),
        };
    }
}

/// Whether a contract's table, or the entry of a derived function, is the one a
/// verdict is about.
fn is_of(table: &Table, verdict: &Verdict) -> bool {
    let text = |key: &str| table.get(key).and_then(Item::as_str);
    match verdict.kind {
        ContractKind::Watch => {
            toml::from_str::<Watch>(&table.to_string()).is_ok_and(|w| w.title() == verdict.name)
        }
        ContractKind::Kernel => text("name") == Some(&verdict.name),
        ContractKind::Cite => text("at") == Some(&verdict.name),
        ContractKind::Derive => {
            let rule = table.get("derive").and_then(Item::as_table_like);
            let of = |key: &str| rule?.get(key)?.as_str();
            match (of("name"), of("function")) {
                (Some(name), Some(function)) => verdict.name == format!("{name} from {function}"),
                _ => false,
            }
        }
        ContractKind::Note => false,
    }
}

/// Points a citation at its new lines, a watch and a kernel at their renamed
/// files. Of a citation whose lines changed and were accepted, the symbol's place is taken.
fn moved(document: &mut DocumentMut, verdict: &Verdict) {
    let accepted = (verdict.status == Status::Acknowledged).then_some(&verdict.place);
    let place = match verdict.kind {
        ContractKind::Cite => verdict.moved_to.as_ref().or(accepted.and_then(Option::as_ref)),
        ContractKind::Watch | ContractKind::Kernel => verdict.moved_to.as_ref(),
        ContractKind::Note | ContractKind::Derive => return,
    };
    let key = if verdict.kind == ContractKind::Cite { "at" } else { "file" };
    for table in tables(document, verdict.kind.as_str()).filter(|table| is_of(table, verdict)) {
        if let Some(place) = place {
            table[key] = value(place.as_str());
        }
        let host = table.get_mut("host").and_then(Item::as_table_like_mut);
        if let (Some(host), Some(file)) = (host, &verdict.host_moved_to) {
            host.insert("file", value(file.as_str()));
        }
    }
}

/// Leaves of each note what is still removed. Notes keep their order, so the
/// kept ones are met in turn.
fn rewrite_notes(document: &mut DocumentMut, kept: &[KeptNote]) {
    let Some(array) = document.get_mut("note").and_then(Item::as_array_of_tables_mut) else {
        return;
    };
    let of = |table: &Table, kept: &KeptNote| {
        let text = |key: &str| table.get(key).and_then(Item::as_str);
        text("entry") == Some(&kept.note.entry)
            && text("file") == Some(kept.was.as_str())
            && text("reason") == Some(&kept.note.reason)
    };
    remove_where(array, |table| !kept.iter().any(|note| of(table, note)));
    for table in array.iter_mut() {
        let Some(KeptNote { was, note }) = kept.iter().find(|note| of(table, note)) else {
            continue;
        };
        if *was != note.file {
            table["file"] = value(note.file.as_str());
        }
        let now: Vec<&str> = table
            .get("removes")
            .and_then(Item::as_array)
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str())
            .collect();
        if now != note.removes {
            let lines: toml_edit::Array = note.removes.iter().map(String::as_str).collect();
            table["removes"] = value(lines);
        }
    }
}

/// A note that a person accepted declares the lines that were open.
fn accept_notes(document: &mut DocumentMut, verdicts: &[Verdict]) {
    let accepted = |v: &&Verdict| v.kind == ContractKind::Note && v.status == Status::Acknowledged;
    for verdict in verdicts.iter().filter(accepted) {
        let Some((entry, file)) = verdict.name.split_once(": ") else { continue };
        let mut table = Table::new();
        table["entry"] = value(entry);
        table["file"] = value(file);
        let lines: toml_edit::Array = verdict.open.iter().map(String::as_str).collect();
        table["removes"] = value(lines);
        table["reason"] = value(verdict.acknowledged.as_deref().unwrap_or_default());
        let array = document.entry("note").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        if let Some(array) = array.as_array_of_tables_mut() {
            array.push(table);
        }
    }
}
