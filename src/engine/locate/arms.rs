//! Which arm of a condition lines are in.

use std::ops::Range;

use foldhash::HashMap;

use super::outline::{Arm, Outlined};
use crate::cpp::{Condition, meaning};

/// A condition, and whether it is met.
type Met = (Vec<u8>, bool);

/// The words of a condition, and whether its branch is taken where they hold.
type Stated<'w, 't> = (&'w [&'t [u8]], bool);

/// The condition that lines which were at line `was`, and are at `is`, came to the other
/// side of, and whether it is met there.
pub(super) fn other_arm(
    (base, then): Outlined<'_>,
    (text, now): Outlined<'_>,
    (was, is): (usize, usize),
) -> Option<Met> {
    let before = met(base, &then.branches(was));
    let after = met(text, &now.branches(is));
    after.into_iter().find(|(condition, met)| before.contains(&(condition.clone(), !met)))
}

/// Whether lines that were at line `was`, and are at `is`, stand in another arm of the same
/// condition too, at one of `places`, and neither what is met there nor the rest of the arms
/// says which are the old ones. The condition has to be in the lines `within`; `rest` are
/// those of the base that tell where they were in no arm.
pub(super) fn is_one_of_several(
    sides: (Outlined<'_>, Outlined<'_>),
    (was, is): (usize, usize),
    (within, rest): (&Range<usize>, &Range<usize>),
    mut places: impl Iterator<Item = usize>,
) -> bool {
    let ((base, then), (text, now)) = sides;
    let (before, own) = (then.arms(base, was), now.arms(text, is));
    let open = |place: usize| {
        let others = now.arms(text, place);
        let beside = |arm: &Arm| {
            let same = |other: &&Arm| other.condition == arm.condition && other.lines != arm.lines;
            others.iter().find(same).map(|other| other.lines.clone())
        };
        let inside = own.iter().rev().filter(|arm| within.contains(&arm.condition));
        let Some((arm, other)) = inside.filter_map(|arm| Some((arm, beside(arm)?))).next() else {
            return false;
        };
        let like = |lines: &Range<usize>| {
            let with = |old: &Range<usize>| shared(&base[old.clone()], &text[lines.clone()]);
            before.iter().map(|arm| with(&arm.lines)).max().unwrap_or_else(|| with(rest))
        };
        match told(sides, (was, is), place) {
            Some(own) => !own,
            // A copy that came has to be much unlike.
            None if before.is_empty() => like(&arm.lines) <= 2 * like(&other),
            None => like(&arm.lines) <= like(&other),
        }
    };
    places.any(open)
}

/// Whether what is met tells that lines which were at line `was` are at `is`, or that they
/// are at `place`.
pub(super) fn told(
    ((base, then), (text, now)): (Outlined<'_>, Outlined<'_>),
    (was, is): (usize, usize),
    place: usize,
) -> Option<bool> {
    let old = met(base, &then.branches(was));
    let (one, other) = (met(text, &now.branches(is)), met(text, &now.branches(place)));
    let tells = |one: &[Met], other: &[Met]| {
        one.iter().any(|fact| old.contains(fact) && !other.contains(fact))
    };
    match (tells(&one, &other), tells(&other, &one)) {
        (own, there) if own != there => Some(own),
        _ => None,
    }
}

/// How many lines with words two parts of texts share.
pub(super) fn shared(old: &[&[u8]], new: &[&[u8]]) -> usize {
    let mut rest: HashMap<&[u8], usize> = HashMap::default();
    new.iter().for_each(|line| *rest.entry(line).or_default() += 1);
    let has_words = |line: &&&[u8]| line.iter().any(u8::is_ascii_alphanumeric);
    let is_there = |line: &&&[u8]| match rest.get_mut(**line) {
        Some(left @ 1..) => {
            *left -= 1;
            true
        }
        _ => false,
    };
    old.iter().filter(has_words).filter(is_there).count()
}

/// The branch that lines which are at `is` came to stand in, and the one that they were made
/// for, both by their lines, where that one stands elsewhere in the text as often as before;
/// the line of it there last.
pub(super) fn exchanged(
    (base, then): Outlined<'_>,
    (text, now): Outlined<'_>,
    (was, is): (usize, usize),
) -> Option<(usize, usize, usize)> {
    let (branched, branches) = (then.branches(was), now.branches(is));
    let (before, after) = (met(base, &branched), met(text, &branches));
    let lost = before.iter().find(|fact| !after.contains(fact))?;
    if after.iter().all(|fact| before.contains(fact)) {
        return None;
    }
    let states = |(text, outline): Outlined<'_>| -> Vec<usize> {
        let says = |at: &usize| {
            let mut own = outline.branches(at + 1);
            let begins = |at: &usize| Condition::of(text[*at].trim_ascii_start());
            let whole = own.iter().position(|at| begins(at) == Some(Condition::If));
            own.truncate(whole.map_or(0, |at| at + 1));
            met(text, &own).contains(lost)
        };
        outline.all_branches().filter(says).collect()
    };
    let (olds, news) = (states((base, then)), states((text, now)));
    let line = *news.first().filter(|_| news.len() >= olds.len())?;
    let old = branched.iter().find(|at| olds.contains(at)).or(branched.first())?;
    Some((*branches.first()?, *old, line))
}

/// What is known of conditions in the innermost of these branches, given as
/// [`super::outline::Outline::branches`] does.
fn met(text: &[&[u8]], branches: &[usize]) -> Vec<Met> {
    let mut own = true;
    let mut all = Vec::new();
    for &line in branches {
        let words = meaning(text[line]);
        let (directive, stated) = condition(text[line], &words);
        if let Some((words, met)) = stated {
            // Of a condition's branches but the one at hand none is taken.
            facts(words, met == own, &mut all);
        }
        own = directive == Some(Condition::If);
    }
    all
}

/// What a directive begins, and what its condition says; nothing where its line does not
/// tell.
fn condition<'w, 't>(
    line: &[u8],
    words: &'w [&'t [u8]],
) -> (Option<Condition>, Option<Stated<'w, 't>>) {
    let begins = Condition::of(line.trim_ascii_start());
    let [_, directive, words @ .., b"\n"] = words else { return (begins, None) };
    if words.is_empty() || line.trim_ascii_end().ends_with(b"\\") {
        return (begins, None);
    }
    (begins, Some((words, !directive.ends_with(b"ndef"))))
}

/// Comparisons, and those that hold where they do not.
const OPPOSITES: [(&[u8], &[u8]); 3] = [(b"!=", b"=="), (b"<", b">="), (b">", b"<=")];

/// Adds what a condition says of others that it is made of, given whether it is met.
fn facts(words: &[&[u8]], met: bool, all: &mut Vec<Met>) {
    let outer = |wanted: &[u8]| {
        let mut depth = 0_usize;
        words.iter().position(|word| {
            match *word {
                b"(" => depth += 1,
                b")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && *word == wanted
        })
    };
    let (either, both) = (outer(b"||"), outer(b"&&"));
    // Where one does not hold nothing is known of two that have to hold both.
    let split = if met { both.filter(|_| either.is_none()) } else { either };
    match words {
        _ if let Some(at) = split => {
            facts(&words[..at], met, all);
            facts(&words[at + 1..], met, all);
        }
        _ if either.or(both).is_some() => all.push((words.join(&b' '), met)),
        [b"!", rest @ ..] => facts(rest, !met, all),
        [b"(", inner @ .., b")"] if outer(b")") == Some(words.len() - 1) => {
            facts(inner, met, all);
        }
        [b"defined", b"(", name, b")"] | [b"defined", name] => all.push((name.to_vec(), met)),
        _ => match OPPOSITES.iter().find_map(|(op, other)| Some((outer(op)?, other))) {
            Some((at, other)) => {
                let (before, after) = (words[..at].join(&b' '), words[at + 1..].join(&b' '));
                all.push(([&before[..], other, &after].join(&b' '), !met));
            }
            None => all.push((words.join(&b' '), met)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_reads_alike_however_it_is_written() {
        for (line, read) in [
            ("#ifdef A\n", &[("A", true)][..]),
            ("  # if defined(A) // a\n", &[("A", true)]),
            ("#elif A\n", &[("A", true)]),
            ("#ifndef A\n", &[("A", false)]),
            ("#elifndef A\n", &[("A", false)]),
            ("#if !defined ( A )\n", &[("A", false)]),
            ("#if !(!A)\n", &[("A", true)]),
            ("#if A >= 2\n", &[("A >= 2", true)]),
            ("#if !(A < 2)\n", &[("A >= 2", true)]),
            ("#if ((A) != 2)\n", &[("( A ) == 2", false)]),
            ("#if !A && (B || C)\n", &[("A", false), ("B || C", true)]),
            ("#if !(A || defined(B))\n", &[("A", false), ("B", false)]),
            ("#if !(A && B)\n", &[("A && B", false)]),
            ("#if A && B || C\n", &[("A && B || C", true)]),
            ("#if !(A && B || C)\n", &[("A && B", false), ("C", false)]),
            ("#if f(A) && !g (B)\n", &[("f ( A )", true), ("g ( B )", false)]),
            ("#if A && \\\n", &[]),
            ("#else\n", &[]),
        ] {
            let read: Vec<Met> =
                read.iter().map(|(c, met)| (c.as_bytes().to_vec(), *met)).collect();
            assert_eq!(met(&[line.as_bytes()], &[0]), read, "{line}");
        }
    }
}
