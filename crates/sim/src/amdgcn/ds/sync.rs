//! What waves of a workgroup share beside memory: the semaphores and barriers of GWS, ordered counts, and the
//! registers of streamout.
//!
//! A wave that must wait executes its instruction again when something has changed; if nothing can, that is a fault, never a
//! hang. For every workgroup, resources and GDS start zeroed, and the turn and the streamout registers start as the dispatch says. So no wave waits for a wave of another workgroup.
//! Facts: AMD's ISA manuals of RDNA 3 (registers of streamout), the kernel's and ROCm's use of GWS (the resource is
//! `m0` from bit 16 on and the offset, a barrier counts waves less one), Mesa's of ordered counts, LLVM's
//! `IntrinsicsAMDGPU.td` (`m0` of ordered counts).

use super::super::access::{self};
use super::super::apply;
use super::super::common::Resource;
use super::super::counters::WaitCounter;
use super::super::decoded::DecodedInst;
use super::super::issue;
use super::super::lanes::{bits, splat};
use super::super::machine::Machine;
use super::super::pending::Locks;
use super::super::wave::Wave;
use super::op::{DsOp, Sync};
use super::result::{GDS_COUNTERS, put};
use unwedge_isa::amdgcn::{Gfx, Reg};

/// Executes the instruction again after the next change.
fn block(machine: &Machine<'_>, wave: &mut Wave, decoded: &DecodedInst) {
    wave.pc = decoded.at;
    wave.waiting.since = Some(machine.common.changes);
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, ds: &DsOp, sync: Sync) {
    wave.waiting.since = None;
    let lanes = wave.exec(&machine.gpu);
    match sync {
        Sync::Ordered => return ordered_count(machine, wave, decoded, ds, lanes),
        Sync::Streamout { add } => return streamout(machine, wave, ds, lanes, add),
        _ if lanes == 0 => return,
        _ => {}
    }
    let m0 = apply::address_scalar(machine, wave, Reg::M0);
    let value = match ds.address {
        Some(reg) => apply::address_lanes(machine, wave, reg, lanes & lanes.wrapping_neg())
            [lanes.trailing_zeros() as usize],
        None => 0,
    };
    let at = ((m0 >> 16).wrapping_add(ds.offset) & 63) as usize;
    let resource = &mut machine.common.resources[at];
    match sync {
        Sync::Init => *resource = Resource { count: value, released: resource.released.wrapping_add(1) },
        Sync::SemaphoreV => resource.count = resource.count.saturating_add(1),
        Sync::SemaphoreBulk => resource.count = resource.count.saturating_add(value),
        Sync::ReleaseAll => resource.released = resource.released.wrapping_add(1),
        Sync::SemaphoreP => {
            let before = *wave.waiting.released.get_or_insert(resource.released);
            if resource.count > 0 {
                resource.count -= 1;
            } else if resource.released == before {
                return block(machine, wave, decoded);
            }
            wave.waiting.released = None;
        }
        _ => match wave.waiting.released {
            // It has been counted.
            Some(before) if before == resource.released => return block(machine, wave, decoded),
            Some(_) => wave.waiting.released = None,
            None if resource.count > 0 => {
                resource.count -= 1;
                wave.waiting.released = Some(resource.released);
                return block(machine, wave, decoded);
            }
            None => *resource = Resource { count: value, released: resource.released.wrapping_add(1) },
        },
    }
    machine.common.changes += 1;
    // Nothing comes back, but counters tell when the operands have been read, and when it is done.
    let mut access = access::Access::made(decoded.at, access::MemorySpace::Gds, access::Dst::None, 0, 0);
    access.action = access::Action::Store;
    let mut held = Locks::new(WaitCounter::Exp);
    if let Some(reg) = ds.address {
        held.add(reg, 1);
    }
    issue::issue(machine, wave, access, &GDS_COUNTERS, Some(held));
}

/// Adds to counters of GDS, or swaps them, when it is the wave's turn.
fn ordered_count(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, ds: &DsOp, lanes: u64) {
    // The lower half of `m0` has the number of the wave among all that count, the upper half has the address.
    let m0 = apply::address_scalar(machine, wave, Reg::M0);
    if m0 as u16 != machine.common.ordered.turn {
        return block(machine, wave, decoded);
    }
    let (index, control) = (ds.offset & 0xff & !3, ds.offset >> 8);
    // From gfx10 on so many lanes have a counter each; else the first one has one.
    let count = if machine.gpu.generation() >= Gfx::Gfx10 { 1 + (control >> 6 & 3) } else { 1 };
    let used = if count == 1 { lanes & lanes.wrapping_neg() } else { lanes & ((1 << count) - 1) };
    let base = u64::from(m0 >> 16) + u64::from(index);
    let Some(data) = apply::given(machine, wave, ds.address, used) else { return };
    let mut before = splat(0);
    for lane in bits(used) {
        let at = base + if count == 1 { 0 } else { 4 * lane as u64 };
        let (old, _) = machine.gds.read(at, 4);
        before[lane] = old as u32;
        let new = if control >> 4 & 3 == 1 { data[lane] } else { (old as u32).wrapping_add(data[lane]) };
        machine.gds.write(at, 4, new.into(), 0);
    }
    if control & 3 != 0 {
        let turn = &mut machine.common.ordered.turn;
        *turn = turn.wrapping_add(1);
        machine.common.changes += 1;
    }
    put(machine, wave, ds, used, &[before], &[splat(0)]);
}

/// Each lane after the other.
fn streamout(machine: &mut Machine<'_>, wave: &mut Wave, ds: &DsOp, lanes: u64, add: bool) {
    let number = (ds.offset >> 2 & 15) as usize;
    let wide = number > 7;
    let at = if wide { (number - 8) * 2 + 8 } else { number };
    let Some(data) = apply::given(machine, wave, ds.data[0], lanes) else { return };
    let mut before = [splat(0); 2];
    for lane in bits(lanes) {
        let registers = &mut machine.common.ordered.streamout;
        let low = u64::from(registers[at]);
        let old = if wide { low | u64::from(registers[at + 1]) << 32 } else { low };
        let by = u64::from(data[lane]);
        let new = if add { old.wrapping_add(by) } else { old.wrapping_sub(by) };
        registers[at] = new as u32;
        before[0][lane] = old as u32;
        if wide {
            registers[at + 1] = (new >> 32) as u32;
            before[1][lane] = (old >> 32) as u32;
        }
    }
    let count = 1 + usize::from(wide);
    put(machine, wave, ds, lanes, &before[..count], &[splat(0); 2][..count]);
}
