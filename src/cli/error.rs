//! How a command ends, and the one place that turns it into an exit status.

use std::fmt;

use mlx_overlay_engine::apply::ApplyError;
use mlx_overlay_engine::patch::Refusal;

/// How a command that ran to its end ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// All is well.
    Done,
    /// A person must look: drift, a conflict, a broken contract, a foreign
    /// edit. Pin, series and published trees are as they were.
    NeedsPerson,
}

/// Why a command could not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A person must look first: a hand edit is in the way.
    NeedsPerson,
    /// The command line is wrong.
    Usage,
    /// The input is unsafe or malformed.
    Refused,
    /// A source or a tool is missing.
    Missing,
    /// Anything else: the disk is full, a file cannot be read.
    Failed,
}

impl ErrorKind {
    fn as_str(self) -> &'static str {
        match self {
            ErrorKind::NeedsPerson => "needs-person",
            ErrorKind::Usage => "usage",
            ErrorKind::Refused => "refused",
            ErrorKind::Missing => "missing",
            ErrorKind::Failed => "failed",
        }
    }
}

/// The exit status of a command: the only place where outcomes become numbers.
#[must_use]
pub fn exit_status(result: &Result<Outcome, CommandError>) -> u8 {
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::NeedsPerson) => 1,
        Err(error) => match error.kind {
            ErrorKind::NeedsPerson => 1,
            ErrorKind::Usage => 2,
            ErrorKind::Refused => 3,
            ErrorKind::Missing => 4,
            ErrorKind::Failed => 5,
        },
    }
}

/// The word for an object or a file whose bytes are not those it should have.
pub const DAMAGED: &str = "damaged";

/// An error as the cli tells it: what kind, what happened, what to do next.
#[derive(Debug)]
pub struct CommandError {
    /// Decides the exit status.
    pub kind: ErrorKind,
    /// A word for programs, such as `malformed` or `path-escape`.
    pub reason: Option<String>,
    /// The file, line (from 1) and byte (from 0) it is about, where there are.
    pub place: Place,
    /// What happened; the chain of causes is printed with it.
    pub source: anyhow::Error,
    /// What to do next, a sentence each.
    pub hints: Vec<String>,
}

/// Where an error is.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// The file, as the user named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The byte, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte: Option<usize>,
}

impl CommandError {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, source: impl Into<anyhow::Error>) -> Self {
        Self { kind, reason: None, place: Place::default(), source: source.into(), hints: vec![] }
    }

    /// The command line is wrong.
    pub fn usage(what: impl fmt::Display + fmt::Debug + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::Usage, anyhow::Error::msg(what))
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds what else it comes of, behind the causes.
    #[must_use]
    pub fn besides(self, what: &str) -> Self {
        let causes: Vec<String> = self.chain().collect();
        let last = anyhow::Error::msg(what.to_owned());
        let source = causes.into_iter().rev().fold(last, anyhow::Error::context);
        Self { source, ..self }
    }

    /// Adds the word for programs.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Adds the place.
    #[must_use]
    pub fn at(mut self, file: impl fmt::Display, line: Option<usize>, byte: Option<usize>) -> Self {
        self.place = Place { file: Some(file.to_string()), line, byte };
        self
    }

    /// A patch or a quilt series that is not taken; `file` is its name.
    pub fn from_refusal(refusal: Refusal, file: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Refused, anyhow::Error::msg(refusal.message))
            .reason(refusal.reason.as_str())
            .at(file, refusal.line, refusal.byte)
            .hint(refusal.remedy)
    }

    /// A patch that could not be judged; `file` is its name.
    pub fn from_apply(error: ApplyError, file: impl fmt::Display) -> Self {
        match error {
            ApplyError::Refused(refusal) => Self::from_refusal(refusal, file),
            ApplyError::Read(error) => Self::new(ErrorKind::Failed, error),
        }
    }

    /// The causes, the outermost first.
    pub fn chain(&self) -> impl Iterator<Item = String> {
        self.source.chain().map(ToString::to_string)
    }

    /// The error as JSON holds it, under the key `error`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "kind": self.kind.as_str(),
            "reason": self.reason,
            "place": self.place,
            "message": self.chain().collect::<Vec<_>>().join(": "),
            "remedies": self.hints,
        })
    }
}

/// An error of the system has no better kind than `Failed`.
impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Failed, error)
    }
}
