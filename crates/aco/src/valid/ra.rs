//! Whether every operand finds its temporary in its register.
//!
//! The registers are followed through the program: which byte holds a byte of which temporary on every path. Vector registers are followed
//! along the logical flow, as a lane keeps them while others execute; everything else along the linear flow.

use super::{Violation, Violations};
use crate::ir::{Block, Definition, Inst, Op, Operand, PhysReg, Program, Pseudo, RegClass, Source, Temp};
use unwedge_base::entity::Entity;

/// How many bytes of registers there are.
const BYTES: usize = 512 * 4;
/// Where vector registers begin.
const VECTOR: usize = 256 * 4;

/// What a byte of a register holds: a byte of a temporary, or nothing that is known on every path.
type Held = Option<(Temp, u8)>;

#[derive(Clone, PartialEq)]
struct State(Vec<Held>);

impl State {
    fn empty() -> State {
        State(vec![None; BYTES])
    }

    fn put(&mut self, reg: PhysReg, class: RegClass, temp: Option<Temp>) {
        for byte in 0..class.bytes() {
            if let Some(held) = self.0.get_mut(reg.index() + usize::from(byte)) {
                *held = temp.map(|temp| (temp, byte));
            }
        }
    }

    fn holds(&self, reg: PhysReg, class: RegClass, temp: Temp) -> bool {
        (0..class.bytes()).all(|byte| {
            self.0.get(reg.index() + usize::from(byte)).is_some_and(|held| *held == Some((temp, byte)))
        })
    }

    /// Keeps only what another path agrees with, in a part of the registers.
    fn meet(&mut self, other: &State, part: std::ops::Range<usize>) {
        for (held, other) in self.0[part.clone()].iter_mut().zip(&other.0[part]) {
            if held != other {
                *held = None;
            }
        }
    }
}

/// Checks the registers of a program that is [`Progress::Allocated`](crate::ir::Progress::Allocated).
///
/// # Errors
///
/// What does not hold.
pub fn ra(program: &Program) -> Result<(), Vec<Violation>> {
    let count = program.blocks.len();
    let mut ends: Vec<Option<State>> = vec![None; count];
    let mut changed = true;
    while changed {
        changed = false;
        for block in program.blocks.keys() {
            let mut state = start(program, block, &ends);
            let mut ignored = Violations::default();
            for &inst in &program.blocks[block].insts {
                step(program, inst, &mut state, &mut ignored);
            }
            if ends[block.index()].as_ref() != Some(&state) {
                ends[block.index()] = Some(state);
                changed = true;
            }
        }
    }
    let mut violations = Violations::default();
    for block in program.blocks.keys() {
        violations.block = Some(block);
        phis(program, block, &ends, &mut violations);
        let mut state = start(program, block, &ends);
        for &inst in &program.blocks[block].insts {
            violations.inst = Some(inst);
            step(program, inst, &mut state, &mut violations);
        }
        violations.inst = None;
    }
    violations.result()
}

/// What registers hold at the start of a block.
fn start(program: &Program, block: Block, ends: &[Option<State>]) -> State {
    let data = &program.blocks[block];
    let mut state = State::empty();
    for (preds, part) in [(&data.linear_preds, 0..VECTOR), (&data.logical_preds, VECTOR..BYTES)] {
        // A path that is not known yet agrees with everything.
        let mut known = preds.iter().filter_map(|pred| ends.get(pred.index())?.as_ref());
        if let Some(first) = known.next() {
            state.0[part.clone()].copy_from_slice(&first.0[part.clone()]);
            known.for_each(|other| state.meet(other, part.clone()));
        }
    }
    linear_vgprs(program, data, ends, &mut state);
    state
}

/// Linear vector registers are in the part that is followed along the logical flow, and are alive along the other.
fn linear_vgprs(program: &Program, data: &crate::ir::BlockData, ends: &[Option<State>], state: &mut State) {
    let mut known = data.linear_preds.iter().filter_map(|pred| ends.get(pred.index())?.as_ref());
    let Some(first) = known.next() else { return };
    let others: Vec<_> = known.collect();
    for (at, held) in first.0.iter().enumerate().skip(VECTOR) {
        let Some((temp, _)) = held else { continue };
        let linear = program.class_of(*temp).is_some_and(|class| class.is_linear());
        if linear && others.iter().all(|other| other.0[at] == *held) {
            state.0[at] = *held;
        }
    }
}

fn phis(program: &Program, block: Block, ends: &[Option<State>], violations: &mut Violations) {
    let data = &program.blocks[block];
    for &inst in &data.insts {
        violations.inst = Some(inst);
        let preds = match program.op(inst) {
            Op::Pseudo(Pseudo::Phi) => &data.logical_preds,
            Op::Pseudo(Pseudo::LinearPhi) => &data.linear_preds,
            _ => break,
        };
        for (operand, pred) in program.operands(inst).iter().zip(preds) {
            if let Some(Some(state)) = ends.get(pred.index()) {
                find(state, operand, violations);
            }
        }
    }
    violations.inst = None;
}

fn find(state: &State, operand: &Operand, violations: &mut Violations) {
    let Source::Temp(temp) = operand.source else { return };
    match operand.reg {
        None => violations.add(format!("{temp} has no register")),
        Some(reg) => violations.require(state.holds(reg, operand.class, temp), || {
            format!("{temp} is not in {}", reg.run(operand.class.bytes()))
        }),
    }
}

fn step(program: &Program, inst: Inst, state: &mut State, violations: &mut Violations) {
    let op = program.op(inst);
    if !op.is_phi() {
        for operand in program.operands(inst) {
            find(state, operand, violations);
        }
    }
    let definitions = program.definitions(inst);
    overlap(definitions, violations);
    for definition in definitions {
        match definition.reg {
            None => violations.add("a definition without register"),
            Some(reg) => {
                let end = reg.index() + usize::from(definition.class.bytes());
                violations.require(end <= BYTES, || "a register past the last".to_owned());
                let vector = reg.index() >= VECTOR;
                violations.require(vector == definition.class.is_vgpr(), || {
                    format!("{} cannot hold {}", reg.run(definition.class.bytes()), definition.class)
                });
                state.put(reg, definition.class, definition.temp);
            }
        }
    }
}

fn overlap(definitions: &[Definition], violations: &mut Violations) {
    let range = |definition: &Definition| {
        definition.reg.map(|reg| reg.index()..reg.index() + usize::from(definition.class.bytes()))
    };
    for (number, definition) in definitions.iter().enumerate() {
        for other in &definitions[..number] {
            if let (Some(a), Some(b)) = (range(definition), range(other)) {
                let apart = a.end <= b.start || b.end <= a.start;
                violations.require(apart, || "two definitions share a register".to_owned());
            }
        }
    }
}
