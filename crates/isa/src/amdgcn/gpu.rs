//! Which GPU code is for: its generation and what it has beyond it.
//!
//! Facts: `data/amd/amd.devices`, in which `unwedge_hw` looks chips up too; features are those of LLVM 19.

use super::Reg;
use super::model::{COLUMNS, Columns, GENS, Gfx, Need, REAL_TRUE16};
use unwedge_base::GfxTarget;

/// What a chip has, or a mode it is used in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Features(u16);

impl Features {
    const WAVE64: u16 = 1;
    const REAL_TRUE16: u16 = 2;
    const DOT: u16 = 4;
    const BVH: u16 = 8;
    const XNACK: u16 = 16;
    const UNPACKED_D16: u16 = 32;
    const LLVM23: u16 = 64;
}

/// A GPU, and the mode its code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpu {
    name: &'static str,
    version: [u8; 3],
    generation: Gfx,
    features: Features,
}

/// A GPU or feature that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// No GPU has this name.
    #[error(
        "no GPU of the name `{0}`; known are gfx600 to gfx1201 and names of chips such as tahiti and navi21"
    )]
    Name(String),
    /// No feature has this name.
    #[error(
        "no feature `{0}`; known are +wavefrontsize32, +wavefrontsize64, +real-true16, +xnack and +llvm23, and the same with -"
    )]
    Feature(String),
}

/// A GPU as LLVM counts them.
struct Processor {
    /// Numbers of the target: 9, 0, 10 of gfx90a.
    version: [u8; 3],
    /// LLVM's name.
    name: &'static str,
    /// Names of chips.
    chips: &'static [&'static str],
    generation: Gfx,
}

include!(concat!(env!("OUT_DIR"), "/amdgcn_gpus.rs"));

impl Processor {
    /// What it has in the mode LLVM assumes.
    fn features(&self) -> Features {
        let waves = if self.generation < Gfx::Gfx10 { Features::WAVE64 } else { 0 };
        let own = match self.version {
            [8, 0, 1] => Features::XNACK | Features::UNPACKED_D16,
            [8, 0, _] => Features::UNPACKED_D16,
            [8, 1, 0] | [9, 0, 2 | 9 | 12] => Features::XNACK,
            [10, 1, 1 | 2] => Features::DOT,
            [10, 1, 3] => Features::BVH,
            _ => 0,
        };
        Features(waves | own)
    }
}

impl Gpu {
    /// The GPU of an LLVM name (`gfx1030`) or a chip's (`navi21`), in the mode LLVM assumes: wave32 from gfx10 on.
    ///
    /// # Errors
    /// When no GPU has the name.
    pub fn new(name: &str) -> Result<Gpu, GpuError> {
        Gpu::find(|processor| processor.name == name || processor.chips.contains(&name))
            .ok_or_else(|| GpuError::Name(name.to_owned()))
    }

    /// The GPU of a target: gfx1030. A version of the graphics core is not one; `unwedge_hw` knows which target a chip has.
    pub fn from_target(target: GfxTarget) -> Option<Gpu> {
        Gpu::find(|processor| processor.version == [target.major, target.minor, target.stepping])
    }

    /// A GPU that reads code of a generation: the one with the most instructions and the fewest modes of its own.
    pub fn from_gfx(gfx: Gfx) -> Option<Gpu> {
        // Vega 20 has every instruction of Vega 10.
        let gfx = if gfx == Gfx::Gfx9 { Gfx::Gfx906 } else { gfx };
        let plain = |processor: &Processor| processor.features().0 & Features::XNACK == 0;
        Gpu::find(|processor| processor.generation == gfx && plain(processor))
    }

    /// The oldest GPU of which this is true.
    fn find(mut holds: impl FnMut(&Processor) -> bool) -> Option<Gpu> {
        let processor = GPUS.iter().find(|processor| holds(processor))?;
        let &Processor { name, version, generation, .. } = processor;
        Some(Gpu { name, version, generation, features: processor.features() })
    }

    /// This GPU with waves of 64 lanes, or of 32 where its generation has them.
    #[must_use]
    pub fn with_wave64(self, wave64: bool) -> Gpu {
        let on = wave64 || self.generation < Gfx::Gfx10;
        let others = self.features.0 & !Features::WAVE64;
        Gpu { features: Features(if on { others | Features::WAVE64 } else { others }), ..self }
    }

    /// This GPU with features in the form of LLVM's `-mattr`: `+wavefrontsize64,+real-true16`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Feature`] for the first feature that has no meaning here.
    pub fn with_features(self, features: &str) -> Result<Gpu, GpuError> {
        let mut gpu = self;
        for feature in features.split(',').map(str::trim).filter(|feature| !feature.is_empty()) {
            let (on, name) = match feature.as_bytes().first() {
                Some(b'-') => (false, feature.get(1..).unwrap_or_default()),
                Some(b'+') => (true, feature.get(1..).unwrap_or_default()),
                _ => (true, feature),
            };
            let (bit, on) = match name {
                "wavefrontsize64" => (Features::WAVE64, on),
                "wavefrontsize32" => (Features::WAVE64, !on),
                "real-true16" => (Features::REAL_TRUE16, on),
                "xnack" => (Features::XNACK, on),
                // Half registers are its default.
                "llvm23" if on => (Features::LLVM23 | Features::REAL_TRUE16, on),
                "llvm23" => (Features::LLVM23, on),
                _ => return Err(GpuError::Feature(feature.to_owned())),
            };
            gpu.features.0 = if on { gpu.features.0 | bit } else { gpu.features.0 & !bit };
        }
        if gpu.generation < Gfx::Gfx10 {
            gpu.features.0 |= Features::WAVE64;
        }
        Ok(gpu)
    }

    /// Names of all GPUs: LLVM's, with those of their chips.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        GPUS.iter().map(|processor| (processor.name, processor.chips))
    }

    /// LLVM's name of it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The numbers of its target: 10, 3, 0 for gfx1030.
    pub fn version(&self) -> [u8; 3] {
        self.version
    }

    /// Its generation.
    pub fn generation(&self) -> Gfx {
        self.generation
    }

    /// Bytes of LDS that a workgroup can have.
    pub fn lds_bytes(&self) -> u32 {
        if self.generation == Gfx::Gfx6 { 1 << 15 } else { 1 << 16 }
    }

    /// Whether waves have 64 lanes.
    pub fn wave64(&self) -> bool {
        self.has(Features::WAVE64)
    }

    /// Lanes of a wave: 32 or 64.
    pub fn lanes(&self) -> u32 {
        if self.wave64() { 64 } else { 32 }
    }

    /// Whether 16-bit operands name half registers (`v0.l`).
    pub fn real_true16(&self) -> bool {
        self.has(Features::REAL_TRUE16) && self.generation >= Gfx::Gfx11
    }

    /// Whether text and words are those of LLVM 23, which names all half registers, and from gfx10 on writes the constant 0 into
    /// sources of VOP3 that an instruction does not have.
    pub fn llvm23(&self) -> bool {
        self.has(Features::LLVM23)
    }

    /// Whether half-width data of memory instructions takes a register each.
    pub fn unpacked_d16(&self) -> bool {
        self.has(Features::UNPACKED_D16)
    }

    /// Whether `xnack_mask` is there.
    pub fn xnack(&self) -> bool {
        self.has(Features::XNACK)
    }

    /// Whether instructions can name `xnack_mask`.
    pub(crate) fn has_xnack_mask(&self) -> bool {
        self.generation != Gfx::Gfx8 || matches!(self.version, [8, 0, 1] | [8, 1, 0])
    }

    /// Whether it has accumulation registers.
    pub fn has_agprs(&self) -> bool {
        (Gfx::Gfx908..=Gfx::Gfx950).contains(&self.generation)
    }

    /// Whether vector and accumulation registers are one file: either may be data of memory instructions and results of
    /// products of matrices, and several registers begin at an even number.
    pub fn has_unified_vgprs(&self) -> bool {
        self.generation.has_unified_vgprs()
    }

    /// Whether so many vector or accumulation registers from one on are there and may be named together.
    pub(crate) fn has_tuple(&self, first: Reg, count: u8) -> bool {
        let odd = count > 1 && first.index() % 2 == 1 && self.has_unified_vgprs();
        !odd && first.index() + u16::from(count) <= 256
    }

    /// How many scalar registers are addressed by number.
    pub fn sgprs(&self) -> u16 {
        match self.generation {
            Gfx::Gfx6 | Gfx::Gfx7 => 104,
            generation if generation < Gfx::Gfx10 => 102,
            _ => 106,
        }
    }

    /// The column of the table.
    pub(crate) fn column(&self) -> usize {
        let column = self.generation as usize;
        let column = match (self.real_true16(), self.llvm23()) {
            (false, _) => column,
            (true, false) => column + REAL_TRUE16,
            (true, true) => column + 2 * REAL_TRUE16,
        };
        debug_assert!(column < COLUMNS && GENS + 2 * REAL_TRUE16 == COLUMNS);
        column
    }

    /// The column that names all half registers; `None` if the GPU does not have one, or it is the GPU's own.
    pub(crate) fn halves_column(&self) -> Option<usize> {
        let column = self.generation as usize + 2 * REAL_TRUE16;
        (self.generation >= Gfx::Gfx11 && column != self.column()).then_some(column)
    }

    /// The columns of the table that are read: its own, and that of all half registers.
    pub(crate) fn all_columns(&self) -> Columns {
        self.columns() | self.halves_column().map_or(0, |column| 1 << column)
    }

    /// The column of the table, as a set of one.
    pub(crate) fn columns(&self) -> Columns {
        1 << self.column()
    }

    /// Whether it has what a row needs.
    pub(crate) fn meets(&self, need: Need) -> bool {
        match need {
            Need::Always => true,
            Need::Wave32 => !self.wave64(),
            Need::Wave64 => self.wave64(),
            Need::Dot => self.has(Features::DOT),
            Need::Bvh => self.has(Features::BVH),
        }
    }

    fn has(&self, feature: u16) -> bool {
        self.features.0 & feature != 0
    }
}

/// Wait states of `s_nop` with an immediate: 1 to 8 on gfx6 and gfx7, 1 to 16 later.
pub fn nop_states(immediate: i32, generation: Gfx) -> u8 {
    let mask = if generation < Gfx::Gfx8 { 7 } else { 15 };
    (immediate & mask) as u8 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::{codec, text};

    #[test]
    fn instructions_of_every_generation() {
        for gfx in Gfx::ALL {
            let gpu = Gpu::from_gfx(gfx).expect("a table").with_wave64(true);
            let end = if gfx >= Gfx::Gfx11 { 0xbfb0_0000 } else { 0xbf81_0000 };
            let decoded = codec::decode_executed(&[end, 1], &gpu).expect("s_endpgm");
            let mut out = String::new();
            text::write(&decoded.inst, &gpu, &mut out);
            assert_eq!((&*out, decoded.dwords), ("s_endpgm", 1), "{gfx}");
            assert!(codec::decode_executed(&[], &gpu).is_none());
            assert!(gpu.wave64());
            assert_eq!(gpu.with_wave64(false).wave64(), gfx < Gfx::Gfx10, "{gfx}");
        }
    }

    #[test]
    fn targets_name_gpus() {
        let of = |name| Gpu::from_target(GfxTarget::from_name(name).expect("a target"));
        assert_eq!(of("gfx1030"), Gpu::new("gfx1030").ok());
        assert_eq!(of("gfx90c"), Gpu::new("gfx90c").ok());
        assert_eq!(of("gfx942"), Gpu::new("gfx942").ok());
    }
}
