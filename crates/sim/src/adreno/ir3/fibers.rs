//! Fibers of a stage of draws: waves that begin with registers that the hardware has filled, and what they leave in theirs.
//!
//! Never: which registers those are, or what becomes of the results; those who read the state of draws say so.

use super::dispatch::{Dispatch, Options};
use super::fault::{Fault, FaultKind};
use super::group::Machine;
use super::program::{ShaderProgram, ShaderStep};
use super::run::{Groups, Stats};
use super::tap::FiberTap;
use super::wave::{FIBERS, Mask, Row, Varyings, Wave, all_fibers};
use crate::memory::SimMemory;
use std::sync::Arc;
use unwedge_isa::ir3::semantics::{Round, ValueKind, float};
use unwedge_isa::ir3::{
    Attributes, DescriptorIndex, FIRST_SHARED, Flags, Instruction, Opcode, Operand, OperandKind, Operands,
    TextureAccess, Type,
};

/// A register that holds a value before the first instruction.
#[derive(Debug, Clone)]
pub(crate) struct StartValue {
    /// By component, in its size.
    pub(crate) register: u8,
    /// 16 bits.
    pub(crate) half: bool,
    /// One for each fiber.
    pub(crate) values: Vec<u32>,
}

/// A register that is read after the last instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputRegister {
    /// By component, in its size.
    pub(crate) register: u8,
    /// 16 bits.
    pub(crate) half: bool,
    /// The component of a render target that it is, which `alias.rt` may replace.
    pub(crate) target: Option<u8>,
}

/// A texture that is sampled before the first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefetch {
    /// `sam`, or one of the gathers.
    pub(crate) opcode: Opcode,
    /// Location of the first of two components of a varying.
    pub(crate) location: u8,
    /// Where the texel goes, by component.
    pub(crate) register: u8,
    /// 16 bits.
    pub(crate) half: bool,
    /// Components that are written.
    pub(crate) mask: u8,
    /// Number of the texture.
    pub(crate) texture: u32,
    /// Number of the sampler.
    pub(crate) sampler: u32,
    /// Sets of bindless descriptors of texture and sampler.
    pub(crate) sets: Option<[u8; 2]>,
}

/// What is interpolated in primitives: a plane for each component, so many components a primitive.
///
/// A plane is the value at the first vertex, and the differences of the values at the second and the third to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Planes {
    components: usize,
    values: Vec<[u32; 3]>,
}

impl Planes {
    pub(crate) fn new(components: usize) -> Planes {
        Planes { components, values: Vec::new() }
    }

    /// Adds the planes of a primitive: its number.
    pub(crate) fn push(&mut self, planes: impl Iterator<Item = [u32; 3]>) -> u32 {
        let number = self.len();
        self.values.extend(planes.take(self.components));
        self.values.resize((number as usize + 1) * self.components, [0; 3]);
        number
    }

    /// Primitives.
    pub(crate) fn len(&self) -> u32 {
        self.values.len().checked_div(self.components).unwrap_or(0) as u32
    }

    fn get(&self, primitive: u32, component: usize) -> Option<&[u32; 3]> {
        let at = primitive as usize * self.components + component;
        self.values.get(at).filter(|_| component < self.components)
    }
}

/// Fibers that run together: a wave, or a few.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fibers {
    /// How many; at most 2,048.
    pub(crate) count: usize,
    pub(crate) starts: Vec<StartValue>,
    /// Those that only help others of their quad, one bit for each fiber of a wave.
    pub(crate) helpers: Vec<Mask>,
    /// The primitive of each fiber, of a fragment shader.
    pub(crate) primitives: Vec<u32>,
    /// Two registers that the coordinates of prefetches are interpolated with, fiber by fiber.
    pub(crate) weights: Vec<[f32; 2]>,
    /// Local memory as it begins.
    pub(crate) local: Vec<u8>,
    /// Those that are logged; they run on one thread.
    pub(crate) taps: Vec<FiberTap>,
}

/// What fibers left.
#[derive(Debug, Clone, Default)]
pub(crate) struct FibersDone {
    /// By output, by fiber.
    pub(crate) outputs: Vec<Vec<u32>>,
    /// Whether a fiber was killed, or only helped.
    pub(crate) dropped: Vec<bool>,
    /// Local memory.
    pub(crate) local: Vec<u8>,
}

/// The code of a stage, and what all its fibers share.
pub(crate) struct StageCode {
    pub(crate) program: ShaderProgram,
    pub(crate) dispatch: Dispatch,
    pub(crate) outputs: Vec<OutputRegister>,
    pub(crate) prefetches: Vec<Prefetch>,
    /// The constant file as the preamble left it.
    constants: Vec<u32>,
}

impl StageCode {
    /// Runs the preamble.
    ///
    /// # Errors
    ///
    /// What it met.
    pub(crate) fn new(
        program: ShaderProgram,
        dispatch: Dispatch,
        memory: &mut SimMemory,
        options: &Options,
    ) -> Result<(StageCode, Stats), Fault> {
        let mut groups = Groups::new(&program, &dispatch, options);
        let constants = groups.preamble(memory);
        let stats = groups.end()?;
        let code = StageCode { program, dispatch, outputs: Vec::new(), prefetches: Vec::new(), constants };
        Ok((code, stats))
    }

    /// Full registers that are filled before or read after the program.
    fn registers(&self, starts: &[StartValue]) -> usize {
        let outputs = self.outputs.iter().map(|output| (output.register, output.half, 1));
        let prefetches = self.prefetches.iter().map(|prefetch| (prefetch.register, prefetch.half, 4));
        let starts = starts.iter().map(|start| (start.register, start.half, 1));
        let reach = |(register, half, count): (u8, bool, usize)| {
            let end = usize::from(register) + count;
            if half { end.div_ceil(2) } else { end }
        };
        let own = |(register, ..): &(u8, bool, usize)| *register < FIRST_SHARED;
        outputs.chain(prefetches).chain(starts).filter(own).map(reach).max().unwrap_or(0)
    }

    /// Runs batches of fibers, in order or with the result of it.
    ///
    /// # Errors
    ///
    /// The first fault. What was executed before it is in memory.
    pub(crate) fn run(
        &self,
        batches: &[Fibers],
        planes: &Arc<Planes>,
        memory: &mut SimMemory,
        options: &Options,
        done: impl FnMut(FibersDone),
    ) -> Result<Stats, Fault> {
        let logged = batches.iter().any(|fibers| !fibers.taps.is_empty());
        let options = &Options { threads: if logged { 1 } else { options.threads }, ..*options };
        let work = |machine: &mut Machine<'_>, number: u32| match batches.get(number as usize) {
            Some(fibers) => machine.run_fibers(self, fibers, planes),
            None => Ok(FibersDone::default()),
        };
        self.run_groups(batches.len() as u32, memory, options, work, done)
    }

    /// The same with batches that are made, and results that are taken, where they run.
    ///
    /// # Errors
    ///
    /// As [`StageCode::run`].
    pub(crate) fn run_made<R: Send>(
        &self,
        batches: impl BatchMaker<R>,
        planes: &Arc<Planes>,
        memory: &mut SimMemory,
        options: &Options,
        done: impl FnMut(R),
    ) -> Result<Stats, Fault> {
        let work = |machine: &mut Machine<'_>, number: u32| {
            let number = number as usize;
            let fibers = batches.fibers(number);
            Ok(batches.result(number, machine.run_fibers(self, &fibers, planes)?))
        };
        self.run_groups(batches.count() as u32, memory, options, work, done)
    }

    fn run_groups<R: Send>(
        &self,
        count: u32,
        memory: &mut SimMemory,
        options: &Options,
        work: impl Fn(&mut Machine<'_>, u32) -> Result<R, Fault> + Sync,
        done: impl FnMut(R),
    ) -> Result<Stats, Fault> {
        let mut groups = Groups::new(&self.program, &self.dispatch, options);
        groups.run(memory, 0..count, &self.constants, work, done);
        groups.end()
    }
}

/// Batches of fibers that are made when they are run.
pub(crate) trait BatchMaker<R>: Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// The fibers of one of them.
    fn fibers(&self, number: usize) -> Fibers;

    /// What becomes of what they left.
    fn result(&self, number: usize, done: FibersDone) -> R;
}

impl Machine<'_> {
    fn run_fibers(
        &mut self,
        code: &StageCode,
        fibers: &Fibers,
        planes: &Arc<Planes>,
    ) -> Result<FibersDone, Fault> {
        if !fibers.local.is_empty() {
            self.local.clone_from(&fibers.local);
        }
        self.registers = self.registers.max(code.registers(&fibers.starts));
        let lanes = self.dispatch.lanes();
        self.log_fibers(&fibers.taps, lanes);
        let mut waves = Vec::new();
        for (number, first) in (0..fibers.count).step_by(lanes).enumerate() {
            let mut wave = self.wave(number as u32, lanes, (fibers.count - first).min(lanes));
            wave.helpers |= fibers.helpers.get(number).copied().unwrap_or(0);
            if !fibers.primitives.is_empty() {
                let end = (first + lanes).min(fibers.primitives.len());
                let primitives = fibers.primitives[first.min(end)..end].to_vec();
                wave.varyings = Some(Varyings::new(planes, primitives));
            }
            self.start_fibers(&mut wave, first, fibers);
            self.prefetch(&mut wave, code, fibers.weights.get(first..).unwrap_or_default())
                .map_err(|kind| self.fault(&wave, kind))?;
            waves.push(wave);
        }
        self.run_waves(&mut waves)?;
        let mut left = FibersDone { local: std::mem::take(&mut self.local), ..FibersDone::default() };
        for wave in &waves {
            let count = (fibers.count - lanes * wave.number as usize).min(lanes);
            left.dropped.extend((0..count).map(|fiber| wave.helpers >> fiber & 1 != 0));
        }
        for output in &code.outputs {
            let mut values = Vec::with_capacity(fibers.count);
            for wave in &waves {
                let count = (fibers.count - values.len()).min(lanes);
                self.output(wave, output, count, &mut values).map_err(|kind| self.fault(wave, kind))?;
            }
            left.outputs.push(values);
        }
        Ok(left)
    }

    fn start_fibers(&self, wave: &mut Wave, first: usize, fibers: &Fibers) {
        for start in &fibers.starts {
            let values = start.values.get(first..).unwrap_or_default();
            if !start.half && start.register < FIRST_SHARED {
                // A register that the program does not have is one that it does not read.
                if let Ok(row) = wave.row_mut(start.register.into()) {
                    let count = values.len().min(row.len());
                    row[..count].copy_from_slice(&values[..count]);
                    row[count..].fill(0);
                }
                continue;
            }
            let mut row = [0; FIBERS];
            row.iter_mut().zip(values).for_each(|(place, value)| *place = *value);
            // As above.
            let _ = wave.write(OperandKind::Gpr(start.register), start.half, 0, &row, Mask::MAX);
        }
    }

    /// Adds what the first fibers of a wave have in a register.
    fn output(
        &self,
        wave: &Wave,
        output: &OutputRegister,
        count: usize,
        values: &mut Vec<u32>,
    ) -> Result<(), FaultKind> {
        let mut row = [0; FIBERS];
        let replaced = |component: u8| wave.target_aliases.iter().rev().find(|(of, _)| *of == component);
        if let Some((_, source)) = output.target.and_then(replaced) {
            wave.read(source, 0, &self.constants, ValueKind::Unsigned, &mut row)?;
        } else if !output.half
            && output.register < FIRST_SHARED
            && let Ok(row) = wave.row(output.register.into())
        {
            values.extend_from_slice(&row[..count.min(row.len())]);
            return Ok(());
        } else {
            let operand = Operand::new(OperandKind::Gpr(output.register), output.half);
            match wave.read(&operand, 0, &self.constants, ValueKind::Unsigned, &mut row) {
                // A register that nothing writes.
                Ok(()) | Err(FaultKind::NoRegister(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        values.extend_from_slice(&row[..count.min(FIBERS)]);
        Ok(())
    }

    /// Samples textures for registers: coordinates stand in the first two while they are sampled.
    fn prefetch(&mut self, wave: &mut Wave, code: &StageCode, weights: &[[f32; 2]]) -> Result<(), FaultKind> {
        if code.prefetches.is_empty() {
            return Ok(());
        }
        let [kept_x, kept_y] = [wave.row(0)?.to_vec(), wave.row(1)?.to_vec()];
        let mut texels = Vec::new();
        for prefetch in &code.prefetches {
            for axis in 0..2 {
                let mut row = [0; FIBERS];
                let varyings = wave.varyings.as_ref();
                for (fiber, (place, [i, j])) in row.iter_mut().zip(weights).enumerate() {
                    let plane = varyings.and_then(|v| v.plane(fiber, usize::from(prefetch.location) + axis));
                    *place = plane.map_or(0, |plane| along(plane, *i, *j));
                }
                wave.write(OperandKind::Gpr(axis as u8), false, 0, &row, Mask::MAX)?;
            }
            let (instruction, a1) = prefetch.instruction(self.program.gpu_id());
            let kept = std::mem::replace(&mut wave.a1, a1);
            let step = ShaderStep::new(instruction);
            texels.push(self.perform(wave, &step, all_fibers(wave.lanes) & wave.active)?);
            wave.a1 = kept;
        }
        wave.row_mut(0)?.copy_from_slice(&kept_x);
        wave.row_mut(1)?.copy_from_slice(&kept_y);
        texels.iter().try_for_each(|texels| self.complete(wave, texels))
    }
}

impl Prefetch {
    /// The instruction that does the same, and what `a1.x` is for it.
    fn instruction(&self, gpu_id: u32) -> (Instruction, u32) {
        // `a1.x` names the set of the sampler, where it is another one, with one of the numbers.
        let other = self.sets.filter(|[texture, sampler]| texture != sampler).map(|[_, sampler]| sampler);
        let number = if gpu_id >= 700 { self.sampler } else { self.texture };
        let access = TextureAccess {
            ty: if self.half { Type::F16 } else { Type::F32 },
            mask: self.mask,
            three_d: false,
            array: false,
            offsets: false,
            project: false,
            shadow: false,
            one_d: false,
            vector: false,
            offset: 0,
            base: self.sets.map(|[texture, _]| texture),
            index: DescriptorIndex::Immediate,
            a1: other.is_some(),
            texture: self.texture as u16,
            sampler: self.sampler as u16,
            numbers: None,
            cluster: 0,
        };
        let instruction = Instruction {
            word: 0,
            opcode: self.opcode,
            flags: Flags::default(),
            repeat: 0,
            nops: 0,
            dsts: Operands::of(&[Operand::new(OperandKind::Gpr(self.register), self.half)]),
            srcs: Operands::of(&[Operand::new(OperandKind::Gpr(0), false)]),
            attributes: Attributes::Texture(access),
        };
        (instruction, other.map_or(0, |set| number << 3 | u32::from(set)))
    }
}

impl Varyings {
    fn new(planes: &Arc<Planes>, primitives: Vec<u32>) -> Varyings {
        let first = primitives.first().copied();
        let one = first.filter(|first| primitives.iter().all(|primitive| primitive == first));
        Varyings { planes: Arc::clone(planes), primitives, one }
    }

    fn plane(&self, fiber: usize, component: usize) -> Option<&[u32; 3]> {
        self.planes.get(*self.primitives.get(fiber)?, component)
    }
}

fn along(plane: &[u32; 3], i: f32, j: f32) -> u32 {
    let [first, second, third] = plane.map(f32::from_bits);
    (first + i * second + j * third).to_bits()
}

/// The component of a varying as the first vertex has it, for every fiber.
pub(super) fn raw(wave: &Wave, component: usize, row: &mut Row) -> Result<(), FaultKind> {
    let varyings = wave.varyings.as_ref().ok_or(FaultKind::NotEmulated("a varying outside of fragments"))?;
    for (fiber, place) in row.iter_mut().enumerate().take(wave.lanes) {
        *place = varyings.plane(fiber, component).map_or(0, |plane| plane[0]);
    }
    Ok(())
}

/// [`interpolate`] where all fibers are of one primitive and read the same component by weights in registers: most often. False where
/// that is not so.
fn interpolate_one(
    wave: &Wave,
    instruction: &Instruction,
    repeat: usize,
    row: &mut Row,
) -> Result<bool, FaultKind> {
    let stepped = |operand: &Operand| if operand.step { repeat } else { 0 };
    let Some(varyings) = &wave.varyings else { return Ok(false) };
    let (Some(primitive), Some(location)) = (varyings.one, instruction.srcs.get(0)) else { return Ok(false) };
    let OperandKind::Immediate(component) = location.kind else { return Ok(false) };
    let component = component.wrapping_add(stepped(&location) as u32) as usize;
    // Fibers past the last one read it, too, and are not stored.
    let plane = varyings.planes.get(primitive, component);
    if instruction.opcode == Opcode::FlatB {
        row[..wave.lanes].fill(plane.map_or(0, |plane| plane[0]));
        return Ok(true);
    }
    let Some(weights) = instruction.srcs.get(1).filter(|weights| !weights.half) else { return Ok(false) };
    let OperandKind::Gpr(number @ ..FIRST_SHARED) = weights.kind else { return Ok(false) };
    let first = usize::from(number) + stepped(&weights);
    let (i, j) = (wave.row(first)?, wave.row(first + 1)?);
    if let Some(plane) = plane {
        for (place, (i, j)) in row.iter_mut().zip(i.iter().zip(j)) {
            *place = along(plane, f32::from_bits(*i), f32::from_bits(*j));
        }
    }
    Ok(true)
}

/// `bary.f` and `flat.b`.
pub(super) fn interpolate(
    machine: &mut Machine<'_>,
    wave: &Wave,
    step: &ShaderStep,
    repeat: usize,
    row: &mut Row,
) -> Result<(), FaultKind> {
    let instruction = &step.instruction;
    let narrows = instruction.dsts.get(0).is_some_and(|dst| dst.half);
    if wave.late.is_none() && !narrows && interpolate_one(wave, instruction, repeat, row)? {
        return Ok(());
    }
    let source = |at| instruction.srcs.get(at).ok_or(FaultKind::NotEmulated("this form"));
    let location = source(0)?;
    let steps = if location.step { repeat } else { 0 };
    let mut locations = [0; FIBERS];
    match location.kind {
        OperandKind::Immediate(value) => locations.fill(value.wrapping_add(steps as u32)),
        _ => {
            wave.read(&location, steps, &machine.constants, ValueKind::Unsigned, &mut locations)?;
            machine.taint(wave, step, 0, steps, &mut locations);
        }
    }
    let varyings = wave.varyings.as_ref().ok_or(FaultKind::NotEmulated("a varying outside of fragments"))?;
    let flat = instruction.opcode == Opcode::FlatB;
    let lanes = wave.lanes.min(FIBERS);
    let (mut i, mut j) = ([0; FIBERS], [0; FIBERS]);
    if !flat {
        let weights = source(1)?;
        let steps = if weights.step { repeat } else { 0 };
        for (component, row) in [&mut i, &mut j].into_iter().enumerate() {
            wave.read(&weights, steps + component, &machine.constants, ValueKind::Unsigned, row)?;
            machine.taint_component(wave, step, 1, steps + component, row);
        }
    }
    for (fiber, place) in row.iter_mut().enumerate().take(lanes) {
        let Some(plane) = varyings.plane(fiber, locations[fiber] as usize) else { continue };
        *place = match flat {
            true => plane[0],
            false => along(plane, f32::from_bits(i[fiber]), f32::from_bits(j[fiber])),
        };
    }
    if narrows {
        // A float is made narrower; what is flat is taken as it is.
        row[..lanes].iter_mut().for_each(|value| {
            *value = if flat { *value & 0xffff } else { float::narrow(*value, Round::Even) };
        });
    }
    Ok(())
}
