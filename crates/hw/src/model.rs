//! The register facts as a person states them: files of domains, bitsets and enums, before anything is resolved for one
//! GPU. `text` and `rnndb` read and write this shape, `compile` turns it into tables.
//!
//! Never: look-ups. Offsets are in units of the domain's width, as the facts give them. The shape follows the rules-ng
//! database of Nouveau and freedreno, which the facts come from; prose is not kept.

/// Everything a database is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DbFacts {
    /// Where the facts come from, `mesa-25.0.7`; empty when unknown.
    pub version: String,
    /// The files, in the order they were read.
    pub files: Vec<FactsFile>,
    /// The device table.
    pub devices: Vec<DeviceRow>,
}

impl DbFacts {
    /// Adds the definitions of a file. Those of a file of the same name are kept, and come first.
    pub fn add(&mut self, file: FactsFile) {
        match self.files.iter_mut().find(|there| there.name == file.name) {
            Some(there) => there.items.extend(file.items),
            None => self.files.push(file),
        }
    }
}

/// One file of definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactsFile {
    /// Name without folder and ending: `a6xx`.
    pub name: String,
    /// What it defines, in order; an import stands where the imported definitions take effect.
    pub items: Vec<FactsItem>,
}

/// A definition at the top of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactsItem {
    /// Another file's definitions come in here.
    Import(String),
    /// An enum.
    Enum(EnumItem),
    /// A bitset.
    Bitset(BitsetItem),
    /// A named set of registers for `DomainElem::Use`.
    Group(GroupItem),
    /// A type with a name.
    Spectype(Spectype),
    /// An address space, a packet's payload or a descriptor.
    Domain(DomainItem),
}

/// For which variants something exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    /// The enum that `variants` names values of; inherited when absent.
    pub varset: Option<String>,
    /// Names and ranges: `A6XX`, `A5XX-`, `A2XX-A4XX`, separated by spaces.
    pub variants: Option<String>,
    /// The enum whose value prefixes names in generated headers; `none` ends an inherited one. It is also the varset
    /// of what is inside.
    pub prefix: Option<String>,
}

/// An enum. Definitions of the same name add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnumItem {
    /// `a6xx_tile_mode`.
    pub name: String,
    /// Copied into its users, so that their variants apply to its values.
    pub inline: bool,
    /// Values carry no prefix in generated headers.
    pub bare: bool,
    /// Where it exists.
    pub select: Select,
    /// In the order of the file: the first match wins.
    pub values: Vec<EnumValue>,
}

/// A value of an enum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnumValue {
    /// `TILE6_LINEAR`.
    pub name: String,
    /// The number; a few values have only a name.
    pub value: Option<u64>,
    /// Where it exists.
    pub select: Select,
}

/// How bits read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeSpec {
    /// `uint`, `address`, the name of an enum or bitset; absent when the fields or values below say it.
    pub name: Option<String>,
    /// Lowest bit.
    pub low: u32,
    /// Highest bit.
    pub high: u32,
    /// Bits the value is shifted up by when read.
    pub shr: u32,
    /// Binary digits after the point (fixed point).
    pub radix: Option<u64>,
    /// The value is a multiple of this many bytes.
    pub align: Option<u64>,
    /// Smallest valid value.
    pub min: Option<u64>,
    /// Largest valid value.
    pub max: Option<u64>,
    /// The value read selects the variant of what follows.
    pub addvariant: bool,
    /// Fields defined in place.
    pub fields: Vec<BitField>,
    /// Enum values defined in place.
    pub values: Vec<EnumValue>,
}

/// A field of a bitset or register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitField {
    /// `ROP_CODE`.
    pub name: String,
    /// Its bits and their reading.
    pub ty: TypeSpec,
    /// Where it exists.
    pub select: Select,
}

/// A bitset. Definitions of the same name add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitsetItem {
    /// `a6xx_sp_xs_config`.
    pub name: String,
    /// Copied into its users, so that their variants apply to its fields.
    pub inline: bool,
    /// Fields carry no prefix in generated headers.
    pub bare: bool,
    /// Where it exists.
    pub select: Select,
    /// The fields.
    pub fields: Vec<BitField>,
}

/// A named set of registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupItem {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub elems: Vec<DomainElem>,
}

/// A type with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spectype {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub ty: TypeSpec,
}

/// An address space, a packet's payload or a descriptor. Definitions of the same name add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainItem {
    /// `A6XX`, `CP_LOAD_STATE6`.
    pub name: String,
    /// Registers carry no prefix in generated headers.
    pub bare: bool,
    /// Bits per unit of offset; 32 in all known files.
    pub width: u32,
    /// Size in units, when stated.
    pub size: Option<u64>,
    /// Where it exists.
    pub select: Select,
    /// In the order of the file: the first match wins.
    pub elems: Vec<DomainElem>,
}

/// What stands in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainElem {
    /// A register.
    Reg(RegSpec),
    /// An array or stripe.
    Block(RegBlock),
    /// A group's registers.
    Use(String),
}

/// A register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegSpec {
    /// `RB_RENDER_CNTL`.
    pub name: String,
    /// Offset within what encloses it.
    pub offset: u64,
    /// 8, 16, 32 or 64 bits.
    pub width: u32,
    /// How many there are; 0 for no stated end.
    pub length: u64,
    /// Distance between them; 0 for their own size.
    pub stride: u64,
    /// `r`, `w` or `rw`, when stated.
    pub access: Option<String>,
    /// How drivers treat it, such as `cmd` or `rp_blit`.
    pub usage: Option<String>,
    /// Where it exists.
    pub select: Select,
    /// How its value reads.
    pub ty: TypeSpec,
}

/// Whether the instances of a block own the space between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegBlockKind {
    /// Instances are contiguous: an offset without a register is a hole of the array.
    #[default]
    Array,
    /// Registers only: several stripes may interleave.
    Stripe,
}

/// An array or stripe of registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegBlock {
    /// Array or stripe.
    pub kind: RegBlockKind,
    /// `RB_MRT`; may be absent.
    pub name: Option<String>,
    /// Offset of the first instance.
    pub offset: u64,
    /// Offset of every instance, when they are irregular.
    pub offsets: Vec<u64>,
    /// Offset known only to the driver.
    pub doffset: Option<String>,
    /// Offset of every instance, known only to the driver.
    pub doffsets: Vec<String>,
    /// Number of instances; 0 for no stated end.
    pub length: u64,
    /// Distance between them.
    pub stride: u64,
    /// Enum that names the instances.
    pub index: Option<String>,
    /// As for registers.
    pub usage: Option<String>,
    /// Where it exists.
    pub select: Select,
    /// The registers of one instance.
    pub elems: Vec<DomainElem>,
}

/// A GPU model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceRow {
    /// `FD630`.
    pub name: String,
    /// 630; 0 for those only a chip id identifies.
    pub gpu_id: u32,
    /// Chip id; 0xff as patch and 0xffff as speed bin stand for any.
    pub chip_id: u64,
    /// 2 to 7.
    pub generation: u32,
    /// Everything else, by the name Mesa gives it.
    pub properties: Vec<(String, String)>,
}

/// Something a source said that the facts or the tables cannot express, or that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactsIssue {
    /// File and line, or the name of the definition.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for FactsIssue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}
