//! Packets that make the CP wait for a value: on what, for what, and whether the dump shows it there.
//!
//! Facts: the packet layouts of CP_WAIT_REG_MEM and CP_WAIT_MEM_GTE in freedreno's register description.

use unwedge_base::Generation;
use unwedge_stream::adreno::Op;

use crate::adreno::case::Case;

/// Where the awaited value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// A register.
    Register(u32),
    /// Memory.
    Memory(u64),
    /// Something a dump never holds: scratch or on-chip memory.
    OnChip(u32),
}

/// A wait for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Where.
    pub polled: Polled,
    /// Comparison, as CP_WAIT_REG_MEM encodes it: always, <, <=, ==, !=, >=, >.
    pub function: u8,
    /// With what.
    pub reference: u32,
    /// Which bits count.
    pub mask: u32,
    /// Signed comparison.
    pub signed: bool,
}

const RELATIONS: [&str; 7] = ["anything", "<", "<=", "==", "!=", ">=", ">"];
const GREATER_OR_EQUAL: u8 = 5;

impl Wait {
    /// From a packet's payload; `None` if it is no such packet, or cut.
    pub fn parse(op: Op, payload: &[u32], generation: Generation) -> Option<Wait> {
        match (op, generation.is_64bit(), payload) {
            (Op::WaitRegMem, true, &[flags, low, high, reference, mask, ..]) => {
                let polled = match (flags >> 4) & 3 {
                    0 => Polled::Register(low & 0x3_ffff),
                    1 => Polled::Memory(wide(low, high)),
                    _ => Polled::OnChip(low),
                };
                Some(Wait { polled, function: (flags & 7) as u8, reference, mask, signed: flags & 8 != 0 })
            }
            (Op::WaitRegMem, false, &[flags, at, reference, mask, ..]) => {
                let memory = flags & 0x10 != 0;
                let polled =
                    if memory { Polled::Memory(u64::from(at & !3)) } else { Polled::Register(at & 0x7fff) };
                Some(Wait { polled, function: (flags & 7) as u8, reference, mask, signed: false })
            }
            (Op::WaitMemGte, true, &[_, low, high, reference, ..]) => Some(Wait {
                polled: Polled::Memory(wide(low, high)),
                function: GREATER_OR_EQUAL,
                reference,
                mask: u32::MAX,
                signed: true,
            }),
            _ => None,
        }
    }

    /// The value in the dump, if it has it.
    pub fn now(&self, case: &Case<'_>) -> Option<u32> {
        match self.polled {
            Polled::Register(reg) => case.regs.at(reg),
            Polled::Memory(iova) => case.memory.read(iova),
            Polled::OnChip(_) => None,
        }
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

    /// What is awaited, in words: `[0x1000] & 0xff == 0x1`.
    pub fn describe(&self, case: &Case<'_>) -> String {
        let place = match self.polled {
            Polled::Register(reg) => {
                case.gpu.reg(reg).map_or_else(|| format!("register {reg:#x}"), |r| r.name().to_owned())
            }
            Polled::Memory(iova) => format!("[{iova:#x}]"),
            Polled::OnChip(at) => format!("on-chip {at:#x}"),
        };
        let mask = if self.mask == u32::MAX { String::new() } else { format!(" & {:#x}", self.mask) };
        let relation = RELATIONS.get(usize::from(self.function)).copied().unwrap_or("?");
        format!("{place}{mask} {relation} {:#x}", self.reference)
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
        let wait = Wait::parse(Op::WaitRegMem, &[0x13, 0x1000, 1, 5, 0xff, 0], Generation::A6xx).unwrap();
        assert_eq!(wait.polled, Polled::Memory(0x1_0000_1000));
        assert!(wait.accepts(0xf05) && !wait.accepts(6));
        let wait = Wait::parse(Op::WaitRegMem, &[3, 0x50f, 0, 1, 1, 0], Generation::A7xx).unwrap();
        assert_eq!(wait.polled, Polled::Register(0x50f));
        let wait = Wait::parse(Op::WaitRegMem, &[0x14, 0x2000, 7, u32::MAX, 1], Generation::A3xx).unwrap();
        assert_eq!(wait.polled, Polled::Memory(0x2000));
        assert!(wait.accepts(6) && !wait.accepts(7));
        let wait = Wait::parse(Op::WaitMemGte, &[0, 0x1000, 0, 5], Generation::A6xx).unwrap();
        assert!(wait.accepts(5) && !wait.accepts(u32::MAX), "compared as signed numbers");
        assert_eq!(Wait::parse(Op::WaitRegMem, &[0x13], Generation::A6xx), None);
    }
}
