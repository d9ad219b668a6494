//! Builds the error states that kernels before 4.4 write of gen4 to gen7.5.
//!
//! Facts: `i915_debugfs.c` of Linux 2.6.31 to 3.9, `i915_gpu_error.c` of 3.10 to 3.18.

use crate::intel::{EngineState, MI_BATCH_BUFFER_END, TestDevice, push_line, stream};
use unwedge_capture::intel::RingRegister as R;

/// A kernel version at which the text had changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OldEra {
    /// Registers of the only engine, nothing else.
    V2_6_31,
    /// A list of buffers, batches and the ring, both without an owner.
    V2_6_35,
    /// Engines have headings, the render engine comes last; fences behind its registers.
    V2_6_38,
    /// A blank in front of the name of an engine; HEAD and TAIL.
    V3_4,
    /// The kernel says its release; INSTDONE registers behind the fences; CTL.
    V3_10,
    /// A first line on the hang, whose code begins with the number of an engine; hang checks with a score.
    V3_16,
}

impl OldEra {
    /// Every era, oldest first.
    pub const ALL: [OldEra; 6] =
        [OldEra::V2_6_31, OldEra::V2_6_35, OldEra::V2_6_38, OldEra::V3_4, OldEra::V3_10, OldEra::V3_16];

    /// Whether it captures memory.
    pub fn has_memory(self) -> bool {
        self > OldEra::V2_6_31
    }

    /// Whether it says which device it is of.
    pub fn has_pci_id(self) -> bool {
        self > OldEra::V2_6_31
    }
}

/// One of every generation from gen4 to gen7.5.
pub const DEVICES: [TestDevice; 7] = [
    TestDevice { name: "i965gm", platform: "I965GM", pci_id: 0x2a02, version: (4, 0) },
    TestDevice { name: "gm45", platform: "GM45", pci_id: 0x2a42, version: (4, 50) },
    TestDevice { name: "ilk", platform: "IRONLAKE", pci_id: 0x0046, version: (5, 0) },
    TestDevice { name: "snb", platform: "SANDYBRIDGE", pci_id: 0x0126, version: (6, 0) },
    TestDevice { name: "ivb", platform: "IVYBRIDGE", pci_id: 0x0166, version: (7, 0) },
    TestDevice { name: "vlv", platform: "VALLEYVIEW", pci_id: 0x0f31, version: (7, 0) },
    TestDevice { name: "hsw", platform: "HASWELL", pci_id: 0x0416, version: (7, 50) },
];

/// PIPE_CONTROL of before gen8.
pub fn pipe_control(device: TestDevice, flags: u32) -> Vec<u32> {
    match device.version.0 {
        ..6 => vec![0x7a00_0002 | flags, 0, 0, 0],
        _ => vec![0x7a00_0003, flags, 0, 0, 0],
    }
}

/// 3DPRIMITIVE of so many vertices of before gen8.
pub fn primitive(device: TestDevice, vertices: u32) -> Vec<u32> {
    match device.version.0 {
        ..7 => vec![0x7b00_0004 | 4 << 10, vertices, 0, 1, 0, 0],
        _ => vec![0x7b00_0005, 4, vertices, 0, 1, 0, 0],
    }
}

/// MI_BATCH_BUFFER_START, as rings of gen4 to gen7.5 have it.
pub fn batch_buffer_start(address: u32) -> [u32; 2] {
    [0x31 << 23 | 1 << 8, address]
}

/// An error state.
#[derive(Clone, Debug)]
pub struct OldErrorState {
    device: TestDevice,
    era: OldEra,
    engines: Vec<EngineState>,
    registers: Vec<(String, u32)>,
    fences: Vec<u64>,
    /// Buffers in use: address and bytes. The batch comes first.
    listed: Vec<(u64, u64)>,
}

/// Where the ring of [`OldErrorState::complete`] is.
pub const RING: u64 = 0x0002_0000;
/// Where its batch is.
pub const BATCH: u64 = 0x0100_0000;
/// Bytes of its ring that were read.
pub const HEAD: u32 = 0x10;

impl OldErrorState {
    /// Of a device, without engines.
    pub fn new(device: TestDevice, era: OldEra) -> OldErrorState {
        let listed = vec![(BATCH, 4096)];
        OldErrorState { device, era, engines: Vec::new(), registers: Vec::new(), fences: Vec::new(), listed }
    }

    /// Adds an engine.
    pub fn engine(mut self, engine: EngineState) -> OldErrorState {
        self.engines.push(engine);
        self
    }

    /// Sets a register of the device: `EIR`, `PGTBL_ER`, `ERROR`.
    pub fn register(mut self, name: &str, value: u32) -> OldErrorState {
        self.registers.push((name.to_owned(), value));
        self
    }

    /// Adds a buffer to those in use: address and bytes.
    pub fn listed(mut self, address: u64, bytes: u64) -> OldErrorState {
        self.listed.push((address, bytes));
        self
    }

    /// Adds a fence.
    pub fn fence(mut self, value: u64) -> OldErrorState {
        self.fences.push(value);
        self
    }

    /// A hang of the render engine in the draw of a batch that the ring started.
    pub fn complete(device: TestDevice, era: OldEra) -> OldErrorState {
        let batch = stream(&[
            &pipe_control(device, 0),
            &primitive(device, 3),
            &pipe_control(device, 0),
            &[MI_BATCH_BUFFER_END],
        ]);
        OldErrorState::in_batch(device, era, &batch, pipe_control(device, 0).len())
    }

    /// A hang of the render engine in a batch that the ring started, in the command at its dword `at`.
    pub fn in_batch(device: TestDevice, era: OldEra, batch: &[u32], at: usize) -> OldErrorState {
        let header = batch.get(at).copied().unwrap_or_default();
        let acthd = BATCH + at as u64 * 4 + 8;
        let ring = stream(&[
            &[0x0200_0000, 0],
            &batch_buffer_start(BATCH as u32),
            &[0x1080_0001, 0, 7, 0x0100_0000],
        ]);
        let render = EngineState::new("rcs0")
            .ring(RING, &ring, HEAD, 0x20)
            .set(R::Acthd, acthd)
            .set(R::BbAddr, acthd)
            .set(R::Ipehr, header.into())
            .set(R::Instdone, 0xffff_ffff)
            .batch(BATCH, batch)
            .process("game", 1234)
            .hung(1);
        let mut state = OldErrorState::new(device, era).register("EIR", 0).engine(render);
        state.listed[0].1 = (batch.len() as u64 * 4).next_multiple_of(4096);
        // A range of 768 KiB from the start on, in rows of 768 bytes, tiled in Y.
        let pitch = 768 / 128 - 1;
        let last = 0x000b_f000_u64 << 32;
        let state = match device.version.0 {
            ..6 => state.fence(last | pitch << 2 | 0b11),
            _ => state.fence(last | pitch << 32 | 0b11),
        };
        match device.version.0 {
            6.. => state.engine(EngineState::new("bcs0")),
            _ => state,
        }
    }

    /// The text.
    pub fn text(&self) -> Vec<u8> {
        let mut out = OldText { state: self, out: String::new() };
        out.all();
        out.out.into_bytes()
    }
}

struct OldText<'s> {
    state: &'s OldErrorState,
    out: String,
}

impl OldText<'_> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        push_line(&mut self.out, text);
    }

    fn of_device(&self, name: &str) -> u32 {
        self.state.registers.iter().find(|(n, _)| n == name).map_or(0, |r| r.1)
    }

    fn all(&mut self) {
        let (state, era) = (self.state, self.state.era);
        let render = state.engines.iter().find(|e| e.name == "rcs0").cloned().unwrap_or_default();
        if era >= OldEra::V3_16 {
            let code = render.get(R::Ipehr) ^ render.get(R::Instdone);
            self.line(format_args!(
                "GPU HANG: ecode 0:0x{code:08x}, in game [1234], reason: Ring hung, action: reset"
            ));
        }
        self.line(format_args!("Time: 1300000000 s 123456 us"));
        if era >= OldEra::V3_10 {
            let release = if era >= OldEra::V3_16 { "3.16.0" } else { "3.10.0" };
            self.line(format_args!("Kernel: {release}"));
        }
        if era >= OldEra::V3_16 {
            self.line(format_args!(
                "Active process (on ring render): game [1234]\nReset count: 0\nSuspend count: 0"
            ));
        }
        if era.has_pci_id() {
            self.line(format_args!("PCI ID: 0x{:04x}", state.device.pci_id));
        }
        self.line(format_args!("EIR: 0x{:08x}", self.of_device("EIR")));
        match era {
            OldEra::V2_6_31 | OldEra::V2_6_35 => self.only_engine(&render),
            OldEra::V2_6_38 => {
                self.line(format_args!("PGTBL_ER: 0x{:08x}", self.of_device("PGTBL_ER")));
                if state.device.version.0 >= 6 {
                    self.line(format_args!("ERROR: 0x{:08x}", self.of_device("ERROR")));
                    self.few_registers("Blitter", &EngineState::new("bcs0"));
                    self.few_registers("Video (BSD)", &EngineState::new("vcs0"));
                }
                self.few_registers("Render", &render);
                self.fences();
            }
            _ => {
                self.device_of_3();
                for engine in &state.engines {
                    self.engine(engine);
                }
            }
        }
        if era.has_memory() {
            self.buffers();
            for engine in &state.engines {
                self.memory(engine);
            }
        }
        if era >= OldEra::V2_6_38 {
            self.line(format_args!(
                "Overlay, status: 0x00000000, interrupt: 0x00000000\n  Register file at 0x00000000:"
            ));
            self.line(format_args!("Pipe [0]:\n  CONF: c0000000\n  SRC: 04ff031f"));
        }
    }

    /// As 2.6.31 to 2.6.36 have it.
    fn only_engine(&mut self, engine: &EngineState) {
        self.line(format_args!("  PGTBL_ER: 0x{:08x}", self.of_device("PGTBL_ER")));
        let r = |register| engine.get(register);
        self.line(format_args!("  INSTPM: 0x{:08x}\n  IPEIR: 0x{:08x}", r(R::InstPm), r(R::Ipeir)));
        self.line(format_args!("  IPEHR: 0x{:08x}\n  INSTDONE: 0x{:08x}", r(R::Ipehr), r(R::Instdone)));
        self.line(format_args!("  ACTHD: 0x{:08x}\n  INSTPS: 0x{:08x}", r(R::Acthd), r(R::InstPs)));
        self.line(format_args!("  INSTDONE1: 0x{:08x}", self.instdone1(engine)));
        if self.state.era >= OldEra::V2_6_35 {
            self.line(format_args!("seqno: 0x00001234"));
        }
    }

    fn instdone1(&self, engine: &EngineState) -> u64 {
        engine.named.iter().find(|(name, _)| name == "INSTDONE1").map_or(0xffff_ffff, |r| r.1)
    }

    fn few_registers(&mut self, name: &str, engine: &EngineState) {
        let r = |register| engine.get(register);
        self.line(format_args!("{name} command stream:"));
        self.line(format_args!("  ACTHD:    0x{:08x}\n  IPEIR:    0x{:08x}", r(R::Acthd), r(R::Ipeir)));
        self.line(format_args!("  IPEHR:    0x{:08x}\n  INSTDONE: 0x{:08x}", r(R::Ipehr), r(R::Instdone)));
        if name == "Render" {
            self.line(format_args!("  INSTDONE1: 0x{:08x}\n  INSTPS: 0x00000000", self.instdone1(engine)));
            self.line(format_args!("  INSTPM: 0x{:08x}", r(R::InstPm)));
        }
        self.line(format_args!("  seqno:    0x00001234"));
    }

    fn fences(&mut self) {
        for (i, value) in self.state.fences.iter().enumerate() {
            self.line(format_args!("  fence[{i}] = {value:08x}"));
        }
    }

    fn device_of_3(&mut self) {
        let (device, era) = (self.state.device, self.state.era);
        if era >= OldEra::V3_10 {
            self.line(format_args!("IER: 0x00000001"));
        }
        if era >= OldEra::V3_16 {
            self.line(format_args!("GTIER: 0x00401001"));
        }
        self.line(format_args!("PGTBL_ER: 0x{:08x}", self.of_device("PGTBL_ER")));
        if era >= OldEra::V3_10 {
            self.line(format_args!("FORCEWAKE: 0x00000001\nDERRMR: 0x0000ffff\nCCID: 0x00000000"));
        }
        if era >= OldEra::V3_16 {
            self.line(format_args!("Missed interrupts: 0x00000000"));
        }
        self.fences();
        if era >= OldEra::V3_10 {
            let render = self.state.engines.iter().find(|e| e.name == "rcs0").cloned().unwrap_or_default();
            let read = if device.version.0 >= 7 { 0xffff_ffff } else { 0 };
            let values = [render.get(R::Instdone), self.instdone1(&render), read, read];
            for (i, value) in values.into_iter().enumerate() {
                self.line(format_args!("  INSTDONE_{i}: 0x{value:08x}"));
            }
        }
        if device.version.0 >= 6 {
            self.line(format_args!("ERROR: 0x{:08x}\nDONE_REG: 0xffffffff", self.of_device("ERROR")));
        }
        if device.version.0 == 7 && era >= OldEra::V3_10 {
            self.line(format_args!("ERR_INT: 0x{:08x}", self.of_device("ERR_INT")));
        }
    }

    fn name(engine: &EngineState) -> &'static str {
        match engine.name.as_str() {
            "bcs0" => "blt",
            "vcs0" => "bsd",
            "vecs0" => "vebox",
            _ => "render",
        }
    }

    fn engine(&mut self, engine: &EngineState) {
        let (device, era) = (self.state.device, self.state.era);
        let r = |register| engine.get(register);
        let blank = if era == OldEra::V3_4 { " " } else { "" };
        self.line(format_args!("{blank}{} command stream:", OldText::name(engine)));
        self.line(format_args!("  HEAD: 0x{:08x}\n  TAIL: 0x{:08x}", r(R::Head), r(R::Tail)));
        if era >= OldEra::V3_10 {
            self.line(format_args!("  CTL: 0x{:08x}", r(R::Ctl)));
        }
        if era >= OldEra::V3_16 {
            self.line(format_args!("  HWS: 0x{:08x}\n  ACTHD: 0x00000000 {:08x}", r(R::Hws), r(R::Acthd)));
        } else {
            self.line(format_args!("  ACTHD: 0x{:08x}", r(R::Acthd)));
        }
        self.line(format_args!("  IPEIR: 0x{:08x}\n  IPEHR: 0x{:08x}", r(R::Ipeir), r(R::Ipehr)));
        self.line(format_args!("  INSTDONE: 0x{:08x}", r(R::Instdone)));
        if engine.name == "rcs0" && era == OldEra::V3_4 {
            self.line(format_args!("  INSTDONE1: 0x{:08x}", self.instdone1(engine)));
        }
        match era {
            OldEra::V3_16 => {
                self.line(format_args!("  BBADDR: 0x00000000 {:08x}\n  BB_STATE: 0x00000000", r(R::BbAddr)));
            }
            _ if engine.name == "rcs0" => self.line(format_args!("  BBADDR: 0x{:08x}", r(R::BbAddr))),
            _ => {}
        }
        self.line(format_args!("  INSTPS: 0x00000000\n  INSTPM: 0x{:08x}", r(R::InstPm)));
        if device.version.0 >= 6 {
            self.line(format_args!("  FADDR: 0x{:08x}\n  FAULT_REG: 0x{:08x}", r(R::DmaFaddr), r(R::Fault)));
            self.line(format_args!("  SYNC_0: 0x00000000 [last synced 0x00000000]\n  SYNC_1: 0x00000000"));
        }
        self.line(format_args!("  seqno: 0x00001234"));
        if era >= OldEra::V3_10 {
            self.line(format_args!("  waiting: no"));
        }
        self.line(format_args!("  ring->head: 0x00000000\n  ring->tail: 0x{:08x}", r(R::Tail)));
        if era >= OldEra::V3_16 {
            let what = if engine.hung { "hung [31]" } else { "idle [0]" };
            self.line(format_args!("  hangcheck: {what}"));
        }
    }

    fn buffers(&mut self) {
        let flags = " X dirty render (name: 2) (fence: 0)";
        let (era, listed) = (self.state.era, &self.state.listed);
        let count = listed.len();
        let (indent, domains) = match era {
            OldEra::V2_6_35 => ("", "00000040 00000000 00001234"),
            OldEra::V2_6_38 | OldEra::V3_4 => ("", "0040 0000 00001234"),
            OldEra::V3_10 => ("", "40 00 1234 0"),
            _ => ("  ", "40 00 1234 0"),
        };
        match era {
            OldEra::V2_6_35 => self.line(format_args!("Buffers [{count}]:")),
            OldEra::V2_6_38 | OldEra::V3_4 | OldEra::V3_10 => self.line(format_args!("Active [{count}]:")),
            _ => self.line(format_args!("vm[0]\n  Active [{count}]:")),
        }
        for (address, bytes) in listed {
            self.line(format_args!("{indent}  {address:08x} {bytes:>8} {domains}{flags}"));
        }
        match era {
            OldEra::V2_6_35 => {}
            OldEra::V2_6_38 | OldEra::V3_4 => {
                self.line(format_args!("Pinned [1]:\n  {RING:08x}   131072 0040 0040 00000000 P LLC"));
            }
            OldEra::V3_10 => self.line(format_args!("Pinned [0]:")),
            _ => self.line(format_args!("  Pinned [0]:")),
        }
    }

    fn memory(&mut self, engine: &EngineState) {
        let era = self.state.era;
        let ring = format!("{} ring ", OldText::name(engine));
        let batch_owner = if era >= OldEra::V2_6_38 { ring.as_str() } else { "" };
        let ring_owner = if era >= OldEra::V3_4 { ring.as_str() } else { "" };
        let blocks =
            ["batch", "ring"].into_iter().flat_map(|kind| engine.memory.iter().filter(move |m| m.0 == kind));
        for (kind, address, dwords) in blocks {
            let submitted = if era >= OldEra::V3_16 { "(submitted by game [1234]) " } else { "" };
            match *kind {
                "batch" => {
                    self.line(format_args!("{batch_owner}{submitted}--- gtt_offset = 0x{address:08x}"))
                }
                _ => {
                    if era >= OldEra::V3_4 {
                        self.line(format_args!(
                            "{ring}--- 1 requests\n  seqno 0x00001235, emitted 4294937296, tail 0x00000020"
                        ));
                    }
                    self.line(format_args!("{ring_owner}--- ringbuffer = 0x{address:08x}"));
                }
            }
            for (i, dword) in dwords.iter().enumerate() {
                self.line(format_args!("{:08x} :  {dword:08x}", i * 4));
            }
        }
    }
}

/// Error states of every device and era, and those with states.
pub fn variety() -> Vec<(String, Vec<u8>)> {
    let all = DEVICES.into_iter().flat_map(|device| OldEra::ALL.map(|era| (device, era)));
    all.map(|(device, era)| (format!("{} {era:?}", device.name), OldErrorState::complete(device, era).text()))
        .chain(crate::intel_old_states::variety())
        .collect()
}
