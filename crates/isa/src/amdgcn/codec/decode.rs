//! From words to instruction.
//!
//! A bit that no slot and no modifier accounts for must be zero, because no assembler sets it. Hardware ignores it:
//! [`decode_executed()`] reads such words as well, and keeps these bits in [`Inst::unused`].
//!
//! A half register that the column of a GPU cannot name is read by the column that names all half registers.

use super::{encode, mem};
use crate::amdgcn::inst::{Inst, Operand, RegHalf, dwords};
use crate::amdgcn::model::{
    Class, Encoding, EncodingLayout, Field, FieldBits, Mod, OperandSlot, Trait, Type,
};
use crate::amdgcn::tables::Variant;
use crate::amdgcn::{Gfx, Gpu, Opcode, Reg, regs, tables, text};

/// An instruction and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedInst {
    /// The instruction.
    pub inst: Inst,
    /// How many dwords it takes.
    pub dwords: u8,
}

/// The dwords of an encoding, without a literal; no field lies across two of them.
pub(super) type EncodingDwords = [u32; 4];

/// Words being read.
pub(super) struct InstReader<'a> {
    pub(super) words: EncodingDwords,
    /// Bits that have been read.
    pub(super) seen: EncodingDwords,
    /// The dword after the encoding, if it is there.
    pub(super) literal: Option<u32>,
    pub(super) used_literal: bool,
    pub(super) layout: &'a EncodingLayout,
    pub(super) gpu: &'a Gpu,
    /// Whether bits that mean nothing may be set.
    pub(super) lenient: bool,
}

impl InstReader<'_> {
    /// The value of a field, which is thereby accounted for.
    pub(super) fn take(&mut self, field: Field) -> u32 {
        let FieldBits { lsb, width } = self.layout.fields[field as usize];
        let mask = !(u32::MAX << (width & 31));
        let (dword, shift) = (usize::from(lsb >> 5) & 3, lsb & 31);
        self.seen[dword] |= mask << shift;
        self.words[dword] >> shift & mask
    }

    /// Whether no bit that has not been read is set.
    pub(super) fn all_seen(&self) -> bool {
        self.words.iter().zip(self.seen).all(|(word, seen)| word & !seen == 0)
    }

    fn take_literal(&mut self) -> Option<Operand> {
        self.used_literal = true;
        self.literal.map(Operand::Literal)
    }

    fn source(&mut self, code: u32, count: u8) -> Option<Operand> {
        if code == 255 && self.layout.literal { self.take_literal() } else { source(code, count, self.gpu) }
    }

    /// How many registers a matrix of small values takes.
    fn small(&self, source: u8) -> u8 {
        let FieldBits { lsb, width } =
            self.layout.fields[if source == 0 { Field::Cbsz } else { Field::Blgp } as usize];
        small_dwords(self.words[usize::from(lsb >> 5) & 3] >> (lsb & 31) & !(u32::MAX << (width & 31)))
    }

    /// Registers of the file that a flag selects; accumulation registers in layouts without the flag.
    fn either(&mut self, flag: Field, n: u32, count: u8) -> Operand {
        let has_flag = self.layout.fields[flag as usize].width > 0;
        if has_flag && self.take(flag) == 0 {
            vector(n, count, RegHalf::Whole)
        } else {
            accumulation(n, count)
        }
    }

    fn scalar(&self, code: u32, count: u8) -> Option<Operand> {
        scalar(code, count, self.gpu)
    }

    /// A register that can only be read, named as a destination of 7 bits in which its code does not fit.
    fn read_only(&self, slot: &OperandSlot, value: u32, count: u8) -> Option<Operand> {
        let narrow = self.layout.fields[slot.field as usize].width == 7;
        let single = slot.ty == Type::Mask || slot.ty.bits() <= 32;
        let there = |operand: &Operand| {
            matches!(operand, Operand::Reg { reg: Reg::SCC | Reg::VCCZ | Reg::EXECZ, .. })
        };
        self.scalar(value | 128, count).filter(|operand| narrow && single && there(operand))
    }

    fn operand(&mut self, slot: &OperandSlot) -> Option<Operand> {
        let count = dwords(slot.ty, self.gpu);
        if matches!(slot.class, Class::Fixed | Class::FixedOptional) {
            return Some(Operand::reg(Reg(slot.reg), count));
        }
        if slot.class == Class::Imm32 {
            return self.take_literal();
        }
        let value = self.take(slot.field);
        let low = value & 127;
        let half = if value & 128 != 0 { RegHalf::High } else { RegHalf::Low };
        match slot.class {
            Class::SsrcLds if value >= 256 => None,
            Class::Src | Class::SsrcLds => self.source(value, count),
            Class::Ssrc | Class::Ssrc32 | Class::SsrcInline if value == 254 || value >= 256 => None,
            Class::Ssrc | Class::Ssrc32 => self.source(value, count),
            Class::SrcLow if value >= 256 + 128 => None,
            Class::SrcLow => self.source(value, count),
            Class::SrcHalf if value >= 256 => Some(vector(low, count, half)),
            Class::SrcHalf => self.source(value, count),
            Class::SrcSel | Class::SrcNamed if value >= 256 => Some(vector(value - 256, count, RegHalf::Low)),
            Class::SrcSel | Class::SrcNamed => self.source(value, count),
            Class::SrcMatrix if value < 128 || (249..256).contains(&value) => None,
            Class::SrcMatrix => self.source(value, count),
            Class::SrcInline | Class::SsrcInline if value == 255 => None,
            Class::SrcInline | Class::SsrcInline => self.source(value, count),
            Class::Vgpr | Class::ExpSrc => Some(vector(value, count, RegHalf::Whole)),
            Class::VgprSel | Class::VgprNamed => Some(vector(value, count, RegHalf::Low)),
            Class::VgprNamedSrc => Some(vector(value.checked_sub(256)?, count, RegHalf::Low)),
            Class::VgprLow => (value < 128).then(|| vector(value, count, RegHalf::Whole)),
            Class::VgprHalf => Some(vector(low, count, half)),
            Class::VgprSrc => match value {
                254 => self.scalar(value, count),
                _ => Some(vector(value.checked_sub(256)?, count, RegHalf::Whole)),
            },
            Class::VgprLowSrc => {
                value.checked_sub(256).filter(|n| *n < 128).map(|n| vector(n, count, RegHalf::Whole))
            }
            Class::VgprHalfSrc => value.checked_sub(256).map(|_| vector(low, count, half)),
            Class::Agpr => Some(accumulation(value, count)),
            Class::AgprSrc => Some(accumulation(value.checked_sub(256)?, count)),
            Class::AccDst => Some(self.either(Field::AccCd, value, count)),
            Class::AccSrc | Class::AccSmall => {
                let count = if slot.class == Class::AccSmall { self.small(slot.source) } else { count };
                let flag = if slot.source == 0 { Field::Acc0 } else { Field::Acc1 };
                Some(self.either(flag, value.checked_sub(256)?, count))
            }
            Class::AccMatrix if value >= 256 => Some(self.either(Field::AccCd, value - 256, count)),
            Class::AccMatrix if value < 128 || (249..251).contains(&value) || value > 253 => None,
            Class::AccMatrix => self.source(value, count),
            Class::VgprDual => {
                let other = self.take(Field::VdstX);
                Some(vector(value << 1 | (other & 1 ^ 1), count, RegHalf::Whole))
            }
            Class::SrcSdwa => {
                let scalar = self.take(if slot.source == 0 { Field::S0 } else { Field::S1 });
                if scalar == 0 {
                    Some(vector(value, count, RegHalf::Whole))
                } else {
                    self.source(value, count)
                }
            }
            Class::SdwaSdst => match (self.take(Field::Sd), self.scalar(value, count)) {
                (0, _) => (value == 0).then_some(Operand::reg(Reg::VCC, count)),
                // What has a bit of its own is not said twice.
                (_, Some(Operand::Reg { reg: Reg::VCC, .. })) => None,
                (_, other) => other.or_else(|| self.read_only(slot, value, count)),
            },
            Class::SregPair => self.scalar(value << 1, count),
            Class::SregQuad => self.scalar(value << 2, count),
            Class::Sreg if value == 254 => None,
            Class::Sreg => self.scalar(value, count),
            Class::Sdst => match self.scalar(value, count) {
                Some(Operand::Reg { reg, .. }) if !may_be_written(slot, reg) => None,
                other => other.or_else(|| self.read_only(slot, value, count)),
            },
            Class::Attr => {
                let channel = self.take(Field::Chan);
                Some(Operand::Imm((value << 2 | channel) as i32))
            }
            Class::Label => Some(Operand::Imm((value as u16 as i16).into())),
            Class::Barrier if value == 255 => None,
            Class::Barrier => match self.source(value, count)? {
                operand @ (Operand::Inline(_) | Operand::Reg { reg: Reg::M0, .. }) => Some(operand),
                _ => None,
            },
            Class::Imm16 if slot.ty == Type::I16 => Some(Operand::Imm((value as u16 as i16).into())),
            _ => Some(Operand::Imm(value as i32)),
        }
    }
}

/// How many registers a matrix takes whose values have the size that `cbsz` or `blgp` selects: 8, 6 or 4 bits.
pub(in crate::amdgcn) const fn small_dwords(size: u32) -> u8 {
    match size {
        2 | 3 => 6,
        4 => 4,
        _ => 8,
    }
}

/// What the code of a source says that is no literal.
fn source(code: u32, count: u8, gpu: &Gpu) -> Option<Operand> {
    match code {
        256.. => Some(vector(code - 256, count, RegHalf::Whole)),
        128..=208 | 240..=247 => Some(Operand::Inline(code as u8)),
        248 if gpu.generation() >= Gfx::Gfx8 => Some(Operand::Inline(248)),
        _ => scalar(code, count, gpu),
    }
}

fn scalar(code: u32, count: u8, gpu: &Gpu) -> Option<Operand> {
    let reg = regs::scalar_of_code(u8::try_from(code).ok()?, gpu.generation())?;
    let xnack = (Reg::XNACK_MASK.0..=Reg::XNACK_MASK_HI.0).contains(&reg.0);
    (!xnack || gpu.has_xnack_mask()).then(|| Operand::reg(reg, count))
}

/// What the code of a source says that is no literal, if so many registers may stand there.
pub(in crate::amdgcn) fn source_of(code: u32, count: u8, gpu: &Gpu) -> Option<Operand> {
    source(code, count, gpu).filter(|operand| are_registers(operand, gpu))
}

/// Whether a register may stand as a destination: of those that can only be read, the bases and limits as 64 bits, others
/// as 32, all of them as masks.
fn may_be_written(slot: &OperandSlot, reg: Reg) -> bool {
    let base = (Reg::SHARED_BASE.0..=Reg::PRIVATE_LIMIT.0).contains(&reg.0);
    reg.0 < Reg::SHARED_BASE.0
        || reg != Reg::LDS_DIRECT && (slot.ty == Type::Mask || base == (slot.ty.bits() == 64))
}

/// Vector registers from number `n` on.
fn vector(n: u32, dwords: u8, half: RegHalf) -> Operand {
    Operand::Reg { reg: Reg(256 + n as u16), dwords, half }
}

/// Accumulation registers from number `n` on.
fn accumulation(n: u32, dwords: u8) -> Operand {
    Operand::reg(Reg(Reg::AGPR0.0 + n as u16), dwords)
}

/// The instruction that words begin with; `None`: they are none, or end in its midst.
pub fn decode(words: &[u32], gpu: &Gpu) -> Option<SizedInst> {
    let mut inst = Inst::new(0)?;
    decode_into(words, gpu, &mut inst).map(|dwords| SizedInst { inst, dwords })
}

/// As [`decode()`], into an instruction that is there; it is undefined if there is none. Returns how many dwords it takes.
pub fn decode_into(words: &[u32], gpu: &Gpu, inst: &mut Inst) -> Option<u8> {
    decode_with(words, gpu, false, inst)
}

/// Columns in which words are looked up: the GPU's own, then the one that names all half registers. Where bits may mean nothing,
/// that one is first, because it gives a meaning to more of them.
fn columns(gpu: &Gpu, lenient: bool) -> impl Iterator<Item = usize> {
    let (own, halves) = (Some(gpu.column()), gpu.halves_column());
    if lenient { [halves, own] } else { [own, halves] }.into_iter().flatten()
}

fn decode_with(words: &[u32], gpu: &Gpu, lenient: bool, inst: &mut Inst) -> Option<u8> {
    let first = *words.first()?;
    let second = words.get(1).copied().unwrap_or_default();
    columns(gpu, lenient).find_map(|column| {
        tables::layouts_of(first, second, gpu)
            .find_map(|layout| decode_as(words, layout, (gpu, column), lenient, inst))
    })
}

/// Every instruction that words can be read as. There is one at most: tests show it.
pub fn readings(words: &[u32], gpu: &Gpu) -> impl Iterator<Item = SizedInst> {
    let first = words.first().copied();
    let second = words.get(1).copied().unwrap_or_default();
    let layouts = first.map(|first| tables::layouts_of(first, second, gpu));
    layouts.into_iter().flatten().filter_map(move |layout| {
        let mut inst = Inst::new(0)?;
        let dwords =
            columns(gpu, false).find_map(|column| decode_as(words, layout, (gpu, column), false, &mut inst));
        dwords.map(|dwords| SizedInst { inst, dwords })
    })
}

/// As [`decode()`], and also what no assembler makes though hardware does not mind: bits that no operand and no modifier
/// accounts for, fields of sources that an instruction does not have, a literal of 16 bits with something in its upper half,
/// as LLVM writes negative ones. They are in [`Inst::unused`].
pub fn decode_executed(words: &[u32], gpu: &Gpu) -> Option<SizedInst> {
    let mut inst = Inst::new(0)?;
    decode_executed_into(words, gpu, &mut inst).map(|dwords| SizedInst { inst, dwords })
}

/// As [`decode_executed()`], into an instruction that is there; it is undefined if there is none. Returns how many dwords it
/// takes.
pub fn decode_executed_into(words: &[u32], gpu: &Gpu, inst: &mut Inst) -> Option<u8> {
    if let Some(dwords) = decode_with(words, gpu, false, inst) {
        return Some(dwords);
    }
    let dwords = decode_with(words, gpu, true, inst)?;
    // A word that is no instruction is not one with other bits.
    if inst.opcode() == Opcode::v_illegal {
        return None;
    }
    let made = encode(inst, gpu).ok()?;
    if made.as_slice().len() != usize::from(dwords) {
        return None;
    }
    for (at, (word, made)) in words.iter().zip(made.as_slice()).enumerate() {
        match inst.unused.get_mut(at) {
            Some(unused) => *unused = word ^ made,
            None if word == made => {}
            None => return None,
        }
    }
    Some(dwords)
}

/// Whether a literal in a slot has 16 bits. Those of mixed precision have 32: a float, or two of which `op_sel` chooses one.
pub(in crate::amdgcn) fn has_short_literal(opcode: Opcode, slot: &OperandSlot) -> bool {
    slot.ty.bits() == 16 && slot.class != Class::Ssrc32 && !opcode.row().traits.has(Trait::Mix)
}

/// Whether text can say an operand: its scalar registers are all there and begin where a group of that size may; a literal
/// has no bits beyond its type.
fn whole(short: bool, operand: &Operand, gpu: &Gpu) -> bool {
    if let Operand::Literal(value) = operand {
        return !short || value >> 16 == 0;
    }
    are_registers(operand, gpu)
}

/// Whether all registers of an operand are there and begin where so many may.
fn are_registers(operand: &Operand, gpu: &Gpu) -> bool {
    let Operand::Reg { reg, dwords, .. } = *operand else { return true };
    if reg.is_vgpr() || reg.is_agpr() {
        return gpu.has_tuple(reg, dwords);
    }
    if dwords < 2 || reg.0 >= Reg::SHARED_BASE.0 || reg == Reg::NULL {
        return true;
    }
    let aligned = reg != Reg::M0 && reg.index().is_multiple_of(if dwords == 2 { 2 } else { 4 });
    aligned && regs::code_of(Reg(reg.0 + u16::from(dwords) - 1), gpu.generation()).is_some()
}

/// Modifiers of which some bit is always set. The fields of others are those of no operand.
const SET: u64 = 1 << Mod::Ones as u8 | 1 << Mod::Dpp8 as u8;

/// Whether words are a product of matrices with its scales. Their first two dwords are an instruction of their own elsewhere.
fn is_scaled(words: &[u32], gpu: &Gpu) -> bool {
    let Some(layout) = tables::layout(Encoding::MaiScaled, gpu) else { return false };
    let [_, _, third, fourth, ..] = words else { return false };
    (u64::from(*fourth) << 32 | u64::from(*third)) & layout.high_mask == layout.high_value
}

fn decode_as(
    words: &[u32],
    layout: &EncodingLayout,
    (gpu, column): (&Gpu, usize),
    lenient: bool,
    inst: &mut Inst,
) -> Option<u8> {
    let word = |at: u8| if at < layout.dwords { words.get(usize::from(at)).copied() } else { Some(0) };
    let places = [word(0)?, word(1)?, word(2)?, word(3)?];
    let literal = words.get(usize::from(layout.dwords)).copied();
    let high = u64::from(places[3]) << 32 | u64::from(places[2]);
    if high & layout.high_mask != layout.high_value {
        return None;
    }
    let seen = [layout.mask, layout.mask >> 32, layout.high_mask, layout.high_mask >> 32].map(|it| it as u32);
    let mut reader = InstReader { words: places, seen, literal, used_literal: false, layout, gpu, lenient };
    let opcode = reader.take(Field::Op) | reader.take(Field::OpHi) << layout.fields[Field::Op as usize].width;
    let number = tables::variant_in(column, layout.encoding, opcode)?;
    let variant = tables::variants().get(usize::from(number))?;
    let row = tables::rows().get(usize::from(variant.row))?;
    if !gpu.meets(variant.need) || row.opcode == Opcode::v_mfma_ld_scale_b32 && is_scaled(words, gpu) {
        return None;
    }
    inst.clear(number);
    if row.format.is_memory() {
        let more = mem::decode(&mut reader, words, inst)?;
        return Some(layout.dwords + more);
    }
    let (written, implicit) = variant.slots.split_at_checked(usize::from(variant.written))?;
    for (place, slot) in inst.operands.iter_mut().zip(written) {
        let mut operand = reader.operand(slot)?;
        let short = has_short_literal(row.opcode, slot);
        if let Operand::Literal(value) = &mut operand
            && lenient
            && short
        {
            *value &= 0xffff;
        }
        if !whole(short, &operand, gpu) {
            return None;
        }
        *place = operand;
    }
    for slot in implicit.iter().filter(|slot| slot.field != Field::None) {
        let code = regs::code_of(Reg(slot.reg), gpu.generation())?;
        if reader.take(slot.field) != u32::from(code) && !lenient {
            return None;
        }
    }
    for (field, value) in empty_sources(variant, layout, gpu) {
        if reader.take(field) != value && !lenient {
            return None;
        }
    }
    // Most say nothing: then all of their bits are 0.
    let silent = variant.mod_set & SET == 0 && reader.all_seen();
    let mut spread = 0u32;
    let mut field = Field::None;
    for slot in variant.mods.iter().filter(|_| !silent) {
        let mut value = reader.take(slot.field);
        if slot.field == Field::FiCode {
            value = value.checked_sub(1).filter(|fi| *fi < 2)?;
        }
        // Bits of one field may belong to several modifiers in a row.
        if slot.field != field {
            if spread != 0 && !lenient {
                return None;
            }
            spread = value << slot.shift;
            field = slot.field;
        }
        if slot.id == Mod::Ones && spread & slot.mask != slot.mask && !lenient {
            return None;
        }
        if spread & slot.mask != 0 {
            inst.mods.set(slot.id, inst.mods.get(slot.id) | (spread & slot.mask) as i32);
            spread &= !slot.mask;
        }
    }
    if (spread != 0 || !reader.all_seen()) && !lenient {
        return None;
    }
    match variant.encoding {
        Encoding::Exp if !exp_sources(inst) && !lenient => return None,
        Encoding::Vop3 | Encoding::Vop3Dpp | Encoding::Vop3Dpp8 | Encoding::Vinterp => {
            name_halves(inst);
            let named = halves_named(inst);
            if inst.mods.get(Mod::Halves) != named {
                if !lenient {
                    return None;
                }
                inst.mods.set(Mod::Halves, named);
            }
        }
        _ => {}
    }
    text::can_say(inst, gpu).then(|| layout.dwords + u8::from(reader.used_literal))
}

/// Fields of the sources that a VOP3 instruction does not have, with the code that LLVM 23 writes into them from gfx10 on.
pub(in crate::amdgcn) fn empty_sources(
    variant: &Variant,
    layout: &EncodingLayout,
    gpu: &Gpu,
) -> impl Iterator<Item = (Field, u32)> {
    let zero = u32::from(128u8);
    let has = |field: Field| variant.slots.iter().any(|slot| slot.field == field);
    let compares = || tables::rows().get(usize::from(variant.row)).is_some_and(|r| r.traits.has(Trait::Cmpx));
    let sources: &[Field] = match layout.encoding {
        _ if !gpu.llvm23() || gpu.generation() < Gfx::Gfx10 => &[],
        // An attribute lies where the first source is.
        Encoding::Vop3 if has(Field::Attr) => &[Field::Src1, Field::Src2],
        Encoding::Vop3 | Encoding::Vop3p => &[Field::Src0, Field::Src1, Field::Src2],
        Encoding::Vop3Dpp | Encoding::Vop3Dpp8 if compares() => &[Field::Src2],
        _ => &[],
    };
    sources.iter().filter(move |field| !has(**field)).map(move |field| (*field, zero))
}

/// Sources that an export leaves out, and those of halves, of which two are encoded and four written. False if the field of a
/// source that is left out is not 0.
fn exp_sources(inst: &mut Inst) -> bool {
    let [_, a, b, c, d, ..] = inst.operands;
    let sources = if inst.mods.has(Mod::Compr) { [a, a, b, b] } else { [a, b, c, d] };
    let en = inst.mods.get(Mod::En);
    let used = [a, b, c, d].into_iter().enumerate().all(|(at, operand)| {
        let read = if inst.mods.has(Mod::Compr) { en.unbounded_shr(2 * at as u32) & 3 } else { en >> at & 1 };
        read != 0 || operand == vector(0, 1, RegHalf::Whole)
    });
    for (at, (place, source)) in inst.operands.iter_mut().skip(1).zip(sources).enumerate() {
        *place = if en >> at & 1 != 0 { source } else { Operand::Off };
    }
    used
}

/// The bit of `op_sel` that selects the half of the register in a slot.
pub fn half_bit(slot: &OperandSlot) -> u8 {
    if slot.source < 3 { slot.source } else { 3 }
}

/// Names the halves that `op_sel` selects in the registers as well: with DPP, and where all halves are named.
pub(in crate::amdgcn) fn name_halves(inst: &mut Inst) {
    let variant = inst.variant();
    let dpp = matches!(variant.encoding, Encoding::Vop3Dpp | Encoding::Vop3Dpp8);
    let op_sel = inst.mods.get(Mod::OpSel) | inst.mods.get(Mod::Halves);
    for (slot, operand) in variant.slots.iter().zip(&mut inst.operands) {
        let named = matches!(slot.class, Class::VgprNamed | Class::VgprNamedSrc | Class::SrcNamed);
        if let Operand::Reg { half: half @ RegHalf::Low, .. } = operand
            && (dpp || named)
            && op_sel >> half_bit(slot) & 1 != 0
        {
            *half = RegHalf::High;
        }
    }
}

/// The bits of [`Mod::Halves`] by the names of half registers.
fn halves_named(inst: &Inst) -> i32 {
    let variant = inst.variant();
    if !variant.has_mod(Mod::Halves) {
        return 0;
    }
    variant.slots.iter().zip(&inst.operands).fold(0, |bits, (slot, operand)| match operand {
        Operand::Reg { half: RegHalf::High, .. } => bits | 1 << half_bit(slot),
        _ => bits,
    })
}
