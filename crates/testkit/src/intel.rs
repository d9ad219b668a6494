//! What synthetic dumps of i915 and xe share: devices, engines, and a few words of command streams.

use crate::{i915, xe};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use unwedge_capture::intel::{BlockEncoding, BlockText, RingRegister};

/// Appends a line.
pub(crate) fn push_line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A string takes anything.
    let _ = out.write_fmt(text);
    out.push('\n');
}

/// A device, and how the drivers call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestDevice {
    /// `tgl`
    pub name: &'static str,
    /// `TIGERLAKE`
    pub platform: &'static str,
    /// A PCI id of it.
    pub pci_id: u16,
    /// Graphics version: 12, 0; 12, 55; 20, 1.
    pub version: (u32, u32),
}

impl TestDevice {
    /// One of every generation from gen8 to Xe3.
    pub const ALL: [TestDevice; 12] = [
        TestDevice { name: "bdw", platform: "BROADWELL", pci_id: 0x1616, version: (8, 0) },
        TestDevice { name: "skl", platform: "SKYLAKE", pci_id: 0x1912, version: (9, 0) },
        TestDevice { name: "kbl", platform: "KABYLAKE", pci_id: 0x5912, version: (9, 0) },
        TestDevice { name: "icl", platform: "ICELAKE", pci_id: 0x8a52, version: (11, 0) },
        TestDevice { name: "tgl", platform: "TIGERLAKE", pci_id: 0x9a49, version: (12, 0) },
        TestDevice { name: "adlp", platform: "ALDERLAKE_P", pci_id: 0x46a6, version: (12, 0) },
        TestDevice { name: "dg2", platform: "DG2", pci_id: 0x56a0, version: (12, 55) },
        TestDevice { name: "pvc", platform: "PONTEVECCHIO", pci_id: 0x0bd5, version: (12, 60) },
        TestDevice { name: "mtl", platform: "METEORLAKE", pci_id: 0x7d55, version: (12, 70) },
        TestDevice { name: "bmg", platform: "BATTLEMAGE", pci_id: 0xe20b, version: (20, 1) },
        TestDevice { name: "lnl", platform: "LUNARLAKE", pci_id: 0x64a0, version: (20, 4) },
        TestDevice { name: "ptl", platform: "PANTHERLAKE", pci_id: 0xb080, version: (30, 0) },
    ];

    /// The device of this name; the first one for any other.
    pub fn named(name: &str) -> TestDevice {
        TestDevice::ALL.into_iter().find(|d| d.name == name).unwrap_or(TestDevice::ALL[0])
    }
}

/// A dump of every platform with its name, by turns as kernels write it: what i915 leaves of those it drives, then what xe
/// does.
pub fn dump_of_every_platform() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let by_i915 = TestDevice::ALL
        .into_iter()
        .zip(i915::I915Era::ALL.into_iter().cycle())
        .filter(|(d, _)| d.version < (20, 0));
    let by_xe = TestDevice::ALL
        .into_iter()
        .zip(xe::XeEra::ALL.into_iter().cycle())
        .filter(|(d, _)| d.version >= (12, 0));
    let by_i915 =
        by_i915.map(|(device, era)| (device.name, i915::ErrorStateBuilder::complete(device, era).text()));
    let by_xe = by_xe.map(|(device, era)| (device.name, xe::DevcoreBuilder::complete(device, era).text()));
    by_i915.chain(by_xe)
}

/// The dump up to the middle of each line, after what makes it a dump of its kind.
pub fn cut_in_lines(dump: &[u8]) -> Vec<&[u8]> {
    let starts: Vec<usize> = (0..dump.len()).filter(|&i| i == 0 || dump[i - 1] == b'\n').collect();
    let first = starts.iter().position(|&at| dump[at..].starts_with(b"PCI ID")).unwrap_or(0);
    let middles = starts.windows(2).skip(first).map(|pair| &dump[..(pair[0] + pair[1]) / 2 + 1]);
    middles.filter(|cut| !cut.ends_with(b"\n")).collect()
}

/// The state of an engine, for a dump of either driver. Registers that nobody set are 0.
#[derive(Clone, Debug, Default)]
pub struct EngineState {
    pub(crate) name: String,
    pub(crate) ring: BTreeMap<RingRegister, u64>,
    pub(crate) named: Vec<(String, u64)>,
    pub(crate) memory: Vec<(&'static str, u64, Vec<u32>)>,
    pub(crate) process: Option<(String, i32)>,
    pub(crate) guilty: u32,
    pub(crate) hung: bool,
    pub(crate) ports: Vec<(u32, u32, u32)>,
}

impl EngineState {
    /// An idle engine: `rcs0`.
    pub fn new(name: &str) -> EngineState {
        EngineState { name: name.to_owned(), ..EngineState::default() }
    }

    /// Sets a register that every generation has, under whatever name the dump prints it.
    pub fn set(mut self, register: RingRegister, value: u64) -> EngineState {
        self.ring.insert(register, value);
        self
    }

    /// Sets a register by the name that is printed: `SC_INSTDONE`, `SAMPLER_INSTDONE[0][1]`.
    pub fn register(mut self, name: &str, value: u64) -> EngineState {
        self.named.retain(|(n, _)| n != name);
        self.named.push((name.to_owned(), value));
        self
    }

    /// A ring at a GGTT address, and where the engine and software are in it, in bytes.
    pub fn ring(self, start: u64, dwords: &[u32], head: u32, tail: u32) -> EngineState {
        let pages = (dwords.len() as u64 * 4).div_ceil(4096).max(1);
        let mut ring = dwords.to_vec();
        ring.resize(pages as usize * 1024, 0);
        self.set(RingRegister::Start, start)
            .set(RingRegister::Head, head.into())
            .set(RingRegister::Tail, tail.into())
            .set(RingRegister::Ctl, (pages - 1) << 12 | 1)
            .memory("ring", start, &ring)
    }

    /// The batch buffer that is being executed, in the address space of the context.
    pub fn batch(self, address: u64, dwords: &[u32]) -> EngineState {
        self.memory("batch", address, dwords)
    }

    /// The image of the context: the status page of the process, and the register state behind it. i915 prints both
    /// as one block, xe as two.
    pub fn context(self, address: u64, dwords: &[u32]) -> EngineState {
        self.memory("HW context", address, dwords)
    }

    /// The engine's status page.
    pub fn status_page(self, address: u64, dwords: &[u32]) -> EngineState {
        self.set(RingRegister::Hws, address).memory("HW Status", address, dwords)
    }

    /// The workaround batches of the context.
    pub fn wa_context(self, address: u64, dwords: &[u32]) -> EngineState {
        self.memory("WA context", address, dwords)
    }

    /// A buffer that the application had captured, in the address space of the context.
    pub fn user(self, address: u64, dwords: &[u32]) -> EngineState {
        self.memory("user", address, dwords)
    }

    /// Memory under any name.
    pub fn memory(mut self, name: &'static str, address: u64, dwords: &[u32]) -> EngineState {
        self.memory.push((name, address, dwords.to_vec()));
        self
    }

    /// Whose context is on the engine.
    pub fn process(mut self, name: &str, pid: i32) -> EngineState {
        self.process = Some((name.to_owned(), pid));
        self
    }

    /// The kernel holds the engine to be hung, and its context to be guilty so many times.
    pub fn hung(mut self, guilty: u32) -> EngineState {
        self.hung = true;
        self.guilty = guilty;
        self
    }

    /// A request on a port: its number, where it starts and ends in the ring.
    pub fn port(mut self, seqno: u32, head: u32, tail: u32) -> EngineState {
        self.ports.push((seqno, head, tail));
        self
    }

    /// The value of a register.
    pub(crate) fn get(&self, register: RingRegister) -> u64 {
        self.ring.get(&register).copied().unwrap_or(0)
    }

    /// Where the batch buffer starts and ends.
    pub(crate) fn batch_range(&self) -> Option<(u64, u64)> {
        let (_, at, dwords) = self.memory.iter().find(|(name, ..)| *name == "batch")?;
        Some((*at, at + (dwords.len() as u64 * 4).next_multiple_of(4096)))
    }
}

/// MI_NOOP
pub const MI_NOOP: u32 = 0;
/// MI_BATCH_BUFFER_END
pub const MI_BATCH_BUFFER_END: u32 = 0x0a << 23;

/// MI_BATCH_BUFFER_START of a first-level batch in the address space of the context (gen8 on).
pub fn batch_buffer_start(address: u64) -> [u32; 3] {
    [0x31 << 23 | 1 << 8 | 1, address as u32, (address >> 32) as u32]
}

/// MI_BATCH_BUFFER_START of a second-level batch, which returns.
pub fn second_level_batch(address: u64) -> [u32; 3] {
    [0x31 << 23 | 1 << 22 | 1 << 8 | 1, address as u32, (address >> 32) as u32]
}

/// MI_STORE_DATA_IMM of one dword (gen8 on).
pub fn store_data(address: u64, value: u32) -> [u32; 4] {
    [0x20 << 23 | 2, address as u32, (address >> 32) as u32, value]
}

/// MI_SEMAPHORE_WAIT until memory is at least so much, polling; gen12 added a dword to it.
pub fn semaphore_wait(address: u64, value: u32, device: TestDevice) -> Vec<u32> {
    let mut out = vec![0x1c << 23 | 1 << 15 | 1 << 12 | 2, value, address as u32, (address >> 32) as u32];
    if device.version.0 >= 12 {
        out[0] += 1;
        out.push(0);
    }
    out
}

/// MI_LOAD_REGISTER_IMM of these registers.
pub fn load_registers(registers: &[(u32, u32)]) -> Vec<u32> {
    let mut out = vec![0x22 << 23 | (registers.len() as u32 * 2).saturating_sub(1)];
    out.extend(registers.iter().flat_map(|&(register, value)| [register, value]));
    out
}

/// PIPE_CONTROL with these flags in its second dword (gen8 on).
pub fn pipe_control(flags: u32) -> [u32; 6] {
    [0x7a00_0004, flags, 0, 0, 0, 0]
}

/// PIPE_CONTROL that writes a value to memory after it.
pub fn pipe_control_write(address: u64, value: u32) -> [u32; 6] {
    [0x7a00_0004, 1 << 20 | 1 << 14, address as u32, (address >> 32) as u32, value, 0]
}

/// 3DPRIMITIVE of a triangle list with so many vertices (gen8 to gen12).
pub fn primitive(vertices: u32) -> [u32; 7] {
    [0x7b00_0005, 4, vertices, 0, 1, 0, 0]
}

/// Dwords one after the other.
pub fn stream(parts: &[&[u32]]) -> Vec<u32> {
    parts.concat()
}

/// So many MiB of memory of an application, in buffers of 1 MiB: by turns what packs well (indices, zeros, commands) and
/// what does not (floats, noise). Addresses and dwords.
pub fn large_buffers(mebibytes: u32) -> Vec<(u64, Vec<u32>)> {
    let buffer = |n: u32| {
        let noise =
            |i: u32| (i ^ n << 18).wrapping_mul(0x9e37_79b9).rotate_left(i & 15).wrapping_mul(0x85eb_ca6b);
        let word = move |i: u32| match n % 4 {
            0 => i / 3,
            1 => 0x3f80_0000 | noise(i) & 0xffff,
            2 if i.is_multiple_of(5) => noise(i),
            2 => 0,
            _ => noise(i),
        };
        (0x10_0000_0000 + (u64::from(n) << 20), (0..1 << 18).map(word).collect())
    };
    (0..mebibytes).map(buffer).collect()
}

/// Texts that say one thing over and over, each of about so many bytes: what costs much in proportion.
pub fn repetitive(bytes: usize) -> Vec<Vec<u8>> {
    let bomb = BlockText::encode(&vec![0; 1 << 20], BlockEncoding::Ascii85Zlib);
    let bomb = format!("rcs0 --- user = 0x00000000 00001000\n:{}\n", String::from_utf8_lossy(&bomb.text));
    let i915 = "GPU HANG: ecode 12:1:00000000\nPCI ID: 0x9a49\nrcs0 command stream:\n";
    let requests = "rcs0 --- 9 requests\n";
    let xe = "**** Xe Device Coredump ****\n**** HW Engines ****\nrcs0 (physical), logical instance=0\n";
    let queue = "**** Contexts ****\nGuC ID: 1\n\tHW Context Desc: 0x00001000\n";
    [
        (i915, "", "  A: 0x1\n"),
        (i915, "", "  a: 1\n"),
        (i915, "", "rcs0 command stream:\n"),
        (i915, "", "rcs0 --- a = 0x1\n"),
        (i915, "", "rcs0 --- a = 0x1\n:\n"),
        (i915, "", "rcs0 --- batch = 0x00000000 00001000\n~zzzzzzzz\n"),
        (i915, "", &bomb),
        (i915, "rcs0 --- ring = 0x1000\n", "00000000 :  00000000\n"),
        (i915, "rcs0 --- ring = 0x1000\n", "[0000] 00000000 00000000 00000000 00000000\n"),
        (i915, requests, " seqno 1:2\n"),
        (i915, requests, "rcs0 --- 1 requests\n"),
        (i915, "\n", "fence[1] = 1\n"),
        (i915, "\n", "Pipe [0]:\nx: 1\n"),
        (i915, "\n", ":zzzz\n"),
        (i915, "\n", "\n"),
        (i915, "\n", "x\n"),
        (xe, "", "\tA: 0x1\n"),
        (xe, "", "a (physical), b=1\n"),
        (xe, "", "**** a ****\n**** b ****\n"),
        (xe, "", "GT id: 1\n"),
        (xe, queue, "\tJob: a\n"),
        (xe, queue, "GuC ID: 1\n"),
        (xe, queue, "\tHW Context Desc: 0x1\n"),
        (xe, queue, "[1].data: z\n"),
        (xe, queue, "[1].length: 0x4\n"),
        (xe, "[1].data: ", "zzzzzzz\n"),
        (xe, "[1].length: 0xffffffffffffffff\n[1].data: ", "z\n"),
        (xe, "**** VM state ****\n", "[1].p: 1\n"),
        (xe, "", "batch_addr[0]: 1\n"),
    ]
    .into_iter()
    .map(|(start, more, line)| {
        let mut text = format!("{start}{more}");
        let times = bytes.saturating_sub(text.len()) / line.len();
        text.push_str(&line.repeat(times.max(1)));
        text.into_bytes()
    })
    .collect()
}
