//! What a slot makes of an operand as it was written, or why it does not take it.

use super::operand::{OperandSyntax, SignedOperand};
use super::parse::ParseRule;
use super::scan::ExprValue;
use crate::amdgcn::inst::{Operand, RegHalf, dwords};
use crate::amdgcn::model::{Class, Field, Mod, OperandSlot, Trait, Type};
use crate::amdgcn::opcode::Opcode;
use crate::amdgcn::tables::Variant;
use crate::amdgcn::{Gfx, Gpu, Reg, regs};

/// The operand that `written` is in `slot`.
pub(super) fn accept(slot: &OperandSlot, written: &SignedOperand, gpu: &Gpu) -> Result<Operand, ParseRule> {
    match (slot.class, written.kind) {
        (_, OperandSyntax::Special(value)) => Ok(Operand::Imm(value)),
        (_, OperandSyntax::Reg { reg, dwords, half }) => register(slot, reg, dwords, half, gpu),
        (Class::ExpSrc, OperandSyntax::Off) => Ok(Operand::Off),
        (class, OperandSyntax::Value(value)) if class.takes_constants() => {
            let signed = written.neg || written.abs;
            let ty = if class == Class::Ssrc32 { Type::B32 } else { slot.ty };
            match constant(ty, value, signed, gpu)? {
                Operand::Literal(_) if !takes_literals(class) => Err(ParseRule::Literal),
                operand => Ok(operand),
            }
        }
        (Class::Imm32, OperandSyntax::Value(value)) => literal(slot.ty, value, false).map(Operand::Literal),
        _ => Err(ParseRule::Operand),
    }
}

/// The modifier that selects the half of a register, if the register's own field does not.
pub(super) fn half_modifier(class: Class, variant: &Variant) -> Option<Mod> {
    match class {
        Class::VgprSel | Class::SrcSel => Some(Mod::OpSel),
        Class::VgprNamed | Class::VgprNamedSrc | Class::SrcNamed => {
            Some(if variant.has_mod(Mod::Halves) { Mod::Halves } else { Mod::OpSel })
        }
        _ => None,
    }
}

fn takes_literals(class: Class) -> bool {
    !matches!(
        class,
        Class::SrcInline
            | Class::SrcMatrix
            | Class::AccMatrix
            | Class::SrcSdwa
            | Class::SsrcInline
            | Class::Barrier
    )
}

pub(super) fn register(
    slot: &OperandSlot,
    reg: Reg,
    count: u8,
    half: RegHalf,
    gpu: &Gpu,
) -> Result<Operand, ParseRule> {
    if reg.is_agpr() {
        return accumulation(slot, reg, count, half, gpu);
    }
    let vector = reg.is_vgpr();
    let low = reg.0 < Reg::VGPR0.0 + 128;
    if half != RegHalf::Whole && !vector {
        return Err(ParseRule::Operand);
    }
    let fits = match slot.class {
        Class::Vgpr | Class::VgprDual | Class::ExpSrc => vector && half == RegHalf::Whole,
        Class::SrcMatrix => {
            let base = (Reg::SHARED_BASE.0..=Reg::PRIVATE_LIMIT.0).contains(&reg.0);
            (vector || base) && half == RegHalf::Whole
        }
        Class::VgprSrc => (vector && half == RegHalf::Whole) || reg == Reg::LDS_DIRECT,
        Class::AccSrc | Class::AccSmall => vector && half == RegHalf::Whole,
        Class::AccDst => vector && half == RegHalf::Whole && gpu.has_unified_vgprs(),
        Class::AccMatrix if vector => half == RegHalf::Whole && gpu.has_unified_vgprs(),
        // As in LLVM, also special registers that can be read as constants.
        Class::AccMatrix => reg.0 >= Reg::SHARED_BASE.0 && reg != Reg::LDS_DIRECT,
        Class::VgprSel | Class::VgprNamed | Class::VgprNamedSrc => vector,
        Class::VgprLow | Class::VgprLowSrc => vector && low && half == RegHalf::Whole,
        Class::VgprHalf | Class::VgprHalfSrc => vector && low,
        Class::Src | Class::SrcInline | Class::SrcSdwa => half == RegHalf::Whole,
        Class::SrcLow => !vector || (low && half == RegHalf::Whole),
        Class::SrcHalf => !vector || low,
        Class::SrcSel | Class::SrcNamed => true,
        Class::Ssrc | Class::Ssrc32 | Class::SsrcInline | Class::Sreg => !vector && reg != Reg::LDS_DIRECT,
        Class::SsrcLds => !vector,
        Class::Sdst | Class::SdwaSdst => !vector && (reg.0 < Reg::SHARED_BASE.0 || read_only(slot, reg, gpu)),
        Class::SregPair | Class::SregQuad => !vector && reg.0 < 124,
        Class::Barrier => reg == Reg::M0,
        Class::Fixed | Class::FixedOptional => reg.0 == slot.reg,
        _ => false,
    };
    if !fits {
        return Err(ParseRule::Operand);
    }
    let xnack = (Reg::XNACK_MASK.0..=Reg::XNACK_MASK_HI.0).contains(&reg.0);
    if regs::code_of(reg, gpu.generation()).is_none() || (xnack && !gpu.has_xnack_mask()) {
        return Err(ParseRule::NotHere);
    }
    let needed = dwords(slot.ty, gpu);
    let special = (!vector && reg.0 >= 235) || reg == Reg::NULL;
    if count != needed && !special {
        return Err(ParseRule::RegisterWidth);
    }
    let aligned = match needed {
        _ if vector => count < 2 || !gpu.has_unified_vgprs() || reg.index().is_multiple_of(2),
        _ if special => true,
        1 => true,
        2 => reg.index().is_multiple_of(2),
        _ => reg.index().is_multiple_of(4),
    };
    if !aligned {
        return Err(ParseRule::RegisterAlignment);
    }
    let last = reg.0.saturating_add(u16::from(count) - 1);
    if regs::code_of(Reg(last), gpu.generation()).is_none() {
        return Err(ParseRule::NotHere);
    }
    let half = match (slot.class, half) {
        (
            Class::VgprHalf | Class::VgprHalfSrc | Class::VgprSel | Class::VgprNamed | Class::VgprNamedSrc,
            RegHalf::Whole,
        ) => RegHalf::Low,
        (Class::SrcHalf | Class::SrcSel | Class::SrcNamed, RegHalf::Whole) if vector => RegHalf::Low,
        _ => half,
    };
    Ok(Operand::Reg { reg, dwords: needed, half })
}

/// The operand that accumulation registers are in a slot.
fn accumulation(
    slot: &OperandSlot,
    reg: Reg,
    count: u8,
    half: RegHalf,
    gpu: &Gpu,
) -> Result<Operand, ParseRule> {
    if !gpu.has_agprs() {
        return Err(ParseRule::NotHere);
    }
    let takes = matches!(
        slot.class,
        Class::Agpr | Class::AgprSrc | Class::AccDst | Class::AccSrc | Class::AccSmall | Class::AccMatrix
    );
    if !takes || half != RegHalf::Whole {
        return Err(ParseRule::Operand);
    }
    tuple(reg, count, dwords(slot.ty, gpu), gpu)
}

/// The operand that `count` vector or accumulation registers are where so many are needed.
pub(super) fn tuple(reg: Reg, count: u8, needed: u8, gpu: &Gpu) -> Result<Operand, ParseRule> {
    match (count == needed, gpu.has_tuple(reg, needed)) {
        (true, true) => Ok(Operand::reg(reg, needed)),
        (true, false) => Err(ParseRule::RegisterAlignment),
        (false, _) => Err(ParseRule::RegisterWidth),
    }
}

/// Whether a register that can only be read may stand as a destination: if the field has room for its code, or the bits
/// that fit name nothing else.
fn read_only(slot: &OperandSlot, reg: Reg, gpu: &Gpu) -> bool {
    let base = (Reg::SHARED_BASE.0..=Reg::PRIVATE_LIMIT.0).contains(&reg.0);
    let fits = match slot.ty {
        Type::Mask => true,
        ty => base == (ty.bits() == 64),
    };
    let code = regs::code_of(reg, gpu.generation()).filter(|_| fits && reg != Reg::LDS_DIRECT);
    let free = |code: u16| regs::scalar_of_code(code as u8 & 127, gpu.generation()).is_none();
    code.is_some_and(|code| slot.field == Field::Vdst || free(code))
}

/// A number with the signs around it: the highest bit of its type, or of a double if it was written as one.
pub(super) fn with_signs(value: ExprValue, ty: Type, neg: bool, abs: bool) -> ExprValue {
    let bits = if value.float { 64 } else { u32::from(ty.bits().clamp(16, 64)) };
    let sign = i64::MIN.unsigned_abs() >> (64 - bits);
    let mut number = value.value as u64;
    if abs {
        number &= !sign;
    }
    if neg {
        number ^= sign;
    }
    if bits < 64 {
        number &= u64::MAX >> (64 - bits);
    }
    ExprValue { value: number as i64, ..value }
}

/// The code of an inline integer.
fn inline_integer(value: i64) -> Option<u8> {
    match value {
        0..=64 => Some(128 + value as u8),
        -16..=-1 => Some((192 - value) as u8),
        _ => None,
    }
}

/// The doubles that are inline constants, and 1/(2π), by code from 240 on.
const DOUBLES: [u64; 9] = [
    0x3fe0_0000_0000_0000,
    0xbfe0_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x4000_0000_0000_0000,
    0xc000_0000_0000_0000,
    0x4010_0000_0000_0000,
    0xc010_0000_0000_0000,
    0x3fc4_5f30_6dc9_c882,
];

const SINGLES: [u32; 9] = [
    0x3f00_0000,
    0xbf00_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x4000_0000,
    0xc000_0000,
    0x4080_0000,
    0xc080_0000,
    0x3e22_f983,
];

const HALVES: [u16; 9] = [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118];

const BFLOATS: [u16; 9] = [0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x4080, 0xc080, 0x3e22];

/// The code of the inline constant with these bits, if a GPU has it.
fn inline_bits<T: PartialEq>(all: &[T], bits: T, gpu: &Gpu) -> Option<u8> {
    let at = all.iter().position(|b| *b == bits)?;
    (at < 8 || gpu.generation() >= Gfx::Gfx8).then_some(240 + at as u8)
}

/// A double as a half, and whether nothing but precision is lost.
fn to_half(value: f64) -> Option<u16> {
    let bits = value.to_bits();
    let sign = (bits >> 48 & 0x8000) as u16;
    let magnitude = value.abs();
    if magnitude.is_nan() || magnitude.is_infinite() {
        return Some(sign | if magnitude.is_nan() { 0x7e00 } else { 0x7c00 });
    }
    // Scaled to units of the last place of its binade, rounded to even.
    let exponent = ((bits >> 52 & 0x7ff) as i32 - 1023).max(-14);
    let units = (magnitude * 2f64.powi(10 - exponent)).round_ties_even();
    if units >= 2048.0 && exponent == 15 {
        return None;
    }
    // Of what is smaller than any normal number nothing may be lost.
    if magnitude < 2f64.powi(-14) && units != magnitude * 2f64.powi(24) {
        return None;
    }
    let units = units as u32;
    let encoded = if units < 1024 { units } else { ((exponent + 15) as u32 - 1) * 1024 + units };
    (encoded < 0x7c00).then_some(sign | encoded as u16)
}

fn to_single(value: f64) -> Option<u32> {
    let single = value as f32;
    let below = value.abs() < f64::from(f32::MIN_POSITIVE) && f64::from(single) != value;
    let lost = (single.is_infinite() && value.is_finite()) || below;
    (!lost).then_some(single.to_bits())
}

/// A double as a bfloat, rounded to even; what is smaller than any normal number must be one exactly.
fn to_bfloat(value: f64) -> Option<u16> {
    // So the constant is written: as a single, of which the upper half is taken.
    if value == 0.15915494 {
        return Some(BFLOATS[8]);
    }
    let bits = value.to_bits();
    let lost = 52 - 7;
    let rounded = bits.wrapping_add((1 << (lost - 1)) - 1 + (bits >> lost & 1));
    let exact = value.abs() < f64::from(f32::MIN_POSITIVE) || !value.is_finite();
    let single = to_single(if exact { value } else { f64::from_bits(rounded >> lost << lost) })?;
    (single & 0xffff == 0).then_some((single >> 16) as u16)
}

/// Whether a number written out fits a width, as signed or unsigned.
pub(super) fn fits(value: i64, bits: u32) -> bool {
    let top = value >> (bits - 1);
    value as u64 >> bits == 0 || top == 0 || top == -1
}

/// What a number in a source of an opcode means. Of `v_pk_fmac_f16` from gfx11 on, an inline constant of floating point is both of its halves there. What has
/// it in the low half only is a literal. Before gfx11 the upper half is zero, as everywhere else; both are measured
/// (llvm-project 94116). LLVM 19 does not know of it.
pub(super) fn written(opcode: Opcode, value: ExprValue, gpu: &Gpu) -> ExprValue {
    if opcode != Opcode::v_pk_fmac_f16 || gpu.generation() < Gfx::Gfx11 {
        return value;
    }
    let low = value.value as u16;
    let constant = !value.float && !value.literal && HALVES.contains(&low);
    match value.value as u64 >> 16 {
        0 if constant => ExprValue { literal: true, ..value },
        high if constant && high == low.into() => ExprValue { value: low.into(), ..value },
        _ => value,
    }
}

/// A number in a source of some type.
pub(super) fn constant(ty: Type, value: ExprValue, signed: bool, gpu: &Gpu) -> Result<Operand, ParseRule> {
    if let Some(code) = inline(ty, value, gpu).filter(|_| !value.address && !value.literal) {
        return Ok(Operand::Inline(code));
    }
    literal(ty, value, signed).map(Operand::Literal)
}

/// The code of the inline constant that has these 32 bits.
pub(in crate::amdgcn) fn inline_code(value: u32, gpu: &Gpu) -> Option<u8> {
    inline(Type::B32, ExprValue::number(value.into()), gpu)
}

/// Whether the text of a literal is read as that literal: not if it could be an inline constant.
pub(in crate::amdgcn) fn is_literal(opcode: Opcode, slot: &OperandSlot, value: u32, gpu: &Gpu) -> bool {
    if opcode.row().traits.has(Trait::Mix) && value >> 16 != 0 {
        return true;
    }
    let number = written(opcode, ExprValue::number(value.into()), gpu);
    let ty = if slot.class == Class::Ssrc32 { Type::B32 } else { slot.ty };
    !slot.class.takes_constants() || constant(ty, number, false, gpu) == Ok(Operand::Literal(value))
}

/// The code of the inline constant a number is, if it is one. What counts are the bits it has as a value of the type: 0.0 is
/// the integer 0.
fn inline(ty: Type, value: ExprValue, gpu: &Gpu) -> Option<u8> {
    let number = value.value;
    let float = f64::from_bits(number as u64);
    let of_16 =
        |all: &[u16], bits: u16| inline_integer((bits as i16).into()).or_else(|| inline_bits(all, bits, gpu));
    let of_32 = |bits: u32| inline_integer((bits as i32).into()).or_else(|| inline_bits(&SINGLES, bits, gpu));
    let of_64 = |bits: u64| inline_integer(bits as i64).or_else(|| inline_bits(&DOUBLES, bits, gpu));
    match (ty, ty.bits(), value.float) {
        (_, 64, true) if ty != Type::PkF32 => of_64(number as u64),
        // As a literal it would be the high half.
        (Type::F64, _, false) if u32::try_from(number).is_ok() => {
            of_64(number as u64).or_else(|| inline_bits(&DOUBLES, (number as u64) << 32, gpu))
        }
        (_, 64, false) => of_64(number as u64),
        (Type::F16 | Type::PkF16, _, true) => of_16(&HALVES, to_half(float)?),
        (Type::Bf16 | Type::PkBf16, _, true) => of_16(&BFLOATS, to_bfloat(float)?),
        (Type::B16 | Type::I16 | Type::U16, _, true) => {
            to_half(float)?;
            of_32(to_single(float)?)
        }
        (_, _, true) => of_32(to_single(float)?),
        (Type::F16, _, false) => fits(number, 16).then(|| of_16(&HALVES, number as u16))?,
        (Type::Bf16, _, false) => fits(number, 16).then(|| of_16(&BFLOATS, number as u16))?,
        (Type::B16 | Type::I16 | Type::U16, _, false) => inline_integer(number),
        _ if !fits(number, 32) => None,
        (Type::PkF16 | Type::PkBf16, ..) => inline_integer((number as i32).into()).or_else(|| {
            let all = if ty == Type::PkF16 { &HALVES } else { &BFLOATS };
            inline_bits(all, u16::try_from(number as u32).ok()?, gpu)
        }),
        _ => of_32(number as u32),
    }
}

/// The dword that encodes a number as a literal.
fn literal(ty: Type, value: ExprValue, signed: bool) -> Result<u32, ParseRule> {
    let number = value.value;
    let float = f64::from_bits(number as u64);
    match (ty, ty.bits(), value.float) {
        // The high half is encoded.
        (Type::F64, _, true) => Ok((number as u64 >> 32) as u32),
        (_, 64, true) if ty != Type::PkF32 => Err(ParseRule::Number),
        (Type::F16 | Type::PkF16, _, true) => to_half(float).map(u32::from).ok_or(ParseRule::Range),
        (Type::Bf16 | Type::PkBf16, _, true) => to_bfloat(float).map(u32::from).ok_or(ParseRule::Range),
        // It must be one of 16 bits, but those of 32 are encoded.
        (Type::B16 | Type::I16 | Type::U16, _, true) => {
            to_half(float).and_then(|_| to_single(float)).ok_or(ParseRule::Range)
        }
        (_, _, true) => to_single(float).ok_or(ParseRule::Range),
        // A sign would change another value than the one written.
        (Type::F64, _, false) if signed => Err(ParseRule::Number),
        (_, 16, false) => {
            if fits(number, 16) {
                Ok(number as u32 & 0xffff)
            } else {
                Err(ParseRule::Range)
            }
        }
        _ => {
            if fits(number, 32) {
                Ok(number as u32)
            } else {
                Err(ParseRule::Range)
            }
        }
    }
}
