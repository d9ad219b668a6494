//! Which software stages run on which stage of the hardware, by generation and pipeline: `data/amd/stages.txt`.
//!
//! A merged stage runs two software stages one after the other, in lanes whose numbers the word [`MergedWaveInfo`] gives.

use std::fmt;
use std::sync::LazyLock;
use unwedge_isa::amdgcn::model::{GENS, generations};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::Stage;

const TABLE: &str = include_str!("../data/amd/stages.txt");

/// Declares the names that the table uses.
macro_rules! names {
    ($(#[$about:meta])+ $type:ident { $($(#[$doc:meta])+ $variant:ident $name:literal,)+ }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$doc])+ $variant,)+ }

        impl $type {
            /// All variants.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The name in the table.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }

            fn from_name(name: &str) -> Option<$type> {
                $type::ALL.iter().copied().find(|known| known.name() == name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names! {
    /// How a pipeline reaches the rasterizer.
    PipelineMode {
        /// Through the stages that gfx6 has.
        Legacy "legacy",
        /// Through primitive shaders (NGG), which export primitives.
        Ngg "ngg",
        /// It does not reach the rasterizer.
        Compute "compute",
    }
}

names! {
    /// Which stages a pipeline has besides vertex and fragment.
    #[derive(Default)]
    PipelineShape {
        /// No other stages.
        #[default]
        Plain "plain",
        /// Tessellation.
        Tess "tess",
        /// A geometry shader.
        Geometry "geometry",
        /// Tessellation and a geometry shader.
        Both "both",
    }
}

impl PipelineShape {
    /// The shape after adding the stage of a shader.
    pub fn with(self, stage: Stage) -> PipelineShape {
        use PipelineShape as P;
        match (stage, self) {
            (Stage::TessControl | Stage::TessEval, P::Plain) => P::Tess,
            (Stage::TessControl | Stage::TessEval, P::Geometry) => P::Both,
            (Stage::Geometry, P::Plain) => P::Geometry,
            (Stage::Geometry, P::Tess) => P::Both,
            (_, shape) => shape,
        }
    }
}

names! {
    /// A stage of the hardware.
    HardwareStage {
        /// Local shader.
        Ls "LS",
        /// Hull shader.
        Hs "HS",
        /// Export shader.
        Es "ES",
        /// Geometry shader.
        Gs "GS",
        /// The last before the rasterizer.
        Vs "VS",
        /// Local and hull shader in one.
        LsHs "LSHS",
        /// Export and geometry shader in one.
        EsGs "ESGS",
        /// Primitive shader.
        Ngg "NGG",
        /// Pixel shader.
        Ps "PS",
        /// Compute shader.
        Cs "CS",
    }
}

names! {
    /// Where outputs go.
    OutputMemory {
        /// Memory of the workgroup.
        Lds "lds",
        /// Memory.
        Vram "vram",
        /// Positions and parameters.
        Export "export",
        /// Attachments.
        Target "target",
        /// Nowhere.
        None "none",
    }
}

/// A program of the software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SoftwareStage {
    /// A stage of the API.
    Stage(Stage),
    /// The GS copy shader: it reads what a geometry shader left in memory, and exports it.
    Copy,
}

impl SoftwareStage {
    /// The stage of the API that it has code of.
    pub const fn stage(self) -> Stage {
        match self {
            SoftwareStage::Stage(stage) => stage,
            SoftwareStage::Copy => Stage::Geometry,
        }
    }

    /// The name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            SoftwareStage::Stage(stage) => stage.name(),
            SoftwareStage::Copy => "copy",
        }
    }

    fn from_name(name: &str) -> Option<SoftwareStage> {
        match name {
            "copy" => Some(SoftwareStage::Copy),
            _ => Stage::from_name(name).map(SoftwareStage::Stage),
        }
    }
}

impl HardwareStage {
    /// Whether two software stages may run in it one after the other, each in lanes of its own.
    pub const fn is_merged(self) -> bool {
        matches!(self, HardwareStage::LsHs | HardwareStage::EsGs | HardwareStage::Ngg)
    }
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageRow {
    /// Generations, a bit for each.
    generations: u64,
    /// How the pipeline reaches the rasterizer.
    pub mode: PipelineMode,
    /// Which stages it has.
    pub shape: PipelineShape,
    /// The stage of the hardware.
    pub hardware: HardwareStage,
    /// What runs there, in order.
    pub software: Vec<SoftwareStage>,
    /// Where outputs of the last one go; those of one before it go to LDS.
    pub to: OutputMemory,
    /// ACO's name.
    pub name: &'static str,
}

impl StageRow {
    /// Whether it holds for a generation.
    pub fn holds(&self, generation: Gfx) -> bool {
        self.generations >> (generation as u32) & 1 != 0
    }
}

fn row(line: &'static str) -> Option<StageRow> {
    let mut cells = line.split_whitespace();
    let mut cell = || cells.next();
    Some(StageRow {
        generations: u64::from(generations(cell()?)?) & ((1 << GENS) - 1),
        mode: PipelineMode::from_name(cell()?)?,
        shape: PipelineShape::from_name(cell()?)?,
        hardware: HardwareStage::from_name(cell()?)?,
        software: cell()?.split('+').map(SoftwareStage::from_name).collect::<Option<_>>()?,
        to: OutputMemory::from_name(cell()?)?,
        name: cell()?,
    })
}

/// All rows. A line that is not a row is left out; a test checks that there is none.
pub fn rows() -> impl Iterator<Item = &'static StageRow> {
    static ROWS: LazyLock<Vec<StageRow>> = LazyLock::new(|| lines().filter_map(row).collect());
    ROWS.iter()
}

fn lines() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The row of a software stage in a pipeline; `None` if the generation does not have the pipeline.
pub fn find(
    generation: Gfx,
    mode: PipelineMode,
    shape: PipelineShape,
    stage: SoftwareStage,
) -> Option<&'static StageRow> {
    let wanted = |row: &&StageRow| {
        row.mode == mode
            && row.holds(generation)
            && row.software.contains(&stage)
            && (mode == PipelineMode::Compute || row.shape == shape)
    };
    rows().find(wanted)
}

/// The word that tells a merged stage how many lanes each part has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergedWaveInfo;

impl MergedWaveInfo {
    /// First bit and width of the number of lanes of the first part.
    pub const FIRST: (u32, u32) = (0, 8);
    /// First bit and width of the number of lanes of the second part.
    pub const SECOND: (u32, u32) = (8, 8);
    /// The number of a wave with a geometry shader that does not export primitives, on gfx9 and later.
    pub const GEOMETRY_WAVE: (u32, u32) = (16, 8);
    /// The number of the wave in its workgroup.
    pub const WAVE: (u32, u32) = (24, 4);
}

/// Whether merged waves of LS and HS that have vertices but no patches get the vector registers of vertices from `v0` on, where other waves have those of patches: a bug of Vega 10
/// and Raven. Facts: Mesa's `ac_gpu_info.c`.
pub fn shifts_local_vectors(gpu: &Gpu) -> bool {
    matches!(gpu.version(), [9, 0, 0 | 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_row() {
        let broken: Vec<_> = lines().filter(|line| row(line).is_none()).collect();
        assert!(broken.is_empty(), "{broken:?}");
        assert!(rows().all(|row| Gfx::ALL.iter().any(|generation| row.holds(*generation))));
    }
}
