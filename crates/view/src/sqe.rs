//! Where the SQE was in its firmware, as text and JSON.

use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_postmortem::adreno::SqePosition;

/// The object `sqe` of a report.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct JsonSqe<'r> {
    firmware: &'r str,
    pc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<JsonHandler<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'r str>,
    instructions: Vec<JsonInstruction<'r>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonHandler<'r> {
    packet: &'r str,
    offset: u32,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonInstruction<'r> {
    offset: String,
    word: String,
    text: &'r str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    handlers: &'r [String],
    at_pc: bool,
}

impl<'r> JsonSqe<'r> {
    pub(crate) fn of(sqe: &'r SqePosition) -> JsonSqe<'r> {
        let handler = sqe.handler.as_ref().map(|(packet, offset)| JsonHandler { packet, offset: *offset });
        let instructions = sqe.instructions.iter().map(|line| JsonInstruction {
            offset: format!("{:#06x}", line.offset),
            word: format!("{:08x}", line.word),
            text: &line.text,
            handlers: &line.handlers,
            at_pc: line.offset == sqe.pc,
        });
        JsonSqe {
            firmware: &sqe.firmware,
            pc: format!("{:#x}", sqe.pc),
            handler,
            waits_for: sqe.waits_for.as_deref(),
            instructions: instructions.collect(),
        }
    }
}

/// Writes it below a report.
pub(crate) fn text(sqe: &SqePosition, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "SQE   PC {:#x}", sqe.pc)?;
    if let Some((packet, offset)) = &sqe.handler {
        let offset = counted((*offset).into(), "instruction", "instructions");
        write!(out, " in the handler of {packet}, {offset} in")?;
    }
    if sqe.instructions.is_empty() {
        return writeln!(out, " is not in the code of {}: another firmware ran", sqe.firmware);
    }
    writeln!(out, ", if {} is what ran", sqe.firmware)?;
    if let Some(waits) = &sqe.waits_for {
        writeln!(out, "      it {waits}")?;
    }
    for line in &sqe.instructions {
        for handler in &line.handlers {
            writeln!(out, "              {handler}:")?;
        }
        let mark = if line.offset == sqe.pc { '>' } else { ' ' };
        writeln!(out, "    {mark} {:#06x}  {:08x}  {}", line.offset, line.word, line.text)?;
    }
    Ok(())
}
