//! Work that packets start: draws, dispatches, blits, and the events that load, store or clear tile memory.
//!
//! Facts: freedreno's adreno_pm4 register description.

use crate::adreno::walker::{AdrenoFrame, AdrenoWalker, Current, DRAW};
use crate::adreno::{AdrenoEvent, AdrenoOp, AdrenoSink, Draw, DrawKind, Exec, Flow, Pass, mode};
use unwedge_base::Generation;

/// pc_di_primtype in the draw initiator.
const PRIMITIVE: u32 = 0x3f;

/// Opcodes of CP_DRAW_INDIRECT_MULTI (a6xx_draw_indirect_opcode) whose parameters follow an index buffer.
const INDEXED: [u32; 2] = [4, 7];

impl AdrenoOp {
    /// It starts work whatever its payload says.
    pub fn is_work(self) -> bool {
        self.loads_groups() || matches!(self, AdrenoOp::RunOpencl | AdrenoOp::Blit)
    }

    /// It runs a compute shader.
    pub fn is_dispatch(self) -> bool {
        matches!(self, AdrenoOp::ExecCs | AdrenoOp::ExecCsIndirect | AdrenoOp::RunOpencl)
    }
}

impl AdrenoWalker<'_> {
    /// A draw, dispatch or blit.
    pub(crate) fn work(&mut self, frame: &AdrenoFrame<'_>, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        let wide = self.generation.is_64bit();
        let packet = cx.packet;
        let arg = |i| cx.args.get(i);
        let address = |i| if wide { cx.args.get64(i) } else { arg(i).map(u64::from) };
        let draw = Draw {
            number: self.state.draws,
            summary: true,
            kind: DrawKind::Draw,
            pass: Pass::Current,
            packet,
            primitive: None,
            count: None,
            instances: None,
            indirect: None,
            event: None,
        };
        let initiated = |i| Draw { primitive: arg(i).map(|word| word & PRIMITIVE), ..draw };
        let counted = |draw: Draw<'_>| draw.count.is_none_or(|n| n > 0);
        let (needed, draw) = match packet.op {
            AdrenoOp::DrawIndx | AdrenoOp::DrawIndx2 => {
                let instances = arg(1).map(|word| word >> 24);
                (3, Draw { count: arg(2), instances, ..initiated(1) })
            }
            AdrenoOp::DrawIndxOffset => (3, Draw { instances: arg(1), count: arg(2), ..initiated(0) }),
            AdrenoOp::DrawIndirect => {
                (if wide { 3 } else { 2 }, Draw { indirect: address(1), ..initiated(0) })
            }
            AdrenoOp::DrawIndxIndirect if wide => (6, Draw { indirect: address(4), ..initiated(0) }),
            AdrenoOp::DrawIndxIndirect => (4, Draw { indirect: address(3), ..initiated(0) }),
            AdrenoOp::DrawIndirectMulti => {
                let indexed = arg(1).is_some_and(|word| INDEXED.contains(&(word & 0xf)));
                let at = if indexed { 6 } else { 3 };
                (at as u32 + 2, Draw { indirect: address(at), ..initiated(0) })
            }
            AdrenoOp::DrawAuto => (6, Draw { instances: arg(1), indirect: cx.args.get64(2), ..initiated(0) }),
            AdrenoOp::ExecCsIndirect => {
                (if wide { 3 } else { 2 }, Draw { kind: DrawKind::Dispatch, indirect: address(1), ..draw })
            }
            AdrenoOp::ExecCs | AdrenoOp::RunOpencl => (0, Draw { kind: DrawKind::Dispatch, ..draw }),
            _ => (0, Draw { kind: DrawKind::Blit, ..draw }),
        };
        self.has(cx, needed, sink);
        self.report(Draw { summary: counted(draw), ..draw }, frame, cx, sink);
    }

    /// CP_EVENT_WRITE: some events work on the tile buffer with the register state.
    pub(crate) fn event_write(
        &mut self,
        frame: &AdrenoFrame<'_>,
        cx: &Current<'_>,
        sink: &mut dyn AdrenoSink,
    ) {
        if !self.has(cx, 1, sink) {
            return;
        }
        let event = cx.arg(0) & 0xff;
        if self.generation.is_64bit() && self.facts.working_events.contains(&Some(event)) {
            let draw = Draw {
                number: self.state.draws,
                summary: self.generation >= Generation::A6xx,
                kind: DrawKind::Event,
                pass: Pass::Current,
                packet: cx.packet,
                primitive: None,
                count: None,
                instances: None,
                indirect: None,
                event: Some(event),
            };
            self.report(draw, frame, cx, sink);
        }
    }

    /// Reports a draw once for each pass, with the registers that its groups write in that pass.
    fn passes(
        &mut self,
        draw: Draw<'_>,
        frame: &AdrenoFrame<'_>,
        cx: &Current<'_>,
        sink: &mut dyn AdrenoSink,
    ) {
        let current = self.state.enable_mask;
        let passes = [
            (Pass::All, mode::ALL),
            (Pass::Binning, mode::BINNING),
            (Pass::Drawing, mode::GMEM | mode::SYSMEM),
        ];
        for (pass, modes) in passes {
            self.state.enable_mask = modes;
            self.state.with_regs(cx.threads, |regs| regs.forget_rewritten());
            self.load_groups(frame, cx, sink);
            self.state.level = frame.level;
            if sink.event(&self.state, &AdrenoEvent::Draw(Draw { pass, ..draw })) == Flow::Skip {
                break;
            }
        }
        self.state.enable_mask = current;
        self.state.groups = Default::default();
    }

    /// Reports a draw and starts the next span of register writes.
    fn report(
        &mut self,
        draw: Draw<'_>,
        frame: &AdrenoFrame<'_>,
        cx: &Current<'_>,
        sink: &mut dyn AdrenoSink,
    ) {
        if cx.applies && self.spend(DRAW, cx.packet.place, sink) {
            sink.event(&self.state, &AdrenoEvent::Draw(draw));
            // Listing tools know the working events of a5xx as events only.
            if self.compare && (draw.summary || draw.kind != DrawKind::Event) {
                self.passes(draw, frame, cx, sink);
            }
        }
        if draw.summary {
            if cx.applies {
                self.state.with_regs(cx.threads, |regs| regs.mark_draw());
            }
            self.state.draws = self.state.draws.saturating_add(1);
        }
        debug_assert!(cx.applies || cx.packet.exec == Exec::NotTaken);
    }
}
