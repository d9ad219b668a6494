//! Stages of draws: the code of each, and the state that its fibers share.
//!
//! Never: which fibers there are.

use super::fragment_state::sample_places;
use super::registers::{DrawRegisters, DrawStage, Reg, StageReg};
use crate::adreno::cp::{CpStop, ThreadId};
use crate::adreno::dispatch::{DispatchStop, IMMEDIATES, SHARED_CONSTANTS, SHARED_DWORDS};
use crate::adreno::ir3::{
    BindfulTable, BindfulTables, Dispatch, Fault, FaultKind, Options, PrivateMemory, ShaderProgram,
    ShaderState, StageCode,
};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::Client;
use crate::adreno::state::DescriptorTable;
use unwedge_base::Generation;
use unwedge_hw::adreno::layout::ImageGpu;
use unwedge_stream::adreno::Stage;

/// Instructions that a unit of SP_xS_INSTRLEN counts.
const CODE_UNIT: u64 = 16;
/// Fragments, or as much work, from which on it is shared with other threads: about a millisecond. Less than that was slower on two cores
/// wherever it was measured (benches/RESULTS.md).
const MANY_FRAGMENTS: usize = 1 << 15;
/// Sets of bindless descriptors, on a6xx and a7xx.
const SETS: [u32; 2] = [5, 8];

impl DrawStage {
    fn loaded(self) -> Stage {
        match self {
            DrawStage::Vertex => Stage::Vertex,
            DrawStage::Hull => Stage::TessControl,
            DrawStage::Domain => Stage::TessEval,
            DrawStage::Geometry => Stage::Geometry,
            DrawStage::Fragment => Stage::Fragment,
        }
    }
}

impl AdrenoMachine<'_> {
    /// The shader of a stage, with its preamble run. Bytes of local memory are those of its fibers.
    pub(super) fn stage_code(
        &mut self,
        id: ThreadId,
        stage: DrawStage,
        local_memory: u32,
    ) -> Result<StageCode, CpStop> {
        let registers = DrawRegisters { machine: self, thread: id };
        let first = u64::from(registers.stage(stage, StageReg::FirstInstruction));
        let code = registers.stage_address(stage, StageReg::Code).wrapping_add(first);
        let units = u64::from(registers.stage(stage, StageReg::CodeSize));
        let count = units.saturating_mul(CODE_UNIT).max(1);
        // Whether there is any.
        self.space.read(code, 8, Client::Sp)?;
        let words = (0..count).map_while(|n| self.space.read(code.wrapping_add(8 * n), 8, Client::Sp).ok());
        let program = ShaderProgram::new(words, self.shader_gpu);
        let state = self.stage_state(id, stage);
        let dispatch = Dispatch { state, local_memory, ..Dispatch::default() };
        let options = Options { steps: self.allowance, ..self.compute };
        let run = StageCode::new(program, dispatch, &mut self.space.memory, &options);
        let (code, stats) = run.map_err(|fault| self.stage_stop(id, stage, fault))?;
        self.spend(stats.steps)?;
        Ok(code)
    }

    /// How the work of so many fragments is run: little of it on this thread.
    pub(super) fn batch_options(&mut self, fragments: usize) -> Options {
        // A log is of one batch after the other.
        let alone = fragments < MANY_FRAGMENTS || self.trace_now().is_some();
        let threads = if alone { 1 } else { self.compute.threads };
        self.shares_work |= threads > 1;
        Options { steps: self.allowance, threads, ..self.compute }
    }

    /// Why a draw cannot go on after a fault of a shader.
    pub(super) fn stage_stop(&self, id: ThreadId, stage: DrawStage, fault: Fault) -> CpStop {
        let registers = DrawRegisters { machine: self, thread: id };
        let code = registers.stage_address(stage, StageReg::Code);
        match fault.kind {
            FaultKind::Steps => CpStop::Budget,
            _ => CpStop::Dispatch(DispatchStop::Shader { stage: stage.name(), code, fault }),
        }
    }

    fn stage_state(&self, id: ThreadId, stage: DrawStage) -> ShaderState {
        let registers = DrawRegisters { machine: self, thread: id };
        let a7xx = self.generation >= Generation::A7xx;
        let wide = stage == DrawStage::Fragment && registers.stage(stage, StageReg::Control) >> 20 & 1 != 0;
        let read = |reg| self.read_register(id, reg);
        let immediates = self.compute_places.as_ref().and_then(|places| places.immediates);
        ShaderState {
            wave_size: if wide { 128 } else { 64 },
            constants: self.stage_constants(id, stage),
            immediate_constants: immediates
                .map(|first| (first..first + IMMEDIATES).map(read).collect())
                .unwrap_or_default(),
            bindless: (0..SETS[usize::from(a7xx)])
                .map(|set| registers.address(Reg::Bindless, 2 * set))
                .collect(),
            tables: self.stage_tables(&registers, stage),
            borders: registers.address(Reg::Borders, 0),
            bank: ImageGpu::of(self.adreno).ok().and_then(|gpu| gpu.bank),
            window: {
                let offset = registers.get(Reg::TextureWindowOffset);
                [offset & 0x3fff, offset >> 16 & 0x3fff]
            },
            cubic: self.cubic_weights(id),
            sample_places: sample_places(&registers),
            private: PrivateMemory {
                base: registers.stage_address(stage, StageReg::PrivateBase),
                per_fiber: (registers.stage(stage, StageReg::PrivateSize) & 0xff) << 9,
            },
        }
    }

    fn stage_tables(&self, registers: &DrawRegisters<'_, '_>, stage: DrawStage) -> BindfulTables {
        let loaded = self.loaded(registers.thread);
        let state = loaded.stage(stage.loaded());
        let table = |table: DescriptorTable, address: u64| BindfulTable {
            address,
            loaded: state.table(table).to_vec(),
        };
        BindfulTables {
            textures: table(DescriptorTable::Texture, registers.stage_address(stage, StageReg::Textures)),
            samplers: table(DescriptorTable::Sampler, registers.stage_address(stage, StageReg::Samplers)),
            images: BindfulTable {
                address: registers.address(Reg::Images, 0),
                loaded: loaded.graphics_images().table(DescriptorTable::Image).to_vec(),
            },
            // Uniform buffers have no register: packets load all of them.
            uniforms: table(DescriptorTable::Ubo, 0),
        }
    }

    /// The constant file of a stage, with the constants that stages share in their place. What nothing loaded is zero.
    fn stage_constants(&self, id: ThreadId, stage: DrawStage) -> Vec<u32> {
        let loaded = self.loaded(id);
        let file = loaded.stage(stage.loaded()).constants();
        let mut constants: Vec<u32> = file.iter().map(|word| word.unwrap_or(0)).collect();
        let shared = loaded.shared_constants(false).iter().take(SHARED_DWORDS);
        for (slot, word) in constants.iter_mut().skip(SHARED_CONSTANTS).zip(shared) {
            *slot = word.unwrap_or(*slot);
        }
        constants
    }
}
