//! Texels of typed buffers and images: the bits of a texel as values of registers, and back.
//!
//! A [`TexelFormat`] is made of a format's name, which `hw::amd::formats` has for each code. Never: addresses, tiling,
//! filters. Facts: AMD's ISA manuals. Names list components from the highest bits down, so the last one is X.
//!
//! Loads are exact: the correctly rounded value of the quotient or of the curve. Stores round to nearest even and clamp to
//! what the format holds; of integers that do not fit, and of the rounding into small floats, no source says what
//! hardware does.

use super::semantics::soft::{self, Env};
use super::{Gfx, Gpu};
use unwedge_hw::amd::formats;

/// What the bits of a component mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberFormat {
    /// 0 to 1.
    Unorm,
    /// -1 to 1.
    Snorm,
    /// An unsigned integer as a float.
    Uscaled,
    /// A signed integer as a float.
    Sscaled,
    /// An unsigned integer.
    Uint,
    /// A signed integer.
    Sint,
    /// A float of that size; below 16 bits without a sign.
    Float,
    /// 0 to 1 on the curve of sRGB; the fourth component is linear.
    Srgb,
}

impl NumberFormat {
    fn of_name(name: &str) -> Option<NumberFormat> {
        Some(match name {
            "UNORM" => NumberFormat::Unorm,
            "SNORM" => NumberFormat::Snorm,
            "USCALED" => NumberFormat::Uscaled,
            "SSCALED" => NumberFormat::Sscaled,
            "UINT" => NumberFormat::Uint,
            "SINT" => NumberFormat::Sint,
            "FLOAT" => NumberFormat::Float,
            "SRGB" => NumberFormat::Srgb,
            _ => return None,
        })
    }

    /// The same without signs.
    const fn unsigned(self) -> NumberFormat {
        match self {
            NumberFormat::Snorm => NumberFormat::Unorm,
            NumberFormat::Sscaled => NumberFormat::Uscaled,
            NumberFormat::Sint => NumberFormat::Uint,
            number => number,
        }
    }

    /// Whether values are integers in registers; else they are floats.
    pub const fn is_integer(self) -> bool {
        matches!(self, NumberFormat::Uint | NumberFormat::Sint)
    }
}

/// A texel's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TexelFormat {
    /// Bits of X, Y, Z and W, from the lowest on; 0: the component is not there.
    bits: [u8; 4],
    /// Bytes of a texel.
    bytes: u8,
    number: NumberFormat,
    /// Three components share the exponent above them.
    shared: bool,
    /// The fourth component is loaded as an unsigned one.
    unsigned_fourth: bool,
}

/// The target of Stoney, the only GPU of gfx8 that has signs of components of two bits, and an LDS of 16 banks.
pub const STONEY: [u8; 3] = [8, 1, 0];

impl TexelFormat {
    /// Four floats of 32 bits.
    pub const FLOATS: TexelFormat = TexelFormat::words(NumberFormat::Float);
    /// Four unsigned integers of 32 bits.
    pub const INTEGERS: TexelFormat = TexelFormat::words(NumberFormat::Uint);
    /// Four signed integers of 32 bits.
    pub const SIGNED: TexelFormat = TexelFormat::words(NumberFormat::Sint);
    /// One float of 16 bits.
    pub const HALF: TexelFormat = TexelFormat {
        bits: [16, 0, 0, 0],
        bytes: 2,
        number: NumberFormat::Float,
        shared: false,
        unsigned_fourth: false,
    };

    const fn words(number: NumberFormat) -> TexelFormat {
        TexelFormat { bits: [32; 4], bytes: 16, number, shared: false, unsigned_fourth: false }
    }

    /// A format by its name: `8_8_8_8_UNORM`, `10_11_11_FLOAT`.
    pub fn of_name(name: &str) -> Option<TexelFormat> {
        let (data, number) = name.rsplit_once('_')?;
        TexelFormat::of_names(data, number)
    }

    fn of_names(data: &str, number: &str) -> Option<TexelFormat> {
        let number = NumberFormat::of_name(number)?;
        let shared = data == "5_9_9_9";
        let (mut bits, mut total, mut count) = ([0u8; 4], 0u32, 0);
        for part in data.rsplit('_') {
            let width: u8 = part.parse().ok()?;
            *bits.get_mut(count)? = width;
            total += u32::from(width);
            count += 1;
        }
        if shared {
            bits[3] = 0;
        }
        let least = bits.iter().copied().filter(|width| *width != 0).min()?;
        let wide = bits.iter().any(|width| *width > 32);
        // There are floats of 10, 11, 16 and 32 bits only.
        let odd = number == NumberFormat::Float && !shared && !matches!(least, 10 | 11 | 16 | 32);
        let there = total.is_multiple_of(8) && total <= 128 && !wide && !odd;
        there.then_some(TexelFormat {
            bits,
            bytes: (total / 8) as u8,
            number,
            shared,
            unsigned_fourth: false,
        })
    }

    /// The format that a typed buffer instruction or a buffer descriptor says: the unified code from gfx10 on, before it
    /// the data format in the low four bits and the number format above.
    pub fn buffer(code: u32, gpu: &Gpu) -> Option<TexelFormat> {
        let (data, number) = formats::buffer(code, gpu.generation())?;
        TexelFormat::of_names(data, number)
    }

    /// The format that an image descriptor says: the unified code from gfx10 on, before it the data format in the low six
    /// bits and the number format above.
    pub fn image(code: u32, gpu: &Gpu) -> Option<TexelFormat> {
        let (data, number) = formats::image(code, gpu.generation())?;
        TexelFormat::of_names(data, number)
    }

    /// Whether loads of buffers ignore the sign of the fourth component, which has two bits, as GPUs up to gfx8 do except Stoney.
    pub fn loads_unsigned_fourth(&self, gpu: &Gpu) -> bool {
        let signed = matches!(self.number, NumberFormat::Snorm | NumberFormat::Sscaled | NumberFormat::Sint);
        self.bits[3] == 2 && signed && gpu.generation() <= Gfx::Gfx8 && gpu.version() != STONEY
    }

    /// The format with the sign of the fourth component ignored by loads.
    #[must_use]
    pub const fn with_unsigned_fourth(self) -> TexelFormat {
        TexelFormat { unsigned_fourth: true, ..self }
    }

    /// Bytes of a texel: 1 to 16.
    pub const fn bytes(&self) -> u8 {
        self.bytes
    }

    /// What its components are.
    pub const fn number(&self) -> NumberFormat {
        self.number
    }

    /// Bits of X, Y, Z and W; 0 where there is no such component.
    pub const fn components(&self) -> [u8; 4] {
        self.bits
    }

    /// The value 1 as components have it in registers.
    pub const fn one(&self) -> u32 {
        if self.number.is_integer() { 1 } else { 0x3f80_0000 }
    }

    /// A texel, lowest dword first, as values of X, Y, Z and W. Components that are not there are 0, 0, 0, 1.
    pub fn load(&self, words: [u32; 4]) -> [u32; 4] {
        let all = words.iter().rev().fold(0u128, |all, word| all << 32 | u128::from(*word));
        if self.shared {
            let scale = 2f64.powi((all >> 27 & 31) as i32 - 24);
            let part = |n: u32| ((f64::from((all >> (9 * n)) as u32 & 511) * scale) as f32).to_bits();
            return [part(0), part(1), part(2), self.one()];
        }
        let mut values = [0, 0, 0, self.one()];
        let mut lsb = 0;
        for (at, place) in values.iter_mut().enumerate() {
            let width = u32::from(self.bits[at]);
            if width != 0 {
                let bits = (all >> lsb) as u32 & (u32::MAX >> (32 - width));
                let unsigned = at == 3 && self.unsigned_fourth;
                let number = if unsigned { self.number.unsigned() } else { self.number };
                *place = loaded(number, bits, width, at == 3);
                lsb += width;
            }
        }
        values
    }

    /// Values of X, Y, Z and W as a texel.
    pub fn store(&self, values: [u32; 4]) -> [u32; 4] {
        let mut all = 0u128;
        if self.shared {
            all = shared_exponent([values[0], values[1], values[2]]).into();
        } else {
            let mut lsb = 0;
            for (at, value) in values.into_iter().enumerate() {
                let width = u32::from(self.bits[at]);
                if width != 0 {
                    let bits = stored(self.number, value, width, at == 3);
                    all |= u128::from(bits & (u32::MAX >> (32 - width))) << lsb;
                    lsb += width;
                }
            }
        }
        [0, 32, 64, 96].map(|shift| (all >> shift) as u32)
    }
}

/// The value of a fraction from 0 to 1 on the curve of sRGB.
fn linear(curved: f64) -> f64 {
    if curved <= 0.04045 { curved / 12.92 } else { ((curved + 0.055) / 1.055).powf(2.4) }
}

/// The place on the curve of sRGB of a value from 0 to 1.
fn curved(linear: f64) -> f64 {
    if linear <= 0.003_130_8 { linear * 12.92 } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
}

fn sign_extended(bits: u32, width: u32) -> i32 {
    (bits << (32 - width)) as i32 >> (32 - width)
}

fn most(width: u32) -> f64 {
    ((1u64 << width) - 1) as f64
}

/// The format of a float of so many bits: those below 16 have five bits of exponent and no sign, which is added here.
fn small(width: u32) -> soft::SoftFormat {
    match width {
        32 => soft::F32,
        16 => soft::F16,
        _ => soft::SoftFormat { exponent: 5, fraction: width - 5 },
    }
}

fn loaded(number: NumberFormat, bits: u32, width: u32, fourth: bool) -> u32 {
    let signed = sign_extended(bits, width);
    let value = match number {
        NumberFormat::Uint => return bits,
        NumberFormat::Sint => return signed as u32,
        NumberFormat::Float => return soft::convert(small(width), soft::F32, bits.into(), Env::IEEE) as u32,
        NumberFormat::Unorm => f64::from(bits) / most(width),
        NumberFormat::Srgb if fourth => f64::from(bits) / most(width),
        NumberFormat::Srgb => linear(f64::from(bits) / most(width)),
        NumberFormat::Snorm => (f64::from(signed) / most(width - 1).max(1.0)).max(-1.0),
        NumberFormat::Uscaled => f64::from(bits),
        NumberFormat::Sscaled => f64::from(signed),
    };
    (value as f32).to_bits()
}

fn stored(number: NumberFormat, value: u32, width: u32, fourth: bool) -> u32 {
    let float = f64::from(f32::from_bits(value));
    // A cast makes NaN zero, and clamps.
    let unorm = |value: f64| (value.clamp(0.0, 1.0) * most(width)).round_ties_even() as u32;
    let least_signed = |width: u32| -(1i64 << (width - 1));
    match number {
        NumberFormat::Uint => value.min(u32::MAX >> (32 - width)),
        NumberFormat::Sint => {
            i64::from(value as i32).clamp(least_signed(width), -1 - least_signed(width)) as i32 as u32
        }
        NumberFormat::Float if width == 32 => value,
        NumberFormat::Float => {
            let bits = soft::convert(soft::F32, small(width), value.into(), Env::IEEE) as u32;
            let negative = width < 16 && value >> 31 != 0;
            let nan = soft::F32.is_nan(value.into());
            if negative && !nan { 0 } else { bits & (u32::MAX >> (32 - width)) }
        }
        NumberFormat::Srgb if !fourth => unorm(curved(float.clamp(0.0, 1.0))),
        NumberFormat::Unorm | NumberFormat::Srgb => unorm(float),
        NumberFormat::Snorm => {
            (float.clamp(-1.0, 1.0) * most(width - 1).max(1.0)).round_ties_even() as i32 as u32
        }
        NumberFormat::Uscaled => (float as u32).min(u32::MAX >> (32 - width)),
        NumberFormat::Sscaled => {
            (float as i64).clamp(least_signed(width), -1 - least_signed(width)) as i32 as u32
        }
    }
}

/// Three values as 9 bits each below an exponent of 5 bits, that of the largest.
fn shared_exponent(values: [u32; 3]) -> u32 {
    const LARGEST: f64 = 65408.0;
    let values = values.map(|bits| {
        let value = f64::from(f32::from_bits(bits));
        if value.is_nan() { 0.0 } else { value.clamp(0.0, LARGEST) }
    });
    let largest = values.iter().copied().fold(0.0, f64::max);
    let mut exponent = 0;
    while exponent < 31 && (largest / 2f64.powi(exponent - 24)).round_ties_even() > 511.0 {
        exponent += 1;
    }
    let scale = 2f64.powi(exponent - 24);
    let part = |n: usize| (values[n] / scale).round_ties_even() as u32;
    (exponent as u32) << 27 | part(2) << 18 | part(1) << 9 | part(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str) -> TexelFormat {
        TexelFormat::of_name(name).unwrap_or_else(|| panic!("{name}"))
    }

    fn floats(name: &str, word: u32) -> [f32; 4] {
        format(name).load([word, 0, 0, 0]).map(f32::from_bits)
    }

    #[test]
    fn eight_bits_by_their_formulas() {
        for byte in 0..=255u32 {
            let word = byte * 0x0101_0101;
            assert_eq!(floats("8_8_8_8_UNORM", word), [byte as f32 / 255.0; 4]);
            let signed = f32::from(byte as u8 as i8);
            assert_eq!(floats("8_8_8_8_SNORM", word), [(signed / 127.0).max(-1.0); 4]);
            assert_eq!(floats("8_8_8_8_USCALED", word), [byte as f32; 4]);
            assert_eq!(floats("8_8_8_8_SSCALED", word), [signed; 4]);
            assert_eq!(format("8_8_8_8_UINT").load([word, 0, 0, 0]), [byte; 4]);
            assert_eq!(format("8_8_8_8_SINT").load([word, 0, 0, 0]), [byte as u8 as i8 as u32; 4]);
            let [r, g, b, a] = floats("8_8_8_8_SRGB", word);
            let c = f64::from(byte) / 255.0;
            let expected = if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) } as f32;
            assert_eq!(([r, g, b], a), ([expected; 3], byte as f32 / 255.0));
        }
    }

    #[test]
    fn first_component_is_lowest() {
        assert_eq!(format("2_10_10_10_UINT").load([3 << 30 | 5 << 20 | 6 << 10 | 7, 0, 0, 0]), [7, 6, 5, 3]);
        assert_eq!(format("10_10_10_2_UINT").load([7 << 22 | 6 << 12 | 5 << 2 | 3, 0, 0, 0]), [3, 5, 6, 7]);
        assert_eq!(floats("5_6_5_UNORM", 31 << 11), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(floats("1_5_5_5_UNORM", 0x8000 | 31), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(floats("5_5_5_1_UNORM", 1), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(format("8_24_UINT").load([0xab12_3456, 0, 0, 0]), [0x12_3456, 0xab, 0, 1]);
        assert_eq!(format("32_32_32_UINT").load([1, 2, 3, 4]), [1, 2, 3, 1]);
    }

    #[test]
    fn small_floats() {
        // 1.0 in all: exponent 15.
        let word = 15 << 6 | 15 << 17 | 15 << 27;
        assert_eq!(floats("10_11_11_FLOAT", word), [1.0; 4]);
        assert_eq!(floats("16_FLOAT", 0xc000)[0], -2.0);
        // The least denormal of 11 bits.
        assert_eq!(floats("10_11_11_FLOAT", 1)[0], 2f32.powi(-20));
        // Nothing below zero.
        assert_eq!(format("10_11_11_FLOAT").store([(-1f32).to_bits(), 0, 0, 0])[0], 0);
        assert_eq!(floats("5_9_9_9_FLOAT", 16 << 27 | 256 << 9 | 511), [511.0 / 256.0, 1.0, 0.0, 1.0]);
        assert_eq!(format("5_9_9_9_FLOAT").store([1f32.to_bits(), 0, 0, 0])[0], 16 << 27 | 256);
    }

    #[test]
    fn stored_values_are_clamped_and_rounded() {
        let store = |name: &str, value: f32| format(name).store([value.to_bits(), 0, 0, 0])[0] & 0xff;
        assert_eq!([-1.0, 0.5, 2.0, f32::NAN].map(|v| store("8_UNORM", v)), [0, 128, 255, 0]);
        assert_eq!([-1.0, 0.5, 2.0, f32::NAN].map(|v| store("8_SNORM", v)), [0x81, 64, 127, 0]);
        assert_eq!([-1.0, 7.9, 300.0].map(|v| store("8_USCALED", v)), [0, 7, 255]);
        assert_eq!([-200.0, -7.9, 300.0].map(|v| store("8_SSCALED", v)), [0x80, 0xf9, 127]);
        assert_eq!(format("8_UINT").store([300, 0, 0, 0])[0], 255);
        assert_eq!(format("8_SINT").store([(-300i32) as u32, 0, 0, 0])[0], 0x80);
    }

    /// What a store makes of what a load gave is the texel again.
    #[test]
    fn every_format_survives_load_and_store() {
        let mut state = 0x1234_5678_9abc_def0u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 32) as u32
        };
        let mut seen = 0;
        for gpu in ["gfx600", "gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1200"] {
            let gpu = Gpu::new(gpu).expect("known");
            for code in 0..1024 {
                let Some(format) = TexelFormat::image(code, &gpu) else { continue };
                seen += 1;
                for _ in 0..64 {
                    let mut words = [next(), next(), next(), next()];
                    for (at, word) in words.iter_mut().enumerate() {
                        let bytes = u32::from(format.bytes).saturating_sub(4 * at as u32).min(4);
                        *word &= if bytes == 0 { 0 } else { u32::MAX >> (32 - 8 * bytes) };
                    }
                    let values = format.load(words);
                    let again = format.load(format.store(values));
                    let nan = |v: u32| !format.number.is_integer() && f32::from_bits(v).is_nan();
                    let same = values.iter().zip(&again).all(|(a, b)| a == b || nan(*a) && nan(*b));
                    assert!(same, "{gpu:?} {code} {format:?}: {words:x?} {values:x?} {again:x?}");
                }
            }
        }
        assert!(seen > 300, "{seen}");
    }

    #[test]
    fn codes_of_images() {
        let image = |gpu: &str, code: u32| TexelFormat::image(code, &Gpu::new(gpu).expect("known"));
        assert_eq!(image("gfx600", 10), Some(format("8_8_8_8_UNORM")));
        assert_eq!(image("gfx803", 10 | 9 << 6), Some(format("8_8_8_8_SRGB")));
        assert_eq!(image("gfx900", 4 | 7 << 6), Some(format("32_FLOAT")));
        assert_eq!(image("gfx900", 34 | 7 << 6), Some(format("5_9_9_9_FLOAT")));
        assert_eq!(image("gfx1030", 56), Some(format("8_8_8_8_UNORM")));
        assert_eq!(image("gfx1030", 133), Some(format("5_6_5_UNORM")));
        assert_eq!(image("gfx1100", 42), Some(format("8_8_8_8_UNORM")));
        assert_eq!(image("gfx1200", 66), Some(format("8_8_8_8_SRGB")));
        // Blocks.
        assert_eq!(image("gfx1030", 169), None);
        assert_eq!(image("gfx900", 35), None);
    }
}
