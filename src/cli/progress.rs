//! The engine's progress on the terminal.

use std::cell::RefCell;

use indicatif::ProgressBar;
use mlx_overlay_engine::progress::{Event, Progress};

use super::ui::Ui;

/// Shows what long work tells: a bar where a person looks on, and a line where
/// another process is waited for.
pub struct Teller<'u>(RefCell<(&'u mut Ui, Option<ProgressBar>)>);

impl<'u> Teller<'u> {
    /// A teller that shows nothing yet.
    #[must_use]
    pub fn new(ui: &'u mut Ui) -> Self {
        Self(RefCell::new((ui, None)))
    }
}

impl Progress for Teller<'_> {
    fn tell(&self, event: Event<'_>) {
        let (ui, bar) = &mut *self.0.borrow_mut();
        match event {
            Event::Begin(what) => *bar = Some(ui.progress(what)),
            Event::At(done, total) => {
                if let Some(bar) = bar {
                    bar.set_length(total);
                    bar.set_position(done);
                }
            }
            Event::Waiting(what) => ui.note(what),
            Event::End => *bar = None,
        }
    }
}
