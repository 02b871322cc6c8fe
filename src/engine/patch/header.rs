//! The header of a file patch: git's, or a plain `---`/`+++` pair.

use super::hunk::show;
use super::lines::{Lines, chomp};
use super::quote::{self, Named, Plain};
use super::refusal::{Place, Refusal};
use super::{HeaderNames, HeaderStyle, Operation};
use crate::snapshot::Mode;

const AGAIN: &str = "make the patch again with `git diff`";

/// A header that was read.
pub(super) struct Header {
    pub begin: Place,
    pub names: HeaderNames,
    pub old_name: Option<Vec<u8>>,
    pub new_name: Option<Vec<u8>>,
    pub operation: Operation,
    pub old_mode: Option<Mode>,
    pub new_mode: Option<Mode>,
    pub index: Option<Ids>,
    /// A `---`/`+++` pair was there, so hunks must follow.
    pub pair: bool,
    /// What the times of a plain header say: the old, the new file is absent.
    pub absent: [bool; 2],
}

/// The lines `git diff` may put between `diff --git` and the change.
#[derive(Default)]
struct Extended<'a> {
    new_file: Option<Value<'a>>,
    deleted_file: Option<Value<'a>>,
    old_mode: Option<Value<'a>>,
    new_mode: Option<Value<'a>>,
    rename_from: Option<Value<'a>>,
    rename_to: Option<Value<'a>>,
    copy_from: Option<Value<'a>>,
    copy_to: Option<Value<'a>>,
    index: Option<Value<'a>>,
    similarity: Option<Value<'a>>,
    dissimilarity: Option<Value<'a>>,
}

/// What one of them says, and where its line begins.
#[derive(Clone, Copy)]
struct Value<'a> {
    text: &'a [u8],
    place: Place,
}

/// The names of a `---`/`+++` pair, and where it begins.
struct Pair {
    minus: Named,
    plus: Named,
    place: Place,
}

impl<'a> Extended<'a> {
    /// Where the value of `line` belongs, and the value.
    fn slot(&mut self, line: &'a [u8]) -> Option<(&mut Option<Value<'a>>, &'a [u8])> {
        const KEYS: [&str; 13] = [
            "new file mode ",
            "deleted file mode ",
            "old mode ",
            "new mode ",
            "rename from ",
            "rename to ",
            "rename old ",
            "rename new ",
            "copy from ",
            "copy to ",
            "index ",
            "similarity index ",
            "dissimilarity index ",
        ];
        let key = KEYS.into_iter().find(|key| line.starts_with(key.as_bytes()))?;
        let slot = match key {
            "new file mode " => &mut self.new_file,
            "deleted file mode " => &mut self.deleted_file,
            "old mode " => &mut self.old_mode,
            "new mode " => &mut self.new_mode,
            "rename from " | "rename old " => &mut self.rename_from,
            "rename to " | "rename new " => &mut self.rename_to,
            "copy from " => &mut self.copy_from,
            "copy to " => &mut self.copy_to,
            "index " => &mut self.index,
            "similarity index " => &mut self.similarity,
            _ => &mut self.dissimilarity,
        };
        Some((slot, &line[key.len()..]))
    }
}

/// Takes a header whose `diff --git` line is next.
pub(super) fn take_git(lines: &mut Lines<'_>) -> Result<Header, Refusal> {
    let begin = lines.place();
    let first = lines.take().map(chomp).unwrap_or_default();
    let pairs = quote::pairs(first.strip_prefix(b"diff --git ").unwrap_or_default());
    let mut extended = Extended::default();
    let mut pair = None;
    while let Some(line) = lines.peek().map(chomp) {
        let place = lines.place();
        if line.starts_with(b"--- ") {
            pair = Some(take_pair(lines, Plain::No)?);
            break;
        }
        let Some((slot, text)) = extended.slot(line) else { break };
        if slot.replace(Value { text, place }).is_some() {
            let message = format!("`{}` stands twice in one header", show(line));
            return Err(Refusal::malformed(place, message, AGAIN));
        }
        lines.take();
    }
    git_header(begin, &pairs, &extended, pair)
}

fn git_header(
    begin: Place,
    pairs: &[(Vec<u8>, Vec<u8>)],
    extended: &Extended<'_>,
    pair: Option<Pair>,
) -> Result<Header, Refusal> {
    let malformed = |place: Place, message: &str| Refusal::malformed(place, message, AGAIN);
    let name = |value: Value<'_>| {
        let name = match value.text.first() {
            Some(b'"') => match quote::unquote(value.text) {
                Some((name, [])) => Some(name),
                _ => None,
            },
            Some(_) => Some(value.text.to_vec()),
            None => None,
        };
        let unread = "a name of the rename or copy cannot be read";
        name.ok_or_else(|| malformed(value.place, unread))
    };
    let moved = |from: Option<Value<'_>>, to: Option<Value<'_>>| match (from, to) {
        (None, None) => Ok(None),
        (Some(from), Some(to)) => Ok(Some((name(from)?, name(to)?))),
        (Some(one), None) | (None, Some(one)) => {
            Err(malformed(one.place, "the rename or copy names one side only"))
        }
    };
    let rename = moved(extended.rename_from, extended.rename_to)?;
    let copy = moved(extended.copy_from, extended.copy_to)?;
    let mut stated: Vec<(Place, Operation)> = [
        (extended.new_file, Operation::Create),
        (extended.deleted_file, Operation::Delete),
        (extended.rename_from, Operation::Rename),
        (extended.copy_from, Operation::Copy),
    ]
    .into_iter()
    .filter_map(|(value, operation)| Some((value?.place, operation)))
    .collect();
    stated.sort_by_key(|(place, _)| place.byte);
    let by_null = match &pair {
        Some(Pair { minus: Named { name: None, .. }, plus: Named { name: None, .. }, place }) => {
            return Err(malformed(*place, "both sides are /dev/null"));
        }
        Some(Pair { minus: Named { name: None, .. }, .. }) => Some(Operation::Create),
        Some(Pair { plus: Named { name: None, .. }, .. }) => Some(Operation::Delete),
        _ => None,
    };
    let operation = match (&stated[..], &pair) {
        ([_, (place, _), ..], _) => {
            let message = "the header says two things of one file (new, deleted, moved)";
            return Err(malformed(*place, message));
        }
        ([(_, stated)], pair) => {
            let null_wanted = matches!(stated, Operation::Create | Operation::Delete);
            if let Some(pair) = pair
                && by_null != null_wanted.then_some(*stated)
            {
                return Err(malformed(
                    pair.place,
                    "the header and its ---/+++ lines disagree on whether the file is new or \
                     deleted",
                ));
            }
            *stated
        }
        ([], _) => by_null.unwrap_or(Operation::Modify),
    };
    let moved = rename.or(copy);
    let Some((first, second)) = choose(pairs, pair.as_ref(), moved.as_ref()) else {
        return Err(malformed(begin, "the names of the header disagree, or cannot be told apart"));
    };
    let has_pair = pair.is_some();
    let (minus, plus) = match pair {
        Some(pair) => (pair.minus.name, pair.plus.name),
        None => (Some(first.clone()), Some(second.clone())),
    };
    let (old_mode, new_mode, index) = modes(extended)?;
    Ok(Header {
        begin,
        pair: has_pair,
        old_name: (operation != Operation::Create).then_some(minus).flatten(),
        new_name: (operation != Operation::Delete).then_some(plus).flatten(),
        names: HeaderNames {
            old: Some(first.clone()),
            new: Some(second.clone()),
            moved,
            style: HeaderStyle::Git,
        },
        operation,
        old_mode,
        new_mode,
        index,
        absent: [false; 2],
    })
}

/// The names that the `diff --git` line is read as: those that agree with the
/// rest of the header.
fn choose<'p>(
    pairs: &'p [(Vec<u8>, Vec<u8>)],
    pair: Option<&Pair>,
    moved: Option<&(Vec<u8>, Vec<u8>)>,
) -> Option<&'p (Vec<u8>, Vec<u8>)> {
    let minus = pair.and_then(|pair| pair.minus.name.as_deref());
    let plus = pair.and_then(|pair| pair.plus.name.as_deref());
    let agrees = |(old, new): &&(Vec<u8>, Vec<u8>)| {
        minus.is_none_or(|name| name == old)
            && plus.is_none_or(|name| name == new)
            && match moved {
                Some((from, to)) => ends_in(old, from) && ends_in(new, to),
                None => same_file(old, new) || (minus.is_some() && plus.is_some()),
            }
    };
    // Of several, the one whose names are of one length: prefixes are.
    let mut agreeing = pairs.iter().filter(agrees);
    let first = agreeing.next()?;
    let even = |pair: &&(Vec<u8>, Vec<u8>)| pair.0.len() == pair.1.len();
    match (even(&first), agreeing.next()) {
        (_, None) => Some(first),
        (true, _) if moved.is_none() => Some(first),
        _ => pairs.iter().filter(agrees).find(even).filter(|_| moved.is_none()),
    }
}

/// Whether two names are one file's: equal, or equal once each has lost its
/// first part.
fn same_file(one: &[u8], other: &[u8]) -> bool {
    one == other || matches!((tail(one), tail(other)), (Some(one), Some(other)) if one == other)
}

/// The name without its first part.
pub(super) fn tail(name: &[u8]) -> Option<&[u8]> {
    name.iter().position(|b| *b == b'/').map(|at| &name[at + 1..])
}

/// Whether `name` is `path`, or `path` behind a prefix.
fn ends_in(name: &[u8], path: &[u8]) -> bool {
    name.strip_suffix(path).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with(b"/"))
}

/// The blob ids of an `index` line, as written.
type Ids = (String, String);

type Modes = (Option<Mode>, Option<Mode>, Option<Ids>);

fn modes(extended: &Extended<'_>) -> Result<Modes, Refusal> {
    let mode = |Value { text, place }: Value<'_>| {
        let octal = text.len() <= 6 && text.iter().all(|b| matches!(b, b'0'..=b'7'));
        std::str::from_utf8(text).ok().filter(|_| octal).and_then(Mode::parse).ok_or_else(|| {
            let message = format!("`{}` is no file mode", show(text));
            Refusal::malformed(place, message, "use 100644, 100755, 120000 or 160000")
        })
    };
    let (index, index_mode) = match extended.index {
        Some(Value { text, place }) => {
            let Some((ids, mode)) = index_line(text) else {
                return Err(Refusal::malformed(place, "the index line cannot be read", AGAIN));
            };
            (Some(ids), mode.map(|text| Value { text, place }))
        }
        None => (None, None),
    };
    if let (Some(one), None) | (None, Some(one)) = (extended.old_mode, extended.new_mode) {
        return Err(Refusal::malformed(one.place, "the mode changes from or to nothing", AGAIN));
    }
    let old_line = extended.deleted_file.or(extended.old_mode);
    let new_line = extended.new_file.or(extended.new_mode);
    let (old, new) = (old_line.map(mode).transpose()?, new_line.map(mode).transpose()?);
    let kept = index_mode.map(mode).transpose()?;
    let moded = extended.new_file.is_some() || extended.deleted_file.is_some();
    let (old, new) = if moded { (old, new) } else { (old.or(kept), new.or(old).or(kept)) };
    if let (Some(old), Some(new)) = (old, new)
        && old.kind() != new.kind()
        && let Some(line) = new_line.or(extended.index).or(old_line)
    {
        return Err(Refusal::malformed(
            line.place,
            format!("the file's type changes in place, {} to {}", old.as_str(), new.as_str()),
            "git writes this as a deletion and a creation; make the patch again",
        ));
    }
    Ok((old, new, index))
}

/// `OLD..NEW[ MODE]`: the ids, and the mode both sides have.
fn index_line(value: &[u8]) -> Option<(Ids, Option<&[u8]>)> {
    let text = std::str::from_utf8(value).ok()?;
    let (ids, mode) = match text.split_once(' ') {
        Some((ids, mode)) => (ids, Some(mode.as_bytes())),
        None => (text, None),
    };
    let (old, new) = ids.split_once("..")?;
    let hex = |id: &str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit());
    (hex(old) && hex(new)).then(|| ((old.into(), new.into()), mode))
}

/// Takes a `---` line and the `+++` line that must follow.
fn take_pair(lines: &mut Lines<'_>, plain: Plain) -> Result<Pair, Refusal> {
    let begin = lines.place();
    let mut side = |mark: &str| {
        let place = lines.place();
        let line = lines.peek().map(chomp).unwrap_or_default();
        let Some(value) = line.strip_prefix(mark.as_bytes()) else {
            return Err(Refusal::malformed(
                place,
                "a `---` line without the `+++` line that must follow it",
                "the patch was damaged or cut off; get it again",
            ));
        };
        let named = quote::named(value, plain).ok_or_else(|| {
            Refusal::malformed(place, format!("`{}` holds no name", show(line)), AGAIN)
        })?;
        lines.take();
        Ok(named)
    };
    Ok(Pair { minus: side("--- ")?, plus: side("+++ ")?, place: begin })
}

/// Takes a header whose `---` line is next, with no `diff --git` before it.
pub(super) fn take_plain(lines: &mut Lines<'_>) -> Result<Header, Refusal> {
    let begin = lines.place();
    let Pair { minus, plus, .. } = take_pair(lines, Plain::Yes)?;
    if minus.name.is_none() && plus.name.is_none() {
        return Err(Refusal::malformed(begin, "both sides are /dev/null", AGAIN));
    }
    let operation = match (&minus.name, &plus.name) {
        (None, _) => Operation::Create,
        (_, None) => Operation::Delete,
        _ => Operation::Modify,
    };
    Ok(Header {
        begin,
        names: HeaderNames {
            old: minus.name.clone(),
            new: plus.name.clone(),
            moved: None,
            style: HeaderStyle::Plain,
        },
        old_name: minus.name,
        new_name: plus.name,
        operation,
        old_mode: None,
        new_mode: None,
        index: None,
        pair: true,
        absent: [minus.absent, plus.absent],
    })
}
