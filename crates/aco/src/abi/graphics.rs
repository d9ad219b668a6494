//! What registers hold when a program of a graphics stage starts, and how its inputs and outputs are numbered.
//!
//! The order is that of the driver RADV. Vertex shaders on the stage VS: two words of rings, descriptor sets, push constants, the table of vertex buffers, base vertex, first instance, draw; then
//! the offset in scratch. Primitive shaders have eight words that the hardware gives before those of the driver. Pixel shaders have the word
//! for `m0` after the driver's, and in vector registers what `SPI_PS_INPUT_ENA` enables.
//!
//! Parameters are numbered in the order of their slots, and so are the attributes of a pixel shader: the driver links them by `SPI_PS_INPUT_CNTL`.

use super::{ArgLocation, Args, Argument, Push, Uses, lanes_read};
use crate::compile::{CompileError, Options};
use crate::ir::PhysReg;
use crate::stages::{self, HardwareStage, PipelineShape, SoftwareStage};
use std::collections::BTreeSet;
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::ir::{
    FIRST_LOCATION_SLOT, InterpAt, Op, Payload, Shader, SlotAccess, SlotDir, Stage, SystemValue,
};

/// User registers that the hardware loads, up to gfx8 and since.
const USER_SGPRS: [usize; 2] = [16, 32];
/// Registers that the hardware gives merged stages before those of the driver.
const MERGED_SGPRS: usize = 8;

/// What a pixel shader may have in vector registers, in their order: the bits of `SPI_PS_INPUT_ENA`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PixelInput {
    /// Barycentric coordinates in perspective, at the sample.
    PerspectiveSample = 0,
    /// At the centre.
    PerspectiveCenter = 1,
    /// At the centroid.
    PerspectiveCentroid = 2,
    /// Barycentric coordinates linear on the screen, at the sample.
    LinearSample = 4,
    /// At the centre.
    LinearCenter = 5,
    /// At the centroid.
    LinearCentroid = 6,
    /// The position.
    PositionX = 8,
    /// The position.
    PositionY = 9,
    /// The depth.
    PositionZ = 10,
    /// w of the position.
    PositionW = 11,
    /// Not zero if the primitive faces the viewer.
    FrontFace = 12,
    /// Bits 8 to 11: the sample; 16 to 26: the layer.
    Ancillary = 13,
    /// The samples that are covered.
    SampleCoverage = 14,
}

impl PixelInput {
    /// All, in the order of registers.
    pub const ALL: [PixelInput; 13] = [
        PixelInput::PerspectiveSample,
        PixelInput::PerspectiveCenter,
        PixelInput::PerspectiveCentroid,
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
        if (self as u8) < 7 { 2 } else { 1 }
    }

    /// Its name in `SPI_PS_INPUT_ENA`.
    pub const fn name(self) -> &'static str {
        match self {
            PixelInput::PerspectiveSample => "PERSP_SAMPLE",
            PixelInput::PerspectiveCenter => "PERSP_CENTER",
            PixelInput::PerspectiveCentroid => "PERSP_CENTROID",
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
    /// The stage of the hardware; `None` of compute shaders.
    pub hardware: Option<HardwareStage>,
    /// Of pixel shaders: the slot of each attribute.
    pub attributes: Vec<u16>,
    /// Of the last stage before the rasterizer: the slot of each parameter.
    pub parameters: Vec<u16>,
    /// Of pixel shaders: `SPI_PS_INPUT_ENA`.
    pub pixel_inputs: u16,
}

impl Args {
    /// Those of a shader of any stage.
    ///
    /// # Errors
    ///
    /// A stage that is not built, or too many arguments.
    pub fn of(shader: &Shader, options: &Options) -> Result<Args, CompileError> {
        let stage = shader.info.stage;
        let generation = options.gpu.generation();
        let mode = options.graphics.mode(generation);
        let software = SoftwareStage::Stage(stage);
        match stage {
            Stage::Compute => Args::compute(shader, &options.gpu),
            Stage::Vertex | Stage::Fragment => {
                let row = stages::find(generation, mode, PipelineShape::Plain, software);
                let hardware = row.ok_or(CompileError::Stage(stage))?.hardware;
                match hardware {
                    HardwareStage::Ps => Args::pixel(shader, options),
                    HardwareStage::Vs | HardwareStage::Ngg => Args::vertex(shader, options, hardware),
                    _ => Err(CompileError::Stage(stage)),
                }
            }
            Stage::TessControl | Stage::TessEval | Stage::Geometry => Err(CompileError::Stage(stage)),
        }
    }

    /// What all stages have of the driver.
    fn common(&mut self, uses: &Uses, next: &mut usize) {
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

    fn check_user(next: usize, generation: Gfx) -> Result<(), CompileError> {
        let most = USER_SGPRS[usize::from(generation >= Gfx::Gfx9)];
        if next > most { Err(CompileError::Arguments(next)) } else { Ok(()) }
    }

    fn vector(&mut self, argument: Argument, number: u8, dwords: u8) {
        self.list.push(ArgLocation { argument, reg: PhysReg::vgpr(number), dwords });
    }

    fn vertex(shader: &Shader, options: &Options, hardware: HardwareStage) -> Result<Args, CompileError> {
        let generation = options.gpu.generation();
        let (uses, reads) = (Uses::of(shader), Reads::of(shader));
        let mut args = Args::default();
        let mut next = 0;
        args.add(Argument::RingOffsets, &mut next, 2);
        let ngg = hardware == HardwareStage::Ngg;
        if ngg {
            args.add(Argument::GroupInfo, &mut next, 1);
            args.add(Argument::MergedWaveInfo, &mut next, 1);
            next += 1;
            let fifth =
                if generation >= Gfx::Gfx11 { Argument::AttributeRing } else { Argument::ScratchOffset };
            args.add(fifth, &mut next, 1);
            next = MERGED_SGPRS;
        }
        let first = next;
        args.common(&uses, &mut next);
        let located = reads.inputs.iter().any(|slot| *slot >= FIRST_LOCATION_SLOT);
        let instances =
            reads.has(SystemValue::InstanceIndex) || reads.has(SystemValue::BaseInstance) || located;
        let vertices = reads.has(SystemValue::VertexIndex) || reads.has(SystemValue::BaseVertex) || located;
        for (wanted, argument) in [
            (located, Argument::VertexBuffers),
            (vertices, Argument::BaseVertex),
            (instances, Argument::FirstInstance),
            (reads.has(SystemValue::DrawIndex), Argument::DrawIndex),
            (reads.has(SystemValue::ViewIndex), Argument::ViewIndex),
        ] {
            if wanted {
                args.add(argument, &mut next, 1);
            }
        }
        Args::check_user(next - first, generation)?;
        if !ngg && generation < Gfx::Gfx11 {
            args.add(Argument::ScratchOffset, &mut next, 1);
        }
        let (vertex, instance) = match (ngg, generation) {
            (true, Gfx::Gfx12) => (3, 4),
            (true, _) => (5, 8),
            (false, Gfx::Gfx10 | Gfx::Gfx10_3) => (0, 3),
            (false, _) => (0, 1),
        };
        if ngg {
            args.vector(Argument::Connectivity, 0, 1);
        }
        args.vector(Argument::VertexId, vertex, 1);
        args.vector(Argument::InstanceId, instance, 1);
        args.interface = Interface {
            hardware: Some(hardware),
            parameters: reads.outputs.into_iter().filter(|slot| is_parameter(*slot)).collect(),
            ..Interface::default()
        };
        Ok(args)
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
        Args::check_user(next, generation)?;
        args.add(Argument::PrimitiveMask, &mut next, 1);
        if generation < Gfx::Gfx11 {
            args.add(Argument::ScratchOffset, &mut next, 1);
        }
        let mut enabled = reads.pixel;
        let perspective = 0x7;
        let any = 0x7f;
        let needs_w = enabled & PixelInput::PositionW.bit() != 0 && enabled & perspective == 0;
        if enabled & any == 0 || needs_w {
            enabled |= PixelInput::PerspectiveCenter.bit();
        }
        let mut register = 0;
        for input in PixelInput::ALL.into_iter().filter(|input| enabled & input.bit() != 0) {
            args.vector(Argument::Pixel(input), register, input.dwords());
            register += input.dwords();
        }
        args.interface = Interface {
            hardware: Some(HardwareStage::Ps),
            attributes: reads.inputs.into_iter().collect(),
            pixel_inputs: enabled,
            ..Interface::default()
        };
        Ok(args)
    }
}

impl Interface {
    /// The number of the attribute that has a slot.
    pub fn attribute(&self, slot: u16) -> Option<u32> {
        self.attributes.iter().position(|own| *own == slot).map(|at| at as u32)
    }

    /// The number of the parameter that has a slot.
    pub fn parameter(&self, slot: u16) -> Option<u32> {
        self.parameters.iter().position(|own| *own == slot).map(|at| at as u32)
    }
}

/// Whether a slot goes to pixels: locations, and distances and numbers that they may read. Positions and sizes do not.
pub(crate) fn is_parameter(slot: u16) -> bool {
    slot >= 2 && slot != 9
}

/// What a shader reads of inputs and system values, and which slots it stores.
struct Reads {
    inputs: BTreeSet<u16>,
    outputs: BTreeSet<u16>,
    values: Vec<SystemValue>,
    /// Bits of [`PixelInput`].
    pixel: u16,
}

impl Reads {
    fn has(&self, value: SystemValue) -> bool {
        self.values.contains(&value)
    }

    fn slots(&mut self, op: Op, access: &SlotAccess) {
        let slots = access.slot..access.slot.saturating_add(access.count);
        match (access.dir, op) {
            (SlotDir::Input, _) => self.inputs.extend(slots),
            (SlotDir::Output, Op::StoreSlot) => self.outputs.extend(slots),
            _ => {}
        }
    }

    fn of(shader: &Shader) -> Reads {
        let func = shader.entry();
        let lanes = lanes_read(func);
        let mut reads =
            Reads { inputs: BTreeSet::new(), outputs: BTreeSet::new(), values: Vec::new(), pixel: 0 };
        let fragment = shader.info.stage == Stage::Fragment;
        for inst in func.walk() {
            match (func.op(inst), func.payload(inst)) {
                (op, Payload::Slot(access)) => reads.slots(op, &access),
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
                        SystemValue::SampleId => PixelInput::Ancillary.bit(),
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
