//! What differs between draws: registers, loaded state, shaders, sizes.
//!
//! A [`Recorder`] writes down what the draws of a submit have, [`align`] finds which draw is which, a [`Comparer`]
//! gives the differences with the draws they hold for. Code and loaded state are compared by contents, wherever they lie.
//! Never: formatting; what nothing has written differs from what something has.

mod align;
mod record;

pub use align::{Pairing, align};
pub use record::{Contents, Mark, Record, Recorder, STAGES, Slot};

use crate::Registers;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use unwedge_hw::Gpu;

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Number of indices or vertices.
    Count,
    /// Number of instances.
    Instances,
    /// The pass: its place in [`Pass::ALL`](crate::query::Pass::ALL).
    Pass,
    /// The code of the shader of a stage of [`STAGES`].
    Shader(u8),
    /// State that CP_LOAD_STATE has loaded.
    Load(Slot),
    /// The register at this offset; of two dwords the low one's.
    Register(u32),
}

/// A value of a subject: a number, or the hash of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectValue {
    /// The number or hash.
    pub bits: u64,
    /// Dwords of the contents.
    pub dwords: u32,
    /// Of a register of two dwords both are known.
    pub whole: bool,
}

/// Draws in a row for which a subject has one value here and another there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Numbers of the first of them.
    pub first: (u32, u32),
    /// Numbers of the last of them.
    pub last: (u32, u32),
    /// The values; `None` where nothing has been written, or is not known.
    pub values: (Option<SubjectValue>, Option<SubjectValue>),
}

/// All differences of a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The first stretches.
    pub stretches: Vec<Stretch>,
    /// All stretches.
    pub stretches_in_all: u64,
    /// Draws for which it differs.
    pub draws: u64,
    /// The values are addresses, of the same place in buffers of the same size, for all these draws.
    pub same_place: bool,
}

/// What differs between two submits.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Which draw is which.
    pub pairs: Vec<Pairing>,
    /// The differences between draws that both have.
    pub differences: BTreeMap<Subject, Difference>,
}

/// Stretches kept of one subject.
const STRETCHES: usize = 8;

/// What one of the two has at a draw.
struct Side<'r> {
    record: &'r Record,
    regs: Registers,
    loads: BTreeMap<Slot, Option<Contents>>,
}

/// What a comparison has to know of registers.
pub trait RegisterFacts {
    /// One past the last offset.
    fn registers(&self) -> usize;
    /// Which dword of a register of two dwords this offset is; `None` for registers of one.
    fn half(&self, reg: u32) -> Option<u32>;
    /// The register may hold an address.
    fn may_be_address(&self, reg: u32) -> bool;
}

impl RegisterFacts for Gpu<'_> {
    fn registers(&self) -> usize {
        if self.generation().is_64bit() { 0x4_0000 } else { 0x8000 }
    }

    fn half(&self, reg: u32) -> Option<u32> {
        self.reg(reg).filter(|r| r.width() == 64).map(|r| r.dword())
    }

    /// Before a5xx addresses are plain numbers to the database: what lies in a buffer is one.
    fn may_be_address(&self, reg: u32) -> bool {
        self.reg(reg).and_then(|r| r.ty()).is_none_or(|ty| !ty.is_bitset())
    }
}

/// The registers of other GPUs: so many, each compared by itself. Any may hold an address.
#[derive(Clone, Copy, Debug)]
pub struct PlainRegisters(pub usize);

impl RegisterFacts for PlainRegisters {
    fn registers(&self) -> usize {
        self.0
    }

    fn half(&self, _reg: u32) -> Option<u32> {
        None
    }

    fn may_be_address(&self, _reg: u32) -> bool {
        true
    }
}

/// Keeps the registers of both sides from one submit to the next.
pub struct Comparer<'d> {
    facts: Box<dyn RegisterFacts + 'd>,
    regs: (Registers, Registers),
    /// Registers that may differ at the end of the submit before.
    differing: BTreeSet<Subject>,
    /// Addresses that mean the same place in buffers of the same size are told apart from others.
    places: bool,
}

impl<'d> Comparer<'d> {
    /// Nothing seen yet. With `places`, see [`Difference::same_place`].
    pub fn new(facts: impl RegisterFacts + 'd, places: bool) -> Comparer<'d> {
        let size = facts.registers();
        let regs = (Registers::new(size), Registers::new(size));
        Comparer { facts: Box::new(facts), regs, differing: BTreeSet::new(), places }
    }

    /// Compares two submits, of both of which every submit before that was recorded has been compared.
    pub fn compare(&mut self, a: &Record, b: &Record) -> Comparison {
        self.compare_paired(a, b, align(&a.draws, &b.draws))
    }

    /// Compares two submits with draws paired so.
    pub fn compare_paired(&mut self, a: &Record, b: &Record, pairs: Vec<Pairing>) -> Comparison {
        let regs = std::mem::take(&mut self.regs);
        let mut a = Side { record: a, regs: regs.0, loads: BTreeMap::new() };
        let mut b = Side { record: b, regs: regs.1, loads: BTreeMap::new() };
        let mut differences: BTreeMap<Subject, Difference> = BTreeMap::new();
        let mut open: BTreeMap<Subject, Stretch> = BTreeMap::new();
        // What differed at the end of the submit before differs still.
        let mut touched = std::mem::take(&mut self.differing);
        let mut last = (0, 0);
        let mut paired = 0_u64;
        let mut since: BTreeMap<Subject, u64> = BTreeMap::new();
        for pair in &pairs {
            let (i, j) = match *pair {
                Pairing::Both(i, j) => (Some(i), Some(j)),
                Pairing::OnlyA(i) => (Some(i), None),
                Pairing::OnlyB(j) => (None, Some(j)),
            };
            i.iter().for_each(|&i| self.apply(&mut a, i, &mut touched));
            j.iter().for_each(|&j| self.apply(&mut b, j, &mut touched));
            let (Some(x), Some(y)) =
                (i.and_then(|i| a.record.draws.get(i)), j.and_then(|j| b.record.draws.get(j)))
            else {
                continue;
            };
            touched.extend([Subject::Count, Subject::Instances, Subject::Pass]);
            touched.extend((0..STAGES.len() as u8).map(Subject::Shader));
            let now = (x.number, y.number);
            for subject in std::mem::take(&mut touched) {
                let values = (self.value(&a, x, subject), self.value(&b, y, subject));
                if open.get(&subject).is_some_and(|stretch| stretch.values == values) {
                    continue;
                }
                if let Some(mut stretch) = open.remove(&subject) {
                    stretch.last = last;
                    let draws = paired - since.remove(&subject).unwrap_or(paired);
                    self.close(&a, &b, subject, stretch, draws, &mut differences);
                }
                if values.0 != values.1 {
                    open.insert(subject, Stretch { first: now, last: now, values });
                    since.insert(subject, paired);
                }
            }
            last = now;
            paired += 1;
        }
        // State loaded before counts no more; registers hold, compared or not.
        let still = touched.into_iter().chain(open.keys().copied());
        self.differing = still.filter(|subject| matches!(subject, Subject::Register(_))).collect();
        for (subject, mut stretch) in open {
            stretch.last = last;
            let draws = paired - since.remove(&subject).unwrap_or(paired);
            self.close(&a, &b, subject, stretch, draws, &mut differences);
        }
        self.regs = (a.regs, b.regs);
        Comparison { pairs, differences }
    }

    /// The subject that a dword is of.
    fn register(&self, reg: u32) -> Subject {
        let second = self.facts.half(reg) == Some(1);
        Subject::Register(if second { reg.saturating_sub(1) } else { reg })
    }

    /// Makes the state of a side that of one of its draws.
    fn apply(&self, side: &mut Side<'_>, draw: usize, touched: &mut BTreeSet<Subject>) {
        let Some(mark) = side.record.draws.get(draw) else { return };
        let span = |range: &Range<u32>| range.start as usize..range.end as usize;
        for change in side.record.changes.get(span(&mark.changes)).unwrap_or_default() {
            match change.value() {
                Some(value) => side.regs.set(change.reg(), value),
                None => side.regs.forget(change.reg()),
            }
            touched.insert(self.register(change.reg()));
        }
        for &(slot, contents) in side.record.loads.get(span(&mark.loads)).unwrap_or_default() {
            side.loads.insert(slot, contents);
            touched.insert(Subject::Load(slot));
        }
    }

    fn value(&self, side: &Side<'_>, mark: &Mark, subject: Subject) -> Option<SubjectValue> {
        let number = |n: u32| SubjectValue { bits: n.into(), dwords: 0, whole: true };
        let contents = |c: Contents| SubjectValue { bits: c.hash, dwords: c.dwords, whole: true };
        match subject {
            Subject::Count => mark.count.map(number),
            Subject::Instances => mark.instances.map(number),
            Subject::Pass => mark.pass.map(|pass| number(pass as u32)),
            Subject::Shader(stage) => {
                let shaders = side.record.shaders.get(mark.shaders as usize)?;
                shaders.get(usize::from(stage)).copied().flatten().map(contents)
            }
            Subject::Load(slot) => side.loads.get(&slot).copied().flatten().map(contents),
            Subject::Register(reg) => {
                let wide = self.facts.half(reg) == Some(0);
                let (low, high) = (side.regs.get(reg), reg.checked_add(1).and_then(|r| side.regs.get(r)));
                match (low, high.filter(|_| wide)) {
                    (None, None) => None,
                    (low, high) => Some(SubjectValue {
                        bits: u64::from(low.unwrap_or(0)) | u64::from(high.unwrap_or(0)) << 32,
                        dwords: 0,
                        whole: !wide || (low.is_some() && high.is_some()),
                    }),
                }
            }
        }
    }

    fn close(
        &self,
        a: &Side<'_>,
        b: &Side<'_>,
        subject: Subject,
        stretch: Stretch,
        draws: u64,
        differences: &mut BTreeMap<Subject, Difference>,
    ) {
        let same = self.places && self.same_place(a, b, subject, stretch.values);
        let difference =
            differences.entry(subject).or_insert(Difference { same_place: true, ..Difference::default() });
        difference.same_place &= same;
        difference.stretches_in_all = difference.stretches_in_all.saturating_add(1);
        difference.draws = difference.draws.saturating_add(draws);
        if difference.stretches.len() < STRETCHES {
            difference.stretches.push(stretch);
        }
    }

    /// The values are addresses of the same place in buffers of the same size.
    fn same_place(
        &self,
        a: &Side<'_>,
        b: &Side<'_>,
        subject: Subject,
        values: (Option<SubjectValue>, Option<SubjectValue>),
    ) -> bool {
        let Subject::Register(reg) = subject else { return false };
        let (Some(x), Some(y)) = values else { return false };
        let address = self.facts.may_be_address(reg);
        let place = |side: &Side<'_>, iova: u64| {
            let after = side.record.buffers.partition_point(|&(start, _)| start <= iova);
            let &(start, size) = side.record.buffers.get(after.checked_sub(1)?)?;
            let offset = iova.checked_sub(start)?;
            (offset < size).then_some((offset, size))
        };
        address && matches!((place(a, x.bits), place(b, y.bits)), (Some(p), Some(q)) if p == q)
    }
}
