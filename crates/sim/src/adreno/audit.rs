//! What registers of work were not set in its submit, which writes change nothing, and waits for nothing.
//!
//! Facts: [`unwedge_hw::adreno::state_use`] has which registers an operation reads, `docs/lints.md` why. Never: changes what is
//! executed, or decides whether a finding is worth reporting.

use super::caches::{CacheUnit, CachedPacket, WorkPosition};
use super::cp::ThreadId;
use super::machine::AdrenoMachine;
use super::space::GMEM;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use unwedge_base::Generation;
use unwedge_hw::Gpu;
use unwedge_hw::adreno::state_use::{DrawnShape, StatePass, StateReader, StateScene, StateUse, state_uses};
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{AdrenoOp, mode};

/// Packets that wrote registers and are known by a number. Later ones share the last.
const MOST_PACKETS: usize = 1 << 20;
/// Findings of a kind that are kept.
const MOST_REPORTS: usize = 1 << 12;
/// Waits that are counted.
const MOST_WAITS: usize = 1 << 16;
/// Registers of the space.
const REGISTERS: usize = 0x4_0000;

/// Packets that give a later CP_WAIT_FOR_IDLE nothing to wait for.
const IDLE: [&str; 8] = [
    "CP_NOP",
    "CP_WAIT_FOR_IDLE",
    "CP_WAIT_FOR_ME",
    "CP_SET_MARKER",
    "CP_SET_DRAW_STATE",
    "CP_INDIRECT_BUFFER",
    "CP_SET_MODE",
    "CP_SET_AMBLE",
];

/// A packet, and where it is in the work of its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditPacket {
    /// The packet.
    pub packet: CachedPacket,
    /// Where it is when it is first executed.
    pub position: WorkPosition,
}

/// A register that work reads, and that nothing has set in its submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsetRegister {
    /// Its offset.
    pub reg: u32,
    /// What it holds; zero where nothing has ever set it.
    pub value: u32,
    /// What reads it.
    pub by: StateReader,
    /// The first packet of the submit that reads it.
    pub reader: AuditPacket,
    /// How many do.
    pub readers: u64,
    /// Who set it last, in an earlier submit.
    pub previous: Option<AuditPacket>,
    /// The nearest register that is read together with it and is set in the submit, and who set it.
    pub near: Option<(u32, AuditPacket)>,
}

/// RB_CCU_CNTL changed while a CCU is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CcuChange {
    /// Who changed it.
    pub packet: AuditPacket,
    /// The value before, and after.
    pub values: [u32; 2],
    /// A CCU that has not written everything back.
    pub dirty_in: Option<CacheUnit>,
    /// Work is not waited for.
    pub busy: bool,
}

/// CP_WAIT_FOR_IDLE, as often as its packet is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitUse {
    /// The packet.
    pub packet: AuditPacket,
    /// How often it was executed.
    pub times: u64,
    /// How often there was something to wait for.
    pub needed: u64,
}

/// Writes of a register in a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RegisterWrites {
    /// All of them.
    pub writes: u64,
    /// Those of the value that was there, and that the submit had set.
    pub redundant: u64,
}

/// What was found of registers.
#[derive(Clone, Debug, Default)]
pub struct RegisterAuditReport {
    /// Registers that are read and not set.
    pub unset: Vec<UnsetRegister>,
    /// Changes of RB_CCU_CNTL.
    pub ccu: Vec<CcuChange>,
    /// Waits for the GPU.
    pub waits: Vec<WaitUse>,
    /// Writes by register, of each submit.
    pub writes: BTreeMap<u32, BTreeMap<u32, RegisterWrites>>,
    /// Code that was run: its stage, address and instructions that may be read, and who ran it.
    pub code: Vec<AuditedCode>,
    /// There was more than is kept.
    pub more: bool,
}

/// Code of a shader that work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditedCode {
    /// The stage, as its registers name it: `VS`.
    pub stage: &'static str,
    /// Address of the first instruction.
    pub iova: u64,
    /// Bytes.
    pub size: u64,
    /// The first packet that runs it.
    pub packet: AuditPacket,
}

/// Registers that say which code a stage runs.
#[derive(Clone, Copy, Debug)]
struct CodeRegisters {
    stage: &'static str,
    start: u32,
    first: u32,
    units: u32,
    config: u32,
}

/// Instructions that a unit of SP_xS_INSTRLEN counts, in bytes.
const CODE_UNIT: u64 = 128;
/// Most units that are read.
const MOST_UNITS: u64 = 1 << 10;
/// SP_xS_CONFIG.ENABLED.
const ENABLED: u32 = 1 << 8;

/// What is followed of registers.
pub(crate) struct RegisterAudit {
    uses: Vec<StateUse>,
    code: Vec<CodeRegisters>,
    ccu: Option<u32>,
    /// By opcode: the packet gives CP_WAIT_FOR_IDLE nothing to wait for.
    idle: [bool; 128],
    /// Who wrote a register last, by thread: a number of `packets`, from 1.
    writers: [Vec<u32>; 2],
    packets: Vec<AuditPacket>,
    /// The number of the first packet of the submit.
    begun: u32,
    submit: u32,
    current: AuditPacket,
    /// It is the last one of `packets`.
    is_kept: bool,
    /// Something runs that nothing has waited for. Before the first wait of a submit it is not known.
    busy: bool,
    unset: HashMap<(u32, u32), usize>,
    waits: HashMap<CachedPacket, usize>,
    seen_code: BTreeSet<(u64, u32)>,
    report: RegisterAuditReport,
    marker: Option<u32>,
}

impl RegisterAudit {
    fn new(gpu: Gpu<'_>) -> RegisterAudit {
        let reg = |name: &str| gpu.reg_offset(name);
        let code = |stage: &'static str| {
            let name = |part: &str| reg(&format!("SP_{stage}_{part}"));
            Some(CodeRegisters {
                stage,
                start: name("OBJ_START")?,
                first: name("OBJ_FIRST_EXEC_OFFSET")?,
                units: name("INSTRLEN")?,
                config: name("CONFIG")?,
            })
        };
        let packet = CachedPacket { submit: 0, iova: 0, opcode: None, thread: ThreadId::Br };
        let mut idle = [false; 128];
        for (opcode, idle) in (0..).zip(&mut idle) {
            *idle = gpu.packet_name(opcode).is_some_and(|name| IDLE.contains(&name));
        }
        RegisterAudit {
            uses: state_uses(gpu).0,
            code: ["VS", "HS", "DS", "GS", "FS", "CS"].into_iter().filter_map(code).collect(),
            ccu: reg("RB_CCU_CNTL").filter(|_| gpu.generation() == Generation::A6xx),
            idle,
            writers: [vec![0; REGISTERS], vec![0; REGISTERS]],
            packets: Vec::new(),
            begun: 1,
            submit: 0,
            current: AuditPacket { packet, position: WorkPosition::default() },
            is_kept: false,
            busy: true,
            unset: HashMap::new(),
            waits: HashMap::new(),
            seen_code: BTreeSet::new(),
            report: RegisterAuditReport::default(),
            marker: None,
        }
    }

    fn number(&mut self) -> u32 {
        if !std::mem::replace(&mut self.is_kept, true) {
            if self.packets.len() < MOST_PACKETS {
                self.packets.push(self.current);
            } else {
                self.report.more = true;
            }
        }
        self.packets.len() as u32
    }

    fn writer(&self, id: ThreadId, reg: u32) -> u32 {
        self.writers[usize::from(id == ThreadId::Bv)].get(reg as usize).copied().unwrap_or(0)
    }

    fn packet(&self, number: u32) -> Option<AuditPacket> {
        self.packets.get((number as usize).checked_sub(1)?).copied()
    }

    /// A packet of the register that was unset, once for each submit.
    fn unset(&mut self, id: ThreadId, reg: u32, value: u32, by: StateReader, near: Option<(u32, u32)>) {
        let key = (self.submit, reg);
        if let Some(found) = self.unset.get(&key).and_then(|at| self.report.unset.get_mut(*at)) {
            found.readers += u64::from(found.reader.packet != self.current.packet);
            return;
        }
        if self.report.unset.len() >= MOST_REPORTS {
            self.report.more = true;
            return;
        }
        let previous = self.packet(self.writer(id, reg));
        let near = near.and_then(|(reg, number)| Some((reg, self.packet(number)?)));
        self.unset.insert(key, self.report.unset.len());
        let reader = self.current;
        self.report.unset.push(UnsetRegister { reg, value, by, reader, readers: 1, previous, near });
    }
}

/// Registers that were read, one bit each, and which words of these bits are not zero: after each packet there are few.
pub(crate) struct ReadTrace {
    registers: Vec<AtomicU64>,
    words: Vec<AtomicU64>,
}

impl ReadTrace {
    fn new() -> ReadTrace {
        let zeros = |bits: usize| (0..bits / 64).map(|_| AtomicU64::new(0)).collect();
        ReadTrace { registers: zeros(REGISTERS), words: zeros(REGISTERS / 64) }
    }

    pub(crate) fn read(&self, reg: u32) {
        let at = reg as usize / 64;
        if let (Some(bits), Some(words)) = (self.registers.get(at), self.words.get(at / 64)) {
            bits.fetch_or(1 << (reg % 64), Ordering::Relaxed);
            words.fetch_or(1 << (at % 64), Ordering::Relaxed);
        }
    }

    fn take(&self) -> Vec<u32> {
        let numbers = |at: usize, bits: u64| {
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| at * 64 + bit)
        };
        let taken = |of: &AtomicU64| of.swap(0, Ordering::Relaxed);
        let words = self.words.iter().enumerate().map(|(at, words)| (at, taken(words)));
        let words = words.filter(|(_, bits)| *bits != 0).flat_map(|(at, bits)| numbers(at, bits));
        words.flat_map(|at| numbers(at, taken(&self.registers[at]))).map(|reg| reg as u32).collect()
    }
}

impl AdrenoMachine<'_> {
    /// Follows who has set which registers, and written which bytes. It needs the caches ([`AdrenoMachine::enable_caches`]).
    pub fn enable_audit(&mut self) {
        self.audit = Some(Box::new(RegisterAudit::new(self.gpu)));
        self.space.enable_audit();
    }

    /// Takes what was found of registers so far. What is read later is reported again.
    pub fn take_register_audit(&mut self) -> RegisterAuditReport {
        let Some(audit) = &mut self.audit else { return RegisterAuditReport::default() };
        audit.unset.clear();
        audit.waits.clear();
        std::mem::take(&mut audit.report)
    }

    /// Records which registers are read from here on.
    pub fn trace_register_reads(&mut self) {
        self.read_trace = Some(ReadTrace::new());
    }

    /// The registers that were read since the last call, by offset.
    pub fn take_register_reads(&self) -> Vec<u32> {
        self.read_trace.as_ref().map(ReadTrace::take).unwrap_or_default()
    }

    /// A submit begins: nothing is set in it yet.
    pub(crate) fn audit_submit(&mut self) {
        let Some(audit) = &mut self.audit else { return };
        audit.submit += 1;
        audit.begun = audit.packets.len() as u32 + 1;
        (audit.is_kept, audit.busy) = (false, true);
        // Another process may have had it since.
        self.forget_gmem();
    }

    /// A packet is executed.
    pub(crate) fn audit_packet(&mut self, iova: u64, header: AdrenoPacketHeader, id: ThreadId) {
        let work = self.work_done;
        let Some(audit) = &mut self.audit else { return };
        let opcode = match header {
            AdrenoPacketHeader::Operation { opcode, .. } => Some(opcode),
            _ => None,
        };
        let position = WorkPosition { work, pass: audit.current.position.pass };
        let packet = CachedPacket { submit: audit.submit, iova, opcode, thread: id };
        audit.current = AuditPacket { packet, position };
        audit.is_kept = false;
        self.space.set_position(position);
        let Some(opcode) = opcode else { return };
        if self.ops[usize::from(opcode)] == AdrenoOp::WaitForIdle {
            audit.wait();
        } else if !audit.idle.get(usize::from(opcode)).copied().unwrap_or(false) {
            audit.busy = true;
        }
    }

    /// CP_SET_MARKER: whether a render pass or a tile begins.
    pub(crate) fn audit_marker(&mut self, value: u32) {
        const DIRECT: u32 = 1;
        const BINNING: u32 = 2;
        const BIN: u32 = 4;
        const BINS: [u32; 4] = [BINNING, 3, BIN, 6];
        let Some(audit) = &mut self.audit else { return };
        let before = audit.marker.replace(value);
        let within = before.is_some_and(|before| BINS.contains(&before) || before == 5);
        if matches!(value, DIRECT | BINNING) || value == BIN && !within {
            audit.current.position.pass += 1;
        }
        if value == BIN {
            // A tile begins. What the one before has left in GMEM is of other pixels.
            self.forget_gmem();
        }
    }

    /// What GMEM holds is not of what is rendered next.
    fn forget_gmem(&self) {
        self.space.forget_origins(GMEM.start, GMEM.end - GMEM.start);
    }

    /// A register is written.
    pub(crate) fn audit_write(&mut self, id: ThreadId, reg: u32, value: u32) {
        if self.audit.is_none() {
            return;
        }
        let at = usize::from(id == ThreadId::Bv && self.threads.len() > 1);
        let old = self.registers[at].get(reg);
        let dirty = [CacheUnit::CcuColor, CacheUnit::CcuDepth]
            .into_iter()
            .find(|unit| self.space.has_unwritten(*unit));
        let is_command = Some(reg) == self.places.invalidate;
        let Some(audit) = &mut self.audit else { return };
        let before = audit.writer(id, reg);
        let number = audit.number();
        if let Some(writer) = audit.writers[usize::from(id == ThreadId::Bv)].get_mut(reg as usize) {
            *writer = number;
        }
        let was_set = before >= audit.begun;
        let writes = audit.report.writes.entry(audit.submit).or_default().entry(reg).or_default();
        writes.writes += 1;
        writes.redundant += u64::from(was_set && old == Some(value) && !is_command);
        audit.busy |= is_command;
        let changes = Some(reg) == audit.ccu && was_set && old != Some(value);
        if changes && (dirty.is_some() || audit.busy) && audit.report.ccu.len() < MOST_REPORTS {
            let (packet, busy, values) = (audit.current, audit.busy, [old.unwrap_or(0), value]);
            audit.report.ccu.push(CcuChange { packet, values, dirty_in: dirty, busy });
        }
    }

    /// Work is about to be done: which of the registers that it reads are not set. `first` is the first dword of its packet.
    pub(crate) fn audit_work(&mut self, id: ThreadId, op: AdrenoOp, first: u32) {
        use StateReader as R;
        let readers: &[R] = match op {
            AdrenoOp::ExecCs => &[R::Dispatch, R::DispatchDirect],
            AdrenoOp::ExecCsIndirect => &[R::Dispatch],
            AdrenoOp::RunOpencl => &[R::Dispatch, R::DispatchRegisters],
            AdrenoOp::Blit => &[R::Blit],
            AdrenoOp::EventWrite | AdrenoOp::EventWrite7 => &[R::Resolve],
            AdrenoOp::DrawIndx | AdrenoOp::DrawIndx2 | AdrenoOp::DrawIndxOffset => &[R::Draw, R::DrawDirect],
            _ => &[R::Draw],
        };
        let is_event = matches!(op, AdrenoOp::EventWrite | AdrenoOp::EventWrite7);
        if is_event && self.thread(id).modes == mode::BINNING {
            // Events of GMEM do nothing there.
            return;
        }
        let Some(mut audit) = self.audit.take() else { return };
        let pass = match self.thread(id).modes {
            mode::BINNING => Some(StatePass::Binning),
            mode::GMEM => Some(StatePass::Bin),
            mode::SYSMEM => Some(StatePass::Sysmem),
            _ => None,
        };
        // As pc_di_primtype has them.
        let shape = match first & 0x3f {
            1 | 9 => DrawnShape::Points,
            8 => DrawnShape::Rects,
            _ => DrawnShape::Other,
        };
        let scene = StateScene { pass, shape };
        let is_set = |audit: &RegisterAudit, reg: u32| audit.writer(id, reg) >= audit.begun;
        let value = |reg: u32| is_set(&audit, reg).then(|| self.read_register(id, reg));
        /// A register, what reads it, and the nearest register of its row that was set, with its writer.
        type Unset = (u32, StateReader, Option<(u32, u32)>);
        let missing: Vec<Unset> = audit
            .uses
            .iter()
            .filter(|row| readers.contains(&row.reader))
            .filter(|row| row.registers.iter().any(|reg| !is_set(&audit, *reg)))
            .filter(|row| row.applies(scene, &value) == Some(true))
            .flat_map(|row| {
                let set = row.registers.iter().filter(|reg| is_set(&audit, **reg));
                let set: Vec<u32> = set.copied().collect();
                let near = move |reg: u32| set.iter().copied().min_by_key(|near| near.abs_diff(reg));
                let unset = row.registers.iter().filter(|reg| !is_set(&audit, **reg));
                unset.map(move |&reg| (reg, row.reader, near(reg))).collect::<Vec<_>>()
            })
            .map(|(reg, reader, near)| (reg, reader, near.map(|near| (near, audit.writer(id, near)))))
            .collect();
        for (reg, reader, near) in missing {
            let value = self.read_register(id, reg);
            audit.unset(id, reg, value, reader, near);
        }
        self.audit_code(id, op, &mut audit);
        self.audit = Some(audit);
    }

    /// The shaders of work.
    fn audit_code(&self, id: ThreadId, op: AdrenoOp, audit: &mut RegisterAudit) {
        if matches!(op, AdrenoOp::Blit | AdrenoOp::EventWrite | AdrenoOp::EventWrite7) {
            return;
        }
        for CodeRegisters { stage, start, first, units, config } in audit.code.clone() {
            let runs = if op.is_dispatch() { stage == "CS" } else { stage != "CS" };
            if !runs || self.read_register(id, config) & ENABLED == 0 {
                continue;
            }
            let offset = u64::from(self.read_register(id, first));
            let iova = self.register_pair(id, Some(start)).wrapping_add(offset);
            if audit.report.code.len() >= MOST_REPORTS || !audit.seen_code.insert((iova, audit.submit)) {
                continue;
            }
            let units = u64::from(self.read_register(id, units)).clamp(1, MOST_UNITS);
            audit.report.code.push(AuditedCode {
                stage,
                iova,
                size: units * CODE_UNIT,
                packet: audit.current,
            });
        }
    }
}

impl RegisterAudit {
    fn wait(&mut self) {
        let needed = std::mem::replace(&mut self.busy, false);
        let next = self.report.waits.len();
        let at = *self.waits.entry(self.current.packet).or_insert(next);
        if at == next {
            if next >= MOST_WAITS {
                self.waits.remove(&self.current.packet);
                return;
            }
            self.report.waits.push(WaitUse { packet: self.current, times: 0, needed: 0 });
        }
        self.report.waits[at].times += 1;
        self.report.waits[at].needed += u64::from(needed);
    }
}
