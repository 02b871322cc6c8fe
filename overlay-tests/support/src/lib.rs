//! Test suites whose skips are named and counted, and servers for them.
//!
//! A test that needs a tool, a registry or a full history says so. Where the
//! need is not met the test is ignored, counted and named, with the reason on
//! standard error; under `CI` it fails instead, for CI installs what it needs.

#[allow(clippy::unwrap_used, reason = "what goes wrong in a test is a panic")]
pub mod server;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// Something a test cannot run without.
pub struct Need {
    /// Why the test cannot run here, with what to install or set; nothing
    /// where it can.
    missing: Option<String>,
    /// CI cannot be asked to have it.
    optional: bool,
}

impl Need {
    /// A program that must be on the path, and the package that brings it.
    #[must_use]
    pub fn program(name: &str, package: &str) -> Self {
        let found = std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file()));
        Self::met(found, format!("`{name}` is not on the path; install {package}"))
    }

    /// Any condition, and what to do about it where it does not hold.
    #[must_use]
    pub fn met(holds: bool, otherwise: impl Into<String>) -> Self {
        Self { missing: (!holds).then(|| otherwise.into()), optional: false }
    }

    /// The full upstream history, from `MLX_OVERLAY_UPSTREAM`. Where no git
    /// host is reached there is none, in CI too.
    #[must_use]
    pub fn upstream() -> Self {
        let set = std::env::var_os("MLX_OVERLAY_UPSTREAM").is_some();
        let missing = "set MLX_OVERLAY_UPSTREAM to a clone of MLX with its history";
        Self { missing: (!set).then(|| missing.to_string()), optional: true }
    }
}

/// A test binary's tests.
#[derive(Default)]
pub struct Suite {
    trials: Vec<Trial>,
    skipped: Vec<String>,
}

impl Suite {
    /// No tests yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a test. It fails by panicking.
    pub fn test(&mut self, name: impl Into<String>, body: impl FnOnce() + Send + 'static) {
        self.trials.push(Trial::test(name, move || {
            body();
            Ok(())
        }));
    }

    /// Adds a test that needs something of the machine.
    pub fn test_needing(
        &mut self,
        name: impl Into<String>,
        needs: impl IntoIterator<Item = Need>,
        body: impl FnOnce() + Send + 'static,
    ) {
        let name = name.into();
        let unmet: Vec<Need> = needs.into_iter().filter(|n| n.missing.is_some()).collect();
        if unmet.is_empty() {
            return self.test(name, body);
        }
        let in_ci = std::env::var_os("CI").is_some() && unmet.iter().any(|n| !n.optional);
        let why: Vec<String> = unmet.into_iter().filter_map(|n| n.missing).collect();
        let why = why.join("; ");
        if in_ci {
            let failure = format!("cannot run, and CI must run it: {why}");
            self.trials.push(Trial::test(name, move || Err(Failed::from(failure))));
        } else {
            self.skipped.push(format!("skipped {name}: {why}"));
            self.trials.push(Trial::test(name, || Ok(())).with_ignored_flag(true));
        }
    }

    /// Runs what the command line asks for and names every skip.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        // A skipped test's body is gone: running it would be a test that
        // cannot fail.
        arguments.include_ignored = false;
        if arguments.ignored && !arguments.list {
            eprintln!("--ignored: the skipped tests cannot run here");
            return ExitCode::FAILURE;
        }
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        if !arguments.list {
            self.skipped.iter().for_each(|skip| eprintln!("{skip}"));
        }
        conclusion.exit_code()
    }
}
