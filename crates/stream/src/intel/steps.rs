//! Steps of Intel's streams.

use super::commands::{Command, Decoder};
use super::registers::{IntelNames, MAX_DWORDS, REGISTERS, mmio};
use super::state::IntelWorkKind as WorkRole;
use super::walk::{BatchEntry, EventKind, IntelEvent, IntelWalk, Spaces};
use crate::{
    Exec, Flow, PacketNames, PacketStep, RegWrite, Registers, Step, StepSink, StreamKind, StreamPos,
    StreamStep, StreamWork, Trouble, TroubleKind, WaitOperand, WaitRelation, WaitStep, WorkKind,
};
use std::collections::HashMap;
use unwedge_base::Dwords;
use unwedge_hw::intel::{IntelInstruction, IntelValue};

impl PacketNames for Decoder {
    fn name_of(&self, packet: &PacketStep<'_>) -> Option<&str> {
        self.gpu.instruction(packet.header, self.engine).map(IntelInstruction::name)
    }
}

/// What a command means for registers; found out once per command of the tables.
#[derive(Clone, Copy, Debug)]
enum Role {
    LoadImmediate,
    LoadOther,
    Semaphore,
    Work(WorkKind),
    /// It sets state: the number of its first dword.
    State(u32),
    Other,
}

/// Walks streams, keeping registers from one to the next, and makes steps of what is met.
#[derive(Debug)]
pub struct IntelSteps<'m> {
    decoder: Decoder,
    spaces: Spaces<'m>,
    names: IntelNames,
    regs: Registers,
    roles: HashMap<IntelInstruction, Role>,
    works: u32,
    /// Streams that are being walked, the outermost first.
    open: Vec<StreamStep<'m>>,
    /// A stream of this level was skipped, and what is in it is not shown.
    skipped: Option<u8>,
    /// The stream's first address at each level: positions count from it.
    starts: Vec<u64>,
}

impl<'m> IntelSteps<'m> {
    /// Nothing written yet.
    pub fn new(decoder: Decoder, spaces: Spaces<'m>) -> IntelSteps<'m> {
        IntelSteps {
            decoder,
            spaces,
            names: IntelNames::new(decoder.gpu),
            regs: Registers::new(REGISTERS),
            roles: HashMap::new(),
            works: 0,
            open: Vec::new(),
            skipped: None,
            starts: Vec::new(),
        }
    }

    /// Names of registers, as [`Registers`] numbers them here.
    pub fn names(&self) -> &IntelNames {
        &self.names
    }

    /// Hands on what a walk meets. The stream it starts in is not entered.
    pub fn walk(&mut self, walk: IntelWalk<'m>, sink: &mut dyn StepSink) {
        self.starts.clear();
        self.skipped = None;
        for event in walk {
            self.event(&event, sink);
        }
        self.leave(0, sink);
    }

    fn event(&mut self, event: &IntelEvent<'m>, sink: &mut dyn StepSink) {
        if self.skipped.is_some_and(|level| event.level >= level) {
            return;
        }
        self.skipped = None;
        self.leave(event.level, sink);
        let place = self.place(event);
        let trouble = |kind| Step::Trouble(Trouble { place, kind });
        match event.kind {
            EventKind::Command(command) => self.command(command, place, sink),
            EventKind::Noops(count) => self.noops(event, count, place, sink),
            EventKind::End => {}
            EventKind::Unknown(words) => {
                let raw = words.first().copied().unwrap_or_default();
                let kind = TroubleKind::BadHeader { raw, skipped: words.len(), resynced: true };
                sink.step(&self.regs, &trouble(kind));
            }
            EventKind::Enter(BatchEntry { from: None, .. }) => self.start(event.level, event.address),
            EventKind::Enter(entry) => self.enter(event, entry, sink),
            EventKind::Absent => {
                // Where a batch is entered that is not there, it is the batch that is missing.
                let stream = self.stream(event, StreamKind::Call, Exec::Always);
                sink.step(&self.regs, &Step::Missing(stream));
            }
            EventKind::Loop => {}
            EventKind::TooDeep => {
                sink.step(&self.regs, &trouble(TroubleKind::TooDeep));
            }
            EventKind::Budget => {
                sink.step(&self.regs, &trouble(TroubleKind::BudgetSpent));
            }
        }
    }

    /// MI_NOOP, so many in a row: one packet.
    fn noops(&mut self, event: &IntelEvent<'m>, count: u32, place: StreamPos, sink: &mut dyn StepSink) {
        let words = self.spaces.words(event.space, event.address).unwrap_or_default();
        let payload = Dwords::from(words).take(count as usize).skip(1);
        let (header, exec) = (0, Exec::Always);
        let packet = PacketStep { place, header, opcode: None, payload, exec, names: &self.decoder };
        sink.step(&self.regs, &Step::Packet(packet));
    }

    fn start(&mut self, level: u8, address: u64) {
        self.starts.resize(usize::from(level) + 1, address);
        if let Some(start) = self.starts.get_mut(usize::from(level)) {
            *start = address;
        }
    }

    fn place(&mut self, event: &IntelEvent<'_>) -> StreamPos {
        if self.starts.len() <= usize::from(event.level) {
            self.start(event.level, event.address);
        }
        let start = self.starts.get(usize::from(event.level)).copied().unwrap_or(event.address);
        let index = (event.address.wrapping_sub(start) / 4) as usize;
        StreamPos { level: event.level, iova: Some(event.address), index }
    }

    fn stream(&self, event: &IntelEvent<'_>, kind: StreamKind, exec: Exec) -> StreamStep<'m> {
        let words = self.spaces.words(event.space, event.address).unwrap_or_default();
        let (level, iova) = (event.level, Some(event.address));
        StreamStep { kind, level, iova, claimed: None, dwords: Dwords::from(words), exec }
    }

    fn enter(&mut self, event: &IntelEvent<'m>, entry: BatchEntry, sink: &mut dyn StepSink) {
        let kind = if entry.returns { StreamKind::Call } else { StreamKind::Chain };
        let exec = if entry.predicated { Exec::Unknown } else { Exec::Always };
        let stream = self.stream(event, kind, exec);
        if sink.step(&self.regs, &Step::Enter(stream)) == Flow::Skip {
            self.skipped = Some(event.level);
            return;
        }
        self.start(event.level, event.address);
        self.open.push(stream);
    }

    /// Leaves the streams that are deeper than a level.
    fn leave(&mut self, level: u8, sink: &mut dyn StepSink) {
        while let Some(stream) = self.open.pop_if(|stream| stream.level > level) {
            self.starts.truncate(usize::from(stream.level));
            sink.step(&self.regs, &Step::Leave(stream));
        }
    }

    fn role(&mut self, instruction: IntelInstruction) -> Role {
        let names = &self.names;
        *self.roles.entry(instruction).or_insert_with(|| match instruction.name() {
            "MI_LOAD_REGISTER_IMM" => Role::LoadImmediate,
            "MI_LOAD_REGISTER_MEM" | "MI_LOAD_REGISTER_REG" => Role::LoadOther,
            "MI_SEMAPHORE_WAIT" => Role::Semaphore,
            name => match WorkRole::of(name) {
                Some(WorkRole::Draw) => Role::Work(WorkKind::Draw),
                Some(WorkRole::Dispatch) => Role::Work(WorkKind::Dispatch),
                Some(WorkRole::Blit) => Role::Work(WorkKind::Blit),
                None if name.starts_with("MI_") || name == "PIPE_CONTROL" => Role::Other,
                None => names.number_of(instruction).map_or(Role::Other, Role::State),
            },
        })
    }

    fn command(&mut self, command: Command<'m>, place: StreamPos, sink: &mut dyn StepSink) {
        let (header, exec) = (command.header(), Exec::Always);
        let payload = Dwords::from(command.words).skip(1);
        let packet = PacketStep { place, header, opcode: None, payload, exec, names: &self.decoder };
        sink.step(&self.regs, &Step::Packet(packet));
        if command.is_cut() {
            let kind = TroubleKind::CutPacket {
                claimed: command.length.saturating_sub(1),
                present: (command.words.len() as u32).saturating_sub(1),
            };
            sink.step(&self.regs, &Step::Trouble(Trouble { place, kind }));
        }
        let Some(instruction) = command.instruction else { return };
        match self.role(instruction) {
            Role::Other => {}
            Role::LoadImmediate => {
                for (i, pair) in command.words.get(1..).unwrap_or_default().chunks_exact(2).enumerate() {
                    if let &[offset, value] = pair {
                        self.write(mmio(offset & 0x7f_fffc), value, after(place, 2 + 2 * i), sink);
                    }
                }
            }
            Role::LoadOther => {
                let to = if instruction.name() == "MI_LOAD_REGISTER_REG" { 2 } else { 1 };
                if let Some(&offset) = command.words.get(to) {
                    self.regs.forget(mmio(offset & 0x7f_fffc));
                }
            }
            Role::Semaphore => {
                if let Some(wait) = semaphore(&command, place) {
                    sink.step(&self.regs, &Step::Wait(wait));
                }
            }
            Role::State(first) => self.state(&command, first, place, sink),
            Role::Work(kind) => {
                // What a piece of work is asked to do is in its command, which its registers include.
                if let Some(first) = self.names.number_of(instruction) {
                    self.state(&command, first, place, sink);
                }
                self.work(&command, instruction, kind, place, sink);
            }
        }
    }

    fn state(&mut self, command: &Command<'_>, first: u32, place: StreamPos, sink: &mut dyn StepSink) {
        for (i, &value) in command.words.iter().enumerate().take(MAX_DWORDS as usize) {
            self.write(first + i as u32, value, after(place, i), sink);
        }
    }

    fn work(
        &mut self,
        command: &Command<'_>,
        instruction: IntelInstruction,
        kind: WorkKind,
        place: StreamPos,
        sink: &mut dyn StepSink,
    ) {
        let field = |name: &str| {
            let number = instruction.layout().value(name, command.words).and_then(IntelValue::number)?;
            u32::try_from(number).ok()
        };
        let draw = kind == WorkKind::Draw;
        let indirect = field("Indirect Parameter Enable") == Some(1);
        let counted = |name: &str| field(name).filter(|_| draw && !indirect);
        let work = StreamWork {
            number: self.works,
            kind,
            place,
            primitive: field("Primitive Topology Type").filter(|_| draw),
            count: counted("Vertex Count Per Instance"),
            instances: counted("Instance Count"),
            event: None,
            indirect: None,
        };
        sink.step(&self.regs, &Step::Work(work));
        self.regs.mark_draw();
        self.works = self.works.saturating_add(1);
    }

    fn write(&mut self, reg: u32, value: u32, place: StreamPos, sink: &mut dyn StepSink) {
        self.regs.set(reg, value);
        sink.step(&self.regs, &Step::Write(RegWrite { reg, value, place, exec: Exec::Always }));
    }
}

/// So many dwords after a position.
fn after(place: StreamPos, dwords: usize) -> StreamPos {
    StreamPos {
        index: place.index.saturating_add(dwords),
        iova: place.iova.map(|iova| iova.saturating_add(dwords as u64 * 4)),
        ..place
    }
}

/// MI_SEMAPHORE_WAIT: the polled value against that of the command.
fn semaphore(command: &Command<'_>, place: StreamPos) -> Option<WaitStep> {
    let &[header, reference, low, ..] = command.words else { return None };
    let high = command.words.get(3).copied().unwrap_or_default();
    let address = super::walk::canonical(u64::from(high) << 32 | u64::from(low & !3));
    let polls = command.instruction?.layout().value("Register Poll Mode", command.words);
    let operand = match polls {
        Some(IntelValue::Bool(true)) => WaitOperand::Register(mmio(low & 0x7f_fffc)),
        _ => WaitOperand::Memory(address),
    };
    let relation = match header >> 12 & 7 {
        0 => Some(WaitRelation::Greater),
        1 => Some(WaitRelation::GreaterEqual),
        2 => Some(WaitRelation::Less),
        3 => Some(WaitRelation::LessEqual),
        4 => Some(WaitRelation::Equal),
        5 => Some(WaitRelation::NotEqual),
        _ => None,
    };
    let mask = u64::from(u32::MAX);
    Some(WaitStep { place, operand, relation, reference: reference.into(), mask, exec: Exec::Always })
}
