//! Builds amdgpu devcoredumps: every section, and the registers of IP blocks in the form of each generation.

use unwedge_capture::amd::{AmdRegister, DwordContents};
use unwedge_capture::amdgpu::{
    AmdgpuIb, AmdgpuRing, BankOwner, Devcoredump, FirmwareVersion, Gds, HwIp, IpBlock, IpCount, MemorySizes,
    PageFault, PowerState, RegisterBank, ResetRegister, RingTimeout, RingType, Soc, TimedOutProcess, Vbios,
    VramState,
};

/// The packet that rings are filled up with: a type 3 NOP of one dword.
pub const NOP: u32 = 0xffff_1000;

/// A generation, by the form of its registers in dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gfx {
    /// Polaris: neither versions nor registers of IP blocks.
    V8,
    /// Vega.
    V9,
    /// MI300: several XCCs.
    V9_4_3,
    /// Navi 2x.
    V10,
    /// Navi 3x.
    V11,
    /// Navi 4x.
    V12,
}

impl Gfx {
    /// Every generation.
    pub const ALL: [Gfx; 6] = [Gfx::V8, Gfx::V9, Gfx::V9_4_3, Gfx::V10, Gfx::V11, Gfx::V12];

    /// Version of the graphics core.
    pub fn version(self) -> [u32; 3] {
        match self {
            Gfx::V8 => [8, 0, 3],
            Gfx::V9 => [9, 0, 1],
            Gfx::V9_4_3 => [9, 4, 3],
            Gfx::V10 => [10, 3, 0],
            Gfx::V11 => [11, 0, 0],
            Gfx::V12 => [12, 0, 1],
        }
    }

    /// A chip of it as Mesa names it, and Mesa's number for the generation.
    pub fn chip(self) -> (&'static str, u32) {
        match self {
            Gfx::V8 => ("POLARIS10", 10),
            Gfx::V9 => ("VEGA10", 11),
            Gfx::V9_4_3 => ("GFX940", 11),
            Gfx::V10 => ("NAVI21", 13),
            Gfx::V11 => ("NAVI31", 14),
            Gfx::V12 => ("GFX1201", 16),
        }
    }

    /// Name of the graphics block, and of that of SDMA.
    fn blocks(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Gfx::V8 => return None,
            Gfx::V9 => ("gfx_v9_0", "sdma_v4_0"),
            Gfx::V9_4_3 => ("gfx_v9_4_3", "sdma_v4_4_2"),
            Gfx::V10 => ("gfx_v10_0", "sdma_v5_2"),
            Gfx::V11 => ("gfx_v11_0", "sdma_v6_0"),
            Gfx::V12 => ("gfx_v12_0", "sdma_v7_0"),
        })
    }

    /// What register names begin with.
    pub fn prefix(self) -> &'static str {
        match self {
            Gfx::V8 | Gfx::V9 | Gfx::V10 => "mm",
            Gfx::V9_4_3 | Gfx::V11 | Gfx::V12 => "reg",
        }
    }

    /// Name of the first graphics ring (on MI300, which has none, of a compute ring).
    pub fn ring(self) -> &'static str {
        match self {
            Gfx::V8 | Gfx::V9 => "gfx",
            Gfx::V9_4_3 => "comp_0.1.0.0",
            Gfx::V10 | Gfx::V11 | Gfx::V12 => "gfx_0.0.0",
        }
    }
}

/// Kernels between which the format grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AmdgpuEra {
    /// The first: who, when, VRAM, and the registers that debugfs asked for.
    V5_19,
    /// SoC, versions, firmware, the ring that timed out, the page fault, registers, rings.
    V6_12,
    /// Discovery data, IBs; debugfs asks for no registers any more.
    V7_1,
}

impl AmdgpuEra {
    /// Every era, oldest first.
    pub const ALL: [AmdgpuEra; 3] = [AmdgpuEra::V5_19, AmdgpuEra::V6_12, AmdgpuEra::V7_1];

    fn release(self) -> &'static str {
        match self {
            AmdgpuEra::V5_19 => "5.19.0",
            AmdgpuEra::V6_12 => "6.12.0",
            AmdgpuEra::V7_1 => "7.1.0",
        }
    }
}

/// A text that no kernel wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// Lines end in `\r\n`.
    CarriageReturns,
    /// The last line has no end.
    NoFinalNewline,
    /// Sections and lines of the future.
    UnknownThings,
    /// Headings of sections are gone.
    NoHeadings,
    /// The rings stand in front of everything else.
    RingsFirst,
    /// Bytes that are no text.
    Garbage,
}

impl Quirk {
    /// Every quirk.
    pub const ALL: [Quirk; 6] = [
        Quirk::CarriageReturns,
        Quirk::NoFinalNewline,
        Quirk::UnknownThings,
        Quirk::NoHeadings,
        Quirk::RingsFirst,
        Quirk::Garbage,
    ];

    fn apply(self, text: &str) -> Vec<u8> {
        match self {
            Quirk::CarriageReturns => text.replace('\n', "\r\n").into_bytes(),
            Quirk::NoFinalNewline => text.trim_end_matches('\n').into(),
            Quirk::UnknownThings => text
                .replace("\nSOC Information\n", "\nFuture Information\nfuture: 1\n\nSOC Information\n")
                .replace("SOC Family: ", "SOC Mood: 7\nSOC Family: ")
                .replace("Ring contents\n", "Fence: 0x12\nRing contents\n")
                .into_bytes(),
            Quirk::NoHeadings => {
                let gone =
                    ["SOC Information\n", "GDS Config\n", "IP Firmwares\n", "Ring timed out details\n"];
                gone.iter().fold(text.to_owned(), |text, heading| text.replace(heading, "")).into_bytes()
            }
            Quirk::RingsFirst => match text.split_once("Ring buffer information\n") {
                Some((before, rings)) => format!("Ring buffer information\n{rings}{before}").into_bytes(),
                None => text.into(),
            },
            Quirk::Garbage => {
                let mut bytes = text.as_bytes().to_vec();
                for at in (50..bytes.len()).step_by(997) {
                    bytes.splice(at..at, *b"\xff\0\xfe");
                }
                bytes
            }
        }
    }
}

/// Builds a dump. Start with a generation, add what the test needs, end with [`AmdgpuBuilder::text`] or
/// [`AmdgpuBuilder::build`].
///
/// ```
/// use unwedge_testkit::amdgpu::{AmdgpuBuilder, Gfx};
///
/// let text = AmdgpuBuilder::new(Gfx::V10)
///     .timeout("gfx_0.0.0")
///     .register("GRBM_STATUS", 0xa000_3028)
///     .ring("gfx_0.0.0", 0, 2, &[0xc000_1000, 0])
///     .text();
/// assert!(text.starts_with(b"**** AMDGPU Device Coredump ****\nversion: 1\nkernel: 6.12.0\n"));
/// ```
#[derive(Clone, Debug)]
pub struct AmdgpuBuilder {
    dump: Devcoredump<'static>,
    gfx: Gfx,
    era: AmdgpuEra,
    quirks: Vec<Quirk>,
}

impl AmdgpuBuilder {
    /// A chip of this generation under 6.12, with nothing but the header, versions and empty IP blocks.
    pub fn new(gfx: Gfx) -> AmdgpuBuilder {
        let [major, minor, revision] = gfx.version();
        let gc =
            HwIp { name: "GC".into(), kind: 1, instance: 0, version: vec![major, minor, revision, 0, 0] };
        let block = |name: &'static str| IpBlock { name: name.into(), ..IpBlock::default() };
        let ips = gfx.blocks().map_or_else(Vec::new, |(gfx, sdma)| vec![block(gfx), block(sdma)]);
        let dump = Devcoredump {
            version: Some("1".into()),
            module: Some("amdgpu".into()),
            time: Some("1700000000.000000001".into()),
            hwips: if gfx == Gfx::V8 { Vec::new() } else { vec![gc] },
            ips,
            ..Devcoredump::default()
        };
        AmdgpuBuilder { dump, gfx, era: AmdgpuEra::V6_12, quirks: Vec::new() }
    }

    /// The dump as kernels of another era write it: what they did not know is left out at the end.
    pub fn era(mut self, era: AmdgpuEra) -> AmdgpuBuilder {
        self.era = era;
        self
    }

    /// Adds a quirk to the text.
    pub fn quirk(mut self, quirk: Quirk) -> AmdgpuBuilder {
        self.quirks.push(quirk);
        self
    }

    /// `process_name`
    pub fn process(mut self, name: &str, pid: u32) -> AmdgpuBuilder {
        self.dump.process = Some(TimedOutProcess { name: name.to_owned().into(), pid: Some(pid) });
        self
    }

    /// gfx10, whose command processor stands at the dispatch of a shader: the ring calls an IB at 0x800100100000 that sets
    /// COMPUTE_PGM_LO to `place` and dispatches; the code there is in the dump too.
    pub fn hung_dispatch(place: u64, code: &[u32]) -> AmdgpuBuilder {
        let ib = 0x8001_0010_0000_u64;
        let set = [0xc002_7600, 0x20c, (place >> 8) as u32, (place >> 40) as u32];
        let stream = [&set[..], &[0xc003_1500, 1, 1, 1, 1], &[0xc000_1000, 0]].concat();
        let call = [0xc002_3f00, ib as u32, (ib >> 32) as u32, stream.len() as u32];
        let builder = AmdgpuBuilder::new(Gfx::V10)
            .era(AmdgpuEra::V7_1)
            .timeout("gfx_0.0.0")
            .register("CP_IB1_BASE_LO", ib as u32)
            .register("CP_IB1_BASE_HI", (ib >> 32) as u32)
            .register("CP_IB1_BUFSZ", 1)
            .ring("gfx_0.0.0", 4, 6, &call)
            .ib(ib, &stream)
            .ib(place, code);
        (0..8).fold(builder, |builder, _| builder.register("CP_ME_HEADER_DUMP", 0xc003_1500))
    }

    /// The ring that timed out.
    pub fn timeout(mut self, ring: &str) -> AmdgpuBuilder {
        let ip_type = RingType::from_ring_name(ring).map(|ty| ty as u32);
        self.dump.timeout =
            Some(RingTimeout { ip_type, ring: ring.to_owned().into(), ..RingTimeout::default() });
        self
    }

    /// The page fault that kernels write always; a status of 0 is none.
    pub fn fault(mut self, hub: &str, address: u64, status: u32) -> AmdgpuBuilder {
        self.dump.fault = Some(PageFault {
            hub: hub.to_owned().into(),
            address: Some(address),
            status: Some(status),
            ..PageFault::default()
        });
        self
    }

    /// A register of the graphics block itself, by its name without prefix; on MI300 of its first XCC.
    pub fn register(self, name: &str, value: u32) -> AmdgpuBuilder {
        let place = if self.gfx == Gfx::V9_4_3 { BankOwner::Instance(0) } else { BankOwner::Block };
        self.register_at("gfx", place, name, value)
    }

    /// A register of a compute queue.
    pub fn compute_register(self, mec: u32, pipe: u32, queue: u32, name: &str, value: u32) -> AmdgpuBuilder {
        let xcc = (self.gfx == Gfx::V9_4_3).then_some(0);
        self.register_at("gfx", BankOwner::Compute { xcc, mec, pipe, queue }, name, value)
    }

    /// A register of a graphics queue.
    pub fn gfx_register(self, me: u32, pipe: u32, queue: u32, name: &str, value: u32) -> AmdgpuBuilder {
        self.register_at("gfx", BankOwner::Gfx { me, pipe, queue }, name, value)
    }

    /// A register of a SDMA engine.
    pub fn sdma_register(self, instance: u32, name: &str, value: u32) -> AmdgpuBuilder {
        self.register_at("sdma", BankOwner::Instance(instance), name, value)
    }

    /// A register of the first block whose name begins so; a block that dumps of the generation do not have is left
    /// out.
    pub fn register_at(
        mut self,
        block: &str,
        place: BankOwner<'static>,
        name: &str,
        value: u32,
    ) -> AmdgpuBuilder {
        let name = format!("{}{name}", self.gfx.prefix()).into();
        if let Some(ip) = self.dump.ips.iter_mut().find(|ip| ip.name.starts_with(block)) {
            let at = ip.banks.iter().position(|bank| bank.place == place).unwrap_or_else(|| {
                ip.banks.push(RegisterBank { place, registers: Vec::new() });
                ip.banks.len() - 1
            });
            ip.banks[at].registers.push(AmdRegister { name, value });
        }
        self
    }

    /// A ring with these contents at its start, filled up to a power of two with NOPs.
    pub fn ring(mut self, name: &str, rptr: u64, wptr: u64, contents: &[u32]) -> AmdgpuBuilder {
        let size = contents.len().next_power_of_two().max(16);
        let mut dwords = contents.to_vec();
        dwords.resize(size, NOP);
        self.dump.rings.push(AmdgpuRing {
            name: name.to_owned().into(),
            rptr: Some(rptr),
            wptr: Some(wptr),
            mask: Some(size as u32 - 1),
            size: Some(size as u32),
            contents: DwordContents::from_dwords(dwords),
            ..AmdgpuRing::default()
        });
        self
    }

    /// An IB of the job (7.1).
    pub fn ib(mut self, iova: u64, dwords: &[u32]) -> AmdgpuBuilder {
        self.dump.ibs.push(AmdgpuIb {
            number: self.dump.ibs.len() as u32,
            iova,
            size: Some(dwords.len() as u32),
            contents: DwordContents::from_dwords(dwords.to_vec()),
            ..AmdgpuIb::default()
        });
        self
    }

    /// What the kernel says of VRAM.
    pub fn vram(mut self, state: VramState) -> AmdgpuBuilder {
        self.dump.vram = Some(state);
        self
    }

    /// A register that debugfs asked for (up to 6.12).
    pub fn reset_register(mut self, offset: u32, value: u32) -> AmdgpuBuilder {
        self.dump.reset_registers.push(ResetRegister { offset, value });
        self
    }

    /// Changes anything else.
    pub fn with(mut self, change: impl FnOnce(&mut Devcoredump<'static>)) -> AmdgpuBuilder {
        change(&mut self.dump);
        self
    }

    /// A dump with something in every section.
    pub fn complete(gfx: Gfx) -> AmdgpuBuilder {
        let ring = gfx.ring();
        let packets = [0xc002_3f00, 0x0010_0000, 0x8001, 0x40, 0xc000_1000, 0xcafe_0001];
        let mut builder = AmdgpuBuilder::new(gfx)
            .process("vkcube: a PID: b", 4711)
            .timeout(ring)
            .fault("gfxhub", 0x8001_0000_0000, 0x0030_1031)
            .register("GRBM_STATUS", 0xa000_3028)
            .register("GRBM_STATUS2", 0x0000_0008)
            .register("CP_STALLED_STAT1", 0)
            .register("CP_RB_RPTR", 0x6)
            .register("CP_IB1_BASE_LO", 0x0010_0000)
            .register("CP_IB1_BASE_HI", 0x8001)
            .register("CP_IB1_BUFSZ", 0x40)
            .ring(ring, 2, 6, &packets)
            .ring("sdma0", 0, 4, &[0x5, 0x1000, 0x8001, 0x1])
            .ib(0x8001_0010_0000, &[0xc001_2d00, 3, 2, NOP])
            .vram(VramState::Lost)
            .reset_register(0x2004, 0x3028)
            .reset_register(0x2002, 0);
        for _ in 0..8 {
            builder = builder.register("CP_ME_HEADER_DUMP", 0xc002_3f00);
        }
        for (pipe, queue) in [(0, 0), (0, 1), (1, 0)] {
            builder = builder
                .compute_register(0, pipe, queue, "CP_HQD_ACTIVE", u32::from(queue == 0))
                .compute_register(0, pipe, queue, "CP_HQD_PQ_RPTR", 0x40 + queue);
        }
        if gfx >= Gfx::V10 {
            builder = builder.gfx_register(0, 0, 0, "CP_GFX_HQD_ACTIVE", 1).gfx_register(
                0,
                0,
                0,
                "CP_GFX_HQD_RPTR",
                2,
            );
        }
        for instance in 0..2 {
            builder = builder.sdma_register(instance, &format!("SDMA{instance}_STATUS_REG"), 0x46de_e557);
        }
        builder.with(|dump| fill(dump, gfx))
    }

    /// The dump.
    pub fn build(&self) -> Devcoredump<'static> {
        let mut dump = self.dump.clone();
        dump.kernel = Some(self.era.release().into());
        if self.era < AmdgpuEra::V7_1 {
            dump.discovery = None;
            dump.ibs.clear();
        } else {
            dump.reset_registers.clear();
        }
        if self.era > AmdgpuEra::V5_19 {
            return dump;
        }
        Devcoredump {
            kernel: dump.kernel,
            module: dump.module,
            time: dump.time,
            process: dump.process,
            vram: dump.vram,
            reset_registers: dump.reset_registers,
            ..Devcoredump::default()
        }
    }

    /// Its text.
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        self.build().write(&mut text);
        for quirk in &self.quirks {
            text = quirk.apply(&String::from_utf8_lossy(&text));
        }
        text
    }
}

/// What no method of the builder says.
fn fill(dump: &mut Devcoredump<'static>, gfx: Gfx) {
    dump.soc = Some(Soc {
        device_id: Some(0x73bf),
        pci_revision: Some(0xc1),
        family: Some(143),
        revision: Some(1),
        external_revision: Some(41),
    });
    let vram = Some(16 << 30);
    dump.memory = Some(MemorySizes { vram, visible_vram: Some(256 << 20), gtt: Some(8 << 30) });
    dump.gds =
        Some(Gds { total_size: Some(0), compute_partition_size: Some(0), gws: Some(64), oa: Some(16) });
    if gfx != Gfx::V8 {
        let ip = |name: &'static str, kind, instance| HwIp {
            name: name.into(),
            kind,
            instance,
            version: vec![5, 2, 0, 0, 0],
        };
        dump.hwips.extend([ip("SDMA0", 3, 0), ip("MMHUB", 12, 0), ip("UVD/JPEG/VCN", 17, 1)]);
        dump.discovery = Some(
            "die 0\nhw_id 11 GC\n\tinstance 0\n\tmajor 10\n\tharvest 0x0\n\tbase_addr[0] 0x00001260".into(),
        );
    }
    let firmware = |name: &'static str, feature, version| FirmwareVersion {
        name: name.into(),
        feature,
        version,
        program: None,
    };
    dump.firmware = vec![
        firmware("VCE", 0, 0),
        firmware("ME", 44, 0x40),
        firmware("RLC SRLC", 0, 0),
        firmware("TA RAS", 0, 0x1b00_013a),
        FirmwareVersion { program: Some(0), ..firmware("SMC", 0, 0x003a_5b00) },
        firmware("SDMA0", 52, 0x53),
        firmware("MES", 0, 0),
    ];
    dump.vbios = Some(Vbios {
        name: Some("NAVI21 Gaming XL D41205".into()),
        part_number: Some("113-D4120500-101".into()),
        version: Some("0".into()),
        version_string: Some("020.001.000.049.000000".into()),
        date: Some("2020/11/18 10:33".into()),
    });
    let count = |name: &'static str, number| IpCount { name: name.into(), number };
    if let Some(ip) = dump.ips.iter_mut().find(|ip| ip.name.starts_with("gfx")) {
        ip.counts = match gfx {
            Gfx::V9_4_3 => vec![
                count("Number of Instances", 1),
                count("num_xcc", 1),
                count("num_mec", 1),
                count("num_pipe", 2),
                count("num_queue", 2),
            ],
            _ => vec![count("num_mec", 1), count("num_pipe", 2), count("num_queue", 2)],
        };
        if gfx >= Gfx::V10 {
            ip.counts.extend([count("num_me", 1), count("num_pipe", 1), count("num_queue", 1)]);
        }
    }
    if let Some(ip) = dump.ips.iter_mut().find(|ip| ip.name.starts_with("sdma")) {
        ip.counts = vec![count("num_instances", 2)];
    }
    if gfx >= Gfx::V10 {
        let bank = |instance, power, registers| RegisterBank {
            place: BankOwner::Video { unit: "VCN".into(), instance, power },
            registers,
        };
        let name = format!("{}UVD_POWER_STATUS", gfx.prefix()).into();
        dump.ips.push(IpBlock {
            name: "vcn_v3_0".into(),
            counts: vec![count("num_instances", 3)],
            banks: vec![
                bank(0, PowerState::Active, vec![AmdRegister { name, value: 0x900 }]),
                bank(1, PowerState::Inactive, Vec::new()),
                bank(2, PowerState::Harvested, Vec::new()),
            ],
            ..IpBlock::default()
        });
        dump.ips.push(IpBlock { name: "jpeg_v3_0".into(), ..IpBlock::default() });
    }
}

/// Complete dumps of every generation and era, and with every quirk: what they are, and their text.
pub fn variety() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for gfx in Gfx::ALL {
        for era in AmdgpuEra::ALL {
            all.push((format!("{gfx:?} {era:?}"), AmdgpuBuilder::complete(gfx).era(era).text()));
        }
        for quirk in Quirk::ALL {
            let text = AmdgpuBuilder::complete(gfx).era(AmdgpuEra::V7_1).quirk(quirk).text();
            all.push((format!("{gfx:?} {quirk:?}"), text));
        }
    }
    all
}
