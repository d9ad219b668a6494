//! Primitive shaders (NGG) without a geometry shader: the first wave of a workgroup allocates space, lanes with a primitive export it, and lanes with a vertex run the
//! vertex shader. Primitives are exported as they arrive; [`super::culling`] has those that cull.

use super::exports::Export;
use super::slots::SlotPlace;
use super::{Selected, Selector};
use crate::abi::Argument;
use crate::ir::{Operand, RegClass};
use crate::stages::{HardwareStage, MergedWaveInfo};
use unwedge_isa::amdgcn::Opcode;

/// The message that allocates space for vertices and primitives.
const ALLOCATE: u32 = 9;
/// First bit and width of the numbers of vertices and primitives of a workgroup.
const VERTICES: (u32, u32) = (12, 9);
pub(super) const PRIMITIVES: (u32, u32) = (22, 9);
/// Where the message has the number of primitives.
const MESSAGE_PRIMITIVES: u32 = 12;
/// The most vertices of a workgroup.
pub(super) const GROUP_VERTICES: u32 = 256;
/// The target of primitives.
pub(super) const PRIMITIVE: u32 = 20;

impl Selector<'_> {
    /// Bits of a scalar register.
    pub(super) fn field(&mut self, argument: Argument, (first, width): (u32, u32)) -> Operand {
        let word = self.given(argument);
        self.salu(Opcode::s_bfe_u32, RegClass::S1, &[word, Operand::c32(first | width << 16)])
    }

    /// The lanes below a number.
    pub(super) fn first_lanes(&mut self, count: Operand) -> Operand {
        let lane = self.lane();
        self.valu_compare(Opcode::v_cmp_gt_u32, &[count, lane])
    }

    /// The vertex that a lane has, counted in its workgroup.
    pub(super) fn group_vertex(&mut self) -> Operand {
        let wave = self.field(Argument::MergedWaveInfo, MergedWaveInfo::WAVE);
        let shift = Operand::c32(self.wave_size().trailing_zeros());
        let first = self.salu(Opcode::s_lshl_b32, RegClass::S1, &[wave, shift]);
        let lane = self.lane();
        self.vector_add(first, lane)
    }

    /// Whether it is the first wave of its workgroup, as one bit.
    pub(super) fn is_first_wave(&mut self) -> Operand {
        let wave = self.field(Argument::MergedWaveInfo, MergedWaveInfo::WAVE);
        self.salu_compare(Opcode::s_cmp_eq_u32, &[wave, Operand::c32(0)])
    }

    /// Allocates space for vertices and primitives (`GS_ALLOC_REQ`).
    pub(super) fn allocate(&mut self, vertices: Operand, primitives: Operand) {
        let shift = Operand::c32(MESSAGE_PRIMITIVES);
        let primitives = self.salu(Opcode::s_lshl_b32, RegClass::S1, &[primitives, shift]);
        let both = self.salu(Opcode::s_or_b32, RegClass::S1, &[vertices, primitives]);
        self.send_message(ALLOCATE, both);
    }

    /// What a workgroup of primitive shaders begins with.
    pub(in crate::select) fn start_group(&mut self, geometry: bool) -> Selected<()> {
        if geometry || self.interface.culls { self.clear_counts() } else { self.start_primitives() }
    }

    /// Allocates space, and exports primitives.
    fn start_primitives(&mut self) -> Selected<()> {
        let first = self.is_first_wave();
        self.only_if(first, |selector| {
            let vertices = selector.field(Argument::GroupInfo, VERTICES);
            let primitives = selector.field(Argument::GroupInfo, PRIMITIVES);
            selector.allocate(vertices, primitives);
        });
        let count = self.field(Argument::MergedWaveInfo, MergedWaveInfo::SECOND);
        let lanes = self.first_lanes(count);
        let numbers = self.find_argument(Argument::GeometryPrimitive);
        self.only_lanes(lanes, |selector| {
            let connectivity = selector.connectivity_word();
            selector.export(&[Export::one(PRIMITIVE, connectivity)], 0, false);
            if let Some(number) = numbers {
                let provoking = selector.provoking_vertex();
                let place = selector.primitive_number_place(provoking);
                selector.store_local(place, &[Some(number)]);
            }
            Ok(())
        })?;
        if numbers.is_some() {
            self.program.lds_bytes = self.program.lds_bytes.max(self.captured_bytes() + GROUP_VERTICES * 4);
            self.local_barrier();
        }
        Ok(())
    }

    /// The provoking vertex of the primitive of a lane, counted in the workgroup.
    fn provoking_vertex(&mut self) -> Operand {
        let [first, second, third] = self.corner_numbers();
        if !self.options.graphics.last_vertex_provokes {
            return first;
        }
        let count = self.given(Argument::PrimitiveVertices);
        let count = self.in_vgpr(count);
        let mut last = third;
        for (number, vertex) in [(1, first), (2, second)] {
            let is_it = self.valu_compare(Opcode::v_cmp_eq_u32, &[Operand::c32(number), count]);
            last = self.choose(is_it, vertex, last);
        }
        last
    }

    /// The vertices of the primitive of a lane as they are exported.
    pub(super) fn connectivity_word(&mut self) -> Operand {
        if let Some(word) = self.find_argument(Argument::Connectivity) {
            return word;
        }
        let numbers = self.corner_numbers();
        self.packed_primitive(numbers)
    }

    /// Where LDS has the number of the primitive whose provoking vertex is a given vertex of the workgroup.
    fn primitive_number_place(&mut self, vertex: Operand) -> SlotPlace {
        SlotPlace::at(self.scaled(vertex, 4), self.captured_bytes())
    }

    /// The lane gets the number of the primitive whose provoking vertex it has, if the vertex shader reads that. Other lanes get any number.
    pub(in crate::select) fn take_primitive_number(&mut self) {
        let alone = self.part_count == 1 && self.interface.hardware == Some(HardwareStage::Ngg);
        if !alone || self.find_argument(Argument::GeometryPrimitive).is_none() {
            return;
        }
        let vertex = self.group_vertex();
        let place = self.primitive_number_place(vertex);
        let number = self.load_local(place, 1)[0];
        self.args.extend(number.as_temp().map(|temp| (Argument::VertexPrimitive, temp)));
    }

    /// The lanes that run the shader that is selected.
    pub(in crate::select) fn part_lanes(&mut self) -> Operand {
        let bits = if self.part == 0 { MergedWaveInfo::FIRST } else { MergedWaveInfo::SECOND };
        let count = self.field(Argument::MergedWaveInfo, bits);
        self.first_lanes(count)
    }
}
