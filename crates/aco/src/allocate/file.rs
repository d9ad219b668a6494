//! The register file during allocation: which temporary each register holds.

use crate::ir::{PhysReg, RegClass, Temp};
use unwedge_base::entity::Entity;

/// Registers are counted in dwords.
const REGS: usize = 512;
/// The first vector register.
pub(super) const VECTOR: u16 = 256;

/// Runs of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RegSpan {
    pub first: u16,
    pub count: u16,
}

impl RegSpan {
    pub fn new(reg: PhysReg, class: RegClass) -> RegSpan {
        RegSpan { first: (reg.index() / 4) as u16, count: class.dwords().into() }
    }

    pub fn end(self) -> u16 {
        self.first + self.count
    }

    pub fn meets(self, other: RegSpan) -> bool {
        self.first < other.end() && other.first < self.end()
    }

    pub fn reg(self) -> PhysReg {
        PhysReg::from_index(self.first * 4)
    }
}

/// A set of registers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RegSet([u64; REGS / 64]);

impl RegSet {
    pub fn insert(&mut self, span: RegSpan) {
        for reg in span.first..span.end().min(REGS as u16) {
            self.0[usize::from(reg / 64)] |= 1 << (reg % 64);
        }
    }

    pub fn remove(&mut self, span: RegSpan) {
        for reg in span.first..span.end().min(REGS as u16) {
            self.0[usize::from(reg / 64)] &= !(1 << (reg % 64));
        }
    }

    /// The first window of some size and alignment within a range whose registers are all in the set. The alignment is 1, 2, or 4.
    pub fn first_window(&self, range: (u16, u16), count: u16, alignment: u16) -> Option<RegSpan> {
        let mut starts = self.0;
        for by in 1..count {
            let (words, bits) = (usize::from(by / 64), u32::from(by % 64));
            for (at, start) in starts.iter_mut().enumerate() {
                let word = |at: usize| self.0.get(at).copied().unwrap_or_default();
                let high = if bits == 0 { 0 } else { word(at + words + 1) << (64 - bits) };
                *start &= word(at + words) >> bits | high;
            }
        }
        let aligned = match alignment {
            1 => u64::MAX,
            2 => u64::MAX / 3,
            _ => u64::MAX / 15,
        };
        let (from, end) = (usize::from(range.0), usize::from(range.1.saturating_sub(count - 1)));
        for (at, start) in starts.iter().enumerate().skip(from / 64) {
            let base = at * 64;
            let above = if base < from { u64::MAX << (from - base) } else { u64::MAX };
            let first = base + (start & aligned & above).trailing_zeros() as usize;
            if first < base + 64 {
                return (first < end).then_some(RegSpan { first: first as u16, count });
            }
        }
        None
    }
}

/// What each register holds.
#[derive(Debug, Clone)]
pub(super) struct RegFile {
    /// By register: the number of a temporary and one, or 0.
    held: Vec<u32>,
    free: RegSet,
}

impl Default for RegFile {
    fn default() -> RegFile {
        RegFile { held: vec![0; REGS], free: RegSet([u64::MAX; REGS / 64]) }
    }
}

impl RegFile {
    pub fn clear(&mut self) {
        self.held.fill(0);
        self.free = RegSet([u64::MAX; REGS / 64]);
    }

    /// The temporary in a register.
    pub fn at(&self, reg: u16) -> Option<Temp> {
        let held = *self.held.get(usize::from(reg))?;
        held.checked_sub(1).map(|index| Temp::new(index as usize))
    }

    /// Registers that hold nothing.
    pub fn free_regs(&self) -> RegSet {
        self.free
    }

    pub fn put(&mut self, span: RegSpan, temp: Temp) {
        self.free.remove(span);
        self.fill(span, temp.index() as u32 + 1);
    }

    pub fn free(&mut self, span: RegSpan) {
        self.free.insert(span);
        self.fill(span, 0);
    }

    fn fill(&mut self, span: RegSpan, value: u32) {
        let all = usize::from(span.first)..usize::from(span.end()).min(REGS);
        if let Some(regs) = self.held.get_mut(all) {
            regs.fill(value);
        }
    }

    /// Temporaries in some registers, each once.
    pub fn held(&self, span: RegSpan) -> Vec<Temp> {
        let mut temps: Vec<Temp> = (span.first..span.end()).filter_map(|reg| self.at(reg)).collect();
        temps.dedup();
        temps
    }

    pub fn is_free(&self, span: RegSpan) -> bool {
        (span.first..span.end()).all(|reg| self.at(reg).is_none())
    }
}

/// What the first register of a class must be a multiple of.
pub(super) fn alignment(class: RegClass) -> u16 {
    match (class.is_sgpr(), class.dwords()) {
        (false, _) | (true, 1) => 1,
        (true, 2) => 2,
        (true, _) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first window, found by a look at every register of every window.
    fn searched(set: &RegSet, range: (u16, u16), count: u16, alignment: u16) -> Option<u16> {
        let has = |reg: u16| set.0[usize::from(reg / 64)] >> (reg % 64) & 1 != 0;
        (range.0..range.1)
            .filter(|first| first.is_multiple_of(alignment))
            .find(|first| first + count <= range.1 && (*first..first + count).all(has))
    }

    #[test]
    fn the_first_window_is_that_of_a_search() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = |below: u16| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) as u16 % below
        };
        let mut found = 0;
        for _ in 0..20_000 {
            let mut set = RegSet::default();
            for _ in 0..next(40) {
                set.insert(RegSpan { first: next(512), count: 1 + next(40) });
            }
            for _ in 0..next(20) {
                set.remove(RegSpan { first: next(512), count: 1 + next(4) });
            }
            let from = next(512);
            let range = (from, from + next(513 - from));
            let (count, alignment) = (1 + next(32), 1 << next(3));
            let window = set.first_window(range, count, alignment).map(|span| span.first);
            assert_eq!(
                window,
                searched(&set, range, count, alignment),
                "{set:?} {range:?} {count} {alignment}"
            );
            found += u32::from(window.is_some());
        }
        assert!(found > 2_000, "{found}");
    }
}
