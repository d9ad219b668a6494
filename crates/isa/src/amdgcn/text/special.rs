//! Operands with a syntax of their own: immediates, branch targets, attributes, targets of exports.
//!
//! Messages, hardware registers and counters are in [`super::named`]. Facts: what LLVM 19 accepts and prints, tried for
//! every value on every generation.

use super::line::LineBuf;
use super::operand::{OperandSyntax, SignedOperand};
use super::parse::{ParseError, ParseRule};
use super::scan::LineScan;
use super::{Symbols, named};
use crate::amdgcn::model::{Class, OperandSlot, Type};
use crate::amdgcn::{Gfx, Gpu};

/// Whether operands of this class are read here.
pub(super) fn is_special(class: Class) -> bool {
    matches!(
        class,
        Class::Imm16
            | Class::Imm16Optional
            | Class::Label
            | Class::Hwreg
            | Class::SendMsg
            | Class::SendMsgRtn
            | Class::Waitcnt
            | Class::Depctr
            | Class::WaitEvent
            | Class::DelayAlu
            | Class::GprIdx
            | Class::Version
            | Class::Attr
            | Class::InterpSlot
            | Class::ExpTarget
    )
}

/// Channels of an attribute.
const CHANNELS: &[u8; 4] = b"xyzw";

/// Attributes are numbered up to this.
const LAST_ATTRIBUTE: i32 = 32;

/// Vertices of `v_interp_mov_f32`, by value.
const SLOTS: &[&str] = &["p10", "p20", "p0"];

/// Export targets: name, first number, how many, since, until. Without a count: the name is all.
const TARGETS: &[(&str, i32, i32, Gfx, Gfx)] = &[
    ("mrtz", 8, 0, Gfx::Gfx6, Gfx::Gfx12),
    ("mrt", 0, 8, Gfx::Gfx6, Gfx::Gfx12),
    ("null", 9, 0, Gfx::Gfx6, Gfx::Gfx10_3),
    ("pos", 12, 4, Gfx::Gfx6, Gfx::Gfx950),
    ("pos", 12, 5, Gfx::Gfx10, Gfx::Gfx12),
    ("prim", 20, 0, Gfx::Gfx10, Gfx::Gfx12),
    ("dual_src_blend", 21, 2, Gfx::Gfx11, Gfx::Gfx12),
    ("param", 32, 32, Gfx::Gfx6, Gfx::Gfx10_3),
];

/// Reads an operand of a special class.
pub(super) fn parse(
    scan: &mut LineScan<'_>,
    slot: &OperandSlot,
    gpu: &Gpu,
    symbols: &dyn Symbols,
) -> Result<SignedOperand, ParseError> {
    let at = scan.at();
    let value = match slot.class {
        Class::Imm16 | Class::Imm16Optional => immediate(scan, slot, symbols)?,
        Class::Label => label(scan, symbols)?,
        Class::Hwreg => named::hwreg(scan, gpu, symbols)?,
        Class::SendMsg | Class::SendMsgRtn => named::sendmsg(scan, slot, gpu, symbols)?,
        Class::Waitcnt => named::waitcnt(scan, gpu, symbols)?,
        Class::Depctr => named::depctr(scan, gpu, symbols)?,
        Class::WaitEvent if scan.peek() == b'{' => named::wait_event(scan, gpu, symbols)?,
        Class::WaitEvent => immediate(scan, slot, symbols)?,
        Class::DelayAlu => named::delay_alu(scan, symbols)?,
        Class::GprIdx => named::gpr_idx(scan, slot, symbols)?,
        Class::Version => named::version(scan, symbols)?,
        Class::Attr => attribute(scan)?,
        Class::InterpSlot => {
            let name = scan.name();
            scan.space();
            let found = SLOTS.iter().position(|slot| *slot == name);
            found.ok_or_else(|| scan.error(at, ParseRule::Operand))? as i32
        }
        _ => target(scan, gpu)?,
    };
    Ok(SignedOperand { kind: OperandSyntax::Special(value), at, ..SignedOperand::NONE })
}

fn immediate(scan: &mut LineScan<'_>, slot: &OperandSlot, symbols: &dyn Symbols) -> Result<i32, ParseError> {
    let at = scan.at();
    let value = scan.expression(symbols)?;
    let least = if slot.ty == Type::U16 { 0 } else { -0x8000 };
    if value.float || !(least..=0xffff).contains(&value.value) {
        return Err(scan.error(at, ParseRule::Range));
    }
    Ok(value.value as i32)
}

/// A distance in dwords, or the address of a symbol.
fn label(scan: &mut LineScan<'_>, symbols: &dyn Symbols) -> Result<i32, ParseError> {
    let at = scan.at();
    let value = scan.expression(symbols)?;
    if value.float {
        return Err(scan.error(at, ParseRule::Number));
    }
    if !value.address {
        let fits = (-0x8000..=0xffff).contains(&value.value);
        return if fits { Ok(i32::from(value.value as i16)) } else { Err(scan.error(at, ParseRule::Range)) };
    }
    let distance = value.value.wrapping_sub(symbols.here()).wrapping_sub(4);
    match i16::try_from(distance >> 2) {
        Ok(dwords) if distance & 3 == 0 => Ok(dwords.into()),
        _ => Err(scan.error(at, ParseRule::Range)),
    }
}

/// `attr3.x`.
fn attribute(scan: &mut LineScan<'_>) -> Result<i32, ParseError> {
    let at = scan.at();
    let name = scan.name();
    scan.space();
    let parts = name.strip_prefix("attr").and_then(|rest| rest.split_once('.'));
    let value = parts.and_then(|(number, channel)| {
        let channel = CHANNELS.iter().position(|c| channel.as_bytes() == [*c])? as i32;
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let number: i32 = number.parse().ok().filter(|_| digits)?;
        (number <= LAST_ATTRIBUTE).then_some(number << 2 | channel)
    });
    value.ok_or_else(|| scan.error(at, ParseRule::Attribute))
}

fn target(scan: &mut LineScan<'_>, gpu: &Gpu) -> Result<i32, ParseError> {
    let at = scan.at();
    let name = scan.name();
    scan.space();
    let generation = gpu.generation();
    let found = TARGETS.iter().filter(|(.., since, until)| (*since..=*until).contains(&generation)).find_map(
        |(prefix, first, count, ..)| {
            let rest = name.strip_prefix(prefix)?;
            if *count == 0 {
                return rest.is_empty().then_some(*first);
            }
            let plain = !rest.is_empty() && (rest.len() == 1 || !rest.starts_with('0'));
            let number: i32 =
                rest.parse().ok().filter(|_| plain && rest.bytes().all(|b| b.is_ascii_digit()))?;
            (number < *count).then_some(first + number)
        },
    );
    found.ok_or_else(|| scan.error(at, ParseRule::Target))
}

/// Whether text has a name for the value of a field.
pub(super) fn has_name(slot: &OperandSlot, value: i32, gpu: &Gpu) -> bool {
    match slot.class {
        Class::Attr => value >> 2 <= LAST_ATTRIBUTE,
        Class::InterpSlot => (value as usize) < SLOTS.len(),
        Class::GprIdx => value <= 15,
        Class::ExpTarget => target_of(value, gpu).is_some(),
        _ => true,
    }
}

/// Appends the value of a field as an operand.
pub(in crate::amdgcn) fn write(slot: &OperandSlot, value: i32, gpu: &Gpu, out: &mut LineBuf) {
    match slot.class {
        Class::Imm16 if slot.ty == Type::B16 => number(value, out),
        Class::Imm16 => out.hex(u64::from(value as u16)),
        Class::Label => out.decimal((value as u16).into()),
        Class::Hwreg => named::write_hwreg(value, gpu, out),
        Class::SendMsg | Class::SendMsgRtn => named::write_sendmsg(value, gpu, out),
        Class::Waitcnt => named::write_waitcnt(value, gpu, out),
        Class::Depctr => named::write_depctr(value, gpu, out),
        Class::WaitEvent => named::write_wait_event(value, gpu, out),
        Class::DelayAlu => named::write_delay_alu(value, out),
        Class::GprIdx => named::write_gpr_idx(value, out),
        Class::Version => named::write_version(value, out),
        Class::Attr => {
            out.push_str("attr");
            out.decimal((value >> 2).into());
            out.push(b'.');
            out.push(CHANNELS[value as usize & 3]);
        }
        Class::InterpSlot => match SLOTS.get(value as usize) {
            Some(name) => out.push_str(name),
            None => {
                out.push_str("invalid_param_");
                out.decimal(value.into());
            }
        },
        Class::ExpTarget => write_target(value, gpu, out),
        _ => out.decimal(value.into()),
    }
}

/// A number of 16 bits: in decimal if it could be an inline constant.
fn number(value: i32, out: &mut LineBuf) {
    match value as u16 {
        small @ 0..=64 => out.decimal(small.into()),
        other => out.hex(other.into()),
    }
}

/// The row of an export target.
fn target_of(value: i32, gpu: &Gpu) -> Option<&'static (&'static str, i32, i32, Gfx, Gfx)> {
    let generation = gpu.generation();
    TARGETS.iter().find(|(_, first, count, since, until)| {
        (*since..=*until).contains(&generation) && (*first..first + (*count).max(1)).contains(&value)
    })
}

/// The name of an export target.
pub fn export_target(value: i32, gpu: &Gpu) -> Option<String> {
    let (name, first, count, ..) = target_of(value, gpu)?;
    Some(if *count > 0 { format!("{name}{}", value - first) } else { (*name).to_owned() })
}

fn write_target(value: i32, gpu: &Gpu, out: &mut LineBuf) {
    match target_of(value, gpu) {
        Some((name, first, count, ..)) => {
            out.push_str(name);
            if *count > 0 {
                out.decimal((value - first).into());
            }
        }
        None => {
            out.push_str("invalid_target_");
            out.decimal(value.into());
        }
    }
}
