//! Builds a report from its files. Each has a reader of its own; one that is broken harms no other.

mod lists;
mod pipeline;
mod printed;
mod trace;

use super::members::{self, MemberInfo, MemberKind, ReportMember};
use super::model::*;
use crate::amd::text::TextNotes;
use crate::umr::UmrText;
use std::borrow::Cow;
use unwedge_base::{Diagnostic, Span};

/// What the reader of a file says beside what the file says.
#[derive(Default)]
struct ReadNotes {
    diagnostics: Vec<Diagnostic>,
    /// Lines that say nothing known.
    other_lines: u64,
}

impl ReadNotes {
    fn take(&mut self, notes: TextNotes) {
        self.other_lines += notes.other_lines;
        self.diagnostics.extend(notes.finish());
    }
}

/// See [`RadvReport::read`].
pub(super) fn read<'a>(members: &[ReportMember<'a>]) -> Result<RadvReport<'a>, NotRadvReport> {
    let (report, recognized) = all(members, false);
    if recognized { Ok(report) } else { Err(NotRadvReport) }
}

/// See [`RadvReport::read_text`]. The headings tell what the text is: one that ends after them is a report of which all
/// is lost. `known`: the start of the text is known to be that of a report.
pub(super) fn read_text<'a>(text: &'a [u8], known: bool) -> Result<RadvReport<'a>, NotRadvReport> {
    let known = known || members::sniff(text);
    let members = members::of_text(text);
    let headed =
        members.iter().any(|member| MemberKind::from_name(member.name) != Some(MemberKind::Everything));
    let (mut report, recognized) = all(&members, known);
    if !recognized && !headed && !known {
        return Err(NotRadvReport);
    }
    if report.says_nothing() {
        let end = Span::new(text.len(), text.len());
        report.diagnostics.push(Diagnostic::loss(end, "the report ends before it says anything"));
    }
    Ok(report)
}

/// The files, and whether one of them says that this is a report. `known`: a text without parts is known to be one.
fn all<'a>(members: &[ReportMember<'a>], known: bool) -> (RadvReport<'a>, bool) {
    let mut report = RadvReport::default();
    let mut recognized = false;
    for member in members {
        let kind = MemberKind::from_name(member.name);
        let mut read_notes = ReadNotes::default();
        let other = kind == Some(MemberKind::Everything) && !known && !members::sniff(member.bytes);
        if let Some(kind) = kind.filter(|_| !other) {
            recognized |= one(kind, member.bytes, &mut report, &mut read_notes);
        }
        report.members.push(MemberInfo {
            name: Cow::Borrowed(member.name),
            kind,
            offset: member.offset,
            size: member.bytes.len() as u64,
            other_lines: read_notes.other_lines,
        });
        let shift = |span: Span| Span { start: span.start + member.offset, end: span.end + member.offset };
        report.diagnostics.extend(read_notes.diagnostics.into_iter().map(|found| Diagnostic {
            severity: found.severity,
            span: found.span.map(shift),
            message: format!("{}: {}", member.name, found.message),
        }));
    }
    (report, recognized)
}

/// Reads a file into the report. Whether it says that this is a report.
fn one<'a>(
    kind: MemberKind,
    text: &'a [u8],
    report: &mut RadvReport<'a>,
    read_notes: &mut ReadNotes,
) -> bool {
    let umr = matches!(kind, MemberKind::UmrWaves | MemberKind::UmrRing);
    if !umr && kind != MemberKind::Spirv {
        let mut notes = TextNotes::default();
        notes.cut_line(text);
        read_notes.take(notes);
    }
    match kind {
        MemberKind::Trace => {
            let (trace, found) = trace::read(text, read_notes);
            report.trace.get_or_insert(trace);
            found
        }
        MemberKind::Pipeline | MemberKind::ShaderDump => {
            let (state, found) = pipeline::read(text, read_notes);
            match &mut report.pipeline {
                Some(pipeline) => pipeline.shaders.extend(state.shaders),
                None => report.pipeline = Some(state),
            }
            found
        }
        MemberKind::UmrWaves | MemberKind::UmrRing => {
            // Without umr, or where it may not read the GPU, the file is empty or holds its complaint.
            let umr = UmrText::read_any(text);
            read_notes.diagnostics.extend(umr.diagnostics.iter().cloned());
            read_notes.other_lines += umr.other_lines;
            let found = !umr.waves.is_empty() || !umr.rings.is_empty();
            if kind == MemberKind::UmrWaves {
                report.umr_waves = Some(umr);
            } else {
                report.umr_ring = Some(umr);
            }
            found
        }
        MemberKind::Registers => {
            let registers = printed::read(text, read_notes);
            let found = !registers.is_empty();
            report.registers.extend(registers);
            found
        }
        MemberKind::BoRanges => {
            report.bo_ranges.extend(lists::bo_ranges(text, read_notes));
            !report.bo_ranges.is_empty()
        }
        MemberKind::BoHistory => {
            report.bo_history.extend(lists::bo_history(text, read_notes));
            !report.bo_history.is_empty()
        }
        MemberKind::AddressBindings => {
            report.bindings.extend(lists::bindings(text, read_notes));
            !report.bindings.is_empty()
        }
        MemberKind::VmFault => {
            report.vm_fault = lists::vm_fault(text, read_notes);
            report.vm_fault.is_some()
        }
        MemberKind::AppInfo => {
            report.app.extend(lists::entries(text, read_notes));
            report.app.iter().any(|entry| entry.name == "Application name")
        }
        MemberKind::GpuInfo => {
            report.gpu.extend(lists::entries(text, read_notes));
            report.gpu.iter().any(|entry| entry.name == "Mesa version" || entry.name == "Device name")
        }
        MemberKind::Dmesg => {
            let dmesg = String::from_utf8_lossy(text);
            report.kernel.extend(lists::kernel_events(text, read_notes));
            report.dmesg = (!text.is_empty()).then_some(dmesg);
            !report.kernel.is_empty()
        }
        MemberKind::TrapHandler => {
            report.trap = pipeline::trap(text, read_notes);
            report.trap.is_some()
        }
        MemberKind::Spirv => false,
        MemberKind::Everything => {
            everything(text, report, read_notes);
            true
        }
    }
}

/// A text that does not say what its parts are: every reader takes what it knows, and what one of them does not know is
/// no loss.
fn everything<'a>(text: &'a [u8], report: &mut RadvReport<'a>, read_notes: &mut ReadNotes) {
    let mut of_trace = ReadNotes::default();
    let (trace, traced) = trace::read(text, &mut of_trace);
    read_notes.diagnostics.append(&mut of_trace.diagnostics);
    report.trace = traced.then_some(trace);
    let mut ignored = ReadNotes::default();
    let (pipeline, found) = pipeline::read(text, &mut ignored);
    report.pipeline = found.then_some(pipeline);
    report.bo_ranges = lists::bo_ranges(text, &mut ignored);
    report.bo_history = lists::bo_history(text, &mut ignored);
    report.vm_fault = lists::vm_fault(text, &mut ignored);
    report.umr_waves = UmrText::read(text).ok();
    report.kernel = lists::kernel_events(text, &mut ignored);
}
