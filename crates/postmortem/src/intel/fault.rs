//! Page faults and error registers.
//!
//! Facts: the bits of RING_FAULT_REG and FAULT_TLB_DATA as i915 prints and uses them. Up to gen7 each engine has a fault
//! register, with the address in it. From gen8 on there is one for all engines: i915 reads the same one for each of them, its
//! bits 16:12 say whose fault it is, and the address and its space are in FAULT_TLB_DATA.

use super::case::{IntelCase, Unit, buffer, register, seen};
use super::response::all_ones;
use super::stop::IntelStop;
use super::writer;
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::{FindingKind, Rule};
use unwedge_base::{Buffer, Memory, Span};
use unwedge_capture::SectionAbsence;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{IntelRecord, IntelRegister, RingRegister};
use unwedge_hw::intel::IntelValue;
use unwedge_hw::intel::platform::{Engine, EngineClass, Version};
use unwedge_intel::registers;

/// What the address registers of a fault read as on a device that does not answer.
const NO_ANSWER: (u32, u32) = (u32::MAX, u32::MAX);

/// From this version on there are fault registers.
const FIRST: Version = Version::new(6, 0);
/// From this version on there is one fault register for all engines.
const ONE_FOR_ALL: Version = Version::new(8, 0);

/// An access that misses a buffer by less is taken for one past its end, or before its start.
const OVERRUN: u64 = 1 << 20;
/// See [`OVERRUN`].
const UNDERRUN: u64 = 1 << 16;

/// Where an access failed: the page, and whether it is through the device's table.
type FaultAddress = (u64, bool);

/// A fault, put together of registers.
#[derive(Default)]
struct IntelFault {
    /// The fault register; `None` where only the address is known.
    value: Option<u32>,
    address: Option<FaultAddress>,
    /// Whose fault it is, by name or number.
    engine: Option<(u64, Option<&'static str>)>,
    kind: Option<(u64, Option<&'static str>)>,
    source: Option<u64>,
    evidence: Vec<Evidence>,
}

/// The page faults of a dump.
pub(super) fn findings(case: &IntelCase<'_, '_>) -> Vec<Finding> {
    let own = case.version.is_some_and(|v| v < ONE_FOR_ALL);
    let device = ErrorState::fault_tlb_data(case.registers)
        .filter(|&data| data != (0, 0) && data != NO_ANSWER && !own);
    let mut faults: Vec<(Option<&Unit<'_, '_>>, IntelFault)> = Vec::new();
    for unit in &case.engines {
        let Some(value) = unit.ring32(RingRegister::Fault).filter(|&v| v & 1 != 0 && v != u32::MAX) else {
            continue;
        };
        let captured = ErrorState::fault_tlb_data(&unit.dump.registers).filter(|&data| data != NO_ANSWER);
        let address = captured.or(device).map(|(data0, data1)| fault_address(data0, data1));
        let evidence = unit.seen(register("FAULT_REG", value.into()));
        let same = faults.iter_mut().find(|(_, f)| !own && f.value == Some(value) && f.address == address);
        if let Some((_, fault)) = same {
            fault.evidence.push(evidence);
            continue;
        }
        let mut fault = decoded(value, case.version);
        // Up to gen7 the register itself has the address.
        fault.address = fault.address.or(address);
        fault.evidence.push(evidence);
        if captured.is_some() {
            fault.evidence.extend(data_seen(&unit.dump.registers, |fact, _| unit.seen(fact)));
        }
        let by_id = || named_engine(fault.engine?.1?);
        let of = if own {
            Some(unit)
        } else {
            by_id().and_then(|id| case.engines.iter().find(|u| u.id == Some(id)))
        };
        faults.push((of, fault));
    }
    let of_device = |r: &&IntelRegister<'_>| {
        matches!(r.name, "FAULT_REG" | "RING_FAULT_REG") && r.value & 1 != 0 && !all_ones(r.value)
    };
    if let Some(read) = case.registers.iter().find(of_device)
        && !faults.iter().any(|(_, f)| f.value == Some(read.value as u32))
    {
        let mut fault = decoded(read.value as u32, case.version);
        fault.address = device.map(|(data0, data1)| fault_address(data0, data1));
        fault.evidence.push(of_registers(read));
        faults.push((None, fault));
    }
    if let Some((data0, data1)) = device {
        let address = Some(fault_address(data0, data1));
        let evidence = data_seen(case.registers, |fact, span| seen("registers", fact, span));
        match faults.iter_mut().find(|(_, f)| f.address == address) {
            Some((_, fault)) => fault.evidence.extend(evidence),
            None => faults.push((None, IntelFault { address, evidence, ..IntelFault::default() })),
        }
    }
    faults.into_iter().map(|(unit, fault)| page_fault(case, unit, fault)).collect()
}

/// What of page faults the dump does not say: that none was recorded, or that the registers of faults are not there.
pub(super) fn unrecorded(case: &IntelCase<'_, '_>) -> Option<(Rule, SectionAbsence)> {
    if case.version.is_some_and(|version| version < FIRST) {
        return None;
    }
    let of_device = |r: &IntelRegister<'_>| matches!(r.name, "FAULT_REG" | "RING_FAULT_REG");
    let data = |r: &IntelRegister<'_>| r.name.contains("FAULT_TLB_DATA");
    let answers = |value: u64| !all_ones(value);
    let engines = case.engines.iter();
    let recorded = engines.clone().any(|unit| unit.ring(RingRegister::Fault).is_some_and(answers))
        || case.registers.iter().any(|r| (of_device(r) || data(r)) && answers(r.value))
        || engines.flat_map(|unit| &unit.dump.registers).any(|r| data(r) && answers(r.value));
    if recorded {
        let none = findings(case).is_empty();
        return none.then_some((Rule::NoPageFaultRecorded, SectionAbsence::NothingRecorded));
    }
    let device = case.source.absence(None, IntelRecord::PageFault);
    let of_engines =
        || case.engines.iter().map(|unit| case.source.absence(Some(unit), IntelRecord::PageFault));
    // Up to gen7 each engine has its own, and so it is where the GuC captures registers.
    let cut = of_engines().find(|&why| why == SectionAbsence::DumpCut);
    Some((Rule::PageFaultRegistersMissing, cut.unwrap_or(device)))
}

/// A register of the device.
fn of_registers(read: &IntelRegister<'_>) -> Evidence {
    seen("registers", register(read.name.to_owned(), read.value), Some(read.span))
}

/// The registers that hold FAULT_TLB_DATA.
fn data_seen(
    registers: &[IntelRegister<'_>],
    seen: impl Fn(Fact, Option<Span>) -> Evidence,
) -> Vec<Evidence> {
    let of_fault = registers
        .iter()
        .filter(|r| r.name.contains("FAULT_TLB_DATA") && r.value != 0 || r.name == "FAULT_TLB_DATA");
    let value = |r: &IntelRegister<'_>| match ErrorState::fault_tlb_data_of(r) {
        Some((data0, data1)) => u64::from(data1) << 32 | u64::from(data0),
        None => r.value,
    };
    of_fault.map(|r| seen(register(r.name.to_owned(), value(r)), Some(r.span))).collect()
}

/// The address of a fault that FAULT_TLB_DATA0 and 1 hold, and whether it counts in the device's table.
pub fn fault_address(data0: u32, data1: u32) -> (u64, bool) {
    (u64::from(data1 & 0xf) << 44 | u64::from(data0) << 12, data1 & 1 << 4 != 0)
}

/// What a fault register says, by the fields of its generation.
fn decoded(value: u32, version: Option<Version>) -> IntelFault {
    let register = version.and_then(|v| registers::named(v, EngineClass::Render, "FAULT_REG"));
    let fields = register.map(registers::RegisterEntry::fields).unwrap_or_default();
    let field = |name: &str| {
        let field = fields.iter().find(|f| f.name == name)?;
        let meaning = match field.value(value.into()) {
            IntelValue::Enum(_, meaning) => Some(meaning),
            _ => None,
        };
        Some((field.raw(value.into()), meaning))
    };
    let own = version.is_some_and(|v| v < ONE_FOR_ALL);
    let ggtt = field("GTTSEL").map(|(bit, _)| bit != 0);
    IntelFault {
        value: Some(value),
        address: ggtt.filter(|_| own).map(|ggtt| (u64::from(value & !0xfff), ggtt)),
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

fn page_fault(case: &IntelCase<'_, '_>, unit: Option<&Unit<'_, '_>>, fault: IntelFault) -> Finding {
    let (rule, near) = match fault.address {
        Some(address) => near(case, unit, address),
        None => (Rule::PageFaultWithoutAddress, None),
    };
    // The address registers keep the last fault of anybody; a valid bit says that it is fresh.
    let trust = if fault.value.is_some() { Trust::Certain } else { Trust::Possible };
    let subject = match (unit, fault.address) {
        (Some(unit), _) => Subject::Engine(unit.name()),
        (None, Some((address, _))) => Subject::Memory(address),
        (None, None) => Subject::Gpu,
    };
    let number = |(number, _): (u64, Option<&'static str>)| Arg::Number(number);
    let name = |of: Option<(u64, Option<&'static str>)>| Some(Arg::name(of?.1?));
    Finding::new(rule, trust, subject)
        .with_some("address", fault.address.map(|(address, _)| Arg::Address(address)))
        .with_some("space", fault.address.map(|(_, ggtt)| Arg::name(if ggtt { "GGTT" } else { "PPGTT" })))
        .with_some("near", near)
        .with_some("fault_type", fault.kind.map(number))
        .with_some("fault_type_name", name(fault.kind))
        .with_some("source", fault.source.map(Arg::Value))
        .with_some("engine_id", fault.engine.map(number))
        .with_some("engine_id_name", name(fault.engine))
        .seen(fault.evidence)
}

/// Adds to faults the command that writes to their page, of the streams of an engine that hangs.
pub(super) fn name_writers(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    findings: &mut [Finding],
) {
    let faults = findings.iter_mut().filter(|f| f.kind == FindingKind::Fault);
    for fault in faults.filter(|fault| fault.args.get("writer").is_none()) {
        let Some(page) = fault.args.number("address") else { continue };
        let ggtt = fault.args.text("space") == Some("GGTT");
        if let Some(writer) = writer::of_page(case, unit, stop, (page, ggtt)) {
            fault.args = std::mem::take(&mut fault.args).with("writer", Arg::Record(writer));
        }
    }
}

/// What is next to an address, of an engine where that is known, else of any: the rule, and the buffer with its `distance`.
/// `engine` says whose buffer it is where there are several address spaces.
fn near(
    case: &IntelCase<'_, '_>,
    unit: Option<&Unit<'_, '_>>,
    (address, ggtt): FaultAddress,
) -> (Rule, Option<Args>) {
    let mut memories: Vec<(Option<&Unit<'_, '_>>, &Memory)> = Vec::new();
    for of in case.engines.iter().filter(|u| unit.is_none_or(|unit| std::ptr::eq(unit, *u))) {
        case.want(of, address);
        case.want_after(of, address, UNDERRUN);
        let known = memories.iter().any(|(other, _)| other.is_some_and(|other| other.space == of.space));
        if !ggtt && !known {
            memories.push((Some(of), of.ppgtt));
        }
    }
    if memories.is_empty() {
        memories.push((None, case.ggtt));
    }
    let several = memories.len() > 1;
    let found = |unit: Option<&Unit<'_, '_>>, block: &Buffer, distance: Option<u64>| {
        let engine = unit.filter(|_| several).map(|unit| Arg::name(unit.name()));
        Some(
            buffer(block, address)
                .with_some("distance", distance.map(Arg::Value))
                .with_some("engine", engine),
        )
    };
    if let Some((unit, block)) =
        memories.iter().find_map(|(unit, memory)| Some((*unit, memory.find(address)?)))
    {
        return (Rule::PageFaultInBuffer, found(unit, block, None));
    }
    let neighbours = || memories.iter().map(|(unit, memory)| (*unit, memory.neighbours(address)));
    let before = neighbours().filter_map(|(unit, (before, _))| Some((unit, before?)));
    let before = before.map(|(unit, b)| (address - b.end(), unit, b)).min_by_key(|(by, ..)| *by);
    let after = neighbours().filter_map(|(unit, (_, after))| Some((unit, after?)));
    let after = after.map(|(unit, b)| (b.iova - address, unit, b)).min_by_key(|(by, ..)| *by);
    // The nearer one is the one that was meant.
    let before =
        before.filter(|(by, ..)| after.is_none_or(|(to_next, ..)| *by <= to_next || to_next >= UNDERRUN));
    match (before, after) {
        (Some((by, unit, block)), _) if by < OVERRUN => {
            // How far a buffer goes that ends with the dump is not known.
            let rule = if case.is_cut(block) { Rule::PageFaultBeyondCapture } else { Rule::PageFaultOverrun };
            (rule, found(unit, block, Some(by)))
        }
        (_, Some((by, unit, block))) if by < UNDERRUN => {
            (Rule::PageFaultUnderrun, found(unit, block, Some(by)))
        }
        _ if address < 0x1_0000 => (Rule::PageFaultNull, None),
        _ => (Rule::PageFaultOutside, None),
    }
}

/// Registers in which the hardware records errors.
pub(super) fn errors(case: &IntelCase<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for read in case.registers.iter().filter(|r| r.value != 0 && !all_ones(r.value)) {
        let rule = match read.name {
            "EIR" | "PGTBL_ER" => Rule::DeviceErrorRegister,
            "ERROR" | "ERROR_GEN6" => Rule::MemoryInterfaceError,
            _ => continue,
        };
        findings.push(
            Finding::new(rule, Trust::Certain, Subject::Register(read.name.to_owned().into()))
                .with("register", Arg::name(read.name.to_owned()))
                .with("value", Arg::Value(read.value))
                .seen([of_registers(read)]),
        );
    }
    for unit in &case.engines {
        for (of, name) in
            [(RingRegister::Eir, "EIR"), (RingRegister::Ipeir, "IPEIR"), (RingRegister::Esr, "ESR")]
        {
            let Some(value) = unit.ring32(of).filter(|&v| v != 0 && v != u32::MAX) else { continue };
            let trust = if of == RingRegister::Ipeir { Trust::Possible } else { Trust::Likely };
            findings.push(
                unit.finding(Rule::EngineErrorRegister, trust)
                    .with("register", Arg::name(name))
                    .with("value", Arg::Value(value.into()))
                    .seen([unit.seen(register(name, value.into()))]),
            );
        }
    }
    findings
}
