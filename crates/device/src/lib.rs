//! Adreno GPUs of this machine, through the drivers of their kernels: memory at the addresses that a capture has, and submits.
//!
//! [`MsmDevice`] speaks with the DRM driver msm, [`KgslDevice`] with Qualcomm's KGSL. What they say goes through [`Kernel`], which is
//! the one place that asks the operating system; tests answer in its stead. Never: decodes what it submits, looks for a
//! device that was not asked for.

mod conversation;
mod error;
mod kgsl;
mod message;
mod msm;
#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
mod os;

pub use conversation::{Conversation, Exchange};
pub use error::DeviceError;
pub use kgsl::KgslDevice;
pub use msm::MsmDevice;
#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
use os::OsKernel;

/// Which driver is spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The DRM driver msm.
    Msm,
    /// KGSL.
    Kgsl,
}

impl Driver {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Msm => "msm",
            Driver::Kgsl => "KGSL",
        }
    }
}

/// Opens the GPU of a driver.
///
/// # Errors
/// When there is none that can be opened, or it cannot replay; on other systems than Linux and Android always.
pub fn open(driver: Driver) -> Result<Box<dyn SubmitDevice>, DeviceError> {
    #[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
    return Ok(match driver {
        Driver::Msm => Box::new(MsmDevice::open(OsKernel::open_msm()?)?),
        Driver::Kgsl => Box::new(KgslDevice::open(OsKernel::open_kgsl()?)?),
    });
    #[cfg(not(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64")))]
    Err(DeviceError::Open { path: driver.name(), errno: Errno::ENOSYS })
}

/// The number of an error of the kernel: 1 is EPERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Not permitted.
    pub const EPERM: Errno = Errno(1);
    /// No such file.
    pub const ENOENT: Errno = Errno(2);
    /// Not permitted to open.
    pub const EACCES: Errno = Errno(13);
    /// The address is another's.
    pub const EBUSY: Errno = Errno(16);
    /// An argument means nothing to the kernel.
    pub const EINVAL: Errno = Errno(22);
    /// No such request.
    pub const ENOTTY: Errno = Errno(25);
    /// No room at the address.
    pub const ENOSPC: Errno = Errno(28);
    /// No such request.
    pub const ENOSYS: Errno = Errno(38);
    /// Not for this GPU.
    pub const EOPNOTSUPP: Errno = Errno(95);
    /// It has not come to its end.
    pub const ETIMEDOUT: Errno = Errno(110);
}

/// An array that a request points to. Its address goes into the request at an offset.
#[derive(Debug)]
pub struct PointedTo<'a> {
    /// Where in the request its address is, 64 bits.
    pub at: usize,
    /// Its bytes, which the kernel may write over.
    pub bytes: &'a mut [u8],
}

/// Memory of the GPU that the CPU sees too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapping(pub usize);

/// What a device is asked through: an open file of the kernel's.
pub trait Kernel {
    /// Asks; the kernel writes its answer over the request and its arrays.
    ///
    /// # Errors
    /// The kernel's number, when it refuses.
    fn ask(&mut self, code: u32, request: &mut [u8], arrays: &mut [PointedTo<'_>]) -> Result<(), Errno>;

    /// Maps memory of the device from an offset that the kernel has named.
    ///
    /// # Errors
    /// The kernel's number, when it refuses.
    fn map(&mut self, offset: u64, size: u64) -> Result<Mapping, Errno>;

    /// Writes to mapped memory; what is past its end is left out.
    fn write(&mut self, mapping: Mapping, offset: u64, bytes: &[u8]);

    /// Reads mapped memory; `None` past its end.
    fn read(&self, mapping: Mapping, offset: u64, size: u64) -> Option<Vec<u8>>;

    /// Takes a mapping away.
    fn unmap(&mut self, mapping: Mapping);

    /// Seconds and nanoseconds of the clock that deadlines are of.
    fn now(&self) -> (i64, i64);
}

/// A command stream: its address and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceStream {
    /// Where it begins.
    pub iova: u64,
    /// Bytes.
    pub size: u32,
}

/// How a submit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceEnd {
    /// It was executed.
    Done,
    /// The kernel has given it up, or its fence was not written in time.
    Hung,
}

/// A GPU with memory at addresses that the caller chooses.
pub trait SubmitDevice {
    /// Addresses that buffers may have.
    fn addresses(&self) -> std::ops::Range<u64>;

    /// Makes a buffer with contents; the rest of it is zero.
    ///
    /// # Errors
    /// If no buffer can be placed at the address.
    fn load(&mut self, iova: u64, size: u64, contents: &[u8]) -> Result<(), DeviceError>;

    /// Executes streams that are in buffers, and waits for their end.
    ///
    /// # Errors
    /// When the kernel does not take them.
    fn submit(&mut self, streams: &[DeviceStream]) -> Result<DeviceEnd, DeviceError>;

    /// What is in a buffer; `None` where not all of it is in one.
    ///
    /// # Errors
    /// When the kernel does not let it be read.
    fn read(&mut self, iova: u64, size: u64) -> Result<Option<Vec<u8>>, DeviceError>;

    /// Takes all buffers away.
    ///
    /// # Errors
    /// When the kernel does not take one back; the others are gone all the same.
    fn clear(&mut self) -> Result<(), DeviceError>;
}
