//! Compacted instructions: 8 bytes whose indexes select the usual combinations of fields.
//!
//! Compacting looks an instruction's bits up, and gives the result only when expanding it gives the same bits.

use super::inst::{GEN9, GEN12, Instruction, Platform, XE2, get_bits, set_bits};
use super::tables::{COMPACTION, CompactTable, Field, OPCODE_ROWS, OPCODES, Opcode, Type};

/// Whether the first bytes are of a compacted instruction.
#[must_use]
pub fn is_compacted(first_dword: u32) -> bool {
    first_dword & 1 << 29 != 0
}

/// The tables with (index field, table), in either form.
const BASIC: [(Field, CompactTable); 5] = [
    (Field::CompactControlIndex, CompactTable::Control),
    (Field::CompactDatatypeIndex, CompactTable::Datatype),
    (Field::CompactSubregIndex, CompactTable::Subregister),
    (Field::CompactSrc0Index, CompactTable::Src0),
    (Field::CompactSrc1Index, CompactTable::Src1),
];

/// Those of three sources.
const THREE: [(Field, CompactTable); 3] = [
    (Field::CompactThreeControlIndex, CompactTable::ThreeControl),
    (Field::CompactThreeSourceIndex, CompactTable::ThreeSource),
    (Field::CompactThreeSubregIndex, CompactTable::ThreeSubregister),
];

/// Fields that the compact form has unchanged: (compact, full).
const BASIC_FIELDS: [(Field, Field); 8] = [
    (Field::CompactHwOpcode, Field::Opcode),
    (Field::CompactDebugControl, Field::Breakpoint),
    (Field::CompactSwsb, Field::SoftwareScoreboard),
    (Field::CompactCondModifier, Field::ConditionModifier),
    (Field::CompactAccWrControl, Field::AccumulatorWrite),
    (Field::CompactDstRegNumber, Field::DstRegisterNumber),
    (Field::CompactSrc0RegNumber, Field::Src0RegisterNumber),
    (Field::CompactSrc1RegNumber, Field::Src1RegisterNumber),
];

/// Those of three sources.
const THREE_FIELDS: [(Field, Field); 14] = [
    (Field::CompactThreeHwOpcode, Field::Opcode),
    (Field::CompactThreeDebugControl, Field::Breakpoint),
    (Field::CompactThreeSwsb, Field::SoftwareScoreboard),
    (Field::CompactThreeSaturate, Field::Saturate),
    (Field::CompactThreeDstRegNumber, Field::ThreeDstRegisterNumber),
    (Field::CompactThreeSrc0RegNumber, Field::ThreeSrc0RegisterNumber),
    (Field::CompactThreeSrc1RegNumber, Field::ThreeSrc1RegisterNumber),
    (Field::CompactThreeSrc2RegNumber, Field::ThreeSrc2RegisterNumber),
    (Field::CompactThreeSrc0RepControl, Field::ThreeA16Src0Replicate),
    (Field::CompactThreeSrc1RepControl, Field::ThreeA16Src1Replicate),
    (Field::CompactThreeSrc2RepControl, Field::ThreeA16Src2Replicate),
    (Field::CompactThreeSrc0SubregNumber, Field::ThreeA16Src0Subregister),
    (Field::CompactThreeSrc1SubregNumber, Field::ThreeA16Src1Subregister),
    (Field::CompactThreeSrc2SubregNumber, Field::ThreeA16Src2Subregister),
];

/// Subregisters of three sources: dwords in the compact form; gen9's full form has a further lowest bit.
fn subregister_shift(platform: Platform, field: Field) -> u32 {
    let subregister = matches!(
        field,
        Field::ThreeA16Src0Subregister | Field::ThreeA16Src1Subregister | Field::ThreeA16Src2Subregister
    );
    u32::from(subregister && platform.generation == GEN9)
}

/// Which form an opcode is compacted in.
enum Form {
    Basic,
    Three { dpas: bool },
}

fn form(platform: Platform, code: u64) -> Option<Form> {
    let row = OPCODES.get(usize::from(OPCODE_ROWS[platform.g()][code as usize & 0x7f]))?;
    if row.sources != 3 {
        let send = matches!(row.opcode, Opcode::Send | Opcode::Sendc | Opcode::Sends | Opcode::Sendsc);
        let split =
            send && (platform.generation >= GEN12 || !matches!(row.opcode, Opcode::Send | Opcode::Sendc));
        return (!split).then_some(Form::Basic);
    }
    let tables = &COMPACTION[platform.g()][CompactTable::ThreeControl as usize];
    (!tables.entries.is_empty())
        .then_some(Form::Three { dpas: row.opcode == Opcode::Dpas && platform.generation >= XE2 })
}

/// The table of a form, dpas having its own.
fn table(form: &Form, table: CompactTable) -> CompactTable {
    match (form, table) {
        (Form::Three { dpas: true }, CompactTable::ThreeControl) => CompactTable::DpasControl,
        (Form::Three { dpas: true }, CompactTable::ThreeSource) => CompactTable::DpasSource,
        _ => table,
    }
}

impl Form {
    fn indexes(&self) -> &'static [(Field, CompactTable)] {
        match self {
            Self::Basic => &BASIC,
            Self::Three { .. } => &THREE,
        }
    }

    fn fields(&self) -> &'static [(Field, Field)] {
        match self {
            Self::Basic => &BASIC_FIELDS,
            Self::Three { .. } => &THREE_FIELDS,
        }
    }
}

/// The type of the immediate that a basic instruction has in one of its sources.
fn immediate_type(inst: &Instruction) -> Option<Option<Type>> {
    use super::inst::File;
    for (file, field) in
        [(Field::Src1RegisterFile, Field::Src1Type), (Field::Src0RegisterFile, Field::Src0Type)]
    {
        if inst.file(file) == File::Immediate {
            return Some(inst.basic_type(field, File::Immediate));
        }
    }
    None
}

/// The immediate of the compact form, expanded.
fn expand_immediate(platform: Platform, of: Option<Type>, bits: u32) -> Option<u32> {
    if platform.generation < GEN12 {
        return Some(((bits << 19) as i32 >> 19) as u32);
    }
    let signed = ((bits << 20) as i32 >> 20) as u32;
    Some(match of? {
        Type::F => bits << 20,
        Type::HF => bits << 4 | bits << 20,
        Type::UD | Type::VF | Type::UV | Type::V => bits,
        Type::UW => bits | bits << 16,
        Type::D => signed,
        Type::W => (signed & 0xffff) | signed << 16,
        _ => return None,
    })
}

/// The bits of the compact form that may stand for an immediate.
fn compact_immediate(platform: Platform, of: Option<Type>, value: u32) -> u32 {
    if platform.generation < GEN12 {
        return value & 0x1fff;
    }
    match of {
        Some(Type::F) => value >> 20,
        Some(Type::HF) => value >> 4 & 0xfff,
        _ => value & 0xfff,
    }
}

/// The full form of a compacted instruction, `None` where there is none.
#[must_use]
pub fn expand(platform: Platform, compact: u64) -> Option<Instruction> {
    let source = u128::from(compact);
    let get = |field| get_bits(source, platform, field);
    let form = form(platform, compact & 0x7f)?;
    let mut inst = Instruction { bits: 0, platform };
    let mut immediate = None;
    for &(index, name) in form.indexes() {
        if matches!(name, CompactTable::Src1) {
            immediate = immediate_type(&inst);
            if immediate.is_some() {
                continue;
            }
        }
        let rows = &COMPACTION[platform.g()][table(&form, name) as usize];
        if rows.ranges.is_empty() {
            continue;
        }
        let mut entry = *rows.entries.get(get(index) as usize)?;
        for &(low, width) in rows.ranges.iter().rev() {
            inst.bits |= u128::from(entry & (u64::MAX >> (64 - width))) << low;
            entry >>= width;
        }
    }
    for &(from, to) in form.fields() {
        let immediate_byte = immediate.is_some() && to == Field::Src1RegisterNumber;
        if immediate_byte || width(platform, from) == 0 {
            continue;
        }
        set_bits(&mut inst.bits, platform, to, get(from) << subregister_shift(platform, to));
    }
    if let Some(of) = immediate {
        let value = expand_immediate(platform, of, get(Field::CompactImmediate) as u32)?;
        inst.set(Field::DwordImmediate, u64::from(value));
    }
    Some(inst)
}

/// The bits of a compacted form that decide whether [`compact`] gives the form back that an instruction was expanded from: all
/// but those that both forms have unchanged. `None` where it is not one.
pub(super) fn selection(platform: Platform, compact: u64) -> Option<u64> {
    const BASIC: [Field; 4] = [
        Field::CompactSwsb,
        Field::CompactDstRegNumber,
        Field::CompactSrc0RegNumber,
        Field::CompactSrc1RegNumber,
    ];
    const THREE: [Field; 5] = [
        Field::CompactThreeSwsb,
        Field::CompactThreeDstRegNumber,
        Field::CompactThreeSrc0RegNumber,
        Field::CompactThreeSrc1RegNumber,
        Field::CompactThreeSrc2RegNumber,
    ];
    let unchanged: &[Field] = match form(platform, compact & 0x7f)? {
        Form::Basic => &BASIC,
        Form::Three { .. } => &THREE,
    };
    let mut bits = u128::from(compact);
    for &field in unchanged {
        set_bits(&mut bits, platform, field, 0);
    }
    Some(bits as u64)
}

/// The bits of a field in this generation.
fn width(platform: Platform, field: Field) -> u32 {
    Instruction { bits: 0, platform }.width(field)
}

/// The compacted form of an instruction, `None` when it does not have one.
#[must_use]
pub fn compact(inst: &Instruction) -> Option<u64> {
    let platform = inst.platform;
    let form = form(platform, inst.get(Field::Opcode))?;
    let mut bits = 1u128 << 29;
    for &(to, from) in form.fields() {
        if width(platform, to) != 0 {
            set_bits(&mut bits, platform, to, inst.get(from) >> subregister_shift(platform, from));
        }
    }
    let immediate = if matches!(form, Form::Basic) { immediate_type(inst) } else { None };
    for &(index, name) in form.indexes() {
        if immediate.is_some() && matches!(name, CompactTable::Src1) {
            continue;
        }
        let rows = &COMPACTION[platform.g()][table(&form, name) as usize];
        if rows.ranges.is_empty() {
            continue;
        }
        // An immediate covers the bits from 96; entries that have them clear come first.
        let (mut wanted, mut mask) = (0, 0);
        for &(low, width) in rows.ranges {
            let part = u64::MAX >> (64 - width);
            let covered = immediate.is_some() && low >= 96;
            wanted = wanted << width | if covered { 0 } else { (inst.bits >> low) as u64 & part };
            mask = mask << width | if covered { 0 } else { part };
        }
        let position = rows
            .entries
            .iter()
            .position(|&entry| entry == wanted)
            .or_else(|| rows.entries.iter().position(|&entry| entry & mask == wanted))?;
        set_bits(&mut bits, platform, index, position as u64);
    }
    if let Some(of) = immediate {
        let value = compact_immediate(platform, of, inst.get(Field::DwordImmediate) as u32);
        set_bits(&mut bits, platform, Field::CompactImmediate, u64::from(value));
    }
    let bits = bits as u64;
    (expand(platform, bits) == Some(*inst)).then_some(bits)
}
