//! Places by mapping from the text that a patch was made for.

use std::ops::Range;

use super::facts::Facts;
use super::heads::{class_name, heading_name};
use super::indented::depth;
use super::landed::{all_landed, landed_and_more, landed_at, landed_whole};
use super::nearby::{in_function, in_openings, nearby, with_outer};
use super::shape::{Shape, Side};
use super::within::Both;
use super::{
    Edit, LineEnds, Place, Placed, Text, Unplaced, anywhere, conflict, context, list, place_alone,
};
use crate::cpp::{Kind, lex_meaning};
use crate::merge::{Fate, LineMap};
use crate::patch::Hunk;
use crate::report::HunkClass;

/// Places the hunks of one file in `text` by mapping from `base`, the text the
/// patch was made for.
#[must_use]
pub fn place_mapped(hunks: &[Hunk], base: &[&[u8]], text: &[&[u8]]) -> Vec<Place> {
    let in_base = place_alone(hunks, base, Text::Base);
    if base == text {
        return in_base;
    }
    let map = LineMap::new(base, text);
    let (facts, (old, new)) = (Facts::default(), map.numbers());
    let (then, now) = (Shape::of_numbers(&facts, old), Shape::of_numbers(&facts, new));
    let both = Both::new((base, &then), (text, &now), &map);
    let mut places = map_all(hunks, &in_base, &both);
    for (place, was) in places.iter_mut().zip(&in_base) {
        let Ok(was) = was else { continue };
        match place {
            Ok(placed) if placed.class != HunkClass::Landed => {
                let inner = in_function(was, placed, &both).or(placed.nearby.take());
                placed.nearby = with_outer(inner, in_openings(was, placed, &both));
            }
            Ok(_) => {}
            Err(unplaced) => {
                let gone = was.edits.iter().find_map(|e| both.gone_from(&e.range));
                if let Some(gone) = gone.filter(|gone| !unplaced.why.starts_with(gone)) {
                    unplaced.why = gone;
                }
            }
        }
    }
    places
}

/// As [`place_mapped`], where the places in the base are known already, and
/// where its lines went. What changed in a hunk's function further out than its
/// context is not looked for, nor is it told of one that has no place whether
/// its function is gone: neither decides its class.
#[must_use]
pub fn map_places(
    hunks: &[Hunk],
    in_base: &[Place],
    base: Side<'_>,
    text: Side<'_>,
    map: &LineMap<'_>,
) -> Vec<Place> {
    map_all(hunks, in_base, &Both::new(base, text, map))
}

fn map_all(hunks: &[Hunk], in_base: &[Place], both: &Both<'_>) -> Vec<Place> {
    if let Some(places) = all_landed(in_base, both) {
        return places;
    }
    let places: Vec<Place> = hunks
        .iter()
        .zip(in_base)
        .enumerate()
        .map(|(own, (hunk, place))| match place {
            Ok(placed) => map_hunk(hunk, (own, placed), in_base, both),
            Err(Unplaced { class, why, .. }) => {
                let why = format!("in the text it was made for, {why}");
                Err(Unplaced { class: *class, why, found: None })
            }
        })
        .collect();
    let open = |place: &Place| place.as_ref().is_ok_and(|p| p.class != HunkClass::Landed);
    match places.iter().all(Result::is_ok) || places.iter().any(open) {
        true => places,
        false => landed_and_more(in_base, both).unwrap_or(places),
    }
}

/// How far what an edit changes or puts is indented.
pub(super) fn depth_of(edit: &Edit, base: &[&[u8]]) -> Option<usize> {
    let put = edit.lines.iter().map(Vec::as_slice);
    depth(base[edit.range.clone()].iter().copied().chain(put))
}

fn map_hunk(
    hunk: &Hunk,
    (own, placed): (usize, &Placed),
    in_base: &[Place],
    both: &Both<'_>,
) -> Place {
    let (base, text, map) = (both.base(), both.text(), both.map);
    if placed.edits.is_empty() {
        return Err(conflict(None, "it changes nothing"));
    }
    if let Some((span, landed)) = landed_whole(hunk, placed, text, map) {
        // Where each change begins once those before it are made.
        let (mut at, mut from) = (landed.start, span.start);
        let starts = placed.edits.iter().map(|edit| {
            let start = at + edit.range.start - from;
            (at, from) = (start + edit.lines.len(), edit.range.end);
            start
        });
        return landed_at(in_base, own, starts, landed.clone(), both);
    }
    let (mut kept, mut landed) = (Vec::new(), Vec::new());
    for edit in &placed.edits {
        let wanted: Vec<&[u8]> = edit.lines.iter().map(Vec::as_slice).collect();
        match map.fate(edit.range.clone(), &wanted, text) {
            Fate::Kept(range) => kept.push(Edit { range, lines: edit.lines.clone() }),
            Fate::Landed(range) => landed.push(range),
            Fate::Changed(found) => {
                let stands = |ends: &LineEnds| stands_but_for(*ends, &edit.range, base, text);
                if let Some(ends) = LineEnds::ALL.into_iter().find(stands) {
                    return Err(ends.unplaced(&found));
                }
                let why = "upstream changed the lines it changes, or a line next to them";
                return Err(conflict(Some(&found), why));
            }
            Fate::Unsure(places) => {
                let why = format!(
                    "the lines around it repeat, and upstream's change leaves it open which are \
                     the old ones: line {}",
                    list(&places)
                );
                let mut unplaced = conflict(None, &why);
                unplaced.class = HunkClass::Ambiguous;
                return Err(unplaced);
            }
        }
    }
    if let (Some(first), Some(last)) = (landed.first(), landed.last()) {
        if !kept.is_empty() {
            return Err(conflict(Some(first), "part of it is there already"));
        }
        let starts = landed.iter().map(|range| range.start);
        return landed_at(in_base, own, starts, first.start..last.end, both);
    }
    let first = kept.first().expect("a hunk has a change, and each that is not kept returned");
    let last = kept.last().expect("as above");
    let whole = placed.site.is_empty() || map.kept(placed.site.clone()).is_some();
    let (before, after) = context(hunk);
    let site = if whole && !placed.site.is_empty() {
        let start = map.line(placed.site.start).expect("the whole preimage is kept");
        start..start + placed.site.len()
    } else {
        first.range.start.saturating_sub(before)..(last.range.end + after).min(text.len())
    };
    let own = &placed.edits[0].range;
    let (then, now) = (heading(base, own.start), heading(text, first.range.start));
    let in_twin_arm = |(edit, now): (&Edit, &Edit)| {
        both.has_twin_arm(&edit.range, &now.range, &beside(&edit.range, base))
    };
    if whole && has_new_copy(hunk, placed, first.range.start, (then, now), both)
        || both.has_new_twin(own, beside(own, base))
        || placed.edits.iter().zip(&kept).any(in_twin_arm)
    {
        let why = "upstream put in a second copy of its lines, and nothing says which are the old";
        let mut unplaced = conflict(Some(&site), why);
        unplaced.class = HunkClass::Ambiguous;
        return Err(unplaced);
    }
    for (edit, now) in placed.edits.iter().zip(&kept) {
        let depth = depth_of(edit, base);
        own_function(&edit.range, &now.range, &site, depth, both)?;
    }
    let nearby = match surroundings(whole, then, now, map) {
        Surroundings::Same => None,
        // That it stands in its function is proven above.
        Surroundings::Other
            if !(both.is_inside(own)
                || stands_apart(own, first, (then, now), both)
                || both.head_scopes(own, &first.range, (then, now))
                || both.in_one_list(own, &first.range)
                || is_one_head((base, then), (text, now))) =>
        {
            let why =
                "its lines stand here, but under another heading than the one it was made for";
            return Err(conflict(Some(&site), why));
        }
        Surroundings::Changed | Surroundings::Other => {
            Some(nearby(placed.site.clone(), site.clone(), then, now, base, text))
        }
    };
    let class = match placed.class {
        HunkClass::Offset => HunkClass::Offset,
        _ if nearby.is_none() && site.start == placed.site.start => HunkClass::Exact,
        _ => HunkClass::Moved,
    };
    Ok(Placed { class, site, edits: kept, inferred: placed.inferred, rivals: Vec::new(), nearby })
}

/// Lines of a text with the line on either side.
fn beside(lines: &Range<usize>, text: &[&[u8]]) -> Range<usize> {
    lines.start.saturating_sub(1)..(lines.end + 1).min(text.len())
}

/// Whether two headings give the one name that no other of their texts gives, and go on
/// alike after it: a declaration, say, that got another type.
fn is_one_head(then: (&[&[u8]], Option<usize>), now: (&[&[u8]], Option<usize>)) -> bool {
    let told = only_head(then);
    told.is_some() && told == only_head(now)
}

/// A heading from its name on, where no other of its text has that.
fn only_head<'t>((text, at): (&[&'t [u8]], Option<usize>)) -> Option<&'t [u8]> {
    let at = at?;
    let name = heading_name(text, at, at + 1)?;
    let has_it = |line: &usize| heading_name(text, *line, line + 1).as_ref() == Some(&name);
    let headings = (0..text.len()).filter(|line| is_heading(text[*line]));
    let begin = memchr::memmem::find(text[at], &[&name[..], b"("].concat())?;
    (headings.filter(has_it).count() == 1).then_some(&text[at][begin..])
}

/// Whether a change outside of any function stands where it stood, whatever heads the lines
/// before it: in the same braces, and what begins at those headings is over before it.
fn stands_apart(
    was: &Range<usize>,
    now: &Edit,
    headings: (Option<usize>, Option<usize>),
    both: &Both<'_>,
) -> bool {
    // What is around lines of a script is read without headings.
    if both.are_scripts() {
        return true;
    }
    let over = |text: &[&[u8]], heading: Option<usize>, until: usize| {
        heading.is_none_or(|from| is_over(&text[from..until.max(from)].concat()))
    };
    let depth = depth_of(now, both.text());
    // A paragraph of prose ends with a blank line. That it stands in no function is known.
    if !both.reads() && depth == Some(0) {
        let blank = |text: &[&[u8]], heading: Option<usize>, until: usize| {
            let lines = heading.map(|from| &text[from..until.max(from)]);
            lines.is_none_or(|lines| {
                lines.iter().any(|line| line.trim_ascii().is_empty())
                    && matches!(brackets(&lines.concat()), (0, 0, _))
            })
        };
        return blank(both.base(), headings.0, was.start)
            && blank(both.text(), headings.1, now.range.start);
    }
    over(both.base(), headings.0, was.start)
        && over(both.text(), headings.1, now.range.start)
        && both.stands_alike(was, &now.range, depth)
}

/// Whether no statement goes on after a text. The braces that are open there are compared
/// with those that were.
fn is_over(text: &[u8]) -> bool {
    let (_, others, last) = brackets(text);
    others == 0 && matches!(last, b";" | b"{" | b"}")
}

/// How many braces a text leaves open, how many other brackets, and its last word.
fn brackets(text: &[u8]) -> (usize, usize, &[u8]) {
    let tokens = lex_meaning(text);
    let words = tokens.iter().filter(|t| t.kind != Kind::Directive).map(|t| t.of(text));
    words.fold((0, 0, b";"), |(braces, others, _), word| match word {
        b"{" => (braces + 1, others, word),
        b"(" | b"[" => (braces, others + 1, word),
        // What closes more than was opened is a namespace that is over.
        b"}" => (braces.saturating_sub(1), others, word),
        b")" | b"]" => (braces, others.saturating_sub(1), word),
        _ => (braces, others, word),
    })
}

/// Turns down lines that were at `was`, and at `is` stand in a function, a class or a
/// lambda of another name; `site` is where a report points, `depth` how far they are
/// indented.
pub(super) fn own_function(
    was: &Range<usize>,
    is: &Range<usize>,
    site: &Range<usize>,
    depth: Option<usize>,
    both: &Both<'_>,
) -> Result<(), Unplaced> {
    own_head(was, is, site, depth, both)?;
    both.same_blocks(was, is, depth).map_err(|why| conflict(Some(site), &why))
}

/// As [`own_function`], of all but what opens blocks and lists in the function.
pub(super) fn own_head(
    was: &Range<usize>,
    is: &Range<usize>,
    site: &Range<usize>,
    depth: Option<usize>,
    both: &Both<'_>,
) -> Result<(), Unplaced> {
    let (base, text) = (both.base(), both.text());
    let headings = (heading(base, was.start), heading(text, is.start));
    let same_heading = match headings {
        (Some(then), Some(now)) => base[then] == text[now],
        (then, now) => then == now,
    };
    if same_heading && both.stands_alike(was, is, depth) {
        return Ok(());
    }
    read_head(was, is, site, depth, headings, both)
}

/// As [`own_head`], where the lines themselves do not prove it; `headings` are those of
/// both texts.
fn read_head(
    was: &Range<usize>,
    is: &Range<usize>,
    site: &Range<usize>,
    depth: Option<usize>,
    headings: (Option<usize>, Option<usize>),
    both: &Both<'_>,
) -> Result<(), Unplaced> {
    let (base, text) = (both.base(), both.text());
    let there = |why: String| Err(conflict(Some(site), &why));
    if both.came_into_words(was, is) {
        return there("upstream put its lines into a comment or a string".into());
    }
    if let Some(off) = both.switched_off(was, is) {
        return there(format!("upstream switched its lines off: `#if 0` at line {}", off + 1));
    }
    if let Some((condition, met)) = both.other_arm(was, is) {
        let (is, was) = if met { ("is", "is not") } else { ("is not", "is") };
        return there(format!(
            "its lines stand here, but where `{condition}` {is} met, and it was made for where it \
             {was}"
        ));
    }
    if let Some((new, old, line)) = both.exchanged_arm(was, is) {
        return there(format!(
            "its lines stand here, but under `{new}`, and it was made for `{old}`, which is at \
             line {}",
            line + 1
        ));
    }
    if both.reads()
        && let Err(why) = both.same_function(was, is, depth)
    {
        return there(why);
    }
    // What is around lines of a script is read without headings.
    if both.is_inside(was) || both.are_scripts() {
        return Ok(());
    }
    let (Some(then), Some(now)) = headings else { return Ok(()) };
    // What is over before the lines heads them in neither text.
    let past = |text: &[&[u8]], heading: usize, until: usize| {
        let before = text[heading..until.max(heading)].concat();
        matches!(brackets(&before), (0, 0, b";" | b"}"))
    };
    if past(base, then, was.start) && past(text, now, is.start) {
        return Ok(());
    }
    let mut names = (class_name(base, then, was.start), class_name(text, now, is.start));
    // A head that was not read as a function's may be one all the same.
    if names == (None, None) && !both.is_read(then) {
        names = (heading_name(base, then, was.start), heading_name(text, now, is.start));
    }
    match names {
        (Some(then), Some(now)) if then != now && !both.in_one_list(was, is) => {
            let shown = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            there(format!(
                "its lines stand here, but under `{}`, and it was made for `{}`",
                shown(&now),
                shown(&then)
            ))
        }
        _ => Ok(()),
    }
}

/// Whether upstream put in a second copy of a hunk's lines, whose first change is at `place`,
/// under the same heading, in a function of the same name.
fn has_new_copy(
    hunk: &Hunk,
    placed: &Placed,
    place: usize,
    (then, now): (Option<usize>, Option<usize>),
    both: &Both<'_>,
) -> bool {
    if both.map.most_places(placed.site.clone()) <= 1 {
        return false;
    }
    let own = &placed.edits[0].range;
    let lead = own.start - placed.site.start;
    let copies = |heading_at, text| copies(hunk, lead, heading_at, text);
    let (was, mut is) = (copies(then, both.base()), copies(now, both.text()));
    is.retain(|at| *at == place || !both.is_told(own.start, place, *at));
    // The heading may be as common as `template <typename T>`.
    is.len() > was.len() && both.in_namesakes(own, &was, &is).is_none_or(|(was, is)| is > was)
}

/// The places at which a hunk's lines stand in a text under a heading that reads
/// like the one at `heading_at`, each given by its first change, which `lead`
/// lines go before.
fn copies(hunk: &Hunk, lead: usize, heading_at: Option<usize>, text: &[&[u8]]) -> Vec<usize> {
    let wanted: Vec<&[u8]> = hunk.preimage().collect();
    let reads = |at: Option<usize>| at.map(|line| text[line]);
    let alike = |at: &usize| reads(heading(text, *at)) == reads(heading_at);
    anywhere(&wanted, text).iter().map(|at| at + lead).filter(alike).collect()
}

enum Surroundings {
    Same,
    Changed,
    Other,
}

/// Whether what is around a mapped hunk is as it was: the rest of its context,
/// and the line that heads it.
fn surroundings(
    whole: bool,
    then: Option<usize>,
    now: Option<usize>,
    map: &LineMap<'_>,
) -> Surroundings {
    let same_heading = match (then, now) {
        (None, None) => true,
        (Some(then), Some(now)) => map.line(then) == Some(now),
        _ => false,
    };
    match (whole, same_heading) {
        (true, true) => Surroundings::Same,
        (false, true) => Surroundings::Changed,
        // The whole context is there and only the heading differs: a changed
        // signature, unless the heading is that of another function.
        (true, false) if now.and_then(|now| map.line_back(now)).is_none() => Surroundings::Changed,
        _ => Surroundings::Other,
    }
}

/// The nearest line before `line` that begins with a letter, `_` or `$`, as
/// `diff -p` and git choose the text behind a `@@`.
fn heading(text: &[&[u8]], line: usize) -> Option<usize> {
    (0..line.min(text.len())).rev().find(|&i| is_heading(text[i]))
}

fn is_heading(line: &[u8]) -> bool {
    line.first().is_some_and(|&b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$'))
}

fn stands_but_for(ends: LineEnds, range: &Range<usize>, base: &[&[u8]], text: &[&[u8]]) -> bool {
    let plain = |l: &&[u8]| l.ends_with(b"\n") && !l.ends_with(b"\r\n");
    if base.iter().all(plain) && text.iter().all(plain) {
        return false;
    }
    let bare = |t: &[&[u8]]| t.iter().map(|l| ends.without(l)).collect::<Vec<_>>();
    let (base, text) = (bare(base), bare(text));
    let base: Vec<&[u8]> = base.iter().map(Vec::as_slice).collect();
    let text: Vec<&[u8]> = text.iter().map(Vec::as_slice).collect();
    matches!(LineMap::new(&base, &text).fate(range.clone(), &[], &text), Fate::Kept(_))
}
