//! The IOMMU fault: which buffer it belongs to, and who holds that address.

use unwedge_base::Buffer;
use unwedge_capture::msm::{Fault, FaultCause};

use crate::adreno::case::{AdrenoCase, register, seen};
use crate::adreno::hang::CpStop;
use crate::adreno::origin;
use crate::adreno::target;
use crate::adreno::unfinished::Unfinished;
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;

/// Addresses below this are null pointers plus an offset.
const NULL_LIMIT: u64 = 0x1_0000;
/// An access this far behind a buffer still looks like an overrun of it.
const OVERRUN: u64 = 0x10_0000;
/// Buffers that are this far away or further say nothing of a fault.
const NEIGHBOUR: u64 = 1 << 30;
/// GPU virtual addresses have 49 bits at most.
const ADDRESS_BITS: u32 = 49;

/// Where a faulting address lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts<'m> {
    /// In the first pages: a null pointer with an offset.
    Null,
    /// More bits than addresses have.
    NotAnAddress,
    /// Where UCHE sends accesses it traps.
    Trap,
    /// Inside a buffer that the dump lists.
    Inside(&'m Buffer),
    /// Outside of every buffer; the nearest ones that end below and start above.
    Between(Option<&'m Buffer>, Option<&'m Buffer>),
    /// The dump lists no buffer.
    NoBuffers,
}

/// Where an address lies among the buffers of a dump.
pub fn whereabouts<'m>(case: &'m AdrenoCase<'_>, iova: u64) -> Whereabouts<'m> {
    if let Some(buffer) = case.memory.find(iova) {
        return Whereabouts::Inside(buffer);
    }
    let trap = ["UCHE_TRAP_BASE", "UCHE_WRITE_THRU_BASE"].iter().filter_map(|name| case.regs.address(name));
    if trap.filter(|&base| base != 0).any(|base| base <= iova && iova - base < 0x1000) {
        return Whereabouts::Trap;
    }
    if iova < NULL_LIMIT {
        return Whereabouts::Null;
    }
    if iova >> ADDRESS_BITS != 0 {
        return Whereabouts::NotAnAddress;
    }
    if case.memory.buffers().is_empty() {
        return Whereabouts::NoBuffers;
    }
    let (below, above) = case.memory.neighbours(iova);
    // Rings lie in the kernel's part of the address space: no neighbours of a process's buffers.
    let of_process = |b: &&Buffer| case.dump.rings.iter().all(|r| r.iova != b.iova);
    Whereabouts::Between(below.filter(of_process), above.filter(of_process))
}

/// The fault, if the dump reports one.
pub(super) fn finding(
    case: &AdrenoCase<'_>,
    stop: Option<&CpStop>,
    unfinished: Option<&Unfinished<'_>>,
) -> Option<Finding> {
    let fault = case.dump.fault.as_ref()?;
    let Some(iova) = fault.iova.filter(|&iova| iova != 0 || fault.dir.is_some() || fault.kind.is_some())
    else {
        let finding =
            Finding::new(Rule::FaultInfoEmpty, Trust::Certain, Subject::Section("fault-info".into()));
        return Some(finding.seen([evidence(fault, 0)]));
    };
    let unmapped = last_unmap(case, iova);
    let mut place = judge(case, fault, iova, unmapped.is_some());
    let holders = holders(case, stop, iova);
    let units = fault.units();
    let by_cp = units.as_ref().is_none_or(|units| units.iter().any(|unit| unit == "CP"));
    let origin = stop.filter(|_| by_cp).and_then(|stop| origin::find(case, stop, iova));
    // Another unit's access is one of the work that is stalled at it.
    let by_work = unfinished.filter(|_| !by_cp || fault.source_name().is_none_or(|source| source != "CP"));
    let origin = origin.or_else(|| by_work.map(Unfinished::origin));
    if origin.is_some() {
        // The stop and the fault agree.
        place.trust = place.trust.max(Trust::Likely);
    }
    let mut finding = Finding::new(place.rule, place.trust, Subject::Memory(iova))
        .with("iova", Arg::Address(iova))
        .with_some("direction", fault.dir.as_ref().map(|dir| Arg::name(dir.to_lowercase())))
        .with_some("source", fault.source_name().map(|source| Arg::name(source.to_owned())))
        .with_some("units", units.map(|units| Arg::List(units.into_iter().map(Arg::name).collect())))
        .with_some("origin", origin.map(Arg::Record))
        .with_some("buffer", place.buffer.map(|buffer| Arg::Record(buffer_args(buffer))))
        .with_some("distance", place.distance.map(Arg::Value))
        .with_some("vm_log", unmapped.as_ref().map(|(line, _)| Arg::Text(line.clone())));
    if let Some(holder) = holders.first() {
        finding = finding
            .with("holder", Arg::name(holder.register.clone()))
            .with("holder_distance", Arg::Value(holder.distance));
    }
    let (before, after) = neighbours(case, iova);
    let users = stop.map(|stop| target::users(case, stop, iova, before)).unwrap_or_default();
    finding = finding.with_some("writer", users.writer).with_some("target", users.target);
    let gap = |buffer: &Buffer, bytes: u64| buffer_args(buffer).with("gap", Arg::Value(bytes));
    finding = finding
        .with_some("before", before.map(|buffer| gap(buffer, iova.saturating_sub(buffer.end()))))
        .with_some("after", after.map(|buffer| gap(buffer, buffer.iova.saturating_sub(iova))));
    let buffers = place.near.into_iter().map(buffer_evidence);
    let finding = finding.seen([evidence(fault, iova)]).seen(page_tables(case));
    let finding = finding.seen(unmapped.map(|(_, seen)| seen)).seen(buffers);
    Some(finding.seen(holders.into_iter().map(|holder| holder.evidence)).seen(users.evidence))
}

/// The buffers of the process before and after an address that is in none, where there are any within reach of a mistake in
/// an offset.
fn neighbours<'m>(case: &'m AdrenoCase<'_>, iova: u64) -> (Option<&'m Buffer>, Option<&'m Buffer>) {
    match whereabouts(case, iova) {
        Whereabouts::Between(below, above) => (
            below.filter(|buffer| iova - buffer.end() < NEIGHBOUR),
            above.filter(|buffer| buffer.iova - iova < NEIGHBOUR),
        ),
        _ => (None, None),
    }
}

/// A buffer's range and name.
fn buffer_args(buffer: &Buffer) -> Args {
    let name = Some(&buffer.name).filter(|name| !name.is_empty());
    Args::new()
        .with("start", Arg::Address(buffer.iova))
        .with("end", Arg::Address(buffer.end()))
        .with("size", Arg::Value(buffer.size))
        .with_some("name", name.map(|name| Arg::Text(name.clone())))
}

/// Where a fault lies, and what that makes of it.
struct FaultPlace<'m> {
    rule: Rule,
    trust: Trust,
    /// The buffer it is in or near, and how far from its start, or outside of it.
    buffer: Option<&'m Buffer>,
    distance: Option<u64>,
    /// Buffers to show.
    near: Vec<&'m Buffer>,
}

fn judge<'m>(case: &'m AdrenoCase<'_>, fault: &Fault<'_>, iova: u64, freed: bool) -> FaultPlace<'m> {
    let place = |rule, trust| FaultPlace { rule, trust, buffer: None, distance: None, near: Vec::new() };
    match whereabouts(case, iova) {
        Whereabouts::Null => place(Rule::IommuFaultNullPage, Trust::Likely),
        Whereabouts::NotAnAddress => place(Rule::IommuFaultNotAnAddress, Trust::Likely),
        Whereabouts::Trap => place(Rule::IommuFaultTrapRange, Trust::Likely),
        Whereabouts::Inside(buffer) => {
            let rule = match (fault.cause(), freed) {
                (Some(FaultCause::Permission), _) => Rule::IommuFaultPermission,
                (Some(FaultCause::External), _) => Rule::IommuFaultExternal,
                (_, true) => Rule::IommuFaultUnmappedBuffer,
                (_, false) => Rule::IommuFaultListedBuffer,
            };
            let distance = Some(iova - buffer.iova);
            FaultPlace { buffer: Some(buffer), distance, near: vec![buffer], ..place(rule, Trust::Likely) }
        }
        Whereabouts::Between(below, above) => {
            let near = below.into_iter().chain(above).collect();
            FaultPlace { near, ..between(iova, below, above, freed) }
        }
        Whereabouts::NoBuffers => place(Rule::IommuFaultNoBuffers, Trust::Possible),
    }
}

fn between<'m>(
    iova: u64,
    below: Option<&'m Buffer>,
    above: Option<&'m Buffer>,
    freed: bool,
) -> FaultPlace<'m> {
    let place = |rule, trust| FaultPlace { rule, trust, buffer: None, distance: None, near: Vec::new() };
    let by = |rule, buffer: &'m Buffer, distance| FaultPlace {
        buffer: Some(buffer),
        distance: Some(distance),
        ..place(rule, Trust::Possible)
    };
    let overrun = below.map(|b| (b, iova - b.end()));
    let underrun = above.map(|b| (b, b.iova - iova));
    let near = |b: &Buffer, distance: u64| distance < OVERRUN.min(b.size.max(0x1000));
    match (overrun, underrun) {
        _ if freed => place(Rule::IommuFaultUseAfterFree, Trust::Likely),
        (Some((b, distance)), _) if near(b, distance) => by(Rule::IommuFaultOverrun, b, distance),
        (_, Some((b, distance))) if near(b, distance) => by(Rule::IommuFaultUnderrun, b, distance),
        (Some(_), Some(_)) => place(Rule::IommuFaultBetweenBuffers, Trust::Possible),
        _ => place(Rule::IommuFaultOutside, Trust::Possible),
    }
}

fn evidence(fault: &Fault<'_>, iova: u64) -> Evidence {
    let text = |value: &Option<std::borrow::Cow<'_, str>>| value.as_deref().map(|v| Arg::name(v.to_owned()));
    let args = Args::new()
        .with("iova", Arg::Address(iova))
        .with_some("dir", text(&fault.dir))
        .with_some("type", text(&fault.kind))
        .with_some("source", text(&fault.source));
    Evidence { iova: Some(iova), span: Some(fault.span), ..seen("fault-info", Fact::Record(args)) }
}

fn buffer_evidence(buffer: &Buffer) -> Evidence {
    let name = Some(&buffer.name).filter(|name| !name.is_empty()).cloned();
    Evidence { iova: Some(buffer.iova), ..seen("bos", Fact::Buffer { size: buffer.size, name }) }
}

/// How far the page tables led, where the kernel dumps them.
fn page_tables(case: &AdrenoCase<'_>) -> Option<Evidence> {
    let tables = case.dump.page_tables.as_ref()?;
    let ptes = tables.ptes?;
    let args = match ptes.iter().position(|pte| pte & 1 == 0) {
        Some(level) => Args::new()
            .with("unmapped_level", Arg::Number(level as u64))
            .with("entry", Arg::Value(ptes[level])),
        None => Args::new().with("mapped", true),
    };
    Some(Evidence { span: Some(tables.span), ..seen("pgtable-fault-info", Fact::Record(args)) })
}

/// The last entry of the VM log that covers the address, if it is an unmap.
fn last_unmap(case: &AdrenoCase<'_>, iova: u64) -> Option<(String, Evidence)> {
    let covers = |(start, end): (u64, u64)| start <= iova && iova < end;
    let last = case.dump.vm_operations().rev().find(|operation| operation.range.is_some_and(covers))?;
    let line = last.line.to_owned();
    last.unmaps.then(|| (line.clone(), seen("vm-log", Fact::Line(line))))
}

/// A register of the state in flight whose address explains the fault.
struct Holder {
    register: String,
    distance: u64,
    evidence: Evidence,
}

/// Registers that point closest below the faulting address, nearest first; those that share its buffer come first.
fn holders(case: &AdrenoCase<'_>, stop: Option<&CpStop>, iova: u64) -> Vec<Holder> {
    const REACH: u64 = 0x400_0000;
    let Some(stop) = stop else { return Vec::new() };
    let home = case.memory.find(iova);
    let mut found: Vec<_> = stop
        .scene
        .addresses
        .iter()
        .filter(|a| a.iova != 0)
        .filter_map(|a| Some((a, iova.checked_sub(a.iova)?)))
        .filter(|(a, distance)| *distance < REACH && home.is_none_or(|b| b.contains(a.iova)))
        .collect();
    found.sort_by_key(|(a, distance)| (*distance, a.reg));
    let holder = |(a, distance): (&crate::adreno::trace::HeldAddress, u64)| {
        let name = case.gpu.reg(a.reg).map_or_else(|| format!("{:#x}", a.reg), |r| r.name().to_owned());
        let evidence = seen("state at the stop", register(name.clone(), a.iova));
        Holder { register: name, distance, evidence: Evidence { iova: Some(a.iova), ..evidence } }
    };
    found.into_iter().take(3).map(holder).collect()
}
