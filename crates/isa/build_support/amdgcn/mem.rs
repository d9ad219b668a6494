//! Memory instructions: which encoding and which modifiers a row has in a generation.
//!
//! The rows say what is theirs (`lds`, `d16`, `gds`, …: [`Trait`]); what all instructions of a family share stands here.
//! Facts: the syntax LLVM 19 accepts and prints, tried per generation.

use super::forms::{Spec, slot, whole};
use super::opcodes::traits;
use super::read::{Cell, SourceRow};
use crate::amdgcn_facts::model::{
    Class, Encoding, Field, Form, Format, Gfx, Mod, ModSlot, OperandAccess, OperandSlot, Trait, Traits, Type,
};
use crate::amdgcn_facts::regs::Reg;

/// The one way to write a row of memory.
pub fn spec(row: &SourceRow, cell: &Cell, generation: Gfx) -> Spec {
    let slots = row.operands.iter().map(|operand| slot(operand, generation));
    let (mut slots, implied): (Vec<OperandSlot>, Vec<OperandSlot>) =
        slots.partition(|slot| slot.class != Class::Implicit);
    slots.extend(implied);
    if row.has("no_return", generation) {
        slots.retain(|slot| slot.class != Class::Returned);
    }
    let encoding = encoding(row, generation);
    if let Some(reg) = implicit(row, generation).filter(|reg| slots.iter().all(|slot| slot.reg != reg.0)) {
        slots.push(OperandSlot {
            class: Class::Implicit,
            ty: Type::None,
            field: Field::None,
            access: OperandAccess(OperandAccess::READ),
            source: OperandSlot::NO_SOURCE,
            reg: reg.0,
        });
    }
    Spec {
        name: cell.name.clone().unwrap_or_else(|| row.name.clone()),
        form: Form::Native,
        encoding,
        opcode: cell.opcode,
        need: cell.need,
        only_short: false,
        slots,
        mods: mods(row, traits(row), generation),
    }
}

fn encoding(row: &SourceRow, generation: Gfx) -> Encoding {
    let sampled = row.operands.iter().any(|o| o.field == Field::Ssamp) || traits(row).has(Trait::Msaa);
    match row.format {
        Format::Smem => Encoding::Smem,
        Format::Ds => Encoding::Ds,
        Format::Mubuf | Format::Mtbuf if generation == Gfx::Gfx12 => Encoding::Vbuffer,
        Format::Mubuf => Encoding::Mubuf,
        Format::Mtbuf => Encoding::Mtbuf,
        Format::Mimg if generation == Gfx::Gfx12 && sampled => Encoding::Vsample,
        Format::Mimg if generation == Gfx::Gfx12 => Encoding::Vimage,
        Format::Mimg => Encoding::Mimg,
        Format::Flat => Encoding::Flat,
        Format::Global => Encoding::Global,
        _ => Encoding::Scratch,
    }
}

/// A register read without being written: `m0` bounds LDS until gfx8, and addresses what is loaded into LDS.
fn implicit(row: &SourceRow, generation: Gfx) -> Option<Reg> {
    let to_lds = traits(row).has(Trait::ToLds) || traits(row).has(Trait::LdsAlways);
    match row.format {
        Format::Ds if generation <= Gfx::Gfx8 && !row.operands.is_empty() => Some(Reg::M0),
        Format::Mubuf | Format::Global | Format::Scratch if to_lds => Some(Reg::M0),
        _ => None,
    }
}

/// Modifiers in the order they are written.
fn mods(row: &SourceRow, traits: Traits, generation: Gfx) -> Vec<ModSlot> {
    let mut out: Vec<Mod> = Vec::new();
    let gfx12 = generation == Gfx::Gfx12;
    let unified = generation.has_unified_vgprs();
    let mi300 = generation.is_mi300();
    let dlc = (Gfx::Gfx10..=Gfx::Gfx11_5).contains(&generation);
    let cpol: &[Mod] = match row.format {
        Format::Smem if generation <= Gfx::Gfx7 => &[],
        Format::Smem if generation < Gfx::Gfx10 => &[Mod::Glc],
        Format::Smem if dlc => &[Mod::Glc, Mod::Dlc],
        _ if gfx12 => &[Mod::Th, Mod::Scope],
        // Buffer atomics of gfx10 have no such bit.
        Format::Mubuf if dlc && generation < Gfx::Gfx11 && traits.has(Trait::Atomic) => &[Mod::Glc, Mod::Slc],
        _ if dlc => &[Mod::Glc, Mod::Slc, Mod::Dlc],
        _ if unified => &[Mod::Glc, Mod::Slc, Mod::Scc],
        _ => &[Mod::Glc, Mod::Slc],
    };
    let cpol = |out: &mut Vec<Mod>| {
        if row.has("cpol", generation) || row.format == Format::Mimg {
            let returns = !row.has("no_return", generation);
            out.extend(cpol.iter().filter(|id| returns || **id != Mod::Glc));
        }
    };
    match row.format {
        Format::Smem => {
            if traits.has(Trait::Offset) && generation >= Gfx::Gfx9 {
                out.push(Mod::Offset);
            }
            cpol(&mut out);
        }
        Format::Ds => {
            let said = [Trait::Offset, Trait::Swizzle].into_iter().any(|id| traits.has(id));
            if said {
                out.push(Mod::Offset);
            } else if traits.has(Trait::Offset0) {
                out.extend([Mod::Offset0, Mod::Offset1]);
            }
            if (traits.has(Trait::Gds) && !unified || traits.has(Trait::GdsAlways)) && !gfx12 {
                out.push(Mod::Gds);
            }
        }
        Format::Mubuf | Format::Mtbuf => {
            if traits.has(Trait::Format) {
                out.push(Mod::Format);
            }
            if traits.has(Trait::Vaddr) {
                out.extend([Mod::Idxen, Mod::Offen]);
                if generation <= Gfx::Gfx7 {
                    out.push(Mod::Addr64);
                }
            }
            if traits.has(Trait::Offset) {
                out.push(Mod::Offset);
            }
            if traits.has(Trait::LdsAlways) {
                out.push(Mod::Lds);
            }
            cpol(&mut out);
            if row.has("lds", generation) && generation < Gfx::Gfx11 {
                out.push(Mod::Lds);
            }
            if traits.has(Trait::Tfe) && !unified {
                out.push(Mod::Tfe);
            }
        }
        Format::Mimg => image(&mut out, traits, generation, encoding(row, generation), &cpol),
        _ => {
            if traits.has(Trait::Offset) {
                out.push(Mod::Offset);
            }
            cpol(&mut out);
            // MI300 has opcodes of their own for it.
            if traits.has(Trait::Lds) && generation < Gfx::Gfx11 && !mi300 {
                out.push(Mod::Lds);
            }
        }
    }
    out.into_iter().map(|id| whole(id, Field::from_name(id.name()).unwrap_or(Field::None))).collect()
}

fn image(
    out: &mut Vec<Mod>,
    traits: Traits,
    generation: Gfx,
    encoding: Encoding,
    cpol: &dyn Fn(&mut Vec<Mod>),
) {
    if traits.has(Trait::Bvh) || traits.has(Trait::Bvh64) {
        if traits.has(Trait::A16) {
            out.push(Mod::A16);
        }
        return;
    }
    out.push(Mod::Dmask);
    if generation >= Gfx::Gfx10 {
        out.push(Mod::Dim);
    }
    if encoding != Encoding::Vimage {
        out.push(Mod::Unorm);
    }
    cpol(out);
    match generation {
        Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 => out.push(Mod::R128),
        gfx if gfx.is_gfx9() => out.push(Mod::A16),
        _ => out.extend([Mod::R128, Mod::A16]),
    }
    if generation != Gfx::Gfx90a {
        out.push(Mod::Tfe);
    }
    if encoding != Encoding::Vimage {
        out.push(Mod::Lwe);
    }
    if generation < Gfx::Gfx10 {
        out.push(Mod::Da);
    }
    if traits.has(Trait::D16) && generation >= Gfx::Gfx8 {
        out.push(Mod::D16);
    }
}
