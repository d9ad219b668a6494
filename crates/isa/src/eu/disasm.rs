//! The text of one instruction, as Mesa's disassembler prints it.
//!
//! Quirks of that text are kept: columns at 16, 32, 48 and 64, descriptors and the indent of messages not counted for them,
//! subregisters of indirect operands in different units. Never: labels of a whole program, see [`super::program`].

use super::inst::{File, GEN8, GEN9, GEN12, GEN125, Instruction, XE2};
use super::message::{self, Descriptors, push_name};
use super::number;
use super::operands::{SOURCES, SourceFields, THREE};
use super::tables::{
    ALIGN16_TYPES, ARF, CONDITION, Field as F, MATH, Opcode, OpcodeRow, PREDICATE_ALIGN1, PREDICATE_ALIGN16,
    SFID, SYNC, TYPES, TokenMode, Type,
};
use super::text::{self, Short, Text};

/// The bits of an extended descriptor that are a subregister where a scalar register lists the first payload.
pub(super) const GATHER_SUBREGISTER: u32 = 31 << 6;

/// Where the branch of an instruction leads: names of labels.
pub struct Targets {
    /// The number of the label at UIP.
    pub uip: usize,
    /// The number of the label at JIP.
    pub jip: usize,
}

/// Vertical stride of three sources in align1, by code; from gen12 code 1 means 1.
#[must_use]
pub fn three_vertical(generation: u8, code: u64) -> u64 {
    [0, if generation >= GEN12 { 1 } else { 2 }, 4, 8][code as usize & 3]
}

/// Horizontal stride by code.
#[must_use]
pub const fn horizontal(code: u64) -> u64 {
    [0, 1, 2, 4][code as usize & 3]
}

/// Whether an opcode has a JIP, and whether it has a UIP as well.
#[must_use]
pub fn branch_targets(opcode: Opcode) -> (bool, bool) {
    match opcode {
        Opcode::If | Opcode::Else | Opcode::Break | Opcode::Cont | Opcode::Halt => (true, true),
        Opcode::Endif | Opcode::While => (true, false),
        _ => (false, false),
    }
}

/// Appends the text of an instruction, as it is alone: labels are numbered from 0.
pub fn push_alone(out: &mut String, inst: &Instruction, compacted: bool) {
    push(out, inst, compacted, &targets_alone(inst));
}

/// The same as bytes; see [`write`].
pub(super) fn write_alone(out: &mut Vec<u8>, inst: &Instruction, compacted: bool, exact: bool) {
    write(out, inst, compacted, &targets_alone(inst), exact);
}

fn targets_alone(inst: &Instruction) -> Targets {
    let uip = inst.row().is_some_and(|row| branch_targets(row.opcode).1);
    let same = inst.get(F::BranchJIP) == inst.get(F::BranchUIP);
    Targets { uip: 0, jip: usize::from(uip && !same) }
}

/// Appends the text of an instruction, without a line end.
pub fn push(out: &mut String, inst: &Instruction, compacted: bool, targets: &Targets) {
    let mut bytes = Vec::with_capacity(160);
    write(&mut bytes, inst, compacted, targets, false);
    out.push_str(&text::string(bytes));
}

/// The same, for a whole program. An exact text also has what Mesa leaves out.
pub(super) fn write(out: &mut Vec<u8>, inst: &Instruction, compacted: bool, targets: &Targets, exact: bool) {
    let line = &mut Text::new(out);
    let Some(row) = inst.row() else {
        line.with("illegal_", inst.get(F::Opcode));
        return;
    };
    let send = matches!(row.opcode, Opcode::Send | Opcode::Sendc | Opcode::Sends | Opcode::Sendsc);
    push_head(line, inst, row, send);
    match branch_targets(row.opcode) {
        (true, true) => {
            line.pad(16);
            line.with("JIP:  LABEL", targets.jip as u64);
            line.pad(38);
            line.with("UIP:  LABEL", targets.uip as u64);
        }
        (true, false) => {
            line.pad(16);
            line.with("JIP:  LABEL", targets.jip as u64);
        }
        _ if row.opcode == Opcode::Jmpi => {
            line.pad(16);
            push_source(line, inst, row, 1);
        }
        _ if row.opcode == Opcode::Dpas => push_dpas(line, inst),
        _ if row.sources == 3 => {
            line.pad(16);
            push_three_destination(line, inst);
            for (index, column) in [32, 48, 64].into_iter().enumerate() {
                line.pad(column);
                push_three_source(line, inst, index, exact);
            }
        }
        _ => {
            if row.destinations > 0 {
                line.pad(16);
                push_destination(line, inst, row);
            }
            if row.sources > 0 {
                line.pad(32);
                push_source(line, inst, row, 0);
            }
            if row.sources > 1 {
                line.pad(48);
                push_source(line, inst, row, 1);
            }
        }
    }
    if send {
        push_message(line, inst, row);
    }
    push_options(line, inst, row, send, compacted);
    if exact && row.opcode == Opcode::Dpas {
        push_precisions(line, inst);
    }
    line.push(if row.opcode == Opcode::Nop { ";" } else { " };" });
}

/// Predicate, name, modifiers and execution size.
fn push_head(line: &mut Text, inst: &Instruction, row: &OpcodeRow, send: bool) {
    let g = inst.platform.g();
    let predicate = inst.get(F::PredicateControl) as u32;
    if predicate != 0 {
        line.push(if inst.flag(F::PredicateInverse) { "(-f" } else { "(+f" });
        line.number(inst.get(F::FlagRegister));
        line.push(".");
        line.number(inst.get(F::FlagSubregister));
        let name = if inst.is_align16() {
            PREDICATE_ALIGN16[g].get(predicate as usize)
        } else {
            PREDICATE_ALIGN1[g].get(predicate as usize)
        };
        match name {
            Some(&".") => {}
            Some(name) if !name.is_empty() => line.push(name),
            _ => {
                line.with(".unknown_", predicate);
            }
        }
        line.push(") ");
    }
    line.name(row.name);
    if !send && inst.flag(F::Saturate) {
        line.push(".sat");
    }
    if inst.flag(F::Breakpoint) {
        line.push(".breakpoint");
    }
    if row.opcode == Opcode::Dpas {
        line.with(".", [16u64, 2, 4, 8][inst.get(F::DpasSystolicDepth) as usize & 3]);
        line.with("x", inst.get(F::DpasRepeatCount) + 1);
    }
    let function = inst.get(F::ConditionModifier) as u32;
    if row.opcode == Opcode::Math {
        line.push(" ");
        push_name(line, &MATH[g], function);
    } else if row.opcode == Opcode::Sync {
        line.push(" ");
        push_name(line, &SYNC[g], function);
    } else if !send && row.opcode != Opcode::Dpas && has_condition(inst) && function != 0 {
        line.push(".");
        push_name(line, &CONDITION[g], function);
        if !matches!(row.opcode, Opcode::Sel | Opcode::Csel | Opcode::If | Opcode::While) {
            line.push(".f");
            line.number(inst.get(F::FlagRegister));
            line.push(".");
            line.number(inst.get(F::FlagSubregister));
        }
    }
    if row.opcode != Opcode::Nop {
        line.push("(");
        line.number(u64::from(inst.execution_size()));
        line.push(")");
    }
}

/// Whether the bits of the condition modifier are one, and not part of a 64-bit immediate.
#[must_use]
pub fn has_condition(inst: &Instruction) -> bool {
    inst.platform.generation < GEN12
        || inst.file(F::Src0RegisterFile) != File::Immediate
        || inst.basic_type(F::Src0Type, File::Immediate).is_some_and(|t| t.bytes() < 8)
}

/// A register. False for those that are printed without region and type.
fn push_register(line: &mut Text, inst: &Instruction, file: File, number: u64) -> bool {
    match file {
        File::Arf => {
            let name = ARF[inst.platform.g()].get(number as usize >> 4).copied().unwrap_or("");
            match name {
                "" => {
                    line.push("ARF");
                    line.number(number);
                }
                "null" => line.push("null"),
                "ip" => {
                    line.push("ip");
                    return false;
                }
                "tdr" => {
                    line.push("tdr0");
                    return false;
                }
                _ => {
                    line.name(name);
                    line.number(number & 15);
                }
            }
        }
        File::Grf => {
            line.push("g");
            line.number(number);
        }
        File::Reserved | File::Immediate => {
            line.push(if file == File::Reserved { "m" } else { "imm" });
            line.number(number);
        }
    }
    true
}

/// The names of types.
static TYPE_NAMES: [Short<3>; TYPES.len()] = {
    let mut names = [Short::EMPTY; TYPES.len()];
    let mut index = 0;
    while index < names.len() {
        let mut rest = TYPES[index].1.as_bytes();
        while let [byte, after @ ..] = rest {
            names[index] = names[index].then(*byte);
            rest = after;
        }
        index += 1;
    }
    names
};

/// The letters of a type.
fn push_type(line: &mut Text, of: Option<Type>) {
    match of {
        Some(of) => line.short(&TYPE_NAMES[of as usize]),
        None => line.push("INVALID"),
    }
}

/// Bytes as whole elements of a type, the bytes of which are a power of 2. For a reserved type, Mesa takes 8.
fn elements(bytes: u64, of: Option<Type>) -> u64 {
    bytes >> of.map_or(3, |of| of.bytes().trailing_zeros())
}

/// A subregister in bytes, on Xe2 in units of 2 bytes where the field has no lowest bit.
#[must_use]
pub fn subregister_bytes(inst: &Instruction, field: F) -> u64 {
    let value = inst.get(field);
    if inst.platform.generation >= XE2 && inst.width(field) == 5 { value * 2 } else { value }
}

fn push_destination(line: &mut Text, inst: &Instruction, row: &OpcodeRow) {
    if inst.is_split_send(row.opcode) {
        let file = inst.file(F::SendsDstRegisterFile);
        if inst.platform.generation >= GEN12 || !inst.flag(F::DstAddressMode) {
            push_register(line, inst, file, inst.get(F::DstRegisterNumber));
            if inst.platform.generation < GEN12 && inst.flag(F::A16DstSubregister) {
                line.push(".1");
            }
            line.push("UD");
        } else {
            push_address(
                line,
                inst.get(F::DstAddressSubregister),
                Some(Type::UD),
                sends_address(inst, F::SendsDstAddressImmediate),
            );
            line.push("<UD");
        }
        return;
    }
    let of = inst.basic_type(F::DstType, File::Grf);
    if inst.is_align16() {
        if inst.flag(F::DstAddressMode) {
            line.push("Indirect align16 address mode not supported");
            return;
        }
        if !push_register(line, inst, inst.file(F::DstRegisterFile), inst.get(F::DstRegisterNumber)) {
            return;
        }
        if inst.flag(F::A16DstSubregister) {
            line.push(".");
            line.number(elements(16, of));
        }
        line.push("<1>");
        push_mask(line, inst.get(F::A16WriteMask));
        push_type(line, of);
        return;
    }
    if inst.flag(F::DstAddressMode) {
        push_address(
            line,
            inst.get(F::DstAddressSubregister),
            of,
            address_immediate(inst, F::A1DstAddressImmediate),
        );
    } else {
        if !push_register(line, inst, inst.file(F::DstRegisterFile), inst.get(F::DstRegisterNumber)) {
            return;
        }
        let subregister = subregister_bytes(inst, F::A1DstSubregister);
        if subregister != 0 {
            line.push(".");
            line.number(elements(subregister, of));
        }
    }
    line.push("<");
    line.number(horizontal(inst.get(F::A1DstHorizontalStride)));
    line.push(">");
    push_type(line, of);
}

/// `g[a0.4 -16]` with a subregister in elements of a type, in bytes without one.
fn push_address(line: &mut Text, subregister: u64, of: Option<Type>, immediate: i64) {
    line.push("g[a0");
    if subregister != 0 {
        line.push(".");
        line.number(of.map_or(subregister, |of| elements(subregister, Some(of))));
    }
    if immediate != 0 {
        line.push(" ");
        line.signed(immediate);
    }
    line.push("]");
}

/// The offset of a split send's indirect operand, in units of 16 bytes; printed unsigned, as of other operands.
fn sends_address(inst: &Instruction, field: F) -> i64 {
    inst.get(field) as i64 * 16
}

fn push_mask(line: &mut Text, mask: u64) {
    if mask == 15 {
        return;
    }
    line.push(".");
    for (bit, name) in ["x", "y", "z", "w"].into_iter().enumerate() {
        if mask >> bit & 1 == 1 {
            line.push(name);
        }
    }
}

fn push_swizzle(line: &mut Text, swizzle: [u64; 4]) {
    const NAMES: [&str; 4] = ["x", "y", "z", "w"];
    if swizzle == [0, 1, 2, 3] {
        return;
    }
    line.push(".");
    let count = if swizzle.iter().all(|&c| c == swizzle[0]) { 1 } else { 4 };
    for component in &swizzle[..count] {
        line.push(NAMES[*component as usize & 3]);
    }
}

fn push_region(line: &mut Text, vertical: u64, width: u64, horizontal: u64) {
    line.push("<");
    line.number(vertical);
    line.push(",");
    line.number(width);
    line.push(",");
    line.number(horizontal);
    line.push(">");
}

/// The regions of basic instructions in align1 by their codes: four bits of vertical stride, three of width, two of horizontal stride.
static REGIONS: [Short<15>; 512] = {
    let mut regions = [Short::EMPTY; 512];
    let mut codes = 0;
    while codes < regions.len() {
        let start = Short::EMPTY.then(b'<');
        let vertical = match vertical(codes as u64 >> 5) {
            Some(stride) => start.then_number(stride),
            None => start.then(b'V').then(b'x').then(b'H'),
        };
        let width = vertical.then(b',').then_number(1 << (codes >> 2 & 7));
        regions[codes] = width.then(b',').then_number(horizontal(codes as u64 & 3)).then(b'>');
        codes += 1;
    }
    regions
};

/// Negation and absolute value; negation is the bitwise not in logic instructions.
fn push_modifiers(line: &mut Text, inst: &Instruction, row: &OpcodeRow, fields: &SourceFields) {
    if inst.flag(fields.negate) {
        let logic = matches!(row.opcode, Opcode::And | Opcode::Or | Opcode::Xor | Opcode::Not);
        line.push(if logic { "~" } else { "-" });
    }
    if inst.flag(fields.absolute) {
        line.push("(abs)");
    }
}

fn push_source(line: &mut Text, inst: &Instruction, row: &OpcodeRow, index: usize) {
    if inst.is_split_send(row.opcode) {
        push_split_send_source(line, inst, row, index);
        return;
    }
    let fields = &SOURCES[index];
    let file = inst.file(fields.file);
    let of = inst.basic_type(fields.kind, file);
    if file == File::Immediate {
        push_immediate(line, inst, of);
        return;
    }
    if inst.is_align16() && inst.flag(fields.mode) {
        line.push("Indirect align16 address mode not supported");
        return;
    }
    push_modifiers(line, inst, row, fields);
    if inst.is_align16() {
        if !push_register(line, inst, file, inst.get(fields.register)) {
            return;
        }
        if inst.flag(fields.subregister16) {
            line.push(".");
            line.number(elements(16, of));
        }
        line.push("<");
        line.number(vertical(inst.get(fields.vertical)).unwrap_or(0));
        line.push(">");
        push_swizzle(line, fields.swizzle.map(|f| inst.get(f)));
        push_type(line, of);
        return;
    }
    if inst.flag(fields.mode) {
        push_address(
            line,
            inst.get(fields.address_subregister),
            None,
            address_immediate(inst, fields.address),
        );
    } else {
        if !push_register(line, inst, file, inst.get(fields.register)) {
            return;
        }
        let subregister = subregister_bytes(inst, fields.subregister);
        if subregister != 0 {
            line.push(".");
            line.number(elements(subregister, of));
        }
    }
    let codes = inst.get(fields.vertical) << 5 | inst.get(fields.width) << 2 | inst.get(fields.horizontal);
    line.short(&REGIONS[codes as usize & (REGIONS.len() - 1)]);
    push_type(line, of);
}

/// The address immediate of a source, which is printed unsigned.
fn address_immediate(inst: &Instruction, field: F) -> i64 {
    let value = inst.get(field) as i64;
    if inst.platform.generation >= XE2 && inst.width(field) == 10 { value * 2 } else { value }
}

/// The vertical stride, `None` for VxH.
const fn vertical(code: u64) -> Option<u64> {
    match code {
        0 => Some(0),
        code @ 1..=6 => Some(1 << (code - 1)),
        _ => None,
    }
}

fn push_split_send_source(line: &mut Text, inst: &Instruction, row: &OpcodeRow, index: usize) {
    if index == 1 {
        push_register(line, inst, inst.file(F::SendsSrc1RegisterFile), inst.get(F::SendsSrc1RegisterNumber));
    } else if inst.is_gather_send(row.opcode) {
        line.push("r[");
        push_register(line, inst, File::Arf, inst.get(F::Src0RegisterNumber));
        line.with(".", inst.get(F::SendsSrc0Subregister) * 2);
        line.push("]");
        return;
    } else if inst.platform.generation >= GEN12 {
        push_register(line, inst, inst.file(F::SendsSrc0RegisterFile), inst.get(F::Src0RegisterNumber));
    } else if inst.flag(F::SendsSrc0AddressMode) {
        let immediate = sends_address(inst, F::SendsSrc0AddressImmediate);
        push_address(line, inst.get(F::Src0AddressSubregister), None, immediate);
    } else {
        line.push("g");
        line.number(inst.get(F::Src0RegisterNumber));
        if inst.flag(F::A16Src0Subregister) {
            line.push(".1");
        }
    }
    line.push("UD");
}

fn push_immediate(line: &mut Text, inst: &Instruction, of: Option<Type>) {
    let value = inst.get(F::DwordImmediate);
    let wide = || inst.get(F::WideImmediate);
    match of {
        Some(Type::UQ | Type::Q) => {
            line.hex(wide(), 16);
            push_type(line, of);
        }
        Some(Type::DF) => {
            line.hex(wide(), 16);
            line.push("DF");
            line.pad(48);
            line.push("/* ");
            number::push_g(line, f64::from_bits(wide()));
            line.push("DF */");
        }
        Some(Type::UD | Type::UV | Type::V) => {
            line.hex(value, 8);
            push_type(line, of);
        }
        Some(Type::UW) => {
            line.hex(value & 0xffff, 4);
            line.push("UW");
        }
        Some(Type::D) => {
            line.signed(i64::from(value as u32 as i32));
            line.push("D");
        }
        Some(Type::W) => {
            line.signed(i64::from(value as u16 as i16));
            line.push("W");
        }
        Some(Type::VF) => {
            line.hex(value, 0);
            line.push("VF");
            line.pad(48);
            line.push("/* [");
            for (index, byte) in (value as u32).to_le_bytes().into_iter().enumerate() {
                if index > 0 {
                    line.push(", ");
                }
                number::push_g(line, number::vf(byte));
                line.push("F");
            }
            line.push("]VF */");
        }
        Some(Type::F) => {
            line.hex(value, 0);
            line.push("F");
            line.pad(48);
            line.push(" /* ");
            number::push_g(line, f64::from(f32::from_bits(value as u32)));
            line.push("F */");
        }
        Some(Type::HF) => {
            line.hex(value & 0xffff, 4);
            line.push("HF");
            line.pad(48);
            line.push("/* ");
            number::push_g(line, number::half(value as u16));
            line.push("HF */");
        }
        _ => {
            line.hex(value, 8);
            line.push("?");
        }
    }
}

/// The register file of the destination of an instruction with three sources.
pub(super) fn three_destination_file(inst: &Instruction) -> File {
    let general = inst.flag(F::ThreeA1DstRegisterFile) == (inst.platform.generation >= GEN12);
    if inst.platform.generation <= GEN9 || general { File::Grf } else { File::Arf }
}

fn push_three_destination(line: &mut Text, inst: &Instruction) {
    let align16 = inst.platform.generation <= GEN9;
    let (of, subregister) = if align16 {
        let of = ALIGN16_TYPES[inst.platform.g()][inst.get(F::ThreeA16DstType) as usize & 15];
        // Mesa takes the dwords of gen9 for bytes.
        let unit = if inst.platform.generation == GEN8 { 4 } else { 1 };
        (of, inst.get(F::ThreeA16DstSubregister) * unit)
    } else {
        let of = inst.align1_type(F::ThreeA1DstType, F::ThreeA1ExecutionType);
        (of, inst.get(F::ThreeA1DstSubregister))
    };
    if !push_register(line, inst, three_destination_file(inst), inst.get(F::ThreeDstRegisterNumber)) {
        return;
    }
    let subregister = elements(subregister, of);
    if subregister != 0 {
        line.push(".");
        line.number(subregister);
    }
    line.push("<1>");
    if align16 {
        push_mask(line, inst.get(F::ThreeA16WriteMask));
    }
    push_type(line, of);
}

/// The type of a source of a three-source instruction in align16. The half floats of its mixed modes are in exact texts only: Mesa does
/// not show them.
fn align16_source_type(inst: &Instruction, index: usize, exact: bool) -> Option<Type> {
    let half = match index {
        _ if !exact => false,
        1 => inst.flag(F::ThreeA16Src1IsHalfFloat),
        2 => inst.flag(F::ThreeA16Src2IsHalfFloat),
        _ => false,
    };
    let of = ALIGN16_TYPES[inst.platform.g()][inst.get(F::ThreeA16SourceType) as usize & 15];
    if half && of == Some(Type::F) { Some(Type::HF) } else { of }
}

fn push_three_source(line: &mut Text, inst: &Instruction, index: usize, exact: bool) {
    let fields = &THREE[index];
    let generation = inst.platform.generation;
    let modifiers = |line: &mut Text| {
        if inst.flag(fields.negate) {
            line.push("-");
        }
        if inst.flag(fields.absolute) {
            line.push("(abs)");
        }
    };
    if generation <= GEN9 {
        let of = align16_source_type(inst, index, exact);
        let scalar = inst.flag(fields.replicate);
        let unit = if generation == GEN8 { 4 } else { 2 };
        modifiers(line);
        push_register(line, inst, File::Grf, inst.get(fields.register));
        let subregister = elements(inst.get(fields.subregister16) * unit, of);
        if subregister != 0 || scalar {
            line.push(".");
            line.number(subregister);
        }
        if scalar {
            line.push("<0,1,0>");
        } else {
            line.push("<4,4,1>");
            let swizzle = inst.get(fields.swizzle);
            push_swizzle(line, [0, 2, 4, 6].map(|shift| swizzle >> shift & 3));
        }
        push_type(line, of);
        return;
    }
    let of = inst.align1_type(fields.kind, F::ThreeA1ExecutionType);
    let file = three_file(inst, index);
    if file == File::Immediate {
        let value = inst.get(if index == 0 { F::ThreeA1Src0Immediate } else { F::ThreeA1Src2Immediate });
        if of == Some(Type::W) {
            line.number(value);
        } else {
            line.hex(value, 4);
        }
        push_type(line, of);
        return;
    }
    modifiers(line);
    if !push_register(line, inst, file, inst.get(fields.register)) {
        return;
    }
    let stride = horizontal(inst.get(fields.horizontal));
    let vertical = fields.vertical.map_or(stride, |f| three_vertical(generation, inst.get(f)));
    let width = match (vertical, stride) {
        (0, 0) => 1,
        (vertical, 0) => vertical,
        (vertical, stride) => vertical / stride,
    };
    let (vertical, width) = src2_region(fields.vertical.is_some(), vertical, width, stride);
    let subregister = elements(subregister_bytes(inst, fields.subregister), of);
    if subregister != 0 || (vertical == 0 && stride == 0) {
        line.push(".");
        line.number(subregister);
    }
    push_region(line, vertical, width, stride);
    push_type(line, of);
}

/// src2 has no vertical stride: its region is that of the horizontal one.
fn src2_region(has_vertical: bool, vertical: u64, width: u64, stride: u64) -> (u64, u64) {
    if has_vertical || stride == 0 { (vertical, width) } else { (stride, 1) }
}

/// The file of a source of a three-source instruction in align1.
#[must_use]
pub fn three_file(inst: &Instruction, index: usize) -> File {
    let code = inst.get(THREE[index].file);
    if inst.platform.generation >= GEN12 {
        return match code {
            0 => File::Arf,
            1 => File::Grf,
            _ => File::Immediate,
        };
    }
    match (code, index) {
        (0, _) => File::Grf,
        (_, 1) => File::Arf,
        _ => File::Immediate,
    }
}

fn push_dpas(line: &mut Text, inst: &Instruction) {
    let operand = |line: &mut Text, [file, number, subregister, kind]: [F; 4], region: &str| {
        let of = inst.align1_type(kind, F::DpasExecutionType);
        if !push_register(line, inst, inst.file(file), inst.get(number)) {
            return;
        }
        let subregister = elements(subregister_bytes(inst, subregister), of);
        if subregister != 0 {
            line.push(".");
            line.number(subregister);
        }
        line.push(region);
        push_type(line, of);
    };
    line.pad(16);
    let destination =
        [F::DpasDstRegisterFile, F::DpasDstRegisterNumber, F::DpasDstSubregister, F::DpasDstType];
    operand(line, destination, "<1>");
    for (fields, column) in THREE.iter().zip([32, 48, 64]) {
        line.pad(column);
        operand(line, fields.dpas, "<1,1,0>");
    }
}

/// The descriptors of a send.
#[must_use]
pub fn descriptors(inst: &Instruction, row: &OpcodeRow) -> Descriptors {
    let function = inst.get(F::SendSharedFunction) as u32;
    if inst.is_split_send(row.opcode) {
        let in_register = inst.flag(F::SendsExtendedDescriptorInA0);
        Descriptors {
            function,
            descriptor: (!inst.flag(F::SendsDescriptorInA00)).then(|| inst.get(F::SendDescriptor) as u32),
            extended: (!in_register).then(|| extended_descriptor(inst, row)),
            extended_in_register: in_register,
            bindless_length: (inst.platform.generation >= GEN125
                && in_register
                && inst.flag(F::SendsExtendedBindlessSurfaceOffset))
            .then(|| inst.get(F::SendsSrc1Length) as u32),
        }
    } else {
        Descriptors {
            function,
            descriptor: (inst.file(F::Src1RegisterFile) == File::Immediate)
                .then(|| inst.get(F::DwordImmediate) as u32),
            extended: None,
            extended_in_register: false,
            bindless_length: None,
        }
    }
}

/// The bits of an extended descriptor where they belong; the instruction does not hold all. Those of the length of the
/// second payload are the scalar register's subregister where that lists the first.
fn extended_descriptor(inst: &Instruction, row: &OpcodeRow) -> u32 {
    if inst.platform.generation >= GEN12 {
        let value = (inst.get(F::SendExtendedDescriptor) as u32) << 6;
        if inst.is_gather_send(row.opcode) { value & !GATHER_SUBREGISTER } else { value }
    } else {
        let value = inst.get(F::SendsExtendedDescriptor) as u32;
        value >> 4 << 16 | (value & 15) << 6
    }
}

/// A descriptor, which does not count for the column.
fn push_descriptor(line: &mut Text, descriptor: u32) {
    let mark = line.mark();
    line.hex(u64::from(descriptor), 8);
    line.uncount(mark);
}

fn push_message(line: &mut Text, inst: &Instruction, row: &OpcodeRow) {
    let of = descriptors(inst, row);
    if inst.is_split_send(row.opcode) {
        line.pad(64);
        match of.descriptor {
            Some(descriptor) => push_descriptor(line, descriptor),
            None => line.push("a0<0>UD"),
        }
        line.pad(80);
        match of.extended {
            Some(extended) => push_descriptor(line, extended),
            None => {
                line.push("a0");
                let subregister = inst.get(F::SendsExtendedDescriptorSubregister);
                if subregister != 0 {
                    line.push(".");
                    line.number(subregister);
                }
                line.push("<0>UD");
            }
        }
    } else {
        line.pad(48);
        if of.descriptor.is_none() {
            push_source(line, inst, row, 1);
            line.pad(64);
        }
        push_descriptor(line, inst.get(F::DwordImmediate) as u32);
    }
    line.line();
    line.pad(16);
    let mark = line.mark();
    line.push("            ");
    line.uncount(mark);
    push_name(line, &SFID[inst.platform.g()], of.function);
    line.push(" MsgDesc:");
    message::write(line, inst, &of);
}

fn push_options(line: &mut Text, inst: &Instruction, row: &OpcodeRow, send: bool, compacted: bool) {
    line.pad(64);
    if row.opcode == Opcode::Nop {
        return;
    }
    line.push(if inst.is_align16() { "{ align16" } else { "{ align1" });
    if inst.flag(F::NoMask) {
        line.push(" WE_all");
    }
    match (inst.flag(F::NoDependencyClear), inst.flag(F::NoDependencyCheck)) {
        (true, true) => line.push(" NoDDClr,NoDDChk"),
        (true, false) => line.push(" NoDDClr"),
        (false, true) => line.push(" NoDDChk"),
        (false, false) => {}
    }
    push_channels(line, inst);
    push_swsb(line, inst);
    if compacted {
        line.push(" compacted");
    }
    match inst.get(F::ThreadControl) {
        0 => {}
        1 => line.push(" atomic"),
        2 => line.push(" switch"),
        _ => line.push(" thread_3"),
    }
    if inst.flag(F::Atomic) {
        line.push(" atomic");
    }
    if has_branch_control(row.opcode) {
        if inst.flag(F::BranchControl) {
            line.push(" BranchCtrl");
        }
    } else if inst.flag(F::AccumulatorWrite) {
        line.push(" AccWrEnable");
    }
    if send && inst.flag(F::SendEndOfThread) {
        line.push(" EOT");
    }
}

/// The parts of a byte that the elements of a matrix are, by the code of its field.
pub(super) const PRECISIONS: [(F, [&str; 3]); 2] = [
    (F::DpasSrc1Precision, ["", "src1_4bit", "src1_2bit"]),
    (F::DpasSrc2Precision, ["", "src2_4bit", "src2_2bit"]),
];

fn push_precisions(line: &mut Text, inst: &Instruction) {
    for (field, names) in PRECISIONS {
        if let Some(name) = names.get(inst.get(field) as usize).filter(|name| !name.is_empty()) {
            line.push(" ");
            line.push(name);
        }
    }
}

/// Whether the accumulator bit is branch control.
#[must_use]
pub fn has_branch_control(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::If
            | O::Else
            | O::Goto
            | O::Break
            | O::Cont
            | O::Halt
            | O::Call
            | O::Calla
            | O::Ret
            | O::Brd
            | O::Brc
            | O::While
            | O::Endif
            | O::Jmpi
    )
}

/// Which channels of the mask are meant.
fn push_channels(line: &mut Text, inst: &Instruction) {
    let quarter = inst.get(F::QuarterControl);
    let nibble = inst.get(F::NibbleControl);
    match inst.execution_size() {
        size if size < 8 || nibble != 0 => {
            line.push(" ");
            line.number(quarter * 2 + nibble + 1);
            line.push("N");
        }
        8 => {
            line.push(" ");
            line.number(quarter + 1);
            line.push("Q");
        }
        16 => line.push(if quarter < 2 { " 1H" } else { " 2H" }),
        _ => {}
    }
}

fn push_swsb(line: &mut Text, inst: &Instruction) {
    if inst.platform.generation < GEN12 {
        return;
    }
    let Some(swsb) = inst.swsb() else {
        line.with(" swsb_", inst.get(F::SoftwareScoreboard));
        return;
    };
    if swsb.distance != 0 {
        line.push(" ");
        line.name(swsb.pipe);
        line.push("@");
        line.number(u64::from(swsb.distance));
    }
    if let Some((token, mode)) = swsb.token {
        line.push(" $");
        line.number(u64::from(token));
        line.push(match mode {
            TokenMode::Set => "",
            TokenMode::Dst => ".dst",
            TokenMode::Src => ".src",
        });
    }
}
