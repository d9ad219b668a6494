//! Builds xe devcoredumps: the text that kernels of an era write.
//!
//! Facts: `xe_devcoredump.c`, `xe_hw_engine.c`, `xe_guc_capture.c`, `xe_lrc.c`, `xe_vm.c`, Linux 6.8 to 6.19.

use crate::intel::{
    EngineState, MI_BATCH_BUFFER_END, TestDevice, pipe_control, push_line, second_level_batch,
    semaphore_wait, store_data, stream,
};
use std::fmt::Write;
use unwedge_capture::ascii85;
use unwedge_capture::intel::RingRegister;

/// A kernel version at which the text had changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum XeEra {
    /// The queue below `GuC CT`; no memory of the context.
    V6_8,
    /// Memory of contexts and of the address space.
    V6_11,
    /// The log of the GuC and its transport as ascii85 broken into lines; registers captured by the GuC.
    V6_13,
    /// `[LOG]` and `[CTB]`, in one line each.
    V6_14,
    /// Properties of mappings.
    V6_19,
}

impl XeEra {
    /// Every era, oldest first.
    pub const ALL: [XeEra; 5] = [XeEra::V6_8, XeEra::V6_11, XeEra::V6_13, XeEra::V6_14, XeEra::V6_19];

    /// As `kernel:` has it.
    pub fn release(self) -> &'static str {
        match self {
            XeEra::V6_8 => "6.8.0",
            XeEra::V6_11 => "6.11.0",
            XeEra::V6_13 => "6.13.0",
            XeEra::V6_14 => "6.14.0",
            XeEra::V6_19 => "6.19.0",
        }
    }
}

/// Builds a devcoredump.
///
/// ```
/// use unwedge_capture::intel::RingRegister;
/// use unwedge_testkit::intel::{TestDevice, EngineState, MI_BATCH_BUFFER_END};
/// use unwedge_testkit::xe::DevcoreBuilder;
///
/// let text = DevcoreBuilder::new(TestDevice::named("lnl"))
///     .engine(
///         EngineState::new("rcs0")
///             .set(RingRegister::Acthd, 0x20_0000)
///             .batch(0x20_0000, &[0, MI_BATCH_BUFFER_END])
///             .process("game", 1234),
///     )
///     .text();
/// assert!(text.starts_with(b"**** Xe Device Coredump ****\n"));
/// ```
#[derive(Clone, Debug)]
pub struct DevcoreBuilder {
    device: TestDevice,
    era: XeEra,
    engines: Vec<EngineState>,
    errors: Vec<(u64, u64, i32)>,
    guc_log: Vec<u32>,
    ctb: Vec<u32>,
    vm_error: Option<i32>,
}

impl DevcoreBuilder {
    /// Of a device, under 6.14, without engines.
    pub fn new(device: TestDevice) -> DevcoreBuilder {
        DevcoreBuilder {
            device,
            era: XeEra::V6_14,
            engines: Vec::new(),
            errors: Vec::new(),
            guc_log: Vec::new(),
            ctb: Vec::new(),
            vm_error: None,
        }
    }

    /// Under another kernel.
    pub fn era(mut self, era: XeEra) -> DevcoreBuilder {
        self.era = era;
        self
    }

    /// Adds an engine. The context and process of the first one are the queue's; batches and buffers of all are in the
    /// queue's address space.
    pub fn engine(mut self, engine: EngineState) -> DevcoreBuilder {
        self.engines.push(engine);
        self
    }

    /// A buffer of the address space that the kernel could not read.
    pub fn unreadable(mut self, address: u64, length: u64, error: i32) -> DevcoreBuilder {
        self.errors.push((address, length, error));
        self
    }

    /// The kernel could not capture the address space at all.
    pub fn without_memory(mut self, error: i32) -> DevcoreBuilder {
        self.vm_error = Some(error);
        self
    }

    /// The log of the GuC (6.13 on).
    pub fn guc_log(mut self, dwords: &[u32]) -> DevcoreBuilder {
        self.guc_log = dwords.to_vec();
        self
    }

    /// The command transport of the GuC (6.13 on).
    pub fn ctb(mut self, dwords: &[u32]) -> DevcoreBuilder {
        self.ctb = dwords.to_vec();
        self
    }

    /// A hang of the render engine that waits for a semaphore in a second-level batch, with all that this era
    /// captures.
    pub fn complete(device: TestDevice, era: XeEra) -> DevcoreBuilder {
        let (batch_at, second_at, wait_at) = (0x0020_0000, 0x0030_0000, 0x0040_0000);
        let batch = stream(&[
            &pipe_control(1 << 20),
            &store_data(wait_at, 1),
            &second_level_batch(second_at),
            &[MI_BATCH_BUFFER_END],
        ]);
        let wait = semaphore_wait(wait_at, 2, device);
        let second = stream(&[&[0, 0], &wait, &[MI_BATCH_BUFFER_END]]);
        let mut context = vec![0; 2048];
        context[1024..1028].copy_from_slice(&[0, 0x1108_101b, 0x244, 0x0009_0009]);
        let render = EngineState::new("rcs0")
            .set(RingRegister::Start, 0x0080_0000)
            .set(RingRegister::Head, 0x1c0)
            .set(RingRegister::Tail, 0x240)
            .set(RingRegister::Ctl, 0x3001)
            .set(RingRegister::Acthd, second_at + 0x1c)
            .set(RingRegister::BbAddr, second_at + 0x1d)
            .set(RingRegister::Ipehr, wait.first().copied().unwrap_or(0).into())
            .set(RingRegister::Instdone, 0xffff_fffe)
            .register("SC_INSTDONE[0]", 0xffff_ffff)
            .register("SAMPLER_INSTDONE[0]", 0xffff_ffff)
            .batch(batch_at, &batch)
            .user(second_at, &second)
            .user(wait_at, &[1])
            .context(0x0090_0000, &context)
            .process("game", 1234)
            .hung(1);
        DevcoreBuilder::new(device)
            .era(era)
            .engine(render)
            .unreadable(0x0050_0000, 0x1000, -14)
            .guc_log(&(0..2000u32).map(|i| i.wrapping_mul(0x0101_0101)).collect::<Vec<_>>())
            .ctb(&[1, 2, 0, 0, 5])
    }

    /// The text.
    pub fn text(&self) -> Vec<u8> {
        let mut text = XeText { builder: self, out: String::new() };
        text.device();
        text.guc();
        text.queue();
        text.job();
        text.line(format_args!("\n**** HW Engines ****"));
        self.engines.iter().for_each(|e| text.engine(e));
        text.vm();
        text.out.into_bytes()
    }
}

struct XeText<'b> {
    builder: &'b DevcoreBuilder,
    out: String,
}

impl XeText<'_> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        push_line(&mut self.out, text);
    }

    fn device(&mut self) {
        let b = self.builder;
        let (major, minor) = b.device.version;
        self.line(format_args!("**** Xe Device Coredump ****"));
        if b.era >= XeEra::V6_13 {
            self.line(format_args!(
                "Reason: Timedout job - seqno=4294967169, lrc_seqno=4294967169, guc_id=8"
            ));
        }
        self.line(format_args!("kernel: {}\nmodule: xe", b.era.release()));
        self.line(format_args!("Snapshot time: 1700000000.123456789\nUptime: 4711.000000017"));
        if b.era >= XeEra::V6_11 {
            let (name, pid) = self.process();
            let pid = if b.era >= XeEra::V6_13 { format!(" [{pid}]") } else { String::new() };
            self.line(format_args!("Process: {name}{pid}"));
        }
        self.line(format_args!("PCI ID: 0x{:04x}\nPCI revision: 0x04", b.device.pci_id));
        for (id, what) in ["main", "media"].iter().enumerate() {
            self.line(format_args!("GT id: {id}"));
            if b.era >= XeEra::V6_13 {
                self.line(format_args!("\tTile: 0"));
            }
            self.line(format_args!(
                "\tType: {what}\n\tIP ver: {major}.{minor}.4\n\tCS reference clock: 19200000"
            ));
        }
        if b.era >= XeEra::V6_13 {
            self.line(format_args!("\n**** GT #0 ****\n\tTile: 0"));
        }
    }

    fn process(&self) -> (String, i32) {
        let process = self.builder.engines.iter().find_map(|e| e.process.clone());
        process.unwrap_or_else(|| ("no process".to_owned(), 0))
    }

    fn guc(&mut self) {
        let b = self.builder;
        if b.era >= XeEra::V6_13 {
            self.line(format_args!("\n**** GuC Log ****\nGuC firmware: xe/lnl_guc_70.bin"));
            self.line(format_args!(
                "GuC version: 70.29.2 (wanted 70.29.2)\nKernel timestamp: 0x3F4A [16202]"
            ));
            self.line(format_args!("GuC timestamp: 0x12345678 [305419896]\nLog level: 3"));
            self.blob("LOG", "Log data", &b.guc_log);
        }
        self.line(format_args!("\n**** GuC CT ****\nH2G CTB (all sizes in DW):"));
        self.line(format_args!(
            "\tsize: 1024\n\tresv_space: 0\n\thead: 12\n\ttail: 12\n\tspace: 1023\n\tbroken: 0"
        ));
        self.line(format_args!("\thead (memory): 12\n\ttail (memory): 12\n\tstatus (memory): 0x0"));
        self.line(format_args!("G2H CTB (all sizes in DW):\n\tsize: 4096\n\thead: 7\n\ttail: 7"));
        self.line(format_args!("\tg2h outstanding: 0"));
        if b.era >= XeEra::V6_13 {
            self.blob("CTB", "CTB data", &b.ctb);
        }
    }

    /// In 6.13 a line of some 800 characters holds whole groups, and its name has no length.
    fn blob(&mut self, name: &str, old: &str, dwords: &[u32]) {
        let groups = dwords.iter().map(|&d| ascii85::encode(&[d]));
        if self.builder.era >= XeEra::V6_14 {
            self.line(format_args!("[{name}].length: 0x{:x}", dwords.len() * 4));
            let _ = write!(self.out, "[{name}].data: ");
            groups.for_each(|g| self.out.push_str(&String::from_utf8_lossy(&g)));
            self.out.push('\n');
            return;
        }
        let mut line = format!("{old}: ");
        for group in groups {
            line.push_str(&String::from_utf8_lossy(&group));
            if line.len() + 8 >= 800 {
                self.line(format_args!("{line}"));
                line.clear();
            }
        }
        self.line(format_args!("{line}"));
    }

    fn queue(&mut self) {
        let b = self.builder;
        match b.era {
            XeEra::V6_8 | XeEra::V6_11 => self.line(format_args!("\nGuC ID: 8")),
            _ => self.line(format_args!("\n**** Contexts ****\nGuC ID: 8")),
        }
        let class =
            b.engines.first().map_or("rcs", |e| e.name.trim_end_matches(|c: char| c.is_ascii_digit()));
        self.line(format_args!("\tName: {class}8\n\tClass: 0\n\tLogical mask: 0x1\n\tWidth: 1\n\tRef: 3"));
        self.line(format_args!(
            "\tTimeout: 5000 (ms)\n\tTimeslice: 1000 (us)\n\tPreempt timeout: 640000 (us)"
        ));
        let context = b.engines.iter().flat_map(|e| &e.memory).find(|(name, ..)| *name == "HW context");
        let (at, dwords) = context.map_or((0x0090_0000, &[][..]), |(_, at, dwords)| (*at, &dwords[..]));
        self.line(format_args!("\tHW Context Desc: 0x{at:08x}"));
        if b.device.version.0 >= 20 {
            self.line(format_args!("\tHW Indirect Ring State: 0x{:08x}", at + 0x2000));
        }
        self.line(format_args!("\tLRC Head: (memory) 448\n\tLRC Tail: (internal) 576, (memory) 576"));
        self.line(format_args!("\tStart seqno: (memory) -127\n\tSeqno: (memory) -128"));
        self.line(format_args!("\tTimestamp: 0x00001234\n\tJob Timestamp: 0x00001230"));
        if b.era >= XeEra::V6_11 && !dwords.is_empty() {
            let (status, image) = dwords.split_at(dwords.len().min(1024));
            for (name, dwords) in [("HWSP", status), ("HWCTX", image)] {
                self.line(format_args!("\t[{name}].length: 0x{:x}", dwords.len() * 4));
                if b.era >= XeEra::V6_19 && name == "HWCTX" {
                    self.line(format_args!("\t[{name}].replay_offset: 0x0\n\t[{name}].replay_length: 0x0"));
                }
                self.data(&format!("\t[{name}]"), dwords);
            }
        }
        self.line(format_args!("\tSchedule State: 0x441\n\tFlags: 0x0"));
        self.line(format_args!("\tJob: seqno=-127, fence=0, finished=0"));
    }

    fn data(&mut self, name: &str, dwords: &[u32]) {
        let text = String::from_utf8_lossy(&ascii85::encode(dwords)).into_owned();
        self.line(format_args!("{name}.data: {text}"));
    }

    fn job(&mut self) {
        self.line(format_args!("\n**** Job ****"));
        let batches =
            self.builder.engines.iter().flat_map(|e| &e.memory).filter(|(name, ..)| *name == "batch");
        for (i, (_, at, _)) in batches.enumerate() {
            self.line(format_args!("batch_addr[{i}]: 0x{at:016x}"));
        }
    }

    fn engine(&mut self, engine: &EngineState) {
        use RingRegister as R;
        let era = self.builder.era;
        let r = |register| engine.get(register);
        self.line(format_args!("{} (physical), logical instance=0", engine.name));
        if era >= XeEra::V6_13 {
            self.line(format_args!("\tCapture_source: GuC\n\tCoverage: full-capture"));
        }
        self.line(format_args!("\tForcewake: domain 0x2, ref 1"));
        if era >= XeEra::V6_13 {
            self.line(format_args!("\tReserved: no\n\tFORCEWAKE_GT: 0x00010001"));
        }
        self.line(format_args!("\tHWSTAM: 0xffffffff\n\tRING_HWS_PGA: 0x{:08x}", r(R::Hws)));
        let words = |value: u64| {
            if era >= XeEra::V6_11 { format!("0x{value:016x}") } else { format!("0x{value:08x}") }
        };
        self.line(format_args!("\tRING_EXECLIST_STATUS: 0x{:016x}", 0));
        self.line(format_args!("\tRING_START: {}", words(r(R::Start))));
        let (bbaddr, faddr) =
            if era >= XeEra::V6_13 { ("RING_BBADDR", "RING_DMA_FADD") } else { ("BBADDR", "DMA_FADDR") };
        for (name, register) in [
            ("RING_HEAD", R::Head),
            ("RING_TAIL", R::Tail),
            ("RING_CTL", R::Ctl),
            ("RING_MI_MODE", R::MiMode),
            ("RING_MODE", R::GfxMode),
            ("RING_ESR", R::Esr),
            ("RING_EMR", R::Emr),
            ("RING_EIR", R::Eir),
            ("IPEHR", R::Ipehr),
            ("RING_INSTDONE", R::Instdone),
        ] {
            self.line(format_args!("\t{name}: 0x{:08x}", r(register)));
        }
        for (name, register) in [("ACTHD", R::Acthd), (bbaddr, R::BbAddr), (faddr, R::DmaFaddr)] {
            self.line(format_args!("\t{name}: 0x{:016x}", r(register)));
        }
        for (name, value) in &engine.named {
            self.line(format_args!("\t{name}: 0x{value:08x}"));
        }
        self.line(format_args!(""));
    }

    fn vm(&mut self) {
        let b = self.builder;
        if b.era < XeEra::V6_11 {
            return;
        }
        self.line(format_args!("\n**** VM state ****"));
        if let Some(error) = b.vm_error {
            self.line(format_args!("[0].error: {error}"));
            return;
        }
        if b.era >= XeEra::V6_19 {
            self.line(format_args!("VM.uapi_flags: 0x1"));
        }
        let properties = |out: &mut String, at: u64| {
            if b.era >= XeEra::V6_19 {
                let _ = writeln!(
                    out,
                    "[{at:x}].properties: read_write|bo|mem_region=0x1|pat_index=0|cpu_caching=1"
                );
            }
        };
        for (name, at, dwords) in b.engines.iter().flat_map(|e| &e.memory) {
            if !matches!(*name, "batch" | "user") {
                continue;
            }
            let mut dwords = dwords.clone();
            dwords.resize(dwords.len().next_multiple_of(1024), 0);
            self.line(format_args!("[{at:x}].length: 0x{:x}", dwords.len() * 4));
            properties(&mut self.out, *at);
            self.data(&format!("[{at:x}]"), &dwords);
        }
        for (at, length, error) in &b.errors {
            self.line(format_args!("[{at:x}].length: 0x{length:x}"));
            properties(&mut self.out, *at);
            self.line(format_args!("[{at:x}].error: {error}"));
        }
    }
}

/// Dumps of every device and era.
pub fn variety() -> Vec<(String, Vec<u8>)> {
    let new = TestDevice::ALL.into_iter().filter(|d| d.version >= (12, 0));
    let mut out: Vec<_> = new
        .flat_map(|device| XeEra::ALL.map(|era| (device, era)))
        .map(|(device, era)| {
            (format!("{} {era:?}", device.name), DevcoreBuilder::complete(device, era).text())
        })
        .collect();
    let lnl = TestDevice::named("lnl");
    out.push(("no memory".into(), DevcoreBuilder::complete(lnl, XeEra::V6_14).without_memory(-19).text()));
    let crlf = String::from_utf8_lossy(&out[0].1).replace('\n', "\r\n").into_bytes();
    out.push(("carriage returns".into(), crlf));
    out
}
