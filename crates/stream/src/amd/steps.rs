//! Steps of AMD streams.

use super::{Draw, DrawKind, Engine, Event, Header, Operand, Packet, Sink, State, Stream, StreamKind};
use crate::{
    Flow, PacketNames, PacketStep, Step, StepSink, StreamStep, WaitOperand, WaitRelation, WaitStep, Work,
    WorkKind,
};
use unwedge_hw::amd::Amd;

/// Makes steps of the walker's events, and hands them on.
#[derive(Debug)]
pub struct Steps<'d, S> {
    names: Names<'d>,
    /// Who receives them.
    pub sink: S,
}

/// Names packets of one engine.
#[derive(Debug)]
struct Names<'d> {
    amd: Amd<'d>,
    engine: Engine,
}

impl<'d, S: StepSink> Steps<'d, S> {
    /// Steps of streams of an engine.
    pub fn new(amd: Amd<'d>, engine: Engine, sink: S) -> Steps<'d, S> {
        Steps { names: Names { amd, engine }, sink }
    }
}

impl PacketNames for Names<'_> {
    fn name_of(&self, packet: &PacketStep<'_>) -> Option<&str> {
        match self.engine {
            Engine::Sdma => Some(self.amd.sdma_packet(packet.header)?.name()),
            Engine::Gfx | Engine::Compute => self.amd.packet_name(packet.opcode?),
        }
    }
}

fn packet<'e>(names: &'e Names<'_>, packet: &Packet<'e>) -> PacketStep<'e> {
    let opcode = match packet.header {
        Header::Type3 { opcode, .. } => Some(opcode),
        Header::Dma { op, .. } => Some(op),
        Header::Type0 { .. } | Header::Type2 => None,
    };
    let Packet { place, raw: header, payload, exec, .. } = *packet;
    PacketStep { place, header, opcode, payload, exec, names }
}

fn stream<'e>(stream: &Stream<'e>) -> StreamStep<'e> {
    let kind = match stream.kind {
        StreamKind::Call => crate::StreamKind::Call,
        StreamKind::Chain => crate::StreamKind::Chain,
        StreamKind::Constant => crate::StreamKind::Beside,
    };
    let Stream { level, iova, claimed, dwords, exec, .. } = *stream;
    StreamStep { kind, level, iova: Some(iova), claimed: Some(claimed.into()), dwords, exec }
}

impl From<&Draw<'_>> for Work {
    fn from(draw: &Draw<'_>) -> Work {
        let kind = match draw.kind {
            DrawKind::Draw | DrawKind::Mesh => WorkKind::Draw,
            DrawKind::Task | DrawKind::Dispatch => WorkKind::Dispatch,
        };
        let Draw { number, count, .. } = *draw;
        let place = draw.packet.place;
        Work { number, kind, place, primitive: None, count, instances: None, event: None, indirect: None }
    }
}

impl<S: StepSink> Sink for Steps<'_, S> {
    fn event(&mut self, state: &State, event: &Event<'_>) -> Flow {
        let step = match event {
            Event::Packet(met) => Step::Packet(packet(&self.names, met)),
            Event::RegWrite(write) => Step::Write(*write),
            Event::Enter(entered) => Step::Enter(stream(entered)),
            Event::Leave(left) => Step::Leave(stream(left)),
            Event::Missing(missing) => Step::Missing(stream(missing)),
            Event::Draw(draw) => Step::Work(Work::from(draw)),
            Event::Wait(packet, wait) => Step::Wait(WaitStep {
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
            Event::Trouble(trouble) => Step::Trouble(*trouble),
            Event::TracePoint(..) => return Flow::Continue,
        };
        self.sink.step(&state.regs, &step)
    }
}
