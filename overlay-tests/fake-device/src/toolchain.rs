//! The programs and headers the build needs.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::FakeDeviceError;

/// What was found.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// clang++ 16 to 19: MLX's blocks need clang, and g++ does not manage.
    pub clangxx: PathBuf,
    /// clang of the same version.
    pub clang: PathBuf,
    /// What it says of itself.
    pub version: String,
}

/// Header, package: what MLX's CPU backend and the fake device include.
const HEADERS: [(&str, &str); 5] = [
    ("Block.h", "libblocksruntime-dev"),
    ("cblas.h", "libopenblas-dev"),
    ("lapacke.h", "liblapacke-dev"),
    ("fmt/format.h", "libfmt-dev"),
    ("nlohmann/json.hpp", "nlohmann-json3-dev"),
];

/// Program, package.
const PROGRAMS: [(&str, &str); 4] =
    [("cmake", "cmake"), ("ninja", "ninja-build"), ("ccache", "ccache"), ("bash", "bash")];

impl Toolchain {
    /// Looks for everything.
    ///
    /// # Errors
    /// The first thing that is not there, with its package.
    pub fn find() -> Result<Self, FakeDeviceError> {
        for (program, package) in PROGRAMS {
            if said(program, "--version").is_none() {
                return Err(FakeDeviceError::Missing { what: program.into(), package });
            }
        }
        let (suffix, version) = ["-16", "-17", "-18", "-19"]
            .iter()
            .find_map(|suffix| Some((suffix, said(&format!("clang++{suffix}"), "--version")?)))
            .ok_or(FakeDeviceError::Missing {
                what: "clang++ 16 to 19".into(),
                package: "clang-16",
            })?;
        let found = Self {
            clangxx: format!("clang++{suffix}").into(),
            clang: format!("clang{suffix}").into(),
            version,
        };
        found.check_headers()?;
        Ok(found)
    }

    fn check_headers(&self) -> Result<(), FakeDeviceError> {
        let probe: String = HEADERS
            .iter()
            .map(|(header, _)| format!("#if !__has_include(<{header}>)\nabsent {header}\n#endif\n"))
            .collect();
        let printed = run_with_input(
            Command::new(&self.clangxx).args(["-x", "c++", "-E", "-P", "-"]),
            "looking for headers",
            &probe,
        )?;
        match HEADERS.iter().find(|(header, _)| printed.contains(&format!("absent {header}"))) {
            Some((header, package)) => {
                Err(FakeDeviceError::Missing { what: format!("the header {header}"), package })
            }
            None => Ok(()),
        }
    }
}

fn said(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next().unwrap_or_default().to_string())
}

/// Runs a tool to its end and gives its standard output; its failure carries
/// the end of what it printed.
pub(crate) fn run(command: &mut Command, what: &str) -> Result<String, FakeDeviceError> {
    let failed = |said: String| FakeDeviceError::Tool { what: what.to_string(), said };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let all = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = all.lines().collect();
    Err(failed(lines[lines.len().saturating_sub(40)..].join("\n")))
}

fn run_with_input(
    command: &mut Command,
    what: &str,
    input: &str,
) -> Result<String, FakeDeviceError> {
    let failed = |error: std::io::Error| FakeDeviceError::Tool {
        what: what.to_string(),
        said: error.to_string(),
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
