//! Running a shader on made-up inputs, and what can be observed of the run.
//!
//! Inputs follow from the seed and from where they are bound, so that two forms of a shader get the same ones.

use super::interface;
use crate::mutate::Rng;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, ImageCoordinates, Images, InvocationOutput, Limits, Options, RunError,
    Sampler, Slots, TexelClass, TexelRead, VariableLanes, VertexOutput, Violation, run_compute, run_stage,
};
use unwedge_shader::ir::{Dim, ImageAccess, Op, ResourceClass, Shader, Stage, Var};

/// Levels of an image.
const LEVELS: u32 = 5;

/// Images of 16 texels in every dimension. Texels that were not written follow from their coordinates.
#[derive(Default, Clone, Debug, PartialEq)]
pub struct MadeImages(BTreeMap<TexelKey, [u64; 4]>);

/// Descriptor, coordinates, level and sample.
type TexelKey = (BindingPoint, [i64; 4], u32, u32);

fn key(image: BindingPoint, at: &ImageCoordinates) -> TexelKey {
    (image, at.texel, at.level, at.sample)
}

impl Images for MadeImages {
    fn load(&mut self, image: BindingPoint, _: &ImageAccess, at: &ImageCoordinates) -> TexelRead {
        let inside = at.texel.iter().all(|at| (0..16).contains(at));
        let seed = at
            .texel
            .iter()
            .fold(u64::from(at.level), |seed, at| seed.wrapping_mul(17).wrapping_add(*at as u64));
        let texel = [0, 1, 2, 3].map(|lane| seed.wrapping_add(lane) % 11);
        if !inside {
            return TexelRead::Outside;
        }
        TexelRead::Bits(self.0.get(&key(image, at)).copied().unwrap_or(texel))
    }

    fn store(
        &mut self,
        image: BindingPoint,
        _: &ImageAccess,
        at: &ImageCoordinates,
        texel: [u64; 4],
    ) -> Option<()> {
        let inside = at.texel.iter().all(|at| (0..16).contains(at));
        inside.then(|| self.0.insert(key(image, at), texel)).map(|_| ())
    }

    fn size(&mut self, _: BindingPoint, access: &ImageAccess, level: u32) -> Option<[u32; 4]> {
        let dimensions = if access.dim == Dim::Cube { 2 } else { usize::from(access.dim.coordinates()) };
        let mut size = [16; 4];
        size[..dimensions].fill(16u32.checked_shr(level)?);
        (level < LEVELS).then_some(size)
    }

    fn levels(&mut self, _: BindingPoint) -> Option<u32> {
        Some(LEVELS)
    }

    fn samples(&mut self, _: BindingPoint) -> Option<u32> {
        Some(4)
    }

    fn class(&mut self, _: BindingPoint) -> Option<TexelClass> {
        Some(TexelClass::Integer)
    }

    fn sampler(&mut self, _: BindingPoint) -> Option<Sampler> {
        Some(Sampler::default())
    }

    fn identity(&self, _: BindingPoint) -> Option<usize> {
        // Runs do not look for races.
        None
    }
}

/// What can be observed of a run.
#[derive(Debug)]
pub struct Observed {
    /// Buffers.
    pub memory: BTreeMap<BindingPoint, Vec<u8>>,
    /// Images.
    pub images: MadeImages,
    /// Outputs of a stage other than compute.
    pub outputs: Vec<InvocationOutput>,
    /// Instructions that were executed.
    pub steps: u64,
}

/// Why there is nothing to compare.
#[derive(Debug)]
pub enum NotComparable {
    /// It did not run to its end.
    Error(RunError),
    /// It did something undefined.
    Undefined(Violation),
}

/// A word that is a small integer or a float near 1.
pub(super) fn word(rng: &mut Rng) -> u32 {
    if rng.below(2) == 0 { rng.below(9) as u32 } else { ((rng.below(64) as f32 - 16.0) / 8.0).to_bits() }
}

/// The address of the memory of set 0, binding 0.
pub const GLOBAL: u64 = 1 << 32;

/// Words of a buffer.
const WORDS: usize = 1024;

fn words(rng: &mut Rng, count: usize) -> Vec<u8> {
    (0..count).flat_map(|_| word(rng).to_le_bytes()).collect()
}

fn bindings(shader: &Shader, seed: u64) -> Bindings {
    let mut bindings = Bindings { push: words(&mut Rng::new(seed), 64), ..Bindings::default() };
    let mut points = BTreeSet::new();
    for resource in shader.resources.values() {
        if matches!(resource.class, ResourceClass::UniformBuffer | ResourceClass::StorageBuffer) {
            for index in 0..resource.count.clamp(1, 4) {
                points.insert(BindingPoint { set: resource.set, binding: resource.binding, index });
            }
        }
    }
    for point in points {
        let place = u64::from(point.set) << 40 | u64::from(point.binding) << 8 | u64::from(point.index);
        let memory = bindings.bind(point, words(&mut Rng::new(seed ^ place << 16), WORDS));
        if place == 0 {
            bindings.addresses.insert(GLOBAL, memory);
        }
    }
    bindings
}

/// How a shader is run.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// What inputs follow from.
    pub seed: u64,
    /// Invocations of a subgroup.
    pub subgroup_size: u32,
    /// The most instructions that are executed.
    pub steps: u64,
}

/// Runs a shader. What is out of bounds gives zero; every other thing that is undefined makes runs incomparable.
///
/// # Errors
/// When there is nothing to compare.
pub fn observe(shader: &Shader, setup: &Setup) -> Result<Observed, NotComparable> {
    let mut bindings = bindings(shader, setup.seed);
    let mut images = MadeImages::default();
    let limits = Limits { steps: setup.steps, memory: 1 << 26 };
    // Passes keep the order of accesses, so that races end the same way here.
    let options = Options {
        subgroup_size: setup.subgroup_size,
        robust: true,
        races: false,
        limits,
        ..Options::default()
    };
    let result = if shader.info.stage == Stage::Compute {
        let report = run_compute(shader, Dispatch::new([2, 1, 1]), &mut bindings, &mut images, &options);
        report.map(|report| (Vec::new(), report))
    } else {
        let inputs = interface::inputs(shader, &mut Rng::new(setup.seed));
        run_stage(shader, inputs, &mut bindings, &mut images, &options)
    };
    let (outputs, report) = result.map_err(NotComparable::Error)?;
    let undefined =
        report.findings.iter().find(|finding| !matches!(finding.violation, Violation::OutOfBounds(_)));
    if let Some(finding) = undefined {
        return Err(NotComparable::Undefined(finding.violation));
    }
    let outputs =
        outputs.into_iter().map(|output| interface::as_slots(shader, visible(shader, output))).collect();
    let buffers = bindings.buffers.iter();
    let memory = buffers.map(|(point, view)| (*point, bindings.memory[view.memory].clone())).collect();
    Ok(Observed { memory, images, outputs, steps: report.steps })
}

/// The part of an output that the next stage sees: only the vertices of a geometry shader, and nothing of a fragment that is a helper at
/// its end or is terminated.
fn visible(shader: &Shader, mut output: InvocationOutput) -> InvocationOutput {
    let ended = output.helper || output.terminated;
    if shader.info.stage == Stage::Geometry || shader.info.stage == Stage::Fragment && ended {
        output.variables.clear();
        output.slots.clear();
    }
    output
}

/// Whether defined lanes are the same. What was undefined may be anything.
fn same_lanes<T: PartialEq>(before: &[Option<T>], after: &[Option<T>]) -> bool {
    before.iter().zip(after).all(|(before, after)| before.is_none() || before == after)
}

fn same_variables(before: &BTreeMap<Var, VariableLanes>, after: &BTreeMap<Var, VariableLanes>) -> bool {
    before.iter().all(|(var, lanes)| after.get(var).is_some_and(|others| same_lanes(lanes, others)))
}

fn same_slots(before: &Slots, after: &Slots) -> bool {
    // An absent slot is undefined.
    let undefined = [None; 4];
    before.iter().all(|(slot, lanes)| same_lanes(lanes, after.get(slot).unwrap_or(&undefined)))
}

fn same_vertex(before: &VertexOutput, after: &VertexOutput) -> bool {
    match (before, after) {
        (
            VertexOutput::Vertex { stream, variables, slots },
            VertexOutput::Vertex { stream: other_stream, variables: other_variables, slots: other_slots },
        ) => {
            stream == other_stream
                && same_variables(variables, other_variables)
                && same_slots(slots, other_slots)
        }
        _ => before == after,
    }
}

fn same_outputs(before: &InvocationOutput, after: &InvocationOutput) -> bool {
    same_variables(&before.variables, &after.variables)
        && same_slots(&before.slots, &after.slots)
        && (before.helper, before.terminated) == (after.helper, after.terminated)
        && before.vertices.len() == after.vertices.len()
        && before.vertices.iter().zip(&after.vertices).all(|(before, after)| same_vertex(before, after))
}

/// Whether a run after a pass did what the one before did.
pub fn same(before: &Observed, after: &Observed) -> bool {
    before.memory == after.memory
        && before.images == after.images
        && before.outputs.len() == after.outputs.len()
        && before.outputs.iter().zip(&after.outputs).all(|(before, after)| same_outputs(before, after))
}

/// How many linked instructions a shader has.
pub fn count(shader: &Shader) -> usize {
    shader.functions().iter().map(|func| func.walk().filter(|&inst| func.op(inst) != Op::Const).count()).sum()
}
