//! LDS, GDS and scratch: bytes, and which of them were written.

/// Memory of a workgroup or of a wave, and which of its bytes were written.
#[derive(Debug, Default, Clone)]
pub(super) struct LocalMemory {
    pub(super) bytes: Vec<u8>,
    /// Empty if what is unknown is not asked for.
    pub(super) known: Vec<u8>,
}

impl LocalMemory {
    /// Zeros; if asked for, none of them written.
    pub(super) fn new(size: usize, unknown: bool) -> LocalMemory {
        LocalMemory { bytes: vec![0; size], known: vec![0; if unknown { size } else { 0 }] }
    }

    pub(super) fn read(&self, address: u64, bytes: u8) -> (u64, u64) {
        let mut value = 0;
        let mut unknown = 0;
        for n in 0..u64::from(bytes) {
            let at = address as usize + n as usize;
            value |= u64::from(self.bytes.get(at).copied().unwrap_or(0)) << (8 * n);
            // What is beyond the end reads zero.
            unknown |= u64::from(self.known.get(at).map_or(0, |known| !known)) << (8 * n);
        }
        (value, unknown)
    }

    pub(super) fn write(&mut self, address: u64, bytes: u8, value: u64, unknown: u64) {
        for n in 0..u64::from(bytes) {
            let at = address as usize + n as usize;
            if let Some(place) = self.bytes.get_mut(at) {
                *place = (value >> (8 * n)) as u8;
            }
            if let Some(place) = self.known.get_mut(at) {
                *place = !(unknown >> (8 * n)) as u8;
            }
        }
    }
}
