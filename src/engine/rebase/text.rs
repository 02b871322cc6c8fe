//! Patch text, made again: hunks printed from edits, with fresh context.

use std::ops::Range;

use crate::locate::Edit;
use crate::merge::lines;
use crate::patch::{Body, Hunk, binary, parse, quoted};
use crate::snapshot::ObjectId;

/// Lines of context around a change, as git shows them.
const CONTEXT: usize = 3;
/// The most bytes of a section heading, as git cuts them.
const HEADING: usize = 80;
/// Digits of a blob id in a patch that is made again.
const DIGITS: usize = 11;

/// The hunks that turn `text` into what `edits` make of it. The edits are
/// sorted and do not meet; those whose context meets share a hunk.
pub(super) fn hunks(text: &[&[u8]], edits: &[Edit]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut shift: isize = 0;
    let mut rest = edits;
    while let Some(first) = rest.first() {
        let mut taken = 1;
        let mut end = first.range.end;
        while let Some(next) = rest.get(taken).filter(|n| n.range.start <= end + 2 * CONTEXT) {
            end = next.range.end;
            taken += 1;
        }
        let (group, later) = rest.split_at(taken);
        rest = later;
        let span = first.range.start.saturating_sub(CONTEXT)..(end + CONTEXT).min(text.len());
        shift = hunk(text, group, span, shift, &mut out);
    }
    out
}

/// Prints one hunk and gives the shift of the lines after it.
fn hunk(
    text: &[&[u8]],
    edits: &[Edit],
    span: Range<usize>,
    shift: isize,
    out: &mut Vec<u8>,
) -> isize {
    let added: usize = edits.iter().map(|e| e.lines.len()).sum();
    let removed: usize = edits.iter().map(|e| e.range.len()).sum();
    let (old_len, new_len) = (span.len(), span.len() + added - removed);
    let begin = |start: usize, len: usize| if len == 0 { start } else { start + 1 };
    let new_start = span.start.checked_add_signed(shift).unwrap_or_default();
    let count = |len: usize| if len == 1 { String::new() } else { format!(",{len}") };
    out.extend_from_slice(
        format!(
            "@@ -{}{} +{}{} @@",
            begin(span.start, old_len),
            count(old_len),
            begin(new_start, new_len),
            count(new_len)
        )
        .as_bytes(),
    );
    if let Some(heading) = heading(text, span.start) {
        out.push(b' ');
        out.extend_from_slice(heading);
    }
    out.push(b'\n');
    let mut at = span.start;
    for edit in edits {
        text[at..edit.range.start].iter().for_each(|l| line(b' ', l, out));
        text[edit.range.clone()].iter().for_each(|l| line(b'-', l, out));
        edit.lines.iter().for_each(|l| line(b'+', l, out));
        at = edit.range.end;
    }
    text[at..span.end].iter().for_each(|l| line(b' ', l, out));
    shift + added.cast_signed() - removed.cast_signed()
}

fn line(sign: u8, line: &[u8], out: &mut Vec<u8>) {
    out.push(sign);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}

/// The line that heads what stands at `at`, as git chooses it.
fn heading<'t>(text: &[&'t [u8]], at: usize) -> Option<&'t [u8]> {
    let heads =
        |l: &&&[u8]| l.first().is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$'));
    let line = text[..at].iter().rev().find(heads)?;
    let mut end = line.trim_ascii_end().len().min(HEADING);
    // A cut inside a character leaves no half of it.
    while end > 0 && end < line.len() && line[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    Some(line[..end].trim_ascii_end())
}

/// The hunks that turn one text into the other, as a patch has them.
pub(super) fn hunks_between(old: &[u8], new: &[u8]) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let printed = [b"--- a/f\n+++ b/f\n", &hunks(&old, &edits(&old, &new))[..]].concat();
    let files = parse(&printed).map(|patch| patch.files).unwrap_or_default();
    files
        .into_iter()
        .flat_map(|f| if let Body::Text(hunks) = f.body { hunks } else { vec![] })
        .collect()
}

/// The edits that turn one text into the other.
pub(super) fn edits(old: &[&[u8]], new: &[&[u8]]) -> Vec<Edit> {
    similar::capture_diff_slices(similar::Algorithm::Myers, old, new)
        .iter()
        .filter(|op| op.tag() != similar::DiffTag::Equal)
        .map(|op| Edit {
            range: op.old_range(),
            lines: new[op.new_range()].iter().map(|l| l.to_vec()).collect(),
        })
        .collect()
}

/// A line that begins a file patch, from and to these names.
pub(super) fn git_line([from, to]: [&str; 2]) -> String {
    format!("diff --git {} {}\n", quoted(&format!("a/{from}")), quoted(&format!("b/{to}")))
}

/// A `---` or `+++` line. Like git it ends a name that has a blank with a tab, so that no
/// tool takes a part of it for a time.
pub(super) fn named(sign: &str, name: Option<&str>) -> String {
    let Some(name) = name else { return format!("{sign} /dev/null\n") };
    let tab = if name.contains(' ') { "\t" } else { "" };
    format!("{sign} {}{tab}\n", quoted(name))
}

/// The change of a file's bytes as a git patch: its `index` line, its names (nothing stands
/// for no file), and hunks or, of bytes that are no text, the whole of both sides.
/// `mode` is that of both.
pub(super) fn content(
    names: [Option<&str>; 2],
    [old, new]: [&[u8]; 2],
    mode: Option<&str>,
) -> Vec<u8> {
    let is_binary = old.contains(&0) || new.contains(&0);
    let digits = if is_binary { 40 } else { DIGITS };
    let id = |name: Option<&str>, bytes: &[u8]| match name {
        Some(_) => ObjectId::of_blob(bytes).to_string()[..digits].to_owned(),
        None => "0".repeat(digits),
    };
    let mode = mode.map(|m| format!(" {m}")).unwrap_or_default();
    let mut out = format!("index {}..{}{mode}\n", id(names[0], old), id(names[1], new));
    if is_binary {
        return [out.into_bytes(), binary::print(old, new)].concat();
    }
    if !(old.is_empty() && new.is_empty()) {
        for (sign, name, side) in [("---", names[0], "a/"), ("+++", names[1], "b/")] {
            out.push_str(&named(sign, name.map(|name| format!("{side}{name}")).as_deref()));
        }
    }
    let (old, new) = (lines(old), lines(new));
    [out.into_bytes(), hunks(&old, &edits(&old, &new))].concat()
}

/// An `index` line, its ids cut to `digits`.
pub(super) fn index_line(old: &[u8], new: &[u8], digits: usize, mode: Option<&str>) -> String {
    let id = |bytes: &[u8]| {
        let mut id = ObjectId::of_blob(bytes).to_string();
        id.truncate(digits.clamp(7, 40));
        id
    };
    let mode = mode.map(|m| format!(" {m}")).unwrap_or_default();
    format!("index {}..{}{mode}\n", id(old), id(new))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::apply::Ground;
    use crate::snapshot::{File, MemoryTree, Mode, Tree, TreePath};

    #[test]
    fn hunks_are_those_git_prints() {
        // `git diff` of the same two files.
        let old = "int f() {\n  a\n  b\n  c\n  d\n  e\n  f\n  g\n}\n";
        let new = "int f() {\n  a\n  b\n  c\n  D\n  e\n  f\n  g\n}\nend";
        let (old, new) = (lines(old.as_bytes()), lines(new.as_bytes()));
        let printed = String::from_utf8(hunks(&old, &edits(&old, &new))).expect("UTF-8");
        assert_eq!(
            printed,
            "@@ -2,8 +2,9 @@ int f() {\n   a\n   b\n   c\n-  d\n+  D\n   e\n   f\n   g\n }\n+end\n\
             \\ No newline at end of file\n"
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_applies_and_gives_the_new_text(
            old in proptest::collection::vec(proptest::sample::select(vec!["a", "b", "}", "", "f()"]), 0..40),
            new in proptest::collection::vec(proptest::sample::select(vec!["a", "b", "}", "", "f()"]), 0..40),
            ends in any::<(bool, bool)>(),
        ) {
            let text = |lines: &[&str], end: bool| {
                let text = lines.join("\n");
                if end && !text.is_empty() { text + "\n" } else { text }
            };
            let (old, new) = (text(&old, ends.0), text(&new, ends.1));
            let path = TreePath::new("f").expect("a plain path");
            let tree = MemoryTree(
                [(path.clone(), File::new(Mode::Regular, old.as_bytes()))].into(),
            );
            let (then, now) = (lines(old.as_bytes()), lines(new.as_bytes()));
            let edits = edits(&then, &now);
            prop_assume!(!edits.is_empty());
            let mut bytes = b"diff --git a/f b/f\n".to_vec();
            let sides = [old.as_bytes(), new.as_bytes()];
            bytes.extend(content([Some("f"), Some("f")], sides, Some("100644")));
            let parsed = parse(&bytes).expect("it parses");
            let mut ground = Ground::mapped(&tree, &tree);
            let report = ground.apply("p", &parsed, 1).expect("judged");
            prop_assert!(report.holds(), "{}", String::from_utf8_lossy(&bytes));
            let laid = ground.target.file(&path).expect("memory").expect("there");
            prop_assert_eq!(&laid.bytes[..], new.as_bytes());
        }
    }
}
