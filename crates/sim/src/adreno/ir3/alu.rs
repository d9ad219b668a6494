//! Categories 1 to 4: moves, arithmetic, special functions.

use super::fault::FaultKind;
use super::fibers;
use super::group::Machine;
use super::program::ShaderStep;
use super::results::Results;
use super::wave::{FIBERS, Mask, Row, Wave};
use unwedge_isa::ir3::semantics::{self, Alu, Fibers, ValueKind, convert};
use unwedge_isa::ir3::{Attributes, Instruction, Opcode};

/// Rows of sources and of the result.
struct Rows<'r, const N: usize> {
    sources: &'r [Row; N],
    result: &'r mut Row,
    lanes: usize,
}

impl<const N: usize> Fibers<N> for Rows<'_, N> {
    type Out = ();

    #[inline(always)]
    fn run(self, function: impl Fn([u32; N]) -> u32) {
        let lanes = self.lanes.min(FIBERS);
        for (fiber, place) in self.result[..lanes].iter_mut().enumerate() {
            *place = function(std::array::from_fn(|n| self.sources[n][fiber]));
        }
    }
}

/// Executes an instruction of category 1 to 3.
pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, step: &ShaderStep) -> Result<(), FaultKind> {
    let instruction = &step.instruction;
    match instruction.opcode {
        Opcode::Movmsk => return movmsk(machine, wave, step),
        Opcode::Swz | Opcode::Gat | Opcode::Sct => return moves(machine, wave, step),
        _ => {}
    }
    let exec = wave.exec();
    let Some(dst) = instruction.dsts.get(0) else { return Ok(()) };
    let varying = matches!(instruction.opcode, Opcode::BaryF | Opcode::FlatB);
    for repeat in 0..=usize::from(instruction.repeat) {
        // A result that the wave shares is that of one fiber.
        let one = dst.is_shared();
        let mut result = [0; FIBERS];
        match varying {
            true => fibers::interpolate(machine, wave, step, repeat, &mut result)?,
            false => compute(machine, wave, step, repeat, one, &mut result)?,
        }
        let mask = if step.scalar { 1 } else { exec };
        wave.write(dst.kind, dst.half, repeat, &result, mask_of(wave, mask, one))?;
        machine.wrote(wave, step, &dst, repeat);
    }
    Ok(())
}

/// The fibers that write: of a shared result the first one, whose value is that of all here.
fn mask_of(wave: &Wave, mask: Mask, one: bool) -> Mask {
    if one && mask != 0 { 1 << wave.first() } else { mask }
}

fn compute(
    machine: &mut Machine<'_>,
    wave: &Wave,
    step: &ShaderStep,
    repeat: usize,
    one: bool,
    result: &mut Row,
) -> Result<(), FaultKind> {
    let instruction = &step.instruction;
    let alu = step.alu;
    if let Attributes::Move { from, to, round } = instruction.attributes {
        let mut sources = [[0; FIBERS]; 1];
        let kind = if from.is_float() { ValueKind::Float } else { ValueKind::Unsigned };
        fetch(machine, wave, step, 0, repeat, kind, one, &mut sources[0])?;
        let rows = Rows { sources: &sources, result, lanes: wave.lanes };
        convert::cat1(from, to, round, rows);
        return Ok(());
    }
    let kind = alu.sources();
    let known = match instruction.opcode.category() {
        2 => {
            let mut sources = [[0; FIBERS]; 2];
            for (at, row) in sources.iter_mut().enumerate() {
                if instruction.srcs.get(at).is_some() {
                    fetch(machine, wave, step, at, repeat, kind, one, row)?;
                }
            }
            semantics::cat2(alu, Rows { sources: &sources, result, lanes: wave.lanes })
        }
        _ => {
            let mut sources = [[0; FIBERS]; 3];
            for (at, row) in sources.iter_mut().enumerate() {
                fetch(machine, wave, step, at, repeat, kind, one, row)?;
            }
            semantics::cat3(alu, Rows { sources: &sources, result, lanes: wave.lanes })
        }
    };
    known.ok_or(FaultKind::NotEmulated(instruction.opcode.name()))?;
    finish(alu, result, wave.lanes);
    Ok(())
}

fn finish(alu: Alu, result: &mut Row, lanes: usize) {
    if alu.changes_result() {
        result[..lanes.min(FIBERS)].iter_mut().for_each(|value| *value = alu.finish(*value));
    }
}

/// A source with its modifiers; when `one`, that of the first fiber for all.
#[allow(clippy::too_many_arguments, reason = "each says something else of the one source")]
fn fetch(
    machine: &mut Machine<'_>,
    wave: &Wave,
    step: &ShaderStep,
    at: usize,
    repeat: usize,
    kind: ValueKind,
    one: bool,
    row: &mut Row,
) -> Result<(), FaultKind> {
    let Some(operand) = step.instruction.srcs.get(at) else {
        return Err(FaultKind::NotEmulated("this form"));
    };
    let repeat = if operand.step { repeat } else { 0 };
    if one {
        let value = wave.read_fiber(&operand, repeat, &machine.constants, kind, wave.first())?;
        row.fill(value);
    } else {
        wave.read(&operand, repeat, &machine.constants, kind, row)?;
    }
    machine.taint(wave, step, at, repeat, row);
    if operand.negate || operand.absolute {
        let (alu, negate, absolute) = (step.alu, operand.negate, operand.absolute);
        if alu.sources() == ValueKind::Float && !alu.half {
            let (clear, flip) = (if absolute { !(1 << 31) } else { !0 }, u32::from(negate) << 31);
            row[..wave.lanes.min(FIBERS)].iter_mut().for_each(|value| *value = *value & clear ^ flip);
        } else {
            row.iter_mut().for_each(|value| *value = alu.modify(*value, negate, absolute));
        }
    }
    Ok(())
}

/// The mask of the fibers that execute, 32 of them a register.
fn movmsk(machine: &mut Machine<'_>, wave: &mut Wave, step: &ShaderStep) -> Result<(), FaultKind> {
    let (instruction, exec) = (&step.instruction, wave.exec());
    let Some(dst) = instruction.dsts.get(0) else { return Ok(()) };
    for word in 0..usize::from(dst.count) {
        let bits = (exec >> ((32 * word as u32) & 127)) as u32;
        wave.write(dst.kind, false, word, &[bits; FIBERS], exec)?;
        machine.wrote(wave, step, &dst, word);
    }
    Ok(())
}

/// Several registers at once: all are read before any is written.
fn moves(machine: &mut Machine<'_>, wave: &mut Wave, step: &ShaderStep) -> Result<(), FaultKind> {
    let instruction: &Instruction = &step.instruction;
    let Attributes::Move { from, to, round } = instruction.attributes else { return Ok(()) };
    let kind = if from.is_float() { ValueKind::Float } else { ValueKind::Unsigned };
    let mut values = Vec::new();
    for (at, source) in instruction.srcs.iter().enumerate() {
        for component in 0..usize::from(source.count) {
            let mut sources = [[0; FIBERS]; 1];
            wave.read(&source, component, &machine.constants, kind, &mut sources[0])?;
            machine.taint_component(wave, step, at, component, &mut sources[0]);
            let mut result = [0; FIBERS];
            let rows = Rows { sources: &sources, result: &mut result, lanes: wave.lanes };
            convert::cat1(from, to, round, rows);
            values.push(result);
        }
    }
    let exec = wave.exec();
    let places = instruction
        .dsts
        .iter()
        .flat_map(|dst| (0..usize::from(dst.count)).map(move |component| (dst, component)));
    for ((dst, component), value) in places.zip(&values) {
        wave.write(dst.kind, dst.half, component, value, exec)?;
        machine.wrote(wave, step, &dst, component);
    }
    Ok(())
}

/// Category 4.
pub(super) fn special(
    machine: &mut Machine<'_>,
    wave: &Wave,
    step: &ShaderStep,
    exec: Mask,
) -> Result<Results, FaultKind> {
    let instruction = &step.instruction;
    let mut results = Results::default();
    let Some(dst) = instruction.dsts.get(0) else { return Ok(results) };
    let one = dst.is_shared();
    let mask = mask_of(wave, if step.scalar { 1 } else { exec }, one);
    for repeat in 0..=usize::from(instruction.repeat) {
        let mut sources = [[0; FIBERS]; 1];
        fetch(machine, wave, step, 0, repeat, ValueKind::Float, one, &mut sources[0])?;
        let mut result = [0; FIBERS];
        let rows = Rows { sources: &sources, result: &mut result, lanes: wave.lanes };
        semantics::cat4(step.alu, rows).ok_or(FaultKind::NotEmulated(instruction.opcode.name()))?;
        finish(step.alu, &mut result, wave.lanes);
        results.push(&dst, repeat, mask, result);
    }
    Ok(results)
}
