//! Lines an entry takes away, against those its notes declare.

use std::collections::BTreeMap;

use super::{ContractKind, Note, Status, Verdict};
use crate::patch::{Body, LineKind, Patch};

/// One verdict for each entry and file that takes lines away or has a note.
/// `entries` are the series' patches by name; the path of a file patch is its
/// name with `strip` leading parts taken off.
#[must_use]
pub fn check_notes(notes: &[Note], entries: &[(&str, &Patch)], strip: usize) -> Vec<Verdict> {
    // By entry and file: how often each line goes, and how often it is declared.
    let mut counts: BTreeMap<(String, String), BTreeMap<String, (usize, usize)>> = BTreeMap::new();
    for (entry, patch) in entries {
        for file in &patch.files {
            let Body::Text(hunks) = &file.body else { continue };
            let name = file.old_name.as_deref().or(file.new_name.as_deref()).unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            let path = name.splitn(strip + 1, '/').last().unwrap_or(&name).to_owned();
            let gone = hunks.iter().flat_map(|h| &h.lines).filter(|l| l.kind == LineKind::Removed);
            for line in gone.map(|l| shown(&l.text)).filter(|l| !l.is_empty()) {
                let lines = counts.entry(((*entry).to_owned(), path.clone())).or_default();
                lines.entry(line).or_default().0 += 1;
            }
        }
    }
    for note in notes {
        let key = (note.entry.clone(), note.file.to_string());
        let lines = counts.entry(key).or_default();
        for line in note.removes.iter().map(|l| shown(l.as_bytes())).filter(|l| !l.is_empty()) {
            lines.entry(line).or_default().1 += 1;
        }
    }
    let known = |entry: &str| entries.iter().any(|(name, _)| *name == entry);
    counts
        .into_iter()
        .map(|((entry, file), lines)| {
            let name = format!("{entry}: {file}");
            let (status, what) = if known(&entry) {
                judged(&lines)
            } else {
                (Status::Broken, format!("the series has no patch entry `{entry}`"))
            };
            let mut verdict = Verdict::new(ContractKind::Note, name, status, what);
            let open = |(line, (gone, declared)): (&String, &(usize, usize))| {
                std::iter::repeat_n(line.clone(), gone.saturating_sub(*declared))
            };
            verdict.open = lines.iter().flat_map(open).collect();
            verdict
        })
        .collect()
}

fn judged(lines: &BTreeMap<String, (usize, usize)>) -> (Status, String) {
    let first = |test: fn(&(usize, usize)) -> bool| {
        let found: Vec<&String> = lines.iter().filter(|(_, n)| test(n)).map(|(l, _)| l).collect();
        found.first().map(|line| (found.len(), (*line).clone()))
    };
    if let Some((n, line)) = first(|(gone, declared)| gone > declared) {
        let what = format!(
            "{n} removed line(s) that no note declares, first `{line}`: is an upstream fix undone?"
        );
        return (Status::Broken, what);
    }
    if let Some((n, line)) = first(|(gone, declared)| gone < declared) {
        let what = format!("{n} declared line(s) that the entry does not remove, first `{line}`");
        return (Status::Broken, what);
    }
    let removed: usize = lines.values().map(|(gone, _)| gone).sum();
    (Status::Held, format!("{removed} removed line(s), each declared"))
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim().to_owned()
}
