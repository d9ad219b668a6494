//! The assembler: the text of one instruction, as [`super::disasm`] writes it, to its bits.
//!
//! What a message's text says after `MsgDesc:` is a comment: the descriptors before it are what is encoded.

mod scan;
mod send;

use super::compaction;
use super::disasm::{PRECISIONS, branch_targets, has_branch_control, three_vertical};
use super::inst::{File, GEN8, GEN9, GEN12, Instruction, Platform, XE2};
use super::key;
use super::operands::{SOURCES, THREE};
use super::tables::{
    ALIGN16_TYPES, ARF, CONDITION, FLOAT_TYPES, Field as F, IMMEDIATE_TYPES, INTEGER_TYPES, MATH,
    OPCODE_NAME_MULTIPLIER, OPCODE_NAME_SLOTS, OPCODES, Opcode, OpcodeRow, PREDICATE_ALIGN1,
    PREDICATE_ALIGN16, REGISTER_TYPES, SWSB, SYNC, TokenMode, Type,
};

/// Why a text is not an instruction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AsmError {
    /// Something else was expected.
    #[error("expected {0} before {1:?}")]
    Expected(&'static str, String),
    /// The generation does not have it.
    #[error("{0} {1:?} does not exist on this platform")]
    Unsupported(&'static str, String),
    /// A label that is not defined.
    #[error("label {0} is not defined")]
    Label(String),
    /// The instruction was said to be compacted, and does not have such a form.
    #[error("the instruction does not have a compacted form")]
    NotCompact,
}

/// What a text is, before its branches are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled<'a> {
    /// The instruction, its targets still 0.
    pub inst: Instruction,
    /// Whether it is to be compacted.
    pub compacted: bool,
    /// The label at JIP.
    pub jip: Option<&'a str>,
    /// The label at UIP.
    pub uip: Option<&'a str>,
}

impl Assembled<'_> {
    /// The bytes: 8 when it is compacted, else 16.
    ///
    /// # Errors
    /// When it is to be compacted and cannot be.
    pub fn push_bytes(&self, out: &mut Vec<u8>) -> Result<(), AsmError> {
        if self.compacted {
            let compact = compaction::compact(&self.inst).ok_or(AsmError::NotCompact)?;
            out.extend_from_slice(&compact.to_le_bytes());
        } else {
            out.extend_from_slice(&self.inst.encode());
        }
        Ok(())
    }
}

struct Parser<'a> {
    rest: &'a str,
    inst: Instruction,
}

/// A register as it is written.
struct Register {
    file: File,
    number: u64,
    /// Whether region and type follow.
    typed: bool,
}

/// Assembles one instruction.
///
/// # Errors
/// When the text is not one.
pub fn assemble(platform: Platform, text: &str) -> Result<Assembled<'_>, AsmError> {
    let mut parser = Parser { rest: text, inst: Instruction { bits: 0, platform } };
    parser.instruction(text)
}

impl<'a> Parser<'a> {
    fn g(&self) -> usize {
        self.inst.platform.g()
    }

    fn generation(&self) -> u8 {
        self.inst.platform.generation
    }

    /// Sets a field to a value that must fit.
    fn put(&mut self, field: F, value: u64) -> Result<(), AsmError> {
        let width = self.inst.width(field);
        if width < 64 && value >> width != 0 {
            return Err(AsmError::Unsupported("the value", value.to_string()));
        }
        self.inst.set(field, value);
        Ok(())
    }

    fn instruction(&mut self, text: &'a str) -> Result<Assembled<'a>, AsmError> {
        self.space();
        let options = || text.split_once('{').map_or("", |(_, options)| options.trim_start());
        let align16 = self.generation() <= GEN9 && options().starts_with("align16");
        self.inst.set(F::AccessMode, u64::from(align16));
        self.predicate(align16)?;
        let name = self.word();
        let g = self.g();
        let Some((row, code)) = opcode(name, g) else {
            return Err(AsmError::Unsupported("the instruction", name.to_owned()));
        };
        self.inst.set(F::Opcode, u64::from(code));
        self.modifiers(row)?;
        let mut assembled = Assembled { inst: self.inst, compacted: false, jip: None, uip: None };
        if row.opcode == Opcode::Nop {
            assembled.inst = self.inst;
            return Ok(assembled);
        }
        self.space();
        if matches!(row.opcode, Opcode::Math | Opcode::Sync) {
            let function = self.word();
            let table: &[&str] = if row.opcode == Opcode::Math { &MATH[g] } else { &SYNC[g] };
            self.inst.set(F::ConditionModifier, Self::code(table, "the function", function)?);
        }
        self.expect("(")?;
        let size = self.number()?;
        if !size.is_power_of_two() || size > 128 {
            return Err(AsmError::Unsupported("the execution size", size.to_string()));
        }
        self.put(F::ExecutionSize, u64::from(size.trailing_zeros()))?;
        self.expect(")")?;
        let (jip, uip) = branch_targets(row.opcode);
        if jip {
            assembled.jip = Some(self.target("JIP:")?);
        }
        if uip {
            assembled.uip = Some(self.target("UIP:")?);
        }
        self.operands(row)?;
        self.hidden(row);
        assembled.compacted = self.options(row)?;
        assembled.inst = self.inst;
        Ok(assembled)
    }

    fn target(&mut self, kind: &'static str) -> Result<&'a str, AsmError> {
        self.space();
        self.expect(kind)?;
        self.space();
        Ok(self.word())
    }

    fn predicate(&mut self, align16: bool) -> Result<(), AsmError> {
        if !self.eat("(") {
            return Ok(());
        }
        let inverse = self.eat("-");
        if !inverse {
            self.expect("+")?;
        }
        self.inst.set(F::PredicateInverse, u64::from(inverse));
        self.expect("f")?;
        self.flag()?;
        let g = self.g();
        let name = self.take(|c| c.is_ascii_alphanumeric() || c == b'.');
        let name = if name.is_empty() { "." } else { name };
        let table: &[&str] = if align16 { &PREDICATE_ALIGN16[g] } else { &PREDICATE_ALIGN1[g] };
        self.inst.set(F::PredicateControl, Self::code(table, "the predicate", name)?);
        self.expect(")")?;
        self.space();
        Ok(())
    }

    /// `0.1` of a flag.
    fn flag(&mut self) -> Result<(), AsmError> {
        let register = self.number()?;
        self.put(F::FlagRegister, register)?;
        self.expect(".")?;
        let subregister = self.number()?;
        self.put(F::FlagSubregister, subregister)
    }

    fn modifiers(&mut self, row: &OpcodeRow) -> Result<(), AsmError> {
        while self.eat(".") {
            match self.word() {
                "sat" => self.inst.set(F::Saturate, 1),
                "breakpoint" => self.inst.set(F::Breakpoint, 1),
                word if row.opcode == Opcode::Dpas => self.dpas_shape(word)?,
                word if word.starts_with('f') && word[1..].bytes().all(|c| c.is_ascii_digit()) => {
                    let register = word[1..].parse().unwrap_or(u64::MAX);
                    self.put(F::FlagRegister, register)?;
                    self.expect(".")?;
                    let subregister = self.number()?;
                    self.put(F::FlagSubregister, subregister)?;
                }
                word => {
                    let code = Self::code(&CONDITION[self.g()], "the condition", word)?;
                    self.inst.set(F::ConditionModifier, code);
                }
            }
        }
        Ok(())
    }

    fn dpas_shape(&mut self, word: &str) -> Result<(), AsmError> {
        let shape = word.split_once('x').and_then(|(depth, count)| {
            let depth = [16, 2, 4, 8].iter().position(|&d| Ok(d) == depth.parse::<u64>())?;
            Some((depth as u64, count.parse::<u64>().ok()?.checked_sub(1)?))
        });
        let Some((depth, count)) = shape else {
            return Err(AsmError::Unsupported("the shape", word.to_owned()));
        };
        self.inst.set(F::DpasSystolicDepth, depth);
        self.put(F::DpasRepeatCount, count)
    }

    fn operands(&mut self, row: &'static OpcodeRow) -> Result<(), AsmError> {
        if branch_targets(row.opcode).0 {
            return Ok(());
        }
        if row.opcode == Opcode::Jmpi {
            return self.source(row, 1);
        }
        if row.opcode == Opcode::Dpas {
            return self.dpas();
        }
        if row.sources == 3 {
            return self.three();
        }
        if self.inst.is_split_send(row.opcode) {
            return self.split_send();
        }
        if row.destinations > 0 {
            self.destination()?;
        }
        if row.sources > 0 {
            self.source(row, 0)?;
        }
        if matches!(row.opcode, Opcode::Send | Opcode::Sendc) {
            return self.message(row);
        }
        if row.sources > 1 {
            self.source(row, 1)?;
        }
        Ok(())
    }

    /// What Mesa's assembler sets and the text does not show.
    fn hidden(&mut self, row: &OpcodeRow) {
        const IP: u64 = 0xa0;
        let (jip, uip) = branch_targets(row.opcode);
        let new = self.generation() >= GEN12;
        let inst = &mut self.inst;
        match row.opcode {
            Opcode::Jmpi => {
                inst.set(F::DstRegisterNumber, IP);
                inst.set(F::Src0RegisterNumber, IP);
                inst.set(F::A1DstHorizontalStride, 1);
                if new {
                    inst.set(F::DstType, 2);
                    inst.set(F::Src0Type, 2);
                }
            }
            Opcode::Endif if new => {
                inst.set(F::Src0Type, 6);
                inst.set(F::Src0RegisterFile, 2);
            }
            Opcode::Endif => {
                inst.set(F::Src0Type, 1);
                inst.set(F::Src0RegisterFile, 3);
                inst.set(F::Src1Type, 1);
            }
            _ if jip => {
                inst.set(F::A1DstHorizontalStride, 1);
                let cont = row.opcode == Opcode::Cont;
                if cont {
                    inst.set(F::DstRegisterNumber, IP);
                }
                inst.set(
                    F::DstType,
                    match (new, cont) {
                        (true, true) => 2,
                        (true, false) => 6,
                        (false, cont) => u64::from(!cont),
                    },
                );
                if new {
                    inst.set(F::Src0RegisterFile, 2);
                    if uip {
                        inst.set(F::Src1RegisterFile, 2);
                    }
                    if cont || row.opcode == Opcode::Break {
                        inst.set(F::Src0Type, 6);
                    }
                } else {
                    inst.set(F::Src0RegisterFile, 3);
                    inst.set(F::Src0Type, 1);
                    if !uip {
                        inst.set(F::Src1Type, 1);
                    }
                }
            }
            Opcode::Wait => {
                let number = inst.get(F::DstRegisterNumber);
                let subregister = inst.get(F::A1DstSubregister);
                inst.set(F::Src0RegisterNumber, number);
                inst.set(F::A1Src0Subregister, subregister);
                if !new {
                    // null<8,8,1>F
                    let of = REGISTER_TYPES[inst.platform.g()].iter().position(|&t| t == Some(Type::F));
                    inst.set(F::Src1Type, of.unwrap_or(0) as u64);
                    inst.set(F::A1Src1VerticalStride, 4);
                    inst.set(F::A1Src1Width, 3);
                    inst.set(F::A1Src1HorizontalStride, 1);
                }
            }
            _ => {}
        }
    }

    /// A register, `None` for an immediate.
    fn register(&mut self) -> Result<Register, AsmError> {
        let name = self.take(|c| c.is_ascii_lowercase());
        if name == "g" || name == "m" || name == "imm" {
            let number = self.number()?;
            let file = match name {
                "g" => File::Grf,
                "m" => File::Reserved,
                _ => File::Immediate,
            };
            return Ok(Register { file, number, typed: true });
        }
        if self.eat("ARF") {
            return Ok(Register { file: File::Arf, number: self.number()?, typed: true });
        }
        let class = Self::code(&ARF[self.g()], "the register", name)? << 4;
        let typed = !matches!(name, "ip" | "tdr");
        let number = if matches!(name, "null" | "ip") { 0 } else { self.number()? };
        if number > 15 {
            return self.error("a register");
        }
        Ok(Register { file: File::Arf, number: class | number, typed })
    }

    /// The code of a register file in a field.
    fn file(&mut self, field: F, file: File) -> Result<(), AsmError> {
        let code = match (file, self.generation() >= GEN12) {
            (File::Arf, _) => 0,
            (File::Grf, _) => 1,
            (File::Reserved, false) => 2,
            (File::Immediate, false) => 3,
            (_, true) => 2,
        };
        self.put(field, code)
    }

    /// `.4` after a register, 0 without.
    fn subregister(&mut self) -> Result<u64, AsmError> {
        if self.eat(".") { self.number() } else { Ok(0) }
    }

    fn type_code(&mut self, field: F, table: &[Option<Type>; 16], of: Type) -> Result<(), AsmError> {
        match table.iter().position(|&entry| entry == Some(of)) {
            Some(code) => self.put(field, code as u64),
            None => Err(AsmError::Unsupported("the type", of.name().to_owned())),
        }
    }

    /// Bytes in a subregister field, which on Xe2 may count in 2 bytes.
    fn put_subregister(&mut self, field: F, bytes: u64) -> Result<(), AsmError> {
        let half = self.generation() >= XE2 && self.inst.width(field) == 5;
        if half && !bytes.is_multiple_of(2) {
            return Err(AsmError::Unsupported("the subregister", bytes.to_string()));
        }
        self.put(field, if half { bytes / 2 } else { bytes })
    }

    /// `[a0.2 16]`: subregister and immediate.
    fn address(&mut self) -> Result<(u64, u64), AsmError> {
        self.expect("[a0")?;
        let subregister = self.subregister()?;
        let immediate = if self.eat(" ") { self.number()? } else { 0 };
        self.expect("]")?;
        Ok((subregister, immediate))
    }

    fn put_address(&mut self, field: F, immediate: u64) -> Result<(), AsmError> {
        let half = self.generation() >= XE2 && self.inst.width(field) == 10;
        if half && !immediate.is_multiple_of(2) {
            return Err(AsmError::Unsupported("the address", immediate.to_string()));
        }
        self.put(field, if half { immediate / 2 } else { immediate })
    }

    fn stride(&mut self, field: F) -> Result<(), AsmError> {
        let stride = self.number()?;
        match [0, 1, 2, 4].iter().position(|&s| s == stride) {
            Some(code) => self.put(field, code as u64),
            None => Err(AsmError::Unsupported("the stride", stride.to_string())),
        }
    }

    /// The type of a register that is printed without one: `tdr0` is of words, `ip` of dwords.
    fn untyped(&mut self, field: F, number: u64) -> Result<(), AsmError> {
        const TDR: u64 = 0xb0;
        let g = self.g();
        self.type_code(field, &REGISTER_TYPES[g], if number == TDR { Type::UW } else { Type::UD })
    }

    fn destination(&mut self) -> Result<(), AsmError> {
        self.space();
        let mut scale = None;
        let mut subregister = 0;
        if self.rest.starts_with("g[") {
            self.rest = &self.rest[1..];
            let (sub, immediate) = self.address()?;
            self.file(F::DstRegisterFile, File::Grf)?;
            self.inst.set(F::DstAddressMode, 1);
            self.put_address(F::A1DstAddressImmediate, immediate)?;
            scale = Some(sub);
        } else {
            let register = self.register()?;
            self.file(F::DstRegisterFile, register.file)?;
            self.put(F::DstRegisterNumber, register.number)?;
            if !register.typed {
                self.inst.set(F::A1DstHorizontalStride, 1);
                return self.untyped(F::DstType, register.number);
            }
            subregister = self.subregister()?;
        }
        self.expect("<")?;
        let align16 = self.inst.is_align16();
        if align16 {
            self.expect("1")?;
            self.inst.set(F::A1DstHorizontalStride, 1);
        } else {
            self.stride(F::A1DstHorizontalStride)?;
        }
        self.expect(">")?;
        if align16 {
            let mask = self.mask();
            self.inst.set(F::A16WriteMask, mask);
        }
        let of = self.operand_type()?;
        let g = self.g();
        self.type_code(F::DstType, &REGISTER_TYPES[g], of)?;
        if let Some(sub) = scale {
            self.put(F::DstAddressSubregister, sub.saturating_mul(u64::from(of.bytes())))?;
        } else if align16 {
            self.put(F::A16DstSubregister, u64::from(subregister != 0))?;
        } else {
            self.put_subregister(F::A1DstSubregister, subregister.saturating_mul(u64::from(of.bytes())))?;
        }
        Ok(())
    }

    /// `.xyz` of a destination.
    fn mask(&mut self) -> u64 {
        if !self.eat(".") {
            return 15;
        }
        let components = self.take(|c| (b'w'..=b'z').contains(&c));
        components.bytes().map(|c| 1 << component(c)).fold(0, |a, b| a | b)
    }

    /// `.xxyz` of a source.
    fn swizzle(&mut self) -> Result<[u64; 4], AsmError> {
        if !self.eat(".") {
            return Ok([0, 1, 2, 3]);
        }
        let components = self.take(|c| (b'w'..=b'z').contains(&c)).as_bytes();
        match *components {
            [one] => Ok([component(one); 4]),
            [x, y, z, w] => Ok([x, y, z, w].map(component)),
            _ => self.error("a swizzle"),
        }
    }

    /// Whether an immediate is next.
    fn immediate_next(&self) -> bool {
        let digits = self.rest.strip_prefix('-').unwrap_or(self.rest);
        digits.starts_with(|c: char| c.is_ascii_digit())
    }

    fn source(&mut self, row: &OpcodeRow, index: usize) -> Result<(), AsmError> {
        self.space();
        let fields = &SOURCES[index];
        let g = self.g();
        if self.immediate_next() {
            self.file(fields.file, File::Immediate)?;
            let of = self.immediate()?;
            self.type_code(fields.kind, &IMMEDIATE_TYPES[g], of)?;
            if row.sources == 1 && self.generation() < GEN12 && of.bytes() < 8 {
                let code = self.inst.get(F::Src0Type);
                self.inst.set(F::Src1Type, code);
            }
            return Ok(());
        }
        if self.eat("-") || self.eat("~") {
            self.inst.set(fields.negate, 1);
        }
        if self.eat("(abs)") {
            self.inst.set(fields.absolute, 1);
        }
        let mut subregister = None;
        if self.rest.starts_with("g[") {
            self.rest = &self.rest[1..];
            let (sub, immediate) = self.address()?;
            self.file(fields.file, File::Grf)?;
            self.inst.set(fields.mode, 1);
            self.put(fields.address_subregister, sub)?;
            self.put_address(fields.address, immediate)?;
        } else {
            let register = self.register()?;
            self.file(fields.file, register.file)?;
            self.put(fields.register, register.number)?;
            if !register.typed {
                return self.untyped(fields.kind, register.number);
            }
            subregister = Some(self.subregister()?);
        }
        self.expect("<")?;
        let vertical = if self.eat("VxH") {
            u64::MAX
        } else {
            match self.number()? {
                0 => 0,
                stride if stride.is_power_of_two() && stride <= 32 => u64::from(stride.trailing_zeros()) + 1,
                _ => return self.error("a vertical stride"),
            }
        };
        let vertical =
            if vertical == u64::MAX { (1 << self.inst.width(fields.vertical)) - 1 } else { vertical };
        self.put(fields.vertical, vertical)?;
        if self.inst.is_align16() {
            self.expect(">")?;
            let swizzle = self.swizzle()?;
            for (field, component) in fields.swizzle.into_iter().zip(swizzle) {
                self.inst.set(field, component);
            }
        } else {
            self.expect(",")?;
            let width = self.number()?;
            if !width.is_power_of_two() {
                return self.error("a width");
            }
            self.put(fields.width, u64::from(width.trailing_zeros()))?;
            self.expect(",")?;
            self.stride(fields.horizontal)?;
            self.expect(">")?;
        }
        let of = self.operand_type()?;
        self.type_code(fields.kind, &REGISTER_TYPES[g], of)?;
        match subregister {
            Some(sub) if self.inst.is_align16() => self.put(fields.subregister16, u64::from(sub != 0)),
            Some(sub) => self.put_subregister(fields.subregister, sub.saturating_mul(u64::from(of.bytes()))),
            None => Ok(()),
        }
    }

    /// An immediate of a basic instruction.
    fn immediate(&mut self) -> Result<Type, AsmError> {
        let negative = self.eat("-");
        let value = if self.rest.starts_with("0x") { self.hex()? } else { self.number()? };
        let value = if negative { value.wrapping_neg() } else { value };
        let of = self.operand_type()?;
        match of {
            Type::Q | Type::UQ | Type::DF => self.inst.set(F::WideImmediate, value),
            Type::W | Type::UW | Type::HF => self.inst.set(F::DwordImmediate, (value & 0xffff) * 0x10001),
            _ => self.inst.set(F::DwordImmediate, value & 0xffff_ffff),
        }
        Ok(of)
    }

    fn three(&mut self) -> Result<(), AsmError> {
        let g = self.g();
        let align16 = self.generation() <= GEN9;
        self.space();
        let register = self.register()?;
        self.put(F::ThreeDstRegisterNumber, register.number)?;
        let mut of = Type::UD;
        let mut subregister = 0;
        if register.typed {
            subregister = self.subregister()?;
            self.expect("<1>")?;
            if align16 {
                let mask = self.mask();
                self.inst.set(F::ThreeA16WriteMask, mask);
            }
            of = self.operand_type()?;
        }
        let bytes = subregister.saturating_mul(u64::from(of.bytes()));
        if align16 {
            self.type_code(F::ThreeA16DstType, &ALIGN16_TYPES[g], of)?;
            let unit = if self.generation() == GEN8 { 4 } else { 1 };
            self.put(F::ThreeA16DstSubregister, bytes / unit)?;
            for index in 0..3 {
                self.three_align16(index)?;
            }
            return Ok(());
        }
        let grf = (register.file == File::Grf) == (self.generation() >= GEN12);
        self.put(F::ThreeA1DstRegisterFile, u64::from(grf))?;
        self.put(F::ThreeA1DstSubregister, bytes)?;
        self.inst.set(F::ThreeA1ExecutionType, u64::from(of.is_float()));
        let table = if of.is_float() { &FLOAT_TYPES[g] } else { &INTEGER_TYPES[g] };
        self.type_code(F::ThreeA1DstType, table, of)?;
        for index in 0..3 {
            self.three_align1(index, table)?;
        }
        Ok(())
    }

    fn three_align16(&mut self, index: usize) -> Result<(), AsmError> {
        let fields = &THREE[index];
        self.space();
        self.three_modifiers(index);
        let register = self.register()?;
        self.put(fields.register, register.number)?;
        let subregister = self.subregister()?;
        if self.eat("<0,1,0>") {
            self.inst.set(fields.replicate, 1);
        } else {
            self.expect("<4,4,1>")?;
            let swizzle = self.swizzle()?;
            let bits = swizzle.iter().rev().fold(0, |bits, c| bits << 2 | c);
            self.put(fields.swizzle, bits)?;
        }
        let of = self.operand_type()?;
        let unit = if self.generation() == GEN8 { 4 } else { 2 };
        self.put(fields.subregister16, subregister.saturating_mul(u64::from(of.bytes())) / unit)?;
        let g = self.g();
        match index {
            0 => self.type_code(F::ThreeA16SourceType, &ALIGN16_TYPES[g], of),
            _ => {
                let first = ALIGN16_TYPES[g][self.inst.get(F::ThreeA16SourceType) as usize & 15];
                if first == Some(of) {
                    return Ok(());
                }
                if first != Some(Type::F) || of != Type::HF {
                    return Err(AsmError::Unsupported("the type", of.name().to_owned()));
                }
                let field = if index == 1 { F::ThreeA16Src1IsHalfFloat } else { F::ThreeA16Src2IsHalfFloat };
                self.put(field, 1)
            }
        }
    }

    fn three_modifiers(&mut self, index: usize) {
        if self.eat("-") {
            self.inst.set(THREE[index].negate, 1);
        }
        if self.eat("(abs)") {
            self.inst.set(THREE[index].absolute, 1);
        }
    }

    fn three_align1(&mut self, index: usize, table: &[Option<Type>; 16]) -> Result<(), AsmError> {
        let fields = &THREE[index];
        self.space();
        let new = self.generation() >= GEN12;
        if index != 1 && self.immediate_next() {
            let value = if self.rest.starts_with("0x") { self.hex()? } else { self.number()? };
            let of = self.operand_type()?;
            self.type_code(fields.kind, table, of)?;
            self.put(fields.file, if new { 2 } else { 1 })?;
            return self
                .put(if index == 0 { F::ThreeA1Src0Immediate } else { F::ThreeA1Src2Immediate }, value);
        }
        self.three_modifiers(index);
        let register = self.register()?;
        let grf = register.file == File::Grf;
        self.put(fields.file, u64::from(grf == new))?;
        self.put(fields.register, register.number)?;
        if !register.typed {
            return Ok(());
        }
        let subregister = self.subregister()?;
        self.expect("<")?;
        let vertical = self.number()?;
        if let Some(field) = fields.vertical {
            match (0..4).find(|&code| three_vertical(self.generation(), code) == vertical) {
                Some(code) => self.put(field, code)?,
                None => return self.error("a vertical stride"),
            }
        }
        self.expect(",")?;
        self.number()?;
        self.expect(",")?;
        self.stride(fields.horizontal)?;
        self.expect(">")?;
        let of = self.operand_type()?;
        self.type_code(fields.kind, table, of)?;
        self.put_subregister(fields.subregister, subregister.saturating_mul(u64::from(of.bytes())))
    }

    fn dpas(&mut self) -> Result<(), AsmError> {
        let g = self.g();
        let destination =
            [F::DpasDstRegisterFile, F::DpasDstRegisterNumber, F::DpasDstSubregister, F::DpasDstType];
        let mut table = &INTEGER_TYPES[g];
        for (index, fields) in
            [destination, THREE[0].dpas, THREE[1].dpas, THREE[2].dpas].into_iter().enumerate()
        {
            self.space();
            let [file, number, subregister, kind] = fields;
            let register = self.register()?;
            self.file(file, register.file)?;
            self.put(number, register.number)?;
            if !register.typed {
                return self.error("a register with a type");
            }
            let sub = self.subregister()?;
            self.expect(if index == 0 { "<1>" } else { "<1,1,0>" })?;
            let of = self.operand_type()?;
            if index == 0 && of.is_float() {
                table = &FLOAT_TYPES[g];
                self.inst.set(F::DpasExecutionType, 1);
            }
            self.type_code(kind, table, of)?;
            self.put_subregister(subregister, sub.saturating_mul(u64::from(of.bytes())))?;
        }
        Ok(())
    }

    fn options(&mut self, row: &OpcodeRow) -> Result<bool, AsmError> {
        self.space();
        self.expect("{")?;
        let mut compacted = false;
        let (mut distance, mut pipe, mut token) = (0, "", None);
        loop {
            self.space();
            if self.eat("}") {
                break;
            }
            let option = self.take(|c| !c.is_ascii_whitespace() && c != b'}');
            match option.as_bytes() {
                [b'0'..=b'9', ..] => {
                    self.channels(option)?;
                    continue;
                }
                [b'$', ..] => {
                    token = Some(scoreboard_token(option)?);
                    continue;
                }
                [b'@', ..] | [_, b'@', ..] => {
                    let (letter, number) = option.split_once('@').unwrap_or_default();
                    distance = number.parse().unwrap_or(u16::MAX);
                    pipe = letter;
                    continue;
                }
                _ => {}
            }
            match option {
                "align1" | "align16" => {}
                "WE_all" => self.inst.set(F::NoMask, 1),
                "NoDDClr" => self.put(F::NoDependencyClear, 1)?,
                "NoDDChk" => self.put(F::NoDependencyCheck, 1)?,
                "NoDDClr,NoDDChk" => {
                    self.put(F::NoDependencyClear, 1)?;
                    self.put(F::NoDependencyCheck, 1)?;
                }
                "compacted" => compacted = true,
                "atomic" if self.generation() >= GEN12 => self.inst.set(F::Atomic, 1),
                "atomic" => self.inst.set(F::ThreadControl, 1),
                "switch" => self.put(F::ThreadControl, 2)?,
                "AccWrEnable" => self.inst.set(F::AccumulatorWrite, 1),
                "BranchCtrl" if has_branch_control(row.opcode) => self.inst.set(F::BranchControl, 1),
                _ if row.opcode == Opcode::Dpas && self.precision(option) => {}
                "EOT" => self.inst.set(F::SendEndOfThread, 1),
                _ => return Err(AsmError::Unsupported("the option", option.to_owned())),
            }
        }
        if distance != 0 || token.is_some() {
            self.scoreboard(distance, pipe, token)?;
        }
        Ok(compacted)
    }

    /// Whether an option is the precision of a matrix.
    fn precision(&mut self, option: &str) -> bool {
        for (field, names) in PRECISIONS {
            if let Ok(code) = Self::code(&names, "the precision", option) {
                self.inst.set(field, code);
                return true;
            }
        }
        false
    }

    /// `1Q`, `2H`, `5N`.
    fn channels(&mut self, option: &str) -> Result<(), AsmError> {
        let unsupported = || AsmError::Unsupported("the option", option.to_owned());
        let (number, unit) =
            option.split_at_checked(option.len().saturating_sub(1)).ok_or_else(unsupported)?;
        let number: u64 = number.parse().ok().filter(|&n| n > 0).ok_or_else(unsupported)?;
        let first = number - 1;
        match unit {
            "N" => {
                self.put(F::QuarterControl, first / 2)?;
                self.put(F::NibbleControl, first % 2)
            }
            "Q" => self.put(F::QuarterControl, first),
            "H" => self.put(F::QuarterControl, first.saturating_mul(2)),
            _ => Err(unsupported()),
        }
    }

    fn scoreboard(
        &mut self,
        distance: u16,
        pipe: &str,
        token: Option<(u16, TokenMode)>,
    ) -> Result<(), AsmError> {
        let shown =
            || AsmError::Unsupported("the scoreboard annotation", format!("{pipe}@{distance} {token:?}"));
        if self.generation() < GEN12 {
            return Err(shown());
        }
        let fits =
            |mask: u16, value: u16| mask != 0 && u32::from(value) <= u32::from(mask >> mask.trailing_zeros());
        let row = SWSB
            .iter()
            .find(|row| {
                row.pipe == pipe
                    && row.mode == token.map(|t| t.1)
                    && token.is_none_or(|t| fits(row.token, t.0))
                    && if distance == 0 { row.distance == 0 } else { fits(row.distance, distance) }
                    && self.inst.swsb_row_fits(row)
            })
            .ok_or_else(shown)?;
        let place = |mask: u16, value: u16| if mask == 0 { 0 } else { value << mask.trailing_zeros() };
        let bits = row.value | place(row.distance, distance) | place(row.token, token.map_or(0, |t| t.0));
        self.put(F::SoftwareScoreboard, u64::from(bits))
    }
}

/// `$3.dst`: a token, and what is done with it.
fn scoreboard_token(option: &str) -> Result<(u16, TokenMode), AsmError> {
    let (number, mode) = match option[1..].split_once('.') {
        None => (&option[1..], TokenMode::Set),
        Some((number, "dst")) => (number, TokenMode::Dst),
        Some((number, "src")) => (number, TokenMode::Src),
        Some(_) => return Err(AsmError::Unsupported("the option", option.to_owned())),
    };
    Ok((number.parse().unwrap_or(u16::MAX), mode))
}

/// The row of a name in a generation, and its code.
fn opcode(name: &str, g: usize) -> Option<(&'static OpcodeRow, u8)> {
    let slot = key::slot(key::packed(name.as_bytes())?, OPCODE_NAME_MULTIPLIER);
    let (first, last) = OPCODE_NAME_SLOTS[slot];
    let row = |index: u8| OPCODES.get(usize::from(index)).filter(|row| row.name == name);
    let coded = |row: &'static OpcodeRow| Some((row, row.codes[g]?));
    row(first).and_then(coded).or_else(|| row(last).and_then(coded))
}

/// The number of a component.
fn component(letter: u8) -> u64 {
    match letter {
        b'x' => 0,
        b'y' => 1,
        b'z' => 2,
        _ => 3,
    }
}
