//! The command streams of a dump of AMD or Intel, for the commands that work on the steps of any vendor.
//!
//! Never: formatting.

use crate::intel::streams::Unpacked;
use crate::intel::values::{ValueText, significant};
use crate::intel::{IntelDump, memory_limit};
use std::io;
use unwedge_base::{Dwords, Memory};
use unwedge_capture::Dump;
use unwedge_hw::amd::{Amd, Gfx};
use unwedge_hw::intel::platform::{EngineClass, Version};
use unwedge_hw::intel::{FieldValue, IntelValue};
use unwedge_hw::{Db, Gpu, Palette, RegEnum, ValueType, Variants};
use unwedge_postmortem::amd;
use unwedge_stream::compare::RegisterFacts;
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::registers::{IntelNames, MMIO, REGISTERS};
use unwedge_stream::intel::steps::IntelSteps;
use unwedge_stream::query::{Column, Mistake, RegisterNames};
use unwedge_stream::{PacketStep, StepSink, amd as amd_stream};

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

/// The streams of a dump of AMD or Intel.
pub enum Streams<'d, 'a> {
    /// Of AMD.
    Amd(amd::Streams<'d>),
    /// Of Intel.
    Intel(IntelStreams<'d, 'a>),
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

    /// What its registers are.
    pub fn family(&self) -> Family {
        match self {
            Streams::Amd(streams) => Family::Amd(streams.amd().gfx()),
            Streams::Intel(streams) => Family::Intel(streams.version),
        }
    }

    /// Hands on its streams in their order, until `visit` wants no more.
    pub fn each(&mut self, visit: &mut dyn FnMut(&Walkable<'_>) -> bool) {
        match self {
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
                    }) {
                        return;
                    }
                }
            }
            Streams::Intel(streams) => streams.each(visit),
        }
    }
}

impl IntelStreams<'_, '_> {
    fn each(&mut self, visit: &mut dyn FnMut(&Walkable<'_>) -> bool) {
        let (mut number, mut goes_on) = (0, true);
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
                goes_on =
                    visit(&Walkable { number, name, engine: Some(engine), memory, decoder, base, walk });
                number += 1;
                if goes_on { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
            });
            if !goes_on {
                return;
            }
        }
    }
}

/// A named part of a packet.
#[derive(Clone, Debug)]
pub struct PacketPart {
    /// Its name; empty for dwords that the tables say nothing about.
    pub name: String,
    /// Dword of the packet, the header being 0.
    pub dword: u64,
    /// Its bits.
    pub value: u64,
    /// What they mean.
    pub text: String,
}

/// Dwords of a packet whose parts are named.
const NAMED: usize = 1 << 10;

impl PacketDecoder<'_> {
    /// The parts of a packet that say something.
    pub fn parts(self, packet: &PacketStep<'_>) -> Vec<PacketPart> {
        let words: Vec<u32> = [packet.header].into_iter().chain(packet.payload.iter().take(NAMED)).collect();
        match self {
            PacketDecoder::Amd(amd, engine) => amd_parts(amd, engine, packet, &words),
            PacketDecoder::Intel(decoder) => {
                let command = decoder.command(&words);
                let fields = command.iter().flat_map(|command| significant(command.fields()));
                let fields =
                    fields.filter(|(_, value)| !matches!(value, IntelValue::Struct | IntelValue::Wide));
                let part = |(field, value): (FieldValue, IntelValue)| PacketPart {
                    name: field
                        .indices()
                        .iter()
                        .fold(field.name.to_owned(), |name, i| format!("{name}[{i}]")),
                    dword: u64::from(field.start / 32),
                    value: field.raw.unwrap_or_default(),
                    text: ValueText(value).to_string(),
                };
                fields.map(part).collect()
            }
        }
    }
}

fn amd_parts(
    amd: Amd<'_>,
    engine: amd_stream::Engine,
    packet: &PacketStep<'_>,
    words: &[u32],
) -> Vec<PacketPart> {
    let dwords = Dwords::from(words);
    let header = match engine {
        amd_stream::Engine::Sdma => amd_stream::AmdPacketHeader::decode_dma(amd, dwords),
        amd_stream::Engine::Gfx | amd_stream::Engine::Compute => {
            amd_stream::AmdPacketHeader::decode(packet.header)
        }
    };
    let Some(header) = header else { return Vec::new() };
    let (place, raw, exec, payload) = (packet.place, packet.header, packet.exec, dwords.skip(1));
    let packet = amd_stream::Packet { place, raw, header, engine, payload, dwords, exec };
    let part = |field: amd_stream::PayloadField<'_>| {
        let text = match field.ty {
            Some(ty) => {
                let mut out = Vec::new();
                ty.write(field.value, &mut Variants::new(), &Palette::default(), &mut out);
                String::from_utf8_lossy(&out).into_owned()
            }
            None => format!("{:#x}", field.value),
        };
        PacketPart { name: field.name.to_owned(), dword: field.dword as u64, value: field.value, text }
    };
    packet.fields(amd).map(part).collect()
}

/// What names the parts of packets.
#[derive(Clone, Copy)]
pub enum PacketDecoder<'d> {
    /// Of an engine of AMD.
    Amd(Amd<'d>, amd_stream::Engine),
    /// Of an engine of Intel.
    Intel(Decoder),
}

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
    walk: &'m dyn Fn(&mut dyn StepSink),
}

impl Walkable<'_> {
    /// Walks it, with no register written yet.
    pub fn walk(&self, sink: &mut dyn StepSink) {
        (self.walk)(sink);
    }
}
