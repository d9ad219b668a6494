//! The files that are lists: buffers, bindings, names with values, the kernel's log, the fault.

use super::ReadNotes;
use crate::amd::text::{ItemBudget, TextLine, TextLines, TextNotes, TextScan};
use crate::radv::model::*;
use std::borrow::Cow;

/// Bytes of text that an entry takes at least.
const BYTES_EACH: usize = 16;
/// What is said where a list is longer than its text can be.
const TOO_MANY: &str = "too many entries for a text of this size: the rest was not read";
/// Lines behind that of a fault that belong to it.
const FAULT_LINES: usize = 12;

/// Reads each line that is not empty; those that are not understood are lost.
fn lines<'a, T>(
    text: &'a [u8],
    read_notes: &mut ReadNotes,
    what: &str,
    read: impl Fn(&TextLine<'a>) -> Option<T>,
) -> Vec<T> {
    let mut found = Vec::new();
    let mut notes = TextNotes::default();
    for line in TextLines::new(text) {
        match read(&line) {
            Some(entry) => found.push(entry),
            None if line.text.trim().is_empty() => {}
            None => notes.loss(line.span, || format!("not {what}")),
        }
    }
    read_notes.take(notes);
    found
}

/// `bo_ranges.log`. Without the option that keeps the list, RADV says so in its place.
pub(super) fn bo_ranges(text: &[u8], read_notes: &mut ReadNotes) -> Vec<BoRange> {
    lines(text, read_notes, "the range of a buffer", |line| {
        let mut scan = TextScan::new(line.text.trim());
        let (iova, end) = range(&mut scan)?;
        let handle = scan.lit(", handle=").and_then(|scan| scan.dec32());
        Some(BoRange { iova, end, handle })
    })
}

/// `VA=0000800100000000-0000800100001000`
fn range(scan: &mut TextScan<'_>) -> Option<(u64, u64)> {
    let iova = scan.lit("VA=")?.bare_hex()?;
    let end = scan.lit("-")?.bare_hex()?;
    Some((iova, end))
}

/// `bo_history.log`
pub(super) fn bo_history(text: &[u8], read_notes: &mut ReadNotes) -> Vec<BoEvent> {
    lines(text, read_notes, "an event of a buffer", |line| {
        let mut scan = TextScan::new(line.text.trim());
        let timestamp = scan.lit("timestamp=")?.dec()?;
        let (iova, end) = range(scan.lit(", ")?)?;
        scan.lit(", ")?;
        if let Some(mapped) = scan.rest().strip_prefix("mapped_to=") {
            let mapped = TextScan::new(mapped).bare_hex()?;
            return Some(BoEvent {
                timestamp,
                iova,
                end,
                action: BoAction::Mapped(mapped),
                is_virtual: true,
            });
        }
        let destroyed = scan.lit("destroyed=")?.dec()? != 0;
        let is_virtual = scan.lit(", is_virtual=")?.dec()? != 0;
        let action = if destroyed { BoAction::Destroyed } else { BoAction::Created };
        Some(BoEvent { timestamp, iova, end, action, is_virtual })
    })
}

/// `addr_binding_report.log`
pub(super) fn bindings<'a>(text: &'a [u8], read_notes: &mut ReadNotes) -> Vec<AddressBinding<'a>> {
    lines(text, read_notes, "a binding of an address", binding)
}

fn binding<'a>(line: &TextLine<'a>) -> Option<AddressBinding<'a>> {
    let mut scan = TextScan::new(line.text.trim());
    let timestamp = scan.lit("timestamp=")?.dec()?;
    let (iova, end) = range(scan.lit(", ")?)?;
    let bound = match scan.lit(", binding_type=")?.until(", ")? {
        "bind" => true,
        "unbind" => false,
        _ => return None,
    };
    let object_type = line.keep(scan.lit("object_type=")?.until(", ")?);
    let object = scan.lit("object_handle=")?.hex()?;
    Some(AddressBinding { timestamp, iova, end, bound, object_type, object })
}

/// `vm_fault.log`; `None` when it tells of no fault.
pub(super) fn vm_fault<'a>(text: &'a [u8], read_notes: &mut ReadNotes) -> Option<VmFault<'a>> {
    let mut fault: Option<VmFault<'a>> = None;
    let mut notes = TextNotes::default();
    for line in TextLines::new(text) {
        let shown = line.text.trim();
        if shown.starts_with("VM fault report") || shown.starts_with("Failing VM page:") {
            let fault = fault.get_or_insert_with(|| VmFault { span: line.span, ..VmFault::default() });
            if let Some(address) = shown.strip_prefix("Failing VM page:") {
                fault.address = TextScan::new(address.trim()).hex();
            }
        }
        if shown.is_empty() {
            continue;
        }
        let Some(fault) = &mut fault else {
            notes.other_lines += 1;
            continue;
        };
        let before = fault.span.end;
        fault.span.end = line.span.end;
        if let Some((name, value)) = shown.split_once("PROTECTION_FAULT_STATUS:") {
            fault.status = TextScan::new(value.trim()).hex32();
            let end = name.len() + "PROTECTION_FAULT_STATUS".len();
            fault.status_name = shown.get(..end).map(|name| line.keep(name));
        } else if shown.starts_with("timestamp=") {
            match binding(&line) {
                Some(binding) => fault.bindings.push(binding),
                None => notes.loss(line.span, || "not a binding of an address".into()),
            }
        } else if shown.starts_with("Potential use-after-free") {
            fault.use_after_free = true;
        } else if shown.starts_with("VA not found") {
            fault.not_found = true;
        } else if line.text.starts_with(['\t', ' '])
            && let Some((name, value)) = shown.split_once(": ")
        {
            fault.fields.push(NamedValue { name: line.keep(name), value: line.keep(value) });
        } else if !["VM fault report", "Failing VM page:", "Performing some verifications"]
            .iter()
            .any(|known| shown.starts_with(known))
        {
            fault.span.end = before;
            notes.other_lines += 1;
        }
    }
    if let Some(fault) = &fault
        && (fault.address.is_none() || fault.status.is_none())
    {
        notes.loss(fault.span, || "the fault lacks its address or its status".into());
    }
    read_notes.take(notes);
    fault
}

/// `app_info.log` and `gpu_info.log`: `name: value` and `name = value`. Lines of another form are counted.
pub(super) fn entries<'a>(text: &'a [u8], read_notes: &mut ReadNotes) -> Vec<NamedValue<'a>> {
    let mut budget = ItemBudget::new(text.len(), BYTES_EACH);
    let mut notes = TextNotes::default();
    let mut found = Vec::new();
    for line in TextLines::new(text) {
        let shown = line.text.trim();
        let Some((name, value)) = shown.split_once(" = ").or_else(|| shown.split_once(": ")) else {
            // Headings, and names without a value.
            notes.other_lines += u64::from(!shown.is_empty() && !shown.ends_with(':'));
            continue;
        };
        if budget.take().is_none() {
            notes.loss(line.span, || TOO_MANY.into());
            break;
        }
        found.push(NamedValue { name: line.keep(name.trim_end()), value: line.keep(value.trim_start()) });
    }
    read_notes.take(notes);
    found
}

/// What amdgpu says in the kernel's log; most of its lines are somebody else's.
pub(super) fn kernel_events<'a>(text: &'a [u8], read_notes: &mut ReadNotes) -> Vec<KernelEvent<'a>> {
    let mut budget = ItemBudget::new(text.len(), BYTES_EACH);
    let mut notes = TextNotes::default();
    let mut events = Vec::new();
    let mut lines_of_fault = 0;
    for line in TextLines::new(text) {
        if let Some(event) = timeout(&line).or_else(|| fault(&line)) {
            if budget.take().is_none() {
                notes.loss(line.span, || TOO_MANY.into());
                break;
            }
            lines_of_fault = if matches!(event, KernelEvent::Fault { .. }) { FAULT_LINES } else { 0 };
            events.push(event);
            continue;
        }
        if lines_of_fault > 0 {
            lines_of_fault -= 1;
            if let Some(KernelEvent::Fault { address, status, process, .. }) = events.last_mut() {
                fault_detail(&line, address, status, process);
            }
        } else {
            notes.other_lines += u64::from(!line.text.trim().is_empty());
        }
    }
    read_notes.take(notes);
    events
}

/// `ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2`
fn timeout<'a>(line: &TextLine<'a>) -> Option<KernelEvent<'a>> {
    let mut scan = TextScan::new(&line.text);
    let before = scan.until(" timeout, ")?;
    let (_, ring) = before.rsplit_once("ring ")?;
    let ring = line.keep(ring);
    let mut signaled = None;
    let mut emitted = None;
    if scan.lit("signaled seq=").is_some() {
        signaled = scan.dec();
        emitted = scan.lit(", emitted seq=").and_then(|scan| scan.dec());
    }
    Some(KernelEvent::Timeout { ring, signaled, emitted })
}

/// `[gfxhub] page fault (src_id:0 ring:24 vmid:3 pasid:32771, for process …)`
fn fault<'a>(line: &TextLine<'a>) -> Option<KernelEvent<'a>> {
    let (before, after) = line.text.split_once(" page fault (src_id:")?;
    let hub = before.rsplit_once('[')?.1.split_once(']')?.0;
    let vmid = after.split_once("vmid:").and_then(|(_, rest)| TextScan::new(rest).dec32());
    let process =
        after.split_once("for process ").map(|(_, rest)| line.keep(rest.trim_end_matches([')', ' '])));
    Some(KernelEvent::Fault { hub: line.keep(hub), vmid, address: None, status: None, process })
}

fn fault_detail<'a>(
    line: &TextLine<'a>,
    address: &mut Option<u64>,
    status: &mut Option<u32>,
    process: &mut Option<Cow<'a, str>>,
) {
    let behind = |key: &str| line.text.split_once(key).map(|(_, rest)| rest.trim_start());
    if let Some(rest) = behind("in page starting at address").or_else(|| behind(" at page ")) {
        *address = address.or(TextScan::new(rest).hex());
    } else if let Some(rest) = behind("PROTECTION_FAULT_STATUS:") {
        *status = status.or(TextScan::new(rest).hex32());
    } else if let Some(rest) =
        ["in process ", "Process information: process ", " Process "].into_iter().find_map(behind)
    {
        process.get_or_insert_with(|| line.keep(rest.trim_end()));
    }
}
