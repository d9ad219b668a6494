//! Images that draws, GMEM events and blits write, as somebody outside reads them: texel by texel, while the machine stands.
//!
//! Never: writes them.

use super::attachment::{Attachment, AttachmentPlace};
use super::fragment_state::viewport_areas;
use super::gmem::Bin;
use super::output::DepthFormat;
use super::pipeline::BINNING;
use super::registers::{DrawRegisters, Reg};
use crate::adreno::cp::ThreadId;
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::{Client, GpuFault, GpuFaultKind};
use crate::adreno::surface::{Surface, TEXEL};
use crate::fault::MemoryAccess;
use unwedge_hw::adreno::format::Numeric;

/// Which image of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetName {
    /// The render target of this number.
    Colour(u8),
    /// Depth.
    Depth,
    /// Stencil.
    Stencil,
}

/// What a texel is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TargetValue {
    /// Components: bits of floats, or integers.
    Colour([u32; 4]),
    /// Depth.
    Depth(f32),
    /// Stencil.
    Stencil(u8),
}

/// An image, and which of its pixels there are.
#[derive(Clone, Debug)]
pub struct TargetImage {
    name: TargetName,
    attachment: Attachment,
    depth: Option<DepthFormat>,
    in_gmem: bool,
    /// First and last pixel in the window.
    area: [[u32; 2]; 2],
    layers: u32,
}

impl TargetImage {
    /// A colour image that is not one of a draw's.
    pub(in crate::adreno) fn of_surface(
        surface: Surface,
        origin: [u32; 2],
        area: [[u32; 2]; 2],
        in_gmem: bool,
    ) -> TargetImage {
        let attachment = Attachment::of_surface(surface, origin);
        TargetImage { name: TargetName::Colour(0), attachment, depth: None, in_gmem, area, layers: 1 }
    }

    /// Which image of a draw it is.
    pub fn name(&self) -> TargetName {
        self.name
    }

    /// Whether it is what GMEM holds of a bin.
    pub fn in_gmem(&self) -> bool {
        self.in_gmem
    }

    /// Address of its first byte.
    pub fn iova(&self) -> u64 {
        self.attachment.surface.base
    }

    /// First and last column and row of the window that are rendered; the last is before the first where none is.
    pub fn area(&self) -> [[u32; 2]; 2] {
        self.area
    }

    /// Samples of a pixel.
    pub fn samples(&self) -> u32 {
        self.attachment.surface.samples
    }

    /// Layers that draws may write, as GRAS_MAX_LAYER_INDEX says.
    pub fn layers(&self) -> u32 {
        self.layers
    }

    /// What colours are.
    pub fn numeric(&self) -> Numeric {
        self.attachment.codec.numeric()
    }

    /// Whether colours are stored as sRGB.
    pub fn is_srgb(&self) -> bool {
        self.attachment.codec.is_srgb()
    }

    /// Bytes of a sample.
    pub fn bytes(&self) -> usize {
        self.attachment.surface.bytes()
    }

    /// Address of a sample: column, row, layer, sample; `None` where it lies before the bin.
    pub fn address(&self, place: [u32; 4]) -> Option<u64> {
        self.attachment.place(place).map(|place| self.attachment.surface.address(place))
    }

    /// Whether what a sample holds is undefined: it is of GMEM, and nothing has written it there
    /// ([`AdrenoMachine::track_undefined`]).
    pub fn is_undefined(&self, machine: &AdrenoMachine<'_>, place: [u32; 4]) -> bool {
        self.attachment.peeks_undefined(&machine.space, place)
    }

    /// The bytes of a sample.
    ///
    /// # Errors
    ///
    /// What the GPU would meet that reads it; [`GpuFaultKind::Unknown`] where it is undefined, too.
    pub fn raw(&self, machine: &AdrenoMachine<'_>, place: [u32; 4]) -> Result<Vec<u8>, GpuFault> {
        if self.is_undefined(machine, place) {
            let iova = self.address(place).unwrap_or(self.iova());
            let (access, kind) = (MemoryAccess::Read, GpuFaultKind::Unknown);
            return Err(GpuFault { iova, access, kind, client: Client::Ccu });
        }
        let mut texel = [0; TEXEL];
        let texel = &mut texel[..self.bytes()];
        self.attachment.peek(&machine.space, place, texel)?;
        Ok(texel.to_vec())
    }

    /// The value of a sample.
    ///
    /// # Errors
    ///
    /// What the GPU would meet that reads it.
    pub fn value(&self, machine: &AdrenoMachine<'_>, place: [u32; 4]) -> Result<TargetValue, GpuFault> {
        let mut texel = [0; TEXEL];
        let texel = &mut texel[..self.bytes()];
        self.attachment.peek(&machine.space, place, texel)?;
        Ok(self.value_of(texel))
    }

    /// What the bytes of a sample are.
    pub fn value_of(&self, texel: &[u8]) -> TargetValue {
        let word = texel.iter().take(4).rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        match (self.name, self.depth) {
            (TargetName::Depth, Some(format)) => TargetValue::Depth(format.stored(word)),
            // With depth in one texel it has the high bits.
            (TargetName::Stencil, Some(_)) => TargetValue::Stencil((word >> 24) as u8),
            (TargetName::Stencil, None) => TargetValue::Stencil(word as u8),
            _ => TargetValue::Colour(self.attachment.codec.unpack(texel, 0, 0).unwrap_or_default()),
        }
    }
}

impl AdrenoMachine<'_> {
    /// An image of the draw that the registers describe, as it is rendered: in GMEM while a bin is. `None` where the draw has
    /// no such image, or one of a kind that is not known.
    pub fn rendered_image(&self, id: ThreadId, name: TargetName) -> Option<TargetImage> {
        self.image_of(id, name, AttachmentPlace::Rendered)
    }

    /// The same image in memory, whatever is rendered in GMEM.
    pub fn stored_image(&self, id: ThreadId, name: TargetName) -> Option<TargetImage> {
        self.image_of(id, name, AttachmentPlace::Memory)
    }

    fn image_of(&self, id: ThreadId, name: TargetName, place: AttachmentPlace) -> Option<TargetImage> {
        let registers = DrawRegisters { machine: self, thread: id };
        // The pass that finds out what is visible writes no image.
        if self.thread(id).marker == Some(BINNING) {
            return None;
        }
        let format = DepthFormat::of(registers.get(Reg::DepthFormat));
        let (attachment, depth) = match name {
            TargetName::Colour(number) if u32::from(number) < registers.get(Reg::OutputCount) & 0xf => {
                (self.colour_attachment(id, number.into(), place)?, None)
            }
            TargetName::Colour(_) => return None,
            TargetName::Depth => (self.depth_attachment(id, place)?, Some(format)),
            TargetName::Stencil if format == DepthFormat::Unorm24 => {
                (self.depth_attachment(id, place)?, Some(format))
            }
            TargetName::Stencil => (self.stencil_attachment(id, place)?, None),
        };
        let corner = |reg: Reg| {
            let word = registers.get(reg);
            [word & 0x7fff, word >> 16 & 0x7fff]
        };
        let (first, mut last) = (corner(Reg::WindowScissorFirst), corner(Reg::WindowScissorLast));
        let in_gmem = place == AttachmentPlace::Rendered && Bin::of(&registers).is_some();
        if let Some([width, height]) = attachment.extent {
            // The scissor may reach beyond the image.
            last = [last[0].min(width.saturating_sub(1)), last[1].min(height.saturating_sub(1))];
        }
        let layers = (registers.get(Reg::LastLayer) & 0x7ff) + 1;
        Some(TargetImage { name, attachment, depth, in_gmem, area: [first, last], layers })
    }

    /// First and last pixel of the viewports of the draw that the registers describe; `None` where none is set up.
    pub fn viewport_area(&self, id: ThreadId) -> Option<[[u32; 2]; 2]> {
        let registers = DrawRegisters { machine: self, thread: id };
        viewport_areas(&registers).into_iter().reduce(|[first, last], [from, to]| {
            [[first[0].min(from[0]), first[1].min(from[1])], [last[0].max(to[0]), last[1].max(to[1])]]
        })
    }
}
