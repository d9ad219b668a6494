//! Page faults and error registers.
//!
//! Facts: the bits of RING_FAULT_REG and FAULT_TLB_DATA as i915 prints them.

use super::case::{Case, Unit, finding, seen};
use crate::{Evidence, Finding, FindingKind, Trust};
use unwedge_capture::intel::RingRegister;
use unwedge_intel::platform::Version;

/// A fault, put together of registers.
struct Fault {
    /// Where, to the page.
    address: Option<u64>,
    /// Through the device's table.
    ggtt: Option<bool>,
    kind: Option<u32>,
    source: Option<u32>,
    engine: Option<u32>,
    evidence: Vec<Evidence>,
}

/// The page faults of a dump: one of the device, and those that engines recorded.
pub(super) fn findings(case: &Case<'_, '_>, tlb: Option<(u32, u32)>) -> Vec<Finding> {
    let mut faults: Vec<(Option<&Unit<'_, '_>>, Fault)> = Vec::new();
    let device = case.registers.iter().find(|r| r.name == "FAULT_REG" || r.name == "RING_FAULT_REG");
    for unit in &case.engines {
        let Some(value) = unit.ring32(RingRegister::Fault).filter(|v| v & 1 != 0) else { continue };
        let mut fault = decoded(value, case.version);
        fault.evidence.push(unit.seen(format!("FAULT_REG = {value:#010x}")));
        faults.push((Some(unit), fault));
    }
    if let Some(register) = device.filter(|r| r.value & 1 != 0) {
        let mut fault = decoded(register.value as u32, case.version);
        let span = Some(register.span);
        fault.evidence.push(seen("registers", format!("{} = {:#010x}", register.name, register.value), span));
        faults.push((None, fault));
    }
    if let Some((data0, data1)) = tlb.filter(|&(a, b)| a != 0 || b != 0) {
        let (address, ggtt) = fault_address(data0, data1);
        let span = case.registers.iter().find(|r| r.name == "FAULT_TLB_DATA").map(|r| r.span);
        let evidence = seen("registers", format!("FAULT_TLB_DATA = {data1:#010x} {data0:#010x}"), span);
        let ggtt = Some(ggtt);
        match faults.first_mut() {
            Some((_, fault)) => {
                (fault.address, fault.ggtt) = (Some(address), ggtt);
                fault.evidence.push(evidence);
            }
            None => faults.push((
                None,
                Fault {
                    address: Some(address),
                    ggtt,
                    kind: None,
                    source: None,
                    engine: None,
                    evidence: vec![evidence],
                },
            )),
        }
    }
    faults.into_iter().map(|(unit, fault)| told(case, unit, fault)).collect()
}

/// The address of a fault that FAULT_TLB_DATA0 and 1 hold, and whether it counts in the device's table.
pub fn fault_address(data0: u32, data1: u32) -> (u64, bool) {
    (u64::from(data1 & 0xf) << 44 | u64::from(data0) << 12, data1 & 1 << 4 != 0)
}

/// The bits of RING_FAULT_REG.
fn decoded(value: u32, version: Option<Version>) -> Fault {
    let wide = version.is_some_and(|v| v.major >= 12);
    Fault {
        address: None,
        ggtt: Some(value >> 11 & 1 != 0),
        kind: Some(value >> 1 & 3),
        source: Some(value >> 3 & 0xff),
        engine: Some(value >> 12 & if wide { 0x1f } else { 7 }),
        evidence: Vec::new(),
    }
}

fn told(case: &Case<'_, '_>, unit: Option<&Unit<'_, '_>>, fault: Fault) -> Finding {
    let space = match fault.ggtt {
        Some(true) => " in the global table (GGTT)",
        Some(false) => " in the context's address space (PPGTT)",
        None => "",
    };
    let place = fault.address.map_or(String::new(), |a| format!(" at {a:#x}"));
    let who = unit.map_or(String::new(), |u| format!(" of {}", u.name()));
    let mut why = fault.address.map(|address| near(case, unit, address, fault.ggtt)).unwrap_or_default();
    let kind = fault.kind.map(|k| {
        [
            "the page is not present",
            "the access is not allowed (read only, or no right)",
            "the page tables are broken",
            "type 3",
        ][k as usize & 3]
    });
    if let Some(kind) = kind {
        why = format!(
            "{}{kind} (fault type {})",
            if why.is_empty() { String::new() } else { why + "; " },
            fault.kind.unwrap_or(0)
        );
    }
    if let (Some(source), Some(engine)) = (fault.source, fault.engine) {
        why = format!("{why}; source {source:#x}, engine id {engine}");
    }
    // The address registers keep the last fault of anybody; a valid bit says that it is fresh.
    let trust = if fault.kind.is_some() { Trust::Certain } else { Trust::Possible };
    finding(FindingKind::Fault, trust, format!("page fault{who}{place}{space}"), why, fault.evidence)
}

/// Which memory is next to an address.
fn near(case: &Case<'_, '_>, unit: Option<&Unit<'_, '_>>, address: u64, ggtt: Option<bool>) -> String {
    let unit = unit.or_else(|| case.engines.iter().find(|u| u.hung == Some(true))).or(case.engines.first());
    let memory = match (ggtt, unit) {
        (Some(true), _) | (_, None) => case.ggtt,
        (_, Some(unit)) => unit.ppgtt,
    };
    if let Some(buffer) = memory.find(address) {
        let at = address - buffer.iova;
        return format!("inside of {} {:#x}+{at:#x}, which the dump holds", buffer.name, buffer.iova);
    }
    if let Some(unit) = unit {
        case.want(unit, address);
    }
    match memory.neighbours(address) {
        (Some(before), _) if address - before.end() < 1 << 20 => {
            let by = address - before.end();
            format!(
                "{by:#x} bytes behind the end of {} {:#x}: an access past a buffer's end",
                before.name, before.iova
            )
        }
        (_, Some(behind)) if behind.iova - address < 1 << 16 => {
            format!("{:#x} bytes before {} {:#x}", behind.iova - address, behind.name, behind.iova)
        }
        _ if address < 0x1_0000 => "next to address 0: an address that was never set".to_owned(),
        _ => "in none of the buffers the dump holds".to_owned(),
    }
}

/// Registers that say what the hardware complains of.
pub(super) fn errors(case: &Case<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for register in case.registers.iter().filter(|r| r.value != 0) {
        let why = match register.name {
            "EIR" | "PGTBL_ER" => {
                "The hardware recorded an error; the bits are those of the register of this name."
            }
            "ERROR" | "ERROR_GEN6" => "The memory interface recorded an error: see the bits of ERROR_GEN6.",
            _ => continue,
        };
        findings.push(finding(
            FindingKind::ErrorInterrupt,
            Trust::Certain,
            format!("{} = {:#x}", register.name, register.value),
            why,
            vec![seen(
                "registers",
                format!("{} = {:#x}", register.name, register.value),
                Some(register.span),
            )],
        ));
    }
    for unit in &case.engines {
        for (register, label) in
            [(RingRegister::Eir, "EIR"), (RingRegister::Ipeir, "IPEIR"), (RingRegister::Esr, "ESR")]
        {
            let Some(value) = unit.ring32(register).filter(|&v| v != 0) else { continue };
            findings.push(finding(
                FindingKind::ErrorInterrupt,
                if register == RingRegister::Ipeir { Trust::Possible } else { Trust::Likely },
                format!("{}: {label} = {value:#x}", unit.name()),
                "The instruction parser or the engine raised an error.",
                vec![unit.seen(format!("{label} = {value:#010x}"))],
            ));
        }
    }
    findings
}
