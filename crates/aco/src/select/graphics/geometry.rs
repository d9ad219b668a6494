//! Geometry shaders: inputs from the ring or from LDS, and vertices that are left in a ring (up to gfx10.3) or, by primitive shaders, in LDS. Messages report each
//! vertex in a ring to the hardware. The GS copy shader reads them in the same order.

use super::captures::STREAM_OF_WAVE;
use super::slots::{Ring, SlotPlace};
use super::{Selected, Selector};
use crate::abi::Argument;
use crate::captures::CapturedWord;
use crate::compile::CompileError;
use crate::graphics::MemorySlots;
use crate::ir::{NewInst, Operand, PhysReg, RegClass};
use crate::lower::geometry::OTHER_STREAMS;
use crate::stages::{HardwareStage, MergedWaveInfo};
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_isa::amdgcn::waits::{Counter, fields};
use unwedge_isa::amdgcn::{Opcode, Reg};
use unwedge_shader::ir::{Inst, SlotAccess};

/// Messages of geometry shaders: a vertex, the end of a strip, the end of the wave. The stream is from bit 8 on.
const EMIT: u32 = 0x22;
const CUT: u32 = 0x12;
const DONE: u32 = 3;
const STREAM: u32 = 8;
/// Lanes that are together in the ring before geometry shaders.
const ES_LANES: u32 = 64;
/// Lanes that are together in the ring after them.
const GS_LANES: u32 = 16;
/// Lanes of a wave in that ring.
const WAVE_LANES: u32 = 64;
/// The invocation in the first word of gfx12.
const INVOCATION: (u32, u32) = (27, 5);
/// Bits of the stride in the second word of a descriptor, and where the others are.
const STRIDE: u32 = 16;
const STRIDE_BITS: u32 = 14;

impl Selector<'_> {
    pub(super) fn geometry_invocation(&mut self) -> Operand {
        let bits = match self.find_argument(Argument::GeometryInvocation) {
            Some(invocation) if self.gfx < Gfx::Gfx10 => return invocation,
            Some(invocation) => [invocation, Operand::c32(0), Operand::c32(INVOCATION.1)],
            None => {
                let word = self.given(Argument::VertexOffset(0));
                [word, Operand::c32(INVOCATION.0), Operand::c32(INVOCATION.1)]
            }
        };
        self.valu(Opcode::v_bfe_u32, RegClass::V1, &bits)
    }

    /// Where a vertex of the primitive is, in bytes.
    fn vertex_place(&mut self, number: u32, bytes: u32) -> Operand {
        let [per, width, distance] = match self.gfx {
            Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 => [1, 32, 0],
            Gfx::Gfx12 => [3, 8, 9],
            _ => [2, 16, 16],
        };
        let word = self.given(Argument::VertexOffset((number / per) as u8));
        let first = number % per * distance;
        let offset = if width == 32 {
            word
        } else {
            let bits = [word, Operand::c32(first), Operand::c32(width)];
            self.valu(Opcode::v_bfe_u32, RegClass::V1, &bits)
        };
        if self.gfx >= Gfx::Gfx12 {
            self.scaled(offset, bytes)
        } else {
            self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[Operand::c32(2), offset])
        }
    }

    /// Loads from a slot of a vertex of the primitive.
    pub(super) fn load_vertex(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        if access.patch || !access.vertex {
            return Err(self.unsupported(inst, Some("an input that is not that of a vertex")));
        }
        let count = self.slot_words(inst)?;
        let slots = self.inputs().clone();
        let Some(place) = self.slot_place(inst, access, &slots, 1)? else {
            self.define_slot(inst, None, count);
            return Ok(());
        };
        let bytes = slots.vertex_bytes();
        let vertex = self.scalar(self.func.args(inst)[0]);
        let begin = match vertex.as_const() {
            Some(number) => self.vertex_place(number as u32, bytes),
            None => {
                // There are few vertices, so the place is chosen by comparisons.
                let most = crate::lower::geometry::input_vertices(self.shader.info.input_primitive);
                let mut chosen = self.vertex_place(0, bytes);
                for number in 1..most {
                    let other = self.vertex_place(number, bytes);
                    let is_it = self.valu_compare(Opcode::v_cmp_eq_u32, &[Operand::c32(number), vertex]);
                    chosen = self.choose(is_it, other, chosen);
                }
                chosen
            }
        };
        let words = if self.interface.hardware == Some(HardwareStage::Gs) {
            let varying = self.scaled(place.varying, ES_LANES);
            let varying = self.sum(begin, varying);
            let place = SlotPlace::at(varying, place.constant * ES_LANES);
            self.load_ring(Ring::EsGsLoad, place, Operand::c32(0), count, ES_LANES * 4)
        } else {
            let varying = self.sum(begin, place.varying);
            self.load_local(SlotPlace { varying, ..place }, count)
        };
        self.define_slot(inst, Some(words), count);
        Ok(())
    }

    /// Stores an output of a vertex, whose number is the second operand.
    pub(super) fn store_emitted(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        let values = self.slot_values(inst)?;
        let slots = self.stream_slots(access.index).clone();
        let Some(place) = self.slot_place(inst, access, &slots, 2)? else { return Ok(()) };
        let vertex = self.scalar(self.func.args(inst)[1]);
        if self.interface.hardware == Some(HardwareStage::Ngg) {
            let begin = self.emitted_place();
            let vertex = self.scaled(vertex, self.interface.emitted_bytes());
            let varying = self.sum(begin, vertex);
            let varying = self.sum(varying, place.varying);
            let constant = place.constant + self.interface.stream_offset(access.index);
            self.store_local(SlotPlace { varying, constant }, &values);
            return Ok(());
        }
        // A component has a dword for each vertex.
        let most = self.shader.info.output_vertices;
        let descriptor = self.emitted_ring(access.index)?;
        let base = self.given(Argument::GsToVs);
        let vertex = self.scaled(vertex, 4);
        let varying = self.scaled(place.varying, most);
        let varying = self.sum(vertex, varying);
        for (component, value) in (0..).zip(&values) {
            let place = SlotPlace::at(varying, (place.constant + component * 4) * most);
            self.store_ring(descriptor, place, base, &[*value], 0);
        }
        Ok(())
    }

    /// The slots of a vertex of a stream that are in memory.
    pub(super) fn stream_slots(&self, stream: u8) -> &MemorySlots {
        match usize::from(stream).checked_sub(1) {
            Some(other) => &self.interface.streams[other % OTHER_STREAMS],
            None => &self.interface.outputs,
        }
    }

    /// The part of the ring after geometry shaders that belongs to a stream: the parts of a wave follow each other. A lane has the dwords of all its vertices.
    fn emitted_ring(&mut self, stream: u8) -> Selected<Operand> {
        let most = self.shader.info.output_vertices;
        let bytes = |stream| self.stream_slots(stream).vertex_bytes() * most;
        let (stride, before) = (bytes(stream), (0..stream).map(bytes).sum::<u32>());
        if stride >> STRIDE_BITS != 0 {
            return Err(CompileError::Interface("a geometry shader with so many outputs"));
        }
        let descriptor = self.ring(Ring::GsVsStore);
        let mut words = self.split(descriptor, 1);
        if stream > 0 {
            let before = Operand::c32(before * WAVE_LANES);
            let [low, carry] = self.salu_scc(Opcode::s_add_u32, RegClass::S1, &[words[0], before]);
            words[0] = low;
            words[1] = self.salu(Opcode::s_addc_u32, RegClass::S1, &[words[1], Operand::c32(0), carry]);
        }
        let stride = Operand::c32(stride << STRIDE);
        words[1] = self.salu(Opcode::s_or_b32, RegClass::S1, &[words[1], stride]);
        Ok(self.create(RegClass::sgpr(4), &words))
    }

    /// In the GS copy shader: loads from a slot of a vertex that a geometry shader has left.
    pub(super) fn load_copied(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        let count = self.slot_words(inst)?;
        let slots = self.interface.inputs.clone();
        let place = self.slot_place(inst, access, &slots, 0)?;
        let words = place.map(|place| self.load_left(place.constant, count));
        self.define_slot(inst, words, count);
        Ok(())
    }

    /// Loads components of the vertex of a lane.
    fn load_left(&mut self, offset: u32, count: u32) -> Vec<Operand> {
        let most = self.shader.info.output_vertices;
        let vertex = self.given(Argument::VertexId);
        let begin = self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[Operand::c32(2), vertex]);
        let place = SlotPlace::at(begin, offset * most * GS_LANES);
        self.load_ring(Ring::GsVsLoad, place, Operand::c32(0), count, most * GS_LANES * 4)
    }

    /// Captures vertices of a stream after the first, if the wave has any. They are not exported.
    pub(in crate::select) fn capture_stream(&mut self, stream: u8) -> Selected<()> {
        let wave = self.field(Argument::CaptureConfig, STREAM_OF_WAVE);
        let own = self.salu_compare(Opcode::s_cmp_eq_u32, &[wave, Operand::c32(stream.into())]);
        let mut captured = Ok(());
        self.only_if(own, |selector| {
            let slots = selector.stream_slots(stream).clone();
            let words: Vec<CapturedWord> = selector
                .interface
                .captures
                .words
                .iter()
                .copied()
                .filter(|word| word.stream == stream)
                .collect();
            for word in words {
                let Some(at) = slots.offset(word.slot, false) else { continue };
                let component = usize::from(word.component & 3);
                let value = selector.load_left(at + component as u32 * 4, 1).pop();
                selector.outputs.entry((word.slot, stream)).or_default()[component] = value;
            }
            captured = selector.capture_outputs(stream);
            selector.outputs.clear();
        });
        captured
    }

    /// The lanes of a wave whose vertices are of the first stream.
    pub(in crate::select) fn first_stream(&mut self) -> Operand {
        let wave = self.field(Argument::CaptureConfig, STREAM_OF_WAVE);
        let own = self.salu_compare(Opcode::s_cmp_eq_u32, &[wave, Operand::c32(0)]);
        self.bit_to_mask(own)
    }

    /// Reports a vertex, or the end of a strip, to the hardware.
    pub(super) fn geometry_message(&mut self, stream: u8, cut: bool) {
        let wave = self.geometry_wave();
        let code = if cut { CUT } else { EMIT };
        self.send_message(code | u32::from(stream) << STREAM, wave);
    }

    fn geometry_wave(&mut self) -> Operand {
        match self.find_argument(Argument::GsWaveId) {
            Some(wave) => wave,
            None => self.field(Argument::MergedWaveInfo, MergedWaveInfo::GEOMETRY_WAVE),
        }
    }

    /// The end of a wave of geometry shaders: its vertices are in memory.
    pub(in crate::select) fn end_geometry_wave(&mut self) {
        if self.gfx >= Gfx::Gfx10 {
            let null = Operand::reg(PhysReg::of(Reg::NULL), RegClass::S1);
            self.add(&NewInst::hw(Opcode::s_waitcnt_vscnt, &[], &[null, Operand::c32(0)]));
        } else {
            let mut all = 0;
            for wait in fields(Opcode::s_waitcnt, self.gfx) {
                let memory = wait.counter == Counter::Memory;
                all |= wait.field.put(if memory { 0 } else { wait.field.most() });
            }
            self.add(&NewInst::hw(Opcode::s_waitcnt, &[], &[Operand::c32(all.into())]));
        }
        let wave = self.geometry_wave();
        self.send_message(DONE, wave);
    }
}
