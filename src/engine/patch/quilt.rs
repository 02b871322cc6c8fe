//! A quilt `series` file: which patches, in which order, at which strip level.

use std::collections::BTreeMap;

use super::lines::{Lines, chomp};
use super::refusal::{Place, Reason, Refusal};
use crate::snapshot::TreePath;

/// One patch of a quilt series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesEntry {
    /// The patch file, relative to the folder of the `series` file.
    pub name: TreePath,
    /// How many parts of each name to strip.
    pub strip: usize,
    /// 1-based line of the `series` file.
    pub line: usize,
}

/// Reads a quilt `series` file: a name a line, then `-pN` (1 without); `#`
/// begins a comment at the start of a line or after a blank.
///
/// # Errors
/// [`Reason::Series`] for an option that changes how a patch is applied
/// (`-R`, fuzz), a name given twice or that is not UTF-8;
/// [`Reason::PathEscape`] for a name outside the folder.
pub fn parse_series(bytes: &[u8]) -> Result<Vec<SeriesEntry>, Refusal> {
    let mut lines = Lines::new(bytes);
    let mut entries: Vec<SeriesEntry> = Vec::new();
    let mut seen: BTreeMap<TreePath, usize> = BTreeMap::new();
    loop {
        let place = lines.place();
        let Some(line) = lines.take() else { return Ok(entries) };
        let refuse =
            |message: String, remedy: &str| Refusal::new(Reason::Series, message, remedy).at(place);
        let Ok(text) = std::str::from_utf8(chomp(line)) else {
            return Err(refuse("the line is not UTF-8".into(), "name the patch in UTF-8"));
        };
        let mut words = text.split_ascii_whitespace().take_while(|word| !word.starts_with('#'));
        let Some(name) = words.next() else { continue };
        let name = TreePath::new(name).map_err(|why| {
            Refusal::new(
                Reason::PathEscape,
                format!("`{name}` names no patch of this folder: {why}"),
                "name the patch relative to the folder of the series file",
            )
            .at(place)
        })?;
        let strip = strip_level(words, place)?;
        if let Some(first) = seen.insert(name.clone(), place.line) {
            return Err(refuse(
                format!("`{name}` stands twice, first in line {first}"),
                "take one of them out",
            ));
        }
        entries.push(SeriesEntry { name, strip, line: place.line });
    }
}

fn strip_level<'w>(
    mut words: impl Iterator<Item = &'w str>,
    place: Place,
) -> Result<usize, Refusal> {
    let mut strip = None;
    while let Some(word) = words.next() {
        let level = match word.strip_prefix("-p") {
            Some("") => words.next(),
            Some(level) => Some(level),
            None => {
                let remedy = match word {
                    "-R" => "reverse the patch file itself, or take it out",
                    _ => "take it out: a patch is placed by its own text, at a strip level alone",
                };
                return Err(Refusal::new(
                    Reason::Series,
                    format!("the option `{word}` is not supported"),
                    remedy,
                )
                .at(place));
            }
        };
        let digits = level.filter(|l| l.bytes().all(|b| b.is_ascii_digit()));
        let level = digits.and_then(|l| l.parse::<u8>().ok()).ok_or_else(|| {
            Refusal::new(
                Reason::Series,
                "`-p` without a strip level, or with one above 255",
                "write `-p1`: the number of leading parts of each name to strip",
            )
            .at(place)
        })?;
        if strip.replace(usize::from(level)).is_some() {
            return Err(Refusal::new(Reason::Series, "two strip levels", "keep one").at(place));
        }
    }
    Ok(strip.unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, usize, usize)> {
        let entries = parse_series(text.as_bytes()).unwrap();
        entries.into_iter().map(|e| (e.name.to_string(), e.strip, e.line)).collect()
    }

    #[test]
    fn names_options_and_comments() {
        let text =
            "# head\n\na.patch\nsub/b.patch -p0 # why\n  c.patch\t-p 2\r\nd#1.patch #x\n#e\nf";
        assert_eq!(
            read(text),
            [
                ("a.patch".into(), 1, 3),
                ("sub/b.patch".into(), 0, 4),
                ("c.patch".into(), 2, 5),
                ("d#1.patch".into(), 1, 6),
                ("f".into(), 1, 8),
            ]
        );
        assert_eq!(read(""), []);
    }

    #[test]
    fn what_is_refused_says_its_line() {
        for (text, reason, line) in [
            ("a\nb -R\n", Reason::Series, 2),
            ("a -F3\n", Reason::Series, 1),
            ("a -p\n", Reason::Series, 1),
            ("a -pab\n", Reason::Series, 1),
            ("a -p1 -p2\n", Reason::Series, 1),
            ("a\n\na -p0\n", Reason::Series, 3),
            ("../a\n", Reason::PathEscape, 1),
            ("/a\n", Reason::PathEscape, 1),
        ] {
            let refusal = parse_series(text.as_bytes()).unwrap_err();
            assert_eq!((refusal.reason, refusal.line), (reason, Some(line)), "{text}");
        }
        assert_eq!(parse_series(b"h\xe9\n").unwrap_err().reason, Reason::Series);
    }
}
