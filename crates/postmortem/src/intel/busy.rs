//! Which units are not done, by the INSTDONE registers.

use super::case::{Case, Unit, finding, list};
use crate::{Finding, FindingKind, Trust};
use unwedge_hw::intel::Engine;
use unwedge_intel::instdone;

/// Units that are shown.
const SHOWN: usize = 12;

/// Units of an engine that have something to do.
pub(super) fn findings(case: &Case<'_, '_>, unit: &Unit<'_, '_>) -> Vec<Finding> {
    let Some(gpu) = case.gpu() else { return Vec::new() };
    let engine = Engine::from(unit.class());
    let (mut units, mut evidence) = (Vec::new(), Vec::new());
    let mut read = 0;
    for register in unit.dump.registers.iter().filter(|r| r.name.contains("INSTDONE")) {
        let Some(known) = instdone::register(gpu, engine, register.name) else { continue };
        read += 1;
        let value = register.value as u32;
        let place = register.index;
        let busy: Vec<String> =
            instdone::busy(known, value).map(|b| format!("{}{place}", b.unit())).collect();
        if !busy.is_empty() {
            let names = list(&busy, SHOWN);
            evidence.push(unit.seen(format!("{}{place} = {value:#010x}: {names}", register.name)));
        }
        units.extend(busy);
    }
    if read == 0 {
        return Vec::new();
    }
    let name = unit.name();
    if units.is_empty() {
        return vec![finding(
            FindingKind::Busy,
            Trust::Likely,
            format!("all units of {name} are done"),
            "The engine's units have nothing to do: it waits for something else, or its command streamer stands.",
            vec![unit.seen("every INSTDONE bit that has a unit is set")],
        )];
    }
    let (why, trust) = meaning(&units);
    vec![finding(
        FindingKind::Busy,
        trust,
        format!("{name}: {} not done", list(&units, SHOWN)),
        why,
        evidence,
    )]
}

/// What a set of units says.
fn meaning(units: &[String]) -> (&'static str, Trust) {
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
