//! Memory instructions to text.

use super::write::{decimal, hex, inline, register};
use super::{hints, swizzle};
use crate::amdgcn::inst::{Half, Inst, Operand};
use crate::amdgcn::model::{Class, Format, Gen, Mod, Slot, Trait};
use crate::amdgcn::{Gpu, Reg, mem};

/// Appends operands and modifiers.
pub(super) fn write(inst: &Inst, gpu: &Gpu, out: &mut String) {
    let mut separator = " ";
    for (slot, value) in inst.written() {
        if value == Operand::None {
            continue;
        }
        out.push_str(separator);
        separator = ", ";
        operand(inst, slot, value, gpu, out);
    }
    modifiers(inst, gpu, out);
}

fn signed_hex(value: i32, out: &mut String) {
    if value < 0 {
        out.push('-');
    }
    hex(value.unsigned_abs().into(), out);
}

fn operand(inst: &Inst, slot: &Slot, value: Operand, gpu: &Gpu, out: &mut String) {
    match value {
        Operand::None => {}
        Operand::Off => out.push_str("off"),
        Operand::Reg { reg, dwords, half } => register(reg, dwords, half, out),
        Operand::Inline(code) => inline(code, out),
        Operand::Literal(value) => hex(value.into(), out),
        Operand::Imm(value) => match slot.class {
            Class::Imm5 | Class::Imm7 if (-16..=64).contains(&value) => decimal(value.into(), out),
            _ => signed_hex(value, out),
        },
        Operand::List(count) => {
            out.push('[');
            let parts = mem::image_parts(inst, gpu).map_or([1; mem::LIST], |(parts, _)| parts);
            let starts = inst.list.iter().zip(parts).take(usize::from(count));
            for (at, (start, dwords)) in starts.enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                register(Reg::vgpr(*start), dwords.max(1), Half::Whole, out);
            }
            out.push(']');
        }
    }
}

fn modifiers(inst: &Inst, gpu: &Gpu, out: &mut String) {
    let traits = inst.row().traits;
    for slot in inst.variant().mods {
        let value = inst.mods.get(slot.id);
        match slot.id {
            Mod::Offset if inst.row().format == Format::Smem => smem_offset(inst, gpu, out),
            Mod::Offset if traits.has(Trait::Swizzle) => swizzle::write(value, out),
            Mod::Format => hints::write_format(value, gpu, out),
            Mod::Th => hints::write_hint(value, inst.mods.get(Mod::Scope), traits, out),
            Mod::Scope => {}
            Mod::Dim => {
                out.push_str(" dim:SQ_RSRC_IMG_");
                out.push_str(mem::DIM_NAMES[value as usize & 7]);
            }
            _ if value == 0 => {}
            Mod::Offset | Mod::Offset0 | Mod::Offset1 => {
                out.push(' ');
                out.push_str(slot.id.name());
                out.push(':');
                decimal(value.into(), out);
            }
            Mod::Dmask => {
                out.push_str(" dmask:");
                hex(value as u64, out);
            }
            id => {
                out.push(' ');
                out.push_str(id.name());
            }
        }
    }
}

/// The offset beside a register: where it may be missing it is written if it is said, from gfx12 on always.
fn smem_offset(inst: &Inst, gpu: &Gpu, out: &mut String) {
    let register = inst
        .written()
        .any(|(slot, operand)| slot.class == Class::SmemOffset && matches!(operand, Operand::Reg { .. }));
    let value = inst.mods.get(Mod::Offset);
    let said = value != 0 || inst.mods.has(Mod::Soe) || gpu.generation() == Gen::Gfx12;
    if register && said {
        out.push_str(" offset:");
        signed_hex(value, out);
    }
}
