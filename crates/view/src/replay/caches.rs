//! Reads that missed a flush: who wrote, who reads, and which events are missing.

use crate::Style;
use crate::json::Hex;
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_base::Generation;
use unwedge_hw::{Db, Gpu};
use unwedge_sim::adreno::{AdrenoMachine, CacheUnit, CachedPacket, StaleRead, ThreadId};

/// What caches showed.
#[derive(Serialize, Default)]
pub(super) struct StaleReads {
    reads: Vec<ShownRead>,
    /// There were more than are kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// A packet that reads or writes.
#[derive(Serialize)]
struct ShownPacket {
    submit: u32,
    thread: &'static str,
    iova: Hex,
    name: String,
}

/// A read that missed a flush.
#[derive(Serialize)]
struct ShownRead {
    iova: Hex,
    bytes: u64,
    reader: ShownPacket,
    through: &'static str,
    writer: ShownPacket,
    written_through: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dirty_in: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_in: Option<&'static str>,
    /// Events that are missing between the two, in their order.
    missing: Vec<&'static str>,
}

impl ShownPacket {
    fn of(packet: &CachedPacket, gpu: Gpu<'_>) -> ShownPacket {
        let name = packet.opcode.map_or("register writes".to_owned(), |opcode| {
            gpu.packet_name(opcode).map_or_else(|| format!("opcode {opcode:#04x}"), str::to_owned)
        });
        ShownPacket {
            submit: packet.submit.saturating_sub(1),
            thread: match packet.thread {
                ThreadId::Br => "BR",
                ThreadId::Bv => "BV",
            },
            iova: Hex::wide(packet.iova),
            name,
        }
    }
}

impl ShownRead {
    fn of(read: &StaleRead, gpu: Gpu<'_>, generation: Generation) -> ShownRead {
        let clean = read.dirty_in.and_then(|unit| unit.clean_event(generation));
        let invalidate = read.stale_in.and_then(|unit| unit.invalidate_event(generation));
        ShownRead {
            iova: Hex::wide(read.iova),
            bytes: read.bytes,
            reader: ShownPacket::of(&read.reader, gpu),
            through: read.through.name(),
            writer: ShownPacket::of(&read.writer, gpu),
            written_through: read.written_through.name(),
            dirty_in: read.dirty_in.map(CacheUnit::name),
            stale_in: read.stale_in.map(CacheUnit::name),
            missing: clean.into_iter().chain(invalidate).collect(),
        }
    }
}

impl StaleReads {
    pub(super) fn of(machine: &AdrenoMachine<'_>, db: &Db) -> StaleReads {
        let generation = machine.adreno().generation;
        let gpu = db.gpu(generation);
        let (reads, more) = machine.space.stale_reads();
        StaleReads { reads: reads.iter().map(|read| ShownRead::of(read, gpu, generation)).collect(), more }
    }

    pub(super) fn is_some(&self) -> bool {
        !self.reads.is_empty()
    }

    pub(super) fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        if self.reads.is_empty() {
            return writeln!(out, "\n  caches: no read missed a flush");
        }
        let more = if self.more { "more than " } else { "" };
        let count = counted(self.reads.len() as u64, "read that missed", "reads that missed");
        writeln!(out, "\n  {}", style.bold(&format!("{more}{count} a flush")))?;
        let packet = |packet: &ShownPacket| {
            let ShownPacket { submit, thread, iova, name } = packet;
            format!("submit {submit}, {thread} {iova} {name}")
        };
        for read in &self.reads {
            let bytes = counted(read.bytes, "byte", "bytes");
            writeln!(out, "  {} {bytes} stale", read.iova)?;
            writeln!(out, "    written by  {}, through {}", packet(&read.writer), read.written_through)?;
            writeln!(out, "    read by     {}, through {}", packet(&read.reader), read.through)?;
            if let Some(unit) = read.dirty_in {
                writeln!(out, "    dirty in    {unit}")?;
            }
            if let Some(unit) = read.stale_in {
                writeln!(out, "    stale in    {unit}")?;
            }
            if !read.missing.is_empty() {
                writeln!(out, "    missing     {}", read.missing.join(", then "))?;
            }
        }
        Ok(())
    }
}
