//! Test suites whose skips are named and counted, and servers for them.
//!
//! A test that needs a tool, a registry or a full history says so. Where the
//! need is not met the test is ignored, counted and named, with the reason on
//! standard error; under `CI` it fails instead, for CI installs what it needs.
//! Needs are asked for the tests that the command line chooses alone: a filter
//! that leaves the registries out leaves the network alone.

#[allow(clippy::unwrap_used, reason = "what goes wrong in a test is a panic")]
pub mod crates;
#[allow(clippy::unwrap_used, reason = "what goes wrong in a test is a panic")]
pub mod server;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// Something a test cannot run without.
pub struct Need {
    /// Tells why the test cannot run here, with what to install or set.
    ask: Box<dyn FnOnce() -> Result<(), String>>,
    /// CI cannot be asked to have it.
    optional: bool,
}

impl Need {
    /// A program that must be on the path, and the package that brings it.
    #[must_use]
    pub fn program(name: &'static str, package: &'static str) -> Self {
        Self::asked(move || {
            let path = std::env::var_os("PATH").unwrap_or_default();
            match std::env::split_paths(&path).any(|dir| dir.join(name).is_file()) {
                true => Ok(()),
                false => Err(format!("`{name}` is not on the path; install {package}")),
            }
        })
    }

    /// Any condition, and what to do about it where it does not hold. Asked
    /// once, and only where a test that needs it is to run.
    #[must_use]
    pub fn asked(ask: impl FnOnce() -> Result<(), String> + 'static) -> Self {
        Self { ask: Box::new(ask), optional: false }
    }

    /// A condition that is known, and what to do about it where it does not
    /// hold.
    #[must_use]
    pub fn met(holds: bool, otherwise: impl Into<String>) -> Self {
        let otherwise = otherwise.into();
        Self::asked(move || if holds { Ok(()) } else { Err(otherwise) })
    }

    /// The same need, of what CI cannot be asked to have everywhere: unmet, it
    /// skips the test there too.
    #[must_use]
    pub fn where_there_is_one(self) -> Self {
        Self { optional: true, ..self }
    }

    /// The full upstream history, from `MLX_OVERLAY_UPSTREAM`. Where no git
    /// host is reached there is none, in CI too.
    #[must_use]
    pub fn upstream() -> Self {
        let set = std::env::var_os("MLX_OVERLAY_UPSTREAM").is_some();
        Self::met(set, "set MLX_OVERLAY_UPSTREAM to a clone of MLX with its history")
            .where_there_is_one()
    }
}

/// A test and what it needs.
struct Planned {
    trial: Trial,
    needs: Vec<Need>,
}

/// A test binary's tests.
#[derive(Default)]
pub struct Suite {
    planned: Vec<Planned>,
    /// Flags of its own, which are none of libtest's.
    flags: Vec<&'static str>,
}

impl Suite {
    /// No tests yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a test. It fails by panicking.
    pub fn test(&mut self, name: impl Into<String>, body: impl FnOnce() + Send + 'static) {
        self.test_needing(name, [], body);
    }

    /// Adds a test that needs something of the machine.
    pub fn test_needing(
        &mut self,
        name: impl Into<String>,
        needs: impl IntoIterator<Item = Need>,
        body: impl FnOnce() + Send + 'static,
    ) {
        let trial = Trial::test(name, move || {
            body();
            Ok(())
        });
        self.planned.push(Planned { trial, needs: needs.into_iter().collect() });
    }

    /// Takes a flag of the binary's own, such as `--full`; whether it is set.
    pub fn flag(&mut self, flag: &'static str) -> bool {
        self.flags.push(flag);
        std::env::args().any(|argument| argument == flag)
    }

    /// Runs what the command line asks for and names every skip.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let own = |argument: &String| self.flags.iter().any(|flag| flag == argument);
        let mut arguments = Arguments::from_iter(std::env::args().filter(|a| !own(a)));
        if arguments.ignored && !arguments.list {
            eprintln!("--ignored: the skipped tests cannot run here");
            return ExitCode::FAILURE;
        }
        // A skipped test's body is gone: running it would be a test that
        // cannot fail.
        arguments.include_ignored = false;
        let in_ci = std::env::var_os("CI").is_some();
        let mut skipped = Vec::new();
        let mut trials = Vec::new();
        for Planned { trial, needs } in self.planned {
            let is_run = !arguments.list && !arguments.is_filtered_out(&trial);
            let unmet = if is_run { unmet(needs) } else { Unmet::default() };
            trials.push(match unmet {
                Unmet { why, .. } if why.is_empty() => trial,
                Unmet { why, wanted: true } if in_ci => {
                    let failure = format!("cannot run, and CI must run it: {}", why.join("; "));
                    Trial::test(trial.name(), move || Err(Failed::from(failure)))
                }
                Unmet { why, .. } => {
                    skipped.push(format!("skipped {}: {}", trial.name(), why.join("; ")));
                    Trial::test(trial.name(), || Ok(())).with_ignored_flag(true)
                }
            });
        }
        let conclusion = libtest_mimic::run(&arguments, trials);
        skipped.iter().for_each(|skip| eprintln!("{skip}"));
        conclusion.exit_code()
    }
}

/// The needs of a test that are not met.
#[derive(Default)]
struct Unmet {
    why: Vec<String>,
    /// One of them is to be met in CI.
    wanted: bool,
}

fn unmet(needs: Vec<Need>) -> Unmet {
    let mut unmet = Unmet::default();
    for Need { ask, optional } in needs {
        if let Err(why) = ask() {
            unmet.why.push(why);
            unmet.wanted |= !optional;
        }
    }
    unmet
}
