//! Draw packets: which vertices and instances a draw has, and how they form primitives.
//!
//! Facts: the packets as Mesa's drivers write them. Never: what shaders do.

use super::registers::{DrawRegisters, Reg};
use crate::adreno::cp::{CpStop, Executed, ThreadId};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::Client;
use unwedge_stream::adreno::{AdrenoOp, Stage};

/// Where the numbers of vertices come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indices {
    /// They count from 0.
    Auto,
    /// Memory.
    Buffer {
        /// Of the first index of the buffer.
        base: u64,
        /// Indices that it has.
        count: u32,
        /// Of an index.
        bytes: u8,
    },
}

/// Domains of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    Quads,
    Triangles,
    Lines,
}

/// A draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DrawCall {
    /// As pc_di_primtype has it.
    pub(super) primitive: u32,
    pub(super) domain: Domain,
    pub(super) geometry: bool,
    pub(super) tessellation: bool,
    pub(super) indices: Indices,
    /// The first of the buffer's indices.
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) instances: u32,
}

/// The opcode of CP_DRAW_INDIRECT_MULTI, and what follows it.
struct IndirectMulti {
    indexed: bool,
    counted: bool,
    /// Where the constants of a draw go, in four components; 0: nowhere.
    constants: u32,
}

/// Draws that one packet may hold.
const MOST_DRAWS: u32 = 1 << 20;

impl DrawCall {
    fn new(initiator: u32) -> DrawCall {
        DrawCall {
            primitive: initiator & 0x3f,
            domain: match initiator >> 12 & 3 {
                0 => Domain::Quads,
                1 => Domain::Triangles,
                _ => Domain::Lines,
            },
            geometry: initiator >> 16 & 1 != 0,
            tessellation: initiator >> 17 & 1 != 0,
            indices: Indices::Auto,
            first: 0,
            count: 0,
            instances: 1,
        }
    }

    /// With indices, where the initiator asks for them.
    fn indexed(self, initiator: u32, base: u64, count: u32) -> DrawCall {
        let bytes = index_bytes(initiator);
        let indices = match initiator >> 6 & 3 {
            0 => Indices::Buffer { base, count, bytes },
            _ => Indices::Auto,
        };
        DrawCall { indices, ..self }
    }
}

fn index_bytes(initiator: u32) -> u8 {
    1 << (initiator >> 10 & 3).min(2)
}

impl AdrenoMachine<'_> {
    /// Executes a draw packet: its draws one after the other.
    pub(crate) fn draw_packet(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let initiator = packet.arg(0)?;
        let call = DrawCall::new(initiator);
        match packet.op {
            AdrenoOp::DrawIndxOffset => {
                let call = DrawCall { instances: packet.arg(1)?, count: packet.arg(2)?, ..call };
                let call = match packet.payload.len() {
                    ..7 => call,
                    _ => DrawCall { first: packet.arg(3)?, ..call }.indexed(
                        initiator,
                        packet.arg64(4)?,
                        packet.arg(6)?,
                    ),
                };
                self.draw(packet.thread, &call)
            }
            AdrenoOp::DrawIndirect => self.draw_indirect(packet.thread, &call, packet.arg64(1)?, false),
            AdrenoOp::DrawIndxIndirect => {
                let count = packet.arg(3)? / u32::from(index_bytes(initiator));
                let call = call.indexed(initiator, packet.arg64(1)?, count);
                self.draw_indirect(packet.thread, &call, packet.arg64(4)?, true)
            }
            AdrenoOp::DrawIndirectMulti => self.draw_indirect_multi(packet, call, initiator),
            AdrenoOp::DrawAuto => self.draw_auto(packet, call),
            // Packets of older GPUs.
            _ => Ok(()),
        }
    }

    fn parameter(&self, iova: u64) -> Result<u32, CpStop> {
        Ok(self.space.read(iova, 4, Client::Cp)? as u32)
    }

    /// A draw whose counts are in memory, as the structures of the API have them.
    fn draw_indirect(
        &mut self,
        id: ThreadId,
        call: &DrawCall,
        iova: u64,
        indexed: bool,
    ) -> Result<(), CpStop> {
        self.draw_parameters(id, call, iova, indexed).map(|_| ())
    }

    /// The same; what its first vertex and instance are.
    fn draw_parameters(
        &mut self,
        id: ThreadId,
        call: &DrawCall,
        iova: u64,
        indexed: bool,
    ) -> Result<[u32; 2], CpStop> {
        let (parameters, offsets) = self.indirect_parameters(call, iova, indexed)?;
        self.set_offsets(id, offsets);
        self.draw(id, &parameters)?;
        Ok(offsets)
    }

    fn indirect_parameters(
        &self,
        call: &DrawCall,
        iova: u64,
        indexed: bool,
    ) -> Result<(DrawCall, [u32; 2]), CpStop> {
        let word = |n: u64| self.parameter(iova.wrapping_add(4 * n));
        let call = DrawCall { count: word(0)?, instances: word(1)?, ..*call };
        Ok(match indexed {
            true => (DrawCall { first: word(2)?, ..call }, [word(3)?, word(4)?]),
            false => (call, [word(2)?, word(3)?]),
        })
    }

    /// The CP sets what is added to the numbers of vertices and instances.
    fn set_offsets(&mut self, id: ThreadId, [vertex, instance]: [u32; 2]) {
        for (reg, value) in [(Reg::IndexOffset, vertex), (Reg::InstanceOffset, instance)] {
            if let Some(reg) = self.draw_places.offset(reg) {
                self.write_register(id, reg, value);
            }
        }
    }

    fn draw_indirect_multi(
        &mut self,
        packet: &Executed<'_>,
        call: DrawCall,
        initiator: u32,
    ) -> Result<(), CpStop> {
        let word = packet.arg(1)?;
        let form = IndirectMulti {
            indexed: matches!(word & 0xf, 4 | 7),
            counted: matches!(word & 0xf, 6 | 7),
            constants: word >> 8 & 0x3fff,
        };
        let most = packet.arg(2)?.min(MOST_DRAWS);
        let (call, at) = match form.indexed {
            true => (call.indexed(initiator, packet.arg64(3)?, packet.arg(5)?), 6),
            false => (call, 3),
        };
        let parameters = packet.arg64(at)?;
        let (count, stride) = match form.counted {
            true => (most.min(self.parameter(packet.arg64(at + 2)?)?), packet.arg(at + 4)?),
            false => (most, packet.arg(at + 2)?),
        };
        for n in 0..count {
            self.spend(1)?;
            let iova = parameters.wrapping_add(u64::from(n) * u64::from(stride));
            let (call, offsets) = self.indirect_parameters(&call, iova, form.indexed)?;
            self.set_offsets(packet.thread, offsets);
            if form.constants != 0 {
                let words = [n, offsets[0], offsets[1], 0];
                let first = 4 * form.constants as usize;
                self.loaded_mut(packet.thread).set_constants(Stage::Vertex, first, &words);
            }
            self.draw(packet.thread, &call)?;
        }
        Ok(())
    }

    /// CP_DRAW_AUTO: as many vertices as stream-out wrote.
    fn draw_auto(&mut self, packet: &Executed<'_>, call: DrawCall) -> Result<(), CpStop> {
        let written = self.parameter(packet.arg64(2)?)?;
        let (offset, stride) = (packet.arg(4)?, packet.arg(5)?);
        let count = written.saturating_sub(offset).checked_div(stride).unwrap_or(0);
        self.draw(packet.thread, &DrawCall { instances: packet.arg(1)?, count, ..call })
    }

    /// The index at a place of a draw, with what is added to it. Beyond the buffer it is 0.
    pub(super) fn index_at(&self, call: &DrawCall, at: u32) -> Result<u32, CpStop> {
        let Indices::Buffer { base, count, bytes } = call.indices else { return Ok(at) };
        let at = call.first.wrapping_add(at);
        if at >= count {
            return Ok(0);
        }
        let iova = base.wrapping_add(u64::from(at) * u64::from(bytes));
        Ok(self.space.read(iova, bytes.into(), Client::Pc)? as u32)
    }
}

/// How primitives are formed, as registers say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AssemblyState {
    /// The index that ends a strip.
    pub(super) restart: Option<u32>,
    /// The last vertex of a primitive gives what is flat, instead of the first.
    pub(super) last_provokes: bool,
}

impl AssemblyState {
    pub(super) fn of(registers: &DrawRegisters<'_, '_>, call: &DrawCall) -> AssemblyState {
        let control = registers.get(Reg::PrimitiveControl);
        let mask = match call.indices {
            Indices::Buffer { bytes: 1, .. } => 0xff,
            Indices::Buffer { bytes: 2, .. } => 0xffff,
            _ => u32::MAX,
        };
        let restarts = control & 1 != 0 && call.indices != Indices::Auto;
        AssemblyState {
            restart: restarts.then(|| registers.get(Reg::RestartIndex) & mask),
            last_provokes: control & 2 != 0,
        }
    }
}
