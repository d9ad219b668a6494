//! LDS and GDS, and moves between lanes that go through LDS.

mod lanes;
mod memory;
mod op;
mod result;
mod sync;

pub(super) use op::DsOp;

use super::apply;
use super::decoded::DecodedInst;
use super::lanes::splat;
use super::machine::Machine;
use super::wave::Wave;
use op::DsKind;

/// Executes an instruction of LDS or GDS.
pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, ds: &DsOp) {
    if let DsKind::Sync(sync) = ds.kind {
        return sync::exec(machine, wave, decoded, ds, sync);
    }
    let lanes = wave.exec(&machine.gpu);
    let base = match (ds.address, ds.kind) {
        (None, _) | (_, DsKind::Swizzle) => splat(0),
        (Some(reg), _) => apply::address_lanes(machine, wave, reg, lanes),
    };
    match ds.kind {
        DsKind::Stack => lanes::bvh_stack(machine, wave, ds, lanes, &base),
        DsKind::FromMemory { atomic, width } => memory::from_memory(machine, wave, ds, &base, atomic, width),
        DsKind::Append { add } => memory::append(machine, wave, ds, lanes, add),
        DsKind::Swizzle => lanes::swizzle(machine, wave, ds, lanes),
        DsKind::Permute | DsKind::Bpermute { .. } => lanes::permute(machine, wave, ds, lanes, &base),
        _ => memory::exec(machine, wave, decoded, ds, &base),
    }
}
