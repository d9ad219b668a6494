//! The 2D engine: CP_BLIT reads a rectangle of one image, or takes one colour, and writes a rectangle of another.
//!
//! Facts: registers GRAS_2D, RB_2D, SP_2D and SP_PS_2D as Mesa's Turnip programs them.

use super::cp::{CpStop, ThreadId};
use super::draw::TargetImage;
use super::draw_watch::WatchedBlit;
use super::machine::{AdrenoMachine, Note};
use super::space::{Client, GpuFault};
use super::surface::{FlagParts, Surface, SurfaceParts, TEXEL, target_codec};
use unwedge_hw::Gpu;
use unwedge_hw::adreno::format::{ColorSwap, Format, HardwareFormat, Numeric, TexelCodec};
use unwedge_hw::adreno::format::{f16_to_f32, f32_to_f16, linear_to_srgb8, srgb8_to_linear};
use unwedge_hw::adreno::layout::{ImageGpu, TileMode};

/// The engine's registers, where the GPU has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlitPlaces {
    control: u32,
    source: [u32; 4],
    destination: [u32; 2],
    scissor: [u32; 2],
    dst_info: u32,
    dst: u32,
    dst_pitch: u32,
    solid: u32,
    src_info: u32,
    src_size: u32,
    src: u32,
    src_pitch: u32,
    dst_flags: u32,
    src_flags: u32,
    /// TPL1_2D_SRC_CNTL (a7xx).
    src_control: Option<u32>,
}

impl BlitPlaces {
    pub(crate) fn new(gpu: Gpu<'_>) -> Option<BlitPlaces> {
        let reg = |name: &str| gpu.reg_offset(name);
        Some(BlitPlaces {
            control: reg("RB_2D_BLIT_CNTL")?,
            source: [
                reg("GRAS_2D_SRC_TL_X")?,
                reg("GRAS_2D_SRC_TL_Y")?,
                reg("GRAS_2D_SRC_BR_X")?,
                reg("GRAS_2D_SRC_BR_Y")?,
            ],
            destination: [reg("GRAS_2D_DST_TL")?, reg("GRAS_2D_DST_BR")?],
            scissor: [reg("GRAS_2D_RESOLVE_CNTL_1")?, reg("GRAS_2D_RESOLVE_CNTL_2")?],
            dst_info: reg("RB_2D_DST_INFO")?,
            dst: reg("RB_2D_DST")?,
            dst_pitch: reg("RB_2D_DST_PITCH")?,
            solid: reg("RB_2D_SRC_SOLID_C0")?,
            src_info: reg("SP_PS_2D_SRC_INFO")?,
            src_size: reg("SP_PS_2D_SRC_SIZE")?,
            src: reg("SP_PS_2D_SRC")?,
            src_pitch: reg("SP_PS_2D_SRC_PITCH")?,
            dst_flags: reg("RB_2D_DST_FLAGS")?,
            src_flags: reg("SP_PS_2D_SRC_FLAGS")?,
            src_control: reg("TPL1_2D_SRC_CNTL"),
        })
    }
}

/// What the registers of the source hold.
struct SourceRegisters {
    info: SurfaceInfo,
    size: (u32, u32),
    pitch: u64,
    first_texel: u32,
}

impl BlitPlaces {
    fn source_registers(&self, read: impl Fn(u32) -> u32) -> SourceRegisters {
        let size = read(self.src_size);
        SourceRegisters {
            info: SurfaceInfo(read(self.src_info)),
            size: (size & 0x7fff, size >> 15 & 0x7fff),
            pitch: u64::from(read(self.src_pitch) >> 3 & 0x1f_ffff),
            first_texel: self.src_control.map_or(0, read) >> 16 & 0x3f,
        }
    }
}

/// What texels are between the source and the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Raw,
    Unorm8Srgb,
    Float16,
    Float32,
    Int { bits: u32 },
    Unorm8,
}

impl Between {
    /// By its number in `a6xx_2d_ifmt`.
    fn of(code: u32) -> Option<Between> {
        Some(match code {
            0 => Between::Raw,
            1 => Between::Unorm8Srgb,
            3 => Between::Float16,
            4 => Between::Float32,
            5 => Between::Int { bits: 8 },
            6 => Between::Int { bits: 16 },
            7 => Between::Int { bits: 32 },
            0x10 => Between::Unorm8,
            _ => return None,
        })
    }

    /// A component of the colour in the registers, as a texel has it.
    fn solid(self, value: u32, component: usize, signed: bool) -> u32 {
        match self {
            Between::Unorm8 | Between::Unorm8Srgb if signed => {
                (f32::from(value as u8 as i8) / 127.0).max(-1.0).to_bits()
            }
            Between::Unorm8Srgb if component < 3 => srgb8_to_linear(value as u8).to_bits(),
            Between::Unorm8 | Between::Unorm8Srgb => (f32::from(value as u8) / 255.0).to_bits(),
            Between::Float16 => f16_to_f32(value as u16).to_bits(),
            Between::Raw | Between::Float32 | Between::Int { .. } => value,
        }
    }

    /// A component after it went through.
    fn through(self, value: u32, component: usize, numeric: Numeric) -> u32 {
        match (self, numeric) {
            (Between::Float16, Numeric::Float) => f16_to_f32(f32_to_f16(f32::from_bits(value))).to_bits(),
            // The result of a filter; a value that was read is one of the 256 already.
            (Between::Unorm8Srgb, Numeric::Float) if component < 3 => {
                srgb8_to_linear(linear_to_srgb8(f32::from_bits(value))).to_bits()
            }
            _ => value,
        }
    }
}

/// Fields of RB_2D_DST_INFO and SP_PS_2D_SRC_INFO.
#[derive(Clone, Copy)]
struct SurfaceInfo(u32);

impl SurfaceInfo {
    fn format(self) -> HardwareFormat {
        HardwareFormat(self.0 & 0xff)
    }
    fn tile_mode(self) -> Option<TileMode> {
        TileMode::from_code(self.0 >> 8 & 3)
    }
    fn swap(self) -> ColorSwap {
        ColorSwap::from_code(self.0 >> 10)
    }
    fn has_flags(self) -> bool {
        self.0 >> 12 & 1 != 0
    }
    fn srgb(self) -> bool {
        self.0 >> 13 & 1 != 0
    }
    fn samples(self) -> u32 {
        1 << (self.0 >> 14 & 3)
    }
    fn filters(self) -> bool {
        self.0 >> 16 & 1 != 0
    }
    fn averages(self) -> bool {
        self.0 >> 18 & 1 != 0
    }

    fn codec(self) -> Option<TexelCodec> {
        target_codec(self.format(), self.swap(), self.tile_mode()?, self.srgb())
    }
}

/// What a blit does, as the registers say it.
struct Blit {
    /// First and last column and row, of what is written.
    area: [u32; 4],
    /// First and last column and row, of what is read; the origin is that of the whole rectangle.
    from: [i32; 4],
    /// The whole rectangle.
    to: [u32; 4],
    rotation: u32,
    mask: u32,
    between: Between,
}

/// Numbers of the images of a blit among the places that accesses are near to.
const SOURCE: usize = 0;
const DESTINATION: usize = 1;

impl AdrenoMachine<'_> {
    /// Executes a blit of the registers as they are. One that asks for what is not known is left out, with a note.
    pub(crate) fn blit(&mut self, id: ThreadId) -> Result<(), CpStop> {
        match self.try_blit(id) {
            Some(result) => result,
            None => {
                self.note(Note::NotBlitted);
                Ok(())
            }
        }
    }

    fn try_blit(&mut self, id: ThreadId) -> Option<Result<(), CpStop>> {
        let places = self.blit_places?;
        let read = |reg| self.read_register(id, reg);
        let control = read(places.control);
        let gpu = ImageGpu::of(self.adreno).ok();
        let info = SurfaceInfo(read(places.dst_info));
        let dst_base = self.register_pair(id, Some(places.dst));
        let pitch = u64::from(read(places.dst_pitch) & 0xffff) << 6;
        let flags = |info: SurfaceInfo, first: u32| {
            // It has no layers.
            let pitch = u64::from(read(first + 2) & 0xff) << 6;
            let base = self.register_pair(id, Some(first));
            info.has_flags().then_some(FlagParts { base, pitch, layer_stride: 0 })
        };
        let dst = surface(info, dst_base, pitch, flags(info, places.dst_flags), None, gpu, Client::Ccu)?;
        let corner = |word: u32| [word & 0x3fff, word >> 16 & 0x3fff];
        let ([x1, y1], [x2, y2]) = (corner(read(places.destination[0])), corner(read(places.destination[1])));
        let to = [x1, y1, x2, y2];
        let area = if control >> 16 & 1 != 0 {
            let ([left, top], [right, bottom]) =
                (corner(read(places.scissor[0])), corner(read(places.scissor[1])));
            [x1.max(left), y1.max(top), x2.min(right), y2.min(bottom)]
        } else {
            to
        };
        let between = Between::of(control >> 24 & 0x1f)?;
        let coordinate = |reg| ((read(reg) << 7) as i32) >> 15;
        let blit = Blit {
            area,
            from: places.source.map(coordinate),
            to,
            rotation: control & 7,
            mask: control >> 20 & 0xf,
            between,
        };
        let source = places.source_registers(read);
        let src_flags = flags(source.info, places.src_flags);
        let solid = [0, 1, 2, 3].map(|n| read(places.solid + n));
        let [width, height] = [2, 3].map(|n| u64::from(area[n] + 1).saturating_sub(u64::from(area[n - 2])));
        if let Err(stop) = self.spend(width.saturating_mul(height).saturating_mul(u64::from(dst.samples))) {
            return Some(Err(stop));
        }
        self.begin_samples(&dst, area);
        if control >> 7 & 1 != 0 {
            let signed = is_signed(info.format());
            let colour = [0, 1, 2, 3].map(|n| between.solid(solid[n], n, signed));
            let end = self.watched_blit(&blit, &dst, true, |machine| machine.fill(&blit, &dst, colour));
            return Some(end.map_err(CpStop::from));
        }
        let SourceRegisters { info: src_info, size, pitch: src_pitch, first_texel } = source;
        // A source that is a buffer may begin between the addresses that fit into the register.
        let first = u64::from(first_texel) * u64::from(src_info.codec()?.bytes());
        let base = self.register_pair(id, Some(places.src)).wrapping_add(first);
        let src = surface(src_info, base, src_pitch, src_flags, Some(size), gpu, Client::Tp)?;
        let same = src_info.format() == info.format() && src_info.srgb() == info.srgb();
        let raw = same && blit.mask == 0xf && !src_info.filters() && src_info.swap() == info.swap();
        let end =
            self.watched_blit(&blit, &dst, false, |machine| machine.copy(&blit, &src, &dst, src_info, raw));
        Some(end.map_err(CpStop::from))
    }

    /// Does the work between the two calls for whoever watches.
    fn watched_blit(
        &mut self,
        blit: &Blit,
        dst: &Surface,
        fills: bool,
        work: impl FnOnce(&mut Self) -> Result<(), GpuFault>,
    ) -> Result<(), GpuFault> {
        if self.draw_watch.is_empty() {
            return work(self);
        }
        let [left, top, right, bottom] = blit.area;
        let image = TargetImage::of_surface(dst.clone(), [0; 2], [[left, top], [right, bottom]], false);
        let watched = WatchedBlit { fills, image };
        self.tell_watch(|watch, machine| watch.blit(machine, &watched, false));
        work(self)?;
        self.tell_watch(|watch, machine| watch.blit(machine, &watched, true));
        Ok(())
    }

    fn fill(&mut self, blit: &Blit, dst: &Surface, colour: [u32; 4]) -> Result<(), GpuFault> {
        let mut packed = [0; TEXEL];
        let bytes = dst.codec.bytes() as usize;
        if dst.codec.pack(colour, &mut packed[..bytes.min(TEXEL)]).is_err() {
            return Ok(());
        }
        let [left, top, right, bottom] = blit.area;
        for y in top..=bottom {
            for x in left..=right {
                let whole = blit.mask == 0xf;
                if whole && dst.clear_block(&mut self.space, [x, y, 0], blit.area, &packed[..bytes])? {
                    continue;
                }
                for sample in 0..dst.samples {
                    self.store_texel(dst, [x, y, sample], &packed[..bytes], colour, blit.mask)?;
                }
            }
        }
        Ok(())
    }

    fn copy(
        &mut self,
        blit: &Blit,
        src: &Surface,
        dst: &Surface,
        info: SurfaceInfo,
        raw: bool,
    ) -> Result<(), GpuFault> {
        let [left, top, right, bottom] = blit.area;
        let averages = info.averages() && src.samples > 1;
        for y in top..=bottom {
            for x in left..=right {
                let (u, v) = blit.source(x, y);
                let (column, row) = (u.floor() as i64, v.floor() as i64);
                if raw && !averages {
                    let mut texel = [0; TEXEL];
                    let bytes = src.codec.bytes() as usize;
                    for sample in 0..dst.samples {
                        let from = if src.samples == dst.samples { sample } else { 0 };
                        self.load_texel(src, column, row, from, &mut texel[..bytes])?;
                        self.store_texel(dst, [x, y, sample], &texel[..bytes], [0; 4], 0xf)?;
                    }
                    continue;
                }
                let colour = if info.filters() {
                    self.filtered(src, u - 0.5, v - 0.5)?
                } else if averages {
                    self.averaged(src, column, row)?
                } else {
                    self.texel(src, column, row, 0)?
                };
                let numeric = src.codec.numeric();
                let mut component = 0;
                let colour = colour.map(|value| {
                    component += 1;
                    blit.between.through(value, component - 1, numeric)
                });
                let mut packed = [0; TEXEL];
                let bytes = dst.codec.bytes() as usize;
                if dst.codec.pack(colour, &mut packed[..bytes.min(TEXEL)]).is_err() {
                    return Ok(());
                }
                for sample in 0..dst.samples {
                    self.store_texel(dst, [x, y, sample], &packed[..bytes], colour, blit.mask)?;
                }
            }
        }
        Ok(())
    }

    /// The texel at a place, components as bits.
    fn texel(&mut self, src: &Surface, x: i64, y: i64, sample: u32) -> Result<[u32; 4], GpuFault> {
        let mut bytes = [0; TEXEL];
        let size = src.codec.bytes() as usize;
        self.load_texel(src, x, y, sample, &mut bytes[..size])?;
        Ok(src.codec.unpack(&bytes[..size], 0, 0).unwrap_or_default())
    }

    /// Four texels, weighted by how near they are.
    fn filtered(&mut self, src: &Surface, u: f32, v: f32) -> Result<[u32; 4], GpuFault> {
        let (left, top) = (u.floor(), v.floor());
        let (across, down) = (u - left, v - top);
        let mut sum = [0f32; 4];
        for (dx, dy, weight) in [
            (0, 0, (1.0 - across) * (1.0 - down)),
            (1, 0, across * (1.0 - down)),
            (0, 1, (1.0 - across) * down),
            (1, 1, across * down),
        ] {
            let texel = self.texel(src, left as i64 + dx, top as i64 + dy, 0)?;
            for (sum, value) in sum.iter_mut().zip(texel) {
                *sum += weight * f32::from_bits(value);
            }
        }
        Ok(sum.map(f32::to_bits))
    }

    /// The mean of the samples of a texel; of integers the first sample.
    fn averaged(&mut self, src: &Surface, x: i64, y: i64) -> Result<[u32; 4], GpuFault> {
        if src.codec.numeric() != Numeric::Float {
            return self.texel(src, x, y, 0);
        }
        let mut sum = [0f32; 4];
        for sample in 0..src.samples {
            let texel = self.texel(src, x, y, sample)?;
            sum.iter_mut().zip(texel).for_each(|(sum, value)| *sum += f32::from_bits(value));
        }
        Ok(sum.map(|sum| (sum / src.samples as f32).to_bits()))
    }

    /// The bytes of a texel. Beyond the image the nearest texel is read.
    fn load_texel(
        &mut self,
        src: &Surface,
        x: i64,
        y: i64,
        sample: u32,
        to: &mut [u8],
    ) -> Result<(), GpuFault> {
        let inside = |at: i64, size: u32| at.clamp(0, i64::from(size.max(1)) - 1) as u32;
        let (x, y) = (inside(x, src.size.0), inside(y, src.size.1));
        src.load(&mut self.samples(), SOURCE, [x, y, 0, sample], to)
    }

    /// Writes a texel; where the mask leaves components out, those of the texel that is there stay.
    fn store_texel(
        &mut self,
        dst: &Surface,
        [x, y, sample]: [u32; 3],
        packed: &[u8],
        colour: [u32; 4],
        mask: u32,
    ) -> Result<(), GpuFault> {
        let place = [x, y, 0, sample];
        let mut merged = [0; TEXEL];
        let packed = if mask == 0xf {
            packed
        } else {
            let mut old = [0; TEXEL];
            let bytes = packed.len();
            dst.load(&mut self.samples(), DESTINATION, place, &mut old[..bytes])?;
            let kept = dst.codec.unpack(&old[..bytes], 0, 0).unwrap_or_default();
            let mut both = kept;
            (0..4).filter(|n| mask >> n & 1 != 0).for_each(|n| both[n] = colour[n]);
            if dst.codec.pack(both, &mut merged[..bytes]).is_err() {
                return Ok(());
            }
            &merged[..bytes]
        };
        dst.store(&mut self.samples(), DESTINATION, place, packed)
    }
}

impl Blit {
    /// Where the texel for a place of the destination is read: its middle, in texels of the source.
    fn source(&self, x: u32, y: u32) -> (f32, f32) {
        let [left, top, right, bottom] = self.to;
        let (width, height) = ((right - left + 1) as f32, (bottom - top + 1) as f32);
        let (across, down) = ((x - left) as f32 + 0.5, (y - top) as f32 + 0.5);
        let (across, down) = (across / width, down / height);
        let (across, down) = match self.rotation {
            1 => (down, 1.0 - across),
            2 => (1.0 - across, 1.0 - down),
            3 => (1.0 - down, across),
            4 => (1.0 - across, down),
            5 => (across, 1.0 - down),
            _ => (across, down),
        };
        let [left, top, right, bottom] = self.from;
        let (width, height) = ((right - left + 1) as f32, (bottom - top + 1) as f32);
        (left as f32 + across * width, top as f32 + down * height)
    }
}

/// A format whose 8-bit channels have signs: what a solid colour of such a destination has as well.
fn is_signed(format: HardwareFormat) -> bool {
    Format::of_render_target(format, ColorSwap::Wzyx, false)
        .is_some_and(|format| format.name().ends_with("_SNORM"))
}

fn surface(
    info: SurfaceInfo,
    base: u64,
    pitch: u64,
    flags: Option<FlagParts>,
    size: Option<(u32, u32)>,
    gpu: Option<ImageGpu>,
    client: Client,
) -> Option<Surface> {
    let parts = SurfaceParts {
        base,
        codec: info.codec()?,
        format: info.format(),
        tile_mode: info.tile_mode()?,
        pitch,
        layer_stride: 0,
        samples: info.samples(),
        size: size.unwrap_or((u32::MAX, u32::MAX)),
        // The destination is tagged as the first layer of the first render target.
        port: client.into(),
        flags,
    };
    Surface::new(&parts, gpu)
}
