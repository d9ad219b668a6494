//! Stages other than compute: a few invocations that run together, given their inputs and returning their outputs.

use super::Options;
use super::group::{slot_limit, subgroup_width};
use super::image::Images;
use super::layout::Layout;
use super::memory::{Bindings, Memory, Races, Scratch};
use super::report::{Report, RunError};
use super::slots::Slots;
use super::wave::{Context, Stop, Wave, WavePosition, cost};
use crate::ir::{InterpAt, Shader, Storage, SystemValue, Var};
use std::collections::BTreeMap;

/// The lanes of a variable in order, those of elements and members one after the other; `None` is undefined.
pub type VariableLanes = Vec<Option<u64>>;

/// What an invocation is given.
#[derive(Debug, Clone, Default)]
pub struct InvocationInput {
    /// System values.
    pub system_values: BTreeMap<SystemValue, [u32; 4]>,
    /// Input variables; those of a fragment shader interpolated.
    pub variables: BTreeMap<Var, VariableLanes>,
    /// Input variables interpolated elsewhere than their flags say: at the pixel, the centroid or the sample.
    pub interpolated: BTreeMap<(Var, InterpAt), VariableLanes>,
    /// Interface slots, of shaders whose interface was lowered to them.
    pub slots: Slots,
    /// Barycentric coordinates i, j of a fragment as bits of floats: where, and whether they are linear on the screen.
    pub barycentrics: BTreeMap<(InterpAt, bool), [u32; 2]>,
    /// Whether it starts as a helper.
    pub helper: bool,
    /// Its position in the workgroup; compute only, where [`super::run_compute`] sets it.
    pub local_id: Option<[u32; 3]>,
}

/// What a geometry invocation emits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VertexOutput {
    /// A vertex.
    Vertex {
        /// The stream.
        stream: u8,
        /// Output variables.
        variables: BTreeMap<Var, VariableLanes>,
        /// Interface slots.
        slots: Slots,
    },
    /// The end of a primitive.
    EndPrimitive {
        /// The stream.
        stream: u8,
    },
}

/// What an invocation returns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvocationOutput {
    /// Output variables. The invocations of a patch share them: the first one returns them.
    pub variables: BTreeMap<Var, VariableLanes>,
    /// Interface slots that it stored, shared as variables are.
    pub slots: Slots,
    /// Whether it is a helper at the end.
    pub helper: bool,
    /// Whether it ended by `terminate`.
    pub terminated: bool,
    /// What it emitted.
    pub vertices: Vec<VertexOutput>,
}

/// Instructions of a turn. Nothing else waits for one.
const SLICE: u32 = 4096;

/// Runs invocations of any stage as one subgroup; four that follow each other are a quad: 0 1 in the first row, 2 3 in the second.
///
/// # Errors
/// What the interpreter does not run, or more steps or memory than the limits give.
pub fn run_stage(
    shader: &Shader,
    inputs: Vec<InvocationInput>,
    bindings: &mut Bindings,
    images: &mut dyn Images,
    options: &Options,
) -> Result<(Vec<InvocationOutput>, Report), RunError> {
    let width = subgroup_width(options)?;
    if inputs.len() > width {
        return Err(RunError::Invocations(inputs.len()));
    }
    let layout = Layout::new(shader, slot_limit(&options.limits, width))?;
    cost(shader, &layout, width, &options.limits)?;
    let races = Races::new(options.races);
    let memory = Memory { bindings, shared: Scratch::default(), races };
    let mut cx = Context { options, memory, images, report: Report::default() };
    let count = inputs.len();
    let position = WavePosition { subgroups: 1, ..WavePosition::default() };
    let mut wave = Wave::new(shader, &layout, position, width, inputs);
    wave.extremes_keep_denormals = options.extremes_keep_denormals;
    // Barriers of a patch wait for nobody else.
    while wave.run(&mut cx, SLICE)? != Stop::End {}
    let outputs = (0..count).map(|invocation| InvocationOutput {
        variables: wave.outputs(invocation),
        slots: std::mem::take(&mut wave.output_slots[invocation]),
        helper: wave.helper >> invocation & 1 != 0,
        terminated: wave.terminated >> invocation & 1 != 0,
        vertices: std::mem::take(&mut wave.vertices[invocation]),
    });
    Ok((outputs.collect(), cx.report))
}

impl Wave<'_> {
    /// The output variables of an invocation.
    pub(super) fn outputs(&self, invocation: usize) -> BTreeMap<Var, VariableLanes> {
        let outputs = self.shader.vars.iter().filter(|(_, data)| data.storage == Storage::Output);
        outputs
            .map(|(var, _)| {
                let (start, len) = self.layout.var(var);
                (var, (start..start + len).map(|slot| self.regs.defined(slot, invocation)).collect())
            })
            .collect()
    }
}
