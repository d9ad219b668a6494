//! What of a GPU decides how images are laid out.

use super::LayoutError;
use crate::adreno::Adreno;
use crate::adreno::format::UbwcClasses;
use unwedge_base::Generation;

/// What of a GPU decides how images are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageGpu {
    /// a5xx, a6xx or a7xx.
    pub generation: Generation,
    /// How tiles are spread over banks of memory, where it is known.
    pub bank: Option<BankConfig>,
    /// Narrow levels of images with UBWC are linear.
    pub linear_mip_fallback: bool,
    /// UBWC of formats with one byte a texel.
    pub eight_bit_ubwc: bool,
    /// The format Z24_UINT_S8_UINT exists.
    pub z24_uint_s8_uint: bool,
    /// Which formats compress alike.
    pub ubwc_classes: UbwcClasses,
}

/// How tiles are spread over banks of memory. The kernel knows it of the memory that is built in, and tells it to drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankConfig {
    /// The highest bit of an address that chooses a bank: 13 to 16.
    pub highest_bank_bit: u32,
    /// Levels of bank swizzling in use, one bit each.
    pub swizzle_levels: u32,
    /// How tiles are ordered in a macrotile.
    pub macrotile: MacrotileMode,
}

/// How tiles are ordered in a macrotile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacrotileMode {
    /// For four channels of memory.
    FourChannel,
    /// For eight channels of memory.
    EightChannel,
}

impl ImageGpu {
    /// That of a GPU, as the device table has it. The kernel may say otherwise of its banks: `MSM_PARAM_HIGHEST_BANK_BIT`,
    /// `MSM_PARAM_UBWC_SWIZZLE`, `MSM_PARAM_MACROTILE_MODE`.
    ///
    /// # Errors
    /// For generations whose layouts are not known, and where a whole generation is meant.
    pub fn of(gpu: Adreno<'_>) -> Result<ImageGpu, LayoutError> {
        let generation = gpu.generation;
        if !matches!(generation, Generation::A5xx | Generation::A6xx | Generation::A7xx) {
            return Err(LayoutError::Generation { generation });
        }
        let device = gpu.device.ok_or(LayoutError::WholeGeneration { generation })?;
        let bank = device.highest_bank_bit().zip(device.ubwc_swizzle()).zip(device.macrotile_mode());
        let classes = if device.flag("a7xx.ubwc_all_formats_compatible") {
            UbwcClasses::BySize
        } else if device.flag("a7xx.ubwc_unorm_snorm_int_compatible") {
            UbwcClasses::UnormSnormInt
        } else {
            UbwcClasses::Separate
        };
        Ok(ImageGpu {
            generation,
            bank: bank.map(|((highest_bank_bit, swizzle_levels), mode)| BankConfig {
                highest_bank_bit,
                swizzle_levels,
                macrotile: if mode == 0 { MacrotileMode::FourChannel } else { MacrotileMode::EightChannel },
            }),
            linear_mip_fallback: device.flag("a6xx.has_ubwc_linear_mipmap_fallback"),
            eight_bit_ubwc: device.flag("a6xx.has_8bpp_ubwc"),
            z24_uint_s8_uint: device.flag("a6xx.has_z24uint_s8uint"),
            ubwc_classes: classes,
        })
    }
}
