//! How the compiled tables of Intel facts are laid out: slots of records of 32-bit words. The build script writes them,
//! the library reads them.

/// The first record.
pub mod header {
    /// Ends of the strings in the pool.
    pub const STRINGS: u32 = 0;
    /// Generation records, oldest first.
    pub const GENERATIONS: u32 = 1;
    /// Number of them.
    pub const GENERATION_COUNT: u32 = 2;
    /// Hash of the contents, low half first.
    pub const HASH: u32 = 3;
    /// Words of this record.
    pub const SIZE: u32 = 5;
}

/// A generation. Lists are sorted: by name, or registers by offset.
pub mod generation {
    /// Ten times its number: 125 is 12.5.
    pub const NUMBER: u32 = 0;
    /// Candidates by bits 28:23 of MI commands (64 words).
    pub const MI: u32 = 1;
    /// Candidates by bits 28:22 of blitter commands (128 words).
    pub const BLITTER: u32 = 2;
    /// By bits 31:24, of all other commands: pages of candidates by bits 23:16 (256 and 256 words).
    pub const OTHER: u32 = 3;
    /// Instructions by name.
    pub const INSTRUCTIONS: u32 = 4;
    /// Number of them.
    pub const INSTRUCTION_COUNT: u32 = 5;
    /// Structures by name.
    pub const STRUCTURES: u32 = 6;
    /// Number of them.
    pub const STRUCTURE_COUNT: u32 = 7;
    /// Registers by name.
    pub const REGISTERS: u32 = 8;
    /// Number of them.
    pub const REGISTER_COUNT: u32 = 9;
    /// Registers by offset: those at an address, and after them those relative to an engine's base.
    pub const OFFSETS: u32 = 10;
    /// Number of those at an address.
    pub const ABSOLUTE_COUNT: u32 = 11;
    /// Enums by name.
    pub const ENUMS: u32 = 12;
    /// Number of them.
    pub const ENUM_COUNT: u32 = 13;
    /// Words of this record.
    pub const SIZE: u32 = 14;
}

/// A command.
pub mod instruction {
    /// Name.
    pub const NAME: u32 = 0;
    /// Bits of the header that are the opcode…
    pub const MATCH: u32 = 1;
    /// … where these are set.
    pub const MASK: u32 = 2;
    /// Length in dwords as it is usually written; 0 where every one has its own.
    pub const DWORDS: u32 = 3;
    /// Highest bit of the length field (bits 7:0) and what is added to it (bits 15:8); 0 where it has none.
    pub const LENGTH: u32 = 4;
    /// Engines that know it.
    pub const ENGINES: u32 = 5;
    /// Its fields.
    pub const LAYOUT: u32 = 6;
    /// Words of this record.
    pub const SIZE: u32 = 7;
}

/// A structure.
pub mod structure {
    /// Name.
    pub const NAME: u32 = 0;
    /// Length in dwords.
    pub const DWORDS: u32 = 1;
    /// Its fields.
    pub const LAYOUT: u32 = 2;
    /// Words of this record.
    pub const SIZE: u32 = 3;
}

/// A register.
pub mod register {
    /// Name.
    pub const NAME: u32 = 0;
    /// Byte offset.
    pub const OFFSET: u32 = 1;
    /// Length in dwords (bits 30:0); bit 31: the offset counts from the base of an engine.
    pub const DWORDS: u32 = 2;
    /// Its fields.
    pub const LAYOUT: u32 = 3;
    /// Words of this record.
    pub const SIZE: u32 = 4;
}

/// A field or group of a layout. A layout is a count and that many of these.
pub mod item {
    /// Name.
    pub const NAME: u32 = 0;
    /// Lowest bit, from the start of the layout.
    pub const START: u32 = 1;
    /// Bits; of a group, those of one of its elements.
    pub const WIDTH: u32 = 2;
    /// [`super::kind`] (bits 7:0); bits behind the point of fixed-point numbers (bits 15:8).
    pub const KIND: u32 = 3;
    /// Enum of the values' names; layout of a structure; record of a group: elements (0: to the end) and layout.
    pub const PAYLOAD: u32 = 4;
    /// Words of this record.
    pub const SIZE: u32 = 5;
}

/// How the bits of a field read.
pub mod kind {
    /// Unsigned.
    pub const UINT: u32 = 0;
    /// Signed, two's complement.
    pub const INT: u32 = 1;
    /// Flag.
    pub const BOOL: u32 = 2;
    /// IEEE single precision.
    pub const FLOAT: u32 = 3;
    /// Unsigned fixed point.
    pub const UFIXED: u32 = 4;
    /// Signed fixed point.
    pub const SFIXED: u32 = 5;
    /// Address, in place.
    pub const ADDRESS: u32 = 6;
    /// Offset from a base address, in place.
    pub const OFFSET: u32 = 7;
    /// Must be zero.
    pub const ZERO: u32 = 8;
    /// Must be one.
    pub const ONE: u32 = 9;
    /// A structure.
    pub const STRUCT: u32 = 10;
    /// Not a field: elements of one layout, one behind the other.
    pub const GROUP: u32 = 11;
}

/// An enum: name, count, and pairs of value and name, sorted by value.
pub mod enumeration {
    /// Name; empty for one of a single field.
    pub const NAME: u32 = 0;
    /// Number of values.
    pub const COUNT: u32 = 1;
    /// The first value.
    pub const VALUES: u32 = 2;
}
