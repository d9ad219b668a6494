//! Code of shaders of Adreno by its address: in a dump, and in a capture while it is read. Never: where a shader ends.

use std::io::Read;
use unwedge_base::{Generation, Memory};
use unwedge_capture::msm::Devcore;
use unwedge_capture::rd::{LiveMemory, LiveStep, RdReader};

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaderCode {
    /// The dwords from there to the end of the buffer; `None` if there is not one instruction.
    pub words: Option<Vec<u32>>,
    /// The generation of the GPU, where the input says which GPU it is of.
    pub generation: Option<Generation>,
}

impl ShaderCode {
    /// The code at an address of a dump. `unit` is the size of an instruction in bytes.
    pub fn of_dump(dump: &Devcore<'_>, at: u64, unit: u64) -> ShaderCode {
        ShaderCode { words: held(&dump.memory(), at, unit), generation: crate::device::generation(dump) }
    }

    /// The code at an address of a capture: what the first submit has there that has anything. No more than about
    /// `max_alive` bytes of buffers are held.
    pub fn of_capture(capture: impl Read, at: u64, unit: u64, max_alive: u64) -> ShaderCode {
        let mut reader = RdReader::new(capture).with_limit(max_alive);
        let mut live = LiveMemory::new().with_limit(max_alive);
        let mut words = None;
        while let Some(section) = reader.next() {
            if matches!(live.take(&section), LiveStep::Submit(_)) {
                words = held(live.memory(), at, unit);
            }
            if words.is_some() {
                break;
            }
        }
        let (gpu_id, chip_id) = (live.gpu_id().unwrap_or(0), live.chip_id().unwrap_or_default());
        ShaderCode { words, generation: Generation::of(gpu_id, chip_id) }
    }
}

/// The words at an address, up to the end of its buffer, if there is at least one instruction.
fn held(memory: &Memory, at: u64, unit: u64) -> Option<Vec<u32>> {
    let code = memory.dwords(at).filter(|code| 4 * code.len() as u64 >= unit)?;
    // Zeros at the buffer's end are not stored: those of the last instruction belong to it.
    let mut words = code.stored().to_vec();
    while words.is_empty() || !(4 * words.len() as u64).is_multiple_of(unit) && words.len() < code.len() {
        words.push(0);
    }
    Some(words)
}
