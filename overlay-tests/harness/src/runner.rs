//! A kernel library as a process: dispatches go in, outputs come out. The
//! other side is `cpp/serve.cpp`.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::HarnessError;
use crate::toolchain::tail;

/// A buffer of a dispatch.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its index in the kernel's argument table.
    pub index: u32,
    /// Whether the kernel writes it.
    pub is_output: bool,
    /// Its contents before the dispatch, exactly as long as it is.
    pub bytes: Vec<u8>,
}

/// In which order the host runs what hardware runs at once. A kernel whose
/// result depends on it races with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Threadgroups, simdgroups and lanes by their numbers.
    Ascending,
    /// The last one first.
    Descending,
}

/// One `dispatch_threadgroups`.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The kernel's host name.
    pub kernel: String,
    /// Threadgroups.
    pub grid: [u32; 3],
    /// Threads a threadgroup.
    pub group: [u32; 3],
    /// In which order they are run.
    pub sweep: Sweep,
    /// What is bound.
    pub buffers: Vec<Buffer>,
}

/// CPU time in seconds after which a kernel is taken not to end. The longest
/// dispatch of the full set takes a few.
pub const CPU_SECONDS: u32 = 300;

/// A process that runs dispatches.
#[derive(Debug)]
pub struct Runner {
    program: PathBuf,
    seconds: u32,
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// What it prints: a file without a name, so that nothing is left of it.
    errors: File,
}

impl Runner {
    /// Starts the program, each dispatch with [`CPU_SECONDS`].
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path) -> Result<Self, HarnessError> {
        Self::start_for(program, CPU_SECONDS)
    }

    /// The same, each dispatch with so many seconds of CPU time.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_for(program: &Path, seconds: u32) -> Result<Self, HarnessError> {
        let errors = tempfile::tempfile().map_err(HarnessError::io(program))?;
        let stderr = errors.try_clone().map_err(HarnessError::io(program))?;
        let mut child = Command::new(program)
            .arg(seconds.to_string())
            // The fibers' stacks are the harness's own.
            .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
            .env("UBSAN_OPTIONS", "print_stacktrace=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(HarnessError::io(program))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(HarnessError::Tool {
                what: "starting the kernels".into(),
                said: "the process has no pipes".into(),
            });
        };
        Ok(Self { program: program.to_path_buf(), seconds, child, input, output, errors })
    }

    /// Runs one dispatch and gives the output buffers' contents. The inner
    /// error says what the kernel did wrong; the process is then started anew.
    ///
    /// # Errors
    /// The process cannot be started again.
    pub fn run(
        &mut self,
        dispatch: &Dispatch,
    ) -> Result<Result<Vec<Vec<u8>>, String>, HarnessError> {
        match self.converse(dispatch) {
            Ok(answer) => Ok(answer),
            Err(_) => {
                let why = self.obituary();
                *self = Self::start_for(&self.program, self.seconds)?;
                Ok(Err(why))
            }
        }
    }

    fn converse(&mut self, dispatch: &Dispatch) -> io::Result<Result<Vec<Vec<u8>>, String>> {
        self.input.write_all(&request(dispatch))?;
        self.input.flush()?;
        if read_word(&mut self.output)? != 0 {
            let length = read_word(&mut self.output)? as usize;
            let why = read_bytes(&mut self.output, length)?;
            return Ok(Err(String::from_utf8_lossy(&why).into_owned()));
        }
        let mut outputs = Vec::new();
        for buffer in dispatch.buffers.iter().filter(|buffer| buffer.is_output) {
            outputs.push(read_bytes(&mut self.output, buffer.bytes.len())?);
        }
        Ok(Ok(outputs))
    }

    /// Why the process ended: what the sanitizer printed, or the signal.
    fn obituary(&mut self) -> String {
        let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        let mut said = String::new();
        let read = self.errors.rewind().and_then(|()| self.errors.read_to_string(&mut said));
        match (read, said.trim()) {
            (Ok(_), said) if !said.is_empty() => {
                let first =
                    said.lines().find(|l| l.contains("ERROR") || l.contains("runtime error"));
                first.map_or_else(|| tail(said, 5), |line| line.trim().to_string())
            }
            _ => status,
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Its input closes with it, and it ends; a child that hangs is killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn request(dispatch: &Dispatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_le_bytes());
    word(&mut bytes, dispatch.kernel.len() as u32);
    bytes.extend(dispatch.kernel.as_bytes());
    for value in dispatch.grid.into_iter().chain(dispatch.group) {
        word(&mut bytes, value);
    }
    word(&mut bytes, u32::from(dispatch.sweep == Sweep::Descending));
    word(&mut bytes, dispatch.buffers.len() as u32);
    for buffer in &dispatch.buffers {
        word(&mut bytes, buffer.index);
        word(&mut bytes, u32::from(buffer.is_output));
        bytes.extend((buffer.bytes.len() as u64).to_le_bytes());
        bytes.extend(&buffer.bytes);
    }
    bytes
}

fn read_word(from: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read_bytes(from: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}
