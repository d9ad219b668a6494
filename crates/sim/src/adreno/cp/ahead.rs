//! The SQE goes on after a piece of work that does not end, until something stops it: what it sends goes into the queues of
//! the clusters.
//!
//! Facts: which packets wait for the queues to drain ([`AdrenoMachine::waits_for_queues`]): the packets' descriptions in the register
//! database, and freedreno's documentation. Never: work and events of BR themselves, nor what they write.

use super::{CpStop, Executed, PacketEnd, ThreadId};
use crate::adreno::clusters::{ClusterQueues, EventWrite, SentWork};
use crate::adreno::machine::{AdrenoMachine, WorkUnit};
use crate::adreno::space::Client;
use crate::adreno::{DispatchStop, RunEnd};
use unwedge_base::{Dwords, Generation};
use unwedge_hw::adreno::snapshot::Snapshot;
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// Steps that the SQE may go on.
const STEPS: u64 = 1 << 16;

/// Bits of packets that leave a wait for the queues out (a7xx; CP_REG_TEST: both).
mod skip {
    pub(super) const REG_RMW: u32 = 1 << 23;
    pub(super) const REG_TO_SCRATCH: u32 = 1 << 27;
    pub(super) const REG_TEST: u32 = 1 << 25;
}

impl AdrenoMachine<'_> {
    /// Lets the SQE go on, if it was work that stopped the machine.
    pub(crate) fn run_ahead(&mut self, snapshot: &Snapshot, end: &RunEnd) {
        let Some(stuck_in) = self.stuck_in(end) else { return };
        let sent = match self.working {
            Some(WorkUnit::Shader) => SentWork::Dispatch,
            Some(WorkUnit::Blit) => SentWork::Blit(self.payload.first().copied().unwrap_or(0)),
            Some(WorkUnit::Event(event)) => SentWork::Event(event, None),
            Some(WorkUnit::Draw) => SentWork::Draw,
            None => return,
        };
        let rollovers = self.thread(ThreadId::Br).rollovers;
        // Firmware from a650 on has a pipe register for CP_WAIT_FOR_IDLE. On a6xx these are the GPUs whose tessellation uses
        // shared memory.
        let late = self.adreno.device.is_some_and(|device| device.flag("a6xx.tess_use_shared"));
        let by_pipe = self.generation >= Generation::A7xx || late;
        let queues = ClusterQueues::new(self.gpu, by_pipe, snapshot, rollovers, (sent, stuck_in));
        self.ahead = Some(Box::new(queues));
        // It ends at a wait, at something that the CP cannot execute, or where the streams do.
        let _ = self.run(STEPS);
        if let Some(queues) = self.ahead.as_deref_mut() {
            queues.advance();
        }
    }

    /// The cluster that the work in progress does not leave.
    fn stuck_in(&self, end: &RunEnd) -> Option<&'static str> {
        let work = self.working?;
        let stop = match end {
            RunEnd::Stopped { thread: ThreadId::Br, stop } => Some(stop),
            RunEnd::Budget => None,
            _ => return None,
        };
        if let Some(CpStop::Dispatch(DispatchStop::Shader { stage, .. })) = stop {
            return Some(if matches!(*stage, "compute" | "fragment") { "SP_PS" } else { "SP_VS" });
        }
        match (work, stop.and_then(CpStop::gpu_fault).map(|fault| fault.client)) {
            (_, Some(Client::Cp)) => None,
            (_, Some(Client::Vfd | Client::Pc)) => Some("FE"),
            (_, Some(Client::Vpc)) => Some("PC_VS"),
            (WorkUnit::Blit | WorkUnit::Event(_), _) | (_, Some(Client::Ccu)) => Some("PS"),
            (WorkUnit::Draw | WorkUnit::Shader, _) => Some("SP_PS"),
        }
    }

    /// Whether a packet that is taken has to wait for the clusters.
    pub(super) fn waits_for_clusters(
        &mut self,
        id: ThreadId,
        header: AdrenoPacketHeader,
        payload: &Dwords<'_>,
    ) -> bool {
        if self.ahead.is_none() || id != ThreadId::Br {
            return false;
        }
        let drains = match header {
            AdrenoPacketHeader::Operation { opcode, .. } => {
                self.waits_for_queues(self.operation(opcode), payload)
            }
            _ => false,
        };
        let Some(queues) = self.ahead.as_deref_mut() else { return false };
        let dwords = payload.len() as u64;
        if drains || !queues.has_room(dwords) {
            queues.advance();
        }
        drains && !queues.is_drained() || !queues.has_room(dwords)
    }

    /// Whether a packet waits until the clusters have taken everything.
    fn waits_for_queues(&self, op: AdrenoOp, payload: &Dwords<'_>) -> bool {
        let skips = |bit: u32| payload.get(0).is_some_and(|word| word & bit != 0);
        let newer = self.generation >= Generation::A7xx;
        match op {
            AdrenoOp::WaitForMe
            | AdrenoOp::RegToMem
            | AdrenoOp::RegToMemOffsetReg
            | AdrenoOp::RegToMemOffsetMem
            | AdrenoOp::MemToReg
            | AdrenoOp::CondWrite5
            | AdrenoOp::ScratchToReg
            | AdrenoOp::DrawIndirect
            | AdrenoOp::DrawIndxIndirect
            | AdrenoOp::DrawIndirectMulti
            | AdrenoOp::ExecCsIndirect => true,
            AdrenoOp::RegRmw => !(newer && skips(skip::REG_RMW)),
            AdrenoOp::RegToScratch => !(newer && skips(skip::REG_TO_SCRATCH)),
            AdrenoOp::RegTest => !skips(skip::REG_TEST),
            _ => false,
        }
    }

    /// Sends work of BR to the clusters, if it is not done at once.
    pub(super) fn send_ahead(&mut self, packet: &Executed<'_>) -> Option<PacketEnd> {
        let queues = self.ahead.as_deref_mut().filter(|_| packet.thread == ThreadId::Br)?;
        queues.send(match packet.op {
            op if op.is_dispatch() => SentWork::Dispatch,
            AdrenoOp::Blit => SentWork::Blit(packet.payload.get(0).unwrap_or(0)),
            _ => SentWork::Draw,
        });
        queues.advance();
        Some(PacketEnd::Done)
    }

    /// Sends an event; false: events are done at once.
    pub(super) fn event_ahead(&mut self, packet: &Executed<'_>) -> Result<bool, CpStop> {
        if self.ahead.is_none() || packet.thread != ThreadId::Br {
            return Ok(false);
        }
        let word = packet.arg(0)?;
        let written = match packet.op {
            AdrenoOp::EventWrite7 => (word >> 27 & 1 != 0).then(|| self.written_by_event7(packet, word)),
            _ => (packet.payload.len() >= 4).then(|| self.written_by_event(packet, word)),
        };
        let written = written.transpose()?;
        if let Some(queues) = self.ahead.as_deref_mut() {
            queues.send(SentWork::Event((word & 0x7f) as u8, written));
            queues.advance();
        }
        Ok(true)
    }

    /// What an event of a6xx writes, as the CP's pipe registers have it.
    fn written_by_event(&self, packet: &Executed<'_>, word: u32) -> Result<EventWrite, CpStop> {
        let names = self.gpu.enumeration("vgt_event_type");
        let source = match names.and_then(|names| names.name_of((word & 0x7f).into())) {
            Some("CACHE_FLUSH_TS") => 1,
            Some("RB_DONE_TS") => 3,
            Some("PC_CCU_FLUSH_DEPTH_TS") => 4,
            Some("PC_CCU_FLUSH_COLOR_TS") => 5,
            Some("PC_CCU_RESOLVE_TS") => 6,
            _ => 0,
        };
        let control = (word >> 30 & 1) << 1 | (word >> 31) << 2 | source << 8;
        Ok(EventWrite { iova: packet.arg64(1)?, data: packet.arg(3)?.into(), control })
    }

    /// What an event of a7xx writes.
    fn written_by_event7(&self, packet: &Executed<'_>, word: u32) -> Result<EventWrite, CpStop> {
        let source = word >> 20 & 7;
        // EXTERNAL_MEMORY or ON_CHIP_MEMORY; from no value on, the values are numbered as the packet does it.
        let memory = if word >> 24 & 1 != 0 { 2 } else { 1 };
        let control = memory | (source + 1) << 3 | (word >> 31) << 6;
        let data = match source {
            1 => packet.arg64(3)?,
            0 | 4 => packet.arg(3)?.into(),
            _ => 0,
        };
        Ok(EventWrite { iova: packet.arg64(1)?, data, control })
    }

    /// Sends the commands of CP_LOAD_STATE6; false: state is loaded at once.
    pub(super) fn load_state_ahead(&mut self, packet: &Executed<'_>) -> bool {
        if self.ahead.is_none() || packet.thread != ThreadId::Br {
            return false;
        }
        let stages = if packet.op == AdrenoOp::LoadState6Geom { "GEOM" } else { "FRAG" };
        if let Some(first) = self.gpu.reg_offset(&format!("HLSQ_LOAD_STATE_{stages}_CMD")) {
            for (reg, value) in (first..first + 3).zip(packet.payload.iter().collect::<Vec<u32>>()) {
                self.write_register(packet.thread, reg, value);
            }
        }
        true
    }
}
