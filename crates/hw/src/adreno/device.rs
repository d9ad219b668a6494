//! The device table: which GPUs exist and what sets them apart.

use crate::db::Db;
use crate::layout::{device, header};
use crate::model::DeviceRow;
use unwedge_base::{ChipId, Generation};

/// A GPU of the device table.
#[derive(Clone, Copy, Debug)]
pub struct AdrenoDevice<'d> {
    db: &'d Db,
    at: u32,
}

impl Db {
    /// Every device; where several would match a chip, the first counts.
    pub fn devices(&self) -> impl Iterator<Item = AdrenoDevice<'_>> {
        let list = self.word(header::DEVICES);
        (0..self.word(header::DEVICE_COUNT))
            .map(move |i| AdrenoDevice { db: self, at: list + i * device::SIZE })
    }

    /// The device with this id. GPU ids decide where both sides have one (0 is none); otherwise the chip id does, where
    /// the table's patch 0xff and speed bin 0xffff stand for any.
    pub fn device(&self, gpu_id: u32, chip_id: ChipId) -> Option<AdrenoDevice<'_>> {
        self.devices().find(|d| d.matches(gpu_id, chip_id))
    }
}

impl<'d> AdrenoDevice<'d> {
    fn word(self, slot: u32) -> u32 {
        self.db.word(self.at + slot)
    }

    /// `FD630`.
    pub fn name(self) -> &'d str {
        self.db.string(self.word(device::NAME))
    }

    /// 630; `None` for those only a chip id identifies.
    pub fn gpu_id(self) -> Option<u32> {
        Some(self.word(device::GPU_ID)).filter(|&id| id != 0)
    }

    /// The number in its name, also of those that only a chip id identifies: 750 of `FD750`.
    pub fn number_in_name(self) -> Option<u32> {
        self.name().strip_prefix("FD")?.parse().ok()
    }

    /// Its chip id; 0xff as patch and 0xffff as speed bin stand for any.
    pub fn chip_id(self) -> ChipId {
        ChipId(u64::from(self.word(device::CHIP_LOW)) | (u64::from(self.word(device::CHIP_HIGH)) << 32))
    }

    /// Its generation.
    pub fn generation(self) -> Generation {
        Generation::from_number(self.word(device::GENERATION)).unwrap_or(Generation::A6xx)
    }

    pub(crate) fn row(self) -> DeviceRow {
        DeviceRow {
            name: self.name().to_string(),
            gpu_id: self.word(device::GPU_ID),
            chip_id: self.chip_id().0,
            generation: self.word(device::GENERATION),
            properties: self.properties().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        }
    }

    fn matches(self, gpu_id: u32, chip_id: ChipId) -> bool {
        const ANY_PATCH: u64 = 0xff;
        const ANY_BIN: u64 = 0xffff_0000_0000;
        let own = self.chip_id().0;
        match self.gpu_id() {
            Some(id) if gpu_id != 0 => id == gpu_id,
            None if gpu_id != 0 && chip_id.0 == 0 => self.number_in_name() == Some(gpu_id),
            _ if chip_id.0 == 0 => false,
            _ => {
                own == chip_id.0
                    || (own & ANY_PATCH == ANY_PATCH && (own ^ chip_id.0) & 0xffff_ff00 == 0)
                    || (own & ANY_BIN == ANY_BIN && own == chip_id.0 | ANY_BIN)
            }
        }
    }

    /// Its CP's control registers are those of [`crate::RegSpace::CpControlGen3`] (a750).
    pub fn has_gen3_control(self) -> bool {
        self.chip_id().0 & 0xffff_ff00 == 0x4305_1400
    }

    /// A property by Mesa's name for it, as text: `num_ccu`, `a6xx.has_lrz_feedback` …
    pub fn property(self, name: &str) -> Option<&'d str> {
        self.properties().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Every property that the table states.
    pub fn properties(self) -> impl Iterator<Item = (&'d str, &'d str)> {
        let list = self.word(device::PROPERTIES);
        (0..self.word(device::PROPERTY_COUNT)).map(move |i| {
            let at = list + i * 2;
            (self.db.string(self.db.word(at)), self.db.string(self.db.word(at + 1)))
        })
    }

    /// A property that is a number.
    pub fn number(self, name: &str) -> Option<i64> {
        self.property(name)?.parse().ok()
    }

    /// A property that is `yes`.
    pub fn flag(self, name: &str) -> bool {
        self.property(name) == Some("yes")
    }

    /// Width and height that tiles (bins) are multiples of, in pixels.
    pub fn tile_align(self) -> Option<(u32, u32)> {
        self.pair("tile_align_w", "tile_align_h")
    }

    /// Largest tile (bin), in pixels; no limit reads as `u32::MAX`.
    pub fn tile_max(self) -> Option<(u32, u32)> {
        self.pair("tile_max_w", "tile_max_h")
    }

    /// Width and height that a buffer in GMEM is aligned to, in pixels.
    pub fn gmem_align(self) -> Option<(u32, u32)> {
        self.pair("gmem_align_w", "gmem_align_h")
    }

    fn pair(self, width: &str, height: &str) -> Option<(u32, u32)> {
        let side = |name| self.number(name).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        Some((side(width)?, side(height)?))
    }

    /// Visibility stream pipes.
    pub fn vsc_pipes(self) -> Option<u32> {
        self.count("num_vsc_pipes")
    }

    /// Shader processors.
    pub fn sp_cores(self) -> Option<u32> {
        self.count("num_sp_cores")
    }

    /// Colour cache units (a6xx on).
    pub fn ccus(self) -> Option<u32> {
        self.count("num_ccu")
    }

    /// Highest address bit that takes part in bank swizzling.
    pub fn highest_bank_bit(self) -> Option<u32> {
        self.count("highest_bank_bit")
    }

    /// Levels of UBWC bank swizzling in use, one bit each.
    pub fn ubwc_swizzle(self) -> Option<u32> {
        self.count("ubwc_swizzle")
    }

    /// Macrotile mode: 0 for 4 channels, 1 for 8.
    pub fn macrotile_mode(self) -> Option<u32> {
        self.count("macrotile_mode")
    }

    fn count(self, name: &str) -> Option<u32> {
        u32::try_from(self.number(name)?).ok()
    }
}
