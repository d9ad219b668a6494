//! Texts of the instruction words that umr read around waves, where umr itself has none.

use super::registers::RegisterReader;
use std::borrow::Cow;
use unwedge_capture::radv::RadvReport;
use unwedge_capture::umr::{UmrText, UmrWave};
use unwedge_hw::Db;
use unwedge_hw::amd::{Amd, Gfx};
use unwedge_isa::amdgcn::Gpu;
use unwedge_postmortem::amd::{code_of_radv, code_of_umr, gfx_of_radv, gfx_of_umr, wave_code};

/// What the code of waves is shown with.
#[derive(Clone, Copy)]
pub(super) struct WaveDisassembly<'w> {
    pub(super) gfx: Option<Gfx>,
    gpu: Option<Gpu>,
    pub(super) facts: &'w Db,
}

impl<'w> WaveDisassembly<'w> {
    /// Of a report of RADV.
    pub(super) fn of_radv(report: &RadvReport<'_>, facts: &'w Db) -> WaveDisassembly<'w> {
        WaveDisassembly { gfx: gfx_of_radv(report, facts), gpu: code_of_radv(report, facts), facts }
    }

    /// Of text of umr.
    pub(super) fn of_umr(text: &UmrText<'_>, facts: &'w Db) -> WaveDisassembly<'w> {
        WaveDisassembly { gfx: gfx_of_umr(text, facts), gpu: code_of_umr(text, facts), facts }
    }

    /// The facts of its generation.
    pub(super) fn amd(self) -> Option<Amd<'w>> {
        self.gfx.map(|gfx| self.facts.amd_gpu(gfx))
    }

    /// What reads registers.
    pub(super) fn registers(self) -> RegisterReader<'w> {
        RegisterReader::new(self.gfx, self.facts)
    }

    /// The text of each word, empty where there is none.
    pub(super) fn texts<'t>(self, wave: &'t UmrWave<'_>) -> Vec<Cow<'t, str>> {
        if wave.code.iter().any(|word| !word.text.is_empty()) {
            return wave.code.iter().map(|word| Cow::Borrowed(&*word.text)).collect();
        }
        let texts = wave_code(wave, self.gfx, self.facts, self.gpu);
        texts.into_iter().map(|text| text.map_or(Cow::Borrowed(""), Cow::Owned)).collect()
    }
}
