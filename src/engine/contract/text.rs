//! The texts that contracts are checked on, each read into functions once.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::directives::{Directive, directives};
use crate::cpp::{Function, function, meaning_at};
use crate::merge::{LineMap, lines};
use crate::snapshot::{File, TreePath};

/// A file's text, and what is worked out of it when it is asked for.
pub(super) struct Text {
    bytes: Arc<[u8]>,
    functions: OnceCell<Vec<Function>>,
    words: OnceCell<Vec<Range<usize>>>,
    directives: OnceCell<Vec<Directive>>,
}

impl Text {
    pub(super) fn new(file: File) -> Self {
        let (functions, words) = (OnceCell::new(), OnceCell::new());
        Self { bytes: file.bytes, functions, words, directives: OnceCell::new() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn functions(&self) -> &[Function] {
        self.functions.get_or_init(|| function::functions(&self.bytes))
    }

    /// Its meaning-bearing tokens within a span that begins and ends with one, each
    /// with its place.
    pub(super) fn words(&self, within: &Range<usize>) -> Vec<(usize, &[u8])> {
        let words = self.words.get_or_init(|| {
            // What has no bytes of its own in the text is a line break.
            let place =
                |(at, word): (usize, &[u8])| at..at + if word == b"\n" { 0 } else { word.len() };
            meaning_at(&self.bytes).into_iter().map(place).collect()
        });
        let from = words.partition_point(|w| w.start < within.start);
        let to = words.partition_point(|w| w.start < within.end);
        let word = |w: &Range<usize>| match w.is_empty() {
            true => (w.start, &b"\n"[..]),
            false => (w.start, &self.bytes[w.clone()]),
        };
        words[from..to].iter().map(word).collect()
    }

    /// Its preprocessor lines.
    pub(super) fn directives(&self) -> &[Directive] {
        self.directives.get_or_init(|| directives(&self.bytes))
    }
}

/// A file at the pin and at the target.
pub(super) struct Ends {
    /// At the pin.
    pub then: Rc<Text>,
    /// At the target.
    pub now: Rc<Text>,
    /// Its path at the target.
    pub path: TreePath,
    map: OnceCell<LineMap<'static>>,
}

impl Ends {
    pub(super) fn new(then: File, now: File, path: TreePath) -> Self {
        let same = then.bytes == now.bytes;
        let then = Rc::new(Text::new(then));
        let now = if same { then.clone() } else { Rc::new(Text::new(now)) };
        Self { then, now, path, map: OnceCell::new() }
    }

    /// Where the pin's lines went.
    pub(super) fn map(&self) -> &LineMap<'static> {
        let between = || LineMap::new(&lines(self.then.bytes()), &lines(self.now.bytes()));
        self.map.get_or_init(between)
    }
}
