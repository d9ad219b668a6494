//! What instructions of LDS and GDS give, and the registers they are given.

use super::super::access::{Access, Dst, MemorySpace, Read};
use super::super::apply;
use super::super::counters::WaitCounter;
use super::super::fault::FaultKind;
use super::super::issue;
use super::super::lanes::splat;
use super::super::machine::Machine;
use super::super::operand::number;
use super::super::pending::{EXPORTS, GDS, Locks};
use super::super::wave::Wave;
use super::op::{DsKind, DsOp};
use unwedge_isa::amdgcn::semantics::Lanes;
use unwedge_isa::amdgcn::{Gfx, Reg};

/// What GDS counts, until gfx11, and what each is in order among.
pub(super) const GDS_COUNTERS: [(WaitCounter, u8); 2] =
    [(WaitCounter::Lgkm, GDS), (WaitCounter::Exp, EXPORTS)];

/// What a move between lanes gives: it counts as LDS, so that it has to be waited for.
pub(super) fn put(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    ds: &DsOp,
    lanes: u64,
    values: &[Lanes],
    unknown: &[Lanes],
) {
    let there = |reg: &Reg| usize::from(number(*reg)) + values.len() <= wave.v.len();
    let Some(reg) = ds.dst.filter(there) else {
        return machine.fault(wave, FaultKind::NoRegister);
    };
    let dst = Dst::Vgpr(number(reg));
    let space =
        if ds.gds || matches!(ds.kind, DsKind::Sync(_)) { MemorySpace::Gds } else { MemorySpace::Lds };
    let access = Access::made(machine.offset(), space, dst, lanes, values.len());
    let read = Read { values: values.to_vec(), unknown: unknown.to_vec() };
    if space == MemorySpace::Lds {
        let counter =
            if machine.gpu.generation() >= Gfx::Gfx12 { WaitCounter::Ds } else { WaitCounter::Lgkm };
        return issue::ready(machine, wave, access, read, &[(counter, 3)]);
    }
    // GDS reads its operands late, and counts that.
    let mut held = Locks::new(WaitCounter::Exp);
    for reg in [ds.address, ds.data[0]].into_iter().flatten() {
        held.add(reg, 1);
    }
    match wave.unknown {
        Some(_) => issue::defer_ready(machine, wave, access, read, &GDS_COUNTERS, Some(held)),
        None => apply::deliver(machine, wave, &access, &read),
    }
}

pub(super) fn unknown_of(wave: &Wave, reg: Option<Reg>) -> Lanes {
    let state = wave.unknown.as_ref();
    reg.and_then(|reg| state?.v.get(usize::from(number(reg))).copied()).unwrap_or(splat(0))
}

pub(super) fn data(
    machine: &mut Machine<'_>,
    wave: &Wave,
    ds: &DsOp,
    dwords: u8,
    both: bool,
) -> Option<(Vec<Lanes>, Vec<Lanes>)> {
    let mut all = apply::stored(machine, wave, ds.data[0]?, dwords)?;
    if both {
        let second = apply::stored(machine, wave, ds.data[1]?, dwords)?;
        all.0.extend(second.0);
        all.1.extend(second.1);
    }
    Some(all)
}
