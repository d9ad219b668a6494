//! The machine: memory, registers, the threads of its command processor, and what they have loaded.

use super::audit::{ReadTrace, RegisterAudit};
use super::blit2d::BlitPlaces;
use super::caches::{CacheEvent, CacheSizes};
use super::clusters::ClusterQueues;
use super::cp::{Clocks, CpStop, CpThread, Event, Frame, FrameKind, PacketEnd, StreamFrame, ThreadId};
use super::cpu_thread::Handshake;
use super::dispatch::ComputePlaces;
use super::draw::{DrawCounters, DrawPlaces, LrzCheck, StreamProgram, Visibility, VscPlaces};
use super::draw_watch::WatchSlot;
use super::fiber_trace::FiberTrace;
use super::ir3;
use super::space::{AddressSpace, NearSamples};
use super::state::LoadedState;
use super::watch::{Onward, PacketChanges, PacketWatch, Waiting};
use crate::run::{in_pool, is_in_pool};
use std::collections::BTreeSet;
use unwedge_base::Generation;
use unwedge_hw::adreno::snapshot::ProtectedRegisters;
use unwedge_hw::{Adreno, Gpu};
use unwedge_stream::Registers;
use unwedge_stream::adreno::{AdrenoOp, operations};

/// Registers of the space that packets write, in dwords.
const REGISTERS: usize = 0x4_0000;
/// Dwords of on-chip memory of the CP (a7xx).
const ON_CHIP: usize = 48;

/// Something of a stream that the machine leaves out. Each kind is told once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// A draw, or a load, store or clear of GMEM, asks for something that is not known, and is left out.
    NotRendered,
    /// A blit of the 2D engine is of a format or order of texels that is not known, and left out.
    NotBlitted,
    /// A packet of this name has no effect.
    PacketIgnored {
        /// Its name.
        name: String,
    },
    /// State of a kind that no stage of this machine reads was loaded.
    StateIgnored,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Everything submitted is executed.
    Done,
    /// The threads wait for what no thread will do.
    Hung,
    /// A thread met something that hardware would fault on.
    Stopped {
        /// Which.
        thread: ThreadId,
        /// What.
        stop: CpStop,
    },
    /// The allowed number of steps is over.
    Budget,
    /// It is part of a submit that stopped before it.
    Dropped,
    /// Whoever looks on wants no more.
    Left,
}

impl RunEnd {
    /// Hardware would have stopped as well. Not where contents of memory are missing from a capture, or something is not
    /// emulated.
    pub fn is_of_hardware(&self) -> bool {
        match self {
            RunEnd::Done | RunEnd::Dropped | RunEnd::Left => false,
            RunEnd::Hung | RunEnd::Budget => true,
            RunEnd::Stopped { stop, .. } => stop.is_of_hardware(),
        }
    }
}

/// What works beside the CP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkUnit {
    /// The pipeline of draws.
    Draw,
    /// An event of this number.
    Event(u8),
    /// The shader processors.
    Shader,
    /// The 2D engine.
    Blit,
}

/// Whether a register is one of the 2D engine's.
pub(crate) fn is_two_d(gpu: Gpu<'_>, reg: u32) -> bool {
    gpu.reg(reg).is_some_and(|reg| reg.name().contains("_2D_"))
}

/// Registers that the machine itself reads or answers, where the GPU has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    pub(crate) scratch: Option<u32>,
    pub(crate) always_on: Option<u32>,
    /// Registers that read as ones: states that are always reached.
    ready: Vec<u32>,
    pub(crate) sample_count: Option<u32>,
    pub(crate) stream_counts: Option<u32>,
    pub(crate) stream_flush: [Option<u32>; 4],
    pub(crate) stream_offset: [Option<u32>; 4],
    stream_control: Option<u32>,
    stream_words: Option<u32>,
    /// What drops state that was loaded.
    pub(crate) invalidate: Option<u32>,
    pub(crate) nd_range: Option<u32>,
    pub(crate) kernel_groups: [Option<u32>; 3],
    /// First register of the descriptor sets, of draws and of dispatches.
    pub(crate) descriptor_sets: [Option<u32>; 2],
}

impl Places {
    fn new(gpu: Gpu<'_>) -> Places {
        let reg = |name: &str| gpu.reg_offset(name);
        let stream = |field: &str| [0, 1, 2, 3].map(|n| reg(&format!("VPC_SO[{n}].{field}")));
        let ready = ["RBBM_PERFCTR_SRAM_INIT_STATUS"].iter().filter_map(|name| reg(name));
        Places {
            scratch: reg("CP_SCRATCH[0].REG"),
            always_on: reg("CP_ALWAYS_ON_COUNTER"),
            ready: ready.collect(),
            sample_count: reg("RB_SAMPLE_COUNT_ADDR"),
            stream_counts: reg("VPC_SO_STREAM_COUNTS"),
            stream_flush: stream("FLUSH_BASE"),
            stream_offset: stream("BUFFER_OFFSET"),
            stream_control: reg("VPC_SO_CNTL"),
            stream_words: reg("VPC_SO_PROG"),
            invalidate: reg("HLSQ_INVALIDATE_CMD"),
            nd_range: reg("HLSQ_CS_NDRANGE_0"),
            kernel_groups: ["X", "Y", "Z"].map(|axis| reg(&format!("HLSQ_CS_KERNEL_GROUP_{axis}"))),
            descriptor_sets: ["SP_BINDLESS_BASE[0].DESCRIPTOR", "SP_CS_BINDLESS_BASE[0].DESCRIPTOR"].map(reg),
        }
    }
}

/// A virtual Adreno of a6xx or a7xx.
pub struct AdrenoMachine<'d> {
    pub(crate) adreno: Adreno<'d>,
    pub(crate) gpu: Gpu<'d>,
    pub(crate) generation: Generation,
    /// What the GPU sees of memory.
    pub space: AddressSpace,
    pub(crate) threads: Vec<CpThread>,
    pub(crate) registers: Vec<Registers>,
    loaded: Vec<LoadedState>,
    pub(crate) on_chip: [u32; ON_CHIP],
    pub(crate) clocks: Clocks,
    pub(crate) ttbr0: u64,
    /// The page table that the driver has for the process.
    pub(crate) process_table: Option<u64>,
    /// Registers that streams below the ring have no access to, as the driver has set it up.
    pub(crate) protected: Option<Box<ProtectedRegisters>>,
    pub(crate) places: Places,
    pub(crate) blit_places: Option<BlitPlaces>,
    pub(crate) compute_places: Option<ComputePlaces>,
    pub(crate) draw_places: DrawPlaces,
    pub(crate) vsc_places: Option<VscPlaces>,
    pub(crate) visibility: Visibility,
    /// While draws are held to LRZ.
    pub(crate) lrz: Option<Box<LrzCheck>>,
    /// How compute shaders are run; the steps are the machine's.
    pub compute: ir3::Options,
    /// The GPU as its instruction set is named: 630, 740.
    pub(crate) shader_gpu: u32,
    pub(crate) payload: Vec<u32>,
    pub(crate) interrupts: u64,
    pub(crate) work_done: u64,
    /// What works, or worked when the machine stopped.
    pub(crate) working: Option<WorkUnit>,
    /// What the SQE has sent after work that does not end.
    pub(crate) ahead: Option<Box<ClusterQueues>>,
    packets: u64,
    pub(crate) counters: DrawCounters,
    pub(crate) stream_program: StreamProgram,
    /// Steps that are left.
    pub(crate) allowance: u64,
    /// Steps that a packet may take before it is taken for one that never ends.
    pub hang_steps: u64,
    /// What the packet in work changes, while somebody looks on.
    pub(crate) changes: Option<PacketChanges>,
    /// What is followed of registers, if somebody asks for it.
    pub(crate) audit: Option<Box<RegisterAudit>>,
    /// Registers that are read, while they are traced.
    pub(crate) read_trace: Option<ReadTrace>,
    /// Fibers that are traced.
    pub fiber_trace: Option<FiberTrace>,
    /// The thread of the CPU that runs beside the GPU.
    pub(crate) handshake: Option<Handshake>,
    /// Who watches draws.
    pub(crate) draw_watch: WatchSlot,
    /// Whether bytes of GMEM that nothing has written are tracked ([`AdrenoMachine::track_undefined`]).
    pub(crate) tracks_undefined: bool,
    /// Where a blit, or an event of GMEM, accessed memory last.
    pub(crate) near: NearSamples,
    /// Work was shared with other threads.
    pub(crate) shares_work: bool,
    notes: BTreeSet<Note>,
    pub(crate) ops: [AdrenoOp; 256],
    events: Vec<Event>,
    cache_events: Vec<CacheEvent>,
}

impl<'d> AdrenoMachine<'d> {
    /// A machine with nothing mapped, all registers zero; `None` for a GPU that is neither a6xx nor a7xx.
    pub fn new(db: &'d unwedge_hw::Db, adreno: Adreno<'d>) -> Option<AdrenoMachine<'d>> {
        let generation = adreno.generation;
        if generation < Generation::A6xx {
            return None;
        }
        let gpu = db.gpu(generation);
        let whole = if generation >= Generation::A7xx { 700 } else { 600 };
        let shader_gpu = adreno.device.and_then(|device| device.number_in_name()).unwrap_or(whole);
        let ids: &[ThreadId] =
            if generation >= Generation::A7xx { &[ThreadId::Br, ThreadId::Bv] } else { &[ThreadId::Br] };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let names = gpu.enumeration("vgt_event_type");
        let event = |n: u64| names.and_then(|names| names.name_of(n)).map_or(Event::Other, Event::of_name);
        let cache_event = |n: u64| {
            let name = names.and_then(|names| names.name_of(n));
            name.map_or(CacheEvent::default(), |name| CacheEvent::of_name(name, generation))
        };
        Some(AdrenoMachine {
            adreno,
            gpu,
            generation,
            space: AddressSpace::new(),
            threads: ids.iter().map(|&id| CpThread::new(id)).collect(),
            registers: ids.iter().map(|_| Registers::new(REGISTERS)).collect(),
            loaded: ids.iter().map(|_| LoadedState::default()).collect(),
            on_chip: [0; ON_CHIP],
            clocks: Clocks::default(),
            ttbr0: 0,
            process_table: None,
            protected: None,
            places: Places::new(gpu),
            blit_places: BlitPlaces::new(gpu),
            compute_places: ComputePlaces::new(gpu),
            draw_places: DrawPlaces::new(gpu),
            vsc_places: VscPlaces::new(gpu),
            visibility: Visibility::default(),
            lrz: None,
            compute: ir3::Options { threads, ..ir3::Options::default() },
            shader_gpu,
            payload: Vec::new(),
            interrupts: 0,
            work_done: 0,
            working: None,
            ahead: None,
            packets: 0,
            counters: DrawCounters::default(),
            stream_program: StreamProgram::default(),
            allowance: 0,
            hang_steps: u64::MAX,
            changes: None,
            audit: None,
            read_trace: None,
            fiber_trace: None,
            handshake: None,
            draw_watch: WatchSlot::default(),
            tracks_undefined: false,
            near: NearSamples::default(),
            shares_work: false,
            notes: BTreeSet::new(),
            ops: operations(gpu),
            events: (0..=255).map(event).collect(),
            cache_events: (0..=255).map(cache_event).collect(),
        })
    }

    /// Gives the CP a stream to execute, as the ring does with an IB1. What was submitted before comes first: call
    /// [`AdrenoMachine::run`] between.
    pub fn submit(&mut self, iova: u64, dwords: u32) {
        for thread in &mut self.threads {
            thread.frames.clear();
            thread.halted = None;
            thread.dispatch = None;
            thread.enter(Frame::new(FrameKind::Indirect, 1, iova, dwords));
        }
    }

    /// The CPU writes a register.
    pub(crate) fn threads_write(&mut self, reg: u32, value: u32) {
        self.registers.iter_mut().for_each(|registers| registers.set(reg, value));
    }

    /// Gives the CP a ring of so many bytes that holds nothing yet.
    pub(crate) fn start_ring(&mut self, iova: u64, size: u64) {
        for thread in &mut self.threads {
            thread.frames.clear();
            thread.frames.push(Frame::new(FrameKind::Ring { size }, 0, iova, 0));
        }
    }

    /// Tells the CP how many dwords were written to its ring since it was started.
    pub(crate) fn ring_written(&mut self, dwords: u64) {
        for frame in self.threads.iter_mut().filter_map(|thread| thread.frames.first_mut()) {
            if let FrameKind::Ring { .. } = frame.kind {
                frame.end = frame.base.saturating_add(4 * dwords);
            }
        }
    }

    /// The GPU is reset: streams, registers and what was loaded are gone, memory stays.
    pub(crate) fn reset(&mut self) {
        for (thread, registers) in self.threads.iter_mut().zip(&mut self.registers) {
            *thread = CpThread::new(thread.id);
            *registers = Registers::new(REGISTERS);
        }
        self.loaded.iter_mut().for_each(|loaded| *loaded = LoadedState::default());
        self.on_chip = [0; ON_CHIP];
        self.clocks = Clocks::default();
        self.counters = DrawCounters::default();
        self.visibility = Visibility::default();
        self.working = None;
        self.ahead = None;
        self.space.other_table = false;
    }

    /// Work was sent: its register context rolls over. Blits have contexts of their own.
    pub(crate) fn mark_work(&mut self, id: ThreadId, two_d: bool) {
        let (at, gpu) = (self.index(id), self.gpu);
        self.registers[at].mark_work(|reg| is_two_d(gpu, reg) == two_d);
        self.thread_mut(id).rollovers[usize::from(two_d)] += 1;
    }

    /// A register as it was in the context before the current one.
    pub(crate) fn previous_register(&self, id: ThreadId, reg: u32) -> u32 {
        self.registers[self.index(id)].previous(reg)
    }

    /// Begins another submit of the kernel: all threads take its packets.
    pub fn begin(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.selected = true);
    }

    /// Executes up to so many steps: a packet is one, and each dword that it copies.
    pub fn run(&mut self, steps: u64) -> RunEnd {
        self.run_watched(steps, None)
    }

    /// The same, while somebody may look on.
    pub fn run_watched(&mut self, steps: u64, watch: Option<&mut dyn PacketWatch>) -> RunEnd {
        self.allowance = steps;
        let mut halted = None;
        match watch {
            Some(_) => self.run_on(watch, &mut halted, false),
            None => self
                .run_on(None, &mut halted, true)
                .or_else(|| in_pool(|| self.run_on(None, &mut halted, false))),
        }
        .unwrap_or(RunEnd::Hung)
    }

    /// Goes on to the end of a run. With `until_shared`, it stops short of it when work was shared with other threads: `None`.
    fn run_on(
        &mut self,
        mut watch: Option<&mut dyn PacketWatch>,
        halted: &mut Option<RunEnd>,
        until_shared: bool,
    ) -> Option<RunEnd> {
        let mut waiting = Waiting::default();
        loop {
            if until_shared && self.shares_work && !is_in_pool() {
                return None;
            }
            let (mut waits, mut moves) = (false, false);
            for n in 0..self.threads.len() {
                let thread = self.threads.get(n).filter(|thread| thread.halted.is_none());
                let Some(id) = thread.map(|thread| thread.id) else { continue };
                let look = watch.as_deref_mut().map(|watch| self.look(id, &waiting, watch)).transpose();
                let Ok(look) = look else { return Some(RunEnd::Left) };
                let end = self.step_bounded(id);
                if self.handshake.is_some() && self.let_cpu_answer() == Onward::Leave {
                    return Some(RunEnd::Left);
                }
                if let (Some(Some(look)), Some(watch)) = (&look, watch.as_deref_mut()) {
                    self.looked(look, &end, &mut waiting, watch);
                }
                match end {
                    Ok(Some(PacketEnd::Done)) => moves = true,
                    Ok(Some(PacketEnd::Waits)) => waits = true,
                    Ok(None) => continue,
                    Err(CpStop::Budget) => return Some(RunEnd::Budget),
                    // An error ends its thread; the other goes on as far as it can.
                    Err(stop @ CpStop::Error(error)) => {
                        self.thread_mut(id).halted = Some(error);
                        let end = RunEnd::Stopped { thread: id, stop };
                        *halted = Some(halted.take().filter(|_| id != ThreadId::Br).unwrap_or(end));
                        continue;
                    }
                    Err(stop) => return Some(RunEnd::Stopped { thread: id, stop }),
                }
                self.packets += 1;
            }
            match (moves, waits) {
                (true, _) => {}
                (false, _) if halted.is_some() => return halted.take(),
                (false, true) => return Some(self.hung()),
                (false, false) => return Some(RunEnd::Done),
            }
        }
    }

    /// How a run ends when every thread waits: at a shader that polls memory, if there is one.
    fn hung(&mut self) -> RunEnd {
        let Some((thread, stop)) = self.polling_dispatch() else { return RunEnd::Hung };
        self.working = Some(WorkUnit::Shader);
        RunEnd::Stopped { thread, stop }
    }

    /// Lets a thread take a packet, with no more steps than one may take.
    fn step_bounded(&mut self, id: ThreadId) -> Result<Option<PacketEnd>, CpStop> {
        let all = self.allowance;
        let given = all.min(self.hang_steps);
        self.allowance = given;
        let end = self.spend(1).and_then(|()| self.step_thread(id));
        self.allowance = all - (given - self.allowance);
        match end {
            Err(CpStop::Budget) if given < all => Err(CpStop::NoProgress { steps: given }),
            Err(CpStop::Dispatch(stop)) => Err(CpStop::Dispatch(stop.with_rights(&self.space))),
            end => end,
        }
    }

    /// Puts caches between the units and memory. Work is done on one thread, so that what is reported is always the same.
    pub fn enable_caches(&mut self) {
        self.compute.threads = 1;
        self.space.enable_caches(CacheSizes::of(self.adreno));
    }

    /// The streams that a thread is in, outermost first.
    pub fn position(&self, id: ThreadId) -> Vec<StreamFrame> {
        self.thread(id).positions().collect()
    }

    /// What the machine left out so far.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter()
    }

    /// Draws, dispatches and blits so far.
    pub fn work_done(&self) -> u64 {
        self.work_done
    }

    /// What the database has of the GPU.
    pub fn gpu(&self) -> Gpu<'d> {
        self.gpu
    }

    /// The GPU.
    pub fn adreno(&self) -> Adreno<'d> {
        self.adreno
    }

    /// The GPU as its instruction set is named: 630, 740.
    pub fn shader_gpu(&self) -> u32 {
        self.shader_gpu
    }

    /// Takes steps from those that are left.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), CpStop> {
        self.allowance = self.allowance.checked_sub(steps).ok_or(CpStop::Budget)?;
        Ok(())
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.notes.insert(note);
    }

    pub(crate) fn operation(&self, opcode: u8) -> AdrenoOp {
        self.ops.get(usize::from(opcode)).copied().unwrap_or(AdrenoOp::Other)
    }

    pub(crate) fn event_of(&self, number: u8) -> Event {
        self.events.get(usize::from(number)).copied().unwrap_or(Event::Other)
    }

    pub(crate) fn cache_event_of(&self, number: u8) -> CacheEvent {
        self.cache_events.get(usize::from(number)).copied().unwrap_or_default()
    }

    fn index(&self, id: ThreadId) -> usize {
        match id {
            ThreadId::Bv if self.threads.len() > 1 => 1,
            ThreadId::Br | ThreadId::Bv => 0,
        }
    }

    pub(crate) fn thread(&self, id: ThreadId) -> &CpThread {
        &self.threads[self.index(id)]
    }

    pub(crate) fn thread_mut(&mut self, id: ThreadId) -> &mut CpThread {
        let at = self.index(id);
        &mut self.threads[at]
    }

    /// A register as a thread reads it. Registers that nothing has written are zero.
    pub fn read_register(&self, id: ThreadId, reg: u32) -> u32 {
        if let Some(trace) = &self.read_trace {
            trace.read(reg);
        }
        match self.places.always_on {
            Some(low) if reg == low => return self.always_on() as u32,
            Some(low) if reg == low + 1 => return (self.always_on() >> 32) as u32,
            _ => {}
        }
        if self.places.ready.contains(&reg) {
            return u32::MAX;
        }
        self.registers[self.index(id)].get(reg).unwrap_or(0)
    }

    pub(crate) fn write_register(&mut self, id: ThreadId, reg: u32, value: u32) {
        self.log_register(reg, value);
        if let Some(queues) = self.ahead.as_deref_mut().filter(|_| id == ThreadId::Br)
            && queues.write(reg, value)
        {
            return;
        }
        self.audit_write(id, reg, value);
        // The program of stream-out is written through one register.
        match Some(reg) {
            reg if reg == self.places.invalidate => self.loaded_mut(id).invalidate(value),
            reg if reg == self.places.stream_control => self.stream_program.start(value),
            reg if reg == self.places.stream_words => self.stream_program.push(value),
            _ => {}
        }
        let at = self.index(id);
        self.registers[at].set(reg, value);
    }

    /// A number of 64 bits in two registers; 0 where the GPU has no such register.
    pub(crate) fn register_pair(&self, id: ThreadId, reg: Option<u32>) -> u64 {
        reg.map_or(0, |reg| {
            u64::from(self.read_register(id, reg)) | u64::from(self.read_register(id, reg + 1)) << 32
        })
    }

    /// Where a descriptor set lies.
    pub(crate) fn descriptor_set(&self, id: ThreadId, compute: bool, set: u32) -> u64 {
        let base = self.places.descriptor_sets[usize::from(compute)];
        self.register_pair(id, base.map(|base| base + 2 * set)) & !3
    }

    /// What a thread has loaded for shaders.
    pub(crate) fn loaded(&self, id: ThreadId) -> &LoadedState {
        &self.loaded[self.index(id)]
    }

    pub(crate) fn loaded_mut(&mut self, id: ThreadId) -> &mut LoadedState {
        let at = self.index(id);
        &mut self.loaded[at]
    }

    pub(crate) fn on_chip_word(&self, at: u32) -> u32 {
        self.on_chip.get(at as usize).copied().unwrap_or(0)
    }

    /// The counter that is always on: it goes on with every packet.
    pub(crate) fn always_on(&self) -> u64 {
        self.packets
    }
}
