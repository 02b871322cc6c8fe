//! The program under test, in a folder of its own and with an environment
//! that holds nothing of the user's.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A fresh folder to run `overlay` in.
pub struct Tool {
    folder: TempDir,
}

/// What a run printed, and how it ended.
#[must_use]
pub struct Run {
    command: String,
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Tool {
    /// An empty folder.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// A path inside the folder.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `overlay` with these arguments, in the folder.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        self.run_with(&[], args)
    }

    /// As [`Tool::run`], with variables set.
    pub fn run_with<S: AsRef<OsStr>>(
        &self,
        variables: &[(&str, &str)],
        args: impl IntoIterator<Item = S>,
    ) -> Run {
        Run::of(self.command(args).envs(variables.iter().copied()))
    }

    /// As [`Tool::run`], as a user whom the rights of files bind: another one, whose the
    /// folder is from here on, where root runs the tests.
    pub fn run_bound<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        if !runs_as_root() {
            return self.run(args);
        }
        let folder = self.folder.path();
        let program = lend(folder).expect("the folder takes the program");
        let mut command = self.command_of(&program, args);
        command.uid(NOBODY).gid(NOBODY).env("HOME", folder).env_remove("XDG_CONFIG_HOME");
        Run::of(&mut command)
    }

    fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_overlay")), args)
    }

    fn command_of<S: AsRef<OsStr>>(
        &self,
        program: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("MLX") || matches!(&*name, "NO_COLOR" | "CLICOLOR_FORCE") {
                command.env_remove(name);
            }
        }
        command.env("MLX_OVERLAY_CACHE", self.folder.path().join(".cache"));
        command
    }
}

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// Whether no right of a file binds who runs the tests.
pub fn runs_as_root() -> bool {
    let file = tempfile::tempfile().expect("a temporary file");
    file.metadata().expect("it was just made").uid() == 0
}

/// Gives a folder to the user who owns nothing, and the program a name in it: that user may
/// not come to where it was built.
fn lend(folder: &Path) -> std::io::Result<PathBuf> {
    let (built, program) = (env!("CARGO_BIN_EXE_overlay"), folder.join(".overlay-program"));
    // What was built stays its owner's.
    let _ = std::fs::remove_file(&program);
    let given = Command::new("chown").arg("-R").arg(NOBODY.to_string()).arg(folder).status()?;
    assert!(given.success());
    match std::fs::hard_link(built, &program) {
        Ok(()) => {}
        Err(_) => drop(std::fs::copy(built, &program)?),
    }
    Ok(program)
}

/// Whether the program can be run as a user whom the rights of files bind.
pub fn as_another_user() -> Result<(), String> {
    if !runs_as_root() {
        return Ok(());
    }
    let cannot = |e| format!("root cannot run the program as another user: {e}");
    let folder = tempfile::tempdir().map_err(cannot)?;
    let mut command = Command::new(lend(folder.path()).map_err(cannot)?);
    command.arg("--version").current_dir("/").uid(NOBODY).gid(NOBODY);
    match command.output().map_err(cannot)?.status.success() {
        true => Ok(()),
        false => Err("another user cannot run the program".to_owned()),
    }
}

impl Run {
    fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the program starts");
        Self {
            command: format!("{command:?}"),
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
        }
    }

    /// Everything, for a failure's message.
    pub fn shown(&self) -> String {
        let mut text = format!("{}\nstatus {:?}\n", self.command, self.status);
        let _ = write!(text, "--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr);
        text
    }

    /// The exit status is this one.
    pub fn assert_status(&self, status: i32) {
        assert_eq!(self.status, Some(status), "{}", self.shown());
    }

    /// The exit status.
    pub fn status(&self) -> Option<i32> {
        self.status
    }

    /// What stands on standard output.
    pub fn stdout(&self) -> &str {
        &self.stdout
    }

    /// What stands on standard error.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// Standard output as one JSON document, whose every key docs/formats.md
    /// lists.
    pub fn json(&self) -> serde_json::Value {
        let document: serde_json::Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.shown()));
        let unlisted = unlisted_keys(&document);
        assert!(
            unlisted.is_empty(),
            "docs/formats.md does not list {unlisted:?}, which {} prints",
            document["schema"]
        );
        document
    }
}

/// The keys of a document that the chapter on JSON of docs/formats.md does not
/// name.
pub fn unlisted_keys(document: &serde_json::Value) -> BTreeSet<String> {
    let formats = include_str!("../../docs/formats.md");
    let chapter = formats.split("\n## ").find(|chapter| chapter.starts_with("JSON\n"));
    let chapter = chapter.expect("a chapter on JSON");
    let mut keys = BTreeSet::new();
    collect_keys(document, &mut keys);
    keys.retain(|key| !chapter.contains(&format!("`{key}`")));
    keys
}

/// Every key of the document, but for those inside of maps: by state, by the
/// names of a series.
fn collect_keys(value: &serde_json::Value, keys: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                keys.insert(key.clone());
                if !matches!(&**key, "counts" | "decisions") {
                    collect_keys(value, keys);
                }
            }
        }
        _ => {}
    }
}
