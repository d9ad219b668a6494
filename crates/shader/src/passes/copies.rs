//! Copy propagation: takes any shader; afterwards no operand is a lane of a vector whose lanes are known, a vector of all lanes of
//! another vector, a bit cast that changes nothing, or a result or parameter that is always the same visible value.
//!
//! The copies stay, unused, until `dead` removes them.

use crate::analysis::jumps::Jumps;
use crate::ir::{Function, Inst, Op, Payload, Region, Shader, Value, ValueDef};
use crate::substitution::Substitution;
use unwedge_base::entity::SecondaryMap;

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    shader.functions_mut().iter_mut().fold(false, |changed, func| function(func) | changed)
}

/// How often results and parameters are examined: each time resolves copies through one more level of nested loops.
const ROUNDS: usize = 4;

fn function(func: &mut Function) -> bool {
    let mut copies = Copies { source: Substitution::default() };
    let jumps = Jumps::of(func);
    let depths = func.region_depths();
    let structured: Vec<Inst> =
        func.walk().filter(|&inst| matches!(func.op(inst), Op::Block | Op::If | Op::Loop)).collect();
    for _ in 0..ROUNDS {
        let mut round = false;
        for &inst in structured.iter().rev() {
            round |= copies.merges(func, &jumps, &depths, inst);
        }
        if !round {
            break;
        }
    }
    for inst in func.walk() {
        if let Some(source) = copies.copied(func, inst) {
            let result = func.result(inst);
            copies.source.replace(result, source);
        }
    }
    let mut used = false;
    func.replace_values(|value| {
        let source = copies.source.resolve(value);
        used |= source != value;
        source
    });
    used
}

struct Copies {
    /// The value that a value is a copy of.
    source: Substitution,
}

impl Copies {
    /// Results and parameters of a structured instruction that are always one value.
    fn merges(
        &mut self,
        func: &Function,
        jumps: &Jumps,
        depths: &SecondaryMap<Region, u32>,
        inst: Inst,
    ) -> bool {
        let depth = depths[func.region(inst)];
        let mut changed = false;
        let params = match (func.op(inst), func.payload(inst)) {
            (Op::Loop, Payload::Body(body)) => func.params(body),
            _ => &[],
        };
        for (number, &param) in params.iter().enumerate() {
            let sources = jumps.continues(inst).map(|jump| func.args(jump)[number]);
            let sources = std::iter::once(func.args(inst)[number]).chain(sources);
            changed |= self.merge(func, depths, depth, param, sources);
        }
        for (number, &result) in func.results(inst).iter().enumerate() {
            let sources = jumps.breaks(inst).map(|jump| func.args(jump)[number]);
            changed |= self.merge(func, depths, depth, result, sources);
        }
        changed
    }

    /// Makes a value that merges others a copy, if they are all the same value. Undefined ones may be any value.
    fn merge(
        &mut self,
        func: &Function,
        depths: &SecondaryMap<Region, u32>,
        depth: u32,
        merged: Value,
        sources: impl Iterator<Item = Value>,
    ) -> bool {
        if self.source.has(merged) {
            return false;
        }
        let mut only = None;
        for source in sources {
            let source = self.source.resolve(source);
            let undef = func.def_inst(source).is_some_and(|inst| func.op(inst) == Op::Undef);
            if source == merged || undef || only == Some(source) {
                continue;
            }
            if only.is_some() {
                return false;
            }
            only = Some(source);
        }
        let Some(only) = only else { return false };
        let region = match func.def(only) {
            ValueDef::Result(inst, _) => func.region(inst),
            ValueDef::Param(region, _) => region,
            ValueDef::Removed => return false,
        };
        // It is visible within the instruction; it is visible outside too if its region is one around the instruction.
        if depths[region] > depth {
            return false;
        }
        self.source.replace(merged, only);
        true
    }

    /// The value that an instruction copies.
    fn copied(&mut self, func: &Function, inst: Inst) -> Option<Value> {
        match (func.op(inst), func.payload(inst)) {
            (Op::Extract, Payload::Lane(lane)) => {
                let vector = self.source.resolve(func.args(inst)[0]);
                if func.ty(vector).lanes == 1 {
                    return Some(vector);
                }
                let def = func.def_inst(vector).filter(|&def| func.op(def) == Op::Vec)?;
                Some(self.source.resolve(func.args(def)[lane as usize]))
            }
            (Op::Vec, _) => {
                let mut vector = None;
                for (number, &arg) in func.args(inst).iter().enumerate() {
                    let arg = self.source.resolve(arg);
                    let def = func.def_inst(arg).filter(|&def| func.op(def) == Op::Extract)?;
                    let from = self.source.resolve(func.args(def)[0]);
                    if func.payload(def) != Payload::Lane(number as u8)
                        || vector.is_some_and(|vector| vector != from)
                    {
                        return None;
                    }
                    vector = Some(from);
                }
                vector.filter(|&vector| func.ty(vector) == func.ty(func.result(inst)))
            }
            (Op::Bitcast, _) => {
                let mut from = self.source.resolve(func.args(inst)[0]);
                let ty = func.ty(func.result(inst));
                while func.ty(from) != ty {
                    let def = func.def_inst(from).filter(|&def| func.op(def) == Op::Bitcast)?;
                    from = self.source.resolve(func.args(def)[0]);
                }
                Some(from)
            }
            (Op::Select, _) => {
                let [_, a, b] = *func.args(inst) else { return None };
                let (a, b) = (self.source.resolve(a), self.source.resolve(b));
                (a == b).then_some(a)
            }
            _ => None,
        }
    }
}
