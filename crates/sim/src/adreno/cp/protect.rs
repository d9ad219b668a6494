//! Protected registers: which registers a packet accesses, and whether a stream below the ring may.
//!
//! Facts: the driver's CP_PROTECT_REG, which it sets up so that an access that is refused is a fault. The ring is the driver's own.
//! Never: the packets that only the ring may hold.

use super::{NextPacket, ThreadId};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::{CpError, CpErrorKind};
use unwedge_base::Dwords;
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::payload::{RegRmw, RmwOperand};
use unwedge_stream::adreno::{AdrenoOp, Wait};

const REG: u32 = 0x3_ffff;

/// Registers that a packet accesses.
#[derive(Clone, Copy, Debug)]
struct RegisterAccess {
    first: u32,
    count: u32,
    read: bool,
}

fn access(first: u32, count: u32, read: bool) -> RegisterAccess {
    RegisterAccess { first: first & REG, count, read }
}

impl AdrenoMachine<'_> {
    /// Checks a packet against the registers that are protected.
    pub(super) fn check_protection(
        &self,
        id: ThreadId,
        at: &NextPacket,
        header: AdrenoPacketHeader,
        payload: &Dwords<'_>,
    ) -> Result<(), CpError> {
        let in_ring = self.thread(id).frames.last().is_none_or(|frame| frame.level == 0);
        let Some(protected) = self.protected.as_deref().filter(|_| !in_ring) else { return Ok(()) };
        for RegisterAccess { first, count, read } in self.register_accesses(header, payload) {
            if let Some(reg) = (first..first.saturating_add(count)).find(|&reg| protected.refuses(reg, read))
            {
                return Err(CpError { iova: at.dword(0), kind: CpErrorKind::Protected { reg, read } });
            }
        }
        Ok(())
    }

    fn register_accesses(&self, header: AdrenoPacketHeader, payload: &Dwords<'_>) -> Vec<RegisterAccess> {
        let opcode = match header {
            AdrenoPacketHeader::Registers { reg, count } => return vec![access(reg, count, false)],
            AdrenoPacketHeader::Operation { opcode, .. } => opcode,
            AdrenoPacketHeader::Padding => return Vec::new(),
        };
        let Some(word) = payload.get(0) else { return Vec::new() };
        let pairs = |from: usize| {
            let registers = (from..payload.len()).step_by(2).filter_map(|at| payload.get(at));
            registers.map(|reg| access(reg, 1, false)).collect()
        };
        match self.operation(opcode) {
            AdrenoOp::RegWrite => payload.get(1).map(|reg| access(reg, 1, false)).into_iter().collect(),
            AdrenoOp::ContextRegBunch => pairs(0),
            AdrenoOp::ContextRegBunch2 | AdrenoOp::NonContextRegBunch => pairs(2),
            AdrenoOp::MemToReg => vec![access(word, (word >> 19 & 0x7ff).max(1), false)],
            AdrenoOp::RegToMem | AdrenoOp::RegToMemOffsetReg | AdrenoOp::RegToMemOffsetMem => {
                vec![access(word, (word >> 18 & 0xfff).max(1), true)]
            }
            AdrenoOp::ScratchToReg => vec![access(word, 1 + (word >> 24 & 7), false)],
            AdrenoOp::RegToScratch => vec![access(word, 1 + (word >> 24 & 7), true)],
            AdrenoOp::WaitRegEq => vec![access(word, 1, true)],
            AdrenoOp::RegRmw if payload.len() >= 3 => {
                let rmw = RegRmw::parse(*payload, self.generation);
                let operands = [rmw.mask, rmw.with].into_iter().filter_map(|operand| match operand {
                    RmwOperand::Register(reg) => Some(access(reg, 1, true)),
                    RmwOperand::Number(_) => None,
                });
                let own = [true, false].map(|read| access(rmw.dst, 1, read));
                operands.chain(own.into_iter().filter(|_| !rmw.scratch)).collect()
            }
            op @ (AdrenoOp::WaitRegMem | AdrenoOp::CondWrite5) => {
                let wait = Wait::parse(AdrenoOp::WaitRegMem, payload.stored(), self.generation);
                let polled = wait.and_then(|wait| match wait.operand {
                    WaitOperand::Register(reg) => Some(access(reg, 1, true)),
                    _ => None,
                });
                let to_register = op == AdrenoOp::CondWrite5 && word >> 8 & 1 == 0;
                let written = payload.get(5).filter(|_| to_register).map(|reg| access(reg, 1, false));
                polled.into_iter().chain(written).collect()
            }
            _ => Vec::new(),
        }
    }
}
