//! State of fragments: what registers say of rasterization, of the fragment shader's values and of what becomes of its outputs.
//!
//! Never: the work itself.

use super::attachment::Attachment;
use super::link::{Linkage, VaryingState};
use super::merge::QuadBounds;
use super::output::{BlendEquation, BlendState, alpha_to_coverage};
use super::raster::{
    Area, ClipState, DepthBias, DepthUnit, Fill, LineMode, LineState, PointState, RasterState, Viewport,
};
use super::registers::{DrawRegisters, DrawStage, Reg, StageReg, named};
use super::samples::{DepthStencil, RenderTarget};
use crate::adreno::cp::{CpStop, ThreadId};
use crate::adreno::draw_watch::FragmentOutputs;
use crate::adreno::ir3::{FibersDone, OutputRegister, Prefetch};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::{GpuFault, SampleMemory};
use unwedge_base::Generation;
use unwedge_isa::ir3::Opcode;
use unwedge_isa::ir3::semantics::float;

/// Render targets at most.
const TARGETS: usize = 8;
/// Viewports at most.
const VIEWPORTS: u32 = 16;

/// Where in a pixel weights are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WeightPlace {
    Pixel,
    Centroid,
    Sample,
}

/// One of the six pairs of weights that a fragment may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WeightKind {
    pub(super) linear: bool,
    pub(super) place: WeightPlace,
}

/// The pairs in the order of [`FragmentValues::weights`].
pub(super) fn weight_kinds() -> impl Iterator<Item = WeightKind> {
    [WeightPlace::Pixel, WeightPlace::Centroid, WeightPlace::Sample]
        .into_iter()
        .flat_map(|place| [false, true].map(|linear| WeightKind { linear, place }))
}

/// Registers that a fragment begins with.
#[derive(Clone, Debug)]
pub(super) struct FragmentValues {
    pub(super) face: Option<u8>,
    pub(super) sample_id: Option<u8>,
    pub(super) sample_mask: Option<u8>,
    pub(super) centre_rhw: Option<u8>,
    pub(super) weights: [Option<u8>; 6],
    pub(super) xy: Option<u8>,
    pub(super) zw: Option<u8>,
    /// Coordinates are those of the sample.
    pub(super) coordinate_of_sample: bool,
    /// The sample mask is without the samples that failed early tests.
    pub(super) mask_after_tests: bool,
}

impl FragmentValues {
    fn of(registers: &DrawRegisters<'_, '_>) -> FragmentValues {
        let values = registers.get(Reg::FragmentValues);
        let pixel = registers.get(Reg::FragmentPixelWeights);
        let sample = registers.get(Reg::FragmentSampleWeights);
        FragmentValues {
            face: named(values),
            sample_id: named(values >> 8),
            sample_mask: named(values >> 16),
            centre_rhw: named(values >> 24),
            weights: [
                named(pixel),
                named(pixel >> 8),
                named(pixel >> 16),
                named(pixel >> 24),
                named(sample),
                named(sample >> 8),
            ],
            xy: named(sample >> 16),
            zw: named(sample >> 24),
            coordinate_of_sample: registers.get(Reg::RenderValues) >> 4 & 3 == 3,
            mask_after_tests: registers.get(Reg::RenderValues) >> 1 & 1 != 0,
        }
    }
}

/// The register of an output, and how its bits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ColourOutput {
    register: Option<u8>,
    half: bool,
    signed: bool,
    unsigned: bool,
}

/// What the fragment shaders of a batch put out, by fiber.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadedFragments {
    /// By output.
    colours: Vec<Vec<[u32; 4]>>,
    depth: Option<Vec<u32>>,
    stencil: Option<Vec<u32>>,
    mask: Option<Vec<u32>>,
    /// Whether each was killed, or only helped.
    dropped: Vec<bool>,
    /// Samples that the shader leaves of each.
    coverage: Vec<u8>,
    /// The pixels of the batch.
    pub(super) bounds: QuadBounds,
}

impl ShadedFragments {
    /// The colour of an output; zeros where the shader has none.
    #[inline]
    fn colour(&self, output: usize, fiber: usize) -> [u32; 4] {
        self.colours.get(output).and_then(|colours| colours.get(fiber)).copied().unwrap_or([0; 4])
    }

    /// Samples that are left of a fiber; none where it was killed, or only helped.
    pub(super) fn coverage(&self, fiber: usize) -> u8 {
        self.coverage.get(fiber).copied().unwrap_or(0)
    }

    /// Whether a fiber was killed, or only helped.
    pub(super) fn is_dropped(&self, fiber: usize) -> bool {
        self.dropped.get(fiber).copied().unwrap_or(true)
    }

    /// The depth that takes the place of that of the primitive.
    pub(super) fn depth(&self, fiber: usize) -> Option<f32> {
        self.depth.as_ref().map(|depths| f32::from_bits(depths.get(fiber).copied().unwrap_or(0)))
    }

    /// What takes the place of the stencil reference.
    pub(super) fn stencil(&self, fiber: usize) -> Option<u8> {
        self.stencil.as_ref().map(|values| values.get(fiber).copied().unwrap_or(0) as u8)
    }
}

/// The state of a draw's fragments.
pub(super) struct FragmentState {
    pub(super) raster: RasterState,
    pub(super) samples: u32,
    sample_places: [[u8; 2]; 4],
    pub(super) sample_mask: u8,
    /// Depth and stencil are tested before the shader.
    pub(super) early: bool,
    pub(super) counts_samples: bool,
    /// Fragments are shaded sample by sample.
    per_sample: bool,
    pub(super) values: FragmentValues,
    /// Components of varyings.
    pub(super) components: usize,
    pub(super) prefetches: Vec<Prefetch>,
    /// Points are rasterized.
    pub(super) points: bool,
    layer_is_view: bool,
    viewport_is_view: bool,
    /// A fragment is shaded after those of earlier primitives at its place are merged.
    pub(super) ordered: bool,
    pub(super) depth_stencil: DepthStencil,
    targets: Vec<RenderTarget>,
    colours: Vec<ColourOutput>,
    depth: Option<u8>,
    mask: Option<u8>,
    stencil: Option<u8>,
    alpha_to_coverage: bool,
}

impl FragmentState {
    pub(super) fn of(machine: &mut AdrenoMachine<'_>, id: ThreadId, last: DrawStage) -> FragmentState {
        let depth_stencil = DepthStencil::of(machine, id);
        let count = {
            let registers = DrawRegisters { machine, thread: id };
            (registers.get(Reg::OutputCount) & 0xf).min(TARGETS as u32)
        };
        let targets = (0..count).filter_map(|n| RenderTarget::of(machine, id, n)).collect();
        let registers = DrawRegisters { machine, thread: id };
        let setup = registers.get(Reg::Setup);
        let blend = registers.get(Reg::BlendControl);
        let control = registers.get(Reg::OutputControl);
        let samples = samples(&registers);
        // The second colour of a blend is that of an output without a render target.
        let outputs = if control & 1 != 0 { count.max(2) } else { count };
        let colours = (0..outputs).map(|n| ColourOutput::of(&registers, n)).collect();
        FragmentState {
            raster: raster_state(&registers, last, samples),
            samples,
            sample_places: sample_places(&registers),
            sample_mask: (blend >> 16) as u8 & ((1u16 << samples) - 1) as u8,
            early: registers.get(Reg::DepthPlane) & 3 == 0,
            counts_samples: registers.get(Reg::SampleCountControl) & 1 == 0,
            per_sample: registers.get(Reg::PerSample) & 1 != 0,
            values: FragmentValues::of(&registers),
            components: VaryingState::of(&registers, &Linkage::of(&registers, last)).components,
            prefetches: prefetches(&registers),
            points: false,
            layer_is_view: setup >> 18 & 1 != 0,
            viewport_is_view: setup >> 19 & 1 != 0,
            ordered: registers.get(Reg::ScanControl) >> 3 & 3 != 0,
            depth_stencil,
            targets,
            colours,
            depth: named(control >> 8),
            mask: named(control >> 16),
            stencil: named(control >> 24),
            alpha_to_coverage: blend >> 10 & 1 != 0,
        }
    }

    /// Registers that are read when a fragment shader has ended: of every render target four components, then those of depth, sample
    /// mask and stencil reference.
    pub(super) fn outputs(&self) -> Vec<OutputRegister> {
        let mut outputs = Vec::new();
        for (n, colour) in self.colours.iter().enumerate() {
            for component in 0..4u8 {
                let target = Some(4 * n as u8 + component);
                // A register of no number reads as nothing.
                let register = colour.register.map_or(252, |first| first.saturating_add(component));
                outputs.push(OutputRegister { register, half: colour.half, target });
            }
        }
        let others = [self.depth, self.mask, self.stencil].into_iter().flatten();
        outputs.extend(others.map(|register| OutputRegister { register, half: false, target: None }));
        outputs
    }

    /// What fibers put out.
    pub(super) fn shaded(&self, done: FibersDone) -> ShadedFragments {
        let mut rows = done.outputs.into_iter();
        let mut colours = Vec::with_capacity(self.colours.len());
        for colour in &self.colours {
            let [a, b, c, d] = [0; 4].map(|_| rows.next().unwrap_or_default());
            let components = a.iter().zip(&b).zip(c.iter().zip(&d));
            let values = components.map(|((a, b), (c, d))| [*a, *b, *c, *d].map(|bits| colour.value(bits)));
            colours.push(values.collect());
        }
        let mut other = |is_given: bool| if is_given { rows.next() } else { None };
        let depth = other(self.depth.is_some());
        let mask = other(self.mask.is_some());
        let stencil = other(self.stencil.is_some());
        let mut shaded = ShadedFragments { colours, depth, stencil, mask, ..ShadedFragments::default() };
        let left = |(fiber, dropped): (usize, &bool)| match dropped {
            true => 0,
            false => {
                let mask =
                    shaded.mask.as_ref().map_or(0xff, |mask| mask.get(fiber).copied().unwrap_or(0) as u8);
                mask & self.alpha_coverage(&shaded, fiber)
            }
        };
        shaded.coverage = done.dropped.iter().enumerate().map(left).collect();
        shaded.dropped = done.dropped;
        shaded
    }

    /// The layer of a primitive that names one.
    pub(super) fn layer(&self, layer: u32, view: u32) -> u32 {
        if self.layer_is_view { view } else { layer }
    }

    /// The viewport of a primitive that names one.
    pub(super) fn viewport(&self, viewport: u32, view: u32) -> usize {
        if self.viewport_is_view { view as usize } else { viewport as usize }
    }

    /// The images that a merge reads or writes.
    pub(super) fn merged_attachments(&self) -> impl Iterator<Item = &Attachment> {
        let tested = self.depth_stencil.attachments().filter(|_| !self.early);
        self.targets.iter().map(|target| &target.attachment).chain(tested)
    }

    pub(super) fn shades_samples(&self) -> bool {
        self.per_sample && self.samples > 1
    }

    /// Where a sample is in its pixel.
    pub(super) fn sample_place(&self, sample: u32) -> [f32; 2] {
        let place = self.sample_places.get(sample as usize).copied().unwrap_or([8, 8]);
        place.map(|sixteenths| f32::from(sixteenths) / 16.0)
    }

    /// Where in a pixel of this coverage weights are taken.
    pub(super) fn weight_place(&self, place: WeightPlace, coverage: u8, sample: Option<u8>) -> [f32; 2] {
        let all = ((1u16 << self.samples) - 1) as u8;
        match (place, sample) {
            (WeightPlace::Sample, Some(sample)) => self.sample_place(sample.into()),
            // Inside of the primitive: the first sample that is.
            (WeightPlace::Centroid, _) if coverage != 0 && coverage != all && self.samples > 1 => {
                self.sample_place(coverage.trailing_zeros())
            }
            _ => [0.5; 2],
        }
    }

    /// Samples that the alpha of the first render target leaves.
    pub(super) fn alpha_coverage(&self, shaded: &ShadedFragments, fiber: usize) -> u8 {
        match self.alpha_to_coverage {
            true => alpha_to_coverage(f32::from_bits(shaded.colour(0, fiber)[3]), self.samples),
            false => 0xff,
        }
    }

    /// Everything that a fiber put out.
    pub(super) fn fragment_outputs(&self, shaded: &ShadedFragments, fiber: usize) -> FragmentOutputs {
        let written = self.colours.iter().enumerate().filter(|(_, colour)| colour.register.is_some());
        FragmentOutputs {
            colours: written.map(|(number, _)| (number, shaded.colour(number, fiber))).collect(),
            depth: shaded.depth(fiber),
            mask: shaded.mask.as_ref().and_then(|mask| mask.get(fiber)).copied(),
            stencil: shaded.stencil(fiber),
        }
    }

    /// Merges the colours of a fiber into the render targets, at a place: column, row, layer, sample.
    pub(super) fn merge(
        &self,
        memory: &mut impl SampleMemory,
        place: [u32; 4],
        shaded: &ShadedFragments,
        fiber: usize,
    ) -> Result<(), CpStop> {
        let second = shaded.colour(1, fiber);
        self.targets
            .iter()
            .try_for_each(|target| target.merge(memory, place, shaded.colour(target.number, fiber), second))
            .map_err(|fault: GpuFault| CpStop::Fault(fault))
    }
}

impl ColourOutput {
    fn of(registers: &DrawRegisters<'_, '_>, number: u32) -> ColourOutput {
        let output = registers.at(Reg::Outputs, number);
        let ty = registers.at(Reg::TargetTypes, number);
        ColourOutput {
            register: named(output),
            half: output >> 8 & 1 != 0,
            signed: ty >> 8 & 1 != 0,
            unsigned: ty >> 9 & 1 != 0,
        }
    }

    /// The bits of a component in 32 bits.
    fn value(self, bits: u32) -> u32 {
        match (self.half, self.signed, self.unsigned) {
            (false, ..) => bits,
            (true, true, _) => i32::from(bits as u16 as i16) as u32,
            (true, _, true) => bits & 0xffff,
            _ => float::widen(bits & 0xffff),
        }
    }
}

pub(super) fn samples(registers: &DrawRegisters<'_, '_>) -> u32 {
    1 << (registers.get(Reg::RasterSamples) & 3).min(2)
}

fn corner(word: u32) -> [u32; 2] {
    [word & 0x7fff, word >> 16 & 0x7fff]
}

fn area(first: u32, last: u32) -> Area {
    Area { first: corner(first), last: corner(last) }
}

/// The state of rasterization, with the samples that registers say.
pub(super) fn raster_state_of(registers: &DrawRegisters<'_, '_>, last: DrawStage) -> RasterState {
    raster_state(registers, last, samples(registers))
}

fn raster_state(registers: &DrawRegisters<'_, '_>, last: DrawStage, samples: u32) -> RasterState {
    let clip = registers.get(Reg::ClipControl);
    let setup = registers.get(Reg::Setup);
    let bit = |word: u32, at: u32| word >> at & 1 != 0;
    let masks = registers.stage(last, StageReg::ClipMasks);
    let conservative = registers.get(Reg::Conservative);
    let minmax = registers.get(Reg::PointMinMax);
    RasterState {
        viewports: (0..VIEWPORTS).map(|n| viewport(registers, n)).collect(),
        window: area(registers.get(Reg::WindowScissorFirst), registers.get(Reg::WindowScissorLast)),
        clip: ClipState {
            disabled: bit(clip, 0),
            no_transform: bit(clip, 8),
            no_division: bit(clip, 9),
            near: !bit(clip, 1),
            far: !bit(clip, 2),
            zero_to_one: bit(clip, 6),
            clamps_depth: bit(clip, 5),
            distances: (masks & 0xff) as u8,
            culls: (masks >> 8 & 0xff) as u8,
        },
        cull_front: bit(setup, 0),
        cull_back: bit(setup, 1),
        front_is_clockwise: bit(setup, 2),
        fill: match registers.get(Reg::PolygonMode) & 3 {
            1 => Fill::Points,
            2 => Fill::Lines,
            _ => Fill::Triangles,
        },
        line: LineState {
            half_width: (setup >> 3 & 0xff) as f32 / 4.0,
            mode: if bit(setup, 13) { LineMode::Rectangular } else { LineMode::Bresenham },
        },
        points: PointState {
            size: registers.get(Reg::PointSize) as f32 / 16.0,
            min: (minmax & 0xffff) as f32 / 16.0,
            max: (minmax >> 16) as f32 / 16.0,
        },
        depth_bias: bit(setup, 11).then(|| DepthBias {
            scale: registers.float(Reg::DepthBiasScale),
            offset: registers.float(Reg::DepthBiasOffset),
            clamp: registers.float(Reg::DepthBiasClamp),
            unit: match registers.get(Reg::SetupDepthFormat) & 7 {
                1 => DepthUnit::Bits16,
                2 => DepthUnit::Bits24,
                _ => DepthUnit::Float,
            },
        }),
        samples,
        sample_places: sample_places(registers),
        conservative: bit(conservative, 0).then_some(match conservative >> 1 & 3 {
            1 => 0.5,
            2 => 1.0,
            _ => 0.0,
        }),
    }
}

fn viewport(registers: &DrawRegisters<'_, '_>, number: u32) -> Viewport {
    let float = |behind: u32| f32::from_bits(registers.at(Reg::Viewport, 6 * number + behind));
    let clamp = |behind: u32| f32::from_bits(registers.at(Reg::ViewportDepth, 2 * number + behind));
    let scissor = |reg: Reg| area(registers.at(reg, 2 * number), registers.at(reg, 2 * number + 1));
    Viewport {
        scale: [float(1), float(3), float(5)],
        offset: [float(0), float(2), float(4)],
        z_clamp: [clamp(0), clamp(1)],
        scissor: scissor(Reg::ViewportScissor).and(&scissor(Reg::ScreenScissor)),
    }
}

/// First and last pixel of each viewport that is set up, whatever other scissors leave of it.
pub(super) fn viewport_areas(registers: &DrawRegisters<'_, '_>) -> Vec<[[u32; 2]; 2]> {
    let is_used = |number: &u32| registers.at(Reg::Viewport, 6 * number + 1) != 0;
    let of = |number: u32| {
        let word = |behind: u32| registers.at(Reg::ViewportScissor, 2 * number + behind);
        [corner(word(0)), corner(word(1))]
    };
    (0..VIEWPORTS).filter(is_used).map(of).collect()
}

/// Where samples are in their pixels, in sixteenths.
pub(super) fn sample_places(registers: &DrawRegisters<'_, '_>) -> [[u8; 2]; 4] {
    if registers.get(Reg::SampleConfig) >> 1 & 1 != 0 {
        let places = registers.get(Reg::SampleLocations);
        return [0, 1, 2, 3].map(|n| {
            let place = places >> (8 * n);
            [(place & 0xf) as u8, (place >> 4 & 0xf) as u8]
        });
    }
    match samples(registers) {
        1 => [[8, 8]; 4],
        2 => [[12, 12], [4, 4], [8, 8], [8, 8]],
        _ => [[6, 2], [14, 6], [2, 10], [10, 14]],
    }
}

/// Textures that are sampled before the first instruction.
fn prefetches(registers: &DrawRegisters<'_, '_>) -> Vec<Prefetch> {
    let a7xx = registers.machine.generation >= Generation::A7xx;
    let count = (registers.get(Reg::PrefetchControl) & 7).min(4);
    let prefetch = |n: u32| {
        let word = registers.at(Reg::Prefetches, n);
        let field = |a6: (u32, u32), a7: (u32, u32)| {
            let (low, bits) = if a7xx { a7 } else { a6 };
            word >> low & ((1 << bits) - 1)
        };
        let (sampler, texture) = (field((7, 4), (7, 3)), field((11, 5), (10, 3)));
        let bindless = field((28, 1), (25, 1)) != 0;
        let numbers = registers.at(Reg::BindlessPrefetches, n);
        let opcode = match field((29, 3), (26, 4)) {
            1 => Opcode::Sam,
            2 => Opcode::Gather4r,
            3 => Opcode::Gather4g,
            4 => Opcode::Gather4b,
            5 => Opcode::Gather4a,
            _ => return None,
        };
        Some(Prefetch {
            opcode,
            location: (word & 0x7f) as u8,
            register: field((16, 6), (13, 6)) as u8,
            half: field((26, 1), (23, 1)) != 0,
            mask: field((22, 4), (19, 4)) as u8,
            texture: if bindless { numbers >> 16 } else { texture },
            sampler: if bindless { numbers & 0xffff } else { sampler },
            // Of bindless descriptors the short numbers are those of the sets.
            sets: bindless.then_some([texture as u8, sampler as u8]),
        })
    };
    (0..count).filter_map(prefetch).collect()
}

/// How a render target is blended.
pub(super) fn blend_state(registers: &DrawRegisters<'_, '_>, number: u32) -> BlendState {
    let control = registers.at(Reg::TargetControl, 8 * number);
    let word = registers.at(Reg::TargetBlend, 8 * number);
    let common = registers.get(Reg::BlendControl);
    let components = registers.get(Reg::RenderComponents) >> (4 * number) & 0xf;
    let equation = |low: u32| BlendEquation {
        source: word >> low & 0x1f,
        operation: word >> (low + 5) & 7,
        destination: word >> (low + 8) & 0x1f,
    };
    BlendState {
        enabled: control & 3 == 3,
        rgb: equation(0),
        alpha: equation(16),
        rop: (control >> 2 & 1 != 0).then_some((control >> 3 & 0xf) as u8),
        write_mask: (control >> 7 & components & 0xf) as u8,
        constants: [0, 1, 2, 3].map(|n| f32::from_bits(registers.at(Reg::BlendConstants, n))),
        alpha_to_one: common >> 11 & 1 != 0,
    }
}
