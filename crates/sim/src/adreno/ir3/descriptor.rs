//! Descriptors: where they are, and the buffers they describe.

use super::fault::{FaultKind, MemoryUnit};
use super::group::Machine;
use crate::memory::Load;
use unwedge_isa::ir3::DescriptorIndex;

/// Which table a descriptor that is not bindless is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Textures,
    Images,
    Uniforms,
}

impl Table {
    /// Bytes of a descriptor.
    fn stride(self) -> u64 {
        match self {
            Table::Textures | Table::Images => 64,
            Table::Uniforms => 8,
        }
    }
}

/// The type of a descriptor that describes a buffer.
const TYPE_BUFFER: u32 = 4;

/// A buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferView {
    /// Its first byte.
    pub(super) base: u64,
    /// Elements of its format.
    pub(super) elements: u32,
    /// Bytes of an element.
    pub(super) texel: u32,
    /// The format's number.
    pub(super) format: u32,
}

/// Bytes of an element of the formats that storage buffers have. Facts: `a6xx_format`.
fn texel_bytes(format: u32) -> Option<u32> {
    match format {
        0x05 | 0x06 => Some(1),
        0x18 | 0x19 => Some(2),
        0x4a..=0x4c => Some(4),
        0x68 => Some(8),
        0x83 => Some(16),
        _ => None,
    }
}

/// A descriptor of 16 dwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor(pub(super) [u32; 16]);

impl Descriptor {
    /// What reads as zero and ignores writes.
    pub(super) fn is_null(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The buffer, or why it cannot be one.
    pub(super) fn buffer(&self) -> Result<BufferView, FaultKind> {
        let [format, size, layout, _, low, high, ..] = self.0;
        if layout >> 29 != TYPE_BUFFER {
            return Err(FaultKind::NotEmulated("an image that is not a buffer"));
        }
        let format = format >> 22 & 0xff;
        let texel = texel_bytes(format).ok_or(FaultKind::NotEmulated("this format of a buffer"))?;
        let base = u64::from(low & !31) | u64::from(high & 0x1_ffff) << 32;
        let start = u64::from(layout >> 16 & 0x3f) * u64::from(texel);
        Ok(BufferView { base: base + start, elements: size & 0x3fff_ffff, texel, format })
    }
}

impl BufferView {
    /// Its size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.elements) * u64::from(self.texel)
    }

    /// The address of an element of so many bytes, if it is in the buffer.
    pub(super) fn element(&self, index: u32, bytes: u32) -> Option<u64> {
        let from = u64::from(index) * u64::from(bytes);
        (from + u64::from(bytes) <= self.bytes()).then(|| self.base.wrapping_add(from))
    }
}

impl Machine<'_> {
    /// Up to eight bytes; what is not mapped is a fault.
    pub(super) fn load(&mut self, address: u64, bytes: usize, unit: MemoryUnit) -> Result<u64, FaultKind> {
        let load: Load = self.view.read(address, bytes);
        load.at(address).map_err(|fault| FaultKind::Memory(fault, unit))
    }

    /// The address of a descriptor.
    fn descriptor_address(&self, base: Option<u8>, table: Table, index: u32) -> Result<u64, FaultKind> {
        let state = &self.dispatch.state;
        let Some(base) = base else {
            let tables = state.tables;
            let start = match table {
                Table::Textures => tables[0],
                Table::Images => tables[1],
                Table::Uniforms => tables[2],
            };
            return Ok(start.wrapping_add(u64::from(index) * table.stride()));
        };
        let set = state.bindless.get(usize::from(base)).copied();
        let set = set.ok_or(FaultKind::NotEmulated("a set of descriptors that the GPU does not have"))?;
        Ok((set & !3).wrapping_add(u64::from(index) * (8 << (set & 3))))
    }

    /// A descriptor of an image, texture or storage buffer.
    pub(super) fn descriptor(
        &mut self,
        base: Option<u8>,
        table: Table,
        index: u32,
    ) -> Result<Descriptor, FaultKind> {
        let address = self.descriptor_address(base, table, index)?;
        let mut words = [0; 16];
        for (at, word) in (0u64..).zip(words.iter_mut()) {
            *word = self.load(address.wrapping_add(4 * at), 4, MemoryUnit::Constants)? as u32;
        }
        Ok(Descriptor(words))
    }

    /// Address and size in bytes of a uniform buffer.
    pub(super) fn uniform_buffer(&mut self, base: Option<u8>, index: u32) -> Result<(u64, u64), FaultKind> {
        let address = self.descriptor_address(base, Table::Uniforms, index)?;
        let word = self.load(address, 8, MemoryUnit::Constants)?;
        Ok((word & ((1 << 49) - 1), (word >> 49) * 16))
    }
}

/// Whether every fiber has the same descriptor.
pub(super) fn is_uniform(index: DescriptorIndex) -> bool {
    index != DescriptorIndex::Nonuniform
}
