//! What may be pending at a place of the code.
//!
//! Lattice: a set of pending things, each told by what it is and the instruction it came from. Of one thing, more registers and a
//! smaller age (less has happened since) are higher; the join of two places has all of both. Ages stop counting at the
//! largest distance that matters and sets are condensed when they get long, so chains are finite.

/// Registers of one file, a bit each; accumulation registers follow the other vector registers.
pub(super) type RegSet = [u64; 8];

pub(super) const EMPTY: RegSet = [0; 8];
pub(super) const EVERY: RegSet = [u64::MAX; 8];

/// Something that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingEvent {
    /// What: a number of [`super::waits`] or [`super::hazards`].
    pub kind: u8,
    /// How much has happened since.
    pub age: u8,
    /// Something else the kind counts or remembers.
    pub extra: u8,
    /// How many FLAT instructions have begun since, of waits.
    pub flats: u8,
    /// Whether `regs` are vector registers.
    pub vector: bool,
    /// The instruction.
    pub op: u32,
    pub regs: RegSet,
}

/// Things pending of one sort: waits, or hazards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PendingList {
    pub all: Vec<PendingEvent>,
}

/// The length beyond which a list is condensed.
const LONG: usize = 160;

impl PendingList {
    pub fn push(&mut self, new: PendingEvent) {
        let same = |p: &&mut PendingEvent| (p.kind, p.op, p.vector) == (new.kind, new.op, new.vector);
        match self.all.iter_mut().find(same) {
            Some(have) => {
                unite(&mut have.regs, &new.regs);
                have.age = have.age.min(new.age);
                have.extra = have.extra.min(new.extra);
                have.flats = have.flats.min(new.flats);
            }
            None => self.all.push(new),
        }
        if self.all.len() > LONG {
            self.condense();
        }
    }

    /// Takes in what is pending elsewhere; whether that changed anything.
    pub fn join(&mut self, other: &PendingList) -> bool {
        let mut changed = false;
        for new in &other.all {
            let same = |p: &&mut PendingEvent| (p.kind, p.op, p.vector) == (new.kind, new.op, new.vector);
            match self.all.iter_mut().find(same) {
                Some(have) => {
                    let before = *have;
                    unite(&mut have.regs, &new.regs);
                    have.age = have.age.min(new.age);
                    have.extra = have.extra.min(new.extra);
                    have.flats = have.flats.min(new.flats);
                    changed |= *have != before;
                }
                None => {
                    // What is condensed stands for all of its kind and age.
                    let covered = self.all.len() >= LONG
                        && self.all.iter().any(|p| {
                            (p.kind, p.vector) == (new.kind, new.vector)
                                && p.age <= new.age
                                && p.extra <= new.extra
                                && p.flats <= new.flats
                                && contains(&p.regs, &new.regs)
                        });
                    if !covered {
                        self.all.push(*new);
                        changed = true;
                    }
                }
            }
        }
        if self.all.len() > LONG {
            self.condense();
        }
        changed
    }

    /// Makes one of all that are of the same kind and age.
    pub fn condense(&mut self) {
        let of = |p: &PendingEvent| (p.kind, p.vector, p.age, p.extra, p.flats);
        self.all.sort_unstable_by_key(|p| (of(p), p.op));
        self.all.dedup_by(|new, have| {
            let same = of(new) == of(have);
            if same {
                unite(&mut have.regs, &new.regs);
            }
            same
        });
    }

    /// How much is pending: it becomes less if anything is forgotten.
    pub fn weight(&self) -> u32 {
        self.all.iter().map(|p| 1 + p.regs.iter().map(|word| word.count_ones()).sum::<u32>()).sum()
    }

    pub fn forget(&mut self, mut over: impl FnMut(&PendingEvent) -> bool) {
        if !self.all.is_empty() {
            self.all.retain(|p| !over(p));
        }
    }
}

pub(super) fn unite(set: &mut RegSet, other: &RegSet) {
    for (word, more) in set.iter_mut().zip(other) {
        *word |= more;
    }
}

pub(super) fn contains(set: &RegSet, other: &RegSet) -> bool {
    set.iter().zip(other).all(|(word, part)| part & !word == 0)
}

/// Adds registers `first` to `first + count - 1` of a file.
pub(super) fn add(set: &mut RegSet, first: u16, count: u8) {
    let end = first + u16::from(count);
    if first / 64 == (end.max(1) - 1) / 64 {
        if let Some(word) = set.get_mut(usize::from(first / 64)) {
            *word |= mask(count.into()) << (first % 64);
        }
        return;
    }
    for (number, word) in set.iter_mut().enumerate() {
        let base = 64 * number as u16;
        let (from, to) = (first.clamp(base, base + 64), end.clamp(base, base + 64));
        if from < to {
            *word |= mask(to - from) << (from - base);
        }
    }
}

/// The lowest `count` bits.
fn mask(count: u16) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// Whether two sets have a register in common.
pub(super) fn meet(a: &RegSet, b: &RegSet) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

/// The lowest register of a set and how many follow each other from it on.
pub(super) fn first_of(set: &RegSet) -> Option<(u16, u16)> {
    let has = |reg: u16| set.get(usize::from(reg / 64)).is_some_and(|word| word >> (reg % 64) & 1 != 0);
    let first = (0..512).find(|&reg| has(reg))?;
    let end = (first..512).find(|&reg| !has(reg)).unwrap_or(512);
    Some((first, end - first))
}

pub(super) fn both(a: &RegSet, b: &RegSet) -> RegSet {
    std::array::from_fn(|i| a[i] & b[i])
}
