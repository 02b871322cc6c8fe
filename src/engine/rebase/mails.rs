//! A patch put together again, mail by mail.

use crate::patch::commit_begins;

/// The patch so far. A mail that had a diff and has none left ends with its message: what
/// follows it, as the diffstat and the signature do, git would read as a broken diff or as
/// part of the message.
#[derive(Default)]
pub(super) struct Mails {
    out: Vec<u8>,
    /// Where the message of the last mail ends, until a diff follows it.
    message: Option<usize>,
    /// The last mail has lost a diff.
    lost: bool,
    /// There is a diff.
    pub(super) changes: bool,
}

impl Mails {
    /// Adds what stands before a file patch, or after the last.
    pub(super) fn prose(&mut self, text: &[u8]) {
        let mut begins = commit_begins(text);
        let Some(first) = begins.next() else { return self.out.extend_from_slice(text) };
        let last = begins.last().unwrap_or(first);
        self.out.extend_from_slice(&text[..first]);
        self.close();
        self.message = Some(self.out.len() + last - first + message_len(&text[last..]));
        self.out.extend_from_slice(&text[first..]);
    }

    /// Adds what is left of a file patch.
    pub(super) fn diff(&mut self, diff: &[u8]) {
        self.lost |= diff.is_empty();
        if !diff.is_empty() {
            self.message = None;
            self.changes = true;
        }
        self.out.extend_from_slice(diff);
    }

    /// Ends the last mail.
    fn close(&mut self) {
        if let Some(end) = self.message.take().filter(|_| self.lost) {
            self.out.truncate(end);
        }
        self.lost = false;
    }

    /// The whole patch.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.close();
        self.out
    }
}

/// How much of a mail is its message, as `git am` reads it.
fn message_len(mail: &[u8]) -> usize {
    let begins_diff = |line: &&[u8]| match line.strip_prefix(b"---") {
        Some([b' ', first, ..]) if !first.is_ascii_whitespace() => true,
        Some(rest) => rest.trim_ascii().is_empty(),
        None => line.starts_with(b"diff -") || line.starts_with(b"Index: "),
    };
    mail.split_inclusive(|b| *b == b'\n')
        .take_while(|line| !begins_diff(line))
        .map(<[u8]>::len)
        .sum()
}
