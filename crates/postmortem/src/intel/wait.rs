//! What an engine waits for: semaphores, events, flushes.
//!
//! Facts: MI_SEMAPHORE_WAIT and MI_WAIT_FOR_EVENT as the command reference has them.

use super::busy;
use super::case::{CommandDwords, IntelCase, Unit};
use super::stop::IntelStop;
use super::writer;
use crate::args::Arg;
use crate::awaited::WaitEnd;
use crate::report::{Evidence, Fact, Finding, Trust};
use crate::rules::Rule;
use unwedge_stream::intel::walk::canonical;

/// Opcodes of commands that wait: bits 28:23 of an MI header.
const MI_WAIT_FOR_EVENT: u32 = 0x03;
const MI_WAIT_FOR_EVENT_2: u32 = 0x04;
const MI_SEMAPHORE_WAIT: u32 = 0x1c;
/// Dwords of a command that are evidence.
const SHOWN: usize = 6;

/// What the command waits for that an engine was executing. `busy` is the finding on the units that are not done.
pub(super) fn finding(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    busy: Option<&Finding>,
) -> Option<Finding> {
    let command = stop.command.as_ref()?;
    let header = *command.words.first()?;
    if header >> 29 != 0 {
        return flush(unit, stop, command, busy);
    }
    match header >> 23 & 0x3f {
        MI_SEMAPHORE_WAIT => semaphore(case, unit, stop, command),
        MI_WAIT_FOR_EVENT | MI_WAIT_FOR_EVENT_2 => Some(
            unit.finding(Rule::DisplayEventWait, stop.trust())
                .with_some("command", command.name.map(Arg::name))
                .seen([unit.seen_command(command, SHOWN)]),
        ),
        _ => None,
    }
}

/// How a semaphore compares: the sign, and whether it is met.
type Comparison = (&'static str, fn(u32, u32) -> bool);

fn semaphore(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    command: &CommandDwords,
) -> Option<Finding> {
    let [header, wanted, low, ..] = command.words[..] else { return None };
    let high = command.words.get(3).copied().unwrap_or(0);
    let address = canonical(u64::from(high) << 32 | u64::from(low & !3));
    let ggtt = header >> 22 & 1 != 0;
    let memory = if ggtt { case.ggtt } else { unit.ppgtt };
    let held =
        memory.read(address).or_else(|| case.ggtt.read(address).filter(|_| !ggtt && address < 1 << 32));
    if held.is_none() {
        case.want(unit, address);
    }
    let (relation, met): Comparison = match header >> 12 & 7 {
        0 => (">", |a, b| a > b),
        1 => (">=", |a, b| a >= b),
        2 => ("<", |a, b| a < b),
        3 => ("<=", |a, b| a <= b),
        4 => ("==", |a, b| a == b),
        5 => ("!=", |a, b| a != b),
        _ => ("?", |_, _| false),
    };
    let writer = writer::find(case, unit, stop, (address, ggtt), &|value| met(value, wanted));
    let (rule, trust) = match (held.map(|value| met(value, wanted)), &writer) {
        (Some(true), _) => (Rule::SemaphoreValueIsThere, Trust::Possible),
        // A command after the wait is never reached, so the stream holds itself up. Who else could write is not known.
        (Some(false), Some(WaitEnd::Itself(_))) => (Rule::SemaphoreWaitsForItself, stop.trust()),
        (None, Some(WaitEnd::Itself(_))) => (Rule::SemaphoreWaitsForItself, stop.trust().min(Trust::Likely)),
        (_, Some(WaitEnd::WrongValue(_))) => (Rule::SemaphoreWrongWrite, stop.trust().min(Trust::Likely)),
        (Some(false), _) => (Rule::SemaphoreNotSignaled, stop.trust().min(Trust::Likely)),
        (None, _) => (Rule::SemaphoreValueMissing, stop.trust().min(Trust::Likely)),
    };
    let found = unit
        .finding(rule, trust)
        .with("address", Arg::Address(address))
        .with("ggtt", ggtt)
        .with("polls", header >> 15 & 1 != 0)
        .with("relation", Arg::name(relation))
        .with("reference", Arg::Value(wanted.into()))
        .with_some("value", held.map(|value| Arg::Value(value.into())))
        .with("no_writer", writer == Some(WaitEnd::Nobody))
        .with_some("writer", writer.and_then(WaitEnd::writer).map(|w| Arg::Record(w.into_args())))
        .seen([unit.seen_command(command, SHOWN)]);
    Some(found.seen(held.map(|value| {
        let fact = Fact::Dwords { level: None, first: None, count: 1, words: vec![value], packet: None };
        Evidence { iova: Some(address), ..unit.seen(fact) }
    })))
}

/// A flush that does not end is a wait for everything before it.
fn flush(
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    command: &CommandDwords,
    busy: Option<&Finding>,
) -> Option<Finding> {
    if !command.name?.starts_with("PIPE_CONTROL") {
        return None;
    }
    let flags = command.words.get(1).copied().unwrap_or(0);
    let rule = match (flags >> 20 & 1 != 0, stop.draws) {
        (true, 0) => Rule::StallWithoutWork,
        (true, _) => Rule::StallWaitsForWork,
        (false, _) => Rule::FlushAtStop,
    };
    Some(
        unit.finding(rule, stop.trust().min(Trust::Likely))
            .with("flags", Arg::Value(flags.into()))
            .with_some("busy", busy.map(busy::units))
            .seen([unit.seen_command(command, SHOWN)]),
    )
}
