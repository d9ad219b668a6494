//! What the SQE writes to the clusters for an event, a draw, a dispatch, a blit, and for CP_WAIT_FOR_IDLE.
//!
//! The registers of a draw's own parameters are not among them: which those are is not known.

use super::{Chunk, ClusterQueues, ContextSet, Entry, QueuedWork};
use crate::adreno::machine::is_two_d;
use unwedge_base::Generation;
use unwedge_hw::adreno::mempool::QueuedWrite;
use unwedge_hw::{Gpu, RegSpace};

/// What an event writes when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventWrite {
    pub(crate) iova: u64,
    pub(crate) data: u64,
    /// EVENT_TS_CTRL.
    pub(crate) control: u32,
}

/// Work that the SQE sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentWork {
    Draw,
    Dispatch,
    /// An event of this number.
    Event(u8, Option<EventWrite>),
    /// A blit of CP_BLIT's operation.
    Blit(u32),
}

/// EVENT_TYPE of the CP's pipe register EVENT_CMD.
mod event_type {
    pub(super) const EVENT: u32 = 1;
    pub(super) const DRAW: u32 = 2;
    pub(super) const DISPATCH: u32 = 3;
    /// a7xx.
    pub(super) const BLIT: u32 = 4;
}

/// Clusters that work goes through.
mod path {
    pub(super) const DRAW: &[&str] = &["FE", "SP_VS", "PC_VS", "GRAS", "SP_PS", "VPC_PS", "PS"];
    pub(super) const DISPATCH: &[&str] = &["FE", "SP_PS", "PS"];
    pub(super) const BLIT: &[&str] = &["FE", "GRAS", "SP_PS", "PS"];
}

/// Registers with commands, where the GPU has them.
#[derive(Clone, Debug)]
pub(super) struct CommandRegisters {
    newer: bool,
    start: Option<u32>,
    end: Option<u32>,
    start_2d: Option<u32>,
    end_2d: Option<u32>,
    draw: [Option<u32>; 2],
    dispatch: [Option<u32>; 2],
    event: [Option<u32>; 2],
    blit: [Option<u32>; 2],
    context_done: u32,
    context_done_2d: u32,
    first_blit_event: u32,
    event_command: Option<u32>,
    event_address: Option<u32>,
    event_control: Option<u32>,
    event_data: Option<u32>,
    /// The wait for everything before it; whether it is one of the CP's pipe registers.
    wait: Option<(u32, bool)>,
    wait_over: Option<u32>,
    two_d: Vec<u32>,
}

impl CommandRegisters {
    pub(super) fn new(gpu: Gpu<'_>, by_pipe: bool) -> CommandRegisters {
        let reg = |name: &str| gpu.reg_offset(name);
        let pipe = |name: &str| gpu.space(RegSpace::CpPipe).offset_of(name);
        // The clusters that do the work know its command by another name than those that fetch for it.
        let pair = |name: &str| ["PC_", "HLSQ_"].map(|block| reg(&format!("{block}{name}")));
        let events = gpu.enumeration("vgt_event_type");
        let event = |name: &str| events.and_then(|events| events.value_of(name)).unwrap_or(0) as u32;
        let wait = match by_pipe {
            true => pipe("WAIT_FOR_IDLE").map(|at| (at, true)),
            false => reg("RBBM_WAIT_FOR_GPU_IDLE_CMD").map(|at| (at, false)),
        };
        const FIRST: u32 = 0x8000;
        const LAST: u32 = 0xc000;
        CommandRegisters {
            newer: gpu.generation() >= Generation::A7xx,
            start: reg("CP_EVENT_START"),
            end: reg("CP_EVENT_END"),
            start_2d: reg("CP_2D_EVENT_START"),
            end_2d: reg("CP_2D_EVENT_END"),
            draw: pair("DRAW_CMD"),
            dispatch: pair("DISPATCH_CMD"),
            event: pair("EVENT_CMD"),
            blit: pair("2D_EVENT_CMD"),
            context_done: event("CONTEXT_DONE"),
            context_done_2d: event("CONTEXT_DONE_2D"),
            first_blit_event: event("BLIT_OP_FILL_2D"),
            event_command: pipe("EVENT_CMD"),
            event_address: pipe("EVENT_TS_ADDR"),
            event_control: pipe("EVENT_TS_CTRL"),
            event_data: pipe("EVENT_TS_DATA"),
            wait,
            wait_over: pipe("WFI_PEND_DECR"),
            two_d: (FIRST..LAST).filter(|&reg| is_two_d(gpu, reg)).collect(),
        }
    }

    /// Whether a register is one of the 2D engine's.
    pub(super) fn is_two_d(&self, reg: u32) -> bool {
        self.two_d.binary_search(&reg).is_ok()
    }

    /// What goes to the CP's pipe registers for work: registers and values, in order.
    fn pipe(&self, sent: SentWork) -> Vec<(u32, u32)> {
        let Some(command) = self.event_command else { return Vec::new() };
        let written = match sent {
            SentWork::Event(_, written) => written,
            _ => None,
        };
        let ty = match sent {
            SentWork::Draw => event_type::DRAW,
            SentWork::Dispatch => event_type::DISPATCH,
            SentWork::Blit(_) if self.newer => event_type::BLIT,
            SentWork::Event(..) | SentWork::Blit(_) => event_type::EVENT,
        };
        // TS_WRITE, a7xx: TS_WRITE_COUNT.
        let writes = written.map_or(0, |_| if self.newer { 1 << 3 } else { 1 << 2 });
        let mut out = vec![(command, ty | writes)];
        let registers = (self.event_address, self.event_control, self.event_data);
        if let (Some(written), (Some(address), Some(control), Some(data))) = (written, registers) {
            out.extend([(address, written.iova as u32), (address + 1, (written.iova >> 32) as u32)]);
            out.extend([(control, written.control), (data, written.data as u32)]);
            if self.newer {
                out.push((data + 1, (written.data >> 32) as u32));
            }
        }
        out
    }
}

impl ClusterQueues {
    /// Sends work to all clusters: its start, its commands and its end, after which the SQE writes to the next context.
    pub(crate) fn send(&mut self, sent: SentWork) {
        let set = if matches!(sent, SentWork::Blit(_)) { ContextSet::TwoD } else { ContextSet::ThreeD };
        let (context, state) = self.contexts[set as usize];
        let number = self.work.len();
        let path = match sent {
            SentWork::Draw | SentWork::Event(..) => path::DRAW,
            SentWork::Dispatch => path::DISPATCH,
            SentWork::Blit(_) => path::BLIT,
        };
        let previous = self.work.iter().rposition(|work| work.set == set);
        self.work.push(QueuedWork { set, context, previous, path, stuck_in: None });
        let commands = self.commands.clone();
        for (reg, value) in commands.pipe(sent) {
            self.push_to("PS", Entry::Command(QueuedWrite { reg, value, context: 0, pipe: true }));
        }
        let (start, end) = match set {
            ContextSet::ThreeD => (commands.start, commands.end),
            ContextSet::TwoD => (commands.start_2d, commands.end_2d),
        };
        let state = u32::from(state);
        let write = |reg: u32, value: u32| QueuedWrite { reg, value, context, pipe: false };
        for at in 0..self.clusters.len() {
            self.push(at, Entry::Start(write(start.unwrap_or(0), state), number));
        }
        let (registers, command, done) = match sent {
            SentWork::Draw => (commands.draw, state, None),
            SentWork::Dispatch => (commands.dispatch, state, None),
            SentWork::Event(event, _) => (commands.event, state << 16 | u32::from(event & 0x7f), None),
            SentWork::Blit(op) => {
                let event = commands.first_blit_event + (op & 0xf);
                let done =
                    commands.blit.map(|reg| reg.map(|reg| (reg, state << 8 | commands.context_done_2d)));
                (commands.blit, state << 8 | event & 0x7f, Some(done))
            }
        };
        let done = done.unwrap_or_else(|| {
            commands.event.map(|reg| reg.map(|reg| (reg, state << 16 | commands.context_done)))
        });
        for (cluster, (reg, done)) in ["FE", "SP_PS"].into_iter().zip(registers.into_iter().zip(done)) {
            let command = reg.map(|reg| (reg, command));
            for (reg, value) in command.into_iter().chain(done) {
                self.push_to(cluster, Entry::Command(write(reg, value)));
            }
        }
        for at in 0..self.clusters.len() {
            self.push(at, Entry::End(write(end.unwrap_or(0), state), number));
        }
        let (context, state) = &mut self.contexts[set as usize];
        (*context, *state) = (*context ^ 1, state.wrapping_add(1));
    }

    /// CP_WAIT_FOR_IDLE: PS waits for everything, the others for PS.
    pub(crate) fn wait_for_idle(&mut self) {
        let (context, _) = self.contexts[ContextSet::ThreeD as usize];
        self.each_chunk(false);
        let command = |reg: u32, pipe: bool| QueuedWrite { reg, value: 1, context, pipe };
        if let Some((reg, pipe)) = self.commands.wait {
            self.push_to("PS", Entry::Idle(command(reg, pipe)));
        }
        if let Some(reg) = self.commands.wait_over {
            self.push_to("PS", Entry::Command(QueuedWrite { context: 0, ..command(reg, true) }));
        }
        self.each_chunk(true);
    }

    /// A chunk without writes for every cluster.
    fn each_chunk(&mut self, barrier: bool) {
        for cluster in &mut self.clusters {
            cluster.flush();
            cluster.queue.push_back(Chunk { entries: [None, None], barrier });
        }
    }
}
