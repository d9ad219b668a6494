//! Where the SQE stood, in the instructions of its firmware: the dump has the PC, the firmware is a file of its own.
//!
//! Facts: the firmware names of the msm driver, by GPU.

use crate::afuc_names::DbNames;
use crate::args::Global;
use crate::failure::{Failure, complain};
use crate::input::Input;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_isa::afuc::{Blob, Names, disasm, wait};
use unwedge_postmortem::adreno::sqe;

/// Instructions shown before and after the PC.
const CONTEXT: u32 = 6;
/// Where distributions keep the firmware.
const FOLDER: &str = "/lib/firmware/qcom";

/// What the SQE was at.
#[derive(Debug, Serialize)]
pub struct Microcode {
    /// The firmware's file.
    firmware: String,
    /// In dwords from its start.
    pc: String,
    /// The packet handler the PC lies in, and how far.
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<Handler>,
    /// What the instructions there wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<String>,
    /// The instructions around it; none when the PC is not in the firmware's code.
    instructions: Vec<Instruction>,
}

#[derive(Debug, Serialize)]
struct Handler {
    packet: String,
    offset: u32,
}

#[derive(Debug, Serialize)]
struct Instruction {
    offset: String,
    word: String,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    handlers: Vec<String>,
    at_pc: bool,
}

/// Looks the PC of a dump up in a firmware: in the one given, or in the one the system would load.
///
/// # Errors
/// The firmware given cannot be read or is none.
pub fn look_up(
    dump: &Devcore<'_>,
    firmware: Option<&Path>,
    db: &Db,
    global: &Global,
) -> Result<Option<Microcode>, Failure> {
    let stat = dump.indexed.iter().find(|block| block.canonical_name() == "CP_SQE_STAT");
    let stat = stat.and_then(|block| block.data.as_ref()).and_then(|data| sqe::parse(&data.decode()));
    let Some(stat) = stat else {
        if firmware.is_some() {
            complain!("the dump has no CP_SQE_STAT: there is no PC to look up in the firmware");
        }
        return Ok(None);
    };
    let (input, asked) = match firmware {
        Some(file) => (Input::open(file, global.max_size)?, true),
        None => match installed(dump).and_then(|file| Input::open(&file, global.max_size).ok()) {
            Some(input) => (input, false),
            None => return Ok(None),
        },
    };
    let blob = Blob::new(&input.bytes);
    let known = blob.firmware().filter(|f| {
        unwedge_view::device::generation(dump).is_none_or(|generation| generation.number() == f.generation())
    });
    let Some(known) = known else {
        let unusable =
            Failure::Unusable(format!("{}: no firmware of this GPU's command processor", input.name));
        return if asked { Err(unusable) } else { Ok(None) };
    };
    let names = DbNames::new(db);
    let sections = unwedge_sim::adreno::sqe::sections(&blob.words, known, &names);
    let Some(section) = sections.first() else { return Ok(None) };
    let lines = disasm::around(&blob.words, section, known, &names, stat.pc, CONTEXT);
    let inside = !lines.is_empty();
    let handler = section.handler(stat.pc).filter(|_| inside).map(|(opcode, entry)| Handler {
        packet: names
            .packet(known, opcode)
            .map_or_else(|| format!("packet {opcode:#04x}"), |n| n.into_owned()),
        offset: stat.pc.saturating_sub(entry),
    });
    let waits = wait::waits_for(&blob.words, section, known, stat.pc).filter(|_| inside);
    Ok(Some(Microcode {
        firmware: input.name,
        pc: format!("{:#x}", stat.pc),
        handler,
        waits_for: waits.map(|wait| wait.describe(known, &names)),
        instructions: lines
            .into_iter()
            .map(|line| Instruction {
                offset: format!("{:#06x}", line.offset),
                word: format!("{:08x}", line.word),
                at_pc: line.offset == stat.pc,
                text: line.text.trim_end().to_owned(),
                handlers: line.handlers,
            })
            .collect(),
    }))
}

/// The firmware file of the GPU, where the system has it.
fn installed(dump: &Devcore<'_>) -> Option<PathBuf> {
    let name = match dump.revision?.gpu_id {
        610 | 612 | 615..=619 | 630 | 640 | 680 => "a630",
        620 | 650 => "a650",
        635 | 643 | 660 | 663 | 690 => "a660",
        702 => "a702",
        730 => "a730",
        740 => "a740",
        _ => return None,
    };
    ["", ".zst", ".xz"]
        .iter()
        .map(|suffix| Path::new(FOLDER).join(format!("{name}_sqe.fw{suffix}")))
        .find(|path| path.is_file())
}

impl Microcode {
    /// Writes it below a report.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "SQE   PC {}", self.pc)?;
        if let Some(handler) = &self.handler {
            write!(out, " in the handler of {}, {} instructions in", handler.packet, handler.offset)?;
        }
        if self.instructions.is_empty() {
            return writeln!(out, " is not in the code of {}: another firmware ran", self.firmware);
        }
        writeln!(out, ", if {} is what ran", self.firmware)?;
        if let Some(waits) = &self.waits_for {
            writeln!(out, "      it {waits}")?;
        }
        for line in &self.instructions {
            for handler in &line.handlers {
                writeln!(out, "              {handler}:")?;
            }
            let mark = if line.at_pc { '>' } else { ' ' };
            writeln!(out, "    {mark} {}  {}  {}", line.offset, line.word, line.text)?;
        }
        Ok(())
    }
}
