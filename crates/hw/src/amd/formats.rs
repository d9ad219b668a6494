//! Formats of typed buffers and images, as codes of instructions and descriptors.
//!
//! A format's name is that of its components, from the highest bits down, and that of what they are: `8_8_8_8` and
//! `UNORM`. Never: what a texel's bits mean as values.
//!
//! Facts: AMD's ISA manuals, the names LLVM 19 prints per generation, the formats of descriptors in AMD's ROCr and in
//! Mesa.

use super::Gfx;

/// Until gfx9 a format is a data format (four bits) and a number format (three).
pub const BUFFER_DATA: [&str; 16] = [
    "INVALID",
    "8",
    "16",
    "8_8",
    "32",
    "16_16",
    "10_11_11",
    "11_11_10",
    "10_10_10_2",
    "2_10_10_10",
    "8_8_8_8",
    "32_32",
    "16_16_16_16",
    "32_32_32",
    "32_32_32_32",
    "RESERVED_15",
];

/// Number formats.
const NUMBER: [&str; 8] = ["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT"];

/// What number format 6 was until gfx7.
const NUMBER_6: &str = "SNORM_OGL";

/// Formats of gfx10, by code.
const FORMATS_10: [&str; 78] = [
    "INVALID",
    "8_UNORM",
    "8_SNORM",
    "8_USCALED",
    "8_SSCALED",
    "8_UINT",
    "8_SINT",
    "16_UNORM",
    "16_SNORM",
    "16_USCALED",
    "16_SSCALED",
    "16_UINT",
    "16_SINT",
    "16_FLOAT",
    "8_8_UNORM",
    "8_8_SNORM",
    "8_8_USCALED",
    "8_8_SSCALED",
    "8_8_UINT",
    "8_8_SINT",
    "32_UINT",
    "32_SINT",
    "32_FLOAT",
    "16_16_UNORM",
    "16_16_SNORM",
    "16_16_USCALED",
    "16_16_SSCALED",
    "16_16_UINT",
    "16_16_SINT",
    "16_16_FLOAT",
    "10_11_11_UNORM",
    "10_11_11_SNORM",
    "10_11_11_USCALED",
    "10_11_11_SSCALED",
    "10_11_11_UINT",
    "10_11_11_SINT",
    "10_11_11_FLOAT",
    "11_11_10_UNORM",
    "11_11_10_SNORM",
    "11_11_10_USCALED",
    "11_11_10_SSCALED",
    "11_11_10_UINT",
    "11_11_10_SINT",
    "11_11_10_FLOAT",
    "10_10_10_2_UNORM",
    "10_10_10_2_SNORM",
    "10_10_10_2_USCALED",
    "10_10_10_2_SSCALED",
    "10_10_10_2_UINT",
    "10_10_10_2_SINT",
    "2_10_10_10_UNORM",
    "2_10_10_10_SNORM",
    "2_10_10_10_USCALED",
    "2_10_10_10_SSCALED",
    "2_10_10_10_UINT",
    "2_10_10_10_SINT",
    "8_8_8_8_UNORM",
    "8_8_8_8_SNORM",
    "8_8_8_8_USCALED",
    "8_8_8_8_SSCALED",
    "8_8_8_8_UINT",
    "8_8_8_8_SINT",
    "32_32_UINT",
    "32_32_SINT",
    "32_32_FLOAT",
    "16_16_16_16_UNORM",
    "16_16_16_16_SNORM",
    "16_16_16_16_USCALED",
    "16_16_16_16_SSCALED",
    "16_16_16_16_UINT",
    "16_16_16_16_SINT",
    "16_16_16_16_FLOAT",
    "32_32_32_UINT",
    "32_32_32_SINT",
    "32_32_32_FLOAT",
    "32_32_32_32_UINT",
    "32_32_32_32_SINT",
    "32_32_32_32_FLOAT",
];

/// Formats of gfx10 that later GPUs do not have: all but the floats of `10_11_11` and `11_11_10`, the scaled ones of
/// `10_10_10_2`.
const GONE: [std::ops::Range<usize>; 3] = [30..36, 37..43, 46..48];

/// Formats from gfx11 on, by code: those that are left.
const FORMATS_11: [&str; 64] = {
    let mut formats = [""; 64];
    let (mut at, mut gone, mut count) = (0, 0, 0);
    while at < FORMATS_10.len() {
        if gone < GONE.len() && at == GONE[gone].start {
            at = GONE[gone].end;
            gone += 1;
        } else {
            formats[count] = FORMATS_10[at];
            count += 1;
            at += 1;
        }
    }
    assert!(count == formats.len());
    formats
};

/// The name of a number format of buffers until gfx9.
pub fn buffer_number(code: u32, generation: Gfx) -> &'static str {
    if code == 6 && generation <= Gfx::Gfx7 {
        NUMBER_6
    } else {
        NUMBER.get(code as usize).copied().unwrap_or_default()
    }
}

/// Names of the unified formats of buffers, by code; until gfx9 there are none.
pub fn unified_buffer(generation: Gfx) -> Option<&'static [&'static str]> {
    match generation {
        gfx if gfx < Gfx::Gfx10 => None,
        Gfx::Gfx10 | Gfx::Gfx10_3 => Some(&FORMATS_10),
        _ => Some(&FORMATS_11),
    }
}

/// The names of a buffer's format: of its components and of what they are. The code is unified from gfx10 on; before it,
/// the data format is in the low four bits and the number format above.
pub fn buffer(code: u32, generation: Gfx) -> Option<(&'static str, &'static str)> {
    match unified_buffer(generation) {
        Some(names) => names.get(code as usize)?.rsplit_once('_'),
        None => Some((BUFFER_DATA.get((code & 15) as usize)?, buffer_number(code >> 4, generation))),
    }
}

/// The code of the buffer format that has this number of components of one width. `None` if there is none.
pub fn of_components(count: u8, bits: u8, number: &str, generation: Gfx) -> Option<u32> {
    let codes = if unified_buffer(generation).is_some() { 256 } else { 128 };
    (0..codes).find(|code| {
        buffer(*code, generation).is_some_and(|(data, name)| {
            let widths = data.split('_').map(|width| width.parse() == Ok(bits));
            name.eq_ignore_ascii_case(number)
                && widths.clone().count() == usize::from(count)
                && widths.clone().all(|same| same)
        })
    })
}

/// Selectors of a descriptor that give each component its own.
const OWN_COMPONENTS: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;

/// The last word of the descriptor of a buffer of words without a stride; `None` if the generation has no such format.
pub fn raw_buffer(generation: Gfx) -> Option<u32> {
    let code = of_components(1, 32, "float", generation)?;
    Some(match generation {
        Gfx::Gfx10 | Gfx::Gfx10_3 => OWN_COMPONENTS | code << 12 | 1 << 24 | 3 << 28,
        gfx if gfx >= Gfx::Gfx11 => OWN_COMPONENTS | code << 12 | 3 << 28,
        _ => OWN_COMPONENTS | (code >> 4) << 12 | (code & 15) << 15,
    })
}

/// Formats of images up to gfx9, beyond those of buffers: `IMG_DATA_FORMAT`.
const IMAGE_DATA: [(u32, &str); 6] =
    [(16, "5_6_5"), (17, "1_5_5_5"), (18, "5_5_5_1"), (19, "4_4_4_4"), (20, "8_24"), (21, "24_8")];
/// `IMG_DATA_FORMAT` of shared exponents.
const IMAGE_DATA_SHARED: u32 = 34;
/// `IMG_NUM_FORMAT` of sRGB up to gfx9.
const IMAGE_NUMBER_SRGB: u32 = 9;

/// Formats of images of gfx10, beyond those of buffers.
const IMAGE_10: [(u32, &str); 13] = [
    (128, "8_SRGB"),
    (129, "8_8_SRGB"),
    (130, "8_8_8_8_SRGB"),
    (132, "5_9_9_9_FLOAT"),
    (133, "5_6_5_UNORM"),
    (134, "1_5_5_5_UNORM"),
    (135, "5_5_5_1_UNORM"),
    (136, "4_4_4_4_UNORM"),
    (137, "4_4_UNORM"),
    (141, "8_24_UNORM"),
    (142, "8_24_UINT"),
    (143, "24_8_UNORM"),
    (144, "24_8_UINT"),
];

/// Formats of images from gfx11 on, beyond those of buffers. ROCr's header for gfx11 has the numbers of gfx10 instead.
const IMAGE_11: [(u32, &str); 13] = [
    (64, "8_SRGB"),
    (65, "8_8_SRGB"),
    (66, "8_8_8_8_SRGB"),
    (67, "5_9_9_9_FLOAT"),
    (68, "5_6_5_UNORM"),
    (69, "1_5_5_5_UNORM"),
    (70, "5_5_5_1_UNORM"),
    (71, "4_4_4_4_UNORM"),
    (72, "4_4_UNORM"),
    (76, "8_24_UNORM"),
    (77, "8_24_UINT"),
    (78, "24_8_UNORM"),
    (79, "24_8_UINT"),
];

fn named(table: &[(u32, &'static str)], code: u32) -> Option<&'static str> {
    table.iter().find(|(have, _)| *have == code).map(|(_, name)| *name)
}

/// The names of an image's format, as [`buffer`] gives them. The code is unified from gfx10 on; before it, the data format
/// is in the low six bits and the number format above.
pub fn image(code: u32, generation: Gfx) -> Option<(&'static str, &'static str)> {
    let unified = match generation {
        Gfx::Gfx10 | Gfx::Gfx10_3 => Some(&IMAGE_10),
        generation if generation >= Gfx::Gfx11 => Some(&IMAGE_11),
        _ => None,
    };
    if let Some(table) = unified {
        return match named(table, code) {
            Some(name) => name.rsplit_once('_'),
            None => buffer(code, generation),
        };
    }
    let (data, number) = (code & 63, code >> 6);
    if data == IMAGE_DATA_SHARED {
        return Some(("5_9_9_9", "FLOAT"));
    }
    let srgb = number == IMAGE_NUMBER_SRGB;
    let number_name = if srgb { "SRGB" } else { buffer_number(number, generation) };
    match named(&IMAGE_DATA, data) {
        Some(name) => Some((name, number_name)),
        None if data < 16 && (number < 8 || srgb) => Some((BUFFER_DATA[data as usize], number_name)),
        None => None,
    }
}
