//! Numbers that are known once everything has its address: addresses of labels, sizes of blocks, distances.

use std::fmt;

/// What a number is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// `&label+0x10`: an address.
    Address(String, u64),
    /// `lo(&label+0x10)`: its lower dword.
    Low(String, u64),
    /// `hi(&label+0x10)`: its upper dword.
    High(String, u64),
    /// `size(label)`: dwords of a block.
    Size(String),
    /// `units(label)`: units of 128 bytes of a block, in which shaders are measured.
    Units(String),
    /// `until(label)`: dwords from the end of the packet to a label of its stream.
    Until(String),
}

impl Term {
    /// The label it depends on.
    pub(super) fn label(&self) -> &str {
        match self {
            Term::Address(label, _) | Term::Low(label, _) | Term::High(label, _) => label,
            Term::Size(label) | Term::Units(label) | Term::Until(label) => label,
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |f: &mut fmt::Formatter<'_>, label: &str, offset: u64| match offset {
            0 => write!(f, "&{label}"),
            offset => write!(f, "&{label}+{offset:#x}"),
        };
        match self {
            Term::Address(label, offset) => address(f, label, *offset),
            Term::Low(label, offset) => {
                f.write_str("lo(")?;
                address(f, label, *offset)?;
                f.write_str(")")
            }
            Term::High(label, offset) => {
                f.write_str("hi(")?;
                address(f, label, *offset)?;
                f.write_str(")")
            }
            Term::Size(label) => write!(f, "size({label})"),
            Term::Units(label) => write!(f, "units({label})"),
            Term::Until(label) => write!(f, "until({label})"),
        }
    }
}

/// Bits of a value that a term decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TermBits {
    /// The number.
    pub(super) term: Term,
    /// Lowest bit that it takes.
    pub(super) low: u32,
    /// How many; 64 from bit 0 for a pointer: bits above an address may be another thing's.
    pub(super) width: u32,
    /// It is shifted down by so many bits first.
    pub(super) shr: u32,
    /// Byte of the line where it is.
    pub(super) byte: usize,
}

impl TermBits {
    /// The bits of a number, in their place; `None` when it does not fit.
    pub(super) fn place(&self, number: u64) -> Option<u64> {
        let moved = number.checked_shr(self.shr)?;
        if moved.checked_shl(self.shr)? != number {
            // The lower half of an address loses the bits that its field does not have.
            return match self.term {
                Term::Low(..) => moved.checked_shl(self.low),
                _ => None,
            };
        }
        let fits = self.width >= 64 || moved >> self.width == 0;
        if fits { moved.checked_shl(self.low) } else { None }
    }
}

/// A value, as far as it is known, and what decides the rest of its bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Value {
    /// Bits that are known.
    pub(super) bits: u64,
    /// Others.
    pub(super) terms: Vec<TermBits>,
}

impl From<u64> for Value {
    fn from(bits: u64) -> Value {
        Value { bits, terms: Vec::new() }
    }
}
