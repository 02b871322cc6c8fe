//! A process that holds MLX and one fake device.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::FakeDeviceError;
use crate::architecture::Architecture;
use crate::build::{Build, Kernels};
use crate::product::{Policy, Product};

/// One dispatch, as the device was asked for it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Dispatch {
    /// The kernel's host name.
    pub kernel: String,
    /// Threadgroups, or threads where `grid_in_threads`.
    pub grid: [u64; 3],
    /// Threads a threadgroup.
    pub group: [u64; 3],
    /// Whether the grid counts threads.
    #[serde(default)]
    pub grid_in_threads: bool,
    /// The stream it was asked on, by number in order of making.
    pub stream: u64,
    /// What is bound, by index, where it was asked for.
    #[serde(default)]
    pub arguments: BTreeMap<u32, Argument>,
    /// JIT builds: the instantiation MLX wrote.
    #[serde(default)]
    pub definition: String,
    /// JIT builds: number of the text it was added to.
    #[serde(default)]
    pub source: u64,
}

/// A bound argument.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// A place in a buffer.
    Buffer {
        /// The buffer's length in bytes.
        buffer: u64,
        /// Where in it, in bytes.
        offset: u64,
    },
    /// Bytes handed over with the dispatch.
    Bytes {
        /// They.
        bytes: Vec<u8>,
    },
}

/// What one product became.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    /// The dispatches, in order.
    Dispatched(Vec<Dispatch>),
    /// MLX threw: a kernel it asked for does not exist, or the like.
    Refused {
        /// Its message.
        refused: String,
    },
}

/// Dispatches by kernel family, as the overlay counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FamilyCounts {
    /// `qmv_quad`.
    pub quad: u64,
    /// `qmv`, one vector.
    pub single: u64,
    /// `qmv`, several vectors.
    pub narrow: u64,
    /// `qmv_wide`.
    pub wide: u64,
    /// The overlay's twins.
    pub streamed: u64,
}

/// Both kinds of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Counts {
    /// Affine.
    pub affine: FamilyCounts,
    /// mxfp4, mxfp8, nvfp4.
    pub fp: FamilyCounts,
}

/// How x lies in something larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// Contiguous, from the second value on.
    Shifted,
    /// The same from the third.
    ShiftedByTwo,
    /// Its rows lie apart.
    Apart,
    /// Its matrices lie a value apart, their rows do not.
    MatricesApart,
}

/// What the guard kept from being streamed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Refusals {
    /// Dispatches, since the process started.
    pub refused: u64,
    /// Cells, since the last answer; each is told once.
    pub cells: Vec<Cell>,
}

/// What names a streamed kernel to the guard.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Cell {
    /// MLX's name of the type.
    #[serde(rename = "type")]
    pub number: String,
    /// Bits a weight.
    pub bits: u32,
    /// Weights a scale.
    pub group: u32,
    /// Vectors a tile.
    pub vectors: u32,
    /// Which of `qmv`'s two orders.
    pub fast: bool,
    /// Whether there are several matrices.
    pub batched: bool,
}

/// A product computed three ways; rows are the values' bytes in hexadecimal.
#[derive(Clone, Debug, Deserialize)]
pub struct Computed {
    /// All rows in one call.
    pub block: Vec<String>,
    /// Row by row; for each, one row a matrix of the batch.
    pub chain: Vec<Vec<String>>,
    /// All rows on MLX's CPU backend.
    pub cpu: Vec<String>,
    /// The kernels the block took.
    pub block_kernels: Vec<String>,
    /// The kernels the single rows took.
    pub chain_kernels: Vec<String>,
}

/// MLX on a fake device. The process ends with it.
#[derive(Debug)]
pub struct Device {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Device {
    /// Starts MLX on a device of that architecture. `environment` is added to
    /// this process's own, from which MLX's and the overlay's variables are
    /// taken away.
    ///
    /// # Errors
    /// The program cannot be started, or MLX finds another architecture.
    pub fn start(
        build: &Build,
        kernels: Kernels,
        architecture: Architecture,
        environment: &[(&str, &str)],
    ) -> Result<Self, FakeDeviceError> {
        let program = build.program(kernels);
        let mut command = Command::new(&program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MLX") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .arg(build.library(kernels))
            .env("MLX_METAL_GPU_ARCH", architecture.to_string())
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(FakeDeviceError::io(&program))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(FakeDeviceError::Device {
                name: architecture.to_string(),
                why: "the process has no pipes".into(),
            });
        };
        let output = BufReader::new(output);
        let mut device = Self { name: architecture.to_string(), child, input, output };
        let said = device.ask(&json!({ "op": "architecture" }))?;
        if said["name"] != device.name || said["generation"] != architecture.generation {
            return Err(device.failed(format!("MLX takes it for {said}")));
        }
        Ok(device)
    }

    /// Whether the tree has the overlay's policies.
    ///
    /// # Errors
    /// As for every request: the process ended, or MLX threw.
    pub fn has_policies(&mut self) -> Result<bool, FakeDeviceError> {
        let said = self.ask(&json!({ "op": "architecture" }))?;
        Ok(said["policies"] == true)
    }

    /// Makes a GPU stream and gives its number; 0 is the default one.
    ///
    /// # Errors
    /// As for every request.
    pub fn make_stream(&mut self) -> Result<u64, FakeDeviceError> {
        let said = self.ask(&json!({ "op": "stream" }))?;
        said["stream"].as_u64().ok_or_else(|| self.failed(said.to_string()))
    }

    /// Sets a policy, or takes it back, for the process or for a stream. Says
    /// whether it can have an effect.
    ///
    /// # Errors
    /// As for every request.
    pub fn set_policy(
        &mut self,
        stream: Option<u64>,
        policy: Option<Policy>,
    ) -> Result<bool, FakeDeviceError> {
        let mut request = json!({ "op": "policy", "set": policy });
        if let Some(stream) = stream {
            request["stream"] = stream.into();
        }
        Ok(self.ask(&request)?["effect"] == true)
    }

    /// The overlay's counters since the last call.
    ///
    /// # Errors
    /// As for every request.
    pub fn take_counts(&mut self) -> Result<Counts, FakeDeviceError> {
        let said = self.ask(&json!({ "op": "counts" }))?;
        self.read(said)
    }

    /// Turns the guard of `streamed` on or off.
    ///
    /// # Errors
    /// As for every request.
    pub fn set_guard(&mut self, on: bool) -> Result<Refusals, FakeDeviceError> {
        self.ask_guard(json!({ "on": on }))
    }

    /// Gives the guard's verdict on a kernel: `vectors` a tile, in the fast or
    /// the generic order.
    ///
    /// # Errors
    /// As for every request; no kernel serves the cell.
    pub fn certify(
        &mut self,
        product: &Product,
        (vectors, fast): (u32, bool),
        holds: bool,
    ) -> Result<Refusals, FakeDeviceError> {
        let mut request = json!(product);
        request["vectors"] = vectors.into();
        request["fast"] = fast.into();
        request["holds"] = holds.into();
        self.ask_guard(request)
    }

    /// Names the stream that certifies, or none.
    ///
    /// # Errors
    /// As for every request.
    pub fn set_trial_stream(&mut self, stream: Option<u64>) -> Result<Refusals, FakeDeviceError> {
        self.ask_guard(json!({ "trial": stream }))
    }

    fn ask_guard(&mut self, mut request: Value) -> Result<Refusals, FakeDeviceError> {
        request["op"] = "guard".into();
        let said = self.ask(&request)?;
        self.read(said)
    }

    /// What a product becomes on a stream, for each M: kernels and grids.
    ///
    /// # Errors
    /// As for every request.
    pub fn route(
        &mut self,
        product: &Product,
        stream: u64,
        m: &[u32],
    ) -> Result<Vec<Route>, FakeDeviceError> {
        self.ask_route(json!(product), stream, m)
    }

    /// The same with every argument.
    ///
    /// # Errors
    /// As for every request.
    pub fn route_with_arguments(
        &mut self,
        product: &Product,
        stream: u64,
        m: &[u32],
    ) -> Result<Vec<Route>, FakeDeviceError> {
        let mut request = json!(product);
        request["arguments"] = true.into();
        self.ask_route(request, stream, m)
    }

    /// The same where one w serves every matrix of x.
    ///
    /// # Errors
    /// As for every request.
    pub fn route_of_one_w(
        &mut self,
        product: &Product,
        view: Option<View>,
        m: &[u32],
    ) -> Result<Vec<Route>, FakeDeviceError> {
        let mut request = json!(product);
        request["one_w"] = true.into();
        if let Some(view) = view {
            request["view"] = json!(view);
        }
        self.ask_route(request, 0, m)
    }

    /// The same of an x that is a view of something larger.
    ///
    /// # Errors
    /// As for every request.
    pub fn route_of_view(
        &mut self,
        product: &Product,
        view: View,
        m: &[u32],
    ) -> Result<Vec<Route>, FakeDeviceError> {
        let mut request = json!(product);
        request["view"] = json!(view);
        request["arguments"] = true.into();
        self.ask_route(request, 0, m)
    }

    fn ask_route(
        &mut self,
        mut request: Value,
        stream: u64,
        m: &[u32],
    ) -> Result<Vec<Route>, FakeDeviceError> {
        request["op"] = "route".into();
        request["stream"] = stream.into();
        request["m"] = json!(m);
        let mut said = self.ask(&request)?;
        let routes: Vec<Value> = self.read(said["routes"].take())?;
        routes
            .into_iter()
            .map(|mut route| match route.get_mut("refused") {
                Some(refused) => Ok(Route::Refused { refused: self.read(refused.take())? }),
                None => Ok(Route::Dispatched(self.read(route)?)),
            })
            .collect()
    }

    /// Square products chained on each of the streams in turn, and a policy
    /// that another thread sets as dispatch `change_at` is encoded while the
    /// device holds earlier work.
    ///
    /// # Errors
    /// As for every request.
    pub fn flight(
        &mut self,
        product: &Product,
        m: u32,
        streams: &[u64],
        length: u32,
        change_at: u32,
        (changed, to): (Option<u64>, Option<Policy>),
    ) -> Result<Vec<Dispatch>, FakeDeviceError> {
        let mut request = json!(product);
        request["op"] = "flight".into();
        request["m"] = m.into();
        request["streams"] = json!(streams);
        request["length"] = length.into();
        request["change_at"] = change_at.into();
        request["change"] = json!({ "set": to });
        if let Some(stream) = changed {
            request["change"]["stream"] = stream.into();
        }
        let mut said = self.ask(&request)?;
        self.read(said["dispatches"].take())
    }

    /// From here on dispatches are run by this kernel library.
    ///
    /// # Errors
    /// As for every request: it is no library, or not of the harness.
    pub fn use_library(&mut self, library: &Path) -> Result<(), FakeDeviceError> {
        self.ask(&json!({ "op": "library", "path": library })).map(drop)
    }

    /// Computes a random product of M rows.
    ///
    /// # Errors
    /// As for every request.
    pub fn compute(
        &mut self,
        product: &Product,
        m: u32,
        seed: u64,
    ) -> Result<Computed, FakeDeviceError> {
        let mut request = json!(product);
        request["op"] = "compute".into();
        request["m"] = m.into();
        request["seed"] = seed.into();
        let said = self.ask(&request)?;
        self.read(said)
    }

    /// Computes some rows, in one call, of the product that [`Self::compute`]
    /// draws for this seed and M. Rows are their values' bytes; those of a
    /// batch's matrices follow one another.
    ///
    /// # Errors
    /// As for every request.
    pub fn rows(
        &mut self,
        product: &Product,
        m: u32,
        seed: u64,
        rows: Range<usize>,
    ) -> Result<Vec<Vec<u8>>, FakeDeviceError> {
        let mut request = json!(product);
        request["op"] = "rows".into();
        request["m"] = m.into();
        request["seed"] = seed.into();
        request["from"] = rows.start.into();
        request["to"] = rows.end.into();
        let mut said = self.ask(&request)?;
        let rows: Vec<String> = self.read(said["rows"].take())?;
        rows.iter()
            .map(|row| bytes_of(row).ok_or_else(|| self.failed(format!("a row is {row}"))))
            .collect()
    }

    /// JIT builds: the text instantiations were added to.
    ///
    /// # Errors
    /// As for every request.
    pub fn source(&mut self, number: u64) -> Result<String, FakeDeviceError> {
        let said = self.ask(&json!({ "op": "source", "number": number }))?;
        said["text"].as_str().map(str::to_string).ok_or_else(|| self.failed(said.to_string()))
    }

    fn ask(&mut self, request: &Value) -> Result<Value, FakeDeviceError> {
        let mut line = String::new();
        let said = writeln!(self.input, "{request}")
            .and_then(|()| self.input.flush())
            .and_then(|()| self.output.read_line(&mut line));
        match said {
            Ok(0) => Err(self.failed("the process ended; its standard error says why")),
            Err(error) => Err(self.failed(error)),
            Ok(_) => {
                let answer: Value =
                    serde_json::from_str(&line).map_err(|error| self.failed(error))?;
                match answer.get("error") {
                    Some(error) => Err(self.failed(error.as_str().unwrap_or("no reason"))),
                    None => Ok(answer),
                }
            }
        }
    }

    fn read<T: serde::de::DeserializeOwned>(&self, said: Value) -> Result<T, FakeDeviceError> {
        serde_json::from_value(said).map_err(|error| self.failed(error))
    }

    fn failed(&self, why: impl ToString) -> FakeDeviceError {
        FakeDeviceError::Device { name: self.name.clone(), why: why.to_string() }
    }
}

/// The bytes that hexadecimal digits stand for.
pub(crate) fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
}

impl Drop for Device {
    fn drop(&mut self) {
        // Nothing it holds outlives it; a process that hangs is ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
