//! Steps of Adreno streams.

use super::header::Header;
use super::{Draw, Event, Op, Packet, Pass, Sink, State, Stream, StreamKind, Wait};
use crate::{Flow, PacketNames, PacketStep, Step, StepSink, StreamStep, WaitStep, Work};
use unwedge_base::Generation;
use unwedge_hw::Gpu;

/// Makes steps of the walker's events, and hands them on.
#[derive(Debug)]
pub struct Steps<'g, S> {
    gpu: Gpu<'g>,
    /// Who receives them.
    pub sink: S,
}

impl<'g, S: StepSink> Steps<'g, S> {
    /// Steps of streams of this GPU.
    pub fn new(gpu: Gpu<'g>, sink: S) -> Steps<'g, S> {
        Steps { gpu, sink }
    }
}

impl PacketNames for Gpu<'_> {
    fn name_of(&self, packet: &PacketStep<'_>) -> Option<&str> {
        self.packet_name(packet.opcode?)
    }
}

fn packet<'e>(gpu: &'e Gpu<'_>, packet: &Packet<'e>) -> PacketStep<'e> {
    let opcode = match packet.header {
        Header::Operation { opcode, .. } => Some(opcode),
        Header::Registers { .. } | Header::Padding => None,
    };
    let Packet { place, raw: header, payload, exec, .. } = *packet;
    PacketStep { place, header, opcode, payload, exec, names: gpu }
}

fn stream<'e>(stream: &Stream<'e>) -> StreamStep<'e> {
    let kind = match stream.kind {
        StreamKind::Indirect | StreamKind::Embedded => crate::StreamKind::Call,
        StreamKind::Group { .. } | StreamKind::Amble | StreamKind::Mode => crate::StreamKind::State,
        StreamKind::Bin { .. } | StreamKind::DrawTable { .. } => crate::StreamKind::Repeat,
    };
    let Stream { level, iova, claimed, dwords, exec, .. } = *stream;
    StreamStep { kind, level, iova, claimed: Some(claimed), dwords, exec }
}

fn wait(packet: &Packet<'_>, generation: Generation) -> Option<Wait> {
    let mut words = [0; Wait::DWORDS];
    let present = words.iter_mut().zip(packet.payload.iter()).map(|(word, dword)| *word = dword).count();
    Wait::parse(packet.op, words.get(..present)?, generation)
}

impl From<&Draw<'_>> for Work {
    fn from(draw: &Draw<'_>) -> Work {
        let Draw { number, kind, primitive, count, instances, event, indirect, .. } = *draw;
        Work { number, kind, place: draw.packet.place, primitive, count, instances, event, indirect }
    }
}

impl<S: StepSink> Sink for Steps<'_, S> {
    fn event(&mut self, state: &State, event: &Event<'_>) -> Flow {
        let regs = state.current_regs();
        let step = match event {
            Event::Packet(met) => {
                self.sink.step(regs, &Step::Packet(packet(&self.gpu, met)));
                if matches!(met.op, Op::WaitRegMem | Op::WaitMemGte)
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
            Event::RegWrite(write) => Step::Write(*write),
            Event::Enter(entered) => Step::Enter(stream(entered)),
            Event::Leave(left) => Step::Leave(stream(left)),
            Event::Missing(missing) => Step::Missing(stream(missing)),
            // The other passes of a draw are for comparing them.
            Event::Draw(draw) if draw.pass == Pass::Current => Step::Work(Work::from(draw)),
            Event::Trouble(trouble) => Step::Trouble(*trouble),
            Event::PacketEnd(_) | Event::Group(_) | Event::LoadState(_) | Event::Draw(_) => {
                return Flow::Continue;
            }
        };
        self.sink.step(regs, &step)
    }
}
