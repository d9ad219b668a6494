//! Which units are not done, by the INSTDONE registers.

use super::case::{Case, Unit, finding, list};
use crate::prose::Finding;
use crate::report::{FindingKind, Trust};
use unwedge_hw::intel::EngineClass;
use unwedge_stream::intel::instdone;

/// Units that are shown.
const SHOWN: usize = 12;

/// Units of an engine that have something to do.
pub(super) fn findings(case: &Case<'_, '_>, unit: &Unit<'_, '_>) -> Vec<Finding> {
    let Some(gpu) = case.gpu() else { return Vec::new() };
    let engine = unit.class();
    let (mut units, mut evidence) = (Vec::new(), Vec::new());
    // Registers with bits that are not set, of which it is not known whether they are units.
    let mut unread = Vec::new();
    let mut read = 0;
    let own = unit.dump.registers.iter().map(|r| (r, instdone::register(gpu, engine, r.name)));
    let of_device = case.registers.iter().filter(|_| engine == EngineClass::Render);
    let of_device = of_device.map(|r| (r, instdone::register_of_device(gpu, r.name)));
    for (register, known) in own.chain(of_device).filter(|(r, _)| instdone::is_one(r.name)) {
        let value = register.value as u32;
        let (name, place) = (register.name, register.index);
        let Some(known) = known else {
            if value != u32::MAX {
                unread.push(format!("{name}{place}"));
                evidence.push(unit.seen(format!("{name}{place} = {value:#010x}: its bits are not known")));
            }
            continue;
        };
        read += 1;
        let busy: Vec<String> =
            instdone::busy(known, value).map(|b| format!("{}{place}", b.unit())).collect();
        if !busy.is_empty() {
            let names = list(&busy, SHOWN);
            evidence.push(unit.seen(format!("{name}{place} = {value:#010x}: {names}")));
        }
        units.extend(busy.into_iter().filter(|unit| !units.contains(unit)).collect::<Vec<_>>());
    }
    if read == 0 {
        return Vec::new();
    }
    let name = unit.name();
    if units.is_empty() && unread.is_empty() {
        return vec![finding(
            FindingKind::Busy,
            Trust::Likely,
            format!("all units of {name} are done"),
            "The engine's units have nothing to do: it waits for something else, or its command streamer stands.",
            vec![unit.seen("every INSTDONE bit that has a unit is set")],
        )];
    }
    if units.is_empty() {
        return vec![finding(
            FindingKind::Busy,
            Trust::Possible,
            format!("{name}: what is not done is not known ({})", list(&unread, SHOWN)),
            "Registers whose bits are not known have some that are not set; the units of all others are done.",
            evidence,
        )];
    }
    let (why, trust) = meaning(&units, unread.is_empty());
    vec![finding(
        FindingKind::Busy,
        trust,
        format!("{name}: {} not done", list(&units, SHOWN)),
        why,
        evidence,
    )]
}

/// What a set of units says; `complete` where there are no others.
fn meaning(units: &[String], complete: bool) -> (&'static str, Trust) {
    let has = |names: &[&str]| {
        units.iter().any(|u| {
            let stem = u.split('[').next().unwrap_or(u);
            names.iter().any(|n| stem.eq_ignore_ascii_case(n))
        })
    };
    let only = |names: &[&str]| {
        units.iter().all(|u| {
            let stem = u.split('[').next().unwrap_or(u);
            names.iter().any(|n| stem.eq_ignore_ascii_case(n))
        })
    };
    let front = ["Ring", "Ring Enable", "CS", "CSFE", "RCS", "CCS", "BCS", "VCS", "VECS"];
    if only(&front) && !complete {
        return ("", Trust::Possible);
    }
    if only(&front) {
        return (
            "Only the command streamer is not done: it waits (a semaphore, a flush, an event), or cannot go on.",
            Trust::Likely,
        );
    }
    if units.iter().any(|u| u.starts_with("EU") || u.starts_with("TDL") || u.contains("TDL")) {
        return (
            "Shader threads are running: an endless loop, a message without an answer, or a barrier that not all reach.",
            Trust::Possible,
        );
    }
    if has(&["SVSM", "SI", "SC", "DM", "FL", "MT", "ST"]) {
        return ("A sampler is at work: its surface or memory does not answer.", Trust::Possible);
    }
    if has(&["VF", "VFG", "VFE", "VFR"]) {
        return (
            "Vertex fetch is at work: it waits for vertices, or for the stages behind it.",
            Trust::Possible,
        );
    }
    if has(&["URBM", "SVG", "SOL", "GS", "CL", "SF", "TDS", "HS", "DS", "VS"]) {
        return ("The geometry pipeline is not empty: a stage in it does not get on.", Trust::Possible);
    }
    if has(&["GAM", "GAMT", "GAFS", "GACFS", "TSG", "GAFM"]) {
        return (
            "The memory arbiter has requests open: memory, or a translation, does not answer.",
            Trust::Possible,
        );
    }
    ("", Trust::Likely)
}
