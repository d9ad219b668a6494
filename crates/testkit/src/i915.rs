//! Builds i915 error states: the text that kernels of an era write.
//!
//! Facts: `i915_gpu_error.c`, `intel_guc_capture.c`, Linux 4.4 to 6.12.

use crate::intel::{
    EngineState, MI_BATCH_BUFFER_END, TestDevice, batch_buffer_start, load_registers, pipe_control,
    primitive, push_line, semaphore_wait, store_data, stream,
};
use std::fmt::Write as _;
use unwedge_capture::intel::{BlockEncoding, BlockText, RingRegister};

/// A kernel version at which the text had changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum I915Era {
    /// Memory as rows of numbers, engines called `render`, hang checks with a score, most INSTDONE behind the fences.
    V4_4,
    /// Memory as packed ascii85, engines called `render` in registers and `render ring` in front of memory.
    V4_10,
    /// Engines called `rcs0`; what hangs is said by `hangcheck`; lists of buffers and requests.
    V4_19,
    /// Memory below its engine, the batch called `batch`; a flag says who hangs.
    V5_10,
    /// Registers captured by the GuC on gen12.
    V6_1,
    /// As 6.1; the kernel names its machine.
    V6_12,
}

impl I915Era {
    /// Every era, oldest first.
    pub const ALL: [I915Era; 6] =
        [I915Era::V4_4, I915Era::V4_10, I915Era::V4_19, I915Era::V5_10, I915Era::V6_1, I915Era::V6_12];

    /// As `Kernel:` has it.
    pub fn release(self) -> &'static str {
        match self {
            I915Era::V4_4 => "4.4.0",
            I915Era::V4_10 => "4.10.0",
            I915Era::V4_19 => "4.19.0",
            I915Era::V5_10 => "5.10.0 x86_64",
            I915Era::V6_1 => "6.1.0 x86_64",
            I915Era::V6_12 => "6.12.0 x86_64",
        }
    }
}

/// Builds an error state.
///
/// ```
/// use unwedge_capture::intel::RingRegister;
/// use unwedge_testkit::i915::{I915Era, ErrorStateBuilder};
/// use unwedge_testkit::intel::{TestDevice, EngineState, MI_BATCH_BUFFER_END};
///
/// let text = ErrorStateBuilder::new(TestDevice::named("tgl"))
///     .era(I915Era::V6_12)
///     .engine(
///         EngineState::new("rcs0")
///             .set(RingRegister::Acthd, 0x10_0000)
///             .set(RingRegister::Ipehr, 0x7a00_0004)
///             .batch(0x10_0000, &[0x7a00_0004, 0, 0, 0, 0, 0, MI_BATCH_BUFFER_END])
///             .process("game", 1234)
///             .hung(1),
///     )
///     .text();
/// assert!(text.starts_with(b"GPU HANG: ecode 12:1:"));
/// ```
#[derive(Clone, Debug)]
pub struct ErrorStateBuilder {
    device: TestDevice,
    era: I915Era,
    engines: Vec<EngineState>,
    registers: Vec<(String, String)>,
    guc_log: Option<(u64, Vec<u32>)>,
    semaphores: Option<(u64, Vec<u32>)>,
    fault: Option<(u32, u32)>,
    guc_capture: bool,
    unpacked: bool,
    attention: Option<(u32, Vec<u32>, Vec<u32>)>,
    listed: Vec<(u64, u64)>,
}

impl ErrorStateBuilder {
    /// Of a device, under 6.12, without engines.
    pub fn new(device: TestDevice) -> ErrorStateBuilder {
        ErrorStateBuilder {
            device,
            era: I915Era::V6_12,
            engines: Vec::new(),
            registers: Vec::new(),
            guc_log: None,
            semaphores: None,
            fault: None,
            guc_capture: false,
            unpacked: false,
            attention: None,
            listed: Vec::new(),
        }
    }

    /// Under another kernel.
    pub fn era(mut self, era: I915Era) -> ErrorStateBuilder {
        self.era = era;
        self
    }

    /// Adds an engine.
    pub fn engine(mut self, engine: EngineState) -> ErrorStateBuilder {
        self.engines.push(engine);
        self
    }

    /// Sets a register of the GT by the name that is printed: `EIR`, `GTIER[0]`.
    pub fn register(mut self, name: &str, value: u32) -> ErrorStateBuilder {
        self.registers.retain(|(n, _)| n != name);
        self.registers.push((name.to_owned(), format!("0x{value:08x}")));
        self
    }

    /// A page fault, as FAULT_TLB_DATA0 and 1 have it.
    pub fn fault(mut self, data0: u32, data1: u32) -> ErrorStateBuilder {
        self.fault = Some((data0, data1));
        self
    }

    /// Adds a buffer to those that kernels before 5.6 list as in use: address and bytes.
    pub fn listed(mut self, address: u64, bytes: u64) -> ErrorStateBuilder {
        self.listed.push((address, bytes));
        self
    }

    /// The log of the GuC (4.10 on).
    pub fn guc_log(mut self, address: u64, dwords: &[u32]) -> ErrorStateBuilder {
        self.guc_log = Some((address, dwords.to_vec()));
        self
    }

    /// The semaphore page (before 4.19).
    pub fn semaphores(mut self, address: u64, dwords: &[u32]) -> ErrorStateBuilder {
        self.semaphores = Some((address, dwords.to_vec()));
        self
    }

    /// TD_CTL, and which threads waited for a debugger before and after all were halted: what Intel's driver for data
    /// centre GPUs prints.
    pub fn attention(mut self, control: u32, before: &[u32], after: &[u32]) -> ErrorStateBuilder {
        self.attention = Some((control, before.to_vec(), after.to_vec()));
        self
    }

    /// The registers are those the GuC captured (5.19 on).
    pub fn guc_capture(mut self) -> ErrorStateBuilder {
        self.guc_capture = true;
        self
    }

    /// The kernel does not pack memory (CONFIG_DRM_I915_COMPRESS_ERROR is off).
    pub fn unpacked(mut self) -> ErrorStateBuilder {
        self.unpacked = true;
        self
    }

    /// A hang of the render engine in a batch that the ring started, with all that this era captures: the ring, the
    /// batch in front of the draw that hangs, the context, status page, workaround batches, a buffer of the
    /// application, the GuC's log.
    pub fn complete(device: TestDevice, era: I915Era) -> ErrorStateBuilder {
        let batch_at = 0x0000_0001_0010_0000;
        let (ring_at, context_at, status_at) = (0x0010_0000, 0x0020_0000, 0x0030_0000);
        let batch = stream(&[
            &pipe_control(1 << 20),
            &load_registers(&[(0x2580, 0x0001_0001)]),
            &store_data(batch_at + 0x800, 7),
            &primitive(3),
            &pipe_control(1 << 20 | 1 << 12),
            &[MI_BATCH_BUFFER_END],
        ]);
        let ring = stream(&[
            &[0, 0],
            &batch_buffer_start(batch_at),
            &[0],
            &pipe_control(1 << 20),
            &[0x0100_0000, 0],
        ]);
        let draw = batch.iter().position(|&d| d == 0x7b00_0005).map_or(0, |at| at as u64 * 4);
        let mut context = vec![0; 2 * 1024];
        context[1024..1028].copy_from_slice(&[0, 0x1100_001b, 0x2244, 0x0009_0009]);
        let render = EngineState::new("rcs0")
            .ring(ring_at, &ring, 0x14, 0x38)
            .set(RingRegister::Acthd, batch_at + draw + 8)
            .set(RingRegister::BbAddr, batch_at + draw + 9)
            .set(RingRegister::Ipehr, 0x7b00_0005)
            .set(RingRegister::Instdone, 0xffdf_fffe)
            .set(RingRegister::Ccid, context_at | 1)
            .register("SC_INSTDONE", 0xffff_fffd)
            .register("SAMPLER_INSTDONE[0][0]", 0xffff_ffff)
            .register("ROW_INSTDONE[0][0]", 0xffff_ffef)
            .batch(batch_at, &batch)
            .context(context_at, &context)
            .status_page(status_at, &[0, 0, 5, 4])
            .wa_context(0x0040_0000, &[0x1100_0001, 0x20c0, 0x8000_8000, MI_BATCH_BUFFER_END])
            .user(batch_at + 0x10_0000, &[0x1234_5678, 0x9abc_def0])
            .process("game", 1234)
            .port(5, 0, 0x38)
            .hung(1);
        let copy = EngineState::new("bcs0")
            .ring(0x0011_0000, &semaphore_wait(0x0030_0000, 5, device), 0x10, 0x10)
            .process("Xorg", 577);
        ErrorStateBuilder::new(device)
            .era(era)
            .register("EIR", 0)
            .register("GTIER[0]", 0x0100_0101)
            .register("FORCEWAKE", 1)
            .fault(0x0001_0010, 0)
            .engine(render)
            .engine(copy)
            .guc_log(0x0050_0000, &[0xcabb_a9e6, 3, 0, 0])
            .semaphores(0x0060_0000, &[1, 2, 3, 4])
    }

    /// The text.
    pub fn text(&self) -> Vec<u8> {
        let mut out = I915Text { builder: self, out: String::new() };
        out.device();
        if self.era >= I915Era::V5_10 {
            for engine in &self.engines {
                out.engine(engine);
                engine.memory.iter().for_each(|m| out.memory(engine, m));
            }
            out.firmware();
        } else {
            self.engines.iter().for_each(|e| out.engine(e));
            out.lists();
            for engine in &self.engines {
                out.old_memory(engine);
            }
            out.old_end();
        }
        out.out.into_bytes()
    }
}

struct I915Text<'b> {
    builder: &'b ErrorStateBuilder,
    out: String,
}

impl I915Text<'_> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        push_line(&mut self.out, text);
    }

    fn yes(flag: bool) -> &'static str {
        if flag { "yes" } else { "no" }
    }

    fn device(&mut self) {
        let b = self.builder;
        let (device, era) = (b.device, b.era);
        let first = b.engines.iter().find(|e| e.hung);
        let code = first.map_or(0, |e| e.get(RingRegister::Ipehr) ^ e.get(RingRegister::Instdone)) as u32;
        let who = match first.and_then(|e| e.process.as_ref()) {
            Some((name, pid)) => format!(", in {name} [{pid}]"),
            None => String::new(),
        };
        let version = device.version.0;
        match era {
            I915Era::V4_4 | I915Era::V4_10 => self.line(format_args!(
                "GPU HANG: ecode {version}:0:0x{code:08x}{who}, reason: Hang on render ring, action: reset"
            )),
            I915Era::V4_19 => self.line(format_args!(
                "GPU HANG: ecode {version}:0:0x{code:08x}{who}, reason: hang on rcs0, action: reset"
            )),
            _ => self.line(format_args!("GPU HANG: ecode {version}:1:{code:08x}{who}")),
        }
        self.line(format_args!("Kernel: {}", era.release()));
        self.line(format_args!("Time: 1700000000 s 123456 us"));
        self.line(format_args!("Boottime: 4711 s 17 us"));
        self.line(format_args!("Uptime: 4700 s 3 us"));
        if era >= I915Era::V4_19 {
            self.line(format_args!("Capture: 4296000000 jiffies; 1234 ms ago"));
        }
        for engine in &b.engines {
            if let Some((name, pid)) = &engine.process {
                let ring = self.engine_name(engine);
                self.line(format_args!("Active process (on ring {ring}): {name} [{pid}]"));
            }
        }
        self.line(format_args!("Reset count: 0\nSuspend count: 0"));
        if era >= I915Era::V4_19 {
            self.line(format_args!("Platform: {}", device.platform));
        }
        if era >= I915Era::V5_10 {
            self.line(format_args!("Subplatform: 0x0"));
        }
        self.line(format_args!("PCI ID: 0x{:04x}\nPCI Revision: 0x01", device.pci_id));
        self.line(format_args!("PCI Subsystem: 8086:7270\nIOMMU enabled?: 0"));
        if era >= I915Era::V4_19 {
            self.line(format_args!("RPM wakelock: yes\nPM suspended: no\nGT awake: yes"));
        }
        let mut registers = b.registers.clone();
        if let Some((data0, data1)) = b.fault.filter(|_| !self.is_guc_captured()) {
            registers.push(("FAULT_TLB_DATA".to_owned(), format!("0x{data1:08x} 0x{data0:08x}")));
        }
        for (name, value) in &mut registers {
            if era < I915Era::V4_19 && name.starts_with("GTIER[") {
                *name = name.replace('[', " gt ").replace(']', "");
            }
            let _ = writeln!(self.out, "{name}: {value}");
        }
        for i in 0..4 {
            self.line(format_args!("  fence[{i}] = {:08x}", i * 0x1000));
        }
        if era == I915Era::V4_4 {
            let render = b.engines.iter().find(|e| e.name == "rcs0");
            let named = |name: &str| render?.named.iter().find(|(n, _)| n.starts_with(name)).map(|r| r.1);
            let own = render.map(|e| e.get(RingRegister::Instdone));
            let of_render = [own, named("SC_INSTDONE"), named("SAMPLER_INSTDONE"), named("ROW_INSTDONE")];
            for (i, value) in of_render.into_iter().enumerate() {
                self.line(format_args!("  INSTDONE_{i}: 0x{:08x}", value.unwrap_or(0xffff_ffff)));
            }
        }
    }

    fn engine_name(&self, engine: &EngineState) -> String {
        if self.builder.era >= I915Era::V4_19 {
            return engine.name.clone();
        }
        match engine.name.as_str() {
            "rcs0" => "render",
            "bcs0" => "blt",
            "vcs0" => "bsd",
            "vcs1" => "bsd2",
            "vecs0" => "vebox",
            other => other,
        }
        .to_owned()
    }

    /// How the engine is called in front of its memory.
    fn owner(&self, engine: &EngineState) -> String {
        match self.engine_name(engine).as_str() {
            "render" => "render ring".to_owned(),
            "blt" => "blitter ring".to_owned(),
            "bsd" => "bsd ring".to_owned(),
            "bsd2" => "bsd2 ring".to_owned(),
            "vebox" => "video enhancement ring".to_owned(),
            other => other.to_owned(),
        }
    }

    fn is_guc_captured(&self) -> bool {
        self.builder.guc_capture && self.builder.era >= I915Era::V6_1
    }

    fn engine(&mut self, engine: &EngineState) {
        if self.is_guc_captured() {
            self.guc_captured(engine);
        } else {
            self.registers(engine);
        }
        self.end_of_engine(engine);
    }

    fn registers(&mut self, engine: &EngineState) {
        use RingRegister as R;
        let era = self.builder.era;
        let r = |register| engine.get(register);
        let halves = |register| (r(register) >> 32, r(register) & 0xffff_ffff);
        let name = self.engine_name(engine);
        self.line(format_args!("{name} command stream:"));
        if era >= I915Era::V5_10 {
            self.line(format_args!("  CCID:  0x{:08x}", r(R::Ccid)));
        }
        self.line(format_args!("  START: 0x{:08x}", r(R::Start)));
        match era {
            I915Era::V4_4 => {
                self.line(format_args!("  HEAD:  0x{:08x}", r(R::Head)));
                self.line(format_args!("  TAIL:  0x{:08x}", r(R::Tail)));
            }
            _ => {
                let (head, tail) = engine.ports.first().map_or((0, 0), |p| (p.1, p.2));
                self.line(format_args!("  HEAD:  0x{:08x} [0x{head:08x}]", r(R::Head)));
                self.line(format_args!("  TAIL:  0x{:08x} [0x{tail:08x}, 0x{tail:08x}]", r(R::Tail)));
            }
        }
        self.line(format_args!("  CTL:   0x{:08x}", r(R::Ctl)));
        self.line(format_args!("  MODE:  0x{:08x}", r(R::MiMode)));
        self.line(format_args!("  HWS:   0x{:08x}", r(R::Hws)));
        let (high, low) = halves(R::Acthd);
        self.line(format_args!("  ACTHD: 0x{high:08x} {low:08x}"));
        self.line(format_args!("  IPEIR: 0x{:08x}\n  IPEHR: 0x{:08x}", r(R::Ipeir), r(R::Ipehr)));
        if era >= I915Era::V5_10 {
            self.line(format_args!("  ESR:   0x{:08x}", r(R::Esr)));
        }
        self.line(format_args!("  INSTDONE: 0x{:08x}", r(R::Instdone)));
        let of_engine = |name: &str| name.contains("INSTDONE") && era > I915Era::V4_4;
        for (name, value) in engine.named.iter().filter(|(name, _)| of_engine(name)) {
            self.line(format_args!("  {name}: 0x{value:08x}"));
        }
        if let Some((from, to)) = engine.batch_range().filter(|_| era > I915Era::V4_4) {
            let half = |n: u64| format!("0x{:08x}_{:08x}", n >> 32, n & 0xffff_ffff);
            self.line(format_args!("  batch: [{}, {}]", half(from), half(to)));
        }
        let (high, low) = halves(R::BbAddr);
        let between = if era == I915Era::V4_4 { ' ' } else { '_' };
        self.line(format_args!("  BBADDR: 0x{high:08x}{between}{low:08x}"));
        self.line(format_args!("  BB_STATE: 0x{:08x}\n  INSTPS: 0x{:08x}", r(R::BbState), r(R::InstPs)));
        self.line(format_args!("  INSTPM: 0x{:08x}", r(R::InstPm)));
        let (high, low) = halves(R::DmaFaddr);
        self.line(format_args!("  FADDR: 0x{high:08x} {low:08x}"));
        self.line(format_args!("  RC PSMI: 0x{:08x}\n  FAULT_REG: 0x{:08x}", r(R::Psmi), r(R::Fault)));
        if era < I915Era::V5_10 {
            self.line(format_args!("  SYNC_0: 0x00000000\n  SYNC_1: 0x00000000"));
        }
        self.line(format_args!("  GFX_MODE: 0x{:08x}", r(R::GfxMode)));
        for (name, value) in engine.named.iter().filter(|(name, _)| !name.contains("INSTDONE")) {
            self.line(format_args!("  {name}: 0x{value:08x}"));
        }
        for i in 0..4 {
            self.line(format_args!("  PDP{i}: 0x{:016x}", 0x1000 * i));
        }
    }

    /// As the GuC's capture is printed: 64-bit registers in halves.
    fn guc_captured(&mut self, engine: &EngineState) {
        use RingRegister as R;
        let r = |register| engine.get(register);
        self.line(format_args!("global --- GuC Error Capture on {} command stream:", engine.name));
        let (data0, data1) = self.builder.fault.unwrap_or_default();
        let global = [
            ("FORCEWAKE", 1),
            ("GEN8_FAULT_TLB_DATA0", 0),
            ("GEN8_FAULT_TLB_DATA1", 0),
            ("GEN12_FAULT_TLB_DATA0", u64::from(data0)),
            ("GEN12_FAULT_TLB_DATA1", u64::from(data1)),
            ("FAULT_REG", r(R::Fault)),
        ];
        self.line(format_args!("Coverage:  full-capture\n  RegListType: Global\n    Owner-Id: 0"));
        self.line(format_args!("    NumRegs: {}", global.len()));
        for (name, value) in global {
            self.line(format_args!("      {name}:  0x{value:08x}"));
        }
        self.line(format_args!("  RegListType: Engine-Class\n    Owner-Id: 0\n    GuC-Eng-Class: 0"));
        self.line(format_args!("    i915-Eng-Class: 0\n    NumRegs: {}", engine.named.len()));
        for (name, value) in &engine.named {
            self.line(format_args!("      {name}:  0x{value:08x}"));
        }
        self.line(format_args!("  RegListType: Engine-Instance\n    Owner-Id: 0"));
        self.line(format_args!("    i915-Eng-Name: {} command stream", engine.name));
        self.line(format_args!("    i915-Eng-Inst-Class: 0x00\n    i915-Eng-Inst-Id: 0x00"));
        self.line(format_args!("    i915-Eng-LogicalMask: 0x00000001\n    GuC-Engine-Inst-Id: 0x00000000"));
        self.line(format_args!("    GuC-Context-Id: 0x00000007\n    LRCA: 0x{:08x}", r(R::Ccid)));
        let halves = [
            (R::DmaFaddr, "RING_DMA_FADD_LDW", "RING_DMA_FADD_UDW"),
            (R::BbAddr, "RING_BBADDR_LOW32", "RING_BBADDR_UP32"),
            (R::Acthd, "ACTHD_LDW", "ACTHD_UDW"),
        ];
        let whole = [
            (R::Psmi, "RC PSMI"),
            (R::Esr, "ESR"),
            (R::Ipeir, "IPEIR"),
            (R::Ipehr, "IPEHR"),
            (R::InstPs, "INSTPS"),
            (R::BbState, "BB_STATE"),
            (R::Ccid, "CCID"),
            (R::InstPm, "INSTPM"),
            (R::Instdone, "INSTDONE"),
            (R::Start, "START"),
            (R::Head, "HEAD"),
            (R::Tail, "TAIL"),
            (R::Ctl, "CTL"),
            (R::MiMode, "MODE"),
            (R::Hws, "HWS"),
            (R::GfxMode, "GFX_MODE"),
        ];
        self.line(format_args!("    NumRegs: {}", whole.len() + 2 * halves.len() + 1));
        for (register, low, high) in halves {
            self.line(format_args!("      {low}:  0x{:08x}", r(register) & 0xffff_ffff));
            self.line(format_args!("      {high}:  0x{:08x}", r(register) >> 32));
        }
        for (register, name) in whole {
            self.line(format_args!("      {name}:  0x{:08x}", r(register)));
        }
        self.line(format_args!("      REG-0x00002234:  0x00000000"));
    }

    fn end_of_engine(&mut self, engine: &EngineState) {
        let era = self.builder.era;
        match era {
            I915Era::V4_4 | I915Era::V4_10 => {
                self.line(format_args!("  seqno: 0x00000004\n  last_seqno: 0x00000005"));
                self.line(format_args!("  waiting: yes\n  ring->head: 0x00000000\n  ring->tail: 0x00000038"));
                let what = if engine.hung { "hung [30]" } else { "idle [0]" };
                self.line(format_args!("  hangcheck: {what}"));
            }
            I915Era::V4_19 => {
                self.line(format_args!("  hangcheck stall: {}", I915Text::yes(engine.hung)));
                let action = if engine.hung { "dead" } else { "idle" };
                self.line(format_args!("  hangcheck action: {action}"));
                self.line(format_args!("  hangcheck action timestamp: 6000ms (4296000000; epoch)"));
                self.line(format_args!("  engine reset count: 0"));
            }
            _ => {
                self.line(format_args!("  hung: {}\n  engine reset count: 0", u8::from(engine.hung)));
            }
        }
        let pid = engine.process.as_ref().map_or(0, |p| p.1);
        if era > I915Era::V4_4 {
            for (i, (seqno, head, tail)) in engine.ports.iter().enumerate() {
                self.line(format_args!(
                    "  ELSP[{i}]:  pid {pid}, seqno {:8x}:{seqno:08x}+, prio 0, head {head:08x}, tail {tail:08x}",
                    0x1a
                ));
            }
        }
        let Some((name, pid)) = &engine.process else { return };
        let guilty = engine.guilty;
        match era {
            I915Era::V4_4 | I915Era::V4_10 => {}
            I915Era::V4_19 => self.line(format_args!(
                "  Active context: {name}[{pid}] user_handle 1 hw_id 3, prio 0, ban score 0 guilty {guilty} active 0"
            )),
            _ => {
                self.line(format_args!(
                    "  Active context: {name}[{pid}] prio 0, guilty {guilty} active 0, runtime total 987654ns, avg 321ns"
                ));
                if era == I915Era::V6_12 {
                    self.line(format_args!("  context timeline seqno 4"));
                }
            }
        }
    }

    fn encoding(&self) -> BlockEncoding {
        match self.builder.era {
            I915Era::V4_4 => BlockEncoding::Rows,
            _ if self.builder.unpacked => BlockEncoding::Ascii85,
            _ => BlockEncoding::Ascii85Zlib,
        }
    }

    fn dwords(&mut self, dwords: &[u32]) {
        let mut whole = dwords.to_vec();
        whole.resize(whole.len().next_multiple_of(1024), 0);
        let encoding = self.encoding();
        let data = BlockText::encode(&whole, encoding);
        match encoding {
            BlockEncoding::Ascii85 => self.out.push('~'),
            BlockEncoding::Ascii85Zlib => self.out.push(':'),
            BlockEncoding::Rows => {}
        }
        self.out.push_str(&String::from_utf8_lossy(&data.text));
        if encoding != BlockEncoding::Rows {
            self.out.push('\n');
        }
    }

    fn heading(&mut self, owner: &str, name: &str, address: u64) {
        match self.builder.era {
            I915Era::V4_4 => self.line(format_args!("{owner} --- {name} = 0x{address:08x}")),
            _ => self.line(format_args!(
                "{owner} --- {name} = 0x{:08x} {:08x}",
                address >> 32,
                address & 0xffff_ffff
            )),
        }
    }

    fn memory(&mut self, engine: &EngineState, memory: &(&'static str, u64, Vec<u32>)) {
        let (name, address, dwords) = memory;
        self.heading(&engine.name, name, *address);
        self.dwords(dwords);
    }

    /// Memory of an engine as kernels before 5.6 call it.
    fn old_memory(&mut self, engine: &EngineState) {
        let owner = self.owner(engine);
        for (name, address, dwords) in &engine.memory {
            match *name {
                "batch" => {
                    let by = engine.process.as_ref();
                    let by =
                        by.map_or(String::new(), |(name, pid)| format!(" (submitted by {name} [{pid}])"));
                    let halves = format!("0x{:08x} {:08x}", address >> 32, address & 0xffff_ffff);
                    self.line(format_args!("{owner}{by} --- gtt_offset = {halves}"));
                    self.dwords(dwords);
                }
                "ring" => {
                    if !engine.ports.is_empty() {
                        self.line(format_args!("{owner} --- {} requests", engine.ports.len()));
                        for (seqno, head, tail) in &engine.ports {
                            let pid = engine.process.as_ref().map_or(0, |p| p.1);
                            self.line(format_args!(
                                "  pid {pid}, ban score 0, seqno {:8x}:{seqno:08x}, prio 0, emitted 7ms, start 00100000, head {head:08x}, tail {tail:08x}",
                                0x1a
                            ));
                        }
                    }
                    self.heading(&owner, "ringbuffer", *address);
                    self.dwords(dwords);
                }
                // Rows of four for what is not a buffer object.
                "HW Status" if self.builder.era == I915Era::V4_4 => {
                    self.heading(&owner, name, *address);
                    self.rows_of_four(dwords);
                }
                name => {
                    self.heading(&owner, name, *address);
                    self.dwords(dwords);
                }
            }
        }
    }

    fn rows_of_four(&mut self, dwords: &[u32]) {
        for (i, four) in dwords.chunks_exact(4).enumerate() {
            let [a, b, c, d] = four else { return };
            self.line(format_args!("[{:04x}] {a:08x} {b:08x} {c:08x} {d:08x}", i * 16));
        }
    }

    /// Buffers that are bound, before 5.6.
    fn lists(&mut self) {
        let batch = [(0x1_0010_0000, 4096)];
        let listed = if self.builder.listed.is_empty() { &batch[..] } else { &self.builder.listed };
        let count = listed.len();
        let old = self.builder.era == I915Era::V4_4;
        match old {
            true => self.line(format_args!("vm[0]\n  Active [{count}]:")),
            false => self.line(format_args!("Active (rcs0) [{count}]:")),
        }
        for &(address, bytes) in listed {
            let (high, low) = (address >> 32, address as u32);
            self.line(format_args!("    {high:08x}_{low:08x} {bytes:>8} 41 00 [ 05 00 00 00 ] 00 dirty LLC"));
        }
        self.line(format_args!("{} [0]:", if old { "  Pinned" } else { "Pinned (global)" }));
    }

    fn old_end(&mut self) {
        let b = self.builder;
        if let Some((address, dwords)) = &b.semaphores {
            if b.era == I915Era::V4_4 {
                self.line(format_args!("Semaphore page = 0x{address:08x}"));
                self.rows_of_four(dwords);
            } else if b.era == I915Era::V4_10 {
                self.heading("global", "Semaphores", *address);
                self.dwords(dwords);
            }
        }
        if let Some((address, dwords)) = b.guc_log.as_ref().filter(|_| b.era > I915Era::V4_4) {
            self.heading("global", "GuC log buffer", *address);
            self.dwords(dwords);
        }
        self.line(format_args!(
            "Num Pipes: 1\nPWR_WELL_CTL2: 00000000\nPipe [0]:\n  Power: on\n  SRC: 077f0437"
        ));
        self.line(format_args!("CPU transcoder: A\n  Power: on\n  CONF: 0xc0000000"));
        self.line(format_args!("is_mobile: no\nhas_llc: yes\ni915.modeset=-1\ni915.reset=2"));
    }

    fn firmware(&mut self) {
        let b = self.builder;
        self.line(format_args!(
            "GuC firmware: i915/tgl_guc_70.bin\n\tstatus: RUNNING\n\tversion: found 70.20.0"
        ));
        self.line(format_args!("GuC timestamp: 0x12345678\nGuC Register State:"));
        self.line(format_args!("[0xc0b0] 0x00000001 0x00000002\n[0xc000] 0x00000001"));
        if let Some((address, dwords)) = &b.guc_log {
            self.heading("global", "GuC log buffer", *address);
            self.dwords(dwords);
        }
        self.line(format_args!("GuC CTB fence: 12"));
        self.line(format_args!("available engines: 7f\nslice total: 1, mask=0001\nsubslice total: 6"));
        self.line(format_args!(
            "graphics version: {}\nmemory-regions: 0x21\nhas_llc: yes",
            b.device.version.0
        ));
        if let Some((control, before, after)) = &b.attention {
            self.line(format_args!("TD_CTL: 0x{control:08x}"));
            for (when, rows, end) in
                [("before", before, ""), ("after", after, " 250us after FEH"), ("resolved", before, "")]
            {
                let count: u32 = rows.iter().map(|row| row.count_ones()).sum();
                let rows: String = rows.iter().map(|row| format!(" {row:08x}")).collect();
                self.line(format_args!("TD_ATT {when} ({count}):{rows}{end}"));
            }
        }
        self.line(format_args!("i915.modeset=-1\ni915.enable_guc=3\ni915.reset=3"));
    }
}

/// Error states of every device and era, and of the other ways to write memory and registers.
pub fn variety() -> Vec<(String, Vec<u8>)> {
    let old = TestDevice::ALL.into_iter().filter(|d| d.version < (20, 0));
    let mut out: Vec<_> = old
        .flat_map(|device| I915Era::ALL.map(|era| (device, era)))
        .map(|(device, era)| {
            (format!("{} {era:?}", device.name), ErrorStateBuilder::complete(device, era).text())
        })
        .collect();
    let tgl = TestDevice::named("tgl");
    out.push(("unpacked".into(), ErrorStateBuilder::complete(tgl, I915Era::V6_12).unpacked().text()));
    out.push((
        "captured by the GuC".into(),
        ErrorStateBuilder::complete(tgl, I915Era::V6_12).guc_capture().text(),
    ));
    let attention = ErrorStateBuilder::complete(TestDevice::named("pvc"), I915Era::V6_1);
    let attention = attention.attention(0x80, &[0, 0, 0x101, 0], &[0, 0, 0x101, 0x8000_0000]);
    out.push(("EU attention".into(), attention.text()));
    let crlf = String::from_utf8_lossy(&out[0].1).replace('\n', "\r\n").into_bytes();
    out.push(("carriage returns".into(), crlf));
    out
}
