//! The devcoredump of a hung machine, and the capture of its submit, as the msm driver of Linux 6.12 writes them.

use super::cp_state::{self, CpState};
use super::ring::{KernelRing, RING, RING_SIZE};
use crate::adreno::clusters::empty_pool;
use crate::adreno::machine::{AdrenoMachine, WorkUnit, is_two_d};
use crate::adreno::{RunEnd, ThreadId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use unwedge_base::Generation;
use unwedge_capture::msm::{
    Blob, Bo, Cluster, Devcore, Fault, Indexed, MsmLayout, MsmSection, RegisterValue, Revision, Ring,
    ShaderBank, ShaderBlock,
};
use unwedge_capture::rd::{MemoryRange, RdSectionKind, RdWriter};
use unwedge_hw::adreno::snapshot::{ClusterRegisters, RegisterReader, ShaderMemory, Snapshot};

/// The release that the dump names.
const KERNEL: &str = "6.12.0-virtual";
/// Buffers are write-combined.
const WRITE_COMBINED: u32 = 0x2_0000;
/// Register contexts of SP_PS that a7xx has; other clusters have two.
const PIXEL_CONTEXTS: u64 = 4;

/// The submit that hung.
#[derive(Clone, Debug, Default)]
pub struct HungSubmit {
    /// Its streams: address and dwords.
    pub streams: Vec<(u64, u32)>,
    /// Its buffers: address, bytes, name.
    pub buffers: Vec<(u64, u64, String)>,
    /// The process.
    pub process: String,
}

/// What a hang leaves.
#[derive(Clone, Debug)]
pub struct HangDump {
    /// The devcoredump, ready to be written.
    pub core: Devcore<'static>,
    /// The submit as `hangrd` has it, with the contents of its buffers.
    pub capture: Vec<u8>,
}

/// Makes the dump of a machine that stopped.
pub(crate) struct CoreDumper<'m, 'd> {
    pub(crate) machine: &'m AdrenoMachine<'d>,
    pub(crate) snapshot: &'m Snapshot,
    pub(crate) ring: &'m KernelRing,
    pub(crate) submit: &'m HungSubmit,
    pub(crate) end: &'m RunEnd,
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    bytes.chunks(4).map(word).collect()
}

/// Contents as kernels write them: none where all are zero.
fn blob(words: &[u32]) -> Option<Blob<'static>> {
    words.iter().any(|&word| word != 0).then(|| Blob::encode(words))
}

impl CoreDumper<'_, '_> {
    /// The dump.
    pub(crate) fn dump(&self) -> HangDump {
        HangDump { core: self.core(), capture: self.capture() }
    }

    fn core(&self) -> Devcore<'static> {
        let fault = self.fault();
        let state = CpState::of(self.machine, ThreadId::Br, self.snapshot.chip.roq_thresholds);
        let chip = self.snapshot.chip;
        // The crash dumper needs memory to write to, and the MMU is stalled.
        let dumper = fault.is_none();
        // No GMU is modelled: its sections are empty, as where the driver could not copy its buffers.
        let headings = [
            MsmSection::Ringbuffer,
            MsmSection::Bos,
            MsmSection::GmuLog,
            MsmSection::GmuHfi,
            MsmSection::GmuDebug,
            MsmSection::Registers,
            MsmSection::RegistersGmu,
            MsmSection::IndexedRegisters,
            MsmSection::ShaderBlocks,
            MsmSection::Clusters,
            MsmSection::Debugbus,
        ];
        Devcore {
            kernel: Some(KERNEL.into()),
            module: Some("msm".into()),
            time: Some("0.000000000".into()),
            comm: Some(self.comm().into()),
            cmdline: Some(self.submit.process.clone().into()),
            gpu_initialized: Some(1),
            revision: Some(Revision { gpu_id: chip.gpu_id, chip_id: chip.chip_id }),
            rbbm_status: Some(0),
            fault,
            rings: vec![self.ring(&state)],
            bos: self.bos(),
            registers: self.registers(&state, dumper),
            indexed: self.indexed(&state),
            shader_blocks: if dumper { self.shaders() } else { Vec::new() },
            clusters: if dumper { self.clusters() } else { Vec::new() },
            layout: MsmLayout::with_headings(&headings),
            ..Devcore::default()
        }
    }

    /// The name of the thread, of which the kernel keeps 15 bytes. Captures have its number after it: `game/1234`.
    fn comm(&self) -> String {
        let program = self.submit.process.split_whitespace().next().unwrap_or_default();
        let numbered =
            |(_, number): &(&str, &str)| number.trim_end_matches(':').bytes().all(|b| b.is_ascii_digit());
        let program = program.rsplit_once('/').filter(numbered).map_or(program, |(program, _)| program);
        let name = program.rsplit('/').next().unwrap_or(program);
        name.chars().take(15).collect()
    }

    fn fault(&self) -> Option<Fault<'static>> {
        let RunEnd::Stopped { thread, stop } = self.end else { return None };
        let report = self.machine.fault_report(*thread, stop)?;
        Some(Fault {
            iova: Some(report.fault.iova),
            ttbr0: Some(report.ttbr0),
            dir: Some(report.fault.direction().into()),
            kind: Some(report.fault.kind.name().into()),
            source: Some(report.source.into()),
            ..Fault::default()
        })
    }

    fn ring(&self, state: &CpState) -> Ring<'static> {
        let written = (self.ring.written % (RING_SIZE / 4)) as u32;
        let contents = self.machine.space.memory.read_known(RING, RING_SIZE).unwrap_or_default();
        Ring {
            id: 0,
            iova: RING,
            last_fence: Some(self.ring.fence),
            retired_fence: Some(KernelRing::retired(self.machine)),
            rptr: Some(state.ring_pointer(self.machine.generation)),
            wptr: Some(written),
            size: Some(RING_SIZE as u32),
            data: blob(&words(&contents)),
            ..Ring::default()
        }
    }

    fn bos(&self) -> Vec<Bo<'static>> {
        let bo = |(iova, size, name): &(u64, u64, String)| {
            let contents = self.machine.space.memory.read_known(*iova, *size);
            Bo {
                iova: *iova,
                size: *size,
                flags: Some(WRITE_COMBINED),
                name: Some(name.clone().into()),
                data: contents.and_then(|bytes| blob(&words(&bytes))),
                ..Bo::default()
            }
        };
        self.submit.buffers.iter().map(bo).collect()
    }

    fn registers(&self, state: &CpState, dumper: bool) -> Vec<RegisterValue> {
        let mut known = BTreeMap::new();
        state.registers(self.machine, &mut known);
        cp_state::status(self.machine, self.end, &mut known);
        let mut out = Vec::new();
        for list in &self.snapshot.registers {
            if !dumper && list.reader == RegisterReader::DumperOnly {
                continue;
            }
            for reg in list.ranges.iter().cloned().flatten() {
                let value = known.get(&reg).copied();
                let value = value.unwrap_or_else(|| self.machine.read_register(ThreadId::Br, reg));
                out.push(RegisterValue { reg, value });
            }
        }
        out
    }

    fn indexed(&self, state: &CpState) -> Vec<Indexed<'static>> {
        let generation = self.machine.generation;
        let newer = generation >= Generation::A7xx;
        let thresholds = self.snapshot.chip.roq_thresholds;
        let bv = newer.then(|| CpState::of(self.machine, ThreadId::Bv, thresholds));
        let block = |block: &unwedge_hw::adreno::snapshot::IndexedBlock| {
            let dwords = block.dwords as usize;
            let contents = match (block.name, &bv) {
                ("CP_SQE_STAT", _) => state.sqe(dwords),
                ("CP_BV_SQE_STAT_ADDR", Some(bv)) => bv.sqe(dwords),
                ("CP_ROQ", _) => state.roq(dwords),
                ("CP_BV_ROQ_DBG_ADDR", Some(bv)) => bv.roq(dwords),
                ("CP_MEMPOOL", _) => match self.machine.ahead.as_deref() {
                    Some(queues) => queues.pool(dwords),
                    None => empty_pool(dwords, false, generation),
                },
                ("CP_BV_MEMPOOL", _) => empty_pool(dwords, true, generation),
                // Firmware, and processors that do not run: nothing was ever written to them.
                _ => Vec::new(),
            };
            let name = Cow::Borrowed(block.name);
            Indexed { name, dwords: block.dwords, data: blob(&contents), ..Indexed::default() }
        };
        self.snapshot.indexed.iter().map(block).collect()
    }

    /// The memories of the shader processors. That for instructions holds the code of the dispatch in work; what the others
    /// hold is not modelled, and they come without contents.
    fn shaders(&self) -> Vec<ShaderBlock<'static>> {
        let code = self.code();
        let block = |memory: &ShaderMemory| {
            let holds_code = matches!(memory.ty, "A6XX_HLSQ_INST_RAM" | "A7XX_HLSQ_INST_RAM");
            let contents = code.get(..code.len().min(memory.dwords as usize)).filter(|_| holds_code);
            let newer = memory.pipe.is_some();
            let parts = if newer { memory.parts } else { 1 };
            let bank = |n: u32| ShaderBank {
                index: n / parts,
                usptp: newer.then_some(n % parts),
                context: None,
                size: memory.dwords,
                data: contents.filter(|_| n == 0).and_then(blob),
            };
            ShaderBlock {
                ty: memory.ty.into(),
                location: None,
                pipe: memory.pipe.map(Cow::Borrowed),
                banks: (0..memory.banks * parts).map(bank).collect(),
                ..ShaderBlock::default()
            }
        };
        self.snapshot.shaders.iter().map(block).collect()
    }

    /// The code of the dispatch in work.
    fn code(&self) -> Vec<u32> {
        if self.machine.working != Some(WorkUnit::Shader) {
            return Vec::new();
        }
        let Some((iova, size)) = self.machine.shader_code(ThreadId::Br) else { return Vec::new() };
        self.machine.space.memory.read_known(iova, size).map(|bytes| words(&bytes)).unwrap_or_default()
    }

    fn clusters(&self) -> Vec<Cluster<'static>> {
        let mut out = Vec::new();
        for cluster in &self.snapshot.clusters {
            for &context in &cluster.contexts {
                let Some(registers) = self.cluster(cluster, context) else { continue };
                out.push(Cluster {
                    name: cluster.name.into(),
                    pipe: cluster.pipe.map(Cow::Borrowed),
                    location: None,
                    context: Some(context),
                    registers,
                    ..Cluster::default()
                });
            }
        }
        out
    }

    /// The registers of a cluster in a context: those of now in the current one, those of the work before in the one before
    /// it, and what it has taken for the next one after work that is stuck. Older ones are not kept.
    fn cluster(&self, cluster: &ClusterRegisters, context: u32) -> Option<Vec<RegisterValue>> {
        // Values of the aperture's field for the two contexts.
        const FORCED: u32 = 2;
        let thread = if cluster.pipe == Some("A7XX_PIPE_BV") { ThreadId::Bv } else { ThreadId::Br };
        let lpac = cluster.pipe == Some("A7XX_PIPE_LPAC");
        let banked = !cluster.name.ends_with("_NONE");
        let count = if cluster.of_shader && cluster.name.ends_with("_SP_PS") { PIXEL_CONTEXTS } else { 2 };
        let number = match (cluster.pipe, cluster.of_shader) {
            (Some(_), false) => context.saturating_sub(FORCED),
            _ => context,
        };
        let name = cluster.name.split_once("CLUSTER_").map_or(cluster.name, |(_, name)| name);
        let rollovers = self.machine.thread(thread).rollovers;
        let queues = self.machine.ahead.as_deref().filter(|_| thread == ThreadId::Br && banked && !lpac);
        let value = |reg: u32| -> Option<u32> {
            let rolled = rollovers[usize::from(is_two_d(self.machine.gpu, reg))];
            let age = (rolled % count + count - u64::from(number) % count) % count;
            let now = |of_before: bool| match of_before {
                true => self.machine.previous_register(thread, reg),
                false => self.machine.read_register(thread, reg),
            };
            if lpac {
                return Some(0);
            }
            if !banked {
                return Some(now(false));
            }
            // After the work that is stuck, a cluster may have gone on to the next context.
            let context = ((rolled + u64::from(age != 0)) & 1) as u8;
            let in_queue = queues.and_then(|queues| queues.register(name, context, reg));
            let next = age == count - 1;
            match (age, in_queue) {
                (0, Some((_, written))) => Some(written.unwrap_or_else(|| now(false))),
                (_, Some((false, written))) if next => Some(written.unwrap_or_else(|| now(false))),
                (1, Some((true, written))) => Some(written.unwrap_or_else(|| now(true))),
                (0, None) => Some(now(false)),
                (1, None) => Some(now(true)),
                _ => None,
            }
        };
        let registers = cluster.ranges.iter().cloned().flatten();
        registers.map(|reg| Some(RegisterValue { reg, value: value(reg)? })).collect()
    }

    /// `hangrd`: what the driver was given, with buffers as they are now.
    fn capture(&self) -> Vec<u8> {
        let mut writer = RdWriter::new(Vec::new());
        let chip = self.snapshot.chip;
        let process = &self.submit.process;
        let task = format!("offending task: {} ({process})\0", self.comm());
        // A buffer of more than 4 GiB is not written: the format has 32 bits for its size.
        let mut write = |kind, payload: &[u8]| writer.section(kind, payload).is_ok();
        write(RdSectionKind::GpuId, &chip.gpu_id.to_le_bytes());
        write(RdSectionKind::ChipId, &chip.chip_id.0.to_le_bytes());
        write(RdSectionKind::Cmd, task.as_bytes());
        for &(iova, size, _) in &self.submit.buffers {
            let Ok(short) = u32::try_from(size) else { continue };
            let range = MemoryRange { iova, size: short };
            let contents = self.machine.space.memory.read_known(iova, size);
            if writer.range(RdSectionKind::GpuAddr, range, true).is_ok()
                && let Some(contents) = contents
            {
                let _ = writer.section(RdSectionKind::BufferContents, &contents);
            }
        }
        for &(iova, size) in &self.submit.streams {
            let _ = writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova, size }, true);
        }
        writer.into_inner()
    }
}
