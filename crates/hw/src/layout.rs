//! The shape of compiled tables: little-endian 32-bit words beside one pool of strings. `compile` writes it, `db` reads
//! it; nothing else knows it, and it is never stored anywhere but inside the program.
//!
//! A reference is the index of a word; 0 refers to nothing. A string is an index into the string table, whose entries
//! are ends of strings in the pool.

/// First word of the tables.
pub const MAGIC: u32 = 0x5244_4155;

/// Words of the header.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: u32 = 0;
    /// String table: where each string ends in the pool.
    pub const STRINGS: u32 = 1;
    /// Number of strings.
    pub const STRING_COUNT: u32 = 2;
    /// One generation record for each generation of the family.
    pub const GENERATIONS: u32 = 3;
    /// Device records.
    pub const DEVICES: u32 = 4;
    /// Number of devices.
    pub const DEVICE_COUNT: u32 = 5;
    /// Low half of the hash over words and pool, taken while this and what follows was 0.
    pub const HASH: u32 = 6;
    /// Where in the pool the version of the facts stands.
    pub const VERSION: u32 = 8;
    /// Its length.
    pub const VERSION_LEN: u32 = 9;
    /// Size of the header.
    pub const SIZE: u32 = 10;
}

/// A generation.
pub mod generation {
    /// Table records of the register spaces, in the order of `SPACES`.
    pub const SPACES: u32 = 0;
    /// Number of register spaces.
    pub const SPACE_COUNT: u32 = 6;
    /// Strings: names of packets by opcode, 256 of them.
    pub const PACKETS: u32 = 6;
    /// Pairs of string and table record, sorted by name.
    pub const DOMAINS: u32 = 7;
    /// Number of domains.
    pub const DOMAIN_COUNT: u32 = 8;
    /// Pairs of string and enum record, sorted by name.
    pub const ENUMS: u32 = 9;
    /// Number of enums.
    pub const ENUM_COUNT: u32 = 10;
    /// Size of the record.
    pub const SIZE: u32 = 11;
}

/// A register space or domain.
pub mod table {
    /// String.
    pub const NAME: u32 = 0;
    /// Entry records, by offset; those of one offset in the order of precedence.
    pub const ENTRIES: u32 = 1;
    /// Number of entries.
    pub const COUNT: u32 = 2;
    /// Directory: offset → first entry, plus one.
    pub const ROOT: u32 = 3;
    /// Length of the directory.
    pub const ROOT_LEN: u32 = 4;
    /// 0: the directory holds entries. 1: it is the first of three levels.
    pub const PAGED: u32 = 5;
    /// Triples of string, offset and condition, sorted by name.
    pub const NAMES: u32 = 6;
    /// Number of names.
    pub const NAME_COUNT: u32 = 7;
    /// Size of the record.
    pub const SIZE: u32 = 8;

    /// Bits of the offset that index the last level of a paged directory.
    pub const LEAF_BITS: u32 = 6;
    /// Bits that index the middle level.
    pub const MIDDLE_BITS: u32 = 10;
}

/// A dword of a register.
pub mod entry {
    /// Offset.
    pub const OFFSET: u32 = 0;
    /// String.
    pub const NAME: u32 = 1;
    /// Type record; 0 for a hole.
    pub const TYPE: u32 = 2;
    /// Condition.
    pub const CONDITION: u32 = 3;
    /// Width in bits, and from bit 8 which unit of the register this is.
    pub const WIDTH: u32 = 4;
    /// String: usage; 0 for none.
    pub const USAGE: u32 = 5;
    /// Size of the record.
    pub const SIZE: u32 = 6;
}

/// A type.
pub mod ty {
    /// Kind, low bit, high bit, shift: one byte each.
    pub const BITS: u32 = 0;
    /// String.
    pub const NAME: u32 = 1;
    /// Fields, enum or type record, or the radix.
    pub const PAYLOAD: u32 = 2;
    /// Selector the value decides, plus one.
    pub const SELECTOR: u32 = 3;
    /// Alignment of the value in bytes; 0 when not stated.
    pub const ALIGN: u32 = 4;
    /// Size of the record.
    pub const SIZE: u32 = 5;
}

/// Kinds of type.
pub mod kind {
    /// Bits without a better reading.
    pub const HEX: u32 = 0;
    /// `address`, `waddress`.
    pub const ADDRESS: u32 = 1;
    /// Unsigned.
    pub const UINT: u32 = 2;
    /// Two's complement.
    pub const INT: u32 = 3;
    /// One bit.
    pub const BOOLEAN: u32 = 4;
    /// IEEE, 16, 32 or 64 bits.
    pub const FLOAT: u32 = 5;
    /// Signed fixed point.
    pub const FIXED: u32 = 6;
    /// Unsigned fixed point.
    pub const UFIXED: u32 = 7;
    /// A shader register.
    pub const REGID: u32 = 8;
    /// An enum.
    pub const ENUM: u32 = 9;
    /// Fields.
    pub const BITSET: u32 = 10;
    /// What another type says.
    pub const ALIAS: u32 = 11;
}

/// A list of fields: their number, then these.
pub mod field {
    /// String.
    pub const NAME: u32 = 0;
    /// Type record.
    pub const TYPE: u32 = 1;
    /// Condition.
    pub const CONDITION: u32 = 2;
    /// 1 for a placeholder (`UNK12`).
    pub const UNKNOWN: u32 = 3;
    /// Size of one.
    pub const SIZE: u32 = 4;
}

/// An enum.
pub mod enumeration {
    /// String.
    pub const NAME: u32 = 0;
    /// Value records.
    pub const VALUES: u32 = 1;
    /// Number of values.
    pub const COUNT: u32 = 2;
    /// Value → record index plus one, for small values.
    pub const DENSE: u32 = 3;
    /// Length of the dense index.
    pub const DENSE_LEN: u32 = 4;
    /// Record indices by value, for all other values.
    pub const SORTED: u32 = 5;
    /// Length of the sorted index.
    pub const SORTED_LEN: u32 = 6;
    /// 1 when values have conditions: neither index is there.
    pub const CONDITIONAL: u32 = 7;
    /// Size of the record.
    pub const SIZE: u32 = 8;
}

/// A value of an enum.
pub mod value {
    /// Low half.
    pub const LOW: u32 = 0;
    /// High half.
    pub const HIGH: u32 = 1;
    /// String.
    pub const NAME: u32 = 2;
    /// Condition.
    pub const CONDITION: u32 = 3;
    /// Its number as a variant.
    pub const VARIANT: u32 = 4;
    /// Size of the record.
    pub const SIZE: u32 = 5;
}

/// A condition: the number of tests, then these.
pub mod condition {
    /// Which selector.
    pub const SELECTOR: u32 = 0;
    /// Variants 0 to 31 that pass.
    pub const LOW: u32 = 1;
    /// Variants 32 to 63 that pass.
    pub const HIGH: u32 = 2;
    /// Size of one.
    pub const SIZE: u32 = 3;
}

/// A device.
pub mod device {
    /// String.
    pub const NAME: u32 = 0;
    /// GPU id.
    pub const GPU_ID: u32 = 1;
    /// Low half of the chip id.
    pub const CHIP_LOW: u32 = 2;
    /// High half.
    pub const CHIP_HIGH: u32 = 3;
    /// 2 to 7.
    pub const GENERATION: u32 = 4;
    /// Pairs of strings.
    pub const PROPERTIES: u32 = 5;
    /// Number of pairs.
    pub const PROPERTY_COUNT: u32 = 6;
    /// Size of the record.
    pub const SIZE: u32 = 7;
}

/// Register spaces of a generation, in the order of the record.
pub const SPACES: [&str; 6] = ["gpu", "gmu", "control", "control (third a7xx)", "pipe", "sqe"];
