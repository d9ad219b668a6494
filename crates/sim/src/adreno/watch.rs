//! Somebody who looks on while packets are executed: before each, and at what it has changed after it.
//!
//! A packet that has to wait is shown once before, once as one that waits, and once when it is done. Never: changes what is
//! executed.

use super::cp::{CpStop, PacketEnd, ThreadId};
use super::machine::AdrenoMachine;
use crate::writes::WriteLog;
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// Registers of a packet that are taken down; a packet has no more than 0x7f dwords of them, nor its condition.
const REGISTERS: usize = 1 << 10;

/// Whether execution goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// With this packet.
    Go,
    /// No further.
    Leave,
}

/// A packet that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedPacket {
    /// Who executes it.
    pub thread: ThreadId,
    /// IB level: 0 is the ring.
    pub level: u8,
    /// Where its header is in memory.
    pub iova: u64,
    /// Its first dword; `None` where memory does not tell it.
    pub raw: Option<u32>,
    /// What that dword means, if it is a header.
    pub header: Option<AdrenoPacketHeader>,
    /// What an operation does.
    pub op: Option<AdrenoOp>,
    /// A condition, or the choice of threads, does not leave it out.
    pub taken: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome<'s> {
    /// It is done.
    Done,
    /// It waits, or comes again behind draw states.
    Waits,
    /// It ended its thread.
    Stopped(&'s CpStop),
}

/// What a packet has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketChanges {
    /// Register writes in their order: offset, value.
    pub registers: Vec<(u32, u32)>,
    /// There were more of them.
    pub more_registers: bool,
    /// Memory.
    pub memory: WriteLog,
}

/// Looks on.
pub trait PacketWatch {
    /// Whether [`PacketWatch::after`] needs what packets change.
    fn wants_changes(&self) -> bool {
        false
    }

    /// A packet is next.
    fn before(&mut self, _machine: &AdrenoMachine<'_>, _packet: &WatchedPacket) -> Onward {
        Onward::Go
    }

    /// A packet was executed.
    fn after(
        &mut self,
        _machine: &AdrenoMachine<'_>,
        _packet: &WatchedPacket,
        _outcome: PacketOutcome<'_>,
        _changes: &PacketChanges,
    ) {
    }
}

/// A look at a thread that is about to take a packet.
pub(crate) struct Look {
    packet: WatchedPacket,
    /// It was looked at before, and waits since.
    again: bool,
}

/// The packets that were looked at and wait, by thread: one in each stream that the thread is in.
#[derive(Debug, Default)]
pub(crate) struct Waiting([Vec<u64>; 2]);

impl AdrenoMachine<'_> {
    /// Shows the next packet of a thread; `None` where it has nothing to execute, `Err` if it is not to be executed.
    pub(crate) fn look(
        &mut self,
        id: ThreadId,
        waiting: &Waiting,
        watch: &mut dyn PacketWatch,
    ) -> Result<Option<Look>, Onward> {
        let Some(packet) = self.next_watched(id) else { return Ok(None) };
        let again = waiting.0[usize::from(id == ThreadId::Bv)].contains(&packet.iova);
        if !again && watch.before(self, &packet) == Onward::Leave {
            return Err(Onward::Leave);
        }
        if watch.wants_changes() {
            self.changes = Some(PacketChanges::default());
            self.space.memory.log_writes();
        }
        Ok(Some(Look { packet, again }))
    }

    /// Shows what became of the packet that was looked at.
    pub(crate) fn looked(
        &mut self,
        look: &Look,
        end: &Result<Option<PacketEnd>, CpStop>,
        waiting: &mut Waiting,
        watch: &mut dyn PacketWatch,
    ) {
        let packet = &look.packet;
        let outcome = match end {
            Ok(Some(PacketEnd::Done)) if !self.is_held(packet) => PacketOutcome::Done,
            Ok(_) => PacketOutcome::Waits,
            Err(stop) => PacketOutcome::Stopped(stop),
        };
        let mut changes = self.changes.take().unwrap_or_default();
        changes.memory = self.space.memory.take_writes();
        let waits = outcome == PacketOutcome::Waits;
        let of_thread = &mut waiting.0[usize::from(packet.thread == ThreadId::Bv)];
        match waits {
            true if !look.again => of_thread.push(packet.iova),
            true => {}
            false => of_thread.retain(|&iova| iova != packet.iova),
        }
        if !(waits && look.again) {
            watch.after(self, packet, outcome, &changes);
        }
    }

    fn next_watched(&mut self, id: ThreadId) -> Option<WatchedPacket> {
        let at = self.thread_mut(id).next_packet()?;
        let level = self.thread(id).frames.last().map_or(0, |frame| frame.level);
        let iova = at.dword(0);
        let raw = self.space.memory.load(iova, 4).known().map(|raw| raw as u32);
        let header = raw.and_then(|raw| AdrenoPacketHeader::decode(raw, self.generation));
        let op = match header {
            Some(AdrenoPacketHeader::Operation { opcode, .. }) => Some(self.operation(opcode)),
            _ => None,
        };
        Some(WatchedPacket { thread: id, level, iova, raw, header, op, taken: at.taken })
    }

    /// Whether a packet will be executed again, after the draw states that it loads.
    fn is_held(&self, packet: &WatchedPacket) -> bool {
        let mut frames = self.thread(packet.thread).frames.iter();
        frames.any(|frame| frame.held > 0 && frame.place(frame.next) == packet.iova)
    }

    /// Takes down that a register is written.
    pub(crate) fn log_register(&mut self, reg: u32, value: u32) {
        let Some(changes) = &mut self.changes else { return };
        if changes.registers.len() < REGISTERS {
            changes.registers.push((reg, value));
        } else {
            changes.more_registers = true;
        }
    }
}
