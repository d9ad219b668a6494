//! Vertex fetch: attributes of vertices from memory to registers.
//!
//! Facts: VFD registers as Mesa's Turnip sets them. Never: which vertices there are.

use super::registers::{DrawRegisters, Reg};
use crate::adreno::space::{AddressSpace, Client, GpuFault};
use unwedge_hw::adreno::format::{ColorSwap, Format, HardwareFormat, Numeric, TexelCodec};

/// Attributes at most.
const ATTRIBUTES: u32 = 32;
/// Bytes of the largest element.
const ELEMENT: usize = 32;

/// An attribute.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    base: u64,
    size: u64,
    stride: u64,
    offset: u64,
    /// Instances that have the same value; `None`: it is of vertices.
    divisor: Option<u32>,
    codec: Option<TexelCodec>,
    /// Integers become floats.
    scaled: bool,
    /// The first register, by component, and which of the four are written.
    pub(super) register: u8,
    pub(super) mask: u8,
}

/// What the numbers of a vertex and an instance are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FetchOffsets {
    pub(super) vertex: u32,
    pub(super) instance: u32,
}

impl Attribute {
    /// The attributes that registers describe.
    pub(super) fn all(registers: &DrawRegisters<'_, '_>) -> Vec<Attribute> {
        let count = (registers.get(Reg::AttributeCount) >> 8 & 0x3f).min(ATTRIBUTES);
        (0..count).map(|n| Attribute::of(registers, n)).collect()
    }

    fn of(registers: &DrawRegisters<'_, '_>, number: u32) -> Attribute {
        let instruction = registers.at(Reg::Decode, 2 * number);
        let destination = registers.at(Reg::DecodeDestination, number);
        let binding = 4 * (instruction & 0x1f);
        let format = HardwareFormat(instruction >> 20 & 0xff);
        let swap = ColorSwap::from_code(instruction >> 28);
        let float = instruction >> 31 != 0;
        let named = Format::of_vertex(format, swap, false).or(Format::of_vertex(format, swap, true));
        let codec = named.map(Format::codec);
        let integer = codec.as_ref().is_some_and(|codec| codec.numeric() != Numeric::Float);
        Attribute {
            base: registers.address(Reg::FetchBase, binding),
            size: registers.at(Reg::FetchSize, binding).into(),
            stride: registers.at(Reg::FetchStride, binding).into(),
            offset: (instruction >> 5 & 0xfff).into(),
            divisor: (instruction >> 17 & 1 != 0).then(|| registers.at(Reg::DecodeStep, 2 * number)),
            codec,
            scaled: float && integer,
            register: (destination >> 4 & 0xff) as u8,
            mask: (destination & 0xf) as u8,
        }
    }

    /// Whether its values are those of instances.
    pub(super) fn is_known(&self) -> bool {
        self.codec.is_some()
    }

    /// The bytes of its buffer, where all of them are stored together.
    pub(super) fn buffer<'s>(&self, space: &'s AddressSpace) -> Option<&'s [u8]> {
        space.stored(self.base, usize::try_from(self.size).ok()?, Client::Vfd)
    }

    /// The four components of a vertex. What is past the end of the buffer is made of zeros.
    ///
    /// # Errors
    ///
    /// [`GpuFault`] where memory of the buffer is not there, or not known.
    pub(super) fn fetch(
        &self,
        space: &AddressSpace,
        buffer: Option<&[u8]>,
        [vertex, instance]: [u32; 2],
        offsets: FetchOffsets,
    ) -> Result<[u32; 4], GpuFault> {
        let Some(codec) = &self.codec else { return Ok([0; 4]) };
        let index = match self.divisor {
            None => vertex,
            Some(divisor) => {
                let steps = instance.checked_div(divisor).unwrap_or(0);
                offsets.instance.wrapping_add(steps)
            }
        };
        let bytes = (codec.bytes() as usize).min(ELEMENT);
        let from = self.offset + self.stride * u64::from(index);
        let mut element = [0; ELEMENT];
        let stored = buffer.and_then(|buffer| buffer.get(from as usize..from as usize + bytes));
        if stored.is_none() && from + bytes as u64 <= self.size {
            read(space, self.base.wrapping_add(from), &mut element[..bytes])?;
        }
        let components = codec.unpack(stored.unwrap_or(&element[..bytes]), 0, 0).unwrap_or([0; 4]);
        Ok(match (self.scaled, codec.numeric()) {
            (false, _) | (_, Numeric::Float) => components,
            (true, Numeric::Uint) => components.map(|value| (value as f32).to_bits()),
            (true, _) => components.map(|value| (value as i32 as f32).to_bits()),
        })
    }
}

/// Reads bytes.
pub(super) fn read(space: &AddressSpace, address: u64, to: &mut [u8]) -> Result<(), GpuFault> {
    if let Some(bytes) = space.stored(address, to.len(), Client::Vfd) {
        to.copy_from_slice(bytes);
        return Ok(());
    }
    for (at, part) in (0u64..).zip(to.chunks_mut(8)) {
        let value = space.read(address.wrapping_add(8 * at), part.len(), Client::Vfd)?;
        part.copy_from_slice(&value.to_le_bytes()[..part.len()]);
    }
    Ok(())
}
