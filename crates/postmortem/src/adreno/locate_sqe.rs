//! Where the SQE was, in the instructions of its firmware: the dump has the PC, the firmware is a file of its own.
//!
//! Never: opening a file.

use super::firmware::stat;
use crate::sqe_position::{SqeInstruction, SqePosition};
use thiserror::Error;
use unwedge_base::Generation;
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_isa::afuc::{AfucNames, DbNames, FirmwareBlob, disasm, wait};
use unwedge_sim::adreno::sqe::sections;

/// Instructions before and after the PC.
const CONTEXT: u32 = 6;

/// The file is not firmware of the command processor of this GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not firmware of this GPU's command processor")]
pub struct NotFirmware;

/// Looks the PC of a dump up in a firmware; `None` where the dump has no PC.
///
/// # Errors
/// When the bytes are not firmware of the command processor of the dump's GPU.
pub fn locate_sqe(
    dump: &Devcore<'_>,
    name: &str,
    bytes: &[u8],
    db: &Db,
) -> Result<Option<SqePosition>, NotFirmware> {
    let Some(stat) = stat(dump) else { return Ok(None) };
    let generation = dump.identity().and_then(|(gpu_id, chip_id)| Generation::of(gpu_id, chip_id));
    let blob = FirmwareBlob::new(bytes);
    let fits = |generation: Generation, firmware: u32| generation.number() == firmware;
    let known = blob.firmware().filter(|f| generation.is_none_or(|g| fits(g, f.generation())));
    let Some(known) = known else { return Err(NotFirmware) };
    let names = DbNames::new(db);
    let sections = sections(&blob.words, known, &names);
    let Some(section) = sections.first() else { return Ok(None) };
    let lines = disasm::around(&blob.words, section, known, &names, stat.pc, CONTEXT);
    let inside = !lines.is_empty();
    let handler = section.handler(stat.pc).filter(|_| inside).map(|(opcode, entry)| {
        let packet = names.packet(known, opcode);
        let packet = packet.map_or_else(|| format!("packet {opcode:#04x}"), |name| name.into_owned());
        (packet, stat.pc.saturating_sub(entry))
    });
    let waits = wait::waits_for(&blob.words, section, known, stat.pc).filter(|_| inside);
    let instruction = |line: disasm::AfucLine| SqeInstruction {
        offset: line.offset,
        word: line.word,
        text: line.text.trim_end().to_owned(),
        handlers: line.handlers,
    };
    Ok(Some(SqePosition {
        firmware: name.to_owned(),
        pc: stat.pc,
        handler,
        waits_for: waits.map(|wait| wait.describe(known, &names)),
        instructions: lines.into_iter().map(instruction).collect(),
    }))
}
