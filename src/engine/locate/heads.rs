//! What the statement before a brace heads, and where statements end.

use crate::cpp::function::is_attribute;
use crate::cpp::{lex_meaning, meaning};

/// The end of a function's head, from its name or from what goes before its last
/// brackets: functions with one head have one such end, whatever stands before
/// their heads.
pub(super) fn signature(head: &[&[u8]]) -> Vec<u8> {
    let text = head.concat();
    let words = meaning(&text);
    let mut depth = 0_usize;
    let body = words.iter().position(|word| {
        match *word {
            b"(" => depth += 1,
            b")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *word == b"{"
    });
    let words = &words[..body.unwrap_or(words.len())];
    let mut depth = 0_usize;
    let opens = words.iter().rposition(|word| {
        match *word {
            b")" => depth += 1,
            b"(" => depth = depth.saturating_sub(1),
            _ => return false,
        }
        depth == 0
    });
    let mut name = opens.unwrap_or(0).saturating_sub(1);
    while name >= 2 && words[name - 1] == b"::" {
        name -= 2;
    }
    words[name..].join(&b' ')
}

/// Whether no statement goes on after a line. One that closes what it opens
/// may: `int a = {}` in a list of parameters does.
pub(super) fn ends_statement(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let code = without_comment(line);
    match code.last() {
        Some(b';' | b'{') => true,
        Some(b'}') => !code.contains(&b'{'),
        Some(_) => is_directive(code),
        None => line.is_empty(),
    }
}

pub(super) fn is_directive(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
}

/// A trimmed line up to the comment that ends it.
fn without_comment(line: &[u8]) -> &[u8] {
    let begin = match memchr::memmem::find(line, b"//") {
        None if line.ends_with(b"*/") => memchr::memmem::rfind(line, b"/*"),
        found => found,
    };
    begin.map_or(line, |at| line[..at].trim_ascii_end())
}

/// What the statement before a brace heads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// A namespace or a class.
    Scope,
    /// A function, or a macro that stands for one.
    Function,
}

impl Head {
    /// Nothing where the lines do not tell, or are not all of it.
    pub fn of(lines: &[&[u8]]) -> Option<Self> {
        let text = lines.concat();
        let words: Vec<&[u8]> = lex_meaning(&text).iter().map(|token| token.of(&text)).collect();
        Self::of_words(&words)
    }

    /// As [`Self::of`], of the words that bear meaning.
    pub fn of_words(all: &[&[u8]]) -> Option<Self> {
        let (mut depth, mut angles) = (0_usize, 0_usize);
        let (mut scoped, mut parentheses, mut template) = (false, false, false);
        let words = || all.iter().copied();
        // What ends before may do so on the first line. A brace that closes later was
        // opened in the same statement, whose lines are not all here.
        let ended = words().take_while(|word| *word == b"}").count();
        let goes_on = |word: &[u8]| matches!(word, b"," | b")");
        if ended > 0 && words().nth(ended).is_some_and(goes_on) {
            return None;
        }
        let (mut braces, mut last): (_, &[u8]) = (0_usize, b"");
        // Whether a class's name is still to come, and a macro before it was given something.
        let (mut unnamed, mut given) = (false, false);
        let mut words = words().skip(ended).peekable();
        while let Some(word) = words.next() {
            if unnamed && depth == 0 && word != b"(" && words.peek() != Some(&&b"("[..]) {
                unnamed = false;
                parentheses |= given && !(is_name(word) && word != b"final");
            }
            match word {
                b"{" => braces += 1,
                b"}" => braces = braces.checked_sub(1)?,
                b"(" => {
                    depth += 1;
                    given |= unnamed;
                    parentheses |= angles == 0 && !unnamed;
                }
                b")" => depth = depth.checked_sub(1)?,
                _ if depth > 0 => {}
                b"<" if template || angles > 0 => angles += 1,
                b">" => angles = angles.saturating_sub(1),
                b">>" => angles = angles.saturating_sub(2),
                b"namespace" | b"class" | b"struct" | b"union" | b"enum" | b"extern" => {
                    scoped |= angles == 0;
                    // What was called right before a class is a macro.
                    parentheses &= angles > 0 || last != b")";
                    given = false;
                    unnamed = angles == 0 && !matches!(word, b"namespace" | b"extern");
                }
                _ => {}
            }
            (template, last) = (word == b"template", word);
        }
        match (scoped, parentheses) {
            _ if depth > 0 || angles > 0 => None,
            (true, false) => Some(Self::Scope),
            (false, true) => Some(Self::Function),
            _ => None,
        }
    }
}

/// The nearest line before `line` that begins with a letter, `_` or `$`, as
/// `diff -p` and git choose the text behind a `@@`.
pub(super) fn heading(text: &[&[u8]], line: usize) -> Option<usize> {
    (0..line.min(text.len())).rev().find(|&i| is_heading(text[i]))
}

pub(super) fn is_heading(line: &[u8]) -> bool {
    line.first().is_some_and(|&b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$'))
}

/// The name that a heading gives, where no function can be read: the word
/// before the first `(` that is no attribute's. Of a heading that is a template's head alone, the lines
/// after it up to `until` count.
pub(super) fn heading_name(text: &[&[u8]], heading: usize, until: usize) -> Option<Vec<u8>> {
    let first = text[heading];
    if is_statement(first) {
        return None;
    }
    let more = first.starts_with(b"template") && !first.contains(&b'(');
    let end = if more { until.max(heading + 1) } else { heading + 1 };
    let line = text[heading..end.min(text.len())].concat();
    let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'~');
    let mut depth = 0_usize;
    for (at, byte) in line.iter().enumerate() {
        match byte {
            b'(' => {
                let before = line[..at].iter().rposition(|b| !word(b));
                let name = &line[before.map_or(0, |at| at + 1)..at];
                if depth == 0 && !is_attribute(name) {
                    return Some(name.to_vec()).filter(|name| !name.is_empty());
                }
                depth += 1;
            }
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Whether a line that is no head ends here: a declaration.
fn is_statement(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b";")
}

/// The name of the class that a heading opens and that no line up to `until`
/// closes.
pub(super) fn class_name(text: &[&[u8]], heading: usize, until: usize) -> Option<Vec<u8>> {
    let closed = text[heading..until.min(text.len())].iter().any(|l| l.starts_with(b"}"));
    if closed || is_statement(text[heading]) {
        return None;
    }
    let words = meaning(text[heading]);
    let (first, rest) = words.split_first()?;
    let class = matches!(*first, b"class" | b"struct" | b"union" | b"enum");
    named_class(rest).filter(|_| class)
}

/// The name of the class that these words head, its keyword left out.
pub(super) fn named_class(words: &[&[u8]]) -> Option<Vec<u8>> {
    // What stands before the name are macros and attributes, with what they are given.
    let (mut depth, mut name) = (0_usize, None);
    for word in words {
        match *word {
            b"(" | b"[" => depth += 1,
            b")" | b"]" => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            b"{" | b":" | b"<" | b"=" => break,
            b"class" | b"struct" | b"final" | b"const" | b"noexcept" => {}
            word if is_name(word) && !is_attribute(word) => name = Some(word.to_vec()),
            _ => {}
        }
    }
    name
}

pub(super) fn is_name(word: &[u8]) -> bool {
    word.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
}
