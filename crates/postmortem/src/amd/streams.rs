//! The command streams that an AMD GPU left: rings, buffers that no ring leads to, and what RADV wrote down of its command
//! buffers. [`Streams`] lists them and walks them into the steps that all vendors have.
//!
//! Never: what a stream means for the hang.

use super::case::{AmdCase, AmdRing, engine_of};
use unwedge_base::{Dwords, Memory};
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::radv::RadvReport;
use unwedge_capture::umr::UmrText;
use unwedge_hw::Db;
use unwedge_hw::amd::Amd;
use unwedge_stream::amd::{AmdSteps, AmdWalker, Engine, in_order, reduce};
use unwedge_stream::{Flow, Registers, Step, StepSink, StreamPos};

/// Streams that are listed; a dump has some dozens of rings and buffers.
const MOST: usize = 1 << 12;

/// The streams of a dump, a report or a text.
pub struct Streams<'c> {
    amd: Amd<'c>,
    memory: Memory,
    streams: Vec<Stream<'c>>,
}

/// A stream.
#[derive(Clone, Debug)]
pub struct Stream<'c> {
    /// The ring as the source calls it, `IB at 0x…`, or RADV's name of a command buffer.
    pub name: String,
    /// What reads it.
    pub engine: Engine,
    /// The level of its packets: 0 for a ring, 1 for an indirect buffer.
    pub level: u8,
    /// Where it lies; `None` for rings.
    pub iova: Option<u64>,
    runs: Vec<Run<'c>>,
}

/// Dwords without a gap, from the oldest to the newest.
#[derive(Clone, Debug)]
struct Run<'c> {
    dwords: std::borrow::Cow<'c, [u32]>,
    /// Where in the stream the first of them is, in dwords.
    start: u64,
    /// Dwords after which the stream wraps around; 0 where it does not.
    size: u64,
}

impl Run<'_> {
    fn place(&self, place: StreamPos) -> StreamPos {
        let at = self.start.saturating_add(place.index as u64);
        let at = if self.size == 0 { at } else { at % self.size };
        StreamPos { index: usize::try_from(at).unwrap_or(place.index), ..place }
    }
}

/// What a stream of RADV's trace.log is called among those of its report.
pub fn traced_name(stream: &str) -> String {
    format!("trace.log {stream}")
}

impl<'c> Streams<'c> {
    /// Of a kernel's dump; `None` when the generation is not known. `db` is that of [`Db::amd`].
    pub fn of_amdgpu(dump: &'c Devcoredump<'c>, db: &'c Db) -> Option<Streams<'c>> {
        Streams::of(AmdCase::of_dump(dump, db), &[])
    }

    /// Of a report of RADV; `None` when the generation is not known.
    pub fn of_radv(report: &'c RadvReport<'c>, db: &'c Db) -> Option<Streams<'c>> {
        let of = |stream: &'c unwedge_capture::radv::TraceStream<'c>| {
            let engine = match stream.ip.as_deref() {
                Some("COMPUTE") => Engine::Compute,
                Some("SDMA") => Engine::Sdma,
                _ => Engine::Gfx,
            };
            let runs =
                stream.contents.runs().map(|(start, dwords)| Run { dwords: dwords.into(), start, size: 0 });
            let (name, level) = (traced_name(&stream.name), if stream.depth == 0 { 1 } else { 2 });
            Stream { name, engine, level, iova: None, runs: runs.collect() }
        };
        let traced: Vec<Stream<'c>> = report.trace.iter().flat_map(|trace| &trace.streams).map(of).collect();
        Streams::of(AmdCase::of_radv(report, db), &traced)
    }

    /// Of text of umr; `None` when the generation is not known.
    pub fn of_umr(text: &'c UmrText<'c>, db: &'c Db) -> Option<Streams<'c>> {
        Streams::of(AmdCase::of_umr(text, db), &[])
    }

    fn of(case: AmdCase<'c>, traced: &[Stream<'c>]) -> Option<Streams<'c>> {
        let amd = case.amd?;
        let loose = case.loose_engine();
        let read_memory = case.read_memory.clone();
        let rings = case.rings.iter().filter_map(|ring| {
            let engine = engine_of(ring.name)?;
            Some(Stream { name: ring.name.to_owned(), engine, level: 0, iova: None, runs: runs(ring) })
        });
        let mut streams = Streams { amd, streams: rings.collect(), memory: case.memory };
        let entered = streams.entered();
        let called = |iova: u64| {
            let at = entered.partition_point(|&(start, _)| start <= iova);
            at > 0 && iova < entered[at - 1].1
        };
        let buffers = streams.memory.buffers().iter().filter(|buffer| !called(buffer.iova));
        let buffers = buffers.filter(|buffer| !read_memory.contains(&buffer.iova));
        let buffers = buffers.filter_map(|buffer| {
            let (engine, dwords) = (loose?, buffer.contents.clone()?);
            let name = format!("IB at {:#x}", buffer.iova);
            let runs = vec![Run { dwords: dwords.into(), start: 0, size: 0 }];
            Some(Stream { name, engine, level: 1, iova: Some(buffer.iova), runs })
        });
        let buffers: Vec<Stream<'c>> = buffers.collect();
        streams.streams.extend(buffers);
        streams.streams.extend(traced.iter().cloned());
        streams.streams.retain(|stream| stream.runs.iter().any(|run| !run.dwords.is_empty()));
        streams.streams.truncate(MOST);
        Some(streams)
    }

    /// First address, and the one after the last, of what buffers that a ring leads to cover, in order and apart.
    fn entered(&self) -> Vec<(u64, u64)> {
        struct Entered(Vec<(u64, u64)>);
        impl StepSink for Entered {
            fn step(&mut self, _regs: &Registers, step: &Step<'_>) -> Flow {
                if let Step::Enter(stream) = step
                    && let Some(start) = stream.iova
                {
                    let range = (start, start.saturating_add(stream.dwords.len() as u64 * 4));
                    if self.0.last() != Some(&range) {
                        self.0.push(range);
                    }
                }
                Flow::Continue
            }
        }
        let mut entered = Entered(Vec::new());
        self.streams.iter().for_each(|stream| self.walk(stream, &mut entered));
        entered.0.sort_unstable();
        let mut apart: Vec<(u64, u64)> = Vec::new();
        for (start, end) in entered.0 {
            match apart.last_mut() {
                Some((_, last)) if start <= *last => *last = end.max(*last),
                _ => apart.push((start, end)),
            }
        }
        apart
    }

    /// The facts of its GPU.
    pub fn amd(&self) -> Amd<'c> {
        self.amd
    }

    /// What is known of indirect buffers.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The streams: rings in the order of the source, then buffers that no ring leads to, then what RADV wrote down.
    pub fn streams(&self) -> &[Stream<'c>] {
        &self.streams
    }

    /// Walks a stream, from the oldest to the newest dword, with no register written yet. Positions in a ring count from
    /// its start.
    pub fn walk(&self, stream: &Stream<'_>, sink: &mut dyn StepSink) {
        let mut walker = AmdWalker::new(self.amd, stream.engine, &self.memory);
        for run in &stream.runs {
            walker.budget = walker.budget.saturating_add(run.dwords.len() as u64);
            let mut steps = AmdSteps::new(self.amd, stream.engine, Placed { run, level: stream.level, sink });
            walker.walk_at(stream.level, Dwords::from(&*run.dwords), stream.iova, &mut steps);
        }
    }
}

fn runs<'c>(ring: &AmdRing<'c>) -> Vec<Run<'c>> {
    let size = ring.contents.end();
    let start = ring.wptr.and_then(|wptr| reduce(wptr, ring.mask, size));
    match (ring.whole(), start) {
        (Some(dwords), Some(start)) if !dwords.is_empty() => {
            let (dwords, start) = in_order(dwords, start);
            vec![Run { dwords: dwords.into(), start, size }]
        }
        _ => ring
            .contents
            .runs()
            .map(|(start, dwords)| Run { dwords: dwords.into(), start, size: 0 })
            .collect(),
    }
}

/// Counts positions from the start of the stream, wherever the walk begins.
struct Placed<'r, 's> {
    run: &'r Run<'r>,
    level: u8,
    sink: &'s mut dyn StepSink,
}

impl StepSink for Placed<'_, '_> {
    fn step(&mut self, regs: &Registers, step: &Step<'_>) -> Flow {
        let mut step = *step;
        if let Some(place) = step.place_mut().filter(|place| place.level == self.level) {
            *place = self.run.place(*place);
        }
        self.sink.step(regs, &step)
    }
}
