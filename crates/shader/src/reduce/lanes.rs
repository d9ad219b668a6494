//! Edits of vectors: values whose types are tied to each other lose lanes together.
//!
//! Operations that work lane by lane tie their operands and results to each other; jumps tie their operands to the results or parameters
//! that receive them. Values whose types other instructions determine (texels, variables, system values) keep their lanes.

use super::Site;
use crate::analysis::jumps::Jumps;
use crate::ir::{Function, Inst, Op, Payload, Rule, Type, Value};
use crate::substitution::{Substitution, last_of_chain};
use std::collections::BTreeMap;
use unwedge_base::entity::{Entity, SecondaryMap};

/// Sets of values that have the same number of lanes.
struct Ties {
    /// Toward the first value of the set.
    parent: SecondaryMap<Value, Option<Value>>,
    /// Sets that keep their lanes, by their first value.
    fixed: SecondaryMap<Value, bool>,
}

impl Ties {
    /// The first value of a set.
    fn first(&mut self, value: Value) -> Value {
        last_of_chain(&mut self.parent, value)
    }

    fn tie(&mut self, a: Value, b: Value) {
        let (a, b) = (self.first(a), self.first(b));
        if a != b {
            let (first, other) = (a.min(b), a.max(b));
            self.parent[other] = Some(first);
            self.fixed[first] = self.fixed[first] || self.fixed[other];
        }
    }

    fn fix(&mut self, value: Value) {
        let first = self.first(value);
        self.fixed[first] = true;
    }

    fn of(func: &Function) -> Ties {
        let mut ties = Ties { parent: SecondaryMap::default(), fixed: SecondaryMap::default() };
        let jumps = Jumps::of(func);
        for inst in func.walk() {
            match func.op(inst) {
                // They are changed with their vectors.
                Op::Vec | Op::Extract | Op::Undef | Op::Load | Op::Const => {}
                Op::Store => ties.only_first(func, inst),
                Op::Block | Op::If | Op::Loop => ties.structured(func, inst, &jumps),
                Op::Break | Op::Continue => {}
                op => ties.by_table(func, inst, op),
            }
        }
        ties
    }

    /// Operands after the first one keep their lanes.
    fn only_first(&mut self, func: &Function, inst: Inst) {
        func.args(inst).iter().skip(1).for_each(|&arg| self.fix(arg));
    }

    fn structured(&mut self, func: &Function, inst: Inst, jumps: &Jumps) {
        let params = match func.payload(inst) {
            Payload::Body(body) => func.params(body),
            _ => &[],
        };
        params.iter().zip(func.args(inst)).for_each(|(&param, &start)| self.tie(param, start));
        let breaks = jumps.breaks(inst).map(|jump| (func.results(inst), jump));
        let continues = jumps.continues(inst).map(|jump| (params, jump));
        for (receivers, jump) in breaks.chain(continues) {
            receivers.iter().zip(func.args(jump)).for_each(|(&receiver, &arg)| self.tie(receiver, arg));
        }
    }

    fn by_table(&mut self, func: &Function, inst: Inst, op: Op) {
        let row = op.row();
        let mut last = None;
        let mut value = |ties: &mut Ties, rule: Option<Rule>, value: Value| match rule {
            Some(Rule::T(_) | Rule::Lanes(_) | Rule::LanesOf(_)) if op != Op::Bitcast => {
                if let Some(last) = last {
                    ties.tie(last, value);
                }
                last = Some(value);
            }
            _ => ties.fix(value),
        };
        for (number, &arg) in func.args(inst).iter().enumerate() {
            value(self, row.operands.get(number).copied(), arg);
        }
        for &result in func.results(inst) {
            value(self, row.result, result);
        }
    }
}

/// The first value of each set that may lose lanes, with how many it keeps.
pub(super) fn components(func: &Function) -> Vec<Site> {
    let mut ties = Ties::of(func);
    let mut lanes = BTreeMap::new();
    for inst in func.walk() {
        for &value in func.results(inst) {
            let first = ties.first(value);
            if !ties.fixed[first] {
                lanes.insert(first, func.ty(value).lanes);
            }
        }
    }
    let fewer = |kept: usize| {
        let wider = lanes.iter().filter(move |(_, lanes)| usize::from(**lanes) > kept);
        wider.map(move |(first, _)| (first.index(), kept))
    };
    fewer(1).chain(fewer(2)).chain(fewer(4)).collect()
}

/// Removes lanes from sets of values.
pub(super) fn narrow(func: &mut Function, sites: &[Site]) {
    let mut ties = Ties::of(func);
    let kept: BTreeMap<usize, usize> = sites.iter().rev().copied().collect();
    let mut lanes = |value: Value| kept.get(&ties.first(value).index()).copied();
    let mut substitution = Substitution::default();
    for inst in func.walk().collect::<Vec<_>>() {
        let args = func.args(inst).to_vec();
        match func.op(inst) {
            Op::Vec => {
                if let Some(lanes) = lanes(func.result(inst)).filter(|&lanes| lanes < args.len()) {
                    func.set_args(inst, &args[..lanes]);
                }
            }
            Op::Extract => {
                if let (Some(lanes), Payload::Lane(lane)) = (lanes(args[0]), func.payload(inst)) {
                    func.set_payload(inst, Payload::Lane((usize::from(lane) % lanes) as u8));
                }
            }
            _ => {}
        }
        narrow_params(func, inst, &mut lanes);
        let results = func.results(inst).to_vec();
        narrow_values(func, &results, &mut lanes);
        let copied = match (func.op(inst), func.args(inst)) {
            (Op::Vec, &[lane]) => Some(lane),
            (Op::Extract | Op::ExtractDyn, &[vector, ..]) if func.ty(vector).lanes == 1 => Some(vector),
            _ => None,
        };
        if let Some(value) = copied {
            substitution.replace(func.result(inst), value);
            func.unlink(inst);
        }
    }
    substitution.apply(func);
}

fn narrow_params(func: &mut Function, inst: Inst, lanes: &mut impl FnMut(Value) -> Option<usize>) {
    for region in func.regions_of(inst).into_iter().flatten() {
        let params = func.params(region).to_vec();
        narrow_values(func, &params, lanes);
    }
}

fn narrow_values(func: &mut Function, values: &[Value], lanes: &mut impl FnMut(Value) -> Option<usize>) {
    for &value in values {
        let ty = func.ty(value);
        let fewer = lanes(value).filter(|&lanes| lanes < usize::from(ty.lanes));
        if let Some(ty) = fewer.and_then(|lanes| Type::new(ty.base, lanes as u32)) {
            func.set_ty(value, ty);
        }
    }
}
