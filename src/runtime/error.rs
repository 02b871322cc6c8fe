//! What can go wrong between Rust and MLX.

use mlx_overlay_engine::cache::CacheError;

use crate::exactness::VerdictsError;

/// Why MLX did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// MLX threw; the text is its own.
    #[error("{0}")]
    Mlx(String),
    /// The library that is linked is not the one this crate was compiled for.
    #[error(
        "this program was compiled for MLX library {compiled} and is linked with {linked}: \
         build it again (`cargo clean -p mlx-overlay`, then `cargo build`)"
    )]
    StaleLibrary {
        /// The key compiled into this crate.
        compiled: String,
        /// The key found in the library.
        linked: String,
    },
    /// The array holds another type than the one asked for.
    #[error("the array holds {holds}, not {asked}")]
    Element {
        /// What it holds.
        holds: String,
        /// What was asked for.
        asked: &'static str,
    },
    /// A number that the request makes no sense with.
    #[error("{what} is {given}; it must be {takes}")]
    Request {
        /// Which number.
        what: &'static str,
        /// What it was.
        given: i64,
        /// What it may be.
        takes: &'static str,
    },
    /// The verdicts on the streamed kernels cannot be kept.
    #[error(transparent)]
    Verdicts(#[from] VerdictsError),
    /// There is no folder to keep verdicts in.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// What this module's functions give.
pub type Result<T> = std::result::Result<T, Error>;

impl From<cxx::Exception> for Error {
    fn from(exception: cxx::Exception) -> Self {
        Error::Mlx(exception.what().to_owned())
    }
}
