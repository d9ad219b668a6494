//! Registers of command streamers: names, fields.

use super::facts::{self, FieldInfo, RegisterInfo};
use unwedge_hw::intel::platform::Version;

/// A register of some version.
#[derive(Clone, Copy)]
pub struct LrcRegister {
    info: &'static RegisterInfo,
    version: Version,
}

/// A field with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LrcField {
    /// Its name.
    pub name: &'static str,
    /// Its bits: high and low end, both included.
    pub bits: (u8, u8),
    /// Its value; of an address, with the bits below it.
    pub value: u32,
    /// It is an address, or an offset in bytes.
    pub address: bool,
}

/// The register at an offset from an engine's base.
pub fn at(offset: u32, version: Version) -> Option<LrcRegister> {
    let start = facts::REGISTERS.partition_point(|r| r.offset < offset);
    let same = facts::REGISTERS.get(start..)?.iter().take_while(|r| r.offset == offset);
    let info = same.into_iter().find(|r| r.since <= version && version < r.until)?;
    Some(LrcRegister { info, version })
}

/// The offset of a name.
pub fn by_name(name: &str) -> Option<u32> {
    facts::REGISTERS.iter().find(|r| r.names.contains(&name)).map(|r| r.offset)
}

/// Every register of a version, by offset.
pub fn all(version: Version) -> impl Iterator<Item = LrcRegister> {
    facts::REGISTERS
        .chunk_by(|a, b| a.offset == b.offset)
        .filter_map(move |same| at(same.first()?.offset, version))
}

impl LrcRegister {
    /// Its offset from an engine's base.
    pub fn offset(self) -> u32 {
        self.info.offset
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.info.names.first().copied().unwrap_or_default()
    }

    /// The upper half says which bits of the lower half a write changes.
    pub fn masked(self) -> bool {
        self.info.masked
    }

    /// The fields of a value, from the highest.
    pub fn fields(self, value: u32) -> impl Iterator<Item = LrcField> {
        let fields = self.info.fields.iter();
        fields.filter(move |f| f.since <= self.version && self.version < f.until).map(move |f| f.of(value))
    }
}

impl FieldInfo {
    fn of(&self, value: u32) -> LrcField {
        let mask = u32::MAX >> (31 - u32::from(self.high).min(31)) & u32::MAX << u32::from(self.low).min(31);
        let value = if self.address { value & mask } else { (value & mask) >> u32::from(self.low).min(31) };
        LrcField { name: self.name, bits: (self.high, self.low), value, address: self.address }
    }
}

/// Offsets that the checks of this crate ask for.
pub mod offset {
    /// RING_BUFFER_TAIL.
    pub const TAIL: u32 = 0x030;
    /// RING_BUFFER_HEAD.
    pub const HEAD: u32 = 0x034;
    /// RING_BUFFER_START.
    pub const START: u32 = 0x038;
    /// RING_BUFFER_CONTROL.
    pub const CONTROL: u32 = 0x03c;
    /// MI_MODE.
    pub const MI_MODE: u32 = 0x09c;
    /// BB_PER_CTX_PTR.
    pub const BB_PER_CTX_PTR: u32 = 0x1c0;
    /// RCS_INDIRECT_CTX.
    pub const INDIRECT_CTX: u32 = 0x1c4;
    /// RCS_INDIRECT_CTX_OFFSET.
    pub const INDIRECT_CTX_OFFSET: u32 = 0x1c8;
    /// CTXT_SR_CTL.
    pub const CONTEXT_CONTROL: u32 = 0x244;
    /// PDP0_LDW; PTBP_LDW.
    pub const PDP0_LDW: u32 = 0x270;
}
