//! MLX with the overlay laid on it, from Rust: quantized matrices, their
//! products, and the policy that chooses the kernels. Feature `runtime`.
//!
//! ```no_run
//! use mlx_overlay::runtime::*;
//!
//! # fn main() -> Result<()> {
//! let stream = Stream::new(Device::best()?)?;
//! let weight = Array::from_slice(&vec![0.5f32; 64 * 512], &[64, 512])?; // N × K
//! let how = Quantization { mode: Mode::Affine, group_size: 64, bits: 4 };
//! let weight = Quantized::new(&weight, how, &stream)?;
//! let x = Array::from_slice(&vec![1f32; 4 * 512], &[4, 512])?; // M × K
//! let y = weight.matmul(&x, Orientation::Transposed, &stream)?; // M × N
//! let y: Vec<f32> = y.to_vec()?;
//! # Ok(()) }
//! ```
//!
//! The first call of a process checks that the library it is linked with is the
//! one this crate was compiled for. MLX's exceptions arrive as [`Error::Mlx`]
//! with their text. Arrays and streams stay in their thread; see [`Array`] for
//! MLX's reasons.

mod array;
mod bridge;
mod error;
mod guard;
mod policy;
mod probe;
mod quantize;
mod stream;

use std::sync::OnceLock;

pub use array::{Array, Element};
pub use error::{Error, Result};
pub use guard::{
    Enforcement, Outcome, Setting, guarded, machine, refused_dispatches, set_policy, verdicts,
};
pub use half::{bf16, f16};
pub use policy::{Effect, Scope, dispatches, effect, effective_policy, policy, reset_dispatches};
pub use probe::{Draws, Report, probe};
pub use quantize::{Orientation, Quantized};
pub use stream::{Device, Stream, StreamId};

pub use crate::exactness::{
    Cell, Dispatches, ElementType, Family, Mode, Policy, Quantization, Verdict, Verdicts,
};

/// The key of the library that this crate was compiled for.
const LIBRARY_KEY: &str = env!("MLX_OVERLAY_LIBRARY_KEY");

/// What is linked, and what it runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// MLX's version, as its header states it.
    pub mlx_version: String,
    /// The commit that the overlay's series was made for, or `none` where the
    /// tree did not tell.
    pub pin: &'static str,
    /// The library's key, 32 hexadecimal digits: of pin, source, toolchain,
    /// flags, target, features and the laid tree's files.
    pub library_key: String,
    /// Whether the library holds the overlay's policy.
    pub overlay: bool,
    /// Whether the Metal backend is there.
    pub metal: bool,
    /// The best device's name, and its architecture in brackets, such as
    /// `Apple M3 Ultra (applegpu_g15d)`.
    pub device: String,
    /// Its architecture alone.
    pub architecture: String,
    /// The build of the operating system.
    pub os_build: String,
}

/// Says what is linked, and what it runs on.
///
/// # Errors
/// The library is stale, or MLX cannot tell.
pub fn info() -> Result<Info> {
    let best = Device::best()?;
    let properties = bridge::device_properties(best.is_gpu())?;
    let property = |name: &str| {
        let found = properties.iter().find(|p| p.name == name);
        found.map_or_else(|| "unknown".to_owned(), |p| p.value.clone())
    };
    let architecture = property("architecture");
    Ok(Info {
        mlx_version: bridge::mlx_version()?,
        pin: env!("MLX_OVERLAY_PIN"),
        library_key: bridge::library_key(),
        overlay: has_overlay(),
        metal: bridge::metal_is_available()?,
        device: format!("{} ({architecture})", property("device_name")),
        architecture,
        os_build: bridge::os_build()?,
    })
}

fn has_overlay() -> bool {
    bridge::has_overlay()
}

/// Checks once that the linked library is the right one, turns the guard on, and
/// tells MLX where its compiled Metal kernels are.
fn started() -> Result<()> {
    static LINKED: OnceLock<String> = OnceLock::new();
    let linked = LINKED.get_or_init(bridge::library_key);
    if linked != LIBRARY_KEY {
        let (compiled, linked) = (LIBRARY_KEY.to_owned(), linked.clone());
        return Err(Error::StaleLibrary { compiled, linked });
    }
    static READY: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let ready =
        || guard::turn_on().and_then(|()| place_metallib()).map_err(|e| e.what().to_owned());
    READY.get_or_init(ready).clone().map_err(Error::Mlx)
}

/// MLX compiled in where its build folder had them, which the next build may
/// change; the library's own copy never changes. A variable of the name moves
/// them, for a program that was installed elsewhere.
fn place_metallib() -> std::result::Result<(), cxx::Exception> {
    let given = std::env::var("MLX_OVERLAY_METALLIB").ok();
    let path = given.unwrap_or_else(|| env!("MLX_OVERLAY_METALLIB").to_owned());
    match path.is_empty() {
        true => Ok(()),
        false => bridge::set_metallib_path(&path),
    }
}
