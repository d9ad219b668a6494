//! Border colours: a table in memory with each colour in several formats.
//!
//! Facts: the entries as Mesa's drivers write them. Which of its forms the hardware reads for blocks is not documented: here those
//! of the numbers that the blocks have.

use super::image::{Image, Texel};
use super::{TexelMemory, TextureFault};
use unwedge_hw::adreno::format::{BlockCodec, Channel, ChannelKind, Format, Source, f16_to_f32};

/// Bytes of an entry.
const ENTRY: u64 = 128;

/// A form of a colour in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BorderForm {
    /// 32 bits each, as they are.
    Words,
    /// 16 bits each, from 0 to 1 or from -1 to 1.
    Norm16 { signed: bool },
    /// 8 bits each, the same.
    Norm8 { signed: bool },
    /// Half floats; integers have 16 bits.
    Half,
    /// Channels packed at an offset, with these bits.
    Packed { offset: u64, bits: [u32; 4] },
    /// Half floats of sRGB formats.
    Srgb,
    /// Depth of 24 bits.
    Depth24,
}

fn form(format: Format) -> BorderForm {
    if format.is_srgb() {
        return BorderForm::Srgb;
    }
    if let Some(codec) = format.block_codec() {
        return match codec {
            BlockCodec::Bc6h { .. } | BlockCodec::Astc { .. } => BorderForm::Half,
            BlockCodec::EacR { signed } | BlockCodec::EacRg { signed } => BorderForm::Norm16 { signed },
            BlockCodec::Bc4 { signed } | BlockCodec::Bc5 { signed } => BorderForm::Norm8 { signed },
            _ => BorderForm::Norm8 { signed: false },
        };
    }
    let Some(first) = format.channels().iter().find(|channel| channel.kind != ChannelKind::Unused) else {
        // A shared exponent.
        return BorderForm::Half;
    };
    let signed = first.kind == ChannelKind::Snorm;
    match (first.kind, first.bits) {
        (_, 32) => BorderForm::Words,
        (ChannelKind::Unorm, 24) => BorderForm::Depth24,
        (ChannelKind::Unorm | ChannelKind::Snorm, 16) => BorderForm::Norm16 { signed },
        (ChannelKind::Unorm | ChannelKind::Snorm, 8) => BorderForm::Norm8 { signed },
        (ChannelKind::Unorm, _) => packed(format.channels()),
        _ => BorderForm::Half,
    }
}

fn packed(channels: &[Channel]) -> BorderForm {
    let bits: Vec<u8> = channels.iter().map(|channel| channel.bits).collect();
    match bits[..] {
        [5, 6, 5] => BorderForm::Packed { offset: 40, bits: [5, 6, 5, 0] },
        [5, 5, 5, 1] | [1, 5, 5, 5] => BorderForm::Packed { offset: 42, bits: [5, 5, 5, 1] },
        [4, 4, 4, 4] => BorderForm::Packed { offset: 44, bits: [4; 4] },
        [10, 10, 10, 2] => BorderForm::Packed { offset: 56, bits: [10, 10, 10, 2] },
        _ => BorderForm::Norm8 { signed: false },
    }
}

/// Bytes of a number at most.
fn read(memory: &mut dyn TexelMemory, address: u64, size: usize) -> Result<u64, TextureFault> {
    let mut bytes = [0; 8];
    memory.read_texel(address, &mut bytes[..size.min(8)])?;
    Ok(u64::from_le_bytes(bytes))
}

/// A colour of the table, in the numbers that the image has.
pub(super) fn color(
    image: &Image,
    memory: &mut dyn TexelMemory,
    table: u64,
    entry: u32,
) -> Result<Texel, TextureFault> {
    let entry = table.wrapping_add(u64::from(entry) * ENTRY);
    let integer = image.numeric() != unwedge_hw::adreno::format::Numeric::Float;
    let unorm = |value: u64, bits: u32| {
        if bits == 0 { 1f32 } else { (value as f64 / ((1u64 << bits) - 1) as f64) as f32 }
    };
    let mut texel = [0; 4];
    let form = form(image.format);
    for (at, component) in (0u64..).zip(texel.iter_mut()) {
        *component = match form {
            BorderForm::Words => read(memory, entry.wrapping_add(4 * at), 4)? as u32,
            BorderForm::Norm16 { signed } => {
                let value = read(memory, entry.wrapping_add(if signed { 24 } else { 16 } + 2 * at), 2)?;
                let snorm = (f32::from(value as i16) / 32767.0).max(-1.0);
                if signed { snorm } else { unorm(value, 16) }.to_bits()
            }
            BorderForm::Norm8 { signed } => {
                let value = read(memory, entry.wrapping_add(if signed { 52 } else { 48 } + at), 1)?;
                let snorm = (f32::from(value as i8) / 127.0).max(-1.0);
                if signed { snorm } else { unorm(value, 8) }.to_bits()
            }
            BorderForm::Half if integer => {
                let value = read(memory, entry.wrapping_add(32 + 2 * at), 2)?;
                let signed = image.numeric() == unwedge_hw::adreno::format::Numeric::Sint;
                if signed { value as i16 as i32 as u32 } else { value as u32 }
            }
            BorderForm::Half => {
                f16_to_f32(read(memory, entry.wrapping_add(32 + 2 * at), 2)? as u16).to_bits()
            }
            BorderForm::Srgb => {
                f16_to_f32(read(memory, entry.wrapping_add(64 + 2 * at), 2)? as u16).to_bits()
            }
            BorderForm::Depth24 => unorm(read(memory, entry.wrapping_add(60), 4)? & 0xff_ffff, 24).to_bits(),
            BorderForm::Packed { offset, bits } => {
                let word = read(memory, entry.wrapping_add(offset), 4)?;
                let at = at as usize;
                let low: u32 = bits[..at].iter().sum();
                unorm(word >> low & ((1 << bits[at]) - 1), bits[at]).to_bits()
            }
        };
    }
    // What the format does not have reads as a texel of it does.
    let one = if integer { 1 } else { 1f32.to_bits() };
    for (component, source) in texel.iter_mut().zip(image.format.swizzle()) {
        match source {
            Source::Channel(_) => {}
            Source::One => *component = one,
            Source::Zero | Source::Absent => *component = 0,
        }
    }
    Ok(texel)
}
