//! A format resolved for reading and writing texels: from bytes to four components, and back.
//!
//! A component is 32 bits, as a shader's register has it: a float, an unsigned or a signed integer, by [`TexelCodec::numeric`].
//! Never: looks anything up per texel, allocates.

use super::block::{BlockCodec, MAX_BLOCK_TEXELS};
use super::convert;
use super::{ColorSwap, Source, TexelShape};
use thiserror::Error;

/// A channel of a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// What its bits are.
    pub kind: ChannelKind,
    /// Its lowest bit in the texel.
    pub shift: u8,
    /// Its bits.
    pub bits: u8,
}

/// What the bits of a channel are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// From 0 to 1.
    Unorm,
    /// From -1 to 1.
    Snorm,
    /// An integer.
    Uint,
    /// An integer with sign.
    Sint,
    /// An integer that is read as a float.
    Uscaled,
    /// An integer with sign that is read as a float.
    Sscaled,
    /// A float; those of 11 and 10 bits have no sign.
    Float,
    /// A fixed point number with 16 bits after the point.
    Fixed,
    /// Nothing.
    Unused,
}

/// What the 32 bits of a component are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numeric {
    /// A float.
    Float,
    /// An unsigned integer.
    Uint,
    /// A signed integer.
    Sint,
}

impl ChannelKind {
    fn numeric(self) -> Numeric {
        match self {
            ChannelKind::Uint => Numeric::Uint,
            ChannelKind::Sint => Numeric::Sint,
            _ => Numeric::Float,
        }
    }
}

/// Why a texel cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PackError {
    /// Blocks are only read.
    #[error("blocks of a compressed format cannot be written a texel at a time")]
    Compressed,
    /// The bytes are fewer than a texel has.
    #[error("a texel has {0} bytes")]
    Bytes(u32),
}

/// A format resolved for reading and writing texels.
#[derive(Clone, Copy, Debug)]
pub struct TexelCodec {
    shape: Shape,
    sources: [Source; 4],
    bytes: u32,
    numeric: Numeric,
    srgb: bool,
    /// Normalized channels of 5, 6 and 7 bits are read as 8 bits.
    widens: bool,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Four channels of 8 bits from 0 to 1, in order.
    Unorm8x4,
    /// So many channels of 32 bits, unchanged.
    Words(u8),
    /// So many half floats.
    Halves(u8),
    Channels([Channel; 4], u8),
    SharedExponent,
    Block(BlockCodec),
}

/// Every component is the channel of its number.
const IN_ORDER: [Source; 4] =
    [Source::Channel(0), Source::Channel(1), Source::Channel(2), Source::Channel(3)];
const NONE: Channel = Channel { kind: ChannelKind::Unused, shift: 0, bits: 0 };

impl TexelCodec {
    pub(super) fn of(texel: TexelShape, sources: [Source; 4], srgb: bool) -> TexelCodec {
        match texel {
            TexelShape::Channels(list) => {
                let mut channels = [NONE; 4];
                channels.iter_mut().zip(list).for_each(|(place, channel)| *place = *channel);
                TexelCodec::of_channels(channels, list.len().min(4) as u8, sources, srgb)
            }
            TexelShape::SharedExponent => TexelCodec {
                shape: Shape::SharedExponent,
                sources,
                bytes: 4,
                numeric: Numeric::Float,
                srgb: false,
                widens: false,
            },
            TexelShape::Block(codec) => TexelCodec {
                shape: Shape::Block(codec),
                sources,
                bytes: codec.bytes(),
                numeric: Numeric::Float,
                srgb,
                widens: false,
            },
        }
    }

    fn of_channels(channels: [Channel; 4], count: u8, sources: [Source; 4], srgb: bool) -> TexelCodec {
        let list = &channels[..usize::from(count)];
        let bits: u32 = list.iter().map(|channel| u32::from(channel.bits)).sum();
        let all = |holds: fn(&Channel) -> bool| list.iter().all(holds);
        let word = |c: &Channel| {
            c.bits == 32 && matches!(c.kind, ChannelKind::Float | ChannelKind::Uint | ChannelKind::Sint)
        };
        let shape = if count == 4 && !srgb && all(|c| c.bits == 8 && c.kind == ChannelKind::Unorm) {
            Shape::Unorm8x4
        } else if all(word) {
            Shape::Words(count)
        } else if all(|c| c.bits == 16 && c.kind == ChannelKind::Float) {
            Shape::Halves(count)
        } else {
            Shape::Channels(channels, count)
        };
        let first = list.iter().find(|channel| channel.kind != ChannelKind::Unused);
        let numeric = first.map_or(Numeric::Float, |channel| channel.kind.numeric());
        TexelCodec { shape, sources, bytes: bits / 8, numeric, srgb, widens: false }
    }

    /// The same with the channels in another order in memory: what a descriptor's swap makes of a format whose own order is
    /// [`ColorSwap::Wzyx`]. Blocks and shared exponents have no order. Channels that a format does not have are left out.
    #[must_use]
    pub fn with_swap(self, swap: ColorSwap) -> TexelCodec {
        let (channels, count) = match self.shape {
            _ if swap == ColorSwap::Wzyx => return self,
            Shape::SharedExponent | Shape::Block(_) => return self,
            Shape::Channels(channels, count) => (channels, count),
            Shape::Unorm8x4 => (uniform(ChannelKind::Unorm, 8), 4),
            Shape::Halves(count) => (uniform(ChannelKind::Float, 16), count),
            Shape::Words(count) => {
                let kind = match self.numeric {
                    Numeric::Float => ChannelKind::Float,
                    Numeric::Uint => ChannelKind::Uint,
                    Numeric::Sint => ChannelKind::Sint,
                };
                (uniform(kind, 32), count)
            }
        };
        let mut moved = [NONE; 4];
        let mut place_of = [0u8; 4];
        let (mut place, mut shift) = (0u8, 0u8);
        for channel in swap.memory_order().into_iter().filter(|&channel| channel < usize::from(count)) {
            moved[usize::from(place)] = Channel { shift, ..channels[channel] };
            shift = shift.saturating_add(channels[channel].bits);
            place_of[channel] = place;
            place += 1;
        }
        let sources = self.sources.map(|source| match source {
            Source::Channel(channel) => Source::Channel(place_of[usize::from(channel) & 3]),
            constant => constant,
        });
        TexelCodec { widens: self.widens, ..TexelCodec::of_channels(moved, count, sources, self.srgb) }
    }

    /// The same as samplers read it: normalized channels of 5 and 6 bits are widened to 8 by their own high bits first.
    #[must_use]
    pub fn widened(self) -> TexelCodec {
        TexelCodec { widens: true, ..self }
    }

    /// Bytes of a texel or block.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Width and height of a block in texels.
    pub fn block_size(&self) -> (u32, u32) {
        match self.shape {
            Shape::Block(codec) => codec.size(),
            _ => (1, 1),
        }
    }

    /// What its components are. Stencil beside depth is an unsigned integer all the same.
    pub fn numeric(&self) -> Numeric {
        self.numeric
    }

    /// The components of a texel, as bits. `bytes` are those of the texel or block, `x` and `y` a place in the block. `None` if there are
    /// fewer bytes than that, or if the place is not in the block.
    #[inline]
    pub fn unpack(&self, bytes: &[u8], x: u32, y: u32) -> Option<[u32; 4]> {
        if let Shape::Block(codec) = self.shape {
            let texel = codec.texel(bytes, x, y, self.srgb)?;
            return Some(self.swizzled(texel.map(f32::to_bits)));
        }
        let bytes = bytes.get(..self.bytes as usize)?;
        let channels = match self.shape {
            Shape::Unorm8x4 => {
                let texel: [u8; 4] = bytes.try_into().ok()?;
                texel.map(|code| (f32::from(code) / 255.0).to_bits())
            }
            Shape::Words(_) => {
                let mut words = [0; 4];
                for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
                    *word = u32::from_le_bytes(bytes.try_into().ok()?);
                }
                words
            }
            Shape::Halves(_) => {
                let mut words = [0; 4];
                for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(2)) {
                    *word = convert::f16_to_f32(u16::from_le_bytes(bytes.try_into().ok()?)).to_bits();
                }
                words
            }
            Shape::Channels(channels, count) => self.unpack_channels(bytes, channels, count),
            Shape::SharedExponent => {
                let [r, g, b] = convert::rgb9e5_to_f32(u32::from_le_bytes(bytes.try_into().ok()?));
                [r.to_bits(), g.to_bits(), b.to_bits(), 0]
            }
            Shape::Block(_) => return None,
        };
        Some(self.swizzled(channels))
    }

    fn unpack_channels(&self, bytes: &[u8], channels: [Channel; 4], count: u8) -> [u32; 4] {
        let mut raw = [0; 16];
        raw[..bytes.len().min(16)].copy_from_slice(&bytes[..bytes.len().min(16)]);
        let raw = u128::from_le_bytes(raw);
        let mut out = [0; 4];
        for (at, channel) in channels.into_iter().take(usize::from(count)).enumerate() {
            let mask = (1u64 << channel.bits.min(32)) - 1;
            let code = (raw >> channel.shift) as u32 & mask as u32;
            out[at] = self.channel_to_bits(channel, code, self.is_encoded(at));
        }
        out
    }

    /// The channel is on the sRGB curve: all but alpha.
    fn is_encoded(&self, channel: usize) -> bool {
        self.srgb && self.sources[3] != Source::Channel(channel as u8)
    }

    fn channel_to_bits(&self, channel: Channel, code: u32, srgb: bool) -> u32 {
        let bits = u32::from(channel.bits);
        let unused = 32 - bits.min(32);
        let signed = ((code << unused) as i32) >> unused;
        match channel.kind {
            ChannelKind::Unorm if srgb => convert::srgb8_to_linear(code as u8).to_bits(),
            ChannelKind::Unorm if self.widens && (5..8).contains(&bits) => {
                convert::unorm_to_f32(code << (8 - bits) | code >> (2 * bits - 8), 8).to_bits()
            }
            ChannelKind::Unorm => convert::unorm_to_f32(code, bits).to_bits(),
            ChannelKind::Snorm => convert::snorm_to_f32(signed, bits).to_bits(),
            ChannelKind::Uint => code,
            ChannelKind::Sint => signed as u32,
            ChannelKind::Uscaled => (code as f32).to_bits(),
            ChannelKind::Sscaled => (signed as f32).to_bits(),
            ChannelKind::Fixed => ((f64::from(signed) / 65536.0) as f32).to_bits(),
            ChannelKind::Unused => 0,
            ChannelKind::Float => match bits {
                32 => code,
                16 => convert::f16_to_f32(code as u16).to_bits(),
                _ => convert::small_to_f32(code, bits.saturating_sub(5).max(1)).to_bits(),
            },
        }
    }

    fn swizzled(&self, channels: [u32; 4]) -> [u32; 4] {
        let one = if self.numeric == Numeric::Float { 1f32.to_bits() } else { 1 };
        self.sources.map(|source| match source {
            Source::Channel(channel) => channels[usize::from(channel) & 3],
            Source::One => one,
            Source::Zero | Source::Absent => 0,
        })
    }

    /// The components as floats. Integers are converted.
    pub fn unpack_f32(&self, bytes: &[u8], x: u32, y: u32) -> Option<[f32; 4]> {
        let texel = self.unpack(bytes, x, y)?;
        Some(match self.numeric {
            Numeric::Float => texel.map(f32::from_bits),
            Numeric::Uint => texel.map(|value| value as f32),
            Numeric::Sint => texel.map(|value| value as i32 as f32),
        })
    }

    /// The components as unsigned integers. Floats are cut off and clamped, negative integers become 0.
    pub fn unpack_u32(&self, bytes: &[u8], x: u32, y: u32) -> Option<[u32; 4]> {
        let texel = self.unpack(bytes, x, y)?;
        Some(match self.numeric {
            Numeric::Float => texel.map(|value| f32::from_bits(value) as u32),
            Numeric::Uint => texel,
            Numeric::Sint => texel.map(|value| (value as i32).max(0) as u32),
        })
    }

    /// The components as signed integers. Floats are cut off and clamped, as unsigned integers are.
    pub fn unpack_i32(&self, bytes: &[u8], x: u32, y: u32) -> Option<[i32; 4]> {
        let texel = self.unpack(bytes, x, y)?;
        Some(match self.numeric {
            Numeric::Float => texel.map(|value| f32::from_bits(value) as i32),
            Numeric::Uint => texel.map(|value| value.min(i32::MAX as u32) as i32),
            Numeric::Sint => texel.map(|value| value as i32),
        })
    }

    /// Every texel of a block, row by row, to the front of `out`; of other formats one texel. Returns how many, or `None` if there are
    /// fewer bytes than a block has.
    pub fn unpack_block(&self, bytes: &[u8], out: &mut [[f32; 4]; MAX_BLOCK_TEXELS]) -> Option<usize> {
        let Shape::Block(codec) = self.shape else {
            out[0] = self.unpack_f32(bytes, 0, 0)?;
            return Some(1);
        };
        let count = codec.decode(bytes, self.srgb, out)?;
        for texel in &mut out[..count] {
            *texel = self.swizzled(texel.map(f32::to_bits)).map(f32::from_bits);
        }
        Some(count)
    }

    /// Writes a texel from its components, given as [`TexelCodec::unpack`] returns them. Integers that do not fit are clamped, unused
    /// bits become 0.
    ///
    /// # Errors
    /// For blocks, and when `out` is smaller than a texel.
    #[inline]
    pub fn pack(&self, texel: [u32; 4], out: &mut [u8]) -> Result<(), PackError> {
        let bytes = self.bytes;
        let out = out.get_mut(..bytes as usize).ok_or(PackError::Bytes(bytes))?;
        match self.shape {
            Shape::Block(_) => return Err(PackError::Compressed),
            Shape::SharedExponent => {
                let [r, g, b, _] = texel.map(f32::from_bits);
                out.copy_from_slice(&convert::f32_to_rgb9e5([r, g, b]).to_le_bytes());
            }
            Shape::Unorm8x4 => {
                if self.sources == IN_ORDER {
                    let code = |value: u32| convert::f32_to_unorm8(f32::from_bits(value));
                    out.copy_from_slice(&texel.map(code));
                    return Ok(());
                }
                let mut codes = [0; 4];
                // The first component that reads a channel is the one that is stored.
                for (source, value) in self.sources.iter().zip(texel).rev() {
                    if let Source::Channel(channel) = source {
                        codes[usize::from(*channel) & 3] = convert::f32_to_unorm8(f32::from_bits(value));
                    }
                }
                out.copy_from_slice(&codes);
            }
            Shape::Words(_) => {
                for (channel, bytes) in out.chunks_exact_mut(4).enumerate() {
                    bytes.copy_from_slice(&self.component(texel, channel).to_le_bytes());
                }
            }
            Shape::Halves(_) => {
                for (channel, bytes) in out.chunks_exact_mut(2).enumerate() {
                    let half = convert::f32_to_f16(f32::from_bits(self.component(texel, channel)));
                    bytes.copy_from_slice(&half.to_le_bytes());
                }
            }
            Shape::Channels(channels, count) => {
                let mut raw = 0u128;
                for (at, channel) in channels.into_iter().take(usize::from(count)).enumerate() {
                    let code = channel_of_bits(channel, self.component(texel, at), self.is_encoded(at));
                    raw |= u128::from(code) << channel.shift;
                }
                out.copy_from_slice(&raw.to_le_bytes()[..bytes as usize]);
            }
        }
        Ok(())
    }

    /// [`TexelCodec::pack`] of floats; formats of integers get the nearest ones.
    ///
    /// # Errors
    /// As [`TexelCodec::pack`].
    pub fn pack_f32(&self, texel: [f32; 4], out: &mut [u8]) -> Result<(), PackError> {
        let bits = match self.numeric {
            Numeric::Float => texel.map(f32::to_bits),
            Numeric::Uint => texel.map(|value| convert::f32_to_uint(value, 32)),
            Numeric::Sint => texel.map(|value| convert::f32_to_sint(value, 32) as u32),
        };
        self.pack(bits, out)
    }

    /// The bits of a texel that [`TexelCodec::pack`] writes for components of a mask, the lowest bit for the first. A shared
    /// exponent is of all; blocks have none.
    pub fn bits_of(&self, mask: u8) -> u128 {
        let bits = |shift: usize, bits: usize| ((1u128 << bits) - 1) << shift;
        let wanted = |channel: usize| {
            let at = self.sources.iter().position(|source| *source == Source::Channel(channel as u8));
            at.is_some_and(|at| mask >> at & 1 != 0)
        };
        let all = |count: usize, size: usize| {
            (0..count).filter(|n| wanted(*n)).fold(0, |all, n| all | bits(n * size, size))
        };
        match self.shape {
            Shape::Block(_) => 0,
            Shape::SharedExponent => {
                if mask & 7 != 0 {
                    u32::MAX.into()
                } else {
                    0
                }
            }
            Shape::Unorm8x4 => all(4, 8),
            Shape::Words(count) => match count {
                4 if mask & 0xf == 0xf => u128::MAX,
                _ => all(count.into(), 32),
            },
            Shape::Halves(count) => all(count.into(), 16),
            Shape::Channels(channels, count) => (0..usize::from(count))
                .filter(|n| wanted(*n))
                .fold(0, |all, n| all | bits(channels[n].shift.into(), channels[n].bits.into())),
        }
    }

    /// Whether there may be a [`TexelCodec::short_mantissa`].
    pub fn has_short_floats(&self) -> bool {
        matches!(self.shape, Shape::Halves(_) | Shape::Channels(..))
    }

    /// Bits behind the point of a component that is a float of less than 32 bits.
    pub fn short_mantissa(&self, component: usize) -> Option<u32> {
        let Source::Channel(channel) = *self.sources.get(component)? else { return None };
        match self.shape {
            Shape::Halves(_) => Some(10),
            Shape::Channels(channels, _) => {
                let channel = channels.get(usize::from(channel))?;
                (channel.kind == ChannelKind::Float && channel.bits < 32)
                    .then(|| if channel.bits == 16 { 10 } else { u32::from(channel.bits) - 5 })
            }
            Shape::Words(_) | Shape::Unorm8x4 | Shape::SharedExponent | Shape::Block(_) => None,
        }
    }

    /// The least and greatest value of a normalized format; `None` for others.
    pub fn normalized_range(&self) -> Option<[f32; 2]> {
        let kind = match self.shape {
            Shape::Unorm8x4 => ChannelKind::Unorm,
            Shape::Channels(channels, _) => {
                channels.iter().map(|channel| channel.kind).find(|kind| *kind != ChannelKind::Unused)?
            }
            Shape::Words(_) | Shape::Halves(_) | Shape::SharedExponent | Shape::Block(_) => return None,
        };
        match kind {
            ChannelKind::Unorm => Some([0.0, 1.0]),
            ChannelKind::Snorm => Some([-1.0, 1.0]),
            _ => None,
        }
    }

    /// Whether colours are stored encoded.
    pub fn is_srgb(&self) -> bool {
        self.srgb
    }

    /// The component that a channel is written from: the first that reads it.
    fn component(&self, texel: [u32; 4], channel: usize) -> u32 {
        let at = self.sources.iter().position(|source| *source == Source::Channel(channel as u8));
        at.map_or(0, |at| texel[at])
    }
}

fn uniform(kind: ChannelKind, bits: u8) -> [Channel; 4] {
    std::array::from_fn(|at| Channel { kind, shift: at as u8 * bits, bits })
}

fn channel_of_bits(channel: Channel, value: u32, srgb: bool) -> u32 {
    let bits = u32::from(channel.bits);
    let mask = ((1u64 << bits.min(32)) - 1) as u32;
    let number = f32::from_bits(value);
    let code = match channel.kind {
        ChannelKind::Unorm if srgb => u32::from(convert::linear_to_srgb8(number)),
        ChannelKind::Unorm => convert::f32_to_unorm(number, bits),
        ChannelKind::Snorm => convert::f32_to_snorm(number, bits) as u32,
        ChannelKind::Uint => convert::clamp_uint(value, bits),
        ChannelKind::Sint => convert::clamp_sint(value as i32, bits) as u32,
        ChannelKind::Uscaled => convert::f32_to_uint(number, bits),
        ChannelKind::Sscaled => convert::f32_to_sint(number, bits) as u32,
        ChannelKind::Fixed => (f64::from(number) * 65536.0).round_ties_even() as i32 as u32,
        ChannelKind::Unused => 0,
        ChannelKind::Float => match bits {
            32 => value,
            16 => u32::from(convert::f32_to_f16(number)),
            _ => convert::f32_to_unsigned_small(number, bits.saturating_sub(5).max(1)),
        },
    };
    code & mask
}
