//! What is known of `exec` on a path: enough to tell that both sides of a condition were not skipped.
//!
//! Behind a taken `s_cbranch_execz` no lane is enabled. `s_andn2_b64 exec, S, exec` then makes `exec` equal to `S`; where the next such
//! branch is taken too, `S` is 0, and no lane has been enabled by it since it was saved. With no lane enabled vector registers are neither
//! read nor written, so that nothing need be waited for.

use super::op::{ExecOp, ProgramOp, TouchedRegs, flag};
use super::program::covers;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::Reg;

/// What is known. States of one place are kept apart by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ExecState {
    /// Nothing.
    #[default]
    Any,
    /// It is 0, and so is this pair of scalar registers.
    Zero(Option<u16>),
    /// It is equal to this pair.
    Is(u16),
    /// All lanes.
    Ones,
}

/// In place of a pair that was 0 and has been written since.
const GONE: u16 = u16::MAX - 1;

impl ExecState {
    /// What is known behind an instruction.
    pub fn after(self, op: &ProgramOp, regs: &[TouchedRegs]) -> ExecState {
        if op.has(flag::WRITES_EXEC) {
            // A comparison enables no lane that was not.
            if op.is_valu() && matches!(self, ExecState::Zero(_)) {
                return self;
            }
            return match (op.exec, self) {
                (ExecOp::Without(ExecOp::ONES) | ExecOp::With(ExecOp::ONES), ExecState::Zero(_)) => {
                    ExecState::Ones
                }
                (ExecOp::Without(source) | ExecOp::With(source), ExecState::Zero(_)) => ExecState::Is(source),
                (ExecOp::Copy(source), ExecState::Zero(Some(zero))) if source == zero => self,
                _ => ExecState::Any,
            };
        }
        let (ExecState::Zero(Some(pair)) | ExecState::Is(pair)) = self else { return self };
        let gone = regs.iter().any(|r| r.writes && (covers(*r, Reg(pair)) || covers(*r, Reg(pair + 1))));
        match self {
            ExecState::Zero(_) if gone => ExecState::Zero(Some(GONE)),
            ExecState::Is(_) if gone => ExecState::Any,
            _ => self,
        }
    }

    /// What is known behind a block that ends in an instruction: where it falls through, and where it branches to. `None`: control does
    /// not go there.
    pub fn ways(self, last: &ProgramOp) -> [Option<ExecState>; 2] {
        let zero = match self {
            ExecState::Ones => None,
            ExecState::Is(pair) => Some(ExecState::Zero(Some(pair))),
            ExecState::Any => Some(ExecState::Zero(None)),
            ExecState::Zero(_) => Some(self),
        };
        let lanes = if matches!(self, ExecState::Zero(_)) { None } else { Some(ExecState::Any) };
        match last.opcode {
            Opcode::s_cbranch_execz => [lanes, zero],
            Opcode::s_cbranch_execnz => [zero, lanes],
            _ => match self {
                ExecState::Zero(_) => [Some(self); 2],
                _ => [Some(ExecState::Any); 2],
            },
        }
    }
}
