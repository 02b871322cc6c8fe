//! Reading what is stored as TOML: bytes to a raw form, with the place of
//! every fault. The checked types are made from the raw forms by their owners.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A place in a stored file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was opened.
    pub file: PathBuf,
    /// 1-based line.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// A stored file cannot be read, or is not of its form.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The file cannot be read.
    #[error("{}: cannot be read", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The text does not have the form this version reads: TOML syntax, an
    /// unknown key, a key that is missing, a value of another kind or out of
    /// its range.
    #[error("{place}: {what}")]
    Form {
        /// Where.
        place: Place,
        /// What is wrong, and what would be right.
        what: String,
    },
}

/// A stored file in memory: its bytes as text, and the way from a byte range
/// to a line.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
}

impl Text {
    /// Reads `file`.
    pub(crate) fn read(file: &Path) -> Result<Self, StoredError> {
        let file = file.to_path_buf();
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(source) => return Err(StoredError::Read { file, source }),
        };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { file, text }),
            Err(e) => {
                let good = e.utf8_error().valid_up_to();
                let line = line_at(e.as_bytes(), good);
                let what = format!("byte {good} is not UTF-8");
                Err(StoredError::Form { place: Place { file, line }, what })
            }
        }
    }

    /// The raw form of the text.
    pub(crate) fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, StoredError> {
        toml::from_str(&self.text).map_err(|e| {
            let at = e.span().unwrap_or(0..0);
            self.fault(&at, e.message().trim_end().replace('\n', "; "))
        })
    }

    /// The line at which a span begins.
    pub(crate) fn place(&self, span: &Range<usize>) -> Place {
        let line = line_at(self.text.as_bytes(), span.start);
        Place { file: self.file.clone(), line }
    }

    /// A fault at a span.
    pub(crate) fn fault(&self, span: &Range<usize>, what: impl Into<String>) -> StoredError {
        StoredError::Form { place: self.place(span), what: what.into() }
    }

    /// Refuses a schema this version does not read.
    pub(crate) fn schema(
        &self,
        schema: &toml::Spanned<u32>,
        known: u32,
    ) -> Result<(), StoredError> {
        let found = *schema.get_ref();
        if found == known {
            return Ok(());
        }
        Err(self.fault(
            &schema.span(),
            format!("schema {found}: this version reads schema {known} alone"),
        ))
    }

    /// A text that must say something.
    pub(crate) fn said(
        &self,
        key: &str,
        value: &toml::Spanned<String>,
    ) -> Result<String, StoredError> {
        let text = value.get_ref().trim();
        if text.is_empty() {
            return Err(self.fault(&value.span(), format!("`{key}` says nothing")));
        }
        Ok(text.to_owned())
    }
}

/// An error with its causes, in one line.
#[must_use]
pub fn message(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |e| e.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn line_at(text: &[u8], byte: usize) -> usize {
    1 + text[..byte.min(text.len())].iter().filter(|b| **b == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Raw {
        schema: toml::Spanned<u32>,
    }

    fn text(text: &str) -> Text {
        Text { file: "x.toml".into(), text: text.into() }
    }

    #[test]
    fn a_fault_has_its_line() {
        let unknown = text("schema = 1\n\nshema = 2\n").parse::<Raw>().unwrap_err().to_string();
        assert!(unknown.starts_with("x.toml:3: unknown field `shema`"), "{unknown}");
        let syntax = text("schema = 1\nfoo bar\n").parse::<Raw>().unwrap_err().to_string();
        assert!(syntax.starts_with("x.toml:2: "), "{syntax}");
        let later = text("# a later one\nschema = 2\n");
        let raw: Raw = later.parse().unwrap();
        let error = later.schema(&raw.schema, 1).unwrap_err().to_string();
        assert_eq!(error, "x.toml:2: schema 2: this version reads schema 1 alone");
    }

    #[test]
    fn bytes_that_are_no_text_have_their_line_too() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.toml");
        std::fs::write(&file, b"a = 1\nb = \"\xff\"\n").unwrap();
        let error = Text::read(&file).unwrap_err().to_string();
        assert!(error.ends_with("x.toml:2: byte 11 is not UTF-8"), "{error}");
    }
}
