//! What lines do on their own, read once for all texts that have them.

use std::sync::{Mutex, PoisonError};

use super::effect::Effect;
use super::script::Layout;
use crate::merge::Number;

/// What is known of lines, by their numbers.
#[derive(Default)]
pub struct Facts {
    /// What each does to the braces around it.
    pub(super) effects: Memo<Effect>,
    /// What each leaves open where functions are given by indentation.
    pub(super) layouts: Memo<Layout>,
}

/// A fact of each line, by its number.
pub(super) struct Memo<T>(Mutex<Vec<Option<T>>>);

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Copy> Memo<T> {
    /// Does `work` with the facts of a text's lines, each by its place there;
    /// `read` reads those that are not known.
    pub fn with<R>(
        &self,
        (text, numbers): (&[&[u8]], &[Number]),
        read: impl Fn(&[u8]) -> T,
        work: impl FnOnce(&mut dyn FnMut(usize) -> T) -> R,
    ) -> R {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = numbers.iter().map(|n| n.0 as usize + 1).max().unwrap_or_default();
        let length = known.len().max(most);
        known.resize(length, None);
        work(&mut |at| *known[numbers[at].0 as usize].get_or_insert_with(|| read(text[at])))
    }
}
