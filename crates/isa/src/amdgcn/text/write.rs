//! From instruction to text. Appends to one line; allocates nothing else.

use super::line::LineBuf;
use super::parse::UNUSED;
use super::{accept, mem_write, modifiers, special};
use crate::amdgcn::inst::{Inst, Mods, Operand, RegHalf};
use crate::amdgcn::model::{Class, Field, Form, Format, Mod, OperandSlot, Type};
use crate::amdgcn::opcode::Opcode;
use crate::amdgcn::tables::Variant;
use crate::amdgcn::{Gfx, Gpu, Reg, codec};

/// Names of registers, of those that have few letters: the letters, and how many they are.
static NAMES: [[u8; 8]; Reg::COUNT as usize] = {
    let mut names = [[0; 8]; Reg::COUNT as usize];
    let mut reg = 0;
    while reg < names.len() {
        let number = Reg(reg as u16);
        let prefix: &[u8] = match () {
            () if number.is_vgpr() => b"v",
            () if number.is_agpr() => b"a",
            () if number.is_sgpr() => b"s",
            () if number.is_ttmp() => b"ttmp",
            () => b"",
        };
        if !prefix.is_empty() {
            let mut at = 0;
            while at < prefix.len() {
                names[reg][at] = prefix[at];
                at += 1;
            }
            let (index, mut step) = (number.index(), 100);
            while step > 0 {
                if index >= step || step == 1 {
                    names[reg][at] = b'0' + (index / step % 10) as u8;
                    at += 1;
                }
                step /= 10;
            }
            names[reg][7] = at as u8;
        }
        reg += 1;
    }
    names
};

/// Appends a register, or several from it on.
#[inline]
pub(in crate::amdgcn) fn register(reg: Reg, dwords: u8, half: RegHalf, out: &mut LineBuf) {
    match NAMES.get(usize::from(reg.0)) {
        Some(name) if name[7] != 0 && dwords < 2 => out.start_of(name, name[7].into()),
        _ => return registers(reg, dwords, half, out),
    }
    match half {
        RegHalf::Whole => {}
        RegHalf::Low => out.push_str(".l"),
        RegHalf::High => out.push_str(".h"),
    }
}

/// Appends several registers, or one with a name of its own.
fn registers(reg: Reg, dwords: u8, half: RegHalf, out: &mut LineBuf) {
    if reg.is_sgpr() && reg.0 + u16::from(dwords) > Reg::VCC.0 {
        // Numbered registers and the mask after them.
        for at in 0..dwords.into() {
            out.push(if at == 0 { b'[' } else { b',' });
            register(Reg(reg.0 + at), 1, RegHalf::Whole, out);
        }
        return out.push(b']');
    }
    if reg.is_vgpr() {
        out.push(b'v');
    } else if reg.is_agpr() {
        out.push(b'a');
    } else if reg.is_sgpr() {
        out.push(b's');
    } else if reg.is_ttmp() {
        out.push_str("ttmp");
    } else {
        return match reg {
            Reg::VCC if dwords > 1 => out.push_str("vcc"),
            Reg::EXEC if dwords > 1 => out.push_str("exec"),
            Reg::VCC => out.push_str("vcc_lo"),
            Reg::M0 => out.push_str("m0"),
            _ => {
                let name = reg.special_name().unwrap_or("?");
                out.push_str(if dwords > 1 { name.strip_suffix("_lo").unwrap_or(name) } else { name });
            }
        };
    }
    let index = i64::from(reg.index());
    if dwords > 1 {
        out.push(b'[');
        out.decimal(index);
        out.push(b':');
        out.decimal(index + i64::from(dwords) - 1);
        out.push(b']');
    } else {
        out.decimal(index);
    }
    match half {
        RegHalf::Whole => {}
        RegHalf::Low => out.push_str(".l"),
        RegHalf::High => out.push_str(".h"),
    }
}

/// Appends an inline constant as a slot shows it.
fn constant(slot: &OperandSlot, code: u8, out: &mut LineBuf) {
    match (slot.ty, code) {
        (Type::F64 | Type::Pk4F64 | Type::B64 | Type::I64 | Type::U64, 248) => {
            out.push_str("0.15915494309189532")
        }
        _ => inline(code, out),
    }
}

/// Appends an inline constant.
pub(in crate::amdgcn) fn inline(code: u8, out: &mut LineBuf) {
    match code {
        128..=192 => out.decimal(i64::from(code) - 128),
        193..=208 => out.decimal(192 - i64::from(code)),
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

fn operand(opcode: Opcode, slot: &OperandSlot, operand: Operand, gpu: &Gpu, out: &mut LineBuf) {
    match operand {
        Operand::None => {}
        Operand::Reg { reg, dwords, half } => register(reg, dwords, half, out),
        Operand::Inline(code) => constant(slot, code, out),
        // In LLVM 23's text a value that is set is a constant where it could be one, and a source that could be one is said to be none.
        Operand::Literal(value) if gpu.llvm23() && slot.class == Class::Imm32 && slot.ty == Type::B32 => {
            match accept::inline_code(value, gpu) {
                Some(code) => inline(code, out),
                None => out.hex(value.into()),
            }
        }
        Operand::Literal(value) if gpu.llvm23() && !accept::is_literal(opcode, slot, value, gpu) => {
            out.push_str("lit(");
            out.hex(value.into());
            out.push(b')');
        }
        Operand::Literal(value) if codec::has_short_literal(opcode, slot) => out.hex((value & 0xffff).into()),
        Operand::Literal(value) => out.hex(value.into()),
        Operand::Off => out.push_str("off"),
        Operand::Imm(value) => special::write(slot, value, gpu, out),
        Operand::List(_) => {}
    }
}

/// `neg_lo` of a dot product whose first two sources are signed.
pub(super) const BOTH_SIGNED: i32 = 3;

/// The name that LLVM 23 has for a dot product of sources with and without signs if both have them: that of earlier GPUs.
pub(in crate::amdgcn) fn signed_dot(opcode: Opcode) -> Option<&'static str> {
    match opcode {
        Opcode::v_dot4_i32_iu8 => Some("v_dot4_i32_i8"),
        Opcode::v_dot8_i32_iu4 => Some("v_dot8_i32_i4"),
        _ => None,
    }
}

/// What LLVM appends to the mnemonic. gfx6 and gfx7 have no disassembler to follow: there a suffix is written where
/// the text would otherwise be another encoding.
fn suffix(inst: &Inst, gpu: &Gpu) -> &'static str {
    let (variant, format) = (inst.variant(), inst.row().format);
    let short = variant.form == Form::E64 && gpu.generation() <= Gfx::Gfx7 && is_short(inst);
    suffix_of(variant, format, gpu, short)
}

/// As [`suffix()`], of what is short or not.
pub(in crate::amdgcn) fn suffix_of(
    variant: &Variant,
    format: Format,
    gpu: &Gpu,
    short: bool,
) -> &'static str {
    let compares = format == Format::Vopc;
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
        Form::E32 if generation <= Gfx::Gfx7 || variant.only_short => "",
        Form::E32 => "_e32",
        Form::E64 if generation <= Gfx::Gfx7 && !short => "",
        Form::E64 => "_e64",
        Form::Sdwa if compares && generation == Gfx::Gfx8 => "",
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
        // As a value of 64 bits an integer with a minus is no constant of the short form.
        let minus = (inst.mods.get(Mod::Neg) & !inst.mods.get(Mod::Abs)) >> slot.source & 1 != 0;
        let integer = slot.ty.bits() == 64 && matches!(operand, Operand::Inline(..=208));
        if matches!(operand, Operand::Inline(_)) && !(minus && integer) {
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
    let mut line = LineBuf::new();
    write_line(inst, gpu, &mut line);
    out.push_str(line.text(0, line.len()));
}

/// As [`write()`], to a line.
pub(in crate::amdgcn) fn write_line(inst: &Inst, gpu: &Gpu, out: &mut LineBuf) {
    write_used(inst, gpu, out);
    let Some(last) = inst.unused.iter().rposition(|bits| *bits != 0) else { return };
    for (at, bits) in inst.unused.iter().take(last + 1).enumerate() {
        out.push_str(if at == 0 { UNUSED } else { "," });
        out.hex((*bits).into());
    }
    out.push(b']');
}

/// Appends an instruction without the bits that mean nothing.
fn write_used(inst: &Inst, gpu: &Gpu, out: &mut LineBuf) {
    let variant = inst.variant();
    let (low, high) = (inst.mods.get(Mod::NegLo), inst.mods.get(Mod::NegHi));
    let signed = signed_dot(inst.opcode()).filter(|_| gpu.llvm23() && (low, high) == (BOTH_SIGNED, 0));
    match signed {
        Some(name) => out.push_str(name),
        None => out.push_name(variant.name),
    }
    if inst.row().format.is_memory() {
        mem_write::write(inst, gpu, out);
        return;
    }
    match suffix(inst, gpu) {
        "" => {}
        "_e32" => out.push_str("_e32"),
        "_e64" => out.push_str("_e64"),
        other => out.push_str(other),
    }
    let mods = &inst.mods;
    let (negs, abss, sexts) = (mods.get(Mod::Neg), mods.get(Mod::Abs), mods.get(Mod::Sext));
    let signs = negs | abss | sexts;
    let mut comma = false;
    for (at, (slot, value)) in (0..).zip(inst.written()) {
        if slot.class == Class::Imm16Optional && value == Operand::Imm(0) {
            continue;
        }
        match variant.second {
            Some((_, name, first)) if first == at => {
                out.push_str(" :: ");
                out.push_str(name);
                out.push(b' ');
            }
            _ if comma => out.push_str(", "),
            _ => out.push(b' '),
        }
        comma = slot.class != Class::ExpTarget || gpu.llvm23();
        if signs == 0 {
            operand(inst.opcode(), slot, value, gpu, out);
            continue;
        }
        let source = |bits: i32| slot.source < 3 && bits >> slot.source & 1 != 0;
        let (neg, abs, sext) = (source(negs), source(abss), source(sexts));
        if sext {
            out.push_str("sext(");
        }
        // A minus before a number would be the number's.
        let constant = neg && !abs && matches!(value, Operand::Inline(_) | Operand::Literal(_));
        if constant {
            out.push_str("neg(");
        } else if neg {
            out.push(b'-');
        }
        if abs {
            out.push(b'|');
        }
        operand(inst.opcode(), slot, value, gpu, out);
        if abs {
            out.push(b'|');
        }
        if constant || sext {
            out.push(b')');
        }
    }
    if signed.is_some() {
        let mut mods = inst.mods;
        mods.set(Mod::NegLo, 0);
        modifiers::write(&Inst { mods, ..*inst }, gpu, out);
    } else {
        modifiers::write(inst, gpu, out);
    }
}
