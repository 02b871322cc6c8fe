//! The brackets that are open in a place, and the words that lead to each.

use std::ops::Range;

use super::heads::is_name;
use super::openings::{Heads, Opening, What};
use super::plain::names;

/// A word, and the line that it begins on.
pub(super) type Word<'t> = (usize, &'t [u8]);

/// A bracket that is open.
#[derive(Clone)]
struct Open {
    /// The first of the words that lead to it, by number.
    lead: usize,
    /// The bracket itself.
    at: usize,
    inside: Inside,
}

/// What was read within a bracket so far.
#[derive(Clone, Default)]
struct Inside {
    /// The first comma.
    comma: Option<usize>,
    /// The `case`s that the place after them is in.
    cases: Vec<Range<usize>>,
    /// What led to the last block that is over.
    before: Option<Range<usize>>,
    /// A block of several lines stood in it.
    held_block: bool,
}

/// What is open after the words read so far.
#[derive(Clone, Default)]
struct State {
    open: Vec<Open>,
    /// What is in no bracket.
    outer: Inside,
    /// The first word of what is being read, by number.
    lead: usize,
    words: usize,
    /// In the angles after `template`: how many are open, and how many brackets around them.
    template: Option<(usize, usize)>,
}

/// Reads words one after the other.
#[derive(Default)]
pub(super) struct Brackets<'t> {
    words: Vec<Word<'t>>,
    state: State,
    /// What was open where each condition began.
    conditions: Vec<State>,
    heads: Heads,
}

/// A bracket, with the words from those that lead to the call it is given to.
pub(super) struct Led<'w, 't> {
    pub words: &'w [&'t [u8]],
    /// The bracket around it.
    pub around: Option<&'t [u8]>,
}

impl<'t> Brackets<'t> {
    /// The words of every block and every call of several lines that was opened so far.
    pub fn heads(self) -> Heads {
        self.heads
    }

    /// Goes to a condition's first branch, to a later one, or to what is after it.
    pub fn condition(&mut self, condition: crate::cpp::Condition) {
        use crate::cpp::Condition::{Else, EndIf, If};
        match condition {
            If => {
                self.state.words = self.words.len();
                self.conditions.push(self.state.clone());
            }
            // All branches begin with what is open before the first.
            Else => {
                if let Some(before) = self.conditions.last() {
                    self.state = before.clone();
                    self.words.truncate(before.words);
                }
            }
            EndIf => _ = self.conditions.pop(),
        }
    }

    fn inside(&mut self) -> &mut Inside {
        let State { open, outer, .. } = &mut self.state;
        open.last_mut().map_or(outer, |open| &mut open.inside)
    }

    fn is_in_block(&self) -> bool {
        self.state.open.last().is_none_or(|open| self.words[open.at].1 == b"{")
    }

    pub fn word(&mut self, line: usize, word: &'t [u8]) {
        let at = self.words.len();
        self.words.push((line, word));
        if self.is_in_template(word) {
            return;
        }
        match word {
            b"(" | b"[" | b"{" => {
                let lead = self.state.lead;
                self.state.open.push(Open { lead, at, inside: Inside::default() });
                self.state.lead = at + 1;
                if word == b"{" {
                    self.head(self.state.open.len() - 1);
                }
            }
            b")" | b"]" | b"}" => self.close(word, at),
            b"," => {
                self.inside().comma.get_or_insert(at);
                self.state.lead = at + 1;
            }
            b";" => self.state.lead = at + 1,
            b":" if self.is_in_block() && self.begins_case(at) => {
                let lead = self.state.lead;
                let inside = self.inside();
                if inside.cases.last().is_some_and(|last| last.end + 1 != lead) {
                    inside.cases.clear();
                }
                inside.cases.push(lead..at);
                self.heads.push((self.words[lead].0, self.joined(lead..at)));
                self.state.lead = at + 1;
            }
            _ => {}
        }
    }

    /// Whether a word that is no bracket is one of a template's head.
    fn is_in_template(&mut self, word: &[u8]) -> bool {
        let own = self.state.open.len();
        if word == b"template" {
            self.state.template = Some((0, own));
        }
        let Some((angles, around)) = &mut self.state.template else { return false };
        if *around != own {
            return false;
        }
        match word {
            b"template" => {}
            b"<" => *angles += 1,
            b">" => *angles = angles.saturating_sub(1),
            b">>" => *angles = angles.saturating_sub(2),
            b"(" | b"[" | b"{" | b")" | b"]" | b"}" => return false,
            _ => {}
        }
        if *angles == 0 && word != b"template" {
            self.state.template = None;
        }
        true
    }

    fn begins_case(&self, at: usize) -> bool {
        self.state.lead < at && matches!(self.words[self.state.lead].1, b"case" | b"default")
    }

    fn close(&mut self, word: &[u8], at: usize) {
        let opens: &[u8] = match word {
            b")" => b"(",
            b"]" => b"[",
            _ => b"{",
        };
        // What closes another kind ends what is left open inside it.
        let open = |open: &Open| self.words[open.at].1 == opens;
        let Some(own) = self.state.open.iter().rposition(open) else { return };
        let lines = self.words[at].0 - self.words[self.state.open[own].at].0;
        if lines > 0 && (word != b"}" || self.row(own).is_some()) {
            self.head(own);
        }
        let closed = self.state.open[own].clone();
        self.state.open.truncate(own);
        let block = word == b"}";
        self.inside().held_block |= (block || closed.inside.held_block) && lines > 0;
        if block && self.is_in_block() {
            self.inside().before = Some(closed.lead..closed.at);
            self.state.lead = at + 1;
        } else if closed.inside.held_block && !block {
            // A call on what a call with a block gives stands for itself.
            self.state.lead = at + 1;
        } else {
            self.state.lead = closed.lead;
        }
    }

    /// The calls that an open block or list is given to, the outermost first, and itself.
    fn led(&self, own: usize) -> Range<usize> {
        let is_call = |open: &&Open| self.words[open.at].1 == b"(";
        let calls = match is_call(&&self.state.open[own]) {
            true => 0,
            false => self.state.open[..own].iter().rev().take_while(is_call).count(),
        };
        own - calls..own + 1
    }

    /// Where the words begin that lead to an open bracket, or to the calls that it is given to.
    fn begin(&self, own: usize) -> usize {
        self.state.open[self.led(own).start].lead
    }

    fn joined(&self, words: Range<usize>) -> Vec<u8> {
        self.words[words].iter().map(|(_, word)| *word).collect::<Vec<_>>().join(&b' ')
    }

    /// The words that head an open bracket: with those of a call goes what it is given first,
    /// where one line says that, and with those of a row its first element.
    fn told(&self, own: usize) -> Range<usize> {
        let (begin, open) = (self.begin(own), &self.state.open[own]);
        let first = open.inside.comma.filter(|comma| {
            let (given, ends) = (self.words[open.at + 1], self.words[*comma]);
            self.words[open.at].1 == b"(" && given.0 == ends.0 && begin < open.at
        });
        begin..first.or_else(|| Some(self.row(own)?.end)).unwrap_or(open.at)
    }

    /// What the words say that head an open bracket.
    fn headed(&self, own: usize) -> Vec<u8> {
        let words = self.told(own);
        match &self.words[words.clone()] {
            [(_, b"else")] => {
                let around = own.checked_sub(1).map(|i| &self.state.open[i].inside);
                let before = around.unwrap_or(&self.state.outer).before.clone();
                let before = before.unwrap_or(words.start..words.start);
                [self.of_arm(before), b" else".to_vec()].concat()
            }
            _ => self.of_arm(words),
        }
    }

    /// The words that head an arm, whether it is the first or not.
    fn of_arm(&self, words: Range<usize>) -> Vec<u8> {
        match &self.words[words.clone()] {
            [(_, b"else"), (_, b"if"), ..] => self.joined(words.start + 1..words.end),
            _ => self.joined(words),
        }
    }

    fn head(&mut self, own: usize) {
        let words = self.headed(own);
        if !words.is_empty() {
            self.heads.push((self.words[self.begin(own)].0, words));
        }
    }

    /// What is open, the outermost first. `read` says what a bracket opens where its words do not.
    pub fn openings(&self, mut read: impl FnMut(Led<'_, 't>) -> Option<What>) -> Vec<Opening> {
        let mut all = Vec::new();
        let open = &self.state.open;
        for (i, own) in open.iter().enumerate() {
            let bracket = self.words[own.at].1;
            let key = self.key(i);
            // A call stands with what it is given.
            let given = (i + 1..open.len()).find(|&i| self.words[open[i].at].1 != b"(");
            if bracket == b"(" && given.is_some() && key.is_none() {
                continue;
            }
            let begin = self.begin(i);
            let words: Vec<&[u8]> = self.words[begin..=own.at].iter().map(|w| w.1).collect();
            let around = self.led(i).start.checked_sub(1).map(|i| self.words[open[i].at].1);
            let mut head = self.words[begin].0..self.words[own.at].0 + 1;
            let what = if let Some(what) = read(Led { words: &words, around }) {
                what
            } else if let Some(key) = key {
                head.end = head.end.max(self.words[key.end - 1].0 + 1);
                What::Named(self.joined(key))
            } else {
                head.end = head.end.max(self.words[self.told(i)].last().map_or(0, |w| w.0 + 1));
                match self.headed(i) {
                    words if words.is_empty() => What::Bare,
                    words => What::Headed(words),
                }
            };
            all.push(Opening { head, what });
            all.extend(own.inside.cases.iter().map(|case| {
                let lines = self.words[case.start].0..self.words[case.end].0 + 1;
                Opening { head: lines, what: What::Headed(self.joined(case.clone())) }
            }));
        }
        all
    }

    /// The first element of a row, where it is the key of the rest: a string that other than
    /// strings follow, what a single list stands beside, or its name.
    fn key(&self, own: usize) -> Option<Range<usize>> {
        let key = self.first(own)?;
        let first = &self.words[key.clone()];
        let rest = &self.words[key.end..];
        let told = first.iter().all(is_string) && !rest.iter().all(|w| is_string(w) || w.1 == b",");
        let pair = || {
            let next = self.state.open.get(own + 1).is_some_and(|next| next.at == key.end + 1);
            let literal = |w: &Word<'_>| is_path(w.1) || w.1.iter().all(u8::is_ascii_alphanumeric);
            next && first.iter().all(|w| is_string(w) || literal(w))
        };
        (told || pair() || field(first).is_some_and(names)).then_some(key)
    }

    /// The first element of a row that tells it from others, whether it is their key or not.
    fn row(&self, own: usize) -> Option<Range<usize>> {
        let first = self.first(own)?;
        let words = &self.words[first.clone()];
        let is_path = words.iter().enumerate().all(|(i, w)| is_name(w.1) == i.is_multiple_of(2));
        (words.iter().all(is_string) || is_path || field(words).is_some()).then_some(first)
    }

    /// What stands before the first comma in a row: a list that has no name of its own, but
    /// may have a type.
    fn first(&self, own: usize) -> Option<Range<usize>> {
        let open = &self.state.open[own];
        let led = &self.words[open.lead..open.at];
        let path = |word: &Word<'_>| is_path(word.1) && word.1 != b"return";
        if !led.iter().all(path) || !led.is_empty() && self.words[open.at].1 != b"{" {
            return None;
        }
        Some(open.at + 1..open.inside.comma?).filter(|first| !first.is_empty())
    }
}

/// The field that the first words of a row give a value: `"a": 1`, `.a = 1`, `{"a", 1}`.
fn field<'t>(words: &[Word<'t>]) -> Option<&'t [u8]> {
    let words: Vec<&[u8]> = words.iter().take(4).map(|word| word.1).collect();
    match words[..] {
        [key, b":", _, ..] if is_string(&(0, key)) => key.get(1..key.len() - 1),
        [b"{", key, b",", _, ..] if is_string(&(0, key)) => key.get(1..key.len() - 1),
        [b".", key, b"=", _, ..] => Some(key),
        _ => None,
    }
}

fn is_string(word: &Word<'_>) -> bool {
    matches!(word.1.last(), Some(b'"' | b'\''))
}

/// Whether a word may be part of a name with what it is in.
fn is_path(word: &[u8]) -> bool {
    matches!(word, b"::" | b".") || is_name(word)
}
