//! What the modifiers of a memory instruction say of its operands: how many registers data and address take, how far an
//! offset reaches, which code says "off".
//!
//! Never: bits or text; [`super::codec`] and [`super::text`] both ask here. Facts: AMD's ISA manuals for what the
//! modifiers mean, LLVM 19 for what is taken, tried per generation.

use super::inst::{Inst, Mods, Operand, dwords};
use super::model::{Class, Encoding, Field, Format, Gfx, Mod, OperandSlot, Trait, Traits, Type};
use super::{Gpu, Opcode, Reg};

/// The most registers an image address has as a list.
pub(super) const LIST: usize = 13;

/// How many registers the parts of an image address take, in order; those not used are 0.
pub(super) type AddressParts = [u8; LIST];

/// Whether an atomic returns what was in memory.
pub(super) fn returns(mods: &Mods, gpu: &Gpu) -> bool {
    if gpu.generation() == Gfx::Gfx12 { mods.get(Mod::Th) & 1 != 0 } else { mods.has(Mod::Glc) }
}

/// The name of a modifier: MI300 has names of its own for those of caching, except in scalar memory.
pub(super) fn name_of(id: Mod, format: Format, gpu: &Gpu) -> &'static str {
    let mi300 = gpu.generation().is_mi300() && format != Format::Smem;
    match id {
        Mod::Glc if mi300 => "sc0",
        Mod::Slc if mi300 => "nt",
        Mod::Scc if mi300 => "sc1",
        id => id.name(),
    }
}

/// Whether a register holds data of a memory instruction, which may be in accumulation registers where those are one file with
/// the others.
pub(super) fn is_data(slot: &OperandSlot, traits: Traits) -> bool {
    // The value that instructions of shared semaphores take is in the field of the address.
    let given = slot.field == Field::Addr && traits.has(Trait::GdsAlways);
    given || matches!(slot.field, Field::Vdst | Field::Vdata | Field::Data | Field::Data0 | Field::Data1)
}

/// Whether data is in registers of both files, for which the one flag has no value.
pub(super) fn mixes_files(inst: &Inst) -> bool {
    let mut files = [false; 2];
    for (slot, operand) in inst.written().filter(|(slot, _)| is_data(slot, inst.row().traits)) {
        if let Operand::Reg { reg, .. } = operand {
            files[usize::from(reg.is_agpr())] |= slot.field != Field::None;
        }
    }
    files == [true; 2]
}

/// How many registers an operand whose width is its type's own, or follows from a modifier, takes.
pub(super) fn data(slot: &OperandSlot, mods: &Mods, gpu: &Gpu) -> u8 {
    let own = match slot.class {
        Class::D16Data if gpu.unpacked_d16() => (slot.ty.bits() / 16) as u8,
        _ => dwords(slot.ty, gpu),
    };
    let status = matches!(slot.class, Class::TfeData | Class::D16Data) && mods.has(Mod::Tfe);
    own + u8::from(status)
}

/// How many registers the vector address of a buffer instruction takes; `None`: its modifiers exclude each other.
pub(super) fn buffer_address(mods: &Mods) -> Option<u8> {
    let parts = mods.get(Mod::Idxen) + mods.get(Mod::Offen);
    match (mods.has(Mod::Addr64), parts) {
        (false, parts) => Some(parts as u8),
        (true, 0) => Some(2),
        (true, _) => None,
    }
}

/// The smallest and largest offset of an instruction in bytes (dwords in scalar memory until gfx7).
pub(super) fn offsets(format: Format, buffer: bool, gpu: &Gpu) -> (i32, i32) {
    let signed = |bits: u32| (-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
    let unsigned = |bits: u32| (0, (1 << bits) - 1);
    let generation = gpu.generation();
    match (format, generation) {
        (Format::Ds, _) => unsigned(16),
        (_, Gfx::Gfx12) => signed(24),
        (Format::Mubuf | Format::Mtbuf, _) => unsigned(12),
        (Format::Smem, Gfx::Gfx6 | Gfx::Gfx7) => unsigned(8),
        (Format::Smem, Gfx::Gfx8) => unsigned(20),
        (Format::Smem, _) if buffer => unsigned(20),
        (Format::Smem, _) => signed(21),
        // There it has no field.
        (Format::Flat, Gfx::Gfx7 | Gfx::Gfx8) => (0, 0),
        (Format::Flat, Gfx::Gfx10 | Gfx::Gfx10_3) => unsigned(11),
        (Format::Flat, _) => unsigned(12),
        (_, Gfx::Gfx10 | Gfx::Gfx10_3) => signed(12),
        _ => signed(13),
    }
}

/// The largest immediate that stands in place of a register.
pub(super) fn most(class: Class, gpu: &Gpu) -> i32 {
    if class == Class::Imm5 || gpu.generation() == Gfx::Gfx12 { 31 } else { 127 }
}

/// Whether a scalar memory instruction takes a buffer descriptor.
pub(super) fn is_buffer(slots: &[OperandSlot]) -> bool {
    slots.iter().any(|slot| slot.class == Class::SregPair && slot.ty == Type::B128)
}

/// The code of `saddr` that says there is none.
pub(super) fn no_base(format: Format, gpu: &Gpu) -> u32 {
    match (gpu.generation(), format) {
        (Gfx::Gfx7 | Gfx::Gfx8, _) => 0,
        (gfx, Format::Flat) if gfx.is_gfx9() => 0,
        (gfx, _) if gfx.is_gfx9() => 0x7f,
        (Gfx::Gfx10 | Gfx::Gfx10_3, _) => 0x7d,
        _ => 0x7c,
    }
}

/// The code of `saddr` in a scratch instruction that has no address at all, where that is so said.
pub(super) fn no_address(gpu: &Gpu) -> Option<u32> {
    (gpu.generation() == Gfx::Gfx10_3).then_some(0x7f)
}

/// Whether scratch instructions can have both a vector and a scalar address, or neither.
pub(super) fn free_scratch(gpu: &Gpu) -> bool {
    gpu.generation() >= Gfx::Gfx11 || gpu.generation().is_mi300()
}

/// How many registers the data of an image instruction takes; `None`: none that it could.
pub(super) fn image_data(inst: &Inst, gpu: &Gpu) -> Option<u8> {
    let (mods, traits) = (&inst.mods, inst.row().traits);
    let status = mods.get(Mod::Tfe) as u8;
    let mask = mods.get(Mod::Dmask) & 15;
    let four = traits.has(Trait::Gather4) || traits.has(Trait::Msaa) && gpu.generation() >= Gfx::Gfx11;
    let texels = if four { 4 } else { (mask.count_ones() as u8).max(1) };
    let packed = mods.has(Mod::D16) && !gpu.unpacked_d16();
    let size = if packed { texels.div_ceil(2) } else { texels } + status;
    if traits.has(Trait::Atomic) {
        let sizes: &[u8] = if traits.has(Trait::Cmpswap) { &[2, 3, 4, 5] } else { &[1, 2, 3, 5] };
        return (matches!(mask, 1 | 3 | 15) && sizes.contains(&size)).then_some(size);
    }
    let sizes: &[u8] = if traits.has(Trait::Gather4) { &[2, 4, 5] } else { &[1, 2, 3, 4, 5] };
    ((!four || mask.count_ones() == 1) && sizes.contains(&size)).then_some(size)
}

/// The fewest and most registers of an image address. Before gfx10 no field says how many there are; later what would take
/// more has no encoding (samples of arrays, except of images that derivatives make long).
pub(super) fn image_address_range(inst: &Inst) -> (u8, u8) {
    let traits = inst.row().traits;
    let sampled = inst.variant().slots.iter().any(|slot| slot.field == Field::Ssamp);
    if !sampled || inst.opcode() == Opcode::image_get_lod {
        return (1, 4);
    }
    let extra = extra(traits);
    let gradients = traits.has(Trait::Grad);
    let least = extra + 1 + u8::from(gradients);
    let most = extra + 3 + level(traits) + if gradients { 6 } else { 0 };
    // There is no block of three registers alone.
    let blocks = inst.variant().encoding == Encoding::Mimg;
    (least, if blocks { most.max(4) } else { most })
}

/// How many dwords of an image address are before its coordinates.
fn extra(traits: Traits) -> u8 {
    let parts = [Trait::TexelOffset, Trait::Bias, Trait::DepthCompare];
    parts.into_iter().map(|part| u8::from(traits.has(part))).sum()
}

/// How many parts of an image address are after its coordinates.
fn level(traits: Traits) -> u8 {
    u8::from(traits.has(Trait::Level) || traits.has(Trait::ClampLod))
}

/// Coordinates and derivatives of each dimension, by its code.
const DIMS: [(u8, u8); 8] = [(1, 2), (2, 4), (3, 6), (3, 4), (2, 2), (3, 4), (3, 4), (4, 4)];

/// Names of the dimensions, by code.
pub(super) const DIM_NAMES: [&str; 8] =
    ["1D", "2D", "3D", "CUBE", "1D_ARRAY", "2D_ARRAY", "2D_MSAA", "2D_MSAA_ARRAY"];

/// Whether the dimension of an instruction has samples: `2D_MSAA` and its arrays.
pub(super) fn has_samples(inst: &Inst) -> bool {
    matches!(inst.mods.get(Mod::Dim), 6 | 7)
}

/// How many dwords an image address has from gfx10 on.
pub(super) fn image_address(inst: &Inst, gpu: &Gpu) -> u8 {
    let traits = inst.row().traits;
    let a16 = inst.mods.has(Mod::A16);
    let (coordinates, gradients) = DIMS[inst.mods.get(Mod::Dim) as usize & 7];
    let coordinates = if traits.has(Trait::NoCoord) { 0 } else { coordinates };
    let parts = coordinates + level(traits);
    let mut dwords = extra(traits) + if a16 { parts.div_ceil(2) } else { parts };
    if traits.has(Trait::Grad) {
        // Derivatives are halved by an opcode of their own, or where there is none by a16.
        let half = traits.has(Trait::G16) || a16 && gpu.generation() < Gfx::Gfx10;
        dwords += if half { (gradients / 2).next_multiple_of(2) } else { gradients };
    }
    dwords
}

/// Whether it traces rays, whose addresses have parts of their own.
pub(super) fn is_bvh(inst: &Inst) -> bool {
    let traits = inst.row().traits;
    traits.has(Trait::Bvh) || traits.has(Trait::Bvh64)
}

/// The parts of a ray: node, extent, origin, direction, inverse direction. On gfx12 the extent has a mask, and offsets of nodes are last.
fn ray(inst: &Inst) -> ([u8; 5], usize) {
    match inst.opcode() {
        Opcode::image_bvh_dual_intersect_ray => return ([2, 2, 3, 3, 2], 5),
        Opcode::image_bvh8_intersect_ray => return ([2, 2, 3, 3, 1], 5),
        _ => {}
    }
    let node = 1 + u8::from(inst.row().traits.has(Trait::Bvh64));
    if inst.mods.has(Mod::A16) { ([node, 1, 3, 3, 0], 4) } else { ([node, 1, 3, 3, 3], 5) }
}

/// The parts of an image address written as a list: how many registers each takes, and how many parts there are. `None`:
/// it cannot be a list on this GPU.
pub(super) fn image_parts(inst: &Inst, gpu: &Gpu) -> Option<(AddressParts, usize)> {
    if !is_bvh(inst) && image_address(inst, gpu) > image_address_range(inst).1 {
        return None;
    }
    let mut parts = [0u8; LIST];
    let grouped = gpu.generation() >= Gfx::Gfx11;
    if is_bvh(inst) && grouped {
        let (ray, count) = ray(inst);
        parts.get_mut(..ray.len())?.copy_from_slice(&ray);
        return Some((parts, count));
    }
    let dwords = image_dwords(inst, gpu);
    let most = match inst.variant().encoding {
        Encoding::Vsample => 4,
        _ if grouped => 5,
        _ => LIST,
    };
    let count = usize::from(dwords);
    if count <= most {
        parts.get_mut(..count)?.fill(1);
        return Some((parts, count));
    }
    // What does not fit stands together in the last part.
    let rest = u8::try_from(count - most + 1).ok()?;
    let (last, single) = parts.get_mut(..most)?.split_last_mut()?;
    single.fill(1);
    *last = rest;
    grouped.then_some((parts, most))
}

/// How many dwords an address has, rays included.
pub(super) fn image_dwords(inst: &Inst, gpu: &Gpu) -> u8 {
    if is_bvh(inst) { ray(inst).0.iter().sum() } else { image_address(inst, gpu) }
}

/// Whether eight registers may stand for an address of at most so many.
pub(super) fn eight_stand_for(most: u8) -> bool {
    (5..8).contains(&most)
}

/// How many registers an image address takes when they follow each other; `None`: it cannot be so many.
pub(super) fn image_block(inst: &Inst, gpu: &Gpu) -> Option<u8> {
    let dwords = image_dwords(inst, gpu);
    let most = image_address_range(inst).1;
    (is_bvh(inst) || dwords <= most || eight_stand_for(most) && dwords == 8).then_some(dwords)
}

/// Whether these scalar registers may stand in a slot: aligned, all of one file, and of the kind it takes.
pub(super) fn scalar(slot: &OperandSlot, reg: Reg, dwords: u8, gpu: &Gpu) -> Result<(), SgprRule> {
    if reg.is_vgpr() || reg.0 >= Reg::SHARED_BASE.0 {
        return if slot.class == Class::BufferOffset && reg.0 < Reg::LDS_DIRECT.0 {
            Ok(())
        } else {
            Err(SgprRule::Kind)
        };
    }
    let exec = reg == Reg::EXEC || reg == Reg::EXEC_HI;
    let numbered = reg.is_sgpr() || reg.is_ttmp();
    let kind = match slot.class {
        Class::Sdst => !exec && reg != Reg::M0 && (dwords <= 2 || numbered || reg == Reg::NULL),
        Class::Sreg if slot.field == Field::Sdst => !exec && reg != Reg::M0 && (dwords <= 2 || numbered),
        Class::SregQuad => numbered,
        Class::SregPair if dwords > 2 => numbered,
        Class::GlobalBase => reg != Reg::NULL && reg != Reg::M0,
        Class::ScratchBase => reg != Reg::NULL && reg != Reg::EXEC_HI,
        _ => dwords == 1 || reg != Reg::M0,
    };
    let step = if dwords > 2 { 4 } else { u16::from(dwords) };
    let last = Reg(reg.0 + u16::from(dwords) - 1);
    // From gfx10 on the mask follows the last numbered register, and may be the end of a tuple.
    let masked = gpu.generation() >= Gfx::Gfx10 && last.0 == Reg::VCC.0 + 1;
    let together =
        reg.is_sgpr() && masked || last.is_sgpr() == reg.is_sgpr() && last.is_ttmp() == reg.is_ttmp();
    match (kind, reg == Reg::NULL, reg.index() % step, together) {
        (false, ..) => Err(SgprRule::Kind),
        (_, true, ..) | (_, _, 0, true) => Ok(()),
        (_, _, 0, false) => Err(SgprRule::NotThere),
        _ => Err(SgprRule::Alignment),
    }
}

/// Why scalar registers may not stand in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SgprRule {
    /// Not these registers.
    Kind,
    /// They begin at the wrong number.
    Alignment,
    /// They end behind the last.
    NotThere,
}
