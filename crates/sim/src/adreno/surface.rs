//! Images as the render back end and the 2D engine see them: where a texel's bytes are, and what they mean.
//!
//! Surfaces with UBWC keep their flags (see [`super::ubwc`]). Never: which image registers name.

use super::caches::CachePort;
use super::machine::AdrenoMachine;
use super::space::{
    AddressSpace, BandRange, DirectSamples, GpuFault, GpuFaultKind, NearSamples, ReadSamples, SampleMemory,
};
use super::ubwc::{BlockFlag, FlagPlane};
use crate::fault::MemoryAccess;
use std::ops::Range;
use unwedge_hw::adreno::format::{ColorSwap, Format, HardwareFormat, TexelCodec};
use unwedge_hw::adreno::layout::{Addresser, AddresserParts, ImageGpu, TileMode, Tiling, ubwc_block};

/// Bytes of the largest texel.
pub(super) const TEXEL: usize = 16;

/// Bytes that a region of memory leaves out because they are zero, and that are stored for what writes them, for each texel.
const ADDED_BYTES: u64 = 128;

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
    pub(super) port: CachePort,
    /// Its flags, where it has UBWC.
    pub(super) flags: Option<FlagParts>,
}

/// Where flags of UBWC are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlagParts {
    pub(super) base: u64,
    /// Bytes from a row of flags to the next.
    pub(super) pitch: u64,
    /// Bytes from a layer to the next.
    pub(super) layer_stride: u64,
}

impl FlagParts {
    /// By a buffer's address and its pitches as RB registers have them.
    pub(super) fn of_registers(base: u64, pitch: u32) -> FlagParts {
        let layer_stride = u64::from(pitch >> 11 & 0x1_ffff) << 9;
        FlagParts { base, pitch: u64::from(pitch & 0x7ff) << 6, layer_stride }
    }
}

/// An image that is read or written.
#[derive(Clone, Debug)]
pub(super) struct Surface {
    pub(super) base: u64,
    pub(super) codec: TexelCodec,
    addresser: Addresser,
    port: CachePort,
    pub(super) samples: u32,
    pub(super) size: (u32, u32),
    flags: Option<FlagPlane>,
}

impl AdrenoMachine<'_> {
    /// Begins to read and write texels one after the other, in an area of first and last column and row of an image that is written.
    pub(super) fn begin_samples(&mut self, surface: &Surface, [left, top, right, bottom]: [u32; 4]) {
        self.near = NearSamples::default();
        if left > right || top > bottom {
            return;
        }
        let rows = surface.band_rows();
        let bands =
            surface.bands(0, top / rows..bottom / rows + 1, rows, [right, bottom, 0], surface.samples);
        let pixels = u64::from(right - left + 1).saturating_mul((bottom - top + 1).into());
        let most = pixels.saturating_mul(ADDED_BYTES);
        self.space.store_ranges(&bands.unwrap_or_default(), usize::try_from(most).unwrap_or(usize::MAX));
    }

    /// Memory, near to what was accessed since [`AdrenoMachine::begin_samples`].
    pub(super) fn samples(&mut self) -> DirectSamples<'_> {
        DirectSamples::new(&mut self.space, &mut self.near, &mut self.draw_watch)
    }
}

impl Surface {
    /// `None` where texels are in an order that is not known.
    pub(super) fn new(parts: &SurfaceParts, gpu: Option<ImageGpu>) -> Option<Surface> {
        let SurfaceParts { base, codec, samples, size, mut port, .. } = *parts;
        port.tag.format = parts.format.0 as u8;
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
        let pair = samples == 1 && is_channel_pair(parts.format);
        let block = ubwc_block(codec.bytes(), samples, pair).filter(|_| parts.tile_mode == TileMode::Tile3);
        let flags = parts.flags.filter(|flags| flags.base != 0).zip(block);
        let flags = flags.map(|(FlagParts { base, pitch, layer_stride }, block)| FlagPlane {
            base,
            pitch,
            layer_stride,
            block,
        });
        Some(Surface { base, codec, addresser, port, samples, size, flags })
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
        let place = match &self.flags {
            Some(flags) => self.stored_place(flags, memory, attachment, place)?,
            None => place,
        };
        self.load_stored(memory, attachment, place, to)
    }

    /// Writes the bytes of a sample of an attachment.
    pub(super) fn store(
        &self,
        memory: &mut impl SampleMemory,
        attachment: usize,
        place: [u32; 4],
        from: &[u8],
    ) -> Result<(), GpuFault> {
        if let Some(flags) = &self.flags {
            self.store_block(flags, memory, attachment, place)?;
        }
        self.store_stored(memory, attachment, place, from)
    }

    /// The flag of a texel; [`BlockFlag::Foreign`] where it is not known.
    fn flag(
        &self,
        flags: &FlagPlane,
        memory: &mut impl SampleMemory,
        attachment: usize,
        place: [u32; 3],
    ) -> Result<BlockFlag, GpuFault> {
        match memory.load(attachment, flags.address(place), 1, self.port.in_layer(place[2]).for_flags()) {
            Ok(code) => Ok(BlockFlag::of_code(code as u8)),
            Err(fault) if fault.kind == GpuFaultKind::Unknown => Ok(BlockFlag::Foreign),
            Err(fault) => Err(fault),
        }
    }

    /// Where the value of a sample is stored: of a cleared block, in its first texel.
    fn stored_place(
        &self,
        flags: &FlagPlane,
        memory: &mut impl SampleMemory,
        attachment: usize,
        place: [u32; 4],
    ) -> Result<[u32; 4], GpuFault> {
        let [x, y, layer, _] = place;
        match self.flag(flags, memory, attachment, [x, y, layer])? {
            BlockFlag::Initial | BlockFlag::Stored => Ok(place),
            BlockFlag::Cleared => {
                let [x, y] = flags.first([x, y]);
                Ok([x, y, layer, 0])
            }
            BlockFlag::Foreign => {
                let (iova, client) = (flags.address([x, y, layer]), self.port.client);
                let (access, kind) = (MemoryAccess::Read, GpuFaultKind::Unknown);
                Err(GpuFault { iova, access, kind, client })
            }
        }
    }

    /// Makes the block of a sample one whose texels are stored, before one of them is written.
    fn store_block(
        &self,
        flags: &FlagPlane,
        memory: &mut impl SampleMemory,
        attachment: usize,
        [x, y, layer, _]: [u32; 4],
    ) -> Result<(), GpuFault> {
        let flag = self.flag(flags, memory, attachment, [x, y, layer])?;
        if flag == BlockFlag::Stored {
            return Ok(());
        }
        if flag == BlockFlag::Cleared {
            let [left, top] = flags.first([x, y]);
            let mut value = [0; TEXEL];
            let value = &mut value[..self.bytes()];
            self.load_stored(memory, attachment, [left, top, layer, 0], value)?;
            let (width, height) = flags.block;
            for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
                for sample in 0..self.samples {
                    let place = [left + column, top + row, layer, sample];
                    self.store_stored(memory, attachment, place, value)?;
                }
            }
        }
        let flag = flags.address([x, y, layer]);
        memory.store(attachment, flag, 1, BlockFlag::Stored.code().into(), self.port.in_layer(layer))
    }

    fn load_stored(
        &self,
        memory: &mut impl SampleMemory,
        attachment: usize,
        place: [u32; 4],
        to: &mut [u8],
    ) -> Result<(), GpuFault> {
        let (at, port) = (self.address(place), self.port.in_layer(place[2]));
        if to.len() <= 8 && self.addresser.second_byte().is_none() {
            let value = memory.load(attachment, at, to.len(), port)?;
            to.iter_mut().zip(value.to_le_bytes()).for_each(|(to, byte)| *to = byte);
            return Ok(());
        }
        for (offset, part) in self.pieces(to.len()) {
            let value = memory.load(attachment, at.wrapping_add(offset), part.len(), port)?;
            to[part].iter_mut().zip(value.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        }
        Ok(())
    }

    #[inline]
    fn store_stored(
        &self,
        memory: &mut impl SampleMemory,
        attachment: usize,
        place: [u32; 4],
        from: &[u8],
    ) -> Result<(), GpuFault> {
        let (at, port) = (self.address(place), self.port.in_layer(place[2]));
        if from.len() <= 8 && self.addresser.second_byte().is_none() {
            return memory.store(attachment, at, from.len(), word(from), port);
        }
        for (offset, part) in self.pieces(from.len()) {
            let size = part.len();
            let value = word(&from[part]);
            memory.store(attachment, at.wrapping_add(offset), size, value, port)?;
        }
        Ok(())
    }

    /// Rows of a band: its samples, and their flags, have bytes that no other band of this image has.
    pub(super) fn band_rows(&self) -> u32 {
        let (rows, _) = self.addresser.band();
        self.flags.map_or(rows, |flags| rows.max(flags.block.1))
    }

    /// The bytes of bands of so many rows, up to a column, a row and of a layer; `None` where rows of that length share bytes, or pixels have fewer
    /// samples than so many. Bands have a multiple of [`Surface::band_rows`].
    pub(super) fn bands(
        &self,
        attachment: usize,
        bands: Range<u32>,
        rows: u32,
        [column, row, layer]: [u32; 3],
        samples: u32,
    ) -> Option<Vec<BandRange>> {
        let client = self.port.client;
        let (width, height) = self.flags.map_or((1, 1), |flags| flags.block);
        // A block of flags is written whole.
        let [columns, row] = [(column, width), (row, height)]
            .map(|(last, size)| (u64::from(last) + 1).next_multiple_of(size.max(1).into()));
        let row = row - 1;
        if columns > self.addresser.row_texels() || samples > self.samples {
            return None;
        }
        // The bytes of the rows of the bands, of which so many have one length in bytes; of the last row only those that are used.
        let range = |base: u64, (of, bytes): (u32, u64), used: u64| -> Option<BandRange> {
            let at = |band: u32| u64::from(band).checked_mul((rows / of.max(1)).into());
            let after = row / u64::from(of.max(1)) + 1;
            let (start, end) = (at(bands.start)?, at(bands.end)?);
            let unused = if end >= after { bytes.checked_sub(used)? } else { 0 };
            let first = base.checked_add(start.checked_mul(bytes)?)?;
            let end = base.checked_add(end.min(after).checked_mul(bytes)?)? - unused;
            (first < end).then_some(BandRange { attachment, first, end, client })
        };
        let in_layer = |base: u64, stride: u64| base.checked_add(u64::from(layer).checked_mul(stride)?);
        let base = in_layer(self.address([0; 4]), self.addresser.layer_stride())?;
        let band = self.addresser.band();
        let used = if band.0 > 1 { band.1 } else { columns * u64::from(self.addresser.texel_bytes()) };
        let mut ranges = vec![range(base, band, used)?];
        if let Some(flags) = &self.flags {
            let base = in_layer(flags.base, flags.layer_stride)?;
            ranges.push(range(base, (height, flags.pitch), columns / u64::from(width.max(1)))?);
        }
        Some(ranges)
    }

    /// Reads the bytes of a sample: column, row, layer, sample.
    pub(super) fn read(&self, space: &AddressSpace, place: [u32; 4], to: &mut [u8]) -> Result<(), GpuFault> {
        self.load(&mut ReadSamples(space), 0, place, to)
    }

    /// Whether bytes of a sample are undefined: they come from GMEM, where nothing had written them.
    pub(super) fn is_undefined(&self, space: &AddressSpace, place: [u32; 4]) -> bool {
        let place = match &self.flags {
            Some(flags) => self.stored_place(flags, &mut ReadSamples(space), 0, place).unwrap_or(place),
            None => place,
        };
        let at = self.address(place);
        let mut pieces = self.pieces(self.bytes());
        pieces.any(|(offset, part)| space.memory.is_undefined(at.wrapping_add(offset), part.len()))
    }

    /// Marks bytes of a sample as undefined: those whose number `is_of` accepts.
    pub(super) fn set_undefined(
        &self,
        space: &mut AddressSpace,
        place: [u32; 4],
        is_of: impl Fn(usize) -> bool,
    ) {
        let at = self.address(place);
        for (offset, part) in self.pieces(self.bytes()) {
            for (n, _) in (0..).zip(part).filter(|(_, byte)| is_of(*byte)) {
                space.memory.set_undefined(at.wrapping_add(offset).wrapping_add(n), 1);
            }
        }
    }

    /// Clears the block that begins at a texel, where it has flags and is inside of an area of first and last column and row;
    /// whether it did.
    pub(super) fn clear_block(
        &self,
        space: &mut AddressSpace,
        [x, y, layer]: [u32; 3],
        [left, top, right, bottom]: [u32; 4],
        value: &[u8],
    ) -> Result<bool, GpuFault> {
        let Some(flags) = &self.flags else { return Ok(false) };
        let first = flags.first([x, y]);
        let last = [first[0].saturating_add(flags.block.0 - 1), first[1].saturating_add(flags.block.1 - 1)];
        if first[0] < left || first[1] < top || last[0] > right || last[1] > bottom {
            return Ok(false);
        }
        if first == [x, y] {
            self.store_stored(space, 0, [x, y, layer, 0], value)?;
            let code = BlockFlag::Cleared.code().into();
            space.write_through(flags.address([x, y, layer]), 1, code, self.port.in_layer(layer))?;
        }
        Ok(true)
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
