//! The address space that the GPU sees: what is mapped, what may be written, and the faults of its MMU.
//!
//! Never: an answer for memory that is not there, or not known.

use crate::fault::{MemoryAccess, MemoryFaultCause};
use crate::memory::{Load, MapError, SimMemory};
use std::collections::BTreeMap;

/// Which block of the GPU accesses memory, as far as fault reports tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// The command processor.
    Cp,
    /// Shader processors, through the L2 cache.
    Sp,
    /// Texture processors.
    Tp,
    /// The fetch of vertices.
    Vfd,
    /// The fetch of indices and of tessellation levels.
    Pc,
    /// Stream-out.
    Vpc,
    /// The colour cache, behind 2D blits and render targets.
    Ccu,
}

impl Client {
    /// As the kernel prints it after `source=`.
    pub fn name(self) -> &'static str {
        match self {
            Client::Cp => "CP",
            Client::Sp => "SP",
            Client::Tp => "TP",
            Client::Vfd => "VFD",
            Client::Pc => "PC",
            Client::Vpc => "VPC",
            Client::Ccu => "CCU",
        }
    }
}

/// What is wrong with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuFaultKind {
    /// Nothing is mapped there.
    Translation,
    /// It may not be written.
    Permission,
    /// It is mapped, and what it holds is not known: a capture without the contents of a buffer.
    Unknown,
}

impl GpuFaultKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            GpuFaultKind::Translation => "TRANSLATION",
            GpuFaultKind::Permission => "PERMISSION",
            GpuFaultKind::Unknown => "UNKNOWN",
        }
    }
}

/// An access that the GPU's MMU refuses, or that the machine cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("iova={iova:#018x} dir={} type={} source={}", self.direction(), self.kind.name(), client.name())]
pub struct GpuFault {
    /// The address.
    pub iova: u64,
    /// Read or written.
    pub access: MemoryAccess,
    /// What is wrong.
    pub kind: GpuFaultKind,
    /// Who accesses it.
    pub client: Client,
}

impl GpuFault {
    pub(crate) fn direction(&self) -> &'static str {
        match self.access {
            MemoryAccess::Read => "READ",
            MemoryAccess::Write => "WRITE",
        }
    }

    /// The fault of a client for a fault of memory.
    pub(crate) fn of(fault: crate::MemoryFault, client: Client) -> GpuFault {
        let kind = match fault.cause {
            MemoryFaultCause::Unknown => GpuFaultKind::Unknown,
            MemoryFaultCause::Unmapped | MemoryFaultCause::Unaligned(_) => GpuFaultKind::Translation,
        };
        GpuFault { iova: fault.address, access: fault.access, kind, client }
    }
}

/// Mapped memory with access rights.
#[derive(Debug, Default)]
pub struct AddressSpace {
    /// What is mapped, and what it holds.
    pub memory: SimMemory,
    /// First and last byte of what may only be read.
    read_only: BTreeMap<u64, u64>,
}

impl AddressSpace {
    /// Nothing mapped.
    pub fn new() -> AddressSpace {
        AddressSpace::default()
    }

    /// Maps bytes that the GPU may only read.
    ///
    /// # Errors
    ///
    /// As [`SimMemory::map`].
    pub fn map_read_only(&mut self, base: u64, bytes: Vec<u8>) -> Result<(), MapError> {
        let size = bytes.len() as u64;
        self.memory.map(base, bytes)?;
        if let Some(last) = size.checked_sub(1) {
            self.read_only.insert(base, base + last);
        }
        Ok(())
    }

    /// Takes away what is mapped in a range, whole mappings or parts of them.
    pub fn unmap(&mut self, base: u64, size: u64) {
        self.memory.unmap(base, size);
        let Some(last) = size.checked_sub(1).map(|beyond| base.saturating_add(beyond)) else { return };
        let cut: Vec<(u64, u64)> = self
            .read_only
            .range(..=last)
            .filter(|&(_, &end)| end >= base)
            .map(|(&first, &end)| (first, end))
            .collect();
        for (first, end) in cut {
            self.read_only.remove(&first);
            if first < base {
                self.read_only.insert(first, base - 1);
            }
            if end > last {
                self.read_only.insert(last + 1, end);
            }
        }
    }

    fn is_read_only(&self, iova: u64, size: u64) -> bool {
        let last = iova.saturating_add(size.saturating_sub(1));
        self.read_only.range(..=last).next_back().is_some_and(|(_, &end)| end >= iova)
    }

    /// A number of up to eight bytes.
    ///
    /// # Errors
    ///
    /// [`GpuFault`] where it is not mapped, or not known.
    pub fn read(&self, iova: u64, size: usize, client: Client) -> Result<u64, GpuFault> {
        let kind = match self.memory.load(iova, size) {
            Load::Known(value) => return Ok(value),
            Load::Unknown => GpuFaultKind::Unknown,
            Load::Unmapped => GpuFaultKind::Translation,
        };
        Err(GpuFault { iova, access: MemoryAccess::Read, kind, client })
    }

    /// Writes a number of up to eight bytes.
    ///
    /// # Errors
    ///
    /// [`GpuFault`] where it is not mapped, or may only be read; nothing is written then.
    pub fn write(&mut self, iova: u64, size: usize, value: u64, client: Client) -> Result<(), GpuFault> {
        let fault = |kind| GpuFault { iova, access: MemoryAccess::Write, kind, client };
        if self.is_read_only(iova, size as u64) {
            return Err(fault(GpuFaultKind::Permission));
        }
        if self.memory.store(iova, size, value) { Ok(()) } else { Err(fault(GpuFaultKind::Translation)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_follow_what_is_mapped() {
        let mut space = AddressSpace::new();
        space.map_read_only(0x1000, vec![1; 0x3000]).unwrap();
        space.memory.map_unknown(0x8000, 0x1000).unwrap();
        let kind = |r: Result<(), GpuFault>| r.map_err(|fault| fault.kind);
        assert_eq!(space.read(0x1ffe, 4, Client::Cp), Ok(0x0101_0101));
        assert_eq!(kind(space.write(0x3fff, 1, 0, Client::Cp)), Err(GpuFaultKind::Permission));
        assert_eq!(kind(space.write(0x4000, 4, 0, Client::Cp)), Err(GpuFaultKind::Translation));
        assert_eq!(kind(space.read(0x8000, 4, Client::Sp).map(drop)), Err(GpuFaultKind::Unknown));
        space.unmap(0x2000, 0x1000);
        assert_eq!(kind(space.read(0x2000, 4, Client::Cp).map(drop)), Err(GpuFaultKind::Translation));
        assert_eq!(kind(space.write(0x3000, 4, 0, Client::Cp)), Err(GpuFaultKind::Permission));
        space.memory.map(0x2000, vec![0; 0x1000]).unwrap();
        assert_eq!(kind(space.write(0x2ffc, 4, 7, Client::Cp)), Ok(()));
        let fault = space.write(0x5000, 4, 0, Client::Ccu).unwrap_err();
        assert_eq!(fault.to_string(), "iova=0x0000000000005000 dir=WRITE type=TRANSLATION source=CCU");
    }
}
