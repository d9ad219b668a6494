//! Register classes: which registers may hold a temporary, and how many bytes of them.

use std::fmt;

/// A file of registers, by what keeps a value alive in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bank {
    /// Scalar registers: one value for the wave, alive along the linear flow.
    Sgpr,
    /// Vector registers: a value for each lane, alive along the logical flow, as lanes that `exec` disables keep what they have.
    Vgpr,
    /// Vector registers whose disabled lanes matter, too: alive along the linear flow.
    LinearVgpr,
}

/// What a temporary needs: a bank, and a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegClass {
    bank: Bank,
    bytes: u8,
}

impl RegClass {
    /// One scalar register.
    pub const S1: RegClass = RegClass::sgpr(1);
    /// Two scalar registers.
    pub const S2: RegClass = RegClass::sgpr(2);
    /// One vector register.
    pub const V1: RegClass = RegClass::vgpr(1);
    /// Two vector registers.
    pub const V2: RegClass = RegClass::vgpr(2);
    /// The most bytes that a class has: 32 registers.
    pub const MAX_BYTES: u8 = 128;

    /// Scalar registers.
    pub const fn sgpr(dwords: u8) -> RegClass {
        RegClass { bank: Bank::Sgpr, bytes: dwords * 4 }
    }

    /// Vector registers.
    pub const fn vgpr(dwords: u8) -> RegClass {
        RegClass { bank: Bank::Vgpr, bytes: dwords * 4 }
    }

    /// Linear vector registers.
    pub const fn linear_vgpr(dwords: u8) -> RegClass {
        RegClass { bank: Bank::LinearVgpr, bytes: dwords * 4 }
    }

    /// The class of a bank and a size in bytes. `None` for zero or too many bytes, and for parts of scalar or linear vector registers.
    pub const fn new(bank: Bank, bytes: u8) -> Option<RegClass> {
        let whole = matches!(bank, Bank::Vgpr) || bytes.is_multiple_of(4);
        if bytes == 0 || bytes > RegClass::MAX_BYTES || !whole {
            return None;
        }
        Some(RegClass { bank, bytes })
    }

    /// Vector registers that hold this many bytes.
    pub const fn vgpr_bytes(bytes: u8) -> RegClass {
        RegClass { bank: Bank::Vgpr, bytes }
    }

    /// A bit for each lane: one scalar register in wave32, two in wave64.
    pub const fn lane_mask(wave64: bool) -> RegClass {
        RegClass::sgpr(1 + wave64 as u8)
    }

    /// A constant of this class whose bits are all set, of at most 8 bytes.
    pub const fn all_bits(self) -> u64 {
        u64::MAX >> (64 - self.bytes() as u32 * 8)
    }

    /// The bank.
    pub const fn bank(self) -> Bank {
        self.bank
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u8 {
        self.bytes
    }

    /// How many registers hold it, the last one possibly in part.
    pub const fn dwords(self) -> u8 {
        self.bytes.div_ceil(4)
    }

    /// Whether it is held by scalar registers.
    pub const fn is_sgpr(self) -> bool {
        matches!(self.bank, Bank::Sgpr)
    }

    /// Whether it is held by vector registers.
    pub const fn is_vgpr(self) -> bool {
        !self.is_sgpr()
    }

    /// Whether it is alive along the linear flow.
    pub const fn is_linear(self) -> bool {
        !matches!(self.bank, Bank::Vgpr)
    }

    /// Whether its last register is only partly used.
    pub const fn is_subdword(self) -> bool {
        !self.bytes.is_multiple_of(4)
    }

    /// The same bank with another size.
    #[must_use]
    pub const fn resized(self, bytes: u8) -> RegClass {
        RegClass { bank: self.bank, bytes }
    }

    /// The class with a name: `s2`, `v1`, `v2b` (two bytes), `lv1`.
    pub fn parse(name: &str) -> Option<RegClass> {
        let (bank, size) = if let Some(size) = name.strip_prefix("lv") {
            (Bank::LinearVgpr, size)
        } else if let Some(size) = name.strip_prefix('v') {
            (Bank::Vgpr, size)
        } else {
            (Bank::Sgpr, name.strip_prefix('s')?)
        };
        let bytes = match size.strip_suffix('b') {
            Some(bytes) => bytes.parse::<u8>().ok()?,
            None => size.parse::<u8>().ok()?.checked_mul(4)?,
        };
        RegClass::new(bank, bytes)
    }
}

impl fmt::Display for RegClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bank = match self.bank {
            Bank::Sgpr => "s",
            Bank::Vgpr => "v",
            Bank::LinearVgpr => "lv",
        };
        if self.is_subdword() {
            write!(f, "{bank}{}b", self.bytes)
        } else {
            write!(f, "{bank}{}", self.bytes / 4)
        }
    }
}
