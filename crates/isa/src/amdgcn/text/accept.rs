//! What a slot makes of an operand as it was written, or why it does not take it.

use super::operand::{Kind, Written};
use super::parse::Rule;
use super::scan::Value;
use crate::amdgcn::inst::{Half, Operand, dwords};
use crate::amdgcn::model::{Class, Slot, Type};
use crate::amdgcn::{Gen, Gpu, Reg, regs};

/// The operand that `written` is in `slot`.
pub(super) fn accept(slot: &Slot, written: &Written, gpu: &Gpu) -> Result<Operand, Rule> {
    match (slot.class, written.kind) {
        (_, Kind::Special(value)) => Ok(Operand::Imm(value)),
        (_, Kind::Reg { reg, dwords, half }) => register(slot, reg, dwords, half, gpu),
        (Class::ExpSrc, Kind::Off) => Ok(Operand::Off),
        (class, Kind::Value(value)) if takes_constants(class) => {
            let signed = written.neg || written.abs;
            let ty = if class == Class::Ssrc32 { Type::B32 } else { slot.ty };
            match constant(ty, value, signed, gpu)? {
                Operand::Literal(_) if !takes_literals(class) => Err(Rule::Literal),
                operand => Ok(operand),
            }
        }
        (Class::Imm32, Kind::Value(value)) => literal(slot.ty, value, false).map(Operand::Literal),
        _ => Err(Rule::Operand),
    }
}

/// Whether which half of a register it is stands in `op_sel`.
pub(super) fn half_is_selected(class: Class) -> bool {
    matches!(class, Class::VgprSel | Class::SrcSel)
}

fn takes_constants(class: Class) -> bool {
    matches!(
        class,
        Class::Src
            | Class::SrcLow
            | Class::SrcHalf
            | Class::SrcSel
            | Class::SrcInline
            | Class::SrcMatrix
            | Class::SrcSdwa
            | Class::Ssrc
            | Class::Ssrc32
            | Class::SsrcInline
            | Class::Barrier
    )
}

fn takes_literals(class: Class) -> bool {
    !matches!(
        class,
        Class::SrcInline | Class::SrcMatrix | Class::SrcSdwa | Class::SsrcInline | Class::Barrier
    )
}

pub(super) fn register(slot: &Slot, reg: Reg, count: u8, half: Half, gpu: &Gpu) -> Result<Operand, Rule> {
    let vector = reg.is_vgpr();
    let low = reg.0 < Reg::VGPR0.0 + 128;
    let fits = match slot.class {
        Class::Vgpr | Class::VgprDual | Class::ExpSrc | Class::SrcMatrix => vector && half == Half::Whole,
        Class::VgprSrc => (vector && half == Half::Whole) || reg == Reg::LDS_DIRECT,
        Class::VgprSel => vector,
        Class::VgprLow | Class::VgprLowSrc => vector && low && half == Half::Whole,
        Class::VgprHalf | Class::VgprHalfSrc => vector && low,
        Class::Src | Class::SrcInline | Class::SrcSdwa => half == Half::Whole,
        Class::SrcLow => !vector || (low && half == Half::Whole),
        Class::SrcHalf => !vector || low,
        Class::SrcSel => true,
        Class::Ssrc | Class::Ssrc32 | Class::SsrcInline | Class::Sreg => !vector && reg != Reg::LDS_DIRECT,
        Class::Sdst | Class::SdwaSdst => !vector && reg.0 < 235,
        Class::SregPair | Class::SregQuad => !vector && reg.0 < 124,
        Class::Barrier => reg == Reg::M0,
        Class::Fixed => reg.0 == slot.reg,
        _ => false,
    };
    if !fits {
        return Err(Rule::Operand);
    }
    if regs::code_of(reg, gpu.generation()).is_none() {
        return Err(Rule::NotHere);
    }
    let needed = dwords(slot.ty, gpu);
    let special = (!vector && reg.0 >= 235) || reg == Reg::NULL;
    if count != needed && !special {
        return Err(Rule::RegisterWidth);
    }
    let aligned = match needed {
        _ if vector || special => true,
        1 => true,
        2 => reg.index().is_multiple_of(2),
        _ => reg.index().is_multiple_of(4),
    };
    if !aligned {
        return Err(Rule::RegisterAlignment);
    }
    let last = reg.0.saturating_add(u16::from(count) - 1);
    if regs::code_of(Reg(last), gpu.generation()).is_none() {
        return Err(Rule::NotHere);
    }
    let half = match (slot.class, half) {
        (Class::VgprHalf | Class::VgprHalfSrc | Class::VgprSel, Half::Whole) => Half::Low,
        (Class::SrcHalf | Class::SrcSel, Half::Whole) if vector => Half::Low,
        _ => half,
    };
    Ok(Operand::Reg { reg, dwords: needed, half })
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
    (at < 8 || gpu.generation() >= Gen::Gfx8).then_some(240 + at as u8)
}

/// Whether a dword is an inline constant of floating point in a source of some type.
pub(in crate::amdgcn) fn is_inline_float(value: u32) -> bool {
    SINGLES.contains(&value)
        || u16::try_from(value).is_ok_and(|value| HALVES.contains(&value) || BFLOATS.contains(&value))
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
    if magnitude != 0.0 && units == 0.0 {
        return None;
    }
    let units = units as u32;
    let encoded = if units < 1024 { units } else { ((exponent + 15) as u32 - 1) * 1024 + units };
    (encoded < 0x7c00).then_some(sign | encoded as u16)
}

fn to_single(value: f64) -> Option<u32> {
    let single = value as f32;
    let lost = (single.is_infinite() && value.is_finite()) || (single == 0.0 && value != 0.0);
    (!lost).then_some(single.to_bits())
}

/// Whether a number written out fits a width, as signed or unsigned.
fn fits(value: i64, bits: u32) -> bool {
    let top = value >> (bits - 1);
    value as u64 >> bits == 0 || top == 0 || top == -1
}

/// A number in a source of some type.
pub(super) fn constant(ty: Type, value: Value, signed: bool, gpu: &Gpu) -> Result<Operand, Rule> {
    if let Some(code) = inline(ty, value, gpu).filter(|_| !value.address) {
        return Ok(Operand::Inline(code));
    }
    literal(ty, value, signed).map(Operand::Literal)
}

/// The code of the inline constant a number is, if it is one.
fn inline(ty: Type, value: Value, gpu: &Gpu) -> Option<u8> {
    let number = value.value;
    let float = f64::from_bits(number as u64);
    match (ty, ty.bits(), value.float) {
        (_, 64, true) if ty != Type::PkF32 => inline_bits(&DOUBLES, number as u64, gpu),
        (_, 64, false) => inline_integer(number).or_else(|| inline_bits(&DOUBLES, number as u64, gpu)),
        (Type::F16 | Type::PkF16, _, true) => inline_bits(&HALVES, to_half(float)?, gpu),
        (Type::Bf16 | Type::PkBf16, _, true) => {
            let single = to_single(float)?;
            (single & 0xffff == 0).then(|| inline_bits(&BFLOATS, (single >> 16) as u16, gpu))?
        }
        (Type::B16 | Type::I16 | Type::U16, _, true) => None,
        (_, _, true) => inline_bits(&SINGLES, to_single(float)?, gpu),
        (Type::F16 | Type::PkF16, _, false) => {
            fits(number, 16).then_some(())?;
            inline_integer((number as i16).into()).or_else(|| inline_bits(&HALVES, number as u16, gpu))
        }
        (Type::Bf16 | Type::PkBf16, _, false) => {
            fits(number, 16).then_some(())?;
            inline_integer((number as i16).into()).or_else(|| inline_bits(&BFLOATS, number as u16, gpu))
        }
        (Type::B16 | Type::I16 | Type::U16, _, false) => inline_integer(number),
        (Type::PkB16 | Type::PkI16 | Type::PkU16, _, false) => {
            fits(number, 32).then_some(())?;
            inline_integer((number as i32).into())
        }
        (_, _, false) => {
            fits(number, 32).then_some(())?;
            inline_integer((number as i32).into()).or_else(|| inline_bits(&SINGLES, number as u32, gpu))
        }
    }
}

/// The dword that encodes a number as a literal.
fn literal(ty: Type, value: Value, signed: bool) -> Result<u32, Rule> {
    let number = value.value;
    let float = f64::from_bits(number as u64);
    match (ty, ty.bits(), value.float) {
        // The high half is encoded.
        (Type::F64, _, true) => Ok((number as u64 >> 32) as u32),
        (_, 64, true) if ty != Type::PkF32 => Err(Rule::Number),
        (Type::F16 | Type::PkF16 | Type::B16 | Type::I16 | Type::U16, _, true) => {
            to_half(float).map(u32::from).ok_or(Rule::Range)
        }
        (Type::Bf16 | Type::PkBf16, _, true) => to_single(float).map(|s| s >> 16).ok_or(Rule::Range),
        (_, _, true) => to_single(float).ok_or(Rule::Range),
        // A sign would change another value than the one written.
        (Type::F64, _, false) if signed => Err(Rule::Number),
        (_, 16, false) => {
            if fits(number, 16) {
                Ok(number as u32 & 0xffff)
            } else {
                Err(Rule::Range)
            }
        }
        _ => {
            if fits(number, 32) {
                Ok(number as u32)
            } else {
                Err(Rule::Range)
            }
        }
    }
}
