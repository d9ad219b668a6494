//! Draws, dispatches and blits: what stands before them, and who does them.

use super::{CpStop, Executed, PacketEnd, ThreadId};
use crate::adreno::draw::DrawVisibility;
use crate::adreno::draw_watch::WatchedWork;
use crate::adreno::machine::{AdrenoMachine, WorkUnit};
use crate::adreno::space::Client;
use unwedge_stream::adreno::AdrenoOp;

impl AdrenoMachine<'_> {
    pub(super) fn work(&mut self, packet: &Executed<'_>) -> Result<PacketEnd, CpStop> {
        if !self.draws_execute(packet.thread) {
            return Ok(PacketEnd::Done);
        }
        let visibility = self.draw_visibility(packet)?;
        if let Some((DrawVisibility::Hidden, streams)) = visibility {
            // Its groups wait for a draw that is visible.
            self.thread_mut(packet.thread).bin = Some(streams);
            return Ok(PacketEnd::Done);
        }
        if packet.op.loads_groups() {
            // The packet's turn comes again after the group.
            let dwords = 1 + packet.payload.len() as u64;
            self.thread_mut(packet.thread).hold(dwords);
            if self.enter_waiting_group(packet)? {
                return Ok(PacketEnd::Done);
            }
            self.thread_mut(packet.thread).resume();
            self.thread_mut(packet.thread).advance(dwords);
        }
        // Of BV there is only the binning pass.
        if packet.thread == ThreadId::Bv && !self.bins_draws(packet.thread) {
            return Ok(PacketEnd::Done);
        }
        if let Some(end) = self.send_ahead(packet) {
            return Ok(end);
        }
        if self.thread(packet.thread).dispatch.is_none() {
            self.audit_work(packet.thread, packet.op, packet.payload.get(0).unwrap_or(0));
        }
        let work =
            WatchedWork { number: self.work_done, thread: packet.thread, iova: packet.iova, op: packet.op };
        if self.thread(packet.thread).dispatch.is_none() {
            self.tell_watch(|watch, machine| watch.work(machine, &work, false));
        }
        self.working = Some(match packet.op {
            op if op.is_dispatch() => WorkUnit::Shader,
            AdrenoOp::Blit => WorkUnit::Blit,
            _ => WorkUnit::Draw,
        });
        let end = match packet.op {
            AdrenoOp::ExecCs => {
                let groups = [packet.arg(1)?, packet.arg(2)?, packet.arg(3)?];
                self.dispatch(packet.thread, groups)?
            }
            AdrenoOp::ExecCsIndirect => self.dispatch_indirect(packet)?,
            AdrenoOp::RunOpencl => {
                let groups = self
                    .places
                    .kernel_groups
                    .map(|reg| reg.map_or(1, |reg| self.read_register(packet.thread, reg)));
                self.dispatch(packet.thread, groups)?
            }
            AdrenoOp::Blit => {
                self.blit(packet.thread)?;
                PacketEnd::Done
            }
            _ => {
                if let Some((_, streams)) = visibility {
                    self.thread_mut(packet.thread).bin = Some(streams);
                }
                self.begin_draw_packet(packet, visibility.map(|(visible, _)| visible))?;
                self.begin_lrz_draw(packet.iova);
                self.draw_packet(packet)?;
                self.end_draw_packet(packet.thread)?;
                PacketEnd::Done
            }
        };
        if end == PacketEnd::Waits {
            return Ok(end);
        }
        self.working = None;
        self.tell_watch(|watch, machine| watch.work(machine, &work, true));
        self.mark_work(packet.thread, packet.op == AdrenoOp::Blit);
        self.work_done += 1;
        Ok(PacketEnd::Done)
    }

    /// CP_EXEC_CS_INDIRECT: the CP reads the number of groups, and sets the sizes that a driver sets for a direct
    /// dispatch.
    fn dispatch_indirect(&mut self, packet: &Executed<'_>) -> Result<PacketEnd, CpStop> {
        if self.thread(packet.thread).dispatch.is_some() {
            return self.dispatch(packet.thread, [0; 3]);
        }
        let (iova, local) = (packet.arg64(1)?, packet.arg(3)?);
        let mut groups = [0; 3];
        for (n, count) in (0..).zip(&mut groups) {
            *count = self.space.read(iova.saturating_add(4 * n), 4, Client::Cp)? as u32;
        }
        let sizes = [local >> 2 & 0x3ff, local >> 12 & 0x3ff, local >> 22 & 0x3ff].map(|size| size + 1);
        if let Some(range) = self.places.nd_range {
            for axis in 0..3 {
                let reg = range + 1 + 2 * axis as u32;
                self.write_register(packet.thread, reg, groups[axis].wrapping_mul(sizes[axis]));
            }
        }
        self.dispatch(packet.thread, groups)
    }
}
