//! What is shown at draws: the modes, and the registers written since the draw before.

use super::{CffText, Pair};
use unwedge_base::Generation;
use unwedge_stream::adreno::{AdrenoState, Draw, DrawKind};

impl CffText<'_, '_, '_> {
    /// A draw, dispatch, blit or working event: its registers.
    pub(super) fn draw(&mut self, state: &AdrenoState, draw: &Draw<'_>) {
        let level = self.level() + 1;
        if !draw.summary || self.quiet {
            return;
        }
        if draw.kind == DrawKind::Event {
            self.modes(level);
        }
        if self.options.bindless {
            self.bindless(state, draw, level);
        }
        self.registers_at_draw(state, draw, level);
    }

    /// The render mode, the thread, and whether IB2s are skipped (a5xx on).
    pub(super) fn modes(&mut self, level: usize) {
        if self.gpu.generation() < Generation::A5xx {
            return;
        }
        self.text.level(level).str("mode: ").str(self.carry.render_mode.as_deref().unwrap_or("(null)"));
        if let Some(thread) = self.carry.thread {
            self.text.byte(b':').str(thread);
        }
        self.text.end();
        self.text.level(level).str("skip_ib2: g=").dec(self.carry.skip_ib2_global.into());
        self.text.str(", l=").dec(self.carry.skip_ib2_local.into()).end();
    }

    fn registers_at_draw(&mut self, state: &AdrenoState, draw: &Draw<'_>, level: usize) {
        self.text.level(level).str("draw[").dec(u64::from(draw.number)).str("] register values").end();
        if self.options.allregs {
            self.registers(state, state.regs.iter_written(), level);
        } else {
            self.registers(state, state.regs.iter_rewritten(), level);
        }
    }

    fn registers(&mut self, state: &AdrenoState, registers: impl Iterator<Item = u32>, level: usize) {
        let mut pair = Pair::default();
        let (mut changed, mut written) = (false, false);
        for reg in registers {
            let value = state.regs.raw(reg);
            changed |= value != state.regs.previous(reg);
            written |= state.regs.rewritten(reg);
            if !pair.push_half(|| self.known.facts(reg).half, reg, value, self.text) {
                continue;
            }
            self.text.byte(if changed { b'!' } else { b' ' }).byte(if written { b'+' } else { b' ' });
            self.text.byte(b'\t').hex(pair.value, 8);
            self.register(state, pair, level, true, true);
            (changed, written) = (false, false);
        }
    }
}
