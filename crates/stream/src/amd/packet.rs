//! One packet, and its payload by the names of the facts.

use super::{AmdPacketHeader, Engine, media};
use crate::{Exec, StreamPos};
use unwedge_base::Dwords;
use unwedge_hw::amd::Amd;
use unwedge_hw::{Domain, ValueType, Variants};

/// A packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'e> {
    /// Where its header stands.
    pub place: StreamPos,
    /// The header dword.
    pub raw: u32,
    /// The header, decoded.
    pub header: AmdPacketHeader,
    /// What reads it.
    pub engine: Engine,
    /// What follows the header; shorter than the header says when the stream ends early.
    pub payload: Dwords<'e>,
    /// Header and payload.
    pub dwords: Dwords<'e>,
    /// Whether it is executed.
    pub exec: Exec,
}

/// A named part of a payload.
#[derive(Clone, Copy, Debug)]
pub struct PayloadField<'d> {
    /// Its name; a number where the facts name only the fields of the dword.
    pub name: &'d str,
    /// Dword of the packet, the header being 0.
    pub dword: usize,
    /// The value: 64 bits where two dwords belong together.
    pub value: u64,
    /// How it reads; `None` for dwords that the facts say nothing about.
    pub ty: Option<ValueType<'d>>,
}

impl<'e> Packet<'e> {
    /// `WRITE_DATA`, `SDMA_FENCE`; `None` for packets the facts do not know, and those that are no operations.
    pub fn name<'d>(&self, amd: Amd<'d>) -> Option<&'d str> {
        match self.header {
            AmdPacketHeader::Type3 { opcode, .. } => amd.packet_name(opcode),
            AmdPacketHeader::Dma { .. } => Some(amd.sdma_packet(self.raw)?.name()),
            AmdPacketHeader::Media { .. } => media::name(amd, self.engine, self.raw, self.dwords.get(1)),
            AmdPacketHeader::Type0 { .. } | AmdPacketHeader::Type2 => None,
        }
    }

    /// The layout of its payload, if the facts have one.
    pub fn layout<'d>(&self, amd: Amd<'d>) -> Option<Domain<'d>> {
        if self.engine.is_media() {
            return media::layout(amd, self.engine, self.raw, self.dwords.get(1));
        }
        match (self.name(amd)?, self.engine) {
            ("DISPATCH_INDIRECT", Engine::Compute) => amd.domain("DISPATCH_INDIRECT_MEC"),
            (name, _) => amd.domain(name),
        }
    }

    /// Its first dword that the layout counts: the header belongs to those of DMA packets.
    fn laid_out(&self) -> (Dwords<'e>, usize) {
        match self.header {
            AmdPacketHeader::Dma { .. } | AmdPacketHeader::Media { .. } => (self.dwords, 0),
            _ => (self.payload, 1),
        }
    }

    /// The payload, one field per dword or pair of dwords; those the facts do not know have no type.
    pub fn fields<'d>(&self, amd: Amd<'d>) -> impl Iterator<Item = PayloadField<'d>> + use<'d, 'e> {
        let layout = self.layout(amd);
        let (dwords, first) = self.laid_out();
        let mut at = 0;
        std::iter::from_fn(move || {
            let low = dwords.get(at)?;
            let index = u32::try_from(at).ok()?;
            let reg = layout.and_then(|l| l.at(index, &Variants::new())).filter(|reg| reg.dword() == 0);
            let wide = reg.filter(|reg| reg.width() == 64).and_then(|_| dwords.get64(at));
            let field = PayloadField {
                name: reg.map_or("", |reg| reg.name()),
                dword: at + first,
                value: wide.unwrap_or(u64::from(low)),
                ty: reg.and_then(|reg| reg.ty()),
            };
            at += if wide.is_some() { 2 } else { 1 };
            Some(field)
        })
    }

    /// A part of the payload by name: a dword, a pair of dwords or a field of one; `None` when the packet has none, or
    /// ends in front of it.
    pub fn get(&self, amd: Amd<'_>, name: &str) -> Option<u64> {
        let layout = self.layout(amd)?;
        let (dwords, _) = self.laid_out();
        let mut regs = layout.iter().filter(|reg| reg.dword() == 0);
        regs.find_map(|reg| {
            let at = usize::try_from(reg.offset()).ok()?;
            let value = match reg.width() {
                64 => dwords.get64(at)?,
                _ => u64::from(dwords.get(at)?),
            };
            if reg.name() == name {
                // Of a dword with fields, one of which has its name, the field is meant.
                return Some(reg.ty().and_then(|ty| ty.field(value, name)).unwrap_or(value));
            }
            reg.ty().filter(|ty| ty.is_bitset()).and_then(|ty| ty.field(value, name))
        })
    }

    /// The same as a number of 32 bits.
    pub fn get32(&self, amd: Amd<'_>, name: &str) -> Option<u32> {
        u32::try_from(self.get(amd, name)?).ok()
    }

    /// An address of two dwords that the facts name apart, `ADDR_LO` and `ADDR_HI`.
    pub fn split_address(&self, amd: Amd<'_>, low: &str, high: &str) -> Option<u64> {
        Some(self.get(amd, low)? | self.get(amd, high)? << 32)
    }
}
