//! What a driver specifies of a graphics pipeline: formats of vertices and attachments, and how the rasterizer is reached.

use crate::stages::{PipelineMode, PipelineShape};
use std::collections::{BTreeMap, BTreeSet};
use unwedge_isa::amdgcn::Gfx;
use unwedge_isa::amdgcn::texel::{NumberFormat, TexelFormat};
use unwedge_shader::ir::Primitive;

/// Attachments of a pipeline.
pub const TARGETS: usize = 8;

/// Vertices of a patch, unless the pipeline specifies it.
const PATCH_VERTICES: u32 = 3;

/// Slots that pass from a stage to the next one through memory, in their order; each takes four dwords.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemorySlots {
    /// The slots of a vertex.
    pub vertex: Vec<u16>,
    /// The slots of a patch.
    pub patch: Vec<u16>,
}

impl MemorySlots {
    /// Some slots of vertices and of patches.
    pub(crate) fn of(vertex: &BTreeSet<u16>, patch: &BTreeSet<u16>) -> MemorySlots {
        let list = |slots: &BTreeSet<u16>| slots.iter().copied().collect();
        MemorySlots { vertex: list(vertex), patch: list(patch) }
    }

    /// Bytes of a slot.
    pub const SLOT_BYTES: u32 = 16;

    /// Bytes of a vertex.
    pub fn vertex_bytes(&self) -> u32 {
        self.vertex.len() as u32 * MemorySlots::SLOT_BYTES
    }

    /// Bytes of a patch: its vertices, then its own slots.
    pub fn patch_bytes(&self, vertices: u32) -> u32 {
        vertices
            .saturating_mul(self.vertex_bytes())
            .saturating_add(self.patch.len() as u32 * MemorySlots::SLOT_BYTES)
    }

    /// Bytes from the start of the vertex, or of the slots of the patch, to a slot.
    pub fn offset(&self, slot: u16, patch: bool) -> Option<u32> {
        let list = if patch { &self.patch } else { &self.vertex };
        list.iter().position(|own| *own == slot).map(|at| at as u32 * MemorySlots::SLOT_BYTES)
    }
}

/// State of a graphics pipeline that is part of the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphicsOptions {
    /// gfx10 does without primitive shaders. Later GPUs always have them.
    pub legacy: bool,
    /// Primitive shaders cull triangles where this is allowed. A pipeline whose last stage before the rasterizer is a vertex or evaluation shader is assumed to draw triangles.
    pub culling: bool,
    /// The last vertex of a primitive is the provoking one, not the first. Flat inputs do not depend on it, because the hardware loads those of the provoking vertex
    /// (`PROVOKING_VTX_LAST`).
    pub last_vertex_provokes: bool,
    /// Which stages the pipeline has besides vertex and fragment. It always has the stage of the shader.
    pub shape: PipelineShape,
    /// Vertices of a patch: that a tessellation control shader takes, or that a tessellation evaluation shader is given.
    pub patch_vertices: u32,
    /// What a patch is divided into, if no tessellation shader specifies it.
    pub tessellation: Primitive,
    /// What the stage before leaves in memory, if there is one. By default it is what this stage reads, in the order of slots.
    pub inputs: Option<MemorySlots>,
    /// What this stage leaves in memory, if it leaves anything. By default it is what this stage stores, in the order of slots.
    pub outputs: Option<MemorySlots>,
    /// Slots that the fragment shader reads. Other outputs of the last stage before the rasterizer are not parameters; by default all of them are. If the number of the primitive is one
    /// of them, a vertex or evaluation shader stores it.
    pub parameters: Option<Vec<u16>>,
    /// Attributes by location. One without an entry is four floats of 32 bits, at the start of the buffer whose number is the location.
    pub vertex_inputs: BTreeMap<u32, VertexInput>,
    /// A prolog comes before a vertex or fragment shader. A vertex shader finds attributes in registers, where it has loaded them as 32 bits. Those that the
    /// shader has as 16 bits are converted from floats unless [`GraphicsOptions::vertex_inputs`] has integers for them.
    pub prolog: bool,
    /// A fragment shader leaves colours in registers for an epilog, which exports them.
    pub epilog: bool,
    /// Formats in which colours are exported.
    pub targets: [TargetFormat; TARGETS],
    /// What colours are that the shader stores as 16 bits: the numbers of the formats of attachments.
    pub half_colours: [HalfColour; TARGETS],
}

/// Where an attribute is. The stride is in the descriptor of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VertexInput {
    /// The number of the buffer.
    pub binding: u32,
    /// Bytes from the start of an element.
    pub offset: u32,
    /// The format of the element. Missing components are 0, or 1 for the fourth.
    pub format: TexelFormat,
    /// The first and third components are swapped: Vulkan's formats that begin with B.
    pub swapped: bool,
    /// The alignment of the addresses of elements in bytes, without the offset.
    pub alignment: u32,
    /// The element is chosen by the instance divided by this, not by the vertex. If it is 0, all instances have the element of the first one.
    pub divisor: Option<u32>,
}

impl VertexInput {
    /// Four floats of 32 bits at the start of a buffer.
    pub const fn floats(binding: u32) -> VertexInput {
        let format = TexelFormat::FLOATS;
        VertexInput { binding, offset: 0, format, swapped: false, alignment: 4, divisor: None }
    }

    /// Whether a shader reads floats.
    pub(crate) fn is_float(&self) -> bool {
        !matches!(self.format.number(), NumberFormat::Uint | NumberFormat::Sint)
    }
}

/// How a colour is exported: the codes of `SPI_SHADER_COL_FORMAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum TargetFormat {
    /// Four components of 32 bits.
    #[default]
    Abgr32,
    /// The first component.
    R32,
    /// The first two.
    Gr32,
    /// The first and the fourth.
    Ar32,
    /// Floats of 16 bits, rounded toward zero.
    Fp16,
    /// Unsigned normalized, of 16 bits.
    Unorm16,
    /// Signed normalized, of 16 bits.
    Snorm16,
    /// Unsigned integers of 16 bits.
    Uint16,
    /// Signed integers of 16 bits.
    Sint16,
    /// Without an attachment.
    Absent,
}

impl TargetFormat {
    /// All formats, with their names in options.
    pub const NAMES: [(TargetFormat, &'static str); 10] = [
        (TargetFormat::Abgr32, "32_abgr"),
        (TargetFormat::R32, "32_r"),
        (TargetFormat::Gr32, "32_gr"),
        (TargetFormat::Ar32, "32_ar"),
        (TargetFormat::Fp16, "fp16_abgr"),
        (TargetFormat::Unorm16, "unorm16_abgr"),
        (TargetFormat::Snorm16, "snorm16_abgr"),
        (TargetFormat::Uint16, "uint16_abgr"),
        (TargetFormat::Sint16, "sint16_abgr"),
        (TargetFormat::Absent, "zero"),
    ];
}

/// What a colour with components of 16 bits is. Formats of 32 bits are given its numbers in 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum HalfColour {
    /// Floats.
    #[default]
    Float,
    /// Unsigned integers.
    Uint,
    /// Signed integers.
    Sint,
}

impl HalfColour {
    /// All, with their names in options.
    pub const NAMES: [(HalfColour, &'static str); 3] =
        [(HalfColour::Float, "float"), (HalfColour::Uint, "uint"), (HalfColour::Sint, "sint")];
}

impl std::str::FromStr for HalfColour {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<HalfColour, UnknownFormat> {
        let known = HalfColour::NAMES.iter().find(|(_, known)| *known == name);
        known.map(|(numbers, _)| *numbers).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// A name that is not a format of exports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{0}`; the formats are {names}", names = TargetFormat::NAMES.map(|(_, name)| name).join(", "))]
pub struct UnknownFormat(String);

impl std::str::FromStr for TargetFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<TargetFormat, UnknownFormat> {
        let known = TargetFormat::NAMES.iter().find(|(_, known)| *known == name);
        known.map(|(format, _)| *format).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

impl Default for GraphicsOptions {
    fn default() -> GraphicsOptions {
        GraphicsOptions {
            legacy: false,
            culling: false,
            last_vertex_provokes: false,
            shape: PipelineShape::Plain,
            patch_vertices: PATCH_VERTICES,
            tessellation: Primitive::Triangles,
            inputs: None,
            outputs: None,
            parameters: None,
            vertex_inputs: BTreeMap::new(),
            prolog: false,
            epilog: false,
            targets: [TargetFormat::default(); TARGETS],
            half_colours: [HalfColour::default(); TARGETS],
        }
    }
}

impl GraphicsOptions {
    /// How the rasterizer is reached on a generation.
    pub fn mode(&self, generation: Gfx) -> PipelineMode {
        match generation {
            Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => PipelineMode::Ngg,
            Gfx::Gfx10 | Gfx::Gfx10_3 if !self.legacy => PipelineMode::Ngg,
            _ => PipelineMode::Legacy,
        }
    }
}
