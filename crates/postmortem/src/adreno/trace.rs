//! Two walks over the hung stream: one that lists which buffers the ring calls, one that stops at a position and
//! remembers the state there.
//!
//! Both count the calls of indirect buffers in the same order, so that a call is known by its number. Never: a guess
//! about where the position is.

use std::collections::VecDeque;

use unwedge_base::{Dwords, Generation};
use unwedge_hw::Gpu;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoStreamKind, DrawKind, Exec, Flow, LoadState,
    NestedStream, Packet, Stage, StateSource, StateType, TroubleKind,
};

use crate::adreno::shaders::{self, STAGES};

/// Calls listed at most; streams with more are not told apart any further.
const MAX_CALLS: usize = 1 << 16;
/// Packets and draws remembered before the stop.
const RECENT: usize = 64;
/// Packets with work and events remembered before the stop: as many as state numbers tell apart.
const SENT: usize = 256;
/// Dwords of the packet at the stop that are kept.
const PAYLOAD: usize = 64;

/// One call of an indirect buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// 1 for IB1, 2 for IB2.
    pub level: u8,
    /// Where it starts.
    pub iova: u64,
    /// Dwords, as the call claims.
    pub size: u64,
    /// The call that holds this call; `None` for the ring.
    pub parent: Option<usize>,
    /// Dword index of the calling packet in the parent's stream.
    pub at: u64,
    /// Whether the call is made.
    pub exec: Exec,
}

/// Where in the nest of calls a walk is.
#[derive(Default)]
struct Nest {
    /// One entry for each stream entered: its call number, if it is a call, and the index of its latest packet.
    stack: Vec<CallFrame>,
    ring_at: u64,
    calls: usize,
}

struct CallFrame {
    call: Option<usize>,
    at: u64,
}

impl Nest {
    /// Call number of the innermost stream: `Some(None)` in the ring, `None` inside groups and the like.
    fn current(&self) -> Option<Option<usize>> {
        match self.stack.last() {
            None => Some(None),
            Some(frame) => frame.call.map(Some),
        }
    }

    fn packet(&mut self, index: usize) {
        *self.stack.last_mut().map_or(&mut self.ring_at, |frame| &mut frame.at) = index as u64;
    }

    /// A nested stream is reached: its call, if it is one.
    fn reach(&mut self, stream: &NestedStream<'_>) -> Option<(usize, Call)> {
        let parent = self.current()?;
        if stream.kind != AdrenoStreamKind::Indirect {
            return None;
        }
        let at = self.stack.last().map_or(self.ring_at, |frame| frame.at);
        let number = self.calls;
        self.calls += 1;
        let call = Call {
            level: stream.level,
            iova: stream.iova?,
            size: stream.claimed,
            parent,
            at,
            exec: stream.exec,
        };
        Some((number, call))
    }
}

/// Lists the calls of indirect buffers, in order.
#[derive(Default)]
pub struct CallList {
    /// The calls.
    pub calls: Vec<Call>,
    nest: Nest,
}

impl AdrenoSink for CallList {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        match event {
            AdrenoEvent::Packet(packet) => self.nest.packet(packet.place.index),
            AdrenoEvent::Missing(stream) => {
                if let Some((_, call)) = self.nest.reach(stream) {
                    self.keep(call);
                }
            }
            AdrenoEvent::Enter(stream) => {
                let reached = self.nest.reach(stream);
                self.nest.stack.push(CallFrame { call: reached.map(|(number, _)| number), at: 0 });
                if let Some((_, call)) = reached {
                    self.keep(call);
                }
            }
            AdrenoEvent::Leave(_) => {
                self.nest.stack.pop();
            }
            _ => {}
        }
        Flow::Continue
    }
}

impl CallList {
    fn keep(&mut self, call: Call) {
        if self.calls.len() < MAX_CALLS {
            self.calls.push(call);
        }
    }
}

/// A piece of work met on the way to the stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedWork {
    /// Number, counted as listings count.
    pub number: u32,
    /// What.
    pub kind: DrawKind,
    /// Name of its packet.
    pub packet: String,
    /// Address of its packet.
    pub iova: Option<u64>,
    /// Whether it was executed.
    pub exec: Exec,
    /// Primitive type.
    pub primitive: Option<u32>,
    /// Indices or vertices.
    pub count: Option<u32>,
    /// Instances.
    pub instances: Option<u32>,
    /// Event.
    pub event: Option<u32>,
    /// Packets of CP_WAIT_FOR_IDLE met before it.
    pub waits_before: u32,
    /// Marker or mode it ran under.
    pub marker: Option<u32>,
    /// Registers that describe it, with their values; 64-bit ones whole.
    pub state: Vec<(u32, u64)>,
    /// Its shaders: stage, and the address of the code.
    pub shaders: Vec<(Stage, u64)>,
}

/// What a packet with work or an event sends to the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentCommand {
    /// A draw.
    Draw,
    /// A dispatch.
    Dispatch,
    /// A blit of the 2D engine.
    Blit,
    /// An event of this number.
    Event(u32),
}

/// A packet with work or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// What it sends.
    pub command: SentCommand,
    /// The number of its work.
    pub work: Option<u32>,
}

/// A packet at or before the stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedPacket {
    /// Its header dword.
    pub raw: u32,
    /// Its name: the operation's or `writes NAME`.
    pub name: String,
    /// The operation's meaning.
    pub op: AdrenoOp,
    /// Where its header lies.
    pub iova: Option<u64>,
    /// Dword index in its stream.
    pub index: u64,
    /// Payload, at most its first dwords.
    pub payload: Vec<u32>,
    /// Whether it is executed.
    pub exec: Exec,
}

/// An address held by a register at the stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldAddress {
    /// Register of the low dword.
    pub reg: u32,
    /// Address.
    pub iova: u64,
}

/// What a walk met at and before the stop.
#[derive(Clone, Debug, Default)]
pub struct StopScene {
    /// The packet at the stop.
    pub packet: Option<TracedPacket>,
    /// The dword at the stop is no packet header: the dword and where it lies.
    pub garbage: Option<(u32, Option<u64>)>,
    /// Bad headers before the stop in the hung streams: address, dword.
    pub earlier_garbage: Vec<(Option<u64>, u32)>,
    /// Packets before the stop in its own stream, newest last.
    pub before: VecDeque<TracedPacket>,
    /// Work that the packet at the stop starts.
    pub own_work: Option<TracedWork>,
    /// Work before the stop, newest last; what was predicated away is left out.
    pub work: VecDeque<TracedWork>,
    /// Packets with work or an event before the stop, newest last; not those of the BV thread alone.
    pub sent: VecDeque<SentPacket>,
    /// The packet at the stop, if it is one.
    pub own_sent: Option<SentPacket>,
    /// Marker or mode at the stop.
    pub marker: Option<u32>,
    /// Bins whose rendering was started since the last pass of another kind (a6xx on).
    pub bins: u32,
    /// The window scissor at the stop: left, top, right, bottom, inclusive.
    pub scissor: Option<[u64; 4]>,
    /// CP_WAIT_FOR_IDLE packets met.
    pub waits: u32,
    /// Packets since the last CP_WAIT_FOR_IDLE, over all streams.
    pub since_wait: u32,
    /// Addresses in written registers at the stop.
    pub addresses: Vec<HeldAddress>,
    /// The walk came to the stop.
    pub reached: bool,
}

/// Walks to a position.
pub struct Stopper<'s> {
    gpu: Gpu<'s>,
    target: Option<usize>,
    /// Dword index, in the target stream, of the last dword read.
    last_read: u64,
    /// Registers whose values are kept with work of a kind.
    keys: &'s [(DrawKind, u32)],
    /// Registers of the stages: where the code is, and whether the stage is used.
    stages: Vec<(Stage, Option<u32>, Option<u32>)>,
    /// Code that packets loaded last.
    loaded: Vec<(Stage, u64)>,
    nest: Nest,
    in_hit: bool,
    /// The BR thread takes packets.
    br: bool,
    /// What was met.
    pub scene: StopScene,
}

impl<'s> Stopper<'s> {
    /// Stops at the packet that holds dword `last_read` of call number `target` (`None`: of the ring).
    pub fn new(
        gpu: Gpu<'s>,
        target: Option<usize>,
        last_read: u64,
        keys: &'s [(DrawKind, u32)],
    ) -> Stopper<'s> {
        let scene = StopScene::default();
        let stages =
            STAGES.map(|(stage, code, config)| (stage, gpu.reg_offset(code), gpu.reg_offset(config)));
        Stopper {
            gpu,
            target,
            last_read,
            keys,
            stages: stages.to_vec(),
            loaded: Vec::new(),
            nest: Nest::default(),
            in_hit: false,
            br: true,
            scene,
        }
    }

    fn in_target(&self) -> bool {
        self.nest.current() == Some(self.target)
    }

    fn covers(&self, index: usize, dwords: usize) -> bool {
        let start = index as u64;
        start <= self.last_read && self.last_read < start.saturating_add(dwords.max(1) as u64)
    }

    fn value(&self, state: &AdrenoState, reg: u32) -> Option<u64> {
        let low = u64::from(state.regs.get(reg)?);
        let is_address = self.gpu.reg(reg)?.ty()?.is_address();
        if !is_address || !self.gpu.generation().is_64bit() {
            return Some(low);
        }
        Some(low | u64::from(state.regs.get(reg.checked_add(1)?)?) << 32)
    }

    /// The shaders of a piece of work: by register, or loaded by packets.
    fn shaders(&self, state: &AdrenoState, kind: DrawKind) -> Vec<(Stage, u64)> {
        let is_off = |config: Option<u32>| {
            let (reg, value) = config.and_then(|reg| Some((reg, state.regs.get(reg)?)))?;
            Some(self.gpu.reg(reg)?.ty()?.field(value.into(), "ENABLED")? == 0)
        };
        let code = |&(stage, code, config): &(Stage, Option<u32>, Option<u32>)| {
            let loaded = || self.loaded.iter().find(|loaded| loaded.0 == stage).map(|&(_, iova)| iova);
            let iova =
                code.and_then(|reg| self.value(state, reg)).filter(|&iova| iova != 0).or_else(loaded)?;
            (is_off(config) != Some(true)).then_some((stage, iova))
        };
        self.stages.iter().filter(|(stage, ..)| shaders::runs(kind, *stage)).filter_map(code).collect()
    }

    fn snapshot(&mut self, state: &AdrenoState) {
        self.scene.marker = state.marker;
        let xy = |name: &str| {
            let reg = self.gpu.reg_offset(name)?;
            let (ty, value) = (self.gpu.reg(reg)?.ty()?, u64::from(state.regs.get(reg)?));
            Some([ty.field(value, "X")?, ty.field(value, "Y")?])
        };
        let corners = xy("GRAS_SC_WINDOW_SCISSOR_TL").zip(xy("GRAS_SC_WINDOW_SCISSOR_BR"));
        self.scene.scissor = corners.map(|([left, top], [right, bottom])| [left, top, right, bottom]);
        let address = |reg| {
            let entry = self.gpu.reg(reg)?;
            let is_address = entry.dword() == 0 && entry.ty()?.is_address();
            is_address.then_some(HeldAddress { reg, iova: self.value(state, reg)? })
        };
        self.scene.addresses = state.regs.iter_written().filter_map(address).collect();
    }

    /// A marker of a6xx on: 4 starts a bin; 1, 2 and 8 start a pass without bins; bit 8 makes it no marker of a pass.
    fn pass_starts(&mut self, marker: u32) {
        match marker & 0x10f {
            4 => self.scene.bins = self.scene.bins.saturating_add(1),
            1 | 2 | 8 => self.scene.bins = 0,
            _ => {}
        }
    }

    fn met(&mut self, packet: &Packet<'_>) {
        if packet.op == AdrenoOp::ThreadControl {
            self.br = packet.payload.get(0).is_none_or(|word| word & 3 != 2);
        }
        let sent = sent(packet).filter(|_| self.br && packet.exec != Exec::NotTaken);
        if self.in_target() && self.covers(packet.place.index, packet.dwords.len()) {
            self.scene.reached = true;
            self.in_hit = true;
            self.scene.packet = Some(step(self.gpu, packet));
            self.scene.own_sent = sent;
            return;
        }
        if let Some(sent) = sent {
            if self.scene.sent.len() == SENT {
                self.scene.sent.pop_front();
            }
            self.scene.sent.push_back(sent);
        }
        if packet.exec != Exec::NotTaken {
            self.scene.since_wait = self.scene.since_wait.saturating_add(1);
            if packet.op == AdrenoOp::SetMarker {
                self.pass_starts(packet.payload.get(0).unwrap_or_default());
            }
            if packet.op == AdrenoOp::WaitForIdle {
                self.scene.waits = self.scene.waits.saturating_add(1);
                self.scene.since_wait = 0;
            }
        }
        if self.in_target() {
            push_recent(&mut self.scene.before, step(self.gpu, packet));
        }
    }
}

/// What a packet sends, if it is one with work or an event.
fn sent(packet: &Packet<'_>) -> Option<SentPacket> {
    let command = match packet.op {
        AdrenoOp::EventWrite | AdrenoOp::EventWrite7 => SentCommand::Event(packet.payload.get(0)? & 0x7f),
        op if op.is_dispatch() => SentCommand::Dispatch,
        AdrenoOp::Blit => SentCommand::Blit,
        op if op.is_work() => SentCommand::Draw,
        _ => return None,
    };
    Some(SentPacket { command, work: None })
}

fn push_recent<T>(recent: &mut VecDeque<T>, item: T) {
    if recent.len() == RECENT {
        recent.pop_front();
    }
    recent.push_back(item);
}

/// The name people use for a packet.
pub fn packet_name(gpu: Gpu<'_>, header: AdrenoPacketHeader) -> String {
    match header {
        AdrenoPacketHeader::Registers { reg, .. } => match gpu.reg(reg) {
            Some(entry) => format!("write of {}", entry.name()),
            None => format!("write of register {reg:#x}"),
        },
        AdrenoPacketHeader::Operation { opcode, .. } => match gpu.packet_name(opcode) {
            Some(name) => name.to_owned(),
            None => format!("operation {opcode:#x}"),
        },
        AdrenoPacketHeader::Padding => "padding".to_owned(),
    }
}

fn step(gpu: Gpu<'_>, packet: &Packet<'_>) -> TracedPacket {
    TracedPacket {
        raw: packet.raw,
        name: packet_name(gpu, packet.header),
        op: packet.op,
        iova: packet.place.iova,
        index: packet.place.index as u64,
        payload: packet.payload.take(PAYLOAD).iter().collect(),
        exec: packet.exec,
    }
}

impl AdrenoSink for Stopper<'_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        if self.scene.reached && !self.in_hit {
            if let AdrenoEvent::Enter(_) = event {
                return Flow::Skip;
            }
            return Flow::Continue;
        }
        match event {
            AdrenoEvent::Packet(packet) => {
                self.nest.packet(packet.place.index);
                if !self.in_hit {
                    self.met(packet);
                }
            }
            AdrenoEvent::PacketEnd(packet) => {
                let own = self.scene.packet.as_ref().is_some_and(|p| p.index == packet.place.index as u64);
                if self.in_hit && own && self.in_target() {
                    self.snapshot(state);
                    self.in_hit = false;
                }
            }
            AdrenoEvent::Missing(stream) => {
                self.nest.reach(stream);
            }
            AdrenoEvent::Enter(stream) => {
                if self.in_hit && stream.kind == AdrenoStreamKind::Indirect {
                    return Flow::Skip;
                }
                let call = self.nest.reach(stream).map(|(number, _)| number);
                self.nest.stack.push(CallFrame { call, at: 0 });
            }
            AdrenoEvent::Leave(_) => {
                self.nest.stack.pop();
            }
            AdrenoEvent::LoadState(LoadState {
                ty: StateType::Shader,
                source: StateSource::Indirect,
                iova: Some(iova),
                stage: Some(stage),
                ..
            }) => {
                self.loaded.retain(|loaded| loaded.0 != *stage);
                self.loaded.push((*stage, *iova));
            }
            AdrenoEvent::Draw(draw) => {
                let work = TracedWork {
                    shaders: self.shaders(state, draw.kind),
                    number: draw.number,
                    kind: draw.kind,
                    packet: packet_name(self.gpu, draw.packet.header),
                    iova: draw.packet.place.iova,
                    exec: draw.packet.exec,
                    primitive: draw.primitive,
                    count: draw.count,
                    instances: draw.instances,
                    event: draw.event,
                    waits_before: self.scene.waits,
                    marker: state.marker,
                    state: self
                        .keys
                        .iter()
                        .filter(|(kind, _)| *kind == draw.kind)
                        .filter_map(|&(_, reg)| Some((reg, self.value(state, reg)?)))
                        .collect(),
                };
                let newest = if self.in_hit { &mut self.scene.own_sent } else { &mut None };
                if let Some(sent) = newest.as_mut().or(self.scene.sent.back_mut()).filter(|_| self.br) {
                    sent.work = sent.work.or(Some(work.number));
                }
                if self.in_hit {
                    self.snapshot(state);
                    self.scene.own_work = Some(work);
                } else if draw.packet.exec != Exec::NotTaken {
                    push_recent(&mut self.scene.work, work);
                }
            }
            AdrenoEvent::Trouble(trouble) => {
                if let TroubleKind::BadHeader { raw, skipped, .. } = trouble.kind {
                    if self.in_target() && self.covers(trouble.place.index, skipped) {
                        self.scene.reached = true;
                        self.scene.garbage = Some((raw, trouble.place.iova));
                        self.snapshot(state);
                    } else if self.nest.current().is_some_and(|call| call.is_some() || self.target.is_none())
                        && self.scene.earlier_garbage.len() < RECENT
                    {
                        self.scene.earlier_garbage.push((trouble.place.iova, raw));
                    }
                }
            }
            _ => {}
        }
        Flow::Continue
    }
}

/// A packet of a stream, and those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketInStream {
    /// Dword index of its header.
    pub at: u64,
    /// Its header.
    pub header: u32,
    /// Index and header of up to eight packets before it, newest first.
    pub before: Vec<(u64, u32)>,
}

/// The packet of a stream that holds dword `last`, found by hopping over headers. `None` if the stream does not hold that dword or
/// the headers do not lead there.
pub fn packet_at(stream: Dwords<'_>, last: u64, generation: Generation) -> Option<PacketInStream> {
    const HOPS: usize = 1 << 22;
    let mut index = 0usize;
    let mut before: VecDeque<(u64, u32)> = VecDeque::new();
    for _ in 0..HOPS {
        let raw = stream.get(index)?;
        let dwords = header_of(raw, generation).map_or(1, payload_dwords);
        let end = index.checked_add(dwords)?;
        if (index as u64..end as u64).contains(&last) {
            let before = before.into_iter().rev().collect();
            return Some(PacketInStream { at: index as u64, header: raw, before });
        }
        if before.len() == 8 {
            before.pop_front();
        }
        before.push_back((index as u64, raw));
        index = end;
    }
    None
}

fn payload_dwords(header: AdrenoPacketHeader) -> usize {
    let count = match header {
        AdrenoPacketHeader::Registers { count, .. } | AdrenoPacketHeader::Operation { count, .. } => count,
        AdrenoPacketHeader::Padding => 0,
    };
    1 + count as usize
}

/// The header a dword stands for, if it is one on this generation.
pub fn header_of(raw: u32, generation: Generation) -> Option<AdrenoPacketHeader> {
    AdrenoPacketHeader::decode(raw, generation)
}
