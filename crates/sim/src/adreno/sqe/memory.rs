//! The memory the emulated processor sees: dwords somebody wrote, at any 64-bit address.
//!
//! Never invents contents: what nobody wrote is unknown.

use super::log::SqeFault;
use crate::fault::{MemoryAccess, MemoryFault};
use crate::memory::{self, Load};

/// Pages kept at most: 64 MiB.
const MAX_PAGES: usize = 1 << 14;
const PAGE_BYTES: usize = 4096;

/// Memory of dwords.
#[derive(Clone, Debug)]
pub struct SqeMemory {
    bytes: memory::SimMemory,
}

impl Default for SqeMemory {
    fn default() -> SqeMemory {
        SqeMemory { bytes: memory::SimMemory::unknown() }
    }
}

impl SqeMemory {
    /// The dword at an address; `None` when nobody has written it.
    ///
    /// # Errors
    ///
    /// [`SqeFault::Memory`] unless the address is a multiple of 4.
    pub fn read(&self, address: u64) -> Result<Option<u32>, SqeFault> {
        Ok(match self.bytes.load(MemoryFault::aligned(address, 4, MemoryAccess::Read)?, 4) {
            Load::Known(value) => Some(value as u32),
            Load::Unknown | Load::Unmapped => None,
        })
    }

    /// Writes a dword.
    ///
    /// # Errors
    ///
    /// [`SqeFault::Memory`] unless the address is a multiple of 4, [`SqeFault::MemoryFull`] once too much is written.
    pub fn write(&mut self, address: u64, value: u32) -> Result<(), SqeFault> {
        let address = MemoryFault::aligned(address, 4, MemoryAccess::Write)?;
        if self.bytes.written_pages() >= MAX_PAGES && !self.bytes.is_written_page(address) {
            return Err(SqeFault::MemoryFull((MAX_PAGES * PAGE_BYTES) as u64));
        }
        // Every address is mapped.
        self.bytes.store(address, 4, value.into());
        Ok(())
    }
}
