//! `GIT binary patch`: base85 lines around zlib, whole bytes or a git delta.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::hunk::{number, show};
use super::lines::{Lines, chomp, is_blank};
use super::refusal::{Reason, Refusal};
use super::{BinaryChange, BinaryPatch, Body, FilePatch, Operation};

const AGAIN: &str = "make the patch again with `git diff --binary`, or get it again";
const OTHER_BASE: &str = "apply it to the version it was made for, or make it again from this one";

/// Takes a section whose `GIT binary patch` line is next.
pub(super) fn take(lines: &mut Lines<'_>) -> Result<BinaryPatch, Refusal> {
    let begin = lines.place();
    lines.take();
    let Some(forward) = take_change(lines)? else {
        return Err(Refusal::malformed(
            lines.place(),
            "`literal` or `delta` with a size must follow `GIT binary patch`",
            AGAIN,
        ));
    };
    let reverse = take_change(lines)?;
    Ok(BinaryPatch { raw: lines.since(begin.byte).to_vec(), forward, reverse })
}

/// One `literal N` or `delta N` block with the blank line that ends it.
fn take_change(lines: &mut Lines<'_>) -> Result<Option<BinaryChange>, Refusal> {
    let begin = lines.place();
    let Some(head) = lines.peek().map(chomp) else { return Ok(None) };
    let (size, whole) = match (head.strip_prefix(b"literal "), head.strip_prefix(b"delta ")) {
        (Some(size), _) => (size, true),
        (_, Some(size)) => (size, false),
        _ => return Ok(None),
    };
    let Some((size, [])) = number(size) else {
        return Err(Refusal::malformed(
            begin,
            format!("`{}` has no size the tool can take", show(head)),
            AGAIN,
        ));
    };
    lines.take();
    let mut packed = Vec::new();
    loop {
        let place = lines.place();
        let cut =
            || Refusal::malformed(place, "the patch ends inside a binary change", "get it again");
        let line = lines.take().filter(|l| l.ends_with(b"\n")).ok_or_else(cut)?;
        if is_blank(line) {
            break;
        }
        if !decode_line(chomp(line), &mut packed) {
            return Err(Refusal::malformed(place, "a broken line of binary data", AGAIN));
        }
    }
    let Some(bytes) = inflate(&packed, size) else {
        return Err(Refusal::malformed(
            begin,
            format!("the binary data do not unpack to the {size} bytes stated"),
            AGAIN,
        ));
    };
    Ok(Some(if whole { BinaryChange::Literal(bytes) } else { BinaryChange::Delta(bytes) }))
}

/// Appends the bytes of one line: its length as a letter, then groups of five
/// digits that hold four bytes each.
fn decode_line(line: &[u8], out: &mut Vec<u8>) -> bool {
    let Some((&letter, digits)) = line.split_first() else { return false };
    let len = match letter {
        b'A'..=b'Z' => usize::from(letter - b'A') + 1,
        b'a'..=b'z' => usize::from(letter - b'a') + 27,
        _ => return false,
    };
    if digits.len() != len.div_ceil(4) * 5 {
        return false;
    }
    let end = out.len() + len;
    for group in digits.chunks(5) {
        let value = group.iter().try_fold(0_u32, |n, digit| {
            let digit = ALPHABET.iter().position(|d| d == digit)?;
            n.checked_mul(85)?.checked_add(u32::try_from(digit).ok()?)
        });
        let Some(value) = value else { return false };
        out.extend_from_slice(&value.to_be_bytes());
    }
    out.truncate(end);
    true
}

const ALPHABET: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// The change of some bytes to others as git prints it, the whole of both.
#[must_use]
pub fn print(old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = b"GIT binary patch\n".to_vec();
    for bytes in [new, old] {
        out.extend(format!("literal {}\n", bytes.len()).into_bytes());
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
        let packed = packer.write_all(bytes).and_then(|()| packer.finish());
        for line in packed.expect("memory takes all that is written").chunks(LINE) {
            print_line(line, &mut out);
        }
        out.push(b'\n');
    }
    out
}

/// The most bytes that a line holds.
const LINE: usize = 52;

/// Appends a line: the length of its bytes as a letter, then five digits for each four.
fn print_line(bytes: &[u8], out: &mut Vec<u8>) {
    let letter = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[bytes.len() - 1];
    out.push(letter);
    for group in bytes.chunks(4) {
        let mut four = [0; 4];
        four[..group.len()].copy_from_slice(group);
        let mut value = u32::from_be_bytes(four) as usize;
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = ALPHABET[value % 85];
            value /= 85;
        }
        out.extend(digits);
    }
    out.push(b'\n');
}

/// Unpacks to exactly `size` bytes, never holding more.
fn inflate(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(size).ok()?.checked_add(1)?;
    ZlibDecoder::new(packed).take(limit).read_to_end(&mut bytes).ok()?;
    (bytes.len() == size).then_some(bytes)
}

/// The bytes after a binary file patch, given those before (`None` where the
/// file is new).
///
/// The base is proven before it is used, by the `index` line where it holds a
/// blob id, else by the reverse change; and so is the result.
///
/// # Errors
/// [`Reason::Binary`] where the patch carries no data, [`Reason::BinaryBase`]
/// where the base or the result is another one or nothing proves it.
pub fn apply(file: &FilePatch, base: Option<&[u8]>) -> Result<Vec<u8>, Refusal> {
    let refuse = |reason, message: String, remedy: &str| Refusal {
        line: Some(file.line),
        byte: Some(file.byte),
        ..Refusal::new(reason, message, remedy)
    };
    let Body::Binary(patch) = &file.body else {
        return Err(refuse(
            Reason::Binary,
            "the patch says that the binary file changes, and carries no data".into(),
            "make it again with `git diff --binary`",
        ));
    };
    let base_bytes = base.unwrap_or_default();
    let ids = file.index.as_ref().filter(|(old, new)| is_whole(old) && is_whole(new));
    if let Some((old, _)) = ids
        && !names_bytes(old, base)
    {
        return Err(refuse(
            Reason::BinaryBase,
            format!("the binary change is made for blob {old}, which this file is not"),
            OTHER_BASE,
        ));
    }
    let Some(bytes) = patch.forward.apply(base_bytes) else {
        return Err(refuse(
            Reason::BinaryBase,
            "the binary delta does not fit the file".into(),
            OTHER_BASE,
        ));
    };
    let gone = file.operation == Operation::Delete;
    let proven = match (ids, &patch.reverse) {
        (Some((_, new)), _) => {
            names_bytes(new, (!gone).then_some(&bytes[..])) && (!gone || bytes.is_empty())
        }
        (None, Some(reverse)) => reverse.apply(&bytes).is_some_and(|back| back == base_bytes),
        (None, None) => base.is_none() && matches!(patch.forward, BinaryChange::Literal(_)),
    };
    if !proven {
        return Err(refuse(
            Reason::BinaryBase,
            "nothing proves that the binary change belongs to this file: no full `index` line \
             and no reverse change fits"
                .into(),
            AGAIN,
        ));
    }
    Ok(bytes)
}

fn is_whole(id: &str) -> bool {
    matches!(id.len(), 40 | 64)
}

/// Whether a whole blob id, SHA-1 or SHA-256, is that of the bytes; the id of
/// zeros stands for no file.
fn names_bytes(id: &str, bytes: Option<&[u8]>) -> bool {
    let Some(bytes) = bytes else { return id.bytes().all(|b| b == b'0') };
    let head = format!("blob {}\0", bytes.len());
    let hex = |hash: &[u8]| hash.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let own = if id.len() == 40 {
        hex(&Sha1::new().chain_update(head).chain_update(bytes).finalize())
    } else {
        hex(&Sha256::new().chain_update(head).chain_update(bytes).finalize())
    };
    own.eq_ignore_ascii_case(id)
}

impl BinaryChange {
    /// The bytes this makes of `base`; nothing where a delta does not fit it.
    #[must_use]
    pub fn apply(&self, base: &[u8]) -> Option<Vec<u8>> {
        match self {
            BinaryChange::Literal(bytes) => Some(bytes.clone()),
            BinaryChange::Delta(delta) => apply_delta(delta, base),
        }
    }
}

/// Git's pack delta: two sizes, then copies from the base and insertions.
fn apply_delta(delta: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let mut rest = delta;
    if size(&mut rest)? != base.len() {
        return None;
    }
    let end = size(&mut rest)?;
    let mut out = Vec::new();
    while let Some(op) = byte(&mut rest) {
        if op & 0x80 != 0 {
            let mut field = |bits: u8, count: u32| {
                (0..count).try_fold(0_usize, |n, i| {
                    let there = bits >> i & 1 == 1;
                    Some(n | if there { usize::from(byte(&mut rest)?) << (8 * i) } else { 0 })
                })
            };
            let from = field(op, 4)?;
            let len = match field(op >> 4, 3)? {
                0 => 0x10000,
                len => len,
            };
            out.extend_from_slice(base.get(from..from.checked_add(len)?)?);
        } else {
            let len = usize::from(op);
            if len == 0 || len > rest.len() {
                return None;
            }
            out.extend_from_slice(&rest[..len]);
            rest = &rest[len..];
        }
        // A hostile delta may copy without end; the size it states holds it.
        if out.len() > end {
            return None;
        }
    }
    (out.len() == end).then_some(out)
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (&first, tail) = rest.split_first()?;
    *rest = tail;
    Some(first)
}

/// A little-endian number of seven bits a byte.
fn size(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    for shift in (0..usize::BITS - 7).step_by(7) {
        let next = byte(rest)?;
        value |= usize::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::patch::parse;
    use crate::snapshot::ObjectId;

    proptest! {
        #[test]
        fn what_is_printed_gives_the_new_bytes(
            old in proptest::collection::vec(any::<u8>(), 0..400),
            new in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            prop_assume!(old != new);
            let [then, now] = [&old, &new].map(|bytes| ObjectId::of_blob(bytes));
            let head = format!("diff --git a/x b/x\nindex {then}..{now} 100644\n");
            let text = [head.as_bytes(), &print(&old, &new)].concat();
            let parsed = parse(&text).expect("it parses");
            prop_assert_eq!(&apply(&parsed.files[0], Some(&old)).expect("it fits"), &new);
            let Body::Binary(patch) = &parsed.files[0].body else { panic!("it is binary") };
            let back = patch.reverse.as_ref().and_then(|reverse| reverse.apply(&new));
            prop_assert_eq!(back, Some(old));
        }
    }
}
