//! KGSL, Qualcomm's driver: one large buffer, in which the capture's buffers lie if the addresses agree.
//!
//! KGSL lets programs choose no addresses. What Mesa's `replay` does is done here: 1 GiB is asked for first of all, as it was
//! when the capture was taken under the same program, and buffers are parts of it. Structures and numbers are those of
//! `msm_kgsl.h` on machines of 64 bits. Never: secure memory.

use crate::message::{IOW, IOWR, Message, ask, code, end_among, u32_at, u64_at};
use crate::{DeviceEnd, DeviceError, DeviceStream, Errno, Kernel, Mapping, PointedTo, SubmitDevice};
use std::collections::BTreeMap;
use std::ops::Range;

const GROUP: u8 = 9;
const GETPROPERTY: u32 = code(IOWR, GROUP, 0x02, 24);
const WAIT_TIMESTAMP: u32 = code(IOW, GROUP, 0x07, 12);
const DRAWCTXT_CREATE: u32 = code(IOWR, GROUP, 0x13, 8);
const DRAWCTXT_DESTROY: u32 = code(IOW, GROUP, 0x14, 4);
const GPUMEM_ALLOC_ID: u32 = code(IOWR, GROUP, 0x34, 48);
const GPU_COMMAND: u32 = code(IOWR, GROUP, 0x4a, 64);

/// Bytes that are asked for.
const SPACE: u64 = 1 << 30;
/// The CPU's cache and the GPU see the same.
const IO_COHERENT: u32 = 1 << 31;
/// GMEM is saved, is not taken for the context, and state is restored by a preamble. A stream that faults ends the context: else
/// KGSL skips the stream and its time stamp is reached as if it had been executed.
const CONTEXT: u32 = 1 | 2 | 1 << 4 | 1 << 9;
/// The property that says whether a context was reset: its value is the number of the context, then the answer.
const GPU_RESET_STAT: u32 = 9;
const PROPERTY_VALUE: usize = 8;
/// The context was not reset, or for what another one did: then its own commands were executed again.
const RESET_NONE: u32 = 0;
const RESET_INNOCENT: u32 = 2;
/// The commands are a list of indirect buffers.
const SUBMIT_LIST: u64 = 4;
const LIST_IB: u32 = 1;
const COMMAND_LIST: usize = 8;
/// Bytes of an entry of the list.
const ENTRY: u32 = 32;
/// Milliseconds until a time stamp counts as never reached.
const PATIENCE: u32 = 10_000;
/// The context was given up.
const EDEADLK: Errno = Errno(35);
/// The kernel's name for pages of a buffer, in offsets to map.
const PAGE_SHIFT: u32 = 12;

/// A GPU of KGSL.
pub struct KgslDevice<K> {
    kernel: K,
    context: u32,
    memory: u32,
    mapping: Mapping,
    addresses: Range<u64>,
    /// Sizes of buffers by address.
    buffers: BTreeMap<u64, u64>,
}

impl<K: Kernel> KgslDevice<K> {
    /// Takes the memory and makes a context.
    ///
    /// # Errors
    /// [`DeviceError::Refused`].
    pub fn open(mut kernel: K) -> Result<KgslDevice<K>, DeviceError> {
        let request = Message::default().u32(0).u32(IO_COHERENT).u64(SPACE);
        // Bytes to map, the address, padding.
        let mut request = request.u64(0).u64(0).u64(0).u64(0).0;
        ask(&mut kernel, "IOCTL_KGSL_GPUMEM_ALLOC_ID", GPUMEM_ALLOC_ID, &mut request, &mut [])?;
        let (memory, start) = (u32_at(&request, 0), u64_at(&request, 24));
        let mapping = kernel
            .map(u64::from(memory) << PAGE_SHIFT, SPACE)
            .map_err(|errno| DeviceError::Refused { request: "mapping the memory", errno })?;
        let context = new_context(&mut kernel)?;
        let addresses = start..start.saturating_add(SPACE);
        Ok(KgslDevice { kernel, context, memory, mapping, addresses, buffers: BTreeMap::new() })
    }

    /// What it is asked through.
    pub fn kernel(&self) -> &K {
        &self.kernel
    }

    /// Whether the GPU was reset for what the context did, since this was last asked.
    fn was_reset(&mut self) -> Result<bool, DeviceError> {
        let mut value = self.context.to_ne_bytes();
        // Padding, the address of the value, its size.
        let mut request = Message::default().u32(GPU_RESET_STAT).u32(0).u64(0).u64(value.len() as u64).0;
        let mut arrays = [PointedTo { at: PROPERTY_VALUE, bytes: &mut value }];
        ask(&mut self.kernel, "KGSL_PROP_GPU_RESET_STAT", GETPROPERTY, &mut request, &mut arrays)?;
        Ok(!matches!(u32::from_ne_bytes(value), RESET_NONE | RESET_INNOCENT))
    }

    /// Gives back a context that takes nothing more, or is busy for ever, for another one.
    fn renew_context(&mut self) -> Result<(), DeviceError> {
        let mut gone = Message::default().u32(self.context).0;
        ask(&mut self.kernel, "IOCTL_KGSL_DRAWCTXT_DESTROY", DRAWCTXT_DESTROY, &mut gone, &mut [])?;
        self.context = new_context(&mut self.kernel)?;
        Ok(())
    }

    fn is_in_buffer(&self, iova: u64, size: u64) -> bool {
        let buffer = self.buffers.range(..=iova).next_back();
        buffer.is_some_and(|(start, whole)| (iova - start).checked_add(size).is_some_and(|end| end <= *whole))
    }
}

fn new_context(kernel: &mut impl Kernel) -> Result<u32, DeviceError> {
    let mut request = Message::default().u32(CONTEXT).u32(0).0;
    ask(kernel, "IOCTL_KGSL_DRAWCTXT_CREATE", DRAWCTXT_CREATE, &mut request, &mut [])?;
    Ok(u32_at(&request, 4))
}

impl<K: Kernel> SubmitDevice for KgslDevice<K> {
    fn addresses(&self) -> Range<u64> {
        self.addresses.clone()
    }

    fn load(&mut self, iova: u64, size: u64, contents: &[u8]) -> Result<(), DeviceError> {
        if size == 0 {
            return Ok(());
        }
        let beyond = end_among(&self.addresses, iova, size)?;
        let start = self.addresses.start;
        let before = self.buffers.range(..beyond).next_back();
        if before.is_some_and(|(at, size)| at.saturating_add(*size) > iova) {
            return Err(DeviceError::Taken { iova, size, errno: Errno::EBUSY });
        }
        self.buffers.insert(iova, size);
        // The memory is used again and again: what is not given is zero.
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let given = contents.len().min(size as usize);
        self.kernel.write(self.mapping, iova - start, &contents[..given]);
        let mut at = iova + given as u64;
        while at < beyond {
            let count = (beyond - at).min(ZEROS.len() as u64);
            self.kernel.write(self.mapping, at - start, &ZEROS[..count as usize]);
            at += count;
        }
        Ok(())
    }

    fn submit(&mut self, streams: &[DeviceStream]) -> Result<DeviceEnd, DeviceError> {
        let mut list = Message::default();
        for stream in streams {
            if !self.is_in_buffer(stream.iova, stream.size.into()) {
                return Err(DeviceError::NoStream(stream.iova));
            }
            list = list.u64(0).u64(stream.iova).u64(stream.size.into()).u32(LIST_IB).u32(self.memory);
        }
        let command = Message::default().u64(SUBMIT_LIST).u64(0).u32(ENTRY).u32(streams.len() as u32);
        // No list of objects, nothing to wait for.
        let command = command.u64(0).u32(0).u32(0).u64(0).u32(0).u32(0).u32(self.context).u32(0);
        let mut request = command.0;
        let mut arrays = [PointedTo { at: COMMAND_LIST, bytes: &mut list.0 }];
        ask(&mut self.kernel, "IOCTL_KGSL_GPU_COMMAND", GPU_COMMAND, &mut request, &mut arrays)?;
        let mut wait = Message::default().u32(self.context).u32(u32_at(&request, 60)).u32(PATIENCE).0;
        match self.kernel.ask(WAIT_TIMESTAMP, &mut wait, &mut []) {
            // A time stamp is reached by commands that were skipped, too.
            Ok(()) if !self.was_reset()? => Ok(DeviceEnd::Done),
            Ok(()) | Err(Errno::ETIMEDOUT | EDEADLK) => {
                self.renew_context()?;
                Ok(DeviceEnd::Hung)
            }
            Err(errno) => {
                Err(DeviceError::Refused { request: "IOCTL_KGSL_DEVICE_WAITTIMESTAMP_CTXTID", errno })
            }
        }
    }

    fn read(&mut self, iova: u64, size: u64) -> Result<Option<Vec<u8>>, DeviceError> {
        if !self.is_in_buffer(iova, size) {
            return Ok(None);
        }
        Ok(self.kernel.read(self.mapping, iova - self.addresses.start, size))
    }

    fn clear(&mut self) -> Result<(), DeviceError> {
        self.buffers.clear();
        Ok(())
    }
}
