//! The command streams of a dump, for the commands that work on the steps of any vendor.
//!
//! Never: formatting.

use crate::decode::{MAX_RINGS, Stretch, stretches};
use crate::intel::streams::Unpacked;
use crate::intel::values::{ValueText, significant};
use crate::intel::{IntelDump, memory_limit};
use std::cell::RefCell;
use std::io;
use unwedge_base::{Dwords, Memory};
use unwedge_capture::Dump;
use unwedge_hw::amd::{Amd, Gfx};
use unwedge_hw::intel::platform::{EngineClass, Version};
use unwedge_hw::intel::{FieldValue, IntelValue};
use unwedge_hw::{Db, DecodedValue, Gpu, Palette, RegEnum, ValueType, Variants};
use unwedge_postmortem::adreno::AdrenoCase;
use unwedge_postmortem::adreno::hang::CpStop;
use unwedge_postmortem::adreno::trace::{header_of, packet_name};
use unwedge_postmortem::{FieldFact, PacketValue, amd};
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{AdrenoSink, AdrenoSteps};
use unwedge_stream::compare::RegisterFacts;
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::registers::{IntelNames, MMIO, REGISTERS};
use unwedge_stream::intel::steps::IntelSteps;
use unwedge_stream::play::Submission;
use unwedge_stream::query::{Column, Mistake, RegisterNames};
use unwedge_stream::{Flow, PacketStep, Registers, Step, StepSink, StreamPos, amd as amd_stream};

/// Which registers there are, and how what a GPU's streams do is named: Adreno's by generation, AMD's by that of the
/// graphics core, Intel's by graphics version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Adreno.
    Adreno(unwedge_base::Generation),
    /// AMD.
    Amd(Gfx),
    /// Intel.
    Intel(Version),
}

impl Family {
    /// `a6xx`, `gfx10.3`, `12.0`
    pub fn name(self) -> String {
        match self {
            Family::Adreno(generation) => generation.name().to_owned(),
            Family::Amd(gfx) => gfx.name().to_owned(),
            Family::Intel(version) => version.to_string(),
        }
    }

    /// The vendor, as people call its GPUs.
    pub fn vendor(self) -> &'static str {
        match self {
            Family::Adreno(_) => "Adreno",
            Family::Amd(_) => "AMD",
            Family::Intel(_) => "Intel",
        }
    }
}

/// Names of Intel's registers and commands, of a graphics version.
pub fn intel_names(version: Version) -> IntelNames {
    // Which commands there are does not depend on the engine.
    IntelNames::new(Decoder::new(version, EngineClass::Render).gpu)
}

/// The registers of a GPU of any vendor.
#[derive(Clone, Copy, Debug)]
pub enum RegisterSet<'d> {
    /// Adreno's.
    Adreno(Gpu<'d>),
    /// AMD's.
    Amd(Amd<'d>),
    /// Intel's, and the dwords of its state commands.
    Intel(&'d IntelNames),
}

impl<'d> RegisterSet<'d> {
    /// The name of a register, or its offset.
    pub fn name(self, reg: u32) -> String {
        match self {
            RegisterSet::Adreno(gpu) => gpu.reg(reg).map(|reg| reg.name().to_owned()),
            RegisterSet::Amd(amd) => amd.reg(reg).map(|reg| reg.name().to_owned()),
            RegisterSet::Intel(names) => Some(names.name_of(reg)),
        }
        .unwrap_or_else(|| format!("{reg:#x}"))
    }

    /// How a register's value reads, from its first dword on.
    pub fn ty(self, reg: u32) -> Option<ValueType<'d>> {
        match self {
            RegisterSet::Adreno(gpu) => gpu.reg(reg).filter(|r| r.dword() == 0).and_then(|r| r.ty()),
            RegisterSet::Amd(amd) => amd.reg(reg).filter(|r| r.dword() == 0).and_then(|r| r.ty()),
            RegisterSet::Intel(_) => None,
        }
    }

    /// A register of two dwords.
    pub fn is_wide(self, reg: u32) -> bool {
        matches!(self, RegisterSet::Adreno(gpu) if gpu.reg(reg).is_some_and(|r| r.width() == 64))
    }

    /// The offset that people know a register by: in dwords, Intel's in bytes. `None` for dwords of commands.
    pub fn offset(self, reg: u32) -> Option<u32> {
        match self {
            RegisterSet::Adreno(_) | RegisterSet::Amd(_) => Some(reg),
            RegisterSet::Intel(_) => (reg < MMIO).then_some(reg * 4),
        }
    }
}

impl<'d> RegisterNames<'d> for RegisterSet<'d> {
    fn select(self, text: &str) -> Result<Vec<Column<'d>>, Mistake> {
        match self {
            RegisterSet::Adreno(gpu) => RegisterNames::select(gpu, text),
            RegisterSet::Amd(amd) => RegisterNames::select(amd, text),
            RegisterSet::Intel(names) => names.select(text),
        }
    }

    fn enumeration(self, name: &str) -> Option<RegEnum<'d>> {
        match self {
            RegisterSet::Adreno(gpu) => RegisterNames::enumeration(gpu, name),
            RegisterSet::Amd(amd) => RegisterNames::enumeration(amd, name),
            RegisterSet::Intel(names) => names.enumeration(name),
        }
    }
}

impl RegisterFacts for RegisterSet<'_> {
    fn registers(&self) -> usize {
        match self {
            RegisterSet::Adreno(gpu) => gpu.registers(),
            RegisterSet::Amd(_) => amd_stream::REGISTERS,
            RegisterSet::Intel(_) => REGISTERS,
        }
    }

    fn half(&self, reg: u32) -> Option<u32> {
        match self {
            RegisterSet::Adreno(gpu) => gpu.half(reg),
            RegisterSet::Amd(_) | RegisterSet::Intel(_) => None,
        }
    }

    fn may_be_address(&self, reg: u32) -> bool {
        match self {
            RegisterSet::Adreno(gpu) => gpu.may_be_address(reg),
            RegisterSet::Amd(_) | RegisterSet::Intel(_) => true,
        }
    }
}

/// The streams of a dump.
pub enum Streams<'d, 'a> {
    /// Of Adreno.
    Adreno(AdrenoStreams<'d>),
    /// Of AMD.
    Amd(amd::Streams<'d>),
    /// Of Intel.
    Intel(IntelStreams<'d, 'a>),
}

/// The rings of a dump of msm.
pub struct AdrenoStreams<'d> {
    case: &'d AdrenoCase<'d>,
    stop: Option<&'d CpStop>,
}

/// The streams of a dump of Intel, unpacked as they are walked.
pub struct IntelStreams<'d, 'a> {
    unpacked: Unpacked<'d, 'a>,
    engines: usize,
    version: Version,
}

impl<'d, 'a> Streams<'d, 'a> {
    /// Of a dump; `None` for one of msm, and where the GPU is not known. `db` is that of [`Db::amd`]; memory is unpacked
    /// in proportion to `max_size`.
    pub fn of(dump: &'d Dump<'a>, db: &'d Db, max_size: u64) -> Option<Streams<'d, 'a>> {
        let intel = |dump: IntelDump<'d, 'a>| {
            let unpacked = Unpacked::of(dump, memory_limit(dump.bytes(), max_size))?;
            let version = dump.graphics().version?;
            Some(Streams::Intel(IntelStreams { unpacked, engines: dump.engines().len(), version }))
        };
        match dump {
            Dump::Msm(_) => None,
            Dump::I915(state) => intel(IntelDump::I915(state)),
            Dump::Xe(dump) => intel(IntelDump::Xe(dump)),
            Dump::Amdgpu(dump) => amd::Streams::of_amdgpu(dump, db).map(Streams::Amd),
            Dump::Radv(report) => amd::Streams::of_radv(report, db).map(Streams::Amd),
            Dump::Umr(text) => amd::Streams::of_umr(text, db).map(Streams::Amd),
        }
    }

    /// Of a dump of msm and the stop that the post-mortem found in it.
    pub fn of_adreno(case: &'d AdrenoCase<'d>, stop: Option<&'d CpStop>) -> Streams<'d, 'a> {
        Streams::Adreno(AdrenoStreams { case, stop })
    }

    /// What its registers are.
    pub fn family(&self) -> Family {
        match self {
            Streams::Adreno(streams) => Family::Adreno(streams.case.gpu.generation()),
            Streams::Amd(streams) => Family::Amd(streams.amd().gfx()),
            Streams::Intel(streams) => Family::Intel(streams.version),
        }
    }

    /// Hands on its streams in their order, until `visit` wants no more.
    pub fn each(&mut self, visit: &mut dyn FnMut(&Walkable<'_>) -> bool) {
        match self {
            Streams::Adreno(streams) => streams.each(visit),
            Streams::Amd(streams) => {
                for (number, stream) in (0..).zip(streams.streams()) {
                    let walk = &|sink: &mut dyn StepSink| streams.walk(stream, sink);
                    let decoder = PacketDecoder::Amd(streams.amd(), stream.engine);
                    let (name, engine) = (stream.name.clone(), None);
                    if !visit(&Walkable {
                        number,
                        name,
                        engine,
                        memory: streams.memory(),
                        decoder,
                        base: 0,
                        walk,
                        events: None,
                    }) {
                        return;
                    }
                }
            }
            Streams::Intel(streams) => streams.each(visit),
        }
    }
}

impl AdrenoStreams<'_> {
    fn each(&self, visit: &mut dyn FnMut(&Walkable<'_>) -> bool) {
        let case = self.case;
        let whole = unwedge_stream::adreno::budget(&case.memory);
        // The hung ring is walked as far as any walk of it; the others share as much.
        let share = whole / (case.dump.rings.len().clamp(1, MAX_RINGS) as u64);
        // One at a time: a dump may have many.
        for (number, stretch) in stretches(case, self.stop).enumerate() {
            let stretch = &stretch;
            let hung = self.stop.is_some_and(|stop| stop.ring == number);
            let budget = if hung { whole } else { share };
            let events = &|sink: &mut dyn AdrenoSink| stretch.walk(case, &mut budget.clone(), sink);
            let walk = &|sink: &mut dyn StepSink| {
                events(&mut AdrenoSteps::new(case.gpu, InRing { stretch, sink }));
            };
            if !visit(&Walkable {
                number: number as u32,
                name: format!("ring {}", stretch.ring.id),
                engine: None,
                memory: &case.memory,
                decoder: PacketDecoder::Adreno(case.gpu),
                base: 0,
                walk,
                events: Some(events),
            }) {
                return;
            }
        }
    }
}

/// Hands on the steps of a stretch of a ring, with places that count from the start of the ring.
struct InRing<'s> {
    stretch: &'s Stretch<'s>,
    sink: &'s mut dyn StepSink,
}

impl InRing<'_> {
    fn place(&self, place: StreamPos) -> StreamPos {
        if place.level != 0 {
            return place;
        }
        let index = self.stretch.in_ring(place.index);
        let iova = index.checked_mul(4).and_then(|bytes| self.stretch.ring.iova.checked_add(bytes));
        match place.iova.and_then(|at| at.checked_sub(self.stretch.ring.iova)) {
            Some(bytes) => StreamPos { index: usize::try_from(bytes / 4).unwrap_or(place.index), ..place },
            None => StreamPos { index: usize::try_from(index).unwrap_or(place.index), iova, ..place },
        }
    }
}

impl StepSink for InRing<'_> {
    fn step(&mut self, regs: &Registers, step: &Step<'_>) -> Flow {
        let mut step = *step;
        if let Some(place) = step.place_mut() {
            *place = self.place(*place);
        }
        self.sink.step(regs, &step)
    }
}

impl IntelStreams<'_, '_> {
    fn each(&mut self, visit: &mut dyn FnMut(&Walkable<'_>) -> bool) {
        let (mut number, mut goes_on) = (0, true);
        self.unpacked.restart();
        for index in 0..self.engines {
            // A visitor that wants no more is no error: what it says is kept apart.
            let _ = self.unpacked.each(index, &mut |stream| {
                let walk = &|sink: &mut dyn StepSink| {
                    IntelSteps::new(stream.decoder, stream.spaces).walk(stream.events(), sink);
                };
                let engine = crate::intel::engine_name(stream.engine);
                let name = format!("{engine} {}", stream.name);
                let decoder = PacketDecoder::Intel(stream.decoder);
                let memory = stream.spaces.ppgtt;
                let base = u8::from(stream.name != "ring");
                goes_on = visit(&Walkable {
                    number,
                    name,
                    engine: Some(engine),
                    memory,
                    decoder,
                    base,
                    walk,
                    events: None,
                });
                number += 1;
                if goes_on { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
            });
            if !goes_on {
                return;
            }
        }
    }
}

/// Hands on a submit of a capture as the stream of a number; `None` where it cannot be walked.
pub(crate) fn with_submission<R>(
    submission: Submission<'_, '_>,
    number: u32,
    then: impl FnOnce(&Walkable<'_>) -> R,
) -> Option<R> {
    let walk = submission.open().ok()?;
    let (gpu, memory, mark) = (walk.gpu, walk.memory, walk.mark());
    let walk = RefCell::new(walk);
    let events = &|sink: &mut dyn AdrenoSink| {
        // A sink never walks.
        if let Ok(mut walk) = walk.try_borrow_mut() {
            walk.rewind(&mark);
            walk.run(sink);
        }
    };
    let steps = &|sink: &mut dyn StepSink| events(&mut AdrenoSteps::new(gpu, BorrowedSink(sink)));
    Some(then(&Walkable {
        number,
        name: format!("submit {number}"),
        engine: None,
        memory,
        decoder: PacketDecoder::Adreno(gpu),
        // What is submitted is called by the kernel's ring.
        base: 1,
        walk: steps,
        events: Some(events),
    }))
}

struct BorrowedSink<'s>(&'s mut dyn StepSink);

impl StepSink for BorrowedSink<'_> {
    fn step(&mut self, registers: &Registers, step: &Step<'_>) -> Flow {
        self.0.step(registers, step)
    }
}

/// Dwords of a packet whose parts are named.
const NAMED: usize = 1 << 10;

impl PacketDecoder<'_> {
    /// What a packet is called: the operation, or the registers that it writes where it is none.
    pub fn name(self, packet: &PacketStep<'_>) -> Option<String> {
        match self {
            PacketDecoder::Adreno(gpu) => {
                header_of(packet.header, gpu.generation()).map(|header| packet_name(gpu, header))
            }
            PacketDecoder::Amd(..) | PacketDecoder::Intel(_) => packet.name().map(str::to_owned),
        }
    }

    /// The parts of a packet that say something.
    pub fn parts(self, packet: &PacketStep<'_>) -> Vec<PacketValue> {
        let words: Vec<u32> = [packet.header].into_iter().chain(packet.payload.iter().take(NAMED)).collect();
        match self {
            PacketDecoder::Adreno(gpu) => adreno_parts(gpu, &words),
            PacketDecoder::Amd(amd, engine) => amd_parts(amd, engine, packet, &words),
            PacketDecoder::Intel(decoder) => {
                let command = decoder.command(&words);
                let fields = command.iter().flat_map(|command| significant(command.fields()));
                let fields =
                    fields.filter(|(_, value)| !matches!(value, IntelValue::Struct | IntelValue::Wide));
                let part = |(field, value): (FieldValue, IntelValue)| PacketValue {
                    name: field
                        .indices()
                        .iter()
                        .fold(field.name.to_owned(), |name, i| format!("{name}[{i}]")),
                    dword: Some(u64::from(field.start / 32)),
                    value: field.raw.unwrap_or_default(),
                    text: ValueText(value).to_string(),
                    fields: named(field.name, value).into_iter().collect(),
                    offset: None,
                };
                fields.map(part).collect()
            }
        }
    }
}

/// A value that has a name.
fn named(field: &'static str, value: IntelValue) -> Option<FieldFact> {
    let IntelValue::Enum(value, meaning) = value else { return None };
    Some(FieldFact { name: field.replace(' ', "").into(), value, meaning: Some(meaning.into()) })
}

/// A value by its type: its text, and its bit fields.
pub fn typed(ty: ValueType<'_>, value: u64, selected: &mut Variants) -> (String, Vec<FieldFact>) {
    let fields = match ty.decode(value, &mut selected.clone()) {
        DecodedValue::Fields(fields) => fields,
        _ => Vec::new(),
    };
    let mut out = Vec::new();
    ty.write(value, selected, &Palette::default(), &mut out);
    let fact = |field: unwedge_hw::DecodedField<'_>| FieldFact {
        name: field.name.to_owned().into(),
        value: field.raw,
        meaning: meaning(&field.value).map(Into::into),
    };
    (String::from_utf8_lossy(&out).into_owned(), fields.into_iter().map(fact).collect())
}

/// What the bits of a field mean, where that is more than a number.
fn meaning(value: &DecodedValue<'_>) -> Option<String> {
    match value {
        DecodedValue::Enum(_, name) => name.map(str::to_owned),
        DecodedValue::Bool(true) => Some("true".to_owned()),
        DecodedValue::Float(number) => Some(number.to_string()),
        DecodedValue::Int(number) if *number < 0 => Some(number.to_string()),
        DecodedValue::RegId(reg, component) => {
            Some(format!("r{reg}.{}", ["x", "y", "z", "w"][*component as usize & 3]))
        }
        _ => None,
    }
}

fn adreno_parts(gpu: Gpu<'_>, words: &[u32]) -> Vec<PacketValue> {
    let Some((&raw, payload)) = words.split_first() else { return Vec::new() };
    let Some(AdrenoPacketHeader::Operation { opcode, .. }) = header_of(raw, gpu.generation()) else {
        return Vec::new();
    };
    let Some(domain) = gpu.packet_name(opcode).and_then(|name| gpu.domain(name)) else { return Vec::new() };
    let (mut parts, mut selected, mut i) = (Vec::new(), Variants::default(), 0);
    while let Some(&low) = payload.get(i) {
        let reg = u32::try_from(i).ok().and_then(|index| domain.at(index, &selected));
        let Some((reg, ty)) = reg.and_then(|reg| Some((reg, reg.ty()?))) else {
            i += 1;
            continue;
        };
        let high = payload.get(i + 1).copied().filter(|_| ty.high() >= 32);
        let value = u64::from(low) | u64::from(high.unwrap_or(0)) << 32;
        let (text, fields) = typed(ty, value, &mut selected);
        let (name, dword) = (reg.name().to_owned(), Some(i as u64 + 1));
        parts.push(PacketValue { name, offset: None, dword, value, text, fields });
        i += if high.is_some() { 2 } else { 1 };
    }
    // The database has some packets only as later generations have them, whose addresses are of 64 bits.
    let upper = |part: &PacketValue| part.fields.iter().any(|field| field.name.ends_with("_HI"));
    if !gpu.generation().is_64bit() && parts.iter().any(upper) {
        return Vec::new();
    }
    parts
}

fn amd_parts(
    amd: Amd<'_>,
    engine: amd_stream::Engine,
    packet: &PacketStep<'_>,
    words: &[u32],
) -> Vec<PacketValue> {
    let dwords = Dwords::from(words);
    let Some(header) = amd_stream::AmdPacketHeader::decode_for(amd, engine, dwords) else {
        return Vec::new();
    };
    let (place, raw, exec, payload) = (packet.place, packet.header, packet.exec, dwords.skip(1));
    let packet = amd_stream::Packet { place, raw, header, engine, payload, dwords, exec };
    let part = |field: amd_stream::PayloadField<'_>| {
        let (text, fields) = match field.ty {
            Some(ty) => typed(ty, field.value, &mut Variants::new()),
            None => (format!("{:#x}", field.value), Vec::new()),
        };
        let (name, dword) = (field.name.to_owned(), Some(field.dword as u64));
        PacketValue { name, offset: None, dword, value: field.value, text, fields }
    };
    packet.fields(amd).map(part).collect()
}

/// What names the parts of packets.
#[derive(Clone, Copy)]
pub enum PacketDecoder<'d> {
    /// Of Adreno.
    Adreno(Gpu<'d>),
    /// Of an engine of AMD.
    Amd(Amd<'d>, amd_stream::Engine),
    /// Of an engine of Intel.
    Intel(Decoder),
}

/// Walks a stream of Adreno.
pub type EventWalk<'m> = &'m dyn Fn(&mut dyn AdrenoSink);

/// A stream that can be walked, any number of times.
pub struct Walkable<'m> {
    /// Counts from 0 over the dump.
    pub number: u32,
    /// `gfx_0.0.0`, `IB at 0x…`, `rcs0 batch`
    pub name: String,
    /// The engine, where streams of several have one name each: `rcs0`.
    pub engine: Option<String>,
    /// The buffers that it can lead to.
    pub memory: &'m Memory,
    /// What names the parts of its packets.
    pub decoder: PacketDecoder<'m>,
    /// The level of the engine's that level 0 of the walk is: 1 for a batch that is walked by itself.
    pub base: u8,
    /// Walks it.
    pub walk: &'m dyn Fn(&mut dyn StepSink),
    /// Walks one of Adreno, as the events that its listings show.
    pub events: Option<EventWalk<'m>>,
}

impl Walkable<'_> {
    /// Walks it, with no register written yet.
    pub fn walk(&self, sink: &mut dyn StepSink) {
        (self.walk)(sink);
    }
}
