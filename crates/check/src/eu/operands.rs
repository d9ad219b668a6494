//! One instruction as the rules read it: opcode, execution size, destination and sources, whichever format it has.
//!
//! Where an operand is indirect, its subregister is that of the address register, because the rules of the hardware are
//! stated over that field. Never: says what is wrong.

use unwedge_isa::eu::disasm::{has_condition, horizontal, subregister_bytes, three_file, three_vertical};
use unwedge_isa::eu::tables::{ALIGN16_TYPES, OpcodeRow};
use unwedge_isa::eu::{Field as F, File, Generation, Instruction, Opcode, Type};

/// Architecture registers by the high half of their number.
pub(super) mod arf {
    /// `null`
    pub const NULL: u8 = 0;
    /// `a0`
    pub const ADDRESS: u8 = 0x10;
    /// `acc0`
    pub const ACCUMULATOR: u8 = 0x20;
    /// `s0`, from Xe3 on.
    pub const SCALAR: u8 = 0x60;
}

/// A destination or a source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    pub file: File,
    /// `None` where the code is reserved.
    pub kind: Option<Type>,
    /// An 8-bit float, for which only later generations have a name.
    pub byte_float: bool,
    pub indirect: bool,
    /// The number of the register; 0 where the operand is indirect, from gen9 on.
    pub register: u8,
    /// In bytes.
    pub subregister: u32,
    /// Strides in elements. A destination has the horizontal one alone.
    pub vertical: u32,
    pub width: u32,
    pub horizontal: u32,
    /// Each row, or each element, has an address of its own.
    pub vxh: bool,
    pub negate: bool,
    pub absolute: bool,
}

impl Region {
    /// What an instruction that does not have the operand has in its place.
    pub const NONE: Self = Self {
        file: File::Arf,
        kind: None,
        byte_float: false,
        indirect: false,
        register: 0,
        subregister: 0,
        vertical: 0,
        width: 0,
        horizontal: 0,
        vxh: false,
        negate: false,
        absolute: false,
    };

    /// The size of an element in bytes; 1 where the type is reserved. Vectors of integers are words.
    pub fn bytes(&self) -> u32 {
        match self.kind {
            Some(Type::V | Type::UV) => 2,
            Some(kind) => u32::from(kind.bytes()),
            None => 1,
        }
    }

    /// Whether the code of the type is reserved.
    pub fn is_reserved(&self) -> bool {
        self.kind.is_none() && !self.byte_float
    }

    pub fn is_null(&self) -> bool {
        !self.indirect && self.file == File::Arf && self.register == arf::NULL
    }

    pub fn is_accumulator(&self) -> bool {
        !self.indirect && self.file == File::Arf && self.register & 0xf0 == arf::ACCUMULATOR
    }

    pub fn is_scalar(&self) -> bool {
        self.vertical == 0 && self.width == 1 && self.horizontal == 0
    }

    pub fn is(&self, kind: Type) -> bool {
        self.kind == Some(kind)
    }

    pub fn is_one_of(&self, kinds: &[Type]) -> bool {
        self.kind.is_some_and(|kind| kinds.contains(&kind))
    }

    pub fn is_integer(&self) -> bool {
        self.kind.is_some_and(|kind| !kind.is_float())
    }

    pub fn is_unsigned(&self) -> bool {
        self.is_one_of(&[Type::UB, Type::UW, Type::UD, Type::UQ])
    }

    pub fn is_float(&self) -> bool {
        self.byte_float || self.kind.is_some_and(Type::is_float)
    }
}

/// The format of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// One or two sources, or none.
    Basic,
    /// Three sources.
    Three,
    /// `dpas`.
    Dpas,
    /// A split send.
    Split,
    /// Branches, `nop`.
    Bare,
}

/// An instruction of a known opcode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub inst: Instruction,
    pub generation: Generation,
    pub row: &'static OpcodeRow,
    pub opcode: Opcode,
    pub format: Format,
    /// Channels.
    pub execution: u32,
    pub align16: bool,
    /// The code of the condition; 0 for none.
    pub condition: u64,
    pub predicated: bool,
    pub saturate: bool,
    pub destination: Option<Region>,
    sources: [Region; 3],
    count: usize,
}

impl Operation {
    /// Reads an instruction, `None` where its opcode is reserved.
    pub fn read(inst: &Instruction) -> Option<Self> {
        let row = inst.row()?;
        let generation = inst.platform.generation();
        let opcode = row.opcode;
        let format = if opcode == Opcode::Dpas {
            Format::Dpas
        } else if row.sources == 3 {
            Format::Three
        } else if inst.is_split_send(opcode) {
            Format::Split
        } else if row.sources == 0 && row.destinations == 0 {
            Format::Bare
        } else {
            Format::Basic
        };
        let mut operation = Self {
            inst: *inst,
            generation,
            row,
            opcode,
            format,
            execution: inst.execution_size(),
            align16: inst.is_align16(),
            condition: 0,
            predicated: inst.get(F::PredicateControl) != 0,
            saturate: false,
            destination: None,
            sources: [Region::NONE; 3],
            count: source_count(inst, row),
        };
        match format {
            Format::Basic => operation.read_basic(),
            Format::Three => operation.read_three(),
            Format::Dpas => operation.read_dpas(),
            Format::Split => operation.read_split(),
            Format::Bare => {}
        }
        if format != Format::Bare && !operation.is_send() {
            operation.saturate = inst.flag(F::Saturate);
            if opcode != Opcode::Math && (row.sources > 1 || has_condition(inst)) {
                operation.condition = inst.get(F::ConditionModifier);
            }
        }
        Some(operation)
    }

    /// The sources that it has.
    pub fn sources(&self) -> &[Region] {
        &self.sources[..self.count]
    }

    /// A source of a known position.
    pub fn source(&self, index: usize) -> &Region {
        &self.sources[index]
    }

    pub fn is_send(&self) -> bool {
        matches!(self.opcode, Opcode::Send | Opcode::Sendc | Opcode::Sends | Opcode::Sendsc)
    }

    /// Bytes of a register.
    pub fn register_bytes(&self) -> u32 {
        if self.generation >= Generation::Xe2 { 64 } else { 32 }
    }

    /// The destination, unless it is null.
    pub fn written(&self) -> Option<&Region> {
        self.destination.as_ref().filter(|d| d.file != File::Arf || d.register != arf::NULL)
    }

    fn read_basic(&mut self) {
        let inst = self.inst;
        if self.row.destinations > 0 {
            let indirect = inst.flag(F::DstAddressMode);
            let subregister = if indirect && self.generation > Generation::Gen8 {
                inst.get(F::DstAddressSubregister)
            } else if self.align16 && self.generation > Generation::Gen8 {
                inst.get(F::A16DstSubregister)
            } else {
                subregister_bytes(&inst, F::A1DstSubregister)
            };
            self.destination = Some(Region {
                file: inst.file(F::DstRegisterFile),
                kind: inst.basic_type(F::DstType, File::Grf),
                indirect,
                register: direct(
                    indirect && self.generation > Generation::Gen8,
                    inst.get(F::DstRegisterNumber),
                ),
                subregister: subregister as u32,
                horizontal: horizontal(inst.get(F::A1DstHorizontalStride)) as u32,
                ..Region::NONE
            });
        }
        // `wait` names its register in src0 as well.
        let wait = usize::from(self.opcode == Opcode::Wait);
        for index in 0..(self.count + wait).min(2) {
            self.sources[index] = basic_source(&inst, index, self.align16, self.generation);
        }
    }

    fn read_three(&mut self) {
        let inst = self.inst;
        if self.generation <= Generation::Gen9 {
            let kind = |field| ALIGN16_TYPES[self.generation as usize][inst.get(field) as usize & 15];
            let grf = |register, subregister, kind| Region {
                file: File::Grf,
                kind,
                register: inst.get(register) as u8,
                subregister: inst.get(subregister) as u32 * 4,
                ..Region::NONE
            };
            let of = kind(F::ThreeA16DstType);
            self.destination = Some(Region {
                horizontal: 1,
                ..grf(F::ThreeDstRegisterNumber, F::ThreeA16DstSubregister, of)
            });
            let of = kind(F::ThreeA16SourceType);
            self.sources = [
                grf(F::ThreeSrc0RegisterNumber, F::ThreeA16Src0Subregister, of),
                grf(F::ThreeSrc1RegisterNumber, F::ThreeA16Src1Subregister, of),
                grf(F::ThreeSrc2RegisterNumber, F::ThreeA16Src2Subregister, of),
            ];
            let modifiers = [
                (F::ThreeSrc0Negate, F::ThreeSrc0Absolute),
                (F::ThreeSrc1Negate, F::ThreeSrc1Absolute),
                (F::ThreeSrc2Negate, F::ThreeSrc2Absolute),
            ];
            for (source, (negate, absolute)) in self.sources.iter_mut().zip(modifiers) {
                (source.negate, source.absolute) = (inst.flag(negate), inst.flag(absolute));
            }
            return;
        }
        let grf = inst.flag(F::ThreeA1DstRegisterFile) == (self.generation >= Generation::Gen12);
        let (kind, byte_float) = three_type(&inst, F::ThreeA1DstType, F::ThreeA1ExecutionType);
        self.destination = Some(Region {
            file: if grf { File::Grf } else { File::Arf },
            kind,
            byte_float,
            register: inst.get(F::ThreeDstRegisterNumber) as u8,
            subregister: inst.get(F::ThreeA1DstSubregister) as u32 * 8,
            horizontal: 1 << inst.get(F::ThreeA1DstHorizontalStride),
            ..Region::NONE
        });
        for index in 0..3 {
            self.sources[index] = three_source(&inst, index, self.generation);
        }
    }

    fn read_dpas(&mut self) {
        let inst = self.inst;
        let operand = |[file, register, subregister, kind]: [F; 4]| {
            let (kind, byte_float) = three_type(&inst, kind, F::DpasExecutionType);
            let (register, subregister) = (inst.get(register) as u8, inst.get(subregister) as u32);
            Region { file: inst.file(file), kind, byte_float, register, subregister, ..Region::NONE }
        };
        self.destination = Some(operand([
            F::DpasDstRegisterFile,
            F::DpasDstRegisterNumber,
            F::DpasDstSubregister,
            F::DpasDstType,
        ]));
        self.sources = [
            operand([
                F::DpasSrc0RegisterFile,
                F::DpasSrc0RegisterNumber,
                F::DpasSrc0Subregister,
                F::DpasSrc0Type,
            ]),
            operand([
                F::DpasSrc1RegisterFile,
                F::DpasSrc1RegisterNumber,
                F::DpasSrc1Subregister,
                F::DpasSrc1Type,
            ]),
            operand([
                F::DpasSrc2RegisterFile,
                F::DpasSrc2RegisterNumber,
                F::DpasSrc2Subregister,
                F::DpasSrc2Type,
            ]),
        ];
    }

    fn read_split(&mut self) {
        let inst = self.inst;
        let old = self.generation < Generation::Gen12;
        let operand = |file, indirect, register| Region {
            file,
            kind: Some(Type::D),
            indirect,
            register: direct(indirect, inst.get(register)),
            ..Region::NONE
        };
        let file = if old { F::SendsDstRegisterFile } else { F::DstRegisterFile };
        let indirect = old && inst.flag(F::DstAddressMode);
        self.destination = Some(operand(inst.file(file), indirect, F::DstRegisterNumber));
        let (file, indirect) = if old {
            (File::Grf, inst.flag(F::SendsSrc0AddressMode))
        } else {
            (inst.file(F::SendsSrc0RegisterFile), false)
        };
        self.sources[0] = operand(file, indirect, F::Src0RegisterNumber);
        self.sources[1] = operand(inst.file(F::SendsSrc1RegisterFile), false, F::SendsSrc1RegisterNumber);
    }
}

fn direct(indirect: bool, register: u64) -> u8 {
    if indirect { 0 } else { register as u8 }
}

/// How many sources it has. Most functions of math have one.
fn source_count(inst: &Instruction, row: &OpcodeRow) -> usize {
    /// fdiv, pow, and the integer divisions.
    const OF_TWO: std::ops::RangeInclusive<u64> = 9..=13;
    if row.opcode == Opcode::Math && !OF_TWO.contains(&inst.get(F::MathFunction)) {
        return 1;
    }
    usize::from(row.sources)
}

/// A stride's elements by its code, and whether it is VxH.
fn vertical(code: u64, width: u32) -> (u32, bool) {
    // The code counts as the stride of its 4 bits, also where it has 3.
    const VXH: u32 = 1 << 14;
    match code {
        0 => (0, false),
        code if code == (1 << width) - 1 => (VXH, true),
        code => (1 << (code - 1), false),
    }
}

/// The second code of a V immediate from gen12 on.
const OTHER_V: u64 = 12;

/// The type of an operand of three sources in align1, and whether it is an 8-bit float.
fn three_type(inst: &Instruction, field: F, execution: F) -> (Option<Type>, bool) {
    let code = inst.get(field);
    let kind = inst.align1_type(field, execution);
    match (inst.platform.generation(), inst.flag(execution), code) {
        (Generation::Gen11, false, 6) => (Some(Type::UB), false),
        (Generation::Gen11, false, 7) => (Some(Type::B), false),
        (Generation::Gen12 | Generation::Gen125 | Generation::Xe2 | Generation::Xe3, true, 0) => (None, true),
        _ => (kind, false),
    }
}

fn basic_source(inst: &Instruction, index: usize, align16: bool, generation: Generation) -> Region {
    let [file, kind, mode, register, subregister, address, subregister16] = [
        [
            F::Src0RegisterFile,
            F::Src0Type,
            F::Src0AddressMode,
            F::Src0RegisterNumber,
            F::A1Src0Subregister,
            F::Src0AddressSubregister,
            F::A16Src0Subregister,
        ],
        [
            F::Src1RegisterFile,
            F::Src1Type,
            F::Src1AddressMode,
            F::Src1RegisterNumber,
            F::A1Src1Subregister,
            F::Src1AddressSubregister,
            F::A16Src1Subregister,
        ],
    ][index];
    let [vertical_field, width, stride, negate, absolute] = [
        [F::A1Src0VerticalStride, F::A1Src0Width, F::A1Src0HorizontalStride, F::Src0Negate, F::Src0Absolute],
        [F::A1Src1VerticalStride, F::A1Src1Width, F::A1Src1HorizontalStride, F::Src1Negate, F::Src1Absolute],
    ][index];
    let file = match inst.file(file) {
        // The message registers are gone; their code reads as an immediate.
        File::Reserved if generation > Generation::Gen8 => File::Immediate,
        file => file,
    };
    let code = inst.get(kind);
    let mut kind = inst.basic_type(kind, file);
    if file == File::Immediate && generation >= Generation::Gen12 && code == OTHER_V {
        kind = Some(Type::V);
    }
    let (negate, absolute) = (inst.flag(negate), inst.flag(absolute));
    // The rules of gen8 are stated over the fields, those of later generations over operands.
    let raw = generation == Generation::Gen8;
    if file == File::Immediate && !raw {
        return Region { file, kind, negate, absolute, ..Region::NONE };
    }
    // From gen9 on src1 is direct, whatever the bit says.
    let indirect = inst.flag(mode) && (index == 0 || raw);
    let subregister = if indirect && !raw {
        inst.get(address)
    } else if align16 && !raw {
        inst.get(subregister16) * 16
    } else {
        subregister_bytes(inst, subregister)
    };
    let (vertical, vxh) = vertical(inst.get(vertical_field), inst.width(vertical_field));
    // Swizzles have the bits of width and horizontal stride in align16.
    let (width, horizontal) = if align16 && !raw {
        (0, 0)
    } else {
        (1 << inst.get(width).min(31), horizontal(inst.get(stride)) as u32)
    };
    Region {
        file,
        kind,
        byte_float: false,
        indirect,
        register: direct(indirect && !raw, inst.get(register)),
        subregister: subregister as u32,
        vertical,
        width,
        horizontal,
        vxh,
        negate,
        absolute,
    }
}

fn three_source(inst: &Instruction, index: usize, generation: Generation) -> Region {
    let [kind, register, subregister, stride, negate, absolute] = [
        [
            F::ThreeA1Src0Type,
            F::ThreeSrc0RegisterNumber,
            F::ThreeA1Src0Subregister,
            F::ThreeA1Src0HorizontalStride,
            F::ThreeSrc0Negate,
            F::ThreeSrc0Absolute,
        ],
        [
            F::ThreeA1Src1Type,
            F::ThreeSrc1RegisterNumber,
            F::ThreeA1Src1Subregister,
            F::ThreeA1Src1HorizontalStride,
            F::ThreeSrc1Negate,
            F::ThreeSrc1Absolute,
        ],
        [
            F::ThreeA1Src2Type,
            F::ThreeSrc2RegisterNumber,
            F::ThreeA1Src2Subregister,
            F::ThreeA1Src2HorizontalStride,
            F::ThreeSrc2Negate,
            F::ThreeSrc2Absolute,
        ],
    ][index];
    let file = three_file(inst, index);
    let (kind, byte_float) = three_type(inst, kind, F::ThreeA1ExecutionType);
    let (negate, absolute) = (inst.flag(negate), inst.flag(absolute));
    if file == File::Immediate {
        return Region { file, kind, byte_float, negate, absolute, ..Region::NONE };
    }
    let vertical_field =
        [Some(F::ThreeA1Src0VerticalStride), Some(F::ThreeA1Src1VerticalStride), None][index];
    let stride = horizontal(inst.get(stride)) as u32;
    let code = generation as u8;
    Region {
        file,
        kind,
        byte_float,
        register: inst.get(register) as u8,
        subregister: subregister_bytes(inst, subregister) as u32,
        vertical: vertical_field.map_or(0, |field| three_vertical(code, inst.get(field)) as u32),
        horizontal: stride,
        negate,
        absolute,
        ..Region::NONE
    }
}
