//! Scalar memory.

use super::access::{self, Action, Dst, Form, LaneValue, MemorySpace};
use super::apply::{self};
use super::counters::WaitCounter;
use super::decoded::DecodedInst;
use super::fault::{FaultKind, Missing};
use super::issue;
use super::lanes::splat;
use super::machine::Machine;
use super::pending::UNORDERED;
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Access, Class, Direction, Mod, Trait};
use unwedge_isa::amdgcn::semantics::{LANES, atomic};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand, Reg};

#[derive(Debug, Clone, Copy)]
enum SmemKind {
    Load(access::AccessShape),
    Store(u8),
    Atomic {
        atomic: atomic::Atomic,
        width: atomic::AtomicWidth,
        compares: bool,
    },
    /// A clock: so many dwords.
    Time(u8),
    WaveId,
}

/// A scalar access with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct SmemOp {
    kind: SmemKind,
    data: Reg,
    base: Reg,
    buffer: bool,
    offset: i64,
    register: Option<Reg>,
    scratch: bool,
    returns: bool,
}

impl SmemOp {
    pub(super) fn new(inst: &Inst, gpu: &Gpu) -> Option<SmemOp> {
        let row = inst.row();
        let generation = gpu.generation();
        let kind = match (row.access?, row.opcode) {
            (Access::State, Opcode::s_memtime | Opcode::s_memrealtime) => SmemKind::Time(2),
            (Access::State, Opcode::s_get_waveid_in_workgroup) => SmemKind::WaveId,
            (Access::Value(Direction::Load, element, _), _) => SmemKind::Load(element.into()),
            (Access::Value(Direction::Store, element, _), _) => SmemKind::Store(element.dwords()),
            (Access::Atomic { .. }, _) => {
                let (atomic, width) = atomic::of_row(row)?;
                SmemKind::Atomic { atomic, width, compares: atomic::has_second(row) }
            }
            _ => return None,
        };
        let mut access = SmemOp {
            kind,
            data: Reg::NULL,
            base: Reg::NULL,
            buffer: row.traits.has(Trait::Buffer),
            offset: 0,
            register: None,
            scratch: row.traits.has(Trait::Scratch),
            returns: inst.mods.has(Mod::Glc),
        };
        // Until gfx7 immediates count dwords.
        let scale = if generation <= Gfx::Gfx7 { 4 } else { 1 };
        for (at, (slot, operand)) in inst.written().enumerate() {
            match (slot.class, operand) {
                (Class::SmemOffset, Operand::Imm(value)) => access.offset = i64::from(value) * scale,
                (Class::SmemOffset, Operand::Literal(value)) => access.offset = i64::from(value) * scale,
                (Class::SmemOffset, Operand::Reg { reg, .. }) => {
                    access.register = Some(reg);
                    access.offset = inst.mods.get(Mod::Offset).into();
                }
                (Class::SregPair, Operand::Reg { reg, .. }) => access.base = reg,
                (_, Operand::Reg { reg, .. }) if at == 0 => access.data = reg,
                _ => {}
            }
        }
        Some(access)
    }
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, smem: &SmemOp) {
    let counter = if machine.gpu.generation() >= Gfx::Gfx12 { WaitCounter::Km } else { WaitCounter::Lgkm };
    match smem.kind {
        SmemKind::Time(dwords) => {
            // Deterministic, and never the same twice.
            return wave.set_value(smem.data, dwords, wave.steps, 0, Missing::Undefined);
        }
        SmemKind::WaveId => return wave.set(smem.data, wave.id),
        _ => {}
    }
    let writes = matches!(smem.kind, SmemKind::Store(_) | SmemKind::Atomic { .. });
    let generation = machine.gpu.generation();
    if writes
        && (Gfx::Gfx8..Gfx::Gfx10).contains(&generation)
        && smem.offset == 0
        && smem.register.is_some_and(|reg| reg != Reg::M0)
    {
        machine
            .fault(wave, FaultKind::Undefined("the offset of a scalar store is in another register than m0"));
    }
    let low = apply::address_scalar(machine, wave, smem.base);
    let high = apply::address_scalar(machine, wave, Reg(smem.base.0 + 1));
    let mut offset = smem.offset;
    if let Some(reg) = smem.register {
        let value = apply::address_scalar(machine, wave, reg);
        offset += i64::from(if smem.scratch { value.wrapping_mul(64) } else { value });
    }
    let (mut base, mut end) = (u64::from(low) | u64::from(high) << 32, None);
    if smem.buffer {
        base &= 0xffff_ffff_ffff;
        let records = apply::address_scalar(machine, wave, Reg(smem.base.0 + 2));
        let stride = u64::from(high >> 16 & 0x3fff);
        let scaled = stride != 0 && machine.gpu.generation() != Gfx::Gfx8;
        end = Some(u64::from(records) * if scaled { stride } else { 1 });
    }
    let (dwords, bytes, form) = match smem.kind {
        SmemKind::Load(shape) => (shape.dwords(), shape.bytes.min(4), shape.form),
        SmemKind::Store(dwords) => (dwords, 4, Form::Dwords),
        SmemKind::Atomic { width, .. } => {
            (1, if width == atomic::AtomicWidth::B64 { 8 } else { 4 }, Form::Dwords)
        }
        _ => (0, 4, Form::Dwords),
    };
    // The low two bits of each part of the address do not count, but for smaller loads.
    let aligned = if bytes < 4 { u64::MAX } else { !3 };
    let address = (base & aligned).wrapping_add(offset as u64 & aligned);
    let inside = |n: u8| {
        let from = offset.wrapping_add(4 * i64::from(n));
        end.is_none_or(|end| from >= 0 && (from as u64).saturating_add(bytes.into()) <= end)
    };
    let pieces = (0..dwords)
        .map(|n| LaneValue { second: false, offset: 4 * u32::from(n), bytes, valid: u64::from(inside(n)) })
        .collect();
    let returns = smem.returns;
    let action = match smem.kind {
        SmemKind::Load(_) => Action::Load,
        SmemKind::Store(_) => Action::Store,
        SmemKind::Atomic { atomic, width, compares } => Action::Atomic { atomic, width, returns, compares },
        _ => return machine.fault(wave, FaultKind::NoSemantics),
    };
    let mut data = Vec::new();
    if !matches!(action, Action::Load) {
        let count = u16::from(dwords) * u16::from(bytes.div_ceil(4));
        let count = if let Action::Atomic { compares: true, .. } = action { count * 2 } else { count };
        for n in 0..count {
            let reg = Reg(smem.data.0 + n);
            if wave.unknown_sreg(reg) != 0 {
                machine.fault(wave, FaultKind::Stored(reg, wave.why(reg)));
            }
            data.push(splat(wave.sreg(reg)));
        }
    }
    let access = access::Access {
        at: decoded.at,
        space: MemorySpace::Global,
        action,
        form,
        dst: Dst::Scalar(smem.data),
        lanes: 1,
        address: [address; LANES],
        second: None,
        pieces,
        data,
        unknown: Vec::new(),
    };
    issue::issue(machine, wave, access, &[(counter, UNORDERED)], None);
}
