//! Image instructions: loads, stores, atomics, samples and gathers by descriptors.
//!
//! Loads, stores and atomics reach memory as late as any other access; what is sampled is read when the instruction is
//! issued, its result arrives late. What is not emulated (block compression, most tilings, samples in tiled images,
//! anisotropic filters, borders from a table) is a fault where it is met, never a value.

mod descriptor;
mod fields;
mod layout;
mod sample;

use super::access::{self, Action, Dst, Form, LaneValue, MemorySpace, Read};
use super::apply::{self};
use super::buffer;
use super::buffer::{MemoryAccess, vector_counters};
use super::decoded::DecodedInst;
use super::fault::FaultKind;
use super::issue;
use super::lanes::{bits, splat};
use super::machine::Machine;
use super::operand::number;
use super::texel::{Halves, IDENTITY, Texel};
use super::wave::Wave;
use descriptor::{DescriptorKind, Image};
use fields::{Coordinates, Fields};
use sample::Sampled;
use unwedge_isa::amdgcn::model::{Access, Direction, Field, Mod, Signedness, Trait};
use unwedge_isa::amdgcn::semantics::{LANES, atomic};
use unwedge_isa::amdgcn::texel::TexelFormat;
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand, Operation, Reg};

/// What an instruction does.
#[derive(Debug, Clone, Copy)]
enum ImageKind {
    /// Whether a level is given; without a format, whether the sign is extended.
    Load {
        mip: bool,
        raw: Option<bool>,
    },
    Store {
        mip: bool,
        raw: bool,
    },
    /// The operation on 32 and 64 bits; whether the old value is returned, whether it compares.
    Atomic {
        small: atomic::Atomic,
        wide: Option<atomic::Atomic>,
        returns: bool,
        compares: bool,
    },
    /// The size of a level.
    Size,
    Sample(Sampled),
}

/// An image instruction with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageOp {
    kind: ImageKind,
    data: Option<Reg>,
    fields: Fields,
    resource: Reg,
    sampler: Option<Reg>,
    mask: u8,
    /// The dimension, from gfx10 on; before it the descriptor says it.
    dim: Option<u8>,
    /// Before gfx10: a layer is among the coordinates.
    layered: bool,
    unnormalized: bool,
    short: bool,
    /// The descriptor has four dwords.
    half_descriptor: bool,
    halves: Halves,
    status: bool,
}

impl ImageOp {
    pub(super) fn new(inst: &Inst, gpu: &Gpu) -> Option<ImageOp> {
        let (row, mods) = (inst.row(), &inst.mods);
        let mip = row.traits.has(Trait::Level);
        let kind = match row.access? {
            Access::Texel(Direction::Load) => ImageKind::Load { mip, raw: None },
            Access::Texel(Direction::Store) => ImageKind::Store { mip, raw: false },
            Access::Raw(Direction::Load, sign) => {
                ImageKind::Load { mip, raw: Some(sign == Signedness::Signed) }
            }
            Access::Raw(Direction::Store, _) => ImageKind::Store { mip, raw: true },
            Access::Size => ImageKind::Size,
            Access::Atomic { .. } => {
                let Operation::Atomic(op) = row.operation else { return None };
                let (small, wide) =
                    (atomic::of(op, atomic::AtomicWidth::B32)?, atomic::of(op, atomic::AtomicWidth::B64));
                let returns = if inst.variant().has_mod(Mod::Th) {
                    mods.get(Mod::Th) & 1 != 0
                } else {
                    mods.has(Mod::Glc)
                };
                ImageKind::Atomic { small, wide, returns, compares: op.has_second() }
            }
            Access::Sample if row.opcode != Opcode::image_gather4h => {
                ImageKind::Sample(Sampled::new(row.traits))
            }
            _ => return None,
        };
        let halves = match mods.has(Mod::D16) {
            false => Halves::Whole,
            true if gpu.unpacked_d16() => Halves::Spread,
            true => Halves::Packed,
        };
        let mut access = ImageOp {
            kind,
            data: None,
            fields: Fields::default(),
            resource: Reg::NULL,
            sampler: None,
            mask: (mods.get(Mod::Dmask) & 15) as u8,
            dim: (gpu.generation() >= Gfx::Gfx10).then(|| mods.get(Mod::Dim) as u8),
            layered: mods.has(Mod::Da),
            unnormalized: mods.has(Mod::Unorm),
            short: mods.has(Mod::A16),
            half_descriptor: mods.has(Mod::R128) && gpu.generation() <= Gfx::Gfx10_3,
            halves,
            status: mods.has(Mod::Tfe) || mods.has(Mod::Lwe),
        };
        for (slot, operand) in inst.written() {
            match (slot.field, operand) {
                (Field::Vdata, Operand::Reg { reg, .. }) => access.data = Some(reg),
                (Field::Srsrc, Operand::Reg { reg, .. }) => access.resource = reg,
                (Field::Ssamp, Operand::Reg { reg, .. }) => access.sampler = Some(reg),
                (_, Operand::Reg { reg, .. }) if reg.is_vgpr() => access.fields = Fields::block(reg),
                (_, Operand::List(count)) => access.fields = Fields::list(&inst.list, count),
                _ => {}
            }
        }
        Some(access)
    }

    /// Components in their order. Where none is asked for, it is the first.
    fn plain(&self, format: TexelFormat) -> Texel {
        Texel {
            format,
            select: IDENTITY,
            mask: self.mask.max(1),
            halves: self.halves,
            status: self.status,
            zero_fill: false,
        }
    }

    /// Components as an image's descriptor chooses them.
    fn texel(&self, image: &Image, format: TexelFormat, generation: Gfx) -> Texel {
        Texel { select: image.select, zero_fill: Texel::zero_fill(generation), ..self.plain(format) }
    }
}

/// The format by which elements of so many bytes are moved as they are.
fn raw_format(bytes: u8, signed: bool) -> Option<TexelFormat> {
    let data = match bytes {
        1 => "8",
        2 => "16",
        4 => "32",
        8 => "32_32",
        16 => "32_32_32_32",
        _ => return None,
    };
    TexelFormat::of_name(&format!("{data}_{}", if signed { "SINT" } else { "UINT" }))
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, access: &ImageOp) {
    let lanes = wave.exec(&machine.gpu);
    // What the other half would say is zero.
    let given = if access.half_descriptor { 4 } else { 8 };
    let words = std::array::from_fn(|n| {
        if n < given { apply::address_scalar(machine, wave, Reg(access.resource.0 + n as u16)) } else { 0 }
    });
    let read = match Image::read(words, &machine.gpu) {
        DescriptorKind::Image(image) if access.half_descriptor => match image.of_half() {
            Ok(image) => DescriptorKind::Image(Box::new(image)),
            Err(what) => return machine.fault(wave, FaultKind::NotEmulated(what)),
        },
        other => other,
    };
    let image = match read {
        DescriptorKind::Null => None,
        DescriptorKind::Image(image) => Some(*image),
        DescriptorKind::Other => {
            return machine.fault(wave, FaultKind::NotEmulated("a descriptor that is not an image's"));
        }
    };
    if let Some(image) = &image
        && image.format.is_none()
        && !matches!(access.kind, ImageKind::Size)
    {
        return machine.fault(wave, FaultKind::NotEmulated("the image's format"));
    }
    match access.kind {
        ImageKind::Sample(sampled) => {
            sample::exec(machine, wave, decoded, access, &sampled, image.as_ref(), lanes)
        }
        ImageKind::Size => image_size(machine, wave, decoded, access, image.as_ref(), lanes),
        _ => texels(machine, wave, decoded, access, image.as_ref(), lanes),
    }
}

/// Loads, stores and atomics.
fn texels(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    decoded: &DecodedInst,
    access: &ImageOp,
    image: Option<&Image>,
    lanes: u64,
) {
    let generation = machine.gpu.generation();
    let raw = match access.kind {
        ImageKind::Load { raw, .. } => raw,
        ImageKind::Store { raw, .. } => raw.then_some(false),
        _ => None,
    };
    let mip = matches!(access.kind, ImageKind::Load { mip: true, .. } | ImageKind::Store { mip: true, .. });
    let format = image.and_then(|image| image.format).or_else(|| TexelFormat::of_name("32_32_32_32_UINT"));
    let format = match (format, raw) {
        (Some(format), Some(signed)) => raw_format(format.bytes(), signed),
        (format, _) => format,
    };
    let Some(format) = format else {
        return machine.fault(wave, FaultKind::NotEmulated("the image's format"));
    };
    let mut texel = match image {
        Some(image) => access.texel(image, format, generation),
        None => access.plain(format),
    };
    if raw.is_some() {
        texel.select = IDENTITY;
    }
    let (mut address, mut valid) = ([0u64; LANES], 0u64);
    if let Some(image) = image {
        let shape = Coordinates::of(access.dim, access.layered, image.kind);
        let mut fields = access.fields;
        let coordinates = fields.coordinates(machine, wave, &shape, access.short, lanes);
        let sample = shape.sample.then(|| fields.next(machine, wave, access.short, lanes));
        let level = mip.then(|| fields.next(machine, wave, access.short, lanes));
        for lane in bits(lanes) {
            let at = coordinates.map(|lanes| lanes.map_or(0, |lanes| lanes[lane]));
            let level = level.map_or(0, |lanes| lanes[lane]).saturating_add(image.base_level);
            let sample = sample.map_or(0, |lanes| lanes[lane]);
            let depth = if image.kind.is_array() { image.layers } else { image.extent(2, level) };
            let inside = at[0] < image.extent(0, level)
                && at[1] < image.extent(1, level)
                && at[2] < depth
                && level <= image.last_level
                && sample < image.samples;
            if !inside {
                continue;
            }
            match image.address(at, sample, level, format.bytes()) {
                Ok(place) => {
                    address[lane] = place;
                    valid |= 1 << lane;
                }
                Err(what) => return machine.fault(wave, FaultKind::NotEmulated(what)),
            }
        }
    }
    let dst = access.data.map_or(Dst::None, |reg| Dst::Vgpr(number(reg)));
    let (action, form, pieces) = match access.kind {
        ImageKind::Atomic { small, wide, returns, compares } => {
            // Four components are a value of 64 bits and one to compare with.
            let double = access.mask == if compares { 15 } else { 3 };
            let (width, bytes) =
                if double { (atomic::AtomicWidth::B64, 8) } else { (atomic::AtomicWidth::B32, 4) };
            if image.is_some() && format.bytes() != bytes {
                return machine.fault(wave, FaultKind::Undefined("an atomic on texels of another size"));
            }
            let Some(atomic) = (if double { wide } else { Some(small) }) else {
                return machine.fault(wave, FaultKind::NoSemantics);
            };
            let piece = LaneValue { second: false, offset: 0, bytes, valid };
            (Action::Atomic { atomic, width, returns, compares }, Form::Dwords, vec![piece])
        }
        ImageKind::Store { .. } => (Action::Store, Form::Texel(texel), texel.pieces(valid)),
        _ => (Action::Load, Form::Texel(texel), texel.pieces(valid)),
    };
    let memory = MemoryAccess {
        space: MemorySpace::Global,
        action,
        form,
        shape: None,
        dst,
        data: access.data,
        lanes,
        address,
        pieces,
    };
    buffer::access_memory(machine, wave, decoded, memory);
}

/// Width, height, depth or layers, and levels.
fn image_size(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    decoded: &DecodedInst,
    access: &ImageOp,
    image: Option<&Image>,
    lanes: u64,
) {
    let mut fields = access.fields;
    let level = fields.next(machine, wave, access.short, lanes);
    let mut values = [[0u32; 4]; LANES];
    if let Some(image) = image {
        for lane in bits(lanes) {
            let at = level[lane].saturating_add(image.base_level);
            let levels = image.last_level.saturating_sub(image.base_level) + 1;
            let depth = if image.kind.is_array() { image.layers } else { image.extent(2, at) };
            values[lane] = [image.extent(0, at), image.extent(1, at), depth, levels];
            if at > image.last_level {
                values[lane] = [0, 0, 0, levels];
            }
        }
    }
    let texel = access.plain(TexelFormat::INTEGERS);
    return_values(machine, wave, decoded, access, &texel, &values, lanes, false);
}

/// Results that are there when the instruction is issued, on their way to registers.
#[expect(clippy::too_many_arguments, reason = "all of what an instruction returns")]
fn return_values(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    decoded: &DecodedInst,
    access: &ImageOp,
    texel: &Texel,
    values: &[[u32; 4]; LANES],
    lanes: u64,
    sampled: bool,
) {
    let Some(first) = access.data else { return machine.fault(wave, FaultKind::NoSemantics) };
    let count = usize::from(texel.registers());
    let mut read = Read { values: vec![splat(0); count], unknown: Vec::new() };
    for lane in bits(lanes) {
        let mut out = [0; 5];
        texel.registers_of(values[lane], &mut out);
        read.values.iter_mut().zip(out).for_each(|(place, value)| place[lane] = value);
    }
    let dst = Dst::Vgpr(number(first));
    let made = access::Access::made(decoded.at, MemorySpace::Global, dst, lanes, count);
    let counter = vector_counters(machine.gpu.generation(), true, sampled);
    issue::ready(machine, wave, made, read, &[counter]);
}
