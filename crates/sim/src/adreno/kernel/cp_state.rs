//! The command processor as the CPU reads it: registers of what it fetches, the ROQ, the SQE, the queues of clusters, and
//! which blocks are busy.
//!
//! The fetcher is ahead of the SQE by as much as a queue holds, and goes on into the buffers that are called next. The SQE runs
//! no firmware: of its state there are the headers it remembers, and its program counter is 0. Facts: a recorded hang of an
//! a618, whose queues hold the rest of one buffer and the start of the next.

use super::ring::{RING, RING_SIZE};
use crate::adreno::cp::{CpThread, QUEUES};
use crate::adreno::machine::{AdrenoMachine, WorkUnit};
use crate::adreno::space::Client;
use crate::adreno::{CpErrorKind, CpStop, GpuFault, RunEnd, ThreadId};
use std::collections::BTreeMap;
use unwedge_base::{Dwords, Generation};
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::payload::IndirectBuffer;
use unwedge_stream::adreno::read_ahead::READ_AHEAD;

/// Names of the queues in registers.
const LEVELS: [&str; QUEUES] = ["RB", "IB1", "IB2", "SDS"];
/// Where CP_SQE_STAT has the header of the operation in work, or last in work; those before it follow.
const SQE_HEADERS: usize = 36;

/// What is in a queue of the ROQ.
#[derive(Clone, Debug, Default)]
struct QueueState {
    base: u64,
    dwords: u64,
    /// Dwords that the SQE has taken, over all buffers.
    taken: u64,
    /// Dwords of the current buffer that are not fetched.
    unfetched: u64,
    /// Dwords that are fetched and not taken, and their contents.
    fetched: Vec<u32>,
    /// Dwords taken last, the newest last.
    before: Vec<u32>,
    /// The first dword that is not taken is inside of a packet.
    in_packet: bool,
}

/// The operations of a stretch of a stream that begins with a packet, with their payloads, up to what is not a whole packet.
fn operations<'w>(
    machine: &AdrenoMachine<'_>,
    words: &'w [u32],
) -> impl Iterator<Item = (AdrenoOp, &'w [u32])> {
    let mut rest = words;
    std::iter::from_fn(move || {
        loop {
            let (header, payload) = rest.split_first()?;
            let header = AdrenoPacketHeader::decode(*header, machine.generation)?;
            let (payload, after) = payload.split_at_checked(header.count() as usize)?;
            rest = after;
            if let AdrenoPacketHeader::Operation { opcode, .. } = header {
                return Some((machine.operation(opcode), payload));
            }
        }
    })
}

/// Whether a stretch of a stream goes on in another buffer.
fn chains(machine: &AdrenoMachine<'_>, words: &[u32]) -> bool {
    operations(machine, words).any(|(op, _)| op == AdrenoOp::IndirectBufferChain)
}

/// Address and dwords of the streams that are called next, up to the first packet that may change what is called: whether the fetcher
/// goes past a condition is not known.
fn calls(machine: &AdrenoMachine<'_>, words: &[u32]) -> Vec<(u64, u64)> {
    let surely = |op: AdrenoOp| {
        !matches!(
            op,
            AdrenoOp::CondRegExec
                | AdrenoOp::CondExec
                | AdrenoOp::IndirectBufferPfd
                | AdrenoOp::IndirectBufferChain
                | AdrenoOp::StartBin
                | AdrenoOp::EndBin
                | AdrenoOp::FixedStrideDrawTable
        )
    };
    let calls = operations(machine, words).take_while(|(op, _)| surely(*op));
    let calls = calls.filter_map(|call| match call {
        (AdrenoOp::IndirectBuffer, payload) => {
            let payload = Dwords::new(payload, payload.len());
            let called = IndirectBuffer::parse(payload, machine.adreno().generation)?;
            Some((called.iova, u64::from(called.dwords()))).filter(|(_, dwords)| *dwords > 0)
        }
        _ => None,
    });
    calls.take(READ_AHEAD - 1).collect()
}

/// The CP at a stop.
pub(super) struct CpState {
    queues: [QueueState; QUEUES],
    header: u32,
    headers: [u32; 3],
    /// First dword of each queue in the ROQ, and its end.
    bounds: [u64; QUEUES + 1],
}

impl CpState {
    pub(super) fn of(machine: &AdrenoMachine<'_>, id: ThreadId, thresholds: [u32; 2]) -> CpState {
        let [first, second] = thresholds.map(u64::from);
        let bounds = [0, first >> 16 & 0xff, first >> 24, second & 0x1ff, second >> 16].map(|at| at * 4);
        let thread = machine.thread(id);
        let mut queues: [QueueState; QUEUES] = std::array::from_fn(|n| {
            let fetch = thread.fetches[n];
            QueueState { base: fetch.base, dwords: fetch.dwords, taken: fetch.taken, ..QueueState::default() }
        });
        for (depth, frame) in thread.frames.iter().enumerate() {
            let Some(n) = frame.queue() else { continue };
            let work = thread.work;
            let mut next = frame.next.saturating_add(4 * frame.held);
            // A packet that was never gone through is taken as far as its dwords came.
            let partly = if work.depth == depth + 1 && work.start == frame.next { work.dwords } else { 0 };
            if frame.held == 0 {
                next = next.saturating_add(4 * partly);
            }
            let size = bounds[n + 1] - bounds[n];
            let left = frame.end.saturating_sub(next) / 4;
            let read =
                |at: u64| machine.space.memory.load(frame.place(at), 4).known().map(|word| word as u32);
            let queue = &mut queues[n];
            queue.fetched = (0..left.min(size)).map_while(|n| read(next + 4 * n)).collect();
            let taken = next.saturating_sub(frame.base) / 4;
            queue.before = (1..=taken.min(size)).rev().map_while(|n| read(next - 4 * n)).collect();
            queue.unfetched = left - queue.fetched.len() as u64;
            let header = read(frame.next).and_then(|raw| AdrenoPacketHeader::decode(raw, machine.generation));
            let packet = header.map_or(u64::MAX, |header| 1 + u64::from(header.count()));
            queue.in_packet = partly != 0 && partly != packet;
            queue.dwords = (frame.end - frame.base) / 4;
            queue.base = frame.base;
            if frame.held == 0 {
                queue.taken += partly;
            }
        }
        let mut state = CpState { queues, header: thread.header, headers: thread.headers, bounds };
        state.read_ahead(machine);
        state
    }

    /// Fetches the buffers that are called after those that the SQE is in, and drops the dwords that they replace in the queues.
    fn read_ahead(&mut self, machine: &AdrenoMachine<'_>) {
        for n in [1, 2] {
            let size = self.bounds[n + 1].saturating_sub(self.bounds[n]);
            let around = &self.queues[n - 1];
            let called = if around.in_packet { Vec::new() } else { calls(machine, &around.fetched) };
            let queue = &mut self.queues[n];
            let mut current = 0;
            for (base, dwords) in called {
                let room = size.saturating_sub(queue.fetched.len() as u64);
                // The buffer that a chain goes to comes first.
                let chains = chains(machine, &queue.fetched[current..]);
                if room == 0 || queue.unfetched > 0 || queue.in_packet || chains {
                    break;
                }
                let read = |at: u64| {
                    let iova = base.checked_add(4 * at)?;
                    machine.space.memory.load(iova, 4).known().map(|word| word as u32)
                };
                current = queue.fetched.len();
                queue.fetched.extend((0..dwords.min(room)).map_while(read));
                queue.unfetched = dwords - (queue.fetched.len() - current) as u64;
                (queue.base, queue.dwords) = (base, dwords);
            }
        }
        for (n, queue) in self.queues.iter_mut().enumerate() {
            let size = self.bounds[n + 1].saturating_sub(self.bounds[n]) as usize;
            let kept = size.saturating_sub(queue.fetched.len()).min(queue.before.len());
            queue.before.drain(..queue.before.len() - kept);
        }
    }

    /// Registers of what is fetched, by number.
    pub(super) fn registers(&self, machine: &AdrenoMachine<'_>, out: &mut BTreeMap<u32, u32>) {
        let gpu = machine.gpu;
        let mut set = |name: String, value: u64, wide: bool| {
            let Some(reg) = gpu.reg_offset(&name) else { return };
            out.insert(reg, value as u32);
            if wide {
                out.insert(reg + 1, (value >> 32) as u32);
            }
        };
        for (n, (level, queue)) in LEVELS.iter().zip(&self.queues).enumerate() {
            let (size, fetched) = (self.bounds[n + 1] - self.bounds[n], queue.fetched.len() as u64);
            let (first, taken) = (self.bounds[n], queue.taken);
            let at = |dwords: u64| first + dwords % size.max(1);
            let status = at(taken) | at(taken + fetched) << 16;
            set(format!("CP_ROQ_{level}_STAT"), status, false);
            // The dword in work counts, too.
            let in_work = u64::from(fetched > 0 || queue.unfetched > 0);
            set(format!("CP_ROQ_AVAIL_{level}"), (fetched + in_work) << 16, false);
            if n == 0 {
                // Before a7xx, it is where the fetcher reads.
                let ahead = if machine.generation >= Generation::A7xx { 0 } else { fetched };
                set("CP_RB_BASE".to_owned(), RING, true);
                set("CP_RB_RPTR".to_owned(), (taken + ahead) % (RING_SIZE / 4), false);
                set("CP_RB_WPTR".to_owned(), (taken + fetched + queue.unfetched) % (RING_SIZE / 4), false);
                continue;
            }
            set(format!("CP_{level}_BASE"), queue.base, true);
            set(format!("CP_{level}_REM_SIZE"), queue.unfetched, false);
            set(format!("CP_{level}_DWORDS"), queue.dwords, false);
        }
    }

    /// The read pointer of the ring as the driver has it, in dwords.
    pub(super) fn ring_pointer(&self, generation: Generation) -> u32 {
        let queue = &self.queues[0];
        let ahead = if generation >= Generation::A7xx { 0 } else { queue.fetched.len() as u64 };
        ((queue.taken + ahead) % (RING_SIZE / 4)) as u32
    }

    /// The ROQ.
    pub(super) fn roq(&self, dwords: usize) -> Vec<u32> {
        let mut words = vec![0; dwords];
        for (n, queue) in self.queues.iter().enumerate() {
            let (first, size) = (self.bounds[n], self.bounds[n + 1] - self.bounds[n]);
            let oldest = queue.taken.saturating_sub(queue.before.len() as u64);
            let skipped = queue.before.len().saturating_sub(queue.taken as usize);
            let known = queue.before.iter().skip(skipped).chain(&queue.fetched);
            for (at, &word) in (oldest..).zip(known) {
                if let Some(slot) = words.get_mut((first + at % size.max(1)) as usize) {
                    *slot = word;
                }
            }
        }
        words
    }

    /// CP_SQE_STAT.
    pub(super) fn sqe(&self, dwords: usize) -> Vec<u32> {
        let mut words = vec![0; dwords];
        if let Some(current) = words.get_mut(1) {
            *current = self.header;
        }
        for (slot, &header) in words.iter_mut().skip(SQE_HEADERS).zip(&self.headers) {
            *slot = header;
        }
        words
    }
}

/// The blocks that are busy with work of a cluster that is not done there.
const CLUSTER_BLOCKS: [(&str, &[&str]); 6] = [
    ("FE", &["PC_DCALL_BUSY"]),
    ("SP_VS", &["HLSQ_BUSY", "SP_BUSY"]),
    ("PC_VS", &["VPC_BUSY"]),
    ("GRAS", &["TSE_BUSY"]),
    ("SP_PS", &["HLSQ_BUSY", "SP_BUSY"]),
    ("PS", &["RB_BUSY"]),
];

/// The blocks that are busy at a stop, as flags of RBBM_STATUS.
fn busy_blocks(machine: &AdrenoMachine<'_>, fault: Option<GpuFault>) -> Vec<&'static str> {
    let mut busy = vec!["GPU_BUSY_IGN_AHB", "CP_BUSY", "CP_AHB_BUSY_CX_MASTER"];
    match machine.working {
        Some(WorkUnit::Shader) => busy.extend(["HLSQ_BUSY", "SP_BUSY"]),
        Some(WorkUnit::Blit) => busy.push("A2D_BUSY"),
        Some(WorkUnit::Draw | WorkUnit::Event(_)) | None => {}
    }
    let client = fault.map(|fault| fault.client).filter(|_| machine.working.is_some());
    match client {
        Some(Client::Tp) => busy.extend(["TPL1_BUSY", "UCHE_BUSY"]),
        Some(Client::Sp) => busy.push("UCHE_BUSY"),
        Some(Client::Vfd) => busy.extend(["VFD_BUSY", "UCHE_BUSY"]),
        Some(Client::Pc | Client::Vpc) => busy.push("UCHE_BUSY"),
        Some(Client::Vsc) => busy.extend(["VSC_BUSY", "UCHE_BUSY"]),
        Some(Client::Ccu | Client::CcuDepth) => busy.push("CCU_BUSY"),
        Some(Client::Cp) | None => {}
    }
    if let Some(queues) = machine.ahead.as_deref() {
        busy.push("GPU_BUSY_IGN_AHB_CP");
        for (cluster, blocks) in CLUSTER_BLOCKS {
            let shaders = matches!(machine.working, Some(WorkUnit::Draw | WorkUnit::Shader));
            if queues.is_busy(cluster) && (shaders || !cluster.starts_with("SP_")) {
                busy.extend(blocks);
            }
        }
    }
    busy
}

/// RBBM_STATUS, RBBM_STATUS3 and CP_INTERRUPT_STATUS; after a protection error, CP_PROTECT_STATUS.
pub(super) fn status(machine: &AdrenoMachine<'_>, end: &RunEnd, out: &mut BTreeMap<u32, u32>) {
    let fault = match end {
        RunEnd::Stopped { stop, .. } => CpStop::gpu_fault(stop),
        _ => None,
    };
    if let RunEnd::Stopped { stop: CpStop::Error(error), .. } = end
        && let CpErrorKind::Protected { reg, read } = error.kind
        && let Some(status) = machine.gpu.reg_offset("CP_PROTECT_STATUS")
    {
        out.insert(status, CpErrorKind::protect_status(reg, read));
    }
    let interrupts: Vec<&str> = machine.threads.iter().filter_map(interrupt).collect();
    set_flags(machine, "CP_INTERRUPT_STATUS", &interrupts, out);
    set_flags(machine, "RBBM_STATUS", &busy_blocks(machine, fault), out);
    let stalled: &[&str] = if fault.is_some() { &["SMMU_STALLED_ON_FAULT"] } else { &[] };
    set_flags(machine, "RBBM_STATUS3", stalled, out);
}

/// The flag of CP_INTERRUPT_STATUS that a thread's error raises, if one is known. The driver leaves it set.
fn interrupt(thread: &CpThread) -> Option<&'static str> {
    Some(match (thread.halted?.kind, thread.id) {
        (CpErrorKind::BadHeader { .. } | CpErrorKind::Opcode { .. }, ThreadId::Br) => "CP_OPCODE_ERROR",
        (CpErrorKind::BadHeader { .. } | CpErrorKind::Opcode { .. }, ThreadId::Bv) => "CP_OPCODE_ERROR_BV",
        (CpErrorKind::Protected { .. }, ThreadId::Br) => "CP_REGISTER_PROTECTION_ERROR",
        (CpErrorKind::Protected { .. }, ThreadId::Bv) => "CP_REGISTER_PROTECTION_ERROR_BV",
        _ => return None,
    })
}

/// Sets a register to these of its flags.
fn set_flags(machine: &AdrenoMachine<'_>, register: &str, flags: &[&str], out: &mut BTreeMap<u32, u32>) {
    let Some(reg) = machine.gpu.reg_offset(register) else { return };
    let Some(ty) = machine.gpu.reg(reg).and_then(|reg| reg.ty()) else { return };
    let is_set = |bit: &u32| flags.iter().any(|flag| ty.field(1 << bit, flag) == Some(1));
    out.insert(reg, (0..32).filter(is_set).fold(0, |value, bit| value | 1 << bit));
}
