//! Requests as bytes: fields in order, in the byte order of this machine, and their numbers.
//!
//! Never: padding that is not written down. The structures of both drivers are given field by field where they are used.

use crate::{DeviceError, Kernel, PointedTo};
use std::ops::Range;

/// The request changes what it points to, in both directions (`_IOWR`).
pub const IOWR: u32 = 3;
/// The kernel only reads it (`_IOW`).
pub const IOW: u32 = 1;

/// The number of a request with a structure of so many bytes.
pub const fn code(direction: u32, group: u8, number: u8, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (group as u32) << 8 | number as u32
}

/// A structure that is being put together.
#[derive(Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    pub fn u32(mut self, value: u32) -> Message {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub fn u64(mut self, value: u64) -> Message {
        self.0.extend(value.to_ne_bytes());
        self
    }
}

/// A field of an answer; 0 past its end.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|field| field.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The same of 64 bits.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|field| field.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// Asks a kernel for what a driver cannot do without. `request` is the name of the request in messages.
pub fn ask(
    kernel: &mut impl Kernel,
    request: &'static str,
    code: u32,
    bytes: &mut [u8],
    arrays: &mut [PointedTo<'_>],
) -> Result<(), DeviceError> {
    kernel.ask(code, bytes, arrays).map_err(|errno| DeviceError::Refused { request, errno })
}

/// The address after a buffer that lies among the addresses of a device.
pub fn end_among(addresses: &Range<u64>, iova: u64, size: u64) -> Result<u64, DeviceError> {
    let end = iova.checked_add(size).filter(|&end| iova >= addresses.start && end <= addresses.end);
    let last = addresses.end.saturating_sub(1);
    end.ok_or(DeviceError::Beyond { iova, first: addresses.start, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_headers() {
        assert_eq!(code(IOWR, b'd', 0x40, 24), 0xc018_6440, "DRM_IOCTL_MSM_GET_PARAM");
        assert_eq!(code(IOW, b'd', 0x47, 32), 0x4020_6447, "DRM_IOCTL_MSM_WAIT_FENCE");
        assert_eq!(code(IOWR, 9, 0x4a, 64), 0xc040_094a, "IOCTL_KGSL_GPU_COMMAND");
    }
}
