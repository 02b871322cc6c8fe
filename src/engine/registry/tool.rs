//! Running cargo and pip: with an end, and with their words kept.

use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Registry, RegistryError};
use crate::secret::hidden;

/// Both tools have time-outs of their own; this ends what they do not.
const LIMIT: Duration = Duration::from_secs(15 * 60);
const PAUSE: Duration = Duration::from_millis(15);
const LAST_WORDS: usize = 1500;

impl Registry<'_> {
    /// Runs `program` and gives what it wrote to standard output.
    pub(super) fn run(
        &self,
        program: &'static str,
        arguments: &[&str],
    ) -> Result<String, RegistryError> {
        self.run_within(program, arguments, LIMIT)
    }

    fn run_within(
        &self,
        program: &'static str,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<String, RegistryError> {
        let failed = |source| RegistryError::Run { program, source };
        // Files, not pipes: a process that lives on cannot hold us up.
        let (mut out, mut err) =
            (tempfile::tempfile().map_err(failed)?, tempfile::tempfile().map_err(failed)?);
        let mut child = Command::new(program)
            .args(arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(err.try_clone().map_err(failed)?)
            .spawn()
            .map_err(|source| match source.kind() {
                std::io::ErrorKind::NotFound => RegistryError::NoTool { program },
                _ => RegistryError::Run { program, source },
            })?;
        let command = || format!("{program} {}", arguments.join(" "));
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if begun.elapsed() > limit {
                // It may have ended just now.
                let _ = child.kill();
                child.wait().map_err(failed)?;
                return Err(RegistryError::TooLong { command: command(), limit });
            }
            std::thread::sleep(PAUSE);
        };
        let text = |file: &mut std::fs::File| {
            let mut bytes = Vec::new();
            file.rewind()?;
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        if status.success() {
            return text(&mut out).map_err(failed);
        }
        let said = text(&mut err).map_err(failed)?;
        let said = said.trim();
        let from = said.len().saturating_sub(LAST_WORDS);
        let from = (from..=said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(from);
        Err(RegistryError::Tool {
            command: command(),
            status: status.to_string(),
            said: hidden(&said[from..]).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::progress::Silent;
    use crate::registry::Network;

    #[test]
    #[cfg(unix)]
    fn a_tool_ends_in_its_time_and_its_words_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let registry = Registry::new(&cache, Network::OffLimits, &Silent);
        let sh = |script| registry.run_within("sh", &["-c", script], Duration::from_millis(300));
        assert_eq!(sh("echo out; echo err >&2").unwrap(), "out\n");
        let failed = sh("echo why >&2; exit 3").unwrap_err().to_string();
        assert!(failed.contains("3): why"), "{failed}");
        assert!(matches!(sh("exec sleep 60"), Err(RegistryError::TooLong { .. })));
        let none = registry.run("no-such-program-here", &[]);
        assert!(matches!(none, Err(RegistryError::NoTool { .. })));
    }
}
