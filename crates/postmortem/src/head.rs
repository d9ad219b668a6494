//! The head of a report as data: which GPU hung, under which driver, in whose process.
//!
//! Never: sentences, and nothing that the dump does not say.

use crate::report::LevelPosition;
use std::borrow::Cow;
use unwedge_base::{ChipId, Generation};
use unwedge_hw::amd::{GcVersion, Gfx, GfxTarget};
use unwedge_hw::intel::platform::Version;

/// Which GPU it is, as far as the dump tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuIdentity {
    /// The dump does not tell.
    #[default]
    Unknown,
    /// A GPU of Qualcomm.
    Adreno {
        /// The number that the kernel derives from the chip id; 0 where it has none.
        gpu_id: u32,
        /// The chip id.
        chip: ChipId,
        /// The name of the device in the tables: `FD740`.
        device: Option<String>,
        /// Its generation, if the tables have the GPU.
        generation: Option<Generation>,
    },
    /// A GPU of AMD.
    Amd {
        /// The name of the device: as the driver has it, or what a chip with its PCI ids is sold as.
        name: Option<String>,
        /// The code name of its chip: `Van Gogh`.
        chip: Option<String>,
        /// What compilers generate code for: gfx1033. `None` for chips that the table does not have.
        target: Option<GfxTarget>,
        /// Its generation.
        gfx: Option<Gfx>,
        /// The version of its graphics core.
        gc: Option<GcVersion>,
        /// Its PCI device id.
        device_id: Option<u32>,
        /// The generation follows from registers that several generations have.
        by_registers: bool,
    },
    /// A GPU of Intel.
    Intel {
        /// The platform.
        platform: Option<&'static str>,
        /// The version of its graphics block.
        version: Option<Version>,
    },
}

impl GpuIdentity {
    /// A level of a command stream as this vendor calls it: `ring`, `IB1`, `IB2`, `SDS`; of Intel `batch1`, `batch2`.
    pub fn level_name(&self, level: u8) -> Cow<'static, str> {
        match (level, self) {
            (1.., GpuIdentity::Intel { .. }) => Cow::Owned(format!("batch{level}")),
            (3, GpuIdentity::Amd { .. }) => Cow::Borrowed("IB3"),
            _ => LevelPosition::name_of(level),
        }
    }

    /// The vendor that signatures name: `adreno`, `amd`, `intel`, `unknown`.
    pub fn vendor(&self) -> &'static str {
        match self {
            GpuIdentity::Unknown => "unknown",
            GpuIdentity::Adreno { .. } => "adreno",
            GpuIdentity::Amd { .. } => "amd",
            GpuIdentity::Intel { .. } => "intel",
        }
    }

    /// The family that signatures name: `a6xx`, `gfx10`, `Kaby Lake`.
    pub fn family(&self) -> Option<String> {
        match self {
            GpuIdentity::Unknown => None,
            GpuIdentity::Adreno { generation, .. } => Some(generation.as_ref()?.name().to_owned()),
            GpuIdentity::Amd { gfx, .. } => Some(gfx.as_ref()?.to_string()),
            GpuIdentity::Intel { platform: Some(platform), .. } => Some((*platform).to_owned()),
            GpuIdentity::Intel { platform: None, version } => Some(version.as_ref()?.to_string()),
        }
    }
}

/// Who made the dump, and what ran there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverIdentity {
    /// The driver or tool: `msm`, `amdgpu`, `i915`, `xe`, `RADV`, `umr`.
    pub name: Option<String>,
    /// The release of the Linux kernel.
    pub linux: Option<String>,
    /// The release of Mesa.
    pub mesa: Option<String>,
}

/// The process whose work hung.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Its name; it may hold anything.
    pub name: Option<String>,
    /// Its command line.
    pub command_line: Option<String>,
    /// Its number.
    pub pid: Option<i64>,
}

/// A text that says something.
pub(crate) fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
