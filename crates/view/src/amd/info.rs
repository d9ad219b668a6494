//! `info` of what AMD GPUs leave: what is there, and what is not.

use super::{AmdDump, AmdGpuFields};
use crate::info::FileInfo;
use crate::json::{Heading, Hex};
use crate::plural::counted;
use crate::words::absent::meaning;
use crate::{Style, words};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use unwedge_base::{Diagnostic, Severity};
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::amdgpu::{AmdgpuSection, VramState};
use unwedge_capture::radv::{MemberKind, RadvReport};
use unwedge_capture::umr::UmrText;
use unwedge_hw::Db;
use unwedge_postmortem::GpuIdentity;

/// Version of the schema of the JSON object: that of all files.
const SCHEMA: u32 = 1;

/// What is in a file or folder, as JSON or text.
///
/// # Errors
/// When `out` does not take it.
pub fn info(
    file: &FileInfo<'_>,
    content: AmdDump<'_, '_>,
    diagnostics: &[Diagnostic],
    db: &Db,
    as_json: bool,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let summary = match content {
        AmdDump::Dump(dump) => dump_summary(dump),
        AmdDump::Report(report) => report_summary(report),
        AmdDump::Umr(umr) => umr_summary(umr),
    };
    let identity = content.identity(&Db::amd());
    if as_json {
        json(file, &identity, &summary, diagnostics, db, out)
    } else {
        text(file, &identity, &summary, diagnostics, style, out)
    }
}

/// What both outputs say.
struct AmdSummary<'a> {
    /// Names and values, in the order of the text.
    facts: Vec<(&'static str, String)>,
    /// Sections or files.
    parts: Vec<DumpPartLine<'a>>,
    /// What is not there, and what that means.
    absent: Vec<(String, Cow<'static, str>)>,
}

struct DumpPartLine<'a> {
    name: &'a str,
    known: bool,
    entries: u64,
    bytes: u64,
    contents: String,
    /// Lines that say nothing known.
    other_lines: u64,
}

fn dump_summary<'a>(dump: &'a Devcoredump<'_>) -> AmdSummary<'a> {
    let mut facts = Vec::new();
    let mut fact = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    fact("kernel", dump.kernel.as_deref().map(str::to_owned));
    fact("time", dump.time.as_deref().map(str::to_owned));
    fact(
        "process",
        dump.process.as_ref().map(|process| match process.pid {
            Some(pid) => format!("{} (PID {pid})", process.name),
            None => process.name.clone().into_owned(),
        }),
    );
    fact("timed out", dump.timeout.as_ref().map(|timeout| format!("ring {}", timeout.ring)));
    fact("fault", dump.fault.as_ref().map(fault_line));
    fact(
        "vram",
        dump.vram.map(|state| match state {
            VramState::Lost => "its contents were lost with the reset".to_owned(),
            VramState::NotChecked => "whether its contents were lost was not checked".to_owned(),
        }),
    );
    let mut parts: BTreeMap<Option<AmdgpuSection>, DumpPartLine<'a>> = BTreeMap::new();
    for info in dump.sections() {
        let name = info.section.map_or("not known", AmdgpuSection::name);
        let part = parts.entry(info.section).or_insert(DumpPartLine {
            name,
            known: info.section.is_some(),
            entries: 0,
            bytes: 0,
            contents: info.section.map(|section| contents(dump, section)).unwrap_or_default(),
            other_lines: 0,
        });
        part.entries += 1;
        part.bytes += info.span.len();
    }
    let missing =
        |section: AmdgpuSection| Some((section.name().to_owned(), meaning(dump.absent_section(section)?)));
    let absent = AmdgpuSection::ALL.into_iter().filter_map(missing).collect();
    // What nobody knows comes last.
    let unknown = parts.remove(&None);
    AmdSummary { facts, parts: parts.into_values().chain(unknown).collect(), absent }
}

/// A page fault in one line.
pub fn fault_line(fault: &unwedge_capture::amdgpu::PageFault<'_>) -> String {
    let address = fault.address.map_or_else(|| "an unknown address".to_owned(), |a| format!("{a:#x}"));
    match (fault.is_recorded(), fault.status) {
        (Some(false), _) => format!("none recorded (the status of {} is 0)", fault.hub),
        (_, Some(status)) => format!("{} at {address}, status {status:#x}", fault.hub),
        (_, None) => format!("{} at {address}, the status is not there", fault.hub),
    }
}

fn contents(dump: &Devcoredump<'_>, section: AmdgpuSection) -> String {
    match section {
        AmdgpuSection::HwIps => counted(dump.hwips.len() as u64, "version", "versions").to_string(),
        AmdgpuSection::Firmware => counted(dump.firmware.len() as u64, "firmware", "firmwares").to_string(),
        AmdgpuSection::Ip => {
            let registers: usize =
                dump.ips.iter().flat_map(|ip| &ip.banks).map(|bank| bank.registers.len()).sum();
            counted(registers as u64, "register", "registers").to_string()
        }
        AmdgpuSection::Ring => {
            let dwords: usize = dump.rings.iter().map(|ring| ring.contents.len()).sum();
            let busy = dump.rings.iter().filter(|ring| ring.rptr != ring.wptr).count();
            format!("{}, {busy} with unread packets", counted(dwords as u64, "dword", "dwords"))
        }
        AmdgpuSection::Ib => {
            counted(dump.ibs.iter().map(|ib| ib.contents.len() as u64).sum(), "dword", "dwords").to_string()
        }
        AmdgpuSection::ResetRegisters => {
            counted(dump.reset_registers.len() as u64, "register", "registers").to_string()
        }
        _ => String::new(),
    }
}

fn report_summary<'a>(report: &'a RadvReport<'_>) -> AmdSummary<'a> {
    let mut facts = Vec::new();
    let entry = |name: &str| {
        let entries = report.app.iter().chain(&report.gpu);
        entries.into_iter().find(|entry| entry.name == name).map(|entry| entry.value.clone().into_owned())
    };
    let mut fact = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    fact("program", entry("Application name"));
    fact("mesa", entry("Mesa version"));
    fact("queue", report.pipeline.as_ref().and_then(|state| state.ip.as_deref()).map(str::to_owned));
    fact("trace id", report.trace.as_ref().and_then(|trace| trace.id).map(|id| id.to_string()));
    fact(
        "fault",
        report.vm_fault.as_ref().map(|fault| match (fault.address, fault.status) {
            (Some(address), Some(status)) => format!("at {address:#x}, status {status:#x}"),
            (Some(address), None) => format!("at {address:#x}"),
            (None, _) => "at an unknown address".to_owned(),
        }),
    );
    fact("waves", report.umr_waves.as_ref().map(|umr| umr.waves.len().to_string()));
    let parts = report.members.iter().map(|member| DumpPartLine {
        name: &member.name,
        known: member.kind.is_some(),
        entries: 1,
        bytes: member.size,
        contents: member.kind.map(|kind| member_contents(report, kind)).unwrap_or_default(),
        other_lines: member.other_lines,
    });
    let absent = report.absent().map(|(missing, name)| (name, meaning(missing)));
    AmdSummary { facts, parts: parts.collect(), absent: absent.collect() }
}

fn member_contents(report: &RadvReport<'_>, kind: MemberKind) -> String {
    match kind {
        MemberKind::Trace => {
            let streams = report.trace.as_ref().map_or(&[][..], |trace| &trace.streams);
            let packets: usize = streams.iter().map(|stream| stream.packets.len()).sum();
            format!(
                "{}, {}",
                counted(streams.len() as u64, "stream", "streams"),
                counted(packets as u64, "packet", "packets")
            )
        }
        MemberKind::Pipeline => counted(
            report.pipeline.as_ref().map_or(0, |state| state.shaders.len()) as u64,
            "shader",
            "shaders",
        )
        .to_string(),
        MemberKind::UmrWaves => counted(report.waves().len() as u64, "wave", "waves").to_string(),
        MemberKind::Registers => counted(report.registers.len() as u64, "register", "registers").to_string(),
        MemberKind::BoRanges => counted(report.bo_ranges.len() as u64, "buffer", "buffers").to_string(),
        MemberKind::BoHistory => counted(report.bo_history.len() as u64, "event", "events").to_string(),
        MemberKind::AddressBindings => counted(report.bindings.len() as u64, "event", "events").to_string(),
        MemberKind::Dmesg => counted(
            report.kernel.len() as u64,
            "message of amdgpu about a hang",
            "messages of amdgpu about a hang",
        )
        .to_string(),
        _ => String::new(),
    }
}

fn umr_summary<'a>(umr: &UmrText<'_>) -> AmdSummary<'a> {
    let part = |name, entries: usize| DumpPartLine {
        name,
        known: true,
        entries: entries as u64,
        bytes: 0,
        contents: String::new(),
        other_lines: 0,
    };
    let mut parts = vec![
        part("waves", umr.waves.len()),
        part("rings", umr.rings.len()),
        part("registers", umr.registers.len()),
        part("shaders", umr.shaders.len()),
        part("blocks", umr.blocks.len()),
        part("memory", umr.memory.len()),
    ];
    parts.push(DumpPartLine { known: false, ..part("other lines", umr.other_lines as usize) });
    parts.retain(|part| part.entries > 0);
    let facts = if umr.no_waves { vec![("waves", "umr found none".to_owned())] } else { Vec::new() };
    AmdSummary { facts, parts, absent: Vec::new() }
}

fn text(
    file: &FileInfo<'_>,
    identity: &GpuIdentity,
    summary: &AmdSummary<'_>,
    diagnostics: &[Diagnostic],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}: {}", style.bold(file.name), file.described)?;
    let FileInfo { stored, bytes, compression, .. } = *file;
    if compression.is_empty() {
        writeln!(out, "  size      {}", counted(bytes, "byte", "bytes"))?;
    } else {
        let size = counted(bytes, "byte", "bytes");
        writeln!(out, "  size      {size} ({}: {stored} stored)", compression.join(" of "))?;
    }
    writeln!(out, "  gpu       {}", words::amd_gpu(identity))?;
    for (name, value) in &summary.facts {
        writeln!(out, "  {name:9} {value}")?;
    }
    if !summary.parts.is_empty() {
        writeln!(out, "\n  {}", style.bold("section                     entries     bytes"))?;
    }
    for part in &summary.parts {
        let mut notes = vec![if part.known { part.contents.as_str() } else { "not known to unwedge" }];
        let others = format!("{} other lines", part.other_lines);
        if part.other_lines > 0 {
            notes.push(&others);
        }
        notes.retain(|note| !note.is_empty());
        let (name, notes) = (part.name, notes.join("; "));
        let line = format!("{name:27} {:>7} {:>9}  {notes}", part.entries, part.bytes);
        writeln!(out, "  {}", line.trim_end())?;
    }
    if !summary.absent.is_empty() {
        writeln!(out, "\n  {}", style.bold("not captured"))?;
        for (name, meaning) in &summary.absent {
            writeln!(out, "  {name:27} {meaning}")?;
        }
    }
    if !diagnostics.is_empty() {
        writeln!(out, "\n  {}", style.bold("problems"))?;
        for problem in diagnostics {
            writeln!(out, "  {}: {}", severity(problem), problem.message)?;
        }
    }
    Ok(())
}

fn severity(diagnostic: &Diagnostic) -> &'static str {
    if diagnostic.severity == Severity::Loss { "loss" } else { "note" }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct InfoObject<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    kind: &'static str,
    stored_bytes: u64,
    bytes: u64,
    compression: &'a [&'static str],
    amd: ContentObject<'a>,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ContentObject<'a> {
    gpu: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_identity: Option<AmdGpuFields>,
    facts: Vec<Fact<'a>>,
    sections: Vec<SectionObject<'a>>,
    absent: Vec<Absent<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Fact<'a> {
    name: &'static str,
    value: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SectionObject<'a> {
    name: &'a str,
    known: bool,
    entries: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    contents: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_lines: Option<u64>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Absent<'a> {
    name: &'a str,
    meaning: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Problem<'a> {
    severity: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Hex>,
}

fn json(
    file: &FileInfo<'_>,
    identity: &GpuIdentity,
    summary: &AmdSummary<'_>,
    diagnostics: &[Diagnostic],
    db: &Db,
    out: &mut dyn Write,
) -> io::Result<()> {
    let sections = summary.parts.iter().map(|part| SectionObject {
        name: part.name,
        known: part.known,
        entries: part.entries,
        bytes: part.bytes,
        contents: &part.contents,
        other_lines: Some(part.other_lines).filter(|&lines| lines > 0),
    });
    let problems = diagnostics.iter().map(|problem| Problem {
        severity: severity(problem),
        message: &problem.message,
        at: problem.span.map(|span| Hex::short(span.start)),
    });
    let object = InfoObject {
        heading: Heading::of_object("unwedge.info", SCHEMA, db.identity()),
        kind: file.kind,
        stored_bytes: file.stored,
        bytes: file.bytes,
        compression: file.compression,
        amd: ContentObject {
            gpu: words::amd_gpu(identity),
            gpu_identity: AmdGpuFields::of(identity),
            facts: summary.facts.iter().map(|(name, value)| Fact { name, value }).collect(),
            sections: sections.collect(),
            absent: summary.absent.iter().map(|(name, meaning)| Absent { name, meaning }).collect(),
        },
        problems: problems.collect(),
    };
    serde_json::to_writer(&mut *out, &object)?;
    out.write_all(b"\n")
}

crate::schema::shapes!(object: InfoObject<'_>);
