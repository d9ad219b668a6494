//! What makes the operands of an instruction, as far as rules of combining ask: most rules apply where one of a few instructions does.

use super::combine::Combiner;
use crate::ir::{Inst, Op, Pseudo};
use unwedge_isa::amdgcn::Opcode;

/// Kinds of makers, one bit each.
pub(super) struct MakerKind;

impl MakerKind {
    /// It may take a part of a word.
    pub const PART: u8 = 1;
    /// It may change a sign.
    pub const SIGN: u8 = 2;
    /// It may move lanes.
    pub const MOVE: u8 = 4;
    /// It converts 16 bits to 32.
    pub const WIDENED: u8 = 8;
    /// It is of mixed precision.
    pub const MIXED: u8 = 16;

    /// The kinds of an instruction.
    pub fn of(op: Op) -> u8 {
        use Opcode as O;
        match op {
            Op::Pseudo(Pseudo::ExtractVector | Pseudo::SplitVector | Pseudo::Extract) => Self::PART,
            Op::Pseudo(_) => 0,
            Op::Hw(opcode) => match opcode {
                O::v_bfe_u32 | O::v_bfe_i32 | O::v_lshrrev_b32 | O::v_ashrrev_i32 => Self::PART,
                O::v_and_b32 => Self::PART | Self::SIGN,
                O::s_and_b32 | O::v_xor_b32 | O::s_xor_b32 | O::v_mul_f32 | O::v_mul_f16 => Self::SIGN,
                O::v_mov_b32 => Self::MOVE,
                O::v_cvt_f32_f16 => Self::WIDENED,
                O::v_fma_mix_f32 | O::v_mad_mix_f32 => Self::MIXED,
                _ => 0,
            },
        }
    }
}

/// What makes the operands of an instruction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Makers {
    /// All their kinds.
    pub kinds: u8,
    /// How many operands are constants or copies.
    pub constants: u32,
}

impl Combiner<'_> {
    /// What makes the operands of an instruction, whatever this block may read.
    pub(super) fn makers(&self, inst: Inst) -> Makers {
        let mut makers = Makers::default();
        for operand in self.program.operands(inst) {
            let Some(temp) = operand.as_temp() else {
                makers.constants += u32::from(operand.as_const().is_some());
                continue;
            };
            let Some(maker) = self.uses.definition(temp) else { continue };
            let op = self.program.op(maker);
            makers.kinds |= MakerKind::of(op);
            makers.constants += u32::from(op.is(Pseudo::ParallelCopy));
        }
        makers
    }
}
