//! What instructions read and write.

use super::class::RegClass;
use super::entities::Temp;
use super::reg::PhysReg;
use unwedge_base::inline::InlineList;

/// The source of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Source {
    /// A temporary.
    Temp(Temp),
    /// A constant: its bits, as many as its class holds.
    Const(u64),
    /// Undefined bits.
    #[default]
    Undef,
    /// The value of a register that does not hold a temporary, such as `exec`.
    Fixed,
}

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operand {
    /// What it is.
    pub source: Source,
    /// Its class; of a constant its size.
    pub class: RegClass,
    /// The register that it must be in, or after allocation is in.
    pub reg: Option<PhysReg>,
    /// The temporary dies here. Set by the analysis of live variables.
    pub kill: bool,
    /// This is the first of the operands with this temporary, which dies here.
    pub first_kill: bool,
    /// It must not share a register with a definition, although it dies here, because it is still read when the definition is written.
    pub late_kill: bool,
}

impl Default for Operand {
    fn default() -> Operand {
        Operand::undef(RegClass::S1)
    }
}

/// Operands of one instruction. Few have more.
pub type OperandList = InlineList<Operand, 4>;

impl Operand {
    const fn new(source: Source, class: RegClass, reg: Option<PhysReg>) -> Operand {
        Operand { source, class, reg, kill: false, first_kill: false, late_kill: false }
    }

    /// A temporary.
    pub const fn temp(temp: Temp, class: RegClass) -> Operand {
        Operand::new(Source::Temp(temp), class, None)
    }

    /// A temporary that must be in a register.
    pub const fn fixed(temp: Temp, class: RegClass, reg: PhysReg) -> Operand {
        Operand::new(Source::Temp(temp), class, Some(reg))
    }

    /// A constant of 32 bits.
    pub const fn c32(bits: u32) -> Operand {
        Operand::new(Source::Const(bits as u64), RegClass::S1, None)
    }

    /// A constant of 64 bits.
    pub const fn c64(bits: u64) -> Operand {
        Operand::new(Source::Const(bits), RegClass::S2, None)
    }

    /// A constant of 16 bits.
    pub const fn c16(bits: u16) -> Operand {
        Operand::new(Source::Const(bits as u64), RegClass::vgpr_bytes(2), None)
    }

    /// A constant with the bytes of a class.
    pub const fn constant(bits: u64, class: RegClass) -> Operand {
        Operand::new(Source::Const(bits), class, None)
    }

    /// Undefined bits of a class.
    pub const fn undef(class: RegClass) -> Operand {
        Operand::new(Source::Undef, class, None)
    }

    /// The contents of a register.
    pub const fn reg(reg: PhysReg, class: RegClass) -> Operand {
        Operand::new(Source::Fixed, class, Some(reg))
    }

    /// Its temporary, if it is one.
    pub const fn as_temp(&self) -> Option<Temp> {
        match self.source {
            Source::Temp(temp) => Some(temp),
            _ => None,
        }
    }

    /// Its bits, if it is a constant.
    pub const fn as_const(&self) -> Option<u64> {
        match self.source {
            Source::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// Whether it is this constant.
    pub fn is_const(&self, bits: u64) -> bool {
        self.as_const() == Some(bits)
    }

    /// Whether it is undefined.
    pub const fn is_undef(&self) -> bool {
        matches!(self.source, Source::Undef)
    }
}

/// A definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Definition {
    /// The temporary; `None` if a register such as `exec` is written that does not hold one.
    pub temp: Option<Temp>,
    /// Its class.
    pub class: RegClass,
    /// The register that it must be in, or after allocation is in.
    pub reg: Option<PhysReg>,
    /// The temporary is never read. Set by the analysis of live variables.
    pub kill: bool,
}

impl Definition {
    /// A temporary.
    pub const fn temp(temp: Temp, class: RegClass) -> Definition {
        Definition { temp: Some(temp), class, reg: None, kill: false }
    }

    /// A temporary in a register.
    pub const fn fixed(temp: Temp, class: RegClass, reg: PhysReg) -> Definition {
        Definition { temp: Some(temp), class, reg: Some(reg), kill: false }
    }

    /// A register.
    pub const fn reg(reg: PhysReg, class: RegClass) -> Definition {
        Definition { temp: None, class, reg: Some(reg), kill: false }
    }
}
