//! The DRM driver msm: a buffer object for each buffer, at the address that the capture has.
//!
//! Structures and numbers are those of `include/uapi/drm/msm_drm.h`. Never: relocations, fences of other programs.

use crate::message::{IOW, IOWR, Message, ask, code, end_among, u32_at, u64_at};
use crate::{DeviceEnd, DeviceError, DeviceStream, Errno, Kernel, Mapping, PointedTo, SubmitDevice};
use std::collections::BTreeMap;
use std::ops::Range;

const GROUP: u8 = b'd';
const GET_PARAM: u32 = code(IOWR, GROUP, 0x40, 24);
const GEM_NEW: u32 = code(IOWR, GROUP, 0x42, 16);
const GEM_INFO: u32 = code(IOWR, GROUP, 0x43, 24);
const GEM_CPU_PREP: u32 = code(IOW, GROUP, 0x44, 24);
const GEM_SUBMIT: u32 = code(IOWR, GROUP, 0x46, 72);
const WAIT_FENCE: u32 = code(IOW, GROUP, 0x47, 32);
const SUBMITQUEUE_NEW: u32 = code(IOWR, GROUP, 0x4a, 12);
const GEM_CLOSE: u32 = code(IOW, GROUP, 0x09, 8);

/// The pipe of everything that is asked for.
const PIPE_3D0: u32 = 0x10;
const PARAM_FAULTS: u32 = 0x09;
const PARAM_VA_START: u32 = 0x0e;
const PARAM_VA_SIZE: u32 = 0x0f;
const BO_WRITE_COMBINED: u32 = 0x2_0000;
const INFO_GET_OFFSET: u32 = 0;
const INFO_SET_IOVA: u32 = 4;
const PREP_READ: u32 = 1;
const CMD_BUF: u32 = 1;
const BO_READ_WRITE: u32 = 3;
const BO_DUMP: u32 = 4;
/// Where a submit has the addresses of its arrays.
const SUBMIT_BOS: usize = 16;
const SUBMIT_CMDS: usize = 24;
/// Seconds until a fence counts as never written. The kernel gives a submit up after about two.
const PATIENCE: i64 = 10;

/// A buffer object.
struct MsmBuffer {
    handle: u32,
    size: u64,
    mapping: Mapping,
}

/// A GPU of the driver msm.
pub struct MsmDevice<K> {
    kernel: K,
    queue: u32,
    addresses: Range<u64>,
    buffers: BTreeMap<u64, MsmBuffer>,
}

impl<K: Kernel> MsmDevice<K> {
    /// Asks which addresses programs may choose, and makes a queue.
    ///
    /// # Errors
    /// [`DeviceError::NoSetIova`] where they may choose none; [`DeviceError::Refused`].
    pub fn open(mut kernel: K) -> Result<MsmDevice<K>, DeviceError> {
        let start = param(&mut kernel, PARAM_VA_START).map_err(DeviceError::NoSetIova)?;
        let size = param(&mut kernel, PARAM_VA_SIZE).map_err(DeviceError::NoSetIova)?;
        // Flags, priority, and room for the number of the queue.
        let mut queue = Message::default().u32(0).u32(0).u32(0).0;
        ask(&mut kernel, "DRM_MSM_SUBMITQUEUE_NEW", SUBMITQUEUE_NEW, &mut queue, &mut [])?;
        let addresses = start..start.saturating_add(size);
        Ok(MsmDevice { kernel, queue: u32_at(&queue, 8), addresses, buffers: BTreeMap::new() })
    }

    /// What it is asked through.
    pub fn kernel(&self) -> &K {
        &self.kernel
    }

    fn info(&mut self, handle: u32, info: u32, value: u64) -> Result<u64, Errno> {
        let mut request = Message::default().u32(handle).u32(info).u64(value).u32(0).u32(0).0;
        self.kernel.ask(GEM_INFO, &mut request, &mut [])?;
        Ok(u64_at(&request, 8))
    }

    fn close(&mut self, handle: u32) -> Result<(), DeviceError> {
        let mut request = Message::default().u32(handle).u32(0).0;
        ask(&mut self.kernel, "DRM_GEM_CLOSE", GEM_CLOSE, &mut request, &mut [])
    }

    /// Places a buffer object and maps it.
    fn place(&mut self, handle: u32, iova: u64, size: u64) -> Result<Mapping, DeviceError> {
        self.info(handle, INFO_SET_IOVA, iova).map_err(|errno| match errno {
            Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::ENOTTY => DeviceError::NoSetIova(errno),
            errno => DeviceError::Taken { iova, size, errno },
        })?;
        let refused = |errno| DeviceError::Refused { request: "mapping a buffer", errno };
        let offset = self.info(handle, INFO_GET_OFFSET, 0).map_err(refused)?;
        self.kernel.map(offset, size).map_err(refused)
    }

    fn buffer_of(&self, iova: u64, size: u64) -> Option<(u64, &MsmBuffer)> {
        let (&start, buffer) = self.buffers.range(..=iova).next_back()?;
        let end = (iova - start).checked_add(size)?;
        (end <= buffer.size).then_some((start, buffer))
    }
}

fn param(kernel: &mut impl Kernel, param: u32) -> Result<u64, Errno> {
    let mut request = Message::default().u32(PIPE_3D0).u32(param).u64(0).u32(0).u32(0).0;
    kernel.ask(GET_PARAM, &mut request, &mut [])?;
    Ok(u64_at(&request, 8))
}

impl<K: Kernel> SubmitDevice for MsmDevice<K> {
    fn addresses(&self) -> Range<u64> {
        self.addresses.clone()
    }

    fn load(&mut self, iova: u64, size: u64, contents: &[u8]) -> Result<(), DeviceError> {
        if size == 0 {
            return Ok(());
        }
        end_among(&self.addresses, iova, size)?;
        let mut request = Message::default().u64(size).u32(BO_WRITE_COMBINED).u32(0).0;
        ask(&mut self.kernel, "DRM_MSM_GEM_NEW", GEM_NEW, &mut request, &mut [])?;
        let handle = u32_at(&request, 12);
        let mapping = match self.place(handle, iova, size) {
            Ok(mapping) => mapping,
            Err(error) => {
                // The first refusal is the one to tell of.
                let _ = self.close(handle);
                return Err(error);
            }
        };
        self.kernel.write(mapping, 0, contents);
        self.buffers.insert(iova, MsmBuffer { handle, size, mapping });
        Ok(())
    }

    fn submit(&mut self, streams: &[DeviceStream]) -> Result<DeviceEnd, DeviceError> {
        let refused = |errno| DeviceError::Refused { request: "DRM_MSM_GET_PARAM", errno };
        let mut cmds = Message::default();
        let mut dumped = Vec::new();
        for stream in streams {
            let no_stream = DeviceError::NoStream(stream.iova);
            let (start, buffer) = self.buffer_of(stream.iova, stream.size.into()).ok_or(no_stream)?;
            let index = self.buffers.range(..start).count() as u32;
            dumped.push(buffer.handle);
            let offset = u32::try_from(stream.iova - start).map_err(|_| no_stream)?;
            // Padding, relocations: none.
            cmds = cmds.u32(CMD_BUF).u32(index).u32(offset).u32(stream.size).u32(0).u32(0).u64(0);
        }
        let mut bos = Message::default();
        for (&iova, MsmBuffer { handle, .. }) in &self.buffers {
            let dump = if dumped.contains(handle) { BO_DUMP } else { 0 };
            bos = bos.u32(BO_READ_WRITE | dump).u32(*handle).u64(iova);
        }
        let faults = param(&mut self.kernel, PARAM_FAULTS).map_err(refused)?;
        let counts = [self.buffers.len() as u32, streams.len() as u32];
        let submit = Message::default().u32(PIPE_3D0).u32(0).u32(counts[0]).u32(counts[1]);
        // No fence to wait for, no objects to synchronize with.
        let submit = submit.u64(0).u64(0).u32(0).u32(self.queue).u64(0).u64(0).u32(0).u32(0).u32(16).u32(0);
        let mut request = submit.0;
        let mut arrays = [
            PointedTo { at: SUBMIT_BOS, bytes: &mut bos.0 },
            PointedTo { at: SUBMIT_CMDS, bytes: &mut cmds.0 },
        ];
        ask(&mut self.kernel, "DRM_MSM_GEM_SUBMIT", GEM_SUBMIT, &mut request, &mut arrays)?;
        let (seconds, nanoseconds) = self.kernel.now();
        let deadline = [seconds.saturating_add(PATIENCE), nanoseconds].map(|n| n as u64);
        let wait = Message::default().u32(u32_at(&request, 4)).u32(0);
        let mut wait = wait.u64(deadline[0]).u64(deadline[1]).u32(self.queue).u32(0).0;
        match self.kernel.ask(WAIT_FENCE, &mut wait, &mut []) {
            Ok(()) => {}
            Err(Errno::ETIMEDOUT) => return Ok(DeviceEnd::Hung),
            Err(errno) => {
                return Err(DeviceError::Refused { request: "DRM_MSM_WAIT_FENCE", errno });
            }
        }
        // The fence of a submit that was given up is written, too.
        let hung = param(&mut self.kernel, PARAM_FAULTS).map_err(refused)? != faults;
        Ok(if hung { DeviceEnd::Hung } else { DeviceEnd::Done })
    }

    fn read(&mut self, iova: u64, size: u64) -> Result<Option<Vec<u8>>, DeviceError> {
        let Some((start, &MsmBuffer { handle, mapping, .. })) = self.buffer_of(iova, size) else {
            return Ok(None);
        };
        let (seconds, nanoseconds) = self.kernel.now();
        let deadline = [seconds.saturating_add(PATIENCE), nanoseconds].map(|n| n as u64);
        let mut request = Message::default().u32(handle).u32(PREP_READ).u64(deadline[0]).u64(deadline[1]).0;
        ask(&mut self.kernel, "DRM_MSM_GEM_CPU_PREP", GEM_CPU_PREP, &mut request, &mut [])?;
        Ok(self.kernel.read(mapping, iova - start, size))
    }

    fn clear(&mut self) -> Result<(), DeviceError> {
        let mut outcome = Ok(());
        for (iova, MsmBuffer { handle, mapping, size }) in std::mem::take(&mut self.buffers) {
            self.kernel.unmap(mapping);
            let freed = self.info(handle, INFO_SET_IOVA, 0).map(drop);
            let freed = freed.map_err(|errno| DeviceError::Taken { iova, size, errno });
            outcome = outcome.and(freed).and(self.close(handle));
        }
        outcome
    }
}
