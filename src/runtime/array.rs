//! Arrays of MLX, made from slices and read back.

use std::fmt;

use cxx::UniquePtr;
use half::{bf16, f16};

use super::bridge::{self, ElementKind};
use super::error::{Error, Result};
use super::started;
use crate::exactness::ElementType;

pub(super) fn kind_of(element: ElementType) -> ElementKind {
    match element {
        ElementType::Float32 => ElementKind::Float32,
        ElementType::Float16 => ElementKind::Float16,
        ElementType::Bfloat16 => ElementKind::Bfloat16,
        ElementType::Uint32 => ElementKind::Uint32,
    }
}

pub(super) fn element_of(kind: ElementKind) -> Option<ElementType> {
    match kind {
        ElementKind::Float32 => Some(ElementType::Float32),
        ElementKind::Float16 => Some(ElementType::Float16),
        ElementKind::Bfloat16 => Some(ElementType::Bfloat16),
        ElementKind::Uint32 => Some(ElementType::Uint32),
        _ => None,
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
    impl Sealed for u32 {}
}

/// A Rust type whose slices are MLX's arrays: `f32`, [`struct@f16`], [`bf16`], `u32`.
pub trait Element: bytemuck::Pod + sealed::Sealed {
    /// The type as MLX knows it.
    const TYPE: ElementType;
}

impl Element for f32 {
    const TYPE: ElementType = ElementType::Float32;
}
impl Element for f16 {
    const TYPE: ElementType = ElementType::Float16;
}
impl Element for bf16 {
    const TYPE: ElementType = ElementType::Bfloat16;
}
impl Element for u32 {
    const TYPE: ElementType = ElementType::Uint32;
}

/// An array of MLX: a node of a graph, computed when it is first read or when
/// [`Array::eval`] is called.
///
/// Neither `Send` nor `Sync`, and that is MLX's doing: evaluating an array
/// writes to every node it depends on (`eval_impl` in transforms.cpp sets their
/// status, detaches them and attaches events, under no lock), handles of one
/// node share it, and a stream's encoder belongs to the thread that made the
/// stream (`get_command_encoder` in backend/cpu/encoder.cpp and
/// backend/metal/device.cpp). What has to cross threads goes as a `Vec`.
///
/// ```compile_fail
/// fn needs_send<T: Send>() {}
/// needs_send::<mlx_overlay::runtime::Array>();
/// ```
pub struct Array(UniquePtr<bridge::Array>);

impl Array {
    pub(super) fn new(array: UniquePtr<bridge::Array>) -> Self {
        Self(array)
    }

    pub(super) fn inner(&self) -> &bridge::Array {
        self.0.as_ref().expect("every constructor takes an array that is there")
    }

    pub(super) fn into_inner(self) -> UniquePtr<bridge::Array> {
        self.0
    }

    /// Copies `values`, row by row, into an array of this shape: one length a
    /// dimension, the last one the fastest to change.
    ///
    /// # Errors
    /// The lengths do not multiply to the number of values, or one is beyond
    /// what MLX takes.
    pub fn from_slice<T: Element>(values: &[T], shape: &[usize]) -> Result<Self> {
        started()?;
        let shape = shape.iter().map(|&n| dimension(n)).collect::<Result<Vec<i32>>>()?;
        let bytes = bytemuck::cast_slice(values);
        Ok(Self(bridge::array_from_bytes(bytes, &shape, kind_of(T::TYPE))?))
    }

    /// Evaluates the array and copies its elements out, row by row.
    ///
    /// # Errors
    /// It holds another type, or MLX could not compute it.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if self.element() != Some(T::TYPE) {
            let holds = bridge::array_element_name(self.inner())?;
            return Err(Error::Element { holds, asked: T::TYPE.as_str() });
        }
        let mut values = vec![T::zeroed(); bridge::array_bytes_len(self.inner()) / size_of::<T>()];
        self.read_into(bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Evaluates the array and copies its bytes out, row by row, whatever its
    /// type: what a comparison bit for bit compares.
    ///
    /// # Errors
    /// MLX could not compute it.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; bridge::array_bytes_len(self.inner())];
        self.read_into(&mut bytes)?;
        Ok(bytes)
    }

    fn read_into(&self, bytes: &mut [u8]) -> Result<()> {
        bridge::array_bytes(self.inner(), bytes)?;
        super::guard::log_refused();
        Ok(())
    }

    /// Computes the array, and waits until that is done.
    ///
    /// # Errors
    /// MLX could not.
    pub fn eval(&self) -> Result<()> {
        bridge::eval(self.inner())?;
        super::guard::log_refused();
        Ok(())
    }

    /// The lengths of its dimensions, in elements.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        let shape = bridge::array_shape(self.inner());
        shape.into_iter().map(|n| usize::try_from(n).unwrap_or(0)).collect()
    }

    /// The type of its elements; nothing where it is one that does not cross
    /// the bridge (such as the bytes of an fp mode's scales).
    #[must_use]
    pub fn element(&self) -> Option<ElementType> {
        element_of(bridge::array_element(self.inner()))
    }

    /// A further handle on the same array; no element is copied.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn handle(&self) -> Result<Self> {
        Ok(Self(bridge::array_handle(self.inner())?))
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({:?}, {:?})", self.element(), self.shape())
    }
}

pub(super) fn dimension(n: usize) -> Result<i32> {
    let given = i64::try_from(n).unwrap_or(i64::MAX);
    let what = "a dimension";
    i32::try_from(n).map_err(|_| Error::Request { what, given, takes: "below 2^31" })
}
