//! The walk itself: packet after packet, into nested streams and out again, within bounds.
//!
//! What packets do is in `ops`, `draw`, `load_state` and `predicate`. Never: knowledge of a single packet beyond its
//! header.

use crate::adreno::header::{self, AdrenoPacketHeader};
use crate::adreno::predicate::Conditions;
use crate::adreno::state::threads;
use crate::adreno::{AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoStreamKind, NestedStream, Packet};
use crate::budget::BUDGET;
use crate::{Exec, Flow, RegWrite, StreamPos, Trouble, TroubleKind};
use unwedge_base::{Dwords, Generation, Memory};
use unwedge_hw::Gpu;

/// What the walker does where hardware and listing tools differ.
#[derive(Clone, Debug)]
pub struct WalkerOptions {
    /// Visit everything in stream order, whatever predicates say, and read packets of any type, as listing tools do.
    /// When off, packets that are known to be skipped (predication, draw-state enable masks) are reported but change
    /// no state; chained buffers are followed, and CP_START_BIN repeats its body for every bin.
    pub linear: bool,
    /// Dwords to walk in all before giving up: bounds hostile streams of nested buffers. See [`crate::budget`].
    pub budget: u64,
}

impl Default for WalkerOptions {
    fn default() -> WalkerOptions {
        WalkerOptions { linear: false, budget: BUDGET }
    }
}

/// What looking a nested stream up and entering it costs, in dwords.
const STREAM: u64 = 16;
/// What a draw costs in dwords: whoever watches does more about it than about anything else.
pub(crate) const DRAW: u64 = 16;

/// IB levels below the ring: IB1, IB2, IB3. Listing tools go one deeper.
const MAX_LEVEL: u8 = 3;
/// Streams inside one another, of any kind.
const MAX_DEPTH: u8 = 8;

/// Walks command streams of one GPU, keeping state from one stream to the next.
pub struct AdrenoWalker<'w> {
    /// The database view that names packets and registers.
    pub gpu: Gpu<'w>,
    /// Where indirect buffers are looked up.
    pub memory: &'w Memory,
    /// What the packets so far have done.
    pub state: AdrenoState,
    /// How to walk.
    pub options: WalkerOptions,
    /// Load the draw-state groups of each draw once more for every [`Pass`](crate::adreno::Pass), with a
    /// [`Draw`](AdrenoEvent::Draw) event behind each; the registers keep what the last of them wrote. Off at first.
    pub compare: bool,
    pub(crate) generation: Generation,
    pub(crate) facts: Facts,
    /// Groups are being loaded for a draw.
    pub(crate) loading_groups: bool,
    ops: [AdrenoOp; 256],
    spent: u64,
    stopped: bool,
    depth: u8,
}

/// Numbers that the walker needs and the database knows.
pub(crate) struct Facts {
    /// Events that do work: BLIT, LRZ_CLEAR.
    pub(crate) working_events: [Option<u32>; 2],
    /// First bindless base register, of graphics and of compute.
    pub(crate) bindless: [Option<u32>; 2],
    /// The same, but only where listing tools look for them (a6xx); elsewhere they take register 0.
    pub(crate) listed_bindless: [Option<u32>; 2],
}

impl Facts {
    fn new(gpu: Gpu<'_>) -> Facts {
        let events = gpu.enumeration("vgt_event_type");
        let event = |name| events.and_then(|e| e.value_of(name)).and_then(|v| u32::try_from(v).ok());
        let hlsq = ["HLSQ_BINDLESS_BASE[0].DESCRIPTOR", "HLSQ_CS_BINDLESS_BASE[0].DESCRIPTOR"];
        let sp = ["SP_BINDLESS_BASE[0].DESCRIPTOR", "SP_CS_BINDLESS_BASE[0].DESCRIPTOR"];
        let [listed, mirror] = [hlsq, sp].map(|names| names.map(|name| gpu.reg_offset(name)));
        Facts {
            working_events: [event("BLIT"), event("LRZ_CLEAR")],
            bindless: [listed[0].or(mirror[0]), listed[1].or(mirror[1])],
            listed_bindless: listed,
        }
    }
}

/// Zeros that listing tools find behind the end of a buffer, in dwords: their allocator rounds sizes up and clears the
/// rest, and they read a packet at the end of a ring to its own end.
const BEYOND: usize = 2;

/// A stream to walk.
pub(crate) struct WalkTarget<'a> {
    pub(crate) stream: NestedStream<'a>,
    /// From the stream's first dword to the end of the buffer it lies in: what listing tools read when a packet is
    /// longer than its stream.
    pub(crate) reach: Dwords<'a>,
    /// The threads that execute it.
    pub(crate) threads: u8,
}

/// A stream being walked.
pub(crate) struct AdrenoFrame<'a> {
    /// See [`WalkTarget::reach`].
    pub(crate) reach: Dwords<'a>,
    len: usize,
    iova: Option<u64>,
    pub(crate) level: u8,
    exec: Exec,
    threads: u8,
    pub(crate) conditions: Conditions,
    pub(crate) bins: Option<BinLoop>,
}

/// The loop that CP_START_BIN opened.
#[derive(Clone, Copy)]
pub(crate) struct BinLoop {
    /// Index of the body's first packet.
    pub(crate) body: usize,
    /// The bin that the body is being walked for.
    pub(crate) index: u32,
    pub(crate) table: Table,
}

/// Command buffers of one size in a row.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) iova: u64,
    /// Dwords of each.
    pub(crate) size: u32,
    pub(crate) count: u32,
}

/// A packet being worked on.
pub(crate) struct Current<'a> {
    pub(crate) packet: Packet<'a>,
    /// The payload; when walking linearly, everything from there to the end of the buffer.
    pub(crate) args: Dwords<'a>,
    /// The threads that execute it.
    pub(crate) threads: u8,
    /// It changes the state.
    pub(crate) applies: bool,
    /// Index of the next packet.
    pub(crate) next: usize,
}

impl Current<'_> {
    /// A payload dword; 0 past the end.
    pub(crate) fn arg(&self, i: usize) -> u32 {
        self.args.get(i).unwrap_or(0)
    }

    /// Two payload dwords, the low one first.
    pub(crate) fn arg64(&self, i: usize) -> u64 {
        self.args.get64(i).unwrap_or(0)
    }
}

/// Where a stream goes on after a packet.
pub(crate) enum Next<'a> {
    /// With the packet that follows.
    Packet,
    /// With another packet of this stream.
    Jump(usize),
    /// In another buffer, for good.
    Chain(WalkTarget<'a>),
}

impl<'a> AdrenoFrame<'a> {
    fn new(target: &WalkTarget<'a>, linear: bool) -> AdrenoFrame<'a> {
        let NestedStream { dwords, iova, level, exec, .. } = target.stream;
        let WalkTarget { reach, .. } = *target;
        let beyond = if linear { BEYOND } else { 0 };
        AdrenoFrame {
            reach: Dwords::new(reach.stored(), reach.len().saturating_add(beyond)),
            len: dwords.len(),
            iova,
            level,
            exec,
            threads: target.threads,
            conditions: Conditions::default(),
            bins: None,
        }
    }

    /// The stream has no packet at `index`, and had all of those before it.
    pub(crate) fn ends_at(&self, index: usize) -> bool {
        index == self.len
    }

    fn place(&self, index: usize) -> StreamPos {
        let offset = (index as u64).saturating_mul(4);
        StreamPos { level: self.level, iova: self.iova.map(|i| i.saturating_add(offset)), index }
    }
}

/// The place of a payload dword of a packet.
fn payload_place(packet: StreamPos, i: usize) -> StreamPos {
    let dwords = i.saturating_add(1);
    let offset = (dwords as u64).saturating_mul(4);
    StreamPos {
        index: packet.index.saturating_add(dwords),
        iova: packet.iova.map(|i| i.saturating_add(offset)),
        ..packet
    }
}

impl<'w> AdrenoWalker<'w> {
    /// A walker with nothing written yet.
    pub fn new(gpu: Gpu<'w>, memory: &'w Memory, options: WalkerOptions) -> AdrenoWalker<'w> {
        let generation = gpu.generation();
        let registers = if generation.is_64bit() { 0x4_0000 } else { 0x8000 };
        AdrenoWalker {
            gpu,
            memory,
            state: AdrenoState::new(registers),
            options,
            compare: false,
            generation,
            facts: Facts::new(gpu),
            loading_groups: false,
            ops: crate::adreno::op::table(gpu),
            spent: 0,
            stopped: false,
            depth: 0,
        }
    }

    /// Walks one stream at IB level 0. `iova` is where its first dword lies; `None` for a copy that lies nowhere.
    /// There is no [`AdrenoEvent::Enter`] for it.
    pub fn walk(&mut self, stream: Dwords<'_>, iova: Option<u64>, sink: &mut dyn AdrenoSink) {
        let ring = NestedStream {
            kind: AdrenoStreamKind::Indirect,
            level: 0,
            iova,
            claimed: stream.len() as u64,
            dwords: stream,
            exec: Exec::Always,
        };
        // A stream out of memory, and not a copy of it, goes on in its buffer.
        let buffer = iova.filter(|_| self.options.linear).and_then(|iova| self.memory.dwords(iova));
        let first = |dwords: Dwords<'_>| dwords.stored().as_ptr();
        let reach = buffer.filter(|&buffer| std::ptr::eq(first(buffer), first(stream))).unwrap_or(stream);
        let target = WalkTarget { stream: ring, reach, threads: threads::ALL };
        if let Some(chained) = self.run(&target, sink) {
            self.enter(chained, StreamPos { level: 0, iova, index: 0 }, sink);
        }
        self.state.level = 0;
    }

    /// Walks the packets of a stream; returns where it goes on when it ends with a jump to another buffer.
    fn run<'a>(&mut self, target: &WalkTarget<'a>, sink: &mut dyn AdrenoSink) -> Option<WalkTarget<'a>>
    where
        'w: 'a,
    {
        let linear = self.options.linear;
        let mut frame = AdrenoFrame::new(target, linear);
        let mut at = 0;
        while at < frame.len && !self.stopped {
            self.state.level = frame.level;
            let place = frame.place(at);
            let raw = frame.reach.get(at).unwrap_or(0);
            let header = match AdrenoPacketHeader::decode(raw, self.generation) {
                Some(header) => header,
                None => match linear.then(|| AdrenoPacketHeader::decode_lenient(raw)).flatten() {
                    Some(header) => {
                        self.trouble(place, TroubleKind::ForeignType { raw }, sink);
                        header
                    }
                    None => {
                        at = self.resynchronize(&frame, at, raw, sink);
                        continue;
                    }
                },
            };
            let claimed = header.count() as usize;
            let present = claimed.min(frame.len.saturating_sub(at + 1));
            let args = frame.reach.skip(at + 1);
            let payload = args.take(if linear { claimed } else { present });
            if !self.spend(payload.len() as u64 + 1, place, sink) {
                break;
            }

            let op = match header {
                AdrenoPacketHeader::Operation { opcode, .. } => self.ops[usize::from(opcode)],
                _ => AdrenoOp::None,
            };
            let (mut exec, threads) = frame.conditions.at(at, frame.exec, frame.threads);
            let threads = threads & self.state.threads();
            if threads == 0 {
                exec = Exec::NotTaken;
            }
            if op.loads_groups() {
                exec = exec.and(self.draw_predicate());
            }
            let packet = Packet {
                place,
                raw,
                header,
                payload,
                dwords: frame.reach.skip(at).take(payload.len().saturating_add(1)),
                op,
                exec,
            };
            let cx = Current {
                packet,
                args: if linear { args } else { payload },
                threads,
                applies: linear || exec != Exec::NotTaken,
                next: header::after(at, header),
            };

            if op.loads_groups() && cx.applies {
                self.load_groups(&frame, &cx, sink);
                self.state.level = frame.level;
            }
            sink.event(&self.state, &AdrenoEvent::Packet(packet));
            let next = match header {
                AdrenoPacketHeader::Registers { reg, .. } => {
                    self.write_all(&cx, reg, sink);
                    Next::Packet
                }
                AdrenoPacketHeader::Operation { .. } => self.operate(&mut frame, &cx, sink),
                AdrenoPacketHeader::Padding => Next::Packet,
            };
            self.state.level = frame.level;
            sink.event(&self.state, &AdrenoEvent::PacketEnd(packet));
            if present < claimed {
                let kind = TroubleKind::CutPacket { claimed: header.count(), present: present as u32 };
                self.trouble(place, kind, sink);
            }
            match next {
                Next::Packet => at = cx.next,
                Next::Jump(index) => at = index,
                // Listing tools take the chained buffer for the rest of this one.
                Next::Chain(chained) if linear => (frame, at) = (AdrenoFrame::new(&chained, linear), 0),
                Next::Chain(chained) => return Some(chained),
            }
        }
        None
    }

    /// Reports a dword that is no header and finds the next packet.
    fn resynchronize(
        &mut self,
        frame: &AdrenoFrame<'_>,
        at: usize,
        raw: u32,
        sink: &mut dyn AdrenoSink,
    ) -> usize {
        let stream = frame.reach.take(frame.len);
        let found = if !self.options.linear {
            header::find_packet(stream, at + 1, self.gpu)
        } else if self.generation.is_64bit() {
            let rest = stream.stored().iter().enumerate().skip(at + 1);
            rest.filter(|&(_, &raw)| AdrenoPacketHeader::decode_parity(raw).is_some()).map(|(i, _)| i).next()
        } else {
            None
        };
        let next = found.unwrap_or(frame.len);
        let kind = TroubleKind::BadHeader { raw, skipped: next - at, resynced: found.is_some() };
        self.trouble(frame.place(at), kind, sink);
        self.spend((next - at) as u64, frame.place(at), sink);
        next
    }

    /// Enters a nested stream, and whatever it is chained to.
    pub(crate) fn enter<'a>(&mut self, target: WalkTarget<'a>, from: StreamPos, sink: &mut dyn AdrenoSink)
    where
        'w: 'a,
    {
        let deep = match target.stream.kind {
            AdrenoStreamKind::Group { .. } | AdrenoStreamKind::Amble | AdrenoStreamKind::Embedded => false,
            _ => target.stream.level > MAX_LEVEL + u8::from(self.options.linear),
        };
        if deep || self.depth >= MAX_DEPTH {
            self.trouble(from, TroubleKind::TooDeep, sink);
            return;
        }
        self.depth += 1;
        let mut next = Some(target);
        while let Some(target) = next.take() {
            self.state.level = target.stream.level;
            if !self.spend(1, from, sink)
                || sink.event(&self.state, &AdrenoEvent::Enter(target.stream)) == Flow::Skip
            {
                break;
            }
            next = self.run(&target, sink);
            self.state.level = target.stream.level;
            sink.event(&self.state, &AdrenoEvent::Leave(target.stream));
        }
        self.depth -= 1;
    }

    /// Finds a nested stream in memory. Reports it when it is not there, or not all of it.
    pub(crate) fn locate(
        &mut self,
        mut stream: NestedStream<'w>,
        cx: &Current<'_>,
        sink: &mut dyn AdrenoSink,
    ) -> Option<WalkTarget<'w>> {
        if !self.spend(STREAM, cx.packet.place, sink) {
            return None;
        }
        let Some(reach) = stream.iova.and_then(|iova| self.memory.dwords(iova)) else {
            sink.event(&self.state, &AdrenoEvent::Missing(stream));
            return None;
        };
        stream.dwords = reach.take(usize::try_from(stream.claimed).unwrap_or(usize::MAX));
        let present = stream.dwords.len() as u64;
        if present < stream.claimed {
            let kind = TroubleKind::CutStream { claimed: stream.claimed, present };
            self.trouble(cx.packet.place, kind, sink);
        }
        Some(WalkTarget { stream, reach, threads: cx.threads })
    }

    /// Writes the payload to registers from `reg` on, and says so.
    fn write_all(&mut self, cx: &Current<'_>, reg: u32, sink: &mut dyn AdrenoSink) {
        for (i, value) in cx.packet.payload.iter().enumerate() {
            self.write(cx, reg.saturating_add(i as u32), value, i, sink);
        }
    }

    /// Writes one register from payload dword `i`, and says so.
    #[inline]
    pub(crate) fn write(
        &mut self,
        cx: &Current<'_>,
        reg: u32,
        value: u32,
        i: usize,
        sink: &mut dyn AdrenoSink,
    ) {
        if cx.applies {
            self.state.with_regs(cx.threads, |regs| regs.set(reg, value));
        }
        let Packet { place, exec, .. } = cx.packet;
        let write = RegWrite { reg, value, place: payload_place(place, i), exec };
        sink.event(&self.state, &AdrenoEvent::RegWrite(write));
    }

    /// Dwords of the budget that no walk has used up.
    pub fn left(&self) -> u64 {
        self.options.budget.saturating_sub(self.spent)
    }

    /// Uses up some of the budget; false when it is gone.
    pub(crate) fn spend(&mut self, dwords: u64, place: StreamPos, sink: &mut dyn AdrenoSink) -> bool {
        self.spent = self.spent.saturating_add(dwords);
        if self.spent > self.options.budget && !self.stopped {
            self.stopped = true;
            self.trouble(place, TroubleKind::BudgetSpent, sink);
        }
        !self.stopped
    }

    pub(crate) fn trouble(&mut self, place: StreamPos, kind: TroubleKind, sink: &mut dyn AdrenoSink) {
        sink.event(&self.state, &AdrenoEvent::Trouble(Trouble { place, kind }));
    }

    /// The payload has `needed` dwords, or else that is reported. Linear walks go on with what follows the packet.
    pub(crate) fn has(&mut self, cx: &Current<'_>, needed: u32, sink: &mut dyn AdrenoSink) -> bool {
        let have = |d: Dwords<'_>| d.len() >= needed as usize;
        if have(cx.packet.payload) && cx.packet.header.count() >= needed {
            return true;
        }
        self.trouble(cx.packet.place, TroubleKind::ShortPacket { needed }, sink);
        have(cx.args)
    }
}
