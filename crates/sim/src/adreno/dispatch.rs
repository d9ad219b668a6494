//! Compute dispatches: from registers and loaded state to the waves of a shader.
//!
//! Facts: what registers and constants mean at a dispatch, as Mesa's Turnip sets them. Never: what instructions do.

use super::cp::{CpStop, PacketEnd, ThreadId};
use super::fiber_trace::FiberWanted;
use super::ir3::{
    self, BindfulTable, BindfulTables, Dispatch, FaultKind, FiberTap, Grid, GridEnd, MemoryUnit,
    PrivateMemory, ShaderProgram, ShaderState,
};
use super::machine::AdrenoMachine;
use super::space::{AddressSpace, Client, GpuFault};
use super::state::DescriptorTable;
use crate::fault::MemoryFaultCause;
use unwedge_base::Generation;
use unwedge_hw::adreno::layout::ImageGpu;
use unwedge_hw::{Gpu, Reg, RegSpace};
use unwedge_stream::adreno::Stage;

/// Registers of compute, where the GPU has them.
#[derive(Clone, Debug)]
pub(crate) struct ComputePlaces {
    code: u32,
    first_instruction: u32,
    code_size: u32,
    local_memory: u32,
    private_base: u32,
    private_size: u32,
    textures: u32,
    samplers: u32,
    borders: u32,
    /// TPL1_BICUBIC_WEIGHTS_TABLE_0.
    cubic: Option<u32>,
    images: u32,
    nd_range: u32,
    /// The registers of system values.
    values: u32,
    /// The size of waves, and its bit.
    wave_size: (u32, u32),
    descriptor_sets: u32,
    set_count: u32,
    /// Constants in registers (a7xx), and how many.
    pub(crate) immediates: Option<u32>,
}

/// Constants in registers of a7xx.
pub(crate) const IMMEDIATES: u32 = 64;
/// The first of the constants that all stages share (a6xx), by component.
pub(crate) const SHARED_CONSTANTS: usize = 504 * 4;
/// Instructions that a unit of SP_CS_INSTRLEN counts.
const CODE_UNIT: u64 = 16;
/// Units that a dump may hold.
const MAX_CODE_UNITS: u64 = 1 << 10;
/// Dwords of shared constants.
pub(crate) const SHARED_DWORDS: usize = 32;

impl ComputePlaces {
    pub(crate) fn new(gpu: Gpu<'_>) -> Option<ComputePlaces> {
        let reg = |name: &str| gpu.reg_offset(name);
        let a7xx = gpu.generation() >= Generation::A7xx;
        let (values, wave_size, set_count) = match a7xx {
            true => ("SP_CS_CNTL_0", ("SP_CS_CNTL_1", 8), 8),
            false => ("HLSQ_CS_CNTL_0", ("HLSQ_CS_CNTL_1", 9), 5),
        };
        Some(ComputePlaces {
            code: reg("SP_CS_OBJ_START")?,
            first_instruction: reg("SP_CS_OBJ_FIRST_EXEC_OFFSET")?,
            code_size: reg("SP_CS_INSTRLEN")?,
            local_memory: reg("SP_CS_CTRL_REG1")?,
            private_base: reg("SP_CS_PVT_MEM_ADDR")?,
            private_size: reg("SP_CS_PVT_MEM_PARAM")?,
            textures: reg("SP_CS_TEX_CONST")?,
            samplers: reg("SP_CS_TEX_SAMP")?,
            borders: reg("SP_TP_BORDER_COLOR_BASE_ADDR")?,
            cubic: reg("TPL1_BICUBIC_WEIGHTS_TABLE_0"),
            images: reg("SP_CS_IBO")?,
            nd_range: reg("HLSQ_CS_NDRANGE_0")?,
            values: reg(values)?,
            wave_size: (reg(wave_size.0)?, wave_size.1),
            descriptor_sets: reg("SP_CS_BINDLESS_BASE[0].DESCRIPTOR")?,
            set_count,
            // An array of registers without fields has no name of its own for each, so that no look-up by name finds it.
            immediates: {
                let is_first = |reg: &Reg<'_>| reg.name().starts_with("HLSQ_SHARED_CONSTS_IMM[0]");
                let first = gpu.space(RegSpace::Gpu).iter().find(is_first).map(Reg::offset);
                first.filter(|&at| gpu.reg(at).as_ref().is_some_and(is_first))
            },
        })
    }
}

/// A dispatch that has begun.
#[derive(Debug)]
pub(crate) struct RunningDispatch {
    /// Where the shader's code begins.
    code: u64,
    program: ShaderProgram,
    dispatch: Dispatch,
    grid: Grid,
    tap: Option<(u32, FiberTap)>,
    /// The fault that ends it if no other thread changes what it polls.
    polls: Option<ir3::Fault>,
}

/// Why a dispatch cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchStop {
    /// A wave met a fault.
    #[error("{stage} shader at {code:#x}: {fault}")]
    Shader {
        /// Of which stage it is.
        stage: &'static str,
        /// Where the shader's code begins.
        code: u64,
        /// What, and where in it.
        fault: ir3::Fault,
    },
}

impl DispatchStop {
    /// The access that the GPU's MMU reports, if it is one.
    pub fn gpu_fault(&self) -> Option<GpuFault> {
        let DispatchStop::Shader { fault, .. } = self;
        let FaultKind::Memory(memory, unit) = fault.kind else { return None };
        let client = match unit {
            MemoryUnit::Texture => Client::Tp,
            MemoryUnit::Uche | MemoryUnit::Constants | MemoryUnit::Private => Client::Sp,
        };
        Some(GpuFault::of(memory, client))
    }
}

impl DispatchStop {
    /// The same, with what the page tables say of the access.
    pub(crate) fn with_rights(self, space: &AddressSpace) -> DispatchStop {
        let DispatchStop::Shader { stage, code, mut fault } = self;
        if let FaultKind::Memory(memory, _) = &mut fault.kind {
            *memory = space.shader_fault(*memory);
        }
        DispatchStop::Shader { stage, code, fault }
    }

    /// Hardware would have stopped as well: not for what is not emulated, or not known.
    pub(crate) fn is_of_hardware(&self) -> bool {
        let DispatchStop::Shader { fault, .. } = self;
        match fault.kind {
            FaultKind::NotEmulated(_) | FaultKind::TooManyPages => false,
            FaultKind::Memory(memory, _) => memory.cause != MemoryFaultCause::Unknown,
            _ => true,
        }
    }
}

impl AdrenoMachine<'_> {
    /// Runs a grid of workgroups with the state that is loaded, or goes on with the one that waits for another thread.
    pub(crate) fn dispatch(&mut self, id: ThreadId, groups: [u32; 3]) -> Result<PacketEnd, CpStop> {
        let running = match self.thread_mut(id).dispatch.take() {
            Some(running) => running,
            None => match self.compute_places.clone() {
                Some(places) => Box::new(self.begin_dispatch(id, &places, groups)?),
                None => return Ok(PacketEnd::Done),
            },
        };
        self.run_dispatch(id, running)
    }

    fn begin_dispatch(
        &self,
        id: ThreadId,
        places: &ComputePlaces,
        groups: [u32; 3],
    ) -> Result<RunningDispatch, CpStop> {
        let first = u64::from(self.read_register(id, places.first_instruction));
        let code = self.register_pair(id, Some(places.code)).wrapping_add(first);
        let program = self.program(id, places, code)?;
        let dispatch = self.dispatch_of(id, places, groups);
        let tap = self.compute_tap(&dispatch);
        Ok(RunningDispatch { code, program, grid: Grid::new(&dispatch), dispatch, tap, polls: None })
    }

    fn run_dispatch(&mut self, id: ThreadId, mut running: Box<RunningDispatch>) -> Result<PacketEnd, CpStop> {
        let options = ir3::Options { steps: self.allowance, ..self.compute };
        let RunningDispatch { code, program, dispatch, grid, tap, polls } = running.as_mut();
        self.shares_work |= options.threads > 1 && dispatch.groups.iter().any(|groups| *groups > 1);
        let run = grid.run(program, dispatch, &mut self.space.memory, &options, tap.as_ref());
        let stop = |fault| CpStop::Dispatch(DispatchStop::Shader { stage: "compute", code: *code, fault });
        let (end, stats) = run.map_err(|fault| match fault.kind {
            FaultKind::Steps => CpStop::Budget,
            _ => stop(fault),
        })?;
        self.spend(stats.steps)?;
        match end {
            GridEnd::Done => Ok(PacketEnd::Done),
            // No other thread can write what is polled.
            GridEnd::Polls(fault) if self.threads.len() == 1 => Err(stop(fault)),
            GridEnd::Polls(fault) => {
                *polls = Some(fault);
                self.thread_mut(id).dispatch = Some(running);
                Ok(PacketEnd::Waits)
            }
        }
    }

    /// The thread whose dispatch polls memory, and how it stops if no thread changes that.
    pub(crate) fn polling_dispatch(&self) -> Option<(ThreadId, CpStop)> {
        self.threads.iter().find_map(|thread| {
            let RunningDispatch { code, polls, .. } = thread.dispatch.as_deref()?;
            let stop = DispatchStop::Shader { stage: "compute", code: *code, fault: polls.clone()? };
            Some((thread.id, CpStop::Dispatch(stop)))
        })
    }

    /// The fiber of the grid that is traced, with the number of its workgroup.
    fn compute_tap(&self, dispatch: &Dispatch) -> Option<(u32, FiberTap)> {
        let trace = self.trace_now()?;
        let FiberWanted::Compute { group, local } = trace.wanted else { return None };
        let number = |[x, y, z]: [u32; 3], [width, height, depth]: [u32; 3]| {
            let inside = x < width && y < height && z < depth;
            let row = z.checked_mul(height)?.checked_add(y)?;
            row.checked_mul(width)?.checked_add(x).filter(|_| inside)
        };
        let fiber = number(local, dispatch.local_size)?;
        Some((number(group, dispatch.groups)?, trace.tap("compute", fiber as usize)))
    }

    /// Where the code of compute shaders is, and its bytes.
    pub(crate) fn shader_code(&self, id: ThreadId) -> Option<(u64, u64)> {
        let places = self.compute_places.as_ref()?;
        let units = u64::from(self.read_register(id, places.code_size)).clamp(1, MAX_CODE_UNITS);
        Some((self.register_pair(id, Some(places.code)), units * CODE_UNIT * 8))
    }

    /// The code of the shader, as far as it is mapped.
    fn program(&self, id: ThreadId, places: &ComputePlaces, code: u64) -> Result<ShaderProgram, CpStop> {
        let count = u64::from(self.read_register(id, places.code_size)).saturating_mul(CODE_UNIT).max(1);
        // Whether there is any.
        self.space.read(code, 8, Client::Sp)?;
        let words = (0..count).map_while(|n| self.space.read(code.wrapping_add(8 * n), 8, Client::Sp).ok());
        Ok(ShaderProgram::new(words, self.shader_gpu))
    }

    fn dispatch_of(&self, id: ThreadId, places: &ComputePlaces, groups: [u32; 3]) -> Dispatch {
        let read = |reg| self.read_register(id, reg);
        let size = read(places.nd_range);
        let values = read(places.values);
        let register = |low: u32| Some((values >> low) as u8).filter(|&register| register < 252);
        let (reg, bit) = places.wave_size;
        let sets = 0..places.set_count;
        Dispatch {
            state: ShaderState {
                wave_size: if read(reg) >> bit & 1 != 0 { 128 } else { 64 },
                constants: self.constants(id),
                immediate_constants: places
                    .immediates
                    .map(|first| (first..first + IMMEDIATES).map(read).collect())
                    .unwrap_or_default(),
                bindless: sets
                    .map(|set| self.register_pair(id, Some(places.descriptor_sets + 2 * set)))
                    .collect(),
                tables: self.bindful_tables(id, places),
                borders: self.register_pair(id, Some(places.borders)),
                bank: ImageGpu::of(self.adreno).ok().and_then(|gpu| gpu.bank),
                window: [0; 2],
                cubic: self.cubic_weights(id),
                sample_places: [[8; 2]; 4],
                private: PrivateMemory {
                    base: self.register_pair(id, Some(places.private_base)),
                    per_fiber: (read(places.private_size) & 0xff) << 9,
                },
            },
            entry: 0,
            groups,
            local_size: [size >> 2, size >> 12, size >> 22].map(|size| (size & 0x3ff) + 1),
            local_memory: ((read(places.local_memory) & 0x1f) + 1) * 1024,
            local_id: register(24),
            group_id: register(0),
        }
    }

    /// The weights of cubic filters, if the GPU has such.
    pub(super) fn cubic_weights(&self, id: ThreadId) -> Option<[u32; 5]> {
        let first =
            self.compute_places.as_ref()?.cubic.filter(|_| {
                self.adreno.device.is_some_and(|device| device.flag("a6xx.has_tex_filter_cubic"))
            })?;
        Some([0, 1, 2, 3, 4].map(|at| self.read_register(id, first + at)))
    }

    /// Tables of descriptors that are not bindless. The hardware has what packets loaded of them; the rest it fetches.
    fn bindful_tables(&self, id: ThreadId, places: &ComputePlaces) -> BindfulTables {
        let state = self.loaded(id).stage(Stage::Compute);
        let table = |table: DescriptorTable, register: Option<u32>| BindfulTable {
            address: register.map_or(0, |register| self.register_pair(id, Some(register))),
            loaded: state.table(table).to_vec(),
        };
        BindfulTables {
            textures: table(DescriptorTable::Texture, Some(places.textures)),
            samplers: table(DescriptorTable::Sampler, Some(places.samplers)),
            images: table(DescriptorTable::Image, Some(places.images)),
            // Uniform buffers have no register: packets load all of them.
            uniforms: table(DescriptorTable::Ubo, None),
        }
    }

    /// The constant file of compute, with the constants that stages share in their place. What nothing loaded is zero, as
    /// the machine's registers are.
    fn constants(&self, id: ThreadId) -> Vec<u32> {
        let file = self.loaded(id).stage(Stage::Compute).constants();
        let mut constants: Vec<u32> = file.iter().map(|word| word.unwrap_or(0)).collect();
        let shared = self.loaded(id).shared_constants(true).iter().take(SHARED_DWORDS);
        for (slot, word) in constants.iter_mut().skip(SHARED_CONSTANTS).zip(shared) {
            *slot = word.unwrap_or(*slot);
        }
        constants
    }
}
