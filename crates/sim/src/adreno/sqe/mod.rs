//! A deterministic SQE: runs a firmware, instruction by instruction, and logs what it touches.
//!
//! It models what the firmware sees: general registers, control, pipe, SQE and GPU register spaces, the call stack, the
//! queues behind `$data`, `$memdata` and `$regdata`, draw states, and memory. It does not model time, nor the hardware
//! behind GPU and pipe registers: they keep what is written, and a spin on hardware state spins until the step limit.
//! It never panics, never sleeps, never does I/O: every call is bounded by the steps it is given.
//!
//! Facts: the notes on the instruction set in Mesa 25.0, and the behaviour of its emulator. Where the two are silent this
//! model chooses, and says so: shifts count modulo 32, `iret` restores what [`SqeEmulator::interrupt`] saved, and at the end
//! of an IB the next `waitin` dispatches the firmware's IN_IB_END handler.

mod boot;
mod exec;
mod log;
mod memory;
mod queue;
mod registers;
mod special;

pub use boot::{boot, disassemble, sections};
pub use log::{SqeAccess, SqeFault, SqeLocation, SqeStop};
pub use memory::SqeMemory;

use special::SpecialRegs;
use std::collections::{BTreeSet, HashMap, VecDeque};
use unwedge_isa::afuc::insn::Insn;
use unwedge_isa::afuc::{AfucNames, Firmware, Processor, SqeSpace, TABLE_LEN};

/// Address the instructions are loaded at.
pub const INSTRUCTION_BASE: u64 = 0x1000;
/// Control registers.
const CONTROL_REGISTERS: usize = 0x1000;
/// SQE registers.
const SQE_REGISTERS: usize = 0x10;
/// Pipe registers.
const PIPE_REGISTERS: usize = 0x100;
/// GPU registers; writes beyond them are dropped.
const GPU_REGISTERS: usize = 0x1_0000;
/// Accesses kept unless the caller says otherwise.
const LOG_LIMIT: usize = 1 << 20;

/// Where writes to `$data` go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataMode {
    /// To the register in `$addr`.
    Addr,
    /// To the register in `$usraddr`.
    UsrAddr,
}

/// What a preemption interrupted.
#[derive(Clone, Copy, Debug)]
struct Interrupted {
    pc: u32,
    branch: Option<u32>,
    waiting: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct DrawState {
    header: u32,
    base: [u32; 2],
    sds_base: u64,
    sds_dwords: u32,
}

/// The emulated processor.
#[derive(Clone)]
pub struct SqeEmulator<'n> {
    firmware: Firmware,
    processor: Processor,
    names: &'n dyn AfucNames,
    special: SpecialRegs,
    code: Vec<u32>,
    /// Words decoded so far: a loop decodes each once.
    decoded: HashMap<u32, Option<Insn>>,
    pc: u32,
    gprs: [u32; 32],
    control: Vec<u32>,
    sqe: [u32; SQE_REGISTERS],
    pipe: [u32; PIPE_REGISTERS],
    gpu: Vec<u32>,
    memory: SqeMemory,
    table: [u32; TABLE_LEN],
    carry: u32,
    /// Where to go after the delay slot.
    branch: Option<u32>,
    /// `waitin` was executed; dispatch after the delay slot.
    waiting: bool,
    /// The stream of the current level ended, and its handler is to run after the delay slot.
    stream_ended: bool,
    interrupted: Option<Interrupted>,
    mode: DataMode,
    draw_states: [DrawState; 32],
    selected_state: usize,
    ring: VecDeque<queue::QueueChunk>,
    secure_succeeds: bool,
    bootstrapping: bool,
    breakpoints: BTreeSet<u32>,
    steps: u64,
    log: Vec<SqeAccess>,
    log_limit: usize,
    log_dropped: u64,
    logging_pc: u32,
}

impl<'n> SqeEmulator<'n> {
    /// A processor about to execute the first of `code`: a section of what is loaded, from its version dword on.
    pub fn new(
        firmware: Firmware,
        code: &[u32],
        processor: Processor,
        names: &'n dyn AfucNames,
    ) -> SqeEmulator<'n> {
        let mut emulator = SqeEmulator {
            firmware,
            processor,
            names,
            special: SpecialRegs::new(firmware, names),
            code: code.to_vec(),
            decoded: HashMap::new(),
            pc: 0,
            gprs: [0; 32],
            control: vec![0; CONTROL_REGISTERS],
            sqe: [0; SQE_REGISTERS],
            pipe: [0; PIPE_REGISTERS],
            gpu: vec![0; GPU_REGISTERS],
            memory: SqeMemory::default(),
            table: [0; TABLE_LEN],
            carry: 0,
            branch: None,
            waiting: false,
            stream_ended: false,
            interrupted: None,
            mode: DataMode::Addr,
            draw_states: [DrawState::default(); 32],
            selected_state: 0,
            ring: VecDeque::new(),
            secure_succeeds: true,
            bootstrapping: false,
            breakpoints: BTreeSet::new(),
            steps: 0,
            log: Vec::new(),
            log_limit: 0,
            log_dropped: 0,
            logging_pc: 0,
        };
        emulator.power_on();
        emulator.log_limit = LOG_LIMIT;
        emulator.log_dropped = 0;
        emulator
    }

    /// What the hardware and the kernel set up before the first instruction.
    fn power_on(&mut self) {
        for (i, &word) in (0u64..).zip(&self.code) {
            // Memory is far larger than any firmware; what does not fit stays unknown.
            if self.memory.write(INSTRUCTION_BASE + 4 * i, word).is_err() {
                break;
            }
        }
        let [low, high] = halves(INSTRUCTION_BASE);
        let (space, base) = match (self.processor, self.firmware.generation()) {
            (Processor::Sqe, _) => (SqeSpace::Gpu, self.special.sqe_base),
            (Processor::Bv, _) => (SqeSpace::Control, self.special.bv_base),
            (Processor::Lpac, 7..) => (SqeSpace::Control, self.special.lpac_base),
            (Processor::Lpac, _) => (SqeSpace::Gpu, self.special.lpac_sqe_base),
        };
        if let Some(base) = base {
            for (offset, value) in [(base, low), (base.saturating_add(1), high)] {
                let registers = if space == SqeSpace::Gpu { &mut self.gpu } else { &mut self.control };
                if let Some(register) = registers.get_mut(offset as usize) {
                    *register = value;
                }
            }
        }
        // What firmware checks to tell the chip it runs on.
        let fuses: &[(usize, u32)] = match self.firmware {
            Firmware::A530 | Firmware::A630 => &[],
            Firmware::A650 => &[(0, 1 << 28)],
            Firmware::A660 => &[(0, 3 << 28)],
            Firmware::A730 | Firmware::A740 | Firmware::Gen70500 => &[(0xef, 1 << 21), (0, 7 << 28)],
            Firmware::A750 => &[(0, 7 << 28), (2, 0x40 << 8)],
        };
        for &(offset, value) in fuses {
            if let Some(register) = self.control.get_mut(offset) {
                *register = value;
            }
        }
        let sync = self.special.thread_sync.map(|offset| offset as usize);
        if self.processor == Processor::Lpac && self.firmware.generation() == 6 {
            // The SQE does this once it has started LPAC.
            if let Some(register) = sync.and_then(|offset| self.control.get_mut(offset)) {
                *register = 1;
            }
        }
    }

    /// The firmware this runs.
    pub fn firmware(&self) -> Firmware {
        self.firmware
    }

    /// Which processor this is.
    pub fn processor(&self) -> Processor {
        self.processor
    }

    /// Offset of the next instruction from the start of the section, in words.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Goes on elsewhere; a branch that waits for its delay slot is forgotten.
    pub fn set_pc(&mut self, pc: u32) {
        self.pc = pc;
        (self.branch, self.waiting, self.stream_ended) = (None, false, false);
    }

    /// The names it was given.
    pub fn names(&self) -> &'n dyn AfucNames {
        self.names
    }

    /// The words of the section, from its version dword on.
    pub fn code(&self) -> &[u32] {
        &self.code
    }

    /// The packet table: for each opcode the offset of its handler.
    pub fn packet_table(&self) -> &[u32; TABLE_LEN] {
        &self.table
    }

    /// Instructions executed; each repetition of `(rep)` counts.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The return addresses on the hardware's stack, the innermost last.
    pub fn call_stack(&self) -> Vec<u32> {
        let (Some(pointer), Some(base)) = (self.special.stack_pointer, self.special.stack) else {
            return Vec::new();
        };
        let depth = self.sqe.get(pointer as usize).copied().unwrap_or(0) as usize;
        self.sqe.iter().skip(base as usize).take(depth).copied().collect()
    }

    /// Where BV's firmware is, as the bootstrap routine told the hardware.
    pub fn bv_base(&self) -> Option<u64> {
        self.special.bv_base.map(|at| self.control_pair(at)).filter(|&base| base != 0)
    }

    /// Where LPAC's firmware is, as the bootstrap routine told the hardware.
    pub fn lpac_base(&self) -> Option<u64> {
        let base = if self.firmware.generation() >= 7 {
            self.special.lpac_base.map(|at| self.control_pair(at))
        } else {
            self.special.lpac_sqe_base.map(|at| pair(self.gpu(at), self.gpu(at.saturating_add(1))))
        };
        base.filter(|&base| base != 0)
    }

    /// Stops before this instruction from now on; says whether it did not already.
    pub fn add_breakpoint(&mut self, pc: u32) -> bool {
        self.breakpoints.insert(pc)
    }

    /// Takes a breakpoint back; says whether there was one.
    pub fn remove_breakpoint(&mut self, pc: u32) -> bool {
        self.breakpoints.remove(&pc)
    }

    /// The breakpoints, in order.
    pub fn breakpoints(&self) -> impl Iterator<Item = u32> {
        self.breakpoints.iter().copied()
    }

    /// Whether `setsecure` succeeds; it does unless told otherwise.
    pub fn set_secure_succeeds(&mut self, succeeds: bool) {
        self.secure_succeeds = succeeds;
    }

    /// Appends words to what the ring buffer holds.
    pub fn push(&mut self, words: &[u32]) {
        self.ring.push_back(queue::QueueChunk::Words(words.iter().copied().collect()));
    }

    /// Appends `dwords` words at `address` of the emulated memory to what the ring buffer holds.
    pub fn submit(&mut self, address: u64, dwords: u32) {
        self.ring.push_back(queue::QueueChunk::Memory { address, dwords });
    }

    /// Preempts: goes on at the firmware's interrupt routine, until its `iret`. Says whether it did: not while one runs.
    pub fn interrupt(&mut self) -> bool {
        let Some(handler) = self.special.preempt.and_then(|at| self.sqe.get(at as usize).copied()) else {
            return false;
        };
        if self.interrupted.is_some() {
            return false;
        }
        self.interrupted = Some(Interrupted {
            pc: self.pc,
            branch: self.branch.take(),
            waiting: std::mem::take(&mut self.waiting),
        });
        self.pc = handler;
        true
    }

    /// The memory.
    pub fn memory(&self) -> &SqeMemory {
        &self.memory
    }

    /// The memory, to be written.
    pub fn memory_mut(&mut self) -> &mut SqeMemory {
        &mut self.memory
    }

    /// How many accesses the log keeps at most; later ones are counted only.
    pub fn set_log_limit(&mut self, limit: usize) {
        self.log_limit = limit;
    }

    /// The accesses since the last call, and how many more there were than the log keeps.
    pub fn take_log(&mut self) -> (Vec<SqeAccess>, u64) {
        (std::mem::take(&mut self.log), std::mem::take(&mut self.log_dropped))
    }

    /// Executes up to the first packet, at most `steps` instructions.
    pub fn run_bootstrap(&mut self, steps: u64) -> SqeStop {
        self.bootstrapping = true;
        let stop = self.run(steps);
        self.bootstrapping = false;
        match stop {
            SqeStop::PacketDone => SqeStop::Booted,
            other => other,
        }
    }

    /// Executes until something stops it, at most `steps` instructions. A breakpoint on the very first is passed.
    pub fn run(&mut self, steps: u64) -> SqeStop {
        let mut last = self.pc;
        for _ in 0..steps {
            // Repetitions of the same instruction are one to whoever waits for it.
            if self.pc != last && self.breakpoints.contains(&self.pc) {
                return SqeStop::Breakpoint(self.pc);
            }
            last = self.pc;
            if let Err(stop) = self.step() {
                return stop;
            }
        }
        SqeStop::Steps
    }

    /// Executes one instruction, of a `(rep)` one repetition. `Err` says why the next cannot simply follow; only
    /// [`SqeStop::NeedsData`] and faults leave the instruction undone.
    ///
    /// # Errors
    ///
    /// [`SqeStop`]: a packet is done, the bootstrap is done, the next packet's dwords are missing, or the
    /// instruction faults.
    pub fn step(&mut self) -> Result<(), SqeStop> {
        self.logging_pc = self.pc;
        self.execute()
    }

    fn note(&mut self, location: SqeLocation, write: bool, value: Option<u32>) {
        if self.log.len() < self.log_limit {
            self.log.push(SqeAccess { pc: self.logging_pc, location, write, value });
        } else {
            self.log_dropped = self.log_dropped.saturating_add(1);
        }
    }
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
