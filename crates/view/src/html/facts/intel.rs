//! What a page shows of dumps of i915 and xe.

use super::{BlockFacts, BufferFacts, DumpFacts, QueueFacts, RegisterFacts, StageFacts};
use crate::intel::values::Meaning;
use crate::intel::{IntelDump, engine_name};
use unwedge_capture::Dump;
use unwedge_capture::intel::{DumpEngine, IntelRegister, RingRegister};
use unwedge_hw::intel::EngineClass;
use unwedge_hw::intel::platform::Version;
use unwedge_hw::intel::ring::{self, CTL_ENABLE, HEAD_OFFSET, TAIL_OFFSET};
use unwedge_postmortem::Report;
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::instdone;

/// Units of one engine that are shown.
const UNITS: usize = 96;

/// Reads them off a dump.
pub(super) fn collect(dump: &Dump<'_>, report: &Report, facts: &mut DumpFacts) {
    let Some(dump) = IntelDump::of(dump) else { return };
    let version = dump.graphics().version;
    facts.queues = dump
        .engines()
        .iter()
        .map(|engine| QueueFacts {
            name: engine_name(&engine.name),
            read: engine.ring(RingRegister::Head).map(|head| (head & u64::from(HEAD_OFFSET)) / 4),
            written: engine.ring(RingRegister::Tail).map(|tail| (tail & u64::from(TAIL_OFFSET)) / 4),
            size: engine.ring(RingRegister::Ctl).and_then(ring_dwords),
            ..QueueFacts::default()
        })
        .collect();
    facts.buffers = dump
        .blocks()
        .iter()
        .filter_map(|block| {
            Some(BufferFacts {
                iova: block.address?,
                size: block.length.unwrap_or(0),
                name: format!("{} {}", engine_name(&block.owner), block.name).trim().to_owned(),
                held: block.data.is_some(),
            })
        })
        .collect();
    for engine in dump.engines() {
        let class = engine.id().map_or(EngineClass::Render, |id| id.class);
        let rows = engine.registers.iter().map(|r| register(version, class, r, &engine.registers));
        facts.add_registers(engine_name(&engine.name), rows);
    }
    let of_device: &[IntelRegister<'_>] = match dump {
        IntelDump::I915(state) => &state.registers,
        IntelDump::Xe(_) => &[],
    };
    facts.add_registers(
        "device",
        of_device.iter().map(|r| register(version, EngineClass::Render, r, of_device)),
    );
    let hung = report.hang.as_ref().and_then(|hang| hang.ring_name.as_deref());
    let engines = dump.engines();
    let engine = engines.iter().find(|engine| Some(&*engine_name(&engine.name)) == hung);
    if let (Some(engine), Some(version)) = (engine.or(engines.first()), version) {
        units(engine, version, facts);
    }
}

/// The size of a ring in dwords by RING_CTL; `None` if it is not enabled.
fn ring_dwords(ctl: u64) -> Option<u64> {
    let ctl = ctl as u32;
    (ctl & CTL_ENABLE != 0).then(|| u64::from(ring::size(ctl)) / 4)
}

fn register(
    version: Option<Version>,
    class: EngineClass,
    register: &IntelRegister<'_>,
    beside: &[IntelRegister<'_>],
) -> RegisterFacts {
    let digits = if register.value > u64::from(u32::MAX) { 18 } else { 10 };
    let meaning = version.and_then(|version| Meaning::of(version, class, register, beside));
    RegisterFacts {
        name: format!("{}{}", register.name, register.index),
        value: format!("{:#0digits$x}", register.value),
        meaning: meaning.map(|meaning| meaning.to_string()).unwrap_or_default(),
    }
}

/// The units of an engine, by its INSTDONE registers.
fn units(engine: &DumpEngine<'_>, version: Version, facts: &mut DumpFacts) {
    let class = engine.id().map_or(EngineClass::Render, |id| id.class);
    let gpu = Decoder::new(version, class).gpu;
    let mut blocks: Vec<BlockFacts> = Vec::new();
    for register in engine.registers.iter().filter(|register| instdone::is_one(register.name)) {
        let Some(known) = instdone::register(gpu, class, register.name) else { continue };
        let busy: Vec<u32> = instdone::busy(known, register.value as u32).map(|unit| unit.bit).collect();
        for unit in instdone::busy(known, 0) {
            let name = format!("{}{}", unit.unit(), register.index);
            blocks.push(BlockFacts { name: name.into(), busy: busy.contains(&unit.bit) });
        }
    }
    // Of more units than fit, those that are not done matter.
    if blocks.len() > UNITS {
        blocks.sort_by_key(|block| !block.busy);
        blocks.truncate(UNITS);
    }
    if !blocks.is_empty() {
        facts.stages_from = format!("the INSTDONE registers of {}", engine_name(&engine.name));
        facts.stages = vec![StageFacts { name: "Units", blocks }];
    }
}
