//! What opens the blocks, lists and calls that lines are in, however far up it stands.

use std::ops::Range;

use super::functions::words;

/// A statement, or a part of one, that opens what goes on over a line.
pub(super) struct Opening {
    /// The lines of it that tell what it opens.
    pub head: Range<usize>,
    pub what: What,
}

/// What tells an opening from another.
#[derive(PartialEq, Eq)]
pub(super) enum What {
    /// The name of data, of a lambda or of a class: a table's, a key, an index.
    Named(Vec<u8>),
    /// The words of what decides when and how its lines run: `if (a)`, `case A`, a call.
    Headed(Vec<u8>),
    /// Nothing.
    Bare,
}

impl Opening {
    /// One that nothing tells from another.
    pub fn bare(head: Range<usize>) -> Self {
        Self { head, what: What::Bare }
    }

    pub fn name(&self) -> Option<&[u8]> {
        match &self.what {
            What::Named(name) => Some(name),
            _ => None,
        }
    }

    fn words(&self) -> Option<&[u8]> {
        match &self.what {
            What::Headed(words) => Some(words),
            _ => None,
        }
    }
}

/// The words of openings with the line of each.
pub(super) type Heads = Vec<(usize, Vec<u8>)>;

/// One of the two texts: its lines, what is open around the lines in question, the outermost
/// first, and the words of what opens anything in the same function.
pub(super) struct Side<'t> {
    pub text: &'t [&'t [u8]],
    pub around: &'t [Opening],
    pub all: &'t dyn Fn() -> Heads,
}

/// Fails, with the reason in a sentence, where lines came from what one name or head opens to
/// what another does. What has a name keeps it. What has none may be written anew, but where
/// its old head stands elsewhere in the function, the lines have changed places.
pub(super) fn same(then: &Side<'_>, now: &Side<'_>) -> Result<(), String> {
    same_names(then.around, now.around)?;
    let other = |all: &[Opening], words: &[u8]| all.iter().all(|o| o.words() != Some(words));
    let left = |side: &'_ [Opening], opposite: &[Opening]| {
        let mut inner = side.iter().enumerate().rev();
        inner.find(|(_, o)| o.words().is_some_and(|words| other(opposite, words))).map(|(at, _)| at)
    };
    let Some(new) = left(now.around, then.around) else { return Ok(()) };
    if left(then.around, now.around).is_none() {
        return Ok(());
    }
    let (were, are) = ((then.all)(), (now.all)());
    let standing = |words: &[u8], all: &Heads| all.iter().filter(|(_, w)| w == words).count();
    let stands = |old: &&Opening| {
        let words = old.words().filter(|words| other(now.around, words));
        words.is_some_and(|w| standing(w, &are) >= standing(w, &were).max(1))
    };
    let Some(old) = then.around.iter().rev().find(stands) else { return Ok(()) };
    let line = are.iter().find(|(_, w)| Some(&w[..]) == old.words()).map_or(0, |(line, _)| *line);
    Err(format!(
        "its lines stand here, but under `{}`, and it was made for `{}`, which is at line {}",
        shown(now.text, &now.around[new]),
        shown(then.text, old),
        line + 1
    ))
}

fn same_names(then: &[Opening], now: &[Opening]) -> Result<(), String> {
    let names = |all: &[Opening]| all.iter().filter_map(|o| Some(o.name()?.to_vec())).collect();
    let (old, mut new): (Vec<_>, Vec<_>) = (names(then), names(now));
    // What had no name may have got one.
    if then.len() == now.len() {
        let named = then.iter().zip(now).filter(|(old, _)| old.name().is_some());
        let kept: Vec<_> = named.filter_map(|(_, new)| Some(new.name()?.to_vec())).collect();
        new = if kept.len() == old.len() { kept } else { new };
    }
    if old == new {
        return Ok(());
    }
    let shown = |names: &[Vec<u8>]| String::from_utf8_lossy(&names.join(&b"::"[..])).into_owned();
    Err(match (old.is_empty(), new.is_empty()) {
        (false, true) => {
            format!("its lines stand here, but outside of `{}`, which it was made for", shown(&old))
        }
        (true, _) => format!("its lines stand here, but in `{}` now", shown(&new)),
        _ => format!(
            "its lines stand here, but in `{}`, and it was made for `{}`",
            shown(&new),
            shown(&old)
        ),
    })
}

/// What opens a block, as a report gives it.
fn shown(text: &[&[u8]], opening: &Opening) -> String {
    String::from_utf8_lossy(&words(&text[opening.head.clone()].concat())).into_owned()
}
