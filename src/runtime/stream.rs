//! Streams: the queues that MLX computes on.

use std::marker::PhantomData;

use super::bridge::{self, StreamKey};
use super::error::Result;
use super::started;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    Cpu,
    /// The GPU.
    Gpu,
}

impl Device {
    /// The device that this MLX is best at: the GPU where it has one.
    ///
    /// # Errors
    /// The library is stale, or MLX cannot tell.
    pub fn best() -> Result<Self> {
        started()?;
        Ok(if bridge::device_count(true)? > 0 { Device::Gpu } else { Device::Cpu })
    }

    pub(super) fn is_gpu(self) -> bool {
        self == Device::Gpu
    }
}

/// The name of a stream, good in every thread; what a policy is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId(pub(super) StreamKey);

/// A stream of this thread. It lives as long as the thread does.
///
/// Neither `Send` nor `Sync`: MLX keeps a stream's encoder in a variable of
/// the thread that made it, and refuses another thread's work on it.
///
/// ```compile_fail
/// fn needs_send<T: Send>() {}
/// needs_send::<mlx_overlay::runtime::Stream>();
/// ```
#[derive(Debug)]
pub struct Stream {
    key: StreamKey,
    of_this_thread: PhantomData<*const ()>,
}

impl Stream {
    /// A new stream on the device, for this thread.
    ///
    /// # Errors
    /// This MLX has no such device, or the library is stale.
    pub fn new(device: Device) -> Result<Self> {
        started()?;
        Ok(Self { key: bridge::new_stream(device.is_gpu())?, of_this_thread: PhantomData })
    }

    /// Waits until everything given to the stream is done.
    ///
    /// # Errors
    /// What MLX says.
    pub fn synchronize(&self) -> Result<()> {
        Ok(bridge::synchronize(self.key)?)
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> StreamId {
        StreamId(self.key)
    }

    /// The device it is on.
    #[must_use]
    pub fn device(&self) -> Device {
        if self.key.gpu { Device::Gpu } else { Device::Cpu }
    }

    pub(super) fn key(&self) -> StreamKey {
        self.key
    }
}
