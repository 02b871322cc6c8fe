//! The engine's progress on the terminal.

use std::cell::RefCell;

use indicatif::ProgressBar;
use mlx_overlay_engine::progress::{Event, Progress};
use mlx_overlay_engine::publish::{self, Step};

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
            Event::Note(what) => ui.warn(what),
            Event::End => *bar = None,
        }
    }
}

/// Shows how far the writing of a tree is; told from several threads.
pub struct Writing {
    bar: ProgressBar,
    quiet: bool,
}

impl Writing {
    /// Nothing is written yet.
    #[must_use]
    pub fn new(ui: &Ui) -> Self {
        Self { bar: ui.progress("writing"), quiet: ui.quiet() }
    }

    /// Something is about to happen.
    pub fn tell(&self, event: publish::Event<'_>) {
        match event {
            publish::Event::Planned { write, keep } => self.bar.set_length((write + keep) as u64),
            publish::Event::Step(Step::Write | Step::Link, _) => self.bar.inc(1),
            publish::Event::Step(..) => {}
            publish::Event::Mending => self.note("an earlier run was broken off here; mending"),
            publish::Event::Waiting { holder } => {
                let holder = holder.map(|h| format!(" ({h})")).unwrap_or_default();
                self.note(&format!("waiting for another process{holder} that writes here"));
            }
        }
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }
}
