//! Colours merged into what a texel holds.

use unwedge_hw::adreno::format::{Numeric, TexelCodec};

/// Bytes of the largest texel.
const TEXEL: usize = 16;

/// How source and destination become one, by the numbers of `adreno_rb_blend_factor` and `a3xx_rb_blend_opcode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlendEquation {
    pub(crate) source: u32,
    pub(crate) operation: u32,
    pub(crate) destination: u32,
}

/// How a render target takes colours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BlendState {
    pub(crate) enabled: bool,
    pub(crate) rgb: BlendEquation,
    pub(crate) alpha: BlendEquation,
    /// The truth table of a logic operation: what is on where source and destination are bits of its index, the source the high
    /// one.
    pub(crate) rop: Option<u8>,
    /// Components that are written.
    pub(crate) write_mask: u8,
    pub(crate) constants: [f32; 4],
    pub(crate) alpha_to_one: bool,
}

/// What factors may take.
struct Colours {
    source: [f32; 4],
    second: [f32; 4],
    destination: [f32; 4],
    constants: [f32; 4],
}

impl Colours {
    fn factor(&self, code: u32, component: usize) -> f32 {
        let value = match code & !1 {
            0 => return (code & 1) as f32,
            4 => self.source[component],
            6 => self.source[3],
            8 => self.destination[component],
            10 => self.destination[3],
            12 => self.constants[component],
            14 => self.constants[3],
            16 if component == 3 => return 1.0,
            16 => return self.source[3].min(1.0 - self.destination[3]),
            20 => self.second[component],
            22 => self.second[3],
            _ => return 0.0,
        };
        if code & 1 == 0 { value } else { 1.0 - value }
    }

    fn blend(&self, equation: &BlendEquation, component: usize) -> f32 {
        let (source, destination) = (self.source[component], self.destination[component]);
        match equation.operation {
            3 => return source.min(destination),
            4 => return source.max(destination),
            _ => {}
        }
        let source = source * self.factor(equation.source, component);
        let destination = destination * self.factor(equation.destination, component);
        match equation.operation {
            1 => source - destination,
            2 => destination - source,
            _ => source + destination,
        }
    }
}

fn word(texel: &[u8]) -> u128 {
    texel.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte))
}

impl BlendState {
    /// Whether [`merge`] does no more than pack the colour.
    pub(crate) fn is_plain(&self, codec: &TexelCodec) -> bool {
        let floats = codec.numeric() == Numeric::Float;
        !self.reads(codec) && !(floats && (self.alpha_to_one || codec.has_short_floats()))
    }

    /// Whether what is stored counts: a write of all that there is needs none of it.
    pub(crate) fn reads(&self, codec: &TexelCodec) -> bool {
        let blends = self.enabled && codec.numeric() == Numeric::Float;
        blends || self.rop.is_some() || self.write_mask & 0xf != 0xf
    }
}

/// Merges a colour into a texel. Components are bits of floats, or integers for targets of integers. False: the format has no such
/// colour, and nothing is to be written.
pub(crate) fn merge(
    state: &BlendState,
    codec: &TexelCodec,
    source: [u32; 4],
    second: [u32; 4],
    texel: &mut [u8],
) -> bool {
    let Some(texel) = texel.get_mut(..(codec.bytes() as usize).min(TEXEL)) else { return false };
    let floats = codec.numeric() == Numeric::Float;
    let mut source = source;
    if state.alpha_to_one && floats {
        source[3] = 1f32.to_bits();
    }
    if state.enabled && floats && state.rop.is_none() {
        let Some(stored) = codec.unpack(texel, 0, 0) else { return false };
        let clamp = |colour: [f32; 4]| match codec.normalized_range() {
            Some([least, greatest]) => colour.map(|value| value.max(least).min(greatest)),
            None => colour,
        };
        let colours = Colours {
            source: clamp(source.map(f32::from_bits)),
            second: clamp(second.map(f32::from_bits)),
            destination: stored.map(f32::from_bits),
            constants: clamp(state.constants),
        };
        let equation = |component: usize| if component == 3 { &state.alpha } else { &state.rgb };
        source = [0, 1, 2, 3].map(|n| colours.blend(equation(n), n).to_bits());
    }
    if floats && codec.has_short_floats() {
        for (component, value) in source.iter_mut().enumerate() {
            if let Some(mantissa) = codec.short_mantissa(component) {
                *value = shortened(*value, mantissa);
            }
        }
    }
    let mut packed = [0; TEXEL];
    let packed = &mut packed[..texel.len()];
    if codec.pack(source, packed).is_err() {
        return false;
    }
    if state.write_mask & 0xf == 0xf && state.rop.is_none() {
        texel.copy_from_slice(packed);
        return true;
    }
    let (new, old, mask) = (word(packed), word(texel), codec.bits_of(state.write_mask));
    // Logic operations are of stored bits; those of floats and encoded colours have none.
    let has_bits = !floats || codec.normalized_range().is_some() && !codec.is_srgb();
    let new = state.rop.filter(|_| has_bits).map_or(new, |code| logic(code, new, old));
    let merged = old & !mask | new & mask;
    texel.copy_from_slice(&merged.to_le_bytes()[..texel.len()]);
    true
}

/// The number of fewer bits behind the point that is next towards zero, with five bits of exponent.
fn shortened(bits: u32, mantissa: u32) -> u32 {
    const GREATEST_EXPONENT: i32 = 15;
    const LEAST_EXPONENT: i32 = -14;
    let value = f32::from_bits(bits);
    if !value.is_finite() {
        return bits;
    }
    let exponent = (bits >> 23 & 0xff) as i32 - 127;
    let dropped = 23 - mantissa;
    if exponent > GREATEST_EXPONENT {
        let greatest = (127 + GREATEST_EXPONENT as u32) << 23 | 0x7f_ffff >> dropped << dropped;
        return bits & 1 << 31 | greatest;
    }
    if exponent >= LEAST_EXPONENT {
        return bits >> dropped << dropped;
    }
    let step = f32::from_bits(((127 + LEAST_EXPONENT) as u32 - mantissa) << 23);
    ((value / step).trunc() * step).to_bits()
}

/// A logic operation by its truth table.
fn logic(code: u8, source: u128, destination: u128) -> u128 {
    let term = |at: u32| {
        let bits = if code >> at & 1 != 0 { u128::MAX } else { 0 };
        let source = if at & 2 != 0 { source } else { !source };
        bits & source & if at & 1 != 0 { destination } else { !destination }
    };
    term(0) | term(1) | term(2) | term(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_hw::adreno::format::Format;

    fn codec(name: &str) -> TexelCodec {
        Format::named(name).expect("known").codec()
    }

    const COPY: BlendEquation = BlendEquation { source: 1, operation: 0, destination: 0 };

    /// Every factor and operation over values of 8 bits, against the arithmetic in twice the precision.
    #[test]
    fn blending_of_eight_bits() {
        let codec = codec("R8G8B8A8_UNORM");
        let factors = [0u32, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 23];
        let constants = [0.1, 0.2, 0.3, 0.4];
        let mut checked = 0u64;
        for (at, &source) in factors.iter().enumerate() {
            for &destination in &factors {
                for operation in 0..5 {
                    let equation = BlendEquation { source, operation, destination };
                    let state = BlendState {
                        enabled: true,
                        rgb: equation,
                        alpha: equation,
                        write_mask: 0xf,
                        constants,
                        ..BlendState::default()
                    };
                    for old in (at as u32 % 5..256).step_by(5) {
                        for new in (operation % 3..256).step_by(3) {
                            let byte = |value: u32| (value % 256) as u8;
                            let stored = [byte(old), byte(old * 7), byte(old * 3 + 1), byte(255 - old)];
                            let colour =
                                [new, new * 5 % 256, 255 - new, new * 11 % 256].map(|v| v as f32 / 255.0);
                            let second = [0.5, 0.25, 0.75, 0.125];
                            let mut texel = stored;
                            merge(
                                &state,
                                &codec,
                                colour.map(f32::to_bits),
                                second.map(f32::to_bits),
                                &mut texel,
                            );
                            for (n, byte) in texel.into_iter().enumerate() {
                                let expected = reference(&equation, n, colour, second, stored, constants);
                                let difference = (f64::from(byte) - expected * 255.0).abs();
                                assert!(difference <= 0.5001, "{equation:?} {n} {old} {new}");
                                checked += 1;
                            }
                        }
                    }
                }
            }
        }
        assert!(checked > 10_000_000, "{checked}");
    }

    fn reference(
        equation: &BlendEquation,
        n: usize,
        source: [f32; 4],
        second: [f32; 4],
        stored: [u8; 4],
        constants: [f32; 4],
    ) -> f64 {
        let (s, second) = (source.map(f64::from), second.map(f64::from));
        let (d, constants) = (stored.map(|byte| f64::from(byte) / 255.0), constants.map(f64::from));
        let factor = |code: u32| match code {
            0 => 0.0,
            1 => 1.0,
            4 => s[n],
            5 => 1.0 - s[n],
            6 => s[3],
            7 => 1.0 - s[3],
            8 => d[n],
            9 => 1.0 - d[n],
            10 => d[3],
            11 => 1.0 - d[3],
            12 => constants[n],
            13 => 1.0 - constants[n],
            14 => constants[3],
            15 => 1.0 - constants[3],
            16 => {
                if n == 3 {
                    1.0
                } else {
                    s[3].min(1.0 - d[3])
                }
            }
            20 => second[n],
            21 => 1.0 - second[n],
            22 => second[3],
            _ => 1.0 - second[3],
        };
        let (a, b) = (s[n] * factor(equation.source), d[n] * factor(equation.destination));
        let value = match equation.operation {
            0 => a + b,
            1 => a - b,
            2 => b - a,
            3 => s[n].min(d[n]),
            _ => s[n].max(d[n]),
        };
        value.clamp(0.0, 1.0)
    }

    #[test]
    fn logic_operations_are_of_bits() {
        let codec = codec("R8G8B8A8_UINT");
        for code in 0..16u8 {
            for (new, old) in [(0b1100u8, 0b1010u8), (0xf0, 0x3c), (0, 0xff)] {
                let (s, d) = (new, old);
                let expected = [
                    0,
                    !(s | d),
                    !s & d,
                    !s,
                    s & !d,
                    !d,
                    s ^ d,
                    !(s & d),
                    s & d,
                    !(s ^ d),
                    d,
                    !s | d,
                    s,
                    s | !d,
                    s | d,
                    0xff,
                ][usize::from(code)];
                let state = BlendState { rop: Some(code), write_mask: 0x5, ..BlendState::default() };
                let mut texel = [old; 4];
                assert!(merge(&state, &codec, [new.into(); 4], [0; 4], &mut texel));
                assert_eq!(texel, [expected, old, expected, old], "{code}");
            }
        }
    }

    /// What is masked keeps its bits, also of formats whose values are not exact.
    #[test]
    fn masked_components_keep_their_bits() {
        for format in
            ["R10G10B10A2_UNORM", "R11G11B10_FLOAT", "R16G16B16A16_SNORM", "B5G6R5_UNORM", "R8G8_SNORM"]
        {
            let codec = codec(format);
            let bytes = codec.bytes() as usize;
            for mask in 0..16u8 {
                let state = BlendState {
                    write_mask: mask,
                    enabled: true,
                    rgb: COPY,
                    alpha: COPY,
                    ..BlendState::default()
                };
                let old = [0x5au8, 0xc3, 0x96, 0x7f, 0x80, 0x12, 0x34, 0xff];
                let mut texel = old;
                let colour = [0.25f32, 0.5, 0.75, 1.0].map(f32::to_bits);
                assert!(merge(&state, &codec, colour, [0; 4], &mut texel[..bytes]));
                let mut whole = [0; 8];
                codec.pack(colour, &mut whole[..bytes]).unwrap();
                let bits = codec.bits_of(mask).to_le_bytes();
                for at in 0..bytes {
                    assert_eq!(texel[at], old[at] & !bits[at] | whole[at] & bits[at], "{format} {mask}");
                }
                assert_eq!(texel[bytes..], old[bytes..]);
            }
        }
    }
}
