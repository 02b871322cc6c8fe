//! Meaning that must stay: token streams compared, layout and comments left out.

use std::ops::Range;

use super::directives::{defined_otherwise, has_directives, meant_otherwise, spelled_out};
use super::text::{Ends, Text};
use super::{ContractKind, Status, Verdict, Watch};
use crate::cpp::{self, function, meaning};

/// The watched bytes of a file.
fn watched(watch: &Watch, text: &Text) -> Result<Range<usize>, String> {
    let within = match &watch.function {
        Some(name) => {
            let found = function::find_in(text.functions(), name);
            found.map_err(|e| e.to_string())?.span.clone()
        }
        None if watch.from.is_some() => 0..text.bytes().len() + 1,
        None => return Err("the contract names neither `function` nor `from`".into()),
    };
    let Some(from) = &watch.from else { return Ok(within) };
    part(&text.words(&within), from, watch.to.as_deref())
}

/// From the one place of `from` to the next `to` at the same depth: `;`, or for
/// a preprocessor line its end, where nothing is said.
fn part(words: &[(usize, &[u8])], from: &str, to: Option<&str>) -> Result<Range<usize>, String> {
    let anchor = |text: &str| -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> =
            meaning(text.as_bytes()).into_iter().map(<[u8]>::to_vec).collect();
        words.pop_if(|w| w == b"\n");
        words
    };
    let first = anchor(from);
    let last = match to {
        Some(to) => anchor(to),
        None if from.starts_with('#') => vec![b"\n".to_vec()],
        None => vec![b";".to_vec()],
    };
    if first.is_empty() || last.is_empty() {
        return Err("`from` or `to` holds no token".into());
    }
    let stands = |i: usize, anchor: &[Vec<u8>]| {
        let run = words.get(i..i + anchor.len());
        run.is_some_and(|run| run.iter().zip(anchor).all(|((_, w), a)| w == a))
    };
    let begins: Vec<usize> = (0..words.len()).filter(|&i| stands(i, &first)).collect();
    let [begin] = begins[..] else {
        return Err(match begins.len() {
            0 => format!("`{from}` is not there"),
            n => format!("`{from}` stands {n} times; choose an anchor that stands once"),
        });
    };
    let mut depth = 0_isize;
    for (i, (_, word)) in words.iter().enumerate().skip(begin) {
        if i >= begin + first.len() && depth <= 0 && stands(i, &last) {
            let (at, end) = words[i + last.len() - 1];
            let length = if end == b"\n" { 0 } else { end.len() };
            return Ok(words[begin].0..at + length);
        }
        match *word {
            b"(" | b"[" | b"{" => depth += 1,
            b")" | b"]" | b"}" => depth -= 1,
            _ => {}
        }
    }
    let to = to.unwrap_or(";");
    Err(format!("after `{from}` there is no `{to}` at the same depth"))
}

/// Compares what the contract watches in the two texts.
pub(super) fn compare(watch: &Watch, ends: &Ends) -> Verdict {
    let verdict =
        |status, what: String| Verdict::new(ContractKind::Watch, watch.title(), status, what);
    let then = match watched(watch, &ends.then) {
        Ok(span) => span,
        Err(why) => return verdict(Status::Broken, format!("at the pin, {why}")),
    };
    let now = match watched(watch, &ends.now) {
        Ok(span) => span,
        Err(why) => return verdict(Status::Broken, why),
    };
    let (pin, target) = (ends.then.bytes(), ends.now.bytes());
    let line = cpp::line_of(target, now.start);
    let (old, new) = (&pin[then.clone()], &target[now.clone()]);
    let mut verdict = if old == new {
        verdict(Status::Held, "the same text".into())
    } else {
        compared(old, new, cpp::line_of(pin, then.start), line, verdict)
    };
    if verdict.status == Status::Held && pin != target && has_directives(&ends.path) {
        let (then, now) = ((&*ends.then, then.start), (&*ends.now, now.start));
        if let Some(what) = meant_otherwise(then, now, &meaning(old)) {
            (verdict.status, verdict.what) = (Status::Changed, what);
        }
    }
    verdict.place = Some(format!("{}:{line}", ends.path));
    verdict
}

/// Two texts that are not the same bytes.
fn compared(
    old: &[u8],
    new: &[u8],
    old_line: usize,
    new_line: usize,
    verdict: impl Fn(Status, String) -> Verdict,
) -> Verdict {
    let (then, now) = (meaning(old), meaning(new));
    if then == now {
        let Some(what) = defined_otherwise(old, new) else {
            return verdict(Status::Held, "layout or comments changed, no token did".into());
        };
        let mut verdict = verdict(Status::Changed, what);
        verdict.diff = diff(old, new, old_line, new_line);
        return verdict;
    }
    if spelled_out(&then) == spelled_out(&now) {
        return verdict(Status::Held, "a condition is spelled otherwise, no other token is".into());
    }
    let same = then.iter().zip(&now).take_while(|(a, b)| a == b).count();
    let shown = |words: &[&[u8]]| match words.get(same) {
        Some(_) => {
            let end = (same + 6).min(words.len());
            let begin = same.saturating_sub(2);
            String::from_utf8_lossy(&words[begin..end].join(&b' ')).replace('\n', "⏎")
        }
        None => "(the end)".into(),
    };
    let what = format!("its tokens changed: `{}` became `{}`", shown(&then), shown(&now));
    let mut verdict = verdict(Status::Changed, what);
    verdict.diff = diff(old, new, old_line, new_line);
    verdict
}

/// A diff with three lines of context; its line numbers are those of the files.
pub(crate) fn diff(old: &[u8], new: &[u8], old_line: usize, new_line: usize) -> Vec<String> {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let ops = similar::capture_diff_slices(similar::Algorithm::Myers, &old, &new);
    let mut out = Vec::new();
    for group in similar::group_diff_ops(ops, 3) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old_range = first.old_range().start..last.old_range().end;
        let new_range = first.new_range().start..last.new_range().end;
        out.push(format!(
            "@@ -{},{} +{},{} @@",
            old_line + old_range.start,
            old_range.len(),
            new_line + new_range.start,
            new_range.len()
        ));
        for op in &group {
            if op.tag() == similar::DiffTag::Equal {
                out.extend(old[op.old_range()].iter().map(|l| format!(" {l}")));
            } else {
                out.extend(old[op.old_range()].iter().map(|l| format!("-{l}")));
                out.extend(new[op.new_range()].iter().map(|l| format!("+{l}")));
            }
        }
    }
    out
}
