//! Runs programs of a workgroup on the emulator: memory, rings, registers.

use super::GroupExpectation;
use crate::rig::culling::CullReference;
use crate::rig::pipeline::{CODE, FIRST_PATCH, MACHINE_STEPS, PATCH_OFFSET, RINGS};
use crate::rig::recorded::Problem;
use std::collections::BTreeMap;
use unwedge_aco::abi::{Argument, Interface};
use unwedge_aco::graphics::MemorySlots;
use unwedge_aco::stages::HardwareStage;
use unwedge_aco::{Compiled, Options};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::ir::Stage;
use unwedge_sim::amdgcn::{Dispatch, FaultKind, OrderedState, Outcome, Program, SimMemory, Timing, run};
use unwedge_testkit::pack::bytes;

/// Where patches are left, and the offset there; tessellation factors; the rings before and after geometry shaders.
pub(super) const LEFT: u64 = 0x5000_0000;
const LEFT_BYTES: usize = 1 << 18;
pub(super) const LEFT_OFFSET: u32 = 0x240;
pub(super) const FACTORS: u64 = 0x5100_0000;
pub(super) const FACTOR_OFFSET: u32 = 0x80;
pub(super) const ES_RING: u64 = 0x5200_0000;
const ES_OFFSET: u32 = 0x100;
pub(super) const GS_RING: u64 = 0x5300_0000;
const GS_RING_BYTES: usize = 1 << 22;
pub(super) const GS_WAVE: u32 = 5;
const RING_BYTES: usize = 1 << 20;
/// What memory has that nobody wrote.
const NOTHING: u8 = 0xcd;
/// What a register holds that the hardware does not load.
const NO_REGISTER: u32 = 0xcdcd_cdcd;
/// Vector registers of patches, which come before those of vertices.
const PATCH_VECTORS: u8 = 2;

fn ring_descriptor(base: u64, swizzle: Option<u32>, options: &Options) -> [u32; 4] {
    let generation = options.gpu.generation();
    let mut words = crate::rig::descriptor(base, GS_RING_BYTES, generation);
    let Some(index_stride) = swizzle else { return words };
    crate::rig::swizzle_by_lane(&mut words, index_stride, generation);
    if generation != Gfx::Gfx8 {
        // Indices are compared with their number where there is a stride.
        words[2] = if base == GS_RING { 64 } else { u32::MAX };
    }
    words
}

/// What a dispatch of a workgroup is given.
pub(super) struct GroupRun<'e> {
    pub(super) expected: &'e GroupExpectation,
    pub(super) options: &'e Options,
    pub(super) interface: &'e Interface,
    pub(super) lanes: usize,
    /// Lanes of both parts, waves.
    counts: [usize; 2],
    waves: usize,
    /// Where emitted vertices and their numbers are in LDS.
    emitted: [u32; 2],
    pub(super) lds: u32,
    /// The position of the workgroup in the order of the draw, and the turn and streamout registers at its start.
    pub(super) order: u32,
    pub(super) ordered: OrderedState,
    /// The culling state.
    pub(super) culls: Option<CullReference>,
}

impl<'e> GroupRun<'e> {
    pub(super) fn new(
        expected: &'e GroupExpectation,
        options: &'e Options,
        compiled: &'e Compiled,
    ) -> GroupRun<'e> {
        let interface = &compiled.args.interface;
        let lanes = options.gpu.lanes() as usize;
        let second = &expected.second.info;
        let invocations = match second.stage {
            Stage::TessControl => expected.patches.len() * second.output_vertices as usize,
            _ => expected.primitives.len(),
        };
        let counts = [expected.passed.len(), invocations];
        let hardware = interface.hardware;
        let primitives = hardware == Some(HardwareStage::Ngg);
        let emitted = if primitives { invocations * second.output_vertices as usize } else { 0 };
        let threads = match hardware {
            Some(HardwareStage::Ls | HardwareStage::Es) => counts[0],
            Some(HardwareStage::Hs | HardwareStage::Gs) => counts[1],
            _ => counts[0].max(counts[1]).max(emitted),
        };
        let passed = match hardware {
            Some(HardwareStage::Ls) => &interface.outputs,
            Some(HardwareStage::Hs) => &interface.inputs,
            _ => &interface.passed,
        };
        let begin = counts[0] as u32 * passed.vertex_bytes();
        let shared = expected.patches.len() as u32 * interface.shared.patch_bytes(second.output_vertices);
        let numbers = begin + emitted as u32 * interface.emitted_bytes();
        let after =
            if primitives { numbers + interface.count_bytes() + emitted as u32 * 4 } else { begin + shared };
        assert!(!primitives || after <= options.gpu.lds_bytes(), "the workgroup has room in LDS");
        GroupRun {
            expected,
            options,
            interface,
            lanes,
            counts,
            waves: threads.div_ceil(lanes),
            emitted: [begin, numbers],
            lds: after.max(compiled.code.lds_bytes).max(4),
            order: 0,
            ordered: OrderedState::default(),
            culls: None,
        }
    }

    /// Bytes of the ring after geometry shaders that a wave has.
    pub(super) fn wave_bytes(&self) -> u32 {
        (0..4).map(|stream| self.stream_stride(stream) * 64).sum()
    }

    /// What the ring after geometry shaders has of a vertex of a stream.
    pub(super) fn stream_slots(&self, stream: u8) -> &MemorySlots {
        match stream.checked_sub(1) {
            Some(other) => &self.interface.streams[usize::from(other)],
            None => &self.interface.outputs,
        }
    }

    /// Bytes of an invocation's vertices of a stream there.
    pub(super) fn stream_stride(&self, stream: u8) -> u32 {
        self.stream_slots(stream).vertex_bytes() * self.expected.second.info.output_vertices
    }

    pub(super) fn memory(&self) -> SimMemory {
        let mut rings = vec![
            (1, ring_descriptor(ES_RING, Some(3), self.options)),
            (2, ring_descriptor(ES_RING, None, self.options)),
            (3, ring_descriptor(GS_RING, None, self.options)),
            (4, ring_descriptor(GS_RING, Some(1), self.options)),
            (5, ring_descriptor(FACTORS, None, self.options)),
        ];
        if self.expected.first.shader.info.stage != Stage::TessEval {
            rings.push((6, ring_descriptor(LEFT, None, self.options)));
        }
        let mut memory = self.expected.first.memory(self.options, self.interface, &rings);
        memory.map(LEFT, vec![NOTHING; LEFT_BYTES]).expect("free");
        memory.map(FACTORS, vec![NOTHING; RING_BYTES]).expect("free");
        memory.map(ES_RING, self.vertex_ring()).expect("free");
        memory.map(GS_RING, vec![NOTHING; GS_RING_BYTES]).expect("free");
        memory
    }

    /// The ring before geometry shaders, as the first shader leaves it.
    fn vertex_ring(&self) -> Vec<u8> {
        let mut made = vec![NOTHING; RING_BYTES];
        if self.interface.hardware != Some(HardwareStage::Gs) {
            return made;
        }
        for (vertex, slots) in (0..).zip(&self.expected.passed) {
            for (key, words) in slots {
                let Some(at) = self.interface.inputs.offset(key.slot as u16, false) else { continue };
                for (component, word) in (0..).zip(words) {
                    let place = es_place(vertex, at + component * 4) as usize;
                    made[place..place + 4].copy_from_slice(&word.unwrap_or(0).to_le_bytes());
                }
            }
        }
        made
    }

    /// LDS, as the first shader leaves it.
    fn local(&self) -> Vec<u8> {
        let slots = &self.interface.inputs;
        if self.interface.hardware != Some(HardwareStage::Hs) {
            return Vec::new();
        }
        let mut words = vec![0u32; self.expected.passed.len() * slots.vertex_bytes() as usize / 4];
        for (vertex, own) in self.expected.passed.iter().enumerate() {
            for (key, values) in own {
                let Some(at) = slots.offset(key.slot as u16, false) else { continue };
                let place = (vertex * slots.vertex_bytes() as usize + at as usize) / 4;
                (0..4).for_each(|component| words[place + component] = values[component].unwrap_or(0));
            }
        }
        bytes(&words)
    }

    fn lanes_of(&self, part: usize, wave: usize) -> u32 {
        self.counts[part].saturating_sub(wave * self.lanes).min(self.lanes) as u32
    }

    fn by_wave(&self, argument: Argument) -> Option<Vec<u32>> {
        let each = |word: &dyn Fn(usize) -> u32| Some((0..self.waves).map(word).collect());
        match argument {
            Argument::MergedWaveInfo => each(&|wave| {
                let geometry = (GS_WAVE + wave as u32) << 16;
                let place = (wave as u32) << 24 | (self.waves as u32) << 28;
                self.lanes_of(0, wave) | self.lanes_of(1, wave) << 8 | geometry | place
            }),
            Argument::GsToVs => each(&|wave| self.wave_bytes() * wave as u32),
            Argument::GsWaveId => each(&|wave| GS_WAVE + wave as u32),
            _ => None,
        }
    }

    fn word(&self, argument: Argument) -> Option<u32> {
        Some(match argument {
            Argument::OffchipOffset if self.expected.first.shader.info.stage == Stage::TessEval => {
                PATCH_OFFSET
            }
            Argument::OffchipOffset => LEFT_OFFSET,
            Argument::FactorOffset => FACTOR_OFFSET,
            Argument::PatchCount => self.expected.patches.len() as u32,
            Argument::EsToGs => ES_OFFSET,
            Argument::EmittedLds => self.emitted[0] | self.emitted[1] << 16,
            Argument::CullState => self.culls?.state.word(),
            Argument::ViewportTransform(number) => self.culls?.viewport[usize::from(number)].to_bits(),
            Argument::GroupInfo => self.order | (self.counts[0] as u32) << 12 | (self.counts[1] as u32) << 22,
            _ => return self.expected.first.word(argument),
        })
    }

    fn threads(&self, argument: Argument) -> Option<Vec<u32>> {
        let vertices = self.expected.second.info.output_vertices.max(1);
        let invocations = self.counts[1] as u32;
        Some(match argument {
            Argument::PatchId if !self.expected.patches.is_empty() => {
                (0..invocations).map(|at| FIRST_PATCH + at / vertices).collect()
            }
            Argument::RelativeIds => {
                (0..invocations).map(|at| (at / vertices) | ((at % vertices) << 8) | (0xff << 16)).collect()
            }
            Argument::RelativeVertex => (0..self.counts[0] as u32).collect(),
            Argument::VertexOffset(number) => {
                self.expected.primitives.iter().map(|primitive| self.offset(number, primitive)).collect()
            }
            Argument::GeometryPrimitive => (0..invocations).map(|at| FIRST_PATCH + at).collect(),
            Argument::GeometryInvocation => {
                self.expected.primitives.iter().map(|(_, invocation)| *invocation).collect()
            }
            _ => return self.expected.first.threads(argument).and_then(|all| all.into_iter().next()),
        })
    }

    /// The word of the hardware that says where vertices are.
    fn offset(&self, number: u8, (vertices, invocation): &(Vec<u32>, u32)) -> u32 {
        let number = usize::from(number);
        let vertex = |at: usize| vertices.get(at).copied().unwrap_or(0);
        match self.options.gpu.generation() {
            Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 => es_place(vertex(number), 0) / 4,
            Gfx::Gfx12 => {
                let all = (0..3).fold(0, |all, at| all | vertex(number * 3 + at) << (9 * at));
                all | if number == 0 { invocation << 27 } else { 0 }
            }
            _ => {
                let dwords = self.interface.passed.vertex_bytes() / 4;
                (vertex(number * 2) * dwords) | ((vertex(number * 2 + 1) * dwords) << 16)
            }
        }
    }

    pub(super) fn dispatch(&self, compiled: &Compiled, timing: Timing) -> Dispatch {
        let gpu = &self.options.gpu;
        let mut dispatch = Dispatch {
            size: [(self.waves * self.lanes) as u32, 1, 1],
            lds: self.lds,
            lds_content: self.local(),
            gds: 16,
            ordered: self.ordered,
            scratch: compiled.code.scratch_bytes,
            mode: 0x100 | u32::from(compiled.float_mode),
            timing,
            steps: MACHINE_STEPS,
            ..Dispatch::default()
        };
        if !self.interface.hardware.is_some_and(HardwareStage::is_merged) {
            let part = matches!(self.interface.hardware, Some(HardwareStage::Hs | HardwareStage::Gs));
            dispatch.size[0] = self.counts[usize::from(part)] as u32;
        }
        let mut vectors = Vec::new();
        for location in compiled.args.iter() {
            let reg = location.reg.reg();
            if let Some(words) = self.by_wave(location.argument) {
                dispatch.waves_hold.push((reg.0, words));
            } else if let Some(word) = self.word(location.argument) {
                dispatch.scalars.push((reg.0, word));
            } else if let Some(words) = self.threads(location.argument) {
                vectors.push((reg.index() as u8, words));
            } else if location.argument == Argument::ScratchOffset {
                dispatch.scalars.push((reg.0, 0));
            } else if location.argument == Argument::RingOffsets {
                let words = match gpu.generation() >= Gfx::Gfx11 {
                    true => [RINGS as u32, self.options.address_high, 0, 0],
                    false => crate::rig::scratch_descriptor(gpu),
                };
                dispatch.scalars.extend((reg.0..).zip(words).take(location.dwords.into()));
            }
        }
        if self.shifts() {
            self.shift(&mut vectors);
        }
        dispatch.threads_hold = vectors;
        dispatch
    }

    /// Whether the GPU loads vector registers of vertices from the first one on where a wave has no patches.
    fn shifts(&self) -> bool {
        let buggy = matches!(self.options.gpu.name(), "gfx900" | "gfx902");
        buggy && self.interface.hardware == Some(HardwareStage::LsHs)
    }

    /// Moves the registers of vertices down in waves without patches.
    fn shift(&self, vectors: &mut Vec<(u8, Vec<u32>)>) {
        let threads = self.waves * self.lanes;
        let mut moved: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
        for (register, words) in &*vectors {
            for (thread, word) in words.iter().enumerate() {
                let down = if self.lanes_of(1, thread / self.lanes) == 0 { PATCH_VECTORS } else { 0 };
                let Some(register) = register.checked_sub(down) else { continue };
                moved.entry(register).or_insert_with(|| vec![NO_REGISTER; threads])[thread] = *word;
            }
        }
        *vectors = moved.into_iter().collect();
    }
}

/// Where a dword of a vertex is in the ring before geometry shaders.
pub(super) fn es_place(vertex: u32, offset: u32) -> u32 {
    ES_OFFSET + vertex / 64 * 64 * 1024 + offset / 4 * 256 + vertex % 64 * 4
}

pub(super) fn run_group(
    run_of: &GroupRun<'_>,
    compiled: &Compiled,
    seed: u64,
    memory: &mut SimMemory,
) -> Result<Outcome, Problem> {
    let program = Program::new(&compiled.code.words, CODE, run_of.options.gpu);
    let outcome = run(&program, memory, &run_of.dispatch(compiled, Timing::Adversarial { seed }), None);
    let undefined = run_of.expected.has_undefined();
    let allowed = |kind: &FaultKind| undefined && matches!(kind, FaultKind::Stored(..));
    match outcome.faults.iter().find(|fault| !allowed(&fault.kind)) {
        Some(fault) => Err(("run", format!("{fault}: {}", program.text(fault.at).unwrap_or_default()))),
        None => Ok(outcome),
    }
}

pub(super) fn word(memory: &SimMemory, at: u64) -> Option<u32> {
    memory.get(at, 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
}
