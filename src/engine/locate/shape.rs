//! The form of a text, read when it is asked for and once.

use std::cell::OnceCell;

use super::effect::Effect;
use super::facts::Facts;
use super::functions::Functions;
use super::indented;
use super::outline::Outline;
use super::plain::Language;
use super::script::{Layout, Script, Statement};
use crate::merge::Number;

/// What is known of a text's form, read when it is asked for.
#[derive(Default)]
pub struct Shape<'f> {
    /// What is known of its lines, and their numbers.
    known: Option<(&'f Facts, &'f [Number])>,
    pub(super) language: Language,
    functions: OnceCell<Functions>,
    outline: OnceCell<Outline>,
    script: OnceCell<Script>,
}

impl<'f> Shape<'f> {
    /// Of a text in this language.
    #[must_use]
    pub fn new(language: Language) -> Self {
        Self { language, ..Self::default() }
    }

    /// Of a text in this language whose lines have these numbers.
    #[must_use]
    pub fn of_numbers(language: Language, facts: &'f Facts, numbers: &'f [Number]) -> Self {
        Self { known: Some((facts, numbers)), ..Self::new(language) }
    }

    pub(super) fn functions(&self, text: &[&[u8]]) -> &Functions {
        self.functions.get_or_init(|| match self.statements(text) {
            [] => Functions::of(text),
            statements => Functions::indented(text, indented::blocks(text, statements)),
        })
    }

    pub(super) fn script(&self, text: &[&[u8]]) -> &Script {
        self.script.get_or_init(|| match self.known {
            _ if self.language != Language::Other => Script::plain(text, self.language),
            None => Script::of(text, |at| Layout::of(text[at])),
            Some((facts, numbers)) => {
                facts.layouts.with((text, numbers), Layout::of, |of| Script::of(text, of))
            }
        })
    }

    /// Where functions are given by indentation; none elsewhere.
    pub(super) fn statements(&self, text: &[&[u8]]) -> &[Statement] {
        let script = self.script(text);
        if script.is_indented() { &script.statements } else { &[] }
    }

    /// Whether the gap before a line is in a comment, string or directive of several lines.
    pub(super) fn is_in_words(&self, text: &[&[u8]], line: usize) -> bool {
        let script = self.script(text);
        if script.is_one() {
            script.is_in_words(line)
        } else {
            self.outline(text).is_in_words(line)
        }
    }

    pub(super) fn outline(&self, text: &[&[u8]]) -> &Outline {
        self.outline.get_or_init(|| match self.known {
            None => Outline::of(text, |at| Effect::of(text[at])),
            Some((facts, numbers)) => {
                facts.effects.with((text, numbers), Effect::of, |of| Outline::of(text, of))
            }
        })
    }
}

/// A text, and its form.
pub type Side<'t> = (&'t [&'t [u8]], &'t Shape<'t>);
