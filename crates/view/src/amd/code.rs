//! Instructions of AMD GPUs for reports: what [`Disassembler`] asks for, over the tables of `isa`, and [`Checker`], over `check`.

use super::Content;
use crate::asm::check::registers;
use std::borrow::Cow;
use unwedge_capture::amdgpu::umr::Wave;
use unwedge_check::amdgcn::{Finding, Level, Options, Rule, check};
use unwedge_hw::Db;
use unwedge_hw::amd::Gfx;
use unwedge_isa::amdgcn::{Gpu, codec, text};
use unwedge_postmortem::amd::{Checker, CodeFault, Disassembler, wave_code};

/// What to show words of code with.
#[derive(Clone, Copy)]
pub(super) struct Words<'w> {
    pub(super) gfx: Option<Gfx>,
    pub(super) facts: &'w Db,
    pub(super) code: &'w Code,
}

impl Words<'_> {
    /// Texts of the words that umr read around a wave, where umr itself has none.
    pub(super) fn texts<'t>(self, wave: &'t Wave<'_>) -> Vec<Cow<'t, str>> {
        let said = wave.code.iter().map(|word| Cow::Borrowed(&*word.text));
        if wave.code.iter().any(|word| !word.text.is_empty()) {
            return said.collect();
        }
        let found = wave_code(wave, self.gfx, self.facts, self.code);
        found.into_iter().map(|text| text.map_or(Cow::Borrowed(""), Cow::Owned)).collect()
    }
}

/// Disassembles for the GPU of a report, or one of its generation where it is not named.
pub(super) struct Code {
    exact: Option<Gpu>,
}

impl Code {
    pub(super) fn of(content: &Content<'_>) -> Code {
        let named = content.gpu().unwrap_or_default().to_ascii_lowercase();
        let words = named.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        Code { exact: words.filter_map(|word| Gpu::new(word).ok()).next() }
    }

    fn gpu(&self, gfx: Gfx, wave64: bool) -> Option<Gpu> {
        // MI300 changed instructions; the tables do not have it.
        let name = match gfx {
            Gfx::Gfx940 => return None,
            Gfx::Gfx6 => "gfx600",
            Gfx::Gfx7 => "gfx700",
            Gfx::Gfx8 => "gfx803",
            Gfx::Gfx9 => "gfx906",
            Gfx::Gfx10 => "gfx1010",
            Gfx::Gfx103 => "gfx1030",
            Gfx::Gfx11 => "gfx1100",
            Gfx::Gfx115 => "gfx1150",
            Gfx::Gfx12 => "gfx1200",
        };
        let gpu = self.exact.or_else(|| Gpu::new(name).ok())?;
        let mode = if wave64 { "+wavefrontsize64" } else { "-wavefrontsize64" };
        gpu.with_features(mode).ok()
    }
}

impl Disassembler for Code {
    fn instruction(&self, gfx: Gfx, wave64: bool, words: &[u32]) -> Option<(String, usize)> {
        let gpu = self.gpu(gfx, wave64)?;
        let found = codec::decode_executed(words, &gpu)?;
        let mut out = String::new();
        text::write(&found.inst, &gpu, &mut out);
        Some((out, usize::from(found.dwords)))
    }
}

impl Checker for Code {
    fn faults(&self, gfx: Gfx, wave64: bool, words: &[u32], whole: bool) -> Vec<CodeFault> {
        let Some(gpu) = self.gpu(gfx, wave64) else { return Vec::new() };
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let shape = [
            Rule::NotInstruction,
            Rule::IntoMiddle,
            Rule::Outside,
            Rule::RunsOff,
            Rule::NoEnd,
            Rule::DeallocVgprsNop,
        ];
        let wrong = |f: &&Finding| f.level == Level::Error && (whole || !shape.contains(&f.rule));
        let told = |f: &Finding| {
            let info = f.rule.info();
            let what = match (f.need, f.regs) {
                (Some(need), Some(regs)) => {
                    format!("uses {} without {}({})", registers(regs), need.counter, need.value)
                }
                (Some(need), None) => format!("goes on without {}({})", need.counter, need.value),
                _ => format!("is wrong: {}", info.then),
            };
            let first = f.first.map(u64::from);
            CodeFault { at: f.at.into(), first, rule: info.name, what, cure: info.cure }
        };
        check(&bytes, &gpu, &Options::default()).findings.iter().filter(wrong).map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_every_generation() {
        let code = Code { exact: None };
        for gfx in Gfx::ALL.into_iter().filter(|gfx| *gfx != Gfx::Gfx940) {
            let end = if gfx >= Gfx::Gfx11 { 0xbfb0_0000 } else { 0xbf81_0000 };
            assert_eq!(code.instruction(gfx, true, &[end, 1]), Some(("s_endpgm".to_owned(), 1)), "{gfx}");
            assert_eq!(code.instruction(gfx, true, &[]), None);
        }
        assert_eq!(code.instruction(Gfx::Gfx940, true, &[0xbf81_0000]), None);
    }
}
