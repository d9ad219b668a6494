//! Packets that wait: for what, whether it holds, and who would make it hold.

use super::case::Case;
use super::position::Stop;
use super::stream::{Seen, Walked};
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};
use unwedge_stream::amd::{Operand, Wait};

/// The packet that the command processor stopped in, if it waits; else those in what it was executing that may.
pub(super) fn findings(case: &Case<'_>, walked: &Walked, stop: &Stop, polls: bool) -> Vec<Finding> {
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
    let here = |packet: &Seen| packet.buffer.map(|buffer| buffer.iova) == within;
    let waits = walked.packets.iter().enumerate().filter(|(_, p)| p.wait.is_some() && here(p));
    waits.filter_map(|(at, p)| describe(case, walked, at, p, Trust::Possible)).take(4).collect()
}

/// `memory 0x1000 == 0x7`
fn words(case: &Case<'_>, wait: &Wait) -> String {
    let operand = match wait.operand {
        Operand::Memory(iova) => format!("memory {iova:#x}"),
        Operand::Register(reg) => match case.amd.and_then(|amd| amd.reg(reg)) {
            Some(found) => format!("register {}", found.name()),
            None => format!("register {reg:#x}"),
        },
    };
    if wait.semaphore {
        return format!("a semaphore at {}", operand.trim_start_matches("memory "));
    }
    let mask =
        if wait.mask & 0xffff_ffff == 0xffff_ffff { String::new() } else { format!(" & {:#x}", wait.mask) };
    match wait.symbol() {
        Some(symbol) => format!("{operand}{mask} {symbol} {:#x}", wait.reference),
        None => format!("{operand}{mask}, comparison {} with {:#x}", wait.function, wait.reference),
    }
}

fn describe(case: &Case<'_>, walked: &Walked, at: usize, packet: &Seen, trust: Trust) -> Option<Finding> {
    let wait = packet.wait?;
    let mut why = Vec::new();
    let mut evidence = vec![Evidence {
        section: packet.buffer.map_or("ring".to_owned(), |b| format!("IB at {:#x}", b.iova)),
        what: format!("{} at dword {:#x}", packet.name.as_deref().unwrap_or_default(), packet.place.index),
        iova: packet.place.iova,
        span: None,
    }];
    match wait.operand {
        Operand::Memory(iova) => {
            let value = case.memory.read(iova);
            match value.and_then(|v| Some((v, wait.holds(u64::from(v))?))) {
                Some((value, true)) => why
                    .push(format!("the dump has {value:#x} there, which it waits for: it may have gone on")),
                Some((value, false)) => why.push(format!("the dump has {value:#x} there")),
                None => why.push("what stands there is not in the dump".to_owned()),
            }
            why.push(writers(walked, at, iova));
        }
        Operand::Register(reg) => {
            let name = case.amd.and_then(|amd| amd.reg(reg)).map(|found| found.name());
            if let Some(reg) = name.and_then(|name| case.reg(name)) {
                why.push(match wait.holds(u64::from(reg.value)) {
                    Some(true) => format!("the dump has {:#x} there, which it waits for", reg.value),
                    _ => format!("the dump has {:#x} there", reg.value),
                });
                evidence.push(reg.evidence());
            }
        }
    }
    Some(Finding {
        kind: FindingKind::CpWait,
        trust,
        title: format!("{} waits until {}", packet.name.as_deref().unwrap_or("a packet"), words(case, &wait)),
        why: why.join("; "),
        evidence,
    })
}

/// Who writes the memory that is waited for, of the packets in the dump.
fn writers(walked: &Walked, at: usize, iova: u64) -> String {
    let mut writers = walked.packets.iter().enumerate().filter(|(_, p)| p.writes == Some(iova));
    let place = |packet: &Seen| {
        let name = packet.name.as_deref().unwrap_or_default();
        match packet.buffer {
            Some(buffer) => format!("{name} at {:#x}+{:#x}", buffer.iova, packet.place.index * 4),
            None => format!("{name} at dword {:#x} of the ring", packet.place.index),
        }
    };
    let (before, after): (Vec<_>, Vec<_>) = writers.by_ref().partition(|(i, _)| *i < at);
    match (before.last(), after.first()) {
        (Some((_, packet)), _) => format!("it is written by {}, in front of the wait", place(packet)),
        (None, Some((_, packet))) => {
            format!("of this stream, only {} writes it, behind the wait: that cannot end it", place(packet))
        }
        (None, None) => "no packet in the dump writes it: another queue or the CPU has to".to_owned(),
    }
}
