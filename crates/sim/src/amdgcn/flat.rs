//! Flat, global and scratch memory.

use super::access::{AccessShape, Action, Dst, Form, LaneValue, MemorySpace};
use super::apply::{self};
use super::buffer::{self, MemoryAccess};
use super::decoded::DecodedInst;
use super::fault::FaultKind;
use super::lanes::{SHARED_APERTURE, bits};
use super::machine::Machine;
use super::operand::{From, from, number};
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Access, Class, Element, Field, Format, Mod, Trait};
use unwedge_isa::amdgcn::semantics::{LANES, Mode, atomic};
use unwedge_isa::amdgcn::{Gfx, Inst, Opcode, Operand, Reg};

/// An access with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlatOp {
    space: MemorySpace,
    action: Action,
    form: Form,
    shape: Option<AccessShape>,
    data: Option<Reg>,
    dst: Option<Reg>,
    address: Option<(Reg, u8)>,
    base: Option<(From, u8)>,
    offset: i32,
    /// The lane's number times four is added.
    add_tid: bool,
    lds: bool,
    /// `m0` says which of 32 registers are moved.
    block: bool,
}

/// Adds to the upper half if the lower one is whose turn it is, which it then gives on: 64 bits as two numbers of 32, as Mesa uses it.
fn ordered_add(_: &Mode, old: u64, data: u64, _: u64) -> u64 {
    let (turn, sum) = (old as u32, (old >> 32) as u32);
    if turn != data as u32 {
        return old;
    }
    u64::from(turn.wrapping_add(1)) | u64::from(sum.wrapping_add((data >> 32) as u32)) << 32
}

impl FlatOp {
    pub(super) fn new(inst: &Inst) -> Option<FlatOp> {
        let row = inst.row();
        let space = match row.format {
            Format::Flat => MemorySpace::Flat,
            Format::Global => MemorySpace::Global,
            _ => MemorySpace::Scratch,
        };
        let (mut shape, mut turned) = (None, None);
        let action = match row.access? {
            Access::Block(direction) => direction.into(),
            Access::Transposed { halves } => {
                turned = Some(Form::Turned { halves });
                shape = Some(AccessShape::from(if halves { Element::B128 } else { Element::B64 }));
                Action::Load
            }
            Access::Value(direction, element, _) => {
                shape = Some(AccessShape::from(element));
                direction.into()
            }
            _ => {
                let (atomic, width) = match inst.opcode() {
                    Opcode::global_atomic_ordered_add_b64 => {
                        (ordered_add as atomic::Atomic, atomic::AtomicWidth::B64)
                    }
                    _ => atomic::of_row(row)?,
                };
                let returns = if inst.variant().has_mod(Mod::Th) {
                    inst.mods.get(Mod::Th) & 1 != 0
                } else {
                    inst.mods.has(Mod::Glc)
                };
                Action::Atomic { atomic, width, returns, compares: atomic::has_second(row) }
            }
        };
        let mut access = FlatOp {
            space,
            action,
            form: turned.or(shape.map(|shape| shape.form)).unwrap_or(Form::Dwords),
            shape,
            data: None,
            dst: None,
            address: None,
            base: None,
            offset: inst.mods.get(Mod::Offset),
            add_tid: row.traits.has(Trait::Addtid),
            lds: inst.mods.has(Mod::Lds),
            block: matches!(row.access, Some(Access::Block(_))),
        };
        for (slot, operand) in inst.written() {
            match (slot.class, operand) {
                (Class::GlobalBase | Class::ScratchBase, Operand::Off) => {}
                (Class::GlobalBase | Class::ScratchBase, other) => {
                    access.base =
                        Some((from(other, slot.ty)?, if slot.class == Class::GlobalBase { 2 } else { 1 }));
                }
                (Class::GlobalAddr | Class::ScratchAddr, Operand::Reg { reg, dwords, .. }) => {
                    access.address = Some((reg, dwords));
                }
                (_, Operand::Reg { reg, dwords, .. }) if slot.field == Field::Addr => {
                    access.address = Some((reg, dwords));
                }
                (_, Operand::Reg { reg, .. }) if slot.access.writes() => access.dst = Some(reg),
                (_, Operand::Reg { reg, .. }) => access.data = Some(reg),
                _ => {}
            }
        }
        // What is loaded into half of a register reads that register as well.
        if access.dst.is_none() && matches!(action, Action::Load) {
            access.dst = access.data;
        }
        Some(access)
    }
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, flat: &FlatOp) {
    let lanes = wave.exec(&machine.gpu);
    if matches!(flat.form, Form::Turned { .. }) {
        if machine.gpu.wave64() {
            return machine.fault(wave, FaultKind::NotEmulated("a transposed load of a wave of 64 lanes"));
        }
        if lanes != 0 && lanes != Wave::all(&machine.gpu) {
            machine.fault(wave, FaultKind::Undefined("a transposed load while not all lanes are enabled"));
        }
    }
    let mut base = 0u64;
    if let Some((From::Scalar(reg), dwords)) = flat.base {
        base = apply::address_scalar(machine, wave, reg).into();
        if dwords > 1 {
            base |= u64::from(apply::address_scalar(machine, wave, Reg(reg.0 + 1))) << 32;
        }
    }
    let low = flat.address.map(|(reg, _)| apply::address_lanes(machine, wave, reg, lanes));
    let high = flat.address.filter(|(_, dwords)| *dwords > 1);
    let high = high.map(|(reg, _)| apply::address_lanes(machine, wave, Reg(reg.0 + 1), lanes));
    let mut address = [0u64; LANES];
    for lane in bits(lanes) {
        let vector = low.map_or(0, |v| u64::from(v[lane])) | high.map_or(0, |v| u64::from(v[lane]) << 32);
        let mut sum = base.wrapping_add(vector).wrapping_add(flat.offset as i64 as u64);
        if flat.add_tid {
            sum = sum.wrapping_add(4 * lane as u64);
        }
        if flat.space == MemorySpace::Scratch {
            sum &= 0xffff_ffff;
        }
        address[lane] = sum;
    }
    let mut form = flat.form;
    let pieces = match (flat.action, flat.shape) {
        _ if flat.block => {
            let mask = apply::address_scalar(machine, wave, Reg::M0);
            form = Form::Block(mask);
            let valid = |n: u32| if mask >> n & 1 != 0 { u64::MAX } else { 0 };
            let piece = |n: u32| LaneValue { second: false, offset: 4 * n, bytes: 4, valid: valid(n) };
            (0..32).map(piece).collect()
        }
        (Action::Atomic { width, .. }, _) => {
            let bytes = if width == atomic::AtomicWidth::B64 { 8 } else { 4 };
            vec![LaneValue { second: false, offset: 0, bytes, valid: u64::MAX }]
        }
        (_, Some(shape)) => shape.pieces(u64::MAX),
        _ => Vec::new(),
    };
    // gfx10 in WGP mode, which is assumed as the less favourable one.
    let bytes: u32 = pieces.iter().map(|piece| u32::from(piece.bytes)).sum();
    let natural = u64::from(bytes).checked_ilog2().map_or(1, |log| 1 << log);
    if wave.unknown.is_some()
        && machine.gpu.generation() == Gfx::Gfx10
        && flat.space == MemorySpace::Flat
        && bytes > 4
        && bits(lanes).any(|lane| {
            address[lane] >> 32 == SHARED_APERTURE >> 32 && !address[lane].is_multiple_of(natural)
        })
    {
        machine.fault(wave, FaultKind::Hazard("lds_misaligned", decoded.at));
    }
    let dst = if flat.lds {
        Dst::Lds((apply::address_scalar(machine, wave, Reg::M0) & 0xffff).wrapping_add(flat.offset as u32))
    } else {
        flat.dst.map_or(Dst::None, |reg| Dst::Vgpr(number(reg)))
    };
    buffer::access_memory(
        machine,
        wave,
        decoded,
        MemoryAccess {
            space: flat.space,
            action: flat.action,
            form,
            shape: flat.shape,
            dst,
            data: flat.data,
            lanes,
            address,
            pieces,
        },
    );
}
