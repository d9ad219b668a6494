//! Steps of AMD streams.

use super::{
    AmdEvent, AmdPacketHeader, AmdSink, AmdState, AmdStream, AmdStreamKind, Draw, DrawKind, Engine, Operand,
    Packet, media,
};
use crate::{
    Flow, PacketNames, PacketStep, Step, StepSink, StreamStep, StreamWork, WaitOperand, WaitRelation,
    WaitStep, WorkKind,
};
use unwedge_hw::amd::Amd;

/// Makes steps of the walker's events, and hands them on.
#[derive(Debug)]
pub struct AmdSteps<'d, S> {
    names: AmdPacketNames<'d>,
    /// Who receives them.
    pub sink: S,
}

/// Names packets of one engine.
#[derive(Debug)]
struct AmdPacketNames<'d> {
    amd: Amd<'d>,
    engine: Engine,
}

impl<'d, S: StepSink> AmdSteps<'d, S> {
    /// Steps of streams of an engine.
    pub fn new(amd: Amd<'d>, engine: Engine, sink: S) -> AmdSteps<'d, S> {
        AmdSteps { names: AmdPacketNames { amd, engine }, sink }
    }
}

impl PacketNames for AmdPacketNames<'_> {
    fn name_of(&self, packet: &PacketStep<'_>) -> Option<&str> {
        match self.engine {
            Engine::Sdma => Some(self.amd.sdma_packet(packet.header)?.name()),
            Engine::Gfx | Engine::Compute => self.amd.packet_name(packet.opcode?),
            engine => media::name(self.amd, engine, packet.header, packet.payload.get(0)),
        }
    }
}

fn packet<'e>(names: &'e AmdPacketNames<'_>, packet: &Packet<'e>) -> PacketStep<'e> {
    let opcode = match packet.header {
        AmdPacketHeader::Type3 { opcode, .. } => Some(opcode),
        AmdPacketHeader::Dma { op, .. } => Some(op),
        AmdPacketHeader::Type0 { .. } | AmdPacketHeader::Type2 | AmdPacketHeader::Media { .. } => None,
    };
    let Packet { place, raw: header, payload, exec, .. } = *packet;
    PacketStep { place, header, opcode, payload, exec, names }
}

fn stream<'e>(stream: &AmdStream<'e>) -> StreamStep<'e> {
    let kind = match stream.kind {
        AmdStreamKind::Call => crate::StreamKind::Call,
        AmdStreamKind::Chain => crate::StreamKind::Chain,
        AmdStreamKind::Constant => crate::StreamKind::Beside,
    };
    let AmdStream { level, iova, claimed, dwords, exec, .. } = *stream;
    StreamStep { kind, level, iova: Some(iova), claimed: Some(claimed.into()), dwords, exec }
}

impl From<&Draw<'_>> for StreamWork {
    fn from(draw: &Draw<'_>) -> StreamWork {
        let kind = match draw.kind {
            DrawKind::Draw | DrawKind::Mesh => WorkKind::Draw,
            DrawKind::Task | DrawKind::Dispatch => WorkKind::Dispatch,
        };
        let Draw { number, count, .. } = *draw;
        let place = draw.packet.place;
        StreamWork {
            number,
            kind,
            place,
            primitive: None,
            count,
            instances: None,
            event: None,
            indirect: None,
        }
    }
}

impl<S: StepSink> AmdSink for AmdSteps<'_, S> {
    fn event(&mut self, state: &AmdState, event: &AmdEvent<'_>) -> Flow {
        let step = match event {
            AmdEvent::Packet(met) => Step::Packet(packet(&self.names, met)),
            AmdEvent::RegWrite(write) => Step::Write(*write),
            AmdEvent::Enter(entered) => Step::Enter(stream(entered)),
            AmdEvent::Leave(left) => Step::Leave(stream(left)),
            AmdEvent::Missing(missing) => Step::Missing(stream(missing)),
            AmdEvent::Draw(draw) => Step::Work(StreamWork::from(draw)),
            AmdEvent::Wait(packet, wait) => Step::Wait(WaitStep {
                place: packet.place,
                operand: match wait.operand {
                    Operand::Register(reg) => WaitOperand::Register(reg),
                    Operand::Memory(iova) => WaitOperand::Memory(iova),
                },
                relation: WaitRelation::of_pm4(wait.function),
                reference: wait.reference,
                mask: wait.mask,
                exec: packet.exec,
            }),
            AmdEvent::Trouble(trouble) => Step::Trouble(*trouble),
            AmdEvent::TracePoint(..) => return Flow::Continue,
        };
        self.sink.step(&state.regs, &step)
    }
}
