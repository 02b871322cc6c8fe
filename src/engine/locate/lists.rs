//! What opens the blocks, lists and calls around lines of a text that begins its comments
//! with `#`: Python by indentation and brackets, CMake by its commands.

use std::ops::Range;

use super::brackets::{Brackets, Led, Word};
use super::functions::words;
use super::indented::{around, heads_function, named};
use super::names::assigned_list;
use super::openings::{self, Heads, Opening, What};
use super::plain;
use super::script::{Script, Statement, string_end, string_of_lines_end};
use crate::merge::LineMap;

/// A text, and its statements.
pub(super) type Scripted<'t> = (&'t [&'t [u8]], &'t Script);

/// Fails, with the reason in a sentence, where lines that were at `was`, and are at `is`,
/// are in a block or a list of another name than before, or have changed places with others.
pub(super) fn same_lists(
    then: Scripted<'_>,
    now: Scripted<'_>,
    map: &LineMap<'_>,
    (was, is): (&Range<usize>, &Range<usize>),
    depth: Option<usize>,
) -> Result<(), String> {
    // Where nothing changed from what opens the outermost on, nothing more need be read.
    let begin = |(text, script): Scripted<'_>, lines: &Range<usize>| match script.is_indented()
        || script.is_plain()
    {
        true => begin(text, script, lines, depth),
        false => Some(0),
    };
    if let (Some(old), Some(new)) = (begin(then, was), begin(now, is))
        && (map.keeps(&(old..was.start), &(new..is.start)) || old == was.start && new == is.start)
    {
        return Ok(());
    }
    let (Some(old), Some(new)) = (openings(then, was, depth), openings(now, is, depth)) else {
        return Ok(());
    };
    if plain::got_title(then.1.language, &old, &new) {
        return Ok(());
    }
    openings::same(
        &openings::Side { text: then.0, around: &old, all: &|| heads(then, was.start) },
        &openings::Side { text: now.0, around: &new, all: &|| heads(now, is.start) },
    )
}

/// The line of the outermost statement around lines, of those that are in one or below one.
fn begin(
    text: &[&[u8]],
    script: &Script,
    lines: &Range<usize>,
    depth: Option<usize>,
) -> Option<usize> {
    let around = around(text, &script.statements, lines, depth)?;
    let outermost = around.last().copied().or_else(|| script.over(lines.start));
    let arms = outermost.map(|at| arms_before(text, &script.statements, at));
    let first = arms.and_then(|arms| arms.first().copied()).or(outermost);
    Some(first.map_or(lines.start, |at| script.statements[at].lines.start))
}

/// What is open around lines that are indented by `depth`, the outermost first; nothing
/// where it cannot be told. Functions and classes by indentation are known by their names.
pub(super) fn openings(
    (text, script): Scripted<'_>,
    lines: &Range<usize>,
    depth: Option<usize>,
) -> Option<Vec<Opening>> {
    if script.is_plain() {
        return plain::openings((text, script), lines, depth);
    }
    let over = script.over(lines.start);
    let all = &script.statements;
    let mut found: Vec<Opening> = commands_around(text, script, lines.start);
    let mut blocks = around(text, all, lines, depth)?;
    blocks.retain(|&at| Some(at) != over && is_block(text, &all[at]));
    for at in blocks.into_iter().rev() {
        let (head, first) = (all[at].lines.clone(), text[all[at].lines.start]);
        let arms = arms_before(text, all, at).into_iter();
        found.extend(arms.map(|arm| Opening::bare(all[arm].lines.clone())));
        let what = match named(first) {
            Some(_) if script.is_indented() => continue,
            Some(name) => What::Named(name.to_vec()),
            None => What::Headed(headed(text, all, at)),
        };
        found.push(Opening { head, what });
    }
    if let Some(at) = over {
        let begun = all[at].lines.start..lines.start;
        match command(&text[begun.clone()]).filter(|_| !script.is_indented()) {
            Some(command) => found.extend(command.openings(begun)),
            None => found.extend(brackets(text, begun).openings(name)),
        }
    }
    Some(found)
}

/// Whether a line begins a list that has a name.
pub(super) fn begins_list(line: &[u8]) -> bool {
    if !line.iter().any(|b| matches!(b, b'(' | b'[' | b'{')) {
        return false;
    }
    brackets(&[line], 0..1).openings(name).iter().any(|o| o.name().is_some())
}

/// Whether a statement heads what is indented below it.
fn is_block(text: &[&[u8]], statement: &Statement) -> bool {
    let last = text[statement.lines.end - 1];
    let mut words = Vec::new();
    read_line(last, 0, &mut None, &mut |word| words.push(word.1));
    words.last() == Some(&&b":"[..])
}

/// The words of a head, those of a last arm with those of the one before.
pub(super) fn headed(text: &[&[u8]], all: &[Statement], at: usize) -> Vec<u8> {
    let own = |at: usize| words(&text[all[at].lines.clone()].concat());
    let head = own(at);
    if let Some(condition) = head.strip_prefix(b"elif ") {
        return [b"if ", condition].concat();
    }
    match arms_before(text, all, at).last() {
        Some(&before) => [&own(before), &b" "[..], &head].concat(),
        None => head,
    }
}

/// The arms that a statement is another one of, the first before the last.
pub(super) fn arms_before(text: &[&[u8]], all: &[Statement], mut at: usize) -> Vec<usize> {
    let mut arms = Vec::new();
    let is_later = |at: usize| {
        let code = text[all[at].lines.start].trim_ascii();
        let word = code.split(|b| !b.is_ascii_alphabetic()).next();
        matches!(word, Some(b"elif" | b"else" | b"finally"))
    };
    while is_later(at) {
        let before = (0..at).rev().take_while(|&i| all[i].indent >= all[at].indent);
        let Some(before) = before.into_iter().find(|&i| all[i].indent == all[at].indent) else {
            break;
        };
        arms.insert(0, before);
        at = before;
    }
    arms
}

/// The words of all that opens a block, a list or a call in the functions around a line, and
/// out of any.
fn heads((text, script): Scripted<'_>, line: usize) -> Heads {
    if script.is_plain() {
        return plain::heads((text, script));
    }
    let all = &script.statements;
    let mut heads = Heads::new();
    if !script.is_indented() {
        let function = commands(text, script, 0..line).0.into_iter().rev();
        let function = function.map(|open| open.statement).find(|&at| {
            command(&text[all[at].lines.clone()]).is_some_and(|command| command.is_function())
        });
        let from = function.map_or(0, |at| all[at].lines.end);
        heads = commands(text, script, from..text.len()).1;
    }
    let before = all.partition_point(|s| s.lines.start < line).checked_sub(1);
    let around: Vec<usize> = std::iter::successors(before, |&at| all[at].around).collect();
    // What opens anything in other functions is their own.
    let is_other = |at: usize| heads_function(text[all[at].lines.start]) && !around.contains(&at);
    let mut skipped: Option<usize> = None;
    for (at, own) in all.iter().enumerate() {
        if skipped.is_some_and(|indent| own.indent > indent) {
            continue;
        }
        skipped = is_other(at).then_some(own.indent);
        if is_block(text, own) {
            heads.push((own.lines.start, headed(text, all, at)));
        } else if own.lines.len() > 1 {
            heads.extend(brackets(text, own.lines.clone()).heads());
        }
    }
    heads
}

/// The name of a list or a key of Python: `A = [`, `a.b: list[int] = {`, `"a": [`.
fn name(Led { words, around }: Led<'_, '_>) -> Option<What> {
    assigned_list(words, around == Some(b"{")).map(What::Named)
}

/// Reads lines as the words of a statement.
fn brackets<'t>(text: &[&'t [u8]], lines: Range<usize>) -> Brackets<'t> {
    let mut brackets = Brackets::default();
    let mut string = None;
    for line in lines {
        read_line(text[line], line, &mut string, &mut |(line, word)| brackets.word(line, word));
    }
    brackets
}

/// Reads the words of a line, up to its comment. `string` is the quote that ends the string
/// of several lines it begins in.
fn read_line<'t>(
    line: &'t [u8],
    number: usize,
    string: &mut Option<u8>,
    word: &mut impl FnMut(Word<'t>),
) {
    let mut at = 0;
    if let Some(quote) = *string {
        let Some(end) = string_of_lines_end(line, 0, quote, 3) else { return };
        (*string, at) = (None, end);
    }
    while let Some(&byte) = line.get(at) {
        let rest = &line[at..];
        let goes_on = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || !b.is_ascii();
        let length = match byte {
            b'#' => return,
            b if b.is_ascii_whitespace() || b == b'\\' => {
                at += 1;
                continue;
            }
            b'\'' | b'"' if rest.starts_with(&[byte; 3]) => {
                let end = string_of_lines_end(line, at + 3, byte, 3);
                if end.is_none() {
                    *string = Some(byte);
                }
                end.unwrap_or(line.len()) - at
            }
            b'\'' | b'"' => (string_end(line, at) + 1).min(line.len()) - at,
            _ if goes_on(&byte) => rest.iter().position(|b| !goes_on(b)).unwrap_or(rest.len()),
            b'+' | b'-' | b'*' | b'/' | b'|' | b'&' | b'=' | b'!' | b'<' | b'>' | b':' => {
                1 + usize::from(rest.get(1) == Some(&b'='))
            }
            _ => 1,
        };
        word((number, &rest[..length]));
        at += length;
    }
}

/// A command of CMake that is not over, or its first lines.
struct Command<'t> {
    /// Its name, lower case.
    name: Vec<u8>,
    /// What it is given, each with its line.
    given: Vec<Word<'t>>,
}

/// A block of commands that is open.
struct Block {
    /// The statement that opens it, or its last arm.
    statement: usize,
    /// The arms before that.
    arms: Vec<usize>,
    what: What,
}

/// The command that begins with these lines, if they read as one.
fn command<'t>(lines: &[&'t [u8]]) -> Option<Command<'t>> {
    // Where commas part what a call is given it is none.
    let calls = |line: &&[u8]| matches!(line.trim_ascii_end().last(), Some(b',' | b';'));
    if lines.iter().any(calls) {
        return None;
    }
    let first = lines.first()?.trim_ascii();
    let open = first.iter().position(|b| *b == b'(')?;
    let name = command_name(first)?.to_ascii_lowercase();
    let mut given = Vec::new();
    let all = std::iter::once(&first[open + 1..]).chain(lines[1..].iter().copied());
    for (number, line) in all.enumerate() {
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        given.extend(words.take_while(|word| !word.starts_with(b"#")).map(|word| (number, word)));
    }
    Some(Command { name, given })
}

/// The name of the command that a line begins, if it reads as one.
pub(super) fn command_name(line: &[u8]) -> Option<&[u8]> {
    let open = line.iter().position(|b| *b == b'(')?;
    let name = line[..open].trim_ascii();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    (!name.is_empty() && name.iter().all(is_name)).then_some(name)
}

impl Command<'_> {
    fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.name == name.as_bytes())
    }

    fn is_function(&self) -> bool {
        self.is(&["function", "macro"])
    }

    /// What it is about: what it is given first, or next to what it is to do.
    fn name(&self) -> Option<Word<'_>> {
        let does = self.is(&[
            "add_custom_command",
            "add_test",
            "execute_process",
            "export",
            "file",
            "get_property",
            "install",
            "list",
            "set_property",
            "string",
        ]);
        let (line, word) = *self.given.get(usize::from(does))?;
        let word = word.trim_ascii_end();
        let end = word.iter().position(|b| matches!(b, b')' | b'(')).unwrap_or(word.len());
        Some((line, &word[..end])).filter(|(_, word)| !word.is_empty())
    }

    /// The keywords that what comes after them belongs to: `PRIVATE`.
    fn sections(&self) -> impl DoubleEndedIterator<Item = Word<'_>> {
        let has_none = self.is(&["set", "list", "string", "file"]);
        let keyword = move |(_, word): &Word<'_>| {
            let letters = word.iter().all(|b| b.is_ascii_uppercase() || *b == b'_');
            !has_none && word.len() > 1 && letters
        };
        self.given.iter().skip(1).copied().filter(keyword)
    }

    fn ends_block(&self) -> bool {
        self.is(&["endif", "endwhile", "endforeach", "endblock", "endfunction", "endmacro"])
    }

    fn decides(&self) -> bool {
        self.is(&["if", "elseif", "else", "while", "foreach"])
    }

    /// What it opens, of these lines of it.
    fn openings(&self, lines: Range<usize>) -> Vec<Opening> {
        let line = |at: usize| lines.start + at;
        let mut all = Vec::new();
        if self.decides() {
            let what = What::Headed(self.words());
            return vec![Opening { head: lines, what }];
        }
        let Some((at, name)) = self.name() else {
            let what = What::Headed(self.name.clone());
            return vec![Opening { head: line(0)..line(1), what }];
        };
        let head = line(0)..line(at + 1);
        all.push(Opening { head, what: What::Named(name.to_vec()) });
        if let Some((at, keyword)) = self.sections().next_back() {
            let words = [&self.name[..], name, keyword].join(&b' ');
            all.push(Opening { head: line(at)..line(at + 1), what: What::Headed(words) });
        }
        all
    }

    /// Its words; those of a later arm as a first one's.
    fn words(&self) -> Vec<u8> {
        let name = if self.is(&["elseif"]) { b"if" } else { &self.name[..] };
        let given = self.given.iter().map(|(_, word)| *word);
        std::iter::once(name).chain(given).collect::<Vec<_>>().join(&b' ')
    }
}

/// What the commands before a line open.
fn commands_around(text: &[&[u8]], script: &Script, line: usize) -> Vec<Opening> {
    if script.is_indented() {
        return Vec::new();
    }
    let mut all = Vec::new();
    let lines = |at: usize| script.statements[at].lines.clone();
    for Block { statement, arms, what } in commands(text, script, 0..line).0 {
        all.extend(arms.into_iter().map(|arm| Opening::bare(lines(arm))));
        all.push(Opening { head: lines(statement), what });
    }
    all
}

/// The blocks that the commands in these lines leave open, and the words of all they open.
fn commands(text: &[&[u8]], script: &Script, lines: Range<usize>) -> (Vec<Block>, Heads) {
    let (mut open, mut heads): (Vec<Block>, Heads) = (Vec::new(), Vec::new());
    let own = |s: &Statement| lines.start <= s.lines.start && s.lines.end <= lines.end;
    for (statement, Statement { lines, .. }) in script.statements.iter().enumerate() {
        if !own(&script.statements[statement]) {
            continue;
        }
        let Some(command) = command(&text[lines.clone()]) else { continue };
        // What another function opens is its own.
        let is_own = !open.iter().any(|block| matches!(block.what, What::Named(_)));
        let mut put = |what: What, arms: Vec<usize>, open: &mut Vec<Block>| {
            if let What::Headed(words) = &what
                && is_own
            {
                heads.push((lines.start, words.clone()));
            }
            open.push(Block { statement, arms, what });
        };
        if command.is_function() {
            let name = command.name().map(|(_, name)| name.to_vec());
            put(name.map_or(What::Bare, What::Named), Vec::new(), &mut open);
        } else if command.is(&["if", "while", "foreach", "block"]) {
            put(What::Headed(command.words()), Vec::new(), &mut open);
        } else if command.is(&["elseif", "else"]) {
            let before = open.pop();
            let what = match &before {
                Some(Block { what: What::Headed(before), .. }) if command.is(&["else"]) => {
                    [&before[..], b" else"].concat()
                }
                _ => command.words(),
            };
            let arms = before.map_or_else(Vec::new, |mut before| {
                before.arms.push(before.statement);
                before.arms
            });
            put(What::Headed(what), arms, &mut open);
        } else if command.ends_block() {
            if open.pop().is_none() {
                break;
            }
        } else if lines.len() > 1 && is_own {
            // Each part of a command of several lines.
            let name = command.name().map(|(_, name)| name.to_vec()).unwrap_or_default();
            heads.extend(command.sections().map(|(at, keyword)| {
                (lines.start + at, [&command.name[..], &name, keyword].join(&b' '))
            }));
        }
    }
    (open, heads)
}
