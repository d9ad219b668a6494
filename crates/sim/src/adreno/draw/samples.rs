//! Samples in attachments: depth and stencil are tested there, colours merged.
//!
//! Never: the arithmetic of tests and blends, where a sample is in memory.

use super::attachment::{Attachment, AttachmentPlace};
use super::fragment_state::blend_state;
use super::output::{self, BlendState, DepthFormat, DepthStencilState, StencilFace, StoredDepthStencil};
use super::registers::{DrawRegisters, Reg};
use crate::adreno::cp::ThreadId;
use crate::adreno::draw_watch::{ColourWrite, DepthStencilWrite, FragmentEvent, SampleTest};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::{GpuFault, SampleMemory};

/// Bytes of the largest texel.
const TEXEL: usize = 16;

/// A sample that is to be tested.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleFate {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) layer: u32,
    pub(super) sample: u32,
    pub(super) z: f32,
    pub(super) front: bool,
    /// What the shader gives instead of the stencil reference of the state.
    pub(super) reference: Option<u8>,
}

/// Depth and stencil of a draw.
pub(super) struct DepthStencil {
    state: DepthStencilState,
    format: DepthFormat,
    depth: Option<Attachment>,
    /// A buffer of its own.
    stencil: Option<Attachment>,
    /// Something is tested or written.
    enabled: bool,
}

impl DepthStencil {
    pub(super) fn of(machine: &mut AdrenoMachine<'_>, id: ThreadId) -> DepthStencil {
        let rendered = AttachmentPlace::Rendered;
        let (depth, stencil) =
            (machine.depth_attachment(id, rendered), machine.stencil_attachment(id, rendered));
        let registers = DrawRegisters { machine, thread: id };
        let control = registers.get(Reg::DepthControl);
        let word = registers.get(Reg::StencilControl);
        let bit = |at: u32| control >> at & 1 != 0;
        let masks = [Reg::StencilReference, Reg::StencilReadMask, Reg::StencilWriteMask]
            .map(|reg| registers.get(reg));
        let face = |low: u32, side: u32| StencilFace {
            func: word >> low & 7,
            fail: word >> (low + 3) & 7,
            pass: word >> (low + 6) & 7,
            z_fail: word >> (low + 9) & 7,
            reference: (masks[0] >> side) as u8,
            read_mask: (masks[1] >> side) as u8,
            write_mask: (masks[2] >> side) as u8,
        };
        let front = face(8, 0);
        // Without faces of their own, back faces are tested as front faces are.
        let back = if word & 2 != 0 { face(20, 8) } else { front };
        let has_depth = depth.is_some();
        let state = DepthStencilState {
            z_test: bit(0) && has_depth,
            z_write: bit(1) && has_depth,
            z_func: control >> 2 & 7,
            bounds: (bit(7) && has_depth)
                .then(|| [registers.float(Reg::DepthBoundsMin), registers.float(Reg::DepthBoundsMax)]),
            clamp: bit(5).then(|| [registers.float(Reg::DepthClampMin), registers.float(Reg::DepthClampMax)]),
            stencil: (word & 1 != 0).then_some([front, back]),
        };
        let format = DepthFormat::of(registers.get(Reg::DepthFormat));
        let enabled = state.z_test || state.z_write || state.bounds.is_some() || state.stencil.is_some();
        DepthStencil { state, format, depth, stencil, enabled }
    }

    /// Whether samples are tested or written at all.
    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// What samples are tested against.
    pub(super) fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.depth.iter().chain(&self.stencil).filter(|_| self.enabled)
    }

    /// Samples that pass write their depth.
    pub(super) fn writes_depth(&self) -> bool {
        self.state.z_test && self.state.z_write
    }

    /// Tests a sample, and writes what the test leaves.
    pub(super) fn test(&self, memory: &mut impl SampleMemory, sample: &SampleFate) -> Result<bool, GpuFault> {
        if !self.enabled {
            return Ok(true);
        }
        let place = [sample.x, sample.y, sample.layer, sample.sample];
        let mut depth = [0; 4];
        let bytes = if self.format == DepthFormat::Unorm16 { 2 } else { 4 };
        let depth = &mut depth[..bytes];
        let mut stencil = [0; 1];
        if let Some(attachment) = &self.depth {
            attachment.load(memory, place, depth)?;
        }
        if let Some(attachment) = &self.stencil {
            attachment.load(memory, place, &mut stencil)?;
        }
        let word = depth.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let together = self.format == DepthFormat::Unorm24;
        let stored = match together {
            true => StoredDepthStencil { depth: word & 0xff_ffff, stencil: (word >> 24) as u8 },
            false => StoredDepthStencil { depth: word, stencil: stencil[0] },
        };
        let tested = output::test(&self.state, self.format, sample.front, sample.reference, stored, sample.z);
        self.tell(memory, sample, [stored, tested.stored], tested.test);
        if tested.stored != stored {
            let word = match together {
                true => tested.stored.depth & 0xff_ffff | u32::from(tested.stored.stencil) << 24,
                false => tested.stored.depth,
            };
            if let Some(attachment) = &self.depth {
                attachment.store(memory, place, &word.to_le_bytes()[..bytes])?;
            }
            if let Some(attachment) = &self.stencil {
                attachment.store(memory, place, &[tested.stored.stencil])?;
            }
        }
        Ok(tested.passes())
    }

    /// Tells whoever watches the pixel how a test ended.
    fn tell(
        &self,
        memory: &mut impl SampleMemory,
        sample: &SampleFate,
        stored: [StoredDepthStencil; 2],
        test: SampleTest,
    ) {
        let pixel = [sample.x, sample.y, sample.layer];
        if !memory.watch().is_some_and(|watch| watch.wants_pixel(pixel)) {
            return;
        }
        let place = [sample.x, sample.y, sample.layer, sample.sample];
        let mut attachments = self.depth.iter().chain(&self.stencil);
        let before_known = !attachments.any(|attachment| attachment.is_undefined(memory, place));
        let Some(watch) = memory.watch() else { return };
        let has_stencil =
            self.stencil.is_some() || self.depth.is_some() && self.format == DepthFormat::Unorm24;
        let write = DepthStencilWrite {
            depth: self.depth.is_some().then(|| stored.map(|stored| self.format.stored(stored.depth))),
            stencil: has_stencil.then(|| stored.map(|stored| stored.stencil)),
            before_known,
        };
        let event = FragmentEvent::Tested { sample: sample.sample, test, z: sample.z, write };
        watch.fragment(pixel, &event);
    }
}

/// A render target.
pub(super) struct RenderTarget {
    /// Which of the outputs it takes.
    pub(super) number: usize,
    pub(super) attachment: Attachment,
    blend: BlendState,
    bytes: usize,
    /// Colours are stored as they are packed.
    plain: bool,
}

impl RenderTarget {
    /// A render target that something is written to.
    pub(super) fn of(machine: &mut AdrenoMachine<'_>, id: ThreadId, number: u32) -> Option<RenderTarget> {
        let attachment = machine.colour_attachment(id, number as usize, AttachmentPlace::Rendered)?;
        let blend = blend_state(&DrawRegisters { machine, thread: id }, number);
        let bytes = (attachment.codec.bytes() as usize).min(TEXEL);
        let plain = blend.is_plain(&attachment.codec);
        let number = number as usize;
        (blend.write_mask != 0).then_some(RenderTarget { number, attachment, blend, bytes, plain })
    }

    /// Merges a colour at a place: column, row, layer, sample.
    #[inline]
    pub(super) fn merge(
        &self,
        memory: &mut impl SampleMemory,
        place: [u32; 4],
        colour: [u32; 4],
        second: [u32; 4],
    ) -> Result<(), GpuFault> {
        let mut texel = [0; TEXEL];
        let texel = &mut texel[..self.bytes];
        let [x, y, layer, sample] = place;
        let watched = memory.watch().is_some_and(|watch| watch.wants_pixel([x, y, layer]));
        if self.plain && !watched {
            return match self.attachment.codec.pack(colour, texel) {
                Ok(()) => self.attachment.store(memory, place, texel),
                // The format has no such colour.
                Err(_) => Ok(()),
            };
        }
        if watched || self.blend.reads(&self.attachment.codec) {
            self.attachment.load(memory, place, texel)?;
        }
        let mut before = [0; TEXEL];
        if watched {
            before[..self.bytes].copy_from_slice(texel);
        }
        let merged = output::merge(&self.blend, &self.attachment.codec, colour, second, texel);
        if watched {
            self.tell(memory, [x, y, layer], sample, [&before[..self.bytes], texel]);
        }
        match merged {
            true => self.attachment.store(memory, place, texel),
            false => Ok(()),
        }
    }

    /// Tells whoever watches the pixel what a sample becomes.
    fn tell(&self, memory: &mut impl SampleMemory, pixel: [u32; 3], sample: u32, bytes: [&[u8]; 2]) {
        let Attachment { codec, surface, .. } = &self.attachment;
        let [x, y, layer] = pixel;
        let before_known = !self.attachment.is_undefined(memory, [x, y, layer, sample]);
        let Some(watch) = memory.watch() else { return };
        let Some(place) = self.attachment.place([x, y, layer, sample]) else { return };
        let components = bytes.map(|texel| codec.unpack(texel, 0, 0).unwrap_or_default());
        let (target, iova, numeric) = (self.number, surface.address(place), codec.numeric());
        let in_gmem = self.attachment.in_gmem();
        let write = ColourWrite { target, iova, in_gmem, numeric, bytes, components, before_known };
        watch.fragment(pixel, &FragmentEvent::Merged { sample, write });
    }
}
