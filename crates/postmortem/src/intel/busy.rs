//! Which units are not done, by the INSTDONE registers; which threads of EUs wait for a debugger.

use super::case::{IntelCase, Unit, register, seen, texts};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, FieldFact, Finding, Subject, Trust};
use crate::rules::Rule;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::RingRegister;
use unwedge_hw::intel::EngineClass;
use unwedge_stream::intel::instdone;

/// INSTDONE registers of an engine, read.
#[derive(Default)]
struct Units {
    /// Units that are not done, each once.
    not_done: Vec<String>,
    /// Registers with bits that are not set, of which it is not known whether they are units.
    unknown: Vec<String>,
    /// Registers that have either.
    evidence: Vec<Evidence>,
    /// Registers whose units are known.
    known: Vec<Evidence>,
}

impl Units {
    fn read(case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Units {
        let Some(gpu) = case.gpu() else { return Units::default() };
        let engine = unit.class();
        let mut units = Units::default();
        let own = unit.dump.registers.iter().map(|r| (r, instdone::register(gpu, engine, r.name)));
        let of_device = case.registers.iter().filter(|_| engine == EngineClass::Render);
        let of_device = of_device.map(|r| (r, instdone::register_of_device(gpu, r.name)));
        // Of registers that a generation does not have, the driver prints 0.
        let of_device = of_device.filter(|(r, known)| known.is_some() || r.value != 0);
        for (read, known) in own.chain(of_device).filter(|(r, _)| instdone::is_one(r.name)) {
            let (value, index) = (read.value as u32, read.index);
            let name = format!("{}{index}", read.name);
            let Some(known) = known else {
                if value != u32::MAX {
                    units.evidence.push(unit.seen(register(name.clone(), value.into())));
                    units.unknown.push(name);
                }
                continue;
            };
            let busy: Vec<&str> = instdone::busy(known, value).map(|busy| busy.unit()).collect();
            let fields =
                busy.iter().map(|&unit| FieldFact { name: unit.into(), value: 0, meaning: None }).collect();
            let seen = unit.seen(Fact::Register { name: name.into(), value: value.into(), fields });
            if !busy.is_empty() {
                units.evidence.push(seen.clone());
            }
            units.known.push(seen);
            for name in busy.into_iter().map(|unit| format!("{unit}{index}")) {
                if !units.not_done.contains(&name) {
                    units.not_done.push(name);
                }
            }
        }
        units
    }
}

/// Whether INSTDONE was not read: it is zero, as if every unit worked, on an engine whose ring is empty.
fn unread(unit: &Unit<'_, '_>) -> bool {
    let empty = unit.ring(RingRegister::Head) == unit.ring(RingRegister::Tail);
    empty && unit.ring(RingRegister::Instdone) == Some(0)
}

/// Units of an engine that have something to do.
pub(super) fn finding(case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Option<Finding> {
    let units = Units::read(case, unit);
    if units.known.is_empty() || unread(unit) {
        return None;
    }
    let complete = units.unknown.is_empty();
    let (rule, trust) = match (units.not_done.is_empty(), complete) {
        (true, true) => return Some(unit.finding(Rule::AllUnitsDone, Trust::Likely).seen(units.known)),
        (true, false) => (Rule::UnknownUnitsNotDone, Trust::Possible),
        (false, _) => meaning(&units.not_done, complete),
    };
    // Which of a hundred execution units it is differs from run to run.
    let found = unit.finding(rule, trust).with("units", texts(units.not_done));
    Some(found.with("unknown_registers", texts(units.unknown)).seen(units.evidence))
}

/// Threads that are named.
const THREADS: usize = 32;

/// Threads of EUs that waited for a debugger before the driver halted the others, or after that.
pub(super) fn attention(dump: &ErrorState<'_>) -> Option<Finding> {
    let read = |when: &str| dump.attentions().find(|a| a.when == when && a.threads().next().is_some());
    let (found, trust) = match read("before") {
        Some(before) => (before, Trust::Certain),
        // The driver asked them to stop.
        None => (read("after")?, Trust::Possible),
    };
    let threads = found.threads().take(THREADS).map(|thread| {
        let args = Args::new()
            .with("subslice", Arg::Number(thread.subslice.into()))
            .with("eu", Arg::Number(thread.eu.into()))
            .with("thread", Arg::Number(thread.thread.into()));
        Arg::Record(args)
    });
    let control = dump.registers.iter().find(|r| r.name == "TD_CTL");
    let control = control.map(|r| seen("registers", register("TD_CTL", r.value), Some(r.span)));
    Some(
        Finding::new(Rule::EuThreadsNeedAttention, trust, Subject::Gpu)
            .with("when", Arg::Text(found.when.clone()))
            .with("count", Arg::Number(found.threads().count() as u64))
            .with("threads", threads.collect::<Vec<Arg>>())
            .seen(control),
    )
}

/// What a set of units says; `complete` where there are no others.
fn meaning(units: &[String], complete: bool) -> (Rule, Trust) {
    const STREAMERS: [&str; 9] = ["Ring", "Ring Enable", "CS", "CSFE", "RCS", "CCS", "BCS", "VCS", "VECS"];
    let is_one = |unit: &String, names: &[&str]| {
        let stem = unit.split('[').next().unwrap_or(unit);
        names.iter().any(|name| stem.eq_ignore_ascii_case(name))
    };
    let has = |names: &[&str]| units.iter().any(|unit| is_one(unit, names));
    if units.iter().all(|unit| is_one(unit, &STREAMERS)) {
        return match complete {
            true => (Rule::OnlyStreamerNotDone, Trust::Likely),
            false => (Rule::UnitsNotDone, Trust::Possible),
        };
    }
    if units.iter().any(|unit| unit.starts_with("EU") || unit.contains("TDL")) {
        return (Rule::ShaderThreadsRun, Trust::Possible);
    }
    if has(&["SVSM", "SI", "SC", "DM", "FL", "MT", "ST"]) {
        return (Rule::SamplerNotDone, Trust::Possible);
    }
    if has(&["VF", "VFG", "VFE", "VFR"]) {
        return (Rule::VertexFetchNotDone, Trust::Possible);
    }
    if has(&["URBM", "SVG", "SOL", "GS", "CL", "SF", "TDS", "HS", "DS", "VS"]) {
        return (Rule::GeometryNotDone, Trust::Possible);
    }
    if has(&["GAM", "GAMT", "GAFS", "GACFS", "TSG", "GAFM"]) {
        return (Rule::MemoryArbiterNotDone, Trust::Possible);
    }
    (Rule::UnitsNotDone, Trust::Likely)
}

/// What the units say, by the rule of the finding on them.
pub(super) fn units(busy: &Finding) -> Arg {
    Arg::name(busy.rule.row().id)
}
