//! Names of GPUs as people write them, of any vendor.

use super::amd::amd_gpu;
use unwedge_base::{ChipId, Generation};
use unwedge_hw::amd::Gfx;
use unwedge_hw::intel::platform::{IntelDriver, Platform, Version};
use unwedge_hw::{ChipOverride, Db, OverrideGpu, near};

/// The GPU that `--chip` names: what `regs` takes.
///
/// # Errors
/// When no GPU has that name; the message names those that look like it.
pub fn chip_override(text: &str) -> Result<ChipOverride, String> {
    let devices = Db::builtin();
    let facts = Db::amd();
    let adreno = || {
        let chip = devices.identify_name(text)?;
        let (gpu_id, chip_id) = match chip.device {
            Some(device) => (device.gpu_id().unwrap_or(0), device.chip_id()),
            // The number of a GPU that no table has.
            None => (100 * chip.generation.number(), ChipId(0)),
        };
        Some(OverrideGpu::Adreno { gpu_id, chip_id })
    };
    let amd = || {
        let gpu = amd_gpu(text, &facts)?;
        Some(OverrideGpu::Amd { gfx: gpu.gfx, code_name: gpu.code_name, target: gpu.target })
    };
    let intel = || {
        let (version, _) = intel_platform(text)?;
        Some(OverrideGpu::Intel { platform: Platform::by_name(text), version })
    };
    match adreno().or_else(amd).or_else(intel) {
        Some(gpu) => Ok(ChipOverride { name: text.to_owned(), gpu }),
        None => Err(unknown_chip(text)),
    }
}

/// That no GPU has a name, and which look like it.
fn unknown_chip(text: &str) -> String {
    let (devices, facts) = (Db::builtin(), Db::amd());
    let mut names: Vec<String> =
        Generation::ALL.iter().map(|generation| generation.name().to_owned()).collect();
    names.extend(devices.devices().filter_map(|device| Some(format!("a{}", device.number_in_name()?))));
    names.extend(devices.devices().map(|device| device.name().to_ascii_lowercase()));
    names.extend(Gfx::ALL.iter().map(|gfx| gfx.name().to_owned()));
    for chip in facts.amd_chips() {
        names.push(chip.name().to_ascii_lowercase());
        names.extend(chip.target().map(|target| target.to_string()));
    }
    names.extend(Platform::all().iter().flat_map(Platform::names).map(|name| (*name).to_owned()));
    let near = near(names.iter().map(String::as_str), text);
    match &near[..] {
        [] => "not a known GPU: take a630, a7xx, 0x43050a01, gfx1030, navi21, 1002:73bf, tgl or 12.70"
            .to_owned(),
        near => format!("not a known GPU; near it: {}", near.join(", ")),
    }
}

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
