//! Which fields make a source: one row for each source of basic instructions and of those with three.

use super::disasm::{branch_targets, three_destination_file, three_file};
use super::inst::{File, GEN12, Instruction, field_mask};
use super::tables::{Field as F, Opcode, OpcodeRow, Type};

/// The fields of a source of a basic instruction.
pub(super) struct SourceFields {
    pub file: F,
    pub kind: F,
    pub mode: F,
    pub register: F,
    pub subregister: F,
    pub address_subregister: F,
    pub address: F,
    pub vertical: F,
    pub width: F,
    pub horizontal: F,
    pub negate: F,
    pub absolute: F,
    pub subregister16: F,
    pub swizzle: [F; 4],
}

pub(super) const SOURCES: [SourceFields; 2] = [
    SourceFields {
        file: F::Src0RegisterFile,
        kind: F::Src0Type,
        mode: F::Src0AddressMode,
        register: F::Src0RegisterNumber,
        subregister: F::A1Src0Subregister,
        address_subregister: F::Src0AddressSubregister,
        address: F::A1Src0AddressImmediate,
        vertical: F::A1Src0VerticalStride,
        width: F::A1Src0Width,
        horizontal: F::A1Src0HorizontalStride,
        negate: F::Src0Negate,
        absolute: F::Src0Absolute,
        subregister16: F::A16Src0Subregister,
        swizzle: [F::A16Src0SwizzleX, F::A16Src0SwizzleY, F::A16Src0SwizzleZ, F::A16Src0SwizzleW],
    },
    SourceFields {
        file: F::Src1RegisterFile,
        kind: F::Src1Type,
        mode: F::Src1AddressMode,
        register: F::Src1RegisterNumber,
        subregister: F::A1Src1Subregister,
        address_subregister: F::Src1AddressSubregister,
        address: F::A1Src1AddressImmediate,
        vertical: F::A1Src1VerticalStride,
        width: F::A1Src1Width,
        horizontal: F::A1Src1HorizontalStride,
        negate: F::Src1Negate,
        absolute: F::Src1Absolute,
        subregister16: F::A16Src1Subregister,
        swizzle: [F::A16Src1SwizzleX, F::A16Src1SwizzleY, F::A16Src1SwizzleZ, F::A16Src1SwizzleW],
    },
];

/// The fields of a source of a three-source instruction.
pub(super) struct ThreeFields {
    pub register: F,
    pub negate: F,
    pub absolute: F,
    pub subregister16: F,
    pub swizzle: F,
    pub replicate: F,
    pub subregister: F,
    pub horizontal: F,
    pub vertical: Option<F>,
    pub kind: F,
    pub file: F,
    pub dpas: [F; 4],
}

pub(super) const THREE: [ThreeFields; 3] = [
    ThreeFields {
        register: F::ThreeSrc0RegisterNumber,
        negate: F::ThreeSrc0Negate,
        absolute: F::ThreeSrc0Absolute,
        subregister16: F::ThreeA16Src0Subregister,
        swizzle: F::ThreeA16Src0Swizzle,
        replicate: F::ThreeA16Src0Replicate,
        subregister: F::ThreeA1Src0Subregister,
        horizontal: F::ThreeA1Src0HorizontalStride,
        vertical: Some(F::ThreeA1Src0VerticalStride),
        kind: F::ThreeA1Src0Type,
        file: F::ThreeA1Src0RegisterFile,
        dpas: [F::DpasSrc0RegisterFile, F::DpasSrc0RegisterNumber, F::DpasSrc0Subregister, F::DpasSrc0Type],
    },
    ThreeFields {
        register: F::ThreeSrc1RegisterNumber,
        negate: F::ThreeSrc1Negate,
        absolute: F::ThreeSrc1Absolute,
        subregister16: F::ThreeA16Src1Subregister,
        swizzle: F::ThreeA16Src1Swizzle,
        replicate: F::ThreeA16Src1Replicate,
        subregister: F::ThreeA1Src1Subregister,
        horizontal: F::ThreeA1Src1HorizontalStride,
        vertical: Some(F::ThreeA1Src1VerticalStride),
        kind: F::ThreeA1Src1Type,
        file: F::ThreeA1Src1RegisterFile,
        dpas: [F::DpasSrc1RegisterFile, F::DpasSrc1RegisterNumber, F::DpasSrc1Subregister, F::DpasSrc1Type],
    },
    ThreeFields {
        register: F::ThreeSrc2RegisterNumber,
        negate: F::ThreeSrc2Negate,
        absolute: F::ThreeSrc2Absolute,
        subregister16: F::ThreeA16Src2Subregister,
        swizzle: F::ThreeA16Src2Swizzle,
        replicate: F::ThreeA16Src2Replicate,
        subregister: F::ThreeA1Src2Subregister,
        horizontal: F::ThreeA1Src2HorizontalStride,
        vertical: None,
        kind: F::ThreeA1Src2Type,
        file: F::ThreeA1Src2RegisterFile,
        dpas: [F::DpasSrc2RegisterFile, F::DpasSrc2RegisterNumber, F::DpasSrc2Subregister, F::DpasSrc2Type],
    },
];

/// Whether an opcode is of a message.
fn sends(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Send | Opcode::Sendc | Opcode::Sends | Opcode::Sendsc)
}

/// Whether the text has all bits of an immediate as a number: those of words are there twice in the instruction.
fn is_plain(inst: &Instruction, kind: F) -> bool {
    let value = inst.get(F::DwordImmediate);
    match inst.basic_type(kind, File::Immediate) {
        Some(Type::UD | Type::D | Type::F | Type::VF | Type::UV | Type::V) => true,
        Some(Type::UW | Type::W) => value & 0xffff == value >> 16,
        _ => false,
    }
}

/// The bits of an instruction that are a number in its text whatever they and all other bits are: the numbers of general
/// registers, most immediates, and the distances of branches, which are labels there. Instructions that differ in nothing else have texts that
/// are right or wrong together.
pub(super) fn free_bits(inst: &Instruction, row: &OpcodeRow) -> u128 {
    let mut bits = 0;
    let mut add = |general: bool, field: F| {
        if general {
            bits |= field_mask(inst.platform, field);
        }
    };
    let (jip, uip) = branch_targets(row.opcode);
    if jip {
        add(true, F::BranchJIP);
        add(uip, F::BranchUIP);
        // From gen12 on the highest bits of UIP are shown as a condition as well.
        return bits & !field_mask(inst.platform, F::ConditionModifier);
    }
    let general = |field| inst.file(field) == File::Grf;
    if row.sources == 0 || row.opcode == Opcode::Dpas {
        return 0;
    }
    if inst.is_split_send(row.opcode) {
        if inst.platform.generation >= GEN12 {
            add(general(F::SendsDstRegisterFile), F::DstRegisterNumber);
            add(general(F::SendsSrc0RegisterFile), F::Src0RegisterNumber);
            add(general(F::SendsSrc1RegisterFile), F::SendsSrc1RegisterNumber);
        } else {
            add(!inst.flag(F::DstAddressMode) && general(F::SendsDstRegisterFile), F::DstRegisterNumber);
            add(!inst.flag(F::SendsSrc0AddressMode), F::Src0RegisterNumber);
            add(general(F::SendsSrc1RegisterFile), F::SendsSrc1RegisterNumber);
        }
    } else if row.sources == 3 {
        add(three_destination_file(inst) == File::Grf, F::ThreeDstRegisterNumber);
        for (index, fields) in THREE.iter().enumerate() {
            add(three_file(inst, index) == File::Grf, fields.register);
        }
    } else {
        let direct = row.destinations > 0 && !inst.flag(F::DstAddressMode);
        add(direct && general(F::DstRegisterFile), F::DstRegisterNumber);
        for (fields, last) in SOURCES.iter().zip(1..).take(usize::from(row.sources)) {
            // An immediate has the bits of the second source, which the text of `movi` shows as well. That of a message is its
            // descriptor.
            if inst.file(fields.file) == File::Immediate {
                let alone = last == row.sources && !sends(row.opcode);
                add(alone && is_plain(inst, fields.kind), F::DwordImmediate);
                break;
            }
            add(general(fields.file) && !inst.flag(fields.mode), fields.register);
        }
    }
    bits
}
