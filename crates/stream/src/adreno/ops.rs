//! What operations do: registers, modes, draw-state groups, nested streams.
//!
//! Facts: freedreno's adreno_pm4 register description; what listing tools make of a packet (linear walks follow them)
//! from the behaviour of cffdump. Never: draws and shader state, which have modules of their own.

use crate::adreno::header::{self, AdrenoPacketHeader};
use crate::adreno::payload::{GroupEntry, IndirectBuffer, RegRmw, RmwOperand};
use crate::adreno::walker::{AdrenoFrame, AdrenoWalker, BinLoop, Current, Next, Table, WalkTarget};
use crate::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoStreamKind, Bin, DrawStateGroup, Exec, GroupState, NestedStream,
    Thread, TroubleKind, mode,
};
use unwedge_base::{Dwords, Generation};

/// Registers have 18 bits; listing tools read 16 in some packets.
const REG: u32 = 0x3_ffff;
const REG16: u32 = 0xffff;

/// a6xx_marker values that decide which draw-state groups are enabled.
mod marker {
    pub(super) const DIRECT_RENDER: u32 = 1;
    pub(super) const BIN_VISIBILITY: u32 = 2;
    pub(super) const BIN_RENDER_START: u32 = 4;
    pub(super) const COMPUTE: u32 = 8;
    /// The low bits are no render mode.
    pub(super) const IFPC_MODE: u32 = 1 << 8;
}

impl<'w> AdrenoWalker<'w> {
    /// Does what an operation does, between its packet's two events.
    #[inline(never)]
    pub(crate) fn operate<'a>(
        &mut self,
        frame: &mut AdrenoFrame<'a>,
        cx: &Current<'a>,
        sink: &mut dyn AdrenoSink,
    ) -> Next<'a>
    where
        'w: 'a,
    {
        let linear = self.options.linear;
        let wide = self.generation.is_64bit();
        match cx.packet.op {
            AdrenoOp::IndirectBuffer | AdrenoOp::IndirectBufferPfd => {
                let exec = if frame.level == 1 { self.visible() } else { Exec::Always };
                if let Some(stream) = self.indirect(frame.level.saturating_add(1), exec, cx, sink) {
                    self.follow(stream, cx, sink);
                }
            }
            // Listing tools do not follow this one.
            AdrenoOp::CondIndirectBufferPfe if !linear => {
                if let Some(stream) = self.indirect(frame.level.saturating_add(1), Exec::Unknown, cx, sink) {
                    self.follow(stream, cx, sink);
                }
            }
            // Listing tools follow it at the end of a buffer only.
            AdrenoOp::IndirectBufferChain if cx.applies && (!linear || frame.ends_at(cx.next)) => {
                if let Some(stream) = self.indirect(frame.level, Exec::Always, cx, sink)
                    && let Some(target) = self.locate(stream, cx, sink)
                {
                    return Next::Chain(target);
                }
            }
            AdrenoOp::SetAmble => self.amble(frame, cx, sink),
            AdrenoOp::StartBin => self.start_bin(frame, cx, sink),
            AdrenoOp::EndBin if !linear => return self.end_bin(frame, cx, sink),
            AdrenoOp::FixedStrideDrawTable => self.draw_table(frame, cx, sink),
            AdrenoOp::SetRenderMode => self.render_mode(frame, cx, sink),
            AdrenoOp::ComputeCheckpoint => self.compute_checkpoint(frame, cx, sink),
            AdrenoOp::MemWrite if wide => self.mem_write(frame, cx, sink),
            AdrenoOp::CondRegExec | AdrenoOp::CondExec => self.condition(frame, cx, sink),

            AdrenoOp::SetConstant => self.set_constant(cx, sink),
            AdrenoOp::WideRegWrite if self.has(cx, 1, sink) => self.write_run(cx, cx.arg(0) & REG16, 1, sink),
            AdrenoOp::ContextRegBunch => self.write_pairs(cx, 0, sink),
            AdrenoOp::ContextRegBunch2 | AdrenoOp::NonContextRegBunch => self.write_pairs(cx, 2, sink),
            AdrenoOp::RegWrite if self.has(cx, 3, sink) => {
                let mask = if linear { REG16 } else { REG };
                self.write(cx, cx.arg(1) & mask, cx.arg(2), 2, sink);
            }

            AdrenoOp::EventWrite | AdrenoOp::EventWrite7 => self.event_write(frame, cx, sink),
            op if op.is_work() => self.work(frame, cx, sink),
            AdrenoOp::LoadState
            | AdrenoOp::LoadState4
            | AdrenoOp::LoadState6
            | AdrenoOp::LoadState6Geom
            | AdrenoOp::LoadState6Frag => {
                self.load_state(cx, sink);
            }
            _ if cx.applies => self.set_state(frame, cx, sink),
            _ => {}
        }
        Next::Packet
    }

    /// Operations that do nothing visible but change the state.
    fn set_state(&mut self, frame: &AdrenoFrame<'_>, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        let linear = self.options.linear;
        match cx.packet.op {
            AdrenoOp::SetDrawState => self.set_draw_state(frame, cx, sink),
            AdrenoOp::SetMarker if self.has(cx, 1, sink) => self.set_marker(cx.arg(0)),
            AdrenoOp::SetMode if self.has(cx, 1, sink) => self.state.set_mode = cx.arg(0),
            AdrenoOp::SkipIb2EnableGlobal if self.has(cx, 1, sink) => self.state.skip_ib2_global = cx.arg(0),
            AdrenoOp::SkipIb2EnableLocal if self.has(cx, 1, sink) => self.state.skip_ib2_local = cx.arg(0),
            AdrenoOp::ThreadControl if self.has(cx, 1, sink) => self.thread_control(cx.arg(0)),
            AdrenoOp::SetBin if self.has(cx, 3, sink) => {
                let (low, high) = (cx.arg(1), cx.arg(2));
                let (x1, y1) = (low & 0xffff, low >> 16);
                self.state.bin = Some(Bin { x1, y1, x2: high & 0xffff, y2: high >> 16 });
            }
            AdrenoOp::RegTest if self.has(cx, 1, sink) => self.reg_test(cx),
            AdrenoOp::DrawPredEnableGlobal | AdrenoOp::DrawPredEnableLocal if self.has(cx, 1, sink) => {
                self.set_draw_predicate(cx)
            }
            AdrenoOp::DrawPredSet if self.has(cx, 3, sink) => self.set_draw_predicate(cx),
            AdrenoOp::RegRmw if self.has(cx, 3, sink) => self.reg_rmw(cx, sink),
            // Listing tools leave registers as they are when memory or scratch memory goes into them.
            AdrenoOp::MemToReg if !linear && self.has(cx, 1, sink) => {
                let count = (cx.arg(0) >> 19 & 0x7ff).max(1);
                self.forget(cx, cx.arg(0) & REG, count);
            }
            AdrenoOp::CondWrite if !linear && self.has(cx, 6, sink) && cx.arg(0) & 1 << 8 == 0 => {
                self.forget(cx, cx.arg(4) & REG, 1);
            }
            AdrenoOp::CondWrite5 if !linear && self.has(cx, 8, sink) && cx.arg(0) & 1 << 8 == 0 => {
                self.forget(cx, cx.arg(5) & REG, 1);
            }
            AdrenoOp::ScratchWrite if !linear && self.has(cx, 1, sink) => {
                let first = (cx.arg(0) >> 20 & 7) as usize;
                for (slot, value) in
                    self.state.scratch.iter_mut().skip(first).zip(cx.packet.payload.skip(1).iter())
                {
                    *slot = Some(value);
                }
            }
            AdrenoOp::RegToScratch if !linear && self.has(cx, 1, sink) => self.reg_to_scratch(cx),
            AdrenoOp::ScratchToReg if !linear && self.has(cx, 1, sink) => self.scratch_to_reg(cx, sink),
            _ => {}
        }
    }

    // Registers

    fn forget(&mut self, cx: &Current<'_>, first: u32, count: u32) {
        self.state.with_regs(cx.threads, |regs| {
            (first..first.saturating_add(count)).for_each(|reg| regs.forget(reg));
        });
    }

    /// The payload from dword `from` on goes to consecutive registers.
    fn write_run(&mut self, cx: &Current<'_>, reg: u32, from: usize, sink: &mut dyn AdrenoSink) {
        for (i, value) in cx.packet.payload.iter().enumerate().skip(from) {
            self.write(cx, reg.saturating_add((i - from) as u32), value, i, sink);
        }
    }

    /// The payload from dword `from` on is registers and values by turns.
    fn write_pairs(&mut self, cx: &Current<'_>, from: usize, sink: &mut dyn AdrenoSink) {
        let len = cx.packet.payload.len();
        if len < from || !(len - from).is_multiple_of(2) {
            let needed = u32::try_from(len.max(from).saturating_add(len % 2)).unwrap_or(u32::MAX);
            self.trouble(cx.packet.place, TroubleKind::ShortPacket { needed }, sink);
        }
        for i in (from..len).step_by(2) {
            if let Some(value) = cx.args.get(i + 1) {
                self.write(cx, cx.arg(i), value, i + 1, sink);
            }
        }
    }

    /// CP_SET_CONSTANT of a2xx: type 4 writes registers from 0x2000 on, or one register plus an offset.
    fn set_constant(&mut self, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        const REGISTERS: u32 = 4;
        const ADD: u32 = 1 << 31;
        let word = cx.arg(0);
        if !self.has(cx, 1, sink) || word >> 16 & 0xf != REGISTERS {
            return;
        }
        let reg = (word & REG16) + 0x2000;
        if word & ADD == 0 {
            self.write_run(cx, reg, 1, sink);
        } else if self.has(cx, 3, sink) {
            let regs = self.regs_read(cx);
            let source = if self.options.linear { Some(regs.raw(cx.arg(1))) } else { regs.get(cx.arg(1)) };
            match source {
                Some(base) => self.write(cx, reg, base.wrapping_add(cx.arg(2)), 2, sink),
                None if cx.applies => self.forget(cx, reg, 1),
                None => {}
            }
        }
    }

    /// CP_REG_RMW: mask, rotate, then or or add; operands are numbers or registers. Listing tools do the plain form
    /// only, whatever the packet says.
    fn reg_rmw(&mut self, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        let (word, regs) = (cx.arg(0), self.regs_read(cx));
        if self.options.linear {
            let reg = word & REG16;
            let value = regs.raw(reg) & cx.arg(1) | cx.arg(2);
            return self.write(cx, reg, value, 2, sink);
        }
        let rmw = RegRmw::parse(cx.args, self.generation);
        if rmw.scratch {
            if let Some(slot) = self.state.scratch.get_mut(rmw.dst as usize) {
                *slot = None;
            }
            return;
        }
        let operand = |operand| match operand {
            RmwOperand::Number(number) => Some(number),
            RmwOperand::Register(reg) => regs.get(reg),
        };
        match rmw.value(regs.get(rmw.dst), operand(rmw.mask), operand(rmw.with)) {
            Some(value) => self.write(cx, rmw.dst, value, 2, sink),
            None => self.forget(cx, rmw.dst, 1),
        }
    }

    fn reg_to_scratch(&mut self, cx: &Current<'_>) {
        let (word, thread) = (cx.arg(0), cx.threads);
        let first = (word >> 20 & 7) as usize;
        let count = (word >> 24 & 7) as usize + 1;
        let regs = self.state.regs_for(if thread == Thread::Bv.set() { Thread::Bv } else { Thread::Br });
        let values: [Option<u32>; 8] =
            std::array::from_fn(|i| regs.get((word & REG).saturating_add(i as u32)));
        for (slot, value) in self.state.scratch.iter_mut().skip(first).zip(values).take(count) {
            *slot = value;
        }
    }

    fn scratch_to_reg(&mut self, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        let word = cx.arg(0);
        let first = (word >> 20 & 7) as usize;
        let scratch = self.state.scratch;
        for i in 0..=(word >> 24 & 7) {
            let reg = (word & REG).saturating_add(i);
            match scratch.get(first + i as usize).copied().flatten() {
                Some(value) => self.write(cx, reg, value, 0, sink),
                None => self.forget(cx, reg, 1),
            }
        }
    }

    // Modes

    /// CP_SET_MARKER. Listing tools take the low bits for a render mode even when bit 8 says that they are none, and
    /// know three modes; the hardware counts every other rendering marker as GMEM.
    fn set_marker(&mut self, word: u32) {
        let linear = self.options.linear;
        if !linear && word & marker::IFPC_MODE != 0 {
            return;
        }
        let value = word & 0xf;
        self.state.marker = Some(value);
        match value {
            marker::BIN_VISIBILITY => self.state.enable_mask = mode::BINNING,
            marker::DIRECT_RENDER => self.state.enable_mask = mode::SYSMEM,
            marker::BIN_RENDER_START => self.state.enable_mask = mode::GMEM,
            3..=marker::COMPUTE if !linear => self.state.enable_mask = mode::GMEM,
            _ => {}
        }
    }

    fn thread_control(&mut self, word: u32) {
        let thread = match word & 3 {
            1 => Some(Thread::Br),
            2 => Some(Thread::Bv),
            3 => Some(Thread::Both),
            _ => None,
        };
        if !self.options.linear && matches!(thread, Some(Thread::Br | Thread::Bv)) {
            self.state.separate_threads();
        }
        self.state.thread = thread;
    }

    /// CP_SET_RENDER_MODE (a5xx), with commands when it has all eight dwords.
    fn render_mode<'a>(&mut self, frame: &AdrenoFrame<'a>, cx: &Current<'a>, sink: &mut dyn AdrenoSink)
    where
        'w: 'a,
    {
        if !self.has(cx, 1, sink) {
            return;
        }
        let value = if self.options.linear { cx.arg(0) } else { cx.arg(0) & 0x1ff };
        if cx.applies {
            self.state.marker = Some(value);
            // To listing tools the modes of draw-state groups are those of a6xx on.
            match value {
                _ if self.options.linear => {}
                1 => self.state.enable_mask = mode::SYSMEM,
                2 => self.state.enable_mask = mode::BINNING,
                3 => self.state.enable_mask = mode::GMEM,
                _ => {}
            }
        }
        let mode_only = matches!(cx.packet.header.count(), 0 | 1 | 5);
        if !mode_only && self.has(cx, 8, sink) {
            self.mode_commands(frame, cx.arg64(6), cx.arg(5), cx, sink);
        }
    }

    /// CP_COMPUTE_CHECKPOINT (a5xx).
    fn compute_checkpoint<'a>(&mut self, frame: &AdrenoFrame<'a>, cx: &Current<'a>, sink: &mut dyn AdrenoSink)
    where
        'w: 'a,
    {
        if self.has(cx, 7, sink) {
            let size =
                if cx.packet.header.count() == 8 && self.options.linear { cx.arg(7) } else { cx.arg(4) };
            self.mode_commands(frame, cx.arg64(5), size, cx, sink);
        }
    }

    /// Commands that the CP runs when it restores a context: whether it did is not known.
    fn mode_commands<'a>(
        &mut self,
        frame: &AdrenoFrame<'a>,
        iova: u64,
        size: u32,
        cx: &Current<'a>,
        sink: &mut dyn AdrenoSink,
    ) where
        'w: 'a,
    {
        self.follow(
            stream(AdrenoStreamKind::Mode, frame.level.saturating_add(1), iova, size, Exec::Unknown, cx),
            cx,
            sink,
        );
    }

    // Nested streams

    fn follow(&mut self, stream: NestedStream<'w>, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        if let Some(target) = self.locate(stream, cx, sink) {
            self.enter(target, cx.packet.place, sink);
        }
    }

    /// The buffer that CP_INDIRECT_BUFFER and its relatives name.
    fn indirect(
        &mut self,
        level: u8,
        exec: Exec,
        cx: &Current<'_>,
        sink: &mut dyn AdrenoSink,
    ) -> Option<NestedStream<'w>> {
        if !self.has(cx, IndirectBuffer::needed(self.generation), sink) {
            return None;
        }
        let IndirectBuffer { iova, size } = IndirectBuffer::parse(cx.args, self.generation)?;
        Some(stream(AdrenoStreamKind::Indirect, level, iova, size, exec, cx))
    }

    /// CP_SET_AMBLE only stores the buffer: the CP runs it when it switches contexts.
    fn amble(&mut self, frame: &AdrenoFrame<'_>, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        if self.has(cx, 3, sink) {
            let size = cx.arg(2) & if self.options.linear { 0xffff } else { 0xf_ffff };
            self.follow(
                stream(AdrenoStreamKind::Amble, frame.level, cx.arg64(0), size, Exec::NotTaken, cx),
                cx,
                sink,
            );
        }
    }

    /// Packets inside a memory write, which runs them later if at all. Data only looks like packets at times, so
    /// unless walking linearly all of it has to be packets.
    fn mem_write<'a>(&mut self, frame: &AdrenoFrame<'a>, cx: &Current<'a>, sink: &mut dyn AdrenoSink)
    where
        'w: 'a,
    {
        if !self.has(cx, 2, sink) {
            return;
        }
        let data = cx.packet.payload.skip(2);
        let packets = match data.get(0) {
            Some(raw) if self.options.linear => AdrenoPacketHeader::decode_parity(raw).is_some(),
            _ => self.is_packets(data),
        };
        if packets {
            let stream = NestedStream {
                kind: AdrenoStreamKind::Embedded,
                level: frame.level,
                iova: cx.packet.place.iova.map(|i| i.saturating_add(12)),
                claimed: data.len() as u64,
                dwords: data,
                exec: Exec::NotTaken,
            };
            let target = WalkTarget { stream, reach: cx.args.skip(2), threads: cx.threads };
            self.enter(target, cx.packet.place, sink);
        }
    }

    fn is_packets(&self, data: Dwords<'_>) -> bool {
        let mut at = 0;
        while let Some(raw) = data.get(at) {
            let known = AdrenoPacketHeader::decode(raw, self.generation).filter(|&header| match header {
                AdrenoPacketHeader::Registers { reg, count } => count > 0 && self.gpu.reg(reg).is_some(),
                AdrenoPacketHeader::Operation { opcode, .. } => self.gpu.packet_name(opcode).is_some(),
                AdrenoPacketHeader::Padding => false,
            });
            match known {
                Some(header) => at = header::after(at, header),
                None => return false,
            }
        }
        at == data.len() && at > 0
    }

    /// CP_START_BIN: a prefix for every bin, followed by the packets up to CP_END_BIN. Listing tools show all
    /// prefixes in a row.
    fn start_bin(&mut self, frame: &mut AdrenoFrame<'_>, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        if !self.has(cx, 4, sink) {
            return;
        }
        let table = Table { iova: cx.arg64(1), size: cx.arg(3), count: cx.arg(0) };
        if self.options.linear || !cx.applies {
            self.follow_table(
                frame.level,
                table,
                Exec::Always,
                |index| AdrenoStreamKind::Bin { index },
                cx,
                sink,
            );
        } else if table.count > 0 {
            frame.bins = Some(BinLoop { body: cx.next, index: 0, table });
            self.bin_prefix(frame.level, table, 0, cx, sink);
        }
    }

    fn end_bin<'a>(
        &mut self,
        frame: &mut AdrenoFrame<'a>,
        cx: &Current<'a>,
        sink: &mut dyn AdrenoSink,
    ) -> Next<'a> {
        let Some(bins) =
            frame.bins.as_mut().filter(|b| cx.applies && b.index.saturating_add(1) < b.table.count)
        else {
            frame.bins = None;
            return Next::Packet;
        };
        bins.index += 1;
        let BinLoop { body, index, table } = *bins;
        self.bin_prefix(frame.level, table, index, cx, sink);
        Next::Jump(body)
    }

    fn bin_prefix(
        &mut self,
        level: u8,
        table: Table,
        index: u32,
        cx: &Current<'_>,
        sink: &mut dyn AdrenoSink,
    ) {
        let kind = AdrenoStreamKind::Bin { index };
        self.follow(
            stream(kind, level.saturating_add(1), table.at(index), table.size, Exec::Always, cx),
            cx,
            sink,
        );
    }

    /// CP_FIXED_STRIDE_DRAW_TABLE: one draw per buffer; buffers whose draw is not visible are skipped.
    fn draw_table(&mut self, frame: &AdrenoFrame<'_>, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        if self.has(cx, 4, sink) {
            let table = Table { iova: cx.arg64(0), size: cx.arg(2) >> 20, count: cx.arg(3) };
            let exec = self.visible();
            self.follow_table(
                frame.level,
                table,
                exec,
                |index| AdrenoStreamKind::DrawTable { index },
                cx,
                sink,
            );
        }
    }

    /// Follows every buffer of a table, as far as there is memory.
    fn follow_table(
        &mut self,
        level: u8,
        table: Table,
        exec: Exec,
        kind: impl Fn(u32) -> AdrenoStreamKind,
        cx: &Current<'_>,
        sink: &mut dyn AdrenoSink,
    ) {
        for index in 0..table.count {
            let iova = table.at(index);
            let stream = stream(kind(index), level.saturating_add(1), iova, table.size, exec, cx);
            let Some(target) = self.locate(stream, cx, sink) else { return };
            let whole = target.stream.dwords.len() as u64 == target.stream.claimed;
            self.enter(target, cx.packet.place, sink);
            let empty = table.size == 0 && !self.options.linear;
            if !whole || empty || !self.spend(0, cx.packet.place, sink) {
                return;
            }
        }
    }

    // Draw-state groups

    fn set_draw_state(&mut self, frame: &AdrenoFrame<'_>, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        let entry = GroupEntry::dwords(self.generation);
        for i in (0..cx.packet.payload.len()).step_by(entry) {
            let needed = u32::try_from(i + entry).unwrap_or(u32::MAX);
            if !self.has(cx, needed, sink) {
                return;
            }
            match GroupEntry::parse(cx.args.skip(i), self.generation) {
                GroupEntry::DisableAll => self.state.groups = Default::default(),
                GroupEntry::Disable(id) => self.set_group(id, GroupState::default()),
                GroupEntry::Set(id, set) => self.set_group(id, set),
                GroupEntry::LoadNow(id, set) => {
                    self.set_group(id, set);
                    self.load_group(id, frame, cx, sink);
                    self.set_group(id, GroupState::default());
                }
            }
        }
    }

    fn set_group(&mut self, id: u8, set: GroupState) {
        if let Some(slot) = self.state.groups.get_mut(usize::from(id)) {
            *slot = set;
        }
    }

    /// Loads the groups that wait for a draw; all are disabled afterwards, those of other modes too.
    pub(crate) fn load_groups(
        &mut self,
        frame: &AdrenoFrame<'_>,
        cx: &Current<'_>,
        sink: &mut dyn AdrenoSink,
    ) {
        if self.loading_groups {
            return self.trouble(cx.packet.place, TroubleKind::RecursiveGroups, sink);
        }
        self.loading_groups = true;
        for id in 0..32 {
            self.load_group(id, frame, cx, sink);
        }
        self.loading_groups = false;
        if !self.compare {
            self.state.groups = Default::default();
        }
    }

    fn load_group(&mut self, id: u8, frame: &AdrenoFrame<'_>, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        let set = self.state.groups.get(usize::from(id)).copied().unwrap_or_default();
        if set.count == 0 {
            return;
        }
        let masked = self.generation >= Generation::A6xx && set.enable_mask & self.state.modes() == 0;
        sink.event(&self.state, &AdrenoEvent::Group(DrawStateGroup { id, set, loaded: !masked }));
        if !masked {
            let level = frame.level.saturating_add(1);
            self.follow(
                stream(AdrenoStreamKind::Group { id }, level, set.iova, set.count, Exec::Always, cx),
                cx,
                sink,
            );
        }
    }
}

impl Table {
    /// Address of one of its buffers.
    fn at(self, index: u32) -> u64 {
        let offset = u64::from(index).saturating_mul(u64::from(self.size)).saturating_mul(4);
        self.iova.saturating_add(offset)
    }
}

/// A stream in memory that a packet names, not looked up yet.
fn stream<'s>(
    kind: AdrenoStreamKind,
    level: u8,
    iova: u64,
    size: u32,
    exec: Exec,
    cx: &Current<'_>,
) -> NestedStream<'s> {
    NestedStream {
        kind,
        level,
        iova: Some(iova),
        claimed: u64::from(size),
        dwords: Dwords::default(),
        exec: cx.packet.exec.and(exec),
    }
}
