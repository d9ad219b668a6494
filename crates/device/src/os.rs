//! The operating system: device files, requests and mapped memory. All of the project's `unsafe` is here.
//!
//! Never: a request that a device has not composed.

#![allow(unsafe_code, reason = "requests and mappings of the kernel take addresses of this process")]

use crate::message::{IOWR, Message, code};
use crate::{DeviceError, Errno, Kernel, Mapping, PointedTo};
use rustix::fs::{Mode, OFlags, open};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::ptr;

/// Where render nodes are, and the numbers that they have.
const RENDER_NODES: &str = "/dev/dri/renderD128 to renderD191";
const KGSL: &str = "/dev/kgsl-3d0";
const VERSION: u32 = code(IOWR, b'd', 0, 64);
/// Where that request has the address of the driver's name.
const VERSION_NAME: usize = 24;

/// An open device file.
pub(crate) struct OsKernel {
    file: OwnedFd,
    /// Address and bytes of what is mapped; `None` since it was taken away.
    mappings: Vec<Option<(*mut u8, usize)>>,
}

impl OsKernel {
    /// The first render node of the driver msm.
    ///
    /// # Errors
    /// [`DeviceError::Open`] with why the last one could not be opened, or that there is none.
    pub(crate) fn open_msm() -> Result<OsKernel, DeviceError> {
        let mut why = Errno::ENOENT;
        for number in 128..192 {
            match OsKernel::open(&format!("/dev/dri/renderD{number}")) {
                Ok(kernel) if kernel.driver().as_deref() == Some("msm") => return Ok(kernel),
                Err(errno) if errno != Errno::ENOENT => why = errno,
                _ => {}
            }
        }
        Err(DeviceError::Open { path: RENDER_NODES, errno: why })
    }

    /// The GPU of KGSL.
    ///
    /// # Errors
    /// [`DeviceError::Open`].
    pub(crate) fn open_kgsl() -> Result<OsKernel, DeviceError> {
        OsKernel::open(KGSL).map_err(|errno| DeviceError::Open { path: KGSL, errno })
    }

    fn open(path: &str) -> Result<OsKernel, Errno> {
        let file = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(errno)?;
        Ok(OsKernel { file, mappings: Vec::new() })
    }

    /// What the driver of a render node is called.
    fn driver(&self) -> Option<String> {
        let mut name = [0u8; 16];
        // Version, and padding; the size and address of the name; neither date nor description.
        let request = Message::default().u64(0).u64(0).u64(name.len() as u64).u64(0);
        let mut request = request.u64(0).u64(0).u64(0).u64(0).0;
        let address = name.as_mut_ptr().expose_provenance() as u64;
        request.get_mut(VERSION_NAME..)?.get_mut(..8)?.copy_from_slice(&address.to_ne_bytes());
        self.call(VERSION, &mut request).ok()?;
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        Some(String::from_utf8_lossy(&name[..length]).into_owned())
    }

    fn call(&self, code: u32, request: &mut [u8]) -> Result<(), Errno> {
        loop {
            let asked = Request { code, bytes: request };
            // SAFETY: the code holds the size of the structure, and `Request` refuses one of another size; addresses in it are of
            // memory that outlives the call.
            match unsafe { ioctl(&self.file, asked) } {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(errno(error)),
            }
        }
    }

    fn mapped(&self, mapping: Mapping) -> Option<(*mut u8, usize)> {
        *self.mappings.get(mapping.0)?
    }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno(error.raw_os_error())
}

/// A structure for the kernel.
struct Request<'a> {
    code: u32,
    bytes: &'a mut [u8],
}

// SAFETY: the kernel reads and writes as many bytes as the code says, and there are so many.
unsafe impl Ioctl for Request<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.code as Opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        let size = (self.code >> 16 & 0x3fff) as usize;
        // The kernel refuses a structure that is nowhere.
        if self.bytes.len() < size { ptr::null_mut() } else { self.bytes.as_mut_ptr().cast() }
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

impl Kernel for OsKernel {
    fn ask(&mut self, code: u32, request: &mut [u8], arrays: &mut [PointedTo<'_>]) -> Result<(), Errno> {
        for PointedTo { at, bytes } in arrays {
            let address = bytes.as_mut_ptr().expose_provenance() as u64;
            let place = request.get_mut(*at..).and_then(|rest| rest.get_mut(..8)).ok_or(Errno::EINVAL)?;
            place.copy_from_slice(&address.to_ne_bytes());
        }
        self.call(code, request)
    }

    fn map(&mut self, offset: u64, size: u64) -> Result<Mapping, Errno> {
        let size = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
        // SAFETY: the kernel chooses an address that nothing else has.
        let mapped = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap(ptr::null_mut(), size, access, MapFlags::SHARED, &self.file, offset)
        };
        self.mappings.push(Some((mapped.map_err(errno)?.cast(), size)));
        Ok(Mapping(self.mappings.len() - 1))
    }

    fn write(&mut self, mapping: Mapping, offset: u64, bytes: &[u8]) {
        let Some((start, size)) = self.mapped(mapping) else {
            return;
        };
        let Some(room) = usize::try_from(offset).ok().and_then(|offset| size.checked_sub(offset)) else {
            return;
        };
        let count = bytes.len().min(room);
        // SAFETY: the bytes are inside the mapping, which nothing in this process has a reference to.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.add(size - room), count) };
    }

    fn read(&self, mapping: Mapping, offset: u64, size: u64) -> Option<Vec<u8>> {
        let (start, whole) = self.mapped(mapping)?;
        let (offset, size) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
        offset.checked_add(size).filter(|&end| end <= whole)?;
        let mut bytes = vec![0; size];
        // SAFETY: the bytes are inside the mapping; the GPU may write them meanwhile, and any bytes are a `u8`.
        unsafe { ptr::copy_nonoverlapping(start.add(offset), bytes.as_mut_ptr(), size) };
        Some(bytes)
    }

    fn unmap(&mut self, mapping: Mapping) {
        let Some((start, size)) = self.mappings.get_mut(mapping.0).and_then(Option::take) else {
            return;
        };
        // SAFETY: it was mapped so, and is not used again: its place in the list is empty.
        let _ = unsafe { munmap(start.cast(), size) };
    }

    fn now(&self) -> (i64, i64) {
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec, now.tv_nsec)
    }
}

impl Drop for OsKernel {
    fn drop(&mut self) {
        (0..self.mappings.len()).for_each(|n| self.unmap(Mapping(n)));
    }
}
