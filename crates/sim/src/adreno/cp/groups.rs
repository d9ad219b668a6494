//! Draw states: groups of packets that are executed when a draw needs them, and the mode that chooses among them.

use super::{CpStop, Executed, Frame, FrameKind};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::{CpErrorKind, GpuFault};
use unwedge_stream::adreno::payload::GroupEntry;
use unwedge_stream::adreno::{GroupState, mode};

/// Render modes of CP_SET_MARKER.
mod marker {
    pub(super) const DIRECT_RENDER: u32 = 1;
    pub(super) const BIN_VISIBILITY: u32 = 2;
    pub(super) const BIN_RENDER_END: u32 = 7;
    pub(super) const LAST_RENDER_MODE: u32 = 8;
    /// The low bits are no render mode.
    pub(super) const IFPC_MODE: u32 = 1 << 8;
}

impl AdrenoMachine<'_> {
    pub(super) fn set_draw_state(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        if self.in_group(packet) {
            return Err(packet.error(CpErrorKind::NestedGroups).into());
        }
        let generation = self.generation;
        let entry = GroupEntry::dwords(generation);
        if !packet.payload.len().is_multiple_of(entry) {
            return Err(packet.error(CpErrorKind::ShortPacket { opcode: packet.opcode }).into());
        }
        let mut now = Vec::new();
        for i in (0..packet.payload.len()).step_by(entry) {
            let groups = &mut self.thread_mut(packet.thread).groups;
            match GroupEntry::parse(packet.payload.skip(i), generation) {
                GroupEntry::DisableAll => groups.forget_all(),
                GroupEntry::Disable(id) => groups.forget(id),
                GroupEntry::Set(id, set) => groups.set(id, set),
                GroupEntry::LoadNow(id, set) => {
                    groups.forget(id);
                    now.push(set);
                }
            }
        }
        // The last one on the stack is executed first.
        now.into_iter().rev().try_for_each(|set| self.enter_group(packet, set))
    }

    fn in_group(&self, packet: &Executed<'_>) -> bool {
        self.thread(packet.thread).frames.last().is_some_and(|frame| frame.kind == FrameKind::Group)
    }

    fn enter_group(&mut self, packet: &Executed<'_>, set: GroupState) -> Result<(), CpStop> {
        let level = self.level(packet.thread) + 1;
        self.push(packet, Frame::new(FrameKind::Group, level, set.iova, set.count))
    }

    /// Enters the next group that waits for a draw; `false` when none does.
    pub(super) fn enter_waiting_group(&mut self, packet: &Executed<'_>) -> Result<bool, CpStop> {
        let thread = self.thread_mut(packet.thread);
        let modes = thread.modes;
        match thread.groups.take(modes) {
            Some(set) => self.enter_group(packet, set).map(|()| true),
            None => Ok(false),
        }
    }

    /// CP_SET_MARKER: every rendering marker but those two counts as GMEM.
    pub(super) fn set_marker(&mut self, packet: &Executed<'_>) -> Result<(), GpuFault> {
        let word = packet.payload.get(0).unwrap_or(0);
        if word & marker::IFPC_MODE != 0 {
            return Ok(());
        }
        let value = word & 0xf;
        let thread = self.thread_mut(packet.thread);
        thread.marker = Some(value);
        if matches!(value, marker::DIRECT_RENDER | marker::BIN_VISIBILITY | marker::BIN_RENDER_END) {
            thread.bin = None;
        }
        match value {
            marker::DIRECT_RENDER => thread.modes = mode::SYSMEM,
            marker::BIN_VISIBILITY => thread.modes = mode::BINNING,
            3..=marker::LAST_RENDER_MODE => thread.modes = mode::GMEM,
            _ => {}
        }
        self.audit_marker(value);
        self.end_lrz_pass();
        if self.bins_draws(packet.thread) {
            self.begin_binning();
        }
        Ok(())
    }
}
