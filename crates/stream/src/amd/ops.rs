//! What packets do, for those that the walker acts on.

use super::packet::Packet;
use super::walker::AmdWalker;
use super::{
    AmdEvent, AmdPacketHeader, AmdSink, AmdStreamKind, Draw, DrawKind, Engine, Wait, sdma, trace_point,
};
use crate::{Exec, RegWrite, StreamPos};
use unwedge_hw::amd::{Amd, RegBank};

/// Operations that mean something to the walker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum AmdOp {
    #[default]
    Other,
    Nop,
    IndirectBuffer,
    Constant,
    Set(RegBank),
    SetPairs(RegBank),
    SetPacked(RegBank),
    Load(RegBank),
    ClearState,
    ContextRmw,
    WriteData,
    CopyData,
    CondExec,
    PredExec,
    Draw(DrawKind),
    Wait,
}

/// The operation of a packet by its name in the facts.
fn by_name(name: &str) -> AmdOp {
    match name {
        "NOP" => AmdOp::Nop,
        "INDIRECT_BUFFER" | "INDIRECT_BUFFER_SI" | "INDIRECT_BUFFER_PRIV" => AmdOp::IndirectBuffer,
        "INDIRECT_BUFFER_CONST" => AmdOp::Constant,
        "SET_CONFIG_REG" => AmdOp::Set(RegBank::Config),
        "SET_CONTEXT_REG" | "SET_CONTEXT_REG_INDEX" => AmdOp::Set(RegBank::Context),
        "SET_SH_REG" | "SET_SH_REG_INDEX" => AmdOp::Set(RegBank::Sh),
        "SET_UCONFIG_REG" | "SET_UCONFIG_REG_INDEX" => AmdOp::Set(RegBank::Uconfig),
        "SET_CONTEXT_REG_PAIRS" => AmdOp::SetPairs(RegBank::Context),
        "SET_SH_REG_PAIRS" => AmdOp::SetPairs(RegBank::Sh),
        "SET_UCONFIG_REG_PAIRS" => AmdOp::SetPairs(RegBank::Uconfig),
        "SET_CONTEXT_REG_PAIRS_PACKED" => AmdOp::SetPacked(RegBank::Context),
        "SET_SH_REG_PAIRS_PACKED" | "SET_SH_REG_PAIRS_PACKED_N" => AmdOp::SetPacked(RegBank::Sh),
        "LOAD_CONFIG_REG" => AmdOp::Load(RegBank::Config),
        "LOAD_CONTEXT_REG" | "LOAD_CONTEXT_REG_INDEX" => AmdOp::Load(RegBank::Context),
        "LOAD_SH_REG" | "LOAD_SH_REG_INDEX" => AmdOp::Load(RegBank::Sh),
        "LOAD_UCONFIG_REG" => AmdOp::Load(RegBank::Uconfig),
        "CLEAR_STATE" => AmdOp::ClearState,
        "CONTEXT_REG_RMW" => AmdOp::ContextRmw,
        "WRITE_DATA" => AmdOp::WriteData,
        "COPY_DATA" => AmdOp::CopyData,
        "COND_EXEC" => AmdOp::CondExec,
        "PRED_EXEC" => AmdOp::PredExec,
        "DISPATCH_DIRECT"
        | "DISPATCH_INDIRECT"
        | "DISPATCH_DIRECT_INTERLEAVED"
        | "DISPATCH_INDIRECT_INTERLEAVED" => AmdOp::Draw(DrawKind::Dispatch),
        "DISPATCH_MESH_INDIRECT_MULTI" | "DISPATCH_MESH_DIRECT" | "DISPATCH_TASKMESH_GFX" => {
            AmdOp::Draw(DrawKind::Mesh)
        }
        "DISPATCH_TASKMESH_DIRECT_ACE" | "DISPATCH_TASKMESH_INDIRECT_MULTI_ACE" => {
            AmdOp::Draw(DrawKind::Task)
        }
        "DRAW_PREAMBLE" | "DRAW_MULTI_PREAMBLE" => AmdOp::Other,
        name if name.starts_with("DRAW_") => AmdOp::Draw(DrawKind::Draw),
        "WAIT_REG_MEM" | "WAIT_REG_MEM64" | "MEM_SEMAPHORE" => AmdOp::Wait,
        _ => AmdOp::Other,
    }
}

/// The operation of every opcode.
pub(super) fn table(amd: Amd<'_>) -> [AmdOp; 256] {
    let mut ops = [AmdOp::Other; 256];
    for (opcode, op) in (0..=u8::MAX).zip(&mut ops) {
        *op = amd.packet_name(opcode).map(by_name).unwrap_or_default();
    }
    ops
}

/// A buffer that a packet goes to.
pub(super) struct IbCall {
    pub(super) kind: AmdStreamKind,
    pub(super) iova: u64,
    pub(super) size: u32,
}

/// Dwords behind a packet that depend on a condition.
pub(super) struct Skip {
    /// How many.
    pub(super) dwords: usize,
    /// Whether they are executed.
    pub(super) exec: Exec,
}

/// What a packet changes in the walk itself.
pub(super) enum Effect {
    None,
    Call(IbCall),
    Skip(Skip),
}

impl AmdWalker<'_> {
    /// Does what the packet does.
    pub(super) fn execute(&mut self, packet: &Packet<'_>, sink: &mut dyn AmdSink) -> Effect {
        let op = match packet.header {
            AmdPacketHeader::Type3 { opcode, .. } => self.ops[usize::from(opcode)],
            AmdPacketHeader::Type0 { reg, .. } => {
                for (i, value) in packet.payload.iter().enumerate() {
                    self.write(reg.wrapping_add(i as u32), value, packet, i, sink);
                }
                return Effect::None;
            }
            AmdPacketHeader::Type2 | AmdPacketHeader::Media { .. } => return Effect::None,
            AmdPacketHeader::Dma { .. } => return self.execute_dma(packet, sink),
        };
        let amd = self.amd;
        match op {
            AmdOp::Other => {}
            AmdOp::Nop => {
                if let (1, Some(number)) = (packet.payload.len(), packet.payload.get(0).and_then(trace_point))
                {
                    self.state.trace_point = Some(number);
                    sink.event(&self.state, &AmdEvent::TracePoint(*packet, number));
                }
            }
            AmdOp::IndirectBuffer | AmdOp::Constant => {
                let size = packet.get32(amd, "IB_SIZE").unwrap_or(0);
                let Some(iova) = packet.get(amd, "IB_BASE") else { return Effect::None };
                let kind = match op {
                    AmdOp::Constant => AmdStreamKind::Constant,
                    _ if packet.get(amd, "CHAIN") == Some(1) => AmdStreamKind::Chain,
                    _ => AmdStreamKind::Call,
                };
                return Effect::Call(IbCall { kind, iova: iova & !3, size });
            }
            AmdOp::Set(bank) => self.set_run(bank, packet, sink),
            AmdOp::SetPairs(bank) => self.set_pairs(bank, packet, sink),
            AmdOp::SetPacked(bank) => self.set_packed(bank, packet, sink),
            AmdOp::Load(bank) => self.load(bank, packet),
            AmdOp::ClearState => self.state.forget_bank(RegBank::Context),
            AmdOp::ContextRmw => self.context_rmw(packet, sink),
            AmdOp::WriteData => self.write_data(packet, sink),
            AmdOp::CopyData => self.copy_data(packet, sink),
            AmdOp::CondExec => {
                let value = packet.get(amd, "ADDR").and_then(|iova| self.memory.read(iova & !3));
                let dwords = packet.get32(amd, "EXEC_COUNT").unwrap_or(0) as usize;
                return Effect::Skip(Skip { dwords, exec: Exec::of(value.map(|value| value != 0)) });
            }
            AmdOp::PredExec => {
                let dwords = packet.get32(amd, "EXEC_COUNT").unwrap_or(0) as usize;
                return Effect::Skip(Skip { dwords, exec: Exec::Unknown });
            }
            AmdOp::Draw(kind) => self.draw(kind, packet, sink),
            AmdOp::Wait => self.wait(packet, sink),
        }
        Effect::None
    }

    /// Consecutive registers from an offset on.
    fn set_run(&mut self, bank: RegBank, packet: &Packet<'_>, sink: &mut dyn AmdSink) {
        let first = packet.payload.get(0).unwrap_or(0) & 0xffff;
        for (i, value) in packet.payload.iter().enumerate().skip(1) {
            let reg = bank.base().wrapping_add(first).wrapping_add(i as u32 - 1);
            self.write(reg, value, packet, i, sink);
        }
    }

    /// An offset and a value, repeated.
    fn set_pairs(&mut self, bank: RegBank, packet: &Packet<'_>, sink: &mut dyn AmdSink) {
        for i in (0..packet.payload.len()).step_by(2) {
            let (Some(reg), Some(value)) = (packet.payload.get(i), packet.payload.get(i + 1)) else {
                break;
            };
            self.write(bank.base().wrapping_add(reg & 0xffff), value, packet, i + 1, sink);
        }
    }

    /// Two offsets in a dword and their two values, repeated.
    fn set_packed(&mut self, bank: RegBank, packet: &Packet<'_>, sink: &mut dyn AmdSink) {
        for i in (1..packet.payload.len()).step_by(3) {
            let Some(regs) = packet.payload.get(i) else { break };
            for (half, value) in [(regs & 0xffff, i + 1), (regs >> 16, i + 2)] {
                let Some(dword) = packet.payload.get(value) else { break };
                self.write(bank.base().wrapping_add(half), dword, packet, value, sink);
            }
        }
    }

    /// Bits of a context register; a register that was unknown stays so.
    fn context_rmw(&mut self, packet: &Packet<'_>, sink: &mut dyn AmdSink) {
        let arg = |i| packet.payload.get(i);
        if let (Some(reg), Some(mask), Some(data)) = (arg(0), arg(1), arg(2)) {
            let reg = RegBank::Context.base().wrapping_add(reg & 0xffff);
            match self.state.get(reg) {
                Some(old) => self.write(reg, old & !mask | data & mask, packet, 2, sink),
                None => self.state.forget(reg),
            }
        }
    }

    /// Data of the packet, where the destination is a register.
    fn write_data(&mut self, packet: &Packet<'_>, sink: &mut dyn AmdSink) {
        let amd = self.amd;
        if packet.get(amd, "DST_SEL") == Some(0) {
            let first = packet.payload.get(1).unwrap_or(0) & 0x3_ffff;
            let step = u32::from(packet.get(amd, "WR_ONE_ADDR") != Some(1));
            for (i, value) in packet.payload.iter().enumerate().skip(3) {
                let reg = first.wrapping_add((i as u32 - 3).wrapping_mul(step));
                self.write(reg, value, packet, i, sink);
            }
        }
    }

    /// One value, where the destination is a register; only an immediate is known.
    fn copy_data(&mut self, packet: &Packet<'_>, sink: &mut dyn AmdSink) {
        let amd = self.amd;
        if packet.get(amd, "DST_SEL") == Some(0) {
            let reg = packet.payload.get(3).unwrap_or(0) & 0x3_ffff;
            match packet.get(amd, "SRC_SEL") {
                Some(5) => self.write(reg, packet.payload.get(1).unwrap_or(0), packet, 1, sink),
                _ => self.state.forget(reg),
            }
        }
    }

    fn execute_dma(&mut self, packet: &Packet<'_>, sink: &mut dyn AmdSink) -> Effect {
        match packet.name(self.amd) {
            Some("SDMA_INDIRECT" | "SIDMA_INDIRECT") => {
                if let Some((iova, size)) = sdma::call(packet, self.amd) {
                    return Effect::Call(IbCall { kind: AmdStreamKind::Call, iova, size });
                }
            }
            Some("SDMA_COND_EXE") => {
                let amd = self.amd;
                let value = packet.get(amd, "ADDR").and_then(|iova| self.memory.read(iova & !3));
                let reference = packet.get32(amd, "REFERENCE");
                let exec = Exec::of(value.zip(reference).map(|(value, reference)| value == reference));
                let dwords = packet.get32(amd, "EXEC_COUNT").unwrap_or(0) as usize;
                return Effect::Skip(Skip { dwords, exec });
            }
            _ => self.wait(packet, sink),
        }
        Effect::None
    }

    /// A register write by the current packet; `i` is its place in the payload.
    fn write(&mut self, reg: u32, value: u32, packet: &Packet<'_>, i: usize, sink: &mut dyn AmdSink) {
        if packet.exec != Exec::NotTaken {
            self.state.set(reg, value);
        }
        let dwords = i.saturating_add(1);
        let place = StreamPos {
            index: packet.place.index.saturating_add(dwords),
            iova: packet.place.iova.map(|iova| iova.saturating_add(dwords as u64 * 4)),
            ..packet.place
        };
        sink.event(&self.state, &AmdEvent::RegWrite(RegWrite { reg, value, place, exec: packet.exec }));
    }

    /// Registers that memory is loaded into: what it held when the packet ran is not known.
    fn load(&mut self, bank: RegBank, packet: &Packet<'_>) {
        for i in (2..packet.payload.len()).step_by(2) {
            let (Some(first), Some(count)) = (packet.payload.get(i), packet.payload.get(i + 1)) else {
                break;
            };
            for reg in
                (0..count.min(0x4000)).map(|n| bank.base().wrapping_add(first & 0xffff).wrapping_add(n))
            {
                self.state.forget(reg);
            }
        }
    }

    fn draw(&mut self, kind: DrawKind, packet: &Packet<'_>, sink: &mut dyn AmdSink) {
        if packet.exec == Exec::NotTaken {
            return;
        }
        let amd = self.amd;
        let groups = || {
            let part = |name| packet.get32(amd, name);
            Some([part("DIM_X")?, part("DIM_Y")?, part("DIM_Z")?])
        };
        let draw = Draw {
            number: self.state.draws,
            kind,
            packet: *packet,
            count: packet.get32(amd, "INDEX_COUNT"),
            groups: groups(),
        };
        sink.event(&self.state, &AmdEvent::Draw(draw));
        self.state.regs.mark_draw();
        self.state.draws = self.state.draws.saturating_add(1);
    }

    fn wait(&mut self, packet: &Packet<'_>, sink: &mut dyn AmdSink) {
        if let Some(wait) = Wait::of(packet, self.amd) {
            sink.event(&self.state, &AmdEvent::Wait(*packet, wait));
        }
    }

    /// Predication is on for what the header says; whether it holds depends on queries.
    pub(super) fn predicated(packet: &AmdPacketHeader, engine: Engine) -> bool {
        engine == Engine::Gfx && matches!(packet, AmdPacketHeader::Type3 { predicate: true, .. })
    }
}
