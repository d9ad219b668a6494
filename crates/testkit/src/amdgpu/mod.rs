//! What AMD GPU hangs leave: amdgpu devcoredumps, hang reports of RADV, text of umr.

mod devcore;
mod radv;
mod umr;

pub use devcore::{AmdgpuBuilder, AmdgpuEra, Gfx, NOP, Quirk, variety};
pub use radv::{RadvBuilder, ShaderSpec};
pub use umr::{WaveForm, WaveSpec, printed_forms, registers_text, ring_stream_text, ring_text, waves_text};

/// Every text above as one list: what it is, and its bytes. Folders are given as one text each.
pub fn texts() -> Vec<(String, Vec<u8>)> {
    let mut all = variety();
    for gfx in Gfx::ALL {
        let report = RadvBuilder::complete(gfx);
        all.push((format!("radv {gfx:?}"), report.text()));
        all.extend(report.members().into_iter().map(|(name, bytes)| (format!("{gfx:?} {name}"), bytes)));
        let waves = WaveSpec::some(gfx);
        for form in WaveForm::ALL {
            all.push((format!("waves {gfx:?} {form:?}"), waves_text(gfx, &waves, form).into_bytes()));
        }
    }
    let dwords: Vec<u32> = (0..64).collect();
    all.push(("ring".into(), ring_text("polaris11.gfx", 40, 8, &dwords).into_bytes()));
    all.push((
        "stream".into(),
        ring_stream_text(&[(0, 0x1800, &dwords), (3, 0x1_0000, &dwords)]).into_bytes(),
    ));
    let registers = [("mmGRBM_STATUS", 0xa000_3028, &[("GUI_ACTIVE", 31, 31), ("CP_BUSY", 29, 29)][..])];
    all.push(("registers".into(), registers_text("navi21.gfx1030", &registers).into_bytes()));
    all
}
