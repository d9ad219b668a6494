//! The ring of an engine: where it is by the registers and the blocks of a dump, and which part of it is walked.
//!
//! Never: walking it.

use super::walk::RingRange;
use unwedge_capture::intel::{DumpEngine, RingRegister};
use unwedge_hw::intel::ring::{HEAD_OFFSET, MAX_SIZE, PAGE, TAIL_OFFSET, size};

/// How far before HEAD a walk starts that looks for what the engine works at: the start of the request is not known.
const BEFORE_HEAD: u32 = 0x400;
/// What such a walk starts at a multiple of.
const LINE: u32 = 0x40;

/// The ring of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineRing {
    /// Its address in the global table.
    pub start: u64,
    /// Bytes of it that the dump holds.
    pub held: u64,
    /// Offset of HEAD, and of TAIL. `None` where the dump does not have the register, or has that of another ring.
    pub head: Option<u32>,
    /// See `head`.
    pub tail: Option<u32>,
    /// Its length in bytes by RING_CTL, if that tells one.
    size: Option<u32>,
    /// The registers of the dump are not those of another ring.
    own: bool,
}

impl EngineRing {
    /// The ring that RING_START names, if the dump holds it, else the one in a block of the dump at `block`. `held`: bytes
    /// that the dump holds from an address of the global table on. `None` if it holds neither.
    pub fn of(
        engine: &DumpEngine<'_>,
        block: Option<u64>,
        held: impl Fn(u64) -> Option<u64>,
    ) -> Option<EngineRing> {
        let page = |start: u64| start & !u64::from(PAGE - 1);
        let named = engine.ring(RingRegister::Start).map(page).filter(|start| *start != 0);
        let is_held = |start: u64| Some((start, held(start).filter(|bytes| *bytes > 0)?));
        let (start, held) = named.and_then(is_held).or_else(|| block.and_then(is_held))?;
        let own = named.is_none_or(|named| named == page(start));
        let of = |register| engine.ring(register).map(|value| value as u32).filter(|_| own);
        Some(EngineRing {
            start,
            held,
            head: of(RingRegister::Head).map(|value| value & HEAD_OFFSET),
            tail: of(RingRegister::Tail).map(|value| value & TAIL_OFFSET),
            // A length of one page is what the register is reset to.
            size: of(RingRegister::Ctl).map(size).filter(|size| *size > PAGE),
            own,
        })
    }

    /// All of it that the dump holds.
    pub fn whole(&self) -> Option<RingRange> {
        let size = u32::try_from(self.held).ok()?;
        Some(RingRange { start: self.start, size, from: 0, to: size })
    }

    /// What the engine works at, and what was left to do: from before HEAD to TAIL, or all of it where the dump has neither, as
    /// from kernels up to 3.1. `None` where the dump does not say.
    pub fn at_work(&self) -> Option<RingRange> {
        let size = self.size.unwrap_or(self.held.min(u64::from(MAX_SIZE)) as u32);
        if self.own && self.head.is_none() && self.tail.is_none() {
            let to = (self.held.min(u64::from(MAX_SIZE)) as u32).saturating_sub(8);
            return Some(RingRange { start: self.start, size, from: 0, to });
        }
        let from = self.head?.saturating_sub(BEFORE_HEAD) & !(LINE - 1);
        Some(RingRange { start: self.start, size, from, to: self.tail? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_base::Span;
    use unwedge_capture::intel::{IntelRegister, RegisterIndex};

    /// An engine with these registers.
    fn engine(registers: &[(&'static str, u64)]) -> DumpEngine<'static> {
        let register = |&(name, value): &(&'static str, u64)| IntelRegister {
            name,
            index: RegisterIndex::default(),
            value,
            more: &[],
            span: Span::new(0, 0),
        };
        DumpEngine { registers: registers.iter().map(register).collect(), ..DumpEngine::default() }
    }

    const START: u64 = 0x12_d000;

    #[test]
    fn registers_name_the_ring_and_say_where_the_engine_is() {
        let registers = [("START", START), ("HEAD", 0x0620_08cc), ("TAIL", 0x0920), ("CTL", 0x3001)];
        let ring = EngineRing::of(&engine(&registers), Some(0x9000), |_| Some(0x4000)).unwrap();
        assert_eq!((ring.start, ring.head, ring.tail), (START, Some(0x8cc), Some(0x920)));
        let at_work = RingRange { start: START, size: 0x4000, from: 0x4c0, to: 0x920 };
        assert_eq!(ring.at_work(), Some(at_work));
        assert_eq!(ring.whole(), Some(RingRange { start: START, size: 0x4000, from: 0, to: 0x4000 }));
    }

    #[test]
    fn registers_of_another_ring_say_nothing_of_the_one_in_the_dump() {
        let registers = [("START", START), ("HEAD", 8), ("TAIL", 16)];
        let held = |start: u64| (start == 0x9000).then_some(0x1000);
        let ring = EngineRing::of(&engine(&registers), Some(0x9000), held).unwrap();
        assert_eq!((ring.start, ring.head, ring.at_work()), (0x9000, None, None));
        assert!(ring.whole().is_some());
        assert_eq!(EngineRing::of(&engine(&registers), None, held), None);
    }
}
