//! clang and the LLVM tools, found on the path.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::HarnessError;

/// The programs the harness runs.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// A clang of version 16 to 19: older ones lack the half mode Apple's
    /// compiler pins down, newer ones are not tried.
    pub clang: PathBuf,
    /// What it says of itself: part of every cache key.
    pub version: String,
}

/// The LLVM tools the oracle needs.
#[derive(Clone, Debug)]
pub struct LlvmTools {
    /// Reads Apple's bitcode.
    pub dis: PathBuf,
    /// Lowers it to this machine.
    pub llc: PathBuf,
    /// What llc says of itself.
    pub version: String,
}

impl Toolchain {
    /// `$MLX_OVERLAY_CLANG`, or the first of clang++-16 … -19 and clang++.
    ///
    /// # Errors
    /// No clang is there, or it is none of the versions.
    pub fn find() -> Result<Self, HarnessError> {
        let names: Vec<String> = match std::env::var("MLX_OVERLAY_CLANG") {
            Ok(name) => vec![name],
            Err(_) => ["clang++-16", "clang++-17", "clang++-18", "clang++-19", "clang++"]
                .map(str::to_string)
                .to_vec(),
        };
        let missing = || HarnessError::MissingTool {
            what: "clang, to compile the kernels,",
            looked_for: format!("{} of version 16 to 19", names.join(", ")),
            package: "clang-16 and libclang-rt-16-dev".into(),
        };
        let supported = |(_, version): &(PathBuf, String)| {
            major(version).is_some_and(|version| (16..=19).contains(&version))
        };
        let (clang, version) =
            names.iter().filter_map(|name| answering(name)).find(supported).ok_or_else(missing)?;
        Ok(Self { clang, version })
    }

    /// Its major version.
    pub(crate) fn major(&self) -> u32 {
        major(&self.version).expect("`find` takes no clang without one")
    }
}

impl LlvmTools {
    /// llvm-dis and llc of version 19 or later.
    ///
    /// # Errors
    /// One of them is not there.
    pub fn find() -> Result<Self, HarnessError> {
        let find = |tool: &str| {
            let names = [format!("{tool}-19"), format!("{tool}-20"), tool.to_string()];
            names
                .iter()
                .filter_map(|name| answering(name))
                .find(|(_, version)| major(version).is_some_and(|version| version >= 19))
                .ok_or_else(|| HarnessError::MissingTool {
                    what: "LLVM, to run Apple's compiled kernels,",
                    looked_for: format!("{} of version 19 or later", names.join(", ")),
                    package: "llvm-19".into(),
                })
        };
        let (dis, _) = find("llvm-dis")?;
        let (llc, version) = find("llc")?;
        Ok(Self { dis, llc, version })
    }
}

fn answering(name: &str) -> Option<(PathBuf, String)> {
    let output = Command::new(name).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find(|line| line.contains("version"))?;
    Some((PathBuf::from(name), line.trim().to_string()))
}

fn major(version: &str) -> Option<u32> {
    let (_, number) = version.split_once("version ")?;
    number.split('.').next()?.trim().parse().ok()
}

/// Runs a tool to its end; its failure carries what it printed, from the first error.
///
/// # Errors
/// The tool cannot be started, or fails.
pub(crate) fn run_tool(command: &mut Command, what: &str) -> Result<Output, HarnessError> {
    let failed = |said: String| HarnessError::Tool { what: what.to_string(), said };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // The first error is the one to read; clang's `error:` comes before its notes.
    let from = said
        .lines()
        .position(|line| line.contains("error:") && !line.contains("linker command"))
        .unwrap_or(0);
    Err(failed(said.lines().skip(from).take(20).collect::<Vec<_>>().join("\n")))
}

/// The last lines of a tool's output.
pub(crate) fn tail(said: &str, lines: usize) -> String {
    let all: Vec<&str> = said.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read() {
        assert_eq!(major("Debian clang version 16.0.6 (15~deb12u1)"), Some(16));
        assert_eq!(major("Debian LLVM version 19.1.7"), Some(19));
        assert_eq!(major("no number"), None);
    }

    #[test]
    fn a_tail_keeps_the_end() {
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }
}
