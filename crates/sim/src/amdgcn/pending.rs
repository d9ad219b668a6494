//! Instructions under way: with adversarial timing an access touches memory at any time until it must have, and its result
//! is not known until it has been waited for.
//!
//! Of one wave, accesses to one memory by one path are done in order. What a counter says: an access is certain to be done
//! if it and the later ones that cannot overtake it are more than the wait allows.

use super::apply::{Access, Action, Dst, Read, Space};
use super::counters::Counter;
use super::fault::{Kind, Missing};
use super::group::Group;
use super::operand::splat;
use super::wave::{SHARED_APERTURE, Wave, bits};
use std::collections::VecDeque;
use unwedge_isa::amdgcn::Reg;

/// Kinds of accesses that overtake each other: scalar memory even overtakes itself.
pub(super) const UNORDERED: u8 = 0;

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
    /// Counters it is still under way for, each with the kind that is in order among itself.
    counters: Vec<(Counter, u8)>,
    /// A counter whose fall says nothing of its result: that of LDS if no lane is there, that of memory if all are.
    spare: Option<Counter>,
    /// Registers it may still read, until a counter says otherwise.
    locks: Option<Locks>,
    /// It is counted with the one behind it: an instruction with results in two places.
    shares: bool,
}

/// Registers that may still be read, until a counter says otherwise.
#[derive(Debug, Clone, Copy)]
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

impl Entry {
    fn registers(&self) -> Option<(u16, u16)> {
        let dwords = |access: &Access| match access.action {
            Action::Atomic { returns: false, .. } | Action::Store | Action::FromLds(_) => 0,
            _ => access.form.registers().unwrap_or_else(|| {
                access.pieces.iter().map(|piece| u16::from(piece.bytes.div_ceil(4))).sum()
            }),
        };
        let count = dwords(&self.access);
        match self.access.dst {
            Dst::Vgpr(n) if count > 0 => Some((256 + u16::from(n), count)),
            Dst::Scalar(reg) if count > 0 && reg != Reg::NULL => Some((reg.0, count)),
            _ => None,
        }
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

    /// The load under way, if there is one, that will overwrite a register.
    pub(super) fn writes(&self, reg: Reg) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let found = self.entries.iter().find(|entry| {
            entry.registers().is_some_and(|(first, count)| {
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

impl Group<'_> {
    /// Puts off an access.
    pub(super) fn defer(
        &mut self,
        wave: &mut Wave,
        access: Access,
        counters: &[(Counter, u8)],
        locks: Option<Locks>,
    ) {
        self.put_off(wave, access, None, counters, locks);
    }

    /// Puts off only the result, which is there already.
    pub(super) fn defer_ready(
        &mut self,
        wave: &mut Wave,
        access: Access,
        read: Read,
        counters: &[(Counter, u8)],
        locks: Option<Locks>,
    ) {
        self.put_off(wave, access, Some(read), counters, locks);
    }

    fn put_off(
        &mut self,
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
        let entry = Entry {
            access,
            path,
            read,
            done: false,
            counters: counters.to_vec(),
            spare,
            locks,
            shares: false,
        };
        if let Some((first, count)) = entry.registers() {
            let why = Missing::Load { at: entry.access.at, counter };
            for n in (first..first + count).filter(|n| !entry.access.form.leaves(usize::from(n - first))) {
                if n < 256 {
                    let value = wave.sreg(Reg(n)) ^ self.random() as u32;
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
                    let noise = self.random() as u32 & loaded;
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

    /// Lets time pass: some accesses reach memory.
    pub(super) fn pass_time(&mut self, wave: &mut Wave) {
        if wave.pending.entries.is_empty() || self.random() & 3 != 0 {
            return;
        }
        let open: Vec<usize> =
            (0..wave.pending.entries.len()).filter(|at| wave.pending.entries[*at].read.is_none()).collect();
        if open.is_empty() {
            return;
        }
        let at = open[self.random() as usize % open.len()];
        self.reach(wave, at);
    }

    /// Does an access, and before it the earlier ones of its path.
    fn reach(&mut self, wave: &mut Wave, at: usize) {
        let Some(path) = wave.pending.entries.get(at).map(|entry| entry.path) else { return };
        for earlier in 0..=at {
            let entry = &wave.pending.entries[earlier];
            let before = earlier == at || entry.path == path && path != Path::Scalar;
            if before && entry.read.is_none() {
                let access = entry.access.clone();
                let read = self.perform(wave, &access);
                wave.pending.entries[earlier].read = Some(read);
            }
        }
    }

    /// Waits until at most so many of a counter are under way.
    pub(super) fn wait(&mut self, wave: &mut Wave, counter: Counter, most: u32) {
        if wave.pending.entries.is_empty() {
            return;
        }
        let kinds: Vec<Option<u8>> = wave
            .pending
            .entries
            .iter()
            .map(|entry| entry.counters.iter().find(|(c, _)| *c == counter).map(|(_, kind)| *kind))
            .collect();
        for (at, kind) in kinds.iter().enumerate() {
            let Some(kind) = *kind else { continue };
            // Those that are certainly not done before it.
            let behind = match kind {
                UNORDERED => 1,
                _ => {
                    let later = kinds.iter().zip(&wave.pending.entries).skip(at);
                    later.filter(|(other, entry)| **other == Some(kind) && !entry.shares).count() as u32
                }
            };
            if behind > most {
                let entry = &mut wave.pending.entries[at];
                entry.counters.retain(|(c, _)| *c != counter);
                entry.locks = entry.locks.filter(|locks| locks.counter != counter);
                let spare = entry.spare;
                let finished = entry.counters.iter().all(|(c, _)| *c == Counter::Exp || Some(*c) == spare);
                if finished && !entry.done {
                    entry.done = true;
                    self.reach(wave, at);
                    self.arrive(wave, at);
                }
            }
        }
        wave.pending.entries.retain(|entry| !(entry.done && entry.counters.is_empty()));
    }

    /// Puts the result of an access that has been waited for into registers.
    fn arrive(&mut self, wave: &mut Wave, at: usize) {
        let entry = &mut wave.pending.entries[at];
        let read = entry.read.clone().unwrap_or_default();
        let mut access = entry.access.clone();
        let registers = entry.registers();
        // From now on nothing is written by it.
        entry.access.dst = Dst::None;
        if let (Some((first, count)), Some(state)) = (registers, &wave.unknown) {
            // What was written meanwhile was lost, or came too early.
            let lost = (first..first + count).any(|n| {
                let why =
                    if n >= 256 { state.why_v[usize::from(n) - 256] } else { state.why_s[usize::from(n)] };
                why == Missing::OverwrittenLoad { at: access.at }
            });
            if lost {
                access.dst = Dst::None;
            }
        }
        self.deliver(wave, &access, &read);
    }

    /// Everything of a wave that has ended reaches memory.
    pub(super) fn finish(&mut self, wave: &mut Wave) {
        for at in 0..wave.pending.entries.len() {
            self.reach(wave, at);
        }
        wave.pending.entries.clear();
    }

    /// Reports registers that are written while they may still be read.
    pub(super) fn check_locks(&mut self, wave: &Wave, writes: &unwedge_isa::amdgcn::effects::Regs) {
        if wave.pending.entries.iter().all(|entry| entry.locks.is_none()) {
            return;
        }
        let found =
            writes.iter().find_map(|reg| wave.pending.locked(reg).map(|(at, counter)| (reg, at, counter)));
        if let Some((reg, at, counter)) = found {
            self.fault(wave, Kind::StillRead(reg, at, counter));
        }
    }
}
