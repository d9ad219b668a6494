//! Builds msm devcoredumps: every section, as the kernels of an era write it for the chips of a generation.

use crate::pm4;
use std::borrow::Cow;
use unwedge_base::{ChipId, Generation};
use unwedge_capture::msm::lines::MsmSection;
use unwedge_capture::msm::{
    Blob, Bo, Cluster, DebugBus, Devcore, Fault, GmuBuffer, Indexed, MsmLayout, PageTables, RegisterValue,
    Revision, Ring, ShaderBank, ShaderBlock,
};

/// A kernel version at which the text of dumps had changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MsmEra {
    /// The first that writes dumps; fences are printed signed.
    V4_19,
    /// Buffers are `bos`; all of the a6xx sections, two of their names misspelt.
    V5_8,
    /// `gpu-initialized`, names of buffers, GMU buffers, fault-info.
    V5_19,
    /// Flags of buffers, a7xx with pipes.
    V6_6,
    /// As 6.6, and what most distributions run.
    V6_12,
    /// Page tables (since 6.14), VM log, locations of shader blocks and clusters, no more `_DATA` at the end of names.
    V6_17,
}

impl MsmEra {
    /// Every era, oldest first.
    pub const ALL: [MsmEra; 6] =
        [MsmEra::V4_19, MsmEra::V5_8, MsmEra::V5_19, MsmEra::V6_6, MsmEra::V6_12, MsmEra::V6_17];

    /// As `kernel:` has it.
    pub fn release(self) -> &'static str {
        match self {
            MsmEra::V4_19 => "4.19.0",
            MsmEra::V5_8 => "5.8.0",
            MsmEra::V5_19 => "5.19.0",
            MsmEra::V6_6 => "6.6.0",
            MsmEra::V6_12 => "6.12.0",
            MsmEra::V6_17 => "6.17.0",
        }
    }
}

/// A text that a kernel would not write today, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// `CP_MEMPOOOL` and `CP_SEQ_STAT`.
    MisspeltNames,
    /// Fences above 2^31 are negative numbers.
    SignedFences,
    /// `fault-info` has `far: …` in place of `iova=…`.
    FaultFar,
    /// `fault-info` is one line.
    FaultOnOneLine,
    /// Lines end in `\r\n`.
    CarriageReturns,
    /// The last line has no end.
    NoFinalNewline,
    /// A section of the future, and keys of the future in known ones.
    UnknownThings,
    /// Lines are indented as if somebody had tidied them up.
    OtherIndentation,
    /// `bo:` as the format document has it.
    HeadingOfTheDocument,
}

impl Quirk {
    /// Every quirk.
    pub const ALL: [Quirk; 9] = [
        Quirk::MisspeltNames,
        Quirk::SignedFences,
        Quirk::FaultFar,
        Quirk::FaultOnOneLine,
        Quirk::CarriageReturns,
        Quirk::NoFinalNewline,
        Quirk::UnknownThings,
        Quirk::OtherIndentation,
        Quirk::HeadingOfTheDocument,
    ];

    fn apply(self, text: &mut String) {
        let replaced = match self {
            Quirk::MisspeltNames => {
                text.replace("CP_MEMPOOL\n", "CP_MEMPOOOL\n").replace("CP_SQE_STAT\n", "CP_SEQ_STAT\n")
            }
            Quirk::SignedFences => text.split_inclusive('\n').map(signed_fence).collect(),
            Quirk::FaultFar => text.replace("  - iova=", "  - far: "),
            Quirk::FaultOnOneLine => text
                .replace("\n  - dir=", " dir=")
                .replace("\n  - type=", " type=")
                .replace("\n  - source=", " source=")
                .replace("\n  - iova=", " iova="),
            Quirk::CarriageReturns => text.replace('\n', "\r\n"),
            Quirk::NoFinalNewline => text.trim_end_matches('\n').to_owned(),
            Quirk::UnknownThings => text
                .replace("\nregisters:\n", "\nwave-dump:\n  - sp: 0\n    state: idle\nregisters:\n")
                .replace("    size: 4096\n", "    size: 4096\n    madv: willneed\n"),
            Quirk::OtherIndentation => text.replace("\n    ", "\n      ").replace("\n  - ", "\n- "),
            Quirk::HeadingOfTheDocument => text.replace("\nbos:\n", "\nbo:\n"),
        };
        *text = replaced;
    }
}

/// Builds a dump. Start with a generation, add what the test needs, end with [`DevcoreBuilder::text`] or
/// [`DevcoreBuilder::build`].
///
/// ```
/// use unwedge_testkit::{devcore::DevcoreBuilder, pm4};
///
/// let ib1 = pm4::pkt7(pm4::CP_WAIT_FOR_IDLE, &[]);
/// let text = DevcoreBuilder::a6xx()
///     .ring(0x1000, &pm4::indirect_buffer(0x10_0000, ib1.len() as u32))
///     .with_ring(|ring| ring.rptr = Some(4))
///     .bo(0x10_0000, 4096, "ib1", &ib1)
///     .register64(0x928, 0x10_0000)
///     .indexed("CP_SQE_STAT", &[0x12, 0x7026_8000])
///     .text();
/// assert!(text.starts_with(b"---\nkernel: 6.12.0\n"));
/// ```
#[derive(Clone, Debug)]
pub struct DevcoreBuilder {
    dump: Devcore<'static>,
    generation: Generation,
    era: MsmEra,
    quirks: Vec<Quirk>,
}

impl DevcoreBuilder {
    /// An Adreno 320 under 6.12.
    pub fn a3xx() -> DevcoreBuilder {
        DevcoreBuilder::new(Generation::A3xx, 320, [3, 2, 0, 2])
    }

    /// An Adreno 430 under 6.12.
    pub fn a4xx() -> DevcoreBuilder {
        DevcoreBuilder::new(Generation::A4xx, 430, [4, 3, 0, 2])
    }

    /// An Adreno 530 under 6.12.
    pub fn a5xx() -> DevcoreBuilder {
        DevcoreBuilder::new(Generation::A5xx, 530, [5, 3, 0, 2])
    }

    /// An Adreno 630 under 6.12.
    pub fn a6xx() -> DevcoreBuilder {
        DevcoreBuilder::new(Generation::A6xx, 630, [6, 3, 0, 2])
    }

    /// An Adreno 740 under 6.12.
    pub fn a7xx() -> DevcoreBuilder {
        DevcoreBuilder::new(Generation::A7xx, 0, [67, 5, 10, 1])
    }

    /// A chip of this generation (a2xx: an Adreno 200).
    pub fn of(generation: Generation) -> DevcoreBuilder {
        match generation {
            Generation::A2xx => DevcoreBuilder::new(Generation::A2xx, 200, [2, 0, 0, 0]),
            Generation::A3xx => DevcoreBuilder::a3xx(),
            Generation::A4xx => DevcoreBuilder::a4xx(),
            Generation::A5xx => DevcoreBuilder::a5xx(),
            Generation::A6xx => DevcoreBuilder::a6xx(),
            Generation::A7xx => DevcoreBuilder::a7xx(),
        }
    }

    fn new(generation: Generation, gpu_id: u32, chip: [u8; 4]) -> DevcoreBuilder {
        let [core, major, minor, patch] = chip;
        let dump = Devcore {
            module: Some("msm".into()),
            time: Some("1700000000.000000001".into()),
            comm: Some("testkit".into()),
            cmdline: Some("testkit --hang".into()),
            revision: Some(Revision { gpu_id, chip_id: ChipId::from_parts(core, major, minor, patch) }),
            rbbm_status: Some(0),
            ..Devcore::default()
        };
        DevcoreBuilder { dump, generation, era: MsmEra::V6_12, quirks: Vec::new() }
    }

    /// The dump as kernels of another era write it: what they did not know is left out at the end.
    pub fn era(mut self, era: MsmEra) -> DevcoreBuilder {
        self.era = era;
        self
    }

    /// Adds a quirk to the text.
    pub fn quirk(mut self, quirk: Quirk) -> DevcoreBuilder {
        self.quirks.push(quirk);
        self
    }

    /// `revision`
    pub fn revision(mut self, gpu_id: u32, chip: [u8; 4]) -> DevcoreBuilder {
        let [core, major, minor, patch] = chip;
        self.dump.revision =
            Some(Revision { gpu_id, chip_id: ChipId::from_parts(core, major, minor, patch) });
        self
    }

    /// `comm` and `cmdline`
    pub fn process(mut self, comm: &str, cmdline: &str) -> DevcoreBuilder {
        self.dump.comm = Some(comm.to_owned().into());
        self.dump.cmdline = Some(cmdline.to_owned().into());
        self
    }

    /// `rbbm-status`
    pub fn rbbm_status(mut self, value: u32) -> DevcoreBuilder {
        self.dump.rbbm_status = Some(value);
        self
    }

    /// `gpu-initialized`
    pub fn gpu_initialized(mut self, value: bool) -> DevcoreBuilder {
        self.dump.gpu_initialized = Some(value.into());
        self
    }

    /// A ring of 32 KiB with the next free id. Its write pointer stands at the end of the contents, its read pointer
    /// at the start; one fence is outstanding. [`DevcoreBuilder::with_ring`] changes that.
    pub fn ring(mut self, iova: u64, contents: &[u32]) -> DevcoreBuilder {
        self.dump.rings.push(Ring {
            id: self.dump.rings.len() as u32,
            iova,
            last_fence: Some(1),
            retired_fence: Some(0),
            rptr: Some(0),
            wptr: Some(contents.len() as u32),
            size: Some(32768),
            data: data(contents),
            ..Ring::default()
        });
        self
    }

    /// Changes the ring added last.
    pub fn with_ring(mut self, change: impl FnOnce(&mut Ring<'static>)) -> DevcoreBuilder {
        if let Some(ring) = self.dump.rings.last_mut() {
            change(ring);
        }
        self
    }

    /// A buffer with contents.
    pub fn bo(self, iova: u64, size: u64, name: &str, contents: &[u32]) -> DevcoreBuilder {
        self.any_bo(iova, size, name, data(contents))
    }

    /// A buffer whose contents were not captured.
    pub fn bo_absent(self, iova: u64, size: u64, name: &str) -> DevcoreBuilder {
        self.any_bo(iova, size, name, None)
    }

    fn any_bo(mut self, iova: u64, size: u64, name: &str, data: Option<Blob<'static>>) -> DevcoreBuilder {
        let name = Some(Cow::Owned(name.to_owned()));
        self.dump.bos.push(Bo { iova, size, flags: Some(0x4_0000), name, data, ..Bo::default() });
        self
    }

    /// A register of `registers`, by its offset in dwords.
    pub fn register(mut self, reg: u32, value: u32) -> DevcoreBuilder {
        self.dump.registers.push(RegisterValue { reg, value });
        self
    }

    /// A pair of registers that hold 64 bits, low half first.
    pub fn register64(self, reg: u32, value: u64) -> DevcoreBuilder {
        self.register(reg, value as u32).register(reg + 1, (value >> 32) as u32)
    }

    /// Another value for a register of `registers` that is there; adds it if it is not.
    pub fn replace(mut self, reg: u32, value: u32) -> DevcoreBuilder {
        match self.dump.registers.iter_mut().find(|r| r.reg == reg) {
            Some(register) => register.value = value,
            None => self.dump.registers.push(RegisterValue { reg, value }),
        }
        self
    }

    /// A register of `registers-gmu`.
    pub fn gmu_register(mut self, reg: u32, value: u32) -> DevcoreBuilder {
        self.dump.registers_gmu.push(RegisterValue { reg, value });
        self
    }

    /// A register of `registers-hlsq`.
    pub fn hlsq_register(mut self, reg: u32, value: u32) -> DevcoreBuilder {
        self.dump.registers_hlsq.push(RegisterValue { reg, value });
        self
    }

    /// A block of `indexed-registers`.
    pub fn indexed(mut self, name: &str, contents: &[u32]) -> DevcoreBuilder {
        self.dump.indexed.push(Indexed {
            name: name.to_owned().into(),
            dwords: contents.len() as u32,
            data: data(contents),
            ..Indexed::default()
        });
        self
    }

    /// A block of `shader-blocks`, with the contents of each bank; on a7xx each bank is a `usptp`, two to an `sp`.
    pub fn shader_block(mut self, ty: &str, banks: &[&[u32]]) -> DevcoreBuilder {
        let a7xx = self.generation >= Generation::A7xx;
        let bank = |(i, contents): (usize, &&[u32])| {
            let i = i as u32;
            let size = contents.len() as u32;
            let (index, usptp) = if a7xx { (i / 2, Some(i % 2)) } else { (i, None) };
            ShaderBank { index, usptp, context: None, size, data: data(contents) }
        };
        self.dump.shader_blocks.push(ShaderBlock {
            ty: ty.to_owned().into(),
            location: a7xx.then_some(2),
            pipe: a7xx.then(|| "A7XX_PIPE_BR".into()),
            banks: banks.iter().enumerate().map(bank).collect(),
            ..ShaderBlock::default()
        });
        self
    }

    /// The registers of a cluster in a context.
    pub fn cluster(mut self, name: &str, context: u32, registers: &[(u32, u32)]) -> DevcoreBuilder {
        let a7xx = self.generation >= Generation::A7xx;
        self.dump.clusters.push(Cluster {
            name: name.to_owned().into(),
            pipe: a7xx.then(|| "A7XX_PIPE_BR".into()),
            location: (a7xx && name.contains("SP")).then_some(4),
            context: Some(context),
            registers: registers.iter().map(|&(reg, value)| RegisterValue { reg, value }).collect(),
            ..Cluster::default()
        });
        self
    }

    /// A block of the debug bus.
    pub fn debugbus(mut self, name: &str, contents: &[u32]) -> DevcoreBuilder {
        self.dump.debugbus.push(DebugBus {
            name: name.to_owned().into(),
            count: contents.len() as u32,
            data: data(contents),
            ..DebugBus::default()
        });
        self
    }

    /// `fault-info`
    pub fn fault(mut self, iova: u64, dir: &str, kind: &str, source: &str) -> DevcoreBuilder {
        self.dump.fault = Some(Fault {
            iova: Some(iova),
            ttbr0: Some(0x9_1930_6000),
            dir: Some(dir.to_owned().into()),
            kind: Some(kind.to_owned().into()),
            source: Some(source.to_owned().into()),
            ..Fault::default()
        });
        self
    }

    /// `pgtable-fault-info`, from 6.17 on.
    pub fn page_tables(mut self, ptes: [u64; 4]) -> DevcoreBuilder {
        self.dump.page_tables = Some(PageTables {
            ttbr0: Some(0x9_1930_6000),
            asid: Some(3),
            ptes: Some(ptes),
            ..PageTables::default()
        });
        self
    }

    /// An entry of `vm-log`, from 6.17 on: `map:3: 0x0000000100000000-0x0000000100001000`.
    pub fn vm_log(mut self, op: &str) -> DevcoreBuilder {
        self.dump.vm_log.push(op.to_owned().into());
        self
    }

    /// `gmu-log`
    pub fn gmu_log(mut self, contents: &[u32]) -> DevcoreBuilder {
        self.dump.gmu_log = Some(gmu(0x6000_9000, contents, Vec::new()));
        self
    }

    /// `gmu-hfi`
    pub fn gmu_hfi(mut self, contents: &[u32], history: &[[i32; 8]]) -> DevcoreBuilder {
        self.dump.gmu_hfi = Some(gmu(0x6000_5000, contents, history.to_vec()));
        self
    }

    /// `gmu-debug`
    pub fn gmu_debug(mut self, contents: &[u32]) -> DevcoreBuilder {
        self.dump.gmu_debug = Some(gmu(0x6000_1000, contents, Vec::new()));
        self
    }

    /// The dump as a value: what kernels of the era did not know is left out.
    pub fn build(mut self) -> Devcore<'static> {
        let dump = &mut self.dump;
        dump.kernel.get_or_insert(self.era.release().into());
        let a6xx = self.generation >= Generation::A6xx;
        if a6xx && self.era >= MsmEra::V5_19 {
            dump.gpu_initialized.get_or_insert(1);
        }
        if self.era < MsmEra::V5_19 {
            dump.gpu_initialized = None;
            dump.fault = None;
            (dump.gmu_log, dump.gmu_hfi, dump.gmu_debug) = (None, None, None);
        }
        for bo in &mut dump.bos {
            bo.name = bo.name.take().filter(|_| self.era >= MsmEra::V5_19);
            bo.flags = bo.flags.filter(|_| self.era >= MsmEra::V6_6);
        }
        if self.era < MsmEra::V6_17 {
            dump.shader_blocks.iter_mut().for_each(|b| b.location = None);
            dump.clusters.iter_mut().for_each(|c| c.location = None);
            dump.page_tables = None;
            dump.vm_log.clear();
        } else {
            let shorter = |name: &str| name.strip_suffix("_DATA").map(|n| Cow::Owned(n.to_owned()));
            for indexed in &mut dump.indexed {
                indexed.name = shorter(&indexed.name).unwrap_or(std::mem::take(&mut indexed.name));
            }
        }
        let mut headings = vec![MsmSection::Ringbuffer];
        if a6xx {
            headings.extend([
                MsmSection::Registers,
                MsmSection::RegistersGmu,
                MsmSection::IndexedRegisters,
                MsmSection::ShaderBlocks,
                MsmSection::Clusters,
                MsmSection::Debugbus,
            ]);
            if self.era >= MsmEra::V5_19 {
                headings.extend([MsmSection::GmuLog, MsmSection::GmuHfi, MsmSection::GmuDebug]);
            }
        }
        dump.layout = MsmLayout::with_headings(&headings);
        self.dump
    }

    /// The dump as a kernel writes it, quirks and all.
    pub fn text(self) -> Vec<u8> {
        let mut quirks = self.quirks.clone();
        let era = self.era;
        let dump = self.build();
        let mut text = Vec::new();
        dump.write(&mut text);
        if era == MsmEra::V5_8 {
            quirks.insert(0, Quirk::MisspeltNames);
        }
        if era == MsmEra::V4_19 {
            quirks.insert(0, Quirk::SignedFences);
        }
        match String::from_utf8(text) {
            Ok(mut text) => {
                quirks.into_iter().for_each(|q| q.apply(&mut text));
                text.into_bytes()
            }
            Err(e) => e.into_bytes(),
        }
    }

    /// A dump of this generation with something in every section: the ring calls an IB1 that calls an IB2.
    pub fn complete(generation: Generation) -> DevcoreBuilder {
        let wide = generation.is_64bit();
        let (ring, ib1, ib2) = if wide {
            (0x0001_0000_0000_1000, 0x1_0000_0000, 0x1_0000_2000)
        } else {
            (0x1000_1000, 0x2000_0000, 0x2000_2000)
        };
        let ib2_code = if wide {
            [pm4::pkt4(0x8600, &[0x20]), pm4::pkt7(pm4::CP_WAIT_FOR_IDLE, &[])].concat()
        } else {
            [pm4::pkt0(0x2040, &[1, 2]), pm4::pkt3(pm4::CP_WAIT_FOR_IDLE, &[0])].concat()
        };
        let call = |iova: u64, dwords: usize| {
            if wide {
                pm4::indirect_buffer(iova, dwords as u32)
            } else {
                pm4::pkt3(pm4::CP_INDIRECT_BUFFER_PFE, &[iova as u32, dwords as u32])
            }
        };
        let nop = if wide { pm4::pkt7(pm4::CP_NOP, &[0xdead]) } else { pm4::pkt3(pm4::CP_NOP, &[0xdead]) };
        let ib1_code = [nop.clone(), call(ib2, ib2_code.len())].concat();
        let ring_code = [nop.clone(), call(ib1, ib1_code.len()), nop].concat();
        let mut builder = DevcoreBuilder::of(generation)
            .rbbm_status(0x00f0_0001)
            .ring(ring, &ring_code)
            .with_ring(|r| (r.last_fence, r.retired_fence) = (Some(u32::MAX), Some(u32::MAX - 1)))
            .ring(ring + 0x8000, &[])
            .bo(ib1, 4096, "", &ib1_code)
            .bo(ib2, 4096, "batch", &ib2_code)
            .bo_absent(0x1_0001_0000, 65536, "render target")
            .fault(0x1_0001_0040, "READ", "TRANSLATION", "TP|VFD")
            .page_tables([0x9_5db4_7003, 0x9_5db4_8003, 0, 0])
            .vm_log("map:1: 0x0000000100000000-0x0000000100001000")
            .vm_log("unmap:0: 0x0000000100010000-0x0000000100020000")
            .register(0x210, 0x8000_0001)
            .register(0x800, 5)
            .register64(0x928, ib1);
        if generation == Generation::A5xx {
            builder = builder.hlsq_register(0xe00, 1).hlsq_register(0x2080, 2);
        }
        if generation < Generation::A6xx {
            return builder;
        }
        builder
            .gmu_log(&[])
            .gmu_hfi(&[0, 5, 0x1234], &[[-1, -1, -1, 0, 5, 7, 50, 210], [-1, -1, -1, 0, 4, 8, 12, 16]])
            .gmu_debug(&[1])
            .gmu_register(0x4c00, 1)
            .gmu_register(0x1_f400, 0x3f)
            .indexed("CP_SQE_STAT", &[0x12, 0x7010_0001, 3, 0, 0])
            .indexed("CP_DRAW_STATE", &[0; 256])
            .indexed("CP_UCODE_DBG_DATA", &[0x10, 0x20, 0x30])
            .indexed("CP_ROQ", &ring_code)
            .indexed("CP_MEMPOOL", &[0, 0, 9])
            .shader_block("A6XX_SP_INST_DATA", &[&[1, 2, 0], &[0, 0, 0], &[0, 0, 7]])
            .shader_block("A6XX_HLSQ_DATAPATH_META", &[&[0; 4]])
            .cluster("CLUSTER_GRAS", 0, &[(0x8000, 1), (0x8001, 2)])
            .cluster("CLUSTER_GRAS", 1, &[(0x8000, 3)])
            .cluster("CLUSTER_SP_VS", 0, &[(0xa800, 1)])
            .cluster("CLUSTER_SP_VS", 1, &[])
            .cluster("CLUSTER_SP_VS", 0, &[(0xa870, 1)])
            .cluster("CLUSTER_SP_VS", 1, &[(0xa870, 2)])
            .debugbus("A6XX_DBGBUS_CP", &[0; 512])
            .debugbus("A6XX_DBGBUS_RBBM", &[0, 1, 2])
    }
}

/// Complete dumps of every generation and era, without and with each quirk, and what they are.
pub fn variety() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for generation in Generation::ALL {
        for era in MsmEra::ALL {
            let dump = DevcoreBuilder::complete(generation).era(era);
            all.push((format!("{generation} under {}", era.release()), dump.text()));
        }
        for quirk in Quirk::ALL {
            let dump = DevcoreBuilder::complete(generation).era(MsmEra::V6_17).quirk(quirk);
            all.push((format!("{generation} with {quirk:?}"), dump.text()));
        }
    }
    all
}

fn signed_fence(line: &str) -> Cow<'_, str> {
    let signed = || {
        let (key, value) = line.split_once("-fence: ")?;
        let value: u32 = value.trim_end().parse().ok()?;
        Some(Cow::Owned(format!("{key}-fence: {}\n", value.cast_signed())))
    };
    signed().unwrap_or(Cow::Borrowed(line))
}

fn data(contents: &[u32]) -> Option<Blob<'static>> {
    contents.iter().any(|&d| d != 0).then(|| Blob::encode(contents))
}

fn gmu(iova: u64, contents: &[u32], history: Vec<[i32; 8]>) -> GmuBuffer<'static> {
    GmuBuffer { iova, size: 16384, history, data: data(contents), ..GmuBuffer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_change_the_text() {
        let plain = DevcoreBuilder::complete(Generation::A6xx).era(MsmEra::V6_17);
        for quirk in Quirk::ALL {
            assert_ne!(plain.clone().quirk(quirk).text(), plain.clone().text(), "{quirk:?}");
        }
    }

    #[test]
    fn every_section_is_there() {
        let texts = [
            DevcoreBuilder::complete(Generation::A5xx).text(),
            DevcoreBuilder::complete(Generation::A7xx).era(MsmEra::V6_17).text(),
        ];
        let text = String::from_utf8_lossy(&texts.concat()).into_owned();
        for section in MsmSection::ALL {
            assert!(text.contains(&format!("\n{}:\n", section.name())), "{}", section.name());
        }
    }
}
