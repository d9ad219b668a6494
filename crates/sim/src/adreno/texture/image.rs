//! An image of a descriptor, resolved for texels: where each is, and what its bytes mean.

use super::descriptor::{Swizzle, TextureDescriptor, TextureKind};
use super::yuv::{self, Chroma};
use super::{TexelMemory, TextureFault};
use crate::adreno::space::GMEM;
use crate::adreno::ubwc::{BlockFlag, FlagPlane};
use unwedge_hw::adreno::format::{ColorSwap, Format, HardwareFormat, Numeric, PackError, TexelCodec};
use unwedge_hw::adreno::layout::{
    Addresser, BankConfig, LayoutError, TileMode, ViewLevel, ViewParts, ubwc_block,
};

/// Bytes of the largest texel or block.
pub(crate) const MOST_TEXEL: usize = 16;

/// Four components of a texel, as the registers of a shader have them.
pub(crate) type Texel = [u32; 4];

/// Which unit reads the descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageUse {
    /// The texture unit.
    Texture,
    /// Loads, stores and atomic operations: one level, no swizzle, a cube is its faces.
    Storage,
}

/// A level of an image.
#[derive(Debug, Clone)]
pub(crate) struct ImageLevel {
    pub(crate) size: ViewLevel,
    addresser: Result<Addresser, &'static str>,
    flags: Option<FlagPlane>,
}

/// An image of a descriptor.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) descriptor: TextureDescriptor,
    pub(crate) kind: TextureKind,
    pub(crate) format: Format,
    codec: TexelCodec,
    /// At least one, at most 16.
    pub(crate) levels: Vec<ImageLevel>,
    /// Layers; six for each cube.
    pub(crate) layers: u32,
    swizzle: Option<[Swizzle; 4]>,
    /// The other planes, where this is luma.
    pub(super) chroma: Option<Box<Chroma>>,
    /// What is in GMEM is counted from this pixel of the window.
    origin: [u32; 2],
}

/// Why an address is not known, in words.
fn reason(error: LayoutError) -> &'static str {
    match error {
        LayoutError::UnknownTiling { name: "TILE6_2" } => "an image in TILE6_2",
        LayoutError::UnknownTiling { .. } => "an image in tiles of a GPU whose banks are not known",
        LayoutError::Pitch { .. } => "an image in tiles whose pitch is not a multiple of theirs",
        _ => "an image in tiles with texels of this size",
    }
}

impl Image {
    /// The image of a descriptor; `None` for one without texels, which reads as zero and ignores writes.
    pub(crate) fn new(
        words: &[u32; 16],
        usage: ImageUse,
        bank: Option<BankConfig>,
        window: [u32; 2],
    ) -> Result<Option<Image>, TextureFault> {
        let descriptor = TextureDescriptor::decode(words);
        let empty = match descriptor.kind {
            Some(TextureKind::Buffer) => descriptor.elements() == 0,
            _ => descriptor.width == 0 || descriptor.height == 0,
        };
        if empty || words.iter().all(|word| *word == 0) {
            return Ok(None);
        }
        let kind =
            descriptor.kind.ok_or(TextureFault::NotEmulated("a texture of a type that is not known"))?;
        if let Some(planes) = Chroma::planes(descriptor.format)? {
            return Chroma::image(words, &descriptor, planes, bank);
        }
        let (format, codec) = format_of(&descriptor)?;
        let storage = usage == ImageUse::Storage;
        let is_3d = kind == TextureKind::D3;
        let depth = descriptor.depth.max(1);
        let layers = match kind {
            TextureKind::D3 | TextureKind::Buffer => 1,
            TextureKind::Cube if !storage => depth * 6,
            _ => depth,
        };
        let mut image = Image {
            descriptor,
            kind,
            format,
            codec,
            levels: Vec::new(),
            layers,
            swizzle: (!storage).then_some(descriptor.swizzle),
            chroma: None,
            origin: [0; 2],
        };
        if kind == TextureKind::Buffer {
            return Ok(Some(image));
        }
        let tile_mode = TileMode::from_code(descriptor.tile_mode)
            .ok_or(TextureFault::NotEmulated("an image in tiles of a mode that is not known"))?;
        // What is in GMEM is kept row by row, from the first pixel of the bin on.
        let tile_mode = match tile_mode {
            // The order of texels is the hardware's own.
            TileMode::Tile2 if !GMEM.contains(&descriptor.base) => {
                return Err(TextureFault::NotEmulated("an image in TILE6_2 that is not in GMEM"));
            }
            TileMode::Tile2 => {
                image.origin = window;
                TileMode::Linear
            }
            other => other,
        };
        let texel_bytes = format.block_bytes() * descriptor.samples;
        let pair = texel_bytes == 2 && format.channel_count() == 2 && !descriptor.is_mutable;
        let parts = ViewParts {
            width: descriptor.width,
            height: descriptor.height,
            depth: if is_3d { depth } else { 1 },
            layers,
            levels: if storage { 1 } else { descriptor.levels },
            is_3d,
            samples: descriptor.samples,
            texel_bytes,
            block: format.block_size(),
            channel_pair: pair,
            tile_mode,
            tile_all: descriptor.tile_all,
            ubwc: descriptor.flag,
            pitch: descriptor.pitch,
            // The descriptor of a storage image does not have it, and its pitch is that of its level.
            pitch_align: if storage { 1 } else { descriptor.pitch_align },
            layer_size: descriptor.array_pitch,
            least_slice: descriptor.least_layer,
            bank,
        };
        let level = |size: ViewLevel| {
            let addresser = parts.addresser(&size).map_err(reason);
            ImageLevel { size, addresser, flags: None }
        };
        image.levels = parts.levels().map(level).collect();
        image.place_flags(pair);
        Ok(Some(image))
    }

    /// Says where the flags of its levels are: those of a level after those of the level before, each in whole pages.
    fn place_flags(&mut self, pair: bool) {
        const PAGE: u64 = 4096;
        const ROWS: u64 = 64;
        let fields = self.descriptor.flags;
        let samples = self.descriptor.samples;
        let block = ubwc_block(self.format.block_bytes(), samples, pair);
        let (Some(block), true) = (block, self.descriptor.flag && fields.base != 0) else { return };
        let height = (1u64 << fields.log_height).next_multiple_of(ROWS);
        let mut base = fields.base;
        for (number, level) in (0..).zip(&mut self.levels) {
            if level.size.tile_mode != TileMode::Tile3 {
                continue;
            }
            let pitch = (fields.pitch >> number).max(1).next_multiple_of(ROWS);
            let rows = (height >> number).max(1).next_multiple_of(ROWS);
            level.flags = Some(FlagPlane { base, pitch, layer_stride: fields.layer_stride, block });
            base = base.wrapping_add((pitch * rows).next_multiple_of(PAGE));
        }
    }

    /// Where the value of a texel is stored: of a cleared block, in its first texel.
    fn stored_place(
        &self,
        memory: &mut dyn TexelMemory,
        level: u32,
        place: (u32, u32, u32),
        sample: u32,
    ) -> Result<((u32, u32, u32), u32), TextureFault> {
        let Some(flags) = self.levels.get(level as usize).and_then(|level| level.flags) else {
            return Ok((place, sample));
        };
        let (x, y, layer) = place;
        let mut code = [0];
        memory.read_texel(flags.address([x, y, layer]), &mut code)?;
        match BlockFlag::of_code(code[0]) {
            BlockFlag::Initial | BlockFlag::Stored => Ok((place, sample)),
            BlockFlag::Cleared => {
                let [x, y] = flags.first([x, y]);
                Ok(((x, y, layer), 0))
            }
            BlockFlag::Foreign => {
                Err(TextureFault::NotEmulated("compressed blocks with flags of another origin"))
            }
        }
    }

    /// Flags of its first level.
    pub(crate) fn flags(&self) -> Option<&FlagPlane> {
        self.levels.first()?.flags.as_ref()
    }

    /// Whether it is a buffer.
    pub(crate) fn is_buffer(&self) -> bool {
        self.kind == TextureKind::Buffer
    }

    /// What its components are.
    pub(crate) fn numeric(&self) -> Numeric {
        self.codec.numeric()
    }

    /// Bytes of an element of a buffer.
    pub(crate) fn element_bytes(&self) -> u32 {
        self.codec.bytes()
    }

    /// The address of the first element of a buffer.
    pub(crate) fn buffer_base(&self) -> u64 {
        let start = u64::from(self.descriptor.start_offset) * u64::from(self.codec.bytes());
        self.descriptor.base.wrapping_add(start)
    }

    /// A level; past the last one, the last.
    pub(crate) fn level(&self, level: u32) -> Option<&ImageLevel> {
        self.levels.get(level as usize).or(self.levels.last())
    }

    /// The components of 1 in the format's numbers.
    fn one(&self) -> u32 {
        if self.numeric() == Numeric::Float { 1f32.to_bits() } else { 1 }
    }

    /// Components as the descriptor orders them.
    pub(crate) fn swizzled(&self, texel: Texel) -> Texel {
        let Some(swizzle) = self.swizzle else { return texel };
        swizzle.map(|source| match source {
            Swizzle::Component(component) => texel[usize::from(component) & 3],
            Swizzle::Zero => 0,
            Swizzle::One => self.one(),
        })
    }

    /// The place of a texel in memory: the address of its first byte, and how far from it the second is where that is not the next.
    /// `None` outside the level.
    pub(crate) fn place(
        &self,
        level: u32,
        (x, y, layer): (u32, u32, u32),
        sample: u32,
    ) -> Result<Option<(u64, Option<u32>)>, TextureFault> {
        let Some(level) = self.levels.get(level as usize) else { return Ok(None) };
        let (width, height) = self.codec.block_size();
        if x >= level.size.width || y >= level.size.height {
            return Ok(None);
        }
        let (Some(x), Some(y)) = (x.checked_sub(self.origin[0]), y.checked_sub(self.origin[1])) else {
            return Ok(None);
        };
        let addresser = level.addresser.as_ref().map_err(|what| TextureFault::NotEmulated(what))?;
        let offset = addresser.checked_offset(x / width, y / height, layer, sample);
        Ok(offset.map(|offset| (self.descriptor.base.wrapping_add(offset), addresser.second_byte())))
    }

    /// A texel before the descriptor's swizzle; `None` outside the level.
    pub(crate) fn texel(
        &self,
        memory: &mut dyn TexelMemory,
        level: u32,
        place: (u32, u32, u32),
        sample: u32,
    ) -> Result<Option<Texel>, TextureFault> {
        self.read_texel(&self.codec, memory, level, place, sample)
    }

    /// The same as a sampler reads it, whose channels have 8 bits or more; with chroma between its texels where that is asked for.
    pub(crate) fn sampled_texel(
        &self,
        memory: &mut dyn TexelMemory,
        level: u32,
        place: (u32, u32, u32),
        chroma_linear: bool,
    ) -> Result<Option<Texel>, TextureFault> {
        if chroma_linear && self.has_chroma_pairs() {
            return Err(TextureFault::NotEmulated("filtered chroma of a YUV image without planes"));
        }
        let texel = self.read_texel(&self.codec.widened(), memory, level, place, 0)?;
        self.with_chroma(texel, memory, place, chroma_linear)
    }

    /// A texel of luma with its chroma, if the image has such planes.
    pub(crate) fn with_chroma(
        &self,
        texel: Option<Texel>,
        memory: &mut dyn TexelMemory,
        place: (u32, u32, u32),
        linear: bool,
    ) -> Result<Option<Texel>, TextureFault> {
        let (Some(chroma), Some([luma, ..])) = (&self.chroma, texel) else { return Ok(texel) };
        let [cb, cr] = chroma.at(memory, [place.0, place.1], linear)?;
        Ok(Some([luma, cb.to_bits(), cr.to_bits(), 1f32.to_bits()]))
    }

    /// Whether two texels of luma share one of chroma in a block.
    fn has_chroma_pairs(&self) -> bool {
        self.format.block_size() == (2, 1)
    }

    fn read_texel(
        &self,
        codec: &TexelCodec,
        memory: &mut dyn TexelMemory,
        level: u32,
        place: (u32, u32, u32),
        sample: u32,
    ) -> Result<Option<Texel>, TextureFault> {
        if self.place(level, place, sample)?.is_none() {
            return Ok(None);
        }
        let (stored, sample) = self.stored_place(memory, level, place, sample)?;
        let Some((address, second)) = self.place(level, stored, sample)? else { return Ok(None) };
        let mut bytes = [0; MOST_TEXEL];
        let bytes = &mut bytes[..(codec.bytes() as usize).min(MOST_TEXEL)];
        match second {
            None => memory.read_texel(address, bytes)?,
            Some(apart) => {
                for (at, byte) in (0..).zip(bytes.iter_mut()) {
                    let at = address.wrapping_add(u64::from(apart) * at);
                    memory.read_texel(at, std::slice::from_mut(byte))?;
                }
            }
        }
        let (width, height) = codec.block_size();
        let texel = codec.unpack(bytes, place.0 % width, place.1 % height);
        Ok(if self.has_chroma_pairs() { texel.map(yuv::of_pair) } else { texel })
    }

    /// An element of a buffer before the swizzle; `None` past its end.
    pub(crate) fn element(
        &self,
        memory: &mut dyn TexelMemory,
        index: u32,
    ) -> Result<Option<Texel>, TextureFault> {
        if index >= self.descriptor.elements() {
            return Ok(None);
        }
        let mut bytes = [0; MOST_TEXEL];
        let bytes = &mut bytes[..(self.codec.bytes() as usize).min(MOST_TEXEL)];
        let at = u64::from(index) * u64::from(self.codec.bytes());
        memory.read_texel(self.buffer_base().wrapping_add(at), bytes)?;
        Ok(self.codec.unpack(bytes, 0, 0))
    }

    /// The bytes of a texel with these components.
    pub(crate) fn pack(&self, texel: Texel, bytes: &mut [u8; MOST_TEXEL]) -> Result<usize, TextureFault> {
        match self.codec.pack(texel, bytes) {
            Ok(()) => Ok((self.codec.bytes() as usize).min(MOST_TEXEL)),
            Err(PackError::Compressed | PackError::Bytes(_)) => {
                Err(TextureFault::NotEmulated("a store to an image with blocks"))
            }
        }
    }
}

/// The format of a descriptor, and what reads its texels.
fn format_of(descriptor: &TextureDescriptor) -> Result<(Format, TexelCodec), TextureFault> {
    let number = HardwareFormat(descriptor.format);
    // Tiles have their channels in the format's own order.
    let linear = descriptor.tile_mode == TileMode::Linear.code();
    let swap = if linear || descriptor.is_mutable { descriptor.swap } else { ColorSwap::Wzyx };
    let plain = Format::of_texture(number, ColorSwap::Wzyx, descriptor.srgb)
        .or_else(|| Format::of_texture(number, ColorSwap::Wzyx, false));
    let (format, codec) = match plain {
        Some(format) => (format, format.codec().with_swap(swap)),
        None => {
            let format = Format::of_texture(number, descriptor.swap, descriptor.srgb)
                .ok_or(TextureFault::NotEmulated("an image of this format"))?;
            (format, format.codec())
        }
    };
    if codec.bytes() as usize > MOST_TEXEL || codec.bytes() == 0 {
        return Err(TextureFault::NotEmulated("an image of this format"));
    }
    Ok((format, codec))
}
