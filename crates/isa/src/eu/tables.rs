//! The tables that the build script makes of `data/intel/eu`, and the vocabulary of their rows.

/// A platform, see `data/intel/eu/platforms.txt`.
#[derive(Debug)]
pub struct PlatformRow {
    /// Its name.
    pub name: &'static str,
    /// Its generation, an index.
    pub generation: u8,
    /// Whether 64-bit floats run in the math pipe.
    pub math_doubles: bool,
    /// Whether there are 64-bit floats.
    pub doubles: bool,
    /// Whether there are 64-bit integers.
    pub quads: bool,
    /// Whether it has the restrictions of the low power parts of gen8 and gen9 on 64-bit types.
    pub low_power: bool,
}

/// An opcode: name, operands, and its code by generation.
#[derive(Debug)]
pub struct OpcodeRow {
    /// What it does.
    pub opcode: Opcode,
    /// Its name in assembly.
    pub name: &'static str,
    /// How many sources it has.
    pub sources: u8,
    /// How many destinations it has.
    pub destinations: u8,
    /// Its code by generation.
    pub codes: [Option<u8>; GENERATIONS],
}

/// Instructions that a row of the scoreboard table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwsbClass {
    /// All.
    Any,
    /// `send` and `sendc`.
    Send,
    /// `dpas`.
    Dpas,
    /// All but `send`, `sendc` and `dpas`.
    Other,
    /// Those that end out of order: messages, math, dpas, doubles in the math pipe.
    Unordered,
    /// All others.
    Ordered,
}

/// What an instruction is to the scoreboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SwsbKind {
    /// `send` and `sendc`.
    Send,
    /// `dpas`.
    Dpas,
    /// Another one that ends out of order.
    Unordered,
    /// Another one.
    Ordered,
}

/// What an instruction does with a scoreboard token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenMode {
    /// It allocates the token.
    Set,
    /// It waits until the token's instruction has written its destination.
    Dst,
    /// It waits until the token's instruction has read its sources.
    Src,
}

/// What a pattern of the scoreboard field means.
#[derive(Debug)]
pub struct SwsbRow {
    /// First generation, an index.
    pub first: u8,
    /// Last generation, an index.
    pub last: u8,
    /// The bits that decide.
    pub mask: u16,
    /// What they are.
    pub value: u16,
    /// The bits of the distance.
    pub distance: u16,
    /// The bits of the token.
    pub token: u16,
    /// The instructions it is for.
    pub class: SwsbClass,
    /// The pipe's letter, empty when it is inferred.
    pub pipe: &'static str,
    /// What is done with the token.
    pub mode: Option<TokenMode>,
}

/// The bits of a field in one generation.
#[derive(Debug)]
pub struct FieldBits {
    /// As many ones as the first range, which is the highest part of the value, has bits; 0 where there is no field.
    pub mask: u64,
    /// Its lowest bit. No range is in both halves of an instruction.
    pub low: u8,
    /// Bits of all ranges.
    pub width: u8,
    /// The other ranges: first and count in `FIELD_PARTS`.
    pub rest: (u8, u8),
}

/// A table of compaction in one generation.
#[derive(Debug)]
pub struct CompactRows {
    /// (lowest bit, width) in the full instruction, the highest part first.
    pub ranges: &'static [(u8, u8)],
    /// The bits by index.
    pub entries: &'static [u64],
}

include!(concat!(env!("OUT_DIR"), "/eu.rs"));
