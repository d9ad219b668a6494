//! Packets that wait: for what, whether it holds, and who would make it hold.

use super::case::{AmdCase, Reg};
use super::position::AmdStop;
use super::stream::{SeenPacket, Walked};
use super::writer;
use crate::args::{Arg, Args};
use crate::awaited::{AwaitedWrite, WaitEnd, WriterOrder};
use crate::report::{Finding, Subject, Trust};
use crate::rules::Rule;
use unwedge_stream::amd::{Operand, Wait};

/// The packet that the command processor stopped in, if it waits; else those in what it was executing that may.
pub(super) fn findings(case: &AmdCase<'_>, walked: &Walked, stop: &AmdStop, polls: bool) -> Vec<Finding> {
    let own = stop.at.and_then(|at| Some((at, walked.packets.get(at)?)));
    if let Some((at, packet)) = own
        && packet.wait.is_some()
    {
        return describe(case, walked, at, packet, stop.point.trust).into_iter().collect();
    }
    if !polls {
        return Vec::new();
    }
    // It polls, and where is not known: every wait of the buffer, or of the ring, that does not hold.
    let within = stop.point.levels.last().filter(|level| level.level > 0).map(|level| level.base);
    let here = |packet: &SeenPacket| packet.buffer.map(|buffer| buffer.iova) == within;
    let waits = walked.packets.iter().enumerate().filter(|(_, p)| p.wait.is_some() && here(p));
    waits.filter_map(|(at, p)| describe(case, walked, at, p, Trust::Possible)).take(4).collect()
}

/// The condition, as data.
fn condition(case: &AmdCase<'_>, wait: &Wait) -> Args {
    let operand = match wait.operand {
        Operand::Memory(iova) => Args::new().with("memory", Arg::Address(iova)),
        Operand::Register(reg) => match case.amd.and_then(|amd| amd.reg(reg)) {
            Some(found) => Args::new().with("register", Arg::name(found.name().to_owned())),
            None => Args::new().with("register_offset", Arg::Value(reg.into())),
        },
    };
    if wait.semaphore {
        return operand.with("semaphore", true);
    }
    let narrow = wait.mask & 0xffff_ffff != 0xffff_ffff;
    let operand = operand.with_some("mask", narrow.then_some(Arg::Value(wait.mask)));
    let compared = match wait.symbol() {
        Some(symbol) => operand.with("comparison", Arg::name(symbol)),
        None => operand.with("comparison_number", Arg::Number(wait.function.into())),
    };
    compared.with("reference", Arg::Value(wait.reference))
}

fn describe(
    case: &AmdCase<'_>,
    walked: &Walked,
    at: usize,
    packet: &SeenPacket,
    trust: Trust,
) -> Option<Finding> {
    let wait = packet.wait?;
    let subject = Subject::Packet { name: packet.name.clone(), iova: packet.place.iova };
    let (rule, value, writer, registers) = match wait.operand {
        Operand::Memory(iova) => {
            let (rule, writer) = writer(case, walked, at, (iova, &wait));
            (rule, case.memory.read(iova), writer, None)
        }
        Operand::Register(reg) => {
            let name = case.amd.and_then(|amd| amd.reg(reg)).map(|found| found.name());
            let reg = name.and_then(|name| case.reg(name));
            (Rule::PacketWaitsForRegister, reg.map(|reg| reg.value), None, reg.map(Reg::evidence))
        }
    };
    let holds = value.and_then(|value| wait.holds(u64::from(value)));
    let rule = if holds == Some(true) { Rule::PacketAwaitedValueIsThere } else { rule };
    Some(
        Finding::new(rule, trust, subject)
            .with("condition", condition(case, &wait))
            .with_some("value", value.map(|value| Arg::Value(value.into())))
            .with_some("holds", holds)
            .with_some("writer", writer)
            .seen([packet.evidence()])
            .seen(registers),
    )
}

/// Where a packet is, by its name, and its buffer or the ring.
pub(super) fn place(packet: &SeenPacket) -> Args {
    let name = packet.name.clone().unwrap_or_default();
    let dword = packet.place.index as u64;
    Args::new()
        .with("packet", Arg::name(name))
        .with_some("buffer", packet.buffer.map(|buffer| Arg::Address(buffer.iova)))
        .with("dword", Arg::Number(dword))
}

/// Who writes the memory that is waited for, of the packets in the dump, and what that means.
fn writer(
    case: &AmdCase<'_>,
    walked: &Walked,
    at: usize,
    (iova, wait): (u64, &Wait),
) -> (Rule, Option<Args>) {
    let write = |packet: &SeenPacket, order: WriterOrder, ring: Option<&str>| {
        let range = packet.writes.filter(|range| range.holds(iova))?;
        let value = range.dword(iova);
        // A semaphore counts, and the upper half of a wide value is not looked at.
        let compared = value.filter(|_| !wait.semaphore && wait.reference >> 32 == 0);
        let word = match order {
            WriterOrder::Earlier => "earlier",
            WriterOrder::Elsewhere => "other-ring",
            WriterOrder::Later => "later",
        };
        let args = place(packet)
            .with("order", Arg::name(word))
            .with_some("ring", ring.map(|ring| Arg::Text(ring.to_owned())));
        let ends = compared.and_then(|value| wait.holds(u64::from(value)));
        Some(AwaitedWrite { order, args, value: value.map(u64::from), ends })
    };
    let own = walked.packets.iter().enumerate().filter_map(|(i, packet)| {
        write(packet, if i < at { WriterOrder::Earlier } else { WriterOrder::Later }, None)
    });
    let mut writes: Vec<AwaitedWrite> = own.collect();
    let others = writer::in_other_rings(case, iova);
    writes.extend(
        others.iter().filter_map(|(ring, packet)| write(packet, WriterOrder::Elsewhere, Some(ring.as_str()))),
    );
    let end = WaitEnd::of(&writes);
    let rule = match &end {
        WaitEnd::Writer(writer) if writer.order == WriterOrder::Earlier => Rule::PacketWaitsForEarlierWrite,
        WaitEnd::Writer(_) | WaitEnd::Nobody => Rule::PacketWaitsForOtherQueue,
        WaitEnd::Itself(_) => Rule::PacketWaitsForLaterWrite,
        WaitEnd::WrongValue(_) => Rule::PacketWaitsForWrongWrite,
    };
    (rule, end.writer().map(AwaitedWrite::into_args))
}
