//! Page faults: who accessed what, and what was there.

use super::case::{Case, Fault};
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};
use unwedge_capture::amdgpu::radv::{BoAction, RadvReport};
use unwedge_hw::amd::Gfx;
use unwedge_hw::{Field, Value, Variants};

/// What a status register says.
#[derive(Default)]
pub(super) struct Status {
    /// Number and name of the client.
    pub(super) client: Option<(u64, Option<String>)>,
    pub(super) write: Option<bool>,
    pub(super) walker_error: u64,
    pub(super) permissions: u64,
    pub(super) mapping_error: bool,
    pub(super) more: bool,
    pub(super) vmid: Option<u64>,
}

/// Findings about faults; those that were not recorded are none.
pub(super) fn findings(case: &Case<'_>) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    for fault in case.faults.iter().rev().filter(|fault| fault.is_recorded()) {
        // The log and the kernel's answer to RADV are about the same fault.
        let same = |f: &Finding| fault.address.is_some_and(|a| f.evidence.iter().any(|e| e.iova == Some(a)));
        if let Some(found) = out.iter_mut().find(|f| same(f)) {
            found.evidence.extend(fault.evidence());
            continue;
        }
        out.push(finding(case, fault));
    }
    out
}

impl Fault<'_> {
    /// Kernels write the lines about a fault always; a status of 0 says that there was none.
    pub(super) fn is_recorded(&self) -> bool {
        self.status.map_or(self.address.is_some_and(|address| address != 0), |status| status != 0)
    }

    fn evidence(&self) -> Vec<Evidence> {
        let seen =
            |what: String, iova| Evidence { section: self.section.to_owned(), what, iova, span: self.span };
        let address = self.address.map(|a| seen(format!("faulting page {a:#x}"), Some(a)));
        let status = self.status.map(|s| seen(format!("protection fault status {s:#010x}"), None));
        address.into_iter().chain(status).collect()
    }

    /// The status register's name, which depends on hub and generation.
    fn status_name(&self, gfx: Gfx) -> &'static str {
        let display = self.hub.is_some_and(|hub| hub.starts_with("mmhub"));
        match (gfx, display) {
            (Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8, _) => "VM_CONTEXT1_PROTECTION_FAULT_STATUS",
            (Gfx::Gfx9 | Gfx::Gfx940, _) => "VM_L2_PROTECTION_FAULT_STATUS",
            (_, false) => "GCVM_L2_PROTECTION_FAULT_STATUS",
            (_, true) => "MMVM_L2_PROTECTION_FAULT_STATUS",
        }
    }

    /// The fields of the status, by the facts.
    pub(super) fn status(&self, case: &Case<'_>) -> Option<Status> {
        let (amd, raw) = (case.amd?, self.status?);
        let ty = amd.register(self.status_name(amd.gfx()))?.ty()?;
        let Value::Fields(fields) = ty.decode(raw.into(), &mut Variants::new()) else { return None };
        // On gfx9 both hubs have a register of this name; its clients are those of the graphics hub.
        let foreign = self.hub.is_some_and(|hub| hub.starts_with("mmhub")) && amd.gfx() <= Gfx::Gfx940;
        let mut status = Status::default();
        for Field { name, raw, value, .. } in fields {
            match name {
                "CID" | "MEMORY_CLIENT_ID" => {
                    let named = match value {
                        Value::Enum(_, Some(name)) if !foreign => Some(name.to_owned()),
                        _ => None,
                    };
                    status.client = Some((raw, named));
                }
                "RW" | "MEMORY_CLIENT_RW" => status.write = Some(raw == 1),
                "WALKER_ERROR" => status.walker_error = raw,
                "PERMISSION_FAULTS" | "PROTECTIONS" => status.permissions = raw,
                "MAPPING_ERROR" => status.mapping_error = raw == 1,
                "MORE_FAULTS" => status.more = raw == 1,
                "VMID" => status.vmid = Some(raw),
                _ => {}
            }
        }
        Some(status)
    }
}

/// What accesses by a client are.
fn client_words(name: &str) -> Option<&'static str> {
    Some(match name {
        "TCP" => "a shader's access to memory or an image",
        "SQC (inst)" => "the fetch of a shader's instructions",
        "SQC (data)" => "a shader's scalar load: a descriptor or a constant",
        "CB" => "a colour attachment",
        "DB" => "a depth or stencil attachment",
        "CB/DB" => "a colour, depth or stencil attachment",
        "GE1" | "GE2" | "IA" | "WD" => "indices or parameters of a draw",
        "CPF" => "the fetch of packets",
        "CPG" => "the graphics command processor's own access",
        "CPC" => "a compute command processor's own access",
        "RLC" => "the run list controller",
        name if name.starts_with("SDMA") => "a DMA engine",
        _ => return None,
    })
}

fn finding(case: &Case<'_>, fault: &Fault<'_>) -> Finding {
    let status = fault.status(case);
    let hub = fault.hub.unwrap_or("GPU");
    let at = fault.address.map_or("an unknown page".to_owned(), |a| format!("{a:#x}"));
    let access = match status.as_ref().and_then(|s| s.write) {
        Some(true) => "a write",
        Some(false) => "a read",
        None => "an access",
    };
    let client = status.as_ref().and_then(|s| s.client.clone());
    let by = match &client {
        Some((_, Some(name))) => format!(" by {name}"),
        Some((number, None)) => format!(" by client {number:#x}"),
        None => String::new(),
    };
    let mut why = Vec::new();
    if let Some(words) = client.and_then(|(_, name)| client_words(&name?)) {
        why.push(format!("that is {words}"));
    }
    if let Some(status) = &status {
        if status.walker_error != 0 {
            why.push(format!("the page table walk failed ({})", status.walker_error));
        }
        if status.permissions != 0 {
            why.push(format!("the page does not allow it (permission faults {:#x})", status.permissions));
        }
        if status.mapping_error {
            why.push("the page's mapping is invalid".to_owned());
        }
        if status.more {
            why.push("more faults followed".to_owned());
        }
    }
    let mut evidence = fault.evidence();
    if let (Some(radv), Some(address)) = (case.radv, fault.address) {
        let (words, seen) = memory_at(radv, address);
        why.extend(words);
        evidence.extend(seen);
    }
    if let Some(process) = fault.process {
        why.push(format!("the kernel names {process}"));
    }
    let vmid = status.and_then(|s| s.vmid).or(fault.vmid.map(u64::from));
    let vmid = vmid.map_or(String::new(), |vmid| format!(" (VMID {vmid})"));
    Finding {
        kind: FindingKind::Fault,
        trust: Trust::Certain,
        title: format!("{hub} page fault: {access}{by} at {at}{vmid}"),
        why: why.join("; "),
        evidence,
    }
}

/// What RADV's logs say of an address: the last thing that happened to a buffer that held it.
fn memory_at(radv: &RadvReport<'_>, address: u64) -> (Vec<String>, Vec<Evidence>) {
    let seen =
        |section: &str, what: String| Evidence { section: section.to_owned(), what, iova: None, span: None };
    // A fault names the page.
    let touches = |start: u64, end: u64| start < address.saturating_add(0x1000) && address < end;
    let mut words = Vec::new();
    let mut evidence = Vec::new();
    if let Some(bo) = radv.bo_ranges.iter().find(|bo| touches(bo.iova, bo.end)) {
        words.push(format!("the page is of a buffer that exists, {:#x} to {:#x}", bo.iova, bo.end));
        evidence.push(seen("bo_ranges.log", format!("VA={:#x}-{:#x}", bo.iova, bo.end)));
    }
    let history = radv.bo_history.iter().filter(|event| touches(event.iova, event.end));
    match history.max_by_key(|event| event.timestamp) {
        Some(event) => {
            let what = match event.action {
                BoAction::Destroyed => "the page is of a buffer that was destroyed: use after free",
                BoAction::Mapped(0) => "the page is of a sparse range that was unmapped",
                BoAction::Created | BoAction::Mapped(_) => "",
            };
            if !what.is_empty() && words.is_empty() {
                words.push(what.to_owned());
                let what = format!("timestamp={}, VA={:#x}-{:#x}", event.timestamp, event.iova, event.end);
                evidence.push(seen("bo_history.log", what));
            }
        }
        None if words.is_empty() && !radv.bo_history.is_empty() => {
            words.push("no buffer was ever there".to_owned());
            let below = radv.bo_history.iter().filter(|e| e.end <= address).max_by_key(|e| e.end);
            if let Some(near) = below.filter(|e| address - e.end < 1 << 20) {
                words.push(format!(
                    "{:#x} bytes behind the end of the buffer at {:#x}",
                    address - near.end,
                    near.iova
                ));
                evidence.push(seen("bo_history.log", format!("VA={:#x}-{:#x}", near.iova, near.end)));
            }
        }
        None => {}
    }
    let binding = radv.bindings.iter().filter(|b| touches(b.iova, b.end)).max_by_key(|b| b.timestamp);
    if let Some(binding) = binding {
        let state = if binding.bound { "bound there" } else { "bound there, and unbound since" };
        words.push(format!("{} {:#x} was {state}", binding.object_type, binding.object));
        evidence.push(seen("addr_binding_report.log", format!("VA={:#x}-{:#x}", binding.iova, binding.end)));
    }
    (words, evidence)
}
