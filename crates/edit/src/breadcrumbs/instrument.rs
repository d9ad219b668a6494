//! Breadcrumbs put into a capture, and the packets that they are of.
//!
//! Facts: what Turnip emits (`tu_cs_emit_sync_breadcrumb`): before and after each draw, dispatch and blit, numbered from 1, waits for writes of
//! the CP, for the GPU and for the ME, then the write, then a wait in memory until the CPU has written the same number. On a7xx the two threads of the
//! CP would each write: there only BR does, by a condition on threads.

use super::buffer::Mailbox;
use crate::instrument::operation;
use crate::rewrite::{
    AddressSpace, PacketEdit, RewriteError, Rewritten, SetEdit, StreamEditor, StreamPacket, rewrite,
};
use std::io::{self, Read};
use unwedge_base::Generation;
use unwedge_hw::{Db, Gpu};
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// CP_WAIT_REG_MEM: until memory equals the reference.
const MEMORY_EQUALS: u32 = 3 | 1 << 4;
/// Cycles between two looks of the CP, as Turnip has it.
const POLL_CYCLES: u32 = 16;
/// CP_COND_REG_EXEC: on thread BR.
const ON_BR: u32 = 5 << 28 | 1 << 26;

/// On which side of its packet a breadcrumb is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreadcrumbSide {
    /// The packet has not been started.
    Before,
    /// It is done: the GPU was idle after it.
    After,
}

/// A packet with breadcrumbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreadcrumbPacket {
    /// The breadcrumb before it; the next number is after it.
    pub before: u32,
    /// Address of its header in the capture that was read.
    pub iova: u64,
    /// Its name.
    pub name: String,
    /// The submit that executes it first.
    pub submit: u32,
    /// Number of the first draw, dispatch or blit that it starts, if the walk of its stream met it.
    pub work: Option<u32>,
}

/// An editor that puts breadcrumbs into a capture.
#[derive(Debug)]
pub struct BreadcrumbEditor {
    waits: bool,
    mailbox: Option<Mailbox>,
    sync: Option<SyncPackets>,
    count: u32,
    found_others: bool,
}

/// The packets of one breadcrumb, without its number.
#[derive(Clone, Debug)]
struct SyncPackets {
    words: Vec<u32>,
    /// Where the number goes.
    numbers: Vec<usize>,
}

impl SyncPackets {
    /// `None` on generations without these packets.
    fn new(gpu: Gpu<'_>, mailbox: Mailbox) -> Option<SyncPackets> {
        let (gpu_iova, cpu_iova) = (mailbox.gpu(), mailbox.cpu());
        let waits = ["CP_WAIT_MEM_WRITES", "CP_WAIT_FOR_IDLE", "CP_WAIT_FOR_ME"];
        let waits: Option<Vec<_>> = waits.iter().map(|name| operation(gpu, name, &[])).collect();
        let mut words = waits?.concat();
        let write = [gpu_iova as u32, (gpu_iova >> 32) as u32, 0];
        words.extend(operation(gpu, "CP_MEM_WRITE", &write)?);
        let mut numbers = vec![words.len() - 1];
        if mailbox.waits {
            let at = words.len();
            let (low, high) = (cpu_iova as u32, (cpu_iova >> 32) as u32);
            let wait = [MEMORY_EQUALS, low, high, 0, u32::MAX, POLL_CYCLES];
            words.extend(operation(gpu, "CP_WAIT_REG_MEM", &wait)?);
            numbers.push(at + 4);
        }
        if gpu.generation() >= Generation::A7xx {
            let condition = operation(gpu, "CP_COND_REG_EXEC", &[ON_BR, u32::try_from(words.len()).ok()?])?;
            numbers.iter_mut().for_each(|at| *at += condition.len());
            words.splice(0..0, condition);
        }
        Some(SyncPackets { words, numbers })
    }

    fn of(&self, breadcrumb: u32) -> Vec<u32> {
        let mut words = self.words.clone();
        for at in &self.numbers {
            if let Some(word) = words.get_mut(*at) {
                *word = breadcrumb;
            }
        }
        words
    }
}

impl BreadcrumbEditor {
    /// An editor for one capture. `waits`: the GPU waits for the CPU at each breadcrumb.
    pub fn new(waits: bool) -> BreadcrumbEditor {
        BreadcrumbEditor { waits, mailbox: None, sync: None, count: 0, found_others: false }
    }

    /// How many breadcrumbs there are so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether it failed because the capture has breadcrumbs already.
    pub fn found_others(&self) -> bool {
        self.found_others
    }

    /// The next two numbers, unless they are used up.
    fn take(&mut self) -> Option<(u32, u32)> {
        let (before, after) = (self.count.checked_add(1)?, self.count.checked_add(2)?);
        self.count = after;
        Some((before, after))
    }
}

/// The breadcrumbs that a set has already.
fn present(set: &SetEdit<'_>) -> Option<Mailbox> {
    let large = set.buffers().into_iter().filter(|buffer| u64::from(buffer.size) >= Mailbox::SIZE);
    large.map(|buffer| buffer.iova).find_map(|iova| Mailbox::read(iova, &set.words(iova, 8)))
}

impl StreamEditor for BreadcrumbEditor {
    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        if present(set).is_some() {
            self.found_others = true;
            return Err(RewriteError::Edit("the capture has breadcrumbs already".to_owned()));
        }
        let mailbox = match self.mailbox {
            Some(mailbox) => mailbox,
            None => {
                let iova = set.reserve(Mailbox::SIZE)?;
                Mailbox::at(iova, self.waits).ok_or(RewriteError::NoAddresses(Mailbox::SIZE))?
            }
        };
        self.mailbox = Some(mailbox);
        let gpu = set.gpu();
        // Older packets have other payloads.
        let known = gpu.generation().is_64bit().then(|| SyncPackets::new(gpu, mailbox)).flatten();
        let unknown = || RewriteError::Edit(format!("breadcrumbs are not known for {}", gpu.generation()));
        self.sync = Some(known.ok_or_else(unknown)?);
        set.add_buffer_at(mailbox.iova(), mailbox.words(), Mailbox::SIZE)
    }

    fn edit(&mut self, packet: &StreamPacket<'_>) -> PacketEdit {
        if !packet.op.is_work() {
            return PacketEdit::default();
        }
        let Some((before, after)) = self.take() else { return PacketEdit::default() };
        let Some(sync) = &self.sync else { return PacketEdit::default() };
        PacketEdit { before: sync.of(before), after: sync.of(after), ..PacketEdit::default() }
    }
}

/// Which packet a breadcrumb is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreadcrumbMap {
    /// Sorted by their breadcrumbs.
    packets: Vec<BreadcrumbPacket>,
    /// The capture has breadcrumbs; else this is how they would be numbered.
    pub instrumented: bool,
}

impl BreadcrumbMap {
    /// Reads a capture: one with breadcrumbs, or the one that they were put into.
    ///
    /// # Errors
    /// When the addresses that the capture claims leave no room; nothing is written.
    pub fn read(
        space: AddressSpace,
        capture: impl Read,
        db: &Db,
        max_alive: u64,
    ) -> Result<(BreadcrumbMap, Rewritten), RewriteError> {
        let mut reader = MapReader::default();
        let rewritten = rewrite(capture, space, &mut reader, db, max_alive, &mut io::sink())?;
        let mut map = reader.map;
        map.packets.sort_by_key(|packet| packet.before);
        Ok((map, rewritten))
    }

    /// The packet of a breadcrumb, and the side of it.
    pub fn find(&self, breadcrumb: u32) -> Option<(&BreadcrumbPacket, BreadcrumbSide)> {
        let at = self.packets.partition_point(|packet| packet.before <= breadcrumb).checked_sub(1)?;
        let packet = self.packets.get(at)?;
        match breadcrumb - packet.before {
            0 => Some((packet, BreadcrumbSide::Before)),
            1 => Some((packet, BreadcrumbSide::After)),
            _ => None,
        }
    }

    /// How many packets have breadcrumbs.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

/// An editor that changes nothing, and takes down which packets have which breadcrumbs.
#[derive(Default)]
struct MapReader {
    map: BreadcrumbMap,
    mailbox: Option<Mailbox>,
    /// Names of operations, by opcode.
    names: Vec<Option<String>>,
    generation: Option<Generation>,
    /// The breadcrumb that was written last, and the stream that it is in.
    written: Option<(u64, u32)>,
    count: u32,
}

impl StreamEditor for MapReader {
    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        let gpu = set.gpu();
        if self.generation != Some(gpu.generation()) {
            self.generation = Some(gpu.generation());
            self.names = (0..=0x7f).map(|opcode| gpu.packet_name(opcode).map(str::to_owned)).collect();
        }
        self.mailbox = present(set);
        self.map.instrumented |= self.mailbox.is_some();
        Ok(())
    }

    fn edit(&mut self, packet: &StreamPacket<'_>) -> PacketEdit {
        let stream = packet.stream.iova;
        if let (Some(mailbox), AdrenoOp::MemWrite, &[low, high, number, ..]) =
            (self.mailbox, packet.op, packet.payload())
            && u64::from(low) | u64::from(high) << 32 == mailbox.gpu()
        {
            self.written = Some((stream, number));
        }
        if !packet.op.is_work() {
            return PacketEdit::default();
        }
        let before = match self.mailbox {
            Some(_) => self.written.take().filter(|(at, _)| *at == stream).map(|(_, number)| number),
            None => self.count.checked_add(1),
        };
        self.count = self.count.saturating_add(2);
        if let Some(before) = before {
            let name = match packet.header {
                AdrenoPacketHeader::Operation { opcode, .. } => {
                    self.names.get(usize::from(opcode)).cloned().flatten()
                }
                _ => None,
            };
            self.map.packets.push(BreadcrumbPacket {
                before,
                iova: packet.iova,
                name: name.unwrap_or_else(|| "unknown packet".to_owned()),
                submit: packet.submit,
                work: packet.works.first().copied(),
            });
        }
        PacketEdit::default()
    }
}
