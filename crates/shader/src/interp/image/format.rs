//! Formats of texels by their Vulkan names: where each component is in the bytes of a texel, and what its bits mean.
//!
//! Never: compressed blocks, several planes, depth and stencil in one texel. Facts: the chapter "Formats" of the Vulkan specification
//! and the Khronos data format specification.

use unwedge_isa::amdgcn::semantics::soft::{self, Env, SoftFormat};

/// What the bits of a component mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numeric {
    Unorm,
    Snorm,
    Uscaled,
    Sscaled,
    Uint,
    Sint,
    Ufloat,
    Sfloat,
    Srgb,
}

impl Numeric {
    fn parse(name: &str) -> Option<Numeric> {
        Some(match name {
            "UNORM" => Numeric::Unorm,
            "SNORM" => Numeric::Snorm,
            "USCALED" => Numeric::Uscaled,
            "SSCALED" => Numeric::Sscaled,
            "UINT" => Numeric::Uint,
            "SINT" => Numeric::Sint,
            "UFLOAT" => Numeric::Ufloat,
            "SFLOAT" => Numeric::Sfloat,
            "SRGB" => Numeric::Srgb,
            _ => return None,
        })
    }

    fn has_width(self, bits: u8) -> bool {
        match self {
            Numeric::Uint | Numeric::Sint => bits <= 64,
            Numeric::Sfloat => matches!(bits, 16 | 32 | 64),
            Numeric::Ufloat => matches!(bits, 10 | 11),
            Numeric::Srgb => bits == 8,
            Numeric::Snorm => (2..=32).contains(&bits),
            _ => bits <= 32,
        }
    }
}

/// How a shader sees texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TexelClass {
    /// Floats of 32 bits.
    Float,
    /// Floats of 32 bits from 0 to 1: references of comparisons are clamped.
    Unorm,
    /// Integers, sign-extended if they are signed.
    Integer,
}

/// A component: its bits in a texel, lowest bit first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Field {
    shift: u16,
    bits: u8,
}

/// The format of a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TexelFormat {
    bytes: u8,
    numeric: Numeric,
    /// Red, green, blue, alpha. Depth and stencil are red.
    fields: [Option<Field>; 4],
    /// An exponent that three components share.
    shared_exponent: bool,
}

const F16: SoftFormat = SoftFormat { exponent: 5, fraction: 10 };
/// Floats without a sign are floats whose sign bit is never set.
const F11: SoftFormat = SoftFormat { exponent: 5, fraction: 6 };
const F10: SoftFormat = SoftFormat { exponent: 5, fraction: 5 };
const F32: SoftFormat = SoftFormat { exponent: 8, fraction: 23 };
const F64: SoftFormat = SoftFormat { exponent: 11, fraction: 52 };

fn float_format(bits: u8) -> SoftFormat {
    match bits {
        10 => F10,
        11 => F11,
        16 => F16,
        64 => F64,
        _ => F32,
    }
}

/// The most bytes of a texel.
const MAX_BYTES: usize = 32;

/// The most components in a name: four, each with unused bits.
const MAX_COMPONENTS: usize = 8;

impl TexelFormat {
    /// The format of a name such as `R8G8B8A8_UNORM`, with or without `VK_FORMAT_`.
    pub fn parse(name: &str) -> Option<TexelFormat> {
        let name = name.strip_prefix("VK_FORMAT_").unwrap_or(name);
        if name == "E5B9G9R9_UFLOAT_PACK32" {
            let field = |shift| Some(Field { shift, bits: 9 });
            let fields = [field(0), field(9), field(18), None];
            return Some(TexelFormat { bytes: 4, numeric: Numeric::Ufloat, fields, shared_exponent: true });
        }
        let mut components: Vec<(char, u8)> = Vec::new();
        let mut parts = name.split('_').peekable();
        while let Some(more) = parts.peek().and_then(|part| component_list(part)) {
            components.extend(more);
            parts.next();
        }
        let numeric = Numeric::parse(parts.next()?)?;
        let pack = match parts.next() {
            Some(part) => Some(part.strip_prefix("PACK")?.parse::<u16>().ok()?),
            None => None,
        };
        if parts.next().is_some() || components.is_empty() || components.len() > MAX_COMPONENTS {
            return None;
        }
        let total: u16 = components.iter().map(|(_, bits)| u16::from(*bits)).sum();
        let mut fields = [None; 4];
        let mut next = if pack.is_some() { total } else { 0 };
        for (letter, bits) in components {
            // The first component of a packed format has the highest bits.
            let shift = if pack.is_some() { next - u16::from(bits) } else { next };
            next = if pack.is_some() { shift } else { next + u16::from(bits) };
            let component = match letter {
                'R' | 'D' | 'S' => 0,
                'G' => 1,
                'B' => 2,
                'A' => 3,
                _ => continue,
            };
            let whole = pack.is_some() || bits % 8 == 0;
            if fields[component].is_some() || !numeric.has_width(bits) || !whole {
                return None;
            }
            fields[component] = Some(Field { shift, bits });
        }
        let fits =
            pack.is_none_or(|pack| pack == total) && total.is_multiple_of(8) && total / 8 <= MAX_BYTES as u16;
        fits.then_some(TexelFormat { bytes: (total / 8) as u8, numeric, fields, shared_exponent: false })
    }

    /// Bytes of a texel.
    pub fn bytes(&self) -> usize {
        self.bytes.into()
    }

    /// How a shader sees texels.
    pub fn class(&self) -> TexelClass {
        match self.numeric {
            Numeric::Uint | Numeric::Sint => TexelClass::Integer,
            Numeric::Unorm | Numeric::Srgb => TexelClass::Unorm,
            _ => TexelClass::Float,
        }
    }

    /// The components of a texel as a shader sees them. Components that the format does not have are 0, alpha is 1.
    pub fn decode(&self, texel: &[u8]) -> [u64; 4] {
        let one = if self.class() == TexelClass::Integer { 1 } else { u64::from(1f32.to_bits()) };
        let mut out = [0, 0, 0, one];
        let exponent = bits_of(texel, Field { shift: 27, bits: 5 }) as i32;
        for (component, (out, field)) in out.iter_mut().zip(self.fields).enumerate() {
            let Some(field) = field else { continue };
            let bits = bits_of(texel, field);
            *out = if self.shared_exponent {
                // Nine bits of fraction without a leading one, and a bias of 15.
                float(bits as f64 * 2f64.powi(exponent - 15 - 9))
            } else {
                self.decode_component(component, bits, field.bits)
            };
        }
        out
    }

    fn decode_component(&self, component: usize, bits: u64, width: u8) -> u64 {
        let unused = 64 - u32::from(width.clamp(1, 64));
        let signed = (bits << unused) as i64 >> unused;
        match self.numeric {
            Numeric::Uint => bits,
            Numeric::Sint => signed as u64,
            Numeric::Uscaled => float(bits as f64),
            Numeric::Sscaled => float(signed as f64),
            Numeric::Unorm => float(bits as f64 / greatest(width)),
            Numeric::Snorm => float((signed as f64 / greatest(width - 1)).max(-1.0)),
            Numeric::Srgb if component == 3 => float(bits as f64 / 255.0),
            Numeric::Srgb => float(linear(bits as f64 / 255.0)),
            Numeric::Ufloat | Numeric::Sfloat => soft::convert(float_format(width), F32, bits, Env::IEEE),
        }
    }

    /// Writes what a shader stores into the bytes of a texel. Bits that no component has become 0.
    pub fn encode(&self, texel: [u64; 4], out: &mut [u8]) {
        out.fill(0);
        if self.shared_exponent {
            let packed = shared_exponent(texel.map(value));
            for (byte, bits) in out.iter_mut().zip(packed.to_le_bytes()) {
                *byte = bits;
            }
            return;
        }
        for (component, field) in self.fields.into_iter().enumerate() {
            if let Some(field) = field {
                set_bits(out, field, self.encode_component(component, texel[component], field.bits));
            }
        }
    }

    fn encode_component(&self, component: usize, bits: u64, width: u8) -> u64 {
        let number = value(bits);
        // Integers of more than 52 bits are `Uint` and `Sint`, which are not converted.
        let round = |number: f64| number.round_ties_even() as i64 as u64;
        match self.numeric {
            Numeric::Uint | Numeric::Sint => bits,
            Numeric::Uscaled => round(number.clamp(0.0, greatest(width))),
            Numeric::Sscaled => round(number.clamp(-greatest(width - 1) - 1.0, greatest(width - 1))),
            Numeric::Unorm => round(number.clamp(0.0, 1.0) * greatest(width)),
            Numeric::Snorm => round(number.clamp(-1.0, 1.0) * greatest(width - 1)),
            Numeric::Srgb if component == 3 => round(number.clamp(0.0, 1.0) * 255.0),
            Numeric::Srgb => round(gamma(number.clamp(0.0, 1.0)) * 255.0),
            // Negative values become 0, and values that are too great the greatest number. Infinities and NaNs stay.
            Numeric::Ufloat if number < 0.0 => 0,
            Numeric::Ufloat => {
                let unsigned = bits & 0x7fff_ffff;
                let env = Env { saturate: number.is_finite(), ..Env::IEEE };
                soft::convert(F32, float_format(width), unsigned, env)
            }
            Numeric::Sfloat => soft::convert(F32, float_format(width), bits & 0xffff_ffff, Env::IEEE),
        }
    }
}

/// The components of `R8G8B8A8`: letters and bits.
fn component_list(text: &str) -> Option<Vec<(char, u8)>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if !"RGBADSX".contains(letter) {
            return None;
        }
        rest = &rest[1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let bits: u8 = rest[..digits].parse().ok().filter(|bits| (1..=64).contains(bits))?;
        out.push((letter, bits));
        rest = &rest[digits..];
    }
    Some(out)
}

fn bits_of(texel: &[u8], field: Field) -> u64 {
    let mut bits = 0;
    for bit in 0..usize::from(field.bits) {
        let at = usize::from(field.shift) + bit;
        let set = texel.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 != 0);
        bits |= u64::from(set) << bit;
    }
    bits
}

fn set_bits(texel: &mut [u8], field: Field, bits: u64) {
    for bit in 0..usize::from(field.bits) {
        let at = usize::from(field.shift) + bit;
        if let Some(byte) = texel.get_mut(at / 8) {
            *byte |= ((bits >> bit & 1) as u8) << (at % 8);
        }
    }
}

fn float(value: f64) -> u64 {
    u64::from((value as f32).to_bits())
}

/// What the shader stores as a float.
fn value(bits: u64) -> f64 {
    f32::from_bits(bits as u32).into()
}

/// The greatest unsigned number of a width.
fn greatest(bits: u8) -> f64 {
    2f64.powi(bits.into()) - 1.0
}

fn linear(code: f64) -> f64 {
    if code <= 0.04045 { code / 12.92 } else { ((code + 0.055) / 1.055).powf(2.4) }
}

fn gamma(linear: f64) -> f64 {
    // A NaN becomes 0.
    if linear >= 0.003_130_8 { 1.055 * linear.powf(1.0 / 2.4) - 0.055 } else { linear.max(0.0) * 12.92 }
}

/// Three components with nine bits each and the exponent of the greatest.
fn shared_exponent(texel: [f64; 4]) -> u32 {
    const GREATEST: f64 = 511.0 / 512.0 * 65536.0;
    let clamped = texel.map(|value| if value.is_nan() { 0.0 } else { value.clamp(0.0, GREATEST) });
    let most = clamped[0].max(clamped[1]).max(clamped[2]);
    let floor = if most > 0.0 { (most.log2().floor() as i32).max(-16) } else { -16 };
    let mut exponent = floor + 1 + 15;
    if (most / 2f64.powi(exponent - 24) + 0.5).floor() >= 512.0 {
        exponent += 1;
    }
    let code = |value: f64| (value / 2f64.powi(exponent - 24) + 0.5).floor() as u32 & 0x1ff;
    code(clamped[0]) | code(clamped[1]) << 9 | code(clamped[2]) << 18 | (exponent as u32 & 31) << 27
}
