//! Images as the render back end and the 2D engine see them: where a texel's bytes are, and what they mean.
//!
//! UBWC is left out: images are read and written uncompressed, which is consistent as long as this machine alone touches them.
//! Never: which image registers name.

use super::space::{AddressSpace, Client, GpuFault, SampleMemory};
use std::ops::Range;
use unwedge_hw::adreno::format::{ColorSwap, Format, HardwareFormat, TexelCodec};
use unwedge_hw::adreno::layout::{Addresser, AddresserParts, ImageGpu, TileMode, Tiling};

/// Bytes of the largest texel.
pub(super) const TEXEL: usize = 16;

/// What a surface is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct SurfaceParts {
    pub(super) base: u64,
    pub(super) codec: TexelCodec,
    pub(super) format: HardwareFormat,
    pub(super) tile_mode: TileMode,
    /// Bytes from a row to the next.
    pub(super) pitch: u64,
    /// Bytes from a layer to the next.
    pub(super) layer_stride: u64,
    pub(super) samples: u32,
    /// Texels across and down that there are; beyond, the nearest one is read.
    pub(super) size: (u32, u32),
    pub(super) client: Client,
}

/// An image that is read or written.
#[derive(Clone, Debug)]
pub(super) struct Surface {
    pub(super) base: u64,
    pub(super) codec: TexelCodec,
    addresser: Addresser,
    client: Client,
    pub(super) samples: u32,
    pub(super) size: (u32, u32),
}

impl Surface {
    /// `None` where texels are in an order that is not known.
    pub(super) fn new(parts: &SurfaceParts, gpu: Option<ImageGpu>) -> Option<Surface> {
        let SurfaceParts { base, codec, samples, size, client, .. } = *parts;
        if codec.block_size() != (1, 1) || codec.bytes() as usize > TEXEL || codec.bytes() == 0 {
            return None;
        }
        let tiling = match parts.tile_mode {
            TileMode::Linear => Tiling::Linear,
            TileMode::Tile2 => return None,
            TileMode::Tile3 => {
                let split_channels = samples == 1 && is_channel_pair(parts.format);
                Tiling::Tile3 { bank: gpu?.bank?, split_channels }
            }
        };
        let addresser = Addresser::new(&AddresserParts {
            base: 0,
            pitch: parts.pitch,
            layer_stride: parts.layer_stride,
            texel_bytes: codec.bytes() * samples,
            samples,
            width: u32::MAX,
            height: u32::MAX,
            layers: u32::MAX,
            tiling,
        })
        .ok()?;
        Some(Surface { base, codec, addresser, client, samples, size })
    }

    /// Bytes of a sample.
    pub(super) fn bytes(&self) -> usize {
        (self.codec.bytes() as usize).min(TEXEL)
    }

    /// Where pieces of a texel's bytes lie from its first byte on: tiles may keep two channels apart.
    fn pieces(&self, bytes: usize) -> impl Iterator<Item = (u64, Range<usize>)> + use<> {
        let apart = self.addresser.second_byte();
        let step = if apart.is_some() { 1 } else { 8 };
        (0..bytes).step_by(step).map(move |at| {
            let offset = apart.map_or(at as u64, |second| at as u64 * u64::from(second));
            (offset, at..(at + step).min(bytes))
        })
    }

    /// Where the first byte of a sample is.
    #[inline]
    pub(super) fn address(&self, [x, y, layer, sample]: [u32; 4]) -> u64 {
        self.base.wrapping_add(self.addresser.offset(x, y, layer, sample))
    }

    /// Reads the bytes of a sample of an attachment: column, row, layer, sample.
    #[inline]
    pub(super) fn load(
        &self,
        memory: &mut impl SampleMemory,
        attachment: usize,
        place: [u32; 4],
        to: &mut [u8],
    ) -> Result<(), GpuFault> {
        let at = self.address(place);
        if to.len() <= 8 && self.addresser.second_byte().is_none() {
            let value = memory.load(attachment, at, to.len(), self.client)?;
            to.iter_mut().zip(value.to_le_bytes()).for_each(|(to, byte)| *to = byte);
            return Ok(());
        }
        for (offset, part) in self.pieces(to.len()) {
            let value = memory.load(attachment, at.wrapping_add(offset), part.len(), self.client)?;
            to[part].iter_mut().zip(value.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        }
        Ok(())
    }

    /// Writes the bytes of a sample of an attachment.
    #[inline]
    pub(super) fn store(
        &self,
        memory: &mut impl SampleMemory,
        attachment: usize,
        place: [u32; 4],
        from: &[u8],
    ) -> Result<(), GpuFault> {
        let at = self.address(place);
        if from.len() <= 8 && self.addresser.second_byte().is_none() {
            return memory.store(attachment, at, from.len(), word(from), self.client);
        }
        for (offset, part) in self.pieces(from.len()) {
            let size = part.len();
            let value = word(&from[part]);
            memory.store(attachment, at.wrapping_add(offset), size, value, self.client)?;
        }
        Ok(())
    }

    /// Reads the bytes of a sample: column, row, layer, sample.
    pub(super) fn read(&self, space: &AddressSpace, place: [u32; 4], to: &mut [u8]) -> Result<(), GpuFault> {
        let at = self.address(place);
        for (offset, part) in self.pieces(to.len()) {
            let value = space.read(at.wrapping_add(offset), part.len(), self.client)?;
            let bytes = value.to_le_bytes();
            to[part].iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        }
        Ok(())
    }

    /// Writes the bytes of a sample.
    pub(super) fn write(
        &self,
        space: &mut AddressSpace,
        place: [u32; 4],
        from: &[u8],
    ) -> Result<(), GpuFault> {
        let at = self.address(place);
        for (offset, part) in self.pieces(from.len()) {
            let size = part.len();
            space.write(at.wrapping_add(offset), size, word(&from[part]), self.client)?;
        }
        Ok(())
    }
}

/// Up to eight bytes as a number.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    if let [a, b, c, d] = *bytes {
        return u32::from_le_bytes([a, b, c, d]).into();
    }
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Two channels of 8 bits, which tiles keep apart.
fn is_channel_pair(format: HardwareFormat) -> bool {
    Format::of_texture(format, ColorSwap::Wzyx, false)
        .is_some_and(|format| format.block_bytes() == 2 && format.channel_count() == 2)
}

/// How texels of a format are read and written. Tiles have the order of the format, linear images that of the swap.
pub(super) fn target_codec(
    format: HardwareFormat,
    swap: ColorSwap,
    tile_mode: TileMode,
    srgb: bool,
) -> Option<TexelCodec> {
    let named = |srgb| {
        Format::of_render_target(format, ColorSwap::Wzyx, srgb).or(Format::of_texture(
            format,
            ColorSwap::Wzyx,
            srgb,
        ))
    };
    // Formats that have no sRGB form ignore the bit.
    let codec = named(srgb).or(named(false)).or_else(|| {
        // Some formats are only known with their swap.
        Format::of_render_target(format, swap, srgb)
    })?;
    let codec = codec.codec();
    Some(if tile_mode == TileMode::Linear { codec.with_swap(swap) } else { codec })
}
