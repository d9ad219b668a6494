//! Names of GPUs as people write them.

use unwedge_base::{ChipId, Generation};
use unwedge_hw::{Db, Device, Space};
use unwedge_intel::platform::{Driver, Platform, Version};

/// A GPU, or a whole generation.
#[derive(Debug)]
pub struct Chip {
    /// Its generation.
    pub generation: Generation,
    /// The device's name, when the table has it.
    pub name: Option<String>,
    /// Where its CP control registers are.
    pub control: Space,
}

impl Chip {
    /// `a630`, `a6xx`, `FD630`, `adreno 630`, `630`, `6.3.0.2`, `0x6030002`.
    pub fn parse(text: &str) -> Option<Chip> {
        // Only the built-in database has devices.
        let table = Db::builtin();
        let text = text.trim().to_ascii_lowercase();
        if let Some(chip_id) = chip_id(&text) {
            return match table.device(0, chip_id) {
                Some(device) => Some(Chip::device(device)),
                None => unwedge_postmortem::adreno::generation(&table, 0, chip_id).map(Chip::generation),
            };
        }
        if let Some(device) = table.devices().find(|d| d.name().eq_ignore_ascii_case(&text)) {
            return Some(Chip::device(device));
        }
        let number =
            ["adreno", "fd", "a"].iter().find_map(|p| text.strip_prefix(p)).unwrap_or(&text).trim_start();
        if let Some(generation) = number.strip_suffix("xx") {
            return Generation::from_number(generation.parse().ok()?).map(Chip::generation);
        }
        let gpu_id: u32 = number.parse().ok()?;
        match table.device(gpu_id, ChipId(0)) {
            Some(device) => Some(Chip::device(device)),
            None => unwedge_postmortem::adreno::generation(&table, gpu_id, ChipId(0)).map(Chip::generation),
        }
    }

    fn device(device: Device<'_>) -> Chip {
        let control = if device.has_gen3_control() { Space::CpControlGen3 } else { Space::CpControl };
        Chip { generation: device.generation(), name: Some(device.name().to_owned()), control }
    }

    fn generation(generation: Generation) -> Chip {
        Chip { generation, name: None, control: Space::CpControl }
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

/// A platform of Intel's as people write it, `tgl`, `0x9a49`, `8086:9a49` or `12.70`: the version of its graphics, and the
/// driver that is usual for it.
pub fn intel_platform(text: &str) -> Option<(Version, Driver)> {
    let digits = text.strip_prefix("8086:").unwrap_or(text);
    let prefixed = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let id = u16::from_str_radix(prefixed.unwrap_or(digits), 16).ok();
    let by_id = || {
        let id = id.filter(|_| prefixed.is_some() || digits.len() == 4)?;
        Platform::by_pci_id(id)
    };
    if let Some(platform) = Platform::by_name(text).or_else(by_id) {
        let driver = platform.drivers().first().copied().unwrap_or(Driver::I915);
        return Some((platform.version(), driver));
    }
    let version =
        text.strip_prefix("gen").unwrap_or(text).parse::<Version>().ok().filter(|_| prefixed.is_none());
    let known = version.filter(|v| *v >= Version::new(8, 0));
    known.map(|v| (v, if v.major >= 20 { Driver::Xe } else { Driver::I915 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_gpu() {
        for text in ["a630", "A630", "FD630", "adreno630", "Adreno 630", "630", "6.3.0.2", "0x06030002"] {
            let chip = Chip::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(chip.generation, Generation::A6xx, "{text}");
            assert_eq!(chip.name.as_deref(), Some("FD630"), "{text}");
        }
        for (text, generation) in
            [("a2xx", Generation::A2xx), ("a799", Generation::A7xx), ("A5XX", Generation::A5xx)]
        {
            let chip = Chip::parse(text).unwrap();
            assert_eq!((chip.generation, chip.name.is_none()), (generation, true), "{text}");
        }
        for text in ["", "a", "a9xx", "mali", "1.2.3", "0x"] {
            assert!(Chip::parse(text).is_none(), "{text}");
        }
    }
}
