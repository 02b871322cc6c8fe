//! A patch file read line by line, with the place of each line at hand.

use super::refusal::Place;

/// The lines not read yet. Cheap to copy, for looking ahead.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line: 1 }
    }

    /// Passes over bytes of the current line.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.bytes.len());
    }

    /// The next line with its line end, not taken.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        match rest.iter().position(|&b| b == b'\n') {
            Some(end) => Some(&rest[..=end]),
            None if rest.is_empty() => None,
            None => Some(rest),
        }
    }

    /// The line after the next one, not taken.
    pub(super) fn peek_second(&self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        ahead.take();
        ahead.peek()
    }

    /// Takes the next line.
    pub(super) fn take(&mut self) -> Option<&'a [u8]> {
        let line = self.peek()?;
        self.at += line.len();
        self.line += usize::from(line.ends_with(b"\n"));
        Some(line)
    }

    /// Where the next line begins.
    pub(super) fn place(&self) -> Place {
        Place { line: self.line, byte: self.at }
    }

    /// The bytes from an earlier place up to here.
    pub(super) fn since(&self, byte: usize) -> &'a [u8] {
        &self.bytes[byte..self.at]
    }
}

/// The line without its line end, LF or CRLF.
pub(super) fn chomp(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether nothing but a line end is there.
pub(super) fn is_blank(line: &[u8]) -> bool {
    chomp(line).is_empty()
}
