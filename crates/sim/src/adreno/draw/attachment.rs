//! Attachments: render targets, depth and stencil images, in memory or in GMEM.
//!
//! Facts: RB registers as Mesa's Turnip sets them. Never: what is written.

use super::gmem::Bin;
use super::registers::{DrawRegisters, Reg};
use crate::adreno::caches::{CachePort, CcuTag};
use crate::adreno::cp::ThreadId;
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::{AddressSpace, BandRange, Client, GpuFault, SampleMemory};
use crate::adreno::surface::{FlagParts, Surface, SurfaceParts, target_codec};
use std::ops::Range;
use unwedge_base::Generation;
use unwedge_hw::adreno::format::{ColorSwap, Format, HardwareFormat, TexelCodec};
use unwedge_hw::adreno::layout::{ImageGpu, TileMode};

/// Numbers of the depth image and of a stencil image of its own.
const DEPTH: usize = CcuTag::DEPTH as usize;
const STENCIL: usize = CcuTag::STENCIL as usize;

/// An image that samples are written to.
#[derive(Clone, Debug)]
pub(super) struct Attachment {
    pub(super) codec: TexelCodec,
    pub(super) surface: Surface,
    /// What of it is in GMEM is counted from here.
    origin: [u32; 2],
    /// Which of the attachments it is: render targets, then depth and stencil.
    number: usize,
    /// Columns and rows that its pitches leave room for, in memory.
    pub(super) extent: Option<[u32; 2]>,
}

/// Where an attachment is taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttachmentPlace {
    /// In GMEM while a bin is rendered, else in memory.
    Rendered,
    Memory,
}

/// Registers of an attachment, behind which those of its number are.
#[derive(Clone, Copy)]
struct Places {
    pitch: Reg,
    layer_pitch: Reg,
    base: Reg,
    gmem: Reg,
    behind: u32,
    /// Of the attachment.
    number: usize,
    client: Client,
}

/// How texels of an attachment are stored.
#[derive(Clone, Copy)]
struct Stored {
    codec: TexelCodec,
    format: HardwareFormat,
    tile_mode: TileMode,
    /// In memory, where it has UBWC.
    flags: Option<FlagParts>,
}

impl AdrenoMachine<'_> {
    /// The image of a render target; `None` where it has none, or one of a kind that is not known.
    pub(super) fn colour_attachment(
        &self,
        id: ThreadId,
        number: usize,
        place: AttachmentPlace,
    ) -> Option<Attachment> {
        let registers = DrawRegisters { machine: self, thread: id };
        let behind = 8 * number as u32;
        let info = registers.at(Reg::TargetInfo, behind);
        let format = HardwareFormat(info & 0xff);
        if format.0 == 0 || format.0 == 0xff {
            return None;
        }
        let tile_mode = TileMode::from_code(info >> 8 & 3)?;
        let srgb = registers.get(Reg::TargetSrgb) >> number & 1 != 0;
        let swap = ColorSwap::from_code(info >> 13);
        let in_gmem = place == AttachmentPlace::Rendered && Bin::of(&registers).is_some();
        let order = if in_gmem { TileMode::Tile3 } else { tile_mode };
        // a6xx names targets with UBWC in one register, a7xx each in its own.
        let compressed = match self.generation >= Generation::A7xx {
            true => info >> 11 & 1 != 0,
            false => registers.get(Reg::RenderControl) >> (16 + number) & 1 != 0,
        };
        let flags = compressed.then(|| {
            let behind = 3 * number as u32;
            let base = registers.address(Reg::TargetFlags, behind);
            FlagParts::of_registers(base, registers.at(Reg::TargetFlagPitch, behind))
        });
        let stored = Stored { codec: target_codec(format, swap, order, srgb)?, format, tile_mode, flags };
        let places = Places {
            pitch: Reg::TargetPitch,
            layer_pitch: Reg::TargetLayerPitch,
            base: Reg::TargetBase,
            gmem: Reg::TargetGmem,
            behind,
            number,
            client: Client::Ccu,
        };
        self.attachment(id, &stored, &places, place)
    }

    /// The depth image, with stencil where its format has some.
    pub(super) fn depth_attachment(&self, id: ThreadId, place: AttachmentPlace) -> Option<Attachment> {
        let registers = DrawRegisters { machine: self, thread: id };
        let info = registers.get(Reg::DepthFormat);
        let name = match info & 7 {
            1 => "R16_UINT",
            2 | 4 => "R32_UINT",
            _ => return None,
        };
        let places = Places {
            pitch: Reg::DepthPitch,
            layer_pitch: Reg::DepthLayerPitch,
            base: Reg::DepthBase,
            gmem: Reg::DepthGmem,
            behind: 0,
            number: DEPTH,
            client: Client::CcuDepth,
        };
        let compressed = match self.generation >= Generation::A7xx {
            true => info >> 7 & 1 != 0,
            false => registers.get(Reg::RenderControl) >> 14 & 1 != 0,
        };
        let flags = compressed.then(|| {
            let pitch = registers.get(Reg::DepthFlagPitch);
            // Its pitch has fewer bits than those of targets.
            FlagParts::of_registers(registers.address(Reg::DepthFlags, 0), pitch & !0x780)
        });
        let tile_mode = self.depth_tile_mode(info >> 5)?;
        self.attachment(id, &integers(name, tile_mode, flags)?, &places, place)
    }

    /// A stencil image of its own.
    pub(super) fn stencil_attachment(&self, id: ThreadId, place: AttachmentPlace) -> Option<Attachment> {
        let registers = DrawRegisters { machine: self, thread: id };
        let info = registers.get(Reg::StencilInfo);
        if info & 1 == 0 {
            return None;
        }
        let places = Places {
            pitch: Reg::StencilPitch,
            layer_pitch: Reg::StencilLayerPitch,
            base: Reg::StencilBase,
            gmem: Reg::StencilGmem,
            behind: 0,
            number: STENCIL,
            client: Client::CcuDepth,
        };
        let tile_mode = self.depth_tile_mode(info >> 2)?;
        self.attachment(id, &integers("R8_UINT", tile_mode, None)?, &places, place)
    }

    /// On a6xx depth and stencil are always in tiles.
    fn depth_tile_mode(&self, code: u32) -> Option<TileMode> {
        match self.generation >= Generation::A7xx {
            true => TileMode::from_code(code & 3),
            false => Some(TileMode::Tile3),
        }
    }

    fn attachment(
        &self,
        id: ThreadId,
        stored: &Stored,
        places: &Places,
        place: AttachmentPlace,
    ) -> Option<Attachment> {
        let registers = DrawRegisters { machine: self, thread: id };
        let samples = 1 << (registers.get(Reg::TargetSamples) & 3).min(2);
        let read = |reg: Reg| registers.at(reg, places.behind);
        let bin = Bin::of(&registers).filter(|_| place == AttachmentPlace::Rendered);
        let parts = match bin {
            Some(bin) => bin.surface(read(places.gmem), stored.codec, stored.format, samples),
            None => SurfaceParts {
                base: registers.address(places.base, places.behind),
                codec: stored.codec,
                format: stored.format,
                tile_mode: stored.tile_mode,
                pitch: u64::from(read(places.pitch)) << 6,
                layer_stride: u64::from(read(places.layer_pitch)) << 6,
                samples,
                size: (u32::MAX, u32::MAX),
                port: CachePort::attachment(places.client, places.number as u8),
                flags: stored.flags,
            },
        };
        let surface = Surface::new(&parts, ImageGpu::of(self.adreno).ok())?;
        let origin = bin.map_or([0; 2], |bin| bin.origin);
        let extent = bin.is_none().then(|| {
            let fits = |whole: u64, part: u64| whole.checked_div(part).map_or(u32::MAX, |n| n as u32);
            let across = fits(parts.pitch, u64::from(stored.codec.bytes() * samples));
            // An image without layers may have no layer pitch.
            let down = if parts.layer_stride == 0 { u32::MAX } else { fits(parts.layer_stride, parts.pitch) };
            [across, down]
        });
        Some(Attachment { codec: stored.codec, surface, origin, number: places.number, extent })
    }
}

impl Attachment {
    /// Reads a sample: column and row of the window, layer, sample.
    #[inline]
    pub(super) fn load(
        &self,
        memory: &mut impl SampleMemory,
        place: [u32; 4],
        to: &mut [u8],
    ) -> Result<(), GpuFault> {
        self.surface.load(memory, self.number, self.nearest(place), to)
    }

    /// Writes a sample.
    #[inline]
    pub(super) fn store(
        &self,
        memory: &mut impl SampleMemory,
        place: [u32; 4],
        from: &[u8],
    ) -> Result<(), GpuFault> {
        self.surface.store(memory, self.number, self.nearest(place), from)
    }

    /// Rows of a band of pixels whose samples have bytes of their own.
    pub(super) fn band_rows(&self) -> u32 {
        self.surface.band_rows()
    }

    /// Where pixels of the window are counted from.
    pub(super) fn origin(&self) -> [u32; 2] {
        self.origin
    }

    /// The bytes of bands of so many rows, counted from its origin, up to a pixel of the window: column, row, layer; with so many samples a
    /// pixel.
    pub(super) fn bands(
        &self,
        bands: Range<u32>,
        rows: u32,
        [x, y, layer]: [u32; 3],
        samples: u32,
    ) -> Option<Vec<BandRange>> {
        let last = [x.checked_sub(self.origin[0])?, y.checked_sub(self.origin[1])?, layer];
        self.surface.bands(self.number, bands, rows, last, samples)
    }

    /// Reads a sample while nothing draws.
    pub(super) fn peek(&self, space: &AddressSpace, place: [u32; 4], to: &mut [u8]) -> Result<(), GpuFault> {
        self.surface.read(space, self.nearest(place), to)
    }

    /// Whether what a sample holds is undefined, while something draws. Only GMEM, which has no flags, is drawn to then.
    pub(super) fn is_undefined(&self, memory: &impl SampleMemory, place: [u32; 4]) -> bool {
        memory.is_undefined(self.surface.address(self.nearest(place)), self.surface.bytes())
    }

    /// The same while nothing draws.
    pub(super) fn peeks_undefined(&self, space: &AddressSpace, place: [u32; 4]) -> bool {
        self.surface.is_undefined(space, self.nearest(place))
    }

    /// Whether it is in GMEM.
    pub(super) fn in_gmem(&self) -> bool {
        self.extent.is_none()
    }

    /// An image that pixels of the window from an origin on are in, and that no draw writes.
    pub(super) fn of_surface(surface: Surface, origin: [u32; 2]) -> Attachment {
        Attachment { codec: surface.codec, surface, origin, number: 0, extent: None }
    }

    /// Where a pixel of the window is in the image; `None` where it is before it.
    pub(super) fn place(&self, [x, y, layer, sample]: [u32; 4]) -> Option<[u32; 4]> {
        Some([x.checked_sub(self.origin[0])?, y.checked_sub(self.origin[1])?, layer, sample])
    }

    fn nearest(&self, [x, y, layer, sample]: [u32; 4]) -> [u32; 4] {
        [x.saturating_sub(self.origin[0]), y.saturating_sub(self.origin[1]), layer, sample]
    }
}

/// Depth or stencil, as numbers.
fn integers(name: &str, tile_mode: TileMode, flags: Option<FlagParts>) -> Option<Stored> {
    let format = Format::named(name)?;
    Some(Stored { codec: format.codec(), format: format.render_format()?, tile_mode, flags })
}
