//! The ring of the msm driver: what it writes around the streams of a submit, as `a6xx_submit` and `a7xx_submit` of Linux
//! 6.12 do.
//!
//! Never: another context or another ring; the driver has one ring for these GPUs, and a capture is of one process.

use crate::adreno::machine::AdrenoMachine;
use crate::rights::PageRights;
use unwedge_base::Generation;
use unwedge_hw::adreno::snapshot::Snapshot;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// Where the ring is, in the kernel's part of the address space.
pub(crate) const RING: u64 = 0x0001_0000_0000_1000;
/// Bytes of the ring.
pub(crate) const RING_SIZE: u64 = 0x8000;
/// Where the GPU writes fences and statistics for the kernel.
const MEMORY_POINTERS: u64 = 0x0001_0000_0000_0000;
const FENCE: u64 = MEMORY_POINTERS + 4;
const BV_FENCE: u64 = MEMORY_POINTERS + 8;
/// Statistics of a submit: cycles of the CP and the counter that is always on, before and after; 64 submits by turns.
const STATISTICS: u64 = MEMORY_POINTERS + 16;
const STATISTICS_SIZE: u64 = 32;
const TTBR0_COPY: u64 = STATISTICS + 64 * STATISTICS_SIZE;
const MEMORY_POINTERS_SIZE: usize = 0x1000;
/// The page table of the process.
pub(crate) const TTBR0: u64 = 0x8000_0000;
/// Its address space.
const ASID: u32 = 1;

/// Events, as both generations number them.
mod event {
    pub(super) const CACHE_FLUSH_TS: u32 = 4;
    pub(super) const CCU_INVALIDATE_DEPTH: u32 = 0x18;
    pub(super) const CCU_INVALIDATE_COLOR: u32 = 0x19;
    pub(super) const LRZ_FLUSH: u32 = 0x26;
    pub(super) const CACHE_INVALIDATE: u32 = 0x31;
    pub(super) const IRQ: u32 = 1 << 31;
    /// An event of a7xx that writes.
    pub(super) const WRITE: u32 = 1 << 27;
}

/// Threads that CP_THREAD_CONTROL chooses.
mod threads {
    pub(super) const BR: u32 = 1;
    pub(super) const BV: u32 = 2;
    pub(super) const BOTH: u32 = 3;
    pub(super) const NO_CONCURRENT_BINNING: u32 = 1 << 27;
    pub(super) const SYNC: u32 = 1 << 31;
}

/// The driver's side of the ring.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelRing {
    /// Dwords written since the GPU was started.
    pub(crate) written: u64,
    /// The newest fence submitted.
    pub(crate) fence: u32,
    /// The GPU is in the process's address space.
    switched: bool,
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

impl KernelRing {
    /// Starts the GPU: sets it up and gives it an empty ring.
    pub(crate) fn start(&mut self, machine: &mut AdrenoMachine<'_>, snapshot: &Snapshot) {
        let chip = &snapshot.chip;
        machine.process_table = Some(TTBR0);
        machine.protected = Some(Box::new(snapshot.protected.clone()));
        // Where a capture has something at the kernel's own addresses, that is what the GPU sees.
        let pointers = (MEMORY_POINTERS, MEMORY_POINTERS_SIZE as u64, false);
        for (iova, size, read_only) in [(RING, RING_SIZE, true), pointers] {
            let memory = &mut machine.space.memory;
            if memory.map_zero_filled(iova, size, Vec::new()).is_ok() {
                memory.restrict(iova, size, PageRights { read_only, privileged: chip.has_privilege });
            }
        }
        (self.written, self.switched) = (0, false);
        let [first, second] = chip.roq_thresholds;
        let set_up = [
            ("CP_RB_BASE", RING as u32, 0),
            ("CP_RB_BASE", (RING >> 32) as u32, 1),
            ("CP_ROQ_THRESHOLDS_1", first, 0),
            ("CP_ROQ_THRESHOLDS_2", second, 0),
            ("RBBM_INTERFACE_HANG_INT_CNTL", 1 << 30 | chip.hang_threshold, 0),
        ];
        for (name, value, at) in set_up {
            if let Some(reg) = machine.gpu.reg_offset(name) {
                machine.threads_write(reg + at, value);
            }
        }
        machine.start_ring(RING, RING_SIZE);
        let mut emit = Emitter { machine, ring: self };
        if emit.machine.generation >= Generation::A7xx {
            emit.thread(threads::BOTH | threads::NO_CONCURRENT_BINNING);
            emit.op("CP_ME_INIT", &[0x14b, 3, 0x2000_0000, 2, 0, 0, 0]);
        } else {
            emit.op("CP_ME_INIT", &[0x2f, 3, 0x2000_0000, 0, 0, 0, 0, 0]);
        }
        emit.op("CP_SET_SECURE_MODE", &[0]);
    }

    /// Begins a submit.
    pub(crate) fn begin(&mut self, machine: &mut AdrenoMachine<'_>) {
        self.fence = self.fence.wrapping_add(1).max(1);
        let newer = machine.generation >= Generation::A7xx;
        let mut emit = Emitter { machine, ring: self };
        emit.switch(newer);
        emit.statistics(0);
        if newer {
            emit.thread(threads::BOTH);
            // No IFPC from here on, and a list of IB1s.
            emit.op("CP_SET_MARKER", &[0x101]);
            emit.op("CP_SET_MARKER", &[0xd]);
        } else {
            emit.event(event::CCU_INVALIDATE_DEPTH);
            emit.event(event::CCU_INVALIDATE_COLOR);
        }
    }

    /// A stream of the submit.
    pub(crate) fn stream(&mut self, machine: &mut AdrenoMachine<'_>, iova: u64, dwords: u32) {
        let [low, high] = halves(iova);
        Emitter { machine, ring: self }.op("CP_INDIRECT_BUFFER", &[low, high, dwords]);
    }

    /// Ends a submit with its fence.
    pub(crate) fn end(&mut self, machine: &mut AdrenoMachine<'_>) {
        let newer = machine.generation >= Generation::A7xx;
        let fence = self.fence;
        let ([low, high], [bv_low, bv_high]) = (halves(FENCE), halves(BV_FENCE));
        let mut emit = Emitter { machine, ring: self };
        if newer {
            emit.op("CP_SET_MARKER", &[0xe]);
        }
        emit.statistics(8);
        emit.write("CP_SCRATCH[0x2].REG", fence);
        if !newer {
            emit.op("CP_EVENT_WRITE", &[event::CACHE_FLUSH_TS | event::IRQ, low, high, fence]);
            return;
        }
        emit.thread(threads::BR);
        emit.event(event::CCU_INVALIDATE_DEPTH);
        emit.event(event::CCU_INVALIDATE_COLOR);
        emit.thread(threads::BV);
        let clean = event::CACHE_INVALIDATE | event::WRITE;
        emit.op("CP_EVENT_WRITE7", &[clean, bv_low, bv_high, fence]);
        emit.thread(threads::BR);
        emit.op("CP_WAIT_TIMESTAMP", &[0, bv_low, bv_high, fence]);
        emit.op("CP_EVENT_WRITE7", &[clean | event::IRQ, low, high, fence]);
        emit.thread(threads::BOTH);
        emit.op("CP_SET_MARKER", &[0x100]);
    }

    /// The newest fence that the GPU has written.
    pub(crate) fn retired(machine: &AdrenoMachine<'_>) -> u32 {
        machine.space.memory.load(FENCE, 4).known().unwrap_or(0) as u32
    }

    /// The hung submit is given up: its fence counts as written.
    pub(crate) fn force_fence(&self, machine: &mut AdrenoMachine<'_>) {
        machine.space.memory.store(FENCE, 4, self.fence.into());
        machine.space.memory.store(BV_FENCE, 4, self.fence.into());
    }
}

/// Writes packets to the ring.
struct Emitter<'e, 'd> {
    machine: &'e mut AdrenoMachine<'d>,
    ring: &'e mut KernelRing,
}

impl Emitter<'_, '_> {
    fn packet(&mut self, header: AdrenoPacketHeader, payload: &[u32]) {
        let Some(header) = header.encode(self.machine.generation) else { return };
        for &word in std::iter::once(&header).chain(payload) {
            let at = RING + self.ring.written * 4 % RING_SIZE;
            self.machine.space.memory.store(at, 4, word.into());
            self.ring.written += 1;
        }
        self.machine.ring_written(self.ring.written);
    }

    /// An operation, by the packet's name. One that the database does not know is left out.
    fn op(&mut self, name: &str, payload: &[u32]) {
        let gpu = self.machine.gpu;
        if let Some(opcode) = (0..=0x7f).find(|&opcode| gpu.packet_name(opcode) == Some(name)) {
            let count = payload.len() as u32;
            self.packet(AdrenoPacketHeader::Operation { opcode, count }, payload);
        }
    }

    fn write(&mut self, name: &str, value: u32) {
        let gpu = self.machine.gpu;
        if let Some(reg) = gpu.reg_offset(name).or_else(|| gpu.reg_offset(&name.replace("[0x", "["))) {
            self.packet(AdrenoPacketHeader::Registers { reg, count: 1 }, &[value]);
        }
    }

    fn event(&mut self, event: u32) {
        let name =
            if self.machine.generation >= Generation::A7xx { "CP_EVENT_WRITE7" } else { "CP_EVENT_WRITE" };
        self.op(name, &[event]);
    }

    fn thread(&mut self, threads: u32) {
        self.op("CP_THREAD_CONTROL", &[threads]);
    }

    /// The page tables of the process, if the GPU is not in them.
    fn switch(&mut self, newer: bool) {
        if newer {
            self.thread(threads::SYNC | threads::BR);
        }
        if std::mem::replace(&mut self.ring.switched, true) {
            return;
        }
        if newer {
            let [low, high] = halves(FENCE);
            self.op("CP_WAIT_TIMESTAMP", &[0, low, high, self.ring.fence - 1]);
            self.thread(threads::SYNC | threads::BOTH);
            self.op("CP_RESET_CONTEXT_STATE", &[7]);
            self.thread(threads::SYNC | threads::BOTH);
            self.event(event::LRZ_FLUSH);
            self.thread(threads::SYNC | threads::BR);
        } else {
            self.op("CP_SET_PROTECTED_MODE", &[0]);
        }
        self.write("RBBM_PERFCTR_SRAM_INIT_CMD", 1);
        let [low, high] = halves(TTBR0);
        self.op("CP_SMMU_TABLE_UPDATE", &[low, high | ASID << 16, 0, 0]);
        let [to_low, to_high] = halves(TTBR0_COPY);
        self.op("CP_MEM_WRITE", &[to_low, to_high, low, high | ASID << 16]);
        if newer {
            self.thread(threads::SYNC | threads::BR);
        }
        self.event(event::CACHE_INVALIDATE);
        if let Some(status) = self.machine.gpu.reg_offset("RBBM_PERFCTR_SRAM_INIT_STATUS") {
            self.op("CP_WAIT_REG_MEM", &[3, status, 0, 1, 1, 0]);
        }
        if !newer {
            self.op("CP_SET_PROTECTED_MODE", &[1]);
        }
    }

    /// Statistics of the submit, at its start (0) or its end (8).
    fn statistics(&mut self, at: u64) {
        const PAIR: u32 = 1 << 30 | 2 << 18;
        let slot = STATISTICS + u64::from(self.ring.fence % 64) * STATISTICS_SIZE + at;
        let gpu = self.machine.gpu;
        let cycles = (0..0x1000)
            .find(|&reg| gpu.reg(reg).is_some_and(|reg| reg.name().starts_with("RBBM_PERFCTR_CP[0")));
        let counters = [(cycles, slot), (self.machine.places.always_on, slot + 16)];
        for (reg, to) in counters {
            let [low, high] = halves(to);
            if let Some(reg) = reg {
                self.op("CP_REG_TO_MEM", &[PAIR | reg, low, high]);
            }
        }
    }
}
