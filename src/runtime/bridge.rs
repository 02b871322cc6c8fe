//! The border to C++: what crosses it, and nothing else.
//!
//! Everything here that can fail is a `Result`: MLX's exceptions arrive with
//! their text, and so does whatever else C++ may throw (see `bridge.h`).

// The macro below writes the unsafe code of the border. The functions behind it
// check what MLX does not; that the parts of a matrix fit each other `quantize`
// has checked.
#![allow(unsafe_code, missing_docs)]

pub(super) use ffi::*;

#[cxx::bridge(namespace = "mlx_overlay")]
mod ffi {
    /// A type of elements that crosses the border.
    #[derive(Debug)]
    enum ElementKind {
        Float32,
        Float16,
        Bfloat16,
        Uint32,
        Other,
    }

    /// A stream, by what MLX knows it by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct StreamKey {
        index: i32,
        gpu: bool,
    }

    /// The arrays of a quantized matrix; `biases` is null in the modes that
    /// have none.
    struct Parts {
        packed: UniquePtr<Array>,
        scales: UniquePtr<Array>,
        biases: UniquePtr<Array>,
    }

    /// How a matrix is quantized, in MLX's words.
    struct Scheme {
        mode: String,
        group_size: i32,
        bits: i32,
    }

    /// What names a streamed kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct CellKey {
        element: ElementKind,
        bits: i32,
        group_size: i32,
        vectors: i32,
        fast: bool,
        batched: bool,
    }

    /// A property of a device.
    struct Property {
        name: String,
        value: String,
    }

    unsafe extern "C++" {
        include!("mlx-overlay/src/runtime/bridge.h");

        type Array;

        fn array_from_bytes(
            bytes: &[u8],
            shape: &[i32],
            element: ElementKind,
        ) -> Result<UniquePtr<Array>>;
        fn array_bytes(array: &Array, out: &mut [u8]) -> Result<()>;
        fn array_shape(array: &Array) -> Vec<i32>;
        fn array_element(array: &Array) -> ElementKind;
        fn array_element_name(array: &Array) -> Result<String>;
        fn array_bytes_len(array: &Array) -> usize;
        fn array_handle(array: &Array) -> Result<UniquePtr<Array>>;
        fn eval(array: &Array) -> Result<()>;

        fn new_stream(gpu: bool) -> Result<StreamKey>;
        fn synchronize(stream: StreamKey) -> Result<()>;

        fn quantize(weight: &Array, scheme: &Scheme, stream: StreamKey) -> Result<Parts>;
        fn dequantize(
            parts: &Parts,
            scheme: &Scheme,
            stream: StreamKey,
        ) -> Result<UniquePtr<Array>>;
        fn quantized_matmul(
            x: &Array,
            parts: &Parts,
            scheme: &Scheme,
            transpose: bool,
            stream: StreamKey,
        ) -> Result<UniquePtr<Array>>;

        fn library_key() -> String;
        fn mlx_version() -> Result<String>;
        fn metal_is_available() -> Result<bool>;
        fn set_metallib_path(path: &str) -> Result<()>;
        fn device_count(gpu: bool) -> Result<i32>;
        fn device_properties(gpu: bool) -> Result<Vec<Property>>;
        fn os_build() -> Result<String>;

        fn has_overlay() -> bool;
        fn has_guard() -> bool;
        fn policy_has_effect() -> Result<bool>;
        fn set_process_policy(policy: i32) -> Result<bool>;
        fn set_stream_policy(stream: StreamKey, policy: i32) -> Result<bool>;
        fn process_policy() -> Result<i32>;
        fn stream_policy(stream: StreamKey) -> Result<i32>;
        fn effective_policy(stream: StreamKey) -> Result<i32>;
        fn dispatches(fp: bool, family: i32) -> Result<u64>;
        fn reset_dispatches() -> Result<()>;
        fn set_guard(on: bool) -> Result<()>;
        fn guard_is_on() -> Result<bool>;
        fn set_trial_stream(stream: StreamKey) -> Result<()>;
        fn clear_trial_stream() -> Result<()>;
        fn certify_cell(cell: CellKey, holds: bool) -> Result<()>;
        fn refused_dispatches() -> Result<u64>;
        fn take_refused_cells() -> Result<Vec<CellKey>>;
    }
}
