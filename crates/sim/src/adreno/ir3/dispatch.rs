//! What waves are run with.

use crate::run::Timing;
use unwedge_hw::adreno::layout::BankConfig;

/// Private memory, as `SP_xS_PVT_MEM_*` give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrivateMemory {
    /// Where it starts.
    pub base: u64,
    /// Bytes of a fiber.
    pub per_fiber: u32,
}

/// A table of descriptors that are not bindless.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BindfulTable {
    /// Where it is in memory; 0: nowhere.
    pub address: u64,
    /// What packets have loaded of it, by dword. It comes before what is in memory.
    pub loaded: Vec<Option<u32>>,
}

/// Tables of descriptors that are not bindless.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BindfulTables {
    /// Textures, 16 dwords each.
    pub textures: BindfulTable,
    /// Samplers, 4 dwords each.
    pub samplers: BindfulTable,
    /// Storage images and buffers, 16 dwords each.
    pub images: BindfulTable,
    /// Uniform buffers, 2 dwords each.
    pub uniforms: BindfulTable,
}

/// The state that any shader stage has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShaderState {
    /// Fibers of a wave: 64 or 128.
    pub wave_size: u32,
    /// The constant file by component. Shared constants of a6xx are at `c504.x` of it.
    pub constants: Vec<u32>,
    /// What `stsc` copies from.
    pub immediate_constants: Vec<u32>,
    /// `SP_xS_BINDLESS_BASE`: addresses with the size of a descriptor in the low two bits.
    pub bindless: Vec<u64>,
    /// Tables of descriptors that are not bindless.
    pub tables: BindfulTables,
    /// The table of border colours.
    pub borders: u64,
    /// How the GPU spreads tiles of images over banks of memory, where it is known.
    pub bank: Option<BankConfig>,
    /// The first pixel of the window that is in GMEM.
    pub window: [u32; 2],
    /// TPL1_BICUBIC_WEIGHTS_TABLE, of GPUs that have cubic filters. Zeros: what the kernel writes.
    pub cubic: Option<[u32; 5]>,
    /// Where the samples of render targets are in their pixels: column and row in sixteenths.
    pub sample_places: [[u8; 2]; 4],
    /// Private memory.
    pub private: PrivateMemory,
}

/// A grid of workgroups of a compute shader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// State of the stage.
    pub state: ShaderState,
    /// Index of the first instruction in the program.
    pub entry: u32,
    /// Workgroups along each axis.
    pub groups: [u32; 3],
    /// Fibers of a workgroup along each axis, at most 2,048 in all.
    pub local_size: [u32; 3],
    /// Bytes of local memory of a workgroup.
    pub local_memory: u32,
    /// Three registers that hold a fiber's place in its workgroup, if any do: the first one, by component.
    pub local_id: Option<u8>,
    /// Three shared registers that hold the workgroup's place.
    pub group_id: Option<u8>,
}

impl Dispatch {
    /// Fibers that a wave has room for.
    pub(super) fn lanes(&self) -> usize {
        if self.state.wave_size > 64 { 128 } else { 64 }
    }
}

/// How it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Instructions that all waves may execute.
    pub steps: u64,
    /// Timing.
    pub timing: Timing,
    /// Threads of the host; the result is the same with any number.
    pub threads: usize,
}

impl Default for Options {
    /// Plain timing, a hundred million steps, one thread.
    fn default() -> Options {
        Options { steps: 100_000_000, timing: Timing::Plain, threads: 1 }
    }
}

impl Default for ShaderState {
    /// Waves of 64 fibers with nothing bound.
    fn default() -> ShaderState {
        ShaderState {
            wave_size: 64,
            constants: Vec::new(),
            immediate_constants: Vec::new(),
            bindless: Vec::new(),
            tables: BindfulTables::default(),
            borders: 0,
            bank: None,
            window: [0; 2],
            cubic: None,
            sample_places: [[8; 2]; 4],
            private: PrivateMemory::default(),
        }
    }
}

impl Default for Dispatch {
    /// One workgroup of 64 fibers.
    fn default() -> Dispatch {
        Dispatch {
            state: ShaderState::default(),
            entry: 0,
            groups: [1; 3],
            local_size: [64, 1, 1],
            local_memory: 0,
            local_id: None,
            group_id: None,
        }
    }
}
