//! The GPU that somebody says a dump is of, where the dump itself does not say, or says one that no table has.
//!
//! Never: parsing the name; the caller that takes it from a person does that.

use crate::amd::{Gfx, GfxTarget};
use crate::intel::platform::{Platform, Version};
use unwedge_base::ChipId;

/// A GPU that a dump is taken to be of.
#[derive(Clone, Debug)]
pub struct ChipOverride {
    /// As it was named: `a7xx`.
    pub name: String,
    /// Which it is.
    pub gpu: OverrideGpu,
}

/// A GPU of any vendor.
#[derive(Clone, Debug)]
pub enum OverrideGpu {
    /// An Adreno, by numbers that identify it: of a whole generation the number of one that no table has.
    Adreno {
        /// 630; 0 for those only a chip id identifies.
        gpu_id: u32,
        /// The chip id.
        chip_id: ChipId,
    },
    /// A GPU of AMD.
    Amd {
        /// Its generation.
        gfx: Gfx,
        /// The code name of its chip, if it is one.
        code_name: Option<String>,
        /// What compilers generate code for, if it is one.
        target: Option<GfxTarget>,
    },
    /// A GPU of Intel.
    Intel {
        /// Its platform, if it is one.
        platform: Option<&'static Platform>,
        /// The version of its graphics.
        version: Version,
    },
}

impl ChipOverride {
    /// The numbers of an Adreno.
    pub fn adreno(&self) -> Option<(u32, ChipId)> {
        match self.gpu {
            OverrideGpu::Adreno { gpu_id, chip_id } => Some((gpu_id, chip_id)),
            OverrideGpu::Amd { .. } | OverrideGpu::Intel { .. } => None,
        }
    }

    /// The generation of a GPU of AMD.
    pub fn gfx(&self) -> Option<Gfx> {
        match self.gpu {
            OverrideGpu::Amd { gfx, .. } => Some(gfx),
            OverrideGpu::Adreno { .. } | OverrideGpu::Intel { .. } => None,
        }
    }

    /// The vendor, as people call its GPUs.
    pub fn vendor(&self) -> &'static str {
        match self.gpu {
            OverrideGpu::Adreno { .. } => "Adreno",
            OverrideGpu::Amd { .. } => "AMD",
            OverrideGpu::Intel { .. } => "Intel",
        }
    }
}
