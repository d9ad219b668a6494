//! Reads that missed a flush: who wrote, who reads, and which events are missing.

use crate::Style;
use crate::json::{Hex, is_zero};
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_base::Generation;
use unwedge_hw::{Db, Gpu};
use unwedge_sim::adreno::{
    AdrenoMachine, CacheUnit, CacheWait, CachedPacket, CcuTag, LostWrite, StaleRead, ThreadId,
};

/// What caches showed.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct StaleReads {
    reads: Vec<ShownRead>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost_writes: Vec<ShownLoss>,
    /// There were more than are kept, or more lines than are followed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// A packet that reads or writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShownPacket {
    submit: u32,
    thread: &'static str,
    iova: Hex,
    name: String,
}

/// A tag of a line in a CCU.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShownTag {
    attachment: String,
    layer: u16,
    format: String,
}

/// A read that missed a flush.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShownRead {
    iova: Hex,
    bytes: u64,
    /// How many of them were right because a full cache had evicted the line.
    #[serde(skip_serializing_if = "is_zero")]
    evicted: u64,
    /// How many of them have a value that the capture does not hold.
    #[serde(skip_serializing_if = "is_zero")]
    unknown: u64,
    reader: ShownPacket,
    through: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<ShownTag>,
    writer: ShownPacket,
    written_through: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    written_tag: Option<ShownTag>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dirty_in: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_in: Option<&'static str>,
    /// Events that are missing between the two, in their order.
    missing: Vec<&'static str>,
}

/// A write that a later write-back undid.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShownLoss {
    iova: Hex,
    bytes: u64,
    writer: ShownPacket,
    written_through: &'static str,
    dirty_in: &'static str,
    /// The packet that wrote the older bytes back; the end of the submit if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    cleaner: Option<ShownPacket>,
    /// The event that is missing before the write.
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

    fn text(&self) -> String {
        let ShownPacket { submit, thread, iova, name } = self;
        format!("submit {submit}, {thread} {iova} {name}")
    }
}

impl ShownTag {
    fn of(tag: CcuTag, gpu: Gpu<'_>) -> ShownTag {
        let formats = gpu.enumeration("a6xx_format");
        let format = formats.and_then(|formats| formats.name_of(tag.format.into()));
        ShownTag {
            attachment: match tag.attachment {
                CcuTag::DEPTH => "depth".to_owned(),
                CcuTag::STENCIL => "stencil".to_owned(),
                CcuTag::RESOLVE => "resolve".to_owned(),
                number => format!("mrt{number}"),
            },
            layer: tag.layer,
            format: format.map_or_else(|| format!("{:#04x}", tag.format), str::to_owned),
        }
    }
}

/// A cache, and the tag of its line if it is shown.
fn port(unit: &str, tag: Option<&ShownTag>) -> String {
    match tag {
        Some(ShownTag { attachment, layer, format }) => {
            format!("{unit} ({attachment}, layer {layer}, {format})")
        }
        None => unit.to_owned(),
    }
}

impl ShownRead {
    fn of(read: &StaleRead, gpu: Gpu<'_>, generation: Generation) -> ShownRead {
        let clean = read.dirty_in.and_then(|unit| unit.clean_event(generation));
        let invalidate = read.stale_in.and_then(|unit| unit.invalidate_event(generation));
        ShownRead {
            iova: Hex::wide(read.iova),
            bytes: read.bytes,
            evicted: read.evicted,
            unknown: read.unknown,
            reader: ShownPacket::of(&read.reader, gpu),
            through: read.through.name(),
            tag: read.tag.map(|tag| ShownTag::of(tag, gpu)),
            writer: ShownPacket::of(&read.writer, gpu),
            written_through: read.written_through.name(),
            written_tag: read.written_tag.map(|tag| ShownTag::of(tag, gpu)),
            dirty_in: read.dirty_in.map(CacheUnit::name),
            stale_in: read.stale_in.map(CacheUnit::name),
            missing: clean.into_iter().chain(invalidate).chain(read.wait.map(CacheWait::packet)).collect(),
        }
    }

    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let bytes = counted(self.bytes, "byte", "bytes");
        writeln!(out, "  {} {bytes} stale", self.iova)?;
        // Both went through one cache, so it is their tags that differ.
        let tags = self.through == self.written_through;
        let of = |tag: &Option<ShownTag>, unit| port(unit, tag.as_ref().filter(|_| tags));
        let written = of(&self.written_tag, self.written_through);
        writeln!(out, "    written by  {}, through {written}", self.writer.text())?;
        writeln!(out, "    read by     {}, through {}", self.reader.text(), of(&self.tag, self.through))?;
        if let Some(unit) = self.dirty_in {
            writeln!(out, "    dirty in    {unit}")?;
        }
        if let Some(unit) = self.stale_in {
            writeln!(out, "    stale in    {unit}")?;
        }
        if !self.missing.is_empty() {
            writeln!(out, "    missing     {}", self.missing.join(", then "))?;
        }
        if self.evicted > 0 {
            let evicted = counted(self.evicted, "byte was", "bytes were");
            writeln!(out, "    evicted     {evicted} right only because a full cache had evicted the line")?;
        }
        if self.unknown > 0 {
            let unknown = counted(self.unknown, "byte", "bytes");
            writeln!(
                out,
                "    unknown     the capture does not hold the values of {unknown} before the write"
            )?;
        }
        Ok(())
    }
}

impl ShownLoss {
    fn of(loss: &LostWrite, gpu: Gpu<'_>, generation: Generation) -> ShownLoss {
        ShownLoss {
            iova: Hex::wide(loss.iova),
            bytes: loss.bytes,
            writer: ShownPacket::of(&loss.writer, gpu),
            written_through: loss.written_through.name(),
            dirty_in: loss.dirty_in.name(),
            cleaner: loss.cleaner.as_ref().map(|packet| ShownPacket::of(packet, gpu)),
            missing: loss.dirty_in.clean_event(generation).into_iter().collect(),
        }
    }

    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let bytes = counted(self.bytes, "byte", "bytes");
        let cleaner = self.cleaner.as_ref().map_or("the end of the submit".to_owned(), ShownPacket::text);
        writeln!(out, "  {} {bytes} overwritten with older ones", self.iova)?;
        writeln!(out, "    written by  {}, through {}", self.writer.text(), self.written_through)?;
        writeln!(out, "    older in    {}, written back at {cleaner}", self.dirty_in)?;
        writeln!(out, "    missing     {} before the write", self.missing.join(", "))
    }
}

impl StaleReads {
    pub(super) fn of(machine: &AdrenoMachine<'_>, db: &Db) -> StaleReads {
        let generation = machine.adreno().generation;
        let gpu = db.gpu(generation);
        let report = machine.space.cache_report();
        StaleReads {
            reads: report.reads.iter().map(|read| ShownRead::of(read, gpu, generation)).collect(),
            lost_writes: report.lost.iter().map(|loss| ShownLoss::of(loss, gpu, generation)).collect(),
            more: report.more,
        }
    }

    pub(super) fn is_some(&self) -> bool {
        !self.reads.is_empty() || !self.lost_writes.is_empty()
    }

    pub(super) fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        if !self.is_some() {
            let part = if self.more { " of the lines that were followed" } else { "" };
            return writeln!(out, "\n  caches: no read{part} missed a flush");
        }
        let more = if self.more { "at least " } else { "" };
        if !self.reads.is_empty() {
            let count = counted(self.reads.len() as u64, "read that missed", "reads that missed");
            writeln!(out, "\n  {}", style.bold(&format!("{more}{count} a flush")))?;
            self.reads.iter().try_for_each(|read| read.text(out))?;
        }
        if !self.lost_writes.is_empty() {
            let count = counted(self.lost_writes.len() as u64, "write that was", "writes that were");
            writeln!(out, "\n  {}", style.bold(&format!("{more}{count} lost without a flush")))?;
            self.lost_writes.iter().try_for_each(|loss| loss.text(out))?;
        }
        Ok(())
    }
}
