//! Facts of GPU hardware: registers, bitfields, enums, packet layouts and devices, compiled in from the tables under
//! `data/`.
//!
//! Look-ups by register offset take constant time and allocate nothing. Never: walking a command stream, I/O beyond
//! what the caller passes in.

use unwedge_base::Generation;

/// A register database: the built-in one, or one made from rnndb XML at run time.
pub struct Db {}

/// Which database decoded something. Every output of unwedge names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `built-in`, or the folder the XML came from.
    pub source: String,
    /// Version of the facts, such as `mesa-25.0.7`; empty when unknown.
    pub version: String,
    /// Hash of the tables' contents, 16 hex digits.
    pub hash: String,
}

impl Db {
    /// The compiled-in tables. Costs nothing: no parsing, no allocation.
    pub fn builtin() -> Db {
        unimplemented!()
    }
    /// Which database this is.
    pub fn identity(&self) -> &Identity {
        unimplemented!()
    }
    /// The view of one GPU generation.
    pub fn gpu(&self, _generation: Generation) -> Gpu<'_> {
        unimplemented!()
    }
}

/// The database as one GPU generation sees it.
#[derive(Clone, Copy)]
pub struct Gpu<'d> {
    _d: &'d Db,
}

/// An address space of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The GPU's own registers (dword offsets).
    Gpu,
    /// The GMU's (a6xx on).
    Gmu,
    /// The CP's internal control registers (a5xx on).
    CpControl,
    /// The CP's pipe registers (a5xx on).
    CpPipe,
    /// The SQE's special registers (a6xx on).
    Sqe,
}

impl<'d> Gpu<'d> {
    /// Which generation this is a view of.
    pub fn generation(self) -> Generation {
        unimplemented!()
    }
    /// One of its register spaces.
    pub fn space(self, _space: Space) -> Registers<'d> {
        unimplemented!()
    }
    /// The register whose dword is at this offset of the GPU space.
    pub fn reg(self, _offset: u32) -> Option<Reg<'d>> {
        unimplemented!()
    }
    /// Offset of a register of the GPU space by its full name, `RB_MRT[1].CONTROL` or `RB_MRT[0x1].CONTROL`.
    pub fn reg_offset(self, _name: &str) -> Option<u32> {
        unimplemented!()
    }
    /// Name of a type 3 or 7 packet, `CP_NOP`.
    pub fn packet_name(self, _opcode: u8) -> Option<&'d str> {
        unimplemented!()
    }
    /// A packet's payload layout, or a descriptor's (`A6XX_TEX_CONST`), by name; `None` too when it does not exist on
    /// this generation.
    pub fn domain(self, _name: &str) -> Option<Domain<'d>> {
        unimplemented!()
    }
    /// An enum by name, as this generation sees it.
    pub fn enumeration(self, _name: &str) -> Option<Enum<'d>> {
        unimplemented!()
    }
}

/// A register space.
#[derive(Clone, Copy)]
pub struct Registers<'d> {
    _d: &'d Db,
}

impl<'d> Registers<'d> {
    /// The register whose dword is at `offset`. Constant time.
    pub fn at(self, _offset: u32) -> Option<Reg<'d>> {
        unimplemented!()
    }
    /// Offset of a register by its full name.
    pub fn offset_of(self, _name: &str) -> Option<u32> {
        unimplemented!()
    }
    /// Every register dword by offset.
    pub fn iter(self) -> impl Iterator<Item = Reg<'d>> {
        std::iter::empty()
    }
}

/// One dword of a register (of a packet's payload, of a descriptor).
#[derive(Clone, Copy)]
pub struct Reg<'d> {
    _d: &'d Db,
}

impl<'d> Reg<'d> {
    /// Dword offset.
    pub fn offset(self) -> u32 {
        unimplemented!()
    }
    /// Full name as rnn prints it: `RB_MRT[0x1].CONTROL`, `CP_RB_BASE_HI`, `RBBM_PERFCTR_CP[0]+0x1`.
    pub fn name(self) -> &'d str {
        unimplemented!()
    }
    /// Which dword of the register this is: 0 is the low one.
    pub fn dword(self) -> u32 {
        unimplemented!()
    }
    /// Width of the register in bits, 32 or 64; 0 for a hole inside an array.
    pub fn width(self) -> u32 {
        unimplemented!()
    }
    /// How to read its value; `None` for a hole inside an array.
    pub fn ty(self) -> Option<Type<'d>> {
        unimplemented!()
    }
}

/// The layout of a packet's payload or of a descriptor.
#[derive(Clone, Copy)]
pub struct Domain<'d> {
    _d: &'d Db,
}

impl<'d> Domain<'d> {
    /// `CP_LOAD_STATE6`.
    pub fn name(self) -> &'d str {
        unimplemented!()
    }
    /// The entry at this dword, given what the fields decoded before have selected.
    pub fn at(self, _index: u32, _selected: &Variants) -> Option<Reg<'d>> {
        unimplemented!()
    }
    /// Dword index of an entry by name.
    pub fn index_of(self, _name: &str, _selected: &Variants) -> Option<u32> {
        unimplemented!()
    }
}

/// What the variant-selecting fields of packets have chosen so far (the mode of CP_COND_REG_EXEC decides which fields
/// follow). Starts empty; decoding a value updates it.
#[derive(Clone, Debug, Default)]
pub struct Variants {}

/// How the bits of a value read.
#[derive(Clone, Copy)]
pub struct Type<'d> {
    _d: &'d Db,
}

/// A decoded value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'d> {
    /// One bit.
    Bool(bool),
    /// An unsigned number.
    Uint(u64),
    /// A signed number.
    Int(i64),
    /// Bits without a better reading.
    Hex(u64),
    /// A GPU address.
    Address(u64),
    /// An enum's value, with its name if the database has one.
    Enum(u64, Option<&'d str>),
    /// Fixed or floating point.
    Float(f64),
    /// A shader register: r2.y is (2, 1).
    RegId(u32, u32),
    /// Fields of an embedded bitset.
    Fields(Vec<Field<'d>>),
}

/// A decoded field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'d> {
    /// Its name; empty for bits no field of the database covers.
    pub name: &'d str,
    /// Lowest bit.
    pub low: u32,
    /// Highest bit.
    pub high: u32,
    /// The bits, shifted down to bit 0.
    pub raw: u64,
    /// What they mean.
    pub value: Value<'d>,
}

impl<'d> Type<'d> {
    /// The type's name: `boolean`, `address`, `a6xx_format` …
    pub fn name(self) -> &'d str {
        unimplemented!()
    }
    /// It is made of fields.
    pub fn is_bitset(self) -> bool {
        unimplemented!()
    }
    /// A GPU address (`address`, `waddress`).
    pub fn is_address(self) -> bool {
        unimplemented!()
    }
    /// Highest bit of the value.
    pub fn high(self) -> u32 {
        unimplemented!()
    }
    /// The typed value.
    pub fn decode(self, _value: u64, _selected: &mut Variants) -> Value<'d> {
        unimplemented!()
    }
    /// The raw bits of one field, by name, shifted down and then up by the field's shift (an address comes out whole).
    pub fn field(self, _value: u64, _name: &str) -> Option<u64> {
        unimplemented!()
    }
    /// Appends the value in rnn's notation: `{ A | B = 0x3 }`.
    pub fn write(self, _value: u64, _selected: &mut Variants, _palette: &Palette, _out: &mut Vec<u8>) {
        unimplemented!()
    }
}

/// Escape sequences put around parts of the text; all empty for plain text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Palette {
    /// Back to normal.
    pub reset: &'static str,
    /// Register and field names.
    pub name: &'static str,
    /// Numbers.
    pub number: &'static str,
    /// Enum values.
    pub value: &'static str,
    /// Flags that are set.
    pub flag: &'static str,
    /// Packet names.
    pub packet: &'static str,
    /// Anything the database does not know.
    pub error: &'static str,
}

/// An enum.
#[derive(Clone, Copy)]
pub struct Enum<'d> {
    _d: &'d Db,
}

impl<'d> Enum<'d> {
    /// The name of a value.
    pub fn name_of(self, _value: u64) -> Option<&'d str> {
        unimplemented!()
    }
    /// The value of a name.
    pub fn value_of(self, _name: &str) -> Option<u64> {
        unimplemented!()
    }
}

/// Joins the dwords of 64-bit registers as they come in.
pub struct Pairs<'d> {
    _regs: Registers<'d>,
}

/// A GPU of the device table.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Marketing-free name, `FD630`.
    pub name: &'static str,
    /// Its generation.
    pub generation: Generation,
}
