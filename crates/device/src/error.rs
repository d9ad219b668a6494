//! Why a device cannot do what it was asked, in words for the user.

use crate::Errno;

/// Why a device does not do what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No device file can be opened.
    #[error("{path}: {}", said(*errno))]
    Open {
        /// Which.
        path: &'static str,
        /// Why.
        errno: Errno,
    },
    /// The kernel does not let programs choose addresses.
    #[error("this kernel or GPU has no MSM_INFO_SET_IOVA ({}): captures cannot be replayed at their addresses", said(*.0))]
    NoSetIova(Errno),
    /// A buffer cannot be where the capture has it.
    #[error("cannot place {size} bytes at {iova:#x}: {}", said(*errno))]
    Taken {
        /// Where.
        iova: u64,
        /// Bytes.
        size: u64,
        /// Why.
        errno: Errno,
    },
    /// An address that the device does not give out.
    #[error("{iova:#x} is not one of the addresses that the device gives out, {first:#x} to {last:#x}")]
    Beyond {
        /// The address.
        iova: u64,
        /// The first one that it gives out.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// A stream that is in no buffer.
    #[error("the command stream at {0:#x} is in no buffer")]
    NoStream(u64),
    /// Any other request that was refused.
    #[error("{request}: {}", said(*errno))]
    Refused {
        /// Its name.
        request: &'static str,
        /// Why.
        errno: Errno,
    },
}

/// What an error is called.
fn said(errno: Errno) -> String {
    let name = match errno {
        Errno::EPERM => "EPERM, not permitted",
        Errno::ENOENT => "ENOENT, no such device file",
        Errno(12) => "ENOMEM, no memory",
        Errno::EACCES => "EACCES, not permitted: is this user in the group of the device?",
        Errno::EBUSY => "EBUSY, the address is in use",
        Errno::EINVAL => "EINVAL, not accepted",
        Errno::ENOTTY => "ENOTTY, no such request",
        Errno::ENOSPC => "ENOSPC, the address is in use",
        Errno::ENOSYS => "ENOSYS, no such request",
        Errno::EOPNOTSUPP => "EOPNOTSUPP, not supported",
        Errno::ETIMEDOUT => "ETIMEDOUT, not in time",
        Errno(number) => return format!("error {number}"),
    };
    name.to_owned()
}
