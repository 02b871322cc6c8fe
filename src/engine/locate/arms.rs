//! Which arm of a condition lines are in.

use std::collections::HashMap;
use std::ops::Range;

use super::outline::{Arm, Outlined};
use crate::cpp::{Condition, meaning};

/// A condition, and whether it is met.
type Met = (Vec<u8>, bool);

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
/// says which are the old ones. The condition has to be within `function`.
pub(super) fn is_one_of_several(
    sides: (Outlined<'_>, Outlined<'_>),
    (was, is): (usize, usize),
    places: impl Iterator<Item = usize>,
    function: &Range<usize>,
) -> bool {
    let ((base, then), (text, now)) = sides;
    let (before, own) = (then.arms(base, was), now.arms(text, is));
    let open = |place: usize| {
        let others = now.arms(text, place);
        let beside = |arm: &Arm| {
            let same = |other: &&Arm| other.condition == arm.condition && other.lines != arm.lines;
            others.iter().find(same).map(|other| other.lines.clone())
        };
        let inside = own.iter().rev().filter(|arm| function.contains(&arm.condition));
        let Some((arm, other)) = inside.filter_map(|arm| Some((arm, beside(arm)?))).next() else {
            return false;
        };
        let like = |lines: &Range<usize>| {
            let with = |old: &Arm| shared(&base[old.lines.clone()], &text[lines.clone()]);
            before.iter().map(with).max().unwrap_or_default()
        };
        match told(sides, (was, is), place) {
            Some(own) => !own,
            None => like(&arm.lines) <= like(&other),
        }
    };
    places.into_iter().any(open)
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
    let mut rest: HashMap<&[u8], usize> = HashMap::new();
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

/// What is known of conditions in the innermost of these branches, given as
/// [`super::outline::Outline::branches`] does.
fn met(text: &[&[u8]], branches: &[usize]) -> Vec<Met> {
    let mut own = true;
    let read = |&line: &usize| {
        let (directive, stated) = condition(text[line]);
        // Of a condition's branches but the one at hand none is taken.
        let stated = stated.map(|(condition, met)| (condition, met == own));
        own = directive == Some(Condition::If);
        stated
    };
    branches.iter().filter_map(read).collect()
}

/// What a directive begins, and when its branch is taken; nothing where its line does not
/// tell.
fn condition(line: &[u8]) -> (Option<Condition>, Option<Met>) {
    let begins = Condition::of(line.trim_ascii_start());
    let words = meaning(line);
    let [_, directive, words @ .., b"\n"] = &words[..] else { return (begins, None) };
    if words.is_empty() || line.trim_ascii_end().ends_with(b"\\") {
        return (begins, None);
    }
    let noise = |word: &&[u8]| matches!(*word, b"!" | b"(" | b")" | b"defined");
    let mut names = words.iter().filter(|word| !noise(word));
    let met = match (names.next(), names.next()) {
        // `defined(A)`, `!A`.
        (Some(name), None) => {
            let not = words.iter().filter(|word| **word == b"!").count() % 2 == 1;
            (name.to_vec(), !not && !directive.ends_with(b"ndef"))
        }
        _ => (words.join(&b' '), true),
    };
    (begins, Some(met))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_reads_alike_however_it_is_written() {
        for (line, read) in [
            ("#ifdef A\n", Some(("A", true))),
            ("  # if defined(A) // a\n", Some(("A", true))),
            ("#elif A", Some(("A", true))),
            ("#ifndef A\n", Some(("A", false))),
            ("#elifndef A\n", Some(("A", false))),
            ("#if !defined ( A )\n", Some(("A", false))),
            ("#if !(!A)\n", Some(("A", true))),
            ("#if A >= 2\n", Some(("A >= 2", true))),
            ("#if !A && B\n", Some(("! A && B", true))),
            ("#if A && \\\n", None),
            ("#else\n", None),
        ] {
            let met = read.map(|(name, met)| (name.as_bytes().to_vec(), met));
            assert_eq!(condition(line.as_bytes()).1, met, "{line}");
        }
    }
}
