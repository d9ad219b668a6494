//! One instruction: its bits, and its fields by name.

use super::tables::{
    FIELD_PARTS, FIELDS, FLOAT_TYPES, Field, FieldBits, IMMEDIATE_TYPES, INTEGER_TYPES, OPCODE_ROWS, OPCODES,
    Opcode, OpcodeRow, PLATFORMS, PlatformRow, REGISTER_TYPES, SWSB, SWSB_ROWS, SwsbClass, SwsbKind, SwsbRow,
    TYPES, TokenMode, Type,
};

/// Index of gen8 in the tables.
pub(super) const GEN8: u8 = 0;
/// Index of gen9.
pub(super) const GEN9: u8 = 1;
/// Index of gen11.
pub(super) const GEN11: u8 = 2;
/// Index of gen12.
pub(super) const GEN12: u8 = 3;
/// Index of gen12.5.
pub(super) const GEN125: u8 = 4;
/// Index of Xe2.
pub(super) const XE2: u8 = 5;
/// Index of Xe3.
pub(super) const XE3: u8 = 6;

/// A generation of the instruction set, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Broadwell, Cherryview.
    Gen8,
    /// Skylake and its kin.
    Gen9,
    /// Ice Lake, Elkhart Lake.
    Gen11,
    /// Tiger Lake, Alder Lake, DG1.
    Gen12,
    /// DG2, Meteor Lake.
    Gen125,
    /// Lunar Lake, Battlemage.
    Xe2,
    /// Panther Lake, Wildcat Lake.
    Xe3,
}

/// A platform: its generation, and what is special about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Platform {
    index: u8,
    /// The generation, an index of the tables.
    pub(super) generation: u8,
    math_doubles: bool,
}

/// The name is not that of a platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a platform of the EU tables, which have {names}", names = names_of_all())]
pub struct PlatformError(pub String);

fn names_of_all() -> String {
    Platform::names().collect::<Vec<_>>().join(" ")
}

impl Platform {
    /// The platform of a name as Mesa's `--gen` takes it, `tgl`.
    ///
    /// # Errors
    /// When the tables do not have it.
    pub fn by_name(name: &str) -> Result<Self, PlatformError> {
        let wanted = name.to_ascii_lowercase();
        let index = PLATFORMS
            .iter()
            .position(|row| row.name == wanted)
            .ok_or_else(|| PlatformError(name.to_owned()))?;
        let PlatformRow { generation, math_doubles, .. } = PLATFORMS[index];
        Ok(Self { index: u8::try_from(index).unwrap_or(u8::MAX), generation, math_doubles })
    }

    /// The names of all platforms.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PLATFORMS.iter().map(|row| row.name)
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What the tables say of it.
    #[must_use]
    pub fn row(self) -> &'static PlatformRow {
        &PLATFORMS[usize::from(self.index)]
    }

    /// Its generation.
    #[must_use]
    pub fn generation(self) -> Generation {
        match self.generation {
            GEN8 => Generation::Gen8,
            GEN9 => Generation::Gen9,
            GEN11 => Generation::Gen11,
            GEN12 => Generation::Gen12,
            GEN125 => Generation::Gen125,
            XE2 => Generation::Xe2,
            _ => Generation::Xe3,
        }
    }

    /// The generation's index as a subscript.
    pub(super) fn g(self) -> usize {
        usize::from(self.generation)
    }
}

/// Where an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// Architecture registers.
    Arf,
    /// General registers.
    Grf,
    /// A reserved code.
    Reserved,
    /// An immediate.
    Immediate,
}

impl Type {
    /// Its letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        TYPES[self as usize].1
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(self) -> u8 {
        TYPES[self as usize].2
    }

    /// Whether it is a float.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F | Self::HF | Self::DF | Self::VF)
    }
}

/// An instruction in its full form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The 128 bits; the first byte in memory is the lowest.
    pub bits: u128,
    /// Where it runs.
    pub platform: Platform,
}

/// The scoreboard annotation of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swsb {
    /// Distance to the in-order instruction that is waited for; 0 for none.
    pub distance: u8,
    /// Letter of the pipe it counts in, empty when it is inferred from the types.
    pub pipe: &'static str,
    /// The token, and what is done with it.
    pub token: Option<(u8, TokenMode)>,
}

impl Instruction {
    /// The instruction of 16 bytes as they are in memory.
    #[must_use]
    pub fn decode(platform: Platform, bytes: [u8; 16]) -> Self {
        Self { bits: u128::from_le_bytes(bytes), platform }
    }

    /// The bytes in memory.
    #[must_use]
    pub fn encode(self) -> [u8; 16] {
        self.bits.to_le_bytes()
    }

    /// The value of a field, 0 where the generation does not have it.
    #[must_use]
    #[inline]
    pub fn get(&self, field: Field) -> u64 {
        get_bits(self.bits, self.platform, field)
    }

    /// Sets a field. Bits above its width are dropped.
    pub fn set(&mut self, field: Field, value: u64) {
        set_bits(&mut self.bits, self.platform, field, value);
    }

    /// How many bits the field has in this generation.
    #[must_use]
    pub fn width(&self, field: Field) -> u32 {
        u32::from(FIELDS[self.platform.g()][field as usize].width)
    }

    /// A one-bit field.
    #[must_use]
    #[inline]
    pub fn flag(&self, field: Field) -> bool {
        self.get(field) != 0
    }

    /// The opcode's row, `None` for a reserved code.
    #[must_use]
    #[inline]
    pub fn row(&self) -> Option<&'static OpcodeRow> {
        let index = OPCODE_ROWS[self.platform.g()][usize::from(self.bits as u8 & 0x7f)];
        OPCODES.get(usize::from(index))
    }

    /// Whether source and descriptors have the layout of a split send.
    #[must_use]
    pub fn is_split_send(&self, opcode: Opcode) -> bool {
        matches!(opcode, Opcode::Sends | Opcode::Sendsc)
            || (self.platform.generation >= GEN12 && matches!(opcode, Opcode::Send | Opcode::Sendc))
    }

    /// Whether the first payload of a split send is a list of registers, which a scalar register holds.
    #[must_use]
    pub fn is_gather_send(&self, opcode: Opcode) -> bool {
        self.platform.generation >= XE3
            && self.is_split_send(opcode)
            && self.file(Field::SendsSrc0RegisterFile) == File::Arf
    }

    /// Whether registers are addressed in align16.
    #[must_use]
    pub fn is_align16(&self) -> bool {
        self.platform.generation <= GEN9 && self.flag(Field::AccessMode)
    }

    /// Channels, as a power of 2.
    #[must_use]
    pub fn execution_size(&self) -> u32 {
        1 << self.get(Field::ExecutionSize)
    }

    /// A register file of one or two bits.
    #[inline]
    #[must_use]
    pub fn file(&self, field: Field) -> File {
        let code = self.get(field);
        if self.platform.generation < GEN12 {
            // Message registers are gone after gen8. Mesa reads their code as that of immediates.
            let third = if self.platform.generation == GEN8 { File::Reserved } else { File::Immediate };
            return [File::Arf, File::Grf, third, File::Immediate][code as usize & 3];
        }
        match code {
            0 => File::Arf,
            1 => File::Grf,
            _ => File::Immediate,
        }
    }

    /// The type of a source or destination of a basic instruction.
    #[inline]
    #[must_use]
    pub fn basic_type(&self, field: Field, file: File) -> Option<Type> {
        let table = if file == File::Immediate { &IMMEDIATE_TYPES } else { &REGISTER_TYPES };
        table[self.platform.g()][self.get(field) as usize & 15]
    }

    /// The type of an operand of a three-source instruction in align1.
    #[must_use]
    pub fn align1_type(&self, field: Field, execution: Field) -> Option<Type> {
        let table = if self.flag(execution) { &FLOAT_TYPES } else { &INTEGER_TYPES };
        table[self.platform.g()][self.get(field) as usize & 15]
    }

    /// The types of destination and sources, as far as they are known.
    fn types(&self, row: &OpcodeRow) -> impl Iterator<Item = Type> {
        use Field as F;
        let three = row.sources == 3;
        let basic = |field, file| self.basic_type(field, file);
        let types = if row.opcode == Opcode::Dpas {
            [
                self.align1_type(F::DpasDstType, F::DpasExecutionType),
                self.align1_type(F::DpasSrc0Type, F::DpasExecutionType),
                None,
                None,
            ]
        } else if three {
            let at = |field| self.align1_type(field, F::ThreeA1ExecutionType);
            [at(F::ThreeA1DstType), at(F::ThreeA1Src0Type), at(F::ThreeA1Src1Type), at(F::ThreeA1Src2Type)]
        } else {
            let src0 = self.file(F::Src0RegisterFile);
            [
                (row.destinations > 0).then(|| basic(F::DstType, File::Grf)).flatten(),
                (row.sources > 0).then(|| basic(F::Src0Type, src0)).flatten(),
                (row.sources > 1).then(|| basic(F::Src1Type, self.file(F::Src1RegisterFile))).flatten(),
                None,
            ]
        };
        types.into_iter().flatten()
    }

    /// Whether it ends out of order, and so needs a token.
    #[must_use]
    pub fn is_unordered(&self) -> bool {
        self.row().is_some() && self.swsb_kind() != SwsbKind::Ordered
    }

    /// What it is to the scoreboard.
    fn swsb_kind(&self) -> SwsbKind {
        let Some(row) = self.row() else { return SwsbKind::Ordered };
        match row.opcode {
            Opcode::Send | Opcode::Sendc => SwsbKind::Send,
            Opcode::Dpas => SwsbKind::Dpas,
            Opcode::Math => SwsbKind::Unordered,
            _ if self.platform.math_doubles && self.types(row).any(|t| t == Type::DF) => SwsbKind::Unordered,
            _ => SwsbKind::Ordered,
        }
    }

    /// Whether a row of the scoreboard table is for this instruction.
    pub(super) fn swsb_row_fits(&self, row: &SwsbRow) -> bool {
        let kind = self.swsb_kind();
        (row.first..=row.last).contains(&self.platform.generation)
            && match row.class {
                SwsbClass::Any => true,
                SwsbClass::Send => kind == SwsbKind::Send,
                SwsbClass::Dpas => kind == SwsbKind::Dpas,
                SwsbClass::Other => matches!(kind, SwsbKind::Unordered | SwsbKind::Ordered),
                SwsbClass::Unordered => kind != SwsbKind::Ordered,
                SwsbClass::Ordered => kind == SwsbKind::Ordered,
            }
    }

    /// The scoreboard annotation, `None` for a reserved pattern.
    #[must_use]
    pub fn swsb(&self) -> Option<Swsb> {
        let bits = self.get(Field::SoftwareScoreboard) as u16;
        let rows = &SWSB_ROWS[self.platform.g()][self.swsb_kind() as usize];
        let row = SWSB.get(usize::from(*rows.get(usize::from(bits))?))?;
        let part = |mask: u16| if mask == 0 { 0 } else { ((bits & mask) >> mask.trailing_zeros()) as u8 };
        Some(Swsb {
            distance: part(row.distance),
            pipe: row.pipe,
            token: row.mode.map(|m| (part(row.token), m)),
        })
    }
}

/// The ranges of a field after its first: (lowest bit, width) of each.
fn rest(field: &FieldBits) -> &'static [(u8, u8)] {
    let (first, count) = field.rest;
    FIELD_PARTS.get(usize::from(first)..usize::from(first) + usize::from(count)).unwrap_or_default()
}

/// A field of bits.
#[inline]
pub(super) fn get_bits(bits: u128, platform: Platform, field: Field) -> u64 {
    let field = &FIELDS[platform.g()][field as usize];
    let mut value = from(bits, field.low) & field.mask;
    if field.rest.1 != 0 {
        for &(low, width) in rest(field) {
            value = (value << width) | (from(bits, low) & ((1 << width) - 1));
        }
    }
    value
}

/// The bits of a field, all set.
#[inline]
pub(super) fn field_mask(platform: Platform, field: Field) -> u128 {
    let field = &FIELDS[platform.g()][field as usize];
    let mut bits = u128::from(field.mask) << field.low;
    if field.rest.1 != 0 {
        for &(low, width) in rest(field) {
            bits |= ((1 << width) - 1) << low;
        }
    }
    bits
}

/// Sets a field of bits.
#[inline]
pub(super) fn set_bits(bits: &mut u128, platform: Platform, field: Field, mut value: u64) {
    let field = &FIELDS[platform.g()][field as usize];
    if field.rest.1 != 0 {
        for &(low, width) in rest(field).iter().rev() {
            set_range(bits, low, (1 << width) - 1, value);
            value >>= width;
        }
    }
    set_range(bits, field.low, field.mask, value);
}

/// The bits of the half that a bit is in, from that bit on.
#[inline]
fn from(bits: u128, low: u8) -> u64 {
    let half = if low < 64 { bits as u64 } else { (bits >> 64) as u64 };
    half >> (low & 63)
}

/// Sets the bits of a mask from a bit on.
#[inline]
fn set_range(bits: &mut u128, low: u8, mask: u64, value: u64) {
    let changed = (from(*bits, low) ^ value) & mask;
    *bits ^= u128::from(changed) << low;
}
