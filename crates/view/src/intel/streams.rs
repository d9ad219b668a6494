//! The command streams of a dump of i915 or xe: the ring and workaround batches of each engine, its batch with all that it
//! leads to, where the engine stands in them, and the state it stood in.
//!
//! Never: formatting.

use super::IntelDump;
use std::collections::HashSet;
use std::io;
use unwedge_capture::intel::{
    AddressSpace as DumpSpace, DumpEngine, MemoryBlock, MemoryBlockKind, RingRegister,
};
use unwedge_hw::intel::platform::{EngineClass, Version};
use unwedge_isa::eu;
use unwedge_postmortem::intel::active_head;
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::position::{Locator, Position};
use unwedge_stream::intel::references::ReferenceWalk;
use unwedge_stream::intel::ring::EngineRing;
use unwedge_stream::intel::state::IntelState;
use unwedge_stream::intel::unpack::{AddressSpaces, Wanted};
use unwedge_stream::intel::walk::{EventKind, IntelEvent, IntelWalk, RingRange, Space, Spaces, canonical};

/// Dwords that are walked for one dump: so many, and so many for each that the dump holds. A batch may call another over
/// and over; what is shown of it stays in proportion.
const BUDGET: u64 = 1 << 16;
/// See [`BUDGET`].
const BUDGET_PER_DWORD: u64 = 4;

/// A stream of commands of an engine.
pub struct EngineStream<'m> {
    /// The engine, as the dump calls it.
    pub engine: &'m str,
    /// `ring`, `batch` …
    pub name: &'m str,
    /// Where the engine stands, if it stands in this stream.
    pub position: Option<Position>,
    /// The version of the graphics.
    pub version: Version,
    /// What the stream reads from.
    pub spaces: Spaces<'m>,
    /// What decodes its commands.
    pub decoder: Decoder,
    /// What disassembles the kernels it points to; `None` where the tables have no such instruction set.
    pub eu: Option<eu::Platform>,
    walk: IntelWalk<'m>,
    marks: Vec<(u64, &'static str)>,
}

impl<'m> EngineStream<'m> {
    /// What is on the way.
    pub fn events(&self) -> IntelWalk<'m> {
        self.walk.clone()
    }

    /// The marks that lie in so many dwords at an address.
    pub fn marks(&self, address: u64, dwords: usize) -> Vec<&'static str> {
        let end = address.saturating_add(dwords as u64 * 4);
        let within = self.marks.iter().filter(|(at, _)| (address..end).contains(at));
        within.map(|(_, name)| *name).collect()
    }

    /// The state in front of the command that is executed.
    pub fn state(&self) -> Option<IntelState<'m>> {
        let position = self.position?;
        Some(IntelState::before(
            self.decoder.gpu,
            self.events(),
            position.executing.unwrap_or(position.at_acthd),
        ))
    }
}

/// The memory of a dump, unpacked where streams lead.
pub struct Unpacked<'d, 'a> {
    dump: IntelDump<'d, 'a>,
    version: Version,
    memory: AddressSpaces<'d, 'a>,
    left: u64,
    /// What was left at first, and what came with memory that was unpacked since.
    granted: u64,
}

impl<'d, 'a> Unpacked<'d, 'a> {
    /// Unpacks up to `limit` bytes each of the device's table and of an address space. `None`: the generation is not known,
    /// commands cannot be told.
    pub fn of(dump: IntelDump<'d, 'a>, limit: usize) -> Option<Unpacked<'d, 'a>> {
        let version = dump.graphics().version?;
        let memory = AddressSpaces::new(dump.blocks(), dump.engines(), limit);
        let left = BUDGET.saturating_add(memory.ggtt().stored().saturating_mul(BUDGET_PER_DWORD));
        Some(Unpacked { dump, version, memory, left, granted: left })
    }

    /// Starts from the first stream again: what was walked before can be walked as far again.
    pub fn restart(&mut self) {
        self.left = self.granted;
    }

    /// Hands on the streams of the engine that the dump names as number `index`.
    ///
    /// # Errors
    /// Those of `sink`.
    pub fn each(
        &mut self,
        index: usize,
        sink: &mut dyn FnMut(&EngineStream<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(engine) = self.dump.engines().get(index) else { return Ok(()) };
        let stands = |e: &DumpEngine<'_>| e.ring(RingRegister::Acthd).is_some_and(|at| at != 0);
        let first = self.dump.engines().iter().position(stands).unwrap_or(0) == index;
        let count = EngineStreams::new(self.dump, self.version, &self.memory, engine).walks(first).len();
        for nth in 0..count {
            let before = self.memory.ppgtt(engine).1.stored();
            self.lead(engine, first, nth);
            let more = self.memory.ppgtt(engine).1.stored().saturating_sub(before);
            let more = more.saturating_mul(BUDGET_PER_DWORD);
            self.left = self.left.saturating_add(more);
            self.granted = self.granted.saturating_add(more);
            let of = EngineStreams::new(self.dump, self.version, &self.memory, engine);
            let Some((name, walk, marks)) = of.walks(first).into_iter().nth(nth).filter(|_| self.left > 0)
            else {
                continue;
            };
            let stream = of.stream(name, walk.with_budget(self.left), marks);
            sink(&stream)?;
            let mut walk = stream.events();
            walk.by_ref().for_each(drop);
            self.left = walk.budget();
        }
        Ok(())
    }

    /// Unpacks what a stream leads to.
    fn lead(&mut self, engine: &DumpEngine<'a>, first: bool, nth: usize) {
        let (dump, version) = (self.dump, self.version);
        let budget = self.left.max(BUDGET);
        self.memory.settle(|memory| {
            let of = EngineStreams::new(dump, version, memory, engine);
            let Some((_, walk, _)) = of.walks(first).into_iter().nth(nth) else { return ((), Vec::new()) };
            let (context, _) = memory.ppgtt(engine);
            let acthd = engine.ring(RingRegister::Acthd).map(canonical);
            let mut wanted: Vec<Wanted> = acthd.map(|at| Wanted::Ppgtt(context, at)).into_iter().collect();
            let mut references = ReferenceWalk::new(of.decoder.gpu, of.spaces);
            let (mut seen, mut missing) = (HashSet::new(), Vec::new());
            for event in walk.with_budget(budget) {
                match (event.kind, event.space) {
                    (EventKind::Absent, Space::Ggtt) => wanted.push(Wanted::Ggtt(event.address)),
                    (EventKind::Absent, Space::Ppgtt) => wanted.push(Wanted::Ppgtt(context, event.address)),
                    _ => {}
                }
                for reference in references.see(&event) {
                    references.missing(&reference, &mut seen, &mut missing);
                }
            }
            wanted.extend(missing.into_iter().map(|at| Wanted::Either(context, at)));
            ((), wanted)
        });
    }
}

/// An engine and what it sees.
struct EngineStreams<'m, 'a> {
    dump: IntelDump<'m, 'a>,
    engine: &'m DumpEngine<'a>,
    version: Version,
    decoder: Decoder,
    spaces: Spaces<'m>,
}

type Marks = Vec<(u64, &'static str)>;

impl<'m, 'a> EngineStreams<'m, 'a> {
    fn new(
        dump: IntelDump<'m, 'a>,
        version: Version,
        memory: &'m AddressSpaces<'_, 'a>,
        engine: &'m DumpEngine<'a>,
    ) -> EngineStreams<'m, 'a> {
        let class = engine.id().map_or(EngineClass::Render, |id| id.class);
        EngineStreams {
            dump,
            engine,
            version,
            decoder: Decoder::new(version, class),
            spaces: Spaces { ggtt: memory.ggtt(), ppgtt: memory.ppgtt(engine).1 },
        }
    }

    fn walks(&self, first: bool) -> Vec<(&'m str, IntelWalk<'m>, Marks)> {
        let mut walks = Vec::new();
        if let Some((ring, marks)) = self.ring() {
            walks.push(("ring", IntelWalk::ring(self.decoder, self.spaces, ring).without_following(), marks));
        }
        for block in self.blocks(&[MemoryBlockKind::WaContext, MemoryBlockKind::WaBatch]) {
            // Several batches, each behind the end of the one before.
            let held = block.address.and_then(|at| Some((at, self.spaces.words(Space::Ggtt, at)?.len())));
            let Some((start, Ok(size))) = held.map(|(at, words)| (at, u32::try_from(words * 4))) else {
                continue;
            };
            let all = RingRange { start, size, from: 0, to: size };
            walks.push((
                &*block.name,
                IntelWalk::ring(self.decoder, self.spaces, all).without_following(),
                Vec::new(),
            ));
        }
        for (space, start) in self.batches(first) {
            walks.push(("batch", IntelWalk::batch(self.decoder, self.spaces, space, start), Vec::new()));
        }
        walks
    }

    fn blocks<'k>(
        &self,
        kinds: &'k [MemoryBlockKind],
    ) -> impl Iterator<Item = &'m MemoryBlock<'m>> + use<'m, 'k> {
        let (engine, blocks): (&'m DumpEngine<'_>, &'m [MemoryBlock<'_>]) = (self.engine, self.dump.blocks());
        blocks
            .iter()
            .filter(move |b| !b.owner.is_empty() && b.is_of(engine))
            .filter(|b| kinds.contains(&b.kind))
    }

    /// Where the ring was captured, and how many bytes of it.
    fn captured_ring(&self) -> Option<(u64, u64)> {
        let start = self.blocks(&[MemoryBlockKind::Ring]).find_map(|b| b.address)?;
        Some((start, self.spaces.words(Space::Ggtt, start).map_or(0, |words| words.len() as u64 * 4)))
    }

    /// All that there is of the ring, with the places of HEAD and TAIL.
    fn ring(&self) -> Option<(RingRange, Marks)> {
        let block = self.blocks(&[MemoryBlockKind::Ring]).find_map(|b| b.address);
        let held = |start| Some(self.spaces.words(Space::Ggtt, start)?.len() as u64 * 4);
        let ring = EngineRing::of(self.engine, block, held)?;
        let at = |offset: Option<u32>| offset.map(|offset| ring.start.wrapping_add(offset.into()));
        let marks = [(at(ring.head), "HEAD"), (at(ring.tail), "TAIL")];
        let marks = marks.into_iter().filter_map(|(at, name)| Some((at?, name))).collect();
        Some((ring.whole()?, marks))
    }

    /// Where batches of the engine start.
    fn batches(&self, first: bool) -> Vec<(Space, u64)> {
        match self.dump {
            IntelDump::I915(state) => {
                let block = self.blocks(&[MemoryBlockKind::Batch]).next();
                let space = match block.map(|b| b.space) {
                    Some(DumpSpace::Ggtt | DumpSpace::Shared) => Space::Ggtt,
                    _ => Space::Ppgtt,
                };
                let told = state.batch(self.engine).map(|batch| batch.start).filter(|&start| start != 0);
                let held = |at: &u64| self.spaces.words(space, *at).is_some();
                let start = told.filter(held).or_else(|| block.and_then(|b| b.address));
                start.map(|start| (space, start)).into_iter().collect()
            }
            // The batches of a job are of the queue, and shown with the first of its engines that stands somewhere.
            IntelDump::Xe(xe) if first => {
                let mut starts: Vec<_> = xe.batches.iter().map(|&at| (Space::Ppgtt, at)).collect();
                starts.dedup();
                starts
            }
            IntelDump::Xe(_) => Vec::new(),
        }
    }

    fn stream(&self, name: &'m str, walk: IntelWalk<'m>, mut marks: Marks) -> EngineStream<'m> {
        let mut position = None;
        let is_batch = |address| self.spaces.words(Space::Ppgtt, address).is_some();
        if let Some(acthd) = active_head(self.engine, self.captured_ring(), is_batch) {
            let ipehr = self.engine.ring(RingRegister::Ipehr).map(|v| v as u32);
            let mut locator = Locator::new(acthd, None, ipehr);
            walk.clone().for_each(|event: IntelEvent<'_>| locator.see(&event));
            position = locator.position();
            marks.push((acthd, "ACTHD"));
        }
        if let Some(place) = position.and_then(|p| p.executing) {
            marks.push((place.address, "IPEHR"));
        }
        let engine: &'m str = &self.engine.name;
        EngineStream {
            engine,
            name,
            position,
            version: self.version,
            spaces: self.spaces,
            decoder: self.decoder,
            eu: self.dump.graphics().eu_platform(),
            walk,
            marks,
        }
    }
}
