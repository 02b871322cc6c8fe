//! Functions and classes of a text that gives them by indentation: Python.

use std::ops::Range;

use super::script::Statement;

/// A `def` or a `class`, with what is indented below it.
pub(super) struct Block {
    /// Its name, with those of the blocks around it, dots between.
    pub path: String,
    /// The lines of its head, decorators included.
    pub head: Range<usize>,
    /// Its lines (0-based), blank ones at the end included.
    pub lines: Range<usize>,
    /// The line after its last statement.
    pub last: usize,
    /// How far its head is indented.
    pub indent: usize,
}

/// The blocks of a text, given its statements.
pub(super) fn blocks(text: &[&[u8]], statements: &[Statement]) -> Vec<Block> {
    let (mut found, mut open): (Vec<Block>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut decorated = None;
    for &Statement { ref lines, indent, .. } in statements {
        let first = text[lines.start];
        while let Some(&at) = open.last()
            && found[at].indent >= indent
        {
            found[at].lines.end = lines.start;
            open.pop();
        }
        for &at in &open {
            found[at].last = lines.end;
        }
        if is_decorator(first) {
            decorated = decorated.or(Some(lines.start));
            continue;
        }
        let begin = decorated.take().unwrap_or(lines.start);
        let Some((_, name)) = head_name(first) else { continue };
        let name = String::from_utf8_lossy(name);
        let path = match open.last() {
            Some(&at) => format!("{}.{name}", found[at].path),
            None => name.into_owned(),
        };
        open.push(found.len());
        let (head, last) = (begin..lines.end, lines.end);
        found.push(Block { path, head, lines: begin..text.len(), last, indent });
    }
    found
}

/// The heads of the functions and classes that lines are in, the innermost first: see
/// [`around`].
pub(super) fn heads_around(
    text: &[&[u8]],
    statements: &[Statement],
    lines: &Range<usize>,
    depth: Option<usize>,
) -> Option<Vec<Range<usize>>> {
    let first = |at: usize| text[statements[at].lines.start];
    let decorates = |at: usize| is_decorator(first(at));
    let heads_block = |at: usize| head_name(first(at)).is_some();
    let head = |at: usize| {
        let first = (0..at).rev().take_while(|&i| decorates(i)).last().unwrap_or(at);
        statements[first].lines.start..statements[at].lines.end
    };
    let around = around(text, statements, lines, depth)?.into_iter();
    let heads: Vec<_> = around.filter(|&at| heads_block(at)).map(head).collect();
    // A block can begin in the lines themselves.
    let before = |line: usize| statements.partition_point(|s| s.lines.start < line);
    let begins =
        || (before(lines.start)..before(lines.end)).any(|at| decorates(at) || heads_block(at));
    (!heads.is_empty() || !begins()).then_some(heads)
}

/// The statements that lines may be indented below, the innermost first, by number. After a
/// block's last statement `depth` tells, which is how far they are indented; where that is
/// not known a block ends before what ends it. Nothing where it cannot be told from what is
/// before them.
pub(super) fn around(
    text: &[&[u8]],
    statements: &[Statement],
    lines: &Range<usize>,
    depth: Option<usize>,
) -> Option<Vec<usize>> {
    let begin = statements.partition_point(|s| s.lines.start < lines.start);
    let next = begin.checked_sub(1);
    // The block that a decorator belongs to begins with it.
    if next.is_some_and(|at| is_decorator(text[statements[at].lines.start])) {
        return None;
    }
    let after = statements.get(begin);
    let ends = after.map_or(text.len(), |after| after.lines.start);
    let limit = if next.is_some_and(|at| lines.start < statements[at].lines.end) {
        usize::MAX
    } else {
        let depth = depth.unwrap_or(if lines.start < ends { usize::MAX } else { 0 });
        depth.max(after.map_or(0, |after| after.indent))
    };
    let outwards = std::iter::successors(next, |&at| statements[at].around);
    Some(outwards.filter(|&at| statements[at].indent < limit).collect())
}

fn is_decorator(line: &[u8]) -> bool {
    line[indentation(line)..].starts_with(b"@")
}

/// How many blanks a line begins with.
pub(super) fn indentation(line: &[u8]) -> usize {
    line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// Whether a line heads a function.
pub(super) fn heads_function(line: &[u8]) -> bool {
    head_name(line).is_some_and(|(kind, _)| kind == Kind::Function)
}

#[derive(PartialEq, Eq)]
enum Kind {
    Function,
    Class,
}

/// The name of the class or function that a line heads.
pub(super) fn named(line: &[u8]) -> Option<&[u8]> {
    head_name(line).map(|(_, name)| name)
}

/// What a line that heads a block names.
fn head_name(line: &[u8]) -> Option<(Kind, &[u8])> {
    let word = |line: &[u8]| {
        let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || !b.is_ascii();
        line.iter().position(|b| !word(b)).unwrap_or(line.len())
    };
    let after = |line: &'_ [u8], keyword: &[u8]| {
        let rest = line.strip_prefix(keyword)?;
        let blanks = indentation(rest);
        (blanks > 0).then_some(line.len() - rest.len() + blanks)
    };
    let mut rest = &line[indentation(line)..];
    // Most lines begin otherwise.
    if !matches!(rest.first(), Some(b'a' | b'c' | b'd')) {
        return None;
    }
    if let Some(at) = after(rest, b"async") {
        rest = &rest[at..];
    }
    let (kind, at) = match (after(rest, b"def"), after(rest, b"class")) {
        (Some(at), _) => (Kind::Function, at),
        (None, Some(at)) => (Kind::Class, at),
        (None, None) => return None,
    };
    rest = &rest[at..];
    let (name, rest) = rest.split_at(word(rest));
    let goes_on = rest.trim_ascii_start().first();
    let heads = match kind {
        Kind::Function => matches!(goes_on, Some(b'(' | b'[')),
        Kind::Class => matches!(goes_on, Some(b'(' | b'[' | b':')),
    };
    (heads && !name.is_empty()).then_some((kind, name))
}

#[cfg(test)]
mod tests {
    use super::super::script::{Layout, Script};
    use super::*;
    use crate::merge::lines;

    fn read(lines: &[&[u8]]) -> Vec<Statement> {
        let script = Script::of(lines, |at| Layout::of(lines[at]));
        if script.is_indented() { script.statements } else { Vec::new() }
    }

    fn found(text: &str) -> Vec<String> {
        let lines = lines(text.as_bytes());
        let shown = |b: &Block| format!("{} {}..{}", b.path, b.lines.start, b.lines.end);
        blocks(&lines, &read(&lines)).iter().map(shown).collect()
    }

    #[test]
    fn blocks_end_where_the_indentation_does() {
        let text = "import a\n\nclass A(B):\n    x = 1\n\n    @property\n    def f(self):\n        y\n\n    \
                    async def g(\n        self,\n    ):\n        def h(): return 1\n        z\n\nif a:\n    \
                    def k():\n        z\n";
        assert_eq!(found(text), ["A 2..15", "A.f 5..9", "A.g 9..15", "A.g.h 12..13", "k 16..18"]);
    }

    #[test]
    fn heads_are_those_of_the_blocks_that_hold_a_gap() {
        let text = "class A:\n    @one\n    @two(\n    )\n    def f(\n        self,\n    ):\n        \
                    x\n\n        def g():\n            y\n# a\n            y\n\n        z\n    w = '''\na\nb\n'''\n@three\ndef h():\n    pass\n";
        let lines = lines(text.as_bytes());
        let statements = read(&lines);
        let blocks = blocks(&lines, &statements);
        let (mut told, mut untold) = (0, 0);
        for gap in 0..=lines.len() {
            for depth in [None, Some(0), Some(4), Some(8), Some(12)] {
                for end in gap..=(gap + 2).min(lines.len()) {
                    let Some(heads) = heads_around(&lines, &statements, &(gap..end), depth) else {
                        untold += 1;
                        continue;
                    };
                    let holds = |b: &&Block| {
                        let after = match depth {
                            Some(depth) => gap <= b.lines.end && b.indent < depth,
                            None => gap < b.lines.end,
                        };
                        b.lines.start < gap && (gap < b.last || after)
                    };
                    let mut expected: Vec<_> =
                        blocks.iter().filter(holds).map(|b| b.head.clone()).collect();
                    expected.reverse();
                    assert_eq!(heads, expected, "{gap} {depth:?}");
                    // A block ends with its last statement at the soonest.
                    let goes_on = |b: &&Block| {
                        let own = |s: &&Statement| b.lines.contains(&s.lines.start);
                        statements.iter().filter(own).any(|s| gap < s.lines.end)
                    };
                    let begun = |b: &&Block| b.lines.start < gap;
                    for block in blocks.iter().filter(begun).filter(goes_on) {
                        assert!(heads.contains(&block.head), "{gap} {depth:?} {}", block.path);
                    }
                    let inside = blocks.iter().any(|b| (gap..end).contains(&b.lines.start));
                    assert!(!heads.is_empty() || !inside, "{gap}..{end} {depth:?}");
                    told += 1;
                }
            }
        }
        assert!(told > 100 && untold > 10, "{told} {untold}");
    }

    #[test]
    fn words_are_no_code() {
        let text = "def f(a='('):  # ( \\\n    \"\"\"don't\ndef g():\n\\\"\"\"\"\"\"\n    x = {\ndef\n  : 1}\n    y \
                    = \\\n1\n    z\n";
        assert_eq!(found(text), ["f 0..10"]);
    }

    #[test]
    fn what_its_strings_hold_does_not_make_it_another_language() {
        let text = "import a\n\nS = \"\"\"\n#include <m>\n\"\"\"\n\n\ndef f():\n    x\n";
        assert_eq!(found(text), ["f 7..9"]);
        assert_eq!(found(&text.replace("import a", "from a import b")), ["f 7..9"]);
        assert_eq!(found(&text.replace("import a", "// from a")), [""; 0]);
    }

    #[test]
    fn other_languages_have_none() {
        for text in [
            "class A : public B {\n  void f();\n};\n",
            "define it\nclass of 1999:\n",
            "#include <a>\nint a = R\"(}\ndef f(x):\n  x\n)\";\n",
            "",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
