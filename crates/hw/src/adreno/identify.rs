//! Which GPU is meant: by the numbers that a dump or a capture has, or by what a person types.

use crate::adreno::AdrenoDevice;
use crate::db::{Db, RegSpace};
use unwedge_base::{ChipId, Generation};

/// A GPU, or a whole generation.
#[derive(Clone, Copy, Debug)]
pub struct Adreno<'d> {
    /// Its generation.
    pub generation: Generation,
    /// Its row, when the device table has it.
    pub device: Option<AdrenoDevice<'d>>,
}

impl Db {
    /// The GPU with these ids, where 0 is none: by the device table, which a database made from a user's XML has too; of
    /// GPUs that are not in it, the generation by the numbers alone. `None` when that is not known either.
    pub fn identify(&self, gpu_id: u32, chip_id: ChipId) -> Option<Adreno<'_>> {
        match self.device(gpu_id, chip_id) {
            Some(device) => Some(Adreno { generation: device.generation(), device: Some(device) }),
            None => Generation::of(gpu_id, chip_id).map(Adreno::whole),
        }
    }

    /// The GPU that a person means: `a630`, `a6xx`, `FD630`, `adreno 630`, `630`, `x1-85`, `6.3.0.2`, `0x6030002`.
    pub fn identify_name(&self, text: &str) -> Option<Adreno<'_>> {
        let text = text.trim().to_ascii_lowercase();
        if let Some(chip_id) = chip_id(&text) {
            return self.identify(0, chip_id);
        }
        if let Some(device) = self.devices().find(|d| d.name().eq_ignore_ascii_case(&text)) {
            return Some(Adreno { generation: device.generation(), device: Some(device) });
        }
        let number = bare(&text);
        // The part of its name that tells a device from others: `630`, `740v3`, `a32`, `x1-85`.
        let named = |d: &AdrenoDevice<'_>| {
            let name = d.name().to_ascii_lowercase();
            bare(&name) == text || bare(&name) == number
        };
        if let Some(device) = self.devices().find(named) {
            return Some(Adreno { generation: device.generation(), device: Some(device) });
        }
        if let Some(generation) = number.strip_suffix("xx") {
            return Generation::from_number(generation.parse().ok()?).map(Adreno::whole);
        }
        self.identify(number.parse().ok()?, ChipId(0))
    }
}

impl<'d> Adreno<'d> {
    /// A generation, whichever GPU of it.
    fn whole(generation: Generation) -> Adreno<'d> {
        Adreno { generation, device: None }
    }

    /// The name of the device: `FD630`.
    pub fn name(self) -> Option<&'d str> {
        self.device.map(AdrenoDevice::name)
    }

    /// Where its CP's control registers are.
    pub fn control(self) -> RegSpace {
        match self.device {
            Some(device) if device.has_gen3_control() => RegSpace::CpControlGen3,
            _ => RegSpace::CpControl,
        }
    }
}

/// A name without what all of them begin with.
fn bare(name: &str) -> &str {
    ["adreno", "fd", "a"].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name).trim_start()
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
        let db = Db::builtin();
        for text in ["a630", "A630", "FD630", "adreno630", "Adreno 630", "630", "6.3.0.2", "0x06030002"] {
            let gpu = db.identify_name(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(gpu.generation, Generation::A6xx, "{text}");
            assert_eq!(gpu.name(), Some("FD630"), "{text}");
        }
        for (text, name) in [
            ("a750", "FD750"),
            ("730", "FD730"),
            ("adreno 735", "FD735"),
            ("a740", "FD740"),
            ("a740v3", "FD740v3"),
            ("a32", "FDA32"),
            ("x1-85", "Adreno X1-85"),
            ("a690", "FD690"),
        ] {
            assert_eq!(db.identify_name(text).and_then(Adreno::name), Some(name), "{text}");
        }
        for (text, generation) in [
            ("a2xx", Generation::A2xx),
            ("a799", Generation::A7xx),
            ("A5XX", Generation::A5xx),
            ("a702", Generation::A6xx),
            ("7.0.2.0", Generation::A6xx),
        ] {
            let gpu = db.identify_name(text).unwrap();
            assert_eq!((gpu.generation, gpu.name()), (generation, None), "{text}");
        }
        for text in ["", "a", "a9xx", "mali", "1.2.3", "0x"] {
            assert!(db.identify_name(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_numbers_alone_tell_what_the_device_table_tells() {
        let db = Db::builtin();
        for device in db.devices() {
            let gpu_id = device.gpu_id().unwrap_or(0);
            let by_numbers = Generation::of(gpu_id, device.chip_id());
            assert_eq!(by_numbers, Some(device.generation()), "{}", device.name());
            let gpu = db.identify(gpu_id, device.chip_id()).unwrap();
            assert_eq!((gpu.generation, gpu.name().is_some()), (device.generation(), true));
        }
    }
}
