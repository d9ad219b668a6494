//! State that packets load for the shader stages: constants and bindful descriptors.
//!
//! Registers are not here. Never: what the state means; shaders and the blocks that read it know.

use unwedge_stream::adreno::payload::LoadStateHeader;
use unwedge_stream::adreno::{Stage, StateType};

/// Constants of a stage, in dwords: 512 of four components.
pub const CONSTANTS: usize = 2048;
/// Descriptors kept of each kind.
const DESCRIPTORS: usize = 256;

/// What one stage has loaded.
#[derive(Clone, Debug)]
pub struct StageState {
    /// The constant file; what no packet wrote is `None`.
    constants: Vec<Option<u32>>,
    /// Descriptors by dword; what no packet wrote is `None`.
    tables: [Vec<Option<u32>>; 4],
}

/// A table of bindful descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorTable {
    /// Two dwords each.
    Ubo,
    /// Four dwords each.
    Sampler,
    /// Sixteen dwords each.
    Texture,
    /// Sixteen dwords each.
    Image,
}

impl DescriptorTable {
    fn dwords(self) -> usize {
        match self {
            DescriptorTable::Ubo => 2,
            DescriptorTable::Sampler => 4,
            DescriptorTable::Texture | DescriptorTable::Image => 16,
        }
    }
}

impl Default for StageState {
    fn default() -> StageState {
        StageState { constants: vec![None; CONSTANTS], tables: Default::default() }
    }
}

impl StageState {
    /// The constant file: 2,048 dwords, `None` where nothing was loaded.
    pub fn constants(&self) -> &[Option<u32>] {
        &self.constants
    }

    /// A descriptor, if one was loaded.
    pub fn descriptor(&self, table: DescriptorTable, index: usize) -> Option<Vec<u32>> {
        let from = index.checked_mul(table.dwords())?;
        let words = self.table(table).get(from..from.checked_add(table.dwords())?)?;
        words.iter().copied().collect()
    }

    /// A table of descriptors as far as packets loaded it, by dword.
    pub fn table(&self, table: DescriptorTable) -> &[Option<u32>] {
        &self.tables[table as usize]
    }

    fn load_constants(&mut self, first: usize, words: &[u32]) {
        for (slot, &word) in self.constants.iter_mut().skip(first).zip(words) {
            *slot = Some(word);
        }
    }

    fn load_table(&mut self, table: DescriptorTable, first: usize, words: &[u32]) {
        let most = DESCRIPTORS * table.dwords();
        let from = first.saturating_mul(table.dwords()).min(most);
        let words = &words[..words.len().min(most - from)];
        let slots = &mut self.tables[table as usize];
        if slots.len() < from + words.len() {
            slots.resize(from + words.len(), None);
        }
        slots[from..].iter_mut().zip(words).for_each(|(slot, &word)| *slot = Some(word));
    }
}

/// What all stages have loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadedState {
    stages: [StageState; 6],
    /// Storage images that the stages of a draw share.
    graphics: StageState,
    /// Constants that the stages of a draw share, and those of compute (a6xx).
    shared: [StageState; 2],
}

impl LoadedState {
    /// What a stage has loaded.
    pub fn stage(&self, stage: Stage) -> &StageState {
        &self.stages[stage as usize]
    }

    /// Storage images of draws.
    pub fn graphics_images(&self) -> &StageState {
        &self.graphics
    }

    /// Constants that the stages share, of dispatches or of draws, by dword.
    pub fn shared_constants(&self, compute: bool) -> &[Option<u32>] {
        self.shared[usize::from(compute)].constants()
    }

    /// Sets constants of a stage, from a component on.
    pub(crate) fn set_constants(&mut self, stage: Stage, first: usize, words: &[u32]) {
        self.stages[stage as usize].load_constants(first, words);
    }

    /// HLSQ_INVALIDATE_CMD: descriptors that were loaded for some stages are gone. Those of bindless sets are never kept.
    pub(crate) fn invalidate(&mut self, bits: u32) {
        const COMPUTE_IMAGES: u32 = 6;
        const GRAPHICS_IMAGES: u32 = 7;
        const STAGES: [Stage; 6] = [
            Stage::Vertex,
            Stage::TessControl,
            Stage::TessEval,
            Stage::Geometry,
            Stage::Fragment,
            Stage::Compute,
        ];
        for (bit, stage) in STAGES.into_iter().enumerate() {
            if bits >> bit & 1 != 0 {
                let state = &mut self.stages[stage as usize];
                let tables = [DescriptorTable::Ubo, DescriptorTable::Sampler, DescriptorTable::Texture];
                tables.into_iter().for_each(|table| state.tables[table as usize].clear());
            }
        }
        let images = DescriptorTable::Image as usize;
        if bits >> COMPUTE_IMAGES & 1 != 0 {
            self.stages[Stage::Compute as usize].tables[images].clear();
        }
        if bits >> GRAPHICS_IMAGES & 1 != 0 {
            self.graphics.tables[images].clear();
        }
    }

    /// Takes what a CP_LOAD_STATE6 packet loads; false: state of a kind that is not known.
    pub(crate) fn load(&mut self, header: &LoadStateHeader, fragment_packet: bool, words: &[u32]) -> bool {
        let first = header.dst as usize;
        match (header.stage, header.ty) {
            (Some(stage), ty) => {
                let state = &mut self.stages[stage as usize];
                match ty {
                    StateType::Constants => state.load_constants(first * 4, words),
                    StateType::Ubo => state.load_table(DescriptorTable::Ubo, first, words),
                    StateType::Sampler => state.load_table(DescriptorTable::Sampler, first, words),
                    StateType::TexConst => state.load_table(DescriptorTable::Texture, first, words),
                    StateType::Ssbo0 => state.load_table(DescriptorTable::Image, first, words),
                    // Only fills the instruction cache.
                    StateType::Shader => {}
                    StateType::Ssbo1 | StateType::Ssbo2 | StateType::Unknown2 | StateType::Unknown => {
                        return false;
                    }
                }
            }
            (None, StateType::Ssbo0) => self.graphics.load_table(DescriptorTable::Image, first, words),
            // Constants of all stages, in dwords: types 1 and 2 of the block of storage images.
            (None, StateType::Ssbo1 | StateType::Ssbo2) => {
                self.shared[usize::from(fragment_packet)].load_constants(first, words);
            }
            (None, _) => return false,
        }
        true
    }
}
