//! What an engine waits for: semaphores, events, flushes.
//!
//! Facts: MI_SEMAPHORE_WAIT and MI_WAIT_FOR_EVENT as the command reference has them.

use super::case::{Case, Unit, finding};
use super::stop::{Found, Stop};
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};
use unwedge_stream::intel::walk::canonical;

/// Opcodes of commands that wait: bits 28:23 of an MI header.
const MI_WAIT_FOR_EVENT: u32 = 0x03;
const MI_WAIT_FOR_EVENT_2: u32 = 0x04;
const MI_SEMAPHORE_WAIT: u32 = 0x1c;

/// What the command waits for that an engine stands at.
pub(super) fn finding_of(case: &Case<'_, '_>, unit: &Unit<'_, '_>, stop: &Stop) -> Option<Finding> {
    let command = stop.command.as_ref()?;
    let header = *command.words.first()?;
    if header >> 29 != 0 {
        return flush(unit, stop, command);
    }
    match header >> 23 & 0x3f {
        MI_SEMAPHORE_WAIT => semaphore(case, unit, stop, command, header),
        MI_WAIT_FOR_EVENT | MI_WAIT_FOR_EVENT_2 => Some(finding(
            FindingKind::CpWait,
            stop.trust(),
            format!("{} waits for an event of the display ({})", unit.name(), command.name),
            "A vertical blank or scan line that does not come: the pipe is off, or the event is not enabled.",
            vec![at(unit, command)],
        )),
        _ => None,
    }
}

fn at(unit: &Unit<'_, '_>, command: &Found) -> Evidence {
    let words = command.words.iter().take(6).map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(" ");
    let mut evidence = unit.seen(format!("{} at {:#x}: {words}", command.name, command.address));
    evidence.iova = Some(command.address);
    evidence
}

fn semaphore(
    case: &Case<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &Stop,
    command: &Found,
    header: u32,
) -> Option<Finding> {
    let [_, wanted, low, ..] = command.words[..] else { return None };
    let high = command.words.get(3).copied().unwrap_or(0);
    let address = canonical(u64::from(high) << 32 | u64::from(low & !3));
    let ggtt = header >> 22 & 1 != 0;
    let memory = if ggtt { case.ggtt } else { unit.ppgtt };
    let held =
        memory.read(address).or_else(|| case.ggtt.read(address).filter(|_| !ggtt && address < 1 << 32));
    if held.is_none() {
        case.want(unit, address);
    }
    let (sign, met): (&str, fn(u32, u32) -> bool) = match header >> 12 & 7 {
        0 => (">", |a, b| a > b),
        1 => (">=", |a, b| a >= b),
        2 => ("<", |a, b| a < b),
        3 => ("<=", |a, b| a <= b),
        4 => ("==", |a, b| a == b),
        5 => ("!=", |a, b| a != b),
        _ => ("?", |_, _| false),
    };
    let mut evidence = vec![at(unit, command)];
    let (state, why, trust) = match held {
        Some(value) if met(value, wanted) => (
            format!("memory holds {value:#x} by now"),
            "The value is there: the wait ends, or the engine was not told of the change (no signal, a stale cache).",
            Trust::Possible,
        ),
        Some(value) => (
            format!("memory holds {value:#x}"),
            "Whoever is to write it has not: look at the other engines and processes, and at the value that is wanted.",
            stop.trust(),
        ),
        None => (
            "the dump does not hold it".to_owned(),
            "Whether the value has come is not known.",
            stop.trust().min(Trust::Likely),
        ),
    };
    if let Some(value) = held {
        let mut read = unit.seen(format!("{address:#x} holds {value:#010x}"));
        read.iova = Some(address);
        evidence.push(read);
    }
    let space = if ggtt { "GGTT " } else { "" };
    let mode = if header >> 15 & 1 != 0 { "polls" } else { "waits for a signal at" };
    Some(finding(
        FindingKind::CpWait,
        trust,
        format!("{} {mode} {space}{address:#x} until it is {sign} {wanted:#x}; {state}", unit.name()),
        why,
        evidence,
    ))
}

/// A flush that does not end is a wait for everything before it.
fn flush(unit: &Unit<'_, '_>, stop: &Stop, command: &Found) -> Option<Finding> {
    if !command.name.starts_with("PIPE_CONTROL") {
        return None;
    }
    let flags = command.words.get(1).copied().unwrap_or(0);
    let stall = flags >> 20 & 1 != 0;
    let why = if stall && stop.draws == 0 {
        "It stalls the streamer until everything before it is done; no draw or dispatch stands before it in this walk."
    } else if stall {
        "It stalls the streamer until everything before it is done: the draw or dispatch before it is what hangs."
    } else {
        "It flushes or invalidates caches; what comes before it may be what hangs."
    };
    Some(finding(
        FindingKind::CpWait,
        stop.trust().min(Trust::Likely),
        format!(
            "{} is at a PIPE_CONTROL with the flags {flags:#010x}{}",
            unit.name(),
            if stall { " (CS stall)" } else { "" }
        ),
        why,
        vec![at(unit, command)],
    ))
}
