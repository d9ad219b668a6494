//! What edits share: zeros in place of removed values, and what was removed so far.

use crate::ir::{Base, Function, Inst, Op, Payload, Region, RegionOwner, Type, Value};
use crate::substitution::Substitution;
use unwedge_base::entity::SecondaryMap;

/// Whether an instruction gives the same in every run: a constant, an undefined value or a vector of them.
pub(super) fn is_constant(func: &Function, inst: Inst) -> bool {
    let scalar = |inst: Inst| matches!(func.op(inst), Op::Const | Op::Undef);
    scalar(inst)
        || func.op(inst) == Op::Vec
            && func.args(inst).iter().all(|&arg| func.def_inst(arg).is_some_and(scalar))
}

/// The same of a value.
pub(super) fn is_constant_value(func: &Function, value: Value) -> bool {
    func.def_inst(value).is_some_and(|inst| is_constant(func, inst))
}

/// The constants that a function starts with: they are visible to all that follows.
fn leading(func: &Function) -> impl Iterator<Item = Inst> + '_ {
    func.insts(func.body()).take_while(|&inst| is_constant(func, inst))
}

fn is_zero(func: &Function, inst: Inst) -> bool {
    match func.op(inst) {
        Op::Const => func.payload(inst) == Payload::Const(0),
        Op::Undef => func.ty(func.result(inst)).base == Base::Handle,
        _ => func.args(inst).iter().all(|&arg| func.const_bits(arg) == Some(0)),
    }
}

/// A zero at the start of a function: the one that is there, or a new one. Of a handle it is undefined.
pub(super) fn zero(func: &mut Function, ty: Type) -> Value {
    let same = |&inst: &Inst| func.ty(func.result(inst)) == ty && is_zero(func, inst);
    if let Some(inst) = leading(func).find(same) {
        return func.result(inst);
    }
    let lane = (ty.lanes > 1).then(|| zero(func, ty.lane()));
    let lanes = lane.map_or(Vec::new(), |lane| vec![lane; usize::from(ty.lanes)]);
    let (op, payload) = match (ty.base, ty.lanes) {
        (Base::Handle, _) => (Op::Undef, Payload::None),
        (_, 1) => (Op::Const, Payload::Const(0)),
        _ => (Op::Vec, Payload::None),
    };
    let inst = func.make_inst(op, payload, &lanes, &[ty]);
    match (lane.and_then(|lane| func.def_inst(lane)), func.first(func.body())) {
        (Some(lane), _) => func.insert_after(lane, inst),
        (None, Some(first)) => func.insert_before(first, inst),
        (None, None) => func.append(func.body(), inst),
    }
    func.result(inst)
}

/// Uses zeros in place of the results of an instruction.
pub(super) fn zero_results(func: &mut Function, inst: Inst, substitution: &mut Substitution) {
    let results = func.results(inst).to_vec();
    for result in results {
        let ty = func.ty(result);
        let zero = zero(func, ty);
        substitution.replace(result, zero);
    }
}

/// Which instructions are not in the function any more, because of what was removed before them in the text.
#[derive(Default)]
pub(super) struct Removed {
    insts: SecondaryMap<Inst, bool>,
    regions: SecondaryMap<Region, bool>,
}

impl Removed {
    /// Notes that an instruction is removed, with all that is in it.
    pub fn inst(&mut self, inst: Inst) {
        self.insts[inst] = true;
    }

    /// Notes that a region is removed.
    pub fn region(&mut self, region: Region) {
        self.regions[region] = true;
    }

    /// Whether an instruction went with what was around it. Asked in the order of the text.
    pub fn has(&mut self, func: &Function, inst: Inst) -> bool {
        let region = func.region(inst);
        let around = matches!(func.owner(region), RegionOwner::Inst(owner) if self.insts[owner]);
        if around || self.regions[region] {
            self.insts[inst] = true;
        }
        self.insts[inst]
    }
}
