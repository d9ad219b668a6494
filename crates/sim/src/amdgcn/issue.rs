//! Instructions under way: with adversarial timing an access touches memory at any time until it must have, and its result
//! is not known until it has been waited for.
//!
//! Of one wave, accesses to one memory by one path are done in order. What a counter says: an access is certain to be done
//! if it and the later ones that cannot overtake it are more than the wait allows. A counter that is full makes one be done
//! before the next is issued: what it does to memory is done then, but its result stays unknown until it is waited for.

use super::access::{Access, Dst, MemorySpace, Read};
use super::apply;
use super::counters::WaitCounter;
use super::fault::{FaultKind, Missing};
use super::lanes::{bits, splat};
use super::machine::Machine;
use super::pending::{CountedAccess, LOCAL, Locks, Path, PendingAccess, registers, spare};
use super::wave::Wave;
use unwedge_isa::amdgcn::{Gfx, Reg};

/// Issues an access: does it at once, or as late as timing allows.
pub(super) fn issue(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    access: Access,
    counters: &[(WaitCounter, u8)],
    locks: Option<Locks>,
) {
    if wave.unknown.is_some() {
        return defer(machine, wave, access, counters, locks);
    }
    let read = apply::perform(machine, wave, &access);
    apply::deliver(machine, wave, &access, &read);
}

/// Delivers what was read already: at once, or when it has been waited for.
pub(super) fn ready(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    access: Access,
    read: Read,
    counters: &[(WaitCounter, u8)],
) {
    if wave.unknown.is_some() {
        return defer_ready(machine, wave, access, read, counters, None);
    }
    apply::deliver(machine, wave, &access, &read);
}

/// Puts off an access.
pub(super) fn defer(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    access: Access,
    counters: &[(WaitCounter, u8)],
    locks: Option<Locks>,
) {
    put_off(machine, wave, access, None, counters, locks);
}

/// Puts off only the result, which is there already.
pub(super) fn defer_ready(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    access: Access,
    read: Read,
    counters: &[(WaitCounter, u8)],
    locks: Option<Locks>,
) {
    put_off(machine, wave, access, Some(read), counters, locks);
}

fn put_off(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    access: Access,
    read: Option<Read>,
    counters: &[(WaitCounter, u8)],
    locks: Option<Locks>,
) {
    let path = match (access.space, access.dst) {
        (_, Dst::Scalar(_)) => Path::Scalar,
        (MemorySpace::Lds | MemorySpace::Gds, _) => Path::Shared,
        _ => Path::Vector,
    };
    let counter = counters.first().map_or(WaitCounter::Vm, |(counter, _)| *counter);
    if let (Some(high), Some((first, _))) = (access.form.half(), registers(&access)) {
        settle_other_half(machine, wave, first, high);
    }
    let spare = spare(&access, counters);
    for (counter, _) in counters {
        make_room(machine, wave, *counter);
    }
    let counted = |&(counter, kind)| CountedAccess { counter, kind, full: false, gone: 0, over: false };
    let entry = PendingAccess {
        registers: registers(&access),
        access,
        path,
        read,
        done: false,
        counters: counters.iter().map(counted).collect(),
        spare,
        locks,
        shares: false,
        lost: false,
    };
    if let Some((first, count)) = entry.registers {
        let why = Missing::Load { at: entry.access.at, counter };
        // gfx12 writes registers in order only where it loads from LDS.
        let ordered =
            machine.gpu.generation() < Gfx::Gfx12 || entry.counters.iter().all(|own| own.kind == LOCAL);
        for n in (first..first + count).filter(|n| !entry.access.form.leaves(usize::from(n - first))) {
            if n < 256 {
                let value = wave.sreg(Reg(n)) ^ machine.random() as u32;
                wave.set_unknown(Reg(n), value, u32::MAX, why);
                continue;
            }
            // What the load will leave as it is stays known; of the rest nothing may seem to be there already.
            let at = usize::from(n - 256);
            let loaded = match entry.access.form.half().filter(|_| n == first) {
                Some(true) => 0xffff_0000,
                Some(false) => 0xffff,
                None => u32::MAX,
            };
            for lane in bits(entry.access.lanes) {
                let noise = machine.random() as u32 & loaded;
                if let Some(place) = wave.v.get_mut(at) {
                    place[lane] ^= noise;
                }
            }
            let lanes = entry.access.lanes;
            if ordered && wave.pending.writes_before(&entry, Reg(n), lanes) {
                wave.set_awaited_lanes(at as u16, lanes, why);
                continue;
            }
            let mut unknown = splat(loaded);
            if let Some(old) = wave.unknown.as_ref().and_then(|state| state.v.get(at)) {
                unknown.iter_mut().zip(old).for_each(|(place, old)| *place |= old);
            }
            wave.set_unknown_lanes(at as u16, entry.access.lanes, &unknown, why);
        }
    }
    wave.pending.entries.push_back(entry);
}

/// From gfx11 on loads into the two halves of a register may be under way at once. The earlier one is done before the other
/// begins, so that neither seems to overwrite what the other loads.
fn settle_other_half(machine: &mut Machine<'_>, wave: &mut Wave, first: u16, high: bool) {
    if machine.gpu.generation() < Gfx::Gfx11 {
        return;
    }
    for at in 0..wave.pending.entries.len() {
        let entry = &wave.pending.entries[at];
        let same = entry.registers.is_some_and(|(own, _)| own == first);
        if same && !entry.done && entry.access.form.half() == Some(!high) {
            wave.pending.entries[at].done = true;
            reach(machine, wave, at);
            arrive(machine, wave, at);
        }
    }
}

/// Makes one be done if a counter is full: the oldest, or of those that have no order any.
fn make_room(machine: &mut Machine<'_>, wave: &mut Wave, counter: WaitCounter) {
    let filling = wave.pending.entries.iter().filter(|entry| entry.fills(counter).is_some()).count();
    if filling < counter.most(machine.gpu.generation()) as usize {
        return;
    }
    let choices = wave.pending.first_done(counter).count();
    let choice = if choices > 1 { machine.random() as usize % choices } else { 0 };
    let Some(at) = wave.pending.first_done(counter).nth(choice) else { return };
    // What is counted with it comes right before it.
    let mut first = at;
    while first > 0 && wave.pending.entries[first - 1].shares {
        first -= 1;
    }
    for at in (first..=at).rev() {
        push_out(machine, wave, at, counter);
    }
}

/// A counter counts an access no longer, though nobody has waited for it.
fn push_out(machine: &mut Machine<'_>, wave: &mut Wave, at: usize, counter: WaitCounter) {
    let Some(entry) = wave.pending.entries.get_mut(at) else { return };
    entry.counters.iter_mut().filter(|c| c.counter == counter).for_each(|counted| counted.full = true);
    let past = entry.is_past();
    if past || counter != WaitCounter::Exp && entry.spare != Some(counter) {
        reach(machine, wave, at);
    }
    if past {
        wave.pending.forget(at);
    }
}

/// Lets time pass: some accesses reach memory.
pub(super) fn pass_time(machine: &mut Machine<'_>, wave: &mut Wave) {
    if wave.pending.entries.is_empty() || machine.random() & 3 != 0 {
        return;
    }
    let is_open = |entry: &PendingAccess| entry.read.is_none();
    let open = wave.pending.entries.iter().filter(|entry| is_open(entry)).count();
    if open == 0 {
        return;
    }
    let chosen = machine.random() as usize % open;
    let mut all = wave.pending.entries.iter().enumerate().filter(|(_, entry)| is_open(entry));
    if let Some((at, _)) = all.nth(chosen) {
        reach(machine, wave, at);
    }
}

/// Does an access, and before it the earlier ones of its path.
fn reach(machine: &mut Machine<'_>, wave: &mut Wave, at: usize) {
    let Some(path) = wave.pending.entries.get(at).map(|entry| entry.path) else { return };
    for earlier in 0..=at {
        let entry = &wave.pending.entries[earlier];
        let before = earlier == at || entry.path == path && path != Path::Scalar;
        if before && entry.read.is_none() {
            let access = entry.access.clone();
            let read = apply::perform(machine, wave, &access);
            wave.pending.entries[earlier].read = Some(read);
        }
    }
}

/// Waits until at most so many of a counter are under way.
pub(super) fn wait(machine: &mut Machine<'_>, wave: &mut Wave, counter: WaitCounter, most: u32) {
    if wave.pending.entries.is_empty() {
        return;
    }
    if !wave.pending.decide(counter, most) {
        return;
    }
    for at in 0..wave.pending.entries.len() {
        let entry = &mut wave.pending.entries[at];
        if !entry.counted(counter).is_some_and(|counted| counted.over) {
            continue;
        }
        entry.counters.retain(|counted| counted.counter != counter);
        entry.locks = entry.locks.filter(|locks| locks.counter != counter);
        let spare = entry.spare;
        let finished =
            entry.counters.iter().all(|c| c.counter == WaitCounter::Exp || Some(c.counter) == spare);
        if finished && !entry.done {
            entry.done = true;
            reach(machine, wave, at);
            arrive(machine, wave, at);
        }
    }
    wave.pending.entries.retain(|entry| !(entry.done && entry.counters.is_empty()));
}

/// Puts the result of an access that has been waited for into registers.
fn arrive(machine: &mut Machine<'_>, wave: &mut Wave, at: usize) {
    let entry = &mut wave.pending.entries[at];
    let read = entry.read.clone().unwrap_or_default();
    let mut access = entry.access.clone();
    let registers = entry.registers.take();
    // From now on nothing is written by it.
    entry.access.dst = Dst::None;
    if entry.lost {
        access.dst = Dst::None;
    }
    let later = registers.map_or(Vec::new(), |registers| awaited(wave, at, registers, access.lanes));
    if later.is_empty() {
        return apply::deliver(machine, wave, &access, &read);
    }
    // Later loads are done after it, so it does not overwrite what they load.
    let mut behind = wave.pending.entries.split_off(at + 1);
    apply::deliver(machine, wave, &access, &read);
    wave.pending.entries.append(&mut behind);
    for (n, lanes, why) in later {
        wave.set_awaited_lanes(n, lanes, why);
    }
}

/// Vector registers among some that loads after an entry will write, with their lanes: what the entry loads is not seen there. If it is not lost, they are done in order.
fn awaited(wave: &Wave, at: usize, (first, count): (u16, u16), lanes: u64) -> Vec<(u16, u64, Missing)> {
    let mut found = Vec::new();
    for later in wave.pending.entries.iter().skip(at + 1) {
        let Some((own, own_count)) = later.registers else { continue };
        let at = later.access.at;
        let counter = later.counters.first().map_or(WaitCounter::Vm, |counted| counted.counter);
        let why = if later.lost { Missing::OverwrittenLoad { at } } else { Missing::Load { at, counter } };
        for n in first.max(own).max(256)..(first + count).min(own + own_count) {
            if later.writes(Reg(n), lanes) {
                found.push((n - 256, lanes & later.access.lanes, why));
            }
        }
    }
    found
}

/// Everything of a wave that has ended reaches memory.
pub(super) fn finish(machine: &mut Machine<'_>, wave: &mut Wave) {
    for at in 0..wave.pending.entries.len() {
        reach(machine, wave, at);
    }
    wave.pending.entries.clear();
}

/// Reports registers that are written while they may still be read.
pub(super) fn check_locks(
    machine: &mut Machine<'_>,
    wave: &Wave,
    writes: &unwedge_isa::amdgcn::effects::Regs,
) {
    if wave.pending.entries.iter().all(|entry| entry.locks.is_none()) {
        return;
    }
    let found =
        writes.iter().find_map(|reg| wave.pending.locked(reg).map(|(at, counter)| (reg, at, counter)));
    if let Some((reg, at, counter)) = found {
        machine.fault(wave, FaultKind::StillRead(reg, at, counter));
    }
}
