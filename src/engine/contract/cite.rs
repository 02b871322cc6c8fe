//! Citations: which symbol a `file:line` stood for, and where it went.

use std::ops::Range;

use super::directives::{defined, redefined};
use super::text::Ends;
use super::{Cite, ContractKind, Place, Status, Verdict};
use crate::cpp::{self, Function, Kind, function, lex};
use crate::locate::anywhere;
use crate::merge::{LineMap, lines};

/// Checks the citation at the pin, and follows it to the target.
pub(super) fn follow(cite: &Cite, ends: &Ends) -> Verdict {
    let (pin, target, file) = (ends.then.bytes(), ends.now.bytes(), &ends.path);
    let verdict =
        |status, what: String| Verdict::new(ContractKind::Cite, cite.at.to_string(), status, what);
    let symbol = &cite.symbol;
    let (old, new) = (lines(pin), lines(target));
    if cite.at.last > old.len() {
        let what = format!("at the pin, the file has {} lines", old.len());
        return verdict(Status::Broken, what);
    }
    let functions = function::all_in(ends.then.functions(), symbol);
    let inside = |f: &Function| f.lines.0 <= cite.at.first && cite.at.last <= f.lines.1;
    let is_function = functions.iter().any(|f| inside(f));
    if !is_function && !names(old[cite.at.first - 1], symbol) {
        let what = match functions.first() {
            Some(f) => format!("at the pin, `{symbol}` is at {}-{}", f.lines.0, f.lines.1),
            None => format!("at the pin, `{symbol}` is not on this line"),
        };
        return verdict(Status::Broken, what);
    }
    let map = ends.map();
    let place = |first, last| Place { file: file.clone(), first, last };
    let mapped = map.line(cite.at.first - 1).zip(map.line(cite.at.last - 1));
    let mapped = mapped.map(|(first, last)| place(first + 1, last + 1));
    let now = function::all_in(ends.now.functions(), symbol);
    let fits = |p: &Place| {
        if is_function {
            now.iter().any(|f| f.lines.0 <= p.first && p.last <= f.lines.1)
        } else {
            names(new[p.first - 1], symbol)
        }
    };
    let elsewhere = || {
        let cited = cite.at.first - 1..cite.at.last;
        let defined = || redefined((&ends.then, &ends.now), &cited, map).filter(|_| !is_function);
        let lines = stands(cite, &functions, &now, (&old, &new)).or_else(defined)?;
        Some(place(lines.start + 1, lines.end))
    };
    let place = mapped.filter(|p| p.first <= p.last && fits(p));
    match place.or_else(|| elsewhere().filter(fits)) {
        Some(place) if place == cite.at => verdict(Status::Held, format!("`{symbol}`")).at(place),
        Some(place) => {
            let what = format!("`{symbol}` is at {place} now");
            let mut verdict = verdict(Status::Held, what);
            verdict.moved_to = Some(place.to_string());
            verdict.at(place)
        }
        None => lost(cite, &now, ends, is_function, verdict),
    }
}

impl Verdict {
    fn at(mut self, place: Place) -> Self {
        self.place = Some(format!("{}:{}", place.file, place.first));
        self
    }
}

/// The lines (0-based) at which the cited lines stand as they were, in their
/// function or with their name, where upstream moved these within the file and
/// one place alone fits.
fn stands(
    cite: &Cite,
    then: &[&Function],
    now: &[&Function],
    (old, new): (&[&[u8]], &[&[u8]]),
) -> Option<Range<usize>> {
    let cited = cite.at.first - 1..cite.at.last;
    let lines_of = |f: &Function| f.lines.0 - 1..f.lines.1;
    let mut places: Vec<usize> = Vec::new();
    match then.iter().find(|f| f.lines.0 <= cite.at.first && cite.at.last <= f.lines.1) {
        Some(own) => {
            let own = lines_of(own);
            let within = cited.start - own.start..cited.end - own.start;
            for one in now.iter().map(|f| lines_of(f)) {
                let map = LineMap::new(&old[own.clone()], &new[one.clone()]);
                places.extend(map.kept(within.clone()).map(|at| one.start + at));
            }
        }
        // Of lines that stood twice, another may be the one that is left.
        None if anywhere(&old[cited.clone()], old).len() == 1 => {
            places = anywhere(&old[cited.clone()], new);
        }
        None => {}
    }
    match places[..] {
        [at] => Some(at..at + cited.len()),
        _ => None,
    }
}

/// The cited lines themselves are gone or elsewhere: is the symbol still there?
fn lost(
    cite: &Cite,
    now: &[&Function],
    ends: &Ends,
    is_function: bool,
    verdict: impl Fn(Status, String) -> Verdict,
) -> Verdict {
    let (symbol, file) = (&cite.symbol, &ends.path);
    let at = |line: usize| Place { file: file.clone(), first: line, last: line };
    match now {
        [one] if is_function => {
            let what = format!(
                "the cited lines changed; `{symbol}` is at {}:{}-{}",
                file, one.lines.0, one.lines.1
            );
            verdict(Status::Changed, what).at(at(one.lines.0))
        }
        [] if is_function => verdict(Status::Broken, format!("`{symbol}` is gone")),
        _ => {
            let defined = defined((&ends.then, &ends.now), cite.at.first - 1);
            if let Ok([line]) = defined.as_deref() {
                let what =
                    format!("the cited line changed; `{symbol}` is defined on line {}", line + 1);
                return verdict(Status::Changed, what).at(at(line + 1));
            }
            let undefined = defined.err().unwrap_or_default();
            let found: Vec<usize> = lines(ends.now.bytes())
                .iter()
                .enumerate()
                .filter(|(i, l)| names(l, symbol) && !undefined.contains(i))
                .map(|(i, _)| i + 1)
                .collect();
            if let [first, ..] = undefined[..] {
                let stands = found.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                let stands = match found[..] {
                    [] => String::new(),
                    [_] => format!("; it stands on line {stands} all the same"),
                    _ => format!("; it stands on lines {stands} all the same"),
                };
                let line = first + 1;
                let what =
                    format!("`{symbol}` is defined no more, line {line} undefines it{stands}");
                return match found[..] {
                    [line] => verdict(Status::Changed, what).at(at(line)),
                    _ => verdict(Status::Broken, what),
                };
            }
            match found[..] {
                [] => verdict(Status::Broken, format!("`{symbol}` is gone")),
                [line] => {
                    let what = format!("the cited line changed; `{symbol}` is on line {line}");
                    verdict(Status::Changed, what).at(at(line))
                }
                _ => {
                    let what = format!("the cited line is gone; `{symbol}` is on lines {found:?}");
                    verdict(Status::Broken, what)
                }
            }
        }
    }
}

/// Whether the line holds the name as a token, a directive's words included.
fn names(line: &[u8], symbol: &str) -> bool {
    let symbol = symbol.rsplit("::").next().unwrap_or(symbol).as_bytes();
    let direct = |text: &[u8]| {
        cpp::lex_line(text).iter().any(|t| t.kind == Kind::Identifier && t.of(text) == symbol)
    };
    lex(line).iter().any(|t| match t.kind {
        Kind::Identifier => t.of(line) == symbol,
        Kind::Directive => direct(t.of(line)),
        _ => false,
    })
}
