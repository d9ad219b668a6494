//! Instructions under way: with adversarial timing an access touches memory at any time until it must have, and its result
//! is not known until it has been waited for.
//!
//! Of one wave, accesses to one memory by one path are done in order. What a counter says: an access is certain to be done
//! if it and the later ones that cannot overtake it are more than the wait allows. A counter that is full makes one be done
//! before the next is issued: what it does to memory is done then, but its result stays unknown until it is waited for.

use super::apply::{self, Access, Action, Dst, Form, Read, Space};
use super::counters::Counter;
use super::fault::{Kind, Missing};
use super::machine::Machine;
use super::operand::splat;
use super::wave::{SHARED_APERTURE, Wave, bits};
use std::collections::VecDeque;
use unwedge_isa::amdgcn::Reg;

/// Kinds of accesses that overtake each other: scalar memory even overtakes itself.
pub(super) const UNORDERED: u8 = 0;
/// How many kinds there are.
const KINDS: usize = 8;

/// The path by which accesses of a wave reach memory in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    Vector,
    Shared,
    Scalar,
}

#[derive(Debug)]
struct Entry {
    access: Access,
    path: Path,
    /// What was read, once it was.
    read: Option<Read>,
    done: bool,
    /// Counters it is still under way for.
    counters: Vec<Counted>,
    /// Registers that will be written: the first, and how many.
    registers: Option<(u16, u16)>,
    /// A counter whose fall says nothing of its result: that of LDS if no lane is there, that of memory if all are.
    spare: Option<Counter>,
    /// Registers it may still read, until a counter says otherwise.
    locks: Option<Locks>,
    /// It is counted with the one behind it: an instruction with results in two places.
    shares: bool,
}

/// An access as one counter counts it.
#[derive(Debug, Clone, Copy)]
struct Counted {
    counter: Counter,
    /// Which ones are in order among themselves.
    kind: u8,
    /// The counter was full, and it was done to make room: it counts no longer, but nobody has waited for it.
    full: bool,
    /// Later ones of its kind that were counted and are kept no longer.
    gone: u32,
    /// The wait that is being done says that it is done.
    over: bool,
}

/// Registers that may still be read, until a counter says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Locks {
    counter: Counter,
    ranges: [(Reg, u8); 4],
}

impl Locks {
    pub(super) fn new(counter: Counter) -> Locks {
        Locks { counter, ranges: [(Reg::NULL, 0); 4] }
    }

    /// Adds registers; there is place for four ranges.
    pub(super) fn add(&mut self, first: Reg, count: u8) {
        if let Some(place) = self.ranges.iter_mut().find(|(_, count)| *count == 0) {
            *place = (first, count);
        }
    }

    fn has(&self, reg: Reg) -> bool {
        self.ranges.iter().any(|(first, count)| (first.0..first.0 + u16::from(*count)).contains(&reg.0))
    }
}

/// What of a wave is under way.
#[derive(Debug, Default)]
pub(super) struct Pending {
    entries: VecDeque<Entry>,
}

/// Registers that an access will write: the first, and how many.
fn registers(access: &Access) -> Option<(u16, u16)> {
    let count = match access.action {
        Action::Atomic { returns: false, .. } | Action::Store | Action::FromLds(_) => 0,
        _ => access
            .form
            .registers()
            .unwrap_or_else(|| access.pieces.iter().map(|piece| u16::from(piece.bytes.div_ceil(4))).sum()),
    };
    match access.dst {
        Dst::Vgpr(n) if count > 0 => Some((256 + u16::from(n), count)),
        Dst::Scalar(reg) if count > 0 && reg != Reg::NULL => Some((reg.0, count)),
        _ => None,
    }
}

impl Entry {
    /// How it is counted by a counter.
    fn counted(&self, counter: Counter) -> Option<&Counted> {
        self.counters.iter().find(|counted| counted.counter == counter)
    }

    /// Whether it fills a place of a counter, and as which kind.
    fn fills(&self, counter: Counter) -> Option<u8> {
        self.counted(counter).filter(|counted| !counted.full && !self.shares).map(|counted| counted.kind)
    }

    /// Whether no counter counts it: only a wait is missing.
    fn is_past(&self) -> bool {
        self.counters.iter().all(|counted| counted.full)
    }

    /// Whether everything an earlier one writes or reads is written and read by this one.
    fn covers(&self, earlier: &Entry) -> bool {
        let written = match (earlier.registers, self.registers) {
            (None, _) => true,
            (Some((first, count)), Some((own, own_count))) => {
                let ends_within = first + count <= own + own_count;
                own == first && ends_within || self.access.form == Form::Dwords && own < first && ends_within
            }
            _ => false,
        };
        let same_form = earlier.registers.is_none() || earlier.access.form == self.access.form;
        let same_counters = |a: &Counted| self.counted(a.counter).is_some_and(|b| a.kind == b.kind);
        let read = earlier.locks.is_none() || earlier.locks == self.locks;
        written && same_form && read && earlier.counters.iter().all(same_counters)
    }
}

impl Pending {
    /// How many accesses are under way.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Counts the last access with the next one, as parts of one instruction.
    pub(super) fn share(&mut self) {
        if let Some(entry) = self.entries.back_mut() {
            entry.shares = true;
        }
    }

    /// Marks what a wait says to be done of a counter; whether there is any.
    fn decide(&mut self, counter: Counter, most: u32) -> bool {
        let mut any = false;
        // By kind: those that are certainly not done before what comes earlier.
        let mut behind = [0u32; KINDS];
        for entry in self.entries.iter_mut().rev() {
            let shares = entry.shares;
            let Some(counted) = entry.counters.iter_mut().find(|counted| counted.counter == counter) else {
                continue;
            };
            let later = match counted.kind {
                UNORDERED => 1,
                kind => {
                    let later = &mut behind[usize::from(kind)];
                    *later += u32::from(!shares);
                    later.saturating_add(counted.gone)
                }
            };
            counted.over = later > most;
            any |= counted.over;
        }
        any
    }

    /// Which may be the first that is done of a counter: of each kind in order the oldest, of the others all.
    fn first_done(&self, counter: Counter) -> impl Iterator<Item = usize> {
        let mut seen = [false; KINDS];
        self.entries.iter().enumerate().filter_map(move |(at, entry)| {
            let kind = entry.fills(counter)?;
            let before = std::mem::replace(&mut seen[usize::from(kind)], true);
            (kind == UNORDERED || !before).then_some(at)
        })
    }

    /// Drops an access that no counter counts, if nothing is to become of it any more, or a later one has all its
    /// registers. Else it drops an earlier one that it has all the registers of.
    fn forget(&mut self, at: usize) {
        let Some(entry) = self.entries.get(at) else { return };
        let nothing_left = entry.registers.is_none() && entry.locks.is_none();
        let mut later = self.entries.iter().skip(at + 1);
        let found = if nothing_left || later.any(|later| later.is_past() && later.covers(entry)) {
            Some(at)
        } else {
            self.entries.iter().take(at).position(|earlier| earlier.is_past() && entry.covers(earlier))
        };
        let Some(gone) = found.and_then(|at| self.entries.remove(at).map(|entry| (at, entry))) else {
            return;
        };
        let (at, entry) = gone;
        for counted in entry.counters.iter().filter(|_| !entry.shares) {
            for earlier in self.entries.range_mut(..at) {
                let same = |c: &&mut Counted| c.counter == counted.counter && c.kind == counted.kind;
                earlier.counters.iter_mut().filter(same).for_each(|c| c.gone = c.gone.saturating_add(1));
            }
        }
    }

    /// The load under way, if there is one, that will overwrite a register.
    pub(super) fn writes(&self, reg: Reg) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let found = self.entries.iter().find(|entry| {
            entry.registers.is_some_and(|(first, count)| {
                (first..first + count).contains(&reg.0)
                    && !entry.access.form.leaves(usize::from(reg.0 - first))
            })
        });
        found.map(|entry| entry.access.at)
    }

    /// The instruction under way that may still read a register.
    pub(super) fn locked(&self, reg: Reg) -> Option<(u32, Counter)> {
        self.entries.iter().find_map(|entry| {
            let locks = entry.locks?;
            locks.has(reg).then_some((entry.access.at, locks.counter))
        })
    }
}

/// The counter of a flat access that its result does not depend on.
fn spare(access: &Access, counters: &[(Counter, u8)]) -> Option<Counter> {
    if access.space != Space::Flat {
        return None;
    }
    let local = |lane: &usize| access.address[*lane] >> 32 == SHARED_APERTURE >> 32;
    let (some, all) =
        (bits(access.lanes).any(|lane| local(&lane)), bits(access.lanes).all(|lane| local(&lane)));
    let of_lds = |counter: Counter| matches!(counter, Counter::Lgkm | Counter::Ds);
    let mut names = counters.iter().map(|(counter, _)| *counter);
    match (some, all) {
        (false, _) => names.find(|counter| of_lds(*counter)),
        (_, true) => names.find(|counter| !of_lds(*counter)),
        _ => None,
    }
}

/// Issues an access: does it at once, or as late as timing allows.
pub(super) fn issue(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    access: Access,
    counters: &[(Counter, u8)],
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
    counters: &[(Counter, u8)],
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
    counters: &[(Counter, u8)],
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
    counters: &[(Counter, u8)],
    locks: Option<Locks>,
) {
    put_off(machine, wave, access, Some(read), counters, locks);
}

fn put_off(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    access: Access,
    read: Option<Read>,
    counters: &[(Counter, u8)],
    locks: Option<Locks>,
) {
    let path = match (access.space, access.dst) {
        (_, Dst::Scalar(_)) => Path::Scalar,
        (Space::Lds | Space::Gds, _) => Path::Shared,
        _ => Path::Vector,
    };
    let counter = counters.first().map_or(Counter::Vm, |(counter, _)| *counter);
    let spare = spare(&access, counters);
    for (counter, _) in counters {
        make_room(machine, wave, *counter);
    }
    let counted = |&(counter, kind)| Counted { counter, kind, full: false, gone: 0, over: false };
    let entry = Entry {
        registers: registers(&access),
        access,
        path,
        read,
        done: false,
        counters: counters.iter().map(counted).collect(),
        spare,
        locks,
        shares: false,
    };
    if let Some((first, count)) = entry.registers {
        let why = Missing::Load { at: entry.access.at, counter };
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
            let mut unknown = splat(loaded);
            if let Some(old) = wave.unknown.as_ref().and_then(|state| state.v.get(at)) {
                unknown.iter_mut().zip(old).for_each(|(place, old)| *place |= old);
            }
            wave.set_unknown_lanes(at as u8, entry.access.lanes, &unknown, why);
        }
    }
    wave.pending.entries.push_back(entry);
}

/// Makes one be done if a counter is full: the oldest, or of those that have no order any.
fn make_room(machine: &mut Machine<'_>, wave: &mut Wave, counter: Counter) {
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
fn push_out(machine: &mut Machine<'_>, wave: &mut Wave, at: usize, counter: Counter) {
    let Some(entry) = wave.pending.entries.get_mut(at) else { return };
    entry.counters.iter_mut().filter(|c| c.counter == counter).for_each(|counted| counted.full = true);
    let past = entry.is_past();
    if past || counter != Counter::Exp && entry.spare != Some(counter) {
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
    let is_open = |entry: &Entry| entry.read.is_none();
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
pub(super) fn wait(machine: &mut Machine<'_>, wave: &mut Wave, counter: Counter, most: u32) {
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
        let finished = entry.counters.iter().all(|c| c.counter == Counter::Exp || Some(c.counter) == spare);
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
    if let (Some((first, count)), Some(state)) = (registers, &wave.unknown) {
        // What was written meanwhile was lost, or came too early.
        let lost = (first..first + count).any(|n| {
            let why = if n >= 256 { state.why_v[usize::from(n) - 256] } else { state.why_s[usize::from(n)] };
            why == Missing::OverwrittenLoad { at: access.at }
        });
        if lost {
            access.dst = Dst::None;
        }
    }
    apply::deliver(machine, wave, &access, &read);
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
        machine.fault(wave, Kind::StillRead(reg, at, counter));
    }
}
