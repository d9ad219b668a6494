//! Primitive shaders (NGG) without a geometry shader: the first wave of a workgroup asks for room, lanes with a primitive export it, and lanes with a vertex run the
//! vertex shader. Primitives are exported as they come in: nothing is culled.

use super::exports::Export;
use super::{Selected, Selector};
use crate::abi::Argument;
use crate::ir::{Definition, NewInst, Operand, PhysReg, Pseudo, RegClass};
use crate::stages::MergedWaveInfo;
use unwedge_isa::amdgcn::Opcode;

/// The message that asks for room for vertices and primitives.
const ALLOCATE: u32 = 9;
/// First bit and width of the numbers of vertices and primitives of a workgroup.
const VERTICES: (u32, u32) = (12, 9);
const PRIMITIVES: (u32, u32) = (22, 9);
/// Where the message has the number of primitives.
const MESSAGE_PRIMITIVES: u32 = 12;
/// The target of primitives.
const PRIMITIVE: u32 = 20;

impl Selector<'_> {
    /// Bits of a scalar register.
    fn field(&mut self, argument: Argument, (first, width): (u32, u32)) -> Operand {
        let word = self.given(argument);
        self.salu(Opcode::s_bfe_u32, RegClass::S1, &[word, Operand::c32(first | width << 16)])
    }

    /// The lanes below a number.
    fn first_lanes(&mut self, count: Operand) -> Operand {
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

    /// Asks for room, and exports primitives.
    pub(in crate::select) fn start_primitives(&mut self) -> Selected<()> {
        let wave = self.field(Argument::MergedWaveInfo, MergedWaveInfo::WAVE);
        let first = self.salu_compare(Opcode::s_cmp_eq_u32, &[wave, Operand::c32(0)]);
        self.only_if(first, |selector| {
            let vertices = selector.field(Argument::GroupInfo, VERTICES);
            let primitives = selector.field(Argument::GroupInfo, PRIMITIVES);
            let shift = Operand::c32(MESSAGE_PRIMITIVES);
            let primitives = selector.salu(Opcode::s_lshl_b32, RegClass::S1, &[primitives, shift]);
            let both = selector.salu(Opcode::s_or_b32, RegClass::S1, &[vertices, primitives]);
            let m0 = PhysReg::M0;
            selector.pseudo(Pseudo::ParallelCopy, &[Definition::reg(m0, RegClass::S1)], &[both]);
            let operands = [Operand::c32(ALLOCATE), Operand::reg(m0, RegClass::S1)];
            selector.add(&NewInst::hw(Opcode::s_sendmsg, &[], &operands));
        });
        let count = self.field(Argument::MergedWaveInfo, MergedWaveInfo::SECOND);
        let lanes = self.first_lanes(count);
        self.only_lanes(lanes, |selector| {
            let connectivity = selector.given(Argument::Connectivity);
            selector.export(&[Export::one(PRIMITIVE, connectivity)], 0, false);
            Ok(())
        })
    }

    /// The lanes that have a vertex.
    pub(in crate::select) fn vertex_lanes(&mut self) -> Operand {
        let count = self.field(Argument::MergedWaveInfo, MergedWaveInfo::FIRST);
        self.first_lanes(count)
    }
}
