//! Loop unrolling: takes any shader; afterwards no small loop is left whose trip count is small and follows from constants alone, up to a
//! limit on the growth of the function. Best after `folding` and `variables`; `flow` and `folding` clean up the result.
//!
//! The trip count is found by execution: the condition of an `if` directly in the body, one arm of which leaves the loop, is computed
//! for each iteration from the constants that the parameters start with. So any counter that constants determine is supported, whatever
//! its step. Each iteration becomes a `block` that is left where the loop continued, so invocations meet where they met before. Another
//! exit may leave the loop earlier.

use super::copier::{ContinueAs, Copier};
use crate::ir::{
    Builder, Function, Inst, Lanes, MAX_DEPTH, Op, Payload, Region, RegionOwner, Shader, ShaderInfo, Traits,
    Type, Value, ValueDef,
};
use crate::semantics;
use std::collections::HashMap;

/// The most copies of a body.
const MAX_ITERATIONS: usize = 32;
/// The most instructions that a loop becomes.
const MAX_INSTS: usize = 512;
/// The most instructions that a function grows by.
const MAX_GROWTH: usize = 4096;
/// The most parameters of a loop.
const MAX_PARAMS: usize = 64;
/// The most operations between parameters and the condition, and how deeply they depend on each other.
const MAX_SLICE: usize = 64;

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    let info = std::mem::take(&mut shader.info);
    let changed =
        shader.functions_mut().iter_mut().fold(false, |changed, func| function(func, &info) | changed);
    shader.info = info;
    changed
}

fn function(func: &mut Function, info: &ShaderInfo) -> bool {
    let loops: Vec<Inst> = func.walk().filter(|&inst| func.op(inst) == Op::Loop).collect();
    let mut growth = 0;
    let mut changed = false;
    let mut copier = Copier::default();
    // Inner ones first, so that their copies count for the loops around them.
    for &inst in loops.iter().rev() {
        let Payload::Body(body) = func.payload(inst) else { continue };
        let Some(inside) = Inside::of(func, inst) else { continue };
        let Some(iterations) = iterations(func, info, inst, body, &inside) else { continue };
        let size = iterations.len() * (inside.insts.len() + 1);
        if size > MAX_INSTS || growth + size > MAX_GROWTH {
            continue;
        }
        growth += size;
        unroll(func, &mut copier, inst, body, &iterations);
        changed = true;
    }
    changed
}

/// The instructions within a loop.
struct Inside {
    insts: Vec<Inst>,
    continues: Vec<Inst>,
}

impl Inside {
    /// `None` if it is too large, or so deep that unrolling would make it too deep.
    fn of(func: &Function, inst: Inst) -> Option<Inside> {
        let end = func.next(inst);
        let mut inside = Inside { insts: Vec::new(), continues: Vec::new() };
        let mut next = func.after(inst);
        let mut deepest = 0;
        while next != end {
            let at = next?;
            if inside.insts.len() == MAX_INSTS {
                return None;
            }
            inside.insts.push(at);
            if func.op(at) == Op::Continue && func.payload(at) == Payload::Target(inst) {
                inside.continues.push(at);
            }
            if func.op(at).has(Traits::TERMINATOR) {
                deepest = deepest.max(owners(func, at).count());
            }
            next = func.after(at);
        }
        (deepest + 2 < MAX_DEPTH).then_some(inside)
    }
}

/// The structured instructions around an instruction, innermost first, each with its region.
fn owners(func: &Function, inst: Inst) -> impl Iterator<Item = (Inst, Region)> + '_ {
    let owner = |region| match func.owner(region) {
        RegionOwner::Inst(owner) => Some((owner, region)),
        RegionOwner::Function => None,
    };
    std::iter::successors(owner(func.region(inst)), move |&(inst, _)| owner(func.region(inst)))
}

/// The parameters of an iteration, where they are constants.
type Iteration = Vec<Option<Lanes>>;

/// The iterations of a loop: the most times that its body is entered.
fn iterations(
    func: &Function,
    info: &ShaderInfo,
    inst: Inst,
    body: Region,
    inside: &Inside,
) -> Option<Vec<Iteration>> {
    if func.params(body).len() > MAX_PARAMS {
        return None;
    }
    // The instruction directly in the body that a continue is in.
    let top = |jump: Inst| {
        let mut at = jump;
        for (owner, region) in owners(func, jump) {
            if region == body {
                break;
            }
            at = owner;
        }
        at
    };
    let tops: Vec<Inst> = inside.continues.iter().map(|&jump| top(jump)).collect();
    for at in func.insts(body) {
        if func.op(at) == Op::If
            && let Some(leaves) = leaving_arm(func, at, inst, inside)
        {
            let mut simulation =
                Simulation { func, info, inst, body, inside, known: HashMap::new(), left: 0 };
            if let Some(iterations) = simulation.iterations(func.args(at)[0], leaves) {
                return Some(iterations);
            }
        }
        // What follows is not executed in every iteration.
        if tops.contains(&at) {
            return None;
        }
    }
    None
}

/// The value of the condition of an `if` with which the loop is always left; `None` unless exactly one arm always leaves it.
fn leaving_arm(func: &Function, at: Inst, of: Inst, inside: &Inside) -> Option<bool> {
    let Payload::Arms(_, other) = func.payload(at) else { return None };
    let mut leaves = [true; 2];
    for &jump in &inside.insts {
        let stays = match (func.op(jump), func.payload(jump)) {
            (Op::Break, Payload::Target(target)) => target == at,
            (Op::Continue, Payload::Target(target)) => target == of,
            _ => false,
        };
        let arm = || owners(func, jump).take_while(|&(owner, _)| owner != of).find(|&(owner, _)| owner == at);
        if stays && let Some((_, region)) = arm() {
            leaves[usize::from(region == other)] = false;
        }
    }
    match leaves {
        [true, false] => Some(true),
        [false, true] => Some(false),
        _ => None,
    }
}

/// Executes the counters of a loop.
struct Simulation<'a> {
    func: &'a Function,
    info: &'a ShaderInfo,
    inst: Inst,
    body: Region,
    inside: &'a Inside,
    /// Values of this iteration.
    known: HashMap<Value, Option<Lanes>>,
    /// How many more operations may be computed in this iteration.
    left: usize,
}

impl Simulation<'_> {
    fn iterations(&mut self, condition: Value, leaves: bool) -> Option<Vec<Iteration>> {
        let func = self.func;
        let params = func.params(self.body);
        let start = func.args(self.inst).iter().map(|&arg| func.const_lanes(arg));
        let mut current: Iteration = start.collect();
        let mut iterations = Vec::new();
        for _ in 0..MAX_ITERATIONS {
            iterations.push(current.clone());
            self.left = MAX_SLICE;
            self.known.clear();
            self.known.extend(params.iter().copied().zip(current.iter().copied()));
            if (self.value(condition, 0)?[0] & 1 != 0) == leaves {
                return Some(iterations);
            }
            for (number, next) in current.iter_mut().enumerate() {
                let mut values = self.inside.continues.iter().map(|&jump| func.args(jump)[number]);
                let first = values.next().and_then(|value| self.value(value, 0));
                *next = first.and_then(|first| {
                    values.try_fold(first, |first, value| (self.value(value, 0)? == first).then_some(first))
                });
            }
        }
        None
    }

    fn value(&mut self, value: Value, depth: usize) -> Option<Lanes> {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        let ValueDef::Result(inst, _) = self.func.def(value) else { return None };
        if let Some(constant) = self.func.const_lanes(value) {
            return Some(constant);
        }
        self.left = self.left.checked_sub(1)?;
        let computed = if depth < MAX_SLICE { self.compute(inst, depth) } else { None };
        self.known.insert(value, computed);
        computed
    }

    fn compute(&mut self, inst: Inst, depth: usize) -> Option<Lanes> {
        let func = self.func;
        if !func.op(inst).has(Traits::PURE) {
            return None;
        }
        let mut args = [Lanes::new(&[])?; Type::MAX_LANES];
        let count = func.args(inst).len();
        for (lanes, &arg) in args.iter_mut().zip(func.args(inst)) {
            *lanes = self.value(arg, depth + 1)?;
        }
        if func.op(inst) == Op::Vec {
            let lanes: Vec<u64> = args[..count].iter().map(|lanes| lanes[0]).collect();
            return Lanes::new(&lanes);
        }
        semantics::fold(func, inst, self.info, &args[..count])
    }
}

/// Makes a loop a block of its iterations.
fn unroll(func: &mut Function, copier: &mut Copier, inst: Inst, body: Region, iterations: &[Iteration]) {
    let params = func.params(body).to_vec();
    let types: Vec<Type> = params.iter().map(|&param| func.ty(param)).collect();
    let mut values = func.args(inst).to_vec();
    let unrolled = func.add_region();
    for (number, iteration) in iterations.iter().enumerate() {
        for (at, &param) in params.iter().enumerate() {
            let value = match iteration[at] {
                Some(lanes) => {
                    let mut builder = Builder::at_end(func, unrolled);
                    let lanes: Vec<Value> =
                        lanes.iter().map(|&bits| builder.constant(types[at].base, bits)).collect();
                    builder.vec(&lanes)
                }
                None => values[at],
            };
            copier.set(param, value);
        }
        if number + 1 == iterations.len() {
            copier.body(func, inst, body, unrolled, ContinueAs::Unreachable);
            break;
        }
        let region = func.add_region();
        let block = func.make_inst(Op::Block, Payload::Body(region), &[], &types);
        func.set_loc(block, func.loc(inst));
        func.append(unrolled, block);
        copier.body(func, inst, body, region, ContinueAs::Break(block));
        values = func.results(block).to_vec();
    }
    func.replace_inst(inst, Op::Block, Payload::Body(unrolled), &[]);
}
