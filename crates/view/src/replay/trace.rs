//! Each packet that is executed, with its address and what it has changed, while it is executed.
//!
//! Never: all of a packet's registers or memory where there are many; the rest is counted.

use crate::json::{Hex, HexWords, is_zero};
use crate::{Style, plural::counted};
use serde::Serialize;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use unwedge_hw::Gpu;
use unwedge_sim::adreno::{
    AdrenoMachine, Onward, PacketChanges, PacketOutcome, PacketWatch, ThreadId, WatchedPacket,
};
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// Ranges of memory that are listed of a packet.
const RANGES: usize = 64;
/// Bytes of a range that are shown.
const SHOWN: u64 = 64;

/// A trace that is written while a capture is replayed.
pub struct PacketTrace<'t> {
    /// Of these submits.
    pub submits: RangeInclusive<u32>,
    /// JSON lines instead of text.
    pub json: bool,
    /// How text is styled.
    pub style: Style,
    /// Where it goes. A failed write is for the owner to remember.
    pub out: &'t mut dyn Write,
}

/// A packet and what became of it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct TracedPacket<'p> {
    r#type: &'static str,
    submit: u32,
    /// Number of the draw, dispatch or blit that it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) work: Option<u64>,
    thread: &'static str,
    level: u8,
    iova: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'p str>,
    /// False: a condition, or the choice of threads, leaves it out.
    exec: bool,
    end: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    registers: Vec<RegisterChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory: Vec<MemoryChange>,
    /// Ranges of memory that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    more_memory: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more_registers: bool,
    /// Ranges hold bytes between those that were written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    widened: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RegisterChange {
    offset: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    value: Hex,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MemoryChange {
    iova: Hex,
    size: u64,
    /// The dwords that it holds now, if they are few.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// What a packet is called: its operation, or that it writes registers.
pub(super) fn packet_name<'d>(gpu: Gpu<'d>, packet: &WatchedPacket) -> Option<&'d str> {
    match packet.header? {
        AdrenoPacketHeader::Operation { opcode, .. } => gpu.packet_name(opcode),
        AdrenoPacketHeader::Registers { .. } => Some("register writes"),
        AdrenoPacketHeader::Padding => Some("padding"),
    }
}

/// The thread and the stream that a packet is of.
pub(super) fn place(packet: &WatchedPacket) -> String {
    let thread = thread_name(packet.thread);
    let stream = if packet.level == 0 { "ring".to_owned() } else { format!("IB{}", packet.level) };
    format!("{thread} {stream:4} {}", Hex::wide(packet.iova))
}

fn thread_name(thread: ThreadId) -> &'static str {
    match thread {
        ThreadId::Br => "BR",
        ThreadId::Bv => "BV",
    }
}

impl<'p> TracedPacket<'p> {
    pub(super) fn new(
        gpu: Gpu<'p>,
        submit: u32,
        machine: &AdrenoMachine<'_>,
        packet: &WatchedPacket,
        outcome: PacketOutcome<'_>,
        changes: &PacketChanges,
    ) -> TracedPacket<'p> {
        let (end, why) = match outcome {
            PacketOutcome::Done => ("done", None),
            PacketOutcome::Waits => ("waits", None),
            PacketOutcome::Stopped(stop) => ("stopped", Some(stop.to_string())),
        };
        let register = |&(reg, value): &(u32, u32)| RegisterChange {
            offset: Hex::offset(reg),
            name: gpu.reg(reg).map(|reg| reg.name().to_owned()),
            value: Hex::dword(value),
        };
        let ranges = || changes.memory.ranges();
        TracedPacket {
            r#type: "packet",
            submit,
            work: None,
            thread: thread_name(packet.thread),
            level: packet.level,
            iova: Hex::wide(packet.iova),
            header: packet.raw.map(Hex::dword),
            name: packet_name(gpu, packet),
            exec: packet.taken,
            end,
            why,
            registers: changes.registers.iter().map(register).collect(),
            memory: ranges().take(RANGES).map(|(iova, size)| memory(machine, iova, size)).collect(),
            more_memory: ranges().count().saturating_sub(RANGES),
            more_registers: changes.more_registers,
            widened: changes.memory.is_widened(),
        }
    }

    /// What it has changed, one line each.
    pub(super) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for RegisterChange { offset, name, value } in &self.registers {
            let name = name.as_deref().unwrap_or_default();
            writeln!(out, "         {offset} {name} = {value}")?;
        }
        if self.more_registers {
            writeln!(out, "         and more registers")?;
        }
        for MemoryChange { iova, size, data } in &self.memory {
            match data {
                Some(data) => writeln!(out, "         {iova} = {data}")?,
                None => writeln!(out, "         {iova} {} written", counted(*size, "byte", "bytes"))?,
            }
        }
        if self.more_memory > 0 {
            let more = counted(self.more_memory as u64, "more range", "more ranges");
            writeln!(out, "         {more} of memory")?;
        }
        if self.widened {
            writeln!(out, "         ranges hold bytes between those that were written")?;
        }
        match (self.end, &self.why) {
            ("waits", _) => writeln!(out, "         waits"),
            (_, Some(why)) => writeln!(out, "         stopped: {why}"),
            _ => Ok(()),
        }
    }

    fn heading(&self, packet: &WatchedPacket, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let name = style.bold(self.name.unwrap_or("not a packet"));
        let skipped = if self.exec { "" } else { "  (left out)" };
        let work = self.work.map_or_else(String::new, |work| format!("  (work {work})"));
        writeln!(out, "  {:>4} {}  {name}{work}{skipped}", self.submit, place(packet))
    }
}

fn memory(machine: &AdrenoMachine<'_>, iova: u64, size: u64) -> MemoryChange {
    let dwords = Some(size).filter(|&size| size <= SHOWN && size % 4 == 0).and_then(|size| {
        let load = |n| machine.space.memory.load(iova.checked_add(4 * n)?, 4).known();
        (0..size / 4).map(|n| load(n).map(|word| word as u32)).collect::<Option<Vec<u32>>>()
    });
    MemoryChange { iova: Hex::wide(iova), size, data: dwords.map(|words| HexWords(&words).to_string()) }
}

/// A trace, at one submit.
pub(super) struct SubmitTrace<'a, 't, 'd> {
    pub(super) trace: &'a mut PacketTrace<'t>,
    pub(super) gpu: Gpu<'d>,
    pub(super) submit: u32,
    /// Draws, dispatches and blits before the packet in work.
    pub(super) work: u64,
}

impl PacketWatch for SubmitTrace<'_, '_, '_> {
    fn before(&mut self, machine: &AdrenoMachine<'_>, _: &WatchedPacket) -> Onward {
        self.work = machine.work_done();
        Onward::Go
    }

    fn wants_changes(&self) -> bool {
        true
    }

    fn after(
        &mut self,
        machine: &AdrenoMachine<'_>,
        packet: &WatchedPacket,
        outcome: PacketOutcome<'_>,
        changes: &PacketChanges,
    ) {
        let mut traced = TracedPacket::new(self.gpu, self.submit, machine, packet, outcome, changes);
        traced.work = Some(self.work).filter(|work| *work < machine.work_done());
        let PacketTrace { json, style, out, .. } = &mut *self.trace;
        // A failed write is remembered by the owner of `out`.
        let _ = if *json {
            serde_json::to_writer(&mut *out, &traced).map_err(io::Error::from).and_then(|()| writeln!(out))
        } else {
            traced.heading(packet, *style, out).and_then(|()| traced.text(out))
        };
    }
}
