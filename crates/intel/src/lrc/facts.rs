//! The facts of `data/intel/lrc.*`, as the build script writes them down.

use unwedge_hw::intel::platform::{EngineClass, IntelDriver, Version};

/// A table of a driver.
pub struct BuiltinTable {
    pub name: &'static str,
    pub drivers: &'static [IntelDriver],
    pub bytes: &'static [u8],
}

/// A driver takes this table for engines of these classes from a version on.
pub struct TableUse {
    pub driver: IntelDriver,
    pub since: Version,
    pub classes: &'static [EngineClass],
    /// Index in [`TABLES`].
    pub table: usize,
}

/// Where a register stands from a version on.
pub struct PositionRow {
    pub name: &'static str,
    /// Its offset from the engine's base.
    pub register: u32,
    pub since: Version,
    pub classes: &'static [EngineClass],
    /// The dword of its offset; none where it has no place from here on.
    pub dword: Option<usize>,
}

/// A register in a range of versions.
pub struct RegisterInfo {
    pub offset: u32,
    /// The one to show first.
    pub names: &'static [&'static str],
    pub masked: bool,
    pub since: Version,
    pub until: Version,
    pub fields: &'static [FieldInfo],
}

/// Bits of a register in a range of versions.
pub struct FieldInfo {
    pub high: u8,
    pub low: u8,
    pub name: &'static str,
    pub address: bool,
    pub since: Version,
    pub until: Version,
}

include!(concat!(env!("OUT_DIR"), "/lrc.rs"));

/// Of facts that hold from a version on, the one that holds at `version`.
pub fn latest<T>(facts: impl Iterator<Item = (Version, T)>, version: Version) -> Option<T> {
    facts.filter(|(since, _)| *since <= version).max_by_key(|(since, _)| *since).map(|(_, fact)| fact)
}
