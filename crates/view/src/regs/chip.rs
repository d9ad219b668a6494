//! Names of Intel's GPUs as people write them; of those of Adrenos `hw` knows.

use unwedge_hw::intel::platform::{IntelDriver, Platform, Version};

/// A platform of Intel's as people write it, `tgl`, `0x9a49`, `8086:9a49` or `12.70`: the version of its graphics, and the
/// driver that is usual for it.
pub fn intel_platform(text: &str) -> Option<(Version, IntelDriver)> {
    let digits = text.strip_prefix("8086:").unwrap_or(text);
    let prefixed = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let id = u16::from_str_radix(prefixed.unwrap_or(digits), 16).ok();
    let by_id = || {
        let id = id.filter(|_| prefixed.is_some() || digits.len() == 4)?;
        Platform::by_pci_id(id)
    };
    if let Some(platform) = Platform::by_name(text).or_else(by_id) {
        let driver = platform.drivers().first().copied().unwrap_or(IntelDriver::I915);
        return Some((platform.version(), driver));
    }
    let version =
        text.strip_prefix("gen").unwrap_or(text).parse::<Version>().ok().filter(|_| prefixed.is_none());
    let known = version.filter(|v| *v >= Version::new(8, 0));
    known.map(|v| (v, if v.major >= 20 { IntelDriver::Xe } else { IntelDriver::I915 }))
}
