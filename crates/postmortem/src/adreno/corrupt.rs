//! Damage of the command stream, and the errors the CP raised about it.

use unwedge_base::Generation;

use crate::adreno::case::Case;
use crate::adreno::hang::Stop;
use crate::adreno::trace::header_of;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};

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
pub fn findings(case: &Case<'_>, stop: Option<&Stop>) -> Vec<Finding> {
    let mut out = Vec::new();
    out.extend(garbage_at_stop(case, stop));
    out.extend(earlier_garbage(stop));
    out.extend(error_interrupts(case));
    out.extend(protected_access(case));
    out
}

/// The SQE holds, or the stream has at the stop, a dword that no packet starts with.
fn garbage_at_stop(case: &Case<'_>, stop: Option<&Stop>) -> Option<Finding> {
    let in_stream = stop.and_then(|s| s.scene.garbage);
    let generation = case.gpu.generation();
    let in_sqe = case
        .sqe
        .as_ref()
        .map(|s| s.header())
        .filter(|&raw| generation >= Generation::A6xx && header_of(raw, generation).is_none());
    let raw = in_stream.map(|(raw, _)| raw).or(in_sqe)?;
    let mut evidence = Vec::new();
    if let Some((raw, iova)) = in_stream {
        let what = format!("{raw:#010x} where a packet should start");
        evidence.push(Evidence { iova, ..Evidence::new(section_of(case, iova), what) });
    }
    if let Some(raw) = in_sqe {
        evidence.push(Evidence::new("indexed-registers CP_SQE_STAT", format!("$01 = {raw:#010x}")));
    }
    let agree = in_stream.is_some_and(|(raw, _)| Some(raw) == in_sqe);
    let trust = match (agree, in_stream.is_some()) {
        (true, _) => Trust::Certain,
        (false, true) => Trust::Possible,
        // Firmware may use $01 for something else while it works on a packet.
        (false, false) if case.sqe.as_ref().is_some_and(|s| s.confirmed) => Trust::Likely,
        (false, false) => Trust::Possible,
    };
    let deliberate = POISON.contains(&raw);
    let title = if deliberate {
        format!("a deliberately broken command stream stalled the CP: {raw:#010x} is no packet")
    } else {
        format!("the command stream is corrupt: the CP took {raw:#010x} for a packet header")
    };
    let kind = if deliberate {
        "Somebody wrote that value on purpose: a test, a poisoned buffer or freed memory"
    } else {
        "Overwritten or stale memory, or a packet before it with a wrong length"
    };
    let who = match (agree, in_sqe.is_some()) {
        (true, _) => "The dword at the stop and the SQE's current packet header ($01) are the same",
        (false, true) => "The SQE's current packet header ($01) has no valid type or parity",
        (false, false) => "The dword at the stop has no valid type or parity",
    };
    let why = format!("{who}. {kind}.");
    Some(Finding { kind: FindingKind::CorruptStream, trust, title, why, evidence })
}

fn earlier_garbage(stop: Option<&Stop>) -> Option<Finding> {
    let bad = &stop?.scene.earlier_garbage;
    let (iova, raw) = bad.last()?;
    let evidence = bad.iter().rev().take(4).map(|(iova, raw)| Evidence {
        iova: *iova,
        ..Evidence::new("bos", format!("{raw:#010x} where a packet should start"))
    });
    let at = iova.map_or_else(String::new, |iova| format!(" at {iova:#x}"));
    Some(Finding {
        kind: FindingKind::CorruptStream,
        trust: Trust::Possible,
        title: format!("{} bad packet headers before the stop, the last {raw:#010x}{at}", bad.len()),
        why: "The CP got past them, or the stream was overwritten after it was read.".to_owned(),
        evidence: evidence.collect(),
    })
}

/// What the flags of the CP's error interrupts mean.
const ERRORS: &[(&str, &str)] = &[
    ("CP_OPCODE_ERROR", "the CP met an operation its firmware does not know"),
    ("CP_UCODE_ERROR", "the CP firmware ran into an error"),
    ("CP_HW_FAULT_ERROR", "the CP hardware reports a fault"),
    ("CP_REGISTER_PROTECTION_ERROR", "the stream accessed a protected register"),
    ("CP_AHB_ERROR", "a register access failed on the AHB bus"),
    ("CP_VSD_PARITY_ERROR", "parity error in a visibility stream"),
    ("CP_ILLEGAL_INSTR_ERROR", "the CP executed an illegal firmware instruction"),
    ("CP_HW_ERROR", "the CP raised an error interrupt"),
    ("UCHE_OOB_ACCESS", "UCHE saw an access out of bounds"),
    ("UCHE_TRAP_INTR", "a shader accessed the trap address range"),
    ("RBBM_HANG_DETECT", "the hardware's own hang detector fired"),
    ("RBBM_ATB_BUS_OVERFLOW", "the trace bus overflowed"),
    ("TSBWRITEERROR", "a timestamp buffer write failed"),
    ("SWFUSEVIOLATION", "a feature that is fused off was used"),
];

fn error_interrupts(case: &Case<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for register in ["CP_INTERRUPT_STATUS", "RBBM_INT_0_STATUS"] {
        let Some(flags) = case.regs.flags(register) else { continue };
        for flag in flags {
            let Some((_, meaning)) = ERRORS.iter().find(|(name, _)| is_flag(flag, name)) else { continue };
            out.push(Finding {
                kind: FindingKind::ErrorInterrupt,
                trust: Trust::Certain,
                title: format!("{meaning} ({flag})"),
                why: String::new(),
                evidence: case.regs.flags_evidence(register).into_iter().collect(),
            });
        }
    }
    if let Some(fault) = case.regs.get("CP_HW_FAULT").filter(|&v| v != 0) {
        out.push(Finding {
            kind: FindingKind::ErrorInterrupt,
            trust: Trust::Certain,
            title: format!("the CP hardware reports a fault: CP_HW_FAULT = {fault:#x}"),
            why: String::new(),
            evidence: case.regs.evidence("CP_HW_FAULT").into_iter().collect(),
        });
    }
    out
}

/// a7xx repeats flags for its other threads with a suffix.
fn is_flag(flag: &str, name: &str) -> bool {
    flag.strip_prefix(name).is_some_and(|rest| matches!(rest, "" | "_BV" | "_LPAC"))
}

/// CP_PROTECT_STATUS keeps the last access that the CP's protection refused.
fn protected_access(case: &Case<'_>) -> Option<Finding> {
    if case.gpu.generation() < Generation::A6xx {
        return None;
    }
    let status = case.regs.get("CP_PROTECT_STATUS").filter(|&v| v != 0)?;
    let reg = status & 0x3_ffff;
    let what = if status & (1 << 20) != 0 { "read" } else { "wrote" };
    let name = case.gpu.reg(reg).map_or_else(|| format!("{reg:#x}"), |r| r.name().to_owned());
    Some(Finding {
        kind: FindingKind::ErrorInterrupt,
        trust: Trust::Likely,
        title: format!("the stream {what} a register it may not access: {name}"),
        why: "CP_PROTECT_STATUS keeps the last refused access; it may be older than this hang.".to_owned(),
        evidence: case.regs.evidence("CP_PROTECT_STATUS").into_iter().collect(),
    })
}

/// The section that memory at this address comes from.
pub(crate) fn section_of(case: &Case<'_>, iova: Option<u64>) -> String {
    let ring = iova.and_then(|iova| {
        case.dump.rings.iter().find(|r| r.iova <= iova && iova - r.iova < u64::from(r.size.unwrap_or(0)))
    });
    ring.map_or_else(|| "bos".to_owned(), |r| format!("ringbuffer {}", r.id))
}
