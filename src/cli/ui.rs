//! All printing. Results go to standard output, everything else to standard
//! error; colour and progress only where a person looks on.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::error::{CommandError, ErrorKind, Outcome, exit_status};
use super::remedy;

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: one document, with a schema name and version.
    Json,
    /// For the body of a pull request.
    Markdown,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorWhen {
    /// What the command line asks for: the last `--color` in it, read before the rest
    /// is, as what cannot be read is printed too.
    #[must_use]
    pub fn asked(words: &[OsString]) -> Self {
        let named = |at: usize| match words[at].to_str()?.strip_prefix("--color")? {
            "" => words.get(at + 1)?.to_str(),
            joined => joined.strip_prefix('='),
        };
        let read = |name| <Self as clap::ValueEnum>::from_str(name, false).ok();
        (0..words.len()).filter_map(named).filter_map(read).next_back().unwrap_or_default()
    }

    /// The choice for a stream.
    fn choice(self, stream: &impl IsTerminal) -> ColorChoice {
        match self {
            // Which forces nothing, and anstream takes for a wish.
            Self::Auto if std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| v == "0") => {
                let able =
                    || anstyle_query::clicolor().unwrap_or_else(anstyle_query::term_supports_color);
                match stream.is_terminal() && !anstyle_query::no_color() && able() {
                    true => ColorChoice::Always,
                    false => ColorChoice::Never,
                }
            }
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::AlwaysAnsi,
            Self::Never => ColorChoice::Never,
        }
    }

    /// The choice for what clap itself prints: help to one stream, faults of the
    /// command line to the other.
    #[must_use]
    pub fn of_clap(self) -> clap::ColorChoice {
        match (self.choice(&io::stdout()), self.choice(&io::stderr())) {
            (ColorChoice::Never, _) | (_, ColorChoice::Never) => clap::ColorChoice::Never,
            (ColorChoice::Auto, _) => clap::ColorChoice::Auto,
            _ => clap::ColorChoice::Always,
        }
    }
}

/// What is good: a hunk that holds.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What a person should look at.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// What is wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What may be passed over.
pub const DIM: Style = Style::new().dimmed();
/// Headings.
pub const BOLD: Style = Style::new().bold();

/// Wraps a text in a style; the stream drops the codes where there is no
/// colour.
#[must_use]
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A text with nothing in it that acts on a terminal but colour: the names and
/// lines of a patch are a stranger's. Control characters are written as git
/// writes them, `\\033`.
fn inert(text: &str) -> Cow<'_, str> {
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(acts) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        if acts(c) && !(c == '\u{1b}' && is_style(&text[at + 1..])) {
            out.push_str(&format!("\\{:03o}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// Whether what follows an escape character sets a colour or a weight.
fn is_style(rest: &str) -> bool {
    let digits = rest
        .strip_prefix('[')
        .map(|r| r.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
    digits.is_some_and(|r| r.starts_with('m'))
}

/// The terminal, as far as commands may know it.
pub struct Ui {
    format: Format,
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
    quiet: bool,
    offline: bool,
    /// How the program is called in commands for a person to paste.
    program: String,
    untold: Option<io::Error>,
}

impl Ui {
    /// For the given switches.
    #[must_use]
    pub fn new(format: Format, color: ColorWhen, quiet: bool, offline: bool) -> Self {
        Self {
            format,
            out: AutoStream::new(io::stdout(), color.choice(&io::stdout())),
            err: AutoStream::new(io::stderr(), color.choice(&io::stderr())),
            quiet,
            offline,
            program: "overlay".into(),
            untold: None,
        }
    }

    /// The same, for a run in the folder that `-C` names: what a person pastes
    /// has to be run there too.
    #[must_use]
    pub fn started_in(self, directory: &Path) -> Self {
        let directory = remedy::word(&directory.display().to_string());
        Self { program: format!("overlay -C {directory}"), ..self }
    }

    /// How the program is called in a command for a person to paste.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// A text whose commands (`` `overlay …` ``) are for a person to paste.
    #[must_use]
    pub fn pasted(&self, text: &str) -> String {
        text.replace("`overlay ", &format!("`{} ", self.program))
    }

    /// The format asked for.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the network is off limits.
    #[must_use]
    pub fn offline(&self) -> bool {
        self.offline
    }

    /// Whether progress and notes are unwanted.
    #[must_use]
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// Refuses a format that this command's result has no form for.
    ///
    /// # Errors
    /// A usage error naming the formats there are.
    pub fn only(&self, formats: &[Format]) -> Result<(), CommandError> {
        if formats.contains(&self.format) {
            return Ok(());
        }
        let name = |f: &Format| format!("{f:?}").to_lowercase();
        let names: Vec<String> = formats.iter().map(name).collect();
        Err(CommandError::usage(format!(
            "this command does not print {}; it prints {}",
            name(&self.format),
            names.join(" and ")
        )))
    }

    /// A line of the result, for people.
    pub fn line(&mut self, text: impl AsRef<str>) {
        let written = writeln!(self.out, "{}", inert(text.as_ref()));
        self.told(written);
    }

    /// The result as one JSON document: `schema` is its name, and `version`
    /// counts up when a field changes its meaning or goes.
    pub fn json(&mut self, schema: &str, version: u32, result: &impl Serialize) {
        let mut document = serde_json::Map::new();
        document.insert("schema".into(), format!("mlx-overlay/{schema}").into());
        document.insert("version".into(), version.into());
        match serde_json::to_value(result).expect("reports hold nothing JSON cannot") {
            serde_json::Value::Object(fields) => {
                debug_assert!(fields.keys().all(|k| k != "schema" && k != "version"));
                document.extend(fields);
            }
            other => {
                document.insert("result".into(), other);
            }
        }
        let text = serde_json::to_string_pretty(&document).expect("maps with text keys");
        let written = writeln!(self.out, "{text}");
        self.told(written);
    }

    /// Keeps why a part of the result could not be printed. A reader that went
    /// away (`| head`) is no error of ours.
    fn told(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.untold.get_or_insert(error);
        }
    }

    /// A word on standard error, such as where a lock is waited for.
    pub fn note(&mut self, text: impl AsRef<str>) {
        if !self.quiet {
            let _ = writeln!(self.err, "{}", inert(text.as_ref()));
        }
    }

    /// A warning on standard error; shown also under `--quiet`.
    pub fn warn(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.err, "{} {}", paint(WARN, "warning:"), inert(text.as_ref()));
    }

    /// Progress of something long: a bar on a terminal, nothing elsewhere. It
    /// goes when it is dropped.
    #[must_use]
    pub fn progress(&self, what: &str) -> ProgressBar {
        if self.quiet || !io::stderr().is_terminal() {
            return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        }
        let bar = ProgressBar::new_spinner().with_message(what.to_string());
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len}")
                .expect("the template is a constant"),
        );
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }

    /// Prints the error, if there is one, and gives the exit status.
    pub fn finish(mut self, mut result: Result<Outcome, CommandError>) -> ExitCode {
        let flushed = self.out.flush();
        self.told(flushed);
        if let Some(error) = self.untold.take().filter(|_| result.is_ok()) {
            let error = anyhow::Error::new(error).context("the result cannot be printed");
            result = Err(CommandError::new(ErrorKind::Failed, error));
        }
        if let Err(error) = &mut result {
            error.hints.iter_mut().for_each(|hint| *hint = self.pasted(hint));
            if self.format == Format::Json {
                self.json("error", 1, &serde_json::json!({ "error": error.to_json() }));
            }
            self.print_error(error);
        }
        ExitCode::from(exit_status(&result))
    }

    fn print_error(&mut self, error: &CommandError) {
        let mut chain = error.chain();
        let place =
            error.place.file.iter().map(|file| match (error.place.line, error.place.byte) {
                (Some(line), Some(byte)) => format!("{file}:{line} (byte {byte}): "),
                (Some(line), None) => format!("{file}:{line}: "),
                _ => format!("{file}: "),
            });
        let first = place.chain(chain.next()).collect::<String>();
        let _ = writeln!(self.err, "{} {}", paint(BAD, "error:"), inert(&first));
        for cause in chain {
            let _ = writeln!(self.err, "  {} {}", paint(DIM, "because:"), inert(&cause));
        }
        for hint in &error.hints {
            let _ = writeln!(self.err, "  {} {}", paint(GOOD, "try:"), inert(hint));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_written_out() {
        for (text, shown) in [
            ("a\tb\nc é", "a\tb\nc é"),
            ("a\u{1b}[2Jb\u{7}\r", "a\\033[2Jb\\007\\015"),
            ("\u{1b}[1;31mred\u{1b}[0m\u{9b}1m", "\u{1b}[1;31mred\u{1b}[0m\\2331m"),
            ("\u{1b}", "\\033"),
        ] {
            assert_eq!(inert(text), shown);
        }
    }
}
