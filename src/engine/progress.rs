//! How long work tells how far it is. The engine never prints; a caller that
//! wants to show something gives an implementation.

/// Something that happened in long work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Work begins, or goes over to its next part.
    Begin(&'a str),
    /// The part that began last is so far: done, of how many (0: not known).
    At(u64, u64),
    /// Nothing happens until another process is done.
    Waiting(&'a str),
    /// Something was found that a person should know.
    Note(&'a str),
    /// The part that began last is over.
    End,
}

/// Takes what long work tells.
pub trait Progress {
    /// Something happened. Called often; it should cost little.
    fn tell(&self, event: Event<'_>);
}

/// Takes it and tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn tell(&self, _: Event<'_>) {}
}
