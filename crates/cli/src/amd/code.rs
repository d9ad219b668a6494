//! Instructions of AMD GPUs for reports: what [`Disassembler`] asks for, over the tables of `isa`.

use super::Content;
use unwedge_hw::amd::Gfx;
use unwedge_isa::amdgcn::{Gpu, codec, text};
use unwedge_postmortem::amd::Disassembler;

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
        let found = codec::decode(words, &gpu)?;
        let mut out = String::new();
        text::write(&found.inst, &gpu, &mut out);
        Some((out, usize::from(found.dwords)))
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
