//! Which buffers a command stream needs: those it enters or reads, those that anything it says points into, and those
//! that these point into in turn.
//!
//! Errs on the side of need. Every word of a walked stream, every register and every word of a needed buffer that could
//! be an address counts as one, whatever it is. [`Watch`] takes in the events of Adreno, which say most, [`StepWatch`] the steps
//! of any vendor. Never: what a word is for; a buffer that is reached only by arithmetic
//! of a shader's own is not found.

use crate::adreno::{AdrenoEvent, AdrenoSink, AdrenoState, AdrenoWalker, WalkerOptions};
use crate::{Flow, PacketStep, RegWrite, Registers, Step, StepSink, TroubleKind, WaitOperand, budget};
use std::mem;
use unwedge_base::{Generation, Memory};
use unwedge_hw::{DecodedValue, Gpu, ValueType, Variants};

/// Bits of the high dword of an address; above them descriptors have other things.
const HIGH: u32 = 0x1_ffff;

/// Buffers that lie over one another: needed all or none.
#[derive(Clone, Copy, Debug)]
struct OverlapSet {
    start: u64,
    end: u64,
    needed: bool,
}

/// Finds the buffers that command streams need.
#[derive(Debug)]
pub struct Reach {
    /// Sorted, apart from one another.
    places: Vec<OverlapSet>,
    /// Needed, and not looked through yet.
    fresh: Vec<usize>,
    wide: bool,
    complete: bool,
}

impl Reach {
    /// Nothing is needed yet of these buffers: address and size of each, with or without contents.
    pub fn new(generation: Generation, buffers: impl IntoIterator<Item = (u64, u64)>) -> Reach {
        Reach::of(generation.is_64bit(), buffers)
    }

    /// The same on a GPU whose addresses have 64 bits, as those of AMD and Intel.
    pub fn of_64bit(buffers: impl IntoIterator<Item = (u64, u64)>) -> Reach {
        Reach::of(true, buffers)
    }

    fn of(wide: bool, buffers: impl IntoIterator<Item = (u64, u64)>) -> Reach {
        let mut spans: Vec<(u64, u64)> =
            buffers.into_iter().map(|(iova, size)| (iova, iova.saturating_add(size.max(1)))).collect();
        spans.sort_unstable();
        let mut places: Vec<OverlapSet> = Vec::new();
        for (start, end) in spans {
            match places.last_mut() {
                Some(last) if start < last.end => last.end = last.end.max(end),
                _ => places.push(OverlapSet { start, end, needed: false }),
            }
        }
        Reach { places, fresh: Vec::new(), wide, complete: true }
    }

    fn at(&self, iova: u64) -> Option<usize> {
        let index = self.places.partition_point(|p| p.start <= iova).checked_sub(1)?;
        self.places.get(index).filter(|p| iova < p.end).map(|_| index)
    }

    /// Something points here.
    pub fn point(&mut self, iova: u64) {
        if let Some(index) = self.at(iova)
            && let Some(place) = self.places.get_mut(index)
            && !mem::replace(&mut place.needed, true)
        {
            self.fresh.push(index);
        }
    }

    /// The buffer at this address is needed.
    pub fn needs(&self, iova: u64) -> bool {
        self.at(iova).and_then(|index| self.places.get(index)).is_some_and(|p| p.needed)
    }

    /// All that the streams say was followed. If not, more may be needed than is known.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Takes in what a walk meets.
    pub fn watch<'r, 'g>(&'r mut self, gpu: Gpu<'g>) -> Watch<'r, 'g> {
        Watch { reach: self, gpu }
    }

    /// Takes in the steps of a walk on a GPU with addresses of 64 bits.
    pub fn watch_steps(&mut self) -> StepWatch<'_> {
        StepWatch { reach: self, bases: Vec::new() }
    }

    /// Everything that a stream needs when the hardware runs it, which follows what listing tools leave out.
    pub fn run(&mut self, gpu: Gpu<'_>, memory: &Memory, iova: u64, dwords: u32) {
        self.run_within(gpu, memory, iova, dwords, budget(memory));
    }

    /// The same, of no more than so many dwords. Returns how many of them are left.
    pub fn run_within(&mut self, gpu: Gpu<'_>, memory: &Memory, iova: u64, dwords: u32, budget: u64) -> u64 {
        self.point(iova);
        let Some(stream) = memory.dwords(iova) else { return budget };
        let options = WalkerOptions { linear: false, budget };
        let mut walker = AdrenoWalker::new(gpu, memory, options);
        walker.walk(stream.take(dwords as usize), Some(iova), &mut self.watch(gpu));
        walker.left()
    }

    /// What needed buffers point into is needed.
    pub fn spread(&mut self, memory: &Memory) {
        let buffers = memory.buffers();
        while let Some(place) = self.fresh.pop().and_then(|index| self.places.get(index)) {
            let (start, end) = (place.start, place.end);
            let first = buffers.partition_point(|b| b.iova < start);
            for buffer in buffers.iter().skip(first).take_while(|b| b.iova < end) {
                self.words(buffer.contents.as_deref().unwrap_or_default());
            }
        }
    }

    /// Words that may be addresses, or halves of them.
    fn words(&mut self, words: &[u32]) {
        let (Some(first), Some(last)) = (self.places.first(), self.places.last()) else { return };
        let possible = first.start..last.end;
        let following = words.iter().skip(1).chain([&0]);
        for (&low, &high) in words.iter().zip(following) {
            let iova = if self.wide { pair(low, high) } else { low.into() };
            if possible.contains(&iova) {
                self.point(iova);
            }
        }
    }

    fn register(&mut self, gpu: Gpu<'_>, state: &AdrenoState, reg: u32, value: u32) {
        if self.wide {
            let regs = state.current_regs();
            self.point(pair(value, regs.raw(reg.saturating_add(1))));
            self.point(pair(regs.raw(reg.saturating_sub(1)), value));
        } else {
            self.point(value.into());
            if let Some(ty) = gpu.reg(reg).and_then(|reg| reg.ty()).filter(|ty| is_shifted(*ty)) {
                self.value(&ty.decode(value.into(), &mut Variants::new()));
            }
        }
    }

    /// A value whose bits stand elsewhere in the register than in the address.
    fn value(&mut self, value: &DecodedValue<'_>) {
        match value {
            DecodedValue::Hex(iova) | DecodedValue::Uint(iova) | DecodedValue::Address(iova) => {
                self.point(*iova)
            }
            DecodedValue::Fields(fields) => fields.iter().for_each(|field| self.value(&field.value)),
            _ => {}
        }
    }
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high & HIGH) << 32
}

fn is_shifted(ty: ValueType<'_>) -> bool {
    ty.shr() > 0 || ty.fields().any(|(_, field)| field.shr() > 0)
}

/// A walk being watched.
#[derive(Debug)]
pub struct Watch<'r, 'g> {
    reach: &'r mut Reach,
    gpu: Gpu<'g>,
}

impl AdrenoSink for Watch<'_, '_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        let Watch { reach, gpu } = self;
        match event {
            AdrenoEvent::Packet(packet) => reach.words(packet.payload.stored()),
            AdrenoEvent::RegWrite(write) => reach.register(*gpu, state, write.reg, write.value),
            AdrenoEvent::Enter(stream) | AdrenoEvent::Missing(stream) => {
                stream.iova.into_iter().for_each(|iova| reach.point(iova));
            }
            AdrenoEvent::LoadState(load) => load.iova.into_iter().for_each(|iova| reach.point(iova)),
            AdrenoEvent::Draw(draw) => draw.indirect.into_iter().for_each(|iova| reach.point(iova)),
            AdrenoEvent::Group(group) => reach.point(group.set.iova),
            AdrenoEvent::Trouble(trouble) => {
                if matches!(trouble.kind, TroubleKind::BudgetSpent | TroubleKind::TooDeep) {
                    reach.complete = false;
                }
            }
            AdrenoEvent::PacketEnd(_) | AdrenoEvent::Leave(_) => {}
        }
        Flow::Continue
    }
}

/// Base addresses of one walk that are remembered.
const BASES: usize = 64;
/// Bits of a base address or a pointer that are flags.
const FLAGS: u64 = 0x3f;

/// Steps being watched.
///
/// # Folklore
/// - AMD's registers hold addresses of shaders and render targets in units of 256 bytes: `SPI_SHADER_PGM_LO_*`,
///   `CB_COLOR0_BASE`.
/// - Intel's commands hold pointers from the bases that STATE_BASE_ADDRESS sets: what lies at any base plus a dword of a
///   command is needed.
#[derive(Debug)]
pub struct StepWatch<'r> {
    reach: &'r mut Reach,
    /// What STATE_BASE_ADDRESS has set so far.
    bases: Vec<u64>,
}

impl StepWatch<'_> {
    fn packet(&mut self, packet: &PacketStep<'_>) {
        let words = packet.payload.stored();
        self.reach.words(words);
        if packet.name() == Some("STATE_BASE_ADDRESS") {
            for (&low, &high) in words.iter().zip(words.iter().skip(1)) {
                let base = pair(low, high) & !FLAGS;
                if self.bases.len() < BASES && self.reach.at(base).is_some() && !self.bases.contains(&base) {
                    self.bases.push(base);
                }
            }
        }
        for &base in &self.bases {
            words.iter().for_each(|&word| self.reach.point(base.saturating_add(u64::from(word) & !FLAGS)));
        }
    }

    fn write(&mut self, regs: &Registers, write: RegWrite) {
        let (before, after) = (write.reg.checked_sub(1), write.reg.saturating_add(1));
        let low = before.and_then(|reg| regs.get(reg));
        let high = regs.get(after).unwrap_or(0);
        let held = [Some((write.value, high)), Some((write.value, 0)), low.map(|low| (low, write.value))];
        for (low, high) in held.into_iter().flatten() {
            self.reach.point(pair(low, high));
            self.reach.point((u64::from(low) | u64::from(high) << 32) << 8);
        }
    }
}

impl StepSink for StepWatch<'_> {
    fn step(&mut self, regs: &Registers, step: &Step<'_>) -> Flow {
        match step {
            Step::Packet(packet) => self.packet(packet),
            Step::Write(write) => self.write(regs, *write),
            Step::Enter(stream) | Step::Missing(stream) => {
                stream.iova.into_iter().for_each(|iova| self.reach.point(iova));
            }
            Step::Work(work) => work.indirect.into_iter().for_each(|iova| self.reach.point(iova)),
            Step::Wait(wait) => {
                if let WaitOperand::Memory(iova) = wait.operand {
                    self.reach.point(iova);
                }
            }
            Step::Trouble(trouble) => {
                if matches!(trouble.kind, TroubleKind::BudgetSpent | TroubleKind::TooDeep) {
                    self.reach.complete = false;
                }
            }
            Step::Leave(_) => {}
        }
        Flow::Continue
    }
}
