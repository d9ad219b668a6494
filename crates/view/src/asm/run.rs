//! What machine code of AMD GPUs did on the emulator, as text and JSON.

use crate::json::{Heading, Hex};
use crate::plural::counted;
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use unwedge_sim::amdgcn::{MessageKind, Outcome, Program, SimFault, Trace, WaveMessage};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RunReport<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    gpu: &'a str,
    instructions: u64,
    lanes: u64,
    workgroups: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_emulated: Vec<&'static str>,
    faults: Vec<FaultLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    told: Vec<JsonMessage>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    memory: &'a [MemoryDump],
}

/// An export or a message.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonMessage {
    workgroup: u32,
    wave: u32,
    offset: Hex,
    lanes: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    export: Option<Exported>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    m0: Option<Hex>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Exported {
    target: String,
    compressed: bool,
    done: bool,
    valid_mask: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u32>,
    /// The registers, one value for each lane; null if not enabled.
    values: [Option<Vec<Hex>>; 4],
}

/// What went wrong, and where.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FaultLine {
    workgroup: u32,
    wave: u32,
    offset: Hex,
    instruction: Option<String>,
    what: String,
}

impl fmt::Display for FaultLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FaultLine { workgroup, wave, offset, what, .. } = self;
        writeln!(f, "workgroup {workgroup}, wave {wave}, at {offset}: {what}")?;
        match &self.instruction {
            Some(instruction) => writeln!(f, "    {instruction}"),
            None => Ok(()),
        }
    }
}

/// Memory to be shown after a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryDump {
    address: Hex,
    words: Vec<Hex>,
}

impl MemoryDump {
    /// Bytes at an address.
    pub fn of(address: u64, bytes: &[u8]) -> MemoryDump {
        let words = bytes
            .chunks(4)
            .map(|chunk| Hex::dword(chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))));
        MemoryDump { address: Hex::wide(address), words: words.collect() }
    }
}

pub(crate) fn fault_line(program: &Program, fault: &SimFault) -> FaultLine {
    FaultLine {
        workgroup: fault.workgroup,
        wave: fault.wave,
        offset: Hex::offset(fault.at),
        instruction: program.text(fault.at),
        what: fault.kind.to_string(),
    }
}

fn message(program: &Program, told: &WaveMessage) -> JsonMessage {
    let mut made = JsonMessage {
        workgroup: told.workgroup,
        wave: told.wave,
        offset: Hex::offset(told.at),
        lanes: Hex::wide(told.lanes),
        export: None,
        message: None,
        m0: None,
    };
    match &told.kind {
        MessageKind::Message { code, m0 } => {
            (made.message, made.m0) = (Some(Hex::dword(*code)), Some(Hex::dword(*m0)));
        }
        MessageKind::Export { target, values, compressed, done, valid_mask, row } => {
            let lanes = if program.gpu().wave64() { 64 } else { 32 };
            made.export = Some(Exported {
                target: program.export_target(*target).unwrap_or_else(|| target.to_string()),
                compressed: *compressed,
                done: *done,
                valid_mask: *valid_mask,
                row: *row,
                values: values.each_ref().map(|held| {
                    held.as_ref()
                        .map(|held| held.iter().take(lanes).map(|value| Hex::dword(*value)).collect())
                }),
            });
        }
    }
    made
}

/// One executed instruction as a line, or two: scalar values, and vector registers lane by lane.
pub fn traced(program: &Program, trace: &Trace, out: &mut String) {
    let text = program.text(trace.at).unwrap_or_default();
    let _ = writeln!(
        out,
        "{}.{} {:#07x} exec {:016x}  {text}",
        trace.workgroup, trace.wave, trace.at, trace.exec
    );
    for (reg, values) in &trace.writes {
        let name = match reg.special_name() {
            Some(name) => name.to_owned(),
            None if reg.is_vgpr() => format!("v{}", reg.index()),
            None if reg.is_agpr() => format!("a{}", reg.index()),
            None if reg.is_ttmp() => format!("ttmp{}", reg.index()),
            None => format!("s{}", reg.index()),
        };
        let lanes = if program.gpu().wave64() { 64 } else { 32 };
        let shown: Vec<String> = values.iter().take(lanes).map(|value| format!("{value:08x}")).collect();
        let _ = writeln!(out, "    {name} = {}", shown.join(" "));
    }
}

/// An export with the values of its enabled lanes, or a message.
fn exported(told: &WaveMessage, shown: &JsonMessage, out: &mut String) {
    let JsonMessage { workgroup, wave, offset, lanes, .. } = shown;
    let _ = write!(out, "{workgroup}.{wave} {offset} lanes {lanes}  ");
    if let (Some(message), Some(m0)) = (&shown.message, &shown.m0) {
        let _ = writeln!(out, "message {message}, m0 {m0}");
    }
    let Some(export) = &shown.export else { return };
    let flag = |set: bool, name: &'static str| if set { name } else { "" };
    let _ = writeln!(
        out,
        "export {}{}{}{}",
        export.target,
        flag(export.compressed, " compr"),
        flag(export.done, " done"),
        flag(export.valid_mask, " vm")
    );
    for (letter, values) in ["x", "y", "z", "w"].into_iter().zip(&export.values) {
        let Some(values) = values else { continue };
        let enabled = values.iter().enumerate().filter(|(lane, _)| told.lanes >> lane & 1 != 0);
        let enabled: Vec<String> = enabled.map(|(_, value)| value.to_string().split_off(2)).collect();
        let _ = writeln!(out, "    {letter} = {}", enabled.join(" "));
    }
}

impl<'a> RunReport<'a> {
    fn of(program: &'a Program, outcome: &Outcome, memory: &'a [MemoryDump]) -> RunReport<'a> {
        RunReport {
            heading: Heading::of_plain_object("unwedge.amd-run", SCHEMA),
            gpu: program.gpu().name(),
            instructions: outcome.steps,
            lanes: outcome.lane_steps,
            workgroups: outcome.groups,
            not_emulated: program.not_emulated(),
            faults: outcome.faults.iter().map(|fault| fault_line(program, fault)).collect(),
            told: outcome.messages.iter().map(|told| message(program, told)).collect(),
            memory,
        }
    }
}

/// What a run did, as JSON.
///
/// # Errors
/// When `out` does not take it.
pub fn json(
    program: &Program,
    outcome: &Outcome,
    memory: &[MemoryDump],
    out: &mut dyn Write,
) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &RunReport::of(program, outcome, memory))?;
    writeln!(out)
}

/// What a run did; exports and messages are shown if `trace` is set.
///
/// # Errors
/// When `out` does not take it.
pub fn text(
    program: &Program,
    outcome: &Outcome,
    trace: bool,
    memory: &[MemoryDump],
    out: &mut dyn Write,
) -> io::Result<()> {
    let report = RunReport::of(program, outcome, memory);
    let mut text = String::new();
    if trace {
        for (told, shown) in outcome.messages.iter().zip(&report.told) {
            exported(told, shown, &mut text);
        }
    }
    for fault in &report.faults {
        let _ = write!(text, "{fault}");
    }
    for dumped in memory {
        for (line, words) in dumped.words.chunks(8).enumerate() {
            let shown: Vec<String> = words.iter().map(|word| word.to_string().split_off(2)).collect();
            let _ = writeln!(text, "{} +{:04x}: {}", dumped.address, line * 32, shown.join(" "));
        }
    }
    let _ = writeln!(
        text,
        "{}: {} in {}, {}",
        report.gpu,
        counted(report.instructions, "instruction", "instructions"),
        counted(report.workgroups.into(), "workgroup", "workgroups"),
        counted(report.faults.len() as u64, "fault", "faults")
    );
    out.write_all(text.as_bytes())
}

crate::schema::shapes!(object: RunReport<'_>);
