//! Positions in the register files, byte by byte.

use std::fmt;
use unwedge_isa::amdgcn::Reg;

/// A byte of a register; for a value, its first byte. Registers are numbered as [`Reg`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PhysReg(u16);

impl PhysReg {
    /// The condition code.
    pub const SCC: PhysReg = PhysReg::of(Reg::SCC);
    /// `vcc`.
    pub const VCC: PhysReg = PhysReg::of(Reg::VCC);
    /// `exec`.
    pub const EXEC: PhysReg = PhysReg::of(Reg::EXEC);
    /// `m0`.
    pub const M0: PhysReg = PhysReg::of(Reg::M0);

    /// The first byte of a register.
    pub const fn of(reg: Reg) -> PhysReg {
        PhysReg(reg.0 * 4)
    }

    /// A scalar register.
    pub const fn sgpr(number: u8) -> PhysReg {
        PhysReg::of(Reg::sgpr(number))
    }

    /// A vector register.
    pub const fn vgpr(number: u8) -> PhysReg {
        PhysReg::of(Reg::vgpr(number))
    }

    /// The register it is in.
    pub const fn reg(self) -> Reg {
        Reg(self.0 / 4)
    }

    /// Which byte of that register it is.
    pub const fn byte(self) -> u8 {
        (self.0 % 4) as u8
    }

    /// The position this many bytes further.
    #[must_use]
    pub const fn advance(self, bytes: u16) -> PhysReg {
        PhysReg(self.0 + bytes)
    }

    /// Its number among all bytes of registers.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The byte with a number.
    pub const fn from_index(index: u16) -> PhysReg {
        PhysReg(index)
    }

    /// The text of `bytes` bytes from here on: `s[4:7]`, `v1`, `vcc`, `v2.b0-1`.
    pub fn run(self, bytes: u8) -> RegRun {
        RegRun { first: self, bytes }
    }
}

/// Bytes of registers that follow each other.
#[derive(Debug, Clone, Copy)]
pub struct RegRun {
    first: PhysReg,
    bytes: u8,
}

impl fmt::Display for RegRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dwords = (u16::from(self.first.byte()) + u16::from(self.bytes)).div_ceil(4).max(1);
        let reg = self.first.reg();
        let name = reg.run_name(dwords);
        // A pair is written by the pair's name.
        let name = match (reg, dwords) {
            (Reg::VCC | Reg::EXEC | Reg::FLAT_SCRATCH, 2) => name.trim_end_matches("_lo").to_owned(),
            (Reg::SCC, _) => "scc".to_owned(),
            _ => name,
        };
        f.write_str(&name)?;
        if self.first.byte() != 0 || !self.bytes.is_multiple_of(4) {
            let first = self.first.byte();
            write!(f, ".b{first}-{}", u16::from(first) + u16::from(self.bytes) - 1)?;
        }
        Ok(())
    }
}
