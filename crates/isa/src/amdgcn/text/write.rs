//! From instruction to text. Appends to one string; allocates nothing else.

use super::{mem_write, modifiers, special};
use crate::amdgcn::inst::{Half, Inst, Mods, Operand};
use crate::amdgcn::model::{Class, Field, Form, Format, Mod, Slot, Type};
use crate::amdgcn::{Gen, Gpu, Reg};

/// Digits of the numbers below 1000, three each.
static DIGITS: [[u8; 3]; 1000] = {
    let mut digits = [[0; 3]; 1000];
    let mut n = 0;
    while n < 1000 {
        digits[n] = [b'0' + (n / 100) as u8, b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    digits
};

/// The numbers below 1000 as text.
static NUMBERS: [&str; 1000] = {
    let mut numbers = [""; 1000];
    let mut n = 0;
    while n < 1000 {
        let (_, digits) = DIGITS[n].split_at(if n < 10 {
            2
        } else if n < 100 {
            1
        } else {
            0
        });
        numbers[n] = match std::str::from_utf8(digits) {
            Ok(number) => number,
            Err(_) => panic!("digits are text"),
        };
        n += 1;
    }
    numbers
};

/// Appends a number in decimal.
pub(super) fn decimal(value: i64, out: &mut String) {
    if let Some(number) = usize::try_from(value).ok().and_then(|value| NUMBERS.get(value)) {
        return out.push_str(number);
    }
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push('-');
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// Appends a number in hexadecimal with `0x`.
pub(super) fn hex(value: u64, out: &mut String) {
    let nibbles = (64 - (value | 1).leading_zeros()).div_ceil(4) as usize;
    let mut text = *b"0x0000000000000000";
    for (n, digit) in text[2..2 + nibbles].iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(value >> (4 * n)) as usize & 15];
    }
    out.push_str(std::str::from_utf8(&text[..2 + nibbles]).unwrap_or_default());
}

/// Appends a register, or several from it on.
pub(super) fn register(reg: Reg, dwords: u8, half: Half, out: &mut String) {
    let prefix = if reg.is_vgpr() {
        "v"
    } else if reg.is_sgpr() {
        "s"
    } else if reg.is_ttmp() {
        "ttmp"
    } else {
        let name = reg.special_name().unwrap_or("?");
        out.push_str(if dwords > 1 { name.strip_suffix("_lo").unwrap_or(name) } else { name });
        return;
    };
    out.push_str(prefix);
    let index = i64::from(reg.index());
    if dwords > 1 {
        out.push('[');
        decimal(index, out);
        out.push(':');
        decimal(index + i64::from(dwords) - 1, out);
        out.push(']');
    } else {
        decimal(index, out);
    }
    match half {
        Half::Whole => {}
        Half::Low => out.push_str(".l"),
        Half::High => out.push_str(".h"),
    }
}

/// Appends an inline constant as a slot shows it.
fn constant(slot: &Slot, code: u8, out: &mut String) {
    match (slot.ty, code) {
        (Type::F64 | Type::B64 | Type::I64 | Type::U64, 248) => out.push_str("0.15915494309189532"),
        _ => inline(code, out),
    }
}

/// Appends an inline constant.
pub(super) fn inline(code: u8, out: &mut String) {
    match code {
        128..=192 => decimal(i64::from(code) - 128, out),
        193..=208 => decimal(192 - i64::from(code), out),
        _ => out.push_str(match code {
            240 => "0.5",
            241 => "-0.5",
            242 => "1.0",
            243 => "-1.0",
            244 => "2.0",
            245 => "-2.0",
            246 => "4.0",
            247 => "-4.0",
            _ => "0.15915494",
        }),
    }
}

fn operand(slot: &Slot, operand: Operand, gpu: &Gpu, out: &mut String) {
    match operand {
        Operand::None => {}
        Operand::Reg { reg, dwords, half } => register(reg, dwords, half, out),
        Operand::Inline(code) => constant(slot, code, out),
        Operand::Literal(value) if slot.ty.bits() == 16 && slot.class != Class::Ssrc32 => {
            hex((value & 0xffff).into(), out)
        }
        Operand::Literal(value) => hex(value.into(), out),
        Operand::Off => out.push_str("off"),
        Operand::Imm(value) => special::write(slot, value, gpu, out),
        Operand::List(_) => {}
    }
}

/// What LLVM appends to the mnemonic. gfx6 and gfx7 have no disassembler to follow: there a suffix is written where
/// the text would otherwise be another encoding.
fn suffix(inst: &Inst, gpu: &Gpu) -> &'static str {
    let variant = inst.variant();
    let compares = inst.row().format == Format::Vopc;
    let generation = gpu.generation();
    if variant.written == 0 {
        return match variant.form {
            Form::E64 => "_e64",
            Form::Sdwa => "_sdwa",
            _ => "",
        };
    }
    match variant.form {
        Form::Native => "",
        Form::E32 if generation <= Gen::Gfx7 || variant.only_short => "",
        Form::E32 => "_e32",
        Form::E64 if generation <= Gen::Gfx7 && !is_short(inst) => "",
        Form::E64 => "_e64",
        Form::Sdwa if compares && generation == Gen::Gfx8 => "",
        Form::Sdwa => "_sdwa",
        Form::Dpp | Form::Dpp8 if compares => "",
        Form::Dpp | Form::Dpp8 => "_dpp",
        Form::E64Dpp | Form::E64Dpp8 => "_e64_dpp",
    }
}

/// Whether the short form could say the same, or something of the same text: it takes signs of constants.
fn is_short(inst: &Inst) -> bool {
    let mut mods = inst.mods;
    for (slot, operand) in inst.written().filter(|(slot, _)| slot.source < 3) {
        if matches!(operand, Operand::Inline(_)) {
            for id in [Mod::Neg, Mod::Abs] {
                mods.set(id, mods.get(id) & !(1 << slot.source));
            }
        }
    }
    mods == Mods::default()
        && inst.written().all(|(slot, operand)| match (slot.field, operand) {
            (Field::Src1, Operand::Reg { reg, .. }) => reg.is_vgpr(),
            (Field::Src1, _) => false,
            (_, Operand::Reg { reg, .. }) if matches!(slot.class, Class::Sdst | Class::Sreg) => {
                reg == Reg::VCC
            }
            _ => true,
        })
}

/// Appends the text of an instruction.
pub fn write(inst: &Inst, gpu: &Gpu, out: &mut String) {
    let variant = inst.variant();
    out.push_str(variant.name);
    if inst.row().format.is_memory() {
        mem_write::write(inst, gpu, out);
        return;
    }
    out.push_str(suffix(inst, gpu));
    let mut separator = " ";
    for (at, (slot, value)) in (0..).zip(inst.written()) {
        if slot.class == Class::Imm16Optional && value == Operand::Imm(0) {
            continue;
        }
        match variant.second {
            Some((_, name, first)) if first == at => {
                out.push_str(" :: ");
                out.push_str(name);
                out.push(' ');
            }
            _ => out.push_str(separator),
        }
        separator = if slot.class == Class::ExpTarget { " " } else { ", " };
        let source = |id: Mod| slot.source < 3 && inst.mods.get(id) >> slot.source & 1 != 0;
        let (neg, abs, sext) = (source(Mod::Neg), source(Mod::Abs), source(Mod::Sext));
        if sext {
            out.push_str("sext(");
        }
        // A minus before a number would be the number's.
        let constant = neg && !abs && matches!(value, Operand::Inline(_) | Operand::Literal(_));
        if neg {
            out.push_str(if constant { "neg(" } else { "-" });
        }
        if abs {
            out.push('|');
        }
        operand(slot, value, gpu, out);
        if abs {
            out.push('|');
        }
        if constant || sext {
            out.push(')');
        }
    }
    modifiers::write(inst, out);
}
