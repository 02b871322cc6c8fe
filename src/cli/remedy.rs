//! Commands for a person to paste: with the place, the pin and the choices of
//! what they mend.

use std::path::{Path, PathBuf};

use mlx_overlay_engine::pin::{Pin, Project};
use mlx_overlay_engine::publish::{Identity, PublishError};

use super::error::CommandError;

/// Where `overlay apply` publishes below a project's folder, unless told
/// otherwise.
const PLACE: &str = "target/overlay";

/// Where `overlay apply` publishes the tree of a pin, or of the series on a
/// released tree, unless told otherwise.
#[must_use]
pub fn default_place(project: &Project, pin: &Pin, at: Option<&str>) -> PathBuf {
    let name = match at {
        None => pin.short(),
        Some(at) => {
            let (_, name) = at.split_once(':').unwrap_or(("", at));
            format!("{}-at-{}", pin.short(), name.replace(['@', '/', ':'], "-"))
        }
    };
    project.root.join(PLACE).join(name)
}

/// An `overlay apply` that lays a tree again.
#[derive(Clone, Debug)]
pub struct Apply {
    words: Vec<String>,
    /// What the words cannot say, to stand behind the command.
    but: &'static str,
}

impl Apply {
    /// For the tree at `place` that says `identity` of itself. Where no project
    /// here has its pin the command is for the project that it was laid from.
    #[must_use]
    pub fn of_tree(project: Option<&Project>, identity: &Identity, place: &Path) -> Self {
        let at = identity.trial.as_deref();
        let pin = project.and_then(|p| p.pins().find(|pin| pin.commit == identity.pin));
        let mut apply = match (project, pin) {
            (Some(project), Some(pin)) => Self::at(project, pin, at, Some(place)),
            _ => Self::elsewhere(place),
        };
        if pin.is_none() {
            apply.words.extend(at.into_iter().flat_map(|at| ["--at".into(), word(at)]));
        }
        apply.groups(&identity.groups)
    }

    /// For what may be at `place`, which says nothing of itself.
    #[must_use]
    pub fn of_place(project: Option<&Project>, place: &Path) -> Self {
        let is_its = |project: &Project, pin: &Pin| {
            absolute(&default_place(project, pin, None)) == absolute(place)
        };
        match project {
            Some(project) => {
                let its = project.pins().find(|pin| is_its(project, pin));
                let mut apply =
                    Self::at(project, its.unwrap_or(&project.current), None, Some(place));
                apply.but = " (and the --pin, --at and --group that it was laid with)";
                apply
            }
            None => Self::elsewhere(place),
        }
    }

    /// For a tree of another project's.
    fn elsewhere(place: &Path) -> Self {
        Self {
            words: vec!["--out".into(), word(&absolute(place).display().to_string())],
            but: " (in the project that it was laid from)",
        }
    }

    /// For a pin of the project, at a place of its own or the usual one.
    #[must_use]
    pub fn at(project: &Project, pin: &Pin, at: Option<&str>, place: Option<&Path>) -> Self {
        let mut words = Vec::new();
        if pin.commit != project.current.commit {
            words.extend(["--pin".into(), pin.short()]);
        }
        words.extend(at.into_iter().flat_map(|at| ["--at".into(), word(at)]));
        let usual = absolute(&default_place(project, pin, at));
        if let Some(place) = place.filter(|place| absolute(place) != usual) {
            words.extend(["--out".into(), word(&place.display().to_string())]);
        }
        Self { words, but: "" }
    }

    /// Of these groups alone; of all where there are none.
    #[must_use]
    pub fn groups(mut self, groups: &[String]) -> Self {
        self.words.extend(groups.iter().flat_map(|g| ["--group".into(), word(g)]));
        self
    }

    /// The command with one more option, or as it is, in backquotes.
    #[must_use]
    pub fn with(&self, option: &str) -> String {
        let words = ["overlay apply"].into_iter().chain(self.words.iter().map(String::as_str));
        let words: Vec<&str> = words.chain(Some(option).filter(|o| !o.is_empty())).collect();
        format!("`{}`{}", words.join(" "), self.but)
    }

    /// A fault of a publication, with the commands that mend it.
    #[must_use]
    pub fn mends(&self, error: PublishError) -> CommandError {
        let force = self.with("--force");
        let hint = match &error {
            PublishError::Stamp(lost) if lost.is_lost() => format!(
                "look through the tree; then {force} writes anew what is not as it is to be, and \
                 keeps files that are not of the tree"
            ),
            PublishError::HandEdited { .. } => {
                format!("{force} overwrites them; a copy elsewhere keeps them")
            }
            _ => return error.into(),
        };
        CommandError::from(error).hint(hint)
    }
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into())
}

/// As a POSIX shell takes a word; quoted where it must be.
#[must_use]
pub fn word(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(&b);
    match !text.is_empty() && text.bytes().all(plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// As a POSIX shell takes a word literally.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_the_words_as_they_are() {
        assert_eq!(quoted("/a b/c"), "'/a b/c'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(word("target/overlay/9a795735"), "target/overlay/9a795735");
        assert_eq!(word("crate:mlxrs-sys@0.2.0:vendor/mlx"), "crate:mlxrs-sys@0.2.0:vendor/mlx");
        for odd in ["", "a b", "~/x", "a`b", "*", "x;y"] {
            assert_eq!(word(odd), format!("'{odd}'"));
        }
    }
}
