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

/// What each register holds.
#[derive(Debug, Clone)]
pub(super) struct RegFile(Vec<u32>);

impl Default for RegFile {
    fn default() -> RegFile {
        RegFile(vec![0; REGS])
    }
}

impl RegFile {
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// The temporary in a register.
    pub fn at(&self, reg: u16) -> Option<Temp> {
        let held = *self.0.get(usize::from(reg))?;
        held.checked_sub(1).map(|index| Temp::new(index as usize))
    }

    pub fn put(&mut self, span: RegSpan, temp: Temp) {
        self.fill(span, temp.index() as u32 + 1);
    }

    pub fn free(&mut self, span: RegSpan) {
        self.fill(span, 0);
    }

    fn fill(&mut self, span: RegSpan, value: u32) {
        let all = usize::from(span.first)..usize::from(span.end()).min(REGS);
        if let Some(regs) = self.0.get_mut(all) {
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
