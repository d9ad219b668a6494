//! Typed buffers: which format an instruction means, and how many components.

use super::texel::{Halves, IDENTITY, Texel, selected};
use unwedge_isa::amdgcn::model::{Access, Format, Mod};
use unwedge_isa::amdgcn::texel::TexelFormat;
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst};

/// What a typed instruction says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Typed {
    components: u8,
    halves: Halves,
    status: bool,
    /// The format; `None`: the descriptor says it, and the order of components.
    code: Option<u32>,
}

impl Typed {
    /// `None`: the instruction is not typed.
    pub(super) fn new(inst: &Inst, gpu: &Gpu) -> Option<Typed> {
        let row = inst.row();
        let Some(Access::Typed(_, components)) = row.access else { return None };
        let halves = match (components.is_high(), components.is_d16()) {
            (true, _) => Halves::High,
            (_, true) if gpu.unpacked_d16() => Halves::Spread,
            (_, true) => Halves::Packed,
            _ => Halves::Whole,
        };
        let own = row.format == Format::Mtbuf;
        Some(Typed {
            components: components.count(),
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
        let format = format?;
        let ignores_sign = format.loads_unsigned_fourth(gpu);
        Some(Texel {
            format: if ignores_sign { format.with_unsigned_fourth() } else { format },
            select: if self.code.is_some() { IDENTITY } else { selected(word) },
            mask: (1 << self.components) - 1,
            halves: self.halves,
            status: self.status,
            zero_fill: Texel::zero_fill(generation),
        })
    }
}
