//! GMEM: the on-chip memory that bins are rendered in, and the events that load, store and clear it.
//!
//! Inside of it texels are kept row by row with their samples side by side, in the order of their formats: hardware has an order
//! of its own, which nothing but its own units sees. Never: draws.

use super::pipeline::BINNING;
use super::registers::{DrawRegisters, Reg};
use super::target::TargetImage;
use crate::adreno::caches::{CachePort, CcuTag};
use crate::adreno::cp::{CpStop, ThreadId};
use crate::adreno::draw_watch::WatchedResolve;
use crate::adreno::machine::{AdrenoMachine, Note};
use crate::adreno::space::{Client, GMEM};
use crate::adreno::surface::{FlagParts, Surface, SurfaceParts, TEXEL, target_codec};
use crate::memory::{Load, SimMemory};
use unwedge_base::Generation;
use unwedge_hw::adreno::format::{ColorSwap, HardwareFormat, Numeric, TexelCodec};
use unwedge_hw::adreno::layout::{ImageGpu, TileMode};

/// What it holds before anything is written.
const UNWRITTEN_BYTE: u8 = 0xd5;
/// RB_UNKNOWN_8812 (a7xx) while draws go to memory.
const TO_MEMORY: u32 = 0x3ff;

/// Numbers of what is in GMEM, and in memory, among the places that accesses are near to.
const INSIDE: usize = 0;
const OUTSIDE: usize = 1;

/// Makes GMEM accessible, once. Where undefined bytes are tracked, all of it is undefined at first.
pub(super) fn map(memory: &mut SimMemory, tracked: bool) {
    const SIZE: u64 = GMEM.end - GMEM.start;
    // What a capture maps there takes its place.
    if memory.load(GMEM.start, 1) == Load::Unmapped
        && memory.map_filled(GMEM.start, SIZE, UNWRITTEN_BYTE).is_ok()
        && tracked
    {
        memory.set_undefined(GMEM.start, SIZE);
    }
}

/// The bin that is rendered in GMEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bin {
    /// Pixels across and down.
    size: [u32; 2],
    /// Its first pixel in the window.
    pub(super) origin: [u32; 2],
}

fn corner(word: u32) -> [u32; 2] {
    [word & 0x3fff, word >> 16 & 0x3fff]
}

impl Bin {
    /// `None` while draws go to memory.
    pub(super) fn of(registers: &DrawRegisters<'_, '_>) -> Option<Bin> {
        let control = registers.get(Reg::BinControl);
        let size = [32 * (control & 0x3f), 16 * (control >> 8 & 0x7f)];
        let in_memory = match registers.machine.generation >= Generation::A7xx {
            true => registers.get(Reg::RenderLocation) == TO_MEMORY,
            false => control >> 22 & 3 != 0,
        };
        let origin = corner(registers.get(Reg::WindowOffset));
        (!in_memory && size[0] != 0 && size[1] != 0).then_some(Bin { size, origin })
    }

    /// What is at an offset of GMEM.
    pub(super) fn surface(
        &self,
        offset: u32,
        codec: TexelCodec,
        format: HardwareFormat,
        samples: u32,
    ) -> SurfaceParts {
        let pitch = u64::from(self.size[0]) * u64::from(codec.bytes() * samples);
        SurfaceParts {
            // The low bits of the register do not count.
            base: GMEM.start + u64::from(offset & !0xfff),
            codec,
            format,
            tile_mode: TileMode::Linear,
            pitch,
            layer_stride: (pitch * u64::from(self.size[1])).next_multiple_of(4096),
            samples,
            size: (self.size[0], self.size[1]),
            port: Client::Ccu.into(),
            flags: None,
        }
    }
}

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Work {
    loads: bool,
    stores: bool,
    clears: bool,
}

impl Work {
    const CLEAR: Work = Work { loads: false, stores: false, clears: true };
}

/// An event, as registers describe it.
struct Resolve {
    work: Work,
    /// What is in GMEM, and in memory.
    inside: Surface,
    outside: Surface,
    /// A bin is rendered: both are not the same.
    in_bin: bool,
    origin: [u32; 2],
    /// First and last pixel in the window.
    first: [u32; 2],
    last: [u32; 2],
    first_sample: bool,
    /// Nothing but a clear, and not of GMEM.
    clears_memory: bool,
    /// Bytes of a texel, and which of their bits are cleared.
    clear: [u8; TEXEL],
    clear_bits: u128,
}

impl Resolve {
    /// As whoever watches sees it.
    fn watched(&self, iova: u64) -> WatchedResolve {
        let area = [self.first, self.last];
        WatchedResolve {
            iova,
            loads: self.work.loads,
            stores: self.work.stores,
            clears: self.work.clears,
            inside: TargetImage::of_surface(self.inside.clone(), self.origin, area, self.in_bin),
            outside: TargetImage::of_surface(self.outside.clone(), [0; 2], area, false),
        }
    }
}

impl AdrenoMachine<'_> {
    /// BLIT and CCU_RESOLVE: GMEM is loaded, stored or cleared. One that asks for what is not known is left out, with a note.
    pub(crate) fn resolve_event(&mut self, id: ThreadId, iova: u64) -> Result<(), CpStop> {
        // The streams of draws, which the binning pass executes as well, may hold clears. It touches no pixels.
        if self.thread(id).marker == Some(BINNING) {
            return Ok(());
        }
        let Some(resolve) = self.resolve(id) else {
            self.note(Note::NotRendered);
            return Ok(());
        };
        map(&mut self.space.memory, self.tracks_undefined);
        let [width, height] =
            [0, 1].map(|n| u64::from(resolve.last[n] + 1).saturating_sub(resolve.first[n].into()));
        self.spend(width.saturating_mul(height).saturating_mul(resolve.inside.samples.into()))?;
        self.tell_watch(|watch, machine| watch.resolve(machine, &resolve.watched(iova), false));
        let [[left, top], [right, bottom]] = [resolve.first, resolve.last];
        self.begin_samples(&resolve.outside, [left, top, right, bottom]);
        for y in resolve.first[1]..=resolve.last[1] {
            for x in resolve.first[0]..=resolve.last[0] {
                self.resolve_pixel(&resolve, x, y)?;
            }
        }
        self.tell_watch(|watch, machine| watch.resolve(machine, &resolve.watched(iova), true));
        Ok(())
    }

    fn resolve(&self, id: ThreadId) -> Option<Resolve> {
        let registers = DrawRegisters { machine: self, thread: id };
        let info = registers.get(Reg::BlitInfo);
        let work = match info & 3 {
            0 => Work { loads: false, stores: true, clears: false },
            1 => Work { loads: false, stores: true, clears: true },
            2 => Work::CLEAR,
            _ => Work { loads: true, stores: false, clears: false },
        };
        let target = registers.get(Reg::BlitTargetInfo);
        let format = HardwareFormat(target >> 7 & 0xff);
        let swap = ColorSwap::from_code(target >> 5);
        let tile_mode = TileMode::from_code(target & 3)?;
        let gpu = ImageGpu::of(self.adreno).ok();
        let outside = SurfaceParts {
            base: registers.address(Reg::BlitTarget, 0),
            codec: target_codec(format, swap, tile_mode, false)?,
            format,
            tile_mode,
            pitch: u64::from(registers.get(Reg::BlitTargetPitch)) << 6,
            layer_stride: 0,
            samples: 1 << (target >> 3 & 3),
            size: (u32::MAX, u32::MAX),
            port: CachePort::attachment(Client::Ccu, CcuTag::RESOLVE),
            flags: (target >> 2 & 1 != 0).then(|| {
                FlagParts::of_registers(
                    registers.address(Reg::BlitFlags, 0),
                    registers.get(Reg::BlitFlagPitch),
                )
            }),
        };
        let codec = target_codec(format, swap, TileMode::Tile3, false)?;
        let samples = 1 << (registers.get(Reg::BlitGmemSamples) >> 3 & 3);
        let a7xx = self.generation >= Generation::A7xx;
        // What is nothing but a clear has a register of its own on a7xx.
        let of_memory = a7xx && work == Work::CLEAR && registers.get(Reg::BlitClearMode) & 1 == 0;
        let bin = Bin::of(&registers).filter(|_| !of_memory);
        let clears_memory = bin.is_none();
        let origin = if clears_memory { [0; 2] } else { corner(registers.get(Reg::BlitWindowOffset)) };
        let [mut first, mut last] =
            [Reg::BlitScissorFirst, Reg::BlitScissorLast].map(|reg| corner(registers.get(reg)));
        let inside = match bin {
            Some(bin) => {
                for axis in 0..2 {
                    first[axis] = first[axis].max(origin[axis]);
                    last[axis] = last[axis].min(origin[axis] + bin.size[axis] - 1);
                }
                Surface::new(&bin.surface(registers.get(Reg::BlitGmem), codec, format, samples), None)?
            }
            // Without a bin it is memory that is cleared.
            None => Surface::new(&outside, gpu)?,
        };
        let mut clear = [0; TEXEL];
        for (word, bytes) in (0..).zip(clear.chunks_exact_mut(4)) {
            bytes.copy_from_slice(&registers.at(Reg::BlitClear, word).to_le_bytes());
        }
        if clears_memory {
            exchange(&codec, &outside.codec, &mut clear[..codec.bytes() as usize]);
        }
        let mask = (info >> 4 & 0xf) as u8;
        // Of the buffer of depth and stencil together, a7xx names these two; else bytes are components.
        let clear_bits = match (info >> 12 & 0xf, codec.bytes()) {
            (8, 4) if mask & 3 != 0 && mask & !3 == 0 && is_depth_stencil(format) => {
                let depth = if mask & 1 != 0 { 0xff_ffff } else { 0 };
                depth | if mask & 2 != 0 { 0xff00_0000 } else { 0 }
            }
            _ if mask == 0xf => u128::MAX,
            _ => inside.codec.bits_of(mask),
        };
        Some(Resolve {
            work,
            inside,
            outside: Surface::new(&outside, gpu)?,
            in_bin: !clears_memory,
            origin,
            first,
            last,
            first_sample: info >> 2 & 1 != 0,
            clears_memory: clears_memory && work.clears && !work.stores,
            clear,
            clear_bits,
        })
    }

    fn resolve_pixel(&mut self, resolve: &Resolve, x: u32, y: u32) -> Result<(), CpStop> {
        let Resolve { inside, outside, .. } = resolve;
        let (column, row) = (x - resolve.origin[0], y - resolve.origin[1]);
        let size = inside.bytes();
        if resolve.clears_memory && resolve.clear_bits == u128::MAX {
            let [left, top] = resolve.first;
            let area = [left, top, resolve.last[0], resolve.last[1]];
            if inside.clear_block(&mut self.space, [x, y, 0], area, &resolve.clear[..size])? {
                return Ok(());
            }
        }
        let mut texel = [0; TEXEL];
        let texel = &mut texel[..size];
        if resolve.work.stores {
            if inside.samples > outside.samples {
                self.resolve_samples(resolve, [column, row], texel)?;
                outside.store(&mut self.samples(), OUTSIDE, [x, y, 0, 0], texel)?;
                let sources = (0..inside.samples).map(|sample| [column, row, 0, sample]);
                self.keep_undefined(inside, sources, outside, [x, y, 0, 0]);
            } else {
                for sample in 0..outside.samples {
                    let source = [column, row, 0, sample.min(inside.samples - 1)];
                    inside.load(&mut self.samples(), INSIDE, source, texel)?;
                    exchange(&inside.codec, &outside.codec, texel);
                    outside.store(&mut self.samples(), OUTSIDE, [x, y, 0, sample], texel)?;
                    self.keep_undefined(inside, [source].into_iter(), outside, [x, y, 0, sample]);
                }
            }
        }
        for sample in 0..inside.samples {
            let place = [column, row, 0, sample];
            if resolve.work.loads {
                let source = [x, y, 0, sample.min(outside.samples - 1)];
                outside.load(&mut self.samples(), OUTSIDE, source, texel)?;
                exchange(&outside.codec, &inside.codec, texel);
                inside.store(&mut self.samples(), INSIDE, place, texel)?;
                self.keep_undefined(outside, [source].into_iter(), inside, place);
            }
            if resolve.work.clears {
                if resolve.clear_bits != u128::MAX {
                    inside.load(&mut self.samples(), INSIDE, place, texel)?;
                }
                let bits = resolve.clear_bits.to_le_bytes();
                for (at, byte) in texel.iter_mut().enumerate() {
                    *byte = *byte & !bits[at] | resolve.clear[at] & bits[at];
                }
                let undefined = self.tracks_undefined && inside.is_undefined(&self.space, place);
                inside.store(&mut self.samples(), INSIDE, place, texel)?;
                if undefined {
                    inside.set_undefined(&mut self.space, place, |at| bits[at] == 0);
                }
            }
        }
        Ok(())
    }

    /// A texel that was copied from undefined bytes is undefined, too.
    fn keep_undefined(
        &mut self,
        from: &Surface,
        mut sources: impl Iterator<Item = [u32; 4]>,
        to: &Surface,
        place: [u32; 4],
    ) {
        if self.tracks_undefined && sources.any(|source| from.is_undefined(&self.space, source)) {
            to.set_undefined(&mut self.space, place, |_| true);
        }
    }

    /// The mean of samples, or the first of them.
    fn resolve_samples(
        &mut self,
        resolve: &Resolve,
        [column, row]: [u32; 2],
        texel: &mut [u8],
    ) -> Result<(), CpStop> {
        let Resolve { inside, outside, .. } = resolve;
        let averages = !resolve.first_sample && inside.codec.numeric() == Numeric::Float;
        inside.load(&mut self.samples(), INSIDE, [column, row, 0, 0], texel)?;
        if !averages {
            exchange(&inside.codec, &outside.codec, texel);
            return Ok(());
        }
        let mut sum = [0f32; 4];
        for sample in 0..inside.samples {
            inside.load(&mut self.samples(), INSIDE, [column, row, 0, sample], texel)?;
            let components = inside.codec.unpack(texel, 0, 0).unwrap_or_default();
            sum.iter_mut().zip(components).for_each(|(sum, value)| *sum += f32::from_bits(value));
        }
        let mean = sum.map(|sum| (sum / inside.samples as f32).to_bits());
        // The sizes are the same: it fits.
        let _ = outside.codec.pack(mean, texel);
        Ok(())
    }
}

/// Depth of 24 bits with stencil.
fn is_depth_stencil(format: HardwareFormat) -> bool {
    const Z24_S8: u32 = 0xa0;
    const Z24_S8_AS_RGBA8: u32 = 0x91;
    matches!(format.0, Z24_S8 | Z24_S8_AS_RGBA8)
}

/// Puts the channels of a texel in another order.
fn exchange(from: &TexelCodec, to: &TexelCodec, texel: &mut [u8]) {
    if from.bits_of(1) == to.bits_of(1) && from.bits_of(2) == to.bits_of(2) {
        return;
    }
    if let Some(components) = from.unpack(texel, 0, 0) {
        // The sizes are the same: it fits.
        let _ = to.pack(components, texel);
    }
}
