//! Which GPU a source is of: by versions, PCI ids and names in it, and what its code is for.
//!
//! Facts: the table of chips of `hw`. What only names a generation gives no target.

use super::umr::gfx_of_hub;
use crate::head::GpuIdentity;
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::radv::{RadvGfxLevel, RadvReport};
use unwedge_capture::umr::{UmrText, UmrWave};
use unwedge_hw::amd::{AmdChip, GcVersion, Gfx, GfxTarget, product};
use unwedge_hw::{ChipOverride, Db, OverrideGpu};
use unwedge_isa::amdgcn::Gpu;

/// The GPU of a kernel's dump. `db` is that of [`Db::amd`].
pub fn identity_of_dump(dump: &Devcoredump<'_>, db: &Db) -> GpuIdentity {
    let gc = dump.gc_version();
    let device_id = dump.soc.and_then(|soc| soc.device_id);
    let revision = dump.soc.and_then(|soc| soc.pci_revision);
    let chip = chip_of_dump(dump, db);
    GpuIdentity::Amd {
        name: device_id.zip(revision).and_then(|(id, revision)| product(id, revision)).map(str::to_owned),
        chip: chip.map(|chip| chip.code_name().to_owned()),
        target: chip.and_then(AmdChip::target).or_else(|| target_taken(dump.taken_as.as_ref())),
        gfx: gfx_of_dump(dump, db),
        gc,
        device_id,
        by_registers: false,
    }
}

/// The GPU of a report of RADV. `db` is that of [`Db::amd`].
pub fn identity_of_radv(report: &RadvReport<'_>, db: &Db) -> GpuIdentity {
    let chip = chip_of_radv(report, db);
    let name = report.gpu_entry("Device name").map(str::trim).filter(|name| !name.is_empty());
    GpuIdentity::Amd {
        name: name.map(str::to_owned),
        chip: chip.map(|chip| chip.code_name().to_owned()),
        target: chip.and_then(AmdChip::target).or_else(|| target_taken(report.taken_as.as_ref())),
        gfx: gfx_of_radv(report, db),
        gc: None,
        device_id: None,
        by_registers: false,
    }
}

/// The GPU of text of umr. `db` is that of [`Db::amd`].
pub fn identity_of_umr(text: &UmrText<'_>, db: &Db) -> GpuIdentity {
    let chip = chip_of_umr(text, db);
    GpuIdentity::Amd {
        name: None,
        chip: chip.map(|chip| chip.code_name().to_owned()),
        target: chip.and_then(AmdChip::target).or_else(|| target_taken(text.taken_as.as_ref())),
        gfx: gfx_of_umr(text, db),
        gc: None,
        device_id: None,
        by_registers: text.taken_as.is_none() && chip.is_none() && gfx_of_blocks(text).is_none(),
    }
}

/// The chip that a source is taken to be of; `Some(None)` where only its generation or target was named.
fn chip_taken<'d>(taken_as: Option<&ChipOverride>, db: &'d Db) -> Option<Option<AmdChip<'d>>> {
    match &taken_as?.gpu {
        OverrideGpu::Amd { code_name, .. } => {
            let name = code_name.as_deref();
            Some(name.and_then(|name| db.amd_chips().find(|chip| chip.code_name() == name)))
        }
        OverrideGpu::Adreno { .. } | OverrideGpu::Intel { .. } => None,
    }
}

/// The target that a source is taken to be of.
fn target_taken(taken_as: Option<&ChipOverride>) -> Option<GfxTarget> {
    match taken_as?.gpu {
        OverrideGpu::Amd { target, .. } => target,
        OverrideGpu::Adreno { .. } | OverrideGpu::Intel { .. } => None,
    }
}

/// The generation that a source is taken to be of.
fn gfx_taken(taken_as: Option<&ChipOverride>) -> Option<Gfx> {
    taken_as.and_then(ChipOverride::gfx)
}

fn chip_of_dump<'d>(dump: &Devcoredump<'_>, db: &'d Db) -> Option<AmdChip<'d>> {
    if let Some(chip) = chip_taken(dump.taken_as.as_ref(), db) {
        return chip;
    }
    match dump.gc_version() {
        Some(version) => db.amd_chip_by_gc(version),
        None => db.amd_chip_by_pci(dump.soc?.device_id?),
    }
}

/// The generation that a kernel's dump is of: without a version or a PCI id that says it, the oldest that the block's code in the
/// kernel is for.
pub fn gfx_of_dump(dump: &Devcoredump<'_>, db: &Db) -> Option<Gfx> {
    if let Some(gfx) = gfx_taken(dump.taken_as.as_ref()) {
        return Some(gfx);
    }
    if let Some(version) = dump.gc_version() {
        return version.generation();
    }
    let by_block = || dump.gfx_block_version().and_then(GcVersion::generation);
    chip_of_dump(dump, db).and_then(AmdChip::generation).or_else(by_block)
}

/// What the code in a kernel's dump is for; `None` where its instructions are not known.
pub fn code_of_dump(dump: &Devcoredump<'_>, db: &Db) -> Option<Gpu> {
    code_of(chip_of_dump(dump, db), dump.taken_as.as_ref(), gfx_of_dump(dump, db))
}

/// The code of a chip; of one that is not known, that of a GPU of its generation.
fn code_of(chip: Option<AmdChip<'_>>, taken_as: Option<&ChipOverride>, gfx: Option<Gfx>) -> Option<Gpu> {
    let generation = Gpu::from_gfx(gfx?)?;
    let target = chip.and_then(AmdChip::target).or_else(|| target_taken(taken_as));
    Some(target.and_then(Gpu::from_target).unwrap_or(generation))
}

fn chip_of_radv<'d>(report: &RadvReport<'_>, db: &'d Db) -> Option<AmdChip<'d>> {
    if let Some(chip) = chip_taken(report.taken_as.as_ref(), db) {
        return chip;
    }
    report.gpu_names().find_map(|name| db.amd_chip_named(name))
}

/// The generation that a report is of: by the chip's code name, or what Mesa calls its level.
pub fn gfx_of_radv(report: &RadvReport<'_>, db: &Db) -> Option<Gfx> {
    if let Some(gfx) = gfx_taken(report.taken_as.as_ref()) {
        return Some(gfx);
    }
    if let Some(gfx) = chip_of_radv(report, db).and_then(AmdChip::generation) {
        return Some(gfx);
    }
    // Mesa's numbers of its enum, the same since gfx10.
    const LEVELS: [Gfx; 8] =
        [Gfx::Gfx6, Gfx::Gfx7, Gfx::Gfx8, Gfx::Gfx9, Gfx::Gfx10, Gfx::Gfx10_3, Gfx::Gfx11, Gfx::Gfx11_5];
    match report.gfx_level()? {
        // A level is not a version: 9.4 is that of MI300.
        RadvGfxLevel::Version(9, 4) => Some(Gfx::Gfx940),
        RadvGfxLevel::Version(major, minor) => GcVersion { major, minor, revision: 0 }.generation(),
        RadvGfxLevel::Number(number) => LEVELS.get(number.checked_sub(8)?).copied(),
    }
}

/// What the code in a report of RADV is for: by the chip's code name, else a GPU of its generation.
pub fn code_of_radv(report: &RadvReport<'_>, db: &Db) -> Option<Gpu> {
    code_of(chip_of_radv(report, db), report.taken_as.as_ref(), gfx_of_radv(report, db))
}

fn chip_of_umr<'d>(text: &UmrText<'_>, db: &'d Db) -> Option<AmdChip<'d>> {
    if let Some(chip) = chip_taken(text.taken_as.as_ref(), db) {
        return chip;
    }
    let named = text.chip_names().find_map(|name| db.amd_chip_named(name));
    named.or_else(|| db.amd_chip_by_gc(text.gc_version()?))
}

/// The generation by the blocks that text of umr names.
fn gfx_of_blocks(text: &UmrText<'_>) -> Option<Gfx> {
    let by_core = text.gc_version().and_then(GcVersion::generation);
    by_core.or_else(|| gfx_of_hub(text.block_version("mmhub")?))
}

/// The generation that text of umr is of: that of the chip in the path of registers, or of the blocks there. Of waves alone it is
/// one that has the registers they have.
pub fn gfx_of_umr(text: &UmrText<'_>, db: &Db) -> Option<Gfx> {
    if let Some(gfx) = gfx_taken(text.taken_as.as_ref()) {
        return Some(gfx);
    }
    let by_chip = chip_of_umr(text, db).and_then(AmdChip::generation);
    by_chip.or_else(|| gfx_of_blocks(text)).or_else(|| text.waves.first().and_then(gfx_of_wave))
}

/// What the code in text of umr is for: by the chip in the path of registers, else a GPU of the generation.
pub fn code_of_umr(text: &UmrText<'_>, db: &Db) -> Option<Gpu> {
    code_of(chip_of_umr(text, db), text.taken_as.as_ref(), gfx_of_umr(text, db))
}

/// A generation whose waves have these registers: gfx12 split the status, gfx11 does not tell the instruction, gfx10 made
/// two of `HW_ID`, gfx9 lost the addresses of the trap handler.
fn gfx_of_wave(wave: &UmrWave<'_>) -> Option<Gfx> {
    let has = |name: &str| wave.register(name).is_some();
    Some(match (has("HW_ID1"), has("INST_DW0")) {
        _ if has("STATE_PRIV") => Gfx::Gfx12,
        (true, false) => Gfx::Gfx11,
        (true, true) => Gfx::Gfx10_3,
        (false, true) if has("TBA_LO") => Gfx::Gfx8,
        (false, true) if has("HW_ID") => Gfx::Gfx9,
        _ => return None,
    })
}
