//! Names of GPUs as people write them.

use unwedge_base::{ChipId, Generation};
use unwedge_hw::{Device, Space};

/// A GPU, or a whole generation.
#[derive(Debug)]
pub struct Chip {
    /// Its generation.
    pub generation: Generation,
    /// The device, when the table has it.
    pub device: Option<Device>,
}

impl Chip {
    /// `a630`, `a6xx`, `FD630`, `adreno 630`, `630`, `6.3.0.2`, `0x6030002`.
    pub fn parse(text: &str) -> Option<Chip> {
        let text = text.trim().to_ascii_lowercase();
        if let Some(chip_id) = chip_id(&text) {
            return Chip::of(0, chip_id);
        }
        if let Some(device) = Device::all().find(|d| d.name.eq_ignore_ascii_case(&text)) {
            return Some(Chip { generation: device.generation, device: Some(device) });
        }
        let number = ["adreno", "fd", "a"].iter().find_map(|p| text.strip_prefix(p)).unwrap_or(&text).trim_start();
        if let Some(generation) = number.strip_suffix("xx") {
            let generation = Generation::from_number(generation.parse().ok()?)?;
            return Some(Chip { generation, device: None });
        }
        let gpu_id: u32 = number.parse().ok()?;
        Chip::of(gpu_id, ChipId(0)).or_else(|| {
            // Not in the table, but the number tells the generation: 6 of 699.
            let generation = Generation::from_number(gpu_id / 100)?;
            Some(Chip { generation, device: None })
        })
    }

    fn of(gpu_id: u32, chip_id: ChipId) -> Option<Chip> {
        match Device::find(gpu_id, chip_id) {
            Some(device) => Some(Chip { generation: device.generation, device: Some(device) }),
            None => {
                let generation = Generation::from_number(chip_id.parts()[0].into())?;
                Some(Chip { generation, device: None })
            }
        }
    }

    /// Where its CP control registers are.
    pub fn control_space(&self) -> Space {
        match &self.device {
            Some(device) if device.a7xx_gen3() => Space::CpControlGen3,
            _ => Space::CpControl,
        }
    }
}

/// `6.3.0.2`, `0x6030002`.
fn chip_id(text: &str) -> Option<ChipId> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(ChipId);
    }
    let parts: Vec<u8> = text.split('.').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    let [core, major, minor, patch] = parts.try_into().ok()?;
    Some(ChipId::from_parts(core, major, minor, patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_gpu() {
        for text in ["a630", "A630", "FD630", "adreno630", "Adreno 630", "630", "6.3.0.2", "0x06030002"] {
            let chip = Chip::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(chip.generation, Generation::A6xx, "{text}");
            assert_eq!(chip.device.as_ref().map(|d| &*d.name), Some("FD630"), "{text}");
        }
        for (text, generation) in [("a2xx", Generation::A2xx), ("a799", Generation::A7xx), ("A5XX", Generation::A5xx)] {
            let chip = Chip::parse(text).unwrap();
            assert_eq!((chip.generation, chip.device.is_none()), (generation, true), "{text}");
        }
        for text in ["", "a", "a9xx", "mali", "1.2.3", "0x"] {
            assert!(Chip::parse(text).is_none(), "{text}");
        }
    }
}
