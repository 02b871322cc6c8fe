//! Which arm of a condition lines are in.

use super::outline::Outlined;
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
