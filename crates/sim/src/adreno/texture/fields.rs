//! Where the fields of descriptors are, from the register tables.

use std::sync::LazyLock;
use unwedge_base::Generation;
use unwedge_hw::{Db, Gpu};

/// A field of a descriptor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FieldPlace {
    dword: usize,
    low: u32,
    width: u32,
    shift: u32,
}

impl FieldPlace {
    /// Its value, shifted as its type says.
    pub(super) fn of(self, words: &[u32]) -> u64 {
        let word = u64::from(words.get(self.dword).copied().unwrap_or(0));
        (word >> self.low & ((1 << self.width.min(32)) - 1)) << self.shift
    }

    /// Puts a value in its place; what does not fit is cut.
    pub(super) fn set(self, words: &mut [u32], value: u64) {
        let mask = ((1u64 << self.width.min(32)) - 1) as u32;
        if let Some(word) = words.get_mut(self.dword) {
            *word = *word & !(mask << self.low) | ((value >> self.shift) as u32 & mask) << self.low;
        }
    }

    /// Its value, as a number of 32 bits.
    pub(super) fn get(self, words: &[u32]) -> u32 {
        self.of(words) as u32
    }

    pub(super) fn is_set(self, words: &[u32]) -> bool {
        self.of(words) != 0
    }

    /// A number with eight bits after the point.
    pub(super) fn unsigned_fixed(self, words: &[u32]) -> f32 {
        self.of(words) as f32 / 256.0
    }

    /// A number with sign and eight bits after the point.
    pub(super) fn signed_fixed(self, words: &[u32]) -> f32 {
        let unused = 32 - self.width.clamp(1, 32);
        ((self.get(words) << unused) as i32 >> unused) as f32 / 256.0
    }
}

/// Finds a field in a domain of the tables.
fn place(gpu: Gpu<'_>, domain: &str, dword: u32, name: &str) -> Option<FieldPlace> {
    let ty = gpu.domain(domain)?.iter().find(|reg| reg.offset() == dword)?.ty()?;
    let (_, field) = ty.fields().find(|(field, _)| *field == name)?;
    let (low, width, shift) = field.bit_place();
    Some(FieldPlace { dword: dword as usize, low, width, shift })
}

macro_rules! field_table {
    ($(#[$doc:meta])* $table:ident, $domain:literal, $($field:ident: $dword:literal $name:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default)]
        pub(super) struct $table {
            $(pub(super) $field: FieldPlace,)+
        }

        impl $table {
            fn of(gpu: Gpu<'_>) -> Option<$table> {
                Some($table { $($field: place(gpu, $domain, $dword, $name)?,)+ })
            }
        }
    };
}

field_table! {
    /// Fields of `A6XX_TEX_CONST`: textures and storage images.
    TextureFields, "A6XX_TEX_CONST",
    tile_mode: 0 "TILE_MODE", srgb: 0 "SRGB", swizzle_x: 0 "SWIZ_X", swizzle_y: 0 "SWIZ_Y",
    swizzle_z: 0 "SWIZ_Z", swizzle_w: 0 "SWIZ_W", levels: 0 "MIPLVLS", samples: 0 "SAMPLES",
    format: 0 "FMT", swap: 0 "SWAP", width: 1 "WIDTH", height: 1 "HEIGHT", is_mutable: 1 "MUTABLEEN",
    start_offset: 2 "STARTOFFSETTEXELS", pitch_align: 2 "PITCHALIGN", pitch: 2 "PITCH", kind: 2 "TYPE",
    array_pitch: 3 "ARRAY_PITCH", least_layer: 3 "MIN_LAYERSZ", tile_all: 3 "TILE_ALL", flag: 3 "FLAG",
    base_low: 4 "BASE_LO", base_high: 5 "BASE_HI", depth: 5 "DEPTH", least_lod: 6 "MIN_LOD_CLAMP",
    chroma_x: 0 "CHROMA_MIDPOINT_X", chroma_y: 0 "CHROMA_MIDPOINT_Y", plane_pitch: 6 "PLANE_PITCH",
    flag_low: 7 "FLAG_LO", flag_high: 8 "FLAG_HI", flag_array_pitch: 9 "FLAG_BUFFER_ARRAY_PITCH",
    flag_pitch: 10 "FLAG_BUFFER_PITCH", flag_log_height: 10 "FLAG_BUFFER_LOGH",
}

field_table! {
    /// Fields of `A6XX_TEX_SAMP`.
    SamplerFields, "A6XX_TEX_SAMP",
    mip_linear: 0 "MIPFILTER_LINEAR_NEAR", magnify: 0 "XY_MAG", minify: 0 "XY_MIN", wrap_s: 0 "WRAP_S",
    wrap_t: 0 "WRAP_T", wrap_r: 0 "WRAP_R", anisotropy: 0 "ANISO", bias: 0 "LOD_BIAS",
    compare: 1 "COMPARE_FUNC", seamless_off: 1 "CUBEMAPSEAMLESSFILTOFF", unnormalized: 1 "UNNORM_COORDS",
    most_lod: 1 "MAX_LOD", least_lod: 1 "MIN_LOD", reduction: 2 "REDUCTION_MODE", border: 2 "BCOLOR",
    chroma_linear: 2 "CHROMA_LINEAR",
}

/// The fields of descriptors, and what else the tables say of them.
#[derive(Debug, Default)]
pub(super) struct DescriptorTables {
    pub(super) texture: TextureFields,
    pub(super) sampler: SamplerFields,
    /// Formats with planes of Y and CbCr, and of Y, Cb and Cr.
    pub(super) two_planes: u32,
    pub(super) three_planes: u32,
    /// Formats of video decoders, but for the planes of luma that can be images of their own.
    video: Vec<u32>,
}

/// Resolved once: the tables are compiled in and do not change. a7xx adds fields to those of a6xx.
pub(super) static TABLES: LazyLock<DescriptorTables> = LazyLock::new(|| {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A7xx);
    let formats = gpu.enumeration("a6xx_format");
    let numbers = |wanted: &dyn Fn(&str) -> bool| -> Vec<u32> {
        let names = formats.iter().flat_map(|names| names.iter());
        names.filter(|(name, _)| wanted(name)).map(|(_, number)| number as u32).collect()
    };
    let planes = |name: &str| numbers(&|of| of == name).first().copied().unwrap_or(u32::MAX);
    DescriptorTables {
        texture: TextureFields::of(gpu).unwrap_or_default(),
        sampler: SamplerFields::of(gpu).unwrap_or_default(),
        two_planes: planes("FMT6_R8_G8B8_2PLANE_420_UNORM"),
        three_planes: planes("FMT6_R8_G8_B8_3PLANE_420_UNORM"),
        video: numbers(&|of| {
            let video = ["NV12", "NV21", "P010", "TP10"].iter().any(|family| of.contains(family));
            video && !of.ends_with("NV12_Y")
        }),
    }
});

impl DescriptorTables {
    pub(super) fn is_video(&self, format: u32) -> bool {
        self.video.contains(&format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_every_field() {
        let db = Db::builtin();
        let gpu = db.gpu(Generation::A7xx);
        assert!(TextureFields::of(gpu).is_some());
        assert!(SamplerFields::of(gpu).is_some());
        let tables = &*TABLES;
        assert_eq!(tables.texture.base_low.of(&[0, 0, 0, 0, 0xffff_ffff]), 0xffff_ffe0);
        assert_eq!(tables.texture.array_pitch.of(&[0, 0, 0, 3]), 0x3000);
        assert_eq!(tables.sampler.bias.signed_fixed(&[0xff00_0000]), -32.0 / 256.0);
        assert_eq!((tables.two_planes, tables.three_planes), (0x8e, 0x90));
        assert!(tables.is_video(0x8f) && !tables.is_video(0x94) && !tables.is_video(0x30));
        let mut words = [u32::MAX; 16];
        tables.texture.base_low.set(&mut words, 0x1234_5678);
        assert_eq!(words[4], 0x1234_567f, "the low bits are not its own");
        assert_eq!(tables.texture.base_low.of(&words), 0x1234_5660);
    }
}
