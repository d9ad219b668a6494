//! Page faults and error registers.
//!
//! Facts: the bits of RING_FAULT_REG and FAULT_TLB_DATA as i915 prints and uses them. Up to gen7 each engine has a fault
//! register, with the address in it. From gen8 on there is one for all engines: i915 reads the same one for each of them, its
//! bits 16:12 say whose fault it is, and the address and its space are in FAULT_TLB_DATA.

use super::case::{Case, Unit, finding, seen};
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};
use unwedge_base::Memory;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{IntelRegister, RingRegister};
use unwedge_hw::intel::IntelValue;
use unwedge_hw::intel::platform::{Engine, EngineClass, Version};
use unwedge_intel::registers;

/// From this version on there is one fault register for all engines.
const ONE_FOR_ALL: Version = Version::new(8, 0);

/// Where an access failed, and in which space: to the page, and through the device's table.
type Place = (u64, bool);

/// A fault, put together of registers.
#[derive(Default)]
struct Fault {
    /// The fault register; `None` where only the address is known.
    value: Option<u32>,
    place: Option<Place>,
    /// Whose fault it is, by name or number.
    engine: Option<(u64, Option<&'static str>)>,
    kind: Option<(u64, Option<&'static str>)>,
    source: Option<u64>,
    evidence: Vec<Evidence>,
}

/// The page faults of a dump.
pub(super) fn findings(case: &Case<'_, '_>) -> Vec<Finding> {
    let own = case.version.is_some_and(|v| v < ONE_FOR_ALL);
    let device = ErrorState::fault_tlb_data(case.registers).filter(|&data| data != (0, 0) && !own);
    let mut faults: Vec<(Option<&Unit<'_, '_>>, Fault)> = Vec::new();
    for unit in &case.engines {
        let Some(value) = unit.ring32(RingRegister::Fault).filter(|v| v & 1 != 0) else { continue };
        let captured = ErrorState::fault_tlb_data(&unit.dump.registers);
        let place = captured.or(device).map(|(data0, data1)| fault_address(data0, data1));
        let evidence = unit.seen(format!("FAULT_REG = {value:#010x}"));
        let same = faults.iter_mut().find(|(_, f)| !own && f.value == Some(value) && f.place == place);
        if let Some((_, fault)) = same {
            fault.evidence.push(evidence);
            continue;
        }
        let mut fault = Fault { place, ..decoded(value, case.version) };
        fault.evidence.push(evidence);
        if captured.is_some() {
            fault.evidence.extend(data_seen(&unit.dump.registers, |what, _| unit.seen(what)));
        }
        let by_id = || named_engine(fault.engine?.1?);
        let of = if own {
            Some(unit)
        } else {
            by_id().and_then(|id| case.engines.iter().find(|u| u.id == Some(id)))
        };
        faults.push((of, fault));
    }
    let of_device =
        |r: &&IntelRegister<'_>| matches!(r.name, "FAULT_REG" | "RING_FAULT_REG") && r.value & 1 != 0;
    if let Some(register) = case.registers.iter().find(of_device)
        && !faults.iter().any(|(_, f)| f.value == Some(register.value as u32))
    {
        let mut fault = decoded(register.value as u32, case.version);
        fault.place = device.map(|(data0, data1)| fault_address(data0, data1));
        let what = format!("{} = {:#010x}", register.name, register.value);
        fault.evidence.push(seen("registers", what, Some(register.span)));
        faults.push((None, fault));
    }
    if let Some((data0, data1)) = device {
        let place = Some(fault_address(data0, data1));
        let evidence = data_seen(case.registers, |what, span| seen("registers", what, span));
        match faults.iter_mut().find(|(_, f)| f.place == place) {
            Some((_, fault)) => fault.evidence.extend(evidence),
            None => faults.push((None, Fault { place, evidence, ..Fault::default() })),
        }
    }
    faults.into_iter().map(|(unit, fault)| told(case, unit, fault)).collect()
}

/// The registers that FAULT_TLB_DATA stands in.
fn data_seen(
    registers: &[IntelRegister<'_>],
    seen: impl Fn(String, Option<unwedge_base::Span>) -> Evidence,
) -> Vec<Evidence> {
    let of_fault = registers
        .iter()
        .filter(|r| r.name.contains("FAULT_TLB_DATA") && r.value != 0 || r.name == "FAULT_TLB_DATA");
    let line = |r: &IntelRegister<'_>| match ErrorState::fault_tlb_data_of(r) {
        Some((data0, data1)) => format!("{} = {data1:#010x} {data0:#010x}", r.name),
        None => format!("{} = {:#010x}", r.name, r.value),
    };
    of_fault.map(|r| seen(line(r), Some(r.span))).collect()
}

/// The address of a fault that FAULT_TLB_DATA0 and 1 hold, and whether it counts in the device's table.
pub fn fault_address(data0: u32, data1: u32) -> (u64, bool) {
    (u64::from(data1 & 0xf) << 44 | u64::from(data0) << 12, data1 & 1 << 4 != 0)
}

/// What a fault register says, by the fields of its generation.
fn decoded(value: u32, version: Option<Version>) -> Fault {
    let register = version.and_then(|v| registers::named(v, EngineClass::Render, "FAULT_REG"));
    let fields = register.map(registers::RegisterEntry::fields).unwrap_or_default();
    let field = |name: &str| {
        let field = fields.iter().find(|f| f.name == name)?;
        let said = match field.value(value.into()) {
            IntelValue::Enum(_, said) => Some(said),
            _ => None,
        };
        Some((field.raw(value.into()), said))
    };
    let own = version.is_some_and(|v| v < ONE_FOR_ALL);
    let ggtt = field("GTTSEL").map(|(bit, _)| bit != 0);
    Fault {
        value: Some(value),
        place: ggtt.filter(|_| own).map(|ggtt| (u64::from(value & !0xfff), ggtt)),
        engine: field("Engine ID"),
        kind: field("Fault Type"),
        source: field("SRCID of Fault").map(|(source, _)| source),
        evidence: Vec::new(),
    }
}

/// The engine that the tables call so in a fault register.
fn named_engine(name: &str) -> Option<Engine> {
    let (class, instance) = match name {
        "GFX" => (EngineClass::Render, 0),
        "MFX0" => (EngineClass::VideoDecode, 0),
        "MFX1" => (EngineClass::VideoDecode, 1),
        "VEBX" => (EngineClass::VideoEnhance, 0),
        "BLT" => (EngineClass::Copy, 0),
        _ => return None,
    };
    Some(Engine { class, instance })
}

fn told(case: &Case<'_, '_>, unit: Option<&Unit<'_, '_>>, fault: Fault) -> Finding {
    let place = match fault.place {
        Some((address, true)) => format!(" at {address:#x} in the global table (GGTT)"),
        Some((address, false)) => format!(" at {address:#x} in the context's address space (PPGTT)"),
        None => String::new(),
    };
    let who = unit.map_or(String::new(), |u| format!(" of {}", u.name()));
    let named = |(number, name): (u64, Option<&str>)| match name {
        Some(name) => format!("{number} ({name})"),
        None => number.to_string(),
    };
    let why = [
        fault.place.map(|place| near(case, unit, place)),
        fault.kind.map(|kind| format!("fault type {}", named(kind))),
        fault.source.map(|source| format!("source {source:#x}")),
        fault.engine.map(|engine| format!("engine id {}", named(engine))),
    ];
    let why = why.into_iter().flatten().collect::<Vec<_>>().join("; ");
    // The address registers keep the last fault of anybody; a valid bit says that it is fresh.
    let trust = if fault.value.is_some() { Trust::Certain } else { Trust::Possible };
    finding(FindingKind::Fault, trust, format!("page fault{who}{place}"), why, fault.evidence)
}

/// Which memory is next to an address: of the engine, where it is known, else of any.
fn near(case: &Case<'_, '_>, unit: Option<&Unit<'_, '_>>, (address, ggtt): Place) -> String {
    let mut memories: Vec<(Option<&Unit<'_, '_>>, &Memory)> = Vec::new();
    for of in case.engines.iter().filter(|u| unit.is_none_or(|unit| std::ptr::eq(unit, *u))) {
        case.want(of, address);
        let known = memories.iter().any(|(other, _)| other.is_some_and(|other| other.space == of.space));
        if !ggtt && !known {
            memories.push((Some(of), of.ppgtt));
        }
    }
    if memories.is_empty() {
        memories.push((None, case.ggtt));
    }
    let several = memories.len() > 1;
    let of = |unit: Option<&Unit<'_, '_>>| {
        unit.filter(|_| several).map_or(String::new(), |u| format!(" of {}", u.name()))
    };
    let inside = memories.iter().find_map(|(unit, memory)| Some((unit, memory.find(address)?)));
    if let Some((&unit, buffer)) = inside {
        let at = address - buffer.iova;
        return format!(
            "inside of {} {:#x}+{at:#x}{}, which the dump holds",
            buffer.name,
            buffer.iova,
            of(unit)
        );
    }
    let neighbours = || memories.iter().map(|(unit, memory)| (*unit, memory.neighbours(address)));
    let before = neighbours().filter_map(|(unit, (before, _))| Some((unit, before?)));
    let before = before.map(|(unit, b)| (address - b.end(), unit, b)).min_by_key(|(by, ..)| *by);
    let behind = neighbours().filter_map(|(unit, (_, behind))| Some((unit, behind?)));
    let behind = behind.map(|(unit, b)| (b.iova - address, unit, b)).min_by_key(|(by, ..)| *by);
    match (before, behind) {
        (Some((by, unit, before)), _) if by < 1 << 20 => format!(
            "{by:#x} bytes behind the end of {} {:#x}{}: an access past a buffer's end",
            before.name,
            before.iova,
            of(unit)
        ),
        (_, Some((by, unit, behind))) if by < 1 << 16 => {
            format!("{by:#x} bytes before {} {:#x}{}", behind.name, behind.iova, of(unit))
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
