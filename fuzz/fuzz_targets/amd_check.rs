//! Machine code of AMD GPUs that is any bytes: the first three say which GPU, options and entry. `cargo fuzz run amd_check`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_check::amdgcn::{CheckOptions, EntryPreset, ProgramEntry, check};
use unwedge_isa::amdgcn::Gpu;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[gpu, flags, entry], code)) = bytes.split_first_chunk() else { return };
    let names: Vec<&str> = Gpu::names().map(|(name, _)| name).collect();
    let gpu = Gpu::new(names[usize::from(gpu) % names.len()]).expect("it is in the table");
    let lanes = if flags & 1 != 0 { "+wavefrontsize64" } else { "-wavefrontsize64" };
    let gpu = gpu.with_features(lanes).unwrap_or(gpu);
    let preset = (flags & 2 != 0).then(|| EntryPreset { sgprs: u16::from(flags >> 4), vgprs: 1 });
    let entries =
        [0, 4 * u32::from(entry)].map(|at| ProgramEntry { at, preset, called: flags & 16 != 0 }).to_vec();
    let (continues, exports) = (flags & 4 != 0, flags & 8 != 0);
    let options = CheckOptions { entries, continues, exports, relocated: vec![8 * u32::from(entry)] };
    let report = check(code, &gpu, &options);
    assert!(report.instructions <= code.len() / 4);
});
