//! Typed buffers: which format an instruction means, and how many components.

use super::texel::{Halves, IDENTITY, Texel, selected};
use unwedge_isa::amdgcn::model::Mod;
use unwedge_isa::amdgcn::texel::TexelFormat;
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst};

/// What a typed instruction says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Typed {
    pub(super) load: bool,
    components: u8,
    halves: Halves,
    status: bool,
    /// The format; `None`: the descriptor says it, and the order of components.
    code: Option<u32>,
}

impl Typed {
    /// `None`: the instruction is not typed.
    pub(super) fn new(inst: &Inst, gpu: &Gpu) -> Option<Typed> {
        let name = inst.row().name;
        let rest = name.strip_prefix('t').unwrap_or(name).strip_prefix("buffer_")?;
        let (load, rest) = match rest.strip_prefix("load_") {
            Some(rest) => (true, rest.strip_prefix("lds_").unwrap_or(rest)),
            None => (false, rest.strip_prefix("store_")?),
        };
        let rest = rest.strip_prefix("format_")?;
        let (letters, halves) = match (rest.strip_prefix("d16_hi_"), rest.strip_prefix("d16_")) {
            (Some(letters), _) => (letters, Halves::High),
            (_, Some(letters)) if gpu.unpacked_d16() => (letters, Halves::Spread),
            (_, Some(letters)) => (letters, Halves::Packed),
            _ => (rest, Halves::Whole),
        };
        let own = name.starts_with('t');
        Some(Typed {
            load,
            components: letters.len().min(4) as u8,
            halves,
            status: inst.mods.has(Mod::Tfe),
            code: own.then(|| inst.mods.get(Mod::Format) as u32 & 127),
        })
    }

    /// The texel with a descriptor of these words; `None`: there is no such format.
    pub(super) fn texel(&self, words: [u32; 4], gpu: &Gpu) -> Option<Texel> {
        let generation = gpu.generation();
        let word = words[3];
        let code = self.code.unwrap_or(match generation {
            Gfx::Gfx10 | Gfx::Gfx10_3 => word >> 12 & 127,
            _ if generation >= Gfx::Gfx11 => word >> 12 & 63,
            _ => word >> 15 & 15 | (word >> 12 & 7) << 4,
        });
        // A descriptor of zeros has no bytes that its format could matter to.
        let format =
            if words == [0; 4] { TexelFormat::of_name("32_UINT") } else { TexelFormat::buffer(code, gpu) };
        Some(Texel {
            format: format?,
            select: if self.code.is_some() { IDENTITY } else { selected(word) },
            mask: (1 << self.components) - 1,
            halves: self.halves,
            status: self.status,
            zero_fill: Texel::zero_fill(generation),
        })
    }
}
