//! What can keep the harness from deciding.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a run could not be finished. A proof that fails is no error: it stands
/// in the report.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// A compiler or an LLVM tool is not installed.
    #[error("{what} was not found (looked for {looked_for}); install {package}")]
    MissingTool {
        /// What it is needed for.
        what: &'static str,
        /// The names tried.
        looked_for: String,
        /// The Debian package that brings it, or several, with "and".
        package: String,
    },
    /// The folder is no laid MLX tree, or a part of one.
    #[error("{}: not a whole MLX tree: {missing} is missing", tree.display())]
    NotATree {
        /// The folder given.
        tree: PathBuf,
        /// The file looked for.
        missing: String,
    },
    /// A tool ran and failed.
    #[error("{what} failed:\n{said}")]
    Tool {
        /// The step.
        what: String,
        /// The end of what it printed.
        said: String,
    },
    /// A file could not be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason. The message has it: it is no source to be told again.
        cause: io::Error,
    },
    /// The released wheel could not be had, or is not the one expected.
    #[error("the wheel {wheel}: {why}")]
    Wheel {
        /// Its file name.
        wheel: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A metallib or the text of a kernel in it is not as facts.md has it.
    #[error("{what} at byte {at}: {why}")]
    Metallib {
        /// The part looked at.
        what: String,
        /// Offset in the file, in bytes.
        at: usize,
        /// What is wrong.
        why: String,
    },
    /// A host name of no family in `kernels.rs`.
    #[error("no kernel family of the harness has the host name {0}")]
    UnknownKernel(String),
    /// Mutations do not fit the text: the list of mutants is behind the kernels.
    #[error(
        "{} of the list of mutants do not fit {file}; bring overlay-tests/harness/src/mutants.rs \
         up to date{}",
        misfits.len(),
        lines(misfits)
    )]
    Mutations {
        /// The file they are of.
        file: &'static str,
        /// All that do not fit.
        misfits: Vec<Misfit>,
    },
}

impl HarnessError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |cause| Self::Io { path: path.to_path_buf(), cause }
    }
}

/// A text that a mutation looks for, and which does not stand once where it
/// must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The mutant's name.
    pub mutant: &'static str,
    /// The function it is to stand in.
    pub function: &'static str,
    /// The text looked for.
    pub text: &'static str,
    /// How often it stands there; nothing where there is no such function.
    pub found: Option<usize>,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mutant, function, text, found } = self;
        match found {
            None => {
                write!(f, "mutant {mutant}: there is not one function {function}, with `{text}`")
            }
            Some(found) => write!(
                f,
                "mutant {mutant}: in {function} its text stands {found} times and must stand \
                 once: `{text}`"
            ),
        }
    }
}

fn lines(misfits: &[Misfit]) -> String {
    misfits.iter().map(|misfit| format!("\n  {misfit}")).collect()
}
