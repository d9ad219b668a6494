//! What registers hold when a program of a graphics stage starts, and how its inputs and outputs are numbered.
//!
//! The order is that of the driver RADV: two words of rings, descriptor sets, push constants, then what a stage needs: the table of vertex buffers, base vertex, first instance, draw, view, the number
//! of patches, offsets in LDS. [`super::geometry`] has what the hardware adds before the rasterizer. Pixel shaders have the word
//! for `m0` after the driver's, and in vector registers what `SPI_PS_INPUT_ENA` enables.
//!
//! Parameters are numbered in the order of their slots, and so are the attributes of a pixel shader: the driver links them by `SPI_PS_INPUT_CNTL`.

use super::{ArgLocation, Args, Argument, CallingConvention, Push, Uses, lanes_read};
use crate::captures::Captures;
use crate::compile::{CompileError, Options};
use crate::graphics::MemorySlots;
use crate::ir::PhysReg;
use crate::lower::geometry::OTHER_STREAMS;
use crate::stages::{self, HardwareStage, SoftwareStage};
use std::collections::{BTreeMap, BTreeSet};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::ir::{
    AmdRegisters, Base, Builtin, FIRST_LOCATION_SLOT, Function, Inst, InterpAt, Op, Payload, Shader,
    SlotAccess, SlotDir, Stage, SystemValue,
};

/// Bytes in which the waves of a workgroup count: a dword for each wave, and one for their sum.
pub(crate) const COUNT_BYTES: u32 = 64;
/// Bytes that the first wave of a workgroup writes to LDS for transform feedback: a dword for each buffer and for each stream.
pub(crate) const CAPTURE_BYTES: u32 = 32;
/// User registers that the hardware loads, up to gfx8 and from gfx9 on.
const USER_SGPRS: [usize; 2] = [16, 32];

/// What a pixel shader may have in vector registers, in their order: the bits of `SPI_PS_INPUT_ENA`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PixelInput {
    /// Barycentric coordinates in perspective, at the sample.
    PerspectiveSample = 0,
    /// Barycentric coordinates in perspective, at the centre.
    PerspectiveCenter = 1,
    /// Barycentric coordinates in perspective, at the centroid.
    PerspectiveCentroid = 2,
    /// Barycentric coordinates in perspective divided by w, and 1/w, at the centre.
    PullModel = 3,
    /// Barycentric coordinates linear on the screen, at the sample.
    LinearSample = 4,
    /// Barycentric coordinates linear on the screen, at the centre.
    LinearCenter = 5,
    /// Barycentric coordinates linear on the screen, at the centroid.
    LinearCentroid = 6,
    /// x of the position.
    PositionX = 8,
    /// y of the position.
    PositionY = 9,
    /// The depth.
    PositionZ = 10,
    /// w of the position.
    PositionW = 11,
    /// Not zero if the primitive faces the viewer.
    FrontFace = 12,
    /// The shading rate in x (bits 2 and 3) and in y (4 and 5), from gfx10.3 on; the sample (8 to 11); the layer (16 to 26).
    Ancillary = 13,
    /// The samples that are covered.
    SampleCoverage = 14,
}

impl PixelInput {
    /// All inputs, in the order of registers.
    pub const ALL: [PixelInput; 14] = [
        PixelInput::PerspectiveSample,
        PixelInput::PerspectiveCenter,
        PixelInput::PerspectiveCentroid,
        PixelInput::PullModel,
        PixelInput::LinearSample,
        PixelInput::LinearCenter,
        PixelInput::LinearCentroid,
        PixelInput::PositionX,
        PixelInput::PositionY,
        PixelInput::PositionZ,
        PixelInput::PositionW,
        PixelInput::FrontFace,
        PixelInput::Ancillary,
        PixelInput::SampleCoverage,
    ];

    /// How many registers it has.
    pub const fn dwords(self) -> u8 {
        match self {
            PixelInput::PullModel => 3,
            _ if (self as u8) < 7 => 2,
            _ => 1,
        }
    }

    /// Its name in `SPI_PS_INPUT_ENA`.
    pub const fn name(self) -> &'static str {
        match self {
            PixelInput::PerspectiveSample => "PERSP_SAMPLE",
            PixelInput::PerspectiveCenter => "PERSP_CENTER",
            PixelInput::PerspectiveCentroid => "PERSP_CENTROID",
            PixelInput::PullModel => "PERSP_PULL_MODEL",
            PixelInput::LinearSample => "LINEAR_SAMPLE",
            PixelInput::LinearCenter => "LINEAR_CENTER",
            PixelInput::LinearCentroid => "LINEAR_CENTROID",
            PixelInput::PositionX => "POS_X_FLOAT",
            PixelInput::PositionY => "POS_Y_FLOAT",
            PixelInput::PositionZ => "POS_Z_FLOAT",
            PixelInput::PositionW => "POS_W_FLOAT",
            PixelInput::FrontFace => "FRONT_FACE",
            PixelInput::Ancillary => "ANCILLARY",
            PixelInput::SampleCoverage => "SAMPLE_COVERAGE",
        }
    }

    /// Its bit.
    pub const fn bit(self) -> u16 {
        1 << self as u8
    }

    /// The coordinates of an interpolation; `None` where they are computed from others.
    pub fn barycentric(at: InterpAt, linear: bool) -> Option<PixelInput> {
        Some(match (at, linear) {
            (InterpAt::Pixel, false) => PixelInput::PerspectiveCenter,
            (InterpAt::Centroid, false) => PixelInput::PerspectiveCentroid,
            (InterpAt::Sample, false) => PixelInput::PerspectiveSample,
            (InterpAt::Pixel, true) => PixelInput::LinearCenter,
            (InterpAt::Centroid, true) => PixelInput::LinearCentroid,
            (InterpAt::Sample, true) => PixelInput::LinearSample,
            (InterpAt::AtSample | InterpAt::AtOffset, _) => return None,
        })
    }
}

/// How the inputs and outputs of a graphics stage are numbered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    /// The stage of the hardware; `None` for compute shaders.
    pub hardware: Option<HardwareStage>,
    /// It is the prolog of a program of that stage, and leaves its registers as they are.
    pub prolog: bool,
    /// Of a prolog: attributes or inputs of pixels, and where it leaves them.
    pub fetched: Vec<ArgLocation>,
    /// Of the prolog of a pixel shader.
    pub pixel_prolog: PixelProlog,
    /// The shader reads registers and exports by itself, so nothing is added to it for its stage.
    pub explicit: bool,
    /// The program is a primitive shader that culls triangles before it computes the other outputs of their vertices.
    pub culls: bool,
    /// The program is a primitive shader that culls the triangles that its geometry shader emits.
    pub culls_emitted: bool,
    /// Of pixel shaders: the slot of each attribute.
    pub attributes: Vec<u16>,
    /// Of pixel shaders: the slots of attributes that are interpolated as floats of 16 bits, which are in the lower halves of words. The driver sets
    /// `FP16_INTERP_MODE` and `ATTR0_VALID` of `SPI_PS_INPUT_CNTL`.
    pub half_attributes: Vec<u16>,
    /// Of pixel shaders: the slots of attributes of which the shader reads the values at all three vertices, to interpolate them itself. The driver sets `FLAT_SHADE` and bit 5 of `OFFSET` of
    /// `SPI_PS_INPUT_CNTL`, so that the parameters are the values. `ROTATE_PC_PTR` (gfx10.3 on) has to be 0: coordinates belong to the order of vertices in the hardware.
    pub vertex_attributes: Vec<u16>,
    /// Of the last stage before the rasterizer: the slot of each parameter.
    pub parameters: Vec<u16>,
    /// Of pixel shaders: `SPI_PS_INPUT_ENA`.
    pub pixel_inputs: u16,
    /// Of pixel shaders: colours that it stores, in their order. The colour with index N is in four vector registers from `v[4N]` on when an epilog begins.
    pub colours: Vec<ColourOutput>,
    /// Of pixel shaders that leave colours for an epilog: what it leaves beside them, for the same export. Each value is in the vector register that [`DepthOutput::register`] says.
    pub depth_outputs: Vec<DepthOutput>,
    /// What it takes from memory where an earlier stage left it.
    pub inputs: MemorySlots,
    /// What the first of two merged stages leaves in LDS for the second one.
    pub passed: MemorySlots,
    /// What it leaves in memory. A geometry shader leaves it for each vertex that it emits.
    pub outputs: MemorySlots,
    /// Of a tessellation control shader: outputs that are in LDS, too.
    pub shared: MemorySlots,
    /// Of a geometry shader, and of the shader that exports its vertices: the slots in memory of the streams after the first, if they are captured. In LDS they follow
    /// [`Interface::outputs`].
    pub streams: [MemorySlots; OTHER_STREAMS],
    /// Of the shader that exports the vertices of a geometry shader: waves may have vertices of streams after the first, which are not exported.
    pub other_streams: bool,
    /// Of the last stage before the rasterizer: what transform feedback captures.
    pub captures: Captures,
}

/// What the prolog of a pixel shader changes of what the hardware gives it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PixelProlog {
    /// The shader runs once for each sample: coordinates at the centre and at the centroid are those at the sample, and only that one of the covered samples remains.
    pub per_sample: bool,
    /// Where bit 31 of [`Argument::PrimitiveMask`] says that a quad is covered, the hardware does not compute coordinates at the centroid (`BC_OPTIMIZE`): they are those at the centre.
    pub centroid_at_center: bool,
}

impl PixelProlog {
    /// The bit of [`Argument::PrimitiveMask`].
    pub(crate) const COVERED: u32 = 31;

    /// Coordinates that replace others.
    pub(crate) fn source(self, input: PixelInput) -> PixelInput {
        use PixelInput as P;
        match input {
            P::PerspectiveCenter | P::PerspectiveCentroid if self.per_sample => P::PerspectiveSample,
            P::LinearCenter | P::LinearCentroid if self.per_sample => P::LinearSample,
            input => input,
        }
    }

    /// What the hardware gives the prolog.
    fn enabled(self, main: u16) -> u16 {
        use PixelInput as P;
        let inputs = P::ALL.into_iter().filter(|input| main & input.bit() != 0);
        let mut enabled = inputs.fold(0, |all, input| all | self.source(input).bit());
        for (centroid, center) in
            [(P::PerspectiveCentroid, P::PerspectiveCenter), (P::LinearCentroid, P::LinearCenter)]
        {
            if self.centroid_at_center && enabled & centroid.bit() != 0 {
                enabled |= center.bit();
            }
        }
        if self.per_sample && enabled & P::SampleCoverage.bit() != 0 {
            enabled |= P::Ancillary.bit();
        }
        enabled
    }
}

/// What is exported beside colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DepthOutput {
    /// The depth.
    Depth,
    /// The stencil reference.
    StencilReference,
    /// The sample mask.
    SampleMask,
}

impl DepthOutput {
    /// All, in the order of the components of the export.
    pub const ALL: [DepthOutput; 3] =
        [DepthOutput::Depth, DepthOutput::StencilReference, DepthOutput::SampleMask];

    /// The vector register in which an epilog finds it, after those of so many colours.
    pub const fn register(self, colours: usize) -> u16 {
        ColourOutput::register(colours, self as u8)
    }

    /// The built-in output.
    pub(crate) const fn builtin(self) -> Builtin {
        match self {
            DepthOutput::Depth => Builtin::FragDepth,
            DepthOutput::StencilReference => Builtin::FragStencilRef,
            DepthOutput::SampleMask => Builtin::SampleMask,
        }
    }

    /// Those that a lowered fragment shader stores.
    fn of(shader: &Shader) -> Vec<DepthOutput> {
        let func = shader.entry();
        let stores = func.walk().filter(|inst| func.op(*inst) == Op::StoreSlot);
        let slots: BTreeSet<u16> = stores
            .filter_map(|inst| match func.payload(inst) {
                Payload::Slot(access) => Some(access.slot),
                _ => None,
            })
            .collect();
        DepthOutput::ALL
            .into_iter()
            .filter(|output| slots.contains(&output.builtin().slots().start))
            .collect()
    }
}

/// A colour that a fragment shader stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ColourOutput {
    /// The location.
    pub location: u16,
    /// 1 for the second source of dual-source blending.
    pub index: u8,
    /// A bit for each component that is stored.
    pub components: u8,
    /// Components have 16 bits, in the lower halves of registers.
    pub half: bool,
}

impl ColourOutput {
    /// The vector register of a component of the colour with a number.
    pub const fn register(number: usize, component: u8) -> u16 {
        number as u16 * 4 + component as u16
    }

    /// The colours of a lowered fragment shader.
    fn of(shader: &Shader) -> Vec<ColourOutput> {
        let func = shader.entry();
        let mut stored: BTreeMap<(u16, u8), (u8, bool)> = BTreeMap::new();
        for inst in func.walk().filter(|inst| func.op(*inst) == Op::StoreSlot) {
            let Payload::Slot(access) = func.payload(inst) else { continue };
            let args = func.args(inst);
            let offset = args.get(1).and_then(|offset| func.const_bits(*offset)).unwrap_or(0);
            let slot = u64::from(access.slot) + offset;
            let Some(location) = slot.checked_sub(FIRST_LOCATION_SLOT.into()) else { continue };
            let ty = func.ty(args[0]);
            let lanes = (1u32 << ty.lanes) - 1;
            let (components, half) = stored.entry((location as u16, access.index)).or_insert((0, true));
            *components |= (lanes << access.component & 15) as u8;
            *half &= ty.base == Base::B16;
        }
        let colour =
            |((location, index), (components, half))| ColourOutput { location, index, components, half };
        stored.into_iter().map(colour).collect()
    }
}

/// The merged hardware stage whose second shader this is.
fn merged_hardware(shader: &Shader, options: &Options) -> Option<HardwareStage> {
    let generation = options.gpu.generation();
    let shape = options.graphics.shape.with(shader.info.stage);
    let stage = SoftwareStage::Stage(shader.info.stage);
    let row = stages::find(generation, options.graphics.mode(generation), shape, stage)?;
    (row.software.len() > 1 && row.software.last() == Some(&stage)).then_some(row.hardware)
}

/// The stage of the hardware that shaders run in.
fn hardware_of(parts: &[&Shader], options: &Options) -> Result<HardwareStage, CompileError> {
    let generation = options.gpu.generation();
    let stages: Vec<Stage> = parts.iter().map(|part| part.info.stage).collect();
    let shape = stages.iter().fold(options.graphics.shape, |shape, stage| shape.with(*stage));
    let software: Vec<SoftwareStage> = stages.iter().map(|stage| SoftwareStage::Stage(*stage)).collect();
    let row = stages::find(generation, options.graphics.mode(generation), shape, software[0])
        .ok_or(CompileError::Stage(stages[0]))?;
    if row.software == software {
        return Ok(row.hardware);
    }
    Err(match row.software[..] {
        [SoftwareStage::Stage(first), SoftwareStage::Stage(second)] => CompileError::Merged(first, second),
        _ => CompileError::Apart(stages[0]),
    })
}

impl Args {
    /// The arguments of a shader of any stage, or of two that are merged.
    ///
    /// # Errors
    ///
    /// A stage that the pipeline runs merged with another one, or too many arguments.
    pub fn of(parts: &[&Shader], options: &Options) -> Result<Args, CompileError> {
        if options.convention == CallingConvention::Hsa {
            return Args::kernel(parts, &options.gpu);
        }
        let Some(last) = parts.last() else { return Err(CompileError::Functions(0)) };
        let stage = last.info.stage;
        if let [shader] = parts
            && let Some(args) =
                Args::registers(shader, hardware_of(parts, options), merged_hardware(shader, options))?
        {
            return Ok(args);
        }
        match stage {
            Stage::Compute => Args::compute(last, &options.gpu),
            Stage::Fragment => Args::pixel(last, options),
            _ => Args::before_rasterizer(parts, options, hardware_of(parts, options)?),
        }
    }

    /// Adds the arguments that the driver gives all stages.
    pub(super) fn common(&mut self, uses: &Uses, next: &mut usize) {
        for set in &uses.sets {
            self.add(Argument::DescriptorSet(*set), next, 1);
        }
        match &uses.push {
            Push::None => {}
            Push::Words(words) => {
                words.iter().for_each(|word| self.add(Argument::PushConstant(*word), next, 1));
            }
            Push::Memory => self.add(Argument::PushConstants, next, 1),
        }
    }

    pub(super) fn check_user(next: usize, generation: Gfx) -> Result<(), CompileError> {
        let most = USER_SGPRS[usize::from(generation >= Gfx::Gfx9)];
        if next > most { Err(CompileError::Arguments(next)) } else { Ok(()) }
    }

    pub(super) fn vector(&mut self, argument: Argument, number: u8, dwords: u8) {
        self.list.push(ArgLocation { argument, reg: PhysReg::vgpr(number), dwords });
    }

    /// The vector registers of what the hardware gives a pixel.
    fn pixel_vectors(&mut self, enabled: u16) {
        let mut register = 0;
        for input in PixelInput::ALL.into_iter().filter(|input| enabled & input.bit() != 0) {
            self.vector(Argument::Pixel(input), register, input.dwords());
            register += input.dwords();
        }
    }

    /// The arguments of the prolog of a pixel shader that has these.
    pub(crate) fn pixel_prolog(main: &Args, state: PixelProlog) -> Args {
        let is_pixel = |argument| matches!(argument, Argument::Pixel(_));
        let mut args = main.without(is_pixel);
        let enabled = state.enabled(main.interface.pixel_inputs);
        args.pixel_vectors(enabled);
        args.interface = Interface {
            hardware: Some(HardwareStage::Ps),
            prolog: true,
            pixel_prolog: state,
            fetched: main.iter().copied().filter(|location| is_pixel(location.argument)).collect(),
            pixel_inputs: enabled,
            ..Interface::default()
        };
        args
    }

    /// The arguments of the epilog of a pixel shader.
    pub(crate) fn epilog(main: &Interface) -> Args {
        let (colours, depth_outputs) = (main.colours.clone(), main.depth_outputs.clone());
        let mut args = Args::default();
        let mut given = |first: u16| {
            args.vector(Argument::Registers(AmdRegisters { vector: true, first }), first as u8, 1);
        };
        for (number, colour) in colours.iter().enumerate() {
            for component in (0..4).filter(|component| colour.components >> component & 1 != 0) {
                given(ColourOutput::register(number, component));
            }
        }
        depth_outputs.iter().for_each(|output| given(output.register(colours.len())));
        args.interface =
            Interface { hardware: Some(HardwareStage::Ps), colours, depth_outputs, ..Interface::default() };
        args
    }

    fn pixel(shader: &Shader, options: &Options) -> Result<Args, CompileError> {
        let generation = options.gpu.generation();
        let (uses, reads) = (Uses::of(shader), Reads::of(shader));
        let mut args = Args::default();
        let mut next = 0;
        args.add(Argument::RingOffsets, &mut next, 2);
        args.common(&uses, &mut next);
        if reads.has(SystemValue::ViewIndex) {
            args.add(Argument::ViewIndex, &mut next, 1);
        }
        if reads.has(SystemValue::SamplePositions) {
            args.add(Argument::SamplePositions, &mut next, 1);
        }
        Args::check_user(next, generation)?;
        args.add(Argument::PrimitiveMask, &mut next, 1);
        if generation < Gfx::Gfx11 {
            args.add(Argument::ScratchOffset, &mut next, 1);
        }
        let mut enabled = reads.pixel;
        let perspective = 0xf;
        let any = 0x7f;
        let needs_w = enabled & PixelInput::PositionW.bit() != 0 && enabled & perspective == 0;
        if enabled & any == 0 || needs_w {
            enabled |= PixelInput::PerspectiveCenter.bit();
        }
        args.pixel_vectors(enabled);
        args.interface = Interface {
            hardware: Some(HardwareStage::Ps),
            attributes: reads.inputs.union(&reads.patch_inputs).copied().collect(),
            half_attributes: half_attributes(shader.entry()),
            vertex_attributes: vertex_attributes(shader.entry()),
            pixel_inputs: enabled,
            colours: ColourOutput::of(shader),
            depth_outputs: if options.graphics.epilog { DepthOutput::of(shader) } else { Vec::new() },
            ..Interface::default()
        };
        Ok(args)
    }
}

impl Interface {
    /// Whether a merged stage runs shaders one after the other in it, each in lanes of its own.
    pub(crate) fn has_parts(&self) -> bool {
        !self.explicit && !self.prolog
    }

    /// Bytes in LDS of an emitted vertex of a geometry shader, including the vertices of the other streams with the same number.
    pub fn emitted_bytes(&self) -> u32 {
        self.stream_offset(OTHER_STREAMS as u8 + 1)
    }

    /// The offset in bytes of the slots of a stream within an emitted vertex in LDS.
    pub(crate) fn stream_offset(&self, stream: u8) -> u32 {
        let others = self.streams.iter().take(usize::from(stream).saturating_sub(1));
        let first = if stream == 0 { 0 } else { self.outputs.vertex_bytes() };
        first + others.map(MemorySlots::vertex_bytes).sum::<u32>()
    }

    /// Bytes of LDS in which a primitive shader counts the vertices and primitives of its geometry shader.
    pub fn count_bytes(&self) -> u32 {
        if self.captures.words.is_empty() {
            return COUNT_BYTES;
        }
        (OTHER_STREAMS as u32 + 2) * COUNT_BYTES + CAPTURE_BYTES
    }

    /// The number of the attribute that has a slot.
    pub fn attribute(&self, slot: u16) -> Option<u32> {
        self.attributes.iter().position(|own| *own == slot).map(|at| at as u32)
    }

    /// The number of the parameter that has a slot.
    pub fn parameter(&self, slot: u16) -> Option<u32> {
        self.parameters.iter().position(|own| *own == slot).map(|at| at as u32)
    }
}

/// Slots that a function interpolates as floats of 16 bits.
pub(super) fn half_attributes(func: &Function) -> Vec<u16> {
    slots_where(func, |inst, _| {
        func.op(inst) == Op::LoadInterpolated && func.ty(func.result(inst)).base == Base::B16
    })
}

/// Slots that a function loads by vertex.
fn vertex_attributes(func: &Function) -> Vec<u16> {
    slots_where(func, |inst, access| func.op(inst) == Op::LoadSlot && access.vertex)
}

/// The slots of accesses for which a condition holds.
fn slots_where(func: &Function, condition: impl Fn(Inst, &SlotAccess) -> bool) -> Vec<u16> {
    let mut slots = BTreeSet::new();
    for inst in func.walk() {
        if let Payload::Slot(access) = func.payload(inst)
            && condition(inst, &access)
        {
            slots.extend(access.slot..access.slot.saturating_add(access.count));
        }
    }
    slots.into_iter().collect()
}

/// The slot of the attribute that holds the position of a fragment within its point. No shader stores it: the hardware computes it (`PT_SPRITE_TEX` of `SPI_PS_INPUT_CNTL`).
pub const POINT_COORD_SLOT: u16 = 15;

/// Whether a slot goes to pixels: locations, and clip distances and built-in numbers that they may read. Positions and point sizes do not.
pub(crate) fn is_parameter(slot: u16) -> bool {
    slot >= 2 && slot != 9
}

/// What a shader reads of inputs and system values, and which slots it stores.
#[derive(Default)]
pub(crate) struct Reads {
    pub(crate) inputs: BTreeSet<u16>,
    pub(crate) patch_inputs: BTreeSet<u16>,
    pub(crate) outputs: BTreeSet<u16>,
    pub(crate) patch_outputs: BTreeSet<u16>,
    /// Outputs that it loads.
    pub(crate) loaded: BTreeSet<u16>,
    pub(crate) loaded_patch: BTreeSet<u16>,
    values: Vec<SystemValue>,
    /// Bits of [`PixelInput`].
    pixel: u16,
}

impl Reads {
    pub(crate) fn has(&self, value: SystemValue) -> bool {
        self.values.contains(&value)
    }

    fn slots(&mut self, op: Op, access: &SlotAccess, stage: Stage) {
        let slots = access.slot..access.slot.saturating_add(access.count);
        match (access.dir, op, access.patch) {
            (SlotDir::Input, _, false) => self.inputs.extend(slots),
            (SlotDir::Input, _, true) => self.patch_inputs.extend(slots),
            // Only the first stream of a geometry shader is rasterized.
            (_, Op::StoreSlot, _) if stage == Stage::Geometry && access.index > 0 => {}
            (_, Op::StoreSlot, false) => self.outputs.extend(slots),
            (_, Op::StoreSlot, true) => self.patch_outputs.extend(slots),
            (_, _, false) => self.loaded.extend(slots),
            (_, _, true) => self.loaded_patch.extend(slots),
        }
    }

    pub(crate) fn of(shader: &Shader) -> Reads {
        let func = shader.entry();
        let lanes = lanes_read(func);
        let mut reads = Reads::default();
        let fragment = shader.info.stage == Stage::Fragment;
        for inst in func.walk() {
            match (func.op(inst), func.payload(inst)) {
                (op, Payload::Slot(access)) => reads.slots(op, &access, shader.info.stage),
                (_, Payload::Bary(at, linear)) => {
                    reads.pixel |= PixelInput::barycentric(at, linear).map_or(0, PixelInput::bit);
                }
                (_, Payload::SysVal(value)) => {
                    reads.values.push(value);
                    if !fragment {
                        continue;
                    }
                    reads.inputs.extend(value.fragment_slot());
                    reads.pixel |= match value {
                        SystemValue::FragCoord => {
                            (lanes[func.result(inst)] & 15) << PixelInput::PositionX as u8
                        }
                        SystemValue::FrontFacing => PixelInput::FrontFace.bit(),
                        SystemValue::SampleId | SystemValue::ShadingRate => PixelInput::Ancillary.bit(),
                        SystemValue::PullModel => PixelInput::PullModel.bit(),
                        SystemValue::SampleMaskIn => {
                            PixelInput::SampleCoverage.bit() | PixelInput::Ancillary.bit()
                        }
                        _ => 0,
                    };
                }
                _ => {}
            }
        }
        reads
    }
}
