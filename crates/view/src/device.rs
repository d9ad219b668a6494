//! What is shown of the GPU that a dump of msm is of, and of the database that decodes a dump.
//!
//! Facts: the device table of `hw`.

use unwedge_base::Generation;
use unwedge_capture::Dump;
use unwedge_capture::msm::{Devcore, Revision};
use unwedge_hw::{Db, DbIdentity, Gpu};

/// The line at the end of text: which database decoded it.
pub fn database_line(identity: &DbIdentity) -> String {
    format!("register database: {identity}")
}

/// Which database names the registers of a dump; `adreno` is that for dumps of msm.
pub fn database(dump: &Dump<'_>, adreno: &Db) -> DbIdentity {
    match dump {
        Dump::Msm(_) => adreno.identity().clone(),
        Dump::I915(_) | Dump::Xe(_) => unwedge_hw::intel::identity(),
        Dump::Amdgpu(_) | Dump::Radv(_) | Dump::Umr(_) => Db::amd().identity().clone(),
    }
}

/// The name in the device table of the GPU a dump is of: `FD630`.
pub fn name(revision: Revision) -> Option<String> {
    // Every database has the built-in devices.
    Db::builtin().device(revision.gpu_id, revision.chip_id).map(|d| d.name().to_owned())
}

/// The generation of the GPU a dump is of.
pub fn generation(dump: &Devcore<'_>) -> Option<Generation> {
    let (gpu_id, chip_id) = dump.identity()?;
    Generation::of(gpu_id, chip_id)
}

/// The database as the GPU of a dump sees it.
pub fn gpu<'d>(dump: &Devcore<'_>, db: &'d Db) -> Option<Gpu<'d>> {
    generation(dump).map(|g| db.gpu(g))
}

/// `Adreno 630 (FD630, a6xx, 6.3.0.2)`
pub fn line(dump: &Devcore<'_>) -> Option<String> {
    let revision = dump.revision?;
    let number = if revision.gpu_id == 0 { String::new() } else { format!(" {}", revision.gpu_id) };
    let name = name(revision).map(|n| format!("{n}, ")).unwrap_or_default();
    let generation = generation(dump).map_or("unknown generation", Generation::name);
    Some(format!("Adreno{number} ({name}{generation}, {})", revision.chip_id))
}
