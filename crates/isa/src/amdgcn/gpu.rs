//! Which GPU code is for: its generation and what it has beyond it.
//!
//! Facts: the processors and features LLVM 19 knows.

use super::model::{COLUMNS, Columns, GENS, Gen, Need, REAL_TRUE16};
use unwedge_hw::amd::Gfx;

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
}

/// A GPU, and the mode its code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpu {
    name: &'static str,
    generation: Gen,
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
        "no feature `{0}`; known are +wavefrontsize32, +wavefrontsize64, +real-true16 and +xnack, and the same with -"
    )]
    Feature(String),
}

/// LLVM's name, names of chips, generation, features.
type GpuRow = (&'static str, &'static [&'static str], Gen, u16);

const RDNA_DOT: u16 = Features::DOT;

const KNOWN: &[GpuRow] = &[
    ("gfx600", &["tahiti"], Gen::Gfx6, Features::WAVE64),
    ("gfx601", &["pitcairn", "verde"], Gen::Gfx6, Features::WAVE64),
    ("gfx602", &["hainan", "oland"], Gen::Gfx6, Features::WAVE64),
    ("gfx700", &["kaveri", "spectre", "spooky"], Gen::Gfx7, Features::WAVE64),
    ("gfx701", &["hawaii"], Gen::Gfx7, Features::WAVE64),
    ("gfx702", &[], Gen::Gfx7, Features::WAVE64),
    ("gfx703", &["kabini", "mullins"], Gen::Gfx7, Features::WAVE64),
    ("gfx704", &["bonaire"], Gen::Gfx7, Features::WAVE64),
    ("gfx705", &[], Gen::Gfx7, Features::WAVE64),
    ("gfx801", &["carrizo"], Gen::Gfx8, Features::WAVE64 | Features::XNACK | Features::UNPACKED_D16),
    ("gfx802", &["tonga", "iceland"], Gen::Gfx8, Features::WAVE64 | Features::UNPACKED_D16),
    (
        "gfx803",
        &["fiji", "polaris10", "polaris11", "polaris12", "vegam"],
        Gen::Gfx8,
        Features::WAVE64 | Features::UNPACKED_D16,
    ),
    ("gfx805", &["tongapro"], Gen::Gfx8, Features::WAVE64 | Features::UNPACKED_D16),
    ("gfx810", &["stoney"], Gen::Gfx8, Features::WAVE64 | Features::XNACK),
    ("gfx900", &["vega10"], Gen::Gfx9, Features::WAVE64),
    ("gfx902", &["raven"], Gen::Gfx9, Features::WAVE64 | Features::XNACK),
    ("gfx904", &["vega12"], Gen::Gfx9, Features::WAVE64),
    ("gfx906", &["vega20"], Gen::Gfx906, Features::WAVE64),
    ("gfx909", &["raven2"], Gen::Gfx9, Features::WAVE64 | Features::XNACK),
    ("gfx90c", &["renoir"], Gen::Gfx9, Features::WAVE64 | Features::XNACK),
    ("gfx1010", &["navi10"], Gen::Gfx10, 0),
    ("gfx1011", &["navi12"], Gen::Gfx10, RDNA_DOT),
    ("gfx1012", &["navi14"], Gen::Gfx10, RDNA_DOT),
    ("gfx1013", &["bc250"], Gen::Gfx10, Features::BVH),
    ("gfx1030", &["navi21"], Gen::Gfx10_3, 0),
    ("gfx1031", &["navi22"], Gen::Gfx10_3, 0),
    ("gfx1032", &["navi23"], Gen::Gfx10_3, 0),
    ("gfx1033", &["vangogh"], Gen::Gfx10_3, 0),
    ("gfx1034", &["navi24"], Gen::Gfx10_3, 0),
    ("gfx1035", &["rembrandt"], Gen::Gfx10_3, 0),
    ("gfx1036", &["raphael", "mendocino"], Gen::Gfx10_3, 0),
    ("gfx1100", &["navi31"], Gen::Gfx11, 0),
    ("gfx1101", &["navi32"], Gen::Gfx11, 0),
    ("gfx1102", &["navi33"], Gen::Gfx11, 0),
    ("gfx1103", &["phoenix"], Gen::Gfx11, 0),
    ("gfx1150", &["strix1"], Gen::Gfx11_5, 0),
    ("gfx1151", &["strix_halo"], Gen::Gfx11_5, 0),
    ("gfx1152", &["krackan1"], Gen::Gfx11_5, 0),
    ("gfx1200", &["navi44"], Gen::Gfx12, 0),
    ("gfx1201", &["navi48"], Gen::Gfx12, 0),
];

impl Gpu {
    /// The GPU of an LLVM name (`gfx1030`) or a chip's (`navi21`), in the mode LLVM assumes: wave32 from gfx10 on.
    ///
    /// # Errors
    ///
    /// [`GpuError::Name`] if neither LLVM nor the table of chips has the name.
    pub fn new(name: &str) -> Result<Gpu, GpuError> {
        KNOWN
            .iter()
            .find(|(llvm, chips, ..)| *llvm == name || chips.contains(&name))
            .map(|&(name, _, generation, features)| Gpu { name, generation, features: Features(features) })
            .ok_or_else(|| GpuError::Name(name.to_owned()))
    }

    /// The GPU of a version of the graphics core: 10, 3, 0 for gfx1030.
    pub fn from_version(major: u8, minor: u8, stepping: u8) -> Option<Gpu> {
        Gpu::new(&format!("gfx{major}{minor:x}{stepping:x}")).ok()
    }

    /// A GPU that reads code of a generation: the one with the most instructions and the fewest modes of its own. `None` for
    /// MI300, which changed instructions and has no table.
    pub fn from_gfx(gfx: Gfx) -> Option<Gpu> {
        let generation = match gfx {
            Gfx::Gfx940 => return None,
            Gfx::Gfx6 => Gen::Gfx6,
            Gfx::Gfx7 => Gen::Gfx7,
            Gfx::Gfx8 => Gen::Gfx8,
            Gfx::Gfx9 => Gen::Gfx906,
            Gfx::Gfx10 => Gen::Gfx10,
            Gfx::Gfx103 => Gen::Gfx10_3,
            Gfx::Gfx11 => Gen::Gfx11,
            Gfx::Gfx115 => Gen::Gfx11_5,
            Gfx::Gfx12 => Gen::Gfx12,
        };
        KNOWN
            .iter()
            .find(|(_, _, of, features)| *of == generation && features & Features::XNACK == 0)
            .map(|&(name, _, generation, features)| Gpu { name, generation, features: Features(features) })
    }

    /// This GPU with waves of 64 lanes, or of 32 where its generation has them.
    #[must_use]
    pub fn with_wave64(self, wave64: bool) -> Gpu {
        let on = wave64 || self.generation < Gen::Gfx10;
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
                _ => return Err(GpuError::Feature(feature.to_owned())),
            };
            gpu.features.0 = if on { gpu.features.0 | bit } else { gpu.features.0 & !bit };
        }
        if gpu.generation < Gen::Gfx10 {
            gpu.features.0 |= Features::WAVE64;
        }
        Ok(gpu)
    }

    /// Names of all GPUs: LLVM's, with those of their chips.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        KNOWN.iter().map(|&(name, chips, ..)| (name, chips))
    }

    /// LLVM's name of it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its generation.
    pub fn generation(&self) -> Gen {
        self.generation
    }

    /// Whether waves have 64 lanes.
    pub fn wave64(&self) -> bool {
        self.has(Features::WAVE64)
    }

    /// Whether 16-bit operands name half registers (`v0.l`).
    pub fn real_true16(&self) -> bool {
        self.has(Features::REAL_TRUE16) && self.generation >= Gen::Gfx11
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
        self.generation != Gen::Gfx8 || matches!(self.name, "gfx801" | "gfx810")
    }

    /// How many scalar registers are addressed by number.
    pub fn sgprs(&self) -> u16 {
        match self.generation {
            Gen::Gfx6 | Gen::Gfx7 => 104,
            Gen::Gfx8 | Gen::Gfx9 | Gen::Gfx906 => 102,
            _ => 106,
        }
    }

    /// The column of the table.
    pub(crate) fn column(&self) -> usize {
        let column = self.generation as usize;
        let column = if self.real_true16() { column + REAL_TRUE16 } else { column };
        debug_assert!(column < COLUMNS && GENS + REAL_TRUE16 == COLUMNS);
        column
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::{codec, text};

    #[test]
    fn instructions_of_every_generation() {
        for gfx in Gfx::ALL.into_iter().filter(|gfx| *gfx != Gfx::Gfx940) {
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
        assert_eq!(Gpu::from_gfx(Gfx::Gfx940), None);
    }

    #[test]
    fn versions_name_gpus() {
        assert_eq!(Gpu::from_version(10, 3, 0), Gpu::new("gfx1030").ok());
        assert_eq!(Gpu::from_version(9, 0, 12), Gpu::new("gfx90c").ok());
        assert_eq!(Gpu::from_version(9, 4, 2), None);
    }
}
