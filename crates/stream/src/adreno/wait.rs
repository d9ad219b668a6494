//! Packets that make the CP wait for a value: on what, and for what.
//!
//! Facts: the packet layouts of CP_WAIT_REG_MEM and CP_WAIT_MEM_GTE in freedreno's register description.

use crate::adreno::AdrenoOp;
use crate::{WaitOperand, WaitRelation};
use unwedge_base::Generation;

/// A wait for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What is polled.
    pub operand: WaitOperand,
    /// Comparison, as CP_WAIT_REG_MEM encodes it: always, <, <=, ==, !=, >=, >.
    pub function: u8,
    /// With what.
    pub reference: u32,
    /// Which bits count.
    pub mask: u32,
    /// Signed comparison.
    pub signed: bool,
}

const GREATER_OR_EQUAL: u8 = 5;

impl Wait {
    /// Dwords of a payload that say all about a wait.
    pub const DWORDS: usize = 5;

    /// From a packet's payload; `None` if it is no such packet, or cut.
    pub fn parse(op: AdrenoOp, payload: &[u32], generation: Generation) -> Option<Wait> {
        match (op, generation.is_64bit(), payload) {
            (AdrenoOp::WaitRegMem, true, &[flags, low, high, reference, mask, ..]) => {
                let operand = match (flags >> 4) & 3 {
                    0 => WaitOperand::Register(low & 0x3_ffff),
                    1 => WaitOperand::Memory(wide(low, high)),
                    _ => WaitOperand::OnChip(low),
                };
                Some(Wait { operand, function: (flags & 7) as u8, reference, mask, signed: flags & 8 != 0 })
            }
            (AdrenoOp::WaitRegMem, false, &[flags, at, reference, mask, ..]) => {
                let memory = flags & 0x10 != 0;
                let operand = if memory {
                    WaitOperand::Memory(u64::from(at & !3))
                } else {
                    WaitOperand::Register(at & 0x7fff)
                };
                Some(Wait { operand, function: (flags & 7) as u8, reference, mask, signed: false })
            }
            (AdrenoOp::WaitMemGte, true, &[_, low, high, reference, ..]) => Some(Wait {
                operand: WaitOperand::Memory(wide(low, high)),
                function: GREATER_OR_EQUAL,
                reference,
                mask: u32::MAX,
                signed: true,
            }),
            _ => None,
        }
    }

    /// The comparison.
    pub fn relation(&self) -> Option<WaitRelation> {
        WaitRelation::of_pm4(self.function.into())
    }

    /// Whether a value ends the wait.
    pub fn accepts(&self, value: u32) -> bool {
        let value = value & self.mask;
        let order = if self.signed {
            (value as i32).cmp(&(self.reference as i32))
        } else {
            value.cmp(&self.reference)
        };
        match self.function {
            1 => order.is_lt(),
            2 => order.is_le(),
            3 => order.is_eq(),
            4 => order.is_ne(),
            5 => order.is_ge(),
            6 => order.is_gt(),
            _ => true,
        }
    }
}

fn wide(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_packets_and_both_address_sizes() {
        let wait =
            Wait::parse(AdrenoOp::WaitRegMem, &[0x13, 0x1000, 1, 5, 0xff, 0], Generation::A6xx).unwrap();
        assert_eq!(wait.operand, WaitOperand::Memory(0x1_0000_1000));
        assert!(wait.accepts(0xf05) && !wait.accepts(6));
        let wait = Wait::parse(AdrenoOp::WaitRegMem, &[3, 0x50f, 0, 1, 1, 0], Generation::A7xx).unwrap();
        assert_eq!(wait.operand, WaitOperand::Register(0x50f));
        let wait =
            Wait::parse(AdrenoOp::WaitRegMem, &[0x14, 0x2000, 7, u32::MAX, 1], Generation::A3xx).unwrap();
        assert_eq!(wait.operand, WaitOperand::Memory(0x2000));
        assert!(wait.accepts(6) && !wait.accepts(7));
        let wait = Wait::parse(AdrenoOp::WaitMemGte, &[0, 0x1000, 0, 5], Generation::A6xx).unwrap();
        assert!(wait.accepts(5) && !wait.accepts(u32::MAX), "compared as signed numbers");
        assert_eq!(Wait::parse(AdrenoOp::WaitRegMem, &[0x13], Generation::A6xx), None);
    }
}
