//! The quiet listing: registers queried at draws, scripts that look on, and the little that freedreno's tools print
//! whatever they are asked for. Nothing else is formatted.
//!
//! Never: what a script is. The lines follow what cffdump of Mesa 25.0 prints.

use super::{CffText, OpenStream, Pair, Query};
use std::borrow::Cow;
use unwedge_base::{Dwords, Generation};
use unwedge_hw::Domain;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoState, AdrenoStreamKind, Draw, DrawKind, Flow, LoadState, NestedStream,
    Packet, Pass, RegWrite, StateType,
};

/// What a quiet listing is for.
#[derive(Clone, Copy)]
pub struct Quiet<'t> {
    /// Registers to show at draws.
    pub query: Option<&'t Query>,
    /// Who else wants to know.
    pub watch: Option<&'t dyn Watch>,
}

/// Looks on while a listing is quiet.
pub trait Watch {
    /// A packet's payload, or a descriptor.
    fn layout(&self, layout: Domain<'_>, dwords: Dwords<'_>);
    /// Work starts: what, and how many indices it has.
    fn draw(&self, what: Option<&str>, indices: u32);
    /// A register has been written.
    fn write(&self, reg: u32, value: u32);
    /// The draw is over: what is written from here on counts for the next.
    fn drawn(&self);
    /// What was written for the draw so far does not count.
    fn forget(&self);
    /// Nothing more is of interest.
    fn over(&self) -> bool;
}

/// Work as queries and scripts name it.
struct QuietWork<'d> {
    name: Option<Cow<'d, str>>,
    indices: u32,
}

impl<'t, 'd> CffText<'t, '_, 'd> {
    /// The listing, quiet.
    pub fn quiet(mut self, quiet: Quiet<'t>) -> Self {
        self.only = Some(quiet);
        self.options.summary = true;
        self.quiet = true;
        self.text.mute(true);
        self.hears_writes = quiet.watch.is_some() || self.is_64bit();
        self
    }

    /// Tells who looks on of a payload or descriptor.
    pub(super) fn tell(&mut self, quiet: Quiet<'t>, layout: Domain<'d>, dwords: Dwords<'_>) {
        if let Some(watch) = quiet.watch {
            self.text.hand_on_all();
            watch.layout(layout, dwords);
        }
    }

    #[inline(never)]
    pub(super) fn quiet_event(
        &mut self,
        quiet: Quiet<'t>,
        state: &AdrenoState,
        event: &AdrenoEvent<'_>,
    ) -> Flow {
        if self.text.ended().is_some() || quiet.watch.is_some_and(|watch| watch.over()) {
            return Flow::Skip;
        }
        match event {
            AdrenoEvent::Enter(stream) => return self.quiet_enter(state, stream),
            AdrenoEvent::Leave(_) if self.streams.len() > 1 => drop(self.streams.pop()),
            AdrenoEvent::Packet(packet) => self.quiet_packet(quiet, state, packet),
            AdrenoEvent::LoadState(load) => self.quiet_load(quiet, load),
            AdrenoEvent::Draw(draw) => return self.quiet_draw(quiet, state, draw),
            AdrenoEvent::Missing(stream) => self.missing(stream),
            AdrenoEvent::Trouble(trouble) => self.aloud(|this| this.trouble(trouble)),
            AdrenoEvent::RegWrite(write) => self.quiet_write(quiet, *write),
            AdrenoEvent::Leave(_) | AdrenoEvent::PacketEnd(_) | AdrenoEvent::Group(_) => {}
        }
        Flow::Continue
    }

    fn quiet_enter(&mut self, state: &AdrenoState, stream: &NestedStream<'_>) -> Flow {
        let deeper = match stream.kind {
            AdrenoStreamKind::Indirect
            | AdrenoStreamKind::Bin { .. }
            | AdrenoStreamKind::DrawTable { .. } => 1,
            _ => 2,
        };
        if self.skipped(state, stream) {
            return Flow::Skip;
        }
        self.streams.push(OpenStream::at(self.level() + deeper));
        Flow::Continue
    }

    fn quiet_packet(&mut self, quiet: Quiet<'t>, state: &AdrenoState, packet: &Packet<'_>) {
        let level = self.level();
        if let Some(open) = self.streams.last_mut() {
            *open = OpenStream { op: packet.op, iova: packet.place.iova, ..OpenStream::at(level) };
        }
        let AdrenoPacketHeader::Operation { opcode, .. } = packet.header else { return };
        if let Some((_, Some(known))) = self.layouts.packets.get(usize::from(opcode)) {
            self.tell(quiet, known.layout(), packet.payload);
        }
        match packet.op {
            // These are printed for a2xx without asking, and the modes are part of query lines.
            AdrenoOp::SetConstant
            | AdrenoOp::ImLoadImmediate
            | AdrenoOp::SetMarker
            | AdrenoOp::SetRenderMode
            | AdrenoOp::ThreadControl => {
                self.operation(state, packet, level + 1);
            }
            _ => {}
        }
    }

    /// The tools join the halves of registers as they come, whether anybody wants to see them, and say when a half is
    /// missing.
    fn quiet_write(&mut self, quiet: Quiet<'t>, write: RegWrite) {
        let RegWrite { reg, value, .. } = write;
        if let Some(watch) = quiet.watch {
            watch.write(reg, value);
        }
        if self.is_64bit()
            && let Some(open) = self.streams.last_mut()
            && open.op != AdrenoOp::RegRmw
        {
            self.text.mute(false);
            open.pair.push_half(|| self.known.facts(reg).half, reg, value, self.text);
            self.text.mute(true);
        }
    }

    /// Descriptors have layouts; nothing else that is loaded is told of.
    fn quiet_load(&mut self, quiet: Quiet<'t>, load: &LoadState<'_>) {
        use StateType::*;
        if quiet.watch.is_some() && matches!(load.ty, Sampler | TexConst | Ssbo0 | Ssbo1 | Ssbo2 | Ubo) {
            self.load_state(load);
        }
    }

    fn quiet_draw(&mut self, quiet: Quiet<'t>, state: &AdrenoState, draw: &Draw<'_>) -> Flow {
        if draw.kind == DrawKind::Event && !draw.summary {
            return Flow::Continue;
        }
        let work = self.work(draw);
        let compare = quiet.query.is_some_and(|query| query.compare);
        let last = match (draw.pass, quiet.query) {
            (Pass::Current, query) => {
                if let Some(watch) = quiet.watch {
                    self.text.hand_on_all();
                    watch.draw(work.name.as_deref(), work.indices);
                }
                if let Some(query) = query.filter(|query| !compare && !query.skips(&state.regs)) {
                    let mode = self.carry.render_mode.clone();
                    self.aloud(|this| this.queried(query, state, draw, &work, mode.as_deref()));
                }
                !compare
            }
            (Pass::All, query) => query.is_none_or(|query| query.skips(&state.regs)),
            (Pass::Binning, query) => {
                self.aloud(|this| {
                    query.inspect(|query| this.queried(query, state, draw, &work, Some("BINNING")))
                });
                false
            }
            (Pass::Drawing, query) => {
                self.aloud(|this| {
                    query.inspect(|query| this.queried(query, state, draw, &work, Some("DRAW")));
                    this.text.end();
                });
                true
            }
        };
        if last && draw.packet.op == AdrenoOp::DrawIndirectMulti {
            self.operation(state, &draw.packet, self.level() + 1);
        }
        if last && draw.summary && self.options.bindless && quiet.watch.is_some() {
            self.bindless(state, draw, self.level() + 1);
        }
        match quiet.watch {
            Some(watch) if !last => watch.forget(),
            Some(watch) if draw.summary => watch.drawn(),
            _ => {}
        }
        if last { Flow::Skip } else { Flow::Continue }
    }

    fn work(&self, draw: &Draw<'_>) -> QuietWork<'d> {
        /// The tools read five of the primitive's six bits.
        const PRIMITIVE: u32 = 0x1f;
        let packet = draw.packet;
        let named = |name: Option<&'d str>| QuietWork { name: name.map(Cow::Borrowed), indices: 0 };
        match draw.kind {
            DrawKind::Event => {
                let event = draw.event.and_then(|event| self.layouts.events?.name_of(event.into()));
                QuietWork { name: event.map(|name| Cow::Owned(format!("EVENT:{name}"))), indices: 0 }
            }
            DrawKind::Blit => {
                let blit = u64::from(packet.payload.get(0).unwrap_or(0));
                named(self.gpu.enumeration("cp_blit_cmd").and_then(|names| names.name_of(blit)))
            }
            DrawKind::Dispatch if packet.op == AdrenoOp::RunOpencl => {
                QuietWork { indices: 1, ..named(Some("COMPUTE")) }
            }
            DrawKind::Dispatch => named(Some("compute")),
            DrawKind::Draw => {
                let primitive = u64::from(draw.primitive.unwrap_or(0) & PRIMITIVE);
                let name = self.layouts.primitives.and_then(|names| names.name_of(primitive));
                QuietWork { indices: draw.count.unwrap_or(0), ..named(name) }
            }
        }
    }

    /// The queried registers that have been written, one line each.
    fn queried(
        &mut self,
        query: &Query,
        state: &AdrenoState,
        draw: &Draw<'_>,
        work: &QuietWork<'_>,
        mode: Option<&str>,
    ) {
        let regs = &state.regs;
        let bin = match query.scissor {
            Some([first, last]) => {
                let half = |reg: u32| [regs.raw(reg) & 0xffff, regs.raw(reg) >> 16];
                [half(first), half(last)]
            }
            None => {
                let bin = state.bin.unwrap_or_default();
                [[bin.x1, bin.y1], [bin.x2, bin.y2]]
            }
        };
        let mut lines = 0;
        for &reg in query.registers.iter().filter(|&&reg| regs.get(reg).is_some()) {
            let mut pair = Pair::default();
            for reg in [reg, reg.saturating_add(1)] {
                if pair.push_half(|| self.known.facts(reg).half, reg, regs.raw(reg), self.text) {
                    break;
                }
            }
            let t = &mut *self.text;
            for limit in [1000, 100, 10] {
                if draw.number < limit {
                    t.byte(b' ');
                }
            }
            t.dec(draw.number.into()).str(": ").str(work.name.as_deref().unwrap_or("(null)")).byte(b'(');
            let [[x1, y1], [x2, y2]] = bin.map(|corner| corner.map(u64::from));
            t.dec(x1).byte(b',').dec(y1).byte(b'-').dec(x2).byte(b',').dec(y2).str("):");
            t.dec(work.indices.into()).byte(b':');
            if self.gpu.generation() >= Generation::A5xx {
                t.str(mode.unwrap_or("(null)")).byte(b':');
            }
            if let Some(thread) = self.carry.thread {
                t.str(thread).byte(b':');
            }
            // The tools compare all of a register with the low half of what it was.
            let changed = pair.value != u64::from(regs.previous(reg));
            t.byte(b'\t').hex(pair.value, 8).byte(if changed { b'!' } else { b' ' });
            t.byte(if regs.rewritten(reg) { b'+' } else { b' ' });
            self.value(state, pair, 0);
            lines += 1;
        }
        if lines > 1 {
            self.text.end();
        }
    }
}
