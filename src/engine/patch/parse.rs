//! Bytes to a [`Patch`].
//!
//! Prose is kept and passed over; whatever looks like a part of a change and
//! has no place in one is refused, so that nothing is dropped without a word.

use super::header::{self, Header};
use super::hunk::{self, show};
use super::lines::{Lines, chomp, is_blank};
use super::refusal::{Place, Reason, Refusal};
use super::{Body, FilePatch, HeaderNames, HeaderStyle, Hunk, Operation, Patch, Range, binary};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const CUT: &str = "the patch was damaged or cut off; get it again";

/// Reads a patch file: git's and plain unified diffs, in mails or with other
/// prose around them.
///
/// An empty file is an empty patch (a quilt series may hold one; see
/// [`Patch::require_files`]). `parse(bytes)?.to_bytes()` gives the bytes back.
///
/// # Errors
/// Says what is malformed or encoded, at which line and byte;
/// [`Reason::NoPatch`] for text without any change.
pub fn parse(bytes: &[u8]) -> Result<Patch, Refusal> {
    refuse_packed(bytes)?;
    let mut lines = Lines::new(bytes);
    if bytes.starts_with(BYTE_ORDER_MARK) {
        lines.skip(3);
    }
    let mut files: Vec<FilePatch> = Vec::new();
    let mut prose = Prose::default();
    let mut prose_from = 0;
    while let Some(line) = lines.peek() {
        let here = lines.place();
        let Some(kind) = start_of(&lines, line)? else {
            prose.see(line, here);
            lines.take();
            continue;
        };
        prose.check_encoding()?;
        let text = lines_before(&lines, bytes, prose_from);
        files.push(take_file(&mut lines, kind, text, &prose.boundaries)?);
        prose_from = lines.place().byte;
    }
    prose.check_encoding()?;
    let blank = bytes.trim_ascii().is_empty();
    if files.is_empty() && !blank {
        return Err(Refusal::new(
            Reason::NoPatch,
            "the file holds text, and no change of any file",
            "name a unified diff, as `git diff` or `diff -u` write it",
        )
        .at(Place { line: 1, byte: 0 }));
    }
    Ok(Patch { files, trailer: bytes[prose_from..].to_vec() })
}

fn lines_before<'a>(lines: &Lines<'a>, bytes: &'a [u8], from: usize) -> &'a [u8] {
    &bytes[from..lines.place().byte]
}

/// Refuses what is no text, by its first bytes.
fn refuse_packed(bytes: &[u8]) -> Result<(), Refusal> {
    let kinds: [(&[u8], &str, &str); 7] = [
        (b"\xff\xfe", "UTF-16", "save it as UTF-8 (PowerShell: `git diff --output=FILE`)"),
        (b"\xfe\xff", "UTF-16", "save it as UTF-8"),
        (b"\x1f\x8b", "gzip", "unpack it first (`gzip -d`)"),
        (b"BZh", "bzip2", "unpack it first (`bzip2 -d`)"),
        (b"\xfd7zXZ", "xz", "unpack it first (`xz -d`)"),
        (b"\x28\xb5\x2f\xfd", "zstd", "unpack it first (`zstd -d`)"),
        (b"PK\x03\x04", "zip", "unpack it first"),
    ];
    match kinds.into_iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        Some((_, kind, remedy)) => Err(Refusal::new(
            Reason::Encoded,
            format!("the patch is {kind}, not plain text"),
            remedy,
        )
        .at(Place { line: 1, byte: 0 })),
        None => Ok(()),
    }
}

/// What prose tells of the text after it.
#[derive(Default)]
struct Prose {
    /// The last `Content-Transfer-Encoding` that packs text, not yet replaced.
    packed: Option<(Place, String)>,
    /// The `boundary` of each multipart mail.
    boundaries: Vec<Vec<u8>>,
}

impl Prose {
    fn see(&mut self, line: &[u8], place: Place) {
        let text = String::from_utf8_lossy(chomp(line)).to_ascii_lowercase();
        if let Some(encoding) = text.strip_prefix("content-transfer-encoding:") {
            let encoding = encoding.trim().trim_matches('"');
            let packs = matches!(encoding, "quoted-printable" | "base64");
            self.packed = packs.then(|| (place, encoding.to_owned()));
        }
        if let Some(at) = text.find("boundary=") {
            // ASCII case folding keeps offsets, unless the line was not UTF-8.
            let value = chomp(line).get(at + "boundary=".len()..).unwrap_or_default();
            let quoted = value.strip_prefix(b"\"");
            let value = quoted.unwrap_or(value);
            let end = value.iter().position(|b| match quoted {
                Some(_) => *b == b'"',
                None => *b == b';' || b.is_ascii_whitespace(),
            });
            let value = &value[..end.unwrap_or(value.len())];
            if !value.is_empty() {
                self.boundaries.push(value.to_vec());
            }
        }
    }

    fn check_encoding(&self) -> Result<(), Refusal> {
        match &self.packed {
            Some((place, encoding)) => Err(Refusal::new(
                Reason::Encoded,
                format!("a part of the mail is {encoding}: its text is not the patch's"),
                "save the decoded text (`git mailinfo` decodes a mail), or ask for the patch as an \
                 attachment in plain text",
            )
            .at(*place)),
            None => Ok(()),
        }
    }
}

/// How a file patch begins.
#[derive(Clone, Copy)]
enum Start {
    Git,
    Plain,
    BinaryNotice,
}

/// Whether a file patch begins at the next line; refuses parts of one that
/// stand alone.
fn start_of(lines: &Lines<'_>, line: &[u8]) -> Result<Option<Start>, Refusal> {
    let malformed =
        |message: &str, remedy: &str| Err(Refusal::malformed(lines.place(), message, remedy));
    // Most prose is told by its first byte.
    if !matches!(line[0], b'd' | b'-' | b'+' | b'@' | b'*' | b'B' | b'G' | b'o' | b'n' | 0xef) {
        return Ok(None);
    }
    let marked = line.strip_prefix(BYTE_ORDER_MARK);
    if marked.is_some_and(|rest| rest.starts_with(b"diff --git ") || rest.starts_with(b"--- ")) {
        return malformed(
            "a byte order mark in the middle: files of patches were joined",
            "take the mark out",
        );
    }
    let is_mode = |key: &&[u8]| {
        let mode = line.strip_prefix(*key).map(chomp);
        mode.is_some_and(|m| m.len() == 6 && m.iter().all(|b| matches!(b, b'0'..=b'7')))
    };
    let keys: [&[u8]; 4] = [b"old mode ", b"new mode ", b"new file mode ", b"deleted file mode "];
    if keys.iter().any(is_mode) {
        return malformed("a mode that belongs to no file: its `diff --git` line is damaged", CUT);
    }
    let next = lines.peek_second();
    let before_hunk = next.is_none_or(|l| l.starts_with(b"@@ -"));
    if line.starts_with(b"diff --git ") {
        return Ok(Some(Start::Git));
    }
    if line.starts_with(b"--- ") {
        if next.is_some_and(|l| l.starts_with(b"+++ ")) {
            return Ok(Some(Start::Plain));
        }
        if before_hunk {
            return malformed("a `---` line without the `+++` line that must follow it", CUT);
        }
    }
    if line.starts_with(b"+++ ") && before_hunk {
        return malformed("a `+++` line without the `---` line that must stand before it", CUT);
    }
    if line.starts_with(b"@@ -") && line.get(4).is_some_and(u8::is_ascii_digit) {
        return malformed(
            "a hunk that belongs to no file: its header is missing, or a stray line stands before \
             it",
            "take the stray line out, or make the patch again",
        );
    }
    if line.starts_with(b"@@@ -")
        || line.starts_with(b"diff --cc ")
        || line.starts_with(b"diff --combined ")
    {
        return malformed(
            "a combined diff of a merge, which no tool can apply",
            "make a diff against one parent (`git diff PARENT MERGE`)",
        );
    }
    if line.starts_with(b"*** ") && next.is_some_and(|l| l.starts_with(b"--- ")) {
        return malformed("a context diff", "make a unified diff (`diff -u`)");
    }
    if line.starts_with(b"GIT binary patch") && is_blank(&line[16..]) {
        return malformed("a binary change that belongs to no file", CUT);
    }
    let notice = line.starts_with(b"Binary files ") && chomp(line).ends_with(b" differ");
    Ok(notice.then_some(Start::BinaryNotice))
}

fn take_file(
    lines: &mut Lines<'_>,
    start: Start,
    prose: &[u8],
    boundaries: &[Vec<u8>],
) -> Result<FilePatch, Refusal> {
    let begin = lines.place();
    let header = match start {
        Start::Git => header::take_git(lines)?,
        Start::Plain => header::take_plain(lines)?,
        Start::BinaryNotice => return Ok(take_notice(lines, prose)),
    };
    let raw = lines.since(begin.byte).to_vec();
    let next = lines.peek().unwrap_or_default();
    let mut bytes = Vec::new();
    let body = if header.pair {
        Body::Text(take_hunks(lines, &mut bytes)?)
    } else if next.starts_with(b"GIT binary patch") {
        Body::Binary(binary::take(lines)?)
    } else if next.starts_with(b"Binary files ") && chomp(next).ends_with(b" differ") {
        Body::BinaryWithoutData(lines.take().unwrap_or_default().to_vec())
    } else {
        if next.starts_with(b"@@ -") {
            return Err(Refusal::malformed(
                lines.place(),
                "a hunk whose header has no `---` and `+++` lines",
                CUT,
            ));
        }
        Body::Text(Vec::new())
    };
    let operation = settle(&header, &body, lines, &bytes)?;
    after_file(lines, boundaries)?;
    Ok(FilePatch {
        prose: prose.to_vec(),
        header: raw,
        line: header.begin.line,
        byte: header.begin.byte,
        old_name: header.old_name.filter(|_| operation != Operation::Create),
        new_name: header.new_name.filter(|_| operation != Operation::Delete),
        names: header.names,
        operation,
        old_mode: header.old_mode,
        new_mode: header.new_mode,
        index: header.index,
        body,
    })
}

fn take_hunks(lines: &mut Lines<'_>, bytes: &mut Vec<usize>) -> Result<Vec<Hunk>, Refusal> {
    let mut hunks = Vec::new();
    while lines.peek().is_some_and(|l| l.starts_with(b"@@ -")) {
        bytes.push(lines.place().byte);
        hunks.push(hunk::take(lines)?);
    }
    hunk::check_order(&hunks, bytes)?;
    Ok(hunks)
}

/// `Binary files a and b differ`, alone, as `diff -r` writes it.
fn take_notice(lines: &mut Lines<'_>, prose: &[u8]) -> FilePatch {
    let begin = lines.place();
    let line = lines.take().unwrap_or_default();
    FilePatch {
        prose: prose.to_vec(),
        header: Vec::new(),
        line: begin.line,
        byte: begin.byte,
        names: HeaderNames { old: None, new: None, moved: None, style: HeaderStyle::Plain },
        old_name: None,
        new_name: None,
        operation: Operation::Modify,
        old_mode: None,
        new_mode: None,
        index: None,
        body: Body::BinaryWithoutData(line.to_vec()),
    }
}

/// Checks that header and body agree, and says what becomes of the file.
fn settle(
    header: &Header,
    body: &Body,
    lines: &Lines<'_>,
    bytes: &[usize],
) -> Result<Operation, Refusal> {
    let malformed = |message: &str| Err(Refusal::malformed(header.begin, message, CUT));
    let Body::Text(hunks) = body else { return Ok(header.operation) };
    if hunks.is_empty() {
        let plain = header.names.style == HeaderStyle::Plain;
        let whole = if plain { svn_properties_follow(lines) } else { says_all(header) };
        if whole && (plain || !header.pair) {
            return Ok(header.operation);
        }
        let (announced, wanted) = match header.pair {
            true => ("hunks", "begins no hunk, and the header before it announces one"),
            false => ("change", "is no line of the `diff --git` header before it"),
        };
        return match unknown_line(lines)? {
            Some(line) => {
                let message = format!("`{}` {wanted}", show(line));
                Err(Refusal::malformed(lines.place(), message, CUT))
            }
            None => malformed(&format!("a header without the {announced} it announces")),
        };
    }
    let all = |side: fn(&Hunk) -> Range| hunks.iter().all(|h| side(h).len == 0);
    let from_nothing = all(|h| h.old);
    let to_nothing = all(|h| h.new);
    let whole = |side: fn(&Hunk) -> Range| match hunks.as_slice() {
        [one] => side(one) == Range { start: 0, len: 0 },
        _ => false,
    };
    // A plain header tells a new or deleted file by its time alone; the hunk
    // has to bear it out, since a file may well be dated so.
    let operation = match header.operation {
        Operation::Modify if header.absent[0] && whole(|h| h.old) => Operation::Create,
        Operation::Modify if header.absent[1] && whole(|h| h.new) => Operation::Delete,
        stated => stated,
    };
    let at = Place { line: hunks[0].line, byte: bytes[0] };
    let contradiction = match operation {
        Operation::Create if !from_nothing => "the file is new, yet the hunk holds old lines",
        Operation::Delete if !to_nothing => "the file is deleted, yet the hunk leaves lines",
        Operation::Create | Operation::Delete if hunks.len() > 1 => {
            "a new or deleted file has one hunk, not several"
        }
        _ => return Ok(operation),
    };
    Err(Refusal::malformed(at, contradiction, "make the patch again with `git diff`"))
}

/// What stands directly below a header and is no line of one; nothing where the
/// patch ends there, or a blank line or another file follows.
fn unknown_line<'a>(lines: &Lines<'a>) -> Result<Option<&'a [u8]>, Refusal> {
    let Some(line) = lines.peek().filter(|line| !is_blank(line)) else { return Ok(None) };
    Ok(start_of(lines, line)?.is_none().then_some(line))
}

/// Whether a git header without a body is a whole change: a mode, a name, an
/// empty file. An `index` line with two ids announces more.
fn says_all(header: &Header) -> bool {
    const EMPTY: [&str; 2] = [
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    ];
    let is_empty = |id: &str| {
        let id = id.to_ascii_lowercase();
        id.bytes().all(|b| b == b'0') || EMPTY.iter().any(|empty| empty.starts_with(&id))
    };
    match (header.operation, &header.index) {
        (Operation::Create | Operation::Delete, Some((old, new))) => is_empty(old) && is_empty(new),
        (Operation::Modify, None) => header.old_mode != header.new_mode,
        (Operation::Modify, Some((old, new))) => old == new && header.old_mode != header.new_mode,
        (_, Some((old, new))) => old == new,
        (_, None) => true,
    }
}

/// Subversion writes a header without hunks where only properties change; they
/// carry nothing of the file's text.
fn svn_properties_follow(lines: &Lines<'_>) -> bool {
    let mut ahead = *lines;
    while ahead.peek().is_some_and(is_blank) {
        ahead.take();
    }
    ahead.peek().is_some_and(|l| l.starts_with(b"Property changes on: "))
}

/// Whether a line is a hunk's header, or one that lost a byte or got some before
/// it: a mark of byte order, white space, a sign of quoting.
fn is_like_hunk_header(line: &[u8]) -> bool {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let begin = line.iter().position(|b| !matches!(b, b' ' | b'\t' | b'>'));
    let line = &line[begin.unwrap_or(line.len())..];
    let says = |sign: u8| line.windows(3).any(|w| w[..2] == [b' ', sign] && w[2].is_ascii_digit());
    line.starts_with(b"@@") || line.starts_with(b"@") && says(b'-') && says(b'+')
}

/// Refuses what directly follows a file patch and looks like more of it. A
/// blank line does not make it prose: editors and mailers put such lines in.
fn after_file(lines: &Lines<'_>, boundaries: &[Vec<u8>]) -> Result<(), Refusal> {
    let mut ahead = *lines;
    let mut blanks = false;
    while ahead.peek().is_some_and(is_blank) {
        ahead.take();
        blanks = true;
    }
    if ahead.peek().is_some_and(|l| l.trim_ascii_end() == b"--") {
        // A mail's signature; what stands in it is checked all the same.
        ahead.take();
    }
    let Some(line) = ahead.peek() else { return Ok(()) };
    let text = chomp(line);
    let boundary = text.strip_prefix(b"--").is_some_and(|text| {
        boundaries
            .iter()
            .any(|b| text.strip_prefix(&b[..]).is_some_and(|t| t.is_empty() || t == b"--"))
    });
    let header =
        line.starts_with(b"--- ") && ahead.peek_second().is_some_and(|l| l.starts_with(b"+++ "));
    let body = matches!(line[0], b' ' | b'+' | b'-' | b'\\');
    if boundary || header || !(body || is_like_hunk_header(line)) {
        return start_of(&ahead, line).map(|_| ());
    }
    if !body {
        // A whole hunk header has words of its own; what follows is a damaged one.
        start_of(&ahead, line)?;
    }
    let place = ahead.place();
    let message = format!(
        "`{}` follows a finished hunk{} and belongs to none",
        show(line),
        if blanks { ", after a blank line," } else { "" }
    );
    Err(Refusal::malformed(
        place,
        message,
        "mend the counts of the hunk before it, take stray lines out, or make the patch again",
    ))
}

#[cfg(test)]
mod tests;
