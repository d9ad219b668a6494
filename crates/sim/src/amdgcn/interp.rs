//! Attributes of pixels: parameters in LDS, and interpolation between a primitive's vertices.
//!
//! As hardware prepares it, LDS holds for each attribute and each primitive of the wave twelve dwords: the four channels of
//! P0, of P10 and of P20. `m0` says where they begin and at which quads a new primitive begins; the first quad always
//! begins one. From gfx11 on parameters are loaded into the lanes of a quad, and interpolation reads them there.

use super::access::{Access, Dst, MemorySpace, Read};
use super::apply::{self};
use super::counters::WaitCounter;
use super::decoded::DecodedInst;
use super::fault::{FaultKind, Missing};
use super::issue;
use super::lanes::{bits, splat};
use super::machine::Machine;
use super::operand::{DwordPart, LaneSource, number, source};
use super::vector::fetch;
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Class, Format, Mod, Trait, Type};
use unwedge_isa::amdgcn::opcode::InterpOp;
use unwedge_isa::amdgcn::semantics::interp::{self, Interp as Semantics};
use unwedge_isa::amdgcn::semantics::{LANES, Lanes};
use unwedge_isa::amdgcn::{Gfx, Inst, Operand, Reg, RegHalf};

/// Dwords of an attribute of a primitive: three vertices of four channels.
const PARAMETERS: u32 = 12;
/// What arrives by the counter of exports is in order among itself.
const IN_ORDER: u8 = 5;

#[derive(Debug, Clone, Copy)]
enum InterpKind {
    /// A step with an attribute in LDS, of 32 bits or the lower or upper 16.
    Attribute(Semantics, bool),
    /// A vertex' parameter as it is.
    Move,
    /// A step with parameters in lanes of the quad.
    Quad(Semantics),
    /// Parameters into lanes of quads.
    Load,
    /// One value of LDS into all lanes.
    Direct,
}

/// An instruction with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct InterpolateOp {
    kind: InterpKind,
    dst: u16,
    /// Which half of the destination is written, if the other is kept; without, whether the other is zero.
    high: Option<bool>,
    /// Attribute and channel.
    attribute: u32,
    /// The vertex that is moved: 0 for P10, 1 for P20, 2 for P0.
    slot: u32,
    sources: [LaneSource; 3],
    clamp: bool,
    omod: u8,
    ty: Type,
}

impl InterpolateOp {
    pub(super) fn new(op: InterpOp, inst: &Inst, generation: Gfx) -> Option<InterpolateOp> {
        let kind = match op {
            InterpOp::v_interp_mov_f32 => InterpKind::Move,
            InterpOp::lds_param_load => InterpKind::Load,
            InterpOp::lds_direct_load => InterpKind::Direct,
            _ if inst.row().format == Format::Vinterp => InterpKind::Quad(interp::of(op)?),
            _ => InterpKind::Attribute(interp::of(op)?, inst.mods.has(Mod::High)),
        };
        let mut made = InterpolateOp {
            kind,
            dst: 0,
            high: None,
            attribute: 0,
            slot: 0,
            sources: [LaneSource::NONE; 3],
            clamp: inst.mods.has(Mod::Clamp),
            omod: inst.mods.get(Mod::Omod) as u8,
            ty: Type::F32,
        };
        let (mut count, mut high) = (0, inst.mods.get(Mod::OpSel) & 8 != 0);
        let mut added = None;
        for (slot, operand) in inst.written() {
            match (slot.class, operand) {
                (Class::Attr, Operand::Imm(value)) => made.attribute = value as u32,
                (Class::InterpSlot, Operand::Imm(value)) => made.slot = value as u32,
                (_, Operand::Reg { reg, half, .. }) if slot.access.writes() => {
                    made.dst = number(reg);
                    made.ty = slot.ty;
                    high |= half == RegHalf::High;
                    if slot.access.reads() {
                        added = Some(source(inst, slot, operand)?);
                    }
                }
                (_, operand) => {
                    *made.sources.get_mut(count)? = source(inst, slot, operand)?;
                    count += 1;
                }
            }
        }
        if let Some(added) = added {
            *made.sources.get_mut(count)? = added;
        }
        let halves =
            matches!(kind, InterpKind::Attribute(step, _) | InterpKind::Quad(step) if step.half_out());
        // The first GPUs with 16 bits zeroed the upper half.
        let keeps = generation >= Gfx::Gfx9 && !inst.row().traits.has(Trait::ZeroesHigh);
        made.high = (halves && keeps).then_some(high);
        Some(made)
    }
}

/// The primitive of each quad, counted in the wave, and how many there are.
fn primitives(m0: u32) -> ([u32; LANES / 4], u32) {
    let begins = m0 >> 16 & 0x7fff;
    let mut of = [0; LANES / 4];
    let mut now = 0;
    for (quad, place) in of.iter_mut().enumerate().skip(1) {
        now += begins >> (quad - 1) & 1;
        *place = now;
    }
    (of, now + 1)
}

/// A vertex' parameter for each lane's primitive: 0 for P0, 1 for P10, 2 for P20.
fn parameter_lanes(machine: &mut Machine<'_>, m0: u32, attribute: u32, vertex: u32) -> (Lanes, Lanes) {
    let (of, count) = primitives(m0);
    let (number, channel) = (attribute >> 2, attribute & 3);
    let (mut values, mut unknown) = (splat(0), splat(0));
    for lane in 0..LANES {
        let dword = number * count * PARAMETERS + of[lane / 4] * PARAMETERS + vertex * 4 + channel;
        let (value, bits) = machine.lds.read(u64::from(m0 & 0xffff) + 4 * u64::from(dword), 4);
        (values[lane], unknown[lane]) = (value as u32, bits as u32);
    }
    (values, unknown)
}

fn source_lanes(wave: &Wave, source: &LaneSource) -> (Lanes, Lanes) {
    let values = fetch(source, 0, &wave.v, |reg| wave.sreg(reg), true);
    let unknown =
        wave.unknown.as_ref().map(|state| fetch(source, 0, &state.v, |reg| wave.unknown_sreg(reg), false));
    (values, unknown.unwrap_or(splat(0)))
}

pub(super) fn exec(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    decoded: &DecodedInst,
    interp: &InterpolateOp,
) {
    let lanes = wave.exec(&machine.gpu);
    // A lane's parameters are those of its quad.
    let of_quad = |values: &Lanes, at: usize| {
        let mut moved = splat(0);
        moved.iter_mut().enumerate().for_each(|(lane, place)| *place = values[lane & !3 | at]);
        moved
    };
    let (parameter, place, added, semantics) = match interp.kind {
        InterpKind::Move => {
            let m0 = apply::address_scalar(machine, wave, Reg::M0);
            let vertex = [1, 2, 0].get(interp.slot as usize).copied().unwrap_or(0);
            let (values, unknown) = parameter_lanes(machine, m0, interp.attribute, vertex);
            return put(machine, wave, interp, lanes, values, unknown);
        }
        InterpKind::Load | InterpKind::Direct => {
            return load_parameters(machine, wave, decoded, interp, lanes);
        }
        InterpKind::Attribute(semantics, high) => {
            let m0 = apply::address_scalar(machine, wave, Reg::M0);
            let half = |(values, unknown): (Lanes, Lanes)| match high {
                true => (values.map(|value| value >> 16), unknown.map(|bits| bits >> 16)),
                false => (values, unknown),
            };
            let vertex = semantics.parameter.into();
            let parameter = half(parameter_lanes(machine, m0, interp.attribute, vertex));
            let place = source_lanes(wave, &interp.sources[0]);
            // Without a register for it P0 comes from LDS too.
            let added = if interp.sources[1] == LaneSource::NONE {
                half(parameter_lanes(machine, m0, interp.attribute, 0))
            } else {
                let mut source = interp.sources[1];
                if semantics.half_in() && semantics.parameter == 1 && high {
                    source.part = DwordPart::Word(1);
                }
                source_lanes(wave, &source)
            };
            (parameter, place, added, semantics)
        }
        InterpKind::Quad(semantics) => {
            let at = usize::from(semantics.parameter);
            let (values, unknown) = source_lanes(wave, &interp.sources[0]);
            let parameter = (of_quad(&values, at), of_quad(&unknown, at));
            let place = source_lanes(wave, &interp.sources[1]);
            let mut added = source_lanes(wave, &interp.sources[2]);
            if at == 1 {
                added = (of_quad(&added.0, 0), of_quad(&added.1, 0));
            }
            (parameter, place, added, semantics)
        }
    };
    let mode = unwedge_isa::amdgcn::semantics::Mode {
        clamp: interp.clamp,
        omod: interp.omod,
        ..wave.float_mode(machine.gpu.generation())
    };
    let (mut values, mut unknown) = (splat(0), splat(0));
    for lane in bits(lanes) {
        let value = semantics.compute(&mode, parameter.0[lane], place.0[lane], added.0[lane]);
        values[lane] = mode.output(interp.ty, value.into()) as u32;
        if (parameter.1[lane] | place.1[lane] | added.1[lane]) != 0 {
            unknown[lane] = u32::MAX;
        }
    }
    put(machine, wave, interp, lanes, values, unknown);
}

fn put(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    interp: &InterpolateOp,
    lanes: u64,
    mut values: Lanes,
    mut unknown: Lanes,
) {
    let at = usize::from(interp.dst);
    let Some(old) = wave.v.get(at).copied() else { return machine.fault(wave, FaultKind::NoRegister) };
    let before = wave.unknown.as_ref().map_or(splat(0), |state| state.v[at]);
    if let Some(high) = interp.high {
        let placed = |old: u32, new: u32| match high {
            true => old & 0xffff | new << 16,
            false => old & 0xffff_0000 | new & 0xffff,
        };
        for lane in 0..LANES {
            values[lane] = placed(old[lane], values[lane]);
            unknown[lane] = placed(before[lane], unknown[lane]);
        }
    }
    wave.set_lanes(interp.dst, lanes, &values);
    if wave.unknown.is_some() {
        wave.set_unknown_lanes(interp.dst, lanes, &unknown, Missing::Undefined);
    }
}

/// Parameters, or one value, on their way into a register.
fn load_parameters(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    decoded: &DecodedInst,
    interp: &InterpolateOp,
    lanes: u64,
) {
    let m0 = apply::address_scalar(machine, wave, Reg::M0);
    let (mut values, mut unknown) = (splat(0), splat(0));
    let mut written = lanes;
    if matches!(interp.kind, InterpKind::Load) {
        for vertex in 0..3 {
            let (found, bits) = parameter_lanes(machine, m0, interp.attribute, vertex);
            for lane in (vertex as usize..LANES).step_by(4) {
                (values[lane], unknown[lane]) = (found[lane], bits[lane]);
            }
        }
        // A quad with any lane gets all of its parameters.
        for quad in 0..LANES / 4 {
            if lanes >> (4 * quad) & 15 != 0 {
                written |= 15 << (4 * quad);
            }
        }
    } else {
        let bytes = match m0 >> 16 & 7 {
            0 | 4 => 1,
            1 | 5 => 2,
            2 => 4,
            _ => return machine.fault(wave, FaultKind::Undefined("a direct load of no known type")),
        };
        let (value, bits) = machine.lds.read((m0 & 0xffff).into(), bytes);
        let value = match m0 >> 16 & 7 {
            4 => value as u8 as i8 as u32,
            5 => value as u16 as i16 as u32,
            _ => value as u32,
        };
        (values, unknown) = (splat(value), splat(if bits == 0 { 0 } else { u32::MAX }));
    }
    let access = Access::made(decoded.at, MemorySpace::Lds, Dst::Vgpr(interp.dst), written, 1);
    let read = Read { values: vec![values], unknown: vec![unknown] };
    issue::ready(machine, wave, access, read, &[(WaitCounter::Exp, IN_ORDER)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitives_begin_at_quads() {
        assert_eq!(primitives(0), ([0; 16], 1));
        // New ones at quads 1 and 3.
        let (of, count) = primitives(0b101 << 16);
        assert_eq!((&of[..5], count), (&[0, 1, 1, 2, 2][..], 3));
    }
}
