//! Invariant motion: takes any shader; afterwards no pure operation whose operands all come from outside of a loop
//! is directly in its body (those in flow within the body stay).
//!
//! Pure operations are total, so computing one for a loop that leaves before it does no harm.

use crate::ir::{Function, Inst, Op, Payload, Region, Shader, Traits, ValueDef};
use unwedge_base::entity::SecondaryMap;

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    shader.functions_mut().iter_mut().fold(false, |changed, func| function(func) | changed)
}

fn function(func: &mut Function) -> bool {
    let mut loops: Vec<(Inst, Region)> = Vec::new();
    for inst in func.walk() {
        if let (Op::Loop, Payload::Body(body)) = (func.op(inst), func.payload(inst)) {
            loops.push((inst, body));
        }
    }
    if loops.is_empty() {
        return false;
    }
    let depths = func.region_depths();
    let mut changed = false;
    // Inner ones first, so that what leaves them may leave the loops around them.
    for &(inst, body) in loops.iter().rev() {
        let mut next = func.first(body);
        while let Some(candidate) = next {
            next = func.next(candidate);
            if func.traits(candidate).has(Traits::PURE) && is_invariant(func, &depths, candidate, body) {
                func.unlink(candidate);
                func.insert_before(inst, candidate);
                changed = true;
            }
        }
    }
    changed
}

/// Whether all operands of an instruction of a loop's body come from outside of the loop.
fn is_invariant(func: &Function, depths: &SecondaryMap<Region, u32>, inst: Inst, body: Region) -> bool {
    func.args(inst).iter().all(|&arg| match func.def(arg) {
        ValueDef::Result(def, _) => depths[func.region(def)] < depths[body],
        ValueDef::Param(region, _) => depths[region] < depths[body],
        ValueDef::Removed => false,
    })
}
