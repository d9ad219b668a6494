//! Memory instructions to text.

use super::line::LineBuf;
use super::write::{inline, register};
use super::{hints, swizzle};
use crate::amdgcn::inst::{Inst, Operand, RegHalf};
use crate::amdgcn::model::{Class, Format, Gfx, Mod, OperandSlot, Trait};
use crate::amdgcn::{Gpu, Reg, mem};

/// Appends operands and modifiers.
pub(super) fn write(inst: &Inst, gpu: &Gpu, out: &mut LineBuf) {
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

fn signed_hex(value: i32, out: &mut LineBuf) {
    if value < 0 {
        out.push(b'-');
    }
    out.hex(value.unsigned_abs().into());
}

fn operand(inst: &Inst, slot: &OperandSlot, value: Operand, gpu: &Gpu, out: &mut LineBuf) {
    match value {
        Operand::None => {}
        Operand::Off => out.push_str("off"),
        Operand::Reg { reg, dwords, half } => register(reg, dwords, half, out),
        Operand::Inline(code) => inline(code, out),
        Operand::Literal(value) => out.hex(value.into()),
        Operand::Imm(value) => match slot.class {
            Class::Imm5 | Class::Imm7 if (-16..=64).contains(&value) => out.decimal(value.into()),
            _ => signed_hex(value, out),
        },
        Operand::List(count) => {
            out.push(b'[');
            let parts = mem::image_parts(inst, gpu).map_or([1; mem::LIST], |(parts, _)| parts);
            let starts = inst.list.iter().zip(parts).take(usize::from(count));
            for (at, (start, dwords)) in starts.enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                register(Reg::vgpr(*start), dwords.max(1), RegHalf::Whole, out);
            }
            out.push(b']');
        }
    }
}

/// Modifiers that may be written if they are 0.
const ZERO: u64 = super::set_of(&[Mod::Offset, Mod::Format, Mod::Th, Mod::Dim]);

fn modifiers(inst: &Inst, gpu: &Gpu, out: &mut LineBuf) {
    let traits = inst.row().traits;
    for slot in inst.variant().mods.iter() {
        let value = inst.mods.get(slot.id);
        if value == 0 && ZERO >> slot.id as u8 & 1 == 0 {
            continue;
        }
        match slot.id {
            Mod::Offset if inst.row().format == Format::Smem => smem_offset(inst, gpu, out),
            Mod::Offset if traits.has(Trait::Swizzle) => swizzle::write(value, gpu.llvm23(), out),
            Mod::Format => hints::write_format(value, gpu, out),
            Mod::Th => hints::write_hint(value, inst.mods.get(Mod::Scope), traits, gpu.llvm23(), out),
            Mod::Scope => {}
            Mod::Dim => {
                out.push_str(" dim:SQ_RSRC_IMG_");
                out.push_str(mem::DIM_NAMES[value as usize & 7]);
            }
            _ if value == 0 => {}
            Mod::Offset | Mod::Offset0 | Mod::Offset1 => {
                out.push(b' ');
                out.push_str(slot.id.name());
                out.push(b':');
                out.decimal(value.into());
            }
            Mod::Dmask => {
                out.push_str(" dmask:");
                out.hex(value as u64);
            }
            id => {
                out.push(b' ');
                out.push_str(mem::name_of(id, inst.row().format, gpu));
            }
        }
    }
}

/// The offset beside a register: where it may be missing it is written if it is said, from gfx12 on always.
fn smem_offset(inst: &Inst, gpu: &Gpu, out: &mut LineBuf) {
    let register = inst
        .written()
        .any(|(slot, operand)| slot.class == Class::SmemOffset && matches!(operand, Operand::Reg { .. }));
    let value = inst.mods.get(Mod::Offset);
    let said = value != 0 || inst.mods.has(Mod::Soe) || gpu.generation() == Gfx::Gfx12;
    if register && said {
        out.push_str(" offset:");
        signed_hex(value, out);
    }
}
