//! Steps of Adreno streams.

use super::header::AdrenoPacketHeader;
use super::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoStreamKind, Draw, NestedStream, Packet, Pass, Wait,
};
use crate::{Flow, PacketNames, PacketStep, Step, StepSink, StreamStep, StreamWork, WaitStep};
use unwedge_base::Generation;
use unwedge_hw::Gpu;

/// Makes steps of the walker's events, and hands them on.
#[derive(Debug)]
pub struct AdrenoSteps<'g, S> {
    gpu: Gpu<'g>,
    /// Who receives them.
    pub sink: S,
}

impl<'g, S: StepSink> AdrenoSteps<'g, S> {
    /// Steps of streams of this GPU.
    pub fn new(gpu: Gpu<'g>, sink: S) -> AdrenoSteps<'g, S> {
        AdrenoSteps { gpu, sink }
    }
}

impl PacketNames for Gpu<'_> {
    fn name_of(&self, packet: &PacketStep<'_>) -> Option<&str> {
        self.packet_name(packet.opcode?)
    }
}

fn packet<'e>(gpu: &'e Gpu<'_>, packet: &Packet<'e>) -> PacketStep<'e> {
    let opcode = match packet.header {
        AdrenoPacketHeader::Operation { opcode, .. } => Some(opcode),
        AdrenoPacketHeader::Registers { .. } | AdrenoPacketHeader::Padding => None,
    };
    let Packet { place, raw: header, payload, exec, .. } = *packet;
    PacketStep { place, header, opcode, payload, exec, names: gpu }
}

fn stream<'e>(stream: &NestedStream<'e>) -> StreamStep<'e> {
    let kind = match stream.kind {
        AdrenoStreamKind::Indirect | AdrenoStreamKind::Embedded => crate::StreamKind::Call,
        AdrenoStreamKind::Group { .. } | AdrenoStreamKind::Amble | AdrenoStreamKind::Mode => {
            crate::StreamKind::State
        }
        AdrenoStreamKind::Bin { .. } | AdrenoStreamKind::DrawTable { .. } => crate::StreamKind::Repeat,
    };
    let NestedStream { level, iova, claimed, dwords, exec, .. } = *stream;
    StreamStep { kind, level, iova, claimed: Some(claimed), dwords, exec }
}

fn wait(packet: &Packet<'_>, generation: Generation) -> Option<Wait> {
    let mut words = [0; Wait::DWORDS];
    let present = words.iter_mut().zip(packet.payload.iter()).map(|(word, dword)| *word = dword).count();
    Wait::parse(packet.op, words.get(..present)?, generation)
}

impl From<&Draw<'_>> for StreamWork {
    fn from(draw: &Draw<'_>) -> StreamWork {
        let Draw { number, kind, primitive, count, instances, event, indirect, .. } = *draw;
        StreamWork { number, kind, place: draw.packet.place, primitive, count, instances, event, indirect }
    }
}

impl<S: StepSink> AdrenoSink for AdrenoSteps<'_, S> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        let regs = state.current_regs();
        let step = match event {
            AdrenoEvent::Packet(met) => {
                self.sink.step(regs, &Step::Packet(packet(&self.gpu, met)));
                if matches!(met.op, AdrenoOp::WaitRegMem | AdrenoOp::WaitMemGte)
                    && let Some(wait) = wait(met, self.gpu.generation())
                {
                    let wait = WaitStep {
                        place: met.place,
                        operand: wait.operand,
                        relation: wait.relation(),
                        reference: wait.reference.into(),
                        mask: wait.mask.into(),
                        exec: met.exec,
                    };
                    self.sink.step(regs, &Step::Wait(wait));
                }
                return Flow::Continue;
            }
            AdrenoEvent::RegWrite(write) => Step::Write(*write),
            AdrenoEvent::Enter(entered) => Step::Enter(stream(entered)),
            AdrenoEvent::Leave(left) => Step::Leave(stream(left)),
            AdrenoEvent::Missing(missing) => Step::Missing(stream(missing)),
            // The other passes of a draw are for comparing them.
            AdrenoEvent::Draw(draw) if draw.pass == Pass::Current => Step::Work(StreamWork::from(draw)),
            AdrenoEvent::Trouble(trouble) => Step::Trouble(*trouble),
            AdrenoEvent::PacketEnd(_)
            | AdrenoEvent::Group(_)
            | AdrenoEvent::LoadState(_)
            | AdrenoEvent::Draw(_) => {
                return Flow::Continue;
            }
        };
        self.sink.step(regs, &step)
    }
}
