//! The command processor: streams in, packet after packet; what packets do is in the modules beside.
//!
//! Packets are read where they lie in memory when their turn comes, so that a stream may be changed by one before it. A
//! thread that waits tries again when it is its turn. Headers, operations and payloads are those that the walker of
//! [`unwedge_stream`] reads. Never: rendering.

mod ahead;
mod bins;
mod condition;
mod event;
mod groups;
mod moves;
mod protect;
mod thread;
mod wait;
mod work;

pub(crate) use event::Event;
use thread::NextPacket;
pub(crate) use thread::{CpThread, Frame, FrameKind, QUEUES};
pub use thread::{StreamFrame, ThreadId};
pub(crate) use wait::Clocks;

use super::caches::CacheWait;
use super::machine::AdrenoMachine;
use super::space::{Client, GpuFault};
use super::{CpError, CpErrorKind};
use unwedge_base::Dwords;
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::payload::IndirectBuffer;

/// Streams inside one another: ring, IB1 to IB3, and groups or tables in the innermost.
const MAX_DEPTH: usize = 8;
/// IB levels below the ring.
const MAX_LEVEL: u8 = 3;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketEnd {
    /// It is done.
    Done,
    /// It waits, and is to be tried again.
    Waits,
}

/// Why a thread cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpStop {
    /// Memory.
    #[error("gpu fault: {0}")]
    Fault(#[from] GpuFault),
    /// The stream.
    #[error("{0}")]
    Error(#[from] CpError),
    /// The allowed number of steps is over.
    #[error("the allowed number of steps is over")]
    Budget,
    /// A packet takes more steps than one may.
    #[error("no progress: the packet is not done after {steps} steps")]
    NoProgress {
        /// So many.
        steps: u64,
    },
    /// A dispatch.
    #[error("{0}")]
    Dispatch(#[from] super::dispatch::DispatchStop),
}

impl CpStop {
    /// The access that the GPU's MMU reports, if that is why.
    pub fn gpu_fault(&self) -> Option<GpuFault> {
        match self {
            CpStop::Fault(fault) => Some(*fault),
            CpStop::Dispatch(stop) => stop.gpu_fault(),
            CpStop::Error(_) | CpStop::Budget | CpStop::NoProgress { .. } => None,
        }
    }

    /// Hardware would have stopped as well.
    pub(crate) fn is_of_hardware(&self) -> bool {
        match self {
            CpStop::Dispatch(stop) => stop.is_of_hardware(),
            CpStop::Fault(fault) => fault.kind.is_of_hardware(),
            CpStop::Error(_) | CpStop::Budget | CpStop::NoProgress { .. } => true,
        }
    }
}

/// A packet that is being executed.
pub(crate) struct Executed<'p> {
    pub(crate) op: AdrenoOp,
    pub(crate) opcode: u8,
    /// Address of its header.
    pub(crate) iova: u64,
    pub(crate) payload: Dwords<'p>,
    pub(crate) thread: ThreadId,
}

impl Executed<'_> {
    /// A payload dword.
    pub(crate) fn arg(&self, i: usize) -> Result<u32, CpError> {
        self.payload.get(i).ok_or(self.error(CpErrorKind::ShortPacket { opcode: self.opcode }))
    }

    /// Two payload dwords, the low one first.
    pub(crate) fn arg64(&self, i: usize) -> Result<u64, CpError> {
        Ok(u64::from(self.arg(i)?) | u64::from(self.arg(i + 1)?) << 32)
    }

    pub(crate) fn error(&self, kind: CpErrorKind) -> CpError {
        CpError { iova: self.iova, kind }
    }
}

impl AdrenoMachine<'_> {
    /// Lets a thread execute one packet, or try again the one that waits. `None`: it has nothing to execute.
    pub(crate) fn step_thread(&mut self, id: ThreadId) -> Result<Option<PacketEnd>, CpStop> {
        let Some(at) = self.thread_mut(id).next_packet() else { return Ok(None) };
        let generation = self.generation;
        self.thread_mut(id).resume();
        self.space.privileged = self.level(id) == 0;
        let error = |kind| CpError { iova: at.dword(0), kind };
        self.space.begin_packet(at.dword(0), None, id);
        let raw = self.fetch(at.dword(0)).inspect_err(|_| self.thread_mut(id).work_on(&at, 0))?;
        let header = AdrenoPacketHeader::decode(raw, generation);
        if at.taken || header.is_none() {
            self.thread_mut(id).header = raw;
            if !matches!(header, Some(AdrenoPacketHeader::Registers { .. })) {
                self.thread_mut(id).remember(raw, at.iova);
            }
        }
        self.thread_mut(id).work_on(&at, 1);
        let header = header.ok_or(error(CpErrorKind::BadHeader { raw }))?;
        let count = header.count();
        if u64::from(count) > at.left.saturating_sub(1) {
            self.thread_mut(id).work_on(&at, at.left);
            return Err(error(CpErrorKind::CutPacket { raw, left: at.left }).into());
        }
        let mut words = std::mem::take(&mut self.payload);
        words.clear();
        let end = self.fetch_payload(&at, count, &mut words).and_then(|()| {
            let payload = Dwords::new(&words, words.len());
            self.thread_mut(id).work_on(&at, 1 + u64::from(count));
            self.thread_mut(id).advance(1 + u64::from(count));
            if at.taken {
                self.check_protection(id, &at, header, &payload)?;
            }
            if at.taken {
                self.audit_packet(at.dword(0), header, id);
            }
            if at.taken && self.waits_for_clusters(id, header, &payload) {
                return Ok(PacketEnd::Waits);
            }
            match header {
                AdrenoPacketHeader::Registers { reg, .. } => {
                    if at.taken {
                        for (reg, value) in (reg..).zip(payload.iter()) {
                            self.write_register(id, reg, value);
                        }
                    }
                    Ok(PacketEnd::Done)
                }
                AdrenoPacketHeader::Operation { opcode, .. } => {
                    let op = self.operation(opcode);
                    self.space.begin_packet(at.dword(0), Some(opcode), id);
                    let packet = Executed { op, opcode, iova: at.dword(0), payload, thread: id };
                    self.operate(&packet, at.taken)
                }
                AdrenoPacketHeader::Padding => Ok(PacketEnd::Done),
            }
        });
        self.payload = words;
        self.spend(self.space.take_walked_lines())?;
        if end == Ok(PacketEnd::Waits) {
            self.thread_mut(id).hold(1 + u64::from(count));
        }
        end.map(Some)
    }

    fn fetch(&self, iova: u64) -> Result<u32, GpuFault> {
        self.space.read(iova, 4, Client::Cp).map(|word| word as u32)
    }

    fn fetch_payload(&self, at: &NextPacket, count: u32, words: &mut Vec<u32>) -> Result<(), CpStop> {
        for n in 1..=u64::from(count) {
            words.push(self.fetch(at.dword(n))?);
        }
        Ok(())
    }

    fn operate(&mut self, packet: &Executed<'_>, taken: bool) -> Result<PacketEnd, CpStop> {
        // Every thread reads it: it says which of them go on.
        if packet.op == AdrenoOp::ThreadControl {
            return self.thread_control(packet);
        }
        if !taken {
            return Ok(PacketEnd::Done);
        }
        match packet.op {
            AdrenoOp::IndirectBuffer | AdrenoOp::IndirectBufferPfd => self.indirect(packet)?,
            AdrenoOp::IndirectBufferChain => self.chain(packet)?,
            AdrenoOp::StartBin => self.start_bin(packet)?,
            AdrenoOp::EndBin => self.end_bin(packet)?,
            AdrenoOp::FixedStrideDrawTable => self.draw_table(packet)?,

            AdrenoOp::WaitRegMem
            | AdrenoOp::WaitMemGte
            | AdrenoOp::WaitTimestamp
            | AdrenoOp::WaitRegEq
            | AdrenoOp::BvBrCountOps => {
                self.space.begin_poll();
                let end = self.wait(packet)?;
                if end == PacketEnd::Done {
                    // What wrote the value came after what else is waited for.
                    self.space.wait(CacheWait::Idle);
                    self.space.wait(CacheWait::MemWrites);
                }
                return Ok(end);
            }
            AdrenoOp::ModifyTimestamp | AdrenoOp::GlobalTimestamp | AdrenoOp::LocalTimestamp => {
                self.timestamp(packet)?;
            }

            AdrenoOp::CondRegExec | AdrenoOp::CondExec => self.condition(packet)?,
            AdrenoOp::RegTest => self.register_test(packet),
            AdrenoOp::DrawPredSet | AdrenoOp::DrawPredEnableGlobal | AdrenoOp::DrawPredEnableLocal => {
                self.draw_predicate(packet)?;
            }

            AdrenoOp::SetDrawState => self.set_draw_state(packet)?,
            AdrenoOp::SetMarker => self.set_marker(packet)?,
            AdrenoOp::LoadState6 | AdrenoOp::LoadState6Geom | AdrenoOp::LoadState6Frag => {
                self.load_state(packet)?;
            }
            AdrenoOp::EventWrite | AdrenoOp::EventWrite7 => self.event(packet)?,
            op if op.is_work() => return self.work(packet),
            AdrenoOp::WaitForIdle => {
                self.space.wait(CacheWait::Idle);
                self.wait_for_idle(packet.thread);
            }
            _ => self.move_data(packet)?,
        }
        Ok(PacketEnd::Done)
    }

    // Nested streams

    fn push(&mut self, packet: &Executed<'_>, frame: Frame) -> Result<(), CpStop> {
        let thread = self.thread_mut(packet.thread);
        // Groups and the like have a level of their own.
        let deepest = if frame.kind == FrameKind::Indirect { MAX_LEVEL } else { MAX_LEVEL + 1 };
        if thread.frames.len() >= MAX_DEPTH || frame.level > deepest {
            return Err(packet.error(CpErrorKind::TooDeep).into());
        }
        if frame.end > frame.next {
            thread.enter(frame);
        }
        Ok(())
    }

    fn level(&self, id: ThreadId) -> u8 {
        self.thread(id).frames.last().map_or(0, |frame| frame.level)
    }

    /// The buffer that a packet calls.
    fn called(&self, packet: &Executed<'_>) -> Result<IndirectBuffer, CpError> {
        let called = IndirectBuffer::parse(packet.payload, self.generation);
        called.ok_or(packet.error(CpErrorKind::ShortPacket { opcode: packet.opcode }))
    }

    fn indirect(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let called = self.called(packet)?;
        let level = self.level(packet.thread) + 1;
        self.push(packet, Frame::new(FrameKind::Indirect, level, called.iova, called.dwords()))
    }

    /// The rest of this stream is not executed.
    fn chain(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let called = self.called(packet)?;
        let level = self.level(packet.thread);
        let thread = self.thread_mut(packet.thread);
        thread.frames.pop();
        // The packet that it goes to may be itself, and nothing of that is taken yet.
        thread.work.dwords = 0;
        self.push(packet, Frame::new(FrameKind::Indirect, level, called.iova, called.dwords()))
    }

    fn start_bin(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let (count, prefix, dwords) = (packet.arg(0)?, packet.arg64(1)?, packet.arg(3)?);
        let level = self.level(packet.thread);
        let Some(frame) = self.thread_mut(packet.thread).frames.last_mut() else { return Ok(()) };
        frame.bins = Some(thread::BinLoop { body: frame.next, left: count.max(1), prefix, dwords });
        self.push(packet, Frame::new(FrameKind::Bin, level + 1, prefix, dwords))
    }

    fn end_bin(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let level = self.level(packet.thread);
        let Some(frame) = self.thread_mut(packet.thread).frames.last_mut() else { return Ok(()) };
        let Some(bins) = &mut frame.bins else { return Ok(()) };
        bins.left -= 1;
        if bins.left == 0 {
            frame.bins = None;
            return Ok(());
        }
        bins.prefix = bins.prefix.saturating_add(4 * u64::from(bins.dwords));
        let (prefix, dwords) = (bins.prefix, bins.dwords);
        frame.next = bins.body;
        self.push(packet, Frame::new(FrameKind::Bin, level + 1, prefix, dwords))
    }

    fn draw_table(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let (iova, size, count) = (packet.arg64(0)?, packet.arg(2)?, packet.arg(3)?);
        let (dwords, stride) = (size & 0xfff, size >> 20);
        let level = self.level(packet.thread) + 1;
        if dwords == 0 || count == 0 {
            return Ok(());
        }
        let mut frame = Frame::new(FrameKind::DrawTable, level, iova, dwords);
        frame.table = Some(thread::TableLoop { left: count - 1, base: iova, stride, dwords });
        self.push(packet, frame)
    }
}
