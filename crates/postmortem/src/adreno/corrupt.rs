//! Damage of the command stream, and the errors the CP raised about it.

use unwedge_base::Generation;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

use crate::adreno::case::{AdrenoCase, register, seen};
use crate::adreno::hang::CpStop;
use crate::adreno::trace::{TracedPacket, header_of};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;

/// Dwords that people and allocators write on purpose.
const POISON: &[u32] = &[
    0xdead_d00d,
    0xdead_beef,
    0xdead_dead,
    0xdead_c0de,
    0xbaad_f00d,
    0xbad0_bad0,
    0xcafe_babe,
    0xcafe_d00d,
    0xfeed_face,
    0xabad_1dea,
    0xdead_0000,
    0x6b6b_6b6b,
    0xa5a5_a5a5,
    0xcccc_cccc,
];

/// What is wrong with the stream, if anything.
pub fn findings(case: &AdrenoCase<'_>, stop: Option<&CpStop>) -> Vec<Finding> {
    let mut out = Vec::new();
    out.extend(garbage_at_stop(case, stop));
    out.extend(stop.and_then(|stop| unknown_opcode(case, stop)));
    out.extend(stop.and_then(|stop| packet_past_end(case, stop)));
    out.extend(earlier_garbage(stop));
    out.extend(error_interrupts(case));
    out.extend(protected_access(case, stop));
    out
}

/// The SQE holds, or the stream has at the stop, a dword that no packet starts with.
fn garbage_at_stop(case: &AdrenoCase<'_>, stop: Option<&CpStop>) -> Option<Finding> {
    // In a draw state, the position has it.
    let in_group = |s: &CpStop| Some((s.point.header.filter(|_| s.point.packet.is_none())?, s.point.iova));
    let in_stream = stop.and_then(|s| s.scene.garbage.or_else(|| in_group(s)));
    let generation = case.gpu.generation();
    let in_sqe = case
        .sqe
        .as_ref()
        .map(|s| s.header())
        .filter(|&raw| generation >= Generation::A6xx && header_of(raw, generation).is_none());
    let raw = in_stream.map(|(raw, _)| raw).or(in_sqe)?;
    let agree = in_stream.is_some_and(|(raw, _)| Some(raw) == in_sqe);
    let trust = match (agree, in_stream.is_some()) {
        (true, _) => Trust::Certain,
        (false, true) => Trust::Possible,
        // Firmware may use $01 for something else while it works on a packet.
        (false, false) if case.sqe.as_ref().is_some_and(|s| s.confirmed) => Trust::Likely,
        (false, false) => Trust::Possible,
    };
    let rule = if POISON.contains(&raw) { Rule::PoisonInStream } else { Rule::NotAPacket };
    let iova = in_stream.and_then(|(_, iova)| iova);
    let stream = in_stream.map(|(raw, iova)| bad_header(section_of(case, iova), raw, iova));
    let sqe = in_sqe.map(|raw| seen("indexed-registers CP_SQE_STAT", register("$01", u64::from(raw))));
    let finding = Finding::new(rule, trust, Subject::Packet { name: None, iova })
        .with("header", Arg::Value(u64::from(raw)))
        .with("in_stream", in_stream.is_some())
        .with("in_sqe", in_sqe.is_some())
        .with("agree", agree);
    Some(finding.seen(stream.into_iter().chain(sqe)))
}

/// The packet at the stop is an operation that no packet of the GPU has.
fn unknown_opcode(case: &AdrenoCase<'_>, stop: &CpStop) -> Option<Finding> {
    let iova = stop.point.iova.filter(|_| stop.reached)?;
    let raw = case.memory.read(iova)?;
    let Some(AdrenoPacketHeader::Operation { opcode, .. }) = header_of(raw, case.gpu.generation()) else {
        return None;
    };
    if case.gpu.generation() < Generation::A5xx || case.gpu.packet_name(opcode).is_some() {
        return None;
    }
    let trust =
        stop.point.trust.min(if stop.headers_agree == Some(true) { Trust::Certain } else { Trust::Likely });
    let subject = Subject::Packet { name: stop.point.packet.clone(), iova: Some(iova) };
    let finding = Finding::new(Rule::UnknownOpcode, trust, subject)
        .with("header", Arg::Value(u64::from(raw)))
        .with("opcode", Arg::Value(u64::from(opcode)));
    Some(finding.seen([bad_header(section_of(case, Some(iova)), raw, Some(iova))]))
}

/// The packet at the stop has more payload than its stream has dwords left.
fn packet_past_end(case: &AdrenoCase<'_>, stop: &CpStop) -> Option<Finding> {
    let packet = stop.scene.packet.as_ref().filter(|_| stop.reached)?;
    let level = stop.point.levels.iter().rev().find(|level| matches!(level.level, 1 | 2))?;
    let size = level.size?;
    let inside = packet.iova == level.base.checked_add(packet.index.checked_mul(4)?);
    let dwords = 1 + u64::from(header_of(packet.raw, case.gpu.generation())?.count());
    let left = size.checked_sub(packet.index)?;
    if !inside || dwords <= left {
        return None;
    }
    let trust = stop.point.trust.min(Trust::Likely);
    let subject = Subject::Packet { name: Some(packet.name.clone()), iova: packet.iova };
    let finding = Finding::new(Rule::PacketPastEnd, trust, subject)
        .with("packet", Arg::name(packet.name.clone()))
        .with("dwords", Arg::Number(dwords))
        .with("left", Arg::Number(left))
        .with("stream", Arg::Address(level.base));
    Some(finding.seen([bad_header(section_of(case, packet.iova), packet.raw, packet.iova)]))
}

/// A dword where a packet should start.
fn bad_header(section: impl Into<String>, raw: u32, iova: Option<u64>) -> Evidence {
    let fact = Fact::Dwords { level: None, first: None, count: 1, words: vec![raw], packet: None };
    Evidence { iova, ..seen(section, fact) }
}

fn earlier_garbage(stop: Option<&CpStop>) -> Option<Finding> {
    let bad = &stop?.scene.earlier_garbage;
    let &(iova, raw) = bad.last()?;
    let finding =
        Finding::new(Rule::EarlierBadHeaders, Trust::Possible, Subject::Packet { name: None, iova })
            .with("count", Arg::Number(bad.len() as u64))
            .with("header", Arg::Value(u64::from(raw)))
            .with_some("iova", iova.map(Arg::Address));
    Some(finding.seen(bad.iter().rev().take(4).map(|&(iova, raw)| bad_header("bos", raw, iova))))
}

/// The CP refused an access to a protected register.
const PROTECTION_ERROR: &str = "CP_REGISTER_PROTECTION_ERROR";

/// The flags of error interrupts. What they mean is said where reports are shown.
const ERRORS: &[&str] = &[
    "CP_OPCODE_ERROR",
    "CP_UCODE_ERROR",
    "CP_HW_FAULT_ERROR",
    PROTECTION_ERROR,
    "CP_AHB_ERROR",
    "CP_VSD_PARITY_ERROR",
    "CP_ILLEGAL_INSTR_ERROR",
    "CP_HW_ERROR",
    "UCHE_OOB_ACCESS",
    "UCHE_TRAP_INTR",
    "RBBM_HANG_DETECT",
    "RBBM_ATB_BUS_OVERFLOW",
    "TSBWRITEERROR",
    "SWFUSEVIOLATION",
];

fn error_interrupts(case: &AdrenoCase<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for register in ["CP_INTERRUPT_STATUS", "RBBM_INT_0_STATUS"] {
        let Some(flags) = case.regs.flags(register) else { continue };
        for flag in flags {
            let Some(&error) = ERRORS.iter().find(|name| is_flag(flag, name)) else { continue };
            // `protected-register` says which access it was.
            if error == PROTECTION_ERROR && protect_status(case).is_some() {
                continue;
            }
            let subject = Subject::Register(register.into());
            out.push(
                Finding::new(Rule::ErrorInterrupt, Trust::Certain, subject)
                    .with("error", Arg::name(error))
                    .with("flag", Arg::name(flag.to_owned()))
                    .seen(case.regs.flags_evidence(register)),
            );
        }
    }
    if let Some(fault) = case.regs.get("CP_HW_FAULT").filter(|&v| v != 0) {
        out.push(
            Finding::new(Rule::CpHwFault, Trust::Certain, Subject::Register("CP_HW_FAULT".into()))
                .with("value", Arg::Value(u64::from(fault)))
                .seen(case.regs.evidence("CP_HW_FAULT")),
        );
    }
    out
}

/// a7xx repeats flags for its other threads with a suffix.
fn is_flag(flag: &str, name: &str) -> bool {
    flag.strip_prefix(name).is_some_and(|rest| matches!(rest, "" | "_BV" | "_LPAC"))
}

/// CP_PROTECT_STATUS keeps the last access that the CP's protection refused.
fn protect_status(case: &AdrenoCase<'_>) -> Option<u32> {
    let known = case.gpu.generation() >= Generation::A6xx;
    case.regs.get("CP_PROTECT_STATUS").filter(|&status| known && status != 0)
}

fn protected_access(case: &AdrenoCase<'_>, stop: Option<&CpStop>) -> Option<Finding> {
    let status = protect_status(case)?;
    let reg = status & 0x3_ffff;
    let name = case.gpu.reg(reg).map_or_else(|| format!("{reg:#x}"), |r| r.name().to_owned());
    let packet = stop.filter(|stop| stop.reached).and_then(|stop| stop.scene.packet.as_ref());
    let accesses = |packet: &&TracedPacket| match header_of(packet.raw, case.gpu.generation()) {
        Some(AdrenoPacketHeader::Registers { reg: first, count }) => {
            reg.checked_sub(first).is_some_and(|at| at < count)
        }
        _ => packet.payload.iter().any(|word| word & 0x3_ffff == reg),
    };
    let origin = packet.filter(accesses).map(|packet| {
        let origin = Args::new().with("packet", Arg::name(packet.name.clone()));
        origin.with_some("iova", packet.iova.map(Arg::Address))
    });
    let finding =
        Finding::new(Rule::ProtectedRegister, Trust::Likely, Subject::Register(name.clone().into()))
            .with("register", Arg::name(name))
            .with_some("origin", origin.map(Arg::Record))
            .with("read", status & (1 << 20) != 0);
    Some(finding.seen(case.regs.evidence("CP_PROTECT_STATUS")))
}

/// The section that memory at this address comes from.
pub(crate) fn section_of(case: &AdrenoCase<'_>, iova: Option<u64>) -> String {
    let ring = iova.and_then(|iova| {
        case.dump.rings.iter().find(|r| r.iova <= iova && iova - r.iova < u64::from(r.size.unwrap_or(0)))
    });
    ring.map_or_else(|| "bos".to_owned(), |r| format!("ringbuffer {}", r.id))
}
