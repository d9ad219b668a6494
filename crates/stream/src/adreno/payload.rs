//! Payloads of packets that change what follows, as numbers with names: the walker and the virtual machine read them here.
//!
//! Facts: freedreno's adreno_pm4 register description. Never: state; what a condition finds, the reader finds out.

use crate::adreno::{GroupState, Stage, StateSource, StateType};
use unwedge_base::{Dwords, Generation};

/// Registers have 18 bits.
const REG: u32 = 0x3_ffff;
const DWORDS: u32 = 0xff_ffff;

fn bit(value: u32, position: u32) -> bool {
    value >> position & 1 != 0
}

fn arg(payload: Dwords<'_>, i: usize) -> u32 {
    payload.get(i).unwrap_or(0)
}

/// What a test reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestOperand {
    /// A register, in dwords.
    Register(u32),
    /// A dword of the CP's on-chip memory (a7xx).
    OnChip(u32),
}

impl TestOperand {
    fn parse(word: u32, on_chip: bool) -> TestOperand {
        if on_chip { TestOperand::OnChip(word & REG) } else { TestOperand::Register(word & REG) }
    }
}

/// What CP_COND_REG_EXEC asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegCondition {
    /// A predicate that CP_REG_TEST has set, by number.
    Predicate(u8),
    /// Two values are equal.
    Equal(TestOperand, TestOperand),
    /// A value is this number.
    EqualTo(TestOperand, u32),
    /// The render mode is one of these: bits of [`mode`](crate::adreno::mode).
    Modes(u8),
    /// The thread is one of these.
    Threads {
        /// BR.
        br: bool,
        /// BV.
        bv: bool,
    },
    /// A condition of another kind.
    Other,
}

/// CP_COND_REG_EXEC: a condition over the dwords that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CondRegExec {
    /// What has to hold.
    pub condition: RegCondition,
    /// Over so many dwords.
    pub dwords: u32,
    /// Dwords that the payload has when it is whole.
    pub needed: u32,
}

impl CondRegExec {
    /// From a payload; what is missing of it counts as 0.
    pub fn parse(payload: Dwords<'_>) -> CondRegExec {
        let (word, second) = (arg(payload, 0), arg(payload, 1));
        let first = TestOperand::parse(word, bit(word, 24));
        let condition = match word >> 28 {
            1 => RegCondition::Predicate((word >> 18 & 31) as u8),
            2 => RegCondition::Equal(first, TestOperand::parse(second, bit(second, 24))),
            3 => RegCondition::Modes((word >> 25 & 7) as u8),
            4 => RegCondition::EqualTo(first, second),
            5 => RegCondition::Threads { bv: bit(word, 25), br: bit(word, 26) },
            _ => RegCondition::Other,
        };
        let long = matches!(condition, RegCondition::Equal(..) | RegCondition::EqualTo(..));
        let needed = if long { 3 } else { 2 };
        CondRegExec { condition, dwords: arg(payload, needed as usize - 1) & DWORDS, needed }
    }
}

/// CP_REG_TEST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegTest {
    /// Predicates become these bits, where the mask has ones.
    Update {
        /// Which.
        mask: u32,
        /// Their values.
        values: u32,
    },
    /// A predicate becomes a bit of a value.
    Bit {
        /// What is read.
        operand: TestOperand,
        /// Which bit.
        bit: u32,
        /// Which predicate.
        predicate: u8,
    },
}

impl RegTest {
    /// From a payload.
    pub fn parse(payload: Dwords<'_>) -> RegTest {
        let word = arg(payload, 0);
        if bit(word, 31) {
            return RegTest::Update { mask: arg(payload, 1), values: arg(payload, 2) };
        }
        RegTest::Bit {
            operand: TestOperand::parse(word, bit(word, 18)),
            bit: word >> 20 & 31,
            predicate: (word >> 26 & 31) as u8,
        }
    }
}

/// The buffer that CP_INDIRECT_BUFFER and its relatives name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndirectBuffer {
    /// Where it begins.
    pub iova: u64,
    /// Its size as the payload has it; see [`IndirectBuffer::dwords`].
    pub size: u32,
}

impl IndirectBuffer {
    /// Dwords that a payload has when it is whole.
    pub fn needed(generation: Generation) -> u32 {
        if generation.is_64bit() { 3 } else { 2 }
    }

    /// From a payload; `None` when it is not whole.
    pub fn parse(payload: Dwords<'_>, generation: Generation) -> Option<IndirectBuffer> {
        let last = IndirectBuffer::needed(generation) as usize - 1;
        let iova = if generation.is_64bit() { payload.get64(0)? } else { payload.get(0)?.into() };
        Some(IndirectBuffer { iova, size: payload.get(last)? })
    }

    /// Dwords in it: sizes have 20 bits.
    pub fn dwords(&self) -> u32 {
        self.size & 0xf_ffff
    }
}

/// An operand of CP_REG_RMW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmwOperand {
    /// The number itself.
    Number(u32),
    /// The value of a register.
    Register(u32),
}

impl RmwOperand {
    fn parse(word: u32, register: bool) -> RmwOperand {
        if register { RmwOperand::Register(word & REG) } else { RmwOperand::Number(word) }
    }
}

/// CP_REG_RMW: what is there, masked and rotated, with something added or its bits set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegRmw {
    /// Register or, with [`RegRmw::scratch`], scratch register.
    pub dst: u32,
    /// A scratch register is changed (a7xx).
    pub scratch: bool,
    /// Which bits stay.
    pub mask: RmwOperand,
    /// What comes to them.
    pub with: RmwOperand,
    /// It is added, and not combined bit by bit.
    pub add: bool,
    /// The bits that stay are rotated left by so many.
    pub rotate: u32,
}

impl RegRmw {
    /// From a payload.
    pub fn parse(payload: Dwords<'_>, generation: Generation) -> RegRmw {
        let word = arg(payload, 0);
        RegRmw {
            dst: word & REG,
            scratch: generation >= Generation::A7xx && bit(word, 19),
            mask: RmwOperand::parse(arg(payload, 1), bit(word, 31)),
            with: RmwOperand::parse(arg(payload, 2), bit(word, 30)),
            add: bit(word, 29),
            rotate: word >> 24 & 31,
        }
    }

    /// The new value, as far as its parts are known.
    pub fn value(&self, old: Option<u32>, mask: Option<u32>, with: Option<u32>) -> Option<u32> {
        let kept = if mask == Some(0) { Some(0) } else { old.zip(mask).map(|(old, mask)| old & mask) };
        kept.zip(with).map(|(kept, with)| {
            let rotated = kept.rotate_left(self.rotate);
            if self.add { rotated.wrapping_add(with) } else { rotated | with }
        })
    }
}

/// An entry of CP_SET_DRAW_STATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEntry {
    /// All groups are forgotten.
    DisableAll,
    /// This one is.
    Disable(u8),
    /// It waits for the next draw.
    Set(u8, GroupState),
    /// It is executed now, and forgotten.
    LoadNow(u8, GroupState),
}

impl GroupEntry {
    /// Dwords of an entry.
    pub fn dwords(generation: Generation) -> usize {
        if generation.is_64bit() { 3 } else { 2 }
    }

    /// From the dwords of an entry on.
    pub fn parse(entry: Dwords<'_>, generation: Generation) -> GroupEntry {
        let word = arg(entry, 0);
        let wide = generation.is_64bit();
        let iova = if wide { entry.get64(1).unwrap_or(0) } else { u64::from(arg(entry, 1)) };
        let flags = (word >> 16 & 0xf) as u8;
        let set = GroupState { count: word & 0xffff, iova, flags, enable_mask: (word >> 20 & 0xf) as u8 };
        let id = (word >> 24 & 0x1f) as u8;
        match flags {
            _ if bit(word, 18) => GroupEntry::DisableAll,
            _ if bit(word, 17) => GroupEntry::Disable(id),
            _ if bit(word, 19) => GroupEntry::LoadNow(id, set),
            _ => GroupEntry::Set(id, set),
        }
    }
}

/// The header of CP_LOAD_STATE and its relatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadStateHeader {
    /// For which stage; `None` for state shared by the stages of a draw.
    pub stage: Option<Stage>,
    /// What.
    pub ty: StateType,
    /// From where.
    pub source: StateSource,
    /// Units.
    pub units: u32,
    /// First unit written.
    pub dst: u32,
    /// Where it is to be found: an address, an offset, a UBO, as the source says.
    pub place: u64,
}

impl LoadStateHeader {
    /// Dwords of it.
    pub fn dwords(generation: Generation) -> usize {
        if generation.is_64bit() { 3 } else { 2 }
    }

    /// From a payload.
    pub fn parse(payload: Dwords<'_>, generation: Generation) -> LoadStateHeader {
        let (first, second) = (arg(payload, 0), arg(payload, 1));
        let old = generation <= Generation::A3xx;
        let source = if old {
            if first >> 16 & 7 == 0 { StateSource::Direct } else { StateSource::Indirect }
        } else {
            match first >> 16 & 3 {
                1 => StateSource::Bindless,
                2 => StateSource::Indirect,
                3 if generation >= Generation::A6xx => StateSource::Ubo,
                _ => StateSource::Direct,
            }
        };
        let (stage, ty) = super::load_state::kind(first, second, generation);
        let wide = generation.is_64bit();
        LoadStateHeader {
            stage,
            ty,
            source,
            units: first >> 22 & 0x3ff,
            dst: first & if old { 0xffff } else { 0x3fff },
            place: if wide { payload.get64(1).unwrap_or(0) } else { u64::from(second) },
        }
    }

    /// Dwords that are loaded.
    pub fn size(&self, generation: Generation) -> usize {
        self.units as usize * self.ty.unit(generation) as usize
    }
}
