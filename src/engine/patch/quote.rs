//! Names as patches write them: plain, or C-quoted as git and GNU diff do.

/// Reads a `"…"` name at the start of `text`; gives its bytes and what follows
/// the closing quote. Nothing where the quoting is broken.
pub(super) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (&escape, tail) = rest.split_first()?;
                rest = tail;
                name.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => escape,
                    b'0'..=b'3' => {
                        let digits = rest.get(..2)?;
                        rest = &rest[2..];
                        digits.iter().try_fold(escape - b'0', |n, d| {
                            matches!(d, b'0'..=b'7').then(|| n * 8 + (d - b'0'))
                        })?
                    }
                    _ => return None,
                });
            }
            byte => name.push(byte),
        }
    }
}

/// A name as git writes it: plain, or between quotes where it holds a quote, a backslash,
/// a control character or a byte that is no ASCII.
pub(crate) fn quoted(name: &str) -> String {
    let plain = |b: u8| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\');
    if name.bytes().all(plain) {
        return name.to_owned();
    }
    let mut out = String::from("\"");
    for byte in name.bytes() {
        match byte {
            7 => out.push_str("\\a"),
            8 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            11 => out.push_str("\\v"),
            12 => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            byte if plain(byte) => out.push(char::from(byte)),
            byte => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}

/// A name and the rest of its line.
fn name_at(text: &[u8], end: usize) -> Option<(Vec<u8>, &[u8])> {
    if text.starts_with(b"\"") { unquote(text) } else { Some((text[..end].to_vec(), &text[end..])) }
}

/// Every way to read `OLD NEW`, the two names of a `diff --git` line: names
/// with spaces need no quotes there, so there may be several.
pub(super) fn pairs(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let whole = |text: &[u8]| match name_at(text, text.len()) {
        Some((name, [])) if !name.is_empty() => Some(name),
        _ => None,
    };
    let mut pairs = Vec::new();
    if text.starts_with(b"\"") {
        if let Some((old, rest)) = unquote(text)
            && let Some(new) = rest.strip_prefix(b" ").and_then(whole)
            && !old.is_empty()
        {
            pairs.push((old, new));
        }
        return pairs;
    }
    for (at, _) in text.iter().enumerate().filter(|&(at, b)| *b == b' ' && at > 0) {
        if let Some(new) = whole(&text[at + 1..]) {
            pairs.push((text[..at].to_vec(), new));
        }
    }
    pairs
}

/// What a `---` or `+++` line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// The name; nothing for `/dev/null`.
    pub name: Option<Vec<u8>>,
    /// The time says that the file is not there: the epoch, or svn's
    /// `(nonexistent)`.
    pub absent: bool,
}

/// Reads what follows `--- ` or `+++ `. `plain` headers (no `diff --git`) may
/// carry a time; both may end the name with a tab. Nothing where the quoting
/// is broken or the name is empty.
pub(super) fn named(text: &[u8], plain: Plain) -> Option<Named> {
    let (name, stamp) = if text.starts_with(b"\"") {
        let (name, stamp) = unquote(text)?;
        if !matches!(stamp.first(), None | Some(b'\t' | b' ')) {
            return None;
        }
        (name, stamp)
    } else {
        let end = match (text.iter().position(|b| *b == b'\t'), plain) {
            (Some(tab), _) => tab,
            (None, Plain::Yes) => spaced_time(text).unwrap_or(text.len()),
            (None, Plain::No) => text.len(),
        };
        (text[..end].to_vec(), &text[end..])
    };
    let stamp = stamp.trim_ascii();
    let absent = plain == Plain::Yes && (is_epoch(stamp) || stamp == b"(nonexistent)");
    if name.trim_ascii_end() == b"/dev/null" {
        return Some(Named { name: None, absent: true });
    }
    (!name.is_empty()).then_some(Named { name: Some(name), absent })
}

/// Whether a header stands without a `diff --git` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    Yes,
    No,
}

/// Whether `text` has the shape of `pattern`, in which `0` stands for a digit.
fn shaped(text: &[u8], pattern: &[u8]) -> bool {
    text.len() == pattern.len()
        && text.iter().zip(pattern).all(|(b, p)| match p {
            b'0' => b.is_ascii_digit(),
            p => b == p,
        })
}

/// Where the blanks before a time begin, in a name that ends with one: tabs
/// are lost where a patch was pasted.
fn spaced_time(text: &[u8]) -> Option<usize> {
    let mut rest = text.trim_ascii_end();
    if let Some(at) = rest.len().checked_sub(6)
        && (shaped(&rest[at..], b" +0000") || shaped(&rest[at..], b" -0000"))
    {
        rest = rest[..at].trim_ascii_end();
    }
    let fraction = rest.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let dot = rest.len() - fraction;
    if dot > 0 && rest[dot - 1] == b'.' {
        rest = &rest[..dot - 1];
    }
    let at = rest.len().checked_sub(b" 0000-00-00 00:00:00".len())?;
    if !shaped(&rest[at..], b" 0000-00-00 00:00:00") {
        return None;
    }
    let name = rest[..at].trim_ascii_end();
    (!name.is_empty()).then_some(name.len())
}

/// Whether a time is the Unix epoch, in whatever zone: how `diff -N` writes
/// a file that is not there.
fn is_epoch(stamp: &[u8]) -> bool {
    let Ok(stamp) = std::str::from_utf8(stamp) else { return false };
    let mut parts = stamp.split_ascii_whitespace();
    let (Some(date), Some(time), Some(zone), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let zone = zone.replace(':', "");
    if !shaped(clock.as_bytes(), b"00:00:00")
        || fraction.bytes().any(|b| b != b'0')
        || !(shaped(zone.as_bytes(), b"+0000") || shaped(zone.as_bytes(), b"-0000"))
    {
        return false;
    }
    let two = |text: &str, at: usize| {
        text[at..at + 2].bytes().fold(0_i32, |n, d| n * 10 + i32::from(d - b'0'))
    };
    let days = match date {
        "1970-01-01" => 0,
        "1969-12-31" => -1,
        _ => return false,
    };
    let offset = two(&zone, 1) * 60 + two(&zone, 3);
    let offset = if zone.starts_with('-') { -offset } else { offset };
    let minutes = days * 24 * 60 + two(clock, 0) * 60 + two(clock, 3) - offset;
    minutes == 0 && two(clock, 6) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names() {
        assert_eq!(unquote(br#""h\303\251\t\"\\" x"#), Some(("hé\t\"\\".into(), &b" x"[..])));
        for broken in [&br#""abc"#[..], br#""\"#, br#""\9""#, br#""\30""#, br#""\308""#, b"abc"] {
            assert_eq!(unquote(broken), None, "{}", String::from_utf8_lossy(broken));
        }
        assert_eq!(unquote(br#""\777""#), None, "no byte");
    }

    #[test]
    fn names_are_quoted_as_git_quotes_them_and_read_back() {
        for (name, written) in [
            ("a/b c.h", "a/b c.h"),
            ("a/t\tab", r#""a/t\tab""#),
            ("a/qu\"o\\te", r#""a/qu\"o\\te""#),
            ("a/hé\u{7f}", r#""a/h\303\251\177""#),
            ("a/\u{1}\n\r\u{7}\u{8}\u{b}\u{c}", r#""a/\001\n\r\a\b\v\f""#),
        ] {
            assert_eq!(quoted(name), written);
            let read = name_at(written.as_bytes(), written.len());
            assert_eq!(read, Some((name.into(), &b""[..])), "{written}");
        }
    }

    #[test]
    fn times_that_say_absent() {
        for (stamp, epoch) in [
            ("1970-01-01 00:00:00.000000000 +0000", true),
            ("1970-01-01 01:00:00.000000000 +0100", true),
            ("1969-12-31 19:00:00.000000000 -0500", true),
            ("1970-01-01 05:30:00 +05:30", true),
            ("1970-01-01 00:00:01.000000000 +0000", false),
            ("1970-01-01 00:00:00.000000001 +0000", false),
            ("2024-04-02 13:32:43.427214939 +0100", false),
            ("", false),
            ("1970-01-01 é0:00:00 +0000", false),
        ] {
            assert_eq!(is_epoch(stamp.as_bytes()), epoch, "{stamp}");
        }
    }

    #[test]
    fn names_end_at_a_tab_or_a_pasted_time() {
        let name = |text: &str, plain| {
            named(text.as_bytes(), plain)
                .and_then(|n| n.name)
                .map(|n| String::from_utf8(n).unwrap())
        };
        assert_eq!(name("a/b c\t", Plain::No).as_deref(), Some("a/b c"));
        assert_eq!(name("a/b c\t2024-04-02 13:32:43", Plain::Yes).as_deref(), Some("a/b c"));
        assert_eq!(name("b c  2024-04-02 13:32:43.427 +0100", Plain::Yes).as_deref(), Some("b c"));
        assert_eq!(name("a/x 2024-04-02 13:32:43", Plain::No).as_deref(), {
            Some("a/x 2024-04-02 13:32:43")
        });
        assert_eq!(name("/dev/null", Plain::Yes), None);
        assert_eq!(named(b"", Plain::Yes), None);
        assert_eq!(named(b"\"a\"b", Plain::No), None);
    }
}
