//! What edits share: zeros in place of removed values, and what was removed so far.

use crate::ir::{Base, Function, Inst, Op, Payload, Region, RegionOwner, Type, Value};
use crate::substitution::Substitution;
use unwedge_base::entity::SecondaryMap;

/// Whether an instruction is a constant, an undefined value or a vector of them.
pub(super) fn is_constant(func: &Function, inst: Inst) -> bool {
    let scalar = |inst: Inst| matches!(func.op(inst), Op::Const | Op::Undef);
    scalar(inst)
        || func.op(inst) == Op::Vec
            && func.args(inst).iter().all(|&arg| func.def_inst(arg).is_some_and(scalar))
}

/// Whether the instruction that defines a value is one of these.
pub(super) fn is_constant_value(func: &Function, value: Value) -> bool {
    func.def_inst(value).is_some_and(|inst| is_constant(func, inst))
}

/// The constants at the start of a function, which all other instructions see.
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

/// A zero at the start of a function, an existing or a new one. For handles it is `undef`.
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

/// Instructions that are not in the function any more, because an enclosing instruction or region was removed.
#[derive(Default)]
pub(super) struct Removed {
    insts: SecondaryMap<Inst, bool>,
    regions: SecondaryMap<Region, bool>,
}

impl Removed {
    /// Records that an instruction was removed with its regions.
    pub fn inst(&mut self, inst: Inst) {
        self.insts[inst] = true;
    }

    /// Records that a region was removed.
    pub fn region(&mut self, region: Region) {
        self.regions[region] = true;
    }

    /// Whether an instruction was removed. Must be called in the order of [`Function::walk`].
    pub fn has(&mut self, func: &Function, inst: Inst) -> bool {
        let region = func.region(inst);
        let around = matches!(func.owner(region), RegionOwner::Inst(owner) if self.insts[owner]);
        if around || self.regions[region] {
            self.insts[inst] = true;
        }
        self.insts[inst]
    }
}
