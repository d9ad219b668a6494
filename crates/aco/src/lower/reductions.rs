//! Reductions and scans of 16-bit floats become those of 32 bits, which are trees. The order in which lanes are combined is open, and so is how often the
//! result is rounded; exact results are the same.

use unwedge_base::entity::SecondaryMap;
use unwedge_shader::ir::{Base, Builder, Function, Inst, Op, Payload, Shader, Value};

fn is_half_reduction(func: &Function, inst: Inst) -> bool {
    let reduces = matches!(func.op(inst), Op::Reduce | Op::InclusiveScan | Op::ExclusiveScan);
    let floats = matches!(func.payload(inst), Payload::Reduce(Op::FAdd | Op::FMul | Op::FMin | Op::FMax, _));
    reduces && floats && func.ty(func.result(inst)).base == Base::B16
}

/// Widens reductions and scans of 16-bit floats.
pub(super) fn widen(shader: &mut Shader) -> bool {
    let func = shader.entry_mut();
    let reductions: Vec<Inst> = func.walk().filter(|inst| is_half_reduction(func, *inst)).collect();
    let mut halves: SecondaryMap<Value, Option<Value>> = SecondaryMap::default();
    for &inst in &reductions {
        let (op, payload, value, result) =
            (func.op(inst), func.payload(inst), func.args(inst)[0], func.result(inst));
        let mut b = Builder::before(func, inst);
        b.exact = true;
        let wide = b.convert(Op::F2F, Base::B32, value);
        let ty = b.func.ty(wide);
        let reduced = b.value(op, payload, &[wide], ty);
        let half = b.convert(Op::F2F, Base::B16, reduced);
        halves[result] = Some(half);
        func.unlink(inst);
    }
    if !reductions.is_empty() {
        func.replace_values(|old| halves[old].unwrap_or(old));
    }
    !reductions.is_empty()
}
