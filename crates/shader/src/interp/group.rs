//! Dispatches: workgroups one after the other, and the subgroups of each in turns.

use super::image::Images;
use super::layout::Layout;
use super::memory::{Bindings, Memory, Races, Scratch, count_barrier};
use super::registers::MAX_WIDTH;
use super::report::{Finding, Report, RunError, Violation};
use super::stage::InvocationInput;
use super::wave::{Context, Stop, Wave, WavePosition, cost};
use super::{Limits, Options};
use crate::ir::{Func, Inst, MemoryKinds, Modes, Shader, Stage};

/// What is dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatch {
    /// Workgroups in x, y and z.
    pub workgroups: [u32; 3],
    /// The first workgroup.
    pub base: [u32; 3],
}

impl Dispatch {
    /// A dispatch that starts at workgroup 0.
    pub fn new(workgroups: [u32; 3]) -> Dispatch {
        Dispatch { workgroups, base: [0; 3] }
    }
}

/// Instructions of a subgroup's turn.
const SLICE: u32 = 1024;

/// Runs a compute shader that is valid.
///
/// # Errors
/// What the interpreter does not run, or more steps or memory than the limits give. Memory holds what was stored until then.
pub fn run_compute(
    shader: &Shader,
    dispatch: Dispatch,
    bindings: &mut Bindings,
    images: &mut dyn Images,
    options: &Options,
) -> Result<Report, RunError> {
    if shader.info.stage != Stage::Compute {
        return Err(RunError::NotCompute);
    }
    let width = subgroup_width(options)?;
    let limits = &options.limits;
    let layout = Layout::new(shader, slot_limit(limits, width))?;
    let invocations = local_ids(shader, limits)?;
    let subgroups = invocations.len().div_ceil(width);
    let shared = u64::from(shader.info.shared_size);
    let total = cost(shader, &layout, width, limits)?
        .saturating_mul(subgroups as u64)
        .saturating_add(Scratch::cost(shared));
    if total > limits.memory {
        return Err(RunError::Memory(limits.memory));
    }
    let races = Races::new(options.races);
    let memory = Memory { bindings, shared: Scratch::default(), races };
    let mut cx = Context { options, memory, images, report: Report::default() };
    let mut position = WavePosition {
        workgroups: dispatch.workgroups,
        subgroups: subgroups as u32,
        ..WavePosition::default()
    };
    let [x, y, z] = dispatch.workgroups;
    for z in 0..z {
        for y in 0..y {
            for x in 0..x {
                let base = dispatch.base;
                position.workgroup =
                    [base[0].wrapping_add(x), base[1].wrapping_add(y), base[2].wrapping_add(z)];
                cx.memory.shared = Scratch::new(shared as usize);
                cx.memory.races.start_workgroup();
                workgroup(shader, &layout, &mut cx, position, width, &invocations)?;
                position.workgroup_index += 1;
            }
        }
    }
    Ok(cx.report)
}

/// Checks the width of subgroups.
pub(super) fn subgroup_width(options: &Options) -> Result<usize, RunError> {
    let width = options.subgroup_size as usize;
    if width.is_power_of_two() && width <= MAX_WIDTH {
        Ok(width)
    } else {
        Err(RunError::SubgroupSize(options.subgroup_size))
    }
}

/// The most slots that fit into memory.
pub(super) fn slot_limit(limits: &Limits, width: usize) -> u64 {
    limits.memory / (width as u64 * 8 + 16)
}

/// Positions of a workgroup's invocations, in the order of subgroups: x first, or quads of 2x2 where derivatives want them.
fn local_ids(shader: &Shader, limits: &Limits) -> Result<Vec<[u32; 3]>, RunError> {
    let [x, y, z] = shader.info.workgroup_size;
    let count = [x, y, z].iter().fold(1u64, |count, &size| count.saturating_mul(size.into()));
    // What an invocation takes at least.
    if count.saturating_mul(64) > limits.memory {
        return Err(RunError::Memory(limits.memory));
    }
    let quads = shader.info.modes.has(Modes::QUADS) && x % 2 == 0 && y % 2 == 0;
    let id = |number: u64| {
        let (x64, y64) = (u64::from(x), u64::from(y));
        let (plane, layer) = (number % (x64 * y64), number / (x64 * y64));
        let (column, row) = if quads {
            let (quad, part) = (plane / 4, plane % 4);
            (quad % (x64 / 2) * 2 + part % 2, quad / (x64 / 2) * 2 + part / 2)
        } else {
            (plane % x64, plane / x64)
        };
        [column as u32, row as u32, layer as u32]
    };
    Ok((0..count).map(id).collect())
}

fn workgroup(
    shader: &Shader,
    layout: &Layout,
    cx: &mut Context,
    position: WavePosition,
    width: usize,
    local_ids: &[[u32; 3]],
) -> Result<(), RunError> {
    let input = |&id: &[u32; 3]| InvocationInput { local_id: Some(id), ..InvocationInput::default() };
    let mut waves: Vec<Wave> = local_ids
        .chunks(width)
        .zip(0..)
        .map(|(ids, subgroup)| {
            let position = WavePosition { subgroup, ..position };
            let mut wave = Wave::new(shader, layout, position, width, ids.iter().map(input).collect());
            wave.extremes_keep_denormals = cx.options.extremes_keep_denormals;
            wave
        })
        .collect();
    let mut stops = vec![Stop::Slice; waves.len()];
    loop {
        for (wave, stop) in waves.iter_mut().zip(&mut stops) {
            if *stop == Stop::Slice {
                *stop = wave.run(cx, SLICE)?;
            }
        }
        if stops.iter().all(|stop| *stop == Stop::End) {
            return Ok(());
        }
        if !stops.contains(&Stop::Slice) {
            release(cx, &mut waves, &mut stops);
        }
    }
}

/// All subgroups wait or have ended: those that wait go on.
fn release(cx: &mut Context, waves: &mut [Wave], stops: &mut [Stop]) {
    let barrier = |stop: &Stop| match stop {
        Stop::Barrier(func, inst) => Some((*func, *inst)),
        _ => None,
    };
    let Some((func, inst)) = stops.iter().find_map(barrier) else { return };
    let reached: Option<(Func, Inst)> = Some((func, inst));
    if let Some((wave, _)) = waves.iter().zip(&*stops).find(|(_, stop)| barrier(stop) != reached) {
        cx.report.add(Finding {
            violation: Violation::NonUniformBarrier,
            func,
            inst,
            workgroup: wave.position.workgroup,
            invocation: wave.position.subgroup * wave.width as u32,
            address: 0,
            count: 1,
        });
    }
    let kinds = waves.iter().fold(MemoryKinds::NONE, |kinds, wave| kinds.or(wave.fenced));
    for (wave, stop) in waves.iter_mut().zip(stops) {
        count_barrier(&mut wave.workgroup_barriers, kinds);
        wave.fenced = MemoryKinds::NONE;
        if barrier(stop).is_some() {
            *stop = Stop::Slice;
        }
    }
}
