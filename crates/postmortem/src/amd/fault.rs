//! Page faults: who accessed what, and what was there.

use super::case::{AmdCase, AmdFault};
use super::evidence::{evidence, field, range};
use super::stream::{SeenPacket, Walked};
use super::wait::place;
use super::writer::WrittenRange;
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;
use unwedge_capture::amd::VmHub;
use unwedge_capture::radv::{BoAction, RadvReport};
use unwedge_hw::amd::Gfx;
use unwedge_hw::{DecodedField, DecodedValue, Variants};

/// What the status register reads as on a device that does not answer.
const UNANSWERED: u32 = u32::MAX;

/// What a status register says.
#[derive(Default)]
pub(super) struct Status {
    /// Number and name of the client.
    pub(super) client: Option<(u64, Option<String>)>,
    pub(super) write: Option<bool>,
    pub(super) walker_error: u64,
    /// What the page table entry did not have: the whole field, and the names of its bits.
    pub(super) permissions: u64,
    pub(super) missing: Vec<String>,
    pub(super) mapping_error: bool,
    pub(super) more: bool,
    pub(super) vmid: Option<u64>,
}

/// The register that a page fault's status is read from, which depends on hub and generation.
pub fn fault_status_register(gfx: Gfx, hub: VmHub) -> &'static str {
    match (gfx, hub) {
        (Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8, _) => "VM_CONTEXT1_PROTECTION_FAULT_STATUS",
        (Gfx::Gfx9 | Gfx::Gfx906 | Gfx::Gfx908 | Gfx::Gfx90a | Gfx::Gfx940 | Gfx::Gfx950, _) => {
            "VM_L2_PROTECTION_FAULT_STATUS"
        }
        (_, VmHub::Graphics) => "GCVM_L2_PROTECTION_FAULT_STATUS",
        (_, VmHub::Multimedia) => "MMVM_L2_PROTECTION_FAULT_STATUS",
    }
}

/// Findings about faults; those that were not recorded are none.
pub(super) fn findings(case: &AmdCase<'_>, walked: &Walked) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    for fault in case.faults.iter().rev().filter(|fault| fault.is_recorded()) {
        // The log and the kernel's answer to RADV are about the same fault.
        let same = |f: &Finding| fault.address.is_some_and(|a| f.evidence.iter().any(|e| e.iova == Some(a)));
        if let Some(found) = out.iter_mut().find(|f| same(f)) {
            found.evidence.extend(fault.evidence(case));
            continue;
        }
        out.push(finding(case, fault, walked));
    }
    out
}

impl AmdFault<'_> {
    /// Kernels write the lines about a fault always; a status of 0 says that there was none.
    pub(super) fn is_recorded(&self) -> bool {
        match self.status.filter(|&status| status != UNANSWERED) {
            Some(status) => status != 0,
            None => self.address.is_some_and(|address| address != 0),
        }
    }

    /// The hub; where nothing names it, that of the graphics core.
    fn vm_hub(&self) -> VmHub {
        self.hub.map_or(VmHub::Graphics, VmHub::from_name)
    }

    fn evidence(&self, case: &AmdCase<'_>) -> Vec<Evidence> {
        let seen = |fact, iova| Evidence { iova, span: self.span, ..evidence(self.section, fact) };
        let address = self.address.map(|a| seen(field("faulting page", Arg::Address(a)), Some(a)));
        let status = self.status.map(|status| {
            let name = case.amd.map(|amd| fault_status_register(amd.gfx(), self.vm_hub()));
            let fact = match name {
                Some(name) => Fact::Register { name: name.into(), value: status.into(), fields: Vec::new() },
                None => field("protection fault status", Arg::Value(status.into())),
            };
            seen(fact, None)
        });
        address.into_iter().chain(status).collect()
    }

    /// The fields of the status, by the facts.
    pub(super) fn status(&self, case: &AmdCase<'_>) -> Option<Status> {
        let (amd, raw) = (case.amd?, self.status.filter(|&status| status != UNANSWERED)?);
        let ty = amd.register(fault_status_register(amd.gfx(), self.vm_hub()))?.ty()?;
        let DecodedValue::Fields(fields) = ty.decode(raw.into(), &mut Variants::new()) else { return None };
        // On gfx9 both hubs have a register of this name; its clients are those of the graphics hub.
        let foreign = self.vm_hub() == VmHub::Multimedia && amd.gfx() < Gfx::Gfx10;
        let mut status = Status::default();
        for DecodedField { name, raw, value, .. } in fields {
            match name {
                "CID" | "MEMORY_CLIENT_ID" => {
                    let named = match value {
                        DecodedValue::Enum(_, Some(name)) if !foreign => Some(name.to_owned()),
                        _ => None,
                    };
                    status.client = Some((raw, named));
                }
                "RW" | "MEMORY_CLIENT_RW" => status.write = Some(raw == 1),
                "WALKER_ERROR" => status.walker_error = raw,
                "PERMISSION_FAULTS" | "PROTECTIONS" => {
                    status.permissions = raw;
                    if let DecodedValue::Fields(bits) = value {
                        let set = bits.into_iter().filter(|bit| bit.raw != 0 && !bit.name.is_empty());
                        status.missing = set.map(|bit| bit.name.to_owned()).collect();
                    }
                }
                "MAPPING_ERROR" => status.mapping_error = raw == 1,
                "MORE_FAULTS" => status.more = raw == 1,
                "VMID" => status.vmid = Some(raw),
                _ => {}
            }
        }
        Some(status)
    }
}

impl Status {
    /// Whether nothing is mapped there, or what is mapped does not permit the access: different bugs.
    fn rule(&self) -> Rule {
        let has = |name: &str| self.missing.iter().any(|missing| missing == name);
        // An entry that is not valid has no permissions either: their bits say nothing more.
        if ["NOT_VALID", "PDE0", "OUT_OF_RANGE"].into_iter().any(has) {
            Rule::GpuvmPageNotMapped
        } else if ["NOT_READABLE", "NOT_WRITABLE", "NOT_EXECUTABLE"].into_iter().any(has) {
            Rule::GpuvmAccessNotPermitted
        } else {
            Rule::GpuvmFault
        }
    }
}

fn names(list: &[String]) -> Arg {
    Arg::List(list.iter().map(|name| Arg::name(name.clone())).collect())
}

/// The last packet of the streams that writes to a page by itself.
fn page_writer(walked: &Walked, page: u64) -> Option<&SeenPacket> {
    const PAGE: u64 = 0x1000;
    let touches = |range: &WrittenRange| {
        range.iova < page.saturating_add(PAGE) && page < range.iova.saturating_add(range.bytes)
    };
    walked.packets.iter().rev().find(|packet| packet.writes.as_ref().is_some_and(touches))
}

fn finding(case: &AmdCase<'_>, fault: &AmdFault<'_>, walked: &Walked) -> Finding {
    let status = fault.status(case);
    let memory = match (case.radv, fault.address) {
        (Some(radv), Some(address)) => memory_at(radv, address),
        _ => MemoryHistory::default(),
    };
    let subject = fault.address.map_or(Subject::Gpu, Subject::Memory);
    let vmid = status.as_ref().and_then(|s| s.vmid).or(fault.vmid.map(u64::from));
    let rule = match (vmid, memory.rule) {
        // The kernel's own address space: what the process did with its memory does not matter.
        (Some(0), _) => Rule::GpuvmKernelFault,
        (_, Some(rule)) => rule,
        (_, None) => status.as_ref().map_or(Rule::GpuvmFault, Status::rule),
    };
    let writer = fault.address.filter(|&page| page != 0).and_then(|page| page_writer(walked, page));
    let mut found = Finding::new(rule, Trust::Certain, subject)
        .with_some("writer", writer.map(place))
        .with_some("hub", fault.hub.map(|hub| Arg::name(hub.to_owned())))
        .with_some("address", fault.address.map(Arg::Address));
    if let Some(status) = &status {
        found = found.with_some("write", status.write);
        found = match status.client.clone() {
            Some((_, Some(name))) => found.with("client", Arg::name(name)),
            Some((number, None)) => found.with("client_number", Arg::Number(number)),
            None => found,
        };
        let nonzero = |value: u64| (value != 0).then_some(value);
        found = found
            .with_some("walker_error", nonzero(status.walker_error).map(Arg::Number))
            .with_some("permission_faults", nonzero(status.permissions).map(Arg::Value))
            .with_some("pte", (!status.missing.is_empty()).then(|| names(&status.missing)))
            .with_some("mapping_error", status.mapping_error.then_some(true))
            .with_some("more_faults", status.more.then_some(true));
    }
    found
        .with_some("vmid", vmid.map(Arg::Number))
        .with_some("buffer", memory.buffer)
        .with_some("nearest_buffer", memory.nearest)
        .with_some("binding", memory.binding)
        .with_some("process", fault.process.map(|process| Arg::Text(process.to_owned())))
        .seen(fault.evidence(case))
        .seen(writer.map(SeenPacket::evidence))
        .seen(memory.evidence)
}

/// What RADV's logs have at an address.
#[derive(Default)]
struct MemoryHistory {
    /// The rule that fits it, if any does.
    rule: Option<Rule>,
    /// The buffer that is there.
    buffer: Option<Args>,
    /// The buffer that ends before it, if none ever was there.
    nearest: Option<Args>,
    /// The object that was bound there last.
    binding: Option<Args>,
    evidence: Vec<Evidence>,
}

/// What RADV's logs have at an address: the last thing that happened to a buffer that held it.
fn memory_at(radv: &RadvReport<'_>, address: u64) -> MemoryHistory {
    // A fault names the page.
    let touches = |start: u64, end: u64| start < address.saturating_add(0x1000) && address < end;
    let mut out = MemoryHistory::default();
    if let Some(bo) = radv.bo_ranges.iter().find(|bo| touches(bo.iova, bo.end)) {
        out.buffer = Some(range(bo.iova, bo.end));
        out.evidence.push(evidence("bo_ranges.log", Fact::Record(range(bo.iova, bo.end))));
    }
    let history = radv.bo_history.iter().filter(|event| touches(event.iova, event.end));
    match history.max_by_key(|event| event.timestamp) {
        Some(event) if out.buffer.is_none() => {
            out.rule = match event.action {
                BoAction::Destroyed => Some(Rule::GpuvmUseAfterFree),
                BoAction::Mapped(0) => Some(Rule::GpuvmUnmappedRange),
                BoAction::Created | BoAction::Mapped(_) => None,
            };
            if out.rule.is_some() {
                let fact = Args::new()
                    .with("timestamp", Arg::Number(event.timestamp))
                    .with("start", Arg::Address(event.iova))
                    .with("end", Arg::Address(event.end));
                out.evidence.push(evidence("bo_history.log", Fact::Record(fact)));
            }
        }
        None if out.buffer.is_none() && !radv.bo_history.is_empty() => {
            out.rule = Some(Rule::GpuvmNoBuffer);
            let below = radv.bo_history.iter().filter(|e| e.end <= address).max_by_key(|e| e.end);
            if let Some(near) = below.filter(|e| address - e.end < 1 << 20) {
                out.nearest = Some(range(near.iova, near.end));
                out.evidence.push(evidence("bo_history.log", Fact::Record(range(near.iova, near.end))));
            }
        }
        Some(_) | None => {}
    }
    let binding = radv.bindings.iter().filter(|b| touches(b.iova, b.end)).max_by_key(|b| b.timestamp);
    if let Some(binding) = binding {
        let object = Args::new()
            .with("type", Arg::name(binding.object_type.to_string()))
            .with("object", Arg::Value(binding.object))
            .with("bound", binding.bound);
        out.binding = Some(object);
        let fact = Fact::Record(range(binding.iova, binding.end));
        out.evidence.push(evidence("addr_binding_report.log", fact));
    }
    out
}
