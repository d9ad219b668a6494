//! Builds a report from its files. Each has a reader of its own; one that is broken harms no other.

mod lists;
mod pipeline;
mod shown;
mod trace;

use super::members::{Member, MemberInfo, MemberKind};
use super::model::*;
use crate::amdgpu::umr::UmrText;
use std::borrow::Cow;
use unwedge_base::{Diagnostic, Span};

/// See [`RadvReport::read`].
pub(super) fn read<'a>(members: &[Member<'a>]) -> Result<RadvReport<'a>, NotRadvReport> {
    let mut report = RadvReport::default();
    let mut recognized = false;
    for member in members {
        let kind = MemberKind::from_name(member.name);
        report.members.push(MemberInfo {
            name: Cow::Borrowed(member.name),
            kind,
            size: member.bytes.len() as u64,
        });
        let Some(kind) = kind else { continue };
        let mut diagnostics = Vec::new();
        recognized |= one(kind, member.bytes, &mut report, &mut diagnostics);
        let shift = |span: Span| Span { start: span.start + member.offset, end: span.end + member.offset };
        report.diagnostics.extend(diagnostics.into_iter().map(|found| Diagnostic {
            severity: found.severity,
            span: found.span.map(shift),
            message: format!("{}: {}", member.name, found.message),
        }));
    }
    if recognized { Ok(report) } else { Err(NotRadvReport) }
}

/// Reads a file into the report. Whether it says that this is a report.
fn one<'a>(
    kind: MemberKind,
    text: &'a [u8],
    report: &mut RadvReport<'a>,
    diagnostics: &mut Vec<Diagnostic>,
) -> bool {
    match kind {
        MemberKind::Trace => {
            let (trace, found) = trace::read(text, diagnostics);
            report.trace.get_or_insert(trace);
            found
        }
        MemberKind::Pipeline | MemberKind::ShaderDump => {
            let (state, found) = pipeline::read(text, diagnostics);
            match &mut report.pipeline {
                Some(pipeline) => pipeline.shaders.extend(state.shaders),
                None => report.pipeline = Some(state),
            }
            found
        }
        MemberKind::UmrWaves | MemberKind::UmrRing => {
            // Without umr, or where it may not read the GPU, the file is empty or holds its complaint.
            let umr = UmrText::read(text).unwrap_or_default();
            diagnostics.extend(umr.diagnostics.iter().cloned());
            let found = !umr.waves.is_empty() || !umr.rings.is_empty();
            if kind == MemberKind::UmrWaves {
                report.umr_waves = Some(umr);
            } else {
                report.umr_ring = Some(umr);
            }
            found
        }
        MemberKind::Registers => {
            let registers = shown::read(text, diagnostics);
            let found = !registers.is_empty();
            report.registers.extend(registers);
            found
        }
        MemberKind::BoRanges => {
            report.bo_ranges.extend(lists::bo_ranges(text, diagnostics));
            !report.bo_ranges.is_empty()
        }
        MemberKind::BoHistory => {
            report.bo_history.extend(lists::bo_history(text, diagnostics));
            !report.bo_history.is_empty()
        }
        MemberKind::AddressBindings => {
            report.bindings.extend(lists::bindings(text, diagnostics));
            !report.bindings.is_empty()
        }
        MemberKind::VmFault => {
            report.vm_fault = lists::vm_fault(text, diagnostics);
            report.vm_fault.is_some()
        }
        MemberKind::AppInfo => {
            report.app.extend(lists::entries(text));
            report.app.iter().any(|entry| entry.name == "Application name")
        }
        MemberKind::GpuInfo => {
            report.gpu.extend(lists::entries(text));
            report.gpu.iter().any(|entry| entry.name == "Mesa version" || entry.name == "Device name")
        }
        MemberKind::Dmesg => {
            let dmesg = String::from_utf8_lossy(text);
            report.kernel.extend(lists::kernel_events(text));
            report.dmesg = (!text.is_empty()).then_some(dmesg);
            !report.kernel.is_empty()
        }
        MemberKind::TrapHandler => {
            report.trap = pipeline::trap(text, diagnostics);
            report.trap.is_some()
        }
        MemberKind::Spirv => false,
        MemberKind::Everything => everything(text, report, diagnostics),
    }
}

/// A text that does not say what its parts are: every reader takes what it knows, and what one of them does not know is
/// no loss.
fn everything<'a>(text: &'a [u8], report: &mut RadvReport<'a>, diagnostics: &mut Vec<Diagnostic>) -> bool {
    if !super::sniff(text) {
        return false;
    }
    let (trace, traced) = trace::read(text, diagnostics);
    report.trace = traced.then_some(trace);
    let mut ignored = Vec::new();
    let (pipeline, found) = pipeline::read(text, &mut ignored);
    report.pipeline = found.then_some(pipeline);
    report.bo_ranges = lists::bo_ranges(text, &mut ignored);
    report.bo_history = lists::bo_history(text, &mut ignored);
    report.vm_fault = lists::vm_fault(text, &mut ignored);
    report.umr_waves = UmrText::read(text).ok();
    report.kernel = lists::kernel_events(text);
    true
}
